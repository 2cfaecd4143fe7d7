"""`summary.json` and `comparison.json`: results as plain content, each undefined number with why.

The fields are listed in docs/methods/scoring_files.md.
"""

from collections import Counter
from importlib.metadata import version
from math import isnan
from platform import python_version
from typing import Final

from napari_mamamia.core.provenance import now_utc, software_version
from napari_mamamia.core.records import ScoreStatus
from napari_mamamia.scoring.case.prediction_cost import prediction_costs
from napari_mamamia.scoring.case.profiles import profile_named
from napari_mamamia.scoring.cohort.group_rules import rules_of
from napari_mamamia.scoring.cohort.results import ModelComparison, ModelScores
from napari_mamamia.services.score.tasks import (
    Content,
    composites_content,
    task1_content,
    task2_content,
)

__all__ = ["comparison_content", "summary_content"]

_PACKAGES: Final = ("numpy", "scipy")


def summary_content(model: ModelScores) -> Content:
    """Return the content of ``summary.json``; nan stands for null."""
    content = {
        "profile": model.profile,
        "model": model.name,
        "n_cases": model.n_cases,
        "n_scored": model.n_scored,
        "failures": [{"case_id": f.case_id, "reason": f.reason} for f in model.failures],
    }
    composites = composites_content(model.composites)
    if model.segmentation:
        content |= _cases(model)
        content["prediction_cost"] = prediction_costs(model.rows)
        content["task1"] = task1_content(model.segmentation) | composites
    if model.response:
        content["task2"] = task2_content(model.response) | composites
    return content | {
        "clinical": model.clinical,
        "bootstrap": model.resampling,
        "notes": model.notes,
        **_made_by(model.profile),
    }


def comparison_content(comparison: ModelComparison) -> Content:
    """Return the content of ``comparison.json``; nan stands for null."""
    sweep = comparison.sweep
    first, last = sweep.ends
    return {
        "profile": comparison.profile,
        "weight_of_fairness": comparison.weight_of_fairness,
        "models": comparison.ranking,
        "tests": comparison.tests,
        "weight_sweep": {
            "composite": sweep.composite,
            "ends": {"0": first, "1": last},
            "weights_of_fairness": sweep.weights,
            "models": [
                {"name": name, "scores": sweep.scores[place], "ranks": sweep.ranks[place]}
                for place, name in enumerate(sweep.names)
            ],
        },
        "baseline": comparison.baseline or None,
        "against_baseline": comparison.against_baseline,
        **composites_content(comparison.composites),
        "notes": comparison.notes,
        **_made_by(comparison.profile),
    }


def _made_by(profile: str) -> Content:
    return {
        "definitions": {"case": profile_named(profile), "cohort": rules_of(profile)},
        "software": software_version(),
        "versions": {"python": python_version(), **{name: version(name) for name in _PACKAGES}},
        "created": now_utc(),
    }


def _cases(model: ModelScores) -> Content:
    counts = Counter(row.status for row in model.rows)
    as_empty = [
        row.case_id
        for row in model.rows
        if row.status is ScoreStatus.PREDICTION_MISSING and not isnan(row.dsc)
    ]
    undefined = [row.case_id for row in model.rows if isnan(row.dsc) or isnan(row.norm_hd)]
    return {
        "status": {status.value: counts[status] for status in ScoreStatus},
        "n_missing_scored_as_empty": len(as_empty),
        "undefined": undefined,
        "n_warnings": sum(bool(row.warning) for row in model.rows),
    }
