"""The hanging bar: current step, number of steps, and why some steps are omitted.

The bar does not use the viewer, so that any part of the window can contain the bar.
"""

from collections.abc import Sequence
from typing import Final

from qtpy.QtCore import Qt, Signal
from qtpy.QtWidgets import QComboBox, QCompleter, QFrame, QMenu, QToolButton, QWidget

from napari_mamamia.core.texts import tr
from napari_mamamia.services.case.hanging import HangingPlan, HangingStep, PriorChoice
from napari_mamamia.services.case.prior import PriorLink
from napari_mamamia.widgets.base.keys import with_key
from napari_mamamia.widgets.controls.controls import (
    fill_column,
    label,
    refresh_accessible_text,
    row,
    tool_button,
)
from napari_mamamia.widgets.controls.fields import combo_box

_OWN_VIEW: Final = tr("Hanging: your own view")
_LEAST: Final = 24

_NO_FRAME: Final = tr(
    "The exams do not share a frame of reference, so matching positions are unknown; both exams "
    "start at the same scanner coordinates."
)
_LINK_BY_HAND: Final = tr(
    "Find the same landmark in both exams, such as the nipple, then press Link here to align the "
    "two cross-hairs."
)
_UNLINK: Final = tr("Lets you scroll each exam separately to find the same position by eye.")
_LINK: Final = tr("Treats the two displayed positions as the same level and links the exams again.")


class HangingBar(QFrame):
    """The hanging bar, whose signals carry user requests."""

    step_wanted = Signal(int)
    shown_wanted = Signal(object)
    chosen = Signal(object, bool)
    prior_wanted = Signal(str)
    others_wanted = Signal()
    link_wanted = Signal()
    walked = Signal(object, object)
    """A signal with the plan and the displayed step, which another bar may show instead."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("hanging_bar")
        self.setToolTip(tr("The reading steps of a case."))
        previous = with_key(
            tr("Goes to the previous step, or from the first step to your own view."),
            "hanging_back",
        )
        following = with_key(tr("Goes to the next step of the hanging protocol."), "hanging_next")
        self.back = tool_button("hanging_back", "‹", previous, lambda: self.step_wanted.emit(-1))
        self.next = tool_button("hanging_next", "›", following, lambda: self.step_wanted.emit(1))
        self.text = label("hanging_step", _OWN_VIEW, "")
        self.choose = tool_button(
            "hanging_choose",
            "▾",
            tr("Goes to a step, or lets you choose which steps to show."),
            self._open_menu,
        )
        self.menu = QMenu(self)
        self.menu.setObjectName("hanging_menu")
        self.menu.setToolTipsVisible(True)
        self.prior = tool_button(
            "hanging_prior",
            tr("Prior…"),
            with_key(tr("Chooses the prior exam to show next to this exam."), "prior"),
            self._open_priors,
        )
        self.priors = QMenu(self)
        self.priors.setObjectName("hanging_priors")
        self.link = tool_button("hanging_link", tr("Unlink"), _UNLINK, self.link_wanted.emit)
        self.note = label("hanging_note", "", tr("How the two exams are linked."))
        for control in (self.back, self.next, self.choose, self.prior, self.link):
            control.setProperty("framed", True)
            control.setMinimumSize(_LEAST, _LEAST)
        self._step_line: QWidget = row(self.back, self.text, self.next, self.choose)
        self._step_line.layout().setStretch(1, 1)
        self._prior_line = row(self.prior, self.link, self.note)
        self._prior_line.layout().setStretch(2, 1)
        self._prior_line.hide()
        self.others = self._make_others()
        fill_column(self, self._step_line, self._prior_line, self.others, spacing=2)
        self._plan: HangingPlan | None = None
        self._is_wanted = True
        self._unwanted: frozenset[HangingStep] = frozenset()
        self._priors: tuple[PriorChoice, ...] = ()
        self.hide()

    def show_step(
        self, plan: HangingPlan | None, step: HangingStep | None, unwanted: frozenset[HangingStep]
    ) -> None:
        """Show the current step of the plan, or nothing if no case is open."""
        self._plan, self._unwanted = plan, unwanted
        self.walked.emit(plan, step)
        self.others.hide()
        if plan is None:
            self._show_if_filled()
            return
        text = _OWN_VIEW
        if step in plan.steps:
            text = f"{plan.steps.index(step) + 1}/{len(plan.steps)}  {tr(step.words)}"
        self.text.setText(text)
        lacks = [f"{tr(other.words)}: {why}" for other, why in plan.left_out]
        tip = "\n".join(
            [tr("Steps left out:"), *lacks] if lacks else [tr("All steps are available")]
        )
        self.text.setToolTip(tip)
        refresh_accessible_text(self.text)
        self.back.setEnabled(step is not None)
        self.next.setEnabled(bool(plan.steps) and (step is None or step is not plan.steps[-1]))
        self._prior_line.setVisible(step is HangingStep.PRIOR)
        self._show_if_filled()

    def lend(self) -> None:
        """Let the line above the image show the controls of the steps."""
        self._step_line.hide()
        self._show_if_filled()

    def take_back(self) -> None:
        """Show the controls of the steps in the bar again."""
        self._step_line.layout().addWidget(self.choose)
        self._step_line.show()
        self._show_if_filled()

    def want(self, wanted: bool) -> None:
        """Set whether the bar is shown while a case is open; hiding it saves a line."""
        self._is_wanted = wanted
        self._show_if_filled()

    def show_prior(self, link: PriorLink, is_linked: bool) -> None:
        """Show how the other exam is linked, or why it is not linked."""
        text = tr("linked in mm")
        why = tr(
            "Both exams share a frame of reference, so the same position has the same "
            "coordinates in mm."
        )
        if link.is_by_hand:
            x, y, z = link.offset_mm
            text = tr("linked by hand")
            why = tr("Shifted by {x:.1f}, {y:.1f}, {z:.1f} mm (R, A, S)", x=x, y=y, z=z)
        if not is_linked:
            text, why = tr("scroll or click in each exam, then link"), _LINK_BY_HAND
            if not link.is_known:
                text, why = (
                    tr("no common frame; link by hand"),
                    f"{_NO_FRAME} {_LINK_BY_HAND}",
                )
        self.note.setText(text)
        self.note.setToolTip(why)
        self.link.setText(tr("Unlink") if is_linked else tr("Link here"))
        self.link.setToolTip(_UNLINK if is_linked else _LINK)
        refresh_accessible_text(self.link)

    def set_priors(self, priors: Sequence[PriorChoice]) -> None:
        """Set the exams to list first."""
        self._priors = tuple(priors)

    def ask_other(self, case_ids: Sequence[str]) -> None:
        """Ask which of these exams to show next to the case; part of an exam's name is enough."""
        self.others.clear()
        self.others.addItems(list(case_ids))
        self.others.setCurrentIndex(-1)
        self.others.show()
        self._show_if_filled()
        self.others.setFocus()

    def _show_if_filled(self) -> None:
        parts = (self._step_line, self._prior_line, self.others)
        holds = any(not line.isHidden() for line in parts)
        self.setVisible(self._plan is not None and self._is_wanted and holds)

    def _make_others(self) -> QComboBox:
        box = combo_box(
            "hanging_others", tr("Type part of the name of the exam to show next to this one.")
        )
        box.setEditable(True)
        box.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        box.setMinimumHeight(_LEAST)
        typed, completer = box.lineEdit(), box.completer()
        if typed is not None and completer is not None:
            typed.setPlaceholderText(tr("Which exam?"))
            completer.setFilterMode(Qt.MatchFlag.MatchContains)
            completer.setCompletionMode(QCompleter.CompletionMode.PopupCompletion)
        box.activated.connect(self._take_other)
        box.hide()
        return box

    def _take_other(self, at: int) -> None:
        self.others.hide()
        self._show_if_filled()
        self.prior_wanted.emit(self.others.itemText(at))

    def _open_menu(self) -> None:
        self._fill_menu()
        _open_below(self.menu, self.choose)

    def _fill_menu(self) -> None:
        self.menu.clear()
        plan = self._plan
        if plan is None:
            return
        for step in plan.steps:
            action = self.menu.addAction(tr(step.words))
            action.triggered.connect(lambda _on=False, s=step: self.shown_wanted.emit(s))
        for step, why in plan.left_out:
            action = self.menu.addAction(f"{tr(step.words)} ({why.split(':')[0]})")
            action.setToolTip(why)
            action.setEnabled(False)
        self.menu.addSection(tr("Show"))
        for step in HangingStep:
            action = self.menu.addAction(tr(step.words))
            action.setCheckable(True)
            action.setChecked(step not in self._unwanted)
            action.toggled.connect(lambda wanted, s=step: self.chosen.emit(s, wanted))

    def _open_priors(self) -> None:
        self.priors.clear()
        for prior in self._priors:
            action = self.priors.addAction(f"{prior.case_id} ({prior.why})")
            name = prior.case_id
            action.triggered.connect(lambda _on=False, n=name: self.prior_wanted.emit(n))
        other = self.priors.addAction(tr("Another exam of this data set…"))
        other.triggered.connect(lambda _on=False: self.others_wanted.emit())
        _open_below(self.priors, self.prior)


def _open_below(menu: QMenu, sign: QToolButton) -> None:
    menu.popup(sign.mapToGlobal(sign.rect().bottomLeft()))
