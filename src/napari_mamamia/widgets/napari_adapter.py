"""The one place that may touch what napari keeps private; each use is guarded."""

import logging
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import napari
from napari.layers import Labels
from napari.utils.theme import get_theme

__all__ = [
    "ThemeColours",
    "bare",
    "current_viewer",
    "focus_canvas",
    "forget_history",
    "theme_colours",
]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ThemeColours:
    """Colours of napari's theme that our own style rules need, as hexadecimal RGB."""

    accent: str
    on_accent: str
    line: str
    quiet: str
    stripe: str
    is_dark: bool


def bare(viewer: Any) -> Any:
    """Return the viewer itself where napari hands out a proxy of it.

    The proxy wraps every layer taken from it, so that ``layer in selection`` fails; napari's menu
    gives the viewer, ``add_plugin_dock_widget`` and commands give the proxy.
    """
    return getattr(viewer, "__wrapped__", viewer)


def current_viewer() -> Any | None:
    """Return the viewer whose window was used last, None where there is no window."""
    viewer = napari.current_viewer()
    return None if viewer is None else bare(viewer)


def focus_canvas(viewer: Any) -> None:
    """Give the keyboard to the image; without the private attribute nothing happens."""
    with suppress(AttributeError, RuntimeError):
        viewer.window._qt_viewer.canvas.native.setFocus()


def forget_history(layer: Labels) -> None:
    """Drop a labels layer's undo steps after its data were replaced.

    napari keeps them, and the next undo would write old voxels into the new mask (napari 0.9.2,
    `napari/layers/labels/labels.py`, ``_reset_history``). Our masks that are replaced are not
    editable, so that without the private method nothing can go wrong.
    """
    reset = getattr(layer, "_reset_history", None)
    if reset is not None:
        reset()


def theme_colours(viewer: Any) -> ThemeColours:
    """Return the colours of the viewer's theme."""
    theme = get_theme(viewer.theme)
    return ThemeColours(
        accent=theme.current.as_hex("long"),
        on_accent="#ffffff" if theme.type == "dark" else "#000000",
        line=theme.secondary.as_hex("long"),
        quiet=theme.primary.as_hex("long"),
        stripe=theme.background.as_hex("long"),
        is_dark=theme.type == "dark",
    )
