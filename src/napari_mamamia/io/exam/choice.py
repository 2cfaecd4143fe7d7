"""Choose the acquisition that is the DCE exam if the evidence is clear; otherwise ask the user."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from napari_mamamia.core.choices import Clock, Sides
from napari_mamamia.core.errors import CaseError, Remedy
from napari_mamamia.io.dicom.parts import Part, part_of
from napari_mamamia.io.dicom.remedies import leave_out, leave_out_each, series_selector, use_series
from napari_mamamia.io.dicom.roles import PHASES, Role
from napari_mamamia.io.dicom.slices import Slice
from napari_mamamia.io.dicom.stack import find_places
from napari_mamamia.io.exam.acquisitions import (
    Acquisition,
    LeftOut,
    acquisitions_of,
    difference,
    is_same_place,
    without_twins,
)
from napari_mamamia.io.exam.looks import Looks
from napari_mamamia.io.exam.runs import ULTRAFAST_GAP_S
from napari_mamamia.io.exam.selectors import Selection, selectors_of

_MOST_REMEDIES: Final = 6
_NO_DYNAMIC: Final = frozenset({Role.LOCALISER, Role.DIFFUSION, Role.ECHO_TRAIN, Role.FIELD_MAP})
"""Roles of images that are repeated in time but are not phases."""
_NONE: Final = (
    "none of them is a dynamic series of at least two phases: choose the folder of the DCE series"
)
_TELLING: Final = (
    Clock.ACQUISITION_TIME.value,
    Clock.CONTENT_TIME.value,
    Clock.TRIGGER_TIME.value,
    Clock.TEMPORAL_POSITION.value,
    Clock.ACQUISITION_NUMBER.value,
)
"""DICOM elements of which at least one must differ between phases without visible contrast."""
_FACTS: Final = {
    "FlipAngle": "flip_degrees", "RepetitionTime": "repetition_time_ms",
    "EchoTime": "echo_time_ms",
}  # fmt: skip
"""DICOM elements that must be present in all phases or in none, and their sequence attributes."""
_DUE: Final = 1.7
_SAME_PACE: Final = 0.2
"""Largest relative difference in gaps between an acquisition and its continuation."""
_OTHER_ORIENTATION: Final = 0.9
"""Cosine between slice normals below which a series is not part of a dynamic series.

Our choice corresponds to 26 degrees, which is far above the positioning error between two series.
"""


def ask_which(found: Sequence[Acquisition], name: str) -> CaseError:
    """Return the error that asks the user which of several acquisitions to use."""
    a, b = found[:2]
    if is_turned_midway(a.parts[0], b.parts[0]):
        return two_turns(a.parts[0], b.parts[0])
    others = f", and {len(found) - 2} more" * (len(found) > 2)
    dynamic = [acquisition for acquisition in found if acquisition.n_times > 1]
    remedies = [
        remedy
        for acquisition in dynamic[:_MOST_REMEDIES]
        for remedy in _find_remedy(acquisition, found)
    ]
    if {"left", "right"} <= {acquisition.parts[0].side for acquisition in dynamic}:
        remedies = [Remedy("sides", (Sides.JOIN,)), Remedy("sides", (Sides.TWO,)), *remedies]
    return CaseError(
        (
            f"expected series with the same size and position in {name}, but {_add_count(a)} and "
            f"{_add_count(b)}{others} differ: {difference(a.parts[0], b.parts[0])}; "
        )
        + ("choose the series to use" if remedies else _NONE),
        remedies=remedies,
    )


def _add_count(one: Acquisition) -> str:
    return f"{one.name} ({one.n_times} phase{'s' * (one.n_times > 1)})"


def _find_remedy(one: Acquisition, found: Sequence[Acquisition]) -> list[Remedy]:
    others = [part for other in found if other is not one for part in other.parts]
    side = one.parts[0].side
    if side and all(other.side not in ("", side) for other in others):
        return [Remedy("use", (f"side={side}",))]
    series_numbers = {part.header.series_number for part in one.parts}
    series = series_selector(v.stack[0] for v in one.volumes)
    roles = dict.fromkeys(part.role for part in one.parts if part.role not in PHASES)
    series += f",role={','.join(roles)}" * bool(roles)
    if not any(other.header.series_number in series_numbers for other in others):
        return [Remedy("use", (series,))]
    first = {selector.text for selector in selectors_of(one.parts[0]) if selector.key != "phase"}
    other_texts = {selector.text for other in others for selector in selectors_of(other)}
    apart = sorted(text for text in first - other_texts if not text.startswith("series="))
    if apart:
        return [Remedy("use", (f"{series},{apart[-1]}",))]
    every = [volume.stack for other in found for volume in other.volumes]
    return leave_out([v.stack for other in found if other is not one for v in other.volumes], every)


def or_named(left_out: Sequence[LeftOut]) -> tuple[str, list[Remedy]]:
    """Return advice and remedies for using images that are not phases according to their headers.

    The advice is "" if no images have two phases.

    If the only evidence against some images is a word in the description, the remedies cover only
    these images.
    """
    parts = [
        acquisition.part for acquisition in left_out if acquisition.part.role not in _NO_DYNAMIC
    ]
    by_name = [part for part in parts if part.kind.is_by_name]
    named = [acquisition for acquisition in acquisitions_of(by_name) if acquisition.n_times > 1]
    if named:
        words = dict.fromkeys(
            part.kind.evidence for acquisition in named for part in acquisition.parts
        )
        series = " and ".join(acquisition.name for acquisition in named)
        return (
            (
                f"; the only reason to exclude {series} is a word in the description "
                f"({', '.join(words)}), and ImageType is not DERIVED: if these images are the "
                "original scans, choose them together with the pre-contrast series"
            ),
            [_use_all(acquisition) for acquisition in named],
        )
    others = [acquisition for acquisition in acquisitions_of(parts) if acquisition.n_times > 1]
    advice = ", or choose the series to use them anyway" if others else ""
    return advice, [_use_all(other) for other in others]


def _use_all(one: Acquisition) -> Remedy:
    ordered = sorted(one.volumes, key=lambda volume: volume.part.header.series_number or 0)
    return use_series(volume.stack for volume in ordered)


def not_whole(part: Part, remedies: Sequence[Remedy]) -> CaseError:
    """Return the error for a part without complete stacks; `remedies` leave out some images."""
    advice = "; or leave out the incomplete phases" if remedies else ""
    return CaseError(f"{part.problem}{advice}", remedies=[*part.remedies, *remedies])


def without_odd_phases(part: Part) -> list[Remedy]:
    """Return the remedy that leaves out some phases so that a part forms complete stacks."""
    by_phase: dict[int, list[Slice]] = {}
    for plane in part.slices:
        by_phase.setdefault(plane.phase, []).append(plane)
    for facts in (_describe_places, _describe_sizes):
        facts_by_phase = {phase: facts(pieces) for phase, pieces in by_phase.items()}
        usual, _ = Counter(facts_by_phase.values()).most_common(1)[0]
        odd = [pieces for phase, pieces in by_phase.items() if facts_by_phase[phase] != usual]
        rest = [
            image
            for phase, pieces in by_phase.items()
            if facts_by_phase[phase] == usual
            for image in pieces
        ]
        if odd and _is_whole(rest):
            return leave_out(odd, by_phase.values())
    return []


def _describe_places(pieces: Sequence[Slice]) -> tuple[object, ...]:
    places = sorted(tuple(round(mm, 1) for mm in image.position_mm) for image in pieces)
    return *_describe_sizes(pieces), tuple(places)


def _describe_sizes(pieces: Sequence[Slice]) -> tuple[object, ...]:
    sizes = {(p.shape, p.spacing_mm, p.orientation) for p in pieces}
    return len(pieces), frozenset(sizes)


def _is_whole(pieces: Sequence[Slice]) -> bool:
    try:
        find_places(pieces)
    except CaseError:
        return False
    return True


def is_turned_midway(a: Part, b: Part) -> bool:
    """Return whether two parts belong to one series whose orientation changes midway."""
    return a.header.series_uid == b.header.series_uid and a.turn != b.turn


def two_turns(a: Part, b: Part) -> CaseError:
    """Return the error that asks the user which orientation of a series to use."""
    dynamic = [part for part in (a, b) if part.n_times > 1] or (a, b)
    return CaseError(
        f"expected only one orientation in {a.header.series_name}, but it has {len(a.slices)} "
        f"{a.plane} and {len(b.slices)} {b.plane} images: choose one orientation",
        remedies=[
            Remedy("use", (f"{series_selector(part.slices)},orientation={part.plane}",))
            for part in dynamic
        ],
    )


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """The parts that may be phases, those that headers exclude, and those not selected.

    `warnings` name parts that are included only because the user chose them.
    """

    parts: tuple[Part, ...]
    left_out: tuple[LeftOut, ...]
    not_chosen: tuple[Part, ...]
    warnings: tuple[str, ...] = ()


def candidates_of(
    parts: Sequence[Part], selection: Selection, *, allow_thin: bool = False
) -> Candidates:
    """Return the parts that may be phases, judged by headers and the user's selection.

    All images of a role that the user chose are included. From a series that the user chose, the
    phases are included; if the series has no phases, all its images are included, with a warning.
    """
    chosen, unwanted = _split_parts(parts, selection, allow_thin)
    by_role = [part for part in chosen if selection.names_role_of(part)]
    fitting = _find_fitting_parts([part for part in chosen if part not in by_role])
    series = {part.header.series_uid for part in (*fitting, *by_role)}
    named = by_role + [
        part
        for part in chosen
        if part.header.series_uid not in series
        and selection.names_series(part.header.series_number)
    ]
    counted = [part for part in chosen if part in fitting or part in named]
    left_out = tuple(
        LeftOut(part, part.role, part.kind.evidence) for part in chosen if part not in counted
    )
    return Candidates(tuple(counted), left_out, unwanted, _describe_odd_parts(named))


def _split_parts(
    parts: Sequence[Part], selection: Selection, allow_thin: bool
) -> tuple[list[Part], tuple[Part, ...]]:
    """Return the parts that the user's selection includes, and the others.

    A selection of phases may split a part.
    """
    if not selection.names_phases:
        chosen = [part for part in parts if selection.uses(part)]
        return chosen, tuple(part for part in parts if part not in chosen)
    used_parts: list[Part] = []
    gone: list[Part] = []
    for part in parts:
        by_phase: dict[int, list[Slice]] = {}
        for image in part.slices:
            by_phase.setdefault(image.phase, []).append(image)
        halves: tuple[list[Slice], list[Slice]] = ([], [])
        for pieces in by_phase.values():
            # False is 0 and True is 1: the first half is left out, and the second half is kept.
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
    """Return the acquisition that is the DCE exam, and the excluded candidates.

    Raises
    ------
    CaseError
        If several acquisitions may be the exam, or if a part that may belong to the exam does not
        fit.
    """
    acquisitions = acquisitions_of(candidates.parts)
    if not acquisitions:
        part = candidates.parts[0]
        raise not_whole(part, without_odd_phases(part))
    first, left_out = _only_one(acquisitions, looks, name)
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
    return replace(whole, left_out=(*whole.left_out, *left_out))


def _find_fitting_parts(parts: Sequence[Part]) -> list[Part]:
    fitting = [part for part in parts if part.role in PHASES | {Role.MOTION_CORRECTED}]
    if any(acquisition.n_times > 1 for acquisition in acquisitions_of(fitting)):
        return fitting
    return fitting + [part for part in parts if part.role is Role.IN_PHASE]


def _describe_odd_parts(parts: Sequence[Part]) -> tuple[str, ...]:
    odd = [part for part in parts if part.role not in PHASES]
    return tuple(
        dict.fromkeys(
            (
                f"{part.header.label} was used because it was chosen, although by its header it "
                f"is not a DCE phase ({part.role.words})"
            )
            for part in odd
        )
    )


def _only_one(
    found: Sequence[Acquisition], looks: Looks, name: str
) -> tuple[Acquisition, list[LeftOut]]:
    dynamic = [acquisition for acquisition in found if acquisition.n_times > 1]
    if not dynamic:
        if len(found) > 1:
            raise ask_which(found, name)
        return found[0], []
    left_out: list[LeftOut] = []
    slow = [acquisition for acquisition in dynamic if not _is_ultrafast(acquisition)]
    if slow and len(slow) < len(dynamic):
        left_out += _list_left_out(
            dynamic,
            slow,
            Role.ULTRAFAST,
            "phases less than 20 s apart, in addition to slower phases",
        )
        dynamic = slow
    if len(dynamic) > 1:
        seen = [acquisition for acquisition in dynamic if _shows_contrast(acquisition, looks)]
        if len(seen) == 1:
            left_out += _list_left_out(
                dynamic, seen, Role.OTHER_SEQUENCE, "no contrast in its pixels"
            )
            dynamic = seen
    if len(dynamic) > 1:
        raise ask_which(dynamic, name)
    left_out += _flip_angles(dynamic[0], found)
    return dynamic[0], left_out


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
        for acquisition in all_of
        if acquisition not in kept
        for part in acquisition.parts
    ]


def _flip_angles(chosen: Acquisition, found: Sequence[Acquisition]) -> list[LeftOut]:
    first = chosen.parts[0]
    return [
        LeftOut(
            part,
            Role.FLIP_ANGLES,
            f"flip angle of {part.sequence.flip_degrees:g} degrees, otherwise the same sequence",
        )
        for acquisition in found
        if acquisition is not chosen
        for part in acquisition.parts
        if part.sequence.is_same_but_angle(first.sequence)
        and part.sequence.flip_degrees is not None
        and is_same_place(part, first)
    ]


def _require_no_uncertainty(
    chosen: Acquisition, found: Sequence[Acquisition], broken: Sequence[Part], name: str
) -> None:
    """Raise an error if a part may belong to the chosen acquisition but does not fit it.

    An incomplete series with more images than the chosen acquisition may be the exam itself. This
    check prevents a T2 series from replacing a DCE series that lacks a slice.
    """
    first = chosen.parts[0]
    n_planes = sum(len(part.slices) for part in chosen.parts)
    for part in broken:
        if len(part.slices) > n_planes or part.sequence.is_same(first.sequence):
            every = [
                [image] for other_part in (*chosen.parts, *broken) for image in other_part.slices
            ]
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
    for part in chosen.parts:
        for other in parts:
            if is_turned_midway(part, other):
                raise two_turns(part, other)


def _require_no_continuation(chosen: Acquisition, found: Sequence[Acquisition], name: str) -> None:
    """Raise an error if another acquisition with equal position and gaps continues the chosen one.

    Otherwise a change of a parameter or name in the middle would remove half of the phases.
    """
    for other in found:
        if other is not chosen and is_same_place(other.parts[0], chosen.parts[0]):
            first, second = sorted((chosen, other), key=lambda one: one.starts_s or [np.inf])
            if _goes_on(first, second):
                raise ask_which((chosen, other), name)


def _goes_on(first: Acquisition, second: Acquisition) -> bool:
    starts, others = first.starts_s, second.starts_s
    pace, other_pace = first.usual_gap_s, second.usual_gap_s
    if starts is None or others is None:
        return False
    if pace is None or other_pace is None:
        return False
    is_due = starts[-1] < others[0] <= starts[-1] + _DUE * max(pace, other_pace)
    return is_due and abs(pace - other_pace) <= _SAME_PACE * pace


def _require_originals(chosen: Acquisition, name: str) -> None:
    parts = [part for part in chosen.parts if "derived" in part.kind.processing]
    if parts and len(parts) < len(chosen.parts):
        others = [part for part in chosen.parts if part not in parts]
        every = [volume.stack for volume in chosen.volumes]
        groups = ([v.stack for v in Acquisition(tuple(some)).volumes] for some in (parts, others))
        raise CaseError(
            f"expected all phases of {name} to be original or all to be derived, but "
            f"{parts[0].header.series_name} is DERIVED (ImageType) and "
            f"{others[0].header.series_name} is not, so the first may be computed from the "
            "second: leave out the computed series, or use both",
            remedies=[*leave_out_each(groups, every), use_series(every)],
        )


def _require_facts_of_all(chosen: Acquisition, name: str) -> None:
    """Raise an error if only some phases have an echo time, repetition time or flip angle.

    These phases may come from different sequences, and the comparison of sequences would not show
    it.
    """
    volumes = chosen.volumes
    for what, fact in _FACTS.items():
        bare = [v for v in volumes if any(getattr(p.sequence, fact) is None for p in v.stack)]
        others = [v for v in volumes if v not in bare]
        if not bare or not others:
            continue
        every = [volume.stack for volume in volumes]
        odd, rest = sorted((bare, others), key=lambda some: (len(some), some is not bare))
        remedies = leave_out([v.stack for v in odd], every)
        if len(odd) == len(rest):  # Nothing shows which half is wrong.
            remedies += leave_out([v.stack for v in rest], every)
        names = list(dict.fromkeys(v.part.header.series_name for v in bare))
        raise CaseError(
            f"expected {what} in all phases of {name}, but {' and '.join(names)} "
            f"{'lacks' if len(names) == 1 else 'lack'} it, and "
            f"{others[0].part.header.series_name} has the value "
            f"{getattr(others[0].stack[0].sequence, fact):g}, so the phases may come from "
            "different sequences: leave out the wrong phases, or use all phases",
            remedies=[*remedies, use_series(every)],
        )


def _require_no_better(
    chosen: Acquisition, found: Sequence[Acquisition], looks: Looks, name: str
) -> None:
    first = chosen.volumes[0].stack
    for other in found:
        if other is chosen or not is_same_place(other.parts[0], chosen.parts[0]):
            continue
        if any(looks.shows_contrast([first, v.stack]) for v in other.volumes):
            raise ask_which((chosen, other), name)


def _require_one_pace(chosen: Acquisition, name: str) -> None:
    fast = [
        part for part in chosen.parts if part.n_times > 4 and _is_ultrafast(Acquisition((part,)))
    ]
    rest = Acquisition(tuple(part for part in chosen.parts if part not in fast))
    if fast and rest.n_times > 2 and not _is_ultrafast(rest):
        raise CaseError(
            f"expected only one dynamic series in {name}, but the phases of "
            f"{fast[0].header.series_name} are less than {ULTRAFAST_GAP_S:g} s apart, and those "
            f"of {rest.name} are not: choose one dynamic series",
            remedies=[
                use_series(v.stack for v in acquisition.volumes)
                for acquisition in (rest, Acquisition((*fast,)))
            ],
        )


def _require_proof(chosen: Acquisition, looks: Looks, name: str) -> None:
    for part in chosen.parts:
        if part.n_times < 2:
            continue
        timed = {
            tuple(plane.clocks.get(clock) for clock in _TELLING) for plane in _find_middle(part)
        }
        if len(timed) == 1 and not looks.shows_contrast([v.stack for v in chosen.volumes]):
            raise CaseError(
                f"expected the phases of {name} to differ in time or contrast, but those of "
                f"{part.header.series_name} do not: if it is the dynamic series anyway, choose it "
                "explicitly",
                remedies=[use_series(v.stack for v in chosen.volumes)],
            )


def _find_middle(part: Part) -> tuple[Slice, ...]:
    return () if part.places is None else part.places.rows[len(part.places.rows) // 2]


def _is_turned(a: Part, b: Part) -> bool:
    normals = (np.cross(p.slices[0].orientation[:3], p.slices[0].orientation[3:]) for p in (a, b))
    return bool(abs(np.dot(*normals)) < _OTHER_ORIENTATION)
