"""Lesions to train on: the project's phantoms, a second procedural family, sarcomas (CC BY 3.0)."""

import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter, label

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import Case, Phase
from napari_mamamia.core.grid import Grid
from napari_mamamia.io.data_set.volumes import read_labels, read_volume
from napari_mamamia.phantom import PhantomSpec, TumourKind, TumourSpec, make_phantom
from napari_mamamia.smartpaint.brush.features import measure_features

SPLITS = Path(__file__).with_name("splits.json")
N_OWN, N_SECOND = 60, 320
MOST_VOXELS = 70_000
"""A larger sarcoma is averaged in its slices: a press finds its place in a fraction of the time."""
MARGIN_MM = 25.0
MODALITIES = ("PET", "MR_T1", "CT")

Bools = NDArray[np.bool_]
Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Spacing = tuple[float, float, float]


@dataclass(frozen=True)
class World:
    """A lesion: features ``(feature, z, y, x)`` with their noise, its voxels, and its spacing."""

    kind: str
    features: Floats
    noise: tuple[float, ...]
    reference: Bools
    spacing_mm: Spacing


def make_worlds(sarcomas: Path) -> list[World]:
    """Return all worlds, in an order that does not depend on the machine."""
    return [*_own_phantoms(), *_second_family(), *_sarcomas(sarcomas)]


def read_splits() -> dict[str, Any]:
    """Return the patients of each split."""
    splits: dict[str, Any] = json.loads(SPLITS.read_text(encoding="utf-8"))
    return splits


def _measure(kind: str, case: Case, reference: Bools) -> World:
    """Return a case's features around its lesion; the noise is that of the whole case."""
    images = measure_features(case)
    spacing = case.grid.spacing_mm
    margin = [int(np.ceil(MARGIN_MM / step)) for step in spacing]
    box = Box.around(reference).grown(margin, reference.shape)
    features = np.nan_to_num(images.in_box(box))
    return _coarsen(World(kind, features, images.noise, reference[box.slices].copy(), spacing))


def _coarsen(world: World) -> World:
    factor = int(np.ceil(np.sqrt(world.reference.size / MOST_VOXELS)))
    if factor < 2 or world.reference.shape[0] == 1:
        return world
    _, n_z, n_y, n_x = world.features.shape
    n_y, n_x = n_y // factor, n_x // factor
    cut = np.s_[..., : n_y * factor, : n_x * factor]
    blocks = (n_z, n_y, factor, n_x, factor)
    features = world.features[cut].reshape(-1, *blocks).mean(axis=(3, 5))
    reference = world.reference[cut].reshape(blocks).mean(axis=(2, 4)) >= 0.5
    z, y, x = world.spacing_mm
    return World(world.kind, features, world.noise, reference, (z, y * factor, x * factor))


# ------------------------------------------------------------------ the project's phantoms


def _own_phantoms() -> Iterator[World]:
    for number in range(N_OWN):
        rng = np.random.default_rng([37, 1, number])
        longest = float(rng.uniform(8, 48))
        kind = list(TumourKind)[number % 3]
        given: dict[str, Any] = {
            "seed": 5000 + number,
            "tumours": (TumourSpec(longest, kind, roughness=float(rng.uniform(0, 1))),),
            "fat_suppressed": bool(rng.random() < 0.7),
            "breast_density": "abcd"[int(rng.integers(4))],
            "background_enhancement_percent": float(rng.uniform(5, 50)),
            "bias_percent": float(rng.uniform(5, 20)),
            "contrast_to_noise": float(rng.uniform(1.5, 8)),
        }
        coarse = make_phantom(PhantomSpec(**given))
        if not coarse.reference.array.any():
            continue
        z, y, x = Box.around(coarse.reference.array).centre
        centre = coarse.case.grid.affine @ (x, y, z, 1.0)
        side = longest + 2 * MARGIN_MM
        step = max(0.8, side / 56)
        slice_mm = float(rng.uniform(1.0, 2.5)) * step
        n_slices, n_rows = round(side / slice_mm), round(side / step)
        fine = make_phantom(
            PhantomSpec(
                **given,
                shape=(n_slices, n_rows, n_rows),
                spacing_mm=(slice_mm, step, step),
                field_centre_mm=tuple(float(mm) for mm in centre[:3]),
            )
        )
        if np.count_nonzero(fine.reference.array) >= 30:
            yield _measure("own phantom", fine.case, fine.reference.array)


# ------------------------------------------------------------------ a second family


def _second_family() -> Iterator[World]:
    for number in range(N_SECOND):
        world = _draw_lesion(np.random.default_rng([37, 2, number]))
        if world is not None:
            yield world


class _Field:
    """A block of voxels around the middle, in mm, with random fields and bodies in it."""

    def __init__(
        self, rng: np.random.Generator, shape: tuple[int, int, int], spacing_mm: Spacing
    ) -> None:
        self.rng, self.shape, self.spacing_mm = rng, shape, spacing_mm
        axes = [
            (np.arange(n) - (n - 1) / 2) * step for n, step in zip(shape, spacing_mm, strict=True)
        ]
        self.points = np.stack(np.meshgrid(*axes, indexing="ij"))

    def smooth(self, mm: float) -> Doubles:
        """Return a field of mean 0 and standard deviation 1, smooth over so many mm."""
        sigma = [mm / step for step in self.spacing_mm]
        field = gaussian_filter(
            self.rng.standard_normal(self.shape), sigma, mode="wrap", truncate=3
        )
        return np.asarray((field - field.mean()) / max(float(field.std()), 1e-9))

    def lobes(self, centre: Doubles, size: float, rough: float) -> Doubles:
        """Return a depth in mm, above 0 inside a body of one to four ellipsoids."""
        rng = self.rng
        depth = np.full(self.shape, -np.inf)
        for k in range(int(rng.integers(1, 5))):
            off = rng.standard_normal(3) * size * 0.45 * (k > 0)
            axis = size * rng.uniform(0.5, 1.0, 3) * (1 if k == 0 else 0.7)
            scaled = (self.points - (centre + off)[:, None, None, None]) / axis[:, None, None, None]
            depth = np.maximum(depth, (1 - np.sqrt((scaled**2).sum(axis=0))) * axis.min())
        return np.asarray(depth + rough * self.smooth(3.0))

    def add_neighbour(self, tissue: Doubles, radius: float, step: float) -> Doubles:
        """Return the tissue with a body or a vessel about as bright as the lesion."""
        rng = self.rng
        direction = rng.standard_normal(3)
        direction /= np.linalg.norm(direction)
        if rng.random() < 0.5:
            centre = direction * radius * rng.uniform(1.1, 1.9)
            other = self.lobes(centre, float(rng.uniform(2, 7)), 0.5)
        else:
            off = rng.standard_normal(3) * radius
            away = self.points - off[:, None, None, None]
            along = np.tensordot(direction, away, 1)
            across = np.sqrt(np.maximum((away**2).sum(axis=0) - along**2, 0))
            other = rng.uniform(0.8, 2.0) - across
        bright = 1 / (1 + np.exp(-other / 0.5))
        return np.asarray(tissue * (1 - bright) + bright * step * rng.uniform(0.6, 1.2))

    def draw_inside(self, depth: Doubles, step: float) -> Doubles:
        """Return the lesion's brightness: uneven, in a third of the lesions with a partial rim."""
        rng = self.rng
        inner = step * (1 + rng.uniform(0, 0.5) * self.smooth(float(rng.uniform(1.5, 6))))
        if rng.random() < 0.35:
            rim = float(rng.uniform(2, 5))
            hollow = 1 / (1 + np.exp(-(depth - rim) / 0.7))
            hollow *= 1 / (1 + np.exp(-3 * (self.smooth(8.0) + rng.uniform(-0.5, 1.5))))
            inner = inner * (1 - hollow * rng.uniform(0.5, 1.1))
        return np.asarray(inner)


def _draw_lesion(rng: np.random.Generator) -> World | None:
    """Return a lobed, textured lesion beside tissue that looks like it; None if it is tiny."""
    slice_mm = float(rng.choice([1.0, 1.5, 2.5, 4.0]))
    radius = float(rng.uniform(4, 14))
    side = 2 * radius * 1.3 + 22
    shape = (max(round(side / slice_mm), 6), round(side), round(side))
    spacing = (slice_mm, 1.0, 1.0)
    field = _Field(rng, shape, spacing)
    depth = field.lobes(rng.standard_normal(3) * 1.5, radius, float(rng.uniform(0, 1.5)))
    parts, _ = label(depth > 0)
    sizes = np.bincount(parts.ravel())[1:]
    if not sizes.size or sizes.max() < 30:
        return None
    reference = parts == 1 + int(sizes.argmax())
    share = 1 / (1 + np.exp(-depth / rng.uniform(0.3, 1.2)))
    sign = -1.0 if rng.random() < 0.3 else 1.0
    step = float(rng.uniform(1.5, 14))  # contrast in units of the noise
    inner = field.draw_inside(depth, step)
    tissue = rng.uniform(0, 0.5) * step * field.smooth(float(rng.uniform(3, 10)))
    patches = rng.uniform(0, 0.7) * step
    tissue += patches * (field.smooth(float(rng.uniform(6, 15))) > rng.uniform(0.3, 1))
    for _ in range(int(rng.integers(0, 4))):
        tissue = field.add_neighbour(tissue, radius, step)
    early = sign * (share * inner + (1 - share) * tissue)
    base = rng.uniform(0, 6) * field.smooth(6.0) + rng.uniform(0, 1) * step * share
    late = early * (1 + rng.uniform(-0.3, 0.2) * share)
    coil = 1 + rng.uniform(0, 0.12) * field.smooth(25.0)
    blur = rng.uniform(0, 0.7)  # noise is correlated, as in an interpolated image

    def noisy(image: Doubles) -> Floats:
        noise = gaussian_filter(rng.standard_normal(shape), [blur / step for step in spacing])
        return (100 + 10 * coil * image + 10 * noise / noise.std()).astype(np.float32)

    signal = np.stack([noisy(base), noisy(base + early), noisy(base + late)])
    if rng.random() < 0.5:
        signal = signal[1:2]
    times = (0.0, 120.0, 420.0) if len(signal) == 3 else (0.0,)
    phases = tuple(Phase(k, time) for k, time in enumerate(times))
    grid = Grid(shape, np.diag([*spacing[::-1], 1.0]))
    return _measure("second family", Case("second", grid, signal, phases), reference)


# ------------------------------------------------------------------ sarcomas


def _sarcomas(folder: Path) -> Iterator[World]:
    """Yield the lesions of the training patients that are stored whole."""
    for patient in read_splits()["train"]:
        for modality in MODALITIES:
            stem = folder / f"STS_{patient}" / modality
            image, mask = Path(f"{stem}_image.nii.gz"), Path(f"{stem}_mask.nii.gz")
            if not (image.exists() and mask.exists()):
                continue
            header, values = read_volume(image)
            inside = read_labels(mask).dense() > 0
            grid = Grid(values.shape, np.diag([*header.grid.spacing_mm[::-1], 1.0]))
            case = Case(f"{patient} {modality}", grid, values[np.newaxis], (Phase(0),))
            yield _measure(f"sarcoma {modality}", case, inside)


def check_sum(worlds: list[World]) -> str:
    """Return a sum over all worlds, to see whether two machines train on the same ones."""
    total = 0
    for world in worlds:
        total = zlib.crc32(np.ascontiguousarray(world.features).tobytes(), total)
        total = zlib.crc32(world.reference.tobytes(), total)
    return f"{total:08x}"
