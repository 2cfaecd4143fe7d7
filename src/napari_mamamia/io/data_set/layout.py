"""Folder conventions that assign the files of a data set to cases; nothing is written.

================  ==========================================================================
MAMA-MIA          ``images/ID/ID_000k.nii.gz``, ``segmentations/expert/ID.nii.gz`` (reference),
                  ``segmentations/automatic/ID.nii.gz``, ``patient_info_files/ID.json``,
                  ``clinical_and_imaging_info.xlsx``, ``train_test_splits.csv``
nnU-Net raw       ``imagesTr/ID_000k.nii.gz``, ``labelsTr/ID.nii.gz``; the same with Ts
folder of a case  ``ID_000k.nii.gz`` directly in the folder
single file       one 3-D or 4-D volume; a fourth axis is the phases
DICOM folder      one series for each phase (`napari_mamamia.io.exam.phases`)
================  ==========================================================================

Everywhere other volume formats do as well as ``.nii.gz`` (`io.volumes.formats`; which file is a
case's mask, `mask_files` says), and ``times.json`` may give times.
"""

import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Final

from napari_mamamia.core.errors import FormatError, Remedy, UnknownLayoutError
from napari_mamamia.core.names import readable_name
from napari_mamamia.io.data_set.mask_files import MaskListing, is_mask_file, list_masks
from napari_mamamia.io.data_set.patient_info import TIMES_FILE, read_times_file
from napari_mamamia.io.data_set.phase_files import (
    PhaseName,
    find_problems,
    parse_phase_name,
    to_phases,
)
from napari_mamamia.io.dicom.probe import looks_like_dicom
from napari_mamamia.io.files.file_names import case_key
from napari_mamamia.io.files.folders import list_names, natural_key
from napari_mamamia.io.files.foreign import reads
from napari_mamamia.io.files.sources import CaseFiles, DataSet, LayoutKind, PhaseSource
from napari_mamamia.io.volumes.formats import IMAGE_SUFFIXES, file_stem

_JSON: Final = ".json"


@dataclass(frozen=True, slots=True)
class SiblingFiles:
    """Masks and other files next to the images, by case key."""

    references: MaskListing | None = None
    automatic: MaskListing | None = None
    infos: Mapping[str, list[Path]] = field(default_factory=lambda: MappingProxyType({}))
    times_s: Mapping[str, tuple[float, ...]] = field(default_factory=lambda: MappingProxyType({}))


def case_of_folder(case_id: str, folder: Path, beside: SiblingFiles) -> CaseFiles:
    """Return the case whose phases are in `folder`; files of another case are a problem."""
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
        f"expected only phases of {case_id} in {folder}, but other files name another case "
        f"({strangers}): move or rename",
    )


def cases_of_flat_folder(folder: Path, beside: SiblingFiles) -> list[CaseFiles]:
    """Return the cases of a folder that directly contains all their phases."""
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
    phases = tuple(PhaseSource((path,), volume) for volume in range(_count_volumes(path)))
    case = CaseFiles(file_stem(path.name) or path.name, phases)
    return _with_beside(case, SiblingFiles(times_s=times_by_key(path.parent)))


def _count_volumes(file: Path) -> int:
    # napari asks in the GUI thread whether a folder is ours: importing nibabel takes 0.2 s.
    from napari_mamamia.io.data_set.volumes import read_header

    return read_header(file).n_volumes


def by_stem(folder: Path) -> dict[str, list[Path]]:
    """Return the volume files of a folder by name without suffix."""
    files_by_stem: dict[str, list[Path]] = {}
    for name in list_names(folder):
        stem = file_stem(name)
        if stem:
            files_by_stem.setdefault(stem, []).append(folder / name)
    return files_by_stem


def infos_by_key(folder: Path) -> dict[str, list[Path]]:
    """Return the JSON files of a folder by case key; empty if the folder does not exist."""
    files_by_key: dict[str, list[Path]] = {}
    for name in list_names(folder) if folder.is_dir() else []:
        if name.lower().endswith(_JSON):
            files_by_key.setdefault(case_key(name[: -len(_JSON)]), []).append(folder / name)
    return files_by_key


def times_by_key(root: Path) -> dict[str, tuple[float, ...]]:
    """Return the times of a data set's ``times.json`` by case key; empty if there is none."""
    path = root / TIMES_FILE
    times = read_times_file(path) if path.is_file() else {}
    return {case_key(case_id): times_s for case_id, times_s in times.items()}


def with_problem(case: CaseFiles, problem: str) -> CaseFiles:
    """Return the case with an additional problem, which prevents opening it."""
    return replace(case, problems=(*case.problems, problem))


def _from_names(case_id: str, folder: Path, names: list[PhaseName]) -> CaseFiles:
    phases = to_phases(folder, names)
    case = CaseFiles(case_id, phases, problems=find_problems(case_id, folder, names))
    return _checked_for_4d(case) if len(phases) == 1 and not case.problems else case


def _checked_for_4d(case: CaseFiles) -> CaseFiles:
    """Return the case of a single phase file, with a problem if the file holds all phases."""
    only = case.phases[0].files[0]
    try:
        n_volumes = _count_volumes(only)
    except FormatError:
        return case  # reported when the case is opened
    if n_volumes == 1:
        return case
    return with_problem(
        case,
        f"expected only phase 0 in {only}, but it holds {n_volumes} volumes: split it into "
        f"{case.case_id}_0000.nii.gz, {case.case_id}_0001.nii.gz, ..., or open the file itself",
    )


def _with_beside(case: CaseFiles, beside: SiblingFiles) -> CaseFiles:
    key = case_key(case.case_id)
    # False sorts first: a file in the case's own letter case precedes its variants.
    infos = sorted(beside.infos.get(key, []), key=lambda file: file.stem != case.case_id)
    case = replace(case, info=infos[0] if infos else None)
    for role, listing in (("reference", beside.references), ("automatic", beside.automatic)):
        case = _with_mask(case, role, listing)
    return _with_times(case, beside.times_s.get(key))


def _with_mask(case: CaseFiles, role: str, listing: MaskListing | None) -> CaseFiles:
    """Return the case with its mask for a role, or with a problem if there are two masks."""
    if listing is None:
        return case
    key = case_key(case.case_id)
    if key in listing.problems:
        return with_problem(case, f"the {role} mask of {case.case_id}: {listing.problems[key]}")
    if key in listing.others:
        return replace(case, warnings=(*case.warnings, f"{role} mask: {listing.others[key]}"))
    mask = listing.masks.get(key)
    return replace(case, reference=mask) if role == "reference" else replace(case, automatic=mask)


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


CLINICAL_NAMES: Final = tuple(
    f"clinical_and_imaging_info{suffix}" for suffix in (".xlsx", ".csv", ".ods")
)
"""Names of the clinical table in a data set's root; of several the first is used."""
NEW_CLINICAL_NAME: Final = CLINICAL_NAMES[1]
"""Name of a new table, if there is none or only one that cannot be written (.ods)."""
SPLITS_NAME: Final = "train_test_splits.csv"

_IMAGES: Final = "images"
_HALVES: Final = ("Tr", "Ts")
_LOOK_AT: Final = 20
_LOOKED_FOR: Final = (
    "images/ID/ID_0000.nii.gz (MAMA-MIA), imagesTr/ID_0000.nii.gz (nnU-Net raw), "
    "ID_0000.nii.gz (one case) or DICOM files (one series for each phase)"
)


def recognise(path: Path) -> LayoutKind | None:
    """Return the layout of a folder or file, judged by its names alone, or None.

    Never raises and reads no volume, so that it can be called with any path.
    """
    try:
        return _recognise_layout(path)
    except (OSError, ValueError):
        return None


@reads("a data set", "check the folder that the message names")
def find_data_set(path: Path) -> DataSet:
    """Return the cases of a folder or file, in natural order of their ids.

    A case that cannot be opened (a phase missing, two files for one phase) is listed with its
    problems. The ``images`` folder of a data set and the folder of one of its cases lead to that
    data set, the latter with this case only. The id of a case in the MAMA-MIA layout is its
    folder's name; in file names, masks and patient info the letter case does not matter.

    Parameters
    ----------
    path
        A data set, its ``images`` folder, the folder of a case, a volume file or a DICOM folder.

    Returns
    -------
    DataSet
        The cases with the paths of their files; no volume is read.

    Raises
    ------
    FormatError
        If `path` holds no case, or a file of the layout is damaged; names the expected files.
    CaseError
        If a DICOM folder contradicts itself.
    MissingExtraError
        If it is a DICOM folder and pydicom is not installed.
    """
    path = Path(os.path.abspath(path))  # noqa: PTH100 - a link to a data set stays where it is
    kind = recognise(path)
    if kind is None:
        raise _nothing_found(path)
    if kind is LayoutKind.SINGLE_FILE and is_mask_file(path):
        raise FormatError(
            f"expected a volume of images, got the segmentation {path}: open the data set of its "
            "images, or save it there as segmentations/expert/ID with its suffix"
        )
    if kind is LayoutKind.SINGLE_FILE:
        return DataSet(path, kind, (_with_readable_id(case_of_file(path)),))
    if kind is LayoutKind.DICOM:
        from napari_mamamia.io.exam.phases import find_phases  # 30 modules that few data sets need

        return _data_set(path, kind, (find_phases(path),))
    if kind is LayoutKind.NNUNET_RAW:
        return _nnunet_raw(path, _HALVES)
    if kind is LayoutKind.CASE_FOLDER:
        return _case_folder(path)
    root = path if (path / _IMAGES).is_dir() else path.parent
    return _mama_mia(root, list_names(root / _IMAGES))


def _recognise_layout(path: Path) -> LayoutKind | None:
    if path.is_file():
        return LayoutKind.SINGLE_FILE if file_stem(path.name) or is_mask_file(path) else None
    if not path.is_dir():
        return None
    names = list_names(path)
    if _IMAGES in names and _holds_case_folders(path / _IMAGES):
        return LayoutKind.MAMA_MIA
    if any(_holds_phases(path / f"{_IMAGES}{half}") for half in _HALVES):
        return LayoutKind.NNUNET_RAW
    if any(parse_phase_name(name) for name in names):
        return LayoutKind.CASE_FOLDER
    if path.name == _IMAGES and _holds_case_folders(path):
        return LayoutKind.MAMA_MIA
    return LayoutKind.DICOM if looks_like_dicom(path, names) else None


def _holds_phases(folder: Path) -> bool:
    return folder.is_dir() and any(parse_phase_name(name) for name in list_names(folder))


def _holds_case_folders(folder: Path) -> bool:
    if not folder.is_dir():
        return False
    return any(_holds_phases(folder / name) for name in list_names(folder)[:_LOOK_AT])


def _mama_mia(root: Path, case_ids: Iterable[str]) -> DataSet:
    case_ids = tuple(case_ids)
    masks = root / "segmentations"
    beside = SiblingFiles(
        references=_masks_of(masks / "expert", case_ids),
        automatic=_masks_of(masks / "automatic", case_ids),
        infos=infos_by_key(root / "patient_info_files"),
        times_s=times_by_key(root),
    )
    folders = (root / _IMAGES / case_id for case_id in case_ids)
    cases = [case_of_folder(folder.name, folder, beside) for folder in folders if folder.is_dir()]
    return _data_set(root, LayoutKind.MAMA_MIA, cases)


def _nnunet_raw(root: Path, halves: Iterable[str]) -> DataSet:
    times_s = times_by_key(root)
    cases: list[CaseFiles] = []
    for half in halves:
        if (root / f"{_IMAGES}{half}").is_dir():
            images = root / f"{_IMAGES}{half}"
            phases = filter(None, map(parse_phase_name, list_names(images)))
            case_ids = {phase.case_id for phase in phases}
            labels = _masks_of(root / f"labels{half}", sorted(case_ids))
            beside = SiblingFiles(references=labels, times_s=times_s)
            cases += cases_of_flat_folder(images, beside)
    return _data_set(root, LayoutKind.NNUNET_RAW, cases)


def _masks_of(folder: Path, case_ids: Collection[str]) -> MaskListing | None:
    return list_masks(folder, case_ids).by_key() if folder.is_dir() else None


def _case_folder(path: Path) -> DataSet:
    root = path.parent.parent
    if path.parent.name == _IMAGES and recognise(root) is LayoutKind.MAMA_MIA:
        return replace(_mama_mia(root, [path.name]), kind=LayoutKind.CASE_FOLDER)
    half = path.name.removeprefix(_IMAGES)
    if half in _HALVES:
        return _nnunet_raw(path.parent, [half])
    cases = cases_of_flat_folder(path, SiblingFiles(times_s=times_by_key(path)))
    return _data_set(path, LayoutKind.CASE_FOLDER, cases)


def _data_set(root: Path, kind: LayoutKind, cases: Iterable[CaseFiles]) -> DataSet:
    """Return the data set; cases whose results would share file names get a problem."""
    seen: dict[str, str] = {}
    checked = []
    cases = map(_with_readable_id, cases)
    for case in sorted(cases, key=lambda case: natural_key(case.case_id)):
        key = case_key(case.case_id)
        if key in seen:
            case = with_problem(
                case,
                f"{case.case_id} and {seen[key]} in {root} have the same id (ignoring letter "
                "case): rename one of them",
            )
        seen[key] = case.case_id
        checked.append(case)
    clinical = (root / name for name in CLINICAL_NAMES)
    splits = root / SPLITS_NAME
    return DataSet(
        root,
        kind,
        tuple(checked),
        clinical=next((path for path in clinical if path.is_file()), None),
        splits=splits if splits.is_file() else None,
    )


def _with_readable_id(case: CaseFiles) -> CaseFiles:
    """Return the case, but without its files if its name cannot be encoded."""
    name = readable_name(case.case_id)
    if name == case.case_id:
        return case
    return CaseFiles(
        name, (), problems=(f"the name of {name} holds bytes that are not UTF-8: rename its files",)
    )


def _nothing_found(path: Path) -> FormatError:
    if not path.exists():
        return FormatError(f"there is no data set at {path}; check the path")
    if path.is_file():
        return FormatError(
            f"expected a volume file ({', '.join(IMAGE_SUFFIXES)}), got {path}: choose another "
            "file, or the folder of the data set"
        )
    inside = [
        name
        for name in sorted(list_names(path))[:_LOOK_AT]
        if recognise(path / name) not in (None, LayoutKind.SINGLE_FILE)
    ]
    hint = f"open {path / inside[0]}" if inside else "choose the data set's own folder"
    return UnknownLayoutError(
        f"expected {_LOOKED_FOR}, or a public layout in {path}, but found no case: {hint}, or "
        "describe its layout",
        remedies=(Remedy("layout", ("FILE",)),),
    )
