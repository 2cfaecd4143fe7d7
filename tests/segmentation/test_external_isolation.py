"""Malicious submissions: each is shown to do harm in the open, and not to do it in the room."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.stepped import Stepped

from napari_mamamia.core.choices import IsolationKind
from napari_mamamia.core.errors import ModelError
from napari_mamamia.segmentation.sandbox.isolation import find_isolation
from napari_mamamia.segmentation.sandbox.sandbox import Ending, find_interpreter

sys.path.insert(0, str(Path(__file__).parent))
import foreign
from foreign import OPEN, processes_named, run_foreign

linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@pytest.fixture(scope="module")
def room():
    """Return bubblewrap; skips with the reason where this system does not let it work."""
    found = foreign.sandbox()
    if isinstance(found, str):
        pytest.skip(found)
    return found


CALL = """
import socket
with socket.create_connection(("127.0.0.1", {port}), timeout=20) as s:
    s.sendall(b"patient data")
    s.recv(1)  # the server closes once it has noted the call
"""


def test_in_the_open_the_network_can_be_reached(tmp_path, server):
    port, calls = server
    assert run_foreign(tmp_path, CALL.format(port=port), OPEN).run.ending is Ending.FINISHED
    assert calls == [b"patient data"]


def test_the_room_has_no_network(tmp_path, room, server):
    port, calls = server
    done = run_foreign(tmp_path, CALL.format(port=port), room)
    assert done.run.ending is Ending.FAILED
    assert "predict_segmentation" in done.run.reason
    assert calls == []


# what is there is only opened for writing, so that a hole in the room costs no file
WRITE = """
done = []
for place in map(Path, {places!r}):
    try:
        place.open("r+b").close() if place.exists() else place.touch()
        done.append(str(place))
    except OSError:
        pass
(out / "done.txt").write_text("\\n".join(done))
"""


def places(tmp_path):
    inside = "/app/ingested_program"
    return [
        f"{inside}/x",
        f"{inside}/model.py",
        f"{inside}/foreign_sub/x",
        f"{inside}/foreign_sub/model.py",
        "/app/input_data/images/A_1/A_1_0000.nii.gz",
        "/app/x",
        "/app/runner.py",
        "/x",
        "/usr/x",
        "/etc/x",
        "/dev/x",
        str(Path(sys.prefix) / "x"),
        str(tmp_path / "x"),
        str(Path.home() / "mamamia_test_was_here"),
    ]


def test_in_the_open_files_beside_the_output_can_be_written(tmp_path):
    done = run_foreign(tmp_path, WRITE.format(places=[str(tmp_path / "x")]), OPEN)
    assert (done.output / "done.txt").read_text() == str(tmp_path / "x")
    assert (tmp_path / "x").exists()


def test_only_its_own_output_is_writable_in_the_room(tmp_path, room):
    phase = tmp_path / "A_1_0000.nii.gz"
    phase.write_bytes(b"voxels")
    body = WRITE.format(places=places(tmp_path))
    done = run_foreign(tmp_path, body, room, phases=[phase])
    assert done.run.ending is Ending.FINISHED, done.log
    assert (done.output / "done.txt").read_text() == ""
    assert phase.read_bytes() == b"voxels"
    assert not (tmp_path / "x").exists()
    assert sorted(p.name for p in (tmp_path / "foreign_sub").iterdir()) == ["model.py"]


READ = """
import os
found = [p for p in {places!r} if os.path.exists(p)]
found += [name for name, value in os.environ.items() if {secret!r} in value]
others = [p for p in os.listdir("/proc") if p.isdigit()]
(out / "found.txt").write_text("\\n".join(found))
(out / "others.txt").write_text(str(len(others)))
"""


def secrets(tmp_path, monkeypatch):
    secret = tmp_path / "secret.txt"
    secret.write_text("patient names")
    monkeypatch.setenv("OWN_TOKEN", "swordfish")
    own = [str(secret), str(Path(__file__)), "/etc/passwd", "/etc/hostname"]
    own += [str(entry) for entry in Path.home().iterdir() if entry.name != ".pyenv"]
    return READ.format(places=own, secret="swordfish")


def test_in_the_open_the_home_can_be_read_but_no_variable_is_passed_on(tmp_path, monkeypatch):
    done = run_foreign(tmp_path, secrets(tmp_path, monkeypatch), OPEN)
    found = (done.output / "found.txt").read_text().splitlines()
    assert str(tmp_path / "secret.txt") in found
    assert str(Path(__file__)) in found
    assert "OWN_TOKEN" not in found


def test_the_room_shows_neither_home_nor_other_files_nor_variables(tmp_path, room, monkeypatch):
    done = run_foreign(tmp_path, secrets(tmp_path, monkeypatch), room)
    assert done.run.ending is Ending.FINISHED, done.log
    assert (done.output / "found.txt").read_text() == ""
    assert int((done.output / "others.txt").read_text()) <= 4  # its own and the room's keepers


def test_a_link_in_the_submission_leads_nowhere_in_the_room(tmp_path, room):
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "names.txt").write_text("patient names")
    folder = tmp_path / "foreign_sub"
    folder.mkdir()
    (folder / "data").symlink_to(tmp_path / "private")
    (folder / "own").mkdir()
    (folder / "own" / "data").symlink_to(tmp_path / "private")
    body = """
    import glob
    (out / "found.txt").write_text(str(glob.glob("/app/**/names.txt", recursive=True)))
    """
    done = run_foreign(tmp_path, body, room)
    assert (done.output / "found.txt").read_text() == "[]"


LOOP = "while True: pass"


@linux
@pytest.mark.parametrize("is_closed", [False, True])
def test_an_endless_loop_is_ended_at_the_time_limit(tmp_path, request, is_closed):
    isolation = request.getfixturevalue("room") if is_closed else OPEN
    done = run_foreign(tmp_path, LOOP, isolation, name=f"mm_loop{is_closed:d}", seconds=1.0)
    assert done.run.ending is Ending.TIME
    assert "within the time limit of 1 s" in done.run.reason
    assert processes_named(f"mm_loop{is_closed:d}") == []


@linux
@pytest.mark.parametrize("is_closed", [False, True])
def test_a_memory_hog_is_ended_at_the_memory_limit(tmp_path, request, is_closed):
    isolation = request.getfixturevalue("room") if is_closed else OPEN
    body = """
    import time
    held = []
    for _ in range(60):
        held.append(bytearray(b"x") * 50_000_000)
        time.sleep(0.05)
    """
    done = run_foreign(tmp_path, body, isolation, memory_bytes=400_000_000)
    assert done.run.ending is Ending.MEMORY
    assert "at most 0.4 GB of memory" in done.run.reason
    assert 400_000_000 < done.run.peak_bytes < 2_500_000_000


@linux
def test_a_fork_bomb_is_ended_and_nothing_of_it_is_left(tmp_path, room):
    # bounded: where the system does not hold root, a watcher that came late costs the computer
    body = """
    import os, time
    for _ in range(300):
        try:
            if os.fork() == 0:
                time.sleep(60)
                os._exit(0)
        except OSError:
            break
    time.sleep(60)
    """
    done = run_foreign(tmp_path, body, room, name="mm_bomb", processes=40)
    assert done.run.ending is Ending.PROCESSES
    assert "at most 40 processes" in done.run.reason
    assert processes_named("mm_bomb") == []


@linux
@pytest.mark.parametrize("is_closed", [False, True])
def test_what_it_left_in_the_background_ends_with_it(tmp_path, request, is_closed):
    isolation = request.getfixturevalue("room") if is_closed else OPEN
    body = """
    import os, time
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(600)
        os._exit(0)
    os.wait()
    """
    name = f"mm_left{is_closed:d}"
    done = run_foreign(tmp_path, body, isolation, name=name)
    assert done.run.ending is Ending.FINISHED
    assert processes_named(name) == []


def test_a_gigabyte_of_print_is_cut_and_does_not_stop_it(tmp_path, room):
    body = """
    import os
    block = b"tqdm" * 2**18
    for _ in range(1024):
        left = block
        while left:
            left = left[os.write(1, left):]
    """
    done = run_foreign(tmp_path, body, room, log_bytes=100_000)
    assert done.run.ending is Ending.FINISHED
    assert len(done.log) == 100_000
    assert done.run.dropped_bytes == 2**30 - 100_000


def test_a_file_above_the_limit_cannot_be_written(tmp_path, room):
    done = run_foreign(
        tmp_path, '(out / "big.bin").write_bytes(b"x" * 3_000_000)', room, output_bytes=2_000_000
    )
    assert done.run.ending is Ending.FAILED
    assert "File too large" in done.run.reason
    assert (done.output / "big.bin").stat().st_size <= 2_000_000


def test_many_files_above_the_limit_end_it(tmp_path, room):
    body = """
    import time
    for n in range(600):
        (out / f"{n}.bin").write_bytes(b"x" * 1_000_000)
        time.sleep(0.05 if n > 9 else 0)
    """
    done = run_foreign(tmp_path, body, room, output_bytes=5_000_000)
    assert done.run.ending is Ending.OUTPUT


@linux
@pytest.mark.parametrize("is_closed", [False, True])
def test_closing_the_job_ends_everything(tmp_path, request, is_closed):
    isolation = request.getfixturevalue("room") if is_closed else OPEN
    name = f"mm_stop{is_closed:d}"
    body = f'(out / "begun").touch()\n{LOOP}'
    folder = foreign.write_submission(tmp_path / "foreign_sub", body, name)
    job = Stepped(foreign.job_of, tmp_path, folder, isolation)
    for _ in job:
        if (tmp_path / "work" / "output" / "begun").exists():
            break
    assert processes_named(name) != []
    job.close()
    assert processes_named(name) == []


PARENT = """
import sys
sys.path.insert(0, {here!r})
import foreign
from pathlib import Path
folder = Path({folder!r})
isolation = foreign.sandbox() if {is_closed} else foreign.OPEN
sys.path.insert(0, {tests!r})
from stepped import Stepped
for _ in Stepped(foreign.job_of, folder, folder / "foreign_sub", isolation):
    if (folder / "work" / "output" / "begun").exists():
        print("begun", flush=True)
"""


@linux
@pytest.mark.parametrize("is_closed", [False, True])
def test_it_ends_with_the_program_that_started_it(tmp_path, request, is_closed):
    if is_closed:
        request.getfixturevalue("room")
    name = f"mm_gone{is_closed:d}"
    foreign.write_submission(tmp_path / "foreign_sub", f'(out / "begun").touch()\n{LOOP}', name)
    code = PARENT.format(
        here=str(Path(__file__).parent),
        tests=str(Path(__file__).parents[1]),
        folder=str(tmp_path),
        is_closed=is_closed,
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as parent:
        assert parent.stdout.readline() == b"begun\n"
        assert processes_named(name)
        os.kill(parent.pid, signal.SIGKILL)
    assert wait_for_their_end(name) == []


def wait_for_their_end(name):
    """Return which processes of that name are left after 20 s; none as soon as all have ended."""
    latest = time.monotonic() + 20
    while (left := processes_named(name)) and time.monotonic() < latest:
        time.sleep(0.02)
    return left


def fake_program(folder, name, script):
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_a_bubblewrap_that_may_not_make_rooms_is_told_in_plain_words(tmp_path, monkeypatch):
    said = "bwrap: No permissions to create a new namespace"
    fake_program(tmp_path / "bin", "bwrap", f'echo "{said}" >&2; exit 1')
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}")
    check = find_isolation((IsolationKind.BUBBLEWRAP,))
    assert check.usable == ()
    (reason,) = check.reasons
    assert said in reason
    assert "user namespaces" in reason


def test_nothing_is_downloaded_for_a_container(tmp_path, monkeypatch):
    calls = tmp_path / "calls.txt"
    script = f'echo "$@" >> {calls}; case "$1" in image) exit 1;; esac'
    fake_program(tmp_path / "bin", "docker", script)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    check = find_isolation((IsolationKind.DOCKER,), image="some/image:1")
    (reason,) = check.reasons
    assert "docker pull some/image:1" in reason
    assert "pull" not in calls.read_text()


def test_a_container_has_no_network_and_one_writable_folder(tmp_path, monkeypatch):
    from napari_mamamia.segmentation.sandbox.isolation import Sandbox, container_command

    fake_program(tmp_path / "bin", "docker", 'echo "Docker version 28.2.2, build e6534b4"')
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    (docker,) = find_isolation((IsolationKind.DOCKER,), image="some/image:1").usable
    assert docker.text == "isolated by docker 28.2.2, image some/image:1"
    room = Sandbox(
        ((tmp_path / "in", "/app/in"),), (tmp_path / "out", "/app/output"), 1000, 2000, 30
    )
    line = container_command(docker, room, ["python", "/app/runner.py"], "one")
    text = " ".join(line)
    assert "--network none --read-only --cap-drop ALL" in text
    assert "--pull never" in text
    assert "--memory 2000" in text
    assert "--pids-limit 30" in text
    mounts = [line[k + 1] for k, word in enumerate(line) if word == "--mount"]
    assert mounts == [
        f"type=bind,source={tmp_path / 'in'},target=/app/in,readonly",
        f"type=bind,source={tmp_path / 'out'},target=/app/output",
    ]
    assert line[-3:] == ("some/image:1", "python", "/app/runner.py")


def test_a_python_whose_folder_holds_the_home_is_not_shown(tmp_path, monkeypatch):
    home = tmp_path / "users" / "erika"
    home.mkdir(parents=True)
    monkeypatch.setattr(Path, "home", lambda: home)
    fake_program(
        tmp_path / "users", "python", f'echo \'["/x/bin/python", "{tmp_path / "users"}", "/usr"]\''
    )
    with pytest.raises(ModelError, match="which a submission must not see"):
        find_interpreter(tmp_path / "users" / "python")
