"""Rank the attempts of a challenge by sealed scores or responses; draw images of worst cases.

A team is represented by its last scored attempt or, with the ladder, by the last attempt that was
clearly better than the one shown before.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isnan, nan
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.choices import MissingKind, RankMethod, RankTies
from napari_mamamia.core.cohort import Cohort
from napari_mamamia.core.errors import CaseError, FormatError, MamamiaError, is_refused
from napari_mamamia.core.progress import report_progress
from napari_mamamia.core.provenance import now_utc, software_version
from napari_mamamia.core.records import CaseFailure, CaseScore, ScoreStatus
from napari_mamamia.features.challenge.io.challenge_file import (
    Challenge,
    OpenChallenge,
    relative_place,
)
from napari_mamamia.features.challenge.io.definition import (
    OF_PROFILE,
    AnswerKind,
    ChallengeDefinition,
    RankBy,
)
from napari_mamamia.features.challenge.io.handed_in import (
    SEALED,
    SubmissionKind,
    find_handed_masks,
    look_inside,
)
from napari_mamamia.features.challenge.io.leaderboard_file import (
    Board,
    BoardRow,
    Leaderboard,
    LevelDown,
)
from napari_mamamia.features.challenge.io.ledger import Attempt, AttemptOutcome, Ledger
from napari_mamamia.features.challenge.scoring.defined_ranking import (
    DefinedRanking,
    MeasureRule,
    describe_ranking,
    evaluate_formula,
    rank_by_definition,
)
from napari_mamamia.features.challenge.services.challenge.answers import (
    PROFILE_NUMBERS,
    AnswerValues,
    describe_columns,
    describe_missing,
    find_definition,
    find_sites,
    has_mask_measures,
    measure_rules,
    measure_scores,
    read_definitions,
    read_values,
    values_name,
)
from napari_mamamia.features.challenge.services.challenge.attempt import (
    RESPONSE_TABLE,
    RESPONSES,
    RUN,
    SCORES,
    pair_masks,
    score_settings,
)
from napari_mamamia.features.challenge.services.challenge.evidence import (
    apply_gate,
    compare_with_chance,
    count_copies,
    count_near,
    find_level_down,
    find_twins,
    list_alarms,
    print_scores,
    print_values,
)
from napari_mamamia.features.challenge.services.rank.inputs import ReadInputs
from napari_mamamia.features.challenge.services.rank.output import RankSummary, methods_content
from napari_mamamia.io.data_set.score_files import read_response_table
from napari_mamamia.io.files.checksums import sha256_of
from napari_mamamia.io.tables.tables import read_case_scores, write_json
from napari_mamamia.scoring.classifier.response_ranking import (
    NamedPredictions,
    ResponseRanking,
    rank_responses,
)
from napari_mamamia.scoring.classifier.scores import climb
from napari_mamamia.scoring.cohort.groups import (
    Grouping,
    group_cases,
    rules_of,
)
from napari_mamamia.scoring.cohort.model_results import scored_model
from napari_mamamia.scoring.cohort.policy import CountedCases
from napari_mamamia.scoring.cohort.ranking import ScoredModel, ranks
from napari_mamamia.scoring.cohort.results import ModelScores, ResponseResult
from napari_mamamia.scoring.ranking.methods import rank_scores
from napari_mamamia.scoring.ranking.ranking import MethodRanking, rank_tables, seeded_weights
from napari_mamamia.scoring.ranking.table import (
    VALUE_METHODS,
    MissingRule,
    RankingTable,
    RankSettings,
)
from napari_mamamia.scoring.report.drawing import Drawing
from napari_mamamia.scoring.report.gallery import worst_cases
from napari_mamamia.scoring.report.report import case_figure
from napari_mamamia.scoring.report.report_figures import ReportFigure
from napari_mamamia.scoring.report.text import number
from napari_mamamia.segmentation.sandbox.outputs import MASKS
from napari_mamamia.services.score.clinical_table import matched, read_table
from napari_mamamia.services.score.output import SCORE_TABLE
from napari_mamamia.services.score.pcr import response_model
from napari_mamamia.services.score.report import (
    count_model,
    guarded_score,
    make_composite,
    picture_pair,
)
from napari_mamamia.services.score.score import cohort_numbers
from napari_mamamia.services.score.settings import ScoreSettings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CLASSIFICATION: Final = "classification"
RESPONSE_RANKS: Final = "rank_responses.json"
MOST_PICTURES: Final = 4
"""Maximum number of images per team, which limits the time and size of the pages."""
OF_PICTURES: Final = (
    "The cases with the lowest Dice among those with comparable masks: the slice where the team's "
    "mask (orange) and the reference (blue) differ most. The scale bar is 10 mm."
)
_SEEN: Final = (ScoreStatus.OK, ScoreStatus.PREDICTION_EMPTY)
SEGMENTATION: Final = "segmentation"
_NO_CERTAINTY: Final = "a ranking by sites has no intervals of the ranks and no table for each site"
_MERGED: Final = "All labels of a mask count as one region"
NOT_FOR_TASK: Final = "no submission for this task"


@dataclass(frozen=True, slots=True, eq=False)
class RankedResponses:
    """The leaderboard of responses, each team's scores, and the stability of the ranking."""

    board: Board
    results: tuple[tuple[str, ResponseResult], ...]
    ranking: ResponseRanking | None


def rank_team_responses(
    opened: OpenChallenge, ledger: Ledger, attempts: Sequence[Attempt], cohort: Cohort
) -> RankedResponses:
    """Rank the teams by their last scored responses.

    Parameters
    ----------
    opened
        The challenge.
    ledger
        The ledger of the challenge.
    attempts
        The displayed attempts with responses.
    cohort
        The clinical table.

    Raises
    ------
    FormatError
        If a team's responses differ from the ledger's checksums.
    """
    challenge = opened.challenge
    rules, seed = rules_of(challenge.profile), challenge.seed
    results = [
        (attempt, _score_team(opened, attempt, cohort))
        for attempt in {attempt.team: attempt for attempt in attempts}.values()
    ]
    definition = find_definition(opened, AnswerKind.RESPONSES)
    rows = [_make_response_row(attempt, result, ledger, definition) for attempt, result in results]
    places = ranks(
        np.array([nan if row.score is None or row.reason else row.score for row in rows])
    )
    ranked = [
        replace(row, rank=None if isnan(rank) else int(rank))
        for row, rank in zip(rows, places.tolist(), strict=True)
    ]
    models = [
        NamedPredictions(scored.team, result.predictions)
        for scored, result in results
        if not result.predictions.constant
    ]
    case_ids = results[0][1].predictions.case_ids
    groupings = group_cases(case_ids, matched(list(case_ids), cohort), rules)
    ranking = rank_responses(models, groupings, rules, challenge.n_resamples, seed)
    by = "ranking score: balanced accuracy and equalised odds"
    named = {
        scored.team: ScoredModel(
            scored.team, float(result.cohort.balanced_accuracy), float(result.cohort.fairness)
        )
        for scored, result in results
    }
    plain = Board(CLASSIFICATION, by, tuple(ranked))
    board = apply_gate(plain, named, challenge.gate, rules.weight_of_fairness)
    return RankedResponses(
        board, tuple((scored.team, result) for scored, result in results), ranking
    )


def _score_team(opened: OpenChallenge, attempt: Attempt, cohort: Cohort) -> ResponseResult:
    path = opened.results(attempt.team, attempt.digest) / RESPONSES / RESPONSE_TABLE
    if sha256_of(path) != dict(attempt.files)[f"{RESPONSES}/{RESPONSE_TABLE}"]:
        raise FormatError(
            f"expected the responses of {attempt.team} to be as recorded in the ledger, but "
            f"{path} was changed: restore it"
        )
    read, clinical = read_response_table(path), opened.clinical
    if clinical is None:
        raise FormatError(
            f"expected a clinical table in {opened.folder}, but found none: restore it"
        )
    model = response_model(attempt.team, read, clinical, cohort, score_settings(opened))
    if model.response is None:
        raise FormatError(
            f"expected scored responses from {attempt.team}, but found none: run the submission "
            "again"
        )
    return model.response


def _make_response_row(
    attempt: Attempt, result: ResponseResult, ledger: Ledger, definition: ChallengeDefinition
) -> BoardRow:
    """Make a team's row; a team whose predictions are all equal has no rank."""
    numbers = result.cohort
    measured = (numbers.balanced_accuracy, numbers.fairness, numbers.ranking_score)
    score = _apply_formula(definition, definition.ranking.score, measured)
    return BoardRow(
        attempt.team,
        None,
        find_number(score),
        find_number(float(numbers.balanced_accuracy)),
        find_number(float(numbers.fairness)),
        numbers.n_scored,
        0,
        (),
        attempt.number,
        ledger.count(attempt.team),
        attempt.kind,
        attempt.digest,
        False,
        result.predictions.constant or numbers.reason,
        submitted=attempt.begun,
        chance=compare_with_chance(result),
    )


def find_number(value: float) -> float | None:
    """Convert a number for the leaderboard: None if it is undefined."""
    return None if isnan(value) else float(value)


def responses_content(ranking: ResponseRanking) -> dict[str, Any]:
    """Return the content of ``rank_responses.json``: ranks, stability, Bayes factors, AUCs."""
    aucs = ranking.aucs
    return {
        **methods_content(ranking.names, (ranking.method,)),
        "bayes_factors": {
            factor.name: {"k": factor.k, "draws": factor.n_draws} for factor in ranking.factors
        },
        "robust": ranking.groups,
        "n_cases": ranking.n_cases,
        "draws": ranking.n_draws,
        "auc": None
        if aucs is None
        else {
            "models": {
                model.name: {
                    "auc": model.auc,
                    "delong": model.auc_delong,
                    "partial_auc": model.partial_auc,
                }
                for model in aucs.models
            },
            "comparisons": aucs.pairs,
            "bayes_factors": {
                factor.name: {"k": factor.k, "draws": factor.n_draws} for factor in aucs.factors
            },
            "leaders": aucs.leaders,
        },
        "notes": ranking.notes,
    }


def write_responses(ranking: ResponseRanking, out: Path, *, overwrite: bool = False) -> None:
    """Write ``rank_responses.json``; the errors are those of `write_json`."""
    write_json(responses_content(ranking), out / RESPONSE_RANKS, overwrite=overwrite)


def picture_team(
    opened: OpenChallenge, row: BoardRow, scores: Sequence[CaseScore]
) -> tuple[ReportFigure, ...]:
    """Make figures of a team's worst cases, lowest Dice first.

    Masks are read only when the images are drawn. There are no images if the team submitted no
    masks, or if the sealed masks are missing or changed.

    Parameters
    ----------
    opened
        The challenge.
    row
        The team on the leaderboard.
    scores
        Scores of the team's cases.

    Raises
    ------
    MamamiaError
        If the system does not allow reading the masks.
    """
    by_case = {score.case_id: score for score in scores if score.status in _SEEN}
    worst = worst_cases(list(by_case.values()), MOST_PICTURES)
    masks = _find_masks(opened, row)
    if masks is None or opened.reference is None or not worst:
        return ()
    try:
        submission, _ = find_handed_masks(masks, opened.challenge.case_ids)
    except MamamiaError as error:
        if is_refused(error):
            raise
        return ()
    pairs = pair_masks(opened, submission, worst).pairs
    settings = replace(score_settings(opened), clinical=None)
    return tuple(
        ReportFigure(
            case_id,
            f"Dice {number(by_case[case_id].dsc)}, NormHD {number(by_case[case_id].norm_hd)}",
            Drawing(draw_pair, (row.team, case_id, pairs[case_id], settings), has_svg=False),
        )
        for case_id in worst
        if None not in pairs[case_id]
    )


def draw_pair(
    team: str, case_id: str, files: tuple[Path | None, Path | None], settings: ScoreSettings
) -> "Figure":
    """Draw the slice with the largest difference between mask and reference, with both outlines.

    If the masks are missing or changed, the figure is empty; `verify` reports them.

    Parameters
    ----------
    team, case_id
        The team and the case, for messages.
    files
        Reference and mask of the case.
    settings
        The scoring settings.

    Raises
    ------
    MamamiaError
        If the system does not allow reading a file, because a page with an empty image would look
        complete.
    """
    from matplotlib.figure import Figure

    try:
        pictures = picture_pair(team, case_id, files, settings)
    except MamamiaError as error:
        if is_refused(error):
            raise
        pictures = []
    return case_figure(pictures[0]) if pictures else Figure(figsize=(1.5, 1.5), facecolor="k")


def _find_masks(opened: OpenChallenge, row: BoardRow) -> Path | None:
    folder = opened.results(row.team, row.digest)
    if row.kind == SubmissionKind.PROGRAM.value:
        masks = folder / RUN / MASKS
    elif row.kind == SubmissionKind.MASKS.value:
        try:
            masks = look_inside(folder / SEALED).folder
        except (MamamiaError, OSError) as error:
            if is_refused(error):
                raise
            return None
    else:
        return None
    return masks if masks.is_dir() else None


@dataclass(frozen=True, slots=True, eq=False)
class _Entry:
    """The displayed attempt of a team; `shown` is its ladder score, or NaN if it has none."""

    attempt: Attempt
    n_attempts: int
    model: ModelScores
    shown: float = nan


@dataclass(frozen=True, slots=True, eq=False)
class ChallengeRanking:
    """The leaderboard, the ranking of masks by every method, and the ranking of responses.

    A field that does not apply is None. `defined` holds the rankings by definition, by the task of
    their board. `models` holds the mask scores by team, `groupings` divides the ranked cases into
    groups, `ledger` contains the attempts, and `pictures` shows each team's worst cases.
    """

    board: Leaderboard
    summary: RankSummary | None
    read: ReadInputs | None
    responses: RankedResponses | None = None
    models: tuple[tuple[str, ModelScores], ...] = ()
    groupings: tuple[Grouping, ...] = ()
    ledger: Ledger | None = None
    defined: Mapping[str, DefinedRanking] = field(default_factory=lambda: MappingProxyType({}))
    pictures: Mapping[str, tuple[ReportFigure, ...]] = field(
        default_factory=lambda: MappingProxyType({})
    )


def make_ranking(opened: OpenChallenge, ledger: Ledger, out: Path) -> ChallengeRanking:
    """Compute the leaderboard from the attempts in the ledger, without writing files.

    Parameters
    ----------
    opened
        The challenge.
    ledger
        The ledger of the challenge.
    out
        Folder of the leaderboard, for relative paths.
    """
    challenge = opened.challenge
    scored = [attempt for attempt in ledger.attempts if attempt.outcome is AttemptOutcome.SCORED]
    if not scored:
        raise CaseError(
            f"expected a scored attempt in {opened.folder}, but found none: run the challenge first"
        )
    rules = score_settings(opened)
    cohort = read_table(rules.clinical, rules.columns)
    settings = RankSettings(
        (RankMethod.COMPOSITE, *VALUE_METHODS),
        n_resamples=challenge.n_resamples,
        seed=challenge.seed,
    )
    boards: list[Board] = []
    notes: list[str] = []
    summary = read = answers = None
    models: tuple[tuple[str, ModelScores], ...] = ()
    groupings: tuple[Grouping, ...] = ()
    pictures: dict[str, tuple[ReportFigure, ...]] = {}
    defined: dict[str, DefinedRanking] = {}
    table = f"{SCORES}/{SCORE_TABLE}"
    masks = [scored_attempt for scored_attempt in scored if table in dict(scored_attempt.files)]
    for definition in _list_defined(opened, scored):
        board, ranked_teams = _rank_defined(opened, ledger, scored, definition, cohort)
        boards.append(board)
        defined[board.task] = ranked_teams
        problems = ranked_teams.not_computed.items()
        notes += ranked_teams.twins
        notes += [_MERGED] * _reads_scores(definition)
        notes += describe_columns(definition, cohort)
        notes += [_NO_CERTAINTY] * (definition.ranking.by is RankBy.SITES)
        notes += [*definition.notes, *(f"{name}: {text}" for name, text in problems)]
    if defined:
        masks = []
        ties = read_definitions(opened)[0].ranking.ties
        summary, read = _rank_tables(
            next(iter(defined.values())), replace(settings, ties=ties), notes, out
        )
    if masks:
        entries = _choose_entries(opened, ledger, masks, cohort)
        board, read = _rank_masks(opened, ledger, entries, cohort)
        notes += [
            *read.notes,
            *find_twins({entry.attempt.team: print_scores(entry.model) for entry in entries}),
        ]
        boards.append(board)
        models = tuple((entry.attempt.team, entry.model) for entry in entries)
        by_team = dict(models)
        pictures = {
            row.team: picture_team(opened, row, by_team[row.team].rows)
            for row in board.rows
            if row.team in by_team
        }
        if read.tables:
            ranked = rank_tables(read.tables, settings, None, read.composite)
            summary = RankSummary(ranked, None, None, tuple(notes), out)
            if cohort is not None:
                cases = ranked.tables[0].cases
                people = matched(list(cases), cohort)
                groupings = group_cases(cases, people, rules_of(challenge.profile))
    responses = [
        scored_attempt
        for scored_attempt in scored
        if f"{RESPONSES}/{RESPONSE_TABLE}" in dict(scored_attempt.files)
    ]
    if responses and cohort is not None:
        answers = rank_team_responses(opened, ledger, responses, cohort)
        boards.append(_add_unscored(answers.board, ledger))
    notes = list(dict.fromkeys((*list_alarms(boards), *notes)))
    board_file = Leaderboard(
        challenge.name,
        opened.sha256,
        relative_place(opened.folder, out),
        ledger.heads,
        ", ".join(defined) if challenge.task is None else challenge.profile,
        (
            describe_missing(read_definitions(opened)[0])
            if defined
            else challenge.rule or "as the profile says"
        ),
        challenge.ladder,
        tuple(boards),
        tuple(notes),
        software_version(),
        now_utc(),
    )
    return ChallengeRanking(
        board_file, summary, read if summary is not None else None, answers, models, groupings,
        ledger, defined, pictures,
    )  # fmt: skip


def _rank_defined(
    opened: OpenChallenge,
    ledger: Ledger,
    scored: Sequence[Attempt],
    definition: ChallengeDefinition,
    cohort: Cohort | None,
) -> tuple[Board, DefinedRanking]:
    """Rank the last scored attempt of each team as a definition specifies."""
    challenge, name = opened.challenge, _find_table(definition)
    sites = find_sites(definition, challenge.case_ids, cohort)
    rules = measure_rules(definition)
    attempts: dict[str, Attempt] = {}
    teams: dict[str, AnswerValues] = {}
    copies, displayed = {}, {}
    by_team: dict[str, list[Attempt]] = {}
    for attempt in scored:
        if name in dict(attempt.files):
            by_team.setdefault(attempt.team, []).append(attempt)
    for team, every in by_team.items():
        own = every if challenge.ladder else every[-1:]
        read = [_read_values(opened, attempt, definition) for attempt in own]
        index = len(own) - 1
        if challenge.ladder:
            values = {f"{number}": of_attempt for number, (of_attempt, _) in enumerate(read)}
            index, displayed[team] = _climb(definition, rules, values, challenge)
        attempts[team], (teams[team], scores) = own[index], read[index]
        n_copies, n_near = count_copies(opened, own[index], scores)
        n_near = max(n_near, count_near(definition, teams[team]) - n_copies)
        copies[team] = n_copies, n_near
    ranking = rank_by_definition(
        definition,
        rules,
        {team: of_team.by_id for team, of_team in teams.items()},
        challenge.n_resamples,
        challenge.seed,
        sites,
    )
    if challenge.ladder:
        shown = np.array([displayed[team] for team in ranking.teams])
        ranking = replace(ranking, scores=shown, ranks=rank_scores(shown, RankTies.MIN))
    rows = []
    for index, (team, attempt) in enumerate(attempts.items()):
        n_unusable = len(teams[team].unusable)
        row = BoardRow(
            team, int(ranking.ranks[index]), find_number(ranking.scores[index]), None, None,
            len(challenge.cases), n_unusable, (("not usable", n_unusable),) * bool(n_unusable),
            attempt.number, ledger.count(team), attempt.kind, attempt.digest,
            submitted=attempt.begun,
        )  # fmt: skip
        numbers = ((name, find_number(of_teams[index]))
                   for name, of_teams in ranking.numbers.items())  # fmt: skip
        n_copies, n_near = copies[team]
        row = replace(row, n_copies=n_copies, n_near_copies=n_near, measures=tuple(numbers))
        rows.append(row)
    ranked_by = describe_ranking(definition) + ", displayed by the ladder" * challenge.ladder
    board = Board(definition.name, ranked_by, tuple(rows))
    notes = {team: dict(values.unusable) for team, values in teams.items()}
    twins = tuple(find_twins({team: print_values(definition, values)
                              for team, values in teams.items()}))  # fmt: skip
    return _add_unscored(board, ledger), replace(ranking, notes=notes, twins=twins)


def _read_values(
    opened: OpenChallenge, attempt: Attempt, definition: ChallengeDefinition
) -> tuple[AnswerValues, Sequence[CaseScore]]:
    """Return an attempt's recorded values, and the mask scores if the definition uses them.

    Raises
    ------
    FormatError
        If the file differs from the ledger's checksum.
    """
    name = _find_table(definition)
    path = opened.results(attempt.team, attempt.digest) / name
    if sha256_of(path) != dict(attempt.files)[name]:
        raise FormatError(
            f"expected the values of {attempt.team} to be as recorded in the ledger, but {path} "
            "was changed: restore it, then verify the challenge to list all changes"
        )
    if not _reads_scores(definition):
        return read_values(path), ()
    scores = read_case_scores(path)
    return measure_scores(definition, scores), scores


def _climb(
    definition: ChallengeDefinition,
    rules: Sequence[MeasureRule],
    attempts: Mapping[str, AnswerValues],
    challenge: Challenge,
) -> tuple[int, float]:
    """Return the number of a team's displayed attempt, and its score on the ladder."""
    values = {name: of_attempt.by_id for name, of_attempt in attempts.items()}
    n = max(1, challenge.n_resamples)
    drawn = rank_by_definition(definition, rules, values, n, challenge.seed).draws["Score"]
    rungs = climb(list(drawn.T))
    return max(index for index, rung in enumerate(rungs) if rung.is_new), rungs[-1].shown


def _list_defined(opened: OpenChallenge, scored: Sequence[Attempt]) -> list[ChallengeDefinition]:
    """Return the definitions that rank teams by their own measures, not by profile numbers."""
    names = {name for attempt in scored for name, _ in attempt.files}
    return [
        definition for definition in read_definitions(opened)
        if not definition.is_by_profile and _find_table(definition) in names
    ]  # fmt: skip


def _find_table(definition: ChallengeDefinition) -> str:
    """Return the name of the file that stores a team's values."""
    is_table = _reads_scores(definition)
    return f"{SCORES}/{SCORE_TABLE}" if is_table else values_name(definition)


def _reads_scores(definition: ChallengeDefinition) -> bool:
    """Return whether the measures are columns of the score table."""
    return definition.answer.kind is AnswerKind.MASKS and not has_mask_measures(definition)


def _rank_tables(
    ranking: DefinedRanking, settings: RankSettings, notes: Sequence[str], out: Path
) -> tuple[RankSummary | None, ReadInputs | None]:
    """Rank each measure of single cases by every method, and the teams as the definition says."""
    if not ranking.tables:
        return None, None
    keys = ("metric",) if len(ranking.tables) > 1 else ()
    rules = replace(settings, missing=MissingRule(MissingKind.WORST_RANK))
    ranked = rank_tables(ranking.tables, rules)
    if ranked.overall is not None:
        method = MethodRanking(
            RankMethod.COMPOSITE, ranking.scores, ranking.ranks, ranking.stability
        )
        ranked = replace(ranked, overall=replace(ranked.overall, methods=(method,)))
    summary = RankSummary(ranked, ranked.overall, None, tuple(notes), out)
    return summary, ReadInputs(ranking.tables, keys, None, None, ())


def _add_unscored(board: Board, ledger: Ledger) -> Board:
    """Return a sorted board in which teams without a score in its task come last."""
    ranked = {row.team for row in board.rows}
    teams = dict.fromkeys(attempt.team for attempt in ledger.attempts)
    others = [team for team in teams if team not in ranked]
    rows = [*board.rows, *(_make_unscored_row(ledger, team) for team in others)]
    return replace(board, rows=tuple(_sort_rows(rows)))


def _choose_entries(
    opened: OpenChallenge, ledger: Ledger, masks: Sequence[Attempt], cohort: Cohort | None
) -> list[_Entry]:
    """Return the displayed attempt of each team."""
    entries = []
    for index, team in enumerate(dict.fromkeys(mask.team for mask in masks)):
        report_progress(index, len(masks), f"Reading the scores of {team}")
        attempts = [mask for mask in masks if mask.team == team]
        count = ledger.count(team)
        if not opened.challenge.ladder:
            model = _read_model(opened, attempts[-1], cohort)
            entries.append(_Entry(attempts[-1], count, model))
            continue
        models = [_read_model(opened, attempt, cohort) for attempt in attempts]
        draws = [_draw_scores(opened, model, cohort) for model in models]
        rungs = climb(draws)
        last_new = max(index for index, rung in enumerate(rungs) if rung.is_new)
        entries.append(_Entry(attempts[last_new], count, models[last_new], rungs[-1].shown))
    return entries


def _read_model(opened: OpenChallenge, attempt: Attempt, cohort: Cohort | None) -> ModelScores:
    path = opened.results(attempt.team, attempt.digest) / SCORES / SCORE_TABLE
    if sha256_of(path) != dict(attempt.files)[f"{SCORES}/{SCORE_TABLE}"]:
        raise FormatError(
            f"expected the scores of {attempt.team} to be as recorded in the ledger, but {path} "
            "was changed: restore it, then verify the challenge to list all changes"
        )
    rows = read_case_scores(path)
    failures = tuple(
        CaseFailure(row.case_id, row.reason) for row in rows if row.status is not ScoreStatus.OK
    )
    rules = replace(score_settings(opened), n_resamples=0)
    return cohort_numbers(attempt.team, rows, failures, len(rows), rules, cohort)


def _draw_scores(
    opened: OpenChallenge, model: ModelScores, cohort: Cohort | None
) -> NDArray[np.float64]:
    """Return a model's score in each resample, drawn with the challenge's seed."""
    cases = count_model(model).case_ids
    composite = make_composite([model], cases, cohort)
    n, seed = max(1, opened.challenge.n_resamples), opened.challenge.seed
    blocks = [composite(weights)[:, 0] for weights in seeded_weights(len(cases), n, seed)]
    return np.concatenate(blocks)


def _rank_masks(
    opened: OpenChallenge, ledger: Ledger, entries: Sequence[_Entry], cohort: Cohort | None
) -> tuple[Board, ReadInputs]:
    """Make the leaderboard of masks; also return case performances for the ranking methods."""
    able = [entry for entry in entries if not count_model(entry.model).rejected]
    by_performance = cohort is None
    definition = find_definition(opened, AnswerKind.MASKS)
    formula = "performance" if by_performance else definition.ranking.score
    scores = np.array([_score_entry(entry, definition, formula) for entry in entries])
    places = ranks(scores)
    rows = []
    for entry, score, rank in zip(entries, scores.tolist(), places.tolist(), strict=True):
        row = _make_row(entry, score, rank, guarded_score(entry.model, cohort))
        n_copies, n_near = count_copies(opened, entry.attempt, entry.model.rows)
        effects = _find_effects(entry, cohort) if row.rank is not None else ()
        rows.append(replace(row, n_copies=n_copies, n_near_copies=n_near, level_down=effects))
    ranked_by = (
        "performance, because there is no clinical table" if by_performance else "ranking score"
    )
    if opened.challenge.ladder:
        ranked_by += ", displayed by the ladder"
    gated = Board(SEGMENTATION, ranked_by, tuple(rows))
    if cohort is not None:
        named = {entry.attempt.team: scored_model(entry.model) for entry in entries}
        weight = rules_of(opened.challenge.profile).weight_of_fairness
        gated = apply_gate(gated, named, opened.challenge.gate, weight)
    board = _add_unscored(gated, ledger)
    everyone = {case_id for entry in able for case_id in count_model(entry.model).case_ids}
    cases = [case_id for case_id in opened.challenge.case_ids if case_id in everyone]
    if not able or not cases:
        return board, ReadInputs((), (), None, None, ("no team has a ranked number",))
    values = np.stack([_case_values(count_model(one.model), cases) for one in able], axis=1)
    is_given = np.stack([_find_given(count_model(one.model), cases) for one in able], axis=1)
    names = tuple(one.attempt.team for one in able)
    table = RankingTable(names, tuple(cases), values, True, metric="performance", given=is_given)
    composite = make_composite([one.model for one in able], cases, cohort)
    return board, ReadInputs((table,), (), None, composite, ())


def _find_effects(entry: _Entry, cohort: Cohort | None) -> tuple[LevelDown, ...]:
    counted = count_model(entry.model)
    values = _case_values(counted, counted.case_ids)
    return find_level_down(entry.model, values, _find_given(counted, counted.case_ids), cohort)


def _score_entry(entry: _Entry, definition: ChallengeDefinition, formula: str) -> float:
    if not isnan(entry.shown):
        return entry.shown
    if entry.model.segmentation is None:
        return nan
    cohort = entry.model.segmentation.cohort
    numbers = (cohort.performance.value, cohort.fairness.value, cohort.ranking_score)
    return _apply_formula(definition, formula, numbers)


def _apply_formula(
    definition: ChallengeDefinition, formula: str, numbers: tuple[float, float, float]
) -> float:
    """Evaluate a formula with the numbers that a profile defines, by their definition names."""
    by_name = dict(zip(PROFILE_NUMBERS, numbers, strict=True))
    named = {
        measure.id: by_name[measure.of.removeprefix(OF_PROFILE)]
        for measure in definition.measures
        if measure.of.startswith(OF_PROFILE)
    }
    return float(evaluate_formula(formula, by_name | named))


def _case_values(counted: CountedCases, cases: Sequence[str]) -> NDArray[np.float64]:
    """Return each case's performance, (Dice + 1 - NormHD) / 2; values from a rule count as worst.

    If no distance was computed, the performance is the Dice. If a case does not count because both
    masks are empty, its performance is 1.
    """
    dsc = np.where(counted.free_dsc, 0.0, counted.dsc)
    if np.isnan(counted.norm_hd).all():
        values = np.nan_to_num(dsc)
    else:
        worst = counted.worst_norm_hd
        norm_hd = np.where(counted.free_norm_hd, worst, counted.norm_hd)
        values = (np.nan_to_num(dsc) + 1 - np.nan_to_num(norm_hd, nan=worst)) / 2
    by_id = dict(zip(counted.case_ids, values.tolist(), strict=True))
    return np.array([by_id.get(case_id, 1.0) for case_id in cases])


def _find_given(counted: CountedCases, cases: Sequence[str]) -> NDArray[np.bool_]:
    """Return whether each case's performance comes from the team's mask, not from a rule."""
    free = counted.free_dsc | counted.free_norm_hd
    by_id = dict(zip(counted.case_ids, free.tolist(), strict=True))
    return np.array([not by_id.get(case_id, False) for case_id in cases])


def _make_row(entry: _Entry, score: float, place: float, guarded: float) -> BoardRow:
    counted, attempt = count_model(entry.model), entry.attempt
    numbers = entry.model.segmentation
    cohort = None if numbers is None else numbers.cohort
    reasons = Counter(case.reason.value for case in counted.unusable)
    return BoardRow(
        attempt.team,
        None if isnan(place) else int(place),
        find_number(score),
        find_number(cohort.performance.value if cohort else nan),
        find_number(cohort.fairness.value if cohort else nan),
        counted.n,
        len(counted.unusable),
        tuple(sorted(reasons.items())),
        attempt.number,
        entry.n_attempts,
        attempt.kind,
        attempt.digest,
        attempt.kind == SubmissionKind.SCORES.value,
        (counted.rejected or (cohort.reason if cohort else "")) if isnan(place) else "",
        find_number(guarded),
        attempt.begun,
    )


def _make_unscored_row(ledger: Ledger, team: str) -> BoardRow:
    last = ledger.of_team(team)[-1]
    reason = f"{last.outcome.value}: {last.reason}" if last.reason else last.outcome.value
    if last.outcome is AttemptOutcome.SCORED:
        reason = last.reason or NOT_FOR_TASK
    parts = (None, None, None, None, 0, 0, (), 0, ledger.count(team))
    return BoardRow(team, *parts, last.kind, last.digest, False, reason)


def _sort_rows(rows: Sequence[BoardRow]) -> list[BoardRow]:
    return sorted(rows, key=lambda row: (row.rank is None, row.rank or 0, row.team))
