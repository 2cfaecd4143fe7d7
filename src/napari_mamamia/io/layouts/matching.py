"""Match the paths in a folder to the phases and masks of exams by a layout.

Only names are used; no file is opened.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from napari_mamamia.core.names import name_some
from napari_mamamia.io.layouts.layout import (
    ImageKind,
    ImageRule,
    Layout,
    MaskRule,
    OtherRule,
)
from napari_mamamia.io.layouts.pattern import MILLISECONDS, PathPattern, is_volume_path
from napari_mamamia.io.layouts.tree import Tree
from napari_mamamia.io.volumes.formats import file_stem

_DICOM_DEPTH: Final = 4
_IDENTITY: Final = ("patient", "visit", "side", "study")
_PHASE: Final = re.compile(r".+_\d{4}", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ExamKey:
    """Key of an exam: patient, visit, side and study in lower case, with "" for unknown fields."""

    patient: str = ""
    visit: str = ""
    side: str = ""
    study: str = ""

    def fits(self, other: "ExamKey") -> bool:
        """Return whether a file with this key may belong to the exam `other`.

        All fields that are known for the file must be equal.
        """
        pairs = zip(self, other, strict=True)
        return all(mine in ("", theirs) for mine, theirs in pairs)

    def __iter__(self) -> Iterator[str]:
        return iter((self.patient, self.visit, self.side, self.study))


@dataclass(frozen=True, slots=True)
class PhasePath:
    """The path of one phase or of all phases, with its order, and the time in its name.

    `order` sorts the phases, and `time_s` is in seconds. `series` is the text of the field
    "series", which distinguishes the series of one exam.
    """

    path: str
    kind: ImageKind
    order: float
    time_s: float | None = None
    series: str = ""


@dataclass(frozen=True, slots=True)
class MaskPath:
    """The path of a mask, with its rule, its name, and the exam that the path names."""

    path: str
    rule: MaskRule
    name: str
    key: ExamKey


@dataclass(slots=True)
class ExamPaths:
    """The paths of one exam, with the fields in their original spelling."""

    fields: dict[str, str]
    pattern: PathPattern
    first: int
    phases: list[PhasePath] = field(default_factory=list)
    masks: list[MaskPath] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Matches:
    """The result of matching a layout to the paths in a folder.

    Attributes
    ----------
    exams
        The paths of each exam, by the exam's key.
    others
        The role of each path that is known not to be a phase.
    leftover
        Volume files that match no pattern.
    lost_masks
        Masks that belong to no exam, or to several.
    refused
        Paths that cannot be read as images, with the reason.
    explained
        The paths that match some pattern of the layout.
    unordered
        Patients whose file names do not state the phase.
    mask_folders
        Folders that contain a mask for each case, with their rules.
    root
        The root of the data set, if only a folder inside it was opened.
    """

    layout: Layout
    exams: dict[ExamKey, ExamPaths] = field(default_factory=dict)
    others: dict[str, str] = field(default_factory=dict)
    leftover: list[str] = field(default_factory=list)
    lost_masks: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    explained: set[str] = field(default_factory=set)
    unordered: list[str] = field(default_factory=list)
    mask_folders: dict[str, MaskRule] = field(default_factory=dict)
    root: Path | None = None


def match_tree(layout: Layout, tree: Tree) -> Matches:
    """Return the phases and masks that a layout matches in a folder, by exam."""
    matches = Matches(layout)
    masks: list[MaskPath] = []
    explained = _match_folders(matches, masks, tree) if _has_folders(layout) else set()
    matches.mask_folders = _find_mask_folders(layout, tree)
    explained |= matches.mask_folders.keys()
    for path in tree.files:
        if explained and any(_parents(path, explained)):
            matches.explained.add(path)
        else:
            _match_file(matches, masks, path)
    if matches.exams:
        _add_case_folders(matches, tree)
    _give_masks(matches, masks)
    return matches


def _find_mask_folders(layout: Layout, tree: Tree) -> dict[str, MaskRule]:
    rules = [rule for rule in layout.masks if rule.is_folder]
    return {
        folder: rule
        for folder in (tree.subfolders if rules else ())
        for rule in rules
        if rule.pattern.match_folder(folder) is not None
    }


def _add_case_folders(matches: Matches, tree: Tree) -> None:
    """Add cases for folders without phases, and report files that name a different case."""
    pattern = matches.layout.case_folder
    if pattern is None:
        return
    folders = {*tree.subfolders, *tree.empty_folders, *tree.unreadable}
    for folder in folders:
        fields = pattern.match_folder(folder)
        if fields is None:
            continue
        key = make_key(matches.layout, fields)
        exam = matches.exams.setdefault(key, ExamPaths(fields, matches.layout.images[0].pattern, 0))
        patient = fields.get("patient", "")
        if folder in tree.unreadable:
            exam.problems.append(
                f"the name of {patient} holds bytes that are not UTF-8: rename its files"
            )
            continue
        foreign = [
            name
            for name in sorted(tree.folders.get(folder, ()))
            if f"{folder}/{name}" not in matches.explained
            and _PHASE.fullmatch(file_stem(name) or "")
        ]
        if foreign:
            exam.problems.append(
                f"expected only phases of {patient} in {tree.root / folder}, but other files name "
                f"another case ({name_some(foreign, 3)}): move or rename"
            )
        elif not exam.phases:
            exam.problems.append(
                f"no phase of {patient} was found in {tree.root / folder}; add files named "
                f"{patient}_0000.nii.gz, {patient}_0001.nii.gz, ..., or rename existing ones"
            )


def make_key(layout: Layout, fields: Mapping[str, str]) -> ExamKey:
    """Return the key of the exam that the fields of a path name."""
    values = (rename_field(layout, name, fields.get(name, "") or "") for name in _IDENTITY)
    return ExamKey(*(value.casefold() for value in values))


def rename_field(layout: Layout, name: str, text: str) -> str:
    """Return the text of a field after applying the layout's words and replacements."""
    text = dict(layout.words).get(text, text)
    for field_name, old, new in layout.rename:
        if field_name == name:
            text = text.replace(old, new)
    return text


def _has_folders(layout: Layout) -> bool:
    rules: Iterable[ImageRule | MaskRule] = (*layout.images, *layout.masks)
    return any(rule.kind is ImageKind.DICOM for rule in rules)


def _parents(path: str, folders: Iterable[str] | set[str]) -> Iterator[bool]:
    folder = path.rpartition("/")[0]
    while folder:
        if folder in folders:
            yield True
        folder = folder.rpartition("/")[0]


def _match_folders(matches: Matches, masks: list[MaskPath], tree: Tree) -> set[str]:
    """Match folders of DICOM files; return the folders whose files are then matched."""
    explained: set[str] = set()
    for folder in sorted(tree.subfolders):
        role = _find_role(matches.layout, folder, is_folder=True)
        mask = _find_mask(matches.layout, folder, is_folder=True)
        if role:
            matches.others[folder] = role
        if mask is not None and folder in tree.folders:
            masks.append(mask)
        is_image = _match_study(matches, tree, folder)
        if role or mask is not None or is_image:
            explained.add(folder)
    return explained


def _match_study(matches: Matches, tree: Tree, folder: str) -> bool:
    for rule in matches.layout.images:
        fields = rule.pattern.match_folder(folder) if rule.kind is ImageKind.DICOM else None
        if fields is not None and _holds(rule, folder, tree):
            _add_phase(matches, rule, fields, PhasePath(folder, rule.kind, 0.0))
            exam = matches.exams[make_key(matches.layout, fields)]
            exam.problems += _find_missing_folders(rule, folder, tree)
            return True
    return False


def _find_missing_folders(rule: ImageRule, folder: str, tree: Tree) -> list[str]:
    """Return problems for a missing required folder, and for missing numbered phase folders."""
    inside = tree.subfolders[folder]
    problems = []
    if rule.needs is not None and all(rule.needs.match_folder(name) is None for name in inside):
        problems.append(
            f"expected a folder {rule.needs.text} in {folder}, but it is missing: add it"
        )
    if rule.holds is not None and "phase" in rule.holds.kinds:
        matched = filter(None, map(rule.holds.match_folder, inside))
        numbers = {int(fields["phase"]) for fields in matched}
        missing = sorted(set(range(1, max(numbers, default=0))) - numbers)
        if missing:
            names = name_some([rule.holds.text.replace("{phase:n}", str(n)) for n in missing])
            problems.append(f"expected {names} in {folder}, but it is missing: add it")
    return problems


def _find_role(layout: Layout, path: str, *, is_folder: bool) -> str:
    """Return the role of a path that is not a phase, or "" if the role is unknown."""
    for rule in layout.others:
        if (rule.kind is ImageKind.DICOM) is is_folder and _fields_of(rule, path) is not None:
            return rule.role
    return ""


def _find_mask(layout: Layout, path: str, *, is_folder: bool) -> MaskPath | None:
    for rule in layout.masks:
        if rule.is_folder:
            continue
        fields = _fields_of(rule, path) if (rule.kind is ImageKind.DICOM) is is_folder else None
        if fields is not None:
            name = rule.name.format_map(fields) if rule.name else fields.get("name", "")
            return MaskPath(path, rule, name, make_key(layout, fields))
    return None


def _fields_of(rule: MaskRule | OtherRule, path: str) -> dict[str, str] | None:
    is_folder = rule.kind is ImageKind.DICOM
    return rule.pattern.match_folder(path) if is_folder else rule.pattern.match(path)


def _holds(rule: ImageRule, folder: str, tree: Tree) -> bool:
    """Return whether a folder contains DICOM files, or a folder that the rule requires."""
    inside = tree.subfolders[folder]
    if rule.holds is not None:
        return any(rule.holds.match_folder(name) is not None for name in inside)
    return _has_dicom(folder, tree, _DICOM_DEPTH)


def _has_dicom(folder: str, tree: Tree, depth: int) -> bool:
    """Return whether a folder contains DICOM files, down to a limited depth."""
    if any(looks_like_dicom(name) for name in tree.folders.get(folder, ())[:3]):
        return True
    inside = tree.subfolders[folder] if depth else ()
    return any(_has_dicom(f"{folder}/{name}", tree, depth - 1) for name in inside)


def looks_like_dicom(name: str) -> bool:
    """Return whether a file name is possible for DICOM, judged by its suffix."""
    return name.lower().endswith((".dcm", ".ima")) or "." not in name


def _match_file(matches: Matches, masks: list[MaskPath], path: str) -> None:
    layout = matches.layout
    reasons = [why for pattern, why in layout.refused if pattern.match_folder(path) is not None]
    if reasons:
        matches.refused[path] = reasons[0]
    elif any(pattern.match(path) is not None for pattern in layout.ignored):
        matches.explained.add(path)
    elif not is_volume_path(path):
        _match_scene(matches, path)
    elif role := _find_role(layout, path, is_folder=False):
        matches.others[path] = role
        matches.explained.add(path)
    elif (mask := _find_mask(layout, path, is_folder=False)) is not None:
        masks.append(mask)
    elif not _match_image(matches, path):
        matches.leftover.append(path)


def _match_image(matches: Matches, path: str) -> bool:
    if file_stem(path.rpartition("/")[2]) is None:
        return False
    for rule in matches.layout.images:
        if rule.kind in (ImageKind.VOLUME, ImageKind.FRAMES):
            fields = rule.pattern.match(path)
            if fields is not None:
                _add_phase(matches, rule, fields, _phase_path(rule, fields, path))
                return True
    return False


def _match_scene(matches: Matches, path: str) -> None:
    for rule in matches.layout.images:
        fields = rule.pattern.match_folder(path) if rule.kind is ImageKind.SCENE else None
        if fields is not None:
            _add_phase(matches, rule, fields, PhasePath(path, rule.kind, 0.0))
            return


def _phase_path(rule: ImageRule, fields: Mapping[str, str], path: str) -> PhasePath:
    unit_s = 0.001 if rule.pattern.kinds.get("time") == MILLISECONDS else 1.0
    time_s = float(fields["time"]) * unit_s if fields.get("time") else None
    if rule.phase is not None:
        order = float(rule.phase)
    elif fields.get("phase"):
        key = rule.pattern.sort_key("phase", fields["phase"])[0]
        order = float(key) if isinstance(key, int | float) else 0.0
    else:
        order = time_s or 0.0
    return PhasePath(path, rule.kind, order, time_s, fields.get("series") or "")


def _add_phase(matches: Matches, rule: ImageRule, fields: dict[str, str], phase: PhasePath) -> None:
    key = make_key(matches.layout, fields)
    if key not in matches.exams:
        matches.exams[key] = ExamPaths(fields, rule.pattern, rule.first)
    exam = matches.exams[key]
    exam.first = min(exam.first, rule.first)
    exam.phases.append(phase)
    matches.explained.add(phase.path)


def _give_masks(matches: Matches, masks: list[MaskPath]) -> None:
    """Assign each mask to an exam if only one exam fits."""
    by_patient: dict[str, list[tuple[ExamKey, ExamPaths]]] = {}
    for key, exam in matches.exams.items():
        by_patient.setdefault(key.patient, []).append((key, exam))
    for mask in masks:
        near = by_patient.get(mask.key.patient, ()) if mask.key.patient else matches.exams.items()
        exact = matches.exams.get(mask.key)
        fitting = [exact] if exact else [exam for key, exam in near if mask.key.fits(key)]
        if len(fitting) == 1:
            fitting[0].masks.append(mask)
            matches.explained.add(mask.path)
        else:
            matches.lost_masks.append(mask.path)
