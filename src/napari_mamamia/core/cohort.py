"""The clinical data of each case (`CaseRecord` and `Cohort`)."""

import copyreg
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

FIELDS = (
    "age",
    "menopausal_status",
    "breast_density",
    "pcr",
    "tumour_subtype",
    "dataset",
    "acquisition_times_s",
)
"""Fields of a clinical table other than the case id, in display order."""


def read_only(values: dict[str, object]) -> MappingProxyType[str, object]:
    """Return a read-only view of values."""
    return MappingProxyType(values)


copyreg.pickle(MappingProxyType, lambda proxy: (read_only, (dict(proxy),)))
# This makes records picklable for other processes, such as joblib's.


class MenopausalStatus(StrEnum):
    """Menopausal status; a profile may merge peri into pre."""

    PRE = "pre"
    PERI = "peri"
    POST = "post"


@dataclass(frozen=True, slots=True)
class CaseRecord:
    """One row of a clinical table; None means that the value is missing.

    `age` is in years, `breast_density` is "a" to "d" (BI-RADS), and `pcr` is pathologic complete
    response. `acquisition_times_s` are the times of the phases in s after the start of phase 0.
    `other` has all additional columns by name, as text or number.
    """

    case_id: str
    age: float | None = None
    menopausal_status: MenopausalStatus | None = None
    breast_density: str | None = None
    tumour_subtype: str | None = None
    pcr: bool | None = None
    dataset: str | None = None
    acquisition_times_s: tuple[float, ...] | None = None
    other: Mapping[str, str | float | bool | None] = field(
        default_factory=lambda: MappingProxyType({})
    )


@dataclass(frozen=True, slots=True)
class RejectedCell:
    """A table cell that could not be read: its name in the sheet (B7), column and content."""

    cell: str
    column: str
    value: str
    reason: str


@dataclass(frozen=True, slots=True)
class RefusedRow:
    """A rejected table row: its number in the spreadsheet (from 1), the reason and the cells.

    `cells` is empty if the problem concerns the whole row, for example if it repeats a case.
    """

    row: int
    reason: str
    cells: tuple[RejectedCell, ...] = ()


@dataclass(frozen=True, slots=True)
class Cohort:
    """The cases of a clinical table in table order, with the rows that could not be read.

    `notes` are sentences about assumptions made while reading, such as an encoding or title rows.
    """

    records: tuple[CaseRecord, ...]
    refused: tuple[RefusedRow, ...] = ()
    notes: tuple[str, ...] = ()

    def coverage(self) -> Mapping[str, int]:
        """Return, for each field in `FIELDS`, the number of cases that have a value."""
        return MappingProxyType(
            {
                name: sum(getattr(record, name) is not None for record in self.records)
                for name in FIELDS
            }
        )

    def by_id(self) -> Mapping[str, CaseRecord]:
        """Return the records by case id."""
        return MappingProxyType({record.case_id: record for record in self.records})


def coverage_text(n_cases: int, coverage: Mapping[str, int]) -> str:
    """Return a sentence with the number of cases and the number of values of each field.

    Examples
    --------
    >>> coverage_text(1506, {"age": 1503, "pcr": 0})
    'clinical table: 1,506 cases; age 1,503 of 1,506, pcr 0 of 1,506'
    """
    fields = ", ".join(
        f"{name.removesuffix('_s').replace('_', ' ')} {n:,} of {n_cases:,}"
        for name, n in coverage.items()
    )
    cases = "case" if n_cases == 1 else "cases"
    return f"clinical table: {n_cases:,} {cases}; {fields}"
