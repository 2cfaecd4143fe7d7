"""``leaderboard.json``: the rows of a leaderboard with their attempts and hashes."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from napari_mamamia.io.files.foreign import open_plain, reads
from napari_mamamia.io.files.json_text import read_json
from napari_mamamia.io.files.record_codec import RecordCodec
from napari_mamamia.io.tables.tables import write_json

BOARD_FILE: Final = "leaderboard.json"
SEVERAL: Final = 3
"""Number of almost perfect masks that causes an alarm. Our own limit."""
_LARGEST_PAGE: Final = 1 << 28
_REMEDY: Final = "make the leaderboard again with `mamamia challenge rank`"


@dataclass(frozen=True, slots=True)
class ChanceEvidence:
    """Whether a team's responses are better than chance.

    Parameters
    ----------
    p_value
        Exact one-sided p of the balanced accuracy when the labels are permuted.
    is_better
        Whether `p_value` is below 0.05.
    auc, auc_low, auc_high
        The AUC and its 95 % interval by DeLong; None without probabilities.
    """

    p_value: float
    is_better: bool
    auc: float | None = None
    auc_low: float | None = None
    auc_high: float | None = None


@dataclass(frozen=True, slots=True)
class LevelDown:
    """The gain of the score from a group's worst cases.

    Parameters
    ----------
    variable, group
        The group whose worst cases raise the score most (or lower it least).
    k
        Number of its worst cases.
    gain
        The score minus the score without these cases; above 0, worse masks raise the score.
    """

    variable: str
    group: str
    k: int
    gain: float


@dataclass(frozen=True, slots=True)
class BoardRow:
    """A team on the leaderboard.

    Parameters
    ----------
    team, rank
        The team and its rank; a rank of None has a `reason`.
    score
        The score that determines the rank, computed from `performance` and `fairness`.
    n, n_unusable, unusable
        Number of counted cases, number of cases without a usable answer, and numbers by reason.
    attempt, n_attempts
        The number of the displayed attempt, and the number of counted attempts.
    kind, digest
        The kind of submission, and its SHA-256.
    is_as_given
        Whether the team computed the scores itself.
    guarded_score
        The score with the least favourable values for empty predictions, if `score` assigns them a
        value; it does not affect ranks.
    submitted
        Start of the displayed attempt, ISO 8601 in UTC; "" without one.
    chance
        Whether responses are better than chance; None for masks.
    gated_score, gated_rank
        The score and rank by the challenge's gate: fairness counts only above it. None without it.
    n_copies, n_near_copies
        Numbers of masks that are references byte for byte, and of other masks with a Dice above
        0.999.
    level_down
        For each number of cases, the group whose worst cases raise the score most.
    measures
        The measures of a challenge's definition by id; None where a team has no number.
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
    submitted: str = ""
    chance: ChanceEvidence | None = None
    gated_score: float | None = None
    gated_rank: int | None = None
    n_copies: int = 0
    n_near_copies: int = 0
    level_down: tuple[LevelDown, ...] = ()
    measures: tuple[tuple[str, float | None], ...] = ()

    @property
    def is_alarming(self) -> bool:
        """Return whether a mask is a copy of a reference, or several are almost equal to one."""
        return self.n_copies > 0 or self.n_near_copies >= SEVERAL


@dataclass(frozen=True, slots=True)
class Board:
    """The teams of one task; `ranked_by` names the score, `gate` is the definition of its gate."""

    task: str
    ranked_by: str
    rows: tuple[BoardRow, ...]
    gate: str = ""


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """The content of a leaderboard.

    Parameters
    ----------
    challenge, sha256, place
        Title of the challenge, the SHA-256 of its file, and its folder relative to the leaderboard.
    heads
        Hashes of the last lines of the ledger's files when the leaderboard was made.
    profile, rule, ladder
        The definitions, the rule for unusable cases, and whether the ladder was used.
    boards, notes
        The teams by task, and notes for the reader.
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
    """Write ``leaderboard.json``; errors as in `write_json`."""
    write_json(_BOARD.plain(board), folder / BOARD_FILE, overwrite=overwrite)


@reads("a leaderboard", _REMEDY)
def read_leaderboard(folder: Path) -> Leaderboard:
    """Return the leaderboard in `folder`.

    Raises
    ------
    FormatError
        If the file cannot be read.
    """
    return _BOARD.record(read_json(folder / BOARD_FILE), folder / BOARD_FILE)


@reads("a page of a leaderboard", _REMEDY)
def read_page(path: Path) -> str:
    """Read the text of a page, at most 256 MB, for the comparison with a regenerated page.

    Raises
    ------
    FormatError
        If the file cannot be read.
    """
    with open_plain(path) as file:
        return file.read(_LARGEST_PAGE).decode("utf-8", errors="replace")
