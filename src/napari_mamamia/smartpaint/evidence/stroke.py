"""One evidence stroke: a copy of its input, and its result.

A stroke is evidence that voxels are missing from the mask or should not belong to it. Near the
stroke, the mask changes to the region that all strokes, the image and the current mask support. A
stroke has these guarantees, which tests check:

* No voxel farther than `WINDOW` from its path changes, unless the stroke acts on the whole lesion.
* An adding stroke never removes voxels, and an erasing stroke never adds voxels.
* A voxel erased inside a circle remains erased until an adding circle covers it.
* The same labels, marks and stroke give bit-identical results.
"""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.box import Box
from napari_mamamia.core.edits import Action, Brush, Tool, Voxel
from napari_mamamia.smartpaint.brush.features import FeatureImages
from napari_mamamia.smartpaint.evidence.marks import unpack_marks
from napari_mamamia.smartpaint.evidence.scene import (
    Scene,
    coarsen_scene,
    measure_distance,
    refine_mask,
    thin_path,
)
from napari_mamamia.smartpaint.evidence.settle import (
    ALIKE,
    Settled,
    mark_stroke,
    settle_scene,
)
from napari_mamamia.smartpaint.evidence.settle_learned import SAMPLED, settle_learned
from napari_mamamia.smartpaint.learned.network import load_network

VERSION: Final = 6
"""Version of the rules, which increases whenever results change and is recorded in the journal."""

WINDOW: Final = (1.6, 4.0)
"""Distance from the path within which a stroke changes voxels: 1.6 radii plus 4 mm."""

_SAMPLED_MM: Final = 9.0  # beyond the window, where surroundings are sampled
_PREVIEWED: Final = 3  # presses of the learned brush along a path, in its preview
_WHOLE_MM: Final = 6.0  # around a lesion, the range of a stroke for the whole of it
# Share of the lesion that a stroke for the whole of it may change beyond its circle: adding,
# erasing.
_MOST_CHANGE: Final = {True: 1.0, False: 0.5}


@dataclass(frozen=True, slots=True, eq=False)
class StrokeWork:
    """The input for settling a stroke, with its own copies of the arrays.

    Parameters
    ----------
    images
        The images to compare, which are never changed.
    brush
        The smart brush with its action, radius, label and `whole`.
    path
        The pointer positions in voxel coordinates; at least one.
    box
        The voxels that are examined.
    labels
        The labels in the box before the stroke, uint8.
    words
        The marks of the brush's label in the box before the stroke, uint16.
    locked
        The labels that the stroke must not overwrite.
    """

    images: FeatureImages
    brush: Brush
    path: tuple[Voxel, ...]
    box: Box
    labels: NDArray[np.uint8]
    words: NDArray[np.uint16]
    locked: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class SettledStroke:
    """The result of a stroke in its box: the new `labels` (uint8) and `words` (uint16).

    Parameters
    ----------
    apart
        The difference between lesion and surroundings, from 0 (they look the same) to 1 (they have
        no common values).
    notes
        Sentences for the reader.
    weights
        SHA-256 of the weights of the network that proposed the result, or "".
    """

    box: Box
    labels: NDArray[np.uint8]
    words: NDArray[np.uint16]
    apart: float = 1.0
    notes: tuple[str, ...] = ()
    weights: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Preview:
    """The approximate result of a stroke for its label, as a boolean array in its box."""

    box: Box
    mask: NDArray[np.bool_]


def prepare_stroke(
    images: FeatureImages,
    labels: NDArray[np.uint8],
    words: NDArray[np.uint16],
    brush: Brush,
    path: tuple[Voxel, ...],
    locked: frozenset[int] = frozenset(),
) -> StrokeWork:
    """Copy the input of a stroke from the `labels` and `words` of the whole volume.

    This function must be called in the thread that edits; `settle_stroke` and `preview_stroke` can
    run in any thread. Positions that are not finite are ignored; the box of a stroke outside the
    image is empty.
    """
    spacing = images.case.grid.spacing_mm
    corners = tuple(thin_path(path, spacing, brush.radius_mm))
    sampled = window_mm(brush) + _SAMPLED_MM
    if brush.tool is Tool.LEARNED:
        sampled = max(window_mm(brush), SAMPLED * brush.radius_mm)
    box = _box_of_path(corners, sampled, spacing, labels.shape)
    if brush.whole and not box.is_empty:
        touched = _box_of_path(corners, brush.radius_mm, spacing, labels.shape)
        lesion = _follow_lesion(labels, brush.label, touched)
        margin = [int(np.ceil((_WHOLE_MM + _SAMPLED_MM) / step)) for step in spacing]
        box = box.union(lesion.grown(margin, labels.shape)) if not lesion.is_empty else box
    slices = box.slices
    return StrokeWork(
        images, brush, corners, box, labels[slices].copy(), words[slices].copy(), locked
    )


def settle_stroke(work: StrokeWork) -> SettledStroke:
    """Return the result of the stroke in its box; identical input gives identical results.

    Source: docs/methods/brush.md.
    """
    if work.box.is_empty:
        return SettledStroke(work.box, work.labels, work.words)
    scene = _make_scene(work)
    settled = _settle(work, scene)
    if scene.whole_mm is not None and (settled.apart < ALIKE or _goes_too_far(scene, settled)):
        scene = replace(scene, whole_mm=None)
        settled = _settle(work, scene)
    is_adding = work.brush.action is Action.ADD
    labels = work.labels.copy()
    changed = settled.mask != scene.mask
    labels[changed] = work.brush.label if is_adding else 0
    words = mark_stroke(scene, settled, work.words)
    is_near = work.brush.whole and scene.whole_mm is None and bool(scene.mask.any())
    notes = _list_notes(settled, is_near=is_near)
    weights = load_network().sha256 if _is_learned(work.brush, scene) else ""
    return SettledStroke(work.box, labels, words, settled.apart, notes, weights)


def preview_stroke(work: StrokeWork) -> Preview:
    """Return an approximate result of `settle_stroke`, which takes a tenth of the time."""
    if work.box.is_empty:
        return Preview(work.box, np.zeros(work.box.shape, np.bool_))
    scene = _make_scene(work)
    if _is_learned(work.brush, scene):
        return Preview(work.box, _settle(work, scene, _PREVIEWED).mask)
    coarse, factors = coarsen_scene(scene)
    settled = settle_scene(coarse, n_rounds=1)
    mask = refine_mask(settled.mask, factors, scene.mask.shape)
    # Blocks never remove what an adding stroke keeps, nor add what an erasing one leaves out.
    mask = mask | scene.mask if scene.is_adding else mask & scene.mask
    return Preview(work.box, mask & scene.window | scene.mask & ~scene.window)


def _is_learned(brush: Brush, scene: Scene) -> bool:
    """Return whether the network computes a stroke; it never computes one for a whole lesion."""
    return brush.tool is Tool.LEARNED and scene.whole_mm is None


def _settle(work: StrokeWork, scene: Scene, most_presses: int | None = None) -> Settled:
    if not _is_learned(work.brush, scene):
        return settle_scene(scene)
    corners = (np.array(work.path) - np.array(work.box.start)).tolist()
    path = tuple((z, y, x) for z, y, x in corners)
    return settle_learned(scene, path, load_network(), most_presses)


def window_mm(brush: Brush) -> float:
    """Return the distance in mm from the stroke's path within which voxels may change.

    Examples
    --------
    >>> window_mm(Brush(radius_mm=10.0))
    20.0
    """
    share, more = WINDOW
    return share * brush.radius_mm + more


def _make_scene(work: StrokeWork) -> Scene:
    spacing = work.images.case.grid.spacing_mm
    away = measure_distance(work.box, work.path, spacing)
    mask = work.labels == work.brush.label
    window = away <= window_mm(work.brush)
    features = work.images.in_box(work.box)
    finite = np.isfinite(features[0])
    for feature in features[1:]:
        finite &= np.isfinite(feature)
    if not finite.all():
        features[:, ~finite] = 0.0
    return Scene(
        features=features,
        finite=finite,
        noise=work.images.noise,
        spacing_mm=spacing,
        mask=mask,
        closed=_find_closed(work),
        marks=unpack_marks(work.words),
        away=away,
        window=window,
        radius_mm=work.brush.radius_mm,
        window_mm=window_mm(work.brush),
        # Without a lesion a stroke cannot act on the whole of it.
        whole_mm=_WHOLE_MM if work.brush.whole and mask.any() else None,
        is_adding=work.brush.action is Action.ADD,
    )


def _goes_too_far(scene: Scene, settled: Settled) -> bool:
    """Return whether a stroke for the whole lesion would change too much outside its circle."""
    changed = np.count_nonzero((settled.mask != scene.mask) & (scene.away > scene.radius_mm))
    return bool(changed > _MOST_CHANGE[scene.is_adding] * np.count_nonzero(scene.mask))


def _find_closed(work: StrokeWork) -> NDArray[np.bool_]:
    if not work.locked:
        return np.zeros(work.box.shape, np.bool_)
    return np.isin(work.labels, list(work.locked))


def _list_notes(settled: Settled, *, is_near: bool) -> tuple[str, ...]:
    notes = []
    if is_near:
        notes.append(
            "the image does not guide a stroke for the whole lesion here, so the stroke acted "
            "only near its circle"
        )
    if settled.apart < ALIKE:
        notes.append(
            "lesion and surroundings look similar here, so the stroke acted almost like a plain "
            "sphere"
        )
    return tuple(notes)


def _box_of_path(
    path: tuple[Voxel, ...],
    reach_mm: float,
    spacing_mm: tuple[float, float, float],
    shape: tuple[int, ...],
) -> Box:
    if not path:
        return Box.empty()
    places, reach = np.array(path), reach_mm / np.array(spacing_mm)
    start = np.clip(np.floor(places.min(axis=0) - reach), 0, shape).astype(int)
    stop = np.clip(np.ceil(places.max(axis=0) + reach) + 1, start, shape).astype(int)
    (z0, y0, x0), (z1, y1, x1) = start.tolist(), stop.tolist()
    return Box((z0, y0, x0), (z1, y1, x1))


def _follow_lesion(labels: NDArray[np.uint8], label: int, box: Box) -> Box:
    """Return a box that contains all voxels of the label connected with its voxels in `box`.

    The box grows at each face that the label touches, which avoids searching the whole volume.
    """
    if box.is_empty or not (labels[box.slices] == label).any():
        return Box.empty()
    start, stop = list(box.start), list(box.stop)
    is_growing = True
    while is_growing:
        is_growing = False
        for axis, size in enumerate(labels.shape):
            for end in (0, 1):
                at_border = start[axis] == 0 if end == 0 else stop[axis] == size
                if at_border:
                    continue
                face = [slice(a, b) for a, b in zip(start, stop, strict=True)]
                outermost = start[axis] if end == 0 else stop[axis] - 1
                face[axis] = slice(outermost, outermost + 1)
                if (labels[tuple(face)] == label).any():
                    if end == 0:
                        start[axis] = max(start[axis] - 4, 0)
                    else:
                        stop[axis] = min(stop[axis] + 4, size)
                    is_growing = True
    (z0, y0, x0), (z1, y1, x1) = start, stop
    return Box((z0, y0, x0), (z1, y1, x1))
