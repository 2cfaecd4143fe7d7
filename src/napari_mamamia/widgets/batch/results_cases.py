"""The Case table tab: filters, cases and row actions."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from qtpy.QtCore import QAbstractTableModel, QModelIndex, QObject, QPoint, Qt, QTimer, Signal
from qtpy.QtGui import QColor, QResizeEvent
from qtpy.QtWidgets import (
    QComboBox,
    QGridLayout,
    QHeaderView,
    QLabel,
    QSizePolicy,
    QWidget,
)

from napari_mamamia.core.records import CaseScore, ScoreStatus
from napari_mamamia.core.texts import tr
from napari_mamamia.io.files.file_names import case_key
from napari_mamamia.metrics.registry import MetricSpec, Place, metrics_at
from napari_mamamia.scoring.report.text import name_status
from napari_mamamia.services.score import case_table
from napari_mamamia.widgets.base.jobs import JobRunner
from napari_mamamia.widgets.cases.page import CaseTable as CaseTableView
from napari_mamamia.widgets.controls.colours import QUIET_COLOUR, TINTS
from napari_mamamia.widgets.controls.controls import (
    fill_column,
    label,
    named,
    row,
    set_level,
    tool_button,
)
from napari_mamamia.widgets.controls.fields import combo_box, line_edit
from napari_mamamia.widgets.controls.short_texts import DottedChoice, ShortLabel
from napari_mamamia.widgets.score.tags_line import tags_menu

_UNKNOWN: Final = "–"
_LEAST_COLUMN_WIDTH: Final = 56
_TITLE_MARGIN: Final = 30
_LETTER_WIDTH: Final = 5.5
POOR_DICE: Final = 0.5
"""Dice below which a result is poor, because fewer voxels are shared than differ (our choice)."""
GOOD_DICE: Final = 0.7
"""Dice at or above which a result is good (Zijdenbos et al., IEEE Trans. Med. Imaging 13, 1994)."""
_CAUTION: Final = (ScoreStatus.REFERENCE_EMPTY, ScoreStatus.BOTH_EMPTY)

Cell = tuple[case_table.CaseTable, int]
"""A table and the index of one of its rows."""


@dataclass(frozen=True, slots=True)
class _Column:
    """A column with its title and unit, description, sort key, value and number of digits."""

    title: str
    tip: str
    sort: str
    value: Callable[[Cell], Any]
    width: int
    digits: int = 0
    is_number: bool = False


def _make_score_reader(field: str, divisor: float = 1.0) -> Callable[[Cell], float]:
    def value(cell: Cell) -> float:
        return float(getattr(cell[0].rows[cell[1]], field)) / divisor

    return value


_TINTED: Final = {
    "dsc": tr(
        ". Vermilion below {poor_dice}, orange below {good_dice}",
        poor_dice=POOR_DICE,
        good_dice=GOOD_DICE,
    )
}


def _metric_column(spec: MetricSpec) -> _Column:
    way = spec.in_tables
    title = f"{spec.heading} [{way.unit}]" if way.unit else spec.heading
    tip = spec.meaning[:1].upper() + spec.meaning[1:] + _TINTED.get(spec.name, "")
    width = max(_LEAST_COLUMN_WIDTH, round(_TITLE_MARGIN + _LETTER_WIDTH * len(title)))
    value = _make_score_reader(spec.name, way.divisor)
    return _Column(title, tip, spec.name, value, width, way.decimals, is_number=True)


def _list_kinds(cell: Cell) -> str:
    return ", ".join(failure.kind.value for failure in cell[0].failures[cell[1]])


def _find_reason(cell: Cell) -> str:
    row = cell[0].rows[cell[1]]
    return row.reason or row.warning


_METRICS: Final = tuple(metrics_at(Place.CASES))
_N_FIRST: Final = 2
"""Number of metrics shown before the failures, which must remain visible in a narrow table."""
_COLUMNS: Final = (
    _Column("case", tr("Name of the case."), "case", lambda c: c[0].rows[c[1]].case_id, 104),
    _Column(
        "status",
        tr("Whether the case was scored without a problem."),
        "status",
        lambda c: name_status(c[0].rows[c[1]]),
        112,
    ),
    *(_metric_column(spec) for spec in _METRICS[:_N_FIRST]),
    _Column(
        "failure",
        tr("Types of failure, determined from the two masks."),
        "failure",
        _list_kinds,
        150,
    ),
    *(_metric_column(spec) for spec in _METRICS[_N_FIRST:]),
    _Column(
        tr("tags"),
        tr("Readers' tags; right-click a row to add or remove them."),
        "tag",
        lambda c: ", ".join(c[0].tags[c[1]]),
        90,
    ),
    _Column(
        tr("reason or warning"),
        tr("Why a case was not scored, or what is unusual about it."),
        "reason",
        _find_reason,
        100,
    ),
)
_STATUS, _DICE, _NEEDS_LOOK, _REASON = (
    [column.sort for column in _COLUMNS].index(key)
    for key in ("status", "dsc", "failure", "reason")
)

LEGEND: Final = (
    ("problem", tr("Dice below {poor_dice}, or not scored", poor_dice=POOR_DICE)),
    ("caution", tr("Dice below {good_dice}, or a warning", good_dice=GOOD_DICE)),
)
"""Meaning of each cell colour, by the names of `TINTS`."""

COLUMN_WIDTHS: Final = tuple(column.width for column in _COLUMNS)
"""Width of each column in pixels."""


class ResultsModel(QAbstractTableModel):
    """One read-only row for each selected case.

    The signal `sort_wanted` carries the sort key ("" for worst first) and whether to sort
    ascending.
    """

    sort_wanted = Signal(str, bool)

    def __init__(self) -> None:
        super().__init__()
        self._table: case_table.CaseTable | None = None
        self._shown: case_table.Selection | None = None

    @property
    def table(self) -> case_table.CaseTable | None:
        """The table of the shown rows."""
        return self._table

    def show_rows(
        self, table: case_table.CaseTable | None, shown: case_table.Selection | None
    ) -> None:
        """Show the selected rows of a table."""
        self.beginResetModel()
        self._table, self._shown = table, shown
        self.endResetModel()

    def show_order(self, table: case_table.CaseTable, shown: case_table.Selection) -> None:
        """Show other rows, or the same rows in another order; reset only if the count differs."""
        if self._shown is None or len(shown) != len(self._shown):
            self.show_rows(table, shown)
            return
        self.layoutAboutToBeChanged.emit()
        self._table, self._shown = table, shown
        self.layoutChanged.emit()

    def case_id(self, place: int) -> str:
        """Return the id of the case at a position."""
        table, row = self._find_cell(place)
        return table.rows[row].case_id

    def tags_at(self, place: int) -> tuple[str, ...]:
        """Return the tags of the case at a position."""
        table, row = self._find_cell(place)
        return table.tags[row]

    def case_ids(self) -> list[str]:
        """Return the ids of the shown cases, in order."""
        if self._table is None or self._shown is None:
            return []
        rows = self._table.rows
        return [rows[row].case_id for row in self._shown.rows]

    def case_keys(self) -> list[str]:
        """Return the keys of the shown cases, which do not depend on letter case."""
        if self._table is None or self._shown is None:
            return []
        return self._shown.pick(self._table.keys)

    def place_of(self, key: str) -> int | None:
        """Return the position of the case with this key, or None if it is not shown."""
        if self._table is None or self._shown is None or key not in self._table.keys:
            return None
        return self._shown.place_of(self._table.keys.index(key))

    # ------------------------------------------------------------------- for Qt

    def rowCount(self, parent: QModelIndex | None = None) -> int:
        """Return the number of shown cases."""
        nothing = self._shown is None or (parent is not None and parent.isValid())
        return 0 if nothing or self._shown is None else len(self._shown)

    def columnCount(self, parent: QModelIndex | None = None) -> int:
        """Return the number of columns."""
        return 0 if parent is not None and parent.isValid() else len(_COLUMNS)

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        """Request another order; column -1 sorts the worst cases first."""
        key = _COLUMNS[column].sort if 0 <= column < len(_COLUMNS) else case_table.WORST_FIRST
        self.sort_wanted.emit(key, order == Qt.SortOrder.AscendingOrder)

    def data(self, index: QModelIndex, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return a cell's text, tooltip, colour or alignment."""
        if role == Qt.ItemDataRole.DisplayRole:
            return self._describe_cell(index)
        if role == Qt.ItemDataRole.ToolTipRole:
            return self._make_tip(index)
        if role == Qt.ItemDataRole.BackgroundRole:
            table, row = self._find_cell(index.row())
            return _choose_tint(index.column(), table.rows[row])
        if role == Qt.ItemDataRole.ForegroundRole and self._describe_cell(index) == _UNKNOWN:
            return QColor(QUIET_COLOUR)
        if role == Qt.ItemDataRole.TextAlignmentRole and _COLUMNS[index.column()].is_number:
            return Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        return None

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        """Return a column's title with its unit, or its description."""
        if orientation is not Qt.Orientation.Horizontal or section >= len(_COLUMNS):
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return _COLUMNS[section].title
        return _COLUMNS[section].tip if role == Qt.ItemDataRole.ToolTipRole else None

    # -------------------------------------------------------------------- inner

    def _find_cell(self, place: int) -> Cell:
        if self._table is None or self._shown is None:
            raise IndexError(tr("expected a case at position {place}, but found none", place=place))
        return self._table, self._shown.row_at(place)

    def _describe_cell(self, index: QModelIndex) -> str:
        column, cell = _COLUMNS[index.column()], self._find_cell(index.row())
        if index.column() == _NEEDS_LOOK and not cell[0].knows_failures:
            return _UNKNOWN
        return _format_value(column.value(cell), column.digits)

    def _make_tip(self, index: QModelIndex) -> str:
        table, row = self._find_cell(index.row())
        lines = [f"{_COLUMNS[index.column()].tip}: {self._describe_cell(index)}"]
        if index.column() == _NEEDS_LOOK:
            lines += [f"{failure.kind.value}: {failure.reason}" for failure in table.failures[row]]
            if not table.knows_failures:
                lines = [tr("The types of failure have not been determined yet.")]
        return "\n".join([*lines, _find_reason((table, row))]).strip()


def _format_value(value: Any, digits: int) -> str:
    if isinstance(value, float):
        return f"{value:,.{digits}f}" if math.isfinite(value) else _UNKNOWN
    return str(value)


def _choose_tint(column: int, row: CaseScore) -> QColor | None:
    kind = ""
    if column == _DICE:
        kind = dice_kind(row.dsc)
    elif column == _STATUS and row.status is not ScoreStatus.OK:
        kind = "caution" if row.status in _CAUTION else "problem"
    elif column == _REASON and row.warning:
        kind = "caution"
    return QColor(TINTS[kind]) if kind else None


def dice_kind(dice: float) -> str:
    """Return the colour name for a Dice, or "" for a good or unknown value.

    Examples
    --------
    >>> [dice_kind(dice) for dice in (0.0, 0.49, 0.5, 0.69, 0.7, 1.0, float("nan"))]
    ['problem', 'problem', 'caution', 'caution', '', '', '']
    """
    if dice < POOR_DICE:
        return "problem"
    return "caution" if dice < GOOD_DICE else ""


_FEWEST_LETTERS: Final = 3
_LEAST_WIDTH: Final = 78
_BESIDE_WORDS: Final = 42
"""Width of a combo box in pixels without its text: borders, arrow and spacing."""
_ANY: Final = {
    case_table.STATUS: tr("any status"),
    case_table.SIZE: tr("any size"),
    case_table.FAILURE: tr("any failure"),
    case_table.TAG: tr("any tag"),
    case_table.GROUP: tr("any group"),
}
_TIPS: Final = {
    case_table.STATUS: tr("Shows only cases with one status."),
    case_table.SIZE: tr(
        "Shows only small, moderate or large tumours, by the 20th and 80th percentile of the "
        "reference volume, or by 20 and 50 mm if the clinical table has a diameter."
    ),
    case_table.FAILURE: tr("Shows only cases with one kind of failure."),
    case_table.TAG: tr("Shows only cases with one tag."),
}
_SIZE_TEXTS: Final = {"in no group": tr("size unknown")}

Choice = tuple[str, str]
"""The name of a facet and one of the facet's values."""


class FilterBar(QWidget):
    """The filters of the case table; `changed` is emitted when `chosen` or `words` changes."""

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("results_filters")
        self._table: case_table.CaseTable | None = None
        self._boxes = {name: self._make_combo(f"results_{name}", _TIPS[name]) for name in _TIPS}
        self.status, self.size = self._boxes[case_table.STATUS], self._boxes[case_table.SIZE]
        self.failure, self.tag = self._boxes[case_table.FAILURE], self._boxes[case_table.TAG]
        self.variable = self._make_combo("results_variable", tr("Group variable to filter by."))
        self.value = self._make_combo("results_group", tr("Shows only cases of one group."))
        self.variable.currentIndexChanged.connect(lambda _at: self._fill_groups())
        words = tr("Shows only cases with these words in any text column.")
        self.search = line_edit("results_search", words, tr("search"))
        self.search.setClearButtonEnabled(True)
        self.search.setMinimumWidth(_LEAST_WIDTH)
        self.search.textChanged.connect(lambda _text: self._say_changed())
        self.clear = tool_button(
            "results_clear",
            tr("Clear"),
            tr("Shows all cases again, with the worst first."),
            self.clear_all,
        )
        self.clear.setProperty("framed", True)
        self.count: QLabel = named(QLabel(), "results_count", tr("Number of cases in the table."))
        self._lay_out()

    # ---------------------------------------------------------------- for others

    def show_table(self, table: case_table.CaseTable | None) -> None:
        """Offer the facet values of the table's cases; choices that still exist are kept."""
        self._table = table
        for name, box in self._boxes.items():
            self._fill_box(box, _ANY[name], self._facets_for(name))
        self._fill_variables()
        self._fill_groups(tell=False)

    def clear_all(self) -> None:
        """Reset all filters."""
        for box in (*self._boxes.values(), self.variable):
            box.blockSignals(True)
            box.setCurrentIndex(0)
            box.blockSignals(False)
        self._fill_groups(tell=False)
        self.search.blockSignals(True)
        self.search.clear()
        self.search.blockSignals(False)
        self._say_changed()

    @property
    def chosen(self) -> tuple[Choice, ...]:
        """All chosen facets and their values."""
        boxes = (*self._boxes.values(), self.value)
        return tuple(box.currentData() for box in boxes if box.currentData() is not None)

    @property
    def words(self) -> tuple[str, ...]:
        """The words that a row must contain."""
        return tuple(self.search.text().split())

    def show_count(self, shown: int, total: int) -> None:
        """Show the number of listed cases and of all cases."""
        self.count.setText(tr("{shown:,} of {total:,} shown", shown=shown, total=total))
        set_level(self.count, "hint" if shown == total else "warning")

    # -------------------------------------------------------------------- inner

    def _make_combo(self, name: str, tip: str) -> QComboBox:
        combo: QComboBox = named(DottedChoice(), name, tip)
        combo.setMinimumContentsLength(_FEWEST_LETTERS)
        policy = QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon
        combo.setSizeAdjustPolicy(policy)
        combo.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        combo.setMinimumWidth(_LEAST_WIDTH)
        if name != "results_variable":
            combo.currentIndexChanged.connect(lambda _at: self._say_changed())
        return combo

    def _lay_out(self) -> None:
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setSpacing(4)
        self._fit_lines()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Arrange the filters in one line, or in two lines if one line is too narrow."""
        super().resizeEvent(event)
        self._fit_lines()

    def _fit_lines(self) -> None:
        boxes = (self.status, self.size, self.variable, self.value, self.failure, self.tag)
        has_groups = self.variable.currentData() is not None
        cells = [cell for cell in (*boxes, self.clear) if cell is not self.value or has_groups]
        words = [box.itemText(0) for box in boxes]
        widest = max(map(self.fontMetrics().horizontalAdvance, words))
        at_most = max(1, (self.width() + self._grid.spacing()) // (widest + _BESIDE_WORDS))
        n_lines = 1 if at_most >= len(cells) else 2
        n_columns = -(-len(cells) // n_lines)
        for index, cell in enumerate(cells):
            self._grid.addWidget(cell, index // n_columns, index % n_columns)
        for at in range(len(boxes) + 1):
            self._grid.setColumnStretch(at, at < n_columns)

    def _facets_for(self, name: str) -> list[case_table.Facet]:
        if self._table is None:
            return []
        names = (case_table.SIZE, case_table.DIAMETER) if name == case_table.SIZE else (name,)
        return [facet for facet_name in names if (facet := self._table.facet(facet_name))]

    def _fill_box(self, box: QComboBox, anything: str, facets: list[case_table.Facet]) -> None:
        before = box.currentData()
        box.blockSignals(True)
        box.clear()
        box.addItem(anything, None)
        for facet in facets:
            for value, count in zip(facet.values, facet.counts, strict=True):
                text = _SIZE_TEXTS.get(value, value) if box is self.size else value
                box.addItem(f"{text} ({count:,})", (facet.name, value))
        _choose_item(box, before)
        box.setEnabled(box.count() > 1)
        box.blockSignals(False)
        wide = max(map(len, _list_items(box)))
        box.view().setMinimumWidth(box.fontMetrics().averageCharWidth() * wide + 40)

    def _fill_variables(self) -> None:
        before = self.variable.currentData()
        facets = self._table.facets if self._table else ()
        self.variable.blockSignals(True)
        self.variable.clear()
        self.variable.addItem(tr("group by …"), None)
        for facet in facets:
            if facet.name.startswith(case_table.GROUP):
                self.variable.addItem(facet.title, facet.name)
        _choose_item(self.variable, before)
        self.variable.setEnabled(self.variable.count() > 1)
        self.variable.blockSignals(False)
        wide = max(map(len, _list_items(self.variable)))
        letters = self.variable.fontMetrics().averageCharWidth()
        self.variable.view().setMinimumWidth(letters * wide + 40)

    def _fill_groups(self, *, tell: bool = True) -> None:
        before = self.value.currentData()
        name = self.variable.currentData()
        self._fill_box(self.value, _ANY[case_table.GROUP], self._facets_for(name) if name else [])
        self._fit_lines()
        self.value.setVisible(name is not None)
        if tell and before is not None:
            self._say_changed()

    def _say_changed(self) -> None:
        self.clear.setEnabled(bool(self.chosen or self.words))
        self.changed.emit()


def _list_items(box: QComboBox) -> list[str]:
    return [box.itemText(index) for index in range(box.count())]


def _choose_item(box: QComboBox, data: object) -> None:
    places = [
        index for index in range(box.count()) if data is not None and box.itemData(index) == data
    ]
    box.setCurrentIndex(places[0] if places else 0)


# Selection and order of the rows of the case table, computed immediately or in a thread.

_AT_ONCE: Final = 5000
"""Maximum number of rows that are filtered and sorted in the GUI thread, in a few ms."""
_WAIT_MS: Final = 80
"""Delay in ms before a large table is searched, in case another letter is typed."""
_LANE: Final = "results_order"


class CaseOrder(QObject):
    """A runner of queries on a case table; for a large table, only the newest query is run.

    The signal `ordered` carries the table and its `Selection`.
    """

    ordered = Signal(object, object)

    def __init__(self, jobs: JobRunner) -> None:
        super().__init__()
        self._jobs = jobs
        self._table: case_table.CaseTable | None = None
        self._query = case_table.CaseQuery()
        self._wait = QTimer(self)
        self._wait.setSingleShot(True)
        self._wait.setInterval(_WAIT_MS)
        self._wait.timeout.connect(self._start_sorting)

    def ask(self, table: case_table.CaseTable | None, query: case_table.CaseQuery) -> None:
        """Compute the selection of a table for a query."""
        self._table, self._query = table, query
        self._jobs.cancel(_LANE)
        self._wait.stop()
        if table is None:
            return
        if len(table.rows) <= _AT_ONCE:
            self.ordered.emit(table, case_table.select_cases(table, query))
        else:
            self._wait.start()

    def _start_sorting(self) -> None:
        table, query = self._table, self._query
        if table is None:
            return

        self._jobs.start(
            _LANE,
            tr("Sorting the cases"),
            lambda: case_table.select_cases(table, query),
            lambda selection: self.ordered.emit(table, selection),
            shown=False,
        )


_RUN_TIP: Final = tr("The run in the table.")
_NOTHING: Final = tr("Nothing has been scored yet: the Batch page scores folders of masks.")


class CasesTab(QWidget):
    """The Case table tab, whose signals report choices of the user.

    `case_chosen` carries a case id; `tag_wanted` carries a case id, a tag and whether to set it.
    `reordered` is emitted when the rows or their order change; `model_chosen` carries the index of
    a model.
    """

    case_chosen = Signal(str)
    tag_wanted = Signal(str, str, bool)
    reordered = Signal()
    model_chosen = Signal(int)

    def __init__(self, jobs: JobRunner) -> None:
        super().__init__()
        self._table: case_table.CaseTable | None = None
        self._sort, self._upwards = case_table.WORST_FIRST, True
        self._current = ""
        self._is_new = self._is_resorted = False
        self.rows = ResultsModel()
        self.order = CaseOrder(jobs)
        self.order.setParent(self)
        self.order.ordered.connect(self._show_order)
        self.rows.sort_wanted.connect(self._sort_by)
        self.filters = FilterBar()
        self.filters.changed.connect(self._ask_order)
        self._make_table()
        self._lay_out()
        self.show_table(None, _NOTHING)

    # ---------------------------------------------------------------- for others

    def show_table(self, table: case_table.CaseTable | None, title: str) -> None:
        """Show all cases of another run, with the worst first."""
        self._table, self._is_new = table, True
        self.summary.set_texts(title, re.split(" · |: ", title)[0])
        self.summary.setToolTip(f"{_RUN_TIP}: {title}")
        self.filters.show_table(table)
        self.filters.setEnabled(table is not None)
        self._sort, self._upwards = case_table.WORST_FIRST, True
        self.table.horizontalHeader().setSortIndicator(-1, Qt.SortOrder.AscendingOrder)
        self.rows.show_rows(None, None)
        self.filters.clear_all()

    def update_table(self, table: case_table.CaseTable) -> None:
        """Update the properties of the same cases, such as their tags."""
        self._table = table
        self.filters.show_table(table)
        self._ask_order()

    def show_models(self, names: list[str], at: int = 0) -> None:
        """Offer the models of a run for choice if there are several, and select one."""
        self.models.blockSignals(True)
        self.models.clear()
        self.models.addItems(names)
        self.models.setCurrentIndex(at)
        self.models.blockSignals(False)
        self.models.setVisible(len(names) > 1)

    def set_current(self, case_id: str) -> None:
        """Highlight the open case, and scroll to its row if the case changed."""
        is_new, self._current = case_id != self._current, case_id
        self._mark_current()
        row = self._place_of_current()
        if is_new and row is not None:
            self.table.scrollTo(self.rows.index(row, 0))

    def tags_menu_at(self, place: int) -> object:
        """Return the context menu with the tags of the case in a row."""
        case_id = self.rows.case_id(place)
        return tags_menu(
            self,
            case_id,
            self.rows.tags_at(place),
            lambda tag, on: self.tag_wanted.emit(case_id, tag, on),
        )

    # -------------------------------------------------------------------- inner

    def _place_of_current(self) -> int | None:
        return self.rows.place_of(case_key(self._current)) if self._current else None

    def _mark_current(self) -> None:
        row = self._place_of_current()
        if row is None:
            self.table.clearSelection()
            return
        self.table.setAutoScroll(False)
        self.table.selectRow(row)
        self.table.setAutoScroll(True)

    def _make_table(self) -> None:
        self.table: CaseTableView = named(
            CaseTableView(),
            "results_table",
            tr(
                "Double-click a case or press Enter to open the case with its errors in colour. "
                "Click a title to sort. Right-click to set tags."
            ),
        )
        self.table.setModel(self.rows)
        self.table.setAlternatingRowColors(False)
        self.table.setSortingEnabled(True)
        self.table.fit.set_widths(COLUMN_WIDTHS)
        self.table.horizontalHeader().setHighlightSections(False)
        self.table.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
        self.table.horizontalHeader().setMinimumSectionSize(40)
        self.table.horizontalHeader().setStretchLastSection(True)
        self.table.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.table.customContextMenuRequested.connect(self._open_menu)
        self.table.opened.connect(lambda at: self.case_chosen.emit(self.rows.case_id(at)))

    def _lay_out(self) -> None:
        self.summary: ShortLabel = named(ShortLabel(), "results_summary", _RUN_TIP)
        self.summary.setProperty("heading", True)
        self.models = combo_box("results_model", tr("Model whose cases the table shows."))
        self.models.currentIndexChanged.connect(lambda at: self.model_chosen.emit(at))
        self.models.hide()
        self.legend = label("results_legend", _legend_text(), tr("Meaning of the cell colours."))
        # This control is next to the title because the filters below need the full width.
        title = row(self.summary, self.models, self.filters.search, self.filters.count)
        title.layout().setStretch(0, 1)
        fill_column(
            self, title, self.filters, self.table, self.legend, margins=(0, 4, 0, 0), spacing=4
        )

    def _sort_by(self, key: str, upwards: bool) -> None:
        self._sort, self._upwards = key, upwards
        self._is_resorted = True
        self._ask_order()

    def _ask_order(self) -> None:
        query = case_table.CaseQuery(
            self.filters.chosen, self.filters.words, self._sort, self._upwards
        )
        self.order.ask(self._table, query)

    def _show_order(self, table: case_table.CaseTable, shown: case_table.Selection) -> None:
        if self._is_new:
            self.rows.show_rows(table, shown)
        else:
            self.rows.show_order(table, shown)
        self.filters.show_count(len(shown), len(table.rows))
        self._mark_current()
        if self._is_new or self._is_resorted:
            self.table.scrollToTop()
        self._is_new = self._is_resorted = False
        self.reordered.emit()

    def _open_menu(self, where: QPoint) -> None:
        index = self.table.indexAt(where)
        if index.isValid():
            menu = self.tags_menu_at(index.row())
            menu.aboutToHide.connect(menu.deleteLater)  # type: ignore[attr-defined]
            menu.popup(self.table.viewport().mapToGlobal(where))  # type: ignore[attr-defined]


def _legend_text() -> str:
    parts = [f'<span style="color:#{TINTS[kind][-6:]}">■</span> {what}' for kind, what in LEGEND]
    return " &nbsp; ".join(
        [
            *parts,
            tr('<span style="color:{quiet_colour}">–</span> unknown', quiet_colour=QUIET_COLOUR),
        ]
    )
