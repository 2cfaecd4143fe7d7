"""Images that are there twice: the same file, the same image sent again, or its pixels elsewhere.

Two measurements never agree in every voxel. Planes of an exam that do come of an archive or export
that took slices of one phase for another's, wrote one twice, or moved a stack by one slice.
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
from napari_mamamia.io.dicom.pixels import read_plane, sample_planes
from napari_mamamia.io.dicom.remedies import leave_out, use_series
from napari_mamamia.io.dicom.slices import Slice
from napari_mamamia.io.volumes.inflate import crc32_of

_MOST_SHARE: Final = 0.5
"""Share of a series that may have been sent again in part. A whole set that is there twice is left
to what compares volumes."""
_TIMES: Final = (
    Clock.ACQUISITION_TIME, Clock.TEMPORAL_POSITION, Clock.TRIGGER_TIME, Clock.ACQUISITION_NUMBER,
    Clock.CONTENT_TIME,
)  # fmt: skip
_LEAST_SHOWN: Final = 0.01
"""Share of a plane that lies above its lowest value, below which it is blank: masked planes and
padding are alike and were not taken from one another. Our own choice."""
_MOST_LISTED: Final = 3


def without_copies(slices: Sequence[Slice], name: str) -> tuple[list[Slice], list[str]]:
    """Drop planes whose file, or whose values of the same UID, place and time, are there twice.

    Images of one SOPInstanceUID that differ in series, place, time or number are images of their
    own, which an anonymiser gave one UID. Those that agree in all of these are refused.
    """
    first: dict[tuple[str, int], dict[tuple[object, ...], Slice]] = {}
    pieces: list[Slice] = []
    n_copies = 0
    shared: set[str] = set()
    for image in slices:
        uid = image.header.instance_uid
        twins = first.setdefault((uid, image.frame), {}) if uid else {}
        own = (image.header.series_uid, image.clocks.get(Clock.INSTANCE_NUMBER),
               *_place_and_time(image))  # fmt: skip
        twin = twins.setdefault(own, image)
        if twin is image:
            pieces.append(image)
            shared |= {uid} if len(twins) > 1 else set()
        elif filecmp.cmp(twin.file, image.file, shallow=False) or _is_equal(twin, image):
            n_copies += 1
        else:
            raise CaseError(
                f"expected one image of each SOPInstanceUID, series, place and time in {name}, but "
                f"{twin.file} and {image.file} agree in all of these and differ: move the wrong "
                "one out of the folder"
            )
    notes = [f"{n_copies} file(s) are there twice, with the same values; one of each counts"]
    notes = notes if n_copies else []
    if shared:
        notes.append(
            f"{len(shared)} SOPInstanceUID(s) are each that of several images, which differ in "
            "series, place, time or number, as when an anonymiser repeats them: each image counts"
        )
    return pieces, notes


def sent_once(slices: Sequence[Slice]) -> tuple[list[Slice], list[str]]:
    """Drop images whose series has another one of the same place, time and values, and say so.

    Only where these are fewer than half of the series: an archive that sent some images again.
    Values are read of images that agree in all else.
    """
    by_series: dict[str, dict[tuple[object, ...], list[Slice]]] = {}
    for piece in slices:
        by_place = by_series.setdefault(piece.header.series_uid, {})
        by_place.setdefault(_place_and_time(piece), []).append(piece)
    gone: set[int] = set()
    notes = []
    for by_place in by_series.values():
        doubled = [twins for twins in by_place.values() if len(twins) > 1]
        if not 0 < len(doubled) < _MOST_SHARE * len(by_place):
            continue
        again = [twin for twins in doubled for twin in twins[1:] if _is_equal(twins[0], twin)]
        gone |= {id(piece) for piece in again}
        if again:
            notes.append(
                f"{len(again)} image(s) of {again[0].header.label} were sent again under other "
                "UIDs, with the same place, time and values; one of each counts"
            )
    return [image for image in slices if id(image) not in gone], notes


def _place_and_time(piece: Slice) -> tuple[object, ...]:
    place = tuple(round(mm, 3) for mm in (*piece.position_mm, *piece.orientation))
    return (piece.kind, piece.sequence, piece.echo, piece.shape, piece.scaling, piece.frame, place,
            *(piece.clocks.get(clock) for clock in _TIMES))  # fmt: skip


def _is_equal(a: Slice, b: Slice) -> bool:
    return bool(np.array_equal(read_plane(a), read_plane(b)))


@dataclass(frozen=True, slots=True, order=True)
class _Place:
    """A plane of an exam: phase and slice, from 0."""

    phase: int
    slice: int


def repeat_uncertainty(stacks: Sequence[Sequence[Slice]], name: str) -> CaseError | None:
    """Return the doubt where two planes of an exam hold the same pixels, None where none do.

    Some rows of each plane are compared first, and whole planes only where these agree. Blank
    planes do not count.
    """
    pairs = _equal_planes(stacks)
    if not pairs:
        return None
    phases = sorted({place.phase for pair in pairs for place in pair})
    names = " and ".join(dict.fromkeys(stacks[k][0].series_name for k in phases))
    return CaseError(
        f"expected new pixels in each slice of each phase of {name}, but "
        f"{_describe_repeats(pairs)} ({names}), "
        "as when an archive or export takes slices of one phase for "
        "those of another: copy the exam from the scanner again, leave out the phase that is "
        "wrong, or name all that count to take them as they are",
        remedies=[
            *(
                remedy
                for gone in _find_suspects(pairs)
                for remedy in leave_out([stacks[k] for k in gone], stacks)
            ),
            use_series(stacks),
        ],
    )


def _equal_planes(stacks: Sequence[Sequence[Slice]]) -> list[tuple[_Place, _Place]]:
    """Return the planes that are equal to an earlier one, each behind it."""
    places = [_Place(k, z) for k, stack in enumerate(stacks) for z in range(len(stack))]
    pieces = {index: stacks[index.phase][index.slice] for index in places}
    shown = [index for index in places if not pieces[index].is_padding]
    samples = sample_planes([pieces[index] for index in shown])
    alike = _find_doubles(zip(samples, shown, strict=True))
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
    """Return what only equal planes share, None for a blank one."""
    if np.count_nonzero(plane > plane.min()) < _LEAST_SHOWN * plane.size:
        return None
    values = np.ascontiguousarray(plane)
    # Two quick sums together: one of 32 bits alone would agree by chance among many thousand
    # planes.
    return plane.shape, plane.dtype.str, crc32_of(values), zlib.adler32(values.data)


def _find_suspects(pairs: Sequence[tuple[_Place, _Place]]) -> list[list[int]]:
    """Return the phases that may be the wrong ones: each that is in all pairs, else the later."""
    phases = sorted({place.phase for pair in pairs for place in pair}, reverse=True)
    common = [[k] for k in phases if all(k in {a.phase, b.phase} for a, b in pairs)]
    return common or [sorted({b.phase for _, b in pairs})]


def _describe_repeats(pairs: Sequence[tuple[_Place, _Place]]) -> str:
    """Return how many slices are equal, by the phases that they stand in."""
    counts = Counter((a.phase, b.phase) for a, b in pairs)
    texts = []
    for (a, b), count in counts.most_common(_MOST_LISTED):
        numbers = [other.slice for one, other in pairs if (one.phase, other.phase) == (a, b)]
        where = f"{numbers[0]}" if count == 1 else f"{numbers[0]} to {numbers[-1]}"
        texts.append(
            f"{count} slice(s) of phase {b} (number {where}, from 0) repeat those of "
            + ("another place in it" if a == b else f"phase {a}")
        )
    rest = len(counts) - _MOST_LISTED
    return ", ".join(texts) + (f", and so on for {rest} more pairs of phases" if rest > 0 else "")
