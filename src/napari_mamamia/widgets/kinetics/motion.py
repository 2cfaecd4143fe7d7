"""The Motion section of the Kinetics page: the registration of phases, its effect and use."""

from typing import Final

from qtpy.QtCore import Qt, Signal
from qtpy.QtWidgets import QWidget

from napari_mamamia.core.choices import TransformKind
from napari_mamamia.core.counting import phase_name
from napari_mamamia.core.progress import Progress
from napari_mamamia.core.texts import tr
from napari_mamamia.kinetics.registration.registration import PhaseMotion
from napari_mamamia.kinetics.registration.settings import Verdict
from napari_mamamia.services.register.case import RegisteredCase
from napari_mamamia.widgets.controls.controls import (
    button,
    fill_column,
    heading,
    label,
    named,
    row,
    set_level,
)
from napari_mamamia.widgets.controls.fields import combo_box
from napari_mamamia.widgets.controls.progress_bar import ProgressBar

_HEIGHT: Final = 8
_OFF: Final = tr(
    "Off; the phases are shown as acquired. Contrast can look like motion, so compare before you "
    "use registered phases."
)
_USED: Final = tr(
    "In use for this session's image, subtraction, maps, curves and FTV. Predict, Refine, Score "
    "and Export use the acquired phases; nothing is saved."
)
_HEAD: Final = tr(
    "<tr><th align='left'>phase</th><th align='right'>residual&nbsp;%</th>"
    "<th align='right'>shift&nbsp;mm</th><th></th></tr>"
)
_MARKS: Final = {Verdict.BETTER: "✓", Verdict.UNCHANGED: "=", Verdict.WORSE: "✗"}


class MotionControls(QWidget):
    """The controls of the registration.

    The signal `register_wanted` carries a `TransformKind`; `use_wanted` carries whether to use the
    result.
    """

    register_wanted = Signal(object)
    cancel_wanted = Signal()
    use_wanted = Signal(bool)

    def __init__(self) -> None:
        super().__init__()
        self.kind = combo_box(
            "motion_transform",
            tr(
                "Rigid registration rotates and shifts; B-spline registration also deforms "
                "smoothly where that improves the fit."
            ),
        )
        self.kind.addItem(tr("rigid + B-spline"), TransformKind.BSPLINE)
        self.kind.addItem(tr("rigid"), TransformKind.RIGID)
        self.start = button(
            "motion_register",
            tr("Register phases…"),
            tr(
                "Registers every phase onto phase 1 and resamples it, unless the fit does not "
                "improve. Masks stay on phase 1. Registration takes tens of seconds per phase."
            ),
            lambda: self.register_wanted.emit(self.kind.currentData()),
        )
        self.cancel = button(
            "motion_cancel",
            tr("Cancel"),
            tr("Stops the registration and discards it."),
            self.cancel_wanted.emit,
        )
        self.progress: ProgressBar = named(
            ProgressBar(), "motion_progress", tr("Progress of the registration")
        )
        self.progress.setFixedHeight(_HEIGHT)
        self.running = label("motion_running", tip=tr("Current step of the registration"))
        self.table = label(
            "motion_table",
            tip=tr(
                "Residual outside enhancing tissue, before and after registration, and 95th "
                "percentile of the displacement"
            ),
        )
        self.table.setTextFormat(Qt.TextFormat.RichText)
        self.volume = label("motion_volume", tip=tr("Enhancing volume around the shown mask"))
        self.state = label("motion_state", _OFF, tr("The phases in use"))
        self.use = button(
            "motion_use",
            tr("Use registered phases"),
            tr("Shows and uses the registered phases, in this session only."),
            lambda: self.use_wanted.emit(True),
        )
        self.back = button(
            "motion_back",
            tr("Use acquired phases"),
            tr("Shows and uses the phases as acquired."),
            lambda: self.use_wanted.emit(False),
        )
        self._lay_out()
        self.show_idle()
        self.show_found(None)

    def show_idle(self) -> None:
        """Show that no registration is running."""
        self._working.hide()
        self.running.hide()
        self.start.setEnabled(True)

    def show_progress(self, progress: Progress | None) -> None:
        """Show the progress of a registration, which is None before the first step."""
        self._working.show()
        self.running.show()
        self.start.setEnabled(False)
        self.progress.setRange(0, 1000 if progress and progress.total else 0)
        if progress is not None:
            self.progress.setValue(round(1000 * progress.fraction))
        self.running.setText(tr("Starting") if progress is None else progress.text)

    def show_found(self, found: RegisteredCase | None) -> None:
        """Show the result of a registration, or that there is no result."""
        has_any = found is not None and bool(found.found.changed)
        self.table.setVisible(found is not None)
        self._choice.setVisible(has_any)
        if found is None:
            self.volume.hide()
            return
        n_before, motions = found.case.n_before, found.found.motions
        rows = "".join(_format_row(motion, n_before) for motion in motions)
        self.table.setText(f"<table cellspacing='0' cellpadding='1'>{_HEAD}{rows}</table>")
        self.table.setToolTip("\n".join(_describe_motion(motion, n_before) for motion in motions))
        self._show_volume(found)
        if not has_any:
            self.say(
                tr("No phase fits better after registration, so the acquired phases stay in use.")
            )

    def show_used(self, used: bool) -> None:
        """Show whether the registered phases are in use."""
        self.use.setEnabled(not used)
        self.back.setEnabled(used)
        self.say(_USED if used else _OFF, warns=used)

    def say(self, text: str, *, warns: bool = False) -> None:
        """Show which phases are in use, or why there are no registered phases."""
        self.state.setText(text)
        set_level(self.state, "warning" if warns else "hint")

    # -------------------------------------------------------------------- inner

    def _lay_out(self) -> None:
        self._working = row(self.progress, self.cancel)
        self._choice = row(self.use, self.back, 1)
        fill_column(
            self,
            heading(tr("Motion")),
            row(self.start, self.kind, 1),
            self._working,
            self.running,
            self.table,
            self.volume,
            self._choice,
            self.state,
            spacing=4,
        )

    def _show_volume(self, found: RegisteredCase) -> None:
        volume = found.volume
        text = volume.warning or volume.reason
        if not text:
            text = tr(
                "Tumour volume {before_cc:.2f} → {after_cc:.2f} cc ({percent:+.0f} %)",
                before_cc=volume.before_cc,
                after_cc=volume.after_cc,
                percent=volume.percent,
            )
        self.volume.setText(text)
        self.volume.setToolTip(volume.variant or volume.reason)
        set_level(self.volume, "warning" if volume.warning else "hint")
        self.volume.show()


def _format_row(motion: PhaseMotion, n_before: int) -> str:
    phase = phase_name(motion.phase, n_before)
    if motion.verdict is Verdict.REFERENCE:
        return tr(
            "<tr><td>{phase}</td><td colspan='3'>reference, unchanged</td></tr>",
            phase=phase,
        )
    before, after = motion.before.residual_percent, motion.after.residual_percent
    words = f"{_MARKS[motion.verdict]}&nbsp;{motion.verdict}"
    return (
        f"<tr><td>{phase}</td><td align='right'>{before:.1f}&nbsp;→&nbsp;{after:.1f}</td>"
        f"<td align='right'>{motion.displacement.p95_mm:.1f}</td><td>{words}</td></tr>"
    )


def _describe_motion(motion: PhaseMotion, n_before: int) -> str:
    phase = phase_name(motion.phase, n_before)
    if motion.verdict is Verdict.REFERENCE:
        return tr("{phase}: reference for the registration of the other phases", phase=phase)
    jacobian = (
        ""
        if motion.jacobian_min != motion.jacobian_min
        else (
            tr(
                ", local volume in the mask × {jacobian_min:.2f} to {jacobian_max:.2f}",
                jacobian_min=motion.jacobian_min,
                jacobian_max=motion.jacobian_max,
            )
        )
    )
    note = f" ({motion.note})" if motion.note else ""
    far = motion.displacement
    return tr(
        "{phase}: {applied}{note}; moved by {median_mm:.1f} mm (median), {max_mm:.1f} mm "
        "(maximum); NMI {nmi:.3f} to {nmi_2:.3f}{jacobian}",
        phase=phase,
        applied=motion.applied,
        note=note,
        median_mm=far.median_mm,
        max_mm=far.max_mm,
        nmi=motion.before.nmi,
        nmi_2=motion.after.nmi,
        jacobian=jacobian,
    )
