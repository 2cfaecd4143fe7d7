"""Text that wraps even within long names and paths, so that it is never cut off."""

import re
from typing import Any, Final

from qtpy.QtCore import Qt
from qtpy.QtGui import QKeySequence
from qtpy.QtWidgets import QApplication, QLabel, QMenu, QSizePolicy

from napari_mamamia.core.texts import tr

_BREAK: Final = "\u200b"
_LONG: Final = re.compile(r"[^\s\u200b]{21,}")
"""Pattern of words that do not fit in a narrow panel with large text."""
_SIGN: Final = re.compile(r"(?<=[/\\_.,:;=&?+@-])(?=\w)")
_RUN: Final = re.compile(r"[^\s\u200b]{20}(?=[^\s\u200b])")


def breakable(text: str) -> str:
    """Return a text in which long names may be broken after underscores."""
    return text.replace("_", f"_{_BREAK}")


class WrappedLabel(QLabel):
    """A label that wraps even within long words, and copies the text without the added breaks.

    Qt cuts off a path or a hash that is wider than its label.
    """

    def __init__(self, text: str = "") -> None:
        super().__init__()
        self._words = ""
        self.setWordWrap(True)
        self.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.setMinimumWidth(1)
        self.setText(text)

    def text(self) -> str:
        """Return the original text."""
        return self._words

    def setText(self, text: str) -> None:
        """Set the text; rich text is not changed."""
        self._words = text
        wrapped = text if Qt.mightBeRichText(text) else _LONG.sub(_break_word, text)
        super().setText(wrapped)
        # Otherwise a screen reader would read each break.
        self.setAccessibleName("" if wrapped == text else text)

    def keyPressEvent(self, event: Any) -> None:
        """Copy the selected part of the original text."""
        if event.matches(QKeySequence.StandardKey.Copy):
            self._copy_selected()
            event.accept()
        else:
            super().keyPressEvent(event)

    def contextMenuEvent(self, event: Any) -> None:
        """Show a context menu to copy the selection or the whole text."""
        menu = QMenu(self)
        copy = menu.addAction(tr("Copy"), self._copy_selected)
        copy.setEnabled(self.hasSelectedText())
        menu.addAction(tr("Copy all"), lambda: QApplication.clipboard().setText(self._words))
        menu.exec(event.globalPos())

    def _copy_selected(self) -> None:
        QApplication.clipboard().setText(
            self.selectedText().replace(_BREAK, "").replace("\u2029", "\n")
        )


def _break_word(found: re.Match[str]) -> str:
    return _RUN.sub(lambda run: run.group() + _BREAK, _SIGN.sub(_BREAK, found.group()))
