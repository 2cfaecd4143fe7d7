"""Conversion of numbers to text, and records for tables in reports."""

from dataclasses import dataclass
from math import isnan
from typing import ClassVar, Final

from napari_mamamia.core.records import CaseScore, ScoreStatus
from napari_mamamia.scoring.cohort.groups import TAG

SIZES: Final = {"volume": "Size by volume", "diameter": "Size by diameter"}
"""Short names of the strata by size, for columns and axes."""

UNKNOWN: Final = "–"
DECIMALS: Final = 3

_VARIABLES: Final = {
    "age": "Age (years)",
    "menopausal_status": "Menopausal status",
    "breast_density": "Breast density (BI-RADS)",
    "dataset": "Centre (data set)",
    "tumour_subtype": "Tumour subtype",
    "volume": "Tumour size (20th, 80th percentile of volume)",
    "manufacturer": "Manufacturer",
    "field_strength": "Field strength (T)",
    "multifocal_cancer": "Multifocal cancer (1: yes)",
    "bilateral_breast_cancer": "Bilateral cancer (1: yes)",
    "diameter": "Longest diameter (20, 50 mm)",
    "pcr": "Pathologic complete response (pCR)",
}


@dataclass(frozen=True, slots=True)
class Column:
    """The heading of a column; numbers are right-aligned, and short `is_whole` cells do not wrap.

    `WHOLE_LETTERS` is the largest width of such a cell, for example a case id (our choice). A
    longer id wraps, and the other ids remain on one line.
    """

    label: str
    is_number: bool = True
    is_whole: bool = False
    WHOLE_LETTERS: ClassVar[int] = 24


@dataclass(frozen=True, slots=True)
class Row:
    """The cells of a row; `is_small` greys out the row, and `link` is the target of its name."""

    cells: tuple[str, ...]
    is_small: bool = False
    link: str = ""


@dataclass(frozen=True, slots=True)
class ReportTable:
    """A table with a title above and notes below; `listed` contains long collapsed lists."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    listed: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """A question, such as "How certain", and sentences that answer it."""

    question: str
    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Way:
    """A link to another page of the same report."""

    text: str
    target: str


def number(value: float, decimals: int = DECIMALS) -> str:
    """Return a number as text for reports, or "–" for nan.

    Examples
    --------
    >>> number(0.73649), number(float("nan")), number(12345.6, 0)
    ('0.736', '–', '12,346')
    """
    if isnan(value):
        return UNKNOWN
    text = f"{value:,.{decimals}f}"
    return text.removeprefix("-") if not text.strip("-0.,") else text.replace("-", "−")


def range_text(low: float, high: float, decimals: int = DECIMALS) -> str:
    """Return both ends of an interval as text, or "–" if there is no interval.

    Examples
    --------
    >>> range_text(0.7012, 0.7588)
    '0.701 to 0.759'
    """
    if isnan(low) or isnan(high):
        return UNKNOWN
    return f"{number(low, decimals)} to {number(high, decimals)}"


def p_text(p_value: float) -> str:
    """Return a p-value with two significant digits.

    Examples
    --------
    >>> p_text(0.0321), p_text(0.000999), p_text(0.5)
    ('0.032', '< 0.001', '0.50')
    """
    if isnan(p_value):
        return UNKNOWN
    if p_value < 0.001:
        return "< 0.001"
    return f"{p_value:.3f}" if p_value < 0.1 else f"{p_value:.2f}"


def p_said(p_value: float) -> str:
    """Return a p-value as a phrase for a sentence.

    Examples
    --------
    >>> p_said(0.0321), p_said(0.000999)
    ('p = 0.032', 'p < 0.001')
    """
    text = p_text(p_value)
    return f"p {text}" if text.startswith("<") else f"p = {text}"


def variable_label(variable: str) -> str:
    """Return the title of a group variable."""
    if variable.startswith(TAG):
        return f"Tag: {variable.removeprefix(TAG)}"
    return _VARIABLES.get(variable, variable.replace("_", " "))


STATUS_TEXTS: Final = {
    ScoreStatus.OK: "scored",
    ScoreStatus.PREDICTION_MISSING: "no prediction",
    ScoreStatus.REFERENCE_MISSING: "no reference",
    ScoreStatus.PREDICTION_EMPTY: "prediction empty",
    ScoreStatus.REFERENCE_EMPTY: "reference empty",
    ScoreStatus.BOTH_EMPTY: "both empty",
    ScoreStatus.GRID_MISMATCH: "other grid",
    ScoreStatus.UNREADABLE: "unreadable",
    ScoreStatus.NOT_FINITE: "not finite",
    ScoreStatus.TOO_MANY_LABELS: "too many labels",
    ScoreStatus.SEVERAL_FILES: "several files",
    ScoreStatus.REFERENCE_UNREADABLE: "reference unreadable",
    ScoreStatus.TIME_LIMIT: "over the time limit",
    ScoreStatus.WORKER_LOST: "worker lost",
}
"""The text that describes each status."""


def name_status(row: CaseScore) -> str:
    """Return the text that describes a row's status, including scored masks without any overlap."""
    return "no overlap" if row.is_disjoint else STATUS_TEXTS[row.status]
