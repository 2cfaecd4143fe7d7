"""`make_phantom`: make one case and its ground truth from a spec."""

from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.case import Case, Mask, Phase
from napari_mamamia.core.cohort import CaseRecord
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.progress import listening, report_progress
from napari_mamamia.core.provenance import Maker, Provenance
from napari_mamamia.phantom.acquisition import field_of_view
from napari_mamamia.phantom.body.tissue import Tissue
from napari_mamamia.phantom.render import Curves, draw_anatomy, draw_curves
from napari_mamamia.phantom.scene import Scene, add_noise, render_scene
from napari_mamamia.phantom.spec import PhantomSpec


@dataclass(frozen=True, slots=True)
class TissueCurve:
    """Mean enhancement of one tissue in percent of phase 0, with one value for each phase.

    `tumour` is the number of the tumour, from 1, or None for other tissues.
    """

    tissue: Tissue
    enhancement_percent: tuple[float, ...]
    tumour: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Phantom:
    """A case and its true masks and curves.

    Parameters
    ----------
    case
        Signal int16 ``(phase, z, y, x)``, never negative, with noise and motion.
    reference
        All tumours, necrotic cores included: the voxels whose centre is inside at phase 1.
    tissue
        uint8 ``(z, y, x)``, values of `Tissue`: the tissue that fills at least half of the voxel at
        phase 1.
    lesions
        uint8 ``(z, y, x)``: the number of the tumour from 1, 0 elsewhere.
    breast
        Bool ``(z, y, x)``: both breasts from skin to chest muscle.
    curves
        Mean enhancement of each tissue and each tumour, without noise.
    record
        The row of the clinical table; age and similar fields are None.
    sigma
        Standard deviation of the noise in each channel, in signal units.
    spec
        The spec of this phantom.
    """

    case: Case
    reference: Mask
    tissue: NDArray[np.uint8]
    lesions: NDArray[np.uint8]
    breast: NDArray[np.bool_]
    curves: tuple[TissueCurve, ...]
    record: CaseRecord
    sigma: float
    spec: PhantomSpec


def make_phantom(spec: PhantomSpec) -> Phantom:
    """Return the phantom of `spec`, computed in this thread; see `make_phantom_job`."""
    with listening(None):
        return make_phantom_job(spec)


def make_phantom_job(spec: PhantomSpec) -> Phantom:
    """Make the phantom of `spec`.

    Raises
    ------
    CaseError
        If a tumour does not fit, lies outside the field of view, is not brighter than its
        surroundings in phase 1, or cannot have its curve type at the times of the phases.
    """
    report_progress(0, 1, f"Drawing {spec.case_id}")
    curves = draw_curves(spec)
    # Check for cancellation again, because the curves take a while.
    report_progress(0, 1, f"Drawing {spec.case_id}")
    anatomy = draw_anatomy(spec)
    grid = field_of_view(spec, anatomy.body)
    scene = render_scene(spec, anatomy, curves, grid)
    add_noise(spec, scene)
    return phantom_of(spec, grid, curves, scene)


def phantom_of(spec: PhantomSpec, grid: Grid, curves: Curves, scene: Scene) -> Phantom:
    """Return a finished scene as a phantom, and make the truth arrays read-only.

    Parameters
    ----------
    spec
        The parameters of the phantom.
    grid
        The grid of the case.
    curves
        Mean signal of each tissue and tumour.
    scene
        The arrays of the phantom.
    """
    for array in (scene.tissue, scene.lesions, scene.breast):
        array.setflags(write=False)
    return Phantom(
        case=_make_case(spec, grid, scene.signal),
        reference=Mask(grid, scene.lesions > 0, _make_provenance(spec)),
        tissue=scene.tissue,
        lesions=scene.lesions,
        breast=scene.breast,
        curves=_list_enhancements(curves),
        record=_make_record(spec),
        sigma=scene.sigma,
        spec=spec,
    )


def _make_case(spec: PhantomSpec, grid: Grid, signal: NDArray[Any]) -> Case:
    phases = tuple(Phase(index, time_s) for index, time_s in enumerate(spec.times_s))
    return Case(spec.case_id, grid, signal, phases)


def _list_enhancements(curves: Curves) -> tuple[TissueCurve, ...]:
    rows = []
    for tissue, signal in curves.tissues.items():
        if tissue not in (Tissue.AIR, Tissue.TUMOUR):
            rows.append(TissueCurve(tissue, _compute_percent(signal)))
    for number, signal in enumerate(curves.tumours, start=1):
        rows.append(TissueCurve(Tissue.TUMOUR, _compute_percent(signal), number))
    return tuple(rows)


def _compute_percent(signal: NDArray[np.float32]) -> tuple[float, ...]:
    return tuple(100 * (float(value) / float(signal[0]) - 1) for value in signal)


def _make_provenance(spec: PhantomSpec) -> Provenance:
    return Provenance(
        spec.case_id,
        Maker.PHANTOM,
        "phantom",
        parameters=(("seed", spec.seed), ("tumours", len(spec.tumours))),
        note="known truth of a procedural phantom, not a patient",
    )


def _make_record(spec: PhantomSpec) -> CaseRecord:
    """Return the technical columns under the column names of the MAMA-MIA clinical table."""
    z, y, x = spec.shape
    sides = {tumour.side for tumour in spec.tumours}
    other: dict[str, str | float | bool | None] = {
        "bilateral_breast_cancer": int(len(sides) == 2),
        "multifocal_cancer": int(len(spec.tumours) > len(sides)),
        "num_phases": spec.n_phases,
        "fat_suppressed": int(spec.fat_suppressed),
        "field_strength": spec.field_strength_t,
        "image_rows": y,
        "image_columns": x,
        "num_slices": z,
        "pixel_spacing": f"[{spec.spacing_mm[1]:g}, {spec.spacing_mm[2]:g}]",
        "slice_thickness": spec.spacing_mm[0],
    }
    return CaseRecord(
        spec.case_id,
        breast_density=spec.breast_density,
        dataset="PHANTOM",
        acquisition_times_s=spec.times_s,
        other=MappingProxyType(other),
    )
