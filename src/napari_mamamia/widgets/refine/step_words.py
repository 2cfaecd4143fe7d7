"""What the last act did to the history, in words: what was undone, done again, or lost to redo."""

from collections import Counter
from collections.abc import Sequence

from napari_mamamia.core.edits import WHOLE_MASK, Edit
from napari_mamamia.core.texts import tr, tr_n
from napari_mamamia.smartpaint.session.session import EditingSession


class StepWords:
    """Follows one session from act to act."""

    def __init__(self) -> None:
        self._steps: Sequence[Edit] = ()
        self._position = 0

    def begin(self, live: EditingSession | None) -> None:
        """Begin with the history as it is."""
        self._steps, self._position = ((), 0) if live is None else (live.steps, live.position)

    def follow(self, live: EditingSession) -> tuple[str, str]:
        """Return what was undone or done again since the last call, and what no redo brings back.

        Both "" where nothing was.
        """
        before, start = self._steps, self._position
        self.begin(live)
        if len(before) == len(self._steps) and all(
            a is b for a, b in zip(before[start:], self._steps[start:], strict=True)
        ):
            return _tell_turn(self._steps, start, self._position), ""
        kept = set(map(id, self._steps))
        lost = [step for step in before[start:] if id(step) not in kept]
        newest = self._steps[self._position - 1]
        row = newest.undone_row
        return _tell_undone(self._steps, row) if row else "", _tell_lost(lost, newest.label)


def _tell_turn(steps: Sequence[Edit], start: int, stop: int) -> str:
    """Return what going from one row to another did; "" where nothing was gone."""
    if abs(stop - start) > 1 and not _is_one_act(steps[min(start, stop) : max(start, stop)]):
        name = steps[stop - 1].name if stop else tr("the start")
        return tr("At row {row} of {rows}: {name}.", row=stop, rows=len(steps), name=name)
    if stop == start:
        return ""
    step = steps[min(start, stop)] if stop < start else steps[stop - 1]
    row = step.undone_row
    if row is not None:
        # To take back the taking back is to do it again.
        return _tell_undone(steps, row) if stop > start else _tell_again(steps, row)
    return _tell_undone(steps, stop + 1) if stop < start else _tell_again(steps, stop)


def _is_one_act(steps: Sequence[Edit]) -> bool:
    """Whether at most one of these steps changed a voxel: Undo and Redo pass over the others."""
    return sum(bool(step.changed_voxels) for step in steps) <= 1


def _tell_undone(steps: Sequence[Edit], row: int) -> str:
    return tr("Undone: {row} {name}.", row=row, name=steps[row - 1].name)


def _tell_again(steps: Sequence[Edit], row: int) -> str:
    return tr("Done again: {row} {name}.", row=row, name=steps[row - 1].name)


def _tell_lost(lost: Sequence[Edit], label: int) -> str:
    """Return which undone steps of other lesions than `label` are gone for good."""
    others = Counter(
        step.label
        for step in lost
        if step.undone_row is None and step.label not in (label, WHOLE_MASK)
    )
    parts = [
        tr_n(
            "{n} undone step of lesion {label}",
            "{n} undone steps of lesion {label}",
            count,
            label=other,
        )
        for other, count in sorted(others.items())
    ]
    if not parts:
        return ""
    return tr(
        "{parts} cannot be done again any more: a new step ends what was undone, of all lesions.",
        parts=tr(" and ").join(parts),
    )
