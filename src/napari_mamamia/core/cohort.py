"""`CaseRecord` and `Cohort`: what the clinical table knows of each case."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

__all__ = ["CaseRecord", "Cohort", "MenopausalStatus", "RefusedRow"]


class MenopausalStatus(StrEnum):
    """Menopausal status; a profile may merge peri into pre."""

    PRE = "pre"
    PERI = "peri"
    POST = "post"


@dataclass(frozen=True, slots=True)
class CaseRecord:
    """One row of a clinical table; None means missing, never a guess.

    `age` in years; `breast_density` "a" to "d" (BI-RADS); `pcr` pathologic complete response;
    `acquisition_times_s` seconds since the start of phase 0, one for each phase; `other` holds
    every further column under its own name, as text or number.
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
class RefusedRow:
    """A table row that was not read: its number in the spreadsheet (header is 1), and why."""

    row: int
    reason: str


@dataclass(frozen=True, slots=True)
class Cohort:
    """The cases of one clinical table, in its order, and the rows that were refused."""

    records: tuple[CaseRecord, ...]
    refused: tuple[RefusedRow, ...] = ()

    def by_id(self) -> Mapping[str, CaseRecord]:
        """Return the records by case id."""
        return MappingProxyType({record.case_id: record for record in self.records})
