"""Recipe fields that consist of several controls, with an error message for each field."""

from collections.abc import Callable, Sequence
from typing import Final

from qtpy.QtCore import Qt, Signal
from qtpy.QtWidgets import (
    QComboBox,
    QDoubleSpinBox,
    QGridLayout,
    QLabel,
    QVBoxLayout,
    QWidget,
)

from napari_mamamia.core.errors import ModelError
from napari_mamamia.core.texts import tr
from napari_mamamia.segmentation.model.recipe import Normalise, Recipe, Scope
from napari_mamamia.widgets.controls.controls import label, named, row, set_level
from napari_mamamia.widgets.controls.fields import checkbox, combo_box, double_spin_box

_EXPRESSIONS: Final = (
    ("p0", tr("pre-contrast phase")),
    ("p1", tr("first post-contrast phase")),
    ("p2", tr("second post-contrast phase")),
    ("p3", tr("third post-contrast phase")),
    ("first_post", tr("first post-contrast phase")),
    ("last_post", tr("last post-contrast phase")),
    ("p1-p0", tr("first subtraction")),
    ("p2-p0", tr("second subtraction")),
    ("pe", tr("enhancement in the first post-contrast phase, in %")),
    ("ser", tr("signal enhancement ratio, no unit")),
)
_CHANNEL_TIP: Final = tr(
    "Input of this channel: a phase (p0, p1 …, first_post, last_post), a difference (p1-p0), pe "
    "or pe(p2) in %, or ser; you can also type a different input."
)


def problem_of(make: Callable[[], object]) -> str:
    """Return why the object built by `make` is invalid, or "" if it is valid."""
    try:
        make()
    except ModelError as error:
        return str(error)
    return ""


def number_field(
    name: str, tip: str, low: float, high: float, unit: str = "", decimals: int = 2
) -> QDoubleSpinBox:
    """Return a spin box for a number with its unit."""
    spin_box = double_spin_box(
        name, tip, (low, high), decimals=decimals, unit=f" {unit}" if unit else ""
    )
    # The value is emitted after editing is finished, not at each digit.
    spin_box.setKeyboardTracking(False)
    return spin_box


class _Field(QWidget):
    """The base class of a field; `changed` is emitted after each change.

    `problem` is the error message, or "" for a valid value.
    """

    changed = Signal()

    def __init__(self, name: str) -> None:
        super().__init__()
        self.setObjectName(name)
        self.said = label(f"{name}_problem", tip=tr("Why this value is invalid"))
        set_level(self.said, "error")
        self.said.hide()
        self.body = QVBoxLayout(self)
        self.body.setContentsMargins(0, 0, 0, 0)
        self.body.setSpacing(3)

    @property
    def problem(self) -> str:
        """Why the value is invalid, or "" if it is valid."""
        return problem_of(self._check_value)

    def _check_value(self) -> None:
        """Build the object, which raises an error if the value is invalid."""

    def _show_problem(self, *_: object) -> None:
        self.said.setText(self.problem)
        self.said.setVisible(bool(self.problem))
        self.changed.emit()


class ChannelLines(_Field):
    """One row for each channel of the model, with its expression."""

    def __init__(self) -> None:
        super().__init__("recipe_channels")
        self.combos: list[QComboBox] = []
        self.lines = QGridLayout()
        self.lines.setContentsMargins(0, 0, 0, 0)
        self.lines.setColumnStretch(2, 1)
        self.body.addLayout(self.lines)
        self.body.addWidget(self.said)

    def make_lines(self, names: Sequence[str]) -> None:
        """Create a row for each channel; this method is called once."""
        for number, name in enumerate(names):
            combo = combo_box(f"recipe_channel_{number}", _CHANNEL_TIP)
            combo.setEditable(True)
            named(combo.lineEdit(), f"recipe_channel_{number}_text", _CHANNEL_TIP)
            combo.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
            for expression, hint in _EXPRESSIONS:
                combo.addItem(expression)
                combo.setItemData(combo.count() - 1, hint, Qt.ItemDataRole.ToolTipRole)
            combo.setMinimumContentsLength(12)
            combo.currentTextChanged.connect(self._show_problem)
            self.combos.append(combo)
            self.lines.addWidget(
                QLabel(
                    tr("channel {number} {name} ←", number=number, name=name).replace("  ", " ")
                ),
                number,
                0,
            )
            self.lines.addWidget(combo, number, 1)

    def show_expressions(self, expressions: Sequence[str]) -> None:
        """Show expressions; a channel without an expression shows the phase of the same number."""
        for number, combo in enumerate(self.combos):
            text = expressions[number] if number < len(expressions) else f"p{number}"
            combo.setCurrentText(text)

    def expressions(self) -> tuple[str, ...]:
        """Return the entered expressions without spaces."""
        return tuple(combo.currentText().replace(" ", "") for combo in self.combos)

    def _check_value(self) -> None:
        Recipe(channels=self.expressions())


class NormaliseField(_Field):
    """Normalisation before the network's own normalisation, with statistics and clipping."""

    def __init__(self) -> None:
        super().__init__("recipe_normalise")
        self.scope = combo_box(
            "recipe_scope",
            tr(
                "Selects the phases or channels whose mean and standard deviation are used for "
                "the z-score, (value - mean) / standard deviation, before the network's own "
                "normalisation."
            ),
        )
        self.scope.addItem(tr("none"), None)
        for scope in Scope:
            self.scope.addItem(tr("z-score of {value}", value=scope.value), scope)
        self.clipped = checkbox(
            "recipe_clip",
            tr("clip at"),
            tr("Clips each channel at two percentiles before the normalisation."),
        )
        self.low = number_field("recipe_clip_low", tr("Lower percentile, 0 to 100."), 0, 100, "%")
        self.high = number_field("recipe_clip_high", tr("Upper percentile, 0 to 100."), 0, 100, "%")
        self.nonzero = checkbox(
            "recipe_nonzero",
            tr("of nonzero voxels"),
            tr("Computes the percentiles over nonzero voxels."),
        )
        self.scope.currentIndexChanged.connect(self._show_problem)
        self.clipped.toggled.connect(self._show_problem)
        self.nonzero.toggled.connect(self._show_problem)
        for spin in (self.low, self.high):
            spin.valueChanged.connect(self._show_problem)
        self.body.addWidget(row(self.scope, 1))
        self.body.addWidget(row(self.clipped, self.low, QLabel(tr("to")), self.high, 1))
        self.body.addWidget(self.nonzero)
        self.body.addWidget(self.said)

    def show_value(self, value: Normalise | None) -> None:
        """Show a value; None means no normalisation."""
        self.scope.setCurrentIndex(self.scope.findData(None if value is None else value.scope))
        percentiles = None if value is None else value.percentiles
        self.clipped.setChecked(percentiles is not None)
        low, high = percentiles or (0.1, 99.9)
        self.low.setValue(low)
        self.high.setValue(high)
        self.nonzero.setChecked(value is not None and value.nonzero)
        self._show_problem()

    def value(self) -> Normalise | None:
        """Return the value, or raise `ModelError`."""
        scope = self.scope.currentData()
        if scope is None:
            return None
        clipped = self.clipped.isChecked()
        percentiles = (self.low.value(), self.high.value()) if clipped else None
        return Normalise(scope, percentiles, self.nonzero.isChecked())

    def _check_value(self) -> None:
        self.value()

    def _show_problem(self, *_: object) -> None:
        on = self.scope.currentData() is not None
        clips = on and self.clipped.isChecked()
        self.clipped.setEnabled(on)
        for part in (self.low, self.high, self.nonzero):
            part.setEnabled(clips)
        super()._show_problem()


class SpacingField(_Field):
    """The voxel spacing for resampling, along z, y and x."""

    def __init__(self) -> None:
        super().__init__("recipe_spacing")
        self.on = checkbox(
            "recipe_spacing_on",
            tr("resample to"),
            tr("Resamples the volume before the network, and the mask back to the nearest voxel."),
        )
        self.parts = tuple(
            number_field(
                f"recipe_spacing_{axis}",
                tr("Spacing along {axis}, 0.05 to 50 mm.", axis=axis),
                0,
                99,
            )
            for axis in "zyx"
        )
        self.on.toggled.connect(self._show_problem)
        for part in self.parts:
            part.valueChanged.connect(self._show_problem)
        self.body.addWidget(row(self.on, *self.parts, 1))
        self.body.addWidget(self.said)

    def show_value(self, value: tuple[float, float, float] | None) -> None:
        """Show a value; None keeps the spacing of the case."""
        self.on.setChecked(value is not None)
        for part, size in zip(self.parts, value or (1.0, 1.0, 1.0), strict=True):
            part.setValue(size)
        self._show_problem()

    def value(self) -> tuple[float, float, float] | None:
        """Return the value."""
        z, y, x = (part.value() for part in self.parts)
        return (z, y, x) if self.on.isChecked() else None

    def _check_value(self) -> None:
        Recipe(spacing_mm=self.value())

    def _show_problem(self, *_: object) -> None:
        for part in self.parts:
            part.setEnabled(self.on.isChecked())
        super()._show_problem()
