"""Functional tumour volume (FTV) in the form of UCSF and I-SPY 2: a volume of enhancement.

FTV was made to follow treatment. By design it leaves out a tumour's necrotic core and takes in
vessels and whatever else enhances inside its box, so that it is no outline of the tumour.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.box import Box
from napari_mamamia.core.errors import CaseError
from napari_mamamia.kinetics.maps import percent_enhancement, signal_enhancement_ratio
from napari_mamamia.kinetics.timing import PhaseChoice

__all__ = [
    "SER_BINS",
    "FtvImages",
    "FtvSettings",
    "FunctionalTumourVolume",
    "SerBin",
    "functional_tumour_volume",
    "prepare_ftv",
]

SER_BINS: Final = (
    ("blue", 0.0, 0.9),
    ("purple", 0.9, 1.0),
    ("green", 1.0, 1.3),
    ("red", 1.3, 1.75),
    ("yellow", 1.75, 3.0),
)
"""Colour and SER range, lower end open, upper end closed; the rest (0 and above 3) is white.
Source: UCSF FTV code (``ftv_map_gen.py``) and the defaults of its window."""

_PARTIAL_FROM: Final = 0.9  # Arasu 2011: plateau and washout
_WASHOUT_ABOVE: Final = 1.3  # Arasu 2011
_PERCENTILE: Final = 95.0  # UCSF: the 95th percentile, not the maximum
_MM3_IN_CC: Final = 1000.0


@dataclass(frozen=True, slots=True)
class FtvSettings:
    """The thresholds, with UCSF's defaults and ranges.

    Parameters
    ----------
    background
        Voxels below this share of the 95th percentile of phase 0 inside the region are left out;
        0.1 to 1.
    enhancement
        Least PE of the early phase, in percent; 10 to 150.
    neighbours
        How many of a voxel's 26 neighbours must pass both thresholds too; 0 to 26 (UCSF: 1 to 10).
    ser
        Least SER, no unit.

    Raises
    ------
    ValueError
        If a value is outside its range.
    """

    background: float = 0.60
    enhancement: float = 70.0
    neighbours: int = 4
    ser: float = 0.0

    def __post_init__(self) -> None:
        if not (0 <= self.background <= 1 and 0 <= self.neighbours <= 26):
            raise ValueError(
                f"FTV needs a background share of 0 to 1 and 0 to 26 neighbours, got "
                f"{self.background} and {self.neighbours}"
            )

    @property
    def name(self) -> str:
        """The variant, as it stands beside every FTV that is shown or written."""
        return (
            f"FTV (UCSF form: S0 >= {self.background:.0%} of P95, PE >= {self.enhancement:g} %, "
            f">= {self.neighbours} of 26 neighbours, SER >= {self.ser:g})"
        )


@dataclass(frozen=True, slots=True, eq=False)
class FtvImages:
    """What FTV needs of a region, computed once so that thresholds can be moved live.

    `pre` is float32 in the signal's unit, `enhancement` PE of the early phase in percent, `ser` no
    unit; all have the shape of `box` (z, y, x). `region` says which voxels count: inside one of
    the boxes and in none that is omitted. `bright_signal` is the 95th percentile of `pre` over
    it, nan if no voxel is known.
    """

    box: Box
    pre: NDArray[np.float32]
    enhancement: NDArray[np.float32]
    ser: NDArray[np.float32]
    region: NDArray[np.bool_]
    bright_signal: float


@dataclass(frozen=True, slots=True)
class SerBin:
    """The part of an FTV whose SER lies in one range; `percent` is of the FTV, nan if that is 0."""

    colour: str
    voxels: int
    volume_cc: float
    percent: float


@dataclass(frozen=True, slots=True, eq=False)
class FunctionalTumourVolume:
    """An FTV and its parts; volumes in cc.

    Parameters
    ----------
    mask
        bool of the shape of `box`: the voxels counted.
    background_signal
        The least signal of phase 0 that counted, in the signal's unit.
    partial_cc, washout_cc
        The parts with SER >= 0.9 (plateau and washout) and SER > 1.3 (washout). Source: Arasu,
        Hylton et al. 2011.
    without_ser
        Voxels that passed every other rule but have no SER (the late signal is not above phase 0).
    too_dark
        Voxels that enhance enough but are too dark before contrast: noise in suppressed fat, or the
        tumour itself where fat is not suppressed and sets the 95th percentile.
    """

    settings: FtvSettings
    box: Box
    mask: NDArray[np.bool_] = field(repr=False)
    background_signal: float
    volume_cc: float
    partial_cc: float
    washout_cc: float
    bins: tuple[SerBin, ...]
    without_ser: int
    too_dark: int


def prepare_ftv(
    signal: NDArray[Any],
    choice: PhaseChoice,
    boxes: Sequence[Box],
    omitted: Sequence[Box] = (),
) -> FtvImages:
    """Return the images of a region, once for many settings.

    Parameters
    ----------
    signal
        ``(phase, z, y, x)``, any real type.
    choice
        The early and late phases, see `kinetics.timing.choose_phases`.
    boxes, omitted
        The region is the union of `boxes` without `omitted`.

    Raises
    ------
    CaseError
        If there is no box, all of the region is omitted, or there is no late phase.
    """
    if choice.late is None:
        raise CaseError(f"FTV needs a late phase for SER, but {choice.reason}: FTV is unknown here")
    box = _around(boxes)
    region = np.zeros(box.shape, np.bool_)
    for inside in boxes:
        region[_within(inside, box)] = True
    for outside in omitted:
        region[_within(outside, box)] = False
    if not region.any():
        raise CaseError(
            "FTV needs a box with voxels that are not omitted, got none: draw a box around the "
            "tumour"
        )
    part = signal[:, *box.slices]
    pre = part[0].astype(np.float32)
    known = pre[region & np.isfinite(pre)]
    return FtvImages(
        box,
        pre,
        percent_enhancement(part, choice.early),
        signal_enhancement_ratio(part, choice.early, choice.late),
        region,
        float(np.percentile(known, _PERCENTILE)) if known.size else math.nan,
    )


def functional_tumour_volume(
    images: FtvImages, voxel_volume_mm3: float, settings: FtvSettings | None = None
) -> FunctionalTumourVolume:
    """Return the FTV of a region: voxels bright enough before contrast that enhance together.

    A voxel counts if S0 >= `background` x P95(S0 over the region), PE >= `enhancement`, at least
    `neighbours` of its 26 neighbours in the region pass these two as well, and SER >= `ser`.
    Voxels with an undefined PE or SER do not count.

    Source: UCSF FTV code (``ftv_map_gen.py``), whose 95th percentile also sees the zeros that it
    writes into omitted boxes; here only voxels of the region enter it.
    """
    limits = settings or FtvSettings()
    threshold = limits.background * images.bright_signal
    with np.errstate(invalid="ignore"):
        bright = images.region & (images.pre >= threshold)
        enhancing = images.region & (images.enhancement >= limits.enhancement)
        passed = bright & enhancing
        together = passed & (_neighbours(passed) >= limits.neighbours)
        mask = together & (images.ser >= limits.ser)
        without = int(np.count_nonzero(together & np.isnan(images.ser)))
        ser = images.ser[mask]
    cc = voxel_volume_mm3 / _MM3_IN_CC
    return FunctionalTumourVolume(
        settings=limits,
        box=images.box,
        mask=mask,
        background_signal=threshold,
        volume_cc=ser.size * cc,
        partial_cc=int(np.count_nonzero(ser >= _PARTIAL_FROM)) * cc,
        washout_cc=int(np.count_nonzero(ser > _WASHOUT_ABOVE)) * cc,
        bins=_bins(ser, cc),
        without_ser=without,
        too_dark=int(np.count_nonzero(enhancing) - np.count_nonzero(passed)),
    )


def _neighbours(passed: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Return how many of each voxel's 26 neighbours passed; none lie outside the array.

    Three sums of three along the axes, which is exact in uint8 (27 at most) and some twenty times
    quicker than a convolution.
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


def _bins(ser: NDArray[np.float32], cc: float) -> tuple[SerBin, ...]:
    counts = [
        (colour, int(np.count_nonzero((ser > low) & (ser <= high))))
        for colour, low, high in SER_BINS
    ]
    counts.append(("white", ser.size - sum(count for _, count in counts)))
    share = 100.0 / ser.size if ser.size else float("nan")
    return tuple(SerBin(colour, count, count * cc, count * share) for colour, count in counts)


def _around(boxes: Sequence[Box]) -> Box:
    whole = Box.empty()
    for box in boxes:
        whole = whole.union(box)
    return whole


def _within(box: Box, frame: Box) -> tuple[slice, ...]:
    """Return where `box` lies in an array of `frame`; nowhere if they do not meet."""
    pairs = zip(box.start, box.stop, frame.start, frame.shape, strict=True)
    return tuple(slice(min(max(a - o, 0), n), min(max(b - o, 0), n)) for a, b, o, n in pairs)
