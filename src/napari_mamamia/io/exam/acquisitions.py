"""Group the parts of a study into acquisitions: one sequence at one position, repeated in time.

An acquisition contains every image once. Copies of the same position and time are left out by
rules, or the user is asked. The clock that orders the images does not matter.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from napari_mamamia.core.choices import Clock
from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.grid import Grid
from napari_mamamia.io.dicom.clocks import list_refused_times, order_inside, use_clock
from napari_mamamia.io.dicom.parts import Part, part_of
from napari_mamamia.io.dicom.remedies import leave_out_each, use_series
from napari_mamamia.io.dicom.roles import Role
from napari_mamamia.io.dicom.slices import UNNUMBERED, Slice
from napari_mamamia.io.exam.looks import Looks

_MOVED_SHARE: Final = 0.15
_MOVED_MM: Final = 0.3
"""Largest distance in mm between two series of one scan, caused by table movement."""
_TELLING_TWINS: Final = (Clock.TEMPORAL_POSITION, Clock.CONTENT_TIME)
"""Clocks that can distinguish two phases with the same AcquisitionTime."""
_OTHER_CLOCKS: Final = (
    Clock.TEMPORAL_POSITION, Clock.CONTENT_TIME, Clock.SERIES, Clock.ACQUISITION_NUMBER,
    Clock.INSTANCE_NUMBER,
)  # fmt: skip
"""Clocks that may count the phases if some phases lack AcquisitionTime."""
_PROCESSED: Final = {"moco": Role.MOTION_CORRECTED}


@dataclass(frozen=True, slots=True, eq=False)
class Volume:
    """One stack of a part; `moment` is the acquisition time, or None if unknown."""

    part: Part
    stack: tuple[Slice, ...]
    moment: tuple[float, float] | None


@dataclass(frozen=True, slots=True, eq=False)
class LeftOut:
    """A part that is not a phase, with its role, the evidence for it, and its source series."""

    part: Part
    role: Role
    evidence: str
    of: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Acquisition:
    """Parts with the same sequence and position, with each image once, and the excluded parts."""

    parts: tuple[Part, ...]
    left_out: tuple[LeftOut, ...] = ()

    @property
    def n_times(self) -> int:
        """Number of volumes at each slice position."""
        return sum(part.n_times for part in self.parts)

    @property
    def volumes(self) -> list[Volume]:
        """The stacks of all parts."""
        return [volume for part in self.parts for volume in _list_volumes(part)]

    @property
    def name(self) -> str:
        """Names of the series in messages."""
        names = list(dict.fromkeys(part.header.series_name for part in self.parts))
        also = [name.removeprefix("series ") for name in names[1:]]
        side = self.parts[0].side
        return f"{', '.join([names[0], *also])}{f' of the {side} breast' if side else ''}"

    @property
    def usual_gap_s(self) -> float | None:
        """Median gap between the volumes in seconds, or None if a time is unknown."""
        starts = self.starts_s
        return None if starts is None or len(starts) < 2 else float(np.median(np.diff(starts)))

    @property
    def starts_s(self) -> list[float] | None:
        """Acquisition times of the volumes in order, or None if a time is unknown."""
        moments = [volume.moment for volume in self.volumes]
        starts = sorted(sum(moment) for moment in moments if moment is not None)
        return starts if len(starts) == len(moments) else None


def acquisitions_of(parts: Iterable[Part]) -> list[Acquisition]:
    """Return the parts with complete stacks, grouped by sequence and position, longest first."""
    groups: list[list[Part]] = []
    for part in parts:
        if part.places is None:
            continue
        group = next((g for g in groups if _is_one_acquisition(g[0], part)), None)
        if group is None:
            groups.append([part])
        else:
            group.append(part)
    acquisitions = [Acquisition(tuple(group)) for group in groups]
    return sorted(acquisitions, key=lambda acquisition: acquisition.n_times, reverse=True)


def without_twins(
    whole: Acquisition, looks: Looks, clock: Clock | None, name: str, *, is_named: bool = False
) -> Acquisition:
    """Return an acquisition in which no time occurs twice at the same position.

    Processed copies (motion-corrected, filtered, ...) are left out as a set if a less processed set
    of the same length exists. Images that were sent twice, and subtractions that the pixels reveal,
    are also left out. `is_named` states whether the user chose the series.

    Raises
    ------
    CaseError
        If copies remain and the original is unknown.
    """
    parts, processed = _least_processed(whole, name)
    parts, sent = _sent_once(parts, looks)
    parts, computed = _without_differences(parts, looks)
    acquisition = Acquisition(tuple(parts), (*processed, *sent, *computed))
    if not is_named:
        _require_times_of_all(acquisition, clock, name)
    _require_no_twins(acquisition, clock, name)
    return acquisition


def difference(a: Part, b: Part) -> str:
    """Describe the properties in which two parts differ, with both values.

    The result is "in nothing but the images themselves" if size, spacing, position and sequence are
    equal.
    """
    differences = _apart_in_place(a, b) if a.places and b.places else []
    differences += [
        f"{what} {value} and {other}" for what, value, other in a.sequence.differences(b.sequence)
    ]
    if a.trigger != b.trigger:
        differences.append(f"trigger {a.trigger} and {b.trigger}")
    return ", ".join(differences) or "in nothing but the images themselves"


def _apart_in_place(a: Part, b: Part) -> list[str]:
    if a.places is None or b.places is None:
        return []
    grid, other = a.places.grid, b.places.grid
    differences = []
    for what, value, two in (
        (
            "slices x rows x columns",
            _join_numbers(grid.shape, "d"),
            _join_numbers(other.shape, "d"),
        ),
        ("orientation", grid.orientation, other.orientation),
        (
            "spacing",
            f"{_join_numbers(grid.spacing_mm, '.2f')} mm",
            f"{_join_numbers(other.spacing_mm, '.2f')} mm",
        ),
    ):
        if value != two:
            differences.append(f"{what} {value} and {two}")
    moved = float(np.linalg.norm(grid.affine[:3, 3] - other.affine[:3, 3]))
    if moved > min(_MOVED_SHARE * grid.spacing_mm[0], _MOVED_MM):
        differences.append(f"position, by {moved:.3g} mm")
    return differences


def _join_numbers(numbers: Sequence[float], form: str) -> str:
    return " x ".join(format(number, form) for number in numbers)


def is_same_place(a: Part, b: Part) -> bool:
    """Return whether two parts show the same positions, apart from table movement."""
    if a.places is None or b.places is None or a.places.grid.shape != b.places.grid.shape:
        return False
    grid, other = a.places.grid, b.places.grid
    moved = float(np.linalg.norm(grid.affine[:3, 3] - other.affine[:3, 3]))
    # Without the table movement, only spacing and orientation remain to compare.
    back = other.affine.copy()
    back[:3, 3] = grid.affine[:3, 3]
    is_near = moved <= min(_MOVED_SHARE * grid.spacing_mm[0], _MOVED_MM)
    return is_near and grid.is_same_place(Grid(other.shape, back))


def _is_one_acquisition(a: Part, b: Part) -> bool:
    is_one_beat = a.trigger == b.trigger
    return is_one_beat and a.sequence.is_same(b.sequence) and is_same_place(a, b)


def _list_volumes(part: Part) -> list[Volume]:
    if part.places is None:
        return []
    rows = part.places.rows
    stacks = order_inside(part.places.slices, part.n_times)
    if (
        stacks is None
    ):  # Nothing orders the volumes; a function that needs the order raises an error.
        stacks = np.arange(len(rows) * part.n_times).reshape(len(rows), part.n_times).T
    flat = part.places.slices
    return [
        Volume(part, stack, _find_moment(stack[len(stack) // 2]))
        for stack in (tuple(flat[index] for index in stack) for stack in stacks)
    ]


def _find_moment(piece: Slice) -> tuple[float, float] | None:
    start = piece.clocks.get(Clock.ACQUISITION_TIME)
    if start is None:
        return None
    return round(start, 2), round(piece.clocks.get(Clock.TRIGGER_TIME, 0.0), 2)


def _least_processed(whole: Acquisition, name: str) -> tuple[list[Part], list[LeftOut]]:
    sets: dict[frozenset[str], list[Part]] = {}
    for part in whole.parts:
        sets.setdefault(part.kind.processing, []).append(part)
    # Motion-corrected images come last, because their voxels were resampled.
    first, *others = sorted(sets, key=lambda words: ("moco" in words, len(words), sorted(words)))
    parts, left_out = list(sets[first]), []
    for words in others:
        fate = _fate_of_set(sets[words], parts, name)
        if fate is None:
            parts += sets[words]
            continue
        role = next((r for w, r in _PROCESSED.items() if w in words - first), Role.FILTERED)
        steps = ", ".join(sorted(words - first)) or "processed"
        left_out += [LeftOut(part, role, f"{steps} in the header", fate) for part in sets[words]]
    return parts, left_out


def _fate_of_set(own: Sequence[Part], kept: Sequence[Part], name: str) -> str | None:
    ours = [v.moment for part in own for v in _list_volumes(part)]
    theirs = [v.moment for part in kept for v in _list_volumes(part)]
    has_moments = None not in ours and None not in theirs
    both = [[v.stack for part in some for v in _list_volumes(part)] for some in (own, kept)]
    if has_moments and not set(ours) & set(theirs):
        return None
    of = " and ".join(dict.fromkeys(part.header.label for part in kept))
    if len(theirs) >= len(ours):
        return of
    raise CaseError(
        f"expected each phase of {name} only once, but {own[0].header.series_name} "
        f"({', '.join(sorted(own[0].kind.processing))}) has {len(ours)} phases, and its less "
        f"processed version {of} has {len(theirs)}: leave out the copies",
        remedies=leave_out_each(reversed(both), both[0] + both[1]),
    )


def _sent_once(parts: Sequence[Part], looks: Looks) -> tuple[list[Part], list[LeftOut]]:
    unique_parts: list[Part] = []
    left_out: list[LeftOut] = []
    seen: dict[tuple[float, float], list[Volume]] = {}
    for part in _by_number(parts):
        volumes = _list_volumes(part)
        twins = [_find_twin(volume, seen, looks) for volume in volumes]
        originals = [v for v, twin in zip(volumes, twins, strict=True) if twin is None]
        copies = [v for v, twin in zip(volumes, twins, strict=True) if twin is not None]
        if originals:
            unique_parts.append(_select_volumes(part, originals, volumes))
        if copies:
            first = next(twin for twin in twins if twin is not None)
            copy = _select_volumes(part, copies, volumes)
            evidence = "the same acquisition time and the same values"
            left_out.append(LeftOut(copy, Role.COPY, evidence, first.part.header.label))
    return unique_parts, left_out


def _find_twin(
    volume: Volume, seen: dict[tuple[float, float], list[Volume]], looks: Looks
) -> Volume | None:
    if volume.moment is None:
        return None
    others = seen.setdefault(volume.moment, [])
    twin = next((other for other in others if looks.are_equal(other.stack, volume.stack)), None)
    if twin is None:
        others.append(volume)
    return twin


def _select_volumes(part: Part, wanted: Sequence[Volume], own: Sequence[Volume]) -> Part:
    if len(wanted) == len(own):
        return part
    return part_of([plane for volume in wanted for plane in volume.stack], part, allow_thin=True)


def _without_differences(parts: Sequence[Part], looks: Looks) -> tuple[list[Part], list[LeftOut]]:
    by_part = [_list_volumes(part) for part in parts]
    every = [volume for volumes in by_part for volume in volumes]
    ordered = sorted(every, key=lambda v: v.moment or (np.inf, 0.0))
    originals, left_out = [], []
    for part, volumes in zip(parts, by_part, strict=True):
        computed = [volume for volume in volumes if _is_difference(volume, ordered, looks)]
        rest = [volume for volume in volumes if volume not in computed]
        if rest:
            originals.append(_select_volumes(part, rest, volumes))
        if computed:
            evidence = "its pixels are one phase minus another phase"
            gone = _select_volumes(part, computed, volumes)
            left_out.append(LeftOut(gone, Role.SUBTRACTION, evidence, ordered[0].part.header.label))
    return originals, left_out


def _is_difference(volume: Volume, ordered: Sequence[Volume], looks: Looks) -> bool:
    first = ordered[0]
    return volume is not first and any(
        looks.is_difference(volume.stack, other.stack, first.stack)
        for other in ordered[1:]
        if other is not volume
    )


def _require_no_twins(found: Acquisition, clock: Clock | None, name: str) -> None:
    by_moment: dict[tuple[float, float], list[Volume]] = {}
    for part in found.parts:
        for volume in _list_timed_volumes(part):
            if volume.moment is not None:
                by_moment.setdefault(volume.moment, []).append(volume)
    twins = next((group for group in by_moment.values() if len(group) > 1), None)
    is_no_clock = len(by_moment) == 1
    if twins is None or (is_no_clock and clock is not None):  # AcquisitionTime was removed.
        return
    apart = [
        other_clock for other_clock in _TELLING_TWINS if _tells_apart(other_clock, found.volumes)
    ]
    if clock in apart:  # AcquisitionTime of one of the volumes is wrong.
        return
    a, b = twins[:2]
    both = (a.part.header.series_name, b.part.header.series_name)
    names = both if both[0] != both[1] else (a.stack[0].name, b.stack[0].name)
    every = [volume.stack for volume in found.volumes]
    moments = list(by_moment.values())
    copies = (_all_but(index, moments) for index in range(max(map(len, moments))))
    remedies = leave_out_each(copies, every)
    remedies += map(use_clock, [Clock.SERIES] if is_no_clock else apart)
    is_by_clock = is_no_clock or bool(apart)
    raise CaseError(
        f"expected phases at different times in {name}, but {names[0]} and {names[1]} have the "
        "same AcquisitionTime, so one of the phases may be a copy: leave out the "
        f"copies{', or choose another clock' * is_by_clock}",
        remedies=remedies,
    )


def _tells_apart(clock: Clock, volumes: Sequence[Volume]) -> bool:
    pairs = []
    for volume in volumes:
        values = [plane.clocks[clock] for plane in volume.stack if clock in plane.clocks]
        if len(values) < len(volume.stack) or volume.moment is None:
            return False
        pairs.append((min(values), volume.moment))
    pairs.sort()
    return all(a[0] < b[0] and a[1] <= b[1] for a, b in pairwise(pairs))


def _all_but(at: int, moments: Sequence[Sequence[Volume]]) -> list[tuple[Slice, ...]]:
    return [
        volume.stack
        for group in moments
        for k, volume in enumerate(group)
        if k != min(at, len(group) - 1)
    ]


def _require_times_of_all(found: Acquisition, clock: Clock | None, name: str) -> None:
    """Raise an error if only some volumes have AcquisitionTime, which computed images lack.

    The volumes are accepted if temporal positions count all volumes, or if the user chose a clock
    that counts them.
    """
    volumes = found.volumes
    without = next((volume for volume in volumes if volume.moment is None), None)
    timed = [volume for volume in volumes if volume.moment is not None]
    if without is None or not timed or clock in _OTHER_CLOCKS:
        return
    if list_refused_times(
        without.stack, Clock.ACQUISITION_TIME
    ):  # The element exists, but its value is invalid.
        return
    apart = [
        other_clock
        for other_clock in _OTHER_CLOCKS
        if _parts_all(other_clock, volumes) and _tells_apart(other_clock, timed)
    ]
    if Clock.TEMPORAL_POSITION in apart:
        return
    names = [
        f"phase {v.stack[0].phase} of {v.part.header.series_name}".removeprefix(
            f"phase {UNNUMBERED} of "
        )
        for v in (without, timed[0])
    ]
    every = [volume.stack for volume in volumes]
    sets = [[v.stack for v in volumes if (v.moment is None) is bare] for bare in (True, False)]
    remedies = leave_out_each(sets, every)
    remedies += map(use_clock, apart)
    if apart:
        remedies.append(use_series(every))
    raise CaseError(
        f"expected AcquisitionTime in all phases of {name}, but {names[0]} has none and "
        f"{names[1]} does, so the first may be computed from the others: leave out the computed "
        f"images{', or choose a clock that counts all phases' * bool(apart)}",
        remedies=remedies,
    )


def _parts_all(clock: Clock, volumes: Sequence[Volume]) -> bool:
    values = [[p.clocks.get(clock) for p in volume.stack] for volume in volumes]
    if any(None in numbers for numbers in values):
        return False
    ranges = sorted((min(numbers), max(numbers)) for numbers in values)  # type: ignore[type-var]
    return all(a[1] < b[0] for a, b in pairwise(ranges))  # type: ignore[operator]


def _list_timed_volumes(part: Part) -> list[Volume]:
    volumes = _list_volumes(part)
    return volumes[:1] if len({volume.moment for volume in volumes}) == 1 else volumes


def _by_number(parts: Sequence[Part]) -> list[Part]:
    return sorted(parts, key=lambda part: part.header.series_number or 0)
