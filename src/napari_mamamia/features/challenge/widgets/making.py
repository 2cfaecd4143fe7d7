"""The form on the Leaderboard tab that makes a ranking of scored models."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from qtpy.QtCore import Qt, Signal
from qtpy.QtWidgets import (
    QComboBox,
    QFileDialog,
    QListWidget,
    QListWidgetItem,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from napari_mamamia.core.texts import tr
from napari_mamamia.features.challenge.services.rank.inputs import AlgorithmTable
from napari_mamamia.widgets.controls.controls import (
    button,
    label,
    named,
    row,
    set_level,
    set_primary,
)

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
        self.state = label("ranking_state", tip=tr("Requirements for a ranking."))
        self.tables: QListWidget = named(
            QListWidget(), "ranking_tables", tr("Score tables to rank; ticked tables are included.")
        )
        self.tables.itemChanged.connect(lambda _item: self._show_state())
        self.metric: QComboBox = named(
            QComboBox(), "ranking_metric", tr("Selects the value to rank by.")
        )
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
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        for widget in (
            self.state,
            self.tables,
            row(self.start, self.metric, 1),
            row(add, self.score, 1),
        ):
            layout.addWidget(widget)
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
