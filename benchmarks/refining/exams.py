"""Real exams for the scenes: fetched by repository and commit, imported; what counts as true.

Nothing of them is kept here. ``--from DIR`` takes bare repositories ``DIR/OWNER+NAME/repo``.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import binary_fill_holes, label

from napari_mamamia.core.case import Case
from public_series import HOST, take_folder
from real_exams import read_case, seg_voxels

COMMITS = {
    "oncoray/mirp": "d8a6a7264a4d0ccb1f88cc670e0b6d047235909f",
    "grzechu2000/BREAST_MRI_SEGMENTATION": "be0b8475d088aedc59cf476c38d45c49ea6eda46",
    "AIM-Harvard/pyradiomics": "8ed579383b44806651c463d5e691f3b2b57522ab",
}
EXAMS = {
    "UCSF-BR-06": ("oncoray/mirp", "test/data/dce_images_mr/UCSF-BR-06"),
    "UCSF-BR-08": ("oncoray/mirp", "test/data/dce_images_mr/UCSF-BR-08"),
    "Breast_MRI_153": ("grzechu2000/BREAST_MRI_SEGMENTATION", "Breast_MRI_153"),
}
"""Collections of TCIA: Breast-MRI-NACT-Pilot (CC BY 3.0), Duke-Breast-Cancer-MRI (CC BY-NC 4.0)."""

UCSF_SEGS = {
    "ISPY1_1002": "*/32100.*/*.dcm",
    "UCSF-BR-06": "**/mask/1-1.dcm",
    "UCSF-BR-08": "**/mask/1-1.dcm",
}
DUKE_BOX = np.s_[60:78, 366:402, 89:124]  # the collection's radiologist's box, as (z, y, x)
SLICE_BOX = np.s_[:, 62:102, 80:120]  # where the source of dce_slice says that the tumour is

Bools = NDArray[np.bool_]


class FetchError(Exception):
    """Files that could not be fetched, with why."""


def fetch(name: str, part: str, target: Path, mirror: Path | None) -> None:
    """Write a folder (or file) of a public repository below `target`, with its path."""
    with tempfile.TemporaryDirectory() as scratch:
        repository = Path(scratch) / "repo"
        if mirror is not None:
            repository = mirror / name.replace("/", "+") / "repo"
        else:
            source = ["clone", "--bare", "--filter=blob:none", f"{HOST}/{name}", repository]
            cloned = subprocess.run(["git", *source], capture_output=True, check=False)
            if cloned.returncode:
                raise FetchError(f"{HOST}/{name} could not be fetched (or --from DIR)")
        try:
            n_absent = take_folder(repository, COMMITS[name], part, target)
        except subprocess.CalledProcessError as error:
            raise FetchError(f"{repository} does not hold {COMMITS[name]}") from error
    if n_absent or not any(target.rglob("*")):
        raise FetchError(f"{n_absent} files of {name}:{part} are absent there")


def read_exam(exam: str, place: Path) -> tuple[Case, Bools]:
    """Import the DICOM of ``place/dicom`` and return the case and what is taken for true."""
    command = ["import", place / "dicom", "--out", place / "case", "--case", exam]
    program = "from napari_mamamia.cli.app import main; main()"
    subprocess.run([sys.executable, "-c", program, *command], check=True, capture_output=True)
    case = read_case(place / "case")
    if exam == "Breast_MRI_153":
        return case, half_of_the_most(case, DUKE_BOX)
    (seg,) = (place / "dicom").glob(UCSF_SEGS[exam])
    return case, _largest_part(seg_voxels(seg, case))


def half_of_the_most(case: Case, box: tuple[slice, slice, slice]) -> Bools:
    """Return the largest part of a box that rises by half of what the most do, holes filled.

    "What the most do" is the 95th percentile of the rise to the first phase after contrast.
    """
    rise = case.signal[1][box].astype(np.float64) - case.signal[0][box]
    mask = np.zeros(case.grid.shape, dtype=np.bool_)
    mask[box] = _largest_part(rise >= 0.5 * np.percentile(rise, 95))
    if len(mask) == 1:
        return np.asarray(binary_fill_holes(mask[0]))[np.newaxis]
    return np.asarray(binary_fill_holes(mask))


def _largest_part(mask: Bools) -> Bools:
    parts, _ = label(mask, np.ones((3, 3, 3)))
    sizes = np.bincount(parts.ravel())
    sizes[0] = 0
    part: Bools = parts == int(sizes.argmax())
    return part
