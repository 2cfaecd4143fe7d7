"""Compare the pixels of a study's volumes if headers are not sufficient; find blank planes.

A few planes of each volume are read. The rules and thresholds were measured on phantoms, one real
slice and one real exam (table in docs/methods/dicom_import.md). They determine which questions are
asked, and which of several pre-contrast phases is the last one.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.block_means import block_means
from napari_mamamia.core.errors import FormatError
from napari_mamamia.io.dicom.pixels import read_plane
from napari_mamamia.io.dicom.remedies import leave_out
from napari_mamamia.io.dicom.slices import Slice
from napari_mamamia.io.exam.noise import SLAB, Borrowed, find_borrowed

_MOST_SHARE: Final = 0.25
"""Largest fraction of rows that can be blank at the end of a plane in one phase (our choice).

The limit is far above the change of the body's edge between phases.
"""
_BAND: Final = 16
"""Number of rows that are compared at once."""


def blank_tails(array: NDArray[Any]) -> NDArray[np.intp]:
    """Return, for each plane of an array (z, y, x), the number of constant rows at its end."""
    return np.array([_blank_tail(plane) for plane in array], dtype=np.intp)


def _blank_tail(plane: NDArray[Any]) -> int:
    n_rows, last = len(plane), plane[-1, -1]
    for end in range(n_rows, 0, -_BAND):
        differs = (plane[max(end - _BAND, 0) : end] != last).any(axis=1)
        if differs.any():
            return n_rows - end + int(np.argmax(differs[::-1]))
    return n_rows


def require_values(stacks: Sequence[Sequence[Slice]], tails: Sequence[NDArray[np.intp]]) -> None:
    """Raise `FormatError` if a plane is incomplete but is complete in another phase.

    Parameters
    ----------
    stacks
        The planes of each phase.
    tails
        The result of `blank_tails` for each phase.
    """
    least = np.minimum.reduce(list(tails))
    for index, (stack, tail) in enumerate(zip(stacks, tails, strict=True)):
        n_rows = stack[0].shape[0]
        broken = np.flatnonzero(tail - least > _MOST_SHARE * n_rows)
        if len(broken):
            plane, most = stack[int(broken[0])], int(tail[broken[0]])
            rows = (
                f"{n_rows} rows hold only one value"
                if most >= n_rows
                else f"last {most} of {n_rows} rows are blank"
            )
            raise FormatError(
                f"expected values in all rows of {plane.name}, as in other phases, but its "
                f"{rows}, possibly because of an interrupted copy or a failed scan (the same is "
                f"true of {len(broken)} of {len(stack)} slices that were read in phase {index}): "
                "copy the files again, or leave out the phase",
                remedies=leave_out([stack], stacks),
            )


# In a sliding projection, neighbouring planes of a volume share values. In a scan, each plane has
# independent noise, so two neighbours are equal in a voxel only by chance, as often as the
# rounding of values allows. A sliding maximum, minimum or median has the same value in several
# planes, and so does a stack whose planes were duplicated. No other volume is needed to detect
# this.

_Array = NDArray[np.float32]
_BODY: Final = 0.1
_TIED: Final = 0.12
"""Excess of equal neighbours across planes above which neighbouring planes share values.

The excess is relative to neighbours along rows. Measured values are below 0.03 in original volumes
and phantoms, and 0.20 or more in computed projections. In theory the value is (w - 1) / (w + 1) for
noise over w planes.
"""
_LEAST_STEPS: Final = 2.0
"""Difference, in steps of the stored values, below which neighbours are equal by rounding."""
_FINEST: Final = 5
"""Percentile of the differences that is taken as one step of the stored values.

If the steps are finer than the noise, this percentile is a sufficiently small fraction of the
noise.
"""
_FEWEST: Final = 500
_EACH: Final = 3


def find_sliding(slabs: _Array) -> tuple[int, ...]:
    """Return the volumes in which neighbouring planes share values.

    Parameters
    ----------
    slabs
        Some neighbouring planes of each volume: (volume, z, y, x).
    """
    return tuple(k for k, tied in enumerate(_measure_ties(slabs)) if tied >= _TIED)


def _measure_ties(slabs: _Array) -> list[float]:
    if slabs.shape[1] < 3:
        return [0.0] * len(slabs)
    means = slabs.mean(axis=0)
    body = means > _BODY * float(np.percentile(means, 99))
    return [_of_volume(slab, body[1:] & body[:-1]) for slab in slabs]


def _of_volume(values: _Array, body: NDArray[np.bool_]) -> float:
    levels, counts = np.unique(values[:, ::_EACH, ::_EACH], return_counts=True)
    usual = levels[np.argmax(counts)]  # Masked or filled voxels are always equal.
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
"""Value of `enhancement` above which contrast arrived between two volumes."""
NO_CONTRAST: Final = 0.04
"""Value of `enhancement` below which no contrast arrived.

Between the two limits, the result is unclear.
"""
_SOLID_RISE: Final = 0.3
_SOLID: Final = 3
"""Smallest width and height in blocks of a 30 % rise that a moved edge cannot cause.

The size is 12 voxels. A pre-contrast phase that is shifted by up to 3 voxels in its plane causes no
such rise, but a lesion of 10 mm does.
"""
_FINE: Final = 24
"""Number of block rows or columns below which a single rising block is sufficient."""
_PLANES: Final = 5
_FLOOR: Final = 0.05
_RISE: Final = 0.15
_GAIN: Final = 0.05
_GAIN_CHANGED: Final = 0.12
"""Smallest relative change of the air signal that counts as a change of receiver gain.

Ghosts change the signal by 0 to 16 % in real exams.
"""
_LEAST_CHANGED: Final = 25
"""Percentile of the body's signal changes from which the gain is measured.

A quarter of the body, namely fat and muscle, takes up little contrast.
"""
_VOXELS: Final = 4000
_FIT: Final = 0.97
_OPPOSITE: Final = (0.9, 1.1)
_FEWEST_BLOCKS: Final = 20
_LEAST_WEIGHT: Final = 0.05
_MOST_WEIGHT: Final = 10.0
_NEARLY: Final = 0.999
"""Correlation above which two volumes may be copies; noise keeps that of two scans below it."""


class Contrast(Enum):
    """Whether contrast arrived between two volumes; if UNCLEAR, the user is asked."""

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
    """Some planes of each volume of a study, which are read only once."""

    def __init__(self) -> None:
        self._known: dict[int, _Look] = {}
        self._borrowed: dict[tuple[int, ...], Borrowed] = {}
        self._sliding: dict[tuple[int, ...], tuple[int, ...]] = {}

    def require_values(self, stacks: Sequence[Sequence[Slice]]) -> None:
        """Raise `FormatError` if a plane is incomplete in only one volume."""
        looks = [self._find_look(stack) for stack in stacks]
        require_values([look.pieces for look in looks], [look.tails for look in looks])

    def enhancement(self, before: Sequence[Slice], after: Sequence[Slice]) -> float:
        """Return the fraction of the body that brightens minus the fraction that darkens."""
        return enhancement(self._find_look(before).blocks, self._find_look(after).blocks)

    def contrast(self, before: Sequence[Slice], after: Sequence[Slice]) -> Contrast:
        """Return whether contrast arrived between two volumes."""
        return contrast_between(self._find_look(before).blocks, self._find_look(after).blocks)

    def shows_contrast(self, volumes: Sequence[Sequence[Slice]]) -> bool:
        """Return whether contrast arrived or disappeared between the first and another volume."""
        first = volumes[0]
        return any(abs(self.enhancement(first, other)) >= CONTRAST for other in volumes[1:])

    def are_equal(self, a: Sequence[Slice], b: Sequence[Slice]) -> bool:
        """Return whether two volumes have the same values."""
        return self._find_look(a).digest == self._find_look(b).digest

    def is_difference(
        self, volume: Sequence[Slice], of: Sequence[Slice], less: Sequence[Slice]
    ) -> bool:
        """Return whether a volume equals `of` minus `less`, up to a factor and an offset."""
        return is_difference(*(self._find_look(stack).voxels for stack in (volume, of, less)))

    def likeness(self, a: Sequence[Slice], b: Sequence[Slice]) -> float:
        """Return the correlation of two volumes inside the body, from -1 to 1.

        The body's border is ignored, because it makes all images of one body similar. The result is
        1 if too few voxels remain, and 0 if a volume is constant.
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
        """Return the first two volumes that are equal up to a factor, or None."""
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
        """Return the volumes without independent noise, in chronological order."""
        self._look_into(stacks)
        return self._borrowed[_make_key(stacks)]

    def sliding(self, stacks: Sequence[Sequence[Slice]]) -> tuple[int, ...]:
        """Return the indices, in time order, of volumes with equal values in adjacent planes."""
        self._look_into(stacks)
        return self._sliding[_make_key(stacks)]

    def _look_into(self, stacks: Sequence[Sequence[Slice]]) -> None:
        key = _make_key(stacks)
        if key not in self._borrowed:
            slabs = np.stack([_read_slab(stack) for stack in stacks])
            self._borrowed[key] = find_borrowed(slabs, [s[0].scaling.slope for s in stacks])
            self._sliding[key] = find_sliding(slabs)

    def blocks(self, stack: Sequence[Slice]) -> NDArray[np.float32]:
        """Return block means of some planes, (plane, row, column)."""
        return self._find_look(stack).blocks

    def _find_look(self, stack: Sequence[Slice]) -> _Look:
        # The slices are stored, so that no other slices can get this id later.
        key = id(stack[0])
        if key not in self._known:
            self._known[key] = _make_look(stack)
        return self._known[key]


def enhancement(before: NDArray[np.float32], after: NDArray[np.float32]) -> float:
    """Return the fraction of the body that brightens minus the fraction that darkens (by 15 %).

    A gain that changes all voxels equally is removed first. The result is near 0 if the body only
    moved.

    Parameters
    ----------
    before, after
        Block means at the same positions.
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
    """Return the receiver gain of one volume relative to another; 1.0 if unchanged.

    Contrast leaves the noise of air unchanged, while the receiver gain changes air and body
    equally.

    Parameters
    ----------
    before, after
        Block means at the same positions.
    least
        Smallest relative change of air and body that counts as gain.
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
    """Return whether contrast arrived, based on `enhancement` and on patches that brighten.

    The result is CAME if `enhancement` is at least 0.05 and some patch rises by 30 %. It is NONE if
    `enhancement` is between -0.04 and 0.04 and no patch rises. Otherwise it is UNCLEAR. Motion
    alone causes no patch, and a lesion alone causes only a small `enhancement`.

    Parameters
    ----------
    before, after
        Block means at the same positions, (plane, row, column).
    """
    share = enhancement(before, after)
    has_patch = _has_patch(before, after)
    if share >= CONTRAST and has_patch:
        return Contrast.CAME
    return Contrast.NONE if abs(share) < NO_CONTRAST and not has_patch else Contrast.UNCLEAR


def _has_patch(before: NDArray[np.float32], after: NDArray[np.float32]) -> bool:
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
    for x, y, step in ((a, b, steps[1]), (b, a, steps[0])):
        factor = float(x @ y) / float(x @ x)
        if float(np.abs(y - factor * x).max()) <= abs(step):
            return True
    return False


def is_difference(
    found: NDArray[np.float32], after: NDArray[np.float32], before: NDArray[np.float32]
) -> bool:
    """Return whether ``found`` is a subtraction ``a * after + b * before + c`` with -b/a near 1.

    Voxels at the lowest value of `found` are ignored, because subtractions are clipped at zero. The
    contrast between body and air must be less than in `before`; otherwise `before` is the
    difference and `found` is a scan.
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
    air = values[~body]
    return float(np.median(values[body]) - np.median(air)) if len(air) else 0.0


def _make_look(stack: Sequence[Slice]) -> _Look:
    places = np.unique(np.linspace(0.2, 0.8, _PLANES) * (len(stack) - 1) + 0.5).astype(int)
    pieces = [stack[index] for index in sorted(set(places.tolist()))]
    planes = np.stack([read_quantity(image) for image in pieces])
    blocks = block_means(planes)
    flat = planes.ravel()
    # Rows mostly have an even length, so an odd step samples other columns in each row.
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
    first = max((len(stack) - SLAB) // 2, 0)
    return np.stack([read_quantity(plane) for plane in stack[first : first + SLAB]])


def _find_inside(blocks: NDArray[np.float32]) -> NDArray[np.bool_]:
    body = np.pad(blocks > _BODY * float(np.percentile(blocks, 99)), ((0, 0), (1, 1), (1, 1)))
    rows, columns = slice(1, -1), slice(1, -1)
    inner: NDArray[np.bool_] = body[:, rows, columns].copy()
    for beside in (body[:, :-2, columns], body[:, 2:, columns], body[:, rows, :-2],
                   body[:, rows, 2:]):  # fmt: skip
        inner &= beside
    return inner


def read_quantity(piece: Slice) -> NDArray[np.float32]:
    """Return the values of a plane after applying its scaling."""
    plane = read_plane(piece).astype(np.float32)
    return plane * np.float32(piece.scaling.slope) + np.float32(piece.scaling.intercept)
