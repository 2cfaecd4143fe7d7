"""What the kinetic segmenter does with small cases drawn by hand.

The bodies here are half an ellipsoid on a slab, with balls that enhance: enough to see that the
rules are kept, no evidence for patients.
"""

from dataclasses import fields
from itertools import permutations, product

import numpy as np
import pytest
from tests.halves import half_by_day
from tests.stepped import Stepped

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import Case, Phase
from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.progress import listening
from napari_mamamia.metrics.overlap import dice
from napari_mamamia.segmentation.kinetic.kinetic import KineticSegmenter
from napari_mamamia.segmentation.kinetic.kinetic_settings import (
    BreastSettings,
    KineticSettings,
    described,
)
from napari_mamamia.segmentation.model.segmenter import BoxPrompt, Click

SHAPE = (40, 60, 50)  # superior, posterior, left
STEP_MM = 2.0
TIMES_S = (0.0, 120.0, 240.0, 450.0)
COURSE = (0.0, 1.0, 0.95, 0.85)
LPS = np.diag([-STEP_MM, -STEP_MM, STEP_MM, 1.0])  # x to the left, y to posterior, z to superior
CHEST_ROW = 36  # the chest's surface; the breast stands 26 rows out from it
FIRST = (20, 26, 28)
SECOND = (12, 30, 18)
HEART = (20, 54, 34)


def ball(centre, radius, shape=SHAPE):
    away = np.indices(shape) - np.array(centre).reshape(3, 1, 1, 1)
    return (away**2).sum(axis=0) <= radius**2


def body():
    z, y, x = np.indices(SHAPE)
    breast = ((z - 20) / 17) ** 2 + ((y - CHEST_ROW) / 26) ** 2 + ((x - 25) / 21) ** 2 <= 1
    return breast | (y >= CHEST_ROW)


def signal_of(*balls, tissue_rise=5.0, noise=2.0, seed=3):
    """Return int16 phases: tissue of signal 100, and for each (mask, rise) what it adds."""
    rng = np.random.default_rng(seed)
    tissue = body()
    phases = []
    for course in COURSE:
        clean = np.where(tissue, 100 + tissue_rise * course, 0.0)
        for mask, rise in balls:
            clean[mask] = 100 + rise * course
        real, imaginary = rng.normal(0, noise, (2, *SHAPE))
        phases.append(np.hypot(clean + real, imaginary))
    return np.rint(phases).astype(np.int16)


def case_of(signal, times=TIMES_S, affine=LPS, case_id="HAND", loaded=True):
    times = times if times is not None else (None,) * len(signal)
    phases = tuple(
        Phase(k, time, loaded=loaded or k == 0) for k, time in enumerate(times[: len(signal)])
    )
    return Case(case_id, Grid(signal.shape[1:], affine), signal, phases)


def predict(case, prompt=None, **settings):
    return KineticSegmenter(KineticSettings(**settings)).predict(case, prompt)


def candidate_mask(candidate, shape=SHAPE):
    mask = np.zeros(shape, dtype=bool)
    mask[candidate.box.slices] = candidate.crop
    return mask


@pytest.fixture(scope="module")
def one_blob():
    truth = ball(FIRST, 4)
    return case_of(signal_of((truth, 150.0))), truth


@pytest.fixture(scope="module")
def two_blobs():
    first, second = ball(FIRST, 5), ball(SECOND, 3)
    return case_of(signal_of((first, 160.0), (second, 130.0))), first, second


# --- what is unsure


def test_two_blobs_alike_are_said_to_be_so_with_where_they_lie():
    first, second = ball(FIRST, 4), ball(SECOND, 4)
    prediction = predict(case_of(signal_of((first, 150.0), (second, 150.0))))
    assert prediction.unsure == "candidates 1 to 2 have similar scores"
    assert {one.box.centre for one in prediction.candidates} == {FIRST, SECOND}
    assert dict(prediction.parameters)["unsure"] == "candidates 1 to 2 have similar scores"


def test_one_clear_blob_and_a_click_are_not_called_unsure(one_blob, two_blobs):
    for case, prompt in ((one_blob[0], None), (two_blobs[0], Click(FIRST))):
        prediction = predict(case, prompt)
        assert prediction.unsure == ""
        assert dict(prediction.parameters)["unsure"] == "no"


# --- what is found


def test_a_blob_that_rises_is_found_and_outlined(one_blob):
    case, truth = one_blob
    prediction = predict(case)
    assert dice(prediction.mask.array, truth) > 0.8
    assert prediction.mask.grid is case.grid
    assert prediction.case_id == "HAND"
    assert prediction.seconds > 0


def test_the_mask_is_the_first_candidate_and_candidates_are_ranked(two_blobs):
    prediction = predict(two_blobs[0])
    candidates = prediction.candidates
    assert 2 <= len(candidates) <= 5
    assert [c.rank for c in candidates] == list(range(1, len(candidates) + 1))
    scores = [c.score for c in candidates]
    assert scores == sorted(scores, reverse=True)
    assert np.array_equal(candidate_mask(candidates[0]), prediction.mask.array)
    for candidate in candidates:
        assert candidate.crop.dtype == np.bool_
        assert candidate.crop.shape == candidate.box.shape
        assert candidate.volume_mm3 == pytest.approx(np.count_nonzero(candidate.crop) * 8.0)


def test_no_more_candidates_come_than_are_asked_for():
    balls = [(ball(c, 3), 150.0) for c in product((12, 20, 28), (28,), (16, 25, 34))]
    case = case_of(signal_of(*balls))
    assert len(predict(case).candidates) == 5
    assert len(predict(case, candidates=2).candidates) == 2


def test_both_of_two_blobs_are_among_the_candidates(two_blobs):
    case, first, second = two_blobs
    masks = [candidate_mask(c) for c in predict(case).candidates]
    assert dice(masks[0], first) > 0.8
    assert max(dice(mask, second) for mask in masks) > 0.7


def test_the_reasons_are_sentences_with_numbers_and_units(one_blob):
    said = " | ".join(predict(one_blob[0]).candidates[0].reasons)
    assert "% at 120 s" in said
    assert "ml" in said
    assert "mm long" in said
    assert "SER" in said


def test_the_reasons_give_the_enhancement_that_was_painted(one_blob):
    # the ball was painted to rise by 150 %; smoothing takes some of it away
    words = predict(one_blob[0]).candidates[0].reasons[0].split()
    assert 120 <= float(words[words.index("%") - 1]) <= 155


def test_parameters_hold_every_threshold_and_the_phases_used(one_blob):
    parameters = dict(predict(one_blob[0], enhancement_percent=60.0).parameters)
    assert parameters["enhancement_percent"] == 60.0
    assert parameters["chest_depth_mm"] == 15.0
    assert (parameters["early_phase"], parameters["late_phase"]) == (1, 3)
    assert (parameters["early_s"], parameters["late_s"]) == (120.0, 450.0)
    assert (parameters["early_gap_s"], parameters["late_gap_s"]) == (-30.0, 0.0)
    assert parameters["phases_chosen"] == "phase0-start"
    assert parameters["prompt"] == "none"


def test_the_segmenter_says_that_it_is_no_trained_model():
    segmenter = KineticSegmenter()
    assert segmenter.name == "kinetic"
    assert segmenter.note == "kinetic threshold, not a trained model"
    assert segmenter.title


def test_a_setting_out_of_its_range_is_refused_with_its_unit():
    with pytest.raises(ValueError, match="enhancement_percent to be from 10 to 300 %, but got 5"):
        KineticSettings(enhancement_percent=5.0)


@pytest.mark.parametrize(
    "info", half_by_day(described(KineticSettings())), ids=lambda info: info.name
)
def test_a_setting_at_either_end_of_its_range_still_gives_a_result(one_blob, info):
    of_breast = info.name in {field.name for field in fields(BreastSettings)}
    for value in (info.low, info.high):
        changed = {info.name: int(value) if info.name == "candidates" else value}
        if of_breast:
            changed = {"breast": BreastSettings(**changed)}
        prediction = predict(one_blob[0], **changed)
        assert dict(prediction.parameters)[info.name] == value
        assert np.isfinite([c.score for c in prediction.candidates]).all()


def test_the_dead_core_of_a_rim_lesion_belongs_to_the_mask():
    whole, core = ball(FIRST, 7), ball(FIRST, 4)
    case = case_of(signal_of((whole & ~core, 170.0)))
    mask = predict(case).mask.array
    assert mask[core].mean() > 0.95
    assert dice(mask, whole) > 0.8


def test_a_heart_deep_in_the_chest_is_not_ranked_first():
    truth, heart = ball(FIRST, 4), ball(HEART, 6)
    heart &= np.indices(SHAPE)[1] < SHAPE[1] - 1
    case = case_of(signal_of((truth, 120.0), (heart, 400.0)))
    prediction = predict(case)
    assert dice(prediction.mask.array, truth) > 0.8
    assert not prediction.mask.array[heart].any()
    # without the rules about the chest line it would win: they are what is tested here
    assert dice(predict(case, behind_percent=100.0, beyond_percent=100.0).mask.array, heart) > 0.8


def test_a_heart_that_is_shown_names_the_chest_line_in_its_reasons():
    truth, heart = ball(FIRST, 4), ball(HEART, 5)
    case = case_of(signal_of((truth, 120.0), (heart, 400.0)))
    first, second, *_ = predict(case, beyond_percent=100.0).candidates
    assert dice(candidate_mask(first), truth) > 0.8
    assert dice(candidate_mask(second), heart) > 0.8
    assert "100 % of the region is behind the chest line: heart or chest wall?" in second.reasons


def test_the_same_signal_in_another_number_type_gives_the_same_mask(one_blob):
    case, _ = one_blob
    expected = predict(case).mask.array
    for dtype in (np.uint16, np.int32, np.float32, np.float64):
        assert np.array_equal(predict(case_of(case.signal.astype(dtype))).mask.array, expected)


def test_a_signal_ten_times_larger_gives_the_same_mask(one_blob):
    case, _ = one_blob
    louder = predict(case_of(case.signal * np.int16(10))).mask.array
    assert dice(louder, predict(case).mask.array) > 0.99


def test_the_case_is_left_alone_and_a_second_run_agrees(one_blob):
    case, _ = one_blob
    before = case.signal.copy()
    first, second = predict(case), predict(case)
    assert np.array_equal(case.signal, before)
    assert np.array_equal(first.mask.array, second.mask.array)
    assert [c.score for c in first.candidates] == [c.score for c in second.candidates]


# --- prompts


def test_a_click_on_the_second_blob_returns_the_second_blob(two_blobs):
    case, _, second = two_blobs
    prediction = predict(case, Click(SECOND))
    assert dice(prediction.mask.array, second) > 0.7
    assert dict(prediction.parameters)["prompt"] == f"click at {SECOND}"


def test_a_click_on_the_first_blob_returns_the_first_blob(two_blobs):
    case, first, _ = two_blobs
    assert dice(predict(case, Click(FIRST)).mask.array, first) > 0.8


def test_a_box_restricts_the_search(two_blobs):
    case, first, second = two_blobs
    box = Box.around(second).grown((2, 2, 2), SHAPE)
    prediction = predict(case, BoxPrompt(box))
    assert dice(prediction.mask.array, second) > 0.7
    outside = np.ones(SHAPE, dtype=bool)
    outside[box.slices] = False
    for candidate in prediction.candidates:
        assert not (candidate_mask(candidate) & outside).any()
    assert not (prediction.mask.array & first).any()


def test_a_box_that_cuts_a_blob_keeps_the_mask_inside(one_blob):
    case, truth = one_blob
    start, stop = Box.around(truth).start, Box.around(truth).stop
    box = Box(start, (FIRST[0], *stop[1:]))
    mask = predict(case, BoxPrompt(box)).mask.array
    assert mask.any()
    assert not mask[FIRST[0] :].any()


def test_a_click_far_from_anything_that_enhances_gives_an_empty_mask_and_says_so(one_blob):
    prediction = predict(one_blob[0], Click((6, 50, 6)))
    assert not prediction.mask.array.any()
    assert prediction.candidates == ()
    assert any("near the click" in note for note in prediction.notes)


@pytest.mark.parametrize("voxel", [(40, 0, 0), (0, 60, 0), (0, 0, 50), (-1, 0, 0)])
def test_a_click_outside_the_image_is_an_error_that_names_it(one_blob, voxel):
    with pytest.raises(CaseError, match="inside HAND"):
        predict(one_blob[0], Click(voxel))


@pytest.mark.parametrize("box", [Box.empty(), Box((0, 0, 0), (41, 5, 5))])
def test_a_box_that_is_empty_or_outside_is_an_error(one_blob, box):
    with pytest.raises(CaseError, match="draw it inside the image"):
        predict(one_blob[0], BoxPrompt(box))


def test_a_prompt_at_the_very_corner_is_no_problem(one_blob):
    case, _ = one_blob
    for corner in ((0, 0, 0), (39, 59, 49)):
        predict(case, Click(corner))
    predict(case, BoxPrompt(Box((39, 59, 49), (40, 60, 50))))
    predict(case, BoxPrompt(Box.whole(SHAPE)))


# --- cases that are not as they should be


def test_nothing_that_enhances_gives_an_empty_mask_no_candidates_and_a_note():
    prediction = predict(case_of(signal_of(tissue_rise=5.0)))
    assert not prediction.mask.array.any()
    assert prediction.candidates == ()
    assert any("nothing in the breast enhances by 50 % or more" in n for n in prediction.notes)


def test_phases_that_are_all_equal_give_an_empty_mask():
    signal = np.repeat(signal_of()[:1], 4, axis=0)
    prediction = predict(case_of(signal))
    assert not prediction.mask.array.any()
    assert prediction.notes


def test_a_single_phase_is_an_error_that_says_how_many_are_needed(one_blob):
    with pytest.raises(CaseError, match=r"HAND to have at least 2 phases, but it has 1"):
        predict(case_of(one_blob[0].signal[:1]))


def test_a_case_that_is_still_opening_is_an_error(one_blob):
    with pytest.raises(CaseError, match="still opening"):
        predict(case_of(one_blob[0].signal, loaded=False))


@pytest.mark.parametrize("value", [0, 7])
@pytest.mark.parametrize("prompt", [None, Click(FIRST), BoxPrompt(Box((5, 5, 5), (20, 20, 20)))])
def test_a_constant_pre_contrast_phase_is_an_error_that_names_its_value(one_blob, value, prompt):
    signal = one_blob[0].signal.copy()
    signal[0] = value
    with pytest.raises(CaseError, match=f"phase 0 .* the value {value}"):
        predict(case_of(signal), prompt)


def test_a_case_of_zeros_is_an_error():
    with pytest.raises(CaseError, match="phase 0"):
        predict(case_of(np.zeros((4, *SHAPE), dtype=np.int16)))


def test_an_early_phase_of_zeros_gives_an_empty_mask_and_a_note_about_the_order(one_blob):
    signal = one_blob[0].signal.copy()
    signal[1] = 0
    prediction = predict(case_of(signal))
    assert not prediction.mask.array.any()
    assert any("wrong order" in note for note in prediction.notes)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_do_not_hide_the_blob(one_blob, bad):
    case, truth = one_blob
    rng = np.random.default_rng(1)
    signal = case.signal.astype(np.float32)
    signal[rng.random(signal.shape) < 0.002] = bad
    with np.errstate(all="raise"):
        prediction = predict(case_of(signal))
    assert dice(prediction.mask.array, truth) > 0.7


def test_nan_padding_around_the_image_does_not_hide_the_blob(one_blob):
    case, truth = one_blob
    signal = case.signal.astype(np.float32)
    signal[:, :3] = signal[:, -3:] = np.nan
    assert dice(predict(case_of(signal)).mask.array, truth) > 0.8


def test_two_phases_work_without_a_late_one_and_say_so(one_blob):
    case, truth = one_blob
    prediction = predict(case_of(case.signal[:2]))
    assert dice(prediction.mask.array, truth) > 0.8
    assert any("no late phase" in note for note in prediction.notes)
    assert dict(prediction.parameters)["late_phase"] is None
    assert not any("SER" in reason for reason in prediction.candidates[0].reasons)


@pytest.mark.parametrize(
    ("times", "words"),
    [
        (None, "no acquisition times are known"),
        ((0.0, None, 240.0, 450.0), "phase 1 is missing"),
        ((0.0, 240.0, 120.0, 450.0), "do not increase"),
    ],
)
def test_unusable_times_are_said_and_phases_are_taken_by_order(one_blob, times, words):
    case, truth = one_blob
    prediction = predict(case_of(case.signal, times))
    assert dice(prediction.mask.array, truth) > 0.8
    note = next(note for note in prediction.notes if "by phase order, times unknown" in note)
    assert words in note
    assert "post 1 was used as early and post 3 as late" in note
    assert prediction.candidates[0].reasons[0].endswith("in post 1")


def test_with_times_and_a_late_phase_there_is_nothing_to_note_about_phases(one_blob):
    assert not any("phase" in note for note in predict(one_blob[0]).notes)


def test_phases_in_reverse_give_the_note_about_their_order(one_blob):
    case, _ = one_blob
    signal = case.signal[[1, 0]]
    prediction = predict(case_of(signal, (0.0, 120.0)))
    assert any("phases may be in the wrong order" in note for note in prediction.notes)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_a_single_slice_of_any_plane_works(one_blob, axis):
    case, truth = one_blob
    keep = slice(FIRST[axis], FIRST[axis] + 1)
    index = tuple(keep if a == axis else slice(None) for a in range(3))
    signal = np.ascontiguousarray(case.signal[(slice(None), *index)])
    prediction = predict(case_of(signal))
    assert prediction.mask.array.shape == signal.shape[1:]
    if axis != 1:  # a coronal slice shows no air before the breast
        assert dice(prediction.mask.array, truth[index]) > 0.7


@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 1, 8), (2, 3, 1)])
def test_volumes_of_a_few_voxels_end_in_a_result(shape):
    signal = np.random.default_rng(0).integers(1, 90, (4, *shape)).astype(np.int16)
    try:
        prediction = predict(case_of(signal))
    except CaseError as error:
        assert "phase 0" in str(error)  # noqa: PT017 - a single voxel is a constant phase
    else:
        assert prediction.mask.array.shape == shape


def test_a_volume_without_air_is_searched_as_a_whole_and_says_so():
    truth = ball(FIRST, 4)
    signal = signal_of((truth, 150.0))
    signal[:, ~body()] += 100
    prediction = predict(case_of(signal))
    assert dice(prediction.mask.array, truth) > 0.7
    assert any("no air was detected" in note for note in prediction.notes)


# --- orientation

ALL_48 = [(p, f) for p in permutations(range(3)) for f in product((False, True), repeat=3)]
SOME = ALL_48[::5] + ALL_48[-1:]


def turned(array, order, flips):
    """Return ``(..., z, y, x)`` with its last three axes in `order`, some of them reversed."""
    lead = array.ndim - 3
    moved = array.transpose(*range(lead), *(lead + axis for axis in order))
    return moved[(..., *(slice(None, None, -1 if flip else 1) for flip in flips))]


def turned_affine(affine, shape, order, flips):
    """Return the affine of `turned`, from where its voxel 0 and its steps lie in the patient."""
    steps = affine[:3, 2::-1]  # columns for z, y, x
    origin = affine[:3, 3].copy()
    columns = []
    for axis, flip in zip(order, flips, strict=True):
        if flip:
            origin += steps[:, axis] * (shape[axis] - 1)
        columns.append(-steps[:, axis] if flip else steps[:, axis])
    out = np.eye(4)
    out[:3, :3] = np.stack(columns, axis=1)[:, ::-1]
    out[:3, 3] = origin
    return out


@pytest.fixture(scope="module")
def uneven():
    """Return a case with a heart and three different spacings, found without and with a click."""
    truth = ball(FIRST, 5)
    affine = np.diag([-1.5, -1.8, 2.4, 1.0])
    balls = ((truth, 150.0), (ball(SECOND, 3), 120.0), (ball(HEART, 5), 400.0))
    case = case_of(signal_of(*balls), affine=affine)
    return case, predict(case), predict(case, Click(SECOND))


@pytest.mark.parametrize(("order", "flips"), SOME)
def test_the_mask_is_the_same_voxels_whatever_the_order_of_axes(uneven, order, flips):
    case, expected, clicked = uneven
    signal = np.ascontiguousarray(turned(case.signal, order, flips))
    affine = turned_affine(case.grid.affine, SHAPE, order, flips)
    other = case_of(signal, affine=affine)
    middle = np.zeros(SHAPE, dtype=bool)
    middle[SECOND] = True
    (voxel,) = np.argwhere(turned(middle, order, flips))
    np.testing.assert_allclose(other.grid.to_world_mm(voxel), case.grid.to_world_mm(SECOND))

    prediction = predict(other)
    assert np.array_equal(prediction.mask.array, turned(expected.mask.array, order, flips))
    assert len(prediction.candidates) == len(expected.candidates)
    for got, there in zip(prediction.candidates, expected.candidates, strict=True):
        shown = candidate_mask(got, other.grid.shape)
        assert np.array_equal(shown, turned(candidate_mask(there), order, flips))
        assert got.reasons == there.reasons

    at_click = predict(other, Click(tuple(int(i) for i in voxel)))
    assert np.array_equal(at_click.mask.array, turned(clicked.mask.array, order, flips))


def test_an_oblique_affine_is_no_problem(one_blob):
    case, truth = one_blob
    angle = np.deg2rad(20)
    turn = np.eye(4)
    turn[:2, :2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    prediction = predict(case_of(case.signal, affine=turn @ LPS))
    assert dice(prediction.mask.array, truth) > 0.8


# --- the job


@pytest.mark.parametrize("prompt", [None, Click(FIRST), BoxPrompt(Box((10, 15, 15), (30, 40, 40)))])
def test_progress_rises_to_its_total_and_says_what_happens(one_blob, prompt):
    seen = []
    with listening(seen.append):
        KineticSegmenter().predict(one_blob[0], prompt)
    fractions = [progress.fraction for progress in seen]
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1
    assert len({progress.total for progress in seen}) == 1
    assert all(progress.text for progress in seen)


def test_the_job_can_be_closed_at_any_step(one_blob):
    segmenter = KineticSegmenter()
    steps = len(list(Stepped(segmenter.predict, one_blob[0])))
    assert steps > 10
    for stop in range(1, steps, max(steps // 12, 1)):
        job = Stepped(segmenter.predict, one_blob[0])
        for _ in range(stop):
            next(job)
        job.close()
        assert list(job) == []
