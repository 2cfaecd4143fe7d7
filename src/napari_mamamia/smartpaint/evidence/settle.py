"""The mask after a stroke: a cut of minimum energy in a window, from stroke, image and mask."""

from dataclasses import dataclass
from math import prod
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import label

from napari_mamamia.core.box import Box
from napari_mamamia.smartpaint.evidence import marks
from napari_mamamia.smartpaint.evidence.appearance import (
    choose_lattice,
    make_bins,
    take_samples,
    take_values,
    weigh_image,
)
from napari_mamamia.smartpaint.evidence.scene import Scene, coarsen_scene, find_near, refine_mask
from napari_mamamia.smartpaint.grow.cut import Energy, relax

N_ROUNDS: Final = 3
_N_ITERATIONS: Final = 12  # of the cut in each round
_CORE: Final = (1.5, 0.35)  # mm and radii that are held whatever the image shows; the lesser
_INSIST: Final = (
    0.35,
    0.6,
    0.8,
    1.0,
)  # radii that are held after 0, 1, 2, 3 strokes without effect
_REPEATED: Final = 0.25
"""Fraction of requested voxels that earlier strokes requested in vain, from which a stroke repeats.

With circles of equal size, a stroke repeats the last one up to a distance of about a third of a
radius.
"""
# Core that a reader certainly means, however unsteady the hand: the greater of a share of the
# radius, and of the radius minus so many mm.
_MEANT: Final = (0.5, 0.8, 1.5)
_HEARD: Final = (
    0.6  # of the voxels asked for there: if fewer change, the image is wrong, and they are held
)
ALIKE: Final = 0.5
"""Non-overlapping fraction of lesion and surroundings below which the image does not guide a
stroke.
"""

# A circle of at least this radius in mm is obeyed there if less than this share of it changes.
# Source: docs/methods/brush.md, "Guarantees of a stroke".
_UNGUIDED_MM: Final = 3.0
_HEARD_UNGUIDED: Final = 0.8
# A larger window is solved on a quarter of its voxels first.
_LARGE: Final = 100_000
_COARSER: Final = 4
# If the inside and the surroundings of a first circle share more than this, it may lie within the
# lesion.
_WITHIN: Final = 0.5
_SURE: Final = 0.5  # radii that the first estimate includes
_PRIOR: Final = (0.3, 3.0)  # log odds of the current mask, near the stroke and at the window's edge
# Thickness in radii (at least this many mm) of the shell that a stroke for the whole lesion
# changes.
_SHELL: Final = (1.0, 3.0)
_EMPTY_FAR: Final = 0.6  # at the window's edge, if there is no mask yet
_WHOLE_PRIOR: Final = {True: 0.3, False: 0.7}  # adding, erasing, for the whole lesion
_SEEN: Final = (
    0.25  # log odds for each stroke that could have changed a voxel and left it unchanged
)
_SMOOTHNESS: Final = 2.0  # cost of a face between two voxels of the finest spacing, in log odds
_THRESHOLD: Final = np.float32(0.5)
_CRUMB: Final = 0.1  # of the largest part: a smaller part that the eraser cut off is removed
_TOUCHING: Final = np.ones((3, 3, 3), np.bool_)

Bools = NDArray[np.bool_]
Floats = NDArray[np.float32]
Piece = tuple[slice, slice, slice]


@dataclass(frozen=True, slots=True, eq=False)
class Settled:
    """The mask after a stroke, the fixed voxels and the window, as arrays of the scene's shape.

    `apart` is the difference of lesion and surroundings as returned by `weigh_image`.
    """

    mask: Bools
    hold: NDArray[np.int8]
    window: Bools
    apart: float


def settle_scene(scene: Scene, n_rounds: int = N_ROUNDS) -> Settled:
    """Return the mask that results from a stroke."""
    sign = 1 if scene.is_adding else -1
    window = _widen_window(scene)
    window &= ~scene.closed
    core = find_core(scene) & ~scene.closed
    hold = hold_core(scene, core)
    if not core.any() or not window.any():
        return Settled(scene.mask.copy(), hold, window, 1.0)
    inner = Box.around(window).grown((1, 1, 1), window.shape)
    slices = inner.slices
    # Contiguous arrays: differences along rows and planes are then computed in long runs.
    features = np.ascontiguousarray(scene.features[(slice(None), *slices)])
    # One allocation for all: the system provides large memory in large pages.
    memory = np.empty((7, features[0].size), np.float32)
    edges = _weigh_edges(scene, features, memory[3:])
    energy, apart = _make_energy(scene, window, hold, slices, edges, memory[:4]), 0.0
    free = energy.lowest < energy.highest
    free &= scene.finite[slices]
    values = take_values(features, free)
    del features
    n_coarse = n_rounds - 1 if np.prod(inner.shape) > _LARGE else 0
    mask = _estimate_coarsely(scene, n_coarse) if n_coarse else _estimate_mask(scene)
    bins = make_bins(scene)
    lattice = choose_lattice(scene)
    pull = energy.evidence[free]
    membership = mask[slices].astype(np.float32)
    # One feature cannot distinguish a lesion from all tissue beyond the window: it is too varied.
    is_first = scene.is_adding and not scene.mask.any() and len(scene.noise) > 1
    is_within = False
    for number in range(n_coarse, n_rounds + 1):
        if number == n_rounds:
            unheard = find_unheard(scene, mask, apart)
            if not unheard.any():
                break
            core |= unheard
            hold[unheard] = sign
            for bound in (energy.lowest, energy.highest):
                bound[unheard[slices]] = float(scene.is_adding)
            if scene.whole_mm is not None:
                # An image that is wrong at the stroke is not followed out of sight.
                window &= scene.window
                _keep_mask(energy, scene.mask[slices], ~window[slices])
        samples = take_samples(scene, mask, hold, lattice, slices, is_within=is_within)
        image, apart = weigh_image(values, samples, bins, scene.noise, is_adding=scene.is_adding)
        if is_first and not is_within and apart < _WITHIN:
            is_within = True
            samples = take_samples(scene, mask, hold, lattice, slices, is_within=True)
            image, apart = weigh_image(values, samples, bins, scene.noise, is_adding=True)
        image += pull
        energy.evidence[free] = image
        membership = relax(energy, membership, _N_ITERATIONS)
        mask = scene.mask.copy()
        mask[slices] = membership >= _THRESHOLD
    return Settled(accept_changes(scene, mask, core, hold, window, inner), hold, window, apart)


def _estimate_mask(scene: Scene) -> Bools:
    """Return the current mask, changed in the voxels that the stroke certainly requests."""
    sure = scene.away <= max(_SURE * scene.radius_mm, 1e-6)
    return (scene.mask | sure) if scene.is_adding else (scene.mask & ~sure)


def _estimate_coarsely(scene: Scene, n_rounds: int) -> Bools:
    """Return an approximate result of the stroke, computed on a quarter of the voxels.

    The first rounds only estimate the appearance of lesion and surroundings, for which every second
    voxel is sufficient in a large window.
    """
    coarse, factors = coarsen_scene(scene, scene.mask.size // _COARSER)
    mask = refine_mask(settle_scene(coarse, n_rounds).mask, factors, scene.mask.shape)
    return (mask | scene.mask) if scene.is_adding else (mask & scene.mask)


def find_unheard(scene: Scene, mask: Bools, apart: float) -> Bools:
    """Return the requested voxels if too few of them changed, otherwise no voxel.

    If too few changed, image and reader disagree, and the reader has priority. Only the middle of a
    circle is requested, unless the image does not distinguish lesion and surroundings; the stroke
    then acts like a plain sphere.
    """
    least, share, unsteady_mm = _MEANT
    meant_mm = max(least * scene.radius_mm, share * scene.radius_mm - unsteady_mm)
    least_heard = _HEARD
    if apart < ALIKE and scene.radius_mm >= _UNGUIDED_MM:
        meant_mm, least_heard = scene.radius_mm, _HEARD_UNGUIDED
    requested = (scene.away <= meant_mm) & (scene.mask != scene.is_adding)
    requested &= ~scene.closed
    n_turned = np.count_nonzero(mask[requested] == scene.is_adding)
    is_heard = n_turned >= least_heard * np.count_nonzero(requested)
    unheard: Bools = np.zeros_like(requested) if is_heard else requested
    return unheard


def _keep_mask(energy: Energy, mask: Bools, where: Bools) -> None:
    energy.lowest[where] = energy.highest[where] = mask[where]


def mark_stroke(scene: Scene, settled: Settled, words: marks.Words) -> marks.Words:
    """Return the marks after a stroke.

    The pull of a circle is full within half its radius and 0 at its edge; later strokes outweigh
    earlier strokes. Voxels that changed are fixed. The count increases in voxels that were
    requested without effect.
    """
    circle = (scene.away <= scene.radius_mm) & ~scene.closed
    left_alone = settled.mask == scene.mask
    left_alone &= settled.window
    left_alone &= ~circle
    out: marks.Words = words + left_alone.astype(np.uint16) * marks.ONE_SEEN
    np.copyto(out, words, where=scene.marks.seen >= marks.MOST_SEEN)
    # Every other change lies in the circle, or in the voxels that it holds.
    touched = circle | (settled.hold != scene.marks.hold)
    slices = Box.around(touched).slices
    circle, before, after, old = (
        circle[slices],
        scene.mask[slices],
        settled.mask[slices],
        scene.marks,
    )
    sign = np.float32(1 if scene.is_adding else -1)
    pull = _pull_circle(scene, slices, old.pull[slices].copy())
    hold = settled.hold[slices].copy()
    np.copyto(hold, int(sign), where=(after != before) & circle)
    in_vain = circle & (after != scene.is_adding)
    count = old.count[slices] * ((old.pull[slices] * sign >= 0) | ~circle)
    count += in_vain
    np.minimum(count, marks.MOST_COUNT, out=count)
    count *= in_vain | ~circle
    seen = old.seen[slices] + left_alone[slices]
    np.minimum(seen, marks.MOST_SEEN, out=seen)
    np.copyto(
        out[slices], marks.pack_marks(marks.Marks(pull, hold, count, seen)), where=touched[slices]
    )
    return out


def _pull_circle(scene: Scene, part: Piece, pull: Floats) -> Floats:
    """Blend the stroke's pull into the previous pull, in place.

    The weight of the stroke is 1 within half of the circle, and 0 outside the circle and in voxels
    that must not change.
    """
    away, closed = scene.away[part], scene.closed[part]
    circle = Box.around(away < scene.radius_mm).slices
    share = away[circle] / np.float32(scene.radius_mm)
    np.subtract(1, share, out=share)
    share *= 2
    np.clip(share, 0, 1, out=share)
    share[closed[circle]] = 0
    inside = pull[circle]
    inside *= 1 - share
    if scene.is_adding:
        inside += share
    else:
        inside -= share
    return pull


def hold_core(scene: Scene, core: Bools) -> NDArray[np.int8]:
    """Return the voxels fixed in a stroke: its core, and marks that its circle keeps."""
    sign = 1 if scene.is_adding else -1
    hold = scene.marks.hold.copy()
    hold[(hold == -sign) & (scene.away <= scene.radius_mm)] = 0
    hold[core] = sign
    return hold


def _widen_window(scene: Scene) -> Bools:
    """Return the voxels that may change: the stroke's window, and the margin of a whole lesion."""
    window = scene.window.copy()
    if scene.whole_mm is None:
        return window
    there = Box.around(scene.mask).slices
    parts, _ = label(scene.mask[there], _TOUCHING)
    touched = np.unique(parts[(scene.away[there] <= scene.radius_mm) & scene.mask[there]])
    if not touched.size:
        return window
    lesion = np.zeros(window.shape, np.bool_)
    lesion[there] = np.isin(parts, touched)
    box = Box.around(lesion)
    margin = [int(np.ceil(scene.whole_mm / s)) for s in scene.spacing_mm]
    slices = box.grown(margin, lesion.shape).slices
    # A shell as thick as the circle: a press into a thin shell does not ask for more.
    shell_mm = max(_SHELL[0] * scene.radius_mm, _SHELL[1])
    if scene.is_adding:
        (near,) = find_near(lesion[slices], scene.spacing_mm, min(scene.whole_mm, shell_mm))
    else:
        (near,) = find_near(~lesion[slices], scene.spacing_mm, shell_mm)
        near &= lesion[slices]
    window[slices] |= near
    return window


def find_core(scene: Scene) -> Bools:
    """Return the voxels that the stroke fixes regardless of the image, at least the nearest voxel.

    Each earlier stroke of the same sign that had no effect enlarges the core, up to the whole
    circle.
    """
    core_mm, nearest_mm = min(_CORE[0], _CORE[1] * scene.radius_mm), scene.away.min() + 1e-6
    core = scene.away <= core_mm
    if nearest_mm > core_mm:
        core |= scene.away <= nearest_mm
    requested = (scene.away <= scene.radius_mm) & (scene.mask != scene.is_adding) & ~scene.closed
    if not requested.any() or not scene.marks.count.any():
        return core
    # At its edge a circle counts but does not pull.
    same = (scene.marks.pull >= 0) if scene.is_adding else (scene.marks.pull <= 0)
    n_ignored = (same * scene.marks.count)[requested]
    n_repeated = int(np.quantile(n_ignored, 1 - _REPEATED, method="lower"))
    if n_repeated:
        core |= scene.away <= _INSIST[n_repeated] * scene.radius_mm
    return core


def _make_energy(
    scene: Scene,
    window: Bools,
    hold: NDArray[np.int8],
    part: Piece,
    edges: tuple[Floats, Floats, Floats],
    memory: Floats,
) -> Energy:
    """Return the energy without the image evidence: marks, current mask, edges and limits.

    The energy is stored in three rows of `memory`; the fourth row is scratch space.
    """
    mask, held, may_change = scene.mask[part], hold[part], window[part]
    evidence, lowest, highest, prior = memory.reshape(4, *mask.shape)
    np.copyto(evidence, scene.marks.pull[part])
    _pull_circle(scene, part, evidence)
    _weigh_mask(scene, part, out=prior)
    np.negative(prior, out=prior, where=~mask)
    evidence += prior
    inside, outside = held > 0, held < 0
    if scene.is_adding:
        inside |= mask
        outside &= ~mask
    else:
        inside &= mask
        outside |= ~mask
    np.copyto(inside, mask, where=~may_change)
    np.copyto(outside, ~mask, where=~may_change)
    np.copyto(highest, ~outside)
    np.copyto(lowest, inside & ~outside)
    return Energy(evidence, edges, lowest, highest)


def _weigh_mask(scene: Scene, part: Piece, out: Floats) -> None:
    near, far = _PRIOR
    if scene.whole_mm is not None:
        np.multiply(scene.marks.seen[part], np.float32(_SEEN), out=out)
        out += np.float32(_WHOLE_PRIOR[scene.is_adding])
    else:
        if not scene.mask.any():
            far = _EMPTY_FAR
        np.subtract(scene.away[part], np.float32(scene.radius_mm), out=out)
        np.maximum(out, 0, out=out)
        out *= np.float32((far - near) / (scene.window_mm - scene.radius_mm))
        out += np.float32(near)
    np.minimum(out, np.float32(far), out=out)


def _weigh_edges(scene: Scene, features: Floats, memory: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the cost of a surface between neighbours along each axis, which is lower at edges.

    `features` is the contiguous part of the scene's features. The costs are stored in the last
    three rows of `memory`; the first row is scratch space.
    """
    spare, *rows = memory
    weights = []
    for axis, row in enumerate(rows):
        along = features.swapaxes(1, axis + 1)
        first, second = (ends.swapaxes(1, axis + 1) for ends in (along[:, :-1], along[:, 1:]))
        shape = first.shape[1:]
        total, step = (flat[: prod(shape)].reshape(shape) for flat in (row, spare))
        if total.size:
            for number, noise in enumerate(scene.noise):
                np.subtract(second[number], first[number], out=step)
                step *= step
                scale = max((2 * noise) ** 2, 2 * float(step.mean(dtype=np.float64)))
                step *= np.float32(1 / (2 * len(scene.noise) * scale))
                if number:
                    total -= step
                else:
                    np.negative(step, out=total)
            np.exp(total, out=total)
        total *= np.float32(_SMOOTHNESS * min(scene.spacing_mm) / scene.spacing_mm[axis])
        weights.append(total)
    return weights[0], weights[1], weights[2]


def accept_changes(
    scene: Scene, mask: Bools, core: Bools, hold: NDArray[np.int8], window: Bools, inner: Box
) -> Bools:
    """Return the mask with only those changes that are connected with the stroke's core."""
    slices = inner.slices
    before, after, core = scene.mask[slices], mask[slices], core[slices]
    changed = (before != after) | core
    there = Box.around(changed).slices
    parts, count = label(changed[there], _TOUCHING)
    stays = np.zeros(count + 1, np.bool_)
    stays[parts[core[there]]] = True
    stays[0] = False
    changed[there] &= stays[parts]
    after = before ^ (changed & (before != after))
    after[core] = scene.is_adding
    if scene.is_adding:
        # A hole that the stroke closed may reach beyond the voxels that it may change.
        holes = find_holes(after)
        if holes.any():
            after |= holes & ~find_holes(before) & (hold[slices] >= 0) & window[slices]
    else:
        after = _drop_fragments(scene, before, after, hold[slices], slices)
    out = scene.mask.copy()
    out[slices] = after
    return out


def find_holes(mask: Bools) -> Bools:
    """Return the voxels enclosed by a mask (6-connected, or 4-connected in a 2-D array).

    Voxels at the border of the array are not enclosed.
    """
    holes = np.zeros(mask.shape, np.bool_)
    box = Box.around(mask)
    flat = tuple(n for n in mask.shape if n > 1)
    if box.is_empty or not flat:
        return holes
    # Enclosed voxels lie in the mask's box, and never at its border.
    there = tuple(image for image, n in zip(box.slices, mask.shape, strict=True) if n > 1)
    plane = mask.reshape(flat)[there]
    parts, count = label(~plane)
    open_parts = np.zeros(count + 1, np.bool_)
    open_parts[0] = True
    for axis in range(plane.ndim):
        for end in (0, -1):
            open_parts[np.unique(parts.take(end, axis))] = True
    holes.reshape(flat)[there] = ~open_parts[parts]
    return holes


def _drop_fragments(
    scene: Scene,
    before: Bools,
    after: Bools,
    held: NDArray[np.int8],
    part: Piece,
) -> Bools:
    """Return the mask without small parts that the eraser cut off, and with cavities filled.

    A part is removed if it is in the window, is smaller than a tenth of the largest part, and has
    no voxel that a reader fixed. A cavity is kept if the reader erased in it.
    """
    holes = find_holes(after) & before
    if holes.any():
        cavities, n_cavities = label(holes)
        stays_open = np.zeros(n_cavities + 1, np.bool_)
        stays_open[np.unique(cavities[held < 0])] = True
        stays_open[0] = True
        after = after | (~stays_open[cavities] & before)
    pieces, n_pieces = label(after, _TOUCHING)
    if n_pieces < 2:
        return after
    sizes = np.bincount(pieces.ravel(), minlength=n_pieces + 1)
    stays = sizes >= _CRUMB * sizes[1:].max()
    stays[np.unique(pieces[(held > 0) & after])] = True
    # A part that was separate before the stroke was not cut off by it.
    stays[np.unique(pieces[~scene.window[part] & after])] = True
    old, _ = label(before, _TOUCHING)
    touched = np.unique(old[before & ~after])
    stays[np.unique(pieces[after & ~np.isin(old, touched)])] = True
    stays[0] = True
    fragments: Bools = ~stays[pieces]
    return after & ~fragments
