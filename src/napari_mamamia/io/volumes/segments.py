"""Read files with named segments, such as 3D Slicer's ``.seg.nrrd``, as one label map."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.case import LabelMap
from napari_mamamia.core.errors import FormatError
from napari_mamamia.core.grid import Grid
from napari_mamamia.io.files.foreign import reads
from napari_mamamia.io.files.headers import VolumeHeader
from napari_mamamia.io.volumes.nrrd import read_layers, read_nrrd_pairs
from napari_mamamia.io.volumes.streams import refusal

_REPRESENTATIONS: Final = ("SourceRepresentation", "MasterRepresentation")


@dataclass(frozen=True, slots=True, eq=False)
class NamedSegment:
    """A segment in a file, with its number, name and voxels, bool ``(z, y, x)``."""

    number: int
    name: str
    voxels: NDArray[np.bool_]


def join_segments(
    path: Path, grid: Grid, segments: Sequence[NamedSegment], label: float | str | None
) -> LabelMap:
    """Return segments as one label map of their numbers, on the stored part of the image.

    Where segments overlap, the segment with the number `label` takes precedence, otherwise the
    first; without a label, all segments count as foreground. If `label` is a name, only that
    segment is returned, with the value 1.

    Raises
    ------
    FormatError
        If no segment, or more than one, has the name `label`.
    """
    if isinstance(label, str):
        chosen = [segment for segment in segments if _folded(segment.name) == _folded(label)]
        if len(chosen) != 1:
            there = (
                ", ".join(f"{segment.name!r} ({segment.number})" for segment in segments) or "none"
            )
            raise refusal(
                path,
                f"exactly one segment with the name {label!r}",
                f"it has {there}",
                "choose one of these segments by its name or number",
            )
        segments = [NamedSegment(1, chosen[0].name, chosen[0].voxels)]
    most = max((segment.number for segment in segments), default=0)
    values = np.zeros(grid.shape, np.min_scalar_type(most))
    for one in sorted(segments, key=lambda segment: segment.number == label):
        free = one.voxels if one.number == label else one.voxels & (values == 0)
        values[free] = one.number
    whole = LabelMap.of(values, grid)
    return LabelMap(grid, whole.box, whole.crop, path, is_part=True)


def require_no_name(labels: LabelMap, label: float | str | None) -> None:
    """Raise `FormatError` if a label name is given for a file without label names."""
    if isinstance(label, str) and len(labels.values) > 1:
        values = ", ".join(f"{value:g}" for value in labels.values[:5])
        raise FormatError(
            f"expected segments with names in {labels.source}, including {label!r}, but the file "
            f"contains the values {values} without names: choose a segment by its value"
        )


@reads("a segmentation of 3D Slicer", "save the file again, or save a label map as .nii.gz")
def read_segment_labels(path: Path, label: float | str | None) -> tuple[VolumeHeader, LabelMap]:
    """Return the header and labels of a ``.seg.nrrd`` with one layer or overlapping layers.

    A single layer keeps the values in the file. In several layers, segments keep their LabelValue
    if these are unique; otherwise segments are numbered from 1 in their order.

    Source: 3D Slicer developer guide, "Segmentations", file format.

    Raises
    ------
    FormatError
        If the file is damaged, contains no segment labels, or has no segment with the name `label`.
    """
    texts = read_nrrd_pairs(path, "Segment")
    for name in _REPRESENTATIONS:
        if "fractional" in (kind := texts.get(f"Segmentation_{name}", "")).lower():
            raise refusal(
                path, "a binary label map", f"it is a {kind}", "export the segmentation as binary"
            )
    header, layers = read_layers(path)
    if layers.dtype.kind not in "iu":
        remedy = "save the file as a segmentation again"
        raise refusal(path, "whole numbers as labels", f"its type is {layers.dtype}", remedy)
    segments = _find_segments(texts, layers)
    if len(layers) == 1 and not isinstance(label, str):
        whole = LabelMap.of(layers[0], header.grid)
        return header, LabelMap(header.grid, whole.box, whole.crop, path, is_part=True)
    labels = join_segments(path, header.grid, segments, label)
    return header, labels


@reads("a segmentation of 3D Slicer", "save the file as a segmentation again")
def read_segment_names(path: Path) -> list[tuple[int, str]]:
    """Return the label value and name of each segment, from the header of a ``.seg.nrrd``.

    Raises
    ------
    FormatError
        If the header cannot be read.
    """
    texts = read_nrrd_pairs(path, "Segment")
    names = []
    for key, name in texts.items():
        digits, _, rest = key.removeprefix("Segment").partition("_")
        if rest == "Name" and digits.isdecimal():
            names.append((_whole(texts.get(f"Segment{digits}_LabelValue"), 1), name))
    return sorted(names)


def _find_segments(texts: dict[str, str], layers: NDArray[Any]) -> list[NamedSegment]:
    numbers = sorted(
        int(digits)
        for key in texts
        if (digits := key.removeprefix("Segment").partition("_")[0]).isdecimal()
    )
    order = list(dict.fromkeys(numbers)) or list(range(len(layers)))
    values = [_whole(texts.get(f"Segment{n}_LabelValue"), 1) for n in order]
    # Before Slicer 4.11, there was one layer for each segment, without this element.
    default = (lambda n: n) if len(layers) > 1 else (lambda n: 0)
    places = [_whole(texts.get(f"Segment{n}_Layer"), default(n)) for n in order]
    are_unique = len(set(values)) == len(values) and min(values) > 0
    return [
        NamedSegment(
            value if are_unique else number,
            texts.get(f"Segment{n}_Name", ""),
            layers[layer] == value,
        )
        for number, (n, value, layer) in enumerate(zip(order, values, places, strict=True), 1)
        if 0 <= layer < len(layers)
    ]


def _whole(text: str | None, default: int) -> int:
    return int(text) if text is not None and text.strip().isdecimal() else default


def _folded(name: str) -> str:
    return name.strip().casefold()
