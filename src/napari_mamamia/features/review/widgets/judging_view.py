"""What a judge sees: what waits, a case's readings in two colours, what they differ in."""

from collections.abc import Sequence

from qtpy.QtCore import Qt, Signal
from qtpy.QtWidgets import (
    QComboBox,
    QLabel,
    QLineEdit,
    QListWidgetItem,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from napari_mamamia.core.texts import tr, tr_n
from napari_mamamia.features.review.core.review import ConsensusRule
from napari_mamamia.features.review.rules.states import CaseState
from napari_mamamia.features.review.services.client_records import DisputeRow, StudySnapshot
from napari_mamamia.features.review.services.judging import RULES, Difference, Dispute, ShownReading
from napari_mamamia.features.review.services.lesion_rows import LesionTable
from napari_mamamia.features.review.widgets.judging_texts import (
    ENDS,
    MM3_PER_ML,
    describe_lesion,
    describe_lesions,
    describe_queue,
    describe_row,
)
from napari_mamamia.widgets.base.layers import Role
from napari_mamamia.widgets.controls.colours import MASK_COLOURS
from napari_mamamia.widgets.controls.controls import (
    button,
    column,
    heading,
    label,
    line,
    named,
    row,
    set_level,
)
from napari_mamamia.widgets.controls.line_list import make_line_list

_RULE_TEXTS = {
    ConsensusRule.UNION: (tr("Union"), tr("What any reading has")),
    ConsensusRule.INTERSECTION: (tr("Intersection"), tr("What all readings have")),
    ConsensusRule.MAJORITY_BACKGROUND: (
        tr("Majority"),
        tr("What more than half of the readings have"),
    ),
    ConsensusRule.STAPLE: ("STAPLE", tr("The truth as STAPLE estimates it from all readings")),
}


class JudgingView(QWidget):
    """`case_wanted` carries the key of a case to take up, `pair_wanted` which two are shown.

    `difference_wanted` is a step on, +1 or -1, `lesion_wanted` a line of the lesions; `rule_wanted`
    and `reading_wanted` carry what is laid over the judge's mask; `decision_wanted` (reason, whose
    answers), `leaving_out_wanted` a reason; `acceptance_wanted` the key of a case that agrees,
    `reopening_wanted` (key, reason).
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
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 4, 0, 0)
        layout.addWidget(self._make_queue())
        layout.addWidget(self._make_ended())
        layout.addWidget(self._make_case())
        layout.addStretch(1)
        self.show_dispute(None)

    # -------------------------------------------------------------------- making

    def _make_queue(self) -> QWidget:
        self.queue = make_line_list(
            "review_disputes",
            tr("What waits for a judge: what disagrees first, the lowest Dice on top"),
        )
        self.queue.itemActivated.connect(lambda _item: self._take_up())
        self.queue.currentItemChanged.connect(lambda _now, _before: self._follow_choice())
        self.take_up = button(
            "review_take_up",
            tr("Take up"),
            tr("Takes this case, so that no other judge does, and shows its readings"),
            self._take_up,
            primary=True,
        )
        self.accept = button(
            "review_accept_case",
            tr("Accept unseen"),
            tr("Accepts a case whose readings agree, as its last reading has it, without a look"),
            self._want_acceptance,
        )
        self.nothing = label(
            "review_no_dispute", tip=tr("What waits for a judge, and in what order")
        )
        self._queue = column(self.nothing, self.queue, row(self.take_up, self.accept, 1))
        return self._queue

    def _make_case(self) -> QWidget:
        self.case = label("review_disputed", tip=tr("The case that you have taken up"))
        self.case.setProperty("heading", True)
        self.because = label("review_because", tip=tr("In what the readings disagree"))
        self.legend = label(
            "review_legend", tip=tr("Whose outline has which colour, and its volume")
        )
        self.first = self._make_chooser("review_first", tr("Whose outline is sky blue"))
        self.second = self._make_chooser("review_second", tr("Whose outline is orange"))
        self._pair = row(QLabel(tr("Show")), self.first, QLabel(tr("and")), self.second)
        self.choice = label("review_choice", tip=tr("How your own mask of this case came about"))
        self.note = label("review_judge_note", tip=tr("What cannot be done now, and why"))
        set_level(self.note, "warning")
        self._case = column(
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
            line(),
            self._make_decision(),
            self.note,
        )
        return self._case

    def _make_chooser(self, name: str, tip: str) -> QComboBox:
        chooser: QComboBox = named(QComboBox(), name, tip)
        chooser.activated.connect(
            lambda _at: self.pair_wanted.emit(self.first.currentIndex(), self.second.currentIndex())
        )
        return chooser

    def _make_lesions(self) -> QWidget:
        """Return the lesions of both readings, side by side: a line goes to one."""
        self.lesions_told = label(
            "review_lesions_told", tip=tr("Which lesions both readings have, and which one alone")
        )
        self.lesions = make_line_list(
            "review_lesions",
            tr("The lesions of both readings, with the number of each; a line goes there"),
        )
        self.lesions.currentRowChanged.connect(self.lesion_wanted.emit)
        return column(self.lesions_told, self.lesions)

    def _make_differences(self) -> QWidget:
        self.order: QComboBox = named(
            QComboBox(),
            "review_order",
            tr("Which difference comes first: the largest or the farthest"),
        )
        self.order.addItem(tr("by volume"), False)
        self.order.addItem(tr("by distance"), True)
        self.order.activated.connect(lambda _at: self.order_wanted.emit(self.order.currentData()))
        self.next = button(
            "review_next_difference",
            tr("Next difference"),
            tr("Goes to the next place that one reading has and the other has not"),
            lambda: self.difference_wanted.emit(1),
        )
        self.previous = button(
            "review_previous_difference",
            "◀",
            tr("Goes to the difference before"),
            lambda: self.difference_wanted.emit(-1),
        )
        self.difference = label("review_difference", tip=tr("The difference on screen"))
        return column(row(self.previous, self.next, self.order, 1), self.difference)

    def _make_takes(self) -> QWidget:
        self.take_first = button(
            "review_take_first",
            tr("Take A"),
            tr("Lays the sky blue reading over your mask; Undo takes it back"),
            lambda: self.reading_wanted.emit(self.first.currentIndex()),
        )
        self.take_second = button(
            "review_take_second",
            tr("Take B"),
            tr("Lays the orange reading over your mask; Undo takes it back"),
            lambda: self.reading_wanted.emit(self.second.currentIndex()),
        )
        for rule in RULES:
            text, tip = _RULE_TEXTS[rule]
            self._rules[rule] = self._make_rule(rule, text, tip)
        union, intersection, majority, staple = (self._rules[rule] for rule in RULES)
        return column(
            row(self.take_first, self.take_second, 1),
            row(union, intersection, 1),
            row(majority, staple, 1),
        )

    def _make_rule(self, rule: ConsensusRule, text: str, tip: str) -> QPushButton:
        return button(f"review_{rule}", text, tip, lambda: self.rule_wanted.emit(rule))

    def _make_decision(self) -> QWidget:
        self.answers: QComboBox = named(
            QComboBox(), "review_answers_of", tr("Whose answers go with the decision")
        )
        self._answers_line = row(QLabel(tr("Answers of")), self.answers, 1)
        self.reason: QLineEdit = named(
            QLineEdit(),
            "review_decision_reason",
            tr("Why you decide so; it is kept with the decision"),
        )
        self.reason.setPlaceholderText(tr("why"))
        self.reason.textEdited.connect(lambda _text: self.say(""))
        self.decide = button(
            "review_decide",
            tr("Decide"),
            tr("Your mask becomes the accepted one of this case, with this reason"),
            lambda: self.decision_wanted.emit(self.reason.text(), self.answers.currentIndex()),
            primary=True,
        )
        self.leave_out = button(
            "review_leave_out",
            tr("Leave out"),
            tr("Rejects the case, with this reason: nobody reads it any more"),
            lambda: self.leaving_out_wanted.emit(self.reason.text()),
        )
        self.set_down = button(
            "review_set_down",
            tr("Set down"),
            tr("Leaves the case to another judge; what you drew stays on this computer"),
            self.set_down_wanted.emit,
        )
        buttons = row(self.decide, self.leave_out, self.set_down, 1)
        return column(self._answers_line, self.reason, buttons)

    def _make_ended(self) -> QWidget:
        """Return what can be done with a case that is decided: it is reopened, never deleted."""
        self.ended = label("review_ended", tip=tr("What was decided about this case"))
        self.why_again: QLineEdit = named(
            QLineEdit(),
            "review_reopen_reason",
            tr("Why it is read again; it is kept with the case"),
        )
        self.why_again.setPlaceholderText(tr("why it is read again"))
        self.why_again.returnPressed.connect(self._want_reopening)
        self.reopen = button(
            "review_reopen_case",
            tr("Reopen"),
            tr("Begins a new round: everybody reads it again; what was decided is kept"),
            self._want_reopening,
        )
        self._ended = column(self.ended, row(self.why_again, self.reopen))
        return self._ended

    # ------------------------------------------------------------- for the flow

    def show_look(self, look: StudySnapshot, ended: Sequence[DisputeRow] = ()) -> None:
        """Show what waits, then what is decided; the line that is chosen stays."""
        rows = (*look.disputes, *ended)
        texts = [describe_row(one) for one in rows]
        before = [self.queue.item(k).text() for k in range(self.queue.count())]
        if before != texts:
            chosen = self.chosen
            self.queue.clear()
            for one, text in zip(rows, texts, strict=True):
                item = QListWidgetItem(text)
                item.setData(Qt.ItemDataRole.UserRole, one)
                item.setToolTip(text)
                self.queue.addItem(item)
                if chosen is not None and one.case == chosen.case:
                    self.queue.setCurrentItem(item)
            if self.queue.currentItem() is None and rows:
                self.queue.setCurrentRow(0)
        self.queue.fit()
        self.nothing.setText(describe_queue(rows))
        self.queue.setVisible(bool(rows))
        self._follow_choice()

    @property
    def chosen(self) -> DisputeRow | None:
        """The line that is chosen."""
        item = self.queue.currentItem()
        return None if item is None else item.data(Qt.ItemDataRole.UserRole)

    def show_dispute(self, dispute: Dispute | None, *, is_busy: bool = False) -> None:
        """Show a case that was taken up, in place of what waits; None goes back to that."""
        self._queue.setVisible(dispute is None)
        self._case.setVisible(dispute is not None)
        self._queue.setEnabled(not is_busy)
        self._case.setEnabled(not is_busy)
        self.note.hide()
        if dispute is None:
            self.reason.clear()
            self._follow_choice()
            return
        self._ended.hide()
        self.case.setText(dispute.case_id)
        self.because.setText("; ".join(dispute.because) or tr("The readings agree."))
        for rule, control in self._rules.items():
            why = dispute.why_not(rule)
            control.setEnabled(not why)
            tip = _RULE_TEXTS[rule][1]
            control.setToolTip(f"{tip}: {why}" if why else tr("{tip}; Undo takes it back", tip=tip))

    def show_readings(self, dispute: Dispute) -> None:
        """Offer the readings of a case that was just taken up."""
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

    def show_pair(self, first: ShownReading, second: ShownReading | None) -> None:
        """Say whose outline has which colour."""
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
        self.take_first.setText(tr("Take {name}", name=first.name))
        self.take_second.setText(tr("Take {name}", name=second.name) if second else tr("Take B"))

    def show_lesions(self, table: LesionTable | None) -> None:
        """List the lesions of the two readings that are shown; None where there are not two."""
        first, second = self.first.currentText(), self.second.currentText()
        self.lesions.blockSignals(True)
        self.lesions.clear()
        for one in table.rows if table is not None else ():
            item = QListWidgetItem(describe_lesion(one, first, second))
            item.setToolTip(item.text())
            self.lesions.addItem(item)
        self.lesions.setCurrentRow(-1)
        self.lesions.blockSignals(False)
        self.lesions.setVisible(self.lesions.count() > 0)
        self.lesions.fit()
        self.lesions_told.setText("" if table is None else describe_lesions(table, first, second))
        self.lesions_told.setVisible(table is not None)

    def show_difference(self, part: Difference | None, at: int, n_parts: int) -> None:
        """Describe the difference on screen; None where there is none."""
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
                    "{at} of {n_parts}: {whose} alone, {volume:.2f} ml, ",
                    at=at + 1,
                    n_parts=n_parts,
                    whose=whose,
                    volume=part.volume_mm3 / MM3_PER_ML,
                )
                + (
                    tr(
                        "up to {distance_mm:.1f} mm from {other}",
                        distance_mm=part.distance_mm,
                        other=other,
                    )
                    if part.distance_mm == part.distance_mm
                    else tr("{other} has nothing", other=other)
                )
            )

    def show_choice(self, text: str) -> None:
        """Say what was laid over the judge's mask."""
        self.choice.setText(text or tr("Take one, or draw on page Refine."))

    def say(self, text: str) -> None:
        """Say what cannot be done now."""
        self.note.setText(text)
        self.note.setVisible(bool(text))

    # -------------------------------------------------------------------- inner

    def _take_up(self) -> None:
        chosen = self.chosen
        if chosen is not None and chosen.state not in ENDS:
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
        """Offer to take a case up, to accept what agrees, or to reopen what is decided."""
        chosen = self.chosen
        is_decided = chosen is not None and chosen.state in ENDS
        agrees = chosen is not None and chosen.state is CaseState.READ and not chosen.because
        self.take_up.setEnabled(chosen is not None and not is_decided)
        self.take_up.setVisible(not is_decided)
        self.accept.setVisible(agrees)
        self._ended.setVisible(is_decided and not self._queue.isHidden())
        if chosen is not None and is_decided:
            self.ended.setText(
                tr(
                    "{row}. Sign it on tab Sign; to change it, say why and reopen it.",
                    row=describe_row(chosen),
                )
            )
