"""Match the cases listed in a JSON file, as written by MONAI, to phases and masks."""

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any, Final

from napari_mamamia.core.errors import FormatError
from napari_mamamia.io.files.json_text import read_json
from napari_mamamia.io.layouts import matching
from napari_mamamia.io.layouts.layout import ImageKind, Layout, ListRule, MaskRule
from napari_mamamia.io.layouts.pattern import PathPattern, is_volume_path
from napari_mamamia.io.layouts.propose import is_no_patient
from napari_mamamia.io.layouts.tree import Tree
from napari_mamamia.io.volumes.formats import mask_stem

_PRE: Final = re.compile(r"(?:.*[^a-z])?pre(?:[^a-z].*)?", re.IGNORECASE)
_NUMBERED: Final = re.compile(
    r"(?:.*[^a-z0-9])?(?:post|phase|p|dce)?[-_ ]?(\d{1,4})", re.IGNORECASE
)
_TIME: Final = re.compile(r"(?:.*[^a-z0-9])?t(\d{1,3})", re.IGNORECASE)
_POST: Final = re.compile(r"(?:.*[^a-z])?post(?:[^a-z].*)?", re.IGNORECASE)
_NO_PHASES: Final = MappingProxyType(
    {
        "subtraction": r"sub\d*|subtraction\d*|diff\d*",
        "T2": r"t2|t2w|stir|tirm|flair",
        "diffusion": r"adc|dwi",
        "kinetic map": r"pe|ser|ktrans|washin|washout",
        "mask": r"mask|label|seg",
    }
)
"""Words in the file name of an image that is not a phase."""


def match_list(layout: Layout, tree: Tree) -> matching.Matches:
    """Return the exams listed in a layout's JSON file; empty if there is no such file.

    Images of an item are phases if their names state the phase (pre, post1, phase 2, ...). Other
    items are left out with a warning.

    Raises
    ------
    FormatError
        If the file is not a list of cases.
    """
    matches = matching.Matches(layout)
    rule = layout.case_list
    if rule is None:
        return matches
    for path in tree.files:
        if rule.pattern.match_folder(path) is not None:
            _add_items(matches, rule, tree, path)
    if matches.exams:
        matches.leftover = [
            path for path in tree.files if is_volume_path(path) and path not in matches.explained
        ]
    return matches


def _add_items(matches: matching.Matches, rule: ListRule, tree: Tree, path: str) -> None:
    where = tree.root / path
    try:
        content = read_json(where)
    except (OSError, ValueError) as error:
        raise FormatError(f"cannot read the list of cases {where}: {error}") from error
    folder = path.rpartition("/")[0]
    items = [
        (item if isinstance(item, Mapping) else {rule.image: item}, key)
        for key in (rule.items if isinstance(content, dict) else ())
        for item in _as_list(content.get(key))
    ]
    images = [_paths_of(entry.get(rule.image), folder) for entry, _ in items]
    ids = [_find_id(rule, paths) for paths in images]
    if len(set(ids)) < len(ids):  # several items in one folder: each has the name of its file
        ids = [mask_stem(PurePosixPath(paths[0]).name) or "" if paths else "" for paths in images]
    is_mixed = _names_other_images(content)
    for (entry, key), paths, case_id in zip(items, images, ids, strict=True):
        if is_mixed and len(paths) == 1:
            matches.leftover += paths
            matches.unordered.append(case_id)
        elif paths:
            _add_item(matches, rule, tree, entry, key, paths, case_id, folder)


def _names_other_images(content: Any) -> bool:
    """Return whether the volumes in a file are different images, such as T2 and ADC."""
    table = content if isinstance(content, dict) else {}
    names = table.get("channel_names", table.get("modality"))
    return isinstance(names, Mapping) and any(find_role(str(name)) for name in names.values())


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _find_id(rule: ListRule, images: list[str]) -> str:
    if not images:
        return ""
    fields = rule.id_pattern.match(images[0]) or {}
    patient = fields.get("patient", "") or PurePosixPath(images[0]).parent.name
    return (mask_stem(PurePosixPath(images[0]).name) or "") if is_no_patient(patient) else patient


def _add_item(
    matches: matching.Matches,
    rule: ListRule,
    tree: Tree,
    entry: Mapping[str, Any],
    key: str,
    images: list[str],
    case_id: str,
    list_folder: str,
) -> None:
    names = [PurePosixPath(path).name for path in images]
    orders = [0] if len(images) == 1 else order_phases(names)
    if orders is None:
        matches.leftover += images
        matches.unordered.append(case_id)
        return
    split = f"{rule.split} {entry[rule.split]}" if rule.split in entry else key
    fields = {"patient": case_id, "split": split}
    exam = matching.ExamPaths(fields, rule.id_pattern, 0)
    kind = ImageKind.FRAMES if len(images) == 1 else ImageKind.VOLUME
    for path, order in zip(images, orders, strict=True):
        exam.phases.append(matching.PhasePath(path, kind, float(order)))
        matches.explained.add(path)
        if path not in tree.files_set:
            exam.problems.append(f"{path} is listed but missing: add the file")
    exam_key = matching.make_key(matches.layout, fields)
    mask_rule = MaskRule(PathPattern("**/*"), rule.mask, is_reference=True)
    for path in _paths_of(entry.get(rule.mask), list_folder):
        exam.masks.append(matching.MaskPath(path, mask_rule, rule.mask, exam_key))
        matches.explained.add(path)
    if exam_key in matches.exams:
        matches.exams[exam_key].problems.append(
            f"two items in the list are called {case_id}: rename the files of one of them"
        )
    else:
        matches.exams[exam_key] = exam


def _paths_of(value: Any, folder: str) -> list[str]:
    """Return the paths in a value that are relative and inside the root folder."""
    values = value if isinstance(value, list) else [value]
    paths = []
    for text in values:
        if not isinstance(text, str):
            continue
        path = PurePosixPath(folder, text.replace("\\", "/"))
        if not path.is_absolute() and ".." not in path.parts:
            paths.append(str(path))
    return paths


def find_role(name: str) -> str:
    """Return the role of an image that is not a phase, or "" if its name does not state a role."""
    for word in re.split(r"[^a-z0-9]+", name.casefold()):
        for role, spelling in _NO_PHASES.items():
            if re.fullmatch(spelling, word):
                return role
    return ""


def order_phases(names: Sequence[str]) -> list[int] | None:
    """Return the phase number of each file, taken from the names; None if the names lack it.

    Examples
    --------
    >>> order_phases(["pre.nii.gz", "post1.nii.gz", "post2.nii.gz"])
    [0, 1, 2]
    >>> order_phases(["T1.nii.gz", "T2.nii.gz"]) is None
    True
    """
    stems = [mask_stem(name) or name for name in names]
    numbers = [_TIME.fullmatch(stem) for stem in stems]
    counted = [int(number[1]) for number in numbers if number is not None]
    if len(counted) == len(stems) == len(set(counted)) and {0, 3} & set(counted):
        return counted  # t0, t1, t2: times, and no T1 or T2
    orders = [_phase_number(stem) for stem in stems]
    known = [order for order in orders if order is not None]
    return known if len(known) == len(names) == len(set(known)) else None


def _phase_number(stem: str) -> int | None:
    if re.fullmatch(r"(?:.*[^a-z])?t[12]w?", stem, re.IGNORECASE):
        return None
    numbered = _NUMBERED.fullmatch(stem)
    if numbered:
        return int(numbered[1])
    if _PRE.fullmatch(stem):
        return 0
    return 1 if _POST.fullmatch(stem) else None
