"""Which acquisition of a study is its DCE exam: chosen where the evidence is clear, else asked."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from napari_mamamia.core.choices import Clock
from napari_mamamia.core.errors import CaseError
from napari_mamamia.io.dicom.parts import Part, part_of
from napari_mamamia.io.dicom.remedies import leave_out, use_series
from napari_mamamia.io.dicom.roles import PHASES, Role
from napari_mamamia.io.dicom.slices import Slice
from napari_mamamia.io.exam.acquisitions import (
    Acquisition,
    LeftOut,
    acquisitions_of,
    is_same_place,
    without_twins,
)
from napari_mamamia.io.exam.looks import Looks
from napari_mamamia.io.exam.questions import (
    ask_which,
    is_turned_midway,
    not_whole,
    two_turns,
    without_odd_phases,
)
from napari_mamamia.io.exam.runs import ULTRAFAST_GAP_S
from napari_mamamia.io.exam.selectors import Selection

_TELLING: Final = (
    Clock.ACQUISITION_TIME.value,
    Clock.CONTENT_TIME.value,
    Clock.TRIGGER_TIME.value,
    Clock.TEMPORAL_POSITION.value,
    Clock.ACQUISITION_NUMBER.value,
)
"""Elements of which one must differ between phases, where no contrast does."""
_FACTS: Final = {
    "FlipAngle": "flip_degrees", "RepetitionTime": "repetition_time_ms",
    "EchoTime": "echo_time_ms",
}  # fmt: skip
"""Elements that all phases must tell, or none, and what a sequence calls them."""
_DUE: Final = 1.7
_SAME_PACE: Final = 0.2
"""Within how many gaps, and how equal ones, one acquisition goes on with another: our choice."""
_OTHER_ORIENTATION: Final = 0.9
"""Cosine between slice normals below which a series cannot belong to a dynamic one: 26 degrees.
Our own choice, far above what positioning between two series does."""


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """Parts that may be phases, those that are none by their headers, those that were not chosen.

    `warnings` tell of parts that count only because they were named.
    """

    parts: tuple[Part, ...]
    left_out: tuple[LeftOut, ...]
    not_chosen: tuple[Part, ...]
    warnings: tuple[str, ...] = ()


def candidates_of(
    parts: Sequence[Part], selection: Selection, *, allow_thin: bool = False
) -> Candidates:
    """Return which parts may be phases, by their headers and by what the user said.

    A role that is named counts whatever it is. A series that is named counts by its phases, and
    where it has none, by all that it has, with a warning.
    """
    chosen, unwanted = _split_parts(parts, selection, allow_thin)
    by_role = [part for part in chosen if selection.names_role_of(part)]
    fitting = _find_fitting_parts(
        [part for part in chosen if not any(part is one for one in by_role)]
    )
    series = {part.header.series_uid for part in (*fitting, *by_role)}
    named = by_role + [
        part
        for part in chosen
        if part.header.series_uid not in series
        and selection.names_series(part.header.series_number)
    ]
    counted = [part for part in chosen if any(part is one for one in (*fitting, *named))]
    left = tuple(
        LeftOut(part, part.role, part.kind.evidence)
        for part in chosen
        if not any(part is one for one in counted)
    )
    return Candidates(tuple(counted), left, unwanted, _describe_odd_parts(named))


def _split_parts(
    parts: Sequence[Part], selection: Selection, allow_thin: bool
) -> tuple[list[Part], tuple[Part, ...]]:
    """Return the parts that the user lets count and the others, cut where phases were named."""
    if not selection.names_phases:
        chosen = [part for part in parts if selection.uses(part)]
        return chosen, tuple(part for part in parts if not any(part is one for one in chosen))
    used_parts: list[Part] = []
    gone: list[Part] = []
    for part in parts:
        by_phase: dict[int, list[Slice]] = {}
        for image in part.slices:
            by_phase.setdefault(image.phase, []).append(image)
        halves: tuple[list[Slice], list[Slice]] = ([], [])
        for pieces in by_phase.values():
            # False is 0 and True 1: the first half goes, the second counts.
            halves[selection.uses(replace(part, slices=tuple(pieces)))].extend(pieces)
        for pieces, into in zip(halves, (gone, used_parts), strict=True):
            if len(pieces) == len(part.slices):
                into.append(part)
            elif pieces:
                into.append(part_of(pieces, part, allow_thin=allow_thin))
    return used_parts, tuple(gone)


def choose_acquisition(
    candidates: Candidates, looks: Looks, selection: Selection, clock: Clock | None, name: str
) -> Acquisition:
    """Return the acquisition that is the DCE exam, with what was left out of the candidates.

    Raises
    ------
    CaseError
        If several may be it, or a part may belong to it and does not fit.
    """
    acquisitions = acquisitions_of(candidates.parts)
    if not acquisitions:
        part = candidates.parts[0]
        raise not_whole(part, without_odd_phases(part))
    first, left = _only_one(acquisitions, looks, name)
    broken = [part for part in candidates.parts if part.problem]
    _require_no_uncertainty(first, acquisitions, broken, name)
    _require_one_turn(first, candidates.parts)
    if not selection.use:
        _require_no_continuation(first, acquisitions, name)
    whole = without_twins(first, looks, clock, name, is_named=bool(selection.use))
    if not looks.shows_contrast([volume.stack for volume in whole.volumes]):
        _require_no_better(whole, acquisitions, looks, name)
    _require_one_pace(whole, name)
    if not selection.use:
        _require_proof(whole, looks, name)
        _require_originals(whole, name)
        _require_facts_of_all(whole, name)
    return replace(whole, left_out=(*whole.left_out, *left))


def _find_fitting_parts(parts: Sequence[Part]) -> list[Part]:
    """Return the parts that are phases by their headers, or that stand in for them."""
    fitting = [part for part in parts if part.role in PHASES | {Role.MOTION_CORRECTED}]
    if any(one.n_times > 1 for one in acquisitions_of(fitting)):
        return fitting
    return fitting + [part for part in parts if part.role is Role.IN_PHASE]


def _describe_odd_parts(parts: Sequence[Part]) -> tuple[str, ...]:
    odd = [part for part in parts if part.role not in PHASES]
    return tuple(
        dict.fromkeys(
            f"{part.header.label} is no DCE phase by its header ({part.role.words}"
            f"), and counts because it was "
            "named"
            for part in odd
        )
    )


def _only_one(
    found: Sequence[Acquisition], looks: Looks, name: str
) -> tuple[Acquisition, list[LeftOut]]:
    """Return the one acquisition that is a dynamic, and why the others are none."""
    dynamic = [one for one in found if one.n_times > 1]
    if not dynamic:
        if len(found) > 1:
            raise ask_which(found, name)
        return found[0], []
    left: list[LeftOut] = []
    slow = [one for one in dynamic if not _is_ultrafast(one)]
    if slow and len(slow) < len(dynamic):
        left += _list_left_out(
            dynamic, slow, Role.ULTRAFAST, "phases closer than 20 s, beside slower ones"
        )
        dynamic = slow
    if len(dynamic) > 1:
        seen = [one for one in dynamic if _shows_contrast(one, looks)]
        if len(seen) == 1:
            left += _list_left_out(
                dynamic, seen, Role.OTHER_SEQUENCE, "no contrast comes, by the pixels"
            )
            dynamic = seen
    if len(dynamic) > 1:
        raise ask_which(dynamic, name)
    left += _flip_angles(dynamic[0], found)
    return dynamic[0], left


def _shows_contrast(one: Acquisition, looks: Looks) -> bool:
    volumes = sorted(one.volumes, key=lambda v: v.moment or (np.inf, 0.0))
    return looks.shows_contrast([volume.stack for volume in volumes])


def _is_ultrafast(one: Acquisition) -> bool:
    gap = one.usual_gap_s
    return gap is not None and gap < ULTRAFAST_GAP_S


def _list_left_out(
    all_of: Sequence[Acquisition], kept: Sequence[Acquisition], role: Role, evidence: str
) -> list[LeftOut]:
    return [
        LeftOut(part, role, evidence)
        for one in all_of
        if not any(one is other for other in kept)
        for part in one.parts
    ]


def _flip_angles(chosen: Acquisition, found: Sequence[Acquisition]) -> list[LeftOut]:
    """Name the scans of other flip angles at the place of the dynamic: they measure T1."""
    first = chosen.parts[0]
    return [
        LeftOut(part, Role.FLIP_ANGLES, f"{part.sequence.flip_degrees:g} degrees, else the same")
        for one in found
        if one is not chosen
        for part in one.parts
        if part.sequence.is_same_but_angle(first.sequence)
        and part.sequence.flip_degrees is not None
        and is_same_place(part, first)
    ]


def _require_no_uncertainty(
    chosen: Acquisition, found: Sequence[Acquisition], broken: Sequence[Part], name: str
) -> None:
    """Refuse where a part might be a phase of the chosen acquisition, but does not fit.

    A broken series of more images than the whole acquisition has may be the exam itself: a T2
    series must not take the place of a DCE series that lacks a slice.
    """
    first = chosen.parts[0]
    n_planes = sum(len(part.slices) for part in chosen.parts)
    for part in broken:
        if len(part.slices) > n_planes or part.sequence.is_same(first.sequence):
            every = [[image] for one in (*chosen.parts, *broken) for image in one.slices]
            remedies = without_odd_phases(part) + leave_out([[p] for p in part.slices], every)
            raise not_whole(part, remedies)
    for other in found:
        part = other.parts[0]
        if other is chosen or not part.sequence.is_same(first.sequence):
            continue
        if chosen.n_times > 1 and _is_turned(first, part):
            continue
        raise ask_which((chosen, other), name)


def _require_one_turn(chosen: Acquisition, parts: Sequence[Part]) -> None:
    """Refuse an acquisition whose own series holds images of another orientation too."""
    for part in chosen.parts:
        for other in parts:
            if is_turned_midway(part, other):
                raise two_turns(part, other)


def _require_no_continuation(chosen: Acquisition, found: Sequence[Acquisition], name: str) -> None:
    """Refuse a dynamic that another acquisition of its place and pace goes on with.

    A parameter or a name that changes midway would leave half of the phases out.
    """
    for other in found:
        if other is not chosen and is_same_place(other.parts[0], chosen.parts[0]):
            first, second = sorted((chosen, other), key=lambda one: one.starts_s or [np.inf])
            if _goes_on(first, second):
                raise ask_which((chosen, other), name)


def _goes_on(first: Acquisition, second: Acquisition) -> bool:
    """Whether an acquisition begins when the next phase of one before it is due."""
    starts, others = first.starts_s, second.starts_s
    pace, other_pace = first.usual_gap_s, second.usual_gap_s
    if starts is None or others is None:
        return False
    if pace is None or other_pace is None:
        return False
    is_due = starts[-1] < others[0] <= starts[-1] + _DUE * max(pace, other_pace)
    return is_due and abs(pace - other_pace) <= _SAME_PACE * pace


def _require_originals(chosen: Acquisition, name: str) -> None:
    """Refuse phases some of which are derived and others not: those may be made of these."""
    parts = [part for part in chosen.parts if "derived" in part.kind.processing]
    if parts and len(parts) < len(chosen.parts):
        others = [part for part in chosen.parts if not any(part is one for one in parts)]
        every = [volume.stack for volume in chosen.volumes]
        remedies = [
            remedy
            for some in (parts, others)
            for remedy in leave_out([v.stack for v in Acquisition(tuple(some)).volumes], every)
        ]
        raise CaseError(
            f"expected phases of one kind in {name}, but {parts[0].header.series_name} is DERIVED "
            f"(ImageType) and {others[0].header.series_name} is not, so it may be computed from "
            "it: leave out what does not count, or name all",
            remedies=[*remedies, use_series(every)],
        )


def _require_facts_of_all(chosen: Acquisition, name: str) -> None:
    """Refuse phases that do not tell TE, TR or the flip angle which others tell.

    They may be of another sequence, and it would not be seen.
    """
    volumes = chosen.volumes
    for what, fact in _FACTS.items():
        bare = [v for v in volumes if any(getattr(p.sequence, fact) is None for p in v.stack)]
        others = [v for v in volumes if not any(v is one for one in bare)]
        if not bare or not others:
            continue
        every = [volume.stack for volume in volumes]
        odd, rest = sorted((bare, others), key=lambda some: (len(some), some is not bare))
        remedies = leave_out([v.stack for v in odd], every)
        if len(odd) == len(rest):  # nothing says which half is the odd one
            remedies += leave_out([v.stack for v in rest], every)
        names = list(dict.fromkeys(v.part.header.series_name for v in bare))
        raise CaseError(
            f"expected {what} in all phases of {name}, but {' and '.join(names)} "
            f"{'does' if len(names) == 1 else 'do'} not tell it and "
            f"{others[0].part.header.series_name} does "
            f"({getattr(others[0].stack[0].sequence, fact):g}), so it may be of another sequence: "
            "leave out what does not count, or name all",
            remedies=[*remedies, use_series(every)],
        )


def _require_no_better(
    chosen: Acquisition, found: Sequence[Acquisition], looks: Looks, name: str
) -> None:
    """Refuse phases without contrast where another series of their place has it against them."""
    first = chosen.volumes[0].stack
    for other in found:
        if other is chosen or not is_same_place(other.parts[0], chosen.parts[0]):
            continue
        if any(looks.shows_contrast([first, v.stack]) for v in other.volumes):
            raise ask_which((chosen, other), name)


def _require_one_pace(chosen: Acquisition, name: str) -> None:
    """Refuse an ultrafast series and a slower one of the same parameters in one acquisition."""
    fast = [
        part for part in chosen.parts if part.n_times > 4 and _is_ultrafast(Acquisition((part,)))
    ]
    rest = Acquisition(tuple(p for p in chosen.parts if not any(p is one for one in fast)))
    if fast and rest.n_times > 2 and not _is_ultrafast(rest):
        raise CaseError(
            f"expected one dynamic in {name}, but the phases of {fast[0].header.series_name} are "
            f"closer than {ULTRAFAST_GAP_S:g} s and those of {rest.name} are not: name the one "
            "that counts",
            remedies=[
                use_series(v.stack for v in one.volumes) for one in (rest, Acquisition((*fast,)))
            ],
        )


def _require_proof(chosen: Acquisition, looks: Looks, name: str) -> None:
    """Refuse volumes of one time that only a count tells apart, unless contrast comes in them."""
    for part in chosen.parts:
        if part.n_times < 2:
            continue
        timed = {
            tuple(piece.clocks.get(clock) for clock in _TELLING) for piece in _find_middle(part)
        }
        if len(timed) == 1 and not looks.shows_contrast([v.stack for v in chosen.volumes]):
            raise CaseError(
                f"expected phases of {name} that time or contrast tells apart, but those of "
                f"{part.header.series_name} have neither: name it if it is the dynamic all the "
                "same",
                remedies=[use_series(v.stack for v in chosen.volumes)],
            )


def _find_middle(part: Part) -> tuple[Slice, ...]:
    return () if part.places is None else part.places.rows[len(part.places.rows) // 2]


def _is_turned(a: Part, b: Part) -> bool:
    normals = (np.cross(p.slices[0].orientation[:3], p.slices[0].orientation[3:]) for p in (a, b))
    return bool(abs(np.dot(*normals)) < _OTHER_ORIENTATION)
