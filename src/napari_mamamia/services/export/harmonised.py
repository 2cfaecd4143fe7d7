"""A case on the harmonised grid: masks, images, boxes and lesions, all turned alike."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import Case
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.progress import report_progress
from napari_mamamia.core.reorientation import Reorientation
from napari_mamamia.io.data_set.moved_info import write_moved_info
from napari_mamamia.io.data_set.patient_info import read_patient_info
from napari_mamamia.io.files.sources import CaseFiles
from napari_mamamia.io.tables.tables import write_json
from napari_mamamia.services.export.masks import DrawnMask
from napari_mamamia.services.export.writer import CaseWriter

HARMONISED: Final = "harmonised"
_TOUCHING: Final = np.ones((3, 3, 3), dtype=np.bool_)


@dataclass(frozen=True, slots=True)
class _Lesion:
    """A 26-connected part of one label: boxes are half-open (z, y, x) blocks of the two arrays."""

    masks: str
    label: int
    n_voxels: int
    box_harmonised: tuple[tuple[int, ...], tuple[int, ...]]
    box_native: tuple[tuple[int, ...], tuple[int, ...]]
    centre_harmonised_zyx: tuple[float, ...]
    centre_native_zyx: tuple[float, ...]
    centre_ras_mm: tuple[float, ...]


def write_harmonised(
    writer: CaseWriter,
    files: CaseFiles,
    turn: Reorientation,
    drawn: Sequence[DrawnMask],
    case: Case | None,
) -> None:
    """Write one case below ``harmonised/`` in the MAMA-MIA layout.

    ``segmentations/SET/ID.nii.gz``, with `case` also ``images/ID/ID_000k.nii.gz``;
    ``coordinates/ID.json`` says how the volume was turned and where breast box and lesions lie in
    both arrays; where the data set has a patient file, ``patient_info_files/ID.json`` has its boxes
    moved along.
    """
    root, case_id = writer.root / HARMONISED, writer.case_id
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
    write_json(_coordinates(case_id, turn, drawn, breast), path)
    writer.record(path, "coordinates")


def _coordinates(
    case_id: str, turn: Reorientation, drawn: Sequence[DrawnMask], breast: Box | None
) -> dict[str, object]:
    return {
        "case_id": case_id,
        "axes": "arrays are (z, y, x); boxes are half-open; letters name what x, y, z run towards",
        "orientation_native": turn.source.orientation,
        "orientation_harmonised": turn.target.orientation,
        "order": turn.order,
        "flips": turn.flips,
        "affine_native": turn.source.affine,
        "affine_harmonised": turn.target.affine,
        "breast_box_native": None if breast is None else _corners(breast),
        "breast_box_harmonised": None if breast is None else _corners(turn.box(breast)),
        "lesions": [lesion for mask in drawn for lesion in _lesions(mask, turn)],
    }


def _lesions(mask: DrawnMask, turn: Reorientation) -> list[_Lesion]:
    """Return the connected parts of each label, largest first."""
    around = Box.around(mask.labels)
    if around.is_empty:
        return []
    crop = mask.labels[around.slices]
    found: list[_Lesion] = []
    for label in (int(v) for v in np.unique(crop) if v):
        parts, n_parts = ndimage.label(crop == label, _TOUCHING)
        sizes = np.bincount(parts.ravel(), minlength=n_parts + 1)
        places = ndimage.find_objects(parts)
        centres = ndimage.center_of_mass(parts > 0, parts, range(1, n_parts + 1))
        order = np.argsort(-sizes[1:], kind="stable")
        for k in order:
            where = (int(sizes[k + 1]), places[k], centres[k])
            found.append(_lesion(mask.name, label, around, where, turn))
    return found


def _lesion(
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
        _corners(turn.box(native)),
        _corners(native),
        turn.point(middle),
        middle,
        _world(turn.source, middle),
    )


def _world(grid: Grid, point: tuple[float, ...]) -> tuple[float, ...]:
    place: NDArray[np.float64] = grid.to_world_mm(point)
    return tuple(float(mm) for mm in place)


def _corners(box: Box) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return box.start, box.stop
