"""Render noise-free signal, tissue labels and true masks, one block of slices at a time."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.errors import CaseError
from napari_mamamia.phantom.acquisition import FatSuppression, suppress_fat
from napari_mamamia.phantom.body import torso
from napari_mamamia.phantom.body.anatomy import SKIN_MM, Body, Depths, draw_body
from napari_mamamia.phantom.body.canvas import Canvas, Look
from napari_mamamia.phantom.body.geometry import Points, ellipsoid, filled, smoothstep
from napari_mamamia.phantom.body.tissue import Tissue
from napari_mamamia.phantom.enhancement import Scan, curve_of, fit_height, fit_kinetics
from napari_mamamia.phantom.spec import PhantomSpec, TumourKind
from napari_mamamia.phantom.streams import Part, stream

_BACKGROUND_KEP_PER_MIN: Final = 0.08
"""Rate constant kep of background enhancement; the signal rises through the usual phases."""

_NIPPLE_ENHANCEMENT: Final = 2.2
"""Enhancement of a nipple relative to skin (our choice); nipples enhance early and strongly."""


@dataclass(frozen=True, slots=True, eq=False)
class Anatomy:
    """The sampled anatomy: body, gland, vessels, tumours, lymph nodes and residual fat signal."""

    body: Body
    parenchyma: torso.Parenchyma
    tubes: tuple[torso.Tube, ...]
    tumours: tuple[torso.Tumour, ...]
    suppression: FatSuppression
    nodes: tuple[torso.Node, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Curves:
    """Mean signal of each tissue and of each tumour at each phase, in scanner units."""

    tissues: Mapping[Tissue, NDArray[np.float32]]
    tumours: tuple[NDArray[np.float32], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """A rendered block of voxels.

    `signal` is float32 (phase, z, y, x) without noise. `tissue` holds labels, `breast` is true
    inside the breasts, and `lesions` holds the tumour numbers, from 1.
    """

    signal: NDArray[np.float32]
    tissue: NDArray[np.uint8]
    breast: NDArray[np.bool_]
    lesions: NDArray[np.uint8]


def draw_anatomy(spec: PhantomSpec) -> Anatomy:
    """Return the anatomy that `spec` describes, which does not depend on the grid.

    Raises
    ------
    CaseError
        If a tumour does not fit into its breast.
    """
    body = draw_body(spec)
    parenchyma = torso.grow_parenchyma(spec, body)
    tumours = torso.grow_tumours(spec, body, parenchyma)
    feeding = [
        torso.feeding_tube(
            body,
            body.breast(tumour.spec.side),
            tumour.centre_mm,
            stream(spec.seed, Part.VESSELS, 100 + index),
        )
        for index, tumour in enumerate(tumours)
    ]
    return Anatomy(
        body,
        parenchyma,
        (*torso.lay_vessels(spec, body), *feeding),
        tumours,
        suppress_fat(spec, body),
        torso.lay_nodes(spec, body),
    )


def draw_curves(spec: PhantomSpec) -> Curves:
    """Return the mean signal of every tissue and tumour, scaled to `fibroglandular_signal`.

    Raises
    ------
    CaseError
        If a tumour's curve type is not possible at the times of the phases.
    """
    scan = Scan.of(spec)
    tissues = {tissue: curve_of(tissue, scan) for tissue in Tissue}
    _, tissues[Tissue.FIBROGLANDULAR] = fit_height(
        Tissue.FIBROGLANDULAR, scan, spec.background_enhancement_percent, _BACKGROUND_KEP_PER_MIN
    )
    unit = spec.fibroglandular_signal / tissues[Tissue.FIBROGLANDULAR][0]
    tumours = [
        fit_kinetics(Tissue.TUMOUR, scan, tumour.early_enhancement_percent, tumour.curve)[1]
        for tumour in spec.tumours
    ]
    return Curves(
        {tissue: (unit * curve).astype(np.float32) for tissue, curve in tissues.items()},
        tuple((unit * curve).astype(np.float32) for curve in tumours),
    )


def render_block(anatomy: Anatomy, curves: Curves, spec: PhantomSpec, points: Points) -> Block:
    """Return the block at `points`, with each phase at the patient's position during that phase.

    Labels and truth belong to phase 1, in which the patient has not moved.

    Parameters
    ----------
    anatomy
        The sampled anatomy.
    curves
        Mean signal of each tissue and tumour.
    spec
        The parameters of the phantom.
    points
        The sampled points.
    """
    voxel_mm = float(np.prod(spec.spacing_mm) ** (1 / 3))
    signal = np.empty((spec.n_phases, *points.shape), np.float32)
    truth = None
    for shift_mm, phases in _group_phases(spec).items():
        moved = points.moved(shift_mm)
        fat_left = anatomy.suppression.fat_left(moved)
        canvas = Canvas.blank(moved, phases, curves.tissues, fat_left, voxel_mm)
        depths = _paint_all(canvas, anatomy, curves)
        signal[list(phases)] = canvas.signal
        if 1 in phases:
            lesions = _label_lesions(anatomy, moved)
            truth = Block(signal, canvas.tissue, _mask_breasts(anatomy, moved, depths), lesions)
    if truth is None:
        raise CaseError(f"{spec.case_id} has no phase 1, in which the truth is defined")
    return truth


def _group_phases(spec: PhantomSpec) -> dict[tuple[float, float, float], tuple[int, ...]]:
    groups: dict[tuple[float, float, float], tuple[int, ...]] = {}
    for phase in range(spec.n_phases):
        shift = spec.shift_mm(phase)
        groups[shift] = (*groups.get(shift, ()), phase)
    return groups


def _paint_all(canvas: Canvas, anatomy: Anatomy, curves: Curves) -> Depths:
    depths = anatomy.body.depths(canvas.points)
    canvas.paint(Tissue.SKIN, filled(depths.skin, canvas.voxel_mm))
    texture = Look(1 + np.float32(0.04) * anatomy.parenchyma.coarse.at(canvas.points))
    inner = filled(depths.skin + np.float32(SKIN_MM), canvas.voxel_mm)
    canvas.paint(Tissue.FAT, inner, look=texture)
    _paint_breasts(canvas, anatomy, depths)
    torso.paint_torso(canvas, anatomy.body, depths)
    for tube in anatomy.tubes:
        _paint_tube(canvas, tube)
    for node in anatomy.nodes:
        _paint_node(canvas, node)
    for tumour, curve in zip(anatomy.tumours, curves.tumours, strict=True):
        _paint_tumour(canvas, tumour, curve)
    return depths


def _paint_breasts(canvas: Canvas, anatomy: Anatomy, depths: Depths) -> None:
    parenchyma = anatomy.parenchyma
    for breast in anatomy.body.breasts:
        window = canvas.points.window(breast.bounds_mm)
        if window is None:
            continue
        points, near = canvas.points.block(window), depths.block(window)
        region = anatomy.body.in_breast(breast, points, near)
        inside = smoothstep(-region, 0, 4)
        grain = parenchyma.grain(points)
        look = Look(grain.brightness, parenchyma.enhancement(points))
        sheets = inside * parenchyma.ligaments(points, near)
        canvas.paint(Tissue.FIBROGLANDULAR, sheets, window)
        share = inside * parenchyma.share(breast, points, near, grain)
        canvas.paint(Tissue.FIBROGLANDULAR, share, window, look)
        nipple = filled(ellipsoid(points, breast.nipple_mm, (5.0, 7.0, 5.0)), canvas.voxel_mm)
        canvas.paint(Tissue.SKIN, nipple, window, Look(enhancement=np.float32(_NIPPLE_ENHANCEMENT)))


def _paint_tube(canvas: Canvas, tube: torso.Tube) -> None:
    if canvas.points.window(tube.bounds_mm) is None:
        return
    for image in tube.pieces():
        window = canvas.points.window(image.bounds_mm)
        if window is None:
            continue
        distance, radius_mm = image.distance(canvas.points.block(window))
        # A vessel thinner than a voxel fills only part of the voxel, which the distance alone
        # does not reflect.
        thin = min(1.0, 2 * radius_mm / canvas.voxel_mm)
        share = np.float32(thin) * filled(distance, canvas.voxel_mm)
        canvas.paint(Tissue.VESSEL, share, window)


def _paint_node(canvas: Canvas, node: torso.Node) -> None:
    window = canvas.points.window(node.bounds_mm)
    if window is not None:
        distance = ellipsoid(canvas.points.block(window), node.centre_mm, node.radii_mm)
        canvas.paint(Tissue.NODE, filled(distance, canvas.voxel_mm), window)


def _paint_tumour(canvas: Canvas, tumour: torso.Tumour, curve: NDArray[np.float32]) -> None:
    window = canvas.points.window(tumour.bounds_mm)
    if window is None:
        return
    points = canvas.points.block(window)
    distance = tumour.distance(points)
    look = Look(enhancement=tumour.enhancement(points))
    canvas.paint(Tissue.TUMOUR, filled(distance, canvas.voxel_mm), window, look, curve)
    if tumour.spec.kind == TumourKind.RIM:
        core = filled(tumour.core_distance(distance), canvas.voxel_mm)
        canvas.paint(Tissue.TUMOUR_CORE, core, window)


def _label_lesions(anatomy: Anatomy, points: Points) -> NDArray[np.uint8]:
    lesions = np.zeros(points.shape, np.uint8)
    for number, tumour in enumerate(anatomy.tumours, start=1):
        window = points.window(tumour.bounds_mm)
        if window is not None:
            lesions[window][tumour.distance(points.block(window)) < 0] = number
    return lesions


def _mask_breasts(anatomy: Anatomy, points: Points, depths: Depths) -> NDArray[np.bool_]:
    inside = np.zeros(points.shape, np.bool_)
    for breast in anatomy.body.breasts:
        inside |= anatomy.body.in_breast(breast, points, depths) < 0
    return inside
