"""Actions of the leaderboard page: read a ranking, open a case with a team's mask."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from qtpy.QtCore import Signal

from napari_mamamia.core.errors import MamamiaError
from napari_mamamia.core.texts import tr
from napari_mamamia.features.challenge.services.rank.board import RankBoard
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
_MASKS: Final = "review"
"""The job lane of scored masks, shared with other pages: only the newest request counts."""


@dataclass(frozen=True, slots=True, eq=False)
class _TeamAnswer:
    """The folder of a team's masks, None if it is not known, and the masks of the open case."""

    folder: Path | None
    masks: CaseMasks | None = None


class LeaderboardFlow(WindowPart):
    """Connects the view, the open data set and the masks of the teams.

    `shown` asks to bring the view to the front, `case_wanted` says that a cell opens a case. While
    a team is chosen, every opened case is shown with that team's mask, and next and previous go
    through the cases in the order of the view.
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
        view.cell_chosen.connect(self.open_cell)
        view.masks_chosen.connect(self._remember_masks)
        view.masks_declined.connect(self._declined.add)
        view.reordered.connect(self._set_queue)
        opening.case_shown.connect(self._show_masks)
        self._session.data_set_changed.connect(self._follow_data_set)
        self._session.blinding_changed.connect(self._follow_blinding)
        self._follow_blinding()

    def open_ranking(self, path: Path) -> None:
        """Read a ranking and show it, or the reason why it cannot be read or is hidden."""
        self.shown.emit()
        self._jobs.start(
            _LANE,
            tr("Reading the ranking"),
            lambda: ranks_services(self._services).open_board(path),
            self._show_board,
            failed=lambda error: self._show_nothing(plain_text(error)),
        )

    def open_cell(self, case_id: str, team: str) -> None:
        """Open a case of the ranking with the mask of a team ("": with its own masks)."""
        own_id = self._own_ids.get(case_key(case_id))
        if own_id is None:
            self._notifier.warn(
                tr(
                    "{case_id} is not in the open data set: open the data set that was ranked "
                    "(page Cases).",
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
        """Show cases with their own masks again, from the next case on."""
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
        """Read how the open data set spells its cases, and report the missing ones."""
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
            text = tr(
                "Open the data set that was ranked (page Cases) to open its cases by a click."
            )
        else:
            text = tr(
                "{n_there:,} of these {n_cases:,} cases are in the open data set {name}: a "
                "click opens only those.",
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
        """Show the chosen team's mask of the open case, read in a thread."""
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
