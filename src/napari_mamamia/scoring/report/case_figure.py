"""Drawing a case of the gallery: grey image, outlines of reference and prediction, scale bar."""

from typing import Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from napari_mamamia.scoring.report.gallery import CasePicture

__all__ = ["PREDICTION_COLOUR", "REFERENCE_COLOUR", "case_figure"]

REFERENCE_COLOUR: Final = "#56B4E9"
PREDICTION_COLOUR: Final = "#E69F00"
"""Sky blue and orange of Okabe and Ito, as in the window."""

_INCHES: Final = 1.5
_BAR_MM: Final = 10.0


def case_figure(picture: CasePicture) -> Figure:
    """Return the picture, 1.5 inches wide, true in its proportions; the bar is 10 mm long.

    Without an image the masks are outlined on dark grey.
    """
    rows, columns = picture.reference.shape
    height_mm, width_mm = rows * picture.spacing_mm[0], columns * picture.spacing_mm[1]
    figure = Figure(figsize=(_INCHES, _INCHES * min(height_mm / width_mm, 2.0)), facecolor="k")
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    image = np.full((rows, columns), 0.25) if picture.image is None else picture.image
    axes.imshow(
        image,
        cmap="gray",
        vmin=0,
        vmax=1,
        extent=(0, width_mm, height_mm, 0),
        interpolation="bilinear",
    )
    for mask, colour in (
        (picture.reference, REFERENCE_COLOUR),
        (picture.prediction, PREDICTION_COLOUR),
    ):
        _outline(axes, mask, picture.spacing_mm, colour)
    axes.plot(
        (width_mm - 3 - _BAR_MM, width_mm - 3), (height_mm - 3,) * 2, color="w", linewidth=1.5
    )
    axes.set_xlim(0, width_mm)
    axes.set_ylim(height_mm, 0)
    return figure


def _outline(
    axes: Axes, mask: NDArray[np.bool_], spacing_mm: tuple[float, float], colour: str
) -> None:
    """Draw a line half-way between foreground and background voxels."""
    if not mask.any():
        return
    padded = np.pad(mask, 1).astype(np.float64)
    y = (np.arange(padded.shape[0]) - 0.5) * spacing_mm[0]
    x = (np.arange(padded.shape[1]) - 0.5) * spacing_mm[1]
    axes.contour(x, y, padded, levels=[0.5], colors=[colour], linewidths=1.2)
