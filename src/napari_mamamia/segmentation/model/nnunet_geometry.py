"""Axes, spacing, extents and tiles of a case for an nnU-Net model, without torch."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.box import Box
from napari_mamamia.core.errors import ModelError
from napari_mamamia.core.grid import DisplayFrame, Grid
from napari_mamamia.segmentation.model.nnunet_plans import Plans, ReaderKind

_PIXDIM: Final = slice(80, 92)  # bytes of pixdim[1:4] in a NIfTI-1 header
_SAME_SPACING: Final = 1e-4
_MOST_VOXELS: Final = 2**32  # 16 GB per channel; a breast exam at 0.5 mm has 2**28 voxels
_MARGIN: Final = 2  # voxels of the model's grid that interpolation at a region's edge uses


@dataclass(frozen=True, slots=True)
class Frame:
    """The transform from a case to the axes of a model: reorientation, then a permutation.

    `display` is the reorientation and `order` the permutation. `spacing` and `shape` are along the
    model's axes, before cropping and resampling.
    """

    display: DisplayFrame
    order: tuple[int, int, int]
    spacing: tuple[float, float, float]
    shape: tuple[int, int, int]

    def to_model(self, array: NDArray[Any]) -> NDArray[Any]:
        """Return a case's array ``(z, y, x)`` as a view along the model's axes."""
        return self.display.to_display(array).transpose(self.order)

    def from_model(self, array: NDArray[Any]) -> NDArray[Any]:
        """Return an array along the model's axes as a view with the case's axes ``(z, y, x)``."""
        return self.display.from_display(array.transpose(np.argsort(self.order)))

    def box_to_model(self, box: Box, grid: Grid) -> Box:
        """Return a box of the case along the model's axes."""
        ends = [
            self.display.point_to_display(point, grid.shape)
            for point in (box.start, tuple(n - 1 for n in box.stop))
        ]
        low = [int(min(pair)) for pair in zip(*ends, strict=True)]
        high = [int(max(pair)) + 1 for pair in zip(*ends, strict=True)]
        start, stop = ([side[axis] for axis in self.order] for side in (low, high))
        return Box((start[0], start[1], start[2]), (stop[0], stop[1], stop[2]))


def model_frame(grid: Grid, plans: Plans) -> Frame:
    """Return the transform to the axes of a model for volumes on `grid`.

    Parameters
    ----------
    grid
        The grid of the case.
    plans
        The plans of the model.
    """
    display = DisplayFrame("axial", (0, 1, 2), (False, False, False))
    if plans.reader is ReaderKind.RAS:
        display = _towards_ras(grid)
    spacing = display.per_axis(header_spacing(grid))
    shape = display.per_axis(grid.shape)
    a, b, c = plans.transpose_forward
    return Frame(
        display,
        plans.transpose_forward,
        (spacing[a], spacing[b], spacing[c]),
        (int(shape[a]), int(shape[b]), int(shape[c])),
    )


def model_shape(grid: Grid, plans: Plans) -> tuple[int, int, int]:
    """Return the extents of a volume on the model's grid, assuming there is no empty border.

    Parameters
    ----------
    grid
        The grid of the case.
    plans
        The plans of the model.
    """
    frame = model_frame(grid, plans)
    return model_extents(frame.shape, frame.spacing, plans)


def wanted_spacing(spacing: Sequence[float], plans: Plans) -> tuple[float, ...]:
    """Return the model's spacing along three axes; a 2-D model keeps the case's slice spacing.

    Parameters
    ----------
    spacing
        The current spacing along three axes in mm.
    plans
        The plans of the model.
    """
    model_spacing = plans.configuration.spacing
    return model_spacing if len(model_spacing) == 3 else (spacing[0], *model_spacing)


def model_extents(
    shape: Sequence[int], spacing: Sequence[float], plans: Plans
) -> tuple[int, int, int]:
    """Return the extents of the network's input for a volume of `shape` and `spacing` mm.

    Plans without resampling (nnU-Net's ``no_resampling_hack``) do not change the extents.

    Parameters
    ----------
    shape
        The extents of the volume in voxels.
    spacing
        The current spacing along three axes in mm.
    plans
        The plans of the model.

    Raises
    ------
    ModelError
        If the volume would be empty, or too large for any computer.
    """
    a, b, c = (int(n) for n in shape)
    target = wanted_spacing(spacing, plans)
    if plans.configuration.data.method != "none":
        a, b, c = target_shape(shape, spacing, target)
    if min(a, b, c) < 1 or a * b * c > _MOST_VOXELS:
        raise ModelError(
            "expected a volume that fits into memory, but the volume of "
            f"{' x '.join(map(str, shape))} voxels of {' x '.join(f'{s:g}' for s in spacing)} mm "
            f"would have {a} x {b} x {c} voxels at the model's spacing of "
            f"{' x '.join(f'{s:g}' for s in target)} mm; correct the spacing of the images, or "
            "choose a different model"
        )
    return (a, b, c)


def target_shape(
    shape: Sequence[int], spacing: Sequence[float], wanted: Sequence[float]
) -> tuple[int, ...]:
    """Return the extents after resampling from `spacing` to `wanted`.

    Parameters
    ----------
    shape
        The extents of the volume in voxels.
    spacing
        The current spacing along three axes in mm.
    wanted
        The spacing of the model along three axes in mm.

    Examples
    --------
    >>> target_shape((60, 256, 256), (2.0, 0.8, 0.8), (1.0, 1.0, 1.0))
    (120, 205, 205)
    """
    return tuple(round(a / b * n) for a, b, n in zip(spacing, wanted, shape, strict=True))


def resampled_box(inside: Box, crop: Box, shape: Sequence[int]) -> Box:
    """Return a box after cropping to `crop` and resampling to `shape`, with a margin added.

    Parameters
    ----------
    inside
        The box to convert.
    crop
        The cropped part of the volume.
    shape
        The extents of the resampled volume in voxels.

    Examples
    --------
    >>> resampled_box(Box((4, 4, 4), (8, 8, 8)), Box.whole((20, 20, 20)), (40, 20, 10)).start
    (6, 2, 0)
    """
    start, stop = [], []
    for a, b, c, d, n in zip(inside.start, inside.stop, crop.start, crop.stop, shape, strict=True):
        scale = n / (d - c)
        low = min(max(int((a - c) * scale) - _MARGIN, 0), n)
        start.append(low)
        stop.append(max(min(int((b - c) * scale) + 1 + _MARGIN, n), low))
    return Box((start[0], start[1], start[2]), (stop[0], stop[1], stop[2]))


def tile_starts(shape: Sequence[int], patch: Sequence[int], step: float) -> list[list[int]]:
    """Return the first index of each tile along each axis of a volume.

    Parameters
    ----------
    shape
        The extents of the volume in voxels, at least those of a tile.
    patch
        The extents of a tile in voxels.
    step
        The distance of tiles as a fraction of the patch.

    Examples
    --------
    >>> tile_starts((110,), (64,), 0.5)
    [[0, 23, 46]]
    """
    starts = []
    for extent, size in zip(shape, patch, strict=True):
        count = math.ceil((extent - size) / (size * step)) + 1
        gap = (extent - size) / (count - 1) if count > 1 else 0.0
        starts.append([int(np.round(gap * k)) for k in range(count)])
    return starts


def _towards_ras(grid: Grid) -> DisplayFrame:
    """Return the transform of a file's volume reoriented to RAS.

    Slices increase towards superior, rows towards anterior, columns towards the patient's right.

    Source: nnunetv2 2.8.1, imageio/nibabel_reader_writer.py, NibabelIOWithReorient.
    """
    letters = grid.orientation[::-1]  # along (z, y, x)
    order, flips = [], []
    for towards, away in ("SI", "AP", "RL"):
        axis = next(k for k, letter in enumerate(letters) if letter in (towards, away))
        order.append(axis)
        flips.append(letters[axis] == away)
    return DisplayFrame("axial", (order[0], order[1], order[2]), (flips[0], flips[1], flips[2]))


def header_spacing(grid: Grid) -> tuple[float, float, float]:
    """Return the spacing (z, y, x) in mm as SimpleITK and nnU-Net read it from a case's file.

    The numbers in the header are used if they match the affine. The norms of an oblique affine's
    columns differ from them in the last digits, which can change whether 3.0 mm slices at 1.0 mm
    count as thick, and whether a voxel at the very edge of an image is inside.
    """
    header = grid.nifti_header
    if header is None or len(header) != 348:
        return grid.spacing_mm
    for order in ("<f4", ">f4"):
        x, y, z = np.abs(np.frombuffer(header[_PIXDIM], dtype=order).astype(np.float64))
        given = (float(z), float(y), float(x))
        if all(
            math.isfinite(a) and abs(a - b) <= _SAME_SPACING * b
            for a, b in zip(given, grid.spacing_mm, strict=True)
        ):
            return given
    return grid.spacing_mm
