"""Which phase of its series an image is, and the option of the command line that names images.

Every refusal that asks says how to answer: the option it names is made here, of the images that it
is about, and leads on when it is typed as it stands.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from napari_mamamia.core.choices import Clock
from napari_mamamia.io.dicom.clocks import order_inside
from napari_mamamia.io.dicom.slices import UNNUMBERED, Slice
from napari_mamamia.io.dicom.stack import Places

_COUNTING: Final = (
    Clock.TEMPORAL_POSITION, Clock.ACQUISITION_TIME, Clock.TRIGGER_TIME, Clock.ACQUIRED,
    Clock.CONTENT_TIME, Clock.ACQUISITION_NUMBER,
)  # fmt: skip
"""Clocks that may part the images of a series that makes no whole stacks, in order of belief."""

_FEWEST: Final = 2
"""Phases of a dynamic: one before contrast and one after it."""


def number_phases(
    slices: Sequence[Slice], places: Places | None, first: int = 0
) -> tuple[tuple[Slice, ...], Places | None]:
    """Return the images of a part with their phases, counted from `first` in order of time.

    Where they make no whole stacks, the images of one time are a phase, if most of these are
    equally many. Images of which nothing tells it are `UNNUMBERED`.
    """
    numbers = _of_parted(slices) if places is None else _of_stacks(places)
    phase_by_id = {
        id(piece): UNNUMBERED if number == UNNUMBERED else number + first
        for piece, number in numbers
    }
    if all(image.phase == phase_by_id[id(image)] for image in slices):
        return tuple(slices), places
    new = {id(image): replace(image, phase=phase_by_id[id(image)]) for image in slices}
    if places is not None:
        rows = tuple(tuple(new[id(piece)] for piece in row) for row in places.rows)
        places = replace(places, rows=rows)
    return tuple(new[id(image)] for image in slices), places


def series_selector(pieces: Iterable[Slice]) -> str:
    """Return the selector of the series of some images, such as ``series=5,6``."""
    numbers = list(dict.fromkeys(_read_series_number(image) for image in pieces))
    return f"series={','.join(numbers)}"


def use_series(stacks: Iterable[Sequence[Slice]]) -> str:
    """Return the option that names the series of some volumes as those that count."""
    return f"--use {series_selector(stack[0] for stack in stacks)}"


def leave_out(gone: Iterable[Sequence[Slice]], among: Iterable[Sequence[Slice]]) -> str:
    """Return the options that leave some volumes out of others: whole series, or their phases.

    "" where no option can name them, and where less than two phases would be left: no way leads to
    a case in which nothing can enhance.
    """
    gone_phases, other_phases = _phases_by_series(gone), _phases_by_series(among)
    for series, phases in gone_phases.items():
        other_phases[series] = other_phases.get(series, set()) - phases
    whole = [series for series in gone_phases if not other_phases[series]]
    some = {series: numbers for series, numbers in gone_phases.items() if other_phases[series]}
    if sum(map(len, other_phases.values())) < _FEWEST or any(
        UNNUMBERED in numbers for numbers in some.values()
    ):
        return ""
    options = [f"--leave-out series={','.join(whole)}"] if whole else []
    options += [
        f"--leave-out series={series},phase={','.join(map(str, sorted(numbers)))}"
        for series, numbers in some.items()
    ]
    return " ".join(options)


def leave_phase_out(piece: Slice) -> str:
    """Return the option that leaves out the phase of one image, "" where nothing tells it."""
    if piece.phase == UNNUMBERED:
        return ""
    return f"--leave-out {series_selector([piece])},phase={piece.phase}"


def in_brackets(*options: str) -> str:
    """Return the options that there are, as alternatives behind a sentence; "" without any."""
    choices = ", or ".join(option for option in dict.fromkeys(options) if option)
    return f" ({choices})" if choices else ""


def _phases_by_series(stacks: Iterable[Sequence[Slice]]) -> dict[str, set[int]]:
    phases: dict[str, set[int]] = {}
    for stack in stacks:
        phases.setdefault(_read_series_number(stack[0]), set()).add(stack[0].phase)
    return phases


def _read_series_number(piece: Slice) -> str:
    number = piece.header.series_number
    return "none" if number is None else str(number)


def _of_stacks(places: Places) -> list[tuple[Slice, int]]:
    flat = places.slices
    stacks = order_inside(flat, places.n_times)
    if stacks is None:
        return [(piece, UNNUMBERED) for piece in flat]
    return [(flat[index], phase) for phase, stack in enumerate(stacks) for index in stack]


def _of_parted(slices: Sequence[Slice]) -> list[tuple[Slice, int]]:
    for clock in _COUNTING:
        values = [image.clocks.get(clock) for image in slices]
        numbers = np.array([np.nan if value is None else value for value in values])
        if np.isnan(numbers).any():
            continue
        _, at, counts = np.unique(numbers, return_inverse=True, return_counts=True)
        usual = int(np.median(counts))
        if len(counts) > 1 and usual > 1 and np.mean(counts == usual) > 1 / 2:
            return list(zip(slices, at.tolist(), strict=True))
    return [(image, UNNUMBERED) for image in slices]
