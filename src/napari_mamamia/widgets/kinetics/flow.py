"""Controller of the Kinetics page: maps, values of the visible mask, FTV and motion."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from qtpy.QtCore import QTimer

from napari_mamamia.core.choices import TransformKind
from napari_mamamia.core.texts import tr
from napari_mamamia.kinetics.map_kinds import MapKind
from napari_mamamia.kinetics.registration.settings import RegistrationSettings
from napari_mamamia.kinetics.time_axis import Timing
from napari_mamamia.services.kinetics.ftv_from import FtvUnderSeg
from napari_mamamia.services.kinetics.row import KineticRow
from napari_mamamia.services.kinetics.show_kinetics import FtvAnswer, ShownMap
from napari_mamamia.services.register.case import RegisteredCase
from napari_mamamia.widgets.base.notify import plain_text
from napari_mamamia.widgets.kinetics.case import KineticCase
from napari_mamamia.widgets.kinetics.curves_flow import CurvesFlow
from napari_mamamia.widgets.kinetics.ftv_live import FtvLive
from napari_mamamia.widgets.kinetics.map import KineticMapControl
from napari_mamamia.widgets.kinetics.motion import MotionControls
from napari_mamamia.widgets.kinetics.page import KineticsPage
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart

_NUMBERS: Final = "kinetic_numbers"
_AFTER_MS: Final = 300


class KineticsFlow(WindowPart):
    """The controller of the Kinetics page, which computes only while the page is visible."""

    def __init__(
        self,
        context: WindowContext,
        page: KineticsPage,
        state: KineticCase,
        maps: KineticMapControl,
        ftv: FtvLive,
        curves: CurvesFlow,
        show_curves: Callable[[], None],
    ) -> None:
        super().__init__(context)
        self._page = page
        self._state = state
        self._maps = maps
        self._ftv = ftv
        self._curves = curves
        self._is_on = False
        self._later = QTimer(self)
        self._later.setSingleShot(True)
        self._later.setInterval(_AFTER_MS)
        self._later.timeout.connect(self._measure_mask)
        maps.set_floor(50.0)
        page.map_wanted.connect(self._choose_map)
        page.cover_changed.connect(maps.set_covering)
        page.floor_changed.connect(maps.set_floor)
        page.range_changed.connect(maps.set_range)
        page.times.times_typed.connect(self._type_times)
        page.times.timing_chosen.connect(self._choose_timing)
        page.curves_wanted.connect(show_curves)
        page.ftv.settings_changed.connect(ftv.set_settings)
        page.ftv.draw_wanted.connect(ftv.draw)
        page.ftv.mask_wanted.connect(ftv.around_mask)
        page.ftv.seg.seg_wanted.connect(ftv.take_seg)
        page.times.pre_chosen.connect(state.set_pre)
        maps.shown_changed.connect(self._show_map)
        maps.failed.connect(lambda why: page.show_map(None, why))
        ftv.answered.connect(self._show_ftv)
        ftv.unknown.connect(page.ftv.show_unknown)
        ftv.compared.connect(self._show_seg)
        ftv.seg_failed.connect(page.ftv.seg.show_failed)
        ftv.region_changed.connect(page.ftv.show_region)
        ftv.drawing_changed.connect(page.ftv.set_drawing)
        state.changed.connect(self._show_case)
        self._session.case_changed.connect(self._show_case)
        self._session.masks_changed.connect(self.refresh)
        self._session.mask_edited.connect(self.refresh)
        self._show_case()

    def want(self, wanted: bool) -> None:
        """Set whether the page is visible."""
        was, self._is_on = self._is_on, wanted
        self._ftv.want(wanted or self._shows_ftv())
        if wanted and not was:
            self._later.start()

    def refresh(self, *_: object) -> None:
        """Schedule a new measurement after the visible mask changed."""
        self._later.start()

    # -------------------------------------------------------------------- inner

    def _choose_map(self, kind: str | None) -> None:
        if kind is None:
            self._maps.hide()
        else:
            self._maps.show(kind)

    def _show_map(self, shown: ShownMap | None) -> None:
        self._page.show_map(shown)
        ranges = () if shown is None else self._services.kinetics.map_ranges(shown.kind)
        self._page.show_ranges(ranges, self._maps.range_now)
        self._ftv.want(self._is_on or self._shows_ftv())
        if self._shows_ftv():
            self._ftv.set_settings(self._page.ftv.settings())

    def _shows_ftv(self) -> bool:
        shown = self._maps.shown
        return shown is not None and shown.kind is MapKind.FTV

    def _show_ftv(self, answer: FtvAnswer) -> None:
        case = self._session.case
        self._page.ftv.show_answer(answer, 1 if case is None else case.n_before)
        self._maps.paint_ftv(answer)

    def _show_seg(self, found: FtvUnderSeg | None) -> None:
        self._page.ftv.seg.show_comparison(found)
        if found is not None:
            self._page.ftv.set_settings(found.limits)

    def _type_times(self, text: str) -> None:
        try:
            times = tuple(float(part) for part in text.replace(",", " ").split())
        except ValueError:
            self._page.times.refuse(
                tr(
                    "expected times in seconds, such as 0, 82, 148, but got {words!r}; enter one "
                    "number per phase",
                    words=text,
                )
            )
            return
        why = self._state.type_times(times)
        if why:
            self._page.times.refuse(why)
        else:
            self._page.times.times.clearFocus()

    def _choose_timing(self, timing: Timing, text: str) -> None:
        why = self._state.set_timing(timing, text)
        if why:
            self._page.times.refuse(why)

    def _show_case(self) -> None:
        case = self._session.case
        if case is None:
            self._page.need(tr("Open a case first."))
            return
        if len(case.phases) < 2:
            self._page.need(
                tr("Kinetics needs a post-contrast phase, but this case has only one phase.")
            )
            return
        self._page.need("")
        case = self._state.case
        if case is None:
            self._page.times.show_times("", tr("reading the phases…"), "", "")
            return
        times_s = [time for time in case.times_s if time is not None]
        times = (
            ", ".join(f"{time:g}" for time in times_s) if len(times_s) == len(case.phases) else ""
        )
        self._page.times.show_times(
            times, self._state.source, *self._services.kinetics.timing_text(case, self._state.rule)
        )
        self._page.times.show_timing(self._state.rule)
        self._page.times.show_pre(self._state.n_before, self._state.pre)
        self._page.times.offer_injection(case.scan.injection_s)
        self.refresh()

    def _measure_mask(self) -> None:
        self._curves.refresh_mask()
        case, mask = self._state.case, self._state.shown_mask()
        if self._is_on or self._shows_ftv():
            self._ftv.prepare()
        if not self._is_on or case is None or len(case.phases) < 2:
            return
        if mask is None:
            self._page.show_numbers(None, tr("no mask is shown: predict a mask, or show one above"))
            return

        rule = self._state.rule

        def work() -> KineticRow:
            return self._services.kinetics.mask_numbers(case, mask.buffer, str(mask.role), rule)

        self._jobs.start(
            _NUMBERS,
            tr("Kinetics of the mask"),
            work,
            self._page.show_numbers,
            failed=lambda error: self._page.show_numbers(None, plain_text(error)),
            still=lambda: self._state.case is case,
            shown=False,
        )


_MOTION: Final = "register"
_NOTE: Final = "registered"


class MotionFlow(WindowPart):
    """The controller of the Motion section.

    Registered phases exist only in the session. Image, subtraction, maps, curves and FTV use the
    registered phases, while models, editing, scores and exports use the phases from the files.
    """

    def __init__(
        self, context: WindowContext, controls: MotionControls, state: KineticCase
    ) -> None:
        super().__init__(context)
        self._controls = controls
        self._state = state
        self._of: Any | None = None
        self.found: RegisteredCase | None = None
        controls.register_wanted.connect(self.register)
        controls.cancel_wanted.connect(lambda: self._jobs.stop(_MOTION))
        controls.use_wanted.connect(self.use)
        self._session.case_changed.connect(self._follow_case)
        self._follow_case()

    def register(self, kind: TransformKind) -> None:
        """Register the phases of the open case; the mask does not affect the result."""
        case, timed = self._session.case, self._state.case
        if case is None or timed is None:
            self._controls.say(tr("Open a case first, and wait until it has loaded."), warns=True)
            return
        self.use(False)
        mask = self._state.shown_mask()
        own_case = replace(case, phases=timed.phases)
        buffer = None if mask is None else mask.buffer
        settings = RegistrationSettings(transform=kind)

        def work() -> RegisteredCase:
            return self._services.kinetics.register(own_case, buffer, settings)

        self._take_registration(None)
        self._controls.show_progress(None)
        self._jobs.start(
            _MOTION,
            tr("Registering phases"),
            work,
            self._take_registration,
            failed=lambda error: self._controls.say(plain_text(error), warns=True),
            stopped=lambda: self._controls.say(tr("Cancelled; the phases are unchanged.")),
            ended=self._controls.show_idle,
            still=lambda: self._session.shows(case),
            on_progress=self._controls.show_progress,
        )

    def use(self, wanted: bool) -> None:
        """Show registered phases and compute from them, or return to the acquired phases."""
        case, registration = self._session.case, self.found
        if case is None or (registration is None and wanted):
            return
        if wanted == (self._session.registered is not None):
            return
        if wanted and registration is not None:
            shown = replace(
                case, signal=registration.case.signal, warnings=registration.case.warnings
            )
            self._scene.replace_phases(shown, _NOTE)
            self._session.use_registered(shown)
        else:
            self._scene.replace_phases(case, "")
            self._session.use_registered(None)
        self._controls.show_used(wanted)

    # -------------------------------------------------------------------- inner

    def _follow_case(self) -> None:
        case = self._session.case
        signal = None if case is None else case.signal
        if signal is not self._of:
            self._of = signal
            self._jobs.cancel(_MOTION)
            self._take_registration(None)

    def _take_registration(self, found: RegisteredCase | None) -> None:
        self.found = found
        self._controls.show_used(False)
        self._controls.show_found(found)
