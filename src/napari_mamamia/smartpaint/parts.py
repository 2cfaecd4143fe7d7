"""Parts of a mask: the one under the pointer, what lies beyond a line, and crumbs.

Each function takes a mask, bool (z, y, x), and its grid, and changes neither. Parts are
26-connected, depths run in mm from voxel centre to voxel centre, and the image's border is no edge.
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
"""A part or a hole of fewer voxels is a crumb, if it is smaller than `CRUMB_MM3` as well."""

CRUMB_MM3: Final = 30.0
"""A ball of 3.9 mm; what is larger may be a lesion of its own, however coarse its voxels."""

_NECK: Final = 0.7  # of the depth on both sides: a lobe hangs by a neck where it is thinner
_N_LEVELS: Final = 32  # of depth, at which lobes are told apart
_THICKER: Final = 1.5  # times: what hangs on something so much thicker is a thing of its own
_ROOM: Final = 1.25  # of a thickness, so that the same thickness farther on goes along
_LONGER: Final = (0.0, 0.25, 0.5, 1.0)  # lengths of a line by which its wall goes on at each end
_MOST_DEPTHS: Final = 24  # of a wall that are tried, from shallow to deep
_TOUCHING: Final = np.ones((3, 3, 3), np.bool_)

Bools = NDArray[np.bool_]
Floats = NDArray[np.float32]
Hold = NDArray[np.int8]
Spacing = tuple[float, float, float]


@dataclass(frozen=True, slots=True, eq=False)
class Removal:
    """What goes: `gone` is bool of the box's shape; `text` says in plain words what that is."""

    box: Box
    gone: Bools
    text: str


def part_under(mask: Bools, grid: Grid, point: Voxel, hold: Hold | None = None) -> Removal:
    """Return the part of the mask under the pointer.

    A part that is not the largest goes whole. Of the largest, what goes is the lobe that the
    pointer is in, up to the first neck that is thinner than 0.7 of both sides; else what is so
    thin that something 1.5 times thicker carries it. What comes loose by that goes as well. The
    thick side itself never goes, unless the reader's own marks are all on the other side.

    Parameters
    ----------
    hold
        int8 of the mask's shape: above 0 where the reader has said that it belongs to the lesion.

    Raises
    ------
    CaseError
        If nothing of the mask is under the pointer, or it is on the main part.
    """
    under = _find_voxel(mask, point)
    parts, count = label(mask, _TOUCHING)
    sizes = np.bincount(parts.ravel(), minlength=count + 1)
    sizes[0] = 0
    number = int(parts[under])
    if number != int(sizes.argmax()):
        return _make_removal(parts == number, grid, "a part of its own")
    box = Box.around(parts == number)
    part = parts[box.slices] == number
    z, y, x = (u - s for u, s in zip(under, box.start, strict=True))
    inner = (z, y, x)
    depth = _measure_depth(part, grid.spacing_mm)
    held = np.zeros_like(part) if hold is None else (hold[box.slices] > 0) & part
    lobe = _find_lobe(part, depth, inner, grid.spacing_mm)
    thin = None if lobe is not None else _find_thin(part, depth, inner, grid.spacing_mm)
    gone = lobe if lobe is not None else thin
    if gone is None or _is_main(part, gone, held):
        raise CaseError(
            "this is the main part of the lesion: point at what hangs on it, or draw a line that "
            "cuts it off (Cut here)"
        )
    whole = np.zeros_like(mask)
    whole[box.slices] = gone | _find_loose(part & ~gone, held)
    return _make_removal(whole, grid, "what hangs by a neck" if thin is None else "a thin part")


def beyond_line(
    mask: Bools,
    grid: Grid,
    line: tuple[Voxel, Voxel],
    plane_axis: int,
    hold: Hold | None = None,
) -> Removal:
    """Return what a line drawn across the mask in a slice cuts off, in 3-D.

    A wall stands on the line along the viewing direction, as deep as it must be for two sides to
    come apart, and up to a length longer at each end. The side with fewer voxels that the reader
    holds goes; if both have as many, the smaller one.

    Parameters
    ----------
    line
        Its ends in voxel coordinates, on one plane across `plane_axis`.
    hold
        As `part_under` has it.

    Raises
    ------
    CaseError
        If the line has no length, lies beside the mask or does not separate it.
    """
    start, stop = (np.array(end, np.float64) for end in line)
    way = (stop - start) * np.array(grid.spacing_mm)
    way[plane_axis] = 0
    length = float(np.linalg.norm(way))
    if not np.isfinite(length) or length <= 0:
        raise CaseError("the cut has no length: draw a line across the neck, from edge to edge")
    box = Box.around(mask).grown((1, 1, 1), mask.shape)
    crop = mask[box.slices]
    wall = _Wall.on(box, start, way / length, length, plane_axis, grid.spacing_mm)
    if not (crop & wall.find_sheet(0.0, 0.0)).any():
        raise CaseError("the line does not cross the mask: draw it across what is to be cut off")
    sides = wall.separate(crop)
    if sides is None:
        raise CaseError(
            "the line does not separate the mask in 3-D: draw it all the way across the neck, or "
            "cut in a slice where the neck is narrower"
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
    """Return the mask without crumbs: tiny parts are gone and tiny holes are filled.

    Tiny is what has fewer than `CRUMB_VOXELS` voxels and less than `CRUMB_MM3`. The largest part
    stays however small, and what the reader holds stays as it is held.

    Parameters
    ----------
    before
        The mask before the step that may have left crumbs: a part or hole that was there just so
        stays. None for no such mask.
    hold
        int8: above 0 inside, below 0 outside, 0 where the reader has said nothing.
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
    # What lies at the border of the crop is not enclosed, even where the image ends there.
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
    """Return the parts of `what` that are tiny and that were not parts of `before` just so."""
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
    """Return the voxel of the mask under the pointer, or raise."""
    z, y, x = (round(place) if np.isfinite(place) else -1 for place in point)
    is_in = all(0 <= u < n for u, n in zip((z, y, x), mask.shape, strict=True))
    if not is_in or not mask[z, y, x]:
        raise CaseError("there is no mask under the pointer: point at the part that is to go")
    return (z, y, x)


def _make_removal(gone: Bools, grid: Grid, what: str) -> Removal:
    box = Box.around(gone)
    volume_ml = np.count_nonzero(gone) * grid.voxel_volume_mm3 / 1000
    return Removal(box, gone[box.slices].copy(), f"removed {what}, {volume_ml:.2g} ml")


def _measure_depth(part: Bools, spacing_mm: Spacing) -> Floats:
    """Return the distance in mm to the nearest voxel outside, 0 outside; not to the crop's end."""
    if part.all():
        return np.full(part.shape, np.float32(min(spacing_mm)))
    depth: Floats = distance_transform_edt(np.pad(part, 1), spacing_mm)[1:-1, 1:-1, 1:-1]
    return depth.astype(np.float32)


def _climb_depth(depth: Floats, start: tuple[int, int, int]) -> tuple[int, int, int]:
    """Return the place that the steepest way up from `start` ends at."""
    here = start
    while True:
        low = [max(place - 1, 0) for place in here]
        around = depth[tuple(slice(a, p + 2) for a, p in zip(low, here, strict=True))]
        if around.max() <= depth[here]:
            return here
        z, y, x = np.unravel_index(int(around.argmax()), around.shape)
        here = (low[0] + int(z), low[1] + int(y), low[2] + int(x))


def _find_lobe(
    part: Bools, depth: Floats, under: tuple[int, int, int], spacing_mm: Spacing
) -> Bools | None:
    """Return the lobe under the pointer up to its first neck, None where it has none.

    What is deeper than a level falls apart where a neck is less deep; from the top down, the
    first level at which the lobe's deep part joins another that is much deeper than the level is
    that of its neck.
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
    """Return what of a part lies nearer to `mine` than to `others`, joined with `mine`."""
    nearer = distance_transform_edt(~mine, spacing_mm) < distance_transform_edt(~others, spacing_mm)
    parts, _ = label(part & nearer, _TOUCHING)
    number = parts[under] or parts[mine].max()
    side: Bools = parts == number
    return side


def _find_thin(
    part: Bools, depth: Floats, under: tuple[int, int, int], spacing_mm: Spacing
) -> Bools | None:
    """Return what is about as thin as the part under the pointer, None where nothing is thicker.

    Thick is what a ball of that radius fits into. Its skin, which no ball reaches into every
    corner of, is not a thing of its own, so that it stays with what it covers.
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
    # Its foot: nearer to it than to the core that a ball fills.
    lobe: Bools = (part & ~thick & binary_dilation(tip, _TOUCHING)) | tip
    return lobe


def _measure_thickness(depth: Floats, under: tuple[int, int, int], spacing_mm: Spacing) -> float:
    """Return the radius of the largest ball in the part that covers a voxel."""
    squares = [
        ((np.arange(n) - place) * step) ** 2
        for n, place, step in zip(depth.shape, under, spacing_mm, strict=True)
    ]
    away = np.sqrt(squares[0][:, None, None] + squares[1][:, None] + squares[2])
    return float(depth[away <= depth].max(initial=0.0))


def _is_main(part: Bools, gone: Bools, held: Bools) -> bool:
    """Return whether what would go is the lesion itself."""
    n_held = np.count_nonzero(held)
    if n_held and not (held & gone).any():
        return False
    return bool(2 * np.count_nonzero(gone) >= np.count_nonzero(part))


def _find_loose(rest: Bools, held: Bools) -> Bools:
    """Return what came loose: parts that are not the largest and hold no mark of the reader's."""
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
    """A wall on a line, in a box: how far each voxel lies along it, off it and away in depth, mm.

    `half_mm` is the least half thickness that no two touching voxels reach across.
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
        """Return the wall on a line from `start` along the unit vector `way`, in mm."""
        z, y, x = (
            (np.arange(a, b) - place) * step
            for a, b, place, step in zip(box.start, box.stop, start, spacing_mm, strict=True)
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
        """Return the voxels in a wall that is `longer` at each end and so deep both ways."""
        more = longer * self.length_mm
        sheet: Bools = (
            (np.abs(self.off) <= thick * self.half_mm + 1e-4)
            & (self.along >= -more - self.half_mm)
            & (self.along <= self.length_mm + more + self.half_mm)
            & (self.deep <= depth_mm + 1e-4)
        )
        return sheet

    def separate(self, mask: Bools) -> tuple[Bools, Bools] | None:
        """Return the two sides of the mask, by the least wall that separates it; None if none."""
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
