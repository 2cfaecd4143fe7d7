"""Fixtures that several rooms share."""

import gc
import gzip
import os
import shutil
import socket
import sys
import tempfile
import threading
import tomllib
import zipfile
from collections.abc import Sequence
from contextlib import nullcontext
from importlib.metadata import entry_points
from io import StringIO
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import nibabel as nib
import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, settings
from pytestqt.qtbot import QtBot
from tests import users_files

from napari_mamamia.core import progress
from napari_mamamia.core.program import garbage
from napari_mamamia.core.progress import report_progress

# napari reads this once, at its first import
os.environ.setdefault("NAPARI_CONFIG", str(Path(tempfile.mkdtemp()) / "settings.yaml"))

# Each test has its own (`own_preferences`); this is for what a test left at work when it ended: a
# case list that came too late wrote the user's own preferences.
BETWEEN_TESTS = Path(tempfile.mkdtemp())
for variable, part in (("CONFIG", ""), ("MODELS", "models"), ("CACHE", "cache")):
    os.environ[f"MAMAMIA_{variable}_DIR"] = str(BETWEEN_TESTS / part)
sys.addaudithook(users_files.refuse_writing)

# On a busy computer an example takes as long as it takes: no test says how fast.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")

REAL_DATA = Path(os.environ.get("MAMAMIA_REAL_DATA", Path(__file__).parents[2] / "shared" / "data"))


@pytest.fixture(scope="session")
def real_data():
    """Return a function from a folder name to its path; skips where the files are absent."""

    def find(name: str) -> Path:
        folder = REAL_DATA / name
        if not folder.exists():
            pytest.skip(f"real files are absent: {folder} (set MAMAMIA_REAL_DATA)")
        return folder

    return find


ROOMS = (
    *("window", "door", "cli", "fuzz", "fault", "widgets", "services", "segmentation"),
    *("library", "docs", "test_docstring_examples.py", "platforms", "smartpaint", "scoring"),
    *("kinetics", "metrics", "phantom", "io"),
)
"""The folders (and a file) of the tests that take longest, the longest first."""


def pytest_configure(config):
    """Let each of several workers begin to collect at another folder.

    pytest puts assertions in words when it first reads a file, 20 s for all, and keeps that: so
    each worker does it for some of the files, and finds those of the others done.
    """
    _require_current_installation()
    worker = getattr(config, "workerinput", None)
    here = Path(__file__).parent
    if worker is None or [Path(one).resolve() for one in config.args] != [here]:
        return
    parts = sorted({path.relative_to(here).parts[0] for path in here.rglob("test_*.py")})
    first = int(worker["workerid"].removeprefix("gw")) * len(parts) // worker["workercount"]
    config.args = [str(here / part) for part in parts[first:] + parts[:first]]


def _require_current_installation():
    """Refuse to test an editable installation whose entry points are older than pyproject.toml."""
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))
    for group, wanted in project["project"]["entry-points"].items():
        installed = {point.name for point in entry_points(group=group)}
        if not wanted.keys() <= installed:
            raise pytest.UsageError(
                f"the installation lacks entry points of {group} that pyproject.toml has: run  "
                "python -m pip install --no-deps -e ."
            )


def pytest_collectstart():
    """Collect no garbage until all is read: there is little, and all would be looked at again."""
    gc.disable()


def pytest_collection_modifyitems(items):
    """Begin with the long files: whoever shares the work then has short ones left at the end.

    Modules whose tests share one window come one after the other, and share it too.
    """
    here = Path(__file__).parent

    def may_keep(item):
        marker = item.get_closest_marker("one_window")
        return marker is not None and not marker.kwargs

    def rank(item):
        inside = item.path.relative_to(here).parts if item.path.is_relative_to(here) else ("",)
        at = ROOMS.index(inside[0]) if inside[0] in ROOMS else len(ROOMS)
        return at, not may_keep(item), item.path

    items.sort(key=rank)


def pytest_collection_finish():
    """Leave the million objects of all tests and modules out of collections: 0.3 s each."""
    gc.freeze()
    gc.enable()


def pytest_sessionfinish(session):
    """Fail where something wrote the user's own files after the last test."""
    if users_files.take_refused():
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture(scope="session", autouse=True)
def garbage_left_out():
    """Keep those objects out for the whole run.

    The program takes back all that is left out, theirs and ours, when a window closes or a long job
    ends: each time one collection more of everything, 1 s. So it leaves out and takes back nothing;
    that it does is tested with `real_freezing`.
    """
    kept = SimpleNamespace(**vars(gc) | {"freeze": lambda: None, "unfreeze": lambda: None})
    with pytest.MonkeyPatch.context() as patch:
        for module in (garbage, progress):
            patch.setattr(module, "gc", kept)
        yield


@pytest.fixture(scope="module")
def real_freezing(garbage_left_out):
    """Let the program leave out of collections what it does, for a module's tests."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (garbage, progress):
            patch.setattr(module, "gc", gc)
        yield
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def disk_not_awaited():
    """Leave what is written to the system, which brings it to the disk when it likes.

    Forcing it costs 3 to 30 ms a file on a busy disk, and shows only where the power fails. A
    handle that is not open is refused as ever; what a refused forcing does, tests say themselves.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", os.fstat)
        yield


PATIENCE_MS = int(os.environ.get("MAMAMIA_PATIENCE_MS", "120000"))
"""How long is waited for what must happen: a busy computer is slow, and no test says how fast."""


class PatientBot(QtBot):
    """pytest-qt's, with one patience for all tests: no limit of a test's own can be too short."""

    def waitUntil(self, callback, *, timeout=PATIENCE_MS):
        """Wait until `callback` holds; a shorter `timeout` is not obeyed.

        What is looked at in a list that is still empty is not there yet.
        """

        def holds():
            try:
                return callback()
            except (AttributeError, IndexError) as error:
                if isinstance(error, AttributeError) and "'NoneType' object" not in str(error):
                    raise
                raise AssertionError(f"not there: {error}") from error  # pytest-qt waits for it

        super().waitUntil(holds, timeout=max(timeout, PATIENCE_MS))

    wait_until = waitUntil


@pytest.fixture
def qtbot(qapp, request):
    """Return pytest-qt's bot, patient."""
    return PatientBot(request)


@pytest.fixture(scope="session")
def picture_folder(tmp_path_factory):
    """Return where pictures go: the folder of MAMAMIA_SCREENSHOTS, else one of the run."""
    named = os.environ.get("MAMAMIA_SCREENSHOTS")
    folder = Path(named) if named else tmp_path_factory.mktemp("screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def preference_folders(tmp_path_factory):
    """Return a new folder for each test; `mktemp` looks at all that there are, 2 ms for 2700."""
    parent = tmp_path_factory.mktemp("preferences")
    return (parent / str(number) for number in count())


@pytest.fixture(autouse=True)
def own_preferences(preference_folders, monkeypatch):
    """Keep the user's own preferences out of tests and tests out of them."""
    folder = next(preference_folders)
    folder.mkdir()
    monkeypatch.setenv("MAMAMIA_CONFIG_DIR", str(folder))
    monkeypatch.setenv("MAMAMIA_MODELS_DIR", str(folder / "models"))
    monkeypatch.setenv("MAMAMIA_CACHE_DIR", str(folder / "cache"))
    yield folder
    assert users_files.take_refused() == [], "a test would have written the user's own files"


@pytest.fixture
def quick_figures(monkeypatch):
    """Put a dot in the place of each figure of a report or a page: for tests of numbers.

    Matplotlib takes 2 s for the figures of one run. They are looked at in test_report, test_kill,
    test_batch_score, the window's test of a batch at night and those of kinetics; those of a
    ranking in test_leaderboard and, proved again, in test_challenge_rank. So is the process that
    writes the .parquet table beside a thread, 1.2 s a run: here it is written in the thread.
    """
    from napari_mamamia.features.classifiers.services.detection import score_detection
    from napari_mamamia.scoring.report import drawing as drawings
    from napari_mamamia.services.batch import in_subprocess
    from napari_mamamia.services.score import report as score_report

    def draw(drawing):
        report_progress(0, 1, "Drawing")
        return draw_dot(drawing)

    def draw_dot(drawing):
        return drawings.Drawn(DOT, "<svg></svg>" if drawing.has_svg else "")

    monkeypatch.setattr(drawings, "draw_now", draw_dot)
    monkeypatch.setattr(score_report, "drawing_place", lambda: nullcontext(draw))
    monkeypatch.setattr(score_detection, "drawing_place", lambda: nullcontext(draw))
    monkeypatch.setattr(in_subprocess, "current_thread", threading.main_thread)


@pytest.fixture(scope="session", autouse=True)
def noise_judged_once():
    """Judge equal volumes once in a run: a plain function of arrays that most imports begin with.

    The studies of the protocols have their volumes in common. `find_borrowed` itself is tested in
    test_dicom_noise, which calls it by its own name.
    """
    from napari_mamamia.io.exam import looks

    known, judge = {}, looks.find_borrowed

    def find(slabs, steps):
        key = (slabs.tobytes(), slabs.shape, slabs.dtype.str, tuple(steps))
        if key not in known:
            known[key] = judge(slabs, steps)
        return known[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(looks, "find_borrowed", find)
        yield


DOT = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d4944415478da63"
    "64f8cf500f0003860180e2b1d7b10000000049454e44ae426082"
)
"""A PNG file of one pixel."""


# A small data set made with nibabel, not with our own writer: three cases of a body with one blob
# that enhances. The voxels of the blob are the reference.
BLOB = (slice(3, 6), slice(14, 20), slice(20, 26))
SHAPE = (8, 32, 48)
AFFINE = np.diag([-0.8, 0.8, 2.0, 1.0])
TIMES_S = (0.0, 90.0, 180.0, 420.0)


def _phase(index: int, rng: np.random.Generator) -> np.ndarray:
    volume = rng.normal(20, 3, SHAPE)
    volume[:, 4:, 6:42] += 180
    if index:
        volume[BLOB] += (0, 260, 240, 190)[index]
    return np.clip(volume, 0, None).astype(np.int16)


def contents(path):
    """Return what a file holds, a .gz unpacked, alone or in a .zip.

    isal's compressor gives other bytes for equal voxels now and then (1 of 450 files measured).
    """
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            return [
                (m.filename, m.date_time, _unpacked(m.filename, archive.read(m)))
                for m in archive.infolist()
            ]
    return _unpacked(path.name, path.read_bytes())


def _unpacked(name, data):
    return gzip.decompress(data) if name.endswith(".gz") else data


def write_nifti(path: Path, array_zyx: np.ndarray, affine: np.ndarray = AFFINE) -> Path:
    """Write an array with nibabel, sform and qform set, units mm."""
    path.parent.mkdir(parents=True, exist_ok=True)
    image = nib.Nifti1Image(array_zyx.transpose(), affine)
    image.header.set_xyzt_units("mm", "sec")
    image.set_sform(affine, code=1)
    image.set_qform(affine, code=1)
    nib.save(image, path)
    return path


def write_small_data_set(root: Path, case_ids: Sequence[str] = ("A_1", "A_2", "B_1")) -> Path:
    """Write three cases in the MAMA-MIA layout."""
    rng = np.random.default_rng(7)
    reference = np.zeros(SHAPE, dtype=np.uint8)
    reference[BLOB] = 1
    rows = ["patient_id,age,menopause,breast_density,acquisition_times"]
    for case_id in case_ids:
        for k in range(4):
            write_nifti(root / "images" / case_id / f"{case_id}_{k:04d}.nii.gz", _phase(k, rng))
        write_nifti(root / "segmentations" / "expert" / f"{case_id}.nii.gz", reference)
        rows.append(f'{case_id},51,post,b,"[0, 90, 180, 420]"')
    pd.read_csv(StringIO("\n".join(rows))).to_excel(
        root / "clinical_and_imaging_info.xlsx", index=False
    )
    return root


@pytest.fixture(scope="session")
def small_data_set_as_written(tmp_path_factory):
    """Return such a folder of three cases, made once: 70 ms; a copy takes 3."""
    return write_small_data_set(tmp_path_factory.mktemp("written") / "my data set")


@pytest.fixture
def small_data_set(tmp_path, small_data_set_as_written):
    """Return the folder of three cases A_1, A_2, B_1 in the MAMA-MIA layout: the test's own."""
    own = tmp_path / "my data set"
    return shutil.copytree(small_data_set_as_written, own, copy_function=shutil.copyfile)


@pytest.fixture(scope="module")
def data_set_of_module(tmp_path_factory):
    """Return such a folder for all tests of a module: none may change it."""
    return write_small_data_set(tmp_path_factory.mktemp("data") / "my data set")


@pytest.fixture
def server():
    """Return the port of a server of this computer and the list of calls that it got."""
    calls = []
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(0.2)

        def take():
            while listening.fileno() >= 0:
                try:
                    connection, _ = listening.accept()
                except TimeoutError:
                    continue
                except OSError:
                    return
                calls.append(connection.recv(100))
                connection.close()

        thread = threading.Thread(target=take)
        thread.start()
        yield listening.getsockname()[1], calls
    thread.join()
