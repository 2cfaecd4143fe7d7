"""Propose a layout, from the file names, for a folder that no known layout matches.

The part of a name that states the phase is found first (pre, post 2, 3rd pass, 90s, phase_3, or the
last number). Files that differ only in this part form a series. The parts in which series differ
contain the patient, the visit or the side.
"""

import json
import os
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from napari_mamamia.core.errors import FormatError, MamamiaError
from napari_mamamia.io.files.folders import natural_key
from napari_mamamia.io.layouts.matching import looks_like_dicom
from napari_mamamia.io.layouts.pattern import PathPattern
from napari_mamamia.io.layouts.tree import Tree
from napari_mamamia.io.volumes.formats import file_stem, mask_stem

_MASK_WORDS: Final = re.compile(
    r"(?:^|[^a-z])(?:seg|mask|label|gt|lesion|tumou?r|roi|pred|manual|annot|contour)", re.I
)
_OF_MODEL: Final = re.compile(r"pred|auto|output|result|(?<![a-z])(?:ai|model)(?![a-z])", re.I)
"""Pattern for words in a path which show that a model made the mask."""
_OTHER_WORDS: Final = re.compile(
    r"(?:^|[^a-z])(?:mt(?:[01]|on|off)|sub\d*(?!-)|subtr\w*|t2|t2w|t2map|t1map|v?fa\d*|adc|dwi|dti|diff\w*|flair"
    r"|b(?:0|[1-9]0|[1-9]50|[1-9]00|1[0-9]00|2000)|stir|tirm|mip|loc|localizer|scout|ser|pe|ktrans|kep|ve|vp|auc|maps?|bold|asl)"
    r"(?=$|[^a-z0-9])",
    re.I,
)
_TIME_POINTS: Final = re.compile(r"(?<![a-z0-9])t[03](?![a-z0-9])", re.I)
_DATES: Final = (
    (re.compile(r"(?:19|20)\d{2}-\d{1,2}-\d{1,2}"), "%Y-%m-%d"),
    (re.compile(r"(?:19|20)\d{2}_\d{1,2}_\d{1,2}"), "%Y_%m_%d"),
    (re.compile(r"(?:19|20)(?:\d{2})(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])"), "%Y%m%d"),
    (re.compile(r"(?:0?[1-9]|1[0-2])-\d{1,2}-\d{4}"), "%m-%d-%Y"),
    (re.compile(r"(?:19|20)\d{2}"), "%Y"),
)
_SIDE: Final = re.compile(r"(left|right|l|r)(?:[-_ ]?breast)?", re.I)
_SIDES: Final = {"l": "left", "r": "right", "left": "left", "right": "right"}
_VISIT: Final = re.compile(
    r"baseline|(?:pre|post)[-_ ]?(?:nac|nact|op|surgery|surgical|chemo|treatment|therapy|tx)|early"
    r"|mid\w*|inter\w*|late|follow[-_ ]?up\d*|[tv]\d"
    r"|(?:visit|tp|timepoint|week|wk|day|month|session|ses)[-_ ]?\d{1,4}",
    re.I,
)
_WEAK_VISIT: Final = re.compile(r"(?:mri?|scan|exam|study|time|[tvwmd])[-_ ]?\d{1,4}", re.I)
_SPLIT: Final = re.compile(r"train(?:ing)?|val(?:id(?:ation)?)?|test(?:ing)?|images?t[rs]", re.I)
_GENERIC: Final = re.compile(
    r"(?:images?|imgs?|data|raw|original(?:_data)?|dces?|dce-?mri|dyn\w*|nii|nifti|files?|resources?"
    r"|scans?|anat|perf|mri?|breast|volumes?|phases?|processed|preprocessed|registered|t1w?|output"
    r"|derivatives|masks?|labels?|segmentations?)(?:t[rs])?",
    re.I,
)
_MARK: Final = "\0"
_SEPARATORS: Final = "_-. "
_MOST_PHASES: Final = 80
_DEEPEST: Final = 6
"""Number of parts at the end of a path that are searched for the phase."""
_MOST_HEADERS: Final = 400
_MOST_RULES: Final = 100
_MOST_PIECES: Final = 16


def propose_layout(tree: Tree, name: str = "mine") -> str:
    """Return the TOML of the layout that best matches a folder, for the user to correct.

    The headers of a few images are read to find 4-D files.

    Raises
    ------
    FormatError
        If there is no volume file that may be a phase.
    """
    stems = {stem: path for path in tree.files if (stem := _stem_path(path)) is not None}
    studies = [] if stems else _find_studies(tree)
    if studies:
        rules, words = _describe_series(studies, is_4d=False)
        lines = [line for rule in rules for line in rules[rule]]
        return "\n".join([f"[{name}]", *_write_list("image", lines), *_write_words(words)]) + "\n"
    masks = [stem for stem, path in stems.items() if _is_mask(stem, path)]
    others = set(stems) - set(masks)
    has_t2_visit = any(map(_TIME_POINTS.search, stems))
    others = {stem for stem in others if _is_other(stem, has_t2_visit=has_t2_visit)}
    images = set(stems) - set(masks) - others
    series = _find_frames(tree, {stem: stems[stem] for stem in sorted(images)})
    is_4d = bool(series)
    times = set() if is_4d else _find_numbered_times(stems)
    # the words of other images may belong to the names of patients: tried last
    for candidates in () if is_4d else (images | times, images | others):
        series = series or _find_series(sorted(candidates, key=natural_key), masks)
    if not series:
        raise FormatError(
            "expected 4-D files, or several volume files for each patient (such as .nii.gz, "
            ".nrrd, .mha) whose names contain pre and post, a time or a phase number, in "
            f"{tree.root}, but found none: choose another folder, or import DICOM"
        )
    rules, words = _describe_series(series, is_4d=is_4d)
    accepted = [each for each in series if each.rule in rules]
    taken = {file.stem for each in accepted for file in each.files}
    lines = [f"[{name}]", *_write_list("image", [line for rule in rules for line in rules[rule]])]
    lines += _write_list("mask", _name_masks(_generalise(masks, accepted, taken)))
    other_rules = _generalise(sorted(others - times), accepted, taken)
    lines += _write_list(
        "other", [f'    {{path = {_quote(rule)}, role = "no phase"}},' for rule in other_rules]
    )
    return "\n".join([*lines, *_write_words(words)]) + "\n"


def _write_words(words: Sequence[str]) -> list[str]:
    pairs = ", ".join(f'{word} = "{_SIDES[word.lower()]}"' for word in words)
    return [f"words = {{{pairs}}}"] if pairs else []


def _write_list(key: str, lines: Sequence[str]) -> list[str]:
    return [f"{key} = [", *lines, "]"] if lines else []


def is_no_patient(name: str) -> bool:
    """Return whether a folder name is a date, a visit, a side or a general word.

    Examples
    --------
    >>> [is_no_patient(name) for name in ("2020-01-05", "baseline", "left", "images", "MRI1")]
    [True, True, True, True, False]
    """
    return bool(_kind_of([name])) or bool(_GENERIC.fullmatch(name))


@dataclass(frozen=True, slots=True)
class PhaseFile:
    """An image file with the expression in its path that states the phase.

    `rule` is the path with this expression replaced by a field. `phase` is the phase number if the
    expression is not a number.
    """

    stem: str
    rule: str
    order: float
    phase: int | None = None


@dataclass(slots=True)
class Series:
    """Files that differ only in their phase; a mark replaces the phase in `parts`."""

    parts: list[str]
    files: list[PhaseFile]
    fields: dict[str, str]
    rule: str = ""


def _stem_path(path: str) -> str | None:
    head, slash, name = path.rpartition("/")
    stem = None if name.lower().endswith(".dcm") else mask_stem(name)
    return None if stem is None else f"{head}{slash}{stem}"


def _own_text(stem: str) -> str:
    """Return the last two parts of a path, which contain the words that describe the file."""
    return "/".join(stem.split("/")[-2:])


def _is_other(stem: str, *, has_t2_visit: bool) -> bool:
    """Return whether a name states that an image is not a phase.

    With `has_t2_visit`, "T2" is ignored, because it is the name of a visit.
    """
    text = _own_text(stem)
    if has_t2_visit:
        text = re.sub(r"(?<![a-z0-9])t2(?![a-z0-9])", "", text, flags=re.I)
    return bool(_OTHER_WORDS.search(text))


def _is_mask(stem: str, path: str) -> bool:
    return file_stem(path.rpartition("/")[2]) is None or bool(_MASK_WORDS.search(_own_text(stem)))


def _find_numbered_times(stems: Iterable[str]) -> set[str]:
    """Return the names t0, t1, t2, ... in which t2 is a time and not T2 weighting.

    The numbers are times if a series contains t0 or t3.
    """
    series = defaultdict(list)
    for stem in stems:
        match = re.fullmatch(r"(.*(?:^|[^a-z])t)(\d{1,3})", stem, re.I | re.S)
        if match is not None:
            series[match[1]].append(stem)
    return {
        stem
        for head, names in series.items()
        for stem in names
        if {f"{head}{number}" for number in ("0", "00", "000", "3", "03", "003")} & set(names)
    }


# ------------------------------------------------------------------------- series


def _find_studies(tree: Tree) -> list[Series]:
    """Return the folder of each DICOM study, found from the header of one file per folder.

    If studies share a folder, paths cannot distinguish them, and the result is empty.
    """
    folders: dict[str, list[str]] = defaultdict(list)
    for folder, names in list(tree.folders.items())[:_MOST_HEADERS]:
        name = next(filter(looks_like_dicom, names), None)
        uid = _read_study_uid(tree.root / folder / name) if name and folder else ""
        if uid:
            folders[uid].append(folder)
    parents = [os.path.commonpath(inside) for inside in folders.values()]
    is_parted = all(parents) and len(set(parents)) == len(parents)
    if not is_parted or any(
        other.startswith(f"{parent}/") for parent in parents for other in parents
    ):
        return []
    return [
        Series([*parent.split("/"), ""], [PhaseFile(parent, _protect(parent), 0)], {})
        for parent in parents
    ]


def _read_study_uid(file: Path) -> str:
    """Return the StudyInstanceUID of a DICOM file, or "" if the file is not DICOM."""
    try:
        from pydicom import dcmread  # an extra

        header = dcmread(file, stop_before_pixels=True, specific_tags=["StudyInstanceUID"])
    except Exception:  # noqa: BLE001 - any file without a suffix comes here
        return ""
    return str(header.get("StudyInstanceUID", ""))


def _find_frames(tree: Tree, paths: Mapping[str, str]) -> list[Series]:
    """Return the 4-D files, each as a series; empty if none of a few sampled images is 4-D."""
    from napari_mamamia.io.data_set.volumes import read_header  # nibabel takes 0.2 s to import

    def is_4d(stem: str) -> bool:
        try:
            return read_header(tree.root / paths[stem]).n_volumes > 1
        except MamamiaError:
            return False

    stems = list(paths)
    step = max(1, len(stems) // 8)
    if not any(is_4d(stem) for stem in stems[::step]):
        return []
    frames = stems if len(stems) > _MOST_HEADERS else [stem for stem in stems if is_4d(stem)]
    return [Series(stem.split("/"), [PhaseFile(stem, stem, 0)], {}) for stem in frames]


def _find_series(stems: Sequence[str], masks: Sequence[str]) -> list[Series]:
    """Return the series according to the kind of phase expression that explains most files."""
    best: tuple[int, list[Series]] = (0, [])
    outlined = {piece for mask in masks for piece in _list_pieces(mask.rpartition("/")[2])}
    for find in (_find_contrast, _find_enhancement, _find_time, _find_number):
        for depth in range(1, _DEEPEST + 1):
            for is_loose in (False, True):
                series = _group(stems, find, depth, is_loose=is_loose)
                n_files = sum(len(each.files) for each in series if _is_dynamic(each, outlined))
                if n_files > best[0]:
                    best = (n_files, series)
                if n_files == len(stems):
                    return series
    return [each for each in best[1] if _is_dynamic(each, outlined)]


def _group(
    stems: Iterable[str],
    find: Callable[[str], tuple[int, int, str, float, int | None] | None],
    depth: int,
    *,
    is_loose: bool,
) -> list[Series]:
    """Return files grouped into series that differ only in the expression that `find` finds.

    The expression is in the part at `depth` from the end of the path. With `is_loose`, series
    numbers at the start or end of names are ignored.
    """
    series: dict[tuple[str, ...], Series] = {}
    for stem in stems:
        parts = stem.split("/")
        match = find(parts[-depth]) if len(parts) >= depth else None
        if match is None or (depth > 1 and find is _find_number and not _is_named(parts[-depth])):
            continue
        start, end, field, order, phase = match
        head, tail = parts[-depth][:start], parts[-depth][end:]
        marked = [*parts]
        marked[-depth] = f"{head}{_MARK}{tail}"
        if is_loose or depth > 1:
            marked = [*marked[:-depth], *(_loosen(part, find) for part in marked[-depth:])]
        rule = "/".join(_protect(part) for part in marked).replace(_MARK, field)
        each = series.setdefault(tuple(marked), Series(marked, [], {}))
        each.files.append(PhaseFile(stem, rule, order, phase))
    return list(series.values())


def _loosen(
    part: str, find: Callable[[str], tuple[int, int, str, float, int | None] | None]
) -> str:
    """Return a part of a path without series numbers and repeated phase words."""
    match = find(part) if _MARK not in part else None
    if match is not None:
        part = f"{part[: match[0]]}*{part[match[1] :]}"
    part = re.sub(r"^((?:\d{8}[-_. ])?)\d{1,5}(?=[-_. ])", r"\1*", part)
    head, mark, tail = part.partition(_MARK)
    return f"{head}{mark}{re.sub(r'[0-9]+', '*', tail)}" if mark else part


def _is_dynamic(series: Series, outlined: Set[str]) -> bool:
    """Return whether the files may be the phases of one dynamic series."""
    orders = sorted(file.order for file in series.files)
    if not 2 <= len(orders) <= _MOST_PHASES or len(set(orders)) < len(orders):
        return False
    if any("{time" in file.rule for file in series.files):
        return True
    if _is_weighting(series, orders):
        return False
    if orders[0] not in (0, 1) or orders[-1] - orders[0] > len(orders):
        return False
    own = {file.stem.rpartition("/")[2].casefold() for file in series.files}
    return len(own & outlined) < 2  # else the numbers are those of patients


def _is_weighting(series: Series, orders: Sequence[float]) -> bool:
    """Return whether the numbers belong to words such as T1 and T2, b0 and b800, MT0 and MT1."""
    head = next(part for part in reversed(series.parts) if _MARK in part).partition(_MARK)[0]
    match = re.search(r"[a-z]*$", head, re.I)
    word = match[0] if match else ""
    if word.lower() == "t" and set(orders) - {1, 2}:  # T0, T1, T2, ... are times
        return False
    return any(_OTHER_WORDS.fullmatch(f"{word}{order:g}") for order in orders)


_CONTRAST: Final = re.compile(
    r"(?<![a-z])(?:(?P<pre>pre[-_ ]?(?:contrast|con|gd|c)?)(?![a-z])"
    r"|(?P<post>post[-_ ]?(?:contrast|con|gd|c)?[-_ ]?)"
    r"(?P<n>\d{0,3})(?![a-z0-9])"
    r"|(?P<nth>\d{1,2})(?:st|nd|rd|th)(?:[-_ ]?pass)?(?![a-z]))",
    re.I,
)
_ENHANCEMENT: Final = tuple(
    (re.compile(rf"(?<![a-z])(?:c[-+ ]?)?(?:{words})(?![a-z])|c\+(?:{letter})$", re.I), number)
    for number, (words, letter) in enumerate(
        (
            (r"pre(?:[-_ ]?contrast)?|non[-_ ]?contrast|plain|unenhanced", "pre"),
            (r"wash[-_ ]?in|art(?:erial)?(?:[-_ ]?phase)?", "a"),
            (r"wash[-_ ]?out|(?:portal[-_ ]?)?ven(?:ous)?(?:[-_ ]?phase)?|portal|pv", "v"),
            (r"delay(?:ed)?(?:[-_ ]?phase)?|equilibrium", "d|delay"),
            (r"hepatobiliary(?:[-_ ]?phase)?|hbp", "hbp"),
        )
    )
)
"""Words for phases, in chronological order."""
_TIME: Final = re.compile(r"(?<![0-9.])(\d+(?:\.\d+)?)(?=s(?:ec)?(?![a-z0-9]))", re.I)
_NUMBERED: Final = re.compile(
    r"(?:phase|ph|dce|dyn\w*|acq|aqc|p|t|tp|time|frame|vol|volume|run)[-_ ]?", re.I
)


def _find_contrast(part: str) -> tuple[int, int, str, float, int | None] | None:
    for match in _CONTRAST.finditer(part):
        start, end = match.span()
        if match["pre"]:
            text = match["pre"].rstrip(_SEPARATORS)
            return start, start + len(text), text, 0, 0
        if match["nth"]:
            return start, end, "{phase:n}*", int(match["nth"]), None
        if match["n"]:
            return start, end, f"{match['post']}{{phase:n}}", int(match["n"]), None
        text = match[0].rstrip(_SEPARATORS)
        return start, start + len(text), text, 1, 1
    # pre, C1, C2; t1pre, t1c1, t1c2; pre, ce1, ce2
    numbered = re.search(r"(?:(?<![a-z0-9])|(?<=t1))(c|ce|gd|cm)(\d{1,2})$", part, re.I)
    if numbered is not None:
        return *numbered.span(), f"{numbered[1]}{{phase:n}}", int(numbered[2]), None
    return None


def _find_enhancement(part: str) -> tuple[int, int, str, float, int | None] | None:
    for regex, number in _ENHANCEMENT:
        match = regex.search(part)
        if match is not None:
            return *match.span(), match[0], number, number
    return None


def _find_time(part: str) -> tuple[int, int, str, float, int | None] | None:
    matches = list(_TIME.finditer(part))
    if not matches:
        return None
    return *matches[-1].span(1), "{time:x}", float(matches[-1][1]), None


def _find_number(part: str) -> tuple[int, int, str, float, int | None] | None:
    """Return the number after a word such as "phase", otherwise the number at the end."""
    named = [
        match
        for match in re.finditer(r"(?<![a-z])([a-z]+[-_ ]?)(\d{1,4})(?![0-9])", part, re.I)
        if _NUMBERED.fullmatch(match[1])
    ]
    last = re.search(r"(?<![^-_. ])()(\d{1,4})$", part) or re.fullmatch(r"()(\d{1,4})", part)
    ends = [match for match in named if match.end() == len(part)]
    match = last if last and not ends else (named[-1] if named else None)
    match = match or re.search(r"()(\d{1,4})$", part)
    if match is None:
        return None
    return *match.span(2), "{phase:n}", int(match[2]), None


def _is_named(part: str) -> bool:
    """Return whether a number follows a word such as "phase"."""
    match = re.fullmatch(r"(?:.*[^a-z])?([a-z]+[-_ ]?)\d{1,4}", part, re.I)
    return match is not None and bool(_NUMBERED.fullmatch(match[1]))


# ----------------------------------------------------- patients, visits and sides


def _describe_series(
    series: Sequence[Series], *, is_4d: bool
) -> tuple[dict[str, list[str]], list[str]]:
    """Return the image patterns of each accepted rule, and the words for sides.

    Of two rules for the same exams, the rule with more files is accepted.
    """
    by_shape: dict[int, list[Series]] = defaultdict(list)
    for each in series:
        by_shape[len(each.parts)].append(each)
    for same_depth in by_shape.values():
        _find_fields(same_depth, is_4d=is_4d)
    by_rule: dict[str, list[Series]] = defaultdict(list)
    for each in series:
        by_rule[each.rule].append(each)
    order = sorted(by_rule, key=lambda rule: -sum(len(each.files) for each in by_rule[rule]))
    rules: dict[str, list[str]] = {}
    exams: set[tuple[tuple[str, str], ...]] = set()
    for rule in order:
        own = {tuple(sorted(each.fields.items())) for each in by_rule[rule]}
        if not own & exams:
            exams |= own
            rules[rule] = _image_lines(by_rule[rule], is_4d=is_4d)
    sides = {
        text
        for each in series
        if each.rule in rules and (text := each.fields.get("side", "")).lower() in ("l", "r")
    }
    return rules, sorted(sides)


def _image_lines(series: Sequence[Series], *, is_4d: bool) -> list[str]:
    """Return the TOML lines that describe one rule."""
    lines: Counter[str] = Counter()
    files = [file for each in series for file in each.files]
    has_fixed = any(file.phase is not None for file in files)
    lowest = 0 if has_fixed else int(min(file.order for file in files))
    fixed = sorted({file.phase for file in files if file.phase is not None})
    numbers = {phase: fixed[0] + index for index, phase in enumerate(fixed)}
    for each in series:
        for file in each.files:
            path = _quote(_fill(file.rule, each))
            if not each.parts[-1]:
                lines[f'    {{path = {path}, kind = "dicom"}},'] += 1
            elif is_4d:
                lines[f"    {{path = {path}, frames = true}},"] += 1
            elif file.phase is not None:
                lines[f"    {{path = {path}, phase = {numbers[file.phase]}}},"] += 1
            elif lowest and "{phase" in file.rule:
                lines[f"    {{path = {path}, first = {lowest}}},"] += 1
            else:
                lines[f"    {{path = {path}}},"] += 1
    return list(lines)


def _find_fields(series: Sequence[Series], *, is_4d: bool) -> None:
    """Find the patient, visit and side in series of equal depth, and the rules for them."""
    depth = len(series[0].parts) - 1
    columns = [[each.parts[place] for each in series] for place in range(depth)]
    kinds = [
        "" if any(_MARK in value for value in values) else _kind_of(values) for values in columns
    ]
    fields = {place: kind for place, kind in enumerate(kinds) if kind}
    ids = [
        place
        for place, values in enumerate(columns)
        if not kinds[place] and len(set(values)) > 1 and not any(map(_has_mark, values))
    ]
    ids = _drop_dependent(columns, ids)
    is_flat = not ids and len({_plain(each.parts[-1]) for each in series}) > 1
    if ids:
        fields |= _name_ids(columns, ids)
    elif not is_flat:
        _find_single_patient(columns, fields)
    for each in series:
        each.fields = {
            name: _strip_words(name, each.parts[place]) for place, name in fields.items()
        }
    if is_flat:
        _find_flat_fields(series)
    _split_patients(series)
    for each in series:
        each.rule = _fill("/".join(_protect(part) for part in each.parts), each)


def _strip_words(name: str, text: str) -> str:
    """Return the value of a field without its prefix or suffix, such as sub- in BIDS."""
    side = _SIDE.fullmatch(text) if name == "side" else None
    return side[1] if side else re.sub(r"^(?:sub|ses)-", "", text)


def _split_patients(series: Sequence[Series]) -> None:
    """Remove a visit or a side that repeats at the end of patients' names."""
    patients = [each.fields.get("patient", "") for each in series]
    parts = [re.fullmatch(r"(.+)[-_. ]([^-_. ]+)", patient) for patient in patients]
    pairs = [(match[1], match[2]) for match in parts if match]
    if len(pairs) < len(patients):
        return
    kind = _kind_of([text for _, text in pairs])
    is_repeated = len({patient for patient, _ in pairs}) < len(set(patients))
    if is_repeated and kind in ("visit", "side") and not any(kind in e.fields for e in series):
        for each, (patient, text) in zip(series, pairs, strict=True):
            each.fields |= {"patient": patient, kind: text}


def _has_mark(part: str) -> bool:
    return _MARK in part


def _name_ids(columns: Sequence[Sequence[str]], ids: Sequence[int]) -> dict[int, str]:
    """Choose the column that contains the patient: the last, unless its names repeat in others."""
    inner = ids[-1]
    if len(ids) == 1:
        return {inner: "patient"}
    outer = ids[-2]
    pairs = set(zip(columns[outer], columns[inner], strict=True))
    is_longer = all(_holds(visit.casefold(), patient.casefold()) for patient, visit in pairs)
    if is_longer or len(pairs) > len(set(columns[inner])):  # the same names in several folders
        return {inner: "visit", outer: "patient"}
    return {inner: "patient", outer: "site"}


def _kind_of(values: Sequence[str]) -> str:
    """Return the field for a column of folder names, or "" if it may be the patient."""
    if any(all(regex.fullmatch(value) for value in values) for regex, _ in _DATES):
        return "visit"
    if all(map(_SIDE.fullmatch, values)):
        return "side"
    if all(_VISIT.fullmatch(value) for value in values):
        return "visit"
    if len(set(values)) > 1 and all(_SPLIT.fullmatch(value) for value in values):
        return "split"
    return ""


def _drop_dependent(columns: Sequence[Sequence[str]], ids: Sequence[int]) -> list[int]:
    """Return the columns whose text does not depend on that of another column."""
    kept = list(ids)
    for place in ids:
        for other in kept:
            is_longer = all(
                _holds(longer.casefold(), shorter.casefold())
                for shorter, longer in zip(columns[other], columns[place], strict=True)
            )
            if (
                other != place
                and is_longer
                and len(set(columns[place])) == len(set(columns[other]))
            ):
                kept.remove(place)
                break
    return kept


def _find_single_patient(columns: Sequence[Sequence[str]], fields: dict[int, str]) -> None:
    """Use the deepest folder with a name that is not a general word as the patient."""
    for place in reversed(range(len(columns))):
        value = columns[place][0]
        if place not in fields and _MARK not in value and not _GENERIC.fullmatch(value):
            fields[place] = "patient"
            return
    weak = [place for place, name in fields.items() if name == "visit"]
    if len(weak) == 1 and all(_WEAK_VISIT.fullmatch(value) for value in columns[weak[0]]):
        fields[weak[0]] = "patient"


def _find_flat_fields(series: Sequence[Series]) -> None:
    """Find the fields in file names: the patient first, then visits and sides."""
    names = [_plain(each.parts[-1]) for each in series]
    ending = _common_ending(names)
    leading = _common_ending([name[::-1] for name in names])[::-1]
    start = len(leading) if _GENERIC.fullmatch(leading.strip(_SEPARATORS)) else 0
    bare = [name[start : len(name) - len(ending)] for name in names]
    tokens = [re.split(r"[-_. ]", name) for name in bare]
    found: list[str] = []
    while min(map(len, tokens)) - len(found) > 1:
        kind = _kind_of([row[-1 - len(found)] for row in tokens])
        if not kind:
            break
        found.append(kind)
    for each, name, row in zip(series, bare, tokens, strict=True):
        end = len(name) - sum(len(text) + 1 for text in row[len(row) - len(found) :])
        each.fields["patient"] = name[:end]
        for place, kind in enumerate(found):
            each.fields.setdefault(kind, row[-1 - place])


def _plain(name: str) -> str:
    return name.partition(_MARK)[0].rstrip(_SEPARATORS) if _MARK in name else name


def _common_ending(names: Sequence[str]) -> str:
    """Return the common ending of some strings, starting at a separator."""
    turned = [name[::-1] for name in names]
    ending = os.path.commonprefix(turned)[::-1]  # noqa: RUF071 - characters are meant
    while ending and ending[0] not in _SEPARATORS:
        ending = ending[1:]
    return ending


# -------------------------------------------------------------------------- rules


def _holds(text: str, word: str) -> bool:
    """Return whether a string contains a word that is not part of a longer word or number."""
    return bool(word) and bool(re.search(rf"(?<![^\W_]){re.escape(word)}(?![^\W_])", text))


def _list_pieces(text: str) -> set[str]:
    """Return the parts of a name between separators, and their combinations, in lower case."""
    places = [0, *(match.end() for match in re.finditer(r"[\W_]", text)), len(text) + 1]
    places = places[:_MOST_PIECES]
    return {
        text[start : end - 1].casefold()
        for index, start in enumerate(places)
        for end in places[index + 1 :]
    }


def _field_of(name: str, text: str) -> str:
    """Return the pattern field for a value."""
    if name == "visit":
        codes = next((codes for regex, codes in _DATES if regex.fullmatch(text)), "")
        return f"{{visit:{codes}}}" if codes else "{visit}"
    if name == "side":
        return "{side:L|R}" if len(text) == 1 else "{side:left|right}"
    return f"{{{name}}}"


def _fill(path: str, series: Series) -> str:
    """Return a path with a series' values replaced by fields."""
    values = sorted(series.fields.items(), key=lambda item: -len(item[1]))
    parts = []
    for part in path.split("/"):
        pieces = re.split(r"(\{[^{}]*\})", part)
        for name, text in values:
            pieces = [
                piece
                for old in pieces
                for piece in (
                    [old] if old.startswith("{") else _replace(old, text, _field_of(name, text))
                )
            ]
        parts.append(
            "".join(
                piece if piece.startswith("{") else re.sub(r"\d{2,}", "*", piece)
                for piece in pieces
            )
        )
    return re.sub(r"\*{2,}", "*", "/".join(parts))


def _replace(text: str, word: str, field: str) -> list[str]:
    """Return a string in which a field replaces a word."""
    if text.casefold() == word.casefold():
        return [field]
    match = re.search(rf"(?<![^\W_]){re.escape(word)}(?![^\W_])", text, re.I) if word else None
    return [text] if match is None else [text[: match.start()], field, text[match.end() :]]


def _protect(text: str) -> str:
    """Return a string without the characters that have a meaning in patterns."""
    return re.sub(r"[{}]", "*", text)


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _generalise(stems: Iterable[str], series: Sequence[Series], images: Iterable[str]) -> list[str]:
    """Return the rules for mask files that name the patient of a series, most frequent first.

    A rule that would match one of the images is left out.
    """
    by_patient: dict[str, list[Series]] = defaultdict(list)
    for each in series:
        by_patient[each.fields.get("patient", "").casefold()].append(each)
    rules: Counter[str] = Counter()
    for stem in stems:
        plain = stem.casefold()
        pieces = {piece for part in plain.split("/") for piece in _list_pieces(part)}
        named_patients = (pieces | {""}) & by_patient.keys()
        if not named_patients:
            continue
        exams = by_patient[max(named_patients, key=len)]
        best = max(exams, key=lambda each: _count_fields(plain, each))
        named = {name: text for name, text in best.fields.items() if _holds(plain, text.casefold())}
        rules[_fill(_protect(stem), Series(best.parts, [], named))] += 1
    return [
        rule
        for rule, _ in rules.most_common(_MOST_RULES)
        if not any(map(PathPattern(rule).match_folder, images))
    ]


def _count_fields(plain: str, series: Series) -> int:
    return sum(_holds(plain, text.casefold()) for text in series.fields.values())


def _name_masks(rules: Sequence[str]) -> list[str]:
    """Return the TOML lines for masks, each with a name taken from its own words.

    If there is only one kind of tumour mask, it is proposed as the reference, unless its name
    states that a model made it.
    """
    lines: list[str] = []
    names: set[str] = set()
    tumours: list[int] = []
    for rule in rules:
        words = [re.sub(r"\{[^{}]*\}|\*", "", part).strip(_SEPARATORS) for part in rule.split("/")]
        name = next((word for word in reversed(words) if word), "mask")
        while name in names:
            name += " 2"
        names.add(name)
        is_breast = re.search(r"breast", name, re.I) and not re.search(
            r"tumou?r|lesion", name, re.I
        )
        region = ', what = "breast"' if is_breast else ""
        if not is_breast:
            tumours.append(len(lines))
        lines.append(f"    {{path = {_quote(rule)}, name = {_quote(name)}{region}}},")
    if len(tumours) == 1 and not _OF_MODEL.search(rules[tumours[0]]):
        (index,) = tumours
        lines[index] = lines[index].replace("},", ", reference = true},")
        lines.append("    # Remove `reference = true` if these masks were made by a model.")
    return lines
