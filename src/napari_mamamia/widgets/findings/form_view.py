"""Widget for the questions of a form: one control per line, optional questions collapsed."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from qtpy.QtCore import Qt, Signal
from qtpy.QtGui import QShowEvent
from qtpy.QtWidgets import QComboBox, QLabel, QSizePolicy, QVBoxLayout, QWidget

from napari_mamamia.core.answers import (
    NOTHING_KNOWN,
    WHOLE_CASE,
    Answer,
    Answers,
    CaseFacts,
    Place,
)
from napari_mamamia.core.form import FieldKind, FieldScope, Form
from napari_mamamia.core.texts import tr
from napari_mamamia.findings.form_rules import (
    AskedQuestion,
    fill_computed,
    list_questions,
)
from napari_mamamia.findings.form_values import parse_answers, record_answers
from napari_mamamia.findings.lesion_numbers import keep_anchors
from napari_mamamia.findings.shown_numbers import read_number
from napari_mamamia.widgets.base.event_loop import EventLoopSteps
from napari_mamamia.widgets.controls.controls import (
    button,
    call_by,
    column,
    discard,
    heading,
    label,
    named,
    row,
    set_level,
)
from napari_mamamia.widgets.controls.fields import checkbox, line_edit
from napari_mamamia.widgets.controls.revealing import reveal
from napari_mamamia.widgets.controls.targets import CheckBox, ChoiceBox
from napari_mamamia.widgets.findings import form_texts
from napari_mamamia.widgets.findings.gaps import Gap, list_gaps

_NONE = "–"
_AUTO = tr("auto")
_OTHER_EDITION = tr("{} (not in this version)")


class FormView(QWidget):
    """A widget for the questions of a `Form`.

    The signal `answered` carries a changed answer, and `voxel_wanted` a voxel (z, y, x) of a lesion
    to show. `changed` reports that answers or questions changed, so that the missing answers may
    differ.

    After every answer, `reviewing.form_rules` decides which questions apply.

    Parameters
    ----------
    prefix
        Prefix of the object names of the form's controls.
    place
        The only place to ask about, or None to ask about all places. For a single place, only the
        questions that the reader must answer are visible, and all other questions are collapsed.
    """

    answered = Signal()
    changed = Signal()
    voxel_wanted = Signal(object)

    def __init__(self, prefix: str = "review", place: Place | None = None) -> None:
        super().__init__()
        self.setObjectName(f"{prefix}_form")
        self._prefix = prefix
        self._place = place
        self._is_unfolded = False
        self._autos: dict[tuple[str, Place], QLabel] = {}
        self._controls: dict[tuple[str, Place | None], QWidget] = {}
        self._form: Form | None = None
        self._answers = Answers()
        self._facts = NOTHING_KNOWN
        self._wrong: dict[tuple[str, Place], str] = {}
        self._drawn: list[tuple[str, Place]] = []
        self._measured: list[tuple[str, ...]] = []
        self._notes: dict[str, str] = {}
        self._parted: dict[str, str] = {}
        self._is_held = self._is_due = False
        self._later = EventLoopSteps(self)
        self._content = QWidget()
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.addWidget(self._content)
        self.warning = label(f"{prefix}_form_warning", tip=tr("Why an answer is invalid"))
        set_level(self.warning, "warning")
        self._layout.addWidget(self.warning)
        self._draw_anew()

    # ------------------------------------------------------------- for the flow

    def set_form(self, form: Form | None) -> None:
        """Set the form; None removes all questions."""
        self._form = form
        self.set_answers({})

    def set_answers(self, record: Mapping[str, Any]) -> None:
        """Show the answers of a reading's record."""
        self.show_answers(parse_answers(record), NOTHING_KNOWN)

    def show_answers(self, answers: Answers, facts: CaseFacts) -> None:
        """Show answers, and set the facts about the mask that are used to check the answers."""
        self._answers, self._facts, self._wrong, self._parted = answers, facts, {}, {}
        self._draw_anew()

    def show_findings(self, answers: Answers, facts: CaseFacts) -> None:
        """Show answers with new measurements without interrupting the user's typing."""
        self._answers, self._facts = answers, facts
        self._draw_if_new(self._list_measured())

    def show_place(self, place: Place) -> None:
        """Show the questions about another place."""
        self._place = place
        self._draw_anew()

    def give(self, answer: Answer) -> None:
        """Set an answer from outside the form, for example from a shortcut."""
        self._wrong.pop((answer.field, answer.place), None)
        self._answers = self._answers.put(answer)
        self._draw_anew()
        self.answered.emit()

    def set_facts(self, facts: CaseFacts) -> None:
        """Set the facts about the mask, which determine the lesions and the computed answers."""
        if self._form is not None and facts != self._facts:
            self._facts = facts
            self._parted |= dict(facts.parted)
            answers = fill_computed(self._form, self._answers, facts)
            self._answers = replace(answers, anchors=keep_anchors(answers, facts))
            self._draw_if_new(self._list_measured())

    @contextmanager
    def drawn_once(self) -> Iterator[None]:
        """Redraw once when the context exits, even if place and answers change several times."""
        self._is_held = True
        try:
            yield
        finally:
            self._is_held = False
            if self._is_due:
                self._draw_anew()

    def showEvent(self, event: QShowEvent) -> None:
        """Draw questions that changed while the widget was hidden."""
        super().showEvent(event)
        self._make_content()

    @property
    def asks_lesions(self) -> bool:
        """Return whether the form has questions about lesions."""
        return self._form is not None and bool(self._form.of_scope(FieldScope.LESION))

    @property
    def current(self) -> Answers:
        """Return the answers, including computed answers."""
        return self._answers

    @property
    def answers(self) -> dict[str, Any]:
        """Return the answers in the format of a reading's record."""
        if self._form is None or not self._answers.items:
            return {}
        return record_answers(self._form, self._answers)

    def list_gaps(self) -> tuple[Gap, ...]:
        """Return missing, invalid and contradictory answers."""
        if self._form is None:
            return ()
        wrong = {where: self._wrong[where] for where in self._list_wrong()}
        return list_gaps(self._form, self._answers, self._facts, wrong)

    def show_gap(self, gap: Gap) -> None:
        """Focus the question of a gap and expand its section, if this form shows the question."""
        where = (gap.field, gap.place)
        asked = [one for one in self._list_asked() if (one.field.id, one.place) == where]
        if not self._is_unfolded and any(map(self._is_folded, asked)):
            self._is_unfolded = True
            self._draw_anew()
        control = self._controls.get(where)
        if control is not None:
            control.setFocus(Qt.FocusReason.TabFocusReason)
            reveal(control)

    # ------------------------------------------------------------------- drawing

    def _list_asked(self) -> tuple[AskedQuestion, ...]:
        if self._form is None:
            return ()
        questions = list_questions(self._form, self._answers, self._facts)
        return tuple(question for question in questions if self._place in (None, question.place))

    def _list_measured(self) -> list[tuple[str, ...]]:
        answers = (one.answer for one in self._list_asked())
        return [
            answer.values if answer is not None and answer.is_computed else () for answer in answers
        ]

    def _draw_if_new(self, measured: list[tuple[str, ...]] | None = None) -> None:
        """Redraw if different questions apply or computed answers changed.

        An entered answer alone does not redraw the controls, so that typing is not interrupted.
        """
        asked = [(one.field.id, one.place) for one in self._list_asked()]
        is_same = (
            asked == self._drawn
            and form_texts.list_lesion_notes(self._answers, self._facts, self._parted)
            == self._notes
        )
        if not is_same or measured not in (None, self._measured):
            self._draw_anew()
        else:
            self._end_change()

    def _draw_anew(self) -> None:
        """Redraw the questions, which takes 12 ms; a hidden form is redrawn when it is shown."""
        self._is_due = True
        if self._is_held:
            return
        asked = self._list_asked()
        self._notes = form_texts.list_lesion_notes(self._answers, self._facts, self._parted)
        self._drawn = [(one.field.id, one.place) for one in asked]
        self._measured = self._list_measured()
        if self.window().isVisible() and not self.isVisible():
            self._autos, self._controls = {}, {}
            self._replace_content(QWidget())
            self._end_change()
            self._later.start([self._make_content])
        else:
            self._make_content()

    def _replace_content(self, fresh: QWidget) -> None:
        self._layout.replaceWidget(self._content, fresh)
        discard(self._content)
        self._content = fresh

    def _make_content(self) -> None:
        if not self._is_due:
            return
        self._is_due = False
        focus = self.focusWidget()
        with_keyboard = focus.objectName() if focus is not None and focus.hasFocus() else ""
        asked = self._list_asked()
        folded = [one for one in asked if self._is_folded(one)]
        self._autos, self._controls = {}, {}
        parts: list[QWidget | int] = []
        place = WHOLE_CASE if self._place is None else self._place
        for one in asked:
            if one.place != place:
                place = one.place
                parts.append(self._make_head(place))
            if one not in folded:
                parts.append(self._make_question(one))
        if self._place is None:
            places = {one.place for one in asked}
            lost = [Place(FieldScope.LESION, name) for name, text in self._notes.items() if text]
            parts += [self._make_head(one) for one in lost if one not in places]
        if folded:
            parts.append(self._make_fold(folded))
        fresh = column(*parts)
        fresh.layout().setSpacing(4)
        self._replace_content(fresh)
        self._end_change()
        control = fresh.findChild(QWidget, with_keyboard) if with_keyboard else None
        if control is not None:
            control.setFocus()

    def _make_head(self, place: Place) -> QWidget:
        title, name = heading(form_texts.name_place(place)), place.name
        if place.scope is not FieldScope.LESION or name not in self._notes:
            return title
        text = self._notes[name]
        note = label(f"{self._prefix}_lesion_note_{name}", text, tr("Note about this lesion"))
        set_level(note, "warning")
        lesion = self._facts.lesion(name)
        if lesion is not None:
            act = button(
                f"{self._prefix}_lesion_show_{name}",
                tr("Show"),
                tr("Goes to lesion {name} in the image.", name=name),
                lambda: self.voxel_wanted.emit(lesion.anchors[len(lesion.anchors) // 2]),
            )
        else:
            act = button(
                f"{self._prefix}_lesion_drop_{name}",
                tr("Remove answers"),
                tr("Removes all answers about lesion {name}.", name=name),
                lambda: self._drop_lesion(place),
            )
        both = column(row(title, 1, act), *([note] if text else []))
        both.layout().setSpacing(2)
        return both

    def _drop_lesion(self, place: Place) -> None:
        self._answers = self._answers.leave_out(place)
        self._wrong = {where: text for where, text in self._wrong.items() if where[1] != place}
        self._draw_anew()
        self.answered.emit()

    def _is_folded(self, question: AskedQuestion) -> bool:
        is_readers = question.field.measure is None and (
            question.is_required or bool(question.field.asked_if)
        )
        return self._place is not None and not is_readers

    def _make_fold(self, folded: list[AskedQuestion]) -> QWidget:
        texts = [
            form_texts.format_answer(one)
            for one in folded
            if one.answer is not None and one.answer.is_computed
        ]
        tip = tr("Filled in by the program: {computed}", computed=form_texts.COMPUTED)
        summary = label(f"{self._prefix}_form_auto", f"{_AUTO}: {' · '.join(texts)}", tip)
        rest = column(*(self._make_question(one) for one in folded))
        rest.layout().setSpacing(4)

        def turn() -> None:
            self._is_unfolded = not self._is_unfolded
            show()

        def show() -> None:
            rest.setVisible(self._is_unfolded)
            summary.setVisible(bool(texts) and not self._is_unfolded)
            sign = "▾" if self._is_unfolded else "▸"
            fold.setText(tr("{sign} {n_folded} more", sign=sign, n_folded=len(folded)))

        tip = tr("Shows or hides optional and computed answers.")
        fold = button(f"{self._prefix}_form_fold", "", tip, turn)
        both = column(summary, row(fold, 1), rest)
        both.layout().setContentsMargins(0, 0, 0, 0)
        show()  # only after it has a parent: a widget without one is a window
        return both

    def _make_question(self, question: AskedQuestion) -> QWidget:
        field = question.field
        name = "_".join(filter(None, (f"{self._prefix}_answer", field.id, question.place.name)))
        title = QLabel(form_texts.name_question(question))
        title.setWordWrap(True)
        auto = label(
            f"{name}_auto", _AUTO, tip=tr("Filled in: {computed}", computed=form_texts.COMPUTED)
        )
        auto.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Preferred)
        set_level(auto, "hint")
        control = _MAKERS[field.kind](self, question, name, form_texts.explain_question(question))
        if question.answer is None or not question.answer.is_computed:
            auto.hide()
        self._autos[field.id, question.place] = auto
        self._controls[field.id, question.place] = control
        if field.kind is FieldKind.MULTIPLE:
            return column(title, control)
        both = row(title, auto, control)
        call_by(control, title.text())
        both.layout().setStretch(0, 1)
        both.layout().setStretch(2, 1)
        return both

    def _make_single(self, question: AskedQuestion, name: str, tip: str) -> QWidget:
        box: QComboBox = named(ChoiceBox(), name, tip)
        box.setMinimumContentsLength(8)
        box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        box.addItem(_NONE, "")
        for term in question.field.terms:
            box.addItem(tr(term.text), term.id)
        value = next(iter(question.values), "")
        if box.findData(value) < 0:  # a term of a later lexicon
            box.addItem(_OTHER_EDITION.format(value), value)
        box.setCurrentIndex(box.findData(value))
        box.activated.connect(
            lambda _at: self._take_answer(question, *filter(None, (box.currentData(),)))
        )
        return box

    def _make_multiple(self, question: AskedQuestion, name: str, tip: str) -> QWidget:
        boxes: list[CheckBox] = []
        for term in question.field.terms:
            box = checkbox(
                f"{name}_{term.id}",
                tr(term.text),
                f"{tip}: {tr(term.text)}",
                is_on=term.id in question.values,
            )
            boxes.append(box)
        ids = [term.id for term in question.field.terms]

        def take() -> None:
            pairs = zip(ids, boxes, strict=True)
            self._take_answer(question, *(term for term, box in pairs if box.isChecked()))

        for box in boxes:
            box.clicked.connect(take)
        holder = column(*boxes)
        holder.layout().setContentsMargins(12, 0, 0, 0)
        holder.layout().setSpacing(1)
        if boxes:
            holder.setFocusProxy(boxes[0])
        return holder

    def _make_text(self, question: AskedQuestion, name: str, tip: str) -> QWidget:
        line = line_edit(name, tip, text=form_texts.write_value(question))
        line.textEdited.connect(lambda text: self._take_answer(question, *filter(None, (text,))))
        return line

    # ----------------------------------------------------------------- answering

    def _take_answer(self, question: AskedQuestion, *values: str) -> None:
        where = (question.field.id, question.place)
        values = tuple(read_number(question.field, value) for value in values)
        why = form_texts.why_wrong(question.field, values)
        if why:
            self._wrong[where] = (
                f"{form_texts.describe_question(question.field, question.place)}: {why}"
            )
            values = ()
        else:
            self._wrong.pop(where, None)
        if where in self._autos:
            self._autos[where].hide()
        self._answers = self._answers.put(Answer(question.field.id, values, question.place))
        self._draw_if_new()
        self.answered.emit()

    def _list_wrong(self) -> list[tuple[str, Place]]:
        return [where for where in self._wrong if where in self._drawn]

    def _end_change(self) -> None:
        wrong = [self._wrong[where] for where in self._list_wrong()]
        self.warning.setText("\n".join(wrong))
        self.warning.setVisible(bool(wrong))
        self.changed.emit()


_MAKERS: Mapping[FieldKind, Callable[[FormView, AskedQuestion, str, str], QWidget]] = {
    FieldKind.SINGLE: FormView._make_single,
    FieldKind.MULTIPLE: FormView._make_multiple,
    FieldKind.NUMBER: FormView._make_text,
    FieldKind.TEXT: FormView._make_text,
}
