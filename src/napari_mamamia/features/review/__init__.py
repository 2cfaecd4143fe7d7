"""The review feature: a reader study in one shared folder, without a server."""

from typing import Final

from napari_mamamia.core.blinding import Hidden
from napari_mamamia.core.features import Command, Feature, Opener, Page

_HERE: Final = "napari_mamamia.features.review"

FEATURE: Final = Feature(
    name="review",
    summary="a study read by several people in one shared folder",
    commands=(
        Command(
            "review",
            "napari_mamamia.features.review.cli.commands:app",
            "A study that several people read in one shared folder, without a server.",
            "Masks and measurements",
        ),
    ),
    pages=(
        Page(
            "Review",
            "Read",
            f"{_HERE}.widgets.page:ReviewPage",
            f"{_HERE}.widgets.joining:make_review",
        ),
    ),
    openers=(
        Opener(
            "a study",
            "Review",
            f"{_HERE}.io.study_file:is_study",
            f"{_HERE}.widgets.joining:open_study",
        ),
    ),
    services={"review": f"{_HERE}.widgets.services:ReviewServices"},
    reveals=dict.fromkeys(
        ("review.list_differences", "review.list_lesions", "review.fuse_dispute"),
        frozenset({Hidden.OTHER_READERS}),
    ),
    hooks={
        "open_study": f"{_HERE}.widgets.joining:open_study",
        "view_study": f"{_HERE}.cli.hooks:view_study",
        "study_reference": f"{_HERE}.cli.hooks:study_reference",
    },
    library={
        "ReviewStudy": "napari_mamamia.features.review.library:ReviewStudy",
        "open_study": "napari_mamamia.features.review.library:open_study",
    },
    docs=("howto/review.md", "methods/review.md"),
)
