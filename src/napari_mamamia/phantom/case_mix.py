"""The cases of a phantom data set: twelve templates as varied as real data sets.

Difficulty increases with density, as in real data: the denser the breast, the more its tissue
enhances, and the smaller or weaker the tumour. Ages, densities and similar values are invented (our
choice).
"""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from napari_mamamia.core.cohort import MenopausalStatus
from napari_mamamia.phantom.spec import (
    Breasts,
    CurveType,
    PhantomSpec,
    Side,
    TumourKind,
    TumourSpec,
)
from napari_mamamia.phantom.streams import Part, stream

_L, _R = Side.LEFT, Side.RIGHT
_RIM, _NON_MASS = TumourKind.RIM, TumourKind.NON_MASS
_RISING, _LEVEL = CurveType.PERSISTENT, CurveType.PLATEAU
_PRE, _PERI, _POST = MenopausalStatus.PRE, MenopausalStatus.PERI, MenopausalStatus.POST


@dataclass(frozen=True, slots=True)
class Patient:
    """A patient's values in the clinical table; `manufacturer` is the maker of the scanner."""

    age: int
    menopausal_status: MenopausalStatus
    tumour_subtype: str
    pcr: bool
    site: str
    manufacturer: str


@dataclass(frozen=True, slots=True)
class PlannedCase:
    """The planned image and clinical data of a case."""

    spec: PhantomSpec
    patient: Patient


_AXIAL: Final = PhantomSpec(contrast_to_noise=9.0)
_SAGITTAL: Final = replace(
    _AXIAL, shape=(38, 116, 108), spacing_mm=(3.0, 1.5, 1.5), orientation="PSR"
)
_T3: Final = (0.0, 150.0, 420.0)
_T4: Final = (0.0, 110.0, 235.0, 360.0)
_T6: Final = (0.0, 95.0, 180.0, 265.0, 350.0, 435.0)


def _plan_movement(reach_mm: float, phases: int) -> tuple[tuple[float, float, float], ...]:
    """Return the shifts of a patient who moves after phase 0 and moves back after phase 1."""
    before = (-0.3 * reach_mm, -0.5 * reach_mm, 0.2 * reach_mm)
    after = (0.6 * reach_mm, 1.0 * reach_mm, -0.4 * reach_mm)
    return (before, (0.0, 0.0, 0.0), *(after,) * (phases - 2))


_MIX: Final = (
    PlannedCase(
        replace(_AXIAL, tumours=(TumourSpec(22.0, spicules=12),), bias_percent=14.0),
        Patient(53, _POST, "luminal_a", False, "CENTRE_A", "SIEMENS"),
    ),
    PlannedCase(
        replace(
            _AXIAL,
            tumours=(TumourSpec(38.0, _RIM, side=_R, early_enhancement_percent=170.0),),
            times_s=_T4,
            breast_density="c",
            background_enhancement_percent=28.0,
            fat_suppression_failure_mm=30.0,
            field_strength_t=3.0,
            fibroglandular_signal=420.0,
        ),
        Patient(38, _PRE, "triple_negative", True, "CENTRE_B", "GE"),
    ),
    PlannedCase(
        replace(
            _SAGITTAL,
            tumours=(TumourSpec(16.0, roughness=0.8, early_enhancement_percent=110.0),),
            times_s=_T3,
            contrast_to_noise=8.0,
            background_enhancement_percent=14.0,
            fibroglandular_signal=300.0,
        ),
        Patient(62, _POST, "her2_pure", False, "CENTRE_B", "GE"),
    ),
    PlannedCase(
        replace(
            _AXIAL,
            tumours=(TumourSpec(18.0, spicules=30, roughness=0.9, side=_R),),
            times_s=_T4,
            breast_density="a",
            background_enhancement_percent=8.0,
            fat_suppressed=False,
            contrast_to_noise=7.0,
        ),
        Patient(69, _POST, "luminal_b", False, "CENTRE_C", "Philips"),
    ),
    PlannedCase(
        replace(
            _AXIAL,
            tumours=(TumourSpec(11.0, curve=_LEVEL, early_enhancement_percent=165.0),),
            times_s=_T6,
            breast_density="d",
            background_enhancement_percent=55.0,
            contrast_to_noise=4.0,
            motion_mm=_plan_movement(1.5, 6),
        ),
        Patient(35, _PRE, "triple_negative", True, "CENTRE_A", "SIEMENS"),
    ),
    PlannedCase(
        replace(
            _AXIAL,
            tumours=(TumourSpec(46.0, _NON_MASS, _LEVEL, _R, 110.0, axis_ratios=(0.7, 0.55)),),
            breast_density="c",
            background_enhancement_percent=40.0,
            contrast_to_noise=4.0,
        ),
        Patient(44, _PRE, "luminal_b", False, "CENTRE_A", "SIEMENS"),
    ),
    PlannedCase(
        replace(
            _SAGITTAL,
            tumours=(
                TumourSpec(28.0, _RIM, side=_R, early_enhancement_percent=140.0),
                TumourSpec(9.0, curve=_LEVEL, side=_R, early_enhancement_percent=120.0),
            ),
            times_s=_T3,
            breast_density="d",
            background_enhancement_percent=45.0,
            contrast_to_noise=5.0,
            field_strength_t=3.0,
        ),
        Patient(48, _PERI, "her2_enriched", True, "CENTRE_B", "GE"),
    ),
    PlannedCase(
        replace(
            _AXIAL,
            tumours=(
                TumourSpec(26.0, spicules=18),
                TumourSpec(11.0),
                TumourSpec(8.0, curve=_RISING, early_enhancement_percent=100.0),
            ),
            background_enhancement_percent=18.0,
            fat_suppression_failure_mm=40.0,
            contrast_to_noise=9.0,
        ),
        Patient(57, _POST, "luminal", False, "CENTRE_C", "Philips"),
    ),
    PlannedCase(
        replace(
            _AXIAL,
            tumours=(TumourSpec(6.5, early_enhancement_percent=160.0, side=_R),),
            shape=(58, 116, 176),
            spacing_mm=(2.4, 1.7, 1.8),
            times_s=_T4,
            breast_density="a",
            background_enhancement_percent=8.0,
            contrast_to_noise=10.0,
        ),
        Patient(73, _POST, "luminal_a", False, "CENTRE_C", "SIEMENS"),
    ),
    PlannedCase(
        replace(
            _AXIAL,
            tumours=(TumourSpec(30.0, _NON_MASS, _RISING, _L, 115.0, axis_ratios=(0.75, 0.5)),),
            times_s=_T4,
            breast_density="c",
            background_enhancement_percent=35.0,
            fat_suppressed=False,
            contrast_to_noise=3.0,
            motion_mm=_plan_movement(2.5, 4),
        ),
        Patient(41, _PRE, "luminal_a", False, "CENTRE_C", "Philips"),
    ),
    PlannedCase(
        replace(
            _AXIAL,
            tumours=(TumourSpec(14.0, curve=_LEVEL, side=_R),),
            breasts=Breasts.RIGHT,
            contrast_to_noise=7.0,
            fibroglandular_signal=90.0,
        ),
        Patient(65, _POST, "her2_pure", True, "CENTRE_A", "SIEMENS"),
    ),
    PlannedCase(
        replace(
            _SAGITTAL,
            tumours=(TumourSpec(52.0, _RIM, roughness=0.9, early_enhancement_percent=190.0),),
            times_s=_T6,
            breast_density="c",
            background_enhancement_percent=30.0,
            fat_suppressed=False,
        ),
        Patient(50, _PRE, "triple_negative", False, "CENTRE_B", "GE"),
    ),
)


def plan_case(index: int, seed: int, attempt: int = 0) -> PlannedCase:
    """Return case `index` (from 0) of the data set with this `seed`.

    The first twelve cases are the unchanged templates. Later cases repeat the templates with
    different sizes, noise levels and ages. `attempt` selects another patient if the tumours of the
    first patient do not fit.

    Parameters
    ----------
    index
        Number of the case, from 0.
    seed
        Random seed, 0 or more.
    attempt
        Number of the attempt, from 0.
    """
    planned = _MIX[index % len(_MIX)]
    rng = stream(seed, Part.CASE, index)
    if index >= len(_MIX):
        planned = _vary_case(planned, rng)
    # The offset keeps this stream apart from the streams above, which belong to the cases.
    own_seed = int(stream(seed, Part.CASE, 1_000_000 * (attempt + 1) + index).integers(2**31))
    spec = replace(planned.spec, case_id=f"PHANTOM_{index + 1:03d}", seed=own_seed)
    return replace(planned, spec=spec)


def _vary_case(planned: PlannedCase, rng: np.random.Generator) -> PlannedCase:
    """Return a variation of a template: sizes vary by up to 25 %, CNR by 15 %, age by 3 years."""
    scale, noise = float(rng.uniform(0.75, 1.25)), float(rng.uniform(0.85, 1.15))
    tumours = tuple(
        replace(tumour, longest_mm=float(np.clip(tumour.longest_mm * scale, 4, 60)))
        for tumour in planned.spec.tumours
    )
    cnr = planned.spec.contrast_to_noise * noise
    spec = replace(planned.spec, tumours=tumours, contrast_to_noise=cnr)
    age = planned.patient.age + int(rng.integers(-3, 4))
    pcr = bool(rng.random() < 0.3)
    return PlannedCase(spec, replace(planned.patient, age=age, pcr=pcr))
