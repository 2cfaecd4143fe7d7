"""Propose a layout for a folder that no known layout fits, from its file names."""

import os
import re
from collections import Counter
from collections.abc import Iterable
from typing import Final

from napari_mamamia.core.errors import FormatError
from napari_mamamia.io.layouts.tree import Tree
from napari_mamamia.io.volumes.formats import mask_stem

_MASK_WORDS: Final = re.compile(r"(?:^|[^a-z])(seg|mask|label|gt|lesion|tumou?r|roi|pred)", re.I)
_OTHER_WORDS: Final = re.compile(
    r"(?:^|[^a-z])(sub|subtraction|t2w?|adc|dwi|flair|stir|mip|loc)(?=$|[^a-z-])", re.I
)
_DATES: Final = (
    (re.compile(r"\d{4}-\d{2}-\d{2}"), "%Y-%m-%d"),
    (re.compile(r"(?:19|20)\d{6}"), "%Y%m%d"),
    (re.compile(r"\d{2}-\d{2}-\d{4}"), "%m-%d-%Y"),
)
_SIDE: Final = re.compile(r"left|right", re.I)
_NUMBER: Final = re.compile(r"(.*?)(\d+)$", re.S)
_WORD: Final = re.compile(r"(.*?)(pre|post)$", re.I | re.S)
_DIGITS: Final = re.compile(r"\d{2,}(?![^{]*\})")
_SEPARATORS: Final = "_-. "


def propose_layout(tree: Tree, name: str = "mine") -> str:
    """Return the TOML of the best layout for the names in a folder, for correction by the user.

    Images are files whose names end with a number, or contain pre or post. If a folder has several
    series of such files, each series is a patient, otherwise the folder is one. Masks and other
    series are recognised by words in their names.

    Raises
    ------
    FormatError
        If there is no volume file that may be a phase.
    """
    stems = [stem for path in tree.files if (stem := _stem_path(path)) is not None]
    numbered = set(find_numbered(stems))
    others = [stem for stem in stems if stem not in numbered and _OTHER_WORDS.search(stem)]
    masks = [stem for stem in stems if _MASK_WORDS.search(stem) and stem not in set(others)]
    images = sorted(set(stems) - set(masks) - set(others))
    rules, patients = _propose_images(images)
    if not rules:
        raise FormatError(
            f"expected volume files (such as .nii.gz, .nrrd, .mha) in {tree.root} whose names end "
            "with a number of their phase, or with pre and post, but found none: choose another "
            "folder, or import DICOM"
        )
    lines = [f"[{name}]", "image = [", *rules, "]"]
    mask_rules = _propose_masks(masks, patients)
    if mask_rules:
        lines += ["mask = [", *mask_rules, "]"]
    words = sorted({match[1].lower() for stem in others if (match := _OTHER_WORDS.search(stem))})
    if words:
        lines += ["other = [", *(f'    {{path = "**/*{w}*", role = "{w}"}},' for w in words), "]"]
    return "\n".join(lines) + "\n"


def find_numbered(stems: Iterable[str]) -> list[str]:
    """Return the names t0, t1, t2, ...: with t0 or t3 in a series, t2 is a time and not T2.

    Examples
    --------
    >>> find_numbered(["a/x_t0", "a/x_t1", "a/x_t2", "b/T1", "b/T2"])
    ['a/x_t0', 'a/x_t1', 'a/x_t2']
    """
    series: dict[str, list[str]] = {}
    for stem in stems:
        match = _NUMBER.fullmatch(stem)
        if match is not None and match[1].lower().endswith("t"):
            series.setdefault(match[1], []).append(stem)
    return [
        stem
        for head, names in series.items()
        for stem in names
        if {f"{head}0", f"{head}00", f"{head}3", f"{head}03"} & set(names)
    ]


def _stem_path(path: str) -> str | None:
    head, slash, name = path.rpartition("/")
    stem = None if name.lower().endswith(".dcm") else mask_stem(name)
    return None if stem is None else f"{head}{slash}{stem}"


def _propose_images(paths: Iterable[str]) -> tuple[list[str], set[str]]:
    """Return the rules for images, the most frequent first, and the ids of patients."""
    by_folder: dict[str, list[tuple[str, str]]] = {}
    for path in paths:
        folder, _, name = path.rpartition("/")
        match = _NUMBER.fullmatch(name) or _WORD.fullmatch(name)
        if match is not None:
            by_folder.setdefault(folder, []).append((match[1], match[2]))
    rules: Counter[str] = Counter()
    patients: set[str] = set()
    tails = [tail for files in by_folder.values() for _, tail in files]
    lowest = min((int(tail) for tail in tails if tail.isdigit()), default=0)
    for folder, files in by_folder.items():
        if any(not tail.isdigit() for _, tail in files):
            files = [file for file in files if not file[1].isdigit() or _is_post(file[0])]
        heads = {head for head, tail in files if tail.isdigit()}
        is_flat = len(heads) > 1 or not folder
        ending = _common_ending(heads) if is_flat else ""
        where, patient = (_mark_dates(folder), "") if is_flat else _mark_folders(folder)
        for head, tail in files:
            own = head[: len(head) - len(ending)] if is_flat else patient
            patients.add(own)
            start = f"{where}/" if where else ""
            text = f"{{patient}}{ending}" if is_flat else _mark_name(head, patient)
            rules[f'path = "{start}{_phase_rule(text, tail, lowest)}'] += 1
    most = max(rules.values(), default=0)
    return [f"    {{{rule}}}," for rule, n in rules.most_common() if n * 4 >= most], patients


def _phase_rule(text: str, tail: str, lowest: int) -> str:
    """Return the phase part of an image rule: a field in the name, or a fixed phase."""
    if not tail.isdigit():
        return f'{text}{tail}", phase = {0 if tail.lower() == "pre" else 1}'
    first = "" if _is_post(text) or lowest == 0 else f", first = {lowest}"
    return f'{text}{{phase:n}}"{first}'


def _is_post(text: str) -> bool:
    return text.lower().rstrip(_SEPARATORS).endswith("post")


def _common_ending(heads: Iterable[str]) -> str:
    """Return the common ending of some texts, from a separator on."""
    turned = [head[::-1] for head in heads]
    ending = os.path.commonprefix(turned)[::-1]  # noqa: RUF071 - characters are meant
    while ending and ending[0] not in _SEPARATORS:
        ending = ending[1:]
    return ending


def _mark_folders(folder: str) -> tuple[str, str]:
    """Return a folder's path with fields, and the name of the folder that is the patient.

    Dates are visits, left and right are sides, the deepest other folder is the patient.
    """
    parts, patient = folder.split("/"), ""
    for place in range(len(parts) - 1, -1, -1):
        field = _find_field(parts[place])
        if field:
            parts[place] = field
        elif not patient:
            patient, parts[place] = parts[place], "{patient}"
        else:
            parts[place] = "*"
    return "/".join(parts), patient


def _mark_dates(folder: str) -> str:
    return "/".join(_find_field(part) or part for part in folder.split("/")) if folder else ""


def _find_field(part: str) -> str:
    for regex, codes in _DATES:
        if regex.fullmatch(part):
            return f"{{visit:{codes}}}"
    return "{side:left|right}" if _SIDE.fullmatch(part) else ""


def _mark_name(name: str, patient: str) -> str:
    """Return a file's name with the patient's id and long numbers replaced."""
    if patient and patient.lower() in name.lower():
        place = name.lower().index(patient.lower())
        name = f"{name[:place]}{{patient}}{name[place + len(patient) :]}"
    return _DIGITS.sub("*", name)


def _propose_masks(paths: Iterable[str], patients: set[str]) -> list[str]:
    """Return the rules for masks whose path names a patient of the images."""
    spelled = {patient.lower(): patient for patient in patients}
    rules: Counter[str] = Counter()
    for path in paths:
        folder, slash, name = path.rpartition("/")
        parts = ["{patient}" if part.lower() in spelled else part for part in folder.split("/")]
        ids = [patient for patient in patients if patient and patient.lower() in name.lower()]
        if ids:
            name = _mark_name(name, max(ids, key=len))
        elif "{patient}" in parts:
            name = _DIGITS.sub("*", name)
        else:
            continue
        rules["/".join(_find_field(part) or part for part in parts) + slash + name] += 1
    return [
        f'    {{path = "{rule}", name = "{_mask_name(rule)}"}},' for rule, _ in rules.most_common()
    ]


def _mask_name(rule: str) -> str:
    """Return a name for the masks of a rule: the deepest folder common to all of them."""
    shared = [part for part in rule.split("/")[:-1] if "{" not in part]
    return shared[-1] if shared else "mask"
