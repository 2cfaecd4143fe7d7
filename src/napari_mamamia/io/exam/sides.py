"""Join two breasts, acquired as two sagittal stacks, in one exam on one grid.

Nothing is resampled: the slices of both breasts lie on one grid, and the slices between them are
padded. If the geometry, sequence or times of the two stacks differ, an error is raised.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.choices import Clock, Sides
from napari_mamamia.core.errors import CaseError, FormatError, Remedy
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.records import CaseWarning
from napari_mamamia.io.dicom.parts import Image, parts_of
from napari_mamamia.io.dicom.roles import PHASES
from napari_mamamia.io.dicom.slices import Slice
from napari_mamamia.io.exam.exam import Exam, Joined, SideSlices, find_exam
from napari_mamamia.io.exam.selectors import Selection
from napari_mamamia.io.exam.table import SeriesRow
from napari_mamamia.io.exam.values import name_scaling

SIDES: Final = ("left", "right")
_MOVED_SHARE: Final = 0.15
_MOVED_MM: Final = 0.3
"""Largest distance in mm of one side from the grid of the other side.

A limit relative to the slice gap also applies. This is the table movement that is accepted between
two phases (`stack`).
"""
_SAME: Final = 1e-3
_ALONE_S: Final = 300.0
"""Largest time in s between two sides that have a single phase each (our choice)."""
_AS_TWO: Final = "import them as two cases"
_TWO: Final = Remedy("sides", (Sides.TWO,))


def is_split(
    images: Sequence[Image],
    *,
    clock: Clock | None = None,
    selection: Selection,
    allow_thin: bool = False,
) -> bool:
    """Return whether an exam consists of two stacks, one for each breast.

    The result is also true if one of the stacks is invalid, so that the user sees the reason.
    """
    if not _has_both(images, selection):
        return False
    try:
        exam = find_exam(
            images, "", clock=clock, selection=replace(selection, side=SIDES[0]),
            allow_thin=allow_thin,
        )  # fmt: skip
    except (CaseError, FormatError):
        return True
    return _has_side(exam, SIDES[0])


def find_joined(
    images: Sequence[Image],
    name: str,
    *,
    clock: Clock | None = None,
    selection: Selection,
    allow_thin: bool = False,
) -> Exam:
    """Return the exam of both breasts on one grid, or the result of `find_exam`.

    Slices between the two breasts contain 0. `times_s` are those of the side that was acquired
    first.

    Raises
    ------
    FormatError
        As in `find_exam`.
    CaseError
        As in `find_exam`, and if the two sides differ in orientation, spacing, size, sequence, or
        number or times of phases, or do not lie on one grid.
    """
    sides = SIDES if _has_both(images, selection) else ("",)
    exams = [
        find_exam(images, name, clock=clock, selection=replace(selection, side=side),
                  allow_thin=allow_thin)
        for side in sides
    ]  # fmt: skip
    if len(exams) < 2 or not all(map(_has_side, exams, sides)):
        return exams[0]
    return _join_sides(exams[0], exams[1], name)


def _has_both(images: Sequence[Image], selection: Selection) -> bool:
    slices = [plane for image in images if isinstance(image, tuple) for plane in image]
    chosen = [part for part in parts_of(slices, allow_thin=True) if selection.uses(part)]
    return set(SIDES) <= {part.side for part in chosen if part.role in PHASES}


def shows_both(exam: Exam) -> bool:
    """Return whether the phases of an exam form two stacks, one for each breast."""
    return all(_has_side(exam, side) for side in SIDES)


def _has_side(exam: Exam, side: str) -> bool:
    return any(_is_of(row, side) for row in exam.rows if row.phases)


def _join_sides(left: Exam, right: Exam, name: str) -> Exam:
    _require_same(left, right, name)
    times_s, notes = _joint_times(left, right, name)
    step = left.grid.affine[:3, 2]
    is_left_first = bool((right.grid.affine[:3, 3] - left.grid.affine[:3, 3]) @ step > 0)
    (low, low_side), (high, high_side) = (
        ((left, "left"), (right, "right")) if is_left_first else ((right, "right"), (left, "left"))
    )
    start, off_mm = _place_on(low.grid, high.grid, name)
    n_low, n_high = low.grid.shape[0], high.grid.shape[0]
    grid = Grid((start + n_high, *low.grid.shape[1:]), low.grid.affine)
    joined = Joined(
        (SideSlices(low_side, 0, n_low - 1), SideSlices(high_side, start, start + n_high - 1))
    )
    padded = f"slices {n_low} to {start - 1} between them contain {joined.padding}"
    notes += [
        f"the left and the right breast were joined, as requested; "
        f"{padded if start > n_low else 'they touch'}"
        + f", and the {high_side} one is {off_mm:.2f} mm off the grid"
        * (off_mm >= 0.01)
    ]
    rows = [row for row in left.rows if not _is_of(row, "right")]
    rows += [row for row in right.rows if _is_of(row, "right")]
    stacks = tuple(
        (*a, *_make_padding(a[-1], start - n_low), *b)
        for a, b in zip(low.stacks, high.stacks, strict=True)
    )
    return Exam(
        stacks,
        grid,
        replace(left.choice, chosen=replace(left.choice.chosen, times_s=times_s)),
        tuple(sorted(rows, key=lambda row: (row.number is None, row.number or 0, row.part))),
        tuple(dict.fromkeys((*left.warnings, *right.warnings, *map(CaseWarning, notes)))),
        joined,
        tuple(np.concatenate(both) for both in zip(low.blocks, high.blocks, strict=True)),
    )


def _is_of(row: SeriesRow, side: str) -> bool:
    return side in row.part.split(", ")


def _require_same(left: Exam, right: Exam, name: str) -> None:
    a, b = left.stacks[0][0], right.stacks[0][0]
    facts: tuple[tuple[str, object, object], ...] = (
        ("number of phases", len(left.stacks), len(right.stacks)),
        ("rows and columns", a.shape, b.shape),
    )
    if a.scaling.pair != b.scaling.pair:
        facts = (*facts, ("scaling", name_scaling(a.scaling), name_scaling(b.scaling)))
    for what, mine, other in facts:
        if mine != other:
            raise _make_side_error(what, mine, other, name)
    if not a.sequence.is_same(b.sequence):
        raise _make_side_error("sequence", a.sequence.text, b.sequence.text, name)
    ours, theirs = (exam.grid.affine[:3, :3] for exam in (left, right))
    if float(np.abs(ours - theirs).max()) > _SAME * float(np.abs(ours).max()):
        mm = [" x ".join(f"{v:.3f}" for v in exam.grid.spacing_mm) for exam in (left, right)]
        raise _make_side_error("spacing (mm) and orientation", f"{mm[0]} {left.grid.orientation}",
                      f"{mm[1]} {right.grid.orientation}", name)  # fmt: skip


def _make_side_error(what: str, one: object, other: object, name: str) -> CaseError:
    return CaseError(
        f"expected the left and right breasts of {name} to have the same {what}, but found {one} "
        f"and {other}: {_AS_TWO}",
        remedies=[_TWO],
    )


def _place_on(low: Grid, high: Grid, name: str) -> tuple[int, float]:
    step = low.affine[:3, 2]
    between = high.affine[:3, 3] - low.affine[:3, 3]
    height = float(np.linalg.norm(step))
    start = round(float(between @ step) / height**2)
    off = between - start * step
    off_mm = float(np.linalg.norm(off))
    if off_mm > min(_MOVED_SHARE * height, _MOVED_MM):
        along = abs(float(off @ step)) / height
        raise CaseError(
            f"expected the left and right breasts of {name} to lie on one grid, but they are "
            f"{off_mm:.2f} mm off the nearest common grid ({along:.2f} mm of this from slice to "
            f"slice), and images are not resampled: {_AS_TWO}",
            remedies=[_TWO],
        )
    if start < low.shape[0]:
        raise CaseError(
            f"expected the left and right breasts of {name} to lie side by side, but "
            f"{low.shape[0] - start} of their slices overlap: {_AS_TWO}",
            remedies=[_TWO],
        )
    return start, off_mm


def _make_padding(last: Slice, count: int) -> tuple[Slice, ...]:
    return (replace(last, is_padding=True),) * count


def _joint_times(left: Exam, right: Exam, name: str) -> tuple[tuple[float, ...], list[str]]:
    ours, theirs = _find_starts(left), _find_starts(right)
    if ours is None or theirs is None:
        raise CaseError(
            f"expected acquisition times of both breasts in {name}, but the headers do not show "
            f"whether the breasts were scanned together: {_AS_TWO}",
            remedies=[_TWO],
        )
    both = np.array([ours, theirs])
    apart = both[1] - both[0]
    gaps = [b - a for starts in (ours, theirs) for a, b in pairwise(starts)]
    most = float(np.median(gaps)) / 2 if gaps else _ALONE_S
    worst = int(np.argmax(np.abs(apart)))
    if abs(apart[worst]) > most:
        raise CaseError(
            f"expected the left and right breasts of {name} to be scanned together, but phase "
            f"{worst} of the right breast begins {apart[worst]:+.0f} s from that of the left "
            f"breast, which is more than half the gap between phases ({most:.0f} s): {_AS_TWO}",
            remedies=[_TWO],
        )
    earliest: NDArray[np.float64] = both.min(axis=0)
    notes = []
    if abs(apart[worst]) >= 1:
        notes = [
            (
                f"the right breast was scanned up to {abs(apart[worst]):.0f} s "
                f"{'after' if apart[worst] > 0 else 'before'} the left breast; the earlier times "
                "were used"
            )
        ]
    return tuple(round(float(t - earliest[0]), 3) for t in earliest), notes


def _find_starts(exam: Exam) -> list[float] | None:
    name = exam.choice.chosen.timed_by or Clock.ACQUISITION_TIME.value
    if name == Clock.TRIGGER_TIME:  # The clock restarts with each series.
        name = Clock.ACQUIRED.value
    starts = []
    for stack in exam.stacks:
        times = [plane.clocks[name] for plane in stack if name in plane.clocks]
        if len(times) < len(stack):
            return None
        starts.append(min(times))
    return starts
