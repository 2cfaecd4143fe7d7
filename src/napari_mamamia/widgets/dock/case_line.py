"""The line above the image with case, hanging steps, active tool, saved state and reader."""

from typing import Any, Final

from qtpy.QtCore import Qt, Signal
from qtpy.QtWidgets import QHBoxLayout, QToolBar, QToolButton, QWidget

from napari_mamamia.core.texts import tr
from napari_mamamia.services.case.hanging import HangingPlan, HangingStep
from napari_mamamia.widgets.base.header import Header
from napari_mamamia.widgets.base.layers import Role
from napari_mamamia.widgets.base.notify import Level
from napari_mamamia.widgets.controls.colours import MASK_COLOURS
from napari_mamamia.widgets.controls.controls import named, refresh_accessible_text, tool_button
from napari_mamamia.widgets.controls.tab_order import ReadingOrder
from napari_mamamia.widgets.hanging.bar import HangingBar
from napari_mamamia.widgets.viewer.active_tool import MouseTool

_SHORT: Final = {
    HangingStep.MIP: tr("MIP"),
    HangingStep.BOTH: tr("Both"),
    HangingStep.SIDES: tr("R | L"),
    HangingStep.LATE: tr("Late"),
    HangingStep.PRIOR: tr("Prior"),
}
_COLOURS: Final = {
    "painting": MASK_COLOURS[Role.REFINED],
    "napari": MASK_COLOURS[Role.REFINED],
    "prompts": MASK_COLOURS[Role.PREDICTION],
    "measure": "#FFD24D",
}
"""Drawing colour of the active tool by its owner; tools of other owners are grey."""
_OTHER: Final = "#CCCCCC"


class CaseLine(ReadingOrder, QToolBar):
    """The line above the image, with case, hanging steps, active tool, saved state and reader.

    Most of its controls are borrowed from the header and the hanging bar, so nothing is shown
    twice. The signal `turn_off_wanted` requests to turn off the tool, and `panel_wanted` requests
    the panel, which shows a message.
    """

    turn_off_wanted = Signal()
    panel_wanted = Signal()
    own_view_wanted = Signal()

    def __init__(self, header: Header, bar: HangingBar) -> None:
        super().__init__()
        fix_bar(self, "case_line")
        self._header = header
        self._bar = bar
        self._plan: HangingPlan | None = None
        self._step: HangingStep | None = None
        self._armed = ""
        self.chips = {step: self._make_chip(step) for step in HangingStep}
        self.armed = tool_button(
            "line_armed", "", tr("Turns off the tool."), self.turn_off_wanted.emit
        )
        self.armed.hide()
        self.notice = tool_button("line_notice", "", tr("Shows the panel."), self.panel_wanted.emit)
        self.notice.hide()
        holder = QWidget()
        holder.setMinimumWidth(1)  # Otherwise the window could not be narrower than these controls.
        self._line = QHBoxLayout(holder)
        self._line.setContentsMargins(8, 1, 8, 1)
        self._line.setSpacing(5)
        self.addWidget(holder)
        for control in (*self.chips.values(), self.armed, self.notice):
            control.setParent(
                holder
            )  # Otherwise each control would be a separate window until the line exists.
        bar.walked.connect(self._show_hanging)

    def settle(self) -> None:
        """Take over the controls after the line has been inserted into the window."""
        header, bar = self._header, self._bar
        self._add_controls(header.previous, header.case, header.position, header.next)
        self._line.addSpacing(10)
        self._add_controls(*self.chips.values(), bar.choose)
        self._line.addSpacing(10)
        self._add_controls(self.armed, self.notice)
        self._line.addWidget(header.state, stretch=1)
        self._add_controls(header.reader, header.napari, header.keys)
        bar.choose.setVisible(self._plan is not None)
        header.lend()
        bar.lend()
        self._fit_words()

    def give_back(self) -> None:
        """Return the controls to the header and the hanging bar."""
        self._header.take_back()
        self._bar.take_back()
        while self._line.count():
            self._line.takeAt(0)

    def show_tool_name(self, tool: MouseTool | None) -> None:
        """Show the name of the active tool in its drawing colour."""
        self.armed.setVisible(tool is not None)
        if tool is None:
            self._fit_words()  # The omitted controls fit again.
            return
        colour = _COLOURS.get(tool.owner, _OTHER)
        self._armed = f"● {tr(tool.name)}"
        self.armed.setStyleSheet(f"background-color: {colour}; color: black; padding: 1px 6px;")
        self.armed.setToolTip(
            tr("Active tool: {name}; click to turn off the tool.", name=tr(tool.name))
        )
        self._fit_words()
        refresh_accessible_text(self.armed)

    def show_notice(self, level: Level, text: str) -> None:
        """Show that the hidden panel has a message; "" removes the notice."""
        self.notice.setVisible(bool(text))
        sign = tr("Note") if level is Level.HINT else tr("Warning")
        self.notice.setText(f"▸ {sign}")
        self.notice.setToolTip("\n".join((text, tr("Click to show the panel."))))
        refresh_accessible_text(self.notice)

    def resizeEvent(self, event: Any) -> None:
        """Shorten the hanging steps to their numbers if their names do not fit."""
        super().resizeEvent(event)
        self._fit_words()

    def _add_controls(self, *controls: QWidget) -> None:
        for control in controls:
            self._line.addWidget(control)

    def _make_chip(self, step: HangingStep) -> QToolButton:
        chip = tool_button(f"line_{step}", "", tr(step.words), lambda: self._click_step(step))
        chip.setCheckable(True)
        chip.setProperty("step", True)
        chip.hide()
        return chip

    def _click_step(self, step: HangingStep) -> None:
        self.chips[step].setChecked(step is self._step)  # Until the line is visible.
        if step is self._step:
            self.own_view_wanted.emit()
        else:
            self._bar.shown_wanted.emit(step)

    def _show_hanging(self, plan: HangingPlan | None, step: HangingStep | None) -> None:
        self._plan, self._step = plan, step
        for shown_step, chip in self.chips.items():
            is_there = plan is not None and shown_step in plan.steps
            chip.setVisible(is_there)
            chip.setChecked(is_there and shown_step is step)
            more = tr("click again to restore your view") if shown_step is step else ""
            chip.setToolTip("; ".join(text for text in (tr(shown_step.words), more) if text))
        self._bar.choose.setVisible(plan is not None)
        self._fit_words()

    def _fit_words(self) -> None:
        """Shorten texts that do not fit: first the steps, then the active tool, and last the case.

        The steps are also in the menu, and the image shows how to use the active tool.
        """
        steps = () if self._plan is None else self._plan.steps
        for level in range(4):
            for index, step in enumerate(steps, 1):
                chip = self.chips[step]
                chip.setText(f"{index}" if level else f"{index} {_SHORT[step]}")
                chip.setVisible(level < 3)
            self.armed.setText(self._armed.partition(":")[0] if level > 1 else self._armed)
            if self._line.sizeHint().width() <= self.width():
                return


def fix_bar(bar: QToolBar, name: str) -> None:
    """Make a tool bar fixed, keep it out of napari's menus, and name Qt's extension button."""
    named(bar, name, "")
    bar.setMovable(False)
    bar.toggleViewAction().setVisible(False)
    bar.setContextMenuPolicy(Qt.ContextMenuPolicy.PreventContextMenu)
    for more in bar.findChildren(QToolButton):
        named(more, f"{name}_more", tr("Shows the controls that do not fit."))
