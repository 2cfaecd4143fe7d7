"""Convert NIfTI and Analyze 7.5 headers, of 348 or 540 bytes, to a `VolumeHeader`."""

import logging
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.grid import SAME_PLACE_VOXELS, Grid
from napari_mamamia.io.files.headers import FORMS_WARNING, UNIT_WARNING, VolumeHeader
from napari_mamamia.io.volumes.own_nibabel import (
    HeaderDataError,
    Nifti1Header,
    Nifti2Header,
    data_type_codes,
)
from napari_mamamia.io.volumes.streams import refusal

NIFTI1_BYTES: Final = 348
NIFTI2_BYTES: Final = 540
EXTENSION_FLAG: Final = bytes(4)
"""Bytes after the header that state that there is no extension."""

_SIZES: Final[Mapping[int, Any]] = {NIFTI1_BYTES: Nifti1Header, NIFTI2_BYTES: Nifti2Header}
_SINGLE_FILE: Final = (b"n+1", b"n+2")
_TWO_FILES: Final = (b"ni1", b"ni2")
_ANALYZE_ORIGIN: Final = slice(253, 259)
"""Position of SPM's ``originator``: three int16, the voxel (counted from 1) at the origin."""
_NOT_VOLUMES: Final = range(1004, 1011)
"""Intent codes of matrices, vectors, points, triangles and quaternions.

Source: nifti1.h, NIFTI_INTENT_GENMATRIX to NIFTI_INTENT_QUATERNION.
"""
_UNITS: Final = {1: ("metres", 1000.0), 3: ("micrometres", 0.001)}
"""Name and size in mm of length units other than mm; an unknown unit is taken as mm."""
_UNIT_BITS: Final = 0x07
_SILENT: Final = logging.Logger(__name__, level=logging.CRITICAL + 1)


def parse_nifti_header(
    path: Path, raw: bytes, *, in_two_files: bool = False
) -> tuple[VolumeHeader, int]:
    """Return the header in the first bytes of a NIfTI file, and the byte offset of the voxels.

    The affine is chosen as in nibabel: the sform if its code is above 0, otherwise the qform,
    otherwise the spacing with x towards the patient's left and the origin in the middle. It is in
    mm, regardless of the header's unit.

    Parameters
    ----------
    path
        The path, which errors name and the header stores.
    raw
        The decompressed header: 348 bytes of NIfTI-1 or 540 bytes of NIfTI-2. Fewer bytes raise an
        error.
    in_two_files
        Whether the voxels are in a separate file, so that the header may be Analyze 7.5.

    Raises
    ------
    FormatError
        If the bytes do not describe one or more 3-D volumes of a known number type, with positive
        spacing and an affine of independent axes.
    """
    fields = _read_fields(path, raw, in_two_files)
    size = int(fields["sizeof_hdr"])
    is_analyze = bytes(fields["magic"])[:3] not in (*_SINGLE_FILE, *_TWO_FILES)
    if is_analyze:
        _require_no_matrix(path)
        fields = _from_analyze(fields, raw)
    shape_xyz, n_volumes = _read_extents(path, fields)
    slope, intercept = _read_scaling(path, fields)
    _require_spacing(path, fields)
    grid, warnings = _read_grid(path, shape_xyz, fields.binaryblock if is_analyze else raw[:size])
    if is_analyze:
        warnings = (f"{path.name}: {_OF_ANALYZE}", *warnings[1:])
    header = VolumeHeader(
        path, grid, _stored_type(path, fields), slope, intercept, n_volumes, warnings
    )
    return header, _read_offset(path, fields, 0 if in_two_files else size + len(EXTENSION_FLAG))


def is_nifti2(raw: bytes) -> bool:
    """Return whether a file that starts with `raw` has the longer header of NIfTI-2."""
    return _byte_order(raw, NIFTI2_BYTES) is not None


def known_fields(raw: bytes) -> Any:
    """Return nibabel's view of a header of any version and byte order, or None if unknown."""
    for size, kind in _SIZES.items():
        byte_order = _byte_order(raw, size)
        if byte_order is not None and len(raw) >= size:
            return kind(raw[:size], endianness=byte_order, check=False)
    return None


def _byte_order(raw: bytes, size: int) -> str | None:
    for byte_order in "<>":
        if raw[:4] == np.array(size, f"{byte_order}i4").tobytes():
            return byte_order
    return None


_OF_ANALYZE: Final = (
    "it is Analyze 7.5, which does not store the patient's orientation; the first axis is assumed "
    "to point to the patient's left. Check left and right on the images"
)


def _require_no_matrix(path: Path) -> None:
    matrix = path.with_name(f"{path.name[: path.name.lower().rindex('.hdr')]}.mat")
    if matrix.is_file():
        came = f"its position is in SPM's {matrix.name}"
        raise refusal(
            path, "an orientation in the header", came, "convert the file to NIfTI with SPM"
        )


def _from_analyze(fields: Any, raw: bytes) -> Any:
    """Return an Analyze 7.5 header as NIfTI without orientation, positioned as by nibabel.

    The origin is SPM's if it is near the volume, otherwise the middle of the volume. Bytes that
    have a meaning only in NIfTI are cleared, because they may have any value in Analyze.
    """
    clean = type(fields)(endianness=fields.endianness)
    for name in ("dim", "datatype", "bitpix", "vox_offset", "scl_slope", "scl_inter"):
        clean[name] = fields[name]
    clean["pixdim"][1:] = fields["pixdim"][1:]
    origin = np.frombuffer(raw[_ANALYZE_ORIGIN], f"{fields.endianness}i2").astype(float)
    sizes = clean["dim"][1:4].astype(float)
    if origin.any() and (origin > -sizes).all() and (origin < sizes * 2).all():
        steps = np.array([-1, 1, 1]) * clean["pixdim"][1:4]
        affine = np.diag([*steps, 1.0])
        affine[:3, 3] = (1 - origin) * steps
        clean.set_sform(affine, 2)
    return clean


def _read_fields(path: Path, raw: bytes, in_two_files: bool) -> Any:
    fields = known_fields(raw)
    if fields is None:
        raise refusal(
            path,
            "a NIfTI file",
            f"it starts with {raw[:8]!r} and has no NIfTI header",
            "check that this is the correct file; convert other formats to .nii.gz first",
        )
    magic = bytes(fields["magic"])[:3]
    if in_two_files and magic in _SINGLE_FILE:
        came = "the header states that the voxels are in this file"
        raise refusal(path, "voxels in a separate file", came, "rename the file to .nii")
    if not in_two_files and magic not in _SINGLE_FILE:
        came = "header and voxels are two files" if magic in _TWO_FILES else "it is Analyze 7.5"
        raise refusal(
            path, "a single-file NIfTI", came, "rename the file to .hdr, next to its .img file"
        )
    return fields


def _read_extents(path: Path, fields: Any) -> tuple[tuple[int, int, int], int]:
    n = int(fields["dim"][0])
    sizes = tuple(int(size) for size in fields["dim"][1 : 1 + n]) if 1 <= n <= 7 else ()
    while len(sizes) > 3 and sizes[-1] == 1:
        sizes = sizes[:-1]
    remedy = "export the exam as one 3-D file for each phase, or as one 4-D file"
    if len(sizes) not in (3, 4) or min(sizes) < 1:
        raise refusal(path, "a 3-D or 4-D volume", f"its shape is {sizes} (x, y, z, ...)", remedy)
    if int(fields["intent_code"]) in _NOT_VOLUMES:
        came = f"intent code {int(fields['intent_code'])} means matrices, vectors or points"
        raise refusal(path, "an image or a mask", came, remedy)
    x, y, z, *more = sizes
    return (x, y, z), more[0] if more else 1


def _stored_type(path: Path, fields: Any) -> np.dtype[np.generic]:
    code = int(fields["datatype"])
    try:
        stored: np.dtype[Any] = np.dtype(fields.get_data_dtype())
    except (HeaderDataError, KeyError):
        stored = np.dtype("V0")
    if stored.kind not in "iuf" or stored.itemsize > 8:
        name = data_type_codes.label.get(code, "unknown")
        raise refusal(
            path,
            "voxels that are integers of up to 64 bits, float32 or float64",
            f"their type is {name} (code {code})",
            "convert the voxels to int16 or float32 first",
        )
    return stored


def _require_spacing(path: Path, fields: Any) -> None:
    spacing_xyz = [float(size) for size in fields["pixdim"][1:4]]
    if not all(np.isfinite(size) and size > 0 for size in spacing_xyz):
        came = f"pixdim[1..3] is {', '.join(f'{size:g}' for size in spacing_xyz)}"
        remedy = (
            "export the file again from the scanner's data, because a guessed spacing would "
            "be wrong"
        )
        raise refusal(path, "a positive voxel spacing", came, remedy)


def _read_scaling(path: Path, fields: Any) -> tuple[float, float]:
    slope, intercept = float(fields["scl_slope"]), float(fields["scl_inter"])
    if slope == 0 or not np.isfinite(slope):
        return 1.0, 0.0
    if not np.isfinite(intercept):
        came = f"scl_slope is {slope:g} and scl_inter {intercept:g}"
        raise refusal(path, "a finite intercept", came, "export the file again without scaling")
    return slope, intercept


def _read_offset(path: Path, fields: Any, least: int) -> int:
    offset = float(fields["vox_offset"])
    if not np.isfinite(offset):
        raise refusal(path, "a finite vox_offset", f"it is {offset}", "export the file again")
    return max(int(offset), least)


def _read_grid(
    path: Path, shape_xyz: tuple[int, int, int], raw: bytes
) -> tuple[Grid, tuple[str, ...]]:
    try:
        grid, notes = _make_grid(shape_xyz, raw)
    except (ValueError, HeaderDataError) as error:
        remedy = "export the file again from the scanner's data"
        raise refusal(path, "an affine of three independent axes", str(error), remedy) from error
    return grid, tuple(f"{path.name}: {text}" for text in notes)


# The phases and masks of a case often have identical headers, and therefore one grid.
@lru_cache(maxsize=16)
def _make_grid(shape_xyz: tuple[int, int, int], raw: bytes) -> tuple[Grid, tuple[str, ...]]:
    fields = known_fields(raw)
    repaired = fields
    if not _is_sound(fields):
        repaired = fields.copy()
        # nibabel must neither log nor raise, because the warnings below report anything unusual.
        repaired.check_fix(logger=_SILENT, error_level=logging.CRITICAL + 1)
    x, y, z = shape_xyz
    grid = Grid((z, y, x), _to_mm(repaired.get_best_affine(), fields), raw)
    notes = (
        _two_forms(repaired, grid),
        _no_form(repaired),
        _describe_shear(grid),
        _describe_unit(fields),
    )
    return grid, tuple(text for text in notes if text)


def _is_sound(fields: Any) -> bool:
    codes = int(fields["qform_code"]), int(fields["sform_code"])
    return float(fields["pixdim"][0]) in (-1.0, 1.0) and all(0 <= code <= 4 for code in codes)


def _two_forms(repaired: Any, grid: Grid) -> str:
    if int(repaired["qform_code"]) == 0 or int(repaired["sform_code"]) == 0:
        return ""
    try:
        other = Grid(grid.shape, _to_mm(repaired.get_qform(), repaired))
    except (ValueError, HeaderDataError):
        return "its qform is invalid, so the sform is used"
    apart_mm = grid.farthest_corner_mm(other)
    if apart_mm <= SAME_PLACE_VOXELS * min(grid.spacing_mm):
        return ""
    differences = "; ".join(filter(None, (grid.differences(other), f"corners {apart_mm:.4g} mm")))
    return (
        f"{FORMS_WARNING} {differences}. The sform is used, but other software may use "
        "the qform; check the position on the images"
    )


def _no_form(repaired: Any) -> str:
    if int(repaired["qform_code"]) != 0 or int(repaired["sform_code"]) != 0:
        return ""
    return (
        "the header has neither qform nor sform; the first axis is assumed to point to the "
        "patient's left. Check left and right on the images"
    )


def _describe_shear(grid: Grid) -> str:
    if not grid.is_sheared:
        return ""
    return (
        "its axes are not at right angles (sheared affine); the volume is measured and exported "
        "unchanged. Straighten the data set to get a copy with perpendicular axes"
    )


def _describe_unit(fields: Any) -> str:
    unit, _ = unit_of(fields)
    if unit == "mm":
        return ""
    return f"its header {UNIT_WARNING} {unit}, which are converted to mm"


def unit_of(fields: Any) -> tuple[str, float]:
    """Return the length unit of a header, and its size in mm."""
    return _UNITS.get(int(fields["xyzt_units"]) & _UNIT_BITS, ("mm", 1.0))


def _to_mm(affine: NDArray[np.float64], fields: Any) -> NDArray[np.float64]:
    in_mm = np.array(affine, dtype=np.float64)
    in_mm[:3] *= unit_of(fields)[1]
    return in_mm
