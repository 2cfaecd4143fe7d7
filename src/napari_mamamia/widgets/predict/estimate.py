"""What the chosen model would take for the open case, asked in a thread."""

from collections.abc import Callable, Sequence
from typing import Final

from qtpy.QtCore import QObject, QTimer, Signal

from napari_mamamia.core.case import Case
from napari_mamamia.core.errors import RefusedCheckpointError
from napari_mamamia.segmentation.run.planned import Estimate, PlannedSegmenter
from napari_mamamia.widgets.base.jobs import JobRunner
from napari_mamamia.widgets.base.notify import Failed, Finished, Outcome
from napari_mamamia.widgets.base.service_record import Services

_ASK_AFTER_MS: Final = 300
_LANE: Final = "estimate"
_REFUSED: Final = "Its checkpoint was not opened, see below."


class PredictEstimate(QObject):
    """`changed` when `text` is another; `failed` carries the error of a question.

    `ready` gives the trained models to ask about, none while there is one that cannot run.
    """

    changed = Signal()
    failed = Signal(object)

    def __init__(
        self,
        jobs: JobRunner,
        services: Services,
        case: Callable[[], Case | None],
        ready: Callable[[], Sequence[PlannedSegmenter]],
    ) -> None:
        super().__init__()
        self._jobs = jobs
        self._services = services
        self._case = case
        self._ready = ready
        self._looked_at: object | None = None
        self.text = ""
        self._later = QTimer(self)
        self._later.setSingleShot(True)
        self._later.setInterval(_ASK_AFTER_MS)
        self._later.timeout.connect(lambda: self.ask(measure=False))

    def forget(self) -> None:
        """Drop what is known, because the choice changed."""
        self.text = ""
        self._looked_at = None

    def look_soon(self) -> None:
        """Ask what the open case would take, unless it was asked already."""
        case = self._case()
        if case is not None and self._looked_at is not case.signal:
            self._looked_at = case.signal
            self.text = ""
            self._later.start()

    def look_again(self) -> None:
        """Ask anew, such as after a run, whose pace is known then."""
        self._looked_at = None
        self.look_soon()

    def ask(self, *, measure: bool) -> None:
        """Ask what the open case would take; newest question only."""
        case = self._case()
        if case is None or not case.is_loaded or self._jobs.is_running("predict"):
            return
        models = tuple(self._ready())
        if not models:
            return

        def done(outcome: Outcome[tuple[Estimate, ...]]) -> None:
            if isinstance(outcome, Finished):
                self.text = _said(models, outcome.result)
            elif isinstance(outcome, Failed):
                refused = isinstance(outcome.error, RefusedCheckpointError)
                self.text = _REFUSED if refused else str(outcome.error)
            self.changed.emit()
            if isinstance(outcome, Failed):
                self.failed.emit(outcome.error)

        self._jobs.start(
            _LANE,
            "Measuring a tile" if measure else "Looking at the case",
            lambda: self._each(models, case, measure=measure),
            done,
            shown=measure,
        )

    def close(self) -> None:
        """Ask no more."""
        self._later.stop()

    def _each(
        self, models: Sequence[PlannedSegmenter], case: Case, *, measure: bool
    ) -> tuple[Estimate, ...]:
        found = []
        for one in models:
            found.append(self._services.estimate_case(one, case, measure=measure))
        return tuple(found)


def _said(models: Sequence[PlannedSegmenter], found: Sequence[Estimate]) -> str:
    """Return a line for each model; with several, each under its name."""
    lines = []
    for model, estimate in zip(models, found, strict=True):
        lines.append(estimate.text if len(models) == 1 else f"{model.name}: {estimate.text}")
        lines.extend(f"would give up: {said}" for said in estimate.plan.given_up)
    return "\n".join(lines)
