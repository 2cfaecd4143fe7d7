"""`measure_kinetics` measures contrast curves, FTV and sizes in a data set."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from functools import partial
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from napari_mamamia.core.errors import ArgumentError
from napari_mamamia.core.records import CaseFailure
from napari_mamamia.kinetics.of_case import timing_rule
from napari_mamamia.kinetics.repeated_pre import RepeatedPre
from napari_mamamia.kinetics.tumour_volume import FtvSettings, FtvVariant
from napari_mamamia.library.argument_words import advise_failures, advising_arguments
from napari_mamamia.library.arguments import (
    ExistingName,
    PathLike,
    case_ids_of,
    existing_of,
    named,
    path_of,
    place_of,
)
from napari_mamamia.library.data_set import DataSet
from napari_mamamia.library.page import html_of
from napari_mamamia.library.progress import drive
from napari_mamamia.services.batch.row_table import RowSummary
from napari_mamamia.services.kinetics.case_kinetics import FtvBox, KineticSettings
from napari_mamamia.services.kinetics.kinetics import kinetics_of_data_set
from napari_mamamia.services.kinetics.row import KineticRow

if TYPE_CHECKING:
    import pandas as pd

_SHOWN: Final = ("volume_mm3", "ftv_cc", "peak_pe_of_mean_percent", "worst_curve", "timing")


class Measurements:
    """Kinetics of a data set: ``.cases`` is a table; ``.folder`` has the table and figures."""

    def __init__(self, summary: RowSummary[KineticRow]) -> None:
        self._summary = summary

    def __repr__(self) -> str:
        failed = f", {len(self.failures)} failed" if self.failures else ""
        return f"Measurements({len(self._summary.rows)} cases{failed}, {str(self.folder)!r})"

    def _repr_html_(self) -> str:
        failed = "".join(f"<p>⚠ {escape(f.case_id)}: {escape(f.reason)}</p>" for f in self.failures)
        columns = [name for name in _SHOWN if name in self.cases.columns]
        return f"<p><b>{escape(repr(self))}</b></p>{failed}{html_of(self.cases[columns])}"

    @property
    def folder(self) -> Path:
        """The folder with ``kinetics.csv``, ``curves.csv``, ``kinetics.json`` and the figures."""
        return self._summary.folder

    @property
    def failures(self) -> tuple[CaseFailure, ...]:
        """The cases that could not be measured, each with its reason."""
        return advise_failures(self._summary.failures, measure_kinetics)

    @property
    def cases(self) -> "pd.DataFrame":
        """A table with one row per case, indexed by case id: the columns of ``kinetics.csv``.

        Values that are undefined are NaN.
        """
        import pandas as pd

        table = pd.DataFrame([asdict(row) for row in self._summary.rows])
        return table.set_index("case_id") if len(table) else table


@advising_arguments
def measure_kinetics(
    data_set: DataSet,
    out: PathLike,
    *,
    masks: PathLike | None = None,
    case_ids: str | Iterable[str] | None = None,
    times_s: Sequence[float] | None = None,
    box: Literal["mask", "breast"] = "mask",
    variant: Literal["ucsf-extension", "ucsf-ispy1"] = "ucsf-extension",
    timing: Literal["UCSF-FTV", "phase0-start"] = "UCSF-FTV",
    injection_s: float | None = None,
    phases: tuple[int, int] | None = None,
    repeated_pre: Literal["leave-out", "average", "keep"] = "leave-out",
    existing: ExistingName = "refuse",
    workers: int = 0,
    progress: bool = True,
) -> Measurements:
    """Measure contrast curves, curve types, FTV and sizes in every case.

    Parameters
    ----------
    data_set
        The data set, as returned by `open_data_set`.
    out
        The folder for ``kinetics.csv`` (and ``.xlsx``), ``curves.csv`` and the figures.
    masks
        A folder of masks, or the result of `predict`; by default the reference masks.
    case_ids
        The cases to measure; by default all.
    times_s
        The time of each phase in seconds; by default, the times in the data set.
    box, variant
        The region and the variant of FTV, as in ``kinetics.ftv``.
    timing, injection_s, phases, repeated_pre
        As in ``kinetics.maps``.
    existing
        What to do if `out` is not empty: "refuse", "resume" or "overwrite".
    workers
        The number of parallel processes; 0 uses only this process.
    progress
        Whether to show a progress bar.

    Returns
    -------
    Measurements
        The result. ``.cases`` is a table; ``.failures`` lists the cases that could not be measured.

    Raises
    ------
    CaseError, FormatError
        If a case id is unknown, or the folder `masks` is missing or contains no mask.
    SaveConflictError
        If `out` contains other results.
    ArgumentError
        If an argument has the wrong type.

    Examples
    --------
    >>> mm.measure_kinetics(data_set, "kinetics").cases["ftv_cc"]  # doctest: +SKIP
    """
    if not isinstance(data_set, DataSet):
        raise ArgumentError(
            f"expected a data set, but got {type(data_set).__name__}: pass the result of "
            "`open_data_set(path)`"
        )
    settings = KineticSettings(
        _parse_times(times_s),
        rule=timing_rule(timing, injection_s, phases),
        ftv=FtvSettings.of(_find_variant(variant)),
        ftv_box=named(FtvBox, box, "box"),
        repeated_pre=named(RepeatedPre, repeated_pre, "repeated_pre"),
    )
    job = partial(
        kinetics_of_data_set,
        data_set.opened,
        path_of(out, "out"),
        settings,
        masks=None if masks is None else path_of(masks, "masks"),
        case_ids=case_ids_of(case_ids),
        place=place_of(workers),
        existing=existing_of(existing),
    )
    return Measurements(drive(job, progress, starts_processes=workers > 0))


def _find_variant(given: str) -> FtvVariant:
    """Return the FTV variant with a name; OWN is an error, because only the window sets it."""
    if given == FtvVariant.OWN:
        given = f"{given} (which only the window accepts)"
    try:
        return FtvVariant(given)
    except ValueError:
        raise ArgumentError(
            f'expected variant to be "{FtvVariant.EXTENSION}" or "{FtvVariant.ISPY1}", but got '
            f"{given!r}"
        ) from None


def _parse_times(given: Sequence[float] | None) -> tuple[float, ...] | None:
    if given is None:
        return None
    try:
        return tuple(float(time) for time in given)
    except (TypeError, ValueError) as error:
        raise ArgumentError(
            f"expected times_s to be the time of each phase in seconds, but got {given!r}; pass "
            "numbers such as (0, 90, 180)"
        ) from error
