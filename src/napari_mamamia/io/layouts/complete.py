"""Find the phases in a DICOM study or a 3D Slicer scene when a case is opened."""

import atexit
import re
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import Final
from urllib.parse import unquote
from xml.etree.ElementTree import ParseError, iterparse

from napari_mamamia.core.errors import FormatError, MamamiaError
from napari_mamamia.core.names import name_some
from napari_mamamia.core.progress import report_progress
from napari_mamamia.io.dicom.zip import unpack
from napari_mamamia.io.files import sources
from napari_mamamia.io.files.file_names import safe_case_id
from napari_mamamia.io.files.folders import natural_key
from napari_mamamia.io.files.own_paths import own_folder
from napari_mamamia.io.layouts.case_list import find_role, order_phases
from napari_mamamia.io.volumes.formats import file_stem

_UID: Final = re.compile(r"[0-9]+(?:\.[0-9]+)+")
_MOST_FOR_DATE: Final = 5
"""Number of files in a study whose headers are read to find its date (our choice)."""
_FOLDERS = ExitStack()
atexit.register(_FOLDERS.close)


def complete_case(files: sources.CaseFiles) -> sources.CaseFiles:
    """Return a case with the phases from its study or scene, or with a problem.

    The headers of a DICOM study are read later, when its phases are first used. A scene is unpacked
    into a temporary folder that is removed when the program ends.
    """
    if files.source is None or files.phases or files.problems:
        return files
    if files.source.is_dir():
        reading = sources.Reading(partial(_read_study, files, files.source))
        return replace(
            files,
            phases=sources.Deferred(reading, "phases"),
            problems=sources.Deferred(reading, "problems"),
            warnings=sources.Deferred(reading, "warnings"),
        )
    try:
        return _with_scene(files, _unpack_scene(files.source))
    except MamamiaError as error:
        return replace(files, problems=(*files.problems, str(error)))


def _read_study(files: sources.CaseFiles, folder: Path) -> sources.CaseFiles:
    """Return a case with the phases from the headers of its study, or with a problem."""
    from napari_mamamia.io.exam.phases import find_phases  # 30 modules that few data sets need

    try:
        study = find_phases(folder)
    except MamamiaError as error:
        return replace(files, problems=(str(error),))
    return replace(files, phases=study.phases, warnings=(*files.warnings, *study.warnings))


def name_visits_by_date(cases: Sequence[sources.CaseFiles]) -> tuple[sources.CaseFiles, ...]:
    """Return cases whose visits are UIDs, with study dates as visits in chronological order."""
    dates: dict[str, list[tuple[str, int]]] = {}
    for place, case in enumerate(cases):
        if case.visit is not None and _UID.fullmatch(case.visit.name):
            report_progress(place, len(cases), f"Reading the date of {case.case_id}")
            files = islice(sources.list_source(case), _MOST_FOR_DATE)
            date = next(filter(None, map(_read_study_date, files)), "")
            dates.setdefault(case.patient, []).append((date, place))
    named = list(cases)
    for studies in dates.values():
        days = [date for date, _ in studies]
        if all(days) and len(set(days)) == len(days):
            for index, (date, place) in enumerate(sorted(studies)):
                case = named[place]
                case_id = safe_case_id("_".join(filter(None, (case.patient, date, case.side))))
                named[place] = replace(case, case_id=case_id, visit=sources.Visit(date, index))
    return tuple(named)


def _read_study_date(file: Path) -> str:
    """Return the date of a DICOM file's study as YYYY-MM-DD, or "" if the file has none."""
    try:
        from pydicom import dcmread  # an extra

        header = dcmread(file, stop_before_pixels=True, specific_tags=["StudyDate"])
    except Exception:  # noqa: BLE001 - a damaged file has no date, and the import names it
        return ""
    text = str(header.get("StudyDate", ""))
    return f"{text[:4]}-{text[4:6]}-{text[6:]}" if re.fullmatch(r"\d{8}", text) else ""


@cache
def _unpack_scene(archive: Path) -> Path:
    folder = _FOLDERS.enter_context(own_folder())
    unpack(archive, folder)
    return folder


def _read_scene_names(folder: Path) -> dict[str, str]:
    """Return the names that a 3D Slicer scene gives to its images, by file name."""
    files: dict[str, str] = {}
    storages: dict[str, str] = {}
    for scene in folder.rglob("*.mrml"):
        try:
            nodes = [node for _, node in iterparse(scene)]  # noqa: S314 - expat has limits
        except (OSError, ParseError):
            continue  # the names of the files are used instead
        for node in nodes:
            if "fileName" in node.attrib:
                path = unquote(node.attrib["fileName"])
                files[node.attrib.get("id", "")] = path.replace("\\", "/").rpartition("/")[2]
            elif "Volume" in node.tag and node.attrib.get("name"):
                stored = re.search(r"storage:([^;\s]+)", node.attrib.get("references", ""))
                storage = stored[1] if stored else node.attrib.get("storageNodeRef", "")
                is_label = "LabelMap" in node.tag
                storages[storage] = (
                    f"label {node.attrib['name']}" if is_label else (node.attrib["name"])
                )
    return {files[storage]: name for storage, name in storages.items() if storage in files}


def _with_scene(files: sources.CaseFiles, folder: Path) -> sources.CaseFiles:
    from napari_mamamia.io.volumes.segments import read_segment_names  # it imports nrrd

    names = _read_scene_names(folder)
    images, segmentations = [], []
    for path in sorted(folder.rglob("*"), key=lambda path: natural_key(path.name)):
        if path.name.lower().endswith(".seg.nrrd"):
            segmentations.append(path)
        elif path.is_file() and file_stem(path.name) is not None:
            images.append(path)
    labels = {path: names.get(path.name, path.name) for path in images}
    images = [path for path in images if not find_role(labels[path])]
    orders = order_phases([labels[path] for path in images])
    if not orders:
        raise FormatError(
            f"expected images in {files.source} whose names say which phase they are (pre, post 1, "
            f"DCE_0, ...), but found {name_some(sorted(labels.values())) or 'none'}: rename "
            "the volumes in 3D Slicer and save the scene again"
        )
    phases = sorted(zip(orders, images, strict=True))
    masks = [
        sources.NamedMask(name, path, value)
        for path in segmentations
        for value, name in read_segment_names(path)
    ]
    return replace(
        files,
        phases=tuple(sources.PhaseSource((path,)) for _, path in phases),
        masks=tuple(masks),
        reference=segmentations[0] if len(segmentations) == 1 else None,
    )
