"""Strokes that a robot reader needs to correct a mask, with the brush and with five peers.

    python benchmarks/refine.py [--full] [--budget N] [--start NAME] [--clicks]

The robot looks for the largest connected error, presses where that is deepest (maximum of the
distance transform in mm) and sweeps within its slice to the farthest voxel at least 0.8 as deep
(with ``--clicks`` it does not sweep). Its hand is off by N(0, 1.5 mm) along both axes of the
slice, and 5 % of its presses fall on the wrong side of the error's edge. The smart brush has a
radius of 1.6 times the depth, for which its circle is 1.43 times the depth; after a stroke without
gain the next is a press with a plain sphere whose circle is 0.89 times the depth. The peers see the
same gestures:

sphere        plain sphere of 1.3 times the depth
threshold     sphere of 1.6 times the depth, voxels within 2.5 noise units of the disc's median
airbrush      the brush of github.com/FredrikNysjo/ichseg, delta scale 2, sensitivity 5,
              120 frames a stroke, image scaled to the crop's 1st and 99th percentile
random walker scikit-image, beta 130, on the three features in noise units; seeds of all strokes
fast marching SimpleITK, fronts from the seeds of both kinds, speed 1 / (1 + (slope / noise)^2)

NoC@85 and NoC@90: strokes until Dice reaches .85 and .90, counted as budget + 1 where it does not;
``fail`` is the share of those. A regression is a stroke that lowers Dice by more than .001. Times
are ms per stroke of the method alone. Quick: the peers start from nothing only, and the two slow
ones on one case of each CNR with 5 strokes at most. Phantoms were drawn by this project and their
noise is that which the brush expects: the numbers compare methods, and say nothing of patients.
The real breast (MAMAMIA_REAL_DATA, default ../shared/data) is one small crop of one phase.
"""

import argparse
import os
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import SimpleITK as sitk  # noqa: N813 - the name that its own documentation uses
from numpy.typing import NDArray
from scipy.ndimage import distance_transform_edt, gaussian_filter, label
from skimage.segmentation import random_walker

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import Case, Phase
from napari_mamamia.core.edits import Action, Brush, Tool, Voxel
from napari_mamamia.core.errors import MamamiaError
from napari_mamamia.core.grid import Grid
from napari_mamamia.io.data_set.volumes import read_labels, read_volume
from napari_mamamia.metrics.overlap import dice
from napari_mamamia.metrics.surface import hausdorff95, nsd, surface_distances
from napari_mamamia.phantom import PhantomSpec, TumourKind, TumourSpec, make_phantom
from napari_mamamia.segmentation.kinetic.kinetic import KineticSegmenter
from napari_mamamia.segmentation.model.segmenter import Click
from napari_mamamia.smartpaint.brush.features import FeatureImages, measure_features
from napari_mamamia.smartpaint.brush.reach import painted_radius_mm
from napari_mamamia.smartpaint.grow.grow import grow
from napari_mamamia.smartpaint.grow.start import Outline
from napari_mamamia.smartpaint.session.session import EditingSession

REAL_DATA = Path(os.environ.get("MAMAMIA_REAL_DATA", Path(__file__).parents[2] / "shared/data"))
BUDGET = 25
JITTER_MM, WRONG_SIDE = 1.5, 0.05
SMART_FACTOR, SPHERE_FACTOR = 1.6, 1.3
LIMITS_MM = (1.0, 30.0)
REGRESSION = 0.001
SHAPE, SPACING = (28, 64, 64), (2.0, 0.8, 0.8)
LONGEST_MM = 30.0
AFTER = (1, 5, 10, 20)
SLOW = ("random walker", "fast marching")

Bools = NDArray[np.bool_]
Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Scene:
    """A case, its features and its reference; `groups` are lines of the table it counts for."""

    name: str
    groups: tuple[str, ...]
    case: Case
    reference: Bools
    images: FeatureImages

    @property
    def spacing_mm(self) -> tuple[float, float, float]:
        """Spacing of the crop along (z, y, x)."""
        return self.case.grid.spacing_mm


@dataclass(frozen=True)
class Gesture:
    """What the robot's hand did: from `press` to `release` (voxels), the error's depth."""

    press: Voxel
    release: Voxel
    action: Action
    depth_mm: float

    def places(self, spacing_mm: Sequence[float], step_mm: float) -> list[Voxel]:
        """Return places from press to release, about `step_mm` apart."""
        first, last = np.array(self.press), np.array(self.release)
        length = float(np.linalg.norm((last - first) * spacing_mm))
        shares = np.linspace(0, 1, 1 + int(length / step_mm))
        return [tuple(first + share * (last - first)) for share in shares]


# --------------------------------------------------------------------- cases


def phantom_scene(kind: TumourKind, cnr: float, seed: int, *, fat_suppressed: bool) -> Scene:
    """Return a crop of 56 x 51 x 51 mm around a phantom's tumour of 30 mm."""
    tumour = TumourSpec(LONGEST_MM, kind)
    coarse = PhantomSpec(seed=seed, tumours=(tumour,), fat_suppressed=fat_suppressed)
    found = make_phantom(coarse)
    z, y, x = Box.around(found.reference.array).centre
    centre = found.case.grid.affine @ (x, y, z, 1.0)
    spec = PhantomSpec(
        seed=seed,
        tumours=(tumour,),
        fat_suppressed=fat_suppressed,
        shape=SHAPE,
        spacing_mm=SPACING,
        field_centre_mm=(float(centre[0]), float(centre[1]), float(centre[2])),
        contrast_to_noise=cnr,
    )
    made = make_phantom(spec)
    fat = "" if fat_suppressed else ", fat bright"
    images = measure_features(made.case)
    name = f"{kind}, CNR {cnr:g}{fat}, seed {seed}"
    return Scene(name, (f"CNR {cnr:g}{fat}", f"{kind}"), made.case, made.reference.array, images)


def real_scene() -> Scene | str:
    """Return a crop of the real breast, or why there is none."""
    folder = REAL_DATA / "breast1"
    if not folder.exists():
        return f"breast1 left out: {folder} is absent (set MAMAMIA_REAL_DATA)"
    header, values = read_volume(folder / "breast1_image.nrrd")
    labels = read_labels(folder / "breast1_label.nrrd")
    box = labels.box.grown((8, 25, 25), values.shape)
    grid = Grid(box.shape, np.diag([*header.grid.spacing_mm[::-1], 1.0]))
    case = Case("breast1", grid, values[box.slices][np.newaxis], (Phase(0),))
    images = measure_features(case)
    return Scene("breast1", ("breast1 (real)",), case, labels.cut(box) > 0, images)


def scenes(*, full: bool) -> list[Scene]:
    kinds = tuple(TumourKind)
    made = []
    for cnr in (1.5, 2.0, 3.0, 5.0):
        for fat_suppressed in (True, False):
            for seed in range(2 if full else 1):
                for kind in kinds if full or fat_suppressed else kinds[:1]:
                    if full or (cnr in (2.0, 3.0, 5.0) and (fat_suppressed or cnr == 3.0)):
                        made.append(phantom_scene(kind, cnr, seed, fat_suppressed=fat_suppressed))
    real = real_scene()
    if isinstance(real, str):
        print(real)
    else:
        made.append(real)
    return made


# -------------------------------------------------------------- start masks


def moved_edge(scene: Scene, mm: float) -> Bools:
    """Return the reference grown (or, below 0, shrunk) by so many mm."""
    inside = distance_transform_edt(scene.reference, scene.spacing_mm)
    outside = distance_transform_edt(~scene.reference, scene.spacing_mm)
    return (outside <= mm) if mm > 0 else (inside > -mm)


def outlined(scene: Scene) -> Bools:
    """Grow one outline of the largest slice, its contour 1.2 mm off (one standard deviation)."""
    index = int(scene.reference.sum(axis=(1, 2)).argmax())
    flat, spacing = scene.reference[index], scene.spacing_mm[1:]
    signed = distance_transform_edt(flat, spacing) - distance_transform_edt(~flat, spacing)
    rough = gaussian_filter(np.random.default_rng(5).standard_normal(flat.shape), 5)
    outline = signed + 1.2 * rough / rough.std() > 0
    if not outline.any():
        outline = flat
    grown = grow(scene.images, scene.case.grid, [Outline(0, index, outline)])
    mask = np.zeros(scene.reference.shape, dtype=np.bool_)
    mask[grown.box.slices] = grown.mask
    return mask


def predicted(scene: Scene) -> Bools:
    depth = distance_transform_edt(scene.reference, scene.spacing_mm)
    z, y, x = np.unravel_index(int(depth.argmax()), depth.shape)
    prompt = Click((int(z), int(y), int(x)))
    return np.array(KineticSegmenter().predict(scene.case, prompt).mask.array)


STARTS: dict[str, Callable[[Scene], Bools]] = {
    "empty": lambda scene: np.zeros(scene.reference.shape, dtype=np.bool_),
    "one outline, grown": outlined,
    "kinetic, one click": predicted,
    "eroded 2 mm": lambda scene: moved_edge(scene, -2.0),
    "dilated 2 mm": lambda scene: moved_edge(scene, 2.0),
}

# ------------------------------------------------------------------- methods


class SmartBrush:
    """The brush of this project, through its editing session."""

    def __init__(self, scene: Scene, start: Bools) -> None:
        self.scene = scene
        self.labels = start.astype(np.uint8)
        self.session = EditingSession("A", scene.case.grid, self.labels, scene.images)
        self.plain = False

    def stroke(self, gesture: Gesture) -> None:
        """Do what the gesture asks for."""
        tool, factor = (Tool.SPHERE, 1.0) if self.plain else (Tool.SMARTPAINT, SMART_FACTOR)
        radius = float(np.clip(factor * gesture.depth_mm, *LIMITS_MM))
        brush = Brush(tool=tool, action=gesture.action, radius_mm=radius)
        self.session.press(gesture.press, brush)
        if not self.plain:
            self.session.drag(gesture.release)
        self.session.release()

    def judge(self, gain: float) -> None:
        """Take the plain sphere next after a stroke without gain."""
        self.plain = not self.plain and gain <= 0

    @property
    def mask(self) -> Bools:
        """The mask as it is."""
        return self.labels > 0


class Local:
    """A brush that sets the voxels of its sphere, or some of them."""

    factor = SPHERE_FACTOR

    def __init__(self, scene: Scene, start: Bools) -> None:
        self.scene, self.mask = scene, start.copy()
        self.post = scene.images.in_box(Box.whole(start.shape))[0]

    def judge(self, gain: float) -> None:
        """Take no notice: this method has no second tool."""

    def near(self, centre: Voxel, radius_mm: float) -> Floats:
        """Return each voxel's distance from `centre` in radii."""
        z, y, x = (
            (np.arange(n) - c) * s
            for n, c, s in zip(self.mask.shape, centre, self.scene.spacing_mm, strict=True)
        )
        return np.sqrt(z[:, None, None] ** 2 + y[:, None] ** 2 + x**2) / radius_mm

    def stroke(self, gesture: Gesture) -> None:
        """Do what the gesture asks for."""
        radius = float(np.clip(self.factor * gesture.depth_mm, *LIMITS_MM))
        for place in gesture.places(self.scene.spacing_mm, radius / 4):
            away = self.near(place, radius)
            self.mask[self.chosen(away, radius)] = gesture.action is Action.ADD

    def chosen(self, away: Floats, radius_mm: float) -> Bools:
        """Return the voxels that a dab sets."""
        return away <= 1

    def middle(self, away: Floats, radius_mm: float) -> float:
        """Return the median of the image within 1.5 mm."""
        disc = self.post[away * radius_mm <= np.maximum(1.5, (away * radius_mm).min() + 1e-6)]
        return float(np.median(disc))


class Threshold(Local):
    """A sphere that sets voxels within 2.5 noise units of the disc's median."""

    factor = SMART_FACTOR

    def chosen(self, away: Floats, radius_mm: float) -> Bools:
        """Return the voxels that a dab sets."""
        unlike = np.abs(self.post - self.middle(away, radius_mm))
        return (away <= 0.893) & (unlike <= 2.5 * self.scene.images.noise[0])


class Airbrush(Local):
    """The airbrush of the facts, A2: opacity 0.05 a frame, compared with the centre voxel."""

    factor = SMART_FACTOR
    frames, delta_scale, sensitivity = 120, 2.0, 5

    def __init__(self, scene: Scene, start: Bools) -> None:
        super().__init__(scene, start)
        self.soft = start.astype(np.float64)
        low, high = np.percentile(self.post, (1, 99))
        self.shown = (self.post - low) / max(high - low, 1e-9)

    def stroke(self, gesture: Gesture) -> None:
        """Do what the gesture asks for."""
        radius = float(np.clip(self.factor * gesture.depth_mm, *LIMITS_MM))
        places = gesture.places(self.scene.spacing_mm, radius / 4)
        for place in places:
            away = self.near(place, radius)
            here = self.shown[np.unravel_index(int(away.argmin()), away.shape)]
            alike = np.clip(1 - self.delta_scale * np.abs(self.shown - here), 0, None)
            alpha = 0.05 * np.clip(1 - away, 0, None) * alike**self.sensitivity
            left = (1 - alpha) ** max(round(self.frames / len(places)), 1)
            goal = float(gesture.action is Action.ADD)
            self.soft = goal + (self.soft - goal) * left
        self.mask = self.soft >= 0.5


class Seeded(Local):
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
            away = self.near(place, radius)
            self.seeds[(away <= 1) | (away == away.min())] = (
                1 if gesture.action is Action.ADD else 2
            )
        if (self.seeds == 1).any():
            self.mask = self.label()

    def label(self) -> Bools:
        """Return the voxels inside, by the seeds as they are."""
        return np.asarray(self.seeds == 1)


class RandomWalker(Seeded):
    """scikit-image's random walker."""

    def label(self) -> Bools:
        """Return the voxels that a walker reaches from inside first."""
        data = np.moveaxis(self.features, 0, -1).astype(np.float64)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = random_walker(
                data,
                self.seeds,
                beta=130,
                mode="cg_j",
                tol=1e-2,
                spacing=np.array(self.scene.spacing_mm) / min(self.scene.spacing_mm),
                channel_axis=-1,
            )
        return np.asarray(found == 1)


class FastMarching(Seeded):
    """SimpleITK's fast marching, one front for each kind of seed: the first to arrive wins."""

    def label(self) -> Bools:
        """Return the voxels that the front from inside reaches first."""
        spacing = tuple(float(s) for s in self.scene.spacing_mm[::-1])
        image = sitk.GetImageFromArray(self.features[0].astype(np.float32))
        image.SetSpacing(spacing)
        slope = sitk.GetArrayFromImage(sitk.GradientMagnitudeRecursiveGaussian(image, 1.0))
        speed = sitk.GetImageFromArray((1 / (1 + slope.astype(np.float64) ** 2)) + 1e-3)
        speed.SetSpacing(spacing)
        arrivals = []
        for kind in (1, 2):
            points = [(int(x), int(y), int(z)) for z, y, x in np.argwhere(self.seeds == kind)]
            front = sitk.FastMarching(speed, points, 1.0, 1e6)
            arrivals.append(sitk.GetArrayFromImage(front))
        return np.asarray(arrivals[0] < arrivals[1])


METHODS: dict[str, Callable[[Scene, Bools], Any]] = {
    "smart brush": SmartBrush,
    "sphere": Local,
    "threshold": Threshold,
    "airbrush": Airbrush,
    "random walker": RandomWalker,
    "fast marching": FastMarching,
}

# --------------------------------------------------------------------- robot


def next_gesture(
    scene: Scene, mask: Bools, rng: np.random.Generator, *, sweeps: bool
) -> Gesture | None:
    """Return what the robot does next; None where nothing is wrong."""
    wrong = mask != scene.reference
    parts, n_parts = label(wrong)
    if not n_parts:
        return None
    part = parts == 1 + int(np.bincount(parts.ravel())[1:].argmax())
    box = Box.around(part)
    inner = distance_transform_edt(np.pad(part[box.slices], 1), scene.spacing_mm)
    depths = np.zeros(part.shape)
    depths[box.slices] = inner[1:-1, 1:-1, 1:-1]
    at = np.unravel_index(int(depths.argmax()), part.shape)
    depth = float(depths[at])
    action = Action.ADD if scene.reference[at] else Action.ERASE
    deep = np.argwhere(depths[at[0]] >= 0.8 * depth)
    far = deep[((deep - at[1:]) ** 2).sum(axis=1).argmax()]
    press, release = np.array(at, dtype=float), np.array([at[0], *far], dtype=float)
    if not sweeps:
        release = press.copy()
    if rng.random() < WRONG_SIDE:
        others = np.argwhere(~part[at[0]])
        press[1:] = others[((others - at[1:]) ** 2).sum(axis=1).argmin()]
        release = press.copy()
    shift = np.array([0.0, *rng.normal(0, JITTER_MM, 2)]) / scene.spacing_mm
    return Gesture(tuple(press + shift), tuple(release + shift), action, depth)


@dataclass
class Run:
    """What one robot reached: Dice from the start on, one for each stroke, and the last mask's."""

    scores: list[float]
    ms: list[float] = field(default_factory=list)
    nsd_1mm: float = 0.0
    nsd_2mm: float = 0.0
    hd95_mm: float = float("nan")

    def strokes_to(self, target: float, budget: int) -> int:
        """Return the strokes until Dice is `target`, one more than `budget` where it never is."""
        return next((k for k, d in enumerate(self.scores) if d >= target), budget + 1)

    def after(self, strokes: int) -> float:
        """Return Dice after so many strokes, or at the end."""
        return self.scores[min(strokes, len(self.scores) - 1)]

    @property
    def regressions(self) -> int:
        """Strokes that lowered Dice."""
        return int(np.count_nonzero(np.diff(self.scores) < -REGRESSION))


def robot(scene: Scene, start: Bools, method: str, budget: int, *, sweeps: bool = True) -> Run:
    tool = METHODS[method](scene, start)
    rng = np.random.default_rng(11)
    run = Run([dice(scene.reference, start)])
    for _ in range(budget):
        gesture = next_gesture(scene, tool.mask, rng, sweeps=sweeps)
        if gesture is None:
            break
        begun = time.perf_counter()
        tool.stroke(gesture)
        run.ms.append((time.perf_counter() - begun) * 1e3)
        run.scores.append(dice(scene.reference, tool.mask))
        tool.judge(run.scores[-1] - run.scores[-2])
    if tool.mask.any():
        apart = surface_distances(scene.reference, tool.mask, np.diag(scene.spacing_mm))
        run.nsd_1mm, run.nsd_2mm = nsd(apart, 1.0), nsd(apart, 2.0)
        run.hd95_mm = hausdorff95(apart)
    return run


# --------------------------------------------------------------------- table

HEAD = (
    f"{'start':20}{'method':15}{'cases':>6}{'D@0':>6}{'NoC85':>7}{'fail':>6}{'NoC90':>7}{'fail':>6}"
    + "".join(f"{f'D@{k}':>6}" for k in AFTER)
    + f"{'NSD1':>6}{'NSD2':>6}{'HD95':>6}{'regr':>6}{'ms 50':>8}{'ms 95':>8}"
)


def line(first: str, second: str, runs: Sequence[Run], budget: int) -> str:
    cells = [f"{first:20}{second:15}{len(runs):6d}{np.mean([r.scores[0] for r in runs]):6.2f}"]
    for target in (0.85, 0.90):
        counts = np.array([run.strokes_to(target, budget) for run in runs])
        cells.append(f"{counts.mean():7.1f}{np.mean(counts > budget):6.2f}")
    cells += [f"{np.mean([run.after(k) for run in runs]):6.2f}" for k in AFTER]
    cells += [f"{np.mean([getattr(run, n) for run in runs]):6.2f}" for n in ("nsd_1mm", "nsd_2mm")]
    cells.append(f"{np.nanmean([run.hd95_mm for run in runs]):6.1f}")
    times = [ms for run in runs for ms in run.ms] or [0.0]
    cells.append(f"{np.mean([run.regressions for run in runs]):6.1f}")
    return "".join(cells) + f"{np.median(times):8.1f}{np.percentile(times, 95):8.1f}"


def started(scene: Scene, name: str) -> Bools | None:
    try:
        return STARTS[name](scene)
    except MamamiaError as error:
        print(f"  {scene.name}: no start by {name}: {error}")
        return None


def compare(
    cases: Sequence[Scene],
    name: str,
    methods: Sequence[str],
    budget: int,
    *,
    full: bool,
    sweeps: bool,
) -> None:
    masks = [(scene, mask) for scene in cases if (mask := started(scene, name)) is not None]
    for method in methods:
        quick = method in SLOW and not full
        limit = min(budget, 5) if quick else budget
        groups: dict[str, list[Run]] = {}
        phantoms = []
        for scene, mask in masks:
            if quick and scene.groups[0] in groups:
                continue
            run = robot(scene, mask, method, limit, sweeps=sweeps)
            for group in scene.groups:
                groups.setdefault(group, []).append(run)
            phantoms += [run] if len(scene.groups) > 1 else []
        shown = method + (" *" if quick else "")
        print(line(name, shown, phantoms, limit), flush=True)
        for group, runs in groups.items():
            if name == "empty" or "real" in group:
                print(line("  " + group, shown, runs, limit), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true", help="all methods from all starts")
    parser.add_argument("--clicks", action="store_true", help="press, do not sweep")
    parser.add_argument("--budget", type=int, default=BUDGET)
    parser.add_argument("--start", choices=STARTS, help="this start alone")
    arguments = parser.parse_args()
    begun = time.perf_counter()
    cases = scenes(full=arguments.full)
    drawn = painted_radius_mm(Brush(radius_mm=1.0))
    print(
        f"{len(cases)} cases in {time.perf_counter() - begun:.0f} s; budget {arguments.budget}; "
        f"the smart brush's circle is {drawn * SMART_FACTOR:.2f} x depth; * at most 5 strokes, "
        "one case of each group"
    )
    print(HEAD)
    for name in [arguments.start] if arguments.start else STARTS:
        every = arguments.full or name == "empty"
        methods = tuple(METHODS) if every else ("smart brush", "sphere")
        compare(
            cases,
            name,
            methods,
            arguments.budget,
            full=arguments.full,
            sweeps=not arguments.clicks,
        )
    print(f"{time.perf_counter() - begun:.0f} s in all")


if __name__ == "__main__":
    main()
