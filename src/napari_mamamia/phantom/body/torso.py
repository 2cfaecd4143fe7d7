"""Tissues behind the breasts: muscle, ribs, lungs, heart, great vessels, liver, spine.

Positions and sizes are our choice, after what a radiologist expects in a prone breast examination:
the heart lies on the patient's left, the dome of the liver low on the right.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from napari_mamamia.phantom.body.anatomy import Body, Depths
from napari_mamamia.phantom.body.canvas import Canvas
from napari_mamamia.phantom.body.points import Bounds, Points
from napari_mamamia.phantom.body.shapes import Array, ellipsoid, filled
from napari_mamamia.phantom.body.tissue import Tissue

_WALL_MM: Final = 12.0
_RIB_PITCH_MM: Final = 26.0
_UNEVEN_MM: Final = 3.5
_ENDLESS: Final = (-1e4, 1e4)
_LONG: Final = 5e3


@dataclass(frozen=True, slots=True)
class _Organ:
    """An ellipsoid: centre (right, anterior of the front of the ribs, superior) and radii in mm.

    `wall_mm` is its least distance to the outside of the ribs, `lowest_mm` its lower end.
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
    """Paint chest wall and organs over the fat of the body.

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
    """Return the share of marrow in the chest wall: slanting ribs and the sternum."""
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
