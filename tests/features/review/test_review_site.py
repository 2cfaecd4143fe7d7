"""The site: where it is known from, how it is hidden from who reads, and told to who leads."""

import json
import re
import shutil
from dataclasses import replace
from typing import Final

import pytest
from tests.conftest import write_small_data_set
from typer.testing import CliRunner

from napari_mamamia.cli.app import app
from napari_mamamia.core.blinding import STUDY_HIDDEN, Blinding, Hidden
from napari_mamamia.core.errors import CaseError
from napari_mamamia.features.review.cli.commands import app as review
from napari_mamamia.features.review.core.quality import QualityCase
from napari_mamamia.features.review.core.review import Meaning, ReadingMode, StudyPlan
from napari_mamamia.features.review.io.store import FolderStore
from napari_mamamia.features.review.io.study_file import Draft, read_study
from napari_mamamia.features.review.rules.quality import find_volume_outliers
from napari_mamamia.features.review.services.check_study import find_status, verify_study
from napari_mamamia.features.review.services.client import StudyClient
from napari_mamamia.features.review.services.look import Pseudonymizer, make_pseudonymizer
from napari_mamamia.features.review.services.plan_study import (
    StudyPeople,
    describe_draft,
    draft_study,
    freeze_study,
)
from napari_mamamia.features.review.services.session import ReviewSession, require_unblinding
from napari_mamamia.services.case.data_set import open_data_set

IDS = ("DUKE_001", "DUKE_002", "ISPY2_9", "NACT_3", "own_4")


@pytest.fixture(scope="module")
def data_set(tmp_path_factory):
    return write_small_data_set(tmp_path_factory.mktemp("data") / "images", IDS)


def draft(data_set, blinding=STUDY_HIDDEN, seed=3):
    plan = StudyPlan("Trial", ReadingMode.INDEPENDENT, 1, blinding, seed=seed)
    people = StudyPeople(("Lea",), ("Ana",))
    return draft_study(open_data_set(data_set), plan, people)


@pytest.fixture
def folder(data_set, tmp_path):
    freeze_study(draft(data_set), tmp_path / "STUDY")
    return tmp_path / "STUDY"


def test_a_study_knows_the_site_of_each_case_and_its_lead_is_told_how_many_there_are(data_set):
    made = draft(data_set)
    assert {one.case_id: one.site for one in made.study.cases} == {
        "DUKE_001": "DUKE", "DUKE_002": "DUKE", "ISPY2_9": "ISPY2", "NACT_3": "NACT", "own_4": "",
    }  # fmt: skip
    assert "Sites: DUKE 2, ISPY2 1, NACT 1" in describe_draft(made)


def test_the_clinical_table_says_more_of_the_site_than_the_id(data_set):
    opened = open_data_set(data_set)
    rows = [replace(one, dataset="Ghent") for one in opened.cohort.records if "9" in one.case_id]
    opened = replace(opened, cohort=replace(opened.cohort, records=tuple(rows)))
    plan, people = StudyPlan("Trial", n_readers=1), StudyPeople(("Lea",), ("Ana",))
    cases = draft_study(opened, plan, people).study.cases
    assert [one.site for one in cases] == ["DUKE", "DUKE", "Ghent", "NACT", ""]


def test_numbers_do_not_follow_the_ids_where_the_site_is_hidden_and_are_the_same_each_time(
    tmp_path,
):
    ids = [f"DUKE_{n:03d}" for n in range(12)] + [f"NACT_{n:03d}" for n in range(12)]
    root = write_small_data_set(tmp_path / "many", ids)
    keys = [one.key for one in draft(root).study.cases]
    assert keys == [one.key for one in draft(root).study.cases]
    assert keys != [one.key for one in draft(root, seed=4).study.cases]
    of_duke = {int(key[1:]) for key in keys[:12]}
    assert min(of_duke) <= 6
    assert max(of_duke) > 18
    shown = draft(root, Blinding(frozenset({Hidden.MODEL}))).study
    assert [one.key for one in shown.cases] == [f"c{n:04d}" for n in range(1, 25)]


def test_at_a_desk_no_record_and_no_error_holds_an_id_or_a_site(folder, data_set, tmp_path):
    client = StudyClient(folder, "Ana", tmp_path / "home")
    look = client.look()
    taken = client.take_next()
    assert taken.case_id.startswith("case-")
    shown = open_data_set(
        data_set, taken.workspace, blinding=taken.blinding, names=taken.pseudonymizer.names
    )
    assert {one.case_id for one in shown.data_set.cases} == set(taken.pseudonymizer.names.values())
    assert all(one.dataset is None for one in shown.cohort.records)
    texts = [
        repr(one) for one in (look, client.look(), replace(taken, pseudonymizer=Pseudonymizer()))
    ]
    texts += [repr(client.session.state), repr(client.store.study.cases)]
    path = next((data_set / "images").glob("*_*/*_0001.nii.gz"))
    content = path.read_bytes()
    try:
        path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        key = client.whole.case_of_id(path.parent.name).key
        with pytest.raises(CaseError, match="to be unchanged since the study began") as error:
            client.require_images(key)
        path.unlink()
        with pytest.raises(CaseError, match="cannot be read") as gone:
            client.require_images(key)
        texts += [str(error.value), str(gone.value)]
    finally:
        path.write_bytes(content)
    for text in texts:
        for word in ("DUKE_", "ISPY2", "NACT", "own_4"):
            assert word not in text, text
    client.close()


def test_a_reader_signs_by_the_number_and_a_lead_by_the_id(folder):
    study, _ = read_study(folder)
    for one in study.cases:
        assert study.case_of_id(one.case_id) == study.case_of_id(study.number_of(one.key)) == one


def test_what_is_signed_under_a_number_fits_for_who_sees_ids_and_the_other_way_round(
    folder, tmp_path
):
    """The window and the commands of a reader know numbers alone, a lead and `verify` know ids."""
    client = StudyClient(folder, "Ana", tmp_path / "home")
    taken = client.take_next()
    client.hand_in(taken, None, Draft())()
    client.sign(taken.task.case, Meaning.AUTHOR, "correct horse")
    lead = ReviewSession(FolderStore(folder, tmp_path / "lead"), "Lea", tmp_path / "lead")
    lead.make_key("correct horse")
    lead.accept(taken.task.case)
    lead.sign(taken.task.case, Meaning.APPROVER, "correct horse")
    lead.close()
    for state in (lead.refresh(), client.session.refresh()):
        assert state.refused == ()
        signatures = state.case(taken.task.case).signatures
        assert [one.meaning for one in signatures] == [Meaning.AUTHOR, Meaning.APPROVER]
    client.close()
    found = {one.kind for one in verify_study(FolderStore(folder, tmp_path / "check")).problems}
    assert found == {"signature"}  # Ana's key waits for countersigning


def test_a_longer_id_is_not_taken_for_a_shorter_one_and_sites_go_too():
    pseudonymizer = Pseudonymizer({"A_1": "case-0001", "A_12": "case-0002"}, ("Ghent",))
    assert pseudonymizer.cover("A_12, A_1, A_123, a_1_0003.nii.gz at GHENT") == (
        "case-0002, case-0001, A_123, case-0001_0003.nii.gz at …"
    )


def test_status_and_verify_tell_the_sites_to_a_lead_alone(folder, tmp_path):
    store = FolderStore(folder, tmp_path / "home")
    assert [(one.site, one.n_cases) for one in find_status(store).sites] == [
        ("", 1), ("DUKE", 2), ("ISPY2", 1), ("NACT", 1),
    ]  # fmt: skip
    pseudonymizer = make_pseudonymizer(store.study)
    assert find_status(store, pseudonymizer).sites == ()
    mask = folder / "masks" / f"{64 * 'a'}.nii.gz"
    mask.parent.mkdir()
    mask.write_bytes(b"of DUKE_001")
    check = verify_study(store, pseudonymizer=pseudonymizer)
    assert [one.kind for one in check.problems] == ["mask"]
    assert "DUKE" not in repr((check.problems, check.notes))
    with pytest.raises(CaseError, match="expected the name of the person"):
        require_unblinding(store, "", "", tmp_path / "home")
    require_unblinding(store, "Lea", "", tmp_path / "home")
    with pytest.raises(CaseError, match="is neither lead nor adjudicator"):
        require_unblinding(store, "Ana", "", tmp_path / "home")


def test_the_command_tells_sites_to_who_may_know_them(folder, tmp_path):
    run = CliRunner().invoke
    blind = run(app, ["review", "status", str(folder), "--out", str(tmp_path / "a")])
    assert blind.exit_code == 0, blind.output
    assert "DUKE" not in blind.output
    assert json.loads((tmp_path / "a" / "status.json").read_text())["sites"] == []
    known = run(app, ["review", "status", str(folder), "--reader", "Lea"])
    assert "site DUKE: 2 cases: new 2" in known.output
    refused = run(app, ["review", "status", str(folder), "--reader", "Ana"])
    assert refused.exit_code != 0


# ------------------------------------------------------- every command, whoever asks

TELLS = re.compile("DUKE|ISPY2|NACT|own_4", re.IGNORECASE)
SECRET = ("--passphrase-file", "SECRET")
ASKED: dict[str, tuple[tuple[str, ...], ...]] = {
    "status": (("--out", "OUT"), ("--reader", "Ana")),
    "verify": (("--images", "IMAGES", "--out", "OUT"), ("--reader", "Ana")),
    "audit": (("--out", "OUT"), ("--out", "OUT", "--reader", "Ana")),
    "agreement": (("--out", "OUT"), ("--out", "OUT", "--reader", "Ana")),
    "export": (("--out", "OUT"), ("--out", "OUT", "--reader", "Ana")),
    "report": (("--out", "OUT"), ("--out", "OUT", "--reader", "Ana")),
    "key": (("--reader", "Ana", *SECRET), ("--reader", "Nobody", *SECRET)),
    "countersign": (
        ("--reader", "Ana", "--of", "Ana", "--digits", "1", *SECRET),
        ("--reader", "Ana", "--of", "Lea", "--digits", "1", *SECRET),
    ),
    "revoke": (
        ("--reader", "Ana", "--of", "Lea", "--reason", "lost", *SECRET),
        ("--reader", "Ana", "--reason", "lost", "--since", "never", *SECRET),
    ),
    "sign": tuple(
        ("--reader", "Ana", "--case", case, "--meaning", "reviewer", *SECRET)
        for case in ("case-0001", "case-0009")
    ),
}
"""How somebody who is to know no site asks, and gets an answer or an error."""
LEADS: Final = {"init", "lead-key", "queue", "capture"}
"""What a lead does before there is a study, or with tables of the lead's own."""


def test_no_command_on_a_study_tells_who_reads_a_site_in_an_answer_an_error_or_a_file(
    folder, data_set, tmp_path
):
    """One reading is handed in, one image is changed, one event is foreign: all have to be told."""
    client = StudyClient(folder, "Ana", tmp_path / "home")
    taken = client.take_next()
    client.hand_in(taken, None, Draft())()
    client.session.store.append("ana", {"act": "dance", "case": taken.task.case, "round": 1})
    client.close()
    assert {name.name for name in review.registered_commands} == {*ASKED, *LEADS}
    (tmp_path / "secret").write_text("correct horse")
    shutil.copytree(data_set, tmp_path / "images")
    path = next((tmp_path / "images").rglob("DUKE_001_0001.nii.gz"))
    path.write_bytes(path.read_bytes() + b"?")
    next((tmp_path / "images").rglob("NACT_3_0001.nii.gz")).unlink()
    places = {"OUT": str(tmp_path / "out"), "SECRET": str(tmp_path / "secret")}
    places["IMAGES"] = str(tmp_path / "images")
    for name, ways in ASKED.items():
        for words in ways:
            words = [places.get(one, one) for one in words]
            done = CliRunner().invoke(app, ["review", name, str(folder), *words])
            text = f"{done.output} {done.exception or ''}"
            assert len(text) > 20, (name, words)
            assert not TELLS.search(text.replace(str(tmp_path), "")), (name, words, text)
    for path in (tmp_path / "out").iterdir():
        assert not TELLS.search(path.read_text("utf-8")), path
    known = CliRunner().invoke(app, ["review", "verify", str(folder), "--reader", "Lea"])
    case_id = client.whole.case(taken.task.case).case_id
    assert f"event 4 (dance {case_id})" in known.output


def test_a_volume_is_held_against_those_of_the_site_that_the_id_tells(tmp_path):
    from napari_mamamia.core.records import CaseScore, ScoreStatus
    from napari_mamamia.features.review.io.quality_files import CaseSigns
    from napari_mamamia.features.review.services.quality_queue import _join_case

    volumes = {"DUKE": (1000.0, 1100.0, 950.0, 1050.0, 1000.0, 40000.0), "NACT": (40000.0,) * 6}
    rows = [
        _join_case(
            CaseScore(f"{site}_{n}", ScoreStatus.OK, 0.9, volume_reference_mm3=volume), CaseSigns()
        )
        for site, values in volumes.items()
        for n, volume in enumerate(values)
    ]
    assert isinstance(rows[0], QualityCase)
    assert find_volume_outliers(rows) == {"DUKE_5"}
