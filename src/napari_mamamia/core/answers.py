"""What somebody answered on a form, of which place, and what was measured to hold it against."""

from dataclasses import dataclass, replace
from enum import StrEnum
from math import isfinite
from typing import Final, TypeAlias

from napari_mamamia.core.errors import ArgumentError
from napari_mamamia.core.form import FieldScope


class Side(StrEnum):
    """A breast of the patient; also what a lesion's mask lies in."""

    RIGHT = "right"
    LEFT = "left"
    BOTH = "both"


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """What an answer is about: `name` is "" for the case, a breast's side, a lesion's number."""

    scope: FieldScope = FieldScope.CASE
    name: str = ""

    def __post_init__(self) -> None:
        is_breast = self.name in (Side.RIGHT, Side.LEFT)
        if (self.scope is FieldScope.CASE) is bool(self.name) or (
            is_breast is not (self.scope is FieldScope.BREAST)
        ):
            raise ArgumentError(
                f"expected no name for the case, right or left for a breast and a number for a "
                f"lesion, got {self.name!r} for a {self.scope}: name the place so"
            )


WHOLE_CASE: Final = Place()

PointMm: TypeAlias = tuple[float, float, float]
"""A place in the patient, RAS mm (x to the right, y to the front, z to the head)."""
_FARTHEST_MM: Final = 10_000.0
Voxel: TypeAlias = tuple[int, int, int]
"""A voxel's place in its volume, (z, y, x)."""


class Landmark(StrEnum):
    """A place of a breast that somebody marks, because the program does not look for it."""

    NIPPLE = "nipple"
    CHEST_WALL = "chest-wall"


@dataclass(frozen=True, slots=True)
class MarkedPoint:
    """A landmark of a breast where somebody marked it; None where the mark was taken away.

    Raises
    ------
    ArgumentError
        If the breast is not one, or the point is none within 10 m of the scanner's centre.
    """

    landmark: Landmark
    side: Side
    point_mm: PointMm | None

    def __post_init__(self) -> None:
        point = self.point_mm
        if self.side is Side.BOTH:
            raise ArgumentError(f"expected a {self.landmark} of one breast, got both: name one")
        if point is not None and not (
            len(point) == 3 and all(isfinite(mm) and abs(mm) < _FARTHEST_MM for mm in point)
        ):
            raise ArgumentError(f"expected a point (x, y, z) in mm, got {point}: mark it again")


@dataclass(frozen=True, slots=True)
class Landmarks:
    """What is marked of a case, each landmark of each breast at most once."""

    points: tuple[MarkedPoint, ...] = ()

    def find(self, landmark: Landmark, side: Side) -> PointMm | None:
        """Return where a landmark of a breast is; None where nobody marked it."""
        points = (
            point for point in self.points if (point.landmark, point.side) == (landmark, side)
        )
        return next((point.point_mm for point in points), None)

    def put(self, point: MarkedPoint) -> "Landmarks":
        """Return these with one more, in place of what stood there."""
        where = (point.landmark, point.side)
        others = [point for point in self.points if (point.landmark, point.side) != where]
        return Landmarks((*others, point) if point.point_mm is not None else tuple(others))


NOTHING_MARKED: Final = Landmarks()


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer: ids of terms, or one number as decimal text, or one text.

    Empty `values` are an answer that somebody took away: nothing is filled in there again.
    """

    field: str
    values: tuple[str, ...]
    place: Place = WHOLE_CASE
    is_computed: bool = False


@dataclass(frozen=True, slots=True)
class LesionAnchors:
    """Some voxels of a lesion, by which it is known again: its number, and where they are."""

    name: str
    voxels: tuple[Voxel, ...]


@dataclass(frozen=True, slots=True)
class Answers:
    """Answers on one form, each question of each place at most once.

    `form`, `edition` and `sha256` name the form that they were given on; "" for a new one.
    `anchors` say which lesion of the mask has which number; without them the largest is "1".
    """

    items: tuple[Answer, ...] = ()
    form: str = ""
    edition: str = ""
    sha256: str = ""
    anchors: tuple[LesionAnchors, ...] = ()

    def find(self, field_id: str, place: Place = WHOLE_CASE) -> Answer | None:
        """Return the answer to a question of a place, also one that was taken away."""
        return next(
            (item for item in self.items if item.field == field_id and item.place == place), None
        )

    def put(self, answer: Answer) -> "Answers":
        """Return these with one more, in place of what stood there."""
        where = (answer.field, answer.place)
        items = [item for item in self.items if (item.field, item.place) != where]
        return replace(self, items=(*items, answer))

    def leave_out(self, place: Place) -> "Answers":
        """Return these without all that was said of a place: a lesion that is none."""
        items = tuple(item for item in self.items if item.place != place)
        anchors = tuple(anchor for anchor in self.anchors if anchor.name != place.name)
        return replace(self, items=items, anchors=anchors)

    @property
    def lesions(self) -> frozenset[str]:
        """The numbers of the lesions that have an answer, also one that was filled in."""
        places = (item.place for item in self.items)
        return frozenset(one.name for one in places if one.scope is FieldScope.LESION)

    @property
    def described(self) -> frozenset[str]:
        """The numbers of the lesions of which somebody said something, or took it away."""
        lesions = (item for item in self.items if item.place.scope is FieldScope.LESION)
        return frozenset(lesion.place.name for lesion in lesions if not lesion.is_computed)


@dataclass(frozen=True, slots=True)
class LesionFacts:
    """What was measured of one lesion of the mask; `name` is its number, "1" the largest at first.

    `rise` and `course` are words of the curve's classes, "" where undefined; `voxel` (z, y, x) is
    the one of its voxels to look at, None for none. `quadrant`, `clock` and `depth` are ids of the
    lexicon, "" where not known: they and `to_nipple_mm` come with the landmarks, by
    `place_lesions`. By `anchors` it is known again in a mask that was changed, see
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
    """What a form is held against: the mask's lesions, and which breasts are in view.

    Parameters
    ----------
    lesions
        None where nothing is known of a mask: then nothing is held against it.
    sides
        Whose questions are asked.
    is_one_breast
        Whether the volume may hold one breast alone: then one side's answer is enough.
    midline_x_mm
        The patient's midline as x in RAS mm; None where it is not known.
    remarks
        Why a place in the breast is not known, in words.
    joined
        Numbers of lesions that grew into one with another, with the number of that one.
    parted
        Numbers of lesions that came off another, with the number of that one.
    """

    lesions: tuple[LesionFacts, ...] | None = None
    sides: tuple[Side, ...] = (Side.RIGHT, Side.LEFT)
    is_one_breast: bool = False
    midline_x_mm: float | None = None
    remarks: tuple[str, ...] = ()
    joined: tuple[tuple[str, str], ...] = ()
    parted: tuple[tuple[str, str], ...] = ()

    @property
    def without_numbers(self) -> "CaseFacts":
        """What a blind reading that hides numbers may be shown: where lesions lie, nothing more."""
        lesions = self.lesions
        if lesions is not None:
            lesions = tuple(
                LesionFacts(lesion.name, lesion.side, voxel=lesion.voxel, anchors=lesion.anchors)
                for lesion in lesions
            )
        return replace(self, lesions=lesions)

    def lesion(self, name: str) -> LesionFacts | None:
        """Return the lesion of a number."""
        return next((lesion for lesion in self.lesions or () if lesion.name == name), None)


NOTHING_KNOWN: Final = CaseFacts()
