"""Small blocks with one lesion in plain surroundings, for measuring edge-following tools.

Everything except contrast, noise and the named difficulty is kept simple. Noise is Gaussian, which
favours methods that assume it: results on these blocks are no evidence for patients.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import distance_transform_edt, gaussian_filter, label

from napari_mamamia.core.case import Case, Phase
from napari_mamamia.core.grid import Grid

_NOISE: Final = 10.0
_TISSUE: Final = 100.0
_BACKGROUND_ENHANCEMENT: Final = 0.1  # share of the lesion's enhancement
_WASHOUT: Final = 0.2  # share of the lesion's enhancement; absent in the late phase
_RIM_MM: Final = 4.0
_EDGE_MM: Final = 1.4  # width over which the lesion's share of a voxel falls from 1 to 0
_UNEVEN: Final = (
    0.15  # standard deviation of the lesion's enhancement, as a share, smooth over 3 mm
)
_TEXTURE: Final = 0.3  # share of the noise: unevenness of the surroundings, smooth over 3 mm
_CORE: Final = 0.15  # share of the lesion's enhancement, inside its rim
_TIMES_S: Final = (0.0, 150.0, 450.0)

Bools = NDArray[np.bool_]
Spacing = tuple[float, float, float]


class LesionKind(StrEnum):
    """How a lesion enhances: homogeneously, or in a rim of 4 mm around a core."""

    MASS = "mass"
    RIM = "rim"


@dataclass(frozen=True, slots=True, eq=False)
class OneLesion:
    """A case of three phases (0, 150, 450 s) with one lesion in its centre, and the truth."""

    case: Case
    truth: Bools


def one_lesion(
    cnr: float,
    seed: int = 0,
    *,
    kind: LesionKind = LesionKind.MASS,
    radius_mm: float = 12.5,
    shape: tuple[int, int, int] = (25, 72, 72),
    spacing_mm: Spacing = (2.0, 0.7, 0.7),
    bias_percent: float = 0.0,
    bright_fat: bool = False,
) -> OneLesion:
    """Return a block with one lobulated lesion.

    Parameters
    ----------
    cnr
        Contrast of the lesion in the first phase after contrast, in units of the noise.
    radius_mm
        Approximate radius of a ball with the lesion's volume; the lesion is an ellipsoid with axes
        of 0.8 to 1.2 times that, its surface uneven by 7 % of it.
    kind
        Homogeneous enhancement, or a rim around a core that hardly enhances.
    bias_percent
        Largest deviation in percent of a smooth factor (over 20 mm) on all signal.
    bright_fat
        Whether the surroundings hold fat lobules, as bright in all phases as the lesion after
        contrast.
    """
    rng = np.random.default_rng(seed)
    depth = _depth_mm(rng, shape, spacing_mm, radius_mm)
    truth = depth > 0
    share = np.clip(depth / np.float32(_EDGE_MM) + np.float32(0.5), 0, 1)
    # The surroundings enhance too: the CNR refers to the difference.
    full = np.float32(cnr * _NOISE / (1 - _BACKGROUND_ENHANCEMENT))
    lesion = full * (1 + np.float32(_UNEVEN) * _make_random_field(rng, shape, spacing_mm, 3.0))
    if kind is LesionKind.RIM:
        lesion *= np.where(depth > _RIM_MM, np.float32(_CORE), np.float32(1))
    before = _TISSUE + np.float32(_TEXTURE * _NOISE) * _make_random_field(
        rng, shape, spacing_mm, 3.0
    )
    if bright_fat:
        fat = _make_random_field(rng, shape, spacing_mm, 5.0) > 0.8
        before += np.float32(cnr * _NOISE) * fat * (1 - share)
    rise = share * lesion + (1 - share) * full * np.float32(_BACKGROUND_ENHANCEMENT)
    bias = _make_random_field(rng, shape, spacing_mm, 20.0)
    factor = 1 + bias_percent / 100 * bias / np.abs(bias).max()
    late = 1 - np.float32(_WASHOUT) * share
    phases = np.stack([before, before + rise, before + rise * late]) * factor
    phases += _NOISE * rng.standard_normal(phases.shape)
    z, y, x = spacing_mm
    grid = Grid(shape, np.diag([-x, -y, z, 1.0]))
    records = tuple(Phase(index, time) for index, time in enumerate(_TIMES_S))
    signal = np.rint(phases).astype(np.int16)
    return OneLesion(Case(f"ONE_LESION_{seed}", grid, signal, records), truth)


def coarse_outline(
    truth_plane: Bools, spacing_mm: tuple[float, float], error_mm: float, seed: int = 0
) -> Bools:
    """Return a coarse outline of one plane, like one drawn by a hasty reader.

    The true contour is moved by a smooth error with a standard deviation of `error_mm` along its
    normal, smooth over 4 mm; only the largest component remains. Source of the protocol:
    docs/methods/growth.md.
    """
    inside = distance_transform_edt(truth_plane, sampling=spacing_mm)
    outside = distance_transform_edt(~truth_plane, sampling=spacing_mm)
    rng = np.random.default_rng(seed)
    error = error_mm * _make_random_field(rng, truth_plane.shape, spacing_mm, 4.0)
    parts, _ = label(inside - outside + error > 0)
    sizes = np.bincount(parts.ravel())
    sizes[0] = 0
    drawn: Bools = parts == int(sizes.argmax())
    return drawn


def _depth_mm(
    rng: np.random.Generator, shape: tuple[int, int, int], spacing_mm: Spacing, radius_mm: float
) -> NDArray[np.float32]:
    """Return the approximate depth of each voxel in the lesion, mm; negative outside."""
    axes = rng.uniform(0.8, 1.2, 3)
    radii = radius_mm * axes / np.prod(axes) ** (1 / 3)
    middle = (np.array(shape) - 1) / 2
    z, y, x = (
        ((np.arange(n) - m) * s / r).astype(np.float32)
        for n, m, s, r in zip(shape, middle, spacing_mm, radii, strict=True)
    )
    distance = np.sqrt(z[:, np.newaxis, np.newaxis] ** 2 + y[:, np.newaxis] ** 2 + x**2)
    wave = 0.07 * _make_random_field(rng, shape, spacing_mm, 5.0)
    depth: NDArray[np.float32] = (1 + wave - distance) * np.float32(radius_mm)
    return depth


def _make_random_field(
    rng: np.random.Generator,
    shape: tuple[int, ...],
    spacing_mm: tuple[float, ...],
    smooth_mm: float,
) -> NDArray[np.float32]:
    """Return a random field of mean 0 and standard deviation 1 that is smooth over `smooth_mm`."""
    rough = rng.standard_normal(shape, dtype=np.float32)
    field = gaussian_filter(rough, [smooth_mm / s for s in spacing_mm], mode="wrap")
    even: NDArray[np.float32] = (field - field.mean()) / field.std()
    return even
