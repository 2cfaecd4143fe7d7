"""Combine the scores of several models into one score, with and without a reader's score."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.choices import MissingScore
from napari_mamamia.core.errors import FormatError
from napari_mamamia.core.provenance import now_utc, software_version
from napari_mamamia.features.classifiers.scoring.stacking import Stack, StackRules, fit_stack
from napari_mamamia.io.data_set.named_columns import NamedTable, read_named_columns
from napari_mamamia.io.tables.spreadsheets import write_sheet
from napari_mamamia.io.tables.tables import write_json
from napari_mamamia.scoring.classifier.operating import Units
from napari_mamamia.scoring.classifier.scores import (
    ClassifierCases,
    ClassifierRules,
    score_classifiers,
)
from napari_mamamia.services.batch.output_folder import Existing, claim_folder
from napari_mamamia.services.classifier import score_classifier

STACK: Final = "stack.json"
STACK_TABLE: Final = "stack.csv"
ALONE: Final = "stack"
WITH_READER: Final = "stack with reader"


@dataclass(frozen=True, slots=True)
class StackSettings:
    """Folds and penalty grid, the scoring rules, and an extra column that stratifies the folds."""

    rules: StackRules = field(default_factory=StackRules)
    scoring: ClassifierRules = field(default_factory=ClassifierRules)
    centre: str = ""


@dataclass(frozen=True, slots=True)
class StackSummary:
    """The stacks, and the metrics of the stacks, of the single models and of the reader."""

    stacks: tuple[tuple[str, Stack], ...]
    n_left_out: int
    scores: score_classifier.ClassifierSummary


def stack_models(
    table: Path,
    columns: score_classifier.ClassifierColumns,
    out: Path,
    settings: StackSettings | None = None,
    *,
    existing: Existing = Existing.REFUSE,
) -> StackSummary:
    """Combine the scores of models that were not trained on the cases in the table.

    The function writes ``stack.json`` (coefficients for use on other data), ``stack.csv`` (each
    case's probability, from models that were not fitted on the case), ``classifier.json`` and
    ``report.html``. A row without a model score, label or recall is listed as a failure and left
    out. Folds keep the rows of a cluster together.

    Parameters
    ----------
    table, columns
        The table, and the names of its columns.
    out
        Output folder.
    settings
        Settings of stacking; None for the defaults.
    existing
        What to do with other results in `out`.

    Raises
    ------
    FormatError
        If the table cannot be read, or has too few cases for the folds.
    SaveConflictError
        If `out` contains other results.
    """
    settings = settings or StackSettings()
    names = (*columns.names, settings.centre)
    names = tuple(dict.fromkeys(name for name in names if name))
    read_table = read_named_columns(table, names)
    read = score_classifier.read_cases(read_table, columns, MissingScore.LEAVE_OUT)
    cases, rows = _whole_cases(read)
    subjects = cases.clusters or Units.of(cases.ids)
    strata = _list_strata(read_table, read, rows, cases, settings.centre)
    parameters = (
        ("table", table.name),
        ("id", columns.case_id),
        ("label", columns.label),
        ("scores", ", ".join(columns.scores)),
        ("reader", columns.reader or None),
        ("cluster", columns.cluster or None),
        ("centre", settings.centre or None),
        ("folds", settings.rules.n_folds),
        ("seed", settings.rules.seed),
        ("one_se", settings.rules.one_se),
    )
    _require_enough(cases, subjects, settings.rules, table)
    claim_folder(out, "stack", parameters, existing)
    alone, with_reader = (_free_name(name, cases.models) for name in (ALONE, WITH_READER))
    stacks = [(alone, _fit_on(cases, cases.scores, cases.models, subjects, strata, settings))]
    if cases.recall is not None:
        base = np.concatenate([cases.scores, cases.recall[None]])
        named = (*cases.models, columns.reader)
        stacks.append((with_reader, _fit_on(cases, base, named, subjects, strata, settings)))
    everything = ClassifierCases(
        cases.ids,
        cases.label,
        (*(name for name, _ in stacks), *cases.models),
        np.concatenate([np.stack([stack.out_of_fold for _, stack in stacks]), cases.scores]),
        recall=cases.recall,
        clusters=cases.clusters,
    )
    result = score_classifiers(everything, settings.scoring)
    scoring = score_classifier.ClassifierSettings(settings.scoring, MissingScore.LEAVE_OUT)
    summary = score_classifier.ClassifierSummary(
        result, read.failures, columns, scoring, out, read.notes
    )
    overwrite = existing is not Existing.REFUSE
    n_left_out = read_table.n - len(cases.ids)
    write_json(_describe_stacks(stacks, cases, n_left_out, settings), out / STACK,
               overwrite=overwrite)  # fmt: skip
    _write_table(stacks, cases, out / STACK_TABLE, overwrite)
    score_classifier.write_classifier(summary, everything, table.name, overwrite=overwrite)
    return StackSummary(tuple(stacks), n_left_out, summary)


def _free_name(name: str, there: tuple[str, ...]) -> str:
    return name if name not in there else _free_name(f"{name} of all", there)


def _whole_cases(read: score_classifier.ReadCases) -> tuple[ClassifierCases, NDArray[np.intp]]:
    cases = read.cases
    if cases.recall is None:
        return cases, np.arange(len(cases.ids))
    rows = np.flatnonzero(~np.isnan(cases.recall))
    clusters = cases.clusters
    if clusters is not None:
        clusters = Units.of([clusters.names[clusters.of_row[row]] for row in rows])
    return (
        ClassifierCases(
            tuple(cases.ids[row] for row in rows),
            cases.label[rows],
            cases.models,
            cases.scores[:, rows],
            recall=cases.recall[rows],
            clusters=clusters,
        ),
        rows,
    )


def _list_strata(
    table: NamedTable,
    read: score_classifier.ReadCases,
    rows: NDArray[np.intp],
    cases: ClassifierCases,
    centre: str,
) -> list[str]:
    labels = [f"{value:g}" for value in cases.label]
    if not centre:
        return labels
    texts = table.texts(centre)
    first_row: dict[int, int] = {}
    at_row = {number - table.first_row: row for row, number in enumerate(table.row_numbers)}
    for number, case in read.places.items():
        first_row.setdefault(case, at_row[number])
    return [
        f"{label} {texts[first_row[int(row)]]}" for label, row in zip(labels, rows, strict=True)
    ]


def _require_enough(
    cases: ClassifierCases, subjects: Units, rules: StackRules, table: Path
) -> None:
    least = min(len(set(subjects.of_row[cases.label == value].tolist())) for value in (0.0, 1.0))
    if least < rules.n_folds:
        raise FormatError(
            f"expected {table} to have at least {rules.n_folds} positive and {rules.n_folds} "
            f"negative subjects for {rules.n_folds} folds, but found {least} of one class: use "
            "fewer folds, or more cases"
        )


def _fit_on(
    cases: ClassifierCases,
    base: NDArray[np.float64],
    names: tuple[str, ...],
    subjects: Units,
    strata: list[str],
    settings: StackSettings,
) -> Stack:
    try:
        return fit_stack(base.T, cases.label, names, subjects, strata, settings.rules)
    except ValueError as error:
        raise FormatError(
            f"expected enough cases of both classes for {settings.rules.n_folds} outer and "
            f"{settings.rules.n_inner} inner folds, but {error}: use more cases"
        ) from error


def _describe_stacks(
    stacks: list[tuple[str, Stack]],
    cases: ClassifierCases,
    n_left_out: int,
    settings: StackSettings,
) -> dict[str, object]:
    return {
        "formula": "1/(1 + exp(-(intercept + sum of coefficient x score)))",
        "n": len(cases.ids),
        "n_positive": cases.n_positive,
        "n_left_out": n_left_out,
        "base_scores": "out of fold, as declared by the user",
        "criterion": "mean deviance" + (", one standard error" if settings.rules.one_se else ""),
        "folds": {
            "outer": settings.rules.n_folds,
            "inner": settings.rules.n_inner,
            "seed": settings.rules.seed,
        },
        "models": {
            name: {
                "intercept": stack.model.intercept,
                "coefficients": dict(
                    zip(stack.columns, stack.model.coefficients.tolist(), strict=True)
                ),
                "alpha": stack.model.alpha,
                "penalty": stack.model.penalty,
                "constant": [stack.columns[column] for column in stack.model.constant],
                "chosen_by_fold": [
                    {"alpha": alpha, "penalty": penalty} for alpha, penalty in stack.chosen
                ],
            }
            for name, stack in stacks
        },
        "software": software_version(),
        "created": now_utc(),
    }


def _write_table(
    stacks: list[tuple[str, Stack]], cases: ClassifierCases, path: Path, overwrite: bool
) -> None:
    head = ("case_id", "label", "fold", *(name.replace(" ", "_") for name, _ in stacks))
    rows: list[Sequence[str | float]] = [
        (
            case_id,
            int(cases.label[index]),
            int(stacks[0][1].folds[index]),
            *(float(stack.out_of_fold[index]) for _, stack in stacks),
        )
        for index, case_id in enumerate(cases.ids)
    ]
    write_sheet([head, *rows], path, name="stack", overwrite=overwrite)
