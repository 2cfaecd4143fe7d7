"""What DICOM headers tell of the time axis besides the times: resolution, images, injection.

Source of the resolution: UCSF's program (rnadkarni2/SlicerBreast_DCEMRI_FTV,
chooseEarly_LateByManufacturer.py at f0e9ca57), whose choice of phases rests on it.
"""

from pathlib import Path
from typing import Any, Final

from napari_mamamia.core.case import ScanTiming
from napari_mamamia.io.dicom_elements import open_dicom, optional_number, seconds
from napari_mamamia.io.foreign import reads

__all__ = ["read_scan_timing"]

_MILLISECONDS_FROM: Final = 1000.0
_WHOLE_FROM: Final = 150.0
_GE_DURATION: Final = (0x0019, 0x105A)
_DAY_S: Final = 86400.0
_MOST_S: Final = 7200.0
"""An exam takes no two hours from its pre-contrast scan to the injection."""


@reads("a readable DICOM file", "export the series again")
def read_scan_timing(post: Path, pre: Path) -> ScanTiming:
    """Return temporal resolution, number of images and injection from two headers.

    Parameters
    ----------
    post, pre
        A file of the first phase after contrast, and of phase 0.

    Raises
    ------
    FormatError
        If a file is damaged.
    MissingExtraError
        If pydicom is not installed.
    """
    after = open_dicom(post, post, stop_before_pixels=True)
    before = open_dicom(pre, pre, stop_before_pixels=True)
    maker = str(after.get("Manufacturer") or "").casefold()
    count = optional_number(after, "NumberOfTemporalPositions")
    positions = int(count) if count is not None and count >= 1 else None
    return ScanTiming(
        resolution_s=_resolution(after, maker, positions),
        positions=None if "philips" in maker else positions,
        injection_s=_injection(after, before),
    )


def _resolution(header: Any, maker: str, positions: int | None) -> float | None:
    """Return the temporal resolution in s as UCSF's program reads it; None where it is not said."""
    found = optional_number(header, "TemporalResolution")
    if found is not None and found > _MILLISECONDS_FROM:
        found /= 1000
    if not found and maker.startswith("ge"):
        duration = optional_number(header, _GE_DURATION)
        found = None if duration is None else duration / 1e6 / (positions or 1)
    if found and "siemens" in maker and found > _WHOLE_FROM and positions:
        found /= positions
    return found if found and found > 0 else None


def _injection(after: Any, before: Any) -> float | None:
    """Return the second of the injection since the start of phase 0, over midnight too."""
    given = str(after.get("ContrastBolusStartTime") or before.get("ContrastBolusStartTime") or "")
    start = str(before.get("AcquisitionTime") or "")
    if not given or not start:
        return None
    try:
        found = (seconds(given) - seconds(start)) % _DAY_S
    except ValueError:
        return None
    return found if 0 < found < _MOST_S else None
