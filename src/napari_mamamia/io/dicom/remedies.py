"""Remedies that select the series and phases of a study to use or to leave out."""

from collections.abc import Iterable, Sequence
from typing import Final

from napari_mamamia.core.errors import Remedy
from napari_mamamia.io.dicom.roles import Role
from napari_mamamia.io.dicom.slices import UNNUMBERED, Slice

_FEWEST: Final = 2
"""Smallest number of phases of a dynamic series: one before and one after contrast."""
LEAVE_UNREADABLE_OUT: Final = Remedy("leave_out", (f"role={Role.UNREADABLE}",))
"""The remedy that leaves out unreadable files."""


def series_selector(pieces: Iterable[Slice]) -> str:
    """Return the selector for the series of some images, such as ``series=5,6``."""
    numbers = list(dict.fromkeys(_read_series_number(image) for image in pieces))
    return f"series={','.join(numbers)}"


def use_series(stacks: Iterable[Sequence[Slice]]) -> Remedy:
    """Return the remedy that uses the series of some volumes."""
    return Remedy("use", (series_selector(stack[0] for stack in stacks),))


def leave_out(gone: Iterable[Sequence[Slice]], among: Iterable[Sequence[Slice]]) -> list[Remedy]:
    """Return the remedy that leaves out some volumes, as whole series or as phases.

    No remedy is returned if no selector can name the volumes, or if fewer than two phases would
    remain, because one phase cannot show enhancement.
    """
    gone_phases, other_phases = _phases_by_series(gone), _phases_by_series(among)
    for series, phases in gone_phases.items():
        other_phases[series] = other_phases.get(series, set()) - phases
    whole = [series for series in gone_phases if not other_phases[series]]
    some = {series: numbers for series, numbers in gone_phases.items() if other_phases[series]}
    if sum(map(len, other_phases.values())) < _FEWEST or any(
        UNNUMBERED in numbers for numbers in some.values()
    ):
        return []
    selectors = [f"series={','.join(whole)}"] if whole else []
    selectors += [
        f"series={series},phase={','.join(map(str, sorted(numbers)))}"
        for series, numbers in some.items()
    ]
    return [Remedy("leave_out", tuple(selectors))] if selectors else []


def leave_out_each(
    groups: Iterable[Iterable[Sequence[Slice]]], among: Sequence[Sequence[Slice]]
) -> list[Remedy]:
    """Return, for each group of volumes, a remedy that leaves out the group."""
    return [remedy for group in groups for remedy in leave_out(group, among)]


def leave_phase_out(piece: Slice) -> list[Remedy]:
    """Return the remedy that leaves out an image's phase; empty if the phase is unknown."""
    if piece.phase == UNNUMBERED:
        return []
    return [Remedy("leave_out", (f"{series_selector([piece])},phase={piece.phase}",))]


def _phases_by_series(stacks: Iterable[Sequence[Slice]]) -> dict[str, set[int]]:
    phases: dict[str, set[int]] = {}
    for stack in stacks:
        phases.setdefault(_read_series_number(stack[0]), set()).add(stack[0].phase)
    return phases


def _read_series_number(piece: Slice) -> str:
    number = piece.header.series_number
    return "none" if number is None else str(number)
