"""`mamamia import` of many studies, some of them hostile: the real command, its files, its exit."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest

pytestmark = pytest.mark.door

_NOT_EVERY_CASE = 3


def _module(place: str):
    spec = importlib.util.spec_from_file_location(
        Path(place).stem, Path(__file__).parents[1] / place
    )
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def test_an_import_takes_the_good_studies_and_names_the_hostile_ones(tmp_path):
    phantoms, found = _module("dicom_phantoms.py"), _module("fuzz/test_found.py")
    source, out = tmp_path / "studies", tmp_path / "set"
    names = ["good_one", *(damage.__name__ for damage in found.HOSTILE), "good_two"]
    for number, name in enumerate(names, start=1):
        folder = source / name
        folder.mkdir(parents=True)
        phantoms.write_exam(
            folder, 2, StudyInstanceUID=f"2.25.{number}", SeriesInstanceUID=f"2.25.{number}00"
        )
    for damage in found.HOSTILE:
        victim = source / damage.__name__ / "IM_0_002.dcm"
        victim.write_bytes(damage(victim.read_bytes()))
    done = subprocess.run(
        [Path(sys.executable).with_name("mamamia"), "import", source, "--out", out],
        capture_output=True, text=True, timeout=240, env={**os.environ, "COLUMNS": "400"},
    )  # fmt: skip
    said = done.stdout + done.stderr
    assert done.returncode == _NOT_EVERY_CASE, said
    assert "Traceback" not in said
    assert sorted(path.name for path in (out / "images").iterdir()) == ["good_one", "good_two"]
    for name in ("good_one", "good_two"):
        image = nib.load(out / "images" / name / f"{name}_0001.nii.gz")
        assert np.sort(np.asarray(image.dataobj), axis=None).tolist() == sorted(
            phantoms.dce_values(1).ravel().tolist()
        )
    for damage in found.HOSTILE:
        assert damage.__name__ in said


def test_signed_values_of_12_bits_are_imported_with_an_overlay_above_them(tmp_path):
    """-2048 .. 2047, not 0 .. 4095 or more; bit 12 holds an overlay."""
    phantoms = _module("dicom_phantoms.py")
    source, out = tmp_path / "study", tmp_path / "set"
    wanted = []
    for phase in range(2):
        volume = phantoms.dce_values(phase) - 2048 + 3300 * (phantoms.dce_values(phase) > 300)
        wanted.append(volume)
        words = (volume.astype(np.int16).view(np.uint16) & 0x0FFF) | 0x1000
        phantoms.write_phase(
            source, phase, values=words, AcquisitionTime=f"10{phase:02d}00",
            BitsStored=12, HighBit=11, PixelRepresentation=1,
            then=lambda *_: lambda image: image.add_new((0x6000, 0x0102), "US", 12),
        )  # fmt: skip
    done = subprocess.run(
        [Path(sys.executable).with_name("mamamia"), "import", source, "--out", out, "--case", "A"],
        capture_output=True, text=True, timeout=240, env={**os.environ, "COLUMNS": "400"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    for phase, volume in enumerate(wanted):
        image = nib.load(out / "images" / "A" / f"A_000{phase}.nii.gz")
        seen = np.asarray(image.dataobj)
        assert np.unique(seen).tolist() == np.unique(volume).tolist()
        assert seen.min() == -2048
