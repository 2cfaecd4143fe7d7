"""Check the stored values of an exam for different scalings, and for mixed integer types."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from napari_mamamia.core.errors import CaseError
from napari_mamamia.io.dicom.elements import Scaling
from napari_mamamia.io.dicom.pixels import read_plane
from napari_mamamia.io.dicom.remedies import leave_out, use_series
from napari_mamamia.io.dicom.slices import Slice

_NAMELESS: Final = (
    "Philips' Scale Slope (2005,100E), whose block of private elements does not name its creator"
)
_SAME_SCALE: Final = 1.001
"""Ratio below which two scaling factors count as equal, because RescaleSlope is rounded."""


def check_values(stacks: Sequence[Sequence[Slice]], name: str) -> tuple[CaseError, ...]:
    """Return errors for different scalings, or for bright voxels that may have become dark."""
    doubts = (
        _find_two_scales(stacks, name),
        _find_unnamed_slopes(stacks, name),
        _find_unused_mappings(stacks, name),
        _find_negative_slope(stacks, name),
        _find_wrapped(stacks, name),
    )
    return tuple(doubt for doubt in doubts if doubt is not None)


def value_warnings(slices: Sequence[Slice]) -> tuple[str, ...]:
    """Return warnings about elements that were ignored, or that differ within an exam."""
    faults = Counter(p.scaling.fault for p in slices if p.scaling.fault)
    notes = [
        (
            f"{fault} in {n_slices} of {len(slices)} slices cannot be a calibration and was "
            f"ignored; the values of these slices are {_describe_result(fault, slices)}"
        )
        for fault, n_slices in faults.items()
    ]
    unused = Counter(p.scaling.unused for p in slices if p.scaling.unused)
    notes += [
        f"{mapping} in {n_slices} of {len(slices)} slices was not applied to the values"
        for mapping, n_slices in unused.items()
    ]
    nameless = [p.scaling.nameless for p in slices if p.scaling.nameless is not None]
    if nameless:
        notes.append(
            f"{_NAMELESS} ({min(nameless):g} to {max(nameless):g} in {len(nameless)} of "
            f"{len(slices)} slices), was not applied, so the scale of the values differs from "
            "that of other exams"
        )
    n_dark = sum(p.header.photometric == "MONOCHROME1" for p in slices)
    if n_dark:
        notes.append(
            f"PhotometricInterpretation is MONOCHROME1 in {n_dark} of {len(slices)} slices, which "
            "viewers show with high values dark; the stored values are used, so check that "
            "enhancement increases them"
        )
    n_signed = sum(map(_is_signed, slices))
    if 0 < n_signed < len(slices):
        notes.append(
            f"PixelRepresentation differs: the values are signed in {n_signed} of {len(slices)} "
            "slices and unsigned in the other slices; each slice was read according to its own "
            "header"
        )
    return tuple(notes)


def _describe_result(fault: str, slices: Sequence[Slice]) -> str:
    source = next(p.scaling.source for p in slices if p.scaling.fault == fault)
    if not source:
        return "the stored values"
    return f"those scaled by {source}, which may differ between series"


def _find_two_scales(stacks: Sequence[Sequence[Slice]], name: str) -> CaseError | None:
    scalings = {plane.scaling for stack in stacks for plane in stack}
    kinds = Counter(name_scaling(plane.scaling) for stack in stacks for plane in stack)
    faults = {scaling.fault for scaling in scalings} - {""}
    if len(kinds) < 2 or (len({scaling.pair for scaling in scalings}) == 1 and len(faults) < 2):
        return None
    sound = {scaling.source for scaling in scalings if not scaling.fault}
    odd = min(kinds, key=lambda kind: (kind in sound, kinds[kind]))
    first, gone = _find_slices(stacks, lambda plane: name_scaling(plane.scaling) == odd)
    other = next(kind for kind in kinds if kind != odd)
    return CaseError(
        f"expected the same scaling throughout {name}, but {kinds[odd]} of {kinds.total()} slices "
        f"have {odd} (the first is {first}) and others have {other}, so their values are on "
        "different scales: export the series again, leave out the affected phases, or use all "
        "phases with unchanged values",
        remedies=[*leave_out(gone, stacks), use_series(stacks)],
    )


def _find_unnamed_slopes(stacks: Sequence[Sequence[Slice]], name: str) -> CaseError | None:
    """Return an error if a Philips Scale Slope without a creator name would change the values.

    The signal is stored / SS. With RescaleSlope, the signal differs by the factor RescaleSlope x
    SS.
    """
    factors = {
        None if p.scaling.nameless is None else p.scaling.slope * p.scaling.nameless
        for stack in stacks
        for p in stack
    }
    numbers = [factor for factor in factors if factor is not None]
    if not numbers or (None not in factors and max(numbers) <= _SAME_SCALE * min(numbers)):
        return None
    return CaseError(
        f"expected the same scaling throughout {name}, but {_NAMELESS}, differs between slices "
        "relative to RescaleSlope, so the scales may differ by up to "
        f"{max(numbers) / min(numbers):.3g} times: export the series again with Philips' private "
        "elements, or use all phases scaled by RescaleSlope",
        remedies=[use_series(stacks)],
    )


def _find_unused_mappings(stacks: Sequence[Sequence[Slice]], name: str) -> CaseError | None:
    counts = Counter(plane.scaling.unused for stack in stacks for plane in stack)
    if len(counts) < 2:
        return None
    odd = min((text for text in counts if text), key=lambda text: counts[text])
    first, gone = _find_slices(stacks, lambda plane: plane.scaling.unused == odd)
    other = next(text for text in counts if text != odd)
    return CaseError(
        f"expected the same value mapping in all slices of {name}, but {counts[odd]} of "
        f"{counts.total()} slices have {odd} (the first is {first}) and others have "
        f"{other or 'only RescaleSlope'}, so their values are on different scales: export the "
        "series again or convert it to NIfTI with this mapping applied, leave out the affected "
        "phases, or use all phases with unchanged values",
        remedies=[*leave_out(gone, stacks), use_series(stacks)],
    )


def name_scaling(scaling: Scaling) -> str:
    """Return the element that scales the values, or the reason why none does."""
    return scaling.fault or scaling.source or "no RescaleSlope"


def _find_negative_slope(stacks: Sequence[Sequence[Slice]], name: str) -> CaseError | None:
    first, gone = _find_slices(stacks, lambda piece: piece.scaling.slope < 0)
    if not gone:
        return None
    return CaseError(
        f"expected RescaleSlope to be above 0 in {name}, but it is below 0 in {len(gone)} phases "
        f"(the first is {first}), which makes bright voxels dark: export the series again, leave "
        "out the affected phases, or use all phases with this scaling",
        remedies=[*leave_out(gone, stacks), use_series(stacks)],
    )


def _find_wrapped(stacks: Sequence[Sequence[Slice]], name: str) -> CaseError | None:
    pieces = [plane for stack in stacks for plane in stack]
    n_signed = sum(map(_is_signed, pieces))
    if n_signed in (0, len(pieces)):
        return None
    first, gone = _find_slices(stacks, lambda p: _is_signed(p) and bool(read_plane(p).min() < 0))
    if not gone:
        return None
    return CaseError(
        f"expected all values in {name} to be 0 or above, because {len(pieces) - n_signed} slices "
        f"are unsigned (PixelRepresentation 0), but {first} is signed (1) and has values below 0, "
        "so bright voxels may have turned dark: export the series again, leave out the affected "
        "phases, or use all phases with unchanged values",
        remedies=[*leave_out(gone, stacks), use_series(stacks)],
    )


def _is_signed(piece: Slice) -> bool:
    return piece.stored.kind == "i"


def _find_slices(
    stacks: Sequence[Sequence[Slice]], is_odd: Callable[[Slice], bool]
) -> tuple[str, list[Sequence[Slice]]]:
    places = [
        (phase, number)
        for phase, stack in enumerate(stacks)
        for number, plane in enumerate(stack)
        if is_odd(plane)
    ]
    first = "slice {1} of phase {0}, from 0".format(*places[0]) if places else ""
    return first, [stacks[phase] for phase in dict.fromkeys(phase for phase, _ in places)]
