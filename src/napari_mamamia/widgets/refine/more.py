"""The fold "More" of the page Refine: whole-mask tools, each one undoable step."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from qtpy.QtCore import Qt, Signal
from qtpy.QtWidgets import QDoubleSpinBox, QGridLayout, QToolButton, QVBoxLayout, QWidget

from napari_mamamia.widgets.controls.controls import button, named, tool_button

_LEAST_PART_MM3: Final = 50.0
_MARGIN_MM: Final = 1.0
_SMOOTH_MM: Final = 1.0


class MaskTool(StrEnum):
    """What can be done to the whole mask."""

    INTERPOLATE = "interpolate"
    KEEP_LARGEST = "keep largest"
    REMOVE_SMALL = "remove small"
    FILL_HOLES = "fill holes"
    MARGIN = "margin"
    SMOOTH = "smooth"


@dataclass(frozen=True, slots=True)
class MaskToolRequest:
    """A tool and its amount: mm3 for `REMOVE_SMALL`, mm for `MARGIN` and `SMOOTH`, else 0."""

    tool: MaskTool
    amount: float = 0.0


class RefineMore(QWidget):
    """`tool_wanted` carries a `MaskToolRequest`, `protocol_wanted` asks for a protocol file.

    `box_wanted` says that a box to grow in is to be drawn, or no more; `prediction_wanted` asks to
    grow the prediction.
    """

    tool_wanted = Signal(object)
    protocol_wanted = Signal()
    box_wanted = Signal(bool)
    prediction_wanted = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("refine_more")
        self._has_prediction = False
        self.fold: QToolButton = tool_button(
            "refine_more_fold",
            "More",
            "Shows or hides tools for the whole mask, and more ways to grow",
            self._toggle_content,
        )
        self.fold.setArrowType(Qt.ArrowType.RightArrow)
        self.fold.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self._content = self._make_content()
        self._content.hide()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(2)
        layout.addWidget(self.fold)
        layout.addWidget(self._content)

    def set_busy(self, busy: bool) -> None:
        """Switch the tools off while one of them runs."""
        for control in self._buttons:
            control.setEnabled(not busy)
        self._show_prediction()

    def set_asking(self, asking: bool) -> None:
        """Show whether the image waits for a box."""
        self.in_box.setChecked(asking)

    def set_prediction(self, there: bool) -> None:
        """Say whether there is a prediction to grow."""
        self._has_prediction = there
        self._show_prediction()

    def _show_prediction(self) -> None:
        busy = not self.in_box.isEnabled()
        self.from_prediction.setEnabled(self._has_prediction and not busy)

    def _make_content(self) -> QWidget:
        self.small = self._make_amount(
            "refine_small_mm3", "Parts smaller than this go", " mm³", 1, 5000
        )
        self.small.setValue(_LEAST_PART_MM3)
        self.margin = self._make_amount(
            "refine_margin_mm", "How far the mask grows; below 0 it shrinks", " mm", -20, 20
        )
        self.margin.setValue(_MARGIN_MM)
        self.smoothing = self._make_amount(
            "refine_smooth_mm", "Standard deviation of the smoothing in mm", " mm", 0.5, 5
        )
        self.smoothing.setValue(_SMOOTH_MM)
        content, grid = QWidget(), QGridLayout()
        grid.setContentsMargins(12, 0, 0, 0)
        grid.setSpacing(3)
        self._buttons = [
            self._make_tool_button(
                MaskTool.INTERPOLATE,
                "Interpolate slices",
                "Fills the slices between outlined ones; nothing that exists is lost",
            ),
            self._make_tool_button(
                MaskTool.FILL_HOLES, "Fill holes", "Fills what the mask encloses"
            ),
            self._make_tool_button(
                MaskTool.KEEP_LARGEST, "Keep largest part", "Removes every part but the largest"
            ),
            self._make_tool_button(
                MaskTool.REMOVE_SMALL, "Remove small", "Removes parts below the volume"
            ),
            self._make_tool_button(MaskTool.MARGIN, "Margin", "Grows or shrinks the mask, in mm"),
            self._make_tool_button(
                MaskTool.SMOOTH, "Smooth all", "Rounds off the whole mask's surface"
            ),
            button(
                "refine_protocol",
                "Protocol…",
                "Loads an annotation protocol: phase, brush, structures, checklist, time limit",
                self.protocol_wanted.emit,
            ),
        ]
        places = ((0, 0), (0, 1), (1, 0), (2, 0), (3, 0), (4, 0), (1, 1))
        for control, place in zip(self._buttons, places, strict=True):
            grid.addWidget(control, *place)
        for at, amount in enumerate((self.small, self.margin, self.smoothing), start=2):
            grid.addWidget(amount, at, 1)
        self.in_box = button(
            "refine_grow_box",
            "Grow in a box",
            "Then drag a box around the tumour: the brightest part of it grows to its edge",
            lambda: self.box_wanted.emit(self.in_box.isChecked()),
        )
        self.in_box.setCheckable(True)
        self.from_prediction = button(
            "refine_grow_prediction",
            "Grow prediction",
            "Takes the candidate that page Predict shows, and follows the image to its edge",
            self.prediction_wanted.emit,
        )
        self._buttons += [self.in_box, self.from_prediction]
        grid.addWidget(self.in_box, 5, 0)
        grid.addWidget(self.from_prediction, 5, 1)
        content.setLayout(grid)
        return content

    def _make_tool_button(self, tool: MaskTool, text: str, tip: str) -> QWidget:
        name = f"refine_{tool.name.lower()}"
        return button(name, text, tip, lambda: self._request_tool(tool))

    def _make_amount(
        self, name: str, tip: str, unit: str, least: float, most: float
    ) -> QDoubleSpinBox:
        spin_box: QDoubleSpinBox = named(QDoubleSpinBox(), name, tip)
        spin_box.setRange(least, most)
        spin_box.setDecimals(1)
        spin_box.setSuffix(unit)
        spin_box.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        return spin_box

    def _request_tool(self, tool: MaskTool) -> None:
        amounts = {
            MaskTool.REMOVE_SMALL: self.small,
            MaskTool.MARGIN: self.margin,
            MaskTool.SMOOTH: self.smoothing,
        }
        amount = amounts[tool].value() if tool in amounts else 0.0
        self.tool_wanted.emit(MaskToolRequest(tool, amount))

    def _toggle_content(self) -> None:
        shown = self._content.isHidden()
        self._content.setVisible(shown)
        self.fold.setArrowType(Qt.ArrowType.DownArrow if shown else Qt.ArrowType.RightArrow)
