"""`StrokePath`: equally spaced stamps along a stroke, however the mouse was sampled."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import dist, isfinite
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.box import Box
from napari_mamamia.core.edits import Brush, Sampling, Tool, Voxel
from napari_mamamia.smartpaint.brush.features import FeatureImages
from napari_mamamia.smartpaint.brush.reach import PRESS_DOSE, Spacing
from napari_mamamia.smartpaint.brush.sample import Sample, sample_at

_STEP: Final = (
    0.125  # distance between stamps in radii; our choice: a stroke ends within this of its pointer
)
_SWEEP: Final = 1.5  # a path of so many radii smooths as much as one press; A4, corrections
_SMALLEST_STEP: Final = 0.25  # in voxels of the finest axis, for brushes smaller than a voxel
_ROUNDING: Final = 1e-6  # of a step
FARTHEST_MM: Final = (
    1000.0  # our choice: no exam is that long, so the pointer position must be wrong
)


@dataclass(frozen=True, slots=True)
class Stamp:
    """One deposit of a brush: its position and dose.

    Parameters
    ----------
    centre
        In voxel coordinates.
    amount
        The dose at the centre, without unit.
    sample
        The values that the image is compared with; None measures them around the centre.
    spent
        The dose that the stamp's stroke has deposited so far, to which this stamp is added; None
        for
        a stamp outside a stroke.
    """

    centre: Voxel
    amount: float
    sample: Sample | None = None
    spent: "Spent | None" = field(default=None, compare=False, repr=False)


class Spent:
    """The dose that one stroke has deposited in each voxel so far."""

    def __init__(self) -> None:
        self._box = Box.empty()
        self._dose: NDArray[np.float32] = np.zeros((0, 0, 0), dtype=np.float32)

    def beyond(
        self, dose: NDArray[np.float32], box: Box, shape: tuple[int, int, int]
    ) -> NDArray[np.float32]:
        """Return by how much `dose`, inside `box`, exceeds the dose deposited so far.

        Afterwards the larger of the two counts as deposited. Memory grows with the block of voxels
        that the stroke has covered; a click takes none.
        """
        if self._box.is_empty:
            # Kept without a copy, because `deposit` does not change the dose.
            self._box, self._dose = box, dose
            return dose
        if self._box.union(box) != self._box:
            self._grow_box(box, shape)
        spent = self._dose[_index_within(box, self._box)]
        more = np.subtract(dose, spent)
        np.maximum(more, np.float32(0.0), out=more)
        # A view: this raises the stored dose.
        spent += more
        return more

    def _grow_box(self, box: Box, shape: tuple[int, int, int]) -> None:
        """Make room for `box` and for as much again, so that long strokes rarely copy."""
        union = self._box.union(box)
        room = [n // 2 if n > m else 0 for n, m in zip(union.shape, self._box.shape, strict=True)]
        union = union.grown(room, shape)
        roomy = np.zeros(union.shape, dtype=np.float32)
        roomy[_index_within(self._box, union)] = self._dose
        self._box, self._dose = union, roomy


def _index_within(box: Box, outer: Box) -> tuple[slice, ...]:
    """Return the index that selects `box` in an array of the voxels of `outer`."""
    return tuple(
        slice(a - o, b - o) for a, b, o in zip(box.start, box.stop, outer.start, strict=True)
    )


class StrokePath:
    """Turns pointer positions into stamps at equal distances along the path.

    From the press on there is a stamp at every eighth of a radius (in mm) along the path. Equal
    paths give equal stamps, whether the mouse reported 10 positions on them or 1000. Each stamp
    deposits `PRESS_DOSE`, and a stroke leaves in a voxel the largest dose of any of its stamps. A
    stroke paints what clicks along it would paint, and does not leak more if it goes to and fro.
    Press again to paint further.

    The stamps of a smoothing brush add up: each deposits a twelfth of a press, so that a straight
    stroke smooths along its line as much as a press does.

    Parameters
    ----------
    brush
        Its `sampling` says whether stamps carry the sample of the press.
    spacing_mm
        Of the case's array, (z, y, x).
    images
        The images that a brush with `Sampling.LOCKED` is sampled from at the press; without them
        its
        stamps carry no sample.

    Source: docs/methods/brush.md (``E0 ds / (1.5 r)``, used for smoothing). For painting, the sum
    of such doses along an edge (half-spaces of benchmarks/brush.py, a stroke of 21 mm, r = 10 mm)
    covered 0.82 of the tissue within 8 mm of the stroke, the largest dose 0.99.
    """

    def __init__(
        self, brush: Brush, spacing_mm: Spacing, images: FeatureImages | None = None
    ) -> None:
        self._brush = brush
        self._spacing_mm = spacing_mm
        self._images = images
        self._step_mm = max(_STEP * brush.radius_mm, _SMALLEST_STEP * min(spacing_mm))
        smooths = brush.tool is Tool.SMOOTH
        share = self._step_mm / (_SWEEP * brush.radius_mm) if smooths else 1.0
        self._amount = PRESS_DOSE * min(share, 1.0)
        self._sample: Sample | None = None
        self._spent: Spent | None = None
        self._last: Voxel | None = None
        self._since_stamp_mm = 0.0
        self._length_mm = 0.0
        self._too_far = 0

    @property
    def too_far(self) -> int:
        """How many positions were ignored because they lay a metre or more from the one before."""
        return self._too_far

    @property
    def length_mm(self) -> float:
        """Length of the path so far in mm; 0 for a press."""
        return self._length_mm

    def press(self, point: Voxel) -> tuple[Stamp, ...]:
        """Return the stamp of the press and begin a new path; none if `point` is not finite."""
        self._since_stamp_mm = self._length_mm = 0.0
        self._last = self._sample = None
        self._too_far = 0
        if not all(isfinite(coordinate) for coordinate in point):
            return ()
        self._last = point
        if self._wants_lock and self._images is not None:
            self._sample = sample_at(point, self._brush, self._images, self._spacing_mm)
        self._spent = Spent() if self._brush.tool is Tool.SMARTPAINT else None
        return (Stamp(point, PRESS_DOSE, self._sample, self._spent),)

    def drag(self, point: Voxel) -> tuple[Stamp, ...]:
        """Return the stamps between the previous position and `point`; often none.

        A drag without a press counts as a press. A position that is not finite, or a metre away, is
        ignored.
        """
        if self._last is None:
            return self.press(point)
        if not all(isfinite(coordinate) for coordinate in point):
            return ()
        if dist(self._in_mm(self._last), self._in_mm(point)) > FARTHEST_MM:
            self._too_far += 1
            return ()
        stamps = tuple(self._place_stamps(self._last, point))
        self._last = point
        return stamps

    def release(self) -> tuple[Stamp, ...]:
        """Return the stamp at the last pointer position, none if the stamps end there already.

        Without it a stroke would stop up to one step before its end. A smoothing brush gives it the
        share of a step that the path has covered since the last stamp.
        """
        walked_mm, last = self._since_stamp_mm, self._last
        if last is None or walked_mm <= _ROUNDING * self._step_mm:
            return ()
        self._since_stamp_mm = 0.0
        share = walked_mm / self._step_mm if self._brush.tool is Tool.SMOOTH else 1.0
        return (Stamp(last, self._amount * share, self._sample, self._spent),)

    @property
    def _wants_lock(self) -> bool:
        return self._brush.sampling is Sampling.LOCKED and self._brush.tool is Tool.SMARTPAINT

    def _place_stamps(self, start: Voxel, stop: Voxel) -> Iterator[Stamp]:
        """Yield the stamps of one straight segment; the remainder counts towards the next."""
        piece_mm = dist(self._in_mm(start), self._in_mm(stop))
        self._length_mm += piece_mm
        walked = self._step_mm - self._since_stamp_mm
        # Otherwise rounding would decide whether a path of whole steps ends in a stamp.
        while walked <= piece_mm + _ROUNDING * self._step_mm:
            share = min(walked / piece_mm, 1.0) if piece_mm else 1.0
            z, y, x = (a + share * (b - a) for a, b in zip(start, stop, strict=True))
            yield Stamp((z, y, x), self._amount, self._sample, self._spent)
            walked += self._step_mm
        self._since_stamp_mm = piece_mm - (walked - self._step_mm)

    def _in_mm(self, point: Voxel) -> Voxel:
        z, y, x = (index * step for index, step in zip(point, self._spacing_mm, strict=True))
        return (z, y, x)
