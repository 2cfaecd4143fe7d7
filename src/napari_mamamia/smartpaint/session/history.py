"""The steps of an editing session in order, and the number of applied steps.

The number of steps is unlimited. Their differences are kept in memory up to a limit; beyond the
limit, the oldest differences are released and are read back from the journal if an undo needs them.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

from napari_mamamia.core.difference import Difference
from napari_mamamia.core.edits import Edit, Step
from napari_mamamia.core.errors import CaseError

DEFAULT_LIMIT_BYTES: Final = 256 << 20
"""Default memory limit in bytes: about 600 strokes of 20 mm radius (benchmarks/session.py).

The value is our choice.
"""

_STEP_BYTES: Final = 1000
_POINT_BYTES: Final = 140
"""Memory in bytes of a step without its difference, and of each point of its path.

These Python objects were measured with `sys.getsizeof` (a tuple of three floats: 64 + 3 * 24). They
are kept when the difference is released.
"""

_KEYFRAME_EVERY: Final = 64
_MOST_KEYFRAMES: Final = 16
_WORTH_STEPS: Final = 20
"""Limits of keyframes, which are whole states: distance in steps, number, and saved steps.

If there are too many keyframes, every second keyframe is dropped and the distance between them
doubles. A keyframe is used only if it saves at least `_WORTH_STEPS` steps. Our choice: storing or
applying a state costs as much as about 20 strokes of 8 mm.
"""

State = tuple[Difference, ...]
"""A whole state as its difference from an empty state; each label has one item."""

ReadBack = Callable[[int], Difference]
"""Function that returns the difference of a step by its number, or raises a `MamamiaError`."""


@dataclass(frozen=True, slots=True)
class _Entry:
    number: int
    edit: Edit
    difference: Difference | None


class History:
    """An undo list; a new step removes the steps that were undone.

    Parameters
    ----------
    limit_bytes
        The memory limit of all steps; only differences can be released.
    read_back
        Function that reads released differences. Without it, steps beyond the limit remain in the
        list but can no longer be undone; `forgotten` counts these steps.

    Attributes
    ----------
    revision
        A number that increases with each step, undo, redo and jump. A result computed for an
        earlier revision is outdated.
    """

    def __init__(
        self, limit_bytes: int = DEFAULT_LIMIT_BYTES, read_back: ReadBack | None = None
    ) -> None:
        self._entries: list[_Entry] = []
        self._position = 0
        self._limit = limit_bytes
        self._bytes = 0
        self._oldest = 0
        self._keyframes: dict[int, State] = {}
        self._every = _KEYFRAME_EVERY
        self.revision = 0
        self.read_back = read_back

    @property
    def edits(self) -> tuple[Edit, ...]:
        """The edit of each step in order, including undone steps."""
        return tuple(entry.edit for entry in self._entries)

    @property
    def position(self) -> int:
        """Number of applied steps."""
        return self._position

    @property
    def nbytes(self) -> int:
        """Memory used by the steps, in bytes."""
        return self._bytes

    @property
    def limit_bytes(self) -> int:
        """Memory limit of the steps in bytes; setting it releases differences at once."""
        return self._limit

    @limit_bytes.setter
    def limit_bytes(self, limit: int) -> None:
        self._limit = limit
        most = limit // _MOST_KEYFRAMES
        self._drop_keyframes(
            k for k, state in self._keyframes.items() if _state_bytes(state) > most
        )
        self._let_go()

    @property
    def forgotten(self) -> int:
        """Number of applied steps that cannot be undone because their differences are lost."""
        if self.read_back is not None:
            return 0
        return sum(entry.difference is None for entry in self._entries[: self._position])

    @property
    def can_undo(self) -> bool:
        """Whether there is a step to undo."""
        return self._position > 0 and self._is_within_reach(self._position - 1)

    @property
    def can_redo(self) -> bool:
        """Whether there is an undone step to redo."""
        return self._position < len(self._entries) and self._is_within_reach(self._position)

    def add(self, step: Step) -> None:
        """Append an applied step and remove steps that were undone."""
        for entry in self._entries[self._position :]:
            self._bytes -= _count_bytes(entry)
        del self._entries[self._position :]
        self._drop_keyframes(index for index in self._keyframes if index > self._position)
        self._oldest = min(self._oldest, self._position)
        self._append_entry(_Entry(step.number, step.edit, step.difference))
        self.move(self._position + 1)

    def to_undo(self) -> Difference:
        """Return the change made by the last applied step; call `back` after undoing it.

        Raises
        ------
        CaseError
            If no step can be undone.
        FormatError, SaveError
            If the step cannot be read back from the journal.
        """
        if not self.can_undo:
            raise CaseError("there is no step to undo, so nothing was changed")
        return self._read_difference(self._entries[self._position - 1])

    def to_redo(self) -> Difference:
        """Return the change made by the next undone step; call `forward` after redoing it.

        Raises
        ------
        CaseError
            If no step can be redone.
        FormatError, SaveError
            If the step cannot be read back from the journal.
        """
        if not self.can_redo:
            raise CaseError("there is no step to redo, so nothing was changed")
        return self._read_difference(self._entries[self._position])

    def back(self) -> None:
        """Decrease the number of applied steps by one."""
        self.move(self._position - 1)

    def forward(self) -> None:
        """Increase the number of applied steps by one."""
        self.move(self._position + 1)

    def move(self, position: int) -> None:
        """Set the number of applied steps to `position`."""
        self._position = position
        self.revision += 1

    @property
    def is_keyframe_due(self) -> bool:
        """Whether the state after the last applied step should be kept; see `keep_keyframe`."""
        return self._position % self._every == 0 and self._position not in self._keyframes

    def keep_keyframe(self, state: State) -> None:
        """Store the current state as a keyframe, from which a long jump can start.

        A state that would exceed the memory limit of keyframes is not stored.
        """
        if not self._has_room(state):
            return
        self._drop_keyframes(index for index in self._keyframes if index == self._position)
        self._keyframes[self._position] = state
        self._bytes += _state_bytes(state)
        if len(self._keyframes) > _MOST_KEYFRAMES:
            self._every *= 2
            self._drop_keyframes(index for index in self._keyframes if index % self._every)
        self._let_go()

    def differences_to(
        self, position: int, state: Callable[[], State] | None = None
    ) -> Iterator[Difference]:
        """Return differences that lead from the current position to `position`, in any order.

        They are the differences of all steps in between, nearest first. If `state` returns the
        current state, they may instead be that state, a keyframe and the steps from the keyframe.
        Later changes to the history have no effect on them.

        Raises
        ------
        CaseError
            If the position does not exist, or a step in between is neither in memory nor recorded.
        FormatError, SaveError
            During iteration, if a difference cannot be read back from the journal.
        """
        if not 0 <= position <= len(self._entries):
            raise CaseError(
                f"expected the row of the history to be from 0 to {len(self._entries)}, but got "
                f"{position}, so nothing was changed"
            )
        start = self._position
        states: Iterator[Difference] = iter(())
        nearest = min(self._keyframes, key=lambda keyframe: abs(keyframe - position), default=start)
        spared = abs(start - position) - abs(nearest - position)
        if state is not None and spared > _WORTH_STEPS:
            start, states = nearest, chain(state(), self._keyframes[nearest])
        low, high = sorted((position, start))
        way = self._entries[low:high]
        steps = map(self._read_difference, way if position > start else reversed(way))
        return chain(states, steps)

    def difference_of(self, row: int) -> Difference:
        """Return the difference of a row of the history; rows are counted from 1.

        Raises
        ------
        CaseError
            If the difference is neither in memory nor recorded.
        FormatError, SaveError
            If the difference cannot be read back from the journal.
        """
        return self._read_difference(self._entries[row - 1])

    def numbers_to(self, position: int) -> tuple[int, ...]:
        """Return the numbers of all steps between the current position and `position`."""
        low, high = sorted((position, self._position))
        return tuple(entry.number for entry in self._entries[low:high])

    def _has_room(self, state: State) -> bool:
        return _state_bytes(state) <= self._limit // _MOST_KEYFRAMES

    def _drop_keyframes(self, positions: Iterable[int]) -> None:
        for position in tuple(positions):
            self._bytes -= _state_bytes(self._keyframes.pop(position))

    def _read_difference(self, entry: _Entry) -> Difference:
        if entry.difference is not None:
            return entry.difference
        if self.read_back is None:
            raise CaseError(
                f"step {entry.number} cannot be undone, because it was released from memory and "
                "no journal recorded it; nothing was changed"
            )
        return self.read_back(entry.number)

    def _is_within_reach(self, index: int) -> bool:
        return self.read_back is not None or self._entries[index].difference is not None

    def _append_entry(self, entry: _Entry) -> None:
        self._entries.append(entry)
        self._bytes += _count_bytes(entry)
        self._let_go()

    def _let_go(self) -> None:
        """Release the oldest differences until the memory limit is met.

        `_oldest` is the number of the first step whose difference is in memory.
        """
        while self._bytes > self._limit and self._oldest < len(self._entries):
            entry = self._entries[self._oldest]
            self._bytes -= _difference_bytes(entry)
            self._entries[self._oldest] = replace(entry, difference=None)
            self._oldest += 1


def _state_bytes(state: State) -> int:
    return sum(difference.nbytes for difference in state)


def _count_bytes(entry: _Entry) -> int:
    stroke = entry.edit.stroke
    path = 0 if stroke is None else len(stroke.path)
    return _STEP_BYTES + _POINT_BYTES * path + _difference_bytes(entry)


def _difference_bytes(entry: _Entry) -> int:
    return 0 if entry.difference is None else entry.difference.nbytes
