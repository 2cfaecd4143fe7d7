"""Write masks as DICOM SEG for the slices of the series on which they were drawn."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.errors import CaseError, FormatError, MamamiaError, SaveError
from napari_mamamia.core.grid import Grid, require_same_grid
from napari_mamamia.core.reorientation import reorientation_to
from napari_mamamia.io.dicom.elements import open_dicom
from napari_mamamia.io.dicom.mosaic import is_mosaic
from napari_mamamia.io.dicom.pseudonym import Pseudonym, mark_impersonal, without_person
from napari_mamamia.io.files.foreign import explained, reads
from napari_mamamia.io.files.save import saving
from napari_mamamia.io.files.sources import PhaseSource
from napari_mamamia.io.seg.codes import SegmentMeaning, load_highdicom, segment_description
from napari_mamamia.io.seg.seg import read_segmentation

# A DICOM SEG refers to one file for each slice, or to the frames of one phase in one file.

_PATIENT: Final = (
    "PatientID", "PatientName", "PatientBirthDate", "PatientSex", "AccessionNumber", "StudyID",
    "StudyDate", "StudyTime", "ReferringPhysicianName",
)  # fmt: skip


@reads("a DICOM series that a segmentation can refer to", "export the series again")
def source_images(source: PhaseSource) -> list[Any]:
    """Return the source data sets for highdicom, without voxels, in slice order.

    The result is one data set for each slice, or one multi-frame file that is reduced to the frames
    of this phase. Its frame numbers are corrected afterwards by `name_frames`. The reduction is
    needed because highdicom treats all frames of a file as one stack, and another phase would have
    the same positions.

    Raises
    ------
    CaseError
        If the phase is a mosaic, or is stored in several multi-frame files.
    FormatError
        If a file cannot be read or lacks an element that a segmentation must refer to.
    """
    if not source.frames:
        images = [_source_image(path) for path in source.files]
        if len({image.SOPInstanceUID for image in images}) < len(images):
            raise CaseError(
                "a DICOM SEG needs a different SOPInstanceUID for each image, but several images "
                f"of one phase share the UID of {source.files[0]}, possibly because of an "
                "anonymiser: write NIfTI"
            )
        return images
    first = source.files[0]
    image = _source_image(first)
    if is_mosaic(image):
        raise CaseError(
            f"a DICOM SEG refers to single slices, but {first} is a Siemens mosaic, which has no "
            "position for each slice: export the series again as single slices, or write NIfTI"
        )
    if len(set(source.files)) > 1:
        raise CaseError(
            "a DICOM SEG needs one file for each slice or one multi-frame file, but a phase is "
            f"stored in frames of {len(set(source.files))} files such as {first}: export the "
            "study with one file for each phase, or write NIfTI"
        )
    _keep_frames(image, source.frames)
    _share_groups(image)
    return [image]


def name_frames(made: Any, frames: Sequence[int]) -> None:
    """Write the frame numbers of a source file into a SEG made from `source_images`.

    Each frame refers to the image frame on which it was drawn. The list of source images names all
    these frames, because the reference does not apply to every frame of the file. Source: DICOM
    PS3.3, table 10-3, Referenced Frame Number.

    Parameters
    ----------
    made
        The SEG object, changed in place.
    frames
        The frame of each slice, counted from 0; empty for single-frame files.
    """
    if not frames:
        return
    items = {
        id(item): item
        for group in made.PerFrameFunctionalGroupsSequence
        for derivation in group.DerivationImageSequence
        for item in derivation.SourceImageSequence
    }  # Segments at one position share their item.
    for item in items.values():
        item.ReferencedFrameNumber = frames[int(item.ReferencedFrameNumber) - 1] + 1
    (whole,) = made.SourceImageSequence
    named = type(whole)()
    named.ReferencedSOPClassUID = whole.ReferencedSOPClassUID
    named.ReferencedSOPInstanceUID = whole.ReferencedSOPInstanceUID
    named.ReferencedFrameNumber = sorted(frame + 1 for frame in frames)
    made.SourceImageSequence = [named]


@contextmanager
def referring_to(path: Path) -> Iterator[None]:
    """Convert errors of highdicom and pydicom about a source into an error that names its file."""
    expected = "a DICOM series that a segmentation can refer to"
    remedy = "export the series again, or use a different series as reference"
    with explained(path, expected, remedy), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Scanners write values that violate the standard.
        yield


def _keep_frames(image: Any, frames: Sequence[int]) -> None:
    groups = image.PerFrameFunctionalGroupsSequence
    image.PerFrameFunctionalGroupsSequence = [groups[frame] for frame in frames]
    image.NumberOfFrames = len(frames)


def _share_groups(image: Any) -> None:
    shared, first = (
        image.SharedFunctionalGroupsSequence[0],
        image.PerFrameFunctionalGroupsSequence[0],
    )
    for name in ("PixelMeasuresSequence", "PlaneOrientationSequence"):
        if name not in shared and name in first:
            setattr(shared, name, getattr(first, name))


def _source_image(path: Path) -> Any:
    with referring_to(path):
        image = open_dicom(path, path, stop_before_pixels=True)
    for name in ("FrameOfReferenceUID", "StudyInstanceUID", "SOPInstanceUID"):
        if not image.get(name):
            raise FormatError(
                f"a DICOM SEG must refer to {name} of {path}, but this element is missing: export "
                "the series again with this element"
            )
    for name in _PATIENT:
        if name not in image:
            setattr(image, name, "")
    return image


_SERIES_OFFSET: Final = 1000
"""Offset added to the series number of the source, so that the segmentation sorts last."""


def write_segmentation(
    labels: NDArray[np.uint8],
    names: Sequence[tuple[int, str]],
    grid: Grid,
    source: PhaseSource,
    source_grid: Grid,
    meaning: SegmentMeaning,
    path: Path,
    *,
    pseudonym: Pseudonym | None = None,
    software: str = "",
    overwrite: bool = False,
) -> None:
    """Write a binary DICOM SEG; verify it by reading it back before it gets its final name.

    Parameters
    ----------
    labels
        Labels ``(z, y, x)`` on `grid`. Each label in `names` that occurs becomes a segment with its
        name.
    source, source_grid
        One DICOM phase and its grid, which equals `grid` except that axes may have opposite
        directions. The phase has one file for each slice, or one multi-frame file. If that file
        also contains other phases, the segmentation refers only to the frames of this phase.
    meaning
        The creator of the segments.
    pseudonym
        Pseudonym that replaces the patient, together with remapped UIDs. If None, the patient,
        study and UIDs of the source are written, which a PACS needs.
    software
        Name and version of this software for ``SoftwareVersions``.

    Raises
    ------
    CaseError
        If a label has no coded name, the mask is empty, or the source is a mosaic or stored in
        several multi-frame files.
    GridMismatchError
        If the two grids differ.
    FormatError
        If a source file cannot be read or lacks an element that a segmentation must refer to.
    MissingExtraError
        If highdicom is not installed.
    SaveConflictError, SaveError
        If the file exists or cannot be written, or differs when it is read back.
    """
    load_highdicom()
    turn = reorientation_to(grid, source_grid.orientation)
    first = source.files[0]
    require_same_grid(turn.target, source_grid, "the mask", f"the DICOM series of {first}")
    segments = [(value, name) for value, name in names if np.any(labels == value)]
    if not segments:
        raise CaseError(
            f"expected at least one marked voxel for a DICOM SEG, but the mask for {path.name} is "
            "empty: leave out the case, or export it as NIfTI"
        )
    masks = [labels == value for value, _ in segments]
    turned = np.stack([turn.array(mask) for mask in masks], axis=-1)
    with referring_to(first):
        images = source_images(source)
        if pseudonym is not None:
            images = [without_person(image, pseudonym) for image in images]
        segmentation = _make_segmentation(
            turned, [name for _, name in segments], images, meaning, software
        )
        name_frames(segmentation, source.frames)
        if pseudonym is not None:
            mark_impersonal(segmentation)
    with saving(path, overwrite=overwrite) as temporary:
        segmentation.save_as(temporary)
        _require_equal(temporary, path, masks, grid)


def _make_segmentation(
    stack: NDArray[np.bool_],
    names: Sequence[str],
    images: Sequence[Any],
    meaning: SegmentMeaning,
    software: str,
) -> Any:
    hd = load_highdicom()
    described = [segment_description(hd, k, name, meaning) for k, name in enumerate(names, start=1)]
    return hd.seg.Segmentation(
        source_images=images,
        pixel_array=stack,
        segmentation_type="BINARY",
        segment_descriptions=described,
        series_instance_uid=hd.UID(),
        series_number=int(images[0].get("SeriesNumber") or 0) + _SERIES_OFFSET,
        sop_instance_uid=hd.UID(),
        instance_number=1,
        manufacturer="napari-mamamia developers",
        manufacturer_model_name="napari-mamamia",
        software_versions=software or "unknown",
        device_serial_number="1",
        content_label="SEGMENTATION",
        content_description="Tumour annotation on breast DCE-MRI",
        series_description=f"Segmentation {meaning.name}"[:64],
    )


def _require_equal(
    temporary: Path, path: Path, wanted: Sequence[NDArray[np.bool_]], grid: Grid
) -> None:
    try:
        seen = read_segmentation(temporary)
        same = len(seen.segments) == len(wanted) and all(
            np.array_equal(seen.on_grid(segment, grid), mask)
            for segment, mask in zip(seen.segments, wanted, strict=True)
        )
    except MamamiaError as error:
        raise SaveError(
            f"expected {path} to be readable, but {error}: save the file again"
        ) from error
    if not same:
        raise SaveError(
            f"expected {path} to contain the masks that were written, but they differ: save the "
            "file again; an existing file is unchanged"
        )
