"""Peers that see the same gestures, each from its publication; not part of the check.

threshold     sphere of 1.6 times the depth, voxels within 2.5 noise units of the disc's median
airbrush      the brush of github.com/FredrikNysjo/ichseg, delta scale 2, sensitivity 5,
              120 frames a stroke, image scaled to the crop's 1st and 99th percentile
random walker scikit-image, beta 130, on the features in noise units; seeds of all strokes
fast marching SimpleITK, fronts from the seeds of both kinds, speed 1 / (1 + (slope / noise)^2)
"""

import warnings
from collections.abc import Callable

import numpy as np
import SimpleITK as sitk  # noqa: N813 - the name that its own documentation uses
from numpy.typing import NDArray
from scipy.ndimage import distance_transform_edt, gaussian_filter
from skimage.segmentation import random_walker

from napari_mamamia.core.box import Box
from napari_mamamia.core.edits import Action
from refining.robot import Gesture, RefiningTool
from refining.scenes import Scene
from refining.tools import SMART_FACTOR, Sphere, measure_distance, radius_of

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]


class Threshold(Sphere):
    """A sphere that sets voxels within 2.5 noise units of the disc's median."""

    factor = SMART_FACTOR

    def __init__(self, scene: Scene, start: Bools) -> None:
        super().__init__(scene, start)
        self.post = scene.images.in_box(Box.whole(start.shape))[0]

    def choose_voxels(self, away: Floats, radius_mm: float, box: Box) -> Bools:
        """Return the voxels that a dab sets: within 0.893 of its radius, and alike."""
        post = self.post[box.slices]
        disc = post[away * radius_mm <= np.maximum(1.5, (away * radius_mm).min() + 1e-6)]
        unlike = np.abs(post - float(np.median(disc)))
        return np.asarray((away <= 0.893) & (unlike <= 2.5 * self.scene.images.noise[0]))


class Airbrush(Threshold):
    """The airbrush of ichseg: opacity 0.05 a frame, compared with the centre voxel."""

    frames, delta_scale, sensitivity = 120, 2.0, 5

    def __init__(self, scene: Scene, start: Bools) -> None:
        super().__init__(scene, start)
        self.soft = start.astype(np.float64)
        low, high = np.percentile(self.post, (1, 99))
        self.shown = (self.post - low) / max(high - low, 1e-9)

    def stroke(self, gesture: Gesture) -> None:
        """Do what the gesture asks for."""
        radius = radius_of(gesture, self.factor)
        places = gesture.places(self.scene.spacing_mm, radius / 4)
        for place in places:
            away = measure_distance(self.scene, place) / radius
            here = self.shown[np.unravel_index(int(away.argmin()), away.shape)]
            alike = np.clip(1 - self.delta_scale * np.abs(self.shown - here), 0, None)
            alpha = 0.05 * np.clip(1 - away, 0, None) * alike**self.sensitivity
            left = (1 - alpha) ** max(round(self.frames / len(places)), 1)
            goal = float(gesture.action is Action.ADD)
            self.soft = goal + (self.soft - goal) * left
        self.mask = self.soft >= 0.5


class Seeded(Sphere):
    """A method that labels the crop anew from the seeds of all strokes."""

    def __init__(self, scene: Scene, start: Bools) -> None:
        super().__init__(scene, start)
        depth = distance_transform_edt(start, scene.spacing_mm)
        self.seeds = np.zeros(start.shape, dtype=np.int8)
        self.seeds[depth > 3.0] = 1
        faces = np.ones(start.shape, dtype=np.bool_)
        faces[1:-1, 1:-1, 1:-1] = False
        self.seeds[faces] = 2
        whole = scene.images.in_box(Box.whole(start.shape))
        self.features = whole / np.array(scene.images.noise)[:, None, None, None]

    def stroke(self, gesture: Gesture) -> None:
        """Do what the gesture asks for."""
        radius = max(0.5 * gesture.depth_mm, 1.0)
        for place in gesture.places(self.scene.spacing_mm, 1.0):
            away = measure_distance(self.scene, place) / radius
            inside = 1 if gesture.action is Action.ADD else 2
            self.seeds[(away <= 1) | (away == away.min())] = inside
        if (self.seeds == 1).any():
            self.mask = self.label_anew()

    def label_anew(self) -> Bools:
        """Return the voxels inside, by the seeds as they are."""
        return np.asarray(self.seeds == 1)


class RandomWalker(Seeded):
    """scikit-image's random walker."""

    def label_anew(self) -> Bools:
        """Return the voxels that a walker reaches from inside first."""
        data = np.moveaxis(self.features, 0, -1).astype(np.float64)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            walked = random_walker(
                data,
                self.seeds,
                beta=130,
                mode="cg_j",
                tol=1e-2,
                spacing=np.array(self.scene.spacing_mm) / min(self.scene.spacing_mm),
                channel_axis=-1,
            )
        return np.asarray(walked == 1)


class FastMarching(Seeded):
    """SimpleITK's fast marching, one front for each kind of seed: the first to arrive wins."""

    def label_anew(self) -> Bools:
        """Return the voxels that the front from inside reaches first."""
        spacing = tuple(float(s) for s in self.scene.spacing_mm[::-1])
        sigmas = [1.0 / s for s in self.scene.spacing_mm]
        smooth = gaussian_filter(self.features[0].astype(np.float64), sigmas)
        slopes = [
            np.gradient(smooth, s, axis=axis)
            for axis, s in enumerate(self.scene.spacing_mm)
            if smooth.shape[axis] > 1
        ]
        speed = sitk.GetImageFromArray(1 / (1 + sum(slope**2 for slope in slopes)) + 1e-3)
        speed.SetSpacing(spacing)
        arrivals = []
        for kind in (1, 2):
            points = [(int(x), int(y), int(z)) for z, y, x in np.argwhere(self.seeds == kind)]
            front = sitk.FastMarching(speed, points, 1.0, 1e6)
            arrivals.append(sitk.GetArrayFromImage(front))
        return np.asarray(arrivals[0] < arrivals[1])


PEERS: dict[str, Callable[[Scene, Bools], RefiningTool]] = {
    "threshold": Threshold,
    "airbrush": Airbrush,
    "random walker": RandomWalker,
    "fast marching": FastMarching,
}
