"""From file names to `CaseFiles`: phases, and the masks and small files that belong to them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Final

from napari_mamamia.core.errors import FormatError
from napari_mamamia.io.data_set.patient_info import TIMES_FILE, read_times_file
from napari_mamamia.io.data_set.phase_files import (
    PhaseName,
    find_problems,
    parse_phase_name,
    to_phases,
)
from napari_mamamia.io.data_set.volumes import read_header
from napari_mamamia.io.files.file_names import case_key, file_stem
from napari_mamamia.io.files.folders import list_names
from napari_mamamia.io.files.sources import CaseFiles, PhaseSource

_JSON: Final = ".json"


@dataclass(frozen=True, slots=True)
class Beside:
    """What lies beside the images, by case key."""

    references: Mapping[str, list[Path]] = field(default_factory=lambda: MappingProxyType({}))
    automatic: Mapping[str, list[Path]] = field(default_factory=lambda: MappingProxyType({}))
    infos: Mapping[str, list[Path]] = field(default_factory=lambda: MappingProxyType({}))
    times_s: Mapping[str, tuple[float, ...]] = field(default_factory=lambda: MappingProxyType({}))


def case_of_folder(case_id: str, folder: Path, beside: Beside) -> CaseFiles:
    """Return the case whose phases lie in `folder`; files of another case in it are a problem."""
    own_phases: list[PhaseName] = []
    foreign: list[PhaseName] = []
    for name in list_names(folder):
        phase = parse_phase_name(name)
        if phase is not None:
            (own_phases if case_key(phase.case_id) == case_key(case_id) else foreign).append(phase)
    case = _with_beside(_from_names(case_id, folder, own_phases), beside)
    if not foreign:
        return case
    strangers = ", ".join(sorted(phase.name for phase in foreign)[:3])
    return with_problem(
        case,
        f"{folder} should hold phases of {case_id} only, but {strangers} name(s) another case: "
        "move or rename",
    )


def cases_of_flat_folder(folder: Path, beside: Beside) -> list[CaseFiles]:
    """Return the cases of a folder that holds the phases of all of them directly."""
    by_key: dict[str, list[PhaseName]] = {}
    for name in sorted(list_names(folder)):
        phase = parse_phase_name(name)
        if phase is not None:
            by_key.setdefault(case_key(phase.case_id), []).append(phase)
    return [
        _with_beside(_from_names(names[0].case_id, folder, names), beside)
        for names in by_key.values()
    ]


def case_of_file(path: Path) -> CaseFiles:
    """Return one volume file as a case, each volume along a fourth axis as a phase.

    Raises
    ------
    FormatError
        If the file's header cannot be read.
    """
    phases = tuple(PhaseSource((path,), volume) for volume in range(read_header(path).n_volumes))
    case = CaseFiles(file_stem(path.name) or path.name, phases)
    return _with_beside(case, Beside(times_s=times_by_key(path.parent)))


def by_stem(folder: Path) -> dict[str, list[Path]]:
    """Return the volume files of a folder by name without suffix."""
    files_by_stem: dict[str, list[Path]] = {}
    for name in list_names(folder):
        stem = file_stem(name)
        if stem:
            files_by_stem.setdefault(stem, []).append(folder / name)
    return files_by_stem


def masks_by_key(folder: Path) -> dict[str, list[Path]]:
    """Return the volume files of a folder by case key; empty where there is no such folder."""
    files_by_key: dict[str, list[Path]] = {}
    for stem, files in (by_stem(folder) if folder.is_dir() else {}).items():
        files_by_key.setdefault(case_key(stem), []).extend(files)
    return files_by_key


def infos_by_key(folder: Path) -> dict[str, list[Path]]:
    """Return the JSON files of a folder by case key; empty where there is no such folder."""
    files_by_key: dict[str, list[Path]] = {}
    for name in list_names(folder) if folder.is_dir() else []:
        if name.lower().endswith(_JSON):
            files_by_key.setdefault(case_key(name[: -len(_JSON)]), []).append(folder / name)
    return files_by_key


def times_by_key(root: Path) -> dict[str, tuple[float, ...]]:
    """Return the times of a data set's ``times.json`` by case key; empty where there is none."""
    path = root / TIMES_FILE
    times = read_times_file(path) if path.is_file() else {}
    return {case_key(case_id): times_s for case_id, times_s in times.items()}


def with_problem(case: CaseFiles, problem: str) -> CaseFiles:
    """Return the case with one more reason why it cannot be opened as it is."""
    return replace(case, problems=(*case.problems, problem))


def _from_names(case_id: str, folder: Path, names: list[PhaseName]) -> CaseFiles:
    phases = to_phases(folder, names)
    case = CaseFiles(case_id, phases, problems=find_problems(case_id, folder, names))
    return _checked_for_4d(case) if len(phases) == 1 and not case.problems else case


def _checked_for_4d(case: CaseFiles) -> CaseFiles:
    """Look into the only phase file: it may hold all phases. With several, opening tells."""
    only = case.phases[0].files[0]
    try:
        n_volumes = read_header(only).n_volumes
    except FormatError:
        return case  # explained when the case is opened
    if n_volumes == 1:
        return case
    return with_problem(
        case,
        f"{only} should be phase 0 alone, but holds {n_volumes} volumes: split it into "
        f"{case.case_id}_0000.nii.gz, {case.case_id}_0001.nii.gz, ..., or open the file itself",
    )


def _with_beside(case: CaseFiles, beside: Beside) -> CaseFiles:
    key = case_key(case.case_id)
    # False sorts first: a file in the case's own letter case goes before its twins.
    infos = sorted(beside.infos.get(key, []), key=lambda file: file.stem != case.case_id)
    case = replace(case, info=infos[0] if infos else None)
    reference, doubled = _pick_only_mask(case, "reference", beside.references.get(key, []))
    automatic, also = _pick_only_mask(case, "automatic", beside.automatic.get(key, []))
    problems = (*case.problems, *doubled, *also)
    case = replace(case, reference=reference, automatic=automatic, problems=problems)
    return _with_times(case, beside.times_s.get(key))


def _pick_only_mask(
    case: CaseFiles, role: str, files: Iterable[Path]
) -> tuple[Path | None, tuple[str, ...]]:
    """Return the one mask of a role; of several none, and the problem."""
    names = sorted(files)
    if len(names) < 2:
        return (names[0] if names else None), ()
    twins = " and ".join(map(str, names))
    return None, (f"{case.case_id} has two {role} masks, {twins}: keep one of them",)


def _with_times(case: CaseFiles, times_s: tuple[float, ...] | None) -> CaseFiles:
    if times_s is None:
        return case
    if len(times_s) != len(case.phases):
        return with_problem(
            case,
            f"{TIMES_FILE} gives {len(times_s)} times for the {len(case.phases)} phases of "
            f"{case.case_id}: correct the file",
        )
    timed = zip(case.phases, times_s, strict=True)
    return replace(case, phases=tuple(replace(phase, time_s=time) for phase, time in timed))
