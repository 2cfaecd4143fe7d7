"""Find other models on this computer that can segment a case within the limits.

These models are suggested in error messages and are never run automatically.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TypeVar

from napari_mamamia.core.case import Case
from napari_mamamia.core.errors import ModelError
from napari_mamamia.core.program.system import free_memory_bytes
from napari_mamamia.segmentation.model.engine_settings import EngineSettings
from napari_mamamia.segmentation.model.planner import (
    OutOfMemoryError,
    OverLimitError,
    duration_text,
)
from napari_mamamia.segmentation.model.recipe_input import channel_names, input_grid, phases_needed
from napari_mamamia.segmentation.network.card import with_network
from napari_mamamia.segmentation.run.engines import MODEL_KINDS
from napari_mamamia.segmentation.run.paces import known_pace
from napari_mamamia.segmentation.run.registry import ModelEntry, list_models, model_recipe
from napari_mamamia.services.predict.durations import estimate_seconds
from napari_mamamia.services.predict.predict import segmenters

T = TypeVar("T")

_KINETIC_PHASES: Final = 2
_KINETIC_S_PER_MEGAVOXEL: Final = 0.1
"""Duration of the kinetic threshold per million voxels in s, with a margin.

``benchmarks/kinetic_segmenter.py --time`` gives 1.9 s for 160 x 448 x 448 voxels on two cores,
which is 0.06 s per million voxels. The margin is for slower computers.
"""
_KINETIC_LEAST_S: Final = 0.5


@dataclass(frozen=True, slots=True)
class Offer:
    """A suggested model: its name, its title and its estimated duration in seconds."""

    name: str
    title: str
    seconds: float

    @property
    def text(self) -> str:
        """The suggestion as part of a sentence.

        Examples
        --------
        >>> Offer("small", "Small network", 120.0).text
        "'small' about 2 min 0 s"
        """
        return f"'{self.name}' about {duration_text(self.seconds)}"


def offers(
    case: Case,
    limit_s: float | None,
    registry: Path,
    not_this: Sequence[str] = (),
    settings: EngineSettings | None = None,
) -> tuple[Offer, ...]:
    """Return the models that can segment `case` within the limits, fastest first.

    The limits are the time limit and the free memory. Candidates are the model without weights, and
    models whose speed on this computer is known from an earlier run with the same device, backend,
    precision and threads. Nothing is loaded or run. The number of tiles is computed from the plans,
    the recipe or the bundle's configs for the whole volume with all mirrored copies, so the
    estimate is an upper bound. A model without known tiles, such as a bundle that uses the whole
    volume at once, is not suggested.

    Parameters
    ----------
    case
        The case; only its grid and number of phases are used.
    limit_s
        The time limit in s; None for no limit.
    registry
        The folder of added models.
    not_this
        The names of the models that failed.
    settings
        The settings of the run; each model uses its own folds and checkpoint.
    """
    asked = replace(settings or EngineSettings(), folds=(), checkpoint="")
    candidates = [*_weight_free(case), *_offer_trained(case, registry, asked)]
    return tuple(
        sorted(
            (
                offer
                for offer in candidates
                if offer.name not in not_this and (limit_s is None or offer.seconds <= limit_s)
            ),
            key=lambda offer: (offer.seconds, offer.name),
        )
    )


def offers_text(found: Sequence[Offer]) -> str:
    """Return a sentence with the suggestions to append to an error, or ""."""
    if not found:
        return ""
    listed = "; ".join(offer.text for offer in found)
    return f"other models on this computer that are suitable: {listed}"


def with_offers(
    predict: Callable[[], T],
    case: Case,
    limit_s: float | None,
    registry: Path,
    not_this: Sequence[str],
    settings: EngineSettings | None = None,
) -> T:
    """Call `predict`, and add suggestions to an error about time or memory.

    The suggestions are other models on this computer that are suitable for the case.
    """
    try:
        return predict()
    except (OverLimitError, OutOfMemoryError) as error:
        offer_text = offers_text(offers(case, limit_s, registry, not_this, settings))
        if not offer_text:
            raise
        raise type(error)(f"{error}; {offer_text}") from error


def _weight_free(case: Case) -> Iterator[Offer]:
    if len(case.phases) < _KINETIC_PHASES:
        return
    voxels = math.prod(case.grid.shape)
    usual_s = max(_KINETIC_LEAST_S, _KINETIC_S_PER_MEGAVOXEL * voxels / 1e6)
    for segmenter in segmenters():
        seconds = estimate_seconds(segmenter.name, voxels) or usual_s
        yield Offer(segmenter.name, segmenter.title, seconds)


def _offer_trained(case: Case, registry: Path, asked: EngineSettings) -> Iterator[Offer]:
    free = free_memory_bytes()
    try:
        entries = list_models(registry)
    except ModelError:  # Without a list of models there are no suggestions.
        return
    for entry in entries:
        if entry.problem:
            continue
        with suppress(ModelError):  # a model with a broken recipe or broken plans is not offered
            offer = _make_offer(entry, case, asked, free)
            if offer is not None:
                yield offer


def _make_offer(
    entry: ModelEntry, case: Case, asked: EngineSettings, free_bytes: int | None
) -> Offer | None:
    """Return the suggestion of a model; None if it exceeds the limits or has never been timed."""
    recipe = model_recipe(entry)
    settings = recipe.settings(asked)
    pace = known_pace(entry.card, settings)
    names = channel_names(recipe, len(entry.card.channels))
    if pace is None or len(case.phases) < phases_needed(names, recipe):
        return None
    grid, _ = input_grid(case.grid, recipe, case.breast_box)
    card = with_network(entry.card, recipe.network)
    spec = MODEL_KINDS.get(card.kind)
    tiles = None if spec is None else spec.tiles(card, settings, grid)
    if tiles is None:
        return None
    needed = tiles.bytes_needed + sum(weight.n_bytes for weight in entry.card.weights)
    if free_bytes is not None and needed > free_bytes:
        return None
    return Offer(entry.name, recipe.title or entry.name, pace.seconds(tiles))
