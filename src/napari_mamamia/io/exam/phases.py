"""Open a folder of DICOM files as ordered phases with times, and read their voxels.

One series with all phases, or one for each phase; classic or enhanced multi-frame. The clock that
orders them is chosen in `napari_mamamia.io.dicom.clocks`. Uncertain exams are refused with the
reason.
"""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from napari_mamamia.core.errors import CaseError, FormatError
from napari_mamamia.core.progress import listening
from napari_mamamia.io.dicom.files import read_studies, require_readable
from napari_mamamia.io.dicom.headers import read_slices
from napari_mamamia.io.dicom.pixels import common_type, fill_planes
from napari_mamamia.io.dicom.slices import BadImage, OtherImage, Slice
from napari_mamamia.io.dicom.stack import find_places
from napari_mamamia.io.exam.exam import Exam, find_exam
from napari_mamamia.io.exam.selectors import Selection
from napari_mamamia.io.files.foreign import reads
from napari_mamamia.io.files.headers import VolumeHeader
from napari_mamamia.io.files.sources import CaseFiles, PhaseSource

_log = logging.getLogger(__name__)


@reads("a readable DICOM exam", "export the series again")
def find_phases(
    folder: Path, selection: Selection | None = None, *, allow_thin: bool = False
) -> CaseFiles:
    """Return the phases of the exam in a folder and its subfolders, in order of time.

    The case id is the folder's name, because headers may hold the patient's. Images that cannot be
    phases are left out. `time_s` of a phase is None where unknown; `warnings` name assumptions.

    Parameters
    ----------
    folder
        The folder of the exam.
    selection
        The parts to use and to leave out; None lets the import decide.
    allow_thin
        Whether exams of one or two slices are accepted.

    Raises
    ------
    FormatError
        If there is no MR image, or a file is damaged or lacks its position.
    CaseError
        If there are several exams, or the exam contradicts itself; see `find_exam`.
    MissingExtraError
        If pydicom is not installed.
    """
    with listening(None):
        studies = read_studies(folder)
    for study in studies:
        require_readable(study)
    with_images = [study for study in studies if any(True for _ in study.headers)]
    if len(with_images) > 1:
        raise CaseError(
            f"expected one exam in {folder}, but it holds {len(with_images)} different studies, "
            f"below {with_images[0].folder} and {with_images[1].folder}: open one exam's folder"
        )
    exam = find_exam(
        (with_images or studies)[0].images,
        str(folder),
        selection=selection or Selection(),
        allow_thin=allow_thin,
    )
    for row in exam.rows:
        if row.fate.startswith("left out"):
            _log.info("series %s, %d image(s), %s", row.number, row.n_images, row.fate)
    warnings = tuple(warning.text for warning in exam.warnings)
    return CaseFiles(folder.name, _list_sources(exam), warnings=warnings)


@reads("a readable DICOM series", "export the series again")
def read_dicom_header(files: Sequence[Path], frames: Sequence[int] = ()) -> VolumeHeader:
    """Return shape, type and place of one phase; `files` are in slice order.

    Voxel (x, y, z) counts along a row, down a column, and up the stack. If slices are scaled
    differently, `slope` and `intercept` are those of one slice, with a warning.

    Parameters
    ----------
    files
        The file of each plane.
    frames
        The frame in each file, from 0; empty for single-frame files.

    Raises
    ------
    FormatError
        If a file is damaged, no MR image, or out of order.
    CaseError
        If the files are no complete stack.
    MissingExtraError
        If pydicom is not installed.
    """
    slices = _read_planes(files, frames)
    places = find_places(slices)
    if [row[0] for row in places.rows] != slices:
        raise FormatError(
            f"expected the files of {places.name} in slice order, but {files[0]} is out of "
            "order: open the folder again"
        )
    scalings = {image.scaling.pair for image in slices}
    slope, intercept = max(scalings, key=lambda scaling: (scaling != (1.0, 0.0), scaling))
    warnings: tuple[str, ...] = ()
    if len(scalings) > 1:
        warnings = (f"the slices of {places.name} are scaled one by one (RescaleSlope differs)",)
    stored = common_type(slices)
    return VolumeHeader(files[0], places.grid, stored, slope, intercept, warnings=warnings)


@reads("a readable DICOM series", "export the series again")
def read_dicom_into(
    files: Sequence[Path], header: VolumeHeader, out: NDArray[Any], frames: Sequence[int] = ()
) -> None:
    """Fill `out`, (z, y, x) of the header's dtype, plane by plane, with each slice's scaling.

    Raises
    ------
    FormatError
        If a plane cannot be read or has another size.
    MissingExtraError
        If pydicom is not installed.
    """
    if out.dtype != header.dtype:
        raise ValueError(f"out must be of {header.dtype} for {header.path.name}, got {out.dtype}")
    fill_planes(_read_planes(files, frames), out)


def _read_planes(files: Sequence[Path], frames: Sequence[int]) -> list[Slice]:
    """Return the plane of each file and frame; a file of many frames is read once."""
    planes: dict[Path, tuple[Slice, ...]] = {}
    for file in files:
        if file not in planes:
            image = read_slices(file)
            if isinstance(image, BadImage):
                raise FormatError(image.reason)
            if isinstance(image, OtherImage):
                raise FormatError(
                    f"expected MR images only, got 1 x {image.kind} ({file}): open the folder again"
                )
            planes[file] = image
    indices = frames or [0] * len(files)
    try:
        return [planes[file][frame] for file, frame in zip(files, indices, strict=True)]
    except IndexError as error:
        raise FormatError(
            f"expected at least {max(indices) + 1} frames in {files[0]}: open the folder again, it "
            "has changed"
        ) from error


def _list_sources(exam: Exam) -> tuple[PhaseSource, ...]:
    times = exam.times_s or (None,) * len(exam.stacks)
    has_frames = any(plane.frame for stack in exam.stacks for plane in stack)
    return tuple(
        PhaseSource(
            tuple(plane.file for plane in stack),
            time_s=time,
            frames=tuple(plane.frame for plane in stack) if has_frames else (),
        )
        for stack, time in zip(exam.stacks, times, strict=True)
    )
