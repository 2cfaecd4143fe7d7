"""Figures that another process can draw, described by a plotting function and its arguments."""

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from napari_mamamia.core.progress import report_progress
from napari_mamamia.scoring.report.figures import png_of, svg_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True, eq=False)
class Drawing:
    """A request to draw a figure: a top-level function of a module, and its arguments.

    `has_svg` and `has_png` select the formats: a page needs only the SVG of most figures, and a PNG
    with 200 dots per inch doubles the time.
    """

    make: "Callable[..., Figure]"
    arguments: tuple[Any, ...]
    has_svg: bool = True
    has_png: bool = True


@dataclass(frozen=True, slots=True)
class Drawn:
    """A drawn figure as PNG bytes and as an ``<svg>`` element, each empty if not requested."""

    png: bytes
    svg: str = ""


Draw = Callable[[Drawing], Drawn]
"""A function that draws, in this or another process."""


def draw_now(drawing: Drawing) -> Drawn:
    """Return the figure, drawn in this process with matplotlib's default settings.

    A ``matplotlibrc`` file in the current folder is ignored, because it could cause LaTeX to run.
    """
    from matplotlib import style

    with style.context("default"):
        figure = drawing.make(*drawing.arguments)
        png = png_of(figure) if drawing.has_png else b""
        return Drawn(png, svg_of(figure) if drawing.has_svg else "")


def draw_here(drawing: Drawing) -> Drawn:
    """Draw a figure in this process.

    Matplotlib holds the interpreter lock for up to 0.3 s at a time, so another process should draw
    while a window is open.
    """
    report_progress(0, 1, "Drawing")
    return draw_now(drawing)


def draw_each_once(draw: Draw) -> Draw:
    """Return a function that draws like `draw` but draws equal figures only once.

    The page and the files next to it show the same figures, which take half the time of a small
    report.
    """
    by_request: dict[bytes, Drawn] = {}

    def draw_or_recall(drawing: Drawing) -> Drawn:
        key = pickle.dumps((drawing.make, drawing.arguments, drawing.has_svg, drawing.has_png))
        if key not in by_request:
            by_request[key] = draw(drawing)
        return by_request[key]

    return draw_or_recall
