"""The `Segmenter` protocol, with one adapter for each kind of model."""

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
    """A prompt: a box that contains the tumour; only the box is searched."""

    box: Box


Prompt = Click | BoxPrompt


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """One region that may be the tumour.

    `crop` is bool and of `box`'s shape. `score` orders candidates and has no unit. `reasons` are
    plain sentences with numbers and units that explain the rank.
    """

    rank: int
    box: Box
    crop: NDArray[np.bool_]
    volume_mm3: float
    score: float
    reasons: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Return rank, size and position."""
        return (
            f"Candidate({self.rank}, {self.volume_mm3 / 1000:.3f} ml, {self.box.start} to "
            f"{self.box.stop})"
        )


@dataclass(frozen=True, slots=True, eq=False)
class Prediction:
    """The result of a segmenter for one case.

    `mask` is that of the best candidate, on the case's own grid, and may be empty. `candidates` are
    ranked from 1. `parameters` go into the provenance; `notes` are shown to the user. `device` is
    the computing device; `peak_memory_bytes` is the peak of the computing process, None if it is
    this one. `probability` is float16 ``(z, y, x)``, 0 to 1, None unless requested; voxels removed
    by the model's own last steps are 0, voxels added by them are 1. For several models,
    `probability` is the mean of their probabilities or of their masks. `variance` is the variance
    of their probabilities, float16, 0 to 0.25; None for one model. `unsure` says why the first
    candidate may not be the tumour, "" without doubts.
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
        """Return the result in one line, without its arrays of millions of voxels."""
        return (
            f"Prediction({self.case_id!r}, {self.mask!r}, "
            f"{count_of(len(self.candidates), 'candidate')}, "
            f"{self.seconds:.1f} s)"
        )


class Segmenter(Protocol):
    """Protocol of everything that makes a prediction from a case.

    `name` is used for folders and files; `title` is shown; `note` must be shown with every result.
    """

    @property
    def name(self) -> str:
        """Short name, suitable for a folder."""
        ...

    @property
    def title(self) -> str:
        """Name shown to people."""
        ...

    @property
    def note(self) -> str:
        """The caveat that is shown with every result, in one line."""
        ...

    def predict(self, case: Case, prompt: Prompt | None = None) -> Prediction:
        """Segment `case`; raise `CaseError` or `ModelError`."""
        ...
