"""`BreastSettings`: every threshold of the breast mask, with unit, range and source."""

from dataclasses import dataclass

from napari_mamamia.segmentation.kinetic.settings import checked, setting


# fmt: off
@dataclass(frozen=True, slots=True)
class BreastSettings:
    """Parameters of the breast mask.

    Each field's metadata holds unit, range, source and meaning.
    """

    body_share_percent: float = setting(
        6.0, 1.0, 30.0, "%", "Tissue stands out from the air's noise, and is brighter than "
        "this share of the 95th percentile",
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
        20.0, 5.0, 60.0, "mm", "A breast protrudes from the chest by at least this much",
        "our choice",
    )
    chest_depth_mm: float = setting(
        15.0, 0.0, 60.0, "mm", "The mask ends this far behind the skin of the chest",
        "our choice: skin, fat and pectoral muscle; the heart lies deeper",
    )

    def __post_init__(self) -> None:
        checked(self)
