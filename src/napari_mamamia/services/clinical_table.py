"""The clinical table beside a list of cases: ids spelled as the cases', whatever the table says."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from napari_mamamia.core.cohort import CaseRecord, Cohort
from napari_mamamia.core.progress import Job, Progress, paced, spared_collections
from napari_mamamia.io.clinical import clinical_job
from napari_mamamia.io.clinical_rules import parse_id
from napari_mamamia.io.phase_files import case_key
from napari_mamamia.scoring.results import ClinicalTable

__all__ = ["described", "matched", "read_table"]

_MATCHING: Final = "Matching cases with the clinical table"

_KEYS: Final[tuple[Callable[[CaseRecord], str | None], ...]] = (
    lambda record: record.case_id,
    lambda record: case_key(record.case_id),
    lambda record: _patient(record),
)


@spared_collections
def read_table(path: Path | None) -> Job[Cohort | None]:
    """Return a job for the clinical table at `path`, None without one.

    Raises
    ------
    FormatError
        If it cannot be read.
    """
    yield Progress(0, 1, "Reading the clinical table")
    return None if path is None else (yield from clinical_job(path))


@spared_collections
def matched(case_ids: Sequence[str], cohort: Cohort) -> Job[Cohort]:
    """Return a job for the rows of the given cases, with the ids spelled as in `case_ids`.

    A row belongs to a case by its case id or, in a table that has both, by its patient id. The
    same spelling comes first; else letter case does not matter. A case that fits several rows, or
    none, has no row in the result.
    """
    lookups = []
    for key in _KEYS:
        lookups.append((yield from _single(cohort, key)))
    records: list[CaseRecord] = []
    for case_id in paced(case_ids):
        if case_id is None:
            yield Progress(len(records), len(case_ids), _MATCHING)
            continue
        keys = (case_id, case_key(case_id), case_key(case_id))
        fits = (rows.get(key) for rows, key in zip(lookups, keys, strict=True))
        record = next((row for row in fits if row is not None), None)
        if record is not None:
            records.append(replace(record, case_id=case_id))
    return Cohort(tuple(records), cohort.refused)


def described(path: Path | None, cohort: Cohort | None, own: Cohort | None) -> ClinicalTable | None:
    """Return what a summary says of a table, of which `own` are the rows of the cases."""
    if path is None or cohort is None or own is None:
        return None
    return ClinicalTable(path.name, len(cohort.records), len(own.records), cohort.refused)


def _single(cohort: Cohort, key: Callable[[CaseRecord], str | None]) -> Job[dict[str, CaseRecord]]:
    """Return a job for the rows whose key no other row has."""
    rows: dict[str, list[CaseRecord]] = {}
    for record in paced(cohort.records):
        if record is None:
            yield Progress(0, 1, _MATCHING)
            continue
        name = key(record)
        if name is not None:
            rows.setdefault(name, []).append(record)
    yield Progress(0, 1, _MATCHING)
    return {name: found[0] for name, found in rows.items() if len(found) == 1}


def _patient(record: CaseRecord) -> str | None:
    try:
        return case_key(parse_id(record.other.get("patient_id")))
    except ValueError:
        return None
