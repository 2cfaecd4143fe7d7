"""The first stage of a cascade, added to the plan and the record of the second stage."""

import math
from dataclasses import replace

from napari_mamamia.core.grid import Grid
from napari_mamamia.segmentation.model.card import ModelCard
from napari_mamamia.segmentation.model.engine_settings import Ran, TilePlan


def after_stage(own: TilePlan, first: TilePlan, card: ModelCard, grid: Grid) -> TilePlan:
    """Return the plan of a second stage combined with the plan of the first stage.

    The stages run one after the other: the larger volumes count, and the second stage also holds
    the labels of the first (a byte for each voxel of the case). Both networks stay loaded; the
    caller counts the weights of the second, those of the first (`card`) are counted here.

    Parameters
    ----------
    own
        Plan of the second stage.
    first
        Plan of the first stage.
    card
        The card of the model.
    grid
        The grid of the case.
    """
    volumes = max(own.bytes_needed + math.prod(grid.shape), first.bytes_needed)
    weights = sum(weight.n_bytes for weight in card.weights)
    return replace(own, bytes_needed=volumes + weights, first=first)


def after_first(ran: Ran, first: Ran, seconds: float) -> Ran:
    """Return the record of a cascade's second stage combined with that of the first stage.

    Parameters
    ----------
    ran
        Record of the second stage.
    first
        Record of the first stage.
    seconds
        Seconds of the first stage.
    """
    cut = [f"first stage: {first.cut_short}"] if first.cut_short else []
    cut += [ran.cut_short] if ran.cut_short else []
    laps = (("first stage", round(seconds, 3)), *ran.seconds)
    return replace(ran, cut_short="; ".join(cut), seconds=laps)
