"""How far a faster way of running a network is from the exact one, voxel by voxel."""

from dataclasses import dataclass
from typing import Any, Final

import torch

_STEPS: Final = 2
"""Steps of half precision within which two outputs count as a tie. Our choice: sums are rounded to
half precision tile by tile, and a rounding that falls the other way moves each output by one."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """Of `voxels` on the model's grid, how many have another label, and how many of these are ties.

    A tie is a voxel whose two best exact outputs lie within two steps of half precision.
    """

    voxels: int
    differing: int
    ties: int

    @property
    def only_ties(self) -> bool:
        """Whether every voxel that differs is a tie."""
        return self.differing == self.ties


def agreement(exact: Any, other: Any) -> Agreement:
    """Return how two half-precision outputs ``(heads, a, b, c)`` of labels (not regions) agree."""
    differing = ties = 0
    for one, two in zip(exact.movedim(1, 0), other.movedim(1, 0), strict=True):
        apart = one.float().argmax(dim=0) != two.float().argmax(dim=0)
        differing += int(apart.sum())
        best = one.float().topk(2, dim=0).values[:, apart]
        ties += int((best[0] - best[1] <= _STEPS * _compute_step(best[0].abs())).sum())
    return Agreement(int(exact[0].numel()), differing, ties)


def _compute_step(value: Any) -> Any:
    """Return the distance of neighbouring half-precision numbers at a magnitude.

    11 bits of fraction: 2^(exponent - 10) for normal numbers, 2^-24 below 2^-14.
    """
    exponent = torch.floor(torch.log2(value.clamp_min(2.0**-14)))
    return 2.0 ** (exponent - 10)
