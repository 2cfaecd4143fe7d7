"""One launcher for all child processes: what they get, where they start, how they end."""

import ast
import json
import os
import select
import subprocess
import sys
from pathlib import Path

import pytest
from tests.source import SOURCE, modules_with, words_of

import napari_mamamia
from napari_mamamia.core.program.child_environment import (
    child_environment,
    find_program,
    leave_out_current_folder,
    module_folders,
)
from napari_mamamia.core.program.child_process import (
    answer_of,
    end_group,
    end_silent,
    python_command,
    start,
)

ENDINGS = ("l", "le", "lp", "lpe", "v", "ve", "vp", "vpe")
STARTERS = {
    "subprocess": None,  # all of it
    "multiprocessing": None,
    "pty": None,
    "_posixsubprocess": None,
    "os": {
        *("system", "popen", "fork", "forkpty", "posix_spawn", "posix_spawnp", "startfile"),
        *(f"exec{how}" for how in ENDINGS),
        *(f"spawn{how}" for how in ENDINGS),
    },
    "shutil": {"which"},
    "asyncio": {"create_subprocess_exec", "create_subprocess_shell"},
    "concurrent.futures": {"ProcessPoolExecutor"},
    "qtpy.QtCore": {"QProcess"},
    "distributed": {"LocalCluster"},
    "webbrowser": None,
}  # fmt: skip
ALLOWED = {
    "core/program/child_process.py": {"subprocess", "os.execve"},
    "segmentation/sandbox/runner.py": {"os.fork"},  # in the room, nothing of ours is there
    "features/challenge/codabench_score.py": {"subprocess"},  # a program of its own, in a container
}


NAMED = words_of(set().union(*(names or {module} for module, names in STARTERS.items())))


def starters_in(tree):
    """Return what a module uses of what starts processes or looks for programs."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if STARTERS.get(alias.name, 0) is None}
        elif isinstance(node, ast.ImportFrom) and node.module in STARTERS:
            names = {alias.name for alias in node.names}
            wanted = STARTERS[node.module]
            found |= {f"{node.module}.{n}" for n in names & (names if wanted is None else wanted)}
        elif isinstance(node, ast.Attribute):
            module = getattr(node.value, "id", "")
            if node.attr in (STARTERS.get(module) or ()):
                found.add(f"{module}.{node.attr}")
    return found


def test_no_other_module_starts_a_process_or_looks_for_a_program():
    found = {
        path.relative_to(SOURCE).as_posix(): used
        for path, tree in modules_with(words_of(one.split(".")[0] for one in STARTERS), NAMED)
        if (used := starters_in(tree))
    }
    assert found == ALLOWED


@pytest.mark.parametrize(
    "text",
    [
        "import subprocess",
        "from subprocess import run",
        "import os\nos.execv('a', [])",
        "from os import fork",
        "import shutil\nshutil.which('git')",
        "from multiprocessing import Process",
        "from qtpy.QtCore import QProcess",
    ],
)
def test_the_search_for_starters_sees_each_way(text):
    assert starters_in(ast.parse(text))


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Stand in a folder of somebody else's."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


ASK = """
import json, os, sys
print(json.dumps({"path": sys.path, "cwd": os.getcwd(), "variables": dict(os.environ),
                  "session": os.getsid(0), "pid": os.getpid(), "safe": sys.flags.safe_path}))
"""


@pytest.fixture
def told(here, monkeypatch):
    """Return what a Python child says of itself, started from a folder of somebody else's."""
    (here / "said.py").write_text("raise SystemExit('run')")
    own = here.parent / "own"
    own.mkdir()
    (own / "said.py").write_text(ASK)
    monkeypatch.syspath_prepend(str(own))
    monkeypatch.syspath_prepend(str(here))
    monkeypatch.syspath_prepend("")
    for name, value in {
        "LD_PRELOAD": "", "PYTHONSTARTUP": "x.py", "MPLBACKEND": "module://x",
        "OWN_TOKEN": "secret", "DISPLAY": ":7", "MAMAMIA_CONFIG_DIR": "/c", "QT_SCALE_FACTOR": "2",
        "OMP_NUM_THREADS": "1", "LC_ALL": "C.UTF-8", "PATH": f".::{here}:/usr/bin:bin",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    answer = answer_of(python_command("said"), 60)
    assert answer.is_good, answer
    return json.loads(answer.said)


def test_a_child_python_starts_elsewhere_and_finds_what_this_one_finds(told, here):
    assert told["safe"]
    assert told["cwd"] == "/"
    assert str(here) not in told["path"]
    assert "" not in told["path"]
    assert str(here.parent / "own") in told["path"]
    assert str(Path(napari_mamamia.__file__).parents[1]) in told["path"]


def test_a_child_gets_a_session_of_its_own_and_an_allow_list_of_variables(told):
    assert told["session"] == told["pid"] != os.getsid(0)
    variables = told["variables"]
    for name in ("LD_PRELOAD", "PYTHONSTARTUP", "MPLBACKEND", "OWN_TOKEN"):
        assert name not in variables
    for name in ("DISPLAY", "MAMAMIA_CONFIG_DIR", "QT_SCALE_FACTOR", "OMP_NUM_THREADS", "LC_ALL"):
        assert variables[name] == os.environ[name]
    assert variables["PATH"] == "/usr/bin"
    assert variables["PYTHONSAFEPATH"] == "1"


def test_programs_of_the_current_folder_are_not_found(here, monkeypatch):
    (here / "tool").write_text("#!/bin/sh\n")
    (here / "tool").chmod(0o755)
    for path in (".", "", f":{here}", "../elsewhere"):
        monkeypatch.setenv("PATH", path)
        assert find_program("tool") is None
    monkeypatch.chdir(here.parent)
    monkeypatch.setenv("PATH", str(here))
    assert find_program("tool") == str(here / "tool")
    (here / "tool").chmod(0o644)
    assert find_program("tool") is None


def test_a_system_folder_that_one_stands_in_still_counts(monkeypatch):
    monkeypatch.chdir("/usr/bin")
    monkeypatch.setenv("PATH", "/usr/bin")
    assert find_program("env") == "/usr/bin/env"


def test_standing_in_the_source_folder_it_is_still_found(monkeypatch):
    monkeypatch.chdir(SOURCE.parent)
    monkeypatch.setattr(sys, "path", ["", str(SOURCE.parent), "relative"])
    assert module_folders() == (str(SOURCE.parent),)


def test_the_own_process_lets_go_of_the_current_folder(here, monkeypatch):
    monkeypatch.setattr(sys, "path", ["", str(here), "/usr/lib"])
    monkeypatch.setenv("PATH", ".:/usr/bin:")
    monkeypatch.setenv("LD_LIBRARY_PATH", ":/opt/lib")
    monkeypatch.setenv("PYTHONSAFEPATH", "")
    leave_out_current_folder()
    assert sys.path == ["/usr/lib"]
    assert os.environ["PATH"] == "/usr/bin"
    assert os.environ["LD_LIBRARY_PATH"] == "/opt/lib"
    assert os.environ["PYTHONSAFEPATH"] == "1"


def test_a_folder_that_was_removed_is_no_hindrance(here, monkeypatch):
    here.rmdir()
    monkeypatch.setenv("PATH", "/usr/bin")
    assert child_environment()["PATH"] == "/usr/bin"


def test_a_program_without_its_whole_path_is_refused():
    with pytest.raises(ValueError, match="to be absolute, but got ls"):
        start(("ls",))


def test_a_program_that_does_not_answer_is_ended_with_what_it_started(tmp_path):
    code = f"sleep 99 & echo $! $$ > '{tmp_path / 'pids'}'; sleep 99"
    answer = answer_of(("/bin/sh", "-c", code), 3)
    assert answer.problem == "it did not finish within 3 s"
    assert not answer.is_good
    pids = [int(word) for word in (tmp_path / "pids").read_text().split()]
    assert len(pids) == 2
    assert all(has_ended(pid) for pid in pids)


def has_ended(pid):
    """Wait until a process has ended, at most 20 s: the kernel ends orphans when it gets to it."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], 20)[0])
    finally:
        os.close(descriptor)


def test_what_is_no_program_is_told():
    assert "No such file" in answer_of(("/no/such/program",), 1).problem
    assert answer_of(("/usr/bin/false",), 5).code == 1


def test_an_ended_child_has_closed_streams():
    process = start((sys.executable, "-c", "input()"))
    end_group(process)
    assert process.returncode is not None
    assert process.stdin.closed
    assert process.stdout.closed


BECOME = """
import sys
from pathlib import Path
from napari_mamamia.core.program.child_process import become
print("before")
become(("/bin/sh", "-c", 'echo "$$ $(pwd) $A"; exit 5'), {"A": "b"}, Path("/usr"))
"""


def test_a_program_takes_the_place_of_this_one():
    with subprocess.Popen([sys.executable, "-c", BECOME], stdout=subprocess.PIPE) as process:
        said = process.stdout.read().decode()
    assert said == f"before\n{process.pid} /usr b\n"
    assert process.returncode == 5


def closing(then):
    """Start a process that closes its pipe at once, and then does something."""
    return start((sys.executable, "-c", f"import os, time; os.close(1); {then}"))


def test_a_silent_process_gets_the_moment_to_end_by_itself():
    process = closing("time.sleep(0.3); os._exit(7)")
    assert process.stdout.read() == b""
    assert end_silent(process, 20.0) == 7


def test_a_silent_process_that_goes_on_is_ended_and_has_no_code_of_its_own():
    process = closing("time.sleep(600)")
    assert process.stdout.read() == b""
    assert end_silent(process, 0.0) is None
    assert process.poll() is not None
