"""Quality control of masks: what is known of a case's disagreement, and the order of reading."""

import math
from dataclasses import dataclass
from typing import Final

from napari_mamamia.core.errors import CaseError

RANDOM_SHARE: Final = 0.1
"""Of the cases, read first and at random; our choice."""


@dataclass(frozen=True, slots=True)
class QualityCase:
    """What is known of a case's disagreement; nan, None and "" where it is not.

    Parameters
    ----------
    dice, hd95_mm
        Of model and reference; a Dice that is not defined as one mask is empty counts as 0.
    n_missed
        Lesions of the reference that the model does not touch.
    is_other_side
        Whether they lie in different breasts.
    count_gap
        By how many the numbers of lesions differ.
    doubt
        Of the model; the larger the less sure, whatever its unit.
    touches_border
        Whether the reference touches the border of the image.
    volume_mm3, site
        Of the reference; a volume is held against those of its site.
    remark
        Why the case has no numbers, such as "unreadable".
    """

    case_id: str
    dice: float = math.nan
    n_missed: float = math.nan
    is_other_side: bool | None = None
    count_gap: float = math.nan
    hd95_mm: float = math.nan
    doubt: float = math.nan
    touches_border: bool | None = None
    volume_mm3: float = math.nan
    site: str = ""
    remark: str = ""


@dataclass(frozen=True, slots=True)
class QueuePlace:
    """A case's place in the queue.

    Parameters
    ----------
    is_random
        Whether it is of the random part, which is read first.
    rank
        Its place by disagreement alone among all cases, from 1.
    draw
        Its place in the random order of all cases, from 1: the random part is the first of it.
    why
        What is known of it, in words.
    """

    case_id: str
    is_random: bool
    rank: int
    draw: int
    why: str = ""


@dataclass(frozen=True, slots=True)
class Queue:
    """The order in which cases are looked at, and what it was drawn by.

    Raises
    ------
    CaseError
        If there is no case, one is there twice, or the two orders are not those of all cases.
    """

    places: tuple[QueuePlace, ...]
    seed: int
    random_share: float = RANDOM_SHARE

    def __post_init__(self) -> None:
        numbers = list(range(1, len(self.places) + 1))
        orders = (
            sorted(place.rank for place in self.places),
            sorted(place.draw for place in self.places),
        )
        ids = {place.case_id for place in self.places}
        if not numbers or len(ids) < len(numbers) or any(order != numbers for order in orders):
            raise CaseError(
                f"expected each case of a queue once, with a rank and a draw of its own, got "
                f"{len(numbers)} place(s) of {len(ids)} case(s): make the queue again"
            )

    @property
    def n_random(self) -> int:
        """How many cases the random part has."""
        return sum(place.is_random for place in self.places)
