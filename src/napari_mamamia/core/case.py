"""Classes that hold arrays on a `Grid`: `Case`, `Phase`, `Mask` and `LabelMap`."""

from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.blank import blank_array
from napari_mamamia.core.box import Box, box_of
from napari_mamamia.core.errors import (
    ArgumentError,
    CaseError,
    GridMismatchError,
    NotAMaskError,
)
from napari_mamamia.core.grid import SAME_PLACE_VOXELS, Grid, require_same_grid
from napari_mamamia.core.names import count_of
from napari_mamamia.core.provenance import Provenance
from napari_mamamia.core.reorientation import reorientation_to

if TYPE_CHECKING:
    from numpy.typing import DTypeLike


@dataclass(frozen=True, slots=True)
class Phase:
    """One time point of a case; phase 0 is pre-contrast, phase k is the k-th after contrast.

    `time_s` is the time in s after the start of phase 0, or None if unknown. `sources` are the
    files from which the phase was read; the tuple is empty for a phase made in memory. `loaded` is
    True if its part of the case's array is filled.
    """

    index: int
    time_s: float | None = None
    sources: tuple[Path, ...] = ()
    loaded: bool = True


@dataclass(frozen=True, slots=True)
class ScanTiming:
    """Timing of the scan in the headers, other than the phase times; None if not stated.

    Parameters
    ----------
    resolution_s
        The temporal resolution in s.
    positions
        The number of images in the header of a phase after contrast.
    injection_s
        The time from the start of phase 0 to the injection in s.
    """

    resolution_s: float | None = None
    positions: int | None = None
    injection_s: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """One DCE-MRI exam of one patient.

    Parameters
    ----------
    case_id
        The id, which is unique in the data set and is the stem of file names.
    grid
        The grid that all phases share.
    signal
        The signal ``(phase, z, y, x)`` in the files' integer type, or float32 if the file scales
        its values. While a case is opening, phases that are not `loaded` are still zero.
    phases
        One record for each phase in `signal`, in the same order.
    warnings
        Sentences for the user about unusual properties, such as a sheared affine.
    breast_box
        The box ``(z, y, x)`` of the breast with the primary lesion from the data set (MAMA-MIA's
        ``breast_coordinates``), or None.
    n_before
        The number of phases before contrast, which is above 1 if the scan was repeated.
    scan
        The timing from the headers of an imported case.
    contrast
        A sentence about the contrast detected in the voxels, or "" if it was not examined.
    frame_uid
        The identifier of the scanner's frame of reference, or "" if unknown. Exams with the same
        identifier have common coordinates in mm.

    Raises
    ------
    CaseError
        If shape, phases or grid contradict each other.
    """

    case_id: str
    grid: Grid
    signal: NDArray[Any]
    phases: tuple[Phase, ...]
    warnings: tuple[str, ...] = ()
    breast_box: Box | None = None
    n_before: int = 1
    contrast: str = ""
    scan: ScanTiming = ScanTiming()
    frame_uid: str = ""

    def __post_init__(self) -> None:
        if self.signal.ndim != 4 or self.signal.shape[1:] != self.grid.shape:
            raise CaseError(
                f"{self.case_id}: expected the signal to have the shape (phase, "
                f"{', '.join(map(str, self.grid.shape))}), but it has {self.signal.shape}"
            )
        if [phase.index for phase in self.phases] != list(range(self.signal.shape[0])):
            raise CaseError(f"the phases of {self.case_id} are not numbered 0, 1, 2, ... in order")

    @property
    def times_s(self) -> tuple[float | None, ...]:
        """The time of each phase in s after the start of phase 0, or None if unknown."""
        return tuple(phase.time_s for phase in self.phases)

    @property
    def is_loaded(self) -> bool:
        """Whether all phases have been read."""
        return all(phase.loaded for phase in self.phases)

    @property
    def is_verified(self) -> bool:
        """Whether the files of the loaded phases were read completely.

        A gzip file has its checksum at the end, but the first phase of a 4-D file is shown before
        the end is read.
        """
        read = {path for phase in self.phases if phase.loaded for path in phase.sources}
        waiting = {path for phase in self.phases if not phase.loaded for path in phase.sources}
        return not any(path.suffix.lower() == ".gz" for path in read & waiting)

    def require_phases(self, at_least: int) -> None:
        """Raise `CaseError` unless the case has `at_least` phases that have all been read."""
        if len(self.phases) < at_least:
            raise CaseError(
                f"expected {self.case_id} to have at least {count_of(at_least, 'phase')}, but it "
                f"has {len(self.phases)}: add the missing phases to the data set"
            )
        if not self.is_loaded:
            raise CaseError(
                f"expected all phases of {self.case_id} to be loaded, but the case is still "
                "opening: wait until it is open"
            )


@dataclass(frozen=True, slots=True, eq=False)
class Mask:
    """A binary volume on a grid; `array` is a read-only boolean array ``(z, y, x)``."""

    grid: Grid
    array: NDArray[np.bool_]
    provenance: Provenance | None = None

    def __post_init__(self) -> None:
        if self.array.dtype != np.bool_:
            raise ArgumentError(
                f"expected the mask to have the data type bool, but it has {self.array.dtype}: "
                "pass, for example,  Mask(grid, array == 1)"
            )
        if self.array.shape != self.grid.shape:
            raise GridMismatchError(
                f"expected the mask to have the shape {self.grid.shape} (z, y, x) of its grid, "
                f"but it has {self.array.shape}"
            )
        # The view is locked, not the array itself, because its owner may continue to write to it.
        view = self.array.view()
        view.setflags(write=False)
        object.__setattr__(self, "array", view)

    def __repr__(self) -> str:
        mm = " x ".join(f"{step:.3g}" for step in self.grid.spacing_mm)
        return (
            f"Mask({self.volume_mm3 / 1000:.3f} ml, {np.count_nonzero(self.array):,} voxels, "
            f"shape {self.array.shape} (z, y, x), {mm} mm)"
        )

    def __array__(self, dtype: "DTypeLike | None" = None, copy: bool | None = None) -> NDArray[Any]:
        """Return the voxels as a boolean array ``(z, y, x)`` for ``np.asarray(mask)``."""
        return np.array(self.array, dtype=dtype, copy=copy)

    def __and__(self, other: "Mask") -> "Mask":
        """Return the intersection of two masks; raise `GridMismatchError` if grids differ."""
        return self._join(other, np.logical_and)

    def __or__(self, other: "Mask") -> "Mask":
        """Return the union of both masks; raise `GridMismatchError` if their grids differ."""
        return self._join(other, np.logical_or)

    def __sub__(self, other: "Mask") -> "Mask":
        """Return the voxels in this mask only; raise `GridMismatchError` if grids differ."""
        return self._join(other, np.greater)

    def __invert__(self) -> "Mask":
        """Return the voxels outside the mask."""
        return Mask(self.grid, ~self.array)

    def sum(self) -> int:
        """Return the number of foreground voxels."""
        return int(np.count_nonzero(self.array))

    def _join(self, other: "Mask", join: np.ufunc) -> "Mask":
        if not isinstance(other, Mask):
            return NotImplemented
        require_same_grid(other.grid, self.grid, "one mask", "the other")
        return Mask(self.grid, join(self.array, other.array))

    @property
    def volume_mm3(self) -> float:
        """Number of voxels times the volume of one voxel, in mm3."""
        return int(np.count_nonzero(self.array)) * self.grid.voxel_volume_mm3


@dataclass(frozen=True, slots=True, eq=False)
class LabelMap:
    """The label values of a mask file, stored only for the block that contains them.

    `crop` has the values inside `box` in the file's data type; every voxel outside is 0. The box of
    an all-zero file is empty. A profile or the user defines the foreground values. `is_part` is
    True if the file stores only a region of its image, as DICOM SEG and 3D Slicer do; `grid` is
    then the grid of this region, and `on_grid` places it on the image. `warnings` come from the
    file's header.
    """

    grid: Grid
    box: Box
    crop: NDArray[Any]
    source: Path | None = None
    is_part: bool = False
    warnings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.crop.shape != self.box.shape:
            raise ValueError(
                f"expected the crop to have the shape {self.box.shape} of the box, but it has "
                f"{self.crop.shape}"
            )
        if any(stop > n for stop, n in zip(self.box.stop, self.grid.shape, strict=True)):
            raise ValueError(
                f"expected the box to be inside the grid {self.grid.shape}, but it extends to "
                f"{self.box.stop}"
            )

    @classmethod
    def of(cls, values: NDArray[Any], grid: Grid) -> "LabelMap":
        """Return the label map for a copy of an array ``(z, y, x)`` on `grid`.

        Raises
        ------
        GridMismatchError
            If the shapes of array and grid differ.
        """
        if values.shape != grid.shape:
            raise GridMismatchError(
                f"expected the array to have the grid's shape {grid.shape} (z, y, x), but it has "
                f"{values.shape}: pass the grid of the array"
            )
        box = Box.around(values)
        return cls(grid, box, values[box.slices].copy())

    @property
    def values(self) -> tuple[float, ...]:
        """The distinct non-zero values in ascending order."""
        labels = np.unique(self.crop)
        return tuple(float(v) for v in labels if v != 0)

    def cut(self, box: Box) -> NDArray[Any]:
        """Return the values inside any `box` of the grid as a new array of the box's shape."""
        out: NDArray[Any] = np.zeros(box.shape, dtype=self.crop.dtype)
        start = tuple(max(a, b) for a, b in zip(self.box.start, box.start, strict=True))
        stop = tuple(min(a, b) for a, b in zip(self.box.stop, box.stop, strict=True))
        if all(a < b for a, b in zip(start, stop, strict=True)):
            there = tuple(
                slice(a - o, b - o) for a, b, o in zip(start, stop, box.start, strict=True)
            )
            here = tuple(
                slice(a - o, b - o) for a, b, o in zip(start, stop, self.box.start, strict=True)
            )
            out[there] = self.crop[here]
        return out

    def dense(self) -> NDArray[Any]:
        """Return the values of the whole volume ``(z, y, x)``."""
        out = blank_array(self.grid.shape, self.crop.dtype)
        out[self.box.slices] = self.crop
        return out

    def on_grid(self, grid: Grid) -> "LabelMap":
        """Return the label map of a stored region, placed on the grid of its image.

        Any other label map is returned unchanged. Axes may have the opposite direction in the
        image; nothing is resampled.

        Raises
        ------
        GridMismatchError
            If the region does not coincide with voxels of `grid`, or has labels outside `grid`.
        """
        if not self.is_part:
            return self
        turn = reorientation_to(self.grid, grid.orientation)
        first = _offset(turn.target, grid)
        box = turn.box(self.box)
        start, stop = (
            np.add(end, (0, 0, 0) if first is None else first) for end in (box.start, box.stop)
        )
        is_inside = box.is_empty or (start.min() >= 0 and (stop <= grid.shape).all())
        if first is None or not is_inside:
            raise GridMismatchError(
                f"{self.source}: the frames of the segmentation, {turn.target.shape} voxels "
                "starting at "
                f"{np.round(grid.to_voxel(turn.target.to_world_mm((0, 0, 0))), 2).tolist()} (z, "
                f"y, x), do not lie on the voxels of the image, which has shape {grid.shape}: the "
                "segmentation belongs to a different image, or the image was resampled"
            )
        if box.is_empty:
            return replace(self, grid=grid, box=Box.empty(), is_part=False)
        moved = box_of((tuple(start), tuple(stop)), grid.shape)
        return replace(self, grid=grid, box=moved, crop=turn.array(self.crop), is_part=False)

    def mask(self, value: float | None = None, provenance: Provenance | None = None) -> Mask:
        """Return the mask of the voxels equal to `value`, or of all foreground voxels.

        `core.case.foreground` defines the foreground and the values that are not accepted.
        """
        array = np.zeros(self.grid.shape, dtype=np.bool_)
        array[self.box.slices] = self.foreground(value)
        return Mask(self.grid, array, provenance)

    def foreground(self, value: float | None = None) -> NDArray[np.bool_]:
        """Return, for each voxel of the crop, whether it is foreground.

        The errors are those of the function `foreground`.
        """
        try:
            return foreground(self.crop, value)
        except NotAMaskError as error:
            raise NotAMaskError(f"{self.source}: {error}" if self.source else str(error)) from error

    def only(self, value: float) -> "LabelMap":
        """Return a label map that is 1 where the value equals `value` and 0 elsewhere."""
        return replace(self, crop=self.foreground(value).astype(np.uint8))


SOFT_THRESHOLD: Final = 0.5
"""Smallest foreground value in a soft mask, as in nnU-Net and MONAI. Our choice."""
SOFT_TOLERANCE: Final = 0.1
"""Tolerance below 0 and above 1 in a soft mask, because splines reach 1.06. Our choice."""
_MOST_LABEL: Final = 8
"""Highest label for which adjacent labels are accepted. Our choice."""
_WHOLE: Final = 1e-3


def on_common_grid(a: LabelMap, b: LabelMap) -> tuple[LabelMap, LabelMap]:
    """Return two label maps on a common grid if either stores only a region of its image.

    For two regions, the grid is the block that contains both, with a margin of one voxel. Regions
    whose voxels do not coincide are on different grids and are returned unchanged.
    """
    try:
        if a.is_part and b.is_part:
            whole = _grid_around(a.grid, b.grid)
            return a.on_grid(whole), b.on_grid(whole)
        return a.on_grid(b.grid), b.on_grid(a.grid)
    except GridMismatchError:
        return a, b


def _grid_around(a: Grid, b: Grid) -> Grid:
    """Return `a` enlarged to contain `b`, with a margin of one voxel on each side."""
    other = reorientation_to(b, a.orientation).target
    first = _offset(other, a)
    if first is None:
        raise GridMismatchError("the voxels of the two parts do not coincide")
    low = np.minimum(first, 0) - 1
    high = np.maximum(np.add(first, other.shape), a.shape) + 1
    affine = a.affine.copy()
    affine[:3, 3] = a.to_world_mm(low)
    z, y, x = (int(n) for n in high - low)
    return Grid((z, y, x), affine)


def _offset(part: Grid, grid: Grid) -> tuple[int, int, int] | None:
    """Return the index in `grid` of the first voxel of `part`, or None if voxels do not coincide.

    The axes must have the same directions.
    """
    corners = np.array(list(product(*((0, n - 1) for n in part.shape))))
    offsets = grid.to_voxel(part.to_world_mm(corners)) - corners
    z, y, x = (int(n) for n in np.round(offsets[0]))
    is_off = np.abs(offsets - (z, y, x)).max() > 2 * SAME_PLACE_VOXELS
    return None if is_off else (z, y, x)


def foreground(values: NDArray[Any], label: float | None = None) -> NDArray[np.bool_]:
    """Return, for each value of a mask file, whether it is foreground.

    A *soft mask* has floating-point values from 0 to 1, plus or minus `SOFT_TOLERANCE`. Values of
    at least `SOFT_THRESHOLD` are foreground, regardless of the label, unless the mask has only the
    values 0 and 1. *Labels* are whole numbers. Either the largest label is at most 8, or no two
    different labels are adjacent, as with the labels 0 and 255 or with one label per lesion. The
    foreground has the value `label`, or any value above 0 if there is no `label`. NaN is
    background.

    Raises
    ------
    NotAMaskError
        If the values are neither, such as a scale from 0 to 100, logits, or an image. With `label`,
        any whole numbers are labels.
    """
    if values.dtype == np.bool_:
        chosen: NDArray[np.bool_] = values if label is None else values == label
        return chosen
    if is_soft(values) and (label is None or not _are_whole(values)):
        soft: NDArray[np.bool_] = values >= SOFT_THRESHOLD
        return soft
    problem = explain_not_a_mask(values, label)
    if problem:
        raise NotAMaskError(problem)
    if label is not None:
        return np.asarray(values == label)
    return np.asarray(values > _WHOLE)


def is_soft(values: NDArray[Any]) -> bool:
    """Return whether values are those of a soft mask, which includes a mask of only 0.0 and 1.0."""
    if not np.issubdtype(values.dtype, np.floating) or not values.size:
        return False
    low, high = _find_range(values)
    return not (low < -SOFT_TOLERANCE or high > 1 + SOFT_TOLERANCE)


def explain_not_a_mask(
    values: NDArray[Any], label: float | None = None, *, takes_label: bool = True
) -> str:
    """Return why values of a file are neither labels nor a soft mask, or "" if they are either.

    `takes_label` is True if a user may choose one of several labels.
    """
    if values.dtype == np.bool_ or not values.size or is_soft(values):
        return ""
    low, high = _find_range(values)
    is_whole = _are_whole(values)
    if is_whole and (label is not None or (low >= -_MOST_LABEL and high <= _MOST_LABEL)):
        return ""
    if is_whole and low >= 0 and not _labels_touch(np.rint(values)):
        return ""
    found = f"its values go from {min(low, 0):g} to {high:g}"
    expected = "expected a mask (0 and 1, or labels) or a soft mask with values from 0 to 1, but"
    if low < 0:
        return (
            f"{expected} {found}, like logits, distances or images: convert them to "
            "probabilities from 0 to 1 (sigmoid, softmax), or save the mask itself as 0 and 1"
        )
    remedy = "divide them by the value of certainty (100, 255, 1000)"
    choose = ", or choose one of them if they are labels" if is_whole and takes_label else ""
    return (
        f"{expected} {found}, which is a different scale: {remedy}, or save the mask itself as 0 "
        f"and 1{choose}"
    )


def _are_whole(values: NDArray[Any]) -> bool:
    if not np.issubdtype(values.dtype, np.floating):
        return True
    return bool((np.abs(values - np.rint(values)) <= _WHOLE).all())


def _find_range(values: NDArray[Any]) -> tuple[float, float]:
    """Return the lowest and the highest value, ignoring NaN."""
    return float(np.fmin.reduce(values, axis=None)), float(np.fmax.reduce(values, axis=None))


def _labels_touch(values: NDArray[Any]) -> bool:
    """Return whether voxels with two different values other than 0 share a face."""
    for axis in range(values.ndim):
        along = np.moveaxis(values, axis, 0)
        first, second = along[:-1], along[1:]
        if bool(((first != second) & (first != 0) & (second != 0)).any()):
            return True
    return False
