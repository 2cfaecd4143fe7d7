"""Answers to the questions of a form, and the measured facts against which they are checked."""

from dataclasses import dataclass, replace
from enum import StrEnum
from math import isfinite
from typing import Final, TypeAlias

from napari_mamamia.core.errors import ArgumentError
from napari_mamamia.core.form import FieldScope


class Side(StrEnum):
    """A breast of the patient, or the side of a lesion."""

    RIGHT = "right"
    LEFT = "left"
    BOTH = "both"


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """The subject of an answer: the case, a breast or a lesion.

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
                f"lesion, but got {self.name!r} for a {self.scope}: correct the name"
            )


WHOLE_CASE: Final = Place()

PointMm: TypeAlias = tuple[float, float, float]
"""A point in the patient in RAS mm (x to the right, y to the front, z to the head)."""
_FARTHEST_MM: Final = 10_000.0
Voxel: TypeAlias = tuple[int, int, int]
"""Indices of a voxel in its volume, (z, y, x)."""


class Landmark(StrEnum):
    """A landmark of the breast that a reader marks because the program cannot detect it."""

    NIPPLE = "nipple"
    CHEST_WALL = "chest-wall"


@dataclass(frozen=True, slots=True)
class MarkedPoint:
    """A landmark of a breast as marked by a reader; `point` is None if the reader removed it.

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
                f"expected the {self.landmark} of one breast, but got both: name one breast"
            )
        if point is not None and not (
            len(point) == 3 and all(isfinite(mm) and abs(mm) < _FARTHEST_MM for mm in point)
        ):
            raise ArgumentError(
                f"expected a point (x, y, z) in mm, but got {point}: mark the point again"
            )


@dataclass(frozen=True, slots=True)
class Landmarks:
    """The marked landmarks of a case, at most one of each kind per breast."""

    points: tuple[MarkedPoint, ...] = ()

    def find(self, landmark: Landmark, side: Side) -> PointMm | None:
        """Return the position of a landmark of a breast, or None if it was not marked."""
        points = (
            point for point in self.points if (point.landmark, point.side) == (landmark, side)
        )
        return next((point.point_mm for point in points), None)

    def put(self, point: MarkedPoint) -> "Landmarks":
        """Return a copy with `point` added, replacing an earlier point of the same landmark."""
        where = (point.landmark, point.side)
        others = [point for point in self.points if (point.landmark, point.side) != where]
        return Landmarks((*others, point) if point.point_mm is not None else tuple(others))


NOTHING_MARKED: Final = Landmarks()


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer to a question: ids of terms, a number as decimal text, or free text.

    Empty `values` mean that a reader removed the answer, which the program then does not compute
    again.
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
    """The answers on one form, at most one for each question and subject.

    `form`, `edition` and `sha256` identify the answered form; they are "" for a new form. `anchors`
    define the number of each lesion of the mask; without anchors, the largest lesion is "1".
    """

    items: tuple[Answer, ...] = ()
    form: str = ""
    edition: str = ""
    sha256: str = ""
    anchors: tuple[LesionAnchors, ...] = ()

    def find(self, field_id: str, place: Place = WHOLE_CASE) -> Answer | None:
        """Return the answer to a question about a subject, including a removed answer."""
        return next(
            (item for item in self.items if item.field == field_id and item.place == place), None
        )

    def put(self, answer: Answer) -> "Answers":
        """Return a copy with `answer` added, replacing an earlier answer to the question."""
        where = (answer.field, answer.place)
        items = [item for item in self.items if (item.field, item.place) != where]
        return replace(self, items=(*items, answer))

    def leave_out(self, place: Place) -> "Answers":
        """Return a copy without the answers about a subject, such as a rejected lesion."""
        items = tuple(item for item in self.items if item.place != place)
        anchors = tuple(anchor for anchor in self.anchors if anchor.name != place.name)
        return replace(self, items=items, anchors=anchors)

    @property
    def lesions(self) -> frozenset[str]:
        """Numbers of the lesions that have an answer, including computed answers."""
        places = (item.place for item in self.items)
        return frozenset(one.name for one in places if one.scope is FieldScope.LESION)

    @property
    def described(self) -> frozenset[str]:
        """Numbers of the lesions for which a reader gave or removed an answer."""
        lesions = (item for item in self.items if item.place.scope is FieldScope.LESION)
        return frozenset(lesion.place.name for lesion in lesions if not lesion.is_computed)


@dataclass(frozen=True, slots=True)
class LesionFacts:
    """Measurements of one lesion of the mask, identified by its number `name`.

    The largest lesion initially has the number "1". `rise` and `course` are the classes of its
    curve, or "" if undefined. `voxel` (z, y, x) is the voxel to navigate to, or None. `quadrant`,
    `clock` and `depth` are ids of the lexicon, or "" if unknown; `place_lesions` derives them and
    `to_nipple_mm` from the landmarks. `anchors` identify the lesion in a changed mask; see
    `reviewing.lesion_numbers`.
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
    """Measured facts with which the answers on a form are checked.

    Parameters
    ----------
    lesions
        The lesions of the mask. Without a mask it is None, and the answers are not checked against
        a mask.
    sides
        The breasts to which the questions apply.
    is_one_breast
        Whether the volume may show only one breast; answers about one side are then sufficient.
    midline_x_mm
        The patient's midline as x in RAS mm; None if it is unknown.
    remarks
        The reasons why a lesion's position in the breast is unknown.
    joined
        The numbers of lesions that merged with a second lesion, with the number of the second
        lesion.
    parted
        The numbers of lesions that split from a second lesion, with the number of the second
        lesion.
    """

    lesions: tuple[LesionFacts, ...] | None = None
    sides: tuple[Side, ...] = (Side.RIGHT, Side.LEFT)
    is_one_breast: bool = False
    midline_x_mm: float | None = None
    remarks: tuple[str, ...] = ()
    joined: tuple[tuple[str, str], ...] = ()
    parted: tuple[tuple[str, str], ...] = ()

    def lesion(self, name: str) -> LesionFacts | None:
        """Return the lesion with a given number, or None."""
        return next((lesion for lesion in self.lesions or () if lesion.name == name), None)


NOTHING_KNOWN: Final = CaseFacts()
