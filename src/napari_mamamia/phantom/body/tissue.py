"""Tissues of the phantom: labels, relaxation, and uptake of contrast agent."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from types import MappingProxyType
from typing import Final


class Tissue(IntEnum):
    """Values of the tissue label map."""

    AIR = 0
    SKIN = 1
    FAT = 2
    FIBROGLANDULAR = 3
    VESSEL = 4
    TUMOUR = 5
    TUMOUR_CORE = 6
    MUSCLE = 7
    BONE = 8
    LUNG = 9
    MYOCARDIUM = 10
    HEART_BLOOD = 11
    LIVER = 12
    NODE = 13


@dataclass(frozen=True, slots=True)
class Relaxation:
    """T1 in seconds at 3 T, and proton density relative to water."""

    t1_s: float
    density: float


@dataclass(frozen=True, slots=True)
class Kinetics:
    """Parameters of the extended Tofts model.

    `ktrans_per_min` is the transfer constant, `kep_per_min` the rate constant of the return into
    plasma, and `plasma_fraction` the fraction of the tissue that is blood plasma.
    """

    ktrans_per_min: float
    kep_per_min: float
    plasma_fraction: float


MRI_PROPERTIES: Final[Mapping[Tissue, Relaxation]] = MappingProxyType(
    {
        Tissue.AIR: Relaxation(1.0, 0.0),
        Tissue.SKIN: Relaxation(0.90, 0.65),
        Tissue.FAT: Relaxation(0.423, 0.9),
        Tissue.FIBROGLANDULAR: Relaxation(1.68, 1.0),
        Tissue.VESSEL: Relaxation(1.66, 0.95),
        Tissue.TUMOUR: Relaxation(1.612, 1.0),
        Tissue.TUMOUR_CORE: Relaxation(2.1, 1.0),
        Tissue.MUSCLE: Relaxation(0.898, 0.65),
        Tissue.BONE: Relaxation(0.586, 0.55),
        Tissue.LUNG: Relaxation(1.2, 0.08),
        Tissue.MYOCARDIUM: Relaxation(1.22, 0.85),
        Tissue.HEART_BLOOD: Relaxation(1.66, 0.95),
        Tissue.LIVER: Relaxation(0.809, 0.75),
        Tissue.NODE: Relaxation(1.4, 0.95),
    }
)
"""T1 at 3 T and proton density of each tissue.

Sources of T1: fat and fibroglandular tissue Edden 2010 (JMRI 32:982); blood and myocardium Sharma
2006 (JMRI 23:323); muscle, marrow and liver de Bazelaire 2004 (Radiology 230:652); breast cancer
Meng 2020 (Cancer Imaging 20:88). The values of skin, necrotic core, lung and nodes, and all
densities, are our choice.
"""

FAT_SHARE: Final[Mapping[Tissue, float]] = MappingProxyType({Tissue.FAT: 1.0, Tissue.BONE: 0.5})
"""Fraction of a tissue's signal that comes from fat and is removed by suppression (our choice)."""

KINETICS: Final[Mapping[Tissue, Kinetics]] = MappingProxyType(
    {
        Tissue.SKIN: Kinetics(0.04, 0.10, 0.01),
        Tissue.FAT: Kinetics(0.002, 0.10, 0.0),
        Tissue.TUMOUR_CORE: Kinetics(0.012, 0.05, 0.0),
        Tissue.MUSCLE: Kinetics(0.02, 0.20, 0.01),
        Tissue.BONE: Kinetics(0.02, 0.15, 0.01),
        Tissue.LUNG: Kinetics(0.03, 0.30, 0.03),
        Tissue.MYOCARDIUM: Kinetics(0.60, 2.50, 0.08),
        Tissue.LIVER: Kinetics(0.30, 0.80, 0.05),
        Tissue.NODE: Kinetics(0.55, 1.20, 0.05),
    }
)
"""Fixed kinetics of the tissues (our choice).

The signal of skin and muscle rises slowly, that of the heart wall early. Blood follows the arterial
input. Fibroglandular tissue and tumours are fitted to the spec.
"""
