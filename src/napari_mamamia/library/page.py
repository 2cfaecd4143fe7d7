"""Show tables in a notebook."""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import pandas as pd

_MOST_ROWS: Final = 30
_LONGEST: Final = 90


def html_of(table: "pd.DataFrame") -> str:
    """Format a table as HTML: omit empty columns, shorten long strings, show NaN as a dash."""
    columns = [name for name in table.columns if not (len(table) and table[name].eq("").all())]
    shown = table[columns].map(_shorten_cell)
    page = shown.to_html(
        float_format="{:.4g}".format, na_rep="–", escape=True, max_rows=_MOST_ROWS, justify="left"
    )
    return str(page)


def _shorten_cell(cell: object) -> object:
    is_long = isinstance(cell, str) and len(cell) > _LONGEST
    return f"{str(cell)[:_LONGEST]}…" if is_long else cell
