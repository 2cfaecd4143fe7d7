"""Planes of one DICOM study -> the phases of its DCE exam, and a word on everything left out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from napari_mamamia.core.errors import CaseError, FormatError
from napari_mamamia.core.grid import Grid
from napari_mamamia.io.dicom_clocks import Choice, choose_clock
from napari_mamamia.io.dicom_parts import Image, Part, parts_of, without_copies
from napari_mamamia.io.dicom_slices import BadImage, Clock, Slice
from napari_mamamia.io.dicom_table import SeriesRow, others_named, table_of, undecided_table

__all__ = ["Exam", "find_exam", "list_series"]


_OTHER_ORIENTATION: Final = 0.9
"""Cosine between slice normals below which a series cannot belong to a dynamic one: 26 degrees.
Our own choice, far above what positioning between two series does."""


@dataclass(frozen=True, slots=True)
class Exam:
    """The phases of one DCE exam: planes up the stack, phase after phase, on one grid.

    The grid's array is (z, y, x) as DICOM stores planes: x along a row, y down a column, z up the
    stack. `times_s` are seconds since phase 0, None where no element tells them.
    """

    stacks: tuple[tuple[Slice, ...], ...]
    grid: Grid
    choice: Choice
    rows: tuple[SeriesRow, ...]
    warnings: tuple[str, ...]

    @property
    def times_s(self) -> tuple[float, ...] | None:
        """Seconds since phase 0, one for each phase."""
        return self.choice.chosen.times_s


def find_exam(
    images: Sequence[Image],
    name: str,
    *,
    clock: Clock | None = None,
    series: Sequence[int] = (),
) -> Exam:
    """Return the phases of a study's DCE exam.

    Planes are split by series and sequence, then by place; series on one grid with one sequence
    are one acquisition; the acquisition with most phases is the exam. Whatever might belong to it
    and does not fit is a refusal; other sequences are left out by name.

    Parameters
    ----------
    images
        What `read_slices` said of each file of the study.
    name
        Of the study's folder, for messages.
    clock
        The clock that the user named; None chooses.
    series
        Numbers of the series that count; empty for all.

    Raises
    ------
    FormatError
        If there is no MR image, or one lacks what its place depends on.
    CaseError
        If the exam contradicts itself: slices missing or doubled, unequal stacks, a changing
        orientation, no clock, two acquisitions that fit.
    """
    kept, warnings = without_copies(_slices(images, series), name)
    bad = [image for image in images if isinstance(image, BadImage) and _counts(image, series)]
    parts = parts_of(kept)
    if not parts:
        raise FormatError(
            bad[0].reason
            if bad
            else f"expected MR images in {name} that can be phases, got "
            f"{others_named(images)}: choose the folder of the DCE series"
        )
    if bad:
        raise FormatError(bad[0].reason)
    chosen = _most_phases(parts, name)
    _require_no_doubt(chosen, parts, name)
    rows, grid = _joined(chosen)
    choice = choose_clock(rows, name if len(chosen) > 1 else chosen[0].header.series_name, clock)
    flat = [piece for row in rows for piece in row]
    stacks = tuple(tuple(flat[i] for i in stack) for stack in choice.chosen.stacks)
    table = table_of(images, parts, chosen, stacks, _unwanted(images, series))
    return Exam(stacks, grid, choice, table, (*warnings, *choice.warnings))


def list_series(images: Sequence[Image], series: Sequence[int] = ()) -> tuple[SeriesRow, ...]:
    """Return the table of a study that `find_exam` refused; takes the same.

    Series that could be phases are "not decided".
    """
    return undecided_table(images, parts_of(_slices(images, series)), _unwanted(images, series))


def _unwanted(images: Sequence[Image], series: Sequence[int]) -> list[Part]:
    """Return the parts of the series that the user did not choose."""
    if not series:
        return []
    chosen = {id(piece) for piece in _slices(images, series)}
    return parts_of([piece for piece in _slices(images, ()) if id(piece) not in chosen])


def _slices(images: Sequence[Image], series: Sequence[int]) -> list[Slice]:
    return [
        piece
        for image in images
        if isinstance(image, tuple)
        for piece in image
        if not series or piece.header.series_number in series
    ]


def _counts(image: BadImage, series: Sequence[int]) -> bool:
    return not series or image.header.series_number in series


def _most_phases(parts: Sequence[Part], name: str) -> list[Part]:
    """Return the parts of the acquisition with most phases."""
    acquisitions: list[list[Part]] = []
    for part in parts:
        if part.places is None:
            continue
        fitting = (a for a in acquisitions if _is_one_acquisition(a[0], part))
        found = next(fitting, None)
        if found is None:
            acquisitions.append([part])
        else:
            found.append(part)
    if not acquisitions:
        raise CaseError(next(part.problem for part in parts))
    acquisitions.sort(key=_n_phases, reverse=True)
    first, *others = acquisitions
    if others and _n_phases(others[0]) == _n_phases(first):
        raise CaseError(
            f"expected series of one size and place in {name}, but {_described(first[0])} and "
            f"{_described(others[0][0])}, and both are {_n_phases(first)} phase(s): name the "
            "series that count (--series), or move the others out of the folder"
        )
    return first


def _is_one_acquisition(a: Part, b: Part) -> bool:
    if a.places is None or b.places is None or not a.sequence.is_same(b.sequence):
        return False
    return a.places.grid.is_same_place(b.places.grid)


def _n_phases(parts: Sequence[Part]) -> int:
    return sum(part.places.n_times for part in parts if part.places is not None)


def _require_no_doubt(chosen: Sequence[Part], parts: Sequence[Part], name: str) -> None:
    """Refuse where a part might be a phase of the chosen acquisition, but does not fit.

    A broken series of more images than the whole acquisition has may be the exam itself: a T2
    series must not take the place of a DCE series that lacks a slice.
    """
    first = chosen[0]
    n_planes = sum(len(part.slices) for part in chosen)
    for part in parts:
        if part.problem and len(part.slices) > n_planes:
            raise CaseError(part.problem)
        if any(part is own for own in chosen) or not part.sequence.is_same(first.sequence):
            continue
        if part.problem:
            raise CaseError(part.problem)
        if _n_phases(chosen) > 1 and _is_turned(first, part):
            continue
        raise CaseError(
            f"expected series of one size and place in {name}, but {_described(first)} and "
            f"{_described(part)}: name the series that count (--series), or move the series that "
            "are no DCE phases out of the folder"
        )


def _is_turned(a: Part, b: Part) -> bool:
    normals = (np.cross(p.slices[0].orientation[:3], p.slices[0].orientation[3:]) for p in (a, b))
    return bool(abs(np.dot(*normals)) < _OTHER_ORIENTATION)


def _described(part: Part) -> str:
    if part.places is None:
        return part.header.series_name
    grid = part.places.grid
    z, y, x = grid.shape
    spacing = " x ".join(f"{mm:.2f}" for mm in grid.spacing_mm)
    return f"{part.places.name} has {z} slices of {y} x {x} ({grid.orientation}, {spacing} mm)"


def _joined(chosen: Sequence[Part]) -> tuple[list[list[Slice]], Grid]:
    """Return the planes of all series by place, and the grid of the first series."""
    all_places = [part.places for part in chosen if part.places is not None]
    ordered = sorted(all_places, key=lambda p: p.rows[0][0].header.series_number or 0)
    grid = ordered[0].grid
    rows = [[piece for places in ordered for piece in places.rows[z]] for z in range(grid.shape[0])]
    return rows, grid
