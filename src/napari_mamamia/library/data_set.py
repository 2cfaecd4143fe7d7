"""`open_data_set` opens a folder of cases; `DataSet` is a table and a collection of cases."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from html import escape
from operator import index
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload
from warnings import warn

import numpy as np

from napari_mamamia.core.errors import ArgumentError, CaseError
from napari_mamamia.core.names import name_some
from napari_mamamia.io.files.file_names import case_key
from napari_mamamia.io.tables.cells import is_missing
from napari_mamamia.io.tables.headers import IDS
from napari_mamamia.io.tables.table import read_table
from napari_mamamia.library.argument_words import advising_arguments
from napari_mamamia.library.arguments import PathLike, columns_of, path_of
from napari_mamamia.library.case import Case
from napari_mamamia.library.page import html_of
from napari_mamamia.library.progress import drive
from napari_mamamia.services.case.context import CaseContext
from napari_mamamia.services.case.data_set import CaseRow, OpenDataSet, case_rows
from napari_mamamia.services.case.data_set import open_data_set as opening
from napari_mamamia.services.findings.findings_table import list_findings

if TYPE_CHECKING:
    import pandas as pd

    from napari_mamamia.library.other_libraries import TorchDataSet


_CLINICAL = ("age", "menopausal_status", "breast_density", "tumour_subtype", "pcr", "dataset")


@advising_arguments
def open_data_set(
    path: PathLike,
    *,
    workspace: PathLike | None = None,
    columns: PathLike | Mapping[str, str | None] | None = None,
    layout: PathLike = "",
    progress: bool = True,
) -> "DataSet":
    """Open a data set: its cases, its clinical table and your workspace.

    The known layouts are MAMA-MIA (``images/ID/ID_0000.nii.gz``), nnU-Net raw, the folder of one
    case, a 4-D file and a DICOM series. The folder itself is never changed; your results are
    written to the workspace.

    Parameters
    ----------
    path
        The folder, or the file.
    workspace
        The folder for your predictions and refined masks; by default the folder that the window and
        the command line use for this data set.
    columns
        The column that holds each field of the clinical table, such as ``{"age": "age at exam",
        "breast_density": None}`` (None if the table does not have the field), or a JSON file with
        this mapping. By default, columns are recognised by their usual names.
    layout
        The name of a known layout (see `mm.list_layouts`), or a TOML file that describes a layout.
        By default, the layout is recognised from the files.
    progress
        Whether to show a progress bar.

    Returns
    -------
    DataSet
        The data set: ``data_set.cases`` is a table, ``data_set["ID"]`` is a case, and a loop over
        the data set yields every case.

    Raises
    ------
    FormatError
        If no known layout is found, or `columns` do not match the table.
    CaseError
        If `workspace` belongs to another data set with the same case ids.
    ArgumentError
        If an argument has the wrong type.

    Examples
    --------
    >>> data_set = mm.open_data_set("MAMA-MIA")  # doctest: +SKIP
    >>> data_set.cases.groupby("menopausal_status").size()  # doctest: +SKIP
    >>> data_set["DUKE_001"].signal.shape  # doctest: +SKIP
    (4, 160, 448, 448)
    """
    root = None if workspace is None else path_of(workspace, "workspace")
    place, choice = path_of(path, "a data set"), columns_of(columns)
    named = str(path_of(layout, "a layout")) if layout else ""
    return DataSet(drive(partial(opening, place, root, choice, layout=named), progress))


class DataSet:
    """A data set: ``.cases`` is a table, ``data_set["ID"]`` is a case, and a loop yields cases."""

    def __init__(self, opened: OpenDataSet) -> None:
        self._opened = opened

    @classmethod
    def from_cases(cls, cases: Iterable[Case], *, workspace: PathLike | None = None) -> "DataSet":
        """Create a data set from cases, such as those that `Case.from_files` returns.

        Parameters
        ----------
        cases
            The cases, each with a unique id.
        workspace
            Folder for predictions and refined masks; by default a temporary folder.

        Raises
        ------
        ArgumentError
            If there is no case, an item is not a `Case`, or two cases have the same id.
        """
        from napari_mamamia.library.own_files import open_cases

        if isinstance(cases, Case) or not isinstance(cases, Iterable):
            raise ArgumentError(
                f"expected a list of cases, but got {type(cases).__name__}: pass [case]"
            )
        given = list(cases)
        for case in given:
            if not isinstance(case, Case):
                raise ArgumentError(
                    f"expected only cases, but got {type(case).__name__}: pass Case objects"
                )
        return cls(open_cases([case.files for case in given], workspace))

    def __repr__(self) -> str:
        layout, root = self.layout, self.root
        return f"DataSet({len(self)} cases, layout {layout}, {str(root)!r})"

    def _repr_html_(self) -> str:
        head = f"<p><b>{escape(self.name)}</b>: {len(self)} cases, layout {self.layout}</p>"
        notes = "".join(f"<p>⚠ {escape(text)}</p>" for text in self.warnings)
        return head + notes + html_of(self.cases)

    @property
    def opened(self) -> OpenDataSet:
        """The internal object that describes the data set to the services."""
        return self._opened

    @property
    def name(self) -> str:
        """The name of the data set's folder."""
        return self._opened.data_set.name

    @property
    def layout(self) -> str:
        """The name of the recognised layout, such as "MAMA-MIA"."""
        data_set = self._opened.data_set
        return data_set.layout or str(data_set.kind)

    @property
    def root(self) -> Path:
        """The folder of the data set, to which nothing is written."""
        return self._opened.data_set.root

    @property
    def workspace(self) -> Path:
        """The folder for your predictions, refined masks and scores of this data set."""
        return self._opened.workspace.root

    @property
    def clinical(self) -> Path | None:
        """The path of the clinical table, for ``score(..., clinical=...)``, or None."""
        return self._opened.data_set.clinical

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences about unusual properties of the data set."""
        return (*self._opened.clinical_notes, *self._opened.warnings)

    @property
    def case_ids(self) -> tuple[str, ...]:
        """The ids of the cases, in the order of the data set."""
        return tuple(files.case_id for files in self._opened.data_set.cases)

    def findings(self, reader: str | None = None, *, progress: bool = True) -> "pd.DataFrame":
        """Return the readers' findings from the Findings page, with one row for each lesion.

        The columns are ``case_id``, ``reader``, ``lesion``, ``at``, ``measured_from``, the lesion's
        centre (``x_mm``, ``y_mm``, ``z_mm``, RAS), each question of the form with its ``.codes``
        (for a breast, ``assessment@right``), and ``auto``, which lists the answers that no reader
        edited. Answers that the program computes are recomputed from the reader's own mask.

        Parameters
        ----------
        reader
            The name of a reader; by default all readers.
        progress
            Whether to show a progress bar.

        Returns
        -------
        pandas.DataFrame
            One row for each lesion.

        Raises
        ------
        FormatError
            If the file of the findings cannot be read.

        Examples
        --------
        >>> data_set.findings("Ana").to_parquet("findings.parquet")  # doctest: +SKIP
        """
        import pandas as pd

        table = drive(partial(list_findings, self._opened, reader), progress)
        for failure in table.failures:
            warn(f"{failure.case_id} could not be measured: {failure.reason}", stacklevel=2)
        return pd.DataFrame(table.rows, columns=list(table.columns))

    @property
    def cases(self) -> "pd.DataFrame":
        """A table with one row per case, indexed by case id; each access returns a new copy.

        The columns are ``phases`` (their number), ``reference`` (whether the case has one),
        ``predictions`` and ``refined`` (names, joined by ", "), ``status``, ``problems``, and the
        fields of the clinical table, with missing values for fields that the table does not have.
        """
        import pandas as pd

        rows = [_make_row(row) for row in case_rows(self._opened)]
        index = pd.Index(self.case_ids, name="case_id", dtype=object)
        columns = ("phases", "reference", "predictions", "refined", "status", "problems")
        return pd.DataFrame(rows, index=index, columns=[*columns, *_CLINICAL])

    def to_torch(self, phases: Sequence[int] | None = None) -> "TorchDataSet":
        """Return a dataset for ``torch.utils.data.DataLoader``, which reads each case on demand.

        Parameters
        ----------
        phases
            The phases that become channels. By default, all phases of each case are used, and their
            number may differ between cases.

        Returns
        -------
        TorchDataSet
            A dataset whose items are dicts with ``image`` (float32, ``(phase, z, y, x)``), ``mask``
            (uint8, ``(z, y, x)``), ``spacing_mm`` and ``case_id``.

        Raises
        ------
        MissingExtraError
            If torch is not installed.

        Examples
        --------
        >>> loader = torch.utils.data.DataLoader(data_set.to_torch((0, 1)))  # doctest: +SKIP
        """
        from napari_mamamia.library.other_libraries import TorchDataSet

        return TorchDataSet(self, phases)

    def __len__(self) -> int:
        return len(self._opened.data_set.cases)

    def __contains__(self, case_id: object) -> bool:
        return (case_id.case_id if isinstance(case_id, Case) else case_id) in self.case_ids

    def __iter__(self) -> Iterator[Case]:
        return (self[case_id] for case_id in self.case_ids)

    @overload
    def __getitem__(self, case_id: str | int) -> Case: ...

    @overload
    def __getitem__(self, case_id: slice | list[str] | list[int]) -> "DataSet": ...

    def __getitem__(self, case_id: str | int | slice | list[str] | list[int]) -> "Case | DataSet":
        """Return one case (by id or index), or a data set of several: ``[:3]``, ``[["A", "B"]]``.

        Parameters
        ----------
        case_id
            A case id in upper or lower case, an index that counts from 0, a slice, or a list of ids
            or indices.

        Returns
        -------
        Case or DataSet
            The case, or a data set of the selected cases. No image is read.

        Raises
        ------
        CaseError
            If the case does not exist; the message lists some existing ids.
        ArgumentError
            If `case_id` has the wrong type.
        """
        if isinstance(case_id, str):
            return Case(CaseContext(self._opened, self._find_spelling(case_id)))
        if isinstance(case_id, slice):
            return self._select(self.case_ids[case_id])
        if isinstance(case_id, list):
            return self._select([self._find_id(each) for each in case_id])
        return self[self._find_id(case_id)]

    def where(self, **values: Any) -> "DataSet":
        """Return a data set with the cases whose columns have the given values.

        Parameters
        ----------
        **values
            Each keyword is a column of `cases` or of the data set's own table, ignoring letter case
            and blanks. Its value is the required value or a list of accepted values.

        Raises
        ------
        ArgumentError
            If a column does not exist; the message lists the existing columns.

        Examples
        --------
        >>> data_set.where(field_strength=3, dataset=["DUKE", "NACT"])  # doctest: +SKIP
        """
        table = self.columns
        known = {spell_column(name): name for name in table.columns}
        chosen = np.ones(len(self), dtype=bool)
        for name, value in values.items():
            if spell_column(name) not in known:
                raise ArgumentError(
                    f"expected a column of {self.name}, but got {name!r}: choose one of "
                    f"{name_some([str(column) for column in table.columns], 60)}"
                )
            wanted = [value] if isinstance(value, str) or not isinstance(value, Iterable) else value
            cells = table[known[spell_column(name)]]
            chosen &= np.array([any(_is_value(cell, one) for one in wanted) for cell in cells])
        return self._select(
            [name for name, is_in in zip(self.case_ids, chosen, strict=True) if is_in]
        )

    @property
    def columns(self) -> "pd.DataFrame":
        """A table with the columns of `cases` and all columns of the data set's own tables.

        The table has one row for each case and is indexed by case id. It includes patient, visit
        and side if the layout has them.
        """
        import pandas as pd

        table = self.cases
        rows: list[dict[str, object]] = [
            {
                "patient": files.patient or files.case_id,
                "visit": files.visit.name if files.visit else None,
                "side": files.side or None,
                "split": files.split or None,
                **files.columns,
            }
            for files in self._opened.data_set.cases
        ]
        for row, cells in zip(rows, self._read_clinical_rows(), strict=True):
            row.update((name, cell) for name, cell in cells.items() if name not in row)
        own = pd.DataFrame(rows, index=table.index)
        unknown = [name for name in own.columns if name in table and table[name].isna().all()]
        table = table.drop(columns=unknown)
        return table.join(own[[name for name in own.columns if name not in table.columns]])

    def _read_clinical_rows(self) -> list[dict[str, object]]:
        """Return, for each case, all cells of its row in the clinical table by column, or {}."""
        path = self.clinical
        if path is None:
            return [{} for _ in self.case_ids]
        table = read_table(path, (IDS,), takes_others=True)
        names = table.header.names
        rows = {
            case_key(str(case_id)): {
                name: None if is_missing(cell) else cell
                for name, cell in zip(names, row.cells, strict=False)
            }
            for case_id, row in zip(table.column(IDS.name), table.rows, strict=True)
        }
        return [rows.get(case_key(case_id), {}) for case_id in self.case_ids]

    @property
    def patients(self) -> "tuple[Patient, ...]":
        """The patients with their visits in chronological order; each visit contains its exams.

        If a table states that two names belong to the same person, there is one `Patient` with both
        names.
        """
        return _list_patients(self)

    def _select(self, case_ids: Sequence[str]) -> "DataSet":
        data_set = self._opened.data_set
        cases = tuple(data_set.case(self._find_spelling(case_id)) for case_id in case_ids)
        return DataSet(replace(self._opened, data_set=replace(data_set, cases=cases)))

    def _find_id(self, case_id: object) -> str:
        if isinstance(case_id, str):
            return self._find_spelling(case_id)
        if isinstance(case_id, bool) or not hasattr(case_id, "__index__"):
            raise ArgumentError(
                f"expected a case id or a non-negative index, but got {case_id!r}: pass an id "
                f"such as {self.case_ids[0]!r}"
            )
        place = index(case_id)
        if not -len(self) <= place < len(self):
            raise CaseError(
                f"expected an index from 0 to {len(self) - 1}, but got {place}: {self.name} has "
                f"{len(self)} cases"
            )
        return self.case_ids[place]

    def _find_spelling(self, case_id: str) -> str:
        if case_id in self.case_ids:
            return case_id
        spelled = {case_key(name): name for name in self.case_ids}
        return spelled.get(case_key(case_id), case_id)


@dataclass(frozen=True, slots=True)
class PatientVisit:
    """The exams of a patient at one visit.

    `name` is the visit's name in the data set, or "". `index` is the position of the visit in
    chronological order, from 0, or None if the order is unknown. `cases` holds the cases of the
    visit, for example one for each side.
    """

    name: str
    index: int | None
    cases: DataSet

    @property
    def exams(self) -> "tuple[Exam, ...]":
        """The exams of this visit, each with its sides."""
        by_exam: dict[tuple[tuple[str, str], ...], list[tuple[str, Case]]] = {}
        for case in self.cases:
            files = case.files
            study = tuple((name, files.columns.get(name, "")) for name in ("study", "series"))
            by_exam.setdefault(study, []).append((files.side, case))
        return tuple(Exam(dict(sides)) for sides in by_exam.values())


@dataclass(frozen=True, slots=True)
class Exam:
    """One exam: ``sides`` maps each side to a case; a case with both breasts has the side ""."""

    sides: Mapping[str, Case]

    @property
    def left(self) -> Case | None:
        """The case of the left side, or None."""
        return self.sides.get("left")

    @property
    def right(self) -> Case | None:
        """The case of the right side, or None."""
        return self.sides.get("right")


@dataclass(frozen=True, slots=True)
class Patient:
    """A person and all their exams; `names` has several items if a table links several names."""

    names: tuple[str, ...]
    visits: tuple[PatientVisit, ...]
    cases: DataSet

    @property
    def name(self) -> str:
        """The first of the patient's names."""
        return self.names[0]


def _list_patients(data_set: DataSet) -> tuple[Patient, ...]:
    persons: dict[str, list[str]] = {}
    files_of = {files.case_id: files for files in data_set.opened.data_set.cases}
    for case_id, files in files_of.items():
        persons.setdefault(files.person_key, []).append(case_id)
    patients = []
    for case_ids in persons.values():
        visits: dict[tuple[str, int | None], list[str]] = {}
        for case_id in case_ids:
            visit = files_of[case_id].visit
            key = ("", None) if visit is None else (visit.name, visit.index)
            visits.setdefault(key, []).append(case_id)
        names = dict.fromkeys(files_of[case_id].patient or case_id for case_id in case_ids)
        ordered = sorted(visits.items(), key=lambda item: (item[0][1] is None, item[0][1] or 0))
        patients.append(
            Patient(
                tuple(names),
                tuple(PatientVisit(*key, data_set[ids]) for key, ids in ordered),
                data_set[case_ids],
            )
        )
    return tuple(patients)


def _make_row(row: CaseRow) -> dict[str, Any]:
    record = row.record
    clinical = {name: getattr(record, name) for name in _CLINICAL} if record else {}
    status = clinical.get("menopausal_status")
    return {
        "phases": row.n_phases,
        "reference": row.has_reference,
        "predictions": ", ".join(row.predictions),
        "refined": ", ".join(row.refined),
        "status": row.status,
        "problems": "; ".join(row.problems),
        **clinical,
        "menopausal_status": None if status is None else str(status),
    }


def spell_column(name: object) -> str:
    """Normalise a column name: lower case, without blanks and punctuation."""
    return re.sub(r"[^a-z0-9]+", "", str(name).casefold())


def _is_value(cell: object, wanted: object) -> bool:
    """Return whether a cell equals a value; letter case is ignored in strings."""
    try:
        return float(cell) == float(wanted)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return str(cell).casefold() == str(wanted).casefold()
