"""The challenge `volume-cup`: teams estimate the tumour's volume; a new measure ranks them."""

from importlib.resources import files

from napari_mamamia.features.challenge.io.definition import AnswerKind
from napari_mamamia.features.challenge.scoring.measures import CaseAnswer, ChallengeMeasure


def relative_error(case: CaseAnswer, limit: float = 2.0) -> float:
    """Return the error as a share of the true volume, at most `limit`."""
    true = case.truth["table"][""]
    return min(abs(case.answer[""] - true) / true, limit)


RELATIVE_ERROR = ChallengeMeasure(
    "example.relative_error", AnswerKind.NUMBERS, relative_error, worst=2.0
)
VOLUME_CUP = (files("mamamia_example") / "volume_cup.toml").read_text("utf-8")
