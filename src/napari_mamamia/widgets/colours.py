"""The colours of masks, the same in the window, the report and the docs.

Source: the colour-blind safe palette of M. Okabe and K. Ito, "Color Universal Design" (2008).
"""

from typing import Final

__all__ = ["MASK_COLOURS", "MESSAGE_COLOURS", "OUTLINE_VOXELS"]

MASK_COLOURS: Final = {"reference": "#56B4E9", "prediction": "#E69F00", "refined": "#009E73"}
"""Hexadecimal RGB for each mask role: sky blue, orange, bluish green."""

MESSAGE_COLOURS: Final = {"dark": "#E69F00", "light": "#A34800"}
"""Colour of a warning's text on a dark and on a light background (contrast at least 4.5)."""

OUTLINE_VOXELS: Final = 1
"""Masks are drawn as outlines this wide; 0 fills them."""
