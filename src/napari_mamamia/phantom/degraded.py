"""A stand-in for a data set's automatic mask: the truth with the faults such masks have."""

from math import ceil
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import Mask
from napari_mamamia.core.provenance import Maker, Provenance
from napari_mamamia.phantom.body.points import Bounds, Points
from napari_mamamia.phantom.body.shapes import distance_to_mask
from napari_mamamia.phantom.body.texture import make_field
from napari_mamamia.phantom.body.tissue import Tissue
from napari_mamamia.phantom.phantom_case import Phantom
from napari_mamamia.phantom.streams import Part, stream

__all__ = ["degraded_mask"]

_MARGIN_MM: Final = 9.0
_UNEVEN_MM: Final = 1.3
_FALSE_REGION_MM: Final = 5.0


def degraded_mask(phantom: Phantom) -> Mask:
    """Return the primary tumour with a wrong border: too large or small by up to 2 mm, uneven.

    Further tumours are missed. In every other phantom, on average, a ball of 5 mm radius in
    glandular tissue is marked as well.
    """
    rng = stream(phantom.spec.seed, Part.AUTOMATIC_MASK)
    array = np.zeros(phantom.lesions.shape, np.bool_)
    grid = phantom.case.grid
    primary = phantom.lesions == 1
    margin = [ceil(_MARGIN_MM / spacing) for spacing in grid.spacing_mm]
    part = Box.around(primary).grown(margin, grid.shape).slices
    points = Points.of(grid).block(part)
    bounds = [(float(a.min()), float(a.max())) for a in points.along]
    border = make_field(rng, 6.0, (bounds[0], bounds[1], bounds[2]))
    error_mm = rng.uniform(-2, 2) + _UNEVEN_MM * border.at(points)
    array[part] = distance_to_mask(primary[part], grid.spacing_mm) < error_mm
    if rng.random() < 0.5:
        _add_false_region(array, phantom, rng)
    made = Provenance(
        phantom.case.case_id, Maker.MODEL, "automatic", note="degraded truth, made with the phantom"
    )
    return Mask(grid, array, made)


def _add_false_region(array: NDArray[np.bool_], phantom: Phantom, rng: np.random.Generator) -> None:
    places = np.argwhere(phantom.tissue == Tissue.FIBROGLANDULAR)
    if len(places) == 0:
        return
    points = Points.of(phantom.case.grid)
    centre = phantom.case.grid.to_world_mm(places[int(rng.integers(len(places)))])
    reach = _FALSE_REGION_MM
    low_high = [(float(c) - reach, float(c) + reach) for c in centre]
    bounds: Bounds = (low_high[0], low_high[1], low_high[2])
    window = points.window(bounds)
    if window is None:
        return
    near = points.block(window)
    x, y, z = (float(c) for c in centre)
    away2 = (near.x_mm - x) ** 2 + (near.y_mm - y) ** 2 + (near.z_mm - z) ** 2
    array[window] |= away2 <= reach**2
