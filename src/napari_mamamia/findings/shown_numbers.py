"""Display and input of a form's numbers; lesion volumes are stored in mm3 and shown in ml."""

from decimal import Decimal
from typing import Final

from napari_mamamia.core.form import Field, FieldKind, Form, Measure
from napari_mamamia.findings.form_values import AnswerRow, normalise_values

_MM3_PER_ML: Final = 1000


def name_unit(field: Field | None) -> str:
    """Return the unit in which the answer to a numeric question is displayed and entered.

    A lesion's volume, stored in mm3, is displayed in ml as in the rest of the program.
    """
    if field is None:
        return ""
    is_volume = field.measure is Measure.VOLUME_MM3 and field.unit == "mm3"
    return "ml" if is_volume else field.unit


def show_number(field: Field | None, value: str, *, is_measured: bool = False) -> str:
    """Return a stored number for display in the unit `name_unit`; other text is unchanged.

    A measured value has two decimals in ml and at most one in other units; a number entered by a
    reader keeps all its digits.
    """
    if field is None or field.kind is not FieldKind.NUMBER:
        return value
    if not value.strip():
        return value
    try:
        number = Decimal(normalise_values(field, [value])[0])
    except ValueError:
        return value
    if name_unit(field) != field.unit:
        volume = number / _MM3_PER_ML
        return f"{volume:.2f}" if is_measured else _write_plainly(volume)
    return f"{number:.1f}".removesuffix(".0") if is_measured else value


def read_number(field: Field, text: str) -> str:
    """Return an entered number in the stored unit; text that is not a number is unchanged."""
    if name_unit(field) == field.unit or not text.strip():
        return text
    try:
        return _write_plainly(Decimal(normalise_values(field, [text])[0]) * _MM3_PER_ML)
    except ValueError:
        return text


def format_answer_row(form: Form, row: AnswerRow) -> str:
    """Return a table row's answer with its unit, for display."""
    field = form.field(row.field)
    if field is None or field.unit != row.unit:  # the row is from another version of the form
        return f"{row.text} {row.unit}".rstrip()
    return f"{show_number(field, row.text, is_measured=row.computed)} {name_unit(field)}".rstrip()


def _write_plainly(number: Decimal) -> str:
    return f"{number.normalize():f}"
