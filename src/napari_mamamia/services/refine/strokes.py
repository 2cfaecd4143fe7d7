"""The effect of a SmartPaint stroke as shown in the window: voxels, volume and advice."""

from dataclasses import dataclass
from math import pi
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.box import Box
from napari_mamamia.core.edits import Action, Brush, Voxel
from napari_mamamia.core.grid import Grid
from napari_mamamia.smartpaint.evidence.marks import unpack_marks
from napari_mamamia.smartpaint.evidence.stroke import SettledStroke, StrokeWork, settle_stroke
from napari_mamamia.smartpaint.session.evidence_stroke import KeptStroke, keep_stroke
from napari_mamamia.smartpaint.session.session import EditingSession

_MM3_PER_ML: Final = 1000.0
_LITTLE: Final = 0.05
"""Fraction of the brush sphere's volume below which a stroke is a small change. Our choice."""

_SPECK: Final = 0.2
"""Fraction of the brush sphere's volume below which a first stroke is a tiny lesion. Our choice."""

LARGER_ADVICE: Final = "Make the circle a little larger than the tumour, and press again."
WHOLE_ADVICE: Final = (
    "The change is small. If the edge is wrong all around, hold Shift and press, which changes "
    "the whole lesion."
)
NO_CHANGE: Final = (
    "No voxel changed. Press again at the same point, because a repeated stroke has more weight."
)
NOTHING_THERE: Final = "Your mask has no voxels at this point."
_OTHER: Final = (
    "Lesion {other} is at this point and is not changed. To change this lesion, "
    "choose it under Paints."
)


@dataclass(frozen=True, slots=True, eq=False)
class StrokeChange:
    """The voxels that a stroke added and removed, as boolean arrays in its box, and advice.

    Parameters
    ----------
    where
        The first point (z, y, x) of the stroke in mm from the array's corner.
    volume_mm3
        The volume that the stroke added or removed, which is never negative.
    """

    box: Box
    added: NDArray[np.bool_]
    removed: NDArray[np.bool_]
    brush: Brush
    where: tuple[float, float, float]
    volume_mm3: float
    text: str


def settle_kept(work: StrokeWork) -> KeptStroke:
    """Return a stroke's result without forbidden changes, and its change in compressed form."""
    return keep_stroke(work, settle_stroke(work))


def describe_stroke(
    work: StrokeWork, settled: SettledStroke, labels: NDArray[np.uint8], grid: Grid
) -> StrokeChange:
    """Return the effect of a stroke in its box; `labels` is the whole mask after the stroke."""
    label = work.brush.label
    before, now = work.labels == label, labels[work.box.slices] == label
    added, removed = now & ~before, before & ~now
    n_added, n_removed = int(np.count_nonzero(added)), int(np.count_nonzero(removed))
    volume = (n_added + n_removed) * grid.voxel_volume_mm3
    z, y, x = (index * mm for index, mm in zip(work.path[0], grid.spacing_mm, strict=True))
    if n_added or n_removed:
        text = _count_text(n_added, n_removed, volume)
    else:
        is_bare = work.brush.action is Action.ERASE and not before.any()
        text = NOTHING_THERE if is_bare else NO_CHANGE
    other = name_other(labels, work.locked, work.path[0])
    if other:
        text = f"{text} {other}" if n_added or n_removed else other
    elif n_added and not before.any() and volume < _SPECK * _ball_mm3(work.brush):
        text = f"{text} {LARGER_ADVICE}"
    text = " ".join((text, *(f"{note[:1].upper()}{note[1:]}." for note in settled.notes)))
    return StrokeChange(work.box, added, removed, work.brush, (z, y, x), volume, text)


def name_other(labels: NDArray[np.uint8], locked: frozenset[int], point: Voxel) -> str:
    """Return a note that the locked lesion at a point is not changed, or "" without a lesion."""
    place = tuple(
        min(max(round(index), 0), size - 1) for index, size in zip(point, labels.shape, strict=True)
    )
    label = int(labels[place])
    return _OTHER.format(other=label) if label in locked else ""


def held_voxels(live: EditingSession) -> tuple[Box, NDArray[np.bool_], NDArray[np.bool_]]:
    """Return a box, and the voxels in it that the reader's marks fix inside and outside."""
    box = live.state.marked_box(live.label)
    hold = unpack_marks(live.state.words(live.label)[box.slices]).hold
    return box, hold > 0, hold < 0


def list_lesions(live: EditingSession) -> tuple[tuple[int, str], ...]:
    """Return the lesions with voxels, and the painted lesion, as (label, name)."""
    crop = live.labels[Box.around(live.labels).slices]
    most = int(crop.max()) if crop.size else 0
    labels = {value for value in range(1, most + 1) if (crop == value).any()} | {live.label}
    return tuple((value, f"lesion {value}") for value in sorted(labels))


def advise_whole(before: StrokeChange | None, now: StrokeChange) -> bool:
    """Return whether two similar strokes at one point changed little, each within its circle."""
    if before is None or before.brush.whole or now.brush.whole:
        return False
    if (before.brush.action, before.brush.label) != (now.brush.action, now.brush.label):
        return False
    apart = sum((a - b) ** 2 for a, b in zip(before.where, now.where, strict=True)) ** 0.5
    return apart <= now.brush.radius_mm and _is_little(before) and _is_little(now)


def _is_little(change: StrokeChange) -> bool:
    return change.volume_mm3 < _LITTLE * _ball_mm3(change.brush)


def _ball_mm3(brush: Brush) -> float:
    return 4 / 3 * pi * brush.radius_mm**3


def _count_text(n_added: int, n_removed: int, volume_mm3: float) -> str:
    """Return the change as text, such as "+412 voxels, 0.6 ml".

    Examples
    --------
    >>> _count_text(412, 0, 612.0), _count_text(0, 1, 1.5)
    ('+412 voxels, 0.61 ml.', '−1 voxel, <0.01 ml.')
    """
    count = n_added + n_removed
    sign = "+" if n_added else "−"
    millilitres = volume_mm3 / _MM3_PER_ML
    volume = f"{millilitres:.2f}" if millilitres >= 0.005 else "<0.01"
    return f"{sign}{count} voxel{'s' * (count > 1)}, {volume} ml."
