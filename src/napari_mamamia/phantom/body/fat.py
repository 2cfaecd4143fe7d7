"""Fat suppression: how much signal of fat is left, and where suppression fails."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from napari_mamamia.phantom.body.anatomy import Body
from napari_mamamia.phantom.body.points import Points
from napari_mamamia.phantom.body.shapes import Array, ellipsoid, smoothstep
from napari_mamamia.phantom.body.texture import Field, make_field
from napari_mamamia.phantom.spec import PhantomSpec
from napari_mamamia.phantom.streams import Part, stream

SUPPRESSED_SHARE: Final = 0.18
"""Share of fat signal that good suppression leaves. Our choice: fat a little darker than gland."""

_FAILED_SHARE: Final = 0.95
_EDGE_MM: Final = 18.0


@dataclass(frozen=True, slots=True, eq=False)
class FatSuppression:
    """Share of fat signal left everywhere, `everywhere`, and balls in which suppression fails.

    `radius_mm` is theirs; the border is softened over 18 mm and bent by `border`.
    """

    everywhere: float
    centres_mm: tuple[tuple[float, float, float], ...]
    radius_mm: float
    border: Field

    def fat_left(self, points: Points) -> Array:
        """Return the share of fat signal that is left; broadcasts to the points' shape."""
        left = np.full((1, 1, 1), self.everywhere, np.float32)
        if not self.centres_mm:
            return left
        bent = np.float32(0.35 * self.radius_mm) * self.border.at(points)
        for centre in self.centres_mm:
            distance = ellipsoid(points, centre, (self.radius_mm,) * 3) + bent
            failed = 1 - smoothstep(distance, -_EDGE_MM, _EDGE_MM)
            left = np.maximum(left, _FAILED_SHARE * failed)
        return left


def suppress_fat(spec: PhantomSpec, body: Body) -> FatSuppression:
    """Return the suppression of `spec`; it fails at the outer lower side of one or two breasts."""
    rng = stream(spec.seed, Part.FAT_SUPPRESSION)
    centres = []
    for breast in body.breasts[: int(rng.integers(1, 3))]:
        place = rng.uniform((0.4, 0.1, -0.9), (0.9, 0.7, -0.3)) * breast.radii_mm
        place[0] *= breast.outward
        x, y, z = (float(c + p) for c, p in zip(breast.centre_mm, place, strict=True))
        centres.append((x, y, z))
    radius = spec.fat_suppression_failure_mm
    everywhere = SUPPRESSED_SHARE if spec.fat_suppressed else 1.0
    border = make_field(rng, 26.0)
    return FatSuppression(everywhere, tuple(centres) if radius else (), radius, border)
