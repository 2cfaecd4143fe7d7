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
            "Rank algorithms by every method and say how sure: OUT/rank.json, OUT/ranks.csv.",
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
            "Sites that evaluate at home and give numbers away.",
            "Scores",
        ),
        Command(
            "challenge",
            "napari_mamamia.features.challenge.cli.challenge:app",
            "A challenge in a folder, from its frozen list to its proof.",
            "Scores",
        ),
    ),
    docs=("howto/challenge.md", "howto/rank.md", "howto/submissions.md"),
)
