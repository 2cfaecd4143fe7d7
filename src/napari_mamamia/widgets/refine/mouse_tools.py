"""All mouse tools on the image, including napari's own brush; only one tool is active at a time."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from qtpy.QtCore import QObject, QTimer, Signal

from napari_mamamia.core.edits import Brush, Tool
from napari_mamamia.core.texts import tr
from napari_mamamia.widgets.base.layers import Role, tag_of
from napari_mamamia.widgets.controls.colours import MARK_COLOURS, MASK_COLOURS, WARNING_COLOURS
from napari_mamamia.widgets.measure.mouse import DrawTool
from napari_mamamia.widgets.refine.brush_cursor import sign_colour
from napari_mamamia.widgets.refine.editing import Editing
from napari_mamamia.widgets.refine.painting import Painting
from napari_mamamia.widgets.refine.state import PaintTool, RefineState
from napari_mamamia.widgets.viewer.active_tool import ActiveTool, MouseTool
from napari_mamamia.widgets.viewer.aim import Aim
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart
from napari_mamamia.widgets.viewer.marks import Marks
from napari_mamamia.widgets.viewer.prompts import PromptTool

TOOL_OVERLAY: Final = "mamamia_tool"
"""The name of the text overlay on the canvas of each view."""


@dataclass(frozen=True, slots=True)
class ToolSign:
    """The text on the image about the active tool, with its colour and the reason if disabled."""

    text: str
    colour: str = MASK_COLOURS["prediction"]
    problem: str = ""


def paint_sign(state: RefineState, *, paused: bool = False, problem: str = "") -> ToolSign:
    """Return the sign of a Refine tool; `state` contains the brush that a press uses.

    Examples
    --------
    >>> paint_sign(RefineState(PaintTool.SMARTPAINT)).text
    'SmartPaint · add · radius 6.0 mm'
    """
    if problem:
        return ToolSign(
            tr("{shown} · not available here", shown=state.tool.shown),
            WARNING_COLOURS["dark"],
            problem,
        )
    if paused:
        return ToolSign(tr("{shown} · a drag moves the image", shown=state.tool.shown))
    return ToolSign(" · ".join(_list_parts(state.tool, state.brush)), sign_colour(state))


def _list_parts(tool: PaintTool, brush: Brush) -> tuple[str, ...]:
    radius = tr("radius {radius_mm:.1f} mm", radius_mm=brush.radius_mm)
    if tool is PaintTool.OUTLINE:
        return tool.shown, str(brush.action)
    if tool.brush_tool is None:
        return (tool.shown,)
    if brush.tool is Tool.SMOOTH:
        return tool.shown, radius
    whole = (tr("whole lesion"),) if brush.whole else ()
    return tool.shown, str(brush.action), radius, *whole


class ToolSigns(QObject):
    """A component that shows the text about the active tool in every view.

    The signal `problem_changed` carries the reason why the tool is disabled.

    Parameters
    ----------
    views
        Function that returns the current views of the case, the main view first.
    signs
        Functions, by the owner of a tool, that return the text in a view; needed only if the text
        shows more than the tool's name.
    """

    problem_changed = Signal(str)

    def __init__(
        self,
        active_tool: ActiveTool,
        aim: Aim,
        views: Callable[[], Iterable[Any]],
        signs: Mapping[str, Callable[[Any], ToolSign]],
    ) -> None:
        super().__init__()
        self._active_tool = active_tool
        self._aim = aim
        self._views = views
        self._signs = signs
        self._problem = ""
        active_tool.changed.connect(self.write)
        aim.changed.connect(self.write)

    def write(self, _event: object = None) -> None:
        """Update the texts in all views."""
        signs = [(view, self._make_sign(view)) for view in self._views()]
        for view, sign in signs:
            overlay = view.canvas.overlays[TOOL_OVERLAY]
            overlay.text, overlay.color = sign.text, sign.colour
            overlay.visible = bool(sign.text)
        problem = signs[0][1].problem
        if problem != self._problem:
            self._problem = problem
            self.problem_changed.emit(problem)

    def _make_sign(self, view: Any) -> ToolSign:
        tool = self._active_tool.tool
        if tool is None:
            return ToolSign("")
        if tool.owner in self._signs:
            return self._signs[tool.owner](view)
        problem = self._aim.problem_in(view)
        if problem:
            return ToolSign(
                tr("{name} · not here", name=tool.name), WARNING_COLOURS["dark"], problem
            )
        return ToolSign(tool.name)


OWNER: Final = "napari"
_PAGE: Final = "Refine"
_AT_REST: Final = "pan_zoom"
_NAMES: Final = {
    "paint": tr("napari's brush"),
    "erase": tr("napari's eraser"),
    "fill": tr("napari's fill"),
    "polygon": tr("napari's polygon"),
}
_SIZED: Final = ("paint", "erase")


class NapariPaint(WindowPart):
    """A component that synchronises the mode of the mask layer with the active tool.

    napari's tools do not check the position. They are turned off if a press would hit a voxel other
    than the displayed voxel; our own tools ignore the press instead.
    """

    sign_changed = Signal()

    def __init__(self, context: WindowContext, active_tool: ActiveTool, aim: Aim) -> None:
        super().__init__(context)
        self._active_tool = active_tool
        self._aim = aim
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(0)
        self._timer.timeout.connect(self._check_aim)
        self._scene.viewer.layers.events.inserted.connect(self._on_inserted)
        active_tool.changed.connect(self._follow_tool)
        aim.changed.connect(self._timer.start)

    def sign(self, _view: Any) -> ToolSign:
        """Return the text on the image: tool, action and brush size."""
        layer = self._scene.layer(Role.REFINED)
        mode = self._active_tool.mode_of(OWNER)
        if layer is None or not mode:
            return ToolSign("")
        erases = mode == "erase" or layer.selected_label == layer.colormap.background_value
        parts = [_NAMES[mode], "erase" if erases else "add"]
        if mode in _SIZED:
            parts.append(tr("{brush_size:g} voxels wide", brush_size=layer.brush_size))
        return ToolSign(" · ".join(parts), MARK_COLOURS["erase" if erases else "add"])

    def _on_inserted(self, event: Any) -> None:
        tag = tag_of(event.value)
        if tag is not None and tag.role is Role.REFINED:
            events = event.value.events
            events.mode.connect(self._on_mode)
            for what in (events.selected_label, events.brush_size):
                what.connect(lambda _event: self.sign_changed.emit())

    def _on_mode(self, _event: object = None) -> None:
        mode = self._read_mode()
        if mode in _NAMES:
            self._active_tool.turn_on(MouseTool(OWNER, mode, _NAMES[mode], _PAGE))
            self._timer.start()  # other listeners of napari receive the mode first
        else:
            self._active_tool.turn_off(OWNER)

    def _read_mode(self) -> str:
        layer = self._scene.layer(Role.REFINED)
        return "" if layer is None else str(layer.mode)

    def _follow_tool(self) -> None:
        if not self._active_tool.mode_of(OWNER) and self._read_mode() in _NAMES:
            layer = self._scene.layer(Role.REFINED)
            if layer is not None:
                layer.mode = _AT_REST

    def _check_aim(self) -> None:
        problem = self._aim.problem_in(self._scene.viewer)
        if self._active_tool.mode_of(OWNER) and problem:
            self._active_tool.turn_off(OWNER)
            self._notifier.warn(problem)


class MouseTools(WindowPart):
    """A component that creates the mouse tools and the state of the active tool.

    Closing a case turns the active tool off.

    Parameters
    ----------
    views
        Function that returns the current views of the case, the main view first.
    page
        Function that returns the displayed page.

    Attributes
    ----------
    active_tool, aim, signs
        The active tool, the check whether a press hits the displayed voxel, and the text on the
        image.
    painting, prompts, grow_box, ftv_box, landmarks, drawing
        The tools of the Refine page, the prompts of Predict, the boxes of Refine and Kinetics, the
        clicks of Findings, and rulers and other shapes.
    """

    def __init__(
        self,
        context: WindowContext,
        editing: Editing,
        marks: Marks,
        views: Callable[[], Iterable[Any]],
        page: str,
    ) -> None:
        super().__init__(context)
        self._known: object = None
        self.active_tool = ActiveTool(page)
        self.aim = Aim(context)
        self.painting = Painting(context, editing, marks, self.active_tool, self.aim)
        self._napari = NapariPaint(context, self.active_tool, self.aim)
        pair = (self._scene, self.active_tool, self.aim)
        self.prompts = PromptTool(*pair, "prompts", "Predict", "Predict")
        self.grow_box = PromptTool(*pair, "grow box", tr("Refine"), tr("Grow"))
        self.ftv_box = PromptTool(*pair, tr("FTV box"), tr("Kinetics"), "FTV")
        self.landmarks = PromptTool(*pair, "landmarks", "Findings", "Findings")
        self.drawing = DrawTool(context, self.active_tool, self.aim)
        signs = {"painting": self._paint_sign, "napari": self._napari.sign}
        self.signs = ToolSigns(self.active_tool, self.aim, views, signs)
        self.painting.sign_changed.connect(self.signs.write)
        self._napari.sign_changed.connect(self.signs.write)
        self._session.case_changed.connect(self._on_case)
        boxes = (self.grow_box, self.ftv_box)
        for tool in (self.active_tool, self.signs, self.prompts, *boxes, self.landmarks):
            tool.setParent(self)

    def attach(self, viewer: Any) -> None:
        """Enable the mouse tools in this view of the case as well."""
        self.painting.attach(viewer)
        self.drawing.attach(viewer)
        self.aim.attach(viewer)
        self.signs.write()

    def _paint_sign(self, view: Any) -> ToolSign:
        painting = self.painting
        problem = painting.problem_in(view)
        return paint_sign(painting.pressed, paused=painting.is_paused, problem=problem)

    def _on_case(self) -> None:
        case = self._session.case
        signal = None if case is None else case.signal
        if signal is not self._known:
            self._known = signal
            self.active_tool.turn_off()
