"""Drawing as a request: which figure of what, so that another process can draw it."""

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
    """A figure that is not drawn yet: a function at the top of a module, and its arguments.

    `has_svg` and `has_png` say what it is wanted as: a page shows the SVG of most, and a file of
    200 dots per inch takes as long again.
    """

    make: "Callable[..., Figure]"
    arguments: tuple[Any, ...]
    has_svg: bool = True
    has_png: bool = True


@dataclass(frozen=True, slots=True)
class Drawn:
    """A figure as the bytes of a PNG file and as an ``<svg>`` element; empty what is not wanted."""

    png: bytes
    svg: str = ""


Draw = Callable[[Drawing], Drawn]
"""Whoever draws: in this process or beside it."""


def draw_now(drawing: Drawing) -> Drawn:
    """Return the figure, drawn in this process; a file ``matplotlibrc`` changes nothing of it.

    Matplotlib takes that file from the current folder, and it can ask for LaTeX to be run.
    """
    from matplotlib import style

    with style.context("default"):
        figure = drawing.make(*drawing.arguments)
        png = png_of(figure) if drawing.has_png else b""
        return Drawn(png, svg_of(figure) if drawing.has_svg else "")


def draw_here(drawing: Drawing) -> Drawn:
    """Draw in this process.

    Matplotlib holds the interpreter's lock for up to 0.3 s at a time: where a window is open, let
    another process draw.
    """
    report_progress(0, 1, "Drawing")
    return draw_now(drawing)


def draw_each_once(draw: Draw) -> Draw:
    """Return what draws as `draw` does, and gives an equal figure again without drawing it anew.

    The page and the files beside it show the same figures, half the time of a small report.
    """
    by_request: dict[bytes, Drawn] = {}

    def draw_or_recall(drawing: Drawing) -> Drawn:
        key = pickle.dumps((drawing.make, drawing.arguments, drawing.has_svg, drawing.has_png))
        if key not in by_request:
            by_request[key] = draw(drawing)
        return by_request[key]

    return draw_or_recall
