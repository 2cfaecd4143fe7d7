"""The models of the page Predict at work: the list, adding one, its card and its estimate."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from qtpy.QtCore import QObject, QTimer, Signal

from napari_mamamia.core.case import Case
from napari_mamamia.core.errors import MamamiaError
from napari_mamamia.segmentation.planned import Estimate, PlannedSegmenter
from napari_mamamia.segmentation.registry import ModelEntry
from napari_mamamia.segmentation.segmenter import Segmenter
from napari_mamamia.widgets.jobs import JobRunner, job_of
from napari_mamamia.widgets.model_cards import ModelLine
from napari_mamamia.widgets.notify import Failed, Finished, Notifier, Outcome
from napari_mamamia.widgets.predict_page import PredictPage
from napari_mamamia.widgets.service_record import Services

__all__ = ["PredictModels"]

_ASK_AFTER_MS: Final = 300


class PredictModels(QObject):
    """Which model is chosen and what it would take; `changed` when either is another."""

    changed = Signal()

    def __init__(
        self,
        page: PredictPage,
        jobs: JobRunner,
        services: Services,
        notifier: Notifier,
        case: Callable[[], Case | None],
    ) -> None:
        super().__init__()
        self._page = page
        self._jobs = jobs
        self._services = services
        self._notifier = notifier
        self._case = case
        self._own = services.segmenters()[0]
        self._entries: dict[str, ModelEntry] = {}
        self._chosen = self._own.name
        self._added = ""
        self._host = services.new_host()
        self._estimate = ""
        self._looked_at: object | None = None
        self._later = QTimer(self)
        self._later.setSingleShot(True)
        self._later.setInterval(_ASK_AFTER_MS)
        self._later.timeout.connect(lambda: self.estimate(measure=False))
        page.models.chosen.connect(self.choose)
        page.models.forget_wanted.connect(self.forget)
        page.model_added.connect(self.add)
        page.options.changed.connect(self.ask)
        page.measure_wanted.connect(lambda: self.estimate(measure=True))
        self._show(())
        self.reload()

    # ------------------------------------------------------------------ the choice

    @property
    def is_trained(self) -> bool:
        """Whether the chosen model has weights."""
        return self._chosen in self._entries

    def segmenter(self) -> Segmenter:
        """Return the chosen model as it is set on the page.

        Raises
        ------
        ModelError
            If recipe, folds and model do not fit each other.
        """
        entry = self._entries.get(self._chosen)
        if entry is None:
            return self._own
        return self._services.planned(entry, self._page.options.choices(), self._host)

    def problem(self) -> str:
        """Return why the chosen model cannot be run at all, "" if it can."""
        entry = self._entries.get(self._chosen)
        if entry is None:
            return ""
        if entry.problem:
            return entry.problem
        try:
            self.segmenter()
        except MamamiaError as error:
            return str(error)
        return self._services.why_not_here()

    def choose(self, name: str) -> None:
        """Take a model of the list."""
        self._chosen = name
        self.ask()

    def ask(self) -> None:
        """Tell that the choice changed, and look soon what it would take."""
        self._estimate = ""
        self._looked_at = None
        self.changed.emit()

    def look_soon(self) -> None:
        """Ask what the open case would take, unless it was asked already."""
        case = self._case()
        if case is not None and self._looked_at is not case.signal:
            self._looked_at = case.signal
            self._estimate = ""
            self._later.start()

    def look_again(self) -> None:
        """Ask anew, such as after a run, whose pace is known then."""
        self._looked_at = None
        self.look_soon()

    @property
    def phases_needed(self) -> int:
        """How many phases the chosen model needs at least."""
        entry = self._entries.get(self._chosen)
        made = self.segmenter() if entry is not None else None
        if not isinstance(made, PlannedSegmenter):
            return 2
        return self._services.phases_of(made)

    def title_and_note(self) -> tuple[str, str]:
        """Return the chosen model's title, and what must stand by its results."""
        entry = self._entries.get(self._chosen)
        if entry is None or self.problem():
            return self._chosen, ""
        made = self.segmenter()
        return made.title, made.note

    # ------------------------------------------------------------------- the list

    def reload(self) -> None:
        """List the models anew; their folders are looked at in a thread."""

        def done(outcome: Outcome[tuple[ModelEntry, ...]]) -> None:
            if isinstance(outcome, Finished):
                self._show(outcome.result)
            elif isinstance(outcome, Failed):
                self._notifier.fail("Listing the models", outcome.error)

        look = self._services.listed_models
        self._jobs.start("models", "Listing the models", lambda: job_of(look), done, shown=False)

    def _show(self, entries: tuple[ModelEntry, ...]) -> None:
        self._entries = {entry.name: entry for entry in entries}
        if self._added in self._entries:
            self._chosen, self._added = self._added, ""
        if self._chosen not in self._entries:
            self._chosen = self._own.name
        lines = [ModelLine(self._own.name, self._own.title, "needs no weights")]
        for entry in self._entries.values():
            card = entry.card
            text = f"{len(card.channels)} channel(s), fold(s) {', '.join(card.folds)}"
            sha = f", sha256 {card.sha256[:12]}" if card.sha256 else ""
            lines.append(ModelLine(entry.name, entry.name, text + sha, entry.problem))
        self._page.models.show_models(lines, self._chosen)
        self.ask()

    def add(self, path: Path) -> None:
        """Add the model at a path and choose it."""

        def done(outcome: Outcome[ModelEntry]) -> None:
            if isinstance(outcome, Finished):
                self._added = outcome.result.name
                self._notifier.hint(f"Model {self._added} was added.")
                self.reload()
            elif isinstance(outcome, Failed):
                self._notifier.fail("Adding a model", outcome.error)

        title = f"Looking at {path.name}"
        self._jobs.start("model", title, lambda: self._services.add_model(path), done)

    def forget(self, name: str) -> None:
        """Take a model off the list."""
        if name in self._entries:
            self._services.forget_model(name)
            self.reload()

    # --------------------------------------------------------------- the estimate

    @property
    def needs(self) -> str:
        """What the chosen trained model would take for the open case, as far as it is known."""
        entry = self._entries.get(self._chosen)
        if entry is None:
            return ""
        licence = entry.card.licence.strip().splitlines()
        said = f"licence: {licence[0][:60]}" if licence else ""
        return "\n".join(part for part in (self._estimate or "looking at this case…", said) if part)

    def estimate(self, *, measure: bool) -> None:
        """Ask what the open case would take; newest question only."""
        case = self._case()
        if case is None or not case.is_loaded or not self.is_trained or self.problem():
            return
        if self._jobs.is_running("predict"):
            return
        made = self.segmenter()
        if not isinstance(made, PlannedSegmenter):
            return

        def done(outcome: Outcome[Estimate]) -> None:
            if isinstance(outcome, Finished):
                plan = outcome.result.plan
                given = "".join(f"\nwould give up: {said}" for said in plan.given_up)
                self._estimate = outcome.result.text + given
                self._page.show_needs(self.needs)
            elif isinstance(outcome, Failed):
                self._estimate = str(outcome.error)
                self._page.show_needs(self.needs)

        self._jobs.start(
            "estimate",
            "Measuring a tile" if measure else "Looking at the case",
            lambda: self._services.estimate_case(made, case, measure=measure),
            done,
            shown=measure,
        )

    def inputs(self) -> str:
        """Return which channel gets what, a line each; "" for a model without channels."""
        entry = self._entries.get(self._chosen)
        made = self.segmenter() if entry is not None else None
        if entry is None or not isinstance(made, PlannedSegmenter):
            return ""
        return "\n".join(self._services.facts_of(entry, made).inputs)

    def close(self) -> None:
        """End the process of the models."""
        self._later.stop()
        self._host.close()
