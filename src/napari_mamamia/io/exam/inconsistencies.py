"""Find evidence that the volumes of an acquisition are not phases of one dynamic series."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import numpy as np

from napari_mamamia.core.choices import Clock
from napari_mamamia.core.errors import CaseError, Remedy
from napari_mamamia.io.dicom.clocks import Choice
from napari_mamamia.io.dicom.remedies import leave_out, leave_out_each, use_series
from napari_mamamia.io.dicom.slices import Slice
from napari_mamamia.io.exam.copies import repeat_uncertainty
from napari_mamamia.io.exam.days import MOST_PAUSE_S
from napari_mamamia.io.exam.looks import Looks
from napari_mamamia.io.exam.runs import ULTRAFAST_GAP_S

_LEAST_ALIKE: Final = 0.5
"""Least correlation of two phases after contrast.

Measured between neighbours: 0.80 to 0.92 on one real slice, 0.97 on a real exam, 0.9 on phantoms;
below 0.3 with and without fat saturation.
"""
_LEAST_GAP_S: Final = 1.0
"""Least gap in s of breast volumes; frames of a heartbeat are closer."""


def check_phases(
    stacks: Sequence[Sequence[Slice]], choice: Choice, looks: Looks, name: str
) -> tuple[CaseError, ...]:
    """Return evidence against volumes being phases: the first error of each kind.

    Checked are long pauses, equal values, repeated slices, gaps below one second without contrast,
    phases unlike the one before, and phases or slices without noise of their own.
    """
    times_s = choice.chosen.times_s
    return tuple(
        doubt
        for doubt in (
            _find_pause(stacks, choice, name),
            _find_copy(stacks, looks, name) or repeat_uncertainty(stacks, name),
            _find_beat(stacks, times_s, looks, name),
            _find_unlike_phase(stacks, times_s, looks, name),
            _find_slide(stacks, looks, name),
            _find_computed_phase(stacks, times_s, looks, name),
        )
        if doubt is not None
    )


def noise_warnings(
    stacks: Sequence[Sequence[Slice]], times_s: Sequence[float] | None, looks: Looks
) -> tuple[str, ...]:
    """Return a warning if noise cannot show whether phases were computed from other phases.

    Ultrafast series share parts of k-space between neighbours, and so their noise.
    """
    if stacks and len(looks.sliding(stacks)) == len(stacks):
        return (
            "in all phases many voxels equal those of the next slice, as in sliding projections "
            "over several slices, or if slices were doubled: check that these are the measured "
            "images",
        )
    borrowed = looks.borrowed(stacks)
    if borrowed.volumes and _is_ultrafast(times_s):
        return (
            f"{_list_phases(borrowed.volumes)} repeat the noise of other phases, as with "
            "view sharing (neighbours "
            "share parts of k-space), or if images were computed from others",
        )
    if borrowed.is_certain or len(stacks) < 2:
        return ()
    return (
        "whether each phase was measured, or computed from others, is unknown: the "
        "images hold too little noise, or all hold the same",
    )


def landmark_warnings(stacks: Sequence[Sequence[Slice]]) -> tuple[str, ...]:
    """Return a warning if phases have different frames of reference."""
    frames = {stack[0].header.frame_of_reference for stack in stacks} - {""}
    if len(frames) < 2:
        return ()
    return (
        f"the phases have {len(frames)} frames of reference (FrameOfReferenceUID), as if the "
        "patient "
        "was repositioned between them; their positions were compared as in the headers",
    )


def _find_pause(stacks: Sequence[Sequence[Slice]], choice: Choice, name: str) -> CaseError | None:
    """Return an error for a long pause in AcquisitionTime, or else in the chosen clock."""
    acquired = next(
        (v for v in choice.verdicts if v.clock is Clock.ACQUISITION_TIME), choice.chosen
    )
    # Starts that are no exact times, such as minutes and seconds mixed, still show hours.
    times_s = acquired.times_s or choice.chosen.times_s or sorted(_list_starts(stacks))
    longest = max(np.diff(times_s), default=0.0)
    if longest <= MOST_PAUSE_S:
        return None
    days = f"{longest / 86400:.0f} days" if longest > 2 * 86400 else f"{longest / 3600:.1f} hours"
    names = " and ".join(dict.fromkeys(stack[0].series_name for stack in stacks))
    early, late = _around_pause(stacks, choice.chosen.times_s, times_s)
    return CaseError(
        f"expected phases of one exam in {name}, but {days} lie between two of them, by {names}: "
        "leave out those of the other exam, or use all",
        remedies=[*leave_out_each((early, late), stacks), use_series(stacks)],
    )


def _around_pause(
    stacks: Sequence[Sequence[Slice]],
    times_s: Sequence[float] | None,
    told_s: Sequence[float] | None,
) -> tuple[list[Sequence[Slice]], list[Sequence[Slice]]]:
    """Return the phases before and after the longest pause of the clock with that pause."""
    start_times = _list_starts(stacks)
    if len(start_times) < len(stacks):
        start_times = list(times_s or told_s or range(len(stacks)))
    order = sorted(range(len(stacks)), key=start_times.__getitem__)
    index = int(np.argmax(np.diff([start_times[k] for k in order]))) + 1
    return [stacks[k] for k in order[:index]], [stacks[k] for k in order[index:]]


def _list_starts(stacks: Sequence[Sequence[Slice]]) -> list[float]:
    starts = (stack[0].clocks.get(Clock.ACQUISITION_TIME) for stack in stacks)
    return [start for start in starts if start is not None]


def _find_copy(stacks: Sequence[Sequence[Slice]], looks: Looks, name: str) -> CaseError | None:
    twins = looks.same_values(stacks)
    if twins is None:
        return None
    a, b = twins
    return CaseError(
        f"expected different values in each phase of {name}, but phase {a} "
        f"({stacks[a][0].series_name}) and phase {b} ({stacks[b][0].series_name}) have the "
        "same values, up to a factor, so one is a copy: leave one of them out",
        remedies=leave_out_each(([stacks[b]], [stacks[a]]), stacks),
    )


def _find_beat(
    stacks: Sequence[Sequence[Slice]], times_s: Sequence[float] | None, looks: Looks, name: str
) -> CaseError | None:
    if times_s is None or len(times_s) < 2:
        return None
    usual = float(np.median(np.diff(times_s)))
    if usual >= _LEAST_GAP_S or looks.shows_contrast(stacks):
        return None
    return CaseError(
        f"expected phases of {name} seconds apart, but they are {usual:g} s apart without "
        "contrast, as in frames of a heart beat: choose the series if it is the dynamic "
        "nevertheless",
        remedies=[use_series(stacks)],
    )


def _find_unlike_phase(
    stacks: Sequence[Sequence[Slice]], times_s: Sequence[float] | None, looks: Looks, name: str
) -> CaseError | None:
    """Return an error if a phase after contrast does not resemble the previous phase."""
    if _is_ultrafast(times_s):
        return None
    for index, (a, b) in enumerate(pairwise(stacks[1:]), start=1):
        alike = looks.likeness(a, b)
        if alike < _LEAST_ALIKE:
            return CaseError(
                f"expected similar phases in {name}, but phase {index} "
                f"({a[0].series_name}) and phase {index + 1} ({b[0].series_name}) are not alike "
                f"(correlation {alike:.2f}), as with another sequence, a map or a failed scan: "
                "leave out the wrong phases",
                remedies=_without_odd(stacks, a, b, looks),
            )
    return None


def _without_odd(
    stacks: Sequence[Sequence[Slice]], a: Sequence[Slice], b: Sequence[Slice], looks: Looks
) -> list[Remedy]:
    """Return the remedies that leave out the phases like `a`, or the phases like `b`.

    The smaller group comes first; where it is a single phase, only that one is left out.
    """
    like_a: list[Sequence[Slice]] = []
    like_b: list[Sequence[Slice]] = []
    for stack in stacks[1:]:
        is_a = stack is a or (
            stack is not b and looks.likeness(stack, a) >= looks.likeness(stack, b)
        )
        (like_a if is_a else like_b).append(stack)
    few, many = sorted((like_b, like_a), key=len)
    groups = [few, many] if len(few) > 1 or len(many) == 1 else [few]
    return leave_out_each(groups, stacks)


def _find_computed_phase(
    stacks: Sequence[Sequence[Slice]], times_s: Sequence[float] | None, looks: Looks, name: str
) -> CaseError | None:
    """Return an error if phases repeat the noise of phases from which they were computed."""
    borrowing = looks.borrowed(stacks)
    borrowed = borrowing.volumes
    if not borrowed or _is_ultrafast(times_s):
        return None
    sets = [borrowed, *((other,) for other in borrowing.instead)]
    phases, repeat = f"{_list_phases(borrowed)} ({_join_names(stacks, borrowed)})", "repeats"
    if len(borrowed) > 1:
        repeat = "repeat"
    others = "the others"
    if borrowing.instead:
        names = _join_names(stacks, borrowing.instead)
        others = f"{_list_phases(borrowing.instead)} ({names}), or the reverse"
    return CaseError(
        f"expected phases of {name} that were measured one by one, but {phases} {repeat} the noise "
        f"of {others}, as images that are computed from them (a subtraction, a maximum, a mean, "
        "a map, or a smoothed, moved or motion-corrected copy): leave out what was computed, or "
        "use all",
        remedies=[
            *leave_out_each(([stacks[k] for k in gone] for gone in sets), stacks),
            use_series(stacks),
        ],
    )


def _find_slide(stacks: Sequence[Sequence[Slice]], looks: Looks, name: str) -> CaseError | None:
    """Return an error if some phases are projections that slide along the stack."""
    slid = looks.sliding(stacks)
    if not slid or len(slid) == len(stacks):
        return None
    return CaseError(
        f"expected different values in each slice of {name}, but in {_list_phases(slid)} "
        f"({_join_names(stacks, slid)}) many voxels equal those of the next slice, as in sliding "
        "projections (MIP) over several slices, or if slices were doubled: leave out what was "
        "computed, or use all",
        remedies=[*leave_out([stacks[k] for k in slid], stacks), use_series(stacks)],
    )


def _join_names(stacks: Sequence[Sequence[Slice]], phases: Sequence[int]) -> str:
    return " and ".join(dict.fromkeys(stacks[k][0].series_name for k in phases))


def _list_phases(phases: Sequence[int]) -> str:
    numbers = ", ".join(map(str, phases[:-1]))
    return f"phases {numbers} and {phases[-1]}" if numbers else f"phase {phases[0]}"


def _is_ultrafast(times_s: Sequence[float] | None) -> bool:
    if times_s is None or len(times_s) < 2:
        return False
    return float(np.median(np.diff(times_s))) < ULTRAFAST_GAP_S
