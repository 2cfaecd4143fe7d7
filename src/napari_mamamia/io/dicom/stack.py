"""Planes of one DICOM series -> stacks on one grid, one for each time; or a refusal."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.grid import Grid
from napari_mamamia.io.dicom.slices import Slice

# Our own choices, far above what rounding in headers causes and far below a slice.
_SAME_COSINE: Final = 1e-4
_SAME_MM: Final = 0.01
_EQUAL_GAPS: Final = 0.01
_STRAIGHT: Final = 1e-3
FEWEST: Final = 3
"""With fewer slices there are no two gaps to compare, and a missing slice would not show."""
_MOVED_SHARE: Final = 0.15
_MOVED_MM: Final = 0.3
"""How far, as a share of the gap between slices and at most, the table may move between phases."""


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """Planes of one series by where they lie.

    `rows` holds, for each place up the stack, the planes that show it, as many at each; their
    order in time is not known yet. `grid` is that of one stack.
    """

    rows: tuple[tuple[Slice, ...], ...]
    grid: Grid

    @property
    def n_times(self) -> int:
        """How often each place is shown."""
        return len(self.rows[0])

    @property
    def slices(self) -> tuple[Slice, ...]:
        """All planes, place by place."""
        return tuple(piece for row in self.rows for piece in row)

    @property
    def name(self) -> str:
        """The series as messages name it."""
        return self.rows[0][0].series_name


def find_places(slices: Sequence[Slice], *, allow_thin: bool = False) -> Places:
    """Return the planes of one series by place; `allow_thin` takes stacks of one or two slices.

    Raises
    ------
    CaseError
        If they differ in size, spacing, type or orientation, places are shown unequally often,
        fewer than 3 are there, gaps are unequal, or the stack is slanted.
    """
    first = slices[0]
    require_one_orientation(slices)
    _require_equal(slices, "size (rows, columns)", lambda s: s.shape)
    _require_equal(slices, "type of values", lambda s: str(s.stored))
    _require_close(slices, "PixelSpacing", lambda s: s.spacing_mm, _SAME_MM)
    row, column, normal = _find_directions(first)
    heights = np.array([piece.position_mm for piece in slices]) @ normal
    order = np.argsort(heights, kind="stable")
    rows = _group_rows([slices[i] for i in order], heights[order])
    _require_equal_rows(rows)
    if not allow_thin:
        _require_enough(rows)
    step = _find_step(rows, normal) if len(rows) > 1 else _require_thickness(first) * normal
    _require_in_line(rows, step)
    affine = np.eye(4)
    affine[:3, 0] = row * first.spacing_mm[1]
    affine[:3, 1] = column * first.spacing_mm[0]
    affine[:3, 2] = step
    affine[:3, 3] = rows[0][0].position_mm
    # DICOM's first two axes run to the left and to the back, ours to the right and the front.
    ras = np.diag([-1.0, -1.0, 1.0, 1.0]) @ affine
    return Places(rows, Grid((len(rows), *first.shape), ras))


def require_one_orientation(slices: Sequence[Slice]) -> None:
    """Raise `CaseError` where planes of one series do not lie parallel to each other."""
    _require_close(slices, "orientation", lambda s: s.orientation, _SAME_COSINE)


def _find_directions(piece: Slice) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return unit vectors (LPS) along a row, down a column, and along their normal."""
    row, column = np.array(piece.orientation[:3]), np.array(piece.orientation[3:])
    lengths = np.linalg.norm(row), np.linalg.norm(column)
    if not np.allclose(lengths, 1.0, atol=_STRAIGHT) or abs(row @ column) > _STRAIGHT:
        raise CaseError(
            f"expected two directions at right angles as ImageOrientationPatient of {piece.file}, "
            f"got {piece.orientation}: export the series again"
        )
    return row, column, np.cross(row, column)


def _require_equal(slices: Sequence[Slice], what: str, value: Callable[[Slice], object]) -> None:
    for other in slices[1:]:
        if value(other) != value(slices[0]):
            raise _make_difference_error(slices[0], other, what, value)


def _require_close(
    slices: Sequence[Slice], what: str, value: Callable[[Slice], Any], tolerance: float
) -> None:
    values = np.array([value(piece) for piece in slices])
    off = np.abs(values - values[0]).max(axis=1)
    worst = int(np.argmax(off))
    if off[worst] > tolerance:
        raise _make_difference_error(slices[0], slices[worst], what, value)


def _make_difference_error(
    a: Slice, b: Slice, what: str, value: Callable[[Slice], object]
) -> CaseError:
    return CaseError(
        f"expected one {what} in {a.series_name}, got {value(a)} in {a.name} and {value(b)} in "
        f"{b.name}: split the series so that each part has one"
    )


def _group_rows(ordered: Sequence[Slice], heights: NDArray[Any]) -> tuple[tuple[Slice, ...], ...]:
    """Return the planes by height; heights that differ as little as a table moves are one place."""
    gaps = np.diff(heights)
    widest = float(gaps.max()) if len(gaps) else 0.0
    same = max(_SAME_MM, min(_MOVED_SHARE * widest, _MOVED_MM))
    starts = [int(i) for i in np.flatnonzero(np.diff(heights, prepend=-np.inf) > same)]
    ends = [*starts[1:], len(ordered)]
    return tuple(tuple(ordered[a:b]) for a, b in zip(starts, ends, strict=True))


def _require_equal_rows(rows: Sequence[Sequence[Slice]]) -> None:
    """Refuse places that are shown unequally often, and too few of them."""
    name = rows[0][0].series_name
    counts = np.array([len(row) for row in rows])
    usual = int(np.median(counts))
    odd = int(np.argmax(counts != usual))
    if counts[odd] != usual and usual == 1:
        raise CaseError(
            f"expected each slice of {name} once, but {rows[odd][0].name} and "
            f"{rows[odd][1].name} show the same place: remove one of them"
        )
    if counts[odd] != usual:
        fate = "a slice is missing there" if counts[odd] < usual else "a slice is doubled there"
        raise CaseError(
            f"expected equal stacks in {name}, which shows most of its {len(rows)} places {usual} "
            f"times, but that of {rows[odd][0].name} {counts[odd]} times: {fate}; export the "
            "series again, or complete it"
        )


def _require_enough(rows: Sequence[Sequence[Slice]]) -> None:
    name = rows[0][0].series_name
    if len(rows) < FEWEST:
        raise CaseError(
            f"expected at least {FEWEST} slices in {name}, got {len(rows)} "
            f"({rows[0][0].name}): with fewer nobody can tell whether slices are missing; "
            "add the others, or take it as it is (--allow-thin)"
        )


def _require_thickness(piece: Slice) -> float:
    if not piece.thickness_mm or piece.thickness_mm <= 0:
        raise CaseError(
            f"expected SliceThickness above 0 mm in {piece.file}, the only slice of "
            f"{piece.series_name}, got {piece.thickness_mm}: export the series again with it"
        )
    return piece.thickness_mm


def _find_step(rows: Sequence[Sequence[Slice]], normal: NDArray[Any]) -> NDArray[Any]:
    """Return the vector (LPS, mm) from one slice to the next; refuse gaps and slants."""
    ordered = [row[0] for row in rows]
    name = ordered[0].series_name
    positions = np.array([[piece.position_mm for piece in row] for row in rows]).mean(axis=1)
    gaps = np.diff(positions @ normal)
    usual = float(np.median(gaps))
    worst = int(np.argmax(np.abs(gaps - usual)))
    if abs(gaps[worst] - usual) > _EQUAL_GAPS * usual:
        raise CaseError(
            f"expected equal gaps in {name}, which are {usual:.3f} mm, but {ordered[worst].name} "
            f"and {ordered[worst + 1].name} are {gaps[worst]:.3f} mm apart: "
            "add the missing slice or remove the odd one"
        )
    step: NDArray[Any] = (positions[-1] - positions[0]) / (len(ordered) - 1)
    aside = float(np.linalg.norm(step - (step @ normal) * normal)) / usual
    straight = positions[0] + np.arange(len(ordered))[:, None] * step
    wobble = float(np.abs(positions - straight).max()) / usual
    if aside > _STRAIGHT or wobble > _EQUAL_GAPS:
        degrees = np.degrees(np.arctan(aside))
        raise CaseError(
            f"expected the slices of {name} straight above each other, but they shift sideways "
            f"({degrees:.1f} degrees, as with a tilted gantry): "
            "export the series again, or convert the exam to NIfTI"
        )
    return step


def _require_in_line(rows: Sequence[Sequence[Slice]], step: NDArray[Any]) -> None:
    """Refuse planes that lie beside the first one of their place."""
    height = float(np.linalg.norm(step))
    for row in rows:
        positions = np.array([piece.position_mm for piece in row])
        off = np.abs(positions - positions[0]).max(axis=1)
        worst = int(np.argmax(off))
        if off[worst] > min(_MOVED_SHARE * height, _MOVED_MM):
            raise CaseError(
                f"expected planes of one place to lie over each other in {row[0].series_name}, but "
                f"{row[0].name} and {row[worst].name} are {off[worst]:.2f} mm apart sideways: the "
                "table moved between the phases; split the series"
            )
