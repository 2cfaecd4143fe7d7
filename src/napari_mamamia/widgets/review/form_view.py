"""The questions of a study's form, drawn as they come: plain controls, one a line."""

from collections.abc import Callable, Mapping
from typing import Any

from qtpy.QtCore import Signal
from qtpy.QtWidgets import (
    QCheckBox,
    QComboBox,
    QLabel,
    QLineEdit,
    QVBoxLayout,
    QWidget,
)

from napari_mamamia.core.answers import NOTHING_KNOWN, Answer, Answers, CaseFacts, Place
from napari_mamamia.core.form import Field, FieldKind, FieldScope, Form
from napari_mamamia.reviewing.form_rules import (
    AskedQuestion,
    fill_computed,
    list_missing,
    list_questions,
)
from napari_mamamia.reviewing.form_values import normalise_values, parse_answers, record_answers
from napari_mamamia.widgets.controls.controls import (
    column,
    discard,
    heading,
    label,
    named,
    row,
    set_level,
)

_NONE = "–"
_COMPUTED = "measured from your mask; choose another answer where it is wrong"


class FormView(QWidget):
    """Asks what a `Form` asks. `answered` says that an answer was given or taken away.

    Which questions are asked is decided by `reviewing.form_rules` after every answer.
    """

    answered = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("review_form")
        self._form: Form | None = None
        self._answers = Answers()
        self._facts = NOTHING_KNOWN
        self._wrong: dict[tuple[str, Place], str] = {}
        self._drawn: list[tuple[str, Place]] = []
        self._content = QWidget()
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.addWidget(self._content)
        self.warning = label("review_form_warning", tip="An answer that cannot be kept as it is")
        set_level(self.warning, "warning")
        self._layout.addWidget(self.warning)
        self._draw_anew()

    # ------------------------------------------------------------- for the flow

    def set_form(self, form: Form | None) -> None:
        """Ask another form; None asks nothing."""
        self._form = form
        self.set_answers({})

    def set_answers(self, record: Mapping[str, Any]) -> None:
        """Show answers as a reading holds them."""
        self._answers, self._facts, self._wrong = parse_answers(record), NOTHING_KNOWN, {}
        self._draw_anew()

    def set_facts(self, facts: CaseFacts) -> None:
        """Take what was measured of the mask: its lesions are asked about and filled in."""
        if self._form is not None and facts != self._facts:
            self._facts = facts
            self._answers = fill_computed(self._form, self._answers, facts)
            self._draw_if_new()

    @property
    def asks_lesions(self) -> bool:
        """Whether something is asked of each lesion."""
        return self._form is not None and bool(self._form.of_scope(FieldScope.LESION))

    @property
    def answers(self) -> dict[str, Any]:
        """The answers as a reading holds them."""
        if self._form is None or not self._answers.items:
            return {}
        return record_answers(self._form, self._answers)

    def list_missing(self) -> tuple[str, ...]:
        """Return in words what must be answered and is not, and what cannot be numbers."""
        if self._form is None:
            return ()
        missing = list_missing(self._form, self._answers, self._facts)
        return (*(_describe_question(one.field, one.place) for one in missing), *self._list_wrong())

    # ------------------------------------------------------------------- drawing

    def _list_asked(self) -> tuple[AskedQuestion, ...]:
        if self._form is None:
            return ()
        return list_questions(self._form, self._answers, self._facts)

    def _draw_if_new(self) -> None:
        """Draw anew where other questions are asked now; an answer alone changes no control."""
        asked = [(one.field.id, one.place) for one in self._list_asked()]
        if asked != self._drawn:
            self._draw_anew()
        else:
            self._say_wrong()

    def _draw_anew(self) -> None:
        asked = self._list_asked()
        parts: list[QWidget | int] = []
        place = Place()
        for one in asked:
            if one.place != place:
                place = one.place
                parts.append(heading(_name_place(place)))
            parts.append(self._make_question(one))
        fresh = column(*parts)
        fresh.layout().setSpacing(4)
        self._layout.replaceWidget(self._content, fresh)
        discard(self._content)
        self._content = fresh
        self._drawn = [(one.field.id, one.place) for one in asked]
        self._say_wrong()

    def _make_question(self, one: AskedQuestion) -> QWidget:
        field = one.field
        star = " *" if one.is_required else ""
        name = _control_name(field, one.place)
        unit = f" ({field.unit})" if field.unit else ""
        title = QLabel(f"{field.text}{unit}{star}")
        title.setWordWrap(True)
        is_computed = one.answer is not None and one.answer.is_computed
        tip = f"{_describe_question(field, one.place)}{' (needed)' if one.is_required else ''}"
        tip = f"{tip}: {_COMPUTED}" if is_computed else tip
        control = _MAKERS[field.kind](self, one, name, tip)
        if field.kind is FieldKind.MULTIPLE:
            return column(title, control)
        both = row(title, control)
        both.layout().setStretch(0, 1)
        both.layout().setStretch(1, 1)
        return both

    def _make_single(self, one: AskedQuestion, name: str, tip: str) -> QWidget:
        box: QComboBox = named(QComboBox(), name, tip)
        box.setMinimumContentsLength(8)
        box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        box.addItem(_NONE, "")
        for term in one.field.terms:
            box.addItem(term.text, term.id)
        box.setCurrentIndex(max(box.findData(next(iter(one.values), "")), 0))
        box.activated.connect(
            lambda _at: self._take_answer(one, *filter(None, (box.currentData(),)))
        )
        return box

    def _make_multiple(self, one: AskedQuestion, name: str, tip: str) -> QWidget:
        boxes: list[QCheckBox] = []
        for term in one.field.terms:
            box: QCheckBox = named(QCheckBox(term.text), f"{name}_{term.id}", f"{tip}: {term.text}")
            box.setChecked(term.id in one.values)
            boxes.append(box)
        ids = [term.id for term in one.field.terms]

        def take() -> None:
            pairs = zip(ids, boxes, strict=True)
            self._take_answer(one, *(term for term, box in pairs if box.isChecked()))

        for box in boxes:
            box.clicked.connect(take)
        holder = column(*boxes)
        holder.layout().setContentsMargins(12, 0, 0, 0)
        holder.layout().setSpacing(1)
        return holder

    def _make_text(self, one: AskedQuestion, name: str, tip: str) -> QWidget:
        line: QLineEdit = named(QLineEdit(), name, tip)
        line.setText(next(iter(one.values), ""))
        line.textEdited.connect(lambda text: self._take_answer(one, *filter(None, (text,))))
        return line

    # ----------------------------------------------------------------- answering

    def _take_answer(self, one: AskedQuestion, *values: str) -> None:
        where = (one.field.id, one.place)
        why = _why_wrong(one.field, values)
        if why:
            self._wrong[where] = f"{_describe_question(one.field, one.place)}: {why}"
            values = ()
        else:
            self._wrong.pop(where, None)
        self._answers = self._answers.put(Answer(one.field.id, values, one.place))
        self._draw_if_new()
        self.answered.emit()

    def _list_wrong(self) -> list[str]:
        return [text for where, text in self._wrong.items() if where in self._drawn]

    def _say_wrong(self) -> None:
        wrong = self._list_wrong()
        self.warning.setText("\n".join(wrong))
        self.warning.setVisible(bool(wrong))


_MAKERS: Mapping[FieldKind, Callable[[FormView, AskedQuestion, str, str], QWidget]] = {
    FieldKind.SINGLE: FormView._make_single,
    FieldKind.MULTIPLE: FormView._make_multiple,
    FieldKind.NUMBER: FormView._make_text,
    FieldKind.TEXT: FormView._make_text,
}


def _why_wrong(field: Field, values: tuple[str, ...]) -> str:
    """Return why values are no answer, "" where they are one."""
    try:
        numbers = normalise_values(field, values)
    except ValueError as error:
        return str(error)
    if field.kind is not FieldKind.NUMBER or not numbers:
        return ""
    number = float(numbers[0])
    low = field.low is not None and number < field.low
    high = field.high is not None and number > field.high
    limits = f"{_write_limit(field.low)} to {_write_limit(field.high)} {field.unit}".strip()
    return f"{limits} is asked for, got {numbers[0]}" if low or high else ""


def _write_limit(limit: float | None) -> str:
    return "any" if limit is None else f"{limit:g}"


def _describe_question(field: Field, place: Place) -> str:
    where = _name_place(place)
    return f"{field.text} ({where.lower()})" if where else field.text


def _name_place(place: Place) -> str:
    if place.scope is FieldScope.CASE:
        return ""
    return (
        f"Lesion {place.name}"
        if place.scope is FieldScope.LESION
        else f"{place.name.title()} breast"
    )


def _control_name(field: Field, place: Place) -> str:
    return "_".join(filter(None, ("review_answer", field.id, place.name)))
