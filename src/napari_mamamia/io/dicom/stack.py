"""Sort the planes of a DICOM series into one stack for each time, all on the same grid."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.choices import Clock
from napari_mamamia.core.errors import CaseError, Remedy
from napari_mamamia.core.grid import Grid
from napari_mamamia.io.dicom.slices import Slice

_STEPS: Final = (1.0, 0.1, 0.01, 0.001, 0.0001)
_COARSEST_COSINE: Final = 0.01
"""Largest error of rounded direction cosines (our choice).

Rounding to two digits causes errors of up to 0.7 degrees. Rounding to one digit causes errors of up
to 7 degrees, which is too coarse.
"""
_CLEAR_STEPS: Final = 4.0
"""Number of rounding steps above which a single gap cannot be two gaps.

Each position is off by half a step, so two gaps are at least 3 steps longer than one.
"""
_UNROUNDED: Final = 0.01
"""Largest relative error of gaps that are not rounded."""
# These limits are our choice, far above rounding errors in headers and far below the gap between
# slices.
_SAME_COSINE: Final = 1e-4
_SAME_MM: Final = 0.01
_EQUAL_GAPS: Final = 0.01
_STRAIGHT: Final = 1e-3
FEWEST: Final = 3
"""Smallest number of slices in a stack.

Fewer slices give no two gaps to compare, so a missing slice would not be noticed.
"""
_MOVED_SHARE: Final = 0.15
_MOVED_MM: Final = 0.3
"""Largest table movement between phases in mm."""


def rounding_step(numbers: NDArray[Any]) -> float:
    """Return the decimal step of which all numbers are multiples, or 0.0 if it is below 0.0001.

    Examples
    --------
    >>> rounding_step(np.array([1.2, 2.5, -3.0]))
    0.1
    """
    for step in _STEPS:
        if np.allclose(numbers / step, np.round(numbers / step), rtol=0, atol=1e-6):
            return step
    return 0.0


def nearest_axes(axes: NDArray[Any], normal: NDArray[Any] | None = None) -> NDArray[Any] | None:
    """Return exact directions whose rounded values are `axes`, or None.

    Parameters
    ----------
    axes
        Direction along a row and down a column, (2, 3), as in the header.
    normal
        Unit vector from slice to slice, if the slice positions determine it.
    """
    step = rounding_step(axes)
    if not 0 < step <= _COARSEST_COSINE:
        return None
    in_plane = axes if normal is None else axes - np.outer(axes @ normal, normal)
    u, _, right = np.linalg.svd(in_plane, full_matrices=False)
    nearest: NDArray[Any] = u @ right
    return nearest if float(np.abs(nearest - axes).max()) <= step else None


def fit_rounded_gap(
    positions: NDArray[Any], normal: NDArray[Any], steps: Sequence[float], *, may_be_coarse: bool
) -> float | None:
    """Return the gap in mm between slices whose positions are evenly spaced except for rounding.

    Slices k and l are ``l - k`` gaps apart along `normal`, within one rounding step of each
    coordinate, so errors do not accumulate. The result is the middle of the possible gaps, or None
    if no gap fits.

    Parameters
    ----------
    positions
        Positions of the slices in order, (slice, 3), in mm.
    normal
        Unit vector from slice to slice.
    steps
        Rounding step of each coordinate.
    may_be_coarse
        Whether other elements show that no slice is missing; a coarse rounding could hide one.
    """
    mean = float((positions[-1] - positions[0]) @ normal) / (len(positions) - 1)
    if max(steps) == 0 or (mean <= _CLEAR_STEPS * max(steps) and not may_be_coarse):
        return None
    first, later = np.triu_indices(len(positions), 1)
    low, high = 0.0, np.inf
    for axis, step in enumerate(steps):
        apart = positions[later, axis] - positions[first, axis]
        reach = max(step, _UNROUNDED * mean) + 1e-6
        if abs(normal[axis]) < 1e-6:
            if float(np.abs(apart).max()) > reach:
                return None
            continue
        along = (later - first) * normal[axis]
        bounds = np.sort([(apart - reach) / along, (apart + reach) / along], axis=0)
        low, high = max(low, float(bounds[0].max())), min(high, float(bounds[1].min()))
    return (low + high) / 2 if low <= high else None


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """The planes of one series, sorted by slice position.

    `rows` holds the planes that show each slice position, from the bottom of the stack. Each
    position has the same number of planes, which are not yet ordered in time. `grid` is the grid of
    one stack. `notes` are warnings about rounded positions.
    """

    rows: tuple[tuple[Slice, ...], ...]
    grid: Grid
    notes: tuple[str, ...] = ()

    @property
    def n_times(self) -> int:
        """Number of planes at each slice position."""
        return len(self.rows[0])

    @property
    def slices(self) -> tuple[Slice, ...]:
        """All planes, sorted by slice position."""
        return tuple(plane for row in self.rows for plane in row)

    @property
    def name(self) -> str:
        """Name of the series in messages."""
        return self.rows[0][0].series_name


def find_places(slices: Sequence[Slice], *, allow_thin: bool = False) -> Places:
    """Return the planes of a series by slice position; `allow_thin` accepts one or two slices.

    Raises
    ------
    CaseError
        If planes differ in size, spacing, type or orientation, if slice positions have different
        numbers of planes, if there are fewer than 3 positions, if gaps are unequal, or if the stack
        is slanted.
    """
    first = slices[0]
    require_one_orientation(slices)
    _require_equal(slices, "size (rows, columns)", lambda s: s.shape)
    _require_close(slices, "PixelSpacing", lambda s: s.spacing_mm, _SAME_MM)
    axes = _find_axes(first)
    heights = np.array([image.position_mm for image in slices]) @ np.cross(*axes)
    order = np.argsort(heights, kind="stable")
    rows = _group_rows([slices[i] for i in order], heights[order])
    _require_equal_rows(rows)
    notes: tuple[str, ...] = ()
    if not allow_thin:
        _require_enough(rows)
    if len(rows) > 1:
        axes, step, notes = _find_step(rows, axes)
    else:
        step = _require_thickness(first) * np.cross(*axes)
    _require_in_line(rows, step)
    affine = np.eye(4)
    affine[:3, 0] = axes[0] * first.spacing_mm[1]
    affine[:3, 1] = axes[1] * first.spacing_mm[0]
    affine[:3, 2] = step
    affine[:3, 3] = rows[0][0].position_mm
    # DICOM's first two axes point left and posterior; our axes point right and anterior.
    ras = np.diag([-1.0, -1.0, 1.0, 1.0]) @ affine
    if not np.array_equal(axes, np.reshape(first.orientation, (2, 3))):
        cosines = ", ".join(f"{number:g}" for number in first.orientation)
        notes = (
            *notes,
            (
                f"ImageOrientationPatient of {first.header.label} is rounded ({cosines}), so the "
                "nearest perpendicular directions were used"
            ),
        )
    return Places(rows, Grid((len(rows), *first.shape), ras), notes)


def require_one_orientation(slices: Sequence[Slice]) -> None:
    """Raise `CaseError` if the planes of a series are not parallel."""
    _require_close(slices, "orientation", lambda s: s.orientation, _SAME_COSINE)


def _find_axes(piece: Slice) -> NDArray[Any]:
    """Return unit vectors (LPS) along a row and down a column, (2, 3)."""
    axes: NDArray[Any] = np.reshape(piece.orientation, (2, 3))
    is_straight = abs(axes[0] @ axes[1]) <= _STRAIGHT
    if is_straight and np.allclose(np.linalg.norm(axes, axis=1), 1.0, atol=_STRAIGHT):
        return axes
    nearest = nearest_axes(axes)
    if nearest is None:
        raise CaseError(
            f"expected ImageOrientationPatient of {piece.file} to be two perpendicular "
            f"directions, but it is {', '.join(f'{number:g}' for number in piece.orientation)}, "
            "which rounding to two or more digits does not explain: export the series again"
        )
    return nearest


def _require_equal(slices: Sequence[Slice], what: str, value: Callable[[Slice], object]) -> None:
    for other in slices[1:]:
        if value(other) != value(slices[0]):
            raise _make_difference_error(slices[0], other, what, value)


def _require_close(
    slices: Sequence[Slice], what: str, value: Callable[[Slice], Any], tolerance: float
) -> None:
    values = np.array([value(image) for image in slices])
    off = np.abs(values - values[0]).max(axis=1)
    worst = int(np.argmax(off))
    if off[worst] > tolerance:
        raise _make_difference_error(slices[0], slices[worst], what, value)


def _make_difference_error(
    a: Slice, b: Slice, what: str, value: Callable[[Slice], object]
) -> CaseError:
    return CaseError(
        f"expected the same {what} throughout {a.series_name}, but it is {value(a)} in {a.name} "
        f"and {value(b)} in {b.name}: export the series again"
    )


def _group_rows(ordered: Sequence[Slice], heights: NDArray[Any]) -> tuple[tuple[Slice, ...], ...]:
    gaps = np.diff(heights)
    widest = float(gaps.max()) if len(gaps) else 0.0
    same = max(_SAME_MM, min(_MOVED_SHARE * widest, _MOVED_MM))
    starts = [int(i) for i in np.flatnonzero(np.diff(heights, prepend=-np.inf) > same)]
    ends = [*starts[1:], len(ordered)]
    return tuple(tuple(ordered[a:b]) for a, b in zip(starts, ends, strict=True))


def _require_equal_rows(rows: Sequence[Sequence[Slice]]) -> None:
    name = rows[0][0].series_name
    counts = np.array([len(row) for row in rows])
    usual = int(np.median(counts))
    odd = int(np.argmax(counts != usual))
    if counts[odd] != usual and usual == 1:
        raise CaseError(
            f"expected one image for each slice position of {name}, but {rows[odd][0].name} and "
            f"{rows[odd][1].name} show the same position: move the surplus file out of the folder"
        )
    if usual not in counts:
        times = " and ".join(
            f"{k} at {n} of them" for k, n in sorted(Counter(counts.tolist()).items())
        )
        raise CaseError(
            f"expected the same number of images at each of the {len(rows)} slice positions of "
            f"{name}, but found {times}, possibly because the table moved between phases; images "
            "are not resampled: import only the phases of one table position"
        )
    if counts[odd] != usual:
        fate = (
            "a slice is missing at this position"
            if counts[odd] < usual
            else "a slice is duplicated at this position"
        )
        raise CaseError(
            f"expected {usual} images at each of the {len(rows)} slice positions in {name}, but "
            f"found {counts[odd]} at the position of {rows[odd][0].name}: {fate}; export the "
            "series again with all its slices"
        )


def _require_enough(rows: Sequence[Sequence[Slice]]) -> None:
    name = rows[0][0].series_name
    if len(rows) < FEWEST:
        raise CaseError(
            f"expected at least {FEWEST} slices in {name}, but found {len(rows)} "
            f"({rows[0][0].name}), so a missing slice would not be noticed: add the other slices, "
            "or accept a stack of one or two slices",
            remedies=[Remedy("allow_thin")],
        )


def _require_thickness(piece: Slice) -> float:
    if not piece.thickness_mm or piece.thickness_mm <= 0:
        raise CaseError(
            f"expected SliceThickness to be above 0 mm in {piece.file}, the only slice of "
            f"{piece.series_name}, but it is {piece.thickness_mm}: export the series again with a "
            "valid SliceThickness"
        )
    return piece.thickness_mm


def _find_step(
    rows: Sequence[Sequence[Slice]], axes: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any], tuple[str, ...]]:
    """Return the axes, the vector (LPS, mm) to the next slice, and warnings about rounding.

    Gaps and slants that rounding does not explain raise an error.
    """
    first = rows[0][0]
    told_mm = np.array([[plane.position_mm for plane in row] for row in rows])
    positions = told_mm.mean(axis=1)
    mean: NDArray[Any] = (positions[-1] - positions[0]) / (len(rows) - 1)
    turned = nearest_axes(np.reshape(first.orientation, (2, 3)), mean / np.linalg.norm(mean))
    candidates = [axes] if turned is None else [axes, turned]
    for pair in candidates:
        if _is_even(positions, mean, np.cross(*pair)):
            return pair, mean, ()
    # A constant coordinate shows no rounding step.
    steps = [rounding_step(c) if np.ptp(c) else 0.0 for c in np.moveaxis(told_mm, -1, 0)]
    is_whole = _tells_no_gap(rows, mean)
    for pair in candidates:
        normal = np.cross(*pair)
        gap_mm = fit_rounded_gap(positions, normal, steps, may_be_coarse=is_whole)
        if gap_mm is not None:
            note = (
                f"ImagePositionPatient of {first.header.label} is rounded to {max(steps):g} mm, "
                f"so its gaps differ: the mean gap of {gap_mm:.3f} mm was used"
            )
            return pair, gap_mm * normal, (note,)
    raise _make_step_error(rows, positions, mean, np.cross(*axes))


def _is_even(positions: NDArray[Any], step: NDArray[Any], normal: NDArray[Any]) -> bool:
    gaps = np.diff(positions @ normal)
    usual = float(np.median(gaps))
    aside = float(np.linalg.norm(step - (step @ normal) * normal))
    wobble = np.abs(positions - positions[0] - np.arange(len(positions))[:, None] * step).max()
    return bool(
        np.abs(gaps - usual).max() <= _EQUAL_GAPS * usual
        and aside <= _STRAIGHT * usual
        and wobble <= _EQUAL_GAPS * usual
    )


def _tells_no_gap(rows: Sequence[Sequence[Slice]], mean: NDArray[Any]) -> bool:
    """Return whether the headers prove that no slice is missing.

    InstanceNumbers change by one from slice to slice, always up or always down, and the thickness,
    if given, exceeds the gap that one more slice would leave.
    """
    numbers = [[p.clocks.get(Clock.INSTANCE_NUMBER, np.nan) for p in row] for row in rows]
    steps = np.unique(np.diff(np.sort(numbers, axis=1), axis=0))
    told_mm = rows[0][0].thickness_mm or np.inf
    with_one_more = float(np.linalg.norm(mean)) * (1 - 1 / len(rows))
    is_numbered_through = len(steps) == 1 and bool(np.isfinite(steps[0]))
    return is_numbered_through and told_mm > with_one_more * (1 + _STRAIGHT)


def _make_step_error(
    rows: Sequence[Sequence[Slice]],
    positions: NDArray[Any],
    step: NDArray[Any],
    normal: NDArray[Any],
) -> CaseError:
    name = rows[0][0].series_name
    gaps = np.diff(positions @ normal)
    usual = float(np.median(gaps))
    worst = int(np.argmax(np.abs(gaps - usual)))
    if abs(gaps[worst] - usual) > _EQUAL_GAPS * usual:
        way = "export the series again with all its slices"
        if gaps[worst] < usual:
            way = (
                "move the images at the odd position out of the folder, or export the series again"
            )
        return CaseError(
            f"expected equal gaps of {usual:.3f} mm in {name}, but {rows[worst][0].name} "
            f"and {rows[worst + 1][0].name} are {gaps[worst]:.3f} mm apart, more than rounding "
            f"explains: {way}"
        )
    aside = float(np.linalg.norm(step - (step @ normal) * normal)) / usual
    return CaseError(
        f"expected the slices of {name} to lie straight above each other, but they shift sideways "
        f"by {np.degrees(np.arctan(aside)):.1f} degrees, possibly because ImageOrientationPatient "
        "is wrong: export the series again"
    )


def _require_in_line(rows: Sequence[Sequence[Slice]], step: NDArray[Any]) -> None:
    height = float(np.linalg.norm(step))
    for row in rows:
        positions = np.array([plane.position_mm for plane in row])
        off = np.abs(positions - positions[0]).max(axis=1)
        worst = int(np.argmax(off))
        if off[worst] > min(_MOVED_SHARE * height, _MOVED_MM):
            raise CaseError(
                f"expected planes at the same position to coincide in {row[0].series_name}, but "
                f"{row[0].name} and {row[worst].name} are {off[worst]:.2f} mm apart sideways, "
                "because the table moved between the phases; images are not resampled: import "
                "only the phases of one table position"
            )
