"""What the pixels of a study tell where its headers are silent: contrast, differences, copies.

A few planes of each volume are read. Source of the rules and thresholds: measured on phantoms, one
real slice and one real exam (table in docs/methods/dicom_import.md); they decide what is asked, and
which of several pre-contrast phases is the last.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.block_means import block_means
from napari_mamamia.io.dicom.pixels import read_plane
from napari_mamamia.io.dicom.slices import Slice
from napari_mamamia.io.exam.blanks import blank_tails, require_values
from napari_mamamia.io.exam.noise import SLAB, Borrowed, find_borrowed

# Whether a volume's neighbouring planes share values: a projection that slides along the stack.
#
# In a scan each plane has noise of its own, so that two neighbours are equal in one place by chance
# only: in as many places as the rounding of values leaves room for. A sliding maximum, minimum or
# median takes one value for several planes, and so does a stack whose planes were doubled. No other
# volume is needed to see that.

_Array = NDArray[np.float32]
_BODY: Final = 0.1
_TIED: Final = 0.12
"""From this share of equal neighbours on, above that in rows, planes share values. Measured: below
.03 in honest real volumes and on phantoms; .20 and more in projections that were computed; in
theory (w - 1) / (w + 1) of noise over w planes."""
_LEAST_STEPS: Final = 2.0
"""Neighbours that differ by fewer steps of the stored values are equal by rounding."""
_FINEST: Final = 5
"""This percentile of the differences is a step, or where steps are finer than noise, a part of it
that is small enough."""
_FEWEST: Final = 500
_EACH: Final = 3


def find_sliding(slabs: _Array) -> tuple[int, ...]:
    """Return the volumes whose neighbouring planes share values.

    Parameters
    ----------
    slabs
        Some neighbouring planes of each volume: (volume, z, y, x).
    """
    return tuple(k for k, tied in enumerate(_measure_ties(slabs)) if tied >= _TIED)


def tied_share(slabs: _Array) -> NDArray[np.float64]:
    """Return the share of each volume's voxels that equal their neighbour in the next plane.

    Less the share of those that equal their neighbour in a row: so many are equal by rounding. Of
    the pairs of planes the one with most of them does not count: a single plane that is there
    twice is no projection. 0 where there are too few planes, or mere rounding. Takes the same as
    `find_sliding`.
    """
    return np.array(_measure_ties(slabs))


def _measure_ties(slabs: _Array) -> list[float]:
    if slabs.shape[1] < 3:
        return [0.0] * len(slabs)
    means = slabs.mean(axis=0)
    body = means > _BODY * float(np.percentile(means, 99))
    return [_of_volume(slab, body[1:] & body[:-1]) for slab in slabs]


def _of_volume(values: _Array, body: NDArray[np.bool_]) -> float:
    levels, counts = np.unique(values[:, ::_EACH, ::_EACH], return_counts=True)
    usual = levels[np.argmax(counts)]  # what is masked, or filled in, is equal by itself
    below, above = values[:-1], values[1:]
    lowest = values.min()
    counted = body & (below > lowest) & (above > lowest) & (below != usual)
    differences = np.abs(above - below)
    parted = differences[counted & (differences > 0)]
    if counted.sum() < _FEWEST or len(parted) == 0:
        return 0.0
    step = float(np.percentile(parted, _FINEST))
    if float(np.median(parted)) < _LEAST_STEPS * step:
        return 0.0
    n_tied = (counted & (differences == 0)).sum(axis=(1, 2))
    shares = np.sort(n_tied / np.maximum(counted.sum(axis=(1, 2)), 1))
    beside = counted[..., 1:] & counted[..., :-1]
    by_rounding = float((np.diff(below, axis=2)[beside] == 0).mean()) if beside.any() else 0.0
    return max(float(shares[:-1].mean()) - by_rounding, 0.0)


CONTRAST: Final = 0.05
"""From this `enhancement` on contrast came between two volumes."""
NO_CONTRAST: Final = 0.04
"""Below this `enhancement` none came; in between nobody knows."""
_SOLID_RISE: Final = 0.3
_SOLID: Final = 3
"""How many blocks wide and high a rise of 30 % is at least that is no moved edge: 12 voxels. A pre
moved by up to 3 voxels in its plane has none; a lesion of 10 mm has some."""
_FINE: Final = 24
"""Images of fewer rows or columns of blocks are too coarse for that: one block counts."""
_PLANES: Final = 5
_FLOOR: Final = 0.05
_RISE: Final = 0.15
_GAIN: Final = 0.05
_GAIN_CHANGED: Final = 0.12
"""Air gets no brighter by contrast than by ghosts: by 0 to 16 % in five real exams, no darker."""
_LEAST_CHANGED: Final = 25
"""Of the body a quarter, fat and muscle, takes up little contrast: this percentile is the gain."""
_VOXELS: Final = 4000
_FIT: Final = 0.97
_OPPOSITE: Final = (0.9, 1.1)
_FEWEST_BLOCKS: Final = 20
_LEAST_WEIGHT: Final = 0.05
_MOST_WEIGHT: Final = 10.0
_NEARLY: Final = 0.999
"""Correlation from which on two volumes may be copies; the noise of two scans keeps below it, or
differs by more than the rounding of values."""


class Contrast(Enum):
    """Whether contrast came between two volumes; UNCLEAR is what must be asked about."""

    NONE = "none"
    UNCLEAR = "unclear"
    CAME = "came"


@dataclass(frozen=True, slots=True, eq=False)
class _Look:
    blocks: NDArray[np.float32]
    inner: NDArray[np.bool_]
    voxels: NDArray[np.float32]
    tails: NDArray[np.intp]
    digest: bytes
    pieces: tuple[Slice, ...]


class Looks:
    """Some planes of each volume of a study, read once."""

    def __init__(self) -> None:
        self._known: dict[int, _Look] = {}
        self._borrowed: dict[tuple[int, ...], Borrowed] = {}
        self._sliding: dict[tuple[int, ...], tuple[int, ...]] = {}

    def require_values(self, stacks: Sequence[Sequence[Slice]]) -> None:
        """Raise `FormatError` where a plane that was read breaks off in one volume only."""
        looks = [self._find_look(stack) for stack in stacks]
        require_values([look.pieces for look in looks], [look.tails for look in looks])

    def enhancement(self, before: Sequence[Slice], after: Sequence[Slice]) -> float:
        """Return the share of the body that rises less the share that falls, -1 .. 1."""
        return enhancement(self._find_look(before).blocks, self._find_look(after).blocks)

    def contrast(self, before: Sequence[Slice], after: Sequence[Slice]) -> Contrast:
        """Return whether contrast came between two volumes."""
        return contrast_between(self._find_look(before).blocks, self._find_look(after).blocks)

    def shows_contrast(self, volumes: Sequence[Sequence[Slice]]) -> bool:
        """Whether contrast came or went between the first volume and another one."""
        first = volumes[0]
        return any(abs(self.enhancement(first, other)) >= CONTRAST for other in volumes[1:])

    def are_equal(self, a: Sequence[Slice], b: Sequence[Slice]) -> bool:
        """Whether two volumes have the same values."""
        return self._find_look(a).digest == self._find_look(b).digest

    def is_difference(
        self, volume: Sequence[Slice], of: Sequence[Slice], less: Sequence[Slice]
    ) -> bool:
        """Whether a volume is another one less a third, up to a factor and an offset."""
        return is_difference(*(self._find_look(one).voxels for one in (volume, of, less)))

    def likeness(self, a: Sequence[Slice], b: Sequence[Slice]) -> float:
        """Return the correlation of two volumes inside the body, -1 .. 1.

        The body's border does not count: it makes all images of one body alike. 1 where too little
        is left to tell, 0 where a volume shows one value.
        """
        one, other = self._find_look(a), self._find_look(b)
        inner = one.inner & other.inner
        if inner.sum() < _FEWEST_BLOCKS:
            return 1.0
        x, y = one.blocks[inner], other.blocks[inner]
        if x.std() == 0 or y.std() == 0:
            return 0.0
        return float(np.corrcoef(x, y)[0, 1])

    def same_values(self, stacks: Sequence[Sequence[Slice]]) -> tuple[int, int] | None:
        """Return the first two volumes of which one is the other times a factor, None if none."""
        voxels = np.stack([self._find_look(stack).voxels for stack in stacks]).astype(np.float64)
        if len(voxels) < 2:
            return None
        with np.errstate(invalid="ignore", divide="ignore"):
            near = np.nan_to_num(np.corrcoef(voxels))
        for a, b in np.argwhere(np.triu(near, 1) > _NEARLY):
            steps = [stacks[index][0].scaling.slope for index in (a, b)]
            if _is_scaled(voxels[a], voxels[b], steps):
                return int(a), int(b)
        return None

    def borrowed(self, stacks: Sequence[Sequence[Slice]]) -> Borrowed:
        """Return which volumes, in order of time, have no noise of their own."""
        self._look_into(stacks)
        return self._borrowed[_make_key(stacks)]

    def sliding(self, stacks: Sequence[Sequence[Slice]]) -> tuple[int, ...]:
        """Return the volumes, in order of time, of which neighbouring planes share values."""
        self._look_into(stacks)
        return self._sliding[_make_key(stacks)]

    def _look_into(self, stacks: Sequence[Sequence[Slice]]) -> None:
        key = _make_key(stacks)
        if key not in self._borrowed:
            slabs = np.stack([_read_slab(stack) for stack in stacks])
            self._borrowed[key] = find_borrowed(slabs, [s[0].scaling.slope for s in stacks])
            self._sliding[key] = find_sliding(slabs)

    def blocks(self, stack: Sequence[Slice]) -> NDArray[np.float32]:
        """Return means over blocks of some planes: (plane, row, column)."""
        return self._find_look(stack).blocks

    def _find_look(self, stack: Sequence[Slice]) -> _Look:
        # The look keeps its slices, so that no other slice can be given this id later.
        key = id(stack[0])
        if key not in self._known:
            self._known[key] = _make_look(stack)
        return self._known[key]


def enhancement(before: NDArray[np.float32], after: NDArray[np.float32]) -> float:
    """Return the share of the body that rises by 15 % less the share that falls so.

    A gain that changes everything alike is taken off. Near 0 where the body only moved.

    Parameters
    ----------
    before, after
        Means over blocks of the same places.
    least
        From which change on, of air and body, it is the gain.
    """
    brightest = np.maximum(before, after)
    white = float(np.percentile(brightest, 99))
    body = brightest > _BODY * white
    if white <= 0 or not body.any():
        return 0.0
    change = (after[body] - before[body]) / np.maximum(before[body], _FLOOR * white)
    low, middle, high = np.percentile(change, (10, 50, 90))
    if low > _GAIN or high < -_GAIN:
        change = change - middle
    return float(np.mean(change > _RISE) - np.mean(change < -_RISE))


def gain_between(
    before: NDArray[np.float32], after: NDArray[np.float32], least: float = _GAIN_CHANGED
) -> float:
    """Return how many times brighter a volume was received than another one; 1.0 where it was not.

    Contrast leaves the noise of air as it is; a receiver's gain changes it as it does the body.

    Parameters
    ----------
    before, after
        Means over blocks of the same places.
    least
        From which change on, of air and body, it is the gain.
    """
    brightest = np.maximum(before, after)
    white = float(np.percentile(brightest, 99))
    air, body = brightest < _FLOOR * white, before > _FLOOR * white
    if min(air.sum(), body.sum()) < _FEWEST_BLOCKS or float(np.median(before[air])) <= 0:
        return 1.0
    of_air = float(np.median(after[air])) / float(np.median(before[air]))
    gain = float(np.percentile(after[body] / before[body], _LEAST_CHANGED))
    is_less = of_air < 1 - least and 0.5 < gain < 1 - least
    is_more = of_air > 1 + least and gain > 1 + least
    return gain if is_less or is_more else 1.0


def contrast_between(before: NDArray[np.float32], after: NDArray[np.float32]) -> Contrast:
    """Return whether contrast came, by `enhancement` and by whether a whole patch rises.

    CAME: `enhancement` is .05 and more, and somewhere a patch rises by 30 %. NONE: it is below .04
    either way, and no patch rises. A moved body alone shows no patch, a lesion alone no share.

    Parameters
    ----------
    before, after
        Means over blocks of the same places, (plane, row, column).
    """
    share = enhancement(before, after)
    has_patch = _has_patch(before, after)
    if share >= CONTRAST and has_patch:
        return Contrast.CAME
    return Contrast.NONE if abs(share) < NO_CONTRAST and not has_patch else Contrast.UNCLEAR


def _has_patch(before: NDArray[np.float32], after: NDArray[np.float32]) -> bool:
    """Whether a square of blocks rises by 30 % more than the body does in the middle."""
    brightest = np.maximum(before, after)
    white = float(np.percentile(brightest, 99))
    body = brightest > _BODY * white
    if white <= 0 or not body.any():
        return False
    change = (after - before) / np.maximum(before, _FLOOR * white)
    rises = body & (change - float(np.median(change[body])) > _SOLID_RISE)
    if min(rises.shape[1:]) < _FINE:
        return bool(rises.any())
    squares = np.lib.stride_tricks.sliding_window_view(rises, (_SOLID, _SOLID), axis=(1, 2))
    return bool(squares.all(axis=(3, 4)).any())


def _is_scaled(a: NDArray[np.float64], b: NDArray[np.float64], steps: Sequence[float]) -> bool:
    """Whether one volume is the other times a factor, rounded to a step of its own."""
    for x, y, step in ((a, b, steps[1]), (b, a, steps[0])):
        factor = float(x @ y) / float(x @ x)
        if float(np.abs(y - factor * x).max()) <= abs(step):
            return True
    return False


def is_difference(
    found: NDArray[np.float32], after: NDArray[np.float32], before: NDArray[np.float32]
) -> bool:
    """Whether ``found = a * after + b * before + c`` with -b/a near 1: a subtraction.

    Values at the lowest of `found` do not count, because subtractions are cut at zero. The body
    stands out of the air less than in `before`: else that is the difference, and this a scan.
    """
    white = float(np.percentile(np.maximum(after, before), 99))
    body = np.maximum(after, before) > _BODY * white
    counts = body & (found > found.min())
    if counts.sum() < 20:
        return False
    x = found[counts].astype(np.float64)
    terms = np.stack([after[counts], before[counts], np.ones(len(x))], axis=1).astype(np.float64)
    spread = float(np.var(x))
    if spread == 0:
        return False
    (a, b, c), *_ = np.linalg.lstsq(terms, x, rcond=None)
    explained = 1 - float(np.var(x - terms @ (a, b, c))) / spread
    return (
        explained >= _FIT
        and _LEAST_WEIGHT < a < _MOST_WEIGHT
        and _OPPOSITE[0] <= -b / a <= _OPPOSITE[1]
        and _above_air(found, body) <= a * _above_air(before, body)
    )


def _above_air(values: NDArray[np.float32], body: NDArray[np.bool_]) -> float:
    """Return how far the body lies above the air in the middle; nothing where there is no air."""
    air = values[~body]
    return float(np.median(values[body]) - np.median(air)) if len(air) else 0.0


def _make_look(stack: Sequence[Slice]) -> _Look:
    places = np.unique(np.linspace(0.2, 0.8, _PLANES) * (len(stack) - 1) + 0.5).astype(int)
    pieces = [stack[index] for index in sorted(set(places.tolist()))]
    planes = np.stack([_read_quantity(image) for image in pieces])
    blocks = block_means(planes)
    flat = planes.ravel()
    # Rows mostly have an even length: an odd step does not take the same columns of each.
    step = max(1, len(flat) // _VOXELS) | 1
    return _Look(
        blocks,
        _find_inside(blocks),
        flat[::step].copy(),
        blank_tails(planes),
        hashlib.sha256(planes.data).digest(),
        tuple(pieces),
    )


def _make_key(stacks: Sequence[Sequence[Slice]]) -> tuple[int, ...]:
    return tuple(id(stack[0]) for stack in stacks)


def _read_slab(stack: Sequence[Slice]) -> NDArray[np.float32]:
    """Return neighbouring planes in the middle of a volume."""
    first = max((len(stack) - SLAB) // 2, 0)
    return np.stack([_read_quantity(piece) for piece in stack[first : first + SLAB]])


def _find_inside(blocks: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Return which blocks (plane, row, column) are body, as are the four beside them."""
    body = np.pad(blocks > _BODY * float(np.percentile(blocks, 99)), ((0, 0), (1, 1), (1, 1)))
    rows, columns = slice(1, -1), slice(1, -1)
    inner: NDArray[np.bool_] = body[:, rows, columns].copy()
    for beside in (body[:, :-2, columns], body[:, 2:, columns], body[:, rows, :-2],
                   body[:, rows, 2:]):  # fmt: skip
        inner &= beside
    return inner


def _read_quantity(piece: Slice) -> NDArray[np.float32]:
    plane = read_plane(piece).astype(np.float32)
    return plane * np.float32(piece.scaling.slope) + np.float32(piece.scaling.intercept)
