"""The panel on `?`: every key of ours, and napari's own while a mask is edited."""

from collections.abc import Sequence

from qtpy.QtCore import Signal
from qtpy.QtWidgets import QScrollArea, QVBoxLayout, QWidget

from napari_mamamia.widgets.controls import button, heading, label, named
from napari_mamamia.widgets.keys import KEYS, MOUSE_LINES, NAPARI_KEYS, Key

__all__ = ["KeysPanel"]


class KeysPanel(QWidget):
    """`closed` asks for the page before."""

    closed = Signal()

    def __init__(self, keys: Sequence[Key] = KEYS) -> None:
        super().__init__()
        self.setObjectName("keys_panel")
        ours = [(key.shown + (" (held)" if key.held else ""), key.text) for key in keys]
        content = QWidget()
        layout = QVBoxLayout(content)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(heading("Keys"))
        layout.addWidget(label("keys_ours", _table(ours), "Keys of this dock"))
        layout.addWidget(heading("The mouse, while a tool is on"))
        layout.addWidget(label("keys_mouse", _table(list(MOUSE_LINES)), "What the mouse does"))
        layout.addWidget(heading("napari's own, while no tool is on"))
        layout.addWidget(label("keys_napari", _table(list(NAPARI_KEYS)), "napari's keys"))
        layout.addWidget(
            button("keys_close", "Back", "Goes back to the page before", self.closed.emit)
        )
        layout.addStretch()
        area: QScrollArea = named(QScrollArea(), "keys_area", "All keys; scroll for more")
        area.setWidget(content)
        area.setWidgetResizable(True)
        area.setFrameShape(QScrollArea.Shape.NoFrame)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.addWidget(area)


def _table(lines: list[tuple[str, str]]) -> str:
    cells = "".join(
        f"<tr><td><b>{key}</b>&nbsp;&nbsp;&nbsp;</td><td>{text}</td></tr>" for key, text in lines
    )
    return f"<table cellspacing='2'>{cells}</table>"
