"""Table of volume formats, with their suffixes, readers, writers and required packages.

Readers are imported only when a file is opened, because napari checks in the GUI thread whether the
plugin reads a path.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class VolumeFormat:
    """Definition of a file format.

    Parameters
    ----------
    suffixes
        Endings of file names, in lower case.
    open_with
        The function, as ``module:function``, that opens a path and returns a header and a stream of
        voxels; "" if there is none.
    labels_with
        The function that takes the path of a segments file and a label, and returns the header and
        values.
    write_with
        The function that writes voxels; "" if the format is read-only.
    voxel_suffixes
        Endings of a separate file with the voxels.
    is_for_masks
        Whether the format contains only segments, never an image.
    require_with
        The function that raises `MissingExtraError` if the required package is not installed; "" if
        the base installation reads the format.
    """

    suffixes: tuple[str, ...]
    open_with: str = ""
    labels_with: str = ""
    write_with: str = ""
    voxel_suffixes: tuple[str, ...] = ()
    is_for_masks: bool = False
    require_with: str = ""


_NRRD: Final = "volumes.nrrd:open_nrrd"
FORMATS: Final = (
    VolumeFormat((".nii.gz", ".nii"), "volumes.nifti:open_nifti", "", "volumes.nifti:write_nifti"),
    VolumeFormat(
        (".hdr", ".hdr.gz", ".img", ".img.gz"),
        "volumes.nifti:open_nifti_pair",
        voxel_suffixes=(".img", ".img.gz"),
    ),
    VolumeFormat((".seg.nrrd",), _NRRD, "volumes.segments:read_segment_labels", is_for_masks=True),
    VolumeFormat((".nrrd",), _NRRD, "", "volumes.nrrd:write_nrrd"),
    VolumeFormat((".nhdr",), _NRRD, voxel_suffixes=(".raw", ".raw.gz")),
    VolumeFormat((".mha",), "volumes.metaimage:open_metaimage"),
    VolumeFormat((".mhd",), "volumes.metaimage:open_metaimage", voxel_suffixes=(".raw", ".zraw")),
    VolumeFormat(
        (".dcm",),
        "",
        "seg.labels:read_seg_labels",
        is_for_masks=True,
        require_with="dicom.elements:require_pydicom",
    ),
)
"""All formats; DICOM is included only for segmentations, because images are series."""


def _suffixes(wanted: Callable[[VolumeFormat], object]) -> tuple[str, ...]:
    return tuple(end for one in FORMATS if wanted(one) for end in one.suffixes)


MASK_SUFFIXES: Final = _suffixes(lambda one: True)
IMAGE_SUFFIXES: Final = _suffixes(lambda one: not one.is_for_masks)
SINGLE_FILE_SUFFIXES: Final = _suffixes(lambda one: not one.is_for_masks and not one.voxel_suffixes)
"""Suffixes of images that are stored in one file."""
WRITTEN_SUFFIXES: Final = _suffixes(lambda one: one.write_with)
_BY_SUFFIX: Final = {end: one for one in FORMATS for end in one.suffixes}
_VOXELS: Final = tuple(end for one in FORMATS for end in one.voxel_suffixes)
MASKS_EXPECTED: Final = "ID.nii.gz, ID.nrrd, ID.seg.nrrd, ID.mha, ID.mhd, ID.hdr or ID.dcm (SEG)"
"""Names of mask files that a folder can contain, as text for messages."""


def suffix_of(name: str) -> str:
    """Return the suffix of a volume file's name in lower case, or ""."""
    lower = name.lower()
    return max((end for end in MASK_SUFFIXES if lower.endswith(end)), key=len, default="")


def format_of(name: str) -> VolumeFormat | None:
    """Return the format that a file name indicates, or None."""
    return _BY_SUFFIX.get(suffix_of(name))


def require_readers(names: Iterable[str]) -> None:
    """Raise `MissingExtraError` unless the packages for all volume files are installed."""
    for volume_format in {format_of(name) for name in names}:
        if volume_format is not None and volume_format.require_with:
            function_of(volume_format.require_with)()


def function_of(reference: str) -> Callable[..., Any]:
    """Import and return the function named ``module:function``."""
    module, _, name = reference.partition(":")
    function: Callable[..., Any] = getattr(import_module(f"napari_mamamia.io.{module}"), name)
    return function


def file_stem(name: str) -> str | None:
    """Return an image file's name without its suffix, or None if it is not a volume file.

    Examples
    --------
    >>> file_stem("DUKE_001.nii.gz"), file_stem("DUKE_001.json"), file_stem("DUKE_001.seg.nrrd")
    ('DUKE_001', None, None)
    """
    known = format_of(name)
    return None if known is None or known.is_for_masks else mask_stem(name)


def mask_stem(name: str) -> str | None:
    """Return a file's name without its mask suffix, or None if there is no such suffix.

    Examples
    --------
    >>> mask_stem("DUKE_001.seg.nrrd"), mask_stem("DUKE_001.dcm"), mask_stem("DUKE_001.json")
    ('DUKE_001', 'DUKE_001', None)
    """
    suffix = suffix_of(name)
    # A separate voxel file is ignored, because its header beside it is the volume.
    if not suffix or suffix in _VOXELS:
        return None
    return name[: -len(suffix)] or None
