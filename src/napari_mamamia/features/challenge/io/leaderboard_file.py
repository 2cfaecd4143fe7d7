"""``leaderboard.json`` stores the rows of a leaderboard with their attempts and hashes."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from napari_mamamia.io.files.foreign import open_plain, reads
from napari_mamamia.io.files.json_text import read_json
from napari_mamamia.io.files.record_codec import RecordCodec
from napari_mamamia.io.tables.tables import write_json

BOARD_FILE: Final = "leaderboard.json"
SEVERAL: Final = 3
"""Number of almost perfect masks of a team at which a warning is shown (our choice)."""
_LARGEST_PAGE: Final = 1 << 28
_REMEDY: Final = "make the leaderboard again with `mamamia challenge rank`"


@dataclass(frozen=True, slots=True)
class ChanceEvidence:
    """The test of whether a team's responses are better than chance.

    Parameters
    ----------
    p_value
        Exact one-sided p-value of the balanced accuracy under permutation of the labels.
    is_better
        Whether `p_value` is below 0.05.
    auc, auc_low, auc_high
        The AUC and its 95 % interval by DeLong's method; None if there are no probabilities.
    """

    p_value: float
    is_better: bool
    auc: float | None = None
    auc_low: float | None = None
    auc_high: float | None = None


@dataclass(frozen=True, slots=True)
class LevelDown:
    """How much a team's score gains from the worst cases of a group (level-down effect).

    Parameters
    ----------
    variable, group
        The variable and group whose worst cases raise the score most (or lower it least).
    k
        Number of worst cases of the group.
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
        The team and its rank; if the rank is None, `reason` says why.
    score
        The score that determines the rank, computed from `performance` and `fairness`.
    n, n_unusable, unusable
        Number of cases that count, number of cases without a usable answer, and these by reason.
    attempt, n_attempts
        The number of the displayed attempt, and the number of attempts that count.
    kind, digest
        The kind of submission, and its SHA-256.
    is_as_given
        Whether the team computed the scores itself.
    guarded_score
        The score with the least favourable values for empty predictions, if `score` assigns them a
        value; it does not affect ranks.
    submitted
        Start time of the displayed attempt, ISO 8601 in UTC; "" if there is no attempt.
    chance
        Whether responses are better than chance; None for masks.
    gated_score, gated_rank
        Score and rank if fairness counts only above the challenge's gate; None without a gate.
    n_copies, n_near_copies
        Number of masks that are byte-for-byte copies of references, and number of other masks with
        a Dice above 0.999.
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
        """Return whether any mask is a copy of a reference, or several nearly equal references."""
        return self.n_copies > 0 or self.n_near_copies >= SEVERAL


@dataclass(frozen=True, slots=True)
class Board:
    """The teams of one task; `ranked_by` names the score, and `gate` describes the gate."""

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
        Title of the challenge, SHA-256 of its file, and its folder relative to the leaderboard.
    heads
        Hashes of the last line of each ledger file when the leaderboard was made.
    profile, rule, ladder
        The scoring profile, the rule for unusable cases, and whether the ladder was used.
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
    """Write ``leaderboard.json``; the errors are those of `write_json`."""
    write_json(_BOARD.plain(board), folder / BOARD_FILE, overwrite=overwrite)


@reads("a leaderboard", _REMEDY)
def read_leaderboard(folder: Path) -> Leaderboard:
    """Read the leaderboard in a folder.

    Raises
    ------
    FormatError
        If the file cannot be read.
    """
    return _BOARD.record(read_json(folder / BOARD_FILE), folder / BOARD_FILE)


@reads("a page of a leaderboard", _REMEDY)
def read_page(path: Path) -> str:
    """Read a page of at most 256 MB, to compare it with a regenerated page.

    Raises
    ------
    FormatError
        If the file cannot be read.
    """
    with open_plain(path) as file:
        return file.read(_LARGEST_PAGE).decode("utf-8", errors="replace")
