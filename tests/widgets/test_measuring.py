"""Drawing to measure: with the mouse on any grid, kept at once, and all that may go wrong."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from napari.layers import Points
from qtpy.QtCore import QRectF
from tests.widgets.test_painting import Mouse

from napari_mamamia.core.blinding import ALL_HIDDEN
from napari_mamamia.core.errors import SaveError
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.measurement import MeasureKind, Measurement
from napari_mamamia.io.workspace.measurements import append_measurement, read_measurements
from napari_mamamia.metrics.shapes import angle_degrees, length_mm
from napari_mamamia.services.measure.drawings import DrawingLog, begin_log
from napari_mamamia.widgets.base.layers import Role
from napari_mamamia.widgets.measure.overlay import ShownMark, find_ground
from napari_mamamia.widgets.refine.state import PaintTool
from napari_mamamia.widgets.viewer.active_tool import MouseTool

RULER, CROSS, ANGLE = MeasureKind.RULER, MeasureKind.CROSS, MeasureKind.ANGLE


class DrawingMouse(Mouse):
    """Sends each event with the pixel at which its voxel is drawn: 10 pixels for a millimetre."""

    def send(self, callbacks, kind, voxel, **options):
        camera = self.viewer.scene.camera
        camera.zoom, camera.center = 10.0, (0.0, 20.0, 20.0)
        height, width = self.viewer.canvas.size
        position = self.world(voxel)
        down, across = (position[axis] for axis in self.viewer.dims.displayed)
        self.pixel = np.array(
            [width / 2 + (across - 20.0) * 10.0, height / 2 + (down - 20.0) * 10.0]
        )
        return super().send(callbacks, kind, voxel, pos=self.pixel, **options)


@pytest.fixture
def reading(opened):
    """The case A_1 in step Read: voxels of 3 x 2 x 1.5 mm (z, y, x), x mirrored."""
    opened.show_page("View")
    return opened


@pytest.fixture
def mouse(reading):
    return DrawingMouse(reading)


def click(mouse, voxel):
    mouse.press(voxel)
    mouse.release(voxel)


def draw(dock, mouse, kind, *voxels):
    """Draw by drags: each two places are a line, a last lone one is clicked."""
    dock.measuring.use(kind)
    for at in range(0, len(voxels) - 1, 2):
        mouse.stroke(*voxels[at : at + 2])
    if len(voxels) % 2:
        mouse.move(voxels[-1])
        click(mouse, voxels[-1])
    dock.measuring.use(kind)


def items(dock):
    return [one.item for one in dock.measuring.record.items]


def stored(world, case_id="A_1"):
    return read_measurements(world.root / "workspace", case_id).items


def wait_stored(qtbot, world, count, case_id="A_1"):
    qtbot.waitUntil(lambda: len(stored(world, case_id)) == count)
    return stored(world, case_id)


def words(dock):
    return [one.words for one in dock.measuring.views[0]._placed]


def test_a_ruler_is_as_long_as_the_affine_says_and_on_the_disk(qtbot, reading, mouse, world):
    draw(reading, mouse, RULER, (2, 4, 3), (2, 10, 9))
    # 6 rows of 2 mm and 6 columns of 1.5 mm: 12 and 9 mm
    assert words(reading) == ["15.0 mm"]
    (one,) = wait_stored(qtbot, world, 1)
    assert one.points_mm == ((-4.5, 8.0, 6.0), (-13.5, 20.0, 6.0))
    assert (one.kind, one.plane, one.phase, one.reader) == (RULER, "axial", 1, "Ana")
    assert length_mm(*one.points_mm) == 15.0


def test_a_ruler_is_drawn_by_two_clicks_and_its_number_follows_the_mouse(reading, mouse):
    reading.measuring.use(RULER)
    click(mouse, (2, 4, 3))
    mouse.move((2, 4, 7))
    assert words(reading) == ["6.0 mm"]
    mouse.move((2, 10, 9))
    assert words(reading) == ["15.0 mm"]
    assert items(reading) == []
    click(mouse, (2, 10, 9))
    assert len(items(reading)) == 1
    assert reading.tools.drawing.kind is RULER


SHEARED = np.array([[1.5, 0.6, 0, 4], [0, 2.0, 0.3, 0], [0, 0, 3.0, -9], [0, 0, 0, 1]])


@pytest.mark.parametrize("affine", [np.diag([1.5, -2, -3, 1]), SHEARED])
def test_in_every_plane_and_on_every_grid_the_number_is_the_affines(reading, qtbot, world, affine):
    world.affine = affine
    reading.cases_flow.open_neighbour(1)
    qtbot.waitUntil(lambda: reading.session.case_id == "A_2" and reading.session.case.is_loaded)
    grid, mouse = reading.session.case.grid, DrawingMouse(reading)
    for plane in ("axial", "sagittal", "coronal"):
        turn, _ = grid.display_frame(plane).within(grid.display_frame())
        reading.viewer.dims.order = (0, *(1 + axis for axis in turn))
        axis = grid.display_frame(plane).order[0]
        start, end = np.array([1.0, 4.0, 5.0]), np.array([4.0, 11.0, 13.0])
        end[axis] = start[axis]
        draw(reading, mouse, RULER, tuple(start), tuple(end))
        item = items(reading)[-1]
        x_y_z = [affine @ [*voxel[::-1], 1] for voxel in (start, end)]
        expected = np.linalg.norm(x_y_z[0] - x_y_z[1])
        assert length_mm(*item.points_mm) == pytest.approx(expected)
        assert item.plane == plane
        assert words(reading) == [f"{expected:.1f} mm"]


def test_crossed_diameters_an_ellipse_and_an_angle(reading, mouse):
    draw(reading, mouse, CROSS, (2, 4, 3), (2, 4, 11), (2, 2, 7), (2, 8, 9))
    # along x 8 columns of 1.5 mm; across it 6 rows of 2 mm
    assert words(reading) == ["12.0 mm × 12.0 mm"]
    draw(reading, mouse, MeasureKind.ELLIPSE, (2, 12, 3), (2, 16, 7))
    centre, one, two = items(reading)[1].points_mm
    assert centre == (-7.5, 28.0, 6.0)
    assert sorted([length_mm(centre, one), length_mm(centre, two)]) == [3.0, 4.0]
    assert words(reading)[1].startswith("37.7 mm², mean ")
    draw(reading, mouse, ANGLE, (2, 4, 13), (2, 10, 13), (2, 10, 17))
    assert words(reading)[2] == "90.0°"
    assert angle_degrees(*items(reading)[2].points_mm) == pytest.approx(90)


def test_a_drawing_is_seen_on_its_own_slice_and_plane_alone(reading, mouse):
    draw(reading, mouse, RULER, (2, 4, 3), (2, 10, 9))
    view = reading.measuring.views[0]
    assert len(view.keys) == 1
    reading.scene.view.go_to((3, 5, 5))
    assert view.keys == []
    reading.scene.view.go_to((2, 5, 5))
    assert len(view.keys) == 1
    reading.viewer.dims.order = (0, 2, 1, 3)
    assert view.keys == []


def test_an_end_is_moved_deleted_and_brought_back(qtbot, reading, mouse, world):
    draw(reading, mouse, RULER, (2, 4, 3), (2, 10, 9))
    mouse.stroke((2, 10, 9), (2, 7, 6), (2, 4, 11))
    assert length_mm(*items(reading)[0].points_mm) == 12.0
    assert words(reading) == ["12.0 mm"]
    qtbot.waitUntil(lambda: [length_mm(*one.points_mm) for one in stored(world)] == [12.0])
    reading.measuring.delete()
    assert items(reading) == []
    wait_stored(qtbot, world, 0)
    record = reading.measuring.record
    record.undo()
    assert words(reading) == ["12.0 mm"]
    record.undo()
    assert words(reading) == ["15.0 mm"]
    qtbot.waitUntil(lambda: [length_mm(*one.points_mm) for one in stored(world)] == [15.0])
    record.undo()
    assert items(reading) == []
    assert not record.can_undo
    wait_stored(qtbot, world, 0)


def test_a_press_beside_a_drawing_chooses_none_and_is_naparis(reading, mouse):
    draw(reading, mouse, RULER, (2, 4, 3), (2, 10, 9))
    assert reading.measuring.record.chosen
    assert not mouse.press((2, 15, 15)).handled
    mouse.release((2, 15, 15))
    assert reading.measuring.record.chosen == ""
    assert mouse.press((2, 7, 6)).handled, "the middle of the line"
    mouse.release((2, 7, 6))
    assert reading.measuring.record.chosen


def test_what_is_drawn_is_there_again_with_its_case(qtbot, reading, mouse, world):
    draw(reading, mouse, RULER, (2, 4, 3), (2, 10, 9))
    wait_stored(qtbot, world, 1)
    reading.cases_flow.open_neighbour(1)
    qtbot.waitUntil(lambda: reading.session.case_id == "A_2")
    assert items(reading) == []
    reading.cases_flow.open_neighbour(-1)
    qtbot.waitUntil(lambda: reading.session.case_id == "A_1" and bool(items(reading)))
    (one,) = reading.measuring.record.items
    assert one.is_own
    assert not reading.measuring.record.is_unsaved(one)


def test_the_list_says_what_it_is_and_a_click_goes_there(qtbot, reading, mouse):
    draw(reading, mouse, RULER, (2, 4, 3), (2, 10, 9))
    section = reading.pages.measure
    model = section.list.model()
    assert [model.data(model.index(row)) for row in range(model.rowCount())] == [
        "Ruler 15.0 mm · axial 2"
    ]
    reading.scene.view.go_to((4, 5, 5))
    section.list.clicked.emit(model.index(0))
    assert reading.scene.view.slice_shown() == (0, 2)
    assert section.fold.text() == "Measure (1)"


def test_a_key_image_is_kept_and_taken_back_by_the_same_key(qtbot, reading, world):
    reading.scene.view.go_to((3, 5, 5))
    reading.measuring.use(MeasureKind.KEY_IMAGE)
    (one,) = wait_stored(qtbot, world, 1)
    assert (one.kind, one.plane, one.phase) == (MeasureKind.KEY_IMAGE, "axial", 1)
    assert one.points_mm[0][2] == 9.0  # slice 3 of 3 mm
    assert words(reading) == ["Key image"]
    reading.measuring.use(MeasureKind.KEY_IMAGE)
    wait_stored(qtbot, world, 0)


def test_words_are_written_beside_an_arrow(qtbot, reading, mouse, world):
    draw(reading, mouse, MeasureKind.ARROW, (2, 4, 3), (2, 10, 9))
    record = reading.measuring.record
    record.change(record.chosen, replace(items(reading)[0], text="clip"))
    qtbot.waitUntil(lambda: [one.text for one in stored(world)] == ["clip"])
    assert words(reading) == ["clip"]


# ---------------------------------------------------------------------- what goes wrong


def test_a_line_of_no_length_is_none(reading, mouse):
    reading.measuring.use(RULER)
    click(mouse, (2, 4, 3))
    mouse.move((2, 4, 3))
    click(mouse, (2, 4, 3))
    assert items(reading) == []
    assert "Both points are the same" in reading.header.message.text()
    mouse.move((2, 4, 7))
    click(mouse, (2, 4, 7))
    assert words(reading) == ["6.0 mm"]


def test_a_line_that_leaves_the_image_ends_at_its_edge(reading, mouse):
    draw(reading, mouse, RULER, (2, 4, 3), (2, 4, 60))
    # to the outer face of column 23: 20.5 columns of 1.5 mm
    assert words(reading) == ["30.8 mm"]


def test_a_line_is_not_begun_beside_the_image(reading, mouse):
    draw(reading, mouse, RULER, (2, 4, 60), (2, 4, 10))
    assert items(reading) == []


def test_in_a_3d_view_nothing_is_drawn_and_it_says_why(reading, mouse):
    reading.measuring.use(RULER)
    said = []
    reading.tools.signs.problem_changed.connect(said.append)
    reading.viewer.dims.ndisplay = 3
    assert "3-D view" in said[-1]
    assert not Mouse(reading).press((2, 4, 3)).handled
    assert reading.tools.drawing.sketch is None
    reading.viewer.dims.ndisplay = 2


def test_a_case_switched_while_drawing_takes_the_line_along(qtbot, reading, mouse):
    reading.measuring.use(RULER)
    mouse.press((2, 4, 3))
    mouse.drag((2, 4, 9))
    reading.cases_flow.open_neighbour(1)
    qtbot.waitUntil(lambda: reading.session.case_id == "A_2")
    assert reading.tools.drawing.sketch is None
    mouse.release((2, 4, 12))
    assert items(reading) == []
    assert reading.active_tool.tool is None


def test_escape_drops_the_line_and_the_tool(reading, mouse, viewer):
    reading.measuring.use(RULER)
    click(mouse, (2, 4, 3))
    escape = next(call for key, call in viewer.keymap.items() if str(key) == "Escape")
    escape(viewer)
    assert reading.active_tool.tool is None
    assert reading.tools.drawing.sketch is None
    assert reading.measuring.views[0].keys == []


def test_a_ruler_and_a_brush_put_each_other_down(qtbot, reading, mouse):
    draw(reading, mouse, RULER, (2, 4, 3), (2, 10, 9))
    reading.show_page("Refine")
    reading.refine_page.from_nothing.click()
    qtbot.waitUntil(lambda: reading.editing.live is not None)
    reading.painting.set_tool(PaintTool.SPHERE)
    reading.scene.view.go_to((2, 5, 5), centre=False)
    assert reading.measuring.views[0].keys == [], "a brush has the picture to itself"
    mouse.move((2, 10, 9))
    assert not reading.tools.drawing.is_over
    reading.measuring.use(RULER)
    assert reading.page == "View"
    assert reading.painting.state.tool is PaintTool.NONE
    assert len(reading.measuring.views[0].keys) == 1
    before = reading.session.mask(Role.REFINED).buffer.copy()
    mouse.stroke((2, 12, 3), (2, 12, 9))
    np.testing.assert_array_equal(reading.session.mask(Role.REFINED).buffer, before)
    assert len(items(reading)) == 2


def test_a_ruler_stays_in_hand_in_step_read_alone(reading):
    reading.measuring.use(RULER)
    for page in ("Findings", "Kinetics", "View"):
        reading.show_page(page)
        assert reading.tools.drawing.kind is RULER
    reading.show_page("Score")
    assert reading.active_tool.tool is None
    reading.show_page("Findings")
    reading.measuring.use(RULER)
    assert reading.page == "Findings", "the form stays where it is needed"


def test_another_plugins_layer_in_its_own_mode_is_not_drawn_on(reading, mouse, viewer):
    points = Points(np.zeros((0, 3)))
    viewer.add_layer(points)
    viewer.layers.selection.active = points
    points.mode = "add"
    draw(reading, mouse, RULER, (2, 4, 3), (2, 10, 9))
    assert len(points.data) == 0
    assert len(items(reading)) == 1


def test_a_read_only_folder_says_so_and_the_drawing_stays_as_not_saved(
    qtbot, reading, mouse, world
):
    def refuse(_root, _drawn):
        raise SaveError("cannot write measurements (Permission denied): choose another folder")

    fakes = reading.services.measures.replacing(
        begin_log=lambda workspace: DrawingLog(workspace, append=refuse)
    )
    record = reading.measuring.record
    record._services = reading.services.replacing(measures=fakes)
    reading.cases_flow.open_neighbour(1)
    qtbot.waitUntil(lambda: reading.session.case_id == "A_2")
    draw(reading, mouse, RULER, (2, 4, 3), (2, 10, 9))
    qtbot.waitUntil(lambda: words(reading) == ["15.0 mm · not saved"])
    assert "Permission denied" in reading.header.message.text()
    assert reading.pages.measure.note.text() == "Not saved: 1"
    reading.cases_flow.open_neighbour(-1)
    qtbot.waitUntil(lambda: reading.session.case_id == "A_1")
    reading.cases_flow.open_neighbour(1)
    qtbot.waitUntil(lambda: reading.session.case_id == "A_2")
    qtbot.waitUntil(lambda: words(reading) == ["15.0 mm · not saved"])
    for log in record._logs.values():
        log.append = append_measurement
    reading.close_down()
    assert len(stored(world, "A_2")) == 1


def test_a_nameless_reader_is_asked_and_then_it_is_kept(qtbot, reading, mouse, world):
    reading.session.set_reader(None)
    draw(reading, mouse, RULER, (2, 4, 3), (2, 10, 9))
    assert words(reading) == ["15.0 mm · not saved"]
    assert stored(world) == ()
    reading.header.reader_given.emit("Eva")
    (one,) = wait_stored(qtbot, world, 1)
    assert one.reader == "Eva"
    qtbot.waitUntil(lambda: words(reading) == ["15.0 mm"])


def test_a_case_without_a_data_set_is_measured_on_the_screen_alone(qtbot, reading, mouse, world):
    case = reading.session.case
    reading.session.close_case()
    reading.session.set_case(case, None, ())
    draw(reading, mouse, RULER, (2, 4, 3), (2, 10, 9))
    assert words(reading) == ["15.0 mm · not saved"]
    assert "saved with a data set" in reading.header.message.text()
    assert stored(world) == ()


def test_a_case_without_spacing_is_measured_in_its_voxels(qtbot, reading, world):
    world.affine = Grid.of_spacing((6, 20, 24), (1.0, 1.0, 1.0)).affine
    reading.cases_flow.open_neighbour(1)
    qtbot.waitUntil(lambda: reading.session.case_id == "A_2" and reading.session.case.is_loaded)
    draw(reading, DrawingMouse(reading), RULER, (2, 4, 3), (2, 12, 9))
    assert words(reading) == ["10.0 mm"]


def test_closing_writes_what_waits_once_however_often(qtbot, reading, mouse, world):
    reading.measuring.record._jobs = type(
        "NoJobs", (), {"start": lambda *_args, **_settings: None}
    )()
    draw(reading, mouse, RULER, (2, 4, 3), (2, 10, 9))
    assert stored(world) == ()
    reading.measuring.close()
    reading.measuring.close()
    assert len(stored(world)) == 1
    assert reading.viewer.dims.events.current_step.callbacks  # napari's own are there
    assert not any(
        "ViewDrawings" in str(callback)
        for callback in reading.viewer.dims.events.current_step.callbacks
    )


def test_what_another_window_drew_comes_with_a_look_and_is_taken_back_there(
    qtbot, reading, mouse, world
):
    draw(reading, mouse, RULER, (2, 4, 3), (2, 10, 9))
    (mine,) = wait_stored(qtbot, world, 1)
    other = append_measurement(
        world.root / "workspace",
        Measurement("A_1", RULER, ((0, 0, 6), (-9, 0, 6)), "axial", 1, reader="Ben"),
    )
    record = reading.measuring.record
    record.read()
    qtbot.waitUntil(lambda: len(items(reading)) == 2)
    theirs = record.find(other.measurement_id)
    assert not theirs.is_own
    record.remove(theirs.key)
    assert len(items(reading)) == 2, "what another reader drew is theirs"
    assert "9.0 mm · Ben" in words(reading)
    record.read()
    qtbot.waitUntil(lambda: not reading.jobs.is_running("measurements read"))
    assert len(items(reading)) == 2
    assert mine in stored(world)


def test_a_blind_reader_sees_own_drawings_alone(qtbot, dock, world):
    for reader in ("Ana", "Ben"):
        append_measurement(
            world.root / "workspace",
            Measurement("A_1", RULER, ((0, 0, 6), (-9, 0, 6)), "axial", 1, reader=reader),
        )
    world_open = dock.services.open_data_set

    def open_blind(path, workspace=None, **hidden):
        opened = world_open(path, workspace, **hidden)
        blind = replace(opened.workspace, blinding=ALL_HIDDEN, reader="Ana")
        return replace(opened, workspace=blind)

    dock.cases_flow._services = dock.listing._services = dock.opening._services = (
        dock.services.replacing(open_data_set=open_blind)
    )
    world.has_reference = False
    dock.session.set_blinding(ALL_HIDDEN)
    dock.session.set_reader("Ana")
    dock.open_data_set(Path("data"), "A_1")
    qtbot.waitUntil(lambda: dock.session.case is not None and bool(items(dock)))
    assert [one.reader for one in items(dock)] == ["Ana"]


def test_five_hundred_drawings_are_shown_and_one_is_found(qtbot, reading, mouse, world):
    log = begin_log(reading.session.workspace)
    log.append = lambda root, drawn: append_measurement(root, drawn)
    for n in range(500):
        ends = ((-1.5 * (n % 20), 2.0 * (n // 25), 6.0), (-1.5 * (n % 20) - 1.5, 9.0, 6.0))
        reading.measuring.record._put_item(
            f"r{n}", Measurement("A_1", RULER, ends, "axial", 1, text=str(n))
        )
    reading.measuring.record._show_and_write("r499")
    assert len(reading.measuring.views[0].keys) == 500
    wait_stored(qtbot, world, 500)
    assert reading.pages.measure.list.model().rowCount() == 500
    mouse.move((2, 0, 0))
    assert reading.tools.drawing.is_over


def test_the_tool_that_is_not_ours_keeps_its_presses(reading, mouse):
    draw(reading, mouse, RULER, (2, 4, 3), (2, 10, 9))
    reading.active_tool.turn_on(MouseTool("landmarks", "click", "a click", "Findings", waits=True))
    mouse.press((2, 10, 9))
    assert not reading.tools.drawing._is_gripping
    mouse.release((2, 10, 9))


# ------------------------------------------------------------------- of a lesion


def test_a_drawing_is_of_the_lesion_that_is_asked_about_and_can_be_given_to_another(
    qtbot, reading, mouse, world
):
    measuring, section = reading.measuring, reading.pages.measure
    measuring.list_lesions = lambda: ("1", "2")
    draw(reading, mouse, RULER, (2, 6, 8), (2, 6, 12))
    measuring.find_lesion = lambda: "2"
    draw(reading, mouse, RULER, (2, 9, 8), (2, 9, 12))
    assert [one.lesion for one in items(reading)] == ["", "2"]
    lines = [section._model.data(section._model.index(at)) for at in range(2)]
    assert lines[1].startswith("Ruler lesion 2 · 6.0 mm")
    assert "lesion" not in lines[0]
    (view, *_) = measuring.views
    assert [one.words for one in view._placed] == ["6.0 mm", "lesion 2 · 6.0 mm"]
    measuring.record.choose(measuring.record.items[0].key)
    assert [section.lesion.itemData(at) for at in range(3)] == ["", "1", "2"]
    section.lesion.setCurrentIndex(1)
    section.lesion.activated.emit(1)
    assert [one.lesion for one in items(reading)] == ["1", "2"]
    qtbot.waitUntil(lambda: [one.lesion for one in stored(world)] == ["2", "1"])
    measuring.record.undo()
    assert [one.lesion for one in items(reading)] == ["", "2"]


def test_delete_takes_the_ruler_that_was_drawn_last_and_not_a_mark_chosen_before(reading, mouse):
    measuring = reading.measuring
    measuring.show_marks((ShownMark("mark NIPPLE LEFT", (0.0, 36.0, 0.0), "Nipple left"),))
    gone = []
    measuring.mark_removed.connect(gone.append)
    measuring._choose_drawing("mark NIPPLE LEFT")
    draw(reading, mouse, RULER, (2, 6, 8), (2, 6, 12))
    measuring.delete()
    assert (items(reading), gone) == ([], [])
    measuring._choose_drawing("mark NIPPLE LEFT")
    measuring.delete()
    assert gone == ["mark NIPPLE LEFT"]


def test_words_of_drawings_at_one_place_cover_none_of_the_others():
    wanted, taken = QRectF(100.0, 50.0, 80.0, 20.0), []
    grounds = [find_ground(wanted, taken, 120.0) for _ in range(5)]
    assert grounds[0] == wanted
    for at, one in enumerate(grounds):
        assert not any(one.intersects(other) for other in grounds[:at])
        assert 0 <= one.top() <= one.bottom() <= 120.0
    assert find_ground(wanted, taken, 120.0) == wanted, "all is full: it stands where it belongs"


def test_what_another_reader_drew_is_neither_moved_nor_given_words(qtbot, reading, mouse, world):
    append_measurement(
        world.root / "workspace",
        Measurement("A_1", RULER, ((0, 0, 6), (-9, 0, 6)), "axial", 1, reader="Ben"),
    )
    draw(reading, mouse, RULER, (2, 4, 3), (2, 10, 9))
    record, (view, *_) = reading.measuring.record, reading.measuring.views
    record.read()
    qtbot.waitUntil(lambda: len(record.items) == 2)
    keys = {drawn.item.reader: drawn.key for drawn in record.items}
    record.choose("")
    for reader, end, point in (("Ana", (2, 4, 3), 0), ("Ben", (2, 0, 0), None)):
        mouse.move(end)
        grip = view.find(mouse.pixel)
        assert (grip.key, grip.at) == (keys[reader], point)
        reading.measuring._ask_words(keys[reader])
        assert record.chosen == keys["Ana"], "words are asked for one's own alone"
    theirs = record.find(keys["Ben"])
    record.change(theirs.key, replace(theirs.item, text="mine now"))
    assert record.find(keys["Ben"]) == theirs
