"""The images of one DICOM study, parted by series and sequence before any is called a phase."""

import filecmp
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from napari_mamamia.core.errors import CaseError
from napari_mamamia.io.dicom_kinds import SequenceKey
from napari_mamamia.io.dicom_slices import BadImage, Header, OtherImage, Slice
from napari_mamamia.io.dicom_stack import Places, find_places, require_one_orientation

__all__ = ["Image", "Part", "parts_of", "without_copies"]

Image: TypeAlias = tuple[Slice, ...] | OtherImage | BadImage
"""What a DICOM file turned out to be."""


@dataclass(frozen=True, slots=True)
class Part:
    """The images of one series that share a sequence: by place, or the reason why not."""

    slices: tuple[Slice, ...]
    places: Places | None
    problem: str

    @property
    def header(self) -> Header:
        """The header of its first image."""
        return self.slices[0].header

    @property
    def sequence(self) -> SequenceKey:
        """The sequence that its images share."""
        return self.slices[0].sequence


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


def parts_of(slices: Sequence[Slice]) -> list[Part]:
    """Return the images by series and sequence."""
    by_series: dict[str, list[Slice]] = {}
    for piece in slices:
        by_series.setdefault(piece.header.series_uid, []).append(piece)
    return [part for own in by_series.values() for part in _parts_of_series(own)]


def _parts_of_series(own: Sequence[Slice]) -> list[Part]:
    """Return the images of one series by sequence; one that turns midway is not taken apart."""
    try:
        require_one_orientation(own)
    except CaseError as error:
        return [Part(tuple(own), None, str(error))]
    groups: list[list[Slice]] = []
    for piece in own:
        group = next((g for g in groups if g[0].sequence.is_same(piece.sequence)), None)
        if group is None:
            group = []
            groups.append(group)
        group.append(piece)
    return [_part(tuple(group)) for group in groups]


def _part(slices: tuple[Slice, ...]) -> Part:
    try:
        return Part(slices, find_places(slices), "")
    except CaseError as error:
        return Part(slices, None, str(error))
