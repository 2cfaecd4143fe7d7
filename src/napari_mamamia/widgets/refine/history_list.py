"""The list of the session's steps: newest on top, a click goes to that state."""

from collections.abc import Sequence
from typing import Any, Final

from qtpy.QtCore import QAbstractListModel, QModelIndex, QPersistentModelIndex, Qt, Signal
from qtpy.QtGui import QColor
from qtpy.QtWidgets import QComboBox, QLabel, QListView, QVBoxLayout, QWidget

from napari_mamamia.core.edits import Edit
from napari_mamamia.widgets.base.keys import with_key
from napari_mamamia.widgets.controls.colours import QUIET_COLOUR
from napari_mamamia.widgets.controls.controls import button, named, row

LIMITS_MB: Final = (64, 256, 1024, 4096)
"""Limits of the memory of undo to choose from."""

_USUAL_MB: Final = 256
_LEAST_LINES: Final = 6


class HistoryModel(QAbstractListModel):
    """The steps from the newest to the start; what was undone is written greyed."""

    def __init__(self) -> None:
        super().__init__()
        self._names: list[str] = []
        self._position = 0

    def show(self, steps: Sequence[Edit], position: int, start: str) -> None:
        """Show the steps, of which `position` are applied, above the name of the start mask.

        Lines that stay are left alone: laying the whole list out again takes 4 ms at each undo.
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
        """Return how many steps are applied in the state of a line."""
        return len(self._names) - 1 - line

    def rowCount(self, parent: QModelIndex | QPersistentModelIndex | None = None) -> int:
        """Return the number of lines."""
        return 0 if parent is not None and parent.isValid() else len(self._names)

    def data(
        self,
        index: QModelIndex | QPersistentModelIndex,
        role: int = Qt.ItemDataRole.DisplayRole,
    ) -> Any:
        """Return a line's text, such as "9 erase 6 mm", its hover text or its colour."""
        number = self.position_of(index.row())
        name = self._names[number]
        if role == Qt.ItemDataRole.DisplayRole:
            return f"{number}  {name}" if number else f"start: {name}"
        if role == Qt.ItemDataRole.ToolTipRole:
            state = "undone; " if number > self._position else ""
            return f"{name}: {state}a click goes to the state after this step"
        if role == Qt.ItemDataRole.ForegroundRole and number > self._position:
            return QColor(QUIET_COLOUR)
        return None

    def flags(self, index: QModelIndex | QPersistentModelIndex) -> Qt.ItemFlag:
        """Return what can be done with a line."""
        return Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable


class HistoryList(QWidget):
    """The list with Redo and the memory of undo; `undo` is for the page to place.

    `position_wanted` carries how many steps are to be applied, `limit_wanted` megabytes.
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
            QListView(), "refine_steps", "What was done, newest on top; a click goes there"
        )
        self.view.setModel(self.model)
        self.view.setUniformItemSizes(True)
        self.view.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.view.setMinimumHeight(_LEAST_LINES * self.view.fontMetrics().height())
        self.view.clicked.connect(
            lambda index: self.position_wanted.emit(self.model.position_of(index.row()))
        )
        self.undo = button(
            "refine_undo", "Undo", with_key("Undoes the last step", "undo"), self.undo_wanted.emit
        )
        self.redo = button(
            "refine_redo",
            "Redo",
            with_key("Does the step again that was undone", "redo"),
            self.redo_wanted.emit,
        )
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(2)
        layout.addWidget(self.view, stretch=1)
        layout.addWidget(self._make_memory())

    @property
    def limit_mb(self) -> int:
        """The limit that is chosen, in megabytes."""
        return int(self.limit.currentData())

    def set_limit(self, megabytes: int) -> None:
        """Choose one of `LIMITS_MB` without telling it on."""
        self.limit.blockSignals(True)
        self.limit.setCurrentIndex(LIMITS_MB.index(megabytes))
        self.limit.blockSignals(False)

    def show_memory(self, megabytes: float | None) -> None:
        """Show how much memory undo holds; None where nothing is edited."""
        self.memory.setText("" if megabytes is None else f"undo holds {megabytes:.0f} MB of")

    def show_steps(
        self, steps: Sequence[Edit], position: int, start: str, *, can_undo: bool, can_redo: bool
    ) -> None:
        """Show the steps and mark the state that is on screen."""
        self.model.show(steps, position, start)
        here = self.model.index(len(steps) - position, 0)
        self.view.setCurrentIndex(here)
        self.view.scrollTo(here)
        self.undo.setEnabled(can_undo)
        self.redo.setEnabled(can_redo)

    def _make_memory(self) -> QWidget:
        tip = "Memory for undo; steps beyond the limit are read back from the journal"
        self.memory: QLabel = named(QLabel(), "refine_undo_memory", tip)
        self.limit: QComboBox = named(QComboBox(), "refine_undo_limit", f"{tip}. Sets the limit")
        for megabytes in LIMITS_MB:
            text = f"{megabytes} MB" if megabytes < 1024 else f"{megabytes // 1024} GB"
            self.limit.addItem(text, megabytes)
        self.set_limit(_USUAL_MB)
        self.limit.currentIndexChanged.connect(lambda _: self.limit_wanted.emit(self.limit_mb))
        return row(self.redo, 1, self.memory, self.limit)


def _name_step(step: Edit) -> str:
    """Return a step's name; one that left every voxel as it was says so: a click shows no change.

    Undo and Redo pass over such steps.
    """
    label = step.stroke.brush.label if step.stroke is not None else 1
    name = f"{step.name} · label {label}" if label > 1 else step.name
    return name if step.changed_voxels else f"{name} (no voxel changed)"
