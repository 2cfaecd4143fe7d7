"""Build cases from the files that a layout matched: phases, times, masks, table rows, problems."""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from napari_mamamia.core.errors import FormatError, MamamiaError
from napari_mamamia.core.names import name_some
from napari_mamamia.io.data_set.mask_files import list_masks
from napari_mamamia.io.data_set.patient_info import (
    CLINICAL_NAMES,
    SPLITS_NAME,
    TIMES_FILE,
    read_times_file,
)
from napari_mamamia.io.dicom.elements import read_time_s
from napari_mamamia.io.files.file_names import case_key, safe_case_id
from napari_mamamia.io.files.folders import natural_key
from napari_mamamia.io.files.json_text import read_json
from napari_mamamia.io.files.sources import (
    CaseFiles,
    DataSet,
    LayoutKind,
    NamedMask,
    PhaseSource,
    Visit,
)
from napari_mamamia.io.layouts.case_list import find_role, order_phases
from napari_mamamia.io.layouts.label_names import list_tumours, parse_label_names
from napari_mamamia.io.layouts.layout import ImageKind, Layout, SplitRule, TableRule
from napari_mamamia.io.layouts.manifest import list_missing_series
from napari_mamamia.io.layouts.matching import (
    ExamPaths,
    MaskPath,
    Matches,
    PhasePath,
    make_key,
    rename_field,
)
from napari_mamamia.io.layouts.pattern import is_volume_path
from napari_mamamia.io.layouts.tree import Tree
from napari_mamamia.io.tables.cells import is_missing
from napari_mamamia.io.tables.headers import Column
from napari_mamamia.io.tables.spreadsheets import TABLES
from napari_mamamia.io.tables.table import read_table
from napari_mamamia.io.tables.text_rows import read_text
from napari_mamamia.io.volumes.formats import mask_stem, suffix_of

_CLOCK: Final = re.compile(r"(\d{1,2}):(\d{2}):(\d{2}(?:\.\d+)?)")
_LONGEST_S: Final = 2 * 3600.0
"""Longest time in s between the first and the last phase of an exam (our choice)."""
_HALF_DAY_S: Final = 12 * 3600.0
_BASELINE_WORDS: Final = MappingProxyType(
    {
        **{"baseline": 0, "pre": 0, "prenac": 0, "pretreatment": 0},
        **{"early": 1, "mid": 2, "interim": 2, "interregimen": 2, "late": 3, "presurgery": 3},
        **{"post": 4, "postnac": 4, "followup": 5},
    }
)
"""Words for visits, as used in clinical trials, in chronological order."""
_WEEKS: Final = re.compile(r"(week|wk|day|month)(\d+)")
"""Pattern for a visit named by the time since the first visit, such as "week 12"."""
_WHOLE_EXAMS: Final = (ImageKind.DICOM, ImageKind.SCENE)
_KINDS: Final = MappingProxyType(
    {"mama-mia": LayoutKind.MAMA_MIA, "case-folder": LayoutKind.CASE_FOLDER}
)
"""Kinds of data sets that need special treatment, by the name of their layout."""


@dataclass(frozen=True, slots=True)
class LayoutTable:
    """The rows of a layout's table, by id in lower case; each row maps columns to text."""

    rows: Mapping[str, Mapping[str, str]]
    path: Path


def build_data_set(matches: Matches, tree: Tree) -> DataSet:
    """Return the data set that a layout matched in a folder.

    A case that cannot be opened (because a phase is missing, or has two files) is listed with its
    problems. Damage to other files causes a warning.

    Parameters
    ----------
    matches
        The files in `tree` that the layout matched.
    tree
        The paths of the data set's folder.
    """
    layout, root = matches.layout, tree.root
    warnings = list(layout.notes)
    labels = _part_channels(matches, tree, warnings)
    _part_series(matches, warnings)
    _add_listed_masks(matches, tree)
    times = read_case_times(root)
    infos = _list_infos(layout, tree)
    tables = _read_tables(layout, tree, warnings)
    splits = _read_splits(layout, tree, warnings)
    names = _read_job_names(layout, tree, warnings)
    cases = []
    for exam in matches.exams.values():
        case = _build_case(layout, tree, exam, labels)
        case = _with_own_files(case, times, infos)
        case = _with_row(case, layout, exam, tables, warnings)
        if layout.axes:
            case = _warn_of_axes(case, case.columns, layout.table)
        split = rename_field(layout, "split", exam.fields.get("split", ""))
        case = _with_splits(replace(case, split=split), exam, splits)
        if names and len(matches.exams) == 1:
            case = replace(case, case_id=safe_case_id(names[0]), patient=names[0])
        cases.append(case)
    cases = _join_spellings(cases, warnings)
    cases = _number_visits(layout, tree, matches, cases, warnings)
    cases = _mark_twins(cases, root)
    warnings += _describe_lost(matches, tree)
    warnings += list_missing_series(tree)
    warnings += _find_parted_persons(cases)
    kind = kind_of(layout)
    tables_there = (root / name for name in CLINICAL_NAMES)
    return DataSet(
        root,
        kind,
        tuple(sorted(cases, key=case_order)),
        clinical=next((path for path in tables_there if path.is_file()), None),
        splits=root / SPLITS_NAME if SPLITS_NAME in tree.files_set else None,
        layout=layout.name if kind is LayoutKind.PATTERN else "",
        others=tuple((root / path, role) for path, role in sorted(matches.others.items())),
        leftover=tuple(root / path for path in sorted(matches.leftover, key=natural_key)),
        refused=tuple((root / path, reason) for path, reason in sorted(matches.refused.items())),
        warnings=tuple(dict.fromkeys(warnings)),
    )


def kind_of(layout: Layout) -> LayoutKind:
    """Return the kind of data set that a layout describes."""
    return _KINDS.get(layout.name, LayoutKind.PATTERN)


def _add_listed_masks(matches: Matches, tree: Tree) -> None:
    """Assign masks to exams from folders that contain a mask for each case."""
    used: set[str] = set()
    for folder, rule in matches.mask_folders.items():
        named = rule.pattern.match_folder(folder) or {}
        exams = {
            case_key(exam.fields["patient"]): exam
            for exam in matches.exams.values()
            if all(exam.fields.get(name) == text for name, text in named.items())
        }
        ids = [exam.fields["patient"] for exam in exams.values()]
        listing = list_masks(tree.root / folder, ids).by_key()
        for key, exam in exams.items():
            if key in listing.problems:
                role = "reference" if rule.is_reference else rule.name
                exam.problems.append(
                    f"the {role} mask of {exam.fields['patient']}: {listing.problems[key]}"
                )
            elif key in listing.others:
                exam.warnings.append(f"{rule.name} mask: {listing.others[key]}")
            elif key in listing.masks:
                path = listing.masks[key].relative_to(tree.root).as_posix()
                exam.masks.append(
                    MaskPath(path, rule, rule.name, make_key(matches.layout, exam.fields))
                )
                used.add(path)
    matches.leftover += [
        path
        for path in (tree.files if matches.mask_folders else ())
        if path not in used
        and is_volume_path(path)
        and any(path.startswith(f"{folder}/") for folder in matches.mask_folders)
    ]


def read_case_times(root: Path) -> Mapping[str, tuple[float, ...]]:
    """Return the times in the data set's ``times.json`` by case key; empty if there is no file."""
    path = root / TIMES_FILE
    times = read_times_file(path) if path.is_file() else {}
    return {case_key(case_id): times_s for case_id, times_s in times.items()}


def _list_infos(layout: Layout, tree: Tree) -> Mapping[str, list[Path]]:
    """Return the JSON file of each patient."""
    infos: dict[str, list[Path]] = {}
    for path in tree.files if layout.info is not None else ():
        fields = layout.info.match_folder(path) if layout.info else None
        if fields is not None:
            infos.setdefault(case_key(fields["patient"]), []).append(tree.root / path)
    return infos


def _with_own_files(
    case: CaseFiles,
    times: Mapping[str, tuple[float, ...]],
    infos: Mapping[str, list[Path]],
) -> CaseFiles:
    """Return a case with its patient information and with its times from ``times.json``."""
    key = case_key(case.case_id)
    # False sorts first: a file in the case's own letter case precedes its variants.
    info = sorted(infos.get(key, ()), key=lambda file: file.stem != case.case_id)
    case = replace(case, info=info[0] if info else None)
    return with_times(case, times)


def with_times(case: CaseFiles, times: Mapping[str, tuple[float, ...]]) -> CaseFiles:
    """Return a case with its times from ``times.json``, or a problem if their number is wrong."""
    times_s = times.get(case_key(case.case_id))
    if times_s is None:
        return case
    if len(times_s) != len(case.phases):
        return _with_problem(
            case,
            f"{TIMES_FILE} gives {len(times_s)} times for the {len(case.phases)} phases of "
            f"{case.case_id}: correct the file",
        )
    timed = zip(case.phases, times_s, strict=True)
    return replace(case, phases=tuple(replace(phase, time_s=time) for phase, time in timed))


def case_order(case: CaseFiles) -> tuple[Any, ...]:
    """Return a sort key for a case: patient, visit in chronological order, side."""
    index = -1 if case.visit is None or case.visit.index is None else case.visit.index
    visit = case.visit.name if case.visit else ""
    return (natural_key(case.patient), index, natural_key(visit), case.side)


def _build_case(
    layout: Layout, tree: Tree, exam: ExamPaths, labels: Mapping[str, int]
) -> CaseFiles:
    root = tree.root
    patient, visit, side = (
        rename_field(layout, name, exam.fields.get(name, "") or "")
        for name in ("patient", "visit", "side")
    )
    patient = patient or root.name
    fields = exam.fields | {"patient": patient, "visit": visit, "side": side}
    case_id = (
        layout.case_template.format_map(fields)
        if layout.case_template
        else "_".join(filter(None, (patient, visit, side)))
    )
    masks = tuple(
        named
        for mask in sorted(exam.masks, key=lambda mask: mask.path)
        for named in _name_masks(_mask_file(root / mask.path), mask, labels)
    )
    case = CaseFiles(
        safe_case_id(case_id),
        (),
        patient=patient,
        visit=Visit(visit) if visit else None,
        side=side.lower(),
        masks=masks,
        columns={
            name: text
            for name, text in exam.fields.items()
            if text and name not in ("patient", "visit", "side", "phase", "time", "name")
        },
    )
    case = replace(case, problems=tuple(exam.problems), warnings=tuple(exam.warnings))
    case = _with_mask_names(case)
    case = _with_reference(case, exam, root)
    sources = [phase for phase in exam.phases if phase.kind in _WHOLE_EXAMS]
    if sources:
        return _with_source(case, root, sources)
    frames = [phase for phase in exam.phases if phase.kind is ImageKind.FRAMES]
    if frames:
        return _with_frames(case, layout, tree, frames, exam.phases)
    return _with_phases(case, layout, tree, exam)


def _with_mask_names(case: CaseFiles) -> CaseFiles:
    """Return a case with unique mask names, and a warning if a number was added to a name."""
    counts: Counter[str] = Counter()
    masks = []
    for mask in case.masks:
        counts[mask.name] += 1
        number = counts[mask.name]
        masks.append(replace(mask, name=f"{mask.name} {number}") if number > 1 else mask)
    doubled = [name for name, count in counts.items() if count > 1]
    if not doubled:
        return case
    warning = f"{case.case_id} has several masks called {name_some(doubled)}: they are numbered"
    return replace(case, masks=tuple(masks), warnings=(*case.warnings, warning))


def _mask_file(path: Path) -> Path:
    """Return the only file in a folder with a DICOM SEG; return a file unchanged."""
    if not path.is_dir():
        return path
    files = [file for file in path.iterdir() if not file.name.startswith(".")]
    return files[0] if len(files) == 1 else path


def _name_masks(path: Path, mask: MaskPath, labels: Mapping[str, int]) -> list[NamedMask]:
    """Return a mask under its name, or each segment in its file under the segment's name.

    `labels` maps the names of a data set's labels to their values, if there are several.
    """
    rule = mask.rule
    if labels and rule.label is None:
        stem = mask.name or "mask"
        tumours = list_tumours(labels)
        return [
            NamedMask(
                stem if tumours == [name] else f"{stem} {name}",
                path,
                value,
                "tumour" if name in tumours or not tumours else name,
            )
            for name, value in labels.items()
        ]
    if not rule.name and not mask.name and path.name.lower().endswith(".seg.nrrd"):
        # napari asks in its window's thread whether a folder is ours: nrrd is imported when needed
        from napari_mamamia.io.volumes.segments import read_segment_names

        try:
            segments = read_segment_names(path)
        except MamamiaError:
            segments = []  # the file is damaged: reading the mask says so
        if segments:
            return [NamedMask(name, path, value, rule.region) for value, name in segments]
    return [NamedMask(mask.name or "mask", path, rule.label, rule.region)]


def _with_reference(case: CaseFiles, exam: ExamPaths, root: Path) -> CaseFiles:
    automatic = [mask for mask in exam.masks if mask.rule.name == "automatic"]
    if automatic:
        case = replace(case, automatic=_mask_file(root / automatic[0].path))
    references = [mask for mask in exam.masks if mask.rule.is_reference]
    if len(references) > 1:
        listed = name_some(sorted(mask.path for mask in references), 3)
        return _with_problem(
            case,
            f"{case.case_id} has {len(references)} reference masks: {listed}; keep one of them",
        )
    if not references:
        return case
    path = _mask_file(root / references[0].path)
    values = [mask.label for mask in case.masks if mask.path == path and mask.region == "tumour"]
    label = values[0] if len(values) == 1 else None
    return replace(case, reference=path, reference_label=label)


def _with_problem(case: CaseFiles, problem: str) -> CaseFiles:
    return replace(case, problems=(*case.problems, problem))


def _with_source(case: CaseFiles, root: Path, phases: Sequence[PhasePath]) -> CaseFiles:
    if len(phases) > 1:
        listed = name_some([phase.path for phase in phases], 3)
        case = _with_problem(
            case,
            f"expected one study for {case.case_id}, but found {len(phases)}: {listed}; give each "
            "visit its own name, or open one of them",
        )
    return replace(case, source=root / phases[0].path)


def _with_frames(
    case: CaseFiles,
    layout: Layout,
    tree: Tree,
    frames: Sequence[PhasePath],
    phases: Sequence[PhasePath],
) -> CaseFiles:
    if len(phases) > 1:
        listed = name_some(sorted(phase.path for phase in phases), 3)
        return _with_problem(
            case,
            f"expected one 4-D file for {case.case_id}, but found {len(phases)} files: {listed}; "
            "keep one of them",
        )
    from napari_mamamia.io.data_set.volumes import read_header  # nibabel takes 0.2 s to import

    path = tree.root / frames[0].path
    try:
        count = read_header(path).n_volumes
    except MamamiaError as error:
        return _with_problem(replace(case, phases=(PhaseSource((path,)),)), str(error))
    times, warning = _read_volume_times(layout, tree, frames[0].path, count)
    if warning:
        case = replace(case, warnings=(*case.warnings, warning))
    sources = tuple(PhaseSource((path,), index, times[index]) for index in range(count))
    return replace(case, phases=sources)


def _with_phases(case: CaseFiles, layout: Layout, tree: Tree, exam: ExamPaths) -> CaseFiles:
    if not exam.phases:
        return case
    ordered = sorted(exam.phases, key=lambda phase: (phase.order, natural_key(phase.path)))
    problems = _find_phase_problems(tree.root, exam, ordered, _list_fixed(layout))
    times, warning = _read_phase_times(layout, tree, ordered)
    sources = tuple(
        PhaseSource((tree.root / phase.path,), time_s=time)
        for phase, time in zip(ordered, times, strict=True)
    )
    warnings = (*case.warnings, warning) if warning else case.warnings
    problems = (*case.problems, *problems)
    if len(sources) == 1 and not problems:
        problems = _find_series_problem(case.case_id, sources[0].files[0])
    return replace(case, phases=sources, problems=problems, warnings=warnings)


def _find_series_problem(case_id: str, path: Path) -> tuple[str, ...]:
    """Return a problem if the only file of a case contains all phases."""
    from napari_mamamia.io.data_set.volumes import read_header  # nibabel takes 0.2 s to import

    try:
        count = read_header(path).n_volumes
    except FormatError:
        return ()  # reported when the case is opened
    if count == 1:
        return ()
    return (
        (
            f"expected only phase 0 in {path}, but it holds {count} volumes: split it into "
            f"{case_id}_0000.nii.gz, {case_id}_0001.nii.gz, ..., or open the file itself"
        ),
    )


def _list_fixed(layout: Layout) -> frozenset[int]:
    """Return the phases if each rule of the layout has a fixed phase; otherwise an empty result."""
    phases = [rule.phase for rule in layout.images]
    return frozenset(phase for phase in phases if phase is not None and None not in phases)


def _find_phase_problems(
    root: Path, exam: ExamPaths, phases: Sequence[PhasePath], fixed: frozenset[int]
) -> tuple[str, ...]:
    """Return the problems of missing and duplicate phases.

    Phases that are named by times have no numbers that could be missing.
    """
    first = exam.first
    case_id = exam.fields.get("patient") or root.name
    timed = [phase for phase in phases if phase.time_s is not None]
    if timed and len(timed) != len(phases):
        return (
            f"some phases of {case_id} have a time in their name and others a number: "
            f"{timed[0].path} and {next(p.path for p in phases if p.time_s is None)}",
        )
    by_order: dict[float, list[str]] = {}
    for phase in phases:
        by_order.setdefault(phase.order, []).append(phase.path)
    twins = {order: paths for order, paths in sorted(by_order.items()) if len(paths) > 1}
    problems = []
    if twins:
        which = _in_words("phase", [f"{order - first:g}" for order in twins])
        count = max(map(len, twins.values()))
        twin_files = ", ".join(" and ".join(sorted(paths)[:3]) for paths in [*twins.values()][:2])
        verb = "exists" if len(twins) == 1 else "exist"
        problems = [
            f"{which} of {case_id} {verb} {count} times in {root}: {twin_files}; keep one of them"
        ]
    if timed:
        return tuple(problems)
    wanted = fixed | set(range(first, int(max(by_order)) + 1))
    missing = sorted(wanted - {int(order) for order in by_order})
    if missing:
        which = _in_words("phase", [str(order - first) for order in missing])
        verb = "is" if len(missing) == 1 else "are"
        there = name_some([f"{order - first:g}" for order in sorted(by_order)])
        files = [file for order in missing[:3] if (file := _name_phase(exam, order))]
        files += ["..."] if files and len(missing) > 3 else []
        folder = (root / phases[0].path).parent
        problems.append(
            f"{which} of {case_id} {verb} missing: found {there} in {folder}; add "
            f"{', '.join(files) or 'the file'}, renumber, or choose another layout"
        )
    return tuple(problems)


def _name_phase(exam: ExamPaths, number: int) -> str:
    """Return the file name of a missing phase, or "" if the pattern does not determine it."""
    kind = exam.pattern.kinds.get("phase", "")
    name = exam.pattern.text.rpartition("/")[2].replace(f"{{phase:{kind}}}", "\0")
    if "\0" not in name or "*" in name or kind.strip("n"):
        return ""
    for field, text in exam.fields.items():
        name = re.sub(rf"{{{field}(:[^}}]*)?}}", (text or "").replace("\\", ""), name)
    stem = name.replace("\0", f"{number:0{len(kind)}d}")
    suffix = suffix_of(exam.phases[0].path) if exam.phases else ""
    return f"{stem}{suffix or ''}"


def _in_words(noun: str, numbers: Sequence[str]) -> str:
    """Return a noun followed by its numbers; of many numbers, only the first and the last."""
    if len(numbers) == 1:
        return f"{noun} {numbers[0]}"
    short = numbers if len(numbers) <= 6 else [*numbers[:5], f"... {numbers[-1]}"]
    return f"{noun}s {', '.join(short)}"


# ------------------------------------------------------------------------- times


def _read_phase_times(
    layout: Layout, tree: Tree, phases: Sequence[PhasePath]
) -> tuple[tuple[float | None, ...], str]:
    """Return seconds since the first phase, read from file names or JSON files, and a warning."""
    nothing: tuple[float | None, ...] = (None,) * len(phases)
    clocks: list[float | None]
    if phases and all(phase.time_s is not None for phase in phases):
        clocks = [phase.time_s for phase in phases]
    elif layout.sidecar:
        clocks = [_read_clock(_sidecar(tree, phase.path), layout.sidecar) for phase in phases]
    else:
        return nothing, ""
    known = [clock for clock in clocks if clock is not None]
    if len(known) < len(phases):
        gap = f"{len(phases) - len(known)} of {len(phases)} phases have no {layout.sidecar}"
        return nothing, f"{gap}: no times are used" if known else ""
    times = [clock - known[0] for clock in known]
    times = [time + 2 * _HALF_DAY_S if time < -_HALF_DAY_S else time for time in times]
    if any(later <= earlier for earlier, later in pairwise(times)):
        return nothing, (
            "the times of the phases do not increase in their order "
            f"({name_some([f'{time:g} s' for time in times])}): no times are used"
        )
    if times[-1] > _LONGEST_S:
        return nothing, (
            f"expected the times of one exam, but found {times[-1]:g} s between the first and the "
            "last phase: no times are used; {time:ms} reads milliseconds"
        )
    return tuple(round(time, 6) for time in times), ""


def _read_volume_times(
    layout: Layout, tree: Tree, path: str, count: int
) -> tuple[tuple[float | None, ...], str]:
    nothing: tuple[float | None, ...] = (None,) * count
    if not layout.sidecar:
        return nothing, ""
    values = _read_key(_sidecar(tree, path), layout.sidecar)
    if values is None:
        return nothing, ""
    if not _is_numbers(values) or len(values) != count:
        return nothing, (
            f"expected {count} numbers in {layout.sidecar} next to {path}, but found {values!r}: "
            "no times are used"
        )
    if any(later <= earlier for earlier, later in pairwise(values)):
        return nothing, f"the {layout.sidecar} of {path} do not increase: no times are used"
    return tuple(float(value) - float(values[0]) for value in values), ""


def _is_numbers(values: object) -> bool:
    return isinstance(values, list) and all(
        isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        for value in values
    )


def _sidecar(tree: Tree, path: str) -> Path:
    """Return the JSON file next to an image with the same name, ignoring letter case."""
    folder, slash, name = path.rpartition("/")
    sidecar = f"{folder}{slash}{mask_stem(name)}.json"
    return tree.root / tree.by_lower_case.get(sidecar.lower(), sidecar)


def _read_key(path: Path, key: str) -> Any:
    """Return the value of a key in a JSON file, or None if the file or the key is missing."""
    try:
        content = read_json(path)
    except (OSError, ValueError):
        return None
    return content.get(key) if isinstance(content, dict) else None


def _read_clock(path: Path, key: str) -> float | None:
    """Return the time of day in an image's JSON file in seconds, or None if it has none."""
    value = _read_key(path, key)
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    match = _CLOCK.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        return read_time_s(value) if isinstance(value, str) else None
    hours, minutes, seconds = match.groups()
    return int(hours) * 3600 + int(minutes) * 60 + float(seconds)


# ------------------------------------------------------------------------ tables


def _read_tables(layout: Layout, tree: Tree, warnings: list[str]) -> list[LayoutTable]:
    rule = layout.table
    if rule is None:
        return []
    tables = []
    for path in sorted(tree.files):
        if rule.pattern.match_folder(path) is None or Path(path).suffix.lower() not in TABLES:
            continue
        try:
            tables.append(_read_layout_table(tree.root / path, layout, rule, warnings))
        except MamamiaError as error:
            warnings.append(f"the table {path} was not read: {error}")
    if not tables and not rule.has_exams:
        warnings.append(f"no table {rule.pattern.text} was found, so its columns are not known")
    return tables


def _read_layout_table(
    path: Path, layout: Layout, rule: TableRule, warnings: list[str]
) -> LayoutTable:
    """Return the rows of a layout's table by key, which is one column or several columns."""
    keys = re.findall(r"\{([^{}]+)\}", rule.key) or [rule.key]
    template = rule.key if "{" in rule.key else f"{{{rule.key}}}"
    columns = tuple(Column(key, (key,), is_needed=True, is_id=True) for key in keys)
    table = read_table(path, columns, takes_others=True)
    words = dict(layout.words)
    names = table.header.names
    rows: dict[str, dict[str, str]] = {}
    contradicting: set[str] = set()
    for row in table.rows:
        cells = {
            name: "" if is_missing(cell) else str(cell)
            for name, cell in zip(names, row.cells, strict=False)
        }
        own = {key: _find_cell(cells, key) for key in keys}
        key = template
        for name, text in own.items():
            key = key.replace(f"{{{name}}}", words.get(text, text))
        key = case_key(key)
        if rows.setdefault(key, cells) != cells:
            contradicting.add(key)
    for key in contradicting:
        del rows[key]
    if contradicting:
        warnings.append(
            f"{path.name} has contradictory rows, which are not used: "
            f"{name_some(sorted(contradicting), 5)}"
        )
    return LayoutTable(rows, path)


def _same(name: str, other: str) -> bool:
    return re.sub(r"[\s_]+", "_", name).casefold() == re.sub(r"[\s_]+", "_", other).casefold()


def _with_row(
    case: CaseFiles,
    layout: Layout,
    exam: ExamPaths,
    tables: Sequence[LayoutTable],
    warnings: list[str],
) -> CaseFiles:
    rule = layout.table
    if rule is None or not tables:
        return case
    fields = exam.fields | {"patient": case.patient, "side": case.side}
    key = case_key(rule.id_template.format_map(fields))
    row = next((table.rows[key] for table in tables if key in table.rows), None)
    if row is None and rule.has_exams:
        return case
    if row is None:
        warnings.append(f"{case.case_id} has no row in {tables[0].path.name}")
        return case
    if rule.has_exams:
        return _with_exam(case, row)
    case = replace(case, columns={**case.columns, **row})
    if rule.person:
        case = replace(case, person=_find_cell(row, rule.person))
    if rule.times:
        case = _with_table_times(case, _find_cell(row, rule.times))
    return case


def _with_exam(case: CaseFiles, row: Mapping[str, str]) -> CaseFiles:
    """Return a case with the patient, visit and side from its row in a table of exams."""
    visit, number = _find_cell(row, "visit"), _find_cell(row, "visit_number")
    return replace(
        case,
        patient=_find_cell(row, "patient") or case.patient,
        visit=Visit(visit, int(number) if number.isdecimal() else None) if visit else None,
        side=_find_cell(row, "side"),
    )


def _find_cell(row: Mapping[str, str], name: str) -> str:
    """Return the cell in a column, whose name may end with ``*``; "" if the cell is empty."""
    for column, text in row.items():
        fits = (
            column.casefold().startswith(name[:-1].casefold())
            if name.endswith("*")
            else _same(column, name)
        )
        if fits:
            return text
    return ""


def _warn_of_axes(case: CaseFiles, row: Mapping[str, str], rule: TableRule | None) -> CaseFiles:
    """Return a case with a warning that its files have no affine, and with the table's spacing."""
    texts = [_find_cell(row, name) for name in rule.spacing] if rule else []
    stated = f"; the table states {' x '.join(texts)} mm (z, y, x)" if all(texts) and texts else ""
    warning = (
        f"{case.case_id}: its files store their axes as z, y, x and have no affine: orientation, "
        f"mm and ml are not the patient's{stated}"
    )
    return replace(case, warnings=(*case.warnings, warning))


def _with_table_times(case: CaseFiles, text: str) -> CaseFiles:
    numbers = re.findall(r"-?\d+(?:\.\d+)?", text)
    if not numbers:
        return case
    times = [float(number) for number in numbers]
    if len(times) != len(case.phases):
        return replace(
            case,
            warnings=(
                *case.warnings,
                f"{case.case_id} has {len(case.phases)} phases but {len(times)} times in its "
                "table: no times are used",
            ),
        )
    if any(later <= earlier for earlier, later in pairwise(times)):
        warning = f"the times of {case.case_id} in its table do not increase: no times are used"
        return replace(case, warnings=(*case.warnings, warning))
    timed = zip(case.phases, times, strict=True)
    return replace(case, phases=tuple(replace(phase, time_s=time) for phase, time in timed))


# ------------------------------------------------------- visits, splits and names


def _part_channels(matches: Matches, tree: Tree, warnings: list[str]) -> dict[str, int]:
    """Remove the channels that are not phases according to nnU-Net's ``dataset.json``.

    The function returns the label values in that file by name, if there are several.
    """
    pattern = matches.layout.channel_names
    labels: dict[str, int] = {}
    for path in tree.files:
        if pattern is None or pattern.match_folder(path) is None:
            continue
        names = _read_key(tree.root / path, "channel_names")
        names = names or _read_key(tree.root / path, "modality")
        names = names or _read_key(tree.root / path, "modalities")
        labels |= _read_labels(tree.root / path, path, warnings)
        if not isinstance(names, dict):
            warnings.append(f"{path} names no channels: all of them are used as phases")
            continue
        folder = path.rpartition("/")[0]
        for exam in matches.exams.values():
            if all(phase.path.startswith(f"{folder}/" if folder else "") for phase in exam.phases):
                _drop_channels(matches, exam, names)
        if order_phases([str(name) for name in names.values() if not find_role(str(name))]) is None:
            listed = name_some([str(name) for name in names.values()])
            warnings.append(
                f"the channels of {path} ({listed}) do not state their phase: they are used in "
                "the order of their numbers"
            )
    return labels


def _read_labels(file: Path, path: str, warnings: list[str]) -> dict[str, int]:
    """Return the labels in a ``dataset.json`` by name; empty if there are fewer than two."""
    table = _read_key(file, "labels")
    labels = parse_label_names(table)
    if table and not labels:
        warnings.append(
            f"the labels of {path} are regions that share values, so every value above 0 is tumour"
        )
    if len(labels) < 2:
        return {}
    tumours = list_tumours(labels)
    listed = name_some([f"{name} {value}" for name, value in labels.items()])
    warnings.append(
        f"the label files have several values ({listed}): "
        + (f"only {tumours[0]} is read as the tumour" if len(tumours) == 1 else "choose a label")
    )
    return labels


def _part_series(matches: Matches, warnings: list[str]) -> None:
    """Keep only the series with the most images in each exam; images before contrast come first."""
    parted = []
    for exam in matches.exams.values():
        groups: dict[str, list[PhasePath]] = {}
        for phase in exam.phases:
            name = _CONTRAST.sub("", phase.series).casefold().strip("_")
            groups.setdefault(name, []).append(phase)
        if len(groups) > 1:
            first, second = sorted(groups.values(), key=len, reverse=True)[:2]
            if len(first) == len(second):
                exam.problems.append(
                    f"expected only one series, but found several with {len(first)} images: "
                    f"{name_some([first[0].path, second[0].path])}; describe the layout"
                )
            for phase in exam.phases:
                if phase not in first:
                    matches.others[phase.path] = "another series"
            exam.phases = first
            parted.append(exam.phases[0].path)
        _number_contrast(exam)
    if parted:
        warnings.append(
            f"{len(parted)} exams have several series; the one with most images is used, such as "
            f"{name_some(parted, 3)}"
        )


_CONTRAST: Final = re.compile(r"(?:^|_)ce-(?P<agent>[^_]*)", re.IGNORECASE)
"""Pattern of the BIDS entity that names the contrast agent."""


def _number_contrast(exam: ExamPaths) -> None:
    """Renumber images so that those with a contrast agent come after those without."""
    agents = [_CONTRAST.search(phase.series) for phase in exam.phases]
    is_after = [match is not None and match["agent"].lower() != "none" for match in agents]
    n_before = is_after.count(False)
    orders = {
        after: {
            phase.order
            for phase, other in zip(exam.phases, is_after, strict=True)
            if other is after
        }
        for after in (False, True)
    }
    if orders[False] & orders[True]:  # else the numbers go on after the contrast agent
        exam.phases = [
            replace(phase, order=phase.order + n_before) if after else phase
            for phase, after in zip(exam.phases, is_after, strict=True)
        ]


def _drop_channels(matches: Matches, exam: ExamPaths, names: Mapping[str, Any]) -> None:
    """Keep those channels of an exam that are phases, and renumber them."""
    numbers = sorted(int(number) for number in names if str(number).isdecimal())
    roles = {number: find_role(str(names[str(number)])) for number in numbers}
    phases = [number for number in numbers if not roles[number]]
    order = order_phases([str(names[str(number)]) for number in phases])
    if order is not None:
        phases = [number for _, number in sorted(zip(order, phases, strict=True))]
    places = {number: place for place, number in enumerate(phases)}
    kept = []
    for phase in exam.phases:
        role = roles.get(int(phase.order), "")
        if role:
            matches.others[phase.path] = f"{role}, by channel_names"
        else:
            kept.append(replace(phase, order=float(places.get(int(phase.order), phase.order))))
    there = {int(phase.order) for phase in exam.phases}
    missing = [str(names[str(number)]) for number in phases if number not in there]
    if missing:
        exam.problems.append(
            f"expected the channels of dataset.json, but {name_some(missing)} is missing: add the "
            "file"
        )
    exam.phases = kept


def _number_visits(
    layout: Layout,
    tree: Tree,
    matches: Matches,
    cases: Sequence[CaseFiles],
    warnings: list[str],
) -> list[CaseFiles]:
    """Assign numbers to each patient's visits in time, if names or a table give an order.

    If a patient has several studies without visits, each study is a visit.
    """
    exams = list(matches.exams.values())
    by_patient: dict[str, list[int]] = {}
    for index, case in enumerate(cases):
        by_patient.setdefault(case.patient, []).append(index)
    numbered = list(cases)
    for indices in by_patient.values():
        field = "visit"
        if len({exams[index].fields.get("study") for index in indices}) > 1:
            field = "study"
        names = {
            index: rename_field(layout, field, exams[index].fields.get(field) or "")
            for index in indices
        }
        if not all(names.values()):
            continue
        order = _find_visit_order(layout, tree, exams[indices[0]], warnings)
        if order is None:
            order = _order_visits(names, exams, field)
        places = {name.casefold(): place for place, name in enumerate(order or ())}
        for index, name in names.items():
            visit = Visit(name, places.get(name.casefold()))
            case = numbered[index]
            if field == "study":
                case_id = "_".join(filter(None, (case.patient, name, case.side)))
                case = replace(case, case_id=safe_case_id(case_id))
            numbered[index] = replace(case, visit=visit)
    return numbered


def _order_visits(
    names: Mapping[int, str], exams: Sequence[ExamPaths], field: str
) -> list[str] | None:
    """Return the names of visits in chronological order, or None if they do not give an order."""
    patterns = {exams[index].pattern.kinds.get(field, "") for index in names}
    distinct = sorted(set(names.values()), key=natural_key)
    if len(patterns) == 1 and exams[next(iter(names))].pattern.is_ordered(field):
        keys = {name: exams[index].pattern.sort_key(field, name) for index, name in names.items()}
        return sorted(distinct, key=lambda name: keys[name])
    if len({re.sub(r"\d+$", "", name).casefold() for name in distinct}) == 1 and all(
        name[-1].isdigit() for name in distinct
    ):
        return distinct
    return _order_words(distinct)


def _order_words(distinct: Sequence[str]) -> list[str] | None:
    """Return visits ordered by words such as baseline and week 12, or None."""
    ranks = {name: _rank_visit(name) for name in distinct}
    known = [rank for rank in ranks.values() if rank is not None]
    units = {match[1] for name in distinct if (match := _WEEKS.match(name.casefold()))}
    has_weeks = any(weeks for _, weeks in known)
    if (
        len(units) > 1
        or len(set(known)) < len(distinct)
        or (has_weeks and max(word for word, _ in known) > 1)
    ):
        return None
    return sorted(distinct, key=lambda name: ranks[name] or (0, 0))


def _rank_visit(name: str) -> tuple[int, int] | None:
    """Return a sort key for the name of a visit, or None if its position in time is unknown."""
    word = re.sub(r"[-_ ]", "", name.casefold())
    weeks = _WEEKS.fullmatch(word)
    if weeks is not None:
        return (1, int(weeks[2]))
    return (_BASELINE_WORDS[word], 0) if word in _BASELINE_WORDS else None


def _find_visit_order(
    layout: Layout, tree: Tree, exam: ExamPaths, warnings: list[str]
) -> list[str] | None:
    """Return a patient's visits in the order given in the patient's table, or None."""
    if layout.visit_order is None:
        return None
    path = layout.visit_order.text.format_map(exam.fields)
    if path not in tree.files_set:
        return None
    try:
        table = read_table(
            tree.root / path,
            (Column("session_id", ("session_id",), is_needed=True, is_id=True),),
            takes_others=True,
        )
    except MamamiaError as error:
        warnings.append(f"the order of visits in {path} was not read: {error}")
        return None
    ids = [str(cell) for cell in table.column("session_id")]
    times = next(
        (
            [str(row.cells[place]) for row in table.rows]
            for place, name in enumerate(table.header.names)
            if _same(name, "acq_time")
        ),
        None,
    )
    if times is not None and all(times):
        ids = [visit for _, visit in sorted(zip(times, ids, strict=True))]
    return [visit.removeprefix("ses-") for visit in ids]


Splits = dict[str, dict[str, dict[str, str]]]
"""Parts of a split by id template, then by id in lower case, then by fold ("" without folds)."""


def _read_splits(layout: Layout, tree: Tree, warnings: list[str]) -> Splits:
    """Return the part of the split (such as training) to which each case belongs, in each fold."""
    splits: Splits = {}
    for rule in layout.splits:
        for path in tree.files:
            if rule.pattern.match_folder(path) is None:
                continue
            parts = splits.setdefault(rule.id_template, {})
            try:
                for case_id, fold, name in _read_split(tree.root / path, rule):
                    folds = parts.setdefault(case_key(case_id), {})
                    if folds.setdefault(fold, name) != name:
                        warnings.append(f"{case_id} is in the splits {folds[fold]} and {name}")
            except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
                warnings.append(f"the split {path} was not read: {error}")
    return splits


def _read_split(path: Path, rule: SplitRule) -> Iterator[tuple[str, str, str]]:
    """Yield id, fold and part for each case in a table, ``splits_final.json`` or list of ids."""
    if rule.key:
        table = read_table(
            path, (Column(rule.key, (rule.key,), is_needed=True, is_id=True),), takes_others=True
        )
        for row in table.rows:
            cells = dict(zip(table.header.names, map(str, row.cells), strict=False))
            fold = f"fold {_find_cell(cells, rule.fold)}" if rule.fold else ""
            yield _find_cell(cells, rule.key), fold, _find_cell(cells, rule.column)
    elif path.suffix.lower() == ".json":
        for index, fold in enumerate(read_json(path)):
            for part in ("train", "val"):
                yield from ((case_id, f"fold {index}", part) for case_id in fold[part])
    else:
        for line in read_text(path)[0].splitlines():
            if line.strip():
                yield line.strip(), "", rule.name


def _with_splits(case: CaseFiles, exam: ExamPaths, splits: Splits) -> CaseFiles:
    """Return a case with its part of the split, and with its part in each fold as columns."""
    fields = exam.fields | {"patient": case.patient, "side": case.side}
    for template, parts in splits.items():
        folds = parts.get(case_key(template.format_map(fields)), {})
        if folds:
            fold, part = next(iter(sorted(folds.items())))
            columns = {name: text for name, text in folds.items() if name}
            case = replace(
                case, split=f"{fold} {part}".strip(), columns={**case.columns, **columns}
            )
    return case


def _read_job_names(layout: Layout, tree: Tree, warnings: list[str]) -> list[str]:
    """Return the names of the cases in grand-challenge's ``inputs.json``, without duplicates."""
    if layout.names is None:
        return []
    names: dict[str, None] = {}
    for path in tree.files:
        if layout.names.match_folder(path) is None:
            continue
        try:
            jobs = read_json(tree.root / path)
            for item in jobs:
                names[item["image"]["name"].rpartition(".")[0]] = None
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            warnings.append(f"the names in {path} were not read: {error}")
    return list(names)


def _find_parted_persons(cases: Sequence[CaseFiles]) -> list[str]:
    """Return a warning if exams of the same person are in different parts of the split."""
    parts: dict[tuple[str, str], set[str]] = {}
    for case in cases:
        folds = {name: text for name, text in case.columns.items() if re.match(r"fold \d", name)}
        for fold, part in (folds or {"": case.split}).items():
            if part:
                parts.setdefault((case.person_key, fold), set()).add(part)
    parted = sorted({person for (person, _), names in parts.items() if len(names) > 1})
    if not parted:
        return []
    return [
        (
            f"{len(parted)} patients have exams in several parts of the split, such as "
            f"{name_some(parted, 3)}: a model would be trained and tested on the same persons"
        )
    ]


# -------------------------------------------------------------------- what is left


def _join_spellings(cases: Sequence[CaseFiles], warnings: list[str]) -> list[CaseFiles]:
    """Use one name for patients whose names differ only in letter case, and add a warning."""
    spellings: dict[str, list[str]] = {}
    for case in cases:
        names = spellings.setdefault(case.patient.casefold(), [])
        if case.patient not in names:
            names.append(case.patient)
    several = [names for names in spellings.values() if len(names) > 1]
    if several:
        listed = name_some([" and ".join(names) for names in several], 3)
        warnings.append(
            f"names that differ only in letter case are treated as one patient: {listed}"
        )
    return [replace(case, patient=spellings[case.patient.casefold()][0]) for case in cases]


def _mark_twins(cases: Sequence[CaseFiles], root: Path) -> list[CaseFiles]:
    """Add a problem to each case that shares its id with another case."""
    counts = Counter(case_key(case.case_id) for case in cases)
    return [
        _with_problem(
            case,
            f"{counts[case_key(case.case_id)]} cases in {root} share the id {case.case_id} "
            "(ignoring letter case): open a folder of one of them, or rename them",
        )
        if counts[case_key(case.case_id)] > 1
        else case
        for case in cases
    ]


def _describe_lost(matches: Matches, tree: Tree) -> list[str]:
    warnings = [f"not listed: {problem}" for problem in tree.problems[:10]]
    if matches.lost_masks:
        warnings.append(
            f"{len(matches.lost_masks)} masks match no exam or several exams, and are not used: "
            f"{name_some(sorted(matches.lost_masks), 5)}"
        )
    if matches.unordered:
        warnings.append(
            f"the images of {len(matches.unordered)} patients are left out, because their names "
            f"do not state the phase: {name_some(matches.unordered, 5)}"
        )
    if matches.leftover:
        warnings.append(
            f"{len(matches.leftover)} volume files have no place in the layout "
            f"{matches.layout.name}: {name_some(sorted(matches.leftover), 5)}"
        )
    return warnings
