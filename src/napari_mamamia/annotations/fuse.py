"""Fuse masks of several readers: by majority, or by STAPLE's estimate of the truth."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.box import Box
from napari_mamamia.core.choices import TieRule
from napari_mamamia.core.errors import CaseError, GridMismatchError
from napari_mamamia.core.progress import report_progress

# Each reader is a bit of a uint16, and there is one row for each of the 2^n patterns.
_MOST_READERS: Final = 16
_MOST_STEPS: Final = 1000
_STEADY: Final = 1e-10
_START: Final = 0.99999
_STEPS_PER_SIGN: Final = 100


@dataclass(frozen=True, slots=True, eq=False)
class Staple:
    """Result of STAPLE: the fused mask and the performance of each reader.

    `mask` has the voxels whose probability is at least 0.5. `sensitivities` and `specificities`
    have a value from 0 to 1 for each reader. `n_steps` is the number of EM steps.
    """

    mask: NDArray[np.bool_]
    sensitivities: tuple[float, ...]
    specificities: tuple[float, ...]
    n_steps: int


def majority_vote(
    labels: Sequence[NDArray[Any]], tie: TieRule = TieRule.BACKGROUND
) -> NDArray[np.uint8]:
    """Return, for each voxel, the label chosen by most readers; 0 is a vote for background.

    Parameters
    ----------
    labels
        One array of whole numbers from 0 to 255 for each reader, in the readers' order; all have
        the same shape.
    tie
        The label of a voxel with a tie for the most votes.

    Raises
    ------
    CaseError, GridMismatchError
        If there are fewer than two readers, or shapes differ.

    Examples
    --------
    >>> readers = [np.array([[[1, 1, 0]]]), np.array([[[1, 0, 0]]])]
    >>> majority_vote(readers, TieRule.FOREGROUND)
    array([[[1, 1, 0]]], dtype=uint8)
    """
    box = _joint_box(labels)
    out = np.zeros(labels[0].shape, np.uint8)
    parts = [np.asarray(label[box.slices]) for label in labels]
    values = sorted({0, *(int(v) for part in parts for v in np.unique(part))})
    votes = np.stack([sum((part == v for part in parts), np.int16(0)) for v in values])
    most = votes == votes.max(axis=0)
    winner = np.array(values)[np.argmax(most, axis=0)]
    tied = most.sum(axis=0) > 1
    if tied.any():
        winner[tied] = _break_ties(tie, values, most[:, tied], [part[tied] for part in parts])
    out[box.slices] = winner
    return out


def staple(masks: Sequence[NDArray[np.bool_]]) -> Staple:
    """Estimate the true mask and the performance of each reader together, with an EM algorithm.

    Voxels that all readers labelled alike share one probability, so EM runs on the patterns of
    labels (at most 2^n for n readers), each with its number of voxels. The result equals that of EM
    over all voxels.
    The prior is the mean share of marked voxels in the whole volume, so it depends on the field of
    view, as in ITK's filter. If no voxel is marked, the mask is empty and the performance is NaN.
    Source: Warfield, Zou, Wells, IEEE TMI 23 (2004) 903, eqs. 14, 18, 19; start (p = q = 0.99999)
    and prior as itk::STAPLEImageFilter, which is the oracle of its test.

    Parameters
    ----------
    masks
        The boolean masks of 2 to 16 readers, which have the same shape.

    Raises
    ------
    CaseError, GridMismatchError
        If there are fewer than two or more than 16 readers, or shapes differ.
    """
    report_progress(0, 1, "Estimating the truth (STAPLE)")
    n = len(masks)
    box = _joint_box(masks)
    if n > _MOST_READERS:
        raise CaseError(
            f"expected at most {_MOST_READERS} readers for STAPLE, but got {n}: omit some readers"
        )
    if box.is_empty:
        return Staple(np.zeros(masks[0].shape, np.bool_), (np.nan,) * n, (np.nan,) * n, 0)
    codes = np.zeros(box.shape, np.uint16)
    for k, mask in enumerate(masks):
        codes |= mask[box.slices].astype(np.uint16) << np.uint16(k)
    counts = np.bincount(codes.ravel(), minlength=1 << n).astype(np.float64)
    # Nobody marked voxels outside the block, but the prior is of the whole volume.
    counts[0] += masks[0].size - codes.size
    marked = ((np.arange(1 << n)[:, None] >> np.arange(n)) & 1).astype(np.bool_)
    chances, rates, steps = _estimate_truth(counts, marked)
    truth = np.zeros(masks[0].shape, np.bool_)
    truth[box.slices] = (chances >= 0.5)[codes]
    p, q = rates
    return Staple(truth, tuple(map(float, p)), tuple(map(float, q)), steps)


def _estimate_truth(
    counts: NDArray[np.float64], marked: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.float64], int]:
    prior = float((counts @ marked).sum()) / (counts.sum() * marked.shape[1])
    rates = np.full((2, marked.shape[1]), _START)
    chances = np.zeros(len(counts))
    for step in range(1, _MOST_STEPS + 1):
        if step % _STEPS_PER_SIGN == 0:
            report_progress(step, _MOST_STEPS, "Estimating the truth (STAPLE)")
        p, q = rates
        true = prior * np.prod(np.where(marked, p, 1 - p), axis=1)
        false = (1 - prior) * np.prod(np.where(marked, 1 - q, q), axis=1)
        chances = np.divide(true, true + false, out=np.zeros_like(true), where=true + false > 0)
        weight, rest = counts * chances, counts * (1 - chances)
        new = np.stack([_compute_shares(weight, marked), _compute_shares(rest, ~marked)])
        moved = float(np.abs(new - rates).max())
        rates = new
        if moved < _STEADY:
            return chances, rates, step
    return chances, rates, _MOST_STEPS


def _compute_shares(weight: NDArray[np.float64], yes: NDArray[np.bool_]) -> NDArray[np.float64]:
    total = float(weight.sum())
    shares: NDArray[np.float64] = (weight @ yes) / total if total else np.zeros(yes.shape[1])
    return shares


def _break_ties(
    tie: TieRule, values: list[int], most: NDArray[np.bool_], readers: list[NDArray[Any]]
) -> NDArray[Any]:
    if tie is TieRule.BACKGROUND:
        return np.zeros(most.shape[1], np.uint8)
    if tie is TieRule.FOREGROUND:
        above = most[1:]  # values[0] is 0; a tie of two labels has at least one that is not
        chosen: NDArray[Any] = np.array(values[1:])[np.argmax(above, axis=0)]
        return chosen
    out = np.zeros(most.shape[1], np.uint8)
    left = np.ones(most.shape[1], np.bool_)
    places = {value: k for k, value in enumerate(values)}
    lookup = np.zeros(max(values) + 1, np.intp)
    lookup[list(places)] = list(places.values())
    for labels in readers:
        holds = left & most[lookup[labels], np.arange(most.shape[1])]
        out[holds] = labels[holds]
        left &= ~holds
    return out


def _joint_box(labels: Sequence[NDArray[Any]]) -> Box:
    if len(labels) < 2:
        raise CaseError(
            f"expected the masks of at least two readers, but got {len(labels)}: add a second "
            "folder of masks"
        )
    box = Box.empty()
    for k, label in enumerate(labels):
        if label.shape != labels[0].shape:
            raise GridMismatchError(
                f"expected all masks to be on the same grid, but reader {k + 1} has shape "
                f"{label.shape} (z, y, x) and the first reader has {labels[0].shape}: export all "
                "masks on the same grid"
            )
        box = box.union(Box.around(label))
    return box
