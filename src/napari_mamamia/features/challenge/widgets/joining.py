"""Connects the Leaderboard page with the window's dock panel."""

from pathlib import Path

from napari_mamamia.features.challenge.widgets.flow import LeaderboardFlow
from napari_mamamia.features.challenge.widgets.view import LeaderboardTab
from napari_mamamia.widgets.dock.parts import DockParts


def make_leaderboard(panel: DockParts, view: LeaderboardTab) -> LeaderboardFlow:
    """Create the controller of the leaderboard."""
    shown = (panel.cases_flow, panel.opening, panel.scored_masks)
    flow = LeaderboardFlow(panel.context, view, *shown)
    flow.shown.connect(lambda: panel.show_results("Leaderboard"))
    view.form.scoring_wanted.connect(lambda: panel.show_page("Batch scoring"))
    panel.cases_page.leaderboard_wanted.connect(flow.list_tables)
    panel.results.scored.connect(flow.list_tables)
    flow.case_wanted.connect(panel.results_review.leave)
    panel.results_review.case_wanted.connect(flow.leave)
    return flow


def open_ranking(panel: DockParts, path: Path) -> None:
    """Read a ranking and show it."""
    panel.flow("Leaderboard").open_ranking(path)
