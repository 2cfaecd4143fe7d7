"""The layouts beside plain NIfTI: nnU-Net raw, BIDS derivatives, the challenge's submission."""

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Final

import numpy as np

from napari_mamamia.core.case import Case
from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.progress import report_progress
from napari_mamamia.core.provenance import software_version
from napari_mamamia.core.reorientation import Reorientation
from napari_mamamia.io.data_set.bundle import BundleFile, describe_file
from napari_mamamia.io.data_set.export_layouts import (
    bids_facts,
    bids_stem,
    nnunet_folder,
    write_bids_description,
    write_nnunet_description,
    write_zip,
)
from napari_mamamia.io.files.sources import DataSet
from napari_mamamia.services.export.masks import DrawnMask
from napari_mamamia.services.export.plan import (
    ExportFormat,
    ExportSettings,
    FuseRule,
    label_names,
    public_name,
)
from napari_mamamia.services.export.writer import CaseWriter

_CHALLENGE: Final = "challenge"
_PREDICTIONS: Final = "pred_segmentations"
"""Folder that the challenge's scripts look into. Source: MAMA-MIA challenge, sample submission:
``<output_dir>/pred_segmentations/<patient_id>.nii.gz``."""
_ZIP: Final = "submission.zip"


def require_formats(
    data_set: DataSet, settings: ExportSettings, names: Sequence[str], cases: Sequence[str]
) -> None:
    """Refuse what a layout cannot hold, before anything is written.

    Raises
    ------
    CaseError
        nnU-Net: several sets of masks that are not fused, labels that are not 1, 2, 3 ..., or
        cases of different numbers of phases; BIDS: two names that become one; challenge: no label
        1.
    """
    if ExportFormat.NNUNET in settings.formats:
        _require_nnunet(settings, names)
        n_channels(data_set, settings, cases)
    if ExportFormat.BIDS in settings.formats:
        _require_distinct(cases, names)
    if ExportFormat.CHALLENGE in settings.formats and 1 not in dict(label_names(settings)):
        raise CaseError(
            "the challenge counts label 1 as tumour, but no rule leads to 1: map the tumour to 1"
        )


def n_channels(data_set: DataSet, settings: ExportSettings, cases: Sequence[str]) -> int:
    """Return how many phases each case gives to nnU-Net.

    Raises
    ------
    CaseError
        If the cases differ and no number is chosen, or a case has fewer than that.
    """
    known = data_set.by_id()
    counts = {case_id: len(known[case_id].phases) for case_id in cases if case_id in known}
    least = min(counts.values(), default=0)
    wanted = settings.n_channels
    if wanted is None and len(set(counts.values())) > 1:
        most = max(counts, key=lambda case_id: counts[case_id])
        few = min(counts, key=lambda case_id: counts[case_id])
        raise CaseError(
            f"nnU-Net needs one number of channels, but {few} has {least} phases and {most} has "
            f"{counts[most]}: choose how many phases it gets, such as --channels {least}"
        )
    if wanted is not None and not 1 <= wanted <= least:
        raise CaseError(
            f"expected 1 to {least} channels (the case with the fewest phases has {least}), got "
            f"{wanted}: choose fewer, or leave out the cases with few phases"
        )
    return wanted or least


def write_nnunet(
    writer: CaseWriter,
    data_set: DataSet,
    settings: ExportSettings,
    turn: Reorientation,
    mask: DrawnMask,
    case: Case,
    channels: int,
) -> None:
    """Write ``nnunet/DatasetNNN_Name/imagesTr/ID_000k.nii.gz``.

    The label goes to ``labelsTr/ID.nii.gz``.
    """
    folder = _nnunet_root(writer.root, data_set, settings)
    case_id = writer.case_id
    for k in range(channels):
        report_progress(k, channels, f"Writing phase {k} for nnU-Net")
        path = folder / "imagesTr" / f"{case_id}_{k:04d}.nii.gz"
        writer.volume(turn.array(case.signal[k]), turn.target, path, "image")
    path = folder / "labelsTr" / f"{case_id}.nii.gz"
    writer.volume(turn.array(mask.labels), turn.target, path, "mask", mask.name)


def write_bids(writer: CaseWriter, drawn: Sequence[DrawnMask]) -> None:
    """Write ``bids/sub-ID/anat/sub-ID_space-orig_desc-SET_dseg.nii.gz``.

    What BIDS asks of a mask, and its provenance, stand beside each.
    """
    for mask in drawn:
        path = writer.root / "bids" / f"{bids_stem(writer.case_id, mask.name)}.nii.gz"
        facts = bids_facts(mask.name, mask.provenance.maker)
        writer.mask(mask, mask.labels, mask.grid, path, facts)


def write_challenge(writer: CaseWriter, drawn: Sequence[DrawnMask], n_sets: int) -> None:
    """Write ``challenge/pred_segmentations/ID.nii.gz``.

    Voxels are uint8, 1 where the label is 1, else 0. With several sets of masks each has a folder
    of its name between.
    """
    for mask in drawn:
        folder = _challenge_root(writer.root, mask.name, n_sets)
        tumour = (mask.labels == 1).view(np.uint8)
        path = folder / _PREDICTIONS / f"{writer.case_id}.nii.gz"
        writer.volume(tumour, mask.grid, path, "mask", mask.name)


def finish_formats(
    root: Path,
    data_set: DataSet,
    settings: ExportSettings,
    names: Sequence[str],
    cases: Sequence[BundleFile],
    channels: int,
    *,
    overwrite: bool,
) -> tuple[BundleFile, ...]:
    """Write what describes or packs all cases; `cases` are the files of all of them.

    Without any, nothing: an empty submission would be taken for one.
    """
    if not cases:
        return ()
    out: list[BundleFile] = []
    if ExportFormat.NNUNET in settings.formats:
        folder = _nnunet_root(root, data_set, settings)
        n_cases = sum("/labelsTr/" in file.name for file in cases)
        labels = label_names(settings)
        path = write_nnunet_description(folder, labels, channels, n_cases, overwrite=overwrite)
        out.append(describe_file(root, path, "other"))
    if ExportFormat.BIDS in settings.formats:
        described = write_bids_description(
            root / "bids",
            public_name(data_set),
            software_version(),
            label_names(settings),
            overwrite=overwrite,
        )
        out += [describe_file(root, path, "other") for path in described]
    if ExportFormat.CHALLENGE in settings.formats:
        out += [_packed(root, name, len(names), cases, overwrite) for name in names]
    return tuple(out)


def _packed(
    root: Path, name: str, n_sets: int, cases: Sequence[BundleFile], overwrite: bool
) -> BundleFile:
    folder = _challenge_root(root, name, n_sets)
    inside = (folder / _PREDICTIONS).relative_to(root).as_posix() + "/"
    files = [
        (f"{_PREDICTIONS}/{file.name.removeprefix(inside)}", root / file.name)
        for file in cases
        if file.name.startswith(inside)
    ]
    write_zip(files, folder / _ZIP, overwrite=overwrite)
    return describe_file(root, folder / _ZIP, "archive", masks=name)


def _nnunet_root(root: Path, data_set: DataSet, settings: ExportSettings) -> Path:
    return root / "nnunet" / nnunet_folder(settings.dataset_number, public_name(data_set))


def _challenge_root(root: Path, name: str, n_sets: int) -> Path:
    return root / _CHALLENGE if n_sets == 1 else root / _CHALLENGE / name


def _require_nnunet(settings: ExportSettings, names: Sequence[str]) -> None:
    nnunet_folder(settings.dataset_number, "x")
    if len(names) > 1 and settings.fuse is FuseRule.NONE:
        raise CaseError(
            f"nnU-Net trains on one mask of each case, got {len(names)} sets "
            f"({', '.join(names)}): choose one, or fuse them with --fuse majority"
        )
    values = [value for value, _ in label_names(settings)]
    if values != list(range(1, len(values) + 1)):
        raise CaseError(
            f"nnU-Net numbers its labels 1, 2, 3 ..., but the label map leads to "
            f"{', '.join(map(str, values))}: change the targets"
        )
    titles = [name for _, name in label_names(settings)]
    if len({"background", *titles}) <= len(titles):
        raise CaseError(
            f"nnU-Net knows its labels by name, and calls 0 background, but the label map has "
            f"{', '.join(map(repr, titles))}: give each target a name of its own"
        )


def _require_distinct(cases: Sequence[str], names: Sequence[str]) -> None:
    seen: dict[str, str] = {}
    for case_id, name in product(cases, names):
        stem, own = bids_stem(case_id, name), f"{case_id} of {name}"
        other = seen.setdefault(stem.lower(), own)
        if other != own:
            raise CaseError(
                f"BIDS names hold letters and digits only, and the masks {other} and {own} would "
                f"both be {stem}: rename a case or a set of masks"
            )
