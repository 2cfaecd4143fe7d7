"""The first case comes in two turns: nothing of it is seen before all of it is there."""

import pytest
from one_window import wait_open
from vispy.visuals.line.dash_atlas import DashAtlas, _make_pattern

from napari_mamamia.widgets.adapter.adapter import main_view
from napari_mamamia.widgets.base.layers import Role
from napari_mamamia.widgets.viewer.opening import Opening

pytestmark = [pytest.mark.window, pytest.mark.one_window]


@pytest.fixture
def between(docked, monkeypatch):
    """Return a function that lets something happen once the layer is there, before it is shown."""

    def happen(act):
        real, acts = Opening._show_case, [act]

        def show(opening, *given):
            if acts:
                acts.pop()()
            real(opening, *given)

        monkeypatch.setattr(Opening, "_show_case", show)

    return happen


def texts_of(viewer):
    overlays = viewer.canvas.overlays
    return [one.text for name, one in overlays.items() if "mamamia" in str(name) and one.text]


def test_the_layer_waits_unseen_and_nothing_is_written(qtbot, docked, small_data_set, between):
    viewer, waiting = docked.viewer, []

    def look():
        layer = docked.scene.layer(Role.PHASE)
        waiting.append((len(viewer.layers), layer.visible, docked.session.case_id))
        waiting.append(texts_of(viewer))

    between(look)
    docked.open_data_set(small_data_set, "A_1")
    wait_open(qtbot, docked, "A_1")
    assert waiting == [(1, False, ""), []]
    layer = docked.scene.layer(Role.PHASE)
    assert layer.visible
    assert viewer.layers.selection.active is layer
    qtbot.waitUntil(lambda: len(texts_of(viewer)) >= 5)


def test_the_circle_of_the_brush_is_made_while_the_list_is_looked_at(qtbot, docked, small_data_set):
    docked.open_data_set(small_data_set)
    overlay = docked.viewer.canvas.overlays["_brush_circle"]
    visuals = main_view(docked.viewer).canvas._viewer_overlay_to_visual
    qtbot.waitUntil(lambda: bool(visuals.get(overlay)))
    assert not overlay.visible
    assert not visuals[overlay][0].node.visible
    # all that vispy has, kept for every line
    assert _make_pattern.cache_info().currsize >= len(DashAtlas()._atlas)
    assert _make_pattern.cache_info().misses == _make_pattern.cache_info().currsize


def test_another_case_that_is_asked_for_meanwhile_is_the_one_that_stays(
    qtbot, docked, small_data_set, between
):
    between(lambda: docked.cases_flow.open_case("A_2"))
    docked.open_data_set(small_data_set, "A_1")
    wait_open(qtbot, docked, "A_2")
    qtbot.waitUntil(lambda: not docked.jobs.is_running("open"))
    qtbot.wait(100)
    assert docked.session.case_id == "A_2"
    assert {layer.metadata["napari_mamamia"].case_id for layer in docked.viewer.layers} == {"A_2"}
    qtbot.waitUntil(lambda: len(texts_of(docked.viewer)) >= 5)


def test_a_layer_that_somebody_deletes_meanwhile_comes_again(
    qtbot, docked, small_data_set, between
):
    between(docked.viewer.layers.clear)
    docked.open_data_set(small_data_set, "A_1")
    wait_open(qtbot, docked, "A_1")
    qtbot.wait(100)
    assert docked.session.case_id == "A_1"
    assert docked.scene.layer(Role.PHASE).visible


def test_in_three_dimensions_and_beside_another_plugins_layer(
    qtbot, docked, small_data_set, between
):
    viewer = docked.viewer
    viewer.dims.ndisplay = 3
    between(lambda: viewer.add_points([[0.0, 1.0, 2.0]], name="of another plugin"))
    docked.open_data_set(small_data_set, "A_1")
    wait_open(qtbot, docked, "A_1")
    qtbot.wait(100)
    layer = docked.scene.layer(Role.PHASE)
    assert layer.visible
    assert viewer.layers.selection.active is layer
    assert layer._slice.image.raw.ndim == 3
    assert layer._slice.image.raw.max() > 0
    viewer.dims.ndisplay = 2
