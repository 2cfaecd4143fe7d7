"""The shape that outlines of one lesion define: a depth in mm for every voxel of a box.

In an outlined plane the depth is the signed distance to the outline (positive inside). Between two
planes it is interpolated linearly; beyond the last plane it decreases with the distance. Planes
across different axes are combined with weights of one over the distance from each.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import distance_transform_edt, shift

from napari_mamamia.core.box import Box
from napari_mamamia.smartpaint.grow.start import Outline

_FALL: Final = 0.6  # mm of depth per mm beyond the last outline; for a ball 0 to 1 and above
_NEAREST_MM: Final = 1e-3  # mm from a plane: nearer, only the plane counts

Bools = NDArray[np.bool_]
Floats = NDArray[np.float32]
Spacing = tuple[float, float, float]
Planes = dict[int, dict[int, Bools]]
"""Outlines by axis and by index in the box: bool of the plane's shape in the box."""


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """The shape of outlines at each voxel of a box, float32 of its shape.

    Parameters
    ----------
    depth_mm
        Depth of a voxel in the shape; negative outside.
    beyond_mm
        Distance beyond the outermost outlines along the axis perpendicular to them; 0 between them.
    near_mm
        Distance from the nearest outlined plane.
    """

    depth_mm: Floats
    beyond_mm: Floats
    near_mm: Floats


def planes_in(outlines: Sequence[Outline], box: Box) -> Planes:
    """Return the outlines by plane, cropped to a box; outlines of one plane are joined.

    Planes outside the box are dropped.
    """
    planes: Planes = {}
    for outline in outlines:
        others = tuple(box.slices[a] for a in range(3) if a != outline.axis)
        of_axis = planes.setdefault(outline.axis, {})
        index = outline.index - box.start[outline.axis]
        of_axis[index] = of_axis.get(index, np.False_) | outline.mask[others]
    return planes


def interpolate_shape(planes: Planes, box_shape: Sequence[int], spacing_mm: Spacing) -> Shape:
    """Return the shape between and beyond outlined planes; at least one outline holds a voxel.

    Source: Raya and Udupa, IEEE Trans Med Imaging 9 (1990) 32 (between outlines); the rest is ours,
    see docs/methods/growth.md.
    """
    depth, beyond, total = (np.zeros(tuple(box_shape), np.float32) for _ in range(3))
    nearest = np.full(tuple(box_shape), np.inf, np.float32)
    for axis, of_axis in planes.items():
        along, near_mm, beyond_mm = _follow_axis(of_axis, axis, box_shape[axis], spacing_mm)
        upright = [a for a in range(3) if a != axis]
        weight = np.expand_dims(1 / (near_mm + np.float32(_NEAREST_MM)), upright)
        depth += weight * along
        beyond += weight * np.expand_dims(beyond_mm, upright)
        total += weight
        np.minimum(nearest, np.expand_dims(near_mm, upright), out=nearest)
    depth /= total
    beyond /= total
    return Shape(depth, beyond, nearest)


def measure_depth(mask: Bools, spacing_mm: Sequence[float]) -> Floats:
    """Return the depth of each voxel in a mask in mm, negative outside; the border is no edge.

    The edge lies half-way between two voxels of the finest spacing. The depth is infinite if a mask
    has no edge.
    """
    half = min(spacing_mm) / 2
    depth = np.full(mask.shape, -np.inf, np.float32)
    if mask.any():
        depth = (half - distance_transform_edt(~mask, sampling=spacing_mm)).astype(np.float32)
        inner = np.inf if mask.all() else distance_transform_edt(mask, sampling=spacing_mm) - half
        depth = np.where(mask, inner, depth).astype(np.float32)
    return depth


def _follow_axis(
    drawn: Mapping[int, Bools], axis: int, extent: int, spacing_mm: Spacing
) -> tuple[Floats, Floats, Floats]:
    """Return, for each plane of an axis, the depth, mm to the nearest outline and mm beyond all."""
    in_plane = [step for a, step in enumerate(spacing_mm) if a != axis]
    keys = sorted(drawn)
    depths = {key: measure_depth(drawn[key], in_plane) for key in keys}
    planes = np.arange(extent)
    near = np.abs(planes[:, np.newaxis] - np.array(keys)).min(axis=1) * spacing_mm[axis]
    out_of = np.maximum(keys[0] - planes, planes - keys[-1])
    beyond = np.maximum(out_of, 0) * spacing_mm[axis]
    along = np.empty((extent, *drawn[keys[0]].shape), np.float32)
    for plane in range(extent):
        low = max((key for key in keys if key <= plane), default=keys[0])
        high = min((key for key in keys if key >= plane), default=keys[-1])
        if low == high:
            along[plane] = depths[low] - np.float32(_FALL * beyond[plane])
        else:
            share = (plane - low) / (high - low)
            way = _find_way(drawn[low], drawn[high])
            along[plane] = (1 - share) * _move_depth(depths[low], share * way)
            along[plane] += share * _move_depth(depths[high], (share - 1) * way)
    return np.moveaxis(along, 0, axis), near.astype(np.float32), beyond.astype(np.float32)


def _find_way(first: Bools, second: Bools) -> NDArray[np.float64]:
    """Return the offset in voxels between outlines that share no voxel; 0 for others."""
    if (first & second).any():
        return np.zeros(2)
    way: NDArray[np.float64] = np.argwhere(second).mean(axis=0) - np.argwhere(first).mean(axis=0)
    return way


def _move_depth(depth: Floats, way: NDArray[np.float64]) -> Floats:
    """Return a plane's depth shifted by `way` voxels; at its edge the nearest value is repeated."""
    if not way.any():
        return depth
    moved: Floats = shift(depth, way, order=1, mode="nearest")
    return moved
