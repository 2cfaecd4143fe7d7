"""The tools of the Refine page: active tool, brush size and growing.

Each control emits a signal with the user's request; `show_state` updates all controls. Rarely used
controls are in `extras`, which the page places in a collapsible section.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from qtpy.QtCore import QSize, Qt, Signal
from qtpy.QtGui import QColor, QIcon, QPainter, QPixmap
from qtpy.QtWidgets import (
    QLabel,
    QToolButton,
    QWidget,
)

from napari_mamamia.core.edits import Action, Extent, Tool
from napari_mamamia.core.texts import tr
from napari_mamamia.widgets.base.keys import with_key
from napari_mamamia.widgets.controls.colours import (
    MASK_COLOURS,
    MASK_DASHES,
    OTHER_LESION,
    OTHER_LESION_DASHES,
    OTHER_LESION_WIDTH,
)
from napari_mamamia.widgets.controls.controls import (
    FittedLabel,
    button,
    column,
    fill_column,
    label,
    named,
    row,
    set_level,
    set_primary,
    tool_button,
)
from napari_mamamia.widgets.controls.fields import combo_box, double_spin_box
from napari_mamamia.widgets.controls.targets import Slider
from napari_mamamia.widgets.refine.state import (
    RADII_MM,
    RADIUS_STEP_MM,
    NextStep,
    PaintTool,
    RefineState,
)

_TOOLS: Final = (
    (
        PaintTool.SMARTPAINT,
        "SmartPaint",
        tr(
            "Left button: add missing tissue. Right button: remove excess. SmartPaint follows the "
            "image; with Shift, the stroke acts on the whole lesion."
        ),
        "smartpaint",
    ),
    (
        PaintTool.OUTLINE,
        tr("Outline"),
        tr("Draw around the tumour on a slice, in any plane."),
        "outline_tool",
    ),
    (
        PaintTool.SPHERE,
        tr("Sphere"),
        tr("Paints everything in the circle, regardless of the image; the right button erases."),
        "",
    ),
)
_PAINTED_WIDTH: Final = 2.5
_LINE_ICON: Final = (26, 12)
_REACHES_MM: Final = (5.0, 150.0)
_PART_TIP: Final = tr(
    "Click on a part to remove: a separate part, a leak beyond a narrow bridge, or a vessel. "
    "Growing does not restore it."
)
_CUT_TIP: Final = tr(
    "Draw a line across a narrow bridge. The part beyond it is removed in all slices. Growing "
    "does not restore it."
)
_SMOOTH_TIP: Final = tr("Smooths the mask's edge in the circle.")
_EXTENTS: Final = ((Extent.VOLUME, "3-D"), (Extent.PLANE, "2-D"))
_SMARTS: Final = ((Tool.EVIDENCE, tr("Image values")), (Tool.LEARNED, tr("Neural network")))
_SMART_TIP: Final = tr(
    "How SmartPaint finds the edge: by comparing image values, or with a small neural network that "
    "was trained on corrections."
)
_ACTIONS: Final = ((Action.ADD, tr("+ Add")), (Action.ERASE, tr("− Erase")))


class RefineTools(QWidget):
    """The tools of the Refine page; `tool_wanted` carries a `PaintTool`, `brush_wanted` a `Brush`.

    The signal `reach_wanted` carries a new search radius in mm for a region that reached its limit.
    """

    tool_wanted = Signal(object)
    brush_wanted = Signal(object)
    label_wanted = Signal(int)
    grow_wanted = Signal()
    reach_wanted = Signal(float)

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("refine_tools")
        self._brush = RefineState().brush
        self._suggested = 0.0
        self.tools: dict[PaintTool, QToolButton] = {}
        self.extras = self._make_extras()
        self.next_step = label("refine_next", tip=tr("The next step."))
        self.hint = label("refine_tools_hint", tip=tr("What the tools need, or what is missing."))
        self.stroke_note = label("refine_stroke", tip=tr("The change made by the last stroke."))
        self.grow_note = label("refine_grow_note", tip=tr("Notes on the grown region."))
        set_level(self.grow_note, "hint")
        fill_column(
            self,
            self.next_step,
            self._make_tools(),
            self._make_radius(),
            self._make_labels(),
            self.hint,
            self.stroke_note,
            self._make_grow(),
            self.grow_note,
            self._make_reach(),
            spacing=5,
        )
        self.show_state(RefineState())
        self.show_hint("")
        self.show_grow_note("")
        self.show_stroke("")
        self._keep_room()

    # ------------------------------------------------------------- for the page

    def show_state(self, state: RefineState) -> None:
        """Show the active tool and its brush."""
        self._brush = state.brush
        for tool, control in self.tools.items():
            control.setChecked(tool is state.tool)
        for extent, control in self.extents.items():
            control.setChecked(extent is state.brush.extent)
        for action, control in self.actions.items():
            control.setChecked(action is state.brush.action)
        self.smart.setCurrentIndex(self.smart.findData(state.smart.value))
        _set_quietly(self.radius, round(state.brush.radius_mm / RADIUS_STEP_MM))
        self.radius_text.setText(tr("{radius_mm:.1f} mm", radius_mm=state.brush.radius_mm))

    def show_next(self, step: NextStep, text: str) -> None:
        """Show the next step as text, and highlight its control."""
        self._keep_room()
        self.next_step.setText(text)
        set_primary(self.tools[PaintTool.SMARTPAINT], step is NextStep.PAINT)
        set_primary(self.grow, step is NextStep.GROW)

    def show_suggestion(self, radius_mm: float | None) -> None:
        """Show a button for a suggested radius; None hides the button."""
        self._suggested = radius_mm or 0.0
        self.suggested.setText(
            "" if radius_mm is None else tr("Radius {radius_mm:.1f} mm", radius_mm=radius_mm)
        )
        self.suggested.setVisible(radius_mm is not None)

    def show_hint(self, text: str, level: str = "hint") -> None:
        """Show what is missing, such as a late phase; "" hides the text."""
        self.hint.setText(text)
        set_level(self.hint, level)
        self.hint.setVisible(bool(text))

    def show_images(self, text: str) -> None:
        """Show which images SmartPaint compares."""
        self.images.setText(text)
        self.images.setVisible(bool(text))

    def show_outlines(self, text: str, *, is_again: bool) -> None:
        """Show the evidence from which the next growth starts, such as "2 outlines"."""
        self.outlines.setText(text)
        self.grow.setText(tr("Grow again") if is_again else tr("Grow to 3-D"))

    def show_reach(self, radius_mm: float | None) -> None:
        """Show a field for a larger search radius of the grown region; None hides the field."""
        is_new = radius_mm is not None and self._reach_row.isHidden()
        self._reach_row.setVisible(radius_mm is not None)
        if radius_mm is not None and is_new:
            self.reach.setValue(radius_mm)
            self.reach_wanted.emit(radius_mm)

    def show_grow_note(self, text: str) -> None:
        """Show notes about the grown region; "" hides the notes."""
        self.grow_note.setText(text)
        self.grow_note.setVisible(bool(text))

    def show_stroke(self, text: str, *, is_advice: bool = False) -> None:
        """Show the change made by the last stroke."""
        self.stroke_note.setText(text)
        set_level(self.stroke_note, "warning" if is_advice else "hint")

    def show_labels(self, labels: Sequence[tuple[int, str]], now: int | None) -> None:
        """List structures or lesions as (value, name), with `now` selected; hide an empty list."""
        self.labels.blockSignals(True)
        self.labels.clear()
        painted = _draw_line(MASK_COLOURS["refined"], _PAINTED_WIDTH, *MASK_DASHES["refined"])
        other = _draw_line(OTHER_LESION, OTHER_LESION_WIDTH, *OTHER_LESION_DASHES)
        for value, name in labels:
            self.labels.addItem(painted if value == now else other, name, value)
        self.labels.setCurrentIndex(self.labels.findData(now))
        self.labels.blockSignals(False)
        self._labels_row.setVisible(bool(labels))

    def set_usable(self, smartpaint: bool, growing: bool) -> None:
        """Set whether SmartPaint and growing are available."""
        self.tools[PaintTool.SMARTPAINT].setEnabled(smartpaint)
        self.grow.setEnabled(smartpaint and not growing)

    # ------------------------------------------------------------------- inner

    def _keep_room(self) -> None:
        """Reserve space for two lines, so that texts do not move the controls below."""
        for line in (self.next_step, self.stroke_note):
            line.setMinimumHeight(2 * line.fontMetrics().lineSpacing())

    def _make_tools(self) -> QWidget:
        for tool, text, tip, key in _TOOLS:
            self._add_tool(tool, text, with_key(tip, key) if key else tip)
        holder = row(*(self.tools[tool] for tool, *_ in _TOOLS), 1)
        holder.layout().setSpacing(3)
        return holder

    def _make_extras(self) -> QWidget:
        smooth = self._add_tool(PaintTool.SMOOTH, tr("Smooth"), _SMOOTH_TIP)
        part_tool = self._add_tool(PaintTool.PART, tr("Remove this part"), _PART_TIP)
        cut = self._add_tool(PaintTool.CUT, tr("Cut here"), _CUT_TIP)
        tip = with_key(
            tr("The action of the left button; the right button does the opposite."), "other_action"
        )
        self.actions = {
            action: self._make_toggle(
                f"refine_{action}", text, tip, lambda a=action: self._change_brush(action=a)
            )
            for action, text in _ACTIONS
        }
        deep = tr("Sphere and Smooth: 3-D includes other slices, 2-D stays on the displayed slice.")
        self.extents = {
            extent: self._make_toggle(
                f"refine_extent_{extent.name.lower()}",
                text,
                deep,
                lambda e=extent: self._change_brush(extent=e),
            )
            for extent, text in _EXTENTS
        }
        self.suggested = button(
            "refine_suggested",
            "",
            tr("Sets the radius to the distance from the pointer to the mask's nearest edge."),
            self._take_suggestion,
        )
        self.images = label("refine_images", tip=tr("The images that SmartPaint compares."))
        first = row(smooth, *self.extents.values(), 1)
        self.smart = combo_box("refine_smart", _SMART_TIP)
        for tool, text in _SMARTS:
            self.smart.addItem(text, tool.value)
        self.smart.activated.connect(
            lambda index: self._change_brush(tool=Tool(self.smart.itemData(index)))
        )
        method = row(QLabel(tr("SmartPaint uses")), self.smart, 1)
        leaks = row(QLabel(tr("Leaks")), part_tool, cut, 1)
        second = row(QLabel(tr("Left button")), *self.actions.values(), 1, self.suggested)
        for holder in (first, second, method, leaks):
            holder.layout().setSpacing(3)
        holder = column(first, second, method, leaks, self.images)
        holder.layout().setSpacing(3)
        self.show_suggestion(None)
        self.show_images("")
        return holder

    def _make_radius(self) -> QWidget:
        self.radius: Slider = named(
            Slider(Qt.Orientation.Horizontal),
            "refine_radius",
            with_key(tr("Radius of the circle in mm (also Alt and wheel)."), "larger"),
        )
        self.radius.setRange(*(round(limit / RADIUS_STEP_MM) for limit in RADII_MM))
        self.radius.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.radius.valueChanged.connect(
            lambda value: self._change_brush(radius_mm=value * RADIUS_STEP_MM)
        )
        self.radius_text: QLabel = named(
            FittedLabel("", ("40.0 mm",)), "refine_radius_mm", tr("Radius of the circle in mm.")
        )
        holder = row(QLabel(tr("Radius")), self.radius, self.radius_text)
        holder.layout().setStretch(1, 1)
        return holder

    def _make_labels(self) -> QWidget:
        self.labels = combo_box(
            "refine_label",
            tr(
                "Structure that you paint. Its line is thick, solid and green, while the lines of "
                "other structures are thin, dashed and grey."
            ),
        )
        self.labels.setIconSize(QSize(*_LINE_ICON))
        self.labels.activated.connect(
            lambda at: self.label_wanted.emit(int(self.labels.itemData(at)))
        )
        self._labels_row = row(QLabel(tr("Paints")), self.labels)
        self._labels_row.layout().setStretch(1, 1)
        self._labels_row.hide()
        return self._labels_row

    def _make_grow(self) -> QWidget:
        self.grow = button(
            "refine_grow",
            tr("Grow to 3-D"),
            with_key(tr("Follows the image from the outlines into the other slices."), "grow"),
            self.grow_wanted.emit,
        )
        self.outlines = label("refine_outlines", tip=tr("Starting point of the growth."))
        holder = row(self.grow, self.outlines)
        holder.layout().setStretch(1, 1)
        return holder

    def _make_reach(self) -> QWidget:
        self.reach = double_spin_box(
            "refine_grow_reach",
            tr("Maximum distance of the region from its centre; it applies when you grow again."),
            _REACHES_MM,
            decimals=0,
            unit=tr(" mm"),
        )
        self.reach.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.reach.valueChanged.connect(self.reach_wanted.emit)
        self._reach_row = row(QLabel(tr("Search distance")), self.reach, 1)
        self._reach_row.hide()
        return self._reach_row

    def _add_tool(self, tool: PaintTool, text: str, tip: str) -> QToolButton:
        name = f"refine_tool_{tool}"
        self.tools[tool] = self._make_toggle(name, text, tip, lambda: self._choose_tool(tool))
        return self.tools[tool]

    def _make_toggle(self, name: str, text: str, tip: str, on_click: Any) -> QToolButton:
        toggle = tool_button(name, text, tip, on_click)
        toggle.setCheckable(True)
        toggle.setProperty("framed", True)
        return toggle

    def _choose_tool(self, tool: PaintTool) -> None:
        is_on = self.tools[tool].isChecked()
        self.tool_wanted.emit(tool if is_on else PaintTool.NONE)

    def _change_brush(self, **changes: Any) -> None:
        self.brush_wanted.emit(replace(self._brush, **changes))

    def _take_suggestion(self) -> None:
        if self._suggested:
            self._change_brush(radius_mm=self._suggested)


def _set_quietly(slider: Slider, value: int) -> None:
    slider.blockSignals(True)
    slider.setValue(value)
    slider.blockSignals(False)


def _draw_line(colour: str, width: float, stroke: float, period: float) -> QIcon:
    """Return an icon of a mask's line with its dark border, on black; lengths are in pixels."""
    pixmap = QPixmap(*_LINE_ICON)
    pixmap.fill(QColor("black"))
    painter = QPainter(pixmap)
    thick = round(width + 0.5)
    end = pixmap.width() - 2
    for start in range(2, end, round(period)):
        length = min(round(stroke), end - start)
        painter.fillRect(start, (pixmap.height() - thick) // 2, length, thick, QColor(colour))
    painter.end()
    return QIcon(pixmap)
