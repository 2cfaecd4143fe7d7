"""Controller of the recipe editor: open the selected model's recipe, and save the result."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from qtpy.QtCore import Qt, Signal
from qtpy.QtGui import QCloseEvent, QShowEvent
from qtpy.QtWidgets import (
    QComboBox,
    QDialog,
    QFormLayout,
    QFrame,
    QLabel,
    QListWidget,
    QMessageBox,
    QScrollArea,
    QWidget,
)

from napari_mamamia.core.errors import ModelError, SaveConflictError
from napari_mamamia.core.texts import tr, tr_n
from napari_mamamia.segmentation.model.card import ModelCard
from napari_mamamia.segmentation.model.postprocess import UNITS, PostKind, PostStep, check_order
from napari_mamamia.segmentation.model.recipe import Recipe, RegionKind
from napari_mamamia.segmentation.run.registry import ModelEntry
from napari_mamamia.services.predict.model_recipes import RecipeSetting
from napari_mamamia.widgets.base.notify import plain_text
from napari_mamamia.widgets.controls.controls import (
    button,
    fill_column,
    heading,
    label,
    named,
    row,
    set_level,
    tool_button,
)
from napari_mamamia.widgets.controls.fields import checkbox, combo_box, line_edit
from napari_mamamia.widgets.controls.targets import CheckBox
from napari_mamamia.widgets.predict import recipe_fields
from napari_mamamia.widgets.predict.models import PredictModels
from napari_mamamia.widgets.predict.page import PredictPage
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart

# The steps after a network as an ordered list: add, remove, move, and a value with its unit.

_FIRST_VALUE: Final = {PostKind.MINIMUM: 100.0, PostKind.CLOSE: 2.0}
"""Initial value of a new step in mm3 or mm, our choice, which the user can change."""

_SMALLEST: Final = 0.01
_LIST_HEIGHT: Final = 84
_TIPS: Final = {
    PostKind.BREAST_MASK: tr("Keeps the mask inside the breast."),
    PostKind.BREAST_BOX: tr("Keeps the mask inside the box around the breast."),
    PostKind.LARGEST: tr("Keeps the largest connected region; allowed only after a breast step."),
    PostKind.MINIMUM: tr("Removes connected regions that are smaller than a volume."),
    PostKind.FILL: tr("Fills holes inside the mask."),
    PostKind.CLOSE: tr("Closes gaps that are up to about twice the radius wide."),
}


class StepList(QWidget):
    """A list of postprocessing steps; `changed` is emitted after each change."""

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("recipe_steps")
        self._steps: list[PostStep] = []
        self.list: QListWidget = named(
            QListWidget(),
            "recipe_step_list",
            tr("Steps after the network, in order from top to bottom."),
        )
        self.list.setFixedHeight(_LIST_HEIGHT)
        self.list.currentRowChanged.connect(self._show_value)
        self.kind = combo_box("recipe_step_kind", tr("Step that the button Add step appends."))
        for kind in PostKind:
            self.kind.addItem(kind.value, kind)
            self.kind.setItemData(
                self.kind.count() - 1, _TIPS.get(kind, ""), Qt.ItemDataRole.ToolTipRole
            )
        self.add = button(
            "recipe_step_add", tr("Add step"), tr("Appends this step."), self._add_step
        )
        self.up = tool_button(
            "recipe_step_up", "↑", tr("Moves the selected step up."), self._move_up
        )
        self.down = tool_button(
            "recipe_step_down", "↓", tr("Moves the selected step down."), self._move_down
        )
        self.remove = button(
            "recipe_step_remove",
            tr("Remove step"),
            tr("Removes the selected step."),
            self._remove_step,
        )
        self.value = recipe_fields.number_field(
            "recipe_step_value", tr("Value of the selected step, with its unit."), 0, 1e6
        )
        self.value.valueChanged.connect(self._set_value)
        self.said = label("recipe_steps_problem", tip=tr("Why these steps cannot be in this order"))
        set_level(self.said, "error")
        fill_column(
            self,
            self.list,
            row(self.up, self.down, self.value, self.remove, 1),
            row(self.kind, self.add, 1),
            self.said,
            spacing=3,
        )
        self._refresh_list(-1)

    @property
    def steps(self) -> tuple[PostStep, ...]:
        """The steps, in order."""
        return tuple(self._steps)

    @property
    def problem(self) -> str:
        """Why the order of steps is invalid, or "" if it is valid."""
        return recipe_fields.problem_of(lambda: check_order(self._steps))

    def show_steps(self, steps: tuple[PostStep, ...]) -> None:
        """Show steps, replacing the previous steps."""
        self._steps = list(steps)
        self._refresh_list(-1)

    def _add_step(self) -> None:
        kind = self.kind.currentData()
        self._steps.append(PostStep(kind, _FIRST_VALUE.get(kind, 0.0)))
        self._refresh_list(len(self._steps) - 1)

    def _remove_step(self) -> None:
        place = self.list.currentRow()
        if place >= 0:
            del self._steps[place]
            self._refresh_list(min(place, len(self._steps) - 1))

    def _move_up(self) -> None:
        self._move_step(-1)

    def _move_down(self) -> None:
        self._move_step(1)

    def _move_step(self, by: int) -> None:
        place = self.list.currentRow()
        if place >= 0 and 0 <= place + by < len(self._steps):
            step = self._steps.pop(place)
            self._steps.insert(place + by, step)
            self._refresh_list(place + by)

    def _set_value(self, value: float) -> None:
        place = self.list.currentRow()
        if 0 <= place < len(self._steps) and self._steps[place].kind in UNITS:
            self._steps[place] = PostStep(self._steps[place].kind, value)
            self._refresh_list(place)

    def _refresh_list(self, chosen: int) -> None:
        self.list.blockSignals(True)
        self.list.clear()
        for number, step in enumerate(self._steps, start=1):
            self.list.addItem(f"{number}   {_describe_step(step)}")
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


def _describe_step(step: PostStep) -> str:
    unit = UNITS.get(step.kind)
    return f"{step.kind.value} {step.value:g} {unit}" if unit else step.kind.value


_LARGEST_MARGIN_MM: Final = 200
_STEP: Final = 0.5
"""nnU-Net's default tile step, as a fraction of the patch size."""

_LEFT: Final = tr("as on the page")


class RecipeForm(QWidget):
    """A form that shows a recipe and returns the edited recipe.

    The signal `changed` is emitted after each change. Recipe values without a field are not
    changed.
    """

    changed = Signal()

    def __init__(self, card: ModelCard, recipe: Recipe) -> None:
        super().__init__()
        self.setObjectName("recipe_form")
        self._base = recipe
        self._layout = QFormLayout(self)
        self._layout.setContentsMargins(4, 4, 4, 4)
        self._layout.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        self._layout.setRowWrapPolicy(QFormLayout.RowWrapPolicy.DontWrapRows)
        self._make_title()
        self._make_channels(card, recipe)
        self._make_region()
        self._make_network(card, recipe)
        self._make_after(card)
        self._connect_fields()
        self.show_recipe(recipe)

    # -------------------------------------------------------------------- for others

    def show_recipe(self, recipe: Recipe) -> None:
        """Show a recipe in all fields, replacing the previous recipe."""
        self.title.setText(recipe.title)
        self.channels.show_expressions(recipe.channels)
        self.whole.setChecked(recipe.whole_numbers)
        self.normalise.show_value(recipe.normalise)
        self.spacing.show_value(recipe.spacing_mm)
        self.region.setCurrentIndex(self.region.findData(recipe.region))
        self.margin.setValue(recipe.margin_mm)
        for name, box in self.folds.items():
            box.setChecked(recipe.folds is not None and name in recipe.folds)
        self.checkpoint.setCurrentText(recipe.checkpoint or _LEFT)
        self.stepped.setChecked(recipe.step is not None)
        self.step.setValue(_STEP if recipe.step is None else recipe.step)
        _show_choice(self.mirroring, recipe.mirroring)
        _show_choice(self.trainer, recipe.accept_trainer)
        self.steps.show_steps(recipe.post)
        self.labels.setText(", ".join(map(str, recipe.tumour_labels)))

    def recipe(self) -> Recipe:
        """Return the recipe; raise `ModelError` if it is invalid."""
        folds = tuple(name for name, box in self.folds.items() if box.isChecked())
        checkpoint = self.checkpoint.currentText().strip()
        return replace(
            self._base,
            title=self.title.text().strip(),
            channels=self._read_channels(),
            whole_numbers=self.whole.isChecked(),
            normalise=self.normalise.value(),
            spacing_mm=self.spacing.value(),
            region=self.region.currentData(),
            margin_mm=self.margin.value(),
            post=self.steps.steps,
            folds=folds or None,
            checkpoint="" if checkpoint == _LEFT else checkpoint,
            step=self.step.value() if self.stepped.isChecked() else None,
            mirroring=self.mirroring.currentData(),
            accept_trainer=self.trainer.currentData(),
            tumour_labels=self._read_labels(),
        )

    @property
    def problem(self) -> str:
        """The reason why the values do not form a valid recipe, or "" if they do."""
        return recipe_fields.problem_of(self.recipe)

    # ------------------------------------------------------------------------ making

    def _make_title(self) -> None:
        self.title = line_edit(
            "recipe_title",
            tr("Name of the model on the page and in reports."),
            tr("the model's own name"),
        )
        self._layout.addRow(tr("name"), self.title)

    def _make_channels(self, card: ModelCard, recipe: Recipe) -> None:
        self._add_section(tr("Before the network"))
        self.channels = recipe_fields.ChannelLines()
        count = max(len(card.channels), 0 if card.channels else len(recipe.channels), 1)
        names = [*card.channels, *[""] * (count - len(card.channels))]
        self.channels.make_lines(names)
        self._layout.addRow(self.channels)
        self.whole = _make_check_box(
            "whole_numbers",
            tr("subtract as integers"),
            tr("Converts phases to 16-bit integers before subtraction, as some pipelines do."),
        )
        self._layout.addRow("", self.whole)
        self.normalise = recipe_fields.NormaliseField()
        self._layout.addRow(tr("normalise"), self.normalise)
        self.spacing = recipe_fields.SpacingField()
        self._layout.addRow(tr("z, y, x in mm"), self.spacing)

    def _make_region(self) -> None:
        self._add_section(tr("Region"))
        self.region = combo_box(
            "recipe_region",
            tr(
                "Region that the network sees: the whole volume; the volume cropped to the "
                "breast, which changes the result; or only the tiles that overlap the breast, "
                "which keeps the result inside the breast."
            ),
        )
        for kind in RegionKind:
            self.region.addItem(kind.value, kind)
        self.margin = recipe_fields.number_field(
            "recipe_margin", tr("Margin around the breast, in mm."), 0, _LARGEST_MARGIN_MM, "mm", 1
        )
        self._layout.addRow(tr("region"), row(self.region, 1))
        self._layout.addRow(tr("margin"), row(self.margin, 1))

    def _make_network(self, card: ModelCard, recipe: Recipe) -> None:
        self._add_section(tr("The network"))
        self.folds = {
            name: _make_check_box(
                f"fold_{name}",
                name if name in card.folds else tr("{name} (missing)", name=name),
                tr(
                    "Averages this fold; if no fold is selected, the folds chosen on the page are "
                    "averaged."
                ),
            )
            for name in dict.fromkeys((*card.folds, *(recipe.folds or ())))
        }
        if self.folds:
            self._layout.addRow(tr("folds"), row(*self.folds.values(), 1))
        self.checkpoint = combo_box(
            "recipe_checkpoint",
            tr(
                "File name of the weights in each fold's folder; by default the final weights, or "
                "the best weights if there are no final ones."
            ),
        )
        self.checkpoint.setEditable(True)
        named(self.checkpoint.lineEdit(), "recipe_checkpoint_text", self.checkpoint.toolTip())
        self.checkpoint.addItems([_LEFT, *card.checkpoints])
        self._layout.addRow(tr("checkpoint"), row(self.checkpoint, 1))
        self.stepped = _make_check_box(
            "step_on", tr("fixed at"), tr("Fixes the distance between tiles.")
        )
        self.step = recipe_fields.number_field(
            "recipe_step",
            tr("Distance between tiles as a fraction of the patch size; nnU-Net uses 0.5."),
            0.05,
            1,
        )
        self._layout.addRow(tr("tile step"), row(self.stepped, self.step, 1))
        self.mirroring = _make_choice(
            "mirroring",
            ("on", "off"),
            tr("Averages mirrored copies, which takes up to 8 times as long."),
        )
        self._layout.addRow(tr("mirrored copies"), row(self.mirroring, 1))
        self.trainer = _make_choice(
            "trainer",
            ("accept", "refuse"),
            tr(
                "Accepts a trainer unknown to nnU-Net, on the assumption that it uses the network "
                "in the plans."
            ),
        )
        self._layout.addRow(tr("unknown trainer"), row(self.trainer, 1))

    def _make_after(self, card: ModelCard) -> None:
        self._add_section(tr("Postprocessing"))
        self.steps = StepList()
        self._layout.addRow(self.steps)
        labels_text = ", ".join(
            f"{'/'.join(map(str, values))} {name}" for name, values in card.labels
        )
        self.labels = line_edit(
            "recipe_labels",
            tr(
                "Values in the network's result that mean tumour, separated by commas. Leave "
                "empty for all values except background. The model has: {labels_text}.",
                labels_text=labels_text or "not known",
            ),
            tr("all except background ({labels_text})", labels_text=labels_text)
            if labels_text
            else tr("all"),
        )
        self._layout.addRow(tr("tumour labels"), self.labels)
        self.said = label("recipe_problem", tip=tr("Why these values do not form a recipe"))
        set_level(self.said, "error")
        self._layout.addRow(self.said)

    def _add_section(self, title: str) -> None:
        self._layout.addRow(heading(title))

    def _connect_fields(self) -> None:
        for part in (self.channels, self.normalise, self.spacing, self.steps):
            part.changed.connect(self._show_problem)
        for text in (self.title, self.labels):
            text.textChanged.connect(self._show_problem)
        for combo in (self.region, self.mirroring, self.trainer):
            combo.currentIndexChanged.connect(self._show_problem)
        self.checkpoint.currentTextChanged.connect(self._show_problem)
        for box in (self.whole, self.stepped, *self.folds.values()):
            box.toggled.connect(self._show_problem)
        for spin in (self.margin, self.step):
            spin.valueChanged.connect(self._show_problem)

    # ------------------------------------------------------------------------- inner

    def _read_channels(self) -> tuple[str, ...]:
        """Return the expressions; an empty recipe remains empty and means "channel k is phase k".

        The phase of a single channel is always stored, because a single channel has no default.
        """
        expressions = self.channels.expressions()
        plain = tuple(f"p{number}" for number in range(len(expressions)))
        is_default = len(plain) > 1 and expressions == plain and not self._base.channels
        return () if is_default else expressions

    def _read_labels(self) -> tuple[int, ...]:
        words = [word for word in self.labels.text().replace(",", " ").split() if word]
        try:
            return tuple(int(word) for word in words)
        except ValueError as error:
            raise ModelError(
                tr(
                    "expected tumour labels to be whole numbers, such as 1, 2, but got {words!r}; "
                    "enter numbers separated by commas",
                    words=self.labels.text(),
                )
            ) from error

    def _show_problem(self, *_: object) -> None:
        self.margin.setEnabled(self.region.currentData() is not RegionKind.WHOLE)
        self.step.setEnabled(self.stepped.isChecked())
        parts = (self.channels, self.normalise, self.spacing, self.steps)
        message = "" if any(part.problem for part in parts) else self.problem
        self.said.setText(message)
        self.said.setVisible(bool(message))
        self.changed.emit()


def _make_check_box(name: str, text: str, tip: str) -> CheckBox:
    return checkbox(f"recipe_{name}", text, tip)


def _make_choice(name: str, texts: Sequence[str], tip: str) -> QComboBox:
    combo = combo_box(f"recipe_{name}", tip)
    for text, value in zip((_LEFT, *texts), (None, True, False), strict=True):
        combo.addItem(text, value)
    return combo


def _show_choice(combo: QComboBox, value: Any) -> None:
    combo.setCurrentIndex((None, True, False).index(value))


# The editor of a model's recipe: a form, a recipe to start from, saving, and a question at the
# end.

_WIDTH, _HEIGHT = 560, 780


def ask_unsaved(parent: QWidget) -> str:
    """Ask what to do with unsaved changes; return "save", "drop" or "stay"."""
    kinds = QMessageBox.StandardButton
    answer = QMessageBox.question(
        parent,
        tr("Unsaved recipe"),
        tr("The recipe was changed but not saved. Save it?"),
        kinds.Save | kinds.Discard | kinds.Cancel,
        kinds.Save,
    )
    return {kinds.Save: "save", kinds.Discard: "drop"}.get(answer, "stay")


class RecipeDialog(QDialog):
    """The dialog for editing a recipe.

    The signal `save_wanted` carries a recipe for the user's list of models. `beside_wanted` carries
    a recipe for the model's folder, and whether an existing recipe may be replaced. `ask` is called
    if closing would lose changes.
    """

    save_wanted = Signal(object)
    beside_wanted = Signal(object, bool)

    def __init__(
        self,
        setting: RecipeSetting,
        parent: QWidget | None = None,
        ask: Callable[[QWidget], str] = ask_unsaved,
    ) -> None:
        super().__init__(parent)
        self.setObjectName("recipe_dialog")
        self.setWindowTitle(tr("Recipe of {name}", name=setting.entry.name))
        self.resize(_WIDTH, _HEIGHT)
        self._setting = setting
        self._ask = ask
        self.form = RecipeForm(setting.entry.card, setting.recipe)
        self._saved = self._read_form()
        self.start = self._make_start()
        self.said = label("recipe_said", tip=tr("Result of the last action"))
        area: QScrollArea = named(QScrollArea(), "recipe_scroll", "")
        area.setWidgetResizable(True)
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setWidget(self.form)
        self.area = area
        fill_column(
            self,
            row(QLabel(tr("template")), self.start, 1),
            area,
            self.said,
            self._make_buttons(),
            margins=None,
        )
        self.form.changed.connect(self._update_buttons)
        self.say("")
        self._update_buttons()

    @property
    def is_changed(self) -> bool:
        """Whether closing the dialog would lose changes."""
        return self._read_form() != self._saved

    def say(self, text: str, level: str = "error") -> None:
        """Show the result of saving."""
        self.said.setText(text)
        set_level(self.said, level)
        self.said.setVisible(bool(text))

    def offer_replacing(self, text: str) -> None:
        """Report that the model's folder already has a recipe, and suggest replacing it."""
        self.say(text, "warning")
        self.replace_there.show()

    def done_saving(self) -> None:
        """Close the dialog after everything was saved."""
        self._saved = self._read_form()
        self.accept()

    def showEvent(self, event: QShowEvent) -> None:
        """Set the width that the form needs in the current style, including a scroll bar."""
        super().showEvent(event)
        beside = self.area.verticalScrollBar().sizeHint().width() + 4
        self.area.setMinimumWidth(self.form.minimumSizeHint().width() + beside)

    def reject(self) -> None:
        """Close without saving, after asking the user if changes would be lost."""
        answer = self._ask(self) if self.is_changed else "drop"
        if answer == "save":
            self._save_recipe()
        elif answer == "drop":
            super().reject()

    def closeEvent(self, event: QCloseEvent) -> None:
        """Close as the Cancel button does."""
        event.ignore()
        self.reject()

    # --------------------------------------------------------------------- inner

    def _make_start(self) -> QComboBox:
        combo = combo_box(
            "recipe_start", tr("Fills all fields from another recipe; nothing is saved yet.")
        )
        has_own = self._setting.entry.card.has_recipe
        combo.addItem(tr("current recipe"), self._setting.recipe)
        combo.addItem(
            tr("recipe next to the model") if has_own else tr("none; channel k is phase k"),
            self._setting.own,
        )
        for name, recipe in self._setting.presets:
            combo.addItem(f"{name} ({recipe.title})", recipe)
        combo.activated.connect(lambda _place: self._fill_form(combo.currentData()))
        return combo

    def _make_buttons(self) -> QWidget:
        self.save = button(
            "recipe_save",
            tr("Save recipe"),
            tr("Saves this recipe in your own list of models; the model's files stay unchanged."),
            self._save_recipe,
            primary=True,
        )
        problem = self._setting.place_problem
        self.beside = button(
            "recipe_beside",
            tr("Write next to model"),
            problem
            or tr(
                "Writes {place} next to the model, so that copying the model also copies the "
                "recipe.",
                place=self._setting.place,
            ),
            lambda: self._write_beside(replacing=False),
        )
        self.beside.setEnabled(not problem)
        self.replace_there = button(
            "recipe_replace",
            tr("Replace recipe"),
            tr("Replaces the recipe next to the model."),
            lambda: self._write_beside(replacing=True),
        )
        self.replace_there.hide()
        self.cancel = button(
            "recipe_cancel", tr("Cancel"), tr("Closes without saving."), self.reject
        )
        for one in (self.beside, self.replace_there, self.cancel):
            # Otherwise Enter in a field could press it.
            one.setAutoDefault(False)
        return row(self.save, self.beside, self.replace_there, 1, self.cancel)

    def _fill_form(self, recipe: Recipe) -> None:
        lines = len(self.form.channels.combos)
        unfit = []
        if recipe.channels and len(recipe.channels) != lines:
            texts = ", ".join(recipe.channels)
            unfit.append(
                tr_n(
                    "makes {n} channel ({texts}), but the model has {lines}: check the channels "
                    "below",
                    "makes {n} channels ({texts}), but the model has {lines}: check the channels "
                    "below",
                    len(recipe.channels),
                    texts=texts,
                    lines=lines,
                )
            )
            padded = (*recipe.channels, *(f"p{k}" for k in range(len(recipe.channels), lines)))
            recipe = replace(recipe, channels=padded[:lines])
        absent = [fold for fold in recipe.folds or () if fold not in self.form.folds]
        if absent:
            unfit.append(
                tr(
                    "averages the folds {names}, which the model does not have, so they are left "
                    "out",
                    names=", ".join(absent),
                )
            )
        name = recipe.title or tr("This recipe")
        self.say("\n".join(f"{name} {reason}" for reason in unfit), "warning")
        self.form.show_recipe(recipe)

    def _read_form(self) -> Recipe | str:
        return self.form.problem or self.form.recipe()

    def _update_buttons(self) -> None:
        problem = self.form.problem
        self.save.setEnabled(not problem)
        self.beside.setEnabled(not problem and not self._setting.place_problem)
        self.replace_there.hide()

    def _save_recipe(self) -> None:
        if not self.form.problem:
            self.save_wanted.emit(self.form.recipe())

    def _write_beside(self, *, replacing: bool) -> None:
        self.beside_wanted.emit(self.form.recipe(), replacing)


_LANE: Final = "recipe"


class RecipeFlow(WindowPart):
    """A component that opens one recipe editor at a time; `dialog` is the open editor."""

    def __init__(self, context: WindowContext, page: PredictPage, models: PredictModels) -> None:
        super().__init__(context)
        self._page = page
        self._models = models
        self.dialog: RecipeDialog | None = None
        page.options.edit_wanted.connect(self.open)

    def open(self) -> None:
        """Open the editor for the selected model's recipe with the settings on the page."""
        entry = self._models.entry
        if entry is None or entry.problem or self.dialog is not None:
            return
        chosen = self._page.options.choices().recipe

        look = self._services.predict.open_recipe
        self._jobs.start(
            _LANE,
            tr("Opening the recipe"),
            lambda: look(entry, chosen),
            self._show_dialog,
            still=lambda: self.dialog is None,
            shown=False,
        )

    def _show_dialog(self, setting: RecipeSetting) -> None:
        self.dialog = RecipeDialog(setting, self._page)
        calls, entry = self._services.predict, setting.entry
        self.dialog.save_wanted.connect(
            lambda recipe: self._start_saving(lambda: calls.keep_recipe(entry, recipe))
        )
        self.dialog.beside_wanted.connect(
            lambda recipe, replacing: self._start_saving(
                lambda: calls.write_beside(entry, recipe, overwrite=replacing)
            )
        )
        self.dialog.finished.connect(self._on_closed)
        self.dialog.open()

    def _start_saving(self, make_job: Callable[[], ModelEntry]) -> None:
        doing = tr("Saving the recipe")

        def take(entry: ModelEntry) -> None:
            self._models.replace(entry)
            if self.dialog is not None:
                self.dialog.done_saving()

        def refuse(error: Exception) -> None:
            if self.dialog is None:
                self._notifier.fail(doing, error)
            elif isinstance(error, SaveConflictError):
                self.dialog.offer_replacing(str(error))
            else:
                self.dialog.say(plain_text(error))

        self._jobs.start(_LANE, doing, make_job, take, failed=refuse, shown=False)

    def _on_closed(self, _result: int = 0) -> None:
        if self.dialog is not None:
            self.dialog.deleteLater()
            self.dialog = None
