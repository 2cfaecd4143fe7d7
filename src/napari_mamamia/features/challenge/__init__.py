"""A challenge in a folder: submissions, sites, rankings and their leaderboard."""

from typing import Final

from napari_mamamia.core.features import Command, Feature

FEATURE: Final = Feature(
    name="challenge",
    summary="challenges, rankings, submissions and sites",
    commands=(
        Command(
            "rank",
            "napari_mamamia.features.challenge.cli.ranking:rank",
            "Rank algorithms by every method, with certainty: OUT/rank.json, OUT/ranks.csv.",
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
    docs=("howto/challenge.md", "howto/rank.md", "howto/submissions.md"),
)
