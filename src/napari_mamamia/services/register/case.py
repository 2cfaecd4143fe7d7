"""Register one case and measure the effect on the tumour's volume."""

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.case import Case
from napari_mamamia.core.progress import report_progress
from napari_mamamia.kinetics.map_blocks import percent_enhancement
from napari_mamamia.kinetics.registration.registration import Registered, register_phases
from napari_mamamia.kinetics.registration.settings import RegistrationSettings
from napari_mamamia.kinetics.time_axis import Timing, rule_of
from napari_mamamia.kinetics.timing import choose_phases
from napari_mamamia.kinetics.tumour_volume import (
    FtvSettings,
    box_around_mask,
    functional_tumour_volume,
    prepare_ftv,
)

MOST_CHANGE_PERCENT: Final = 10.0
"""Largest volume change of the tumour without a warning, in percent. Our choice."""

_MM3_IN_CC: Final = 1000.0


@dataclass(frozen=True, slots=True)
class VolumeChange:
    """The enhancing volume around a mask before and after registration, in cc.

    A volume is NaN if it is undefined; `reason` explains why. `variant` describes the measurement.
    """

    before_cc: float = math.nan
    after_cc: float = math.nan
    variant: str = ""
    reason: str = ""

    @property
    def percent(self) -> float:
        """Change in percent of the volume before registration; NaN if that volume is 0 or unknown.

        Examples
        --------
        >>> VolumeChange(2.0, 1.5).percent
        -25.0
        """
        if not self.before_cc > 0:
            return 0.0 if self.before_cc == self.after_cc == 0 else math.nan
        return 100 * (self.after_cc - self.before_cc) / self.before_cc

    @property
    def warning(self) -> str:
        """A warning if the volume changed by over 10 % or was 0 before registration, or ""."""
        if math.isnan(self.before_cc) or abs(self.percent) <= MOST_CHANGE_PERCENT:
            return ""
        change = "from nothing" if math.isnan(self.percent) else f"{self.percent:+.0f} %"
        return (
            f"the tumour's volume changes by more than {MOST_CHANGE_PERCENT:g} %: "
            f"{self.before_cc:.2f} cc before, {self.after_cc:.2f} cc after registration "
            f"({change}); compare the images before and after registration before you use them"
        )


@dataclass(frozen=True, slots=True, eq=False)
class RegisteredCase:
    """The registration of a case, and the enhancing volume around its mask."""

    found: Registered
    volume: VolumeChange

    @property
    def case(self) -> Case:
        """The case with its phases after registration."""
        return self.found.case


def register_case(
    case: Case, mask: NDArray[Any] | None = None, settings: RegistrationSettings | None = None
) -> RegisteredCase:
    """Register the phases of a case.

    Parameters
    ----------
    case
        The case with its phases.
    mask
        The tumour mask ``(z, y, x)``, which is not 0 inside, or None.
    settings
        The settings of the registration; None for the defaults.

    Raises
    ------
    CaseError, GridMismatchError, MissingExtraError
        As in `kinetics.registration.registration.register_phases`.
    """
    inside = None if mask is None else mask != 0  # a copy: the reader may continue to draw
    registration = register_phases(case, settings, inside)
    report_progress(1, 1, "Volume before and after")
    return RegisteredCase(registration, _volume_change(case, registration.case, inside))


def _volume_change(before: Case, after: Case, mask: NDArray[Any] | None) -> VolumeChange:
    """Return the FTV in the mask's box with a margin of 10 mm, before and after registration.

    If it is 0 or unknown, the volume of voxels with a PE of at least 70 % is returned instead.
    """
    if mask is None or not mask.any():
        return VolumeChange(reason="there is no mask for the measurement")
    first, then = _ftv_cc(before, mask), _ftv_cc(after, mask)
    if min(first, then) > 0:
        return VolumeChange(first, then, f"{FtvSettings().name}, phases by {Timing.UCSF_FTV}")
    variant = f"volume with PE >= {FtvSettings().enhancement:g} % (FTV is 0 or undefined)"
    return VolumeChange(_enhancing_cc(before, mask), _enhancing_cc(after, mask), variant)


def _ftv_cc(case: Case, mask: NDArray[Any]) -> float:
    choice = choose_phases(case.times_s, rule_of(case))
    if choice.late is None:
        return math.nan
    images = prepare_ftv(case.signal, choice, (box_around_mask(mask, case.grid),))
    return functional_tumour_volume(images, case.grid.voxel_volume_mm3).volume_cc


def _enhancing_cc(case: Case, mask: NDArray[Any]) -> float:
    box = box_around_mask(mask, case.grid)
    early = choose_phases(case.times_s, rule_of(case)).early
    percent = percent_enhancement(case.signal[:, *box.slices], early)
    with np.errstate(invalid="ignore"):
        count = int(np.count_nonzero(percent >= FtvSettings().enhancement))
    return count * case.grid.voxel_volume_mm3 / _MM3_IN_CC
