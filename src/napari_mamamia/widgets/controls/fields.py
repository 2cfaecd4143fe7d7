"""Input fields with an objectName and a tooltip: text, numbers, check boxes and choices."""

from collections.abc import Callable

from qtpy.QtWidgets import QComboBox, QDoubleSpinBox, QLineEdit, QSpinBox

from napari_mamamia.widgets.controls.controls import named
from napari_mamamia.widgets.controls.targets import CheckBox


def line_edit(
    name: str,
    tip: str,
    hint: str = "",
    *,
    text: str = "",
    on_return: Callable[[], object] | None = None,
    is_secret: bool = False,
) -> QLineEdit:
    """Return a text field.

    Parameters
    ----------
    name, tip
        The objectName and the tooltip.
    hint, text
        The placeholder text, and the initial text.
    on_return
        Function that is called when the user presses Enter.
    is_secret
        Whether the text is hidden, as for a passphrase.
    """
    field: QLineEdit = named(QLineEdit(text), name, tip)
    field.setPlaceholderText(hint)
    if is_secret:
        field.setEchoMode(QLineEdit.EchoMode.Password)
    if on_return is not None:
        field.returnPressed.connect(on_return)
    return field


def spin_box(
    name: str, tip: str, limits: tuple[int, int], *, value: int = 0, unit: str = "", step: int = 1
) -> QSpinBox:
    """Return a field for an integer within the limits."""
    field: QSpinBox = named(QSpinBox(), name, tip)
    field.setRange(*limits)
    field.setSingleStep(step)
    field.setSuffix(unit)
    field.setValue(value)
    return field


def double_spin_box(
    name: str,
    tip: str,
    limits: tuple[float, float],
    *,
    unit: str = "",
    step: float = 1.0,
    decimals: int = 2,
) -> QDoubleSpinBox:
    """Return a field for a number within the limits."""
    field: QDoubleSpinBox = named(QDoubleSpinBox(), name, tip)
    field.setDecimals(decimals)
    field.setRange(*limits)
    field.setSingleStep(step)
    field.setSuffix(unit)
    return field


def checkbox(
    name: str,
    text: str,
    tip: str,
    *,
    is_on: bool = False,
    on_toggle: Callable[[bool], object] | None = None,
) -> CheckBox:
    """Return a check box; `on_toggle` is called after each later change."""
    box: CheckBox = named(CheckBox(text), name, tip)
    box.setChecked(is_on)
    if on_toggle is not None:
        box.toggled.connect(on_toggle)
    return box


def combo_box(name: str, tip: str) -> QComboBox:
    """Return an empty list of choices."""
    box: QComboBox = named(QComboBox(), name, tip)
    return box
