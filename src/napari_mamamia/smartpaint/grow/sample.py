"""Features in a box, from which growth samples the lesion and its surroundings."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.box import Box
from napari_mamamia.smartpaint.brush.features import POST_PRE, FeatureImages
from napari_mamamia.smartpaint.grow.start import Start

Bools = NDArray[np.bool_]
Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class Sampled:
    """A box, its features, and the voxels in which all features are finite."""

    box: Box
    features: Floats
    usable: Bools

    @classmethod
    def of(cls, images: FeatureImages, box: Box) -> "Sampled":
        """Return the features of `images` in `box`."""
        features = images.in_box(box)
        usable: Bools = np.all(np.isfinite(features), axis=0)
        return cls(box, features, usable)

    def values(self, where: Bools) -> Floats:
        """Return the features ``(feature, voxel)`` of the finite voxels of a mask."""
        chosen: Floats = self.features[:, where & self.usable]
        return chosen


def leading(images: FeatureImages) -> int:
    """Return the index of the subtraction among the features, or 0 if there is no subtraction."""
    return images.names.index(POST_PRE) if POST_PRE in images.names else 0


def cropped(start: Start) -> Start:
    """Return the start, cropped to the voxels that may belong to the region."""
    tight = Box.around(~start.outside)
    (z, y, x), (a, b, c), (d, e, f) = start.box.start, tight.start, tight.stop
    where = tight.slices
    return replace(
        start,
        box=Box((z + a, y + b, x + c), (z + d, y + e, x + f)),
        inside=start.inside[where],
        outside=start.outside[where],
        seed=start.seed[where],
        drawn=start.drawn[where],
    )
