"""Cohort numbers from a table of Dice and NormHD that somebody else computed."""

from pathlib import Path

from napari_mamamia.core.cohort import Cohort
from napari_mamamia.core.provenance import Setting
from napari_mamamia.core.records import CaseScore, ScoreStatus
from napari_mamamia.io.data_set.score_files import ReadRows, ScoreRow, read_score_table
from napari_mamamia.scoring.cohort.model_results import with_composites
from napari_mamamia.scoring.cohort.results import ModelScores
from napari_mamamia.services.batch.output_folder import Existing, claim_folder
from napari_mamamia.services.score.clinical_table import read_table
from napari_mamamia.services.score.facts import tags_for, with_facts
from napari_mamamia.services.score.output import write_scores
from napari_mamamia.services.score.report import Scored, write_score_report
from napari_mamamia.services.score.score import ScoreSummary, cohort_numbers
from napari_mamamia.services.score.settings import ScoreSettings


def score_table(
    table: Path,
    out: Path,
    settings: ScoreSettings | None = None,
    *,
    existing: Existing = Existing.REFUSE,
) -> ScoreSummary:
    """Compute the cohort's numbers of a table and write them to `out`.

    The numbers of the cases are taken as they are; the profile draws the groups. A bad row becomes
    a failure with its row number. See `io.data_set.score_files.read_score_table` for the columns.

    Raises
    ------
    FormatError
        If a table cannot be read or lacks a column.
    SaveConflictError
        If `out` holds other results.
    """
    settings = settings or ScoreSettings()
    read = read_score_table(table)
    cohort = read_table(settings.clinical, settings.columns)
    claim_folder(out, "score-table", table_parameters(table, settings), existing)
    model = score_rows(table.stem, read, settings, cohort)
    replace = existing is not Existing.REFUSE
    write_scores(model, out, overwrite=replace)
    write_score_report([Scored(model)], out, settings, overwrite=replace)
    return ScoreSummary(model, out)


def table_parameters(table: Path, settings: ScoreSettings) -> tuple[tuple[str, Setting], ...]:
    """Return what the run is, for ``run.json``."""
    return (("table", table.name), *settings.parameters)


def score_rows(
    name: str, read: ReadRows[ScoreRow], settings: ScoreSettings, cohort: Cohort | None
) -> ModelScores:
    """Return the cohort's numbers of rows that were read; nothing is written."""
    profile = settings.profile.name
    rows = tuple(
        CaseScore(row.case_id, ScoreStatus.OK, dsc=row.dsc, norm_hd=row.norm_hd, profile=profile)
        for row in sorted(read.rows, key=lambda row: row.case_id)
    )
    rows = with_facts(rows, {}, tags_for([row.case_id for row in rows], settings))
    n_cases = len(rows) + len(read.failures)
    scored = cohort_numbers(name, rows, read.failures, n_cases, settings, cohort)
    return with_composites(scored, settings.composites)
