"""Build cases from the matches of a layout: phases, times, masks, table rows, problems."""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from napari_mamamia.core.errors import MamamiaError
from napari_mamamia.core.names import name_some
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
from napari_mamamia.io.layouts.case_list import order_phases
from napari_mamamia.io.layouts.layout import ImageKind, Layout, TableRule
from napari_mamamia.io.layouts.manifest import list_missing_series
from napari_mamamia.io.layouts.matching import (
    ExamPaths,
    MaskPath,
    Matches,
    PhasePath,
    rename_field,
)
from napari_mamamia.io.layouts.tree import Tree
from napari_mamamia.io.tables.cells import is_missing
from napari_mamamia.io.tables.headers import Column
from napari_mamamia.io.tables.spreadsheets import TABLES
from napari_mamamia.io.tables.table import read_table
from napari_mamamia.io.tables.text_rows import read_text
from napari_mamamia.io.volumes.formats import mask_stem

_CLOCK: Final = re.compile(r"(\d{1,2}):(\d{2}):(\d{2}(?:\.\d+)?)")
_HALF_DAY_S: Final = 12 * 3600.0
_BASELINE_WORDS: Final = MappingProxyType(
    {"baseline": 0, "pre": 0, "early": 1, "mid": 2, "interim": 2, "post": 3, "followup": 4}
)
"""Words for visits, in their order in time, as trials use them."""
_WHOLE_EXAMS: Final = (ImageKind.DICOM, ImageKind.SCENE)
_NO_PHASES: Final = MappingProxyType(
    {
        "subtraction": r"sub\d*|subtraction\d*|diff\d*",
        "T2": r"t2|t2w|stir|tirm",
        "diffusion": r"adc|dwi",
        "kinetic map": r"pe|ser|ktrans|washin|washout",
        "mask": r"mask|label|seg",
    }
)
"""Words in the name of a channel that is not a phase."""


@dataclass(frozen=True, slots=True)
class LayoutTable:
    """The rows of a layout's table by id in lower case, each as texts by column."""

    rows: Mapping[str, Mapping[str, str]]
    path: Path


def build_data_set(matches: Matches, tree: Tree) -> DataSet:
    """Return the data set built from a layout's matches.

    A case that cannot be opened as it is (a phase missing, two files for one phase) is listed with
    its problems; damage of other files causes a warning.

    Parameters
    ----------
    matches
        What the layout matched in `tree`.
    tree
        The paths of the data set's folder.
    """
    layout, root = matches.layout, tree.root
    warnings = list(layout.notes)
    if layout.channel_names is not None:
        _part_channels(matches, tree, warnings)
    tables = _read_tables(layout, tree, warnings)
    splits = _read_splits(layout, tree, warnings)
    names = _read_job_names(layout, tree, warnings)
    cases = []
    for exam in matches.exams.values():
        case = _build_case(layout, root, exam)
        case = _with_row(case, layout, exam, tables, warnings)
        if layout.axes:
            case = _warn_of_axes(case, case.columns, layout.table)
        split = rename_field(layout, "split", exam.fields.get("split", ""))
        case = replace(case, split=splits.get(case_key(case.patient), split))
        if names and len(matches.exams) == 1:
            case = replace(case, case_id=safe_case_id(names[0]), patient=names[0])
        cases.append(case)
    cases = _number_visits(layout, tree, matches, cases, warnings)
    cases = _mark_twins(cases, root)
    warnings += _describe_lost(matches, tree)
    warnings += list_missing_series(tree)
    warnings += _find_parted_persons(cases)
    return DataSet(
        root,
        LayoutKind.PATTERN,
        tuple(sorted(cases, key=_case_order)),
        layout=layout.name,
        others=tuple((root / path, role) for path, role in sorted(matches.others.items())),
        leftover=tuple(root / path for path in sorted(matches.leftover, key=natural_key)),
        refused=tuple((root / path, reason) for path, reason in sorted(matches.refused.items())),
        warnings=tuple(dict.fromkeys(warnings)),
    )


def _case_order(case: CaseFiles) -> tuple[Any, ...]:
    index = -1 if case.visit is None or case.visit.index is None else case.visit.index
    visit = case.visit.name if case.visit else ""
    return (natural_key(case.patient), index, natural_key(visit), case.side)


def _build_case(layout: Layout, root: Path, exam: ExamPaths) -> CaseFiles:
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
        for named in _name_masks(_mask_file(root / mask.path), mask)
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
    case = replace(case, problems=tuple(exam.problems))
    case = _with_reference(case, exam, root)
    sources = [phase for phase in exam.phases if phase.kind in _WHOLE_EXAMS]
    if sources:
        return _with_source(case, root, sources)
    frames = [phase for phase in exam.phases if phase.kind is ImageKind.FRAMES]
    if frames:
        return _with_frames(case, layout, root, frames, exam.phases)
    return _with_phases(case, layout, root, exam)


def _mask_file(path: Path) -> Path:
    """Return the only file of a folder of DICOM SEG; a file is returned unchanged."""
    if not path.is_dir():
        return path
    files = [file for file in path.iterdir() if not file.name.startswith(".")]
    return files[0] if len(files) == 1 else path


def _name_masks(path: Path, mask: MaskPath) -> list[NamedMask]:
    """Return a mask under its name, or each segment of a file under its own name."""
    rule = mask.rule
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
    references = [mask for mask in exam.masks if mask.rule.is_reference]
    if len(references) > 1:
        listed = name_some(sorted(mask.path for mask in references), 3)
        return _with_problem(
            case,
            f"{case.case_id} has {len(references)} reference masks: {listed}; keep one of them",
        )
    if not references:
        return case
    return replace(case, reference=_mask_file(root / references[0].path))


def _with_problem(case: CaseFiles, problem: str) -> CaseFiles:
    return replace(case, problems=(*case.problems, problem))


def _with_source(case: CaseFiles, root: Path, phases: Sequence[PhasePath]) -> CaseFiles:
    if len(phases) > 1:
        listed = name_some([phase.path for phase in phases], 3)
        case = _with_problem(
            case,
            f"expected one study of {case.case_id}, but found {len(phases)}: "
            f"{listed}; name visits apart, or open one of them",
        )
    return replace(case, source=root / phases[0].path)


def _with_frames(
    case: CaseFiles,
    layout: Layout,
    root: Path,
    frames: Sequence[PhasePath],
    phases: Sequence[PhasePath],
) -> CaseFiles:
    if len(phases) > 1:
        listed = name_some(sorted(phase.path for phase in phases), 3)
        return _with_problem(
            case,
            f"expected one 4-D file of {case.case_id}, but found {len(phases)} files: {listed}; "
            "keep one of them",
        )
    from napari_mamamia.io.data_set.volumes import read_header  # nibabel takes 0.2 s to import

    path = root / frames[0].path
    try:
        count = read_header(path).n_volumes
    except MamamiaError as error:
        return _with_problem(case, str(error))
    times, warning = _read_volume_times(layout, path, count)
    if warning:
        case = replace(case, warnings=(*case.warnings, warning))
    sources = tuple(PhaseSource((path,), index, times[index]) for index in range(count))
    return replace(case, phases=sources)


def _with_phases(case: CaseFiles, layout: Layout, root: Path, exam: ExamPaths) -> CaseFiles:
    ordered = sorted(exam.phases, key=lambda phase: (phase.order, natural_key(phase.path)))
    problems = _find_phase_problems(case.case_id, ordered, exam.first)
    times, warning = _read_phase_times(layout, root, ordered)
    sources = tuple(
        PhaseSource((root / phase.path,), time_s=time)
        for phase, time in zip(ordered, times, strict=True)
    )
    warnings = (*case.warnings, warning) if warning else case.warnings
    return replace(case, phases=sources, problems=(*case.problems, *problems), warnings=warnings)


def _find_phase_problems(case_id: str, phases: Sequence[PhasePath], first: int) -> tuple[str, ...]:
    """Return problems of missing and duplicate phases.

    Phases that are named by times have no numbers that could be missing.
    """
    timed = [phase for phase in phases if phase.time_s is not None]
    if timed and len(timed) != len(phases):
        return (
            f"some phases of {case_id} have a time in their name and others a number: "
            f"{timed[0].path} and {next(p.path for p in phases if p.time_s is None)}",
        )
    by_order: dict[float, list[str]] = {}
    for phase in phases:
        by_order.setdefault(phase.order, []).append(phase.path)
    problems = [
        (
            f"phase {order - first:g} of {case_id} exists {len(paths)} times: "
            f"{name_some(paths, 3)}; keep one of them"
        )
        for order, paths in sorted(by_order.items())
        if len(paths) > 1
    ]
    if timed:
        return tuple(problems)
    missing = sorted(set(range(first, int(max(by_order)) + 1)) - {int(order) for order in by_order})
    if missing:
        listed = name_some([str(order - first) for order in missing])
        there = name_some([f"{order - first:g}" for order in sorted(by_order)])
        problems.append(
            f"phase {listed} of {case_id} is missing: found {there}; add the file, or choose "
            "another layout"
        )
    return tuple(problems)


# ------------------------------------------------------------------------- times


def _read_phase_times(
    layout: Layout, root: Path, phases: Sequence[PhasePath]
) -> tuple[tuple[float | None, ...], str]:
    """Return seconds since the first phase, from names or sidecars, and a warning or ""."""
    nothing: tuple[float | None, ...] = (None,) * len(phases)
    clocks: list[float | None]
    if phases and all(phase.time_s is not None for phase in phases):
        clocks = [phase.time_s for phase in phases]
    elif layout.sidecar:
        clocks = [_read_clock(_sidecar(root / phase.path), layout.sidecar) for phase in phases]
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
    return tuple(round(time, 6) for time in times), ""


def _read_volume_times(
    layout: Layout, path: Path, count: int
) -> tuple[tuple[float | None, ...], str]:
    nothing: tuple[float | None, ...] = (None,) * count
    if not layout.sidecar:
        return nothing, ""
    values = _read_key(_sidecar(path), layout.sidecar)
    if values is None:
        return nothing, ""
    if not _is_numbers(values) or len(values) != count:
        return nothing, (
            f"expected {count} numbers of {layout.sidecar} beside {path.name}, but found "
            f"{values!r}: no times are used"
        )
    if any(later <= earlier for earlier, later in pairwise(values)):
        return nothing, f"the {layout.sidecar} of {path.name} do not increase: no times are used"
    return tuple(float(value) - float(values[0]) for value in values), ""


def _is_numbers(values: object) -> bool:
    return isinstance(values, list) and all(
        isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        for value in values
    )


def _sidecar(path: Path) -> Path:
    return path.with_name(f"{mask_stem(path.name)}.json")


def _read_key(path: Path, key: str) -> Any:
    """Return the value of a key in a JSON file, or None if the file or key is missing."""
    try:
        content = read_json(path)
    except (OSError, ValueError):
        return None
    return content.get(key) if isinstance(content, dict) else None


def _read_clock(path: Path, key: str) -> float | None:
    """Return a sidecar's time of day in seconds, or None if it has none."""
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
            tables.append(_read_layout_table(tree.root / path, rule, warnings))
        except MamamiaError as error:
            warnings.append(f"the table {path} was not read: {error}")
    if not tables:
        warnings.append(f"no table {rule.pattern.text} was found: its columns are not known")
    return tables


def _read_layout_table(path: Path, rule: TableRule, warnings: list[str]) -> LayoutTable:
    table = read_table(
        path, (Column(rule.key, (rule.key,), is_needed=True, is_id=True),), takes_others=True
    )
    names = table.header.names
    rows: dict[str, dict[str, str]] = {}
    contradicting: set[str] = set()
    for row in table.rows:
        cells = {
            name: "" if is_missing(cell) else str(cell)
            for name, cell in zip(names, row.cells, strict=False)
        }
        key = case_key(next((text for name, text in cells.items() if _same(name, rule.key)), ""))
        if rows.setdefault(key, cells) != cells:
            contradicting.add(key)
    for key in contradicting:
        del rows[key]
    if contradicting:
        warnings.append(
            f"{path.name} has rows that contradict each other, which are not used: "
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
    if row is None:
        warnings.append(f"{case.case_id} has no row in {tables[0].path.name}")
        return case
    case = replace(case, columns={**case.columns, **row})
    if rule.person:
        case = replace(case, person=_find_cell(row, rule.person))
    if rule.times:
        case = _with_table_times(case, _find_cell(row, rule.times))
    return case


def _find_cell(row: Mapping[str, str], name: str) -> str:
    """Return the cell of a column, whose name may end with ``*``; "" if it is empty."""
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
    """Return the case with a warning that its files have no affine, and the table's spacing."""
    texts = [_find_cell(row, name) for name in rule.spacing] if rule else []
    stated = f"; the table states {' x '.join(texts)} mm (z, y, x)" if all(texts) and texts else ""
    warning = (
        f"{case.case_id}: its files keep their axes as z, y, x and no affine: orientation, mm and "
        f"ml are not the patient's{stated}"
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


def _part_channels(matches: Matches, tree: Tree, warnings: list[str]) -> None:
    """Remove the channels that nnU-Net's ``dataset.json`` does not name as phases."""
    pattern = matches.layout.channel_names
    for path in tree.files:
        if pattern is None or pattern.match_folder(path) is None:
            continue
        names = _read_key(tree.root / path, "channel_names")
        if not isinstance(names, dict):
            warnings.append(f"{path} names no channels: all of them are taken for phases")
            continue
        folder = path.rpartition("/")[0]
        for exam in matches.exams.values():
            if all(phase.path.startswith(f"{folder}/" if folder else "") for phase in exam.phases):
                _drop_channels(matches, exam, names)


def _find_role(name: str) -> str:
    """Return the role of a channel that is not a phase, or "" if its name does not state one."""
    words = re.split(r"[^a-z0-9]+", name.casefold())
    for word in words:
        for role, spelling in _NO_PHASES.items():
            if re.fullmatch(spelling, word):
                return role
    return ""


def _drop_channels(matches: Matches, exam: ExamPaths, names: Mapping[str, Any]) -> None:
    """Keep the channels of an exam that are phases, and renumber them."""
    numbers = sorted(int(number) for number in names if str(number).isdecimal())
    roles = {number: _find_role(str(names[str(number)])) for number in numbers}
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
    exam.phases = kept


def _number_visits(
    layout: Layout,
    tree: Tree,
    matches: Matches,
    cases: Sequence[CaseFiles],
    warnings: list[str],
) -> list[CaseFiles]:
    """Assign each visit of a patient a number in time, if names or a table give an order.

    Several studies of one patient without a visit are visits.
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
    """Return names of visits in their order in time, or None if the names do not give one."""
    patterns = {exams[index].pattern.kinds.get(field, "") for index in names}
    distinct = sorted(set(names.values()), key=natural_key)
    if len(patterns) == 1 and exams[next(iter(names))].pattern.is_ordered(field):
        keys = {name: exams[index].pattern.sort_key(field, name) for index, name in names.items()}
        return sorted(distinct, key=lambda name: keys[name])
    if len({re.sub(r"\d+$", "", name).casefold() for name in distinct}) == 1 and all(
        name[-1].isdigit() for name in distinct
    ):
        return distinct
    words = [_BASELINE_WORDS.get(name.casefold()) for name in distinct]
    if None not in words and len(set(words)) == len(words):
        return sorted(distinct, key=lambda name: _BASELINE_WORDS[name.casefold()])
    return None


def _find_visit_order(
    layout: Layout, tree: Tree, exam: ExamPaths, warnings: list[str]
) -> list[str] | None:
    """Return a patient's visits in the order of its own table, or None without a table."""
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


def _read_splits(layout: Layout, tree: Tree, warnings: list[str]) -> dict[str, str]:
    """Return the split (part of the data set) of each case, by id in lower case."""
    splits: dict[str, str] = {}
    for rule in layout.splits:
        for path in tree.files:
            if rule.pattern.match_folder(path) is None:
                continue
            try:
                for case_id, name in _read_split(tree.root / path, rule.name):
                    key = case_key(case_id)
                    if splits.setdefault(key, name) != name:
                        warnings.append(f"{case_id} is in the splits {splits[key]} and {name}")
            except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
                warnings.append(f"the split {path} was not read: {error}")
    return splits


def _read_split(path: Path, name: str) -> Iterator[tuple[str, str]]:
    """Yield ids and parts: lines of one part, or the first fold of nnU-Net's ``splits_final``."""
    if path.suffix.lower() == ".json":
        fold = read_json(path)[0]
        for part in ("train", "val"):
            yield from ((case_id, f"fold 0 {part}") for case_id in fold[part])
    else:
        for line in read_text(path)[0].splitlines():
            if line.strip():
                yield line.strip(), name


def _read_job_names(layout: Layout, tree: Tree, warnings: list[str]) -> list[str]:
    """Return the names of cases of grand-challenge's ``inputs.json``, each once."""
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
    """Return a warning if exams of one person are in different splits."""
    parts: dict[str, set[str]] = {}
    for case in cases:
        if case.split:
            parts.setdefault(case.person_key, set()).add(case.split)
    parted = sorted(key for key, names in parts.items() if len(names) > 1)
    if not parted:
        return []
    return [
        (
            f"{len(parted)} patients have exams in several parts of the split, such as "
            f"{name_some(parted, 3)}: a model would be trained and tested on the same persons"
        )
    ]


# -------------------------------------------------------------------- what is left


def _mark_twins(cases: Sequence[CaseFiles], root: Path) -> list[CaseFiles]:
    """Give a problem to each case whose id belongs to another case as well."""
    counts = Counter(case_key(case.case_id) for case in cases)
    return [
        _with_problem(
            case,
            f"{counts[case_key(case.case_id)]} cases in {root} share the id {case.case_id} (letter "
            "case does not count): open a folder of one of them, or rename them",
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
