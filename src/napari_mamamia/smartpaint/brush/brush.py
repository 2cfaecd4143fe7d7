"""One stamp of a brush: the dose that it deposits, and the membership that results.

Membership is float32 from 0 to 1, and a voxel belongs to the label from 0.5 on. A stamp deposits a
dose D in every voxel of its sphere, which depends on distance and on similarity of the image. It
moves membership towards 1 (add) or 0 (erase) by ``1 - exp(-D)``. Doses add up: ten tenths are one
full dose.
"""

from math import sqrt
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from napari_mamamia.core.box import Box
from napari_mamamia.core.edits import Action, Brush, Extent, Tool
from napari_mamamia.core.errors import CaseError
from napari_mamamia.smartpaint.brush.features import LATE_POST, POST_PRE, FeatureImages
from napari_mamamia.smartpaint.brush.path import Stamp
from napari_mamamia.smartpaint.brush.reach import (
    SMOOTHING_MM,
    Spacing,
    fall_off,
)
from napari_mamamia.smartpaint.brush.sample import Sample, sample_at

_WHOLE_DOSE: Final = np.float32(
    104.0
)  # exp(-104) is 0 in float32: the previous membership has no weight
_STEEPNESS: Final = 1.65
"""Steepness of the similarity ``exp(-0.5 (1.65 z / tolerance)^2)``.

Source: docs/methods/brush.md. 1.5 was derived for clicks on an empty mask; strokes, and masks that
start from 0.05, keep the leak limits with 1.65 (benchmarks/brush.py).
"""

_AGREEMENT: Final = {1: 1.0, 2: 0.86, 3: 0.8}
"""Factor on the tolerance, by the number of features compared.

The mean square of several features scatters less than the square of one. With these factors a press
includes the same share (0.97) of its own tissue for any number of features. Source: our measurement
on even tissue with independent noise in each phase.
"""

_SHARED: Final = {POST_PRE: -sqrt(2), LATE_POST: sqrt(2)}
"""Coefficient that removes from a difference the noise that it shares with "post".

In units of noise, ``post - sqrt(2) (post - pre)`` is what "pre" adds to "post", and ``post +
sqrt(2) (late - post)`` is what "late" adds. Both are independent of "post" where the phases have
equal noise. Source: covariance of differences.
"""

Floats = NDArray[np.float32]


def paint(
    membership: Floats,
    box: Box,
    stamp: Stamp,
    brush: Brush,
    images: FeatureImages | None,
    spacing_mm: Spacing,
) -> None:
    """Apply one stamp to `membership`, in place.

    A stamp of a stroke deposits only the part of its `dose` that exceeds the doses of the stroke's
    earlier stamps: pass each stamp of `StrokePath` to this function once.

    Parameters
    ----------
    membership
        float32 of the box's shape, 0 to 1; it may be a view.
    box
        Usually `stamp_box`. Any other box gives the same values in the voxels that both boxes hold,
        but a smoothing brush needs the whole of `stamp_box`.
    stamp, brush, spacing_mm
        The stamp, the brush that makes it, and the spacing of the array (z, y, x).
    images
        The features to compare; the sphere and the smoothing brush need none.

    Raises
    ------
    CaseError
        If a SmartPaint brush comes without images.
    """
    if box.is_empty:
        return
    if brush.tool is Tool.SMOOTH:
        smooth(membership, stamp, brush, spacing_mm, box)
        return
    amount = dose(stamp, brush, images, spacing_mm, box)
    if stamp.spent is not None and images is not None:
        amount = stamp.spent.beyond(amount, box, images.case.grid.shape)
    deposit(membership, amount, brush.action)


def dose(
    stamp: Stamp, brush: Brush, images: FeatureImages | None, spacing_mm: Spacing, box: Box
) -> Floats:
    """Return the dose of a stamp in each voxel of `box`: ``D = E fall rho``, 0 or more.

    ``rho = exp(-0.5 (1.65 z / (a tolerance))^2)``. Here z is the root mean square over the features
    of their distance from the sample in units of its scale, after the noise shared with "post" is
    removed (``z_post``, ``z_post - sqrt(2) z_post-pre``, ``z_post + sqrt(2) z_late-post``), and a
    is 1, 0.86, 0.8 for one, two, three features. ``rho`` is 0 where a feature is NaN. ``fall`` is
    `fall_off`. A plain sphere ignores the image: its dose is so large that the previous membership
    has no weight inside its circle.

    Source: docs/methods/brush.md. With z as the mean of the unchanged features, their common noise
    would count up to three times and more would leak (benchmarks/brush.py).

    Raises
    ------
    CaseError
        If a SmartPaint brush comes without images.
    """
    fall = fall_off(stamp.centre, brush, spacing_mm, box)
    if brush.tool is Tool.SPHERE:
        fall *= _WHOLE_DOSE
        return fall
    if images is None:
        raise CaseError(
            "a SmartPaint brush needs the images of the case, but this mask was opened "
            "without them: open the case, or choose the plain sphere"
        )
    sample = stamp.sample or sample_at(stamp.centre, brush, images, spacing_mm)
    if not sample.middle:
        fall.fill(0.0)
        return fall
    fall *= _measure_similarity(images.choose(brush.features), sample, brush.tolerance, box)
    fall *= np.float32(stamp.amount)
    return fall


def _measure_similarity(
    images: FeatureImages, sample: Sample, tolerance: float, box: Box
) -> Floats:
    """Return the similarity rho of every voxel of the box."""
    n = len(images.channels)
    # This factor holds the 0.5 of the exponent and the mean over n features, so that squares are
    # only summed.
    steepness = _STEEPNESS / (_AGREEMENT[n] * tolerance * sqrt(2 * n))
    exponent, feature, first = (np.empty(box.shape, dtype=np.float32) for _ in range(3))
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        for k, channel in enumerate(images.channels):
            # The first feature stays unchanged; its share is removed from the others.
            here = feature if k else first
            share = _SHARED.get(channel.name, 1.0) if k else 1.0
            images.fill(channel, box, here)
            here -= np.float32(sample.middle[k])
            here *= np.float32(share * steepness / sample.scale[k])
            if k:
                feature += first
                np.multiply(feature, feature, out=feature)
                exponent -= feature
            else:
                np.multiply(first, -first, out=exponent)
        np.fmax(exponent, np.float32(-np.inf), out=exponent)  # NaN becomes minus infinity
        return np.exp(exponent, out=exponent)


def deposit(membership: Floats, dose: Floats, action: Action) -> None:
    """Move `membership`, in place, towards 1 (add) or 0 (erase) by ``1 - exp(-dose)``.

    Where the dose is 0 not a bit changes, and the result stays within 0 to 1.
    """
    with np.errstate(under="ignore"):
        share = np.exp(-dose)
    np.subtract(np.float32(1.0), share, out=share)
    if action is Action.ADD:
        share *= np.float32(1.0) - membership
        membership += share
    else:
        share *= membership
        membership -= share


def smooth(membership: Floats, stamp: Stamp, brush: Brush, spacing_mm: Spacing, box: Box) -> None:
    """Blend `membership`, in place, with its Gaussian mean, by ``1 - exp(-E fall)``.

    The Gaussian has a standard deviation of 1 mm, in the plane alone for `Extent.PLANE`. Beyond the
    box the nearest value is repeated. Source: docs/methods/brush.md.
    """
    sigmas = [SMOOTHING_MM / step for step in spacing_mm]
    if brush.extent is Extent.PLANE:
        sigmas[brush.plane_axis] = 0.0
    mean = gaussian_filter(membership, sigmas, mode="nearest", truncate=3.0)
    share = fall_off(stamp.centre, brush, spacing_mm, box)
    share *= np.float32(-stamp.amount)
    np.exp(share, out=share)
    np.subtract(np.float32(1.0), share, out=share)
    mean -= membership
    mean *= share
    membership += mean
    np.clip(membership, 0.0, 1.0, out=membership)
