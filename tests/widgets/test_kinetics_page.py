"""Page Kinetics, its map and its curves, on a viewer without a window."""

import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from qtpy.QtCore import Qt
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QLabel, QScrollArea, QWidget
from tests.widgets.conftest import fake_kinetics

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import Phase
from napari_mamamia.core.progress import report_progress
from napari_mamamia.kinetics.map_kinds import MAPS, MapKind
from napari_mamamia.kinetics.time_axis import Timing, TimingRule
from napari_mamamia.segmentation.model.segmenter import BoxPrompt
from napari_mamamia.widgets.base.layers import Role, array_of
from napari_mamamia.widgets.kinetics.curves_tab import nice_ticks
from napari_mamamia.widgets.kinetics.times import TimesControls

BLOB = (slice(2, 4), slice(8, 12), slice(10, 16))


def press(viewer, key):
    next(function for binding, function in viewer.keymap.items() if str(binding) == key)(viewer)


def timed(case, times):
    """Return the case with a tissue of 100 whose blob takes 100, 250, 280, 220."""
    signal = np.full((4, *case.grid.shape), 100, np.int16)
    for phase, value in enumerate((100, 250, 280, 220)):
        signal[(phase, *BLOB)] = value
    phases = tuple(Phase(k, t, loaded=True) for k, t in enumerate(times))
    return replace(case, signal=signal, phases=phases)


@pytest.fixture
def world(world):
    """A case of four phases, the last one late enough."""
    first = world.open_case

    def open_case(files, record=None, phase=1):
        made = first(files, record)
        return timed(made, world.times)

    world.times = (0.0, 100.0, 160.0, 460.0)
    world.open_case = open_case
    return world


@pytest.fixture
def kinetics(qtbot, dock):
    dock.open_data_set(Path("data"), "A_1")
    qtbot.waitUntil(lambda: dock.session.case is not None and dock.session.case.is_loaded)
    dock.show_page("Kinetics")
    return dock


def held(go):
    """A job that ends when it is let go."""
    while not go.wait(0.01):
        report_progress(0, 1)


def find(dock, name):
    return dock.findChild(QWidget, name)


def choose(qtbot, dock, kind):
    page = dock.kinetics_page
    page.maps.setCurrentIndex(page.maps.findData(kind))
    maps = dock.kinetics.map
    qtbot.waitUntil(lambda: maps.shown is not None and maps.shown.kind is kind and maps.is_full)
    return dock.scene.layer(Role.MAP)


def test_the_page_offers_every_map_of_the_table_and_ftv(kinetics):
    maps = kinetics.kinetics_page.maps
    offered = [maps.itemData(k) for k in range(maps.count())]
    assert offered == [None, *MapKind]
    assert set(offered) == {None, *MAPS, MapKind.FTV}


def test_without_a_case_the_page_says_what_is_missing(dock):
    dock.show_page("Kinetics")
    assert find(dock, "kinetics_missing").text() == "Open a case first."


def test_the_key_shows_the_map_over_the_image_and_takes_it_away(qtbot, kinetics, viewer):
    press(viewer, "K")
    qtbot.waitUntil(lambda: kinetics.kinetics.map.is_full)
    layer = kinetics.scene.layer(Role.MAP)
    assert kinetics.kinetics_page.maps.currentData() is MapKind.PE
    assert kinetics.scene.layer(Role.PHASE).visible
    shown = array_of(layer)
    np.testing.assert_allclose(shown[BLOB], 180.0)  # the phase at 160 s: 280 of 100
    assert np.isnan(shown[0, 0, 0])  # tissue does not enhance
    press(viewer, "K")
    assert kinetics.scene.layer(Role.MAP) is None
    assert kinetics.kinetics_page.maps.currentData() is None


def test_the_type_map_has_the_letters_and_says_the_class_of_a_voxel(qtbot, kinetics):
    layer = choose(qtbot, kinetics, MapKind.TYPE)
    assert np.unique(array_of(layer)[BLOB]).tolist() == [3]  # 220 from 250: -12 %
    assert layer.features["curve"].tolist() == ["", "P persistent", "L plateau", "W washout"]
    assert kinetics.kinetics_page.legend.text() == "P persistent, L plateau, W washout"


def test_a_map_follows_another_choice_and_the_cover(qtbot, kinetics):
    choose(qtbot, kinetics, MapKind.TYPE)
    layer = choose(qtbot, kinetics, MapKind.SER)
    qtbot.waitUntil(lambda: np.isfinite(array_of(kinetics.scene.layer(Role.MAP))[BLOB]).all())
    layer = kinetics.scene.layer(Role.MAP)
    np.testing.assert_allclose(array_of(layer)[BLOB], 1.5)  # 180 over 120
    assert len([one for one in kinetics.viewer.layers if "kinetic map" in one.name]) == 1
    kinetics.kinetics_page.covers.setChecked(True)
    assert layer.opacity == 1.0


def test_the_visible_slice_is_there_before_the_whole_volume(qtbot, kinetics):
    maps = kinetics.kinetics.map
    go = threading.Event()
    fake_kinetics(maps, fill_map=lambda *_: held(go))
    kinetics.scene.view.go_to((3, 9, 12))
    maps.show(MapKind.PEAK)
    qtbot.waitUntil(lambda: maps.shown is not None)
    np.testing.assert_allclose(maps.shown.array[3, 8:12, 10:16], 180.0)
    kinetics.scene.view.go_to((2, 9, 12))
    np.testing.assert_allclose(maps.shown.array[2, 8:12, 10:16], 180.0)
    assert not maps.is_full
    go.set()


def test_another_case_starts_without_a_map(qtbot, kinetics, viewer):
    choose(qtbot, kinetics, MapKind.PE)
    press(viewer, "N")
    qtbot.waitUntil(lambda: kinetics.session.case_id == "A_2")
    assert kinetics.scene.layer(Role.MAP) is None
    assert kinetics.kinetics.map.shown is None


def test_a_deleted_map_is_off(qtbot, kinetics):
    layer = choose(qtbot, kinetics, MapKind.PE)
    kinetics.viewer.layers.remove(layer)
    assert kinetics.kinetics.map.shown is None
    assert kinetics.kinetics_page.maps.currentData() is None


def test_the_numbers_of_the_mask_shown_have_units(qtbot, kinetics):
    qtbot.waitUntil(lambda: find(kinetics, "kinetics_volume").text() != "–")
    # 48 voxels of 1.5 x 2 x 3 mm
    assert find(kinetics, "kinetics_volume").text() == "0.43 ml"
    assert find(kinetics, "kinetics_peak").text() == "180 % · 180 % in any voxel"
    assert find(kinetics, "kinetics_classes").text() == "fast, washout"
    assert find(kinetics, "kinetics_course").text() == "washout; worst washout"
    assert find(kinetics, "kinetics_types").text() == "0.00 / 0.00 / 0.43 ml"


@pytest.mark.usefixtures("dressed")
def test_the_page_needs_no_more_width_than_the_dock_leaves_beside_a_scroll_bar(qtbot, kinetics):
    area = kinetics.findChild(QScrollArea, "kinetics_area")
    bins = find(kinetics, "kinetics_ftv_bins")
    qtbot.waitUntil(lambda: "cc" in bins.text())
    find(kinetics, "kinetics_diameter").setText("57.3 mm · 55.7 mm in plane")
    room = kinetics.minimumWidth() - 2 * 8 - area.verticalScrollBar().sizeHint().width()
    assert area.widget().minimumSizeHint().width() <= room
    assert QLabel(bins.text()).sizeHint().width() <= room


def test_ftv_follows_its_sliders(qtbot, kinetics):
    value = find(kinetics, "kinetics_ftv")
    qtbot.waitUntil(lambda: "0.43 cc" in value.text())
    find(kinetics, "kinetics_ftv_ser").setValue(160)  # above the SER of 1.5
    qtbot.waitUntil(lambda: "0.00 cc" in value.text())
    find(kinetics, "kinetics_ftv_reset").click()
    qtbot.waitUntil(lambda: "0.43 cc" in value.text())
    assert "4 of 26 neighbours" in value.toolTip()


def test_ftv_is_counted_in_the_box_that_was_drawn_less_what_is_omitted(qtbot, kinetics):
    value = find(kinetics, "kinetics_ftv")
    qtbot.waitUntil(lambda: "0.43 cc" in value.text())
    find(kinetics, "kinetics_ftv_box").click()
    assert kinetics.kinetics.ftv_box.is_waiting
    kinetics.kinetics.ftv_box.set_mode("")
    kinetics.kinetics.ftv_box.given.emit(BoxPrompt(Box((0, 0, 0), (6, 20, 13))))  # half of the blob
    qtbot.waitUntil(lambda: "0.22 cc" in value.text())
    assert "drawn box" in find(kinetics, "kinetics_ftv_region").text()
    find(kinetics, "kinetics_ftv_omit").click()
    kinetics.kinetics.ftv_box.set_mode("")
    # one plane of 4 x 3 voxels is left; their neighbours in the omitted planes count: 12 voxels
    kinetics.kinetics.ftv_box.given.emit(BoxPrompt(Box((0, 0, 0), (3, 20, 13))))
    qtbot.waitUntil(lambda: "0.11 cc" in value.text())
    find(kinetics, "kinetics_ftv_mask").click()
    qtbot.waitUntil(lambda: "0.43 cc" in value.text())


def test_the_ftv_map_shows_the_colour_of_the_ratio(qtbot, kinetics):
    choose(qtbot, kinetics, MapKind.FTV)
    qtbot.waitUntil(lambda: array_of(kinetics.scene.layer(Role.MAP))[BLOB].all())
    assert np.unique(array_of(kinetics.scene.layer(Role.MAP))).tolist() == [0, 4]  # 1.5: red


def test_times_that_are_typed_in_change_the_phases_and_say_so(qtbot, kinetics):
    times = find(kinetics, "kinetics_times")
    assert times.text() == "0, 100, 160, 460"
    times.setText("0, 50, 100, 200")
    QTest.keyClick(times, Qt.Key.Key_Return)
    assert find(kinetics, "kinetics_times_source").text() == "entered for this session"
    # phases after contrast start 0, 50, 150 s after the first, and stand 25 s later
    assert "initial post 2 (75\u00a0s)" in find(kinetics, "kinetics_phases").text()
    assert "270 s or later" in find(kinetics, "kinetics_times_warning").text()
    qtbot.waitUntil(lambda: "270 s" in find(kinetics, "kinetics_course").toolTip())
    assert find(kinetics, "kinetics_course").text() == "–"
    times.setText("")
    QTest.keyClick(times, Qt.Key.Key_Return)
    assert times.text() == "0, 100, 160, 460"


def test_the_chosen_clock_moves_phases_volume_map_and_curves_and_is_named(qtbot, kinetics):
    timing, value = find(kinetics, "kinetics_timing"), find(kinetics, "kinetics_timing_value")
    phases, ftv = find(kinetics, "kinetics_phases"), find(kinetics, "kinetics_ftv_phases")
    assert "UCSF-FTV" in phases.text()
    qtbot.waitUntil(lambda: "early post 2 (90" in ftv.text())  # 160 - 100 + 30 s
    choose(qtbot, kinetics, MapKind.SER)
    timing.setCurrentIndex(timing.findData(Timing.PHASE0_START))
    assert "early post 2 (160" in phases.text()
    assert "phase0-start" in phases.text()
    qtbot.waitUntil(lambda: "phase0-start" in ftv.text() and "ucsf-extension" in ftv.text())
    qtbot.waitUntil(lambda: "phase0-start" in find(kinetics, "kinetics_map_text").text())
    timing.setCurrentIndex(timing.findData(Timing.MANUAL))
    assert value.isVisibleTo(kinetics)
    value.setText("1, 2")
    QTest.keyClick(value, Qt.Key.Key_Return)
    assert "early post 1 (30" in phases.text()
    assert "manual" in phases.text()
    qtbot.waitUntil(lambda: "manual" in ftv.text())
    timing.setCurrentIndex(timing.findData(Timing.UCSF_FTV))
    assert "UCSF-FTV" in phases.text()
    assert not value.isVisibleTo(kinetics)


@pytest.mark.parametrize(
    ("timing", "typed", "said"),
    [
        (Timing.INJECTION, "soon", "expected the time of the injection"),
        (Timing.INJECTION, "9000", "after the last phase"),
        (Timing.MANUAL, "2", "expected the early and the late phase"),
        (Timing.MANUAL, "3, 2", "a later phase from 1 to 3"),
    ],
)
def test_a_clock_that_does_not_fit_is_refused_and_the_old_one_counts_on(
    qtbot, kinetics, timing, typed, said
):
    chooser, value = find(kinetics, "kinetics_timing"), find(kinetics, "kinetics_timing_value")
    before = find(kinetics, "kinetics_phases").text()
    chooser.setCurrentIndex(chooser.findData(timing))
    value.setText(typed)
    QTest.keyClick(value, Qt.Key.Key_Return)
    assert said in find(kinetics, "kinetics_times_warning").text()
    assert find(kinetics, "kinetics_phases").text() == before
    value.clear()
    value.editingFinished.emit()
    assert chooser.currentData() is Timing.UCSF_FTV


def test_the_injection_of_one_case_is_not_offered_for_the_next(qtbot):
    times, told = TimesControls(), []
    qtbot.addWidget(times)
    times.timing_chosen.connect(lambda timing, typed: told.append((timing, typed)))
    times.offer_injection(30.5)
    times.timing.setCurrentIndex(times.timing.findData(Timing.INJECTION))
    assert told == [(Timing.INJECTION, "30.5")]
    times.show_timing(TimingRule())
    times.offer_injection(None)
    times.timing.setCurrentIndex(times.timing.findData(Timing.INJECTION))
    assert times.timing_value.text() == ""
    assert len(told) == 1


@pytest.mark.parametrize(("typed", "said"), [("0, 90", "got 2"), ("0, x", "one number per phase")])
def test_times_that_do_not_fit_are_refused_with_the_reason(kinetics, typed, said):
    times = find(kinetics, "kinetics_times")
    times.setText(typed)
    QTest.keyClick(times, Qt.Key.Key_Return)
    assert said in find(kinetics, "kinetics_times_warning").text()
    assert "clinical" not in find(kinetics, "kinetics_times_source").text()


def test_without_times_slopes_are_refused_and_the_axis_counts_phases(qtbot, dock, world):
    world.times = (None,) * 4
    dock.open_data_set(Path("data"), "A_1")
    qtbot.waitUntil(lambda: dock.session.case is not None and dock.session.case.is_loaded)
    dock.show_page("Kinetics")
    assert "phase times unknown" in find(dock, "kinetics_times_source").text()
    page = dock.kinetics_page
    page.maps.setCurrentIndex(page.maps.findData(MapKind.WASH_IN))
    qtbot.waitUntil(lambda: "enter the times" in page.map_text.text())
    assert page.maps.currentData() is None
    assert dock.scene.layer(Role.MAP) is None
    plot = dock.kinetics.curves.plot()
    assert plot.x_label == "phase (acquisition times unknown)"
    assert "no acquisition times are known" in plot.warning


# --- the curves


@pytest.fixture
def curves(qtbot, kinetics):
    kinetics.results.show_curves()
    kinetics.results.show()
    qtbot.addWidget(kinetics.results)
    kinetics.kinetics.curves.refresh_mask()
    qtbot.waitUntil(lambda: len(kinetics.kinetics.curves.plot().lines) == 1)
    return kinetics


def point_at(dock, voxel):
    grid = dock.session.case.grid
    frame = grid.display_frame()
    shown = frame.point_to_display(voxel, grid.shape)
    spacing = frame.per_axis(grid.spacing_mm)
    world = tuple(place * mm for place, mm in zip(shown, spacing, strict=True))
    event = type("Event", (), {"position": (0.0, *world), "pos": (0, 0), "modifiers": ()})()
    for callback in dock.viewer.mouse_move_callbacks:
        callback(dock.viewer, event)


def test_the_curve_of_the_mask_is_drawn_against_seconds(curves):
    plot = curves.kinetics.curves.plot()
    assert plot.x_label == "time since the first phase (s)"
    assert plot.lines[0].percent == (0.0, 150.0, 180.0, 120.0)
    assert plot.lines[0].classes == "fast, washout (W)"
    assert plot.lines[0].n_voxels == 48


def test_the_curve_follows_the_pointer(qtbot, curves):
    curves.results.curves.patch.setChecked(False)
    point_at(curves, (3, 9, 12))
    qtbot.waitUntil(lambda: len(curves.kinetics.curves.plot().lines) == 2)
    assert curves.kinetics.curves.plot().lines[0].percent == (0.0, 150.0, 180.0, 120.0)
    assert curves.kinetics.curves.plot().lines[0].name == "voxel at 3, 9, 12"
    point_at(curves, (0, 0, 0))
    qtbot.waitUntil(lambda: curves.kinetics.curves.plot().lines[0].percent == (0.0,) * 4)


def test_many_moves_of_the_pointer_cost_one_curve(qtbot, curves):
    calls = []
    flow = curves.kinetics.curves
    measure = flow._services.kinetics.cursor_curve
    fake_kinetics(flow, cursor_curve=lambda *a: calls.append(a) or measure(*a))
    for column in range(20):
        point_at(curves, (3, 9, column))
    qtbot.waitUntil(lambda: bool(calls))
    assert len(calls) == 1
    assert calls[0][1] == (3, 9, 19)


def test_regions_are_pinned_renamed_removed(qtbot, curves):
    flow = curves.kinetics.curves
    find(curves.results, "curves_pin").click()
    point_at(curves, (0, 0, 0))
    qtbot.waitUntil(lambda: len(flow.plot().lines) == 3)
    find(curves.results, "curves_pin_cursor").click()
    find(curves.results, "curves_pin").click()
    assert len({line.colour for line in flow.pinned}) == 3
    name = find(curves.results, "curves_name_1")
    name.setText("fat")
    name.editingFinished.emit()
    assert [line.name for line in flow.pinned][1] == "fat"
    find(curves.results, "curves_remove_0").click()
    assert [line.name for line in flow.pinned] == ["fat", "3 reference mask"]


def test_table_and_figure_are_saved(qtbot, curves, tmp_path):
    curves.kinetics.curves.save("table", tmp_path / "curves.csv")
    qtbot.waitUntil(lambda: (tmp_path / "curves.csv").exists())
    lines = (tmp_path / "curves.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "region,n_voxels,phase,time_s,mean_signal,pe_percent"
    assert lines[2] == "reference mask,48,1,100,250,150"
    curves.kinetics.curves.save("figure", tmp_path / "curves.png")
    qtbot.waitUntil(lambda: (tmp_path / "curves.svg").exists(), timeout=30_000)
    assert "time since the first phase (s)" in (tmp_path / "curves.svg").read_text("utf-8")


def test_nothing_is_measured_under_the_pointer_while_the_tab_is_out_of_sight(qtbot, kinetics):
    point_at(kinetics, (3, 9, 12))
    qtbot.wait(60)
    assert kinetics.kinetics.curves.plot().lines == ()


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [(0, 1, (0, 0.2, 0.4, 0.6, 0.8, 1)), (-20, 95, (-50, 0, 50, 100)), (0, 430, (0, 100, 500))],
)
def test_ticks_are_round_numbers_that_cover_the_values(low, high, ticks):
    found = nice_ticks(low, high)
    assert found[0] <= low <= high <= found[-1]
    assert set(np.round(ticks, 6)) <= set(np.round(found, 6))


def test_in_a_narrow_view_the_legend_of_curve_types_ends_before_the_letter_below(
    qtbot, kinetics, viewer, monkeypatch
):
    monkeypatch.setattr("napari_mamamia.widgets.viewer.canvas.adapter.text_scale", lambda: 1.0)
    viewer.canvas.size = (600, 800)
    choose(qtbot, kinetics, MapKind.TYPE)
    legend = viewer.canvas.overlays["mamamia_map"]
    assert legend.text == "P persistent, blue\nL plateau, green\nW washout, red"
    for width in (300, 260):
        viewer.canvas.size = (400, width)
        assert legend.text == "P blue\nL green\nW red"
        # a letter is .92 pixels wide for a point of its size; the one below takes 30
        assert 7 * 0.92 * legend.font_size <= width / 2 - 30
    viewer.canvas.size = (600, 800)
    assert "persistent" in legend.text
