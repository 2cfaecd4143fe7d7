"""Prompt models with a recipe, through the same engine, command and library as nnInteractive.

The networks are stand-ins that the tests write; nothing here is a published model.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from tests.features.prompt.prompt_story import (
    BOX,
    SCRIBBLE,
    SHAPE,
    ask,
    kinetic_labels,
    new_session,
    started,
)
from tests.features.prompt.recipe_models import (
    DENSE,
    SPARSE,
    write_dense,
    write_recipe,
    write_sparse,
)

from napari_mamamia.core.box import Box
from napari_mamamia.core.edits import MODEL
from napari_mamamia.core.errors import CaseError, ModelError
from napari_mamamia.features.prompt.segmentation.engine import (
    EngineSettings,
    Region,
)
from napari_mamamia.features.prompt.segmentation.engines import PROMPT_ENGINES
from napari_mamamia.features.prompt.segmentation.network import NetworkSession
from napari_mamamia.features.prompt.segmentation.prompts import Prompt, PromptKind
from napari_mamamia.features.prompt.segmentation.recipe import read_prompt_recipe

pytest.importorskip("torch")


def engine_of(folder):
    return PROMPT_ENGINES["local"].make(EngineSettings(model=folder, device="cpu"))


def ball(centre, radius) -> np.ndarray:
    axes = np.ogrid[tuple(slice(0, n) for n in SHAPE)]
    return sum((a - c) ** 2 for a, c in zip(axes, centre, strict=True)) <= radius**2


@pytest.fixture(scope="module")
def sparse(tmp_path_factory):
    return write_sparse(tmp_path_factory.mktemp("sparse") / "model")


@pytest.fixture
def dense(tmp_path):
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    return write_dense(tmp_path / "model")


def begin(folder, labels=None):
    engine = engine_of(folder)
    session = started(engine, engine.connect(), new_session(labels))
    engine.set_image(session.image.array, session.image.case.grid.spacing_mm)
    return session


def test_a_network_with_points_marks_what_was_worked_out_by_hand(sparse):
    session = begin(sparse)
    info = session.info
    assert (info.name, info.licence) == ("Stand-in with points", "Stand-in licence")
    assert info.abilities.kinds == {PromptKind.POINT, PromptKind.BOX}
    try:
        ask(session, "point", [(10, 20, 24)])
        first = session.live.labels == 1
        assert np.array_equal(first, ball((10, 20, 24), 3))
        ask(session, "point", [(10, 20, 26)], include=False)
        second = session.live.labels == 1
        assert np.array_equal(second, first & ~ball((10, 20, 26), 3))
        step = ask(session, "box", [(9, 18, 20), (11, 24, 30)]).step
        boxed = np.zeros(SHAPE, np.bool_)
        boxed[9:11, 18:24, 20:30] = True
        assert np.array_equal(session.live.labels == 1, second | boxed)
        assert dict(step.edit.parameters)[MODEL].startswith("Stand-in with points, sha256:")
    finally:
        session.close()


def test_a_mask_that_the_network_cannot_see_stays(sparse):
    session = begin(sparse, kinetic_labels())
    try:
        ask(session, "point", [(10, 12, 14)])
        expected = (kinetic_labels() == 1) | ball((10, 12, 14), 3)
        assert np.array_equal(session.live.labels == 1, expected)
    finally:
        session.close()


def test_volumes_of_prompts_and_the_mask_reach_an_onnx_file(dense):
    session = begin(dense, kinetic_labels())
    try:
        mask = kinetic_labels() == 1
        ask(session, "point", [(10, 14, 12)])
        mask |= ball((10, 14, 12), 2)
        assert np.array_equal(session.live.labels == 1, mask)
        ask(session, "box", BOX)
        mask[9, 20:30, 20:34] = True
        assert np.array_equal(session.live.labels == 1, mask)
        ask(session, "scribble", SCRIBBLE, include=False)
        mask[9, 22:24, 22:32] = False
        assert np.array_equal(session.live.labels == 1, mask)
        assert session.info.licence == "unknown"
    finally:
        session.close()


def test_undo_continues_as_if_the_prompt_had_never_been(sparse):
    session = begin(sparse)
    try:
        ask(session, "point", [(10, 20, 24)])
        ask(session, "point", [(10, 30, 24)])
        session.live.undo()
        outcome = ask(session, "point", [(10, 20, 30)])
        assert dict(outcome.step.edit.parameters)["history"] == "last prompt taken back"
        expected = ball((10, 20, 24), 3) | ball((10, 20, 30), 3)
        assert np.array_equal(session.live.labels == 1, expected)
    finally:
        session.close()


def test_a_prompt_of_a_kind_that_the_network_cannot_exclude_is_refused(sparse):
    session = begin(sparse)
    try:
        for kind, points, include in (("box", BOX, False), ("scribble", SCRIBBLE, True)):
            with pytest.raises(CaseError):
                session.prepare(Prompt(kind, points, include))
    finally:
        session.close()


def recipe_of(tmp_path, content):
    return read_prompt_recipe(write_recipe(tmp_path / "m", content) / "mamamia_prompt.json")


def in_process(tmp_path, forward, image, spacing, **changes):
    """Return a session in this process with its image and buffer."""
    content = {**SPARSE, **changes}
    session = NetworkSession(recipe_of(tmp_path, content), forward)
    session.set_image(image[None], {"spacing": spacing})
    buffer = np.zeros(image.shape, np.uint8)
    session.set_target_buffer(buffer)
    return session, buffer


def test_the_image_is_scaled_and_resampled_and_points_follow(tmp_path):
    """A patch of 8 voxels of 2 mm covers 16 voxels of 1 mm; voxel 9 is at 4.25 there, from 0.5."""
    seen = []

    def forward(arrays):
        seen.extend(arrays)
        return [np.ones((1, 1, 8, 8, 8), np.float32)]

    z = np.arange(32, dtype=np.float32).reshape(-1, 1, 1)
    image = np.broadcast_to(z, (32, 32, 32)).copy()
    session, buffer = in_process(
        tmp_path, forward, image, (1.0, 1.0, 1.0),
        patch=[8, 8, 8], spacing_mm=[2.0, 2.0, 2.0], normalise="0 to 1",
        points={"axes": "zyx"},
    )  # fmt: skip
    ends = session.add_point_interaction([9, 10, 16], True)
    patch, points, labels = seen
    assert ends == [[1, 17], [2, 18], [8, 24]]
    assert np.allclose(patch[0, 0, :, 0, 0] * 31, 1.5 + 2 * np.arange(8))
    assert np.allclose(points, [[[(9 - 1 + 0.5) / 2 - 0.5] * 3]])
    assert labels.dtype == np.int64
    assert buffer.sum() == 16**3


@pytest.mark.parametrize(
    ("changes", "low", "high"),
    [
        ({"normalise": "z-score"}, -1.0, 1.0),
        ({"normalise": "0 to 1", "percentiles": [0, 100]}, 0.0, 1.0),
        ({"normalise": "0 to 1", "over": "non-zero voxels"}, -1.0, 1.0),
    ],
)
def test_the_image_is_scaled_as_the_recipe_says(tmp_path, changes, low, high):
    """Half of the voxels are 2, half 4 (or 0, 2, 4 for non-zero voxels)."""
    seen = []

    def forward(arrays):
        seen.append(arrays[0])
        return [np.ones((1, 1, 4, 4, 4), np.float32)]

    image = np.full((4, 4, 4), 2.0, np.float32)
    image[2:] = 4.0
    if "over" in changes:
        image[0] = 0.0
    session, _ = in_process(tmp_path, forward, image, (1, 1, 1), patch=[4, 4, 4], **changes)
    session.add_point_interaction([1, 1, 1], True)
    assert (seen[0].min(), seen[0].max()) == (low, high)


def test_a_network_of_slices_sees_the_slice_of_the_prompt_in_any_plane(tmp_path):
    seen = []

    def forward(arrays):
        seen.append(arrays)
        return [np.ones((1, 1, 6, 6), np.float32)]

    image = np.random.default_rng(0).normal(size=(10, 12, 14)).astype(np.float32)
    session, buffer = in_process(
        tmp_path, forward, image, (1, 1, 1), patch=[6, 6], points={"axes": "xyz", "box": [2, 3]}
    )
    session.add_bbox_interaction([[2, 6], [5, 6], [4, 8]], True)
    patch, points, labels = seen[0]
    assert np.array_equal(patch[0, 0], image[1:7, 5, 3:9])
    assert points[0].tolist() == [[1, 1], [5, 5]]
    assert labels[0].tolist() == [2, 3]
    assert np.array_equal(np.argwhere(buffer.any((0, 2))).ravel(), [5])


def test_a_window_larger_than_the_image_is_filled_with_its_lowest_value(tmp_path):
    seen = []

    def forward(arrays):
        seen.append(arrays[0])
        return [np.ones((1, 1, 8, 8, 8), np.float32)]

    image = np.full((4, 8, 8), 3.0, np.float32)
    image[0, 0, 0] = -5.0
    session, buffer = in_process(tmp_path, forward, image, (1, 1, 1), patch=[8, 8, 8])
    session.add_point_interaction([3, 3, 3], True)
    patch = seen[0][0, 0]
    assert (patch[:2] == -5).all()
    assert (patch[6:] == -5).all()
    assert np.array_equal(patch[2:6], image)
    assert buffer.all()


def test_a_thin_scribble_survives_a_coarser_patch(tmp_path):
    seen = []

    def forward(arrays):
        seen.append(arrays[1])
        return [np.ones((1, 1, 4, 4, 4), np.float32)]

    image = np.random.default_rng(0).normal(size=(16, 16, 16)).astype(np.float32)
    content = {**DENSE, "patch": [4, 4, 4], "spacing_mm": [4.0, 4.0, 4.0]}
    session = NetworkSession(recipe_of(tmp_path, content), forward)
    session.set_image(image[None], {"spacing": [1, 1, 1]})
    session.set_target_buffer(np.zeros(image.shape, np.uint8))
    line = np.ones((1, 1, 16), np.uint8)
    session.add_scribble_interaction(line, False, interaction_bbox=[[8, 9], [9, 10], [0, 16]])
    mask, include, exclude = seen[0][0]
    assert not mask.any()
    assert not include.any()
    assert np.argwhere(exclude).tolist() == [[2, 2, 0], [2, 2, 1], [2, 2, 2], [2, 2, 3]]


CLASSES = np.zeros((1, 3, 4, 4, 4), np.float32)
CLASSES[0, 2, 0] = 1.0


@pytest.mark.parametrize(
    ("changes", "output", "count"),
    [
        ({"output": "classes", "output_channel": 2}, CLASSES, 16),
        ({"output": "probabilities", "output_channel": 2, "threshold": 0.9}, CLASSES, 16),
        ({"output": "logits", "output_channel": 2, "threshold": 0.9}, CLASSES, 0),
        ({"output": "logits", "output_channel": 2, "threshold": 0.6}, CLASSES, 16),
    ],
)
def test_the_output_is_read_as_the_recipe_says(tmp_path, changes, output, count):
    image = np.random.default_rng(0).normal(size=(4, 4, 4)).astype(np.float32)
    session, buffer = in_process(
        tmp_path, lambda _: [output], image, (1, 1, 1), patch=[4, 4, 4], **changes
    )
    session.add_point_interaction([1, 1, 1], True)
    assert buffer.sum() == count


@pytest.mark.parametrize(
    "output", [np.ones((1, 1, 4, 4, 5)), np.full((1, 1, 4, 4, 4), np.nan), np.ones((1, 0, 4, 4, 4))]
)
def test_an_answer_that_is_no_mask_is_refused(tmp_path, output):
    image = np.random.default_rng(0).normal(size=(4, 4, 4)).astype(np.float32)
    session, buffer = in_process(tmp_path, lambda _: [output], image, (1, 1, 1), patch=[4, 4, 4])
    with pytest.raises(ModelError):
        session.add_point_interaction([1, 1, 1], True)
    assert not buffer.any()
    assert session.undo() is False


WRONG = {
    "patch": {"patch": [4]},
    "no image": {"inputs": SPARSE["inputs"][1:]},
    "points without labels": {"inputs": SPARSE["inputs"][:2]},
    "no prompts": {"inputs": SPARSE["inputs"][:1]},
    "another folder": {"file": "../network.ts"},
    "axes": {"points": {"axes": "zxy"}},
    "threshold": {"threshold": 1},
    "version": {"version": 2},
    "unknown key": {"colour": 1},
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_recipe_is_refused(tmp_path, wrong):
    with pytest.raises(ModelError):
        recipe_of(tmp_path, {**SPARSE, **WRONG[wrong]})


def test_a_file_that_touches_files_is_refused_before_it_runs(tmp_path):
    import torch
    from torch import nn

    class Bad(nn.Module):
        def forward(self, image, points, labels):
            return torch.from_file("/etc/hostname", False, 4)

    folder = write_recipe(tmp_path / "m", SPARSE)
    torch.jit.save(torch.jit.script(Bad()), str(folder / "network.ts"))
    with pytest.raises(ModelError):
        engine_of(folder).connect()


def test_a_checkpoint_is_not_a_network(tmp_path):
    import torch

    folder = write_recipe(tmp_path / "m", SPARSE)
    torch.save({"a": torch.zeros(1)}, folder / "network.ts")
    with pytest.raises(ModelError):
        engine_of(folder)


def test_inputs_that_do_not_fit_the_network_name_the_recipe(tmp_path):
    folder = write_sparse(tmp_path / "m", inputs=SPARSE["inputs"][:1] + SPARSE["inputs"][2:0:-1])
    session = begin(folder)
    with pytest.raises(ModelError, match="recipe"):
        ask(session, "point", [(10, 20, 24)])
    session.close()


def test_a_session_begins_from_a_mask_again(sparse):
    engine = engine_of(sparse)
    info = engine.connect()
    engine.set_image(np.random.default_rng(1).normal(size=SHAPE).astype(np.float32))
    engine.start_from(Region(Box((1, 1, 1), (2, 3, 4)), np.ones((1, 2, 3), np.bool_)))
    from napari_mamamia.features.prompt.segmentation.prompts import place_prompt

    region = engine.prompt(place_prompt(Prompt("point", [(2, 2, 2)]), SHAPE, info.abilities))
    whole = np.zeros(SHAPE, np.bool_)
    whole[region.box.slices] = region.mask
    expected = ball((2, 2, 2), 3)
    expected[1, 1:3, 1:4] = True
    assert np.array_equal(whole, expected)
    engine.close()


def test_command_and_library_ask_such_a_model_as_they_ask_any_other(
    sparse, small_data_set, tmp_path
):
    """The licence is asked for once, and the mask and its replayed journal are the same."""
    from typer.testing import CliRunner

    import napari_mamamia as mm
    from napari_mamamia.cli.app import app
    from napari_mamamia.io.data_set.volumes import read_labels

    words = ["prompt", str(small_data_set), "--case", "A_2", "--reader", "Ana", "--device", "cpu"]
    words += ["--point", "4,17,23", "--model", str(sparse)]
    refused = CliRunner().invoke(app, words)
    assert refused.exit_code != 0
    assert refused.exception.licence == "Stand-in licence"
    first = CliRunner().invoke(app, [*words, "--accept-licence", "--json"])
    assert first.exit_code == 0, first.output
    answer = json.loads(first.stdout)
    assert answer["licence"] == "Stand-in licence"
    mask = read_labels(Path(answer["mask"])).dense() == 1
    case = mm.open_data_set(small_data_set)["A_2"]
    prompts = [mm.Prompt("point", [(4, 17, 23)])]
    prompted = mm.prompt(case, prompts, model=sparse, device="cpu", progress=False)
    axes = np.ogrid[tuple(slice(0, n) for n in mask.shape)]
    distance = sum((a - c) ** 2 for a, c in zip(axes, (4, 17, 23), strict=True))
    assert np.array_equal(mask, distance <= 9)
    assert np.array_equal(prompted.mask.array == 1, mask)
    journal = Path(answer["mask"]).with_name("A_2.journal")
    out = tmp_path / "replayed.nii.gz"
    replayed = CliRunner().invoke(app, ["replay", str(journal), "--out", str(out)])
    assert replayed.exit_code == 0, replayed.output
    assert np.array_equal(read_labels(out).dense() == 1, mask)
