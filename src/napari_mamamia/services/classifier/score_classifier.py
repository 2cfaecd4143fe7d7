"""Score a table of labels and scores: operating points, intervals and comparisons."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.choices import MissingScore
from napari_mamamia.core.errors import FormatError
from napari_mamamia.core.progress import report_progress
from napari_mamamia.core.provenance import Setting, now_utc, software_version
from napari_mamamia.core.records import CaseFailure
from napari_mamamia.io.data_set.named_columns import (
    NamedTable,
    read_draws,
    read_named_columns,
)
from napari_mamamia.io.tables.table import BadCell
from napari_mamamia.io.tables.tables import write_json
from napari_mamamia.scoring.classifier.operating import Units
from napari_mamamia.scoring.classifier.scores import (
    ClassifierCases,
    ClassifierResult,
    ClassifierRules,
    score_classifiers,
)
from napari_mamamia.scoring.report.classifier import classifier_page
from napari_mamamia.scoring.report.page import write_page
from napari_mamamia.services.batch.in_subprocess import drawing_place
from napari_mamamia.services.batch.output_folder import Existing, claim_folder

CLASSIFIER: Final = "classifier.json"
REPORT: Final = "report.html"

_MOST_GROUPS: Final = 50
"""Largest number of different values in a subgroup column.

A column with more values is probably a number or an id. The usable cases of a table, and the
problems of the unusable cases.

`places` maps the number of each used row, counted from 0 below the header, to its case. `last` is
the largest row number. If rows were combined into exams, each case is an exam.
"""


@dataclass(frozen=True, slots=True)
class ClassifierColumns:
    """Names of the columns of a table; "" for a column that does not exist.

    `exam` combines the rows of an exam, such as both breasts. The exam gets the largest score, and
    is positive if any row is positive.

    Raises
    ------
    ValueError
        If a column is named twice, or no score column is named.
    """

    case_id: str
    label: str
    scores: tuple[str, ...]
    reader: str = ""
    cluster: str = ""
    exam: str = ""
    subgroups: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.scores:
            raise ValueError(
                "expected at least one column of scores, but got none: choose a column"
            )
        apart = (self.case_id, self.label, *self.scores, *((self.reader,) if self.reader else ()))
        twice = [name for name, n in Counter(apart).items() if n > 1]
        twice += [name for name, n in Counter(self.subgroups).items() if n > 1]
        if twice:
            raise ValueError(
                "expected id, label, each score and the reader to be different columns, but "
                f"{twice[0]} is named twice"
            )

    @property
    def names(self) -> tuple[str, ...]:
        """Return every column that is read, each once."""
        every = (self.case_id, self.label, *self.scores, self.reader, self.cluster, self.exam)
        return tuple(dict.fromkeys(name for name in (*every, *self.subgroups) if name))

    @property
    def unit(self) -> str:
        """Return the unit of analysis, "exam" or "case"."""
        return "exam" if self.exam else "case"


@dataclass(frozen=True, slots=True)
class ClassifierSettings:
    """The rules for the scores, the treatment of missing scores, and a file of resamples."""

    rules: ClassifierRules = field(default_factory=ClassifierRules)
    missing: MissingScore = MissingScore.LEAST_FAVOURABLE
    draws: Path | None = None


@dataclass(frozen=True, slots=True)
class ReadCases:
    """The usable cases of a table, and the problems of the unusable cases.

    `places` maps the number of each used row, counted from 0 below the header, to its case. `last`
    is the largest row number. If rows were combined into exams, the cases are exams.
    """

    cases: ClassifierCases
    failures: tuple[CaseFailure, ...]
    places: Mapping[int, int]
    last: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ClassifierSummary:
    """The results, and the folder to which they were written."""

    result: ClassifierResult
    failures: tuple[CaseFailure, ...]
    columns: ClassifierColumns
    settings: ClassifierSettings
    folder: Path
    table_notes: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """Return notes for the reader of the results."""
        n_unusable = sum(model.n_filled for model in self.result.models)
        if not n_unusable:
            return (*self.table_notes, *self.result.notes)
        each = ", ".join(f"{m.name} {m.n_filled}" for m in self.result.models if m.n_filled)
        return (
            *self.table_notes,
            f"a missing or invalid score counts as the least favourable score ({each})",
            *self.result.notes,
        )


def score_classifier(
    table: Path,
    columns: ClassifierColumns,
    out: Path,
    settings: ClassifierSettings | None = None,
    *,
    existing: Existing = Existing.REFUSE,
) -> ClassifierSummary:
    """Score the classifiers in a table, and write ``out/classifier.json`` and ``report.html``.

    A row without a label or an id, or with a repeated id, is reported as a failure and excluded. A
    score that is not a finite number is also a failure; `settings` define how the case counts.

    Parameters
    ----------
    table, columns
        The table and the names of its columns.
    out
        The output folder.
    settings
        The rules for the scores; None for the defaults.
    existing
        What to do if `out` has other results.

    Raises
    ------
    FormatError
        If a file cannot be read, lacks a column, or no row has a label.
    SaveConflictError
        If `out` has other results.
    """
    settings = settings or ClassifierSettings()
    read = read_cases(read_named_columns(table, columns.names), columns, settings.missing)
    draws = None if settings.draws is None else read_resamples(settings.draws, read)
    claim_folder(out, "score-classifier", _list_parameters(table, columns, settings), existing)
    result = score_classifiers(read.cases, settings.rules, draws)
    summary = ClassifierSummary(result, read.failures, columns, settings, out, read.notes)
    write_classifier(summary, read.cases, table.name, overwrite=existing is not Existing.REFUSE)
    return summary


def write_classifier(
    summary: ClassifierSummary,
    cases: ClassifierCases,
    source: str,
    *,
    overwrite: bool,
    report: str = REPORT,
) -> None:
    """Write ``classifier.json`` and the page `report` into the summary's folder.

    Raises
    ------
    SaveConflictError
        If a file exists and `overwrite` is False.
    SaveError
        If a file cannot be written.
    """
    report_progress(0, 1, "Writing the report")
    unit = summary.columns.unit
    write_json(classifier_content(summary), summary.folder / CLASSIFIER, overwrite=overwrite)
    page = classifier_page(summary.result, summary.notes, unit, source, cases)
    page = replace(page, failures=tuple(f"{f.case_id}: {f.reason}" for f in summary.failures))
    with drawing_place() as draw:
        write_page(page, summary.folder / report, overwrite=overwrite, draw=draw)


def read_cases(table: NamedTable, columns: ClassifierColumns, missing: MissingScore) -> ReadCases:
    """Return the cases of a table; unusable rows are reported as failures.

    Raises
    ------
    FormatError
        If no row has a label, or a subgroup column has too many values.
    """
    ids, bad_ids = table.ids(columns.case_id)
    label, bad_labels = table.yes_no(columns.label)
    no_label = [
        BadCell(int(row), f"{columns.label} is empty, so the row is excluded")
        for row in np.flatnonzero(np.isnan(label))
        if row not in {bad.row for bad in bad_labels}
    ]
    scores, bad_scores = _read_scores(table, columns, missing)
    bad = [*bad_ids, *bad_labels, *no_label]
    keep = np.ones(table.n, dtype=bool)
    keep[[cell.row for cell in bad]] = False
    if missing is MissingScore.LEAVE_OUT:
        keep &= ~np.isnan(scores).any(axis=0)
    if not keep.any():
        raise FormatError(
            f"expected {table.name} to have rows with an id, a label and scores, but none of "
            f"{table.n:,} rows has them: {(*bad, *bad_scores)[0].reason}"
        )
    recall, bad_recalls = (None, ()) if not columns.reader else table.yes_no(columns.reader)
    counting = np.flatnonzero(keep)
    keys = [ids[row] for row in counting]
    if columns.exam:
        exams = table.texts(columns.exam)
        keys = [exams[row] or key for row, key in zip(counting, keys, strict=True)]
    units = Units.of(keys)
    cases = _join_rows(table, columns, units, counting, label, scores, recall)
    out = {cell.row for cell in bad}
    bad_scores = [cell for cell in bad_scores if cell.row not in out]
    failures = tuple(
        CaseFailure(ids[cell.row] or f"row {table.row_numbers[cell.row]}",
                    f"row {table.row_numbers[cell.row]} of {table.name}: {cell.reason}")
        for cell in sorted((*bad, *bad_scores, *bad_recalls), key=lambda cell: cell.row)
    )  # fmt: skip
    numbers = [number - table.first_row for number in table.row_numbers]
    places = {numbers[row]: int(units.of_row[index]) for index, row in enumerate(counting)}
    last = numbers[-1]
    if columns.exam:
        places, last = {place: place for place in range(units.n)}, units.n - 1
    unit_columns = filter(None, (columns.case_id, columns.exam, columns.cluster))
    alike = (note for column in unit_columns for note in table.note_alike(column))
    return ReadCases(cases, (*table.failures, *failures), places, last, (*table.notes, *alike))


def read_resamples(path: Path, read: ReadCases) -> list[NDArray[np.int64]]:
    """Read resamples of row numbers and return them as case indices, without unused rows.

    Raises
    ------
    FormatError
        If the file cannot be read, or a number is not a row number.
    """
    draws = []
    for number, line in enumerate(read_draws(path), start=1):
        rows = []
        for text in line:
            if not text.isdecimal() or int(text) > read.last:
                raise FormatError(
                    f"expected line {number} of {path} to have row numbers from 0 to {read.last}, "
                    f"but found {text!r}: count rows from 0 below the header"
                )
            rows.append(read.places.get(int(text), -1))
        draw = np.array(rows, dtype=np.int64)
        draws.append(draw[draw >= 0])
    return draws


def classifier_content(summary: ClassifierSummary) -> dict[str, Any]:
    """Return the content of ``classifier.json``; NaN and infinite numbers become null."""
    result, settings = summary.result, summary.settings
    return {
        "unit": summary.columns.unit,
        "n": result.n,
        "n_positive": result.n_positive,
        **_describe_models(result),
        "reader": result.reader,
        "bayes_factors": {
            factor.name: {"k": factor.k, "draws": factor.n_draws} for factor in result.factors
        },
        "leaders": result.leaders,
        "comparisons": result.pairs,
        "against_reader": {
            model.name: model.against_reader for model in result.models if model.against_reader
        },
        "subgroups": result.subgroups,
        "partial_above": result.above,
        "resamples": {
            "n": result.n_draws,
            "n_one_class": result.n_one_class,
            "n_drawn_each": result.n_drawn,
            "seed": None if settings.draws else settings.rules.seed,
            "file": settings.draws.name if settings.draws else None,
        },
        "missing": settings.missing,
        "unusable": {model.name: model.n_filled for model in result.models},
        "failures": [{"case_id": f.case_id, "reason": f.reason} for f in summary.failures],
        "notes": summary.notes,
        "software": software_version(),
        "created": now_utc(),
    }


def _describe_models(result: ClassifierResult) -> dict[str, Any]:
    models = {
        model.name: {
            "auc": model.auc,
            "auc_variance_delong": model.auc_variance_delong,
            "partial_auc": model.partial_auc,
            "specificity_at": model.specificity_at,
        }
        for model in result.models
    }
    intervals = {
        model.name: {
            "auc_delong": model.auc_delong,
            "auc": model.auc_bootstrap,
            "partial_auc": model.partial_auc_bootstrap,
            "specificity_at": [
                {"sensitivity": sensitivity, "threshold": ends.threshold,
                 "interpolated": ends.interpolated, "minus_reader": ends.minus_reader,
                 "cut": cut}
                for sensitivity, ends, cut in zip(
                    result.sensitivities, model.specificity_bootstrap, model.cuts, strict=True
                )
            ],
        }
        for model in result.models
    }  # fmt: skip
    return {"models": models, "intervals": intervals}


def _read_scores(
    table: NamedTable, columns: ClassifierColumns, missing: MissingScore
) -> tuple[NDArray[np.float64], list[BadCell]]:
    """Return the scores (k, n), with NaN for unusable scores, and the unusable cells."""
    scores, cells = np.full((len(columns.scores), table.n), np.nan), []
    left_out = missing is MissingScore.LEAVE_OUT
    becomes = "excluded from every model" if left_out else "counts as the least favourable score"
    for index, name in enumerate(columns.scores):
        scores[index], bad = table.numbers(name)
        if bad and np.isnan(scores[index]).all():
            raise FormatError(
                f"expected column {name} of {table.name} to contain numbers, but found "
                f"none (row {table.row_numbers[bad[0].row]}: {bad[0].reason}); choose a different "
                "column"
            )
        reasons = {cell.row: cell.reason for cell in bad}
        cells += [
            BadCell(int(row), f"{reasons.get(int(row), f'{name} is empty')}: {becomes}")
            for row in np.flatnonzero(np.isnan(scores[index]))
        ]
    return scores, cells


def _join_rows(
    table: NamedTable,
    columns: ClassifierColumns,
    units: Units,
    counting: NDArray[np.intp],
    label: NDArray[np.float64],
    scores: NDArray[np.float64],
    recall: NDArray[np.float64] | None,
) -> ClassifierCases:
    """Return one case for each unit of rows; a missing score becomes the least favourable score."""
    of_unit = units.largest(label[counting])
    unusable = np.isnan(scores[:, counting])
    worst = np.where(of_unit[units.of_row] == 1, -np.inf, np.inf)
    filled = np.where(unusable, worst, scores[:, counting])
    clusters = None
    if columns.cluster:
        names = _join_texts(table, columns.cluster, units, counting)
        clusters = Units.of([name or f"no cluster {index}" for index, name in enumerate(names)])
    subgroups = []
    for column in columns.subgroups:
        values = tuple(_join_texts(table, column, units, counting, mixed="several"))
        if len(set(values)) > _MOST_GROUPS:
            raise FormatError(
                f"expected the subgroup column to have few distinct values, but {column} of "
                f"{table.name} has {len(set(values)):,}: group the values first"
            )
        subgroups.append((column, values))
    return ClassifierCases(
        units.names,
        of_unit,
        columns.scores,
        np.stack([units.largest(one) for one in filled]),
        tuple(int(of_model.sum()) for of_model in unusable),
        None if recall is None else units.largest(recall[counting]),
        clusters,
        tuple(subgroups),
    )


def _join_texts(
    table: NamedTable, column: str, units: Units, counting: NDArray[np.intp], mixed: str = ""
) -> list[str]:
    """Return the string of each unit, or `mixed` if its rows differ; raise if `mixed` is "".

    Raises
    ------
    FormatError
        If rows of a unit are in different clusters.
    """
    texts = table.texts(column)
    of_unit: list[str | None] = [None] * units.n
    for index, row in zip(units.of_row, counting, strict=True):
        if of_unit[index] not in (None, texts[row], mixed or None):
            if not mixed:
                raise FormatError(
                    f"expected all rows of an exam in {table.name} to have the same {column}, but "
                    f"{units.names[index]} has {of_unit[index]} and {texts[row]}: correct the "
                    "table"
                )
            of_unit[index] = mixed
        elif of_unit[index] is None:
            of_unit[index] = texts[row]
    return [text or "" for text in of_unit]


def _list_parameters(
    table: Path, columns: ClassifierColumns, settings: ClassifierSettings
) -> tuple[tuple[str, Setting], ...]:
    rules = settings.rules
    return (
        ("table", table.name),
        ("id", columns.case_id),
        ("label", columns.label),
        ("scores", ", ".join(columns.scores)),
        ("reader", columns.reader or None),
        ("cluster", columns.cluster or None),
        ("exam", columns.exam or None),
        ("subgroups", ", ".join(columns.subgroups) or None),
        ("operating_points", ", ".join(f"{sensitivity:g}" for sensitivity in rules.sensitivities)),
        ("partial_above", rules.above),
        ("bootstrap", rules.n_draws),
        ("seed", rules.seed),
        ("missing", settings.missing.value),
        ("draws", settings.draws.name if settings.draws else None),
    )
