"""`KineticServices`: the calls that page Kinetics makes, so that tests can pass fakes."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import Case
from napari_mamamia.kinetics.contrast_curve import ContrastCurve
from napari_mamamia.kinetics.map_kinds import MapRange
from napari_mamamia.kinetics.repeated_pre import with_pre
from napari_mamamia.kinetics.time_axis import TimingRule
from napari_mamamia.kinetics.tumour_volume import FtvImages
from napari_mamamia.services.kinetics.case_kinetics import times_source, with_times
from napari_mamamia.services.kinetics.ftv_from import FtvUnderSeg, ftv_under_seg
from napari_mamamia.services.kinetics.map_ranges import auto_limits, map_ranges, ranged
from napari_mamamia.services.kinetics.phase_text import timing_text
from napari_mamamia.services.kinetics.row import KineticRow
from napari_mamamia.services.kinetics.show_kinetics import (
    FtvAnswer,
    ShownMap,
    begin_map,
    cursor_curve,
    fill_map,
    fill_plane,
    ftv_box,
    live_ftv,
    mask_curve,
    mask_numbers,
    paint_ftv,
    prepare_live_ftv,
    save_curve_figure,
    save_curve_table,
)
from napari_mamamia.services.kinetics.timing_choice import require_rule, typed_rule
from napari_mamamia.services.register.case import RegisteredCase, register_case


@dataclass(frozen=True, slots=True)
class KineticServices:
    """The services of page Kinetics; a field left out is the real one."""

    begin_map: Callable[..., ShownMap] = begin_map
    fill_plane: Callable[..., None] = fill_plane
    fill_map: Callable[..., ShownMap] = fill_map
    ftv_box: Callable[..., Box] = ftv_box
    prepare_ftv: Callable[..., FtvImages] = prepare_live_ftv
    live_ftv: Callable[..., FtvAnswer] = live_ftv
    paint_ftv: Callable[..., Box] = paint_ftv
    ftv_under_seg: Callable[[Case, Path], FtvUnderSeg] = ftv_under_seg
    cursor_curve: Callable[..., ContrastCurve] = cursor_curve
    mask_curve: Callable[..., ContrastCurve] = mask_curve
    mask_numbers: Callable[..., KineticRow] = mask_numbers
    save_table: Callable[..., Path] = save_curve_table
    save_figure: Callable[..., Path] = save_curve_figure
    timing_text: Callable[..., tuple[str, str]] = timing_text
    typed_rule: Callable[..., TimingRule] = typed_rule
    require_rule: Callable[[Case, TimingRule], None] = require_rule
    with_times: Callable[..., Case] = with_times
    with_pre: Callable[..., Case] = with_pre
    times_source: Callable[..., str] = times_source
    register: Callable[..., RegisteredCase] = register_case
    map_ranges: Callable[..., tuple[MapRange, ...]] = map_ranges
    ranged: Callable[..., ShownMap] = ranged
    auto_limits: Callable[..., tuple[float, float]] = auto_limits
