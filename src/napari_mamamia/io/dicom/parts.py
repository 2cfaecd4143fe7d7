"""Split the images of a DICOM study into parts by series and kind of image.

A part is the smallest group of images that a user can select. Its images belong to one series and
share the kind of image (magnitude, water, phase image, ...), the sequence, echo, orientation and
trigger time. If a series shows both breasts in separate stacks, each breast is a part.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import numpy as np

from napari_mamamia.core.choices import Clock
from napari_mamamia.core.errors import CaseError, Remedy
from napari_mamamia.io.dicom.clocks import order_inside
from napari_mamamia.io.dicom.kinds import SequenceKey
from napari_mamamia.io.dicom.roles import PHASES, Kind, Role
from napari_mamamia.io.dicom.slices import UNNUMBERED, BadImage, Header, OtherImage, Slice
from napari_mamamia.io.dicom.stack import Places, find_places, require_one_orientation

Image: TypeAlias = tuple[Slice, ...] | OtherImage | BadImage
"""The content of one DICOM file."""

_SAGITTAL: Final = 0.9
"""Cosine between slice normal and left-right axis above which a stack counts as sagittal."""
_BETWEEN_BREASTS: Final = 3.0
"""Smallest ratio between the gap between the breasts and the usual gap between slices."""
_MOST_TURNS: Final = 8
_FEWEST: Final = 3
"""Smallest number of images with the same orientation in a stack.

A series with more orientations rotates around the body. If an orientation has fewer images, the
series contains an odd image and forms no stack.
"""
_SAME_COSINE: Final = 1e-4
_PLANES: Final = ("sagittal", "coronal", "axial")
_COUNTING: Final = (
    Clock.TEMPORAL_POSITION, Clock.ACQUISITION_TIME, Clock.TRIGGER_TIME, Clock.ACQUIRED,
    Clock.CONTENT_TIME, Clock.ACQUISITION_NUMBER,
)  # fmt: skip
"""Clocks that can number the phases of a series without whole stacks, most reliable first."""


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Images of one kind in one series, the smallest group that a user can select.

    `problem` explains why the images do not form a stack, and `remedies` are the user's options.
    `echo` counts the echoes of a series from 1. `side` is "left" or "right" if a sagittal stack
    shows one breast, otherwise "". `turn` names the orientation if the series has several ("axial",
    or "axial-2" for a second axial one), otherwise it is "". `trigger` counts the trigger times
    from 1 if each phase of the series has several, otherwise it is 0. `n_numbered` is the number of
    phases of all parts that selectors cannot distinguish.
    """

    slices: tuple[Slice, ...]
    places: Places | None
    problem: str
    echo: int = 1
    side: str = ""
    turn: str = ""
    trigger: int = 0
    n_numbered: int = 1
    remedies: tuple[Remedy, ...] = ()

    @property
    def phases(self) -> tuple[int, ...]:
        """The numbers of the phases; `UNNUMBERED` is included if an image has no phase number."""
        return tuple(sorted({image.phase for image in self.slices}))

    @property
    def plane(self) -> str:
        """The orientation, with a number if the series has several stacks of this orientation."""
        return self.turn or _plane_of(self.slices[0])

    @property
    def header(self) -> Header:
        """Header of the first image."""
        return self.slices[0].header

    @property
    def sequence(self) -> SequenceKey:
        """Parameters of the images' pulse sequence."""
        return self.slices[0].sequence

    @property
    def kind(self) -> Kind:
        """Kind of the images according to their headers."""
        return self.slices[0].kind

    @property
    def role(self) -> Role:
        """The role of the images according to their headers."""
        return self.kind.role

    @property
    def n_times(self) -> int:
        """The number of images at each slice position; 0 if the images form no complete stack."""
        return 0 if self.places is None else self.places.n_times


def parts_of(slices: Sequence[Slice], *, allow_thin: bool = False) -> list[Part]:
    """Return the images grouped by series, kind, sequence and side; each image is in one part.

    Phase numbers continue over all parts that selectors cannot distinguish. With `allow_thin`,
    stacks of one or two slices count as complete. Images that are upside down or mirrored relative
    to most phases are flipped.
    """
    by_series: dict[str, list[Slice]] = {}
    for plane in _turned_alike(slices):
        by_series.setdefault(plane.header.series_uid, []).append(plane)
    return _number_parts(
        [part for pieces in by_series.values() for part in _parts_of_series(pieces, allow_thin)]
    )


def _turned_alike(slices: Sequence[Slice]) -> list[Slice]:
    counts = Counter(image.orientation for image in slices if image.kind.role in PHASES)
    if len(counts) < 2:
        return list(slices)
    usual = counts.most_common(1)[0][0]
    # The axes are compared once for each orientation: a study has thousands of images, but few
    # orientations.
    back = {
        orientation: _reversed_axes(orientation, usual)
        for orientation in {p.orientation for p in slices}
    }
    return [_turn_slice(p, back[p.orientation]) if any(back[p.orientation]) else p for p in slices]


def _reversed_axes(told: Sequence[float], usual: Sequence[float]) -> tuple[bool, bool]:
    along, down = (
        next((sign for sign in (1, -1) if np.allclose(a, sign * b, atol=_SAME_COSINE)), 0)
        for a, b in zip(np.reshape(told, (2, 3)), np.reshape(usual, (2, 3)), strict=True)
    )
    return (down < 0, along < 0) if along and down else (False, False)


def _turn_slice(piece: Slice, back: tuple[bool, bool]) -> Slice:
    axes = np.reshape(piece.orientation, (2, 3))
    position = np.array(piece.position_mm)
    for is_back, n, step_mm, axis in zip(back, piece.shape, piece.spacing_mm, (1, 0), strict=True):
        if is_back:
            position = position + (n - 1) * step_mm * axes[axis]
            axes[axis] = -axes[axis]
    return replace(
        piece, reversed_axes=back, position_mm=tuple(position.tolist()),
        orientation=tuple(axes.ravel().tolist()),
    )  # fmt: skip


def part_of(slices: Sequence[Slice], like: Part, *, allow_thin: bool = False) -> Part:
    """Return a new part that contains some of the images of a part."""
    return _place_part(replace(like, slices=tuple(slices)), allow_thin)


def _number_parts(parts: Sequence[Part]) -> list[Part]:
    groups: dict[tuple[object, ...], list[int]] = {}
    # Phases are counted in order of time; the parts return to their own order below.
    for at, part in sorted(enumerate(parts), key=lambda both: _find_start(both[1])):
        key = (part.header.series_number, part.role, part.echo, part.side, part.turn, part.trigger)
        groups.setdefault(key, []).append(at)
    new_parts: dict[int, Part] = {}
    for members in groups.values():
        reached = 0
        for at in members:
            slices, places = _number_phases(parts[at].slices, parts[at].places, reached)
            new_parts[at] = replace(parts[at], slices=slices, places=places)
            reached = max(reached, *(image.phase + 1 for image in slices))
        for at in members:
            new_parts[at] = replace(new_parts[at], n_numbered=reached)
    return [new_parts[index] for index in range(len(parts))]


def _number_phases(
    slices: Sequence[Slice], places: Places | None, first: int = 0
) -> tuple[tuple[Slice, ...], Places | None]:
    """Return a part's images with phases numbered from `first` in chronological order.

    If the stacks are incomplete, the images of one time form a phase, provided that most times have
    the same number of images. Images of unknown phase get `UNNUMBERED`.
    """
    numbers = _of_parted(slices) if places is None else _of_stacks(places)
    phase_by_id = {
        id(plane): UNNUMBERED if number == UNNUMBERED else number + first
        for plane, number in numbers
    }
    if all(image.phase == phase_by_id[id(image)] for image in slices):
        return tuple(slices), places
    new = {id(image): replace(image, phase=phase_by_id[id(image)]) for image in slices}
    if places is not None:
        rows = tuple(tuple(new[id(plane)] for plane in row) for row in places.rows)
        places = replace(places, rows=rows)
    return tuple(new[id(image)] for image in slices), places


def _of_stacks(places: Places) -> list[tuple[Slice, int]]:
    flat = places.slices
    stacks = order_inside(flat, places.n_times)
    if stacks is None:
        return [(plane, UNNUMBERED) for plane in flat]
    return [(flat[index], phase) for phase, stack in enumerate(stacks) for index in stack]


def _of_parted(slices: Sequence[Slice]) -> list[tuple[Slice, int]]:
    for clock in _COUNTING:
        values = [image.clocks.get(clock) for image in slices]
        numbers = np.array([np.nan if value is None else value for value in values])
        if np.isnan(numbers).any():
            continue
        _, phases, counts = np.unique(numbers, return_inverse=True, return_counts=True)
        usual = int(np.median(counts))
        if len(counts) > 1 and usual > 1 and np.mean(counts == usual) > 1 / 2:
            return list(zip(slices, phases.tolist(), strict=True))
    return [(image, UNNUMBERED) for image in slices]


def _find_start(part: Part) -> float:
    return min(image.clocks.get(Clock.ACQUISITION_TIME, 0.0) for image in part.slices)


def _parts_of_series(own: Sequence[Slice], allow_thin: bool) -> list[Part]:
    by_kind: dict[Kind, list[Slice]] = {}
    for plane in own:
        by_kind.setdefault(plane.kind, []).append(plane)
    parts = []
    groups: list[Part] = []
    for pieces in by_kind.values():
        for turned, turn in _by_orientation(pieces):
            try:
                require_one_orientation(turned)
            except CaseError as error:
                parts.append(Part(tuple(turned), None, str(error), remedies=error.remedies))
                continue
            for alike in _by_sequence(turned):
                groups += [Part(tuple(g), None, "", turn=turn) for g in _by_echo(alike)]
    for group in _with_echoes(groups):
        for beat in _by_trigger(group):
            parts += [_place_part(half, allow_thin) for half in _split_sides(beat)]
    return parts


def _by_orientation(pieces: Sequence[Slice]) -> list[tuple[list[Slice], str]]:
    groups: list[list[Slice]] = []
    for image in pieces:
        group = next((g for g in groups if _is_parallel(g[0], image)), None)
        if group is None:
            groups.append([image])
        else:
            group.append(image)
    if not 1 < len(groups) <= _MOST_TURNS or min(map(len, groups)) < _FEWEST:
        return [(list(pieces), "")]
    names = [_plane_of(group[0]) for group in groups]
    ranks = [names[: index + 1].count(name) for index, name in enumerate(names)]
    return [
        (group, name if rank == 1 else f"{name}-{rank}")
        for group, name, rank in zip(groups, names, ranks, strict=True)
    ]


def _is_parallel(a: Slice, b: Slice) -> bool:
    return (
        max(abs(p - q) for p, q in zip(a.orientation, b.orientation, strict=True)) <= _SAME_COSINE
    )


def _plane_of(piece: Slice) -> str:
    normal = np.cross(piece.orientation[:3], piece.orientation[3:])
    return _PLANES[int(np.argmax(np.abs(normal)))]


def _by_trigger(group: Part) -> list[Part]:
    """Return the images grouped by TriggerTime if each phase has several trigger times.

    The images are split only if every acquisition time occurs with every trigger time. Otherwise
    TriggerTime may distinguish the phases.
    """
    moments = [
        (p.clocks.get(Clock.ACQUISITION_TIME), p.clocks.get(Clock.TRIGGER_TIME))
        for p in group.slices
    ]
    times, triggers = {time for time, _ in moments}, {trigger for _, trigger in moments}
    if None in times | triggers or min(len(times), len(triggers)) < 2:
        return [group]
    if len(set(moments)) < len(times) * len(triggers):
        return [group]
    ordered = sorted(trigger for trigger in triggers if trigger is not None)
    return [
        replace(
            group,
            slices=tuple(
                p
                for p, (_, trigger_time) in zip(group.slices, moments, strict=True)
                if trigger_time == one
            ),
            trigger=number,
        )
        for number, one in enumerate(ordered, start=1)
    ]


def _by_sequence(pieces: Sequence[Slice]) -> list[list[Slice]]:
    exact: dict[SequenceKey, list[Slice]] = {}
    for image in pieces:
        exact.setdefault(image.sequence, []).append(image)
    groups: list[list[Slice]] = []
    for sequence, members in exact.items():
        group = next((g for g in groups if g[0].sequence.is_same(sequence)), None)
        if group is None:
            groups.append(members)
        else:
            group.extend(members)
    return groups


def _by_echo(pieces: Sequence[Slice]) -> list[list[Slice]]:
    """Return the images grouped by EchoNumbers if these number echoes without an echo time.

    EchoNumbers number echoes if each echo shows a slice position more than once, or if echoes share
    their times. Otherwise EchoNumbers may count the phases.
    """
    by_echo: dict[int | None, list[Slice]] = {}
    for image in pieces:
        by_echo.setdefault(image.echo, []).append(image)
    if pieces[0].sequence.echo_time_ms is not None or None in by_echo or len(by_echo) < 2:
        return [list(pieces)]
    is_repeated = all(
        len({p.position_mm for p in members}) < len(members) for members in by_echo.values()
    )
    times = [
        {p.clocks.get(Clock.ACQUISITION_TIME) for p in members} for members in by_echo.values()
    ]
    if not is_repeated and (times[0] != times[1] or None in times[0]):
        return [list(pieces)]
    return [
        [replace(p, sequence=replace(p.sequence, echo_number=echo)) for p in members]
        for echo, members in by_echo.items()
    ]


def _with_echoes(groups: Sequence[Part]) -> list[Part]:
    times = sorted({g.sequence.echo_time_ms or 0.0 for g in groups})
    return [
        replace(g, echo=g.slices[0].echo or times.index(g.sequence.echo_time_ms or 0.0) + 1)
        for g in groups
    ]


def _split_sides(group: Part) -> list[Part]:
    first = group.slices[0]
    x = np.array([image.position_mm[0] for image in group.slices])
    normal = np.cross(first.orientation[:3], first.orientation[3:])
    if abs(normal[0]) < _SAGITTAL:
        return [group]
    positions = np.unique(np.round(x, 2))
    if positions[0] * positions[-1] > 0 or len(positions) < 2:
        return [replace(group, side="left" if positions[0] > 0 else "right")]
    gaps = np.diff(positions)
    index = int(np.searchsorted(positions, 0.0, side="right")) - 1
    if gaps[index] < _BETWEEN_BREASTS * float(np.median(gaps)):
        return [group]
    left_planes = tuple(p for p in group.slices if p.position_mm[0] > 0)
    right = tuple(p for p in group.slices if p.position_mm[0] <= 0)
    return [
        replace(group, slices=left_planes, side="left"),
        replace(group, slices=right, side="right"),
    ]


def _place_part(part: Part, allow_thin: bool) -> Part:
    try:
        places = find_places(part.slices, allow_thin=allow_thin)
    except CaseError as error:
        return replace(part, places=None, problem=str(error), remedies=error.remedies)
    return replace(part, places=places, problem="", remedies=())
