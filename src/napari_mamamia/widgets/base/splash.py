"""The splash screen, shown before napari is imported, because its imports take seconds.

This module imports only Qt.
"""

import time
from pathlib import Path
from typing import Final

from qtpy.QtCore import QRect, Qt, QTimerEvent
from qtpy.QtGui import QColor, QIcon, QPainter, QPixmap
from qtpy.QtWidgets import QApplication, QLabel, QMainWindow

from napari_mamamia.core.texts import tr

_SIZE: Final = (420, 150)
_ICON: Final = 86
_ICON_FILE: Final = Path(__file__).parents[2] / "icon.svg"
_BACKGROUND: Final = QColor("#262930")
_TEXT: Final = QColor("#f0f1f2")
_QUIET: Final = QColor("#aab0b6")
_LOOK_MS: Final = 50
_LONGEST_WAIT_S: Final = 0.3
"""Longest time in seconds that the start waits for the splash screen to appear (our choice)."""


def new_application() -> QApplication:
    """Return the program's application, with its icon; the caller keeps it."""
    app = QApplication(["napari"])
    app.setWindowIcon(QIcon(str(_ICON_FILE)))
    return app


class _Splash(QLabel):
    """A splash image that closes when the program's window is shown."""

    def timerEvent(self, event: QTimerEvent | None) -> None:
        widgets = QApplication.topLevelWidgets()
        if any(isinstance(widget, QMainWindow) and widget.isVisible() for widget in widgets):
            self.close()


def show_splash(app: QApplication, name: str) -> QLabel:
    """Show a splash screen until the program's window appears.

    Parameters
    ----------
    app
        The program's application.
    name
        The name of the data set or file that is being opened, or "".
    """
    # QSplashScreen is not used, because its `show` waits for a second if no window manager
    # responds.
    splash = _Splash()
    splash.setWindowFlags(Qt.WindowType.SplashScreen | Qt.WindowType.FramelessWindowHint)
    splash.setPixmap(_draw_picture(app.windowIcon(), name))
    splash.setObjectName("mamamia_splash")
    splash.setWindowTitle("MAMA-MIA")
    splash.adjustSize()
    splash.move(app.primaryScreen().availableGeometry().center() - splash.rect().center())
    splash.show()
    end = time.monotonic() + _LONGEST_WAIT_S
    while not splash.windowHandle().isExposed() and time.monotonic() < end:
        app.processEvents()
    app.processEvents()
    splash.startTimer(_LOOK_MS)
    return splash


def _draw_picture(icon: QIcon, name: str) -> QPixmap:
    width, height = _SIZE
    picture = QPixmap(width, height)
    picture.fill(_BACKGROUND)
    painter = QPainter(picture)
    margin = (height - _ICON) // 2
    painter.drawPixmap(margin, margin, icon.pixmap(_ICON, _ICON))
    left = _ICON + 2 * margin
    font = painter.font()
    lines = (
        ("MAMA-MIA", _TEXT, 2.0),
        (tr("Opening {name}…", name=name) if name else tr("Starting…"), _TEXT, 1.0),
        (tr("For research. Not a medical device."), _QUIET, 0.9),
    )
    points, top = font.pointSizeF(), margin
    for text, colour, scale in lines:
        font.setPointSizeF(scale * points)
        painter.setFont(font)
        painter.setPen(colour)
        line = painter.fontMetrics()
        room = width - left - margin // 2
        short = line.elidedText(text, Qt.TextElideMode.ElideMiddle, room)
        painter.drawText(QRect(left, top, room, line.height()), Qt.AlignmentFlag.AlignLeft, short)
        top += line.height() + line.height() // 4
    painter.end()
    return picture
