"""Compute the cohort's metrics from an external table of Dice and NormHD."""

from dataclasses import replace
from pathlib import Path

from napari_mamamia.core.cohort import Cohort
from napari_mamamia.core.provenance import Setting
from napari_mamamia.core.records import CaseFailure, CaseScore, ScoreStatus
from napari_mamamia.io.data_set.score_files import ReadRows, ScoreRow, read_score_table
from napari_mamamia.io.files.file_names import case_key
from napari_mamamia.scoring.cohort.model_results import with_composites
from napari_mamamia.scoring.cohort.policy import unusable_reason
from napari_mamamia.scoring.cohort.results import ModelScores
from napari_mamamia.services.batch.output_folder import Existing, claim_folder
from napari_mamamia.services.score.clinical_table import read_table
from napari_mamamia.services.score.output import write_scores
from napari_mamamia.services.score.report import Scored, write_score_report
from napari_mamamia.services.score.score import ScoreSummary, cohort_numbers, tags_for, with_facts
from napari_mamamia.services.score.settings import ScoreSettings


def score_table(
    table: Path,
    out: Path,
    settings: ScoreSettings | None = None,
    *,
    existing: Existing = Existing.REFUSE,
) -> ScoreSummary:
    """Compute the cohort's metrics from a table and write the results to `out`.

    The metrics of the cases are used unchanged; the profile defines the groups. An invalid row is
    recorded as a failure with its row number. See `io.data_set.score_files.read_score_table` for
    the columns.

    Raises
    ------
    FormatError
        If a table cannot be read or lacks a column.
    SaveConflictError
        If `out` has other results.
    """
    settings = settings or ScoreSettings()
    read = read_score_table(table)
    cohort = read_table(settings.clinical, settings.columns)
    claim_folder(out, "score-table", table_parameters(table, settings), existing)
    model = score_rows(table.stem, read, settings, cohort)
    overwrite = existing is not Existing.REFUSE
    write_scores(model, out, overwrite=overwrite)
    write_score_report([Scored(model)], out, settings, overwrite=overwrite)
    return ScoreSummary(model, out)


def table_parameters(table: Path, settings: ScoreSettings) -> tuple[tuple[str, Setting], ...]:
    """Return the parameters of the run for ``run.json``."""
    return (("table", table.name), *settings.parameters)


def score_of_row(row: ScoreRow, profile: str) -> CaseScore:
    """Return the score of a case from its table row.

    A table can declare a case unusable, but not usable. A row with an empty prediction and a Dice
    above 0 is unreadable, because one of the two entries must be wrong.
    """
    if row.status is ScoreStatus.PREDICTION_EMPTY and row.dsc > 0:
        reason = (
            f"the status is prediction_empty, but Dice is {row.dsc:g}, although an empty "
            "prediction has Dice 0: correct the status or the Dice"
        )
        return CaseScore(row.case_id, ScoreStatus.UNREADABLE, profile=profile, reason=reason)
    is_unusable = unusable_reason(CaseScore(row.case_id, row.status)) is not None
    status = row.status if is_unusable else ScoreStatus.OK
    return CaseScore(
        row.case_id,
        status,
        dsc=row.dsc,
        hausdorff95_mm=row.hausdorff95_mm,
        norm_hd=row.norm_hd,
        profile=profile,
    )


def score_rows(
    name: str, read: ReadRows[ScoreRow], settings: ScoreSettings, cohort: Cohort | None
) -> ModelScores:
    """Compute the cohort's metrics from rows that have already been read, without writing files.

    Without a list of cases, all cases in the table count, including invalid rows with an id.
    """
    profile = settings.profile.name
    scores = {case_key(row.case_id): score_of_row(row, profile) for row in read.rows}
    failures = list(read.failures)
    failures += [CaseFailure(row.case_id, row.reason) for row in scores.values() if row.reason]
    for failure in read.failures:
        if failure.case_id not in read.unnamed:
            bad = CaseScore(
                failure.case_id, ScoreStatus.UNREADABLE, profile=profile, reason=failure.reason
            )
            scores.setdefault(case_key(failure.case_id), bad)
    outside: tuple[str, ...] = ()
    if settings.cases is not None:
        keys = settings.cases.keys
        outside = tuple(sorted(row.case_id for key, row in scores.items() if key not in keys))
        scores = {key: row for key, row in scores.items() if key in keys}
        for case_id in settings.cases.case_ids:
            if case_key(case_id) not in scores:
                reason = f"the case is listed in {settings.cases.name} but has no row"
                missing = ScoreStatus.PREDICTION_MISSING
                scores[case_key(case_id)] = CaseScore(
                    case_id, missing, profile=profile, reason=reason
                )
                failures.append(CaseFailure(case_id, reason))
    case_ids = [row.case_id for row in scores.values()]
    rows = with_facts(tuple(scores.values()), {}, tags_for(case_ids, settings))
    n_cases = len(rows) + len(read.unnamed)
    scored = cohort_numbers(name, rows, tuple(failures), n_cases, settings, cohort)
    definition = settings.metric_definition or read.definition
    notes = (*scored.notes, *read.notes)
    scored = replace(scored, outside=outside, metric_definition=definition, notes=notes)
    return with_composites(scored, settings.composites)
