"""Table of patches for napari's private attributes, and the switch that disables them.

Each patch checks that the private attributes exist, so that a napari version without them runs
unpatched. ``MAMAMIA_NAPARI_PATCHES=off`` turns all patches off; a comma-separated list of names
turns off only the named patches.
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
"""Environment variable: "off", or a comma-separated list of patches to turn off."""

PATCHES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "keep_when_closed": "closing the panel keeps it; napari deletes it",
        "default_area": "docks placed by us are not saved in napari's settings",
        "fit_title": "a dock's title is not cut with large text",
        "fit_slider_texts": "slider names and numbers follow the text size",
        "number_sliders": "sliders show the slice numbers of the case; 5 to 15 ms per slider kept",
        "spare_empty_depth": "an empty view in 3-D raises no error",
        "guard_canvas": "no drawing command is lost while a canvas is hidden",
        "bind_shortcuts": "a further view is ready in two thirds of the time",
        "draw_smooth_outlines": "smooth lines; napari's contours take 2 ms per mask and step",
        "brush_rings": "the brush circle shows its core and its range",
        "trim_contours": "10 ms of a step with napari's contours of three masks",
        "draw_writing_once": "a third of a step",
        "step_lightly": "3 ms of a step with three masks: one slicing instead of two",
        "keep_lightly": "5 ms of a step with three masks",
        "follow_lightly": "1 ms of a step of 12 ms",
        "place_once": "1.5 ms of a step of 12 ms: no transform per slice",
        "sliced_once": "one slicing for several changes",
        "measured_once": "3 to 8 ms per new or moved layer",
        "sliced_later": "15 to 30 ms per new layer",
        "split_drawing": "10 to 200 ms of a case's first iteration",
        "make_visual": "10 to 40 ms of a case's first iteration",
        "stock_line": "10 ms of a mask's first iteration",
        "late_drawing": "20 to 30 ms per new mask",
        "late_controls": "40 to 90 ms per new layer",
        "insert_unchosen": "controls and cursor are not switched twice per new layer",
        "read_shaders_once": "some ms per program",
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
