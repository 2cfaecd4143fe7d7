"""Find table rows that are not cases: means, totals and units, in several languages."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, SupportsFloat

import numpy as np
from numpy.typing import NDArray

_SUMMARY_WORDS: Final = """
mean means average averages avg median std stdev stddev sd sem se stderr var variance min minimum
max maximum sum total totals overall count iqr ci percentile quantile quartile gmean
mittelwert mittel durchschnitt standardabweichung stdabw stabw varianz summe gesamt insgesamt
gesamtergebnis moyenne moy m\u00e9diane mediane \u00e9cart ecart somme ensemble media mediana
promedio desviaci\u00f3n desviacion deviazione suma somma totale gemiddelde mediaan totaal
standaardafwijking medel
medelv\u00e4rde \u5e73\u5747 \u5e73\u5747\u503c \u5747\u503c \u4e2d\u4f4d\u6570
\u6807\u51c6\u5dee \u603b\u8ba1 \u5408\u8ba1
gesamtmittelwert vertrauensintervall konfidenzintervall m\u00e9dia \u015brednia suma
\u0441\u0440\u0435\u0434\u043d\u0435\u0435 \u043c\u0435\u0434\u0438\u0430\u043d\u0430
\u0441\u0443\u043c\u043c\u0430 skewness kurtosis aggregate summary qu
"""
_NUMBERS_OF_ALL: Final = frozenset(_SUMMARY_WORDS.split())
"""Names that programs and people use for summary rows."""
_OTHER_WORDS: Final = """
of over all cases case the and patients subjects samples rows values value n dice dsc score scores
hd nhd norm dev deviation standard error row result results lower upper low high bound limit
interval range confidence macro micro grand weighted geometric arithmetic fold folds type typ
est\u00e1ndar estandar de des der den aller alle f\u00e4lle et y und la le les los cas casos
t\u00edpica tipica foreground test val validation train general g\u00e9n\u00e9ral
g\u00e9n\u00e9rale number st nd rd th
"""
_BESIDE: Final = frozenset(_OTHER_WORDS.split())
_WHOLE: Final = frozenset({"all", "all cases", "alle", "alle f\u00e4lle", "tous", "todos", "n"})
_TOKEN: Final = re.compile(r"[^\W\d_]+|\d+(?:[.,]\d+)?")
_PERCENTILE: Final = re.compile(r"\d{1,2}(\.\d+)?\s?%")
_WITH_NUMBER: Final = frozenset(
    {"n", "ci", "percentile", "quantile", "quartile", "cases", "qu", "fold"}
)

_DIGITS: Final = re.compile(r"\d+")
_LETTERS: Final = re.compile(r"[^\W\d_]+")
_COHORT: Final = re.compile(r"[^\W\d_]{2,}\d?[_-]\d+|(?=.{8})[A-Z\d]+([_-][A-Z\d]+)+")
_LONG_NUMBER: Final = 3
_FEWEST: Final = 4
_MOST_SUMMARIES: Final = 12
_STATISTICS: Final[Mapping[str, Callable[[NDArray[np.float64]], SupportsFloat]]] = {
    "mean": np.mean,
    "median": np.median,
    "standard deviation": lambda values: np.std(values, ddof=1),
    "standard deviation (n)": np.std,
    "minimum": np.min,
    "maximum": np.max,
    "sum": np.sum,
    "count": len,
    "first quartile": lambda values: np.quantile(values, 0.25),
    "third quartile": lambda values: np.quantile(values, 0.75),
    "5th percentile": lambda values: np.quantile(values, 0.05),
    "95th percentile": lambda values: np.quantile(values, 0.95),
    "standard error": lambda values: np.std(values, ddof=1) / np.sqrt(len(values)),
    "variance": lambda values: np.var(values, ddof=1),
    "range": np.ptp,
    "coefficient of variation": lambda values: np.std(values, ddof=1) / np.mean(values),
}

_UNIT_WORDS: Final = """
mm cm m mm2 mm3 mm\u00b2 mm\u00b3 cm3 cm\u00b3 ml cc voxel voxels vox px pixel s sec seconds ms min
y yr yrs years jahre % percent au a.u. 0/1 0-1 0..1 yes/no 1 -
"""
_UNITS: Final = frozenset(_UNIT_WORDS.split())
_ID_OF_UNITS: Final = frozenset({"", "-", "unit", "units", "einheit", "einheiten", "unidad"})
_BRACKETS: Final = re.compile(r"[\[(](.*)[\])]")


def is_summary(cell: object) -> bool:
    """Return whether the id cell of a row names a summary of other rows.

    Examples
    --------
    >>> [is_summary(text) for text in ("Mean ± SD", "AVERAGE", "95% CI", "25%", "MEAN_001")]
    [True, True, True, True, False]
    """
    if not isinstance(cell, str) or (cell[-1:].isdigit() and "=" not in cell):
        return False
    text = " ".join(cell.casefold().strip().strip("#*:=-_\u00f8\u2300 ").split())
    if text in _WHOLE or _PERCENTILE.fullmatch(text):
        return True
    tokens = _TOKEN.findall(text)
    words = {token for token in tokens if not token[0].isdigit()}
    if len(words) < len(set(tokens)) and not words & _WITH_NUMBER:
        return False
    return bool(words & _NUMBERS_OF_ALL) and words <= _NUMBERS_OF_ALL | _BESIDE


def find_odd_ids(cells: Sequence[object]) -> frozenset[str]:
    """Return the ids whose form differs from all others, in any language.

    All others have a digit and this one has none; or all others have a number of at least three
    digits, and this one a shorter number in a form that no cohort uses (``NACT_12``,
    ``TCGA-AR-A1AX``); or all others are plain numbers. There is no result if there are fewer than
    four others, or more odd ids than a summary has rows.

    Examples
    --------
    >>> cases = [f"DUKE_{number:03d}" for number in range(1, 9)]
    >>> sorted(find_odd_ids([*cases, "ISPY1_1001", "NACT_12", "Moyen", "1st Qu."]))
    ['1st Qu.', 'Moyen']
    """
    texts = dict.fromkeys(str(cell).strip() for cell in cells if cell is not None)
    longest = {text: max(map(len, _DIGITS.findall(text)), default=0) for text in texts if text}
    whole = [text for text, length in longest.items() if length]
    if all(text.isdecimal() for text in whole[:_FEWEST]):
        others = [text for text in whole if text.isdecimal()]
    else:
        long = {_form(text) for text in whole if longest[text] >= _LONG_NUMBER}
        others = [
            text
            for text in whole
            if not long
            or _form(text) in long
            or longest[text] >= _LONG_NUMBER
            or _COHORT.fullmatch(text)
        ]
    odd = frozenset(longest) - frozenset(others)
    is_rule = len(others) >= _FEWEST and len(odd) < len(others) and len(odd) <= _MOST_SUMMARIES
    return odd if is_rule else frozenset()


def _form(text: str) -> str:
    return _LETTERS.sub("a", _DIGITS.sub("9", text))


def find_statistic(cells: Sequence[tuple[str, NDArray[np.float64]]]) -> str:
    """Return the statistic of the other rows that a row contains, or "".

    Parameters
    ----------
    cells
        For each column of numbers the row's number as written, and those of the other rows.
        All must be the same statistic, each to its written digits.
    """
    return next(
        (
            name
            for name, of in _STATISTICS.items()
            if cells and all(_is_written(text, float(of(values))) for text, values in cells)
        ),
        "",
    )


def _is_written(text: str, value: float) -> bool:
    mantissa, _, exponent = text.lower().partition("e")
    decimals = len(mantissa.partition(".")[2]) - int(exponent or 0)
    return abs(float(text) - value) <= 0.51 * 10.0**-decimals + 1e-9 * abs(value)


def unit_of(cell: object) -> str | None:
    """Return the unit that a cell names, or None.

    Examples
    --------
    >>> unit_of("[mm]"), unit_of("%"), unit_of("DUKE_001")
    ('mm', '%', None)
    """
    if not isinstance(cell, str):
        return None
    text = cell.strip().casefold()
    bracketed = _BRACKETS.fullmatch(text)
    inner = bracketed[1].strip() if bracketed else text
    return inner if inner in _UNITS else None


def is_unit_row(id_cell: object, others: list[object]) -> bool:
    """Return whether the row below a header names units: no id, and only units or empty cells."""
    if id_cell is not None and str(id_cell).strip(" []()").casefold() not in _ID_OF_UNITS:
        return False
    filled = [cell for cell in others if cell is not None and str(cell).strip()]
    units = [unit_of(cell) for cell in filled]
    return bool(units) and None not in units and set(units) != {"1"}


def split_unit(name: str) -> tuple[str, str]:
    """Return a column's name and the unit in brackets after it ("" without one).

    Examples
    --------
    >>> split_unit("x1 (mm)"), split_unit("dsc [%]"), split_unit("dsc")
    (('x1', 'mm'), ('dsc', '%'), ('dsc', ''))
    """
    before, bracket, _ = name.rstrip().rpartition("(" if name.rstrip().endswith(")") else "[")
    unit = unit_of(name.rstrip()[len(before) :]) if bracket and before.strip() else None
    return (before.strip(), unit) if unit is not None else (name, "")
