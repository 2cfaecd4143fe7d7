"""One stroke of evidence: what it needs, taken where the mask is edited, and what it does to it."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.box import Box
from napari_mamamia.core.edits import Action, Brush, Voxel
from napari_mamamia.smartpaint.brush.features import FeatureImages
from napari_mamamia.smartpaint.evidence.marks import hold_voxels

WINDOW: Final = (1.6, 4.0)
"""A stroke changes nothing farther from its path than 1.6 radii and 4 mm."""

_SAMPLED_MM: Final = 9.0  # beyond the window, where surroundings are looked at


@dataclass(frozen=True, slots=True, eq=False)
class StrokeWork:
    """All that settling a stroke needs; nobody else changes its arrays.

    Parameters
    ----------
    images
        What it looks at; read, never changed.
    brush
        Tool `Tool.EVIDENCE`, with action, radius, label and `whole`.
    path
        Places of the pointer, in voxel coordinates, at least one.
    box
        The voxels that are looked at.
    labels
        uint8 of the box's shape, as they were before the stroke.
    words
        uint16 of the box's shape: marks of the brush's label before the stroke.
    locked
        Labels that the stroke may not paint over.
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
    """What a stroke makes of its box: new `labels` uint8 and `words` uint16, both of its shape.

    Parameters
    ----------
    alike
        0 (lesion and surroundings look the same to the stroke) to 1 (they share no value).
    notes
        Plain sentences for the reader.
    """

    box: Box
    labels: NDArray[np.uint8]
    words: NDArray[np.uint16]
    alike: float = 1.0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Preview:
    """What a stroke would about make of its label: bool of the box's shape, found coarsely."""

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
    """Take what a stroke needs out of the whole `labels` and `words`, as copies.

    It runs in the thread that edits; `settle_stroke` and `preview_stroke` run anywhere.
    """
    spacing = images.case.grid.spacing_mm
    reach = WINDOW[0] * brush.radius_mm + WINDOW[1] + _SAMPLED_MM
    places = np.array(path)
    low = np.floor(places.min(axis=0) - reach / np.array(spacing)).astype(int)
    high = np.ceil(places.max(axis=0) + reach / np.array(spacing)).astype(int) + 1
    stop = np.clip(high, 0, labels.shape)
    start = np.minimum(np.clip(low, 0, None), stop)
    (z0, y0, x0), (z1, y1, x1) = start.tolist(), stop.tolist()
    box = Box((z0, y0, x0), (z1, y1, x1))
    part = box.slices
    return StrokeWork(images, brush, path, box, labels[part].copy(), words[part].copy(), locked)


def settle_stroke(work: StrokeWork) -> SettledStroke:
    """Return what the stroke makes of its box; equal work gives equal bits."""
    covered = _find_covered(work)
    labels, words = work.labels.copy(), work.words.copy()
    if work.brush.action is Action.ADD:
        labels[covered & ~np.isin(labels, list(work.locked))] = work.brush.label
    else:
        labels[covered & (labels == work.brush.label)] = 0
    hold_voxels(words, covered, work.brush.action)
    return SettledStroke(work.box, labels, words)


def preview_stroke(work: StrokeWork) -> Preview:
    """Return about what `settle_stroke` will make of the label, in a tenth of its time."""
    return Preview(work.box, settle_stroke(work).labels == work.brush.label)


def _find_covered(work: StrokeWork) -> NDArray[np.bool_]:
    covered = np.zeros(work.box.shape, np.bool_)
    spacing = work.images.case.grid.spacing_mm
    for place in work.path:
        z, y, x = (
            ((np.arange(a, b) - p) * s) ** 2
            for a, b, p, s in zip(work.box.start, work.box.stop, place, spacing, strict=True)
        )
        covered |= z[:, None, None] + y[:, None] + x <= work.brush.radius_mm**2
    return covered
