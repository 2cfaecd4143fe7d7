"""Settings of an export, the masks to export, and the label rules."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.annotations.fuse import Staple, majority_vote, staple
from napari_mamamia.annotations.harmonise import map_labels, target_names
from napari_mamamia.core import choices
from napari_mamamia.core.case import LabelMap, is_soft
from napari_mamamia.core.errors import CaseError, FormatError, Remedy
from napari_mamamia.core.grid import Grid, require_same_grid
from napari_mamamia.core.label_rules import LabelRule
from napari_mamamia.core.progress import report_progress
from napari_mamamia.core.provenance import InputFile, Maker, Provenance, Setting
from napari_mamamia.io.data_set.label_map import read_label_rules
from napari_mamamia.io.data_set.mask_files import list_masks, no_mask_error
from napari_mamamia.io.data_set.volumes import files_of_volume, read_labels
from napari_mamamia.io.files.checksums import sha256_of
from napari_mamamia.io.files.file_names import case_key
from napari_mamamia.io.files.sources import DataSet, LayoutKind
from napari_mamamia.io.seg.codes import SEGMENT_CODES
from napari_mamamia.io.workspace.provenance import read_provenance, sidecar_path
from napari_mamamia.io.workspace.workspace import file_name

TUMOUR: Final = ((1, "tumour"),)


@dataclass(frozen=True, slots=True)
class MaskFolder:
    """A folder of masks ``ID.nii.gz`` and the name of the mask set; "" uses the folder name."""

    folder: Path
    name: str = ""

    @property
    def title(self) -> str:
        """The name of the mask set."""
        return self.name or self.folder.resolve().name


@dataclass(frozen=True, slots=True)
class ExportSettings:
    """The settings of an export.

    `label` is the only value, or the name of the segment, that is kept, as 1; `rules` map several
    values instead. `study` is the DICOM folder to which segmentations refer, with a subfolder
    ``ID`` for each case if there are several. `n_channels` is the number of phases for nnU-Net;
    None means all, if all cases have the same number. `with_images` also writes the phases.
    `with_quality` reads and checks the phases. `identified_seg` keeps the patient's name and the
    study's own UIDs in DICOM SEG, for returning it to the PACS.
    """

    masks: tuple[MaskFolder, ...]
    formats: tuple[str, ...] = (choices.ExportFormat.NIFTI,)
    profile: choices.OrientationProfile = choices.OrientationProfile.AS_IS
    label: float | str | None = None
    rules: tuple[LabelRule, ...] = ()
    case_ids: tuple[str, ...] = ()
    with_images: bool = False
    with_quality: bool = True
    fuse: choices.FuseRule = choices.FuseRule.NONE
    tie: choices.TieRule = choices.TieRule.BACKGROUND
    study: Path | None = None
    segment_maker: choices.SegmentMaker = choices.SegmentMaker.FROM_PROVENANCE
    dataset_number: int = 501
    n_channels: int | None = None
    identified_seg: bool = False


def require_names(settings: ExportSettings) -> tuple[str, ...]:
    """Return the names of the mask sets, with the fused set last; raise if two names collide.

    Raises
    ------
    CaseError
        If there is no set, two sets have the same name (ignoring letter case), a name is not a
        valid folder name, or there are too few sets to fuse.
    """
    if not settings.masks:
        raise CaseError(
            "expected at least one folder of masks, but got none: choose a folder",
            remedies=(Remedy("masks", ("DIR",)),),
        )
    if settings.rules and settings.label is not None:
        raise CaseError("expected either a label or a label map, but got both: omit one of them")
    names = [file_name(masks.title, "the name of a set of masks") for masks in settings.masks]
    if settings.fuse is not choices.FuseRule.NONE:
        if len(names) < 2:
            raise CaseError(
                f"expected at least two mask sets to fuse, but got {len(names)} "
                f"({', '.join(names)}): add a folder",
                remedies=(Remedy("masks", ("NAME=DIR",)),),
            )
        names.append(settings.fuse.value)
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(case_key(name), name)
        if names.count(name) > 1 or other != name:
            raise CaseError(
                f"expected each mask set to have a different name, but got {other!r} and "
                f"{name!r}: rename one set",
                remedies=(Remedy("masks", ("NAME=DIR",)),),
            )
    return tuple(names)


def label_names(settings: ExportSettings) -> tuple[tuple[int, str], ...]:
    """Return the labels that masks in this export may contain, as (value, name)."""
    return target_names(settings.rules) if settings.rules else TUMOUR


def find_all_masks(
    data_set: DataSet, settings: ExportSettings
) -> tuple[tuple[Mapping[str, Path], ...], Mapping[str, str]]:
    """Return the files of each mask set by case id, and reasons why cases have no mask.

    A reason is given for a case that has no mask in any set although files have its name.

    Raises
    ------
    FormatError
        If a folder is missing or has no mask.
    """
    ids_by_key = {case_key(files.case_id): files.case_id for files in data_set.cases}
    sets: list[Mapping[str, Path]] = []
    others: dict[str, str] = {}
    for masks in settings.masks:
        listing = list_masks(masks.folder, tuple(ids_by_key.values()))
        for problem in listing.problems.values():
            raise FormatError(f"{masks.folder}: {problem}")
        if listing.is_empty:
            raise no_mask_error(masks.folder)
        sets.append(
            {ids_by_key.get(case_key(name), name): path for name, path in listing.masks.items()}
        )
        others |= listing.others
    reasons = {
        case_id: reason
        for case_id, reason in others.items()
        if not any(case_id in mask_set for mask_set in sets)
    }
    return tuple(sets), reasons


def chosen_cases(
    settings: ExportSettings, sets: Sequence[Mapping[str, Path]], others: Mapping[str, str]
) -> tuple[str, ...]:
    """Return the requested cases, or all cases for which any set has a file.

    Raises
    ------
    CaseError
        If no set has a mask for a requested case.
    """
    held = dict.fromkeys(case_id for files in (*sets, others) for case_id in files)
    for case_id in settings.case_ids:
        if case_id not in held:
            where = ", ".join(str(masks.folder) for masks in settings.masks)
            raise CaseError(
                f"expected {where} to have a mask of case {case_id!r}, but found "
                "none: check the spelling"
            )
    return settings.case_ids or tuple(held)


def require_own_folder(data_set: DataSet, sets: Sequence[Mapping[str, Path]], out: Path) -> None:
    """Raise an error if the output folder contains the data set or the masks themselves.

    Raises
    ------
    CaseError
        If a phase, a reference or a mask to export is in `out`.
    """
    target = out.resolve()
    inputs = [path for mask_set in sets for path in mask_set.values()]
    for files in data_set.cases:
        inputs += [phase.files[0] for phase in files.phases]
        inputs += [files.reference] if files.reference is not None else []
    folders = {path.parent for path in inputs}
    for folder in folders:
        if folder.resolve().is_relative_to(target):
            raise CaseError(
                f"expected the output folder not to contain the input, but {folder} is in {out}: "
                "choose a different folder"
            )


def public_name(data_set: DataSet) -> str:
    """Return a publishable name of the data set; a DICOM folder may be named after a patient."""
    return "DICOM" if data_set.kind is LayoutKind.DICOM else data_set.name


def parameters_of(data_set: DataSet, settings: ExportSettings) -> tuple[tuple[str, Setting], ...]:
    """Return the settings of the export for ``run.json``."""
    return (
        ("data_set", public_name(data_set)),
        ("masks", ", ".join(masks.title for masks in settings.masks)),
        ("formats", ", ".join(settings.formats)),
        ("profile", settings.profile.value),
        ("label", settings.label),
        ("rules", "; ".join(f"{r.source:g}->{r.target} {r.name}" for r in settings.rules)),
        ("fuse", settings.fuse.value),
        ("with_images", settings.with_images),
        ("identified_seg", settings.identified_seg),
    )


@dataclass(frozen=True, slots=True, eq=False)
class DrawnMask:
    """One mask of a case for the export, uint8 ``(z, y, x)`` on the case's own grid.

    `name` is the name of the mask set. `has_history` is True if there is a provenance file next to
    the mask.
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
        If a mask is not on the case's grid.
    CaseError
        If a mask has several labels and no label is chosen, or there are too few masks to fuse.
    FormatError
        If a mask is damaged, or a value has no rule.
    """
    drawn: list[DrawnMask] = []
    for name, mask_set in zip(names, sets, strict=False):
        if case_id in mask_set:
            report_progress(len(drawn), len(sets), f"Reading the mask of {name}")
            drawn.append(_read_mask(case_id, grid, settings, name, mask_set[case_id]))
    if settings.fuse is not choices.FuseRule.NONE:
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
    if isinstance(label, str):  # Only the named segment was read.
        return labels.foreground()
    if label is not None and label not in labels.values:
        raise CaseError(
            f"expected {labels.source} to have the label {label:g}, but it has "
            f"{_join_values(labels.values)}"
        )
    voxels = labels.foreground(label)
    if label is None and len(labels.values) > 1 and not is_soft(labels.crop):
        raise CaseError(
            f"expected {labels.source} to have one label, but it has {len(labels.values)} "
            f"({_join_values(labels.values)}): choose one, or map them to labels",
            remedies=(Remedy("label", ("VALUE",)), Remedy("label_map", ("FILE",))),
        )
    return voxels


def _join_values(values: tuple[float, ...]) -> str:
    return ", ".join(f"{value:g}" for value in values[:10]) or "no label"


def _make_unknown(case_id: str, name: str, path: Path) -> Provenance:
    """Return a provenance with only the file name, for a mask without a provenance file."""
    return Provenance(
        case_id=case_id,
        maker=Maker.UNKNOWN,
        name=name,
        inputs=tuple(InputFile(file.name, sha256_of(file)) for file in files_of_volume(path)),
        note="no provenance was found next to this mask",
    )


def _fuse_masks(
    case_id: str, settings: ExportSettings, name: str, drawn: Sequence[DrawnMask]
) -> DrawnMask:
    if len(drawn) < 2:
        held = ", ".join(mask.name for mask in drawn) or "nobody"
        raise CaseError(
            f"expected at least two masks of case {case_id} to fuse, but only {held} has one: "
            "omit the case, or add a mask"
        )
    report_progress(len(drawn), len(drawn) + 1, "Fusing masks")
    parameters: list[tuple[str, Setting]] = [
        ("rule", settings.fuse.value),
        ("readers", ", ".join(mask.name for mask in drawn)),
    ]
    if settings.fuse is choices.FuseRule.MAJORITY:
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
        note="fused from several masks; no reader has drawn this mask",
    )
    return DrawnMask(name, labels, drawn[0].grid, provenance, True)


def _run_staple(case_id: str, drawn: Sequence[DrawnMask]) -> Staple:
    values = sorted({int(v) for mask in drawn for v in np.unique(mask.labels) if v})
    if len(values) > 1:
        raise CaseError(
            f"expected masks with one label for STAPLE, but the masks of case {case_id} have the "
            f"labels {', '.join(map(str, values))}: choose one, or fuse by majority",
            remedies=(Remedy("label", ("VALUE",)), Remedy("fuse", ("majority",))),
        )
    return staple([mask.labels > 0 for mask in drawn])


def _list_inputs(drawn: Sequence[DrawnMask]) -> tuple[InputFile, ...]:
    return tuple(
        replace(item, name=f"{mask.name}/{item.name}")
        for mask in drawn
        for item in mask.provenance.inputs[:1]
    )


@dataclass(frozen=True, slots=True)
class LabelLine:
    """One label rule as strings: value in the mask, target value, name and masks."""

    source: str
    target: str
    name: str
    masks: str


@dataclass(frozen=True, slots=True)
class LabelFile:
    """The content of a label rule file; `problem` states why it cannot be used, or is "".

    `uncoded` lists the names for which DICOM SEG has no code.
    """

    path: Path
    rules: tuple[LabelRule, ...] = ()
    lines: tuple[LabelLine, ...] = ()
    uncoded: tuple[str, ...] = ()
    problem: str = ""


def look_at_labels(path: Path) -> LabelFile:
    """Return the rules in a JSON file; problems with the file do not raise an error.

    Examples
    --------
    >>> look_at_labels(Path("absent.json")).problem[:40]
    'cannot read label rules as JSON from abs'
    """
    try:
        rules = read_label_rules(path)
    except FormatError as error:
        return LabelFile(path, problem=str(error))
    names = dict.fromkeys(rule.name for rule in rules if rule.target)
    uncoded = tuple(name for name in names if name.casefold() not in SEGMENT_CODES)
    return LabelFile(path, rules, tuple(map(_make_line, rules)), uncoded)


def _make_line(rule: LabelRule) -> LabelLine:
    return LabelLine(
        f"{rule.source:g}",
        str(rule.target) if rule.target else "left out",
        rule.name if rule.target else "",
        rule.masks or "all",
    )
