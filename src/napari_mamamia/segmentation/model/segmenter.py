"""The `Segmenter` protocol, which an adapter implements for every kind of model."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import Case, Mask
from napari_mamamia.core.names import count_of
from napari_mamamia.core.provenance import Setting


@dataclass(frozen=True, slots=True)
class Click:
    """A prompt: a voxel (z, y, x) inside the tumour."""

    voxel: tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class BoxPrompt:
    """A prompt: a box that contains the tumour; only this box is searched."""

    box: Box


Prompt = Click | BoxPrompt


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A region that may be the tumour.

    `crop` is a bool array with the shape of `box`. `score` orders the candidates and has no unit.
    `reasons` are sentences with numbers and units that explain the rank.
    """

    rank: int
    box: Box
    crop: NDArray[np.bool_]
    volume_mm3: float
    score: float
    reasons: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return (
            f"Candidate({self.rank}, {self.volume_mm3 / 1000:.3f} ml, {self.box.start} to "
            f"{self.box.stop})"
        )


@dataclass(frozen=True, slots=True, eq=False)
class Prediction:
    """The result of a segmenter for one case.

    Parameters
    ----------
    mask
        The mask of the best candidate on the case's own grid; it may be empty.
    candidates
        The candidates, ranked from 1.
    parameters
        Parameters for the provenance.
    notes
        Remarks that are shown to the user.
    device
        The computing device.
    peak_memory_bytes
        Peak memory of the computing process; None if it is this process.
    probability
        float16 ``(z, y, x)``, 0 to 1; None unless requested. The model's own last steps set voxels
        that they remove to 0 and voxels that they add to 1. For several models, it is the mean of
        their probabilities or of their masks.
    variance
        Variance of the probabilities of several models, float16, 0 to 0.25; None for one model.
    unsure
        Reason why the first candidate may not be the tumour; "" if there is none.
    """

    case_id: str
    mask: Mask
    candidates: tuple[Candidate, ...] = ()
    parameters: tuple[tuple[str, Setting], ...] = ()
    seconds: float = 0.0
    notes: tuple[str, ...] = ()
    device: str = "cpu"
    peak_memory_bytes: int | None = None
    probability: NDArray[np.float16] | None = None
    variance: NDArray[np.float16] | None = None
    unsure: str = ""

    def __repr__(self) -> str:
        return (
            f"Prediction({self.case_id!r}, {self.mask!r}, "
            f"{count_of(len(self.candidates), 'candidate')}, "
            f"{self.seconds:.1f} s)"
        )


class Segmenter(Protocol):
    """Protocol for an object that segments a case.

    `name` is used for folders and files, `title` is displayed, and `note` must be shown with every
    result.
    """

    @property
    def name(self) -> str:
        """Short name that is suitable for a folder."""
        ...

    @property
    def title(self) -> str:
        """Name that is displayed to users."""
        ...

    @property
    def note(self) -> str:
        """One-line caveat that is shown with every result."""
        ...

    def predict(self, case: Case, prompt: Prompt | None = None) -> Prediction:
        """Segment `case`; raise `CaseError` or `ModelError` on failure."""
        ...
