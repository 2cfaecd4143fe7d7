"""A leaderboard's pages, proved: made again from its challenge, and held against the files."""

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import Final

from napari_mamamia.core.errors import MamamiaError
from napari_mamamia.core.progress import report_progress
from napari_mamamia.io.challenge.leaderboard_file import Leaderboard, read_page
from napari_mamamia.scoring.report.drawing import Draw, Drawing, Drawn, draw_here
from napari_mamamia.scoring.report.page import render_page
from napari_mamamia.services.challenge.board_pages import challenge_pages
from napari_mamamia.services.challenge.ranking import ChallengeRanking
from napari_mamamia.services.rank.pages import find_stale

_DRAWING: Final = re.compile(r"<svg.*?</svg>\s*|data:image/png;base64,[^\"]*", re.DOTALL)
_SHOWN: Final = 90


def find_changed_pages(
    board: Leaderboard, again: ChallengeRanking, folder: Path, *, is_quick: bool = False
) -> Iterator[str]:
    """Yield which page is not what the challenge gives, and the first line that differs.

    With `is_quick` drawings are not made again: the texts and tables alone are compared.
    """
    as_written = replace(again.board, created=board.created, software=board.software)
    pages = challenge_pages(replace(again, board=as_written))
    draw: Draw = _draw_nothing if is_quick else draw_here
    for number, (name, page) in enumerate(pages.items()):
        report_progress(number, len(pages), f"Proving {name}")
        try:
            there = read_page(folder / name)
        except MamamiaError as error:
            yield str(error)
            continue
        here = render_page(page, draw)
        if is_quick:
            there, here = (_DRAWING.sub("", text) for text in (there, here))
        difference = _find_line(there, here)
        if difference:
            yield f"{name}: {difference}"
    for path in find_stale(pages, folder):
        yield f"{path.relative_to(folder).as_posix()} is of no team of this leaderboard"


def _draw_nothing(_: Drawing) -> Drawn:
    return Drawn(b"", "")


def _find_line(there: str, here: str) -> str:
    """Return the first line in which two texts differ, "" where none does."""
    if there == here:
        return ""
    lines = zip_longest(there.split("\n"), here.split("\n"), fillvalue="")
    number, (then, now) = next(
        (number, pair) for number, pair in enumerate(lines, start=1) if pair[0] != pair[1]
    )
    start = next((at for at, (a, b) in enumerate(zip_longest(then, now)) if a != b), 0)
    first = max(0, start - _SHOWN // 3)
    return (
        f"line {number} has {then[first : first + _SHOWN]!r}, made again it has "
        f"{now[first : first + _SHOWN]!r}"
    )
