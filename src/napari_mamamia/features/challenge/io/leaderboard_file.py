"""``leaderboard.json``: what a challenge showed, from which attempts, and what proves it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from napari_mamamia.io.files.foreign import open_plain, reads
from napari_mamamia.io.files.json_text import read_json
from napari_mamamia.io.files.record_codec import RecordCodec
from napari_mamamia.io.tables.tables import write_json

BOARD_FILE: Final = "leaderboard.json"
_LARGEST_PAGE: Final = 1 << 28
_REMEDY: Final = "make it again with `mamamia challenge rank`"


@dataclass(frozen=True, slots=True)
class BoardRow:
    """A team on the board.

    Parameters
    ----------
    team, rank
        Who, and its place; None where it has none, for a `reason`.
    score
        What it is ranked by. `performance` and `fairness` make it up.
    n, n_unusable, unusable
        Cases that count, those without a usable answer, and how many for each reason.
    attempt, n_attempts
        Which attempt is shown, of how many that count.
    kind, digest
        What was handed in, and its SHA-256.
    is_as_given
        Whether the team computed the scores itself.
    guarded_score
        The lowest score that the team's empty predictions leave possible, where `score` gives each
        a value; nobody is ranked by it.
    """

    team: str
    rank: int | None
    score: float | None
    performance: float | None
    fairness: float | None
    n: int
    n_unusable: int
    unusable: tuple[tuple[str, int], ...]
    attempt: int
    n_attempts: int
    kind: str
    digest: str
    is_as_given: bool = False
    reason: str = ""
    guarded_score: float | None = None


@dataclass(frozen=True, slots=True)
class Board:
    """The teams in one task; `ranked_by` says what `score` is."""

    task: str
    ranked_by: str
    rows: tuple[BoardRow, ...]


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """What a challenge shows.

    Parameters
    ----------
    challenge, sha256, place
        Its title, the SHA-256 of its file, and its folder from the leaderboard's.
    heads
        The last lines of the ledger's files that it was made from.
    profile, rule, ladder
        The definitions, the rule for unusable cases, and whether the ladder was climbed.
    boards, notes
        The teams by task, and what must be said.
    """

    challenge: str
    sha256: str
    place: str
    heads: tuple[str, ...]
    profile: str
    rule: str
    ladder: bool
    boards: tuple[Board, ...]
    notes: tuple[str, ...] = ()
    software: str = ""
    created: str = ""


_BOARD: Final = RecordCodec(Leaderboard, _REMEDY)


def write_leaderboard(board: Leaderboard, folder: Path, *, overwrite: bool = False) -> None:
    """Write ``leaderboard.json``; errors as `write_json`."""
    write_json(_BOARD.plain(board), folder / BOARD_FILE, overwrite=overwrite)


@reads("a leaderboard", _REMEDY)
def read_leaderboard(folder: Path) -> Leaderboard:
    """Return the leaderboard in `folder`.

    Raises
    ------
    FormatError
        If it cannot be read.
    """
    return _BOARD.record(read_json(folder / BOARD_FILE), folder / BOARD_FILE)


@reads("a page of a leaderboard", _REMEDY)
def read_page(path: Path) -> str:
    """Return the text of a page, to be compared with one made again; at most 256 MB of it.

    Raises
    ------
    FormatError
        If it cannot be read.
    """
    with open_plain(path) as file:
        return file.read(_LARGEST_PAGE).decode("utf-8", errors="replace")
