"""What tissue takes up of the plasma's contrast agent: Tofts and extended Tofts."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.kinetics.perfusion.arterial_input import PlasmaCurve

Curve = NDArray[np.float64]

_SMALL: Final = 1e-3


def uptake(plasma: PlasmaCurve, minutes: Curve, kep_per_min: Curve) -> Curve:
    """Return Cp (x) exp(-kep t) in mM min, ``(time, kep)``, at `minutes` after arrival, ascending.

    Exact for a plasma curve that is straight between its points: never a sum at image spacing.
    kep 0 gives the integral of Cp; before arrival it is 0. `minutes` must lie within the curve.

    Source: stepwise integral of a straight piece against an exponential, checked against sepal
    1.3.2 and scipy's quadrature in the tests.
    """
    kep = np.asarray(kep_per_min, np.float64)
    integrals = np.zeros((len(minutes), len(kep)))
    step = plasma.step_min
    last = len(plasma.values) - 2
    whole = _Step(kep, step)
    state = np.zeros(len(kep))
    reached = 0
    for place, time in enumerate(minutes):
        if time <= 0:
            continue
        # At the curve's very end no piece begins: the last one is gone to its end.
        whole_steps = min(int(time / step), last)
        while reached < whole_steps:
            state = whole.advance(state, *plasma.values[reached : reached + 2])
            reached += 1
        rest = time - whole_steps * step
        start, end = plasma.values[whole_steps : whole_steps + 2]
        part = start + (end - start) * rest / step
        integrals[place] = _Step(kep, rest).advance(state, start, part)
    return integrals


class _Step:
    """The integral's way through one straight piece of `length` minutes."""

    def __init__(self, kep: Curve, length: float) -> None:
        x = kep * length
        # Both branches below are computed everywhere, and at 0 the second would be 0/0.
        safe = np.where(x < _SMALL, 1.0, x)
        first = np.where(x < _SMALL, 1 - x / 2 + x * x / 6, -np.expm1(-safe) / safe)
        second = np.where(
            x < _SMALL, 0.5 - x / 6 + x * x / 24, (safe + np.expm1(-safe)) / (safe * safe)
        )
        self._decay = np.exp(-x)
        self._level = length * first
        self._slope = length * second

    def advance(self, state: Curve, start: float, end: float) -> Curve:
        return state * self._decay + start * self._level + (end - start) * self._slope


def tissue_concentration_mm(
    plasma: PlasmaCurve,
    minutes: Curve,
    ktrans_per_min: float,
    ve: float,
    vp: float = 0.0,
) -> NDArray[Any]:
    """Return a tissue's concentration in mM at `minutes` after arrival, ascending.

    `ve` above 0; a `vp` of 0 is Tofts' model.

    Examples
    --------
    >>> from napari_mamamia.kinetics.perfusion.arterial_input import ArterialInput, plasma_curve
    >>> plasma = plasma_curve(ArterialInput(), 2.0)
    >>> tissue_concentration_mm(plasma, np.array([0.5, 1.0]), 0.25, 0.4).round(4)
    array([0.4033, 0.4792])
    """
    taken = uptake(plasma, minutes, np.array([ktrans_per_min / ve]))[:, 0]
    return ktrans_per_min * taken + vp * plasma.at(np.asarray(minutes, np.float64))
