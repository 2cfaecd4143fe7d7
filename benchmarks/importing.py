"""Import of a 5-phase DICOM study against dicom2nifti and dcm2niix, each as one command.

Run: python benchmarks/importing.py [--check] [--small] [--rounds N] [--source FOLDER] [--many]
The study has 5 series of 170 slices of 512 x 512 (850 files, 446 MB), written once to a temporary
folder: noise in a body, zeros around it. Each program is a fresh process that reads the folder and
writes compressed NIfTI; they take turns, and the medians of their times are compared. Processor
time is told beside: it says what is left of a ratio on a busy machine. `mamamia import` also judges
the clocks, looks for enhancement, verifies every file that it writes and adds the table's row.
dcm2niix is a Debian package; without it its ratio is not judged. --source takes a study of your
own, of which the programs may write different numbers of files. --many times the headers of 10,000
small files in 30 series instead.
"""

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pydicom
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.uid import ExplicitVRLittleEndian, generate_uid

LIMIT_DICOM2NIFTI = 2.0
LIMIT_DCM2NIIX = 1.5
N_PHASES = 5
N_SLICES, N_ROWS = 170, 512
SMALL_SLICES, SMALL_ROWS = 40, 256
N_FILES, N_SERIES = 10_000, 30


def template(n_rows: int, series: int) -> Dataset:
    image = Dataset()
    image.file_meta = FileMetaDataset()
    image.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    image.SOPClassUID = "1.2.840.10008.5.1.4.1.1.4"
    image.Modality, image.Manufacturer = "MR", "phantom"
    image.ImageType = ["ORIGINAL", "PRIMARY", "M"]
    image.StudyInstanceUID = "2.25.1"
    image.SeriesInstanceUID = f"2.25.{100 + series}"
    image.SeriesNumber, image.PatientName, image.PatientID = series, "PHANTOM", "0"
    image.SeriesDescription, image.ProtocolName = f"dyn {series}", "dyn"
    image.ScanningSequence, image.MRAcquisitionType = "GR", "3D"
    image.SequenceVariant, image.EchoTime, image.RepetitionTime = "SK", 1.4, 4.1
    image.FlipAngle, image.SliceThickness = 12, 1.0
    image.StudyDate = image.SeriesDate = image.AcquisitionDate = image.ContentDate = "20200101"
    image.StudyTime = image.SeriesTime = "100000"
    minutes, rest = divmod(series * 90, 60)
    image.AcquisitionTime = image.ContentTime = f"10{minutes:02d}{rest:02d}"
    image.PixelSpacing, image.ImageOrientationPatient = [0.7, 0.7], [1, 0, 0, 0, 1, 0]
    image.Rows = image.Columns = n_rows
    image.SamplesPerPixel, image.PhotometricInterpretation = 1, "MONOCHROME2"
    image.BitsAllocated, image.BitsStored, image.HighBit = 16, 16, 15
    image.PixelRepresentation, image.PatientPosition = 1, "FFP"
    return image


def write_image(image: Dataset, path: Path, index: int, plane: np.ndarray) -> None:
    image.SOPInstanceUID = generate_uid()
    image.file_meta.MediaStorageSOPClassUID = image.SOPClassUID
    image.file_meta.MediaStorageSOPInstanceUID = image.SOPInstanceUID
    image.InstanceNumber, image.AcquisitionNumber = index + 1, 1
    image.ImagePositionPatient = [-180.0, -180.0, float(index)]
    image.PixelData = plane.tobytes()
    pydicom.dcmwrite(path, image, enforce_file_format=True)


def write_study(folder: Path, n_slices: int, n_rows: int) -> None:
    rng = np.random.default_rng(1)
    noise = rng.normal(300, 40, (8, n_rows, n_rows)).astype(np.int16)
    noise[:, : n_rows // 4] = 0
    for phase in range(N_PHASES):
        image = template(n_rows, phase + 1)
        for index in range(n_slices):
            plane = np.roll(noise[index % 8], 7 * index + phase, axis=1)
            middle = slice(n_rows // 2, n_rows // 2 + n_rows // 8)
            plane[middle, middle] *= 1 + (phase > 0)
            write_image(image, folder / f"IM{phase}_{index:04d}.dcm", index, plane)


def write_many(folder: Path) -> None:
    plane = np.zeros((4, 4), np.int16)
    for series in range(N_SERIES):
        image = template(4, series + 1)
        for index in range(N_FILES // N_SERIES + (series < N_FILES % N_SERIES)):
            write_image(image, folder / f"IM{series:02d}_{index:04d}", index, plane)


def command_ours(source: Path, out: Path) -> list[str]:
    program = Path(sys.executable).with_name("mamamia")
    return [str(program), "import", str(source), "--out", str(out), "--case", "BENCH"]


def command_dicom2nifti(source: Path, out: Path) -> list[str]:
    code = "import sys, dicom2nifti; dicom2nifti.convert_directory(*sys.argv[1:], reorient=False)"
    return [sys.executable, "-c", code, str(source), str(out)]


def command_dcm2niix(source: Path, out: Path) -> list[str]:
    return ["dcm2niix", "-z", "y", "-b", "n", "-o", str(out), str(source)]


def seconds(command: list[str], out: Path, n_expected: int | None) -> tuple[float, float]:
    """Return how long a command took, and how much processor time of all its threads."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    before, start = _processor_seconds(), time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    took, worked = time.perf_counter() - start, _processor_seconds() - before
    n_files = len(list(out.rglob("*.nii.gz")))
    if done.returncode or not n_files or n_expected not in {None, n_files}:
        raise SystemExit(f"{command[0]} wrote {n_files} files:\n{done.stdout}{done.stderr}")
    return took, worked


def _processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def compare(rounds: int, small: bool, check: bool, own: Path | None) -> int:
    n_slices, n_rows = (SMALL_SLICES, SMALL_ROWS) if small else (N_SLICES, N_ROWS)
    programs = {"mamamia import": command_ours, "dicom2nifti": command_dicom2nifti}
    if shutil.which("dcm2niix"):
        programs["dcm2niix -z y"] = command_dcm2niix
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in programs}
    with tempfile.TemporaryDirectory(prefix="mamamia-bench-") as place:
        source, out = own or Path(place, "in"), Path(place, "out")
        if own is None:
            source.mkdir()
            write_study(source, n_slices, n_rows)
        for _ in range(rounds):
            for name, command in programs.items():
                n_files = N_PHASES if own is None else None
                times[name].append(seconds(command(source, out), out, n_files))
    medians = {name: statistics.median(t for t, _ in found) for name, found in times.items()}
    worked = {name: statistics.median(t for _, t in found) for name, found in times.items()}
    what = own or f"{N_PHASES * n_slices} files of {n_rows} x {n_rows}"
    print(f"{what}, load {os.getloadavg()[0]:.1f}")
    for name, found in times.items():
        rest = ", ".join(f"{took:.2f}" for took, _ in found)
        print(f"{name:16} {medians[name]:6.2f} s, processor {worked[name]:6.2f} s  ({rest})")
    ours = medians["mamamia import"]
    faster = medians["dicom2nifti"] / ours
    spared = worked["dicom2nifti"] / worked["mamamia import"]
    print(f"{faster:.2f} x as fast as dicom2nifti (limit {LIMIT_DICOM2NIFTI}), "
          f"{spared:.2f} x by processor time")  # fmt: skip
    failed = faster < LIMIT_DICOM2NIFTI
    if "dcm2niix -z y" in medians:
        ratio = ours / medians["dcm2niix -z y"]
        print(f"{ratio:.2f} x the time of dcm2niix (limit {LIMIT_DCM2NIIX})")
        failed |= ratio > LIMIT_DCM2NIIX
    return int(check and failed)


def many() -> int:
    from napari_mamamia.io.dicom.files import read_studies
    from napari_mamamia.io.exam.exam import find_exam
    from napari_mamamia.io.exam.selectors import Selection, named_series

    with tempfile.TemporaryDirectory(prefix="mamamia-bench-") as place:
        folder = Path(place)
        write_many(folder)
        start = time.perf_counter()
        (study,) = read_studies(folder)
        read = time.perf_counter() - start
        exam = find_exam(study.images, "bench", selection=Selection(named_series((1, 2, 3))))
        total = time.perf_counter() - start
    print(f"{N_FILES} files in {N_SERIES} series: headers {read:.1f} s, table {total - read:.2f} s")
    print(f"{len(exam.stacks)} phases; load {os.getloadavg()[0]:.1f}")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--many", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--source", type=Path)
    arguments = parser.parse_args()
    if arguments.many:
        return many()
    return compare(arguments.rounds, arguments.small, arguments.check, arguments.source)


if __name__ == "__main__":
    sys.exit(main())
