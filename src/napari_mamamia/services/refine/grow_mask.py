"""Grow the edited mask in 3-D from outlines, and merge the grown region into the mask."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import LabelMap
from napari_mamamia.core.edits import Edit, standing_rows
from napari_mamamia.core.grid import Grid
from napari_mamamia.services.refine.outlines import OUTLINE_STEP, outlined_slices
from napari_mamamia.smartpaint.brush.features import FeatureImages
from napari_mamamia.smartpaint.evidence.regrow import grow_again
from napari_mamamia.smartpaint.grow.grow import AT_LIMIT, Grown
from napari_mamamia.smartpaint.grow.start import Outline
from napari_mamamia.smartpaint.session.session import EditingSession

GROW_STEP: Final = "grow"
GROW_AGAIN: Final = f"{GROW_STEP} (again)"
TIGHTEN: Final = f"{GROW_STEP} (to edges)"
EDGE_MM: Final = 3.0
"""Distance in mm by which `TIGHTEN` may move an edge, at least 1.5 voxels.

Source: docs/methods/growth.md.
"""
_FARTHER: Final = 1.5


@dataclass(frozen=True, slots=True, eq=False)
class GrownBefore:
    """The voxels that the previous growth added to the mask, and the step of that growth."""

    step: Edit
    box: Box
    added: NDArray[np.bool_]


class GrowthKind(StrEnum):
    """The kind of evidence from which a label is grown."""

    OUTLINES = "outlines"
    EVIDENCE = "evidence"
    CLICK = "click"


def choose_growth(live: EditingSession) -> GrowthKind:
    """Return the kind of evidence from which the session's label is grown.

    A label that consists only of outlines and growth is grown from its outlines. A label with other
    evidence is grown from all evidence, and an empty label from a click.
    """
    label, steps = live.label, steps_of(live)
    is_started = bool((live.start_labels.crop == label).any())
    is_painted = any(step.stroke is not None for step in steps)
    others = {step.tool for step in steps if step.stroke is None}
    planes = outlined_slices(steps, label)
    if is_started or is_painted or not others <= {OUTLINE_STEP, GROW_STEP}:
        return GrowthKind.EVIDENCE
    if seeds_of(live.labels, label, planes):
        return GrowthKind.OUTLINES
    # Only growth from a click creates a lesion without a stroke or an outline of its own.
    is_grown = GROW_STEP in others and any((plane == label).any() for plane in live.labels)
    return GrowthKind.EVIDENCE if is_grown else GrowthKind.CLICK


def steps_of(live: EditingSession) -> tuple[Edit, ...]:
    """Return the steps that made the current lesion, including steps of the whole mask."""
    steps = live.steps
    return tuple(steps[row - 1] for row in standing_rows(steps[: live.position], live.label))


def farther_mm(grown: Grown, grid: Grid) -> float | None:
    """Return a larger radius in mm for a region that reached its limit, or None for other regions.

    The radius is 1.5 times half the region's longest side, rounded to whole mm.
    """
    if not any(AT_LIMIT in note for note in grown.notes):
        return None
    sides = (n * mm for n, mm in zip(grown.box.shape, grid.spacing_mm, strict=True))
    return float(round(_FARTHER * max(sides) / 2))


def lay_grown(
    labels: NDArray[np.uint8], label: int, grown: Grown, grid: Grid
) -> tuple[Box, NDArray[np.bool_]]:
    """Return a box, and the label's mask in it after the newly grown region was inserted."""
    box = grown.box.union(Box.around(labels == label))
    return box, _cut_mask(grown.box, grown.mask, box, grid)


def seeds_of(
    labels: NDArray[np.uint8], label: int, planes: Sequence[tuple[int, int]]
) -> tuple[Outline, ...]:
    """Return the mask's voxels on each plane as outlines; empty planes are omitted."""
    outlines = []
    for axis, index in planes:
        mask = np.take(labels, index, axis=axis) == label
        if mask.any():
            outlines.append(Outline(axis, index, mask))
    return tuple(outlines)


def grow_from_labels(images: FeatureImages, grid: Grid, labels: NDArray[np.uint8]) -> Grown:
    """Grow or shrink all labelled voxels, such as a kinetic candidate, to the nearest edge.

    `labels` ``(z, y, x)`` must not change during the call. For the other arguments see
    `grow_again`.

    Raises
    ------
    CaseError
        If no voxel is labelled.
    """
    candidate = (labels != 0).view(np.uint8)
    return grow_again(images, grid, candidate, np.zeros(labels.shape, np.uint16), 1)


def merge_grown(
    labels: NDArray[np.uint8], label: int, grown: Grown, before: GrownBefore | None, grid: Grid
) -> tuple[Box, NDArray[np.bool_], NDArray[np.bool_]]:
    """Return a box, the mask in it, and the voxels that the growth adds.

    Existing voxels are kept, except the voxels that the previous growth added (`before`), which the
    new region replaces. A second outline can therefore make the region smaller or larger.
    """
    box = grown.box if before is None else grown.box.union(before.box)
    now = labels[box.slices] == label
    base_mask = now if before is None else now & ~_cut_mask(before.box, before.added, box, grid)
    region = _cut_mask(grown.box, grown.mask, box, grid)
    return box, base_mask | region, region & ~base_mask


def seeds_without_growth(live: EditingSession, before: GrownBefore | None) -> tuple[Outline, ...]:
    """Return the outlines as drawn, without the voxels that the previous growth added.

    On a plane that was outlined after that growth, the outline has already replaced these voxels.
    """
    planes = outlined_slices(steps_of(live), live.label)
    if before is None:
        return seeds_of(live.labels, live.label, planes)
    steps = steps_of(live)
    index = next(k for k, step in enumerate(steps) if step is before.step)
    later = set(outlined_slices(steps[index + 1 :], live.label))
    added = LabelMap(live.grid, before.box, before.added.astype(np.uint8))
    seeds = []
    for seed in seeds_of(live.labels, live.label, planes):
        if (seed.axis, seed.index) in later:
            seeds.append(seed)
            continue
        start, stop = [0, 0, 0], list(live.grid.shape)
        start[seed.axis], stop[seed.axis] = seed.index, seed.index + 1
        box = Box((start[0], start[1], start[2]), (stop[0], stop[1], stop[2]))
        drawn = seed.mask & ~(added.cut(box).squeeze(seed.axis) > 0)
        seeds.append(replace(seed, mask=drawn) if drawn.any() else seed)
    return tuple(seeds)


def recall_growth(live: EditingSession) -> GrownBefore | None:
    """Return the voxels that growth added to a mask of outlines and growth, based on its history.

    Growth therefore continues correctly after the mask was closed, or after a newer growth was
    undone. The result is None for any other mask, or if nothing was grown.
    """
    if choose_growth(live) is not GrowthKind.OUTLINES:
        return None
    steps = live.steps[: live.position]
    changes = list(live.history.differences_to(0))[::-1]
    box = Box.empty()
    for change in changes:
        box = box.union(change.box)
    labels = live.start_labels.dense()
    added, latest = np.zeros(box.shape, np.bool_), None
    standing = set(standing_rows(steps, live.label))
    for number, (step, change) in enumerate(zip(steps, changes, strict=True)):
        if step.label == live.label and number + 1 not in standing:
            continue  # The order is reversed; two equal changes cancel each other.
        before = labels[box.slices] == live.label
        change.flip(labels)
        now = labels[box.slices] == live.label
        planes = outlined_slices(steps[: number + 1], live.label)
        if step.label != live.label:
            added &= now
        elif step.name == OUTLINE_STEP:
            _clear_planes(added, box, outlined_slices((step,), live.label), now)
        elif step.name in (GROW_AGAIN, TIGHTEN):
            added &= now
        else:
            empty = _find_empty(before & ~added, box, planes)
            added = now & ~(before & ~added)
            _clear_planes(added, box, empty, before)
            latest = step
    return None if latest is None else GrownBefore(latest, box, added)


def _clear_planes(
    added: NDArray[np.bool_], box: Box, planes: Sequence[tuple[int, int]], drawn: NDArray[np.bool_]
) -> None:
    """Return the added voxels without the drawn voxels on some planes."""
    for axis, index in planes:
        row = index - box.start[axis]
        if 0 <= row < box.shape[axis]:
            added.swapaxes(0, axis)[row] &= ~drawn.swapaxes(0, axis)[row]


def _find_empty(
    mask: NDArray[np.bool_], box: Box, planes: Sequence[tuple[int, int]]
) -> tuple[tuple[int, int], ...]:
    return tuple(
        (axis, index)
        for axis, index in planes
        if not 0 <= index - box.start[axis] < box.shape[axis]
        or not mask.swapaxes(0, axis)[index - box.start[axis]].any()
    )


def without_outlines(
    box: Box, added: NDArray[np.bool_], outlines: Sequence[Outline]
) -> NDArray[np.bool_]:
    """Return the voxels that growth added in a box, without the reader's own outlines."""
    out = added.copy()
    for outline in outlines:
        index = outline.index - box.start[outline.axis]
        if 0 <= index < box.shape[outline.axis]:
            plane = tuple(box.slices[a] for a in range(3) if a != outline.axis)
            out.swapaxes(0, outline.axis)[index] &= ~_swap_plane(outline.mask[plane], outline.axis)
    return out


def _swap_plane(plane: NDArray[np.bool_], axis: int) -> NDArray[np.bool_]:
    return plane.T if axis == 2 else plane


def _cut_mask(box: Box, mask: NDArray[np.bool_], wanted: Box, grid: Grid) -> NDArray[np.bool_]:
    cut: NDArray[np.bool_] = LabelMap(grid, box, mask).cut(wanted).astype(np.bool_)
    return cut
