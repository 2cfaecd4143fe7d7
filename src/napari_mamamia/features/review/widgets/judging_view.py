"""The adjudication view: the queue, a case's readings in two colours, and differences."""

from collections.abc import Sequence

from qtpy.QtCore import Qt, Signal
from qtpy.QtWidgets import (
    QComboBox,
    QLabel,
    QListWidgetItem,
    QPushButton,
    QWidget,
)

from napari_mamamia.core.texts import tr, tr_n
from napari_mamamia.features.review.core.review import ConsensusRule
from napari_mamamia.features.review.rules.states import CaseState
from napari_mamamia.features.review.services import judging
from napari_mamamia.features.review.services.client import DisputeRow, StudySnapshot
from napari_mamamia.features.review.widgets import judging_texts
from napari_mamamia.widgets.base.layers import Role
from napari_mamamia.widgets.controls.colours import MASK_COLOURS
from napari_mamamia.widgets.controls.controls import (
    button,
    column,
    fill_column,
    heading,
    label,
    line,
    row,
    set_level,
)
from napari_mamamia.widgets.controls.fields import combo_box, line_edit
from napari_mamamia.widgets.controls.line_list import make_line_list
from napari_mamamia.widgets.controls.page_area import ALL, PageArea
from napari_mamamia.widgets.controls.revealing import reveal

_RULE_TEXTS = {
    ConsensusRule.UNION: (tr("Union"), tr("Voxels in any reading.")),
    ConsensusRule.INTERSECTION: (tr("Intersection"), tr("Voxels in all readings.")),
    ConsensusRule.MAJORITY_BACKGROUND: (
        tr("Majority"),
        tr("Voxels in more than half of the readings."),
    ),
    ConsensusRule.STAPLE: (
        "STAPLE",
        tr("Voxels of the most likely true mask, which STAPLE estimates from all readings."),
    ),
}


class JudgingView(QWidget):
    """The adjudication view.

    Signals: `case_wanted` carries the key of a case to open, `pair_wanted` the indices of two
    readings, `difference_wanted` a step of +1 or -1, and `lesion_wanted` an index in the list of
    lesions. `rule_wanted` and `reading_wanted` carry the consensus rule or the reading to copy into
    the adjudicator's mask. `decision_wanted` carries a reason and the index of the reading whose
    answers are used, and `leaving_out_wanted` a reason. `acceptance_wanted` carries the key of a
    case in agreement, and `reopening_wanted` a key and a reason.
    """

    case_wanted = Signal(str)
    pair_wanted = Signal(int, int)
    order_wanted = Signal(bool)
    difference_wanted = Signal(int)
    lesion_wanted = Signal(int)
    reading_wanted = Signal(int)
    rule_wanted = Signal(object)
    decision_wanted = Signal(str, int)
    leaving_out_wanted = Signal(str)
    set_down_wanted = Signal()
    acceptance_wanted = Signal(str)
    reopening_wanted = Signal(str, str)

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("review_judging")
        self._rules: dict[ConsensusRule, QPushButton] = {}
        fill_column(
            self,
            self._make_queue(),
            self._make_ended(),
            (self._make_case(), ALL),
            1,
            margins=(0, 4, 0, 0),
        )
        self.show_dispute(None)

    # -------------------------------------------------------------------- making

    def _make_queue(self) -> QWidget:
        self.queue = make_line_list(
            "review_disputes",
            tr("Cases waiting for adjudication, lowest Dice first."),
        )
        self.queue.itemActivated.connect(lambda _item: self._take_up())
        self.queue.currentItemChanged.connect(lambda _now, _before: self._follow_choice())
        self.take_up = button(
            "review_take_up",
            tr("Open case"),
            tr("Reserves this case for you and shows its readings."),
            self._take_up,
            primary=True,
        )
        self.accept = button(
            "review_accept_case",
            tr("Accept unseen"),
            tr("Accepts the last reading of a case without looking at it if the readings agree."),
            self._want_acceptance,
        )
        self.nothing = label("review_no_dispute", tip=tr("Number and order of the waiting cases"))
        self._queue = column(self.nothing, self.queue, row(self.take_up, self.accept, 1))
        return self._queue

    def _make_case(self) -> QWidget:
        self.case = label("review_disputed", tip=tr("The open case"))
        self.case.setProperty("heading", True)
        self.because = label("review_because", tip=tr("Reasons for disagreement"))
        self.legend = label("review_legend", tip=tr("Colours and volumes of the readings"))
        self.first = self._make_chooser("review_first", tr("Reading outlined in sky blue"))
        self.second = self._make_chooser("review_second", tr("Reading outlined in orange"))
        self._pair = row(QLabel(tr("Show")), self.first, QLabel(tr("and")), self.second)
        self.choice = label("review_choice", tip=tr("Origin of your mask for this case"))
        self.note = label("review_judge_note", tip=tr("Why an action is not possible"))
        set_level(self.note, "warning")
        details = column(
            self.case,
            self.because,
            self.legend,
            self._pair,
            line(),
            self._make_lesions(),
            self._make_differences(),
            line(),
            heading(tr("Your mask")),
            self._make_takes(),
            self.choice,
        )
        # Below the scroll area, which fills the page: the decision is visible on a low screen and
        # keeps its place while the case loads, or when a note appears above it.
        area = PageArea(details, "review_judge_scroll", is_part=True)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._case = column(area, line(), self.note, self._make_decision())
        self._case.layout().setStretch(0, ALL)
        return self._case

    def _make_chooser(self, name: str, tip: str) -> QComboBox:
        chooser = combo_box(name, tip)
        chooser.activated.connect(
            lambda _at: self.pair_wanted.emit(self.first.currentIndex(), self.second.currentIndex())
        )
        return chooser

    def _make_lesions(self) -> QWidget:
        self.lesions_told = label(
            "review_lesions_told", tip=tr("Lesions of both readers and of one reader only")
        )
        self.lesions = make_line_list(
            "review_lesions",
            tr(
                "The lesions of both readings with their numbers. Click a line to go to the lesion."
            ),
        )
        self.lesions.currentRowChanged.connect(self.lesion_wanted.emit)
        return column(self.lesions_told, self.lesions)

    def _make_differences(self) -> QWidget:
        self.order = combo_box("review_order", tr("Sorts differences by volume or by distance."))
        self.order.addItem(tr("by volume"), False)
        self.order.addItem(tr("by distance"), True)
        self.order.activated.connect(lambda _at: self.order_wanted.emit(self.order.currentData()))
        self.next = button(
            "review_next_difference",
            tr("Next difference"),
            tr("Goes to the next region that only one of the readings contains."),
            lambda: self.difference_wanted.emit(1),
        )
        self.previous = button(
            "review_previous_difference",
            "◀",
            tr("Goes to the previous difference."),
            lambda: self.difference_wanted.emit(-1),
        )
        self.difference = label("review_difference", tip=tr("The current difference"))
        return column(row(self.previous, self.next, self.order, 1), self.difference)

    def _make_takes(self) -> QWidget:
        self.take_first = button(
            "review_take_first",
            tr("Copy A"),
            tr("Copies the sky blue reading into your mask. Undo reverts this."),
            lambda: self.reading_wanted.emit(self.first.currentIndex()),
        )
        self.take_second = button(
            "review_take_second",
            tr("Copy B"),
            tr("Copies the orange reading into your mask. Undo reverts this."),
            lambda: self.reading_wanted.emit(self.second.currentIndex()),
        )
        for rule in judging.RULES:
            text, tip = _RULE_TEXTS[rule]
            self._rules[rule] = self._make_rule(rule, text, tip)
        union, intersection, majority, staple = (self._rules[rule] for rule in judging.RULES)
        return column(
            row(union, intersection, 1),
            row(majority, staple, 1),
        )

    def _make_rule(self, rule: ConsensusRule, text: str, tip: str) -> QPushButton:
        return button(f"review_{rule}", text, tip, lambda: self.rule_wanted.emit(rule))

    def _make_decision(self) -> QWidget:
        self.answers = combo_box(
            "review_answers_of", tr("Reading whose answers belong to the decision")
        )
        self._answers_line = row(QLabel(tr("Source of answers")), self.answers, 1)
        self.reason = line_edit(
            "review_decision_reason",
            tr("Reason for the decision. It is stored with the decision."),
            tr("reason (required)"),
        )
        self.reason.textEdited.connect(lambda _text: self.say(""))
        self.decide = button(
            "review_decide",
            tr("Decide"),
            tr("Accepts your mask for this case, with this reason."),
            lambda: self.decision_wanted.emit(self.reason.text(), self.answers.currentIndex()),
            primary=True,
        )
        self.leave_out = button(
            "review_leave_out",
            tr("Reject case"),
            tr("Rejects the case with this reason. It is not read again."),
            lambda: self.leaving_out_wanted.emit(self.reason.text()),
        )
        self.set_down = button(
            "review_set_down",
            tr("Return to queue"),
            tr("Leaves the case to another adjudicator. Your drawing stays on this computer."),
            self.set_down_wanted.emit,
        )
        buttons = row(self.decide, self.leave_out, self.set_down, 1)
        takes = row(self.take_first, self.take_second, 1)
        # Stretched above: until Qt lays out a hidden line anew, the buttons stay at the bottom.
        return column(1, takes, self._answers_line, self.reason, buttons)

    def _make_ended(self) -> QWidget:
        self.ended = label("review_ended", tip=tr("The decision on this case"))
        self.why_again = line_edit(
            "review_reopen_reason",
            tr("Reason for reading the case again. It is stored with the case."),
            tr("reason for reading again"),
            on_return=self._want_reopening,
        )
        self.reopen = button(
            "review_reopen_case",
            tr("Reopen case"),
            tr("Begins a new round in which everybody reads the case again. The decision is kept."),
            self._want_reopening,
        )
        self._ended = column(self.ended, row(self.why_again, self.reopen))
        return self._ended

    # ------------------------------------------------------------- for the flow

    def show_look(self, look: StudySnapshot, ended: Sequence[DisputeRow] = ()) -> None:
        """Show the queue, followed by the decided cases; the selection is kept.

        If the selected case has been decided in the meantime, the first waiting case is selected.
        """
        rows = (*look.disputes, *ended)
        texts = [judging_texts.describe_row(row) for row in rows]
        before = [self.queue.item(k).text() for k in range(self.queue.count())]
        if before != texts:
            chosen = self.chosen
            self.queue.clear()
            for one, text in zip(rows, texts, strict=True):
                item = QListWidgetItem(text)
                item.setData(Qt.ItemDataRole.UserRole, one)
                item.setToolTip(text)
                self.queue.addItem(item)
                if chosen is not None and (one.case, one.state in judging_texts.ENDS) == (
                    chosen.case,
                    chosen.state in judging_texts.ENDS,
                ):
                    self.queue.setCurrentItem(item)
            if self.queue.currentItem() is None and rows:
                self.queue.setCurrentRow(0)
            reveal(self.take_up)
        self.queue.fit()
        self.nothing.setText(judging_texts.describe_queue(rows))
        self.queue.setVisible(bool(rows))
        self._follow_choice()

    @property
    def chosen(self) -> DisputeRow | None:
        """Return the selected case, or None."""
        item = self.queue.currentItem()
        return None if item is None else item.data(Qt.ItemDataRole.UserRole)

    def show_dispute(self, dispute: judging.Dispute | None, *, is_busy: bool = False) -> None:
        """Show an open case instead of the queue; if `dispute` is None, show the queue again."""
        self._queue.setVisible(dispute is None)
        self._case.setVisible(dispute is not None)
        self._queue.setEnabled(not is_busy)
        self._case.setEnabled(not is_busy)
        self.note.hide()
        if dispute is None:
            self.reason.clear()
            self._follow_choice()
            reveal(self.take_up)
            return
        reveal(self.decide)
        self._ended.hide()
        self.case.setText(dispute.case_id)
        self.because.setText("; ".join(dispute.because) or tr("The readings agree."))
        for rule, control in self._rules.items():
            why = dispute.why_not(rule)
            control.setEnabled(not why)
            tip = _RULE_TEXTS[rule][1]
            control.setToolTip(f"{tip}: {why}" if why else tr("{tip} Undo reverts this.", tip=tip))

    def show_readings(self, dispute: judging.Dispute) -> None:
        """Fill the lists with the readings of a newly opened case."""
        names = [reading.name for reading in dispute.readings]
        for chooser, index in ((self.first, 0), (self.second, 1), (self.answers, 0)):
            chooser.clear()
            chooser.addItems(names)
            chooser.setCurrentIndex(min(index, len(names) - 1))
        self._pair.setVisible(len(names) > 2)
        self._answers_line.setVisible(
            len({reading.reading.answers for reading in dispute.readings}) > 1
        )
        self.take_second.setEnabled(len(names) > 1)
        self.show_choice("")

    def show_pair(self, first: judging.ShownReading, second: judging.ShownReading | None) -> None:
        """Show which colour stands for which reading."""
        pairs = [(Role.READING_A, first), *([(Role.READING_B, second)] if second else [])]
        self.legend.setText(
            "<br>".join(
                f'<span style="color:{MASK_COLOURS[role]}">■</span> {one.name}: '
                + (
                    tr("{volume_ml:.2f} ml", volume_ml=one.volume_ml)
                    if one.labels is not None
                    else tr("nothing drawn")
                )
                for role, one in pairs
            )
        )
        self.take_first.setText(tr("Copy {name}", name=first.name))
        self.take_second.setText(tr("Copy {name}", name=second.name) if second else tr("Copy B"))

    def show_lesions(self, table: judging.LesionTable | None) -> None:
        """List the lesions of the two displayed readings; None if the case has one reading."""
        first, second = self.first.currentText(), self.second.currentText()
        self.lesions.blockSignals(True)
        self.lesions.clear()
        for one in table.rows if table is not None else ():
            item = QListWidgetItem(judging_texts.describe_lesion(one, first, second))
            item.setToolTip(item.text())
            self.lesions.addItem(item)
        self.lesions.setCurrentRow(-1)
        self.lesions.blockSignals(False)
        self.lesions.setVisible(self.lesions.count() > 0)
        self.lesions.fit()
        self.lesions_told.setText(
            "" if table is None else judging_texts.describe_lesions(table, first, second)
        )
        self.lesions_told.setVisible(table is not None)

    def show_difference(self, part: judging.Difference | None, at: int, n_parts: int) -> None:
        """Describe the displayed difference; `part` is None if there is none."""
        for control in (self.next, self.previous):
            control.setEnabled(n_parts > 0)
        if not n_parts:
            self.difference.setText(tr("The two masks have the same voxels."))
        elif part is None:
            self.difference.setText(
                tr_n(
                    "{n} difference",
                    "{n} differences",
                    n_parts,
                )
            )
        else:
            first, second = self.first.currentText(), self.second.currentText()
            whose, other = (first, second) if part.is_in_first else (second, first)
            self.difference.setText(
                tr(
                    "{at} of {n_parts}: only in {whose}, {volume:.2f} ml, ",
                    at=at + 1,
                    n_parts=n_parts,
                    whose=whose,
                    volume=part.volume_mm3 / judging_texts.MM3_PER_ML,
                )
                + (
                    tr(
                        "up to {distance_mm:.1f} mm from {other}",
                        distance_mm=part.distance_mm,
                        other=other,
                    )
                    if part.distance_mm == part.distance_mm
                    else tr("{other} is empty", other=other)
                )
            )

    def show_choice(self, text: str) -> None:
        """Show the source of the adjudicator's mask."""
        self.choice.setText(text or tr("Copy a reading, or draw on the Refine page."))

    def say(self, text: str) -> None:
        """Show why an action is not possible."""
        self.note.setText(text)
        self.note.setVisible(bool(text))

    def ask_reason(self) -> None:
        """Ask for the reason for a decision, and put the cursor into the field."""
        self.say(judging_texts.NO_REASON)
        self.reason.setFocus()

    # -------------------------------------------------------------------- inner

    def _take_up(self) -> None:
        chosen = self.chosen
        if chosen is not None and chosen.state not in judging_texts.ENDS:
            self.case_wanted.emit(chosen.case)

    def _want_acceptance(self) -> None:
        chosen = self.chosen
        if chosen is not None:
            self.acceptance_wanted.emit(chosen.case)

    def _want_reopening(self) -> None:
        chosen = self.chosen
        if chosen is not None:
            self.reopening_wanted.emit(chosen.case, self.why_again.text())

    def _follow_choice(self) -> None:
        chosen = self.chosen
        is_decided = chosen is not None and chosen.state in judging_texts.ENDS
        agrees = chosen is not None and chosen.state is CaseState.READ and not chosen.because
        self.take_up.setEnabled(chosen is not None and not is_decided)
        self.take_up.setVisible(not is_decided)
        self.accept.setVisible(agrees)
        self._ended.setVisible(is_decided and not self._queue.isHidden())
        if chosen is not None and is_decided:
            self.ended.setText(
                tr(
                    "{row}. Sign it on the Sign tab. To change it, give a reason and reopen it.",
                    row=judging_texts.describe_row(chosen),
                )
            )
