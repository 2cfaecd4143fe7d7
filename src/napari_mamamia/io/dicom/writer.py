"""Write a synthetic exam as a DICOM study, for tests of the import."""

from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.errors import ArgumentError
from napari_mamamia.core.grid import Grid
from napari_mamamia.io.dicom.elements import require_pydicom
from napari_mamamia.io.files.own_paths import own_folder, place_folder

_MR_IMAGE: Final = "1.2.840.10008.5.1.4.1.1.4"
_TO_LPS: Final = np.array([-1.0, -1.0, 1.0])
_STARTED_S: Final = 10 * 3600 + 17
"""Start of phase 0 in seconds; 10:00:17, because a full minute would look artificial."""


def write_study(
    signal: NDArray[Any], grid: Grid, times_s: tuple[float, ...], folder: Path, name: str
) -> None:
    """Write phases as one series of MR images, with a file for each slice.

    Parameters
    ----------
    signal
        The signal ``(phase, z, y, x)`` as 16-bit integers.
    grid
        Grid of the volume.
    times_s
        Time of each phase in seconds.
    folder
        The folder to create; after an error it does not exist.
    name
        The pseudonym that replaces the patient's name.

    Raises
    ------
    MissingExtraError
        If pydicom is not installed.
    ArgumentError
        If the axes of `grid` are not perpendicular, which DICOM cannot express.
    """
    require_pydicom()
    import pydicom

    if grid.is_sheared:
        raise ArgumentError(
            "expected the axes of the grid to be perpendicular for DICOM, but the grid is sheared"
        )
    uids = [str(pydicom.uid.generate_uid()) for _ in range(3)]
    with own_folder(folder.parent) as building:
        for phase, volume in enumerate(signal):
            for index, plane in enumerate(volume):
                n_written = phase * signal.shape[1] + index
                position = _locate_plane(grid, index)
                image = _make_image(plane, position, times_s[phase], uids, name)
                image.SeriesNumber, image.InstanceNumber = 4, n_written + 1
                image.AcquisitionNumber = image.TemporalPositionIdentifier = phase + 1
                path = building / f"IM_{n_written:05d}.dcm"
                pydicom.dcmwrite(path, image, enforce_file_format=True)
        place_folder(building, folder)


def _locate_plane(grid: Grid, index: int) -> dict[str, Any]:
    """Return the elements that locate a plane (y, x), in LPS."""
    steps = grid.matrix_mm * _TO_LPS[:, np.newaxis]
    _, down, along = (steps[:, axis] / np.linalg.norm(steps[:, axis]) for axis in range(3))
    corner = grid.to_world_mm((index, 0, 0)) * _TO_LPS
    z_mm, y_mm, x_mm = grid.spacing_mm
    return {
        "ImageOrientationPatient": [*map(float, along), *map(float, down)],
        "ImagePositionPatient": [float(mm) for mm in corner],
        "PixelSpacing": [y_mm, x_mm],
        "SliceThickness": z_mm,
    }


def _make_image(
    plane: NDArray[Any], place: dict[str, Any], time_s: float, uids: list[str], name: str
) -> Any:
    import pydicom

    image = pydicom.Dataset()
    image.file_meta = pydicom.dataset.FileMetaDataset()
    image.file_meta.TransferSyntaxUID = pydicom.uid.ExplicitVRLittleEndian
    clock = _STARTED_S + time_s
    started = f"{int(clock // 3600):02d}{int(clock // 60 % 60):02d}{clock % 60:09.6f}"
    elements = {
        "SOPClassUID": _MR_IMAGE,
        "SOPInstanceUID": pydicom.uid.generate_uid(),
        "StudyInstanceUID": uids[0],
        "SeriesInstanceUID": uids[1],
        "FrameOfReferenceUID": uids[2],
        "Modality": "MR",
        "PatientName": name,
        "PatientID": name,
        "StudyDate": "20240101",
        "AcquisitionDate": "20240101",
        "AcquisitionTime": started,
        "ContentTime": started,
        "SeriesDescription": "dyn phantom, made by software",
        "ImageType": ["ORIGINAL", "PRIMARY", "M"],
        "ContrastBolusAgent": "none, computed",
        "SamplesPerPixel": 1,
        "PhotometricInterpretation": "MONOCHROME2",
        "Rows": plane.shape[0],
        "Columns": plane.shape[1],
        "BitsAllocated": 16,
        "BitsStored": 16,
        "HighBit": 15,
        "PixelRepresentation": int(plane.dtype.kind == "i"),
        **place,
    }
    for keyword, value in elements.items():
        setattr(image, keyword, value)
    image.file_meta.MediaStorageSOPClassUID = image.SOPClassUID
    image.file_meta.MediaStorageSOPInstanceUID = image.SOPInstanceUID
    image.PixelData = plane.astype(plane.dtype.newbyteorder("<")).tobytes()
    # pydicom cannot choose between OB and OW, and a file with explicit VR must name one.
    image["PixelData"].VR = "OW"
    return image
