"""What the reader chose on the page Refine: the tool and the brush, and their steps."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from napari_mamamia.core.edits import Brush, Tool

RADII_MM: Final = (0.5, 40.0)
"""Least and largest radius of a brush, in mm."""

TOLERANCES: Final = (0.5, 8.0)
"""Least and largest tolerance of a brush, in units of the image's noise."""

RADIUS_STEP_MM: Final = 0.5
TOLERANCE_STEP: Final = 0.25
_GROWTH: Final = 0.1
"""A step of the radius is a tenth of it, and at least half a millimetre: our choice."""


class PaintTool(StrEnum):
    """Which tool the mouse has."""

    NONE = "none"
    SMARTPAINT = "smartpaint"
    SPHERE = "sphere"
    SMOOTH = "smooth"
    OUTLINE = "outline"

    @property
    def shown(self) -> str:
        """What people call the tool."""
        return {PaintTool.SMARTPAINT: "SmartPaint"}.get(self, self.value.capitalize())

    @property
    def brush_tool(self) -> Tool | None:
        """The brush that the tool paints with; None for a tool that is no brush."""
        return Tool(self.value) if self.value in tuple(Tool) else None


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


def next_tolerance(tolerance: float, by: int) -> float:
    """Return the tolerance a step of 0.25 higher or lower, in range.

    Examples
    --------
    >>> next_tolerance(2.5, 1), next_tolerance(8.0, 1)
    (2.75, 8.0)
    """
    least, most = TOLERANCES
    return min(max(tolerance + by * TOLERANCE_STEP, least), most)
