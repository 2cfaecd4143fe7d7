"""The Score page: displayed masks compared with the reference, with units and definitions."""

import math
from collections.abc import Collection
from typing import Any, Final

from qtpy.QtCore import QAbstractTableModel, QModelIndex, Qt, Signal
from qtpy.QtWidgets import (
    QGridLayout,
    QHeaderView,
    QLabel,
    QTableView,
    QWidget,
)

from napari_mamamia.core.records import CaseScore
from napari_mamamia.core.texts import tr, tr_n
from napari_mamamia.metrics.registry import MetricSpec, Place, metrics_at
from napari_mamamia.scoring.case.profiles import CLINICAL
from napari_mamamia.services.case.show_case import ShownScores
from napari_mamamia.services.score.review import Agreement, Agrees, ErrorPart
from napari_mamamia.widgets.base.keys import with_key
from napari_mamamia.widgets.base.layers import Role
from napari_mamamia.widgets.controls.colours import AGREEMENT_COLOURS, MASK_COLOURS
from napari_mamamia.widgets.controls.controls import (
    FittedLabel,
    button,
    fill_column,
    heading,
    label,
    line,
    named,
    row,
    swatch,
)
from napari_mamamia.widgets.controls.fields import combo_box
from napari_mamamia.widgets.controls.page import Page
from napari_mamamia.widgets.controls.table_fit import TableFit
from napari_mamamia.widgets.controls.targets import LEAST
from napari_mamamia.widgets.score.tags_line import TagsLine

# List of the errors of the open case, largest first; clicking one shows it.

_TITLES: Final = ("error", tr("volume [mm³]"), tr("reach [mm]"))
_TIPS: Final = (
    tr("False positive: only in the mask. Missed: only in the reference."),
    tr("Volume of the connected region."),
    tr("Largest distance from the region to the other mask."),
)
_KINDS: Final = {Agrees.FALSE: "false", Agrees.MISSED: "missed"}
_WIDTHS: Final = (104, 96)
_LEAST_HEIGHT: Final = 110


class ErrorList(QWidget):
    """The list of errors; `chosen` carries the index of a clicked error, 0 for the largest."""

    chosen = Signal(int)

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("score_errors")
        self.rows = _ErrorRows()
        self.table: QTableView = named(
            QTableView(),
            "score_error_table",
            tr("Errors, largest first. Click an error to show it."),
        )
        self.table.setModel(self.rows)
        self.table.setSelectionBehavior(QTableView.SelectionBehavior.SelectRows)
        self.table.setSelectionMode(QTableView.SelectionMode.SingleSelection)
        self.table.setEditTriggers(QTableView.EditTrigger.NoEditTriggers)
        self.table.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.table.setShowGrid(False)
        self.table.setMinimumHeight(_LEAST_HEIGHT)
        self.table.verticalHeader().hide()
        self.table.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        self.table.horizontalHeader().setStretchLastSection(True)
        self.table.horizontalHeader().setHighlightSections(False)
        TableFit(self.table, _WIDTHS)
        self.table.clicked.connect(lambda index: self.chosen.emit(index.row()))
        self.note = label("score_error_note", tip=tr("Number of errors."))
        fill_column(self, self.note, self.table, spacing=2)
        self.show_errors(None)

    def show_errors(self, found: Agreement | None) -> None:
        """List the errors of a comparison; None hides the list."""
        errors = found.errors if found else ()
        self.rows.show_errors(errors)
        self.setVisible(found is not None)
        if found is None:
            return
        self.table.setVisible(bool(errors))
        false = sum(error.kind is Agrees.FALSE for error in errors)
        more = (
            tr("; the {n_errors} largest are listed", n_errors=len(errors))
            if found.n_errors > len(errors)
            else ""
        )
        summary = tr_n(
            "{n} error{more}: {false} false positive, {missed} missed",
            "{n} errors{more}: {false} false positive, {missed} missed",
            found.n_errors,
            more=more,
            false=false,
            missed=len(errors) - false,
        )
        self.note.setText(
            summary if errors else tr("There is no error, because the masks are equal.")
        )

    def set_current(self, place: int) -> None:
        """Highlight the displayed error; -1 highlights no error."""
        if 0 <= place < self.rows.rowCount():
            self.table.selectRow(place)
        else:
            self.table.clearSelection()


class _ErrorRows(QAbstractTableModel):
    """A read-only table model with one row for each error."""

    def __init__(self) -> None:
        super().__init__()
        self._errors: tuple[ErrorPart, ...] = ()
        self._icons: dict[Agrees, Any] = {}

    def show_errors(self, errors: tuple[ErrorPart, ...]) -> None:
        """Show the errors of a comparison."""
        self.beginResetModel()
        self._errors = errors
        self.endResetModel()

    def rowCount(self, parent: QModelIndex | None = None) -> int:
        """Return the number of errors."""
        return 0 if parent is not None and parent.isValid() else len(self._errors)

    def columnCount(self, parent: QModelIndex | None = None) -> int:
        """Return the number of columns."""
        return 0 if parent is not None and parent.isValid() else len(_TITLES)

    def data(self, index: QModelIndex, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return a cell's text, alignment, or the colour of the error type."""
        error = self._errors[index.row()]
        if role == Qt.ItemDataRole.DisplayRole:
            return _format_cells(index.row(), error)[index.column()]
        if role == Qt.ItemDataRole.DecorationRole and index.column() == 0:
            return self._find_icon(error.kind)
        if role == Qt.ItemDataRole.TextAlignmentRole and index.column():
            return Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        if role == Qt.ItemDataRole.ToolTipRole:
            return f"{_TIPS[index.column()]}: {_format_cells(index.row(), error)[index.column()]}"
        return None

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        """Return a column's title with its unit, or its definition."""
        if orientation is not Qt.Orientation.Horizontal or section >= len(_TITLES):
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return _TITLES[section]
        return _TIPS[section] if role == Qt.ItemDataRole.ToolTipRole else None

    def _find_icon(self, kind: Agrees) -> Any:
        if kind not in self._icons:
            self._icons[kind] = swatch(AGREEMENT_COLOURS[_KINDS[kind]])
        return self._icons[kind]


def _format_cells(place: int, error: ErrorPart) -> tuple[str, str, str]:
    far = error.distance_mm
    return (
        f"{place + 1}  {_KINDS[error.kind]}",
        f"{error.volume_mm3:,.1f}",
        f"{far:,.1f}" if math.isfinite(far) else "–",
    )


_UNKNOWN: Final = "–"
_WIDEST: Final = "1,234.5 mm"
_ALL_LABELS: Final = tr("all labels")


_NO_REFERENCE: Final = {
    True: tr("This case has no reference mask, so only volumes are known."),
    False: tr(
        "This case has neither a reference mask nor any other mask yet: predict or draw a mask to "
        "see its volume."
    ),
}
"""Texts that are shown if there is no comparison, keyed by whether the case has any mask."""
_COLUMNS: Final = (Role.PREDICTION, Role.REFINED)
_FIELDS: Final = {"ml": 1000.0, "mm³": 1.0}


class ScorePage(Page):
    """The Score page; `label_chosen` carries the reference label to score, or None for all labels.

    The signal `agreement_toggled` carries whether to show agreement colours, `error_chosen` the
    index of an error in the list, and `tag_wanted` a tag and whether to add or remove the tag.
    """

    label_chosen = Signal(object)
    agreement_toggled = Signal(bool)
    next_error_wanted = Signal()
    previous_error_wanted = Signal()
    error_chosen = Signal(int)
    tag_wanted = Signal(str, bool)
    batch_wanted = Signal()

    def __init__(self) -> None:
        super().__init__("score")
        self._cells: dict[tuple[str, Role], QLabel] = {}
        self._profile = CLINICAL.name
        self.title = heading(_title_text(CLINICAL.name))
        self.no_reference = label("score_no_reference", tip=tr("Why there is no comparison."))
        self._reference, self._table = self._make_reference(), self._make_table()
        for part in (
            self.title,
            self.no_reference,
            self._make_label_line(),
            self._reference,
            self._table,
        ):
            self.body.addWidget(part)
        self.remark = label("score_remark", tip=tr("Warnings about these numbers."))
        self.body.addWidget(self.remark)
        self.body.addWidget(self._make_review_line())
        self.errors = ErrorList()
        self.errors.chosen.connect(self.error_chosen)
        self.body.addWidget(self.errors, stretch=1)
        self.body.addWidget(line())
        self.body.addWidget(heading(tr("Tags of this case")))
        self.tags = TagsLine()
        self.tags.tag_wanted.connect(self.tag_wanted)
        self.body.addWidget(self.tags)
        self.body.addWidget(row(self.batch, 1))
        self.body.addStretch()
        self.show_scores(None, "")
        self.show_masks((Role.REFERENCE,))

    # ------------------------------------------------------------- for the dock

    def show_labels(self, values: tuple[float, ...]) -> None:
        """List the labels of the reference if there are several."""
        self.labels.blockSignals(True)
        self.labels.clear()
        self.labels.addItem(_ALL_LABELS, None)
        for value in values:
            self.labels.addItem(tr("label {value:g}", value=value), value)
        self.labels.blockSignals(False)
        self._label_line.setVisible(len(values) > 1)

    def show_masks(self, roles: Collection[Role]) -> None:
        """Hide controls that need a missing mask; nothing is compared without a reference."""
        has_reference, has_mask = Role.REFERENCE in roles, any(role in roles for role in _COLUMNS)
        for compared in (self.title, self._reference, self.agreement, *self._compared):
            compared.setVisible(has_reference)
        self._table.setVisible(has_reference or has_mask)
        self.no_reference.setText("" if has_reference else _NO_REFERENCE[has_mask])
        self.no_reference.setVisible(not has_reference)

    def show_scores(self, shown: ShownScores | None, why_none: str) -> None:
        """Show the scores; an unknown score is a dash with the reason as its tooltip."""
        self._profile = shown.profile if shown else CLINICAL.name
        self.title.setText(_title_text(self._profile))
        for spec in metrics_at(Place.CASE):
            for role in _COLUMNS:
                score = shown.scores.get(role) if shown else None
                there = shown is not None and role in shown.volumes_mm3
                self._show_metric(spec, role, score, why_none or _explain_missing(there, role))
        volumes = dict(shown.volumes_mm3) if shown else {}
        for role in _COLUMNS:
            self._show_volume(role, volumes.get(role), _explain_missing(False, role))
        reference = shown.volume_reference_mm3 if shown else None
        self._show_volume(Role.REFERENCE, reference, tr("this case has no reference mask"))
        remarks = [score.warning for score in shown.scores.values()] if shown else []
        if shown and not any(shown.grid_warning in text for text in remarks):
            remarks.append(shown.grid_warning)
        self.remark.setText("\n".join(dict.fromkeys(filter(None, remarks))) or why_none)

    def set_agreement(self, on: bool) -> None:
        """Set whether the image has agreement colours."""
        self.agreement.setChecked(on)
        self.agreement.setText(tr("Hide agreement") if on else tr("Show agreement"))
        self.next_error.setVisible(on)
        self.previous_error.setVisible(on)

    # -------------------------------------------------------------------- inner

    def _make_review_line(self) -> QWidget:
        self.agreement = button(
            "score_agreement",
            tr("Show agreement"),
            tr(
                "Colours the voxels where the mask agrees with the reference, is false positive "
                "or misses tumour."
            ),
            lambda: self.agreement_toggled.emit(self.agreement.isChecked()),
        )
        self.agreement.setCheckable(True)
        self.previous_error = button(
            "score_previous_error",
            "◀",
            with_key(tr("Goes to the previous error."), "previous_error"),
            self.previous_error_wanted.emit,
        )
        self.next_error = button(
            "score_next_error",
            tr("Next error ▶"),
            with_key(tr("Goes to the next largest error."), "lesion"),
            self.next_error_wanted.emit,
        )
        self.previous_error.setMinimumWidth(LEAST)
        self.previous_error.hide()
        self.next_error.hide()
        self.batch = button(
            "score_batch",
            tr("Batch scoring…"),
            tr("Opens the page that scores whole folders."),
            self.batch_wanted.emit,
        )
        return row(self.agreement, self.previous_error, self.next_error, 1)

    def _make_label_line(self) -> QWidget:
        self.labels = combo_box("score_label", tr("Reference label that counts as tumour."))
        self.labels.currentIndexChanged.connect(
            lambda at: self.label_chosen.emit(self.labels.itemData(at))
        )
        self._label_line = row(QLabel(tr("Reference:")), self.labels, 1)
        self._label_line.hide()
        return self._label_line

    def _make_table(self) -> QWidget:
        holder = QWidget()
        grid = QGridLayout(holder)
        grid.setContentsMargins(0, 4, 0, 4)
        for column, role in enumerate(_COLUMNS, start=1):
            grid.addWidget(_make_title(role), 0, column)
        self._compared: list[QWidget] = []
        for grid_row, spec in enumerate(metrics_at(Place.CASE), start=1):
            cells = [self._make_cell(spec.name, role) for role in _COLUMNS]
            for column, part in enumerate((_row_name(spec), *cells)):
                grid.addWidget(part, grid_row, column)
                self._compared.append(part)
        grid_row = len(metrics_at(Place.CASE)) + 1
        self._compared.append(line())
        grid.addWidget(self._compared[-1], grid_row, 0, 1, 3)
        for offset, unit in enumerate(_FIELDS, start=1):
            grid.addWidget(QLabel(tr("Volume, {unit}", unit=unit)), grid_row + offset, 0)
            for column, role in enumerate(_COLUMNS, start=1):
                grid.addWidget(self._make_cell(unit, role), grid_row + offset, column)
        grid.setColumnStretch(0, 1)
        return holder

    def _make_reference(self) -> QWidget:
        cells = [self._make_cell(unit, Role.REFERENCE) for unit in _FIELDS]
        for cell in cells:
            cell.setAlignment(Qt.AlignmentFlag.AlignLeft)
            cell.setMinimumWidth(1)
        holder = row(_make_title(Role.REFERENCE, tr("volume ")), *cells, 1)
        holder.layout().setSpacing(10)
        return holder

    def _make_cell(self, what: str, role: Role) -> QLabel:
        cell: QLabel = named(FittedLabel(_UNKNOWN, (_WIDEST,)), f"score_{role}_{what}", _UNKNOWN)
        cell.setAlignment(Qt.AlignmentFlag.AlignRight)
        cell.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._cells[what, role] = cell
        return cell

    def _show_metric(self, spec: MetricSpec, role: Role, score: CaseScore | None, why: str) -> None:
        value = getattr(score, spec.name) if score else math.nan
        cell = self._cells[spec.name, role]
        cell.setText(_format_number(value, spec.decimals, spec.unit))
        definition = tr(
            "{label} of the {role} mask against the reference ({profile})",
            label=spec.label,
            role=role,
            profile=self._profile,
        )
        definition += f": {spec.meaning}"
        reason = (score.reason or str(score.status)) if score else why
        cell.setToolTip(
            definition if math.isfinite(value) else tr("unknown: {reason}", reason=reason)
        )

    def _show_volume(self, role: Role, volume_mm3: float | None, why: str) -> None:
        for unit, divisor in _FIELDS.items():
            cell = self._cells[unit, role]
            value = math.nan if volume_mm3 is None else volume_mm3 / divisor
            cell.setText(_format_number(value, 2 if unit == "ml" else 0, unit))
            definition = tr(
                "volume of the {role} mask: number of voxels times voxel volume", role=role
            )
            cell.setToolTip(tr("unknown: {why}", why=why) if volume_mm3 is None else definition)


def _title_text(profile: str) -> str:
    return tr("Against the reference ({profile})", profile=profile)


def _format_number(value: float, digits: int, unit: str) -> str:
    return f"{value:,.{digits}f} {unit}".strip() if math.isfinite(value) else _UNKNOWN


def _explain_missing(there: bool, role: Role) -> str:
    return (
        tr("this case has no reference mask") if there else tr("there is no {role} mask", role=role)
    )


def _row_name(spec: MetricSpec) -> QLabel:
    name_label: QLabel = named(QLabel(tr(spec.label)), f"score_name_{spec.name}", tr(spec.meaning))
    return name_label


def _make_title(role: Role, what: str = "") -> QLabel:
    text = f'<span style="color:{MASK_COLOURS[role]}">■</span> {tr(str(role))} {what}'.strip()
    title_label: QLabel = named(
        QLabel(text), f"score_title_{role}", tr("The {role} mask on screen", role=role)
    )
    title_label.setAlignment(Qt.AlignmentFlag.AlignRight)
    return title_label
