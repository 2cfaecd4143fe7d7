"""A reader's measurements on a case: rulers, diameters, ellipses, angles and key images."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final, TypeAlias

from napari_mamamia.core.errors import ArgumentError
from napari_mamamia.core.grid import Plane
from napari_mamamia.core.names import count_of

PointMm: TypeAlias = tuple[float, float, float]
"""A point in the patient in RAS mm."""


class MeasureKind(StrEnum):
    """A kind of measurement; the values are used in files."""

    RULER = "ruler"
    CROSS = "cross"
    ELLIPSE = "ellipse"
    ANGLE = "angle"
    ARROW = "arrow"
    KEY_IMAGE = "key-image"


POINTS: Final[Mapping[MeasureKind, int]] = MappingProxyType(
    {
        MeasureKind.RULER: 2,
        MeasureKind.CROSS: 4,
        MeasureKind.ELLIPSE: 3,
        MeasureKind.ANGLE: 3,
        MeasureKind.ARROW: 2,
        MeasureKind.KEY_IMAGE: 1,
    }
)
"""Number of points of each kind of measurement. In order, these are: both ends; both ends of each
of
two diameters; the centre and the ends of two half axes; an end, the apex, the other end; the tail
and the tip; a point in the image.
"""

PLANES: Final[tuple[Plane, ...]] = ("axial", "sagittal", "coronal")

_FARTHEST_MM: Final = 10_000.0
"""Largest plausible coordinate in mm; no scanner is larger."""
_MOST_TEXT: Final = 500


@dataclass(frozen=True, slots=True)
class Measurement:
    """One measurement made by a reader.

    Parameters
    ----------
    points_mm
        The points in RAS mm; `POINTS` defines their number.
    plane
        The plane in which the measurement was drawn.
    phase
        The index of the displayed phase; None if no single phase was displayed.
    lesion
        The number of the lesion, or "".
    text
        A short comment by the reader.
    measurement_id, created
        The id and the time, which are set when the measurement is saved and are "" before.

    Raises
    ------
    ArgumentError
        If there are too few or too many points, or a point cannot be in a patient.
    """

    case_id: str
    kind: MeasureKind
    points_mm: tuple[PointMm, ...]
    plane: Plane
    phase: int | None = None
    lesion: str = ""
    text: str = ""
    reader: str = ""
    measurement_id: str = ""
    created: str = ""

    def __post_init__(self) -> None:
        if len(self.points_mm) != POINTS[self.kind]:
            raise ArgumentError(
                f"expected {count_of(POINTS[self.kind], 'point')} for a {self.kind}, but got "
                f"{len(self.points_mm)}: draw the measurement again"
            )
        for point in self.points_mm:
            if len(point) != 3 or not all(
                math.isfinite(mm) and abs(mm) <= _FARTHEST_MM for mm in point
            ):
                raise ArgumentError(
                    f"expected points in patient coordinates (RAS, mm), within {_FARTHEST_MM:g} "
                    f"mm, but got {point}: draw the measurement again"
                )
        if self.plane not in PLANES:
            raise ArgumentError(
                f"expected the plane to be one of {', '.join(PLANES)}, but got {self.plane!r}: "
                "draw the measurement again"
            )
        if self.phase is not None and self.phase < 0:
            raise ArgumentError(
                f"expected the phase to be 0 or above, but got {self.phase}: draw "
                "the measurement again"
            )
        if len(self.text) > _MOST_TEXT:
            raise ArgumentError(
                f"expected the text of a measurement to have at most {_MOST_TEXT} characters, but "
                f"it has {len(self.text)}: shorten the text"
            )
