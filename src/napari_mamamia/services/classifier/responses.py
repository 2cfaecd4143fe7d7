"""Score predicted responses (pCR) of several models, also at operating points and with a reader."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.cohort import CaseRecord, Cohort
from napari_mamamia.core.errors import FormatError
from napari_mamamia.core.progress import report_progress
from napari_mamamia.io.data_set.score_files import ReadRows, ResponseRow, read_response_table
from napari_mamamia.io.files.file_names import case_key
from napari_mamamia.io.files.named_paths import read_named_path
from napari_mamamia.io.tables.cells import parse_label
from napari_mamamia.scoring.classifier.scores import (
    ClassifierCases,
    ClassifierRules,
    score_classifiers,
)
from napari_mamamia.scoring.cohort.model_results import with_composites
from napari_mamamia.services.batch.output_folder import Existing, claim_folder
from napari_mamamia.services.classifier.score_classifier import (
    ClassifierColumns,
    ClassifierSettings,
    ClassifierSummary,
    write_classifier,
)
from napari_mamamia.services.score.clinical_table import RESPONSE, matched, needed_table
from napari_mamamia.services.score.models import require_names
from napari_mamamia.services.score.output import write_scores
from napari_mamamia.services.score.pcr import response_model
from napari_mamamia.services.score.report import Scored, write_score_report
from napari_mamamia.services.score.score import ScoreSummary
from napari_mamamia.services.score.settings import ScoreSettings

CLASSIFIERS: Final = "classifiers.html"


@dataclass(frozen=True, slots=True)
class PredictionTable:
    """The name of a model and the table of its predicted responses."""

    name: str
    path: Path


@dataclass(frozen=True, slots=True)
class ResponsesSummary:
    """The results of each model in the given order, and the comparison at the operating points."""

    models: tuple[ScoreSummary, ...]
    classifiers: ClassifierSummary


def prediction_table(text: str) -> PredictionTable:
    """Return the table for ``NAME=FILE`` or ``FILE``; the default name is the file name.

    Examples
    --------
    >>> prediction_table("ours=results/p.csv").name, prediction_table("results/p.csv").name
    ('ours', 'p')
    """
    name, path = read_named_path(text)
    return PredictionTable(name or path.stem, path)


def score_responses(
    tables: Sequence[PredictionTable],
    clinical: Path,
    out: Path,
    settings: ScoreSettings,
    *,
    sensitivities: tuple[float, ...] = (),
    reader: str = "",
    existing: Existing = Existing.REFUSE,
) -> ResponsesSummary:
    """Score tables of predicted responses, and compare the models with each other.

    The results of a single model are written to ``out/summary.json``, those of several models to
    ``out/NAME/summary.json``. ``out/classifier.json`` and ``out/classifiers.html`` compare the
    models on all cases with a known pcr. In the comparison, a case without a probability from a
    model gets the least favourable probability.

    Parameters
    ----------
    tables, clinical
        The predicted responses of the models, and the clinical table.
    out
        The output folder.
    settings
        The definitions of the scores.
    sensitivities
        The operating points as sensitivities.
    reader
        The name of an additional column of the clinical table with a reader's decisions, 0 or 1.
    existing
        What to do if `out` has other results.

    Raises
    ------
    CaseError
        If two models have the same name, or a name is not a valid folder name.
    FormatError
        If a table cannot be read, lacks a column or has no score.
    SaveConflictError
        If `out` has other results.
    """
    require_names([table.name for table in tables])
    reads = [read_response_table(table.path) for table in tables]
    cohort = needed_table(clinical, settings.columns, RESPONSE)
    cases = _join_models(tables, reads, cohort, clinical, reader)
    rules = ClassifierRules(n_draws=settings.n_resamples, seed=settings.seed)
    if sensitivities:
        rules = ClassifierRules(sensitivities, n_draws=settings.n_resamples, seed=settings.seed)
    parameters = (
        ("predictions", ", ".join(f"{table.name}={table.path.name}" for table in tables)),
        ("clinical", clinical.name),
        *(item for item in settings.parameters if item[0] != "clinical"),
        ("operating_points", ", ".join(f"{sensitivity:g}" for sensitivity in rules.sensitivities)),
        ("reader", reader or None),
    )
    claim_folder(out, "score-pcr", parameters, existing)
    overwrite = existing is not Existing.REFUSE
    summaries = []
    for number, (table, read) in enumerate(zip(tables, reads, strict=True)):
        report_progress(number, len(tables), f"Scoring {table.name}")
        scored = response_model(table.name, read, clinical, cohort, settings)
        model = with_composites(scored, settings.composites)
        folder = out / table.name if len(tables) > 1 else out
        write_scores(model, folder, overwrite=overwrite)
        summaries.append(ScoreSummary(model, folder))
    write_score_report([Scored(summary.model) for summary in summaries], out, settings,
                       overwrite=overwrite)  # fmt: skip
    columns = ClassifierColumns("(case_id)", "(pcr)", cases.models, f"({reader})" if reader else "")
    result = score_classifiers(cases, rules)
    classifiers = ClassifierSummary(result, (), columns, ClassifierSettings(rules), out)
    source = ", ".join(table.path.name for table in tables)
    write_classifier(classifiers, cases, source, overwrite=overwrite, report=CLASSIFIERS)
    return ResponsesSummary(tuple(summaries), classifiers)


def _join_models(
    tables: Sequence[PredictionTable],
    reads: Sequence[ReadRows[ResponseRow]],
    cohort: Cohort,
    clinical: Path,
    reader: str,
) -> ClassifierCases:
    records: dict[str, CaseRecord] = {}
    by_model: list[dict[str, float]] = []
    for table, read in zip(tables, reads, strict=True):
        ids = [row.case_id for row in read.rows] + [bad.case_id for bad in read.failures]
        matching = matched(ids, cohort)
        records |= {
            case_key(record.case_id): record
            for record in matching.records
            if record.pcr is not None
        }
        scores = {case_key(row.case_id): row.score for row in read.rows}
        if np.isnan(list(scores.values())).all():
            raise FormatError(
                f"expected {table.path} to have a column score with probabilities, but found "
                "none: operating points, readers and comparisons of models require scores"
            )
        by_model.append(scores)
    keys = sorted(records)
    if not keys:
        raise FormatError(
            f"expected {clinical} to have the pcr of at least one predicted case, but found none: "
            "check that both tables use the same case ids"
        )
    label = np.array([float(bool(records[key].pcr)) for key in keys])
    scores_of = np.array([[scores.get(key, np.nan) for key in keys] for scores in by_model])
    unusable = np.isnan(scores_of)
    worst = np.where(label == 1, -np.inf, np.inf)
    return ClassifierCases(
        tuple(records[key].case_id for key in keys),
        label,
        tuple(table.name for table in tables),
        np.where(unusable, worst, scores_of),
        tuple(int(one.sum()) for one in unusable),
        _read_recalls([records[key] for key in keys], reader, clinical) if reader else None,
    )


def _read_recalls(
    records: Sequence[CaseRecord], reader: str, clinical: Path
) -> NDArray[np.float64]:
    if not any(reader in record.other for record in records):
        there = ", ".join(dict.fromkeys(name for record in records for name in record.other))
        raise FormatError(
            f"expected {clinical} to have a column {reader} with a reader's decisions, 0 or 1, "
            f"but found {there or 'no other column'}: choose one of these"
        )
    recalls = np.full(len(records), np.nan)
    for index, record in enumerate(records):
        cell = record.other.get(reader)
        try:
            recall = parse_label(cell)
            recalls[index] = np.nan if recall is None else recall
        except ValueError as error:
            raise FormatError(
                f"column {reader} of {clinical} {error} for case {record.case_id}: correct the "
                "table"
            ) from error
    return recalls
