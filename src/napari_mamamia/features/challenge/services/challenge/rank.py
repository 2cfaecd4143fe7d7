"""Write the leaderboard of a challenge: JSON and tables, and HTML pages."""

from pathlib import Path

from napari_mamamia.core.errors import FormatError
from napari_mamamia.core.progress import report_progress
from napari_mamamia.features.challenge.io.challenge_file import read_challenge
from napari_mamamia.features.challenge.io.leaderboard_file import write_leaderboard
from napari_mamamia.features.challenge.io.ledger import read_ledger
from napari_mamamia.features.challenge.services.challenge.board_pages import challenge_pages
from napari_mamamia.features.challenge.services.challenge.inputs import require_inputs
from napari_mamamia.features.challenge.services.challenge.rank_responses import write_responses
from napari_mamamia.features.challenge.services.challenge.ranking import (
    ChallengeRanking,
    make_ranking,
)
from napari_mamamia.features.challenge.services.rank.pages import write_pages
from napari_mamamia.features.challenge.services.rank.rank import write_ranking
from napari_mamamia.services.batch.output_folder import Existing, claim_folder


def rank_challenge(
    folder: Path, out: Path, *, existing: Existing = Existing.REFUSE
) -> ChallengeRanking:
    """Make the leaderboard of the challenge in `folder`, and write it to `out`.

    Writes ``leaderboard.json``, the pages, for masks the files of `rank`, and for responses
    ``rank_responses.json``.

    Parameters
    ----------
    folder
        The challenge.
    out
        Output folder.
    existing
        What to do with other results in `out`.

    Raises
    ------
    CaseError
        If no attempt was scored yet.
    FormatError
        If the ledger, a score or a frozen input was changed.
    SaveConflictError
        If `out` holds other results.
    """
    opened = read_challenge(folder)
    ledger = read_ledger(opened.attempts, opened.sha256)
    if ledger.problems:
        raise FormatError(
            f"expected the unchanged ledger of {folder}, but {ledger.problems[0]}: restore it from "
            "a copy, and verify the challenge for a list of all changes"
        )
    require_inputs(opened)
    ranking = make_ranking(opened, ledger, out)
    parameters = (("challenge", opened.challenge.name), ("sha256", opened.sha256))
    claim_folder(out, "challenge rank", parameters, existing, (folder,))
    overwrite = existing is not Existing.REFUSE
    if ranking.summary is not None and ranking.read is not None:
        write_ranking(ranking.summary, ranking.read, overwrite=overwrite)
    if ranking.responses is not None and ranking.responses.ranking is not None:
        write_responses(ranking.responses.ranking, out, overwrite=overwrite)
    write_pages(challenge_pages(ranking), out, overwrite=overwrite)
    write_leaderboard(ranking.board, out, overwrite=overwrite)
    report_progress(1, 1, "Finished")
    return ranking
