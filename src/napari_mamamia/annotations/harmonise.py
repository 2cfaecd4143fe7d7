"""Convert masks from several sources to one orientation and label set without resampling."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.choices import OrientationProfile
from napari_mamamia.core.errors import FormatError
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.label_rules import LabelRule
from napari_mamamia.core.reorientation import Reorientation, reorientation_to


def harmonised(grid: Grid, profile: OrientationProfile) -> Reorientation:
    """Return the reorientation of a volume on `grid` to the orientation of a profile.

    ``las-psr``: axial acquisitions to LAS, sagittal ones to PSR, in nibabel's convention (the
    letters of the file's x, y, z axes name the direction each runs *towards*); coronal ones, which
    the paper does not mention, are not changed. Source: MAMA-MIA challenge paper, arXiv
    2603.01250v2, harmonisation; it does not state its convention.

    Examples
    --------
    >>> turn = harmonised(Grid((2, 3, 4), np.eye(4) * [0.7, 0.7, 2, 1]), OrientationProfile.LAS_PSR)
    >>> turn.target.orientation
    'LAS'
    """
    letters = grid.orientation
    if profile is OrientationProfile.LAS_PSR:
        by_plane = {"axial": "LAS", "sagittal": "PSR"}
        letters = by_plane.get(grid.acquisition_plane, letters)
    elif profile is not OrientationProfile.AS_IS:
        letters = profile.value.upper()
    return reorientation_to(grid, letters)


def map_labels(values: NDArray[Any], rules: Sequence[LabelRule]) -> NDArray[np.uint8]:
    """Return an array with each value replaced by its rule's target; 0 is unchanged.

    Raises
    ------
    FormatError
        If two rules have the same value, or a value other than 0 has no rule.

    Examples
    --------
    >>> rules = [LabelRule(1, 1, "tumour"), LabelRule(255, 0, "marker")]
    >>> map_labels(np.array([0, 1, 255]), rules)
    array([0, 1, 0], dtype=uint8)
    """
    sources = [rule.source for rule in rules]
    if len(set(sources)) < len(sources):
        raise FormatError(
            f"expected one rule for each value, but got two for {_first_repeated(sources):g}: "
            "remove one of them"
        )
    out = np.zeros(values.shape, np.uint8)
    left = values != 0
    for rule in rules:
        here = values == rule.source
        out[here] = rule.target
        left &= ~here
    if left.any():
        listing = ", ".join(f"{value:g}" for value in np.unique(values[left])[:5])
        raise FormatError(
            f"expected a rule for every value of a mask, but {listing} has none: add a rule, or "
            "use the target 0 to omit the value"
        )
    return out


def target_names(rules: Sequence[LabelRule]) -> tuple[tuple[int, str], ...]:
    """Return the target labels of rules as (value, name), by value, without 0.

    Examples
    --------
    >>> target_names([LabelRule(3, 1, "tumour"), LabelRule(9, 0, ""), LabelRule(4, 1, "tumour")])
    ((1, 'tumour'),)
    """
    return tuple(sorted({rule.target: rule.name for rule in rules if rule.target}.items()))


def _first_repeated(values: Sequence[float]) -> float:
    return next(value for k, value in enumerate(values) if value in values[:k])
