"""Read a DICOM SEG as a label map."""

from pathlib import Path

import numpy as np

from napari_mamamia.core.case import LabelMap
from napari_mamamia.io.files.foreign import reads
from napari_mamamia.io.files.headers import VolumeHeader
from napari_mamamia.io.seg.seg import read_segmentation
from napari_mamamia.io.volumes.segments import NamedSegment, join_segments


@reads("a DICOM segmentation", "export the file again, or convert it to NIfTI")
def read_seg_labels(path: Path, label: float | str | None) -> tuple[VolumeHeader, LabelMap]:
    """Return the header and the segment numbers of a DICOM SEG on its stored frames.

    Raises
    ------
    FormatError
        As in `read_segmentation`, and if no segment has the name `label`.
    MissingExtraError
        If highdicom is not installed.
    """
    seen = read_segmentation(path)
    segments = [
        NamedSegment(segment.number, segment.label, segment.mask) for segment in seen.segments
    ]
    labels = join_segments(path, seen.grid, segments, label)
    header = VolumeHeader(path, seen.grid, np.dtype(labels.crop.dtype), warnings=seen.warnings)
    return header, labels
