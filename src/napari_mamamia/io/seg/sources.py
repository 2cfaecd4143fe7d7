"""What a DICOM SEG refers to: one file for each slice, or the frames of one phase of one file."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from napari_mamamia.core.errors import CaseError, FormatError
from napari_mamamia.io.dicom.elements import open_dicom
from napari_mamamia.io.dicom.mosaic import is_mosaic
from napari_mamamia.io.files.foreign import explained, reads
from napari_mamamia.io.files.sources import PhaseSource

__all__ = ["name_frames", "referring_to", "source_images"]

_PATIENT: Final = (
    "PatientID", "PatientName", "PatientBirthDate", "PatientSex", "AccessionNumber", "StudyID",
    "StudyDate", "StudyTime", "ReferringPhysicianName",
)  # fmt: skip


@reads("a DICOM series that a segmentation can refer to", "export the series again")
def source_images(source: PhaseSource) -> list[Any]:
    """Return the data sets that highdicom refers to, without voxels, in slice order.

    One for each slice; or one multi-frame file, cut down to the frames of this phase, whose numbers
    `name_frames` puts right afterwards: highdicom takes all frames of a file for one stack, and
    another phase would lie at the same places.

    Raises
    ------
    CaseError
        If the phase is a mosaic, or lies in several files of many frames.
    FormatError
        If a file cannot be read or lacks what a segmentation must name.
    """
    if not source.frames:
        return [_source_image(path) for path in source.files]
    first = source.files[0]
    image = _source_image(first)
    if is_mosaic(image):
        raise CaseError(
            f"a DICOM SEG refers to pictures of one slice, but {first} is a Siemens mosaic, which "
            "has no place in space for each: export the series again as single slices, or write "
            "NIfTI"
        )
    if len(set(source.files)) > 1:
        raise CaseError(
            f"a DICOM SEG refers to one file for each slice, or to one file of many frames, but a "
            f"phase lies in frames of {len(set(source.files))} files such as {first}: export the "
            "study with one file for each phase, or write NIfTI"
        )
    _keep_frames(image, source.frames)
    _share_groups(image)
    return [image]


def name_frames(made: Any, frames: Sequence[int]) -> None:
    """Put the file's own frame numbers into a SEG that was made on `source_images`.

    Each frame names the one that it was drawn on; the list of source images names them all, because
    the reference does not hold for every frame of the file. Source: DICOM PS3.3, table 10-3,
    Referenced Frame Number.

    Parameters
    ----------
    made
        The SEG object, changed in place.
    frames
        The frame of each slice, from 0; empty for a source of single-frame files.
    """
    if not frames:
        return
    items = {
        id(item): item
        for group in made.PerFrameFunctionalGroupsSequence
        for derivation in group.DerivationImageSequence
        for item in derivation.SourceImageSequence
    }  # segments at one place share their item
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
    """Turn what highdicom and pydicom say of a source into one error that names it."""
    expected = "a DICOM series that a segmentation can refer to"
    remedy = "export the series again, or write against another one"
    with explained(path, expected, remedy), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # values of scanners that break the standard's rules
        yield


def _keep_frames(image: Any, frames: Sequence[int]) -> None:
    groups = image.PerFrameFunctionalGroupsSequence
    image.PerFrameFunctionalGroupsSequence = [groups[frame] for frame in frames]
    image.NumberOfFrames = len(frames)


def _share_groups(image: Any) -> None:
    """Say once for all frames what each says alike, which is where highdicom looks for it."""
    shared, first = (
        image.SharedFunctionalGroupsSequence[0],
        image.PerFrameFunctionalGroupsSequence[0],
    )
    for name in ("PixelMeasuresSequence", "PlaneOrientationSequence"):
        if name not in shared and name in first:
            setattr(shared, name, getattr(first, name))


def _source_image(path: Path) -> Any:
    """Return a file's header, with empty patient elements where it has none."""
    with referring_to(path):
        image = open_dicom(path, path, stop_before_pixels=True)
    for name in ("FrameOfReferenceUID", "StudyInstanceUID", "SOPInstanceUID"):
        if not image.get(name):
            raise FormatError(
                f"expected {name} in {path}, but it is missing, and a segmentation must name it: "
                "export the series again with it"
            )
    for name in _PATIENT:
        if name not in image:
            setattr(image, name, "")
    return image
