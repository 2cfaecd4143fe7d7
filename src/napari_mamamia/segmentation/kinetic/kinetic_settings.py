"""All thresholds of the kinetic segmenter and the breast mask, with unit, range and source."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from napari_mamamia.core.provenance import Setting

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


@dataclass(frozen=True, slots=True)
class SettingInfo:
    """Description of a user-adjustable number: default, range, unit, effect and source."""

    name: str
    default: float
    low: float
    high: float
    unit: str
    about: str
    source: str


def setting(default: float, low: float, high: float, unit: str, about: str, source: str) -> Any:
    """Return the dataclass field of a setting; see `SettingInfo`."""
    what = {"low": low, "high": high, "unit": unit, "about": about, "source": source}
    return field(default=default, metadata=what)


def described(settings: "DataclassInstance") -> tuple[SettingInfo, ...]:
    """Return the description of every setting in a settings class, including nested settings."""
    return tuple(info for info, _ in _walk_settings(settings))


def values_of(settings: "DataclassInstance") -> tuple[tuple[str, Setting], ...]:
    """Return the name and value of every setting for the provenance."""
    return tuple((info.name, value) for info, value in _walk_settings(settings))


def checked(settings: "DataclassInstance") -> None:
    """Raise `ValueError` if a setting is not a number within its range."""
    for info, value in _walk_settings(settings):
        if not math.isfinite(value) or not info.low <= value <= info.high:
            unit = f" {info.unit}" if info.unit else ""
            raise ValueError(
                f"expected {info.name} to be from {info.low:g} to {info.high:g}{unit}, but got "
                f"{value:g}"
            )


def _walk_settings(settings: Any) -> Iterator[tuple[SettingInfo, float]]:
    for item in fields(settings):
        if "low" in item.metadata:
            default: Any = item.default
            info = SettingInfo(name=item.name, default=default, **item.metadata)
            yield info, getattr(settings, item.name)
        else:
            yield from _walk_settings(getattr(settings, item.name))


# fmt: off
@dataclass(frozen=True, slots=True)
class BreastSettings:
    """Parameters of the breast mask.

    The metadata of each field has its unit, range, source and meaning.
    """

    body_share_percent: float = setting(
        6.0, 1.0, 30.0, "%", "Threshold of tissue above the noise of air, as a fraction of the "
"95th percentile",
        "our choice: below fat-suppressed fat, above ghosts",
    )
    skin_mm: float = setting(
        3.0, 0.0, 10.0, "mm", "Layer under the body's surface that is not searched",
        "our choice: breast skin is up to about 3 mm thick",
    )
    nipple_mm: float = setting(
        15.0, 0.0, 30.0, "mm", "Bumps of the body into which a ball of this radius does not fit "
"are not searched",
        "our choice: wider than a nipple, blunter than the tip of a breast",
    )
    chest_radius_mm: float = setting(
        150.0, 80.0, 400.0, "mm", "Across the patient, the chest is at least as curved as a disc "
"of this radius, which is wider than a breast and does not fit "
"into one",
        "our choice: half the width of an adult chest is 130 to 180 mm",
    )
    breast_width_mm: float = setting(
        180.0, 100.0, 300.0, "mm", "From head to foot, the chest is visible somewhere in any "
"length of this size",
        "our choice: longer than a breast's base",
    )
    protrusion_mm: float = setting(
        20.0, 5.0, 60.0, "mm", "Smallest distance by which a breast protrudes from the chest",
        "our choice",
    )
    chest_depth_mm: float = setting(
        15.0, 0.0, 60.0, "mm", "The mask ends this far behind the skin of the chest",
        "our choice: skin, fat and pectoral muscle; the heart lies deeper",
    )

    def __post_init__(self) -> None:
        checked(self)


# fmt: off
@dataclass(frozen=True, slots=True)
class KineticSettings:
    """Thresholds of `KineticSegmenter`, with unit, range, meaning and source in the metadata.

    Raises
    ------
    ValueError
        If a value is outside its range.

    Examples
    --------
    >>> KineticSettings(enhancement_percent=60.0).enhancement_percent
    60.0
    """

    enhancement_percent: float = setting(
        50.0, 10.0, 300.0, "%", "Lowest early PE of an enhancing voxel",
        "border of slow and medium initial rise in BI-RADS use; the UCSF FTV default is 70",
    )
    lowest_enhancement_percent: float = setting(
        30.0, 5.0, 300.0, "%", "With a click or box, PE may be lowered to half of the PE found "
"there, but not below this",
        "our choice: above mild background enhancement",
    )
    noise_factor: float = setting(
        4.0, 0.0, 20.0, "", "The smoothed rise of the signal must exceed this many standard "
        "deviations of its noise",
        "our choice: noise alone exceeds it in fewer than 1 of 10,000 voxels",
    )
    search_grid_mm: float = setting(
        1.6, 0.5, 5.0, "mm", "The search averages voxels into blocks of at most this size",
        "our choice: half the diameter of the smallest lesions to be found",
    )
    smoothing_mm: float = setting(
        1.2, 0.0, 5.0, "mm", "Standard deviation of the Gaussian before the search",
        "our choice: the full width at half maximum, 2.8 mm, is the size of the smallest lesions "
"to be found",
    )
    outline_smoothing_mm: float = setting(
        0.7, 0.0, 5.0, "mm", "Standard deviation of the Gaussian before outlining",
        "our choice: about one voxel in plane",
    )
    opening_mm: float = setting(
        1.0, 0.0, 5.0, "mm", "Strands thinner than twice this are removed",
        "our choice: small veins",
    )
    vessel_mm: float = setting(
        5.0, 0.0, 20.0, "mm", "Regions are also tried without strands thinner than this, and than "
"twice this",
        "our choice: veins of the breast are mostly thinner",
    )
    closing_mm: float = setting(
        2.0, 0.0, 10.0, "mm", "Gaps narrower than twice this are closed",
        "our choice",
    )
    edge_level_percent: float = setting(
        50.0, 10.0, 90.0, "%", "The edge is at this fraction of the rise from the median of the "
"surroundings to the upper quartile of the lesion",
        "one half: a voxel at the edge is then half lesion, because the rise is linear in its "
"composition",
    )
    edge_reach_mm: float = setting(
        3.0, 0.0, 20.0, "mm", "The edge is searched at most this far from the region found first",
        "our choice: about two search voxels",
    )
    most_fill: float = setting(
        4.0, 1.0, 20.0, "", "A dark core is filled unless the region then exceeds this many times "
"the volume of its rim",
        "our choice: a core up to 90 % of the diameter of a ball",
    )
    smallest_mm3: float = setting(
        10.0, 0.0, 1000.0, "mm3", "Smaller regions are not reported",
        "our choice: a ball of 2.7 mm",
    )
    enough_volume_ml: float = setting(
        20.0, 0.1, 500.0, "ml", "Beyond this volume, size lowers the score",
        "our choice: keeps heart and glandular tissue from winning by size",
    )
    behind_percent: float = setting(
        50.0, 0.0, 100.0, "%", "A region with more than this fraction behind the chest line is "
"ranked far down",
        "our choice",
    )
    beyond_percent: float = setting(
        80.0, 0.0, 100.0, "%", "A region with more than this fraction behind the chest line is "
"heart, liver or chest wall and not a candidate",
        "our choice",
    )
    behind_search_mm: float = setting(
        40.0, 0.0, 100.0, "mm", "Distance behind the chest line up to which regions are followed",
        "our choice: enough to see most of a region that crosses it",
    )
    near_skin_mm: float = setting(
        4.0, 0.0, 20.0, "mm", "Regions with 40 % within this distance of the surface of the "
"searched region are ranked down as skin or nipple",
        "our choice",
    )
    click_reach_mm: float = setting(
        10.0, 0.5, 100.0, "mm", "A click selects the clicked region, or the nearest one within "
"this distance",
        "our choice",
    )
    click_core_mm: float = setting(
        30.0, 5.0, 200.0, "mm", "Of the regions that a click may mean, those within this distance "
"of it are preferred",
        "our choice: half of the longest lesions that are common",
    )
    click_region_mm: float = setting(
        50.0, 10.0, 200.0, "mm", "A click searches this far around itself",
        "our choice: the largest lesions to be found are about 100 mm across",
    )
    candidates: int = setting(
        5, 1, 50, "", "Largest number of candidates that are returned",
        "issue 2: up to 5",
    )
    breast: BreastSettings = field(default_factory=BreastSettings)

    def __post_init__(self) -> None:
        checked(self)
