"""The panel on `?`: every key of ours, and napari's own while a mask is edited."""

from qtpy.QtCore import Signal
from qtpy.QtWidgets import QVBoxLayout, QWidget

from napari_mamamia.widgets.controls import button, heading, label
from napari_mamamia.widgets.keys import KEYS, NAPARI_KEYS

__all__ = ["KeysPanel"]


class KeysPanel(QWidget):
    """`closed` asks for the page before."""

    closed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("keys_panel")
        ours = [(key.shown + (" (held)" if key.held else ""), key.text) for key in KEYS]
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(heading("Keys"))
        layout.addWidget(label("keys_ours", _table(ours), "Keys of this dock"))
        layout.addWidget(heading("While a mask is edited (napari's own)"))
        layout.addWidget(label("keys_napari", _table(list(NAPARI_KEYS)), "napari's keys"))
        layout.addWidget(
            button("keys_close", "Back", "Goes back to the page before", self.closed.emit)
        )
        layout.addStretch()


def _table(lines: list[tuple[str, str]]) -> str:
    cells = "".join(
        f"<tr><td><b>{key}</b>&nbsp;&nbsp;&nbsp;</td><td>{text}</td></tr>" for key, text in lines
    )
    return f"<table cellspacing='2'>{cells}</table>"
