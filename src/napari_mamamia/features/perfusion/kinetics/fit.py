"""Tofts models of tissue uptake, and fits of Ktrans, ve, vp and kep in many voxels.

The module has a linear fit and a least-squares fit.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.choices import TissueModel
from napari_mamamia.features.perfusion.kinetics.arterial_input import PlasmaCurve

Curve = NDArray[np.float64]

_SMALL: Final = 1e-3
_LEAST_KEP: Final = 1e-3
_MOST_KEP: Final = 60.0
_N_KEP: Final = 1201
"""Number of kep values in the table, 0.92 % apart; between them, a parabola interpolates."""

_MOST_KTRANS: Final = 5.0
"""Largest Ktrans that is accepted, in 1/min. Source: bounds of OSIPI's fits."""

_VOXELS: Final = 4096
"""Number of voxels fitted in one step (20 MB of float32)."""


def uptake(plasma: PlasmaCurve, minutes: Curve, kep_per_min: Curve) -> Curve:
    """Return Cp (x) exp(-kep t) in mM min, shape ``(time, kep)``, where (x) means convolution.

    The convolution is exact for a plasma curve that is linear between its points, independent of
    the spacing of images. A kep of 0 gives the integral of Cp; before arrival the result is 0.
    `minutes` must lie within the curve.

    Parameters
    ----------
    plasma
        Concentration in plasma.
    minutes
        Minutes after arrival, ascending.
    kep_per_min
        kep, 1/min.

    Source: stepwise integral of a linear segment against an exponential, compared with sepal 1.3.2
    and scipy's quadrature in the tests.
    """
    kep = np.asarray(kep_per_min, np.float64)
    integrals = np.zeros((len(minutes), len(kep)))
    step = plasma.step_min
    last = len(plasma.values) - 2
    whole = _Step(kep, step)
    state = np.zeros(len(kep))
    reached = 0
    for index, time in enumerate(minutes):
        if time <= 0:
            continue
        # No segment begins at the end of the curve, so that the last segment is integrated to its
        # end.
        whole_steps = min(int(time / step), last)
        while reached < whole_steps:
            state = whole.advance(state, *plasma.values[reached : reached + 2])
            reached += 1
        rest = time - whole_steps * step
        start, end = plasma.values[whole_steps : whole_steps + 2]
        part = start + (end - start) * rest / step
        integrals[index] = _Step(kep, rest).advance(state, start, part)
    return integrals


class _Step:
    """The integral of exp(-kep t) times a linear function, over a segment of `length` minutes."""

    def __init__(self, kep: Curve, length: float) -> None:
        x = kep * length
        # Both branches below are computed everywhere, and at 0 the second branch would be 0/0.
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
    """Return the concentration in a tissue, in mM, at ascending `minutes` after arrival.

    `ve` must be above 0; if `vp` is 0, the model is the standard Tofts model.

    Parameters
    ----------
    plasma
        Concentration in plasma.
    minutes
        Minutes after arrival, ascending.
    ktrans_per_min
        Ktrans, 1/min.
    ve
        Volume fraction of the extravascular extracellular space.
    vp
        Volume fraction of plasma.

    Examples
    --------
    >>> from napari_mamamia.features.perfusion.kinetics import arterial_input
    >>> plasma = arterial_input.plasma_curve(arterial_input.ArterialInput(), 2.0)
    >>> tissue_concentration_mm(plasma, np.array([0.5, 1.0]), 0.25, 0.4).round(4)
    array([0.4033, 0.4792])
    """
    taken = uptake(plasma, minutes, np.array([ktrans_per_min / ve]))[:, 0]
    return ktrans_per_min * taken + vp * plasma.at(np.asarray(minutes, np.float64))


class FitStatus(IntEnum):
    """The status of a voxel's fit; in every map, voxels that are not FITTED are NaN.

    NO_CONCENTRATION: a signal value is not positive or is saturated, or T1 is unknown. NO_UPTAKE:
    Ktrans is not positive. UNRESOLVED: kep lies outside 0.001 to 60 1/min, Ktrans is above 5 1/min,
    or ve or vp is above 1.
    """

    FITTED = 0
    NO_CONCENTRATION = 1
    NO_UPTAKE = 2
    UNRESOLVED = 3


@dataclass(frozen=True, slots=True, eq=False)
class TissueFit:
    """Fitted parameters, each of shape ``(voxel,)``; NaN unless `status` is FITTED.

    Ktrans and kep are in 1/min. ve and vp are fractions of the tissue's volume; vp is 0 in the
    standard Tofts model.
    """

    ktrans_per_min: NDArray[Any]
    ve: NDArray[Any]
    vp: NDArray[Any]
    kep_per_min: NDArray[Any]
    status: NDArray[np.uint8]


class LinearFit:
    """The linear fit C(t) = Ktrans int Cp - kep int C (+ vp terms), which is fast.

    The integral of Cp is computed on its fine grid. The integral of C is computed from the images
    by the trapezoidal rule, which requires short intervals between phases. If vp is below 0, the
    fit is repeated without vp.

    Source: Murase 2004 (MRM 51:858), equations 5 and 6.
    """

    def __init__(
        self,
        model: TissueModel,
        plasma: PlasmaCurve,
        minutes: Curve,
    ) -> None:
        self._tofts = _Projection(minutes, uptake(plasma, minutes, np.zeros(1)))
        self._extended = None
        if model is TissueModel.EXTENDED:
            columns = np.stack(
                [uptake(plasma, minutes, np.zeros(1))[:, 0], plasma.at(minutes)], axis=1
            )
            self._extended = _Projection(minutes, columns)

    def fit(self, concentration: NDArray[Any]) -> TissueFit:
        """Fit concentrations in mM, shape ``(phase, voxel)``."""
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            kep, (ktrans,) = self._tofts.solve(concentration)
            vp = np.zeros_like(ktrans)
            if self._extended is not None:
                own_kep, (own_ktrans, own_vp) = self._extended.solve(concentration)
                own_ktrans = own_ktrans - own_kep * own_vp
                has_plasma = own_vp >= 0
                kep = np.where(has_plasma, own_kep, kep)
                ktrans = np.where(has_plasma, own_ktrans, ktrans)
                vp = np.where(has_plasma, own_vp, vp)
        return _judge_fit(ktrans, kep, vp)


class RefinedFit:
    """The least-squares fit: the best kep in a fine table, refined by interpolation.

    For a fixed kep the model is linear in Ktrans and vp. The search is therefore one-dimensional in
    kep and cannot end in a wrong minimum. Ktrans and vp are constrained to 0 or above.

    Source: variable projection, Golub and Pereyra 1973 (SIAM J Numer Anal 10:413).
    """

    def __init__(
        self, model: TissueModel, plasma: PlasmaCurve, minutes: Curve, n_kep: int = _N_KEP
    ) -> None:
        kep = np.geomspace(_LEAST_KEP, _MOST_KEP, n_kep)
        taken = uptake(plasma, minutes, kep)
        self._tofts = _Table(kep, taken, None)
        vessel = plasma.at(minutes)
        # Without an image of the vessel, its squared norm, by which the table is divided, would
        # be 0.
        is_extended = model is TissueModel.EXTENDED and vessel.any()
        self._extended = _Table(kep, taken, vessel) if is_extended else None

    def fit(self, concentration: NDArray[Any]) -> TissueFit:
        """Fit concentrations in mM, shape ``(phase, voxel)``."""
        parts = [
            self._fit_part(concentration[:, start : start + _VOXELS])
            for start in range(0, max(concentration.shape[1], 1), _VOXELS)
        ]
        names = ("ktrans_per_min", "ve", "vp", "kep_per_min", "status")
        return TissueFit(*(np.concatenate([getattr(p, name) for p in parts]) for name in names))

    def residual(self, concentration: Curve) -> float:
        """Return the smallest sum of squared residuals of one curve ``(phase,)``, in mM squared."""
        values = concentration[:, None]
        least = self._tofts.residuals(values)
        if self._extended is not None:
            extended = self._extended.solve(values)
            least = np.where(
                extended[2] >= 0, np.minimum(least, self._extended.residuals(values)), least
            )
        return float(least[0])

    def _fit_part(self, concentration: NDArray[Any]) -> TissueFit:
        ktrans, kep, vp = self._tofts.solve(concentration)
        if self._extended is not None:
            extended = self._extended.solve(concentration)
            has_plasma = (extended[2] >= 0) & (extended[0] >= 0)
            ktrans, kep, vp = (
                np.where(has_plasma, mine, other)
                for mine, other in zip(extended, (ktrans, kep, vp), strict=True)
            )
        return _judge_fit(ktrans, kep, vp)


class _Projection:
    """Solves C = sum of columns - kep int C for every voxel; common terms are computed once.

    The columns are projected out of C and its integral, which leaves kep as the only unknown.
    """

    def __init__(self, minutes: Curve, columns: Curve) -> None:
        integral = _make_trapezoids(minutes)
        outside = np.eye(len(minutes)) - columns @ np.linalg.pinv(columns)
        self._of_signal, self._of_integral = outside, outside @ integral
        solved = np.linalg.pinv(columns)
        self._solved, self._solved_integral = solved, solved @ integral

    def solve(self, concentration: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return kep ``(voxel,)``, and the factors of the columns ``(column, voxel)``."""
        # A float64 matrix would first convert the concentrations of all voxels to float64.
        left = self._of_signal.astype(concentration.dtype) @ concentration
        right = self._of_integral.astype(concentration.dtype) @ concentration
        kep = -np.einsum("tv,tv->v", left, right) / np.einsum("tv,tv->v", right, right)
        factors = self._solved.astype(concentration.dtype) @ concentration
        factors += kep * (self._solved_integral.astype(concentration.dtype) @ concentration)
        return kep, factors


def _make_trapezoids(minutes: Curve) -> Curve:
    """Return the matrix that integrates a curve from the first image by the trapezoidal rule."""
    halves = np.diff(minutes) / 2
    matrix = np.zeros((len(minutes), len(minutes)))
    for index, half in enumerate(halves):
        matrix[index + 1 :, index] += half
        matrix[index + 1 :, index + 1] += half
    return matrix


class _Table:
    """The model's curve for every kep, as unit vectors; if vp is fitted, orthogonal to Cp."""

    def __init__(self, kep: Curve, taken: Curve, vessel: Curve | None) -> None:
        self._kep = kep
        self._taken = taken
        self._vessel = vessel
        shapes = taken
        if vessel is not None:
            shapes = taken - np.outer(vessel, vessel @ taken / (vessel @ vessel))
        lengths = np.linalg.norm(shapes, axis=0)
        self._units = np.divide(shapes, lengths, out=np.zeros_like(shapes), where=lengths > 0)

    def solve(self, concentration: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Return Ktrans, kep and vp of every voxel; kep is NaN at the ends of the table."""
        scores = self._compute_scores(concentration)
        # The square is not used, because a negative score would mean a negative Ktrans.
        best = np.argmax(scores, axis=0)
        inner = np.clip(best, 1, len(self._kep) - 2)
        voxels = np.arange(scores.shape[1])
        low, mid, high = (scores[inner + k, voxels] ** 2 for k in (-1, 0, 1))
        with np.errstate(invalid="ignore", divide="ignore"):
            shift = 0.5 * (low - high) / (low - 2 * mid + high)
        shift = np.clip(np.nan_to_num(shift), -1, 1)
        ratio = self._kep[1] / self._kep[0]
        kep = np.where(best == inner, self._kep[inner] * ratio**shift, np.nan)
        shape = _interpolate_columns(self._taken, inner, shift)
        ktrans, vp = self._solve_factors(concentration, shape)
        return ktrans, kep, vp

    def residuals(self, concentration: NDArray[Any]) -> NDArray[Any]:
        """Return the smallest sum of squared residuals of every voxel, in mM squared."""
        total = np.einsum("tv,tv->v", concentration, concentration)
        if self._vessel is not None:
            total -= (self._vessel @ concentration) ** 2 / (self._vessel @ self._vessel)
        return np.asarray(
            total - np.maximum(self._compute_scores(concentration), 0).max(axis=0) ** 2
        )

    def _compute_scores(self, concentration: NDArray[Any]) -> NDArray[Any]:
        scores: NDArray[Any] = self._units.T.astype(concentration.dtype) @ concentration
        return scores

    def _solve_factors(
        self, concentration: NDArray[Any], shape: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return Ktrans and vp by least squares, using each voxel's own curve ``(time, voxel)``."""
        with np.errstate(invalid="ignore", divide="ignore"):
            square = np.einsum("tv,tv->v", shape, shape)
            product = np.einsum("tv,tv->v", shape, concentration)
            if self._vessel is None:
                return product / square, np.zeros(concentration.shape[1])
            cross = self._vessel @ shape
            vessel_square = self._vessel @ self._vessel
            vessel_product = self._vessel @ concentration
            determinant = square * vessel_square - cross * cross
            ktrans = (product * vessel_square - cross * vessel_product) / determinant
            return ktrans, (square * vessel_product - cross * product) / determinant


def _interpolate_columns(taken: Curve, places: NDArray[Any], shift: NDArray[Any]) -> NDArray[Any]:
    """Interpolate columns between entries of the table by parabolas."""
    low, mid, high = (taken[:, places + k] for k in (-1, 0, 1))
    columns: NDArray[Any] = mid + shift * (high - low) / 2 + shift**2 * (high - 2 * mid + low) / 2
    return columns


def _judge_fit(ktrans: NDArray[Any], kep: NDArray[Any], vp: NDArray[Any]) -> TissueFit:
    """Return the status of all voxels, and the parameters of those with a valid fit."""
    with np.errstate(invalid="ignore", divide="ignore"):
        ve = ktrans / kep
        status = np.full(ktrans.shape, FitStatus.UNRESOLVED, np.uint8)
        in_range = (kep >= _LEAST_KEP) & (kep <= _MOST_KEP) & (ve <= 1) & (vp <= 1)
        in_range &= ktrans <= _MOST_KTRANS
        status[in_range] = FitStatus.FITTED
        status[~(ktrans > 0)] = FitStatus.NO_UPTAKE
    # This condition is the last one, because NaN is not above 0 either.
    status[~np.isfinite(ktrans)] = FitStatus.NO_CONCENTRATION
    failed = status != FitStatus.FITTED
    values_of = [np.where(failed, np.nan, values) for values in (ktrans, ve, vp, kep)]
    return TissueFit(values_of[0], values_of[1], values_of[2], values_of[3], status)
