"""What the page Export asks for, as records."""

from dataclasses import dataclass
from pathlib import Path

from napari_mamamia.annotations.harmonise import OrientationProfile
from napari_mamamia.core.label_rules import LabelRule
from napari_mamamia.services.export.plan import ExportFormat, FuseRule, SegmentMaker


@dataclass(frozen=True, slots=True)
class MaskSet:
    """A folder of masks that can be exported: what it is called, how many cases it holds."""

    title: str
    folder: Path
    n_cases: int
    default_out: Path


@dataclass(frozen=True, slots=True)
class ExportWish:
    """How masks are written; `problem` says why they cannot be, "" if they can."""

    formats: tuple[ExportFormat, ...]
    profile: OrientationProfile = OrientationProfile.AS_IS
    with_images: bool = False
    fuse: FuseRule = FuseRule.NONE
    study: Path | None = None
    segment_maker: SegmentMaker = SegmentMaker.FROM_PROVENANCE
    n_channels: int | None = None
    rules: tuple[LabelRule, ...] = ()
    identified_seg: bool = False
    problem: str = ""


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """What the page asks for."""

    sets: tuple[MaskSet, ...]
    out: Path
    replace: bool
    wish: ExportWish
