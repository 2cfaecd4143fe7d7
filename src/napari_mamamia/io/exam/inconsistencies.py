"""Find evidence that a dynamic series is not one, and find missing images and times.

Only certain losses are reported, because image numbers can have gaps in complete exams too. For
example, Philips numbers several images at each position, and archives continue the numbers from one
series to the next.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import median
from types import MappingProxyType
from typing import Final

import numpy as np

from napari_mamamia.core.choices import Clock
from napari_mamamia.core.errors import CaseError, Remedy
from napari_mamamia.core.names import count_of
from napari_mamamia.io.dicom.clocks import Choice, find_units_s
from napari_mamamia.io.dicom.parts import Image, Part
from napari_mamamia.io.dicom.remedies import leave_out, leave_out_each, use_series
from napari_mamamia.io.dicom.roles import PHASES
from napari_mamamia.io.dicom.slices import UNNUMBERED, Slice, unit_of, with_sum, zone_of
from napari_mamamia.io.exam.copies import repeat_uncertainty
from napari_mamamia.io.exam.days import MOST_PAUSE_S
from napari_mamamia.io.exam.looks import Looks
from napari_mamamia.io.exam.runs import ULTRAFAST_GAP_S

_LEAST_ALIKE: Final = 0.5
"""Smallest correlation between two successive phases after contrast.

Measured values between successive phases are 0.80 to 0.92 on one real slice, 0.97 on a real exam
and 0.9 on phantoms. Phases with and without fat saturation correlate below 0.3.
"""
_LEAST_GAP_S: Final = 1.0
"""Smallest gap in s between breast volumes; cardiac frames are closer together."""
_FEWEST_PHASES: Final = 3
"""Smallest number of phases for which missing images are reported.

A gap between two phases may be due to the scanner's numbering.
"""
_CLOCKS: Final = (Clock.ACQUISITION_TIME, Clock.CONTENT_TIME)
_MOST_SHARE: Final = 0.5
"""Largest fraction of a phase's images whose missing times can be filled in (our choice)."""


def check_phases(
    stacks: Sequence[Sequence[Slice]], choice: Choice, looks: Looks, name: str
) -> tuple[CaseError, ...]:
    """Return evidence that volumes are not phases: the first error of each kind.

    The checks cover long pauses, equal values, repeated slices, gaps below one second without
    contrast, phases unlike the previous phase, and phases or slices without independent noise.
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

    Successive phases of ultrafast series share parts of k-space, and therefore noise.
    """
    if stacks and len(looks.sliding(stacks)) == len(stacks):
        return (
            (
                "in all phases, many voxels equal those of the next slice, possibly because the "
                "images are sliding projections or slices were duplicated: check that these are "
                "the measured images"
            ),
        )
    borrowed = looks.borrowed(stacks)
    if borrowed.volumes and _is_ultrafast(times_s):
        return (
            (
                f"{_list_phases(borrowed.volumes)} repeat the noise of other phases, because of "
                "view sharing (successive phases share parts of k-space) or because images "
                "were computed from others"
            ),
        )
    if borrowed.is_certain or len(stacks) < 2:
        return ()
    return (
        (
            "it is unknown whether each phase was measured or computed from others, because the "
            "images contain too little noise, or all contain the same noise"
        ),
    )


def landmark_warnings(stacks: Sequence[Sequence[Slice]]) -> tuple[str, ...]:
    """Return a warning if phases have different frames of reference."""
    frames = {stack[0].header.frame_of_reference for stack in stacks} - {""}
    if len(frames) < 2:
        return ()
    return (
        (
            f"the phases have {len(frames)} frames of reference (FrameOfReferenceUID), possibly "
            "because the patient was repositioned; the positions in the headers were used"
        ),
    )


def _find_pause(stacks: Sequence[Sequence[Slice]], choice: Choice, name: str) -> CaseError | None:
    acquired = next(
        (v for v in choice.verdicts if v.clock is Clock.ACQUISITION_TIME), choice.chosen
    )
    # Inexact start times, such as mixed minutes and seconds, still show hours.
    times_s = acquired.times_s or choice.chosen.times_s or sorted(_list_starts(stacks))
    longest = max(np.diff(times_s), default=0.0)
    if longest <= MOST_PAUSE_S:
        return None
    days = f"{longest / 86400:.0f} days" if longest > 2 * 86400 else f"{longest / 3600:.1f} hours"
    names = " and ".join(dict.fromkeys(stack[0].series_name for stack in stacks))
    early, late = _around_pause(stacks, choice.chosen.times_s, times_s)
    return CaseError(
        f"expected the phases of {name} to be one exam, but two of them are {days} apart by "
        f"{names}: leave out the phases of the other exam, or use all phases",
        remedies=[*leave_out_each((early, late), stacks), use_series(stacks)],
    )


def _around_pause(
    stacks: Sequence[Sequence[Slice]],
    times_s: Sequence[float] | None,
    told_s: Sequence[float] | None,
) -> tuple[list[Sequence[Slice]], list[Sequence[Slice]]]:
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
        f"({stacks[a][0].series_name}) and phase {b} ({stacks[b][0].series_name}) have the same "
        "values up to a factor, so one of them is a copy: leave out one of the two phases",
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
        f"expected the phases of {name} to be seconds apart, but they are {usual:g} s apart "
        "without contrast, like cardiac frames: if this is the dynamic series anyway, choose it "
        "explicitly",
        remedies=[use_series(stacks)],
    )


def _find_unlike_phase(
    stacks: Sequence[Sequence[Slice]], times_s: Sequence[float] | None, looks: Looks, name: str
) -> CaseError | None:
    if _is_ultrafast(times_s):
        return None
    for index, (a, b) in enumerate(pairwise(stacks[1:]), start=1):
        alike = looks.likeness(a, b)
        if alike < _LEAST_ALIKE:
            return CaseError(
                f"expected similar phases in {name}, but phase {index} ({a[0].series_name}) and "
                f"phase {index + 1} ({b[0].series_name}) differ too much (correlation "
                f"{alike:.2f}), possibly because of a different sequence, a map or a failed scan: "
                "leave out the wrong phases",
                remedies=_without_odd(stacks, a, b, looks),
            )
    return None


def _without_odd(
    stacks: Sequence[Sequence[Slice]], a: Sequence[Slice], b: Sequence[Slice], looks: Looks
) -> list[Remedy]:
    """Return the remedies that leave out the phases like `a`, or those like `b`.

    The remedy for the smaller group comes first; if that group is a single phase, it is the only
    remedy.
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
        f"expected the phases of {name} to be measured separately, but {phases} {repeat} the "
        f"noise of {others}, like images computed from them (subtractions, maxima, means, maps, "
        "or smoothed, shifted or motion-corrected copies): leave out the computed images, or use "
        "all phases",
        remedies=[
            *leave_out_each(([stacks[k] for k in gone] for gone in sets), stacks),
            use_series(stacks),
        ],
    )


def _find_slide(stacks: Sequence[Sequence[Slice]], looks: Looks, name: str) -> CaseError | None:
    slid = looks.sliding(stacks)
    if not slid or len(slid) == len(stacks):
        return None
    return CaseError(
        f"expected different values in each slice of {name}, but in {_list_phases(slid)} "
        f"({_join_names(stacks, slid)}) many voxels equal those of the next slice, possibly "
        "because they are sliding projections (MIP) or slices were duplicated: leave out the "
        "computed images, or use all phases",
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


def loss_warnings(
    images: Sequence[Image], slices: Sequence[Slice], stacks: Sequence[Sequence[Slice]]
) -> tuple[str, ...]:
    """Return a warning for each loss of images that the headers in an exam's series prove.

    Parameters
    ----------
    images
        All images of the study.
    slices
        All planes of these images without duplicates, including planes that are not used.
    stacks
        The planes of each phase.
    """
    by_series: dict[str, list[Slice]] = {}
    for image in slices:
        by_series.setdefault(image.header.series_uid, []).append(image)
    exam_uids = list(dict.fromkeys(stack[0].header.series_uid for stack in stacks))
    countable = {
        uid: pieces
        for uid, pieces in by_series.items()
        if not _is_partly_known(images, uid, pieces)
    }
    warnings = _check_images(countable, exam_uids)
    others = [uid for uid in exam_uids if uid in countable and uid not in warnings]
    gaps = [_check_numbers(countable[uid], len(stacks[0])) for uid in others]
    return (
        *_check_positions([by_series[uid] for uid in exam_uids]),
        *dict.fromkeys(warnings.values()),
        *(gap for gap in gaps if gap),
    )


def _is_partly_known(images: Sequence[Image], uid: str, own: Sequence[Slice]) -> bool:
    others = (i.header for i in images if not isinstance(i, tuple))
    return any(plane.frame for plane in own) or any(h and h.series_uid == uid for h in others)


def _check_images(countable: dict[str, list[Slice]], exam_uids: Sequence[str]) -> dict[str, str]:
    """Return a warning for each series that has fewer images than ImagesInAcquisition.

    An acquisition may consist of several series, so all series of the study with the same number
    are counted together.
    """
    promise = {uid: max(p.header.images for p in pieces) for uid, pieces in countable.items()}
    warnings = {}
    for uid in exam_uids:
        count, n_promised = len(countable.get(uid, ())), promise.get(uid, 0)
        if count >= n_promised:
            continue
        sharing = [
            len(pieces) for other, pieces in countable.items() if promise[other] == n_promised
        ]
        of_used = sum(len(countable[u]) for u in exam_uids if promise.get(u) == n_promised)
        is_shared = sum(sharing) > n_promised and n_promised % count == 0
        if is_shared or n_promised in (sum(sharing), of_used):
            continue
        pieces = countable[uid]
        warnings[uid] = (
            f"{pieces[0].series_name} should have {n_promised} images according to its header "
            f"(ImagesInAcquisition), but {count} were "
            f"found{_describe_missing(_list_instances(pieces))}: check that the copy is complete"
        )
    return warnings


def _check_numbers(own: Sequence[Slice], n_slices: int) -> str:
    numbers = _list_instances(own)
    if len(numbers) < len(own) or len(numbers) < _FEWEST_PHASES * n_slices:
        return ""
    there = set(numbers)
    starts = [n for n in numbers if n - 1 not in there]
    ends = [n for n in numbers if n + 1 not in there]
    runs = [end - start + 1 for start, end in zip(starts, ends, strict=True)]
    gaps = [start - end - 1 for end, start in zip(ends, starts[1:], strict=False)]
    is_whole = all(length % n_slices == 0 for length in (*runs, *gaps))
    if not gaps or not is_whole or 2 * sum(gaps) > len(numbers) or max(runs) == n_slices:
        return ""
    return (
        f"the image numbers of {own[0].series_name} lack "
        f"{count_of(sum(gaps) // n_slices, 'whole phase')} of {n_slices} "
        f"slices{_describe_missing(numbers)}: check that the copy is complete"
    )


def _list_instances(own: Sequence[Slice]) -> list[int]:
    numbers = {plane.clocks.get(Clock.INSTANCE_NUMBER) for plane in own} - {None}
    return sorted(int(number) for number in numbers if number is not None)


def _describe_missing(numbers: Sequence[int]) -> str:
    gaps = [(a + 1, b - 1) for a, b in pairwise(numbers) if b > a + 1]
    spans = [f"{a} to {b}" if b > a else f"{a}" for a, b in gaps[:4]]
    more = ", ..." * (len(gaps) > len(spans))
    return f" (missing InstanceNumbers: {', '.join(spans)}{more})" if spans else ""


def _check_positions(series: Sequence[Sequence[Slice]]) -> list[str]:
    """Return a warning for each series with fewer temporal positions than its header states.

    Series with a single position are counted together.
    """
    of_one: dict[int, list[Slice]] = {}
    warnings = []
    for pieces in series:
        promise = max(image.header.positions for image in pieces)
        numbers = _list_identifiers(pieces)
        n_shown = max(len(numbers), max(Counter(image.position_mm for image in pieces).values()))
        if n_shown == 1:
            of_one.setdefault(promise, []).append(pieces[0])
        else:
            warnings.append(_describe_absent(pieces[0].series_name, promise, n_shown, numbers))
    for promise, firsts in of_one.items():
        names = " and ".join(first.series_name for first in firsts)
        warnings.append(_describe_absent(names, promise, len(firsts), _list_identifiers(firsts)))
    return [sentence for sentence in warnings if sentence]


def _list_identifiers(pieces: Sequence[Slice]) -> set[float]:
    numbers = (image.clocks.get(Clock.TEMPORAL_POSITION) for image in pieces)
    return {number for number in numbers if number is not None}


def _describe_absent(names: str, promise: int, n_shown: int, numbers: Collection[float]) -> str:
    losses = [k for k in range(1, promise + 1) if k not in numbers]
    if n_shown < promise:
        which = f" (missing: {', '.join(map(str, losses))})" if len(losses) < promise else ""
        return (
            f"{names} should have {promise} temporal positions according to the header "
            f"(NumberOfTemporalPositions), but images of only {n_shown} were found{which}: check "
            "that the copy is complete"
        )
    inside = _find_jumps(sorted(numbers))
    if promise or not inside:
        return ""
    return (
        f"the temporal positions of {names} (TemporalPositionIdentifier) lack "
        f"{', '.join(map(str, inside))}: check that the copy is complete"
    )


def _find_jumps(numbers: Sequence[float]) -> list[int]:
    steps = [b - a for a, b in pairwise(numbers)]
    if not steps or median(steps) != 1:
        return []
    inside = range(int(numbers[0]), int(numbers[-1]))
    return [number for number in inside if number not in numbers]


def fill_times(
    slices: Sequence[Slice], parts: Iterable[Part]
) -> tuple[list[Slice], tuple[str, ...]]:
    """Return planes with a time in every phase, and a warning for each time that was filled in.

    A time without seconds counts as missing if other images of the part have seconds.
    """
    times: dict[tuple[str, int], dict[str, float]] = {}
    counts = dict.fromkeys(_CLOCKS, 0)
    for part in parts:
        for clock in _CLOCKS if part.role in PHASES else ():
            for bare, start in _list_gaps(part, clock):
                counts[clock] += len(bare)
                for plane in bare:
                    times.setdefault((str(plane.file), plane.frame), {}).update(start)
    notes = tuple(
        (
            f"{clock} is missing or has no seconds in {count_of(n, 'image')}, although other "
            "images of the same phases have it; the first time of the phase was assumed"
        )
        for clock, n in counts.items()
        if n
    )
    return [_fill(p, times.get((str(p.file), p.frame), {})) for p in slices], notes


def _list_gaps(part: Part, clock: Clock) -> list[tuple[list[Slice], dict[str, float]]]:
    by_phase: dict[int, list[Slice]] = {}
    for plane in part.slices:
        by_phase.setdefault(plane.phase, []).append(plane)
    by_phase.pop(UNNUMBERED, None)
    least_s = min(find_units_s(clock, part.slices), default=1.0)
    gaps = []
    for stack in by_phase.values():
        halves: tuple[list[Slice], list[Slice]] = ([], [])
        for plane in stack:
            halves[clock in plane.clocks and _find_unit(plane, clock) <= least_s].append(plane)
        bare, timed = halves
        if bare and len(bare) < _MOST_SHARE * len(stack):
            first = min(timed, key=lambda p: p.clocks[clock]).clocks
            names = (clock.value, zone_of(clock))
            gaps.append((bare, {name: first[name] for name in names if name in first}))
    return gaps


def _find_unit(piece: Slice, clock: Clock) -> float:
    return piece.clocks.get(unit_of(clock), 1.0)


def _fill(piece: Slice, times: dict[str, float]) -> Slice:
    if not times:
        return piece
    clocks = {**piece.clocks, **times}
    for clock in _CLOCKS:
        if clock in times:
            clocks.pop(unit_of(clock), None)
    return replace(piece, clocks=MappingProxyType(with_sum(clocks)))
