"""A review study whose events cannot be read at the first look of a program started anew."""

import pytest
from layout import LEAST_TARGET
from program import wait_until
from test_screens import faults

from napari_mamamia.core.blinding import ALL_HIDDEN
from napari_mamamia.features.review.core.review import ReadingMode, StudyPlan
from napari_mamamia.features.review.services.plan_study import (
    StudyPeople,
    draft_study,
    freeze_study,
)
from napari_mamamia.services.case.data_set import open_data_set

pytestmark = [pytest.mark.door, pytest.mark.night]  # by day: tests/widgets/test_review_page.py

UNSEEN = "This study has not been read on this computer yet"


def test_a_study_never_seen_says_so_and_gives_no_case_until_it_is(
    start, small_data_set, tmp_path, picture_folder
):
    study, events = tmp_path / "STUDY", tmp_path / "STUDY" / "events"
    plan = StudyPlan("Unseen", ReadingMode.ARBITRATION, 2, ALL_HIDDEN, seed=7)
    people = StudyPeople(("Lea Lead",), ("Ana", "Ben"), ("Jo Judge",))
    freeze_study(draft_study(open_data_set(small_data_set), plan, people), study)
    aside = tmp_path / "aside"
    if events.exists():
        events.rename(aside)
    events.symlink_to(events.name)  # each look at it fails: too many links
    program = start("mamamia", "view", "--study", study, size=(1280, 720))
    program.click("review_who")
    program.screen.xdotool("type", "--delay", 60, "Ana")
    program.screen.picture(picture_folder / "unseen_who.png")
    program.screen.key("Return")
    program.click("review_begin")
    program.wait_for_text(UNSEEN)
    program.screen.picture(picture_folder / "unseen.png")
    assert not [row for row in program.widgets(name="review_next") if row["enabled"]]
    assert program.widget("review_tabs")["rect"][3] >= LEAST_TARGET
    assert not faults(program)
    events.unlink()
    if aside.exists():
        aside.rename(events)
    wait_until(
        lambda: [row for row in program.widgets(name="review_next") if row["enabled"]],
        "the first case",
    )
    assert UNSEEN not in " ".join(row["text"] or "" for row in program.widgets())
