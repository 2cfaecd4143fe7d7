"""The first case comes in two turns: nothing of it is seen before all of it is there."""

import pytest
from one_window import wait_open
from vispy.visuals.line.dash_atlas import DashAtlas, _make_pattern

from napari_mamamia.core.blinding import ALL_HIDDEN
from napari_mamamia.widgets.adapter.adapter import main_view
from napari_mamamia.widgets.base.keys import KEYS
from napari_mamamia.widgets.base.layers import Role
from napari_mamamia.widgets.base.notify import Level
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


@pytest.fixture
def before_shown(docked, monkeypatch):
    """Return a function that lets something happen in the turn in which the layer was inserted."""

    def happen(act):
        real, acts = docked.opening._late.start, [act]

        def start(steps):
            real(steps)
            if acts and docked.session.case is None and docked.scene.layer(Role.PHASE):
                acts.pop()()

        monkeypatch.setattr(docked.opening._late, "start", start)

    return happen


def press_all(docked, names):
    """Do what the keys of these names do: held ones are pressed and let go."""
    actions = docked._list_actions()
    for name in names:
        given = ([True], [False]) if name in HELD else ([],)
        for values in given:
            actions[name](*values)


HELD = [key.action for key in KEYS if key.held]
TURNING = ("next_case", "previous_case", "reading", "panel", "alone")
"""What opens another case, or is undone by a second press."""
PRESSED = [key.action for key in KEYS if key.action not in TURNING]


@pytest.mark.night
def test_no_key_that_is_pressed_meanwhile_breaks_or_fails(
    qtbot, docked, small_data_set, before_shown
):
    failed = []
    docked.notifier.said.connect(
        lambda level, text: failed.append(text) if level is Level.ERROR else None
    )
    before_shown(lambda: press_all(docked, [*PRESSED, *TURNING[2:], *TURNING[2:]]))
    docked.open_data_set(small_data_set, "A_1")
    wait_open(qtbot, docked, "A_1")
    qtbot.waitUntil(lambda: docked.scene.layer(Role.REFERENCE) is not None)
    assert failed == []
    assert docked.scene.layer(Role.PHASE).visible
    assert docked.active_tool.tool is None
    docked.pages.show_page("View")
    docked.view_flow.actions()["planes"]()
    qtbot.waitUntil(lambda: not docked.planes.is_building)


def test_a_case_is_not_shown_once_something_is_hidden_that_it_was_read_with(
    qtbot, docked, small_data_set, before_shown
):
    before_shown(lambda: docked.session.set_blinding(ALL_HIDDEN))
    docked.open_data_set(small_data_set, "A_1")
    qtbot.waitUntil(lambda: docked.session.blinding is ALL_HIDDEN)
    qtbot.waitUntil(lambda: not docked.session.is_coming)
    qtbot.wait(100)
    assert docked.session.case is None
    assert docked.session.masks == {}
    assert list(docked.viewer.layers) == []


def test_a_list_that_was_read_before_something_was_hidden_is_read_anew(
    qtbot, docked, small_data_set
):
    docked.open_data_set(small_data_set)
    docked.session.set_blinding(ALL_HIDDEN)  # a study that was opened at the same time
    qtbot.waitUntil(lambda: docked.session.opened is not None)
    assert docked.session.opened.workspace.blinding == ALL_HIDDEN
    assert not any(row.files.reference for row in docked.session.rows.values())


def test_the_picture_stays_in_sight_from_the_reading_of_a_case_on(qtbot, docked, small_data_set):
    changes, needed = [], docked.docking._width()
    docked.reading.enter()
    docked.room.taken.connect(changes.append)
    for case_id, page in (("A_1", "Cases"), ("A_2", "Batch scoring")):
        docked.show_page("Cases")
        docked.show_page(page)
        changes.clear()
        docked.open_data_set(small_data_set, case_id)
        wait_open(qtbot, docked, case_id)
        qtbot.waitUntil(lambda page=page: docked.page != page)
        assert changes == [False]  # it was hidden again for two turns as the case had been read
        qtbot.wait(100)
        assert docked.width() == needed, "not what the lines of the list needed"
    for path in small_data_set.rglob("B_1*.nii.gz"):
        path.unlink()
    docked.show_page("Cases")
    docked.cases_flow.open_case("B_1")
    qtbot.waitUntil(lambda: "Opening B_1 failed" in docked.header.message.text())
    assert changes[-1]  # of a case that does not come the list has the room
    docked.open_data_set(small_data_set, "nobody")
    qtbot.waitUntil(lambda: "a case 'nobody'" in docked.header.message.text())
    docked.reading.leave()


def test_the_controls_of_a_layer_that_is_gone_before_they_are_shown(
    qtbot, docked, small_data_set, monkeypatch
):
    box = main_view(docked.viewer).controls
    late = next(one for one in box.children() if type(one).__name__ == "_LateControls")
    docked.open_data_set(small_data_set, "A_1")
    wait_open(qtbot, docked, "A_1")
    viewer, made = docked.viewer, []
    real = late._turning.start

    def start(wait):
        real(wait)
        if not made:
            made.append(viewer.layers.selection.active)
            viewer.layers.remove(made[0])

    monkeypatch.setattr(late._turning, "start", start)
    reference = docked.scene.layer(Role.REFERENCE)
    viewer.layers.selection.active = reference
    qtbot.waitUntil(lambda: made == [reference])
    qtbot.wait(100)
    assert late._spent == []
    assert set(box.widgets) == set(viewer.layers)
    chosen = docked.scene.layer(Role.PHASE)
    viewer.layers.selection.active = chosen
    qtbot.waitUntil(lambda: box.currentWidget() is box.widgets[chosen])
    assert type(box.currentWidget()).__name__ != "QFrame"
