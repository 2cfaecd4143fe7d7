"""Quality of a registration: residual, mutual information, displacement and folding."""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.kinetics.registration.settings import Verdict

BETTER_BELOW: Final = 0.95
"""Largest ratio of the new to the old residual for a phase to count as better (our choice)."""

WORSE_ABOVE: Final = 1.02
"""Ratio of the new to the old residual above which a phase counts as worse (our choice)."""

_LEAST_INFORMATION: Final = 0.999  # fraction of the earlier mutual information; our choice
_HUBER: Final = 1.345  # standard deviations; Source: Huber 1981, 95 % efficient for Gaussian noise
_MAD: Final = 1.4826  # standard deviations of Gaussian noise per median absolute deviation
_ROUNDS: Final = 12
_BINS: Final = 64
_TAILS: Final = (0.5, 99.5)
_MOST_VALUES: Final = 250_000
_SLICES: Final = 16  # number of voxels per block; nine slopes of a whole volume are large

Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Fit:
    """How well a phase fits the reference; low `residual_percent` and high `nmi` are good."""

    residual_percent: float
    nmi: float


@dataclass(frozen=True, slots=True)
class Displacement:
    """Statistics of the displacement of the voxels in a region, in mm."""

    median_mm: float = 0.0
    p95_mm: float = 0.0
    max_mm: float = 0.0


def fit_of(
    phase: NDArray[np.float32],
    reference: NDArray[np.float32],
    quiet: Bools,
    body: Bools,
) -> Fit:
    """Return the fit of a phase to the reference: a residual and the mutual information.

    In regions of more than 250,000 voxels, only every n-th voxel is used.

    Parameters
    ----------
    phase, reference
        The two phases ``(z, y, x)``.
    quiet
        The voxels without enhancement, in which the residual is measured.
    body
        The voxels of the body, in which the mutual information is measured.
    """
    level = float(np.median(reference[body]))
    return Fit(
        residual_percent(_sample_values(phase, quiet), _sample_values(reference, quiet), level),
        normalised_mutual_information(_sample_values(phase, body), _sample_values(reference, body)),
    )


def _sample_values(volume: NDArray[np.float32], region: Bools) -> NDArray[np.float32]:
    values = volume[region]
    # An empty region would give a step of 0, which is invalid in a slice.
    return values[:: -(-values.size // _MOST_VALUES) or 1]


def residual_percent(
    phase: NDArray[np.float32], reference: NDArray[np.float32], level: float
) -> float:
    """Return the mean of |phase - a reference - b| as a percentage of `level`.

    The result is NaN if there are no values. The factors a and b are fitted by Huber's robust
    regression (threshold 1.345 robust standard deviations) in 12 rounds of weighted least squares.

    Parameters
    ----------
    phase, reference
        The values of the same voxels in the two phases, ``(n,)``.
    level
        The signal that counts as 100 %.

    Examples
    --------
    >>> reference = np.arange(8, dtype=np.float32)
    >>> round(residual_percent(2 * reference + 5, reference, 10.0), 6)
    0.0
    """
    if phase.size < 2 or not level > 0:
        return math.nan
    y, x = phase.astype(np.float64), reference.astype(np.float64)
    weight = np.ones_like(x)
    rest = y
    for _ in range(_ROUNDS):
        total = weight.sum()
        x_mean, y_mean = (weight @ x) / total, (weight @ y) / total
        spread = weight @ (x - x_mean) ** 2
        slope = 0.0 if spread == 0 else (weight @ ((x - x_mean) * (y - y_mean))) / spread
        rest = np.abs(y - y_mean - slope * (x - x_mean))
        limit = _HUBER * _MAD * float(np.median(rest))
        # At least half of the voxels match exactly, and their weights would be 0/0.
        if limit == 0:
            break
        weight = np.minimum(1.0, limit / np.maximum(rest, limit))
    return float(100 * rest.mean() / level)


def normalised_mutual_information(a: NDArray[np.float32], b: NDArray[np.float32]) -> float:
    """Return the mutual information (H(A) + H(B)) / H(A, B), from 1 (independent) to 2 (identical).

    The result is NaN if undefined. The entropies are computed from a histogram of 64 x 64 bins
    between the 0.5th and the 99.5th percentile.

    Parameters
    ----------
    a, b
        The values of the same voxels in the two images, ``(n,)``.

    Source: Studholme 1999 (Pattern Recognition 32:71), equation 7.
    """
    if a.size < 2 or a.min() == a.max() or b.min() == b.max():
        return math.nan
    edges = [np.percentile(values, _TAILS) for values in (a, b)]
    clipped = [np.clip(values, *ends) for values, ends in zip((a, b), edges, strict=True)]
    counts, _, _ = np.histogram2d(clipped[0], clipped[1], bins=_BINS)
    joint = counts / counts.sum()
    together = _compute_entropy(joint)
    apart = _compute_entropy(joint.sum(axis=0)) + _compute_entropy(joint.sum(axis=1))
    return apart / together if together > 0 else math.nan


def jacobian_determinant(
    displacement: NDArray[np.float64], spacing_mm: tuple[float, ...]
) -> NDArray[np.float64]:
    """Return the local volume change under x -> x + u(x): 1 is no change, 0 or less is folding.

    Parameters
    ----------
    displacement
        The displacement u in mm, ``(3, z, y, x)``, with at least two voxels along each axis.
    spacing_mm
        The voxel spacing along (z, y, x) in mm.

    Examples
    --------
    >>> u = np.zeros((3, 2, 3, 3)); u[2] = 0.1 * np.arange(3)
    >>> float(jacobian_determinant(u, (2.0, 1.0, 1.0))[0, 1, 1].round(6))
    1.1
    """
    determinants = np.empty(displacement.shape[1:])
    count = len(determinants)
    for start in range(0, count, _SLICES):
        stop = min(start + _SLICES, count)
        low, high = max(start - 1, 0), min(stop + 1, count)  # neighbours for the differences
        determinant = _compute_determinant(displacement[:, low:high], spacing_mm)
        determinants[start:stop] = determinant[start - low : stop - low]
    return determinants


def _compute_determinant(
    displacement: NDArray[np.float64], spacing_mm: tuple[float, ...]
) -> NDArray[np.float64]:
    slopes = [
        [np.gradient(one, mm, axis=axis) + (row == axis) for axis, mm in enumerate(spacing_mm)]
        for row, one in enumerate(displacement)
    ]
    a, b, c = slopes
    determinant: NDArray[np.float64] = a[0] * (b[1] * c[2] - b[2] * c[1])
    determinant -= a[1] * (b[0] * c[2] - b[2] * c[0])
    determinant += a[2] * (b[0] * c[1] - b[1] * c[0])
    return determinant


def displacement_in(displacement: NDArray[np.float64], region: Bools) -> Displacement:
    """Return statistics of the displacements in a region; all are 0 if the region is empty.

    Parameters
    ----------
    displacement
        The displacements ``(3, z, y, x)`` in mm.
    region
        A boolean array ``(z, y, x)``.
    """
    lengths = np.linalg.norm(displacement[:, region], axis=0)
    if not lengths.size:
        return Displacement()
    median, high = np.percentile(lengths, (50, 95))
    return Displacement(float(median), float(high), float(lengths.max()))


def verdict_of(before: Fit, after: Fit) -> Verdict:
    """Return whether a registration makes a phase better, worse, or not relevantly different.

    A phase is better if the residual falls by at least 5 % without loss of mutual information. It
    is worse if the residual rises by more than 2 %, or the mutual information falls by more than
    0.1 %.

    Parameters
    ----------
    before, after
        The fits of a phase before and after registration.
    """
    # `>=` would count undefined information as lost.
    is_lossless = not after.nmi < _LEAST_INFORMATION * before.nmi
    if is_lossless and after.residual_percent <= BETTER_BELOW * before.residual_percent:
        return Verdict.BETTER
    if is_lossless and after.residual_percent <= WORSE_ABOVE * before.residual_percent:
        return Verdict.UNCHANGED
    return Verdict.WORSE


def _compute_entropy(share: NDArray[np.float64]) -> float:
    filled = share[share > 0]
    return float(-(filled * np.log(filled)).sum())
