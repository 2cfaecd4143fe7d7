"""Read and write volume files of all formats, including DICOM series through a `PhaseSource`."""

from collections.abc import Generator
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import LabelMap, Mask, on_common_grid
from napari_mamamia.core.errors import FormatError, NotFiniteError
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.names import count_of
from napari_mamamia.core.progress import listening, report_progress
from napari_mamamia.io.dicom.probe import is_seg_file
from napari_mamamia.io.files.foreign import reads
from napari_mamamia.io.files.headers import VolumeHeader
from napari_mamamia.io.files.sources import PhaseSource
from napari_mamamia.io.volumes import formats
from napari_mamamia.io.volumes.inflate import Content
from napari_mamamia.io.volumes.segments import require_no_name
from napari_mamamia.io.volumes.streams import VoxelStream, refusal
from napari_mamamia.io.volumes.voxel_writer import LabelPlanes, Planes, report_steps

_STEP_BYTES: Final = 1 << 20
"""Number of bytes read at a time.

A block of 1 MiB takes about 2 ms and fits in the CPU cache (measured).
"""
NONFINITE_AS_ZERO: Final = "with NaN or infinity, which count as 0"
_MASK_STEP_BYTES: Final = 1 << 18
"""Number of bytes of a mask read at a time: one or two planes, which fit in the CPU cache."""


def fill_planes(
    stream: VoxelStream, header: VolumeHeader, out: NDArray[Any]
) -> Generator[int, None, None]:
    """Read the next ``len(out)`` planes into `out`, and yield their number after each block.

    Parameters
    ----------
    stream
        The stream, positioned at the first plane.
    header
        The header of the stream's file.
    out
        An array ``(planes, y, x)`` of ``header.dtype``. It is filled directly if it is contiguous
        and the file's values are not scaled, and otherwise plane by plane through a small buffer.
    """
    step = max(1, _STEP_BYTES // (out[0].size * header.stored.itemsize))
    in_place = out.flags.c_contiguous and not header.is_scaled
    scratch = None if in_place else np.empty((step, *out.shape[1:]), header.stored)
    for first in range(0, len(out), step):
        block = out[first : first + step]
        stored = block if scratch is None else scratch[: len(block)]
        stream.fill(_bytes_of(stored))
        if scratch is not None:
            block[...] = header.scaled(stored)
        elif not header.stored.isnative:
            block.byteswap(inplace=True)
        yield first + len(block)


def read_block(
    stream: VoxelStream, header: VolumeHeader, *, zero_nonfinite: bool = False
) -> tuple[Box, NDArray[Any], str]:
    """Read a mask; return the smallest box around its non-zero voxels, and their values.

    A few planes are read at a time and compared with zeros; planes without a foreground voxel are
    not processed further, which makes the function fast.

    Returns
    -------
    Box
        Empty for a mask without a non-zero value.
    NDArray
        The values ``(z, y, x)`` inside the box, in ``header.dtype``.
    str
        A note on values that were read as 0, or "" if there were none.

    Raises
    ------
    NotFiniteError
        If a floating-point mask contains NaN or infinity and `zero_nonfinite` is False.
    """
    nz, ny, nx = header.grid.shape
    plane_bytes = ny * nx * header.stored.itemsize
    step = max(1, _MASK_STEP_BYTES // plane_bytes)
    zeros = bytes(step * plane_bytes)
    # With an intercept, a stored 0 represents a different value.
    zero_is_zero = header.intercept == 0.0
    planes = _FoundPlanes(header, zero_nonfinite=zero_nonfinite)
    for first in range(0, nz, step):
        data = stream.take(min(step, nz - first) * plane_bytes)
        if zero_is_zero and data == zeros:
            continue
        for z, plane in enumerate(np.frombuffer(data, header.stored).reshape(-1, ny, nx), first):
            planes.add(z, header.scaled(plane))
    return *planes.block(), planes.describe_zeroed()


class _FoundPlanes:
    """The non-zero voxels of a mask, collected as one rectangle for each plane."""

    def __init__(self, header: VolumeHeader, *, zero_nonfinite: bool) -> None:
        self._header = header
        self._zero_nonfinite = zero_nonfinite
        self._zeroed: list[int] = []
        self._is_float = np.issubdtype(header.dtype, np.floating)
        self._places: list[tuple[int, int, int, int, int, int]] = []
        self._pieces: list[NDArray[Any]] = []

    def add(self, z: int, plane: NDArray[Any]) -> None:
        """Store a copy of the non-zero rectangle of a ``(y, x)`` plane, if there is one."""
        y0, y1 = _filled_rows(plane)
        if y0 == y1:
            return
        collapse = np.logical_or.reduce if self._is_float else np.bitwise_or.reduce
        columns = np.flatnonzero(collapse(plane[y0:y1], axis=0))
        x0, x1 = int(columns[0]), int(columns[-1]) + 1
        piece = plane[y0:y1, x0:x1].copy()
        if self._is_float and not np.isfinite(piece).all():
            if not self._zero_nonfinite:
                raise NotFiniteError(
                    f"expected a number in every voxel of the mask {self._header.path}, but slice "
                    f"{z} contains NaN or infinity: write the mask again with 0 outside the tumour"
                )
            piece[~np.isfinite(piece)] = 0
            self._zeroed.append(z)
        self._places.append((z, y0, x0, z + 1, y1, x1))
        self._pieces.append(piece)

    def describe_zeroed(self) -> str:
        """Return a note with the number of slices in which NaN or infinity became 0, or ""."""
        n = len(self._zeroed)
        if not n:
            return ""
        slices = f"slice {self._zeroed[0]}" + (f" and {n - 1} more" if n > 1 else "")
        return f"{self._header.path.name}: {slices} {NONFINITE_AS_ZERO}"

    def block(self) -> tuple[Box, NDArray[Any]]:
        """Return the box around all collected voxels, with its values."""
        if not self._pieces:
            return Box.empty(), np.zeros((0, 0, 0), self._header.dtype)
        lows, highs = zip(*((place[:3], place[3:]) for place in self._places), strict=True)
        z0, y0, x0 = (min(along) for along in zip(*lows, strict=True))
        z1, y1, x1 = (max(along) for along in zip(*highs, strict=True))
        box = Box((z0, y0, x0), (z1, y1, x1))
        crop = np.zeros(box.shape, self._header.dtype)
        for (z, top, left, _, bottom, right), image in zip(self._places, self._pieces, strict=True):
            crop[z - z0, top - y0 : bottom - y0, left - x0 : right - x0] = image
        return box, crop


def _filled_rows(plane: NDArray[Any]) -> tuple[int, int]:
    """Return the range of rows of a ``(y, x)`` plane that contains all non-zero rows.

    Integers are compared eight bytes at a time if the row length is a multiple of eight bytes.
    """
    values = plane
    if plane.dtype.kind in "iu" and plane.flags.c_contiguous and plane[0].nbytes % 8 == 0:
        values = plane.view(np.uint64)
    filled = (values != 0).tobytes()
    first = filled.find(1)
    if first < 0:
        return 0, 0
    return first // values.shape[1], filled.rfind(1) // values.shape[1] + 1


def _bytes_of(array: NDArray[Any]) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


def volume_stem(path: Path) -> str:
    """Return a file's name without its volume suffix.

    Examples
    --------
    >>> volume_stem(Path("masks/DUKE_001.nii.gz"))
    'DUKE_001'
    """
    return path.name[: len(path.name) - len(formats.suffix_of(path.name))]


@reads("a readable volume", "copy or download the file again")
def read_header(path: Path) -> VolumeHeader:
    """Return the shape, type and affine of a volume file without reading voxels.

    Raises
    ------
    FormatError
        If the file is missing, is damaged, has a different format, or is not a 3-D or 4-D volume.
    """
    with _open_volume(path) as (header, _):
        return header


@reads("a readable volume", "copy or download the file again")
def read_phase_header(source: PhaseSource) -> VolumeHeader:
    """Return the shape, type and affine of one phase's volume in any format.

    Raises
    ------
    FormatError
        As in `read_header`, and if the file has no volume with the phase's index.
    MissingExtraError
        If the phase is DICOM and pydicom is not installed.
    """
    if _is_dicom(source):
        from napari_mamamia.io.exam.phases import read_dicom_header

        return read_dicom_header(source.files, source.frames)
    header = read_header(source.files[0])
    if not 0 <= source.volume < header.n_volumes:
        came = f"it has {header.n_volumes}"
        remedy = "open the data set again, because the file has changed"
        raise refusal(
            header.path, f"at least {count_of(source.volume + 1, 'volume')}", came, remedy
        )
    return header


@reads("a readable volume", "copy or download the file again")
def read_phase_into(source: PhaseSource, header: VolumeHeader, out: NDArray[Any]) -> None:
    """Read the voxels of one phase into `out`; progress is reported in planes.

    Parameters
    ----------
    source
        The phase. Earlier volumes in a 4-D file are decompressed and discarded; `read_series_into`
        reads all volumes.
    header
        The result of `read_phase_header`.
    out
        An array ``(z, y, x)`` of ``header.dtype``.

    Raises
    ------
    FormatError
        If the file is damaged, or no longer matches `header`.
    ValueError
        If `out` has another shape or type.
    """
    if _is_dicom(source):
        from napari_mamamia.io.exam.phases import read_dicom_into

        read_dicom_into(source.files, header, out, source.frames)
        return
    _require_room(header, out, header.grid.shape)
    text = f"Reading {header.path.name}"
    report_progress(0, len(out), text)
    with _open_volume(header.path) as (now, stream):
        _require_unchanged(header, now)
        volume_bytes = out.size * now.stored.itemsize
        report_steps((0 for _ in stream.skip(source.volume * volume_bytes)), len(out), text)
        report_steps(fill_planes(stream, now, out), len(out), text)
        # The checksum is at the end of the file, which only the last volume reaches.
        if source.volume == now.n_volumes - 1:
            stream.finish()
    report_progress(len(out), len(out), text)


@reads("a readable volume", "copy or download the file again")
def read_series_into(path: Path, header: VolumeHeader, out: NDArray[Any]) -> None:
    """Read the first volumes of a file in one pass; progress is reported in planes.

    The file is read to its end, so its checksum is verified regardless of the requested volumes.

    Parameters
    ----------
    path
        A NIfTI file (or an NRRD file, which has one volume).
    header
        The result of `read_header`.
    out
        An array ``(n, z, y, x)`` of ``header.dtype``, with n at most ``header.n_volumes``.

    Raises
    ------
    FormatError
        If the file is damaged, or no longer matches `header`.
    ValueError
        If `out` has another shape or type.
    """
    n_wanted = min(len(out), header.n_volumes)
    _require_room(header, out, (n_wanted, *header.grid.shape))
    n_planes = header.grid.shape[0]
    total = n_wanted * n_planes
    text = f"Reading {path.name}"
    report_progress(0, total, text)
    with _open_volume(path) as (now, stream):
        _require_unchanged(header, now)
        for volume, values in enumerate(out):
            n_before = volume * n_planes
            steps = fill_planes(stream, now, values)
            report_steps((n_before + n for n in steps), total, text)
        report_steps((total for _ in stream.rest()), total, text)
    report_progress(total, total, text)


@reads("a readable volume", "copy or download the file again")
def read_volume(path: Path) -> tuple[VolumeHeader, NDArray[Any]]:
    """Return the header and voxels of a file: (z, y, x), or (n, z, y, x) for several volumes.

    Raises
    ------
    FormatError
        As in `read_header`, and if the voxels are damaged.
    """
    header = read_header(path)
    out: NDArray[Any] = np.empty((header.n_volumes, *header.grid.shape), header.dtype)
    with listening(None):
        read_series_into(path, header, out)
    return header, out if header.n_volumes > 1 else out[0]


@reads("a readable mask", "copy or download the file again")
def read_labels(
    path: Path, label: float | str | None = None, *, zero_nonfinite: bool = False
) -> LabelMap:
    """Return the values in a mask file, as the smallest block that contains all non-zero values.

    An empty mask has an empty box. Labels keep the file's integer type; a floating-point (soft)
    mask keeps its own type. For a segments file (DICOM SEG, ``.seg.nrrd``), the values are segment
    numbers on the stored part of the image; `on_grid` extends this part to the whole image.

    Parameters
    ----------
    path
        The file.
    label
        For overlapping segments, the number that takes precedence; or the name of a single segment,
        which is returned as 1. In a file without names, only a mask with a single value can be
        named.
    zero_nonfinite
        Whether NaN and infinity are read as 0, with a warning, as SimpleITK does for NIfTI.

    Raises
    ------
    FormatError
        As in `read_volume`, and if the file has several volumes, NaN or infinity, or no segment of
        this name.
    MissingExtraError
        If the file is a DICOM SEG and highdicom is not installed.
    """
    return _read_labels(path, label, zero_nonfinite=zero_nonfinite)[1]


def read_label_pair(
    reference: Path | None,
    prediction: Path | None,
    label: float | str | None = None,
    *,
    zero_nonfinite: bool = False,
) -> tuple[LabelMap | None, LabelMap | None]:
    """Return the labels of two masks on a common grid, for comparison.

    Only a mask that stores a part of the image is extended; other masks are not changed.
    """
    a, b = (
        None if path is None else read_labels(path, label, zero_nonfinite=zero_nonfinite)
        for path in (reference, prediction)
    )
    return (a, b) if a is None or b is None else on_common_grid(a, b)


@reads("a readable mask", "copy or download the file again")
def read_labels_dense(path: Path) -> tuple[VolumeHeader, NDArray[Any]]:
    """Return the header of a mask and its whole array ``(z, y, x)``.

    Memory outside the non-zero block is reserved but never touched. The errors are those of
    `read_labels`.
    """
    header, labels = _read_labels(path, None)
    return header, labels.dense()


def write_mask(mask: Mask, path: Path, *, overwrite: bool = False) -> None:
    """Write a mask as uint8 values 0 and 1 to ``.nii.gz``, ``.nii`` or ``.nrrd``.

    The geometry is that of the file from which the mask's grid was read, byte for byte in NIfTI.
    The file is read back and compared before it gets its final name. Equal masks give equal bytes.

    Raises
    ------
    FormatError
        If `path` has a different suffix.
    SaveConflictError
        If `path` exists and `overwrite` is False.
    SaveError
        If writing fails, or the file differs when it is read back. An existing file is unchanged.
    """
    write_labels(LabelMap.of(mask.array, mask.grid), path, overwrite=overwrite)


def write_labels(labels: LabelMap, path: Path, *, overwrite: bool = False) -> None:
    """Write labels in their own data type, in the same way as `write_mask`.

    Voxels outside the labels' box are 0. The file contains the whole array, but only the non-zero
    block is processed.
    """
    with listening(None):
        write_volume_job(LabelPlanes(labels), labels.grid, path, overwrite=overwrite)


def write_volume(array: NDArray[Any], grid: Grid, path: Path, *, overwrite: bool = False) -> None:
    """Write voxels in their own data type to ``.nii.gz``, ``.nii`` or ``.nrrd``.

    The file is verified as in `write_mask`. `array` is ``(z, y, x)`` or, for NIfTI, ``(n, z, y,
    x)`` on `grid`. The phases of an exam take seconds to write, so `write_volume_job` should be
    used, which reports progress.
    """
    with listening(None):
        write_volume_job(array, grid, path, overwrite=overwrite)


def write_volume_job(array: Planes, grid: Grid, path: Path, *, overwrite: bool = False) -> None:
    """Write the same bytes as `write_volume`; progress is reported in planes.

    If the job is cancelled, an older file is unchanged and no new file remains.
    """
    known = formats.format_of(path.name)
    if known is None or not known.write_with:
        raise _unknown_suffix(path, formats.WRITTEN_SUFFIXES)
    formats.function_of(known.write_with)(array, grid, path, overwrite=overwrite)


def files_of_volume(path: Path) -> tuple[Path, ...]:
    """Return the path of a volume, and that of its separate voxel file if it has one."""
    known = formats.format_of(path.name)
    if known is None or not known.voxel_suffixes:
        return (path,)
    try:
        header = read_header(path)
    except FormatError:
        return (path,)
    return tuple(dict.fromkeys((path, header.path, header.voxels or path)))


def _read_labels(
    path: Path, label: float | str | None, *, zero_nonfinite: bool = False
) -> tuple[VolumeHeader, LabelMap]:
    known = formats.format_of(path.name) or (
        formats.format_of(".dcm") if is_seg_file(path) else None
    )
    if known is not None and known.labels_with:
        header, labels = formats.function_of(known.labels_with)(path, label)
        return header, replace(labels, warnings=header.warnings)
    with _open_volume(path, Content.MASK) as (header, stream):
        if header.n_volumes != 1:
            came = f"it has {header.n_volumes} volumes"
            raise refusal(path, "a mask of one volume", came, "save each mask as its own file")
        box, crop, zeroed = read_block(stream, header, zero_nonfinite=zero_nonfinite)
        stream.finish()
    warnings = (*header.warnings, *((zeroed,) if zeroed else ()))
    labels = LabelMap(header.grid, box, crop, path, warnings=warnings)
    require_no_name(labels, label)
    return header, labels


def _open_volume(
    path: Path, content: Content = Content.IMAGE
) -> AbstractContextManager[tuple[VolumeHeader, VoxelStream]]:
    known = formats.format_of(path.name)
    if known is None:
        raise _unknown_suffix(path, formats.MASK_SUFFIXES)
    if not known.open_with:
        came = "the file is DICOM, and only DICOM segmentations can be read as single files"
        raise refusal(path, "a volume file", came, "open the folder of its series")
    opened: AbstractContextManager[tuple[VolumeHeader, VoxelStream]]
    opened = formats.function_of(known.open_with)(path, content)
    return opened


def _is_dicom(source: PhaseSource) -> bool:
    return len(source.files) > 1 or not formats.file_stem(source.files[0].name)


def _require_room(header: VolumeHeader, out: NDArray[Any], shape: tuple[int, ...]) -> None:
    if out.shape != shape or out.dtype != header.dtype:
        raise ValueError(
            f"expected out to have shape {shape} and dtype {header.dtype} for {header.path.name}, "
            f"but it has {out.shape} and {out.dtype}"
        )


def _require_unchanged(before: VolumeHeader, now: VolumeHeader) -> None:
    if (before.grid, before.dtype, before.n_volumes) != (now.grid, now.dtype, now.n_volumes):
        remedy = "open the case again"
        raise refusal(
            now.path, "the file that was opened", "it has changed in the meantime", remedy
        )


def _unknown_suffix(path: Path, suffixes: tuple[str, ...]) -> FormatError:
    return refusal(
        path,
        f"a file name that ends in {', '.join(suffixes)}",
        f"it ends in {path.suffix or 'no suffix'}",
        "rename the file, or convert it to one of these formats",
    )
