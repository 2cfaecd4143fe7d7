"""Body, breasts and chest of one patient, described by distances in RAS mm.

The patient lies prone, and the breasts hang in the anterior direction. x is 0 in the midline, z is
0 at the height of the nipples, and the front of the rib cage passes near y = -12 mm. All sizes are
our choice.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from napari_mamamia.phantom.body import geometry
from napari_mamamia.phantom.spec import Breasts, PhantomSpec, Side
from napari_mamamia.phantom.streams import Part, stream

SKIN_MM: Final = 1.8
"""Thickness of the skin (our choice); normal breast skin is 0.5 to 2 mm thick."""

_FILLET_MM: Final = 16.0
_BREAST_REACH_MM: Final = 6.0


@dataclass(frozen=True, slots=True)
class Chest:
    """The rib cage, an elliptic cylinder that tilts posteriorly towards the neck.

    `half_width_mm` and `half_depth_mm` are measured to the outside of the ribs. `centre_y_mm` is
    the position of the cylinder's axis, `fat_mm` the thickness of the fat between ribs and skin,
    and `lean` the posterior shift per mm in the superior direction.
    """

    half_width_mm: float
    half_depth_mm: float
    centre_y_mm: float
    fat_mm: float
    lean: float

    @property
    def front_mm(self) -> float:
        """Position of the front of the ribs along y in mm, in the midline at z = 0."""
        return self.centre_y_mm + self.half_depth_mm

    def ribs(self, points: geometry.Points, outside_mm: float = 0.0) -> geometry.Array:
        """Return the distance to the rib cage, or to the cylinder `outside_mm` around it."""
        y = points.y_mm - np.float32(self.centre_y_mm) + np.float32(self.lean) * points.z_mm
        radii = (self.half_width_mm + outside_mm, self.half_depth_mm + outside_mm)
        return geometry.quadric((points.x_mm, y), radii)

    def muscle_mm(self, points: geometry.Points) -> geometry.Array:
        """Return the thickness of muscle outside the ribs; it is thickest at the pectoralis."""
        aside = np.abs(points.x_mm)
        across = geometry.smoothstep(aside, 10, 28) * (1 - geometry.smoothstep(aside, 85, 125))
        thickness: geometry.Array = np.float32(2.5) + 8 * across * geometry.smoothstep(
            points.z_mm, -75, -25
        )
        return thickness


@dataclass(frozen=True, slots=True)
class Breast:
    """A breast: half an ellipsoid on the chest wall.

    `centre_mm` is the centre of the base. `radii_mm` are the radii along right, anterior and
    superior. `lean` is the lateral shift of the nipple, in mm per mm in the anterior direction.
    """

    side: Side
    centre_mm: tuple[float, float, float]
    radii_mm: tuple[float, float, float]
    lean: float

    @property
    def outward(self) -> float:
        """Sign of the lateral direction along x: +1 for a right breast, -1 for a left breast."""
        return 1.0 if self.side == Side.RIGHT else -1.0

    @property
    def nipple_mm(self) -> tuple[float, float, float]:
        """Position of the nipple in RAS mm."""
        x, y, z = self.centre_mm
        return (x + self.outward * self.lean * self.radii_mm[1], y + self.radii_mm[1], z)

    @property
    def bounds_mm(self) -> geometry.Bounds:
        """Bounding box of the breast with a margin, from its base to beyond the nipple."""
        x, y, z = self.centre_mm
        rx, ry, rz = self.radii_mm
        aside = rx + 24 + abs(self.lean) * ry
        return ((x - aside, x + aside), (y - 40, y + ry + 20), (z - rz - 24, z + rz + 24))

    def offsets(
        self, points: geometry.Points
    ) -> tuple[geometry.Array, geometry.Array, geometry.Array]:
        """Return the offsets from the breast's axis and base along right, anterior and superior."""
        x, y, z = (np.float32(c) for c in self.centre_mm)
        forward = points.y_mm - y
        lean = np.float32(self.outward * self.lean)
        return points.x_mm - x - lean * forward, forward, points.z_mm - z

    def distance(self, points: geometry.Points) -> geometry.Array:
        """Return the distance to the ellipsoid of the breast."""
        return geometry.quadric(self.offsets(points), self.radii_mm)


@dataclass(frozen=True, slots=True, eq=False)
class Depths:
    """Distances in mm for a block of points, negative inside the surface.

    The surfaces are the skin, the outside of the ribs, and the front of the chest muscle (negative
    in or behind the muscle). `uneven` is the random field that deforms surfaces.
    """

    skin: geometry.Array
    ribs: geometry.Array
    muscle: geometry.Array
    uneven: geometry.Array

    def block(self, window: geometry.Window) -> "Depths":
        """Return the distances for a block of the array."""
        return Depths(
            self.skin[window], self.ribs[window], self.muscle[window], self.uneven[window]
        )


@dataclass(frozen=True, slots=True, eq=False)
class Body:
    """Outline of one patient: chest, breasts and surface irregularities of the skin."""

    chest: Chest
    breasts: tuple[Breast, ...]
    surface: geometry.Field

    def breast(self, side: Side) -> Breast:
        """Return the breast on one side; the validated spec guarantees that it exists."""
        return next(breast for breast in self.breasts if breast.side == side)

    def depths(self, points: geometry.Points) -> Depths:
        """Return the distances to skin, ribs and chest muscle, by which most tissues are placed."""
        ribs = self.chest.ribs(points)
        skin = self.chest.ribs(points, self.chest.fat_mm)
        for breast in self.breasts:
            skin = geometry.blend(skin, breast.distance(points), _FILLET_MM)
        uneven = self.surface.at(points)
        skin = skin + np.float32(1.6) * uneven
        for breast in self.breasts:
            skin = np.minimum(skin, geometry.ellipsoid(points, breast.nipple_mm, (5.0, 6.0, 5.0)))
        return Depths(skin, ribs, ribs - self.chest.muscle_mm(points), uneven)

    def in_breast(self, breast: Breast, points: geometry.Points, depths: Depths) -> geometry.Array:
        """Return the distance to the breast, which extends from skin to chest muscle."""
        reach = breast.distance(points) - np.float32(_BREAST_REACH_MM)
        region: geometry.Array = np.maximum(np.maximum(depths.skin, -depths.muscle), reach)
        return region


def draw_body(spec: PhantomSpec) -> Body:
    """Return the body of the patient that `spec` and its seed describe."""
    rng = stream(spec.seed, Part.BODY)
    width, depth, fat, lean = rng.uniform((138, 98, 15, 0.05), (156, 112, 24, 0.14))
    chest = Chest(float(width), float(depth), -12.0 - float(depth), float(fat), float(lean))
    size = rng.uniform((56, 88, 58, 74), (68, 122, 74, 84))
    breasts = [_draw_breast(chest, side, size, rng) for side in (Side.RIGHT, Side.LEFT)]
    there = [b for b in breasts if spec.breasts in (Breasts.BOTH, Breasts(b.side.value))]
    surface = geometry.make_field(stream(spec.seed, Part.SURFACE), 28.0)
    return Body(chest, tuple(there), surface)


def _draw_breast(chest: Chest, side: Side, size: np.ndarray, rng: np.random.Generator) -> Breast:
    """Return one breast; the two breasts of a patient differ by a few per cent."""
    rx, ry, rz, aside = (float(value) for value in size * rng.uniform(0.96, 1.04, 4))
    across = aside / (chest.half_width_mm + chest.fat_mm)
    depth = chest.half_depth_mm + chest.fat_mm
    base = chest.centre_y_mm + depth * float(np.sqrt(max(1 - across**2, 0.1)))
    x = aside if side == Side.RIGHT else -aside
    lean = float(rng.uniform(0.04, 0.14))
    return Breast(side, (x, base - 10.0, 0.0), (rx, ry, rz), lean)
