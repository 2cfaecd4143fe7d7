"""Writing what a scoring run found: the table of cases three times, and the summary."""

from pathlib import Path
from typing import Final

from napari_mamamia.core.progress import Job, Progress
from napari_mamamia.io.tables.tables import case_scores_job, write_json
from napari_mamamia.scoring.cohort.results import ModelComparison, ModelScores
from napari_mamamia.services.batch.beside import parquet_job
from napari_mamamia.services.score.summary import comparison_content, summary_content

__all__ = ["COMPARISON", "SCORE_TABLE", "SUMMARY", "write_comparison", "write_scores"]

SCORE_TABLE: Final = "case_scores.csv"
SUMMARY: Final = "summary.json"
COMPARISON: Final = "comparison.json"

_SUFFIXES: Final = (".csv", ".xlsx", ".parquet")


def write_scores(model: ModelScores, out: Path, *, overwrite: bool = False) -> Job[None]:
    """Return a job that writes ``case_scores.csv``, ``.xlsx``, ``.parquet`` and ``summary.json``.

    A response model has no table of cases.

    Raises
    ------
    SaveConflictError
        If a file exists and `overwrite` is off.
    SaveError
        If the system refuses to write.
    """
    table = out / SCORE_TABLE
    names = [table.with_suffix(suffix) for suffix in _SUFFIXES] if model.segmentation else []
    for done, path in enumerate(names):
        yield Progress(done, len(names) + 1, f"Writing {path.name}")
        if path.suffix == ".parquet":
            yield from parquet_job(model.rows, table, overwrite=overwrite)
        else:
            yield from case_scores_job(model.rows, path, overwrite=overwrite)
    yield Progress(len(names), len(names) + 1, f"Writing {SUMMARY}")
    write_json(summary_content(model), out / SUMMARY, overwrite=overwrite)
    yield Progress(len(names) + 1, len(names) + 1, "Saved")


def write_comparison(comparison: ModelComparison, out: Path, *, overwrite: bool = False) -> None:
    """Write ``comparison.json``; errors as in `write_scores`."""
    write_json(comparison_content(comparison), out / COMPARISON, overwrite=overwrite)
