"""Studies as people go through them: planned, read blind, compared, judged, signed, verified."""

import json
import random

import numpy as np
import pytest
from tests.review_study import study, write_study

from napari_mamamia.core.blinding import ALL_HIDDEN, Hidden
from napari_mamamia.core.errors import CaseError, FormatError, SaveConflictError
from napari_mamamia.core.grid import Grid
from napari_mamamia.features.review.core.review import Meaning, ReadingMode, StudyPlan, Triggers
from napari_mamamia.features.review.io.keys import WrongPassphraseError
from napari_mamamia.features.review.io.store import FolderStore
from napari_mamamia.features.review.rules.states import CaseState
from napari_mamamia.features.review.services import check_study, look, signing
from napari_mamamia.features.review.services.check_study import save_audit
from napari_mamamia.features.review.services.compare import compare_readings
from napari_mamamia.features.review.services.look import find_key, load_state
from napari_mamamia.features.review.services.plan_study import (
    StudyPeople,
    draft_study,
    freeze_study,
    name_people,
)
from napari_mamamia.features.review.services.session import ReviewSession
from napari_mamamia.io.data_set.volumes import write_volume
from napari_mamamia.io.files.csv_text import from_csv_text
from napari_mamamia.io.forms.form_file import read_shipped_lexicon
from napari_mamamia.services.case.data_set import open_data_set

GRID = Grid.of_spacing((4, 10, 10), (2.0, 1.0, 1.0))
PASS = "correct horse"


def mask_file(folder, rows, *, grid=GRID):
    """A mask that is a bar of so many rows; its file's bytes."""
    array = np.zeros(grid.shape, np.uint8)
    array[1:3, 2 : 2 + rows, 2:8] = 1
    path = folder / f"mask-{rows}-{grid.shape[0]}.nii.gz"
    if not path.exists():
        write_volume(array, grid, path)
    return path.read_bytes()


def people_at(tmp_path, *names, **about):
    """A study of two cases, and each person on a computer of its own."""
    folder = tmp_path / "STUDY"
    about = {"blinding": ALL_HIDDEN, **about}
    write_study(folder, study(**about))
    return [at_work(tmp_path, name) for name in names]


def at_work(tmp_path, name, session="1"):
    store = FolderStore(tmp_path / "STUDY", tmp_path / name, host=name, session=session)
    return ReviewSession(store, name, tmp_path / name)


def read(session, mask, **more):
    task = session.next_task()
    assert session.holds(session.claim(task))
    session.start(task)
    session.finish(task, mask, **more)
    return task.case


def verified(session):
    return [(one.kind, one.text) for one in check_study.verify_study(session.store).problems]


def test_two_read_blind_a_third_judges_all_sign_and_nothing_is_wrong(tmp_path):
    ana, ben, jo, lea = people_at(tmp_path, "ana", "ben", "jo", "lea")
    same, other = mask_file(tmp_path, 4), mask_file(tmp_path, 1)
    first = read(ana, same, answers={"bpe": "mild"}, active_s=61)
    ben.refresh()
    assert ben.blinding(first).hides(Hidden.OTHER_READERS)
    assert read(ben, other, answers={"bpe": "mild"}) == first
    second = read(ana, same)
    assert read(ben, same) == second
    assert ana.next_task() is None

    jo.refresh()
    (dispute,) = jo.disputes()
    # 4 rows and 1 row of 12 voxels: 2 x 12 over 48 + 12 = 0.4; volumes 4 to 1
    assert dispute.comparison.because[0] == "Dice 0.400 below 0.7"
    assert dict(dispute.comparison.values)["volume_ratio"] == "4.0"
    assert not jo.blinding(first).hides(Hidden.OTHER_READERS)
    jo.adjudicate(first)
    jo.decide(first, dispute.readings[0].mask, "ana", "the lower rim enhances")
    jo.accept(second)

    lea.make_key(PASS)
    ana.make_key(PASS)
    jo.make_key(PASS)
    ana.sign(first, Meaning.AUTHOR, PASS)
    jo.sign(first, Meaning.APPROVER, PASS)
    assert jo.refresh().case(first).state is CaseState.ACCEPTED
    for who in ("ana", "jo"):
        (key,) = [one.key for one in lea.refresh().keys if one.reader == who]
        signing.countersign(lea, who, key, PASS)
    jo.sign(second, Meaning.REVIEWER, PASS)
    state = jo.refresh()
    assert {view.state for view in state.cases} == {CaseState.SIGNED}
    assert [(one.name, one.meaning, one.counts) for one in state.case(first).signatures] == [
        ("Ana", Meaning.AUTHOR, True),
        ("Jo Judge", Meaning.APPROVER, True),
    ]
    assert verified(jo) == []
    assert state.case(first).readings[0].active_s == 61
    with pytest.raises(WrongPassphraseError):
        jo.sign(second, Meaning.APPROVER, "wrong horse")


def test_a_tampered_byte_of_any_file_is_found(tmp_path):
    ana, ben = people_at(tmp_path, "ana", "ben")
    for one in (ana, ben):
        read(one, mask_file(tmp_path, 4))
        one.close()
    checked = at_work(tmp_path, "lea")
    assert verified(checked) == []
    checked.close()
    rng = random.Random(1)
    files = [path for path in (tmp_path / "STUDY").rglob("*") if path.is_file()]
    files = [path for path in files if path.parent.name != "claims"]
    assert len(files) == 4
    for path in files:
        whole = path.read_bytes()
        for at in rng.sample(range(len(whole) - 1), 12):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
            try:
                found = verified(at_work(tmp_path, "lea", session="9"))
            except FormatError:
                found = ["cannot be opened"]
            assert found, (path.name, at)
        path.write_bytes(whole)


def test_the_last_byte_of_a_file_too_is_found_by_who_never_read_it(tmp_path):
    (ana,) = people_at(tmp_path, "ana")
    ana.remark("c0001", "a note")
    ana.close()
    (path,) = (tmp_path / "STUDY").rglob("*.jsonl")
    whole = path.read_bytes()
    for end in (b"\x0b", b" ", b""):
        path.write_bytes(whole[:-1] + end)
        ((kind, text),) = verified(at_work(tmp_path, "lea", session=f"9{len(end)}"))
        assert (kind, "is incomplete" in text) == ("chain", True)


def test_the_state_needs_no_mask_to_be_looked_into_and_a_lost_one_is_told(tmp_path):
    ana, ben = people_at(tmp_path, "ana", "ben")
    read(ana, mask_file(tmp_path, 4))
    (path,) = (tmp_path / "STUDY" / "masks").iterdir()
    path.unlink()
    assert ("waiting", "the mask is not in the store yet") in verified(ben)


def test_who_read_it_at_two_computers_at_once_is_a_conflict_and_exits_as_one(tmp_path):
    (ana,) = people_at(tmp_path, "ana")
    store = FolderStore(tmp_path / "STUDY", tmp_path / "laptop", host="laptop", session="1")
    laptop = ReviewSession(store, "ana", tmp_path / "laptop")
    task = ana.next_task()
    assert ana.holds(ana.claim(task))
    assert not laptop.holds(laptop.claim(task)), "the other computer has it"
    # the laptop never sees the share again until it is done
    (tmp_path / "STUDY").rename(tmp_path / "AWAY")
    assert laptop.holds(laptop.claim(task))
    laptop.start(task)
    laptop.finish(task, mask_file(tmp_path, 1))
    (tmp_path / "AWAY").rename(tmp_path / "STUDY")
    ana.start(task)
    ana.finish(task, mask_file(tmp_path, 4))
    laptop.close()
    status = check_study.find_status(ana.store)
    assert [one.kind for one in status.conflicts] == ["conflict"]
    ana.refresh()
    ana.read_again(task, "the laptop's was a first look")
    ana.claim(task)
    ana.start(task)
    ana.finish(task, mask_file(tmp_path, 4))
    assert check_study.find_status(ana.store).conflicts == ()


def test_a_reading_that_does_not_count_is_said_so_to_its_reader_and_kept(tmp_path):
    ana, lea = people_at(tmp_path, "ana", "lea")
    task = ana.next_task()
    ana.claim(task)
    ana.start(task)
    lea.reject(task.case, "motion")
    with pytest.raises(
        CaseError, match="but the case already has the state rejected: its mask and answers"
    ):
        ana.finish(task, mask_file(tmp_path, 4))
    assert verified(lea) == []
    (late,) = [one.text for one in check_study.verify_study(lea.store).notes if one.kind == "late"]
    assert "is ignored: the case already has the state rejected" in late
    assert len(lea.store.read().masks) == 1


def test_what_nobody_compared_is_compared_before_it_is_accepted(tmp_path):
    ana, ben, jo = people_at(tmp_path, "ana", "ben", "jo")
    case = read(ana, mask_file(tmp_path, 4))
    ben.compare = lambda _case: None  # his program ended before
    assert read(ben, mask_file(tmp_path, 1)) == case
    assert jo.refresh().case(case).comparison is None
    with pytest.raises(
        CaseError, match=r"the state of the case is disagrees|in the state disagrees of the case"
    ):
        jo.accept(case)
    assert jo.refresh().case(case).state is CaseState.DISAGREES
    with pytest.raises(
        CaseError, match=r"the state of the case is disagrees|in the state disagrees of the case"
    ):
        jo.accept(case)


def test_a_second_look_sees_the_first(tmp_path):
    ana, ben = people_at(tmp_path, "ana", "ben", mode=ReadingMode.SECOND_LOOK)
    assert ben.next_task() is None
    case = read(ana, mask_file(tmp_path, 4))
    ben.refresh()
    assert not ben.blinding(case).hides(Hidden.OTHER_READERS)
    assert read(ben, mask_file(tmp_path, 4)) == case
    ben.accept(case)
    assert ben.refresh().case(case).state is CaseState.ACCEPTED


def test_a_forgotten_passphrase_is_said_plainly_and_a_new_key_goes_on(tmp_path):
    ana, lea = people_at(tmp_path, "ana", "lea")
    case = read(ana, mask_file(tmp_path, 4))
    lea.make_key(PASS)
    old = ana.make_key(PASS)
    signing.countersign(lea, "ana", old, PASS)
    ana.sign(case, Meaning.AUTHOR, PASS)
    with pytest.raises(WrongPassphraseError, match="cannot be recovered"):
        ana.sign(case, Meaning.AUTHOR, "what was it")
    ana.key_file.rename(ana.key_file.with_suffix(".old"))
    new = ana.make_key("battery staple")
    signing.revoke(lea, "ana", old, "passphrase forgotten", PASS)
    signing.countersign(lea, "ana", new, PASS)
    ana.sign(case, Meaning.AUTHOR, "battery staple")
    assert [one.counts for one in ana.refresh().case(case).signatures] == [True, True]
    assert verified(ana) == []
    with pytest.raises(CaseError, match="the key does not belong to that person"):
        find_key(ana.state, "ana", "0000 0000 0000 0000")


def test_somebody_else_s_key_under_one_s_name_does_not_count(tmp_path):
    ana, jo, lea = people_at(tmp_path, "ana", "jo", "lea")
    case = read(ana, mask_file(tmp_path, 4))
    lea.make_key(PASS)
    # eve has the share and writes as lea, with a key of her own
    eve = ReviewSession(
        FolderStore(tmp_path / "STUDY", tmp_path / "eve", host="eve", session="1"),
        "lea",
        tmp_path / "eve",
    )
    eve.make_key("eve eve eve")
    with pytest.raises(CaseError, match="another lead has to countersign it first"):
        signing.countersign(eve, "ana", "0" * 64, "eve eve eve")
    del case, jo


# ---------------------------------------------------------------------- comparing


def views_of(session, *masks):
    """Readings of masks that were put into the store."""
    from napari_mamamia.features.review.rules.states import ReadingView

    return [
        ReadingView(f"r{at}", mask=session.store.put_mask(one) if one else "")
        for at, one in enumerate(masks)
    ]


@pytest.mark.parametrize(
    ("rows", "because"),
    [
        ((4, 4), ()),
        # 3 and 4 rows: 2 x 3 / 7 = 0.857; 1.33 to 1; one part each
        ((3, 4), ()),
        ((2, 4), ("Dice 0.667 below 0.7", "volume ratio 2.00 above 1.5")),
        ((0, 4), ("one mask is empty",)),
        ((0, 0), ()),
    ],
)
def test_readings_are_compared_by_the_triggers(tmp_path, rows, because):
    (ana,) = people_at(tmp_path, "ana")
    readings = views_of(ana, *(mask_file(tmp_path, n) for n in rows))
    assert compare_readings(ana.store, readings, Triggers()).because == because
    if 0 in rows:  # none drawn is as an empty one
        readings = views_of(ana, None, mask_file(tmp_path, rows[1]))
        assert compare_readings(ana.store, readings, Triggers()).because == because


def test_answers_of_categories_that_differ_disagree(tmp_path):
    (ana,) = people_at(tmp_path, "ana")
    one, other = views_of(ana, None, None)
    one = one._replace(answers='{"bpe":"mild","size":3}')
    other = other._replace(answers='{"bpe":"marked","size":4}')
    because = compare_readings(ana.store, [one, other], Triggers()).because
    assert because == ("bpe: mild and marked",)
    quiet = Triggers(category=False)
    assert compare_readings(ana.store, [one, other], quiet).because == ()


@pytest.mark.parametrize(
    ("one", "other", "because"),
    [
        # several terms are a category as one is; a number and a text are none
        (
            '{"f":["a","b"],"n":{"number":"1"}}',
            '{"f":["a"],"n":{"number":"2"}}',
            ("f: a, b and a",),
        ),
        ('{"t":{"text":"big"}}', '{"t":{"text":"small"}}', ()),
        # what the program filled in for both is no disagreement of readers; for one it is
        ('{"@computed":["k@1"],"k@1":"fast"}', '{"@computed":["k@1"],"k@1":"slow"}', ()),
        ('{"@computed":["k@1"],"k@1":"fast"}', '{"k@1":"slow"}', ("k@1: fast and slow",)),
        # lesion 1 of two need not be lesion 1 of the other reader
        ('{"k@1":"a","k@2":"b"}', '{"k@1":"b"}', ()),
        ('{"k@right":"a","l@1":"b"}', '{"k@right":"b","l@1":"b"}', ("k@right: a and b",)),
        ('{"@form":{"name":"x"}}', '{"@form":"y"}', ()),
        ("[1]", "{", ()),
    ],
)
def test_what_counts_as_another_answer(tmp_path, one, other, because):
    (ana,) = people_at(tmp_path, "ana")
    views = views_of(ana, None, None)
    views = [view._replace(answers=text) for view, text in zip(views, (one, other), strict=True)]
    assert compare_readings(ana.store, views, Triggers()).because == because


# ------------------------------------------------------------------------ making


@pytest.fixture
def data_set(tmp_path):
    for name in ("A_1", "A_2", "B_1"):
        for phase in range(2):
            path = tmp_path / "data" / "images" / name / f"{name}_{phase:04d}.nii.gz"
            path.parent.mkdir(parents=True, exist_ok=True)
            write_volume(
                np.full((2, 3, 4), phase, np.int16), Grid.of_spacing((2, 3, 4), (1, 1, 1)), path
            )
    return open_data_set(tmp_path / "data", tmp_path / "workspace")


def test_protocol_and_form_are_frozen_with_the_study(tmp_path, data_set):
    path = tmp_path / "p.json"
    path.write_text('{"name": "Größe", "form": "breast-mri-2013"}', encoding="utf-8")
    people = StudyPeople(("Lea",), ("Ana", "Ben"))
    folder = tmp_path / "STUDY"
    freeze_study(draft_study(data_set, StudyPlan("t"), people, protocol=path), folder)
    path.write_text("{}")  # the original may go its own way
    store = FolderStore(folder, tmp_path / "home")
    form = look.load_study_form(folder, store.study)
    assert form.fields == read_shipped_lexicon("breast-mri-2013").fields
    assert form.field("mass.shape").terms[0].codes[0].text == "SCT:84360004"
    assert look.load_study_protocol(folder, store.study).name == "Größe"
    assert check_study.verify_study(store).problems == ()
    form_file = folder / look.FORM
    form_file.write_text(form_file.read_text("utf-8").replace("oval", "ovaI"), "utf-8")
    with pytest.raises(FormatError, match="to be unchanged"):
        look.load_study_form(folder, store.study)
    (problem,) = check_study.verify_study(store).problems
    assert (problem.kind, problem.where) == ("file", "form.json")
    form_file.unlink()
    (problem,) = check_study.verify_study(store).problems
    assert "form.json, but No such file" in problem.text


def test_a_study_without_a_protocol_asks_nothing(tmp_path, data_set):
    draft = draft_study(data_set, StudyPlan("t"), StudyPeople(("Lea",), ("Ana", "Ben")))
    freeze_study(draft, tmp_path / "STUDY")
    assert look.load_study_form(tmp_path / "STUDY", draft.study) is None
    assert look.load_study_protocol(tmp_path / "STUDY", draft.study) is None


def test_a_study_is_shown_then_frozen_with_the_hashes_of_its_images(tmp_path, data_set):
    plan = StudyPlan("trial", ReadingMode.ARBITRATION, seed=3)
    people = StudyPeople(("Léa",), ("Ana López", "ana lopez"), ("Jo", "LÉA"))
    draft = draft_study(data_set, plan, people)
    assert [one.reader_id for one in draft.study.readers] == [
        "lea",
        "ana-lopez",
        "ana-lopez-3",
        "jo",
    ]
    assert [case.case_id for case in draft.study.cases] == ["A_1", "A_2", "B_1"]
    assert [len(case.images) for case in draft.study.cases] == [2, 2, 2]
    assert not (tmp_path / "STUDY").exists()
    freeze_study(draft, tmp_path / "STUDY")
    with pytest.raises(SaveConflictError):
        freeze_study(draft, tmp_path / "STUDY")
    store = FolderStore(tmp_path / "STUDY", tmp_path / "home")
    assert check_study.verify_study(store, tmp_path / "data").problems == ()
    changed = tmp_path / "data" / "images" / "A_2" / "A_2_0001.nii.gz"
    changed.write_bytes(changed.read_bytes() + b" ")
    (problem,) = check_study.verify_study(store, tmp_path / "data").problems
    assert (problem.kind, problem.where) == ("image", "A_2")


def test_one_name_twice_in_a_role_and_an_empty_one_are_refused():
    with pytest.raises(CaseError, match="'ANA' twice"):
        name_people(StudyPeople(("l",), ("Ana", "ANA")))
    with pytest.raises(CaseError, match="found an empty name"):
        name_people(StudyPeople(("l",), ("Ana", "  ")))


def test_names_without_a_plain_letter_get_ids_too():
    people = name_people(StudyPeople(("李",), ("王", "O'Neil, Dr. / MD")))
    assert [one.reader_id for one in people] == ["reader-1", "reader-2", "o-neil-dr-md"]


# ------------------------------------------------------------------------- telling


def test_the_audit_trail_has_every_event_with_what_and_why(tmp_path):
    ana, lea = people_at(tmp_path, "ana", "lea", cases=("=1+1", "<b>"))
    case = read(ana, mask_file(tmp_path, 4))
    lea.reject(case, "motion <script>")
    ana.store.append("ana", {"act": "dance", "case": case, "round": 1})
    table, page = save_audit(lea.store, tmp_path / "out")
    rows = table.read_text("utf-8").splitlines()
    n_events = check_study.verify_study(lea.store).n_events
    assert len(rows) == n_events + 1
    assert "unknown action 'dance'" in rows[-1]
    assert "'=1+1" in table.read_text("utf-8")
    assert from_csv_text("'=1+1") == "=1+1"
    text = page.read_text("utf-8")
    assert "<script>" not in text
    assert "motion &lt;script&gt;" in text
    assert "http" not in text


def test_status_says_how_far_everybody_is(tmp_path):
    ana, lea = people_at(tmp_path, "ana", "lea")
    read(ana, mask_file(tmp_path, 4), active_s=90)
    status = check_study.find_status(lea.store)
    content = json.loads(check_study.save_status(status, tmp_path / "out").read_text())
    assert content["states"]["second reading needed"] == 1
    (row,) = [one for one in content["readers"] if one["reader"] == "ana"]
    assert (row["n_read"], row["n_tasks"], row["active_s"]) == (1, 2, 90)


def test_a_clock_that_is_a_day_behind_is_told_and_changes_nothing(tmp_path, monkeypatch):
    from napari_mamamia.io.workspace import event_store

    ana, ben = people_at(tmp_path, "ana", "ben")
    case = read(ana, mask_file(tmp_path, 4))

    class Behind(event_store.datetime):
        @classmethod
        def now(cls, tz=None):
            return event_store.datetime.fromtimestamp(super().now(tz).timestamp() - 86400, tz)

    with monkeypatch.context() as there:
        there.setattr(event_store, "datetime", Behind)
        assert read(ben, mask_file(tmp_path, 4)) == case
    checked = check_study.verify_study(ana.store)
    assert checked.problems == ()
    assert [one.text for one in checked.notes if one.kind == "clock"] == [
        "its clock was 24.0 h behind another clock, on which no state depends"
    ]
    assert load_state(ana.store).case(case).state is CaseState.READ
