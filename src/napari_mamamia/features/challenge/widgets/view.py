"""The Leaderboard tab: a summary, the teams ranked by a method, and every team's cases."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from qtpy.QtCore import QModelIndex, Qt, Signal
from qtpy.QtGui import QKeyEvent, QResizeEvent
from qtpy.QtWidgets import (
    QComboBox,
    QFileDialog,
    QHeaderView,
    QListWidget,
    QListWidgetItem,
    QSizePolicy,
    QSplitter,
    QTableView,
    QWidget,
)

from napari_mamamia.core.texts import tr
from napari_mamamia.features.challenge.services.rank.board import (
    BoardTable,
    CaseOrder,
    RankBoard,
    order_cases,
    say_lead,
)
from napari_mamamia.features.challenge.services.rank.inputs import AlgorithmTable
from napari_mamamia.features.challenge.widgets import models
from napari_mamamia.widgets.controls.colours import QUIET_COLOUR
from napari_mamamia.widgets.controls.controls import (
    button,
    fill_column,
    label,
    named,
    row,
    set_level,
    set_primary,
    tool_button,
)
from napari_mamamia.widgets.controls.fields import combo_box
from napari_mamamia.widgets.controls.table_fit import TableFit

_METRICS: Final = (("dsc", "Dice"), ("hausdorff95_mm", "HD95 [mm]"), ("norm_hd", "NormHD"))
_FEWEST: Final = 2
_MOST_ROWS: Final = 4


class RankingForm(QWidget):
    """Form with the score tables to rank, the metric, and a start button.

    The signal `start_wanted` carries the tables and the metric; `scoring_wanted` requests the page
    for scoring.
    """

    start_wanted = Signal(object, str)
    scoring_wanted = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("ranking_form")
        self.state = label("ranking_state", tip=tr("What a ranking needs."))
        self.tables: QListWidget = named(
            QListWidget(), "ranking_tables", tr("Score tables to rank; ticked tables are included.")
        )
        self.tables.itemChanged.connect(lambda _item: self._show_state())
        self.metric = combo_box("ranking_metric", tr("Selects the value to rank by."))
        for name, title in _METRICS:
            self.metric.addItem(title, name)
        self.start = button(
            "ranking_start",
            tr("Make ranking"),
            tr("Ranks the models of these tables, and shows the leaderboard."),
            self._request_start,
        )
        add = button(
            "ranking_add",
            tr("Add score table…"),
            tr("Adds a table of case scores from another folder."),
            self._browse_tables,
        )
        self.score = button(
            "ranking_score",
            tr("Score models"),
            tr("Goes to the Batch page to score the masks of models."),
            self.scoring_wanted.emit,
        )
        fill_column(self, self.state, self.tables, row(self.start, self.metric, add, self.score, 1))
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)
        self.show_tables(())

    def show_tables(self, tables: Sequence[AlgorithmTable]) -> None:
        """List the score tables that were found, with all of them ticked."""
        self.tables.clear()
        for table in tables:
            self._add_table(table)
        self._show_state()

    def chosen(self) -> tuple[AlgorithmTable, ...]:
        """Return the ticked tables."""
        items = (self.tables.item(index) for index in range(self.tables.count()))
        return tuple(
            item.data(Qt.ItemDataRole.UserRole)
            for item in items
            if item is not None and item.checkState() == Qt.CheckState.Checked
        )

    def _add_table(self, table: AlgorithmTable) -> None:
        item = QListWidgetItem(f"{table.name}   …/{table.path.parent.name}/{table.path.name}")
        item.setToolTip(str(table.path))
        item.setData(Qt.ItemDataRole.UserRole, table)
        item.setCheckState(Qt.CheckState.Checked)
        self.tables.addItem(item)

    def _show_state(self) -> None:
        n_chosen = len(self.chosen())
        is_enough = n_chosen >= _FEWEST
        self.start.setEnabled(is_enough)
        set_primary(self.start, is_enough)
        set_primary(self.score, not is_enough)
        self.state.setText(
            tr("Ranking of {n} models.", n=n_chosen)
            if is_enough
            else tr(
                "A ranking compares at least two models: score them first, or add score tables."
            )
        )
        set_level(self.state, "" if is_enough else "warning")
        shown = min(max(self.tables.count(), 1), _MOST_ROWS)
        self.tables.setMaximumHeight(shown * self.tables.fontMetrics().height() * 2)
        self.tables.setVisible(self.tables.count() > 0)

    def _request_start(self) -> None:
        self.start_wanted.emit(self.chosen(), str(self.metric.currentData()))

    def _browse_tables(self) -> None:
        chosen, _ = QFileDialog.getOpenFileNames(
            self,
            tr("Add score tables"),
            str(Path.home()),
            tr("Tables (*.csv *.xlsx *.parquet)"),
        )
        for path in map(Path, chosen):
            self._add_table(AlgorithmTable(path.parent.name, path))
        self._show_state()


_NOTHING: Final = tr("No ranking is open. Rank your scored models, or open a ranking.")
_LEAST_HEIGHT: Final = 60
_CELL_WIDTH: Final = 72
_MOST_LETTERS: Final = 24
_MARGIN: Final = 18
_SCROLL_BAR: Final = 24
_FEWEST_LETTERS: Final = 12
_NOTES_SHOWN: Final = 2
_METHOD_TEXTS: Final = {
    "mean-then-rank": tr("the mean over the cases, then ranked"),
    "median-then-rank": tr("the median over the cases, then ranked"),
    "q05-then-rank": tr("the worst 5 % of the cases (quantile), then ranked"),
    "rank-then-mean": tr("ranked in each case, then the mean of those ranks"),
    "rank-then-median": tr("ranked in each case, then the median of those ranks"),
    "test-then-rank": tr(
        "number of other teams that a team beats significantly (one-sided Wilcoxon)"
    ),
    "composite": tr("the challenge's own score"),
    "ladder": tr("the challenge's own score, kept until a later attempt is clearly better"),
    "challenge": tr("the challenge's own score, as displayed on its leaderboard"),
}


class CellTable(QTableView):
    """A table whose cells open on click or Enter; the signal `opened` carries row and column."""

    opened = Signal(int, int)

    def __init__(self) -> None:
        super().__init__()
        self.setSelectionMode(QTableView.SelectionMode.SingleSelection)
        self.setEditTriggers(QTableView.EditTrigger.NoEditTriggers)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self.setHorizontalScrollMode(QTableView.ScrollMode.ScrollPerPixel)
        self.horizontalHeader().setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self.horizontalHeader().setHighlightSections(False)
        self.verticalHeader().setHighlightSections(False)
        self.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        self.setMinimumHeight(_LEAST_HEIGHT)
        self.fit = TableFit(self)
        self.clicked.connect(self._open_index)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Open a cell on Enter, and pass letters on as window shortcuts."""
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self._open_index(self.currentIndex())
        elif event.text().strip():
            event.ignore()
        else:
            super().keyPressEvent(event)

    def _open_index(self, index: QModelIndex) -> None:
        if index.isValid():
            self.opened.emit(index.row(), index.column())


class LeaderboardTab(QWidget):
    """The Leaderboard tab.

    The signal `folder_chosen` carries a path, `cell_chosen` a case and a team ("" for none).
    `masks_chosen` carries a team and the folder of its masks, `masks_declined` a team. `reordered`
    is emitted when the order of the cases has changed.
    """

    folder_chosen = Signal(object)
    cell_chosen = Signal(str, str)
    masks_chosen = Signal(str, object)
    masks_declined = Signal(str)
    reordered = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("leaderboard")
        self._board: RankBoard | None = None
        self._table: BoardTable | None = None
        self._team = ""
        self._by: tuple[str, bool] = (CaseOrder.LISTED, False)
        self.teams_model = models.TeamsModel()
        self.cases_model = models.CasesModel()
        self.cases_model.sort_wanted.connect(self._sort_by)
        self._make_choices()
        self._make_tables()
        self._make_masks_line()
        self._lay_out()
        self.show_board(None)

    # ---------------------------------------------------------------- for others

    def show_board(self, board: RankBoard | None, problem: str = "") -> None:
        """Show a ranking; if `board` is None, show what can be opened, or the `problem`."""
        self._board = board
        self.form.setVisible(board is None and not problem)
        self.masks_line.hide()
        for widget in (self._tables, self._choices, self.legend):
            widget.setVisible(board is not None)
        self._show_notes(() if board is None else board.notes)
        if board is None:
            self._show_table(None)
            self.sentence.setText(problem or _NOTHING)
            set_level(self.sentence, "error" if problem else "hint")
            return
        set_level(self.sentence, "")
        self.open.setToolTip(
            tr("Opens another folder with a ranking. This one is {folder}.", folder=board.folder)
        )
        _fill_combo(self.tables, [table.title for table in board.tables])
        self.tables.setVisible(len(board.tables) > 1)
        # Another ranking starts with its own first method, not with the previous choice.
        _fill_combo(self.methods, ())
        self._show_table(board.tables[0])
        self._share_width()

    def say_cases(self, text: str) -> None:
        """Show which of the cases can be opened; "" if all of them can be opened."""
        self.cases_note.setText(text)
        self.cases_note.setVisible(bool(text))

    def ask_masks(self, team: str, why: str = "") -> None:
        """Ask for the folder of a team's masks, after a case was opened without them."""
        self._team = team
        first = why or tr("The folder of {team}'s masks is not known.", team=team)
        self.masks_text.setText(tr("{first} The masks on screen are not theirs.", first=first))
        self.legend.hide()
        set_level(self.masks_text, "warning")
        self.choose_masks.setText(tr("Choose the folder…"))
        self.decline_masks.show()
        self.masks_line.show()

    def tell_masks(self, team: str, folder: Path) -> None:
        """Show which team's masks are displayed, with a button for changing the folder."""
        self._team = team
        self.masks_text.setText(
            tr(
                "Masks of {team}: …/{name}/{name_2}",
                team=team,
                name=folder.parent.name,
                name_2=folder.name,
            )
        )
        self.masks_text.setToolTip(
            tr("The displayed masks and their folder\n{folder}", folder=folder)
        )
        self.legend.hide()
        set_level(self.masks_text, "hint")
        self.choose_masks.setText(tr("Change…"))
        self.decline_masks.hide()
        self.masks_line.show()

    def has_keyboard(self) -> bool:
        """Return whether the cases table has the keyboard focus."""
        return self.cases.window().focusWidget() is self.cases

    def case_ids(self) -> list[str]:
        """Return the case ids in their displayed order."""
        return self.cases_model.case_ids()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Distribute the width again, so that both sides remain usable in a narrow window."""
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self._share_width()

    # -------------------------------------------------------------------- inner

    def _make_choices(self) -> None:
        self.form = RankingForm()
        self.sentence = label(
            "leaderboard_sentence", tip=tr("Shows who leads and how certain that is.")
        )
        self.sentence.setProperty("heading", True)
        self.open = tool_button(
            "leaderboard_open",
            tr("Open ranking…"),
            tr("Opens a results folder created by `mamamia rank` or `mamamia challenge rank`."),
            self._browse_folder,
        )
        self.open.setProperty("framed", True)
        self.tables = _make_combo(
            "leaderboard_table", tr("Selects the table: task, metric or site.")
        )
        self.tables.currentIndexChanged.connect(self._turn_to_table)
        self.methods = _make_combo("leaderboard_method", tr("Selects the ranking method."))
        self.methods.currentIndexChanged.connect(lambda _at: self._show_method())
        self.orders = _make_combo("leaderboard_order", tr("Selects the order of the cases."))
        for order in CaseOrder:
            self.orders.addItem(tr("cases {value}", value=order.value), order.value)
        self.orders.setPlaceholderText(tr("cases by a column"))
        self.orders.activated.connect(
            lambda at: self._sort_by(str(self.orders.itemData(at)), False)
        )
        self._choices = row(self.tables, self.methods, self.orders)

    def _make_tables(self) -> None:
        self.teams: CellTable = named(
            CellTable(),
            "leaderboard_teams",
            tr("Lists the teams, best first; click or press Enter to show a team's column."),
        )
        self.teams.setSelectionBehavior(QTableView.SelectionBehavior.SelectRows)
        self.teams.setModel(self.teams_model)
        self.teams.verticalHeader().hide()
        self.teams.fit.set_widths(models.TEAM_WIDTHS)
        self.teams.opened.connect(lambda at, _column: self._show_team(at))
        self.cases: CellTable = named(
            CellTable(),
            "leaderboard_cases",
            tr(
                "Shows a value for each case and team; click or press Enter to open the case with "
                "the team's mask."
            ),
        )
        self.cases.setModel(self.cases_model)
        self.cases.setSortingEnabled(True)
        self.cases.horizontalHeader().setSortIndicator(-1, Qt.SortOrder.AscendingOrder)
        self.cases.verticalHeader().setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self.cases.opened.connect(self._choose_cell)
        self.no_cases = label(
            "leaderboard_no_cases", tip=tr("Explains why there are no cases to show.")
        )
        self.no_cases.setAlignment(Qt.AlignmentFlag.AlignTop)

    def _make_masks_line(self) -> None:
        self.masks_text = label(
            "leaderboard_masks", tip=tr("Shows whose masks are displayed, and their folder.")
        )
        self.choose_masks = tool_button(
            "leaderboard_choose_masks",
            tr("Choose the folder…"),
            tr(
                "Chooses the folder of this team's masks. It is saved, and also used for the "
                "other teams that have folders next to it."
            ),
            self._browse_masks,
        )
        self.decline_masks = tool_button(
            "leaderboard_decline_masks",
            tr("Continue without masks"),
            tr(
                "Opens this team's cases without its masks. The folder is not requested again "
                "while this ranking is open."
            ),
            self._decline_masks,
        )
        for tool in (self.choose_masks, self.decline_masks):
            tool.setProperty("framed", True)
        self.masks_line = row(self.masks_text, self.choose_masks, self.decline_masks)
        self.masks_line.layout().setStretch(0, 1)

    def _lay_out(self) -> None:
        self.cases_note = label(
            "leaderboard_cases_note", tip=tr("Shows which of the cases can be opened.")
        )
        set_level(self.cases_note, "warning")
        self.notes = label("leaderboard_notes", tip=tr("Shows notes on this ranking."))
        set_level(self.notes, "hint")
        self.legend = label("leaderboard_legend", _legend_text(), tr("Explains the colours."))
        title = row(self.sentence, self.open)
        title.layout().setStretch(0, 1)
        right = QWidget()
        fill_column(right, self.cases, (self.no_cases, 1))
        self._tables = QSplitter(Qt.Orientation.Horizontal)
        self._tables.addWidget(self.teams)
        self._tables.addWidget(right)
        for index in range(2):
            self._tables.setStretchFactor(index, 1)
        fill_column(
            self,
            title,
            self.form,
            self._choices,
            (self._tables, 1),
            self.masks_line,
            self.cases_note,
            self.legend,
            self.notes,
            0,
            margins=(0, 4, 0, 0),
            spacing=4,
        )

    def _show_notes(self, notes: Sequence[str]) -> None:
        """Show the first notes, and all notes in the tooltip."""
        more = len(notes) - _NOTES_SHOWN
        self.notes.setText(
            "\n".join(notes[:_NOTES_SHOWN]) + (tr(" … and {more} more", more=more) * (more > 0))
        )
        self.notes.setToolTip("\n".join([tr("Notes on this ranking"), *notes]))
        self.notes.setVisible(bool(notes))

    def _turn_to_table(self, at: int) -> None:
        if self._board is not None and 0 <= at < len(self._board.tables):
            self._show_table(self._board.tables[at])

    def _show_table(self, table: BoardTable | None) -> None:
        chosen = self.methods.currentData()
        self._table = table
        names = [] if table is None else [method.name for method in table.methods]
        leads = "" if table is None else table.leads
        first = next((name for name in (chosen, leads) if name in names), None)
        first_index = 0 if first is None else names.index(first)
        _fill_combo(self.methods, list(map(_explain_method, names)), first_index)
        for index, name in enumerate(names):
            self.methods.setItemData(index, name)
        has_grid = table is not None and table.grid is not None
        self.cases.setVisible(has_grid)
        self.orders.setEnabled(has_grid)
        self.no_cases.setVisible(not has_grid)
        self.no_cases.setText("" if table is None else table.why_no_grid)
        self._show_method()

    def _show_method(self) -> None:
        table, index = self._table, max(self.methods.currentIndex(), 0)
        self.teams_model.show_table(table, index)
        teams = [line.team.name for line in self.teams_model.rows]
        rule = self._board.rule if self._board is not None else ""
        self.cases_model.show_grid(None if table is None else table.grid, teams, rule)
        if table is None:
            return
        self._fit_cases()
        self.sentence.setText(say_lead(table, index))
        self.methods.setToolTip(
            tr(
                "Selects the ranking method.\n{current_text}",
                current_text=self.methods.currentText(),
            )
        )
        self._sort_by(*self._by)

    def _share_width(self) -> None:
        """Give each side half of the width; the cases also get width that the teams do not need."""
        half = self.width() // 2
        self._tables.setSizes([half, half])

    def _fit_cases(self) -> None:
        """Fit the columns to the values, and to the longest case id up to a limit."""
        self.cases.fit.set_widths([_CELL_WIDTH] * self.cases_model.columnCount())
        letters = self.cases.fontMetrics()
        widest = max(map(letters.horizontalAdvance, self.case_ids()), default=0)
        most = _MOST_LETTERS * letters.averageCharWidth()
        self.cases.verticalHeader().setFixedWidth(min(widest, most) + _MARGIN)
        # The teams take no more than they need, and half of the width if that is less.
        columns = range(self.teams_model.columnCount())
        self.teams.setMaximumWidth(sum(map(self.teams.columnWidth, columns)) + _SCROLL_BAR)

    def _sort_by(self, by: str, upwards: bool) -> None:
        grid = None if self._table is None else self._table.grid
        if grid is None:
            return
        is_order = by in grid.teams or by in tuple(CaseOrder)
        self._by = (by, upwards) if is_order else (CaseOrder.LISTED, False)
        self.orders.setCurrentIndex(self.orders.findData(str(self._by[0])))
        self.cases_model.show_order(order_cases(grid, self._by[0], upwards=self._by[1]))
        self.cases.scrollToTop()
        self.reordered.emit()

    def _choose_cell(self, place: int, at: int) -> None:
        self.cell_chosen.emit(*self.cases_model.find_cell(place, at))

    def _show_team(self, place: int) -> None:
        column = self.cases_model.column_of(self.teams_model.rows[place].team.name)
        if column is not None and self.cases_model.rowCount():
            top = self.cases.rowAt(0)
            self.cases.setCurrentIndex(self.cases_model.index(max(top, 0), column))

    def _browse_folder(self) -> None:
        start = str(Path.home() if self._board is None else self._board.folder)
        chosen = QFileDialog.getExistingDirectory(self, tr("Open a ranking"), start)
        if chosen:
            self.folder_chosen.emit(Path(chosen))

    def _browse_masks(self) -> None:
        start = str(Path.home() if self._board is None else self._board.folder)
        title = tr("Masks of {team}", team=self._team[:60])
        chosen = QFileDialog.getExistingDirectory(self, title, start)
        if chosen:
            self.masks_chosen.emit(self._team, Path(chosen))

    def _decline_masks(self) -> None:
        self.masks_line.hide()
        self.legend.show()
        self.masks_declined.emit(self._team)


def _explain_method(name: str) -> str:
    return f"{name}: {_METHOD_TEXTS[name]}" if name in _METHOD_TEXTS else name


def _make_combo(name: str, tip: str) -> QComboBox:
    combo = combo_box(name, tip)
    combo.setMinimumContentsLength(_FEWEST_LETTERS)
    policy = QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon
    combo.setSizeAdjustPolicy(policy)
    combo.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
    return combo


def _fill_combo(combo: QComboBox, texts: Sequence[str], at: int = 0) -> None:
    combo.blockSignals(True)
    combo.clear()
    combo.addItems(list(texts))
    combo.setCurrentIndex(at if texts else -1)
    combo.blockSignals(False)


def _legend_text() -> str:
    return tr(
        '<span style="color:{bad_colour}">■</span> the darker, the closer to the '
        'worst value of the table &nbsp; <span style="color:{bad_colour}">▨</span> – '
        "no usable answer, scored by the rule &nbsp; <span "
        'style="color:{quiet_colour}">–</span> unknown',
        bad_colour=models.BAD_COLOUR,
        quiet_colour=QUIET_COLOUR,
    )
