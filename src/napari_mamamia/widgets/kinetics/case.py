"""The open case on the Kinetics page, with entered times and selected pre-contrast phases."""

from collections.abc import Sequence
from typing import Final

from qtpy.QtCore import Signal

from napari_mamamia.core.case import Case
from napari_mamamia.core.errors import MamamiaError
from napari_mamamia.core.texts import tr
from napari_mamamia.kinetics.repeated_pre import RepeatedPre
from napari_mamamia.kinetics.time_axis import Timing, TimingRule
from napari_mamamia.services.case.context import CaseKey
from napari_mamamia.widgets.base.layers import MASK_ROLES, tag_of
from napari_mamamia.widgets.base.session import SessionMask
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart

_LANE: Final = "kinetic_pre"


class KineticCase(WindowPart):
    """The case used for kinetics; `changed` reports new values or times, `opened` a new case."""

    changed = Signal()
    opened = Signal()

    def __init__(self, context: WindowContext) -> None:
        super().__init__(context)
        self._of: Case | None = None
        self._timed: Case | None = None
        self._case: Case | None = None
        self._pre = RepeatedPre.LEAVE_OUT
        self._typed: dict[CaseKey, tuple[float, ...]] = {}
        self._clock = TimingRule()
        self._rules: dict[CaseKey, TimingRule] = {}
        self._session.case_changed.connect(self._follow_case)
        self._session.phases_changed.connect(self._switch_voxels)

    @property
    def case(self) -> Case | None:
        """The open case with its times; None until all phases are read."""
        return self._case

    @property
    def own_case(self) -> Case | None:
        """The same case with the phases from the files, neither registered nor averaged."""
        case = self._session.case
        return None if case is None or self._timed is None else self._with_typed(case)

    @property
    def n_before(self) -> int:
        """Number of phases before contrast arrival, detected from the voxel values."""
        return 1 if self._timed is None else self._timed.n_before

    @property
    def pre(self) -> RepeatedPre:
        """Treatment of repeated pre-contrast phases in `case`."""
        return RepeatedPre.LEAVE_OUT if self._case is self._timed else self._pre

    def set_pre(self, how: RepeatedPre) -> None:
        """Change the treatment of repeated pre-contrast phases, then emit `changed`."""
        self._pre = how
        self._treat_pre()

    @property
    def source(self) -> str:
        """A short text about the source of the times, or "" if there are no times."""
        case = self._case
        if case is None:
            return ""
        if self._session.case_key in self._typed:
            return tr("entered for this session")
        context = self._session.context
        record = None if context is None else context.record
        return self._services.kinetics.times_source(case, self._session.files, record)

    @property
    def rule(self) -> TimingRule:
        """The clock for selecting phases: this case's clock, or else the session's."""
        return self._rules.get(self._session.case_key, self._clock)

    def set_timing(self, timing: Timing, text: str) -> str:
        """Set a clock, an injection time or two phases; return the reason if rejected, or "".

        A named clock applies to the session; an injection time or two phases apply to this case
        only.
        """
        case = self._case
        if case is None:
            return tr("open a case first")
        try:
            rule = self._services.kinetics.typed_rule(timing, text)
            self._services.kinetics.require_rule(case, rule)
        except MamamiaError as error:
            return str(error)
        if timing in (Timing.INJECTION, Timing.MANUAL):
            self._rules[self._session.case_key] = rule
        else:
            self._rules.pop(self._session.case_key, None)
            self._clock = rule
        self.changed.emit()
        return ""

    def type_times(self, times_s: Sequence[float]) -> str:
        """Set times in seconds, one per phase; an empty sequence restores the original times.

        Return the reason if the times are rejected, otherwise "".
        """
        case = self._session.shown_case
        if case is None:
            return tr("open a case first")
        if times_s:
            try:
                self._services.kinetics.require_rule(
                    self._services.kinetics.with_times(case, times_s), self.rule
                )
            except MamamiaError as error:
                return str(error)
            self._typed[self._session.case_key] = tuple(times_s)
        else:
            self._typed.pop(self._session.case_key, None)
        self._take_case(case)
        self.changed.emit()
        return ""

    def shown_mask(self) -> SessionMask | None:
        """Return the most relevant visible mask, or None if none is visible."""
        layer = self._scene.shown_mask()
        tag = None if layer is None else tag_of(layer)
        if tag is None or tag.role not in MASK_ROLES:
            return None
        return self._session.mask(tag.role)

    @property
    def note(self) -> str:
        """A note about the values of the case: "registered", or "" for phases as acquired."""
        return "" if self._session.registered is None else "registered"

    def _switch_voxels(self) -> None:
        case = self._session.shown_case
        if case is not None and case.is_loaded:
            self._take_case(case)
            self.changed.emit()

    def _follow_case(self) -> None:
        case, before = self._session.shown_case, self._case
        if case is not None and case is self._of:
            return
        self._pre = RepeatedPre.LEAVE_OUT
        if case is None or not case.is_loaded:
            self._jobs.cancel(_LANE)
            self._of = self._timed = self._case = None
        else:
            self._take_case(case)
        if before is not self._case:
            self.opened.emit()
            self.changed.emit()

    def _take_case(self, case: Case) -> None:
        self._of = case
        self._timed = self._with_typed(case)
        self._treat_pre()

    def _with_typed(self, case: Case) -> Case:
        typed = self._typed.get(self._session.case_key)
        return self._services.kinetics.with_times(case, typed) if typed else case

    def _treat_pre(self) -> None:
        self._jobs.cancel(_LANE)
        self._case = timed = self._timed
        how = self._pre
        if timed is None or timed.n_before < 2:
            return

        def take(case: Case) -> None:
            self._case = case

        self._jobs.start(
            _LANE,
            tr("Processing pre-contrast scans"),
            lambda: self._services.kinetics.with_pre(timed, how),
            take,
            ended=self.changed.emit,
            shown=False,
        )
