"""The model's process: same result, cancelling, dying, memory, and that nothing stays behind."""

import io
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
from tests.stepped import Stepped

from napari_mamamia.core.errors import CaseError, ModelError
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.progress import listening
from napari_mamamia.segmentation.model.engine import EngineInput
from napari_mamamia.segmentation.model.engine_settings import EngineSettings
from napari_mamamia.segmentation.model.planner import OutOfMemoryError
from napari_mamamia.segmentation.run import engine_host
from napari_mamamia.segmentation.run.engine_host import EngineHost
from napari_mamamia.segmentation.run.weights import recognise_model
from napari_mamamia.segmentation.worker import worker as worker_module
from napari_mamamia.segmentation.worker.client import Worker
from napari_mamamia.segmentation.worker.shared_arrays import fetch, share, shared_folder

torch = pytest.importorskip("torch")
pytest.importorskip("dynamic_network_architectures")
pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs signals")

GRID = Grid((20, 24, 28), np.diag([-1.0, -1.0, 1.0, 1.0]))
ONE = EngineSettings(threads=1, keep_probability=True)
PLACES = [Path("/dev/shm"), Path(tempfile.gettempdir())]


def signal_of(channels=2):
    return list(np.random.default_rng(2).integers(1, 90, (channels, *GRID.shape)).astype(np.int16))


EARLIER = set()


@pytest.fixture(autouse=True)
def _what_other_tests_left():
    # Of any process: numbers of processes come round again.
    EARLIER.clear()
    EARLIER.update(f for place in PLACES if place.is_dir() for f in place.glob(".mamamia-*"))


def left_behind(pid):
    """Return the temporary things of a process, without those from before this test."""
    found = [f for place in PLACES if place.is_dir() for f in place.glob(f".mamamia-*-{pid}-*")]
    return [path for path in found if path not in EARLIER]


def wait_for_end(pid, limit_s=20.0):
    """Return whether a process that is not our child ends in time."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([handle], [], [], limit_s)[0])
    finally:
        os.close(handle)


@pytest.fixture(scope="module")
def worker():
    made = Worker()
    yield made
    made.close()


@pytest.fixture
def card(made, tmp_path):
    return recognise_model(made.write_model(tmp_path, made.Spec(mirror=(0, 1))))


def until(job, text):
    """Drive a job until its progress says `text`."""
    for progress in job:
        if text in progress.text:
            return
    raise AssertionError(f"the job never said {text!r}")


def test_the_result_is_that_of_this_process(worker, card):
    seen = []
    with listening(seen.append):
        there = worker.predict(card, ONE, EngineInput(signal_of(), GRID))
    here = EngineHost().predict(card, ONE, EngineInput(signal_of(), GRID))
    assert np.array_equal(there.labels, here.labels)
    assert np.array_equal(there.probability, here.probability)
    assert there.ran.parameters() == here.ran.parameters()
    assert there.peak_memory_bytes > 50e6
    assert any("tile" in progress.text for progress in seen)
    plan = worker.plan(card, ONE, GRID, None)
    assert plan == EngineHost().plan(card, ONE, GRID, None)
    assert worker.time_tile(card, ONE) > 0


def test_errors_arrive_as_what_they_are(worker, card):
    with pytest.raises(ModelError, match="channel"):
        worker.predict(card, ONE, EngineInput(signal_of(3), GRID))
    with pytest.raises(CaseError):
        worker.predict(card, ONE, EngineInput([0 * one for one in signal_of()], GRID))
    with pytest.raises(ModelError, match="fold"):
        worker.predict(card, EngineSettings(folds=("7",)), EngineInput(signal_of(), GRID))


def test_a_cancel_is_answered_at_once_and_the_process_stays_warm(worker, card, monkeypatch):
    heard, listen = [], worker._process.next

    def hear(wait_s):
        event = listen(wait_s)
        heard.extend([event["event"]] if event else [])
        return event

    monkeypatch.setattr(worker._process, "next", hear)
    job = Stepped(worker.predict, card, ONE, EngineInput(signal_of(), GRID))
    until(job, "tile 2")
    pid = worker.pid
    job.close()
    assert heard[-1] == "cancelled"
    assert worker.pid == pid
    assert left_behind(os.getpid()) == []
    assert worker.predict(card, ONE, EngineInput(signal_of(), GRID)).labels.shape == GRID.shape


def test_a_tile_that_does_not_end_after_a_cancel_ends_with_its_process(worker, card):
    job = Stepped(worker.predict, card, ONE, EngineInput(signal_of(), GRID))
    until(job, "tile 1")
    pid, threads = worker.pid, threading.active_count()
    os.kill(pid, signal.SIGSTOP)  # as a tile of minutes would: no answer
    job.close()  # comes back: it waits for no answer
    assert wait_for_end(pid)
    assert worker.pid is None
    assert threading.active_count() <= threads
    assert left_behind(os.getpid()) == []


def test_at_the_limit_the_process_is_ended(worker, card):
    with pytest.raises(ModelError, match="it was still busy"):
        worker.predict(card, ONE, EngineInput(signal_of(), GRID), kill_at=time.monotonic())
    assert left_behind(os.getpid()) == []


def test_a_killed_process_is_a_message_with_the_memory_and_the_next_request_works(worker, card):
    job = Stepped(worker.predict, card, ONE, EngineInput(signal_of(), GRID))
    until(job, "tile 1")
    os.kill(worker.pid, signal.SIGKILL)
    with pytest.raises(OutOfMemoryError, match=r"lack of memory \(it had .* GB at its peak"):
        job()
    assert left_behind(os.getpid()) == []
    assert worker.predict(card, ONE, EngineInput(signal_of(), GRID)).labels.shape == GRID.shape


@pytest.mark.night  # by day: a killed one comes back, above
def test_without_work_the_process_ends_and_comes_back(card):
    idle = Worker(idle_s=0.05)
    idle.plan(card, ONE, GRID, None)
    pid = idle._process._process.pid
    assert wait_for_end(pid)
    assert idle.plan(card, ONE, GRID, None).tiles > 0
    idle.close()
    assert idle.pid is None


PARENT = """
import sys
from pathlib import Path
import numpy as np
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.progress import listening
from napari_mamamia.segmentation.model.engine_settings import EngineSettings
from napari_mamamia.segmentation.run.weights import recognise_model
from napari_mamamia.segmentation.model.engine import EngineInput
from napari_mamamia.segmentation.worker import worker as worker_module
from napari_mamamia.segmentation.worker.client import Worker
grid = Grid((20, 24, 28), np.diag([-1.0, -1.0, 1.0, 1.0]))
images = list(np.random.default_rng(2).integers(1, 90, (2, *grid.shape)).astype(np.int16))
worker = Worker()


def listen(step):
    if "tile 1" in step.text:
        gone = [m for m in ("torch", "napari", "openvino") if m in sys.modules]
        print(worker.pid, gone, flush=True)
        sys.stdin.read()


with listening(listen):
    worker.predict(recognise_model(Path(sys.argv[1])), EngineSettings(), EngineInput(images, grid))
"""


def test_torch_never_comes_into_the_parent_and_the_process_dies_with_it(card):
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(card.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    pid, modules = parent.stdout.readline().split(maxsplit=1)
    assert modules.strip() == "[]"
    parent.kill()
    parent.communicate()
    assert wait_for_end(int(pid))
    assert left_behind(parent.pid) == []


def test_an_answer_that_nobody_took_goes_with_its_folder(tmp_path, monkeypatch):
    """A parent that was killed as its answer was written left it in memory for good."""
    folder = tmp_path / "request"
    folder.mkdir()
    state = worker_module._State()
    request = {"id": 1, "folder": str(folder)}
    worker_module._serve_request(None, request, state, io.StringIO())
    (folder / "labels").write_bytes(b"1")
    rmtree = shutil.rmtree

    def write_meanwhile(place, **words):
        rmtree(place, **words)
        monkeypatch.setattr(shutil, "rmtree", rmtree)
        folder.mkdir()
        (folder / "probability").write_bytes(b"1")

    def leave(code):
        assert code == 0

    monkeypatch.setattr(shutil, "rmtree", write_meanwhile)
    monkeypatch.setattr(os, "_exit", leave)
    worker_module._queue_requests(io.BytesIO(), state)
    assert not folder.exists()


def test_memory_that_does_not_suffice_is_told_with_numbers(card, monkeypatch):
    host = EngineHost()
    host.plan(card, ONE, GRID, None)

    def full(tile):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 7.00 GiB")

    monkeypatch.setattr(host._engine.network, "forward", full)
    with pytest.raises(OutOfMemoryError, match="16 x 16 x 16 voxels"):
        host.predict(card, ONE, EngineInput(signal_of(), GRID))


def test_other_settings_of_one_network_do_not_load_it_again(card, monkeypatch):
    host = EngineHost()
    host.plan(card, ONE, GRID, None)
    engine = host._engine
    wide = host.plan(card, EngineSettings(threads=2, step=1.0), GRID, None)
    assert host._engine is engine
    assert wide.tiles < host.plan(card, ONE, GRID, None).tiles
    half = host.plan(card, EngineSettings(most_copies=2), GRID, None)
    assert half.passes == 2
    host.close()
    assert host._engine is None
    assert engine_host.EngineHost()._engine is None


def test_a_shared_array_comes_back_bit_for_bit_and_its_folder_goes(tmp_path):
    array = np.arange(2 * 3 * 4, dtype=np.float32).reshape(2, 3, 4)[:, ::-1]
    with shared_folder(array.nbytes) as folder:
        found = fetch(folder, share(folder, "a", array))
        assert list(folder.iterdir()) == []
    assert not folder.exists()
    assert found.dtype == array.dtype
    assert np.array_equal(found, array)


def test_a_grid_comes_over_the_wire_with_the_header_that_spacing_is_read_from():
    from napari_mamamia.segmentation.model.nnunet_geometry import header_spacing
    from napari_mamamia.segmentation.worker.wire import grid_from, grid_on_wire

    header = nib.Nifti1Header()
    header.set_data_shape((4, 4, 4))
    header.set_zooms((0.8, 0.8, 2.4))  # as float32, 2.4 is more than three times 0.8
    grid = Grid((4, 4, 4), np.diag([-0.8, 0.8, 2.4, 1.0]), header.binaryblock)
    sent = grid_from(json.loads(json.dumps(grid_on_wire(grid))))
    assert sent == grid
    assert sent.nifti_header == grid.nifti_header
    thick, fine, _ = header_spacing(sent)
    assert thick / fine > 3
    assert sent.spacing_mm[0] / sent.spacing_mm[1] <= 3
