"""Audit a table: find columns that leak the label or the split."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.errors import FormatError
from napari_mamamia.core.names import name_some
from napari_mamamia.core.provenance import now_utc, software_version
from napari_mamamia.features.classifiers.scoring.audit import (
    Audit,
    ColumnLeak,
    Duplicate,
    MetadataColumn,
    audit,
    duplicates,
)
from napari_mamamia.io.data_set.named_columns import NamedTable, read_named_columns
from napari_mamamia.io.tables.spreadsheets import write_sheet
from napari_mamamia.io.tables.tables import write_json
from napari_mamamia.scoring.classifier.operating import Units
from napari_mamamia.scoring.report.page import Page, PageSection, write_page
from napari_mamamia.scoring.report.text import Column, ReportTable, Row, number, p_said, p_text
from napari_mamamia.services.batch.output_folder import Existing, claim_folder

AUDIT: Final = "audit.json"
LEAKS: Final = "leaks.csv"
REPORT: Final = "report.html"

_MOST_PARTS: Final = 10
_SHOWN: Final = 30
_WORTH: Final = 0.05
"""Holm-corrected p-value below which a column is listed as a possible leak."""


@dataclass(frozen=True, slots=True)
class AuditColumns:
    """Names of the table's columns, "" if there is none; a label or a split is required.

    `hash_` is the column with a checksum of the pixels. `left_out` lists columns that may contain
    the label, such as an outcome.
    """

    label: str = ""
    split: str = ""
    patient: str = ""
    hash_: str = ""
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AuditSummary:
    """The results of an audit, and the folder to which they were written."""

    found: Audit
    n: int
    failures: tuple[str, ...]
    folder: Path
    row_numbers: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def leaks(self) -> tuple[ColumnLeak, ...]:
        """Return columns with a Holm-corrected p-value below 0.05, largest effect first."""
        return tuple(leak for leak in self.found.columns if leak.p_holm < _WORTH)

    @property
    def lines(self) -> tuple[str, ...]:
        """Return the results as lines of text, for the terminal and the top of the page."""
        return tuple(_list_lines(self))


def audit_table(
    table: Path,
    columns: AuditColumns,
    out: Path,
    *,
    seed: int = 42,
    existing: Existing = Existing.REFUSE,
) -> AuditSummary:
    """Audit a table, and write ``audit.json``, ``leaks.csv`` and ``report.html``.

    Parameters
    ----------
    table, columns
        The table, and the names of its columns.
    out
        Output folder.
    seed
        Random seed for the permutations.
    existing
        What to do with other results in `out`.

    Raises
    ------
    FormatError
        If the table cannot be read, lacks a column, or its label or split has only one value.
    SaveConflictError
        If `out` contains other results.
    """
    read = read_named_columns(table)
    for name in (columns.label, columns.split, columns.patient, columns.hash_, *columns.left_out):
        if name and name not in read.columns:
            raise FormatError(
                f"expected {table} to have a column {name}, but it has {name_some(read.columns)}: "
                "choose one of these"
            )
    targets = [*_read_label(read, columns.label), *_read_parts(read, columns.split)]
    special = {columns.split, columns.hash_, *columns.left_out}
    metadata = [_read_column(read, name) for name in read.columns if name not in special]
    patients = read.texts(columns.patient) if columns.patient else ("",) * read.n
    keys = [patient or f"row {row}" for row, patient in enumerate(patients)]
    parameters = (
        ("table", table.name),
        ("label", columns.label or None),
        ("split", columns.split or None),
        ("patient", columns.patient or None),
        ("hash", columns.hash_ or None),
        ("left_out", ", ".join(columns.left_out) or None),
        ("seed", seed),
    )
    claim_folder(out, "audit", parameters, existing)
    result = audit(metadata, targets, Units.of(keys), seed)
    result = replace(result, duplicates=_list_duplicates(read, columns))
    no_label = read.yes_no(columns.label)[1] if columns.label else ()
    failures = (
        *(failure.reason for failure in read.failures),
        *(
            (
                f"row {read.row_numbers[cell.row]} of {table.name}: {cell.reason}, so the row was "
                "left out"
            )
            for cell in no_label
        ),
    )
    notes = (*read.notes, *(read.note_alike(columns.patient) if columns.patient else ()))
    summary = AuditSummary(result, read.n, failures, out, read.row_numbers, notes)
    _write_audit(summary, table, overwrite=existing is not Existing.REFUSE)
    return summary


def _read_label(table: NamedTable, name: str) -> Iterator[tuple[str, NDArray[np.float64]]]:
    if not name:
        return
    label, bad = table.yes_no(name)
    if len(set(label[~np.isnan(label)].tolist())) < 2:
        reason = bad[0].reason if bad else "all rows that have a value are equal"
        raise FormatError(
            f"expected column {name} of {table.name} to contain labels 0 and 1, but {reason}: "
            "choose another column"
        )
    yield name, label


def _read_parts(table: NamedTable, name: str) -> Iterator[tuple[str, NDArray[np.float64]]]:
    if not name:
        return
    texts = np.array(table.texts(name), dtype=str)
    parts = sorted({text for text in texts.tolist() if text})
    if not 2 <= len(parts) <= _MOST_PARTS:
        raise FormatError(
            f"expected column {name} of {table.name} to contain 2 to {_MOST_PARTS} parts, but "
            f"found {len(parts)}: choose another column"
        )
    for part in parts if len(parts) > 2 else parts[:1]:
        yield f"{name} {part}", np.where(texts == "", np.nan, texts == part)


def _read_column(table: NamedTable, name: str) -> MetadataColumn:
    try:
        numbers, bad = table.numbers(name)
    except FormatError:  # Ambiguous numbers are compared as strings.
        return MetadataColumn(name, None, table.texts(name))
    if not bad and not np.isnan(numbers).all():
        return MetadataColumn(name, numbers)
    return MetadataColumn(name, None, table.texts(name))


def _list_duplicates(table: NamedTable, columns: AuditColumns) -> tuple[Duplicate, ...]:
    parts = table.texts(columns.split) if columns.split else None
    doubles: tuple[Duplicate, ...] = ()
    if columns.patient and parts is not None:
        doubles += duplicates("patient in several parts", table.texts(columns.patient), parts)
    if columns.hash_:
        doubles += duplicates("equal pixels", table.texts(columns.hash_))
    return doubles


def _list_lines(summary: AuditSummary) -> Iterator[str]:
    for joint in summary.found.joint:
        yield (
            f"{joint.target} can be predicted from all columns with AUC {number(joint.auc)} "
            f"({p_said(joint.p_value)}, cross-validated, n {joint.n:,})"
        )
    n_tested = len(summary.found.columns)
    leaks = summary.leaks
    yield (
        f"{len(leaks)} of {n_tested} comparisons are below p = {_WORTH:g} after Holm's correction"
    ) + (", the largest effect first:" if leaks else "")
    for leak in leaks[:_SHOWN]:
        yield f"  {leak.target}: {leak.column}: {_describe_effect(leak)}, {p_said(leak.p_holm)}"
    if len(leaks) > _SHOWN:
        yield f"  {len(leaks) - _SHOWN} more are in {LEAKS}"
    for kind, n in Counter(duplicate.kind for duplicate in summary.found.duplicates).items():
        yield f"{kind}: {n:,}"
    for text in summary.found.skipped:
        yield f"not tested: {text}"
    yield from (f"note: {note}" for note in summary.notes)


def _describe_effect(leak: ColumnLeak) -> str:
    if not np.isnan(leak.auc):
        return f"AUC alone {number(leak.auc)}"
    text = f"Cramer's V {number(leak.effect)}"
    return text if np.isnan(leak.odds_ratio) else f"{text}, odds ratio {number(leak.odds_ratio)}"


def _write_audit(summary: AuditSummary, table: Path, *, overwrite: bool) -> None:
    leaks, out = summary.found, summary.folder
    content = {
        "n": summary.n,
        "joint": leaks.joint,
        "columns": leaks.columns,
        "duplicates": [
            {
                "kind": duplicate.kind,
                "value": duplicate.value,
                "rows": [summary.row_numbers[row] for row in duplicate.rows],
            }
            for duplicate in leaks.duplicates
        ],
        "skipped": leaks.skipped,
        "failures": summary.failures,
        "notes": summary.notes,
        "software": software_version(),
        "created": now_utc(),
    }
    write_json(content, out / AUDIT, overwrite=overwrite)
    head = ("target", "column", "test", "n", "effect", "auc", "odds_ratio", "p", "p_holm")
    rows = [
        (column.target, column.column, column.test.value, column.n, column.effect, column.auc,
         column.odds_ratio, column.p_value, column.p_holm)
        for column in leaks.columns
    ]  # fmt: skip
    write_sheet([head, *rows], out / LEAKS, name="leaks", overwrite=overwrite)
    write_page(_make_page(summary, table), out / REPORT, overwrite=overwrite)


def _make_page(summary: AuditSummary, table: Path) -> Page:
    headings = ("n", "Effect (0 to 1)", "AUC alone", "Odds ratio", "p", "p after Holm")
    rows = tuple(
        Row(
            (
                f"{column.target}: {column.column}",
                column.test.value,
                f"{column.n:,}",
                number(column.effect),
                number(column.auc),
                number(column.odds_ratio) if np.isfinite(column.odds_ratio) else "–",
                p_text(column.p_value),
                p_text(column.p_holm),
            ),
            column.p_holm >= _WORTH,
        )
        for column in summary.found.columns
    )
    columns = (Column("Target: column", is_number=False), Column("Test", is_number=False))
    note = (
        "Effect: Cramer's V for categories; for numbers twice the distance of the column's AUC "
        "from 0.5. Consider the effect before p, because with many rows every difference is "
        "significant. Nothing was removed. Grey: p after Holm's correction of 0.05 or more."
    )
    title = "Columns, the largest effect first"
    leaks = ReportTable(title, (*columns, *(Column(text) for text in headings)), rows, (note,))
    sections = [PageSection("Columns", (leaks,))]
    if summary.found.duplicates:
        doubles = tuple(
            Row(
                (
                    duplicate.kind,
                    duplicate.value,
                    ", ".join(str(summary.row_numbers[row]) for row in duplicate.rows),
                )
            )
            for duplicate in summary.found.duplicates[:1000]
        )
        heads = tuple(
            Column(text, is_number=False) for text in ("Kind", "Value", "Rows of the table")
        )
        sections.append(PageSection("Duplicates", (ReportTable("Duplicates", heads, doubles),)))
    return Page(
        f"Audit: {table.name}",
        (f"{summary.n:,} rows.", *summary.lines[:2]),
        tuple(sections),
        failures=summary.failures,
        footer="audit.json and leaks.csv next to this page contain the exact values.",
    )
