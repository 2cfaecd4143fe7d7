"""The editor of recipes at work: opening it for the chosen model, saving what comes out."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from qtpy.QtCore import QObject, Qt, Signal
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
from napari_mamamia.segmentation.model.recipe import Recipe
from napari_mamamia.segmentation.run.registry import ModelEntry
from napari_mamamia.services.predict.model_recipes import RecipeSetting
from napari_mamamia.widgets.base.jobs import JobRunner
from napari_mamamia.widgets.base.notify import Failed, Finished, Notifier, Outcome, plain_text
from napari_mamamia.widgets.base.service_record import Services
from napari_mamamia.widgets.controls.controls import button, label, named, row, set_level
from napari_mamamia.widgets.predict.models import PredictModels
from napari_mamamia.widgets.predict.page import PredictPage
from napari_mamamia.widgets.predict.recipe_form import RecipeForm

# The editor of a model's recipe: a form, a recipe to start from, saving, a question at last.

_WIDTH, _HEIGHT = 560, 780


def ask_unsaved(parent: QWidget) -> str:
    """Ask what becomes of unsaved changes; return "save", "drop" or "stay"."""
    kinds = QMessageBox.StandardButton
    answer = QMessageBox.question(
        parent,
        "Recipe not saved",
        "The recipe was changed and not saved. Save it?",
        kinds.Save | kinds.Discard | kinds.Cancel,
        kinds.Save,
    )
    return {kinds.Save: "save", kinds.Discard: "drop"}.get(answer, "stay")


class RecipeDialog(QDialog):
    """`save_wanted` carries a recipe for the user's list of models.

    `beside_wanted` carries a recipe that is to lie beside the model, and whether one that is there
    may be replaced. `ask` is asked where changes would be lost.
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
        self.setWindowTitle(f"Recipe of {setting.entry.name}")
        self.resize(_WIDTH, _HEIGHT)
        self._setting = setting
        self._ask = ask
        self.form = RecipeForm(setting.entry.card, setting.recipe)
        self._saved = self._now()
        self.start = self._make_start()
        self.said = label("recipe_said", tip="What became of the last click")
        area: QScrollArea = named(QScrollArea(), "recipe_scroll", "")
        area.setWidgetResizable(True)
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setWidget(self.form)
        self.area = area
        layout = QVBoxLayout(self)
        layout.addWidget(row(QLabel("start from"), self.start, 1))
        layout.addWidget(area)
        layout.addWidget(self.said)
        layout.addWidget(self._make_buttons())
        self.form.changed.connect(self._changed)
        self.say("")
        self._changed()

    @property
    def is_changed(self) -> bool:
        """Whether something would be lost by closing."""
        return self._now() != self._saved

    def say(self, text: str, level: str = "error") -> None:
        """Show what became of saving."""
        self.said.setText(text)
        set_level(self.said, level)
        self.said.setVisible(bool(text))

    def offer_replacing(self, text: str) -> None:
        """Say that a recipe lies beside the model, and offer to replace it."""
        self.say(text, "warning")
        self.replace_there.show()

    def done_saving(self) -> None:
        """Close: everything is saved."""
        self._saved = self._now()
        self.accept()

    def showEvent(self, event: QShowEvent) -> None:
        """Take the width that the form needs in this style, beside a scroll bar."""
        super().showEvent(event)
        beside = self.area.verticalScrollBar().sizeHint().width() + 4
        self.area.setMinimumWidth(self.form.minimumSizeHint().width() + beside)

    def reject(self) -> None:
        """Close without saving, or ask first where changes would be lost."""
        answer = self._ask(self) if self.is_changed else "drop"
        if answer == "save":
            self._save()
        elif answer == "drop":
            super().reject()

    def closeEvent(self, event: QCloseEvent) -> None:
        """Close as Cancel does."""
        event.ignore()
        self.reject()

    # --------------------------------------------------------------------- inner

    def _make_start(self) -> QComboBox:
        made: QComboBox = named(
            QComboBox(),
            "recipe_start",
            "Fills all fields from another recipe; nothing is saved yet",
        )
        has_own = self._setting.entry.card.has_recipe
        made.addItem("what is in use", self._setting.recipe)
        made.addItem(
            "the one beside the model" if has_own else "none: channel k is phase k",
            self._setting.own,
        )
        for name, recipe in self._setting.presets:
            made.addItem(f"{name} ({recipe.title})", recipe)
        made.activated.connect(lambda _place: self._fill(made.currentData()))
        return made

    def _make_buttons(self) -> QWidget:
        self.save = button(
            "recipe_save",
            "Save",
            "Keeps this recipe in your own list of models; the model's files stay as they are",
            self._save,
            primary=True,
        )
        problem = self._setting.place_problem
        self.beside = button(
            "recipe_beside",
            "Write beside the model",
            problem or f"Writes {self._setting.place}, which goes along when the model is copied",
            lambda: self._write(replacing=False),
        )
        self.beside.setEnabled(not problem)
        self.replace_there = button(
            "recipe_replace",
            "Replace it",
            "Replaces the recipe that lies beside the model",
            lambda: self._write(replacing=True),
        )
        self.replace_there.hide()
        self.cancel = button("recipe_cancel", "Cancel", "Closes without saving", self.reject)
        for one in (self.beside, self.replace_there, self.cancel):
            one.setAutoDefault(False)
        return row(self.save, self.beside, self.replace_there, 1, self.cancel)

    def _fill(self, recipe: Recipe) -> None:
        """Fill the form; what of the recipe does not fit the model is left out and said."""
        lines = len(self.form.channels.combos)
        unfit = []
        if recipe.channels and len(recipe.channels) != lines:
            made = ", ".join(recipe.channels)
            unfit.append(
                f"makes {len(recipe.channels)} channel(s) ({made}), the model takes {lines}: look "
                "at the channels below"
            )
            padded = (*recipe.channels, *(f"p{k}" for k in range(len(recipe.channels), lines)))
            recipe = replace(recipe, channels=padded[:lines])
        absent = [fold for fold in recipe.folds or () if fold not in self.form.folds]
        if absent:
            unfit.append(f"averages fold(s) {', '.join(absent)}, which the model has not: left out")
        name = recipe.title or "This recipe"
        self.say("\n".join(f"{name} {said}" for said in unfit), "warning")
        self.form.show_recipe(recipe)

    def _now(self) -> Recipe | str:
        """Return the recipe as it stands, or its problem."""
        return self.form.problem or self.form.recipe()

    def _changed(self) -> None:
        problem = self.form.problem
        self.save.setEnabled(not problem)
        self.beside.setEnabled(not problem and not self._setting.place_problem)
        self.replace_there.hide()

    def _save(self) -> None:
        if not self.form.problem:
            self.save_wanted.emit(self.form.recipe())

    def _write(self, *, replacing: bool) -> None:
        self.beside_wanted.emit(self.form.recipe(), replacing)


_LANE: Final = "recipe"


class RecipeFlow(QObject):
    """Opens one editor at a time; `dialog` is the one that is open."""

    def __init__(
        self,
        page: PredictPage,
        models: PredictModels,
        jobs: JobRunner,
        services: Services,
        notifier: Notifier,
    ) -> None:
        super().__init__()
        self._page = page
        self._models = models
        self._jobs = jobs
        self._services = services
        self._notifier = notifier
        self.dialog: RecipeDialog | None = None
        page.options.edit_wanted.connect(self.open)

    def open(self) -> None:
        """Open the editor for the chosen model's recipe as it is set on the page."""
        entry = self._models.entry
        if entry is None or entry.problem or self.dialog is not None:
            return
        chosen = self._page.options.choices().recipe

        def done(outcome: Outcome[RecipeSetting]) -> None:
            if isinstance(outcome, Finished) and self.dialog is None:
                self._show(outcome.result)
            elif isinstance(outcome, Failed):
                self._notifier.fail("Opening the recipe", outcome.error)

        look = self._services.predict.open_recipe
        self._jobs.start(
            _LANE, "Opening the recipe", lambda: look(entry, chosen), done, shown=False
        )

    def _show(self, setting: RecipeSetting) -> None:
        self.dialog = RecipeDialog(setting, self._page)
        calls, entry = self._services.predict, setting.entry
        self.dialog.save_wanted.connect(
            lambda recipe: self._run(lambda: calls.keep_recipe(entry, recipe))
        )
        self.dialog.beside_wanted.connect(
            lambda recipe, replacing: self._run(
                lambda: calls.write_beside(entry, recipe, overwrite=replacing)
            )
        )
        self.dialog.finished.connect(self._closed)
        self.dialog.open()

    def _run(self, make_job: Callable[[], ModelEntry]) -> None:
        def done(outcome: Outcome[ModelEntry]) -> None:
            dialog = self.dialog
            if isinstance(outcome, Finished):
                self._models.replace(outcome.result)
                if dialog is not None:
                    dialog.done_saving()
            elif isinstance(outcome, Failed) and dialog is not None:
                if isinstance(outcome.error, SaveConflictError):
                    dialog.offer_replacing(str(outcome.error))
                else:
                    dialog.say(plain_text(outcome.error))

        self._jobs.start(_LANE, "Saving the recipe", make_job, done, shown=False)

    def _closed(self, _result: int = 0) -> None:
        if self.dialog is not None:
            self.dialog.deleteLater()
            self.dialog = None
