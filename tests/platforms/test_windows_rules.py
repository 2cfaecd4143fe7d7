"""The real commands under Windows' rules for files, as far as another system can hold them.

``windows/sitecustomize.py`` gives our modules Windows' Python (no fcntl, fork, getuid, O_NOFOLLOW,
SIGKILL...) and the process Windows' files (an open file stays, names differ by more than case).
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pydicom")
sys.path.insert(0, str(Path(__file__).parents[1] / "fault"))
from trials import Trials
from worlds import COMMANDS

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc tells who has a file open")

RULES = Path(__file__).parent / "windows"
OF_LINUX = ("run-submission (closed room)",)
BY_DAY = ("replay", "import (zip)", "export")


def under_windows(code, *words, **more):
    """Run Python lines in a process of its own; return what it printed."""
    answer = subprocess.run(
        [sys.executable, "-P", "-c", code, *map(str, words)],
        env=dict(os.environ, PYTHONPATH=str(RULES), **more),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    return answer.stdout.splitlines()


@pytest.fixture(scope="module")
def ways(tmp_path_factory):
    """The commands as they are here, and as they are there."""
    here = Trials(tmp_path_factory.mktemp("here"))
    return here, Trials(tmp_path_factory.mktemp("there"), python_path=str(RULES))


def without_chance(names):
    """Names of files without what two studies and two runs have of their own: id, process."""
    return sorted(re.sub(r"\b(\d+-[0-9a-f]{8}|[0-9a-f]{16})\b", "*", name) for name in names)


def same_there_and_again(ways, way):
    here, there = ways
    usual, found = here.undisturbed(way), there.undisturbed(way)
    assert "Traceback" not in there.said
    assert found.code == usual.code, there.said[-600:]
    if way.command == "pacs fetch":  # names of files by chance
        assert len(found.wrote) == len(usual.wrote)
    else:
        assert without_chance(found.wrote) == without_chance(usual.wrote)
    world = there.folder / way.name.replace(" ", "_")
    more = [word for word in way.again if word not in there.words(way)]
    answer = there.run(world, [*there.words(way), *more])
    assert "Traceback" not in there.said
    assert answer["code"] == usual.code or "error: " in there.said, there.said[-600:]
    assert [*world.rglob(".mamamia-*")] == []


@pytest.mark.parametrize("name", BY_DAY)
def test_a_command_does_the_same_under_windows_rules(ways, name):
    same_there_and_again(ways, next(way for way in COMMANDS if way.name == name))


@pytest.mark.night
@pytest.mark.parametrize(
    "way",
    [way for way in COMMANDS if way.name not in (*BY_DAY, *OF_LINUX)],
    ids=lambda way: way.name,
)
def test_every_other_command_does_too(ways, way):
    same_there_and_again(ways, way)


def test_the_rules_hold_so_that_a_command_can_break_them(tmp_path):
    said = under_windows(
        """
import os, sys
from pathlib import Path
import napari_mamamia.core.program.system as system
folder = Path(sys.argv[1])
print(system.CAN_REPLACE_OPEN_FILES, hasattr(system, "fcntl"), hasattr(system.os, "fork"))
(folder / "new").write_text("new")
stream = (folder / "old").open("w")
def refused(deed):
    try:
        deed()
    except OSError as error:
        print(type(error).__name__)
    else:
        print("done")
refused(lambda: (folder / "new").replace(folder / "old"))
refused(lambda: (folder / "old").unlink())
stream.close()
refused(lambda: (folder / "new").rename(folder / "old"))
refused(lambda: (folder / "aux.txt").write_text("x"))
refused(lambda: (folder / "a:b").write_text("x"))
refused(lambda: (folder / "link").symlink_to("old"))
(folder / "OLD").write_text("other letters")
print((folder / "old").read_text(), sorted(path.name for path in folder.iterdir()))
refused(lambda: (folder / "new").replace(folder / "old"))
""",
        tmp_path,
    )
    assert said == [
        "False False False",
        *("PermissionError", "PermissionError", "FileExistsError", "OSError", "OSError", "OSError"),
        "other letters ['new', 'old']",
        "done",
    ]


SAVING = """
import sys, threading, time
from pathlib import Path
from napari_mamamia.core.errors import SaveError
from napari_mamamia.io.files.save import write_text_atomically
target = Path(sys.argv[1])
stream = target.open()
if sys.argv[2] == "shortly":
    threading.Timer(0.3, stream.close).start()
try:
    write_text_atomically(target, "new", overwrite=True)
except SaveError as error:
    print(error)
"""


@pytest.mark.parametrize("how_long", ["shortly", "for good"])
def test_a_file_that_another_has_open_is_replaced_when_it_is_closed_and_else_told(
    tmp_path, how_long
):
    target = tmp_path / "mask.txt"
    target.write_text("old")
    said = under_windows(SAVING, target, how_long)
    assert [path.name for path in tmp_path.iterdir()] == ["mask.txt"]
    if how_long == "shortly":
        assert target.read_text() == "new"
        assert said == []
    else:
        assert target.read_text() == "old"
        assert "another program may have it open (close it there)" in said[0]
        assert "nothing was written" in said[0]


def test_a_path_that_is_too_long_for_windows_is_told_as_such(tmp_path):
    said = under_windows(
        """
import sys
from pathlib import Path
from napari_mamamia.core.program.system import refusal_remedy
long = Path(sys.argv[1], *["a" * 50] * 6, "mask.nii.gz")
print(refusal_remedy(long, FileNotFoundError(2, "")))
print(refusal_remedy(Path(sys.argv[1], "mask.nii.gz"), FileNotFoundError(2, "")) == "")
""",
        tmp_path,
    )
    assert said[0].startswith("its path has more than 259 characters")
    assert said[1] == "True"


def test_what_an_ended_process_left_is_swept_there_and_a_living_ones_stays(tmp_path):
    said = under_windows(
        """
import subprocess, sys
from pathlib import Path
from napari_mamamia.core.program.owner import Owner, this_process
from napari_mamamia.io.files.own_paths import sweep
folder = Path(sys.argv[1])
own = this_process()
ended = subprocess.Popen([sys.executable, "-c", ""])
ended.wait()
for pid in (own.pid, ended.pid):
    (folder / f".mamamia-{Owner(own.host, pid, '0')}-aaaa.part").touch()
sweep(folder)
print(own.pid, *(path.name.split("-")[2] for path in folder.iterdir()))
""",
        tmp_path,
    )
    own, *left = said[0].split()
    assert left == [own]


@pytest.mark.parametrize("kind", ["a secret", "a journal", "a lock"])
def test_bytes_are_written_as_they_are_where_text_files_are_another_kind(
    tmp_path, monkeypatch, kind
):
    """Without O_BINARY Windows writes two bytes for each 0x0A: one secret in eight was broken."""
    from napari_mamamia.io.dicom import facts
    from napari_mamamia.io.files.append_file import AppendFile
    from napari_mamamia.io.files.one_writer import wait_for_turn

    monkeypatch.setattr(os, "O_BINARY", os.O_CLOEXEC, raising=False)
    flags, open_file = [], os.open
    monkeypatch.setattr(
        os, "open", lambda path, flag, *rest: flags.append(flag) or open_file(path, flag, *rest)
    )
    target = tmp_path / "file"
    if kind == "a secret":
        facts._make_secret(target)
        assert len(target.read_bytes()) == 32
    elif kind == "a journal":
        AppendFile(target, keep=True).close()
    else:
        with wait_for_turn(target):
            pass
    made = [flag for flag in flags if flag & os.O_CREAT]
    assert made
    assert all(flag & os.O_CLOEXEC for flag in made)
