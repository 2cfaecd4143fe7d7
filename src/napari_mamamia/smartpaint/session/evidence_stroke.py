"""An evidence stroke: its path while it is being drawn, and the limits of its result."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import dist, isfinite
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.box import Box
from napari_mamamia.core.difference import BitChange, Difference
from napari_mamamia.core.edits import Action, Brush, Edit, Stroke, Voxel
from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.provenance import Setting
from napari_mamamia.smartpaint.brush.brush import FARTHEST_MM
from napari_mamamia.smartpaint.brush.features import FeatureImages
from napari_mamamia.smartpaint.evidence.stroke import (
    VERSION,
    WINDOW,
    SettledStroke,
    StrokeWork,
    prepare_stroke,
)
from napari_mamamia.smartpaint.session.state import MaskState
from napari_mamamia.smartpaint.session.stroke import TOO_FAR, Spacing, lock_settings, stroke_name

EVIDENCE_VERSION: Final = "evidence version"
APART: Final = "apart"
NOTES: Final = "notes"
HELD_BACK: Final = "voxels held back"
WEIGHTS: Final = "weights sha256"
"""Names of a stroke's parameters: rule version, notes, rejected voxels, weights of the network."""

_THINNED: Final = (
    0.05,
    0.25,
)  # of the radius, of the finest voxel: points closer than this add nothing
_ROUNDING_MM: Final = 0.01

Bools = NDArray[np.bool_]


class CurrentEvidenceStroke:
    """An evidence stroke from press to release; it collects the path and changes no voxel.

    A position is ignored if it is not finite, if it is more than a metre from the volume or the
    previous position, or if it is practically equal to the previous position.
    """

    boxes: tuple[Box, ...] = ()

    def __init__(
        self,
        state: MaskState,
        brush: Brush,
        spacing_mm: Spacing,
        images: FeatureImages,
        locked: frozenset[int],
    ) -> None:
        self.brush = brush
        self._state = state
        self._spacing_mm = spacing_mm
        self._images = images
        self._locked = locked
        self._path: list[Voxel] = []
        self._length_mm = 0.0
        self._too_far = 0
        voxel_mm = min(spacing_mm)
        self._step_mm = max(_THINNED[0] * brush.radius_mm, _THINNED[1] * voxel_mm)

    @property
    def edit(self) -> Edit:
        """The stroke as stored in history and journal, without the numbers of changed voxels."""
        parameters = lock_settings(self._locked)
        if self._too_far:
            parameters.append((TOO_FAR, self._too_far))
        stroke = Stroke(self.brush, tuple(self._path))
        return Edit(stroke_name(self.brush), stroke, tuple(parameters), path_mm=self._length_mm)

    @property
    def work(self) -> StrokeWork | None:
        """The input for settling the stroke as drawn so far, or None if its box is empty."""
        if not self._path:
            return None
        work = prepare_stroke(
            self._images,
            self._state.labels,
            self._state.words(self.brush.label),
            self.brush,
            tuple(self._path),
            self._locked,
        )
        return None if work.box.is_empty else work

    def press(self, point: Voxel) -> Box:
        """Begin the path without changing voxels."""
        return self.drag(point)

    def drag(self, point: Voxel) -> Box:
        """Continue the path without changing voxels."""
        z, y, x = map(float, point)
        if not all(map(isfinite, (z, y, x))) or self._is_off((z, y, x)):
            return Box.empty()
        if self._path:
            step_mm = self._measure_mm(self._path[-1], (z, y, x))
            if step_mm > FARTHEST_MM:
                self._too_far += 1
            if not self._step_mm <= step_mm <= FARTHEST_MM:
                return Box.empty()
            self._length_mm += step_mm
        self._path.append((z, y, x))
        return Box.empty()

    def finish(self) -> Box:
        """Do nothing, because the path ends at the last pointer position."""
        return Box.empty()

    def _is_off(self, point: Voxel) -> bool:
        last = [n - 1 for n in self._state.labels.shape]
        z, y, x = (min(max(index, 0.0), n) for index, n in zip(point, last, strict=True))
        return self._measure_mm(point, (z, y, x)) > FARTHEST_MM

    def _measure_mm(self, a: Voxel, b: Voxel) -> float:
        steps = self._spacing_mm
        return dist(
            [index * step for index, step in zip(a, steps, strict=True)],
            [index * step for index, step in zip(b, steps, strict=True)],
        )


@dataclass(frozen=True, slots=True, eq=False)
class LiftedStroke:
    """A released stroke whose result is computed elsewhere, with its input and its future step."""

    work: StrokeWork
    edit: Edit

    def describe(self, settled: SettledStroke, held_back: int) -> Edit:
        """Return the edit of the step, including the parameters of the result."""
        parameters: list[tuple[str, Setting]] = [
            *self.edit.parameters,
            (EVIDENCE_VERSION, VERSION),
            (APART, round(float(settled.apart), 4)),
        ]
        if settled.notes:
            parameters.append((NOTES, " ".join(settled.notes)))
        if held_back:
            parameters.append((HELD_BACK, held_back))
        if settled.weights:
            parameters.append((WEIGHTS, settled.weights))
        return replace(self.edit, parameters=tuple(parameters))


@dataclass(frozen=True, slots=True, eq=False)
class KeptStroke:
    """The accepted result of a stroke, and its change in compressed form.

    `held_back` is the number of voxels whose change was rejected because it was forbidden.
    """

    settled: SettledStroke
    held_back: int
    difference: Difference


def keep_stroke(work: StrokeWork, settled: SettledStroke) -> KeptStroke:
    """Remove forbidden changes from a result and compress its change, in 20 to 60 ms.

    Only the arrays of `work` are read, so this function can run in a thread.

    Raises
    ------
    CaseError
        If the box, shape or type of the result differs from that of the work.
    """
    settled, held_back = keep_promises(work, settled)
    labels = BitChange.of(work.labels ^ settled.labels, work.box)
    words = BitChange.of(work.words ^ settled.words, work.box)
    changes = ((labels,) if labels else (), (), (words,) if words else ())
    return KeptStroke(settled, held_back, Difference(work.brush.label, *changes))


def keep_promises(work: StrokeWork, settled: SettledStroke) -> tuple[SettledStroke, int]:
    """Return a result without forbidden changes, and the number of voxels with such changes.

    An adding stroke removes no voxel of its label. An erasing stroke adds no voxel and changes no
    other label. Locked labels are not changed, and no voxel outside the window is changed unless
    the stroke acts on the whole lesion. The solver guarantees all of this; the check protects a
    reader's mask from errors in the solver.

    Raises
    ------
    CaseError
        If the box, shape or type of the result differs from that of the work.
    """
    require_fitting(work, settled)
    old, new, label = work.labels, settled.labels, np.uint8(work.brush.label)
    changed = old != new
    if work.brush.action is Action.ADD:
        allowed = changed & (new == label)
        if work.locked:
            allowed &= ~np.isin(old, list(work.locked))
    else:
        allowed = changed & (old == label) & (new == 0)
    marked = work.words != settled.words
    near = marked
    if not work.brush.whole:
        beyond = _find_beyond(work, allowed | marked)
        allowed, near = allowed & ~beyond, marked & ~beyond
    held_back = int(np.count_nonzero((changed & ~allowed) | (marked & ~near)))
    if not held_back:
        return settled, 0
    labels = np.where(allowed, new, old)
    words = np.where(near, settled.words, work.words)
    return replace(settled, labels=labels, words=words), held_back


def require_fitting(work: StrokeWork, settled: SettledStroke) -> None:
    """Raise `CaseError` if the box, shape or type of a result differs from those of its work."""
    shape = work.box.shape
    arrays = ((settled.labels, np.uint8), (settled.words, np.uint16))
    if settled.box != work.box or any(a.shape != shape or a.dtype != t for a, t in arrays):
        raise CaseError(
            "expected the result of the drawn stroke, but got the result for a different region, "
            "so nothing was changed: draw the stroke again"
        )


def _find_beyond(work: StrokeWork, where: Bools) -> Bools:
    """Return the voxels in `where` that are outside the window of the path.

    Each segment is compared only with voxels that no earlier segment has reached, so a long path
    takes little more time than a short path.
    """
    beyond = np.zeros_like(where)
    remaining = np.argwhere(where)
    spacing = np.array(work.images.case.grid.spacing_mm)
    places = np.array(work.path) * spacing
    reach_mm = WINDOW[0] * work.brush.radius_mm + WINDOW[1] + _ROUNDING_MM
    points = (remaining + np.array(work.box.start)) * spacing
    for start, stop in _pieces_from_afar(places):
        if not len(remaining):
            return beyond
        far = _squared_distances(points, start, stop) > reach_mm**2
        remaining, points = remaining[far], points[far]
    beyond[tuple(remaining.T)] = True
    return beyond


def _pieces_from_afar(places: NDArray[np.float64]) -> Iterable[tuple[NDArray[np.float64], ...]]:
    """Return the segments of a path, every eighth first, because these reach most voxels."""
    if len(places) == 1:
        return [(places[0], places[0])]
    order = sorted(range(len(places) - 1), key=lambda k: k % 8 != 0)
    return [(places[k], places[k + 1]) for k in order]


def _squared_distances(
    points: NDArray[np.float64], start: NDArray[np.float64], stop: NDArray[np.float64]
) -> NDArray[np.float64]:
    along = stop - start
    length = float(along @ along)
    share = np.clip((points - start) @ along / length, 0.0, 1.0) if length else 0.0
    offset = points - start - np.multiply.outer(share, along) if length else points - start
    squared: NDArray[np.float64] = np.einsum("ij,ij->i", offset, offset)
    return squared
