"""Derive the mask of a case from several readings by a consensus rule.

This module only creates the bytes of a file; `ReviewSession.decide` stores `content`, `rule`,
`parents` and `how` with the decision.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from napari_mamamia.annotations.fuse import majority_vote, staple
from napari_mamamia.core.box import Box
from napari_mamamia.core.case import LabelMap
from napari_mamamia.core.choices import TieRule
from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.grid import Grid, require_same_grid
from napari_mamamia.features.review.core.review import ConsensusRule
from napari_mamamia.features.review.io.store import EventStore
from napari_mamamia.features.review.rules.views import ReadingView
from napari_mamamia.features.review.services.compare import load_stored_labels
from napari_mamamia.io.data_set.volumes import write_labels
from napari_mamamia.io.files.own_paths import own_folder
from napari_mamamia.io.workspace.workspace import MASK_SUFFIX

STAPLE_MARGIN_MM: Final = 10.0
"""Margin around the masks, in mm, of the voxels that STAPLE uses.

STAPLE's prior depends on the field of view. The crop is therefore fixed and reported. Our choice;
`docs/methods/review.md` shows its effect.
"""
STAPLE_READERS: Final = 3
"""Minimum number of readers for STAPLE, which cannot resolve differences of two readers."""

_TIES: Final = {
    ConsensusRule.MAJORITY_BACKGROUND: TieRule.BACKGROUND,
    ConsensusRule.MAJORITY_FOREGROUND: TieRule.FOREGROUND,
    ConsensusRule.MAJORITY_THIRD: TieRule.FIRST,
}
Masks = list[NDArray[np.uint8]]
How = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class ConsensusMask:
    """A derived mask.

    Parameters
    ----------
    rule
        The consensus rule.
    labels
        The mask, 0 and 1; None if no reading has a mask.
    content
        Its file as stored (NIfTI, compressed); None with `labels`.
    parents
        SHA-256 of the source masks, in the order of the readings.
    how
        Parameters as text, by name: readers, ties, crop, STAPLE's estimates of each reader.
    """

    rule: ConsensusRule
    labels: LabelMap | None
    content: bytes | None
    parents: tuple[str, ...]
    how: How


def make_consensus(
    store: EventStore,
    readings: Sequence[ReadingView],
    rule: ConsensusRule,
    third: ReadingView | None = None,
) -> ConsensusMask:
    """Return the mask derived from the readings of one case by a rule.

    A reading without a mask votes for background everywhere. A majority is more than half of the
    readings. `union` takes voxels of any reading and `intersection` voxels of all readings.
    `staple` estimates the truth from the voxels within 10 mm of any mask.

    Parameters
    ----------
    store
        The study.
    readings
        Two or more; three or more for STAPLE.
    rule
        The consensus rule.
    third
        Reading that breaks the ties of `majority-third-reader` if the number of readings is even:
        one of the readings if there are four or more, or a further reading.

    Raises
    ------
    CaseError
        If there are too few readings, or ties remain unresolved.
    FormatError, GridMismatchError
        If a mask is missing, changed or damaged, or two masks are on different grids.
    """
    voters = _order_voters(readings, rule, third)
    labels_read = [load_stored_labels(store, voter.mask) for voter in voters]
    who = [(voter.reader, labels) for voter, labels in zip(voters, labels_read, strict=True)]
    parents = tuple(dict.fromkeys(voter.mask for voter in voters if voter.mask))
    how = (("readers", ", ".join(voter.reader for voter in voters)),)
    drawn = [(reader, labels) for reader, labels in who if labels is not None]
    if not drawn:
        return ConsensusMask(rule, None, None, (), how)
    grid = drawn[0][1].grid
    for reader, labels in drawn[1:]:
        require_same_grid(grid, labels.grid, f"the mask of {drawn[0][0]}", f"that of {reader}")
    box = Box.empty()
    for _, labels in drawn:
        box = box.union(labels.box)
    box = _widen_box(box, rule, grid)
    masks = [_cut_mask(labels, box) for labels in labels_read]
    fused, more = _fuse_masks(masks, rule, [voter.reader for voter in voters], grid)
    joint = LabelMap(grid, box, fused.astype(np.uint8))
    return ConsensusMask(rule, joint, _make_file(joint), parents, (*how, *more))


def _order_voters(
    readings: Sequence[ReadingView], rule: ConsensusRule, third: ReadingView | None
) -> list[ReadingView]:
    """Return the voting readings, the tie-breaking reading first."""
    least = STAPLE_READERS if rule is ConsensusRule.STAPLE else 2
    if len(readings) < least:
        raise CaseError(
            f"expected {least} readings or more for the rule {rule}, but found {len(readings)}: "
            + (
                "with two readers use one of the readings, or edit"
                if rule is ConsensusRule.STAPLE
                else "wait for another reading"
            )
        )
    if rule is not ConsensusRule.MAJORITY_THIRD or len(readings) % 2:
        return list(readings)
    place = None if third is None else (third.reader, third.occasion, third.round)
    others = [
        reading
        for reading in readings
        if (reading.reader, reading.occasion, reading.round) != place
    ]
    if third is None or (len(others) < len(readings) and len(readings) == 2):
        raise CaseError(
            f"expected a third reader who breaks the ties of {len(readings)} readings, but found "
            f"{'nobody' if third is None else 'one of the two'}: name one, or use another rule"
        )
    return [third, *others]


def _widen_box(box: Box, rule: ConsensusRule, grid: Grid) -> Box:
    if rule is not ConsensusRule.STAPLE or box.is_empty:
        return box
    margin = tuple(ceil(STAPLE_MARGIN_MM / step) for step in grid.spacing_mm)
    return box.grown(margin, grid.shape)


def _cut_mask(labels: LabelMap | None, box: Box) -> NDArray[np.uint8]:
    if labels is None:
        return np.zeros(box.shape, np.uint8)
    return (labels.cut(box) > 0).astype(np.uint8)


def _fuse_masks(
    masks: Masks, rule: ConsensusRule, readers: Sequence[str], grid: Grid
) -> tuple[NDArray[np.bool_], How]:
    if not masks[0].size:
        return masks[0].astype(np.bool_), ()
    if rule is ConsensusRule.STAPLE:
        return _estimate_truth(masks, readers, grid)
    if rule is ConsensusRule.UNION:
        return np.any(masks, axis=0), ()
    if rule is ConsensusRule.INTERSECTION:
        return np.all(masks, axis=0), ()
    tie = _TIES[rule]
    who = f"as {readers[0]}" if tie is TieRule.FIRST else tie.value
    how = (("ties", "none are possible" if len(masks) % 2 else who),)
    return majority_vote(masks, tie) > 0, how


def _estimate_truth(
    masks: Masks, readers: Sequence[str], grid: Grid
) -> tuple[NDArray[np.bool_], How]:
    """Return STAPLE's mask; voxels outside the crop are not part of the estimate."""
    away = ndimage.distance_transform_edt(~np.any(masks, axis=0), sampling=grid.spacing_mm)
    near = away <= STAPLE_MARGIN_MM
    flat = [mask[near].astype(np.bool_).reshape(1, 1, -1) for mask in masks]
    truth = staple(flat)
    mask = np.zeros(near.shape, np.bool_)
    mask[near] = truth.mask.ravel()
    how = [("crop", f"voxels within {STAPLE_MARGIN_MM:g} mm of the union")]
    for reader, p, q in zip(readers, truth.sensitivities, truth.specificities, strict=True):
        how += [(f"sensitivity of {reader}", f"{p:.6f}"), (f"specificity of {reader}", f"{q:.6f}")]
    return mask, tuple(how)


def _make_file(labels: LabelMap) -> bytes:
    with own_folder() as folder:
        path = folder / f"consensus{MASK_SUFFIX}"
        write_labels(labels, path)
        return path.read_bytes()
