"""Find the phases of the DCE exam among the images of one DICOM study.

Each part of a series gets a role (`parts`, `kinds`), one acquisition is chosen as the exam
(`choice`), each of its times is kept once (`acquisitions`), a clock orders them (`clocks`), and the
run that enhances after its own pre-contrast phase is kept (`runs`). Everything that is left out is
listed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.choices import Clock
from napari_mamamia.core.errors import CaseError, FormatError, Remedy
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.names import count_of
from napari_mamamia.core.records import CaseWarning
from napari_mamamia.io.dicom.clocks import (
    Choice,
    add_refused_times,
    choose_clock,
    list_refused_times,
    time_oddities,
)
from napari_mamamia.io.dicom.parts import Image, Part, part_of, parts_of
from napari_mamamia.io.dicom.remedies import LEAVE_UNREADABLE_OUT, leave_out
from napari_mamamia.io.dicom.roles import PHASES, Role
from napari_mamamia.io.dicom.slices import BadImage, Header, Slice
from napari_mamamia.io.dicom.stack import FEWEST
from napari_mamamia.io.exam import inconsistencies, runs
from napari_mamamia.io.exam.acquisitions import Acquisition, LeftOut, is_same_place
from napari_mamamia.io.exam.choice import Candidates, candidates_of, choose_acquisition, or_named
from napari_mamamia.io.exam.copies import sent_once, without_copies
from napari_mamamia.io.exam.days import align_days, shifted_days
from napari_mamamia.io.exam.looks import Looks
from napari_mamamia.io.exam.selectors import Selection, idle_groups
from napari_mamamia.io.exam.table import SeriesRow, others_named, table_of, undecided_table
from napari_mamamia.io.exam.values import check_values, value_warnings

_EVERYTHING = Selection()


@dataclass(frozen=True, slots=True)
class SideSlices:
    """The slices of one breast in a joined exam, from `first` to `last` inclusive."""

    side: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Joined:
    """Two breasts joined in one exam, in stack order, with `padding` between their slices."""

    sides: tuple[SideSlices, ...]
    padding: int = 0


@dataclass(frozen=True, slots=True)
class Exam:
    """The phases of one DCE exam on one grid; planes are in stack order, phase after phase.

    The grid's array is (z, y, x) as DICOM stores planes: x along a row, y down a column, z up the
    stack. `times_s` are seconds since phase 0, or None if unknown. `joined` describes the position
    of two breasts on the grid, or is None for a single stack. `blocks` are block means of some
    planes of each phase.
    """

    stacks: tuple[tuple[Slice, ...], ...]
    grid: Grid
    choice: Choice
    rows: tuple[SeriesRow, ...]
    warnings: tuple[CaseWarning, ...]
    joined: Joined | None = None
    blocks: tuple[NDArray[np.float32], ...] = field(default=(), repr=False, compare=False)

    @property
    def times_s(self) -> tuple[float, ...] | None:
        """Time of each phase in seconds since phase 0."""
        return self.choice.chosen.times_s


def find_exam(
    images: Sequence[Image],
    name: str,
    *,
    clock: Clock | None = None,
    selection: Selection = _EVERYTHING,
    allow_thin: bool = False,
) -> Exam:
    """Return the phases of a study's DCE exam.

    Images that might belong to the exam but do not fit raise an error. Other images are left out
    and listed. Some planes of the volumes are read to find the contrast.

    Parameters
    ----------
    images
        The result of `read_slices` for each file of the study.
    name
        Name of the study's folder, for messages.
    clock
        The clock that the user chose; if None, a clock is chosen.
    selection
        The parts that the user chose, or left out.
    allow_thin
        Whether stacks of one or two slices count as complete.

    Raises
    ------
    FormatError
        If no MR image can be a phase, or an image has no position.
    CaseError
        If the exam contradicts itself: missing or duplicate slices, unequal stacks, a changing
        orientation, no usable clock, two acquisitions that fit, or two patients.
    """
    _require_one_patient(images, selection, name)
    pieces, warnings = without_copies(_list_slices(images), name)
    pieces, again = sent_once(pieces)
    pieces, assumed = align_days(pieces, selection)
    parts = parts_of(pieces, allow_thin=allow_thin)
    pieces, filled = inconsistencies.fill_times(pieces, parts)
    if filled:
        parts = parts_of(pieces, allow_thin=allow_thin)
    candidates = candidates_of(parts, selection, allow_thin=allow_thin)
    _require_whole(images, candidates, selection, name)
    looks = Looks()
    chosen = choose_acquisition(candidates, looks, selection, clock, name)
    title = name if len(chosen.parts) > 1 else chosen.parts[0].header.series_name
    rows, grid = _join_parts(chosen.parts)
    shifted = shifted_days([volume.stack for volume in chosen.volumes], title)
    if shifted and not selection.use:
        raise shifted
    choice = choose_clock(rows, title, clock)
    unscaled = check_values(_make_stacks(rows, choice), title)
    of_values = _raise_or_warn(unscaled, is_named=bool(selection.use))
    looks.require_values(_make_stacks(rows, choice))
    is_named = bool(selection.use or clock)
    run, doubts = _choose_run(rows, choice, looks, selection, title, is_named=is_named)
    if run.first:
        chosen, rows = _from_run(chosen, rows, choice, run)
        choice = choose_clock(rows, title, clock)
    stacks = _make_stacks(rows, choice)
    table = table_of(images, candidates, chosen, stacks)
    doubts += _raise_or_warn(
        inconsistencies.check_phases(stacks, choice, looks, title), is_named=bool(selection.use)
    )
    notes = (
        *warnings,
        *again,
        *_unplaced_left_out(images, selection),
        *_for_nothing(stacks, candidates, clock, allow_thin=allow_thin),
        *(
            f"{refused}; the value was ignored in these images"
            for refused in list_refused_times([plane for stack in stacks for plane in stack])
        ),
        *assumed,
        *filled,
        *_describe_turns(stacks),
        *value_warnings([plane for stack in stacks for plane in stack]),
        *(note for part in chosen.parts if part.places for note in part.places.notes),
        *candidates.warnings,
        *choice.warnings,
        *time_oddities(stacks, choice.chosen.times_s, choice.chosen.timed_by),
        *inconsistencies.noise_warnings(stacks, choice.chosen.times_s, looks),
        *_named_in_vain(table, selection),
        *_other_sequences(candidates.parts, chosen, selection),
        *runs.gain_warnings(stacks, looks),
        *runs.lost_pre_warnings(stacks, chosen.parts[0], candidates.not_chosen, looks),
        *inconsistencies.landmark_warnings(stacks),
        *inconsistencies.loss_warnings(images, pieces, stacks),
        *_list_notes(chosen),
        *runs.gap_warnings(_find_times(choice)),
    )
    return Exam(
        stacks,
        grid,
        choice,
        table,
        (*map(CaseWarning, notes), *of_values, *doubts, *_t1_warnings(chosen)),
        blocks=tuple(looks.blocks(stack) for stack in stacks),
    )


def list_series(
    images: Sequence[Image], selection: Selection = _EVERYTHING, *, allow_thin: bool = False
) -> tuple[SeriesRow, ...]:
    """Return the table of a study for which `find_exam` raises an error.

    Parts that could be phases are "not decided". The parameters are those of `find_exam`.
    """
    parts = parts_of(sent_once(_list_slices(images))[0], allow_thin=allow_thin)
    candidates = candidates_of(parts, selection, allow_thin=allow_thin)
    return undecided_table(images, candidates)


def idle_selectors(
    images: Sequence[Image], selection: Selection, *, allow_thin: bool = False
) -> tuple[str, ...]:
    """Return the user's selectors that match nothing in a study, as the user typed them."""
    parts = parts_of(_list_slices(images), allow_thin=allow_thin)
    headers = [i.header for i in images if not isinstance(i, tuple) and i.header is not None]
    idle = idle_groups(selection.groups, parts, [header.series_number for header in headers])
    return tuple(",".join(selector.text for selector in group) for group in idle)


def _list_slices(images: Sequence[Image]) -> list[Slice]:
    return [plane for image in images if isinstance(image, tuple) for plane in image]


def _require_one_patient(images: Sequence[Image], selection: Selection, name: str) -> None:
    """Raise an error if the images of a study belong to more than one patient.

    The message contains no patient name or number.
    """
    pieces = [p for p in _list_slices(images) if selection.uses_series(p.header.series_number)]
    headers = [image.header for image in pieces if image.frame == 0]
    for index, what in enumerate(("PatientID", "PatientBirthDate")):
        first_headers: dict[str, Header] = {}
        for header in headers:
            if header.patient[index]:
                first_headers.setdefault(header.patient[index], header)
        if len(first_headers) > 1:
            a, b = list(first_headers.values())[:2]
            remedies = [
                remedy
                for patient in first_headers
                for remedy in _without_patient(pieces, index, patient)
            ]
            raise CaseError(
                (
                    f"expected only one patient in {name}, but {a.file} and {b.file} belong to one "
                    f"study and differ in {what}: move the images of the other patient out of the "
                    "folder"
                )
                + ", or leave out all images of other patients" * bool(remedies),
                remedies=remedies,
            )


def _without_patient(pieces: Sequence[Slice], at: int, own: str) -> list[Remedy]:
    named = {p.header.series_number: set[str]() for p in pieces}
    for image in pieces:
        named[image.header.series_number].add(image.header.patient[at])
    if any(len(patients - {""}) > 1 for patients in named.values()):
        return []
    gone = [[p] for p in pieces if p.header.patient[at] not in ("", own)]
    return leave_out(gone, [[p] for p in pieces])


def _require_whole(
    images: Sequence[Image], candidates: Candidates, selection: Selection, name: str
) -> None:
    takes_all = not selection.leaves_out_role(Role.UNREADABLE)
    bad = [image for image in images if isinstance(image, BadImage) and takes_all]
    suspects = [image for image in bad if selection.uses_series(image.header.series_number)]
    if not candidates.parts:
        if suspects:
            raise FormatError(suspects[0].reason)
        if candidates.left_out and all(entry.part.problem for entry in candidates.left_out):
            part = candidates.left_out[0].part
            raise CaseError(part.problem, remedies=part.remedies)
        advice, remedies = or_named(candidates.left_out)
        raise FormatError(
            f"expected MR images in {name} that can be phases, but found "
            f"{others_named(images, candidates)}: choose the folder of the DCE series{advice}",
            remedies=remedies,
        )
    series_uids = {part.header.series_uid for part in candidates.parts}
    for image in suspects:
        if image.header.series_uid in series_uids or image.kind.role in PHASES:
            raise FormatError(
                f"{image.reason}; or leave out the unreadable images",
                remedies=[LEAVE_UNREADABLE_OUT],
            )


def _for_nothing(
    stacks: Sequence[Sequence[Slice]],
    candidates: Candidates,
    clock: Clock | None,
    *,
    allow_thin: bool,
) -> list[str]:
    notes = []
    if clock is not None and len(stacks) == 1:
        notes.append(f"{clock} was chosen to order the phases, but there is only one phase")
    parts = [*candidates.parts, *(entry.part for entry in candidates.left_out)]
    if allow_thin and not any(p.places and len(p.places.rows) < FEWEST for p in parts):
        notes.append(
            f"stacks of fewer than {FEWEST} slices were allowed, but there is no such stack"
        )
    return notes


def _describe_turns(stacks: Sequence[Sequence[Slice]]) -> list[str]:
    names = dict.fromkeys(stack[0].header.label for stack in stacks if any(stack[0].reversed_axes))
    return [
        (
            f"{name} is stored upside down or mirrored, unlike the other phases (by its "
            "ImageOrientationPatient), and was flipped to match them: check its orientation"
        )
        for name in names
    ]


def _unplaced_left_out(images: Sequence[Image], selection: Selection) -> list[str]:
    if not selection.leaves_out_role(Role.UNREADABLE):
        return []
    bad = [i for i in images if isinstance(i, BadImage)]
    note = f"{count_of(len(bad), 'image')} without a position left out, as requested"
    return [note] if bad else []


def _join_parts(parts: Sequence[Part]) -> tuple[list[list[Slice]], Grid]:
    all_places = [part.places for part in parts if part.places is not None]
    ordered = sorted(all_places, key=lambda p: p.rows[0][0].header.series_number or 0)
    grid = ordered[0].grid
    rows = [[plane for places in ordered for plane in places.rows[z]] for z in range(grid.shape[0])]
    return rows, grid


def _make_stacks(rows: Sequence[Sequence[Slice]], choice: Choice) -> tuple[tuple[Slice, ...], ...]:
    flat = [plane for row in rows for plane in row]
    return tuple(tuple(flat[i] for i in stack) for stack in choice.chosen.stacks)


def _find_times(choice: Choice) -> tuple[float, ...] | None:
    return choice.chosen.times_s


def _choose_run(
    rows: Sequence[Sequence[Slice]],
    choice: Choice,
    looks: Looks,
    selection: Selection,
    name: str,
    *,
    is_named: bool,
) -> tuple[runs.Run, list[CaseWarning]]:
    if selection.wants_role(Role.EARLIER_PRE):
        return runs.Run(), []
    try:
        run = runs.find_run(
            _make_stacks(rows, choice), _find_times(choice), looks, name, choice.other_orders
        )
    except CaseError as error:
        if not is_named:
            every = [plane for row in rows for plane in row]
            message = add_refused_times(str(error), every)
            raise CaseError(message, remedies=error.remedies) from error
        return runs.Run(), [CaseWarning(str(error), error.remedies)]
    return run, [CaseWarning(run.warning)] if run.warning else []


def _raise_or_warn(doubts: Sequence[CaseError], *, is_named: bool) -> list[CaseWarning]:
    if doubts and not is_named:
        raise doubts[0]
    return [CaseWarning(str(doubt), doubt.remedies) for doubt in doubts]


def _named_in_vain(table: Sequence[SeriesRow], selection: Selection) -> list[str]:
    return [
        (
            f"series {row.number} was chosen, but left out, because its sequence differs from "
            f"that of the phases ({row.evidence})"
        )
        for row in table
        if row.role is Role.OTHER_SEQUENCE and selection.names_series(row.number)
    ]


def _from_run(
    whole: Acquisition, rows: Sequence[Sequence[Slice]], choice: Choice, run: runs.Run
) -> tuple[Acquisition, list[list[Slice]]]:
    early = {id(p) for stack in _make_stacks(rows, choice)[: run.first] for p in stack}
    parts: list[Part] = []
    left_out: list[LeftOut] = []
    for part in whole.parts:
        early_pieces = [image for image in part.slices if id(image) in early]
        later = [image for image in part.slices if id(image) not in early]
        if later:
            parts.append(part if not early_pieces else part_of(later, part, allow_thin=True))
        if early_pieces:
            gone = part if not later else part_of(early_pieces, part, allow_thin=True)
            left_out.append(LeftOut(gone, Role.EARLIER_PRE, run.evidence))
    later_rows = [[plane for plane in row if id(plane) not in early] for row in rows]
    return Acquisition(tuple(parts), (*whole.left_out, *left_out)), later_rows


def _other_sequences(parts: Sequence[Part], chosen: Acquisition, selection: Selection) -> list[str]:
    listed_parts = (*chosen.parts, *(entry.part for entry in chosen.left_out))
    piece_ids = {id(image) for part in listed_parts for image in part.slices}
    first = chosen.parts[0]
    return [
        (
            f"{part.header.label}: {count_of(part.n_times, 'phase')} with the size and position "
            f"of the dynamic series left out, because the sequence ({part.sequence.text}) "
            f"differs from that of the dynamic series ({first.sequence.text}): check whether "
            "they belong to the dynamic series"
        )
        for part in parts
        if is_same_place(part, first)
        and not any(id(image) in piece_ids for image in part.slices)
        and not selection.names_series(part.header.series_number)
    ]


def _t1_warnings(chosen: Acquisition) -> list[CaseWarning]:
    parts = [entry.part for entry in chosen.left_out if entry.role is Role.FLIP_ANGLES]
    by_angle = sorted(parts, key=lambda part: part.sequence.flip_degrees or 0.0)
    if not by_angle:
        return []
    angles = ",".join(f"{part.sequence.flip_degrees:g}" for part in by_angle)
    series = ", ".join(dict.fromkeys(part.header.label for part in by_angle))
    tr = by_angle[0].sequence.repetition_time_ms
    return [
        CaseWarning(
            f"{series} were left out, because their flip angles ({angles} degrees) differ from "
            "that of the dynamic series. They measure T1: for perfusion maps, import each series "
            "into a separate data set, and collect their volumes as ID_0000.nii.gz, ... in one "
            "folder",
            (Remedy(command="perfusion", values=(angles, f"{tr:g}" if tr else "MS")),),
        )
    ]


def _list_notes(chosen: Acquisition) -> list[str]:
    notes = [
        f"{entry.part.header.label}: {count_of(entry.part.n_times, 'phase')} left out, "
        f"{entry.role.words}{' of ' * bool(entry.of)}{entry.of} ({entry.evidence})"
        for entry in chosen.left_out
        if entry.role in {Role.EARLIER_PRE, Role.SUBTRACTION}
    ]
    processed = [part for part in chosen.parts if "moco" in part.kind.processing]
    notes += [
        f"{part.header.label} is motion-corrected, and the original is not in the study"
        for part in processed
    ]
    return notes
