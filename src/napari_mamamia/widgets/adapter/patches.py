"""A table of patches for napari's private attributes, and a switch that disables the patches.

Each patch checks that the private attributes exist, so a napari version without these attributes
runs unpatched. ``MAMAMIA_NAPARI_PATCHES=off`` turns all patches off; a comma-separated list of
names turns off only the named patches.
"""

import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import wraps
from types import MappingProxyType
from typing import Final, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

SWITCH: Final = "MAMAMIA_NAPARI_PATCHES"
"""Environment variable with "off", or with a comma-separated list of patches to turn off."""

PATCHES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "keep_when_closed": "closing the panel keeps it, whereas napari deletes it",
        "default_area": "docks that this program places are not saved in napari's settings",
        "fit_title": "a dock's title is not cut off at large font sizes",
        "fit_slider_texts": "slider names and numbers follow the font size",
        "number_sliders": (
            "sliders show the slice numbers of the case, and each kept slider saves 5 to 15 ms"
        ),
        "spare_empty_depth": "an empty view in 3-D raises no error",
        "guard_canvas": "no drawing command is lost while a canvas is hidden",
        "bind_shortcuts": "an additional view is ready in two thirds of the time",
        "draw_smooth_outlines": "masks have smooth lines, and 2 ms per mask and step are saved",
        "brush_rings": "the brush circle shows its core and its range",
        "trim_contours": "a step with napari's contours of three masks is 10 ms faster",
        "draw_writing_once": "a step is a third faster",
        "step_lightly": "a step with three masks is 3 ms faster, with one slicing instead of two",
        "keep_lightly": "a step with three masks is 5 ms faster",
        "sliced_once": "several changes cause only one slicing",
        "measured_once": "each new or moved layer is 3 to 8 ms faster",
        "sliced_later": "each new layer is 15 to 30 ms faster",
        "split_drawing": "a case's first iteration is 10 to 200 ms faster",
        "make_visual": "a case's first iteration is 10 to 40 ms faster",
        "stock_line": "a mask's first iteration is 10 ms faster",
        "late_drawing": "each new mask is 20 to 30 ms faster",
        "late_controls": "each new layer is 40 to 90 ms faster",
        "insert_unchosen": "controls and cursor are not switched twice per new layer",
    }
)
"""Benefit of each patch, by the patch's name."""


def is_on(name: str) -> bool:
    """Return whether a patch of the table is turned on."""
    switched_off = os.environ.get(SWITCH, "").replace(" ", "").split(",")
    return bool(PATCHES[name]) and "off" not in switched_off and name not in switched_off


def patch(apply: Callable[P, None]) -> Callable[P, None]:
    """Turn a function into a patch that does nothing while it is turned off."""

    @wraps(apply)
    def apply_if_on(*args: P.args, **kwargs: P.kwargs) -> None:
        if is_on(apply.__name__):
            apply(*args, **kwargs)

    return apply_if_on


def patch_within(
    hold: Callable[P, AbstractContextManager[None]],
) -> Callable[P, AbstractContextManager[None]]:
    """Turn a context manager into a patch that changes nothing while it is turned off."""

    @wraps(hold)
    def hold_if_on(*args: P.args, **kwargs: P.kwargs) -> AbstractContextManager[None]:
        return hold(*args, **kwargs) if is_on(hold.__name__) else nullcontext()

    return hold_if_on
