"""`make_phantom`: create a case and its ground truth from a spec."""

from dataclasses import dataclass
from math import ceil
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import Case, Mask, Phase
from napari_mamamia.core.cohort import CaseRecord
from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.progress import listening, report_progress
from napari_mamamia.core.provenance import Maker, Provenance
from napari_mamamia.phantom.acquisition import blank_border, coil, coil_field, field_of_view, rician
from napari_mamamia.phantom.body.geometry import Points, distance_to_mask
from napari_mamamia.phantom.body.tissue import Tissue
from napari_mamamia.phantom.render import Anatomy, Curves, draw_anatomy, draw_curves, render_block
from napari_mamamia.phantom.spec import PhantomSpec
from napari_mamamia.phantom.streams import Part, stream

# Contrast-to-noise ratio of the primary tumour: the region of comparison and the noise level.

_RING_MM: Final = (2.0, 12.0)
_FEWEST_VOXELS: Final = 40


def surround(
    tumour: NDArray[np.bool_], tissue: NDArray[np.uint8], spec: PhantomSpec
) -> NDArray[np.bool_]:
    """Return the voxels around a tumour with which `noise_sigma` compares it.

    These voxels are fibroglandular tissue and suppressed fat, more than 2 and at most 12 mm from
    the tumour's voxels. Unsuppressed fat is excluded, because it is as bright as an enhanced
    tumour. If there are fewer than 40 such voxels, all such tissue in the image is used.

    Parameters
    ----------
    tumour
        A boolean array ``(z, y, x)``.
    tissue
        Label map of tissues ``(z, y, x)``.
    spec
        The parameters of the phantom.
    """
    kinds = [Tissue.FIBROGLANDULAR] + ([Tissue.FAT] if spec.fat_suppressed else [])
    normal = np.isin(tissue, kinds) & ~tumour
    margin = [ceil(_RING_MM[1] / spacing) + 1 for spacing in spec.spacing_mm]
    slices = Box.around(tumour).grown(margin, tumour.shape).slices
    away_mm = distance_to_mask(tumour[slices], spec.spacing_mm)
    ring = np.zeros_like(tumour)
    ring[slices] = normal[slices] & (away_mm > _RING_MM[0]) & (away_mm <= _RING_MM[1])
    return ring if np.count_nonzero(ring) >= _FEWEST_VOXELS else normal


def noise_sigma(
    phase_1: NDArray[Any],
    tumour: NDArray[np.bool_],
    tissue: NDArray[np.uint8],
    spec: PhantomSpec,
) -> float:
    """Return the noise level that gives the primary tumour the CNR of `spec`.

    CNR = (mean of the tumour - mean of its surroundings) / sigma, on phase 1 without noise, with
    the coil's sensitivity. The tumour is the reference mask of the primary tumour, necrotic core
    included; `surround` defines the surroundings; sigma is the standard deviation of the Gaussian
    noise in each of the two channels from which the magnitude is formed. Without a tumour, the CNR
    is the signal-to-noise ratio of unenhanced fibroglandular tissue.

    Parameters
    ----------
    phase_1
        Phase 1 without noise, ``(z, y, x)``.
    tumour
        A boolean array ``(z, y, x)``.
    tissue
        Label map of tissues ``(z, y, x)``.
    spec
        The parameters of the phantom.

    Raises
    ------
    CaseError
        If the tumour is not brighter than its surroundings.
    """
    if not spec.tumours:
        return spec.fibroglandular_signal / spec.contrast_to_noise
    if not tumour.any():
        raise CaseError(
            f"{spec.case_id}: the primary tumour lies outside the field of view or between its "
            "voxels; move field_centre_mm, make the tumour larger, or make spacing_mm smaller"
        )
    around = surround(tumour, tissue, spec)
    contrast = float(phase_1[tumour].mean() - phase_1[around].mean())
    if contrast <= 0:
        raise CaseError(
            f"{spec.case_id}: the primary tumour is not brighter than its surroundings in phase 1 "
            f"(difference {contrast:.1f}), so no noise level gives the requested CNR; raise "
            "early_enhancement_percent or lower background_enhancement_percent"
        )
    return contrast / spec.contrast_to_noise


_VOXELS_AT_ONCE: Final = 160_000
"""Voxels between two progress reports: about 0.1 s of work."""

_TOTAL: Final = 1000
_DRAWN: Final = 800


@dataclass(slots=True)
class Scene:
    """Arrays of a phantom that is being rendered; `signal` has no noise at first."""

    signal: NDArray[np.int16]
    tissue: NDArray[np.uint8]
    lesions: NDArray[np.uint8]
    breast: NDArray[np.bool_]
    sigma: float = 0.0


def _cut_slabs(spec: PhantomSpec, at_once: int) -> list[slice]:
    planes = max(1, at_once // (spec.shape[1] * spec.shape[2]))
    return [slice(z, min(z + planes, spec.shape[0])) for z in range(0, spec.shape[0], planes)]


def render_scene(spec: PhantomSpec, anatomy: Anatomy, curves: Curves, grid: Grid) -> Scene:
    """Fill the arrays with noise-free data, and compute the noise level.

    Parameters
    ----------
    spec
        The parameters of the phantom.
    anatomy
        The sampled anatomy.
    curves
        Mean signal of each tissue and tumour.
    grid
        The grid of the case.
    """
    scene = Scene(
        np.empty((spec.n_phases, *spec.shape), np.int16),
        np.empty(spec.shape, np.uint8),
        np.empty(spec.shape, np.uint8),
        np.empty(spec.shape, np.bool_),
    )
    uneven = coil_field(spec)
    places = len({spec.shift_mm(phase) for phase in range(spec.n_phases)})
    # Every position of the patient is painted separately, so each position adds the time of a
    # slab.
    slabs = _cut_slabs(spec, _VOXELS_AT_ONCE // places)
    everywhere = Points.of(grid)
    for index, slab in enumerate(slabs):
        report_progress(_DRAWN * index // len(slabs), _TOTAL, f"Drawing {spec.case_id}")
        points = everywhere.block((slab, slice(None), slice(None)))
        block = render_block(anatomy, curves, spec, points)
        weight = coil(spec, anatomy.body, uneven, points)
        scene.signal[:, slab] = whole_numbers(block.signal * weight)
        scene.tissue[slab], scene.lesions[slab] = block.tissue, block.lesions
        scene.breast[slab] = block.breast
    scene.sigma = noise_sigma(scene.signal[1], scene.lesions == 1, scene.tissue, spec)
    return scene


def add_noise(spec: PhantomSpec, scene: Scene) -> None:
    """Replace the signal with its magnitude after adding noise.

    Each channel of each phase has its own random stream.

    Parameters
    ----------
    spec
        The parameters of the phantom.
    scene
        The arrays of the phantom.
    """
    channels = [
        (stream(spec.seed, Part.NOISE, 2 * phase), stream(spec.seed, Part.NOISE, 2 * phase + 1))
        for phase in range(spec.n_phases)
    ]
    slabs = _cut_slabs(spec, _VOXELS_AT_ONCE)
    for index, slab in enumerate(slabs):
        share = _DRAWN + (_TOTAL - _DRAWN) * index // len(slabs)
        report_progress(share, _TOTAL, f"Adding noise to {spec.case_id}")
        for phase, rngs in enumerate(channels):
            clean = scene.signal[phase, slab].astype(np.float32)
            scene.signal[phase, slab] = whole_numbers(rician(clean, scene.sigma, rngs))
    if spec.blank_border_mm:
        scene.signal[..., blank_border(spec)] = 0
    report_progress(_TOTAL, _TOTAL, f"Made {spec.case_id}")


def whole_numbers(signal: NDArray[np.float32]) -> NDArray[np.int16]:
    """Return `signal` rounded, and clipped to the non-negative range of int16."""
    return np.clip(np.rint(signal), 0, np.iinfo(np.int16).max).astype(np.int16)


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
    """A synthetic case with its true masks and curves.

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
    """Return the phantom described by `spec`, computed in this thread; see `make_phantom_job`."""
    with listening(None):
        return make_phantom_job(spec)


def make_phantom_job(spec: PhantomSpec) -> Phantom:
    """Create the phantom described by `spec`.

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
    """Return a finished scene as a phantom whose truth arrays are read-only.

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
    """Return the acquisition columns under their names in the MAMA-MIA clinical table."""
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
