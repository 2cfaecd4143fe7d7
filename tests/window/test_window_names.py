"""Whose name an edit gets: that of who is here now, not of who was here last, nor of a study's."""

import pytest
from tests.window.test_window_review import paint_blob

from napari_mamamia.features.review.core.review import ReadingMode, StudyPlan
from napari_mamamia.features.review.io import keys
from napari_mamamia.features.review.services.plan_study import (
    StudyPeople,
    draft_study,
    freeze_study,
)
from napari_mamamia.io.files.user_folders import review_folder
from napari_mamamia.io.workspace.preferences import Preferences, load_preferences, save_preferences
from napari_mamamia.services.case.data_set import open_data_set

pytestmark = pytest.mark.window


@pytest.fixture
def remembered(own_preferences):
    """Ana was the last to read on this computer."""
    save_preferences(Preferences(reader="Ana"))


def leave(data_set, folder, name):
    """Let somebody have left something in the data set's workspace."""
    place = open_data_set(data_set).workspace.root / folder / name
    place.mkdir(parents=True)
    return place


def open_first(qtbot, panel, data_set):
    panel.open_data_set(data_set, "A_1")
    qtbot.waitUntil(lambda: panel.session.case is not None and panel.session.case.is_loaded)


def test_the_first_edit_where_somebody_else_has_read_asks_who_reads(
    qtbot, remembered, docked, small_data_set, control, picture, window
):
    place = leave(small_data_set, "findings", "Ben")
    panel = docked
    open_first(qtbot, panel, small_data_set)
    assert panel.session.reader is None
    panel.show_page("Refine")
    control(panel, "refine_from_nothing")
    qtbot.waitUntil(panel.header.reader_name.isVisible)
    assert panel.header._who.text() == "Reading as"
    assert panel.header.reader_name.text() == "Ana"
    picture(window, "names-asked")
    assert panel.editing.live is None
    assert not (place.parents[1] / "refined" / "Ana").exists()
    panel.header.reader_name.setText("Cem")
    control(panel, "header_reader_ok")
    qtbot.waitUntil(lambda: panel.editing.live is not None)
    assert panel.session.reader == "Cem"
    paint_blob(panel)
    panel.editing.save_if_needed(lambda _saved: None)
    saved = place.parents[1] / "refined" / "Cem" / "A_1.nii.gz"
    qtbot.waitUntil(saved.exists)
    assert not (place.parents[1] / "refined" / "Ana").exists()
    picture(window, "names-given")
    # Who has said it once in this window is asked no more.
    panel.open_data_set(small_data_set, "A_2")
    qtbot.waitUntil(lambda: panel.session.case_id == "A_2" and panel.session.case.is_loaded)
    assert panel.session.reader == "Cem"


def test_a_remembered_name_goes_on_where_nobody_else_has_read(
    qtbot, remembered, docked, small_data_set, control
):
    leave(small_data_set, "refined", "Ana")
    open_first(qtbot, docked, small_data_set)
    assert docked.session.reader == "Ana"
    docked.show_page("Refine")
    control(docked, "refine_from_nothing")
    qtbot.waitUntil(lambda: docked.editing.live is not None)
    assert docked.session.reader == "Ana"


def test_a_study_s_name_stays_in_its_window(
    qtbot, remembered, docked, small_data_set, tmp_path, control, picture, window
):
    plan = StudyPlan("Trial", ReadingMode.ARBITRATION, 2, seed=3)
    people = StudyPeople(("Lea",), ("Ana", "Ben"), ("Jo",))
    freeze_study(draft_study(open_data_set(small_data_set), plan, people), tmp_path / "STUDY")
    docked.flow("Review").open_study(tmp_path / "STUDY")
    page = docked.flow("Review").page
    qtbot.waitUntil(lambda: page.who.count() == 4)
    # The name of who was here last is proposed, and nobody sits down by it.
    assert (page.who.currentText(), docked.flow("Review").client) == ("Ana", None)
    page.who.setCurrentText("Ben")
    control(docked, "review_begin")
    qtbot.waitUntil(lambda: docked.flow("Review").client is not None)
    assert docked.session.reader == "ben"
    picture(window, "names-study")
    assert load_preferences().reader == "Ana"


def test_a_key_that_counts_is_asked_for_in_the_window(
    qtbot, docked, small_data_set, tmp_path, control, picture, window, monkeypatch
):
    monkeypatch.setattr(keys, "_COST", 1 << 4)
    bound = [("Lea", keys.make_lead_key(review_folder(), "three small words"))]
    plan = StudyPlan("Trial", ReadingMode.ARBITRATION, 2, seed=3)
    people = StudyPeople(("Lea",), ("Ana", "Ben"), ("Jo",))
    draft = draft_study(open_data_set(small_data_set), plan, people)
    freeze_study(draft, tmp_path / "STUDY", lead_keys=bound)
    docked.flow("Review").open_study(tmp_path / "STUDY", "Lea")
    page = docked.flow("Review").page
    qtbot.waitUntil(page.secret.isVisible)
    picture(window, "names-key")
    assert "without the key" in page.why_key.text()
    assert docked.flow("Review").client is None
    page.secret.setText("not these words")
    control(docked, "review_begin")
    qtbot.waitUntil(lambda: "is wrong: try again" in page.why_key.text())
    assert page.secret.text() == ""
    picture(window, "names-key-wrong")
    page.secret.setText("three small words")
    control(docked, "review_begin")
    qtbot.waitUntil(lambda: docked.flow("Review").client is not None)
    assert docked.session.reader == "lea"
    picture(window, "names-key-right")
