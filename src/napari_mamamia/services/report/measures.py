"""Measures of lesions and drawn measurements, with names, units and codes."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from napari_mamamia.core.answers import LesionFacts
from napari_mamamia.core.case import Case
from napari_mamamia.core.form import PRIVATE_SCHEME, Code
from napari_mamamia.core.measurement import MeasureKind, Measurement
from napari_mamamia.metrics.diameter import LesionSize
from napari_mamamia.metrics.shapes import (
    ValuesInside,
    angle_degrees,
    ellipse_area_mm2,
    length_mm,
    values_in_ellipse,
)


@dataclass(frozen=True, slots=True)
class Measure:
    """One measure; `name` is its label, and `unit` is a UCUM unit ("1" for a signal)."""

    name: str
    value: float
    unit: str
    code: Code
    decimals: int = 1

    @property
    def text(self) -> str:
        """The value with its unit, or a dash if it is undefined."""
        if not math.isfinite(self.value):
            return "–"
        return f"{self.value:.{self.decimals}f}{_SHOWN.get(self.unit, f' {self.unit}')}"


_SHOWN: Final[Mapping[str, str]] = MappingProxyType({"mm2": " mm²", "deg": "°", "1": ""})
_VOLUME: Final = Code("SCT", "118565006")
_LONG: Final = Code("SCT", "103339001")
_SHORT: Final = Code("SCT", "103340004")
_HEAD_FOOT: Final = Code(PRIVATE_SCHEME, "head_foot")
_LONGEST: Final = Code(PRIVATE_SCHEME, "longest_3d")
_LENGTH: Final = Code("SCT", "410668003")
_ANGLE: Final = Code("SCT", "1483009")
_AREA: Final = Code("SCT", "42798000")
_MEAN: Final = Code("SCT", "373098007")
_SD: Final = Code("SCT", "386136009")
# Source of the public codes: DICOM PS3.16 as listed in pydicom 3.0.2.


def list_lesion_measures(facts: LesionFacts, size: LesionSize) -> tuple[Measure, ...]:
    """Return the measures of a lesion in the mask, in the order of the tables."""
    volume = math.nan if facts.volume_mm3 is None else facts.volume_mm3 / 1000
    return (
        Measure("Volume", volume, "ml", _VOLUME, 2),
        Measure("Longest in plane", size.in_plane_mm, "mm", _LONG),
        Measure("Perpendicular", size.perpendicular_mm, "mm", _SHORT),
        Measure("Head–foot", size.head_foot_mm, "mm", _HEAD_FOOT),
        Measure("Longest in 3-D", size.longest_mm, "mm", _LONGEST),
    )


def measure_drawn(drawn: Measurement, case: Case | None) -> tuple[Measure, ...]:
    """Return the measures of a drawn measurement; an arrow or a key image has none.

    Parameters
    ----------
    drawn
        The drawn measurement.
    case
        The case in which an ellipse's mean and standard deviation are measured. If it is None, or
        the phase is missing or not read yet, only the area is measured.
    """
    points = drawn.points_mm
    if drawn.kind is MeasureKind.RULER:
        return (Measure("Length", length_mm(*points), "mm", _LENGTH),)
    if drawn.kind is MeasureKind.CROSS:
        lengths = sorted((length_mm(*points[:2]), length_mm(*points[2:])), reverse=True)
        return (
            Measure("Long axis", lengths[0], "mm", _LONG),
            Measure("Short axis", lengths[1], "mm", _SHORT),
        )
    if drawn.kind is MeasureKind.ANGLE:
        return (Measure("Angle", angle_degrees(*points), "deg", _ANGLE),)
    if drawn.kind is MeasureKind.ELLIPSE:
        return _measure_ellipse(drawn, case)
    return ()


def say_measures(measures: tuple[Measure, ...]) -> str:
    """Return measures as the text that is shown next to a drawing.

    Examples
    --------
    >>> say_measures((Measure("Long axis", 21.04, "mm", _LONG), Measure("Short axis", 9, "mm",
    ...     _SHORT)))
    '21.0 mm × 9.0 mm'
    >>> say_measures((Measure("Area", 3.14, "mm2", _AREA), Measure("Mean", 18.0, "1", _MEAN),
    ...     Measure("SD", 4.5, "1", _SD)))
    '3.1 mm², mean 18.0, SD 4.5'
    """
    if len(measures) == 2:
        return " × ".join(measure.text for measure in measures)
    parts = [
        f"{measure.name if measure.name.isupper() else measure.name.lower()} {measure.text}"
        for measure in measures[1:]
    ]
    return ", ".join([measure.text for measure in measures[:1]] + parts)


def _measure_ellipse(drawn: Measurement, case: Case | None) -> tuple[Measure, ...]:
    points = drawn.points_mm
    area = Measure("Area", ellipse_area_mm2(*points), "mm2", _AREA)
    phase = drawn.phase
    if case is None or phase is None or phase >= len(case.phases) or not case.phases[phase].loaded:
        return (area,)
    inside = values_in_ellipse(case.signal[phase], case.grid, drawn.plane, *points)
    return (area, *list_inside(inside))


def list_inside(inside: ValuesInside) -> tuple[Measure, ...]:
    """Return the measures of the values inside a shape, in the unit of the image."""
    return (Measure("Mean", inside.mean, "1", _MEAN), Measure("SD", inside.sd, "1", _SD))
