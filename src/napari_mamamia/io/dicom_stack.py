"""Slices of one DICOM series -> one complete, straight stack, or a refusal."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.grid import Grid
from napari_mamamia.io.dicom_slices import Slice

__all__ = ["Stack", "make_stack"]

# Our own choices, far above what rounding in headers causes and far below a slice.
_SAME_COSINE: Final = 1e-4
_SAME_MM: Final = 0.01
_EQUAL_GAPS: Final = 0.01
_STRAIGHT: Final = 1e-3
_FEWEST: Final = 3
"""With fewer slices there are no two gaps to compare, and a missing slice would not show."""


@dataclass(frozen=True, slots=True)
class Stack:
    """The slices of one series, ordered along their normal, and their grid."""

    slices: tuple[Slice, ...]
    grid: Grid

    @property
    def name(self) -> str:
        """The series as messages name it."""
        return self.slices[0].series_name

    def clock_s(self, name: str) -> float | None:
        """Return the earliest time of its slices under one clock, None where one has none."""
        times = [piece.clocks_s.get(name) for piece in self.slices]
        known = [time for time in times if time is not None]
        return min(known) if len(known) == len(times) else None


def make_stack(slices: Sequence[Slice]) -> Stack:
    """Return the slices of one series as a stack.

    Raises
    ------
    CaseError
        If they differ in size, spacing, type or orientation, several show one place (a 4-D
        series), fewer than 3 are there, gaps are unequal, or the stack is slanted.
    """
    first = slices[0]
    _require_close(slices, "orientation", lambda s: s.orientation, _SAME_COSINE)
    _require_equal(slices, "size (rows, columns)", lambda s: s.shape)
    _require_equal(slices, "type of values", lambda s: str(s.stored))
    _require_close(slices, "PixelSpacing", lambda s: s.spacing_mm, _SAME_MM)
    row, column, normal = _directions(first)
    heights = np.array([np.dot(s.position_mm, normal) for s in slices])
    order = np.argsort(heights, kind="stable")
    ordered = tuple(slices[i] for i in order)
    _require_one_volume(ordered, heights[order])
    step = _step(ordered, heights[order], normal)
    affine = np.eye(4)
    affine[:3, 0] = row * first.spacing_mm[1]
    affine[:3, 1] = column * first.spacing_mm[0]
    affine[:3, 2] = step
    affine[:3, 3] = ordered[0].position_mm
    ras = np.diag([-1.0, -1.0, 1.0, 1.0]) @ affine
    return Stack(ordered, Grid((len(ordered), *first.shape), ras))


def _directions(piece: Slice) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
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
            raise _differ(slices[0], other, what, value)


def _require_close(
    slices: Sequence[Slice], what: str, value: Callable[[Slice], Any], tolerance: float
) -> None:
    values = np.array([value(piece) for piece in slices])
    off = np.abs(values - values[0]).max(axis=1)
    worst = int(np.argmax(off))
    if off[worst] > tolerance:
        raise _differ(slices[0], slices[worst], what, value)


def _differ(a: Slice, b: Slice, what: str, value: Callable[[Slice], object]) -> CaseError:
    return CaseError(
        f"expected one {what} in {a.series_name}, got {value(a)} in {a.file} and {value(b)} in "
        f"{b.file}: split the series so that each part has one"
    )


def _require_one_volume(ordered: Sequence[Slice], heights: NDArray[Any]) -> None:
    """Refuse a series that shows some place more than once, or has too few slices."""
    name = ordered[0].series_name
    starts = np.flatnonzero(np.diff(heights, prepend=-np.inf) > _SAME_MM)
    counts = np.diff(starts, append=len(ordered))
    if counts.min() > 1:
        raise CaseError(
            f"expected one time point in {name}, but it shows each of its {len(starts)} places "
            f"{counts.max()} times (a 4-D series), which cannot be taken apart yet: export one "
            "series for each phase, or convert the exam to NIfTI"
        )
    if counts.max() > 1:
        at = int(starts[int(np.argmax(counts))])
        raise CaseError(
            f"expected each slice of {name} once, but {ordered[at].file} and "
            f"{ordered[at + 1].file} show the same place: remove one of them"
        )
    if len(ordered) < _FEWEST:
        raise CaseError(
            f"expected at least {_FEWEST} slices in {name}, got {len(ordered)} "
            f"({ordered[0].file}): with fewer nobody can tell whether slices are missing; "
            "add the others or move this series (a localiser?) out of the folder"
        )


def _step(ordered: Sequence[Slice], heights: NDArray[Any], normal: NDArray[Any]) -> NDArray[Any]:
    """Return the vector (LPS, mm) from one slice to the next; refuse gaps and slants."""
    name = ordered[0].series_name
    gaps = np.diff(heights)
    usual = float(np.median(gaps))
    worst = int(np.argmax(np.abs(gaps - usual)))
    if abs(gaps[worst] - usual) > _EQUAL_GAPS * usual:
        raise CaseError(
            f"expected equal gaps in {name}, which are {usual:.3f} mm, but {ordered[worst].file} "
            f"and {ordered[worst + 1].file} are {gaps[worst]:.3f} mm apart: "
            "add the missing slice or remove the odd one"
        )
    positions = np.array([piece.position_mm for piece in ordered])
    step: NDArray[Any] = (positions[-1] - positions[0]) / (len(ordered) - 1)
    aside = np.linalg.norm(step - (step @ normal) * normal) / usual
    straight = positions[0] + np.arange(len(ordered))[:, None] * step
    wobble = float(np.abs(positions - straight).max()) / usual
    if aside > _STRAIGHT or wobble > _EQUAL_GAPS:
        raise CaseError(
            f"expected the slices of {name} straight above each other, but they shift sideways: "
            "export the series again, or convert the exam to NIfTI"
        )
    return step
