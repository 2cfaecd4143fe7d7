"""The known layouts: those of this package and those of installed packages."""

import re
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Final

from napari_mamamia.core.errors import FormatError, LayoutChoiceError, Remedy
from napari_mamamia.core.names import name_some
from napari_mamamia.core.plugins import leave_out, load_group
from napari_mamamia.io.layouts.case_list import match_list
from napari_mamamia.io.layouts.layout import (
    ImageKind,
    Layout,
    parse_layouts,
    read_layout_text,
    read_layouts,
)
from napari_mamamia.io.layouts.matching import Matches, match_tree
from napari_mamamia.io.layouts.propose import is_no_patient
from napari_mamamia.io.layouts.tree import Tree

GROUP: Final = "napari_mamamia.layouts"
"""The entry-point group for layouts, each of which is TOML text."""
PROPOSED: Final = "proposed"
"""Name that selects the layout suggested by a folder's file names."""
_NAMED: Final = re.compile(r'layout\s*=\s*"([a-z0-9_-]+)"')
_SAMPLE: Final = 400
_MOST_PHASES: Final = 500
_OUTER: Final = 6
"""Number of parent folders of a mask that may be its data set (our choice)."""


@cache
def list_layouts() -> tuple[Layout, ...]:
    """Return the layouts of this software and then of installed packages, in search order.

    A plug-in is left out if its layout cannot be read or has a name that is already in use.
    """
    text = files("napari_mamamia.io.layouts").joinpath("known.toml").read_text("utf-8")
    layouts = list(parse_layouts(text, "known.toml"))
    for plugin, toml in load_group(GROUP, str).items():
        try:
            added = parse_layouts(toml, f"plug-in {plugin}")
        except FormatError as error:
            leave_out(GROUP, plugin, str(error))
            continue
        names = {layout.name for layout in layouts}
        if taken := [layout.name for layout in added if layout.name in names]:
            leave_out(GROUP, plugin, f"the name of the layout {taken[0]} is taken")
        else:
            layouts += added
    return tuple(layouts)


def find_layout(name_or_path: str) -> tuple[Layout, ...]:
    """Return the layout with this name, or the layouts in a TOML file.

    Raises
    ------
    FormatError
        If no layout has this name, or the file cannot be read.
    """
    by_name = {layout.name: layout for layout in list_layouts()}
    if name_or_path.lower() in by_name:
        return (by_name[name_or_path.lower()],)
    path = Path(name_or_path)
    if path.suffix.lower() == ".toml" or path.is_file():
        return read_layouts(path)
    raise FormatError(
        f"expected a layout or a .toml file that describes one, but found {name_or_path!r}: the "
        f"known layouts are {', '.join(sorted(by_name))}"
    )


def own_layout_file(root: Path) -> Path:
    """Return the path of the layout file that describes a folder and lies next to it."""
    return root.with_name(f"{root.name}.layout.toml")


def find_own_label(mask: Path) -> int | None:
    """Return the tumour's label in a mask, as stated in the layout file next to the data set.

    The result is None if there is no such file, or if it does not state a value for this mask.

    Raises
    ------
    FormatError
        If the layout file cannot be read.
    """
    mask = mask.absolute()
    for root in mask.parents[:_OUTER]:
        file = own_layout_file(root) if root.name else None
        if file is not None and file.is_file():
            path = mask.relative_to(root).as_posix()
            rules = [rule for layout in read_own_layout(file) for rule in layout.masks]
            return next((rule.label for rule in rules if rule.fits(path)), None)
    return None


def read_own_layout(path: Path) -> tuple[Layout, ...]:
    """Return the layouts in a data set's own layout file.

    Raises
    ------
    FormatError
        If the file cannot be read, or names no known layout.
    """
    return parse_own_layout(read_layout_text(path), str(path))


def parse_own_layout(text: str, source: str) -> tuple[Layout, ...]:
    """Return the layouts in the text of a data set's own layout file."""
    named = _NAMED.fullmatch(text.strip())
    return find_layout(named[1]) if named else parse_layouts(text, source)


def layout_text(name_or_path: str) -> str:
    """Return the text that selects a layout in a data set's own layout file.

    Raises
    ------
    FormatError
        If there is no such layout, or the file cannot be read.
    """
    find_layout(name_or_path)
    path = Path(name_or_path)
    is_file = path.suffix.lower() == ".toml"
    return read_layout_text(path) if is_file else f'layout = "{name_or_path.lower()}"\n'


def choose_matches(layouts: tuple[Layout, ...], tree: Tree) -> Matches | None:
    """Return the matches of the layout that fits a folder best, or None.

    Layouts with the highest priority are tried first. A layout fits better than another if it
    matches all files of the other and more. If two layouts match the same files, the one with more
    specific patterns is used.

    Raises
    ------
    LayoutChoiceError
        If several layouts fit equally well; the remedies name them.
    """
    if len(layouts) == 1:
        only = _match(layouts[0], tree)
        return only if only.exams else None
    problems: list[FormatError] = []
    for priority in sorted({layout.priority for layout in layouts}, reverse=True):
        candidates = [
            matches
            for layout in layouts
            if layout.priority == priority and (matches := _match_if_fit(layout, tree, problems))
        ]
        if candidates:
            return _choose_best(candidates, tree)
    if problems:
        raise problems[0]
    return None


def _match_if_fit(layout: Layout, tree: Tree, problems: list[FormatError]) -> Matches | None:
    """Return the matches of a layout if it fits a folder, otherwise None."""
    if not _fits_sample(layout, tree):
        return None
    try:
        matches = _match(layout, tree)
    except FormatError as error:  # another layout may fit
        problems.append(error)
        return None
    is_series = layout.is_certain or (_has_series(matches) and _has_patients(matches))
    return matches if matches.exams and is_series else None


def _choose_best(candidates: list[Matches], tree: Tree) -> Matches:
    best = [
        matches
        for matches in candidates
        if not any(_is_better(other, matches) for other in candidates if other is not matches)
    ]
    if len(best) > 1:
        names = [matches.layout.name for matches in best]
        raise LayoutChoiceError(
            f"expected only one layout to fit {tree.root}, but {name_some(names)} fit: "
            + "; ".join(_describe(matches) for matches in best)
            + ". Choose one of them",
            remedies=tuple(Remedy("layout", (name,)) for name in names),
        )
    return best[0]


def _fits_sample(layout: Layout, tree: Tree) -> bool:
    """Return whether a layout matches any of a few hundred paths from all parts of a folder."""
    if len(tree.files) <= _SAMPLE:
        return True
    step = len(tree.files) // _SAMPLE
    sample = Tree(tree.root, tree.files[::step])
    return layout.case_list is not None or bool(match_tree(layout, sample).exams)


def _has_series(matches: Matches) -> bool:
    """Return whether an exam may be a dynamic series, with several phases or a 4-D file.

    Patient numbers, such as those in P10001 and P10002, are too high for phase numbers.
    """
    return any(
        phases[0].kind is not ImageKind.VOLUME
        or (len(phases) > 1 and all(p.time_s is not None or p.order < _MOST_PHASES for p in phases))
        for phases in (exam.phases for exam in matches.exams.values())
    )


def _has_patients(matches: Matches) -> bool:
    """Return whether no folder matched as a patient is a visit, a side or a general word."""
    return not any(
        is_no_patient(exam.fields.get("patient") or "patient") for exam in matches.exams.values()
    )


def _match(layout: Layout, tree: Tree) -> Matches:
    return match_tree(layout, tree) if layout.images else match_list(layout, tree)


def _is_better(matches: Matches, other: Matches) -> bool:
    if matches.explained != other.explained:
        return matches.explained > other.explained
    return _count_literals(matches.layout) > _count_literals(other.layout)


def _count_literals(layout: Layout) -> int:
    """Return the smallest number of literal characters in the image patterns of a layout."""
    return min((rule.pattern.n_literals for rule in layout.images), default=0)


def _describe(matches: Matches) -> str:
    phases = sum(len(exam.phases) for exam in matches.exams.values())
    return f"{matches.layout.name} gives {len(matches.exams)} exams with {phases} phases"
