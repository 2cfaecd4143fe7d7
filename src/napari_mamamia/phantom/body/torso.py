"""Structures of the body: torso, breast tissue, tumours, vessels and lymph nodes.

The positions and sizes of structures behind the breasts are our choice. They follow what a
radiologist expects in a prone breast examination: the heart lies on the patient's left, the dome of
the liver low on the right.

The constants that shape the lobes, spicules, rim and clumps of a tumour are fractions of its
longest axis and are our choice.

Vessels run through the breasts, along the sternum, and to each tumour; their numbers, radii (0.5 to
1.7 mm) and curvature are our choice. Lymph nodes are round and enhance early and strongly; their
number, positions and sizes are our choice. A radiologist would not mistake a node for a breast
tumour, but a rule based on enhancement and shape would.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.errors import CaseError
from napari_mamamia.phantom.body.anatomy import Body, Breast, Depths
from napari_mamamia.phantom.body.canvas import Canvas
from napari_mamamia.phantom.body.geometry import (
    Array,
    Bounds,
    Field,
    Points,
    ellipsoid,
    filled,
    make_field,
    quadric,
    smoothstep,
)
from napari_mamamia.phantom.body.tissue import Tissue
from napari_mamamia.phantom.spec import PhantomSpec, TumourKind, TumourSpec
from napari_mamamia.phantom.streams import Part, stream

_WALL_MM: Final = 12.0
_RIB_PITCH_MM: Final = 26.0
_UNEVEN_MM: Final = 3.5
_ENDLESS: Final = (-1e4, 1e4)
_LONG: Final = 5e3
FIBROGLANDULAR_SHARE: Final = {"a": 0.07, "b": 0.17, "c": 0.34, "d": 0.55}
"""Fraction of glandular tissue in the breast for each BI-RADS density (our choice).

Volume fractions in MRI are lower than the area fractions (25, 50 and 75 %) that BI-RADS used for
mammograms.
"""

_PLANNING_STEP_MM: Final = 4.0
_SOFT_EDGE: Final = 0.16
_PATCHINESS: Final = 0.35
_STREAK_FAT: Final = 0.42
_PLACING_STEP_MM: Final = 4.0
_LOBE_MM: Final = 0.09
_SPICULE_SHARPNESS: Final = 90.0
_RIM_SHARE: Final = 0.2
_THINNEST_RIM_MM: Final = 2.0
_CLUMP_FILL: Final = -0.35
_STEPS: Final = 18
_VESSELS_PER_BREAST: Final = 5


@dataclass(frozen=True, slots=True)
class _Organ:
    """An ellipsoidal organ: its centre (right, anterior of the ribs, superior) and radii, in mm.

    The anterior position is measured from the front of the ribs. `wall_mm` is the smallest distance
    from the organ to the outside of the ribs, `lowest_mm` the position of its lower end.
    """

    tissue: Tissue
    centre_mm: tuple[float, float, float]
    radii_mm: tuple[float, float, float]
    wall_mm: float = _WALL_MM
    lowest_mm: float = -1e4


# Painted in this order: later organs lie within the earlier ones or cover them.
_ORGANS: Final = (
    _Organ(Tissue.FAT, (-4, -95, 0), (34, 92, _LONG)),
    _Organ(Tissue.LIVER, (58, -100, -165), (112, 100, 98), wall_mm=9),
    _Organ(Tissue.FAT, (-26, -58, -22), (60, 50, 66)),
    _Organ(Tissue.HEART_BLOOD, (4, -96, 20), (40, 24, 30)),
    _Organ(Tissue.MYOCARDIUM, (-12, -42, -24), (43, 26, 45)),
    _Organ(Tissue.HEART_BLOOD, (-11, -42, -23), (39, 22, 41)),
    _Organ(Tissue.MYOCARDIUM, (-44, -64, -34), (36, 35, 46)),
    _Organ(Tissue.HEART_BLOOD, (-44, -65, -31), (24, 23, 34)),
    _Organ(Tissue.BONE, (0, -172, 0), (22, 18, _LONG)),
    _Organ(Tissue.HEART_BLOOD, (-24, -146, 0), (12, 12, _LONG)),
    _Organ(Tissue.HEART_BLOOD, (14, -74, 0), (14, 14, _LONG), lowest_mm=26),
)


def paint_torso(canvas: Canvas, body: Body, depths: Depths) -> None:
    """Paint the chest wall and the organs over the body fat.

    Parameters
    ----------
    canvas
        The block to paint on.
    body
        The patient's outline.
    depths
        Distances to skin, ribs and chest muscle.
    """
    front = body.chest.front_mm
    window = canvas.points.window((_ENDLESS, (-1e4, front + 40), _ENDLESS))
    if window is None:
        return
    voxel_mm = canvas.voxel_mm
    points, near = canvas.points.block(window), depths.block(window)
    muscle = np.maximum(near.muscle, near.skin + 3)
    canvas.paint(Tissue.MUSCLE, filled(muscle, voxel_mm), window)
    canvas.paint(Tissue.BONE, _make_ribs(points, near.ribs, voxel_mm), window)
    canvas.paint(Tissue.LUNG, filled(near.ribs + np.float32(_WALL_MM), voxel_mm), window)
    for organ in _ORGANS:
        _paint_organ(canvas, organ, body, depths)


def _make_ribs(points: Points, ribs: Array, voxel_mm: float) -> Array:
    """Return the fraction of bone marrow at each point, for the slanting ribs and the sternum."""
    aside = np.abs(points.x_mm)
    slant = (points.z_mm + np.float32(0.45) * aside) * np.float32(2 * np.pi / _RIB_PITCH_MM)
    between = np.float32(-5.0) * np.cos(slant)
    rib = np.maximum(np.abs(ribs + 6) - 3, between)
    breast_bone = np.maximum(aside - 15, np.abs(ribs + 6) - 5)
    rib = np.where(aside > 22, rib, np.float32(9))
    return filled(np.minimum(rib, breast_bone), voxel_mm)


def _paint_organ(canvas: Canvas, organ: _Organ, body: Body, depths: Depths) -> None:
    x, behind, z = organ.centre_mm
    centre = (x, body.chest.front_mm + behind, z)
    window = canvas.points.window(_find_bounds(organ, centre))
    if window is None:
        return
    points = canvas.points.block(window)
    distance = ellipsoid(points, centre, organ.radii_mm)
    distance = distance + np.float32(_UNEVEN_MM) * depths.uneven[window]
    inside = np.maximum(distance, depths.ribs[window] + np.float32(organ.wall_mm))
    canvas.paint(organ.tissue, filled(inside, canvas.voxel_mm), window)


def _find_bounds(organ: _Organ, centre_mm: tuple[float, float, float]) -> Bounds:
    margin = 5 + 3 * _UNEVEN_MM
    (x0, x1), (y0, y1), (z0, z1) = (
        (c - r - margin, c + r + margin) for c, r in zip(centre_mm, organ.radii_mm, strict=True)
    )
    return ((x0, x1), (y0, y1), (max(z0, organ.lowest_mm), z1))


_STREAK_WIDTH: Final = np.float32(0.3)


@dataclass(frozen=True, slots=True, eq=False)
class Grain:
    """Values of three texture fields at a block of points, from coarse to fine."""

    coarse: Array
    middle: Array
    fine: Array

    @property
    def brightness(self) -> Array:
        """Factor with a mean of about 1 by which the glandular signal varies."""
        factor: Array = 1 + 0.07 * self.middle + 0.06 * self.fine
        return factor


@dataclass(frozen=True, slots=True, eq=False)
class Parenchyma:
    """Fibroglandular tissue, defined by a score at each point and a threshold for each breast.

    Structures of four sizes shape the tissue (`coarse` to `fine`, with steps of 14 to 3 mm).
    `patches` makes its enhancement uneven. `sheets` holds the surfaces in which ligaments run.
    """

    body: Body
    thresholds: tuple[float, ...]
    coarse: Field
    middle: Field
    fine: Field
    sheets: Field
    patches: Field

    def share(self, breast: Breast, points: Points, depths: Depths, grain: Grain) -> Array:
        """Return the fraction of fibroglandular tissue at every point of a block, 0 to 1."""
        threshold = self.thresholds[self.body.breasts.index(breast)]
        score = self.score(breast, points, depths, grain)
        solid = smoothstep(score, threshold - _SOFT_EDGE, threshold + _SOFT_EDGE)
        streaks = np.exp(-(((grain.fine + grain.middle) / _STREAK_WIDTH) ** 2))
        share: Array = solid * (1 - np.float32(_STREAK_FAT) * streaks)
        return share

    def ligaments(self, points: Points, depths: Depths) -> Array:
        """Return the fraction of ligament sheets between gland and skin, at most 0.45."""
        thin = np.exp(-((self.sheets.at(points) / np.float32(0.09)) ** 2))
        inside = smoothstep(-depths.skin, 1, 4) * smoothstep(depths.muscle, 0, 4)
        share: Array = np.float32(0.45) * thin * inside
        return share

    def grain(self, points: Points) -> Grain:
        """Return the tissue texture at every point of a block."""
        return Grain(self.coarse.at(points), self.middle.at(points), self.fine.at(points))

    def enhancement(self, points: Points) -> Array:
        """Return the factor (mean 1) by which glandular enhancement varies in patches and foci."""
        # Half the variance is subtracted, because the exponential raises the mean by that amount.
        gain: Array = np.exp(_PATCHINESS * self.patches.at(points) - _PATCHINESS**2 / 2)
        return gain

    def score(self, breast: Breast, points: Points, depths: Depths, grain: Grain) -> Array:
        """Return the glandular score of each point.

        The points with the highest scores become gland first.
        """
        aside, forward, up = breast.offsets(points)
        rx, ry, rz = (np.float32(radius) for radius in breast.radii_mm)
        narrowing = np.sqrt(np.clip(1 - (forward / ry) ** 2, 0.04, 1))
        radial = np.sqrt((aside / rx) ** 2 + (up / rz) ** 2) / narrowing
        outer_upper = np.float32(breast.outward) * aside / rx + up / rz
        score = 1 - radial + np.float32(0.2) * outer_upper
        score = score + 0.26 * grain.coarse + 0.18 * grain.middle + 0.16 * grain.fine
        under_skin = 1 - smoothstep(-depths.skin, 3, 13)
        behind = 1 - smoothstep(depths.muscle, 1, 14)
        score = score - 1.2 * under_skin * smoothstep(radial, 0.05, 0.3) - 1.5 * behind
        # The score is below every threshold, so that no density puts gland into the muscle.
        blocked: Array = np.where(depths.muscle < 0, np.float32(-9), score)
        return blocked


def grow_parenchyma(spec: PhantomSpec, body: Body) -> Parenchyma:
    """Return the fibroglandular tissue for the breast density of `spec`.

    The threshold is computed on a separate lattice, so that it does not depend on the grid.

    Parameters
    ----------
    spec
        The parameters of the phantom.
    body
        The patient's outline.
    """
    fields = [
        make_field(stream(spec.seed, Part.PARENCHYMA, index), step)
        for index, step in enumerate((14.0, 6.5, 3.2, 13.0))
    ]
    patches = make_field(stream(spec.seed, Part.ENHANCEMENT), 6.0)
    # Thresholds are quantiles of scores, and the scores need a parenchyma without thresholds.
    open_ended = Parenchyma(body, (), fields[0], fields[1], fields[2], fields[3], patches)
    thresholds = []
    for breast in body.breasts:
        points = Points.lattice(breast.bounds_mm, _PLANNING_STEP_MM)
        depths = body.depths(points)
        inside = body.in_breast(breast, points, depths) < -2
        scores = open_ended.score(breast, points, depths, open_ended.grain(points))[inside]
        share = FIBROGLANDULAR_SHARE[spec.breast_density]
        thresholds.append(float(np.quantile(scores, 1 - share)))
    return Parenchyma(body, tuple(thresholds), fields[0], fields[1], fields[2], fields[3], patches)


@dataclass(frozen=True, slots=True, eq=False)
class Tumour:
    """A tumour with its position, axes and surface.

    `rotation` converts RAS directions to the axes of the tumour (longest first). `lobes` roughens
    its outline, `clumps` divides a non-mass tumour, and `mottle` makes the enhancement uneven.
    `rays` holds the unit vectors of the spicules and `ray_mm` their lengths.
    """

    spec: TumourSpec
    centre_mm: tuple[float, float, float]
    rotation: NDArray[np.float32]
    lobes: Field
    clumps: Field
    mottle: Field
    rays: NDArray[np.float32]
    ray_mm: NDArray[np.float32]

    @property
    def radii_mm(self) -> tuple[float, float, float]:
        """Half axes of the ellipsoid before its surface is roughened, longest first."""
        longest = self.spec.longest_mm / 2
        second, third = self.spec.axis_ratios
        return (longest, longest * second, longest * third)

    @property
    def bounds_mm(self) -> Bounds:
        """Bounding box of the tumour with a margin for partial volume."""
        return _make_bounds(self.centre_mm, self.spec.longest_mm)

    def distance(self, points: Points) -> Array:
        """Return the distance to the tumour's surface; negative inside, necrotic core included."""
        offsets = self._turn_points(points)
        distance = quadric(offsets, self.radii_mm)
        if self.spec.roughness > 0:
            height = _LOBE_MM * self.spec.longest_mm * self.spec.roughness
            distance = distance - np.float32(height) * self.lobes.at(points)
        if self.spec.spicules:
            distance = distance - self._raise_spikes(offsets)
        if self.spec.kind == TumourKind.NON_MASS:
            gaps = (np.float32(_CLUMP_FILL) - self.clumps.at(points)) * np.float32(
                self.clumps.step_mm
            )
            distance = np.maximum(distance, gaps)
        return distance

    def core_distance(self, distance: Array) -> Array:
        """Return the distance to the necrotic core of a rim-enhancing tumour."""
        rim = max(_RIM_SHARE * self.spec.longest_mm, _THINNEST_RIM_MM)
        return distance + np.float32(rim)

    def enhancement(self, points: Points) -> Array:
        """Return the factor with a mean of 1 by which enhancement varies inside the tumour.

        The factor is 1 everywhere in homogeneous tumours.
        """
        spread = 0.25 * min(1.0, 2 * self.spec.roughness)
        gain: Array = np.exp(spread * self.mottle.at(points) - spread**2 / 2)
        return gain

    def _turn_points(self, points: Points) -> tuple[Array, Array, Array]:
        x, y, z = (
            place - np.float32(centre)
            for place, centre in zip(
                (points.x_mm, points.y_mm, points.z_mm), self.centre_mm, strict=True
            )
        )
        a, b, c = (row[0] * x + row[1] * y + row[2] * z for row in self.rotation)
        return a, b, c

    def _raise_spikes(self, offsets: tuple[Array, Array, Array]) -> Array:
        """Return the height in mm by which spicules raise the surface.

        Each spicule is a cone around its unit vector.
        """
        length = np.sqrt(offsets[0] ** 2 + offsets[1] ** 2 + offsets[2] ** 2) + np.float32(1e-3)
        lift: Array = np.zeros_like(length)
        for ray, height in zip(self.rays, self.ray_mm, strict=True):
            dot = offsets[0] * ray[0] + offsets[1] * ray[1] + offsets[2] * ray[2]
            cone = np.exp(np.float32(_SPICULE_SHARPNESS) * (dot / length - 1))
            lift = np.maximum(lift, height * cone)
        return lift


def grow_tumours(spec: PhantomSpec, body: Body, parenchyma: Parenchyma) -> tuple[Tumour, ...]:
    """Return the tumours of `spec`, each inside its breast and separate from the others.

    Parameters
    ----------
    spec
        The parameters of the phantom.
    body
        The patient's outline.
    parenchyma
        The fibroglandular tissue.

    Raises
    ------
    CaseError
        If a tumour does not fit into its breast.
    """
    grown: list[Tumour] = []
    for index, tumour in enumerate(spec.tumours):
        centre = tumour.centre_mm
        if centre is None:
            rng = stream(spec.seed, Part.TUMOUR_PLACE, index)
            centre = _choose_centre(tumour, index, body, parenchyma, tuple(grown), rng)
        grown.append(_make_tumour(tumour, centre, stream(spec.seed, Part.TUMOUR_SHAPE, index)))
    return tuple(grown)


def _make_bounds(centre_mm: tuple[float, float, float], longest_mm: float) -> Bounds:
    reach = 0.85 * longest_mm + 6
    x, y, z = ((c - reach, c + reach) for c in centre_mm)
    return (x, y, z)


def _make_tumour(
    one: TumourSpec, centre_mm: tuple[float, float, float], rng: np.random.Generator
) -> Tumour:
    # Q from the QR decomposition of a random matrix is a random rotation. If Q also mirrors, the
    # ellipsoid stays the same.
    turn, _ = np.linalg.qr(rng.standard_normal((3, 3)))
    bounds = _make_bounds(centre_mm, one.longest_mm)
    lobes = make_field(rng, max(one.longest_mm / 5, 1.5), bounds)
    clumps = make_field(rng, max(one.longest_mm / 9, 2.2), bounds)
    mottle = make_field(rng, max(one.longest_mm / 8, 1.5), bounds)
    # The maximum number of spicules is always drawn, so that a larger number leaves the first
    # ones unchanged.
    rays = rng.standard_normal((60, 3))
    rays = rays / np.linalg.norm(rays, axis=1, keepdims=True)
    lengths = one.longest_mm * rng.uniform(0.08, 0.3, 60)
    spicules = slice(0, one.spicules)
    return Tumour(
        one,
        centre_mm,
        turn.astype(np.float32),
        lobes,
        clumps,
        mottle,
        rays[spicules].astype(np.float32),
        lengths[spicules].astype(np.float32),
    )


def _choose_centre(
    one: TumourSpec,
    index: int,
    body: Body,
    parenchyma: Parenchyma,
    others: tuple[Tumour, ...],
    rng: np.random.Generator,
) -> tuple[float, float, float]:
    """Return a random centre inside the breast, with a preference for glandular tissue."""
    breast = body.breast(one.side)
    points = Points.lattice(breast.bounds_mm, _PLACING_STEP_MM)
    depths = body.depths(points)
    radius = one.longest_mm / 2
    room = body.in_breast(breast, points, depths) < -(0.75 * radius + 4)
    room &= np.abs(points.z_mm - breast.centre_mm[2]) < 0.6 * breast.radii_mm[2]
    for other in others:
        offsets = (points.x_mm, points.y_mm, points.z_mm)
        away = sum((o - c) ** 2 for o, c in zip(offsets, other.centre_mm, strict=True))
        room &= away > (radius + other.spec.longest_mm / 2 + 5) ** 2
    if not room.any():
        raise CaseError(
            f"tumour {index + 1} ({one.longest_mm:g} mm) does not fit into the "
            f"{one.side} breast together with the other tumours; make the tumour smaller, set "
            "centre_mm, or change the seed"
        )
    weight = (0.05 + parenchyma.share(breast, points, depths, parenchyma.grain(points)))[
        room
    ].astype(np.float64)
    chosen = int(rng.choice(weight.size, p=weight / weight.sum()))
    z, y, x = (where[chosen] for where in np.nonzero(room))
    jitter = rng.uniform(-0.5, 0.5, 3) * _PLACING_STEP_MM
    right, anterior, superior = (
        float(along[index] + move)
        for along, index, move in zip(points.along, (x, y, z), jitter, strict=True)
    )
    return (right, anterior, superior)


@dataclass(frozen=True, slots=True, eq=False)
class Tube:
    """A vessel: `path_mm` (point, 3) in RAS mm, and `radius_mm` at each point."""

    path_mm: NDArray[np.float64]
    radius_mm: NDArray[np.float64]

    @property
    def bounds_mm(self) -> Bounds:
        """Bounding box of the vessel with a margin for partial volume."""
        margin = self.radius_mm.max() + 3.0
        low, high = self.path_mm.min(axis=0) - margin, self.path_mm.max(axis=0) + margin
        x, y, z = ((float(a), float(b)) for a, b in zip(low, high, strict=True))
        return (x, y, z)

    def pieces(self) -> Iterator["Tube"]:
        """Yield each straight segment of the vessel as a vessel of its own."""
        for k in range(len(self.path_mm) - 1):
            yield Tube(self.path_mm[k : k + 2], self.radius_mm[k : k + 2])

    def distance(self, points: Points) -> tuple[Array, float]:
        """Return the distance to the first straight segment and its mean radius, in mm."""
        start, end = self.path_mm[:2].astype(np.float32)
        axis = end - start
        offsets = (points.x_mm - start[0], points.y_mm - start[1], points.z_mm - start[2])
        dot = offsets[0] * axis[0] + offsets[1] * axis[1] + offsets[2] * axis[2]
        along = np.clip(dot / max(float(axis @ axis), 1e-6), 0, 1).astype(np.float32)
        away = [offset - along * step for offset, step in zip(offsets, axis, strict=True)]
        radius = float(self.radius_mm[:2].mean())
        distance: Array = np.sqrt(away[0] ** 2 + away[1] ** 2 + away[2] ** 2) - np.float32(radius)
        return distance, radius


def lay_vessels(spec: PhantomSpec, body: Body) -> tuple[Tube, ...]:
    """Return the vessels of the breasts and the two internal mammary vessels.

    Parameters
    ----------
    spec
        The parameters of the phantom.
    body
        The patient's outline.
    """
    tubes = [_lay_mammary_vessel(body, sign) for sign in (-1.0, 1.0)]
    for index, breast in enumerate(body.breasts):
        rng = stream(spec.seed, Part.VESSELS, index)
        tubes += [_breast_vessel(body, breast, rng) for _ in range(_VESSELS_PER_BREAST)]
    return tuple(tubes)


def feeding_tube(
    body: Body, breast: Breast, target_mm: Sequence[float], rng: np.random.Generator
) -> Tube:
    """Return a vessel that starts at the outer side of the chest and ends inside a tumour."""
    start = _chest_point(body, breast, rng, outer=True)
    radii = (float(rng.uniform(1.0, 1.5)), float(rng.uniform(0.7, 1.0)))
    return _bend_tube(start, np.asarray(target_mm, dtype=np.float64), radii, rng)


def _lay_mammary_vessel(body: Body, sign: float) -> Tube:
    z = np.linspace(-140.0, 140.0, 12)
    x = sign * (17.0 + 2.0 * np.sin(z / 31.0))
    y = body.chest.front_mm - 13.5 - body.chest.lean * z
    return Tube(np.stack([x, y, z], axis=1), np.full(12, 1.6))


def _breast_vessel(body: Body, breast: Breast, rng: np.random.Generator) -> Tube:
    start = _chest_point(body, breast, rng, outer=bool(rng.random() < 0.6))
    nipple = np.array(breast.nipple_mm)
    aside = rng.uniform(-0.35, 0.35, 2) * np.array([breast.radii_mm[0], breast.radii_mm[2]])
    end = nipple + np.array([aside[0], -rng.uniform(14, 40), aside[1]])
    radii = (float(rng.uniform(1.0, 1.7)), float(rng.uniform(0.5, 0.8)))
    return _bend_tube(start, end, radii, rng)


def _chest_point(
    body: Body, breast: Breast, rng: np.random.Generator, *, outer: bool
) -> NDArray[np.float64]:
    """Return a point in front of the chest muscle at the outer or inner edge of the breast."""
    x, _, z = breast.centre_mm
    rx, _, rz = breast.radii_mm
    out = breast.outward if outer else -breast.outward
    place = np.array([x + 0.72 * rx * out, 0.0, z + rng.uniform(-0.2, 0.6) * rz])
    chest = body.chest
    across = min(abs(place[0]) / chest.half_width_mm, 0.95)
    depth = chest.half_depth_mm * np.sqrt(1 - across**2)
    place[1] = chest.centre_y_mm + depth - chest.lean * place[2] + 15.0
    return place


def _bend_tube(
    start: NDArray[np.float64],
    end: NDArray[np.float64],
    radii_mm: tuple[float, float],
    rng: np.random.Generator,
) -> Tube:
    """Return a cubic curve from `start` to `end` with a lateral bend and a slight meander."""
    t = np.linspace(0, 1, _STEPS)[:, None]
    chord = end - start
    bulge = rng.normal(0, 0.16, (2, 3)) * float(np.linalg.norm(chord))
    first, second = start + chord / 3 + bulge[0], start + 2 * chord / 3 + bulge[1]
    path = (1 - t) ** 3 * start + 3 * t * (1 - t) ** 2 * first
    path = path + 3 * t**2 * (1 - t) * second + t**3 * end
    phases, turns = rng.uniform(0, 2 * np.pi, 3), rng.uniform(2, 5, 3)
    wriggle = np.sin(2 * np.pi * turns * t + phases) * np.sin(np.pi * t)
    path = path + 1.6 * wriggle
    return Tube(path, np.linspace(radii_mm[0], radii_mm[1], _STEPS))


@dataclass(frozen=True, slots=True)
class Node:
    """A lymph node: an ellipsoid with its centre (RAS) and radii (right, anterior, superior)."""

    centre_mm: tuple[float, float, float]
    radii_mm: tuple[float, float, float]

    @property
    def bounds_mm(self) -> Bounds:
        """Bounding box of the node with a margin for partial volume."""
        x, y, z = (
            (c - r - 3.0, c + r + 3.0) for c, r in zip(self.centre_mm, self.radii_mm, strict=True)
        )
        return (x, y, z)


def lay_nodes(spec: PhantomSpec, body: Body) -> tuple[Node, ...]:
    """Return the lymph nodes of both axillae; each lies between ribs and skin.

    Parameters
    ----------
    spec
        The parameters of the phantom.
    body
        The patient's outline.
    """
    rng = stream(spec.seed, Part.NODES)
    return tuple(
        _make_node(body, breast, rng) for breast in body.breasts for _ in range(spec.nodes)
    )


def _make_node(body: Body, breast: Breast, rng: np.random.Generator) -> Node:
    chest = body.chest
    aside, height = float(rng.uniform(98.0, 126.0)), float(rng.uniform(40.0, 85.0))
    radii = rng.uniform((3.5, 4.5, 5.0), (6.0, 8.0, 9.5))
    across = aside / chest.half_width_mm
    ribs = chest.centre_y_mm + chest.half_depth_mm * float(np.sqrt(1 - across**2))
    out = 0.5 * chest.fat_mm
    y = ribs - chest.lean * height + out * float(rng.uniform(0.6, 1.2))
    rx, ry, rz = (float(radius) for radius in radii)
    return Node((breast.outward * (aside + out), y, height), (rx, ry, rz))
