"""The Kinetics page: map, times, functional tumour volume and values of the visible mask."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, Final

from qtpy.QtCore import QRectF, QSize, Qt, Signal
from qtpy.QtGui import QColor, QLinearGradient, QPainter, QPaintEvent, QPalette
from qtpy.QtWidgets import (
    QFileDialog,
    QGridLayout,
    QLabel,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from napari_mamamia.core.texts import tr
from napari_mamamia.kinetics.map_kinds import MAPS, MapKind, MapRange
from napari_mamamia.kinetics.tumour_volume import FtvSettings
from napari_mamamia.services.kinetics.ftv_from import FtvFromRow, FtvUnderSeg
from napari_mamamia.services.kinetics.row import KineticRow, phases_text
from napari_mamamia.services.kinetics.show_kinetics import FtvAnswer, ShownMap
from napari_mamamia.widgets.base.keys import with_key
from napari_mamamia.widgets.controls.controls import (
    FittedLabel,
    Fold,
    button,
    column,
    fill_column,
    heading,
    label,
    line,
    named,
    row,
    set_level,
)
from napari_mamamia.widgets.controls.drops import dropped_paths
from napari_mamamia.widgets.controls.fields import checkbox, combo_box, spin_box
from napari_mamamia.widgets.controls.page import Page
from napari_mamamia.widgets.controls.revealing import reveal
from napari_mamamia.widgets.controls.targets import Slider
from napari_mamamia.widgets.controls.wrapped import breakable
from napari_mamamia.widgets.kinetics.colours import SER_COLOURS, TYPE_COLOURS, ramp_of
from napari_mamamia.widgets.kinetics.motion import MotionControls
from napari_mamamia.widgets.kinetics.times import TimesControls

# Section of the page Kinetics: FTV under a DICOM SEG of UCSF, our result next to UCSF's.

_NAMES: Final = {"pe": tr("PE"), "ser": tr("PE and SER")}


class FtvSegControls(QWidget):
    """A widget for choosing a DICOM SEG; `seg_wanted` carries the path of the chosen SEG."""

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
        fill_column(self, row(self.choose, 1), self.numbers, self.basis, self.remark, spacing=4)
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
    """The controls of FTV.

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
        self.reset = button(
            "kinetics_ftv_reset",
            tr("Reset to UCSF"),
            tr("Restores UCSF's thresholds."),
            self._reset_thresholds,
        )
        self.thresholds = Fold(
            "kinetics_ftv_more",
            tr("Thresholds"),
            tr("Shows or hides the FTV thresholds, which start at UCSF's values."),
            column(self._make_sliders(), row(1, self.reset)),
        )
        self.seg = FtvSegControls()
        fill_column(
            self,
            heading(tr("Functional tumour volume")),
            self.value,
            self.basis,
            self.thresholds,
            self._make_boxes(),
            self.region,
            self.bins,
            self.remark,
            self.seg,
            spacing=4,
        )

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


# The legend of the shown map: a bar with values and unit, or the classes with their letters.

_BAR: Final = 12


class KineticLegend(QWidget):
    """The legend of the displayed map, which is empty without a map."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("kinetics_legend")
        self.setAccessibleName(tr("Legend of the map"))
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self._shown: ShownMap | None = None
        self.setToolTip(tr("Meaning of the map's colours"))

    def sizeHint(self) -> QSize:
        """Return the size of a colour bar with its values."""
        return QSize(300, self._legend_height)

    def show_map(self, shown: ShownMap | None) -> None:
        """Draw the legend of a map."""
        self._shown = shown
        self.setToolTip(tr("Meaning of the map's colours") if shown is None else self.text())
        self.update()

    def text(self) -> str:
        """Return the legend as text."""
        if self._shown is None:
            return ""
        classes = _classes_of(self._shown)
        if classes:
            return ", ".join(f"{letter} {name}" for letter, name, _ in classes)
        low, high = self._shown.limits
        return tr(
            "{low:.4g} to {high:.4g} {unit}", low=low, high=high, unit=self._shown.unit
        ).strip()

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Draw the legend."""
        if self._shown is None:
            return
        painter = QPainter(self)
        painter.setPen(self.palette().color(QPalette.ColorRole.WindowText))
        classes = _classes_of(self._shown)
        if classes:
            self._draw_classes(painter, classes, self._shown.kind is MapKind.TYPE)
        else:
            self._draw_bar(painter, self._shown)
        painter.end()

    # -------------------------------------------------------------------- inner

    @property
    def _legend_height(self) -> int:
        return _BAR + int(self.fontMetrics().height()) + 4

    def _draw_classes(
        self, painter: QPainter, classes: list[tuple[str, str, str]], has_names: bool
    ) -> None:
        wide = self.width() / len(classes)
        for index, (letter, name, colour) in enumerate(classes):
            left = index * wide
            painter.fillRect(QRectF(left, 0, wide - 3, _BAR), QColor(colour))
            text = f"{letter}  {name}" if has_names else letter.removeprefix("SER ")
            where = QRectF(left, _BAR + 2, wide - 3, self._legend_height - _BAR - 4)
            painter.drawText(where, Qt.AlignmentFlag.AlignCenter, text)

    def _draw_bar(self, painter: QPainter, shown: ShownMap) -> None:
        colours = ramp_of(shown.kind).colours
        bar = QRectF(0, 0, self.width(), _BAR)
        gradient = QLinearGradient(bar.topLeft(), bar.topRight())
        for index, (red, green, blue, _) in enumerate(colours):
            gradient.setColorAt(index / (len(colours) - 1), QColor.fromRgbF(red, green, blue))
        painter.fillRect(bar, gradient)
        low, high = shown.limits
        below = QRectF(0, _BAR + 2, self.width(), self._legend_height - _BAR - 4)
        middle = f"{(low + high) / 2:.4g}"
        sides = Qt.AlignmentFlag
        painter.drawText(below, sides.AlignLeft, f"{low:.4g}")
        painter.drawText(below, sides.AlignHCenter, middle)
        painter.drawText(below, sides.AlignRight, f"{high:.4g} {shown.unit}".strip())


def _classes_of(shown: ShownMap) -> list[tuple[str, str, str]]:
    if not shown.is_classes:
        return []
    return list((TYPE_COLOURS if shown.kind is MapKind.TYPE else SER_COLOURS).values())


_UNKNOWN: Final = "–"
_NUMBERS: Final = (
    ("volume", tr("Volume"), tr("Number of voxels in the mask times the volume of one voxel")),
    (
        "diameter",
        tr("Longest diameter"),
        tr("Largest distance between two voxels: in 3-D, and within one slice"),
    ),
    ("peak", tr("Peak PE"), tr("Largest enhancement of the mean curve, and of any voxel")),
    ("classes", tr("Mean curve"), tr("Initial rise and delayed course of the mean curve")),
    (
        "course",
        tr("Curve types"),
        tr("Predominant and worst curve type of the voxels with an initial PE of at least 50 %"),
    ),
    ("angio", tr("Angio-volume"), tr("Volume with an initial PE of at least 50 %")),
    ("types", "P / L / W", tr("Angio-volume with a persistent, plateau or washout curve")),
    (
        "ultrafast",
        tr("Ultrafast"),
        tr(
            "Maximum slope of the mean curve, and contrast arrival time from the start of the "
            "first phase"
        ),
    ),
)


class KineticsPage(Page):
    """The Kinetics page.

    The signal `map_wanted` carries the name of a map, or None for no map. `floor_changed` carries a
    percentage or None, and `range_changed` a `MapRange` for the displayed map.
    """

    map_wanted = Signal(object)
    cover_changed = Signal(bool)
    floor_changed = Signal(object)
    range_changed = Signal(object)
    curves_wanted = Signal()

    def __init__(self) -> None:
        super().__init__("kinetics")
        self.ftv = FtvControls()
        self.motion = MotionControls()
        self._cells: dict[str, QLabel] = {}
        holder = QWidget()
        self._inner = QVBoxLayout(holder)
        self._inner.setContentsMargins(0, 0, 4, 0)
        self._inner.setSpacing(5)
        self.body.addWidget(holder)
        self._make_map()
        self._inner.addWidget(line())
        self.times = TimesControls()
        self._inner.addWidget(self.times)
        self._inner.addWidget(line())
        self._inner.addWidget(self.ftv)
        self._inner.addWidget(line())
        self._make_numbers()
        self._inner.addWidget(line())
        self._inner.addWidget(self.motion)
        self._inner.addStretch(1)
        self.show_map(None)
        self.show_numbers(None, tr("show a mask"))

    # ------------------------------------------------------------- for the dock

    def show_map(self, shown: ShownMap | None, why_none: str = "") -> None:
        """Show the name of the displayed map, or why there is no map."""
        self.legend.show_map(shown)
        self.legend.setVisible(shown is not None)
        index = 0 if shown is None else self.maps.findData(shown.kind)
        self.maps.blockSignals(True)
        self.maps.setCurrentIndex(index)
        self.maps.blockSignals(False)
        self.map_text.setText(shown.text if shown else why_none)
        self.map_text.setVisible(bool(self.map_text.text()))
        set_level(self.map_text, "warning" if why_none and shown is None else "hint")

    def show_ranges(self, ranges: Sequence[MapRange], chosen: MapRange | None) -> None:
        """List the colour ranges of a map; a map of classes has no ranges."""
        self.ranges.blockSignals(True)
        self.ranges.clear()
        for range_ in ranges:
            self.ranges.addItem(range_.name, range_)
        index = 0 if chosen is None else self.ranges.findText(chosen.name)
        self.ranges.setCurrentIndex(max(0, index))
        self.ranges.blockSignals(False)
        self._range_line.setVisible(bool(ranges))

    def show_numbers(self, found: KineticRow | None, why: str = "") -> None:
        """Show the values of the visible mask.

        An unknown value is a dash with the reason as tooltip.
        """
        name = "" if found is None else f": {found.mask}"
        self.numbers_title.setText(tr("Shown mask{name}", name=name))
        texts = {} if found is None else _format_numbers(found)
        for key, _, tip in _NUMBERS:
            text = texts.get(key, _UNKNOWN)
            self._cells[key].setText(text)
            reason = _find_reason(found, key) or why
            self._cells[key].setToolTip(
                tr("unknown: {reason}", reason=reason) if text == _UNKNOWN and reason else tip
            )

    # -------------------------------------------------------------------- inner

    def _make_map(self) -> None:
        self.maps = combo_box("kinetics_map", with_key(tr("Map on the image"), "kinetic_map"))
        self.maps.addItem(tr("no map"), None)
        for kind in (*MAPS, MapKind.FTV):
            self.maps.addItem(tr(str(kind)), kind)
        self.maps.currentIndexChanged.connect(
            lambda at: self.map_wanted.emit(self.maps.itemData(at))
        )
        self.covers = checkbox(
            "kinetics_covers",
            tr("cover the image"),
            tr("If on, the map covers the image; if off, the map is transparent."),
            on_toggle=self.cover_changed,
        )
        self.has_floor = checkbox(
            "kinetics_has_floor",
            tr("only where PE ≥"),
            tr("Hides the map where the PE of the initial phase is below this value."),
            is_on=True,
        )
        self.floor = spin_box(
            "kinetics_floor",
            tr("Minimum PE of the initial phase, in percent"),
            (0, 200),
            step=10,
            value=50,
            unit=" %",
        )
        self.has_floor.toggled.connect(lambda _on: self._tell_floor())
        self.floor.valueChanged.connect(lambda _value: self._tell_floor())
        self.ranges = combo_box(
            "kinetics_range",
            tr(
                "Range of values that the map's colours cover; auto uses the 1st to 99th "
                "percentile of the map."
            ),
        )
        self.ranges.currentIndexChanged.connect(
            lambda at: self.range_changed.emit(self.ranges.itemData(at))
        )
        self._range_line = row(QLabel(tr("Colours")), self.ranges, 1)
        self._range_line.hide()
        self.legend = KineticLegend()
        self.map_text = label("kinetics_map_text", tip=tr("Phases on which the map is based"))
        self.to_curves = button(
            "kinetics_curves",
            tr("Curves"),
            tr("Opens the curves of the pointer, the mask and pinned regions at the bottom."),
            self.curves_wanted.emit,
            primary=True,
        )
        chooser = row(QLabel(tr("Map")), self.maps, self.to_curves)
        chooser.layout().setStretch(1, 1)
        self._inner.addWidget(chooser)
        self._inner.addWidget(self.legend)
        self._inner.addWidget(self.map_text)
        self._inner.addWidget(self._range_line)
        self._inner.addWidget(
            Fold(
                "kinetics_map_more",
                tr("Map display"),
                tr(
                    "Shows or hides the settings for the minimum enhancement and for covering the "
                    "image."
                ),
                column(row(self.has_floor, self.floor, 1), row(self.covers, 1)),
            )
        )

    def _make_numbers(self) -> None:
        self.numbers_title = heading(tr("Shown mask"))
        self._inner.addWidget(self.numbers_title)
        holder = QWidget()
        grid = QGridLayout(holder)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setVerticalSpacing(2)
        for index, (key, name, tip) in enumerate(_NUMBERS):
            cell: QLabel = named(QLabel(_UNKNOWN), f"kinetics_{key}", tip)
            cell.setAlignment(Qt.AlignmentFlag.AlignRight)
            cell.setWordWrap(True)
            cell.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            self._cells[key] = cell
            grid.addWidget(QLabel(name), index, 0)
            grid.addWidget(cell, index, 1)
        grid.setColumnStretch(1, 1)
        self._inner.addWidget(holder)

    def _tell_floor(self) -> None:
        self.floor_changed.emit(float(self.floor.value()) if self.has_floor.isChecked() else None)


def _find_reason(found: KineticRow | None, key: str) -> str:
    if found is None:
        return ""
    return found.ultrafast_reason if key == "ultrafast" else found.curve_reason


def _format_numbers(found: KineticRow) -> dict[str, str]:
    parts = (found.persistent_mm3, found.plateau_mm3, found.washout_mm3)
    return {
        "volume": _format_number(found.volume_mm3 / 1000, 2, "ml"),
        "diameter": tr(
            "{format_number} · {format_number_2} in plane",
            format_number=_format_number(found.longest_diameter_mm, 1, "mm"),
            format_number_2=_format_number(found.in_plane_diameter_mm, 1, "mm"),
        ),
        "peak": tr(
            "{format_number} · {format_number_2} in any voxel",
            format_number=_format_number(found.peak_pe_of_mean_percent, 0, "%"),
            format_number_2=_format_number(found.peak_pe_percent, 0, "%"),
        ),
        "classes": _join_words(found.initial_class, found.delayed_class),
        "course": _join_words(found.predominant_curve, found.worst_curve, tr("; worst ")),
        "angio": _format_number(found.angio_volume_mm3 / 1000, 2, "ml"),
        "types": " / ".join(_format_number(part / 1000, 2, "") for part in parts)
        + (" ml" if parts[0] == parts[0] else ""),
        "ultrafast": _join_ultrafast(
            _format_number(found.maximum_slope_percent_per_s, 1, "%/s"),
            _format_number(found.bolus_arrival_s, 1, "s"),
        ),
    }


def _join_ultrafast(slope: str, arrival: str) -> str:
    return (
        _UNKNOWN
        if slope == _UNKNOWN
        else tr("{slope} · arrival {arrival}", slope=slope, arrival=arrival)
    )


def _join_words(first: str, second: str, between: str = ", ") -> str:
    words = [_UNKNOWN if word in ("undefined", "") else word for word in (first, second)]
    return between.join(words) if words != [_UNKNOWN] * 2 else _UNKNOWN


def _format_number(value: float, digits: int, unit: str) -> str:
    return _UNKNOWN if value != value else f"{value:,.{digits}f} {unit}".strip()
