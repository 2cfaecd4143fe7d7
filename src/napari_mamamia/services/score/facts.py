"""Add the cost of the prediction and the readers' tags to a case's scores."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from napari_mamamia.core.errors import MamamiaError
from napari_mamamia.core.progress import gc_frozen, paced
from napari_mamamia.core.records import CaseScore
from napari_mamamia.io.layouts.find import find_data_set
from napari_mamamia.io.workspace.place import find_workspace
from napari_mamamia.io.workspace.preferences import load_preferences
from napari_mamamia.io.workspace.provenance import read_provenance, sidecar_path
from napari_mamamia.io.workspace.workspace import Workspace
from napari_mamamia.services.score.case_tags import joined_tags, tags_of
from napari_mamamia.services.score.settings import ScoreSettings


@gc_frozen()
def with_facts(
    rows: Sequence[CaseScore],
    predictions: Mapping[str, Path | None],
    tags: Mapping[str, Sequence[str]],
) -> tuple[CaseScore, ...]:
    """Return the rows with time, device and memory of each prediction, and the tags.

    `predictions` are the mask files by case id. Without a readable provenance file, the values stay
    unknown.
    """
    full_rows: list[CaseScore] = []
    for row in paced(rows, "Reading the cost of the predictions", len(rows)):
        facts = _read_cost(predictions.get(row.case_id))
        row_tags = tags.get(row.case_id)
        if row_tags:
            facts["tags"] = joined_tags(row_tags)
        full_rows.append(replace(row, **facts) if facts else row)
    return tuple(full_rows)


def tags_for(case_ids: Sequence[str], settings: ScoreSettings) -> Mapping[str, tuple[str, ...]]:
    """Return the tags of the cases in the run's workspace, {} without a workspace.

    Raises
    ------
    FormatError
        If the tags of the workspace cannot be read.
    """
    root = settings.workspace
    if root is None and settings.images is not None:
        root = find_workspace(find_data_set(settings.images), load_preferences()).root
    return tags_of(Workspace(root), case_ids) if root is not None else {}


def _read_cost(prediction: Path | None) -> dict[str, Any]:
    """Return the cost recorded in a mask's provenance, {} without provenance."""
    if prediction is None or not sidecar_path(prediction).exists():
        return {}
    try:
        provenance = read_provenance(sidecar_path(prediction))
    except MamamiaError:
        return {}
    costs = (
        ("prediction_seconds", provenance.seconds),
        ("peak_memory_bytes", provenance.peak_memory_bytes),
        ("device", provenance.device),
    )
    return {name: value for name, value in costs if value not in (None, "")}
