"""`write_data_set`: a folder of phantoms in the MAMA-MIA layout, with a clinical table."""

from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum
from functools import partial
from math import ceil
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import Mask
from napari_mamamia.core.cohort import CaseRecord, Cohort, MenopausalStatus
from napari_mamamia.core.errors import CaseError, SaveConflictError
from napari_mamamia.core.progress import part, report_progress, saying
from napari_mamamia.core.provenance import Maker, Provenance
from napari_mamamia.io.clinical.clinical import write_clinical
from napari_mamamia.io.data_set.volumes import write_mask, write_volume_job
from napari_mamamia.io.files.own_paths import own_folder, place_folder
from napari_mamamia.io.files.save import write_text_atomically
from napari_mamamia.io.tables.tables import write_json
from napari_mamamia.phantom.body.geometry import Bounds, Points, distance_to_mask, make_field
from napari_mamamia.phantom.body.tissue import Tissue
from napari_mamamia.phantom.case_mix import Patient, PlannedCase, plan_case
from napari_mamamia.phantom.phantom_case import Phantom, make_phantom_job
from napari_mamamia.phantom.spec import CurveType, PhantomSpec, Side, TumourKind, TumourSpec
from napari_mamamia.phantom.streams import Part, stream

# Sagittal exams of one breast, like those of GE scanners in I-SPY 1, difficult on purpose. They
# have three phases about six minutes apart, thick slices, a field of view that crops the body, a
# border of zeros, and a signal that decreases with the distance from the coil. Besides the
# tumour, the image contains a heart that enhances more, axillary lymph nodes that enhance as
# fast, nipple and skin. Both sides occur.

_R = Side.RIGHT
_RIM, _NON_MASS = TumourKind.RIM, TumourKind.NON_MASS
_LEVEL = CurveType.PLATEAU
_GE: Final = PhantomSpec(
    shape=(30, 128, 128),
    spacing_mm=(4.0, 1.5, 1.5),
    orientation="PSR",
    times_s=(0.0, 400.0, 740.0),
    contrast_to_noise=8.0,
    bias_percent=18.0,
    nodes=3,
    blank_border_mm=20.0,
)
_DENSE: Final = replace(_GE, breast_density="c", background_enhancement_percent=35.0)
_PATIENT: Final = Patient(49, MenopausalStatus.PERI, "luminal_b", False, "CENTRE_D", "GE")


_MIX: Final = (
    replace(_GE, tumours=(TumourSpec(26.0, side=_R, early_enhancement_percent=120.0),)),
    replace(_GE, tumours=(TumourSpec(22.0, early_enhancement_percent=110.0, spicules=16),)),
    replace(_DENSE, tumours=(TumourSpec(48.0, _RIM, early_enhancement_percent=110.0),)),
    replace(_DENSE, tumours=(TumourSpec(55.0, _NON_MASS, _LEVEL, _R, 120.0),)),
    replace(
        _GE,
        tumours=(TumourSpec(14.0, curve=_LEVEL, early_enhancement_percent=90.0),),
        contrast_to_noise=6.0,
    ),
    replace(
        _GE,
        tumours=(TumourSpec(30.0, side=_R, early_enhancement_percent=100.0),),
        shape=(24, 104, 104),
        blank_border_mm=30.0,
    ),
    replace(
        _GE,
        tumours=(TumourSpec(24.0, early_enhancement_percent=110.0),),
        orientation="AIL",
        bias_percent=30.0,
    ),
    replace(
        _GE,
        tumours=(TumourSpec(20.0, side=_R, early_enhancement_percent=140.0),),
        fat_suppressed=False,
        nodes=6,
    ),
)


def plan_one_breast(index: int, seed: int, attempt: int = 0) -> PlannedCase:
    """Return case `index` (from 0) of the single-breast exams, of which eight differ.

    Higher indices repeat the eight exams. `attempt` selects another patient if the tumour of the
    first patient does not fit or lies outside the field of view.

    Parameters
    ----------
    index
        Number of the case, from 0.
    seed
        Random seed, 0 or more.
    attempt
        Number of the attempt, from 0.
    """
    rng = stream(seed, Part.CASE, 2_000_000 + 1_000_000 * attempt + index)
    name = f"ONE_BREAST_{index + 1:03d}"
    spec = replace(_MIX[index % len(_MIX)], case_id=name, seed=int(rng.integers(2**31)))
    return PlannedCase(spec, _PATIENT)


# The degraded mask replaces the data set's automatic mask: it has the typical faults of such
# masks.

_MARGIN_MM: Final = 9.0
_UNEVEN_MM: Final = 1.3
_FALSE_REGION_MM: Final = 5.0


def degraded_mask(phantom: Phantom) -> Mask:
    """Return the primary tumour with an inaccurate border, too large or too small by up to 2 mm.

    Secondary tumours are missing. On average, every second phantom also has a false-positive sphere
    of 5 mm radius in glandular tissue.
    """
    rng = stream(phantom.spec.seed, Part.AUTOMATIC_MASK)
    array = np.zeros(phantom.lesions.shape, np.bool_)
    grid = phantom.case.grid
    primary = phantom.lesions == 1
    margin = [ceil(_MARGIN_MM / spacing) for spacing in grid.spacing_mm]
    slices = Box.around(primary).grown(margin, grid.shape).slices
    points = Points.of(grid).block(slices)
    bounds = [(float(a.min()), float(a.max())) for a in points.along]
    border = make_field(rng, 6.0, (bounds[0], bounds[1], bounds[2]))
    error_mm = rng.uniform(-2, 2) + _UNEVEN_MM * border.at(points)
    array[slices] = distance_to_mask(primary[slices], grid.spacing_mm) < error_mm
    if rng.random() < 0.5:
        _add_false_region(array, phantom, rng)
    provenance = Provenance(
        phantom.case.case_id, Maker.MODEL, "automatic", note="degraded truth, made with the phantom"
    )
    return Mask(grid, array, provenance)


def _add_false_region(array: NDArray[np.bool_], phantom: Phantom, rng: np.random.Generator) -> None:
    places = np.argwhere(phantom.tissue == Tissue.FIBROGLANDULAR)
    if len(places) == 0:
        return
    points = Points.of(phantom.case.grid)
    centre = phantom.case.grid.to_world_mm(places[int(rng.integers(len(places)))])
    reach = _FALSE_REGION_MM
    low_high = [(float(c) - reach, float(c) + reach) for c in centre]
    bounds: Bounds = (low_high[0], low_high[1], low_high[2])
    window = points.window(bounds)
    if window is None:
        return
    near = points.block(window)
    x, y, z = (float(c) for c in centre)
    away2 = (near.x_mm - x) ** 2 + (near.y_mm - y) ** 2 + (near.z_mm - z) ** 2
    array[window] |= away2 <= reach**2


T = TypeVar("T")

_STEPS_PER_CASE: Final = 100
_DRAWING: Final = 70
_ATTEMPTS: Final = 20
_REPETITION_MS: Final = 5.0
_ECHO_MS: Final = 1.8


class PhantomMix(StrEnum):
    """Which cases a data set contains: a realistic mix, or sagittal exams of one breast."""

    MIXED = "mixed"
    ONE_BREAST = "one-breast"

    def plan(self, index: int, seed: int, attempt: int) -> PlannedCase:
        """Return case `index` (from 0) of a data set; `attempt` selects another patient."""
        planned = plan_case if self is PhantomMix.MIXED else plan_one_breast
        return planned(index, seed, attempt)


def write_data_set(
    root: Path,
    n_cases: int = 12,
    seed: int = 0,
    shape: tuple[int, int, int] | None = None,
    mix: PhantomMix = PhantomMix.MIXED,
) -> Path:
    """Write a data set of `n_cases` phantoms, and return `root`.

    The folder contains ``images``, ``segmentations/expert`` (the truth),
    ``segmentations/automatic`` (a degraded truth, for three cases in four), ``patient_info_files``,
    ``clinical_and_imaging_info.xlsx`` and ``train_test_splits.csv``. The folder gets its final name
    only when it is complete; no files remain if the job fails or is cancelled.

    Parameters
    ----------
    root
        The new folder; missing parent folders are created.
    n_cases
        Number of cases, 1 to 2000. The first twelve cases (eight for exams of one breast) all
        differ.
    seed
        Random seed, 0 or more; equal seeds give equal voxels.
    shape
        Shape (z, y, x) of every case over the same field of view; by default each case has its own
        shape.
    mix
        The mix of cases.

    Raises
    ------
    SaveConflictError
        If `root` exists and is not an empty folder.
    CaseError
        If `n_cases` is out of range.
    SaveError
        If a file cannot be written.
    """
    if not 1 <= n_cases <= 2000:
        raise CaseError(
            f"expected the number of phantom cases to be from 1 to 2000, but it is {n_cases}"
        )
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise SaveConflictError(
            f"the folder {root} is not empty, and nothing was written; choose another folder"
        )
    total = n_cases * _STEPS_PER_CASE
    records = []
    with own_folder(root.parent) as building:
        for index in range(n_cases):
            start = index * _STEPS_PER_CASE
            plan = partial(mix.plan, index, seed)
            phantom, patient = _make_case(plan, shape, start, total)
            _write_case(building, index, phantom, patient, start + _DRAWING, total)
            records.append(_make_record(phantom, patient))
        report_progress(total, total, "Writing the clinical table")
        write_clinical(Cohort(tuple(records)), building / "clinical_and_imaging_info.xlsx")
        _write_splits(building / "train_test_splits.csv", [record.case_id for record in records])
        place_folder(building, root)
    report_progress(total, total, f"Wrote {n_cases} phantoms to {root.name}")
    return root


def _make_case(
    plan: Callable[[int], PlannedCase], shape: tuple[int, int, int] | None, start: int, total: int
) -> tuple[Phantom, Patient]:
    """Make one case; try further patients until the tumours fit."""
    for attempt in range(_ATTEMPTS):
        planned = resized(plan(attempt), shape)
        try:
            with part(start, start + _DRAWING, total):
                phantom = make_phantom_job(planned.spec)
        except CaseError:
            if attempt == _ATTEMPTS - 1:
                raise
        else:
            return phantom, planned.patient
    raise CaseError(f"the phantom case {planned.spec.case_id} cannot be made; change the seed")


def resized(planned: PlannedCase, shape: tuple[int, int, int] | None) -> PlannedCase:
    """Return a case resampled to a different shape over the same field of view."""
    if shape is None:
        return planned
    spec = planned.spec
    z, y, x = (
        spacing * old / new
        for spacing, old, new in zip(spec.spacing_mm, spec.shape, shape, strict=True)
    )
    return replace(planned, spec=replace(spec, shape=shape, spacing_mm=(z, y, x)))


def _write_case(
    root: Path, index: int, phantom: Phantom, patient: Patient, start: int, total: int
) -> None:
    case = phantom.case
    text = f"Writing {case.case_id}"
    step = (_STEPS_PER_CASE - _DRAWING) // (len(case.phases) + 2)
    for phase in case.phases:
        report_progress(start + phase.index * step, total, text)
        name = f"{case.case_id}_{phase.index:04d}.nii.gz"
        path = root / "images" / case.case_id / name
        phase_start = start + phase.index * step
        with part(phase_start, phase_start, total), saying(text):
            write_volume_job(case.signal[phase.index], case.grid, path)
    report_progress(start + len(case.phases) * step, total, text)
    masks = root / "segmentations"
    write_mask(phantom.reference, masks / "expert" / f"{case.case_id}.nii.gz")
    if index % 4 != 3:
        write_mask(degraded_mask(phantom), masks / "automatic" / f"{case.case_id}.nii.gz")
    info = root / "patient_info_files" / f"{case.case_id.lower()}.json"
    write_json(_patient_info(phantom, patient), info)


def _make_record(phantom: Phantom, patient: Patient) -> CaseRecord:
    record, subtype = phantom.record, patient.tumour_subtype
    her2 = subtype.startswith("her2")
    hormonal = subtype.startswith("luminal")
    other = dict(record.other)
    other |= {
        "hr": int(hormonal),
        "her2": int(her2),
        "has_implant": 0,
        "view": phantom.case.grid.acquisition_plane,
        "bilateral_mri": int(_is_bilateral(phantom)),
        "site": patient.site,
        "manufacturer": patient.manufacturer,
        "scanner_model": "procedural phantom",
        "echo_time": _ECHO_MS,
        "repetition_time": _REPETITION_MS,
    }
    return replace(
        record,
        age=float(patient.age),
        menopausal_status=patient.menopausal_status,
        tumour_subtype=subtype,
        pcr=patient.pcr,
        other=MappingProxyType(other),
    )


def _is_bilateral(phantom: Phantom) -> bool:
    x_mm = phantom.case.grid.to_world_mm(np.argwhere(phantom.breast))[:, 0]
    return bool(x_mm.min() < 0 < x_mm.max()) and phantom.spec.breasts == "both"


def _patient_info(phantom: Phantom, patient: Patient) -> dict[str, Any]:
    """Return the patient JSON, whose keys x, y and z hold the breast box along z, y and x.

    Source of the axis order and of the exclusive upper bound: MAMA-MIA challenge, sample
    submission.
    """
    box = _primary_breast(phantom)
    coordinates: dict[str, int] = {}
    for axis, low, high in zip("xyz", box.start, box.stop, strict=True):
        coordinates |= {f"{axis}_min": low, f"{axis}_max": high}
    return {
        "patient_id": phantom.case.case_id,
        "primary_lesion": {
            "pcr": int(patient.pcr),
            "tumor_subtype": patient.tumour_subtype,
            "breast_coordinates": coordinates,
        },
        "imaging_data": {
            "bilateral": _is_bilateral(phantom),
            "dataset": "PHANTOM",
            "site": patient.site,
            "scanner_manufacturer": patient.manufacturer,
            "scanner_model": "procedural phantom",
            "field_strength": phantom.spec.field_strength_t,
            "echo_time": _ECHO_MS,
            "repetition_time": _REPETITION_MS,
            "acquisition_times": list(phantom.spec.times_s),
        },
    }


def _primary_breast(phantom: Phantom) -> Box:
    """Return the box around the breast with the primary tumour, including all its tumours."""
    grid = phantom.case.grid
    inside = np.argwhere(phantom.breast | (phantom.lesions == 1))
    right = grid.to_world_mm(inside)[:, 0] > 0
    is_right = phantom.spec.tumours[0].side == "right"
    of_side = np.zeros(grid.shape, np.bool_)
    of_side[tuple(inside[right == is_right].T)] = True
    return Box.around(of_side)


def _write_splits(path: Path, case_ids: list[str]) -> None:
    """Write the split table, with every third case in the test set.

    The columns of this table differ in length.
    """
    test = case_ids[2::3]
    train = [case_id for case_id in case_ids if case_id not in test]
    rows = ["train_split,test_split"]
    rows += [f"{a},{test[k] if k < len(test) else ''}" for k, a in enumerate(train)]
    write_text_atomically(path, "\n".join(rows) + "\n")
