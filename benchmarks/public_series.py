"""Public DICOM test series: fetched where they are published, imported, compared with dcm2niix.

``python benchmarks/public_series.py fetch FOLDER`` takes each set of `SETS` at its commit (by git;
or ``--from DIR`` with bare repositories ``OWNER+NAME/repo``); nothing of them is kept here. Then
``python benchmarks/public_series.py compare FOLDER [--check]`` imports each series of each set by
its number (``mamamia import --use series=N``: nearly all are EPI or diffusion, which count only
where named) and looks for each phase among the volumes that dcm2niix makes of the same files:
place of the outer voxels in the patient, and greatest difference of the voxels as a share of the
greatest value. A series that is refused shows why. ``--check`` ends with 1 where a phase is in no
file of dcm2niix.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import nibabel
import numpy as np
from pydicom import dcmread
from pydicom.errors import InvalidDicomError

SETS = {
    "neurolabusc/dcm_qa_nih": ("d302d6e241dda747b79ee1724ada3200179755a2", "In"),
    "neurolabusc/dcm_qa_philips": ("b8cb56ef508e056a2e18a30381c7abf5ea57efe2", "In"),
    "neurolabusc/dcm_qa_enh": ("58953e7b0150c6b866b2cc2fc2b40366625672dc", "In"),
    "neurolabusc/dcm_qa_uih": ("d729bdd785d37ad5f1ed479c305a76f370d8011b", "In"),
    "neurolabusc/dcm_qa": ("4f85d067c8b61d12cec1689f8516cc30cd583d65", "In"),
    "icometrix/dicom2nifti": ("d68253ef3b173f43067b6f9db83788bc25cf50cd", "tests/data"),
}
"""Repository, commit and folder. dcm_qa*: BSD-2-Clause; dicom2nifti: MIT."""
HOST = "https://github.com"
SAME = 1e-6
"""Difference of two values as a share of the greatest: float32 rounding of a slope."""
SAME_MM = 0.01


@dataclass(frozen=True)
class Verdict:
    """What became of one series."""

    place: str
    number: int
    text: str
    is_different: bool = False


def fetch(folder: Path, mirror: Path | None) -> None:
    """Take each set at its commit into a folder of its own; one that is there is left alone."""
    for name, (commit, part) in SETS.items():
        target = folder / name.replace("/", "+")
        if target.exists():
            print(f"{name}: is there")
            continue
        with tempfile.TemporaryDirectory() as made:
            repository = Path(made) / "repo"
            if mirror is not None:
                repository = mirror / name.replace("/", "+") / "repo"
            else:
                source = ["clone", "--bare", "--filter=blob:none", f"{HOST}/{name}", repository]
                subprocess.run(["git", *source], check=True)
            n_absent = take_folder(repository, commit, part, target)
        lacks = f", {n_absent} absent there" if n_absent else ""
        print(f"{name}: {sum(path.is_file() for path in target.rglob('*'))} files{lacks}")


def take_folder(repository: Path, commit: str, part: str, target: Path) -> int:
    """Write the files of a folder at a commit; return how many a mirror does not hold."""
    git = ["git", f"--git-dir={repository}"]
    listed = [*git, "ls-tree", "-r", "-z", "--name-only", commit, part]
    names = subprocess.run(listed, check=True, capture_output=True).stdout.decode().split("\0")
    n_absent = 0
    for name in filter(None, names):
        read = subprocess.run([*git, "cat-file", "blob", f"{commit}:{name}"], capture_output=True)
        if read.returncode:
            n_absent += 1
            continue
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_bytes(read.stdout)
    return n_absent


def series_below(folder: Path) -> dict[tuple[Path, int], int]:
    """Return each folder that holds DICOM files and series number in it: how many files."""
    found: dict[tuple[Path, int], int] = defaultdict(int)
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            try:
                header = dcmread(path, stop_before_pixels=True, specific_tags=["SeriesNumber"])
            except (InvalidDicomError, OSError, ValueError, AttributeError):
                continue
            if header.get("SeriesNumber") is not None:
                found[path.parent, int(header.SeriesNumber)] += 1
    return found


def compare(place: Path, number: int, root: Path) -> Verdict:
    """Import one series, and look for each phase among the volumes that dcm2niix makes of it."""
    said = str(place.relative_to(root))
    with tempfile.TemporaryDirectory() as made:
        ours, peer = Path(made) / "ours", Path(made) / "peer"
        peer.mkdir()
        command = ["import", place, "--out", ours, "--case", "A", "--use", f"series={number}"]
        program = "from napari_mamamia.cli.app import main; main()"
        ended = subprocess.run(
            [sys.executable, "-c", program, *command, "--allow-thin"],
            capture_output=True,
            text=True,
        )
        phases = sorted(ours.glob("images/A/*.nii.gz"))
        if not phases:
            return Verdict(said, number, f"refused: {_reason(ended.stderr or ended.stdout)}")
        convert = ["dcm2niix", "-z", "n", "-f", "%s_%t_%e", "-o", peer, place]
        subprocess.run(convert, capture_output=True, check=False)
        theirs = [volume for path in sorted(peer.glob("*.nii")) for volume in _volumes(path)]
        if not theirs:
            return Verdict(said, number, f"{len(phases)} phase(s); dcm2niix makes no file of it")
        worst = max(_least_difference(nibabel.load(path), theirs) for path in phases)
    text = f"{len(phases)} phase(s), greatest difference {worst:.1e}"
    return Verdict(said, number, text, worst > SAME)


def _reason(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return (lines[-1] if lines else "without a word")[:220]


def _volumes(path: Path) -> list[nibabel.Nifti1Image]:
    image = nibabel.as_closest_canonical(nibabel.load(path))
    data = image.get_fdata()
    if data.ndim < 3:
        return []
    flat = data.reshape(*data.shape[:3], -1)
    return [nibabel.Nifti1Image(flat[..., k], image.affine) for k in range(flat.shape[3])]


def _least_difference(phase: nibabel.Nifti1Image, theirs: list[nibabel.Nifti1Image]) -> float:
    """Return the least of the greatest differences; infinite where none is of the same place."""
    ours = nibabel.as_closest_canonical(phase)
    values = ours.get_fdata()
    least = np.inf
    for other in theirs:
        if other.shape != ours.shape or not _is_same_place(ours, other):
            continue
        scale = max(float(np.abs(values).max()), 1e-30)
        least = min(least, float(np.abs(values - other.get_fdata()).max()) / scale)
    return least


def _is_same_place(one: nibabel.Nifti1Image, other: nibabel.Nifti1Image) -> bool:
    ends = np.array([[0, 0, 0, 1], [*(n - 1 for n in one.shape), 1]]).T
    return bool(np.abs(one.affine @ ends - other.affine @ ends).max() <= SAME_MM)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["fetch", "compare"], nargs="?", default="compare")
    named = os.environ.get("MAMAMIA_PUBLIC_SERIES")
    parser.add_argument("folder", type=Path, nargs="?", default=named and Path(named))
    parser.add_argument(
        "--from", dest="mirror", type=Path, help="bare repositories OWNER+NAME/repo"
    )
    parser.add_argument("--check", action="store_true", help="exit with 1 where voxels differ")
    options = parser.parse_args()
    if options.folder is None:
        print("skipped: no folder of fetched series (MAMAMIA_PUBLIC_SERIES)")
        return 0
    if options.what == "fetch":
        fetch(options.folder, options.mirror)
        return 0
    if shutil.which("dcm2niix") is None:
        print("dcm2niix is not installed (a Debian package)")
        return 2
    verdicts = []
    for place, number in series_below(options.folder):
        verdicts.append(compare(place, number, options.folder))
        print(f"{verdicts[-1].place} series {number}: {verdicts[-1].text}", flush=True)
    refused = sum("refused" in one.text for one in verdicts)
    different = sum(one.is_different for one in verdicts)
    print(f"{len(verdicts)} series: {refused} refused, {different} different from dcm2niix")
    return int(options.check and different > 0)


if __name__ == "__main__":
    sys.exit(main())
