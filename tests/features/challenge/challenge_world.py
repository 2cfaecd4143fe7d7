"""A small challenge: references, a clinical table, and teams whose masks are moved by a voxel."""

from pathlib import Path

import nibabel as nib
import numpy as np

SHAPE = (6, 20, 24)
AFFINE = np.diag([-0.8, 0.8, 2.0, 1.0])
TEAMS = {"alpha": 0, "beta": 1, "gämma": 2}


def write_mask(path: Path, array, affine=AFFINE, dtype=np.uint8) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    image = nib.Nifti1Image(array.transpose().astype(dtype), affine)
    image.header.set_xyzt_units("mm")
    nib.save(image, path)


def reference(number: int):
    mask = np.zeros(SHAPE, np.uint8)
    edge = 3 + number % 4
    mask[1:4, 6 : 6 + edge, 8 : 8 + edge] = 1
    return mask


def ids(n_cases: int) -> list[str]:
    return [f"C_{number:02d}" for number in range(n_cases)]


def write_references(root: Path, n_cases: int = 6) -> Path:
    rows = ["patient_id,age,menopause,breast_density,pcr"]
    for number, case_id in enumerate(ids(n_cases)):
        write_mask(root / "reference" / f"{case_id}.nii.gz", reference(number))
        menopause = "pre" if number % 2 else "post"
        rows.append(f"{case_id},{35 + 5 * number},{menopause},{'ab'[number % 2]},{number % 3 == 0}")
    (root / "clinical.csv").write_text("\n".join(rows).replace("True", "1").replace("False", "0"))
    return root / "reference"


def write_team(folder: Path, shift: int, n_cases: int = 6) -> Path:
    for number, case_id in enumerate(ids(n_cases)):
        moved = np.roll(reference(number), shift, axis=1)
        write_mask(folder / f"{case_id}.nii.gz", moved)
    return folder


def begun(root: Path, n_cases: int = 6, **more):
    """Begin a challenge in ``root/challenge`` and hand in the teams' masks."""
    from napari_mamamia.features.challenge.services.challenge.begin import (
        ChallengeSettings,
        begin_challenge,
    )

    reference_folder = write_references(root, n_cases)
    settings = {
        "reference": reference_folder,
        "clinical": root / "clinical.csv",
        "n_resamples": 0,
        **more,
    }
    folder = root / "challenge"
    begin_challenge(folder, ChallengeSettings(**settings))
    for team, shift in TEAMS.items():
        write_team(folder / "submissions" / team, shift, n_cases)
    return folder
