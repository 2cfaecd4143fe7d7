"""The stamps that a brush makes along its path: the dose of each stamp, and the membership.

Membership is a float32 number from 0 to 1; a voxel with a membership of at least 0.5 belongs to the
label. A stamp deposits a dose D in every voxel of its sphere. The dose depends on the distance from
the centre and on how similar the image is. It moves the membership towards 1 (add) or 0 (erase) by
``1 - exp(-D)``. Doses add up: ten doses of 0.1 have the effect of one dose of 1.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import ceil, dist, floor, isfinite, sqrt
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from napari_mamamia.core.box import Box
from napari_mamamia.core.edits import Action, Brush, Extent, Sampling, Tool, Voxel
from napari_mamamia.core.errors import CaseError
from napari_mamamia.smartpaint.brush.features import LATE_POST, POST_PRE, FeatureImages
from napari_mamamia.smartpaint.brush.reach import (
    PRESS_DOSE,
    SMOOTHING_MM,
    Spacing,
    fall_off,
    painted_radius_mm,
    voxel_under,
)

_DISC_MM: Final = 1.5  # radius; A4
_MAD_TO_SIGMA: Final = 1.4826  # for a normal distribution
_WIDEST: Final = 2.0  # noise units; A4
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
class Sample:
    """Median and scale of each feature around a point, in the signal's unit.

    Both are empty if the disc contains no finite voxel of the volume; no tissue is then similar to
    the sample.
    """

    middle: tuple[float, ...]
    scale: tuple[float, ...]


def sample_at(centre: Voxel, brush: Brush, images: FeatureImages, spacing_mm: Spacing) -> Sample:
    """Return the sample of the features that `brush` compares, around `centre`.

    The sample consists of the voxels in a disc of 1.5 mm radius (or the painted radius of a smaller
    brush) in the slice of the centre, and the voxel under the centre. A brush with `Extent.PLANE`
    uses the disc in its own plane; otherwise the disc is perpendicular to the axis of widest
    spacing, so a point has the same sample in every view. The centre of the sample is the median.
    The scale is 1.4826 times the median absolute deviation, limited to one to two units of noise.

    Source: docs/methods/previous_brush.md.
    """
    chosen = images.choose(brush.features)
    values = _read_disc(centre, brush, chosen, spacing_mm)
    if not values.shape[1]:
        return Sample((), ())
    middle = _compute_median(values)
    spread = _MAD_TO_SIGMA * _compute_median(np.abs(values - middle[:, np.newaxis]))
    noise = np.array(chosen.noise)
    scale = np.clip(spread, noise, _WIDEST * noise)
    return Sample(tuple(middle.tolist()), tuple(scale.tolist()))


def _read_disc(
    centre: Voxel, brush: Brush, images: FeatureImages, spacing_mm: Spacing
) -> NDArray[np.float32]:
    """Return the features (feature, voxel) of the disc's voxels with only finite features."""
    normal = brush.plane_axis
    if brush.extent is Extent.VOLUME:
        normal = spacing_mm.index(max(spacing_mm))
    reach_mm = min(_DISC_MM, painted_radius_mm(brush))
    box, squared = _measure_disc(centre, normal, reach_mm, spacing_mm, images.case.grid.shape)
    values = images.in_box(box)[:, squared <= reach_mm**2]
    return values[:, np.isfinite(values).all(axis=0)]


def _measure_disc(
    centre: Voxel, normal: int, reach_mm: float, spacing_mm: Spacing, shape: tuple[int, int, int]
) -> tuple[Box, NDArray[np.float64]]:
    """Return a box in one slice, and the squared distances in it (mm2), 0 at the central voxel."""
    under = voxel_under(centre)
    start, stop, along = [0, 0, 0], [0, 0, 0], []
    for axis in range(3):
        reach = 0.0 if axis == normal else reach_mm / spacing_mm[axis]
        first = min(under[axis], ceil(centre[axis] - reach)) if reach else under[axis]
        last = max(under[axis], floor(centre[axis] + reach)) if reach else under[axis]
        start[axis] = min(max(first, 0), shape[axis])
        stop[axis] = max(min(last + 1, shape[axis]), start[axis])
        indices = np.arange(start[axis], stop[axis])
        offset = (indices - centre[axis]) * spacing_mm[axis] * (axis != normal)
        along.append((indices == under[axis], offset * offset))
    (hit_z, far_z), (hit_y, far_y), (hit_x, far_x) = along
    squared = far_z[:, np.newaxis, np.newaxis] + far_y[:, np.newaxis] + far_x
    squared[hit_z[:, np.newaxis, np.newaxis] & hit_y[:, np.newaxis] & hit_x] = 0.0
    return Box((start[0], start[1], start[2]), (stop[0], stop[1], stop[2])), squared


def _compute_median(values: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the median of each row; `numpy.median` takes ten times as long on rows this short."""
    ordered = np.sort(values, axis=1)
    n = values.shape[1]
    middle: NDArray[np.float64] = (ordered[:, (n - 1) // 2] + ordered[:, n // 2]).astype(float) / 2
    return middle


@dataclass(frozen=True, slots=True)
class Stamp:
    """One deposit of a brush: its position and dose.

    Parameters
    ----------
    centre
        The position in voxel coordinates.
    amount
        The dose at the centre, without unit.
    sample
        The values with which the image is compared; None measures these values around the centre.
    spent
        The dose that the stroke has deposited so far, to which this stamp is added; None for a
        stamp outside a stroke.
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
        """Return the amount by which `dose` in `box` exceeds the dose deposited so far.

        The larger dose then counts as deposited. Memory grows with the block of voxels that the
        stroke has covered; a click needs no memory.
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
        """Enlarge the array to `box` with a margin, so that long strokes rarely copy it."""
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
    """The path of a stroke, which turns pointer positions into stamps at equal distances.

    There is a stamp where the pointer is pressed, and one at every eighth of a radius (in mm) along
    the path. Equal paths give equal stamps, regardless of the number of reported pointer positions.
    Each stamp deposits `PRESS_DOSE`, and each voxel keeps the largest dose of any stamp of the
    stroke. A stroke therefore paints the same voxels as clicks along its path, and moving to and
    fro does not increase leaks. A second press paints further.

    The doses of a smoothing brush are added up. Each stamp deposits a twelfth of a press, so a
    straight stroke smooths along its line as much as a press.

    Parameters
    ----------
    brush
        The brush, whose `sampling` defines whether stamps use the sample of the press.
    spacing_mm
        The spacing of the case's array (z, y, x) in mm.
    images
        The images from which a brush with `Sampling.LOCKED` takes its sample at the press. Without
        images, its stamps have no sample.

    Source: docs/methods/previous_brush.md (``E0 ds / (1.5 r)``, used for smoothing). For painting,
    the sum of such doses along an edge (half-spaces of benchmarks/brush.py, a stroke of 21 mm, r =
    10 mm) covered 0.82 of the tissue within 8 mm of the stroke, whereas the largest dose covered
    0.99.
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
        """Number of ignored positions, each a metre or more from the previous position."""
        return self._too_far

    @property
    def length_mm(self) -> float:
        """Length of the path so far in mm; 0 for a press."""
        return self._length_mm

    def press(self, point: Voxel) -> tuple[Stamp, ...]:
        """Begin a new path; return the stamp at `point`, or no stamp if `point` is not finite."""
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
        """Return the stamps between the previous position and `point`, which may be empty.

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
        """Return the stamp at the last pointer position, or nothing if it already has a stamp.

        Without this stamp, a stroke would stop up to one step before its end. With a smoothing
        brush, its dose is the fraction of a step that the path has covered since the last stamp.
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
        """Yield the stamps of a straight segment; the remainder counts towards the next one."""
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


_WHOLE_DOSE: Final = np.float32(
    104.0
)  # exp(-104) is 0 in float32: the previous membership has no weight
_STEEPNESS: Final = 1.65
"""Steepness of the similarity ``exp(-0.5 (1.65 z / tolerance)^2)``.

Source: docs/methods/previous_brush.md. 1.5 was derived for clicks on an empty mask; strokes, and
masks that start from 0.05, keep the leak limits with 1.65 (benchmarks/brush.py).
"""

_AGREEMENT: Final = {1: 1.0, 2: 0.86, 3: 0.8}
"""Factor by which the tolerance is multiplied, for each number of compared features.

The mean square of several features scatters less than the square of one feature. With these factors
a press includes the same share (0.97) of its own tissue for any number of features. Source: our
measurement on even tissue with independent noise in each phase.
"""

_SHARED: Final = {POST_PRE: -sqrt(2), LATE_POST: sqrt(2)}
"""Coefficient that removes the noise shared with "post" from a difference of phases.

In units of noise, ``post - sqrt(2) (post - pre)`` is the information that "pre" adds to "post", and
``post + sqrt(2) (late - post)`` is the information that "late" adds. Both are independent of "post"
if the phases have equal noise. Source: covariance of differences.
"""

Floats = NDArray[np.float32]


def paint(
    membership: Floats,
    box: Box,
    stamp: Stamp,
    brush: Brush,
    images: FeatureImages | None,
    spacing_mm: Spacing,
) -> None:
    """Apply one stamp to `membership` in place.

    A stamp of a stroke deposits only the part of its `dose` that exceeds the doses of the stroke's
    earlier stamps: pass each stamp of `StrokePath` to this function once.

    Parameters
    ----------
    membership
        A float32 array with the shape of the box and values from 0 to 1, which may be a view.
    box
        The box of the array, usually `stamp_box`. A different box gives the same values in common
        voxels, but a smoothing brush needs the whole `stamp_box`.
    stamp, brush, spacing_mm
        The stamp, its brush, and the spacing of the array (z, y, x).
    images
        The features to compare; the sphere and the smoothing brush need no features.

    Raises
    ------
    CaseError
        If a SmartPaint brush has no images.
    """
    if box.is_empty:
        return
    if brush.tool is Tool.SMOOTH:
        smooth(membership, stamp, brush, spacing_mm, box)
        return
    amount = dose(stamp, brush, images, spacing_mm, box)
    if stamp.spent is not None and images is not None:
        amount = stamp.spent.beyond(amount, box, images.case.grid.shape)
    deposit(membership, amount, brush.action)


def dose(
    stamp: Stamp, brush: Brush, images: FeatureImages | None, spacing_mm: Spacing, box: Box
) -> Floats:
    """Return the non-negative dose ``D = E fall rho`` of a stamp in each voxel of `box`.

    ``rho = exp(-0.5 (1.65 z / (a tolerance))^2)``. Here z is the root mean square over the features
    of their distance from the sample in units of its scale, after the noise shared with "post" is
    removed (``z_post``, ``z_post - sqrt(2) z_post-pre``, ``z_post + sqrt(2) z_late-post``), and a
    is 1, 0.86, 0.8 for one, two, three features. ``rho`` is 0 where a feature is NaN. ``fall`` is
    `fall_off`. A plain sphere ignores the image: its dose is so large that the previous membership
    has no weight inside its circle.

    Source: docs/methods/previous_brush.md. With z as the mean of the unchanged features, their
    common noise would count up to three times and more would leak (benchmarks/brush.py).

    Raises
    ------
    CaseError
        If a SmartPaint brush has no images.
    """
    fall = fall_off(stamp.centre, brush, spacing_mm, box)
    if brush.tool is Tool.SPHERE:
        fall *= _WHOLE_DOSE
        return fall
    if images is None:
        raise CaseError(
            "expected the images of the case for a SmartPaint brush, but this mask was opened "
            "without images: open the case, or choose the plain sphere"
        )
    sample = stamp.sample or sample_at(stamp.centre, brush, images, spacing_mm)
    if not sample.middle:
        fall.fill(0.0)
        return fall
    fall *= _measure_similarity(images.choose(brush.features), sample, brush.tolerance, box)
    fall *= np.float32(stamp.amount)
    return fall


def _measure_similarity(
    images: FeatureImages, sample: Sample, tolerance: float, box: Box
) -> Floats:
    """Return the similarity rho between the sample and every voxel of the box."""
    n = len(images.channels)
    # This factor holds the 0.5 of the exponent and the mean over n features, so that squares are
    # only summed.
    steepness = _STEEPNESS / (_AGREEMENT[n] * tolerance * sqrt(2 * n))
    exponent, feature, first = (np.empty(box.shape, dtype=np.float32) for _ in range(3))
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        for k, channel in enumerate(images.channels):
            # The first feature stays unchanged; its share is removed from the others.
            here = feature if k else first
            share = _SHARED.get(channel.name, 1.0) if k else 1.0
            images.fill(channel, box, here)
            here -= np.float32(sample.middle[k])
            here *= np.float32(share * steepness / sample.scale[k])
            if k:
                feature += first
                np.multiply(feature, feature, out=feature)
                exponent -= feature
            else:
                np.multiply(first, -first, out=exponent)
        np.fmax(exponent, np.float32(-np.inf), out=exponent)  # NaN becomes minus infinity
        return np.exp(exponent, out=exponent)


def deposit(membership: Floats, dose: Floats, action: Action) -> None:
    """Move `membership` in place towards 1 (add) or 0 (erase) by ``1 - exp(-dose)``.

    Voxels with a dose of 0 are not changed, and the result remains within 0 to 1.
    """
    with np.errstate(under="ignore"):
        share = np.exp(-dose)
    np.subtract(np.float32(1.0), share, out=share)
    if action is Action.ADD:
        share *= np.float32(1.0) - membership
        membership += share
    else:
        share *= membership
        membership -= share


def smooth(membership: Floats, stamp: Stamp, brush: Brush, spacing_mm: Spacing, box: Box) -> None:
    """Blend `membership` in place with its Gaussian mean by ``1 - exp(-E fall)``.

    The Gaussian has a standard deviation of 1 mm and, for `Extent.PLANE`, is computed only within
    the plane. Beyond the box, the nearest value is repeated. Source:
    docs/methods/previous_brush.md.
    """
    sigmas = [SMOOTHING_MM / step for step in spacing_mm]
    if brush.extent is Extent.PLANE:
        sigmas[brush.plane_axis] = 0.0
    mean = gaussian_filter(membership, sigmas, mode="nearest", truncate=3.0)
    share = fall_off(stamp.centre, brush, spacing_mm, box)
    share *= np.float32(-stamp.amount)
    np.exp(share, out=share)
    np.subtract(np.float32(1.0), share, out=share)
    mean -= membership
    mean *= share
    membership += mean
    np.clip(membership, 0.0, 1.0, out=membership)
