"""The Times section of the Kinetics page: phase times, clock, and pre-contrast phases."""

from typing import Final

from qtpy.QtCore import Qt, Signal
from qtpy.QtWidgets import QLabel, QVBoxLayout, QWidget

from napari_mamamia.core.counting import phase_name
from napari_mamamia.core.texts import tr
from napari_mamamia.kinetics.repeated_pre import RepeatedPre
from napari_mamamia.kinetics.time_axis import Timing, TimingRule
from napari_mamamia.widgets.controls.controls import label, row, set_level
from napari_mamamia.widgets.controls.fields import combo_box, line_edit

_TIMINGS: Final = {
    Timing.UCSF_FTV: tr("Times count from the first post-contrast phase, as in UCSF's program."),
    Timing.PHASE0_START: tr("Times count from the start of the first phase."),
    Timing.INJECTION: tr(
        "Times count from the injection time in the headers, or from the one that you enter."
    ),
    Timing.MANUAL: tr("Uses the two phases that you enter."),
}
_TYPED: Final = {
    Timing.INJECTION: (
        "seconds",
        tr("Seconds from the start of the first phase to the injection; confirm with Enter."),
    ),
    Timing.MANUAL: (
        tr("early, late"),
        tr("The early and the late phase, such as 2, 4; confirm with Enter."),
    ),
}
_PRES: Final = {
    RepeatedPre.LEAVE_OUT: tr("The last pre-contrast scan is used, as during import."),
    RepeatedPre.AVERAGE: tr(
        "The mean of the pre-contrast scans is used, which has less noise but needs a patient who "
        "did not move."
    ),
    RepeatedPre.KEEP: tr(
        "All phases after the first one count as post-contrast, regardless of the voxel values."
    ),
}


class TimesControls(QWidget):
    """The controls of the times, whose signals report the user's changes.

    The signal `times_typed` carries the entered times as text, or "" to restore the original times.
    `timing_chosen` carries a `Timing` and the text next to the choice, `pre_chosen` a
    `RepeatedPre`.
    """

    times_typed = Signal(str)
    timing_chosen = Signal(object, str)
    pre_chosen = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self._rule = TimingRule()
        self._injection = ""
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(5)
        self.times = line_edit(
            "kinetics_times",
            tr(
                "Time of each phase in seconds, separated by commas; confirm with Enter, or leave "
                "empty to restore."
            ),
            "0, 82, 148, …",
            on_return=lambda: self.times_typed.emit(self.times.text()),
        )
        self.source = label("kinetics_times_source", tip=tr("Source of the times"))
        self.phases = label("kinetics_phases", tip=tr("Phases on which the numbers are based"))
        self.times_warning = label("kinetics_times_warning", tip=tr("Missing or unusual values"))
        set_level(self.times_warning, "warning")
        self._make_timing()
        self._make_pre()
        typed = row(QLabel(tr("Times")), self.times, QLabel("s"))
        chooser = row(QLabel(tr("Timing")), self.timing, self.timing_value)
        for part in (typed, chooser, self._pre_line):
            part.layout().setStretch(1, 1)
            layout.addWidget(part)
        for part in (self.source, self.times_warning, self.phases):
            layout.addWidget(part)

    def show_times(self, times: str, source: str, phases: str, warning: str) -> None:
        """Show the times in seconds, their source, the selected phases, and warnings."""
        # Text that is being typed stays.
        if not self.times.hasFocus() or not times:
            self.times.setText(times)
        self.source.setText(
            source or tr("phase times unknown: enter the time of each phase in seconds")
        )
        set_level(self.source, "hint" if source else "warning")
        self.phases.setText(phases)
        self.times_warning.setText(warning)
        self.times_warning.setVisible(bool(warning))

    def show_timing(self, rule: TimingRule) -> None:
        """Show the clock that selects the phases."""
        self._rule = rule
        index = self.timing.findData(rule.timing)
        self.timing.blockSignals(True)
        self.timing.setCurrentIndex(index)
        self.timing.blockSignals(False)
        self._show_typed(rule.timing)
        if rule.injection_s is not None:
            self.timing_value.setText(f"{rule.injection_s:g}")
        if rule.phases is not None:
            self.timing_value.setText(f"{rule.phases[0]}, {rule.phases[1]}")

    def show_pre(self, n_before: int, how: RepeatedPre) -> None:
        """Show the treatment of phases whose voxel values show that contrast has not arrived."""
        self._pre_line.setVisible(n_before > 1)
        first, last = phase_name(0, n_before), phase_name(n_before - 1, n_before)
        second = phase_name(1, n_before)
        others = second if n_before == 2 else f"{second} – {last}"
        earlier = first if n_before == 2 else f"{first} – {phase_name(n_before - 2, n_before)}"
        self.pre.blockSignals(True)
        for index, text in enumerate(
            (
                tr("{last}; {earlier} left out", last=last, earlier=earlier),
                tr("mean of {first} – {last}", first=first, last=last),
                tr("{first}; {others} kept", first=first, others=others),
            )
        ):
            self.pre.setItemText(index, text)
        self.pre.setCurrentIndex(self.pre.findData(how))
        self.pre.blockSignals(False)

    def offer_injection(self, second: float | None) -> None:
        """Use the injection time from the DICOM headers as the default."""
        self._injection = "" if second is None else f"{second:g}"

    def refuse(self, why: str) -> None:
        """Show why the entered text is rejected."""
        self.times_warning.setText(why)
        self.times_warning.show()

    # -------------------------------------------------------------------- inner

    def _make_timing(self) -> None:
        self.timing = combo_box(
            "kinetics_timing", tr("Clock by which the early and late phases are chosen.")
        )
        for index, (timing, tip) in enumerate(_TIMINGS.items()):
            self.timing.addItem(str(timing), timing)
            self.timing.setItemData(index, tip, Qt.ItemDataRole.ToolTipRole)
        self.timing.currentIndexChanged.connect(lambda _at: self._timing_changed())
        self.timing_value = line_edit(
            "kinetics_timing_value",
            tr("Press Enter to use the value."),
            on_return=self._tell_timing,
        )
        self.timing_value.editingFinished.connect(self._leave_timing)
        self.timing_value.hide()

    def _make_pre(self) -> None:
        self.pre = combo_box(
            "kinetics_pre", tr("Pre-contrast signal to use if that scan was repeated.")
        )
        for index, (how, tip) in enumerate(_PRES.items()):
            self.pre.addItem("", how)
            self.pre.setItemData(index, tip, Qt.ItemDataRole.ToolTipRole)
        self.pre.currentIndexChanged.connect(lambda at: self.pre_chosen.emit(self.pre.itemData(at)))
        self._pre_line = row(QLabel(tr("Pre-contrast")), self.pre)
        self._pre_line.hide()

    def _timing_changed(self) -> None:
        timing = self.timing.currentData()
        self._show_typed(timing)
        injection = self._injection if timing is Timing.INJECTION else ""
        if timing in _TYPED:
            self.timing_value.setText(injection)
            self.timing_value.setFocus()
        if timing not in _TYPED or injection:
            self._tell_timing()

    def _show_typed(self, timing: Timing) -> None:
        hint, tip = _TYPED.get(timing, ("", ""))
        self.timing_value.setPlaceholderText(hint)
        self.timing_value.setToolTip(tip)
        self.timing_value.setVisible(bool(hint))

    def _leave_timing(self) -> None:
        if not self.timing_value.text().strip():
            self.show_timing(self._rule)

    def _tell_timing(self) -> None:
        self.timing_chosen.emit(self.timing.currentData(), self.timing_value.text())
