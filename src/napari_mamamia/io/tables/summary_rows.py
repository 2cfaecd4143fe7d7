"""Rows of a table that are no case: means, totals and units, in several languages."""

import re
from typing import Final

_SUMMARY_WORDS: Final = """
mean means average averages avg median std stdev stddev sd sem se stderr var variance min minimum
max maximum sum total totals overall count iqr ci percentile quantile quartile gmean
mittelwert mittel durchschnitt standardabweichung stdabw stabw varianz summe gesamt insgesamt
gesamtergebnis moyenne moy m\u00e9diane mediane \u00e9cart ecart somme ensemble media mediana
promedio desviaci\u00f3n desviacion deviazione suma somma totale gemiddelde mediaan totaal
standaardafwijking medel
medelv\u00e4rde \u5e73\u5747 \u5e73\u5747\u503c \u5747\u503c \u4e2d\u4f4d\u6570
\u6807\u51c6\u5dee \u603b\u8ba1 \u5408\u8ba1
"""
_NUMBERS_OF_ALL: Final = frozenset(_SUMMARY_WORDS.split())
"""What a program or a person names a row that sums up others."""
_OTHER_WORDS: Final = """
of over all cases case the and patients subjects samples rows values value n dice dsc score scores
hd nhd norm dev deviation standard error row result results lower upper low high bound limit
interval range confidence macro micro grand weighted geometric arithmetic fold folds type typ
est\u00e1ndar estandar de des der den aller alle f\u00e4lle et y und la le les los cas casos
t\u00edpica tipica
"""
_BESIDE: Final = frozenset(_OTHER_WORDS.split())
_WHOLE: Final = frozenset({"all", "all cases", "alle", "alle f\u00e4lle", "tous", "todos", "n"})
_TOKEN: Final = re.compile(r"[^\W\d_]+|\d+(?:[.,]\d+)?")
_PERCENTILE: Final = re.compile(r"\d{1,2}(\.\d+)?\s?%")
_WITH_NUMBER: Final = frozenset({"n", "ci", "percentile", "quantile", "quartile", "cases"})

_UNIT_WORDS: Final = """
mm cm m mm2 mm3 mm\u00b2 mm\u00b3 cm3 cm\u00b3 ml cc voxel voxels vox px pixel s sec seconds ms min
y yr yrs years jahre % percent au a.u. 0/1 0-1 0..1 yes/no 1 -
"""
_UNITS: Final = frozenset(_UNIT_WORDS.split())
_ID_OF_UNITS: Final = frozenset({"", "-", "unit", "units", "einheit", "einheiten", "unidad"})
_BRACKETS: Final = re.compile(r"[\[(](.*)[\])]")


def is_summary(cell: object) -> bool:
    """Whether the cell where a case's id is expected names a summary of other rows.

    Examples
    --------
    >>> [is_summary(text) for text in ("Mean \u00b1 SD", "AVERAGE", "95% CI", "25%", "MEAN_001")]
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


def unit_of(cell: object) -> str | None:
    """Return the unit that a cell names, None where it names none.

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
    """Whether the row below a header names units: no id, and each other cell a unit or empty."""
    if id_cell is not None and str(id_cell).strip(" []()").casefold() not in _ID_OF_UNITS:
        return False
    filled = [cell for cell in others if cell is not None and str(cell).strip()]
    units = [unit_of(cell) for cell in filled]
    return bool(units) and None not in units and set(units) != {"1"}


def split_unit(name: str) -> tuple[str, str]:
    """Return a column's name and the unit in brackets behind it, "" without one.

    Examples
    --------
    >>> split_unit("x1 (mm)"), split_unit("dsc [%]"), split_unit("dsc")
    (('x1', 'mm'), ('dsc', '%'), ('dsc', ''))
    """
    before, bracket, _ = name.rstrip().rpartition("(" if name.rstrip().endswith(")") else "[")
    unit = unit_of(name.rstrip()[len(before) :]) if bracket and before.strip() else None
    return (before.strip(), unit) if unit is not None else (name, "")
