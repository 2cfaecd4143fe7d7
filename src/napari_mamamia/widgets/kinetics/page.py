"""The Kinetics page: map, times, functional tumour volume and values of the visible mask."""

from collections.abc import Sequence
from typing import Final

from qtpy.QtCore import QRectF, QSize, Qt, Signal
from qtpy.QtGui import QColor, QLinearGradient, QPainter, QPaintEvent, QPalette
from qtpy.QtWidgets import (
    QComboBox,
    QGridLayout,
    QLabel,
    QSizePolicy,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from napari_mamamia.core.texts import tr
from napari_mamamia.kinetics.map_kinds import MAPS, MapKind, MapRange
from napari_mamamia.services.kinetics.row import KineticRow
from napari_mamamia.services.kinetics.show_kinetics import ShownMap
from napari_mamamia.widgets.base.keys import with_key
from napari_mamamia.widgets.controls.controls import (
    Fold,
    button,
    column,
    heading,
    label,
    line,
    named,
    row,
    set_level,
)
from napari_mamamia.widgets.controls.page import Page
from napari_mamamia.widgets.controls.targets import CheckBox
from napari_mamamia.widgets.kinetics.colours import SER_COLOURS, TYPE_COLOURS, ramp_of
from napari_mamamia.widgets.kinetics.ftv_controls import FtvControls
from napari_mamamia.widgets.kinetics.motion import MotionControls
from napari_mamamia.widgets.kinetics.times import TimesControls

# The legend of the shown map: a bar with values and unit, or the classes with their letters.

_BAR: Final = 12


class KineticLegend(QWidget):
    """Legend of the displayed map; empty if there is no map."""

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
        self.maps: QComboBox = named(
            QComboBox(), "kinetics_map", with_key(tr("Map on the image"), "kinetic_map")
        )
        self.maps.addItem(tr("no map"), None)
        for kind in (*MAPS, MapKind.FTV):
            self.maps.addItem(tr(str(kind)), kind)
        self.maps.currentIndexChanged.connect(
            lambda at: self.map_wanted.emit(self.maps.itemData(at))
        )
        self.covers: CheckBox = named(
            CheckBox(tr("cover the image")),
            "kinetics_covers",
            tr("If on, the map covers the image; if off, the map is transparent."),
        )
        self.covers.toggled.connect(self.cover_changed)
        self.has_floor: CheckBox = named(
            CheckBox(tr("only where PE ≥")),
            "kinetics_has_floor",
            tr("Hides the map where the PE of the initial phase is below this value."),
        )
        self.has_floor.setChecked(True)
        self.floor: QSpinBox = named(
            QSpinBox(), "kinetics_floor", tr("Minimum PE of the initial phase, in percent")
        )
        self.floor.setRange(0, 200)
        self.floor.setSingleStep(10)
        self.floor.setValue(50)
        self.floor.setSuffix(" %")
        self.has_floor.toggled.connect(lambda _on: self._tell_floor())
        self.floor.valueChanged.connect(lambda _value: self._tell_floor())
        self.ranges: QComboBox = named(
            QComboBox(),
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
