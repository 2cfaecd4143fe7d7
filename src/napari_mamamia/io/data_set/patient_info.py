"""Read the JSON files next to the images: MAMA-MIA's patient information and ``times.json``."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import ScanTiming
from napari_mamamia.core.errors import FormatError
from napari_mamamia.io.files.foreign import reads
from napari_mamamia.io.files.json_text import parsed_json, read_json

TIMES_FILE: Final = "times.json"
"""Name of our file with acquisition times, in the root of the data set.

Its content is ``{"case_id": "REAL_001", "times_s": [0, 82.15, 147.87]}``, or a list of such
objects; further keys are ignored.
"""
CLINICAL_NAMES: Final = tuple(
    f"clinical_and_imaging_info{suffix}" for suffix in (".xlsx", ".csv", ".ods")
)
"""File names of the clinical table in a data set's root; the first existing table is used."""
NEW_CLINICAL_NAME: Final = CLINICAL_NAMES[1]
"""File name of a new clinical table, written if there is none or only an .ods table."""
SPLITS_NAME: Final = "train_test_splits.csv"


@dataclass(frozen=True, slots=True)
class PatientInfo:
    """The content of a MAMA-MIA ``patient_info_files/<id>.json``, with None for missing values.

    `acquisition_times_s` are seconds since the start of phase 0, one for each phase. `breast_box`
    is the block of the (z, y, x) array that contains the breast with the primary lesion.
    `study_uid` is the remapped UID of a case that this software imported, or "". `scan` is the
    timing from the headers, `series` are the numbers of the series from which the phases were
    imported, and `parts` are the selectors that the import used. `joined` lists the breasts of a
    case that was joined from two stacks, each with its first and last slice. `frame_uid` is the
    remapped frame of reference of all images, or "". `box_problem` and `times_problem` are unusable
    values in the file, or "".
    """

    acquisition_times_s: tuple[float, ...] | None = None
    breast_box: Box | None = None
    study_uid: str = ""
    series: tuple[int, ...] = ()
    scan: ScanTiming = field(default_factory=ScanTiming)
    box_problem: str = ""
    times_problem: str = ""
    parts: tuple[str, ...] = ()
    joined: tuple[tuple[str, int, int], ...] = ()
    frame_uid: str = ""


@reads("the JSON of a patient", "correct, replace or remove the file")
def read_patient_info(path: Path) -> PatientInfo:
    """Return the acquisition times and the breast box in a patient JSON file.

    Keys that are missing or null give None; invalid values give None and a problem. The file's
    ``x_min`` to ``z_max`` count along axes 0, 1, 2 of the array as SimpleITK gives it, (z, y, x),
    with an exclusive upper end, so the file's "x" is our z. Source: MAMA-MIA challenge, sample
    submission, which cuts ``array[x_min:x_max, y_min:y_max, z_min:z_max]`` out of
    ``GetArrayFromImage``.

    Raises
    ------
    FormatError
        If the file cannot be read or is not a JSON object.
    """
    content = _read_json(path)
    if not isinstance(content, dict):
        raise FormatError(
            f"expected a JSON object in {path}, but found {type(content).__name__}: export the "
            "patient info again"
        )
    said_times = _read_section(content, "imaging_data").get("acquisition_times")
    said_box = _read_section(content, "primary_lesion").get("breast_coordinates")
    times = _parse_times(said_times)
    box = _parse_box(said_box) if isinstance(said_box, dict) else None
    imported = _read_section(content, "import")
    return PatientInfo(
        times,
        box,
        str(imported.get("study_uid_remapped") or ""),
        _list_series(imported.get("series")),
        _read_scan_timing(_read_section(imported, "timing")),
        _shorten_value(said_box) if box is None else "",
        _shorten_value(said_times) if times is None else "",
        _list_parts(imported.get("series")),
        _list_breasts(_read_section(imported, "joined").get("sides")),
        str(imported.get("frame_of_reference_uid_remapped") or ""),
    )


def _read_scan_timing(said: dict[str, Any]) -> ScanTiming:
    """Return the scan timing that an import stored; values of 0 or less count as missing."""
    resolution, positions, injection = (
        _above_zero(said.get(name)) for name in ("resolution_s", "positions", "injection_s")
    )
    return ScanTiming(resolution, None if positions is None else int(positions), injection)


def _above_zero(value: object) -> float | None:
    return float(str(value)) if _is_number(value) and float(str(value)) > 0 else None


def _shorten_value(value: object) -> str:
    inner = value.values() if isinstance(value, dict) else value
    parts = inner if isinstance(inner, Iterable) and not isinstance(inner, str) else (inner,)
    is_empty = all(part is None or str(part) in {"", "nan"} for part in parts)
    return "" if is_empty else str(value)[:120]


@reads("acquisition times as JSON", "correct, replace or remove the file")
def read_times_file(path: Path) -> Mapping[str, tuple[float, ...]]:
    """Return the times in ``times.json`` by case id, in seconds since the start of phase 0.

    A JSON file without the key ``times_s`` belongs to different software, so the result is empty.

    Raises
    ------
    FormatError
        If the file is not JSON, or an entry has no ``case_id`` or times that do not ascend.
    """
    content = _read_json(path)
    entries = content if isinstance(content, list) else [content]
    times_by_case: dict[str, tuple[float, ...]] = {}
    for entry in entries:
        if not isinstance(entry, dict) or "times_s" not in entry:
            continue
        times = _parse_times(entry["times_s"])
        case_id = entry.get("case_id")
        if times is None or not isinstance(case_id, str):
            raise FormatError(
                f'expected {{"case_id": "...", "times_s": [0, 90, ...]}} with ascending seconds in '
                f"{path}, but found {str(entry)[:80]}: correct the entry, or remove the file"
            )
        times_by_case[case_id] = times
    return times_by_case


def _read_json(path: Path) -> Any:
    try:
        return read_json(path)
    except (OSError, ValueError, RecursionError) as error:
        raise FormatError(
            f"cannot read {path} as JSON ({error}); replace or remove the file"
        ) from error


def _read_section(content: dict[str, Any], key: str) -> dict[str, Any]:
    value = content.get(key)
    return value if isinstance(value, dict) else {}


def _parse_times(value: object) -> tuple[float, ...] | None:
    if isinstance(value, str):
        try:
            value = parsed_json(value)
        except ValueError:
            return None
    if not isinstance(value, list) or not value or not all(_is_number(v) for v in value):
        return None
    times = tuple(float(v) - float(value[0]) for v in value)
    ascending = all(a < b for a, b in pairwise(times))
    return times if ascending else None


def _list_parts(rows: object) -> tuple[str, ...]:
    entries = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    used = [row for row in entries if row.get("use") == "used"]
    selectors = [str(row.get("selector") or "") for row in used]
    return tuple(dict.fromkeys(selectors)) if all(selectors) else ()


def _list_breasts(sides: object) -> tuple[tuple[str, int, int], ...]:
    entries = [row for row in sides if isinstance(row, dict)] if isinstance(sides, list) else []
    spans = [(row.get("side"), row.get("first"), row.get("last")) for row in entries]
    return tuple(
        (side, first, last)
        for side, first, last in spans
        if side in ("left", "right") and isinstance(first, int) and isinstance(last, int)
    )


def _list_series(rows: object) -> tuple[int, ...]:
    entries = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    return tuple(
        row["number"]
        for row in entries
        if isinstance(row.get("number"), int) and str(row.get("fate", "")).startswith("phase")
    )


def _parse_box(coordinates: dict[str, Any]) -> Box | None:
    low = [coordinates.get(f"{axis}_min") for axis in "xyz"]
    high = [coordinates.get(f"{axis}_max") for axis in "xyz"]
    if not all(_is_number(v) for v in (*low, *high)):
        return None
    start, stop = ([int(v) for v in side if v is not None] for side in (low, high))
    if any(a < 0 or b < a for a, b in zip(start, stop, strict=True)):
        return None
    return Box((start[0], start[1], start[2]), (stop[0], stop[1], stop[2]))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
