"""Parts of a mask: the part under the pointer, parts beyond a line, and fragments.

Each function takes a boolean mask (z, y, x) and its grid without changing them. Parts are
26-connected, depths in mm are measured from voxel centre to voxel centre, and the image's border is
not an edge.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import binary_dilation, distance_transform_edt, label

from napari_mamamia.core.box import Box
from napari_mamamia.core.edits import Voxel
from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.grid import Grid

CRUMB_VOXELS: Final = 30
"""Number of voxels below which a part or a hole is a fragment, if it is also below `CRUMB_MM3`."""

CRUMB_MM3: Final = 30.0
"""Volume in mm3, that of a 3.9 mm ball, below which a part of few voxels is a fragment.

A larger part may be a lesion, even if its voxels are coarse.
"""

_NECK: Final = 0.7  # of the depth on both sides: a lobe is connected by a neck if it is thinner
_N_LEVELS: Final = 32  # of depth, at which lobes are distinguished
_THICKER: Final = 1.5  # times: something so much thicker is a separate structure
_ROOM: Final = 1.25  # of a thickness, so that equally thick tissue farther away is included
_LONGER: Final = (0.0, 0.25, 0.5, 1.0)  # lengths of a line by which its wall extends at each end
_MOST_DEPTHS: Final = 24  # of a wall that are tried, from shallow to deep
_TOUCHING: Final = np.ones((3, 3, 3), np.bool_)

Bools = NDArray[np.bool_]
Floats = NDArray[np.float32]
Hold = NDArray[np.int8]
Spacing = tuple[float, float, float]


@dataclass(frozen=True, slots=True, eq=False)
class Removal:
    """The voxels to remove, given as the boolean array `gone` in a box, and a description."""

    box: Box
    gone: Bools
    text: str


def part_under(mask: Bools, grid: Grid, point: Voxel, hold: Hold | None = None) -> Removal:
    """Return the part of the mask under the pointer.

    A part that is not the largest is returned completely. In the largest part, the result is the
    lobe under the pointer, up to the first connection that is thinner than 0.7 of both sides. If
    there is no such connection, the result is a thin structure that is attached to a structure 1.5
    times as thick. Parts that become disconnected are included. The thick side is kept, unless all
    marks of the reader are on the thin side.

    Parameters
    ----------
    hold
        An int8 array with the mask's shape, which is above 0 for voxels that the reader has marked
        as lesion.

    Raises
    ------
    CaseError
        If no voxel of the mask is under the pointer, or the pointer is on the main part.
    """
    under = _find_voxel(mask, point)
    parts, count = label(mask, _TOUCHING)
    sizes = np.bincount(parts.ravel(), minlength=count + 1)
    sizes[0] = 0
    number = int(parts[under])
    if number != int(sizes.argmax()):
        return _make_removal(parts == number, grid, "a separate part")
    box = Box.around(parts == number)
    component = parts[box.slices] == number
    z, y, x = (u - s for u, s in zip(under, box.start, strict=True))
    inner = (z, y, x)
    depth = _measure_depth(component, grid.spacing_mm)
    held = np.zeros_like(component) if hold is None else (hold[box.slices] > 0) & component
    lobe = _find_lobe(component, depth, inner, grid.spacing_mm)
    thin = None if lobe is not None else _find_thin(component, depth, inner, grid.spacing_mm)
    gone = lobe if lobe is not None else thin
    if gone is None or _is_main(component, gone, held):
        raise CaseError(
            "this is the main part of the lesion: point at an attached part, or draw a line that "
            "cuts it off (Cut here)"
        )
    whole = np.zeros_like(mask)
    whole[box.slices] = gone | _find_loose(component & ~gone, held)
    return _make_removal(
        whole, grid, "a part connected by a narrow bridge" if thin is None else "a thin part"
    )


def beyond_line(
    mask: Bools,
    grid: Grid,
    line: tuple[Voxel, Voxel],
    plane_axis: int,
    hold: Hold | None = None,
) -> Removal:
    """Return the voxels that are cut off by a line drawn across the mask in one slice, in 3-D.

    A wall along the viewing direction goes through the line. It is as deep as necessary to separate
    two sides, and each end extends by up to the length of the line. The side with fewer voxels that
    the reader fixed is removed, or the smaller side if the numbers are equal.

    Parameters
    ----------
    line
        The ends of the line in voxel coordinates, on one plane perpendicular to `plane_axis`.
    hold
        As in `part_under`.

    Raises
    ------
    CaseError
        If the line has no length, misses the mask or does not separate it.
    """
    start, stop = (np.array(end, np.float64) for end in line)
    way = (stop - start) * np.array(grid.spacing_mm)
    way[plane_axis] = 0
    length = float(np.linalg.norm(way))
    if not np.isfinite(length) or length <= 0:
        raise CaseError(
            "the cut has no length: draw a line across the narrow bridge, from edge to edge"
        )
    box = Box.around(mask).grown((1, 1, 1), mask.shape)
    crop = mask[box.slices]
    wall = _Wall.on(box, start, way / length, length, plane_axis, grid.spacing_mm)
    if not (crop & wall.find_sheet(0.0, 0.0)).any():
        raise CaseError("the line does not cross the mask: draw a line across the part to cut off")
    sides = wall.separate(crop)
    if sides is None:
        raise CaseError(
            "the line does not separate the mask in 3-D: draw a line completely across the narrow "
            "bridge, or cut in a slice where the bridge is narrower"
        )
    held = np.zeros_like(crop) if hold is None else hold[box.slices] > 0
    first, second = sorted(
        sides, key=lambda side: (np.count_nonzero(side & held), np.count_nonzero(side))
    )
    del second
    whole = np.zeros_like(mask)
    whole[box.slices] = first
    return _make_removal(whole, grid, "the smaller side of the cut")


def without_fragments(
    mask: Bools, grid: Grid, before: Bools | None = None, hold: Hold | None = None
) -> Bools:
    """Return the mask without fragments: tiny parts are removed and tiny holes are filled.

    A part or hole is tiny if it has fewer than `CRUMB_VOXELS` voxels and is smaller than
    `CRUMB_MM3`. The largest part is always kept, and voxels that the reader fixed are not changed.

    Parameters
    ----------
    before
        The mask before the step that may have left fragments, or None. A part or hole that already
        existed in this mask is kept.
    hold
        An int8 array that is above 0 for voxels fixed inside, below 0 for voxels fixed outside, and
        0 without a mark.
    """
    box = Box.around(mask).grown((1, 1, 1), mask.shape)
    crop = mask[box.slices]
    held = np.zeros(crop.shape, np.int8) if hold is None else hold[box.slices]
    earlier = None if before is None else before[box.slices]
    tiny = _find_tiny(crop, grid, _TOUCHING, earlier)
    parts, count = label(crop, _TOUCHING)
    if count:
        sizes = np.bincount(parts.ravel())
        sizes[0] = 0
        tiny &= parts != int(sizes.argmax())
        tiny &= ~np.isin(parts, np.unique(parts[(held > 0) & crop]))
    out = mask.copy()
    cleaned = crop & ~tiny
    # Voxels at the border of the crop are not enclosed, even if the image ends there.
    holes = np.pad(~cleaned, 1, constant_values=True)
    numbers, _ = label(holes)
    inner = numbers[1:-1, 1:-1, 1:-1]
    enclosed = (inner > 0) & (inner != numbers[0, 0, 0])
    before_holes = None if earlier is None else ~earlier
    filled = enclosed & _find_tiny(enclosed, grid, None, before_holes)
    filled &= ~np.isin(inner, np.unique(inner[(held < 0) & enclosed]))
    out[box.slices] = cleaned | filled
    return out


def _find_tiny(what: Bools, grid: Grid, structure: Bools | None, before: Bools | None) -> Bools:
    """Return the tiny parts of `what`, except those that already existed unchanged in `before`."""
    parts, count = label(what, structure)
    sizes = np.bincount(parts.ravel(), minlength=count + 1)
    is_tiny = (sizes < CRUMB_VOXELS) & (sizes * grid.voxel_volume_mm3 < CRUMB_MM3)
    is_tiny[0] = False
    if before is not None and is_tiny.any():
        old, n_old = label(before, structure)
        old_sizes = np.bincount(old.ravel(), minlength=n_old + 1)
        for number in np.flatnonzero(is_tiny):
            here = parts == number
            same = int(old[here][0])
            if same and old_sizes[same] == sizes[number] and (old[here] == same).all():
                is_tiny[number] = False
    tiny: Bools = is_tiny[parts]
    return tiny


def _find_voxel(mask: Bools, point: Voxel) -> tuple[int, int, int]:
    z, y, x = (round(coordinate) if np.isfinite(coordinate) else -1 for coordinate in point)
    is_in = all(0 <= u < n for u, n in zip((z, y, x), mask.shape, strict=True))
    if not is_in or not mask[z, y, x]:
        raise CaseError("there is no mask under the pointer: point at the part to remove")
    return (z, y, x)


def _make_removal(gone: Bools, grid: Grid, what: str) -> Removal:
    box = Box.around(gone)
    volume_ml = np.count_nonzero(gone) * grid.voxel_volume_mm3 / 1000
    return Removal(box, gone[box.slices].copy(), f"removed {what}, {volume_ml:.2g} ml")


def _measure_depth(part: Bools, spacing_mm: Spacing) -> Floats:
    """Return each voxel's distance in mm to the nearest voxel outside the part, or 0 outside.

    The border of the crop does not count as outside.
    """
    if part.all():
        return np.full(part.shape, np.float32(min(spacing_mm)))
    depth: Floats = distance_transform_edt(np.pad(part, 1), spacing_mm)[1:-1, 1:-1, 1:-1]
    return depth.astype(np.float32)


def _climb_depth(depth: Floats, start: tuple[int, int, int]) -> tuple[int, int, int]:
    here = start
    while True:
        low = [max(index - 1, 0) for index in here]
        around = depth[tuple(slice(a, p + 2) for a, p in zip(low, here, strict=True))]
        if around.max() <= depth[here]:
            return here
        z, y, x = np.unravel_index(int(around.argmax()), around.shape)
        here = (low[0] + int(z), low[1] + int(y), low[2] + int(x))


def _find_lobe(
    part: Bools, depth: Floats, under: tuple[int, int, int], spacing_mm: Spacing
) -> Bools | None:
    """Return the lobe under the pointer up to its first narrow connection, or None.

    Voxels deeper than a level are separated by a connection that is less deep. From the deepest
    level downwards, the depth of the connection is the first level at which the deep part of the
    lobe joins a second, much deeper part.
    """
    top = _climb_depth(depth, under)
    levels = np.linspace(float(depth[top]), 0.0, _N_LEVELS + 1)
    for upper, lower in pairwise(levels):
        parts, _ = label(depth > lower, _TOUCHING)
        deep = depth > upper
        joined = (parts == parts[top]) & deep
        pieces, _ = label(joined, _TOUCHING)
        mine = pieces == pieces[top] if pieces[top] else _mark_voxel(part.shape, top)
        others = joined & ~mine
        if others.any():
            least = min(float(depth[top]), float(depth[others].max()))
            if upper <= _NECK * least:
                return _spread_side(part, mine, others, under, spacing_mm)
    return None


def _spread_side(
    part: Bools, mine: Bools, others: Bools, under: tuple[int, int, int], spacing_mm: Spacing
) -> Bools:
    nearer = distance_transform_edt(~mine, spacing_mm) < distance_transform_edt(~others, spacing_mm)
    parts, _ = label(part & nearer, _TOUCHING)
    number = parts[under] or parts[mine].max()
    side: Bools = parts == number
    return side


def _find_thin(
    part: Bools, depth: Floats, under: tuple[int, int, int], spacing_mm: Spacing
) -> Bools | None:
    """Return the voxels about as thin as the part under the pointer, or None if none is thicker.

    A voxel is thick if a ball of that radius fits around it into the mask. The surface layer of a
    thick part, whose corners no ball reaches, is not a separate structure and belongs to the thick
    part.
    """
    thickness = _measure_thickness(depth, under, spacing_mm)
    radius = _ROOM * max(thickness, min(spacing_mm))
    core = depth > radius
    if float(depth.max()) < _THICKER * thickness or not core.any():
        return None
    thick = part & (distance_transform_edt(~core, spacing_mm) <= radius)
    covered = part & binary_dilation(thick, _TOUCHING)
    thin, _ = label(part & ~covered, _TOUCHING)
    if not thin[under]:
        return None
    tip = thin == thin[under]
    # Its foot: voxels nearer to it than to the core that a ball fills.
    lobe: Bools = (part & ~thick & binary_dilation(tip, _TOUCHING)) | tip
    return lobe


def _measure_thickness(depth: Floats, under: tuple[int, int, int], spacing_mm: Spacing) -> float:
    squares = [
        ((np.arange(n) - index) * step) ** 2
        for n, index, step in zip(depth.shape, under, spacing_mm, strict=True)
    ]
    away = np.sqrt(squares[0][:, None, None] + squares[1][:, None] + squares[2])
    return float(depth[away <= depth].max(initial=0.0))


def _is_main(part: Bools, gone: Bools, held: Bools) -> bool:
    n_held = np.count_nonzero(held)
    if n_held and not (held & gone).any():
        return False
    return bool(2 * np.count_nonzero(gone) >= np.count_nonzero(part))


def _find_loose(rest: Bools, held: Bools) -> Bools:
    parts, count = label(rest, _TOUCHING)
    if count < 2:
        return np.zeros_like(rest)
    sizes = np.bincount(parts.ravel())
    sizes[0] = 0
    stays = np.zeros(count + 1, np.bool_)
    stays[[0, int(sizes.argmax())]] = True
    stays[np.unique(parts[held & rest])] = True
    loose: Bools = ~stays[parts]
    return loose


def _mark_voxel(shape: tuple[int, ...], place: tuple[int, int, int]) -> Bools:
    mark = np.zeros(shape, np.bool_)
    mark[place] = True
    return mark


@dataclass(frozen=True, slots=True, eq=False)
class _Wall:
    """A wall through a line in a box, described by three distances of each voxel in mm.

    The distances are measured along the line, perpendicular to it in the plane, and in depth.
    `half_mm` is the smallest half thickness that no two touching voxels can bridge.
    """

    along: Floats
    off: Floats
    deep: Floats
    length_mm: float
    half_mm: float

    @classmethod
    def on(
        cls,
        box: Box,
        start: NDArray[np.float64],
        way: NDArray[np.float64],
        length_mm: float,
        plane_axis: int,
        spacing_mm: Spacing,
    ) -> "_Wall":
        """Return the wall through a line from `start` along the unit vector `way`, in mm."""
        z, y, x = (
            (np.arange(a, b) - coordinate) * step
            for a, b, coordinate, step in zip(box.start, box.stop, start, spacing_mm, strict=True)
        )
        offsets = [z[:, None, None], y[:, None], x]
        row, column = (axis for axis in range(3) if axis != plane_axis)
        normal = np.zeros(3)
        normal[row], normal[column] = -way[column], way[row]
        shape = np.zeros(box.shape)
        along, off = (
            (shape + sum(o * w for o, w in zip(offsets, vector, strict=True))).astype(np.float32)
            for vector in (way, normal)
        )
        deep = (shape + np.abs(offsets[plane_axis])).astype(np.float32)
        half = float(np.abs(normal) @ np.array(spacing_mm)) / 2
        return cls(along, off, deep, length_mm, half)

    def find_sheet(self, longer: float, depth_mm: float, thick: float = 1.0) -> Bools:
        """Return the voxels of the wall, extended at each end by `longer` times its length.

        The wall reaches `depth_mm` from the plane of the line in both directions.
        """
        more = longer * self.length_mm
        sheet: Bools = (
            (np.abs(self.off) <= thick * self.half_mm + 1e-4)
            & (self.along >= -more - self.half_mm)
            & (self.along <= self.length_mm + more + self.half_mm)
            & (self.deep <= depth_mm + 1e-4)
        )
        return sheet

    def separate(self, mask: Bools) -> tuple[Bools, Bools] | None:
        """Return the two sides of the mask at the smallest wall that separates it, or None."""
        depths = np.unique(self.deep[mask])
        if len(depths) > _MOST_DEPTHS:
            depths = depths[np.linspace(0, len(depths) - 1, _MOST_DEPTHS).round().astype(int)]
        for longer in _LONGER:
            for depth_mm in depths.tolist():
                sides = self._split_mask(mask, longer, depth_mm)
                if sides is not None:
                    return sides
        return None

    def _split_mask(
        self, mask: Bools, longer: float, depth_mm: float
    ) -> tuple[Bools, Bools] | None:
        sheet = mask & self.find_sheet(longer, depth_mm)
        beside = mask & ~sheet & self.find_sheet(longer, depth_mm, 3.0)
        parts, _ = label(mask & ~sheet, _TOUCHING)
        ahead = np.unique(parts[beside & (self.off > 0)])
        behind = np.unique(parts[beside & (self.off < 0)])
        if not len(ahead) or not len(behind) or np.isin(ahead, behind).any():
            return None
        return (
            np.isin(parts, ahead) | (sheet & (self.off > 0)),
            np.isin(parts, behind) | (sheet & (self.off <= 0)),
        )
