"""The models of a batch: one row per model, with its name and mask folder."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from qtpy.QtCore import QSize, Qt, Signal
from qtpy.QtWidgets import (
    QComboBox,
    QFileDialog,
    QLineEdit,
    QSizePolicy,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from napari_mamamia.core.texts import tr
from napari_mamamia.services.score.models import PredictionFolder
from napari_mamamia.widgets.batch.options import NAMES
from napari_mamamia.widgets.controls.controls import discard, label, named, row, tool_button

_TOOL_TIP: Final = Qt.ItemDataRole.ToolTipRole
_ALONE: Final = tr("Several models are compared by ranks, intervals and paired tests.")
_SEVERAL: Final = tr("Each model has its own results folder, and the models are compared.")

Offered = Sequence[tuple[str, Path]]
"""Mask folders, each with a title."""


class ModelsField(QWidget):
    """Rows of models, at least one; `changed` is emitted when a name or folder changes."""

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("batch_models")
        self.lines: list[_Line] = []
        self._offered: Offered = ()
        self.start_at = ""
        self._stack = QVBoxLayout()
        self._stack.setContentsMargins(0, 0, 0, 0)
        self._stack.setSpacing(4)
        self.add: QToolButton = tool_button(
            "batch_add_model",
            tr("+ Add a model"),
            tr("Adds the folder of another model's masks."),
            self._add_model,
        )
        self.add.setProperty("framed", True)
        self.note = label("batch_models_note", _ALONE, tr("How several models are scored."))
        below = row(self.add, self.note)
        below.layout().setStretch(1, 1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(4)
        layout.addLayout(self._stack)
        layout.addWidget(below)
        self._add_line()

    @property
    def folder(self) -> QComboBox:
        """The field with the mask folder of the first model."""
        return self.lines[0].folder

    def offer(self, folders: Offered, *, keep: bool) -> None:
        """Offer mask folders; with `keep`, fields that are not empty keep their text."""
        self._offered = folders
        if not keep:
            for line in self.lines[1:]:
                self._remove_line(line)
        for line in self.lines:
            line.offer(folders, keep=keep)
        self.changed.emit()

    def models(self) -> tuple[PredictionFolder, ...]:
        """Return the models with a folder; an unnamed model is named after its folder."""
        filled = [line for line in self.lines if line.path]
        return tuple(PredictionFolder(line.title, Path(line.path).expanduser()) for line in filled)

    # -------------------------------------------------------------------- inner

    def _add_model(self) -> None:
        self._add_line()
        taken = [line.path for line in self.lines]
        free = [str(folder) for _, folder in self._offered if str(folder) not in taken]
        self.lines[-1].offer(self._offered, keep=False)
        self.lines[-1].folder.setEditText(free[0] if free else "")
        self.lines[-1].folder.setFocus()
        self.changed.emit()

    def _add_line(self) -> None:
        number = len(self.lines)
        model_line = _Line(number, lambda: self.start_at)
        model_line.changed.connect(self.changed)
        model_line.remove_wanted.connect(lambda: self._remove_line(model_line))
        self.lines.append(model_line)
        self._stack.addWidget(model_line)
        self._follow_count()

    def _remove_line(self, line: "_Line") -> None:
        self.lines.remove(line)
        self._stack.removeWidget(line)
        discard(line)
        for number, other in enumerate(self.lines):
            other.number(number)
        self._follow_count()
        self.changed.emit()

    def _follow_count(self) -> None:
        several = len(self.lines) > 1
        self.note.setText(_SEVERAL if several else _ALONE)
        for line in self.lines:
            line.remove.setVisible(several)


class _NameField(QLineEdit):
    """A name field that is as wide as the labels of the other fields."""

    def sizeHint(self) -> QSize:
        """Return the width of the widest label plus the frame of the field."""
        hint = super().sizeHint()
        wide = max(self.fontMetrics().horizontalAdvance(name) for name in NAMES)
        return QSize(wide + hint.height() // 2, hint.height())


class _Line(QWidget):
    """A row with name, folder, browse button and remove button."""

    changed = Signal()
    remove_wanted = Signal()

    def __init__(self, number: int, start_at: object) -> None:
        super().__init__()
        self._start_at = start_at
        self.name: QLineEdit = named(
            _NameField(), "batch_model", tr("The model's name; if empty, the name of its folder.")
        )
        self.name.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.name.textChanged.connect(lambda _text: self.changed.emit())
        self.folder: QComboBox = named(
            QComboBox(), "batch_prediction", tr("Folder of the masks to score, ID.nii.gz.")
        )
        self.folder.setEditable(True)
        self.folder.setMinimumContentsLength(6)
        self.folder.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.folder.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        self.folder.currentTextChanged.connect(self._follow_folder)
        self.browse = tool_button(
            "batch_choose_prediction", "…", tr("Choose a folder"), self._browse_folder
        )
        self.remove = tool_button(
            "batch_remove_model",
            "✕",
            tr("Removes this model from the list, but keeps its files."),
            self.remove_wanted.emit,
        )
        for tool in (self.browse, self.remove):
            tool.setProperty("framed", True)
        line = row(self.name, self.folder, self.browse, self.remove)
        line.layout().setStretch(1, 1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(line)
        self._follow_folder("")
        self.number(number)

    @property
    def path(self) -> str:
        """The folder as entered."""
        return str(self.folder.currentText()).strip()

    @property
    def title(self) -> str:
        """The model's name."""
        return self.name.text().strip() or Path(self.path).name

    def number(self, number: int) -> None:
        """Name the controls by the row's number; the first row has no number."""
        end = f"_{number + 1}" if number else ""
        for part, name in (
            (self.name, "batch_model"),
            (self.folder, "batch_prediction"),
            (self.browse, "batch_choose_prediction"),
            (self.remove, "batch_remove_model"),
        ):
            part.setObjectName(f"{name}{end}")

    def offer(self, folders: Offered, *, keep: bool) -> None:
        """Offer folders, and select the first unless the field keeps its text."""
        before = self.folder.currentText()
        self.folder.blockSignals(True)
        self.folder.clear()
        for title, folder in folders:
            self.folder.addItem(str(folder))
            self.folder.setItemData(self.folder.count() - 1, title, _TOOL_TIP)
        if keep and before:
            self.folder.setEditText(before)
        self.folder.blockSignals(False)
        self._follow_folder(self.folder.currentText())

    def _follow_folder(self, text: str) -> None:
        self.name.setPlaceholderText(Path(text.strip()).name or tr("name"))
        self.folder.setToolTip(
            tr("Folder of the masks to score, ID.nii.gz.\n{words}", words=text).strip()
        )
        self.changed.emit()

    def _browse_folder(self) -> None:
        start = self._start_at() if callable(self._start_at) else ""
        chosen = QFileDialog.getExistingDirectory(
            self, tr("Choose a folder"), self.path or str(start)
        )
        if chosen:
            self.folder.setEditText(chosen)
