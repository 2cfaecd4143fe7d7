"""The hanging on a viewer without a window: steps, sides, letters, and the own view given back."""

from dataclasses import replace

import numpy as np
import pytest

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import LabelMap
from napari_mamamia.services.case.hanging import HangingStep, read_hanging_settings
from napari_mamamia.services.case.prior import PriorExam
from napari_mamamia.services.case.show_case import CaseMasks, OpenMask
from napari_mamamia.widgets.base.layers import Role, array_of, find_layer
from napari_mamamia.widgets.viewer.pane_sides import fit_half
from napari_mamamia.widgets.viewer.planes import Layout

AXIAL = np.diag([-12.0, 2.0, 13.0, 1.0])
"""24 columns of 12 mm to the patient's left: 288 mm hold two breasts."""
SAGITTAL = np.diag([-12.0, 2.0, 3.0, 1.0])
MIP, BOTH, SIDES, LATE, PRIOR = HangingStep


def press(viewer, key):
    next(function for binding, function in viewer.keymap.items() if str(binding) == key)(viewer)


def letters(model):
    names = ("top", "bottom", "left", "right")
    return "".join(model.canvas.overlays[f"mamamia_{name}"].text for name in names)


def corner(model, name):
    return model.canvas.overlays[f"mamamia_{name}"].text


def go(qtbot, dock, step):
    dock.hanging.show(step)
    qtbot.waitUntil(lambda: not dock.planes.is_building)
    assert dock.hanging.step is step


def picture(model, role):
    """Return the 2-D picture of a layer as the camera shows it, left to right."""
    raw = np.asarray(find_layer(model.layers, role)._slice.image.raw)
    down, across = (str(way) for way in model.scene.camera.orientation2d)
    return raw[:: -1 if down == "up" else 1, :: -1 if across == "left" else 1]


@pytest.fixture
def both(world, request):
    """A case of both breasts in axial slices, open; its last phase is at 360 s."""
    world.affine = AXIAL
    dock = request.getfixturevalue("opened")
    times = zip(dock.session.case.phases, (0.0, 90.0, 360.0), strict=True)
    phases = tuple(replace(phase, time_s=time_s) for phase, time_s in times)
    dock.session.set_loaded(replace(dock.session.case, phases=phases))
    return dock


def test_the_keys_walk_the_steps_and_come_back_to_the_own_view(qtbot, both, viewer):
    seen = []
    for key in ("PageDown",) * 5 + ("PageUp",) * 5:
        press(viewer, key)
        qtbot.waitUntil(lambda: not both.planes.is_building)
        seen.append(both.hanging.step)
    assert seen == [MIP, BOTH, SIDES, LATE, LATE, SIDES, BOTH, MIP, None, None]
    assert both.hanging.bar.text.text() == "Hanging: your own view"
    assert both.planes.panes == []


def test_the_first_step_projects_the_first_subtraction_and_takes_no_brush(qtbot, both, viewer):
    both.scene.go_to_phase(2)
    go(qtbot, both, MIP)
    qtbot.waitUntil(lambda: both.scene.layer(Role.PROJECTION) is not None)
    assert corner(viewer, "phase") == "MIP · post 1 − pre"
    signal = both.session.case.signal.astype(int)
    mip = (signal[1] - signal[0]).clip(0).max(axis=0)
    np.testing.assert_array_equal(picture(viewer, Role.PROJECTION), mip[::-1])  # rows run to A
    assert "many slices at once" in both.tools.aim.problem_in(viewer)


def test_axial_stands_over_the_same_distance_from_the_midline_on_both_sides(qtbot, both, viewer):
    both.scene.view.go_to((2, 5, 3))
    go(qtbot, both, BOTH)
    qtbot.waitUntil(lambda: both.scene.layer(Role.SUBTRACTION) is not None)
    right, left = both.planes.panes
    assert corner(right.model, "plane") == "sagittal, right"
    assert corner(left.model, "plane") == "sagittal, left"
    assert letters(viewer) == "APRL"
    assert {letters(right.model), letters(left.model)} == {"SIAP"}
    # columns run to the left: 3 is 3 from the right edge, 20 is 3 from the left one
    assert (right.model.dims.current_step[3], left.model.dims.current_step[3]) == (3, 20)
    both.scene.view.go_to((2, 5, 12))
    go(qtbot, both, BOTH)
    right, left = both.planes.panes
    # 6 mm off the midline is the breastbone: the middle of a breast is shown, in the same slice
    assert both.planes.links.place == (2, 5, 6)
    # a step in the left breast's view takes the cross-hair there, and the right one's follows
    left.model.dims.set_current_step(3, 15)
    assert both.planes.links.place == (2, 5, 15)
    assert (right.model.dims.current_step[3], left.model.dims.current_step[3]) == (8, 15)


def test_right_and_left_are_mirrored_pre_over_post_and_the_letters_follow(qtbot, both, viewer):
    go(qtbot, both, SIDES)
    below, pre, post = both.planes.panes
    assert [corner(m, "phase") for m in (viewer, below.model)] == [
        "pre · 0 s",
        "post 1 · 90 s",
    ]
    assert corner(pre.model, "phase") == "pre · 0 s"
    assert corner(post.model, "phase") == "post 1 · 90 s"
    assert [below.kind.is_below, pre.kind.is_below, post.kind.is_below] == [True, False, False]
    assert corner(viewer, "plane") == "axial, right"
    assert corner(below.model, "plane") == "axial, right"
    assert corner(post.model, "plane") == "axial, left, mirrored"
    # from lateral to medial in all of them: the patient's left is on the left of the mirrored ones
    assert [letters(m) for m in (viewer, below.model, pre.model, post.model)] == [
        "APRL",
        "APRL",
        "APLR",
        "APLR",
    ]
    raw = both.session.case.signal[1][both.planes.links.place[0]]
    np.testing.assert_array_equal(picture(below.model, Role.PHASE), raw[::-1])
    np.testing.assert_array_equal(picture(post.model, Role.PHASE), raw[::-1, ::-1])


def test_the_halves_are_centred_on_their_breasts_and_move_together(qtbot, both, viewer):
    go(qtbot, both, SIDES)
    both.planes.links.fit_now()
    below, _pre, post = both.planes.panes
    # 24 columns of 12 mm from -6 to 282 mm: 144 mm to each side of 138 mm fill .95 of a canvas,
    # whose inner edge is there
    assert viewer.scene.camera.center[-1] == pytest.approx(138 - 72 / 0.95)
    assert post.model.scene.camera.center[-1] == pytest.approx(138 + 72 / 0.95)
    viewer.scene.camera.center = (0, 10.0, 90.0)
    viewer.scene.camera.zoom *= 2
    assert below.model.scene.camera.center[-2:] == pytest.approx((10.0, 90.0))
    assert post.model.scene.camera.center[-2:] == pytest.approx((10.0, 186.0))
    assert post.model.scene.camera.zoom == pytest.approx(2 * post.whole_zoom)
    post.model.scene.camera.center = (0, 12.0, 200.0)
    assert viewer.scene.camera.center[-2:] == pytest.approx((12.0, 76.0))
    fit_half(viewer, both.scene.grid, "left")
    assert viewer.scene.camera.center[-1] == pytest.approx(138 + 72 / 0.95)


def test_a_breast_fills_its_view_and_the_other_one_is_out_of_it(qtbot, both, viewer):
    # slices 1 to 4, rows 2 to 11, columns 3 to 11 from the right: 20 x 108 mm of 40 x 144 mm
    both.hanging._services = both.hanging._services.replacing(
        find_breast_box=lambda _case: Box((1, 2, 3), (5, 12, 12))
    )
    go(qtbot, both, SIDES)
    qtbot.waitUntil(lambda: both.scene.view.breast is not None)
    for canvas in [viewer.canvas, *(pane.model.canvas for pane in both.planes.panes)]:
        canvas.size = (100, 432)
    both.planes.panes[2].model.canvas.size = (100, 216)
    both.planes.links.fit_now()
    below, pre, post = both.planes.panes
    views = [viewer, below.model, pre.model, post.model]
    # the narrowest view sets the scale of all: 108 mm on 216 pixels, 5 % left free
    assert [m.scene.camera.zoom for m in views] == pytest.approx([0.95 * 2] * 4)
    # rows are shown with A (the last ones) on top: rows 8 to 17 as displayed, 15 to 35 mm
    assert viewer.scene.camera.center[-2] == pytest.approx(25.0)
    # the midline (138 mm) is the inner edge of each view: 432 px are 227.4 mm, 216 px 113.7 mm
    assert viewer.scene.camera.center[-1] == pytest.approx(138 - 227.37 / 2, abs=0.01)
    assert pre.model.scene.camera.center[-1] == pytest.approx(138 + 227.37 / 2, abs=0.01)


def test_a_sagittal_view_of_a_breast_is_fitted_to_it_too(qtbot, both):
    both.hanging._services = both.hanging._services.replacing(
        find_breast_box=lambda _case: Box((1, 2, 3), (5, 12, 12))
    )
    go(qtbot, both, BOTH)
    qtbot.waitUntil(lambda: both.scene.view.breast is not None)
    for pane in both.planes.panes:
        pane.model.canvas.size = (520, 100)
    both.planes.links.fit_now()
    # 20 mm of rows on 100 pixels; slices 1 to 4 of 13 mm, S on top: 2 to 5 from there on, 26 to 78
    for pane in both.planes.panes:
        assert pane.model.scene.camera.zoom == pytest.approx(0.95 * 5)
        assert sorted(pane.model.scene.camera.center[-2:]) == pytest.approx([25.0, 32.5])


def test_the_next_case_is_fitted_to_its_own_breast(qtbot, both):
    boxes = {"A_1": Box((1, 2, 3), (5, 12, 12)), "A_2": Box((0, 4, 5), (6, 14, 14))}
    both.hanging._services = both.hanging._services.replacing(
        find_breast_box=lambda case: boxes[case.case_id]
    )
    go(qtbot, both, SIDES)
    qtbot.waitUntil(lambda: both.scene.view.breast == boxes["A_1"])
    both.cases_flow.open_case("A_2")
    qtbot.waitUntil(lambda: both.session.case_id == "A_2" and both.session.case.is_loaded)
    go(qtbot, both, SIDES)
    qtbot.waitUntil(lambda: both.scene.view.breast == boxes["A_2"])


def test_breasts_that_cannot_be_looked_for_leave_the_halves(qtbot, both, viewer):
    def fail(_case):
        raise ValueError("odd")

    both.hanging._services = both.hanging._services.replacing(find_breast_box=fail)
    go(qtbot, both, SIDES)
    qtbot.waitUntil(lambda: not both.jobs.is_running("breasts"))
    both.planes.links.fit_now()
    assert viewer.scene.camera.center[-1] == pytest.approx(138 - 72 / 0.95)
    assert both.hanging.step is SIDES


def test_no_brush_is_taken_to_a_mirrored_view(qtbot, both):
    taken = []
    both.planes.links.brushes[:] = [taken.append]
    go(qtbot, both, SIDES)
    below, pre, post = (pane.model for pane in both.planes.panes)
    assert taken == [below]
    assert pre not in taken
    assert post not in taken


def test_a_sagittal_case_of_both_breasts_shows_the_slice_as_far_on_the_other_side(
    qtbot, world, request
):
    world.affine = SAGITTAL
    dock = request.getfixturevalue("opened")
    dock.scene.view.go_to((2, 5, 4))
    go(qtbot, dock, SIDES)
    below, _pre, post = dock.planes.panes
    # the acquisition's slices are columns x, 0 to 23 from right to left
    assert dock.viewer.dims.current_step[1] == below.model.dims.current_step[1] == 4
    assert post.model.dims.current_step[1] == 19
    assert corner(post.model, "plane") == "sagittal, left"
    assert letters(post.model) == letters(dock.viewer) == "SIAP"
    go(qtbot, dock, BOTH)
    assert [corner(pane.model, "plane") for pane in dock.planes.panes] == [
        "axial",
        "sagittal, left",
    ]


def test_the_late_step_lays_the_map_over_the_late_phase_beside_it(qtbot, both, viewer):
    go(qtbot, both, LATE)
    qtbot.waitUntil(lambda: both.scene.layer(Role.MAP) is not None)
    assert corner(viewer, "phase") == "post 2 · 180 s"
    (beside,) = both.planes.panes
    assert corner(beside.model, "phase") == "post 2 · 180 s"
    assert find_layer(beside.model.layers, Role.MAP) is None
    go(qtbot, both, SIDES)
    assert both.scene.layer(Role.MAP) is None


@pytest.mark.parametrize("image", ["phase", "subtraction"])
def test_leaving_gives_the_own_view_back(qtbot, both, viewer, image):
    both.scene.go_to_phase(2)
    both.view_flow.choose_image(image)
    shown = Role.PHASE if image == "phase" else Role.SUBTRACTION
    qtbot.waitUntil(lambda: both.scene.layer(shown) is not None)
    qtbot.waitUntil(lambda: corner(viewer, "phase").startswith("post 2"))
    both.scene.layer(Role.PHASE).contrast_limits = (7.0, 77.0)
    both.scene.layer(shown).contrast_limits = (3.0, 33.0)
    viewer.scene.camera.zoom *= 3
    viewer.scene.camera.center = (0, 8.0, 40.0)
    both.planes.set_second_phase(2)

    def facts():
        layers = [(layer.name, layer.visible) for layer in viewer.layers]
        camera = viewer.scene.camera
        grey = tuple(both.scene.layer(shown).contrast_limits)
        texts = [corner(viewer, name) for name in ("phase", "plane", "left")]
        return layers, camera.zoom, tuple(camera.center), grey, texts, viewer.dims.current_step

    before = facts()
    for step in (MIP, BOTH, SIDES, LATE):
        go(qtbot, both, step)
    both.scene.layer(Role.PHASE).contrast_limits = (0.0, 1.0)
    both.hanging.leave()
    qtbot.waitUntil(lambda: both.scene.layer(shown) is not None)
    qtbot.waitUntil(lambda: both.scene.layer(Role.MAP) is None)
    both.planes.links.fit_now()
    qtbot.waitUntil(lambda: facts() == before)
    assert both.planes.wanted is Layout.ONE


def test_a_layout_that_the_reader_chooses_ends_the_hanging(qtbot, both, viewer, world):
    go(qtbot, both, SIDES)
    press(viewer, "J")
    qtbot.waitUntil(lambda: len(both.planes.panes) == 2 and not both.planes.is_building)
    assert both.hanging.step is None
    assert [pane.kind.side for pane in both.planes.panes] == ["", ""]
    assert both.scene.view.half == ""
    assert dict(world.preferences.view)["layout"] == Layout.PLANES


def test_the_next_case_begins_with_the_first_step_and_keeps_no_step_it_cannot_have(
    qtbot, both, world
):
    go(qtbot, both, SIDES)
    both.cases_flow.open_neighbour(1)
    qtbot.waitUntil(lambda: both.session.case_id == "A_2" and both.hanging.step is MIP)
    qtbot.waitUntil(lambda: both.scene.layer(Role.PROJECTION) is not None)
    go(qtbot, both, SIDES)
    world.affine = np.diag([-1.5, 2.0, 3.0, 1.0])
    both.cases_flow.open_neighbour(1)
    qtbot.waitUntil(lambda: both.session.case_id == "B_1" and both.hanging.step is MIP)
    assert "only one breast is imaged" in both.hanging.bar.text.toolTip()
    assert both.scene.view.half == ""


def test_steps_and_grey_are_kept_for_each_reader(qtbot, both, world):
    both.hanging.bar.chosen.emit(BOTH, False)
    go(qtbot, both, SIDES)
    both.contrasting.choose("dark tissue")
    kept = dict(world.preferences.view)["hanging Ana"]
    assert read_hanging_settings(kept).unwanted == {BOTH}
    assert dict(read_hanging_settings(kept).grey) == {SIDES: "dark tissue"}
    both.session.set_reader("Ben")
    assert both.hanging.plan().steps == (MIP, BOTH, SIDES, LATE)
    both.session.set_reader("Ana")
    assert both.hanging.plan().steps == (MIP, SIDES, LATE)
    del qtbot


# ------------------------------------------------------------------------- prior


FRAME = "2.25.7"


def give_prior(dock, other, why="412 days before", masks=(), problem="", frame=FRAME):
    """Let the clinical table name an exam, whose file holds `other`; both name a frame."""
    services = dock.hanging._services
    dock.session.set_loaded(replace(dock.session.case, frame_uid=FRAME))
    choice = type("Choice", (), {"case_id": "A_2", "why": why})()
    exam = PriorExam(
        replace(other, frame_uid=frame), CaseMasks(tuple(masks)), (0.0, 100.0), problem
    )
    dock.hanging._services = services.replacing(
        find_priors=lambda _records, _case_id: (choice,),
        read_prior=lambda _case, _here, _there: exam,
    )


def moved(new_case, shift_mm, spacing=(-12.0, 2.0, 13.0)):
    affine = np.diag([*spacing, 1.0])
    affine[:3, 3] = shift_mm
    case = new_case("A_2", affine)
    return replace(case, signal=case.signal + np.int16(5))


def test_a_prior_stands_at_the_same_place_in_mm_whatever_its_slices(qtbot, both, new_case):
    give_prior(both, moved(new_case, (0, 0, -13.0), (-12.0, 2.0, 6.5)))
    both.scene.view.go_to((1, 5, 3))
    both.hanging.show_prior()
    qtbot.waitUntil(lambda: len(both.planes.panes) == 1)
    qtbot.waitUntil(lambda: not both.planes.is_building)
    (prior,) = both.planes.panes
    # z = 13 mm is slice (13 + 13) / 6.5 = 4 there
    assert prior._own_place == (4, 5, 3)
    assert letters(prior.model) == letters(both.viewer) == "APRL"
    assert corner(prior.model, "plane") == "axial, prior A_2\n412 days before"
    assert prior.model not in both.planes.views()
    both.planes.links.go_to((0, 5, 3))
    assert prior._own_place == (2, 5, 3)
    # slice 4 there is at 13 mm, which is 1 here (its slices are sagittal: another axis)
    prior.model.dims.set_current_step(1 + prior.slice_axis, 1)
    assert both.planes.links.place == (1, 5, 3)
    assert prior.model.scene.camera.zoom == pytest.approx(both.viewer.scene.camera.zoom)
    both.planes.links.go_to((5, 5, 3))  # 65 mm: slice 12 of 6
    assert "outside this exam" in corner(prior.model, "plane")


@pytest.mark.parametrize("frame", ["", "2.25.8"])
def test_exams_without_a_common_frame_are_linked_by_hand_where_the_reader_says(
    qtbot, both, new_case, frame
):
    give_prior(both, moved(new_case, (0, 0, 0)), frame=frame)
    both.scene.view.go_to((2, 5, 3))
    both.hanging.show_prior()
    qtbot.waitUntil(lambda: len(both.planes.panes) == 1 and not both.planes.is_building)
    (prior,) = both.planes.panes
    bar = both.hanging.bar
    qtbot.waitUntil(lambda: bar.note.text() == "no common frame; link by hand")
    assert "do not share a frame of reference" in bar.note.toolTip()
    assert "not linked" in corner(prior.model, "plane")
    assert prior._own_place == (2, 5, 3)  # it begins where the scanners' coordinates agree
    assert bar.link.text() == "Link here"
    both.planes.links.go_to((1, 5, 3))
    assert prior._own_place == (2, 5, 3)
    prior.model.dims.set_current_step(1, 4)
    assert both.planes.links.place == (1, 5, 3)  # alone
    bar.link.click()
    assert bar.note.text() == "linked by hand"
    assert "not linked" not in corner(prior.model, "plane")
    assert prior.link.offset_mm == pytest.approx((0, 0, 39.0))
    both.planes.links.go_to((2, 5, 3))
    assert prior._own_place == (5, 5, 3)
    go(qtbot, both, MIP)
    go(qtbot, both, PRIOR)  # the reader's link stays
    assert bar.note.text() == "linked by hand"


def test_exams_of_one_frame_are_linked_and_can_be_moved_alone(qtbot, both, new_case):
    give_prior(both, moved(new_case, (0, 0, 0)))
    both.scene.view.go_to((2, 5, 3))
    both.hanging.show_prior()
    qtbot.waitUntil(lambda: len(both.planes.panes) == 1 and not both.planes.is_building)
    (prior,) = both.planes.panes
    bar = both.hanging.bar
    qtbot.waitUntil(lambda: bar.note.text() == "linked in mm")
    both.planes.links.go_to((3, 5, 3))
    assert prior._own_place == (3, 5, 3)
    bar.link.click()
    assert bar.note.text() == "scroll or click in each exam, then link"
    both.planes.links.go_to((1, 5, 3))
    assert prior._own_place == (3, 5, 3)


def test_the_priors_masks_are_shown_hidden_and_outlined_with_the_cases(
    qtbot, both, viewer, new_case, new_mask
):
    other = moved(new_case, (0, 0, 0))
    buffer = new_mask(other.grid)
    labels = LabelMap(other.grid, Box.whole(buffer.shape), buffer)
    give_prior(both, other, masks=[OpenMask("refined", "Ana", labels, buffer)])
    both.hanging.show_prior()
    qtbot.waitUntil(lambda: len(both.planes.panes) == 1 and not both.planes.is_building)
    (prior,) = both.planes.panes
    mask = find_layer(prior.model.layers, Role.REFINED)
    np.testing.assert_array_equal(array_of(mask), other.grid.display_frame().to_display(buffer))
    both.scene.set_masks_hidden(True)
    assert not mask.visible
    both.scene.set_masks_hidden(False)
    assert mask.visible
    contour = mask.contour
    both.scene.toggle_outline()
    assert mask.contour != contour
    go(qtbot, both, MIP)
    both.scene.set_masks_hidden(True)
    assert not mask.visible
    both.scene.set_masks_hidden(False)
    both.session.set_case(None, None, [])
    assert both.scene.companions == []


def test_an_exam_of_the_other_breast_is_refused_and_the_view_stays(qtbot, both, new_case):
    affine = np.diag([-1.5, 2.0, 3.0, 1.0])
    affine[0, 3] = -90.0
    why = "the exam shows the left breast, but the case shows the right breast"
    give_prior(both, new_case("A_2", affine), problem=why)
    said = []
    both.notifier.said.connect(lambda _level, text: said.append(text))
    both.hanging.show_prior()
    qtbot.waitUntil(lambda: any("is not a prior of A_1" in text for text in said))
    assert both.hanging.step is None
    assert both.hanging.prior is None
    assert both.session.case_id == "A_1"


def test_the_prior_of_one_patient_is_never_beside_the_next(qtbot, both, new_case):
    give_prior(both, moved(new_case, (0, 0, 0)))
    both.hanging.show_prior()
    qtbot.waitUntil(lambda: len(both.planes.panes) == 1 and not both.planes.is_building)
    both.cases_flow.open_neighbour(1)
    qtbot.waitUntil(lambda: both.session.case_id == "A_2")
    assert not any(pane.kind.is_prior for pane in both.planes.panes)
    assert both.hanging.prior is None
    assert array_of(both.scene.layer(Role.PHASE)).shape[0] == 3


def test_a_step_in_a_prior_beyond_the_case_is_the_cases_first_or_last_slice(qtbot, both, new_case):
    count = both.scene.grid.shape[0]
    # slices of 13 mm as the case's, of which the first lies two slices before, or after, its first
    for shift_mm, steps in (
        (-26.0, {0: 0, 1: 0, 2: 0, 3: 1}),
        (26.0, {5: count - 1, 4: count - 1}),
    ):
        give_prior(both, moved(new_case, (0, 0, shift_mm)))
        both.scene.view.go_to((2, 5, 3))
        both.hanging.load_prior("A_2")
        qtbot.waitUntil(lambda: len(both.planes.panes) == 1 and not both.planes.is_building)
        (prior,) = both.planes.panes
        for step, slice_index in steps.items():
            prior.model.dims.set_current_step(1 + prior.slice_axis, step)
            assert both.planes.links.place[0] == slice_index
        for slice_index in (0, count - 1):
            both.planes.links.go_to((slice_index, 5, 3))
            there = slice_index - shift_mm / 13
            assert prior._own_place[0] == min(max(there, 0), count - 1)
        both.hanging.leave()


def test_the_next_case_gets_the_whole_slice_not_the_zoom_of_the_case_before(qtbot, both, viewer):
    fitted = viewer.scene.camera.zoom
    viewer.scene.camera.zoom *= 3
    go(qtbot, both, MIP)
    both.cases_flow.open_neighbour(1)
    qtbot.waitUntil(lambda: both.session.case_id == "A_2" and both.hanging.step is MIP)
    qtbot.waitUntil(lambda: both.session.case.is_loaded and both.jobs.wait(0))
    both.hanging.leave()
    both.planes.links.fit_now()
    assert viewer.scene.camera.zoom == pytest.approx(fitted)
