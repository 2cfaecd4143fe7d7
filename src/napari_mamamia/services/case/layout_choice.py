"""Propose, preview and save the layout description of a folder."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from napari_mamamia.core.errors import ArgumentError, MamamiaError, SaveConflictError
from napari_mamamia.core.names import name_some
from napari_mamamia.io.files.save import write_text_atomically
from napari_mamamia.io.files.sources import DataSet
from napari_mamamia.io.layouts import known
from napari_mamamia.io.layouts.cases import build_data_set
from napari_mamamia.io.layouts.layout import read_layout_text
from napari_mamamia.io.layouts.propose import propose_layout
from napari_mamamia.io.layouts.tree import list_tree


@dataclass(frozen=True, slots=True)
class LayoutPreview:
    """The cases that a layout finds in a folder, as lines of text, or an `error`.

    `problems` are sentences about cases that cannot be opened and about files that belong to no
    case.
    """

    lines: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    error: str = ""


def propose_for(root: Path, candidates: tuple[str, ...] = ()) -> str:
    """Return a layout for a folder: the first candidate, or a proposal based on the file names.

    Raises
    ------
    FormatError
        If no file can be a phase.
    """
    if candidates and candidates[0] != known.PROPOSED:
        return known.layout_text(candidates[0])
    return propose_layout(list_tree(root))


def preview_layout(root: Path, text: str) -> LayoutPreview:
    """Preview a layout; only file names and the headers of 4-D files are read.

    Parameters
    ----------
    root
        The folder.
    text
        A layout as TOML, or ``layout = "NAME"``.
    """
    try:
        layouts = known.parse_own_layout(text, "the description")
        tree = list_tree(root)
        matches = known.choose_matches(layouts, tree)
        if matches is None:
            return LayoutPreview(error="No file fits this description.")
        return _describe(build_data_set(matches, tree))
    except MamamiaError as error:
        return LayoutPreview(error=str(error))


def _describe(data_set: DataSet) -> LayoutPreview:
    cases = data_set.cases
    patients = {case.patient for case in cases}
    visits = sum(case.visit is not None for case in cases)
    sides = sum(bool(case.side) for case in cases)
    phases = Counter(len(case.phases) for case in cases if case.source is None)
    masks = Counter(mask.name for case in cases for mask in case.masks)
    first = cases[0]
    lines = [
        f"Patients: {len(patients)}   exams: {len(cases)}   with a visit: {visits}   "
        f"with a side: {sides}",
        "Phases: "
        + (", ".join(f"{n} in {count} exams" for n, count in sorted(phases.items())) or "in DICOM"),
        "Masks: " + (", ".join(f"{name} ({n})" for name, n in masks.items()) or "none"),
        f"First exam: {first.case_id}",
        *(
            f"    phase {index}: {phase.files[0].relative_to(data_set.root).as_posix()}"
            for index, phase in enumerate(first.phases[:4])
        ),
    ]
    problems = [problem for case in cases for problem in case.problems]
    if data_set.leftover:
        names = [path.relative_to(data_set.root).as_posix() for path in data_set.leftover]
        problems.append(f"Not assigned: {len(names)} files, such as {name_some(names, 3)}")
    return LayoutPreview(tuple(lines), tuple(problems))


def keep_named_layout(root: Path, layout: str) -> Path:
    """Write a layout file into a data set's folder for future use, and return its path.

    Parameters
    ----------
    root
        The folder of the data set.
    layout
        The name of a layout, or a file that describes a layout.

    Raises
    ------
    ArgumentError
        If `layout` is empty.
    SaveConflictError
        If the data set already has a different layout file.
    """
    if not layout:
        raise ArgumentError("expected the name of a layout to keep, but got none: choose a layout")
    return keep_layout_text(root, propose_for(root, (layout,)))


def keep_layout_text(root: Path, text: str, *, overwrite: bool = False) -> Path:
    """Write a layout text into a data set's folder, and return the file's path."""
    path = known.own_layout_file(root.absolute())
    if path.exists() and read_layout_text(path) == text:
        return path
    if path.exists() and not overwrite:
        raise SaveConflictError(f"a different layout already exists at {path}: remove the file")
    write_text_atomically(path, text, overwrite=overwrite)
    return path
