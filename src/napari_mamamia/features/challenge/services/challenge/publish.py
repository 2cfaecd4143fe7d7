"""Publish leaderboards as a web site without case ids, case values, or group members."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isnan, nan
from pathlib import Path
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.cohort import Cohort
from napari_mamamia.core.errors import CaseError, FormatError, Remedy
from napari_mamamia.core.names import name_some
from napari_mamamia.core.progress import report_progress
from napari_mamamia.core.provenance import now_utc, software_version
from napari_mamamia.features.challenge.io.challenge_file import OpenChallenge, read_challenge
from napari_mamamia.features.challenge.io.codabench import (
    FOLDER,
    ScoringProgram,
    write_competition,
)
from napari_mamamia.features.challenge.io.definition import (
    Better,
    definition_content,
)
from napari_mamamia.features.challenge.io.leaderboard_file import (
    Board,
    read_leaderboard,
)
from napari_mamamia.features.challenge.io.ledger import read_ledger
from napari_mamamia.features.challenge.io.site_files import (
    PublicNumber,
    PublicRow,
    PublicTask,
    Site,
    write_site_files,
)
from napari_mamamia.features.challenge.scoring.defined_ranking import DefinedRanking
from napari_mamamia.features.challenge.scoring.public_page import (
    PublicDraws,
    public_page,
    title_of,
)
from napari_mamamia.features.challenge.scoring.site_aggregates import SMALLEST_GROUP
from napari_mamamia.features.challenge.services.challenge.answers import read_definitions
from napari_mamamia.features.challenge.services.challenge.attempt import score_settings
from napari_mamamia.features.challenge.services.challenge.board_pages import find_stability
from napari_mamamia.features.challenge.services.challenge.leaks import find_leaks, split_ids
from napari_mamamia.features.challenge.services.challenge.ranking import (
    SEGMENTATION,
    ChallengeRanking,
    find_number,
    make_ranking,
)
from napari_mamamia.features.challenge.services.challenge.verify import (
    is_older,
    verify_challenge,
)
from napari_mamamia.io.data_set.case_list import CaseList
from napari_mamamia.io.files.file_names import case_key
from napari_mamamia.io.files.own_paths import own_folder
from napari_mamamia.scoring.classifier.scores import percentile_ends
from napari_mamamia.scoring.cohort.groups import group_cases, rules_of
from napari_mamamia.scoring.cohort.ranking import ranks
from napari_mamamia.scoring.cohort.response_cohort import (
    ResponsePredictions,
    bootstrap_response,
    score_response,
)
from napari_mamamia.scoring.cohort.results import ModelScores, ResponseResult
from napari_mamamia.scoring.ranking.ranking import seeded_weights
from napari_mamamia.scoring.report.page import write_page
from napari_mamamia.scoring.report.tables import coverage_notes
from napari_mamamia.scoring.statistics.bootstrap import Interval, interval_named
from napari_mamamia.services.batch.output_folder import Existing, claim_folder
from napari_mamamia.services.score.clinical_table import matched, read_table
from napari_mamamia.services.score.report import count_model, make_composite
from napari_mamamia.services.score.score import cohort_numbers

PAGE: Final = "index.html"


@dataclass(frozen=True, slots=True)
class PublishSettings:
    """Settings for publishing a site.

    Parameters
    ----------
    title
        Title of the site; if "", the title of the first challenge.
    links
        Web page by team.
    minimum_group
        Minimum number of cases, 2 or more, behind any published number.
    public
        Cases of the public part; if None, cases are not split into a public and a private part.
    """

    title: str = ""
    links: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    minimum_group: int = SMALLEST_GROUP
    public: CaseList | None = None

    def __post_init__(self) -> None:
        for team, link in self.links.items():
            if not link.startswith(("https://", "http://")):
                raise ValueError(
                    f"expected a web address (https://...) for {team}, but found {link!r}"
                )


@dataclass(frozen=True, slots=True)
class Published:
    """A published site, and case ids that were too short to be searched for."""

    site: Site
    unsearched: tuple[str, ...]


def publish(
    boards: Sequence[Path],
    out: Path,
    settings: PublishSettings | None = None,
    *,
    existing: Existing = Existing.REFUSE,
) -> Published:
    """Write a public site from verified leaderboards, after searching it for case ids.

    The files are ``index.html``, ``leaderboard.json`` with its schema, ``metrics/TEAM.json`` as
    grand-challenge expects, and a competition for Codabench. If any file contains a case id,
    nothing is written.

    Parameters
    ----------
    boards
        Folders of leaderboards, one or more.
    out
        Output folder.
    settings
        Title, links, limits and the split.
    existing
        What to do with other results in `out`.

    Raises
    ------
    CaseError
        If a task or a part has too few cases, or a link names no team.
    FormatError
        If a leaderboard differs from what its challenge records, or a file contains a case id.
    SaveConflictError
        If `out` contains other results.
    """
    settings = settings or PublishSettings()
    tasks: list[PublicTask] = []
    draws: list[PublicDraws] = []
    case_ids: list[str] = []
    beside: set[str] = set()
    programs: dict[str, ScoringProgram] = {}
    _require_known(boards, settings.public)
    for folder in boards:
        _require_unchanged(folder)
        board = read_leaderboard(folder)
        opened = read_challenge(folder / board.place)
        case_ids += opened.challenge.case_ids
        ranking = make_ranking(opened, read_ledger(opened.attempts, opened.sha256), folder)
        # the honest board next to one of official code is no task of its own
        beside |= set(list(ranking.defined)[1:])
        for task_board in ranking.board.boards:
            report_progress(0, 1, f"Numbers of {task_board.task}")
            task, drawn = _publish_task(opened, ranking, task_board, settings)
            tasks.append(task)
            draws.append(drawn)
            program = _make_program(opened, task, ranking)
            if program is not None and task.task not in beside:
                programs.setdefault(task.task, program)
    teams = {row.team for task in tasks for row in task.rows}
    if unknown := sorted(set(settings.links) - teams):
        raise CaseError(
            f"expected links only for ranked teams, but found links for {name_some(unknown)}"
        )
    site = Site(
        settings.title or tasks[0].challenge,
        tuple(tasks),
        _rank_overall([task for task in tasks if task.task not in beside]),
        settings.minimum_group,
        software_version(),
        now_utc(),
    )
    _write_searched(site, draws, tuple(programs.values()), out, boards, case_ids, existing)
    return Published(site, split_ids(case_ids)[1])


def _require_known(boards: Sequence[Path], public: CaseList | None) -> None:
    """Raise `CaseError` if a listed case is in none of the challenges."""
    opened = [read_challenge(folder / read_leaderboard(folder).place) for folder in boards]
    known = {case_key(case_id) for one in opened for case_id in one.challenge.case_ids}
    if public and (unknown := [name for name in public.case_ids if case_key(name) not in known]):
        raise CaseError(
            f"expected cases of the challenge in {public.name}, but found {name_some(unknown)}: "
            "correct the ids, one on each line or in a column case_id"
        )


def _require_unchanged(folder: Path) -> None:
    opened = read_challenge(folder / read_leaderboard(folder).place)
    if is_older(opened, read_leaderboard(folder)):
        raise FormatError(
            f"expected a leaderboard of all attempts in {folder}, but it is older than the last "
            "attempt: rank the challenge again, then publish it"
        )
    differences = [
        difference
        for difference in verify_challenge(folder, is_quick=True)
        if difference.where == "leaderboard"
    ]
    if differences:
        raise FormatError(
            f"expected an unchanged leaderboard in {folder}, but {differences[0].text}: create "
            "the leaderboard again, then publish it"
        )


def _write_searched(
    site: Site,
    draws: Sequence[PublicDraws],
    programs: Sequence[ScoringProgram],
    out: Path,
    boards: Sequence[Path],
    case_ids: Sequence[str],
    existing: Existing,
) -> None:
    """Write the site to a temporary folder, search it for case ids, and move it to `out`."""
    parameters = (("boards", len(boards)), ("minimum_group", site.minimum_group))
    claim_folder(out, "challenge publish", parameters, existing, boards)
    with own_folder(out) as temporary:
        write_site_files(site, temporary)
        if programs:
            write_competition(site.title, site.created[:10], programs, temporary / FOLDER)
        write_page(public_page(site, draws), temporary / PAGE)
        report_progress(0, 1, "Searching for case ids")
        leaks = find_leaks(temporary, case_ids)
        if leaks:
            places = name_some([f"{leak.case_id} in {leak.path}" for leak in leaks])
            raise FormatError(
                f"expected no case id in the files of the site, but found {places}: rename the "
                "team or the challenge that contains it; nothing was published",
            )
        for path in sorted(path for path in temporary.rglob("*") if path.is_file()):
            target = out / path.relative_to(temporary)
            target.parent.mkdir(parents=True, exist_ok=True)
            path.replace(target)
    report_progress(1, 1, "Finished")


def _make_program(
    opened: OpenChallenge, task: PublicTask, ranking: ChallengeRanking
) -> ScoringProgram | None:
    """Make the scoring program of a task; None if it needs model files, which are not public."""
    if task.task not in ranking.defined:
        return ScoringProgram(task.task, title_of(task), opened.challenge.profile)
    if opened.challenge.model_files:
        return None
    definition = next(one for one in read_definitions(opened) if one.name == task.task)
    score = (("score", "Score", True),) if definition.ranking.score else ()
    measures = tuple((measure.id, measure.title or measure.id, measure.better is Better.HIGH)
                     for measure in definition.measures)  # fmt: skip
    text = json.dumps(definition_content(definition), indent=1)
    return ScoringProgram(task.task, task.title, opened.challenge.profile, score + measures, text,
                          opened.challenge.models)  # fmt: skip


def _publish_task(
    opened: OpenChallenge, ranking: ChallengeRanking, board: Board, settings: PublishSettings
) -> tuple[PublicTask, PublicDraws]:
    rules = score_settings(opened)
    cohort = read_table(rules.clinical, rules.columns)
    models = dict(ranking.models)
    results = dict(ranking.responses.results) if ranking.responses else {}
    is_masks = board.task == SEGMENTATION
    names, stable = find_stability(board, ranking)
    own = ranking.defined.get(board.task)
    title = own.title if own else ""
    parts = _split_cases(opened, settings)
    part_scores = _score_defined(ranking, board.task, parts, settings.minimum_group)
    rows, drawn = [], {}
    for row in board.rows:
        numbers: tuple[PublicNumber, ...] = ()
        parted: tuple[float | None, ...] = ()
        coverage = ""
        if row.rank is not None and is_masks:
            model = models[row.team]
            _require_many(row.n, settings, board.task)
            numbers, coverage = _number_masks(opened, model, cohort)
            drawn[row.team] = _draw_masks(opened, model, cohort)
            parted = tuple(_score_masks(model, cohort, part) for part in parts)
        elif row.rank is not None and board.task in ranking.defined:
            _require_many(row.n, settings, board.task)
            numbers = _number_defined(ranking.defined[board.task], row.team, settings.minimum_group)
            drawn[row.team] = ranking.defined[board.task].draw_scores(row.team)
            if any(number.name == "Score" and number.value is None for number in numbers):
                drawn[row.team] = np.empty(0)
            parted = part_scores[row.team]
        elif row.rank is not None:
            result = results[row.team]
            _require_many(row.n, settings, board.task)
            numbers = _number_responses(result)
            drawn[row.team] = _draw_responses(opened, result)
            parted = tuple(_score_responses(opened, result, cohort, part) for part in parts)
        low = high = first = None
        if stable is not None and row.team in names:
            index = names.index(row.team)
            low, high = float(stable.low[index]), float(stable.high[index])
            first = float(stable.first[index])
        rows.append(
            PublicRow(
                row.team,
                settings.links.get(row.team, ""),
                row.rank,
                low,
                high,
                first,
                row.submitted[:10],
                row.n,
                row.n_unusable,
                row.is_as_given,
                None if row.chance is None else row.chance.is_better,
                row.is_alarming,
                row.gated_rank,
                numbers,
                public_score=parted[0] if parted else None,
                private_score=parted[1] if parted else None,
                coverage=coverage,
                remark=own.describe_undefined(row.team) if own and row.rank else "",
            )
        )
    rows = _rank_parts(rows, 1 if own is None or own.is_high else -1) if parts else rows
    ranked = [row.team for row in sorted(rows, key=lambda row: row.rank or 0) if row.rank]
    shares = None
    if stable is not None:
        shares = {team: stable.ranks[:, names.index(team)] for team in ranked if team in names}
    task = PublicTask(
        ranking.board.challenge,
        board.task,
        title,
        ranking.board.profile,
        board.ranked_by,
        len(opened.challenge.cases),
        ranking.board.rule,
        opened.challenge.n_resamples,
        tuple(len(part) for part in parts),
        tuple(rows),
        *(_describe_definition(opened, own, board.task, parts, settings) if own else ()),
    )
    titles = {**own.titles, "Score": own.score_title} if own else {}
    return task, PublicDraws({team: drawn[team] for team in ranked}, shares or {}, titles)


def _require_many(n: int, settings: PublishSettings, what: str) -> None:
    if n < settings.minimum_group:
        raise CaseError(
            f"expected each number of {what} to be based on at least {settings.minimum_group} "
            f"cases, but found {n}: the numbers would reveal individual cases",
            remedies=(Remedy("minimum_group", ("N",)),),
        )


def _split_cases(opened: OpenChallenge, settings: PublishSettings) -> tuple[frozenset[str], ...]:
    """Return the cases in the public and private parts, or () if there is no split."""
    if settings.public is None:
        return ()
    public = frozenset(name for name in opened.challenge.case_ids if name in settings.public)
    private = frozenset(opened.challenge.case_ids) - public
    for part, name in ((public, "the public part"), (private, "the private part")):
        _require_many(len(part), settings, name)
    return public, private


def _score_defined(
    ranking: ChallengeRanking, task: str, parts: Sequence[frozenset[str]], minimum: int
) -> dict[str, tuple[float | None, ...]]:
    """Return each team's scores on the parts, or {} for the MAMA-MIA tasks.

    If a measure that ranks has fewer than `minimum` cases in one part, no part has a score, because
    the score on all cases and on the other part would reveal it.
    """
    defined = ranking.defined.get(task)
    if defined is None or defined.score_part is None:
        return {}
    if _list_small_parts(defined, parts, minimum):
        return {team: (None,) * len(parts) for team in defined.teams}
    scores = [defined.score_part(part) for part in parts]
    return {
        team: tuple(find_number(float(of_part[index])) for of_part in scores)
        for index, team in enumerate(defined.teams)
    }


def _list_small_parts(
    defined: DefinedRanking, parts: Sequence[frozenset[str]], minimum: int
) -> list[str]:
    """Return the ids of measures that rank and have too few cases in a part."""
    return [
        name for name in defined.used
        if any(defined.count_cases(name, part).min() < minimum for part in parts)
    ]  # fmt: skip


def _describe_definition(
    opened: OpenChallenge,
    defined: DefinedRanking,
    task: str,
    parts: Sequence[frozenset[str]],
    settings: PublishSettings,
) -> tuple[str, tuple[str, ...]]:
    """Return the source of a definition and its notes, with the numbers that are not published."""
    minimum = settings.minimum_group
    definition = next(one for one in read_definitions(opened) if one.name == task)
    least = {name: int(defined.count_cases(name).min()) for name in defined.numbers}
    _require_many(max(int(defined.count_cases(name).max()) for name in least), settings, task)
    texts = [*definition.notes, f"Cases of each measure: {defined.describe_counts()}."]
    if small := [defined.titles[name] for name, n in least.items() if n < minimum]:
        texts.append(
            f"Not shown, because fewer than {minimum} cases have this measure: {', '.join(small)}."
        )
        if any(least[name] < minimum for name in defined.used):
            texts.append(
                "The ranks also use these measures; the score is not shown, because it would "
                "reveal them."
            )
    if small := [defined.titles[name] for name in _list_small_parts(defined, parts, minimum)]:
        texts.append(
            f"No ranks on the public and the private part, because fewer than {minimum} cases of "
            f"a part have this measure: {', '.join(small)}."
        )
    return definition.source, tuple(texts)


def _rank_parts(rows: Sequence[PublicRow], sign: int) -> list[PublicRow]:
    """Add the ranks on both parts to the rows; `sign` is 1 if larger scores are better."""
    ranked = []
    for name in ("public", "private"):
        scores = [getattr(row, f"{name}_score") for row in rows]
        values = np.array([nan if score is None else score for score in scores])
        ranked.append(
            [None if isnan(rank) else int(rank) for rank in ranks(sign * values).tolist()]
        )
    return [
        replace(row, public_rank=public, private_rank=private)
        for row, public, private in zip(rows, *ranked, strict=True)
    ]


def _number_masks(
    opened: OpenChallenge, model: ModelScores, cohort: Cohort | None
) -> tuple[tuple[PublicNumber, ...], str]:
    """Return the published numbers for a team's masks, with intervals, and a coverage note."""
    settings = score_settings(opened)
    whole = cohort_numbers(
        model.name, model.rows, model.failures, model.n_cases, settings, cohort
    ).segmentation
    if whole is None:
        return (), ""
    counted = whole.counted
    performance, fairness = whole.cohort.performance, whole.cohort.fairness
    values = (("Dice", "mean_dsc", counted.dsc), ("NormHD", "mean_norm_hd", counted.norm_hd))
    numbers = []
    for label, name, column in values:
        ends = _find_ends(whole.intervals, name)
        sd = float(np.nanstd(column, ddof=1)) if np.isfinite(column).sum() > 1 else nan
        numbers.append(_make_number(label, float(np.nanmean(column)), *ends, sd))
    ends = _find_ends(whole.intervals, "performance")
    numbers.append(_make_number("Performance", performance.value, *ends))
    gaps = whole.uncertainty.by_name("fairness_")
    for variable in fairness.variables:
        gap = gaps.get(f"fairness_{variable.variable}")
        ends = (nan, nan) if gap is None else (gap.low, gap.high)
        numbers.append(_make_number(f"Fairness, {variable.variable}", variable.value, *ends))
    gap = whole.uncertainty.fairness
    numbers.append(_make_number("Fairness", fairness.value, gap.low, gap.high))
    gap = whole.uncertainty.ranking_score
    numbers.append(_make_number("Score", whole.cohort.ranking_score, gap.low, gap.high))
    return tuple(numbers), " ".join(coverage_notes(whole))


def _find_ends(intervals: Sequence[Interval], name: str) -> tuple[float, float]:
    interval = interval_named(intervals, name)
    return (nan, nan) if interval is None else (interval.low, interval.high)


def _number_defined(ranking: DefinedRanking, team: str, minimum: int) -> tuple[PublicNumber, ...]:
    """Return a team's published measures with their 95 % intervals over the resamples.

    A measure with fewer than `minimum` cases has no value, and then neither has a score that uses
    it.
    """
    index, numbers = ranking.teams.index(team), []
    values = {**ranking.numbers, "Score": ranking.scores}
    counts = {name: int(ranking.count_cases(name)[index]) for name in ranking.numbers}
    # A mean rank also depends on the numbers of the other teams.
    counts["Score"] = min(
        (int(ranking.count_cases(name).min()) for name in ranking.used), default=minimum
    )
    for name, of_teams in values.items():
        if counts[name] < minimum:
            numbers.append(PublicNumber(name, None, n=counts[name]))
            continue
        drawn = ranking.draws.get(name)
        value = float(of_teams[index])
        ends = (nan, nan) if drawn is None else percentile_ends(value, drawn[:, index])
        numbers.append(replace(_make_number(name, value, *ends), n=counts[name]))
    return tuple(numbers)


def _number_responses(result: ResponseResult) -> tuple[PublicNumber, ...]:
    """Return the published numbers for a team's responses, with their 95 % intervals."""
    cohort, sure = result.cohort, result.uncertainty
    ends = _find_ends(result.intervals, "balanced_accuracy")
    numbers = [_make_number("Performance", cohort.balanced_accuracy, *ends)]
    auc = result.delong
    numbers.append(_make_number("AUC", auc.auc, auc.low, auc.high))
    gaps = sure.by_name("disparity_")
    for odds in cohort.odds.variables:
        gap = gaps.get(f"disparity_{odds.variable}")
        ends = (nan, nan) if gap is None else (1 - gap.high, 1 - gap.low)
        numbers.append(_make_number(f"Fairness, {odds.variable}", 1 - odds.disparity, *ends))
    gap = sure.fairness
    numbers.append(_make_number("Fairness", cohort.fairness, gap.low, gap.high))
    gap = sure.ranking_score
    numbers.append(_make_number("Score", cohort.ranking_score, gap.low, gap.high))
    return tuple(numbers)


def _make_number(name: str, value: float, low: float, high: float, sd: float = nan) -> PublicNumber:
    return PublicNumber(
        name,
        find_number(float(value)),
        find_number(float(low)),
        find_number(float(high)),
        find_number(float(sd)),
    )


def _draw_masks(
    opened: OpenChallenge, model: ModelScores, cohort: Cohort | None
) -> NDArray[np.float64]:
    """Return a team's ranking score in each resample."""
    case_ids, challenge = count_model(model).case_ids, opened.challenge
    if not challenge.n_resamples:
        return np.empty(0)
    composite = make_composite([model], case_ids, cohort)
    blocks = seeded_weights(len(case_ids), challenge.n_resamples, challenge.seed)
    return np.concatenate([composite(weights)[:, 0] for weights in blocks])


def _score_masks(model: ModelScores, cohort: Cohort | None, part: frozenset[str]) -> float | None:
    case_ids = count_model(model).case_ids
    weights = np.array([[case_id in part for case_id in case_ids]], dtype=np.int64)
    return find_number(float(make_composite([model], case_ids, cohort)(weights)[0, 0]))


def _draw_responses(opened: OpenChallenge, result: ResponseResult) -> NDArray[np.float64]:
    challenge = opened.challenge
    rules = rules_of(challenge.profile)
    if not challenge.n_resamples:
        return np.empty(0)
    drawn = bootstrap_response(
        result.predictions,
        result.groupings,
        rules,
        result.cohort.weight_of_fairness,
        challenge.n_resamples,
        challenge.seed,
    )
    name = "ranking_score" if result.groupings else "balanced_accuracy"
    return drawn.replicates[:, drawn.names.index(name)]


def _score_responses(
    opened: OpenChallenge, result: ResponseResult, cohort: Cohort | None, part: frozenset[str]
) -> float | None:
    every = result.predictions
    chosen = np.array([case_id in part for case_id in every.case_ids])
    case_ids = tuple(case_id for case_id in every.case_ids if case_id in part)
    own = ResponsePredictions(
        case_ids, every.label[chosen], every.predicted[chosen], every.score[chosen]
    )
    rules = rules_of(opened.challenge.profile)
    groupings = (
        () if cohort is None else group_cases(case_ids, matched(list(case_ids), cohort), rules)
    )
    return find_number(float(score_response(own, groupings, rules).ranking_score))


def _rank_overall(tasks: Sequence[PublicTask]) -> tuple[tuple[str, float, int], ...]:
    """Return (team, mean rank, rank) over all tasks, for teams that are ranked in every task."""
    places = [{row.team: row.rank for row in task.rows if row.rank is not None} for task in tasks]
    if len(places) < 2:
        return ()
    teams = [team for team in places[0] if all(team in place for place in places)]
    means = np.array([np.mean([place[team] for place in places]) for team in teams])
    overall = zip(teams, means.tolist(), ranks(-means).tolist(), strict=True)
    return tuple(sorted(((team, mean, int(rank)) for team, mean, rank in overall),
                        key=lambda entry: (entry[2], entry[0])))  # fmt: skip
