"""The models of the window's list: what is there, adding one, what it would take."""

from dataclasses import dataclass
from pathlib import Path

from napari_mamamia.core.case import Case
from napari_mamamia.core.errors import MissingExtraError
from napari_mamamia.core.progress import Job
from napari_mamamia.segmentation.device import require_torch
from napari_mamamia.segmentation.engine_host import Host
from napari_mamamia.segmentation.planned import Estimate, PlannedSegmenter
from napari_mamamia.segmentation.recipe_input import phases_needed
from napari_mamamia.segmentation.registry import (
    ModelEntry,
    add_model,
    default_registry,
    forget_model,
    list_models,
)
from napari_mamamia.segmentation.worker_client import Worker

__all__ = [
    "ModelFacts",
    "add_to_list",
    "estimate_case",
    "facts_of",
    "listed_models",
    "new_host",
    "phases_of",
    "remove_from_list",
    "why_not_here",
]


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What a card shows of a model, in plain lines."""

    what: str
    licence: str
    sha256: str
    inputs: tuple[str, ...]


def listed_models() -> tuple[ModelEntry, ...]:
    """Return the models that the user added."""
    return list_models(default_registry())


def add_to_list(path: Path, name: str = "") -> Job[ModelEntry]:
    """Return a job that adds a model; see `registry.add_model`."""
    return add_model(path, default_registry(), name)


def remove_from_list(name: str) -> None:
    """Take a model off the list; its files stay."""
    forget_model(name, default_registry())


def new_host() -> Host:
    """Return a process for models; nothing is started until it is asked for."""
    return Worker()


def why_not_here() -> str:
    """Return why no trained model can run in this installation, "" if one can."""
    try:
        require_torch()
    except MissingExtraError as error:
        return str(error)
    return ""


def facts_of(entry: ModelEntry, segmenter: PlannedSegmenter) -> ModelFacts:
    """Return what a card shows of an added model."""
    card = entry.card
    facts = dict(card.facts)
    what = (
        f"{card.kind.value} {card.configuration}, {len(card.channels)} channel(s), "
        f"fold(s) {', '.join(card.folds)}, patch {facts.get('patch', '–')}"
    )
    licence = card.licence.strip().splitlines()
    inputs = tuple(
        f"channel {number} ({name}) ← {_in_words(expression)}"
        for number, (name, expression) in enumerate(segmenter.channels())
    )
    first = licence[0][:80] if licence else "unknown: ask its author"
    return ModelFacts(what, first, card.sha256[:12], inputs)


def phases_of(segmenter: PlannedSegmenter) -> int:
    """Return how many phases a model needs at least."""
    expressions = tuple(expression for _, expression in segmenter.channels())
    return phases_needed(expressions, segmenter.recipe)


def estimate_case(
    segmenter: PlannedSegmenter, case: Case, *, measure: bool = False
) -> Job[Estimate]:
    """Return a job that says what a case would take; see `PlannedSegmenter.estimate`."""
    return segmenter.estimate(case, measure=measure)


def _in_words(expression: str) -> str:
    """Return a channel's expression for people: ``p1-p0`` is "phase 1 - phase 0"."""
    parts = [f"phase {one[1:]}" if one[1:].isdigit() else one for one in expression.split("-")]
    return " - ".join(part.replace("_", " ") for part in parts)
