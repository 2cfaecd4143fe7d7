"""`StrokePath`: the row of equal dabs along a stroke, however the mouse was sampled."""

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

_STEP: Final = 0.125  # distance of dabs in radii; our choice: a sweep ends this near its pointer
_SWEEP: Final = 1.5  # a path of so many radii smooths as much as a press; A4, corrections
_SMALLEST_STEP: Final = 0.25  # in voxels of the finest axis, for brushes below a voxel
_ROUNDING: Final = 1e-6  # of a step
FARTHEST_MM: Final = 1000.0  # our choice: no exam is so long; a pointer there has lost its place


@dataclass(frozen=True, slots=True)
class Stamp:
    """One deposit of a brush: where, and how much.

    Parameters
    ----------
    centre
        In voxel coordinates.
    amount
        The dose in its middle, without unit.
    sample
        What the image is compared with; None takes it from around the centre.
    spent
        What the dab's stroke has deposited before it, which it adds itself to; None for a dab that
        stands alone.
    """

    centre: Voxel
    amount: float
    sample: Sample | None = None
    spent: "Spent | None" = field(default=None, compare=False, repr=False)


class Spent:
    """What one stroke has deposited in each voxel so far."""

    def __init__(self) -> None:
        self._box = Box.empty()
        self._dose: NDArray[np.float32] = np.zeros((0, 0, 0), dtype=np.float32)

    def beyond(
        self, dose: NDArray[np.float32], box: Box, shape: tuple[int, int, int]
    ) -> NDArray[np.float32]:
        """Return how far `dose` (in `box` of a volume of `shape`) exceeds what was deposited.

        From then on the larger of both counts as deposited. Memory grows with the block of voxels
        that the stroke has passed; a click takes none.
        """
        if self._box.is_empty:
            # Kept without a copy, because `deposit` leaves the dose as it is.
            self._box, self._dose = box, dose
            return dose
        if self._box.union(box) != self._box:
            self._grow_box(box, shape)
        spent = self._dose[_index_within(box, self._box)]
        more = np.subtract(dose, spent)
        np.maximum(more, np.float32(0.0), out=more)
        # A view: this raises what is kept.
        spent += more
        return more

    def _grow_box(self, box: Box, shape: tuple[int, int, int]) -> None:
        """Make room for `box`, and for as much again, so that long strokes copy seldom."""
        union = self._box.union(box)
        room = [n // 2 if n > m else 0 for n, m in zip(union.shape, self._box.shape, strict=True)]
        union = union.grown(room, shape)
        roomy = np.zeros(union.shape, dtype=np.float32)
        roomy[_index_within(self._box, union)] = self._dose
        self._box, self._dose = union, roomy


def _index_within(box: Box, outer: Box) -> tuple[slice, ...]:
    """Return the index that takes `box` out of an array of the voxels of `outer`."""
    return tuple(
        slice(a - o, b - o) for a, b, o in zip(box.start, box.stop, outer.start, strict=True)
    )


class StrokePath:
    """Turns the places of a pointer into dabs at equal distances along the path.

    From the press on there is a dab at every eighth of a radius (in mm) along the path. Equal
    paths give equal dabs, whether the mouse reported 10 places on them or 1000. Each deposits
    `PRESS_DOSE`, and a stroke leaves in a voxel the largest dose that any of its dabs has for it:
    a sweep paints what clicks along it would, and does not leak more the longer one scribbles. To
    paint on, press again.

    A smoothing brush adds its dabs up: each deposits a twelfth of a press, so that a straight sweep
    smooths along its line as much as a press does.

    Parameters
    ----------
    brush
        Its `sampling` says whether dabs carry the sample of the press.
    spacing_mm
        Of the case's array, (z, y, x).
    images
        Where the sample of a brush with `Sampling.LOCKED` is taken at the press; without them its
        dabs carry none.

    Source: docs/methods/brush.md (``E0 ds / (1.5 r)``, used for
    smoothing). For painting, the sum of such doses along an edge (half-spaces of
    benchmarks/brush.py, a sweep of 21 mm, r = 10 mm) covered 0.82 of what lay within 8 mm of the
    stroke, the largest dose 0.99.
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
        """How many places were left out because they lay a metre or more from the one before."""
        return self._too_far

    @property
    def length_mm(self) -> float:
        """Length of the path so far in mm; 0 for a press."""
        return self._length_mm

    def press(self, point: Voxel) -> tuple[Stamp, ...]:
        """Return the dab of the press, and begin a new path there; none for a place not finite."""
        self._since_stamp_mm = self._length_mm = 0.0
        self._last = self._sample = None
        self._too_far = 0
        if not all(isfinite(place) for place in point):
            return ()
        self._last = point
        if self._wants_lock and self._images is not None:
            self._sample = sample_at(point, self._brush, self._images, self._spacing_mm)
        self._spent = Spent() if self._brush.tool is Tool.SMARTPAINT else None
        return (Stamp(point, PRESS_DOSE, self._sample, self._spent),)

    def drag(self, point: Voxel) -> tuple[Stamp, ...]:
        """Return the dabs between the last place and `point`; often none.

        A drag without a press is one. A place that is not finite, or a metre away, is left out.
        """
        if self._last is None:
            return self.press(point)
        if not all(isfinite(place) for place in point):
            return ()
        if dist(self._in_mm(self._last), self._in_mm(point)) > FARTHEST_MM:
            self._too_far += 1
            return ()
        dabs = tuple(self._place_dabs(self._last, point))
        self._last = point
        return dabs

    def release(self) -> tuple[Stamp, ...]:
        """Return the dab where the pointer was last, none where the row of dabs ends there.

        Without it a stroke would stop up to a step before its end. A smoothing brush gives it the
        share of a step that was walked.
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

    def _place_dabs(self, start: Voxel, stop: Voxel) -> Iterator[Stamp]:
        """Yield the dabs of one straight piece; what is left over counts for the next."""
        piece_mm = dist(self._in_mm(start), self._in_mm(stop))
        self._length_mm += piece_mm
        walked = self._step_mm - self._since_stamp_mm
        # Otherwise rounding would decide whether a path of whole steps ends in a dab.
        while walked <= piece_mm + _ROUNDING * self._step_mm:
            share = min(walked / piece_mm, 1.0) if piece_mm else 1.0
            z, y, x = (a + share * (b - a) for a, b in zip(start, stop, strict=True))
            yield Stamp((z, y, x), self._amount, self._sample, self._spent)
            walked += self._step_mm
        self._since_stamp_mm = piece_mm - (walked - self._step_mm)

    def _in_mm(self, point: Voxel) -> Voxel:
        z, y, x = (place * step for place, step in zip(point, self._spacing_mm, strict=True))
        return (z, y, x)
