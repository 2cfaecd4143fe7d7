"""Compute all kinetic measures of a case and a mask as one row."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import Case, Phase
from napari_mamamia.core.cohort import CaseRecord
from napari_mamamia.core.errors import CaseError, GridMismatchError
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.progress import listening
from napari_mamamia.io.files.sources import CaseFiles
from napari_mamamia.kinetics import tumour_volume
from napari_mamamia.kinetics.background import (
    BackgroundEnhancement,
    background_enhancement,
    central_half,
)
from napari_mamamia.kinetics.curves import ContrastCurve, curve_enhancement, region_contrast_curve
from napari_mamamia.kinetics.lesion import LesionKinetics, lesion_kinetics
from napari_mamamia.kinetics.repeated_pre import RepeatedPre
from napari_mamamia.kinetics.sound_signal import unmeasured_voxels
from napari_mamamia.kinetics.time_axis import TimingRule, known_times, odd_span, rule_of
from napari_mamamia.kinetics.timing import PhaseChoice, choose_curve_phases, choose_phases
from napari_mamamia.kinetics.ultrafast import PE_AT_S
from napari_mamamia.metrics.diameter import longest_diameter_mm
from napari_mamamia.segmentation.kinetic.breast import breast_mask
from napari_mamamia.segmentation.kinetic.kinetic_settings import BreastSettings
from napari_mamamia.services.kinetics.row import KineticRow, text_of, with_ultrafast

# Detection of the contralateral breast, in which background enhancement is measured.

_BOTH_FROM_MM: Final = 240.0
"""Smallest width in mm of a bilateral volume. Source: see `segmentation.kinetic.breast`."""

_SMOOTH_MM: Final = 10.0
_ON_BOTH_SIDES: Final = 0.1
_NO_MUSCLE: Final = BreastSettings(chest_depth_mm=0.0)
"""Breast settings that end at the chest surface, because muscle behind it is as bright as gland."""

_NOT_ALONE: Final = "only one breast is in view"


def other_breast_enhancement(
    case: Case, lesion: NDArray[np.bool_], early: int
) -> BackgroundEnhancement:
    """Return the background enhancement of the contralateral breast (experimental).

    `lesion` is a boolean array ``(z, y, x)`` on the case's grid.
    """
    breast, why = other_breast(case, lesion)
    if breast is None:
        return BackgroundEnhancement.unknown(why)
    axis = case.grid.display_frame().order[0]
    return background_enhancement(case.signal, central_half(breast, axis), early)


def other_breast(case: Case, lesion: NDArray[np.bool_]) -> tuple[NDArray[np.bool_] | None, str]:
    """Return the mask of the contralateral breast, or None with the reason.

    The midline is the sagittal plane with the least breast tissue in the middle third of the width.

    Parameters
    ----------
    case
        The case with its phases.
    lesion
        A boolean array ``(z, y, x)``.
    """
    if not lesion.any():
        return None, "the mask is empty"
    frame = case.grid.display_frame("axial")
    with listening(None):
        breasts = breast_mask(case.signal[0], case.grid, _NO_MUSCLE)
    shown = frame.to_display(breasts.array)
    step = frame.per_axis(case.grid.spacing_mm)[2]
    profile = np.count_nonzero(shown, axis=(0, 1)).astype(np.float64)
    planes = np.flatnonzero(profile)
    if planes.size == 0 or (planes[-1] - planes[0]) * step < _BOTH_FROM_MM:
        return None, _NOT_ALONE
    middle = _find_midline(profile, int(planes[0]), int(planes[-1]), step)
    turned = frame.to_display(lesion)
    beyond = np.count_nonzero(turned[:, :, middle:]) / np.count_nonzero(turned)
    if _ON_BOTH_SIDES <= beyond <= 1 - _ON_BOTH_SIDES:
        return None, "the mask lies on both sides of the midline"
    # The array is copied, because a mask's array is read-only and `half` below is a view of it.
    other = breasts.array.copy()
    half = frame.to_display(other)
    if beyond > 0.5:
        half[:, :, middle:] = False
    else:
        half[:, :, :middle] = False
    return other, ""


def _find_midline(profile: NDArray[np.float64], first: int, last: int, step_mm: float) -> int:
    width = max(round(_SMOOTH_MM / step_mm), 1)
    smooth: NDArray[Any] = ndimage.uniform_filter1d(profile, width)
    third = (last - first) // 3
    return first + third + int(np.argmin(smooth[first + third : last - third + 1]))


_LEAST_SHARE: Final = 0.5
"""Smallest fraction of the mask's enhancing volume for a reliable FTV. Our choice."""


class FtvBox(StrEnum):
    """The region in which FTV is measured."""

    MASK = "mask"
    BREAST = "breast"


@dataclass(frozen=True, slots=True)
class KineticSettings:
    """The settings on which a case's kinetic measures depend, in addition to its files.

    Parameters
    ----------
    times_s
        The times in seconds that the user entered, one for each phase; None for the times in the
        data set.
    label
        The mask value that is tumour; None for any value above 0.
    rule
        The timing rule that selects the phases.
    injection
        The source of each case's injection time: "header", a folder of vessel masks, or "" to use
        `rule`.
    ftv_box
        MASK for the mask's bounding box with a margin of `FTV_MARGIN_MM`, or BREAST for the breast
        box in the patient info.
    repeated_pre
        The treatment of a repeated pre-contrast scan.
    mask_name
        The name of the masks in the table.
    vessels
        A folder with masks of the aorta or heart, in which contrast arrival is the origin of the
        time to enhancement, or "".
    pe_at_s
        The time in s at which `pe_at_percent` is measured.
    """

    times_s: tuple[float, ...] | None = None
    label: float | None = None
    rule: TimingRule = field(default_factory=TimingRule)
    injection: str = ""
    ftv: tumour_volume.FtvSettings = field(default_factory=tumour_volume.FtvSettings)
    ftv_box: FtvBox = FtvBox.MASK
    repeated_pre: RepeatedPre = RepeatedPre.LEAVE_OUT
    mask_name: str = "reference"
    vessels: str = ""
    pe_at_s: float = PE_AT_S


def with_times(case: Case, times_s: Sequence[float]) -> Case:
    """Return the case with its acquisition times replaced.

    Parameters
    ----------
    case
        The case with its phases.
    times_s
        The acquisition time of each phase in seconds.

    Raises
    ------
    CaseError
        If the numbers of times and phases differ.
    """
    if len(times_s) != len(case.phases):
        listed = ", ".join(f"{time:g}" for time in times_s)
        raise CaseError(
            f"expected one time for each of the {len(case.phases)} phases of {case.case_id}, but "
            f"got {len(times_s)} ({listed}); enter a time for every phase, including phase 0"
        )
    phases = tuple(
        Phase(phase.index, float(time), phase.sources, phase.loaded)
        for phase, time in zip(case.phases, times_s, strict=True)
    )
    return replace(case, phases=phases)


def times_source(case: Case, files: CaseFiles | None, record: CaseRecord | None) -> str:
    """Return a short description of where a case's times come from, or "" if it has no times."""
    if all(time is None for time in case.times_s):
        return ""
    if files is None:
        return "given with the case"
    if all(source.time_s is not None for source in files.phases):
        return "from the image files or times.json"
    if record is not None and record.acquisition_times_s is not None:
        return "from the clinical table"
    return "from the patient info"


def case_kinetics(
    case: Case,
    mask: NDArray[np.bool_],
    settings: KineticSettings | None = None,
    *,
    source: str = "",
    background: bool = True,
) -> KineticRow:
    """Return the kinetics row of a case.

    Parameters
    ----------
    mask
        A boolean array ``(z, y, x)``. If it is empty, sizes are 0 or NaN, with a warning.
    source
        The source of the times.
    background
        Whether to measure the contralateral breast, which takes a few seconds.

    Raises
    ------
    CaseError
        If the case has fewer than two phases or has unread phases, or if a signal in the mask is
        implausibly large.
    GridMismatchError
        If the mask and the case differ in shape.
    """
    settings = settings or KineticSettings()
    case.require_phases(2)
    if mask.shape != case.grid.shape:
        raise GridMismatchError(
            f"expected a mask with the shape {case.grid.shape} (z, y, x) of case {case.case_id}, "
            f"but got {mask.shape}; choose the mask of this case"
        )
    unmeasured = unmeasured_voxels(case.signal, mask, "the mask")
    axis = case.grid.display_frame().order[0]
    times, volume = case.times_s, case.grid.voxel_volume_mm3
    rule = rule_of(case, settings.rule)
    choice, curve_choice = choose_phases(times, rule), choose_curve_phases(times, rule)
    lesion = lesion_kinetics(case.signal, mask, curve_choice, volume, slice_axis=axis)
    row = KineticRow(case.case_id, mask=settings.mask_name, n_phases=float(len(times)))
    row = _with_timing(row, case, choice, curve_choice, source)
    row = _with_sizes(row, mask, case.grid)
    curve = region_contrast_curve(case.signal, mask, times, rule)
    row = _with_curve(row, curve, lesion)
    row = with_ultrafast(row, case, curve, settings.vessels, settings.pe_at_s)
    row = _with_ftv(row, case, mask, choice, settings)
    if background:
        row = _with_background(row, other_breast_enhancement(case, mask, choice.early))
    return replace(
        row, warning="; ".join([*_list_warnings(case, lesion), *filter(None, [unmeasured])])
    )


def diameters_mm(mask: NDArray[np.bool_], grid: Grid) -> tuple[float, float]:
    """Return the longest diameter in 3-D and in any acquired slice, in mm, or NaN if empty.

    Parameters
    ----------
    mask
        A boolean array ``(z, y, x)``.
    grid
        The grid of the case.
    """
    box = Box.around(mask)
    inside = mask[box.slices]
    matrix = np.asarray(grid.matrix_mm)
    axis = grid.display_frame().order[0]
    slices = (inside.take([k], axis=axis) for k in range(inside.shape[axis]))
    flat = [longest_diameter_mm(image, matrix) for image in slices if image.any()]
    return longest_diameter_mm(inside, matrix), max(flat, default=math.nan)


def _with_timing(
    row: KineticRow, case: Case, choice: PhaseChoice, curve: PhaseChoice, source: str
) -> KineticRow:
    return replace(
        row,
        times_s=text_of(known_times(case.times_s)[0]),
        times_source=source or ("" if all(t is None for t in case.times_s) else "typed in"),
        timing=str(choice.timing),
        timing_remark=choice.remark,
        contrast=case.contrast,
        phases_before=float(case.n_before),
        early_phase=float(choice.early),
        early_s=_convert_float(choice.early_s),
        early_gap_s=_convert_float(choice.early_gap_s),
        late_phase=_convert_float(choice.late_taken),
        late_s=_convert_float(choice.late_s),
        late_gap_s=_convert_float(choice.late_gap_s),
        early_late_reason=choice.reason,
        initial_phase=float(curve.early),
        initial_s=_convert_float(curve.early_s),
        initial_gap_s=_convert_float(curve.early_gap_s),
        delayed_phase=_convert_float(curve.late),
        delayed_s=_convert_float(curve.late_s),
        delayed_gap_s=_convert_float(curve.late_gap_s),
        curve_reason=curve.reason,
    )


def _with_sizes(row: KineticRow, mask: NDArray[np.bool_], grid: Grid) -> KineticRow:
    count = int(np.count_nonzero(mask))
    longest, flat = diameters_mm(mask, grid)
    return replace(
        row,
        n_voxels=float(count),
        volume_mm3=count * grid.voxel_volume_mm3,
        longest_diameter_mm=longest,
        in_plane_diameter_mm=flat,
    )


def _with_curve(row: KineticRow, curve: ContrastCurve, lesion: LesionKinetics) -> KineticRow:
    hottest = lesion.hottest
    patch = "" if hottest is None else text_of(_compute_percent(hottest.curve))
    return replace(
        row,
        mean_signal=text_of(curve.signal) if curve.n_voxels else "",
        mean_pe_percent=text_of(curve.percent) if curve.n_voxels else "",
        peak_pe_of_mean_percent=curve.peak_percent,
        peak_phase_of_mean=_convert_float(curve.peak_phase),
        peak_pe_percent=lesion.peak_enhancement,
        delayed_change_percent=curve.change_percent,
        initial_class=curve.initial.name.lower(),
        delayed_class=curve.delayed.name.lower(),
        predominant_curve=lesion.predominant.name.lower(),
        worst_curve=lesion.worst.name.lower(),
        angio_volume_mm3=lesion.angio_volume_mm3 if lesion.n_voxels else math.nan,
        persistent_mm3=lesion.persistent_mm3,
        plateau_mm3=lesion.plateau_mm3,
        washout_mm3=lesion.washout_mm3,
        hottest_pe_percent=patch,
        hottest_voxel_zyx="" if hottest is None else text_of(hottest.centre),
    )


def _with_ftv(
    row: KineticRow,
    case: Case,
    mask: NDArray[np.bool_],
    choice: PhaseChoice,
    settings: KineticSettings,
) -> KineticRow:
    row = replace(row, ftv_variant=str(settings.ftv.variant), ftv_thresholds=settings.ftv.name)
    box, origin, why = _ftv_box(case, mask, settings)
    if not why and choice.late is None:
        why = choice.reason
    if why:
        return replace(row, ftv_reason=why)
    images = tumour_volume.prepare_ftv(case.signal, choice, (box,))
    volume = tumour_volume.functional_tumour_volume(
        images, case.grid.voxel_volume_mm3, settings.ftv
    )
    ranges = ", ".join(f"{a}:{b}" for a, b in zip(box.start, box.stop, strict=True))
    return _with_volume(replace(row, ftv_box=f"{origin} [{ranges}]"), volume)


def _ftv_box(
    case: Case, mask: NDArray[np.bool_], settings: KineticSettings
) -> tuple[Box, str, str]:
    """Return the region of FTV, its description, and the reason if there is no such region."""
    if settings.ftv_box is FtvBox.MASK:
        box = tumour_volume.box_around_mask(mask, case.grid)
        why = "the mask is empty" if box.is_empty else ""
        return box, f"mask + {tumour_volume.FTV_MARGIN_MM:g} mm", why
    if case.breast_box is None:
        return Box.empty(), "", "the patient info gives no usable breast box"
    return case.breast_box, "breast box of the patient info", ""


def _with_volume(row: KineticRow, found: tumour_volume.FunctionalTumourVolume) -> KineticRow:
    values: dict[str, Any] = {
        "ftv_cc": found.volume_cc,
        "ftv_partial_cc": found.partial_cc,
        "ftv_washout_cc": found.washout_cc,
    }
    for bin_ in found.bins:
        values[f"ftv_{bin_.colour}_cc"] = bin_.volume_cc
        values[f"ftv_{bin_.colour}_percent"] = bin_.percent
    if found.volume_cc * 1000.0 < _LEAST_SHARE * row.angio_volume_mm3:
        values["ftv_reason"] = (
            "FTV is less than half of the mask's volume with PE >= 50 %, because most of that "
            f"volume is darker before contrast than {found.settings.background:.0%} of P95, as in "
            "images without fat suppression; do not use this FTV"
        )
    return replace(row, **values)


def _with_background(row: KineticRow, found: BackgroundEnhancement) -> KineticRow:
    return replace(
        row,
        bpe_mean_percent_experimental=found.mean_percent,
        bpe_median_percent_experimental=found.median_percent,
        bpe_voxels=float(found.n_voxels),
        bpe_reason=found.reason,
    )


def _list_warnings(case: Case, lesion: LesionKinetics) -> list[str]:
    warnings = list(case.warnings)
    if lesion.n_voxels == 0:
        warnings.append("the mask is empty")
    if odd := odd_span(case.times_s):
        warnings.append(odd)
    times, why = known_times(case.times_s)
    if times is None:
        warnings.append(f"{why}: phases are chosen by order, and curve classes are uncertain")
    return warnings


def _compute_percent(signal: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(float(value) for value in curve_enhancement(np.array(signal, np.float64)))


def _convert_float(value: float | None) -> float:
    return math.nan if value is None else float(value)
