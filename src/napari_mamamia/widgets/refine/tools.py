"""The tools of the page Refine: which one the mouse has, how large, how strict, from which images.

Each control says in a signal what the user wants; `show_state` sets all of them.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from qtpy.QtCore import Qt, Signal
from qtpy.QtWidgets import (
    QComboBox,
    QGridLayout,
    QLabel,
    QSlider,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from napari_mamamia.core.edits import Action, Brush, Extent, Features
from napari_mamamia.widgets.base.keys import with_key
from napari_mamamia.widgets.controls.controls import (
    FittedLabel,
    button,
    label,
    named,
    row,
    set_level,
    tool_button,
)
from napari_mamamia.widgets.refine.state import (
    RADII_MM,
    RADIUS_STEP_MM,
    TOLERANCE_STEP,
    TOLERANCES,
    PaintTool,
    RefineState,
)

_TOOLS: Final = (
    (
        PaintTool.OUTLINE,
        "Outline",
        "Draw round the tumour on a slice, in any plane",
        "outline_tool",
    ),
    (
        PaintTool.SMARTPAINT,
        "SmartPaint",
        "Paints what looks like the place under the mouse and stops at its edge",
        "smartpaint",
    ),
    (PaintTool.SPHERE, "Sphere", "Paints everything in the circle, whatever the image shows", ""),
    (PaintTool.SMOOTH, "Smooth", "Rounds off the mask's edge in the circle", ""),
)
_FEATURES: Final = (
    (Features.ALL, "post + subtraction + late"),
    (Features.POST, "post only"),
    (Features.SUBTRACTION, "subtraction only"),
)
_EXTENTS: Final = ((Extent.VOLUME, "3-D"), (Extent.PLANE, "2-D"))
_ACTIONS: Final = ((Action.ADD, "+ Add"), (Action.ERASE, "− Erase"))


class RefineTools(QWidget):
    """`tool_wanted` carries a `PaintTool`, `brush_wanted` a `Brush`, `grow_wanted` nothing."""

    tool_wanted = Signal(object)
    brush_wanted = Signal(object)
    label_wanted = Signal(int)
    grow_wanted = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("refine_tools")
        self._brush = Brush()
        self._suggested = 0.0
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(4)
        layout.addWidget(self._make_tools())
        layout.addWidget(self._make_choices())
        layout.addWidget(self._make_sliders())
        layout.addWidget(self._make_features())
        self.hint = label("refine_tools_hint", tip="What the tools need or lack")
        layout.addWidget(self.hint)
        layout.addWidget(self._make_grow())
        self.grow_note = label("refine_grow_note", tip="What to know of the region just grown")
        set_level(self.grow_note, "hint")
        layout.addWidget(self.grow_note)
        self.show_state(RefineState())
        self.show_hint("")
        self.show_grow_note("")

    # ------------------------------------------------------------- for the page

    def show_state(self, state: RefineState) -> None:
        """Show the tool that is on and its brush."""
        self._brush = state.brush
        for tool, control in self.tools.items():
            control.setChecked(tool is state.tool)
        for extent, control in self.extents.items():
            control.setChecked(extent is state.brush.extent)
        for action, control in self.actions.items():
            control.setChecked(action is state.brush.action)
        _set_quietly(self.radius, round(state.brush.radius_mm / RADIUS_STEP_MM))
        self.radius_text.setText(f"{state.brush.radius_mm:.1f} mm")
        _set_quietly(self.tolerance, round(state.brush.tolerance / TOLERANCE_STEP))
        self.tolerance_text.setText(f"{state.brush.tolerance:.2f}× noise")
        at = [features for features, _ in _FEATURES].index(state.brush.features)
        self.features.setCurrentIndex(at)

    def show_suggestion(self, radius_mm: float | None) -> None:
        """Offer a radius; None takes the offer away."""
        self._suggested = radius_mm or 0.0
        self.suggested.setText("" if radius_mm is None else f"suggested {radius_mm:.1f}")
        self.suggested.setVisible(radius_mm is not None)

    def show_hint(self, text: str, level: str = "hint") -> None:
        """Say what is missing, such as a late phase; "" takes the line away."""
        self.hint.setText(text)
        set_level(self.hint, level)
        self.hint.setVisible(bool(text))

    def show_outlines(self, text: str) -> None:
        """Show what Grow would start from, such as "2 outlines"."""
        self.outlines.setText(text)

    def show_grow_note(self, text: str) -> None:
        """Say what to know of the region that was just grown; "" takes the line away."""
        self.grow_note.setText(text)
        self.grow_note.setVisible(bool(text))

    def show_labels(self, labels: Sequence[tuple[int, str]]) -> None:
        """Offer the structures of a protocol, (value, name); without any the chooser is hidden."""
        self.labels.blockSignals(True)
        self.labels.clear()
        for value, name in labels:
            self.labels.addItem(name, value)
        self.labels.blockSignals(False)
        self._labels_row.setVisible(bool(labels))

    def set_usable(self, smartpaint: bool, growing: bool) -> None:
        """Say whether the image can be used yet, and whether something grows at the moment."""
        self.tools[PaintTool.SMARTPAINT].setEnabled(smartpaint)
        self.grow.setEnabled(smartpaint and not growing)

    # ------------------------------------------------------------------- inner

    def _make_tools(self) -> QWidget:
        self.tools: dict[PaintTool, QToolButton] = {}
        for tool, text, tip, key in _TOOLS:
            tip = with_key(tip, key) if key else tip
            self.tools[tool] = self._make_toggle(
                f"refine_tool_{tool}", text, tip, lambda t=tool: self._choose_tool(t)
            )
        holder = row(*self.tools.values(), 1)
        holder.layout().setSpacing(3)
        return holder

    def _make_choices(self) -> QWidget:
        tip = with_key("What a left drag does; the right button does the other", "other_action")
        self.actions = {
            action: self._make_toggle(
                f"refine_{action}", text, tip, lambda a=action: self._change_brush(action=a)
            )
            for action, text in _ACTIONS
        }
        deep = "3-D paints a sphere through the slices, 2-D only the slice on screen"
        self.extents = {
            extent: self._make_toggle(
                f"refine_extent_{extent.name.lower()}",
                text,
                deep,
                lambda e=extent: self._change_brush(extent=e),
            )
            for extent, text in _EXTENTS
        }
        holder = row(*self.actions.values(), 1, *self.extents.values())
        holder.layout().setSpacing(3)
        return holder

    def _make_sliders(self) -> QWidget:
        self.radius = self._make_slider("refine_radius", RADII_MM, RADIUS_STEP_MM)
        self.radius.setToolTip(
            with_key("Radius of the brush in mm; the circle shows what it paints", "larger")
        )
        self.radius.valueChanged.connect(
            lambda value: self._change_brush(radius_mm=value * RADIUS_STEP_MM)
        )
        self.tolerance = self._make_slider("refine_tolerance", TOLERANCES, TOLERANCE_STEP)
        self.tolerance.setToolTip(
            with_key("How much the image may differ, in units of its noise", "looser")
        )
        self.tolerance.valueChanged.connect(
            lambda value: self._change_brush(tolerance=value * TOLERANCE_STEP)
        )
        self.radius_text = self._make_value_label("refine_radius_mm", "Radius of the brush in mm")
        self.tolerance_text = self._make_value_label(
            "refine_tolerance_noise", "In units of the image's noise"
        )
        self.suggested = button(
            "refine_suggested",
            "",
            "Takes the distance from the mouse to the mask's nearest edge as the radius",
            self._take_suggestion,
        )
        self.suggested.setFlat(True)
        grid, holder = QGridLayout(), QWidget()
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setSpacing(4)
        lines: tuple[tuple[Any, ...], ...] = (
            (QLabel("Radius"), self.radius, self.radius_text, self.suggested),
            (QLabel("Tolerance"), self.tolerance, self.tolerance_text),
        )
        for at, widgets in enumerate(lines):
            for column, widget in enumerate(widgets):
                grid.addWidget(widget, at, column)
        grid.setColumnStretch(1, 1)
        holder.setLayout(grid)
        self.show_suggestion(None)
        return holder

    def _make_features(self) -> QWidget:
        self.features: QComboBox = named(
            QComboBox(), "refine_features", "Which images SmartPaint compares"
        )
        for features, text in _FEATURES:
            self.features.addItem(text, features)
        self.features.activated.connect(
            lambda at: self._change_brush(features=self.features.itemData(at))
        )
        self.labels: QComboBox = named(QComboBox(), "refine_label", "Which structure is painted")
        self.labels.activated.connect(
            lambda at: self.label_wanted.emit(int(self.labels.itemData(at)))
        )
        self._labels_row = row(QLabel("Paints"), self.labels)
        self._labels_row.layout().setStretch(1, 1)
        self._labels_row.hide()
        uses = row(QLabel("Compares"), self.features)
        uses.layout().setStretch(1, 1)
        holder, layout = QWidget(), QVBoxLayout()
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(4)
        layout.addWidget(uses)
        layout.addWidget(self._labels_row)
        holder.setLayout(layout)
        return holder

    def _make_grow(self) -> QWidget:
        self.grow = button(
            "refine_grow",
            "Grow to 3-D",
            with_key("Follows the image from the outlines into the other slices", "grow"),
            self.grow_wanted.emit,
        )
        self.outlines = label("refine_outlines", tip="What growing starts from")
        holder = row(self.grow, self.outlines)
        holder.layout().setStretch(1, 1)
        return holder

    def _make_toggle(self, name: str, text: str, tip: str, on_click: Any) -> QToolButton:
        toggle = tool_button(name, text, tip, on_click)
        toggle.setCheckable(True)
        toggle.setProperty("framed", True)
        return toggle

    def _make_slider(self, name: str, limits: tuple[float, float], step: float) -> QSlider:
        slider: QSlider = named(QSlider(Qt.Orientation.Horizontal), name, name)
        slider.setRange(round(limits[0] / step), round(limits[1] / step))
        slider.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        return slider

    def _make_value_label(self, name: str, tip: str) -> QLabel:
        value_label: QLabel = named(FittedLabel(), name, tip)
        return value_label

    def _choose_tool(self, tool: PaintTool) -> None:
        """Ask for a tool; a click on the one that is on puts it down."""
        is_on = self.tools[tool].isChecked()
        self.tool_wanted.emit(tool if is_on else PaintTool.NONE)

    def _change_brush(self, **changes: Any) -> None:
        self.brush_wanted.emit(replace(self._brush, **changes))

    def _take_suggestion(self) -> None:
        if self._suggested:
            self._change_brush(radius_mm=self._suggested)


def _set_quietly(slider: QSlider, value: int) -> None:
    """Show a value without saying that the user chose it."""
    slider.blockSignals(True)
    slider.setValue(value)
    slider.blockSignals(False)
