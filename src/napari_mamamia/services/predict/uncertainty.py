"""Map a model's uncertainty or the disagreement between models, and find uncertain regions."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from napari_mamamia.core.errors import ModelError
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.progress import report_progress
from napari_mamamia.segmentation.model.segmenter import Prediction

MOST_PLACES: Final = 20
_DOUBTFUL_BITS: Final = 0.5
"""Smallest entropy of an uncertain voxel in bits: probability 0.11 to 0.89. Our choice."""
_DOUBTFUL_VARIANCE: Final = 0.04
"""Smallest variance of an uncertain voxel: a standard deviation of 0.2. Our choice."""

_LEAST: Final = 1e-7
_SLAB: Final = 8
_ALL_NEIGHBOURS: Final = np.ones((3, 3, 3), dtype=np.bool_)


class UncertaintyKind(StrEnum):
    """The measure of uncertainty.

    ``entropy`` is the binary entropy of the mean probability, in bits. For models fused by their
    masks, it is the entropy of the fraction of masks that contain a voxel, which measures the
    disagreement of the models. ``variance`` is the variance of several models' probabilities.
    """

    ENTROPY = "entropy"
    VARIANCE = "variance"


@dataclass(frozen=True, slots=True)
class UncertainRegion:
    """A connected uncertain region: its most uncertain voxel, volume and mean uncertainty.

    Regions are ordered by `weight`, which is the sum of uncertainty times voxel volume, in bit mm3
    (entropy) or mm3 (variance).
    """

    voxel: tuple[int, int, int]
    volume_mm3: float
    mean: float
    weight: float


@dataclass(frozen=True, slots=True, eq=False)
class Uncertainty:
    """The uncertainty of each voxel, and the most uncertain regions by weight, largest first.

    `amount` is a float16 array ``(z, y, x)`` with the entropy, from 0 to 1 bit, or the variance,
    from 0 to 0.25. `n_places` is the total number of regions.
    """

    amount: NDArray[np.float16]
    places: tuple[UncertainRegion, ...]
    n_places: int
    kind: UncertaintyKind = UncertaintyKind.ENTROPY

    @property
    def unit(self) -> str:
        """Unit of the uncertainty: "bit", or "" for a variance."""
        return "bit" if self.kind is UncertaintyKind.ENTROPY else ""


def entropy_bits(probability: NDArray[np.floating]) -> NDArray[np.float32]:
    """Return the binary entropy of probabilities in bits, which is 0 if certain and 1 at one half.

    The entropy is -p log2 p - (1 - p) log2 (1 - p). Source: Shannon, A Mathematical Theory of
    Communication (1948), section 6.

    Examples
    --------
    >>> entropy_bits(np.array([0.0, 0.5, 1.0])).round(3).tolist()
    [0.0, 1.0, 0.0]
    """
    # At 0 the logarithm is not finite, and its product with 0 is NaN.
    p = np.clip(probability.astype(np.float32), _LEAST, 1 - _LEAST)
    q = 1 - p
    entropy: NDArray[np.float32] = -(p * np.log2(p) + q * np.log2(q))
    return entropy


def uncertainty_kinds(prediction: Prediction) -> tuple[UncertaintyKind, ...]:
    """Return the uncertainty measures of a prediction, or () without a probability map."""
    maps = (
        (UncertaintyKind.ENTROPY, prediction.probability),
        (UncertaintyKind.VARIANCE, prediction.variance),
    )
    return tuple(kind for kind, values in maps if values is not None)


def uncertainty_of(
    prediction: Prediction, kind: UncertaintyKind = UncertaintyKind.ENTROPY
) -> Uncertainty:
    """Return a prediction's uncertainty map and its uncertain regions.

    Raises
    ------
    ModelError
        If the prediction lacks the data for `kind`.
    """
    grid = prediction.mask.grid
    if kind is UncertaintyKind.ENTROPY and prediction.probability is not None:
        return find_uncertainty(prediction.probability, grid)
    if kind is UncertaintyKind.VARIANCE and prediction.variance is not None:
        return _map_uncertainty(prediction.variance, grid, kind, _as_it_is, _DOUBTFUL_VARIANCE)
    kinds = ", ".join(uncertainty_kinds(prediction)) or "nothing"
    raise ModelError(
        f"expected the prediction of {prediction.case_id} to have {kind.value}, but it has "
        f"{kinds}; predict the case again with the uncertainty map, and with several trained "
        "models for a variance"
    )


def find_uncertainty(probability: NDArray[np.float16], grid: Grid) -> Uncertainty:
    """Return the entropy map and its 26-connected regions of at least 0.5 bit.

    Parameters
    ----------
    probability
        The mean probability over folds, mirrored copies and models, ``(z, y, x)``, from 0 to 1.
    grid
        The grid of the map.
    """
    return _map_uncertainty(
        probability, grid, UncertaintyKind.ENTROPY, entropy_bits, _DOUBTFUL_BITS
    )


def _map_uncertainty(
    values: NDArray[np.float16],
    grid: Grid,
    kind: UncertaintyKind,
    amount_of: Callable[[NDArray[Any]], NDArray[Any]],
    least: float,
) -> Uncertainty:
    """Compute the map slab by slab; return it with its 26-connected regions at or above `least`."""
    message, planes = "Searching for uncertain regions", len(values)
    amount = np.empty(values.shape, dtype=np.float16)
    for first in range(0, planes, _SLAB):
        report_progress(first, planes + 1, message)
        amount[first : first + _SLAB] = amount_of(values[first : first + _SLAB])
    labels, count = ndimage.label(amount >= least, structure=_ALL_NEIGHBOURS)
    report_progress(planes, planes + 1, message)
    places = [
        _measure_place(labels[where] == number, amount[where], where, grid)
        for number, where in enumerate(ndimage.find_objects(labels), start=1)
    ]
    places.sort(key=lambda place: -place.weight)
    return Uncertainty(amount, tuple(places[:MOST_PLACES]), int(count), kind)


def _as_it_is(values: NDArray[Any]) -> NDArray[Any]:
    return values


def _measure_place(
    inside: NDArray[np.bool_],
    amount: NDArray[np.float16],
    where: tuple[slice, ...],
    grid: Grid,
) -> UncertainRegion:
    place_amount = np.where(inside, amount, 0).astype(np.float64)
    z, y, x = np.unravel_index(int(np.argmax(place_amount)), place_amount.shape)
    voxels = int(np.count_nonzero(inside))
    total, size = float(place_amount.sum()), grid.voxel_volume_mm3
    voxel = (int(z) + where[0].start, int(y) + where[1].start, int(x) + where[2].start)
    return UncertainRegion(voxel, voxels * size, total / voxels, total * size)
