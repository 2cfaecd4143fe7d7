"""Read UCSF's private elements in a DICOM SEG: VOI, thresholds, phases and FTV.

Source: private block "UCSF BIRP PRIVATE CREATOR 011710xx" (group 0117) of the SEG objects in TCIA's
ISPY1 collection, as read in ISPY1_1002.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.errors import FormatError
from napari_mamamia.io.dicom.elements import (
    find_block,
    needed,
    numbers,
    open_dicom,
    require_room,
    shape_of,
    spacing_of,
)
from napari_mamamia.io.files.foreign import reads

CREATOR: Final = "UCSF BIRP PRIVATE CREATOR 011710xx"
GROUP: Final = 0x0117
_METHOD: Final = "PERCENT_MAX"
_SEG: Final = "1.2.840.10008.5.1.4.1.1.66.4"
OTHER_WAY: Final = (
    "compute FTV without the SEG, around masks from a folder such as predictions, with the "
    "variant ucsf-ispy1 (9 of 26 neighbours) or ucsf-extension (4)"
)
"""Other ways to compute FTV if a SEG lacks information."""
_REMEDY: Final = f"use a SEG from UCSF's FTV program with VOI and thresholds, or {OTHER_WAY}"


@dataclass(frozen=True, slots=True)
class UcsfRegion:
    """A VOI or an omitted box, given by its centre and three half-axes in LPS mm."""

    is_inside: bool
    centre_mm: tuple[float, float, float]
    half_axes_mm: tuple[tuple[float, float, float], ...]


@dataclass(frozen=True, slots=True)
class UcsfMeasure:
    """An FTV value computed by UCSF.

    `kind` is pe or ser, and the SER is above `above` and at most `most`. `volume_cc` is in cc.
    """

    kind: str
    above: float
    most: float
    voxels: int
    volume_cc: float


@dataclass(frozen=True, slots=True, eq=False)
class UcsfFrames:
    """The stored frames of a SEG: the mask and the position of each frame.

    `mask` is bool ``(frame, row, column)``, and `places_mm` are the positions of the first pixels.
    `along_row` and `along_column` are LPS unit vectors along a row and along a column; `spacing_mm`
    is the spacing between rows and between columns. Within a slice, the position differs from the
    images by half a pixel, because UCSF's program writes a corner instead of a centre.
    """

    mask: NDArray[np.bool_]
    places_mm: tuple[tuple[float, float, float], ...]
    along_row: tuple[float, float, float]
    along_column: tuple[float, float, float]
    spacing_mm: tuple[float, float]


@dataclass(frozen=True, slots=True, eq=False)
class UcsfAnalysis:
    """UCSF's analysis as described in a SEG.

    Parameters
    ----------
    patient_id, study_uid, name
        Patient, study and name of the SEG.
    frames
        The mask and its position.
    regions
        VOI and omitted boxes, in the coordinates of `frames`.
    enhancement, background, neighbours
        PE threshold in percent, background threshold as a fraction of the 95th percentile of phase
        0, and number of required neighbours among 26 (None if an older block lacks it).
    least_signal
        Resulting threshold of phase 0 in the unit of the signal, or None if missing.
    phases, times_s, resolution_s
        Phases that were used (pre, early, late), their times on UCSF's clock in seconds, and the
        temporal resolution in seconds.
    measures
        FTV values computed by UCSF, with pe first.
    """

    patient_id: str
    study_uid: str
    name: str
    frames: UcsfFrames
    regions: tuple[UcsfRegion, ...]
    enhancement: float
    background: float
    neighbours: int | None
    least_signal: float | None
    phases: tuple[int, int, int]
    times_s: tuple[float, ...]
    resolution_s: float | None
    measures: tuple[UcsfMeasure, ...]


def is_segmentation(path: Path) -> bool:
    """Return whether a file is a DICOM SEG object; False if the file cannot be read."""
    try:
        header = open_dicom(path, path, stop_before_pixels=True, specific_tags=["SOPClassUID"])
    except (FormatError, OSError):
        return False
    return str(header.get("SOPClassUID") or "") == _SEG


@reads("a DICOM SEG of UCSF's FTV program", _REMEDY)
def read_ucsf_seg(path: Path) -> UcsfAnalysis:
    """Return the analysis that UCSF's program stored in a SEG object.

    Raises
    ------
    FormatError
        If the file is damaged, is not a SEG from UCSF's program, or lacks the VOI, a threshold or
        the phases.
    MissingExtraError
        If pydicom is not installed.
    """
    header = open_dicom(path, path)
    if str(header.get("SOPClassUID") or "") != _SEG:
        raise FormatError(
            f"expected {path} to be a DICOM SEG, but it is a different kind of object: {_REMEDY}"
        )
    block = _find_block(header)
    if block is None:
        raise FormatError(
            f"expected UCSF's private block (creator {CREATOR}) in {path}, but found a SEG from "
            f"other software: {_REMEDY}"
        )
    parameters = _read_parameters(block)
    method = str(parameters.get("tissue_masking_method", _METHOD))
    if method != _METHOD:
        raise FormatError(
            f"expected tissue_masking_method {_METHOD} in {path}, but found {method!r}: FTV by "
            f"another method is not supported; {_REMEDY}"
        )
    neighbours = parameters.get("minimum_neighbor_count")
    least = parameters.get("pre_contrast_threshold")
    return UcsfAnalysis(
        patient_id=str(header.get("PatientID") or ""),
        study_uid=str(header.get("StudyInstanceUID") or ""),
        name=str(header.get("SeriesDescription") or path.name),
        frames=_read_frames(path, header),
        regions=_read_regions(path, block),
        enhancement=_require_parameter(path, parameters, "PE_threshold"),
        background=_require_parameter(path, parameters, "PCT_background_threshold") / 100,
        neighbours=None
        if neighbours is None
        else int(_require_finite(path, "minimum_neighbor_count", neighbours)),
        least_signal=None
        if least is None
        else _require_finite(path, "pre_contrast_threshold", least),
        phases=_read_phases(path, block),
        times_s=tuple(float(time) for time in _read_values(block, 0x34)),
        resolution_s=next(map(float, _read_values(block, 0x31)), None),
        measures=_read_measures(path, block),
    )


def _find_block(header: Any) -> Any | None:
    number = find_block(header, GROUP, CREATOR)
    return None if number is None else header.private_block(GROUP, header[GROUP, number].value)


def _read_inner(item: Any, offset: int) -> Any:
    block = _find_block(item)
    return block[offset].value if block is not None and offset in block else None


def _read_values(block: Any, offset: int) -> Sequence[Any]:
    if offset not in block:
        return ()
    value = block[offset].value
    if value is None or value == "":
        return ()
    return value if isinstance(value, Sequence) and not isinstance(value, str) else (value,)


def _read_parameters(block: Any) -> dict[str, Any]:
    parameters: dict[str, Any] = {}
    for item in _read_values(block, 0x10):
        value = _read_inner(item, 0x19)
        parameters[str(_read_inner(item, 0x14))] = (
            _read_inner(item, 0x1A) if value is None else value
        )
    return parameters


def _require_parameter(path: Path, said: dict[str, Any], name: str) -> float:
    if said.get(name) is None:
        got = ", ".join(sorted(said)) or "no parameter"
        raise FormatError(
            f"expected {name} in UCSF's block of {path}, but found {got}: FTV cannot be computed; "
            f"{_REMEDY}"
        )
    return _require_finite(path, name, said[name])


def _require_finite(path: Path, name: str, value: Any) -> float:
    number = float(value)
    if not math.isfinite(number) or number < 0:
        raise FormatError(
            f"expected {name} to be 0 or above in {path}, but it is {value}: {_REMEDY}"
        )
    return number


def _read_regions(path: Path, block: Any) -> tuple[UcsfRegion, ...]:
    regions = []
    for item in _read_values(block, 0x20):
        if _read_inner(item, 0x50) is not None or _read_inner(item, 0x42) is None:
            raise FormatError(
                f"expected the regions in {path} to be boxes, but found a polygon: FTV from such "
                f"a SEG is not supported; {_REMEDY}"
            )
        vectors = [_read_vector(_read_inner(item, offset)) for offset in (0x42, 0x43, 0x44, 0x45)]
        if any(vector is None for vector in vectors):
            raise FormatError(
                f"expected a centre and three half-axes in mm for each region in {path}, but "
                f"found {vectors}: {_REMEDY}"
            )
        centre, *axes = (vector for vector in vectors if vector is not None)
        regions.append(UcsfRegion(int(_read_inner(item, 0x41)) == 1, centre, tuple(axes)))
    if not any(region.is_inside for region in regions):
        raise FormatError(f"expected a VOI in {path}, but found none: {_REMEDY}")
    return tuple(regions)


def _read_vector(value: Any) -> tuple[float, float, float] | None:
    if value is None or len(value) < 3:
        return None
    x, y, z = (float(number) for number in value[:3])
    return (x, y, z) if math.isfinite(x + y + z) else None


def _read_phases(path: Path, block: Any) -> tuple[int, int, int]:
    phases = [int(phase) for phase in _read_values(block, 0x35)[:4]]
    if len(phases) != 3 or not 0 <= phases[0] < phases[1] < phases[2]:
        raise FormatError(
            f"expected three phases (before contrast, early, late) in {path}, but found {phases}: "
            f"{_REMEDY}"
        )
    return (phases[0], phases[1], phases[2])


def _read_measures(path: Path, block: Any) -> tuple[UcsfMeasure, ...]:
    measures = []
    for item in _read_values(block, 0xB0):
        low, high, voxels, volume = (
            _require_finite(path, "an FTV", _read_inner(item, offset))
            for offset in (0xB1, 0xB2, 0xB3, 0xB4)
        )
        name = str(_read_inner(item, 0xB5) or "")
        kind = "ser" if low > 0 or name.casefold().startswith("ftvser") else "pe"
        measures.append(UcsfMeasure(kind, round(low, 6), round(high, 6), int(voxels), volume))
    measures.sort(key=lambda one: one.kind)
    if not measures or measures[0].kind != "pe":
        raise FormatError(f"expected UCSF's FTV in {path}, but found none: {_REMEDY}")
    return tuple(measures)


def _read_frames(path: Path, header: Any) -> UcsfFrames:
    shared = needed(path, header, "SharedFunctionalGroupsSequence")[0]
    shape = shape_of(path, header)
    cosines = numbers(path, shared.PlaneOrientationSequence[0], "ImageOrientationPatient", 6)
    x, y, z, p, q, r = cosines
    # The dot product plus 1 is used, so that all three values must be 1.
    length = (math.hypot(x, y, z), math.hypot(p, q, r), abs(x * p + y * q + z * r) + 1)
    if not all(math.isclose(one, 1, abs_tol=1e-3) for one in length):
        raise FormatError(
            f"expected two perpendicular axes of length 1 in {path}, but found {cosines}: {_REMEDY}"
        )
    places = tuple(
        _read_position(path, frame.PlanePositionSequence[0])
        for frame in needed(path, header, "PerFrameFunctionalGroupsSequence")
    )
    n_frames = int(needed(path, header, "NumberOfFrames"))
    if n_frames != len(places):
        raise FormatError(
            f"expected a position for each of the {n_frames} frames in {path}, but found "
            f"{len(places)}: {_REMEDY}"
        )
    return UcsfFrames(
        _read_mask(path, header, (n_frames, *shape)),
        places,
        (x, y, z),
        (p, q, r),
        spacing_of(path, shared.PixelMeasuresSequence[0]),
    )


def _read_position(path: Path, item: Any) -> tuple[float, float, float]:
    x, y, z = numbers(path, item, "ImagePositionPatient", 3)
    return (x, y, z)


def _read_mask(path: Path, header: Any, shape: tuple[int, int, int]) -> NDArray[np.bool_]:
    bits = int(needed(path, header, "BitsAllocated"))
    require_room(
        path, math.prod(shape) * bits // 8, bool(header.file_meta.TransferSyntaxUID.is_compressed)
    )
    values: NDArray[Any] = np.asarray(header.pixel_array).reshape(shape)
    return values > 0
