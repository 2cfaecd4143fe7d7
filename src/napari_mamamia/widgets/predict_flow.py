"""Page Predict at work: model card, inputs, start, stop, prompts, candidates, doubtful places."""

from collections.abc import Sequence
from typing import Final

from qtpy.QtCore import QObject

from napari_mamamia.core.case import Case
from napari_mamamia.core.errors import MamamiaError
from napari_mamamia.kinetics.timing import PhaseChoice
from napari_mamamia.segmentation.segmenter import Prompt
from napari_mamamia.services.doubt import DoubtfulPlace
from napari_mamamia.widgets.jobs import JobRunner
from napari_mamamia.widgets.notify import Notifier
from napari_mamamia.widgets.predict_all import PredictAll
from napari_mamamia.widgets.predict_models import PredictModels
from napari_mamamia.widgets.predict_page import ModelCard, PredictPage
from napari_mamamia.widgets.predicting import Answer, Predicting
from napari_mamamia.widgets.prompts import PromptTool
from napari_mamamia.widgets.scene import Scene
from napari_mamamia.widgets.service_record import Services
from napari_mamamia.widgets.session import Session

__all__ = ["PredictFlow", "mapping_text"]

_SECONDS_PER_MEGAVOXEL: Final = 0.15
"""Measured on 2 cores: 160 x 448 x 448 voxels in 4.8 s; only the estimate rests on it."""


def mapping_text(case: Case, choice: PhaseChoice) -> str:
    """Return which phase the model gets as what, in one line."""
    parts = [f"{_phase(case, 0)} → before contrast"]
    if choice.early is not None:
        parts.append(f"{_phase(case, choice.early)} → early")
    parts.append("no late phase" if choice.late is None else f"{_phase(case, choice.late)} → late")
    return " · ".join(parts)


class PredictFlow(QObject):
    """Joins the page, the session and predicting."""

    def __init__(
        self,
        page: PredictPage,
        session: Session,
        scene: Scene,
        predicting: Predicting,
        prompts: PromptTool,
        jobs: JobRunner,
        services: Services,
        notifier: Notifier,
    ) -> None:
        super().__init__()
        self._page = page
        self._session = session
        self._scene = scene
        self._predicting = predicting
        self._prompts = prompts
        self._services = services
        self._places: Sequence[DoubtfulPlace] = ()
        self._shown_case = ""
        self.models = PredictModels(page, jobs, services, notifier, lambda: session.case)
        self.models.setParent(self)
        self.all = PredictAll(page, session, self.models, jobs, services, notifier)
        self.all.setParent(self)
        page.start_wanted.connect(lambda: self.start(None))
        page.cancel_wanted.connect(self._cancel)
        page.prompt_wanted.connect(prompts.set_mode)
        page.candidate_chosen.connect(predicting.choose)
        page.place_wanted.connect(self._go_to_place)
        prompts.mode_changed.connect(page.set_prompt)
        prompts.given.connect(self.start)
        predicting.running_changed.connect(page.set_running)
        predicting.answered.connect(self._show_answer)
        predicting.ended.connect(lambda text: page.show_result(text, (), 0))
        session.case_changed.connect(self._show_case)
        self.models.changed.connect(self._show_case)
        self._show_case()

    def start(self, prompt: Prompt | None) -> None:
        """Predict the open case, if it is ready."""
        case = self._session.case
        if case is not None and not self._problem(case):
            self._predicting.start(self.models.segmenter(), prompt)

    def next_place(self) -> bool:
        """Go to the next doubtful place; False where none are shown."""
        if self._page.doubt.is_shown:
            self._page.doubt.next()
        return self._page.doubt.is_shown

    def close(self) -> None:
        """End the process of the models."""
        self.models.close()

    def _cancel(self) -> None:
        self._predicting.cancel()
        self.all.cancel()

    def _go_to_place(self, number: int) -> None:
        if 0 <= number < len(self._places):
            self._scene.go_to(self._places[number].voxel)

    def _show_case(self) -> None:
        case = self._session.case
        self._page.need("" if case else "Open a case first.")
        if case is None:
            return
        self._page.show_model(self._card(case))
        problem = self._problem(case)
        self._page.show_inputs("" if problem else self._mapping(case), problem)
        if case.case_id != self._shown_case:
            self._shown_case = case.case_id
            self._prompts.set_mode("")
            self._page.show_result("", (), 0)
            self._show_places(None)
        if self.models.is_trained and case.is_loaded and not problem:
            self.models.look_soon()

    def _mapping(self, case: Case) -> str:
        if self.models.is_trained:
            return self.models.inputs()
        return mapping_text(case, self._services.choose_phases(case.times_s))

    def _problem(self, case: Case) -> str:
        """Return why the model cannot run on the case now, "" if it can."""
        missing = self.models.problem()
        if missing:
            return missing
        try:
            case.require_phases(self.models.phases_needed)
        except MamamiaError as error:
            return str(error)
        return ""

    def _card(self, case: Case) -> ModelCard:
        if self.models.is_trained:
            title, note = self.models.title_and_note()
            return ModelCard(title, note, self.models.needs, is_trained=True)
        own = self._services.segmenters()[0]
        megavoxels = case.signal[0].size / 1e6
        seconds = max(1, round(megavoxels * _SECONDS_PER_MEGAVOXEL))
        return ModelCard(
            own.title,
            own.note,
            "Needs phase 0 and one phase after contrast; no weights, no GPU. "
            f"About {seconds} s for this case.",
        )

    def _show_answer(self, answer: Answer) -> None:
        made = answer.prediction
        if not made.candidates:
            text = "Nothing was found."
        else:
            saved = "not saved" if answer.not_saved else "saved"
            text = f"{len(made.candidates)} candidate(s) in {made.seconds:.1f} s, {saved}."
        self._page.show_result("\n".join((text, *made.notes)), made.candidates, answer.chosen)
        self._show_places(answer)
        if self.models.is_trained:
            self.models.look_again()

    def _show_places(self, answer: Answer | None) -> None:
        doubt = None if answer is None else answer.doubt
        self._places = doubt.places if doubt else ()
        self._page.doubt.show_doubt(doubt)


def _phase(case: Case, phase: int) -> str:
    time_s = case.times_s[phase]
    return f"phase {phase}" if time_s is None or phase == 0 else f"phase {phase} ({time_s:.0f} s)"
