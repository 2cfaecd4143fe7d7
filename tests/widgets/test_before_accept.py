"""What is missing or contradicts, above Accept on page Refine: alive, and a way to its question."""

import numpy as np
import pytest
from qtpy.QtCore import Qt
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QComboBox

from napari_mamamia.core.answers import Answer, Place
from napari_mamamia.core.blinding import Blinding
from napari_mamamia.core.form import FieldScope
from napari_mamamia.widgets.base.layers import Role
from napari_mamamia.widgets.findings.gap_views import GapList
from napari_mamamia.widgets.findings.gaps import Gap, describe_gaps

LESION = Place(FieldScope.LESION, "1")


@pytest.fixture
def refining(qtbot, opened):
    """Page Refine on screen with an own mask, a copy of the reference: one lesion on the left."""
    opened.show_page("Refine")
    opened.editing.start(Role.REFERENCE)
    qtbot.waitUntil(lambda: opened.editing.live is not None, timeout=8000)
    return opened


def lines(dock):
    return dock.refine_page.gaps.texts


def answer(dock, field, value, place=LESION):
    dock.findings_page.form.give(Answer(field, (value,) if value else (), place))


def test_who_only_segments_is_asked_for_nothing(qtbot, refining):
    assert lines(refining) == ()
    assert refining.refine_page.gaps.isHidden()


def test_a_form_that_is_begun_lists_what_it_lacks_and_follows_its_answers(qtbot, refining):
    answer(refining, "bpe", "mild", Place())
    qtbot.waitUntil(lambda: bool(refining.kinetics.findings._facts.lesions), timeout=8000)
    assert lines(refining)[-1].startswith("Missing: Amount of fibroglandular tissue and ")
    assert lines(refining)[-1].endswith("more")
    assert refining.refine_page.gaps.isVisibleTo(refining.refine_page)
    answer(refining, "fgt", "b", Place())
    assert "fibroglandular" not in lines(refining)[-1]


def mark_nipple(qtbot, dock):
    """Mark the left nipple: the lesion lies on the left then."""
    flow = dock.kinetics.findings
    flow.move_mark("mark NIPPLE LEFT", (0.0, 36.0, 0.0))
    qtbot.waitUntil(lambda: bool(flow._facts.lesions), timeout=8000)
    qtbot.waitUntil(lambda: flow._facts.lesions[0].side == "left", timeout=8000)


def test_without_a_nipple_no_side_is_known_and_none_contradicts(qtbot, refining):
    answer(refining, "side", "right")
    flow = refining.kinetics.findings
    qtbot.waitUntil(lambda: bool(flow._facts.lesions), timeout=8000)
    assert flow._facts.lesions[0].side is None
    assert lines(refining)[0].startswith("Missing: ")


def test_a_side_that_the_mask_contradicts_comes_first_and_goes_with_the_answer(qtbot, refining):
    mark_nipple(qtbot, refining)
    answer(refining, "side", "right")
    text = "Side: right, but the mask of lesion 1 lies on the left side"
    assert lines(refining)[0].startswith(f"⚠ Lesion 1: {text}")
    answer(refining, "side", "left")
    assert not any(line.startswith("⚠") for line in lines(refining))


def test_a_lesion_that_is_drawn_anew_is_asked_about_at_once(qtbot, refining):
    answer(refining, "bpe", "mild", Place())
    flow = refining.kinetics.findings
    qtbot.waitUntil(lambda: len(flow._facts.lesions or ()) == 1, timeout=8000)
    before = len(flow.list_gaps())
    layer = refining.editing.layer
    data = np.asarray(layer.data).copy()
    data[0:2, 0:3, 0:3] = 1
    mask = refining.session.mask(Role.REFINED)
    np.copyto(mask.buffer, data.reshape(mask.buffer.shape))
    refining.session.mask_edited.emit()
    qtbot.waitUntil(lambda: len(flow._facts.lesions) == 2, timeout=8000)
    assert len(flow.list_gaps()) > before


def test_the_form_of_the_case_before_is_not_listed_at_the_next(qtbot, refining):
    answer(refining, "bpe", "mild", Place())
    assert lines(refining)
    refining.cases_flow.open_neighbour(1)
    qtbot.waitUntil(lambda: refining.session.case_id == "A_2", timeout=8000)
    assert lines(refining) == ()


def test_another_readers_form_is_not_listed(qtbot, refining, world):
    answer(refining, "bpe", "mild", Place())
    refining.kinetics.findings.keep()
    refining.session.set_reader("Ben")
    qtbot.waitUntil(lambda: refining.kinetics.findings._is_loaded)
    assert lines(refining) == ()


def test_a_case_that_is_closed_lacks_nothing_and_a_late_click_does_nothing(qtbot, refining):
    answer(refining, "bpe", "mild", Place())
    gap = refining.kinetics.findings.list_gaps()[0]
    refining.session.close_case()
    assert lines(refining) == ()
    page = refining.page
    refining.accept_checks._go_to(gap)
    assert refining.page == page


def test_hidden_numbers_keep_what_is_missing(qtbot, refining):
    refining.session.blinding = Blinding.of(["numbers"])
    answer(refining, "bpe", "mild", Place())
    qtbot.waitUntil(lambda: bool(refining.kinetics.findings._facts.lesions), timeout=8000)
    assert any("Finding (lesion 1)" in one.text for one in refining.kinetics.findings.list_gaps())
    assert not any("mm3" in line for line in lines(refining))


def test_a_click_leads_to_the_question_with_the_keyboard_in_it(qtbot, refining):
    refining.show()
    answer(refining, "bpe", "mild", Place())
    listed = refining.refine_page.gaps.lines
    QTest.mouseClick(
        listed.viewport(),
        Qt.MouseButton.LeftButton,
        pos=listed.visualItemRect(listed.item(0)).center(),
    )
    assert refining.page == "Findings"
    assert refining.focusWidget().objectName() == "findings_answer_fgt"
    assert not refining.findings_page.form._is_unfolded


def test_a_question_in_the_fold_comes_out_of_it(qtbot, refining):
    mark_nipple(qtbot, refining)
    answer(refining, "side", "right")
    flow = refining.kinetics.findings
    gap = next(one for one in flow.list_gaps() if one.contradicts)
    assert gap.field == "side"
    refining.accept_checks._go_to(gap)
    assert refining.findings_page.place == LESION
    box = refining.findings_page.findChild(QComboBox, "findings_answer_side_1")
    qtbot.waitUntil(lambda: box.isVisibleTo(refining.findings_page))
    assert refining.focusWidget() is box


def test_of_very_many_gaps_the_first_and_their_number_are_told(qtbot):
    listed = GapList("gaps", is_brief=True)
    qtbot.addWidget(listed)
    listed.show_gaps([Gap(f"question {k}", "f", Place()) for k in range(40)])
    assert listed.texts == ("Missing: question 0 and 39 more",)
    more = [Gap(f"two do not go together {k}", contradicts=True) for k in range(3)]
    listed.show_gaps([Gap("question", "f", Place()), *more])
    assert listed.texts == ("⚠ two do not go together 0 and 2 more", "Missing: question")
    listed.show_gaps(())
    assert listed.isHidden()


def test_enter_on_a_line_leads_on_like_a_click(qtbot):
    listed = GapList("gaps")
    qtbot.addWidget(listed)
    gaps = [Gap("Finding", "finding", LESION), Gap("Side", "side", LESION, contradicts=True)]
    listed.show_gaps(gaps)
    listed.show()
    listed.lines.setCurrentRow(0)  # what contradicts stands first
    with qtbot.waitSignal(listed.gap_wanted) as asked:
        QTest.keyClick(listed.lines, Qt.Key.Key_Return)
    assert asked.args == [gaps[1]]
    assert listed.title.text() == "Missing: 1 · Contradictory: 1"


def test_as_sentences_what_is_missing_comes_first():
    gaps = (Gap("Side", "side", LESION), Gap("it is not so", contradicts=True))
    assert describe_gaps(gaps) == "Missing: Side. it is not so"
    assert describe_gaps(()) == ""
