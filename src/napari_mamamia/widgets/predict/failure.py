"""Remedies after a failure on the Predict page: suitable models, or conversion in a sandbox."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

from qtpy.QtWidgets import QFileDialog

from napari_mamamia.core.errors import RefusedCheckpointError
from napari_mamamia.core.texts import tr
from napari_mamamia.io.workspace.workspace import file_name
from napari_mamamia.segmentation.model.planner import (
    OutOfMemoryError,
    OverLimitError,
    duration_text,
)
from napari_mamamia.segmentation.run.registry import ModelEntry
from napari_mamamia.services.predict.convert_model import Converted
from napari_mamamia.services.predict.offers import Offer
from napari_mamamia.widgets.base.notify import plain_text
from napari_mamamia.widgets.controls.wrapped import breakable
from napari_mamamia.widgets.predict.help import Remedy
from napari_mamamia.widgets.predict.models import PredictModels
from napari_mamamia.widgets.predict.page import PredictPage
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart

_LANE: Final = "help"
_CONVERT: Final = "convert"
_REFUSED: Final = tr(
    "In a sandbox (no network, no access to your files) the weights can be extracted into a new "
    "folder that contains no code."
)


class PredictFailure(WindowPart):
    """Component that suggests remedies after an error; nothing runs without a click."""

    def __init__(self, context: WindowContext, page: PredictPage, models: PredictModels) -> None:
        super().__init__(context)
        self._page = page
        self._models = models
        self._is_told = False
        models.changed.connect(self.forget)
        models.name_taken.connect(self._offer_name)

    def tell(self, error: Exception) -> None:
        """Show the error of a run on the page until the user makes another choice."""
        self._is_told = True
        self.offer_help(error)

    def offer_help(self, error: Exception) -> None:
        """Show the remedies for an error, if there are any."""
        if isinstance(error, RefusedCheckpointError):
            self._ask_for_room(str(error).split(". ")[0])
        elif isinstance(error, OverLimitError | OutOfMemoryError):
            self._ask_for_models()

    def forget(self) -> None:
        """Clear an error and its remedies after the user made another choice."""
        self._jobs.cancel(_LANE)
        self._page.help.show_remedies(())
        if self._is_told:
            self._is_told = False
            self._page.show_result("", (), 0)

    def _offer_name(self, path: Path, name: str) -> None:
        """Suggest adding a model under a different name, because its name is taken."""
        add = Remedy(
            tr("Add model as {name}", name=name),
            tr("Adds {path} to the list under this name.", path=path),
            partial(self._models.add, path, name),
        )
        self._page.help.show_remedies((add,), tr("Another model in the list has this name."))

    # ------------------------------------------------------------- another model

    def _ask_for_models(self) -> None:
        case = self._session.case
        if case is None:
            return
        choices = self._page.options.choices()
        names = self._models.names

        look = partial(self._services.predict.other_models, case, choices, names)
        self._jobs.start(
            _LANE, tr("Searching for models that fit"), look, self._show_models, shown=False
        )

    def _show_models(self, found: Sequence[Offer]) -> None:
        remedies = [
            Remedy(
                tr(
                    "Use {name} (about {duration_text})",
                    name=one.name,
                    duration_text=duration_text(one.seconds),
                ),
                tr("Selects {title}, which Start then runs.", title=one.title),
                partial(self._page.models.choose, one.name),
            )
            for one in found
        ]
        message = (
            tr("These models fit this case:")
            if found
            else tr("No other model in the list fits this case.")
        )
        self._page.help.show_remedies(remedies, message)

    # --------------------------------------------------------------- a closed room

    def _ask_for_room(self, wanted: str) -> None:
        entry = self._models.entry
        if entry is None:
            return
        look = self._services.predict.isolation_reason
        show = partial(self._show_room, entry, wanted)
        self._jobs.start(
            _LANE,
            tr("Checking for a sandbox"),
            look,
            show,
            failed=lambda error: show(plain_text(error)),
            shown=False,
        )

    def _show_room(self, entry: ModelEntry, wanted: str, reason: str) -> None:
        message = f"{breakable(wanted)}.\n{_REFUSED}"
        if reason:
            self._page.help.show_remedies(
                (),
                tr(
                    "{message}\nThis is not possible on this computer: {reason}",
                    message=message,
                    reason=reason,
                ),
            )
            return
        offer = Remedy(
            tr("Convert in a sandbox…"),
            tr(
                "Asks for a folder, writes the converted model into a new folder inside it, and "
                "adds that model to the list. The original stays unchanged."
            ),
            partial(self._choose_place, entry),
        )
        self._page.help.show_remedies((offer,), message)

    def _choose_place(self, entry: ModelEntry) -> None:
        chosen = QFileDialog.getExistingDirectory(
            self._page, tr("Choose the folder for the converted model")
        )
        if chosen:
            self.convert(entry, Path(chosen))

    def convert(self, entry: ModelEntry, place: Path) -> None:
        """Convert a model into a new folder inside `place`, and add the result."""
        name = file_name(f"{entry.name}_converted", tr("the name of a model"))

        page, doing = self._page, tr("Converting {name}", name=entry.name)

        def show(model: Converted) -> None:
            page.show_result(
                tr(
                    "Converted ({isolation}): {folder}",
                    isolation=model.isolation,
                    folder=model.folder,
                ),
                (),
                0,
            )
            self._models.add(model.folder, name)

        def refuse(error: Exception) -> None:
            page.show_result(tr("failed: {plain_text}", plain_text=plain_text(error)), (), 0)
            self._notifier.fail(doing, error)

        self._jobs.start(
            _CONVERT,
            doing,
            lambda: self._services.predict.convert(entry, place / name),
            show,
            failed=refuse,
            stopped=lambda: page.show_result(tr("stopped: nothing was written"), (), 0),
            ended=lambda: page.set_running(False),
        )
        self._page.set_running(True, "converting…")

    def cancel(self) -> None:
        """Stop the conversion and discard its files."""
        self._jobs.stop(_CONVERT)
