"""The real nnInteractive in its own environment, against our engine: the same voxels.

They need ``MAMAMIA_PROMPT_ENVIRONMENT``, a Python environment that holds nninteractive 2.6.
"""

import itertools
import json
import os
import socket
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from tests.features.prompt.contract_model import LICENCE, NETWORK, plans, write_model
from tests.features.prompt.prompt_story import (
    RECORDED,
    RecordingEngine,
    ask,
    kinetic_labels,
    new_session,
    started,
    tell,
)

from napari_mamamia.core.box import Box
from napari_mamamia.core.errors import RefusedCheckpointError
from napari_mamamia.features.prompt.segmentation.engine import (
    EngineLostError,
    EngineSettings,
)
from napari_mamamia.features.prompt.segmentation.engines import PROMPT_ENGINES
from napari_mamamia.features.prompt.segmentation.prompts import Prompt, place_prompt

ENVIRONMENT = os.environ.get("MAMAMIA_PROMPT_ENVIRONMENT", "")
pytestmark = [
    pytest.mark.night,
    pytest.mark.skipif(not ENVIRONMENT, reason="MAMAMIA_PROMPT_ENVIRONMENT is not set"),
]

STOCK = """
import json, sys, zlib
import numpy as np, torch
from pathlib import Path
from nnInteractive.inference.inference_session import nnInteractiveInferenceSession
out = sys.stdout
sys.stdout = sys.stderr
session = nnInteractiveInferenceSession(torch.device("cpu"), torch_n_threads=1)
session.initialize_from_trained_model_folder(sys.argv[1], 0)
for line in sys.stdin:
    order = json.loads(line)
    image = np.load(order["image"])
    session.set_image(image[None])
    buffer = np.zeros(image.shape, np.uint8)
    session.set_target_buffer(buffer)
    for kind, box, include in order["prompts"]:
        np.random.seed(0)
        if kind == "point":
            session.add_point_interaction([low for low, _ in box], include)
        elif kind == "box":
            session.add_bbox_interaction(box, include)
        else:
            crop = np.ones([high - low for low, high in box], np.uint8)
            add = session.add_scribble_interaction
            if kind == "outline":
                add = session.add_lasso_interaction
            add(crop, include, interaction_bbox=box)
    np.save(order["out"], buffer)
    print("done", file=out, flush=True)
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return write_model(tmp_path_factory.mktemp("prompt") / "model")


@pytest.fixture(scope="module")
def local(model):
    engine = PROMPT_ENGINES["local"].make(
        EngineSettings(model=model, environment=Path(ENVIRONMENT), device="cpu")
    )
    yield engine
    engine.close()


def test_the_recorded_answers_are_still_the_package_s(model):
    settings = EngineSettings(model=model, environment=Path(ENVIRONMENT), device="cpu")
    engine = RecordingEngine(PROMPT_ENGINES["local"].make(settings))
    session = started(engine, engine.connect(), new_session(kinetic_labels()))
    engine.set_image(session.image.array)
    tell(session)
    session.close()
    assert json.loads(json.dumps(engine.calls)) == json.loads(RECORDED.read_text())


@pytest.mark.timeout(1800)
def test_48_orientations_of_three_planes_give_the_package_s_own_voxels(model, local, tmp_path):
    """Each orientation is told to our engine and to the stock session; both are turned back."""
    shape = (40, 50, 60)
    image = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    upright = []
    for axis in range(3):  # a box, an outline and a negative scribble on one slice of each plane
        low, high = np.array([8, 12, 14]), np.array([20, 30, 40])
        low[axis], high[axis] = 18 + axis, 19 + axis
        upright += [("box", low, high, True), ("outline", low + 2 * (high - low > 1), high, True)]
        upright += [("scribble", low + 3 * (high - low > 1), high - 4 * (high - low > 1), False)]
    info = local.connect()
    assert info.licence == LICENCE
    stock = subprocess.Popen(
        [str(Path(ENVIRONMENT) / "bin/python"), "-I", "-c", STOCK, str(model)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        cwd="/",
    )  # fmt: skip
    first, differing, n_done = None, 0, 0
    try:
        for axes in itertools.permutations(range(3)):
            for flips in itertools.product((1, -1), repeat=3):
                turned = image.transpose(axes)[tuple(slice(None, None, f) for f in flips)]
                prompts = []
                for kind, low, high, include in upright:
                    ends = []
                    for axis, flip, n in zip(axes, flips, turned.shape, strict=True):
                        a, b = int(low[axis]), int(high[axis])
                        ends.append([a, b] if flip > 0 else [n - b, n - a])
                    prompts.append((kind, ends, include))
                np.save(tmp_path / "image.npy", turned)
                order = {"image": str(tmp_path / "image.npy"), "out": str(tmp_path / "out.npy")}
                stock.stdin.write(json.dumps(order | {"prompts": prompts}) + "\n")
                stock.stdin.flush()
                assert stock.stdout.readline() == "done\n"
                theirs = np.load(tmp_path / "out.npy").astype(np.bool_)
                local.set_image(np.ascontiguousarray(turned))
                ours = np.zeros(turned.shape, np.bool_)
                for kind, ends, include in prompts:
                    box = Box(tuple(a for a, _ in ends), tuple(b for _, b in ends))
                    placed = as_placed(kind, box, include)
                    region = local.prompt(placed)
                    ours[region.box.slices] = region.mask
                differing += int((ours != theirs).sum())
                back = ours[tuple(slice(None, None, f) for f in flips)].transpose(np.argsort(axes))
                first = back if first is None else first
                differing += int((back != first).sum())
                n_done += 1
    finally:
        stock.kill()
        stock.wait()
    assert n_done == 48
    assert first.any()
    assert differing == 0


def as_placed(kind, box, include):
    from napari_mamamia.features.prompt.segmentation.prompts import PlacedPrompt

    points = {"box": (box.start, box.stop), "scribble": (box.start,), "outline": (box.start,) * 3}
    voxels = None if kind == "box" else np.ones(box.shape, np.uint8)
    return PlacedPrompt(Prompt(kind, points[kind], include), box, voxels)


@contextmanager
def serving(model, *more, port=None):
    if port is None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
    command = [
        str(Path(ENVIRONMENT) / "bin/nninteractive-server"), "--model-dir", str(model),
        "--fold", "0", "--device", "cpu", "--no-torch-compile", "--torch-n-threads", "1",
        "--host", "127.0.0.1", "--port", str(port), *more,
    ]  # fmt: skip
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 120
        while time.monotonic() < end:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.2)
        yield server, port
    finally:
        server.kill()
        server.wait()


def remote(port, **more):
    return PROMPT_ENGINES["remote"].make(EngineSettings(server=f"http://127.0.0.1:{port}", **more))


def test_the_real_server_gives_the_recorded_answers(model):
    with serving(model, "--api-key", "K") as (_, port):
        with pytest.raises(EngineLostError):
            remote(port).connect()
        engine = RecordingEngine(remote(port, api_key="K"))
        session = started(engine, engine.connect(), new_session(kinetic_labels()))
        engine.set_image(session.image.array)
        tell(session)
        session.close()
    assert json.loads(json.dumps(engine.calls)) == json.loads(RECORDED.read_text())


STEPS = ("set_image", "start_from", "prompt", "undo")


@pytest.mark.parametrize("step", STEPS)
def test_a_server_killed_before_a_call_loses_nothing(model, step):
    with serving(model) as (server, port):
        engine = remote(port)
        session = started(engine, engine.connect(), new_session(kinetic_labels()))
        if step != "set_image":
            engine.set_image(session.image.array)
        if step in ("prompt", "undo"):
            ask(session, "box", ((9, 20, 20), (10, 30, 34)))
        if step == "undo":
            session.live.undo()
        kept = session.live.labels.copy()
        server.kill()
        server.wait()
        work = session.prepare(Prompt("point", [(15, 20, 24)]))
        from napari_mamamia.features.prompt.services.session import run_prompt

        with pytest.raises(EngineLostError):
            run_prompt(work)
        session.drop(work)
        assert np.array_equal(session.live.labels, kept)
    with serving(model, port=port):
        outcome = ask(session, "point", [(15, 20, 24)])
        assert dict(outcome.step.edit.parameters)["history"] == "started from the mask"
        z, y, x = np.ogrid[:24, :40, :48]
        ball = (z - 15) ** 2 + (y - 20) ** 2 + (x - 24) ** 2 <= 4**2
        assert np.array_equal(session.live.labels == 1, (kept == 1) | ball)
        session.close()


def test_a_full_server_and_an_expired_session_are_reported(model):
    with serving(model, "--max-sessions", "1", "--idle-timeout-seconds", "8") as (_, port):
        first = remote(port)
        info = first.connect()
        first.set_image(np.random.default_rng(2).normal(size=(20, 20, 20)).astype(np.float32))
        with pytest.raises(EngineLostError):
            remote(port).connect()
        time.sleep(45)
        with pytest.raises(EngineLostError):
            first.prompt(place_prompt(Prompt("point", [(9, 9, 9)]), (20, 20, 20), info.abilities))
        assert not first.is_open


def test_a_checkpoint_with_code_is_refused_and_runs_nothing(model, tmp_path):
    import pickle
    import shutil

    class Payload:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "ran"),))

    folder = tmp_path / "model"
    shutil.copytree(model, folder)
    (folder / "fold_0/checkpoint_final.pth").write_bytes(
        pickle.dumps({"network_weights": Payload()})
    )
    engine = PROMPT_ENGINES["local"].make(
        EngineSettings(model=folder, environment=Path(ENVIRONMENT), device="cpu")
    )
    with pytest.raises(RefusedCheckpointError):
        engine.connect()
    assert not (tmp_path / "ran").exists()


def test_plans_that_name_another_class_are_refused(model, tmp_path):
    import shutil

    from napari_mamamia.core.errors import ModelError

    folder = tmp_path / "model"
    shutil.copytree(model, folder)
    text = json.dumps(plans()).replace(NETWORK, "os.system")
    (folder / "plans.json").write_text(text)
    engine = PROMPT_ENGINES["local"].make(
        EngineSettings(model=folder, environment=Path(ENVIRONMENT), device="cpu")
    )
    with pytest.raises(ModelError):
        engine.connect()


def test_our_share_of_a_prompt_on_a_large_case_is_at_most_50_ms(local):
    """Measure the processor time of `prepare` and `finish`, which run in the window's thread."""
    from napari_mamamia.core.case import Case, Phase
    from napari_mamamia.core.grid import Grid
    from napari_mamamia.features.prompt.services.session import run_prompt
    from napari_mamamia.smartpaint.session.session import EditingSession

    shape = (160, 448, 448)
    signal = np.random.default_rng(3).integers(0, 900, (2, *shape), dtype=np.int16)
    case = Case("BIG", Grid.of_spacing(shape, (1.0, 0.8, 0.8)), signal, (Phase(0), Phase(1)))
    live = EditingSession("BIG", case.grid, np.zeros(shape, np.uint8), None)
    info = local.connect()
    from napari_mamamia.features.prompt.services.channels import ChannelImage, choose_channel
    from napari_mamamia.features.prompt.services.session import PromptSession

    session = PromptSession(live, ChannelImage(case, choose_channel(case)), local, info)
    local.set_image(session.image.array)
    _ = session.image.sha256
    ask(session, "point", [(80, 200, 200)])
    shares = []
    for n in range(5):
        started_at = time.process_time()
        work = session.prepare(Prompt("point", [(80, 200, 210 + 4 * n)]))
        asked_at = time.process_time()
        answer = run_prompt(work)
        answered_at = time.process_time()
        session.finish(work, answer)
        shares.append(asked_at - started_at + time.process_time() - answered_at)
    assert sorted(shares)[2] <= 0.05, shares
