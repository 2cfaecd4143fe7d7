"""Concentration of contrast agent in an artery after a bolus, from published curves."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from napari_mamamia.core.choices import InputName
from napari_mamamia.core.errors import CaseError

Curve = NDArray[np.float64]

_STEP_MIN: Final = 0.1 / 60
"""Step of the fine grid in minutes; a peak is 4 s wide.

If the curve were sampled only at the times of the images, the error of Ktrans would be 50 %.
"""


@dataclass(frozen=True, slots=True)
class ArterialInput:
    """A published arterial input function, with its parameters.

    Parameters
    ----------
    name
        Name of the published curve.
    haematocrit
        Volume fraction of cells in blood; a concentration in whole blood is divided by 1 minus this
        fraction. Parker used 0.42.
    dose_mmol_per_kg
        The dose, used only for WEINMANN; the other curves are valid for the doses in their studies.

    Raises
    ------
    CaseError
        If a number is out of range.
    """

    name: InputName = InputName.PARKER
    haematocrit: float = 0.42
    dose_mmol_per_kg: float = 0.1

    def __post_init__(self) -> None:
        if not 0 <= self.haematocrit <= 0.7:
            raise CaseError(
                f"expected the haematocrit to be from 0 to 0.7, but it is {self.haematocrit:g}; "
                "enter a fraction, such as 0.42"
            )
        if not 0.005 <= self.dose_mmol_per_kg <= 1:
            raise CaseError(
                "expected the dose to be from 0.005 to 1 mmol/kg, but it is "
                f"{self.dose_mmol_per_kg:g}; enter it in mmol per kg, such as 0.1"
            )

    @property
    def text(self) -> str:
        """Return a short description of the curve, for tables."""
        if self.name is InputName.WEINMANN:
            return f"{self.name}, {self.dose_mmol_per_kg:g} mmol/kg"
        return f"{self.name}, haematocrit {self.haematocrit:g}"


@dataclass(frozen=True, slots=True, eq=False)
class PlasmaCurve:
    """Plasma concentration in mM at 0, `step_min`, 2 `step_min`, ... minutes after arrival."""

    values: Curve
    step_min: float

    def at(self, minutes: Curve) -> Curve:
        """Return the concentration at any time covered by the curve; 0 before arrival."""
        grid = np.arange(len(self.values)) * self.step_min
        return np.where(minutes < 0, 0.0, np.interp(minutes, grid, self.values))


def plasma_curve(
    source: ArterialInput, last_min: float, step_min: float = _STEP_MIN
) -> PlasmaCurve:
    """Compute the plasma curve on a fine time grid, from arrival to at least `last_min`."""
    n_steps = int(np.ceil(max(last_min, 0.0) / step_min)) + 2
    minutes = np.arange(n_steps, dtype=np.float64) * np.float64(step_min)
    if source.name is InputName.WEINMANN:
        return PlasmaCurve(source.dose_mmol_per_kg * _compute_weinmann(minutes), step_min)
    return PlasmaCurve(blood_mm(source.name, minutes) / (1 - source.haematocrit), step_min)


def blood_mm(name: InputName, minutes: Curve) -> Curve:
    """Return the concentration in whole blood in mM at `minutes` after arrival; 0 before it.

    WEINMANN is the concentration in plasma at 1 mmol/kg.

    Examples
    --------
    >>> blood_mm(InputName.PARKER, np.array([-1.0, 10.0, 60.0]) / 60).round(4)
    array([0.    , 6.0422, 0.8872])
    """
    curve = {
        InputName.PARKER: _compute_parker,
        InputName.GEORGIOU: _compute_georgiou,
        InputName.WEINMANN: _compute_weinmann,
    }[name]
    return np.where(minutes < 0, 0.0, curve(np.maximum(minutes, 0.0)))


def _compute_parker(minutes: Curve) -> Curve:
    """Compute two Gaussians and an exponential with a sigmoid (Parker 2006, Eq. 1, Table 1)."""
    tail = 1.050 * np.exp(-0.1685 * minutes) / (1 + np.exp(-38.078 * (minutes - 0.483)))
    for area, centre, width in ((0.809, 0.17046, 0.0563), (0.330, 0.365, 0.132)):
        height = area / (width * np.sqrt(2 * np.pi))
        tail = tail + height * np.exp(-((minutes - centre) ** 2) / (2 * width**2))
    curve: Curve = tail
    return curve


def _compute_georgiou(minutes: Curve) -> Curve:
    """Compute three exponentials times a series of gamma variates, one per pass of the bolus.

    The factors of the gamma variates overflow after some minutes, but their logarithms do not.
    """
    alpha, beta, tau = 5.26, 0.032, 0.129
    decay = sum(
        height * np.exp(-rate * minutes)
        for height, rate in ((0.37, 0.11), (0.33, 1.17), (10.06, 16.02))
    )
    passages = np.zeros_like(minutes)
    for number in range(int(minutes.max(initial=0.0) / tau) + 1):
        since = minutes - number * tau
        came = since > 0
        power = (number + 1) * alpha + number
        logarithm = power * np.log(since[came] / beta) - since[came] / beta - gammaln(power + 1)
        passages[came] += np.exp(logarithm) / beta
    return np.asarray(decay * passages)


def _compute_weinmann(minutes: Curve) -> Curve:
    """Compute the plasma concentration at 1 mmol/kg, a sum of two exponentials."""
    return np.asarray(3.99 * np.exp(-0.144 * minutes) + 4.78 * np.exp(-0.0111 * minutes))
