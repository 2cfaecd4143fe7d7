"""`write_data_set`: a folder of phantoms in the MAMA-MIA layout, with its clinical table."""

from collections.abc import Callable, Generator
from dataclasses import replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeVar

import numpy as np

from napari_mamamia.core.box import Box
from napari_mamamia.core.cohort import CaseRecord, Cohort
from napari_mamamia.core.errors import CaseError, SaveConflictError, SaveError
from napari_mamamia.core.progress import Job, Progress
from napari_mamamia.io.clinical.clinical import write_clinical
from napari_mamamia.io.data_set.volumes import write_mask, write_volume_job
from napari_mamamia.io.files.own_paths import own_folder, place_folder
from napari_mamamia.io.files.save import write_text_atomically
from napari_mamamia.io.tables.tables import write_json
from napari_mamamia.phantom.case_mix import Patient, PlannedCase, plan_case
from napari_mamamia.phantom.degraded import degraded_mask
from napari_mamamia.phantom.one_breast import plan_one_breast
from napari_mamamia.phantom.phantom_case import Phantom, make_phantom_job

__all__ = ["PhantomMix", "write_data_set"]

T = TypeVar("T")

_STEPS_PER_CASE: Final = 100
_DRAWING: Final = 70
_ATTEMPTS: Final = 20
_REPETITION_MS: Final = 5.0
_ECHO_MS: Final = 1.8


class PhantomMix(StrEnum):
    """Which cases a data set holds: what real data sets hold, or sagittal exams of one breast."""

    MIXED = "mixed"
    ONE_BREAST = "one-breast"

    def plan(self, index: int, seed: int, attempt: int) -> PlannedCase:
        """Return case `index` (from 0) of a data set; `attempt` gives another patient."""
        planned = plan_case if self is PhantomMix.MIXED else plan_one_breast
        return planned(index, seed, attempt)


def write_data_set(
    root: Path,
    n_cases: int = 12,
    seed: int = 0,
    shape: tuple[int, int, int] | None = None,
    mix: PhantomMix = PhantomMix.MIXED,
) -> Job[Path]:
    """Return a job that writes `n_cases` phantoms and returns `root`.

    The folder gets ``images``, ``segmentations/expert`` (the truth), ``segmentations/automatic``
    (a degraded truth, for three cases in four), ``patient_info_files``,
    ``clinical_and_imaging_info.xlsx`` and ``train_test_splits.csv``. It appears under its name when
    it is complete; a cancelled or failed job leaves nothing.

    Parameters
    ----------
    root
        Folder to make; missing parents are made.
    n_cases
        1 to 2000. The first twelve differ in every respect that matters (`case_mix`); of one
        breast the first eight do (`one_breast`).
    seed
        0 or more; equal seeds give equal voxels.
    shape
        Voxels (z, y, x) of every case in place of its own, over the same field of view.
    mix
        Which cases.

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
        raise CaseError(f"a phantom data set has 1 to 2000 cases, got {n_cases}: choose a number")
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise SaveConflictError(
            f"expected no folder or an empty one at {root}, but something is there: nothing was "
            "written; choose another folder"
        )
    total = n_cases * _STEPS_PER_CASE
    records = []
    with own_folder(root.parent) as building:
        for index in range(n_cases):
            start = index * _STEPS_PER_CASE
            plan = partial(mix.plan, index, seed)
            phantom, patient = yield from _make(plan, shape, start, total)
            yield from _write_case(building, index, phantom, patient, start + _DRAWING, total)
            records.append(_record(phantom, patient))
        yield Progress(total, total, "Writing the clinical table")
        write_clinical(Cohort(tuple(records)), building / "clinical_and_imaging_info.xlsx")
        _write_splits(building / "train_test_splits.csv", [record.case_id for record in records])
        _put_in_place(building, root)
    yield Progress(total, total, f"Wrote {n_cases} phantoms to {root.name}")
    return root


def _put_in_place(building: Path, root: Path) -> None:
    try:
        place_folder(building, root)
    except OSError as error:
        raise SaveError(
            f"expected to name the finished data set {root}, but {error.strerror or error}: choose "
            "another folder; nothing was kept"
        ) from error


def _make(
    plan: Callable[[int], PlannedCase], shape: tuple[int, int, int] | None, start: int, total: int
) -> Generator[Progress, None, tuple[Phantom, Patient]]:
    """Make one case; where the tumours do not fit into one patient's breast, try the next."""
    for attempt in range(_ATTEMPTS):
        planned = _resized(plan(attempt), shape)
        try:
            job = make_phantom_job(planned.spec)
            phantom = yield from _within(job, start, start + _DRAWING, total)
        except CaseError:
            if attempt == _ATTEMPTS - 1:
                raise
        else:
            return phantom, planned.patient
    raise CaseError(
        f"{planned.spec.case_id} of the phantom data set cannot be made: change the seed"
    )


def _resized(planned: PlannedCase, shape: tuple[int, int, int] | None) -> PlannedCase:
    if shape is None:
        return planned
    spec = planned.spec
    z, y, x = (
        spacing * old / new
        for spacing, old, new in zip(spec.spacing_mm, spec.shape, shape, strict=True)
    )
    return replace(planned, spec=replace(spec, shape=shape, spacing_mm=(z, y, x)))


def _within(job: Job[T], start: int, stop: int, total: int) -> Generator[Progress, None, T]:
    """Run `job` as the part from `start` to `stop` of a longer one."""
    try:
        while True:
            try:
                progress = next(job)
            except StopIteration as end:
                result: T = end.value
                return result
            done = start + int(progress.fraction * (stop - start))
            yield Progress(done, total, progress.text)
    finally:
        job.close()


def _write_case(
    root: Path, index: int, phantom: Phantom, patient: Patient, start: int, total: int
) -> Generator[Progress, None, None]:
    case = phantom.case
    text = f"Writing {case.case_id}"
    step = (_STEPS_PER_CASE - _DRAWING) // (len(case.phases) + 2)
    for phase in case.phases:
        yield Progress(start + phase.index * step, total, text)
        name = f"{case.case_id}_{phase.index:04d}.nii.gz"
        path = root / "images" / case.case_id / name
        for _ in write_volume_job(case.signal[phase.index], case.grid, path):
            yield Progress(start + phase.index * step, total, text)
    yield Progress(start + len(case.phases) * step, total, text)
    masks = root / "segmentations"
    write_mask(phantom.reference, masks / "expert" / f"{case.case_id}.nii.gz")
    if index % 4 != 3:
        write_mask(degraded_mask(phantom), masks / "automatic" / f"{case.case_id}.nii.gz")
    info = root / "patient_info_files" / f"{case.case_id.lower()}.json"
    write_json(_patient_info(phantom, patient), info)


def _record(phantom: Phantom, patient: Patient) -> CaseRecord:
    """Return the case's row of the clinical table."""
    record, subtype = phantom.record, patient.tumour_subtype
    her2 = subtype.startswith("her2")
    hormonal = subtype.startswith("luminal")
    other = dict(record.other)
    other |= {
        "hr": int(hormonal),
        "her2": int(her2),
        "has_implant": 0,
        "view": _view(phantom),
        "bilateral_mri": int(_bilateral(phantom)),
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


def _view(phantom: Phantom) -> str:
    return phantom.case.grid.acquisition_plane


def _bilateral(phantom: Phantom) -> bool:
    """Whether both breasts are in the field of view."""
    x_mm = phantom.case.grid.to_world_mm(np.argwhere(phantom.breast))[:, 0]
    return bool(x_mm.min() < 0 < x_mm.max()) and phantom.spec.breasts == "both"


def _patient_info(phantom: Phantom, patient: Patient) -> dict[str, Any]:
    """Return the patient JSON; the breast's box counts along (z, y, x) under the names x, y, z.

    Source of the axis order and the open upper end: MAMA-MIA challenge, sample submission.
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
            "bilateral": _bilateral(phantom),
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
    """Return the box of the breast with the primary tumour, all tumours of that side included."""
    grid = phantom.case.grid
    inside = np.argwhere(phantom.breast | (phantom.lesions == 1))
    right = grid.to_world_mm(inside)[:, 0] > 0
    wanted = phantom.spec.tumours[0].side == "right"
    of_side = np.zeros(grid.shape, np.bool_)
    of_side[tuple(inside[right == wanted].T)] = True
    return Box.around(of_side)


def _write_splits(path: Path, case_ids: list[str]) -> None:
    """Write the split: every third case is for testing; the columns have unequal lengths."""
    test = case_ids[2::3]
    train = [case_id for case_id in case_ids if case_id not in test]
    rows = ["train_split,test_split"]
    rows += [f"{a},{test[k] if k < len(test) else ''}" for k, a in enumerate(train)]
    write_text_atomically(path, "\n".join(rows) + "\n")
