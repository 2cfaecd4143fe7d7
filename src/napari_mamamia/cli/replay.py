"""`mamamia replay`: reproduce a mask from its journal."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from napari_mamamia.cli.printing import NOT_EVERY_CASE, run
from napari_mamamia.cli.scripting import report_result, reports_result

if TYPE_CHECKING:
    from napari_mamamia.core.case import Case
    from napari_mamamia.services.refine.replay import Replay


@reports_result
def replay(
    journal: Annotated[Path, typer.Argument(metavar="JOURNAL", help="Journal file ID.journal.")],
    out: Annotated[Path, typer.Option("--out", metavar="MASK", help="Mask file to write.")],
    case: Annotated[
        Path | None,
        typer.Option(
            "--case",
            metavar="DIR",
            help=("Data set or case folder whose images are used to repeat strokes."),
        ),
    ] = None,
) -> None:
    """Reproduce a mask bit for bit from its journal; with images, also replay each stroke.

    The exit code is 3 if the journal is damaged or contradicts one of its checksums. In that case
    the latest verified mask is written, and a note lists the missing steps.

    Example: mamamia replay P001.journal --out P001_again.nii.gz --case DATASET
    """
    from napari_mamamia.services.refine.replay import replay_journal

    images = None if case is None else _case_of(journal, case)
    outcome = run(partial(replay_journal, journal, out, images))
    report_result(lambda: outcome)
    _print_replay(outcome)
    if not outcome.is_whole:
        raise typer.Exit(NOT_EVERY_CASE)


def _case_of(journal: Path, folder: Path) -> "Case":
    from napari_mamamia.io.layouts.find import find_data_set
    from napari_mamamia.services.case.open_case import load_case
    from napari_mamamia.services.refine.replay import case_of_journal

    data_set = find_data_set(folder)
    return run(partial(load_case, data_set.case(case_of_journal(journal))))


def _print_replay(done: "Replay") -> None:
    summary = done.summary
    print(f"case      {done.case_id}\nreader    {done.reader}")
    for sitting in done.sittings:
        goes_on = " (going on)" if sitting.opened.continues else ""
        print(f"sitting   {sitting.first_at} to {sitting.last_at}{goes_on}")
    print(f"start     {summary.started_from or 'an empty mask'}")
    print(f"time      {summary.seconds:.0f} s of editing")
    print(f"strokes   {summary.strokes} ({summary.path_mm:.0f} mm), other steps {summary.steps}")
    print(f"undone    {summary.undos}\ntools     {', '.join(summary.tools) or 'none'}")
    if done.n_strokes is not None:
        print(f"repeated  {done.n_repeated} of {done.n_strokes} strokes bit for bit")
    for note in done.notes:
        print(f"note      {note}")
    print(f"mask      {done.path}, {done.n_voxels} voxels\nsha256    {done.sha256}")
