"""`KineticServices`: the calls that page Kinetics makes, so that tests can pass fakes."""

from napari_mamamia.kinetics.repeated_pre import with_pre
from napari_mamamia.services.kinetics.case_kinetics import times_source, with_times
from napari_mamamia.services.kinetics.ftv_from import ftv_under_seg
from napari_mamamia.services.kinetics.map_ranges import auto_limits, map_ranges, ranged
from napari_mamamia.services.kinetics.phase_text import timing_text
from napari_mamamia.services.kinetics.show_kinetics import (
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
from napari_mamamia.services.register.case import register_case
from napari_mamamia.widgets.base.service_set import ServiceSet


class KineticServices(ServiceSet):
    """The services of page Kinetics; a field left out is the real one."""

    begin_map = staticmethod(begin_map)
    fill_plane = staticmethod(fill_plane)
    fill_map = staticmethod(fill_map)
    ftv_box = staticmethod(ftv_box)
    prepare_ftv = staticmethod(prepare_live_ftv)
    live_ftv = staticmethod(live_ftv)
    paint_ftv = staticmethod(paint_ftv)
    ftv_under_seg = staticmethod(ftv_under_seg)
    cursor_curve = staticmethod(cursor_curve)
    mask_curve = staticmethod(mask_curve)
    mask_numbers = staticmethod(mask_numbers)
    save_table = staticmethod(save_curve_table)
    save_figure = staticmethod(save_curve_figure)
    timing_text = staticmethod(timing_text)
    typed_rule = staticmethod(typed_rule)
    require_rule = staticmethod(require_rule)
    with_times = staticmethod(with_times)
    with_pre = staticmethod(with_pre)
    times_source = staticmethod(times_source)
    register = staticmethod(register_case)
    map_ranges = staticmethod(map_ranges)
    ranged = staticmethod(ranged)
    auto_limits = staticmethod(auto_limits)
