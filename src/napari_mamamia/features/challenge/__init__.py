"""The challenge feature: submissions, sites, rankings and leaderboards, all in folders."""

from typing import Final

from napari_mamamia.core.blinding import Hidden
from napari_mamamia.core.features import RESULTS, Command, Feature, Opener, Page
from napari_mamamia.core.texts import tr

_HERE: Final = "napari_mamamia.features.challenge"
_COMPARISON: Final = frozenset({Hidden.REFERENCE, Hidden.MODEL, Hidden.OTHER_READERS})

FEATURE: Final = Feature(
    name="challenge",
    summary="challenges, rankings, submissions and sites",
    commands=(
        Command(
            "rank",
            "napari_mamamia.features.challenge.cli.ranking:rank",
            "Rank algorithms by every method, with uncertainty: OUT/rank.json, OUT/ranks.csv.",
            "Scores",
        ),
        Command(
            "run-submission",
            "napari_mamamia.features.challenge.cli.submitting:run_submission",
            "Run a challenge submission in isolation: OUT/pred_segmentations, OUT/predictions.csv.",
            "Scores",
        ),
        Command(
            "site",
            "napari_mamamia.features.challenge.cli.sites:app",
            "Federated evaluation: sites share scores only.",
            "Scores",
        ),
        Command(
            "challenge",
            "napari_mamamia.features.challenge.cli.challenge:app",
            "Create, run, rank and verify a challenge in a folder.",
            "Scores",
        ),
    ),
    pages=(
        Page(
            "Leaderboard",
            RESULTS,
            f"{_HERE}.widgets.view:LeaderboardTab",
            f"{_HERE}.widgets.joining:make_leaderboard",
            tip=tr("Teams of a ranking, and each case of each team"),
            reveals=_COMPARISON | {Hidden.NUMBERS},
        ),
    ),
    openers=(
        Opener(
            "a ranking",
            "Batch scoring",
            "napari_mamamia.io.data_set.rank_files:is_ranking",
            f"{_HERE}.widgets.joining:open_ranking",
            is_listed=True,
        ),
    ),
    services={"ranks": f"{_HERE}.widgets.services:RankServices"},
    reveals={
        "ranks.list_score_tables": _COMPARISON | {Hidden.NUMBERS},
        "ranks.make_ranking": _COMPARISON | {Hidden.NUMBERS},
        "ranks.open_board": _COMPARISON | {Hidden.NUMBERS},
        "ranks.find_team_folder": frozenset({Hidden.MODEL}),
        "ranks.find_team_mask": frozenset({Hidden.MODEL}),
    },
    docs=("howto/challenge.md", "howto/rank.md", "howto/submissions.md"),
)
