"""What the image says: how tissues look, and how much more a voxel looks like one than another."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["MOST_EVIDENCE", "Tissue", "contrast", "log_odds", "tissue_of"]

MOST_EVIDENCE: Final = 8.0
"""A voxel's log odds are held within -8 to 8, so that no single voxel outweighs its neighbourhood.
Source: docs/methods/growth.md."""

_MAD_TO_SIGMA: Final = 1.4826  # of a normal distribution
_OUTLIER: Final = 3.0  # scales: farther values count as that far in correlations; our choice
_PRIOR_VOXELS: Final = 10.0  # uncorrelated ones, that steady the correlations of few; our choice
_OWN: Final = 0.95  # of a correlation is kept, so that no combination is free of noise; our choice

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class Tissue:
    """A normal distribution of the features: `root` is upper triangular, its square the precision.

    `middle` has one value for each feature, in the signal's unit; ``log_density(x)`` is
    ``-|root (x - middle)|^2 / 2 + log_peak`` up to a constant.
    """

    middle: NDArray[np.float64]
    root: NDArray[np.float64]
    log_peak: float


def tissue_of(values: NDArray[Any], noise: tuple[float, ...]) -> Tissue:
    """Return the distribution of a sample of voxels, robust against a few that do not belong.

    Each feature's middle is the median and its scale 1.4826 times the median absolute deviation, at
    least the noise. Features share noise ("post - pre" holds that of "post"), so that their
    evidence must not be added as if they were independent: correlations are those of the values in
    scales from the middle, held within 3.

    Parameters
    ----------
    values
        ``(feature, voxel)``, finite, at least one voxel.
    noise
        Of each feature, above 0.

    Source: docs/methods/growth.md (median and MAD); the correlations are ours.
    """
    middle = np.median(values, axis=1).astype(np.float64)
    away = values - middle[:, np.newaxis]
    scale = np.maximum(_MAD_TO_SIGMA * np.median(np.abs(away), axis=1), noise)
    away = np.clip(away / scale[:, np.newaxis], -_OUTLIER, _OUTLIER)
    together = away @ away.T + _PRIOR_VOXELS * np.eye(len(scale))
    size = np.sqrt(np.diag(together))
    correlation = _OWN * together / np.outer(size, size) + (1 - _OWN) * np.eye(len(scale))
    precision = np.linalg.inv(correlation * np.outer(scale, scale))
    root = np.linalg.cholesky(precision).T
    return Tissue(middle, root, float(np.log(np.diag(root)).sum()))


def log_odds(features: Floats, tissue: Tissue, other: Tissue) -> Floats:
    """Return ``log p(tissue) - log p(other)`` of each voxel, float32 within -8 to 8.

    `features` are ``(feature, ...)``. A voxel with a value that is not finite says nothing: 0.
    """
    odds = _squared_distance(features, other)
    odds -= _squared_distance(features, tissue)
    odds *= np.float32(0.5)
    odds += np.float32(tissue.log_peak - other.log_peak)
    np.clip(odds, -MOST_EVIDENCE, MOST_EVIDENCE, out=odds)
    return np.nan_to_num(odds, copy=False, nan=0.0)


def contrast(tissue: Tissue, other: Tissue, noise: tuple[float, ...]) -> float:
    """Return the greatest difference of the two middles over the features, in units of noise."""
    return float(np.max(np.abs(tissue.middle - other.middle) / noise))


def _squared_distance(features: Floats, tissue: Tissue) -> Floats:
    """Return the squared Mahalanobis distance of each voxel from the tissue's middle."""
    shape = features.shape[1:]
    total = np.zeros(shape, dtype=np.float32)
    row, part = (np.empty(shape, dtype=np.float32) for _ in range(2))
    with np.errstate(over="ignore", invalid="ignore"):
        for i, weights in enumerate(tissue.root):
            row.fill(-float(weights @ tissue.middle))
            for j in range(i, len(weights)):
                np.multiply(features[j], np.float32(weights[j]), out=part)
                row += part
            row *= row
            total += row
    return total
