"""Read the voxels of DICOM planes: plain planes directly, compressed planes through pydicom."""

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.errors import FormatError, MissingExtraError
from napari_mamamia.core.progress import report_progress
from napari_mamamia.io.dicom.elements import DAMAGED, open_dicom
from napari_mamamia.io.dicom.remedies import leave_phase_out
from napari_mamamia.io.dicom.slices import Slice, Tile
from napari_mamamia.io.files.foreign import reads

_THREADS: Final = 4
_DEFLATED: Final = "1.2.840.10008.1.2.1.99"
_AHEAD: Final = 32
"""Number of planes read ahead of the current plane."""
_IMPLICIT: Final = "1.2.840.10008.1.2"
_MOST_GRAPHIC: Final = 0.25
"""Ratio of value steps without and with the high bits up to which the bits are an overlay.

The steps are summed where the high bits change, which letters in an overlay do. Our choice: the
ratio is 0.01 on phantoms, and 1 or more for a vessel that is cut off at 4096.
"""
_SAMPLED_ROWS: Final = 8
_SAMPLED_BYTES: Final = 4096
_PIXEL_DATA: Final = {"<": b"\xe0\x7f\x10\x00", ">": b"\x7f\xe0\x00\x10"}


def needs_scaling(slices: Iterable[Slice]) -> bool:
    """Return whether the stored values of any plane must be scaled."""
    return any(image.scaling.pair != (1.0, 0.0) for image in slices)


def common_type(slices: Iterable[Slice]) -> np.dtype[Any]:
    """Return the integer type that can hold the stored values of all planes.

    PixelRepresentation can differ between images. A signed type also holds unsigned values of the
    same size that use fewer bits than the type has.
    """
    types = {(image.stored, image.header.unused_bits > 0) for image in slices}
    if any(stored.kind == "i" for stored, _ in types):
        types = {
            (np.dtype(f"i{stored.itemsize}") if has_room else stored, has_room)
            for stored, has_room in types
        }
    return np.result_type(*(stored for stored, _ in types))


@reads("readable slices", "export the series again")
def fill_planes(slices: Sequence[Slice], out: NDArray[Any]) -> None:
    """Fill the array `out` (z, y, x), plane by plane, in several threads.

    Progress is reported in planes. If `out` has a floating-point type, the scaling of each plane is
    applied (computed in float64).

    Raises
    ------
    FormatError
        If a plane cannot be read, for example because a decoder is missing, or if its size differs.
    MissingExtraError
        If pydicom is needed but not installed.
    """
    for image in slices:
        if image.shape != out.shape[1:]:
            raise FormatError(
                f"expected {out.shape[1:]} rows and columns in {image.name}, but found "
                f"{image.shape}: export the series again"
            )

    def fill(index: int) -> None:
        _fill_plane(slices[index], out[index])

    with ThreadPoolExecutor(_THREADS) as threads:
        try:
            for start in range(0, len(slices), _AHEAD):
                part = range(start, min(start + _AHEAD, len(slices)))
                for index, _ in zip(part, threads.map(fill, part), strict=True):
                    n_read = index + 1
                    report_progress(n_read, len(slices), f"Reading slice {n_read} of {len(slices)}")
        finally:
            threads.shutdown(wait=True, cancel_futures=True)


def _fill_plane(piece: Slice, plane: NDArray[Any]) -> None:
    if piece.is_padding:
        plane[...] = 0
    elif plane.dtype.kind == "f":
        plane[...] = read_plane(piece) * piece.scaling.slope + piece.scaling.intercept
    elif not _is_filled(piece, plane):
        plane[...] = read_plane(piece)


def read_plane(piece: Slice) -> NDArray[Any]:
    """Return the stored values (rows, columns) of one plane.

    Raises
    ------
    FormatError
        If the file is truncated or damaged, or no decoder for its compression is installed.
    MissingExtraError
        If pydicom is needed but not installed.
    """
    rows, columns = (slice(None, None, -1 if back else 1) for back in piece.reversed_axes)
    if piece.header.plain_at is None:
        return _decode_plane(piece)[rows, columns]
    try:
        return _read_uncompressed(piece, piece.header.plain_at)[rows, columns]
    except FormatError:
        raise
    except DAMAGED as error:
        raise _make_read_error(piece, str(error)) from error


def sample_planes(slices: Sequence[Slice]) -> list[bytes]:
    """Return sample bytes of each plane, which are equal for equal planes of one file format.

    The bytes are the middle rows of a plain plane, or the end of a compressed file with one plane.
    Otherwise they are all values of the plane.

    Raises
    ------
    FormatError
        As in `read_plane`.
    """
    n_planes = Counter(image.file for image in slices)
    return [_read_sample(image, is_alone=n_planes[image.file] == 1) for image in slices]


def _read_sample(piece: Slice, *, is_alone: bool) -> bytes:
    plain_at = piece.header.plain_at
    is_deflated = piece.header.transfer_syntax == _DEFLATED
    if piece.tile is not None or is_deflated or (plain_at is None and not is_alone):
        return read_plane(piece).tobytes()
    if plain_at is None:
        return _bytes_at(piece, -_SAMPLED_BYTES, _SAMPLED_BYTES)
    n_rows, row = piece.shape[0], piece.shape[1] * piece.stored.itemsize
    middle = max(n_rows - _SAMPLED_ROWS, 0) // 2
    start = plain_at + (piece.frame * n_rows + middle) * row
    return _bytes_at(piece, start, min(_SAMPLED_ROWS, n_rows) * row)


def _bytes_at(piece: Slice, start: int, wanted: int) -> bytes:
    try:
        with piece.file.open("rb", buffering=0) as stream:
            size = os.fstat(stream.fileno()).st_size
            stream.seek(start if start >= 0 else max(size + start, 0))
            return stream.read(wanted)
    except OSError as error:
        raise _make_read_error(piece, str(error)) from error


def require_decoders(slices: Iterable[Slice]) -> None:
    """Raise `FormatError` if this computer lacks a decoder for a compression in `slices`."""
    seen: set[str] = set()
    for image in slices:
        syntax = image.header.transfer_syntax
        if image.header.plain_at is None and syntax not in seen:
            seen.add(syntax)
            _require_decoder(image)


def _is_filled(piece: Slice, plane: NDArray[Any]) -> bool:
    """Read a plain plane directly into an array; return False if its bytes must be converted.

    The file must hold one plane with the array's type and byte order.
    """
    plain_at = piece.header.plain_at
    if plain_at is None or piece.tile is not None or any(piece.reversed_axes):
        return False
    if plane.dtype != _in_file(piece) or not plane.flags.c_contiguous:
        return False
    try:
        _read_plain(piece, plain_at + piece.frame * plane.nbytes, plane)
    except FormatError:
        raise
    except DAMAGED as error:
        raise _make_read_error(piece, str(error)) from error
    return True


def _in_file(piece: Slice) -> np.dtype[Any]:
    return piece.stored.newbyteorder(">" if piece.header.byte_order == ">" else "<")


def _read_uncompressed(piece: Slice, at: int) -> NDArray[Any]:
    stored = _in_file(piece)
    if piece.tile is None:
        plane: NDArray[Any] = np.empty(piece.shape, dtype=stored)
        return _read_plain(piece, at + piece.frame * plane.nbytes, plane)
    rows: NDArray[Any] = np.empty((piece.shape[0], piece.tile.picture[1]), dtype=stored)
    start = piece.tile.row * rows.strides[0]
    return _select_columns(piece, piece.tile, _read_plain(piece, at + start, rows))


def _read_plain(piece: Slice, start: int, plane: NDArray[Any]) -> NDArray[Any]:
    index = piece.header.plain_at or 0
    ahead = 8 if piece.header.transfer_syntax == _IMPLICIT else 12
    with piece.file.open("rb", buffering=0) as stream:
        stream.seek(index - ahead)
        # The file may have been rewritten after its header was read.
        if stream.read(4) != _PIXEL_DATA[piece.header.byte_order]:
            raise ValueError("PixelData is missing")
        stream.seek(start)
        n_bytes = stream.readinto(plane.view(np.uint8).data)
    if n_bytes != plane.nbytes:
        raise ValueError(
            f"PixelData was truncated to {n_bytes} of {plane.nbytes} bytes of the plane"
        )
    return _drop_unused_bits(plane, piece) if piece.header.unused_bits else plane


def _drop_unused_bits(plane: NDArray[Any], piece: Slice) -> NDArray[Any]:
    """Return values without unused high bits, with the sign extended in signed types.

    Those bits may hold overlays (DICOM PS3.5, 8.1.1). If the header names no overlay and the values
    may continue in those bits, an error is raised, because the values would wrap around.
    """
    spare = piece.header.unused_bits
    words = plane.copy()
    # A shift up and down copies the sign into the freed bits of a signed type, and zeros into
    # those of an unsigned type.
    np.left_shift(plane, spare, out=plane)
    np.right_shift(plane, spare, out=plane)
    if not piece.header.has_bit_overlays and _goes_on(words, plane):
        remedies = leave_phase_out(piece)
        raise FormatError(
            (
                f"expected values of {8 * plane.itemsize - spare} bits in {piece.name} "
                f"(BitsStored), but stored values reach {words.max()}, and no overlay explains "
                "the higher bits: export the series again with the correct BitsStored"
            )
            + ", or leave out its phase if only this one is affected" * bool(remedies),
            remedies=remedies,
        )
    return plane


def _goes_on(words: NDArray[Any], values: NDArray[Any]) -> bool:
    """Return whether the bits removed from `words` may belong to the image.

    Where these bits change, the steps between neighbouring values of an image are smaller with the
    bits, or not much larger. The letters of an overlay make the steps much larger.
    """
    whole, used_values = words.astype(np.int64), values.astype(np.int64)
    with_them = without = 0
    for axis in (0, 1):
        changes = np.diff(whole - used_values, axis=axis) != 0
        with_them += int(np.abs(np.diff(whole, axis=axis)[changes]).sum())
        without += int(np.abs(np.diff(used_values, axis=axis)[changes]).sum())
    return without > _MOST_GRAPHIC * with_them


def _select_columns(piece: Slice, tile: Tile, rows: NDArray[Any]) -> NDArray[Any]:
    return rows[:, tile.column : tile.column + piece.shape[1]]


def _decode_plane(piece: Slice) -> NDArray[Any]:
    _require_decoder(piece)
    try:
        from pydicom.pixels.utils import pixel_array

        index = piece.frame if piece.tile is None else 0
        is_deflated = piece.header.transfer_syntax == _DEFLATED  # pydicom inflates whole data sets.
        source = open_dicom(piece.file, piece.file) if is_deflated else os.fspath(piece.file)
        plane: NDArray[Any] = pixel_array(source, index=index)
    except DAMAGED as error:
        raise _make_read_error(piece, str(error)) from error
    tile = piece.tile
    if plane.shape != (piece.shape if tile is None else tile.picture):
        raise _make_read_error(piece, f"its plane has {plane.shape} rows and columns")
    if tile is None:
        return plane
    return _select_columns(piece, tile, plane[tile.row : tile.row + piece.shape[0]])


def _require_decoder(piece: Slice) -> None:
    try:
        from pydicom.pixels.decoders.base import get_decoder
        from pydicom.uid import UID
    except ImportError as error:
        raise MissingExtraError("pydicom", "dicom") from error
    syntax = UID(piece.header.transfer_syntax)
    name = syntax.name
    if syntax == _DEFLATED:
        return
    try:
        decoder = get_decoder(syntax)
    except NotImplementedError as error:
        raise FormatError(
            f"expected {piece.file} to compress images one by one, but its compression is {name}: "
            "export the series uncompressed"
        ) from error
    if not decoder.is_available:
        packages = "; ".join(decoder.missing_dependencies)
        raise FormatError(
            f"expected the compression of {piece.file} to be readable on this computer, but "
            f"{name} needs another package ({packages}): run  pip install 'napari-mamamia[dicom]' "
            " , which installs one, or export the series uncompressed"
        )


def _make_read_error(piece: Slice, why: str) -> FormatError:
    remedies = leave_phase_out(piece)
    return FormatError(
        f"expected a readable DICOM file at {piece.name}, but {why}: export the series again"
        + ", or leave out its phase" * bool(remedies),
        remedies=remedies,
    )
