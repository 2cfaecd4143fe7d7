"""Commands that score folders of masks, tables of case scores, and predicted responses."""

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from napari_mamamia.cli import options
from napari_mamamia.cli.printing import NOT_EVERY_CASE, finish, print_scores, run
from napari_mamamia.cli.quantities import SENSITIVITY
from napari_mamamia.cli.scripting import is_quiet, report_result, reports_result
from napari_mamamia.core.choices import CompositeName, ProfileName, UnusableRule
from napari_mamamia.core.features import find_hook

if TYPE_CHECKING:
    from napari_mamamia.scoring.cohort.ranking import CompositeChoice
    from napari_mamamia.services.score.score import ScoreSummary
    from napari_mamamia.services.score.settings import ScoreSettings


@reports_result
def score(
    prediction: Annotated[
        list[str],
        typer.Option(
            "--prediction",
            metavar="[NAME=]DIR",
            help=(
                "Folder of predicted masks; repeatable: the results of several are written to "
                "OUT/NAME."
            ),
        ),
    ],
    out: options.OutOption,
    reference: Annotated[
        Path | None, typer.Option("--reference", help="Folder of reference masks.")
    ] = None,
    study: Annotated[
        Path | None,
        typer.Option(
            "--study",
            metavar="STUDY",
            parser=Path,
            help="Review study whose accepted masks are the reference.",
        ),
    ] = None,
    clinical: options.ClinicalOption = None,
    columns: options.ColumnsOption = None,
    profile: options.ProfileOption = ProfileName.CLINICAL,
    bootstrap: options.BootstrapOption = 1000,
    seed: options.SeedOption = 42,
    minimum_group: options.MinimumGroupOption = None,
    label: options.SegmentOption = None,
    workers: options.WorkersOption = 0,
    scheduler: options.SchedulerOption = "",
    time_limit: options.TimeLimitOption = None,
    images: options.ImagesOption = None,
    workspace: options.WorkspaceOption = None,
    baseline: options.BaselineOption = "",
    gate: options.GateOption = None,
    composite: options.CompositeOption = None,
    unusable: options.UnusableOption = None,
    cases: options.CasesOption = None,
    resume: options.ResumeOption = False,
    no_report: options.ReportOption = False,
    overwrite: options.OverwriteOption = False,
) -> None:
    """Score predicted masks against reference masks: OUT/case_scores.csv, OUT/summary.json.

    Example: mamamia score --reference EXPERT --prediction MASKS --out SCORES
    """
    from napari_mamamia.services.score.models import prediction_folder, score_models
    from napari_mamamia.services.score.score import is_reference_folder, score_folders
    from napari_mamamia.services.score.text import comparison_lines

    existing, place = (
        options.existing_policy(resume, overwrite),
        options.place_of(workers, scheduler, time_limit),
    )
    choice = _choose_composites(composite, gate, baseline)
    _require_groups(minimum_group, clinical)
    plain = _score_settings(
        profile, clinical, columns, label, bootstrap, seed, minimum_group, unusable, cases
    )
    settings = replace(
        plain, composites=choice, images=images, workspace=workspace, with_report=not no_report
    )
    folders = [prediction_folder(text) for text in prediction]
    if len(folders) == 1 and baseline:
        raise typer.BadParameter(
            "expected several models for --baseline, but got one: pass --prediction at least twice"
        )
    with ExitStack() as stack:
        if (reference is None) is (study is None):
            raise typer.BadParameter(
                "expected exactly one of --reference and --study: leave out the other option, or "
                "add one"
            )
        masks = reference or stack.enter_context(find_hook("study_reference")(study or Path()))
        for model in folders:
            if run(partial(is_reference_folder, masks, model.folder)):
                print(
                    f"warning: the prediction folder {model.folder} is the reference folder, so "
                    "every score is perfect: choose the folder of the model's masks",
                    file=sys.stderr,
                )
        if len(folders) == 1:
            (only,) = folders
            job = partial(
                score_folders,
                masks,
                only.folder,
                out,
                settings,
                name=only.name,
                place=place,
                existing=existing,
            )
            _finish_scores([run(job)], out)
            return
        job_of_all = partial(
            score_models, masks, folders, out, settings, place=place, existing=existing
        )
        compared = run(job_of_all)
        _finish_scores(compared.models, out, comparison_lines(compared.comparison))


@reports_result
def score_table(
    table: Annotated[
        Path,
        typer.Argument(metavar="SCORES", help="Table with case_id or patient_id, dsc, norm_hd."),
    ],
    out: options.OutOption,
    clinical: options.ClinicalOption = None,
    columns: options.ColumnsOption = None,
    profile: options.ProfileOption = ProfileName.CLINICAL,
    bootstrap: options.BootstrapOption = 1000,
    seed: options.SeedOption = 42,
    minimum_group: options.MinimumGroupOption = None,
    workspace: options.WorkspaceOption = None,
    gate: options.GateOption = None,
    composite: options.CompositeOption = None,
    unusable: options.UnusableOption = None,
    cases: options.CasesOption = None,
    metric_definition: Annotated[
        str,
        typer.Option(
            "--metric-definition",
            metavar="TEXT",
            help=(
                "How the numbers were computed (default: as stated in the table, otherwise 'as "
                "given')."
            ),
        ),
    ] = "",
    no_report: options.ReportOption = False,
    overwrite: options.OverwriteOption = False,
) -> None:
    """Compute cohort results from case scores that other software computed.

    Example: mamamia score-table case_scores.csv --clinical clinical.xlsx --out SCORES
    """
    from napari_mamamia.services.score import table as service

    existing = options.existing_policy(False, overwrite)
    _require_groups(minimum_group, clinical)
    plain = _score_settings(
        profile, clinical, columns, None, bootstrap, seed, minimum_group, unusable, cases
    )
    settings = replace(
        plain,
        composites=_choose_composites(composite, gate),
        workspace=workspace,
        metric_definition=metric_definition,
        with_report=not no_report,
    )
    job = partial(service.score_table, table, out, settings, existing=existing)
    _finish_scores([run(job)], out, cases=False)


@reports_result
def score_pcr(
    predictions: Annotated[
        list[str],
        typer.Argument(
            metavar="[NAME=]FILE...",
            help=(
                "Table with patient_id or case_id, pcr, score; the results of several are "
                "written to OUT/NAME."
            ),
        ),
    ],
    clinical: Annotated[Path, typer.Option("--clinical", help="Clinical table with pcr.")],
    out: options.OutOption,
    columns: options.ColumnsOption = None,
    profile: options.ProfileOption = ProfileName.CLINICAL,
    bootstrap: options.BootstrapOption = 1000,
    seed: options.SeedOption = 42,
    minimum_group: options.MinimumGroupOption = None,
    gate: options.GateOption = None,
    composite: options.CompositeOption = None,
    operating_point: Annotated[
        list[float] | None,
        typer.Option(
            "--operating-point",
            parser=SENSITIVITY,
            help="Sensitivity at which the specificity is reported (default 0.87); repeatable.",
        ),
    ] = None,
    reader: Annotated[
        str,
        typer.Option(
            "--reader", metavar="COLUMN", help="Clinical column with a reader's answers, 0 or 1."
        ),
    ] = "",
    no_report: options.ReportOption = False,
    overwrite: options.OverwriteOption = False,
) -> None:
    """Score predicted responses (pCR) against the clinical table, and write OUT/summary.json.

    Example: mamamia score-pcr predictions.csv --clinical clinical.xlsx --out SCORES
    """
    from napari_mamamia.services.classifier import responses
    from napari_mamamia.services.classifier.text import classifier_lines
    from napari_mamamia.services.score import pcr as service
    from napari_mamamia.services.score.report import say_unequal_responses

    existing = options.existing_policy(False, overwrite)
    plain = _score_settings(profile, None, columns, None, bootstrap, seed, minimum_group)
    settings = replace(
        plain, composites=_choose_composites(composite, gate), with_report=not no_report
    )
    tables = [responses.prediction_table(text) for text in predictions]
    if (
        len(tables) == 1
        and not operating_point
        and not reader
        and tables[0].path == Path(predictions[0])
    ):
        path = tables[0].path
        job = partial(service.score_pcr, path, clinical, out, settings, existing=existing)
        _finish_scores([run(job)], out, cases=False)
        return
    job_of_all = partial(
        responses.score_responses,
        tables,
        clinical,
        out,
        settings,
        sensitivities=tuple(dict.fromkeys(operating_point or ())),
        reader=reader,
        existing=existing,
    )
    scored = run(job_of_all)
    unequal = say_unequal_responses([model.model for model in scored.models])
    lines = [
        *([unequal] if unequal else []),
        *classifier_lines(scored.classifiers.result, scored.classifiers.notes, "case"),
    ]
    page = f"Models and operating points: {out / responses.CLASSIFIERS}"
    _finish_scores(scored.models, out, (*lines, page), cases=False)


def _score_settings(
    profile: str,
    clinical: Path | None,
    columns: Path | None,
    label: float | str | None,
    bootstrap: int,
    seed: int,
    minimum_group: int | None,
    unusable: UnusableRule | None = None,
    cases: Path | None = None,
) -> "ScoreSettings":
    from napari_mamamia.scoring.case.profiles import profile_named
    from napari_mamamia.scoring.cohort.disparities import MINIMUM_GROUP
    from napari_mamamia.services.score.settings import ScoreSettings

    try:
        plain = ScoreSettings(
            profile_named(profile),
            clinical,
            label,
            bootstrap,
            seed,
            unusable=unusable,
            minimum_group=MINIMUM_GROUP if minimum_group is None else minimum_group,
        )
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    return replace(plain, columns=options.column_choice(columns), cases=options.case_list(cases))


def _require_groups(minimum_group: int | None, clinical: Path | None) -> None:
    """Raise an error if a minimum group size is set without a clinical table."""
    if minimum_group is not None and clinical is None:
        raise typer.BadParameter(
            "expected a clinical table for --minimum-group, but got none, so there are no groups: "
            "add --clinical, or leave --minimum-group out"
        )


def _choose_composites(
    names: list[CompositeName] | None, gate: float | None, baseline: str = ""
) -> "CompositeChoice":
    """Return the requested composite scores; a gate by itself selects the gated score."""
    from napari_mamamia.scoring.cohort.ranking import CompositeChoice

    variants = tuple(names or ())
    if gate is not None and not variants:
        variants = (CompositeName.GATED,)
    try:
        return CompositeChoice(variants, gate, baseline)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


def _finish_scores(
    models: "Sequence[ScoreSummary]",
    out: Path,
    comparison: Sequence[str] = (),
    *,
    cases: bool = True,
) -> None:
    """Print each model's cases and cohort results; exit with code 3 unless all cases are ok."""
    from napari_mamamia.services.score.report import REPORT
    from napari_mamamia.services.score.text import cohort_lines

    report_result(partial(_read_summaries, models, out))
    for scored in models:
        if cases:
            print_scores(scored.rows)
        print("\n".join(cohort_lines(scored.model)))
        print(f"Scores saved in {scored.table if cases else scored.folder}")
        for warning in scored.warnings:
            print(f"warning: {warning}", file=sys.stderr)
    for line in comparison:
        print(line)
    if (out / REPORT).exists():
        print(f"Report: {out / REPORT}")
    if not cases or is_quiet():  # the table of cases, with its reasons, is not printed
        finish(tuple(failure for scored in models for failure in scored.model.failures))
    if not all(scored.all_ok for scored in models):
        raise typer.Exit(NOT_EVERY_CASE)


def _read_summaries(models: "Sequence[ScoreSummary]", out: Path) -> object:
    """Read the written summary of one model, or those of several models by name."""
    from napari_mamamia.io.files.json_text import read_json
    from napari_mamamia.services.score.output import COMPARISON

    summaries = {scored.model.name: read_json(scored.summary) for scored in models}
    if len(models) == 1:
        return summaries[models[0].model.name]
    comparison = out / COMPARISON
    return {
        "models": summaries,
        "comparison": read_json(comparison) if comparison.exists() else None,
    }
