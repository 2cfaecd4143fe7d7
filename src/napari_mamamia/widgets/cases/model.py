"""Qt model of the case table, which sorts and searches thousands of rows by precomputed keys.

A QSortFilterProxyModel calls Python for both sides of each comparison; sorting a list of
precomputed keys is fast in Python.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any, Final

from qtpy.QtCore import QAbstractTableModel, QModelIndex, Qt
from qtpy.QtGui import QColor, QFont

from napari_mamamia.core.cohort import CaseRecord
from napari_mamamia.core.texts import tr, tr_n
from napari_mamamia.services.case.data_set import CaseRow
from napari_mamamia.widgets.controls.colours import QUIET_COLOUR

_UNKNOWN: Final = "–"
_SKIPPED_FIELDS: Final = ("case_id", "other", "acquisition_times_s")


@dataclass(frozen=True, slots=True)
class Column:
    """A column with title, tooltip, and a function for the text of a row (None if unknown)."""

    title: str
    tip: str
    value: Callable[[CaseRow], Any]


BASIC_COLUMNS: Final = (
    Column("case", tr("Name of the case"), lambda row: row.case_id),
    Column(
        "ph.",
        tr("Number of phases. Those of a DICOM study are counted when it is opened"),
        lambda row: row.n_phases,
    ),
    Column(
        "ref.",
        tr("Whether there is a reference mask"),
        lambda row: _mark_presence(row.has_reference),
    ),
    Column("pred.", tr("Models with a saved prediction"), lambda row: _join_names(row.predictions)),
    Column(
        "refined",
        tr("Readers with a saved mask; ✓ means accepted"),
        lambda row: _join_names(
            tuple(f"{name} ✓" if name in row.accepted else name for name in row.refined)
        ),
    ),
    Column("status", tr("Progress of the work, or the problem"), lambda row: row.status),
)


EXAM_COLUMNS: Final = (
    Column(
        "patient",
        tr("Patient"),
        lambda row: row.files.patient if row.files.visit or row.files.side else None,
    ),
    Column(
        "visit",
        tr("Visit, as named in the data set"),
        lambda row: row.files.visit.name if row.files.visit else None,
    ),
    Column("side", tr("Side of the breast"), lambda row: row.files.side or None),
    Column("split", tr("Part of the data set"), lambda row: row.files.split or None),
)


def exam_columns(rows: Sequence[CaseRow]) -> tuple[Column, ...]:
    """Return the columns of patient, visit, side and split that are not empty."""
    return tuple(column for column in EXAM_COLUMNS if any(column.value(row) for row in rows))


def clinical_columns(rows: Sequence[CaseRow]) -> tuple[Column, ...]:
    """Return a column for each field of exams and tables that is not empty."""
    records = [row.record for row in rows if row.record is not None]
    field_names = [field.name for field in fields(CaseRecord) if field.name not in _SKIPPED_FIELDS]
    filled_names = [
        name for name in field_names if any(getattr(r, name) is not None for r in records)
    ]
    other = dict.fromkeys(name for record in records for name in record.other)
    own = dict.fromkeys(name for row in rows for name in row.files.columns)
    return (
        *exam_columns(rows),
        *(_make_own_column(name) for name in own if name not in other),
        *(_make_column(name, attrgetter(name)) for name in filled_names),
        *(_make_column(name, _make_other_reader(name)) for name in other),
    )


class CaseTableModel(QAbstractTableModel):
    """Cases as rows, which `show_rows` replaces, `set_search` filters and `sort` orders."""

    def __init__(self) -> None:
        super().__init__()
        self._rows: list[CaseRow] = []
        self._columns: tuple[Column, ...] = BASIC_COLUMNS
        self._texts: list[list[str]] = []
        self._keys: list[list[tuple[int, float, str]]] = []
        self._search_texts: list[str] = []
        self._matching: list[int] = []
        self._groups: dict[str, list[int]] = {}
        self._open: set[str] = set()
        self._open_before: set[str] | None = (
            None  # This precedes the search, which unfolds all patients.
        )
        self._shown: list[int | str] = []
        self._search = ""
        self._sorting: tuple[int, bool] | None = None
        self._current = ""

    # ------------------------------------------------------------- for the page

    def show_rows(self, rows: Sequence[CaseRow], columns: tuple[Column, ...]) -> None:
        """Show `rows` under `columns`, in the given order until the user sorts."""
        self.beginResetModel()
        self._rows, self._columns = list(rows), columns
        self._open &= {row.files.patient for row in rows}
        self._make_texts()
        if self._sorting is not None and self._sorting[0] >= len(columns):
            self._sorting = None
        self._arrange_rows()
        self.endResetModel()

    def set_row(self, row: CaseRow) -> None:
        """Update one case in its current row."""
        for index, before in enumerate(self._rows):
            if before.case_id == row.case_id:
                self._rows[index] = row
                self._texts[index], self._keys[index] = self._texts_of(row)
                self._search_texts[index] = " ".join(self._texts[index]).lower()
        self._repaint_rows()

    def set_current(self, case_id: str) -> None:
        """Mark a case as the open case, in bold."""
        self._current = case_id
        self._repaint_rows()

    def set_search(self, text: str) -> None:
        """Show only the rows that contain every word of `text`, in any column."""
        self.beginResetModel()
        self._search = text
        self._arrange_rows()
        self.endResetModel()

    def case_id(self, row: int) -> str:
        """Return the id of the case in a displayed row, or "" for the row of a patient."""
        entry = self._shown[row]
        return "" if isinstance(entry, str) else self._rows[entry].case_id

    def case_ids(self) -> list[str]:
        """Return the ids of the cases that match the search, in order, even if folded."""
        return [self._rows[index].case_id for index in self._matching]

    def open_group(self, row: int, is_open: bool | None = None) -> bool:
        """Unfold or fold the exams of a patient; return whether the row belongs to a patient.

        Without `is_open`, the state is toggled.
        """
        patient = self._shown[row]
        if not isinstance(patient, str):
            return False
        if is_open is None:
            is_open = patient not in self._open
        if is_open != (patient in self._open):
            exams = self._groups[patient]
            if is_open:
                self.beginInsertRows(QModelIndex(), row + 1, row + len(exams))
                self._shown[row + 1 : row + 1] = exams
                self._open.add(patient)
                self.endInsertRows()
            else:
                self.beginRemoveRows(QModelIndex(), row + 1, row + len(exams))
                del self._shown[row + 1 : row + 1 + len(exams)]
                self._open.remove(patient)
                self.endRemoveRows()
            self.dataChanged.emit(self.index(row, 0), self.index(row, len(self._columns) - 1))
        return True

    def group_row(self, row: int) -> int:
        """Return the row of the patient to whom a displayed row belongs, or -1 without patients."""
        return next((at for at in range(row, -1, -1) if isinstance(self._shown[at], str)), -1)

    def show_case(self, case_id: str) -> int:
        """Return the displayed row of a case, unfolding its patient; -1 if it does not match."""
        for patient, exams in self._groups.items():
            if any(self._rows[index].case_id == case_id for index in exams):
                self.open_group(self._shown.index(patient), is_open=True)
        ids = (self.case_id(row) for row in range(len(self._shown)))
        return next((row for row, name in enumerate(ids) if name == case_id), -1)

    # ------------------------------------------------------------------- for Qt

    def rowCount(self, parent: QModelIndex | None = None) -> int:
        """Return the number of displayed rows."""
        return 0 if parent is not None and parent.isValid() else len(self._shown)

    def columnCount(self, parent: QModelIndex | None = None) -> int:
        """Return the number of columns."""
        return 0 if parent is not None and parent.isValid() else len(self._columns)

    def data(self, index: QModelIndex, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return a cell's text, tooltip or font."""
        place = self._shown[index.row()]
        if isinstance(place, str):
            return self._group_data(place, index.column(), role)
        if role == Qt.ItemDataRole.DisplayRole:
            return self._texts[place][index.column()]
        if role == Qt.ItemDataRole.ToolTipRole:
            return self._make_tooltip(place, index.column())
        if role == Qt.ItemDataRole.ForegroundRole:
            unknown = self._texts[place][index.column()] == _UNKNOWN
            return QColor(QUIET_COLOUR) if unknown else None
        if role == Qt.ItemDataRole.FontRole and self._rows[place].case_id == self._current:
            return bold_font()
        return None

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        """Return a column's title and tooltip."""
        if orientation is not Qt.Orientation.Horizontal or section >= len(self._columns):
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return self._columns[section].title
        return self._columns[section].tip if role == Qt.ItemDataRole.ToolTipRole else None

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        """Sort by a column: numbers by value, text in natural order, unknown values last."""
        self.layoutAboutToBeChanged.emit()
        old_indices = [(index, self._shown[index.row()]) for index in self.persistentIndexList()]
        backwards = order == Qt.SortOrder.DescendingOrder
        self._sorting = (column, backwards) if 0 <= column < len(self._columns) else None
        self._arrange_rows()
        where = {place: row for row, place in enumerate(self._shown)}
        for index, place in old_indices:
            row = where.get(place)
            new = QModelIndex() if row is None else self.index(row, index.column())
            self.changePersistentIndex(index, new)
        self.layoutChanged.emit()

    # -------------------------------------------------------------------- inner

    def _make_texts(self) -> None:
        pairs = [self._texts_of(row) for row in self._rows]
        self._texts = [texts for texts, _ in pairs]
        self._keys = [keys for _, keys in pairs]
        self._search_texts = [" ".join(texts).lower() for texts in self._texts]

    def _texts_of(self, row: CaseRow) -> tuple[list[str], list[tuple[int, float, str]]]:
        values = [column.value(row) for column in self._columns]
        return [_format_value(value) for value in values], [
            _make_sort_key(value) for value in values
        ]

    def _arrange_rows(self) -> None:
        words = self._search.lower().split()
        texts = self._search_texts
        shown = [n for n in range(len(texts)) if all(word in texts[n] for word in words)]
        if self._sorting is not None:
            column, backwards = self._sorting
            unknown = [n for n in shown if self._keys[n][column][0] == _LAST]
            valued_rows = [n for n in shown if self._keys[n][column][0] != _LAST]
            valued_rows.sort(key=lambda n: self._keys[n][column], reverse=backwards)
            shown = valued_rows + unknown
        self._matching = shown
        self._groups = self._group_rows(shown)
        if words:
            if self._open_before is None:
                self._open_before = self._open
            self._open = set(self._groups)
        elif self._open_before is not None:
            self._open, self._open_before = self._open_before, None
        self._shown = list(shown)
        if self._groups:
            self._matching = [index for exams in self._groups.values() for index in exams]
            self._shown = []
            for patient, exams in self._groups.items():
                self._shown += [patient, *(exams if patient in self._open else ())]

    def _group_rows(self, shown: Sequence[int]) -> dict[str, list[int]]:
        groups: dict[str, list[int]] = {}
        for index in shown:
            files = self._rows[index].files
            groups.setdefault(files.patient or files.case_id, []).append(index)
        patients = Counter(row.files.patient for row in self._rows)
        has_several = any(count > 1 for patient, count in patients.items() if patient)
        return groups if has_several else {}

    def _group_data(self, patient: str, column: int, role: int) -> Any:
        exams = self._groups[patient]
        if role == Qt.ItemDataRole.DisplayRole and column == 0:
            sign = "▾" if patient in self._open else "▸"
            return f"{sign} {patient} ({len(exams)})"
        if role == Qt.ItemDataRole.ToolTipRole:
            return tr_n(
                "{patient}: {n} exam. Enter unfolds or folds the exam.",
                "{patient}: {n} exams. Enter unfolds or folds the exams.",
                len(exams),
                patient=patient,
            )
        is_current = any(self._rows[index].case_id == self._current for index in exams)
        return bold_font() if role == Qt.ItemDataRole.FontRole and is_current else None

    def _make_tooltip(self, place: int, column: int) -> str:
        problems = self._rows[place].problems
        if problems and self._columns[column].title in ("case", "status"):
            return "\n".join(problems)
        return f"{self._columns[column].tip}: {self._texts[place][column]}"

    def _repaint_rows(self) -> None:
        if self._shown:
            last = self.index(len(self._shown) - 1, len(self._columns) - 1)
            self.dataChanged.emit(self.index(0, 0), last)


_FIRST, _LAST = 0, 1


def _make_sort_key(value: Any) -> tuple[int, float, str]:
    if value is None or value == "":
        return (_LAST, 0.0, "")
    if isinstance(value, bool | int | float):
        return (_FIRST, float(value), "")
    return (_FIRST, 0.0, re.sub(r"\d+", lambda m: m[0].zfill(12), str(value).lower()))


def _format_value(value: Any) -> str:
    if value is None or value == "":
        return _UNKNOWN
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _mark_presence(there: bool) -> str | None:
    return "yes" if there else None


def _join_names(names: tuple[str, ...]) -> str | None:
    return ", ".join(names) or None


def _make_column(name: str, read: Callable[[CaseRecord], Any]) -> Column:
    title = name.replace("_", " ")
    return Column(
        title,
        tr("Clinical table: {title}", title=title),
        lambda row: None if row.record is None else read(row.record),
    )


def _make_own_column(name: str) -> Column:
    return Column(
        name,
        tr("Table of the data set: {title}", title=name),
        lambda row: row.files.columns.get(name) or None,
    )


def _make_other_reader(name: str) -> Callable[[CaseRecord], Any]:
    return lambda record: record.other.get(name)


def bold_font(font: QFont | None = None) -> QFont:
    """Return a font in bold, by default the application's font."""
    new_font = QFont() if font is None else QFont(font)
    new_font.setBold(True)
    return new_font
