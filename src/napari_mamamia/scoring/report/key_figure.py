"""An image of one slice for a report, with the mask's contour, measurements and a scale bar."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.scoring.report.report import draw_outline

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_INCHES: Final = 3.2
_BAR_MM: Final = 10.0
_CONTOUR: Final = "#009E73"
DRAWN: Final = "#FFD24D"
"""Colour of a reader's measurements, readable on black and grey and different from mask colours."""

Line: TypeAlias = tuple[tuple[float, float], ...]
"""Points (x, y) in mm to the right of and below the picture's upper left corner."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A drawn measurement with its lines and text; the last point of an arrow is its tip."""

    lines: tuple[Line, ...]
    text: str = ""
    is_arrow: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class KeyPicture:
    """A slice: `image` from 0 to 1, bool `contour`, and the size of rows and columns in mm."""

    image: NDArray[np.float32]
    contour: NDArray[np.bool_]
    spacing_mm: tuple[float, float]
    marks: tuple[Mark, ...] = ()


def key_figure(picture: KeyPicture) -> "Figure":
    """Return the image with true proportions and a scale bar of 10 mm."""
    from matplotlib.figure import Figure
    from matplotlib.patheffects import withStroke

    rows, columns = picture.image.shape
    height_mm, width_mm = rows * picture.spacing_mm[0], columns * picture.spacing_mm[1]
    shrunk = min(1.0, 1.4 * width_mm / height_mm)
    size = (_INCHES * shrunk, _INCHES * shrunk * height_mm / width_mm)
    figure = Figure(figsize=size, facecolor="k", dpi=200)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.imshow(
        picture.image,
        cmap="gray",
        vmin=0,
        vmax=1,
        extent=(0, width_mm, height_mm, 0),
        interpolation="bilinear",
        aspect="auto",
    )
    draw_outline(axes, picture.contour, picture.spacing_mm, _CONTOUR)
    cased = [withStroke(linewidth=3, foreground="k")]
    step = 0.05 * height_mm
    taken: list[tuple[float, float]] = []
    for mark in picture.marks:
        for line in mark.lines:
            along, down = zip(*line, strict=True)
            axes.plot(along, down, color=DRAWN, linewidth=1.2, path_effects=cased)
        if mark.is_arrow and len(mark.lines[0]) == 2:
            tail, tip = mark.lines[0]
            arrow = {"arrowstyle": "->", "color": DRAWN, "linewidth": 1.5}
            axes.annotate("", xy=tip, xytext=tail, arrowprops=arrow)
        if mark.text:
            x, y = max(mark.lines[0])
            to_left = x > 0.6 * width_mm
            while any(
                abs(y - down) < step and abs(x - along) < width_mm / 2 for along, down in taken
            ):
                y += step
            taken.append((x, y))
            axes.annotate(
                mark.text,
                (x, y),
                xytext=(-4 if to_left else 4, 4),
                textcoords="offset points",
                ha="right" if to_left else "left",
                color=DRAWN,
                fontsize=8,
                path_effects=cased,
                parse_math=False,
            )
    edge = 0.04 * min(width_mm, height_mm)
    bar = (width_mm - edge - _BAR_MM, width_mm - edge)
    axes.plot(bar, (height_mm - edge,) * 2, color="w", linewidth=2, path_effects=cased)
    axes.set_xlim(0, width_mm)
    axes.set_ylim(height_mm, 0)
    return figure
