"""The list of steps, newest first, in which a click restores a state; and the undo memory limit."""

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from qtpy.QtCore import QAbstractListModel, QModelIndex, QPersistentModelIndex, Qt, Signal
from qtpy.QtGui import QColor
from qtpy.QtWidgets import QLabel, QListView, QWidget

from napari_mamamia.core.edits import WHOLE_MASK, Edit
from napari_mamamia.core.errors import SaveError
from napari_mamamia.core.texts import tr, tr_n
from napari_mamamia.services.refine.editing import RecoveredWork
from napari_mamamia.smartpaint.session.session import EditingSession
from napari_mamamia.widgets.base.keys import with_key
from napari_mamamia.widgets.controls.colours import QUIET_COLOUR
from napari_mamamia.widgets.controls.controls import button, fill_column, named, row
from napari_mamamia.widgets.controls.fields import combo_box
from napari_mamamia.widgets.refine.editing import Editing
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart

_log = logging.getLogger(__name__)

LIMITS_MB: Final = (64, 256, 1024, 4096)
"""Selectable memory limits for undo, in MB."""

_USUAL_MB: Final = 256
_MB: Final = 1 << 20
_KEY: Final = "undo_mb"
_LEAST_LINES: Final = 6


class HistoryModel(QAbstractListModel):
    """A list model of the steps from the newest to the start; undone steps are grey."""

    def __init__(self) -> None:
        super().__init__()
        self._names: list[str] = []
        self._position = 0

    def show(self, steps: Sequence[Edit], position: int, start: str) -> None:
        """Show the steps above the name of the start mask; the first `position` steps are applied.

        Unchanged rows are kept, because laying out the whole list takes 4 ms at each undo.
        """
        names = [start, *map(_name_step, steps)]
        before, self._position = self._position, position
        new = len(names) - len(self._names)
        if self._names and names[: len(self._names)] == self._names:
            if new:
                self.beginInsertRows(QModelIndex(), 0, new - 1)
                self._names = names
                self.endInsertRows()
            elif position != before:
                newest, oldest = max(before, position), min(before, position) + 1
                rows = (self.index(self.position_of(step), 0) for step in (newest, oldest))
                self.dataChanged.emit(*rows)
            return
        self.beginResetModel()
        self._names = names
        self.endResetModel()

    def position_of(self, line: int) -> int:
        """Return the number of applied steps in the state of a row."""
        return len(self._names) - 1 - line

    def rowCount(self, parent: QModelIndex | QPersistentModelIndex | None = None) -> int:
        """Return the number of rows."""
        return 0 if parent is not None and parent.isValid() else len(self._names)

    def data(
        self,
        index: QModelIndex | QPersistentModelIndex,
        role: int = Qt.ItemDataRole.DisplayRole,
    ) -> Any:
        """Return the text of a row, such as "9 erase 6 mm", its tooltip or its colour."""
        number = self.position_of(index.row())
        name = self._names[number]
        if role == Qt.ItemDataRole.DisplayRole:
            return f"{number}  {name}" if number else tr("start: {name}", name=name)
        if role == Qt.ItemDataRole.ToolTipRole:
            state = "undone; " if number > self._position else ""
            return tr(
                "{name}: {state}click to go to the state after this step", name=name, state=state
            )
        if role == Qt.ItemDataRole.ForegroundRole and number > self._position:
            return QColor(QUIET_COLOUR)
        return None

    def flags(self, index: QModelIndex | QPersistentModelIndex) -> Qt.ItemFlag:
        """Return the item flags of a row."""
        return Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable


class HistoryList(QWidget):
    """The history list, with the Redo button and the undo memory limit.

    The page places the `undo` button. The signal `position_wanted` carries the number of steps to
    apply; `limit_wanted` carries a limit in megabytes.
    """

    position_wanted = Signal(int)
    limit_wanted = Signal(int)
    undo_wanted = Signal()
    redo_wanted = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("refine_history")
        self.model = HistoryModel()
        self.view: QListView = named(
            QListView(),
            "refine_steps",
            tr("The steps, newest first; click a step to return to it."),
        )
        self.view.setModel(self.model)
        self.view.setUniformItemSizes(True)
        self.view.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.view.setMinimumHeight(_LEAST_LINES * self.view.fontMetrics().height())
        self.view.clicked.connect(
            lambda index: self.position_wanted.emit(self.model.position_of(index.row()))
        )
        self.undo = button(
            "refine_undo",
            tr("Undo"),
            with_key(tr("Undoes the last step of the painted lesion"), "undo"),
            self.undo_wanted.emit,
        )
        self.redo = button(
            "refine_redo",
            tr("Redo"),
            with_key(tr("Redoes the last undone step for this lesion"), "redo"),
            self.redo_wanted.emit,
        )
        fill_column(self, (self.view, 1), self._make_memory(), spacing=2)

    @property
    def limit_mb(self) -> int:
        """The selected limit in megabytes."""
        return int(self.limit.currentData())

    def set_limit(self, megabytes: int) -> None:
        """Select one of `LIMITS_MB` without emitting a signal."""
        self.limit.blockSignals(True)
        self.limit.setCurrentIndex(LIMITS_MB.index(megabytes))
        self.limit.blockSignals(False)

    def show_memory(self, megabytes: float | None) -> None:
        """Show the memory used for undo, or nothing (None) if no mask is being edited."""
        self.memory.setText(
            "" if megabytes is None else tr("undo: {megabytes:.0f} MB, limit", megabytes=megabytes)
        )

    def show_steps(
        self, steps: Sequence[Edit], position: int, start: str, *, can_undo: bool, can_redo: bool
    ) -> None:
        """Show the steps, and highlight the displayed state."""
        self.model.show(steps, position, start)
        here = self.model.index(len(steps) - position, 0)
        self.view.setCurrentIndex(here)
        self.view.scrollTo(here)
        self.undo.setEnabled(can_undo)
        self.redo.setEnabled(can_redo)

    def _make_memory(self) -> QWidget:
        tip = tr("Memory for undo; steps beyond the limit are read from the journal")
        self.memory: QLabel = named(QLabel(), "refine_undo_memory", tip)
        self.limit = combo_box("refine_undo_limit", tr("{tip}. Sets the limit.", tip=tip))
        for megabytes in LIMITS_MB:
            text = (
                tr("{megabytes} MB", megabytes=megabytes)
                if megabytes < 1024
                else tr("{megabytes} GB", megabytes=megabytes // 1024)
            )
            self.limit.addItem(text, megabytes)
        self.set_limit(_USUAL_MB)
        self.limit.currentIndexChanged.connect(lambda _: self.limit_wanted.emit(self.limit_mb))
        return row(self.redo, 1, self.memory, self.limit)


def _name_step(step: Edit) -> str:
    """Return the name of a step, with a note if the step changed no voxel.

    Undo and Redo skip steps without changes.
    """
    name = step.name
    if step.label > 1:
        name = tr("{name} · label {label}", name=name, label=step.label)
    return name if step.changed_voxels else tr("{name} (no voxel changed)", name=name)


class StepWords:
    """A builder of texts about a history's latest change: undone, redone or discarded steps."""

    def __init__(self) -> None:
        self._steps: Sequence[Edit] = ()
        self._position = 0

    def begin(self, live: EditingSession | None) -> None:
        """Start with the current history of a session."""
        self._steps, self._position = ((), 0) if live is None else (live.steps, live.position)

    def follow(self, live: EditingSession) -> tuple[str, str]:
        """Return texts about steps undone or redone since the last call, and about discarded steps.

        A text is "" if there was no such step.
        """
        before, start = self._steps, self._position
        self.begin(live)
        if len(before) == len(self._steps) and all(
            a is b for a, b in zip(before[start:], self._steps[start:], strict=True)
        ):
            return _describe_jump(self._steps, start, self._position), ""
        ids = set(map(id, self._steps))
        dropped = [step for step in before[start:] if id(step) not in ids]
        newest = self._steps[self._position - 1]
        row = newest.undone_row
        return _describe_undo(self._steps, row) if row else "", _describe_lost(
            dropped, newest.label
        )


def _describe_jump(steps: Sequence[Edit], start: int, stop: int) -> str:
    if abs(stop - start) > 1 and not _is_one_act(steps[min(start, stop) : max(start, stop)]):
        name = steps[stop - 1].name if stop else tr("the start")
        return tr("At row {row} of {rows}: {name}.", row=stop, rows=len(steps), name=name)
    if stop == start:
        return ""
    step = steps[min(start, stop)] if stop < start else steps[stop - 1]
    row = step.undone_row
    if row is not None:
        # Undoing a reversal is a redo.
        return _describe_undo(steps, row) if stop > start else _describe_redo(steps, row)
    return _describe_undo(steps, stop + 1) if stop < start else _describe_redo(steps, stop)


def _is_one_act(steps: Sequence[Edit]) -> bool:
    return sum(bool(step.changed_voxels) for step in steps) <= 1


def _describe_undo(steps: Sequence[Edit], row: int) -> str:
    return tr("Undone: {row} {name}.", row=row, name=steps[row - 1].name)


def _describe_redo(steps: Sequence[Edit], row: int) -> str:
    return tr("Redone: {row} {name}.", row=row, name=steps[row - 1].name)


def _describe_lost(lost: Sequence[Edit], label: int) -> str:
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
        "{parts} can no longer be redone, because a new step discards the undone steps of all "
        "lesions.",
        parts=tr(" and ").join(parts),
    )


class UndoMemory(WindowPart):
    """A component that connects the list of steps with the session's history and the preferences.

    Steps beyond the memory limit are not lost, because the journal contains them.
    """

    def __init__(self, context: WindowContext, history: HistoryList, editing: Editing) -> None:
        super().__init__(context)
        self._list = history
        self._editing = editing
        limit_text = dict(self._services.load_preferences().view).get(_KEY, "")
        if limit_text.isdigit() and int(limit_text) in LIMITS_MB:
            history.set_limit(int(limit_text))
        history.limit_wanted.connect(self._set_limit)
        editing.opened.connect(self._apply_limit)
        editing.stepped.connect(self._show_memory)

    def _apply_limit(self) -> None:
        live = self._editing.live
        if live is not None:
            live.history.limit_bytes = self._list.limit_mb * _MB
        self._show_memory()

    def _set_limit(self, megabytes: int) -> None:
        self._apply_limit()
        preferences = self._services.load_preferences()
        view = tuple((dict(preferences.view) | {_KEY: str(megabytes)}).items())
        try:
            self._services.save_preferences(replace(preferences, view=view))
        except SaveError as error:
            _log.warning("the memory limit of undo was not saved: %s", error)

    def _show_memory(self) -> None:
        live = self._editing.live
        self._list.show_memory(None if live is None else live.history.nbytes / _MB)


def offer_text(recovered: RecoveredWork) -> str:
    """Return a text about recovered steps, such as "Recovered 12 steps from 14:02:"."""
    some = tr_n(
        "{n} step",
        "{n} steps",
        recovered.n_steps,
    )
    more = "".join(f" {text[0].upper()}{text[1:]}." for text in recovered.warnings)
    return tr(
        "Recovered {some} from {local_time} that had not been saved when the program ended.{more}",
        some=some,
        local_time=_local_time(recovered.last_at),
        more=more,
    )


def _local_time(text: str) -> str:
    try:
        then = datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError):
        return tr("an unknown time")
    is_today = then.date() == datetime.now().astimezone().date()
    return f"{then:%H:%M}" if is_today else f"{then:%Y-%m-%d %H:%M}"
