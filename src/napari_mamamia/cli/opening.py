"""Open a data set for a command, printing warnings on the error stream."""

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from napari_mamamia.cli.options import column_choice
from napari_mamamia.cli.printing import run
from napari_mamamia.core.names import printable

if TYPE_CHECKING:
    from napari_mamamia.services.case.data_set import OpenDataSet


def open_at(
    path: Path,
    columns: Path | None = None,
    layout: str = "",
    patients: Sequence[str] | None = None,
    visits: Sequence[str] | None = None,
) -> "OpenDataSet":
    """Open a data set and print its warnings.

    `columns` is a file that names the columns of the clinical table. `layout` is the name of a
    layout, or a file that describes a layout. `patients` and `visits` select the exams to keep.
    """
    from napari_mamamia.services.case.data_set import open_data_set, select_exams

    opened = run(partial(open_data_set, path, columns=column_choice(columns), layout=layout))
    if patients or visits:
        opened = select_exams(opened, patients or (), visits or ())
    for note in opened.clinical_notes:
        print(f"clinical table: {printable(note)}", file=sys.stderr)
    for warning in opened.warnings:
        print(f"warning: {printable(warning)}", file=sys.stderr)
    return opened
