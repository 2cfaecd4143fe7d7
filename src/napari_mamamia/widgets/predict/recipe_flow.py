"""Controller of the recipe editor: open the selected model's recipe, and save the result."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from qtpy.QtCore import Qt, Signal
from qtpy.QtGui import QCloseEvent, QShowEvent
from qtpy.QtWidgets import (
    QComboBox,
    QDialog,
    QFrame,
    QLabel,
    QMessageBox,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from napari_mamamia.core.errors import SaveConflictError
from napari_mamamia.core.texts import tr, tr_n
from napari_mamamia.segmentation.model.recipe import Recipe
from napari_mamamia.segmentation.run.registry import ModelEntry
from napari_mamamia.services.predict.model_recipes import RecipeSetting
from napari_mamamia.widgets.base.notify import plain_text
from napari_mamamia.widgets.controls.controls import button, label, named, row, set_level
from napari_mamamia.widgets.predict.models import PredictModels
from napari_mamamia.widgets.predict.page import PredictPage
from napari_mamamia.widgets.predict.recipe_form import RecipeForm
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart

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
        layout = QVBoxLayout(self)
        layout.addWidget(row(QLabel(tr("template")), self.start, 1))
        layout.addWidget(area)
        layout.addWidget(self.said)
        layout.addWidget(self._make_buttons())
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
        combo: QComboBox = named(
            QComboBox(),
            "recipe_start",
            tr("Fills all fields from another recipe; nothing is saved yet."),
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
    """Component that opens one recipe editor at a time; `dialog` is the open editor."""

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
