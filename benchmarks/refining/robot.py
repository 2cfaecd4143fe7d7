"""A robot reader: where it presses next, and what it reaches in so many strokes.

It looks at what is missing and at what is too much, apart. Of their connected parts it takes the
largest that is deeper than its own hand is unsteady (1.5 mm); only where there is none, the
largest. There it presses where the part is deepest (maximum of the distance transform, mm) and
sweeps within the slice to the farthest voxel at least 0.8 as deep. Its hand is off by N(0, 1.5 mm)
along both axes of the slice, and 5 % of its presses fall on the wrong side of the part's edge.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import distance_transform_edt, label

from napari_mamamia.core.box import Box
from napari_mamamia.core.edits import Action, Voxel
from napari_mamamia.metrics.overlap import dice
from refining.scenes import Scene

JITTER_MM, WRONG_SIDE = 1.5, 0.05
MOST_PARTS = 12  # that are asked for their depth
FALL = 0.001

Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Gesture:
    """What the robot's hand did: from `press` to `release` (voxels), and what it works on.

    `depth_mm` is the depth of the wrong part, `extent_mm` how far it reaches from the gesture.
    """

    press: Voxel
    release: Voxel
    action: Action
    depth_mm: float
    extent_mm: float

    def places(self, spacing_mm: Sequence[float], step_mm: float) -> list[Voxel]:
        """Return places from press to release, about `step_mm` apart."""
        first, last = np.array(self.press), np.array(self.release)
        length = float(np.linalg.norm((last - first) * spacing_mm))
        shares = np.linspace(0, 1, 1 + int(length / step_mm))
        return [tuple(first + share * (last - first)) for share in shares]


@dataclass(frozen=True)
class WrongPart:
    """A connected part of what is wrong in one way: its box and, in it, depths in mm."""

    action: Action
    box: Box
    depths: NDArray[np.float64]

    @property
    def depth_mm(self) -> float:
        """How deep it is."""
        return float(self.depths.max())


class RefiningTool(Protocol):
    """What changes a mask as gestures say."""

    mask: Bools
    notes: set[str]

    def stroke(self, gesture: Gesture) -> None:
        """Do what the gesture asks for."""

    def judge(self, gain: float) -> bool:
        """Learn what the stroke gained in Dice; return whether it was undone, which is an act."""


class SteadyHand:
    """A generator of a hand that neither shakes nor slips: it presses where it means to."""

    def random(self) -> float:
        """Return what is below no share."""
        return 1.0

    def normal(self, mean: float, _sd: float, size: int) -> NDArray[np.float64]:
        """Return the mean."""
        return np.full(size, mean)


@dataclass
class Run:
    """What one robot reached: Dice from the start on, one for each stroke; ms of the processor."""

    scores: list[float]
    ms: list[float] = field(default_factory=list)
    notes: set[str] = field(default_factory=set)
    warned_at: int | None = None
    """The stroke at which the tool first said something, from 1 on."""

    def strokes_to(self, target: float, budget: int) -> int:
        """Return the strokes until Dice is `target`, one more than `budget` where it never is."""
        return next((k for k, d in enumerate(self.scores) if d >= target), budget + 1)

    def after(self, strokes: int) -> float:
        """Return Dice after so many strokes, or at the end."""
        return self.scores[min(strokes, len(self.scores) - 1)]

    @property
    def falls(self) -> int:
        """Strokes that lowered Dice by more than .001."""
        return int(np.count_nonzero(np.diff(self.scores) < -FALL))


def run_robot(
    scene: Scene,
    tool: RefiningTool,
    hand: int,
    budget: int,
    *,
    sweeps: bool,
    within: bool = False,
    steady: bool = False,
) -> Run:
    """Let a hand (a seed) correct the tool's mask until nothing is wrong or the budget is spent."""
    rng = SteadyHand() if steady else np.random.default_rng(hand)
    run = Run([dice(scene.reference, tool.mask)])
    while len(run.scores) <= budget:
        gesture = next_gesture(scene, tool.mask, rng, sweeps=sweeps, within=within)
        if gesture is None:
            break
        begun = time.process_time()
        tool.stroke(gesture)
        run.ms.append((time.process_time() - begun) * 1e3)
        run.scores.append(dice(scene.reference, tool.mask))
        if tool.notes and run.warned_at is None:
            run.warned_at = len(run.ms)
        if tool.judge(run.scores[-1] - run.scores[-2]) and len(run.scores) <= budget:
            run.scores.append(run.scores[-2])
    run.notes = tool.notes
    return run


def next_gesture(
    scene: Scene,
    mask: Bools,
    rng: "np.random.Generator | SteadyHand",
    *,
    sweeps: bool = True,
    within: bool = False,
) -> Gesture | None:
    """Return what the robot does next; None where nothing is wrong.

    `within`: a sweep ends where its straight way would leave the wrong part.
    """
    part = choose_part(scene, mask)
    if part is None:
        return None
    spacing = np.array(scene.spacing_mm)
    corner = np.array(part.box.start)
    at = np.unravel_index(int(part.depths.argmax()), part.depths.shape)
    plane = part.depths[at[0]]
    deep = np.argwhere(plane >= 0.8 * part.depth_mm)
    allowed = plane > 0 if within else np.ones_like(plane, np.bool_)
    far = _farthest_within(allowed, deep, np.array(at[1:]), spacing[1:])
    press = corner + np.array(at, dtype=float)
    release = corner + np.array([at[0], *far], dtype=float) if sweeps else press.copy()
    if rng.random() < WRONG_SIDE:
        others = np.argwhere(~np.pad(plane > 0, 1)) - 1
        nearest = (((others - at[1:]) * spacing[1:]) ** 2).sum(axis=1).argmin()
        press[1:] = corner[1:] + others[nearest]
        release = press.copy()
    off = np.array([0.0, *rng.normal(0, JITTER_MM, 2)]) / spacing
    press, release = press + off, release + off
    extent = _farthest_mm(np.argwhere(part.depths > 0) + corner, press, release, spacing)
    return Gesture(tuple(press), tuple(release), part.action, part.depth_mm, extent)


def _farthest_within(
    part: Bools, places: NDArray[Any], start: NDArray[Any], spacing: NDArray[Any]
) -> NDArray[Any]:
    """Return the farthest of some voxels that a straight way from `start` within a part reaches."""
    squares = (((places - start) * spacing) ** 2).sum(axis=1)
    for number in np.argsort(-squares, kind="stable"):
        shares = np.linspace(0, 1, 2 + int(4 * np.sqrt(squares[number]) / spacing.min()))
        way = np.rint(start + shares[:, np.newaxis] * (places[number] - start)).astype(int)
        if part[tuple(way.T)].all():
            return np.asarray(places[number])
    return start


def choose_part(scene: Scene, mask: Bools) -> WrongPart | None:
    """Return the largest part deeper than the hand's jitter, else the largest; None: all right."""
    wrong = mask != scene.reference
    box = Box.around(wrong)
    if box.is_empty:
        return None
    missing = scene.reference[box.slices] & wrong[box.slices]
    parts: list[tuple[int, Action, Any]] = []
    for action, where in ((Action.ADD, missing), (Action.ERASE, wrong[box.slices] & ~missing)):
        marked, n_parts = label(where)
        sizes = np.bincount(marked.ravel())[1:]
        parts += [(int(sizes[k]), action, (marked, k + 1)) for k in range(n_parts)]
    parts.sort(key=lambda one: -one[0])
    largest = None
    for _, action, (marked, number) in parts[:MOST_PARTS]:
        part = _measure_part(scene, box, marked == number, action)
        if part.depth_mm > JITTER_MM:
            return part
        largest = largest or part
    return largest


def _measure_part(scene: Scene, box: Box, where: Bools, action: Action) -> WrongPart:
    tight = Box.around(where)
    # A slice alone has no edge above and below it.
    edges = [(int(n > 1),) * 2 for n in scene.reference.shape]
    depths = distance_transform_edt(np.pad(where[tight.slices], edges), scene.spacing_mm)
    inner = tuple(slice(a, a + n) for (a, _), n in zip(edges, tight.shape, strict=True))
    start = tuple(a + b for a, b in zip(box.start, tight.start, strict=True))
    stop = tuple(a + n for a, n in zip(start, tight.shape, strict=True))
    z0, y0, x0 = start
    z1, y1, x1 = stop
    return WrongPart(action, Box((z0, y0, x0), (z1, y1, x1)), depths[inner])


def _farthest_mm(
    voxels: NDArray[Any], press: NDArray[Any], release: NDArray[Any], spacing: NDArray[Any]
) -> float:
    """Return the greatest distance of voxels from a straight way, mm."""
    away = (voxels - press) * spacing
    way = (release - press) * spacing
    length = float(way @ way)
    share = np.clip(away @ way / length, 0, 1) if length else np.zeros(len(away))
    return float(np.sqrt(((away - share[:, None] * way) ** 2).sum(axis=1).max()))
