import math

import pytest
from qtpy.QtCore import QPoint, Qt
from qtpy.QtTest import QTest

from napari_mamamia.core.records import CaseScore, ScoreStatus
from napari_mamamia.widgets.results_model import worst_first
from napari_mamamia.widgets.results_panel import ResultsPanel

ROWS = (
    CaseScore("A_1", ScoreStatus.OK, dsc=0.9, hausdorff95_mm=2.04, volume_reference_mm3=4320.0),
    CaseScore("A_2", ScoreStatus.OK, dsc=0.4, hausdorff95_mm=11.0, warning="two parts"),
    CaseScore("B_1", ScoreStatus.UNREADABLE, reason="the file is cut off"),
    CaseScore("B_2", ScoreStatus.PREDICTION_MISSING, dsc=0.0, reason="no file"),
)


@pytest.fixture
def panel(qtbot):
    made = ResultsPanel()
    qtbot.addWidget(made)
    made.resize(1100, 300)
    made.show()
    made.show_results("net · profile clinical · 4 case(s)", ROWS, ("mean DSC 0.65",))
    return made


def column(panel, title):
    shown = panel.shown
    titles = [shown.headerData(k, Qt.Orientation.Horizontal) for k in range(shown.columnCount())]
    at = titles.index(title)
    return [shown.index(row, at).data() for row in range(shown.rowCount())]


def test_cases_stand_worst_first_and_those_without_a_number_before(panel):
    assert column(panel, "case") == ["B_1", "B_2", "A_2", "A_1"]


def test_of_equally_overlapping_cases_the_farther_is_worse():
    near = CaseScore("A", ScoreStatus.OK, dsc=0.0, hausdorff95_mm=10.0)
    far = CaseScore("B", ScoreStatus.OK, dsc=0.0, hausdorff95_mm=90.0)
    assert [row.case_id for row in worst_first([near, far])] == ["B", "A"]


def test_units_stand_in_the_titles_and_unknown_is_a_dash(panel):
    assert column(panel, "HD95 [mm]") == ["–", "–", "11.0", "2.0"]
    assert column(panel, "reference [ml]")[3] == "4.32"
    assert column(panel, "status")[:2] == ["unreadable", "no prediction"]


def test_a_status_filters_the_rows(panel):
    assert [panel.status.itemText(k) for k in range(panel.status.count())] == [
        "every status (4)",
        "ok (2)",
        "no prediction (1)",
        "unreadable (1)",
    ]
    panel.status.setCurrentIndex(1)
    assert column(panel, "case") == ["A_2", "A_1"]
    assert panel.count.text() == "2 of 4 cases"
    panel.status.setCurrentIndex(0)
    assert panel.count.text() == ""


def test_the_search_looks_at_case_status_reason_and_warning(panel):
    for words, cases in {"b_": ["B_1", "B_2"], "CUT off": ["B_1"], "parts": ["A_2"]}.items():
        panel.search.setText(words)
        assert column(panel, "case") == cases


def test_unknown_sorts_last_both_ways(panel):
    panel.table.sortByColumn(3, Qt.SortOrder.AscendingOrder)
    assert column(panel, "HD95 [mm]") == ["2.0", "11.0", "–", "–"]
    panel.table.sortByColumn(3, Qt.SortOrder.DescendingOrder)
    assert column(panel, "HD95 [mm]") == ["11.0", "2.0", "–", "–"]


def test_rows_that_need_a_look_are_tinted_and_good_ones_are_not(panel):
    tints = [panel.shown.index(row, 0).data(Qt.ItemDataRole.BackgroundRole) for row in range(4)]
    assert tints[3] is None
    # vermilion behind the two that were not scored as they should, orange behind the warning
    assert tints[0].name() == tints[1].name() == "#d55e00"
    assert tints[2].name() == "#e69f00"


def test_the_reason_stands_on_hover(panel):
    assert "the file is cut off" in panel.shown.index(0, 2).data(Qt.ItemDataRole.ToolTipRole)


def test_a_double_click_and_enter_choose_the_case_as_shown(qtbot, panel):
    chosen = []
    panel.case_chosen.connect(chosen.append)
    panel.search.setText("a_")
    where: QPoint = panel.table.visualRect(panel.shown.index(0, 0)).center()
    QTest.mouseClick(panel.table.viewport(), Qt.MouseButton.LeftButton, pos=where)
    QTest.mouseDClick(panel.table.viewport(), Qt.MouseButton.LeftButton, pos=where)
    QTest.keyClick(panel.table, Qt.Key.Key_Return)
    assert chosen == ["A_2", "A_2"]


def test_the_open_case_is_marked(panel):
    panel.set_current("A_1")
    assert panel.table.currentIndex().row() == 3


def test_many_rows_sort_at_once(qtbot, panel):
    rows = [CaseScore(f"C_{k}", ScoreStatus.OK, dsc=math.sin(k) ** 2) for k in range(1506)]
    panel.show_results("", rows, ())
    panel.table.sortByColumn(2, Qt.SortOrder.DescendingOrder)
    dice = [float(text) for text in column(panel, "Dice")]
    assert dice == sorted(dice, reverse=True)
