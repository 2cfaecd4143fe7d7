"""Locate a UCSF SEG in a case: slices by position, pixels by index."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.box import Box
from napari_mamamia.core.errors import GridMismatchError
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.reorientation import Reorientation, reorientation_to
from napari_mamamia.io.seg.ucsf import UcsfAnalysis, UcsfFrames, UcsfRegion

_SHIFT_PIXELS: Final = 0.75
"""Tolerated shift in pixels: UCSF's frames are shifted by half a pixel within the slice."""

_SLICE_SHARE: Final = 0.1
_PARALLEL: Final = 0.999
_HALF_WAY: Final = 1e-3
_LETTERS: Final = ("RL", "AP", "SI")  # directions of the RAS axes, positive and negative
_REMEDY: Final = "give the SEG of this exam, and the exam as it was acquired"


@dataclass(frozen=True, slots=True, eq=False)
class PlacedSeg:
    """A SEG located in a case that was reoriented to the SEG's (slice, row, column).

    `boxes` and `omitted` are in voxels of the reoriented case; `mask` is the SEG's mask there.
    """

    turn: Reorientation
    boxes: tuple[Box, ...]
    omitted: tuple[Box, ...]
    mask: NDArray[np.bool_]


def place_seg(found: UcsfAnalysis, grid: Grid) -> PlacedSeg:
    """Return the regions and the mask of a SEG in the voxels of a case.

    Nothing is resampled.

    Parameters
    ----------
    found
        The content of the SEG.
    grid
        The grid of the case.

    Raises
    ------
    GridMismatchError
        If the SEG differs in pixels, direction or position, or has rotated regions.
    """
    frames = found.frames
    axes = _find_axes(frames)
    turn = reorientation_to(grid, _name_orientation(axes))
    _require_same_pixels(frames, axes, turn.target)
    first = _flip_to_lps(turn.target.to_world_mm((0, 0, 0)))
    step = _flip_to_lps(turn.target.to_world_mm((1, 0, 0))) - first
    slices = [_slice_of(np.array(place), first, step, turn.target) for place in frames.places_mm]
    _require_same_place(frames, axes, first, step, slices)
    mask = np.zeros(turn.target.shape, np.bool_)
    mask[slices] = frames.mask
    boxes = [
        (region.is_inside, _find_region_box(region, frames, axes, turn.target))
        for region in found.regions
    ]
    return PlacedSeg(
        turn,
        tuple(box for is_inside, box in boxes if is_inside),
        tuple(box for is_inside, box in boxes if not is_inside and not box.is_empty),
        mask,
    )


def _find_axes(frames: UcsfFrames) -> NDArray[np.float64]:
    """Return the directions (LPS) of slices, rows and columns."""
    row, column = np.array(frames.along_row), np.array(frames.along_column)
    return np.array([np.cross(row, column), column, row])


def _name_orientation(axes: NDArray[np.float64]) -> str:
    """Return the letters of (x, y, z) for columns, rows, slices."""
    ras = axes * (-1, -1, 1)
    letters = []
    for axis in ras[::-1]:
        main = int(np.abs(axis).argmax())
        letters.append(_LETTERS[main][int(axis[main] < 0)])
    if len(set(np.abs(ras).argmax(axis=1))) != 3:
        raise GridMismatchError(f"expected a SEG along the image's axes, but got {axes}; {_REMEDY}")
    return "".join(letters)


def _flip_to_lps(world_mm: NDArray[np.float64]) -> NDArray[np.float64]:
    turned: NDArray[np.float64] = world_mm * (-1, -1, 1)
    return turned


def _require_same_pixels(frames: UcsfFrames, axes: NDArray[Any], target: Grid) -> None:
    rows, columns = frames.mask.shape[1:]
    spacing = target.spacing_mm[1:]
    steps = [
        _flip_to_lps(target.to_world_mm(index) - target.to_world_mm((0, 0, 0)))
        for index in ((1, 0, 0), (0, 1, 0), (0, 0, 1))
    ]
    along = [
        float(axis @ step / np.linalg.norm(step)) for axis, step in zip(axes, steps, strict=True)
    ]
    if target.shape[1:] != (rows, columns) or not np.allclose(spacing, frames.spacing_mm, 1e-3):
        raise GridMismatchError(
            f"expected a SEG of {target.shape[1]} x {target.shape[2]} pixels of {spacing[0]:g} x "
            f"{spacing[1]:g} mm, but got {rows} x {columns} of {frames.spacing_mm[0]:g} x "
            f"{frames.spacing_mm[1]:g} mm; {_REMEDY}"
        )
    if min(along) < _PARALLEL:
        raise GridMismatchError(
            "expected a SEG along the image's axes, but got a rotated one (cosines "
            f"{', '.join(f'{cosine:.3f}' for cosine in along)}); {_REMEDY}"
        )


def _slice_of(
    place: NDArray[np.float64], first: NDArray[np.float64], step: NDArray[np.float64], target: Grid
) -> int:
    number = float((place - first) @ step / (step @ step))
    if abs(number - round(number)) > _SLICE_SHARE or not 0 <= round(number) < target.shape[0]:
        raise GridMismatchError(
            f"expected the SEG's slices among the {target.shape[0]} of the image, but got one at "
            f"slice {number:.2f}; {_REMEDY}"
        )
    return round(number)


def _require_same_place(
    frames: UcsfFrames,
    axes: NDArray[np.float64],
    first: NDArray[np.float64],
    step: NDArray[np.float64],
    slices: list[int],
) -> None:
    off = np.array(frames.places_mm[0]) - (first + slices[0] * step)
    pixels = [float(off @ axis) / mm for axis, mm in zip(axes[1:], frames.spacing_mm, strict=True)]
    if max(map(abs, pixels)) > _SHIFT_PIXELS:
        raise GridMismatchError(
            f"expected the SEG's pixels on those of the image, but they are {pixels[0]:.1f} rows "
            f"and {pixels[1]:.1f} columns away; {_REMEDY}"
        )
    if len(set(slices)) != len(slices):
        raise GridMismatchError(
            f"expected one frame for each slice, but one slice has two; {_REMEDY}"
        )


def _find_region_box(
    region: UcsfRegion, frames: UcsfFrames, axes: NDArray[np.float64], target: Grid
) -> Box:
    """Return the box of voxels with centres in a region, in the frames' own pixel coordinates."""
    halves = np.abs(axes @ np.array(region.half_axes_mm).T)
    lengths = np.linalg.norm(region.half_axes_mm, axis=1)
    if (halves.max(axis=0) < _PARALLEL * lengths).any() or sorted(halves.argmax(axis=0)) != [
        0,
        1,
        2,
    ]:
        raise GridMismatchError(
            "expected regions along the image's axes, but got one with half-axes "
            f"{region.half_axes_mm} mm; {_REMEDY}"
        )
    first = _flip_to_lps(target.to_world_mm((0, 0, 0)))
    within = np.array(frames.places_mm[0])
    away = np.array(region.centre_mm)
    centre = np.array([(away - first) @ axes[0], *((away - within) @ axis for axis in axes[1:])])
    spacing = np.array(target.spacing_mm)
    middle, half = centre / spacing, halves.max(axis=1) / spacing
    start = np.ceil(middle - half - _HALF_WAY).astype(int)
    stop = np.floor(middle + half + _HALF_WAY).astype(int) + 1
    if (stop <= 0).any() or (start >= target.shape).any() or (stop <= start).any():
        if region.is_inside:
            raise GridMismatchError(
                f"expected a VOI inside the image, but got voxels {start.tolist()} to "
                f"{stop.tolist()} (slice, row, column); {_REMEDY}"
            )
        return Box.empty()
    z0, y0, x0 = (int(max(a, 0)) for a in start)
    z1, y1, x1 = (int(min(b, n)) for b, n in zip(stop, target.shape, strict=True))
    return Box((z0, y0, x0), (z1, y1, x1))
