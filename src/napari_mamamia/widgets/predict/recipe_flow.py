"""The editor of recipes at work: opening it for the chosen model, saving what comes out."""

from collections.abc import Callable
from typing import Final

from qtpy.QtCore import QObject

from napari_mamamia.core.errors import SaveConflictError
from napari_mamamia.core.progress import Job
from napari_mamamia.segmentation.run.registry import ModelEntry
from napari_mamamia.services.predict.model_recipes import RecipeSetting
from napari_mamamia.widgets.base.jobs import JobRunner, job_of
from napari_mamamia.widgets.base.notify import Failed, Finished, Notifier, Outcome, plain_text
from napari_mamamia.widgets.base.service_record import Services
from napari_mamamia.widgets.predict.models import PredictModels
from napari_mamamia.widgets.predict.page import PredictPage
from napari_mamamia.widgets.predict.recipe_dialog import RecipeDialog

__all__ = ["RecipeFlow"]

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
            _LANE, "Opening the recipe", lambda: job_of(look, entry, chosen), done, shown=False
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

    def _run(self, make_job: Callable[[], Job[ModelEntry]]) -> None:
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
