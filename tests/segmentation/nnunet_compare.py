"""Differences between a faster run of a network and the exact one, voxel by voxel."""

from dataclasses import dataclass
from typing import Any, Final

import torch

_STEPS: Final = 2
"""Steps of half precision within which two outputs count as a tie. Our choice: sums are rounded to
half precision tile by tile, and a rounding in the other direction moves each output by one step.
"""


@dataclass(frozen=True, slots=True)
class Agreement:
    """Number of `voxels` on the model's grid, of differing labels, and of ties among these.

    A tie is a voxel whose two best exact outputs are within two steps of half precision.
    """

    voxels: int
    differing: int
    ties: int

    @property
    def only_ties(self) -> bool:
        """Whether every differing voxel is a tie."""
        return self.differing == self.ties


def agreement(exact: Any, other: Any) -> Agreement:
    """Return the agreement of two half-precision label outputs ``(heads, a, b, c)``."""
    differing = ties = 0
    for one, two in zip(exact.movedim(1, 0), other.movedim(1, 0), strict=True):
        apart = one.float().argmax(dim=0) != two.float().argmax(dim=0)
        differing += int(apart.sum())
        best = one.float().topk(2, dim=0).values[:, apart]
        ties += int((best[0] - best[1] <= _STEPS * _compute_step(best[0].abs())).sum())
    return Agreement(int(exact[0].numel()), differing, ties)


def _compute_step(value: Any) -> Any:
    """Return the distance between neighbouring half-precision numbers at a magnitude.

    11 bits of fraction: 2^(exponent - 10) for normal numbers, 2^-24 below 2^-14.
    """
    exponent = torch.floor(torch.log2(value.clamp_min(2.0**-14)))
    return 2.0 ** (exponent - 10)
