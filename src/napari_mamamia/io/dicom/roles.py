"""The role of an image in a study, the evidence for it, and how the import uses the image."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Role(StrEnum):
    """The role of an image; selectors contain its value (`role=water`)."""

    PHASE = "phase"
    WATER = "water"
    IN_PHASE = "in-phase"
    OPPOSED = "opposed"
    FAT = "fat"
    MOTION_CORRECTED = "moco"
    FILTERED = "filtered"
    COPY = "copy"
    SUBTRACTION = "subtraction"
    PROJECTION = "mip"
    REFORMATTED = "mpr"
    MAP = "map"
    PHASE_IMAGE = "phase-image"
    REAL = "real"
    IMAGINARY = "imaginary"
    COMPONENT = "component"
    DIFFUSION = "diffusion"
    EPI = "epi"
    ECHO_TRAIN = "echo-train"
    FLIP_ANGLES = "flip-angles"
    FIELD_MAP = "field-map"
    ULTRAFAST = "ultrafast"
    EARLIER_PRE = "earlier-pre"
    LOCALISER = "localiser"
    CAPTURE = "capture"
    OTHER_SEQUENCE = "other-sequence"
    NO_IMAGE = "no-image"
    UNREADABLE = "unreadable"

    @property
    def words(self) -> str:
        """The role as a phrase to follow "left out:" in a message."""
        return _WORDS[self]


class Use(StrEnum):
    """How an import uses the images of a part."""

    USED = "used"
    LEFT_OUT = "left out"
    ASKED = "asked"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class Kind:
    """The kind of an image according to its header; `evidence` names the element and its value.

    `processing` holds words for processing after the scan ("moco", "filtered", "norm", ...). Two
    images with the same position and time are copies if they differ only in their processing.
    `by_name` states whether the evidence is a word in SeriesDescription.
    """

    role: Role = Role.PHASE
    evidence: str = ""
    processing: frozenset[str] = frozenset()
    by_name: bool = False

    @property
    def is_by_name(self) -> bool:
        """Whether the only evidence is a word in the description of an original image."""
        return self.by_name and "derived" not in self.processing


PHASES: Final = frozenset({Role.PHASE, Role.WATER})
"""Roles of images that are phases of an exam."""
_WORDS: Final = {
    Role.PHASE: "DCE phases",
    Role.WATER: "water image",
    Role.IN_PHASE: "in-phase image",
    Role.OPPOSED: "opposed-phase image",
    Role.FAT: "fat image",
    Role.MOTION_CORRECTED: "motion-corrected copy",
    Role.FILTERED: "filtered copy",
    Role.COPY: "the same images sent twice",
    Role.SUBTRACTION: "computed from others (a subtraction)",
    Role.PROJECTION: "computed from others (a projection)",
    Role.REFORMATTED: "computed from others (reformatted)",
    Role.MAP: "parameter map",
    Role.PHASE_IMAGE: "phase image",
    Role.REAL: "real part",
    Role.IMAGINARY: "imaginary part",
    Role.COMPONENT: "unknown component of the complex signal",
    Role.DIFFUSION: "diffusion",
    Role.EPI: "echo-planar",
    Role.ECHO_TRAIN: "another sequence",
    Role.FLIP_ANGLES: "flip-angle series",
    Role.FIELD_MAP: "field map",
    Role.ULTRAFAST: "ultrafast series",
    Role.EARLIER_PRE: "earlier pre-contrast",
    Role.LOCALISER: "localiser",
    Role.CAPTURE: "screen capture",
    Role.OTHER_SEQUENCE: "another sequence",
    Role.NO_IMAGE: "no image",
    Role.UNREADABLE: "cannot be read",
}
