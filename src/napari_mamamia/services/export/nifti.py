"""The NIfTI format: masks and images on the case's own grid and on the harmonised grid."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from napari_mamamia.annotations.harmonise import harmonised
from napari_mamamia.core.box import Box
from napari_mamamia.core.case import Case
from napari_mamamia.core.choices import FuseRule, OrientationProfile
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.names import count_of
from napari_mamamia.core.progress import report_progress
from napari_mamamia.core.reorientation import Reorientation
from napari_mamamia.io.data_set.bundle import BundleFile, describe_file
from napari_mamamia.io.data_set.export_layouts import EXAMS_FILE, write_exams
from napari_mamamia.io.data_set.moved_info import write_moved_info
from napari_mamamia.io.data_set.patient_info import TIMES_FILE, read_patient_info
from napari_mamamia.io.files.sources import CaseFiles
from napari_mamamia.io.tables.tables import write_json
from napari_mamamia.services.export.format_spec import (
    CaseWork,
    CaseWriter,
    DoneCase,
    ExportPlan,
    ExportSelection,
    FormatSpec,
)
from napari_mamamia.services.export.plan import DrawnMask

_HARMONISED: Final = "harmonised"
_LETTERS: Final = {
    OrientationProfile.LAS_PSR: "LAS (axial) or PSR (sagittal)",
    OrientationProfile.RAS: "RAS",
    OrientationProfile.LPS: "LPS",
}
_TOUCHING: Final = np.ones((3, 3, 3), dtype=np.bool_)


@dataclass(frozen=True, slots=True)
class _Lesion:
    """A 26-connected component of a label, with its half-open (z, y, x) boxes in both arrays."""

    masks: str
    label: int
    n_voxels: int
    box_harmonised: tuple[tuple[int, ...], tuple[int, ...]]
    box_native: tuple[tuple[int, ...], tuple[int, ...]]
    centre_harmonised_zyx: tuple[float, ...]
    centre_native_zyx: tuple[float, ...]
    centre_ras_mm: tuple[float, ...]


def _write_harmonised(
    writer: CaseWriter,
    files: CaseFiles,
    turn: Reorientation,
    drawn: Sequence[DrawnMask],
    case: Case | None,
) -> None:
    """Write one case below ``harmonised/`` in the MAMA-MIA layout.

    Masks are written to ``segmentations/SET/ID.nii.gz`` and, if `case` is given, phases to
    ``images/ID/ID_000k.nii.gz``. ``coordinates/ID.json`` has the reorientation, and the breast box
    and lesions in the original and the harmonised array. If the data set has a patient file,
    ``patient_info_files/ID.json`` has its boxes in the harmonised array.
    """
    root, case_id = writer.root / _HARMONISED, writer.case_id
    report_progress(0, 1, "Writing, harmonised")
    for mask in drawn:
        path = root / "segmentations" / mask.name / f"{case_id}.nii.gz"
        writer.mask(mask, turn.array(mask.labels), turn.target, path)
    if case is not None:
        for k, volume in enumerate(case.signal):
            report_progress(k, len(case.phases), f"Writing phase {k}, harmonised")
            path = root / "images" / case_id / f"{case_id}_{k:04d}.nii.gz"
            writer.volume(turn.array(volume), turn.target, path, "image")
    breast = None
    if files.info is not None:
        breast = read_patient_info(files.info).breast_box
        path = root / "patient_info_files" / f"{case_id}.json"
        write_moved_info(files.info, turn, path)
        writer.record(path, "coordinates")
    path = root / "coordinates" / f"{case_id}.json"
    write_json(_list_coordinates(case_id, turn, drawn, breast), path)
    writer.record(path, "coordinates")


def _list_coordinates(
    case_id: str, turn: Reorientation, drawn: Sequence[DrawnMask], breast: Box | None
) -> dict[str, object]:
    return {
        "case_id": case_id,
        "axes": (
            "arrays are (z, y, x); boxes are half-open; letters give the directions in which "
            "x, y, z increase"
        ),
        "orientation_native": turn.source.orientation,
        "orientation_harmonised": turn.target.orientation,
        "order": turn.order,
        "flips": turn.flips,
        "affine_native": turn.source.affine,
        "affine_harmonised": turn.target.affine,
        "breast_box_native": None if breast is None else _to_corners(breast),
        "breast_box_harmonised": None if breast is None else _to_corners(turn.box(breast)),
        "lesions": [lesion for mask in drawn for lesion in _find_lesions(mask, turn)],
    }


def _find_lesions(mask: DrawnMask, turn: Reorientation) -> list[_Lesion]:
    around = Box.around(mask.labels)
    if around.is_empty:
        return []
    crop = mask.labels[around.slices]
    lesions: list[_Lesion] = []
    for label in (int(v) for v in np.unique(crop) if v):
        parts, n_parts = ndimage.label(crop == label, _TOUCHING)
        sizes = np.bincount(parts.ravel(), minlength=n_parts + 1)
        places = ndimage.find_objects(parts)
        centres = ndimage.center_of_mass(parts > 0, parts, range(1, n_parts + 1))
        order = np.argsort(-sizes[1:], kind="stable")
        for k in order:
            where = (int(sizes[k + 1]), places[k], centres[k])
            lesions.append(_measure_lesion(mask.name, label, around, where, turn))
    return lesions


def _measure_lesion(
    masks: str, label: int, around: Box, where: tuple[int, Any, Any], turn: Reorientation
) -> _Lesion:
    n_voxels, place, centre = where
    offsets = around.start
    start = [int(side.start) + o for side, o in zip(place, offsets, strict=True)]
    stop = [int(side.stop) + o for side, o in zip(place, offsets, strict=True)]
    native = Box((start[0], start[1], start[2]), (stop[0], stop[1], stop[2]))
    middle = tuple(float(c) + o for c, o in zip(centre, offsets, strict=True))
    return _Lesion(
        masks,
        label,
        n_voxels,
        _to_corners(turn.box(native)),
        _to_corners(native),
        turn.point(middle),
        middle,
        _to_world(turn.source, middle),
    )


def _to_world(grid: Grid, point: tuple[float, ...]) -> tuple[float, ...]:
    place: NDArray[np.float64] = grid.to_world_mm(point)
    return tuple(float(mm) for mm in place)


def _to_corners(box: Box) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return box.start, box.stop


def _describe_nifti(selection: ExportSelection) -> list[str]:
    settings = selection.settings
    folder = "masks/NAME/" if selection.n_sets > 1 or settings.fuse is not FuseRule.NONE else ""
    lines = [
        (
            f"{count_of(selection.n_masks, 'mask')} as {folder}ID.nii.gz, on the grid of each "
            "case's image"
        )
    ]
    if settings.profile is not OrientationProfile.AS_IS:
        lines.append(
            f"harmonised/: the same masks in {_LETTERS[settings.profile]} orientation, with boxes"
        )
    if settings.with_images:
        lines.append("the images of these cases as ID_0000.nii.gz, ID_0001.nii.gz, …")
    return lines


def _write_nifti(work: CaseWork, writer: CaseWriter) -> None:
    settings = work.plan.settings
    images = work.case if settings.with_images else None
    _write_native(work, writer, images)
    if settings.profile is not OrientationProfile.AS_IS:
        turn = harmonised(work.grid, settings.profile)
        _write_harmonised(writer, work.files, turn, work.drawn, images)


def _write_native(work: CaseWork, writer: CaseWriter, case: Case | None) -> None:
    plan, root, case_id = work.plan, writer.root, writer.case_id
    report_progress(1, 2, "Writing masks")
    for mask in work.drawn:
        folder = root if len(plan.names) == 1 else root / "masks" / mask.name
        writer.mask(mask, mask.labels, mask.grid, folder / f"{case_id}.nii.gz")
    if case is not None and plan.settings.profile is OrientationProfile.AS_IS:
        for k, volume in enumerate(case.signal):
            report_progress(k, len(case.phases), f"Writing phase {k}")
            path = root / "images" / case_id / f"{case_id}_{k:04d}.nii.gz"
            writer.volume(volume, case.grid, path, "image")


def _describe_images(plan: ExportPlan, done: Sequence[DoneCase]) -> tuple[BundleFile, ...]:
    """Write ``times.json`` and ``exams.csv`` next to exported images.

    The images in a bundle can be opened as a data set. This data set has no clinical table with
    times, and its layout does not contain visits and sides.
    """
    settings = plan.settings
    if not settings.with_images:
        return ()
    turned = settings.profile is not OrientationProfile.AS_IS
    root = plan.out / _HARMONISED if turned else plan.out
    paths = []
    timed = [
        {"case_id": item.entry.case_id, "times_s": item.times_s}
        for item in done
        if item.times_s and None not in item.times_s
    ]
    if timed:
        paths.append(root / TIMES_FILE)
        write_json(timed, paths[0], overwrite=plan.replacing)
    cases = [plan.data_set.case(item.entry.case_id) for item in done]
    if write_exams(cases, root / EXAMS_FILE, overwrite=plan.replacing):
        paths.append(root / EXAMS_FILE)
    return tuple(describe_file(plan.out, path, "other") for path in paths)


NIFTI: Final = FormatSpec(
    title="NIfTI",
    tip="One file ID.nii.gz for each mask, on the image's own grid",
    purpose="all software that reads NIfTI; the image's exact grid",
    folders=("masks", "images", _HARMONISED),
    describe=_describe_nifti,
    write=_write_nifti,
    finish=_describe_images,
    turned=(_HARMONISED,),
)
