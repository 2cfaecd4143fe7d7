"""Images of cases that show the slice with the largest error, cropped to the masks."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, isnan
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.case import Mask
from napari_mamamia.core.counting import slice_text
from napari_mamamia.core.errors import GridMismatchError
from napari_mamamia.core.grid import require_same_grid
from napari_mamamia.core.records import CaseScore

MOST_PICTURES: Final = 12
"""Largest number of images in a gallery; each adds about 30 kB to the page."""

MARGIN_MM: Final = 15.0
LEAST_MM: Final = 60.0
"""Smallest width and height of an image in mm (our choice)."""


@dataclass(frozen=True, slots=True, eq=False)
class CasePicture:
    """One slice of a case for the gallery.

    `image` (rows, columns) is float32 from 0 (black) to 1 (white), or None without images;
    `reference` and `prediction` are bool arrays of the same shape; `spacing_mm` is the spacing of
    rows and columns. `plane` and `place` name the slice ("axial", "slice 31 of 80").
    """

    case_id: str
    model: str
    image: NDArray[np.float32] | None
    reference: NDArray[np.bool_]
    prediction: NDArray[np.bool_]
    spacing_mm: tuple[float, float]
    plane: str
    place: str
    caption: str = ""


def picture_of(
    case_id: str,
    reference: Mask,
    prediction: Mask,
    volume: NDArray[Any] | None = None,
    model: str = "",
    caption: str = "",
) -> CasePicture:
    """Return the slice where the two masks differ in most voxels, in the acquisition plane.

    `volume` (z, y, x) is any phase or subtraction of the case, which is displayed between its 1st
    and 99th percentile in the crop. Without any difference, the slice with most foreground is
    returned, or the middle slice for two empty masks. The crop contains both masks with `MARGIN_MM`
    around them.

    Raises
    ------
    GridMismatchError
        If the masks or the volume do not share one grid.
    """
    grid = reference.grid
    require_same_grid(grid, prediction.grid, "the reference", "the prediction")
    if volume is not None and volume.shape != grid.shape:
        raise GridMismatchError(
            f"expected the volume to have the shape of the masks, {grid.shape} (z, y, x), but it "
            f"has {volume.shape}: pass a phase of the same case"
        )
    frame = grid.display_frame()
    shown_r, shown_p = (frame.to_display(mask.array) for mask in (reference, prediction))
    worst_slice = _find_worst_slice(shown_r, shown_p)
    _, *spacing = frame.per_axis(grid.spacing_mm)
    outlined = shown_r[worst_slice] | shown_p[worst_slice]
    rows, columns = (cut_axis(outlined.any(axis=1 - axis), spacing[axis]) for axis in (0, 1))
    image = None
    if volume is not None:
        image = window_values(frame.to_display(volume)[worst_slice][rows, columns])
    return CasePicture(
        case_id,
        model,
        image,
        np.ascontiguousarray(shown_r[worst_slice][rows, columns]),
        np.ascontiguousarray(shown_p[worst_slice][rows, columns]),
        (spacing[0], spacing[1]),
        frame.plane,
        slice_text(worst_slice, len(shown_r)),
        caption,
    )


def _find_worst_slice(reference: NDArray[np.bool_], prediction: NDArray[np.bool_]) -> int:
    for differing in (reference ^ prediction, reference):
        counts = np.count_nonzero(differing, axis=(1, 2))
        if counts.any():
            return int(np.argmax(counts))
    return len(reference) // 2


def cut_axis(occupied: NDArray[np.bool_], spacing_mm: float) -> slice:
    """Return the range of indices on an axis that covers the masks and the margin around them."""
    places = np.flatnonzero(occupied)
    first, last = (places[0], places[-1]) if places.size else (len(occupied) // 2,) * 2
    room = MARGIN_MM / spacing_mm
    lacking = (LEAST_MM / spacing_mm - (last - first + 1)) / 2
    grown = ceil(max(room, lacking))
    return slice(max(0, int(first) - grown), min(len(occupied), int(last) + 1 + grown))


def window_values(values: NDArray[Any]) -> NDArray[np.float32]:
    """Return values scaled so that their 1st percentile is 0 and their 99th percentile is 1."""
    low, high = (float(edge) for edge in np.percentile(values, (1, 99)))
    scaled = (values.astype(np.float32) - low) / max(high - low, 1e-6)
    shown: NDArray[np.float32] = np.clip(scaled, 0, 1, dtype=np.float32)
    return shown


def worst_cases(rows: Sequence[CaseScore], most: int = MOST_PICTURES) -> tuple[str, ...]:
    """Return the ids of the cases for the gallery: lowest Dice first, then highest NormHD.

    Cases without a defined Dice have no picture.
    """
    defined = [row for row in rows if not isnan(row.dsc)]
    ordered = sorted(defined, key=lambda row: (row.dsc, -row.norm_hd if row.norm_hd >= 0 else 0))
    return tuple(row.case_id for row in ordered[:most])
