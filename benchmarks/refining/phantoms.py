"""A second family of phantoms, which shares no code with `napari_mamamia.phantom`.

One lesion among fat, gland, vessels and neighbours, in three phases (0, 120, 420 s), made to be
harder than the project's own: inside, the lesion varies by 2 to 5 units of noise; to its
surroundings it steps by 6 to 23. Space is drawn at twice the resolution and averaged, so that
voxels at edges are mixed; the noise is Rician and 20 % stronger or weaker over the image.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import binary_closing, binary_fill_holes, gaussian_filter, label

TIMES_S = (0.0, 120.0, 420.0)
NOISE = 8.0
FAT, GLAND = 60.0, 140.0
MARGIN_MM = 25.0

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Spacing = tuple[float, float, float]


class Form(StrEnum):
    """What makes the lesion hard."""

    UNEVEN = "uneven"
    RIM = "rim"
    NON_MASS = "non-mass"
    NEIGHBOURS = "neighbours"
    THICK = "thick slices"


@dataclass(frozen=True)
class DrawnLesion:
    """Signal ``(phase, z, y, x)`` in whole numbers, and the lesion's voxels."""

    signal: NDArray[np.int16]
    reference: Bools
    spacing_mm: Spacing


def draw_lesion(
    form: Form, seed: int, step: float = 12.0, inner_sd: float = 3.0, radius_mm: float = 11.0
) -> DrawnLesion:
    """Return a lesion of about a ball of `radius_mm`; `step` and `inner_sd` in units of noise."""
    rng = np.random.default_rng([2026, seed])
    spacing = (4.0, 0.9, 0.9) if form is Form.THICK else (2.0, 0.9, 0.9)
    space = _Space(rng, spacing, radius_mm)
    body = _clumps(space, radius_mm) if form is Form.NON_MASS else _lobes(space, radius_mm)
    share = gaussian_filter(body.astype(np.float64), [0.5 / s for s in space.fine_mm])
    rise = step * NOISE + inner_sd * NOISE * space.smooth(2.5)
    if form is Form.RIM:
        rise = _hollow(space, body, rise, step)
    gland = _soft_edge(space.smooth(7.0), 0.2)
    before = FAT + (GLAND - FAT) * gland + 1.0 * NOISE * space.smooth(3.0)
    around = gland * NOISE * (1.5 + 1.0 * space.smooth(9.0))
    bright = _bright_paths(space, body, n_nodes=3 if form is Form.NEIGHBOURS else 0)
    around = np.maximum(around, bright * step * NOISE * rng.uniform(0.85, 1.1))
    before = np.maximum(before, bright * 0.8 * GLAND)
    early = share * np.maximum(rise, 0) + (1 - share) * around
    before = before * (1 - share) + share * (0.8 * GLAND + 0.5 * NOISE * space.smooth(4.0))
    fades = rng.uniform(-0.25, 0.1)  # washout to persistent
    late = early * (1 + fades * share) + (1 - share) * 0.4 * around
    coil = 1 + 0.1 * space.smooth(30.0)
    phases = [space.average(coil * image) for image in (before, before + early, before + late)]
    strength = NOISE * (1 + 0.2 * gaussian_filter(_white(rng, phases[0].shape), 8, mode="wrap"))
    signal = np.stack([_rician(rng, phase, strength) for phase in phases])
    reference = space.average(body.astype(np.float64)) >= 0.5
    if form is not Form.NON_MASS:
        reference = _largest(reference)
    return DrawnLesion(np.rint(signal).astype(np.int16), reference, spacing)


class _Space:
    """A block of fine voxels around the middle, in mm, and fields that are smooth in it."""

    def __init__(self, rng: np.random.Generator, spacing_mm: Spacing, radius_mm: float) -> None:
        self.rng = rng
        side = 2 * (1.3 * radius_mm + MARGIN_MM)
        self.coarse = tuple(round(side / s) for s in spacing_mm)
        self.factors = (4 if spacing_mm[0] > 3 else 2, 2, 2)
        pairs = zip(spacing_mm, self.factors, strict=True)
        self.fine_mm = tuple(s / f for s, f in pairs)
        self.shape = tuple(n * f for n, f in zip(self.coarse, self.factors, strict=True))

    def place(self, centre_mm: NDArray[Any]) -> Floats:
        """Return the squared distance of each fine voxel from a place, mm2 (z, y, x)."""
        z, y, x = (
            ((np.arange(n) - (n - 1) / 2) * s - c) ** 2
            for n, s, c in zip(self.shape, self.fine_mm, centre_mm, strict=True)
        )
        return z[:, None, None] + y[:, None] + x

    def smooth(self, mm: float) -> Floats:
        """Return a field of mean 0 and standard deviation 1, smooth over so many mm."""
        rough = self.rng.standard_normal(self.shape)
        field = gaussian_filter(rough, [mm / s for s in self.fine_mm], mode="wrap", truncate=3)
        return np.asarray((field - field.mean()) / field.std())

    def average(self, fine: Floats) -> Floats:
        """Return the means of the fine voxels of each voxel."""
        parts = [n for pair in zip(self.coarse, self.factors, strict=True) for n in pair]
        return np.asarray(fine.reshape(parts).mean(axis=(1, 3, 5)))


def _white(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Return white noise that has about unit strength once it is smoothed over 8 voxels."""
    return rng.standard_normal(shape) * 8**1.5 * (2 * np.sqrt(np.pi)) ** 1.5


def _soft_edge(field: Floats, level: float) -> Floats:
    return np.asarray(1 / (1 + np.exp(-6 * (field - level))))


def _direction(rng: np.random.Generator) -> NDArray[Any]:
    vector = rng.standard_normal(3)
    return vector / np.linalg.norm(vector)


def _lobes(space: _Space, radius_mm: float) -> Bools:
    """Return a lobed body: where the Gaussians of three to five lobes sum to a level."""
    rng = space.rng
    total = np.exp(-space.place(np.zeros(3)) / (2 * (0.6 * radius_mm) ** 2))
    for _ in range(int(rng.integers(3, 6))):
        centre = _direction(rng) * radius_mm * rng.uniform(0.5, 0.9)
        size = 0.6 * radius_mm * rng.uniform(0.4, 0.8)
        total += np.exp(-space.place(centre) / (2 * size**2))
    total += 0.05 * space.smooth(1.5)
    volume = 4 / 3 * np.pi * radius_mm**3 / np.prod(space.fine_mm)
    level = np.partition(total.ravel(), -int(volume))[-int(volume)]
    return _largest(np.asarray(binary_fill_holes(total >= level)))


def _clumps(space: _Space, radius_mm: float) -> Bools:
    """Return clumps of 2 to 4 mm along a segment, joined where they are within 1.5 mm."""
    rng = space.rng
    axis = _direction(rng) * (0.5, 1.0, 1.0)
    body = np.zeros(space.shape, dtype=np.bool_)
    for _ in range(round(0.35 * radius_mm**2)):
        along = rng.uniform(-1.2, 1.2)
        off = _direction(rng) * radius_mm * rng.uniform(0, 0.55) * (1.3 + along) / 2
        body |= space.place(axis * along * radius_mm + off) <= rng.uniform(2.0, 4.0) ** 2
    ball = np.ones([max(1, round(1.5 / s)) for s in space.fine_mm], dtype=np.bool_)
    return _largest(np.asarray(binary_closing(body, ball)))


def _hollow(space: _Space, body: Bools, rise: Floats, step: float) -> Floats:
    """Return the rise with a core (which hardly enhances) behind a rim of 2.5 to 5 mm."""
    mm = space.rng.uniform(2.5, 5.0)
    # How far the body is from a place: of a blurred body half is left at a plane edge.
    blurred = gaussian_filter(body.astype(np.float64), [mm / s for s in space.fine_mm])
    core = _soft_edge(4 * (blurred - 0.84) + 0.3 * space.smooth(2.0), 0.0)
    return np.asarray(rise * (1 - core) + core * (0.15 * step * NOISE))


def _bright_paths(space: _Space, body: Bools, n_nodes: int) -> Floats:
    """Return where two vessels lie, and nodes near the lesion: 1 there, else 0."""
    rng = space.rng
    gap = gaussian_filter(body.astype(np.float64), [2.0 / s for s in space.fine_mm])
    bright = np.zeros(space.shape)
    for _ in range(2):
        through = _direction(rng) * rng.uniform(8.0, 20.0)
        way, bend = _direction(rng), _direction(rng)
        for share in np.linspace(-1, 1, 120):
            centre = through + way * share * 45 + bend * 6 * share**2
            bright = np.maximum(bright, space.place(centre) <= rng.uniform(1.0, 1.4) ** 2)
    voxels = np.argwhere((gap > 0.02) & (gap < 0.06))
    middle, steps = (np.array(space.shape) - 1) / 2, np.array(space.fine_mm)
    for _ in range(n_nodes):
        edge = (voxels[rng.integers(len(voxels))] - middle) * steps
        size = rng.uniform(3.0, 6.0)
        centre = edge + edge / np.linalg.norm(edge) * size
        bright = np.maximum(bright, space.place(centre) <= size**2)
    # A gap of about 2 mm parts them from the lesion, as fat does.
    return np.asarray(bright * (gap < 0.1))


def _rician(rng: np.random.Generator, image: Floats, strength: Floats) -> Floats:
    real, imaginary = rng.standard_normal((2, *image.shape)) * strength
    return np.asarray(np.hypot(image + real, imaginary))


def _largest(mask: Bools) -> Bools:
    parts, _ = label(mask)
    sizes = np.bincount(parts.ravel())
    sizes[0] = 0
    part: Bools = parts == int(sizes.argmax())
    return part
