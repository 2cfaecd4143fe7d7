"""What is armed, written on the picture and in the header: tool, action, size, or why not here."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from qtpy.QtCore import QObject, Signal

from napari_mamamia.core.edits import Brush, Tool
from napari_mamamia.widgets.controls.colours import MASK_COLOURS, WARNING_COLOURS
from napari_mamamia.widgets.refine.brush_cursor import sign_colour
from napari_mamamia.widgets.refine.state import PaintTool, RefineState
from napari_mamamia.widgets.viewer.aim import Aim
from napari_mamamia.widgets.viewer.hand import Hand

TOOL_OVERLAY: Final = "mamamia_tool"
"""The name of the text on each view's canvas."""


@dataclass(frozen=True, slots=True)
class ToolSign:
    """What stands on the picture, in which colour, and why the tool does nothing there."""

    text: str
    colour: str = MASK_COLOURS["prediction"]
    problem: str = ""


def paint_sign(state: RefineState, *, paused: bool = False, problem: str = "") -> ToolSign:
    """Return the sign of a tool of page Refine; the brush is the one that a press paints with.

    Examples
    --------
    >>> paint_sign(RefineState(PaintTool.SMARTPAINT)).text
    'SmartPaint · add · radius 6.0 mm'
    """
    if problem:
        return ToolSign(f"{state.tool.shown} · not here", WARNING_COLOURS["dark"], problem)
    if paused:
        return ToolSign(f"{state.tool.shown} · a drag moves the image")
    return ToolSign(" · ".join(_parts(state.tool, state.brush)), sign_colour(state))


def _parts(tool: PaintTool, brush: Brush) -> tuple[str, ...]:
    radius = f"radius {brush.radius_mm:.1f} mm"
    if tool is PaintTool.OUTLINE:
        return tool.shown, str(brush.action)
    if brush.tool is Tool.SMOOTH:
        return tool.shown, radius
    name = PaintTool(str(brush.tool)).shown
    return name, str(brush.action), radius


class ToolSigns(QObject):
    """Writes the sign of the tool in hand on every view; `problem_changed` carries why it rests.

    Parameters
    ----------
    views
        The views of the case at the moment, the main one first.
    signs
        By the owner of a tool: its sign in a view, where a tool has more to say than its name.
    """

    problem_changed = Signal(str)

    def __init__(
        self,
        hand: Hand,
        aim: Aim,
        views: Callable[[], Iterable[Any]],
        signs: Mapping[str, Callable[[Any], ToolSign]],
    ) -> None:
        super().__init__()
        self._hand = hand
        self._aim = aim
        self._views = views
        self._signs = signs
        self._problem = ""
        hand.changed.connect(self.write)
        aim.changed.connect(self.write)

    def write(self, _event: object = None) -> None:
        """Write everything anew."""
        signs = [(view, self._sign(view)) for view in self._views()]
        for view, sign in signs:
            overlay = view.canvas.overlays[TOOL_OVERLAY]
            overlay.text, overlay.color = sign.text, sign.colour
            overlay.visible = bool(sign.text)
        problem = signs[0][1].problem
        if problem != self._problem:
            self._problem = problem
            self.problem_changed.emit(problem)

    def _sign(self, view: Any) -> ToolSign:
        tool = self._hand.tool
        if tool is None:
            return ToolSign("")
        if tool.owner in self._signs:
            return self._signs[tool.owner](view)
        problem = self._aim.problem_in(view)
        if problem:
            return ToolSign(f"{tool.name} · not here", WARNING_COLOURS["dark"], problem)
        return ToolSign(tool.name)
