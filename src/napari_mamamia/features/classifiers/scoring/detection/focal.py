"""raFocal: a focal loss of boxes that is weighted by risk, in its two published forms."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit

from napari_mamamia.core.errors import ArgumentError
from napari_mamamia.features.classifiers.scoring.detection.boxes import (
    LARGEST_RISK,
    Numbers,
    risk_of_size,
)

_ALPHA: Final = 0.75
_GAMMA: Final = 1.0


class FocalReading(StrEnum):
    """The form of raFocal: the equations in the paper, or the computation in the published code."""

    PAPER = "paper"
    """Eq. 4 and 5 of Bounias et al. 2025, with one alpha for all boxes; the total is the sum."""
    REFERENCE_CODE = "reference-code"
    """The published code, which differs from the paper in several ways.

    Background boxes have the factor 1 - alpha, risks are limited to 0.641 (not 1), and weights have
    half precision. The sum is divided by the number of boxes assigned to a lesion, or by 1 if there
    are none.
    """


@dataclass(frozen=True, slots=True, eq=False)
class FocalLoss:
    """The loss of boxes: unweighted `terms` (n,), `weights` (n,), and the total `loss`.

    The total is the sum of the products of terms and weights. For `reference-code` it is divided by
    the number of boxes that are assigned to a lesion.
    """

    terms: Numbers
    weights: Numbers
    loss: float

    @property
    def weighted(self) -> Numbers:
        """Return the loss of each box."""
        products: Numbers = self.terms * self.weights
        return products


def risk_adjusted_focal(
    logits: Numbers,
    is_lesion: NDArray[np.bool_],
    sizes_mm: Numbers,
    reading: FocalReading | Literal["paper", "reference-code"] = FocalReading.PAPER,
    *,
    alpha: float = _ALPHA,
    gamma: float = _GAMMA,
) -> FocalLoss:
    """Return the focal loss of boxes; lesions are weighted by 1 + risk, background by 2 - risk.

    Parameters
    ----------
    logits
        The logit of "lesion" for each box.
    is_lesion
        Whether each box is assigned to a lesion; other boxes are background.
    sizes_mm
        Axial box side of the assigned lesion, or of the box itself if it is background, in mm.
    reading
        "paper" or "reference-code", see `FocalReading`.
    alpha, gamma
        Parameters of the focal loss.

    Returns
    -------
    FocalLoss
        The terms and weights of the boxes, and the total loss.

    Raises
    ------
    ArgumentError
        If the arrays differ in length, or contain a value that is not finite.

    Examples
    --------
    >>> lesion = np.array([True, False])
    >>> risk_adjusted_focal(np.array([0.5, 1.2]), lesion, np.array([12.0, 120.0])).weights.round(6)
    array([1.21336, 1.04625])
    """
    logits, sizes = np.asarray(logits, np.float64), np.asarray(sizes_mm, np.float64)
    is_lesion = np.asarray(is_lesion, np.bool_)
    if not logits.shape == sizes.shape == is_lesion.shape or logits.ndim != 1:
        raise ArgumentError(
            "expected a logit, a label and a size for each box, but found arrays of shapes "
            f"{logits.shape}, {is_lesion.shape} and {sizes.shape}: pass three arrays of equal "
            "length"
        )
    if not (np.isfinite(logits).all() and np.isfinite(sizes).all()):
        raise ArgumentError(
            "expected all logits and sizes to be finite, but some are not: leave out these boxes"
        )
    signed = np.where(is_lesion, logits, -logits)
    of_code = FocalReading(reading) is FocalReading.REFERENCE_CODE
    share = np.where(is_lesion, alpha, 1 - alpha if of_code else alpha)
    terms = share * np.exp(gamma * log_expit(-signed)) * -log_expit(signed)
    risks = risk_of_size(sizes)
    if of_code:
        risks = np.minimum(risks, LARGEST_RISK)
    weights = np.where(is_lesion, 1 + risks, 2 - risks)
    if of_code:
        weights = weights.astype(np.float16).astype(np.float64)
    total = float((terms * weights).sum())
    return FocalLoss(terms, weights, total / max(1, int(is_lesion.sum())) if of_code else total)
