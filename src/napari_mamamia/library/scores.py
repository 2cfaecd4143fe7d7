"""Results of scoring: tables of cases, groups and cohort, reports, and comparisons of models."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from functools import cached_property, partial
from html import escape
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from napari_mamamia.core.errors import ArgumentError, CaseError
from napari_mamamia.core.provenance import Setting
from napari_mamamia.core.records import CaseFailure, CaseScore, list_score_columns
from napari_mamamia.io.tables.tables import plain_content
from napari_mamamia.library.argument_words import advising_arguments
from napari_mamamia.library.arguments import ExistingName, PathLike, existing_of, path_of
from napari_mamamia.library.page import html_of
from napari_mamamia.library.progress import drive
from napari_mamamia.scoring.cohort.model_results import compare_results
from napari_mamamia.scoring.cohort.ranking import CompositeChoice
from napari_mamamia.scoring.cohort.results import ModelComparison, ModelScores
from napari_mamamia.scoring.cohort.segmentation_cohort import GroupScore
from napari_mamamia.scoring.report.tables import find_test
from napari_mamamia.services.batch.output_folder import Existing, claim_folder
from napari_mamamia.services.score.models import beside, require_baseline, require_names
from napari_mamamia.services.score.output import (
    comparison_content,
    summary_content,
    task1_content,
    write_comparison,
    write_scores,
)
from napari_mamamia.services.score.report import Scored, write_report_page, write_score_report
from napari_mamamia.services.score.settings import ScoreSettings
from napari_mamamia.services.score.text import cohort_lines, comparison_lines

if TYPE_CHECKING:
    import pandas as pd


_TESTS: Final = "Paired tests of a minus b, two-sided, after Holm"
_SHOWN_OF_TESTS: Final = (
    "metric",
    "model_a",
    "model_b",
    "n",
    "mean_difference",
    "low",
    "high",
    "p_t_test_holm",
    "p_wilcoxon_holm",
)


@dataclass(frozen=True, slots=True)
class ScoreSource:
    """Where scores come from: the equivalent command, its parameters, and the input folders."""

    command: Literal["score", "score-table"]
    parameters: tuple[tuple[str, Setting], ...]
    read: tuple[Path, ...] = ()


class Scores:
    """The scores of one model: ``.cases``, ``.groups`` and ``.cohort`` are tables.

    All scores are computed under the same profile, ``.profile``. `score` and `score_table` return
    this object.
    """

    def __init__(self, scored: Scored, settings: ScoreSettings, source: ScoreSource) -> None:
        self._scored, self._settings, self._source = scored, settings, source

    def __repr__(self) -> str:
        """Return the cohort results as the command line prints them."""
        return "\n".join(cohort_lines(self.model))

    def _repr_html_(self) -> str:
        tables = [_format_table(self.cohort, "Cohort, with 95 % intervals")]
        groups, shown = self.groups, self.groups.query("in_fairness and n > 0")
        if len(shown):
            rest = len(set(groups["variable"]) - set(shown["variable"]))
            columns = ["variable", "group", "n", "mean_dsc", "mean_norm_hd", "is_small"]
            title = f"Groups included in fairness; variables listed only in .groups: {rest}"
            tables.append(_format_table(shown[columns].set_index(["variable", "group"]), title))
        head = cohort_lines(self.model)[0]
        notes = "".join(f"<p>⚠ {escape(text)}</p>" for text in self.notes)
        return f"<p><b>{escape(head)}</b></p>{notes}{''.join(tables)}"

    @property
    def model(self) -> ModelScores:
        """All results of the model in one object."""
        return self._scored.model

    @property
    def name(self) -> str:
        """The name of the model."""
        return self.model.name

    @property
    def profile(self) -> str:
        """The profile of all scores: "clinical", "official-code" or "paper"."""
        return self.model.profile

    @property
    def failures(self) -> tuple[CaseFailure, ...]:
        """The cases that could not be scored or were scored with a problem, with reasons."""
        return self.model.failures

    @property
    def all_ok(self) -> bool:
        """Whether every case was scored without a problem."""
        return self.model.all_ok

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on the scores, in plain sentences."""
        failed, n = len(self.failures), self.model.n_cases
        first = (f"{f.case_id}: {f.reason}" for f in self.failures[:1])
        failures = (f"{failed} of {n} cases with a problem: {next(first, '')}",) if failed else ()
        return (*failures, *self.model.notes)

    @cached_property
    def cases(self) -> "pd.DataFrame":
        """A table of case scores, indexed by case id, with the columns of ``case_scores.csv``.

        Undefined values are NaN. ``status`` states whether the case was scored, and ``reason``
        explains any status except "ok".
        """
        return _case_table(self.model.rows)

    @cached_property
    def groups(self) -> "pd.DataFrame":
        """A table with one row per group of each variable; empty if there is no clinical table.

        The columns are ``variable``, ``group``, ``n``, ``mean_dsc``, ``mean_norm_hd``, ``sd_dsc``,
        ``sd_norm_hd``, ``is_small`` (whether the group has fewer cases than the profile requires)
        and ``in_fairness`` (whether the variable counts in the ranking score).
        """
        import pandas as pd

        names = [field.name for field in fields(GroupScore) if field.name != "label"]
        rows = list(_group_rows(self.model))
        return pd.DataFrame(rows, columns=["variable", "group", *names, "in_fairness"])

    @cached_property
    def cohort(self) -> "pd.DataFrame":
        """A table of cohort results: ``value``, ``low``, ``high`` (95 % interval) and ``reason``.

        The rows are mean_dsc, mean_norm_hd, performance, mean_hausdorff95_mm (over the cases with a
        distance), the fairness of each variable, fairness and ranking_score. Intervals of the first
        four are bootstrap percentiles over cases; intervals of fairness and ranking score are
        computed from contrasts between groups. Intervals are NaN without a bootstrap. ``reason``
        explains why a value is undefined.
        """
        import pandas as pd

        rows = list(_cohort_rows(self.model))
        table = pd.DataFrame(rows, columns=["number", "value", "low", "high", "reason"])
        return table.set_index("number")

    @cached_property
    def disparities(self) -> "pd.DataFrame":
        """A table of disparities, indexed by ``variable`` and ``measure`` ("dsc" or "norm_hd").

        ``value`` is the disparity that counts in the score. The other columns refer to groups with
        at least ``minimum_group`` cases: the disparity between them (``counted``), its expectation
        by chance (``by_chance``), the excess over chance (``beyond_chance``), the 95 % interval
        (``low``, ``high``), the Holm-corrected p-value of the permutation test, and the smaller
        groups (``left_out``).
        """
        import pandas as pd

        names = ["variable", "measure", "value", "counted", "by_chance", "beyond_chance"]
        names += ["low", "high", "p_holm", "left_out"]
        table = pd.DataFrame(list(_disparity_rows(self.model)), columns=names)
        return table.set_index(["variable", "measure"])

    def fairness_by(
        self,
        groups: Mapping[str, Any],
        *,
        table: "pd.DataFrame | None" = None,
        minimum_group: int = 5,
    ) -> "pd.DataFrame":
        """Compute fairness and disparities over custom groups, such as race or scanner.

        Parameters
        ----------
        groups
            Maps the name of each variable to a column of `table`, or to a dict or Series with the
            case ids as keys. A case with an empty value belongs to no group.
        table
            A table indexed by case id, such as ``data_set.columns``.
        minimum_group
            The smallest group that is included in intervals.

        Returns
        -------
        pandas.DataFrame
            A table with one row per ``variable`` and ``measure``: the disparities "dsc" and
            "norm_hd", and "fairness". The columns are ``value``, its 95 % interval (``low``,
            ``high``), the p-value of the permutation test (``p``, and ``p_holm`` after Holm's
            correction), ``n_groups`` and ``reason``. The last row is the mean fairness over these
            variables, which is not the official fairness.

        Raises
        ------
        ArgumentError
            If there are no groups, a column is missing, or a variable has more than 40 values.

        Examples
        --------
        >>> scores.fairness_by({"race": "ethnicity"}, table=data_set.columns)  # doctest: +SKIP
        """
        from napari_mamamia.library.own_groups import fairness_table

        result = self.model.segmentation
        if result is None:
            raise ArgumentError(
                "expected at least one scored mask, but found none: score masks, or check the "
                "reasons in .cases"
            )
        return fairness_table(result.scores, self.profile, groups, table, minimum_group)

    @property
    def summary(self) -> dict[str, Any]:
        """All results as a dict, as in ``summary.json``; undefined values are None."""
        content: dict[str, Any] = plain_content(summary_content(self.model))
        return content

    def compare(self, *others: "Scores", baseline: str = "") -> "Comparison":
        """Compare this model with other models by ranks and paired tests.

        Parameters
        ----------
        others
            The scores of the other models under the same profile. Tests use the cases that the
            models have in common.
        baseline
            The name of the baseline model; by default there is none.

        Returns
        -------
        Comparison
            The comparison, with the tables ``.ranking``, ``.tests`` and ``.weights``.

        Raises
        ------
        ArgumentError
            If there is no other model, an argument is not a `Scores`, two models have the same
            name, or the profiles differ.
        """
        return Comparison.of((self, *others), baseline)

    def report(self, path: PathLike, *, overwrite: bool = False, progress: bool = True) -> Path:
        """Write the report as one HTML page and return its path.

        Parameters
        ----------
        path
            The HTML file to write.
        overwrite
            Whether an existing file is replaced.
        progress
            Whether to show a progress bar.

        Returns
        -------
        Path
            The written file.

        Raises
        ------
        SaveConflictError
            If the file exists and `overwrite` is False.
        SaveError
            If the system does not allow writing.
        """
        return _write_page((self,), None, path, overwrite, progress)

    @advising_arguments
    def save(
        self, folder: PathLike, *, existing: ExistingName = "refuse", progress: bool = True
    ) -> Path:
        """Write the files of ``mamamia score`` into `folder`, and return it.

        The files are ``case_scores.csv`` (and ``.xlsx``, ``.parquet``), ``summary.json``,
        ``report.html`` and the figures.

        Parameters
        ----------
        folder
            The folder to write to.
        existing
            What to do if the folder is not empty: "refuse" raises an error, and "overwrite"
            replaces files of the same name.
        progress
            Whether to show a progress bar.

        Returns
        -------
        Path
            The folder.

        Raises
        ------
        SaveConflictError
            If the folder contains other results or the scored files.
        SaveError
            If the system does not allow writing.
        """
        out, how = path_of(folder, "a folder"), existing_of(existing, can_resume=False)
        source, overwrite = self._source, how is not Existing.REFUSE
        claim_folder(out, source.command, source.parameters, how, source.read)
        drive(partial(write_scores, self.model, out, overwrite=overwrite), progress)
        page = partial(write_score_report, [self._scored], out, self._settings, overwrite=overwrite)
        drive(page, progress)
        return out


class Comparison:
    """Several models under one profile: ``.ranking``, ``.tests`` and ``.weights`` are tables."""

    def __init__(self, models: tuple[Scores, ...], comparison: ModelComparison) -> None:
        self._models, self._comparison = models, comparison

    @classmethod
    def of(cls, models: tuple[Scores, ...], baseline: str = "") -> "Comparison":
        """Compare several models; the errors are those of `Scores.compare`."""
        if wrong := [model for model in models if not isinstance(model, Scores)]:
            raise ArgumentError(
                f"expected the scores of models, but got {type(wrong[0]).__name__}: pass results "
                "of score()"
            )
        names = [model.name for model in models]
        if len(models) < 2:
            raise ArgumentError(
                f"expected at least two models, but got only {', '.join(names)}: pass the scores "
                "of a second model"
            )
        if len({model.profile for model in models}) > 1:
            listed = ", ".join(f"{model.name} ({model.profile})" for model in models)
            raise ArgumentError(
                f"expected the same profile for all models, but got {listed}: score all models "
                "under one profile"
            )
        try:
            require_names(names)
            require_baseline(names, baseline)
            comparison = compare_results(
                [model.model for model in models], CompositeChoice(baseline=baseline)
            )
        except CaseError as error:
            raise ArgumentError(
                str(error).replace(
                    "name them with NAME=DIR", 'name them with `score(..., name="...")`'
                )
            ) from error
        return cls(models, comparison)

    def __repr__(self) -> str:
        """Return the comparison as the command line prints it."""
        return "\n".join(comparison_lines(self._comparison))

    def _repr_html_(self) -> str:
        notes = "".join(f"<p>⚠ {escape(text)}</p>" for text in self._comparison.notes)
        return (
            f"<p><b>Profile {escape(self.profile)}, weight of fairness "
            f"{self._comparison.weight_of_fairness:g}</b></p>{notes}"
            f"{_format_table(self.ranking, 'Models')}"
            f"{_format_table(self.tests[list(_SHOWN_OF_TESTS)], _TESTS)}"
        )

    @property
    def record(self) -> ModelComparison:
        """All results of the comparison in one object."""
        return self._comparison

    @property
    def profile(self) -> str:
        """The profile of all scores."""
        return self._comparison.profile

    @cached_property
    def ranking(self) -> "pd.DataFrame":
        """A table of scores and ranks, with the best model first; undefined values are NaN."""
        import pandas as pd

        ranked = sorted(self._comparison.ranking, key=lambda m: (isnan(m.rank), m.rank))
        return pd.DataFrame([asdict(model) for model in ranked]).set_index("name")

    @cached_property
    def tests(self) -> "pd.DataFrame":
        """A table of paired tests by model pair and metric, with and without Holm's correction."""
        import pandas as pd

        return pd.DataFrame([asdict(test) for test in self._comparison.tests])

    @cached_property
    def weights(self) -> "pd.DataFrame":
        """A table of each model's ranking score (column) at fairness weights 0 to 1 (rows)."""
        import pandas as pd

        sweep = self._comparison.sweep
        index = pd.Index(list(sweep.weights), name="weight_of_fairness")
        return pd.DataFrame(sweep.scores.T, index=index, columns=list(sweep.names))

    @property
    def summary(self) -> dict[str, Any]:
        """All results as a dict, as in ``comparison.json``; undefined values are None."""
        content: dict[str, Any] = plain_content(comparison_content(self._comparison))
        return content

    def report(self, path: PathLike, *, overwrite: bool = False, progress: bool = True) -> Path:
        """Write the report of all models as one HTML page.

        Parameters
        ----------
        path
            The HTML file to write.
        overwrite
            Whether an existing file is replaced.
        progress
            Whether to show a progress bar.

        Returns
        -------
        Path
            The written file.

        Raises
        ------
        SaveConflictError
            If the file exists and `overwrite` is False.
        SaveError
            If the system does not allow writing.
        """
        return _write_page(self._models, self._comparison, path, overwrite, progress)

    @advising_arguments
    def save(
        self, folder: PathLike, *, existing: ExistingName = "refuse", progress: bool = True
    ) -> Path:
        """Write the files of ``mamamia score`` for several models into `folder`, and return it.

        The subfolder ``NAME`` contains the files of each model, as in `Scores.save`.
        ``comparison.json``, ``report.html`` and the figures cover all models.

        Parameters
        ----------
        folder
            The folder to write to.
        existing
            What to do if the folder is not empty: "refuse" raises an error, and "overwrite"
            replaces files of the same name.
        progress
            Whether to show a progress bar.

        Returns
        -------
        Path
            The folder.

        Raises
        ------
        SaveConflictError
            If the folder contains other results or the scored files.
        SaveError
            If the system does not allow writing.
        """
        out, how = path_of(folder, "a folder"), existing_of(existing, can_resume=False)
        overwrite, first = how is not Existing.REFUSE, self._models[0]._source
        read = tuple(path for model in self._models for path in model._source.read)
        parameters = dict(first.parameters)
        parameters.pop("prediction", None)
        models = ("predictions", ", ".join(model.name for model in self._models))
        claim_folder(out, first.command, (models, *parameters.items()), how, read)
        for one in self._models:
            model_scores = beside(one.model, self._comparison)
            drive(
                partial(write_scores, model_scores, out / model_scores.name, overwrite=overwrite),
                progress,
            )
        write_comparison(self._comparison, out, overwrite=overwrite)
        scored, settings = [model._scored for model in self._models], self._models[0]._settings
        drive(
            partial(
                write_score_report, scored, out, settings, self._comparison, overwrite=overwrite
            ),
            progress,
        )
        return out


def _write_page(
    models: tuple[Scores, ...],
    comparison: ModelComparison | None,
    path: PathLike,
    overwrite: bool,
    progress: bool,
) -> Path:
    target = path_of(path, "a report")
    if target.suffix.lower() not in (".html", ".htm"):
        raise ArgumentError(
            f"expected the path of an HTML file, but got {target}: use a name such as "
            "report.html, or write all files to a folder with save(folder)"
        )
    scored, settings = [model._scored for model in models], models[0]._settings
    drive(
        partial(write_report_page, scored, target, settings, comparison, overwrite=overwrite),
        progress,
    )
    return target


def _case_table(rows: tuple[CaseScore, ...]) -> "pd.DataFrame":
    import pandas as pd

    names = list_score_columns(rows)
    columns = {name: [getattr(row, name) for row in rows] for name in names if name != "case_id"}
    columns["status"] = [row.status.value for row in rows]
    index = pd.Index([row.case_id for row in rows], name="case_id", dtype=object)
    return pd.DataFrame(columns, index=index)


def _group_rows(model: ModelScores) -> Iterator[dict[str, Any]]:
    result = model.segmentation
    if result is None:
        return
    scored = [
        (variable.variable, variable.groups, True) for variable in result.cohort.fairness.variables
    ]
    beside_them = [(stratum.variable, stratum.groups, False) for stratum in result.strata]
    for variable, groups, counts in (*scored, *beside_them):
        for group in groups:
            values = asdict(group)
            labels = {"variable": variable, "group": values.pop("label")}
            yield {**labels, **values, "in_fairness": counts}


def _disparity_rows(model: ModelScores) -> Iterator[dict[str, Any]]:
    result = model.segmentation
    for disparity in result.uncertainty.disparities if result else ():
        test = (
            find_test(result.permutation_tests, disparity.variable, disparity.measure)
            if result
            else None
        )
        yield {
            **{
                name: getattr(disparity, name)
                for name in ("variable", "measure", "value", "counted")
            },
            "by_chance": disparity.by_chance,
            "beyond_chance": disparity.beyond_chance,
            "low": disparity.interval.low,
            "high": disparity.interval.high,
            "p_holm": test.p_holm if test else float("nan"),
            "left_out": ", ".join(f"{g.group} ({g.said})" for g in disparity.interval.left_out),
        }


def _cohort_rows(model: ModelScores) -> Iterator[tuple[str, float, float, float, str]]:
    if model.segmentation is None:
        return
    content = task1_content(model.segmentation)
    numbers: dict[str, tuple[float, str]] = {}
    for name in ("mean_dsc", "mean_norm_hd", "performance"):
        numbers[name] = content[name], content["reasons"].get(name, "")
    if model.segmentation.n_hausdorff95_mm:
        numbers["mean_hausdorff95_mm"] = content["mean_hausdorff95_mm"], ""
    for variable, value in content["fairness_by_variable"].items():
        reason = content["reasons"].get(f"fairness_by_variable.{variable}", "")
        numbers[f"fairness_{variable}"] = value, reason
    defined = {
        name: value for name, value in content["fairness_by_variable"].items() if value == value
    }
    if defined and len(defined) < len(content["fairness_by_variable"]):
        mean = sum(defined.values()) / len(defined)
        reason = f"this is not the official fairness, because it covers only {', '.join(defined)}"
        numbers["fairness_of_known_variables"] = mean, reason
    for name in ("fairness", "ranking_score"):
        numbers[name] = content[name], content["reasons"].get(name, "")
    for name, (value, reason) in numbers.items():
        ends: Mapping[str, Any] = content["intervals"].get(name, {})
        low, high = ends.get("low", float("nan")), ends.get("high", float("nan"))
        yield name, value, low, high, reason


def _format_table(table: "pd.DataFrame", title: str) -> str:
    return f"<p>{escape(title)}</p>{html_of(table)}"
