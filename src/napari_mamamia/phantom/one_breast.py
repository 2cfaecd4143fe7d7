"""Sagittal exams of one breast, as GE scanners made them for I-SPY 1: hostile on purpose.

Three phases some six minutes apart, thick slices, a field of view that crops the body, a border of
zeros, signal that fades with the distance from the coil; in view besides the tumour a heart that
enhances more, lymph nodes in the armpit that enhance as fast, nipple and skin. Both sides.
"""

from dataclasses import replace
from typing import Final

from napari_mamamia.core.cohort import MenopausalStatus
from napari_mamamia.phantom.case_mix import Patient, PlannedCase
from napari_mamamia.phantom.spec import CurveType, PhantomSpec, Side, TumourKind, TumourSpec
from napari_mamamia.phantom.streams import Part, stream

__all__ = ["plan_one_breast"]

_R = Side.RIGHT
_RIM, _NON_MASS = TumourKind.RIM, TumourKind.NON_MASS
_LEVEL = CurveType.PLATEAU
_GE: Final = PhantomSpec(
    shape=(30, 128, 128),
    spacing_mm=(4.0, 1.5, 1.5),
    orientation="PSR",
    times_s=(0.0, 400.0, 740.0),
    contrast_to_noise=8.0,
    bias_percent=18.0,
    nodes=3,
    blank_border_mm=20.0,
)
_DENSE: Final = replace(_GE, breast_density="c", background_enhancement_percent=35.0)
_PATIENT: Final = Patient(49, MenopausalStatus.PERI, "luminal_b", False, "CENTRE_D", "GE")


_MIX: Final = (
    replace(_GE, tumours=(TumourSpec(26.0, side=_R, early_enhancement_percent=120.0),)),
    replace(_GE, tumours=(TumourSpec(22.0, early_enhancement_percent=110.0, spicules=16),)),
    replace(_DENSE, tumours=(TumourSpec(48.0, _RIM, early_enhancement_percent=110.0),)),
    replace(_DENSE, tumours=(TumourSpec(55.0, _NON_MASS, _LEVEL, _R, 120.0),)),
    replace(
        _GE,
        tumours=(TumourSpec(14.0, curve=_LEVEL, early_enhancement_percent=90.0),),
        contrast_to_noise=6.0,
    ),
    replace(
        _GE,
        tumours=(TumourSpec(30.0, side=_R, early_enhancement_percent=100.0),),
        shape=(24, 104, 104),
        blank_border_mm=30.0,
    ),
    replace(
        _GE,
        tumours=(TumourSpec(24.0, early_enhancement_percent=110.0),),
        orientation="AIL",
        bias_percent=30.0,
    ),
    replace(
        _GE,
        tumours=(TumourSpec(20.0, side=_R, early_enhancement_percent=140.0),),
        fat_suppressed=False,
        nodes=6,
    ),
)


def plan_one_breast(index: int, seed: int, attempt: int = 0) -> PlannedCase:
    """Return case `index` (from 0) of the eight exams of one breast, which then come again.

    `attempt` gives another patient where the tumour of one does not fit or lies out of view.
    """
    own = stream(seed, Part.CASE, 2_000_000 + 1_000_000 * attempt + index)
    name = f"ONE_BREAST_{index + 1:03d}"
    spec = replace(_MIX[index % len(_MIX)], case_id=name, seed=int(own.integers(2**31)))
    return PlannedCase(spec, _PATIENT)
