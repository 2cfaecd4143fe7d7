"""Measure the lesions of a mask, to complete a form and to check the answers."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from napari_mamamia.core.answers import (
    CaseFacts,
    LesionAnchors,
    LesionFacts,
    PointMm,
    Side,
    Voxel,
)
from napari_mamamia.core.box import Box
from napari_mamamia.core.case import Case
from napari_mamamia.core.cohort import CaseRecord
from napari_mamamia.core.errors import CaseError, GridMismatchError
from napari_mamamia.core.form import Form
from napari_mamamia.core.grid import Grid
from napari_mamamia.findings.form_rules import fill_computed
from napari_mamamia.findings.form_values import parse_answers, record_answers
from napari_mamamia.findings.lesion_numbers import (
    follow_numbers,
    keep_anchors,
    pick_anchors,
    rank_name,
)
from napari_mamamia.kinetics.curves import DelayedCourse, InitialRise, region_contrast_curve
from napari_mamamia.kinetics.time_axis import TimingRule, rule_of
from napari_mamamia.scoring.case.failures import THRESHOLDS, midline_x_mm
from napari_mamamia.services.case.hanging import find_imaged_side
from napari_mamamia.services.case.show_case import middle_voxel
from napari_mamamia.services.kinetics.case_kinetics import diameters_mm

MOST_LESIONS: Final = 100
"""Maximum number of measured components of a mask, largest first. Our choice."""
LEAST_CURVE_MM3: Final = 65.0
LEAST_CURVE_VOXELS: Final = 3
"""Size of the smallest lesion whose curve is classified: a 5 mm sphere and 3 voxels.

A smaller enhancement is a focus, which is not described further. Source: BI-RADS 2013, MRI, focus
(under 5 mm) and region of interest (at least 3 pixels).
"""
_TOUCHING: Final = np.ones((3, 3, 3), dtype=np.bool_)


def find_breasts(grid: Grid, record: CaseRecord | None = None) -> CaseFacts:
    """Return the imaged breasts, the only fact that is known before a mask is drawn.

    Both sides are returned if the volume shows one breast whose side is known neither from the
    clinical data nor from its position in the scanner.
    """
    side = find_imaged_side(grid, record)
    if side == Side.BOTH:
        return CaseFacts(midline_x_mm=midline_x_mm(grid))
    sides = (Side(side),) if side else (Side.RIGHT, Side.LEFT)
    return CaseFacts(sides=sides, is_one_breast=True)


def measure_case(
    case: Case,
    mask: NDArray[np.bool_] | None,
    rule: TimingRule | None = None,
    before: Sequence[LesionAnchors] = (),
    record: CaseRecord | None = None,
) -> CaseFacts:
    """Return the numbered lesions of a mask with their side, sizes and curve classes.

    A lesion is a 26-connected component. Its side is the side of its centre relative to the middle
    of the volume, or None within 10 mm of the middle. In a volume of one breast, it is the side of
    that breast, or None if unknown. The classes describe the mean curve over the lesion, with
    phases as in `docs/methods/kinetics.md`. A class is "" if it is undefined, if the case has one
    phase or is not fully read, or if the lesion is smaller than `LEAST_CURVE_MM3` or
    `LEAST_CURVE_VOXELS`.

    Parameters
    ----------
    case
        The case.
    mask
        A boolean array ``(z, y, x)`` on the case's grid; None stands for an empty mask.
    rule
        The timing rule that selects the phases; None for the default rule of the case.
    before
        The anchors of lesions that already have numbers; without anchors, the largest lesion is
        "1".
    record
        The clinical data of the case, which may state the imaged breast.

    Raises
    ------
    GridMismatchError
        If the mask and the case differ in shape.
    """
    blank = replace(find_breasts(case.grid, record), lesions=())
    if mask is None:
        return blank
    if mask.shape != case.grid.shape:
        raise GridMismatchError(
            f"expected the mask to have the shape {case.grid.shape} (z, y, x) of case "
            f"{case.case_id}, but it has {mask.shape}: choose a mask of this case"
        )
    box = Box.around(mask)
    parts, n = ndimage.label(mask[box.slices], _TOUCHING)
    n_voxels = np.bincount(parts.ravel(), minlength=n + 1)[1:]
    largest = np.argsort(-n_voxels, kind="stable").tolist()
    held = {one.name: _find_parts(parts, box, one.voxels) for one in before}
    numbers = follow_numbers(held, largest, MOST_LESIONS)
    crowded = {name for _, name in numbers.joined}
    anchors = {one.name: one.voxels for one in before if one.name in crowded}
    only = blank.sides[0] if len(blank.sides) == 1 else None
    lesions = []
    for part, name in sorted(numbers.names.items(), key=lambda pair: rank_name(pair[1])):
        lesion = np.zeros(mask.shape, dtype=np.bool_)
        lesion[box.slices] = parts == part + 1
        facts = _measure_lesion(case, lesion, name, only, rule)
        # A merged lesion keeps its previous anchors, which allow the lesions to be separated
        # again.
        lesions.append(replace(facts, anchors=anchors.get(name, facts.anchors)))
    return replace(blank, lesions=tuple(lesions), joined=numbers.joined, parted=numbers.parted)


def _find_parts(parts: NDArray[np.int32], box: Box, voxels: Sequence[Voxel]) -> list[int]:
    """Return the index of the component that contains each voxel, or -1."""
    places = [np.subtract(voxel, box.start) for voxel in voxels]
    are_inside = [bool(np.all((index >= 0) & (index < parts.shape))) for index in places]
    pairs = zip(places, are_inside, strict=True)
    return [int(parts[tuple(index)]) - 1 if is_inside else -1 for index, is_inside in pairs]


def measure_lesions(
    case: Case,
    labels: NDArray[np.uint8],
    *,
    with_numbers: bool,
    before: Sequence[LesionAnchors] = (),
    record: CaseRecord | None = None,
) -> CaseFacts:
    """Return the lesions of a mask ``(z, y, x)`` for a form, with positions but no measurements.

    Many blind readings hide the measurements of the reader's own mask, but not the lesions in it.
    `before` and `record` are as in `measure_case`.
    """
    facts = measure_case(case, labels > 0, before=before, record=record)
    if with_numbers:
        return facts
    lesions = tuple(
        LesionFacts(lesion.name, voxel=lesion.voxel, anchors=lesion.anchors)
        for lesion in facts.lesions or ()
    )
    return replace(facts, lesions=lesions)


def fill_hidden(
    form: Form,
    case: Case,
    labels: NDArray[np.uint8],
    draft: Mapping[str, Any],
    record: CaseRecord | None = None,
) -> dict[str, Any]:
    """Return the answers of a reading with the measurements of a mask ``(z, y, x)`` added.

    This function is used when a reader who cannot see measurements submits a reading, and for
    answers that are copied to a different mask. Each lesion of the mask keeps its number. `draft`
    has the answers of an event; answers that a reader gave are not changed. `record` is as in
    `measure_case`.
    """
    answers = parse_answers(draft)
    facts = measure_case(case, labels > 0, before=answers.anchors, record=record)
    filled = fill_computed(form, answers, facts)
    return record_answers(form, replace(filled, anchors=keep_anchors(filled, facts)))


def _measure_lesion(
    case: Case,
    lesion: NDArray[np.bool_],
    name: str,
    only: Side | None,
    rule: TimingRule | None,
) -> LesionFacts:
    rise, course = _classify_curve(case, lesion, rule)
    voxels = np.argwhere(lesion)
    anchors = pick_anchors(voxels)
    return LesionFacts(
        name,
        find_side(case.grid, lesion) if only is None else only,
        float(np.count_nonzero(lesion)) * case.grid.voxel_volume_mm3,
        diameters_mm(lesion, case.grid)[1],
        rise,
        course,
        middle_voxel(voxels, case.grid),
        find_centre_mm(case.grid, lesion),
        anchors=anchors,
    )


def has_curve_size(grid: Grid, n_voxels: int) -> bool:
    """Return whether a lesion with this many voxels is large enough to classify its curve."""
    return n_voxels >= LEAST_CURVE_VOXELS and n_voxels * grid.voxel_volume_mm3 >= LEAST_CURVE_MM3


def find_centre_mm(grid: Grid, lesion: NDArray[np.bool_]) -> PointMm:
    """Return the mean position of a lesion's voxel centres in RAS mm."""
    x, y, z = map(float, grid.to_world_mm(np.argwhere(lesion).mean(axis=0)))
    return x, y, z


def find_side(grid: Grid, lesion: NDArray[np.bool_]) -> Side | None:
    """Return the patient's side of a lesion's centre, or None if it is unknown."""
    offset = find_centre_mm(grid, lesion)[0] - midline_x_mm(grid)
    if math.isnan(offset) or abs(offset) < THRESHOLDS.midline_mm:
        return None
    return Side.RIGHT if offset > 0 else Side.LEFT  # RAS: x runs to the patient's right


def _classify_curve(
    case: Case, lesion: NDArray[np.bool_], rule: TimingRule | None
) -> tuple[str, str]:
    """Return the classes of a lesion's curve; an undefined class is ""."""
    if len(case.phases) < 2 or not all(phase.loaded for phase in case.phases):
        return "", ""
    if not has_curve_size(case.grid, int(np.count_nonzero(lesion))):
        return "", ""
    try:
        curve = region_contrast_curve(case.signal, lesion, case.times_s, rule_of(case, rule))
    except CaseError:  # The classes remain empty if the times are unusable.
        return "", ""
    rise, course = curve.initial, curve.delayed
    return (
        "" if rise is InitialRise.UNDEFINED else rise.name.lower(),
        "" if course is DelayedCourse.UNDEFINED else course.name.lower(),
    )
