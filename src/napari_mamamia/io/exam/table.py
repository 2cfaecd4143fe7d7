"""The table of a DICOM study, with the role, evidence and use of each part of a series."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from napari_mamamia.io.dicom.parts import Image, Part
from napari_mamamia.io.dicom.roles import Role, Use
from napari_mamamia.io.dicom.slices import UNNUMBERED, BadImage, OtherImage, Slice
from napari_mamamia.io.exam.acquisitions import Acquisition, LeftOut
from napari_mamamia.io.exam.choice import Candidates
from napari_mamamia.io.exam.selectors import (
    Group,
    named_series,
    read_selectors,
    selectors_of,
)

UNREADABLE_FILES: Final = read_selectors([f"role={Role.UNREADABLE}"])[0]
"""The selectors of unreadable files, which can only be left out."""
_EARLIER_PRE: Final = read_selectors([f"role={Role.EARLIER_PRE}"])[0]
_UNKNOWN: Final = (float("nan"), float("nan"), float("nan"))
_UNDECIDED: Final = "not decided"
_UNPLACED: Final = "has no position"
_NO_STACK: Final = "no complete stack"
_NOT_CHOSEN: Final = "not chosen"


@dataclass(frozen=True, slots=True)
class SeriesRow:
    """A row in the table of a study: a series, or the images of one kind in a series.

    `role` is the part's role (a value of `Role`), `evidence` is the reason for the role, and `use`
    is the part's use in the import. `fate` is the reason in a sentence, and `short_fate` is the
    same without file names. `part` distinguishes the parts of one series ("water", "echo 2",
    "left"). `n_slices` is 0 if the images were not examined further. `kind` describes the part in
    one or two words, and `problem` is its error, or "". `phases` are the phases of the part,
    counted in order of time. `selectors` select the part, or are empty if no selector can. `middle`
    is a plane from the middle of the part, or None if the files are not MR images.
    """

    number: int | None
    description: str
    n_images: int
    n_slices: int
    n_phases: int
    size: tuple[int, int]
    spacing_mm: tuple[float, float, float]
    sequence: str
    fate: str
    short_fate: str
    kind: str = ""
    problem: str = ""
    phases: tuple[int, ...] = ()
    selectors: Group = ()
    part: str = ""
    role: Role = Role.PHASE
    evidence: str = ""
    use: Use = Use.LEFT_OUT
    middle: Slice | None = field(default=None, repr=False, compare=False)


def table_of(
    images: Sequence[Image],
    candidates: Candidates,
    chosen: Acquisition,
    stacks: Sequence[Sequence[Slice]],
) -> tuple[SeriesRow, ...]:
    """Return the table of an exam; `stacks` are the planes of its phases, in time order."""
    gone = {id(image) for entry in chosen.left_out for image in entry.part.slices}
    used = {id(image) for part in chosen.parts for image in part.slices}
    others = [
        LeftOut(part, Role.OTHER_SEQUENCE, part.sequence.text)
        for part in candidates.parts
        if not any(id(image) in gone or id(image) in used for image in part.slices)
    ]
    rows = [_make_used_row(part, stacks) for part in chosen.parts]
    rows += [_make_left_row(entry) for entry in (*chosen.left_out, *others, *candidates.left_out)]
    return _sort_rows(
        (*rows, *map(_make_unwanted_row, candidates.not_chosen), *_rows_of_others(images))
    )


def undecided_table(images: Sequence[Image], candidates: Candidates) -> tuple[SeriesRow, ...]:
    """Return the table of a study that raised an error; no part is used."""
    rows = [
        replace(_row_of(part), fate=_UNDECIDED, short_fate=_UNDECIDED, kind=_UNDECIDED,
                use=Use.ASKED)
        if not part.problem
        else _make_left_row(LeftOut(part, part.role, part.kind.evidence))
        for part in candidates.parts
    ]  # fmt: skip
    rows += [_make_left_row(entry) for entry in candidates.left_out]
    return _sort_rows(
        (*rows, *map(_make_unwanted_row, candidates.not_chosen), *_rows_of_others(images))
    )


def unreadable_rows(reasons: Sequence[str]) -> tuple[SeriesRow, ...]:
    """Return a row for the unreadable files; empty if there are none."""
    if not reasons:
        return ()
    words = Role.UNREADABLE.words
    return (
        SeriesRow(
            None, "", len(reasons), 0, 0, (0, 0), _UNKNOWN, "", reasons[0], words, words,
            reasons[0], selectors=UNREADABLE_FILES, role=Role.UNREADABLE, use=Use.UNREADABLE,
        ),
    )  # fmt: skip


def others_named(images: Sequence[Image], candidates: Candidates) -> str:
    """Return the kinds of images that are not phases, with their numbers, as text."""
    counts: dict[str, int] = {}
    for image in images:
        if isinstance(image, OtherImage):
            counts[image.kind] = counts.get(image.kind, 0) + 1
    for entry in candidates.left_out:
        counts[entry.role.words] = counts.get(entry.role.words, 0) + len(entry.part.slices)
    for part in candidates.not_chosen:
        counts[_NOT_CHOSEN] = counts.get(_NOT_CHOSEN, 0) + len(part.slices)
    return ", ".join(f"{count} x {kind}" for kind, count in sorted(counts.items())) or "no image"


def _sort_rows(table: Sequence[SeriesRow]) -> tuple[SeriesRow, ...]:
    return tuple(
        sorted(
            table,
            key=lambda row: (
                row.number is None,
                row.number or 0,
                row.part.partition("phase")[0],
                min(
                    (int(selector.value) for selector in row.selectors if selector.key == "phase"),
                    default=0,
                ),
                [selector.text for selector in row.selectors],
            ),
        )
    )


def _make_used_row(part: Part, stacks: Sequence[Sequence[Slice]]) -> SeriesRow:
    piece_ids = {id(image) for image in part.slices}
    phases = tuple(k for k, stack in enumerate(stacks) if id(stack[0]) in piece_ids)
    fate = f"phase{'s' * (len(phases) > 1)} {', '.join(map(str, phases))}"
    return replace(
        _row_of(part), fate=fate, short_fate=fate, kind="DCE phases", phases=phases, use=Use.USED
    )


def _make_left_row(one: LeftOut) -> SeriesRow:
    row = _row_of(one.part)
    if one.part.problem:
        fate, kind = one.part.problem, _NO_STACK
    else:
        fate, kind = f"{one.role.words}{' of ' * bool(one.of)}{one.of}", one.role.words
    if one.part.problem and one.role is not Role.PHASE:
        fate = kind = one.role.words
    return replace(
        row,
        fate=f"left out: {fate}",
        short_fate=f"left out: {kind}",
        kind=kind,
        role=one.role,
        evidence=one.evidence,
        selectors=row.selectors + _EARLIER_PRE * _is_told_apart(one, row),
        problem="" if kind == one.role.words else row.problem,
    )


def _is_told_apart(one: LeftOut, row: SeriesRow) -> bool:
    return one.role is Role.EARLIER_PRE and bool(row.selectors)


def _make_unwanted_row(part: Part) -> SeriesRow:
    fate = f"left out: {_NOT_CHOSEN}"
    return replace(_row_of(part), fate=fate, short_fate=fate, kind=_NOT_CHOSEN, problem="")


def _row_of(part: Part) -> SeriesRow:
    header, plane = part.header, part.slices[0]
    places = part.places
    return SeriesRow(
        header.series_number,
        header.description,
        len(part.slices),
        0 if places is None else len(places.rows),
        part.n_times,
        plane.shape,
        (float("nan"), *plane.spacing_mm) if places is None else places.grid.spacing_mm,
        part.sequence.text,
        "",
        "",
        problem=part.problem,
        selectors=selectors_of(part),
        part=_name_of(part),
        role=part.role,
        evidence=part.kind.evidence,
        middle=_middle_of(part),
    )


def _middle_of(part: Part) -> Slice:
    pieces = part.slices if part.places is None else part.places.rows[len(part.places.rows) // 2]
    return pieces[len(pieces) // 2]


def _name_of(part: Part) -> str:
    words = [part.sequence.contrast] if part.sequence.contrast else []
    if part.echo > 1:
        words.append(f"echo {part.echo}")
    words += [word for word in (part.side, part.turn) if word]
    if part.trigger:
        words.append(f"trigger {part.trigger}")
    if len(part.phases) < part.n_numbered and UNNUMBERED not in part.phases:
        words.append(f"phase{'s' * (len(part.phases) > 1)} {spans(part.phases)}")
    return ", ".join(words)


def spans(numbers: Sequence[int]) -> str:
    """Return ascending numbers as text, with runs of three or more numbers as ranges.

    Examples
    --------
    >>> spans((0, 1, 2, 5))
    '0-2, 5'
    """
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    texts = (f"{run[0]}-{run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs)
    return ", ".join(texts)


def _rows_of_others(images: Sequence[Image]) -> list[SeriesRow]:
    groups: dict[tuple[int | None, str, str], list[OtherImage | BadImage]] = {}
    for image in images:
        if not isinstance(image, tuple):
            kind = _UNPLACED if isinstance(image, BadImage) else image.kind
            header = image.header
            number = None if header is None else header.series_number
            described = "" if header is None else header.description
            groups.setdefault((number, described, kind), []).append(image)
    return [_row_of_others(*key, group) for key, group in groups.items()]


def _row_of_others(
    number: int | None, described: str, kind: str, own: Sequence[OtherImage | BadImage]
) -> SeriesRow:
    first = own[0]
    is_bad = isinstance(first, BadImage)
    reason = first.reason if isinstance(first, BadImage) else ""
    return SeriesRow(
        number,
        described,
        len(own),
        0,
        0,
        (0, 0),
        _UNKNOWN,
        "",
        f"left out: {reason or kind}",
        f"left out: {kind}",
        kind,
        reason,
        selectors=() if not is_bad or number is None else named_series([number])[0],
        role=Role.UNREADABLE if isinstance(first, BadImage) else first.role,
        use=Use.UNREADABLE if is_bad else Use.LEFT_OUT,
    )
