"""Detect contrast arrival, and a repeated pre-contrast scan, from the voxel values."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.block_means import block_means
from napari_mamamia.core.counting import phase_name
from napari_mamamia.io.exam.looks import Contrast, contrast_between, enhancement

_PLANES: Final = 5


@dataclass(frozen=True, slots=True)
class Arrival:
    """The number of phases before contrast (at least 1), and how clearly the voxels show it.

    `is_repeated` is True if phase 1 shows no contrast yet, but a later phase does. `evidence` is a
    sentence, or "" for a case with one phase. `is_clear` is True if the voxels show the arrival.
    """

    n_before: int = 1
    evidence: str = ""
    is_clear: bool = False

    @property
    def is_repeated(self) -> bool:
        """Whether the pre-contrast scan was acquired more than once."""
        return self.n_before > 1


def find_arrival(signal: NDArray[Any]) -> Arrival:
    """Return the number of phases in ``(phase, z, y, x)`` that were acquired before contrast.

    The result is above 1 only if the evidence is clear (`io.exam.looks.contrast_between`): none of
    these phases shows contrast relative to phase 0, but the next phase does, relative to phase 0
    and to the phase before it. Five planes of each phase are compared.
    """
    return arrival_in_blocks([_average_blocks(phase) for phase in signal])


def arrival_in_blocks(blocks: Sequence[NDArray[np.float32]]) -> Arrival:
    """Return the contrast arrival, computed from block means at equal positions in each phase."""
    if len(blocks) < 2:
        return Arrival()
    rises = [enhancement(blocks[0], phase) for phase in blocks[1:]]
    seen = [contrast_between(blocks[0], phase) for phase in blocks[1:]]
    came = next((k for k, one in enumerate(seen) if one is Contrast.CAME), None)
    if came is None:
        most = max(rises)
        return Arrival(
            1,
            f"contrast is not visible: the signal rises in at most {most:.1%} of the body "
            "after phase 0",
        )
    step = contrast_between(blocks[came], blocks[came + 1])
    is_clear = step is Contrast.CAME and all(one is Contrast.NONE for one in seen[:came])
    share = f"the signal rises in {rises[came]:.0%} of the body"
    if came == 0:
        return Arrival(1, _describe(1, share), is_clear=True)
    if is_clear:
        return Arrival(came + 1, _describe(came + 1, share), is_clear=True)
    shares = ", ".join(f"{rise:.1%}" for rise in rises[: came + 1])
    return Arrival(
        1,
        "it is not clear whether contrast arrived before phase 1: from phase 0 to phases 1 to "
        f"{came + 1} the signal rises in {shares} of the body",
    )


def _describe(n_before: int, share: str) -> str:
    """Return a sentence that names the phases between which contrast arrived."""
    last, first = phase_name(n_before - 1, n_before), phase_name(n_before, n_before)
    return f"contrast arrived between {last} and {first} (phase {n_before} from 0): {share}"


def _average_blocks(volume: NDArray[Any]) -> NDArray[np.float32]:
    """Return means over 4 x 4 voxels of a few planes, with non-finite values counted as 0."""
    places = np.unique(np.linspace(0.2, 0.8, _PLANES) * (len(volume) - 1) + 0.5).astype(int)
    return np.nan_to_num(block_means(volume[places]), posinf=0, neginf=0)
