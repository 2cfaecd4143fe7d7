"""`import_dicom` imports DICOM studies as cases; `inspect_dicom` previews an import."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from napari_mamamia.core.choices import Clock, Dates, Sides
from napari_mamamia.core.errors import ArgumentError
from napari_mamamia.core.records import CaseFailure
from napari_mamamia.io.exam.selectors import read_selectors
from napari_mamamia.library.argument_words import (
    advise_failures,
    advising_arguments,
    name_arguments,
)
from napari_mamamia.library.arguments import (
    ExistingName,
    PathLike,
    columns_of,
    existing_of,
    named,
    path_of,
)
from napari_mamamia.library.data_set import DataSet, open_data_set
from napari_mamamia.library.page import html_of
from napari_mamamia.library.progress import drive
from napari_mamamia.services.dicom.dicom import ImportSummary
from napari_mamamia.services.dicom.dicom import import_dicom as importing
from napari_mamamia.services.dicom.finding import ImportSettings, look_into

if TYPE_CHECKING:
    import pandas as pd

_SHOWN: Final = (
    "number",
    "part",
    "description",
    "n_images",
    "n_slices",
    "n_phases",
    "role",
    "evidence",
    "use",
    "fate",
)


class Imported:
    """The result of an import: ``.cases`` is a table, and ``.data_set`` opens the data set."""

    def __init__(self, summary: ImportSummary, out: Path) -> None:
        self._summary, self._out = summary, out

    def __repr__(self) -> str:
        there = len(self._summary.skipped)
        skipped = f", {there} existed already" if there else ""
        failed = f", {len(self.failures)} failed" if self.failures else ""
        return (
            f"Imported({len(self._summary.imported)} cases{skipped}{failed}, {str(self.folder)!r})"
        )

    def _repr_html_(self) -> str:
        failed = "".join(f"<p>⚠ {escape(f.case_id)}: {escape(f.reason)}</p>" for f in self.failures)
        return f"<p><b>{escape(repr(self))}</b></p>{failed}{html_of(self.cases)}"

    @property
    def folder(self) -> Path:
        """The folder of the data set to which the cases were written."""
        return self._out

    @property
    def failures(self) -> tuple[CaseFailure, ...]:
        """The studies that could not be imported, each with its reason."""
        return advise_failures(self._summary.failures, import_dicom)

    @property
    def data_set(self) -> DataSet:
        """The data set, opened anew at each access."""
        return open_data_set(self._out, progress=False)

    @property
    def cases(self) -> "pd.DataFrame":
        """A table with one row per imported case, indexed by case id.

        The columns are ``phases``, ``shape`` ``(z, y, x)``, ``times_s``, ``clock`` (the DICOM
        element by which the phases were ordered), ``scaling``, ``warnings``, and ``kept`` (the
        DICOM attributes kept from the headers).
        """
        import pandas as pd

        rows = [
            {
                "phases": len(list(case.folder.glob("*.nii.gz"))),
                "shape": case.shape,
                "times_s": case.times_s,
                "clock": case.clock,
                "scaling": case.scaling,
                "warnings": "; ".join(
                    warning.text + name_arguments(warning.remedies, import_dicom)
                    for warning in case.warnings
                ),
                "kept": ", ".join(f"{name}={value}" for name, value in case.kept),
            }
            for case in self._summary.imported
        ]
        ids = pd.Index(
            [case.case_id for case in self._summary.imported], name="case_id", dtype=object
        )
        columns = ["phases", "shape", "times_s", "clock", "scaling", "warnings", "kept"]
        return pd.DataFrame(rows, index=ids, columns=columns)


@advising_arguments
def import_dicom(
    source: PathLike,
    out: PathLike,
    case_id: str = "",
    *,
    phases: Sequence[int] = (),
    use: str | Iterable[str] = (),
    leave_out: str | Iterable[str] = (),
    clock: str | None = None,
    sides: Literal["ask", "join", "two"] = "ask",
    dates: Literal["drop", "shift"] = "drop",
    allow_thin: bool = False,
    columns: PathLike | Mapping[str, str | None] | None = None,
    existing: ExistingName = "refuse",
    progress: bool = True,
) -> Imported:
    """Import each DICOM study as a case of the data set `out`, as ``mamamia import`` does.

    Patient identifiers are removed; ``.cases["kept"]`` lists the DICOM attributes that are kept.

    Parameters
    ----------
    source
        A folder, which is searched with its subfolders, or a zip archive. Neither is changed.
    out
        A data set in the MAMA-MIA layout. It is created if it does not exist; its other cases are
        not changed.
    case_id
        The id of the case, or the prefix of several ids; by default the folder's name.
    phases
        The phases to keep, counted from 0 in order of time. By default, all phases are kept.
    use, leave_out
        Selectors of the series parts to use and to leave out, such as ``"series=5,role=water"``;
        see `inspect_dicom`.
    clock
        The DICOM element by which the phases are ordered, such as "AcquisitionTime". By default, it
        is chosen automatically.
    sides
        How an exam with one sagittal stack per breast is imported: "ask" raises an error, "join"
        makes one case, and "two" makes the cases ID_left and ID_right.
    dates
        Whether the exam date is removed, or kept but shifted.
    allow_thin
        Whether exams of one or two slices are accepted.
    columns
        The columns of the data set's clinical table, as in `open_data_set`.
    existing
        What to do if the case exists: "refuse", "resume" (keep the case) or "overwrite".
    progress
        Whether to show a progress bar.

    Returns
    -------
    Imported
        The result, with ``.cases`` (a table), ``.failures`` and ``.data_set``.

    Raises
    ------
    MissingExtraError
        If pydicom is not installed.
    FormatError, CaseError
        If the source or its only study cannot be imported; the message gives the reason and the
        remedies.
    SaveConflictError
        If the case already exists.
    ArgumentError
        If an argument has the wrong type.

    Examples
    --------
    >>> mm.import_dicom("study", "my data", "P001").data_set["P001"].times_s  # doctest: +SKIP
    (0.0, 92.5, 185.0)
    """
    settings = _make_settings(
        phases, use, leave_out, clock, sides, dates, allow_thin, columns, existing
    )
    dicom, target = path_of(source, "the DICOM source"), path_of(out, "out")
    return Imported(
        drive(partial(importing, dicom, target, _require_id(case_id), settings), progress), target
    )


@advising_arguments
def inspect_dicom(
    source: PathLike,
    *,
    use: str | Iterable[str] = (),
    leave_out: str | Iterable[str] = (),
    clock: str | None = None,
    sides: Literal["ask", "join", "two"] = "ask",
    allow_thin: bool = False,
    progress: bool = True,
) -> "pd.DataFrame":
    """List what a DICOM folder or zip archive contains, and how an import would use it.

    Parameters
    ----------
    source, use, leave_out, clock, sides, allow_thin, progress
        As in `import_dicom`.

    Returns
    -------
    pandas.DataFrame
        A table with one row for each part of each series. The columns are ``study``, ``number`` (of
        the series), ``part``, ``description``, ``n_images``, ``n_slices``, ``n_phases``, ``role``,
        ``evidence``, ``use``, ``fate``, and ``problem`` (the reason why the study cannot be
        imported).

    Raises
    ------
    MissingExtraError, FormatError, ArgumentError
        As in `import_dicom`.

    Examples
    --------
    >>> mm.inspect_dicom("study")[["description", "role", "fate"]]  # doctest: +SKIP
    """
    import pandas as pd

    settings = _make_settings((), use, leave_out, clock, sides, "drop", allow_thin, None, "refuse")
    studies = drive(partial(look_into, path_of(source, "the DICOM source"), "", settings), progress)
    rows = [
        {
            "study": study.case_id,
            **{name: getattr(row, name) for name in _SHOWN},
            "problem": study.problem + name_arguments(study.remedies, import_dicom),
        }
        for study in studies
        for row in study.rows
    ]
    return pd.DataFrame(rows, columns=["study", *_SHOWN, "problem"])


def _make_settings(
    phases: Sequence[int],
    use: str | Iterable[str],
    leave_out: str | Iterable[str],
    clock: str | None,
    sides: str,
    dates: str,
    allow_thin: bool,
    columns: PathLike | Mapping[str, str | None] | None,
    existing: str,
) -> ImportSettings:
    if not all(_is_index(k) for k in phases):
        raise ArgumentError(
            f"expected phase numbers to be 0 or above, but got {phases!r}: pass, for example, [0, "
            "1, 2]"
        )
    return ImportSettings(
        None if clock is None else named(Clock, clock, "clock"),
        tuple(int(k) for k in phases),
        read_selectors((use,) if isinstance(use, str) else tuple(use)),
        read_selectors((leave_out,) if isinstance(leave_out, str) else tuple(leave_out)),
        named(Dates, dates, "dates"),
        existing_of(existing),
        bool(allow_thin),
        named(Sides, sides, "sides"),
        columns_of(columns),
    )


def _is_index(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _require_id(case_id: str) -> str:
    if not isinstance(case_id, str):
        raise ArgumentError(
            f"expected the case id to be a string, but got {case_id!r}: pass a string"
        )
    return case_id
