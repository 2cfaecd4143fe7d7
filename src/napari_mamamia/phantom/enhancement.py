"""Contrast curves of tissues: arterial input, tissue uptake and spoiled gradient-echo signal.

The concentration in blood plasma follows a population arterial input function (Parker 2006), and
the uptake of tissue follows the extended Tofts model. Contrast agent shortens T1, which determines
the signal of the spoiled gradient echo. T2* decay at the short echo time is ignored.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import cos, pi, radians, sin, sqrt
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.errors import CaseError
from napari_mamamia.phantom.body.tissue import KINETICS, MRI_PROPERTIES, Kinetics, Tissue
from napari_mamamia.phantom.spec import CurveType, PhantomSpec

Curve = NDArray[np.float64]

HAEMATOCRIT: Final = 0.42
"""Volume fraction of cells in blood; Parker 2006 (MRM 56:993) uses 0.42."""

T1_RATIO_3T_TO_1_5T: Final = 1.21
"""Ratio of T1 at 3 T to T1 at 1.5 T. Source: de Bazelaire 2004 (Radiology 230:652)."""

RELAXIVITY_PER_MM_S: Final = {1.5: 4.78, 3.0: 4.97}
"""r1 of gadobutrol in human plasma, in 1/(mM s). Source: Szomolanyi 2019 (Invest Radiol 54:559)."""

REPETITION_TIME_S: Final = 0.005
FLIP_ANGLE_DEGREES: Final = 10.0
"""Flip angle in degrees of a typical 3-D T1-weighted breast protocol.

The clinical table of MAMA-MIA has repetition times of 4 to 7 ms; the flip angle is our choice.
"""

_EARLY_WINDOW_S: Final = (90.0, 120.0)
_STEP_S: Final = 1.0

_DELAYED_PERCENT: Final = {
    CurveType.PERSISTENT: 20.0,
    CurveType.PLATEAU: 0.0,
    CurveType.WASHOUT: -20.0,
}
_KEP_WITHOUT_LATE_PHASE: Final = {
    CurveType.PERSISTENT: 0.05,
    CurveType.PLATEAU: 0.3,
    CurveType.WASHOUT: 1.0,
}
_KEP_RANGE: Final = (0.01, 3.0)


@dataclass(frozen=True, slots=True)
class Scan:
    """Times of the phases and of contrast arrival in s, and field strength in T."""

    times_s: tuple[float, ...]
    bolus_arrival_s: float
    field_strength_t: float

    @classmethod
    def of(cls, spec: PhantomSpec) -> "Scan":
        """Return the timing and field strength of `spec`."""
        return cls(spec.times_s, spec.bolus_arrival_s, spec.field_strength_t)


def arterial_blood_mm(minutes: NDArray[np.float64]) -> Curve:
    """Return the concentration of contrast agent in arterial blood in mM at each time.

    The times in `minutes` count from the arrival of contrast agent. The concentration is 0 before
    the arrival, and then the sum of two Gaussians and an exponential with a sigmoid. It refers to
    whole blood. Source: Parker 2006, MRM 56:993, Eq. 1 and Table 1.
    """
    first = 0.809 / (0.0563 * sqrt(2 * pi)) * np.exp(-((minutes - 0.17046) ** 2) / (2 * 0.0563**2))
    second = 0.330 / (0.132 * sqrt(2 * pi)) * np.exp(-((minutes - 0.365) ** 2) / (2 * 0.132**2))
    tail = 1.050 * np.exp(-0.1685 * minutes) / (1 + np.exp(-38.078 * (minutes - 0.483)))
    return np.where(minutes > 0, first + second + tail, 0.0)


def early_phase(times_s: Sequence[float]) -> int:
    """Return the post-contrast phase nearest to 90-120 s; on a tie, return the earlier phase."""
    low, high = _EARLY_WINDOW_S
    gaps = [max(low - t, t - high, 0.0) for t in times_s[1:]]
    return 1 + gaps.index(min(gaps))


def _compute_uptake(scan: Scan, kep_per_min: float) -> tuple[Curve, Curve]:
    """Return the plasma concentration in mM and its exponentially weighted integral, per phase."""
    minutes = np.arange(0.0, scan.times_s[-1] + 2 * _STEP_S, _STEP_S) / 60
    plasma = arterial_blood_mm(minutes - scan.bolus_arrival_s / 60) / (1 - HAEMATOCRIT)
    taken = np.empty(len(scan.times_s))
    for phase, time_s in enumerate(scan.times_s):
        # Rounding must not drop the sample at the time of the phase itself.
        past = minutes <= time_s / 60 + 1e-9
        weight = np.exp(-kep_per_min * (time_s / 60 - minutes[past]))
        taken[phase] = np.sum(plasma[past] * weight) * _STEP_S / 60
    return np.interp(np.array(scan.times_s) / 60, minutes, plasma), taken


def tissue_signal(contrast_mm: Curve, tissue: Tissue, field_strength_t: float) -> Curve:
    """Return the spoiled gradient-echo signal at `contrast_mm`, relative to full magnetisation.

    Parameters
    ----------
    contrast_mm
        Concentration of contrast agent, mM.
    tissue
        The tissue.
    field_strength_t
        Field strength, T.

    Source: Ernst formula, sin(a) (1 - E) / (1 - cos(a) E) with E = exp(-TR/T1) and 1/T1 = 1/T10 +
    r1 C.
    """
    relaxation = MRI_PROPERTIES[tissue]
    t10 = relaxation.t1_s / (T1_RATIO_3T_TO_1_5T if field_strength_t == 1.5 else 1.0)
    rate = 1 / t10 + RELAXIVITY_PER_MM_S[field_strength_t] * contrast_mm
    decay = np.exp(-REPETITION_TIME_S * rate)
    angle = radians(FLIP_ANGLE_DEGREES)
    return relaxation.density * sin(angle) * (1 - decay) / (1 - cos(angle) * decay)


def curve_of(tissue: Tissue, scan: Scan, kinetics: Kinetics | None = None) -> Curve:
    """Return the signal of `tissue` at each phase, relative to full magnetisation.

    By default the fixed kinetics of the tissue are used; blood follows the arterial input function;
    air has no signal.

    Parameters
    ----------
    tissue
        The tissue.
    scan
        Times of the phases and the field strength.
    kinetics
        Uptake parameters; by default those of the tissue.
    """
    if tissue in (Tissue.VESSEL, Tissue.HEART_BLOOD):
        plasma, _ = _compute_uptake(scan, 0.0)
        return tissue_signal(plasma * (1 - HAEMATOCRIT), tissue, scan.field_strength_t)
    tissue_kinetics = KINETICS.get(tissue) if kinetics is None else kinetics
    if tissue_kinetics is None:
        return tissue_signal(np.zeros(len(scan.times_s)), tissue, scan.field_strength_t)
    plasma, taken = _compute_uptake(scan, tissue_kinetics.kep_per_min)
    contrast = tissue_kinetics.plasma_fraction * plasma + tissue_kinetics.ktrans_per_min * taken
    return tissue_signal(contrast, tissue, scan.field_strength_t)


def fit_kinetics(
    tissue: Tissue, scan: Scan, early_percent: float, curve: CurveType
) -> tuple[Kinetics, Curve]:
    """Return kinetics that produce a given early enhancement and delayed course, and their curve.

    Ktrans determines the height of the curve, and kep its course; both are found by bisection. The
    delayed course aims at +20, 0 or -20 % between the early phase and the last.

    Raises
    ------
    CaseError
        If no kinetics produce this course at these times.
    """
    late_percent = _DELAYED_PERCENT[curve]
    early = early_phase(scan.times_s)
    if early == len(scan.times_s) - 1:
        return fit_height(tissue, scan, early_percent, _KEP_WITHOUT_LATE_PHASE[curve])
    low, high = _KEP_RANGE
    for _ in range(30):
        # The geometric mean, as the range spans more than two powers of ten.
        kep = sqrt(low * high)
        kinetics, signal = fit_height(tissue, scan, early_percent, kep)
        if _delayed_percent(signal, early) > late_percent:
            low = kep
        else:
            high = kep
    if not _is_curve_type(curve, _delayed_percent(signal, early)):
        raise CaseError(
            f"a {curve} curve is not possible with phases at {scan.times_s} s: the signal of the "
            f"tumour changes by {_delayed_percent(signal, early):.1f} % from phase {early} to the "
            "last; move the last phase"
        )
    return kinetics, signal


def fit_height(
    tissue: Tissue, scan: Scan, early_percent: float, kep_per_min: float
) -> tuple[Kinetics, Curve]:
    """Return kinetics with `kep_per_min` that enhance by `early_percent`, and their curve.

    Parameters
    ----------
    tissue
        The tissue.
    scan
        Times of the phases and field strength.
    early_percent
        PE at the early phase, in percent.
    kep_per_min
        kep, 1/min.
    """
    _, taken = _compute_uptake(scan, kep_per_min)
    early = early_phase(scan.times_s)
    low, high = 0.0, 20.0
    for _ in range(40):
        ktrans = (low + high) / 2
        signal = tissue_signal(ktrans * taken[[0, early]], tissue, scan.field_strength_t)
        if 100 * (signal[1] / signal[0] - 1) < early_percent:
            low = ktrans
        else:
            high = ktrans
    kinetics = Kinetics(low, kep_per_min, 0.0)
    return kinetics, tissue_signal(low * taken, tissue, scan.field_strength_t)


def _delayed_percent(signal: Curve, early: int) -> float:
    return float(100 * (signal[-1] - signal[early]) / signal[early])


def _is_curve_type(curve: CurveType, delayed_percent: float) -> bool:
    if curve == CurveType.PLATEAU:
        return abs(delayed_percent) <= 10
    return delayed_percent > 10 if curve == CurveType.PERSISTENT else delayed_percent < -10
