"""Data displayed with an open case in addition to its phases: masks, scores and subtractions."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import Case, LabelMap, Mask
from napari_mamamia.core.errors import FormatError, MamamiaError
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.progress import report_progress
from napari_mamamia.core.provenance import Provenance
from napari_mamamia.core.records import CaseScore
from napari_mamamia.io.files.sources import CaseFiles
from napari_mamamia.io.workspace.provenance import read_provenance, sidecar_path
from napari_mamamia.io.workspace.workspace import FileState, Workspace
from napari_mamamia.kinetics.map_blocks import subtraction
from napari_mamamia.scoring.case.profiles import CLINICAL, Profile
from napari_mamamia.scoring.case.score import foreground_volume_mm3, score_label_maps
from napari_mamamia.segmentation.model.segmenter import Candidate, Prediction
from napari_mamamia.services.case.blinding import blind_reading, require_blind
from napari_mamamia.services.case.open_case import load_mask, load_reference
from napari_mamamia.services.case.refine import SavedMask, find_refined

_CANDIDATE: Final = "candidate_shown"
_MOST_PLACES: Final = 50
"""Maximum number of lesions that the user can navigate to, largest first."""
_SAMPLES: Final = 200_000
_MOST_LABELS: Final = 16
_DARK_PERCENT: Final = 1.0
_BRIGHT_PERCENT: Final = 99.7
"""Percentile of a volume displayed as white, which clips few voxels of fat and vessels. Our choice.
"""


@dataclass(frozen=True, slots=True)
class Counting:
    """The values of the displayed masks that count as tumour.

    `profile` and `label` apply to reference and prediction, as in the scoring of files. If
    `reference_label` is set, only this label of the reference counts, but every label of the other
    mask; the profile must then allow the choice of a label.
    """

    profile: Profile = CLINICAL
    label: float | None = None
    reference_label: float | None = None


AS_CLINICAL: Final = Counting()
"""All labels count, with the default profile."""

MaskValues: TypeAlias = LabelMap | NDArray[Any]
"""The raw values of a mask, from its file or as an edited array ``(z, y, x)``."""


@dataclass(frozen=True, slots=True, eq=False)
class OpenMask:
    """One mask of the open case; `name` is the name of the model or reader, or "expert".

    `buffer` is a writable uint8 array ``(z, y, x)`` of 0 and 1. `values` lists the distinct labels
    in the file. `saved` is the version of a reader's own mask on disk. `file` is the state of a
    prediction file before it was read.
    """

    role: str
    name: str
    labels: LabelMap
    buffer: NDArray[np.uint8]
    values: tuple[float, ...] = ()
    provenance: Provenance | None = None
    saved: SavedMask | None = None
    file: FileState | None = None


@dataclass(frozen=True, slots=True, eq=False)
class CaseMasks:
    """The masks of a case, and sentences about masks that could not be shown."""

    masks: tuple[OpenMask, ...]
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Difference:
    """Signed difference `phase` minus `minus`, float32 ``(z, y, x)``, with a window/level."""

    phase: int
    array: NDArray[np.float32]
    limits: tuple[float, float]
    minus: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class ShownScores:
    """Scores against the reference and volumes in mm3, by role ("prediction", "refined").

    `profile` is the name of the scoring profile. `grid_warning` states that distances in mm are not
    reliable, or is empty.
    """

    scores: Mapping[str, CaseScore]
    volumes_mm3: Mapping[str, float]
    volume_reference_mm3: float | None
    profile: str = CLINICAL.name
    grid_warning: str = ""


def open_masks(case: Case, files: CaseFiles, workspace: Workspace, reader: str | None) -> CaseMasks:
    """Read the reference, the newest prediction and the reader's own mask.

    Masks that the workspace's blinding hides are not read. The same applies to a mask that the
    reader drew while they were visible. A mask that is damaged or on a different grid is reported
    as a problem, and the case opens without it.
    """
    masks: list[OpenMask] = []
    problems: list[str] = []
    sources = _list_sources(files, workspace, reader)
    for index, (role, name, path) in enumerate(sources):
        report_progress(index, len(sources), f"Reading the {role} mask")
        try:
            mask = _open_mask(role, name, path, case, files, workspace)
            if role == "refined":
                reading = blind_reading(mask.provenance)
                require_blind(workspace.blinding, reading, name, case.case_id)
            masks.append(mask)
        except MamamiaError as error:
            problems.append(f"the {role} mask cannot be shown: {error}")
    return CaseMasks(tuple(masks), tuple(problems))


def newer_prediction(case: Case, workspace: Workspace, shown: FileState | None) -> OpenMask | None:
    """Read the newest prediction if its file differs from the state `shown`.

    Raises
    ------
    MamamiaError
        If the file is damaged or on a different grid.
    """
    report_progress(0, 1, "Looking for a newer prediction")
    newest = workspace.newest_prediction(case.case_id)
    if newest is None or newest[1] == shown:
        return None
    return _open_mask("prediction", newest[0], newest[1].path, case, None, workspace)


def uint8_mask(labels: LabelMap, value: float | None = None) -> NDArray[np.uint8]:
    """Return a mask ``(z, y, x)`` of 0 and 1 for the label `value`; None selects all foreground."""
    buffer = np.zeros(labels.grid.shape, dtype=np.uint8)
    buffer[labels.box.slices] = labels.foreground(value)
    return buffer


def display_range(volume: NDArray[Any]) -> tuple[float, float]:
    """Return the values displayed as black and white, as robust percentiles of a sample.

    Values that are not finite are ignored; for a constant volume, white is 1 above black.
    """
    step = max(1, round((volume.size / _SAMPLES) ** (1 / 3)))
    sample = volume[::step, ::step, ::step].astype(np.float32)
    sample = sample[np.isfinite(sample)]
    if sample.size == 0:
        return (0.0, 1.0)
    dark, bright = np.percentile(sample, (_DARK_PERCENT, _BRIGHT_PERCENT))
    return (float(dark), float(bright) if bright > dark else float(dark) + 1.0)


def looks_like_mask(volume: NDArray[Any]) -> bool:
    """Return whether a volume looks like a mask: at most 16 distinct values, none negative."""
    if volume.dtype.kind not in "iub" or volume.size == 0:
        return False
    # A sample is checked first, because it identifies most images, and sorting all voxels would
    # take long.
    step = max(1, volume.size // _SAMPLES)
    if np.unique(volume.reshape(-1)[::step]).size > _MOST_LABELS:
        return False
    return bool(volume.min() >= 0) and np.unique(volume).size <= _MOST_LABELS


def centre_of_largest_part(mask: NDArray[Any], grid: Grid) -> tuple[int, int, int] | None:
    """Return the voxel (z, y, x) to navigate to in the largest connected component of `mask`.

    The voxel is the one closest to the component's centre on the slice (of the display) where the
    component is largest. The result is None for an empty mask.
    """
    box = Box.around(mask)
    if box.is_empty:
        return None
    parts, count = ndimage.label(mask[box.slices] != 0, structure=np.ones((3, 3, 3)))
    sizes = np.bincount(parts.ravel(), minlength=count + 1)
    voxels = np.argwhere(parts == 1 + int(np.argmax(sizes[1:])))
    z, y, x = (a + b for a, b in zip(middle_voxel(voxels, grid), box.start, strict=True))
    return (z, y, x)


@dataclass(frozen=True, slots=True)
class LesionPlace:
    """A lesion to navigate to; `missed_mm3` is its volume if the mask misses it, otherwise None."""

    voxel: tuple[int, int, int]
    missed_mm3: float | None = None


def lesion_places(
    mask: NDArray[Any] | None, reference: NDArray[Any] | None, grid: Grid
) -> tuple[LesionPlace, ...]:
    """Return the lesions of a mask, largest first, then the reference lesions that the mask misses.

    A lesion is a 26-connected component. It is missed if it has no voxel in common with the mask.
    """
    places = [LesionPlace(voxel) for voxel, _ in _list_parts(mask, None, grid)]
    for voxel, n_voxels in _list_parts(reference, mask, grid):
        places.append(LesionPlace(voxel, n_voxels * grid.voxel_volume_mm3))
    return tuple(places)


def _list_parts(
    mask: NDArray[Any] | None, other: NDArray[Any] | None, grid: Grid
) -> list[tuple[tuple[int, int, int], int]]:
    """Return the target voxel and the size of each component that does not overlap `other`."""
    box = Box.empty() if mask is None else Box.around(mask)
    if mask is None or box.is_empty:
        return []
    parts, count = ndimage.label(mask[box.slices] != 0, structure=np.ones((3, 3, 3)))
    sizes = np.bincount(parts.ravel(), minlength=count + 1)
    sizes[0] = 0
    if other is not None:
        sizes[np.unique(parts[other[box.slices] != 0])] = 0
    largest = [int(k) for k in np.argsort(-sizes, kind="stable")[:_MOST_PLACES] if sizes[k]]
    boxes = ndimage.find_objects(parts)
    listed = []
    for part in largest:
        around = boxes[part - 1]
        start = [axis.start + begin for axis, begin in zip(around, box.start, strict=True)]
        voxels = np.argwhere(parts[around] == part)
        z, y, x = (a + b for a, b in zip(middle_voxel(voxels, grid), start, strict=True))
        listed.append(((z, y, x), int(sizes[part])))
    return listed


def middle_voxel(voxels: NDArray[np.intp], grid: Grid) -> tuple[int, int, int]:
    """Return the voxel to navigate to in a region given as indices ``(n, 3)``, n at least 1.

    The voxel is the one closest to the region's centre on the slice (of the display) where the
    region is largest.
    """
    axis = grid.display_frame().order[0]
    busiest = int(np.argmax(np.bincount(voxels[:, axis])))
    there = voxels[voxels[:, axis] == busiest]
    z, y, x = there[np.argmin(((there - there.mean(axis=0)) ** 2).sum(axis=1))]
    return (int(z), int(y), int(x))


def subtract_phases(case: Case, phase: int, minus: int = 0) -> Difference:
    """Compute the signed difference `phase` minus `minus`.

    The display range starts at 0, so tissue that does not enhance is black.
    """
    array = subtraction(case.signal, phase, minus)
    _, bright = display_range(array)
    return Difference(phase, array, (0.0, max(bright, 1.0)), minus)


def _list_sources(
    files: CaseFiles, workspace: Workspace, reader: str | None
) -> list[tuple[str, str, Path]]:
    sources = [("reference", "expert", files.reference)] if files.reference else []
    stored = workspace.masks_of(files.case_id)
    newest = workspace.newest_prediction(files.case_id)
    if newest is not None:
        sources.append(("prediction", newest[0], newest[1].path))
    sources += [
        ("refined", mask.name, mask.path)
        for mask in stored
        if mask.role == "refined" and mask.name == reader
    ]
    return [(role, name, path) for role, name, path in sources if path is not None]


def _open_mask(
    role: str, name: str, path: Path, case: Case, files: CaseFiles | None, workspace: Workspace
) -> OpenMask:
    file = _state_of(path) if role == "prediction" else None
    files = files if role == "reference" else None
    labels = load_reference(path, files, case) if files else load_mask(path, case)
    sidecar = sidecar_path(path)
    provenance = read_provenance(sidecar) if role != "reference" and sidecar.exists() else None
    saved = find_refined(workspace, name, case.case_id) if role == "refined" else None
    return OpenMask(role, name, labels, uint8_mask(labels), labels.values, provenance, saved, file)


def _state_of(path: Path) -> FileState:
    try:
        return FileState.of(path)
    except OSError as error:
        raise FormatError(
            f"expected {path} to be a prediction, but {error.strerror or error}: the file existed "
            "when the case was listed; predict the case again"
        ) from error


def choose_candidate(prediction: Prediction, candidate: Candidate) -> Prediction:
    """Return `prediction` with a different candidate as its mask, recorded in the provenance.

    It remains marked as uncertain, because a candidate may be chosen only to look at it.
    """
    array = np.zeros(prediction.mask.grid.shape, dtype=np.bool_)
    array[candidate.box.slices] = candidate.crop
    provenance = prediction.mask.provenance
    if provenance is not None:
        others = tuple(pair for pair in provenance.parameters if pair[0] != _CANDIDATE)
        provenance = replace(provenance, parameters=(*others, (_CANDIDATE, candidate.rank)))
    return replace(prediction, mask=Mask(prediction.mask.grid, array, provenance))


def score_shown(
    case: Case,
    reference: MaskValues | None,
    shown: Mapping[str, MaskValues],
    counting: Counting = AS_CLINICAL,
) -> ShownScores:
    """Score each displayed mask against the reference, by role.

    Masks are raw values, and `counting` defines which values are tumour. The scores equal the
    scores of the files. Without a reference, only volumes are returned.
    """
    profile, label = counting.profile, counting.label
    scores: dict[str, CaseScore] = {}
    volumes: dict[str, float] = {}
    total = len(shown)
    expert = None if reference is None else reference_of(reference, case.grid, counting)
    for index, (role, values) in enumerate(shown.items()):
        report_progress(index, total, f"Scoring the {role} mask")
        mask = labels_of(values, case.grid)
        volumes[role] = foreground_volume_mm3(mask, profile, label)
        if expert is not None:
            scores[role] = score_label_maps(case.case_id, expert, mask, profile, label)
    report_progress(total, total)
    volume = None if expert is None else foreground_volume_mm3(expert, profile, label)
    return ShownScores(scores, volumes, volume, profile.name, case.grid.spacing_warning)


def labels_of(values: MaskValues, grid: Grid) -> LabelMap:
    """Return raw values as a label map; only the non-zero block of an array is copied."""
    return values if isinstance(values, LabelMap) else LabelMap.of(values, grid)


def reference_of(values: MaskValues, grid: Grid, counting: Counting) -> LabelMap:
    """Return the reference as a label map, with values 0 and 1 if one of its labels was chosen."""
    labels = labels_of(values, grid)
    if counting.reference_label is None:
        return labels
    return labels.only(counting.reference_label)
