"""The shape that outlines of one lesion make together: a depth in mm for every voxel of a box.

In an outlined plane the depth is the signed distance to the outline (positive inside), between two
planes it goes over linearly from one to the other, beyond the last it falls with the distance.
Planes across different axes are joined by weights of one over the distance from each.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import distance_transform_edt, shift

from napari_mamamia.core.box import Box
from napari_mamamia.smartpaint.grow.start import Outline

_FALL: Final = 0.6  # mm of depth for each mm beyond the last outline; a ball's is 0 to 1 and above
_NEAREST_MM: Final = 1e-3  # from a plane: nearer, the plane alone counts

Bools = NDArray[np.bool_]
Floats = NDArray[np.float32]
Spacing = tuple[float, float, float]
Planes = dict[int, dict[int, Bools]]
"""By axis and by index in the box: what is drawn there, bool of the plane's shape in the box."""


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """What outlines say of each voxel of a box, float32 of its shape.

    Parameters
    ----------
    depth_mm
        How deep a voxel lies in the shape; negative outside.
    beyond_mm
        How far it lies beyond the outermost outlines, along the axis that stands upright on them;
        0 between them.
    near_mm
        How far it lies from the nearest outlined plane.
    """

    depth_mm: Floats
    beyond_mm: Floats
    near_mm: Floats


def planes_in(outlines: Sequence[Outline], box: Box) -> Planes:
    """Return the outlines by plane, cut to a box that holds their planes; those of one are joined.

    What lies outside the box is left out.
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
    """Return how deep each voxel lies in a mask, mm, negative outside; the border is no edge.

    The edge lies half-way between two voxels of the finest spacing. Where a mask has no edge the
    depth is infinite.
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
    """Return the depth by one axis' outlines; for each plane, mm to the nearest and beyond all."""
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
    """Return how far outlines that share no voxel lie apart, in voxels; 0 for others."""
    if (first & second).any():
        return np.zeros(2)
    way: NDArray[np.float64] = np.argwhere(second).mean(axis=0) - np.argwhere(first).mean(axis=0)
    return way


def _move_depth(depth: Floats, way: NDArray[np.float64]) -> Floats:
    """Return a plane's depth moved by `way` voxels; beyond its edge the nearest value goes on."""
    if not way.any():
        return depth
    moved: Floats = shift(depth, way, order=1, mode="nearest")
    return moved
