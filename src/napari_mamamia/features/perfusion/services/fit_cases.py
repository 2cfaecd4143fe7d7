"""Fit perfusion in many cases: maps, a table with one row per case, and definitions."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.case import Case
from napari_mamamia.core.cohort import CaseRecord
from napari_mamamia.core.errors import CaseError, MamamiaError, Remedy, SaveConflictError
from napari_mamamia.core.grid import Grid, require_same_grid
from napari_mamamia.core.progress import report_progress
from napari_mamamia.core.provenance import Setting, now_utc, software_version
from napari_mamamia.features.perfusion.kinetics import fit
from napari_mamamia.features.perfusion.kinetics.arrival_fit import fitted_arrival_s
from napari_mamamia.features.perfusion.kinetics.arterial_input import PlasmaCurve, plasma_curve
from napari_mamamia.features.perfusion.kinetics.gate import require_points, require_spacing
from napari_mamamia.features.perfusion.kinetics.spoiled_echo import (
    LEAST_T1_S,
    MOST_T1_S,
    SpoiledEcho,
    concentration_mm,
    require_dynamic_flip,
)
from napari_mamamia.features.perfusion.kinetics.t1_map import B1_NOTE, t1_of_flip_angles
from napari_mamamia.features.perfusion.services.row import PerfusionRow
from napari_mamamia.features.perfusion.services.settings import (
    ALL_MAPS,
    FlipAngles,
    PerfusionSettings,
)
from napari_mamamia.io.data_set.volumes import read_volume, write_volume_job
from napari_mamamia.io.files.append_file import read_checked_lines
from napari_mamamia.io.files.checksums import sha256_of
from napari_mamamia.io.files.file_names import case_key
from napari_mamamia.io.files.folders import list_names
from napari_mamamia.io.tables.tables import write_json
from napari_mamamia.io.volumes.formats import file_stem
from napari_mamamia.kinetics.curves import region_curve
from napari_mamamia.kinetics.sound_signal import unmeasured_voxels
from napari_mamamia.kinetics.time_axis import odd_span
from napari_mamamia.services.batch import work
from napari_mamamia.services.batch.output_folder import Existing
from napari_mamamia.services.batch.row_table import RowSummary, rows_of_batch, write_definitions
from napari_mamamia.services.case.data_set import OpenDataSet
from napari_mamamia.services.case.open_case import load_remaining, open_case, read_mask
from napari_mamamia.services.kinetics.case_kinetics import with_times
from napari_mamamia.services.kinetics.injection import vessel_arrival_s

_VOXELS: Final = 1 << 14
"""Number of voxels fitted in one step (4 MB of float32 with 60 phases)."""

_REFINED_VOXELS: Final = 2048
_SHORT_S: Final = 180.0
_ODD_RESIDUAL_PERCENT: Final = 5.0
"""Residual, in percent, above which the model does not describe the curve (our choice).

Possible causes are motion, or a wrong arrival or arterial input.
"""


@dataclass(frozen=True, slots=True, eq=False)
class FittedCase:
    """A case's table row and its maps by name: float32 ``(z, y, x)``, NaN where not fitted.

    The standard Tofts model has no vp and therefore no map ``vp``.
    """

    row: PerfusionRow
    maps: dict[str, NDArray[np.float32]]


@dataclass(frozen=True, slots=True, eq=False)
class _Exam:
    """The data for fitting the voxels of a case; `t10` is one value, or one per voxel."""

    signal: NDArray[Any]
    t10: NDArray[np.float32] | float
    echo: SpoiledEcho
    before: int
    minutes: NDArray[np.float64]
    plasma: PlasmaCurve

    def concentration(self, at: Any, number: type[Any]) -> NDArray[Any]:
        """Return concentrations in mM, ``(phase, voxel)``, for a slice or indices of voxels."""
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
    """Fit one case, and return its maps and its table row.

    Parameters
    ----------
    case
        The case with all phases.
    mask
        bool ``(z, y, x)``. If the mask is None or empty, there is no least-squares fit, and the
        arrival must be given in the settings.
    t10
        T1 before contrast in s, as one value or a map ``(z, y, x)``.
    echo
        Repetition time, flip angle and relaxivity.
    settings
        The model, the arterial input and the arrival.

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
            f"expected T1 in the mask of {case_id} to be from {LEAST_T1_S:g} to {MOST_T1_S:g} s, "
            "but no voxel has such a T1; check the position and unit of the map"
        )
    return float(np.median(plausible))


def _t10_remark(t10: NDArray[np.float32] | float, inside: NDArray[np.intp]) -> str:
    """Return a warning about the T1 map within the mask, or "" if there is none."""
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
        return (
            f"the T1 map has the same value, {values[0]:g} s, in the whole mask: check that it "
            "was measured"
        )
    return ""


def _find_arrival(
    case: Case,
    times: tuple[float, ...],
    mean: NDArray[np.float64] | None,
    median_t10: float,
    echo: SpoiledEcho,
    settings: PerfusionSettings,
) -> tuple[float, str]:
    """Return the arrival of contrast in seconds since phase 0, and how it was determined."""
    if settings.arrival_s is not None:
        return settings.arrival_s, "typed in"
    if settings.vessels:
        return vessel_arrival_s(case, settings.vessels), "bolus in the vessel mask"
    if mean is None:
        raise CaseError(
            f"the arrival of contrast is determined from the mask of {case.case_id}, but the mask "
            "is missing or empty; add a mask, or enter the arrival in seconds",
            remedies=(Remedy("masks", ("DIR",)), Remedy("arrival", ("SECONDS",))),
        )
    arrival_s = fitted_arrival_s(times, mean, median_t10, echo, settings.source, settings.model)
    return arrival_s, "fitted to the mask's mean curve"


def _fill_linear(
    exam: _Exam, settings: PerfusionSettings, maps: dict[str, NDArray[np.float32]]
) -> Iterator[int]:
    """Fit all voxels in steps, yielding the number of finished voxels."""
    linear = fit.LinearFit(settings.model, exam.plasma, exam.minutes)
    count = exam.signal.shape[1]
    for start in range(0, count, _VOXELS):
        yield start
        index = slice(start, min(start + _VOXELS, count))
        _store_fit(linear.fit(exam.concentration(index, np.float32)), index, maps)


def _store_fit(fitted: fit.TissueFit, at: Any, maps: dict[str, NDArray[np.float32]]) -> None:
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
    """Refit the voxels of the mask in `maps`, and return the row with the mask's results."""
    refined = fit.RefinedFit(settings.model, exam.plasma, exam.minutes)
    counts = np.zeros(len(fit.FitStatus), np.int64)
    for start in range(0, inside.size, _REFINED_VOXELS):
        report_progress(start, inside.size, f"{settings.model}, least squares in the mask")
        index = inside[start : start + _REFINED_VOXELS]
        fitted = refined.fit(exam.concentration(index, np.float64))
        counts += np.bincount(fitted.status, minlength=len(fit.FitStatus))
        _store_fit(fitted, index, maps)
    row = replace(
        row,
        n_fitted=float(counts[fit.FitStatus.FITTED]),
        n_no_concentration=float(counts[fit.FitStatus.NO_CONCENTRATION]),
        n_no_uptake=float(counts[fit.FitStatus.NO_UPTAKE]),
        n_unresolved=float(counts[fit.FitStatus.UNRESOLVED]),
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
    refined: fit.RefinedFit,
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
    """Raise an error if no voxel in the intended region was fitted."""
    if row.n_fitted == 0:
        raise CaseError(
            f"expected {row.model} to fit voxels in the mask of {row.case_id}, but none of "
            f"{row.n_voxels:.0f} was fitted ({row.n_no_concentration:.0f} without a "
            f"concentration, {row.n_no_uptake:.0f} without uptake, {row.n_unresolved:.0f} out of "
            f"range); check T1 ({row.t10_median_s:g} s), TR ({row.repetition_ms:g} ms), flip "
            f"angle ({row.flip_degrees:g} degrees), relaxivity ({row.relaxivity_per_s_mm:g} per s "
            f"and mM), arrival ({row.arrival_s:g} s), times (the last phase is "
            f"{row.last_after_arrival_s:g} s after arrival) and the mask"
        )
    if not row.n_voxels and row.n_fitted_volume == 0:
        raise CaseError(
            f"expected {row.model} to fit voxels in {row.case_id}, but no voxel was fitted in the "
            "whole volume; check T1, TR, flip angle, relaxivity, arrival and times"
        )


def _list_warnings(row: PerfusionRow, case: Case, settings: PerfusionSettings) -> list[str]:
    warnings = list(case.warnings)
    if not row.n_voxels:
        warnings.append("no mask with voxels: the maps contain only the linear fit")
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
            "check for motion, a wrong arrival, a wrong arterial input or an unsuitable model"
        )
    if row.last_after_arrival_s < _SHORT_S:
        warnings.append(
            f"phases end {row.last_after_arrival_s:.0f} s after contrast arrives: ve and kep are "
            "uncertain"
        )
    if settings.flip_angles is not None:
        warnings.append(B1_NOTE)
    return warnings


@dataclass(frozen=True, slots=True)
class PerfusionInputs(work.MaskedInputs):
    """Inputs of a case: phases, mask, and the sources of T1 and of the echo parameters.

    Parameters
    ----------
    t1_files
        The T1 map, or the volume of each flip angle; None for a missing file.
    repetition_ms, flip_degrees
        TR and flip angle of the dynamic series, from the clinical table.
    may_replace
        Whether any existing map may be replaced. Otherwise only a map that is equal or in
        `own_maps` may be replaced.
    own_maps
        SHA-256 of the maps that earlier runs in the folder wrote. If any map may be replaced, these
        maps are removed first, because a run of a different model would leave some of them.
    """

    t1_files: tuple[Path | None, ...] = ()
    repetition_ms: float | None = None
    flip_degrees: float | None = None
    may_replace: bool = False
    own_maps: tuple[str, ...] = ()


def perfusion_inputs(
    opened: OpenDataSet,
    masks: Path | None,
    case_ids: Sequence[str],
    settings: PerfusionSettings,
    own_maps: Mapping[str, tuple[str, ...]],
    *,
    may_replace: bool,
) -> tuple[PerfusionInputs, ...]:
    """Return, for each case, the mask, the T1 files and the echo parameters.

    Raises
    ------
    CaseError
        If `case_ids` names a case that does not exist, or there is one T1 map for several cases.
    FormatError
        If `masks` is missing or contains no mask.
    """
    cases = work.masked_inputs(opened, masks, case_ids, (settings.vessels,))
    if settings.t10_map and Path(settings.t10_map).is_file() and len(cases) > 1:
        raise CaseError(
            f"expected a T1 map for each of {len(cases)} cases, but found a single file, "
            f"{settings.t10_map}; use a folder of maps ID.nii.gz, or one case",
            remedies=(Remedy("t10", ("FOLDER",)), Remedy("case", ("ID",))),
        )
    inputs = []
    for case in cases:
        record = opened.record(case.case_id)
        t1_files = _t1_files(case.case_id, settings)
        inputs.append(
            PerfusionInputs(
                case.case_id,
                (*t1_files, *case.files),
                sources=case.sources,
                record=case.record,
                t1_files=t1_files,
                repetition_ms=_read_number(record, "repetition_time"),
                flip_degrees=_read_number(record, "flip_angle"),
                may_replace=may_replace,
                own_maps=own_maps.get(case.case_id, ()),
            )
        )
    return tuple(inputs)


def _t1_files(case_id: str, settings: PerfusionSettings) -> tuple[Path | None, ...]:
    if settings.flip_angles is not None:
        return _flip_files(case_id, settings.flip_angles)
    if not settings.t10_map:
        return ()
    path = Path(settings.t10_map)
    if path.is_file():
        return (path.resolve(),)
    return (_of_case(case_id, path),)


def _of_case(case_id: str, folder: Path) -> Path | None:
    path_of_case = work.masks_of_cases(folder, [case_id]).get(case_key(case_id))
    return path_of_case and path_of_case.absolute()


def _flip_files(case_id: str, flips: FlipAngles) -> tuple[Path | None, ...]:
    folder = Path(flips.folder)
    case_folder = folder / case_id if (folder / case_id).is_dir() else folder
    stems = [f"{case_id}_{number:04d}" for number in range(len(flips.degrees))]
    files = {file_stem(name): (case_folder / name).absolute() for name in list_names(case_folder)}
    return tuple(files.get(stem) for stem in stems)


def _read_number(record: CaseRecord | None, column: str) -> float | None:
    value = None if record is None else record.other.get(column)
    if value is None or isinstance(value, bool):
        return None
    try:
        return float(value)
    except ValueError:
        return None


# Reading a case's T1 before contrast: a value, a map, or volumes with several flip angles.

_MOST_MEDIAN_S: Final = 20.0
"""Largest plausible median of a T1 map, in s; T1 of water is 4 s."""


def read_t1_map(path: Path, case: Case) -> NDArray[np.float32]:
    """Read a T1 map in s, shape ``(z, y, x)``.

    Raises
    ------
    CaseError
        If the file contains several volumes, or its values are not seconds.
    FormatError, GridMismatchError
        If the file is damaged, or its grid differs from that of the case.
    """
    values = _on_grid(path, case).astype(np.float32)
    positive = values[np.isfinite(values) & (values > 0)]
    median = float(np.median(positive)) if positive.size else 0.0
    if not 0 < median <= _MOST_MEDIAN_S:
        unit = "milliseconds" if median > _MOST_MEDIAN_S else "no T1 at all"
        raise CaseError(
            f"expected the T1 map {path} to be in seconds, up to {MOST_T1_S:g}, but its median is "
            f"{median:g}, which looks like {unit}; write the map in seconds"
        )
    return values


def t1_of_volumes(
    paths: Sequence[Path], degrees: Sequence[float], repetition_s: float, case: Case
) -> NDArray[np.float32]:
    """Compute T1 in s from one volume per flip angle, plane by plane.

    Raises
    ------
    CaseError
        If a file contains several volumes; for other reasons see `t1_of_flip_angles`.
    FormatError, GridMismatchError
        See `read_t1_map`.
    """
    volumes = []
    for number, path in enumerate(paths):
        report_progress(number, len(paths), "Reading volumes of several flip angles")
        volumes.append(_on_grid(path, case))
    t1 = np.empty(case.grid.shape, np.float32)
    for plane in range(len(t1)):
        report_progress(plane, len(t1), "T1 from the flip angles")
        signals = np.stack([volume[plane].astype(np.float64) for volume in volumes])
        t1[plane], _ = t1_of_flip_angles(signals, degrees, repetition_s)
    return t1


def _on_grid(path: Path, case: Case) -> NDArray[Any]:
    header, values = read_volume(path)
    if values.ndim != 3:
        raise CaseError(
            f"expected {path} to contain one volume, but it contains {len(values)}; write a file "
            "for each volume"
        )
    require_same_grid(header.grid, case.grid, str(path), f"case {case.case_id}")
    return values


TABLE: Final = "perfusion.csv"
_PROVENANCE: Final = "perfusion.json"
_T1: Final = "t1"


def perfusion_of_data_set(
    opened: OpenDataSet,
    settings: PerfusionSettings,
    *,
    masks: Path | None = None,
    case_ids: Sequence[str] = (),
    place: work.Place | None = None,
    existing: Existing = Existing.REFUSE,
) -> RowSummary[PerfusionRow]:
    """Fit every case and write maps and tables to `settings.out`.

    For each case the function writes ``ID_ktrans.nii.gz`` and ``ID_kep.nii.gz`` (1/min),
    ``ID_ve.nii.gz``, with extended-tofts ``ID_vp.nii.gz``, with flip angles ``ID_t1.nii.gz`` (s),
    and ``ID_perfusion.json``. ``perfusion.csv`` and ``.xlsx`` have a row for each case.
    ``perfusion.json`` defines each column and lists the settings. ``case_results.jsonl`` stores
    each finished case.

    Parameters
    ----------
    opened
        The data set.
    settings
        The model, the arterial input, T1 and the output folder.
    masks
        Folder of masks ``ID.nii.gz``; None for the references of the data set.
    case_ids
        The cases to fit; empty for all cases.
    place, existing
        As in `run_batch`.

    Raises
    ------
    CaseError
        If `case_ids` names a case that does not exist, or there is one T1 map for several cases.
    FormatError
        If `masks` is missing or contains no mask.
    SaveConflictError
        If the folder contains other results.
    """
    out = Path(settings.out)
    parameters: tuple[tuple[str, Setting], ...] = (
        ("data_set", opened.data_set.name),
        ("cases", " ".join(case_ids)),
        *settings.parameters,
    )
    inputs = perfusion_inputs(
        opened,
        masks,
        case_ids,
        settings,
        {} if existing is Existing.REFUSE else _own_maps(out),
        may_replace=existing is Existing.OVERWRITE,
    )
    summary = rows_of_batch(
        inputs,
        work.CaseWork("perfusion", fit_files, settings, PerfusionRow),
        out / TABLE,
        PerfusionRow,
        parameters,
        read=_folders_read(opened, masks, settings),
        failed={"mask": settings.mask_name},
        place=place,
        existing=existing,
        still_holds=lambda row: _are_there(out, row),
    )
    units = {"map_units": settings.map_units}
    write_definitions(summary, PerfusionRow, dict(settings.parameters), existing, units)
    return summary


def fit_files(inputs: work.CaseInputs, settings: PerfusionSettings) -> PerfusionRow:
    """Fit one case from its files and write its maps.

    The times are checked before more than one phase is read, so that an unsuitable exam fails at
    once.

    Raises
    ------
    CaseError, FormatError, GridMismatchError, SaveConflictError, SaveError
    """
    if not isinstance(inputs, PerfusionInputs) or inputs.sources is None:
        raise CaseError(f"no files are listed for {inputs.case_id}; list the cases again")
    if inputs.may_replace:
        _remove_own_maps(inputs, settings)
    case = open_case(inputs.sources, inputs.record)
    if settings.times_s is not None:
        case = with_times(case, settings.times_s)
    require_spacing(case.times_s)
    echo, source = _find_echo(inputs, settings)
    case = load_remaining(case, inputs.sources)
    path = inputs.files[-1]
    mask = None if path is None else read_mask(path, case, settings.label)
    t10 = _read_t10(inputs, settings, case, echo)
    fitted = fit_case(case, mask, t10, echo, settings)
    maps = dict(fitted.maps)
    if settings.flip_angles is not None and not isinstance(t10, float):
        maps[_T1] = t10
    sums = _write_maps(maps, case.grid, inputs, settings)
    row = replace(fitted.row, scan_source=source, maps_sha256=" ".join(sums))
    _write_note(row, inputs, settings)
    return row


def _find_echo(inputs: PerfusionInputs, settings: PerfusionSettings) -> tuple[SpoiledEcho, str]:
    """Return the echo parameters of the dynamic series, and where they come from."""
    typed = (settings.repetition_ms is not None, settings.flip_degrees is not None)
    repetition = settings.repetition_ms if typed[0] else inputs.repetition_ms
    flip = settings.flip_degrees if typed[1] else inputs.flip_degrees
    if repetition is None or flip is None:
        option, missing = (
            ("tr", "repetition time") if repetition is None else ("flip_angle", "flip angle")
        )
        raise CaseError(
            f"expected the clinical table to have TR and flip angle of {inputs.case_id} "
            f"(repetition_time in ms, flip_angle in degrees), but it has no {missing}; enter the "
            "value",
            remedies=(Remedy(option, ("NUMBER",)),),
        )
    require_dynamic_flip(flip)
    words = ["typed in" if is_typed else "clinical table" for is_typed in typed]
    source = words[0] if words[0] == words[1] else f"TR {words[0]}, flip angle {words[1]}"
    return SpoiledEcho(repetition / 1e3, flip, settings.relaxivity), source


def _read_t10(
    inputs: PerfusionInputs, settings: PerfusionSettings, case: Case, echo: SpoiledEcho
) -> NDArray[np.float32] | float:
    if settings.t10_s is not None:
        return settings.t10_s
    files = [path for path in inputs.t1_files if path is not None]
    if not files or len(files) < len(inputs.t1_files):
        what = f"{len(inputs.t1_files)} volumes ID_0000, ..." if settings.flip_angles else "a map"
        raise CaseError(
            f"expected T1 of {case.case_id} as {what} in "
            f"{settings.t10_map or (settings.flip_angles and settings.flip_angles.folder)}, but "
            f"found {len(files)}; add the missing files, or enter T1 in seconds"
        )
    flips = settings.flip_angles
    if flips is None:
        return read_t1_map(files[0], case)
    repetition_ms = flips.repetition_ms
    repetition_s = echo.repetition_s if repetition_ms is None else repetition_ms / 1e3
    return t1_of_volumes(files, flips.degrees, repetition_s, case)


def _write_maps(
    maps: Mapping[str, NDArray[np.float32]],
    grid: Grid,
    inputs: PerfusionInputs,
    settings: PerfusionSettings,
) -> list[str]:
    """Write the maps without replacing files that a different program or run wrote."""
    paths = {name: _map_path(settings, inputs.case_id, name) for name in maps}
    for name, path in paths.items():
        if not inputs.may_replace:
            _require_own(path, maps[name], inputs.own_maps)
    sums = []
    for number, (name, path) in enumerate(paths.items()):
        report_progress(number, len(paths), f"Writing {path.name}")
        write_volume_job(maps[name], grid, path, overwrite=True)
        sums.append(f"{name}={sha256_of(path)}")
    return sums


def _map_path(settings: PerfusionSettings, case_id: str, name: str) -> Path:
    return Path(settings.out) / f"{case_id}_{name}.nii.gz"


def _require_own(path: Path, values: NDArray[np.float32], own: tuple[str, ...]) -> None:
    """Raise an error if an existing map differs from the new map and is not by an earlier run."""
    if not path.exists() or sha256_of(path) in own or _is_equal(path, values):
        return
    raise SaveConflictError(
        f"expected {path} to be absent or written by this run, but found a different file, which "
        "was kept; move it away, or replace all maps",
        remedies=(Remedy("overwrite"),),
    )


def _remove_own_maps(inputs: PerfusionInputs, settings: PerfusionSettings) -> None:
    """Remove the maps and notes of a case that earlier runs wrote."""
    for name in (*ALL_MAPS, _T1):
        path = _map_path(settings, inputs.case_id, name)
        if path.exists() and sha256_of(path) in inputs.own_maps:
            path.unlink()
    if inputs.own_maps:
        _note_path(settings, inputs.case_id).unlink(missing_ok=True)


def _is_equal(path: Path, values: NDArray[np.float32]) -> bool:
    try:
        _, there = read_volume(path)
    except (MamamiaError, OSError):
        return False
    return there.shape == values.shape and np.array_equal(there, values, equal_nan=True)


def _own_maps(out: Path) -> Mapping[str, tuple[str, ...]]:
    """Return the SHA-256 of all maps of each case that runs in the folder `out` recorded."""
    store = out / work.STORE_NAME
    sums_by_case: dict[str, tuple[str, ...]] = {}
    for entry in read_checked_lines(store) if store.exists() else ():
        result = entry.get("result") if isinstance(entry, dict) else None
        if isinstance(result, dict):
            sums = [part.rpartition("=")[2] for part in str(result.get("maps_sha256")).split()]
            name = str(entry["case_id"])
            sums_by_case[name] = (*sums_by_case.get(name, ()), *sums)
    return sums_by_case


def _are_there(out: Path, row: PerfusionRow) -> bool:
    names = [part.partition("=")[0] for part in row.maps_sha256.split()]
    return all((out / f"{row.case_id}_{name}.nii.gz").exists() for name in names)


def _folders_read(
    opened: OpenDataSet, masks: Path | None, settings: PerfusionSettings
) -> frozenset[Path]:
    flips = settings.flip_angles
    others = (settings.t10_map, settings.vessels, "" if flips is None else flips.folder)
    folders = {Path(name) for name in others if name} | ({masks} if masks is not None else set())
    return opened.data_set.folders | folders


def _write_note(row: PerfusionRow, inputs: PerfusionInputs, settings: PerfusionSettings) -> None:
    paths = [path for path in inputs.files if path is not None]
    content: dict[str, Any] = {
        "software": software_version(),
        "created": now_utc(),
        "units": {**settings.map_units, _T1: "s"},
        "fit": "least squares inside the mask, linear (Murase 2004) outside; NaN: no fit",
        "settings": dict(settings.parameters),
        "inputs": [{"name": path.name, "sha256": sha256_of(path)} for path in paths],
        **asdict(row),
    }
    write_json(content, _note_path(settings, row.case_id), overwrite=True)


def _note_path(settings: PerfusionSettings, case_id: str) -> Path:
    return Path(settings.out) / f"{case_id}_{_PROVENANCE}"
