"""Find the cases of a folder, first by built-in layouts, then by patterns."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Final

from napari_mamamia.core.errors import (
    FormatError,
    MamamiaError,
    ProposedLayoutError,
    Remedy,
    UnknownLayoutError,
)
from napari_mamamia.core.names import count_of, name_some
from napari_mamamia.core.progress import report_progress
from napari_mamamia.io.data_set import layout as own_finders
from napari_mamamia.io.files.folders import list_names
from napari_mamamia.io.files.foreign import reads
from napari_mamamia.io.files.sources import CaseFiles, DataSet, LayoutKind
from napari_mamamia.io.layouts.cases import build_data_set, case_order
from napari_mamamia.io.layouts.complete import complete_case, name_visits_by_date
from napari_mamamia.io.layouts.known import (
    PROPOSED,
    choose_matches,
    find_layout,
    list_layouts,
    read_own_layout,
)
from napari_mamamia.io.layouts.layout import Layout, parse_layouts
from napari_mamamia.io.layouts.pattern import is_volume_path
from napari_mamamia.io.layouts.propose import propose_layout
from napari_mamamia.io.layouts.tree import Tree, list_tree

_OUTER: Final = 3
"""Number of folders above a folder that may be the data set's root."""
_GLANCE: Final = 2000
"""Number of files listed to recognise a folder (our choice); a file dialog must not wait."""


def own_layout_file(root: Path) -> Path:
    """Return the path of a folder's layout description, next to the folder."""
    return root.with_name(f"{root.name}.layout.toml")


def recognise(path: Path) -> LayoutKind | None:
    """Return the layout of a folder or file, judged by its names alone, or None.

    Never raises and reads no volume, so it can be called with any path.
    """
    kind = own_finders.recognise(path)
    if kind is not None or not path.is_dir():
        return kind
    try:
        tree = list_tree(path, _GLANCE)
        is_known = bool(choose_matches(_layouts_for(path, tree), tree) or _find_part(path, tree))
    except (MamamiaError, OSError):
        is_known = own_layout_file(path).is_file()
    if is_known:
        return LayoutKind.PATTERN
    inner = _find_only_folder(path)
    return None if inner is None else recognise(inner)


@reads("a data set", "check the folder that the message names")
def find_data_set(path: Path, layout: str = "") -> DataSet:
    """Return the cases of a folder or file, in natural order of their ids.

    A case that cannot be opened as it is (a phase missing, two files for one phase) is listed with
    its problems.

    Parameters
    ----------
    path
        The folder of a data set, the folder of a case, or a file.
    layout
        The name of a layout, a TOML file that describes one, or ``proposed`` for the layout that
        the names of the files suggest; "" finds a known layout.

    Raises
    ------
    FormatError
        If `path` holds no case, several layouts fit, or a file of the layout is damaged.
    CaseError
        If a DICOM folder contradicts itself.
    MissingExtraError
        If it holds DICOM and pydicom is not installed.
    """
    path = Path(os.path.abspath(path))  # noqa: PTH100 - a link to a data set stays where it is
    is_described = bool(layout) or own_layout_file(path).is_file()
    kind = own_finders.recognise(path)
    if kind is LayoutKind.NNUNET_RAW and (path / "dataset.json").is_file() and not is_described:
        layout = "nnunet"  # its channels need not be phases
    elif not is_described and kind is not None:
        return _report_empty(_report_leftover(own_finders.find_data_set(path)))
    if not path.is_dir():
        return own_finders.find_data_set(path)
    tree = list_tree(path)
    matches = choose_matches(_layouts_for(path, tree, layout), tree)
    if matches is not None:
        return _report_empty(complete_studies(build_data_set(matches, tree)))
    if is_described:
        raise FormatError(
            f"expected files in {path} as the layout {layout or own_layout_file(path)} describes "
            "them, but none fits: correct the layout, or open the folder without it"
        )
    data_set = _find_part(path, tree)
    if data_set is not None:
        return _report_empty(complete_studies(data_set))
    inner = _find_only_folder(path)
    if inner is not None and recognise(inner) is not None:
        return find_data_set(inner)
    raise _unknown(path, tree)


def _find_part(path: Path, tree: Tree) -> DataSet | None:
    """Return the cases of a folder inside a data set, such as the folder of one patient."""
    for root in path.parents[:_OUTER]:
        inside = path.relative_to(root).as_posix()
        outer = Tree(root, tuple(f"{inside}/{file}" for file in tree.files))
        matches = choose_matches(list_layouts(), outer) if inside != "." and tree.files else None
        if matches is not None:
            warning = (
                f"{path.name} is opened as a part of a data set of the layout "
                f"{matches.layout.name}: masks and tables outside of it are not read"
            )
            data_set = build_data_set(matches, outer)
            return replace(data_set, root=path, warnings=(*data_set.warnings, warning))
    return None


def _unknown(path: Path, tree: Tree) -> FormatError:
    """Return the error of a folder that no known layout fits, with a proposal if there is one."""
    try:
        own_finders.find_data_set(path)  # which raises, and names the expected files
    except UnknownLayoutError as error:
        try:
            data_set = _propose(tree)
        except MamamiaError:
            return error
        patients = {case.patient for case in data_set.cases}
        phases = sorted({len(case.phases) for case in data_set.cases})
        counts = name_some([str(number) for number in phases if number])
        of_phases = f"{counts} phases" if counts else "DICOM"
        return ProposedLayoutError(
            f"expected a known layout in {path}, but none fits. The names of the files suggest "
            f"{count_of(len(patients), 'patient')} with {count_of(len(data_set.cases), 'exam')} of "
            f"{of_phases}: check this proposal, then use it, or describe the layout",
            remedies=(Remedy("layout", (PROPOSED,)), Remedy("layout", ("FILE",))),
        )
    except MamamiaError as error:
        return FormatError(str(error))
    return FormatError(
        f"expected a data set at {path}, but it changed while it was read: try again"
    )


def _propose(tree: Tree) -> DataSet:
    matches = choose_matches(parse_layouts(propose_layout(tree), PROPOSED), tree)
    if matches is None:
        raise FormatError(f"expected a layout for {tree.root}, but none can be proposed")
    return build_data_set(matches, tree)


def _report_leftover(data_set: DataSet) -> DataSet:
    """Return a data set with the volume files that belong to none of its cases."""
    if data_set.kind not in (LayoutKind.MAMA_MIA, LayoutKind.NNUNET_RAW):
        return data_set
    used = {path for case in data_set.cases for phase in case.phases for path in phase.files}
    used |= {path for case in data_set.cases for path in (case.reference, case.automatic) if path}
    root = data_set.root
    volumes = (root / path for path in list_tree(root).files if is_volume_path(path))
    leftover = tuple(sorted(path for path in volumes if path not in used))
    if not leftover:
        return data_set
    names = [path.relative_to(root).as_posix() for path in leftover]
    warning = f"{count_of(len(names), 'volume file')} belong to no case: {name_some(names, 5)}"
    return replace(data_set, leftover=leftover, warnings=(*data_set.warnings, warning))


def _report_empty(data_set: DataSet) -> DataSet:
    """Return a data set whose cases have a problem for each phase file of 0 bytes."""
    return replace(data_set, cases=tuple(map(_with_empty, data_set.cases)))


def _with_empty(case: CaseFiles) -> CaseFiles:
    if case.problems or case.source is not None or any(len(p.files) > 1 for p in case.phases):
        return case
    paths = dict.fromkeys(path for phase in case.phases for path in phase.files)
    empty = [path.name for path in paths if path.is_file() and path.stat().st_size == 0]
    if not empty:
        return case
    problem = f"{name_some(empty, 3)} of {case.case_id} has 0 bytes: copy or export it again"
    return replace(case, problems=(problem,))


def _find_only_folder(path: Path) -> Path | None:
    """Return the only folder in a folder, such as the study in a patient's folder."""
    try:
        entries = [path / name for name in list_names(path)]
        folders = [entry for entry in entries if entry.is_dir() and not entry.is_symlink()]
    except (FormatError, OSError):
        return None
    return folders[0] if len(folders) == 1 else None


def complete_studies(data_set: DataSet) -> DataSet:
    """Return a data set whose DICOM studies and scenes have phases, reading headers."""
    pending = [case for case in data_set.cases if case.source is not None]
    if not pending:
        return data_set
    cases = []
    for index, case in enumerate(data_set.cases):
        report_progress(index, len(data_set.cases), f"Reading headers of {case.case_id}")
        cases.append(complete_case(case))
    return replace(data_set, cases=tuple(sorted(name_visits_by_date(cases), key=case_order)))


def _layouts_for(path: Path, tree: Tree, layout: str = "") -> tuple[Layout, ...]:
    if layout.lower() == PROPOSED:
        return parse_layouts(propose_layout(tree), PROPOSED)
    if layout:
        return find_layout(layout)
    described = own_layout_file(path)
    return read_own_layout(described) if described.is_file() else list_layouts()
