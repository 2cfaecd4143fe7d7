"""Episodes of correction: a mask to start from, presses into what is wrong, and their effect."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import distance_transform_edt, gaussian_filter, label, shift
from worlds import Spacing, World

from napari_mamamia.core.box import Box
from napari_mamamia.smartpaint.learned.patch import (
    SIDE,
    Cube,
    Surroundings,
    make_patch,
    place_cube,
)

WINDOW = 1.5
"""Radii around a press within which the mask may change."""
MOST_PRESSES = 8
JITTER_MM, WRONG_SIDE = 1.5, 0.05
RADII_MM = (1.5, 30.0)
STARTS = ("nothing", "half", "leak", "shifted", "dilated", "eroded", "islands")
SHARES = (0.46, 0.1, 0.12, 0.1, 0.1, 0.04, 0.08)

Floats = NDArray[np.float32]
Bools = NDArray[np.bool_]


class Episode:
    """A lesion that a hand corrects press by press.

    A careful hand presses where the largest wrong part is deepest, with a circle that fits it; a
    careless one often presses elsewhere, with a circle that is too large or too small.
    """

    is_careful = False

    def __init__(self, worlds: list[World], rng: np.random.Generator) -> None:
        self.rng = rng
        world = _choose_world(worlds, rng)
        self.reference = world.reference
        self.spacing_mm = world.spacing_mm
        self.mask = start_mask(world, STARTS[int(rng.choice(len(STARTS), p=SHARES))], rng)
        shape = self.reference.shape
        self.around = Surroundings(
            world.features,
            world.noise,
            self.mask,
            np.zeros(shape, np.float32),
            np.zeros(shape, np.int8),
            self.spacing_mm,
        )
        self.n_presses = 0
        self.cube: Cube | None = None

    def press(self) -> tuple[Floats, Floats, Floats] | None:
        """Return patch, target and distances of the next press; None if nothing is wrong."""
        part = self._choose_part()
        if part is None or self.n_presses >= MOST_PRESSES:
            return None
        point, self.radius_mm, self.is_adding = part
        self.n_presses += 1
        shape: Any = self.mask.shape
        self.point = point
        self.cube = place_cube(shape, point, self.radius_mm, self.spacing_mm)
        patch = make_patch(self.around, self.cube, self.radius_mm, is_adding=self.is_adding)
        return patch, self.cube.sample(self.reference), self.cube.away

    def follow(self, logits: Floats) -> None:
        """Change the mask and the marks as the brush does with these logits of the cube."""
        cube = self.cube
        near = cube.near
        mask, hold, pull = (
            array[near] for array in (self.mask, self.around.hold, self.around.pull)
        )
        squares = [
            ((np.arange(part.start, part.stop) - centre) * step) ** 2
            for part, centre, step in zip(near, self.point, self.spacing_mm, strict=True)
        ]
        if self.mask.shape[0] == 1:
            squares[0][:] = 0
        z, y, x = squares
        away = np.sqrt(z[:, None, None] + y[:, None] + x)
        if not away.size:
            return
        sign = 1 if self.is_adding else -1
        circle = away <= self.radius_mm
        core = away <= max(min(1.5, 0.35 * self.radius_mm), float(away.min()) + 1e-6)
        hold[(hold == -sign) & circle] = 0
        hold[core] = sign
        wanted = (cube.spread(logits) > 0) == self.is_adding
        changed = wanted & (away <= WINDOW * self.radius_mm) & (hold != -sign)
        changed &= mask != self.is_adding
        changed |= core
        parts, _ = label(changed, np.ones((3, 3, 3)))
        changed = np.isin(parts, np.unique(parts[core])) & (mask != self.is_adding)
        mask[changed] = self.is_adding
        hold[changed & circle] = sign
        share = np.clip(2 * (1 - away / self.radius_mm), 0, 1)
        pull *= 1 - share
        pull += sign * share

    def _choose_part(self) -> tuple[tuple[float, float, float], float, bool] | None:
        rng = self.rng
        wrong = self.mask != self.reference
        box = Box.around(wrong)
        if box.is_empty:
            return None
        wrong = wrong[box.slices]
        missing = self.reference[box.slices] & wrong
        first, n_first = label(missing)
        second, n_second = label(wrong & ~missing)
        first[second > 0] = second[second > 0] + n_first
        sizes = np.bincount(first.ravel(), minlength=n_first + n_second + 1)[1:]
        if rng.random() < (0.85 if self.is_careful else 0.7):
            number = 1 + int(sizes.argmax())
        else:
            number = 1 + int(rng.choice(len(sizes), p=sizes / sizes.sum()))
        part = first == number
        tight = Box.around(part)
        edges = [(int(n > 1),) * 2 for n in self.mask.shape]
        padded = np.pad(part[tight.slices], edges)
        depths = distance_transform_edt(padded, self.spacing_mm)
        if rng.random() < (0.85 if self.is_careful else 0.6):
            place = np.unravel_index(int(depths.argmax()), depths.shape)
        else:
            weights = depths.ravel() ** 2
            place = np.unravel_index(
                int(rng.choice(weights.size, p=weights / weights.sum())), depths.shape
            )
        depth = float(depths[place]) * 0.5 + float(depths.max()) * 0.5
        corner = np.array(box.start) + tight.start - [n for n, _ in edges]
        point = corner + np.array(place, dtype=float)
        spread = 0.08 if self.is_careful else 0.2
        radius = float(np.clip(depth * 1.3 * np.exp(rng.normal(0, spread)), *RADII_MM))
        is_adding = number <= n_first
        steps = np.array(self.spacing_mm)
        if rng.random() < WRONG_SIDE:
            direction = rng.standard_normal(2)
            point[1:] += direction / np.linalg.norm(direction) * (depth + 1.0) / steps[1:]
        point[1:] += rng.normal(0, min(JITTER_MM, 0.6 * radius), 2) / steps[1:]
        point = np.clip(point, 0, np.array(self.mask.shape) - 1)
        z, y, x = point.tolist()
        return (z, y, x), radius, is_adding


def make_noisy(target: Floats, rng: np.random.Generator) -> Floats:
    """Return logits of somebody who is right in the main: used before the network has learned."""
    rough = gaussian_filter(rng.standard_normal((SIDE,) * 3), 1.5)
    return np.asarray(6 * (target - 0.5) + 2.5 * rough / rough.std(), np.float32)


def fill_circle(episode: Episode) -> Floats:
    """Return logits that a plain sphere would give."""
    logits = 8 * (1 - episode.cube.away)
    return logits if episode.is_adding else -logits


def start_mask(world: World, start: str, rng: np.random.Generator) -> Bools:
    """Return a mask that a reader may start from."""
    reference, spacing = world.reference, world.spacing_mm
    if start == "nothing":
        return np.zeros_like(reference)
    inside = distance_transform_edt(reference, spacing)
    outside = distance_transform_edt(~reference, spacing)
    size = float(inside.max())
    at_least = max(spacing[1:])
    if start == "dilated":
        return np.asarray(outside <= max(at_least, rng.uniform(0.15, 0.4) * size))
    if start == "eroded":
        return np.asarray(inside > max(at_least, rng.uniform(0.15, 0.5) * size))
    if start == "shifted":
        off = rng.standard_normal(3) * (0.5, 1, 1)
        off *= max(at_least, rng.uniform(0.2, 0.6) * size) / np.linalg.norm(off) / spacing
        if reference.shape[0] == 1:
            off[0] = 0
        return np.asarray(shift(inside - outside, off, order=1, mode="nearest") > 0)
    if start == "half":
        return _cut_half(reference, spacing, rng)
    return _add_balls(reference, spacing, outside, size, rng, is_leak=start == "leak")


def _cut_half(reference: Bools, spacing: Spacing, rng: np.random.Generator) -> Bools:
    """Return what lies on one side of a plane: three to seven tenths of the lesion."""
    voxels = np.argwhere(reference)
    direction = rng.standard_normal(3)
    side = ((voxels - voxels.mean(axis=0)) * spacing) @ direction
    half = np.zeros_like(reference)
    half[tuple(voxels[side > np.quantile(side, rng.uniform(0.3, 0.7))].T)] = True
    return half


def _add_balls(
    reference: Bools,
    spacing: Spacing,
    outside: NDArray[np.float64],
    size: float,
    rng: np.random.Generator,
    *,
    is_leak: bool,
) -> Bools:
    """Return the lesion with a ball at its edge, or with one to three balls around it."""
    at_least = max(spacing[1:])
    grids = np.ogrid[tuple(slice(n) for n in reference.shape)]
    mask = reference.copy()
    reach = 0.5 * size + at_least if is_leak else 1.5 * size
    shell = np.argwhere((outside > 0) & (outside < reach))
    for _ in range(1 if is_leak else int(rng.integers(1, 4))):
        if not len(shell):
            break
        centre = shell[rng.integers(len(shell))]
        radius = max(at_least, size * rng.uniform(0.3, 0.9))
        away = sum(
            ((grid - c) * step) ** 2 for grid, c, step in zip(grids, centre, spacing, strict=True)
        )
        mask |= away <= radius**2
    return mask


def _choose_world(worlds: list[World], rng: np.random.Generator) -> World:
    """Return a world: two in five are sarcomas; features, sign, size and dimension vary."""
    share = rng.random()
    kind = "sarcoma" if share < 0.42 else "own" if share < 0.62 else "second"
    chosen = [world for world in worlds if world.kind.startswith(kind)]
    world = chosen[int(rng.integers(len(chosen)))]
    features, noise, reference = world.features, world.noise, world.reference
    if len(noise) > 1 and rng.random() < 0.4:
        number = int(rng.integers(2))
        features, noise = features[number : number + 1], noise[number : number + 1]
    if rng.random() < 0.25:
        features = -features
    scale = float(np.exp(rng.uniform(np.log(0.5), np.log(1.8))))
    z, y, x = (step * scale for step in world.spacing_mm)
    if rng.random() < 0.3:
        counts = reference.sum(axis=(1, 2))
        enough = np.flatnonzero(counts >= max(12, 0.3 * counts.max()))
        if enough.size:
            number = int(rng.choice(enough))
            features = features[:, number : number + 1]
            reference = reference[number : number + 1]
    return World(world.kind, features, noise, reference, (z, y, x))
