"""Controls of the functional tumour volume (FTV), which is updated after every change."""

from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, Final

from qtpy.QtCore import Qt, Signal
from qtpy.QtWidgets import (
    QFileDialog,
    QGridLayout,
    QLabel,
    QVBoxLayout,
    QWidget,
)

from napari_mamamia.core.texts import tr
from napari_mamamia.kinetics.tumour_volume import FtvSettings
from napari_mamamia.services.kinetics.ftv_from import FtvFromRow, FtvUnderSeg
from napari_mamamia.services.kinetics.row import phases_text
from napari_mamamia.services.kinetics.show_kinetics import FtvAnswer
from napari_mamamia.widgets.controls.controls import (
    FittedLabel,
    Fold,
    button,
    column,
    heading,
    label,
    named,
    row,
    set_level,
)
from napari_mamamia.widgets.controls.drops import dropped_paths
from napari_mamamia.widgets.controls.revealing import reveal
from napari_mamamia.widgets.controls.targets import Slider
from napari_mamamia.widgets.controls.wrapped import breakable
from napari_mamamia.widgets.kinetics.colours import SER_COLOURS

# Section of the page Kinetics: FTV under a DICOM SEG of UCSF, our result next to UCSF's.

_NAMES: Final = {"pe": tr("PE"), "ser": tr("PE and SER")}


class FtvSegControls(QWidget):
    """Widget for choosing a DICOM SEG; `seg_wanted` carries the path of a chosen or dropped SEG."""

    seg_wanted = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("kinetics_ftv_seg_part")
        self.setAcceptDrops(True)
        self.choose = button(
            "kinetics_ftv_seg",
            tr("Load VOI from SEG…"),
            tr(
                "Computes FTV from a DICOM SEG of UCSF's program with the VOI, omitted regions, "
                "thresholds and phases in that SEG, and compares it with UCSF's result. You can "
                "also drop a SEG here."
            ),
            self._browse_seg,
        )
        self.numbers = label(
            "kinetics_ftv_seg_numbers", "", tr("FTV computed here and FTV in the SEG")
        )
        self.numbers.setTextFormat(Qt.TextFormat.RichText)
        self.basis = label(
            "kinetics_ftv_seg_basis", "", tr("Phases, timing and mask of both volumes")
        )
        self.remark = label("kinetics_ftv_seg_remark", "", tr("Warnings about this SEG"))
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(4)
        layout.addWidget(row(self.choose, 1))
        for part in (self.numbers, self.basis, self.remark):
            layout.addWidget(part)
        self.show_comparison(None)

    def show_comparison(self, found: FtvUnderSeg | None) -> None:
        """Show both volumes, their regions and warnings; None clears everything."""
        first = None if found is None else found.rows[0]
        self.numbers.setText("" if found is None else _format_table(found.rows))
        self.basis.setText("" if first is None else f"{first.phases} · {first.ftv_variant}")
        self.basis.setToolTip("" if first is None else first.ftv_thresholds)
        self._show_remark("" if first is None else first.remark, "warning")
        for part in (self.numbers, self.basis):
            part.setVisible(found is not None)
        if found is not None:
            reveal(self)

    def show_failed(self, reason: str) -> None:
        """Show why a SEG was rejected, and clear the previous comparison."""
        self.show_comparison(None)
        self._show_remark(reason, "error")
        reveal(self)

    def dragEnterEvent(self, event: Any) -> None:
        """Accept a single file."""
        if len(dropped_paths(event)) == 1:
            event.acceptProposedAction()

    def dropEvent(self, event: Any) -> None:
        """Compute FTV within the regions of the dropped SEG file."""
        event.acceptProposedAction()
        self.seg_wanted.emit(dropped_paths(event)[0])

    def _show_remark(self, text: str, level: str) -> None:
        self.remark.setText(text)
        set_level(self.remark, level)
        self.remark.setVisible(bool(text))

    def _browse_seg(self) -> None:
        chosen, _ = QFileDialog.getOpenFileName(
            self, tr("DICOM SEG from UCSF"), str(Path.home()), tr("DICOM (*.dcm);;All files (*)")
        )
        if chosen:
            self.seg_wanted.emit(Path(chosen))


def _format_table(rows: tuple[FtvFromRow, ...]) -> str:
    head = "".join(f"<td align='right'>&nbsp;&nbsp;{name}</td>" for name in ("ours", "UCSF"))
    lines = [f"<tr><td></td>{head}</tr>"]
    for one in rows:
        name = _NAMES.get(one.measure, escape(one.measure))
        for unit, cells in (
            ("voxels", (f"{one.ours_voxels:,.0f}", f"{one.theirs_voxels:,.0f}")),
            ("cc", (f"{one.ours_cc:.3f}", f"{one.theirs_cc:.3f}")),
        ):
            numbers = "".join(f"<td align='right'>&nbsp;&nbsp;{cell}</td>" for cell in cells)
            lines.append(f"<tr><td>{name}, {unit}</td>{numbers}</tr>")
        if one.different_voxels == one.different_voxels:
            differ = f"<td align='right' colspan='2'>{one.different_voxels:,.0f}</td>"
            lines.append(tr("<tr><td>differing voxels</td>{differ}</tr>", differ=differ))
    title = tr("<b>With the settings of {seg}</b>", seg=breakable(escape(rows[0].seg)))
    return f"{title}<table cellspacing='0'>{''.join(lines)}</table>"


_UNIT: Final = "cc"
_WIDEST: Final = "26 of 26"


@dataclass(frozen=True, slots=True)
class _Threshold:
    """A slider with its settings field, name, range, initial value, step and display format."""

    field: str
    name: str
    least: int
    most: int
    start: int
    step: float
    unit: str
    tip: str


_FAR_MORE: Final = 8
_SER: Final = tuple(SER_COLOURS.values())

_THRESHOLDS: Final = (
    _Threshold(
        "background",
        tr("Background"),
        10,
        100,
        60,
        0.01,
        "%",
        tr(
            "Minimum pre-contrast signal, as a percentage of its 95th percentile in the box "
            "(UCSF: 60)."
        ),
    ),
    _Threshold(
        "enhancement",
        tr("Early PE"),
        10,
        150,
        70,
        1.0,
        "%",
        tr("Minimum PE of the early phase (UCSF: 70)."),
    ),
    _Threshold(
        "neighbours",
        tr("Neighbours"),
        0,
        26,
        4,
        1,
        tr("of 26"),
        tr(
            "Minimum number of a voxel's 26 neighbours that must also pass (UCSF: 4, or 9 for its "
            "I-SPY 1 results)."
        ),
    ),
    _Threshold(
        "ser", "SER", 0, 200, 0, 0.01, "", tr("Minimum signal enhancement ratio (UCSF: 0).")
    ),
)


class FtvControls(QWidget):
    """Controls of FTV.

    `settings_changed` carries `FtvSettings`; `draw_wanted` carries "box", "omit" or "".
    """

    settings_changed = Signal(object)
    draw_wanted = Signal(str)
    mask_wanted = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.value = label(
            "kinetics_ftv", tr("FTV –"), tr("Functional tumour volume as defined by UCSF")
        )
        self.basis = label(
            "kinetics_ftv_phases", "", tr("Phases used for this FTV, and the rule that chose them")
        )
        self.bins = label(
            "kinetics_ftv_bins", "", tr("FTV by signal enhancement ratio, in UCSF's bins")
        )
        self.bins.setTextFormat(Qt.TextFormat.RichText)
        self.region = label("kinetics_ftv_region", "", tr("Region in which FTV is computed"))
        self.remark = label("kinetics_ftv_remark", "", tr("Warnings about this FTV"))
        set_level(self.remark, "warning")
        self._sliders: dict[str, Slider] = {}
        self._shown: dict[str, QLabel] = {}
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(4)
        self.reset = button(
            "kinetics_ftv_reset",
            tr("Reset to UCSF"),
            tr("Restores UCSF's thresholds."),
            self._reset_thresholds,
        )
        layout.addWidget(heading(tr("Functional tumour volume")))
        layout.addWidget(self.value)
        layout.addWidget(self.basis)
        self.thresholds = Fold(
            "kinetics_ftv_more",
            tr("Thresholds"),
            tr("Shows or hides the FTV thresholds, which start at UCSF's values."),
            column(self._make_sliders(), row(1, self.reset)),
        )
        layout.addWidget(self.thresholds)
        layout.addWidget(self._make_boxes())
        self.seg = FtvSegControls()
        for part in (self.region, self.bins, self.remark, self.seg):
            layout.addWidget(part)

    def settings(self) -> FtvSettings:
        """Return the thresholds of the sliders."""
        value = {name: slider.value() for name, slider in self._sliders.items()}
        return FtvSettings(
            value["background"] / 100,
            float(value["enhancement"]),
            value["neighbours"],
            value["ser"] / 100,
        )

    def set_settings(self, settings: FtvSettings) -> None:
        """Set the sliders, and emit `settings_changed` once."""
        values = {
            "background": round(100 * settings.background),
            "enhancement": round(settings.enhancement),
            "neighbours": settings.neighbours,
            "ser": round(100 * settings.ser),
        }
        for one in _THRESHOLDS:
            slider = self._sliders[one.field]
            slider.blockSignals(True)
            slider.setValue(values[one.field])
            slider.blockSignals(False)
            self._write_threshold(one)
        self.settings_changed.emit(self.settings())

    def show_answer(self, answer: FtvAnswer, n_before: int) -> None:
        """Show a volume and its components; the first `n_before` phases are before contrast."""
        volume = answer.found
        self.value.setText(tr("<b>FTV {volume_cc:.2f} cc</b>", volume_cc=volume.volume_cc))
        self.value.setToolTip(volume.settings.name)
        self.basis.setText(f"{phases_text(volume.choice, n_before)} · {volume.settings.variant}")
        self.basis.show()
        parts = zip(volume.bins, SER_COLOURS.values(), strict=True)
        head = tr("<tr><td></td><td>SER</td><td align='right'>volume</td>")
        head += "<td align='right'>&nbsp;&nbsp;share</td></tr>"
        lines = "".join(
            f'<tr><td><span style="color:{colour}">■</span>&nbsp;{tr(name)}&nbsp;&nbsp;</td>'
            f"<td>{text.removeprefix('SER ')}&nbsp;&nbsp;</td>"
            f"<td align='right'>{part.volume_cc:.2f}&nbsp;{_UNIT}</td>"
            f"<td align='right'>&nbsp;&nbsp;{_format_percent(part.percent)}&nbsp;%</td></tr>"
            for part, (text, name, colour) in parts
        )
        self.bins.setText(f"<table cellspacing='0'>{head}{lines}</table>")
        ranges = ", ".join(
            tr("{name} SER {removeprefix}", name=name, removeprefix=text.removeprefix("SER "))
            for text, name, _ in _SER
        )
        self.bins.setToolTip(tr("Volume (cc) and percentage in each bin: {ranges}", ranges=ranges))
        dark = volume.too_dark > _FAR_MORE * sum(bin_.voxels for bin_ in volume.bins)
        self.remark.setText(
            tr(
                "{too_dark} voxels enhance but are too dark before contrast; do not use FTV on "
                "images without fat suppression",
                too_dark=volume.too_dark,
            )
            if dark
            else ""
        )
        self.remark.setVisible(dark)

    def show_unknown(self, reason: str) -> None:
        """Show why there is no volume."""
        self.value.setText(tr("<b>FTV –</b>"))
        self.value.setToolTip(tr("unknown: {reason}", reason=reason))
        self.basis.hide()
        self.bins.setText("")
        self.remark.setText(reason)
        self.remark.setVisible(bool(reason))

    def show_region(self, text: str) -> None:
        """Show the region in which FTV is measured."""
        self.region.setText(text)

    def set_drawing(self, what: str) -> None:
        """Show whether the user is drawing a box."""
        self.draw_box.setChecked(what == "box")
        self.omit.setChecked(what == "omit")

    # -------------------------------------------------------------------- inner

    def _make_sliders(self) -> QWidget:
        holder = QWidget()
        grid = QGridLayout(holder)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setVerticalSpacing(2)
        for index, one in enumerate(_THRESHOLDS):
            slider: Slider = named(
                Slider(Qt.Orientation.Horizontal), f"kinetics_ftv_{one.field}", one.tip
            )
            slider.setRange(one.least, one.most)
            slider.setValue(one.start)
            fitted_label = FittedLabel("", (_WIDEST,))
            fitted_label.setAlignment(Qt.AlignmentFlag.AlignRight)
            self._sliders[one.field], self._shown[one.field] = slider, fitted_label
            slider.valueChanged.connect(lambda _value, which=one: self._on_slider_moved(which))
            grid.addWidget(QLabel(one.name), index, 0)
            grid.addWidget(slider, index, 1)
            grid.addWidget(fitted_label, index, 2)
            self._write_threshold(one)
        return holder

    def _make_boxes(self) -> QWidget:
        self.around = button(
            "kinetics_ftv_mask",
            tr("Use mask"),
            tr(
                "Uses the bounding box of the displayed mask plus a margin of 10 mm, and discards "
                "drawn boxes."
            ),
            self.mask_wanted.emit,
        )
        self.draw_box = button(
            "kinetics_ftv_box",
            tr("Draw box"),
            tr("Starts drawing: drag over the tumour to compute FTV in that box."),
            lambda: self.draw_wanted.emit("box" if self.draw_box.isChecked() else ""),
        )
        self.omit = button(
            "kinetics_ftv_omit",
            tr("Omit box…"),
            tr("Starts drawing: drag over tissue that is not tumour to exclude that box."),
            lambda: self.draw_wanted.emit("omit" if self.omit.isChecked() else ""),
        )
        for toggle in (self.draw_box, self.omit):
            toggle.setCheckable(True)
        return row(self.around, self.draw_box, self.omit, 1)

    def _on_slider_moved(self, which: _Threshold) -> None:
        self._write_threshold(which)
        self.settings_changed.emit(self.settings())

    def _write_threshold(self, which: _Threshold) -> None:
        value = self._sliders[which.field].value()
        text = f"{value / 100:.2f}" if which.field == "ser" else f"{value}"
        self._shown[which.field].setText(f"{text} {which.unit}".strip())

    def _reset_thresholds(self) -> None:
        self.set_settings(FtvSettings())


def _format_percent(value: float) -> str:
    return "–" if value != value else f"{value:.0f}"
