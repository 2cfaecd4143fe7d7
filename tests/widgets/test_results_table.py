import math

import pytest
from qtpy.QtCore import QPoint, Qt
from qtpy.QtGui import QImage
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QComboBox, QLabel, QLineEdit, QVBoxLayout, QWidget
from tests.door.layout import combo_faults

from napari_mamamia.core.cohort import CaseRecord, Cohort
from napari_mamamia.core.records import CaseScore, CaseTag, ScoreStatus
from napari_mamamia.scoring.case.failures import Failure, FailureKind
from napari_mamamia.scoring.cohort.results import ModelScores, Resampling
from napari_mamamia.scoring.report.text import Column, ReportTable, Row
from napari_mamamia.services.score.case_table import (
    case_table,
    with_failures,
    with_tags,
)
from napari_mamamia.services.score.inspections import CaseInspection
from napari_mamamia.widgets.base.jobs import JobRunner
from napari_mamamia.widgets.base.notify import Notifier
from napari_mamamia.widgets.batch.results_cases import COLUMN_WIDTHS, dice_kind
from napari_mamamia.widgets.batch.results_cohort import CohortTab, Figure, page_of
from napari_mamamia.widgets.controls.short_texts import DottedChoice
from napari_mamamia.widgets.dock.results_panel import ResultsPanel

ROWS = (
    CaseScore("A_1", ScoreStatus.OK, dsc=0.9, hausdorff95_mm=2.04, volume_reference_mm3=4320.0),
    CaseScore(
        "A_2",
        ScoreStatus.OK,
        dsc=0.4,
        hausdorff95_mm=11.0,
        volume_reference_mm3=100.0,
        diameter_reference_mm=12.0,
        warning="two parts",
    ),
    CaseScore("B_1", ScoreStatus.UNREADABLE, reason="the file is cut off"),
    CaseScore(
        "B_2",
        ScoreStatus.PREDICTION_MISSING,
        dsc=0.0,
        volume_reference_mm3=90000.0,
        diameter_reference_mm=60.0,
        reason="no file",
    ),
)
COHORT = Cohort(
    (
        CaseRecord("A_1", age=45.0, breast_density="a"),
        CaseRecord("A_2", age=45.0, breast_density="d"),
        CaseRecord("B_2", age=80.0),
    )
)


def table_of(rows, cohort=None):
    model = ModelScores(
        "net",
        "clinical",
        len(rows),
        len(rows),
        tuple(rows),
        (),
        None,
        None,
        None,
        Resampling(0, 1),
        cohort=cohort,
    )
    return case_table(model, {})


def failed(case_id, *kinds):
    failures = tuple(Failure(kind, f"{kind.value}, 3 mm3") for kind in kinds)
    return CaseInspection(case_id, failures, None)


@pytest.fixture
def panel(qtbot):
    made = ResultsPanel(JobRunner(Notifier()))
    qtbot.addWidget(made)
    made.resize(1100, 300)
    made.show()
    made.cases.show_table(table_of(ROWS, COHORT), "net · profile clinical · 4 case(s)")
    return made


def place_of(panel, title):
    rows = panel.cases.rows
    titles = [rows.headerData(k, Qt.Orientation.Horizontal) for k in range(rows.columnCount())]
    return titles.index(title)


def column(panel, title):
    rows, at = panel.cases.rows, place_of(panel, title)
    return [rows.index(row, at).data() for row in range(rows.rowCount())]


def choose(box, start):
    texts = [box.itemText(k) for k in range(box.count())]
    box.setCurrentIndex(next(k for k, text in enumerate(texts) if text.startswith(start)))


def sort(panel, title, order):
    rows = panel.cases.rows
    titles = [rows.headerData(k, Qt.Orientation.Horizontal) for k in range(rows.columnCount())]
    panel.cases.table.sortByColumn(titles.index(title), order)


def test_cases_stand_worst_first_and_those_without_a_number_before(panel):
    assert column(panel, "case") == ["B_1", "B_2", "A_2", "A_1"]


WIDTHS = {9: (640, 750, 1800, 640, 1100), 14: (900, 1100, 1800), 18: (1000, 1800)}


@pytest.mark.parametrize("points", WIDTHS)
def test_title_and_choices_are_whole_words_in_any_width(qtbot, panel, points):
    """Beside the open work list they read "any statu" and "12 case(s), 12 scored, 0 wit"."""
    panel.setStyleSheet(f"QWidget {{ font-size: {points}pt; }}")
    title = "net · profile clinical · 4 case(s), 4 scored, 0 without a score"
    panel.cases.show_table(table_of(ROWS, COHORT), title)
    for width in WIDTHS[points]:
        panel.resize(width, 500)
        qtbot.wait(20)
        filters, summary = panel.cases.filters, panel.cases.summary
        boxes = filters.findChildren(QComboBox)
        assert [fault for box in boxes if box.isVisible() for fault in combo_faults(box)] == []
        said = summary._text_for(summary.contentsRect().width())
        assert said in (title, "net"), width
        cells = [box.geometry() for box in (*boxes, filters.clear) if box.isVisible()]
        assert not [1 for one in cells for other in cells if one != other and one & other]
        assert all(filters.rect().contains(cell) for cell in cells)
        n_lines = len({cell.top() for cell in cells})
        assert n_lines <= 2
        assert n_lines == 1 or width < 900 or points > 9
    assert title in summary.toolTip()


def test_a_choice_that_has_no_room_ends_with_dots(qtbot):
    box = DottedChoice()
    qtbot.addWidget(box)
    box.addItem("any failure")
    box.setFixedSize(72, 24)
    box.show()

    def drawn(text):
        box.setItemText(0, text)
        return box.grab().toImage()

    shortened = [drawn("any failure"[:length] + "…") for length in range(2, 10)]
    assert drawn("any failure") in shortened
    box.setFixedSize(200, 24)
    assert drawn("any failure") not in [drawn("any fail…"), drawn("any failur…")]


def test_of_equally_overlapping_cases_the_farther_is_worse(panel):
    near = CaseScore("A", ScoreStatus.OK, dsc=0.0, hausdorff95_mm=10.0)
    far = CaseScore("B", ScoreStatus.OK, dsc=0.0, hausdorff95_mm=90.0)
    panel.cases.show_table(table_of([near, far]), "")
    assert panel.case_ids() == ["B", "A"]


def test_units_stand_in_the_titles_and_unknown_is_a_dash(panel):
    assert column(panel, "HD95 [mm]") == ["–", "–", "11.0", "2.0"]
    assert column(panel, "reference [ml]")[3] == "4.32"
    assert column(panel, "status")[:2] == ["unreadable", "no prediction"]


def test_a_status_filters_the_rows(panel):
    status = panel.cases.filters.status
    assert [status.itemText(k) for k in range(status.count())] == [
        "any status",
        "scored (2)",
        "no prediction (1)",
        "unreadable (1)",
    ]
    status.setCurrentIndex(1)
    assert column(panel, "case") == ["A_2", "A_1"]
    assert panel.cases.filters.count.text() == "2 of 4 shown"
    status.setCurrentIndex(0)
    assert panel.cases.filters.count.text() == "4 of 4 shown"


def test_sizes_are_by_percentile_of_volume_and_by_diameter(panel):
    # volumes 100, 4320 and 90,000 mm3: the percentiles 20 and 80 lie at 1788 and 55,728 mm3
    choose(panel.cases.filters.size, "small")
    assert column(panel, "case") == ["A_2"]
    choose(panel.cases.filters.size, "large")
    assert column(panel, "case") == ["B_2"]
    choose(panel.cases.filters.size, "up to 20 mm")
    assert column(panel, "case") == ["A_2"]
    choose(panel.cases.filters.size, "over 50 mm")
    assert column(panel, "case") == ["B_2"]


def test_a_group_is_chosen_by_its_variable_and_its_value(panel):
    filters = panel.cases.filters
    assert not filters.value.isVisible()
    choose(filters.variable, "Age")
    assert filters.value.isVisible()
    assert panel.case_ids() == ["B_1", "B_2", "A_2", "A_1"]
    choose(filters.value, "41-50")
    assert panel.case_ids() == ["A_2", "A_1"]
    choose(filters.value, "in no group")
    assert panel.case_ids() == ["B_1"]
    choose(filters.variable, "Breast density")
    assert panel.case_ids() == ["B_1", "B_2", "A_2", "A_1"]


def test_a_case_with_two_kinds_of_failure_is_found_by_each(panel):
    assert column(panel, "failure")[0] == "–"
    assert not panel.cases.filters.failure.isEnabled()
    found = [
        failed("A_2", FailureKind.FRAGMENTED, FailureKind.SMALL_TUMOUR),
        failed("B_2", FailureKind.MISSED),
    ]
    panel.cases.update_table(with_failures(panel.cases.rows.table, found))
    assert column(panel, "failure") == ["", "missed", "fragmented, small tumour", ""]
    for kind in ("fragmented", "small"):
        choose(panel.cases.filters.failure, kind)
        assert panel.case_ids() == ["A_2"]
    choose(panel.cases.filters.failure, "missed")
    assert panel.case_ids() == ["B_2"]
    tip = panel.cases.rows.index(0, place_of(panel, "failure")).data(Qt.ItemDataRole.ToolTipRole)
    assert "missed, 3 mm3" in tip


def test_own_tags_are_a_column_and_a_filter_and_letter_case_does_not_part_cases(panel):
    tags = [CaseTag("a_2", "clip", "Ana", "2026"), CaseTag("A_2", "odd shape", "Bo", "2026")]
    panel.cases.update_table(with_tags(panel.cases.rows.table, tags))
    assert column(panel, "tags") == ["", "", "clip, odd shape", ""]
    choose(panel.cases.filters.tag, "odd")
    assert panel.case_ids() == ["A_2"]
    panel.cases.filters.search.setText("ODD sha")
    assert panel.case_ids() == ["A_2"]


def test_filters_combine_and_clear_shows_everything_again(panel):
    filters = panel.cases.filters
    assert not filters.clear.isEnabled()
    choose(filters.status, "scored")
    choose(filters.variable, "Breast density")
    choose(filters.value, "d")
    assert panel.case_ids() == ["A_2"]
    filters.search.setText("nowhere")
    assert filters.count.text() == "0 of 4 shown"
    assert filters.clear.isEnabled()
    filters.clear.click()
    assert panel.case_ids() == ["B_1", "B_2", "A_2", "A_1"]
    assert filters.search.text() == ""
    assert not filters.clear.isEnabled()


def test_a_choice_stays_when_more_becomes_known_of_the_cases(panel):
    choose(panel.cases.filters.status, "scored")
    panel.cases.update_table(with_failures(panel.cases.rows.table, []))
    assert panel.cases.filters.status.currentText() == "scored (2)"
    assert panel.case_ids() == ["A_2", "A_1"]


def test_the_search_looks_at_case_status_reason_and_warning(panel):
    for words, cases in {"b_": ["B_1", "B_2"], "CUT off": ["B_1"], "parts": ["A_2"]}.items():
        panel.cases.filters.search.setText(words)
        assert column(panel, "case") == cases


def test_unknown_sorts_last_both_ways(panel):
    sort(panel, "HD95 [mm]", Qt.SortOrder.AscendingOrder)
    assert column(panel, "HD95 [mm]") == ["2.0", "11.0", "–", "–"]
    sort(panel, "HD95 [mm]", Qt.SortOrder.DescendingOrder)
    assert column(panel, "HD95 [mm]") == ["11.0", "2.0", "–", "–"]


def test_texts_sort_by_letter_and_empty_ones_last(panel):
    sort(panel, "reason or warning", Qt.SortOrder.AscendingOrder)
    assert column(panel, "reason or warning") == ["no file", "the file is cut off", "two parts", ""]
    sort(panel, "reason or warning", Qt.SortOrder.DescendingOrder)
    assert column(panel, "reason or warning")[-1] == ""


def tint(panel, row, title):
    rows = panel.cases.rows
    titles = [rows.headerData(k, Qt.Orientation.Horizontal) for k in range(rows.columnCount())]
    colour = rows.index(row, titles.index(title)).data(Qt.ItemDataRole.BackgroundRole)
    return colour.name() if colour is not None else ""


VERMILION, ORANGE = "#d55e00", "#e69f00"


def test_a_cell_is_coloured_by_its_own_value_and_the_lower_dice_never_the_weaker(panel):
    # worst first: unreadable, no prediction (0.0), 0.4 with a warning, 0.9
    assert column(panel, "Dice") == ["–", "0.000", "0.400", "0.900"]
    assert [tint(panel, row, "Dice") for row in range(4)] == ["", VERMILION, VERMILION, ""]
    assert [tint(panel, row, "status") for row in range(4)] == [VERMILION, VERMILION, "", ""]
    warned = [tint(panel, row, "reason or warning") for row in range(4)]
    assert warned == ["", "", ORANGE, ""]
    assert [tint(panel, row, "case") for row in range(4)] == [""] * 4
    strength = {"problem": 2, "caution": 1, "": 0}
    shades = [strength[dice_kind(dice / 100)] for dice in range(101)]
    assert shades == sorted(shades, reverse=True)
    assert set(shades) == {0, 1, 2}


def test_what_the_colours_mean_stands_under_the_table_with_their_bounds(panel):
    text = panel.findChild(QLabel, "results_legend").text()
    assert "Dice below 0.5" in text
    assert "Dice below 0.7" in text
    assert "unknown" in text


def test_what_is_unknown_is_a_grey_dash(panel):
    rows = panel.cases.rows
    known, unknown = (rows.index(row, 2).data(Qt.ItemDataRole.ForegroundRole) for row in (1, 0))
    assert known is None
    assert unknown.name() == "#7c8088"


def test_the_table_opens_at_the_worst_case_though_the_open_case_is_far_down(qtbot):
    panel = ResultsPanel(JobRunner(Notifier()))
    qtbot.addWidget(panel)
    panel.resize(900, 200)
    tab = panel.cases
    rows = [CaseScore(f"C_{k:03d}", ScoreStatus.OK, dsc=k / 200) for k in range(200)]
    tab.set_current("C_150")
    tab.show_table(table_of(rows), "net")
    panel.show_cases()
    panel.show()
    qtbot.waitExposed(panel)
    assert tab.table.verticalScrollBar().value() == 0
    assert tab.table.indexAt(QPoint(5, 5)).row() == 0
    assert [index.row() for index in tab.table.selectionModel().selectedRows()] == [150]
    tab.update_table(tab.rows.table)  # what is found later must not move it either
    assert tab.table.verticalScrollBar().value() == 0
    tab.set_current("C_100")  # another case is opened: its row is shown
    assert tab.table.verticalScrollBar().value() > 0


def test_the_reason_stands_on_hover(panel):
    tip = panel.cases.rows.index(0, 2).data(Qt.ItemDataRole.ToolTipRole)
    assert "the file is cut off" in tip


def test_a_double_click_and_enter_choose_the_case_as_shown(qtbot, panel):
    chosen = []
    panel.cases.case_chosen.connect(chosen.append)
    panel.cases.filters.search.setText("a_")
    table = panel.cases.table
    where: QPoint = table.visualRect(panel.cases.rows.index(0, 0)).center()
    QTest.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, pos=where)
    QTest.mouseDClick(table.viewport(), Qt.MouseButton.LeftButton, pos=where)
    QTest.keyClick(table, Qt.Key.Key_Return)
    assert chosen == ["A_2", "A_2"]


def test_the_menu_of_a_row_adds_and_removes_tags(panel):
    wanted = []
    panel.cases.tag_wanted.connect(lambda *said: wanted.append(said))
    tags = [CaseTag("A_2", "clip", "Ana", "2026")]
    panel.cases.update_table(with_tags(panel.cases.rows.table, tags))
    menu = panel.cases.tags_menu_at(2)
    actions = {action.text(): action for action in menu.actions()}
    assert actions["clip"].isChecked()
    assert not actions["implant"].isChecked()
    actions["clip"].trigger()
    actions["implant"].trigger()
    field = menu.findChild(QLineEdit, "results_tag_other")
    field.setText("lymph node")
    QTest.keyClick(field, Qt.Key.Key_Return)
    assert wanted == [("A_2", "clip", False), ("A_2", "implant", True), ("A_2", "lymph node", True)]


def test_the_open_case_is_marked_and_stays_marked_in_another_order(panel):
    panel.cases.set_current("a_1")
    assert panel.cases.table.currentIndex().row() == 3
    sort(panel, "Dice", Qt.SortOrder.DescendingOrder)
    assert panel.cases.table.selectionModel().selectedRows()[0].row() == 0


def test_a_run_of_one_model_needs_no_choice_of_model(panel):
    assert not panel.cases.models.isVisible()
    panel.cases.show_models(["net", "other"])
    assert panel.cases.models.isVisible()
    chosen = []
    panel.cases.model_chosen.connect(chosen.append)
    panel.cases.models.setCurrentIndex(1)
    assert chosen == [1]


def test_a_large_table_is_filtered_and_sorted_in_a_thread(qtbot, panel):
    rows = [
        CaseScore(f"C_{k:05d}", ScoreStatus.OK, dsc=math.sin(k) ** 2, warning="odd" * (k % 2))
        for k in range(6000)
    ]
    panel.cases.show_table(table_of(rows), "")
    assert panel.case_ids() == []
    qtbot.waitUntil(lambda: len(panel.case_ids()) == 6000)
    panel.cases.filters.search.setText("odd")
    sort(panel, "Dice", Qt.SortOrder.DescendingOrder)
    qtbot.waitUntil(lambda: len(panel.case_ids()) == 3000)
    dice = [float(text) for text in column(panel, "Dice")]
    assert dice == sorted(dice, reverse=True)


def test_before_any_run_the_panel_says_what_to_do(qtbot):
    made = ResultsPanel(JobRunner(Notifier()))
    qtbot.addWidget(made)
    assert made.cases.summary.text().startswith("Nothing has been scored yet")
    assert "Nothing has been scored yet" in made.cohort.page.toPlainText()
    assert made.case_ids() == []
    assert not made.cohort.report.isEnabled()


def test_pages_come_into_the_panel_one_by_one_and_the_wanted_one_is_turned_to(qtbot):
    window = QWidget()
    qtbot.addWidget(window)
    panel = ResultsPanel(JobRunner(Notifier()), window)
    layout = QVBoxLayout(window)
    panel.show_log()
    panel.hide()
    layout.addWidget(panel)
    window.show()
    for number, step in enumerate(panel.fill_steps(), 1):
        step()
        assert sum(panel.tabs.isAncestorOf(page) for page in panel.pages) == number
    panel.show()
    assert panel.log.isVisible()
    assert not panel.cases.isVisible()


def test_no_page_of_the_results_makes_a_window_wider_than_a_small_screen_has(qtbot):
    panel = ResultsPanel(JobRunner(Notifier()))
    qtbot.addWidget(panel)
    for step in panel.fill_steps():
        step()
    # 853 points are 1280 pixels at 150 %, and half of them is the panel's
    assert panel.minimumSizeHint().width() < 853 // 2


def test_the_tables_of_the_cohort_break_no_word_and_no_number(qtbot):
    """At text of 150 % on 1280x720, 0.941 stood as "0.94" over "1", and "measure" as two lines."""
    heads = ("measure", "n", "mean", "95 % interval", "median", "quartiles", "greatest")
    cells = ("Sensitivity", "12", "0.941", "0.921 to 0.958", "0.943", "0.931 to 0.951", "0.977")
    table = ReportTable("Cohort", tuple(map(Column, heads)), (Row(cells),))
    tab = CohortTab()
    qtbot.addWidget(tab)
    tab.resize(420, 200)
    tab.show_page(page_of(["net: n 12"], [table]), has_report=False)
    tab.show()
    qtbot.wait(20)
    block = tab.page.document().begin()
    while block.isValid():
        layout, text = block.layout(), block.text()
        ends = [layout.lineAt(at).textStart() for at in range(1, layout.lineCount())]
        assert all(text[end - 1].isspace() for end in ends), text
        block = block.next()


def test_the_figure_of_the_cohort_always_fits_its_place(qtbot):
    tab = CohortTab()
    qtbot.addWidget(tab)
    tab.show_figures((Figure("dice by age", QImage(600, 400, QImage.Format.Format_RGB32)),))
    tab.resize(520, 700)
    tab.show()
    qtbot.waitExposed(tab)
    assert tab.parts.orientation() is Qt.Orientation.Vertical
    for shares in ([300, 200], [100, 600], [600, 100]):
        tab.parts.setSizes(shares)
        qtbot.wait(20)
        pixmap, place = tab.picture.pixmap(), tab.picture.size()
        assert pixmap.width() <= place.width()
        assert pixmap.height() <= place.height()
        assert place.width() - pixmap.width() < 2 or place.height() - pixmap.height() < 2
    tab.resize(900, 400)
    assert tab.parts.orientation() is Qt.Orientation.Horizontal


def test_the_failure_is_in_sight_in_a_table_of_half_a_screen(panel):
    # the table has 536 of 1400 pixels next to the page Batch
    assert sum(COLUMN_WIDTHS[: place_of(panel, "failure") + 1]) <= 536
