"""Describe each case of a data set as JSON."""

import json
from pathlib import Path
from typing import Any

from napari_mamamia.core.errors import MamamiaError
from napari_mamamia.io.data_set.volumes import read_labels
from napari_mamamia.io.files.sources import CaseFiles, DataSet, NamedMask
from napari_mamamia.services.case.data_set import OpenDataSet, patient_of


def describe_data_set(opened: OpenDataSet) -> str:
    """Describe a data set as JSON: layout, patients, cases, other and rejected files, warnings.

    Paths are relative to the data set's folder. Each case has ``patient``, ``visit`` with its
    number in order of time, ``side``, ``phases`` with times in s, ``masks`` with their numbers of
    voxels, ``columns`` of the layout's table, ``problems`` and ``warnings``.
    """
    data_set = opened.data_set
    content = {
        "layout": data_set.layout or str(data_set.kind),
        "patients": sorted({patient_of(case) for case in data_set.cases}),
        "n_persons": len({case.person_key for case in data_set.cases}),
        "n_exams": len(data_set.cases),
        "n_visits": sum(case.visit is not None for case in data_set.cases),
        "exams": [_describe_case(data_set, case, opened) for case in data_set.cases],
        "other": [[_below(data_set, path), role] for path, role in data_set.others],
        "leftover": [_below(data_set, path) for path in data_set.leftover],
        "refused": {_below(data_set, path): reason for path, reason in data_set.refused},
        "warnings": list(opened.warnings),
    }
    return json.dumps(content, indent=1, ensure_ascii=False)


def _describe_case(data_set: DataSet, case: CaseFiles, opened: OpenDataSet) -> dict[str, Any]:
    masks = case.masks or tuple(
        NamedMask(name, path)
        for name, path in (("expert", case.reference), ("automatic", case.automatic))
        if path is not None
    )
    times = [phase.time_s for phase in case.phases]
    record = opened.record(case.case_id)
    if None in times and record is not None and record.acquisition_times_s is not None:
        times = list(record.acquisition_times_s)
    return {
        "case_id": case.case_id,
        "patient": patient_of(case),
        "visit": case.visit.name if case.visit else None,
        "visit_index": case.visit.index if case.visit else None,
        "side": case.side or None,
        "phases": [_below(data_set, _phase_path(phase.files)) for phase in case.phases],
        "frames": [phase.volume for phase in case.phases] if case.is_series else None,
        "times_s": None if None in times or not times else times,
        "masks": {mask.name: _describe_mask(data_set, mask) for mask in masks},
        "reference": None if case.reference is None else _below(data_set, case.reference),
        "person": case.person or None,
        "split": case.split or None,
        "columns": dict(case.columns),
        "problems": list(case.problems),
        "warnings": list(case.warnings),
    }


def _phase_path(files: tuple[Path, ...]) -> Path:
    """Return the file of a phase, or the folder of its DICOM files."""
    return files[0] if len(files) == 1 else files[0].parent


def _below(data_set: DataSet, path: Path) -> str:
    is_below = path.is_relative_to(data_set.root)
    return path.relative_to(data_set.root).as_posix() if is_below else str(path)


def _describe_mask(data_set: DataSet, mask: NamedMask) -> dict[str, Any]:
    described: dict[str, Any] = {"path": _below(data_set, mask.path), "label": mask.label}
    if mask.region != "tumour":
        described["what"] = mask.region
    try:
        described["voxels"] = int(read_labels(mask.path, mask.label).foreground(mask.label).sum())
    except MamamiaError as error:
        described["problem"] = str(error)
    return described
