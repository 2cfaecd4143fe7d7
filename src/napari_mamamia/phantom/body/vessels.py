"""Enhancing structures that are not tumours: curved vessels, and axillary lymph nodes.

Vessels run through the breasts, along the sternum, and to each tumour; their numbers, radii (0.5 to
1.7 mm) and curvature are our choice. Nodes are round and enhance early and strongly; their number,
positions and sizes are our choice. A radiologist would not take them for a breast tumour, but a
rule on enhancement and shape does.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.phantom.body.anatomy import Body, Breast
from napari_mamamia.phantom.body.points import Bounds, Points
from napari_mamamia.phantom.body.shapes import Array
from napari_mamamia.phantom.spec import PhantomSpec
from napari_mamamia.phantom.streams import Part, stream

_STEPS: Final = 18
_VESSELS_PER_BREAST: Final = 5


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
        """Yield each straight segment as a vessel."""
        for k in range(len(self.path_mm) - 1):
            yield Tube(self.path_mm[k : k + 2], self.radius_mm[k : k + 2])

    def distance(self, points: Points) -> tuple[Array, float]:
        """Return the distance to the first straight segment, and its mean radius in mm."""
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
    """Return a vessel from the chest's outer side that ends inside a tumour."""
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
    """Return a cubic curve from `start` to `end` that bends to the side and meanders slightly."""
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
    """An ellipsoid: its centre in RAS mm, and its radii along right, anterior and superior."""

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
    """Return the lymph nodes of both axillae, each between ribs and skin.

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
