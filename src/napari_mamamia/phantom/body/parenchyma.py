"""Fibroglandular tissue and ligaments of the breasts, and their uneven enhancement."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from napari_mamamia.phantom.body.anatomy import Body, Breast, Depths
from napari_mamamia.phantom.body.points import Points
from napari_mamamia.phantom.body.shapes import Array, smoothstep
from napari_mamamia.phantom.body.texture import Field, make_field
from napari_mamamia.phantom.spec import PhantomSpec
from napari_mamamia.phantom.streams import Part, stream

FIBROGLANDULAR_SHARE: Final = {"a": 0.07, "b": 0.17, "c": 0.34, "d": 0.55}
"""Glandular share of the breast's volume for each BI-RADS density (our choice).

Volume shares in MRI are below the area quarters (25, 50, 75 %) that BI-RADS used for mammograms.
"""

_PLANNING_STEP_MM: Final = 4.0
_SOFT_EDGE: Final = 0.16
_PATCHINESS: Final = 0.35
_STREAK_FAT: Final = 0.42
_STREAK_WIDTH: Final = np.float32(0.3)


@dataclass(frozen=True, slots=True, eq=False)
class Grain:
    """Values of three texture fields at a block of points, from coarse to fine."""

    coarse: Array
    middle: Array
    fine: Array

    @property
    def brightness(self) -> Array:
        """Factor, about 1, by which glandular signal varies."""
        factor: Array = 1 + 0.07 * self.middle + 0.06 * self.fine
        return factor


@dataclass(frozen=True, slots=True, eq=False)
class Parenchyma:
    """Fibroglandular tissue: a score for each point and a threshold for each breast.

    Structures of four sizes (`coarse` to `fine`, steps of 14 to 3 mm) shape it; `patches` make its
    enhancement uneven; `sheets` are the surfaces in which ligaments run.
    """

    body: Body
    thresholds: tuple[float, ...]
    coarse: Field
    middle: Field
    fine: Field
    sheets: Field
    patches: Field

    def share(self, breast: Breast, points: Points, depths: Depths, grain: Grain) -> Array:
        """Return the share of fibroglandular tissue at every point of a block, 0 to 1."""
        threshold = self.thresholds[self.body.breasts.index(breast)]
        score = self.score(breast, points, depths, grain)
        solid = smoothstep(score, threshold - _SOFT_EDGE, threshold + _SOFT_EDGE)
        streaks = np.exp(-(((grain.fine + grain.middle) / _STREAK_WIDTH) ** 2))
        share: Array = solid * (1 - np.float32(_STREAK_FAT) * streaks)
        return share

    def ligaments(self, points: Points, depths: Depths) -> Array:
        """Return the share of thin sheets between glandular tissue and skin, at most 0.45."""
        thin = np.exp(-((self.sheets.at(points) / np.float32(0.09)) ** 2))
        inside = smoothstep(-depths.skin, 1, 4) * smoothstep(depths.muscle, 0, 4)
        share: Array = np.float32(0.45) * thin * inside
        return share

    def grain(self, points: Points) -> Grain:
        """Return the structures that shape the tissue at every point of a block."""
        return Grain(self.coarse.at(points), self.middle.at(points), self.fine.at(points))

    def enhancement(self, points: Points) -> Array:
        """Return the factor, mean 1, by which glandular enhancement varies in patches and foci."""
        # Half the variance is subtracted, since the exponential raises the mean by that much.
        gain: Array = np.exp(_PATCHINESS * self.patches.at(points) - _PATCHINESS**2 / 2)
        return gain

    def score(self, breast: Breast, points: Points, depths: Depths, grain: Grain) -> Array:
        """Return the glandular score of each point.

        The points with the highest scores become gland first.
        """
        aside, forward, up = breast.offsets(points)
        rx, ry, rz = (np.float32(radius) for radius in breast.radii_mm)
        narrowing = np.sqrt(np.clip(1 - (forward / ry) ** 2, 0.04, 1))
        radial = np.sqrt((aside / rx) ** 2 + (up / rz) ** 2) / narrowing
        outer_upper = np.float32(breast.outward) * aside / rx + up / rz
        score = 1 - radial + np.float32(0.2) * outer_upper
        score = score + 0.26 * grain.coarse + 0.18 * grain.middle + 0.16 * grain.fine
        under_skin = 1 - smoothstep(-depths.skin, 3, 13)
        behind = 1 - smoothstep(depths.muscle, 1, 14)
        score = score - 1.2 * under_skin * smoothstep(radial, 0.05, 0.3) - 1.5 * behind
        # Below every threshold, so that no density puts gland into the muscle.
        blocked: Array = np.where(depths.muscle < 0, np.float32(-9), score)
        return blocked


def grow_parenchyma(spec: PhantomSpec, body: Body) -> Parenchyma:
    """Return the fibroglandular tissue for the density of `spec`.

    The threshold is computed on a separate lattice, so that it does not depend on the grid.

    Parameters
    ----------
    spec
        The parameters of the phantom.
    body
        The patient's outline.
    """
    fields = [
        make_field(stream(spec.seed, Part.PARENCHYMA, index), step)
        for index, step in enumerate((14.0, 6.5, 3.2, 13.0))
    ]
    patches = make_field(stream(spec.seed, Part.ENHANCEMENT), 6.0)
    # Thresholds are quantiles of scores, and the scores need a parenchyma without thresholds.
    open_ended = Parenchyma(body, (), fields[0], fields[1], fields[2], fields[3], patches)
    thresholds = []
    for breast in body.breasts:
        points = Points.lattice(breast.bounds_mm, _PLANNING_STEP_MM)
        depths = body.depths(points)
        inside = body.in_breast(breast, points, depths) < -2
        scores = open_ended.score(breast, points, depths, open_ended.grain(points))[inside]
        share = FIBROGLANDULAR_SHARE[spec.breast_density]
        thresholds.append(float(np.quantile(scores, 1 - share)))
    return Parenchyma(body, tuple(thresholds), fields[0], fields[1], fields[2], fields[3], patches)
