"""The table of a DICOM study: what each series is, and what becomes of it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from napari_mamamia.io.dicom_parts import Image, Part
from napari_mamamia.io.dicom_slices import BadImage, OtherImage, Slice

__all__ = ["SeriesRow", "others_named", "table_of", "undecided_table"]

_UNKNOWN: Final = (float("nan"), float("nan"), float("nan"))
_OTHER_SEQUENCE: Final = "another sequence"
_UNPLACED: Final = "cannot be placed"


@dataclass(frozen=True, slots=True)
class SeriesRow:
    """One line of the table of a study: a series, or the part of it that is one kind of image.

    `fate` says what becomes of it: "phases 0, 1, 2", or why it is left out; `short_fate` the same
    without the names of files. `n_slices` is 0 where the images were not looked at further.
    `kind` says in a word or two what it is, `problem` what is wrong with it, "" where nothing is.
    `phases` are the phases it gives, counted in order of time. `may_count` is whether it can be a
    phase at all, so that a user may choose it or not.
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
    may_count: bool = False


def table_of(
    images: Sequence[Image],
    parts: Sequence[Part],
    chosen: Sequence[Part],
    stacks: Sequence[Sequence[Slice]],
    unwanted: Sequence[Part] = (),
) -> tuple[SeriesRow, ...]:
    """Return the table: `parts` with the `chosen` ones among them, and the images that are none.

    `stacks` are the planes of the phases, in order of time; `unwanted` the parts that the user
    left out.
    """
    left = "left out: not chosen"
    not_chosen = [
        replace(_row_of(part), fate=left, short_fate=left, kind="not chosen") for part in unwanted
    ]
    return _sorted((*_rows_of_parts(parts, chosen, stacks), *not_chosen, *_rows_of_others(images)))


def undecided_table(
    images: Sequence[Image], parts: Sequence[Part], unwanted: Sequence[Part] = ()
) -> tuple[SeriesRow, ...]:
    """Return the table of a study of which nothing becomes a case, because it was refused."""
    table = table_of(images, parts, (), (), unwanted)
    return tuple(
        replace(row, fate="not decided", short_fate="not decided", kind="not decided")
        if row.kind == _OTHER_SEQUENCE
        else row
        for row in table
    )


def others_named(images: Sequence[Image]) -> str:
    """Return the kinds of images that are no phases, with their counts, for messages."""
    counts: dict[str, int] = {}
    for image in images:
        if isinstance(image, OtherImage):
            counts[image.kind] = counts.get(image.kind, 0) + 1
    return ", ".join(f"{count} x {kind}" for kind, count in sorted(counts.items())) or "no image"


def _sorted(table: Sequence[SeriesRow]) -> tuple[SeriesRow, ...]:
    return tuple(sorted(table, key=lambda row: (row.number is None, row.number or 0)))


def _rows_of_parts(
    parts: Sequence[Part], chosen: Sequence[Part], stacks: Sequence[Sequence[Slice]]
) -> list[SeriesRow]:
    rows = []
    for part in parts:
        own = {id(piece) for piece in part.slices}
        phases = tuple(k for k, stack in enumerate(stacks) if id(stack[0]) in own)
        row = _row_of(part)
        if any(part is one for one in chosen):
            fate = f"phase{'s' * (len(phases) > 1)} {', '.join(map(str, phases))}"
            row = replace(row, fate=fate, short_fate=fate, kind="DCE phases", phases=phases)
        rows.append(row)
    return rows


def _row_of(part: Part) -> SeriesRow:
    header, piece = part.header, part.slices[0]
    places = part.places
    return SeriesRow(
        header.series_number,
        header.description,
        len(part.slices),
        0 if places is None else len(places.rows),
        0 if places is None else places.n_times,
        piece.shape,
        (float("nan"), *piece.spacing_mm) if places is None else places.grid.spacing_mm,
        part.sequence.text,
        f"left out: {part.problem or _OTHER_SEQUENCE}",
        f"left out: {'no whole stack' if part.problem else _OTHER_SEQUENCE}",
        "no whole stack" if part.problem else _OTHER_SEQUENCE,
        part.problem,
        may_count=True,
    )


def _rows_of_others(images: Sequence[Image]) -> list[SeriesRow]:
    """Return a row for the images of each series and kind that cannot be placed or be a phase."""
    counts: dict[tuple[int | None, str, str, bool], int] = {}
    reasons: dict[tuple[int | None, str, str, bool], str] = {}
    for image in images:
        if isinstance(image, tuple):
            continue
        is_bad = isinstance(image, BadImage)
        kind = _UNPLACED if isinstance(image, BadImage) else image.kind
        header = image.header
        number = None if header is None else header.series_number
        key = (number, "" if header is None else header.description, kind, is_bad)
        counts[key] = counts.get(key, 0) + 1
        if isinstance(image, BadImage):
            reasons.setdefault(key, image.reason)
    return [
        SeriesRow(
            number,
            described,
            count,
            0,
            0,
            (0, 0),
            _UNKNOWN,
            "",
            f"left out: {reasons.get((number, described, kind, is_bad), kind)}",
            f"left out: {kind}",
            kind,
            reasons.get((number, described, kind, is_bad), ""),
            may_count=is_bad,
        )
        for (number, described, kind, is_bad), count in counts.items()
    ]
