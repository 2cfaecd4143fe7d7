"""The reader's choices on the Refine page: tool, brush and radius steps."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from napari_mamamia.core.edits import Brush, Tool
from napari_mamamia.core.texts import tr

RADII_MM: Final = (0.5, 40.0)
"""Minimum and maximum radius of a brush in mm."""

RADIUS_STEP_MM: Final = 0.5
_GROWTH: Final = 0.1
"""Relative step of the radius; the step is at least 0.5 mm (our choice)."""


class PaintTool(StrEnum):
    """The mouse tools."""

    NONE = "none"
    SMARTPAINT = "smartpaint"
    SPHERE = "sphere"
    SMOOTH = "smooth"
    OUTLINE = "outline"
    PART = "remove part"
    CUT = "cut"

    @property
    def shown(self) -> str:
        """The displayed name of the tool."""
        return "SmartPaint" if self is PaintTool.SMARTPAINT else self.value.capitalize()

    @property
    def brush_tool(self) -> Tool | None:
        """The brush of the tool, or None for a tool without a brush."""
        return _BRUSHES.get(self)


_BRUSHES: Final = {
    PaintTool.SMARTPAINT: Tool.EVIDENCE,
    PaintTool.SPHERE: Tool.SPHERE,
    PaintTool.SMOOTH: Tool.SMOOTH,
}


@dataclass(frozen=True, slots=True)
class RefineState:
    """The active tool, its current or last brush, and the brush that SmartPaint uses."""

    tool: PaintTool = PaintTool.NONE
    brush: Brush = field(default_factory=Brush)
    smart: Tool = Tool.EVIDENCE

    @property
    def is_painting(self) -> bool:
        """Whether the active tool is a brush."""
        return self.tool.brush_tool is not None


def next_radius_mm(radius_mm: float, by: int) -> float:
    """Return the next larger (`by` 1) or smaller (-1) radius, a multiple of 0.5 mm.

    Examples
    --------
    >>> next_radius_mm(6.0, 1), next_radius_mm(20.0, -1), next_radius_mm(0.5, -1)
    (6.5, 18.0, 0.5)
    """
    step = max(round(radius_mm * _GROWTH / RADIUS_STEP_MM), 1) * RADIUS_STEP_MM
    least, most = RADII_MM
    return min(max(radius_mm + by * step, least), most)


class NextStep(StrEnum):
    """The reader's probable next step, whose control is highlighted on the page."""

    RECOVER = "recover"
    PAINT = "paint"
    GROW = "grow"
    ACCEPT = "accept"
    SAVE = "save"


def choose_next(
    last_tool: str, *, is_empty: bool, is_failing: bool = False, is_offered: bool = False
) -> NextStep:
    """Return the next step after a step by `last_tool`, which is "" if there was no step.

    `is_failing` says whether the mask could not be saved; `is_offered` says whether recovered work
    waits for a decision.

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
    NextStep.RECOVER: tr("Keep the recovered strokes, or start from the saved mask."),
    NextStep.SAVE: tr("Your mask is not saved: see above, then press Save."),
    NextStep.GROW: tr("Next: grow the outline in 3-D, or outline another slice."),
    NextStep.ACCEPT: tr(
        "Left button adds, right button removes. Accept the mask when it is correct."
    ),
    NextStep.PAINT: tr(
        "Press on the middle of the tumour, with a circle slightly larger than the tumour."
    ),
}
_TEXTS_OF_TOOLS: Final = {
    (NextStep.ACCEPT, PaintTool.NONE): tr(
        "Accept the mask, or correct it: choose SmartPaint, then press on the error."
    ),
    (NextStep.ACCEPT, PaintTool.OUTLINE): tr(
        "Accept the mask when it is correct, or outline another slice and grow again."
    ),
    (NextStep.PAINT, PaintTool.NONE): tr(
        "Next: choose SmartPaint and press on the tumour, or outline the tumour on a slice."
    ),
    (NextStep.PAINT, PaintTool.OUTLINE): tr(
        "Draw around the tumour on the slice that shows it best, then grow the outline."
    ),
}


def next_text(step: NextStep, tool: PaintTool) -> str:
    """Return a text about the next step with the active tool."""
    if tool is PaintTool.PART:
        return tr(
            "Click on a part to remove: an island, a leak beyond a narrow bridge, or a vessel."
        )
    if tool is PaintTool.CUT:
        return tr(
            "Draw a line across the narrow bridge. The part beyond it is removed in all slices."
        )
    return _TEXTS_OF_TOOLS.get((step, tool), _NEXT_TEXTS[step])
