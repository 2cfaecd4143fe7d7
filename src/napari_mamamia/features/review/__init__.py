"""Review: a study that several people read on one shared folder, without a server."""

from typing import Final

from napari_mamamia.core.features import Command, Feature

FEATURE: Final = Feature(
    name="review",
    summary="a study read by several people on one shared folder",
    commands=(
        Command(
            "review",
            "napari_mamamia.features.review.cli.commands:app",
            "A study that several people read on one shared folder, without a server.",
            "Masks and measurements",
        ),
    ),
    library={
        "ReviewStudy": "napari_mamamia.features.review.library:ReviewStudy",
        "open_study": "napari_mamamia.features.review.library:open_study",
    },
    docs=("howto/review.md", "methods/review.md"),
)
