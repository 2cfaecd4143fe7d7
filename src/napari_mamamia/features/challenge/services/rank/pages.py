"""The HTML pages of a ranking: the leaderboard and one page per team, with links."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from napari_mamamia.core.errors import MamamiaError, SaveError
from napari_mamamia.core.progress import report_progress
from napari_mamamia.features.challenge.io.leaderboard_file import read_page
from napari_mamamia.features.challenge.scoring.leaderboard import leaderboard_page
from napari_mamamia.features.challenge.scoring.team_page import (
    LEADERBOARD_PAGE,
    TEAM_FOLDER,
    TeamDetails,
    link_pages,
    team_page,
)
from napari_mamamia.features.challenge.services.rank.output import RankSummary
from napari_mamamia.features.challenge.services.rank.text import leaderboard_content, order_names
from napari_mamamia.scoring.cohort.groups import Grouping
from napari_mamamia.scoring.report.page import Page, write_page

_OURS: Final = '<meta name="generator" content="napari-mamamia">'


def ranking_pages(summary: RankSummary, groupings: tuple[Grouping, ...] = ()) -> dict[str, Page]:
    """Build the pages of the leaderboard and the teams, by relative file name."""
    links = link_pages(order_names(summary))
    content = leaderboard_content(summary, links=links, groupings=groupings)
    pages = {LEADERBOARD_PAGE: leaderboard_page(content)}
    for name, target in links.items():
        pages[target] = team_page(content, name, TeamDetails(), links)
    return pages


def write_pages(pages: Mapping[str, Page], out: Path, *, overwrite: bool = False) -> None:
    """Write pages into a folder, and remove pages of teams that are no longer ranked.

    Parameters
    ----------
    pages
        The pages by name.
    out
        Output folder.
    overwrite
        Whether to replace existing pages.

    Raises
    ------
    SaveConflictError, SaveError
        If a file exists and `overwrite` is False, or the system does not allow writing.
    """
    for number, (name, page) in enumerate(pages.items()):
        report_progress(number, len(pages), f"Writing {name}")
        write_page(page, out / name, overwrite=overwrite)
    for path in find_stale(pages, out) if overwrite else ():
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise SaveError(
                f"cannot remove {path}, the page of a team that is no longer ranked "
                f"({error.strerror}): remove it yourself"
            ) from error


def find_stale(pages: Mapping[str, Page], out: Path) -> list[Path]:
    """Return earlier team pages in a folder that are not among the new pages."""
    there = sorted((out / TEAM_FOLDER).glob("*.html"))
    named = {out / name for name in pages}
    return [path for path in there if path not in named and _is_ours(path)]


def _is_ours(path: Path) -> bool:
    try:
        return _OURS in read_page(path)[:1000]
    except MamamiaError:
        return False
