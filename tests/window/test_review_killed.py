"""A reader is killed between an answer and a save: the answer is about the same lesion after it."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from napari_mamamia.core.blinding import ALL_HIDDEN
from napari_mamamia.features.review.core.review import ReadingMode, StudyPlan
from napari_mamamia.features.review.io.store import FolderStore
from napari_mamamia.features.review.services.compare import load_stored_labels
from napari_mamamia.features.review.services.look import load_state
from napari_mamamia.features.review.services.plan_study import (
    StudyPeople,
    draft_study,
    freeze_study,
)
from napari_mamamia.services.case.data_set import open_data_set

pytestmark = [pytest.mark.window, pytest.mark.night]

READER = Path(__file__).with_name("describing_reader.py")
PROTOCOL = {
    "name": "Lesions",
    "questions": [
        {
            "id": "lesion",
            "text": "Is there a lesion?",
            "kind": "single",
            "terms": [{"id": "yes", "text": "yes"}, {"id": "no", "text": "no"}],
            "required": True,
        },
        {
            "id": "shape",
            "text": "Shape",
            "kind": "single",
            "scope": "lesion",
            "terms": [{"id": "oval", "text": "oval"}, {"id": "irr", "text": "irregular"}],
        },
    ],
}


def run(*arguments, home):
    environment = {**os.environ, "MAMAMIA_CONFIG_DIR": str(home)}
    command = [sys.executable, str(READER), *map(str, arguments)]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=300, check=False
    )


def test_an_answer_is_about_the_same_lesion_after_the_program_was_killed(
    tmp_path, small_data_set, picture_folder
):
    protocol = tmp_path / "protocol.json"
    protocol.write_text(json.dumps(PROTOCOL))
    plan = StudyPlan("Lesions", ReadingMode.ARBITRATION, 2, ALL_HIDDEN, seed=7)
    people = StudyPeople(("Lea",), ("Ana", "Ben"), ("Jo",))
    study, home = tmp_path / "STUDY", tmp_path / "home"
    draft = draft_study(open_data_set(small_data_set), plan, people, protocol=protocol)
    freeze_study(draft, study)
    about = (study, "Ana")
    first = run(*about, "begin", picture_folder / "killed", home=home)
    assert first.returncode == -signal.SIGKILL, first.stdout + first.stderr
    second = run(*about, "finish", picture_folder / "killed", home=home)
    assert second.returncode == 0, second.stdout + second.stderr
    store = FolderStore(study, tmp_path / "other home")
    (reading,) = [one for view in load_state(store).cases for one in view.readings if one.mask]
    record = json.loads(reading.answers)
    assert {key for key in record if key.startswith("shape")} == {"shape@2"}
    mask = load_stored_labels(store, reading.mask).dense()
    assert all(
        mask[tuple(voxel)] and 26 <= voxel[1] < 36 and 36 <= voxel[2] < 46
        for voxel in record["@lesions"]["2"]
    )
