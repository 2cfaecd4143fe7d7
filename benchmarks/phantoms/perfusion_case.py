"""A small block with known Ktrans, ve, vp and T1, finely sampled in time.

The case is the ground truth for tests of perfusion and T1. The uptake is a sum over steps of 50 ms
and shares no code with the tested functions.
"""

from dataclasses import dataclass
from math import radians
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.case import Case, Phase
from napari_mamamia.core.grid import Grid
from napari_mamamia.phantom.enhancement import HAEMATOCRIT, arterial_blood_mm

REPETITION_S: Final = 0.005
FLIP_DEGREES: Final = 12.0
RELAXIVITY: Final = 4.5
"""Relaxivity in 1/(s mM), the value in the OSIPI tests."""

_SPACING_MM: Final = 2.0
_STEP_S: Final = 0.05
_FULL: Final = 20_000.0
_RADIUS: Final = 7.0
_CORE: Final = 4.0
_TISSUES: Final = {
    "gland": (0.03, 0.2, 0.01, 1.2),
    "rim": (0.25, 0.4, 0.05, 1.4),
    "core": (0.08, 0.3, 0.02, 1.6),
    "aorta": (0.0, 1.0, 1.0 - HAEMATOCRIT, 1.66),
}
"""Ktrans (1/min), ve, vp, T1 (s). Our choice, within the range reported for breast cancers."""


@dataclass(frozen=True, slots=True, eq=False)
class PerfusionPhantom:
    """A case with the true maps: arrays ``(z, y, x)``; T1 in s, Ktrans in 1/min.

    `lesion` is the union of rim and core.
    """

    case: Case
    lesion: NDArray[np.bool_]
    aorta: NDArray[np.bool_]
    ktrans: NDArray[np.float32]
    ve: NDArray[np.float32]
    vp: NDArray[np.float32]
    t1_s: NDArray[np.float32]

    def flip_volume(self, flip_degrees: float) -> NDArray[np.int16]:
        """Return the volume before contrast at another flip angle, without noise."""
        return np.round(_compute_signal(1 / self.t1_s, flip_degrees)).astype(np.int16)


def perfusion_phantom(
    case_id: str = "ULTRAFAST_1",
    *,
    spacing_s: float = 5.0,
    n_phases: int = 60,
    arrival_s: float = 22.0,
    noise: float = 0.0,
    seed: int = 0,
    shape: tuple[int, int, int] = (16, 32, 40),
) -> PerfusionPhantom:
    """Return a case of `n_phases`, `spacing_s` apart, with a lesion in gland and an aorta.

    `noise` is the standard deviation of Gaussian noise as a share of the gland's signal. TR, flip
    angle and relaxivity are the constants of this module; the arterial input is Parker's.
    """
    kinds = _build_anatomy(shape)
    times = spacing_s * np.arange(n_phases, dtype=np.float64)
    parameters = np.array(list(_TISSUES.values()))
    curves = np.stack(
        [_compute_curve(times, arrival_s, *tissue) for tissue in _TISSUES.values()], axis=1
    )
    signal = curves[:, kinds]
    rng = np.random.default_rng(seed)
    signal += noise * curves[0, 0] * rng.standard_normal(signal.shape)
    grid = Grid(shape, np.diag([_SPACING_MM, _SPACING_MM, _SPACING_MM, 1.0]))
    phases = tuple(Phase(k, float(time)) for k, time in enumerate(times))
    stored = np.clip(np.round(signal), 0, 32767).astype(np.int16)
    ktrans, ve, vp, t1 = (parameters[kinds, k].astype(np.float32) for k in range(4))
    names = list(_TISSUES)
    return PerfusionPhantom(
        Case(case_id, grid, stored, phases),
        np.isin(kinds, (names.index("rim"), names.index("core"))),
        kinds == names.index("aorta"),
        ktrans,
        ve,
        vp,
        t1,
    )


def _build_anatomy(shape: tuple[int, int, int]) -> NDArray[np.intp]:
    names = list(_TISSUES)
    z, y, x = np.indices(shape)
    middle = (shape[0] / 2, shape[1] / 2, shape[2] / 3)
    away = np.sqrt((z - middle[0]) ** 2 + (y - middle[1]) ** 2 + (x - middle[2]) ** 2)
    beside = np.sqrt((y - shape[1] / 2) ** 2 + (x - 0.85 * shape[2]) ** 2)
    kinds = np.zeros(shape, np.intp)
    kinds[away < _RADIUS] = names.index("rim")
    kinds[away < _CORE] = names.index("core")
    kinds[beside < 3] = names.index("aorta")
    return kinds


def _compute_curve(
    times_s: NDArray[np.float64],
    arrival_s: float,
    ktrans_per_min: float,
    ve: float,
    vp: float,
    t1_s: float,
) -> NDArray[np.float64]:
    """Return a tissue's signal at each time, by a dense sum."""
    minutes = np.arange(0, float(times_s[-1]) + 1, _STEP_S) / 60
    middles = minutes + _STEP_S / 120
    plasma = arterial_blood_mm(middles) / (1 - HAEMATOCRIT)
    decay = np.exp(-ktrans_per_min / ve * minutes)
    taken = np.concatenate([[0.0], np.convolve(plasma, decay)[: len(minutes) - 1]]) * _STEP_S / 60
    since = (np.asarray(times_s) - arrival_s) / 60
    now = arterial_blood_mm(np.maximum(since, 0.0)) / (1 - HAEMATOCRIT)
    contrast = ktrans_per_min * np.interp(since, minutes, taken, left=0.0) + vp * now
    return _compute_signal(1 / t1_s + RELAXIVITY * np.where(since > 0, contrast, 0.0), FLIP_DEGREES)


def _compute_signal(rate: NDArray[np.floating], flip_degrees: float) -> NDArray[np.float64]:
    decay = np.exp(-REPETITION_S * np.asarray(rate, np.float64))
    angle = radians(flip_degrees)
    share: NDArray[np.float64] = np.sin(angle) * (1 - decay) / (1 - np.cos(angle) * decay)
    return _FULL * share
