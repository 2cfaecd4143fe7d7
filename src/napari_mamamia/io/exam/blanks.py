"""Find incomplete planes: an interrupted copy leaves zeros."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.errors import FormatError
from napari_mamamia.io.dicom.remedies import leave_out
from napari_mamamia.io.dicom.slices import Slice

_MOST_SHARE: Final = 0.25
"""Largest share of a plane's rows that may be blank at its end in only one phase (our choice).

The limit is far above the change of the edge of a body between phases.
"""
_BAND: Final = 16
"""Number of rows compared at once."""


def blank_tails(array: NDArray[Any]) -> NDArray[np.intp]:
    """Return, for each plane of (z, y, x), the number of rows at its end with one value."""
    return np.array([_blank_tail(plane) for plane in array], dtype=np.intp)


def _blank_tail(plane: NDArray[Any]) -> int:
    """Return the number of rows at the end of (y, x) that contain only the last value."""
    n_rows, last = len(plane), plane[-1, -1]
    for end in range(n_rows, 0, -_BAND):
        differs = (plane[max(end - _BAND, 0) : end] != last).any(axis=1)
        if differs.any():
            return n_rows - end + int(np.argmax(differs[::-1]))
    return n_rows


def require_values(stacks: Sequence[Sequence[Slice]], tails: Sequence[NDArray[np.intp]]) -> None:
    """Raise `FormatError` for an incomplete plane that is complete in another phase.

    Parameters
    ----------
    stacks
        The planes of each phase.
    tails
        The result of `blank_tails` for each phase.
    """
    least = np.minimum.reduce(list(tails))
    for index, (stack, tail) in enumerate(zip(stacks, tails, strict=True)):
        n_rows = stack[0].shape[0]
        broken = np.flatnonzero(tail - least > _MOST_SHARE * n_rows)
        if len(broken):
            plane, most = stack[int(broken[0])], int(tail[broken[0]])
            rows = (
                f"{n_rows} rows hold one value"
                if most >= n_rows
                else f"last {most} of {n_rows} rows are blank"
            )
            raise FormatError(
                f"expected values in all rows of {plane.name}, as in other phases, but "
                f"its {rows} (as in {len(broken)} of the {len(stack)} slices of phase {index} that "
                "were read), as after an interrupted copy or a failed scan: copy the files "
                "again, or "
                "leave the phase out",
                remedies=leave_out([stack], stacks),
            )
