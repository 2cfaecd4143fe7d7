"""Tumours: their positions, and their surfaces as distances.

The constants below (shares of the longest axis) that shape lobes, spicules, rim and clumps are our
choice.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.errors import CaseError
from napari_mamamia.phantom.body.anatomy import Body
from napari_mamamia.phantom.body.parenchyma import Parenchyma
from napari_mamamia.phantom.body.points import Bounds, Points
from napari_mamamia.phantom.body.shapes import Array, quadric
from napari_mamamia.phantom.body.texture import Field, make_field
from napari_mamamia.phantom.spec import PhantomSpec, TumourKind, TumourSpec
from napari_mamamia.phantom.streams import Part, stream

_PLACING_STEP_MM: Final = 4.0
_LOBE_MM: Final = 0.09
_SPICULE_SHARPNESS: Final = 90.0
_RIM_SHARE: Final = 0.2
_THINNEST_RIM_MM: Final = 2.0
_CLUMP_FILL: Final = -0.35


@dataclass(frozen=True, slots=True, eq=False)
class Tumour:
    """One tumour at its position.

    `rotation` turns RAS into the axes of the tumour (longest first). `lobes` roughens its outline,
    `clumps` divides a non-mass tumour, `mottle` makes the enhancement uneven. `rays` are the unit
    vectors of the spicules and `ray_mm` their lengths.
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
        """Half axes of the ellipsoid before it is roughened, longest first."""
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
        """Return the factor, mean 1, by which enhancement varies inside.

        1 for homogeneous tumours.
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
    """Return the tumours of `spec`, each inside its breast and apart from the others.

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
    # Q of a random matrix is a random rotation; where it also mirrors, the ellipsoid stays the
    # same.
    turn, _ = np.linalg.qr(rng.standard_normal((3, 3)))
    bounds = _make_bounds(centre_mm, one.longest_mm)
    lobes = make_field(rng, max(one.longest_mm / 5, 1.5), bounds)
    clumps = make_field(rng, max(one.longest_mm / 9, 2.2), bounds)
    mottle = make_field(rng, max(one.longest_mm / 8, 1.5), bounds)
    # The maximum number is drawn, so that with more spicules the first ones stay unchanged.
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
    """Return a random centre inside the breast, more likely in glandular tissue."""
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
            f"tumour {index + 1} of {one.longest_mm:g} mm does not fit into the {one.side} breast "
            "with the others; make it smaller, give centre_mm, or change the seed"
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
