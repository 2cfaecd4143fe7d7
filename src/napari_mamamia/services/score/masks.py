"""Score masks in memory, with the same numbers as for their files."""

from collections.abc import Mapping
from typing import TypeAlias

from napari_mamamia.core.case import LabelMap
from napari_mamamia.core.cohort import Cohort
from napari_mamamia.core.progress import report_progress
from napari_mamamia.core.records import CaseFailure, CaseScore, ScoreStatus
from napari_mamamia.services.score.facts import tags_for, with_facts
from napari_mamamia.services.score.inspections import CaseInspection, looks_of
from napari_mamamia.services.score.report import Scored
from napari_mamamia.services.score.score import cohort_numbers, score_and_inspect_at
from napari_mamamia.services.score.settings import ScoreSettings

MaskPairs: TypeAlias = Mapping[str, tuple[LabelMap | None, LabelMap | None]]
"""Reference and prediction by case id, None for a missing mask."""


def score_masks_of_cases(
    name: str, pairs: MaskPairs, settings: ScoreSettings, cohort: Cohort | None
) -> Scored:
    """Score masks in memory as `score_pairs` scores files; the report has no images.

    The images of the settings are not used.
    """
    rows: list[CaseScore] = []
    looks: list[CaseInspection] = []
    for number, (case_id, masks) in enumerate(pairs.items()):
        report_progress(number, len(pairs), f"Scoring {case_id}")
        scored = score_and_inspect_at(case_id, masks, settings.profile, settings.label_value)
        rows.append(scored.score)
        looks += [scored.look] if scored.look is not None else []
    full = with_facts(rows, {}, tags_for(list(pairs), settings))
    failures = tuple(
        CaseFailure(row.case_id, row.reason) for row in full if row.status is not ScoreStatus.OK
    )
    model = cohort_numbers(name, full, failures, len(full), settings, cohort)
    return Scored(model, None, looks_of(looks, settings))
