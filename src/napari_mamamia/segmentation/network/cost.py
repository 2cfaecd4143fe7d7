"""Grid and cost of a single-file network, computed without torch and without loading it."""

import math
from typing import Final

from napari_mamamia.core.grid import DisplayFrame, Grid
from napari_mamamia.segmentation.model.card import ModelCard
from napari_mamamia.segmentation.model.engine_settings import EngineSettings, TilePlan
from napari_mamamia.segmentation.model.nnunet_geometry import Frame
from napari_mamamia.segmentation.network.choices import require_network_choices
from napari_mamamia.segmentation.nnunet.cost import copies_at_most, tiles_at_most

_OPPOSITE: Final = dict(zip("LRPAIS", "RLAPSI", strict=True))


def network_frame(grid: Grid, orientation: str) -> Frame:
    """Return the transform from volumes on `grid` to the network's axes.

    Parameters
    ----------
    grid
        The grid of the case.
    orientation
        Directions of the network's axes, such as ``"RAS"``; "" keeps the stored order.
    """
    letters = grid.orientation[::-1]  # along (z, y, x)
    axes = orientation or letters
    order, flips = [], []
    for towards in axes:
        axis = next(
            k for k, letter in enumerate(letters) if letter in (towards, _OPPOSITE[towards])
        )
        order.append(axis)
        flips.append(letters[axis] != towards)
    display = DisplayFrame("axial", (order[0], order[1], order[2]), (flips[0], flips[1], flips[2]))
    a, b, c = (int(n) for n in display.per_axis(grid.shape))
    return Frame(display, (0, 1, 2), display.per_axis(grid.spacing_mm), (a, b, c))


def network_bytes(numbers: int, padded: tuple[int, ...], grid: Grid) -> int:
    """Return the memory of a run in bytes, including the labels of the case.

    Parameters
    ----------
    numbers
        Number of float32 values for each voxel.
    padded
        Size of the padded volume in voxels.
    grid
        The grid of the case.
    """
    return 4 * numbers * math.prod(padded) + 12 * math.prod(grid.shape)


def tiles_of_network(card: ModelCard, settings: EngineSettings, grid: Grid) -> TilePlan | None:
    """Return the tiles of a whole case on `grid`, or None if the network has no recipe.

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
        If the network does not support the `settings`.
    """
    spec = card.network
    if spec is None or card.missing:
        return None
    require_network_choices(card, settings)
    shape = network_frame(grid, spec.orientation).shape
    tiles, padded = tiles_at_most(shape, spec.patch, settings.step)
    axes = len(spec.mirror_axes) if settings.mirroring else 0
    return TilePlan(
        tiles=tiles,
        skipped=0,
        passes=copies_at_most(axes, settings.most_copies),
        folds=1,
        model_shape=shape,
        bytes_needed=network_bytes(len(spec.channels) + spec.heads + 1, padded, grid),
    )
