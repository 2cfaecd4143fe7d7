"""Masks that a reader may start from, made of a scene's reference or by growth, and true outlines.

Each is the same for every tool and every hand. Where growth refuses, the mask is empty.
"""

import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import distance_transform_edt, gaussian_filter
from scipy.ndimage import shift as move

from napari_mamamia.core.box import Box
from napari_mamamia.core.errors import MamamiaError
from napari_mamamia.metrics.overlap import dice
from napari_mamamia.smartpaint.evidence import outlined
from napari_mamamia.smartpaint.grow.click import grow_from_click
from napari_mamamia.smartpaint.grow.grow import Grown
from napari_mamamia.smartpaint.grow.prompts import grow_from_box
from napari_mamamia.smartpaint.grow.start import Outline
from refining.scenes import Scene

OUTLINE_MM = 1.2
"""Standard deviation of a hasty outline's error; 0.8 where outlines are said to be true."""
TRUE_OUTLINE_MM = 0.8
FURTHER = (0.5, -0.5, 0.85)
"""Where the second to fourth outlines lie: shares of the way from the first, the largest, slice to
the last (above 0) or first (below 0) slice of the lesion."""

Bools = NDArray[np.bool_]


def signed_distance(scene: Scene) -> NDArray[np.float64]:
    """Return the distance in mm to the reference's edge, above 0 inside."""
    inside = distance_transform_edt(scene.reference, scene.spacing_mm)
    outside = distance_transform_edt(~scene.reference, scene.spacing_mm)
    return np.asarray(inside - outside)


def at_least_a_voxel(scene: Scene, mm: float) -> float:
    """Return `mm`, or one voxel within the slice where that is more, as in PET."""
    return max(mm, *scene.spacing_mm[1:])


def start_empty(scene: Scene) -> Bools:
    """Return nothing."""
    return np.zeros(scene.reference.shape, dtype=np.bool_)


def start_outlined(scene: Scene) -> Bools:
    """Return one outline of the largest slice, grown."""
    return grown_mask(scene, lambda: grow_outlines(scene, 1, OUTLINE_MM))


def start_clicked(scene: Scene) -> Bools:
    """Return what grows from a click on the deepest voxel."""
    place = np.unravel_index(int(signed_distance(scene).argmax()), scene.reference.shape)
    point = tuple(float(n) for n in place)
    return grown_mask(scene, lambda: grow_from_click(scene.images, scene.case.grid, point))


def start_boxed(scene: Scene) -> Bools:
    """Return what grows in the reference's box."""
    box = Box.around(scene.reference)
    return grown_mask(scene, lambda: grow_from_box(scene.images, scene.case.grid, box))


def start_shifted(scene: Scene) -> Bools:
    """Return the reference 3 mm off within the slices."""
    mm = at_least_a_voxel(scene, 3.0)
    voxels = np.array([0.0, 0.6 * mm, 0.8 * mm]) / scene.spacing_mm
    return np.asarray(move(signed_distance(scene), voxels, order=1, mode="nearest") > 0)


def start_dilated(scene: Scene) -> Bools:
    """Return the reference grown by 2 mm."""
    outside = distance_transform_edt(~scene.reference, scene.spacing_mm)
    return np.asarray(outside <= at_least_a_voxel(scene, 2.0))


def start_halved(scene: Scene) -> Bools:
    """Return the half on one side of the middle, along the longer axis of the slices."""
    box = Box.around(scene.reference)
    extents = [n * s for n, s in zip(box.shape[1:], scene.spacing_mm[1:], strict=True)]
    axis = 1 + int(np.argmax(extents))
    middle = np.argwhere(scene.reference)[:, axis].mean()
    along = np.arange(scene.reference.shape[axis]) <= middle
    half = along.reshape([-1 if a == axis else 1 for a in range(3)])
    return scene.reference & half


def start_leaking(scene: Scene) -> Bools:
    """Return the reference with a ball of a quarter of it, where the image is most like it."""
    radius = max(at_least_a_voxel(scene, 3.0), (0.25 * scene.volume_ml * 238.7) ** (1 / 3))
    signed = signed_distance(scene)
    post = scene.images.in_box(Box.whole(scene.reference.shape))[0]
    unlike = np.abs(post - np.median(post[scene.reference]))
    smooth = gaussian_filter(unlike, [radius / 2 / s for s in scene.spacing_mm])
    # The ball's middle lies just outside, so that about two thirds of it are wrong.
    shell = (signed < -0.2 * radius) & (signed > -0.2 * radius - 1.5 * max(scene.spacing_mm[1:]))
    z, y, x = np.unravel_index(int(np.where(shell, smooth, np.inf).argmin()), smooth.shape)
    apart = (
        ((np.arange(n) - c) * s) ** 2
        for n, c, s in zip(smooth.shape, (z, y, x), scene.spacing_mm, strict=True)
    )
    near_z, near_y, near_x = apart
    ball = near_z[:, None, None] + near_y[:, None] + near_x <= radius**2
    return np.asarray(scene.reference | ball)


STARTS: dict[str, Callable[[Scene], Bools]] = {
    "empty": start_empty,
    "outline": start_outlined,
    "click": start_clicked,
    "box": start_boxed,
    "shifted": start_shifted,
    "dilated": start_dilated,
    "half": start_halved,
    "leak": start_leaking,
}


# -------------------------------------------------------------------- growth


def draw_outlines(scene: Scene, n_outlines: int, error_mm: float) -> list[Outline]:
    """Return outlines of a hand that is off by `error_mm` (standard deviation, along the edge)."""
    first = int(scene.reference.sum(axis=(1, 2)).argmax())
    box = Box.around(scene.reference)
    ends = (box.start[0], box.stop[0] - 1)
    places = [first]
    for share in FURTHER:
        end = ends[1] if share > 0 else ends[0]
        places.append(round(first + abs(share) * (end - first)))
    chosen = list(dict.fromkeys(places))[:n_outlines]
    return [Outline(0, k, _draw_outline(scene, k, error_mm)) for k in chosen]


def _draw_outline(scene: Scene, index: int, error_mm: float) -> Bools:
    flat, spacing = scene.reference[index], scene.spacing_mm[1:]
    if not flat.any():  # between two parts
        return flat
    signed = distance_transform_edt(flat, spacing) - distance_transform_edt(~flat, spacing)
    rough = np.random.default_rng([5, index]).standard_normal(flat.shape)
    rough = gaussian_filter(rough, [4.0 / s for s in spacing])
    outline = np.asarray(signed + error_mm * rough / rough.std() > 0)
    return outline if outline.any() else flat


def grow_outlines(scene: Scene, n_outlines: int, error_mm: float = TRUE_OUTLINE_MM) -> Grown:
    """Return what grows from so many outlines."""
    outlines = [one for one in draw_outlines(scene, n_outlines, error_mm) if one.mask.any()]
    return outlined.grow_outlines(scene.images, scene.case.grid, outlines)


def grown_mask(scene: Scene, growing: Callable[[], Grown]) -> Bools:
    """Return a region in the scene's shape; empty where it could not be grown."""
    mask = np.zeros(scene.reference.shape, dtype=np.bool_)
    try:
        grown = growing()
    except MamamiaError as error:
        print(f"  {scene.name}: grows nothing: {error}")
        return mask
    mask[grown.box.slices] = grown.mask
    return mask


def run_growth(scene: Scene) -> list[tuple[float, float]]:
    """Return Dice after one, two, three and four true outlines, drawn and grown in turn.

    With each comes the time of the processor in s. Fewer slices: fewer outlines.
    """
    n_slices = len({one.index for one in draw_outlines(scene, 4, TRUE_OUTLINE_MM)})
    runs = []
    for n in range(1, n_slices + 1):
        begun = time.process_time()
        mask = grown_mask(scene, lambda n=n: grow_outlines(scene, n))
        runs.append((dice(scene.reference, mask), time.process_time() - begun))
    return runs
