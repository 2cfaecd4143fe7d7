import sys
from pathlib import Path

import pytest
from qtpy.QtCore import Qt

from napari_mamamia.core.cohort import CaseRecord, MenopausalStatus
from napari_mamamia.io.files.sources import CaseFiles, PhaseSource, Visit
from napari_mamamia.services.case.data_set import CaseRow
from napari_mamamia.widgets.cases.page import BASIC_COLUMNS, CaseTableModel, clinical_columns


def row(case_id, phases=4, reference=True, record=None, problems=(), refined=()):
    files = CaseFiles(
        case_id,
        tuple(PhaseSource((Path(f"{case_id}_{k}.nii.gz"),)) for k in range(phases)),
        Path("r.nii.gz") if reference else None,
        problems=tuple(problems),
    )
    return CaseRow(files, record, (), tuple(refined))


@pytest.fixture
def model(qapp):
    made = CaseTableModel()
    rows = [row("DUKE_10", 5), row("DUKE_2", 3, reference=False), row("ISPY1_1", 4)]
    made.show_rows(rows, BASIC_COLUMNS)
    return made


def column(model, section):
    return [model.index(r, section).data() for r in range(model.rowCount())]


def test_rows_stand_in_the_order_of_the_data_set(model):
    assert model.case_ids() == ["DUKE_10", "DUKE_2", "ISPY1_1"]


def test_case_names_sort_by_their_numbers(model):
    model.sort(0)
    assert model.case_ids() == ["DUKE_2", "DUKE_10", "ISPY1_1"]
    model.sort(0, Qt.SortOrder.DescendingOrder)
    assert model.case_ids() == ["ISPY1_1", "DUKE_10", "DUKE_2"]


def test_numbers_sort_by_value_and_unknown_comes_last_either_way(qapp):
    made = CaseTableModel()
    records = {"a": 60.0, "b": None, "c": 9.0}
    rows = [row(name, record=CaseRecord(name, age=age)) for name, age in records.items()]
    made.show_rows(rows, (*BASIC_COLUMNS, *clinical_columns(rows)))
    age = [c.title for c in (*BASIC_COLUMNS, *clinical_columns(rows))].index("age")
    made.sort(age)
    assert made.case_ids() == ["c", "a", "b"]
    made.sort(age, Qt.SortOrder.DescendingOrder)
    assert made.case_ids() == ["a", "c", "b"]


def test_the_third_click_that_takes_the_sorting_away_gives_the_first_order_back(model):
    model.sort(0)
    model.sort(-1)
    assert model.case_ids() == ["DUKE_10", "DUKE_2", "ISPY1_1"]


def test_search_needs_every_word_in_any_column_and_any_letter_case(model):
    model.set_search("duke yes")
    assert model.case_ids() == ["DUKE_10"]
    model.set_search("")
    assert model.rowCount() == 3


def test_a_missing_reference_is_a_dash(model):
    assert column(model, 2) == ["yes", "–", "yes"]


def test_problems_are_told_on_hover(qapp):
    made = CaseTableModel()
    made.show_rows([row("a", problems=["phase 1 is missing"])], BASIC_COLUMNS)
    assert made.index(0, 0).data(Qt.ItemDataRole.ToolTipRole) == "phase 1 is missing"
    assert column(made, 5) == ["problem"]


def test_every_column_explains_itself(model):
    for section in range(model.columnCount()):
        tip = model.headerData(section, Qt.Orientation.Horizontal, Qt.ItemDataRole.ToolTipRole)
        assert tip


def test_a_changed_case_keeps_its_place_and_shows_its_new_state(model):
    model.set_row(row("DUKE_2", 3, refined=("Ana",)))
    assert column(model, 4) == ["–", "Ana", "–"]
    model.set_search("ana")
    assert model.case_ids() == ["DUKE_2"]


def test_a_changed_case_sorts_by_its_new_value(model):
    model.set_row(row("DUKE_10", 1))
    model.sort(1)
    assert model.case_ids() == ["DUKE_10", "DUKE_2", "ISPY1_1"]


def test_the_open_case_is_bold(model):
    model.set_current("DUKE_2")
    bold = [model.index(r, 0).data(Qt.ItemDataRole.FontRole) for r in range(3)]
    assert [font is not None for font in bold] == [False, True, False]


def test_clinical_columns_are_those_with_a_value_somewhere():
    rows = [
        row("a", record=CaseRecord("a", age=50.0, other={"site": "X", "weight": None})),
        row("b", record=CaseRecord("b", menopausal_status=MenopausalStatus.POST)),
        row("c"),
    ]
    columns = clinical_columns(rows)
    assert [c.title for c in columns] == ["age", "menopausal status", "site", "weight"]
    assert columns[0].value(rows[2]) is None
    assert columns[2].value(rows[0]) == "X"


def test_sorting_and_searching_looks_at_each_of_1506_cases_a_few_times(qapp):
    made = CaseTableModel()
    records = [CaseRecord(f"DUKE_{k:03d}", age=float(k % 60)) for k in range(1506)]
    rows = [row(r.case_id, 4 + k % 3, record=r) for k, r in enumerate(records)]
    made.show_rows(rows, (*BASIC_COLUMNS, *clinical_columns(rows)))
    for act in (lambda: made.sort(0), lambda: made.sort(6), lambda: made.set_search("7")):
        calls = []
        sys.setprofile(lambda _frame, event, _what, calls=calls: calls.append(event))
        try:
            act()
        finally:
            sys.setprofile(None)
        n_calls = sum(event in ("call", "c_call") for event in calls)
        assert 0 < n_calls < 50 * len(rows)  # comparing each with each would be 1506 for each


def exam(patient, visit):
    files = CaseFiles(f"{patient}_{visit}", (), patient=patient, visit=Visit(f"v{visit}", visit))
    return CaseRow(files, None, (), ())


@pytest.fixture
def visits(qapp):
    """Two patients with two exams each, and one with a single exam."""
    made = CaseTableModel()
    exams = [exam(name, visit) for name in ("A", "B") for visit in (0, 1)]
    made.show_rows([*exams, exam("C", 0)], BASIC_COLUMNS)
    return made


def test_exams_of_a_patient_are_folded_below_the_patient(visits):
    assert column(visits, 0) == ["▸ A (2)", "▸ B (2)", "▸ C (1)"]
    assert visits.open_group(1)
    assert column(visits, 0) == ["▸ A (2)", "▾ B (2)", "B_0", "B_1", "▸ C (1)"]
    assert [visits.case_id(row) for row in range(3)] == ["", "", "B_0"]
    assert not visits.open_group(2)
    visits.open_group(visits.group_row(3), is_open=False)
    assert visits.rowCount() == 3


def test_queue_has_the_exams_of_folded_patients(visits):
    assert visits.case_ids() == ["A_0", "A_1", "B_0", "B_1", "C_0"]
    assert visits.show_case("B_1") == 3
    assert visits.show_case("nobody") == -1


def test_search_unfolds_what_matches_and_folds_it_again(visits):
    visits.set_search("_1")
    assert column(visits, 0) == ["▾ A (1)", "A_1", "▾ B (1)", "B_1"]
    visits.set_search("")
    assert column(visits, 0) == ["▸ A (2)", "▸ B (2)", "▸ C (1)"]


def test_sorting_keeps_the_exams_of_a_patient_together(visits):
    visits.open_group(0)
    visits.sort(0, Qt.SortOrder.DescendingOrder)
    assert column(visits, 0) == ["▸ C (1)", "▸ B (2)", "▾ A (2)", "A_1", "A_0"]


def test_a_data_set_of_one_exam_for_each_patient_has_no_groups(qapp):
    made = CaseTableModel()
    made.show_rows([exam("A", 0), exam("B", 0)], BASIC_COLUMNS)
    assert column(made, 0) == ["A_0", "B_0"]


def test_left_and_right_and_enter_fold_a_patient_on_the_page(qtbot):
    from napari_mamamia.widgets.cases.page import CasesPage

    page = CasesPage()
    qtbot.addWidget(page)
    rows = [exam("A", 0), exam("A", 1)]
    page.show_data_set(Path("set"), "", rows)
    chosen = []
    page.case_chosen.connect(chosen.append)
    page.table.selectRow(0)
    for key, count in ((Qt.Key.Key_Right, 3), (Qt.Key.Key_Left, 1), (Qt.Key.Key_Return, 3)):
        qtbot.keyClick(page.table, key)
        assert page.model.rowCount() == count
    qtbot.keyClick(page.table, Qt.Key.Key_Down)
    qtbot.keyClick(page.table, Qt.Key.Key_Return)
    assert chosen == ["A_0"]
    qtbot.keyClick(page.table, Qt.Key.Key_Left)
    assert (page.model.rowCount(), page.table.currentIndex().row()) == (1, 0)
