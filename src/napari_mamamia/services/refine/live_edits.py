"""Changes to an editing session by other painting tools or by replaced layer data."""

from math import ceil
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import LabelMap
from napari_mamamia.core.edits import Step, Voxel
from napari_mamamia.smartpaint.brush.reach import suggested_radius_mm
from napari_mamamia.smartpaint.session.session import EditingSession
from napari_mamamia.smartpaint.session.state import moved

REPLACED: Final = "data replaced"
_MOST_LABEL: Final = 255


def notice_painting(live: EditingSession) -> Step | None:
    """Record changes that other tools painted into the session's buffer as one step.

    Only the block that differs is recorded. The result is None if nothing differs.
    """
    planes = [z for z in range(live.grid.shape[0]) if not _is_recorded(live, z)]
    if not planes:
        return None
    first, stop = planes[0], planes[-1] + 1
    box = Box.around(live.labels[first:stop] != live.state.recorded_labels[first:stop])
    return live.notice_external(moved(box, (first, 0, 0)))


def _is_recorded(live: EditingSession, z: int) -> bool:
    """Return whether a plane equals the last recorded step; comparing a volume takes a few ms."""
    _, rows, columns = live.grid.shape
    return live.state.is_recorded(Box((z, 0, 0), (z + 1, rows, columns)))


def suggest_radius_mm(
    live: EditingSession, place: Voxel, limits_mm: tuple[float, float]
) -> float | None:
    """Return the distance in mm from `place` to the nearest edge of the mask, within the limits.

    The result is None if there is no edge within the upper limit; see `brush.suggested_radius_mm`.
    """
    shape, spacing = live.grid.shape, live.grid.spacing_mm
    reach = [ceil(limits_mm[1] / step) + 1 for step in spacing]
    under = [min(max(round(index), 0), n - 1) for index, n in zip(place, shape, strict=True)]
    z, y, x = under
    box = Box((z, y, x), (z + 1, y + 1, x + 1)).grown(reach, shape)
    mask = live.labels[box.slices] == live.label
    if mask.all() or not mask.any():
        return None
    z0, y0, x0 = (index - start for index, start in zip(place, box.start, strict=True))
    return suggested_radius_mm(mask, (z0, y0, x0), spacing, limits_mm)


def adopt_layer(live: EditingSession, array: NDArray[Any]) -> bool:
    """Set the session's mask to `array` (z, y, x), as one step.

    If the array is not a mask on this grid, because its shape differs or its values are not whole
    numbers from 0 to 255, nothing is changed and the result is False.
    """
    if array.shape != live.grid.shape or array.dtype.kind not in "buif":
        return False
    box = Box.around(array)
    crop = array[box.slices]
    if not _are_labels(crop):
        return False
    live.apply_labels(REPLACED, LabelMap(live.grid, box, crop.astype(np.uint8)))
    return True


def _are_labels(values: NDArray[Any]) -> bool:
    if values.size == 0:
        return True
    if values.min() < 0 or values.max() > _MOST_LABEL:
        return False
    return values.dtype.kind in "bui" or bool((values == np.floor(values)).all())
