"""What the mouse holds on the image: nothing, or one tool. Cursor, keys and texts follow it."""

from dataclasses import dataclass
from typing import Any, Final

from qtpy.QtCore import QObject, Signal

_ESCAPE: Final = "Escape"


@dataclass(frozen=True, slots=True)
class HeldTool:
    """A tool in hand: which part of the window it belongs to, and what people call it.

    `mode` tells the tools of one owner apart. Where `page` is left, the tool is put down, unless
    for one of `other_pages`. One that `waits` is for a click or drag, and put down by Esc.
    """

    owner: str
    mode: str
    name: str
    page: str
    waits: bool = False
    other_pages: tuple[str, ...] = ()

    def belongs_to(self, page: str) -> bool:
        """Whether it may be in hand while a page is on screen."""
        return page == self.page or page in self.other_pages


class Hand(QObject):
    """At most one tool at a time, and only on the page that has its controls.

    `page_wanted` asks for the page of a tool that is taken elsewhere, so that nothing is armed out
    of sight.
    """

    changed = Signal()
    page_wanted = Signal(str)

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tool: HeldTool | None = None
        self.page = page

    def take(self, tool: HeldTool) -> None:
        """Take a tool in place of the one in hand, and go to its page."""
        if not tool.belongs_to(self.page):
            self.page_wanted.emit(tool.page)
        self._set_tool(tool)

    def put_down(self, owner: str | None = None) -> None:
        """Hold nothing any more; with an owner, only where the tool in hand is one of its."""
        if owner is None or (self.tool is not None and self.tool.owner == owner):
            self._set_tool(None)

    def stop_waiting(self) -> None:
        """Put down a tool that waits for a click or a drag."""
        if self.tool is not None and self.tool.waits:
            self._set_tool(None)

    def turn(self, page: str) -> None:
        """Follow the dock to another page."""
        self.page = page
        if self.tool is not None and not self.tool.belongs_to(page):
            self._set_tool(None)

    def mode_of(self, owner: str) -> str:
        """Return which tool of an owner is in hand, "" for none."""
        return self.tool.mode if self.tool is not None and self.tool.owner == owner else ""

    def _set_tool(self, tool: HeldTool | None) -> None:
        if tool != self.tool:
            self.tool = tool
            self.changed.emit()


class EscapeKey:
    """Lets Esc put down a tool that waits, whichever layer is chosen.

    A layer's own keys come before the viewer's, and napari gives Esc to labels and shapes.
    """

    def __init__(self, viewer: Any, hand: Hand) -> None:
        self._viewer = viewer
        self._hand = hand
        self._layer: Any = None
        hand.changed.connect(self._follow_layer)
        viewer.layers.selection.events.active.connect(self._follow_layer)

    def _follow_layer(self, _event: object = None) -> None:
        tool, layer = self._hand.tool, self._viewer.layers.selection.active
        waiting_layer = layer if tool is not None and tool.waits else None
        if self._layer is not None and self._layer is not waiting_layer:
            self._layer.bind_key(_ESCAPE, None, overwrite=True)
            self._layer = None
        # The reader's own mask has the key already, bound with the others of its brush.
        if waiting_layer is not None and not _has_escape(waiting_layer):
            waiting_layer.bind_key(_ESCAPE, self._stop_waiting, overwrite=True)
            self._layer = waiting_layer

    def _stop_waiting(self, _layer: Any) -> None:
        self._hand.stop_waiting()


def _has_escape(layer: Any) -> bool:
    """Whether a layer's own keys have Esc already."""
    return any(str(key) == _ESCAPE for key in layer.keymap)
