"""Find duplicate images: identical files, images sent twice, or images with equal pixels.

Two measurements never agree in every voxel. Equal planes in an exam come from an archive or export
that mixed up slices of two phases, wrote a slice twice, or shifted a stack by one slice.
"""

import filecmp
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.choices import Clock
from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.names import count_of
from napari_mamamia.io.dicom.pixels import read_plane, sample_planes
from napari_mamamia.io.dicom.remedies import leave_out_each, use_series
from napari_mamamia.io.dicom.slices import Slice
from napari_mamamia.io.volumes.inflate import crc32_of

_MOST_SHARE: Final = 0.5
"""Largest fraction of a series that can have been sent twice (our choice).

The comparison of volumes handles a complete set that occurs twice.
"""
_TIMES: Final = (
    Clock.ACQUISITION_TIME, Clock.TEMPORAL_POSITION, Clock.TRIGGER_TIME, Clock.ACQUISITION_NUMBER,
    Clock.CONTENT_TIME,
)  # fmt: skip
_LEAST_SHOWN: Final = 0.01
"""Smallest fraction of voxels above a plane's lowest value for the plane not to be blank.

Our choice. Masked planes and padding can be equal without being copies.
"""
_MOST_LISTED: Final = 3


def without_copies(slices: Sequence[Slice], name: str) -> tuple[list[Slice], list[str]]:
    """Remove planes whose file occurs twice, or whose UID, position, time and values occur twice.

    Images that share a SOPInstanceUID but differ in series, position, time or number are separate
    images to which an anonymiser gave the same UID. If all of these agree but the values differ, an
    error is raised.
    """
    first: dict[tuple[str, int], dict[tuple[object, ...], Slice]] = {}
    pieces: list[Slice] = []
    n_copies = 0
    shared: set[str] = set()
    for image in slices:
        uid = image.header.instance_uid
        twins = first.setdefault((uid, image.frame), {}) if uid else {}
        key = (image.header.series_uid, image.clocks.get(Clock.INSTANCE_NUMBER),
               *_place_and_time(image))  # fmt: skip
        twin = twins.setdefault(key, image)
        if twin is image:
            pieces.append(image)
            shared |= {uid} if len(twins) > 1 else set()
        elif filecmp.cmp(twin.file, image.file, shallow=False) or _is_equal(twin, image):
            n_copies += 1
        else:
            raise CaseError(
                "expected one image for each SOPInstanceUID, series, position and time in "
                f"{name}, but {twin.file} and {image.file} agree in all of these and differ in "
                "their values: move the wrong image out of the folder"
            )
    notes = [
        f"{count_of(n_copies, 'file')} found twice with the same values; only one copy was used"
    ]
    notes = notes if n_copies else []
    if shared:
        notes.append(
            f"several images share a SOPInstanceUID ({count_of(len(shared), 'UID')}) but differ in "
            "series, position, time or number, possibly because of an anonymiser; each image was "
            "used"
        )
    return pieces, notes


def sent_once(slices: Sequence[Slice]) -> tuple[list[Slice], list[str]]:
    """Remove images if their series contains the same position, time and values again.

    Duplicates are removed only if they are fewer than half of the series, because then an archive
    sent some images again. Pixel values are read only if everything else agrees.
    """
    by_series: dict[str, dict[tuple[object, ...], list[Slice]]] = {}
    for plane in slices:
        by_place = by_series.setdefault(plane.header.series_uid, {})
        by_place.setdefault(_place_and_time(plane), []).append(plane)
    gone: set[int] = set()
    notes = []
    for by_place in by_series.values():
        doubled = [twins for twins in by_place.values() if len(twins) > 1]
        if not 0 < len(doubled) < _MOST_SHARE * len(by_place):
            continue
        again = [twin for twins in doubled for twin in twins[1:] if _is_equal(twins[0], twin)]
        gone |= {id(plane) for plane in again}
        if again:
            notes.append(
                f"{count_of(len(again), 'image')} of {again[0].header.label} sent again under "
                "other UIDs with the same position, time and values; only one copy was used"
            )
    return [image for image in slices if id(image) not in gone], notes


def _place_and_time(piece: Slice) -> tuple[object, ...]:
    position = tuple(round(mm, 3) for mm in (*piece.position_mm, *piece.orientation))
    times = (piece.clocks.get(clock) for clock in _TIMES)
    return (
        piece.kind, piece.sequence, piece.echo, piece.shape, piece.scaling, piece.frame, position,
        *times,
    )  # fmt: skip


def _is_equal(a: Slice, b: Slice) -> bool:
    return bool(np.array_equal(read_plane(a), read_plane(b)))


@dataclass(frozen=True, slots=True, order=True)
class _Place:
    """Position of a plane in an exam: its phase and its slice, counted from 0."""

    phase: int
    slice: int


def repeat_uncertainty(stacks: Sequence[Sequence[Slice]], name: str) -> CaseError | None:
    """Return an error if two planes of an exam have the same pixels, otherwise None.

    Some rows of each plane are compared first, and whole planes only if these rows agree. Blank
    planes are ignored.
    """
    pairs = _equal_planes(stacks)
    if not pairs:
        return None
    phases = sorted({plane.phase for pair in pairs for plane in pair})
    names = " and ".join(dict.fromkeys(stacks[k][0].series_name for k in phases))
    return CaseError(
        f"expected different pixels in each slice of each phase of {name}, but "
        f"{_describe_repeats(pairs)} ({names}), possibly because an archive mixed up slices of "
        "two phases: copy the exam from the scanner again, leave out the wrong phase, or use all "
        "phases unchanged",
        remedies=[
            *leave_out_each(([stacks[k] for k in gone] for gone in _find_suspects(pairs)), stacks),
            use_series(stacks),
        ],
    )


def _equal_planes(stacks: Sequence[Sequence[Slice]]) -> list[tuple[_Place, _Place]]:
    places = [_Place(k, z) for k, stack in enumerate(stacks) for z in range(len(stack))]
    pieces = {index: stacks[index.phase][index.slice] for index in places}
    measured = [index for index in places if not pieces[index].is_padding]
    samples = sample_planes([pieces[index] for index in measured])
    alike = _find_doubles(zip(samples, measured, strict=True))
    whole = (
        (_digest_plane(read_plane(pieces[index])), index) for group in alike for index in group
    )
    equal = _find_doubles((digest, index) for digest, index in whole if digest is not None)
    return sorted((group[0], other) for group in equal for other in group[1:])


def _find_doubles(found: Iterable[tuple[Any, _Place]]) -> list[list[_Place]]:
    groups: dict[Any, list[_Place]] = {}
    for key, index in found:
        groups.setdefault(key, []).append(index)
    return [group for group in groups.values() if len(group) > 1]


def _digest_plane(plane: NDArray[Any]) -> tuple[object, ...] | None:
    if np.count_nonzero(plane > plane.min()) < _LEAST_SHOWN * plane.size:
        return None
    values = np.ascontiguousarray(plane)
    # Two quick checksums are combined, because a single 32-bit checksum would collide among
    # thousands of planes.
    return plane.shape, plane.dtype.str, crc32_of(values), zlib.adler32(values.data)


def _find_suspects(pairs: Sequence[tuple[_Place, _Place]]) -> list[list[int]]:
    phases = sorted({plane.phase for pair in pairs for plane in pair}, reverse=True)
    common = [[k] for k in phases if all(k in {a.phase, b.phase} for a, b in pairs)]
    return common or [sorted({b.phase for _, b in pairs})]


def _describe_repeats(pairs: Sequence[tuple[_Place, _Place]]) -> str:
    counts = Counter((a.phase, b.phase) for a, b in pairs)
    texts = []
    for (a, b), count in counts.most_common(_MOST_LISTED):
        numbers = [
            other.slice for earlier, other in pairs if (earlier.phase, other.phase) == (a, b)
        ]
        where = f"{numbers[0]}" if count == 1 else f"{numbers[0]} to {numbers[-1]}"
        texts.append(
            f"phase {b} repeats {count_of(count, 'slice')} of "
            f"{'the same phase' if a == b else f'phase {a}'} (number {where}, from 0)"
        )
    rest = len(counts) - _MOST_LISTED
    return ", ".join(texts) + (f", and so on for {rest} more pairs of phases" if rest > 0 else "")
