"""Whether each volume of a study was measured by itself: whether it carries noise of its own.

Two scans have independent noise; what was computed from scans (subtraction, maximum, mean, map,
smoothed, moved or registered copy) repeats theirs. So the fine grain of each volume is explained
by that of the others, block by block: what cannot be explained is its own. Any function of other
volumes leaves the noise of a real scan unexplained, so the features can be as many as needed.
Measured on real exams and on what was computed from them: table in docs/methods/dicom_import.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.block_means import block_means
from napari_mamamia.io.exam.noise_blocks import Block, find_groups
from napari_mamamia.io.exam.noise_fit import MANY, unexplained

__all__ = ["SLAB", "Borrowed", "find_borrowed", "own_noise"]

SLAB: Final = 7
"""Neighbouring planes of each volume that are looked at: a registered copy may lie some off."""
_Array = NDArray[np.float32]
_Groups = Sequence[Sequence[Block]]
_BODY: Final = 0.1
_QUIET: Final = 3
"""Of the blocks of air and of body the quietest third counts: least anatomy, most noise."""
_OWN: Final = 0.55
"""Below this share of own noise a volume repeats others: computed ones keep below .5, real scans
of breasts above .92."""
_INDEPENDENT: Final = 0.75
"""From this share on volumes are scans of their own; the others can be judged by them."""
_FAINT: Final = 0.5
"""A volume with less than this share of the noise that the others have is smoothed or averaged:
.08 to .46 where it is, above .9 in real scans of breasts. A receiver of less gain makes less noise
too, and less signal."""
_GAIN: Final = (0.5, 2.0)
_ODD: Final = 1.33
"""Of volumes that explain each other, the one with so many times more or less noise than usual was
computed: averaged, sharpened, or a map."""
_OPPOSITE: Final = -0.3
"""`_likeness` of two volumes below which one was subtracted: -.5 in theory, -.41 where values were
cut at zero, in a block of 192 voxels with a deviation of .07. View sharing makes it positive."""


@dataclass(frozen=True, slots=True)
class Borrowed:
    """Volumes without noise of their own, in ascending order.

    `is_certain` where the others have noise of their own, by which these can be judged; else there
    is too little noise, or too much that all volumes have in common, to tell. `instead` are volumes
    of which any one may be the one without, in place of that in `volumes`: without any of them the
    others have noise of their own.
    """

    volumes: tuple[int, ...] = ()
    is_certain: bool = True
    instead: tuple[int, ...] = ()


def find_borrowed(slabs: _Array, steps: Sequence[float]) -> Borrowed:
    """Return which volumes repeat the noise of others.

    Those that had another one subtracted are. Where the others have noise of their own without one
    certain volume, that is the one: of several such the one with more or less noise than usual,
    or if there is none, the last in time. Else the last in time that repeats others is taken away,
    until the rest have noise of their own.

    Parameters
    ----------
    slabs
        Some neighbouring planes of each volume, in order of time: (volume, z, y, x).
    steps
        The difference of two neighbouring values of each volume, as stored.
    """
    groups = find_groups(slabs, steps)
    if not groups:
        return Borrowed(is_certain=False)
    gains = _gains(slabs)
    gone = _turned(groups, len(slabs))
    kept = [k for k in range(len(slabs)) if k not in gone]
    shares = np.zeros(len(slabs))
    while len(kept) > 1:
        doubtful = [k for k in kept if shares[k] < _OWN]  # with fewer others a share only grows
        shares[doubtful] = _shares(groups, doubtful, kept, gains)
        repeated = [k for k in doubtful if shares[k] < _OWN]
        if not repeated:
            is_clear = not gone or bool(_shares(groups, kept, kept, gains).max() >= _INDEPENDENT)
            return Borrowed(tuple(sorted(gone)) if is_clear else (), is_clear)
        if len(kept) == 2:
            return Borrowed(is_certain=False)
        keys = _keys(groups, repeated, kept, gains)
        if keys:
            first, *instead = _by_guilt(groups, keys, kept, gains)
            return Borrowed(tuple(sorted([*gone, first])), instead=() if gone else tuple(instead))
        n_away = 1 if len(slabs) <= MANY else -(-len(repeated) // 2)
        gone += repeated[-n_away:]
        kept = [k for k in kept if k not in gone]
    return Borrowed(tuple(sorted(gone)))


def own_noise(slabs: _Array, steps: Sequence[float]) -> NDArray[np.float64]:
    """Return the share of each volume's noise that no other volume explains, 0 .. 1; NaN: none.

    Takes the same as `find_borrowed`.
    """
    groups = find_groups(slabs, steps)
    if not groups:
        return np.full(len(slabs), np.nan)
    every = list(range(len(slabs)))
    return _shares(groups, every, every, _gains(slabs))


def _shares(
    groups: _Groups, wanted: Sequence[int], kept: Sequence[int], gains: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the share of own noise of some volumes among `kept`: in air or body, where it is more.

    A volume of much less noise than the others has none of its own, unless its signal is less
    too; what is brighter needs no more noise for that.
    """
    found = np.zeros(len(wanted))
    for blocks in groups:
        shares = np.array([[unexplained(block, k, kept) for k in wanted] for block in blocks])
        faint = _loudness(blocks, kept, np.minimum(gains, 1.0))[list(wanted)] < _FAINT
        own = np.median(shares, axis=0)
        own[faint & (len(kept) > 2)] = 0.0
        found = np.maximum(found, own)
    return found


def _loudness(
    blocks: Sequence[Block], kept: Sequence[int], gains: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the power of each volume's noise over the usual one of `kept`, by their gains."""
    levels = np.array([block.levels for block in blocks]) / gains**2
    usual = np.median(levels[:, list(kept)], axis=1, keepdims=True)
    loudness: NDArray[np.float64] = np.median(levels / np.maximum(usual, 1e-9), axis=0)
    return loudness


def _gains(slabs: _Array) -> NDArray[np.float64]:
    """Return how bright the body of each volume is over the usual one, .5 .. 2.

    Contrast changes less than half of the body.
    """
    coarse = np.stack([block_means(one) for one in slabs])
    usual = np.median(coarse, axis=0)
    body = usual > _BODY * float(np.percentile(usual, 99))
    if not body.any():
        return np.ones(len(slabs))
    gains = np.median(coarse[:, body] / usual[body], axis=1).astype(np.float64)
    limited: NDArray[np.float64] = np.clip(gains, *_GAIN)
    return limited


def _keys(
    groups: _Groups, repeated: Sequence[int], kept: Sequence[int], gains: NDArray[np.float64]
) -> list[int]:
    """Return the volumes without any one of which all of `repeated` have noise of their own."""
    if len(kept) > MANY:
        return []
    return [
        one
        for one in kept
        if _is_key(groups, [k for k in repeated if k != one], [k for k in kept if k != one], gains)
    ]


def _is_key(
    groups: _Groups, doubtful: Sequence[int], rest: Sequence[int], gains: NDArray[np.float64]
) -> bool:
    if doubtful and _shares(groups, doubtful, rest, gains).min() < _OWN:
        return False
    return bool(_shares(groups, rest, rest, gains).max() >= _INDEPENDENT)


def _by_guilt(
    groups: _Groups, keys: Sequence[int], kept: Sequence[int], gains: NDArray[np.float64]
) -> list[int]:
    """Return that of `keys` which was computed, and behind it those that may be it instead.

    Contrast in most of a body looks like gain, so noise is odd only where it is with and without.
    """
    every = [block for blocks in groups for block in blocks]
    both = [_loudness(every, kept, one) for one in (gains, np.ones_like(gains))]
    odd = [
        k
        for k in keys
        if all(loud[k] >= _ODD for loud in both) or all(loud[k] <= 1 / _ODD for loud in both)
    ]
    return odd if len(odd) == 1 else sorted(keys, reverse=True)


def _turned(groups: _Groups, n_volumes: int) -> list[int]:
    """Return volumes with the noise of an earlier one, its sign turned: that one was subtracted."""
    blocks = [block for group in groups for block in group]
    found = []
    for later in range(1, n_volumes):
        if min(_likeness(blocks, earlier, later) for earlier in range(later)) < _OPPOSITE:
            found.append(later)
    return found


def _likeness(blocks: Sequence[Block], a: int, b: int) -> float:
    """Return how much more often than not two volumes deviate to one side, -1 .. 1, where quiet.

    An edge counts by its few voxels, not by its height: contrast turns edges too.
    """
    pairs = np.array([block.levels[[a, b]] for block in blocks])
    pairs[pairs <= 0] = np.inf
    quiet = (pairs <= _QUIET * pairs.min(axis=0)).all(axis=1) & np.isfinite(pairs).all(axis=1)
    told = [one for one, is_quiet in zip(blocks, quiet, strict=True) if is_quiet]
    if not told:
        return 0.0
    return float(np.mean([np.sign(one.own[a]) * np.sign(one.own[b]) for one in told]))
