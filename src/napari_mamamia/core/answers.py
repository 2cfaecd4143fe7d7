"""What somebody answered on a form, of which place, and what was measured to hold it against."""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

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
class Answers:
    """Answers on one form, each question of each place at most once.

    `form`, `edition` and `sha256` name the form that they were given on; "" for a new one.
    """

    items: tuple[Answer, ...] = ()
    form: str = ""
    edition: str = ""
    sha256: str = ""

    def find(self, field_id: str, place: Place = WHOLE_CASE) -> Answer | None:
        """Return the answer to a question of a place, also one that was taken away."""
        return next(
            (one for one in self.items if one.field == field_id and one.place == place), None
        )

    def put(self, answer: Answer) -> "Answers":
        """Return these with one more, in place of what stood there."""
        where = (answer.field, answer.place)
        items = [one for one in self.items if (one.field, one.place) != where]
        return replace(self, items=(*items, answer))

    def leave_out(self, place: Place) -> "Answers":
        """Return these without all that was said of a place: a lesion that is none."""
        return replace(self, items=tuple(one for one in self.items if one.place != place))


@dataclass(frozen=True, slots=True)
class LesionFacts:
    """What was measured of one lesion of the mask; `name` is its number, "1" the largest.

    `rise` and `course` are words of the curve's classes, "" where undefined; `voxel` (z, y, x) is
    one of its voxels, None for none.
    """

    name: str
    side: Side | None = None
    volume_mm3: float | None = None
    longest_in_plane_mm: float | None = None
    rise: str = ""
    course: str = ""
    voxel: tuple[int, int, int] | None = None


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
    """

    lesions: tuple[LesionFacts, ...] | None = None
    sides: tuple[Side, ...] = (Side.RIGHT, Side.LEFT)
    is_one_breast: bool = False

    @property
    def without_numbers(self) -> "CaseFacts":
        """What a blind reading that hides numbers may be shown: where lesions lie, nothing more."""
        lesions = self.lesions
        if lesions is not None:
            lesions = tuple(LesionFacts(one.name, one.side, voxel=one.voxel) for one in lesions)
        return replace(self, lesions=lesions)

    def lesion(self, name: str) -> LesionFacts | None:
        """Return the lesion of a number."""
        return next((one for one in self.lesions or () if one.name == name), None)


NOTHING_KNOWN: Final = CaseFacts()
