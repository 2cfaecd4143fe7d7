"""`mamamia rank`: rank algorithms from tables of values by several methods."""

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from napari_mamamia.cli import options
from napari_mamamia.cli.given import ALWAYS, Where, refuse_idle
from napari_mamamia.cli.printing import print_table, run
from napari_mamamia.cli.quantities import Quantity
from napari_mamamia.cli.scripting import report_result, reports_result
from napari_mamamia.core.choices import (
    Correction,
    ProfileName,
    RankMethod,
    RankResampling,
    RankTies,
)
from napari_mamamia.io.files.json_text import read_json

if TYPE_CHECKING:
    from napari_mamamia.features.challenge.services.rank.inputs import RankInputs
    from napari_mamamia.scoring.ranking.table import MissingRule

_RESAMPLES: Final = Quantity(
    "a number of resamples", 0, 100_000, "", "give 1000, or 0 for ranks only", is_whole=True
)
_SITE: Final = Quantity("a number of cases", 0, 100_000, "", "give 10, or 0 for every site", True)


_WITH_TABLE: Final = Where(
    "with --table", lambda given: bool(given["table"]), lambda given: "without it"
)
_WITHOUT_TABLE: Final = Where(
    "with a table for each algorithm",
    lambda given: not given["table"],
    lambda given: "with --table",
)
_WITH_CLINICAL: Final = Where(
    "with --clinical, for the composite",
    lambda given: bool(given["clinical"]),
    lambda given: "without it",
)
_WITHOUT_DRAWS: Final = Where(
    "without --draws, which names the resamples",
    lambda given: not given["draws"],
    lambda given: "with it",
)
_WITH_TESTS: Final = Where(
    "with the method test-then-rank",
    lambda given: not given["method"] or RankMethod.TEST in given["method"],
    lambda given: "without it",
)
OPTIONS: Final[dict[str, Where]] = {
    **dict.fromkeys(
        ("tables", "out", "table", "smaller", "missing", "ties", "exact", "method", "draws",
         "resampling", "covering", "overwrite"),
        ALWAYS,
    ),
    **dict.fromkeys(("metric", "clinical"), _WITHOUT_TABLE),
    **dict.fromkeys(("columns", "profile"), _WITH_CLINICAL),
    **dict.fromkeys(("resamples", "seed"), _WITHOUT_DRAWS),
    "minimum_site": _WITH_TABLE,
    "correction": _WITH_TESTS,
}  # fmt: skip
"""The inputs to which each parameter of `rank` applies; a new parameter needs an entry."""


@reports_result
def rank(
    context: typer.Context,
    out: options.OutOption,
    tables: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME=]TABLE...",
            help="A table of case scores for each algorithm, such as case_scores.csv.",
        ),
    ] = None,
    table: Annotated[
        Path | None,
        typer.Option(
            "--table",
            metavar="FILE",
            help=(
                "One table of all: algorithm, case, value (and task, metric, site), or one "
                "column for each algorithm."
            ),
        ),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option("--metric", metavar="COLUMN", help="Column to rank by; repeatable."),
    ] = None,
    smaller: Annotated[
        bool | None,
        typer.Option(
            "--smaller-is-better/--larger-is-better",
            help="Direction of better values (default: from the metric's name, otherwise larger).",
        ),
    ] = None,
    missing: Annotated[
        str,
        typer.Option(
            "--missing",
            metavar="RULE",
            help="Rule for missing values: value:X, worst-rank, worst-rank-challenger or "
            "drop-case; without it none may be missing.",
        ),
    ] = "none",
    ties: Annotated[
        RankTies, typer.Option("--ties", help="Rank of algorithms with equal values.")
    ] = RankTies.MIN,
    exact: Annotated[
        bool, typer.Option("--exact", help="Compare floats exactly, not to 10 decimals.")
    ] = False,
    method: Annotated[
        list[RankMethod] | None,
        typer.Option(
            "--method", help=("Only this method; repeatable. The first one orders the table.")
        ),
    ] = None,
    correction: Annotated[
        Correction,
        typer.Option("--correction", help="Significance level of the tests in test-then-rank."),
    ] = Correction.NONE,
    resamples: Annotated[
        int, typer.Option("--resamples", parser=_RESAMPLES, help="Resamples of the cases.")
    ] = 1000,
    seed: options.SeedOption = 42,
    draws: Annotated[
        Path | None,
        typer.Option(
            "--draws",
            metavar="FILE",
            help="CSV of resamples to use instead: one per row, case names, no header.",
        ),
    ] = None,
    resampling: Annotated[
        RankResampling,
        typer.Option(
            "--resampling",
            help=("How copies of a drawn case count: as separate cases, or as in challengeR."),
        ),
    ] = RankResampling.CASES,
    covering: Annotated[
        bool,
        typer.Option("--covering-intervals", help="Add rank intervals with guaranteed coverage."),
    ] = False,
    minimum_site: Annotated[
        int,
        typer.Option(
            "--minimum-site", parser=_SITE, help="Leave smaller sites out of the ranking."
        ),
    ] = 0,
    clinical: options.ClinicalOption = None,
    columns: options.ColumnsOption = None,
    profile: options.ProfileOption = ProfileName.CLINICAL,
    overwrite: options.OverwriteOption = False,
) -> None:
    """Rank algorithms by every method, with uncertainty: OUT/rank.json, OUT/ranks.csv.

    Example: mamamia rank A/case_scores.csv B/case_scores.csv --out RANKS
    """
    from napari_mamamia.features.challenge.services.rank.rank import rank_files
    from napari_mamamia.features.challenge.services.rank.text import rank_blocks
    from napari_mamamia.io.data_set.rank_files import RANK_FILE
    from napari_mamamia.scoring.ranking.table import VALUE_METHODS, RankSettings

    refuse_idle(context, OPTIONS)
    existing = options.existing_policy(False, overwrite)
    inputs = _read_words(
        tables or [], table, metric or [], smaller, draws, clinical, columns, profile
    )
    settings = RankSettings(
        methods=_choose_methods(method, clinical) or VALUE_METHODS,
        ties=ties,
        missing=None if missing == "none" else _parse_missing(missing),
        is_exact=exact,
        correction=correction,
        n_resamples=resamples,
        seed=seed,
        resampling=resampling,
        covering=covering,
    )
    job = partial(rank_files, inputs, out, settings, smallest_site=minimum_site, existing=existing)
    summary = run(job)
    report_result(lambda: read_json(out / RANK_FILE))
    for block in rank_blocks(summary):
        print_table(
            block.title, block.heads, block.rows, to_the_right=block.heads[1:], is_folded=True
        )
        print("\n".join(block.lines))
    for note in summary.notes:
        print(f"note: {note}", file=sys.stderr)
    print(f"Ranking saved in {out / RANK_FILE}")
    print(f"Pages: {out / 'leaderboard.html'}, each algorithm's in {out / 'teams'}")


def _parse_missing(text: str) -> "MissingRule":
    from napari_mamamia.scoring.ranking.table import MissingRule

    try:
        return MissingRule.of_text(text)
    except ValueError as error:
        raise typer.BadParameter(f"--missing: {error}") from error


def _choose_methods(
    methods: list[RankMethod] | None, clinical: Path | None
) -> tuple[RankMethod, ...]:
    """Return the selected methods without duplicates; () means all methods that apply."""
    chosen = tuple(dict.fromkeys(methods or ()))
    if set(chosen) == {RankMethod.COMPOSITE}:
        raise typer.BadParameter(
            "the table needs another method in addition to the composite: add another --method"
        )
    if RankMethod.COMPOSITE in chosen and clinical is None:
        raise typer.BadParameter(
            "the method composite includes fairness, so it needs --clinical: pass the clinical "
            "table"
        )
    return chosen


def _read_words(
    tables: list[str],
    table: Path | None,
    metrics: list[str],
    smaller: bool | None,
    draws: Path | None,
    clinical: Path | None,
    columns: Path | None,
    profile: str,
) -> "RankInputs":
    from napari_mamamia.features.challenge.services.rank.inputs import RankInputs, algorithm_table
    from napari_mamamia.scoring.case.profiles import profile_named

    try:
        return RankInputs(
            tuple(algorithm_table(text) for text in tables),
            table,
            tuple(metrics),
            None if smaller is None else not smaller,
            draws,
            clinical,
            options.column_choice(columns),
            profile_named(profile),
        )
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
