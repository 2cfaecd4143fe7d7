"""Score predicted responses (pCR) against the clinical table (Task 2)."""

from collections.abc import Sequence
from math import isnan
from pathlib import Path

from napari_mamamia.core.cohort import Cohort
from napari_mamamia.core.progress import report_progress
from napari_mamamia.core.records import CaseFailure
from napari_mamamia.io.data_set.score_files import ReadRows, ResponseRow, read_response_table
from napari_mamamia.io.files.file_names import case_key
from napari_mamamia.scoring.cohort.groups import GroupRules, MissingLabel, rules_of
from napari_mamamia.scoring.cohort.model_results import response_result, with_composites
from napari_mamamia.scoring.cohort.response_cohort import ResponsePredictions
from napari_mamamia.scoring.cohort.results import ModelScores
from napari_mamamia.services.batch.output_folder import Existing, claim_folder
from napari_mamamia.services.score.clinical_table import RESPONSE, described, matched, needed_table
from napari_mamamia.services.score.output import write_scores
from napari_mamamia.services.score.report import Scored, write_score_report
from napari_mamamia.services.score.score import ScoreSummary
from napari_mamamia.services.score.settings import ScoreSettings


def score_pcr(
    predictions: Path,
    clinical: Path,
    out: Path,
    settings: ScoreSettings | None = None,
    *,
    existing: Existing = Existing.REFUSE,
) -> ScoreSummary:
    """Score a table of predicted responses and write ``out/summary.json``.

    An invalid row is recorded as a failure with its row number. A case without a row or a pcr in
    the clinical table is also a failure. Under official-code, so is a labelled case without a
    prediction. See `io.data_set.score_files.read_response_table` for the columns. Of the clinical
    table in `settings`, only the column choice is used.

    Raises
    ------
    FormatError
        If a table cannot be read or lacks a column.
    SaveConflictError
        If `out` has other results.
    """
    settings = settings or ScoreSettings()
    read = read_response_table(predictions)
    cohort = needed_table(clinical, settings.columns, RESPONSE)
    names = (("predictions", predictions.name), ("clinical", clinical.name))
    own_settings = tuple(item for item in settings.parameters if item[0] != "clinical")
    claim_folder(out, "score-pcr", (*names, *own_settings), existing)
    report_progress(1, 2, "Computing the cohort's numbers")
    scored = response_model(predictions.stem, read, clinical, cohort, settings)
    model = with_composites(scored, settings.composites)
    replace = existing is not Existing.REFUSE
    write_scores(model, out, overwrite=replace)
    write_score_report([Scored(model)], out, settings, overwrite=replace)
    return ScoreSummary(model, out)


def response_model(
    name: str,
    read: ReadRows[ResponseRow],
    clinical: Path,
    cohort: Cohort,
    settings: ScoreSettings,
) -> ModelScores:
    """Score rows that have already been read against the clinical table, without writing files."""
    rows = tuple(sorted(read.rows, key=lambda row: row.case_id))
    own_cohort = matched([row.case_id for row in rows], cohort)
    rules = rules_of(settings.profile.name)
    predictions = ResponsePredictions.of(_select_rows(rows, own_cohort), own_cohort)
    least = settings.minimum_group
    result = response_result(predictions, own_cohort, rules, settings.resampling, least)
    unanswered = _list_unanswered(read, cohort)
    scores_all = rules.missing_label is MissingLabel.NO_RESPONSE
    failures = (
        *read.failures,
        *_list_left_out(rows, own_cohort, rules),
        *(unanswered if scores_all else ()),
    )
    named = [failure.case_id for failure in failures if failure.case_id not in read.unnamed]
    case_ids = {case_key(case_id) for case_id in (*(row.case_id for row in rows), *named)}
    return ModelScores(
        name=name,
        profile=settings.profile.name,
        n_cases=len(case_ids) + len(read.unnamed),
        n_scored=result.cohort.n_scored,
        rows=(),
        failures=failures,
        segmentation=None,
        response=result,
        clinical=described(clinical, cohort, own_cohort),
        resampling=settings.resampling,
        notes=(*result.cohort.notes, *read.notes, *_note_unanswered(rows, cohort)),
        cohort=own_cohort,
    )


def _list_unanswered(read: ReadRows[ResponseRow], cohort: Cohort) -> list[CaseFailure]:
    in_table = {case_key(row.case_id) for row in read.rows}
    in_table |= {case_key(failure.case_id) for failure in read.failures}
    reason = (
        "the case has no row, but its pcr is known in the clinical table, so the case is "
        "excluded; add a row, or choose a clinical table of the cases to score"
    )
    return [
        CaseFailure(record.case_id, reason)
        for record in cohort.records
        if record.pcr is not None and case_key(record.case_id) not in in_table
    ]


def _note_unanswered(rows: Sequence[ResponseRow], cohort: Cohort) -> tuple[str, ...]:
    labelled = {case_key(record.case_id) for record in cohort.records if record.pcr is not None}
    n_lacking = len(labelled - {case_key(row.case_id) for row in rows})
    if not n_lacking:
        return ()
    return (
        f"{n_lacking:,} of the {len(labelled):,} cases with a known pCR in the clinical table "
        "have no prediction in this table and are excluded: rank this table only against "
        "tables of the same cases",
    )


def _select_rows(rows: Sequence[ResponseRow], own: Cohort) -> list[tuple[str, float, float]]:
    ids = own.by_id()
    return [(row.case_id, float(row.pcr), row.score) for row in rows if row.case_id in ids]


def _list_left_out(
    rows: Sequence[ResponseRow], own: Cohort, rules: GroupRules
) -> list[CaseFailure]:
    records = own.by_id()
    unknown = "the case is excluded, because its pcr is not known in the clinical table"
    if rules.missing_label is MissingLabel.NO_RESPONSE:
        unknown = (
            "the pcr of the case is not known in the clinical table: the case counts as a "
            "non-responder in balanced accuracy, as in the published script, and is otherwise "
            "excluded"
        )
    has_scores = any(not isnan(row.score) for row in rows)
    failures = []
    for row in rows:
        if row.case_id not in records:
            reason = "the case is excluded, because it is not in the clinical table"
            failures.append(CaseFailure(row.case_id, reason))
        elif records[row.case_id].pcr is None:
            failures.append(CaseFailure(row.case_id, unknown))
        elif has_scores and isnan(row.score):
            reason = (
                "the case has no score and is excluded from AUC, average precision and calibration"
            )
            failures.append(CaseFailure(row.case_id, reason))
    return failures
