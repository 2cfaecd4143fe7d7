"""Tab Curves: the plot, its regions with their classes, pinning and export."""

from qtpy.QtCore import Qt, Signal
from qtpy.QtGui import QColor, QPixmap
from qtpy.QtWidgets import (
    QCheckBox,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QScrollArea,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from napari_mamamia.kinetics.curve_lines import CurveLine, CurvePlot
from napari_mamamia.widgets.controls.controls import (
    button,
    discard,
    label,
    named,
    row,
    set_level,
    tool_button,
)
from napari_mamamia.widgets.kinetics.curve_plot import CurvePlotView

__all__ = ["CurvesTab"]

_WIDE = 460
_SWATCH = 12


class CurvesTab(QWidget):
    """`pin_wanted` asks to keep the mask's curve, or ("cursor") the pointer's.

    `removed` carries the place of a pinned region, `renamed` its place and new name;
    `table_wanted` and `figure_wanted` ask where to save and do.
    """

    pin_wanted = Signal(str)
    removed = Signal(int)
    renamed = Signal(int, str)
    patch_changed = Signal(int)
    table_wanted = Signal()
    figure_wanted = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("curves_tab")
        self.view = CurvePlotView()
        self.warning = label("curves_warning", tip="What is uncertain about these curves")
        set_level(self.warning, "warning")
        self._list = QGridLayout()
        self._list.setColumnStretch(1, 1)
        self._list.setColumnStretch(2, 2)
        self._list.setVerticalSpacing(3)
        side = QWidget()
        side.setFixedWidth(_WIDE)
        beside = QVBoxLayout(side)
        beside.setContentsMargins(0, 0, 0, 0)
        beside.addWidget(self._make_buttons())
        beside.addWidget(self._make_list(), stretch=1)
        beside.addWidget(self.warning)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 4, 0, 0)
        layout.addWidget(self.view, stretch=1)
        layout.addWidget(side)
        self._keys: tuple[object, ...] = ()

    def show_curves(self, plot: CurvePlot, n_live: int) -> None:
        """Draw curves; the first `n_live` are the cursor's and the mask's, the rest is pinned."""
        self.view.show_plot(plot)
        self.warning.setText(plot.warning)
        self.warning.setVisible(bool(plot.warning))
        keys = tuple((line.name, line.colour) for line in plot.lines)
        if (n_live, keys) != self._keys:
            self._keys = (n_live, keys)
            self._rebuild(plot.lines, n_live)
        for place, line in enumerate(plot.lines):
            self._write(place, line)
        for made in (self.save_table, self.save_figure):
            made.setEnabled(bool(plot.lines))

    # -------------------------------------------------------------------- inner

    def _make_buttons(self) -> QWidget:
        self.pin = button(
            "curves_pin",
            "Pin mask",
            "Keeps the curve of the mask shown, to compare it with others",
            lambda: self.pin_wanted.emit("mask"),
        )
        self.pin_cursor = button(
            "curves_pin_cursor",
            "Pin pointer",
            "Keeps the curve last under the pointer",
            lambda: self.pin_wanted.emit("cursor"),
        )
        self.patch: QCheckBox = named(
            QCheckBox("3 × 3"), "curves_patch", "Mean of 3 x 3 voxels under the pointer, not of one"
        )
        self.patch.setChecked(True)
        self.patch.toggled.connect(lambda on: self.patch_changed.emit(3 if on else 1))
        self.save_table = button(
            "curves_table", "Table…", "Saves the curves as .csv or .xlsx", self.table_wanted.emit
        )
        self.save_figure = button(
            "curves_figure", "Figure…", "Saves the plot as .png and .svg", self.figure_wanted.emit
        )
        return row(self.pin, self.pin_cursor, self.patch, 1, self.save_table, self.save_figure)

    def _make_list(self) -> QWidget:
        holder = QWidget()
        outer = QVBoxLayout(holder)
        outer.setContentsMargins(0, 0, 6, 0)
        outer.addLayout(self._list)
        outer.addStretch(1)
        area: QScrollArea = named(
            QScrollArea(), "curves_list", "The regions with the classes of their curves"
        )
        area.setWidgetResizable(True)
        area.setWidget(holder)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        return area

    def _rebuild(self, lines: tuple[CurveLine, ...], n_live: int) -> None:
        while self._list.count():
            item = self._list.takeAt(0)
            widget = None if item is None else item.widget()
            if widget is not None:
                discard(widget)
        self._texts: list[QLabel] = []
        for place, line in enumerate(lines):
            self._list.addWidget(_swatch(line.colour), place, 0)
            pinned = place - n_live
            if pinned < 0:
                self._list.addWidget(QLabel(line.name), place, 1)
            else:
                self._list.addWidget(self._name_of(pinned, line.name), place, 1)
                self._list.addWidget(self._remover(pinned), place, 3)
            text = label(f"curves_classes_{place}", tip="Initial and delayed class, largest PE")
            text.setWordWrap(False)
            self._list.addWidget(text, place, 2)
            self._texts.append(text)

    def _name_of(self, pinned: int, name: str) -> QLineEdit:
        made: QLineEdit = named(
            QLineEdit(name), f"curves_name_{pinned}", "Name of this region in table and figure"
        )
        made.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        made.editingFinished.connect(lambda: self.renamed.emit(pinned, made.text()))
        return made

    def _remover(self, pinned: int) -> QWidget:
        return tool_button(
            f"curves_remove_{pinned}",
            "✕",
            "Takes this region away",
            lambda: self.removed.emit(pinned),
        )

    def _write(self, place: int, line: CurveLine) -> None:
        peak = max((value for value in line.percent[1:] if value == value), default=None)
        top = "" if peak is None else f", peak {peak:.0f} %"
        count = f" · {line.n_voxels} voxel(s)" if line.n_voxels else ""
        text = f"{line.classes}{top}"
        self._texts[place].setText(text)
        self._texts[place].setToolTip(f"{text}{count}")


def _swatch(colour: str) -> QLabel:
    pixmap = QPixmap(_SWATCH, _SWATCH)
    pixmap.fill(QColor(colour))
    made = QLabel()
    made.setPixmap(pixmap)
    made.setFixedWidth(_SWATCH + 4)
    return made
