"""Answers to the questions of a form, and the measured facts that they are checked against."""

from dataclasses import dataclass, replace
from enum import StrEnum
from math import isfinite
from typing import Final, TypeAlias

from napari_mamamia.core.errors import ArgumentError
from napari_mamamia.core.form import FieldScope


class Side(StrEnum):
    """A breast of the patient, or the side on which a lesion lies."""

    RIGHT = "right"
    LEFT = "left"
    BOTH = "both"


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """The subject of an answer.

    `name` is "" for the case, the side for a breast, and the number for a lesion.
    """

    scope: FieldScope = FieldScope.CASE
    name: str = ""

    def __post_init__(self) -> None:
        is_breast = self.name in (Side.RIGHT, Side.LEFT)
        if (self.scope is FieldScope.CASE) is bool(self.name) or (
            is_breast is not (self.scope is FieldScope.BREAST)
        ):
            raise ArgumentError(
                "expected no name for the case, right or left for a breast, and a number for a "
                f"lesion, got {self.name!r} for a {self.scope}: correct the name"
            )


WHOLE_CASE: Final = Place()

PointMm: TypeAlias = tuple[float, float, float]
"""A point in the patient, RAS mm (x to the right, y to the front, z to the head)."""
_FARTHEST_MM: Final = 10_000.0
Voxel: TypeAlias = tuple[int, int, int]
"""Indices of a voxel in its volume, (z, y, x)."""


class Landmark(StrEnum):
    """A point of a breast that a reader marks, because the program does not detect it."""

    NIPPLE = "nipple"
    CHEST_WALL = "chest-wall"


@dataclass(frozen=True, slots=True)
class MarkedPoint:
    """A landmark of a breast, marked by a reader; its point is None if the reader removed it.

    Raises
    ------
    ArgumentError
        If `side` is not a single breast, or the point is not within 10 m of the scanner's centre.
    """

    landmark: Landmark
    side: Side
    point_mm: PointMm | None

    def __post_init__(self) -> None:
        point = self.point_mm
        if self.side is Side.BOTH:
            raise ArgumentError(
                f"expected the {self.landmark} of one breast, got both: name one breast"
            )
        if point is not None and not (
            len(point) == 3 and all(isfinite(mm) and abs(mm) < _FARTHEST_MM for mm in point)
        ):
            raise ArgumentError(f"expected a point (x, y, z) in mm, got {point}: mark it again")


@dataclass(frozen=True, slots=True)
class Landmarks:
    """The marked landmarks of a case, each landmark of each breast at most once."""

    points: tuple[MarkedPoint, ...] = ()

    def find(self, landmark: Landmark, side: Side) -> PointMm | None:
        """Return the position of a landmark of a breast; None if nobody marked it."""
        points = (
            point for point in self.points if (point.landmark, point.side) == (landmark, side)
        )
        return next((point.point_mm for point in points), None)

    def put(self, point: MarkedPoint) -> "Landmarks":
        """Return a copy with `point` added; it replaces an earlier point of the same landmark."""
        where = (point.landmark, point.side)
        others = [point for point in self.points if (point.landmark, point.side) != where]
        return Landmarks((*others, point) if point.point_mm is not None else tuple(others))


NOTHING_MARKED: Final = Landmarks()


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer: ids of terms, one number as decimal text, or one text.

    Empty `values` mean that a reader removed the answer: the program does not fill it in again.
    """

    field: str
    values: tuple[str, ...]
    place: Place = WHOLE_CASE
    is_computed: bool = False


@dataclass(frozen=True, slots=True)
class LesionAnchors:
    """The number of a lesion and some of its voxels, which identify it in a changed mask."""

    name: str
    voxels: tuple[Voxel, ...]


@dataclass(frozen=True, slots=True)
class Answers:
    """Answers on one form, at most one for each question and place.

    `form`, `edition` and `sha256` identify the answered form; they are "" for a new one. `anchors`
    give the number of each lesion of the mask; without anchors the largest lesion is "1".
    """

    items: tuple[Answer, ...] = ()
    form: str = ""
    edition: str = ""
    sha256: str = ""
    anchors: tuple[LesionAnchors, ...] = ()

    def find(self, field_id: str, place: Place = WHOLE_CASE) -> Answer | None:
        """Return the answer to a question about a place, including a removed answer."""
        return next(
            (item for item in self.items if item.field == field_id and item.place == place), None
        )

    def put(self, answer: Answer) -> "Answers":
        """Return a copy with `answer` added, replacing an earlier answer to the question."""
        where = (answer.field, answer.place)
        items = [item for item in self.items if (item.field, item.place) != where]
        return replace(self, items=(*items, answer))

    def leave_out(self, place: Place) -> "Answers":
        """Return a copy without the answers about a place, such as a lesion that was rejected."""
        items = tuple(item for item in self.items if item.place != place)
        anchors = tuple(anchor for anchor in self.anchors if anchor.name != place.name)
        return replace(self, items=items, anchors=anchors)

    @property
    def lesions(self) -> frozenset[str]:
        """Numbers of the lesions that have an answer, including those filled in by the program."""
        places = (item.place for item in self.items)
        return frozenset(one.name for one in places if one.scope is FieldScope.LESION)

    @property
    def described(self) -> frozenset[str]:
        """Numbers of the lesions for which a reader gave or removed an answer."""
        lesions = (item for item in self.items if item.place.scope is FieldScope.LESION)
        return frozenset(lesion.place.name for lesion in lesions if not lesion.is_computed)


@dataclass(frozen=True, slots=True)
class LesionFacts:
    """Measurements of one lesion of the mask; `name` is its number ("1" is the largest at first).

    `rise` and `course` are the classes of its curve, "" where undefined; `voxel` (z, y, x) is the
    voxel to navigate to, None for none. `quadrant`, `clock` and `depth` are ids of the lexicon, ""
    where not known: `place_lesions` derives them and `to_nipple_mm` from the landmarks. `anchors`
    identify the lesion in a changed mask, see `reviewing.lesion_numbers`.
    """

    name: str
    side: Side | None = None
    volume_mm3: float | None = None
    longest_in_plane_mm: float | None = None
    rise: str = ""
    course: str = ""
    voxel: Voxel | None = None
    centre_mm: PointMm | None = None
    quadrant: str = ""
    clock: str = ""
    depth: str = ""
    to_nipple_mm: float | None = None
    anchors: tuple[Voxel, ...] = ()


@dataclass(frozen=True, slots=True)
class CaseFacts:
    """Facts that a form is checked against: the lesions of the mask and the breasts in view.

    Parameters
    ----------
    lesions
        None if there is no mask; the answers are then not checked against a mask.
    sides
        The breasts that questions are asked about.
    is_one_breast
        Whether the volume may hold a single breast: then answers about one side are enough.
    midline_x_mm
        The patient's midline as x in RAS mm; None if it is not known.
    remarks
        Reasons why the position in the breast is not known.
    joined
        Numbers of lesions that merged with another lesion, with the number of that lesion.
    parted
        Numbers of lesions that split from another lesion, with the number of that lesion.
    """

    lesions: tuple[LesionFacts, ...] | None = None
    sides: tuple[Side, ...] = (Side.RIGHT, Side.LEFT)
    is_one_breast: bool = False
    midline_x_mm: float | None = None
    remarks: tuple[str, ...] = ()
    joined: tuple[tuple[str, str], ...] = ()
    parted: tuple[tuple[str, str], ...] = ()

    def lesion(self, name: str) -> LesionFacts | None:
        """Return the lesion with a given number, None if there is none."""
        return next((lesion for lesion in self.lesions or () if lesion.name == name), None)


NOTHING_KNOWN: Final = CaseFacts()
