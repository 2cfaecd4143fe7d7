"""The contrast curve of a region: mean signal of each phase, and its enhancement."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def region_curve(signal: NDArray[Any], mask: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the mean signal of every phase over the voxels of `mask`.

    Parameters
    ----------
    signal
        ``(phase, z, y, x)``, any real type.
    mask
        bool ``(z, y, x)``.

    Returns
    -------
    numpy.ndarray
        float64 ``(phase,)``, in the signal's unit. Voxels that are not finite in every phase are
        excluded, so that all phases use the same voxels; NaN if none remains.

    Raises
    ------
    ValueError
        If mask and phases differ in shape.
    """
    if mask.shape != signal.shape[1:]:
        raise ValueError(
            f"expected a mask of the phases' shape {signal.shape[1:]}, but got {mask.shape}"
        )
    values = signal[:, mask].astype(np.float64)
    values = values[:, np.isfinite(values).all(axis=0)]
    if values.shape[1] == 0:
        return np.full(signal.shape[0], np.nan)
    mean: NDArray[np.float64] = values.mean(axis=1)
    return mean


def curve_enhancement(curve: NDArray[np.float64], eps: float = 0.0) -> NDArray[np.float64]:
    """Return the PE of a curve against its first point, in percent.

    This is the PE of the mean signals. It gives bright voxels more weight than the mean of the PE
    of single voxels, and a few dark noisy voxels cannot inflate it. All values are NaN if the first
    point is not above `eps`.

    Parameters
    ----------
    curve
        Mean signal of each phase, ``(phase,)``.
    eps
        Least signal of the first phase, in the signal's unit.

    Examples
    --------
    >>> curve_enhancement(np.array([200.0, 500.0, 450.0]))
    array([  0., 150., 125.])
    """
    if not curve[0] > eps:
        return np.full(curve.shape, np.nan)
    enhancement: NDArray[np.float64] = 100.0 * (curve - curve[0]) / curve[0]
    return enhancement
