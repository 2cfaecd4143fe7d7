"""What the robot refines a mask with: the evidence brush, the smart brush of before, spheres."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.box import Box
from napari_mamamia.core.edits import Action, Brush, Tool, Voxel
from napari_mamamia.smartpaint.evidence.marks import hold_voxels
from napari_mamamia.smartpaint.evidence.stroke import prepare_stroke, settle_stroke, window_mm
from napari_mamamia.smartpaint.session.session import EditingSession
from refining.robot import FALL, Gesture, RefiningTool
from refining.scenes import Scene

EVIDENCE_FACTOR = 1.43
"""The circle of the evidence brush, in depths: as large as that of the smart brush."""
SMART_FACTOR, SPHERE_FACTOR = 1.6, 1.3
PLAIN_FACTOR = 0.89
"""The circle of the plain sphere that a reader takes when a smart one does not gain, in depths."""
BEYOND = 1.1
"""Windows of a stroke that a wrong part reaches beyond where a reader acts on the whole lesion."""
IN_VAIN = 2
"""Strokes without gain after which a reader takes the plain sphere for one."""
UNDONE = 0.02
"""A loss of Dice that a reader sees at once."""
LIMITS_MM = (1.0, 30.0)

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]


def radius_of(gesture: Gesture, factor: float) -> float:
    """Return a radius in mm that fits a wrong part."""
    return float(np.clip(factor * gesture.depth_mm, *LIMITS_MM))


def measure_distance(scene: Scene, centre: Voxel, box: Box | None = None) -> Floats:
    """Return each voxel's distance from a place, mm; in a box alone where one is given."""
    box = box or Box.whole(scene.reference.shape)
    z, y, x = (
        (np.arange(a, b) - c) * s
        for a, b, c, s in zip(box.start, box.stop, centre, scene.spacing_mm, strict=True)
    )
    return np.asarray(np.sqrt(z[:, None, None] ** 2 + y[:, None] ** 2 + x**2))


def box_of_ball(scene: Scene, centre: Voxel, radius_mm: float) -> Box:
    """Return a box that holds a ball and the voxel nearest to its middle, within the scene."""
    shape = np.array(scene.reference.shape)
    reach = radius_mm / np.array(scene.spacing_mm) + 1
    start = np.clip(np.floor(np.array(centre) - reach), 0, shape - 1).astype(int)
    stop = np.clip(np.ceil(np.array(centre) + reach) + 1, start + 1, shape).astype(int)
    (z0, y0, x0), (z1, y1, x1) = start.tolist(), stop.tolist()
    return Box((z0, y0, x0), (z1, y1, x1))


class EvidenceBrush:
    """Strokes of evidence, without a session, which records them and does nothing else."""

    can_act_on_whole = True

    def __init__(self, scene: Scene, start: Bools) -> None:
        self.scene = scene
        self.labels = start.astype(np.uint8)
        self.words = np.zeros(start.shape, dtype=np.uint16)
        self.n_in_vain = 0
        self.notes: set[str] = set()

    @property
    def mask(self) -> Bools:
        """The mask as it is."""
        return self.labels > 0

    def stroke(self, gesture: Gesture) -> None:
        """Do what the gesture asks for."""
        if self.n_in_vain >= IN_VAIN:
            self.n_in_vain = -1  # what the sphere gains says nothing of the brush
            self._press_sphere(gesture)
            return
        radius = radius_of(gesture, EVIDENCE_FACTOR)
        brush = Brush(tool=Tool.EVIDENCE, action=gesture.action, radius_mm=radius)
        if self.can_act_on_whole and gesture.extent_mm > BEYOND * window_mm(brush):
            brush = Brush(tool=brush.tool, action=brush.action, radius_mm=radius, whole=True)
        brush = replace(brush, tool=self.choose_tool(brush))
        path = tuple(gesture.places(self.scene.spacing_mm, radius / 4))
        work = prepare_stroke(self.scene.images, self.labels, self.words, brush, path)
        settled = settle_stroke(work)
        self.labels[settled.box.slices] = settled.labels
        self.words[settled.box.slices] = settled.words
        self.notes |= set(settled.notes)

    def choose_tool(self, brush: Brush) -> Tool:
        """Return the smart brush that answers a stroke."""
        return Tool.EVIDENCE

    def _press_sphere(self, gesture: Gesture) -> None:
        radius = radius_of(gesture, PLAIN_FACTOR)
        box = box_of_ball(self.scene, gesture.press, radius)
        away = measure_distance(self.scene, gesture.press, box)
        covered = away <= max(radius, float(away.min()))
        self.labels[box.slices][covered] = gesture.action is Action.ADD
        hold_voxels(self.words[box.slices], covered, gesture.action)

    def judge(self, gain: float) -> bool:
        """Count strokes in vain: a gain that is less than counts as a fall is not seen."""
        self.n_in_vain = self.n_in_vain + 1 if gain < FALL or self.n_in_vain < 0 else 0
        return False


class LearnedBrush(EvidenceBrush):
    """The same strokes, answered by the network."""

    def choose_tool(self, brush: Brush) -> Tool:
        """Return the learned brush."""
        return Tool.LEARNED


class LocalEvidence(EvidenceBrush):
    """The same for a reader who does not know the key for the whole lesion."""

    can_act_on_whole = False


class UndoneEvidence(EvidenceBrush):
    """The same for a reader who undoes what made it worse by .02, and is local the next time."""

    def stroke(self, gesture: Gesture) -> None:
        """Do what the gesture asks for."""
        self.before = self.labels.copy(), self.words.copy()
        super().stroke(gesture)

    def judge(self, gain: float) -> bool:
        """Undo a stroke that made it visibly worse."""
        super().judge(gain)
        is_worse = gain < -UNDONE
        if is_worse:
            self.labels, self.words = self.before
        self.can_act_on_whole = not is_worse
        return is_worse


class SmartBrush:
    """The smart brush of before, through its editing session.

    After a stroke without gain the next is a press with the plain sphere.
    """

    def __init__(self, scene: Scene, start: Bools) -> None:
        self.labels = start.astype(np.uint8)
        self.session = EditingSession("A", scene.case.grid, self.labels, scene.images)
        self.is_plain = False
        self.notes: set[str] = set()

    @property
    def mask(self) -> Bools:
        """The mask as it is."""
        return self.labels > 0

    def stroke(self, gesture: Gesture) -> None:
        """Do what the gesture asks for."""
        tool, factor = (Tool.SPHERE, 1.0) if self.is_plain else (Tool.SMARTPAINT, SMART_FACTOR)
        brush = Brush(tool=tool, action=gesture.action, radius_mm=radius_of(gesture, factor))
        self.session.press(gesture.press, brush)
        if not self.is_plain:
            self.session.drag(gesture.release)
        self.session.release()

    def judge(self, gain: float) -> bool:
        """Take the plain sphere next after a stroke without gain."""
        self.is_plain = not self.is_plain and gain <= 0
        return False


class Sphere:
    """A plain sphere that sets the voxels it passes over, or some of them."""

    factor = SPHERE_FACTOR

    def __init__(self, scene: Scene, start: Bools) -> None:
        self.scene, self.mask = scene, start.copy()
        self.notes: set[str] = set()

    def stroke(self, gesture: Gesture) -> None:
        """Do what the gesture asks for."""
        radius = radius_of(gesture, self.factor)
        for place in gesture.places(self.scene.spacing_mm, radius / 4):
            box = box_of_ball(self.scene, place, radius)
            away = measure_distance(self.scene, place, box) / radius
            chosen = self.choose_voxels(away, radius, box)
            self.mask[box.slices][chosen] = gesture.action is Action.ADD

    def choose_voxels(self, away: Floats, radius_mm: float, box: Box) -> Bools:
        """Return the voxels of a box that a dab sets, `away` in radii."""
        return np.asarray(away <= 1)

    def judge(self, gain: float) -> bool:
        """Take no notice: this tool has no second one."""
        return False


TOOLS: dict[str, Callable[[Scene, Bools], RefiningTool]] = {
    "evidence": EvidenceBrush,
    "learned": LearnedBrush,
    "evidence without whole": LocalEvidence,
    "evidence with undo": UndoneEvidence,
    "smart brush": SmartBrush,
    "sphere": Sphere,
}
MAIN = ("evidence", "smart brush", "sphere")
