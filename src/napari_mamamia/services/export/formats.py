"""The table of export formats for commands, window, library, verification and documentation.

This module writes three formats: the challenge submission, nnU-Net raw and BIDS derivatives.

A new format needs a name in `core.choices.ExportFormat`, a module with its `FormatSpec`, and a line
in `EXPORT_FORMATS`. Another package can add a format with an entry point in the group
`napari_mamamia.export_formats`.
"""

from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import Final

import numpy as np

from napari_mamamia.annotations.harmonise import harmonised
from napari_mamamia.core import open_choices
from napari_mamamia.core.choices import ExportFormat, FuseRule
from napari_mamamia.core.errors import CaseError, Remedy
from napari_mamamia.core.plugins import Registry
from napari_mamamia.core.progress import report_progress
from napari_mamamia.core.provenance import software_version
from napari_mamamia.io.data_set import export_layouts
from napari_mamamia.io.data_set.bundle import BundleFile, describe_file
from napari_mamamia.io.files.sources import CaseFiles
from napari_mamamia.services.export.format_spec import (
    CaseWork,
    CaseWriter,
    DoneCase,
    ExportPlan,
    ExportSelection,
    FormatSpec,
    files_of,
)
from napari_mamamia.services.export.nifti import NIFTI
from napari_mamamia.services.export.plan import ExportSettings, label_names, public_name
from napari_mamamia.services.export.seg import DICOM_SEG
from napari_mamamia.services.export.slicer import SLICER

_CHALLENGE: Final = "challenge"
_PREDICTIONS: Final = "pred_segmentations"
"""Folder that the challenge's scripts read (MAMA-MIA challenge, sample submission).

Its files are ``<output_dir>/pred_segmentations/<patient_id>.nii.gz``.
"""
_ZIP: Final = "submission.zip"


def n_channels(plan: ExportPlan) -> int:
    """Return the number of phases per case for nnU-Net.

    Raises
    ------
    CaseError
        If cases have different numbers of phases and no number is chosen, or a case has too few
        phases.
    """
    by_id = plan.data_set.by_id()
    counts = {case_id: len(by_id[case_id].phases) for case_id in plan.cases if case_id in by_id}
    least = min(counts.values(), default=0)
    n_phases = plan.settings.n_channels
    if n_phases is None and len(set(counts.values())) > 1:
        most = max(counts, key=lambda case_id: counts[case_id])
        few = min(counts, key=lambda case_id: counts[case_id])
        raise CaseError(
            f"expected all cases to have the same number of phases for nnU-Net, but {few} has "
            f"{least} and {most} has {counts[most]}: choose the number of phases to write",
            remedies=(Remedy("channels", (f"{least}",)),),
        )
    if n_phases is not None and not 1 <= n_phases <= least:
        raise CaseError(
            f"expected 1 to {least} channels (the case with the fewest phases has {least}), but "
            f"got {n_phases}: choose fewer, or omit the cases with few phases"
        )
    return n_phases or least


def _write_nnunet(work: CaseWork, writer: CaseWriter) -> None:
    """Write ``nnunet/DatasetNNN_Name/imagesTr/ID_000k.nii.gz``.

    The label, from the only or the fused mask, is written to ``labelsTr/ID.nii.gz``.
    """
    if work.case is None:
        return
    settings = work.plan.settings
    folder = _nnunet_root(writer.root, work.plan)
    turn = harmonised(work.grid, settings.profile)
    case_id = writer.case_id
    channels = settings.n_channels or len(work.case.phases)
    for k in range(channels):
        report_progress(k, channels, f"Writing phase {k} for nnU-Net")
        path = folder / "imagesTr" / f"{case_id}_{k:04d}.nii.gz"
        writer.volume(turn.array(work.case.signal[k]), turn.target, path, "image")
    mask = work.drawn[-1]
    path = folder / "labelsTr" / f"{case_id}.nii.gz"
    writer.volume(turn.array(mask.labels), turn.target, path, "mask", mask.name)


def _finish_nnunet(plan: ExportPlan, done: Sequence[DoneCase]) -> tuple[BundleFile, ...]:
    folder = _nnunet_root(plan.out, plan)
    n_cases = sum("/labelsTr/" in file.name for file in files_of(done))
    path = export_layouts.write_nnunet_description(
        folder, label_names(plan.settings), n_channels(plan), n_cases, overwrite=plan.replacing
    )
    return (describe_file(plan.out, path, "other"),)


def _write_bids(work: CaseWork, writer: CaseWriter) -> None:
    """Write ``bids/sub-ID/anat/sub-ID_space-orig_desc-SET_dseg.nii.gz``.

    The fields that BIDS requires and the mask's provenance are written to a file next to each mask.
    """
    for mask in work.drawn:
        path = writer.root / "bids" / f"{export_layouts.bids_stem(work.files, mask.name)}.nii.gz"
        facts = export_layouts.bids_facts(mask.name, mask.provenance.maker)
        writer.mask(mask, mask.labels, mask.grid, path, facts)


def _finish_bids(plan: ExportPlan, done: Sequence[DoneCase]) -> tuple[BundleFile, ...]:
    del done
    paths = export_layouts.write_bids_description(
        plan.out / "bids",
        public_name(plan.data_set),
        software_version(),
        label_names(plan.settings),
        overwrite=plan.replacing,
    )
    return tuple(describe_file(plan.out, path, "other") for path in paths)


def _write_challenge(work: CaseWork, writer: CaseWriter) -> None:
    """Write ``challenge/pred_segmentations/ID.nii.gz``.

    Voxels are uint8: 1 if the label is 1, or 0 otherwise. With several mask sets, each set has a
    subfolder named after it.
    """
    for mask in work.drawn:
        folder = _challenge_root(writer.root, mask.name, len(work.plan.names))
        tumour = (mask.labels == 1).view(np.uint8)
        path = folder / _PREDICTIONS / f"{writer.case_id}.nii.gz"
        writer.volume(tumour, mask.grid, path, "mask", mask.name)


def _finish_challenge(plan: ExportPlan, done: Sequence[DoneCase]) -> tuple[BundleFile, ...]:
    return tuple(_pack_set(plan, name, files_of(done)) for name in plan.names)


def _dropped_labels(work: CaseWork) -> Iterator[str]:
    """Yield a sentence about labels that the challenge's files cannot represent."""
    for mask in work.drawn:
        n_voxels = int((mask.labels > 1).sum())
        if n_voxels:
            yield (
                f"the challenge's file for {work.files.case_id} contains only label 1, so "
                f"{n_voxels} voxels with other labels in {mask.name} become background; if they "
                "are also tumour, map these labels to 1"
            )


def _require_tumour(plan: ExportPlan) -> None:
    if 1 not in dict(label_names(plan.settings)):
        raise CaseError(
            "expected a label rule with target 1 (the tumour in the challenge), but there is "
            "none: map the tumour to 1"
        )


def _pack_set(plan: ExportPlan, name: str, cases: Sequence[BundleFile]) -> BundleFile:
    root = plan.out
    folder = _challenge_root(root, name, len(plan.names))
    inside = (folder / _PREDICTIONS).relative_to(root).as_posix() + "/"
    files = [
        (f"{_PREDICTIONS}/{file.name.removeprefix(inside)}", root / file.name)
        for file in cases
        if file.name.startswith(inside)
    ]
    export_layouts.write_zip(files, folder / _ZIP, overwrite=plan.replacing)
    return describe_file(root, folder / _ZIP, "archive", masks=name)


def _nnunet_root(root: Path, plan: ExportPlan) -> Path:
    name = export_layouts.nnunet_folder(plan.settings.dataset_number, public_name(plan.data_set))
    return root / "nnunet" / name


def _challenge_root(root: Path, name: str, n_sets: int) -> Path:
    return root / _CHALLENGE if n_sets == 1 else root / _CHALLENGE / name


def _require_nnunet(plan: ExportPlan) -> None:
    settings, names = plan.settings, plan.names
    export_layouts.nnunet_folder(settings.dataset_number, "x")
    if len(names) > 1 and settings.fuse is FuseRule.NONE:
        raise CaseError(
            f"expected one mask per case for nnU-Net, but got {len(names)} sets "
            f"({', '.join(names)}): choose one, or fuse them",
            remedies=(Remedy("fuse", ("majority",)),),
        )
    values = [value for value, _ in label_names(settings)]
    if values != list(range(1, len(values) + 1)):
        raise CaseError(
            "expected the labels for nnU-Net to be 1, 2, 3 and so on, but the label map has the "
            f"targets {', '.join(map(str, values))}: change the targets"
        )
    titles = [name for _, name in label_names(settings)]
    if len({"background", *titles}) <= len(titles):
        raise CaseError(
            "expected the labels for nnU-Net to have different names, none of them background, "
            f"but the label map has {', '.join(map(repr, titles))}: give each target its own name"
        )
    n_channels(plan)


def _one_mask_of_each_case(selection: ExportSelection) -> str:
    if selection.n_sets > 1 and selection.settings.fuse is FuseRule.NONE:
        return "nnU-Net needs one mask per case: choose one set, or fuse them."
    return ""


def _require_distinct(plan: ExportPlan) -> None:
    seen: dict[str, str] = {}
    by_id = plan.data_set.by_id()
    for case_id, name in product(plan.cases, plan.names):
        files = by_id.get(case_id) or CaseFiles(case_id, ())
        stem, owner = export_layouts.bids_stem(files, name), f"{case_id} of {name}"
        other = seen.setdefault(stem.lower(), owner)
        if other != owner:
            raise CaseError(
                f"BIDS names contain only letters and digits, so the masks {other} and {owner} "
                f"would both be named {stem}: rename a case or a mask set"
            )


CHALLENGE: Final = FormatSpec(
    title="challenge zip",
    tip="submission.zip with pred_segmentations/ID.nii.gz",
    purpose="the zip that the challenge accepts",
    folders=(_CHALLENGE,),
    describe=lambda _: ("challenge/submission.zip",),
    write=_write_challenge,
    require=_require_tumour,
    finish=_finish_challenge,
    notes=_dropped_labels,
    needs_right_angles=True,
)
NNUNET: Final = FormatSpec(
    title="nnU-Net",
    tip="Raw training layout: imagesTr, labelsTr, dataset.json",
    purpose="training nnU-Net",
    folders=("nnunet",),
    describe=lambda _: ("nnunet/Dataset501_…: images, labels, dataset.json",),
    write=_write_nnunet,
    problem=_one_mask_of_each_case,
    require=_require_nnunet,
    finish=_finish_nnunet,
    turned=("nnunet",),
    needs_images=True,
    needs_right_angles=True,
)
BIDS: Final = FormatSpec(
    title="BIDS",
    tip="Names of BIDS derivatives: sub-ID/anat/…_dseg.nii.gz",
    purpose="BIDS derivatives",
    folders=("bids",),
    describe=lambda _: ("bids/sub-ID/anat/…_dseg.nii.gz",),
    write=_write_bids,
    require=_require_distinct,
    finish=_finish_bids,
)

EXPORT_FORMATS: Final = Registry(
    open_choices.EXPORT_FORMATS.group,
    FormatSpec,
    MappingProxyType(
        {
            ExportFormat.NIFTI: NIFTI,
            ExportFormat.DICOM_SEG: DICOM_SEG,
            ExportFormat.CHALLENGE: CHALLENGE,
            ExportFormat.NNUNET: NNUNET,
            ExportFormat.BIDS: BIDS,
            ExportFormat.SLICER: SLICER,
        }
    ),
)
"""The built-in formats, followed by the formats of installed packages."""


def formats_of(settings: ExportSettings) -> tuple[FormatSpec, ...]:
    """Return each format of an export once, in the order of the table.

    Raises
    ------
    CaseError
        If a format does not exist, for example because its plug-in could not be loaded.
    """
    absent = [name for name in settings.formats if name not in EXPORT_FORMATS]
    if absent:
        raise CaseError(
            f"expected export formats from {', '.join(EXPORT_FORMATS)}, but got "
            f"{', '.join(absent)}: these are unknown, or their package cannot be loaded"
        )
    return tuple(spec for name, spec in EXPORT_FORMATS.items() if name in settings.formats)
