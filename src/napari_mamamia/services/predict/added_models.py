"""The user's list of models: list, add and remove models, and estimate the cost of a case."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from napari_mamamia.core.case import Case
from napari_mamamia.core.errors import MissingExtraError
from napari_mamamia.segmentation.model.engine_settings import EngineSettings
from napari_mamamia.segmentation.model.recipe_input import phases_needed
from napari_mamamia.segmentation.model.segmenter import Segmenter
from napari_mamamia.segmentation.run import registry
from napari_mamamia.segmentation.run.engine_host import Host
from napari_mamamia.segmentation.run.planned import Estimate, PlannedSegmenter
from napari_mamamia.segmentation.worker.client import Worker
from napari_mamamia.services.predict.convert_model import Converted, convert_model
from napari_mamamia.services.predict.model_choice import RunChoices, require_ready
from napari_mamamia.services.predict.offers import Offer, offers


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """The description of a model for its card, as lines of text.

    `sha256` is the complete checksum, or "" if it is unknown.
    """

    what: str
    licence: str
    sha256: str
    device: str


def listed_models() -> tuple[registry.ModelEntry, ...]:
    """Return the models that the user added."""
    return registry.list_models(registry.default_registry())


def add_to_list(path: Path, name: str = "") -> registry.ModelEntry:
    """Add a model; see `registry.add_model`.

    Parameters
    ----------
    path
        The path of the model's file or folder.
    name
        The name of the model.
    """
    return registry.add_model(path, registry.default_registry(), name)


def remove_from_list(name: str) -> None:
    """Remove a model from the list; its files are kept."""
    registry.forget_model(name, registry.default_registry())


def new_host() -> Host:
    """Return a worker that runs models; its process starts with the first request."""
    return Worker()


def why_not_here(segmenter: Segmenter) -> str:
    """Return why a model cannot run in this installation, or "" if it can."""
    try:
        require_ready(segmenter)
    except MissingExtraError as error:
        return str(error)
    return ""


def facts_of(entry: registry.ModelEntry, segmenter: PlannedSegmenter) -> ModelFacts:
    """Return the description of an added model for its card.

    Parameters
    ----------
    entry
        The added model.
    segmenter
        The trained model.
    """
    card = entry.card
    facts = dict(card.facts)
    parts = [f"{card.kind} {card.configuration}".strip()]
    if card.folds:
        parts.append(f"fold{'' if len(card.folds) == 1 else 's'} {', '.join(card.folds)}")
    if facts.get("patch"):
        parts.append(f"patch {facts['patch']}")
    licence = card.licence.strip().splitlines()
    first = f"licence: {licence[0].strip()[:80]}" if licence else "licence unknown"
    return ModelFacts(", ".join(parts), first, card.sha256, _device_text(segmenter.settings))


def phases_of(segmenter: PlannedSegmenter) -> int:
    """Return the smallest number of phases that a model needs."""
    expressions = tuple(expression for _, expression in segmenter.channels())
    return phases_needed(expressions, segmenter.recipe)


def estimate_case(segmenter: PlannedSegmenter, case: Case, *, measure: bool = False) -> Estimate:
    """Return the estimated cost of a case; see `PlannedSegmenter.estimate`."""
    return segmenter.estimate(case, measure=measure)


def other_models(
    case: Case, choices: RunChoices, not_these: Sequence[str] = ()
) -> tuple[Offer, ...]:
    """Return the added models that can segment a case within the chosen limit; see `offers`."""
    return offers(case, choices.limit_s, registry.default_registry(), not_these, choices.settings())


def convert_in_isolation(entry: registry.ModelEntry, out: Path) -> Converted:
    """Convert an added model in a sandbox; see `convert_model`.

    Parameters
    ----------
    entry
        The added model.
    out
        The output folder.
    """
    return convert_model(entry.card, out, isolated=True, recipe=entry.recipe)


def _device_text(settings: EngineSettings) -> str:
    """Return the device of a model if it is known before the model is loaded."""
    if settings.device == "auto":
        return "on a GPU if torch finds one, otherwise on the CPU"
    if settings.device != "cpu":
        return f"on {settings.device}"
    threads = settings.threads
    return "on the CPU" if threads is None else f"on the CPU, threads: {threads}"
