"""The section Motion at work: registers the open case in a thread, switches what is shown."""

from dataclasses import replace
from typing import Any, Final

from qtpy.QtCore import QObject

from napari_mamamia.core.case import Case
from napari_mamamia.kinetics.registration.settings import RegistrationSettings, TransformKind
from napari_mamamia.services.register.case import RegisteredCase
from napari_mamamia.widgets.base.jobs import JobRunner
from napari_mamamia.widgets.base.kinetic_services import KineticServices
from napari_mamamia.widgets.base.notify import Failed, Finished, Outcome
from napari_mamamia.widgets.base.session import Session
from napari_mamamia.widgets.kinetics.case import KineticCase
from napari_mamamia.widgets.kinetics.motion import MotionControls
from napari_mamamia.widgets.viewer.scene import Scene

_LANE: Final = "register"
_NOTE: Final = "registered"


class MotionFlow(QObject):
    """Registered phases belong to the session: image, subtraction, maps, curves and FTV use them.

    Models, editing, scores and exports keep the phases of the files.
    """

    def __init__(
        self,
        controls: MotionControls,
        session: Session,
        scene: Scene,
        state: KineticCase,
        jobs: JobRunner,
        services: KineticServices,
    ) -> None:
        super().__init__()
        self._controls = controls
        self._session = session
        self._scene = scene
        self._state = state
        self._jobs = jobs
        self._services = services
        self._of: Any | None = None
        self.found: RegisteredCase | None = None
        controls.register_wanted.connect(self.register)
        controls.cancel_wanted.connect(lambda: jobs.cancel(_LANE))
        controls.use_wanted.connect(self.use)
        session.case_changed.connect(self._follow)
        self._follow()

    def register(self, kind: TransformKind) -> None:
        """Register the open case; the mask shown takes no part in the fit."""
        case, timed = self._session.case, self._state.case
        if case is None or timed is None:
            self._controls.say("Open a case first, and wait until it is read.", warns=True)
            return
        self.use(False)
        mask = self._state.shown_mask()
        own = replace(case, phases=timed.phases)
        buffer = None if mask is None else mask.buffer
        settings = RegistrationSettings(transform=kind)

        def work() -> RegisteredCase:
            return self._services.register(own, buffer, settings)

        def done(outcome: Outcome[RegisteredCase]) -> None:
            self._end(case, outcome)

        self._take(None)
        self._controls.show_progress(None)
        self._jobs.start(
            _LANE, "Registering phases", work, done, on_progress=self._controls.show_progress
        )

    def use(self, wanted: bool) -> None:
        """Show registered phases and compute from them, or go back to the case's own."""
        case, found = self._session.case, self.found
        if case is None or (found is None and wanted):
            return
        if wanted == (self._session.registered is not None):
            return
        if wanted and found is not None:
            shown = replace(case, signal=found.case.signal, warnings=found.case.warnings)
            self._scene.replace_phases(shown, _NOTE)
            self._session.use_registered(shown)
        else:
            self._scene.replace_phases(case, "")
            self._session.use_registered(None)
        self._controls.show_used(wanted)

    # -------------------------------------------------------------------- inner

    def _end(self, case: Case, outcome: Outcome[RegisteredCase]) -> None:
        self._controls.show_idle()
        now = self._session.case
        if now is None or now.signal is not case.signal:
            return
        if isinstance(outcome, Finished):
            self._take(outcome.result)
        elif isinstance(outcome, Failed):
            self._controls.say(str(outcome.error), warns=True)
        else:
            self._controls.say("Cancelled: the phases are as they were.")

    def _follow(self) -> None:
        """Forget what was found of another case."""
        case = self._session.case
        signal = None if case is None else case.signal
        if signal is not self._of:
            self._of = signal
            self._jobs.cancel(_LANE)
            self._take(None)

    def _take(self, found: RegisteredCase | None) -> None:
        self.found = found
        self._controls.show_used(False)
        self._controls.show_found(found)
