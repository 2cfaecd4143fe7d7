"""The table of a DICOM study: what each series is, and what becomes of it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from napari_mamamia.io.dicom_parts import Image, Part
from napari_mamamia.io.dicom_slices import OtherImage, Slice

__all__ = ["SeriesRow", "others_named", "table_of"]

_UNKNOWN: Final = (float("nan"), float("nan"), float("nan"))


@dataclass(frozen=True, slots=True)
class SeriesRow:
    """One line of the table of a study: a series, or the part of it that is one kind of image.

    `fate` says what becomes of it: "phases 0, 1, 2", or why it is left out; `short_fate` the same
    without the names of files. `n_slices` is 0 where the images were not looked at further.
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


def table_of(
    images: Sequence[Image],
    parts: Sequence[Part],
    chosen: Sequence[Part],
    stacks: Sequence[Sequence[Slice]],
) -> tuple[SeriesRow, ...]:
    """Return the table: `parts` with the `chosen` ones among them, and the images that are none.

    `stacks` are the planes of the phases, in order of time.
    """
    table = (*_rows_of_parts(parts, chosen, stacks), *_rows_of_others(images))
    return tuple(sorted(table, key=lambda row: (row.number is None, row.number or 0)))


def others_named(images: Sequence[Image]) -> str:
    """Return the kinds of images that are no phases, with their counts, for messages."""
    counts: dict[str, int] = {}
    for image in images:
        if isinstance(image, OtherImage):
            counts[image.kind] = counts.get(image.kind, 0) + 1
    return ", ".join(f"{count} x {kind}" for kind, count in sorted(counts.items())) or "no image"


def _rows_of_parts(
    parts: Sequence[Part], chosen: Sequence[Part], stacks: Sequence[Sequence[Slice]]
) -> list[SeriesRow]:
    rows = []
    for part in parts:
        own = {id(piece) for piece in part.slices}
        phases = [str(k) for k, stack in enumerate(stacks) if id(stack[0]) in own]
        is_chosen = any(part is one for one in chosen)
        fate = f"phase{'s' * (len(phases) > 1)} {', '.join(phases)}"
        row = _row_of(part)
        rows.append(row if not is_chosen else replace(row, fate=fate, short_fate=fate))
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
        f"left out: {part.problem or 'another sequence'}",
        f"left out: {'no whole stack' if part.problem else 'another sequence'}",
    )


def _rows_of_others(images: Sequence[Image]) -> list[SeriesRow]:
    counts: dict[tuple[int | None, str, str], int] = {}
    for image in images:
        if isinstance(image, OtherImage):
            header = image.header
            number = None if header is None else header.series_number
            described = "" if header is None else header.description
            key = (number, described, image.kind)
            counts[key] = counts.get(key, 0) + 1
    return [
        SeriesRow(number, described, count, 0, 0, (0, 0), _UNKNOWN, "", *(f"left out: {kind}",) * 2)
        for (number, described, kind), count in counts.items()
    ]
