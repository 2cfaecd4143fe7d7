"""Controller of the Leaderboard page: read a ranking, and open a case with a team's mask."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from qtpy.QtCore import Signal

from napari_mamamia.core.errors import MamamiaError
from napari_mamamia.core.texts import tr
from napari_mamamia.features.challenge.services.rank.board import RankBoard
from napari_mamamia.features.challenge.services.rank.inputs import AlgorithmTable
from napari_mamamia.features.challenge.widgets.services import ranks_services
from napari_mamamia.features.challenge.widgets.view import LeaderboardTab
from napari_mamamia.io.files.file_names import case_key
from napari_mamamia.io.workspace.preferences import remember_team_masks, team_masks_of
from napari_mamamia.services.case.show_case import AS_CLINICAL, CaseMasks
from napari_mamamia.widgets.base.blinding import PAGES, why_hidden
from napari_mamamia.widgets.base.notify import plain_text
from napari_mamamia.widgets.batch.scored_masks import ScoredMasks
from napari_mamamia.widgets.cases.flow import CasesFlow
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart
from napari_mamamia.widgets.viewer.opening import Opening

_LANE: Final = "leaderboard"
_TABLES_LANE: Final = "score tables"
_MASKS: Final = "review"
"""The queue for background jobs on scored masks, shared with other pages; the newest job wins."""


@dataclass(frozen=True, slots=True, eq=False)
class _TeamAnswer:
    """The folder of a team's masks (None if unknown), and its masks of the open case."""

    folder: Path | None
    masks: CaseMasks | None = None


class LeaderboardFlow(WindowPart):
    """Connects the view, the open data set and the masks of the teams.

    The signal `shown` requests that the view be brought to the front, and `case_wanted` that a
    cell's case be opened. While a team is selected, every opened case is shown with the team's
    mask. The actions Next and Previous follow the order of cases in the view.
    """

    shown = Signal()
    case_wanted = Signal()

    def __init__(
        self,
        context: WindowContext,
        view: LeaderboardTab,
        cases: CasesFlow,
        opening: Opening,
        scored_masks: ScoredMasks,
    ) -> None:
        super().__init__(context)
        self._view = view
        self._cases = cases
        self._scored_masks = scored_masks
        self._board: RankBoard | None = None
        self._own_ids: Mapping[str, str] = MappingProxyType({})
        self._team = ""
        self._named: dict[str, Path] = {}
        self._declined: set[str] = set()
        view.folder_chosen.connect(self.open_ranking)
        view.form.start_wanted.connect(self._make_ranking)
        self._session.rows_changed.connect(self.list_tables)
        view.cell_chosen.connect(self.open_cell)
        view.masks_chosen.connect(self._remember_masks)
        view.masks_declined.connect(self._declined.add)
        view.reordered.connect(self._set_queue)
        opening.case_shown.connect(self._show_masks)
        self._session.data_set_changed.connect(self._follow_data_set)
        self._session.blinding_changed.connect(self._follow_blinding)
        self._follow_blinding()

    def open_ranking(self, path: Path) -> None:
        """Open a ranking and show it, or show why it cannot be read or is hidden."""
        self.shown.emit()
        self._jobs.start(
            _LANE,
            tr("Reading the ranking"),
            lambda: ranks_services(self._services).open_board(path),
            self._show_board,
            failed=lambda error: self._show_nothing(plain_text(error)),
        )

    def list_tables(self) -> None:
        """If no ranking is open, list the score tables of the open data set in the form."""
        opened = self._session.opened
        if opened is None or self._board is not None or not self._view.open.isEnabled():
            return
        scores = opened.workspace.scores
        self._jobs.start(
            _TABLES_LANE,
            tr("Listing score tables"),
            lambda: ranks_services(self._services).list_score_tables(scores),
            self._view.form.show_tables,
            shown=False,
        )

    def _make_ranking(self, tables: Sequence[AlgorithmTable], metric: str) -> None:
        opened = self._session.opened
        scores = tables[0].path.parent.parent if opened is None else opened.workspace.scores
        self._jobs.start(
            _LANE,
            tr("Ranking models"),
            lambda: ranks_services(self._services).make_ranking(tables, metric, scores),
            self.open_ranking,
        )

    def open_cell(self, case_id: str, team: str) -> None:
        """Open a case of the ranking with a team's mask, or with its own masks if `team` is ""."""
        own_id = self._own_ids.get(case_key(case_id))
        if own_id is None:
            self._notifier.warn(
                tr(
                    "{case_id} is not in the open data set: open the ranked data set on the Cases "
                    "page.",
                    case_id=case_id,
                )
            )
            return
        self.case_wanted.emit()
        self._team = team
        self._set_queue()
        if own_id == self._session.listed_id:
            self._show_masks()
        else:
            self._cases.open_case(own_id)

    def leave(self) -> None:
        """Show cases with their own masks again, beginning with the next case."""
        self._team = ""

    # -------------------------------------------------------------------- inner

    def _show_board(self, board: RankBoard) -> None:
        self._board = board
        self._named.clear()
        self._declined.clear()
        self.leave()
        self._view.show_board(board)
        self._follow_data_set()

    def _show_nothing(self, why: str) -> None:
        self._board = None
        self.leave()
        self._view.show_board(None, why)
        self._view.say_cases("")

    def _follow_blinding(self) -> None:
        why = why_hidden(self._session.blinding, PAGES["Batch scoring"])
        if why:
            self._jobs.cancel(_LANE)
            self._show_nothing(why)
        self._view.open.setEnabled(not why)

    def _follow_data_set(self) -> None:
        """Find out how the open data set spells the case ids, and report missing cases."""
        self.leave()
        opened, ids = self._session.opened, {}
        if opened is not None:
            ids = {case_key(case.case_id): case.case_id for case in opened.data_set.cases}
        self._own_ids = ids
        cases = self._view.case_ids()
        n_there = sum(case_key(case_id) in ids for case_id in cases)
        if not cases or n_there == len(cases):
            text = ""
        elif opened is None:
            text = tr("Open the ranked data set on the Cases page to open its cases with a click.")
        else:
            text = tr(
                "{n_there:,} of these {n_cases:,} cases are in the open data set {name}; only "
                "these can be opened with a click.",
                n_there=n_there,
                n_cases=len(cases),
                name=opened.data_set.name,
            )
        self._view.say_cases(text)

    def _set_queue(self) -> None:
        if self._team:
            keys = map(case_key, self._view.case_ids())
            self._session.set_queue([self._own_ids[key] for key in keys if key in self._own_ids])

    def _show_masks(self) -> None:
        """Read the selected team's mask of the open case in a thread, and show it."""
        case, team, board = self._session.case, self._team, self._board
        files, workspace = self._session.files, self._session.workspace
        if case is None or not team or board is None or not self._session.listed_id:
            return
        folders = team_masks_of(self._services.load_preferences(), board.folder) | self._named
        predictions = None if workspace is None else workspace.predictions
        reference = None if files is None else files.reference
        ranks = ranks_services(self._services)

        def work() -> _TeamAnswer:
            folder = ranks.find_team_folder(team, folders, predictions)
            if folder is None:
                return _TeamAnswer(None)
            mask = ranks.find_team_mask(folder, case.case_id)
            masks = self._services.review_masks(case, reference, mask, team, AS_CLINICAL)
            return _TeamAnswer(folder, masks)

        self._jobs.start(
            _MASKS,
            tr("Reading the mask of {team}", team=team[:60]),
            work,
            lambda answer: self._take_masks(team, answer),
            failed=lambda error: self._view.ask_masks(team, plain_text(error)),
            still=lambda: self._session.shows(case) and self._team == team,
        )

    def _take_masks(self, team: str, answer: _TeamAnswer) -> None:
        if answer.folder is not None and answer.masks is not None:
            self._view.tell_masks(team, answer.folder)
            self._scored_masks.show(answer.masks, AS_CLINICAL)
        elif team not in self._declined:
            self._view.ask_masks(team)

    def _remember_masks(self, team: str, folder: Path) -> None:
        if self._board is None:
            return
        self._named[team] = folder
        try:
            preferences = self._services.load_preferences()
            self._services.save_preferences(
                remember_team_masks(preferences, self._board.folder, team, folder)
            )
        except MamamiaError as error:
            self._notifier.warn(
                tr("The folder of these masks could not be saved: {error}", error=error)
            )
        self._declined.discard(team)
        self._team = team
        self._show_masks()
