"""Prompts, brush and undo on one mask, with answers that the real nnInteractive gave."""

import numpy as np
import pytest
from tests.features.prompt.prompt_story import (
    BOX,
    OUTLINE,
    SCRIBBLE,
    SHAPE,
    START,
    RecordedEngine,
    ask,
    kinetic_labels,
    new_session,
    small_case,
    started,
    tell,
)

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import LabelMap
from napari_mamamia.core.edits import MODEL, Action, Brush, Tool
from napari_mamamia.core.errors import CaseError
from napari_mamamia.features.prompt.segmentation.engine import (
    EngineInfo,
    EngineLostError,
    Region,
)
from napari_mamamia.features.prompt.segmentation.prompts import Abilities, Prompt, PromptKind
from napari_mamamia.features.prompt.services.channels import (
    ChannelImage,
    choose_channel,
    draw_channels,
    list_channels,
)
from napari_mamamia.features.prompt.services.session import History, PromptSession, run_prompt


class HandEngine:
    """Does what the weights set by hand do, for boxes, outlines and scribbles."""

    def __init__(self, shape=SHAPE) -> None:
        self.is_open = False
        self.asked: list[str] = []
        self.mask = np.zeros(shape, np.bool_)
        self.before = self.mask.copy()
        self.is_lost = self.is_forgetful = False
        self.knows: list[str] = []

    def connect(self) -> EngineInfo:
        self.asked.append("connect")
        abilities = Abilities(frozenset(PromptKind), takes_3d_boxes=True)
        return EngineInfo("Hand 1.0", "sha256:1", "Licence X", abilities, True)

    def set_image(self, image, spacing_mm=(1.0, 1.0, 1.0)) -> None:
        self.asked.append("image")
        self.is_open = True

    def start_from(self, region: Region) -> None:
        self.asked.append("start")
        self.knows = ["start"]
        self.mask[...] = False
        self.mask[region.box.slices] = region.mask

    def prompt(self, placed) -> Region:
        if self.is_lost:
            self.is_open = self.is_lost = False
            raise EngineLostError("the server was killed")
        self.asked.append("prompt")
        self.knows.append(f"{placed.prompt.text} {placed.box.start}")
        if self.is_forgetful and placed.prompt.kind == "box":
            return Region(Box.empty(), np.zeros((0, 0, 0), np.bool_))
        self.before = self.mask.copy()
        voxels = True if placed.voxels is None else placed.voxels > 0
        crop = self.mask[placed.box.slices]
        crop[...] = crop | voxels if placed.prompt.include else crop & ~voxels
        return Region(Box.whole(self.mask.shape), self.mask.copy())

    def undo(self, checksum: int) -> bool:
        self.asked.append("undo")
        self.knows = self.knows[:-1]
        self.mask = self.before.copy()
        return True

    def close(self) -> None:
        self.is_open = False


def hand_session(labels=None) -> PromptSession:
    engine = HandEngine()
    session = started(engine, engine.connect(), new_session(labels))
    engine.set_image(session.image.array)
    return session


def filled(*boxes) -> np.ndarray:
    mask = np.zeros(SHAPE, np.bool_)
    for start, stop in boxes:
        mask[Box(start, stop).slices] = True
    return mask


def test_the_real_answers_become_the_masks_worked_out_by_hand():
    engine = RecordedEngine()
    session = started(engine, engine.connect(), new_session(kinetic_labels()))
    engine.set_image(session.image.array)
    boxed, scribbled, brushed, outlined, undone, pointed = tell(session)
    assert engine.calls == []

    start = filled((START.start, START.stop))
    assert np.array_equal(boxed, start | filled(BOX))
    line = filled(((9, 22, 22), (10, 24, 32)))  # the path, two voxels wide on its slice
    assert np.array_equal(scribbled, (start | filled(BOX)) & ~line)
    assert 0 < (scribbled & ~brushed).sum() < 30
    square = filled(((10, 20, 30), (21, 31, 31)))  # the voxels within the contour
    assert np.array_equal(outlined, brushed | square)
    assert np.array_equal(undone, brushed)
    z, y, x = np.ogrid[:24, :40, :48]
    ball = (z - 15) ** 2 + (y - 20) ** 2 + (x - 24) ** 2 <= 4**2
    assert ball.sum() == 257
    assert np.array_equal(pointed, brushed | ball)


def test_a_prompt_is_one_step_with_its_place_its_model_and_its_image():
    session = hand_session()
    outcome = ask(session, "box", BOX)
    edit = outcome.step.edit
    assert (edit.name, edit.tool, edit.changed_voxels) == ("prompt (box +)", "prompt", 140)
    facts = dict(edit.parameters)
    assert facts["voxels_zyx"] == "[[9.0,20.0,20.0],[10.0,30.0,34.0]]"
    corner = session.live.grid.to_world_mm([20, 20, 9])
    assert facts["ras_mm"].startswith(f"[[{corner[0]:.1f}"[:6])
    assert facts[MODEL] == "Hand 1.0, sha256:1, licence Licence X"
    assert facts["image"] == "subtraction (post 1 - pre)"
    assert len(facts["image_sha256"]) == 64
    assert session.live.summary.models == (facts[MODEL],)


def test_undo_goes_back_over_prompt_and_brush_to_the_bit():
    session = hand_session(kinetic_labels())
    live, masks = session.live, [session.live.labels.copy()]
    ask(session, "box", BOX)
    masks.append(live.labels.copy())
    live.press((9.0, 25.0, 27.0), Brush(Tool.SPHERE, Action.ERASE, radius_mm=2.0))
    live.release()
    masks.append(live.labels.copy())
    ask(session, "outline", OUTLINE)
    end = live.labels.copy()
    for mask in reversed(masks):
        live.undo()
        assert np.array_equal(live.labels, mask)
    for _ in range(3):
        live.redo()
    assert np.array_equal(live.labels, end)


def test_a_replayed_prompt_runs_no_model():
    session, records = hand_session(kinetic_labels()), []
    session.live.on_record = records.append
    ask(session, "box", BOX)
    ask(session, "scribble", SCRIBBLE, include=False)
    session.live.undo()
    other = new_session(kinetic_labels())
    for record in records:
        other.play(record)
    assert np.array_equal(other.labels, session.live.labels)
    assert other.summary.models == session.live.summary.models


def test_the_engine_goes_on_starts_from_the_mask_or_takes_back_its_last_prompt():
    session = hand_session(kinetic_labels())
    live, engine = session.live, session.engine
    histories = []

    def history(kind, points):
        histories.append(dict(ask(session, kind, points).step.edit.parameters)["history"])

    history("box", BOX)  # begun by the kinetic segmenter: from the mask
    history("outline", OUTLINE)  # nothing was edited: goes on
    live.undo()
    history("scribble", (SCRIBBLE[0], (9, 35, 22)))  # one undo: the engine takes it back
    live.press((9.0, 22.0, 22.0), Brush(Tool.SPHERE, Action.ERASE, radius_mm=1.0))
    live.release()
    history("outline", OUTLINE)
    assert histories == [History.MASK, History.CONTINUED, History.UNDONE, History.MASK]
    assert engine.asked.count("undo") == 1
    assert np.array_equal(engine.mask, live.labels == 1)


def grow(live) -> None:
    """Add a step of growth, as the Refine page records it: a larger region around the lesion."""
    from scipy.ndimage import binary_dilation

    grown = binary_dilation(live.labels == 1, iterations=2)
    live.apply("grow 3-D", Box.whole(SHAPE), grown, (), label=1)


def test_after_any_number_of_undos_the_model_answers_as_if_they_had_never_been():
    """Undo two prompts, and a prompt, growth and a brush stroke; compare with a fresh session."""
    crosses = ("outline", ((9.7, 14.7, 30), (20.3, 14.7, 30), (20.3, 30.3, 30), (9.7, 30.3, 30)))

    def begin() -> PromptSession:
        session = hand_session(kinetic_labels())
        ask(session, "box", BOX)
        ask(session, "scribble", SCRIBBLE, include=False)
        return session

    session, fresh = begin(), begin()
    live, engine = session.live, session.engine
    kept = live.labels.copy()
    ask(session, "outline", OUTLINE)
    ask(session, "scribble", ((9, 35, 20), (9, 35, 30)))
    live.press((9.0, 25.0, 27.0), Brush(Tool.SPHERE, Action.ERASE, radius_mm=2.0))
    live.release()
    grow(live)
    ask(session, *crosses)
    end = live.labels.copy()
    for _ in range(5):
        live.undo()
    assert np.array_equal(live.labels, kept)
    engine.asked.clear()
    step = ask(session, *crosses).step
    assert engine.asked == ["start", "prompt", "prompt", "prompt"]
    assert dict(step.edit.parameters)["history"] == History.REPEATED
    ask(fresh, *crosses)
    assert np.array_equal(live.labels, fresh.live.labels)
    assert engine.knows == fresh.engine.knows
    assert not np.array_equal(live.labels, end)


def test_a_kinetic_mask_prompted_brushed_grown_and_prompted_again_is_replayed(tmp_path):
    """The journal alone gives the mask bit for bit, and undo leads back to the kinetic mask."""
    from tests.segmentation.test_kinetic_behaviour import FIRST, ball, case_of, signal_of

    from napari_mamamia.io.data_set.volumes import read_labels
    from napari_mamamia.io.workspace.workspace import Workspace
    from napari_mamamia.segmentation.kinetic.kinetic import KineticSegmenter
    from napari_mamamia.services.refine.edit_case import open_editing, save_editing
    from napari_mamamia.services.refine.grow_mask import GROW_AGAIN, grow_from_labels, lay_grown
    from napari_mamamia.services.refine.replay import replay_journal
    from napari_mamamia.smartpaint.brush.features import measure_features

    case = case_of(signal_of((ball(FIRST, 4), 150.0)))
    start = LabelMap.of(KineticSegmenter().predict(case).mask.array.astype(np.uint8), case.grid)
    images = measure_features(case)
    editing = open_editing(
        case, Workspace(tmp_path), "Ana", start, images, started_from="prediction kinetic"
    )
    live, engine = editing.session, HandEngine(case.grid.shape)
    session = PromptSession(
        live, ChannelImage(case, choose_channel(case)), engine, engine.connect()
    )
    engine.set_image(session.image.array)
    masks = [live.labels.copy()]
    z, y, x = FIRST
    assert masks[0][FIRST] == 1
    acts = (
        lambda: ask(session, "box", ((z, y - 9, x - 2), (z + 1, y - 1, x + 3))),
        lambda: live.press((z, y - 6, x), Brush(radius_mm=5.0)) and live.release(),
        lambda: ask(session, "scribble", ((z, y, x - 3), (z, y, x + 3)), include=False),
        lambda: live.apply(
            GROW_AGAIN,
            *lay_grown(live.labels, 1, grow_from_labels(images, case.grid, live.labels), case.grid),
            (),
            label=1,
        ),
        lambda: ask(session, "box", ((z + 3, y - 9, x - 2), (z + 4, y - 1, x + 3))),
    )
    for act in acts:
        act()
        assert not np.array_equal(live.labels, masks[-1])
        masks.append(live.labels.copy())
    for mask in masks[-2::-1]:
        live.undo()
        assert np.array_equal(live.labels, mask)
    for _ in range(4):
        live.redo()
    last = ask(session, "box", ((z - 3, y - 5, x - 2), (z - 2, y - 1, x + 3)))
    assert last.step.edit.changed_voxels > 0
    save_editing(editing)
    editing.close()
    for name, given in (("without.nii", None), ("with.nii", case)):
        replay_journal(editing.journal.path, tmp_path / name, given)
        assert np.array_equal(read_labels(tmp_path / name).dense(), live.labels)


def test_prompts_that_no_longer_give_the_same_mask_are_not_trusted():
    """An engine that draws at random, or another server: the mask is what the reader sees."""
    session = hand_session(kinetic_labels())
    for points in (BOX, ((12, 20, 20), (13, 24, 24)), ((14, 20, 20), (15, 24, 24))):
        ask(session, "box", points)
    session.live.undo()
    session.live.undo()
    kept = session.live.labels.copy()
    session.engine.is_forgetful = True
    step = ask(session, "outline", OUTLINE).step
    assert dict(step.edit.parameters)["history"] == History.MASK
    square = filled(((10, 20, 30), (21, 31, 31)))
    assert np.array_equal(session.live.labels == 1, (kept == 1) | square)


def test_undo_goes_back_over_prompt_brush_and_growth_to_the_bit_in_every_order():
    """Eleven steps, each pair of kinds in both orders: undone one by one, redone, jumped to."""
    session = hand_session(kinetic_labels())
    live, masks = session.live, [session.live.labels.copy()]
    right, erased = 34, iter((22.0, 28.0, 34.0, 40.0))
    for step in "pbgbpgpgbpb":
        if step == "p":
            right += 3
            ask(session, "box", ((9, 20, 20), (10, 30, right)))
        elif step == "g":
            grow(live)
        else:
            brush = Brush(Tool.SPHERE, Action.ERASE, radius_mm=2.0)
            live.press((9.0, 25.0, next(erased)), brush)
            live.release()
        assert not np.array_equal(live.labels, masks[-1])
        masks.append(live.labels.copy())
    for mask in reversed(masks[:-1]):
        live.undo()
        assert np.array_equal(live.labels, mask)
    for mask in masks[1:]:
        live.redo()
        assert np.array_equal(live.labels, mask)
    for row in (3, 10, 0, 7):
        live.go_to(row)
        assert np.array_equal(live.labels, masks[row])


def test_voxels_that_the_brush_erased_stay_erased():
    session = hand_session()
    ask(session, "box", BOX)
    session.live.press((9.0, 25.0, 27.0), Brush(Tool.SPHERE, Action.ERASE, radius_mm=2.0))
    session.live.release()
    erased = session.live.labels == 0
    outcome = ask(session, "box", BOX)
    assert outcome.step is None
    assert len(outcome.notes) == 1
    assert np.array_equal(session.live.labels == 0, erased)


def test_an_answer_after_the_session_was_closed_is_dropped():
    session = hand_session()
    work = session.prepare(Prompt("box", BOX))
    answer = run_prompt(work)
    session.close()
    assert session.finish(work, answer) is None
    assert not session.live.labels.any()


def test_what_the_reader_paints_while_the_model_runs_stays():
    session = hand_session()
    work = session.prepare(Prompt("box", BOX))
    answer = run_prompt(work)
    session.live.press((3.0, 5.0, 5.0), Brush(Tool.SPHERE, radius_mm=1.5))
    session.live.release()
    painted = session.live.labels.copy()
    session.finish(work, answer)
    assert painted.any()
    assert np.array_equal(session.live.labels == 1, (painted == 1) | filled(BOX))


def test_a_lost_engine_keeps_the_mask_and_starts_again_from_it():
    session = hand_session()
    ask(session, "box", BOX)
    kept = session.live.labels.copy()
    session.engine.is_lost = True
    work = session.prepare(Prompt("outline", OUTLINE))
    with pytest.raises(EngineLostError):
        run_prompt(work)
    session.drop(work)
    assert np.array_equal(session.live.labels, kept)
    session.engine.asked.clear()
    outcome = ask(session, "outline", OUTLINE)
    assert session.engine.asked == ["connect", "image", "start", "prompt"]
    assert dict(outcome.step.edit.parameters)["history"] == History.MASK
    square = filled(((10, 20, 30), (21, 31, 31)))
    assert np.array_equal(session.live.labels == 1, (kept == 1) | square)


def test_other_labels_are_not_touched_and_locked_ones_refuse_prompts():
    labels = np.zeros(SHAPE, np.uint8)
    labels[9, 20:24, 20:24] = 2
    session = hand_session(labels)
    session.live.locked = frozenset({2})
    ask(session, "box", BOX)
    assert (session.live.labels == 2).sum() == 16
    assert (session.live.labels == 1).sum() == 140 - 16
    session.live.label = 2
    with pytest.raises(CaseError):
        session.prepare(Prompt("box", BOX))


def test_the_first_subtraction_is_the_default_image():
    case = small_case()
    assert [channel.name for channel in list_channels(case)] == [
        "subtraction", "post", "0", "1", "2",
    ]  # fmt: skip
    image = ChannelImage(case, choose_channel(case)).array
    assert image.dtype == np.float32
    assert image[3, 4, 5] == float(case.signal[1, 3, 4, 5]) - float(case.signal[0, 3, 4, 5])
    assert np.array_equal(ChannelImage(case, choose_channel(case, "2")).array, case.signal[2])


def test_each_image_has_a_picture_of_its_middle_slice():
    """The grid is 24 x 40 x 48 voxels of 2.0 x 0.8 x 0.7 mm."""
    case = small_case()
    pictures = draw_channels(case)
    assert len(pictures) == len(list_channels(case))
    first = pictures[0]
    assert (round(first.height_mm, 3), round(first.width_mm, 3)) == (32.0, 33.6)
    frame = case.grid.display_frame()
    difference = case.signal[1].astype(float) - case.signal[0]
    plane = frame.to_display(difference)[12]
    grey = np.clip(plane / np.percentile(plane, 99.5), 0, 1) * 255
    assert np.abs(first.pixels - grey).max() <= 1
    assert not np.array_equal(first.pixels, pictures[1].pixels)


@pytest.mark.parametrize("fill", [np.nan, np.inf, 7.0])
def test_an_image_that_the_model_would_answer_with_nothing_is_refused(fill):
    case = small_case()
    signal = case.signal.astype(np.float32)
    signal[1] = 7.0
    signal[1, 0, 0, 0] = fill
    image = ChannelImage(type(case)("S", case.grid, signal, case.phases), choose_channel(case, "1"))
    with pytest.raises(CaseError) as refusal:
        _ = image.array
    assert refusal.value.remedies[0].option == "channel"


def test_one_prompt_at_a_time():
    session = hand_session()
    session.prepare(Prompt("box", BOX))
    with pytest.raises(CaseError):
        session.prepare(Prompt("box", BOX))
