"""Read a case's masks for an export, check them against the image, and map their labels."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.annotations.fuse import Staple, majority_vote, staple
from napari_mamamia.annotations.harmonise import map_labels
from napari_mamamia.core.case import LabelMap, is_soft
from napari_mamamia.core.choices import FuseRule
from napari_mamamia.core.errors import CaseError, FormatError, Remedy
from napari_mamamia.core.grid import Grid, require_same_grid
from napari_mamamia.core.progress import report_progress
from napari_mamamia.core.provenance import InputFile, Maker, Provenance, Setting
from napari_mamamia.io.data_set.volumes import files_of_volume, read_labels
from napari_mamamia.io.files.checksums import sha256_of
from napari_mamamia.io.workspace.provenance import read_provenance, sidecar_path
from napari_mamamia.services.export.plan import ExportSettings


@dataclass(frozen=True, slots=True, eq=False)
class DrawnMask:
    """One mask of a case for the export: uint8 ``(z, y, x)`` on the case's own grid.

    `name` is the name of the mask set; `has_history` tells whether a provenance file was found
    beside the mask.
    """

    name: str
    labels: NDArray[np.uint8]
    grid: Grid
    provenance: Provenance
    has_history: bool


def drawn_masks(
    case_id: str,
    grid: Grid,
    settings: ExportSettings,
    names: Sequence[str],
    sets: Sequence[Mapping[str, Path]],
) -> tuple[DrawnMask, ...]:
    """Read the masks of a case, one for each set that has a mask; the fused mask is last.

    Raises
    ------
    GridMismatchError
        If a mask does not lie on the case's grid.
    CaseError
        If a mask has several labels and no label is chosen, or there is nothing to fuse.
    FormatError
        If a mask is damaged, or a value has no rule.
    """
    drawn: list[DrawnMask] = []
    for name, mask_set in zip(names, sets, strict=False):
        if case_id in mask_set:
            report_progress(len(drawn), len(sets), f"Reading the mask of {name}")
            drawn.append(_read_mask(case_id, grid, settings, name, mask_set[case_id]))
    if settings.fuse is not FuseRule.NONE:
        drawn.append(_fuse_masks(case_id, settings, names[-1], drawn))
    return tuple(drawn)


def _read_mask(
    case_id: str, grid: Grid, settings: ExportSettings, name: str, path: Path
) -> DrawnMask:
    label_map = read_labels(path, settings.label).on_grid(grid)
    require_same_grid(label_map.grid, grid, str(path), f"case {case_id}")
    labels = np.zeros(grid.shape, np.uint8)
    if settings.rules:
        rules = [rule for rule in settings.rules if rule.masks in ("", name)]
        try:
            labels[label_map.box.slices] = map_labels(label_map.crop, rules)
        except FormatError as error:
            raise FormatError(f"{path}: {error}") from error
    else:
        labels[label_map.box.slices] = _one_label(label_map, settings.label)
    history = read_provenance(sidecar_path(path)) if sidecar_path(path).exists() else None
    provenance = history or _make_unknown(case_id, name, path)
    return DrawnMask(name, labels, grid, provenance, history is not None)


def _one_label(labels: LabelMap, label: float | str | None) -> NDArray[np.bool_]:
    if isinstance(label, str):  # only the named segment was read
        return labels.foreground()
    if label is not None and label not in labels.values:
        raise CaseError(
            f"{labels.source} does not hold label {label:g}: it holds {_join_values(labels.values)}"
        )
    voxels = labels.foreground(label)
    if label is None and len(labels.values) > 1 and not is_soft(labels.crop):
        raise CaseError(
            f"{labels.source} holds {len(labels.values)} labels ({_join_values(labels.values)}): "
            "choose one, or map them to labels",
            remedies=(Remedy("label", ("VALUE",)), Remedy("label_map", ("FILE",))),
        )
    return voxels


def _join_values(values: tuple[float, ...]) -> str:
    return ", ".join(f"{value:g}" for value in values[:10]) or "no label"


def _make_unknown(case_id: str, name: str, path: Path) -> Provenance:
    """Return the provenance of a mask without a provenance file, which names only its file."""
    return Provenance(
        case_id=case_id,
        maker=Maker.UNKNOWN,
        name=name,
        inputs=tuple(InputFile(file.name, sha256_of(file)) for file in files_of_volume(path)),
        note="no provenance was found beside this mask",
    )


def _fuse_masks(
    case_id: str, settings: ExportSettings, name: str, drawn: Sequence[DrawnMask]
) -> DrawnMask:
    if len(drawn) < 2:
        held = ", ".join(mask.name for mask in drawn) or "nobody"
        raise CaseError(
            f"fusing needs two masks of case {case_id}, but only {held} has one: leave the case "
            "out, or add a mask"
        )
    report_progress(len(drawn), len(drawn) + 1, "Fusing masks")
    parameters: list[tuple[str, Setting]] = [
        ("rule", settings.fuse.value),
        ("readers", ", ".join(mask.name for mask in drawn)),
    ]
    if settings.fuse is FuseRule.MAJORITY:
        labels = majority_vote([mask.labels for mask in drawn], settings.tie)
        parameters.append(("ties", settings.tie.value))
    else:
        estimate = _run_staple(case_id, drawn)
        labels = estimate.mask.view(np.uint8)
        for mask, p, q in zip(drawn, estimate.sensitivities, estimate.specificities, strict=True):
            parameters += [(f"sensitivity of {mask.name}", p), (f"specificity of {mask.name}", q)]
    provenance = Provenance(
        case_id=case_id,
        maker=Maker.MODEL,
        name=name,
        inputs=_list_inputs(drawn),
        parameters=tuple(parameters),
        note="fused from several masks; nobody has drawn it",
    )
    return DrawnMask(name, labels, drawn[0].grid, provenance, True)


def _run_staple(case_id: str, drawn: Sequence[DrawnMask]) -> Staple:
    values = sorted({int(v) for mask in drawn for v in np.unique(mask.labels) if v})
    if len(values) > 1:
        raise CaseError(
            f"STAPLE estimates one structure, but the masks of case {case_id} hold the labels "
            f"{', '.join(map(str, values))}: choose one, or fuse by majority",
            remedies=(Remedy("label", ("VALUE",)), Remedy("fuse", ("majority",))),
        )
    return staple([mask.labels > 0 for mask in drawn])


def _list_inputs(drawn: Sequence[DrawnMask]) -> tuple[InputFile, ...]:
    return tuple(
        replace(item, name=f"{mask.name}/{item.name}")
        for mask in drawn
        for item in mask.provenance.inputs[:1]
    )
