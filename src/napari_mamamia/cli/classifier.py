"""The commands of classifiers: `score-classifier`, `stack`, `audit`, `split`."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import typer

from napari_mamamia.cli.options import (
    OutOption,
    OverwriteOption,
    ResamplesOption,
    SeedOption,
    existing_policy,
)
from napari_mamamia.cli.printing import finish, run
from napari_mamamia.cli.quantities import Quantity
from napari_mamamia.core.choices import MissingScore

SENSITIVITY: Final = Quantity("a sensitivity", 0.001, 1, "", "give a share, such as 0.87")
_ABOVE: Final = Quantity("a sensitivity", 0, 0.999, "", "give a share below 1, such as 0.82")

TableArgument = Annotated[
    Path,
    typer.Argument(metavar="TABLE", help="Table (.csv, .xlsx, .ods) with a row for each case."),
]
IdOption = Annotated[str, typer.Option("--id", metavar="COLUMN", help="Column of ids.")]
LabelColumn = Annotated[str, typer.Option("--label", metavar="COLUMN", help="Column of 0 and 1.")]
ReaderOption = Annotated[
    str, typer.Option("--reader", metavar="COLUMN", help="Column of a reader's recalls, 0 and 1.")
]
PointOption = Annotated[
    list[float] | None,
    typer.Option(
        "--operating-point",
        parser=SENSITIVITY,
        help="Sensitivity at which to give the specificity (default 0.87); repeatable.",
    ),
]
ClusterOption = Annotated[
    str,
    typer.Option(
        "--cluster", metavar="COLUMN", help="Column whose equal values are resampled together."
    ),
]


def score_classifier(
    table: TableArgument,
    case_id: IdOption,
    label: LabelColumn,
    score: Annotated[
        list[str],
        typer.Option("--score", metavar="COLUMN", help="Column of a model's scores; repeatable."),
    ],
    out: OutOption,
    reader: ReaderOption = "",
    cluster: ClusterOption = "",
    exam: Annotated[
        str,
        typer.Option(
            "--exam",
            metavar="COLUMN",
            help="Join rows with one value (both breasts): largest score, positive if one is.",
        ),
    ] = "",
    subgroup: Annotated[
        list[str] | None,
        typer.Option("--subgroup", metavar="COLUMN", help="Numbers for each value; repeatable."),
    ] = None,
    operating_point: PointOption = None,
    partial_above: Annotated[
        float,
        typer.Option(
            "--partial-above", parser=_ABOVE, help="Sensitivity above which the partial AUC counts."
        ),
    ] = 0.82,
    draws: Annotated[
        Path | None,
        typer.Option(
            "--draws", metavar="FILE", help="Resamples as row numbers from 0, a line each."
        ),
    ] = None,
    missing: Annotated[
        MissingScore,
        typer.Option("--missing", help="What a score that is missing or no number counts."),
    ] = MissingScore.LEAST_FAVOURABLE,
    bootstrap: ResamplesOption = None,
    seed: SeedOption = 42,
    overwrite: OverwriteOption = False,
) -> None:
    """Score classifiers: AUC, operating points, models against models and a reader."""
    from napari_mamamia.scoring.classifier.results import ClassifierRules
    from napari_mamamia.services.classifier import score_classifier as service
    from napari_mamamia.services.classifier.text import classifier_lines

    rules = ClassifierRules(above=partial_above, n_draws=bootstrap, seed=seed)
    if operating_point:
        rules = replace(rules, sensitivities=tuple(dict.fromkeys(operating_point)))
    try:
        columns = service.ClassifierColumns(
            case_id, label, tuple(score), reader, cluster, exam, tuple(subgroup or ())
        )
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    settings = service.ClassifierSettings(rules, missing, draws)
    job = partial(
        service.score_classifier,
        table,
        columns,
        out,
        settings,
        existing=existing_policy(False, overwrite),
    )
    summary = run(job)
    print("\n".join(classifier_lines(summary.result, summary.notes, columns.unit)))
    print(f"Numbers: {out / service.CLASSIFIER}\nReport: {out / service.REPORT}")
    finish(summary.failures)
