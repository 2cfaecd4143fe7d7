"""Images that are there twice: the same file, or the same image sent again under another name."""

import filecmp
from collections.abc import Sequence
from typing import Final

import numpy as np

from napari_mamamia.core.errors import CaseError
from napari_mamamia.io.dicom.pixels import read_plane
from napari_mamamia.io.dicom.slices import Clock, Slice

__all__ = ["sent_once", "without_copies"]

_MOST_SHARE: Final = 0.5
"""Share of a series that may have been sent again in part. A whole set that is there twice is left
to what compares volumes."""
_TIMES: Final = (
    Clock.ACQUISITION_TIME, Clock.TEMPORAL_POSITION, Clock.TRIGGER_TIME, Clock.ACQUISITION_NUMBER,
    Clock.CONTENT_TIME,
)  # fmt: skip


def without_copies(slices: Sequence[Slice], name: str) -> tuple[list[Slice], list[str]]:
    """Drop planes whose file is there twice, byte for byte; refuse two images of one UID."""
    first: dict[tuple[str, int], Slice] = {}
    kept: list[Slice] = []
    n_copies = 0
    for piece in slices:
        uid = piece.header.instance_uid
        twin = first.setdefault((uid, piece.frame), piece) if uid else piece
        if twin is piece:
            kept.append(piece)
        elif filecmp.cmp(twin.file, piece.file, shallow=False):
            n_copies += 1
        else:
            raise CaseError(
                f"expected each SOPInstanceUID once in {name}, but {twin.file} and {piece.file} "
                "have one and differ: remove the wrong one"
            )
    told = [f"{n_copies} file(s) are there twice, byte for byte; one of each counts"]
    return kept, told if n_copies else []


def sent_once(slices: Sequence[Slice]) -> tuple[list[Slice], list[str]]:
    """Drop images whose series has another one of the same place, time and values, and say so.

    Only where these are fewer than half of the series: an archive that sent some images again.
    Values are read of images that agree in all else.
    """
    by_series: dict[str, dict[tuple[object, ...], list[Slice]]] = {}
    for piece in slices:
        known = by_series.setdefault(piece.header.series_uid, {})
        known.setdefault(_place_and_time(piece), []).append(piece)
    gone: set[int] = set()
    told = []
    for known in by_series.values():
        doubled = [own for own in known.values() if len(own) > 1]
        if not 0 < len(doubled) < _MOST_SHARE * len(known):
            continue
        again = [piece for own in doubled for piece in own[1:] if _is_equal(own[0], piece)]
        gone |= {id(piece) for piece in again}
        if again:
            told.append(
                f"{len(again)} image(s) of {again[0].header.label} were sent again under other "
                "UIDs, with the same place, time and values; one of each counts"
            )
    return [piece for piece in slices if id(piece) not in gone], told


def _place_and_time(piece: Slice) -> tuple[object, ...]:
    place = tuple(round(mm, 3) for mm in (*piece.position_mm, *piece.orientation))
    return (piece.kind, piece.sequence, piece.echo, piece.shape, piece.scaling, piece.frame, place,
            *(piece.clocks.get(clock) for clock in _TIMES))  # fmt: skip


def _is_equal(a: Slice, b: Slice) -> bool:
    return bool(np.array_equal(read_plane(a), read_plane(b)))
