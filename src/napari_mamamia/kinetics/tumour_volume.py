"""Functional tumour volume (FTV) as defined by UCSF and I-SPY 2.

FTV was developed to monitor treatment. By design, it excludes a tumour's necrotic core and includes
vessels and other enhancing tissue inside its box, so it is not an outline of the tumour.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import reduce
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.box import Box
from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.grid import Grid
from napari_mamamia.kinetics.map_blocks import percent_enhancement, signal_enhancement_ratio
from napari_mamamia.kinetics.timing import PhaseChoice

SER_BINS: Final = (
    ("blue", 0.0, 0.9),
    ("purple", 0.9, 1.0),
    ("green", 1.0, 1.3),
    ("red", 1.3, 1.75),
    ("yellow", 1.75, 3.0),
)
"""Colour and SER range of each bin, without the lower and with the upper limit.

Other values (0 and above 3) are white. Source: UCSF FTV code (``ftv_map_gen.py``) and the defaults
of its window.
"""

FTV_MARGIN_MM: Final = 10.0
"""Margin of the box around a mask in mm. Our choice; UCSF's readers draw the box manually."""

_PARTIAL_FROM: Final = 0.9  # Arasu 2011: plateau and washout
_WASHOUT_ABOVE: Final = 1.3  # Arasu 2011
_PERCENTILE: Final = 95.0  # UCSF: the 95th percentile, not the maximum
_MM3_IN_CC: Final = 1000.0


class FtvVariant(StrEnum):
    """The variants of the FTV mask, which differ in the required number of neighbours.

    The published variants round the threshold of phase 0. EXTENSION requires 4 of 26 neighbours,
    the default of UCSF's Slicer extension. ISPY1 requires 9 of 26 neighbours, which reproduces
    UCSF's own results for I-SPY 1 in every voxel. OWN is any other number.
    """

    EXTENSION = "ucsf-extension"
    ISPY1 = "ucsf-ispy1"
    OWN = "own"


_NEIGHBOURS: Final = {FtvVariant.EXTENSION: 4, FtvVariant.ISPY1: 9}


@dataclass(frozen=True, slots=True)
class FtvSettings:
    """Thresholds of FTV with UCSF's defaults and ranges.

    Parameters
    ----------
    background
        The smallest signal of a counted voxel, as a fraction (0.1 to 1) of the 95th percentile of
        phase 0 inside the region.
    enhancement
        The smallest PE of the early phase in percent, from 10 to 150.
    neighbours
        The number of a voxel's 26 neighbours, inside or outside the region, that must also pass
        both thresholds; 0 to 26 (UCSF: 1 to 10).
    ser
        The smallest SER, without unit.
    least_signal
        The smallest signal of phase 0, which replaces the fraction of the 95th percentile.

    Raises
    ------
    ValueError
        If a value is outside its range.
    """

    background: float = 0.60
    enhancement: float = 70.0
    neighbours: int = 4
    ser: float = 0.0
    least_signal: float | None = None

    def __post_init__(self) -> None:
        if not (0 <= self.background <= 1 and 0 <= self.neighbours <= 26):
            raise ValueError(
                "expected the FTV background threshold to be from 0 to 1 and the number of "
                f"neighbours to be from 0 to 26, but got a threshold of {self.background} and "
                f"{self.neighbours} neighbours"
            )

    @classmethod
    def of(cls, variant: FtvVariant) -> "FtvSettings":
        """Return the default settings of a variant."""
        return cls(neighbours=_NEIGHBOURS[variant])

    @property
    def variant(self) -> FtvVariant:
        """The variant that requires this number of neighbours."""
        named = (variant for variant, count in _NEIGHBOURS.items() if count == self.neighbours)
        return next(named, FtvVariant.OWN)

    @property
    def name(self) -> str:
        """Name of the variant with its thresholds, reported with every FTV."""
        return (
            f"FTV ({self.variant}: S0 >= {self.background:.0%} of P95, rounded, PE >= "
            f"{self.enhancement:g} %, >= {self.neighbours} of 26 neighbours, SER >= {self.ser:g})"
        )


@dataclass(frozen=True, slots=True, eq=False)
class FtvImages:
    """The images of a region from which FTV is computed for any thresholds.

    `pre` is float32 in the signal's unit, and `enhancement` is the PE of the early phase in
    percent. Both have the shape of `around` (z, y, x), which is `box` with a margin of one voxel
    inside the volume for the neighbours. `ser`, without unit, and `region` have the shape of `box`.
    `region` is True for voxels that are inside one of the boxes but in no omitted box.
    `bright_signal` is the 95th percentile of `pre` over the region, or NaN without a finite voxel.
    `is_whole` is True if `pre` has only integers in the region. `choice` has the phases used.
    """

    box: Box
    around: Box
    choice: PhaseChoice
    pre: NDArray[np.float32]
    enhancement: NDArray[np.float32]
    ser: NDArray[np.float32]
    region: NDArray[np.bool_]
    bright_signal: float
    is_whole: bool


@dataclass(frozen=True, slots=True)
class SerBin:
    """The volume of an FTV within one SER range; `percent` is its percentage of the FTV."""

    colour: str
    voxels: int
    volume_cc: float
    percent: float


@dataclass(frozen=True, slots=True, eq=False)
class FunctionalTumourVolume:
    """An FTV with its parts; volumes are in cc.

    Parameters
    ----------
    choice
        The early and the late phase, their rule, and their distances from the targets.
    mask
        A boolean array with the shape of `box`: the counted voxels.
    background_signal
        The threshold of phase 0, in the signal's unit.
    enhancing
        A boolean array with the shape of `box`: the voxels that count regardless of their SER, even
        if it is undefined.
    partial_cc, washout_cc
        The parts with SER >= 0.9 (plateau and washout) and SER > 1.3 (washout). Source: Arasu,
        Hylton et al. 2011.
    without_ser
        The number of voxels that pass all other thresholds but have no SER, because the late signal
        is not above phase 0.
    too_dark
        The number of voxels that enhance enough but are too dark before contrast. They are noise in
        suppressed fat, or the tumour itself if fat is not suppressed and determines the 95th
        percentile.
    """

    settings: FtvSettings
    choice: PhaseChoice
    box: Box
    mask: NDArray[np.bool_] = field(repr=False)
    enhancing: NDArray[np.bool_] = field(repr=False)
    background_signal: float
    volume_cc: float
    partial_cc: float
    washout_cc: float
    bins: tuple[SerBin, ...]
    without_ser: int
    too_dark: int


def box_around_mask(mask: NDArray[Any], grid: Grid, margin_mm: float = FTV_MARGIN_MM) -> Box:
    """Return the bounding box of a mask with a margin in mm on each side, cropped to the volume.

    Parameters
    ----------
    mask
        The mask ``(z, y, x)``, which is not 0 inside.
    grid
        The grid of the mask.
    margin_mm
        The margin on each side in mm.
    """
    box = Box.around(mask)
    if box.is_empty:
        return box
    return box.grown([math.ceil(margin_mm / mm) for mm in grid.spacing_mm], grid.shape)


def prepare_ftv(
    signal: NDArray[Any],
    choice: PhaseChoice,
    boxes: Sequence[Box],
    omitted: Sequence[Box] = (),
) -> FtvImages:
    """Return the images of a region, which are computed once and used for many settings.

    Parameters
    ----------
    signal
        The signal ``(phase, z, y, x)`` in any real data type.
    choice
        The early and late phases; see `kinetics.timing.choose_phases`.
    boxes, omitted
        The region is the union of `boxes` without `omitted`.

    Raises
    ------
    CaseError
        If there is no box, the whole region is omitted, or there is no late phase.
    """
    if choice.late is None:
        raise CaseError(f"expected a late phase for SER and FTV, but {choice.reason}")
    box = reduce(Box.union, boxes, Box.empty())
    around = box.grown((1, 1, 1), signal.shape[1:])
    region = np.zeros(box.shape, np.bool_)
    for inside in boxes:
        region[_locate_box(inside, box)] = True
    for outside in omitted:
        region[_locate_box(outside, box)] = False
    if not region.any():
        raise CaseError(
            "expected the FTV box to contain voxels, but all of its voxels are excluded; draw a "
            "box around the tumour"
        )
    part = signal[:, *around.slices]
    pre = part[0].astype(np.float32)
    inner = pre[_locate_box(box, around)]
    finite_values = inner[region & np.isfinite(inner)]
    return FtvImages(
        box,
        around,
        choice,
        pre,
        percent_enhancement(part, choice.early),
        signal_enhancement_ratio(signal[:, *box.slices], choice.early, choice.late),
        region,
        float(np.percentile(finite_values, _PERCENTILE)) if finite_values.size else math.nan,
        bool(finite_values.size) and not (finite_values % 1).any(),
    )


def functional_tumour_volume(
    images: FtvImages, voxel_volume_mm3: float, settings: FtvSettings | None = None
) -> FunctionalTumourVolume:
    """Return the FTV of a region: the volume of bright, enhancing voxels in clusters.

    A voxel is counted if S0 >= `background` x P95(S0 over the region), rounded to a whole number,
    PE >= `enhancement`, SER >= `ser`, and at least `neighbours` of its 26 neighbours in the whole
    volume pass the conditions for S0 and PE. Voxels with an undefined PE or SER are not counted.
    The threshold is not rounded if signals are not integers.

    Parameters
    ----------
    images
        The images of the region; see `prepare_ftv`.
    voxel_volume_mm3
        The volume of a voxel in mm3.
    settings
        The thresholds; None for UCSF's defaults.

    Source: UCSF FTV code (``ftv_map_gen.py``), in which the 95th percentile includes the zeros
    written into omitted boxes; here it includes only voxels of the region. Rounding, and neighbours
    outside the region, follow UCSF's own result for ISPY1_1002, which is reproduced in every voxel.
    """
    limits = settings or FtvSettings()
    threshold = background_signal(images, limits)
    inner = _locate_box(images.box, images.around)
    with np.errstate(invalid="ignore"):
        enhancing = images.enhancement >= limits.enhancement
        passed = (images.pre >= threshold) & enhancing
        together = (
            images.region & (passed & (_count_neighbours(passed) >= limits.neighbours))[inner]
        )
        mask = together & (images.ser >= limits.ser)
        without = int(np.count_nonzero(together & np.isnan(images.ser)))
        ser = images.ser[mask]
    cc = voxel_volume_mm3 / _MM3_IN_CC
    return FunctionalTumourVolume(
        settings=limits,
        choice=images.choice,
        box=images.box,
        mask=mask,
        enhancing=together,
        background_signal=threshold,
        volume_cc=ser.size * cc,
        partial_cc=int(np.count_nonzero(ser >= _PARTIAL_FROM)) * cc,
        washout_cc=int(np.count_nonzero(ser > _WASHOUT_ABOVE)) * cc,
        bins=_count_bins(ser, cc),
        without_ser=without,
        too_dark=int(np.count_nonzero(images.region & (enhancing & ~passed)[inner])),
    )


def background_signal(images: FtvImages, limits: FtvSettings) -> float:
    """Return the threshold of phase 0 in the signal's unit.

    Parameters
    ----------
    images
        The images of the region.
    limits
        The thresholds.
    """
    if limits.least_signal is not None:
        return limits.least_signal
    threshold = limits.background * images.bright_signal
    return float(round(threshold)) if images.is_whole else threshold


def _count_neighbours(passed: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Return, for each voxel, how many of its 26 neighbours passed the thresholds.

    Voxels outside the array are not counted. The result is computed from sums of three voxels along
    each axis, which is exact in uint8 (at most 27) and about twenty times faster than a
    convolution.
    """
    counts = passed.astype(np.uint8)
    for axis in range(3):
        one = np.moveaxis(counts, axis, 0)
        summed = counts.copy()
        into = np.moveaxis(summed, axis, 0)
        into[1:] += one[:-1]
        into[:-1] += one[1:]
        counts = summed
    counts -= passed
    return counts


def _count_bins(ser: NDArray[np.float32], cc: float) -> tuple[SerBin, ...]:
    counts = [
        (colour, int(np.count_nonzero((ser > low) & (ser <= high))))
        for colour, low, high in SER_BINS
    ]
    counts.append(("white", ser.size - sum(count for _, count in counts)))
    share = 100.0 / ser.size if ser.size else float("nan")
    return tuple(SerBin(colour, count, count * cc, count * share) for colour, count in counts)


def _locate_box(box: Box, frame: Box) -> tuple[slice, ...]:
    """Return the index of `box` in an array that covers `frame`; empty if they do not overlap."""
    pairs = zip(box.start, box.stop, frame.start, frame.shape, strict=True)
    return tuple(slice(min(max(a - o, 0), n), min(max(b - o, 0), n)) for a, b, o, n in pairs)
