"""`mamamia check-computer`: report hardware and software, and test models with known output."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from napari_mamamia.cli.options import OverwriteOption
from napari_mamamia.cli.printing import NOT_EVERY_CASE, run
from napari_mamamia.cli.scripting import report_result, reports_result


@reports_result
def check_computer(
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Text file for the log.")
    ] = None,
    case: Annotated[
        Path | None, typer.Option("--case", metavar="PATH", help="One of your own cases to test.")
    ] = None,
    overwrite: OverwriteOption = False,
) -> None:
    """Check this computer: hardware, optional packages, isolation, and models with known output.

    Example: mamamia check-computer --out check.txt
    """
    from napari_mamamia.services import check_computer as service

    checked = run(partial(service.check_computer, case))
    report_result(lambda: checked.findings)
    text = service.check_text(checked)
    print(text, end="")
    if out is not None:
        service.save_check(checked, out, overwrite=overwrite)
        print(f"Log without names or patient data: {out}")
    if not checked.all_ok:
        raise typer.Exit(NOT_EVERY_CASE)
