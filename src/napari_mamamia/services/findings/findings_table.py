"""A table of described lesions with terms, codes and measurements (`list_findings`)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from napari_mamamia.core.answers import NOTHING_KNOWN, CaseFacts, LesionFacts
from napari_mamamia.core.blinding import Hidden
from napari_mamamia.core.errors import MamamiaError, list_remedies
from napari_mamamia.core.form import FieldScope, Form
from napari_mamamia.core.progress import report_progress
from napari_mamamia.core.records import CaseFailure
from napari_mamamia.findings.form_values import AnswerRow, list_rows
from napari_mamamia.io.files.file_names import case_key
from napari_mamamia.io.tables.flat_tables import Cell, can_write_parquet, write_flat_table
from napari_mamamia.io.workspace.findings import FindingsRecord, read_findings
from napari_mamamia.services.batch.output_folder import Existing, claim_folder
from napari_mamamia.services.case.data_set import OpenDataSet
from napari_mamamia.services.case.open_case import load_case, read_mask
from napari_mamamia.services.findings.case_facts import measure_case
from napari_mamamia.services.findings.case_findings import (
    fill_in,
    findings_of,
    load_findings_form,
)

_FIRST: Final = ("case_id", "reader", "lesion", "at", "measured_from", "x_mm", "y_mm", "z_mm")
_LAST: Final = ("auto",)
_CODES: Final = ".codes"
_NOTHING: Final = float("nan")
_SIDES: Final = ("right", "left")
RECORD: Final = "record"
"""Source of a row's measurements if the reader has no mask: measurements saved by the window."""


@dataclass(frozen=True, slots=True)
class FindingsTable:
    """A table with one row for each lesion, and one row for a case without described lesions.

    Parameters
    ----------
    columns
        The first columns are case, reader, lesion, time of the last answer, source of the
        measurements (``refined`` for the reader's own mask, ``record`` for measurements saved by
        the window) and the lesion's centre in RAS mm. They are followed by each question of the
        form (``ID@right`` and ``ID@left`` for a breast; a choice is followed by its ``.codes``), by
        questions that are not in the form, and by the answers that the program computed.
    failures
        The cases whose mask could not be measured; their rows have the saved measurements.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    failures: tuple[CaseFailure, ...] = ()

    def save(self, path: Path, *, overwrite: bool = False) -> None:
        """Write the table as ``.csv``, ``.xlsx`` or ``.parquet``.

        Raises
        ------
        FormatError, MissingExtraError, SaveConflictError, SaveError
            As in `write_flat_table`.
        """
        write_flat_table(
            self.columns, self.rows, len(self.rows), path, name="findings", overwrite=overwrite
        )


@dataclass(frozen=True, slots=True)
class _Described:
    record: FindingsRecord
    measured_from: str
    facts: CaseFacts
    answers: tuple[AnswerRow, ...]


def list_findings(opened: OpenDataSet, reader: str | None = None) -> FindingsTable:
    """Return the findings in a data set outside review studies, in the order of its cases.

    If the reader has a mask, computed answers are measured again from the current mask. Hidden
    readers are omitted.

    Parameters
    ----------
    opened
        The data set.
    reader
        The reader whose findings are returned; None for all readers.

    Raises
    ------
    FormatError
        If the record cannot be read.
    """
    workspace, form = opened.workspace, load_findings_form()
    if workspace.blinding.hides(Hidden.OTHER_READERS):
        reader = workspace.reader or ""
    order = {case_key(files.case_id): index for index, files in enumerate(opened.data_set.cases)}
    records = [
        finding
        for key, finding in read_findings(workspace.root).items()
        if key[0] in order and reader in (None, finding.reader)
    ]
    records.sort(key=lambda one: (order[case_key(one.case_id)], one.reader))
    described, failures = [], []
    for n_listed, record in enumerate(records):
        report_progress(n_listed, len(records), f"Measuring {record.case_id}")
        try:
            described.append(_describe_case(opened, form, record, with_mask=True))
        except (MamamiaError, OSError) as error:
            remedies = list_remedies(error)
            failures.append(CaseFailure(record.case_id, str(error), remedies=remedies))
            described.append(_describe_case(opened, form, record, with_mask=False))
    report_progress(len(records), max(len(records), 1), "Measured")
    columns = _list_columns(form, described)
    rows = tuple(row for one in described for row in _list_rows(one, columns))
    return FindingsTable(columns, rows, tuple(failures))


def write_findings(
    opened: OpenDataSet,
    out: Path,
    *,
    reader: str | None = None,
    existing: Existing = Existing.REFUSE,
) -> FindingsTable:
    """Write ``out/findings.csv`` (and ``.parquet`` with the extra ``parquet``); return the table.

    Raises
    ------
    FormatError
        If the record cannot be read.
    SaveConflictError
        If `out` has other results.
    SaveError
        If a file cannot be written.
    """
    parameters = (("data_set", opened.data_set.name), ("reader", reader or ""))
    claim_folder(out, "findings", parameters, existing, opened.data_set.folders)
    table = list_findings(opened, reader)
    for suffix in (".csv", ".parquet") if can_write_parquet() else (".csv",):
        table.save(out / f"findings{suffix}", overwrite=existing is not Existing.REFUSE)
    return table


def _describe_case(
    opened: OpenDataSet, form: Form, record: FindingsRecord, *, with_mask: bool
) -> _Described:
    findings = findings_of(record)
    path = opened.workspace.refined(record.reader, record.case_id)
    facts: CaseFacts = NOTHING_KNOWN
    if with_mask and path.is_file():
        key = case_key(record.case_id)
        files = next(case for case in opened.data_set.cases if case_key(case.case_id) == key)
        row = opened.record(files.case_id)
        case = load_case(files, row)
        measured = measure_case(case, read_mask(path, case), record=row)
        findings, facts = fill_in(form, findings, measured)
    rows = list_rows(form, findings.answers)
    if facts.lesions is None:
        names = {
            row.place
            for row in rows
            if row.scope == FieldScope.LESION and (path.is_file() or not row.computed)
        }
        # If the reader has no mask, unchanged computed answers describe a prediction or the
        # reference and are therefore not findings.
        rows = tuple(row for row in rows if row.scope != FieldScope.LESION or row.place in names)
        points = {name: findings.centres.get(name) for name in names}
        lesions = tuple(LesionFacts(name, centre_mm=points[name]) for name in sorted(names))
        return _Described(record, RECORD, CaseFacts(lesions), rows)
    return _Described(record, "refined", facts, rows)


def _list_columns(form: Form, described: Sequence[_Described]) -> tuple[str, ...]:
    columns = []
    for field in form.fields:
        is_breast = field.scope is FieldScope.BREAST
        names = [f"{field.id}@{side}" for side in _SIDES] if is_breast else [field.id]
        for name in names:
            columns += [name, name + _CODES] if field.is_choice else [name]
    others = {_name_column(row) for one in described for row in one.answers} - set(columns)
    return (*_FIRST, *columns, *sorted(others), *_LAST)


def _name_column(row: AnswerRow) -> str:
    return f"{row.field}@{row.place}" if row.scope == FieldScope.BREAST else row.field


def _list_rows(described: _Described, columns: Sequence[str]) -> Iterator[tuple[Cell, ...]]:
    """Yield a row for each lesion in the mask or the answers, or one row if there is no lesion."""
    names = dict.fromkeys(lesion.name for lesion in described.facts.lesions or ())
    names |= dict.fromkeys(row.place for row in described.answers if row.scope == FieldScope.LESION)
    for name in names or {"": None}:
        answers = [
            row for row in described.answers if row.scope != FieldScope.LESION or row.place == name
        ]
        lesion = described.facts.lesion(name)
        centre = (_NOTHING,) * 3 if lesion is None or lesion.centre_mm is None else lesion.centre_mm
        record = described.record
        first = (record.case_id, record.reader, name, record.at, described.measured_from, *centre)
        cells: dict[str, Cell] = dict(zip(_FIRST, first, strict=True))
        for row in answers:
            _add_answer(cells, row)
        auto = dict.fromkeys(_name_column(row) for row in answers if row.computed)
        cells[_LAST[0]] = " ".join(auto)
        yield tuple(cells.get(column, "") for column in columns)


def _add_answer(cells: dict[str, Cell], row: AnswerRow) -> None:
    """Add an answer to its cells; several terms are separated by spaces."""
    column = _name_column(row)
    if row.unit and row.known:
        cells[column] = float(row.value)
        return
    for name, text in ((column, row.value), (column + _CODES, row.codes)):
        before = cells.get(name)
        if text:
            cells[name] = f"{before}; {text}" if before else text
