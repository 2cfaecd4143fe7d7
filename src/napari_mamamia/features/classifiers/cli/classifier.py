"""Commands for classifiers and their data: `score-classifier`, `stack`, `audit`, `split`."""

import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from napari_mamamia.cli import options
from napari_mamamia.cli.printing import NOT_EVERY_CASE, finish, run
from napari_mamamia.cli.quantities import SENSITIVITY, Quantity
from napari_mamamia.cli.scripting import report_result, reports_result
from napari_mamamia.core.choices import MissingScore
from napari_mamamia.io.files.json_text import read_json

if TYPE_CHECKING:
    from napari_mamamia.services.classifier.score_classifier import ClassifierColumns

_ABOVE: Final = Quantity("a sensitivity", 0, 0.999, "", "enter a proportion below 1, such as 0.82")

TableArgument = Annotated[
    Path,
    typer.Argument(metavar="TABLE", help="Table (.csv, .xlsx, .ods) with a row for each case."),
]
IdOption = Annotated[str, typer.Option("--id", metavar="COLUMN", help="Column of case ids.")]
LabelColumn = Annotated[
    str, typer.Option("--label", metavar="COLUMN", help="Column of labels, 0 and 1.")
]
ReaderOption = Annotated[
    str, typer.Option("--reader", metavar="COLUMN", help="Column of a reader's recalls, 0 and 1.")
]
PointOption = Annotated[
    list[float] | None,
    typer.Option(
        "--operating-point",
        parser=SENSITIVITY,
        help="Sensitivity at which to report the specificity (default 0.87); repeatable.",
    ),
]
ClusterOption = Annotated[
    str,
    typer.Option(
        "--cluster", metavar="COLUMN", help="Column whose equal values are resampled together."
    ),
]


@reports_result
def score_classifier(
    table: TableArgument,
    case_id: IdOption,
    label: LabelColumn,
    score: Annotated[
        list[str],
        typer.Option("--score", metavar="COLUMN", help="Column of a model's scores; repeatable."),
    ],
    out: options.OutOption,
    reader: ReaderOption = "",
    cluster: ClusterOption = "",
    exam: Annotated[
        str,
        typer.Option(
            "--exam",
            metavar="COLUMN",
            help=(
                "Join rows that share a value, such as both breasts; the largest score counts, "
                "and the joint row is positive if any row is."
            ),
        ),
    ] = "",
    subgroup: Annotated[
        list[str] | None,
        typer.Option(
            "--subgroup",
            metavar="COLUMN",
            help="Report numbers for each value of this column; repeatable.",
        ),
    ] = None,
    operating_point: PointOption = None,
    partial_above: Annotated[
        float,
        typer.Option(
            "--partial-above", parser=_ABOVE, help="Lower sensitivity of the partial AUC."
        ),
    ] = 0.82,
    draws: Annotated[
        Path | None,
        typer.Option(
            "--draws",
            metavar="FILE",
            help="CSV of resamples to use instead: one per line, row numbers from 0, no header.",
        ),
    ] = None,
    missing: Annotated[
        MissingScore,
        typer.Option("--missing", help="Treatment of missing and invalid scores."),
    ] = MissingScore.LEAST_FAVOURABLE,
    bootstrap: options.ResamplesOption = None,
    seed: options.SeedOption = 42,
    overwrite: options.OverwriteOption = False,
) -> None:
    """Score classifiers: AUC, operating points, and comparisons of models and a reader.

    Example: mamamia score-classifier t.csv --id case_id --label pcr --score p --out SCORES
    """
    from napari_mamamia.scoring.classifier.scores import ClassifierRules
    from napari_mamamia.services.classifier import score_classifier as service
    from napari_mamamia.services.classifier.text import classifier_lines

    rules = ClassifierRules(above=partial_above, n_draws=bootstrap, seed=seed)
    if operating_point:
        rules = replace(rules, sensitivities=tuple(dict.fromkeys(operating_point)))
    columns = _name_columns(case_id, label, score, reader, cluster, exam, subgroup)
    settings = service.ClassifierSettings(rules, missing, draws)
    job = partial(
        service.score_classifier,
        table,
        columns,
        out,
        settings,
        existing=options.existing_policy(False, overwrite),
    )
    summary = run(job)
    report_result(lambda: read_json(out / service.CLASSIFIER))
    print("\n".join(classifier_lines(summary.result, summary.notes, columns.unit)))
    print(f"Numbers: {out / service.CLASSIFIER}\nReport: {out / service.REPORT}")
    finish(summary.failures)


_FOLD_NUMBER: Final = Quantity("a number of folds", 2, 100, "", "give 10", is_whole=True)


@reports_result
def stack(
    table: TableArgument,
    case_id: IdOption,
    label: LabelColumn,
    score: Annotated[
        list[str],
        typer.Option("--score", metavar="COLUMN", help="Column of a model's scores; repeatable."),
    ],
    out: options.OutOption,
    out_of_fold: Annotated[
        bool,
        typer.Option(
            "--out-of-fold", help="Confirm that no model was trained or selected on these cases."
        ),
    ] = False,
    reader: ReaderOption = "",
    cluster: ClusterOption = "",
    centre: Annotated[
        str,
        typer.Option(
            "--centre", metavar="COLUMN", help="Column by which the folds are stratified."
        ),
    ] = "",
    folds: Annotated[int, typer.Option("--folds", parser=_FOLD_NUMBER, help="Folds.")] = 10,
    one_se: Annotated[
        bool, typer.Option("--one-se", help="Use the largest penalty within one standard error.")
    ] = False,
    bootstrap: options.ResamplesOption = None,
    seed: options.SeedOption = 42,
    overwrite: options.OverwriteOption = False,
) -> None:
    """Combine the scores of several models into one score, by nested cross-validation.

    Example: mamamia stack t.csv --id id --label pcr --score a --score b --out-of-fold --out STACK
    """
    from napari_mamamia.features.classifiers.scoring.stacking import StackRules
    from napari_mamamia.features.classifiers.services import stack as service
    from napari_mamamia.scoring.classifier.scores import ClassifierRules
    from napari_mamamia.services.classifier.score_classifier import CLASSIFIER, REPORT
    from napari_mamamia.services.classifier.text import classifier_lines

    if not out_of_fold:
        raise typer.BadParameter(
            "expected --out-of-fold to confirm that no model was trained or selected on these "
            "cases; otherwise the stack would be optimistic: use scores from models that were "
            "trained on different cases"
        )
    columns = _name_columns(case_id, label, score, reader, cluster)
    rules = StackRules(n_folds=folds, one_se=one_se, seed=seed)
    scoring = ClassifierRules(n_draws=bootstrap, seed=seed)
    settings = service.StackSettings(rules, scoring, centre)
    policy = options.existing_policy(False, overwrite)
    summary = run(partial(service.stack_models, table, columns, out, settings, existing=policy))
    scores = summary.scores
    report_result(
        lambda: {"stack": read_json(out / service.STACK), "scores": read_json(out / CLASSIFIER)}
    )
    print("\n".join(classifier_lines(scores.result, scores.notes, "case")))
    print(f"Coefficients: {out / service.STACK}\nProbabilities: {out / service.STACK_TABLE}")
    print(f"Numbers: {out / CLASSIFIER}\nReport: {out / REPORT}")
    finish(scores.failures)


@reports_result
def audit(
    table: TableArgument,
    out: options.OutOption,
    label: Annotated[
        str,
        typer.Option("--label", metavar="COLUMN", help="Column of labels, 0 and 1, such as pcr."),
    ] = "",
    split: Annotated[
        str,
        typer.Option(
            "--split",
            metavar="COLUMN",
            help="Column that names the part of the split for each row.",
        ),
    ] = "",
    patient: Annotated[
        str, typer.Option("--patient", metavar="COLUMN", help="Column of patient ids.")
    ] = "",
    pixels: Annotated[
        str,
        typer.Option(
            "--hash", metavar="COLUMN", help="Column whose value is shared by equal images."
        ),
    ] = "",
    leave_out: Annotated[
        list[str] | None,
        typer.Option("--leave-out", metavar="COLUMN", help="Column to leave out; repeatable."),
    ] = None,
    seed: options.SeedOption = 42,
    overwrite: options.OverwriteOption = False,
) -> None:
    """Find metadata that leaks the label or the split.

    Example: mamamia audit table.csv --label pcr --out AUDIT
    """
    from napari_mamamia.features.classifiers.services import audit as service

    if not label and not split:
        raise typer.BadParameter(
            "expected --label or --split, but found neither: name the column that the other "
            "columns may leak"
        )
    columns = service.AuditColumns(label, split, patient, pixels, tuple(leave_out or ()))
    policy = options.existing_policy(False, overwrite)
    summary = run(partial(service.audit_table, table, columns, out, seed=seed, existing=policy))
    report_result(lambda: summary)
    print("\n".join(summary.lines))
    print(f"List: {out / service.LEAKS}\nReport: {out / service.REPORT}")
    _finish_rows(summary.failures)


@reports_result
def split(
    table: TableArgument,
    patient: Annotated[
        str, typer.Option("--patient", metavar="COLUMN", help="Column of patient ids.")
    ],
    part: Annotated[
        list[str],
        typer.Option(
            "--part", metavar="NAME=SHARE", help="Name and proportion of a part; repeatable."
        ),
    ],
    out: options.OutOption,
    stratum: Annotated[
        list[str] | None,
        typer.Option(
            "--stratum",
            metavar="COLUMN",
            help=("Column to balance, the most important first; repeatable."),
        ),
    ] = None,
    case: Annotated[
        str,
        typer.Option(
            "--case",
            metavar="COLUMN",
            help="Column of case ids; also write nnU-Net's splits_final.json. The parts train and "
            "val form one fold; otherwise each part is the validation set of one fold.",
        ),
    ] = "",
    seed: options.SeedOption = 42,
    overwrite: options.OverwriteOption = False,
) -> None:
    """Split the patients of a table into parts with balanced strata.

    Example: mamamia split table.csv --patient patient --part train=0.8 --part val=0.2 --out SPLIT
    """
    from napari_mamamia.features.classifiers.services import split as service

    job = partial(
        service.split_table,
        table,
        patient,
        tuple(dict.fromkeys(stratum or ())),
        service.parts_of(part),
        out,
        seed=seed,
        existing=options.existing_policy(False, overwrite),
        case=case,
    )
    summary = run(job)
    report_result(lambda: read_json(out / service.SPLIT))
    print("\n".join(summary.lines))
    print(f"Parts: {out / service.SPLIT_TABLE}\nBalance: {out / service.SPLIT}")
    _finish_rows(summary.failures)


def _name_columns(
    case_id: str,
    label: str,
    score: list[str],
    reader: str,
    cluster: str,
    exam: str = "",
    subgroup: list[str] | None = None,
) -> "ClassifierColumns":
    from napari_mamamia.services.classifier.score_classifier import ClassifierColumns

    try:
        return ClassifierColumns(
            case_id, label, tuple(score), reader, cluster, exam, tuple(subgroup or ())
        )
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


def _finish_rows(failures: tuple[str, ...]) -> None:
    for failure in failures:
        print(f"failed: {failure}", file=sys.stderr)
    if failures:
        raise typer.Exit(NOT_EVERY_CASE)
