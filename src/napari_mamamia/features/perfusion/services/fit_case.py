"""Fit a case: a linear fit in every voxel, and least squares inside the mask."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.case import Case
from napari_mamamia.core.errors import CaseError, Remedy
from napari_mamamia.core.progress import report_progress
from napari_mamamia.features.perfusion.kinetics.arrival_fit import fitted_arrival_s
from napari_mamamia.features.perfusion.kinetics.arterial_input import PlasmaCurve, plasma_curve
from napari_mamamia.features.perfusion.kinetics.fit import (
    FitStatus,
    LinearFit,
    RefinedFit,
    TissueFit,
)
from napari_mamamia.features.perfusion.kinetics.gate import require_points, require_spacing
from napari_mamamia.features.perfusion.kinetics.spoiled_echo import (
    LEAST_T1_S,
    MOST_T1_S,
    SpoiledEcho,
    concentration_mm,
)
from napari_mamamia.features.perfusion.kinetics.t1_map import B1_NOTE
from napari_mamamia.features.perfusion.services.row import PerfusionRow
from napari_mamamia.features.perfusion.services.settings import PerfusionSettings
from napari_mamamia.kinetics.curves import region_curve
from napari_mamamia.kinetics.sound_signal import unmeasured_voxels
from napari_mamamia.kinetics.time_axis import odd_span
from napari_mamamia.services.kinetics.injection import vessel_arrival_s

_VOXELS: Final = 1 << 14
"""Number of voxels in one step (4 MB of float32 with 60 phases)."""

_REFINED_VOXELS: Final = 2048
_SHORT_S: Final = 180.0
_ODD_RESIDUAL_PERCENT: Final = 5.0
"""Residual above which the model does not describe the curve: motion, another arrival or input.

Our choice.
"""


@dataclass(frozen=True, slots=True, eq=False)
class FittedCase:
    """The row of a case and its maps by name, float32 ``(z, y, x)``, NaN without a fit.

    There is no map ``vp`` with Tofts' model, which has no vp.
    """

    row: PerfusionRow
    maps: dict[str, NDArray[np.float32]]


@dataclass(frozen=True, slots=True, eq=False)
class _Exam:
    """The data for the fit of a case's voxels; `t10` is one value, or one for each voxel."""

    signal: NDArray[Any]
    t10: NDArray[np.float32] | float
    echo: SpoiledEcho
    before: int
    minutes: NDArray[np.float64]
    plasma: PlasmaCurve

    def concentration(self, at: Any, number: type[Any]) -> NDArray[Any]:
        """Return concentrations in mM of voxels `at` (a slice or indices), ``(phase, voxel)``."""
        part = self.signal[:, at].astype(number)
        baseline = part[: self.before].mean(axis=0)
        t10 = self.t10 if isinstance(self.t10, float) else self.t10[at]
        return concentration_mm(part, baseline, t10, self.echo)


def fit_case(
    case: Case,
    mask: NDArray[np.bool_] | None,
    t10: NDArray[np.float32] | float,
    echo: SpoiledEcho,
    settings: PerfusionSettings,
) -> FittedCase:
    """Return the maps and the row of one case.

    Parameters
    ----------
    mask
        bool ``(z, y, x)``; if it is None or empty there is no least-squares fit, and the arrival
        must be given.
    t10
        T1 before contrast in s, one value or a map ``(z, y, x)``.

    Raises
    ------
    CaseError
        If the phases do not allow the model, the arrival of contrast or T1 in the whole mask is
        unknown, a signal in the mask is implausibly large, or no voxel has a fit.
    """
    times = require_spacing(case.times_s)
    report_progress(0, 1, "Arrival of contrast")
    unmeasured = "" if mask is None else unmeasured_voxels(case.signal, mask, "the mask")
    inside = np.flatnonzero(mask) if mask is not None else np.zeros(0, np.intp)
    signal = case.signal.reshape(len(times), -1)
    flat_t10 = t10 if isinstance(t10, float) else t10.ravel()
    remarks = [odd_span(case.times_s), unmeasured, _t10_remark(flat_t10, inside)]
    median_t10 = _median_t10(flat_t10, inside, case.case_id)
    mean = region_curve(case.signal, mask) if mask is not None and inside.size else None
    arrival_s, source = _find_arrival(case, times, mean, median_t10, echo, settings)
    before = require_points(times, arrival_s)
    minutes = (np.asarray(times) - arrival_s) / 60
    plasma = plasma_curve(settings.source, float(minutes[-1]))
    exam = _Exam(signal, flat_t10, echo, before, minutes, plasma)
    maps = {name: np.full(signal.shape[1], np.nan, np.float32) for name in settings.map_units}
    for n_filled in _fill_linear(exam, settings, maps):
        report_progress(n_filled, signal.shape[1], f"{settings.model}, linear")
    row = PerfusionRow(
        case.case_id,
        mask=settings.mask_name if mask is not None else "",
        model=str(settings.model),
        arterial_input=settings.source.text,
        arrival_s=arrival_s,
        arrival_source=source,
        relaxivity_per_s_mm=settings.relaxivity,
        t10_source=settings.t10_source,
        t10_median_s=median_t10,
        repetition_ms=1e3 * echo.repetition_s,
        flip_degrees=echo.flip_degrees,
        n_phases=float(len(times)),
        phases_before=float(before),
        spacing_s=float(max(np.diff(times[1:]))),
        last_after_arrival_s=times[-1] - arrival_s,
        n_voxels=float(inside.size),
    )
    if inside.size and mean is not None:
        row = _with_lesion(row, exam, inside, mean, median_t10, settings, maps)
    row = replace(row, n_fitted_volume=float(np.isfinite(maps["ktrans"]).sum()))
    _require_fits(row)
    row = replace(
        row, warning="; ".join([*_list_warnings(row, case, settings), *filter(None, remarks)])
    )
    shaped = {name: values.reshape(case.grid.shape) for name, values in maps.items()}
    return FittedCase(row, shaped)


def _median_t10(t10: NDArray[np.float32] | float, inside: NDArray[np.intp], case_id: str) -> float:
    if isinstance(t10, float):
        return t10
    plausible = t10[inside] if inside.size else t10
    plausible = plausible[(plausible >= LEAST_T1_S) & (plausible <= MOST_T1_S)]
    if not plausible.size:
        raise CaseError(
            f"expected T1 of {LEAST_T1_S:g} to {MOST_T1_S:g} s in the mask of {case_id}, but "
            "found none; check the position and unit of the map"
        )
    return float(np.median(plausible))


def _t10_remark(t10: NDArray[np.float32] | float, inside: NDArray[np.intp]) -> str:
    """Return a warning about the T1 map in the mask, "" for none."""
    if isinstance(t10, float) or not inside.size:
        return ""
    values = t10[inside]
    usable = (values >= LEAST_T1_S) & (values <= MOST_T1_S)
    if not usable.all():
        return (
            f"T1 is not within {LEAST_T1_S:g} to {MOST_T1_S:g} s in {np.count_nonzero(~usable)} "
            f"of the mask's {inside.size} voxels, which have no fit"
        )
    if inside.size > 1 and values.min() == values.max():
        return f"the T1 map is {values[0]:g} s in the whole mask: was it measured?"
    return ""


def _find_arrival(
    case: Case,
    times: tuple[float, ...],
    mean: NDArray[np.float64] | None,
    median_t10: float,
    echo: SpoiledEcho,
    settings: PerfusionSettings,
) -> tuple[float, str]:
    """Return the arrival of contrast, s since phase 0, and its source."""
    if settings.arrival_s is not None:
        return settings.arrival_s, "typed in"
    if settings.vessels:
        return vessel_arrival_s(case, settings.vessels), "bolus in the vessel's mask"
    if mean is None:
        raise CaseError(
            f"expected a mask with voxels for {case.case_id}, whose curve gives the arrival of "
            "contrast, but found none; add one, or give the arrival in seconds",
            remedies=(Remedy("masks", ("DIR",)), Remedy("arrival", ("SECONDS",))),
        )
    arrival_s = fitted_arrival_s(times, mean, median_t10, echo, settings.source, settings.model)
    return arrival_s, "fitted to the mask's mean curve"


def _fill_linear(
    exam: _Exam, settings: PerfusionSettings, maps: dict[str, NDArray[np.float32]]
) -> Iterator[int]:
    """Fit every voxel, in steps; yield the number of finished voxels."""
    linear = LinearFit(settings.model, exam.plasma, exam.minutes)
    count = exam.signal.shape[1]
    for start in range(0, count, _VOXELS):
        yield start
        index = slice(start, min(start + _VOXELS, count))
        _store_fit(linear.fit(exam.concentration(index, np.float32)), index, maps)


def _store_fit(fitted: TissueFit, at: Any, maps: dict[str, NDArray[np.float32]]) -> None:
    maps["ktrans"][at] = fitted.ktrans_per_min
    maps["ve"][at] = fitted.ve
    maps["kep"][at] = fitted.kep_per_min
    if "vp" in maps:
        maps["vp"][at] = fitted.vp


def _with_lesion(
    row: PerfusionRow,
    exam: _Exam,
    inside: NDArray[np.intp],
    mean: NDArray[np.float64],
    median_t10: float,
    settings: PerfusionSettings,
    maps: dict[str, NDArray[np.float32]],
) -> PerfusionRow:
    """Refine the voxels of the mask in `maps`; return the row with their numbers."""
    refined = RefinedFit(settings.model, exam.plasma, exam.minutes)
    counts = np.zeros(len(FitStatus), np.int64)
    for start in range(0, inside.size, _REFINED_VOXELS):
        report_progress(start, inside.size, f"{settings.model}, least squares in the mask")
        index = inside[start : start + _REFINED_VOXELS]
        fitted = refined.fit(exam.concentration(index, np.float64))
        counts += np.bincount(fitted.status, minlength=len(FitStatus))
        _store_fit(fitted, index, maps)
    row = replace(
        row,
        n_fitted=float(counts[FitStatus.FITTED]),
        n_no_concentration=float(counts[FitStatus.NO_CONCENTRATION]),
        n_no_uptake=float(counts[FitStatus.NO_UPTAKE]),
        n_unresolved=float(counts[FitStatus.UNRESOLVED]),
    )
    lesion = {name: values[inside] for name, values in maps.items()}
    lesion = {name: values[np.isfinite(values)] for name, values in lesion.items()}
    if lesion["ktrans"].size:
        low, median, high = np.percentile(lesion["ktrans"], (10, 50, 90))
        row = replace(
            row,
            ktrans_median_per_min=float(median),
            ktrans_p10_per_min=float(low),
            ktrans_p90_per_min=float(high),
            ve_median=float(np.median(lesion["ve"])),
            vp_median=float(np.median(lesion["vp"])) if "vp" in lesion else math.nan,
            kep_median_per_min=float(np.median(lesion["kep"])),
        )
    row = _with_mean_curve(row, exam, mean, median_t10, refined)
    return row if "vp" in maps else replace(row, vp_of_mean=math.nan)


def _with_mean_curve(
    row: PerfusionRow,
    exam: _Exam,
    mean: NDArray[np.float64],
    median_t10: float,
    refined: RefinedFit,
) -> PerfusionRow:
    baseline = mean[: exam.before].mean(keepdims=True)
    curve = concentration_mm(mean[:, None], baseline, median_t10, exam.echo)
    fitted = refined.fit(curve)
    rms = math.sqrt(max(refined.residual(curve[:, 0]), 0.0) / len(curve))
    return replace(
        row,
        ktrans_of_mean_per_min=float(fitted.ktrans_per_min[0]),
        ve_of_mean=float(fitted.ve[0]),
        vp_of_mean=float(fitted.vp[0]),
        kep_of_mean_per_min=float(fitted.kep_per_min[0]),
        residual_percent=100 * rms / float(curve.max()),
    )


def _require_fits(row: PerfusionRow) -> None:
    """Refuse a case in which no voxel was fitted in the intended region."""
    if row.n_fitted == 0:
        raise CaseError(
            f"expected voxels that {row.model} fits in the mask of {row.case_id}, but none of "
            f"{row.n_voxels:.0f} was fitted ({row.n_no_concentration:.0f} without a "
            f"concentration, {row.n_no_uptake:.0f} without uptake, {row.n_unresolved:.0f} out of "
            f"range); check T1 ({row.t10_median_s:g} s), TR ({row.repetition_ms:g} ms), flip "
            f"angle ({row.flip_degrees:g} degrees), relaxivity ({row.relaxivity_per_s_mm:g} per s "
            f"and mM), arrival ({row.arrival_s:g} s), times (the last phase is "
            f"{row.last_after_arrival_s:g} s after it) and the mask"
        )
    if not row.n_voxels and row.n_fitted_volume == 0:
        raise CaseError(
            f"expected voxels that {row.model} fits in {row.case_id}, but none was fitted in the "
            "whole volume; check T1, TR, flip angle, relaxivity, arrival and times"
        )


def _list_warnings(row: PerfusionRow, case: Case, settings: PerfusionSettings) -> list[str]:
    warnings = list(case.warnings)
    if not row.n_voxels:
        warnings.append("no mask with voxels: the maps are the linear fit only")
    elif row.n_fitted < row.n_voxels / 2:
        warnings.append(
            f"{row.n_fitted:.0f} of the mask's {row.n_voxels:.0f} voxels could be fitted"
        )
    if row.n_voxels and math.isnan(row.ktrans_of_mean_per_min):
        warnings.append(
            "the mean curve has no fit; check T1, relaxivity, arrival and arterial input"
        )
    if row.residual_percent > _ODD_RESIDUAL_PERCENT:
        warnings.append(
            f"the residual of the mean curve's fit is {row.residual_percent:.0f} % of its peak; "
            "check for motion, another arrival, arterial input or model"
        )
    if row.last_after_arrival_s < _SHORT_S:
        warnings.append(
            f"phases end {row.last_after_arrival_s:.0f} s after contrast arrives: ve and kep are "
            "uncertain"
        )
    if settings.flip_angles is not None:
        warnings.append(B1_NOTE)
    return warnings
