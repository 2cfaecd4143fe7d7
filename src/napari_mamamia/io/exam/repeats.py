"""Planes of an exam that hold the same pixels: one of them was not measured where it stands.

Two measurements never agree in every voxel. Planes that do come of an archive or export that took
slices of one phase for another's, wrote one twice, or moved a stack by one slice.
"""

import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.errors import CaseError
from napari_mamamia.io.dicom.pixels import read_plane, sample_planes
from napari_mamamia.io.dicom.slices import Slice
from napari_mamamia.io.dicom.ways import in_brackets, leave_out, use_series
from napari_mamamia.io.volumes.inflate import crc32_of

__all__ = ["repeat_doubt"]

_LEAST_SHOWN: Final = 0.01
"""Share of a plane that lies above its lowest value, below which it is blank: masked planes and
padding are alike and were not taken from one another. Our own choice."""
_MOST_LISTED: Final = 3


@dataclass(frozen=True, slots=True, order=True)
class _Place:
    """A plane of an exam: phase and slice, from 0."""

    phase: int
    slice: int


def repeat_doubt(stacks: Sequence[Sequence[Slice]], name: str) -> CaseError | None:
    """Return the doubt where two planes of an exam hold the same pixels, None where none do.

    Some rows of each plane are compared first, and whole planes only where these agree. Blank
    planes do not count.
    """
    pairs = _equal_planes(stacks)
    if not pairs:
        return None
    phases = sorted({place.phase for pair in pairs for place in pair})
    names = " and ".join(dict.fromkeys(stacks[k][0].series_name for k in phases))
    return CaseError(
        f"expected new pixels in each slice of each phase of {name}, but {_told(pairs)} ({names}), "
        "as when an archive or export takes slices of one phase for "
        "those of another: copy the exam from the scanner again, leave out the phase that is "
        "wrong, or name all that count to take them as they are"
        + in_brackets(
            *(leave_out([stacks[k] for k in gone], stacks) for gone in _suspects(pairs)),
            use_series(stacks),
        )
    )


def _equal_planes(stacks: Sequence[Sequence[Slice]]) -> list[tuple[_Place, _Place]]:
    """Return the planes that are equal to an earlier one, each behind it."""
    places = [_Place(k, z) for k, stack in enumerate(stacks) for z in range(len(stack))]
    pieces = {at: stacks[at.phase][at.slice] for at in places}
    shown = [at for at in places if not pieces[at].is_padding]
    samples = sample_planes([pieces[at] for at in shown])
    alike = _doubled(zip(samples, shown, strict=True))
    whole = ((_digest(read_plane(pieces[at])), at) for group in alike for at in group)
    equal = _doubled((digest, at) for digest, at in whole if digest is not None)
    return sorted((group[0], other) for group in equal for other in group[1:])


def _doubled(found: Iterable[tuple[Any, _Place]]) -> list[list[_Place]]:
    groups: dict[Any, list[_Place]] = {}
    for key, at in found:
        groups.setdefault(key, []).append(at)
    return [group for group in groups.values() if len(group) > 1]


def _digest(plane: NDArray[Any]) -> tuple[object, ...] | None:
    """Return what only equal planes share, None for a blank one."""
    if np.count_nonzero(plane > plane.min()) < _LEAST_SHOWN * plane.size:
        return None
    values = np.ascontiguousarray(plane)
    return plane.shape, plane.dtype.str, crc32_of(values), zlib.adler32(values.data)


def _suspects(pairs: Sequence[tuple[_Place, _Place]]) -> list[list[int]]:
    """Return the phases that may be the wrong ones: each that is in all pairs, else the later."""
    phases = sorted({place.phase for pair in pairs for place in pair}, reverse=True)
    common = [[k] for k in phases if all(k in {a.phase, b.phase} for a, b in pairs)]
    return common or [sorted({b.phase for _, b in pairs})]


def _told(pairs: Sequence[tuple[_Place, _Place]]) -> str:
    """Return how many slices are equal, by the phases that they stand in."""
    counts = Counter((a.phase, b.phase) for a, b in pairs)
    told = []
    for (a, b), count in counts.most_common(_MOST_LISTED):
        own = [other.slice for one, other in pairs if (one.phase, other.phase) == (a, b)]
        where = f"{own[0]}" if count == 1 else f"{own[0]} to {own[-1]}"
        told.append(
            f"{count} slice(s) of phase {b} (number {where}, from 0) repeat those of "
            + ("another place in it" if a == b else f"phase {a}")
        )
    rest = len(counts) - _MOST_LISTED
    return ", ".join(told) + (f", and so on for {rest} more pairs of phases" if rest > 0 else "")
