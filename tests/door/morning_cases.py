"""The five cases of a reader's morning, as one data set with the predictions of the night.

Real is the thick-slice sagittal one (ISPY1_1002, of the shared data), and the mass where the
Breast_MRI_153 of `shared/data/README.md` was fetched; phantoms stand for the others.
"""

import csv
import json
import os
import subprocess
import zipfile
from pathlib import Path

import nibabel as nib
import numpy as np

from napari_mamamia.phantom import (
    PhantomSpec,
    Side,
    TumourKind,
    TumourSpec,
    make_phantom,
)

MASS, NORMAL, NON_MASS, SAGITTAL, PRIOR = (
    "A_MASS",
    "B_NORMAL",
    "C_NON_MASS",
    "D_SAGITTAL",
    "E_PRIOR",
)
BEFORE = "F_BEFORE"
"""The exam of a year ago of the patient of `PRIOR`."""
_SIZE = {"shape": (60, 176, 240), "spacing_mm": (2.4, 1.4, 1.4)}
_CLUMPS = {"kind": TumourKind.NON_MASS, "early_enhancement_percent": 120.0}
PHANTOMS = {
    MASS: PhantomSpec(MASS, 31, tumours=(TumourSpec(20.0, side=Side.RIGHT, spicules=14),), **_SIZE),
    NORMAL: PhantomSpec(NORMAL, 32, tumours=(), background_enhancement_percent=12.0, **_SIZE),
    NON_MASS: PhantomSpec(
        NON_MASS,
        33,
        tumours=(
            TumourSpec(40.0, side=Side.RIGHT, axis_ratios=(0.7, 0.55), **_CLUMPS),
            TumourSpec(32.0, side=Side.LEFT, axis_ratios=(0.7, 0.55), **_CLUMPS),
        ),
        breast_density="c",
        **_SIZE,
    ),
    PRIOR: PhantomSpec(PRIOR, 34, tumours=(TumourSpec(24.0, spicules=10),), **_SIZE),
    BEFORE: PhantomSpec(BEFORE, 34, tumours=(TumourSpec(13.0, spicules=10),), **_SIZE),
}


def write_phantom(root: Path, spec: PhantomSpec) -> None:
    """Write the phases of a phantom with nibabel, and its times; no reference: nobody has one."""
    phantom = make_phantom(spec)
    folder = root / "images" / spec.case_id
    folder.mkdir(parents=True)
    for k, phase in enumerate(phantom.case.signal):
        image = nib.Nifti1Image(np.asarray(phase).transpose(), phantom.case.grid.affine)
        nib.save(image, folder / f"{spec.case_id}_{k:04d}.nii.gz")
    info = root / "patient_info_files"
    info.mkdir(exist_ok=True)
    content = {
        "imaging_data": {"acquisition_times": list(spec.times_s)},
        "import": {"frame_of_reference_uid_remapped": f"2.25.{spec.seed}"},
    }
    (info / f"{spec.case_id}.json").write_text(json.dumps(content))


def fetched_exam() -> Path | None:
    """Return the DICOM folder of Breast_MRI_153 where somebody fetched it."""
    named = os.environ.get("MAMAMIA_REAL_EXAM", "")
    return Path(named) if named and Path(named).is_dir() else None


def write_morning(root: Path, mamamia: Path, sagittal: Path | None) -> dict[str, str]:
    """Write the data set and predict it; return what each case is, by its id.

    `sagittal` is the zip of ISPY1_1002; without it a phantom of thick sagittal slices stands there.
    """
    kinds = {}
    for case_id, spec in PHANTOMS.items():
        exam = fetched_exam() if case_id == MASS else None
        if exam is not None:
            _call(mamamia, "import", exam, "--out", root, "--case", case_id)
        else:
            write_phantom(root, spec)
        kinds[case_id] = "phantom" if exam is None else "real: Breast_MRI_153"
    kinds[SAGITTAL] = "phantom" if sagittal is None else "real: ISPY1_1002"
    if sagittal is None:
        thick = PhantomSpec(
            SAGITTAL,
            35,
            shape=(30, 128, 128),
            spacing_mm=(4.0, 1.5, 1.5),
            orientation="PSR",
            times_s=(0.0, 400.0, 740.0),
            tumours=(TumourSpec(26.0, side=Side.RIGHT, early_enhancement_percent=120.0),),
        )
        write_phantom(root, thick)
    else:
        unpacked = root.with_name("ispy1")
        with zipfile.ZipFile(sagittal) as archive:
            archive.extractall(unpacked)
        _call(mamamia, "import", unpacked / "ISPY1_1002", "--out", root, "--case", SAGITTAL)
    for made in root.glob("clinical_and_imaging_info*"):
        made.unlink()
    with (root / "clinical_and_imaging_info.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["patient_id", "subject_id", "exam_date"])
        for number, case_id in enumerate(sorted(kinds)):
            same = case_id in (PRIOR, BEFORE)
            day = "2024-05-01" if case_id == BEFORE else "2025-05-01"
            writer.writerow([case_id, 99 if same else number, day])
    workspace = root.with_name(f"{root.name}-workspace")
    _call(mamamia, "predict", root, "--out", workspace / "predictions" / "kinetic")
    return kinds


def _call(mamamia: Path, *words: object) -> None:
    subprocess.run(
        [mamamia, *map(str, words)], check=True, capture_output=True, text=True, timeout=900
    )
