"""The colours of masks, the same in the window, the report and the docs.

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
"""Hexadecimal RGB for each mask role: sky blue, orange, bluish green. Two readings that disagree
have
the colours of reference and prediction, which are never shown with them.
"""

MASK_DASHES: Final = {
    "reference": (4.0, 8.0),
    "prediction": (10.0, 15.0),
    "reading A": (4.0, 8.0),
    "reading B": (10.0, 15.0),
    "refined": (1.0, 1.0),
}
"""Dashes of masks, in addition to their colour: coloured pixels of each period. The edited mask has
no
gaps.
"""

OTHER_LESION: Final = "#CCCCCC"
OTHER_LESION_DASHES: Final = (3.0, 7.0)
OTHER_LESION_WIDTH: Final = 1.5
"""Width of lesions of the edited mask other than the painted one: light grey, short dashes,
thinner.
"""

AGREEMENT_COLOURS: Final = {"correct": "#CCCCCC", "false": "#D55E00", "missed": "#0072B2"}
"""Colours where a mask agrees with the reference, where it is too large, and where it is too small.
"""

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
"""Colours of drawings on page Refine: voxels that a press would add or erase; voxels added and
removed
since the start (yellow, reddish purple); the start mask; an outline being drawn; voxels that marks
hold inside (blue) and outside (orange).
"""

TINTS: Final = {"caution": "#4DE69F00", "problem": "#66D55E00"}
"""Background of a table's row, as ARGB: orange and vermilion, light enough for text in either
theme.
"""

WARNING_COLOURS: Final = {"dark": "#E69F00", "light": "#8F4500"}
ERROR_COLOURS: Final = {"dark": "#FF8A5C", "light": "#A8001C"}
"""Colours of a warning's and an error's text in napari's dark and light theme; against their
backgrounds (#262930, #EFEBE9) each has a contrast of at least 4.5 (WCAG 2.1).
"""

QUIET_COLOUR: Final = "#7c8088"
"""Grey of the dash for an unknown value: a symbol, so at least 3:1 (WCAG 2.1) against the tables of
both napari themes (#262930, #2C323A, #EFEBE9). It is not used for text.
"""

QUIET_TEXT_COLOURS: Final = {"dark": "#BEBFC1", "light": "#4C4C4E"}
"""Colour of less important text, such as the name of a hidden mask; contrast as above, against
napari's fields (#424A54, #C5C3C1) too.
"""

OUTLINE_VOXELS: Final = 1
"""Width of mask outlines in voxels; 0 fills the masks."""
