"""Open a data set: its cases, the clinical table and the user's workspace for it."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import methodcaller
from pathlib import Path
from types import MappingProxyType

from napari_mamamia.core.blinding import NOT_BLIND, Blinding, Hidden
from napari_mamamia.core.cohort import CaseRecord, Cohort
from napari_mamamia.core.errors import CaseError, FormatError, MamamiaError
from napari_mamamia.core.names import name_some
from napari_mamamia.core.progress import listening, report_progress
from napari_mamamia.io.clinical.clinical import read_clinical
from napari_mamamia.io.clinical.columns import BY_NAME, ColumnChoice
from napari_mamamia.io.files.file_names import case_key
from napari_mamamia.io.files.own_paths import sweep_below, sweep_temporary
from napari_mamamia.io.files.sources import CaseFiles, DataSet, Deferred
from napari_mamamia.io.files.user_folders import absolute
from napari_mamamia.io.layouts.find import find_data_set
from napari_mamamia.io.workspace.place import (
    WorkspaceMark,
    WorkspacePlace,
    find_workspace,
    prints_of,
    require_own,
)
from napari_mamamia.io.workspace.preferences import load_preferences
from napari_mamamia.io.workspace.workspace import Workspace
from napari_mamamia.services.case.refine import is_accepted


@dataclass(frozen=True, slots=True)
class OpenDataSet:
    """A data set with its clinical table and workspace; `warnings` are sentences for the user.

    `workspace_why` states why this folder was chosen as the workspace. `clinical_notes` are notes
    on how the clinical table was read, such as the file that defined its columns. `people` are the
    readers who had files in the workspace when it was opened.
    """

    data_set: DataSet
    workspace: Workspace
    cohort: Cohort | None = None
    warnings: tuple[str, ...] = ()
    workspace_why: str = ""
    clinical_notes: tuple[str, ...] = ()
    people: tuple[str, ...] = ()
    _records: Mapping[str, CaseRecord] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        rows = self.cohort.records if self.cohort else ()
        records = {case_key(record.case_id): record for record in rows}
        object.__setattr__(self, "_records", MappingProxyType(records))

    @property
    def place(self) -> tuple[Path, Path]:
        """The root and the workspace; two objects with equal values are the same data set."""
        return self.data_set.root, self.workspace.root

    def record(self, case_id: str) -> CaseRecord | None:
        """Return a case's row in the clinical table, or None; letter case is ignored."""
        return self._records.get(case_key(case_id))

    def read_by(self, reader: str | None) -> "OpenDataSet":
        """Return a copy for another reader, in which this reader's own masks are visible."""
        return replace(self, workspace=replace(self.workspace, reader=reader))


@dataclass(frozen=True, slots=True)
class CaseRow:
    """One row of the case table; `accepted` lists the readers who accepted their refined masks."""

    files: CaseFiles
    record: CaseRecord | None
    predictions: tuple[str, ...]
    refined: tuple[str, ...]
    accepted: tuple[str, ...] = ()

    @property
    def case_id(self) -> str:
        """The case's id."""
        return self.files.case_id

    @property
    def n_phases(self) -> int | None:
        """Number of phases, or None for a DICOM study whose headers have not been read."""
        return None if self.files.is_pending else len(self.files.phases)

    @property
    def problems(self) -> tuple[str, ...]:
        """Known reasons why the case cannot be opened, or () before its headers are read."""
        return () if self.files.is_pending else tuple(self.files.problems)

    @property
    def has_reference(self) -> bool:
        """Whether the data set has an expert mask."""
        return self.files.reference is not None

    @property
    def status(self) -> str:
        """A word for the case table: a problem, or the progress of the work on this case."""
        if self.problems:
            return "problem"
        if self.refined:
            return "accepted" if self.accepted else "refined"
        return "predicted" if self.predictions else "new"


def open_data_set(
    path: Path,
    workspace_root: Path | None = None,
    columns: ColumnChoice = BY_NAME,
    *,
    blinding: Blinding = NOT_BLIND,
    reader: str | None = None,
    names: Mapping[str, str] | None = None,
    layout: str = "",
) -> OpenDataSet:
    """List the data set at `path` and read its clinical table.

    A clinical table that cannot be read causes a warning. It causes an error only if the user
    specified its `columns`, directly or in a ``clinical_columns.json`` next to the table. Without
    `workspace_root`, the workspace is found as in `io.workspace.place`. Unfinished files of killed
    programs are removed from the workspace. Items that `blinding` hides from `reader` are not part
    of the result, so callers cannot show them. `names` maps case ids to new names; only these cases
    are included, under their new names. If the site is hidden, the table contains only times.
    `layout` is the name of a layout or a file that describes a layout; by default, the layout is
    recognised.

    Raises
    ------
    CaseError
        If `workspace_root` is the workspace of another data set with the same case ids.
    FormatError
        If no known layout is found at `path`, or `columns` do not match its clinical table.
    """
    report_progress(0, 2, "Listing cases")
    data_set = find_data_set(path, layout)
    report_progress(1, 2, "Reading the clinical table")
    cohort, warnings = _read_cohort(data_set, columns)
    if blinding.hides(Hidden.CLINICAL) or blinding.hides(Hidden.SITE):
        cohort, warnings = _keep_times(cohort), ()
    if names is not None:
        data_set, cohort = _call_cases(data_set, cohort, names)
    place = _place_of(data_set, workspace_root)
    sweep_temporary()
    sweep_below(place.root)
    mark = WorkspaceMark(absolute(data_set.root), prints_of(data_set))
    workspace = Workspace(place.root, mark, blinding, reader)
    workspace.note_data_set()
    report_progress(2, 2, f"{len(data_set.cases)} cases")
    notes = () if cohort is None else cohort.notes
    warnings = (
        *data_set.warnings,
        *place.warnings,
        *warnings,
        *_without_row(data_set, cohort),
    )
    shown = _hide_masks(data_set, blinding)
    people = workspace.people()
    return OpenDataSet(shown, workspace, cohort, warnings, place.why, notes, people)


def _hide_masks(data_set: DataSet, blinding: Blinding) -> DataSet:
    no_reference, no_model = map(blinding.hides, (Hidden.REFERENCE, Hidden.MODEL))
    cases = [
        replace(
            files,
            reference=None if no_reference else files.reference,
            automatic=None if no_model else files.automatic,
            hides_box=no_reference,
        )
        for files in data_set.cases
    ]
    clinical = None if blinding.hides(Hidden.CLINICAL) else data_set.clinical
    return replace(data_set, cases=tuple(cases), clinical=clinical)


def _call_cases(
    data_set: DataSet, cohort: Cohort | None, names: Mapping[str, str]
) -> tuple[DataSet, Cohort | None]:
    by_key = {case_key(case_id): name for case_id, name in names.items()}
    cases = [
        replace(
            case,
            case_id=names[case.case_id],
            problems=_rename_in(case.problems, case.case_id, names[case.case_id]),
        )
        for case in data_set.cases
        if case.case_id in names
    ]
    rows = cohort.records if cohort else ()
    records = [
        replace(row, case_id=by_key[case_key(row.case_id)])
        for row in rows
        if case_key(row.case_id) in by_key
    ]
    cases.sort(key=lambda one: one.case_id)
    called = replace(data_set, cases=tuple(cases))
    return called, replace(cohort, records=tuple(records)) if cohort else None


def _rename_in(texts: Sequence[str], old: str, new: str) -> Sequence[str]:
    rename = methodcaller("replace", old, new)
    return texts.changed(rename) if isinstance(texts, Deferred) else tuple(map(rename, texts))


def _keep_times(cohort: Cohort | None) -> Cohort | None:
    """Return a clinical table reduced to the phase times."""
    rows = cohort.records if cohort else ()
    times = (CaseRecord(row.case_id, acquisition_times_s=row.acquisition_times_s) for row in rows)
    return Cohort(tuple(times)) if rows else None


def _without_row(data_set: DataSet, cohort: Cohort | None) -> tuple[str, ...]:
    """Return a warning if the clinical table has rows, but none matches a case of the data set."""
    if cohort is None or not cohort.records or data_set.clinical is None:
        return ()
    ids = {case_key(record.case_id) for record in cohort.records}
    if any(case_key(files.case_id) in ids for files in data_set.cases):
        return ()
    case_id, listed = data_set.cases[0].case_id, cohort.records[0].case_id
    bare = {case_key(files.case_id).lstrip("0") for files in data_set.cases}
    zeros = (
        ": leading zeros were lost" if bare & {identifier.lstrip("0") for identifier in ids} else ""
    )
    return (
        f"no case has a row in {data_set.clinical.name}: the ids in the table look like "
        f"{listed!r}, but the ids in the data set look like {case_id!r}{zeros}",
    )


def select_exams(
    opened: OpenDataSet, patients: Collection[str], visits: Collection[str]
) -> OpenDataSet:
    """Return a data set with only the exams of some patients and visits; letter case is ignored.

    Parameters
    ----------
    opened
        The data set.
    patients
        Names of the patients to keep; if empty, all are kept.
    visits
        Names of the visits to keep, as in the data set; if empty, all are kept.

    Raises
    ------
    CaseError
        If a patient or visit does not exist, or no patient has an exam at such a visit.
    """
    cases = opened.data_set.cases
    of_patients = _find_named(cases, "patient", patient_of, patients)
    of_visits = _find_named(cases, "visit", _visit_of, visits)
    kept = tuple(case for case in cases if case.case_id in of_patients & of_visits)
    if not kept:
        raise CaseError(
            f"expected {opened.data_set.root} to have an exam of {name_some(list(patients))} at "
            f"{name_some(list(visits))}, but it has none: choose a different visit"
        )
    return replace(opened, data_set=replace(opened.data_set, cases=kept))


def _find_named(
    cases: Sequence[CaseFiles],
    noun: str,
    read_name: Callable[[CaseFiles], str],
    wanted: Collection[str],
) -> set[str]:
    """Return the ids of the cases with one of the given names; without names, all ids."""
    names = {case.case_id: read_name(case) for case in cases}
    known = {name.casefold() for name in names.values()}
    unknown = [name for name in wanted if name.casefold() not in known]
    if unknown:
        there = name_some([name for name in dict.fromkeys(names.values()) if name])
        raise CaseError(
            f"expected a {noun} of the data set, but got {unknown[0]!r}: the {noun}s of the data "
            f"set are {there or 'not named'}"
        )
    folded = {name.casefold() for name in wanted}
    return {case_id for case_id, name in names.items() if not wanted or name.casefold() in folded}


def patient_of(case: CaseFiles) -> str:
    """Return the patient of a case; a case without a patient name counts as its own patient."""
    return case.patient or case.case_id


def _visit_of(case: CaseFiles) -> str:
    return case.visit.name if case.visit else ""


def case_rows(opened: OpenDataSet) -> tuple[CaseRow, ...]:
    """Return the case table, one row for each case in the data set's order."""
    workspace = opened.workspace
    predictions = {name: workspace.case_ids("prediction", name) for name in workspace.models()}
    refined = {name: workspace.case_ids("refined", name) for name in workspace.readers()}
    return tuple(
        CaseRow(
            files,
            opened.record(files.case_id),
            tuple(name for name, ids in predictions.items() if files.case_id in ids),
            readers := tuple(name for name, ids in refined.items() if files.case_id in ids),
            _who_accepted(workspace, readers, files.case_id),
        )
        for files in opened.data_set.cases
    )


def case_row(opened: OpenDataSet, case_id: str) -> CaseRow:
    """Return the updated row of a case after something was saved."""
    masks = opened.workspace.masks_of(case_id)
    readers = tuple(mask.name for mask in masks if mask.role == "refined")
    return CaseRow(
        opened.data_set.case(case_id),
        opened.record(case_id),
        tuple(mask.name for mask in masks if mask.role == "prediction"),
        readers,
        _who_accepted(opened.workspace, readers, case_id),
    )


def _who_accepted(workspace: Workspace, readers: Iterable[str], case_id: str) -> tuple[str, ...]:
    path_of = partial(workspace.listed_path, "refined")
    return tuple(name for name in readers if is_accepted(path_of(name, case_id)))


def _place_of(data_set: DataSet, wanted: Path | None) -> WorkspacePlace:
    if wanted is None:
        preferences = load_preferences()
        workspace = find_workspace(data_set, preferences)
        if not preferences.problem:
            return workspace
        doubt = f"{preferences.problem}: {workspace.root} is used as the workspace"
        return replace(workspace, warnings=(*workspace.warnings, doubt))
    require_own(wanted, data_set)
    return WorkspacePlace(wanted, "chosen now")


def _read_cohort(data_set: DataSet, columns: ColumnChoice) -> tuple[Cohort | None, tuple[str, ...]]:
    path = data_set.clinical
    if path is None and columns != BY_NAME:
        raise FormatError(
            f"expected {data_set.root} to have a clinical table for the given columns, but it has "
            "none: omit the columns"
        )
    if path is None:
        return None, ()
    try:
        with listening(None):
            cohort = read_clinical(path, columns)
    except MamamiaError as error:
        if columns != BY_NAME:
            raise
        return None, (f"the clinical table could not be read: {error}",)
    refused = tuple(f"{path.name}, row {row.row}: {row.reason}" for row in cohort.refused)
    return cohort, refused
