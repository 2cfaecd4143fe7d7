"""The one door to a share: errands, their end, their silence; and that there is no other door."""

import ast
import itertools
import threading
from pathlib import Path

import pytest

import napari_mamamia
from napari_mamamia.core.progress import Cancelled, listening, report_progress
from napari_mamamia.features.review.io.share import Share, SilentShareError

SOURCE = Path(napari_mamamia.__file__).parent


@pytest.fixture
def hung(tmp_path):
    """A share with an errand that hangs until the test sets the event."""
    ends = threading.Event()
    share = Share(tmp_path, answer_s=0.02, file_s=0.02)
    with pytest.raises(SilentShareError, match="the network share does not respond: check"):
        share.run(lambda _: ends.wait())
    yield share, ends
    ends.set()
    join_errands(share)


def errands_to(share):
    return [one for one in threading.enumerate() if one.name == f"share {share.place}"]


def join_errands(share):
    for one in errands_to(share):
        one.join()


def test_an_errand_gives_what_it_returns_and_what_it_raises(tmp_path):
    share = Share(tmp_path)
    assert share.run(lambda folder: folder) == tmp_path
    with pytest.raises(FileNotFoundError):
        share.look(lambda folder: (folder / "none").stat())
    assert errands_to(share) == []


def test_while_one_errand_hangs_no_other_is_sent_not_by_another_door_either(hung, tmp_path):
    share, ends = hung
    sent = []
    for door in (share, Share(tmp_path), Share(tmp_path)):
        with pytest.raises(SilentShareError):
            door.look(sent.append)
    assert sent == []
    assert len(errands_to(share)) == 1
    ends.set()
    join_errands(share)
    assert share.run(lambda _: "back") == "back"


def test_another_folder_is_asked_all_the_same(hung, tmp_path):
    assert Share(tmp_path / "other").run(lambda _: 1) == 1


def test_an_errand_that_goes_on_is_waited_for_and_told_where_it_is_waited_for(tmp_path):
    share, heard = Share(tmp_path, file_s=0.5), []

    def work(_):
        for number in range(8):
            report_progress(number, 8, "Reading")
            threading.Event().wait(0.12)  # together longer than the silence that is allowed
        return "all"

    with listening(heard.append):
        assert share.run(work) == "all"
    assert {one.text for one in heard} == {"Reading"}


def test_who_waits_can_be_stopped_and_the_errand_ends_at_its_next_sign(tmp_path):
    share, ended = Share(tmp_path), threading.Event()

    def work(_):
        try:
            while True:
                report_progress(0, 1, "Reading")
                ended.wait(0.01)
        finally:
            ended.set()

    def stop(_progress):
        raise Cancelled

    with listening(stop), pytest.raises(Cancelled):
        share.run(work)
    assert ended.wait(60)
    join_errands(share)


def test_an_errand_within_an_errand_is_no_further_thread(tmp_path):
    share = Share(tmp_path)
    assert share.run(lambda _: share.run(lambda folder: folder)) == tmp_path


# ------------------------------------------------------------------- no other door

DOORS = {"visit", "look", "run", "read_frozen"}
PARTS = {"STUDY_NAME", "EVENTS", "MASKS", "CLAIMS", "PROTOCOL", "FORM", "ORDER"}
"""Names of what lies in a study's folder."""
HANDS = {"read_study", "hash_study", "write_study", "take_claim", "renew_claim", "newest_claims"}
HANDS |= {"send_all", "read_study_events", "require_same_study", "stat_study", "keep_copy"}
HANDS |= {"list_changed_masks", "list_masks_of_study"}
"""What reads and writes there."""
ERRANDS = {
    "features/review/services/export/study_export.py": {"_copy_files"},
    "features/review/services/plan_study.py": {"_write_frozen"},
    "features/review/services/look.py": {
        "load_study_form",
        "load_study_protocol",
        "load_study_queue",
    },
}
"""Functions that are sent as errands by their name."""
HERE = {"features/review/services/check_study.py": {"_list_changed_masks"}}
"""Functions that read in this computer's own folder, too."""


def is_handed_on(chain, doors=frozenset(DOORS)):
    """Whether a part of the source, with what is around it, is in what a door is given to do."""
    return any(
        isinstance(outer, ast.Call)
        and getattr(outer.func, "attr", "") in doors
        and inner in outer.args
        for inner, outer in itertools.pairwise(chain)
    )


def list_openings(path):
    """Return what in a module touches a study's folder beside the door: (line, name)."""
    name = path.relative_to(SOURCE).as_posix()
    named = ERRANDS.get(name, set()) | HERE.get(name, set())
    found = []

    def walk(node, parents):
        chain = [node, *parents]
        functions = [one.name for one in chain if isinstance(one, ast.FunctionDef)]
        touched = ""
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            touched = getattr(node.right, "id", "")
            touched = touched if touched in PARTS else ""
        if isinstance(node, ast.Call):
            called = getattr(node.func, "id", "")
            touched = called if called in HANDS else ""
        if touched and not is_handed_on(chain) and named.isdisjoint(functions):
            found.append((node.lineno, touched))
        for child in ast.iter_child_nodes(node):
            walk(child, chain)

    walk(ast.parse(path.read_text("utf-8")), [])
    return found


def test_no_module_beside_the_store_reaches_into_a_study_but_by_the_door():
    inside = SOURCE / "features" / "review" / "io"
    users = [
        path
        for path in SOURCE.rglob("*.py")
        if not path.is_relative_to(inside)
        and (
            "napari_mamamia.features.review.io" in path.read_text("utf-8") or "review" in path.parts
        )
    ]
    assert len(users) > 30
    found = {path.relative_to(SOURCE).as_posix(): list_openings(path) for path in users}
    assert {name: places for name, places in found.items() if places} == {}


def test_the_store_itself_holds_no_path_of_the_study_and_hands_each_step_to_the_door():
    path = SOURCE / "features" / "review" / "io" / "store.py"
    tree = ast.parse(path.read_text("utf-8"))
    here = ("home", "_copy")  # this computer's own
    assert [
        one for one in list_store_openings(tree) if not any(word in one[1] for word in here)
    ] == []
    for other in SOURCE.rglob("*.py"):
        if other.name != "share.py":
            assert "share._folder" not in other.read_text("utf-8"), other


def list_store_openings(tree):
    """Return what of the store divides a path or calls a hand outside of what it hands on."""
    found = []

    def walk(node, parents):
        chain = [node, *parents]
        handed = is_handed_on(chain, DOORS | {"_work_there"})
        inner_function = any(isinstance(one, ast.FunctionDef) and one.name == "do" for one in chain)
        if not handed and not inner_function:
            text = ast.unparse(node)
            is_path = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)
            is_told = any(isinstance(one, ast.JoinedStr) for one in chain)
            if is_path and not is_told:
                found.append((node.lineno, text))
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in HANDS:
                found.append((node.lineno, text))
        for child in ast.iter_child_nodes(node):
            walk(child, chain)

    (store,) = [
        one for one in tree.body if isinstance(one, ast.ClassDef) and one.name == "FolderStore"
    ]
    walk(store, [])
    return found
