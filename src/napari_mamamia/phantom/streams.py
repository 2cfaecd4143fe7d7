"""Independent random streams, one for each component of a phantom."""

from enum import IntEnum

import numpy as np


class Part(IntEnum):
    """Components that have separate random numbers, so that a change affects only one component."""

    BODY = 0
    SURFACE = 1
    PARENCHYMA = 2
    ENHANCEMENT = 3
    VESSELS = 4
    TUMOUR_PLACE = 5
    TUMOUR_SHAPE = 6
    FAT_SUPPRESSION = 7
    BIAS = 8
    NOISE = 9
    PATIENT = 10
    CASE = 11
    AUTOMATIC_MASK = 12
    NODES = 13


def stream(seed: int, part: Part, index: int = 0) -> np.random.Generator:
    """Return the random generator of one component of the phantom for this `seed`.

    `index` distinguishes components of the same kind, such as tumours or phases. The generator uses
    the child sequence that ``SeedSequence(seed).spawn`` would create at (part, index).
    """
    sequence = np.random.SeedSequence(seed, spawn_key=(int(part), index))
    return np.random.Generator(np.random.PCG64(sequence))
