"""Tab Log: what the plugin did and said, to read and to copy."""

from typing import Final

from qtpy.QtGui import QFontDatabase
from qtpy.QtWidgets import QApplication, QPlainTextEdit, QVBoxLayout, QWidget

from napari_mamamia.widgets.base.event_log import LogLine
from napari_mamamia.widgets.controls.controls import label, named, row, tool_button

_MOST_LINES: Final = 2000


class LogTab(QWidget):
    """Shows the newest 2,000 lines."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: QPlainTextEdit = named(
            QPlainTextEdit(), "log_lines", "Time, level and text of what the plugin did and said"
        )
        self.lines.setReadOnly(True)
        self.lines.setMaximumBlockCount(_MOST_LINES)
        self.lines.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.lines.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        note = label(
            "log_note",
            "Cases stand here by their place in the data set, folders without their names.",
            "No name of a patient is in the log, so that it can be sent with a problem",
        )
        self.copy = tool_button(
            "log_copy", "Copy all", "Copies the whole log, such as for a report", self._copy
        )
        self.empty = tool_button("log_clear", "Clear", "Empties the log", self.lines.clear)
        for made in (self.copy, self.empty):
            made.setProperty("framed", True)
        line = row(note, self.copy, self.empty)
        line.layout().setStretch(0, 1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 4, 0, 0)
        layout.addWidget(line)
        layout.addWidget(self.lines)

    def add(self, line: LogLine) -> None:
        """Show one more event."""
        self.lines.appendPlainText(str(line))

    def _copy(self) -> None:
        clipboard = QApplication.clipboard()
        if clipboard is not None:
            clipboard.setText(self.lines.toPlainText())
