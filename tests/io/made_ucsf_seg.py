"""A DICOM SEG as UCSF's FTV program writes it, made with pydicom alone: for tests."""

from pathlib import Path

import numpy as np
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.sequence import Sequence
from pydicom.uid import ExplicitVRLittleEndian, generate_uid

CREATOR = "UCSF BIRP PRIVATE CREATOR 011710xx"
SEG = "1.2.840.10008.5.1.4.1.1.66.4"
THRESHOLDS = {
    "PE_threshold": 70,
    "minimum_neighbor_count": 9,
    "tissue_masking_method": "PERCENT_MAX",
    "PCT_background_threshold": 60,
    "pre_contrast_threshold": 120,
}
ALONG_ROW, ALONG_COLUMN = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)


def item(**values):
    """Return a data set with the elements of the block, offset (hexadecimal) -> (VR, value)."""
    made = Dataset()
    block = made.private_block(0x0117, CREATOR, create=True)
    for offset, (vr, value) in values.items():
        block.add_new(int(offset[1:], 16), vr, value)
    return made


def parameter(name, value):
    is_text = isinstance(value, str)
    kind = {"_1A": ("LO", value)} if is_text else {"_19": ("IS", str(value))}
    return item(_12=("CS", "STRING" if is_text else "INTEGER"), _14=("LO", name), **kind)


def region(centre, halves, is_inside=True):
    """Return a box: centre in LPS mm, half-lengths along x, y, z in mm."""
    axes = {
        f"_{43 + k}": ("DS", [f"{half if k == n else 0:.8g}" for n in range(3)] + ["1"])
        for k, half in enumerate(halves)
    }
    return item(
        _41=("IS", "1" if is_inside else "0"),
        _42=("DS", [*(f"{number:.8g}" for number in centre), "1"]),
        **axes,
        _46=("CS", "VOI" if is_inside else "OMIT"),
    )


def measure(low, voxels, cc, name):
    return item(
        _B1=("DS", str(low)),
        _B2=("DS", "3"),
        _B3=("IS", str(voxels)),
        _B4=("DS", f"{cc:.10g}"),
        _B5=("LO", name),
    )


def write_ucsf_seg(
    path: Path,
    mask: np.ndarray,
    places,
    regions,
    measures,
    thresholds=None,
    spacing=(0.8, 0.8),
    thickness=2.0,
    phases=(0, 1, 3),
    patient="A_1",
    study="",
    creator=CREATOR,
    sop_class=SEG,
):
    """Write `mask` (frame, row, column) with `places` of its frames' first pixels in LPS mm."""
    made = Dataset()
    made.file_meta = FileMetaDataset()
    made.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    made.file_meta.MediaStorageSOPClassUID = sop_class
    made.SOPClassUID, made.SOPInstanceUID = sop_class, generate_uid()
    made.file_meta.MediaStorageSOPInstanceUID = made.SOPInstanceUID
    made.PatientID, made.Modality, made.SeriesDescription = patient, "SEG", "VOI PE Segmentation"
    made.StudyInstanceUID = study or generate_uid()
    made.SeriesInstanceUID = generate_uid()
    made.NumberOfFrames, made.Rows, made.Columns = (str(mask.shape[0]), *mask.shape[1:])
    made.SamplesPerPixel, made.PhotometricInterpretation = 1, "MONOCHROME2"
    made.BitsAllocated, made.BitsStored, made.HighBit, made.PixelRepresentation = 8, 8, 7, 0
    made.SegmentationType, made.MaximumFractionalValue = "FRACTIONAL", 255
    shared = Dataset()
    directions, pixels = Dataset(), Dataset()
    directions.ImageOrientationPatient = [*map(str, (*ALONG_ROW, *ALONG_COLUMN))]
    pixels.PixelSpacing, pixels.SliceThickness = [*map(str, spacing)], str(thickness)
    shared.PlaneOrientationSequence = Sequence([directions])
    shared.PixelMeasuresSequence = Sequence([pixels])
    made.SharedFunctionalGroupsSequence = Sequence([shared])
    frames = []
    for place in places:
        frame, position = Dataset(), Dataset()
        position.ImagePositionPatient = [f"{number:.6f}" for number in place]
        frame.PlanePositionSequence = Sequence([position])
        frames.append(frame)
    made.PerFrameFunctionalGroupsSequence = Sequence(frames)
    block = made.private_block(0x0117, creator, create=True)
    said = THRESHOLDS if thresholds is None else thresholds
    parameters = Sequence([parameter(name, value) for name, value in said.items()])
    block.add_new(0x10, "SQ", parameters)
    block.add_new(0x20, "SQ", Sequence(regions))
    block.add_new(0x31, "DS", "80")
    block.add_new(0x34, "DS", ["-50", "40", "370"])
    block.add_new(0x35, "IS", [str(phase) for phase in phases])
    block.add_new(0xB0, "SQ", Sequence(measures))
    made.PixelData = (mask.astype(np.uint8) * 255).tobytes()
    path.parent.mkdir(parents=True, exist_ok=True)
    made.save_as(path, enforce_file_format=True)
    return path
