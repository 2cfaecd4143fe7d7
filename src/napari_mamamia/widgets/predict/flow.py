"""Controller of the Predict page: input images, time estimate, run and result."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from qtpy.QtCore import QTimer, Signal
from qtpy.QtWidgets import QFileDialog

from napari_mamamia.core.case import Case
from napari_mamamia.core.errors import MamamiaError, RefusedCheckpointError
from napari_mamamia.core.texts import tr
from napari_mamamia.io.workspace.workspace import file_name
from napari_mamamia.segmentation.model.planner import (
    OutOfMemoryError,
    OverLimitError,
    duration_text,
)
from napari_mamamia.segmentation.model.segmenter import Prompt
from napari_mamamia.segmentation.run.planned import Estimate, PlannedSegmenter
from napari_mamamia.segmentation.run.registry import ModelEntry
from napari_mamamia.services.case.context import CaseKey
from napari_mamamia.services.predict.convert_model import Converted
from napari_mamamia.services.predict.input_pictures import InputChannel
from napari_mamamia.services.predict.keep_prediction import KeptPrediction
from napari_mamamia.services.predict.offers import Offer
from napari_mamamia.services.predict.uncertainty import UncertainRegion, Uncertainty
from napari_mamamia.widgets.base.notify import plain_text
from napari_mamamia.widgets.controls.wrapped import breakable
from napari_mamamia.widgets.predict.card import ModelCard
from napari_mamamia.widgets.predict.help import Remedy
from napari_mamamia.widgets.predict.inputs import InputStrip
from napari_mamamia.widgets.predict.models import PredictModels
from napari_mamamia.widgets.predict.page import PredictPage
from napari_mamamia.widgets.predict.predicting import (
    Answer,
    Keeping,
    OlderFound,
    PredictAll,
    Predicting,
)
from napari_mamamia.widgets.predict.recipe_flow import RecipeFlow
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart
from napari_mamamia.widgets.viewer.prompts import PromptTool

_HELP_LANE: Final = "help"
_CONVERT: Final = "convert"
_REFUSED_SAFELY: Final = tr(
    "In a sandbox (no network, no access to your files) the weights can be extracted into a new "
    "folder that contains no code."
)


class PredictFailure(WindowPart):
    """A component that suggests remedies after an error; nothing runs without a click."""

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
        self._jobs.cancel(_HELP_LANE)
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
            _HELP_LANE, tr("Searching for models that fit"), look, self._show_models, shown=False
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
            _HELP_LANE,
            tr("Checking for a sandbox"),
            look,
            show,
            failed=lambda error: show(plain_text(error)),
            shown=False,
        )

    def _show_room(self, entry: ModelEntry, wanted: str, reason: str) -> None:
        message = f"{breakable(wanted)}.\n{_REFUSED_SAFELY}"
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


_ASK_AFTER_MS: Final = 300
_ESTIMATE_LANE: Final = "estimate"
_REFUSED: Final = tr("The checkpoint was not opened; see below.")


class PredictEstimate(WindowPart):
    """A component that estimates time and memory of a run.

    The signal `changed` is emitted when `text` changes, and `failed` carries the error of a
    request. `ready` returns the trained models to estimate, or an empty tuple if a model cannot
    run.
    """

    changed = Signal()
    failed = Signal(object)

    def __init__(
        self,
        context: WindowContext,
        ready: Callable[[], Sequence[PlannedSegmenter]],
    ) -> None:
        super().__init__(context)
        self._ready = ready
        self._looked_at: object | None = None
        self.text = ""
        self._later = QTimer(self)
        self._later.setSingleShot(True)
        self._later.setInterval(_ASK_AFTER_MS)
        self._later.timeout.connect(self._ask_quickly)

    def forget(self) -> None:
        """Discard the estimates after the selection changed."""
        self.text = ""
        self._looked_at = None

    def refresh_later(self) -> None:
        """Schedule an estimate for the open case, unless it was requested before."""
        case = self._session.case
        if case is not None and self._looked_at is not case.signal:
            self._looked_at = case.signal
            self.text = ""
            self._later.start()

    def look_again(self) -> None:
        """Request a new estimate, for example after a run whose speed is now known."""
        self._looked_at = None
        self.refresh_later()

    def _ask_quickly(self) -> None:
        self.ask(measure=False)

    def ask(self, *, measure: bool) -> None:
        """Request an estimate for the open case; only the newest request is used."""
        case = self._session.case
        if case is None or not case.is_loaded or self._jobs.is_running("predict"):
            return
        models = tuple(self._ready())
        if not models:
            return

        def show(estimates: tuple[Estimate, ...]) -> None:
            self.text = _describe_estimates(models, estimates)
            self.changed.emit()

        def refuse(error: Exception) -> None:
            is_refused = isinstance(error, RefusedCheckpointError)
            self.text = _REFUSED if is_refused else plain_text(error)
            self.changed.emit()
            self.failed.emit(error)

        self._jobs.start(
            _ESTIMATE_LANE,
            tr("Measuring a tile") if measure else tr("Estimating the time for the case"),
            lambda: self._estimate_each(models, case, measure=measure),
            show,
            failed=refuse,
            stopped=self.changed.emit,
            shown=measure,
        )

    def close(self) -> None:
        """Stop estimating."""
        self._later.stop()

    def _estimate_each(
        self, models: Sequence[PlannedSegmenter], case: Case, *, measure: bool
    ) -> tuple[Estimate, ...]:
        estimates = []
        for model in models:
            estimates.append(self._services.estimate_case(model, case, measure=measure))
        return tuple(estimates)


def _describe_estimates(models: Sequence[PlannedSegmenter], found: Sequence[Estimate]) -> str:
    lines = []
    for model, estimate in zip(models, found, strict=True):
        lines.append(estimate.text if len(models) == 1 else f"{model.name}: {estimate.text}")
        lines.extend(tr("would reduce: {item}", item=item) for item in estimate.plan.given_up)
    return "\n".join(lines)


# Controller of the pictures of the chosen model's inputs: made in a thread, only the newest
# request counts.

_LANE = "inputs"


class PredictPictures(WindowPart):
    """A component that shows the input images of the open case for the selected model.

    Each pair of case and model is requested once. `slice_shown` returns the array axis
    perpendicular to the visible slice and the slice index, or None.
    """

    def __init__(self, context: WindowContext, strip: InputStrip) -> None:
        super().__init__(context)
        self._strip = strip
        self._asked: object = None
        self._case: object = None

    def show(self, case: Case, channels: Sequence[InputChannel], *, whole_numbers: bool) -> None:
        """Show the inputs of the case, and create the images if they do not exist yet."""
        self._strip.show_channels(channels)
        if self._case is not case.signal:
            self._case = case.signal
            self._strip.forget_pictures()
        # `_case` keeps the array, so that no other array can get its id.
        request = (id(case.signal), tuple(channels), whole_numbers)
        if not channels or not case.is_loaded or request == self._asked:
            return
        self._asked = request
        index = self._slice_of(case)

        self._jobs.start(
            _LANE,
            tr("Making images of the model's inputs"),
            lambda: self._services.predict.input_pictures(
                case, channels, whole_numbers=whole_numbers, slice_index=index
            ),
            self._strip.show_pictures,
            shown=False,
        )

    def hide(self) -> None:
        """Hide all inputs, for example because the model does not fit the case."""
        self._asked = None
        self._jobs.cancel(_LANE)
        self._strip.show_channels(())

    def _slice_of(self, case: Case) -> int | None:
        shown = self._scene.view.slice_shown()
        across = case.grid.display_frame().order[0]
        return shown[1] if shown is not None and shown[0] == across else None


class PredictFlow(WindowPart):
    """A controller that connects the page, the session and the prediction."""

    def __init__(
        self, context: WindowContext, page: PredictPage, predicting: Predicting, prompts: PromptTool
    ) -> None:
        super().__init__(context)
        self._page = page
        self._predicting = predicting
        self._prompts = prompts
        self._places: Sequence[UncertainRegion] = ()
        self._shown_case: CaseKey = (None, "")
        self._soon = QTimer(self)
        self._soon.setSingleShot(True)
        self._soon.timeout.connect(self._show_card)
        self.models = PredictModels(context, page)
        self.estimate = PredictEstimate(context, self.models.planned)
        self.pictures = PredictPictures(context, page.card.inputs)
        self.failure = PredictFailure(context, page, self.models)
        self.recipes = RecipeFlow(context, page, self.models)
        self.all = PredictAll(context, page, self.models)
        self._connect_page()
        self._show_case()

    def start(self, prompt: Prompt | None) -> None:
        """Predict the open case if the selected model can run."""
        case = self._session.case
        if case is not None and not self._find_problem(case):
            self._predicting.start(self.models.segmenter(), prompt)

    def close(self) -> None:
        """End the worker process of the models when the window closes."""
        self.estimate.close()
        self.models.close()

    # --------------------------------------------------------------------- inner

    def _connect_page(self) -> None:
        page, predicting, prompts = self._page, self._predicting, self._prompts
        page.start_wanted.connect(lambda: self.start(None))
        page.cancel_wanted.connect(self._cancel_all)
        page.prompt_wanted.connect(prompts.set_mode)
        page.candidate_chosen.connect(predicting.choose)
        page.place_wanted.connect(self._go_to_place)
        page.uncertainty.kind_wanted.connect(predicting.map_uncertainty)
        page.card.measure_wanted.connect(lambda: self.estimate.ask(measure=True))
        prompts.mode_changed.connect(page.set_prompt)
        prompts.given.connect(self.start)
        predicting.running_changed.connect(lambda on: page.set_running(on))
        predicting.answered.connect(self._show_answer)
        predicting.older_found.connect(self._ask_of_older)
        predicting.ended.connect(lambda text: page.show_result(text, (), 0))
        predicting.failed.connect(self.failure.tell)
        predicting.uncertainty_found.connect(self._show_places)
        self._session.case_changed.connect(self._show_case)
        self.models.changed.connect(self._choice_changed)
        self.estimate.changed.connect(lambda: page.card.show_needs(self._describe_needs()))
        self.estimate.failed.connect(self.failure.offer_help)

    def _cancel_all(self) -> None:
        self._predicting.cancel()
        self.all.cancel()
        self.failure.cancel()

    def _go_to_place(self, number: int) -> None:
        if 0 <= number < len(self._places):
            self._scene.view.reveal(self._places[number].voxel)

    def _choice_changed(self) -> None:
        self.estimate.forget()
        self._show_case()

    def _show_case(self) -> None:
        case = self._session.case
        self._page.need("" if case else tr("Open a case first."))
        if case is None:
            return
        problem = self._find_problem(case)
        self._page.show_problem(problem)
        if self._session.case_key != self._shown_case:
            self._shown_case = self._session.case_key
            self._prompts.set_mode("")
            self._page.show_result("", (), 0)
            self._show_places(None)
        if self._page.isVisible():
            self._show_card()
        else:
            # not visible: not in the event-loop iteration in which the next case arrives
            self._soon.start()

    def _show_card(self) -> None:
        case = self._session.case
        if case is None:
            return
        self._page.show_model(self._make_card(case))
        if self._find_problem(case):
            self.pictures.hide()
            return
        whole = any(one.recipe.whole_numbers for one in self.models.planned())
        self.pictures.show(case, self.models.channels(case), whole_numbers=whole)
        if self.models.is_trained and case.is_loaded:
            self.estimate.refresh_later()

    def _find_problem(self, case: Case) -> str:
        missing = self.models.problem()
        if missing:
            return missing
        try:
            case.require_phases(self.models.phases_needed)
        except MamamiaError as error:
            return str(error)
        return ""

    def _describe_needs(self) -> str:
        return self.estimate.text or tr("estimating time and memory for this case…")

    def _make_card(self, case: Case) -> ModelCard:
        if not self.models.is_trained:
            return self._own_card(case)
        if self.models.problem():
            return ModelCard(" and ".join(self.models.names), "", "", is_trained=True)
        segmenter = self.models.segmenter()
        facts = [
            self._services.facts_of(entry, planned)
            for entry, planned in zip(self.models.entries, self.models.planned(), strict=True)
        ]
        if self.models.is_several:
            return ModelCard(
                segmenter.title, segmenter.note, self._describe_needs(), is_trained=True
            )
        (one,) = facts
        digest = (
            tr("sha256 {sha256}", sha256=one.sha256[:12])
            if one.sha256
            else tr("sha256 not computed")
        )
        return ModelCard(
            segmenter.title,
            "",
            self._describe_needs(),
            f"{one.what}\n{one.licence} · {digest}\n{one.device}",
            tr("sha256 of the weights: {sha256}", sha256=one.sha256 or "not computed"),
            is_trained=True,
        )

    def _own_card(self, case: Case) -> ModelCard:
        own_model = self.models.own
        seconds = self._services.estimate_seconds(own_model.name, case.signal[0].size)
        if seconds is None:
            time = tr("The time is not known before the first run on this computer.")
        else:
            time = tr("About {seconds} s for this case.", seconds=max(1, round(seconds)))
        needs = tr("Needs one pre-contrast and one post-contrast phase, but no weights and no GPU.")
        return ModelCard(own_model.title, own_model.note, f"{needs} {time}")

    def _show_answer(self, answer: Answer) -> None:
        prediction = answer.prediction
        if not prediction.candidates:
            text = tr("Nothing was found.")
        else:
            saved = tr("not saved") if answer.not_saved else "saved"
            text = tr(
                "Candidates: {n_candidates} ({seconds:.1f} s, {saved}).",
                n_candidates=len(prediction.candidates),
                seconds=prediction.seconds,
                saved=saved,
            )
        message = "\n".join((text, *prediction.notes))
        self._page.show_result(message, prediction.candidates, answer.chosen, prediction.unsure)
        kind = answer.uncertainty.kind if answer.uncertainty is not None else None
        self._page.uncertainty.show_kinds(answer.uncertainty_kinds, kind)
        self._show_places(answer.uncertainty)
        if self.models.is_trained:
            self.estimate.look_again()
        elif self._session.case is not None:
            self._page.show_model(self._make_card(self._session.case))

        if answer.older is not None:
            keep = partial(self._predicting.keep, answer)
            self._ask_keeping(answer.older, keep, tr("The new prediction is shown, but not saved."))

    def _ask_of_older(self, found: OlderFound) -> None:
        run = partial(self._predicting.start, found.segmenter, found.prompt)
        self._page.result.setText("")
        self._ask_keeping(found.older, run, tr("The model has not been run yet."))

    def _ask_keeping(
        self, older: KeptPrediction, go_on: Callable[[Keeping], None], said: str
    ) -> None:
        remedies = (
            Remedy(
                tr("Replace prediction"),
                tr("Replaces the existing prediction with the new one."),
                lambda: go_on(Keeping(older)),
            ),
            Remedy(
                tr("Keep both"),
                tr(
                    "Keeps the existing prediction; the new one gets the model's name and a number."
                ),
                lambda: go_on(Keeping(beside=True)),
            ),
        )
        self._page.help.show_remedies(
            remedies, tr("{older} already exists. {said}", older=older, said=said)
        )

    def _show_places(self, uncertainty: Uncertainty | None) -> None:
        self._places = uncertainty.places if uncertainty else ()
        self._page.uncertainty.show_uncertainty(uncertainty)
