"""Other models of this computer that would fit a case; they are offered, never taken."""

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
from napari_mamamia.services.predict.predict import segmenters

T = TypeVar("T")

_KINETIC_PHASES: Final = 2
_KINETIC_S_PER_MEGAVOXEL: Final = 0.1
"""Seconds of the kinetic threshold for a million voxels. Source: benchmarks/kinetic_segmenter.py
--time, 160 x 448 x 448: 1.9 s on two cores, 0.06 s; slower computers are allowed for."""
_KINETIC_LEAST_S: Final = 0.5


@dataclass(frozen=True, slots=True)
class Offer:
    """A model that would do a case: its name for ``--model``, its title, and about how long."""

    name: str
    title: str
    seconds: float

    @property
    def text(self) -> str:
        """One clause for people.

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
    """Return the models that would do `case` within a limit and the free memory, fastest first.

    Only models whose speed on this computer is known from an earlier run with the same device,
    backend, precision and threads, and the weight-free one. Nothing is loaded or computed: tiles
    come from the plans, the recipe or the bundle's configs, over the whole volume and with all
    mirrored copies, so that a run takes as long or less. A model whose tiles they do not tell, such
    as a bundle that looks at the whole volume at once, is not offered.

    Parameters
    ----------
    case
        Its grid and its number of phases count.
    limit_s
        Seconds for the case; None for any time.
    registry
        Folder of added models.
    not_this
        Names of the models that did not do.
    settings
        How the models would be run; folds and checkpoint are each model's own.
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
    """Return the sentence that follows an error, "" without offers."""
    if not found:
        return ""
    listed = "; ".join(offer.text for offer in found)
    return f"other models here that would fit: {listed} (choose one)"


def with_offers(
    predict: Callable[[], T],
    case: Case,
    limit_s: float | None,
    registry: Path,
    not_this: Sequence[str],
    settings: EngineSettings | None = None,
) -> T:
    """Return what `predict` does; where time or memory did not suffice, its error has offers."""
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
    seconds = max(_KINETIC_LEAST_S, _KINETIC_S_PER_MEGAVOXEL * math.prod(case.grid.shape) / 1e6)
    for segmenter in segmenters():
        yield Offer(segmenter.name, segmenter.title, seconds)


def _offer_trained(case: Case, registry: Path, asked: EngineSettings) -> Iterator[Offer]:
    free = free_memory_bytes()
    try:
        entries = list_models(registry)
    except ModelError:  # what cannot be listed is no offer either
        return
    for entry in entries:
        if entry.problem:
            continue
        with suppress(ModelError):  # a model whose recipe or plans are broken is no offer
            offer = _make_offer(entry, case, asked, free)
            if offer is not None:
                yield offer


def _make_offer(
    entry: ModelEntry, case: Case, asked: EngineSettings, free_bytes: int | None
) -> Offer | None:
    """Return what a model would take, None where it does not fit the case or was never timed."""
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
