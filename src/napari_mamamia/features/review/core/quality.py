"""Data classes of quality control: the disagreement in each case, and the reading order."""

import math
from dataclasses import dataclass
from typing import Final

from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.names import count_of

RANDOM_SHARE: Final = 0.1
"""Fraction of the cases that are read first, in random order (our choice)."""


@dataclass(frozen=True, slots=True)
class QualityCase:
    """The disagreement between model and reference in one case; unknown values are NaN, None or "".

    Parameters
    ----------
    dice, hd95_mm
        Dice and HD95 between model and reference. If Dice is undefined because one mask is empty,
        it counts as 0.
    n_missed
        Number of reference lesions that the model's mask does not overlap.
    is_other_side
        Whether model and reference are in different breasts.
    count_gap
        Difference between the numbers of lesions in model and reference.
    doubt
        Uncertainty of the model in any unit; a larger value is less certain.
    touches_border
        Whether the reference touches the border of the image.
    volume_mm3, site
        Volume of the reference, which is compared with other volumes from the same site, and the
        site.
    remark
        Why the case has no metrics, such as "unreadable".
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
    """The position of a case in the reading queue.

    Parameters
    ----------
    is_random
        Whether the case belongs to the random part, which is read first.
    rank
        Rank by disagreement among all cases, from 1.
    draw
        Position in the random order of all cases, from 1; the first cases form the random part.
    why
        The reasons as text.
    """

    case_id: str
    is_random: bool
    rank: int
    draw: int
    why: str = ""


@dataclass(frozen=True, slots=True)
class Queue:
    """The order in which cases are read, with the values that determine this order.

    Raises
    ------
    CaseError
        If there is no case, a case occurs twice, or ranks and draws are not 1 to the number of
        cases.
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
                "expected each case in a queue once, with a unique rank and draw, but found "
                f"{count_of(len(numbers), 'position')} for {count_of(len(ids), 'case')}: create "
                "the queue again"
            )

    @property
    def n_random(self) -> int:
        """The number of cases in the random part."""
        return sum(place.is_random for place in self.places)
