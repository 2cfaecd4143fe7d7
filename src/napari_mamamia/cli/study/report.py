"""`mamamia review report`: a study as one page to print."""

import sys
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import typer

from napari_mamamia.cli.options import BootstrapOption, OverwriteOption
from napari_mamamia.cli.printing import NOT_EVERY_CASE, run
from napari_mamamia.cli.quantities import Quantity
from napari_mamamia.cli.study.options import AskerOption, StudyArgument, UnblindOption

_PICTURES: Final = Quantity("a number of pictures", 0, 100, "", "give 12", is_whole=True)


def report(
    study: StudyArgument,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for the page.")],
    reader: AskerOption = "",
    unblind: UnblindOption = "",
    names: Annotated[
        bool, typer.Option("--names", help="Call readers by name, not by codes.")
    ] = False,
    by_reader: Annotated[
        bool, typer.Option("--time-by-reader", help="Tell the time of each reader.")
    ] = False,
    images: Annotated[
        Path | None,
        typer.Option("--images", metavar="DATASET", help="Images (default: where the study was)."),
    ] = None,
    pictures: Annotated[
        int, typer.Option("--pictures", parser=_PICTURES, help="Disagreements with a picture.")
    ] = 12,
    bootstrap: BootstrapOption = 1000,
    overwrite: OverwriteOption = False,
) -> None:
    """Write a study as one page to print; exit 3 if anything is wrong. OUT/report.html."""
    from napari_mamamia.io.files.user_folders import review_folder
    from napari_mamamia.io.review.store import FolderStore
    from napari_mamamia.services.review.report.study_report import ReportChoice, write_study_report
    from napari_mamamia.services.review.unblinding import require_sight

    store = FolderStore(study, review_folder())
    require_sight(store, reader, unblind, review_folder())
    choice = ReportChoice(names, by_reader, images, pictures, bootstrap)
    result = run(partial(write_study_report, store, out, choice, overwrite=overwrite))
    print(f"Report: {result.path}")
    for text in result.problems:
        print(f"failed: {text}", file=sys.stderr)
    if result.problems:
        raise typer.Exit(NOT_EVERY_CASE)
