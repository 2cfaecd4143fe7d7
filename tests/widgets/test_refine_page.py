"""The page Refine by its named controls, on fakes and a viewer without a window."""

import gc
import json
import weakref
from dataclasses import replace
from math import isnan
from types import SimpleNamespace

import numpy as np
import pytest
from qtpy.QtCore import Qt
from qtpy.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractSlider,
    QAbstractSpinBox,
    QComboBox,
    QScrollBar,
)
from tests.widgets.conftest import HeldJobs

from napari_mamamia.core.blinding import Blinding
from napari_mamamia.core.box import Box
from napari_mamamia.core.edits import Action, Brush, Extent, Jump, Tool
from napari_mamamia.core.grid import IDENTITY_WARNING
from napari_mamamia.segmentation.model.segmenter import BoxPrompt
from napari_mamamia.services.refine.numbers import MaskNumbers
from napari_mamamia.smartpaint.evidence.marks import unpack_marks
from napari_mamamia.smartpaint.grow.grow import AT_LIMIT
from napari_mamamia.widgets.base.layers import Role, find_line_style
from napari_mamamia.widgets.dock.dock import MamamiaDock
from napari_mamamia.widgets.keys.key_choice import remapped
from napari_mamamia.widgets.refine.numbers import RefineNumbers, ShownNumbers
from napari_mamamia.widgets.refine.state import PaintTool


def click(dock, name):
    dock.findChild(object, name).click()


@pytest.fixture
def refining(qtbot, opened):
    """A copy of the reference with its numbers measured."""
    opened.show_page("Refine")
    click(opened, "refine_from_reference")
    qtbot.waitUntil(lambda: opened.editing.live is not None)
    qtbot.waitUntil(lambda: opened.measure.images is not None)
    return opened


def text_of(dock, name):
    return dock.findChild(object, name).text()


# ------------------------------------------------------------------------- tools


@pytest.mark.usefixtures("dressed")
def test_a_long_message_in_a_low_window_squeezes_no_control(qtbot, refining):
    refining.resize(340, 690)
    refining.header.say("hint", "one line of a long message " * 8)
    qtbot.wait(50)
    tools = refining.refine_page.tools
    for part in (tools, refining.refine_page.numbers, refining.accept_row.accept):
        assert part.height() >= part.minimumSizeHint().height()


def test_sliders_and_choices_set_the_brush(refining):
    tools = refining.refine_page.tools
    tools.radius.setValue(24)
    tools.extents[Extent.PLANE].click()
    tools.actions[Action.ERASE].click()
    brush = refining.painting.state.brush
    # steps of 0.5 mm
    assert (brush.radius_mm, brush.extent) == (12.0, Extent.PLANE)
    assert brush.action is Action.ERASE
    assert text_of(refining, "refine_radius_mm") == "12.0 mm"


CONTROLS = (QAbstractButton, QAbstractSlider, QAbstractItemView, QAbstractSpinBox, QComboBox)


def controls(dock):
    """The names of what can be clicked or turned on the page Refine at the moment."""
    places = (dock.refine_page, dock.accept_row)
    parts = (part for place in places for kind in CONTROLS for part in place.findChildren(kind))
    return {p.objectName() for p in parts if p.isVisible() and not isinstance(p, QScrollBar)}


USUAL = {
    *("refine_tool_smartpaint", "refine_tool_outline", "refine_tool_sphere", "refine_radius"),
    *("refine_grow", "refine_more_fold", "refine_undo", "refine_accept", "refine_save"),
}


def test_few_controls_are_seen_and_the_rest_lies_behind_one_fold(tmp_path, refining):
    assert controls(refining) == USUAL
    refining.refine_page.more.fold.click()
    behind = {"refine_steps", "refine_redo", "refine_fill_holes", "refine_from_nothing"}
    assert controls(refining) > USUAL | behind
    refining.refine_page.more.fold.click()
    assert controls(refining) == USUAL


def test_never_more_than_twelve_controls_are_seen_with_the_fold_closed(tmp_path, refining, world):
    structures = [{"value": 1, "name": "tumour"}, {"value": 2, "name": "node"}]
    path = tmp_path / "study.json"
    path.write_text(json.dumps({"name": "Study 1", "structures": structures}))
    refining.protocols.load(path)
    assert controls(refining) == USUAL | {"refine_label"}
    refining.refine_page.set_save_is_next(True, failed=True)
    refining.refine_page.show_offer("Recovered 3 steps")
    refining.refine_flow._suggest_radius((2.0, 9.0, 12.0))
    assert len(controls(refining)) <= 14  # where saving fails and strokes were recovered at once
    refining.refine_page.show_offer("")
    assert len(controls(refining)) <= 12


def primary(dock):
    """The names of the controls that are drawn as the next step."""
    buttons = dock.pages.stack.findChildren(QAbstractButton)
    return {b.objectName() for b in buttons if b.property("primary") and b.isVisible()}


def test_the_next_step_is_the_one_control_that_stands_out(qtbot, opened):
    begin(qtbot, opened)
    page = opened.refine_page
    assert primary(opened) == {"refine_tool_smartpaint"}
    assert "press on the tumour" in page.tools.next_step.text()
    outline(opened, 2, 8, 12)
    assert primary(opened) == {"refine_grow"}
    assert "grow the outline" in page.tools.next_step.text()
    opened.painting.set_tool(PaintTool.SMARTPAINT)
    assert primary(opened) == {"refine_grow"}
    click(opened, "refine_grow")
    qtbot.waitUntil(lambda: primary(opened) == {"refine_accept"})
    assert "Left button adds" in page.tools.next_step.text()
    click(opened, "refine_undo")
    assert primary(opened) == {"refine_grow"}
    click(opened, "refine_undo")
    qtbot.waitUntil(lambda: primary(opened) == {"refine_tool_smartpaint"})


def test_saving_comes_next_where_it_failed(qtbot, refining, world, disk_full):
    world.save_error = disk_full
    outline(refining, 0)
    click(refining, "refine_save")
    qtbot.waitUntil(lambda: primary(refining) == {"refine_save"})
    assert "refine_discard" in controls(refining)
    assert "not saved" in refining.refine_page.tools.next_step.text()


def test_the_suggested_radius_is_the_distance_to_the_masks_edge(refining):
    refining.refine_flow._suggest_radius((2.0, 9.0, 12.0))
    button = refining.refine_page.tools.suggested
    # the nearest voxel outside 2:4 x 8:12 x 10:16 is a slice below, 3 mm; rows 2 x 2 mm, columns
    # 3 x 1.5 mm away
    assert button.text() == "Radius 3.0 mm"
    button.click()
    assert refining.painting.state.brush.radius_mm == 3.0


def test_no_radius_is_suggested_far_from_the_mask(refining):
    refining.editing.start(None)
    refining.refine_flow._suggest_radius((2.0, 9.0, 12.0))
    assert not refining.refine_page.tools.suggested.isVisible()


def test_what_smartpaint_compares_is_shown_with_its_phases(refining):
    # times 0, 90, 180 s: post is the phase nearest to 150 s; there is none near 450 s
    assert "post 2" in text_of(refining, "refine_tools_hint")


# ----------------------------------------------------------------------- numbers


def test_a_copy_of_the_reference_has_dice_1_and_hd95_0(qtbot, refining):
    qtbot.waitUntil(lambda: text_of(refining, "refine_dice_start") == "1.00")
    assert text_of(refining, "refine_hausdorff95_mm_start") == "0.0 mm"
    # 2 x 4 x 6 voxels of 9 mm3
    assert text_of(refining, "refine_volume_mm3_reference") == "0.43 ml"
    # corners are 1 x 3, 3 x 2, 5 x 1.5 mm apart: sqrt(9 + 36 + 56.25) = 10.06
    assert text_of(refining, "refine_longest_mm_start") == "10.1 mm"


def test_the_numbers_follow_a_step(qtbot, refining):
    box_and_mask = refining.editing.live.labels.copy() > 0
    box_and_mask[3] = False
    refining.editing.live.apply_labels("half", half_of(refining, box_and_mask))
    refining.editing.mask.stepped.emit()
    # 24 of 48 voxels: Dice 2 * 24 / 72
    qtbot.waitUntil(lambda: text_of(refining, "refine_dice_now") == "0.67")
    assert text_of(refining, "refine_dice_start") == "1.00"


def numbers_of(dock):
    """The texts of all numbers on the page."""
    return {cell.text() for cell in dock.refine_page.numbers.cells.values()}


def test_numbers_leave_the_screen_when_a_blind_reading_hides_them(qtbot, refining):
    qtbot.waitUntil(lambda: text_of(refining, "refine_dice_now") == "1.00")
    refining.session.set_blinding(Blinding.of(["numbers"]))
    qtbot.waitUntil(lambda: not refining.jobs._workers)
    assert numbers_of(refining) <= {"", "–"}


@pytest.mark.parametrize("lanes", [("numbers",), ("start_numbers",)])
def test_numbers_that_were_on_their_way_are_not_shown_to_a_blind_reader(qtbot, opened, lanes):
    opened.show_page("Refine")
    held = HeldJobs(opened.jobs, lanes)
    click(opened, "refine_from_reference")
    qtbot.waitUntil(lambda: held.lanes == list(lanes))
    opened.session.set_blinding(Blinding.of(["numbers"]))
    held.deliver()
    qtbot.waitUntil(lambda: not opened.jobs._workers)
    assert numbers_of(opened) <= {"", "–"}


def test_a_step_under_a_hidden_reference_compares_with_nothing(qtbot, refining):
    qtbot.waitUntil(lambda: text_of(refining, "refine_dice_now") == "1.00")
    refining.session.set_blinding(Blinding.of(["reference"]))
    refining.editing.mask.stepped.emit()
    qtbot.waitUntil(lambda: text_of(refining, "refine_volume_mm3_now") == "0.43 ml")
    assert text_of(refining, "refine_dice_now") == "–"
    assert text_of(refining, "refine_volume_mm3_reference") == ""


def test_the_numbers_follow_the_labels_that_count_as_tumour(qtbot, opened, world):
    world.reference_value = 2  # 47 voxels of 2 and one of 1
    opened.cases_flow.open_case("A_2")
    qtbot.waitUntil(lambda: opened.session.case_id == "A_2" and opened.session.case.is_loaded)
    opened.show_page("Refine")
    click(opened, "refine_from_nothing")
    qtbot.waitUntil(lambda: text_of(opened, "refine_volume_mm3_reference") == "0.43 ml")
    opened.score_page.label_chosen.emit(1.0)
    qtbot.waitUntil(lambda: text_of(opened, "refine_volume_mm3_reference") == "0.01 ml")  # 9 mm3
    opened.score_page.label_chosen.emit(2.0)
    qtbot.waitUntil(lambda: text_of(opened, "refine_volume_mm3_reference") == "0.42 ml")


def half_of(dock, mask):
    from napari_mamamia.core.case import LabelMap

    return LabelMap.of(mask.astype(np.uint8), dock.session.case.grid)


def test_the_numbers_of_a_mask_that_was_let_go_are_dropped(qtbot, refining):
    qtbot.waitUntil(lambda: text_of(refining, "refine_dice_now") == "1.00")
    outline(refining, 0)
    shown = []
    refining.measure.numbers.connect(shown.append)
    refining.measure.measure_now()
    refining.editing.discard()
    qtbot.wait(100)
    assert all(numbers.now is None for numbers in shown)


def test_without_a_reference_the_numbers_are_dashes_with_the_reason(qtbot):
    table = RefineNumbers()
    qtbot.addWidget(table)
    alone = MaskNumbers(4412.0, 20.0, reason="this case has no reference mask")
    table.show_numbers(ShownNumbers(alone, alone))
    cell = table.cells["dice", "now"]
    assert cell.text() == "–"
    assert "no reference mask" in cell.toolTip()
    assert table.cells["volume_mm3", "now"].text() == "4.41 ml"
    assert isnan(alone.dice)
    table.show_numbers(ShownNumbers(alone, alone, alone, IDENTITY_WARNING))
    assert table.title.text() == "Numbers (in voxels, not mm)"
    assert table.title.toolTip() == IDENTITY_WARNING


# ----------------------------------------------------------------------- history


def outline(dock, z, low=2, high=6):
    """Draw a square outline on slice z."""
    mask = dock.editing.live.labels[z : z + 1] > 0
    mask[0, low:high, low:high] = True
    from napari_mamamia.core.box import Box

    shape = dock.session.case.grid.shape
    box = Box((z, 0, 0), (z + 1, *shape[1:]))
    dock.editing.mask.apply("outline", box, mask, (("axis", 0), ("index", z)))


def test_a_click_in_the_history_goes_there(refining, qtbot):
    states = [refining.editing.live.labels.copy()]
    for z in (0, 1, 5):
        outline(refining, z)
        states.append(refining.editing.live.labels.copy())
    history = refining.refine_page.history
    # lines from the newest: 3, 2, 1, start
    assert history.model.index(0, 0).data() == "3  outline"
    for line, steps in ((2, 1), (3, 0), (0, 3)):
        history.view.clicked.emit(history.model.index(line, 0))
        # the way is gone in portions of time: on a busy computer in several
        qtbot.waitUntil(lambda steps=steps: refining.editing.live.position == steps)
        np.testing.assert_array_equal(refining.editing.live.labels, states[steps])


def test_a_click_on_a_step_that_changed_no_voxel_goes_there_at_once(refining):
    """Undo passes over such steps, and stepping with undo and redo never came to rest there."""
    mask, records = refining.editing.mask, []
    outline(refining, 0)
    eraser = Brush(tool=Tool.SPHERE, action=Action.ERASE, radius_mm=1.0)
    for _ in range(2):
        background = np.argwhere(refining.editing.live.labels == 0)[0]
        mask.press(tuple(map(float, background)), eraser)
        mask.release()
        eraser = replace(eraser, radius_mm=2.0)
    outline(refining, 5)
    live = refining.editing.live
    live.on_record = records.append
    history = refining.refine_page.history
    assert history.model.index(2, 0).data() == "2  erase 1 mm (sphere) (no voxel changed)"
    history.view.clicked.emit(history.model.index(2, 0))
    assert (live.position, records) == (2, [Jump(4, 2)])
    history.view.clicked.emit(history.model.index(1, 0))
    assert (live.position, records[1:]) == (3, [Jump(2, 3)])


def test_undo_and_redo_are_offered_when_there_is_something(refining):
    history = refining.refine_page.history
    assert (history.undo.isEnabled(), history.redo.isEnabled()) == (False, False)
    outline(refining, 0)
    assert (history.undo.isEnabled(), history.redo.isEnabled()) == (True, False)
    history.undo.click()
    assert not history.undo.isEnabled()
    assert history.redo.isEnabled()


def test_steps_that_are_undone_are_greyed_and_drawn_again_at_once(refining):
    outline(refining, 0)
    outline(refining, 1)
    history = refining.refine_page.history
    model, drawn = history.model, []
    model.dataChanged.connect(lambda first, last: drawn.append((first.row(), last.row())))

    def greyed():
        role = Qt.ItemDataRole.ForegroundRole
        return [model.index(line, 0).data(role) is not None for line in range(model.rowCount())]

    assert greyed() == [False, False, False]
    history.undo.click()
    assert greyed() == [True, False, False]
    assert drawn == [(0, 0)]
    history.redo.click()
    assert greyed() == [False, False, False]
    assert drawn == [(0, 0), (0, 0)]


def test_starting_again_is_a_step_and_undo_brings_the_mask_back(refining):
    before = refining.editing.live.labels.copy()
    click(refining, "refine_from_nothing")
    click(refining, "refine_replace")
    assert refining.editing.live.labels.sum() == 0
    click(refining, "refine_undo")
    np.testing.assert_array_equal(refining.editing.live.labels, before)


# -------------------------------------------------------------------- comparing


def test_the_start_mask_is_shown_while_held(refining):
    outline(refining, 0)
    refining.refine_flow.compare(True)
    assert not refining.scene.layer(Role.REFINED).visible
    shown = np.count_nonzero(refining.scene.layer(Role.MARKS).data)
    # the start was the reference of 48 voxels
    assert shown == 48
    refining.refine_flow.compare(False)
    assert refining.scene.layer(Role.REFINED).visible
    assert refining.marks.is_empty


def test_what_changed_is_coloured_by_added_and_removed(qtbot, refining):
    outline(refining, 0)
    mask = refining.editing.live.labels.copy()
    mask[2, 8, 10] = 0
    refining.editing.live.apply_labels("less", half_of(refining, mask > 0))
    refining.editing.mask.stepped.emit()
    click(refining, "refine_changes")
    qtbot.waitUntil(lambda: not refining.marks.is_empty)
    values, counts = np.unique(refining.scene.layer(Role.MARKS).data, return_counts=True)
    # 4 x 4 voxels added (value 3), one removed (value 4)
    assert dict(zip(values.tolist(), counts.tolist(), strict=True)) | {0: 0} == {0: 0, 3: 16, 4: 1}
    click(refining, "refine_changes")
    assert refining.marks.is_empty


# ---------------------------------------------------------------- growing, tools


def test_growing_is_one_step_from_the_outlined_slices(qtbot, opened, world):
    opened.show_page("Refine")
    click(opened, "refine_from_nothing")
    qtbot.waitUntil(lambda: opened.editing.live is not None)
    qtbot.waitUntil(lambda: opened.measure.images is not None)
    outline(opened, 2, 8, 12)
    outline(opened, 3, 8, 12)
    click(opened, "refine_grow")
    live = opened.editing.live
    qtbot.waitUntil(lambda: live.position == 3)
    assert ("grow", 2) in world.calls
    assert live.steps[2].name == "grow (2 outlines)"
    # 4 x 4 x 6 grown; of the outlines' 2 x 4 x 4 voxels, columns 8 and 9 lie outside of it
    assert live.labels.sum() == 96 + 2 * 4 * 2
    assert "a note" in opened.refine_page.tools.grow_note.text()


def test_tightening_moves_the_edge_of_the_mask_in_one_step_that_undo_takes_back(
    qtbot, refining, world
):
    refining.editing.mask.press((2.0, 9.0, 12.0), Brush(Tool.SPHERE, radius_mm=3.0))
    refining.editing.mask.end_stroke()
    live = refining.editing.live
    before, n_marks = live.labels.copy(), int((live.state.words(1) > 0).sum())
    click(refining, "refine_tighten")
    qtbot.waitUntil(lambda: not refining.growing.is_busy)
    assert world.calls[-1] == ("tighten by 3.0 mm", 1, 0, n_marks)
    step = live.steps[live.position - 1]
    assert step.name == "grow (to edges)"
    assert step.changed_voxels == np.count_nonzero(live.labels != before)
    refining.editing.mask.undo()
    np.testing.assert_array_equal(live.labels, before)


def test_growing_again_takes_the_mask_its_marks_and_the_outlines(qtbot, refining, world):
    outline(refining, 2, 8, 12)
    assert text_of(refining, "refine_grow") == "Grow again"
    refining.editing.mask.press((2.0, 9.0, 12.0), Brush(Tool.SPHERE, radius_mm=3.0))
    refining.editing.mask.end_stroke()
    n_marks = int((refining.editing.live.state.words(1) > 0).sum())
    assert n_marks > 0
    click(refining, "refine_grow")
    qtbot.waitUntil(lambda: not refining.growing.is_busy)
    assert world.calls[-1] == ("grow_again", 1, 1, n_marks)
    live = refining.editing.live
    assert live.steps[live.position - 1].name == "grow (again)"
    # the whole label is what it grew to, 4 x 4 x 6 voxels: it shrinks as well
    assert live.labels.sum() == 96
    assert live.labels[1:5, 8:12, 10:16].all()


def test_how_far_a_region_reaches_can_be_set_where_its_note_asks_for_it(qtbot, opened, world):
    world.notes_of_growth = (f"12% {AT_LIMIT}: if the lesion goes on, let it reach farther",)
    begin(qtbot, opened)
    outline(opened, 2, 8, 12)
    assert "refine_grow_reach" not in controls(opened)
    click(opened, "refine_grow")
    qtbot.waitUntil(lambda: "refine_grow_reach" in controls(opened))
    assert world.settings == [None]
    reach = opened.refine_page.tools.reach
    # 4 slices of 3 mm are its longest side: 1.5 times half of it
    assert reach.value() == 9.0
    reach.setValue(30.0)
    click(opened, "refine_grow")
    qtbot.waitUntil(lambda: len(world.settings) == 2)
    assert world.settings[1].radius_mm == 30.0
    qtbot.waitUntil(lambda: not opened.growing.is_busy)
    click(opened, "refine_undo")
    assert "refine_grow_reach" not in controls(opened)


# --------------------------------------------------------------- marks and lesions


def paint(dock, place, brush):
    dock.editing.mask.press(place, brush)
    dock.editing.mask.end_stroke()


def test_marks_are_shown_in_two_colours_and_follow_the_next_stroke(qtbot, refining):
    paint(refining, (2.0, 9.0, 12.0), Brush(Tool.SPHERE, radius_mm=3.0))
    refining.refine_page.more.fold.click()
    click(refining, "refine_marks")
    layer = refining.scene.layer(Role.MARKS)
    hold = unpack_marks(refining.editing.live.state.words(1)).hold
    # MARK_COLOURS: inside is the seventh, outside the eighth
    assert (hold > 0).any()
    np.testing.assert_array_equal(layer.data == 7, shown_as(refining, hold > 0))
    assert refining.refine_page.marks_legend.isVisible()
    paint(refining, (3.0, 9.0, 12.0), Brush(Tool.SPHERE, Action.ERASE, radius_mm=3.0))
    qtbot.waitUntil(lambda: (layer.data == 8).any())
    click(refining, "refine_changes")
    assert not refining.refine_page.marks.isChecked()
    click(refining, "refine_changes")
    assert refining.marks.is_empty


def shown_as(dock, array):
    return dock.session.case.grid.display_frame().to_display(array)


def test_forgetting_marks_is_a_step_that_undo_takes_back(refining):
    live = refining.editing.live
    paint(refining, (2.0, 9.0, 12.0), Brush(Tool.SPHERE, radius_mm=3.0))
    marks, labels = live.state.words(1).copy(), live.labels.copy()
    refining.refine_page.more.fold.click()
    click(refining, "refine_forget_marks")
    assert not live.state.words(1).any()
    np.testing.assert_array_equal(live.labels, labels)
    assert live.steps[1].name == "forget marks"
    click(refining, "refine_undo")
    np.testing.assert_array_equal(live.state.words(1), marks)
    click(refining, "refine_forget_marks")
    click(refining, "refine_forget_marks")
    assert "no marks" in refining.header.message.text()


def test_a_further_lesion_has_its_own_label_and_leaves_the_first_alone(qtbot, refining):
    live, page = refining.editing.live, refining.refine_page
    first = live.labels.copy()
    page.more.fold.click()
    click(refining, "refine_new_lesion")
    page.more.fold.click()
    assert controls(refining) == USUAL | {"refine_label"}
    assert (live.label, refining.painting.state.brush.label) == (2, 2)
    assert live.locked == frozenset({1})
    assert text_of(refining, "refine_outlines") == "from the pointer"
    paint(refining, (2.0, 9.0, 12.0), replace(refining.painting.state.brush, tool=Tool.SPHERE))
    np.testing.assert_array_equal(live.labels == 1, first == 1)
    assert (live.labels == 2).any()
    qtbot.waitUntil(lambda: text_of(refining, "refine_volume_mm3_start") == "0.00 ml")
    labels = page.tools.labels
    assert [labels.itemText(k) for k in range(labels.count())] == ["lesion 1", "lesion 2"]
    assert labels.currentText() == "lesion 2"
    # picture and list show the same sign: the painted one green, the other one grey
    layer = refining.scene.layer(Role.REFINED)
    for painted, other, signs in ((2, 1, ("CCCCCC", "009E73")), (1, 2, ("009E73", "CCCCCC"))):
        labels.activated.emit(painted - 1)
        look = find_line_style(layer)
        assert (look.label, look.colour, look.others.colour) == (painted, "#009E73", "#CCCCCC")
        assert layer.selected_label == painted
        assert layer.get_color(painted)[:3] == pytest.approx((0, 0x9E / 255, 0x73 / 255), abs=0.01)
        assert layer.get_color(other)[:3] == pytest.approx([0.8] * 3, abs=0.01)
        for row, sign in enumerate(signs):
            icon = labels.itemIcon(row).pixmap(26, 12).toImage()
            colours = {icon.pixelColor(x, 6).name()[1:].upper() for x in range(26)}
            assert colours == {"000000", sign}


def test_going_back_to_a_lesion_goes_on_with_its_marks(refining):
    live, labels = refining.editing.live, refining.refine_page.tools.labels
    paint(refining, (2.0, 9.0, 12.0), Brush(Tool.SPHERE, radius_mm=3.0))
    marks = live.state.words(1).copy()
    refining.editing.mask.redo()  # nothing to do again, and there is no other lesion to speak of
    assert "This lesion has no" not in refining.header.message.text()
    refining.protocols.begin_lesion()
    paint(refining, (2.0, 15.0, 5.0), Brush(Tool.SPHERE, radius_mm=3.0, label=2))
    labels.activated.emit(0)
    assert (live.label, live.locked) == (1, frozenset({2}))
    assert refining.painting.state.brush.label == 1
    np.testing.assert_array_equal(live.state.words(1), marks)
    assert text_of(refining, "refine_grow") == "Grow again"
    # undo takes back the last step of this lesion, and the other stays as it is
    second = live.labels == 2
    click(refining, "refine_undo")
    assert not live.state.words(1).any()
    np.testing.assert_array_equal(live.labels == 2, second)
    assert [step.name for step in live.steps[2:]] == ["undo (1 paint 3 mm (sphere))"]
    assert not refining.refine_page.history.undo.isEnabled()
    refining.editing.mask.undo()
    assert "This lesion has no more steps" in refining.header.message.text()
    refining.editing.mask.redo()
    np.testing.assert_array_equal(live.state.words(1), marks)
    assert live.position == 2


def test_what_is_grown_of_one_lesion_is_not_laid_into_another(qtbot, opened, world):
    world.notes_of_growth = (f"12% {AT_LIMIT}: if the lesion goes on, let it reach farther",)
    begin(qtbot, opened)
    outline(opened, 2, 8, 12)
    click(opened, "refine_grow")
    qtbot.waitUntil(lambda: "refine_grow_reach" in controls(opened))
    qtbot.waitUntil(lambda: not opened.growing.is_busy)
    live = opened.editing.live
    opened.protocols.begin_lesion()
    # reaching farther is offered for the lesion that ended at its limit
    assert "refine_grow_reach" not in controls(opened)
    opened.refine_page.tools.labels.activated.emit(0)
    assert "refine_grow_reach" in controls(opened)
    first = live.labels.copy()
    click(opened, "refine_grow")
    opened.protocols.begin_lesion()
    qtbot.waitUntil(lambda: not opened.growing.is_busy)
    np.testing.assert_array_equal(live.labels, first)
    assert "another lesion" in opened.header.message.text()


def test_growing_lets_go_of_a_case_that_was_closed(qtbot, opened, world):
    world.notes_of_growth = (f"12% {AT_LIMIT}: if the lesion goes on, let it reach farther",)
    begin(qtbot, opened)
    outline(opened, 2, 8, 12)
    click(opened, "refine_grow")
    qtbot.waitUntil(lambda: "refine_grow_reach" in controls(opened))
    qtbot.waitUntil(lambda: not opened.growing.is_busy)
    closed = weakref.ref(opened.editing.live.images)
    opened.cases_flow.open_neighbour(1)
    qtbot.waitUntil(lambda: opened.session.case_id == "A_2" and opened.session.case.is_loaded)
    assert opened.growing.farther_mm is None
    qtbot.wait(50)
    gc.collect()
    assert closed() is None


def test_accepting_without_a_mask_of_ones_own_says_so_and_stays(opened):
    opened.show_page("Refine")
    case = opened.session.case_id
    opened.accepting.accept()
    assert opened.session.case_id == case
    assert "no mask to accept" in opened.header.message.text()


def test_a_hint_ends_with_the_state_that_it_is_about(qtbot, opened):
    opened.show_page("Refine")
    opened.growing.grow()
    assert "own mask first" in opened.header.message.text()
    begin(qtbot, opened)
    assert opened.header.message.text() == ""
    opened.growing._say_hint("Growing did not change the mask: here.")
    outline(opened, 2, 8, 12)
    assert opened.header.message.text() == ""


def test_a_hint_that_was_replaced_is_not_withdrawn(opened):
    opened.notifier.hint("first")
    opened.notifier.warn("second")
    opened.notifier.withdraw("first")
    opened.notifier.withdraw("second")
    assert opened.header.message.text() == "second"


def test_a_lesion_without_a_voxel_is_painted_before_a_further_one(refining):
    refining.protocols.begin_lesion()
    refining.protocols.begin_lesion()
    assert refining.editing.live.label == 2
    assert "Paint this lesion first" in refining.header.message.text()


def test_the_next_case_begins_with_its_first_lesion(qtbot, refining):
    refining.protocols.begin_lesion()
    refining.cases_flow.open_neighbour(1)
    qtbot.waitUntil(lambda: refining.session.case_id == "A_2" and refining.session.case.is_loaded)
    click(refining, "refine_from_nothing")
    qtbot.waitUntil(lambda: refining.editing.live is not None)
    assert refining.editing.live.label == refining.painting.state.brush.label == 1
    assert "refine_label" not in controls(refining)


def begin(qtbot, dock):
    dock.show_page("Refine")
    click(dock, "refine_from_nothing")
    qtbot.waitUntil(lambda: dock.measure.images is not None)


def test_growing_in_a_box_asks_for_the_box_and_puts_the_tool_down(qtbot, opened, world):
    begin(qtbot, opened)
    opened.painting.set_tool(PaintTool.SPHERE)
    click(opened, "refine_grow_box")
    assert opened.grow_box.is_waiting
    assert opened.painting.state.tool is PaintTool.NONE
    given = BoxPrompt(Box((1, 6, 8), (6, 14, 18)))
    opened.grow_box.given.emit(given)
    qtbot.waitUntil(lambda: not opened.growing.is_busy, timeout=20_000)
    live = opened.editing.live
    assert live.steps[0].name == "grow (in a box)"
    assert ("grow_from_box", given.box) in world.calls
    # the fake grows 4 x 4 x 6 voxels
    assert live.labels.sum() == 96


def test_the_reader_chooses_what_smartpaint_uses(qtbot, opened):
    begin(qtbot, opened)
    painting = opened.painting
    choice = opened.findChild(QComboBox, "refine_smart")
    assert choice.toolTip()
    painting.set_tool(PaintTool.SMARTPAINT)
    assert (painting.state.brush.tool, choice.currentData()) == (Tool.EVIDENCE, "evidence")
    choice.setCurrentIndex(choice.findData("learned"))
    choice.activated.emit(choice.currentIndex())
    assert painting.state.brush.tool is Tool.LEARNED
    paint(opened, (2.0, 9.0, 12.0), painting.state.brush)
    qtbot.waitUntil(lambda: len(opened.editing.live.steps) == 1)
    step = opened.editing.live.steps[-1]
    assert step.stroke.brush.tool is Tool.LEARNED
    assert len(dict(step.parameters)["weights sha256"]) == 64
    painting.set_tool(PaintTool.SPHERE)
    assert (painting.state.brush.tool, choice.currentData()) == (Tool.SPHERE, "learned")
    painting.set_tool(PaintTool.SMARTPAINT)
    assert painting.state.brush.tool is Tool.LEARNED
    painting.set_brush(replace(painting.state.brush, tool=Tool.EVIDENCE))
    assert choice.currentData() == "evidence"


def test_taking_a_tool_gives_up_the_box(qtbot, opened, viewer):
    begin(qtbot, opened)
    click(opened, "refine_grow_box")
    opened.painting.set_tool(PaintTool.SPHERE)
    assert not opened.grow_box.is_waiting
    assert not viewer.scene.camera.mouse_pan
    assert not opened.findChild(object, "refine_grow_box").isChecked()


def test_a_candidate_of_page_predict_grows_into_a_mask_made_for_it(qtbot, opened):
    opened.show_page("Predict")
    click(opened, "predict_start")
    qtbot.waitUntil(lambda: opened.session.mask(Role.PREDICTION) is not None)
    click(opened, "predict_grow")
    assert opened.page == "Refine"
    qtbot.waitUntil(lambda: opened.editing.live is not None and opened.editing.live.position == 1)
    live = opened.editing.live
    assert live.steps[0].name == "grow (from the prediction)"
    # the image is flat there: the candidate stays
    assert live.labels.any()


def test_without_a_prediction_there_is_none_to_grow(qtbot, opened):
    begin(qtbot, opened)
    assert not opened.findChild(object, "refine_grow_prediction").isEnabled()


def test_a_mask_that_was_changed_meanwhile_is_not_grown_over(qtbot, refining):
    outline(refining, 2, 8, 12)
    refining.growing.grow()
    outline(refining, 5)
    after = refining.editing.live.labels.copy()
    qtbot.waitUntil(lambda: not refining.growing.is_busy, timeout=20_000)
    np.testing.assert_array_equal(refining.editing.live.labels, after)
    assert "was changed" in refining.header.message.text()


def test_growing_can_be_stopped_in_the_header(qtbot, refining):
    outline(refining, 2, 8, 12)
    before = refining.editing.live.labels.copy()
    refining.growing.grow()
    click(refining, "header_cancel")
    assert not refining.growing.is_busy
    qtbot.wait(50)
    np.testing.assert_array_equal(refining.editing.live.labels, before)


def test_slices_between_two_outlines_are_filled(qtbot, opened):
    opened.show_page("Refine")
    click(opened, "refine_from_nothing")
    qtbot.waitUntil(lambda: opened.editing.live is not None)
    outline(opened, 1)
    outline(opened, 3)
    opened.refine_page.more.fold.click()
    click(opened, "refine_interpolate")
    qtbot.waitUntil(lambda: not opened.growing.is_busy)
    # equal outlines: the slice between is the same
    np.testing.assert_array_equal(opened.editing.live.labels[2], opened.editing.live.labels[1])
    assert opened.editing.live.steps[2].name == "interpolate"


def test_the_largest_part_alone_is_kept(qtbot, refining):
    outline(refining, 0, 0, 1)
    refining.refine_page.more.fold.click()
    click(refining, "refine_keep_largest")
    qtbot.waitUntil(lambda: not refining.growing.is_busy)
    assert refining.editing.live.labels.sum() == 48


def test_an_amount_out_of_range_is_said(qtbot, refining):
    outline(refining, 1)
    refining.refine_page.more.fold.click()
    click(refining, "refine_interpolate")
    qtbot.waitUntil(lambda: "outline a second" in refining.header.message.text())


# ------------------------------------------------------------------------ protocol


def test_a_protocol_sets_phase_brush_and_structures_and_shows_its_checklist(tmp_path, refining):
    path = tmp_path / "study.json"
    content = {
        "name": "Study 1",
        "phase": 2,
        "brush": {"tool": "sphere", "radius_mm": 8},
        "structures": [{"value": 1, "name": "tumour"}, {"value": 2, "name": "node"}],
        "checklist": ["Is the rim inside?"],
        "time_limit_s": 600,
    }
    path.write_text(json.dumps(content))
    refining.protocols.load(path)
    assert refining.scene.phase == 2
    assert refining.painting.state.brush.radius_mm == 8.0
    assert "of 10:00" in refining.refine_page.protocol.text()
    assert "Is the rim inside?" in refining.refine_page.protocol.text()
    labels = refining.refine_page.tools.labels
    assert [labels.itemText(k) for k in range(labels.count())] == ["tumour", "node"]
    labels.activated.emit(1)
    assert refining.editing.live.label == 2
    assert refining.editing.live.locked == frozenset({1})


def test_a_protocol_of_the_brush_of_before_is_loaded_and_what_is_not_used_is_said(
    tmp_path, refining
):
    path = tmp_path / "study.json"
    brush = {"tool": "smartpaint", "radius_mm": 8, "tolerance": 3.0, "features": "post"}
    path.write_text(json.dumps({"name": "Study 1", "brush": brush}))
    refining.protocols.load(path)
    assert refining.painting.state.brush.radius_mm == 8.0
    said = refining.header.message.text()
    assert "Its tolerance, features belong to an earlier SmartPaint brush" in said


def test_a_protocol_that_cannot_be_read_is_said(tmp_path, refining):
    path = tmp_path / "study.json"
    path.write_text('{"name": "x", "colour": "red"}')
    refining.protocols.load(path)
    assert "colour" in refining.header.message.text()
    assert refining.protocols.protocol is None


# ----------------------------------------------------------------------------- keys


def test_a_key_of_the_user_takes_the_place_of_ours(qtbot, viewer, world):
    world.preferences = replace(world.preferences, keys=(("smartpaint", "Shift+Q"),))
    dock = MamamiaDock(viewer, world.services())
    qtbot.addWidget(dock)
    bound = {str(binding) for binding in viewer.keymap}
    assert "Shift+Q" in bound
    assert "Q" not in bound


@pytest.mark.parametrize(
    ("action", "key", "reason"),
    [
        ("smartpaint", "W", "already assigned to 'other_action'"),
        ("smartpaint", "E", "reserved by napari"),
        ("smartpaint", "Foo", "is not a key"),
        ("smartpaint", "", "is not a key"),
        ("fly", "Shift+Q", "does not exist"),
    ],
)
def test_a_key_that_cannot_be_taken_is_refused_with_the_reason(action, key, reason):
    table, refused = remapped([(action, key)])
    assert len(refused) == 1
    assert reason in refused[0]
    assert next(key for key in table if key.action == "smartpaint").shown == "Q"


def test_the_refused_key_is_said_in_the_header(qtbot, viewer, world):
    world.preferences = replace(world.preferences, keys=(("smartpaint", "W"),))
    dock = MamamiaDock(viewer, world.services())
    qtbot.addWidget(dock)
    assert "already assigned to" in dock.header.message.text()


def press(holder, shown):
    """Press a key that is bound on a layer or on the viewer."""
    next(bound for binding, bound in holder.keymap.items() if str(binding) == shown)(holder)


def test_undo_is_ours_as_long_as_the_mask_is_edited(refining):
    layer = refining.scene.layer(Role.REFINED)
    refining.painting.set_tool(PaintTool.SPHERE)
    assert {"Ctrl+Z", "Ctrl+Shift+Z", "Space"} <= {str(binding) for binding in layer.keymap}
    refining.painting.set_tool(PaintTool.NONE)
    assert {str(binding) for binding in layer.keymap} == {"Ctrl+Z", "Ctrl+Shift+Z"}
    refining.editing.discard()
    refining.session.close_case()
    assert not layer.keymap


@pytest.mark.parametrize("of_layer", [True, False])
def test_a_step_without_a_tool_is_undone_in_the_mask_step_only(refining, of_layer):
    live = refining.editing.live
    refining.show_page("Refine")
    refining.painting.set_tool(PaintTool.NONE)
    before = live.position
    whole = np.zeros(live.grid.shape, bool)
    assert refining.editing.mask.apply("write", Box.whole(live.grid.shape), whole)
    assert live.position == before + 1
    holder = refining.scene.layer(Role.REFINED) if of_layer else refining.viewer
    refining.show_page("Findings")
    press(holder, "Ctrl+Z")
    assert live.position == before + 1
    refining.show_page("Predict")
    press(holder, "Ctrl+Z")
    assert live.position == before
    press(holder, "Ctrl+Shift+Z")
    assert live.position == before + 1


def test_a_sphere_onto_another_lesion_says_that_it_stays(refining):
    refining.protocols.begin_lesion()
    painting = refining.painting
    painting.set_tool(PaintTool.SPHERE)
    labels = refining.editing.live.labels.copy()
    z, y, x = np.argwhere(labels == 1)[0]
    event = SimpleNamespace(position=None)
    painting._scene.view.place_at = lambda _position: (float(z), float(y), float(x))
    painting._press_tool(event, replace(painting.state.brush, radius_mm=0.5))
    refining.editing.mask.release()
    assert "Lesion 1" in refining.refine_page.tools.stroke_note.text()
    np.testing.assert_array_equal(refining.editing.live.labels == 1, labels == 1)
