"""Freeze the truth of a challenge with its own definition, and measure the teams' answers."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from math import isfinite
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import numpy as np

from napari_mamamia.core.cohort import Cohort
from napari_mamamia.core.errors import CaseError, FormatError, MamamiaError, Remedy, is_of_system
from napari_mamamia.core.names import count_of, name_some
from napari_mamamia.core.plugins import PluginCode, Registry
from napari_mamamia.core.progress import report_progress
from napari_mamamia.core.records import CaseScore, ScoreStatus
from napari_mamamia.features.challenge.io import answer_files
from napari_mamamia.features.challenge.io.challenge_file import OpenChallenge
from napari_mamamia.features.challenge.io.definition import (
    MAMA_MIA_TASK1,
    MAMA_MIA_TASK2,
    MISSING_TEXTS,
    OF_PROFILE,
    AnswerKind,
    ChallengeDefinition,
    Measure,
    MissingAnswer,
    RankBy,
    definition_named,
    read_frozen,
)
from napari_mamamia.features.challenge.scoring.defined_ranking import (
    CaseValue,
    MeasuredCases,
    MeasureRule,
    ValueState,
    evaluate_formula,
)
from napari_mamamia.features.challenge.scoring.measure_registry import MEASURES, MODELS
from napari_mamamia.features.challenge.scoring.measures import (
    CaseAnswer,
    ChallengeMeasure,
    NotComputedError,
    NotDefinedError,
    NoTruthError,
)
from napari_mamamia.io.files.file_names import case_key
from napari_mamamia.io.files.foreign import reads
from napari_mamamia.io.files.json_text import read_json
from napari_mamamia.io.files.record_codec import RecordCodec
from napari_mamamia.io.tables.tables import write_json
from napari_mamamia.metrics.registry import METRIC_REGISTRY, list_metrics
from napari_mamamia.scoring.cohort.groups import group_by_column
from napari_mamamia.services.score.clinical_table import matched

ANSWERS: Final = "answers"
PROFILE_NUMBERS: Final = ("performance", "fairness", "ranking_score")
_REMEDY: Final = "run the challenge again"


@dataclass(frozen=True, slots=True)
class AnswerValues:
    """A team's case values by measure, and its unusable cases with reasons."""

    definition: str
    measures: tuple[MeasuredCases, ...]
    unusable: tuple[tuple[str, str], ...] = ()

    @property
    def by_id(self) -> Mapping[str, MeasuredCases]:
        """Return the case values by the id of their measure."""
        return {measure.id: measure for measure in self.measures}


_VALUES: Final = RecordCodec(AnswerValues, _REMEDY)


def read_definitions(opened: OpenChallenge) -> tuple[ChallengeDefinition, ...]:
    """Return the frozen definitions of a challenge, or the built-in MAMA-MIA ones of its task."""
    challenge = opened.challenge
    if challenge.definitions:
        return tuple(read_frozen(opened.folder / file.name) for file in challenge.definitions)
    names = [MAMA_MIA_TASK1] * challenge.wants_masks + [MAMA_MIA_TASK2] * challenge.wants_responses
    return tuple(definition_named(name) for name in names)


def find_definition(opened: OpenChallenge, kind: AnswerKind) -> ChallengeDefinition:
    """Return the challenge's definition for a kind of answer."""
    return next(one for one in read_definitions(opened) if one.answer.kind is kind)


def require_measures(definition: ChallengeDefinition) -> tuple[str, ...]:
    """Check a definition's measures, and return notes on them.

    Raises
    ------
    FormatError
        If a measure or an argument is unknown, the formula is invalid, or missing answers get the
        worst value although a ranking measure has no worst value.
    """
    if definition.has_own_files:
        measure_rules(definition)
        return _require_worst(definition)
    known = {column.name for column in fields(CaseScore) if column.type is float}
    known |= {spec.name for spec in list_metrics()} | {
        OF_PROFILE + name for name in PROFILE_NUMBERS
    }
    for measure in definition.measures:
        if find_measure(definition, measure) is not None:
            continue
        if "label" in measure.args:
            raise FormatError(
                f"definition {definition.name}: expected the label of {measure.id} as its key "
                "`label`, with the label's values in answer.labels, but found it in args: correct "
                "the definition"
            )
        if measure.of not in known or measure.args:
            own = [name for name, spec in MEASURES.items() if spec.kind is definition.answer.kind]
            raise FormatError(
                f"expected a measure of a package ({name_some(own) or 'none is installed'}) or a "
                f"score column without arguments ({name_some(sorted(known), 40)}), but "
                f"found {measure.of!r} in the definition {definition.name}: correct the definition"
            )
    if definition.is_by_profile and has_mask_measures(definition):
        raise FormatError(
            f"definition {definition.name}: {OF_PROFILE}* is defined for masks without labels and "
            "without measures of packages: rank by other measures"
        )
    names = [
        measure.id for measure in definition.measures
        if measure.of.startswith(OF_PROFILE) or not definition.is_by_profile
    ]  # fmt: skip
    if definition.is_by_profile and definition.ranking.by is not RankBy.SCORE:
        raise FormatError(
            f'expected ranking.by = "score" with measures {OF_PROFILE}*, but found '
            f"{definition.ranking.by.value!r}: rank by a formula of these measures, or use other "
            "measures"
        )
    _require_formula(definition, names)
    return () if definition.is_by_profile else _require_worst(definition)


def _require_worst(definition: ChallengeDefinition) -> tuple[str, ...]:
    """Return notes on measures of all cases that rank a team last if an answer is missing."""
    if definition.missing is not MissingAnswer.WORST:
        return ()
    of_cases: list[str] = []
    of_sets: list[str] = []
    for measure in definition.ranking_measures:
        spec = find_measure(definition, measure)
        if measure.worst is None and (spec is None or spec.worst is None):
            (of_cases if spec is None or spec.of_rows is None else of_sets).append(measure.id)
    if of_cases:
        raise FormatError(
            f"definition {definition.name}: expected `worst` for each measure that ranks, because "
            f"cases without a usable answer {MISSING_TEXTS[definition.missing]}, but found none "
            f"for {name_some(of_cases)}: add `worst` to the measure, or set `missing` to last-rank"
        )
    return tuple(f"{name} has no worst value: a team that lacks a case is ranked last by it"
                 for name in of_sets)  # fmt: skip


def describe_missing(definition: ChallengeDefinition) -> str:
    """Say how cases without a usable answer count, and which measures rank a team last."""
    return "; ".join((MISSING_TEXTS[definition.missing], *require_measures(definition)))


def describe_columns(definition: ChallengeDefinition, cohort: Cohort | None) -> tuple[str, ...]:
    """Say which columns of the clinical table a definition uses, and which not.

    Parameters
    ----------
    definition
        The definition.
    cohort
        The clinical table.
    """
    if cohort is None or definition.is_by_profile:
        return ()
    fields_with_values = [name for name, n in cohort.coverage().items() if n]
    others = dict.fromkeys(name for record in cohort.records for name in record.other)
    used = definition.ranking.sites
    unused = [name for name in (*fields_with_values, *others) if name != used]
    text = f"table of cases: used {used or 'no column'}"
    text += f", not used {name_some(unused, 40)}" * bool(unused)
    return (f"{text}; a definition has no results in groups of cases",)


def _require_formula(definition: ChallengeDefinition, names: Sequence[str]) -> None:
    if not definition.ranking.score:
        return
    try:
        evaluate_formula(definition.ranking.score, dict.fromkeys(names, 1.0))
    except FormatError as error:
        raise FormatError(f"definition {definition.name}: {error}") from error


def find_sites(
    definition: ChallengeDefinition, case_ids: Sequence[str], cohort: Cohort | None
) -> dict[str, str]:
    """Return the site of each case from the definition's site column, or {} if it has none.

    Parameters
    ----------
    definition
        The definition.
    case_ids
        The cases.
    cohort
        The clinical table.

    Raises
    ------
    FormatError
        If there is no clinical table, or it has no site for any case.
    """
    column = definition.ranking.sites
    if not column:
        return {}
    found = "no clinical table"
    if cohort is not None:
        own = matched(list(case_ids), cohort)
        grouping = group_by_column(case_ids, own, column)
        if grouping is not None:
            labels = (*grouping.labels, "")
            return {case_id: labels[code]
                    for case_id, code in zip(case_ids, grouping.codes, strict=True)}  # fmt: skip
        fields = [name for name, n in cohort.coverage().items() if n]
        others = dict.fromkeys(name for record in cohort.records for name in record.other)
        found = (
            f"no value for {count_of(len(case_ids), 'case')}; the columns with values are "
            f"{name_some([*fields, *others], 40)}"
        )
    raise FormatError(
        f"expected the site of each case in the column {column!r} of the clinical table, as the "
        f"definition {definition.name} says, but found {found}",
        remedies=(Remedy("clinical", ("FILE",)),),
    )


def measure_scores(definition: ChallengeDefinition, rows: Sequence[CaseScore]) -> AnswerValues:
    """Return the values of the measures that are columns of the score table."""
    measures = []
    for measure in definition.measures:
        worst = () if measure.worst is None else ((measure.worst,),)
        values = []
        for row in rows:
            number = getattr(row, measure.of)
            is_ok = row.status is ScoreStatus.OK and isfinite(number)
            state = ValueState.OK if is_ok else ValueState.NOT_DEFINED
            values.append(CaseValue(row.case_id, ((number,),) if is_ok else (), worst, state))
        measures.append(MeasuredCases(measure.id, tuple(values)))
    unusable = [(row.case_id, row.reason) for row in rows if row.status is not ScoreStatus.OK]
    return AnswerValues(definition.name, tuple(measures), tuple(unusable))


def measure_rules(definition: ChallengeDefinition) -> tuple[MeasureRule, ...]:
    """Return the measures of a definition with the functions that combine all rows.

    Raises
    ------
    FormatError
        If a measure is not registered, is for a different kind of answer, or does not accept its
        arguments, or if a formula cannot be evaluated.
    """
    rules = []
    for measure in definition.measures:
        spec = find_measure(definition, measure)
        if spec is None:
            rules.append(MeasureRule(measure))
            continue
        of_rows = None
        if spec.of_rows is not None:
            of_rows = partial(spec.of_rows, **_take_arguments(spec.of_rows, measure))
        rules.append(MeasureRule(measure, of_rows, spec.is_resampled))
    _require_formula(definition, [rule.measure.id for rule in rules])
    return tuple(rules)


def find_measure(definition: ChallengeDefinition, measure: Measure) -> ChallengeMeasure | None:
    """Return a registered measure, or None if a profile defines the measure.

    Raises
    ------
    FormatError
        If the measure is not registered, or is for a different kind of answer.
    """
    if not definition.has_own_files and measure.of not in MEASURES:
        return None
    return _find_spec(definition, measure)


def has_mask_measures(definition: ChallengeDefinition) -> bool:
    """Return whether masks are measured by label, or by measures from other packages."""
    return definition.answer.kind is AnswerKind.MASKS and bool(
        definition.answer.labels or any(measure.of in MEASURES for measure in definition.measures)
    )


def _find_spec(definition: ChallengeDefinition, measure: Measure) -> ChallengeMeasure:
    kind = definition.answer.kind
    if measure.of not in MEASURES or MEASURES[measure.of].kind is not kind:
        names = [name for name, spec in MEASURES.items() if spec.kind is kind]
        raise FormatError(
            f"expected a measure of {kind.value} ({name_some(names, 20)}), but found "
            f"{measure.of!r} in the definition {definition.name}: correct the definition, or "
            "install the package that registers this measure"
        )
    spec = MEASURES[measure.of]
    functions = [spec.of_case, *([spec.of_rows] if spec.of_rows else [])]
    taken = {name for function in functions for name in _take_arguments(function, measure)}
    if unknown := sorted(set(measure.args) - taken):
        raise FormatError(
            f"definition {definition.name}: {measure.of} takes no argument {unknown[0]!r}: "
            "correct the definition"
        )
    return spec


def _take_arguments(function: Callable[..., Any], measure: Measure) -> dict[str, Any]:
    names = inspect.signature(function).parameters
    return {name: value for name, value in measure.args.items() if name in names}


def list_truth(
    definition: ChallengeDefinition, folder: Path
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the case ids, and the names of all truth files in a folder.

    Only the first file of a case is required; for example, a case without a tumour may lack a mask.

    Raises
    ------
    CaseError
        If there is no case.
    FormatError
        If the table cannot be read.
    """
    truth = definition.truth
    ids: tuple[str, ...] = ()
    if truth.table:
        ids = tuple(answer_files.read_truth_table(folder, truth))
    patterns = tuple(truth.files.values())
    if patterns:
        there = answer_files.list_ids(folder, patterns[0])
        ids = tuple(case_id for case_id in there if case_id in ids) if truth.table else there
    if not ids:
        raise CaseError(
            f"expected cases in {folder} ({truth.table or patterns[0]}), but found none: choose "
            "the folder to which the definition's paths are relative"
        )
    paths = [
        answer_files.file_of(folder, pattern, case_id) for pattern in patterns for case_id in ids
    ]
    names = [path.relative_to(folder).as_posix() for path in paths if path.is_file()]
    return ids, (*names, *([truth.table] if truth.table else []))


def freeze_code(
    definitions: Sequence[ChallengeDefinition], models: Sequence[str] = ()
) -> tuple[PluginCode, ...]:
    """Return the frozen code of all measures and models from other installed packages.

    Parameters
    ----------
    definitions
        The definitions of a challenge.
    models
        The models of the challenge, such as ``threshold:1.75``.
    """
    used: list[tuple[Registry[Any], str]] = [
        (MEASURES if measure.of in MEASURES else METRIC_REGISTRY, measure.of)
        for definition in definitions
        for measure in definition.measures
    ]
    used += [(MODELS, text.partition(":")[0]) for text in models]
    codes = dict.fromkeys(registry.code(name) for registry, name in used)
    return tuple(code for code in codes if code is not None)


def find_changed_code(codes: Sequence[PluginCode]) -> list[str]:
    """Describe each measure or model whose package or code has changed since it was frozen."""
    changes = []
    registries: tuple[Registry[Any], ...] = (MEASURES, METRIC_REGISTRY, MODELS)
    for frozen in codes:
        registry = next(one for one in registries if one.group == frozen.group)
        here = registry.code(frozen.name)
        if here != frozen:
            found = f"other code of {here.package} {here.version}" if here else "none installed"
            changes.append(
                f"expected {frozen.name} of {frozen.package} {frozen.version}, with which the "
                f"challenge was created, but found {found}"
            )
    return changes


Models: TypeAlias = Mapping[str, Callable[..., Any]]
"""The models that measures use, by role."""


def load_models(texts: Mapping[str, str], folder: Path) -> Models:
    """Load models by role from strings such as ``threshold:1.75`` or ``alexnet:weights.npz``.

    Parameters
    ----------
    texts
        Kind of each model by role, with its argument after ``:``.
    folder
        The folder of model files.

    Raises
    ------
    FormatError
        If a kind is unknown, or a model cannot be loaded.
    MissingExtraError
        If a model needs a package that is not installed.
    """
    models = {}
    for role, text in texts.items():
        name, _, argument = text.partition(":")
        if name not in MODELS:
            raise FormatError(
                f"expected a kind of model ({name_some(list(MODELS), 20)}), but found {name!r}"
            )
        file = folder / argument
        try:
            models[role] = MODELS[name].load(str(file) if argument and file.is_file() else argument)
        except (ValueError, KeyError) as error:
            raise FormatError(f"cannot load the model {text!r} for {role}: {error}") from error
    return models


def measure_answers(
    opened: OpenChallenge, definition: ChallengeDefinition, folder: Path
) -> AnswerValues:
    """Measure all cases of a submission; the errors are those of `measure_folder`.

    Parameters
    ----------
    opened
        The challenge.
    definition
        The definition to use.
    folder
        The folder of the submission's files.
    """
    if opened.reference is None:
        raise FormatError("expected the folder of the truth in places.json, but found none")
    challenge = opened.challenge
    models = load_models(challenge.models, opened.folder)
    return measure_folder(definition, opened.reference, folder, challenge.case_ids, models)


def measure_folder(
    definition: ChallengeDefinition,
    root: Path,
    folder: Path,
    case_ids: Sequence[str],
    models: Models,
) -> AnswerValues:
    """Measure the cases of a submission.

    Parameters
    ----------
    definition
        The definition.
    root
        The folder of the truth.
    folder
        The folder of the submission's files.
    case_ids
        The cases.
    models
        The models that measures use.

    Raises
    ------
    MamamiaError
        If the system does not allow reading a file, or the submission's table cannot be read.
    """
    answers: dict[str, Any] | None = None
    if "{id}" not in definition.answer.file:
        answers = answer_files.read_answer_table(folder, definition.answer)
    table = answer_files.read_truth_table(root, definition.truth) if definition.truth.table else {}
    specs = tuple((measure, _find_spec(definition, measure)) for measure in definition.measures)
    team = _TeamMeasures(specs, {measure.id: [] for measure in definition.measures})
    for number, case_id in enumerate(case_ids):
        report_progress(number, len(case_ids), f"Measuring {case_id}")
        truth: dict[str, Any] = {"table": table[case_id]} if case_id in table else {}
        for role, pattern in definition.truth.files.items():
            path = answer_files.file_of(root, pattern, case_id)
            truth[role] = answer_files.read_image(path) if path.is_file() else None
        answer, reason = _find_answer(folder, definition, case_id, answers, truth)
        n_classes = len(definition.answer.classes)
        team.add(CaseAnswer(case_id, answer, MappingProxyType(truth), models, n_classes), reason)
    return AnswerValues(definition.name, team.finish(), tuple(team.unusable))


@dataclass(slots=True)
class _TeamMeasures:
    """Collects a team's values by measure while its cases are measured."""

    specs: tuple[tuple[Measure, ChallengeMeasure], ...]
    values: dict[str, list[CaseValue]]
    problems: dict[str, str] = field(default_factory=dict)
    unusable: list[tuple[str, str]] = field(default_factory=list)

    def add(self, case: CaseAnswer, reason: str) -> None:
        """Measure a case; if it has no answer, `reason` says why."""
        for measure, spec in self.specs:
            if measure.id in self.problems:
                continue
            try:
                value = measure_case(spec, measure, case.case_id, case.answer, (case,))
            except NotComputedError as error:
                self.problems[measure.id] = str(error)
                continue
            self.values[measure.id].append(value)
            if not value.is_usable and value.state is not ValueState.NO_TRUTH:
                reason = reason or value.reason or "a measure is not finite"
        if reason:
            self.unusable.append((case.case_id, reason))

    def finish(self) -> tuple[MeasuredCases, ...]:
        """Return the values of each measure; () with the reason if it cannot be computed."""
        return tuple(
            MeasuredCases(name, () if name in self.problems else tuple(values),
                          self.problems.get(name, ""))
            for name, values in self.values.items()
        )  # fmt: skip


def _find_answer(
    folder: Path,
    definition: ChallengeDefinition,
    case_id: str,
    answers: Mapping[str, Any] | None,
    truth: Mapping[str, Any],
) -> tuple[Any, str]:
    """Return a case's answer, or None and the reason."""
    if answers is not None:
        answer = answers.get(case_key(case_id), "the table has no row for this case")
    elif not answer_files.file_of(folder, definition.answer.file, case_id).is_file():
        return None, "there is no file for this case"
    else:
        try:
            answer = answer_files.read_answer(folder, definition.answer, case_id)
        except MamamiaError as error:
            if is_of_system(error):
                raise
            return None, str(error)
    if isinstance(answer, str):
        return None, answer
    if definition.answer.kind is AnswerKind.IMAGES and (problem := _find_misfit(answer, truth)):
        # Official code takes such images as they are.
        return (answer, "") if definition.missing is MissingAnswer.LEAVE_OUT else (None, problem)
    expected = truth.get("table")
    if isinstance(answer, dict) and expected is not None and set(answer) != set(expected):
        return None, f"expected {', '.join(expected)}, but found {', '.join(answer)}"
    return answer, ""


def _find_misfit(image: Any, truth: Mapping[str, Any]) -> str:
    expected = next((array for array in truth.values() if array is not None), image)
    if image.shape != expected.shape:
        return f"expected an image of shape {expected.shape}, but found {image.shape}"
    return "" if np.isfinite(image).all() else "the image has values that are not finite"


def measure_case(
    spec: ChallengeMeasure, measure: Measure, case_id: str, answer: Any, inputs: Sequence[Any]
) -> CaseValue:
    """Compute the value of a measure for a case.

    Parameters
    ----------
    spec, measure
        The registered measure, and its entry in the definition.
    case_id
        The case.
    answer
        The answer; None if there is none.
    inputs
        The arguments of the measure's functions.
    """
    worst = measure.worst if measure.worst is not None else spec.worst
    worst_rows: tuple[tuple[float, ...], ...] = ()
    try:
        if callable(worst):
            worst = worst(*inputs, **_take_arguments(worst, measure))
        worst_rows = () if worst is None else _as_rows(worst)
        if answer is None:
            # A model that is missing is noticed at a case with an answer.
            return CaseValue(case_id, (), worst_rows, ValueState.FAILED)
        rows = _as_rows(spec.of_case(*inputs, **_take_arguments(spec.of_case, measure)))
    except NotComputedError:
        raise
    except NoTruthError as error:
        return CaseValue(case_id, (), (), ValueState.NO_TRUTH, str(error))
    except NotDefinedError as error:
        return CaseValue(case_id, (), worst_rows, ValueState.NOT_DEFINED, str(error))
    except (ValueError, KeyError, IndexError, TypeError) as error:
        return CaseValue(case_id, (), worst_rows, ValueState.FAILED, str(error))
    return CaseValue(case_id, rows, worst_rows)


def _as_rows(value: Any) -> tuple[tuple[float, ...], ...]:
    return tuple(map(tuple, np.atleast_2d(np.asarray(value, dtype=np.float64)).tolist()))


def values_name(definition: ChallengeDefinition) -> str:
    """Return the path of the values file, relative to an attempt's folder."""
    return f"{ANSWERS}/{definition.name}.json"


def write_values(values: AnswerValues, folder: Path) -> str:
    """Write a team's values to its attempt's folder, and return the file's name."""
    name = f"{ANSWERS}/{values.definition}.json"
    write_json(_VALUES.plain(values), folder / name, overwrite=True)
    return name


@reads("the values of a submission", _REMEDY)
def read_values(path: Path) -> AnswerValues:
    """Read a team's values from a file."""
    return _VALUES.record(read_json(path), path)
