"""Commands of quality control: `queue` and `capture`."""

from functools import partial
from pathlib import Path
from typing import Annotated, Final

import typer

from napari_mamamia.cli.options import OverwriteOption, SeedOption
from napari_mamamia.cli.printing import run
from napari_mamamia.cli.quantities import Quantity
from napari_mamamia.core.names import count_of
from napari_mamamia.features.review.cli.options import make_out_option

_SHARE: Final = Quantity("a proportion of random cases", 0, 1, "", "give 0.1 for 1 in 10")
_TARGET: Final = Quantity("a proportion of errors", 0.01, 1, "", "give 0.95")
_SHOWN: Final = 10

OutOption = Annotated[Path, make_out_option("Folder for the files.")]


def queue(
    scores: Annotated[
        Path,
        typer.Argument(
            metavar="SCORES", parser=Path, help="Folder or case_scores.csv of `mamamia score`."
        ),
    ],
    out: OutOption,
    signs: Annotated[
        Path | None,
        typer.Option(
            "--signs",
            metavar="TABLE",
            parser=Path,
            help="Table with further criteria by case_id.",
        ),
    ] = None,
    random: Annotated[
        float,
        typer.Option("--random", parser=_SHARE, help="Proportion drawn at random, read first."),
    ] = 0.1,
    seed: SeedOption = 42,
    overwrite: OverwriteOption = False,
) -> None:
    """Sort cases by disagreement of model and reference: OUT/queue.csv, .json, .txt."""
    from napari_mamamia.features.review.services.quality_queue import make_queue

    result = run(partial(make_queue, scores, out, signs, seed, random, overwrite=overwrite))
    n_random = result.queue.n_random
    print(
        f"{count_of(len(result.queue.places), 'case')}, the first {n_random} drawn at random, then:"
    )
    for place in result.queue.places[n_random : n_random + _SHOWN]:
        print(f"  {place.case_id}: {place.why or 'nothing known'}")
    for note in result.notes:
        print(f"note: {note}")
    for path in result.files:
        print(f"Queue: {path}")


def capture(
    queue_file: Annotated[
        Path,
        typer.Argument(metavar="QUEUE", parser=Path, help="queue.json of `mamamia review queue`."),
    ],
    found: Annotated[
        Path,
        typer.Option(
            "--found",
            metavar="TABLE",
            parser=Path,
            help="Results in reading order: case_id and error.",
        ),
    ],
    out: OutOption,
    target: Annotated[
        float, typer.Option("--target", parser=_TARGET, help="Proportion of errors to be found.")
    ] = 0.95,
    overwrite: OverwriteOption = False,
) -> None:
    """Show the errors found and whether reading may stop: OUT/capture.csv, .json, .txt."""
    from napari_mamamia.features.review.services.quality_queue import describe_capture, make_capture

    result = run(partial(make_capture, queue_file, found, out, target, overwrite=overwrite))
    for line in describe_capture(result.capture):
        print(line)
    for path in result.files:
        print(f"Capture: {path}")
