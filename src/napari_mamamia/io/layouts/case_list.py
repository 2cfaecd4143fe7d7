"""Match the cases that a JSON file lists, as MONAI writes it, to phases and masks."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Final

from napari_mamamia.core.errors import FormatError
from napari_mamamia.io.files.json_text import read_json
from napari_mamamia.io.layouts.layout import ImageKind, Layout, ListRule, MaskRule
from napari_mamamia.io.layouts.matching import (
    ExamPaths,
    MaskPath,
    Matches,
    PhasePath,
    make_key,
)
from napari_mamamia.io.layouts.pattern import PathPattern, is_volume_path
from napari_mamamia.io.layouts.tree import Tree
from napari_mamamia.io.volumes.formats import mask_stem

_PRE: Final = re.compile(r"(?:.*[^a-z])?pre(?:[^a-z].*)?", re.IGNORECASE)
_NUMBERED: Final = re.compile(
    r"(?:.*[^a-z0-9])?(?:post|phase|p|dce)?[-_ ]?(\d{1,4})", re.IGNORECASE
)
_TIME: Final = re.compile(r"(?:.*[^a-z0-9])?t(\d{1,3})", re.IGNORECASE)
_POST: Final = re.compile(r"(?:.*[^a-z])?post(?:[^a-z].*)?", re.IGNORECASE)


def match_list(layout: Layout, tree: Tree) -> Matches:
    """Return the exams that a layout's JSON file lists; empty if there is no such file.

    Images of an item are phases if their names state the phase (pre, post1, phase 2, ...). Other
    items are left out with a warning.

    Raises
    ------
    FormatError
        If the file is no such list.
    """
    matches = Matches(layout)
    rule = layout.case_list
    if rule is None:
        return matches
    for path in tree.files:
        if rule.pattern.match_folder(path) is not None:
            _add_items(matches, rule, tree.root, path)
    if matches.exams:
        matches.leftover = [
            path for path in tree.files if is_volume_path(path) and path not in matches.explained
        ]
    return matches


def _add_items(matches: Matches, rule: ListRule, root: Path, path: str) -> None:
    try:
        content = read_json(root / path)
    except (OSError, ValueError) as error:
        raise FormatError(f"cannot read the list of cases {root / path}: {error}") from error
    for key in rule.items if isinstance(content, dict) else ():
        items = content.get(key, [])
        for item in items if isinstance(items, list) else []:
            _add_item(matches, rule, item, key, path.rpartition("/")[0])


def _add_item(matches: Matches, rule: ListRule, item: Any, key: str, folder: str) -> None:
    entry = item if isinstance(item, Mapping) else {rule.image: item}
    images = _paths_of(entry.get(rule.image), folder)
    if not images:
        return
    fields = rule.id_pattern.match(images[0]) or {"patient": PurePosixPath(images[0]).parent.name}
    orders = order_phases([PurePosixPath(path).name for path in images])
    if orders is None:
        matches.leftover += images
        matches.unordered.append(fields.get("patient", ""))
        return
    fields["split"] = f"{rule.split} {entry[rule.split]}" if rule.split in entry else key
    exam = ExamPaths(fields, rule.id_pattern, 0)
    for path, order in zip(images, orders, strict=True):
        exam.phases.append(PhasePath(path, ImageKind.VOLUME, float(order)))
        matches.explained.add(path)
    exam_key = make_key(matches.layout, fields)
    mask_rule = MaskRule(PathPattern("**/*"), rule.mask, is_reference=True)
    for path in _paths_of(entry.get(rule.mask), folder):
        exam.masks.append(MaskPath(path, mask_rule, rule.mask, exam_key))
        matches.explained.add(path)
    if exam_key in matches.exams:
        matches.exams[exam_key].phases += exam.phases
    else:
        matches.exams[exam_key] = exam


def _paths_of(value: Any, folder: str) -> list[str]:
    """Return the paths below the root in a value; absolute and outside paths are left out."""
    values = value if isinstance(value, list) else [value]
    paths = []
    for text in values:
        if not isinstance(text, str):
            continue
        path = PurePosixPath(folder, text.replace("\\", "/"))
        if not path.is_absolute() and ".." not in path.parts:
            paths.append(str(path))
    return paths


def order_phases(names: Sequence[str]) -> list[int] | None:
    """Return the phase number of each file from its name, or None if the names lack it.

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
