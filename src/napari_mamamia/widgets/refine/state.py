"""What the reader chose on the page Refine: the tool and the brush, and their steps."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from napari_mamamia.core.edits import Brush, Tool
from napari_mamamia.core.texts import tr

RADII_MM: Final = (0.5, 40.0)
"""Least and largest radius of a brush, in mm."""

RADIUS_STEP_MM: Final = 0.5
_GROWTH: Final = 0.1
"""A step of the radius is a tenth of it, and at least half a millimetre: our choice."""


class PaintTool(StrEnum):
    """Which tool the mouse has."""

    NONE = "none"
    SMARTPAINT = "smartpaint"
    SPHERE = "sphere"
    SMOOTH = "smooth"
    OUTLINE = "outline"
    PART = "remove part"
    CUT = "cut"

    @property
    def shown(self) -> str:
        """What people call the tool."""
        return "SmartPaint" if self is PaintTool.SMARTPAINT else self.value.capitalize()

    @property
    def brush_tool(self) -> Tool | None:
        """The brush that the tool paints with; None for a tool that is no brush."""
        return _BRUSHES.get(self)


_BRUSHES: Final = {
    PaintTool.SMARTPAINT: Tool.EVIDENCE,
    PaintTool.SPHERE: Tool.SPHERE,
    PaintTool.SMOOTH: Tool.SMOOTH,
}


@dataclass(frozen=True, slots=True)
class RefineState:
    """The tool, and the brush that it has or had last."""

    tool: PaintTool = PaintTool.NONE
    brush: Brush = field(default_factory=Brush)

    @property
    def is_painting(self) -> bool:
        """Whether the mouse holds a brush."""
        return self.tool.brush_tool is not None


def next_radius_mm(radius_mm: float, by: int) -> float:
    """Return the radius a step larger (`by` 1) or smaller (-1), a multiple of 0.5 mm in range.

    Examples
    --------
    >>> next_radius_mm(6.0, 1), next_radius_mm(20.0, -1), next_radius_mm(0.5, -1)
    (6.5, 18.0, 0.5)
    """
    step = max(round(radius_mm * _GROWTH / RADIUS_STEP_MM), 1) * RADIUS_STEP_MM
    least, most = RADII_MM
    return min(max(radius_mm + by * step, least), most)


class NextStep(StrEnum):
    """What a reader would do next; its control is the most visible one of the page."""

    RECOVER = "recover"
    PAINT = "paint"
    GROW = "grow"
    ACCEPT = "accept"
    SAVE = "save"


def choose_next(
    last_tool: str, *, is_empty: bool, is_failing: bool = False, is_offered: bool = False
) -> NextStep:
    """Return what comes next, by what the last step was done with ("" for none).

    `is_failing` says that the mask could not be saved, `is_offered` that work of before waits for
    an answer.

    Examples
    --------
    >>> str(choose_next("outline", is_empty=False))
    'grow'
    """
    if is_offered:
        return NextStep.RECOVER
    if is_failing:
        return NextStep.SAVE
    if last_tool == "outline":
        return NextStep.GROW
    return NextStep.PAINT if is_empty else NextStep.ACCEPT


_NEXT_TEXTS: Final = {
    NextStep.RECOVER: tr("Take over what was recovered, or start from the saved mask."),
    NextStep.SAVE: tr("Your mask is not saved: see above, then press Save."),
    NextStep.GROW: tr("Next: grow the outline to 3-D, or outline another slice."),
    NextStep.ACCEPT: tr(
        "Left button: what is missing. Right: what is too much. Accept it when it is right."
    ),
    NextStep.PAINT: tr("Press on the middle of the tumour, with a circle a little larger than it."),
}
_TEXTS_OF_TOOLS: Final = {
    (NextStep.ACCEPT, PaintTool.NONE): tr(
        "Accept it, or correct it: take SmartPaint, then press on what is wrong."
    ),
    (NextStep.ACCEPT, PaintTool.OUTLINE): tr(
        "Accept it when it is right, or outline another slice and grow again."
    ),
    (NextStep.PAINT, PaintTool.NONE): tr(
        "Next: take SmartPaint and press on the tumour, or outline it on a slice."
    ),
    (NextStep.PAINT, PaintTool.OUTLINE): tr(
        "Draw round the tumour on the slice where it shows best, then grow it."
    ),
}


def next_text(step: NextStep, tool: PaintTool) -> str:
    """Return what to do next in words, with the tool in hand."""
    if tool is PaintTool.PART:
        return tr("Click on what is to go: an island, a leak behind a neck, a vessel.")
    if tool is PaintTool.CUT:
        return tr("Draw a line across the neck: what lies behind it goes, in all slices.")
    return _TEXTS_OF_TOOLS.get((step, tool), _NEXT_TEXTS[step])
