"""`KineticSettings`: every threshold of the kinetic segmenter, with unit, range and source."""

from dataclasses import dataclass, field

from napari_mamamia.segmentation.kinetic.breast_settings import BreastSettings
from napari_mamamia.segmentation.kinetic.settings import checked, setting


# fmt: off
@dataclass(frozen=True, slots=True)
class KineticSettings:
    """Thresholds of `KineticSegmenter`; each field's metadata holds unit, range, meaning, source.

    Raises
    ------
    ValueError
        If a value lies outside its range.

    Examples
    --------
    >>> KineticSettings(enhancement_percent=60.0).enhancement_percent
    60.0
    """

    enhancement_percent: float = setting(
        50.0, 10.0, 300.0, "%", "Lowest early PE that counts as enhancing",
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
        "our choice: its full width at half maximum, 2.8 mm, is that of the smallest lesions to "
"be found",
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
        50.0, 10.0, 90.0, "%", "The edge lies where the rise is this far from the surroundings' "
        "median to the lesion's upper quartile",
        "half of the two: there a voxel holds half of each tissue, since the rise is linear in it",
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
        50.0, 0.0, 100.0, "%", "A region with more than this share behind the chest line is "
"ranked far down",
        "our choice",
    )
    beyond_percent: float = setting(
        80.0, 0.0, 100.0, "%", "A region with more than this share behind the chest line is "
"heart, liver or chest wall and not a candidate",
        "our choice",
    )
    behind_search_mm: float = setting(
        40.0, 0.0, 100.0, "mm", "How far behind the chest line regions are followed",
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
        5, 1, 50, "", "At most this many candidates are returned",
        "issue 2: up to 5",
    )
    breast: BreastSettings = field(default_factory=BreastSettings)

    def __post_init__(self) -> None:
        checked(self)
