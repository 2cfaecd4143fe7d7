"""Two readers, an adjudicator and a lead: processes with windows of their own, on one folder."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests import socket_filter

from napari_mamamia.core.blinding import ALL_HIDDEN
from napari_mamamia.features.review.core.review import Meaning, ReadingMode, StudyPlan
from napari_mamamia.features.review.io.store import FolderStore
from napari_mamamia.features.review.rules.states import CaseState
from napari_mamamia.features.review.services.check_study import verify_study
from napari_mamamia.features.review.services.look import load_state
from napari_mamamia.features.review.services.plan_study import (
    StudyPeople,
    draft_study,
    freeze_study,
)
from napari_mamamia.services.case.data_set import open_data_set

pytestmark = [pytest.mark.window, pytest.mark.night]

READER = Path(__file__).with_name("review_reader.py")
PROTOCOL = {
    "name": "Story",
    "questions": [
        {
            "id": "lesion",
            "text": "Is there a lesion?",
            "kind": "single",
            "terms": [{"id": "yes", "text": "yes"}, {"id": "no", "text": "no"}],
            "required": True,
        }
    ],
}


def begin(study, home, name, *acts):
    environment = {**os.environ, "MAMAMIA_CONFIG_DIR": str(home)}
    # the kernel ends a window that opens a socket, but for those of this computer, such as X's
    command = [sys.executable, socket_filter.__file__, str(READER), str(study), name, *acts]
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def finish(process):
    text, _ = process.communicate(timeout=600)
    assert process.returncode == 0, text[-3000:]
    assert "all done" in text
    return [line.removeprefix("digits ") for line in text.splitlines() if line.startswith("digits")]


def test_four_people_read_judge_sign_and_vouch_in_windows_without_a_server(
    tmp_path, small_data_set, picture_folder
):
    protocol = tmp_path / "protocol.json"
    protocol.write_text(json.dumps(PROTOCOL))
    plan = StudyPlan("Story", ReadingMode.ARBITRATION, 2, ALL_HIDDEN, seed=7)
    people = StudyPeople(("Lea Lead",), ("Ana López", "Ben Beck"), ("Jo Judge",))
    opened = open_data_set(small_data_set)
    study = tmp_path / "STUDY"
    freeze_study(draft_study(opened, plan, people, protocol=protocol), study)

    def picture(tab, name):
        return f"picture:{tab}={picture_folder / name}.png"

    # Both at once: each has his own computer's folder, and the study's alone in common.
    readers = [
        begin(
            *(study, tmp_path / "ana", "Ana López", "read:0", picture("Read", "story-ana")),
            *("sign:author", picture("Sign", "story-ana-sign")),
        ),
        begin(study, tmp_path / "ben", "Ben Beck", "read:4"),
    ]
    (ana_digits,), no_digits = map(finish, readers)
    assert no_digits == []
    judged = ("judge:union", picture("Judge", "story-jo"), "sign:reviewer")
    (jo_digits,) = finish(begin(study, tmp_path / "jo", "Jo Judge", *judged))
    words = [f"countersign:Ana López={ana_digits}", f"countersign:Jo Judge={jo_digits}"]
    lead = (*words, "sign:approver", picture("Study", "story-lea"))
    finish(begin(study, tmp_path / "lea", "Lea Lead", *lead))

    store = FolderStore(study, tmp_path / "nobody")
    check = verify_study(store, small_data_set)
    assert check.problems == ()
    state = load_state(store)
    cases = {store.study.case(view.key).case_id: view for view in state.cases}
    assert cases["A_2"].state is CaseState.SIGNED
    assert cases["A_2"].decision.choice == "union"
    assert cases["A_2"].decision.reason == "both saw a part of it"
    signed = [(one.reader, one.meaning) for one in cases["A_2"].signatures if one.counts]
    assert signed == [
        ("ana-lopez", Meaning.AUTHOR),
        ("jo-judge", Meaning.REVIEWER),
        ("lea-lead", Meaning.APPROVER),
    ]
    # 3 x 6 x 6 voxels each, shifted by 4 of 6: Dice 2 * 2 / (6 + 6) = 1/3
    assert cases["A_2"].comparison.because[0].startswith("Dice 0.333 below 0.7")
    for case_id in ("A_1", "B_1"):
        assert cases[case_id].state is CaseState.READ
        assert cases[case_id].comparison.agrees
    hidden = {
        event.body["hidden"]
        for chain in store.read().chains.values()
        for event in chain
        if event.body["act"] == "read"
    }
    assert hidden == {", ".join(ALL_HIDDEN.names)}


def make_lead_key(home, words):
    """Make a lead's key by the command, on a computer of its own; return its 64 digits."""
    home.mkdir()
    (home / "words.txt").write_text("three small words")
    command = [Path(sys.executable).with_name("mamamia"), "review", "lead-key", *words]
    environment = {**os.environ, "MAMAMIA_CONFIG_DIR": str(home)}
    said = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    (key,) = re.findall(r"\b[0-9a-f]{64}\b", said.stdout)
    return key


def test_two_leads_vouch_at_once_in_windows_of_their_own(tmp_path, small_data_set, picture_folder):
    """Their keys are bound: each gives a word for one of two readers while the other does."""
    protocol = tmp_path / "protocol.json"
    protocol.write_text(json.dumps(PROTOCOL))
    homes = {name: tmp_path / name for name in ("lea", "leo", "ana", "ben")}
    words = {name: ("--passphrase-file", homes[name] / "words.txt") for name in ("lea", "leo")}
    keys = {name: make_lead_key(homes[name], words[name]) for name in words}
    plan = StudyPlan("Two leads", ReadingMode.INDEPENDENT, 2, ALL_HIDDEN, seed=7)
    people = StudyPeople(("Lea Lead", "Leo Lead"), ("Ana López", "Ben Beck"))
    draft = draft_study(open_data_set(small_data_set), plan, people, protocol=protocol)
    study = tmp_path / "STUDY"
    bound = (("Lea Lead", keys["lea"]), ("Leo Lead", keys["leo"]))
    freeze_study(draft, study, lead_keys=bound)

    readers = [
        begin(study, homes["ana"], "Ana López", "read:0", "sign:author"),
        begin(study, homes["ben"], "Ben Beck", "read:0", "sign:author"),
    ]
    (ana,), (ben,) = map(finish, readers)
    leads = [
        begin(
            *(study, homes["lea"], "Lea Lead", f"countersign:Ana López={ana}"),
            f"picture:Sign={picture_folder / 'two-leads-lea'}.png",
        ),
        begin(study, homes["leo"], "Leo Lead", f"countersign:Ben Beck={ben}"),
    ]
    for lead in leads:
        finish(lead)

    store = FolderStore(study, tmp_path / "nobody")
    assert verify_study(store, small_data_set).problems == ()
    state = load_state(store)
    assert sorted((one.reader, one.counts) for one in state.keys) == [
        (name, True) for name in ("ana-lopez", "ben-beck", "lea-lead", "leo-lead")
    ]
    vouched = {one.reader: one.by for one in state.keys}
    assert (vouched["ana-lopez"], vouched["ben-beck"]) == ("lea-lead", "leo-lead")
    for view in state.cases:
        signed = sorted((one.reader, str(one.meaning)) for one in view.signatures if one.counts)
        assert ("ana-lopez", "author") in signed
        assert ("ben-beck", "author") in signed
