"""The dialog for describing the layout of a folder, with a preview of the resulting cases."""

from collections.abc import Callable
from pathlib import Path

from qtpy.QtCore import Qt, QTimer, Signal
from qtpy.QtGui import QFontDatabase
from qtpy.QtWidgets import QDialog, QFrame, QLabel, QPlainTextEdit, QVBoxLayout, QWidget

from napari_mamamia.core.texts import tr
from napari_mamamia.services.case.layout_choice import LayoutPreview
from napari_mamamia.widgets.controls.controls import (
    button,
    label,
    named,
    row,
    set_level,
    set_primary,
)
from napari_mamamia.widgets.controls.fields import combo_box

_WIDTH, _HEIGHT = 760, 560
_PAUSE_MS = 300
_MOST_PROBLEMS = 4


class LayoutDialog(QDialog):
    """A dialog to describe the layout of a folder's files, with a preview updated while typing.

    The signal `text_changed` carries a description to preview, and `layout_wanted` the description
    with which to open the folder.

    Parameters
    ----------
    root
        The folder.
    text
        The initial description.
    candidates
        Names of known layouts that fit the folder.
    text_of
        Function that returns the description of a candidate.
    """

    text_changed = Signal(str)
    layout_wanted = Signal(str)

    def __init__(
        self,
        root: Path,
        text: str,
        candidates: tuple[str, ...],
        text_of: Callable[[str], str],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.setObjectName("layout_dialog")
        self.setWindowTitle(tr("Describe this folder"))
        self.resize(_WIDTH, _HEIGHT)
        self.candidates = combo_box("layout_candidates", tr("Known layouts that fit this folder."))
        self.candidates.addItems(candidates)
        self.candidates.textActivated.connect(lambda name: self.text.setPlainText(text_of(name)))
        self.text: QPlainTextEdit = named(
            QPlainTextEdit(text),
            "layout_text",
            tr("Patterns for the paths of the phases and masks."),
        )
        self.text.setFrameShape(QFrame.Shape.Box)
        self.text.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        self.result = label("layout_result", tip=tr("The cases that match this description."))
        self.result.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.problems = label("layout_problems", tip=tr("What does not fit this description."))
        self.open = button(
            "layout_open",
            tr("Open with this layout"),
            tr("Opens the folder, and stores this description next to the folder for later use."),
            lambda: self.layout_wanted.emit(self.text.toPlainText()),
        )
        set_primary(self.open, True)
        cancel = button(
            "layout_cancel", tr("Cancel"), tr("Closes without opening the folder."), self.reject
        )
        question = (
            tr("Several layouts fit {folder}. Which layout is correct?", folder=root)
            if candidates
            else tr(
                "The layout of {folder} is not known. Check or correct this description.",
                folder=root,
            )
        )
        head = QLabel(question)
        head.setWordWrap(True)
        layout = QVBoxLayout(self)
        layout.addWidget(head)
        if candidates:
            layout.addWidget(row(QLabel(tr("Layout")), self.candidates, 1))
        layout.addWidget(self.text, 1)
        layout.addWidget(QLabel(_FIELDS))
        layout.addWidget(self.result)
        layout.addWidget(self.problems)
        layout.addWidget(row(1, cancel, self.open))
        self._pause = QTimer(self)
        self._pause.setSingleShot(True)
        self._pause.setInterval(_PAUSE_MS)
        self._pause.timeout.connect(self._emit_text)
        self.text.textChanged.connect(self._pause.start)
        self.open.setEnabled(False)

    def show_preview(self, preview: LayoutPreview) -> None:
        """Show the cases that the description yields; enable the Use button if there is a case."""
        self.result.setText("\n".join(preview.lines) or preview.error)
        set_level(self.result, "error" if preview.error else "")
        more = len(preview.problems) - _MOST_PROBLEMS
        lines = list(preview.problems[:_MOST_PROBLEMS])
        lines += [tr("and {more} more", more=more)] if more > 0 else []
        self.problems.setText("\n".join(lines))
        set_level(self.problems, "warning")
        self.problems.setVisible(bool(lines))
        self.open.setEnabled(not preview.error)

    def _emit_text(self) -> None:
        self.text_changed.emit(self.text.toPlainText())


_FIELDS = tr(
    "{patient} any text   {phase:n} number   {time:x} seconds   {visit:%Y-%m-%d} date   "
    "{side:left|right} one of these   * any text   **/ any folders"
)
