"""Scoring: the masks on screen, or two folders of masks."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from napari_mamamia.core.case import LabelMap, Mask
from napari_mamamia.core.errors import FormatError
from napari_mamamia.core.progress import Job, Progress
from napari_mamamia.core.provenance import software_version
from napari_mamamia.core.records import CaseFailure, CaseScore, ScoreStatus
from napari_mamamia.io.layout import find_masks
from napari_mamamia.io.phase_files import case_key
from napari_mamamia.io.tables import write_case_scores, write_json
from napari_mamamia.io.volumes import read_labels
from napari_mamamia.scoring.case_score import score_label_maps, score_masks
from napari_mamamia.scoring.profiles import CLINICAL
from napari_mamamia.services.batch import for_each_case
from napari_mamamia.services.output_folder import Existing, claim_folder

__all__ = ["ScoreSummary", "score_folders", "score_pair"]


@dataclass(frozen=True, slots=True)
class ScoreSummary:
    """The rows of a scoring run in order of case id, and where they were written."""

    rows: tuple[CaseScore, ...]
    table: Path
    summary: Path

    @property
    def all_ok(self) -> bool:
        """Whether every case of either folder was scored as ok."""
        return all(row.status is ScoreStatus.OK for row in self.rows)


def score_pair(case_id: str, reference: Mask, prediction: Mask) -> CaseScore:
    """Return the clinical scores of two masks in memory, such as those on screen."""
    return score_masks(case_id, reference, prediction)


def score_folders(
    reference: Path,
    prediction: Path,
    out: Path,
    *,
    label: float | None = None,
    existing: Existing = Existing.REFUSE,
) -> Job[ScoreSummary]:
    """Return a job that scores every case of either folder and writes the table.

    Writes ``case_scores.csv`` and ``summary.json`` in `out`. A file that cannot be read costs one
    row. `label` is the value that counts as tumour; without it every value above 0 does.

    Raises
    ------
    FormatError
        If a folder is missing or holds no mask, or two files for one case.
    SaveConflictError
        If `out` holds other results.
    """
    references, predictions = _masks(reference), _masks(prediction)
    parameters = (
        ("profile", CLINICAL.name),
        ("reference", reference.name),
        ("prediction", prediction.name),
        ("label", label),
    )
    claim_folder(out, "score", parameters, existing)
    pairs = _paired(references, predictions)

    def work(case_id: str) -> Job[CaseScore]:
        yield Progress(0, 1, "Scoring")
        return _score_files(case_id, *pairs[case_id], label)

    batch = yield from for_each_case(list(pairs), work)
    rows = _in_order(list(pairs), batch.results, batch.failures)
    table, summary = out / "case_scores.csv", out / "summary.json"
    replace = existing is not Existing.REFUSE
    write_case_scores(rows, table, overwrite=replace)
    write_json(_summary(rows), summary, overwrite=replace)
    return ScoreSummary(rows, table, summary)


def _masks(folder: Path) -> dict[str, Path]:
    found = dict(find_masks(folder))
    if not found:
        raise FormatError(
            f"{folder} holds no mask: expected files such as ID.nii.gz, ID.nii or ID.nrrd"
        )
    return found


def _paired(
    references: dict[str, Path], predictions: dict[str, Path]
) -> dict[str, tuple[Path | None, Path | None]]:
    """Return both files of every case of either folder; letter case does not part them."""
    ids = {case_key(case_id): case_id for case_id in (*predictions, *references)}
    by_key = [
        {case_key(case_id): path for case_id, path in masks.items()}
        for masks in (references, predictions)
    ]
    keys = sorted(ids, key=lambda key: ids[key])
    return {ids[key]: (by_key[0].get(key), by_key[1].get(key)) for key in keys}


def _score_files(
    case_id: str, reference: Path | None, prediction: Path | None, label: float | None
) -> CaseScore:
    maps: list[LabelMap | None] = []
    for path in (reference, prediction):
        try:
            maps.append(read_labels(path) if path else None)
        except FormatError as error:
            return CaseScore(
                case_id, ScoreStatus.UNREADABLE, profile=CLINICAL.name, reason=str(error)
            )
    return score_label_maps(case_id, maps[0], maps[1], label=label)


def _in_order(
    case_ids: list[str], results: tuple[CaseScore, ...], failures: tuple[CaseFailure, ...]
) -> tuple[CaseScore, ...]:
    rows = {row.case_id: row for row in results}
    for failure in failures:
        rows[failure.case_id] = CaseScore(
            failure.case_id,
            ScoreStatus.UNREADABLE,
            profile=CLINICAL.name,
            reason=failure.reason,
        )
    return tuple(rows[case_id] for case_id in case_ids)


def _summary(rows: tuple[CaseScore, ...]) -> dict[str, object]:
    counts = Counter(row.status.value for row in rows)
    return {
        "profile": CLINICAL.name,
        "software": software_version(),
        "n_cases": len(rows),
        "n_scored": sum(row.dsc == row.dsc for row in rows),
        "status": {status.value: counts.get(status.value, 0) for status in ScoreStatus},
        "failures": [
            {"case_id": row.case_id, "reason": row.reason}
            for row in rows
            if row.status is not ScoreStatus.OK
        ],
    }
