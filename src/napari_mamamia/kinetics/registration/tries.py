"""The warps tried on one phase (rigid, then B-spline), and the effect of each one."""

import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import Case
from napari_mamamia.core.choices import TransformKind
from napari_mamamia.core.progress import part, report_progress
from napari_mamamia.kinetics.registration.itk import Warp, readable
from napari_mamamia.kinetics.registration.quality import (
    Displacement,
    displacement_in,
    jacobian_determinant,
)
from napari_mamamia.kinetics.registration.search import find_bspline, find_rigid
from napari_mamamia.kinetics.registration.settings import RegistrationSettings
from napari_mamamia.kinetics.registration.volumes import Coarse, levels_of, smoothed


@dataclass(frozen=True, slots=True, eq=False)
class Try:
    """A warp with its effect on the coarse phase."""

    warp: Warp
    moved: NDArray[np.float32]
    displacement: Displacement
    jacobian: tuple[float, float]
    body_jacobian_min: float
    seconds: float


def try_phase(
    case: Case,
    coarse: Coarse,
    index: int,
    settings: RegistrationSettings,
    mask: NDArray[Any] | None,
) -> list[Try]:
    """Return the warps tried on one phase, the finest last; warps that fold are left out.

    Parameters
    ----------
    case
        The case with its phases.
    coarse
        The case on coarse voxels.
    index
        Index of the phase.
    settings
        Settings of the registration.
    mask
        The tumour ``(z, y, x)``, or None.
    """
    begun = time.monotonic()
    levels = levels_of(coarse, settings.reference, index)
    text = f"Phase {index}"
    with part(0, 40, 100):
        rigid = find_rigid(levels, coarse.middle_mm, settings, text)
    tries = [_make_try(case, coarse, index, rigid, mask, begun)]
    if settings.transform is TransformKind.BSPLINE:
        with part(40, 90, 100):
            spline = find_bspline(levels, rigid, settings, text)
        report_progress(90, 100, f"{text}: folding")
        tries.append(_make_try(case, coarse, index, spline, mask, begun))
    return tries


def _make_try(
    case: Case, coarse: Coarse, index: int, warp: Warp, mask: NDArray[Any] | None, begun: float
) -> Try:
    place = (coarse.body.shape, coarse.spacing_mm, coarse.origin_mm)
    moved, _ = warp.moved(readable(coarse.phases[index], *place[1:]), *place)
    field_mm = warp.displacement(*place)
    body = jacobian_determinant(field_mm, coarse.spacing_mm)[coarse.body]
    return Try(
        warp,
        smoothed(moved, coarse.spacing_mm),
        displacement_in(field_mm, coarse.body),
        _jacobian_in(case, warp, mask),
        float(body.min()),
        time.monotonic() - begun,
    )


def _jacobian_in(case: Case, warp: Warp, mask: NDArray[Any] | None) -> tuple[float, float]:
    """Return the minimum and maximum change of volume in the mask; nan without voxels."""
    box = Box.empty() if mask is None else Box.around(mask)
    if mask is None or box.is_empty:
        return math.nan, math.nan
    box = box.grown((1, 1, 1), case.grid.shape)
    spacing = case.grid.spacing_mm
    origin = [start * mm for start, mm in zip(box.start, spacing, strict=True)]
    field_mm = warp.displacement(box.shape, spacing, origin)
    values = jacobian_determinant(field_mm, spacing)[mask[box.slices] != 0]
    return float(values.min()), float(values.max())
