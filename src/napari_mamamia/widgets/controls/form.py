"""Forms that are generated from a settings record, with one labelled field for each option.

A record is a frozen dataclass whose fields are made by `option`; `Form.settings` returns it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from qtpy.QtCore import QObject, Qt, Signal
from qtpy.QtWidgets import QFileDialog, QLineEdit, QSpinBox, QWidget

from napari_mamamia.widgets.controls.controls import row, row_name, tool_button
from napari_mamamia.widgets.controls.fields import checkbox, combo_box, line_edit, spin_box
from napari_mamamia.widgets.controls.targets import CheckBox

_OPTION: Final = "option"
Settings = TypeVar("Settings")


@dataclass(frozen=True, slots=True)
class Browse:
    """The browse button of a path field; `kinds` is empty for a folder."""

    name: str
    tip: str
    title: str
    kinds: str = ""


@dataclass(frozen=True, slots=True)
class Option:
    """The display properties of an option (see `option`)."""

    label: str
    name: str
    tip: str
    text: str = ""
    choices: Sequence[tuple[Any, str, str]] = ()
    bounds: tuple[int, int] = (0, 99)
    unit: str = ""
    lowest: str = ""
    placeholder: str = ""
    browse: Browse | None = None


def option(default: Any, label: str, name: str, tip: str, **details: Any) -> Any:
    """Return a field of a settings record that is shown in a form.

    Parameters
    ----------
    default
        Initial value. A bool is shown as a check box, an int as a number field, and None or a
        string as a text field; with `choices`, the value is one of the choices.
    label, name, tip
        The label in front of the field ("" for none), and the objectName and tooltip of the field.
    details
        `text` of a check box; `choices` as (value, text, tooltip); `bounds`, `unit` and the text
        for the `lowest` value of a number; `placeholder` of a text field; `browse` for a path.
    """
    return field(default=default, metadata={_OPTION: Option(label, name, tip, **details)})


class Form(QObject, Generic[Settings]):
    """The fields and rows of a settings record; the page arranges the rows.

    `changed` is emitted after every change. An option whose row is hidden has its default value.

    Parameters
    ----------
    record
        The settings record.
    labels
        Labels with which the labels of this form are aligned.

    Attributes
    ----------
    fields, rows
        The field of each option, and its row with label and browse button.
    start_at
        Folder in which dialogs open if the field is empty.
    """

    changed = Signal()

    def __init__(self, record: type[Settings], labels: Sequence[str] = ()) -> None:
        super().__init__()
        self._record = record
        self.fields: dict[str, Any] = {}
        self.rows: dict[str, QWidget] = {}
        self.start_at = str(Path.home())
        for one in fields(record):  # type: ignore[arg-type]
            shown: Option = one.metadata[_OPTION]
            widget = self.fields[one.name] = self._make_field(shown, one.default)
            cells: list[QWidget | int] = [row_name(shown.label, labels)] if shown.label else []
            cells.append(widget)
            if shown.browse is not None:
                cells.append(self._make_browse(shown.browse, widget))
            self.rows[one.name] = row(*cells, *([] if isinstance(widget, QLineEdit) else [1]))

    def settings(self) -> Settings:
        """Return the chosen settings; an option whose row is hidden has its default value."""
        return self._record(
            **{
                one.name: self._read(one.metadata[_OPTION], self.fields[one.name])
                for one in fields(self._record)  # type: ignore[arg-type]
                if not self.rows[one.name].isHidden()
            }
        )

    # -------------------------------------------------------------------- inner

    def _make_field(self, shown: Option, default: Any) -> Any:
        if shown.choices:
            combo = combo_box(shown.name, shown.tip)
            for k, (value, text, tip) in enumerate(shown.choices):
                combo.addItem(text, value)
                combo.setItemData(k, tip or None, Qt.ItemDataRole.ToolTipRole)
            combo.setCurrentIndex([value for value, _text, _tip in shown.choices].index(default))
            combo.currentIndexChanged.connect(lambda _at: self.changed.emit())
            return combo
        if isinstance(default, bool):
            return checkbox(
                *(shown.name, shown.text, shown.tip),
                is_on=default,
                on_toggle=lambda _on: self.changed.emit(),
            )
        if isinstance(default, int):
            number = spin_box(shown.name, shown.tip, shown.bounds, value=default, unit=shown.unit)
            number.setSpecialValueText(shown.lowest)
            number.valueChanged.connect(lambda _number: self.changed.emit())
            return number
        line = line_edit(shown.name, shown.tip, shown.placeholder, text=default or "")
        line.textChanged.connect(lambda text: line.setToolTip(f"{shown.tip}\n{text}".strip()))
        line.textChanged.connect(lambda _text: self.changed.emit())
        return line

    def _read(self, shown: Option, widget: Any) -> Any:
        if shown.choices:
            return shown.choices[widget.currentIndex()][0]
        if isinstance(widget, CheckBox):
            return widget.isChecked()
        if isinstance(widget, QSpinBox):
            return widget.value()
        text = widget.text().strip()
        if shown.browse is None:
            return text
        return Path(text).expanduser() if text else None

    def _make_browse(self, browse: Browse, line: QLineEdit) -> QWidget:
        def choose() -> None:
            start = line.text() or self.start_at
            if browse.kinds:
                chosen, _ = QFileDialog.getOpenFileName(line, browse.title, start, browse.kinds)
            else:
                chosen = QFileDialog.getExistingDirectory(line, browse.title, start)
            if chosen:
                line.setText(chosen)
                line.textEdited.emit(chosen)

        framed = tool_button(browse.name, "…", browse.tip, choose)
        framed.setProperty("framed", True)
        return framed
