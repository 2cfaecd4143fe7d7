"""Challenge definitions as data: truth, answers, measures, and the ranking of teams.

A definition is TOML (YAML where PyYAML is installed). It names registered measures and contains
formulas of + - * / min max. Reading a definition therefore runs no code. The built-in definitions
are the TOML files in ``definitions``; installed packages can add more as TOML text.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from napari_mamamia.core.choices import RankTies
from napari_mamamia.core.errors import FormatError
from napari_mamamia.core.names import name_some
from napari_mamamia.core.plugins import Registry
from napari_mamamia.io.files.foreign import open_plain, reads
from napari_mamamia.io.files.json_text import read_json
from napari_mamamia.io.files.record_codec import Form, Layout, RecordCodec
from napari_mamamia.io.tables.tables import write_json

GROUP: Final = "napari_mamamia.challenges"
DEFINITIONS: Final = "definitions"
"""Subfolder of a challenge that contains its definitions, frozen as JSON."""
MAMA_MIA_TASK1: Final = "mama-mia-2025-task1"
MAMA_MIA_TASK2: Final = "mama-mia-2025-task2"
OF_PROFILE: Final = "profile."
"""Prefix of measures that a profile defines over all cases, such as ``profile.performance``."""
_REMEDY: Final = "correct the definition; its keys are in the documentation (Run a challenge)"
_NAME: Final = re.compile(r"\w[\w\-]*")
_MOST_BYTES: Final = 1 << 20
_YAML: Final = (".yaml", ".yml")

Argument: TypeAlias = bool | int | float | str


class AnswerKind(StrEnum):
    """The kind of answers that teams submit."""

    MASKS = "masks"
    """A mask for each case, scored under a profile; teams may also submit a program."""
    RESPONSES = "responses"
    """A table of predicted treatment responses, scored under a profile."""
    IMAGES = "images"
    """An image for each case."""
    PROBABILITIES = "probabilities"
    """Class probabilities for each case, or for each part of a case (such as a breast)."""
    NUMBERS = "numbers"
    """A table with one number for each case."""


class Better(StrEnum):
    """Whether lower or higher values of a measure are better."""

    HIGH = "high"
    LOW = "low"


class MissingAnswer(StrEnum):
    """How a case without a usable answer is treated."""

    WORST = "worst"
    """The case gets the worst possible value of each measure."""
    LAST_RANK = "last-rank"
    """The team is ranked last in each measure that has no value for a case."""
    LEAVE_OUT = "leave-out"
    """The case does not count, so a team can gain by not answering hard cases."""


MISSING_TEXTS: Final[Mapping[MissingAnswer, str]] = MappingProxyType(
    {
        MissingAnswer.WORST: "get the worst value of each measure",
        MissingAnswer.LAST_RANK: "rank the team last in each measure that lacks one",
        MissingAnswer.LEAVE_OUT: "do not count",
    }
)
"""How cases without a usable answer are treated, as text that ends a sentence."""


class AbsentLabel(StrEnum):
    """How a case is treated if its reference does not contain a label."""

    LEAVE_OUT = "leave-out"
    """The case is ignored for all teams in measures of this label."""
    EMPTY_IS_BEST = "empty-is-best"
    """A mask without the label gets the best value (1, or 0 if lower is better), others the worst.
    """


class Average(StrEnum):
    """How the values of the cases are combined into one number."""

    MEAN = "mean"
    MEDIAN = "median"


class RankBy(StrEnum):
    """How the measures are turned into ranks."""

    SCORE = "score"
    """Rank by the formula `score`, for which larger is better."""
    AGGREGATE = "aggregate-then-rank"
    """Average each measure over the cases, rank the teams, then average the ranks."""
    CASES = "rank-then-aggregate"
    """Rank the teams in each case, then average the ranks over cases and measures."""
    SITES = "sites"
    """Rank in each case, average ranks over each site, and rank over the sites (FeTS 2022)."""


def _refuse(text: str) -> FormatError:
    """Return an error about a contradictory definition."""
    return FormatError(f"{text}: {_REMEDY}")


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure that a challenge uses.

    Parameters
    ----------
    id
        The measure's name in this challenge.
    of
        The registered measure; for masks, also any column of the score table.
    better
        Whether lower or higher values are better.
    args
        Arguments of the registered measure.
    worst
        The value for a case without a usable answer, which also limits all other values. For a
        measure over all cases, the value for a team that lacks a case. None for the registered
        measure's own worst value.
    title
        The measure's name on the leaderboard.
    label
        The mask label that is compared, one of `Answer.labels`; "" for the whole mask.
    """

    id: str
    of: str
    better: Better
    args: Mapping[str, Argument] = field(default_factory=lambda: MappingProxyType({}))
    worst: float | None = None
    title: str = ""
    label: str = ""


@dataclass(frozen=True, slots=True)
class Truth:
    """The organiser's files, which contain the truth.

    Parameters
    ----------
    files
        The pattern of a case's file, with ``{id}``, by role. The files of the first role define the
        list of cases.
    table, id
        A table with one row per case, and the name of its id column.
    columns
        The column with the class or number, by part of a case. If cases have no parts, there is one
        column.
    """

    files: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    table: str = ""
    id: str = "id"
    columns: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class Answer:
    """The answers that a team submits.

    Parameters
    ----------
    kind
        The kind of answer.
    file
        Pattern of a case's file in a submission, with ``{id}``, or the name of a table.
    id
        The table's id column.
    classes
        Names of the classes in the order of their codes 0, 1, ...; in a table, these are columns.
    part
        The table's column that names the part of a case; "" if cases have no parts.
    labels
        The voxel values of each mask label, by name. Labels may share voxel values.
    absent
        How a case is treated if its reference does not contain a label.
    """

    kind: AnswerKind
    file: str = ""
    id: str = "id"
    classes: tuple[str, ...] = ()
    part: str = ""
    labels: Mapping[str, tuple[int, ...]] = field(default_factory=lambda: MappingProxyType({}))
    absent: AbsentLabel = AbsentLabel.LEAVE_OUT

    def __post_init__(self) -> None:
        if self.labels and self.kind is not AnswerKind.MASKS:
            raise _refuse(f"expected labels only for masks, but found them for {self.kind.value}")


@dataclass(frozen=True, slots=True)
class Ranking:
    """How teams are ranked.

    Parameters
    ----------
    by
        The ranking method.
    within
        Groups of measures. A team's ranks are averaged in each group and ranked again; then the
        group ranks are averaged. If there are no groups, every measure is a group.
    score
        Formula of the score, which uses names of measures. If given, the score is always shown.
    ties
        Which rank equal values of a measure get. Teams with equal scores share the better rank.
    sites
        Column of the clinical table with the site of each case.
    """

    by: RankBy
    within: tuple[tuple[str, ...], ...] = ()
    score: str = ""
    ties: RankTies = RankTies.MIN
    sites: str = ""

    def __post_init__(self) -> None:
        if self.by is RankBy.SCORE and not self.score:
            raise _refuse(
                "ranking by the score needs a formula in ranking.score, but there is none"
            )
        if self.by is RankBy.SITES and not self.sites:
            raise _refuse(
                "ranking by sites needs ranking.sites, the column of the clinical table that "
                "names the site, but it is missing"
            )


@dataclass(frozen=True, slots=True)
class ChallengeDefinition:
    """The definition of a challenge: answers, truth, measures and ranking.

    Parameters
    ----------
    name, version, title, source
        The name, a version that increases whenever a number changes, the title, and where the
        definition comes from.
    answer, truth, measures, ranking
        What teams submit, the organiser's files, the measures, and the ranking.
    missing
        How a case without a usable answer is treated.
    average
        How the values of the cases are combined into one number.
    profile
        The default profile for masks and responses.
    honest
        Name of another definition whose score is shown next to this one, because this one follows
        official code that rewards teams for leaving out cases; "" for none.
    notes
        Messages for the leaderboard.
    """

    name: str
    version: int
    answer: Answer
    measures: tuple[Measure, ...]
    ranking: Ranking
    title: str = ""
    source: str = ""
    truth: Truth = Truth()
    missing: MissingAnswer = MissingAnswer.WORST
    average: Average = Average.MEAN
    profile: str = ""
    honest: str = ""
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise _refuse(
                "expected a name of letters, digits, '-' and '_' without spaces, but found "
                f"{self.name!r}"
            )
        ids = [measure.id for measure in self.measures]
        wrong = [name for name in ids if not name.isidentifier()]
        if wrong:
            raise _refuse(
                "expected an id of letters, digits and '_' that does not begin with a digit, but "
                f"found {wrong[0]!r}"
            )
        if not ids or len(set(ids)) < len(ids):
            raise _refuse(
                "expected at least one measure, and a different id for each, but "
                "found no measure or the same id twice"
            )
        grouped = [name for group in self.ranking.within for name in group]
        if unknown := sorted(set(grouped) - set(ids)):
            raise _refuse(f"expected ids of measures in ranking.within, but found {unknown[0]!r}")
        labels = {measure.label for measure in self.measures} - {"", *self.answer.labels}
        if labels:
            named = name_some(list(self.answer.labels), 20) or "which names none"
            raise _refuse(f"expected a label of answer.labels ({named}), but found {min(labels)!r}")
        if self.has_own_files and not (self.truth.files or self.truth.table):
            raise _refuse("expected truth.files or truth.table, but found neither")
        if self.has_own_files and not self.answer.file:
            raise _refuse("expected the pattern of a submitted file in answer.file, but found none")

    @property
    def is_by_profile(self) -> bool:
        """Return whether teams are ranked by numbers that a profile defines over all cases."""
        return any(measure.of.startswith(OF_PROFILE) for measure in self.measures)

    @property
    def ranking_measures(self) -> tuple[Measure, ...]:
        """Return the measures that determine the ranks."""
        ranking, names = self.ranking, {measure.id for measure in self.measures}
        if ranking.by is RankBy.SCORE:
            names = set(re.findall(r"[^\W\d]\w*", ranking.score))
        elif ranking.by is not RankBy.SITES and ranking.within:
            names = {name for group in ranking.within for name in group}
        return tuple(measure for measure in self.measures if measure.id in names)

    @property
    def has_own_files(self) -> bool:
        """Return whether this definition itself describes the truth and answer files.

        Masks and responses are read and scored as a profile describes instead.
        """
        return self.answer.kind not in (AnswerKind.MASKS, AnswerKind.RESPONSES)


def _read_labels(content: Any) -> dict[str, tuple[int, ...]]:
    """Return label values by name; a single value need not be in a list."""
    labels = {}
    for name, values in content.items():
        codes = tuple(values) if isinstance(values, list) else (values,)
        if not name or not codes or any(type(code) is not int or code < 1 for code in codes):
            raise _refuse(
                f"expected whole numbers above 0 for the label {name!r}, but found {values!r}"
            )
        labels[str(name)] = codes
    return labels


_LABELS: Final = Form(lambda labels: {name: list(codes) for name, codes in labels.items()},
                      _read_labels)  # fmt: skip
_DEFINITION: Final = RecordCodec(
    ChallengeDefinition, _REMEDY, [Layout(Answer, forms={"labels": _LABELS})]
)


@reads("the definition of a challenge", _REMEDY)
def read_definition_text(path: Path) -> str:
    """Read the text of a TOML or YAML definition of at most 1 MB."""
    with open_plain(path) as file:
        content = file.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise FormatError(f"expected a definition of at most 1 MB at {path}, but it is larger")
    return content.decode("utf-8-sig")


def parse_definition(text: str, name: str) -> ChallengeDefinition:
    """Parse a definition; the suffix of `name`, its file name, determines the format.

    Raises
    ------
    FormatError
        If it is not TOML or YAML, or a key is missing, unknown or has the wrong type.
    """
    try:
        content = _parse_yaml(text, name) if name.endswith(_YAML) else tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"cannot read {name} as a definition: {error}: {_REMEDY}") from error
    if isinstance(content, dict) and "extends" in content:
        try:
            base = definition_text(str(content.pop("extends")))
        except FormatError as error:
            raise FormatError(f"cannot extend the definition in {name}: {error}") from error
        content = _merge(tomllib.loads(base), content)
    return definition_of(content, name)


def _parse_yaml(text: str, name: str) -> Any:
    try:
        import yaml  # type: ignore[import-untyped]
    except ImportError as error:
        raise FormatError(
            f"reading {name} needs the package PyYAML, which is not installed: install PyYAML, or "
            "write the definition as TOML"
        ) from error
    try:
        _refuse_repeated_keys(yaml.compose(text, Loader=yaml.SafeLoader))
        return yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise ValueError(f"{where}{error.problem or error.context}") from error
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from error


def _refuse_repeated_keys(node: Any) -> None:
    """Raise `ValueError` if a YAML mapping repeats a key, because YAML would use the last value."""
    nodes, seen = [node], set()
    while nodes:
        current = nodes.pop()
        # An alias refers to a node that was already visited.
        if current is None or isinstance(current.value, str) or id(current) in seen:
            continue
        seen.add(id(current))
        if current.id == "sequence":
            nodes += current.value
            continue
        lines: dict[str, int] = {}
        for key, value in current.value:
            name, line = str(key.value), key.start_mark.line + 1
            if name in lines:
                raise ValueError(f"line {line}: the key {name!r} is already in line {lines[name]}")
            lines[name] = line
            nodes.append(value)


def _merge(base: dict[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Merge changes into a definition: tables are merged, and measures are replaced by id."""
    merged = dict(base)
    for key, value in changes.items():
        if key == "measures" and _all_have_ids(value):
            by_id = {measure["id"]: measure for measure in base["measures"]}
            for measure in value:
                by_id[measure["id"]] = by_id.get(measure["id"], {}) | measure
            merged[key] = list(by_id.values())
        elif isinstance(value, dict) and isinstance(base.get(key), dict):
            merged[key] = base[key] | value
        else:
            merged[key] = value
    return merged


def _all_have_ids(measures: object) -> bool:
    return isinstance(measures, list) and all(
        isinstance(measure, dict) and isinstance(measure.get("id"), str) for measure in measures
    )


@cache
def _read_built_in() -> Mapping[str, str]:
    folder = files("napari_mamamia.features.challenge") / "definitions"
    paths = sorted(folder.iterdir(), key=lambda path: path.name)
    return MappingProxyType(
        {path.name.removesuffix(".toml"): path.read_text("utf-8") for path in paths
         if path.name.endswith(".toml")}
    )  # fmt: skip


def definition_texts() -> Registry[str]:
    """Return the TOML texts of all definitions by name; those of installed packages come last."""
    return Registry(GROUP, str, _read_built_in())


def definition_text(name: str) -> str:
    """Return the TOML text of a definition.

    Raises
    ------
    FormatError
        If there is no such definition; the message lists all names.
    """
    texts = definition_texts()
    if name not in texts:
        raise FormatError(
            f"expected the name of a challenge ({name_some(list(texts), 20)}) or a .toml or .yaml "
            f"file, but found {name!r}"
        )
    return texts[name]


def definition_named(name: str) -> ChallengeDefinition:
    """Return a definition, given its name or the path of a .toml, .yaml or frozen .json file.

    Raises
    ------
    FormatError
        For the reasons given in `definition_text` and `parse_definition`.
    """
    if name.endswith(".json"):
        return read_frozen(Path(name))
    if name.endswith((".toml", *_YAML)):
        return parse_definition(read_definition_text(Path(name)), Path(name).name)
    return parse_definition(definition_text(name), f"{name}.toml")


def definition_content(definition: ChallengeDefinition) -> dict[str, Any]:
    """Return a complete definition as JSON values."""
    content: dict[str, Any] = _DEFINITION.plain(definition)
    return content


def definition_of(content: object, where: object) -> ChallengeDefinition:
    """Build a definition from JSON values; error messages name the file as `where`."""
    return _DEFINITION.record(content, where)


@reads("the frozen definition of a challenge", "restore it from a copy of the challenge's folder")
def read_frozen(path: Path) -> ChallengeDefinition:
    """Read a definition that was frozen in a challenge."""
    return definition_of(read_json(path), path)


def freeze_definition(definition: ChallengeDefinition, folder: Path) -> Path:
    """Write a complete definition as JSON to a challenge's folder, and return its path."""
    path = folder / DEFINITIONS / f"{definition.name}.json"
    write_json(definition_content(definition), path)
    return path
