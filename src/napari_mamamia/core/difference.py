"""A reversible change to a mask, stored as flipped bits (`Difference`).

Exclusive-or is its own inverse: flipping the bits of a `Difference` in the arrays before the step
gives the arrays after it, and flipping them again restores the arrays before it.
"""

import zlib
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.box import Box

_LEVEL: Final = 1
_SAMPLE_BYTES: Final = 2048
_WORTH: Final = 0.9
"""Largest compressed size, as a fraction of a sample, for which bytes are compressed.

Noise does not compress well, and compressing a megabyte takes 20 ms.
"""
_RAW, _PACKED, _ONE = b"\0", b"\1", b"\2"


@dataclass(frozen=True, slots=True)
class BitChange:
    """Flipped bits of one array inside one box, in compressed form.

    `where` has one bit for each voxel of `box` (`numpy.packbits`, then zlib). `planes` have the
    flipped bits of the `count` changed voxels, with one plane for each byte of an element, lowest
    byte first. The first byte of a plane states whether it is stored raw (0), with zlib (1), or as
    a single value for all voxels (2).
    """

    box: Box
    count: int
    where: bytes
    planes: tuple[bytes, ...]

    @classmethod
    def of(cls, flipped: NDArray[Any], box: Box) -> "BitChange | None":
        """Return the change for an unsigned array `flipped` of the box's shape; None if all 0."""
        changed = flipped != 0
        tight = Box.around(changed)
        if tight.is_empty:
            return None
        inside = changed[tight.slices]
        values = flipped[tight.slices][inside]
        size = values.dtype.itemsize
        columns = values.astype(values.dtype.newbyteorder("<")).view(np.uint8).reshape(-1, size)
        return cls(
            _move_box(tight, box.start),
            len(values),
            zlib.compress(np.packbits(inside).tobytes(), _LEVEL),
            tuple(_pack_plane(np.ascontiguousarray(columns[:, k])) for k in range(size)),
        )

    @property
    def nbytes(self) -> int:
        """Memory used by the change, in bytes."""
        return len(self.where) + sum(map(len, self.planes))

    def flip(self, array: NDArray[Any]) -> None:
        """Flip the bits in an unsigned `array` ``(z, y, x)`` with one byte per plane."""
        region = array[self.box.slices]
        where = self._unpack_mask()
        if all(plane[:1] == _ONE for plane in self.planes):
            # This is the usual case for labels and marks, and four times faster than selecting
            # voxels.
            value = b"".join(_unpack_plane(plane, 1) for plane in self.planes)
            region ^= where.view(np.uint8) * np.frombuffer(value, array.dtype.newbyteorder("<"))
        else:
            region[where] ^= self._unpack_values(array.dtype)

    def same_bits(self, other: "BitChange") -> bool:
        """Return whether two changes flip the same bits, regardless of compression."""
        if (self.box, self.count, len(self.planes)) != (other.box, other.count, len(other.planes)):
            return False
        if not np.array_equal(self._unpack_mask(), other._unpack_mask()):
            return False
        pairs = zip(self.planes, other.planes, strict=True)
        return all(_unpack_plane(a, self.count) == _unpack_plane(b, self.count) for a, b in pairs)

    def _unpack_mask(self) -> NDArray[np.bool_]:
        size = int(np.prod(self.box.shape))
        packed = np.frombuffer(_inflate_bytes(self.where, (size + 7) // 8), np.uint8)
        bits: NDArray[np.bool_] = np.unpackbits(packed, count=size).view(np.bool_)
        return bits.reshape(self.box.shape)

    def _unpack_values(self, dtype: np.dtype[Any]) -> NDArray[Any]:
        columns = np.empty((self.count, len(self.planes)), np.uint8)
        for k, plane in enumerate(self.planes):
            columns[:, k] = np.frombuffer(_unpack_plane(plane, self.count), np.uint8)
        return columns.reshape(-1).view(dtype.newbyteorder("<"))


@dataclass(frozen=True, slots=True)
class Difference:
    """The change made by one editing step to the labels, and to one label's membership and marks.

    Parameters
    ----------
    label
        The label whose membership and marks changed.
    labels
        The flipped bits of the labels, uint8.
    membership
        The flipped bits of the membership, float32 read as uint32.
    evidence
        The flipped bits of the marks, uint16; see `smartpaint.evidence.marks`.

    Examples
    --------
    >>> before = np.zeros((1, 2, 3), np.uint8)
    >>> after = before.copy()
    >>> after[0, 1, 1:] = 2
    >>> step = Difference(2, (BitChange.of(before ^ after, Box.whole(before.shape)),))
    >>> step.flip(before)
    >>> (before == after).all(), step.changed_voxels
    (np.True_, 2)
    """

    label: int
    labels: tuple[BitChange, ...] = ()
    membership: tuple[BitChange, ...] = ()
    evidence: tuple[BitChange, ...] = ()

    @property
    def box(self) -> Box:
        """The smallest box that contains every voxel whose label changed; may be empty."""
        return reduce(Box.union, (change.box for change in self.labels), Box.empty())

    @property
    def changed_voxels(self) -> int:
        """Number of voxels whose labels were flipped; a voxel in two changes counts twice."""
        return sum(change.count for change in self.labels)

    @property
    def nbytes(self) -> int:
        """Memory used by the step, in bytes."""
        changes = (*self.labels, *self.membership, *self.evidence)
        return sum(change.nbytes for change in changes)

    def flip(
        self,
        labels: NDArray[np.uint8],
        membership: NDArray[np.float32] | None = None,
        words: NDArray[np.uint16] | None = None,
    ) -> None:
        """Apply or undo the step in place, bit for bit.

        Parameters
        ----------
        labels
            The labels ``(z, y, x)``.
        membership
            The membership of `label`, float32 ``(z, y, x)``; None leaves the membership unchanged.
        words
            The marks of `label`, uint16 ``(z, y, x)``; None leaves the marks unchanged.
        """
        for change in self.labels:
            change.flip(labels)
        if membership is not None:
            for change in self.membership:
                change.flip(membership.view(np.uint32))
        if words is not None:
            for change in self.evidence:
                change.flip(words)

    def same_bits(self, other: "Difference") -> bool:
        """Return whether two differences flip the same bits of the same voxels."""
        return (
            self.label == other.label
            and _is_same_change(self.labels, other.labels)
            and _is_same_change(self.membership, other.membership)
            and _is_same_change(self.evidence, other.evidence)
        )


def _is_same_change(a: tuple[BitChange, ...], b: tuple[BitChange, ...]) -> bool:
    return len(a) == len(b) and all(x.same_bits(y) for x, y in zip(a, b, strict=True))


def _move_box(box: Box, by: tuple[int, int, int]) -> Box:
    (z, y, x), (z0, y0, x0), (z1, y1, x1) = by, box.start, box.stop
    return Box((z0 + z, y0 + y, x0 + x), (z1 + z, y1 + y, x1 + x))


def _pack_plane(values: NDArray[np.uint8]) -> bytes:
    if (values == values[0]).all():
        return _ONE + bytes(values[:1])
    content = values.tobytes()
    sample = content[:_SAMPLE_BYTES]
    if len(zlib.compress(sample, _LEVEL)) < _WORTH * len(sample):
        return _PACKED + zlib.compress(content, _LEVEL)
    return _RAW + content


def _unpack_plane(plane: bytes, count: int) -> bytes:
    """Decompress and return the bytes of a plane.

    Raises
    ------
    ValueError
        If the plane does not have `count` bytes.
    """
    kind, rest = plane[:1], plane[1:]
    if kind == _ONE and len(rest) == 1:
        return rest * count
    if kind == _PACKED:
        return _inflate_bytes(rest, count)
    if kind == _RAW and len(rest) == count:
        return rest
    raise ValueError(
        f"expected a plane of {count} bytes, but got {len(rest)} bytes of kind {kind!r}"
    )


def _inflate_bytes(packed: bytes, size: int) -> bytes:
    try:
        values = zlib.decompressobj().decompress(packed, size + 1)
    except zlib.error as error:
        raise ValueError(f"expected {size} packed bytes, but {error}") from error
    if len(values) != size:
        raise ValueError(f"expected {size} packed bytes, but got {len(values)}")
    return values
