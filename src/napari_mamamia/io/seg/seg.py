"""Read binary, fractional and overlapping segments of DICOM SEG files as masks."""

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.case import LabelMap
from napari_mamamia.core.errors import FormatError
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.names import count_of
from napari_mamamia.io.files.foreign import open_bounded, reads
from napari_mamamia.io.seg.codes import load_highdicom

FRACTION_THRESHOLD: Final = 0.5
"""Fraction of the largest value above which a fractional voxel counts as inside."""

_MOST_VOXELS: Final = 1 << 32
"""Largest number of voxels of all segments together (our choice)."""
_BACKGROUND: Final = ("125040", "DCM")
_LPS_TO_RAS: Final = np.diag([-1.0, -1.0, 1.0, 1.0])


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """One segment in a SEG object.

    `mask` is bool ``(z, y, x)`` on the segmentation's grid; in a fractional segmentation, voxels
    are inside if they have at least `threshold` times the largest value (`threshold` is None in a
    binary segmentation). `algorithm` is AUTOMATIC, SEMIAUTOMATIC or MANUAL; `kind` and `region` are
    code meanings, or "".
    """

    number: int
    label: str
    mask: NDArray[np.bool_]
    threshold: float | None
    kind: str
    region: str
    algorithm: str
    algorithm_name: str


@dataclass(frozen=True, slots=True, eq=False)
class Segmentation:
    """The content of a SEG object; `grid` covers only the stored frames, not the whole image.

    `warnings` are sentences, such as the threshold of a fractional object.
    """

    grid: Grid
    segments: tuple[Segment, ...]
    source_series: str
    warnings: tuple[str, ...] = ()

    def on_grid(self, segment: Segment, grid: Grid) -> NDArray[np.bool_]:
        """Return a segment as a mask of the whole image, empty where no frame is stored.

        Axes may have opposite directions in the image; nothing is resampled.

        Raises
        ------
        GridMismatchError
            If the stored frames do not coincide with voxels of `grid`.
        """
        stored = LabelMap.of(segment.mask, self.grid)
        on_image: NDArray[np.bool_] = replace(stored, is_part=True).on_grid(grid).dense()
        return on_image


@reads("a DICOM segmentation of one regular stack", "export the file again, or convert it to NIfTI")
def read_segmentation(path: Path) -> Segmentation:
    """Return the segments of a DICOM SEG file as separate masks.

    Raises
    ------
    FormatError
        If the file is damaged, not a segmentation, or tiled (whole-slide), or if its frames do not
        form a regular stack.
    MissingExtraError
        If highdicom is not installed.
    """
    hd = load_highdicom()
    with open_bounded(path) as stream:
        dataset = hd.seg.segread(stream)
    fractional = dataset.SegmentationType == "FRACTIONAL"
    _require_room(path, dataset)
    volume = dataset.get_volume(combine_segments=False, rescale_fractional=True)
    values: NDArray[Any] = volume.array
    grid = dicom_grid(volume.affine, values.shape[:3])
    threshold = FRACTION_THRESHOLD if fractional else None
    described = [dataset.get_segment_description(number) for number in dataset.segment_numbers]
    indices = [k for k, description in enumerate(described) if not _is_background(description)]
    segments = tuple(_make_segment(described[k], values[..., k], threshold) for k in indices)
    series = dataset.get("ReferencedSeriesSequence") or ()
    source = str(series[0].SeriesInstanceUID) if series else ""
    warnings = []
    if fractional:
        warnings.append(
            f"{path.name} stores values from 0 to 1 "
            f"({str(dataset.SegmentationFractionalType).lower()}); voxels of at least "
            f"{FRACTION_THRESHOLD:g} belong to the segment"
        )
    if n_left := len(described) - len(indices):
        warnings.append(
            f"{path.name} lists the background as {count_of(n_left, 'segment')}, which was left out"
        )
    return Segmentation(grid, segments, source, tuple(warnings))


def _require_room(path: Path, dataset: Any) -> None:
    geometry = dataset.get_volume_geometry()
    shape = () if geometry is None else geometry.spatial_shape
    n_voxels = math.prod(shape) * dataset.number_of_segments
    if n_voxels > _MOST_VOXELS:
        raise FormatError(
            f"expected at most {_MOST_VOXELS >> 20} million voxels in {path}, but found "
            f"{dataset.number_of_segments} segments of {shape} (slice, row, column): export fewer "
            "segments"
        )


def _is_background(description: Any) -> bool:
    """Return whether a segment is the background, which some programs store as a segment.

    Label maps include it as well. Source: DICOM PS3.3, C.8.20.2 (only a label map may number a
    segment 0, its background) and PS3.16, code (125040, DCM, "Background"). If the object has a
    Pixel Padding Value, highdicom leaves out the background.
    """
    kind = description.segmented_property_type
    is_coded = (kind.value, kind.scheme_designator) == _BACKGROUND
    named = str(description.segment_label).strip().casefold() == "background"
    return int(description.segment_number) == 0 or is_coded or named


def dicom_grid(affine_lps: NDArray[Any], shape: tuple[int, ...]) -> Grid:
    """Return the grid of a volume whose affine maps (slice, row, column) to LPS mm."""
    affine = np.array(affine_lps, dtype=np.float64)
    turned = affine.copy()
    turned[:3, :3] = affine[:3, 2::-1]
    z, y, x = (int(n) for n in shape)
    return Grid((z, y, x), _LPS_TO_RAS @ turned)


def _make_segment(description: Any, values: NDArray[Any], threshold: float | None) -> Segment:
    inside = values > 0 if threshold is None else values >= threshold
    regions = description.anatomic_regions or ()
    algorithm = description.algorithm_identification
    return Segment(
        number=int(description.segment_number),
        label=str(description.segment_label),
        mask=np.ascontiguousarray(inside),
        threshold=threshold,
        kind=str(description.segmented_property_type.meaning),
        region=str(regions[0].meaning) if regions else "",
        algorithm=str(description.algorithm_type.value),
        algorithm_name="" if algorithm is None else str(algorithm.name),
    )
