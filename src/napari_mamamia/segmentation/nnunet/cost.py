"""Compute the cost of an nnU-Net run from the plans, without loading a network."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from napari_mamamia.core.grid import Grid
from napari_mamamia.segmentation.model.card import ModelCard
from napari_mamamia.segmentation.model.engine_settings import EngineSettings, Ran, TilePlan
from napari_mamamia.segmentation.model.kinds import ModelKind
from napari_mamamia.segmentation.model.nnunet_files import open_files
from napari_mamamia.segmentation.model.nnunet_geometry import model_shape, tile_starts
from napari_mamamia.segmentation.model.nnunet_plans import Plans, read_plans
from napari_mamamia.segmentation.nnunet.card import nnunet_card_at


def after_stage(own: TilePlan, first: TilePlan, card: ModelCard, grid: Grid) -> TilePlan:
    """Combine the cost plan of a cascade's second stage with that of its first stage.

    The stages run one after the other, so the run needs the larger memory of the two. The second
    stage also holds the first stage's labels (one byte for each voxel of the case). Both networks
    stay loaded: the caller adds the weights of the second stage, and this function adds those of
    the first (`card`).

    Parameters
    ----------
    own
        Plan of the second stage.
    first
        Plan of the first stage.
    card
        The card of the first stage.
    grid
        The grid of the case.
    """
    volumes = max(own.bytes_needed + math.prod(grid.shape), first.bytes_needed)
    weights = sum(weight.n_bytes for weight in card.weights)
    return replace(own, bytes_needed=volumes + weights, first=first)


def after_first(ran: Ran, first: Ran, seconds: float) -> Ran:
    """Combine the run record of a cascade's second stage with that of its first stage.

    Parameters
    ----------
    ran
        Record of the second stage.
    first
        Record of the first stage.
    seconds
        Duration of the first stage in seconds.
    """
    cut = [f"first stage: {first.cut_short}"] if first.cut_short else []
    cut += [ran.cut_short] if ran.cut_short else []
    laps = (("first stage", round(seconds, 3)), *ran.seconds)
    return replace(ran, cut_short="; ".join(cut), seconds=laps)


def tiles_from_plans(card: ModelCard, settings: EngineSettings, grid: Grid) -> TilePlan | None:
    """Return an upper limit for the tiles of a case on `grid`, or None for other kinds of model.

    The mirrored axes are stored in the checkpoint, which is not opened. All axes are counted, so
    the engine's own plan never has more copies.

    Parameters
    ----------
    card
        The card of the model.
    settings
        Settings of the run.
    grid
        The grid of the case.

    Raises
    ------
    ModelError
        If the plans cannot be read.
    """
    if card.kind is not ModelKind.NNUNET or card.missing:
        return None
    plans = _load_plans(card)
    patch = plans.configuration.patch
    shape = model_shape(grid, plans)
    tiles, padded = tiles_at_most(shape, patch, settings.step)
    mirrors = settings.mirroring and "NoMirroring" not in card.trainer
    tile_plan = TilePlan(
        tiles=tiles,
        skipped=0,
        passes=copies_at_most(len(patch), settings.most_copies) if mirrors else 1,
        folds=len(settings.folds or card.folds),
        model_shape=shape,
        bytes_needed=stage_bytes(plans, padded, grid),
        tile_voxels=math.prod(patch),
    )
    if not plans.configuration.previous_stage:
        return tile_plan
    before = first_stage_of(card, plans)
    folds = tuple(fold for fold in settings.folds if fold in before.folds)
    first = tiles_from_plans(before, replace(settings, folds=folds), grid)
    return first and after_stage(tile_plan, first, before, grid)


def stage_bytes(plans: Plans, padded: Sequence[int], grid: Grid) -> int:
    """Return the memory of one stage in bytes: data, half-precision sums and resampling.

    Parameters
    ----------
    plans
        The plans of the model.
    padded
        Size of the padded volume in voxels.
    grid
        The grid of the case.
    """
    voxels, largest = math.prod(padded), max(math.prod(padded), math.prod(grid.shape))
    return voxels * (4 * plans.inputs + 2 * (plans.labels.heads + 1)) + 12 * largest


def tiles_at_most(
    shape: Sequence[int], patch: Sequence[int], step: float
) -> tuple[int, tuple[int, ...]]:
    """Return the number of tiles of a whole volume, and its size padded to at least one patch.

    A two-dimensional patch is applied to each slice along the first axis.

    Parameters
    ----------
    shape
        Size of the volume in voxels.
    patch
        Size of a tile in voxels.
    step
        Distance between tiles as a fraction of the patch size.

    Examples
    --------
    >>> tiles_at_most((3, 110, 10), (64, 16), 0.5)
    (9, (3, 110, 16))
    """
    whole = (1, *patch) if len(patch) == 2 else tuple(patch)
    padded = tuple(max(n, p) for n, p in zip(shape, whole, strict=True))
    along = padded[-len(patch) :]
    tiles = math.prod(len(starts) for starts in tile_starts(along, patch, step))
    return (tiles * padded[0] if len(patch) == 2 else tiles), padded


def copies_at_most(axes: int, most: int | None) -> int:
    """Return the number of mirrored copies along `axes`, including the original tile.

    Parameters
    ----------
    axes
        Number of mirrored axes.
    most
        Maximum number of copies, including the original tile; None for all.

    Examples
    --------
    >>> copies_at_most(3, None), copies_at_most(3, 3), copies_at_most(1, 8)
    (8, 2, 2)
    """
    # Copies come in powers of two: the largest power that is not above `most`.
    n_axes = axes if most is None else min(most.bit_length() - 1, axes)
    return int(2**n_axes)


def first_stage_of(card: ModelCard, plans: Plans, checksums: bool = False) -> ModelCard:
    """Return the card of the first stage, whose labels the second stage of a cascade refines.

    That model's folder is next to the second stage's folder and has the same name, except for its
    own configuration.

    Parameters
    ----------
    card
        The card of the second stage.
    plans
        The plans of the second stage.
    checksums
        Whether to compute the SHA-256 of the weights.

    Raises
    ------
    ModelError
        If the first stage's model does not exist.
    """
    root = PurePosixPath(card.inner) if card.inner else None
    folder_name = root.name if root else card.path.name
    name = "__".join([*folder_name.split("__")[:-1], plans.configuration.previous_stage])
    if root is None:
        return nnunet_card_at(open_files(card.path.parent / name), "", checksums)
    return nnunet_card_at(open_files(card.path), str(root.parent / name), checksums)


def _load_plans(card: ModelCard) -> Plans:
    files = open_files(card.path)
    root = f"{card.inner}/" if card.inner else ""
    texts = [files.text(f"{root}{name}") for name in ("plans.json", "dataset.json")]
    return read_plans(texts[0], texts[1], card.configuration, f"{card.path}/{root}")
