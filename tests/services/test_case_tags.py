"""A person's own tags: noted one by one, never lost, found again in tables."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

import pytest

from napari_mamamia.core.errors import CaseError
from napari_mamamia.io.workspace import event_store
from napari_mamamia.io.workspace.case_tags import TAGS_FOLDER
from napari_mamamia.io.workspace.event_store import read_events
from napari_mamamia.io.workspace.workspace import Workspace
from napari_mamamia.services.score.case_tags import (
    KNOWN_TAGS,
    joined_tags,
    read_tags,
    split_tags,
    tag_case,
    tags_of,
)


@pytest.fixture
def workspace(tmp_path):
    return Workspace(tmp_path / "workspace")


def shown(workspace):
    return [(tag.case_id, tag.tag, tag.reader) for tag in read_tags(workspace)]


def test_a_workspace_without_notes_has_no_tags(workspace):
    assert read_tags(workspace) == ()
    assert not workspace.root.exists()


def test_a_tag_is_found_again_with_its_reader_and_time(workspace):
    made = tag_case(workspace, "Ana", "A", "implant")
    assert read_tags(workspace) == (made,)
    assert (made.case_id, made.tag, made.reader) == ("A", "implant", "Ana")
    assert made.created.endswith("+00:00")


def test_a_tag_can_be_taken_back_where_the_other_computers_clock_is_ahead(workspace, monkeypatch):
    class Ahead(datetime):
        @classmethod
        def now(cls, zone=None):
            return datetime.now(zone) + timedelta(hours=1)

    with monkeypatch.context() as there:
        there.setattr(event_store, "datetime", Ahead)
        there.setattr(event_store, "_RUN", "another run")
        tag_case(workspace, "Ana", "A", "implant")
    tag_case(workspace, "Ana", "A", "implant", False)
    assert shown(workspace) == []


def test_taking_a_tag_back_leaves_those_of_other_readers(workspace):
    tag_case(workspace, "Ana", "A", "clip")
    tag_case(workspace, "Ben", "A", "clip")
    tag_case(workspace, "Ana", "A", "clip", on=False)
    assert shown(workspace) == [("A", "clip", "Ben")]


def test_setting_a_tag_twice_keeps_the_first_note(workspace):
    first = tag_case(workspace, "Ana", "A", "clip")
    tag_case(workspace, "Ana", "a", "Clip")
    assert read_tags(workspace) == (first,)


def test_a_known_tag_is_spelled_as_known_and_free_text_as_typed(workspace):
    tag_case(workspace, "Ana", "A", "  Non-Mass   Enhancement ")
    tag_case(workspace, "Ana", "A", "Fat  necrosis")
    assert [tag for _, tag, _ in shown(workspace)] == [KNOWN_TAGS[2], "Fat necrosis"]


@pytest.mark.parametrize(
    ("tag", "why"), [("", "empty"), ("a; b", "semicolon"), ("x" * 81, "81"), ("a\x00", "control")]
)
def test_a_tag_that_no_table_can_hold_is_refused(workspace, tag, why):
    with pytest.raises(CaseError, match=why):
        tag_case(workspace, "Ana", "A", tag)
    assert shown(workspace) == []


def test_tags_of_cases_join_readers_known_ones_first(workspace):
    for reader, tag in (("Ana", "zebra"), ("Ana", "clip"), ("Ben", "implant"), ("Ben", "Zebra")):
        tag_case(workspace, reader, "a_1", tag)
    found = tags_of(workspace, ["A_1", "B"])
    assert list(found) == ["A_1"]
    assert found["A_1"][:2] == ("implant", "clip")
    assert [tag.casefold() for tag in found["A_1"][2:]] == ["zebra"]
    assert split_tags(joined_tags(found["A_1"])) == found["A_1"]


def test_a_line_that_a_crash_tore_costs_only_itself(workspace):
    tag_case(workspace, "Ana", "A", "clip")
    (path,) = (workspace.root / TAGS_FOLDER / "Ana").iterdir()
    with path.open("ab") as stream:
        stream.write(b'{"check":"0000')
    assert shown(workspace) == [("A", "clip", "Ana")]
    tag_case(workspace, "Ana", "B", "implant")
    assert shown(workspace) == [("A", "clip", "Ana"), ("B", "implant", "Ana")]


def test_threads_of_one_window_lose_no_tag(workspace):
    with ThreadPoolExecutor(8) as pool:
        for number in range(64):
            pool.submit(tag_case, workspace, "Ana", f"C{number}", "clip")
    assert len(read_tags(workspace)) == 64


_TAG_MANY = """
import sys
from pathlib import Path
if sys.argv[3] == "without locks":
    import fcntl, errno
    def refuse(handle, operation):
        raise OSError(errno.ENOLCK, "No locks available")
    fcntl.flock = refuse
from napari_mamamia.io.workspace.event_store import read_events
from napari_mamamia.io.workspace.workspace import Workspace
from napari_mamamia.services.score.case_tags import tag_case
workspace = Workspace(Path(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
for number in range(100):
    tag_case(workspace, sys.argv[2], f"C{number}", f"note {number % 7}")
"""


@pytest.mark.door
@pytest.mark.parametrize(
    "locks", [pytest.param("with locks", marks=pytest.mark.night), "without locks"]
)
def test_four_programs_that_tag_at_once_lose_no_tag_and_refuse_none(workspace, locks):
    """As on Windows and on shares that have no locks; two of them are the same reader."""
    programs = [
        subprocess.Popen(
            [sys.executable, "-P", "-c", _TAG_MANY, str(workspace.root), reader, locks],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for reader in ("Ana", "Ana", "Ben", "Cem")
    ]
    for program in programs:
        assert program.stdout.readline() == "ready\n"
    for program in programs:
        program.stdin.write("go\n")
        program.stdin.flush()
    for program in programs:
        _, said = program.communicate(timeout=120)
        assert (program.returncode, said) == (0, "")
    events = read_events(workspace.root / TAGS_FOLDER)
    assert len(events.events) == 400
    assert events.problems == ()
    assert len(read_tags(workspace)) == 300  # Ana noted the same twice
