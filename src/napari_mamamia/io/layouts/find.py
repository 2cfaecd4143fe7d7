"""Find the cases in a folder, by layouts, or in a single file."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Final

from napari_mamamia.core import errors
from napari_mamamia.core.names import count_of, name_some, readable_name
from napari_mamamia.io.data_set.mask_files import is_mask_file
from napari_mamamia.io.dicom.probe import looks_like_dicom
from napari_mamamia.io.files.folders import list_names
from napari_mamamia.io.files.foreign import reads
from napari_mamamia.io.files.sources import CaseFiles, DataSet, LayoutKind, PhaseSource
from napari_mamamia.io.layouts.cases import (
    build_data_set,
    case_order,
    kind_of,
    read_case_times,
    with_times,
)
from napari_mamamia.io.layouts.complete import complete_case, name_visits_by_date
from napari_mamamia.io.layouts.known import (
    PROPOSED,
    choose_matches,
    find_layout,
    list_layouts,
    own_layout_file,
    read_own_layout,
)
from napari_mamamia.io.layouts.layout import Layout, parse_layouts
from napari_mamamia.io.layouts.matching import Matches, match_tree
from napari_mamamia.io.layouts.propose import propose_layout
from napari_mamamia.io.layouts.tree import Tree, list_tree
from napari_mamamia.io.volumes.formats import IMAGE_SUFFIXES, file_stem

_OUTER: Final = 3
"""Number of parent folders that are searched for the root of a data set."""
_GLANCE: Final = 2000
_GLANCE_IN_FOLDER: Final = 40
"""Number of names that are listed in a folder to recognise its layout (our choice).

A file dialog must not wait.
"""
_MOST_OUTER: Final = 200_000
"""Number of files that are listed around the folder of a case (our choice)."""
_MOST_HINTS: Final = 20
_LOOKED_FOR: Final = (
    "images/ID/ID_0000.nii.gz (MAMA-MIA), imagesTr/ID_0000.nii.gz (nnU-Net raw), "
    "ID_0000.nii.gz (one case) or DICOM files (one series for each phase)"
)


def recognise(path: Path) -> LayoutKind | None:
    """Return the layout of a folder or file, judged only by names, or None.

    The function never raises and reads no volume, so it can be called with any path.
    """
    try:
        if not path.is_dir():
            is_volume = path.is_file() and (file_stem(path.name) or is_mask_file(path))
            return LayoutKind.SINGLE_FILE if is_volume else None
        return _recognise_folder(path)
    except (errors.MamamiaError, OSError, ValueError):
        return None


def _recognise_folder(path: Path) -> LayoutKind | None:
    tree = list_tree(path, _GLANCE, _GLANCE_IN_FOLDER)
    try:
        matches = choose_matches(_layouts_for(path, tree), tree)
    except errors.MamamiaError:
        return LayoutKind.PATTERN if own_layout_file(path).is_file() else None
    if matches is not None:
        return kind_of(matches.layout)
    if looks_like_dicom(path, list_names(path)):
        return LayoutKind.DICOM
    outer = _match_outer(path, tree)
    if outer is not None:
        return kind_of(outer.layout)
    inner = _find_only_folder(path)
    return None if inner is None else recognise(inner)


@reads("a data set", "check the folder that the message names")
def find_data_set(path: Path, layout: str = "") -> DataSet:
    """Return the cases in a folder or file, in natural order of their ids.

    A case that cannot be opened (because a phase is missing, or has two files) is listed with its
    problems. For a folder inside a data set, only the cases in this folder are returned.

    Parameters
    ----------
    path
        The folder of a data set, the folder of a case, or a file.
    layout
        The name of a layout, a TOML file that describes one, or ``proposed`` for the layout
        that the file names suggest. With "", the known layouts are tried.

    Raises
    ------
    FormatError
        If `path` contains no case, several layouts match, or a file that the layout needs is
        damaged.
    CaseError
        If a DICOM folder contradicts itself.
    MissingExtraError
        If `path` contains DICOM files and pydicom is not installed.
    """
    path = Path(os.path.abspath(path))  # noqa: PTH100 - a link to a data set stays where it is
    if not path.is_dir():
        return _find_file(path)
    tree = list_tree(path)
    matches = choose_matches(_layouts_for(path, tree, layout), tree)
    is_described = bool(layout) or own_layout_file(path).is_file()
    if matches is not None and (is_described or matches.layout.priority >= 0):
        return _build(matches, tree)
    if is_described:
        raise errors.FormatError(
            f"expected files in {path} that match the layout {layout or own_layout_file(path)}, "
            "but found none: correct the layout, or open the folder without it"
        )
    if matches is None and looks_like_dicom(path, list_names(path)):
        from napari_mamamia.io.exam.phases import find_phases  # 30 modules that few data sets need

        return DataSet(path, LayoutKind.DICOM, (find_phases(path),))
    data_set = _find_part(path, tree)
    if data_set is not None:
        return data_set
    if matches is not None:
        return _build(matches, tree)
    inner = _find_only_folder(path)
    if inner is not None and recognise(inner) is not None:
        return find_data_set(inner)
    raise _unknown(path, tree)


def _build(matches: Matches, tree: Tree) -> DataSet:
    return _report_empty(complete_studies(build_data_set(matches, tree)))


def _find_file(path: Path) -> DataSet:
    """Return a volume file as a case; each volume along a fourth axis is a phase."""
    if not path.exists():
        raise errors.FormatError(f"there is no data set at {path}; check the path")
    if is_mask_file(path):
        raise errors.FormatError(
            f"expected a volume of images, but got the segmentation {path}: open the data set of "
            "its images, or save it there as segmentations/expert/ID with its suffix"
        )
    stem = file_stem(path.name)
    if stem is None or not path.is_file():
        raise errors.FormatError(
            f"expected a volume file ({', '.join(IMAGE_SUFFIXES)}), but found {path}: choose "
            "another file, or the folder of the data set"
        )
    case_id = readable_name(stem)
    if case_id != stem:
        problem = f"the name of {case_id} holds bytes that are not UTF-8: rename its files"
        return DataSet(path, LayoutKind.SINGLE_FILE, (CaseFiles(case_id, (), problems=(problem,)),))
    # napari asks in the GUI thread whether a folder is ours: importing nibabel takes 0.2 s.
    from napari_mamamia.io.data_set.volumes import read_header

    phases = tuple(PhaseSource((path,), volume) for volume in range(read_header(path).n_volumes))
    case = with_times(CaseFiles(case_id, phases), read_case_times(path.parent))
    return DataSet(path, LayoutKind.SINGLE_FILE, (case,))


def _match_outer(path: Path, tree: Tree) -> Matches | None:
    """Return the matches for a folder inside a data set, with paths from the data set's root."""
    layouts = tuple(layout for layout in list_layouts() if layout.priority >= 0)
    for root in path.parents[:_OUTER]:
        inside = path.relative_to(root).as_posix()
        if inside == "." or not tree.files:
            continue
        outer = Tree(root, tuple(f"{inside}/{file}" for file in tree.files))
        matches = choose_matches(layouts, outer)
        if matches is not None:
            matches.root = root
            return matches
    return None


def _find_part(path: Path, tree: Tree) -> DataSet | None:
    """Return the cases in a folder inside a data set, such as the folder of one patient.

    Masks and tables of the data set are read too, if its root is certain, or if they name the case.
    """
    matches = _match_outer(path, tree)
    if matches is None or matches.root is None:
        return None
    root = matches.root
    outer = list_tree(root, _MOST_OUTER)
    if outer.is_whole:
        data_set = build_data_set(match_tree(matches.layout, outer), outer)
        cases = tuple(case for case in data_set.cases if _is_inside(case, path))
        is_anchored = not any(
            exam.pattern.text.startswith("**/") for exam in matches.exams.values()
        )
        if cases and (is_anchored or any(case.masks or case.reference for case in cases)):
            is_one = path.parent.name == "images" and data_set.kind is LayoutKind.MAMA_MIA
            kind = LayoutKind.CASE_FOLDER if is_one else data_set.kind
            return _report_empty(
                complete_studies(
                    replace(data_set, kind=kind, cases=cases, others=(), leftover=(), warnings=())
                )
            )
    inside = path.relative_to(root).as_posix()
    part = Tree(root, tuple(f"{inside}/{file}" for file in tree.files))
    data_set = build_data_set(matches, part)
    warning = (
        f"{path.name} is opened as a part of a data set of the layout {matches.layout.name}: masks "
        "and tables outside of it are not read"
    )
    data_set = replace(data_set, root=path, warnings=(*data_set.warnings, warning))
    return _report_empty(complete_studies(data_set))


def _is_inside(case: CaseFiles, folder: Path) -> bool:
    paths = [path for phase in case.phases for path in phase.files]
    paths += [case.source] if case.source is not None else []
    if not paths:
        return (folder / case.case_id).is_dir()
    return any(path.is_relative_to(folder) for path in paths)


def _unknown(path: Path, tree: Tree) -> errors.FormatError:
    """Return the error for a folder that no known layout matches, with a proposal if possible."""
    try:
        data_set = _propose(tree)
    except errors.MamamiaError:
        inside = [
            name
            for name in sorted(list_names(path))[:_MOST_HINTS]
            if (path / name).is_dir() and recognise(path / name) is not None
        ]
        hint = f"open {path / inside[0]}" if inside else "choose the data set's own folder"
        return errors.UnknownLayoutError(
            f"expected {_LOOKED_FOR}, or a public layout in {path}, but found no case: {hint}, or "
            "describe its layout",
            remedies=(errors.Remedy("layout", ("FILE",)),),
        )
    patients = {case.patient for case in data_set.cases}
    phases = sorted({len(case.phases) for case in data_set.cases})
    counts = name_some([str(number) for number in phases if number])
    of_phases = f"{counts} phases" if counts else "DICOM"
    return errors.ProposedLayoutError(
        f"expected a known layout in {path}, but none fits. The names of the files suggest "
        f"{count_of(len(patients), 'patient')} with {count_of(len(data_set.cases), 'exam')} of "
        f"{of_phases}: check this proposal, then use it, or describe the layout",
        remedies=(
            errors.Remedy(command="layouts", values=(str(path),)),
            errors.Remedy("layout", (PROPOSED,)),
            errors.Remedy("layout", ("FILE",)),
        ),
    )


def _propose(tree: Tree) -> DataSet:
    matches = choose_matches(parse_layouts(propose_layout(tree), PROPOSED), tree)
    if matches is None:
        raise errors.FormatError(f"expected a layout for {tree.root}, but none can be proposed")
    return build_data_set(matches, tree)


def _report_empty(data_set: DataSet) -> DataSet:
    """Return a data set in which cases with empty phase files have a problem for each of them."""
    return replace(data_set, cases=tuple(map(_with_empty, data_set.cases)))


def _with_empty(case: CaseFiles) -> CaseFiles:
    if case.source is not None or case.problems or any(len(p.files) > 1 for p in case.phases):
        return case
    paths = dict.fromkeys(path for phase in case.phases for path in phase.files)
    empty = [path.name for path in paths if path.is_file() and path.stat().st_size == 0]
    if not empty:
        return case
    problem = f"{name_some(empty, 3)} of {case.case_id} has 0 bytes: copy or export it again"
    return replace(case, problems=(problem,))


def _find_only_folder(path: Path) -> Path | None:
    """Return the only subfolder of a folder, such as the study in a patient's folder."""
    try:
        entries = [path / name for name in list_names(path)]
        folders = [entry for entry in entries if entry.is_dir() and not entry.is_symlink()]
    except (errors.FormatError, OSError):
        return None
    return folders[0] if len(folders) == 1 else None


def complete_studies(data_set: DataSet) -> DataSet:
    """Return a data set with the phases and visit dates of its DICOM studies and scenes."""
    if all(case.source is None for case in data_set.cases):
        return data_set
    cases = name_visits_by_date([*map(complete_case, data_set.cases)])
    return replace(data_set, cases=tuple(sorted(cases, key=case_order)))


def _layouts_for(path: Path, tree: Tree, layout: str = "") -> tuple[Layout, ...]:
    if layout.lower() == PROPOSED:
        return parse_layouts(propose_layout(tree), PROPOSED)
    if layout:
        return find_layout(layout)
    described = own_layout_file(path)
    return read_own_layout(described) if described.is_file() else list_layouts()
