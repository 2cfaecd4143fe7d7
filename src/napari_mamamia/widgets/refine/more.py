"""The "More tools" section of the Refine page, with rarely used tools under headings.

The section contains further ways to grow a region, and tools for the whole mask. Each use is a step
that can be undone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from qtpy.QtCore import Qt, Signal
from qtpy.QtWidgets import (
    QDoubleSpinBox,
    QGridLayout,
    QPushButton,
    QToolButton,
    QWidget,
)

from napari_mamamia.core.texts import tr
from napari_mamamia.widgets.controls.controls import (
    button,
    column,
    fill_column,
    heading,
    row,
    tool_button,
)
from napari_mamamia.widgets.controls.fields import double_spin_box

_LEAST_PART_MM3: Final = 50.0
_MARGIN_MM: Final = 1.0
_SMOOTH_MM: Final = 1.0


class MaskTool(StrEnum):
    """Tools for the whole mask."""

    INTERPOLATE = "interpolate"
    KEEP_LARGEST = "keep largest"
    REMOVE_SMALL = "remove small"
    FILL_HOLES = "fill holes"
    MARGIN = "margin"
    SMOOTH = "smooth"


@dataclass(frozen=True, slots=True)
class MaskToolRequest:
    """A tool and its amount in mm3 (`REMOVE_SMALL`) or mm (`MARGIN`, `SMOOTH`), otherwise 0."""

    tool: MaskTool
    amount: float = 0.0


Parts = Sequence[tuple[str, QWidget]]


class RefineMore(QWidget):
    """The "More tools" section; `tool_wanted` carries a `MaskToolRequest`.

    The signal `box_wanted` carries whether the user wants to draw a box for growing.
    `prediction_wanted` requests to grow the prediction, and `tighten_wanted` to move the mask's
    edge. `folded` reports that the content was shown or hidden.

    Parameters
    ----------
    above, below
        Widgets of the page, with their headings, to show above and below the section's own tools.
    """

    tool_wanted = Signal(object)
    box_wanted = Signal(bool)
    prediction_wanted = Signal()
    tighten_wanted = Signal()
    folded = Signal()

    def __init__(self, above: Parts, below: Parts) -> None:
        super().__init__()
        self.setObjectName("refine_more")
        self._has_prediction = False
        self.fold: QToolButton = tool_button(
            "refine_more_fold",
            tr("More tools"),
            tr("Shows or hides rarely used tools: history, marks and tools for the whole mask."),
            self._toggle_content,
        )
        self.fold.setArrowType(Qt.ArrowType.RightArrow)
        self.fold.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self._buttons: list[QPushButton] = []
        middle = ((tr("Grow"), self._make_growing()), (tr("Whole mask"), self._make_mask_tools()))
        self._content = column(
            *(column(heading(text), section) for text, section in (*above, *middle, *below))
        )
        self._content.layout().setContentsMargins(8, 0, 0, 0)
        self._content.hide()
        fill_column(self, self.fold, self._content, spacing=4)

    @property
    def is_folded(self) -> bool:
        """Whether the content is hidden."""
        return bool(self._content.isHidden())

    def set_busy(self, busy: bool) -> None:
        """Disable the tools while a tool is running."""
        for control in self._buttons:
            control.setEnabled(not busy)
        self._show_prediction()

    def set_asking(self, asking: bool) -> None:
        """Show whether a box is expected on the image."""
        self.in_box.setChecked(asking)

    def set_prediction(self, there: bool) -> None:
        """Set whether there is a prediction to grow."""
        self._has_prediction = there
        self._show_prediction()

    def _show_prediction(self) -> None:
        busy = not self.in_box.isEnabled()
        self.from_prediction.setEnabled(self._has_prediction and not busy)

    def _make_growing(self) -> QWidget:
        self.in_box = button(
            "refine_grow_box",
            tr("Grow in a box"),
            tr(
                "Lets you drag a box around the tumour, then grows a region from the brightest "
                "part of the box to the tumour's edge."
            ),
            lambda: self.box_wanted.emit(self.in_box.isChecked()),
        )
        self.in_box.setCheckable(True)
        self.from_prediction = button(
            "refine_grow_prediction",
            tr("Grow prediction"),
            tr("Grows the prediction from the Predict page to the tumour's edge in the image."),
            self.prediction_wanted.emit,
        )
        self.tighten = button(
            "refine_tighten",
            tr("Tighten to edges"),
            tr(
                "Moves the mask's edge to the nearest edge in the image, by up to 3 mm; for a mask "
                "that is shifted, too large or too small all around."
            ),
            self.tighten_wanted.emit,
        )
        self._buttons += [self.in_box, self.from_prediction, self.tighten]
        return column(row(self.in_box, self.from_prediction, 1), row(self.tighten, 1))

    def _make_mask_tools(self) -> QWidget:
        self.small = self._make_amount(
            "refine_small_mm3", tr("Minimum volume; smaller parts are removed."), " mm³", 1, 5000
        )
        self.small.setValue(_LEAST_PART_MM3)
        self.margin = self._make_amount(
            "refine_margin_mm",
            tr("Distance by which the mask grows; a negative value shrinks the mask."),
            " mm",
            -20,
            20,
        )
        self.margin.setValue(_MARGIN_MM)
        self.smoothing = self._make_amount(
            "refine_smooth_mm", tr("Standard deviation of the smoothing in mm."), " mm", 0.5, 5
        )
        self.smoothing.setValue(_SMOOTH_MM)
        content, grid = QWidget(), QGridLayout()
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setSpacing(3)
        tools = [
            self._make_tool_button(
                MaskTool.INTERPOLATE,
                tr("Interpolate slices"),
                tr("Fills the slices between outlined slices, and keeps existing voxels."),
            ),
            self._make_tool_button(
                MaskTool.FILL_HOLES, tr("Fill holes"), tr("Fills the holes in the mask.")
            ),
            self._make_tool_button(
                MaskTool.KEEP_LARGEST,
                tr("Keep largest part"),
                tr("Removes every part except the largest."),
            ),
            self._make_tool_button(
                MaskTool.REMOVE_SMALL,
                tr("Remove small parts"),
                tr("Removes parts smaller than the volume."),
            ),
            self._make_tool_button(
                MaskTool.MARGIN, tr("Add margin"), tr("Grows or shrinks the mask, in mm.")
            ),
            self._make_tool_button(
                MaskTool.SMOOTH, tr("Smooth mask"), tr("Smooths the surface of the whole mask.")
            ),
        ]
        places = ((0, 0), (0, 1), (1, 0), (2, 0), (3, 0), (4, 0))
        for control, cell in zip(tools, places, strict=True):
            grid.addWidget(control, *cell)
        for index, amount in enumerate((self.small, self.margin, self.smoothing), start=2):
            grid.addWidget(amount, index, 1)
        self._buttons += tools
        content.setLayout(grid)
        return content

    def _make_tool_button(self, tool: MaskTool, text: str, tip: str) -> QPushButton:
        name = f"refine_{tool.name.lower()}"
        return button(name, text, tip, lambda: self._request_tool(tool))

    def _make_amount(
        self, name: str, tip: str, unit: str, least: float, most: float
    ) -> QDoubleSpinBox:
        spin_box = double_spin_box(name, tip, (least, most), decimals=1, unit=unit)
        spin_box.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
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
        is_open = self._content.isHidden()
        self._content.setVisible(is_open)
        self.fold.setArrowType(Qt.ArrowType.DownArrow if is_open else Qt.ArrowType.RightArrow)
        self.folded.emit()
