"""Position of a lesion in its breast: side, quadrant, clock face and depth.

The clock position is the position of the lesion's centre around the nipple in the coronal plane, as
seen facing the patient. The outer side is 9 o'clock on the right and 3 o'clock on the left, and the
quadrants follow from it. The terms come from the lexicon; the rules that derive a term from the
positions are our choice (`docs/methods/forms.md`). The reader enters values that cannot be derived.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from napari_mamamia.core.answers import (
    CaseFacts,
    Landmark,
    Landmarks,
    LesionFacts,
    PointMm,
    Side,
)

NEAR_MIDLINE_MM: Final = 10.0
"""Distance from the midline in mm below which a centre is assigned to neither side. Our choice."""
LEAST_RADIUS_MM: Final = 10.0
"""Distance from the nipple's axis in mm below which clock and quadrant are not filled in.

Our choice: at 10 mm, a nipple marked 3 mm off shifts the clock position by half an hour.
"""
SAME_LESION_MM: Final = 10.0
"""Distance in mm within which a moved centre still belongs to the same lesion.

A centre that moves by less than the lesion's longest diameter also belongs to the same lesion. Our
choice.
"""
_OTHER: Final = {Side.RIGHT: Side.LEFT, Side.LEFT: Side.RIGHT}
_HOURS: Final[Mapping[str, tuple[int, ...]]] = {
    "UO": (9, 10, 11, 12),
    "UI": (12, 1, 2, 3),
    "LI": (3, 4, 5, 6),
    "LO": (6, 7, 8, 9),
}
"""Clock positions in each quadrant of the right breast.

A position between two quadrants belongs to both.
"""


def list_hours(side: str, quadrant: str) -> tuple[str, ...]:
    """Return the clock positions in a quadrant of a breast, or none if the quadrant has no hours.

    Examples
    --------
    >>> list_hours("right", "UO"), list_hours("left", "UO")
    (('9', '10', '11', '12'), ('12', '1', '2', '3'))
    """
    hours = _HOURS.get(quadrant, ())
    if side == Side.LEFT:
        hours = tuple((12 - hour) or 12 for hour in reversed(hours))
    elif side != Side.RIGHT:
        return ()
    return tuple(map(str, hours))


def place_lesions(facts: CaseFacts, landmarks: Landmarks) -> CaseFacts:
    """Return the case facts with each lesion's position, or the reason why it is unknown.

    The side is determined from the midpoint between the nipples if both are marked, otherwise from
    the middle of the volume. If the volume may contain a single breast and one nipple is marked,
    the nipple determines the side. Implausible landmarks (the right nipple left of the left one, or
    in the left half of the volume) are reported and not used. If the exam is of the other breast,
    the reader must decide which of the two is wrong, and no side is filled in.
    """
    problem = _find_problem(facts, landmarks)
    usable = Landmarks() if problem else landmarks
    is_other = _find_other_breast(facts, landmarks) is not None
    parts = (replace(lesion, side=None) if is_other else lesion for lesion in facts.lesions or ())
    lesions = tuple(_place_lesion(one, facts, usable) for one in parts)
    remarks = (problem,) if problem else tuple(dict.fromkeys(_list_remarks(lesions, facts, usable)))
    return replace(facts, lesions=None if facts.lesions is None else lesions, remarks=remarks)


def _find_problem(facts: CaseFacts, landmarks: Landmarks) -> str:
    if other := _find_other_breast(facts, landmarks):
        return (
            f"The {other} nipple is marked, but this exam is of the {_OTHER[other]} breast, "
            "according to the clinical table or the position in the scanner: mark the nipple "
            "again, or enter the side yourself."
        )
    right = landmarks.find(Landmark.NIPPLE, Side.RIGHT)
    left = landmarks.find(Landmark.NIPPLE, Side.LEFT)
    if right and left:
        return (
            "" if right[0] > left[0] else "The right and left nipples are swapped: mark them again."
        )
    for side, point in ((Side.RIGHT, right), (Side.LEFT, left)):
        if point and facts.midline_x_mm is not None:
            outward = _measure_outward(point[0] - facts.midline_x_mm, side)
            if outward <= -NEAR_MIDLINE_MM:
                where = f"the {_OTHER[side]} half of the volume"
                return f"The {side} nipple is marked in {where}: mark the nipple again."
    return ""


def _find_other_breast(facts: CaseFacts, landmarks: Landmarks) -> Side | None:
    if len(facts.sides) != 1:
        return None
    other = _OTHER[facts.sides[0]]
    return None if landmarks.find(Landmark.NIPPLE, other) is None else other


def _measure_outward(x_mm: float, side: Side) -> float:
    return x_mm if side is Side.RIGHT else -x_mm


def _place_lesion(lesion: LesionFacts, facts: CaseFacts, landmarks: Landmarks) -> LesionFacts:
    side = _find_side(lesion, facts, landmarks)
    plain = replace(lesion, side=side, quadrant="", clock="", depth="", to_nipple_mm=None)
    nipple = None if side is None else landmarks.find(Landmark.NIPPLE, side)
    if side is None or nipple is None or lesion.centre_mm is None:
        return plain
    outward, up = _measure_radius(lesion.centre_mm, nipple, side)
    is_behind = math.hypot(outward, up) < LEAST_RADIUS_MM
    return replace(
        plain,
        quadrant="" if is_behind else find_quadrant(outward, up),
        clock="" if is_behind else str(find_hour(side, outward, up)),
        depth=find_depth(lesion.centre_mm, nipple, landmarks.find(Landmark.CHEST_WALL, side)),
        to_nipple_mm=math.dist(lesion.centre_mm, nipple),
    )


def _measure_radius(centre: PointMm, nipple: PointMm, side: Side) -> tuple[float, float]:
    return _measure_outward(centre[0] - nipple[0], side), centre[2] - nipple[2]


def _find_side(lesion: LesionFacts, facts: CaseFacts, landmarks: Landmarks) -> Side | None:
    nipples = {side: landmarks.find(Landmark.NIPPLE, side) for side in (Side.RIGHT, Side.LEFT)}
    marked = [(side, point) for side, point in nipples.items() if point is not None]
    if len(marked) == 2 and lesion.centre_mm is not None:
        middle = (marked[0][1][0] + marked[1][1][0]) / 2
        offset = lesion.centre_mm[0] - middle
        if abs(offset) < NEAR_MIDLINE_MM:
            return None
        return Side.RIGHT if offset > 0 else Side.LEFT
    if len(marked) == 1 and facts.is_one_breast:
        return marked[0][0]
    return lesion.side


def find_hour(side: Side, outward_mm: float, up_mm: float) -> int:
    """Return the clock position nearest to a direction, 1 to 12, as seen facing the patient.

    Halfway between two hours, the later hour is returned. The outward direction is 9 on the right
    breast and 3 on the left breast.

    Examples
    --------
    >>> find_hour(Side.RIGHT, 30.0, 0.0), find_hour(Side.LEFT, 30.0, 0.0)
    (9, 3)
    """
    to_viewers_right = outward_mm if side is Side.LEFT else -outward_mm
    degrees = math.degrees(math.atan2(to_viewers_right, up_mm)) % 360
    return int((degrees + 15) // 30) % 12 or 12


def find_quadrant(outward_mm: float, up_mm: float) -> str:
    """Return the quadrant (UO, UI, LO or LI), or "" on the line between two quadrants.

    Central, subareolar and axillary tail are never returned, because no verifiable source defines
    them.
    """
    if not outward_mm or not up_mm:
        return ""
    return ("U" if up_mm > 0 else "L") + ("O" if outward_mm > 0 else "I")


def find_depth(centre: PointMm, nipple: PointMm, chest_wall: PointMm | None) -> str:
    """Return the depth: the anterior, middle or posterior third from nipple to chest wall.

    The result is "" if the chest wall is not marked or not behind the nipple, or if the centre is
    not between nipple and chest wall. Distances are measured only along y (RAS). The thirds are our
    choice.
    """
    if chest_wall is None or nipple[1] <= chest_wall[1]:
        return ""
    share = (nipple[1] - centre[1]) / (nipple[1] - chest_wall[1])
    if not 0 <= share <= 1:
        return ""
    return "anterior" if share < 1 / 3 else "middle" if share <= 2 / 3 else "posterior"


def _list_remarks(
    lesions: Iterable[LesionFacts], facts: CaseFacts, landmarks: Landmarks
) -> Iterator[str]:
    for lesion in lesions:
        if lesion.centre_mm is None:
            continue
        if lesion.side is None and facts.is_one_breast:
            yield (
                "The volume contains one breast; its side and the clock position are unknown "
                "until the nipple is marked."
            )
        elif lesion.side is None:
            yield f"Lesion {lesion.name} is near the midline, so its side is unknown."
        elif landmarks.find(Landmark.NIPPLE, lesion.side) is None:
            yield f"The {lesion.side} nipple is not marked, so the clock position is unknown."
        elif not lesion.clock:
            yield (
                f"Lesion {lesion.name} is behind the nipple: enter clock position and quadrant "
                "yourself."
            )


def keep_names(facts: CaseFacts, described: Mapping[str, PointMm]) -> CaseFacts:
    """Return the case facts, with the numbers that the lesions had when they were described.

    The lesions of a changed mask may be in a different order, but answers stay with their lesion. A
    lesion that is not close to any of `described` gets the smallest free number. The number of a
    described lesion that was removed is not reused.

    Parameters
    ----------
    facts
        The case with its lesions.
    described
        Centre of each described lesion by number, at the time of description.
    """
    lesions = facts.lesions or ()
    pairs = sorted(
        (math.dist(lesion.centre_mm, point), index, name)
        for index, lesion in enumerate(lesions)
        for name, point in described.items()
        if lesion.centre_mm is not None
    )
    names: dict[int, str] = {}
    for apart_mm, at, name in pairs:
        reach_mm = max(SAME_LESION_MM, lesions[at].longest_in_plane_mm or 0.0)
        if apart_mm < reach_mm and at not in names and name not in names.values():
            names[at] = name
    taken = {*described, *names.values()}
    free = (str(number) for number in range(1, len(lesions) + len(taken) + 1))
    unused = (name for name in free if name not in taken)
    named = (
        replace(lesion, name=names[index] if index in names else next(unused))
        for index, lesion in enumerate(lesions)
    )
    return facts if facts.lesions is None else replace(facts, lesions=tuple(named))
