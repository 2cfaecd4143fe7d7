"""Errors that ask the user which images to use, each with its remedies."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from napari_mamamia.core.choices import Sides
from napari_mamamia.core.errors import CaseError, Remedy
from napari_mamamia.io.dicom.parts import Part
from napari_mamamia.io.dicom.remedies import leave_out, series_selector, use_series
from napari_mamamia.io.dicom.roles import PHASES, Role
from napari_mamamia.io.dicom.slices import Slice
from napari_mamamia.io.dicom.stack import find_places
from napari_mamamia.io.exam.acquisitions import Acquisition, LeftOut, acquisitions_of, difference
from napari_mamamia.io.exam.selectors import selectors_of

_MOST_REMEDIES: Final = 6
_NO_DYNAMIC: Final = frozenset({Role.LOCALISER, Role.DIFFUSION, Role.ECHO_TRAIN, Role.FIELD_MAP})
"""Roles whose repeated stacks are not phases."""
_NONE: Final = (
    "none of them is a dynamic of two phases or more: choose the folder of the DCE series"
)


def ask_which(found: Sequence[Acquisition], name: str) -> CaseError:
    """Return the error that asks which acquisition to use, with the main differences."""
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
        f"expected series of one size and place in {name}, but {_add_count(a)} and {_add_count(b)}"
        f"{others} differ: {difference(a.parts[0], b.parts[0])}; "
        + ("choose the ones to use" if remedies else _NONE),
        remedies=remedies,
    )


def _add_count(one: Acquisition) -> str:
    return f"{one.name} ({one.n_times} phase{'s' * (one.n_times > 1)})"


def _find_remedy(one: Acquisition, found: Sequence[Acquisition]) -> list[Remedy]:
    """Return the remedy that uses only one acquisition."""
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
    """Return advice for using images that are not phases by their headers, and the remedies.

    The text is "" where none of the images have two phases.

    If only a word of the description is the evidence against some images, only these are offered.
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
            f"; for {series} only a word of the description is the reason ({', '.join(words)}), "
            "and ImageType "
            "does not call them derived: if they are the scans themselves, choose them together "
            "with the one "
            "before contrast",
            [_use_all(acquisition) for acquisition in named],
        )
    others = [acquisition for acquisition in acquisitions_of(parts) if acquisition.n_times > 1]
    advice = ", or choose the series to use nevertheless" if others else ""
    return advice, [_use_all(other) for other in others]


def _use_all(one: Acquisition) -> Remedy:
    ordered = sorted(one.volumes, key=lambda volume: volume.part.header.series_number or 0)
    return use_series(volume.stack for volume in ordered)


def not_whole(part: Part, remedies: Sequence[Remedy]) -> CaseError:
    """Return the error for a part without complete stacks; `remedies` leave some images out."""
    advice = "; or leave out the incomplete phases" if remedies else ""
    return CaseError(f"{part.problem}{advice}", remedies=[*part.remedies, *remedies])


def without_odd_phases(part: Part) -> list[Remedy]:
    """Return the remedy that leaves out phases so that a part forms complete stacks."""
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
    """Return whether two parts are images of one series in two orientations."""
    return a.header.series_uid == b.header.series_uid and a.turn != b.turn


def two_turns(a: Part, b: Part) -> CaseError:
    """Return the error that asks which orientation of a series to use."""
    dynamic = [part for part in (a, b) if part.n_times > 1] or (a, b)
    return CaseError(
        f"expected one orientation in {a.header.series_name}, but it holds {len(a.slices)} "
        f"{a.plane} and {len(b.slices)} {b.plane} images: choose one of them",
        remedies=[
            Remedy("use", (f"{series_selector(part.slices)},orientation={part.plane}",))
            for part in dynamic
        ],
    )
