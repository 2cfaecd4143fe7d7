"""The simulated scanner: field of view, receive coil, noise, and residual fat signal."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.grid import Grid
from napari_mamamia.phantom.body import geometry
from napari_mamamia.phantom.body.anatomy import Body
from napari_mamamia.phantom.spec import AXIS_OF, PhantomSpec
from napari_mamamia.phantom.streams import Part, stream

_POSITIVE: Final = "RAS"
_ONE_BREAST_MM: Final = 230.0
_BEFORE_NIPPLE_MM: Final = 14.0
_COIL_DEPTH_MM: Final = 95.0
_USUAL_BIAS_PERCENT: Final = 12.0

SUPPRESSED_SHARE: Final = 0.18
"""Fraction of the fat signal that remains after good suppression (our choice).

The value makes fat a little darker than gland.
"""

_FAILED_SHARE: Final = 0.95
_EDGE_MM: Final = 18.0


def field_of_view(spec: PhantomSpec, body: Body) -> Grid:
    """Return the grid of `spec`, with its affine rounded to float32 as in the stored files.

    Without `field_centre_mm`, the field of view ends anterior of the nipples. It is centred on both
    breasts, or on the breast with the primary tumour if it is narrower than 230 mm from left to
    right.

    Parameters
    ----------
    spec
        The parameters of the phantom.
    body
        The patient's outline.
    """
    matrix = np.zeros((3, 3))
    extent_mm = [0.0, 0.0, 0.0]
    for axis_xyz, letter in enumerate(spec.orientation):
        world = AXIS_OF[letter]
        step = spec.spacing_mm[2 - axis_xyz]
        matrix[world, axis_xyz] = step if letter in _POSITIVE else -step
        extent_mm[world] = step * spec.shape[2 - axis_xyz]
    centre = spec.field_centre_mm or _find_frame_centre(spec, body, extent_mm)
    middle_xyz = (np.array(spec.shape[::-1]) - 1) / 2
    affine = np.eye(4)
    affine[:3, :3] = matrix
    affine[:3, 3] = np.array(centre) - matrix @ middle_xyz
    return Grid(spec.shape, affine.astype(np.float32).astype(np.float64))


def _find_frame_centre(
    spec: PhantomSpec, body: Body, extent_mm: list[float]
) -> tuple[float, float, float]:
    front = max(breast.nipple_mm[1] for breast in body.breasts) + _BEFORE_NIPPLE_MM
    across = 0.0
    if extent_mm[0] < _ONE_BREAST_MM:
        shown = body.breast(spec.tumours[0].side) if spec.tumours else body.breasts[0]
        across = shown.centre_mm[0]
    return (across, front - extent_mm[1] / 2, 0.0)


def coil_field(spec: PhantomSpec) -> geometry.Field:
    """Return the random component of the coil sensitivity, which varies over about 12 cm."""
    return geometry.make_field(stream(spec.seed, Part.BIAS), 60.0)


def coil(
    spec: PhantomSpec, body: Body, uneven: geometry.Field, points: geometry.Points
) -> geometry.Array:
    """Return the factor by which the receive coil weights the signal at each point.

    The sensitivity is fixed to the scanner, not to the patient.

    The factor varies smoothly by `bias_percent` and decreases in the posterior direction. At the
    usual 12 %, it falls to one half 95 mm behind the front of the chest. The values are our choice,
    based on the appearance of breast coil images.

    Parameters
    ----------
    spec
        The parameters of the phantom.
    body
        The patient's outline.
    uneven
        Random component of the coil's sensitivity.
    points
        The sampled points.
    """
    if spec.bias_percent == 0:
        return np.ones((1, 1, 1), np.float32)
    behind = np.clip(np.float32(body.chest.front_mm) - points.y_mm, 0, None)
    fall = 1 / (1 + (behind / np.float32(_COIL_DEPTH_MM)) ** 2)
    fall = fall ** np.float32(spec.bias_percent / _USUAL_BIAS_PERCENT)
    smooth = 1 + np.float32(spec.bias_percent / 100) * uneven.at(points)
    factor: geometry.Array = fall * np.clip(smooth, np.float32(0.2), None)
    return factor


def blank_border(spec: PhantomSpec) -> NDArray[np.bool_]:
    """Return the mask ``(y, x)`` of the curved border of a slice that holds no data.

    The border is widest in the corners. Such a border results from the correction of gradient
    distortion: the corrected image has no data there.
    """
    n_rows, n_columns = spec.shape[1:]
    across = np.abs(np.linspace(-1, 1, n_rows))[:, None]
    along = np.abs(np.linspace(-1, 1, n_columns))[None, :]
    half_y, half_x = n_rows * spec.spacing_mm[1] / 2, n_columns * spec.spacing_mm[2] / 2
    wide = spec.blank_border_mm
    at_y = (1 - across) * half_y < wide * (0.2 + 0.8 * along**2) * 0.3
    at_x = (1 - along) * half_x < wide * (0.3 + 0.7 * across**2)
    blank: NDArray[np.bool_] = at_y | at_x
    return blank


def rician(
    signal: NDArray[np.float32], sigma: float, rngs: tuple[np.random.Generator, np.random.Generator]
) -> NDArray[np.float32]:
    """Return the magnitude of `signal` after adding Gaussian noise `sigma` to both channels.

    Source: Gudbjartsson 1995, MRM 34:910.
    """
    real, imaginary = (rng.standard_normal(signal.shape, dtype=np.float32) for rng in rngs)
    real *= np.float32(sigma)
    real += signal
    imaginary *= np.float32(sigma)
    return np.sqrt(real * real + imaginary * imaginary)


@dataclass(frozen=True, slots=True, eq=False)
class FatSuppression:
    """Residual fat signal, with spheres in which suppression fails.

    `everywhere` is the fraction of the fat signal that remains outside these spheres. `radius_mm`
    is the radius of the spheres. Their border is softened over 18 mm and deformed by `border`.
    """

    everywhere: float
    centres_mm: tuple[tuple[float, float, float], ...]
    radius_mm: float
    border: geometry.Field

    def fat_left(self, points: geometry.Points) -> geometry.Array:
        """Return the fraction of the fat signal that remains at each point."""
        left = np.full((1, 1, 1), self.everywhere, np.float32)
        if not self.centres_mm:
            return left
        bent = np.float32(0.35 * self.radius_mm) * self.border.at(points)
        for centre in self.centres_mm:
            distance = geometry.ellipsoid(points, centre, (self.radius_mm,) * 3) + bent
            failed = 1 - geometry.smoothstep(distance, -_EDGE_MM, _EDGE_MM)
            left = np.maximum(left, _FAILED_SHARE * failed)
        return left


def suppress_fat(spec: PhantomSpec, body: Body) -> FatSuppression:
    """Return the residual fat signal for the fat suppression in `spec`.

    Suppression fails in the lower outer part of one or both breasts.

    Parameters
    ----------
    spec
        The parameters of the phantom.
    body
        The patient's outline.
    """
    rng = stream(spec.seed, Part.FAT_SUPPRESSION)
    centres = []
    for breast in body.breasts[: int(rng.integers(1, 3))]:
        place = rng.uniform((0.4, 0.1, -0.9), (0.9, 0.7, -0.3)) * breast.radii_mm
        place[0] *= breast.outward
        x, y, z = (float(c + p) for c, p in zip(breast.centre_mm, place, strict=True))
        centres.append((x, y, z))
    radius = spec.fat_suppression_failure_mm
    everywhere = SUPPRESSED_SHARE if spec.fat_suppressed else 1.0
    border = geometry.make_field(rng, 26.0)
    return FatSuppression(everywhere, tuple(centres) if radius else (), radius, border)
