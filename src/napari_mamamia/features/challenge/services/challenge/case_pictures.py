"""Images of a team's worst cases, drawn when the team's page is written."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from napari_mamamia.core.errors import MamamiaError, is_refused
from napari_mamamia.core.records import CaseScore, ScoreStatus
from napari_mamamia.features.challenge.io.challenge_file import OpenChallenge
from napari_mamamia.features.challenge.io.handed_in import find_handed_masks
from napari_mamamia.features.challenge.io.leaderboard_file import BoardRow
from napari_mamamia.features.challenge.io.manifest import SEALED, SubmissionKind, look_inside
from napari_mamamia.features.challenge.services.challenge.answers import pair_masks
from napari_mamamia.features.challenge.services.challenge.attempt import RUN
from napari_mamamia.features.challenge.services.challenge.inputs import score_settings
from napari_mamamia.scoring.report.drawing import Drawing
from napari_mamamia.scoring.report.gallery import worst_cases
from napari_mamamia.scoring.report.report import case_figure
from napari_mamamia.scoring.report.report_figures import ReportFigure
from napari_mamamia.scoring.report.text import number
from napari_mamamia.segmentation.sandbox.outputs import MASKS
from napari_mamamia.services.score.report import picture_pair
from napari_mamamia.services.score.settings import ScoreSettings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_PICTURES: Final = 4
"""Maximum number of images for each team, to limit the time and size of the pages."""
OF_PICTURES: Final = (
    "The cases with the lowest Dice among those with comparable masks: the slice where the team's "
    "mask (orange) and the reference (blue) differ most. The scale bar is 10 mm."
)
_SEEN: Final = (ScoreStatus.OK, ScoreStatus.PREDICTION_EMPTY)


def picture_team(
    opened: OpenChallenge, row: BoardRow, scores: Sequence[CaseScore]
) -> tuple[ReportFigure, ...]:
    """Return images of a team's worst cases, lowest Dice first.

    Masks are read only when the images are drawn. There are no images if the team submitted no
    masks, or its sealed masks are missing or changed.

    Parameters
    ----------
    opened
        The challenge.
    row
        The team on the leaderboard.
    scores
        Scores of its cases.

    Raises
    ------
    MamamiaError
        If the system refuses to read the masks.
    """
    by_case = {score.case_id: score for score in scores if score.status in _SEEN}
    worst = worst_cases(list(by_case.values()), MOST_PICTURES)
    masks = _find_masks(opened, row)
    if masks is None or opened.reference is None or not worst:
        return ()
    try:
        submission, _ = find_handed_masks(masks, opened.challenge.case_ids)
    except MamamiaError as error:
        if is_refused(error):
            raise
        return ()
    pairs = pair_masks(opened, submission, worst).pairs
    settings = replace(score_settings(opened), clinical=None)
    return tuple(
        ReportFigure(
            case_id,
            f"Dice {number(by_case[case_id].dsc)}, NormHD {number(by_case[case_id].norm_hd)}",
            Drawing(draw_pair, (row.team, case_id, pairs[case_id], settings), has_svg=False),
        )
        for case_id in worst
        if None not in pairs[case_id]
    )


def draw_pair(
    team: str, case_id: str, files: tuple[Path | None, Path | None], settings: ScoreSettings
) -> "Figure":
    """Draw the slice with the largest difference between mask and reference, with both outlines.

    If the masks are missing or changed, the figure is empty; `verify` reports them.

    Parameters
    ----------
    team, case_id
        The team and the case, for messages.
    files
        Reference and mask of the case.
    settings
        Settings of the scores.

    Raises
    ------
    MamamiaError
        If the system refuses to read a file, since a page with an empty image would look complete.
    """
    from matplotlib.figure import Figure

    try:
        pictures = picture_pair(team, case_id, files, settings)
    except MamamiaError as error:
        if is_refused(error):
            raise
        pictures = []
    return case_figure(pictures[0]) if pictures else Figure(figsize=(1.5, 1.5), facecolor="k")


def _find_masks(opened: OpenChallenge, row: BoardRow) -> Path | None:
    folder = opened.results(row.team, row.digest)
    if row.kind == SubmissionKind.PROGRAM.value:
        masks = folder / RUN / MASKS
    elif row.kind == SubmissionKind.MASKS.value:
        try:
            masks = look_inside(folder / SEALED).folder
        except (MamamiaError, OSError) as error:
            if is_refused(error):
                raise
            return None
    else:
        return None
    return masks if masks.is_dir() else None
