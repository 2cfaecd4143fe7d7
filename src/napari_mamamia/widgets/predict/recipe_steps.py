"""The steps after a network as an ordered list: add, remove, move, and a value with its unit."""

from typing import Final

from qtpy.QtCore import Qt, Signal
from qtpy.QtWidgets import QComboBox, QListWidget, QVBoxLayout, QWidget

from napari_mamamia.segmentation.model.postprocess import UNITS, PostKind, PostStep, check_order
from napari_mamamia.widgets.controls.controls import (
    button,
    label,
    named,
    row,
    set_level,
    tool_button,
)
from napari_mamamia.widgets.predict.recipe_fields import number_field, problem_of

__all__ = ["StepList"]

_FIRST_VALUE: Final = {PostKind.MINIMUM: 100.0, PostKind.CLOSE: 2.0}
"""What a new step starts with, in mm3 and mm. Our choice; it is shown and can be changed."""

_SMALLEST: Final = 0.01
_HEIGHT: Final = 84
_TIPS: Final = {
    PostKind.BREAST_MASK: "keeps what lies in the breast",
    PostKind.BREAST_BOX: "keeps what lies in the box around the breast",
    PostKind.LARGEST: "keeps the largest connected region; only after the breast",
    PostKind.MINIMUM: "drops connected regions below a volume",
    PostKind.FILL: "fills holes inside the mask",
    PostKind.CLOSE: "closes gaps up to about twice a radius",
}


class StepList(QWidget):
    """`changed` after each change."""

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("recipe_steps")
        self._steps: list[PostStep] = []
        self.list: QListWidget = named(
            QListWidget(), "recipe_step_list", "Steps after the network, the first on top"
        )
        self.list.setFixedHeight(_HEIGHT)
        self.list.currentRowChanged.connect(self._show_value)
        self.kind: QComboBox = named(
            QComboBox(), "recipe_step_kind", "Which step Add puts at the end"
        )
        for kind in PostKind:
            self.kind.addItem(kind.value, kind)
            self.kind.setItemData(
                self.kind.count() - 1, _TIPS.get(kind, ""), Qt.ItemDataRole.ToolTipRole
            )
        self.add = button("recipe_step_add", "Add", "Puts this step at the end", self._add)
        self.up = tool_button("recipe_step_up", "↑", "Does the chosen step earlier", self._up)
        self.down = tool_button("recipe_step_down", "↓", "Does the chosen step later", self._down)
        self.remove = button(
            "recipe_step_remove", "Remove", "Takes the chosen step out", self._remove
        )
        self.value = number_field(
            "recipe_step_value", "Value of the chosen step, with its unit", 0, 1e6
        )
        self.value.valueChanged.connect(self._set_value)
        self.said = label("recipe_steps_problem", tip="Why these steps cannot be in this order")
        set_level(self.said, "error")
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(3)
        layout.addWidget(self.list)
        layout.addWidget(row(self.up, self.down, self.value, self.remove, 1))
        layout.addWidget(row(self.kind, self.add, 1))
        layout.addWidget(self.said)
        self._refresh(-1)

    @property
    def steps(self) -> tuple[PostStep, ...]:
        """The steps in their order."""
        return tuple(self._steps)

    @property
    def problem(self) -> str:
        """Why the order is refused, "" if it is not."""
        return problem_of(lambda: check_order(self._steps))

    def show_steps(self, steps: tuple[PostStep, ...]) -> None:
        """Show steps in place of what was there."""
        self._steps = list(steps)
        self._refresh(-1)

    def _add(self) -> None:
        kind = self.kind.currentData()
        self._steps.append(PostStep(kind, _FIRST_VALUE.get(kind, 0.0)))
        self._refresh(len(self._steps) - 1)

    def _remove(self) -> None:
        place = self.list.currentRow()
        if place >= 0:
            del self._steps[place]
            self._refresh(min(place, len(self._steps) - 1))

    def _up(self) -> None:
        self._move(-1)

    def _down(self) -> None:
        self._move(1)

    def _move(self, by: int) -> None:
        place = self.list.currentRow()
        if place >= 0 and 0 <= place + by < len(self._steps):
            step = self._steps.pop(place)
            self._steps.insert(place + by, step)
            self._refresh(place + by)

    def _set_value(self, value: float) -> None:
        place = self.list.currentRow()
        if 0 <= place < len(self._steps) and self._steps[place].kind in UNITS:
            self._steps[place] = PostStep(self._steps[place].kind, value)
            self._refresh(place)

    def _refresh(self, chosen: int) -> None:
        self.list.blockSignals(True)
        self.list.clear()
        for number, step in enumerate(self._steps, start=1):
            self.list.addItem(f"{number}   {_text(step)}")
        self.list.setCurrentRow(chosen)
        self.list.blockSignals(False)
        self._show_value(chosen)
        self.said.setText(self.problem)
        self.said.setVisible(bool(self.problem))
        self.changed.emit()

    def _show_value(self, place: int) -> None:
        step = self._steps[place] if 0 <= place < len(self._steps) else None
        has_value = step is not None and step.kind in UNITS
        self.value.blockSignals(True)
        self.value.setMinimum(_SMALLEST if has_value else 0.0)
        self.value.setSuffix(f" {UNITS[step.kind]}" if step is not None and has_value else "")
        self.value.setValue(step.value if step is not None else 0.0)
        self.value.blockSignals(False)
        self.value.setEnabled(has_value)
        self.remove.setEnabled(step is not None)
        self.up.setEnabled(place > 0)
        self.down.setEnabled(0 <= place < len(self._steps) - 1)


def _text(step: PostStep) -> str:
    unit = UNITS.get(step.kind)
    return f"{step.kind.value} {step.value:g} {unit}" if unit else step.kind.value
