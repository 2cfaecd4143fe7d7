"""Page Predict at work: model card, phases it gets, start, stop, prompts, candidates."""

from typing import Final

from qtpy.QtCore import QObject

from napari_mamamia.core.case import Case
from napari_mamamia.core.errors import MamamiaError
from napari_mamamia.kinetics.timing import PhaseChoice
from napari_mamamia.segmentation.segmenter import Prompt
from napari_mamamia.widgets.predict_page import ModelCard, PredictPage
from napari_mamamia.widgets.predicting import Answer, Predicting
from napari_mamamia.widgets.prompts import PromptTool
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
        predicting: Predicting,
        prompts: PromptTool,
        services: Services,
    ) -> None:
        super().__init__()
        self._page = page
        self._session = session
        self._predicting = predicting
        self._prompts = prompts
        self._services = services
        self._segmenter = services.segmenters()[0]
        self._shown_case = ""
        page.start_wanted.connect(lambda: self.start(None))
        page.cancel_wanted.connect(predicting.cancel)
        page.prompt_wanted.connect(prompts.set_mode)
        page.candidate_chosen.connect(predicting.choose)
        prompts.mode_changed.connect(page.set_prompt)
        prompts.given.connect(self.start)
        predicting.running_changed.connect(page.set_running)
        predicting.answered.connect(self._show_answer)
        predicting.ended.connect(lambda text: page.show_result(text, (), 0))
        session.case_changed.connect(self._show_case)
        self._show_case()

    def start(self, prompt: Prompt | None) -> None:
        """Predict the open case, if it is ready."""
        case = self._session.case
        if case is not None and not self._problem(case):
            self._predicting.start(self._segmenter, prompt)

    def _show_case(self) -> None:
        case = self._session.case
        self._page.need("" if case else "Open a case first.")
        if case is None:
            return
        self._page.show_model(self._card(case))
        problem = self._problem(case)
        mapping = "" if problem else mapping_text(case, self._services.choose_phases(case.times_s))
        self._page.show_inputs(mapping, problem)
        if case.case_id != self._shown_case:
            self._shown_case = case.case_id
            self._prompts.set_mode("")
            self._page.show_result("", (), 0)

    def _problem(self, case: Case) -> str:
        """Return why the model cannot run on the case now, "" if it can."""
        try:
            case.require_phases(2)
        except MamamiaError as error:
            return str(error)
        return ""

    def _card(self, case: Case) -> ModelCard:
        megavoxels = case.signal[0].size / 1e6
        seconds = max(1, round(megavoxels * _SECONDS_PER_MEGAVOXEL))
        return ModelCard(
            self._segmenter.title,
            self._segmenter.note,
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


def _phase(case: Case, phase: int) -> str:
    time_s = case.times_s[phase]
    return f"phase {phase}" if time_s is None or phase == 0 else f"phase {phase} ({time_s:.0f} s)"
