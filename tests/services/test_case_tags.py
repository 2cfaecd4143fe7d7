"""A person's own tags: noted one by one, never lost, found again in tables."""

import multiprocessing

import pytest

from napari_mamamia.core.errors import CaseError
from napari_mamamia.io.case_tags import TAGS_NAME
from napari_mamamia.io.workspace import Workspace
from napari_mamamia.services.case_tags import (
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
    path = workspace.root / TAGS_NAME
    with path.open("ab") as stream:
        stream.write(b'{"check":"0000')
    assert shown(workspace) == [("A", "clip", "Ana")]
    tag_case(workspace, "Ana", "B", "implant")
    assert shown(workspace) == [("A", "clip", "Ana"), ("B", "implant", "Ana")]


def _note_many(root, reader):
    for number in range(15):
        tag_case(Workspace(root), reader, f"C{number}", "clip")


def test_two_windows_on_one_workspace_lose_no_tag(workspace):
    spawn = multiprocessing.get_context("fork")
    others = [
        spawn.Process(target=_note_many, args=(workspace.root, name)) for name in ("Ana", "Ben")
    ]
    for other in others:
        other.start()
    for other in others:
        other.join()
    assert len(read_tags(workspace)) == 30
