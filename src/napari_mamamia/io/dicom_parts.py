"""The images of one DICOM study, parted by series and what they are before any is called a phase.

A part is what a user can name: the images of one series that are one kind of image (magnitude,
water, a phase image, ...), of one sequence and echo, and of one breast where the series shows two.
"""

import filecmp
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from napari_mamamia.core.errors import CaseError
from napari_mamamia.io.dicom_kinds import SequenceKey
from napari_mamamia.io.dicom_roles import Kind, Role
from napari_mamamia.io.dicom_slices import BadImage, Header, OtherImage, Slice
from napari_mamamia.io.dicom_stack import Places, find_places, require_one_orientation

__all__ = ["Image", "Part", "part_of", "parts_of", "without_copies"]

Image: TypeAlias = tuple[Slice, ...] | OtherImage | BadImage
"""What a DICOM file turned out to be."""

_SAGITTAL: Final = 0.9
"""Cosine between a slice normal and the left-right axis from which on a stack is sagittal."""
_BETWEEN_BREASTS: Final = 3.0
"""How many usual gaps a gap between two slices is at least that parts left from right."""


@dataclass(frozen=True, slots=True)
class Part:
    """The images of one series that are one kind of image: by place, or the reason why not.

    `echo` counts the echoes of a series from 1; `side` is "left" or "right" of a sagittal stack
    that shows one breast, else "".
    """

    slices: tuple[Slice, ...]
    places: Places | None
    problem: str
    echo: int = 1
    side: str = ""

    @property
    def header(self) -> Header:
        """The header of its first image."""
        return self.slices[0].header

    @property
    def sequence(self) -> SequenceKey:
        """The sequence that its images share."""
        return self.slices[0].sequence

    @property
    def kind(self) -> Kind:
        """What its images are by their headers."""
        return self.slices[0].kind

    @property
    def role(self) -> Role:
        """The role by the headers."""
        return self.kind.role

    @property
    def n_times(self) -> int:
        """How often each place is shown, 0 where the images make no whole stack."""
        return 0 if self.places is None else self.places.n_times


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


def parts_of(slices: Sequence[Slice], *, allow_thin: bool = False) -> list[Part]:
    """Return the images by series, kind, sequence and side; each image is in one part.

    With `allow_thin` stacks of one or two slices count as whole.
    """
    by_series: dict[str, list[Slice]] = {}
    for piece in slices:
        by_series.setdefault(piece.header.series_uid, []).append(piece)
    return [part for own in by_series.values() for part in _parts_of_series(own, allow_thin)]


def part_of(slices: Sequence[Slice], like: Part, *, allow_thin: bool = False) -> Part:
    """Return some of a part's images as a part of their own."""
    return _part(tuple(slices), like.echo, like.side, allow_thin)


def _parts_of_series(own: Sequence[Slice], allow_thin: bool) -> list[Part]:
    """Return the images of one series by kind; one that turns midway is not taken apart."""
    by_kind: dict[Kind, list[Slice]] = {}
    for piece in own:
        by_kind.setdefault(piece.kind, []).append(piece)
    parts = []
    groups = []
    for pieces in by_kind.values():
        try:
            require_one_orientation(pieces)
            groups += _by_sequence(pieces)
        except CaseError as error:
            parts.append(Part(tuple(pieces), None, str(error)))
    for group, echo in _with_echoes(groups):
        for half, side in _sides(group):
            parts.append(_part(tuple(half), echo, side, allow_thin))
    return parts


def _by_sequence(pieces: Sequence[Slice]) -> list[list[Slice]]:
    """Return the images by sequence; sequences that are the same but for rounding join."""
    exact: dict[SequenceKey, list[Slice]] = {}
    for piece in pieces:
        exact.setdefault(piece.sequence, []).append(piece)
    groups: list[list[Slice]] = []
    for sequence, own in exact.items():
        group = next((g for g in groups if g[0].sequence.is_same(sequence)), None)
        if group is None:
            groups.append(own)
        else:
            group.extend(own)
    return groups


def _with_echoes(groups: Sequence[list[Slice]]) -> list[tuple[list[Slice], int]]:
    """Return each group with its echo: EchoNumbers, else its rank by echo time."""
    times = sorted({g[0].sequence.echo_time_ms or 0.0 for g in groups})
    return [
        (group, group[0].echo or times.index(group[0].sequence.echo_time_ms or 0.0) + 1)
        for group in groups
    ]


def _sides(group: Sequence[Slice]) -> list[tuple[Sequence[Slice], str]]:
    """Return the images by breast, where a sagittal stack shows one, or two with a gap between."""
    x = np.array([piece.position_mm[0] for piece in group])
    normal = np.cross(group[0].orientation[:3], group[0].orientation[3:])
    if abs(normal[0]) < _SAGITTAL:
        return [(group, "")]
    known = np.unique(np.round(x, 2))
    if known[0] * known[-1] > 0 or len(known) < 2:
        return [(group, "left" if known[0] > 0 else "right")]
    gaps = np.diff(known)
    at = int(np.searchsorted(known, 0.0, side="right")) - 1
    if gaps[at] < _BETWEEN_BREASTS * float(np.median(gaps)):
        return [(group, "")]
    return [
        ([p for p in group if p.position_mm[0] > 0], "left"),
        ([p for p in group if p.position_mm[0] <= 0], "right"),
    ]


def _part(slices: tuple[Slice, ...], echo: int, side: str, allow_thin: bool) -> Part:
    try:
        return Part(slices, find_places(slices, allow_thin=allow_thin), "", echo, side)
    except CaseError as error:
        return Part(slices, None, str(error), echo, side)
