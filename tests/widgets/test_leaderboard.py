"""The leaderboard on a window with fake services: what it shows, opens, asks and refuses."""

import threading

import pytest
from qtpy.QtCore import QMimeData, QPoint, Qt, QUrl
from qtpy.QtGui import QDropEvent
from qtpy.QtTest import QTest

from napari_mamamia.core.blinding import ALL_HIDDEN
from napari_mamamia.core.errors import FormatError
from napari_mamamia.features.challenge.services.rank.board import open_board
from napari_mamamia.features.challenge.services.rank.inputs import AlgorithmTable
from napari_mamamia.services.case.show_case import CaseMasks, OpenMask
from napari_mamamia.widgets.base.layers import Role
from napari_mamamia.widgets.dock.dock import MamamiaDock

HEAD = "task,metric,site,case"
RANKS = (
    '{"methods": {"mean-then-rank": {"net": 1, "other": 2}, "rank-then-mean": {"net": 2, '
    '"other": 1}}, "scores": {"mean-then-rank": {"net": 0.8, "other": 0.7}}, "stability": '
    '{"mean-then-rank": {"rank_interval": {"net": [1, 1.4], "other": [1.6, 2]}, "first": '
    '{"net": 0.9, "other": 0.1}}}, "filled": {"net": 0, "other": 1}}'
)
VALUES = f"{HEAD},net,other\n,,,a_1,0.9,0.8\n,,,A_2,0.5,\n,,,X_9,0.8,0.7\n"


def write_ranking(folder, ranks=RANKS, values=VALUES):
    folder.mkdir(exist_ok=True)
    (folder / "rank.json").write_text(ranks)
    (folder / "case_values.csv").write_text(values)
    return folder


class FakeRanks:
    """Reads rankings as they are; masks of a team are those of the folder called like it."""

    def __init__(self, mask):
        self.mask = mask
        self.folders = {}
        self.asked = []
        self.error = None

    def find_team_folder(self, team, known, predictions):
        return known.get(team) or self.folders.get(team)

    def find_team_mask(self, folder, case_id):
        if self.error:
            raise self.error
        return folder / f"{case_id}.nii.gz"

    def review_masks(self, case, reference, prediction, model, counting):
        self.asked.append((case.case_id, reference, prediction, model))
        right, shifted = self.mask(case.grid), self.mask(case.grid)
        shifted[:, :, 10] = 0
        found = (("reference", "scored", right), ("prediction", model, shifted))
        return CaseMasks(tuple(OpenMask(role, name, None, data) for role, name, data in found))


@pytest.fixture
def ranks(new_mask):
    return FakeRanks(new_mask)


@pytest.fixture
def panel(qtbot, viewer, world, ranks):
    services = world.services()
    services = services.replacing(
        review_masks=ranks.review_masks,
        ranks=services.ranks.replacing(
            find_team_folder=ranks.find_team_folder,
            find_team_mask=ranks.find_team_mask,
        ),
    )
    made = MamamiaDock(viewer, services)
    qtbot.addWidget(made)
    made.resize(360, 900)
    made.show()
    made.results.resize(1000, 300)
    made.results.show()
    qtbot.addWidget(made.results)
    made.open_data_set(world.root / "data")
    qtbot.waitUntil(lambda: made.session.opened is not None)
    yield made
    made.close_down()


def show_ranking(qtbot, panel, folder):
    panel.flow("Leaderboard").open_ranking(folder)
    qtbot.waitUntil(lambda: not panel.jobs.is_running("leaderboard"))
    return panel.results.extra["Leaderboard"]


@pytest.fixture
def view(qtbot, panel, tmp_path):
    return show_ranking(qtbot, panel, write_ranking(tmp_path / "ranks"))


def texts_of(model, row):
    return [model.index(row, column).data() for column in range(model.columnCount())]


def choose_cell(view, row, column):
    index = view.cases_model.index(row, column)
    view.cases.scrollTo(index)
    QTest.mouseClick(
        view.cases.viewport(), Qt.MouseButton.LeftButton, pos=view.cases.visualRect(index).center()
    )


def choose(combo, text):
    combo.setCurrentIndex(combo.findText(text))
    combo.activated.emit(combo.currentIndex())


def test_without_a_ranking_the_form_makes_one_of_the_scored_models(qtbot, panel, tmp_path):
    made = write_ranking(tmp_path / "made")
    listed = [AlgorithmTable(name, tmp_path / name / "case_scores.csv") for name in ("a", "b")]
    asked = []
    ranks = panel.services.ranks
    panel.context.services.__dict__["ranks"] = ranks.replacing(
        list_score_tables=lambda _scores: tuple(listed),
        make_ranking=lambda tables, metric, scores: asked.append((tables, metric, scores)) or made,
    )
    panel.cases_page.leaderboard.click()
    form = panel.results.extra["Leaderboard"].form
    qtbot.waitUntil(lambda: form.tables.count() == 2)
    form.tables.item(1).setCheckState(Qt.CheckState.Unchecked)
    assert not form.start.isEnabled()
    assert form.score.property("primary")
    form.tables.item(1).setCheckState(Qt.CheckState.Checked)
    assert not form.isHidden()
    assert form.start.property("primary")
    assert not form.score.property("primary")
    form.start.click()
    qtbot.waitUntil(form.isHidden)
    assert asked == [(tuple(listed), "dsc", panel.session.opened.workspace.scores)]


def test_the_leader_the_teams_and_the_cases_are_shown(view):
    assert view.sentence.text() == (
        "net leads by mean-then-rank: first in 90 % of the resamples of the cases, other in 10 %. "
        "The lead is uncertain: 3 cases are too few for a conclusion."
    )
    assert texts_of(view.teams_model, 0) == ["1", "net", "1 to 2", "90 %", "0.8000", "3", "0"]
    assert texts_of(view.teams_model, 1) == ["2", "other", "1 to 2", "10 %", "0.7000", "3", "1"]
    assert texts_of(view.cases_model, 0) == ["0.100", "0.800", "0.900", "0.800"]
    assert texts_of(view.cases_model, 1) == ["0.000", "–", "0.500", "–"]
    filled = view.cases_model.index(1, 3)
    assert filled.data(Qt.ItemDataRole.BackgroundRole).style() == Qt.BrushStyle.BDiagPattern
    assert "no usable answer" in filled.data(Qt.ItemDataRole.ToolTipRole)
    best, worst = (view.cases_model.index(row, 2) for row in (0, 1))
    assert best.data(Qt.ItemDataRole.BackgroundRole) is None
    behind = worst.data(Qt.ItemDataRole.BackgroundRole).color()
    assert behind.alphaF() == pytest.approx(0.5, abs=0.01)


def test_another_method_puts_its_leader_and_its_column_first(view):
    choose(view.methods, "rank-then-mean: ranked in each case, then the mean of those ranks")
    assert view.sentence.text().startswith("other leads by rank-then-mean")
    assert view.teams_model.index(0, 1).data() == "other"
    header = view.cases_model.headerData
    assert header(2, Qt.Orientation.Horizontal) == "other"
    assert view.teams_model.index(0, 2).data() == "–"


def test_cases_are_sorted_by_a_choice_and_by_a_title(view):
    choose(view.orders, "cases worst value first")
    assert view.case_ids() == ["A_2", "X_9", "a_1"]
    choose(view.orders, "cases largest spread first")
    assert view.case_ids() == ["a_1", "X_9", "A_2"]
    header = view.cases.horizontalHeader()
    where = QPoint(header.sectionViewportPosition(2) + 5, header.height() // 2)
    QTest.mouseClick(header.viewport(), Qt.MouseButton.LeftButton, pos=where)
    assert view.case_ids() == ["A_2", "X_9", "a_1"]
    QTest.mouseClick(header.viewport(), Qt.MouseButton.LeftButton, pos=where)
    assert view.case_ids() == ["a_1", "X_9", "A_2"]


def test_a_click_on_a_cell_opens_the_case_with_the_teams_mask(qtbot, panel, view, ranks, tmp_path):
    ranks.folders = {"net": tmp_path / "net"}
    choose_cell(view, 0, 2)
    qtbot.waitUntil(lambda: panel.scene.layer(Role.AGREEMENT) is not None)
    # a_1 is spelled as the data set has it
    assert ranks.asked[0][0] == "A_1"
    assert ranks.asked[0][2:] == (tmp_path / "net" / "A_1.nii.gz", "net")
    assert panel.session.mask(Role.PREDICTION).name == "net"
    assert panel.session.queue == ["A_1", "A_2"]
    assert view.masks_text.text() == f"Masks of net: …/{tmp_path.name}/net"
    assert str(tmp_path / "net") in view.masks_text.toolTip()


def test_enter_opens_a_cell_and_letters_go_to_the_image(qtbot, panel, view, ranks, tmp_path):
    ranks.folders = {"net": tmp_path / "net"}
    view.cases.setFocus()
    view.cases.setCurrentIndex(view.cases_model.index(0, 2))
    QTest.keyClick(view.cases, Qt.Key.Key_Down)
    QTest.keyClick(view.cases, Qt.Key.Key_A)
    assert view.cases.currentIndex().row() == 1
    QTest.keyClick(view.cases, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: panel.session.case_id == "A_2")
    qtbot.waitUntil(lambda: bool(ranks.asked))


def test_the_next_case_has_the_same_teams_mask(qtbot, panel, view, ranks, tmp_path):
    ranks.folders = {"net": tmp_path / "net"}
    choose_cell(view, 0, 2)
    qtbot.waitUntil(lambda: len(ranks.asked) == 1)
    panel.cases_flow.open_neighbour(1)
    qtbot.waitUntil(lambda: len(ranks.asked) == 2)
    assert ranks.asked[1][0] == "A_2"
    assert ranks.asked[1][3] == "net"


def test_a_folder_that_is_not_known_is_asked_for_once_and_remembered(
    qtbot, panel, view, ranks, world, tmp_path
):
    choose_cell(view, 0, 2)
    qtbot.waitUntil(lambda: view.masks_line.isVisible())
    assert "The folder of net's masks is not known" in view.masks_text.text()
    assert ranks.asked == []
    view.masks_chosen.emit("net", tmp_path / "net")
    qtbot.waitUntil(lambda: panel.scene.layer(Role.AGREEMENT) is not None)
    assert world.preferences.team_masks == ((tmp_path / "ranks", "net", tmp_path / "net"),)
    again = show_ranking(qtbot, panel, tmp_path / "ranks")
    assert not again.masks_line.isVisible()
    choose_cell(again, 1, 2)
    qtbot.waitUntil(lambda: len(ranks.asked) == 2)


def test_who_goes_on_without_masks_is_not_asked_again(qtbot, panel, view, ranks):
    choose_cell(view, 0, 2)
    qtbot.waitUntil(lambda: view.masks_line.isVisible())
    view.decline_masks.click()
    assert not view.masks_line.isVisible()
    choose_cell(view, 1, 2)
    qtbot.waitUntil(lambda: panel.session.case_id == "A_2")
    qtbot.waitUntil(lambda: not panel.jobs.is_running("review"))
    assert not view.masks_line.isVisible()


def test_a_folder_that_is_gone_is_said_and_asked_for_anew(qtbot, panel, view, ranks, tmp_path):
    ranks.folders = {"net": tmp_path / "gone"}
    ranks.error = FormatError("expected a folder, gone")
    choose_cell(view, 0, 2)
    qtbot.waitUntil(lambda: view.masks_line.isVisible())
    assert "expected a folder, gone" in view.masks_text.text()


def test_the_queue_follows_the_order_of_the_view(qtbot, panel, view, ranks, tmp_path):
    ranks.folders = {"net": tmp_path / "net"}
    choose_cell(view, 0, 2)
    qtbot.waitUntil(lambda: len(ranks.asked) == 1)
    choose(view.orders, "cases worst value first")
    assert panel.session.queue == ["A_2", "A_1"]


# ------------------------------------------------------------------ hostile inputs


def test_a_case_of_another_data_set_is_said_and_not_opened(panel, view):
    assert "2 of these 3 cases are in the open data set" in view.cases_note.text()
    choose_cell(view, 2, 2)
    assert "X_9 is not in the open data set" in panel.header.message.text()
    assert panel.session.case is None


def test_without_a_data_set_it_says_how_cases_can_be_seen(qtbot, viewer, world, tmp_path):
    made = MamamiaDock(viewer, world.services())
    qtbot.addWidget(made)
    view = show_ranking(qtbot, made, write_ranking(tmp_path / "ranks"))
    assert view.cases_note.text().startswith("Open the ranked data set")
    made.close_down()


def test_a_damaged_ranking_is_said_in_its_place_and_another_can_be_opened(qtbot, panel, tmp_path):
    bad = write_ranking(tmp_path / "bad", "{")
    view = show_ranking(qtbot, panel, bad)
    assert "rank.json" in view.sentence.text()
    assert not view.cases.isVisible()
    good = show_ranking(qtbot, panel, write_ranking(tmp_path / "good"))
    assert good.sentence.text().startswith("net leads by mean-then-rank")
    assert good.cases.isVisible()


def test_a_ranking_without_cases_says_why(qtbot, panel, tmp_path):
    folder = write_ranking(tmp_path / "ranks")
    (folder / "case_values.csv").unlink()
    view = show_ranking(qtbot, panel, folder)
    assert view.teams.isVisible()
    assert not view.cases.isVisible()
    assert "case_values.csv" in view.no_cases.text()


def test_a_name_of_two_hundred_letters_leaves_the_view_as_wide_as_it_was(qtbot, panel, tmp_path):
    long = "x" * 200
    folder = tmp_path / "ranks"
    write_ranking(folder, RANKS.replace("net", long), VALUES.replace("net", long))
    before = panel.results.minimumSizeHint().width()
    view = show_ranking(qtbot, panel, folder)
    assert panel.results.minimumSizeHint().width() <= before
    assert view.teams_model.index(0, 1).data() == long
    assert view.cases.columnWidth(2) < 200


def test_a_blind_reader_sees_no_leaderboard_and_nothing_of_it_is_read(
    qtbot, viewer, world, tmp_path
):
    read = []
    services = world.services()
    ranks = services.ranks.replacing(open_board=lambda path: read.append(path) or open_board(path))
    made = MamamiaDock(viewer, services.replacing(ranks=ranks))
    qtbot.addWidget(made)
    folder = write_ranking(tmp_path / "ranks")
    view = show_ranking(qtbot, made, folder)
    assert read == [folder]
    made.session.set_blinding(ALL_HIDDEN)
    assert view.sentence.text().startswith("Blind:")
    assert view.teams_model.rowCount() == view.cases_model.rowCount() == 0
    assert not view.open.isEnabled()
    show_ranking(qtbot, made, folder)
    assert read == [folder]
    assert view.sentence.text().startswith("Blind:")
    made.close_down()


def test_a_new_ranking_that_is_read_late_does_not_replace_a_newer_one(qtbot, panel, tmp_path):
    gate = threading.Event()
    first, second = (write_ranking(tmp_path / name) for name in ("first", "second"))
    flow = panel.flow("Leaderboard")
    known = flow._services

    def wait(path):
        if path == first:
            gate.wait(5)
        return open_board(path)

    flow._services = known.replacing(ranks=known.ranks.replacing(open_board=wait))
    flow.open_ranking(first)
    flow.open_ranking(second)
    qtbot.waitUntil(lambda: flow._board is not None)
    gate.set()
    qtbot.wait(50)
    assert flow._board.folder == second


# --------------------------------------------------------------------- ways in


def test_page_batch_shows_the_leaderboard(panel):
    panel.show_page("Batch scoring")
    panel.batch_page.leaderboard.click()
    tabs = panel.results.tabs
    assert tabs.tabText(tabs.currentIndex()) == "Leaderboard"
    assert "No ranking is open" in panel.results.extra["Leaderboard"].sentence.text()


@pytest.mark.parametrize("name", ["", "rank.json"])
def test_a_ranking_that_is_dropped_is_opened(qtbot, panel, tmp_path, name):
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(write_ranking(tmp_path / "ranks") / name))])
    action, button = Qt.DropAction.CopyAction, Qt.MouseButton.LeftButton
    where, key = panel.rect().center().toPointF(), Qt.KeyboardModifier.NoModifier
    panel.dropping.eventFilter(panel, QDropEvent(where, action, data, button, key))
    qtbot.waitUntil(lambda: panel.results.extra["Leaderboard"].teams_model.rowCount() == 2)


def test_a_ranking_that_is_opened_as_a_data_set_is_shown(qtbot, panel, tmp_path):
    panel.cases_page.folder_chosen.emit(write_ranking(tmp_path / "ranks"))
    qtbot.waitUntil(lambda: panel.results.extra["Leaderboard"].teams_model.rowCount() == 2)
    assert panel.session.opened.data_set.name == "data"
    assert panel.cases_page.folder.text() == str(panel.session.opened.data_set.root)


def test_opening_a_scored_row_ends_the_teams_masks(qtbot, panel, view, ranks, tmp_path):
    ranks.folders = {"net": tmp_path / "net"}
    choose_cell(view, 0, 2)
    qtbot.waitUntil(lambda: len(ranks.asked) == 1)
    panel.results_review.case_wanted.emit()
    panel.cases_flow.open_case("A_2")
    qtbot.waitUntil(lambda: panel.session.case_id == "A_2")
    qtbot.wait(50)
    assert len(ranks.asked) == 1
