"""A folder of DICOM series, one for each phase -> ordered phases with times.

The simplest form: single-frame MR files, each series one complete stack, all on one grid, ordered
by a clock that the files carry. Whatever leaves a doubt is refused with the reason.
"""

import logging
from collections import Counter
from collections.abc import Sequence
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, Final

from numpy.typing import NDArray

from napari_mamamia.core.errors import CaseError, FormatError
from napari_mamamia.core.progress import Job, Progress
from napari_mamamia.io.dicom_slices import (
    CLOCKS,
    OtherImage,
    Slice,
    is_dicom_file,
    read_plane,
    read_slice,
)
from napari_mamamia.io.dicom_stack import Stack, make_stack
from napari_mamamia.io.folders import list_names
from napari_mamamia.io.headers import VolumeHeader
from napari_mamamia.io.sources import CaseFiles, PhaseSource

__all__ = ["find_phases", "looks_like_dicom", "read_dicom_header", "read_dicom_into"]

_log = logging.getLogger(__name__)

_LOOK_AT: Final = 8
_INDEX: Final = "DICOMDIR"


def looks_like_dicom(folder: Path, names: Sequence[str]) -> bool:
    """Whether a folder, or a direct subfolder, has files with the DICOM mark.

    Looks at a few of `names`, the folder's entries, and needs no pydicom.
    """
    if _holds_dicom(folder, names):
        return True
    entries = [folder / name for name in names[: 4 * _LOOK_AT]]
    subfolders = [entry for entry in entries if entry.is_dir()][:_LOOK_AT]
    return any(_holds_dicom(subfolder, list_names(subfolder)) for subfolder in subfolders)


def find_phases(folder: Path) -> CaseFiles:
    """Return the phases of the exam in a folder and its direct subfolders, in order of time.

    The case id is the folder's name: headers may hold the patient's. Files that are no MR images
    are left out. `time_s` of a phase is the difference to the first one under the first of
    `CLOCKS` that all series have and that is not the same in all.

    Raises
    ------
    FormatError
        If there is no MR image, or a file is damaged or lacks what its place depends on.
    CaseError
        If a series is no complete stack, the series do not share one grid, or clock and series
        number do not put them into one order.
    MissingExtraError
        If pydicom is not installed.
    """
    series: dict[str, list[Slice]] = {}
    for piece in _mr_slices(folder):
        series.setdefault(piece.series_uid, []).append(piece)
    stacks = [make_stack(slices) for slices in series.values()]
    _require_one_exam(folder, stacks)
    phases = tuple(
        PhaseSource(tuple(piece.file for piece in stack.slices), time_s=time_s)
        for stack, time_s in _in_order_of_time(folder, stacks)
    )
    return CaseFiles(folder.name, phases)


def read_dicom_header(files: Sequence[Path]) -> VolumeHeader:
    """Return shape, type and place of one series; `files` are in slice order.

    Voxel (x, y, z) counts along a row, down a column, and up the stack. Where slices are scaled
    differently, `slope` and `intercept` are those of one slice and a warning says so.

    Raises
    ------
    FormatError
        If a file is damaged, no MR image, or out of order.
    CaseError
        If the files are no complete stack.
    MissingExtraError
        If pydicom is not installed.
    """
    pieces = [read_slice(file) for file in files]
    slices = [piece for piece in pieces if isinstance(piece, Slice)]
    if not slices or len(slices) < len(pieces):
        raise FormatError(f"expected MR images only, got {_named(pieces)}: open the folder again")
    stack = make_stack(slices)
    if [piece.file for piece in stack.slices] != list(files):
        raise FormatError(
            f"expected the files of {stack.name} in slice order, but {files[0]} is not where it "
            "belongs: open the folder again"
        )
    scalings = {(piece.slope, piece.intercept) for piece in slices}
    slope, intercept = max(scalings, key=lambda scaling: (scaling != (1.0, 0.0), scaling))
    warnings: tuple[str, ...] = ()
    if len(scalings) > 1:
        warnings = (f"the slices of {stack.name} are scaled one by one (RescaleSlope differs)",)
    stored = slices[0].stored
    return VolumeHeader(files[0], stack.grid, stored, slope, intercept, warnings=warnings)


def read_dicom_into(files: Sequence[Path], header: VolumeHeader, out: NDArray[Any]) -> Job[None]:
    """Fill `out`, (z, y, x) of the header's dtype, plane by plane; each slice's scaling applied.

    Raises
    ------
    FormatError
        If a plane cannot be read or has another size.
    MissingExtraError
        If pydicom is not installed.
    """
    for index, file in enumerate(files):
        plane, slope, intercept = read_plane(file)
        if plane.shape != out.shape[1:]:
            raise FormatError(
                f"expected {out.shape[1:]} rows and columns in {file}, got {plane.shape}: "
                "export the series again"
            )
        out[index] = plane * slope + intercept if header.is_scaled else plane
        yield Progress(index + 1, len(files), f"Reading slice {index + 1} of {len(files)}")


def _holds_dicom(folder: Path, names: Sequence[str]) -> bool:
    """Whether one of the first files that may be DICOM by name is DICOM."""
    likely = islice(filter(_may_be_dicom, names), _LOOK_AT)
    return any(is_dicom_file(folder / name) for name in likely)


def _may_be_dicom(name: str) -> bool:
    _, dot, suffix = name.rpartition(".")
    return not dot or suffix.lower() in {"dcm", "ima"} or suffix.isdigit()


def _mr_slices(folder: Path) -> list[Slice]:
    pieces = [read_slice(file) for file in _dicom_files(folder)]
    others = [piece for piece in pieces if isinstance(piece, OtherImage)]
    slices = [piece for piece in pieces if isinstance(piece, Slice)]
    if not slices:
        raise FormatError(
            f"expected MR images in {folder} or its direct subfolders, got {_named(others)}: "
            "choose the folder of the DCE series"
        )
    if others:
        _log.info("left out %s", _named(others))
    return slices


def _dicom_files(folder: Path) -> list[Path]:
    entries = [folder / name for name in sorted(list_names(folder))]
    subfolders = (entry for entry in entries if entry.is_dir())
    inside = [sub / name for sub in subfolders for name in sorted(list_names(sub))]
    return [file for file in (*entries, *inside) if file.name != _INDEX and is_dicom_file(file)]


def _named(pieces: Sequence[Slice | OtherImage]) -> str:
    kinds = Counter(piece.kind for piece in pieces if isinstance(piece, OtherImage))
    return ", ".join(f"{count} x {kind}" for kind, count in sorted(kinds.items())) or "no image"


def _require_one_exam(folder: Path, stacks: Sequence[Stack]) -> None:
    first = stacks[0]
    for other in stacks[1:]:
        if other.slices[0].study_uid != first.slices[0].study_uid:
            raise CaseError(
                f"expected one exam in {folder}, but {first.name} and {other.name} are of "
                "different studies: open one exam's folder"
            )
        if not other.grid.is_same_place(first.grid):
            raise CaseError(
                f"expected series of one size and place in {folder}, but {_described(first)} and "
                f"{_described(other)}: move the series that are no DCE phases out of the folder"
            )


def _described(stack: Stack) -> str:
    z, y, x = stack.grid.shape
    spacing = " x ".join(f"{mm:.2f}" for mm in stack.grid.spacing_mm)
    return f"{stack.name} has {z} slices of {y} x {x} ({stack.grid.orientation}, {spacing} mm)"


def _in_order_of_time(folder: Path, stacks: Sequence[Stack]) -> list[tuple[Stack, float]]:
    """Return the stacks by time, with seconds since the first."""
    if len(stacks) == 1:
        return [(stacks[0], 0.0)]
    clock, times = _clock(folder, stacks)
    ordered = sorted(zip(times, range(len(stacks)), strict=True))
    for (time, a), (later, b) in pairwise(ordered):
        if time == later:
            raise CaseError(
                f"expected phases one after the other in {folder}, but {stacks[a].name} and "
                f"{stacks[b].name} have one {clock}: move the series that is no phase of its own "
                "out of the folder"
            )
    numbers = [stacks[index].slices[0].series_number for _, index in ordered]
    known = [number for number in numbers if number is not None]
    if known != sorted(known):
        raise CaseError(
            f"the order of the phases in {folder} is in doubt: by {clock} the series are "
            f"{', '.join(map(str, known))}, by SeriesNumber {', '.join(map(str, sorted(known)))}; "
            "convert the exam to NIfTI with the phases in the right order"
        )
    return [(stacks[index], time - ordered[0][0]) for time, index in ordered]


def _clock(folder: Path, stacks: Sequence[Stack]) -> tuple[str, list[float]]:
    """Return the first clock that all series have and that is not the same in all."""
    for name in CLOCKS:
        times = [time for stack in stacks if (time := stack.clock_s(name)) is not None]
        if len(times) == len(stacks) and len(set(times)) > 1:
            return name, times
    raise CaseError(
        f"expected a clock that orders the {len(stacks)} series of {folder}, but "
        f"{', '.join(CLOCKS)} are missing or the same in all: "
        "convert the exam to NIfTI with the phases in the right order"
    )
