"""Folders of ultrafast phantoms in the MAMA-MIA layout, written with nibabel."""

from pathlib import Path

import numpy as np
from benchmarks.phantoms.perfusion_case import (
    FLIP_DEGREES,
    REPETITION_S,
    PerfusionPhantom,
    perfusion_phantom,
)
from tests.conftest import write_nifti

__all__ = ["RAS", "write_ultrafast", "write_ultrafast_data_set"]

RAS = np.diag([2.0, 2.0, 2.0, 1.0])


def write_ultrafast(root: Path, phantom: PerfusionPhantom) -> None:
    """Write one phantom: phases, mask, an aorta beside them (vessels), its T1 map (t1)."""
    case = phantom.case
    for k, volume in enumerate(case.signal):
        name = f"{case.case_id}_{k:04d}.nii.gz"
        write_nifti(root / "images" / case.case_id / name, volume, RAS)
    own = f"{case.case_id}.nii.gz"
    write_nifti(root / "segmentations" / "expert" / own, phantom.lesion.astype(np.uint8), RAS)
    write_nifti(root.parent / "vessels" / own, phantom.aorta.astype(np.uint8), RAS)
    write_nifti(root.parent / "t1" / own, phantom.t1_s, RAS)


def write_ultrafast_data_set(root: Path, **spec: object) -> PerfusionPhantom:
    """Write the case ULTRAFAST_1 with its clinical row (times, TR in ms, flip angle)."""
    phantom = perfusion_phantom(**spec)
    write_ultrafast(root, phantom)
    times = ", ".join(f"{time:g}" for time in phantom.case.times_s)
    (root / "clinical_and_imaging_info.csv").write_text(
        "patient_id,age,acquisition_times,repetition_time,flip_angle\n"
        f'{phantom.case.case_id},50,"[{times}]",{1e3 * REPETITION_S:g},{FLIP_DEGREES:g}\n',
        encoding="utf-8",
    )
    return phantom
