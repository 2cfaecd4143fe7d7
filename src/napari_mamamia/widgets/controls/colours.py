"""The colours of masks in the window, the report and the documentation.

Source: the colour-blind safe palette of M. Okabe and K. Ito, "Color Universal Design" (2008).
"""

from typing import Final

MASK_COLOURS: Final = {
    "reference": "#56B4E9",
    "prediction": "#E69F00",
    "reading A": "#56B4E9",
    "reading B": "#E69F00",
    "refined": "#009E73",
}
"""Hexadecimal RGB of each mask role: sky blue, orange, bluish green.

Two readings that disagree have the colours of reference and prediction, which are never shown at
the same time as the readings.
"""

MASK_DASHES: Final = {
    "reference": (4.0, 8.0),
    "prediction": (10.0, 15.0),
    "reading A": (4.0, 8.0),
    "reading B": (10.0, 15.0),
    "refined": (1.0, 1.0),
}
"""Dash pattern of each mask, in addition to its colour: number of coloured pixels per period.

The outline of the edited mask has no gaps.
"""

OTHER_LESION: Final = "#CCCCCC"
OTHER_LESION_DASHES: Final = (3.0, 7.0)
OTHER_LESION_WIDTH: Final = 1.5
"""Width in pixels of the light grey dashed outlines of lesions that are not being painted."""

OTHER_LESION_CASING: Final = 1.25
"""Width of the dark border of these outlines; with the line, it covers the prediction's outline."""

AGREEMENT_COLOURS: Final = {"correct": "#CCCCCC", "false": "#D55E00", "missed": "#0072B2"}
"""Colours of voxels where a mask agrees with the reference, is too large, or is too small."""

MARK_COLOURS: Final = {
    "add": "#009E73",
    "erase": "#D55E00",
    "added": "#F0E442",
    "removed": "#CC79A7",
    "start": "#FFFFFF",
    "line": "#F0E442",
    "inside": "#0072B2",
    "outside": "#E69F00",
}
"""Colours of drawings on the Refine page that are not masks.

The colours show voxels that a press would add or erase, voxels that were added (yellow) or removed
(reddish purple) since the start, the start mask, an outline that is being drawn, and voxels that
label evidence keeps inside (blue) or outside (orange).
"""

TINTS: Final = {"caution": "#4DE69F00", "problem": "#66D55E00"}
"""Background colours of table rows as ARGB: orange and vermilion, readable in both themes."""

WARNING_COLOURS: Final = {"dark": "#E69F00", "light": "#8F4500"}
ERROR_COLOURS: Final = {"dark": "#FF8A5C", "light": "#A8001C"}
"""Text colours of warnings and errors in napari's dark and light theme.

The contrast to the backgrounds (#262930, #EFEBE9) is at least 4.5 (WCAG 2.1).
"""

QUIET_COLOUR: Final = "#7c8088"
"""Grey of the dash for an unknown value.

The dash is a symbol, for which a contrast of 3:1 (WCAG 2.1) to the tables of both napari themes
(#262930, #2C323A, #EFEBE9) is sufficient. This colour is not used for text.
"""

QUIET_TEXT_COLOURS: Final = {"dark": "#BEBFC1", "light": "#4C4C4E"}
"""Colours of less important text, such as the name of a hidden mask.

As for warnings, the contrast is at least 4.5, including the contrast to napari's fields (#424A54,
#C5C3C1).
"""

OUTLINE_VOXELS: Final = 1
"""Width of mask outlines in voxels; 0 fills the masks."""
