"""Write reports of many cases: a page for each case, optional PDF and DICOM, and a table."""

import math
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import astuple, dataclass, fields
from datetime import datetime
from functools import partial
from itertools import chain, count
from pathlib import Path
from typing import Final

from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.progress import Cancelled, listening
from napari_mamamia.core.provenance import Setting
from napari_mamamia.core.records import CaseFailure
from napari_mamamia.io.tables.flat_tables import can_write_parquet, write_flat_table
from napari_mamamia.scoring.report.drawing import draw_each_once
from napari_mamamia.scoring.report.page import render_print, write_page
from napari_mamamia.services.batch.batch import for_each_case
from napari_mamamia.services.batch.child import Child
from napari_mamamia.services.batch.in_subprocess import drawing_place
from napari_mamamia.services.batch.output_folder import Existing, claim_folder, take_back
from napari_mamamia.services.case.data_set import OpenDataSet
from napari_mamamia.services.report.case_page import make_case_page
from napari_mamamia.services.report.measures import Measure
from napari_mamamia.services.report.printing import require_qt, write_pdf
from napari_mamamia.services.report.reading import (
    CaseReading,
    ReportRecords,
    ReportSource,
    read_case,
    read_records,
)
from napari_mamamia.services.report.structured import (
    DicomChoice,
    list_structured,
    require_dicom,
    write_structured,
)

TABLE: Final = "measures"
_COMPUTED, _DRAWN, _ANSWERED, _CHECKED = "computed", "drawn", "answered", "checked"


@dataclass(frozen=True, slots=True)
class ReportExtras:
    """Optional output in addition to the page: a PDF and DICOM objects."""

    has_pdf: bool = False
    dicom: DicomChoice | None = None


@dataclass(frozen=True, slots=True)
class MeasureRow:
    """One measure or answer; `number` is NaN for text, and codes have the form ``SCHEME:VALUE``."""

    case_id: str
    scope: str
    place: str
    item: str
    value: str
    number: float = math.nan
    unit: str = ""
    item_codes: str = ""
    value_codes: str = ""
    source: str = ""
    reader: str = ""
    created: str = ""


_COLUMNS: Final = tuple(column.name for column in fields(MeasureRow))


@dataclass(frozen=True, slots=True)
class CaseReport:
    """The files of one case's report, its rows, and its numbers of lesions and measurements."""

    case_id: str
    files: tuple[Path, ...]
    rows: tuple[MeasureRow, ...]
    n_lesions: int
    n_drawn: int


@dataclass(frozen=True, slots=True)
class ReportSummary:
    """The written reports, their folder and tables, and the failed cases with their reasons."""

    out: Path
    reports: tuple[CaseReport, ...]
    failures: tuple[CaseFailure, ...]
    tables: tuple[Path, ...]


def report_cases(
    opened: OpenDataSet,
    out: Path,
    source: ReportSource,
    extras: ReportExtras,
    *,
    case_ids: Sequence[str] = (),
    existing: Existing = Existing.REFUSE,
    finished: list[CaseReport] | None = None,
) -> ReportSummary:
    """Write ``ID.html`` for each case, the requested extras, ``measures.csv`` and ``.parquet``.

    A case that fails, or whose DICOM objects cannot be made, is listed with its reason, and the
    work continues with the other cases. A page that was already written is kept. If the work is
    cancelled, the files of the current case are removed, and the tables contain the earlier cases.
    Each finished report is appended to `finished`.

    Raises
    ------
    CaseError
        If `case_ids` names an unknown case.
    MissingExtraError
        If a package for the requested output is not installed.
    SaveConflictError
        If `out` has other results.
    """
    if extras.has_pdf:
        require_qt()
    if extras.dicom is not None:
        require_dicom(extras.dicom)
    chosen = [opened.data_set.case(case_identifier) for case_identifier in case_ids] or list(
        opened.data_set.cases
    )
    if not chosen:
        raise CaseError(
            f"expected {opened.data_set.root} to have cases, but found none: choose a different "
            "data set"
        )
    masks = frozenset() if source.masks is None else frozenset({source.masks})
    claim_folder(
        out,
        "report",
        _list_parameters(opened, source, case_ids),
        existing,
        opened.data_set.folders | masks,
    )
    overwrite = existing is not Existing.REFUSE
    records = read_records(opened.workspace.root)
    reports = [] if finished is None else finished
    report = partial(_report_case, opened, out, source, records, extras, overwrite, reports)
    with closing(Child()) as child:
        try:
            result = for_each_case([files.case_id for files in chosen], partial(report, child))
        except (Cancelled, KeyboardInterrupt):
            with listening(None):  # a cancelled run would cancel the tables too
                if reports:
                    _write_tables(reports, out / TABLE, overwrite)
            raise
    tables = _write_tables(reports, out / TABLE, overwrite)
    return ReportSummary(out, tuple(reports), result.failures, tables)


def report_anew(
    opened: OpenDataSet,
    parent: Path,
    source: ReportSource,
    extras: ReportExtras,
    *,
    case_ids: Sequence[str] = (),
    finished: list[CaseReport] | None = None,
) -> ReportSummary:
    """Write the output of `report_cases` into a new folder in `parent`, named by case and time.

    If the work is cancelled before any report is finished, the folder is removed.

    Raises
    ------
    CaseError, MissingExtraError, SaveConflictError, SaveError
        As in `report_cases`.
    """
    subject = case_ids[0] if len(case_ids) == 1 else opened.data_set.name
    stem = f"{subject}-{datetime.now():%Y%m%d-%H%M%S}"
    names = chain([stem], (f"{stem}-{number}" for number in count(2)))
    out = next(parent / name for name in names if not (parent / name).exists())
    reports = [] if finished is None else finished
    try:
        return report_cases(opened, out, source, extras, case_ids=case_ids, finished=reports)
    except (Cancelled, KeyboardInterrupt):
        if not reports:
            take_back(out)
        raise


def _report_case(
    opened: OpenDataSet,
    out: Path,
    source: ReportSource,
    records: ReportRecords,
    extras: ReportExtras,
    overwrite: bool,
    reports: list[CaseReport],
    child: Child,
    case_id: str,
) -> None:
    reading = read_case(opened, opened.data_set.case(case_id), source, records)
    page = make_case_page(reading)
    files: list[Path] = []
    rows = tuple(list_measure_rows(reading))
    # Written files count even if the next step fails.
    place = len(reports)

    def note(*paths: Path) -> None:
        files.extend(paths)
        counts = (len(reading.lesions), len(reading.drawn))
        reports[place:] = [CaseReport(case_id, tuple(files), rows, *counts)]

    try:
        with drawing_place() as draw_anew:
            draw = draw_each_once(draw_anew)
            note(write_page(page, out / f"{case_id}.html", overwrite=overwrite, draw=draw))
            if extras.has_pdf:
                pdf = out / f"{case_id}.pdf"
                write_pdf(child, render_print(page, draw), page.title, pdf, overwrite=overwrite)
                note(pdf)
        if extras.dicom is not None:
            note(*write_structured(reading, extras.dicom, out, overwrite=overwrite))
    except (Cancelled, KeyboardInterrupt):
        del reports[place:]
        pages = [out / f"{case_id}{suffix}" for suffix in (".html", ".pdf")]
        for path in (*pages, *list_structured(out, case_id)):
            path.unlink(missing_ok=True)
        raise


def list_measure_rows(reading: CaseReading) -> Iterator[MeasureRow]:
    """Yield all measures and answers of a case: lesions, then measurements, then answers."""
    case_id = reading.case.case_id
    for lesion in reading.lesions:
        for measure in lesion.measures:
            yield _make_row(case_id, "lesion", lesion.facts.name, measure, _COMPUTED)
    for number, drawn in enumerate(reading.drawn, start=1):
        of = f" of lesion {drawn.item.lesion}" if drawn.item.lesion else ""
        place = f"{drawn.item.kind} {number}{of}"
        for one in drawn.measures:
            who = (drawn.item.reader, drawn.item.created)
            yield _make_row(case_id, "drawing", place, one, _DRAWN, *who)
    described = reading.described
    who = (described.reader, described.at)
    for row in described.rows:
        source = _COMPUTED if row.computed else _ANSWERED
        yield MeasureRow(
            case_id,
            row.scope,
            row.place,
            row.question or row.field,
            row.text,
            _parse_number(row.value),
            row.unit,
            row.question_codes,
            row.codes,
            source,
            *(("", "") if row.computed else who),
        )
    for question in described.missing:
        where = (case_id, question.place.scope.value, question.place.name, question.field.text)
        yield MeasureRow(*where, "not answered", source=_CHECKED, reader=described.reader)
    for problem in described.contradictions:
        where = (case_id, problem.place.scope.value, problem.place.name, "Contradiction")
        yield MeasureRow(*where, problem.text, source=_CHECKED, reader=described.reader)


def _make_row(
    case_id: str,
    scope: str,
    place: str,
    one: Measure,
    source: str,
    reader: str = "",
    created: str = "",
) -> MeasureRow:
    value = "" if math.isnan(one.value) else f"{one.value:.{one.decimals}f}"
    return MeasureRow(
        case_id,
        scope,
        place,
        one.name,
        value,
        one.value,
        one.unit,
        one.code.text,
        source=source,
        reader=reader,
        created=created,
    )


def _parse_number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _write_tables(reports: Sequence[CaseReport], stem: Path, overwrite: bool) -> tuple[Path, ...]:
    cells = [astuple(row) for report in reports for row in report.rows]
    suffixes = (".csv", ".parquet") if can_write_parquet() else (".csv",)
    tables = tuple(stem.with_suffix(suffix) for suffix in suffixes)
    for path in tables:
        write_flat_table(_COLUMNS, cells, len(cells), path, name=TABLE, overwrite=overwrite)
    return tables


def _list_parameters(
    opened: OpenDataSet, source: ReportSource, case_ids: Sequence[str]
) -> tuple[tuple[str, Setting], ...]:
    return (
        ("data_set", opened.data_set.name),
        ("masks", "" if source.masks is None else source.masks.name),
        ("reader", source.reader),
        ("cases", ", ".join(case_ids)),
    )
