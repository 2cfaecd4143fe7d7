"""Preview a study before the import: images of its phases and parts, and header values to keep."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.choices import Dates
from napari_mamamia.core.counting import phase_name
from napari_mamamia.core.errors import FormatError
from napari_mamamia.core.progress import report_progress
from napari_mamamia.io.dicom.facts import Fact, read_facts, user_secret
from napari_mamamia.io.dicom.pixels import read_plane
from napari_mamamia.io.dicom.slices import Slice
from napari_mamamia.io.exam.looks import read_quantity
from napari_mamamia.services.dicom.finding import FoundStudy

_MOST_PIXELS: Final = 128
_MOST_VALUES: Final = 4096 * 4096
"""Largest number of pixels in a plane to preview: 16 times the largest breast MRI matrix."""
_WHITE: Final = 99.5
"""Percentile of the values in all preview images that is displayed as white."""


@dataclass(frozen=True, slots=True, eq=False)
class SlicePicture:
    """The middle slice of a phase or part, uint8 (rows, columns) as in DICOM, with sizes in mm."""

    pixels: NDArray[np.uint8]
    height_mm: float
    width_mm: float


@dataclass(frozen=True, slots=True, eq=False)
class StudyPreview:
    """Images of a study in the order of the phases, all with the same window/level.

    `kept` has the header values, by name, that an import would keep in addition to the times.
    """

    pictures: tuple[SlicePicture, ...]
    kept: tuple[tuple[str, Fact], ...]


def preview_study(found: FoundStudy) -> StudyPreview:
    """Read the middle slice of each phase; a study that cannot be imported has no preview.

    Raises
    ------
    FormatError
        If a slice cannot be read.
    MissingExtraError
        If pydicom is not installed.
    SaveError
        If the secret for remapped UIDs cannot be created.
    """
    if found.exam is None:
        return StudyPreview((), ())
    stacks = found.exam.stacks
    middles = [_find_middle(stack) for stack in stacks]
    planes = []
    for index, middle in enumerate(middles):
        report_progress(
            index, len(middles), f"Reading a picture of {phase_name(index, found.n_before)}"
        )
        planes.append(read_quantity(middle))
    facts = read_facts(stacks[0][0].file, (), user_secret(), Dates.DROP)
    return StudyPreview(_make_pictures(planes, middles), tuple(facts.values.items()))


def part_picture(piece: Slice) -> SlicePicture:
    """Read the preview image of one part of a study, with its own window/level.

    Raises
    ------
    FormatError
        If the plane cannot be read, or is too large.
    MissingExtraError
        If pydicom is needed but not installed.
    """
    report_progress(0, 1, f"Reading a picture of {piece.series_name}")
    rows, columns = piece.shape
    if rows * columns > _MOST_VALUES:
        raise FormatError(
            f"expected {piece.name} to have at most {_MOST_VALUES:,} pixels, but it has {rows} x "
            f"{columns}, so no picture is shown"
        )
    scaling = piece.scaling
    small = _shrink_plane(read_plane(piece)) * np.float32(scaling.slope) + np.float32(
        scaling.intercept
    )
    return _make_pictures([small], [piece])[0]


def _find_middle(stack: Sequence[Slice]) -> Slice:
    """Return the middle slice of a phase, or of the first breast if the phase has two."""
    end = next((index for index, plane in enumerate(stack) if plane.is_padding), len(stack))
    return stack[end // 2]


def _make_pictures(
    planes: Sequence[NDArray[np.float32]], middles: Sequence[Slice]
) -> tuple[SlicePicture, ...]:
    small = [np.nan_to_num(_shrink_plane(plane)) for plane in planes]
    low = min(float(plane.min()) for plane in small)
    high = max(float(np.percentile(plane, _WHITE)) for plane in small)
    width = max(high - low, 1e-6)
    return tuple(
        SlicePicture(
            (np.clip((plane - low) / width, 0, 1) * 255).astype(np.uint8),
            middle.shape[0] * middle.spacing_mm[0],
            middle.shape[1] * middle.spacing_mm[1],
        )
        for plane, middle in zip(small, middles, strict=True)
    )


def _shrink_plane(plane: NDArray[Any]) -> NDArray[np.float32]:
    """Return the means over square blocks, so that no side exceeds the size of the preview."""
    edge = -(-max(plane.shape) // _MOST_PIXELS)
    edge_y, edge_x = (min(edge, size) for size in plane.shape)
    rows, columns = plane.shape[0] // edge_y, plane.shape[1] // edge_x
    blocks = plane[: rows * edge_y, : columns * edge_x].reshape(rows, edge_y, columns, edge_x)
    means: NDArray[np.float32] = blocks.mean(axis=(1, 3), dtype=np.float32)
    return means
