"""Write a challenge's leaderboard: JSON, tables, the HTML page, and one page per team."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import isnan, nan
from pathlib import Path
from types import MappingProxyType
from typing import Final

import numpy as np

from napari_mamamia.core.errors import FormatError, SaveError
from napari_mamamia.core.progress import report_progress
from napari_mamamia.features.challenge.io.challenge_file import OpenChallenge, read_challenge
from napari_mamamia.features.challenge.io.file_list import write_file_list
from napari_mamamia.features.challenge.io.leaderboard_file import (
    BOARD_FILE,
    Board,
    BoardRow,
    write_leaderboard,
)
from napari_mamamia.features.challenge.io.ledger import LedgerWriter, read_ledger
from napari_mamamia.features.challenge.scoring.leaderboard import (
    LEADERBOARD_FOOTER,
    LeaderboardContent,
    make_matrix,
    ranking_sections,
)
from napari_mamamia.features.challenge.scoring.team_page import (
    LEADERBOARD_PAGE,
    TeamDetails,
    link_pages,
    team_page,
)
from napari_mamamia.features.challenge.services.challenge.attempt import require_inputs
from napari_mamamia.features.challenge.services.challenge.evidence import describe_copies
from napari_mamamia.features.challenge.services.challenge.ranking import (
    CLASSIFICATION,
    NOT_FOR_TASK,
    OF_PICTURES,
    RESPONSE_RANKS,
    SEGMENTATION,
    ChallengeRanking,
    make_ranking,
    write_responses,
)
from napari_mamamia.features.challenge.services.rank.output import DATA_FILES
from napari_mamamia.features.challenge.services.rank.pages import write_pages
from napari_mamamia.features.challenge.services.rank.rank import write_ranking
from napari_mamamia.features.challenge.services.rank.text import answer_first, leaderboard_content
from napari_mamamia.scoring.classifier.response_ranking import ResponseRanking
from napari_mamamia.scoring.classifier.scores import bayes_factors
from napari_mamamia.scoring.cohort.groups import rules_of
from napari_mamamia.scoring.cohort.policy import SAID, CountedCases
from napari_mamamia.scoring.cohort.results import ModelScores, ResponseResult
from napari_mamamia.scoring.ranking.ranking import Stability
from napari_mamamia.scoring.report.answers import answer_responses, answer_weights
from napari_mamamia.scoring.report.certainty import show_interval
from napari_mamamia.scoring.report.classifier import models_table, pair_tables
from napari_mamamia.scoring.report.page import Page, PageSection
from napari_mamamia.scoring.report.rank_figures import draw_stability
from napari_mamamia.scoring.report.response import odds_tables, response_table
from napari_mamamia.scoring.report.tables import disparity_table
from napari_mamamia.scoring.report.text import (
    UNKNOWN,
    Answer,
    Column,
    ReportTable,
    Row,
    number,
    p_said,
    p_text,
    range_text,
    variable_label,
)
from napari_mamamia.services.batch.output_folder import RUN_FILE, Existing, claim_folder

_MOST_PAIRS: Final = 10
_FACTORS: Final = "Bayes factor K: row over column"
_OF_FACTORS: Final = (
    "Resamples in which the row has the better score, divided by the others (ties count against "
    "the row). Rules: K>3, K>=19 (one-sided 5 %), K>=39 (two-sided)."
)
"""Maximum number of teams for which tables of pairs are initially expanded."""
_MOST_CASES: Final = 40
_MOST_NOTES: Final = 6
_TASKS: Final = {SEGMENTATION: "Masks", CLASSIFICATION: "Responses"}
NO_BETTER: Final = "no better than chance"
_OF_CHANCE: Final = (
    "p, permutation: exact one-sided p of the balanced accuracy when the labels are permuted. An "
    f"entry with p of 0.05 or above is marked as {NO_BETTER}; its rank is by the ranking score, "
    "which also rewards equal error rates. AUC, 95 %: DeLong."
)
_NOT_FOR_TEAMS: Final = "On the locked test set itself (not for the teams):"
_OF_LADDER: Final = (
    "the board shows the leaderboard's guarded scores; everything else here is computed on the "
    "locked test set and is not for its teams"
)


_PLACES: Final = re.compile(r"(?:\S*/)?(?:results/\S[^/]*/[0-9a-f]+/sealed|submissions)/")


def describe_row(row: BoardRow) -> str:
    """Describe a team's cases and attempts, as in "n 60, 38 unusable; 7th attempt"."""
    n = f"n {row.n}" + (f", {row.n_unusable} unusable" if row.n_unusable else "")
    attempt = say_attempt(row)
    origin = "; scores as given" if row.is_as_given else ""
    reason = f"; not ranked: {row.reason}" if row.rank is None else ""
    remarks = "".join(f"; {text}" for text in (say_guarded(row), *_list_evidence(row)) if text)
    return f"{row.team}: {n}; {attempt}{origin}{remarks}{reason}"


def _list_evidence(row: BoardRow) -> list[str]:
    """Return sentences on chance, on copies of references, and on the gated score."""
    texts = [describe_copies(row)] if row.is_alarming else []
    if row.chance is not None and row.rank is not None:
        verdict = "better than chance" if row.chance.is_better else NO_BETTER
        texts.append(f"{verdict} ({p_said(row.chance.p_value)}, permutation)")
    if row.gated_score is not None:
        texts.append(f"gated score {row.gated_score:.4f}, rank {row.gated_rank}")
    return texts


def say_guarded(row: BoardRow) -> str:
    """Return a team's guarded score as text, or "" if it has none."""
    if row.guarded_score is None:
        return ""
    return (
        f"guarded score {row.guarded_score:.4f}: with the least favourable value for each of its "
        "empty predictions"
    )


def say_attempt(row: BoardRow) -> str:
    """Describe the displayed attempt, such as "7th attempt", and the total if more follow."""
    if not row.attempt:
        return "no attempt"
    attempt = f"{ordinal(row.attempt)} attempt"
    return attempt + (f" of {row.n_attempts}" if row.n_attempts > row.attempt else "")


def hide_places(text: str) -> str:
    """Remove paths of the organiser's computer from a message.

    Examples
    --------
    >>> hide_places("/srv/org/results/a/0f3c/sealed/C_01.nii.gz: it is cut off")
    'C_01.nii.gz: it is cut off'
    >>> hide_places("expected a zip at /srv/org/submissions/a.zip")
    'expected a zip at a.zip'
    """
    return _PLACES.sub("", text)


def ordinal(number: int) -> str:
    """Return an English ordinal number: 1st, 2nd, 3rd, 11th.

    Examples
    --------
    >>> [ordinal(number) for number in (1, 2, 3, 7, 11, 12, 13, 21, 112)]
    ['1st', '2nd', '3rd', '7th', '11th', '12th', '13th', '21st', '112th']
    """
    teens = 10 <= number % 100 < 20
    return f"{number}{'th' if teens else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"


def challenge_pages(ranking: ChallengeRanking) -> dict[str, Page]:
    """Build the pages of the leaderboard and the teams, by relative file name."""
    board = ranking.board
    teams = dict.fromkeys(row.team for board in board.boards for row in board.rows)
    links = link_pages(tuple(teams))
    content = None
    title = f"{board.challenge}: leaderboard"
    if ranking.summary is not None:
        content = leaderboard_content(
            ranking.summary, title=title, links=links, groupings=ranking.groupings
        )
        first = next(iter(ranking.defined.values()), None)
        content = replace(content, titles=first.titles if first else {})
    pages = {LEADERBOARD_PAGE: _make_leaderboard(ranking, content, links, title)}
    for team, target in links.items():
        details = _describe_team(ranking, team)
        pages[target] = team_page(content, team, details, links, board.challenge)
    return {
        name: replace(page, created=board.created, software=board.software)
        for name, page in pages.items()
    }


def _make_leaderboard(
    ranking: ChallengeRanking,
    content: LeaderboardContent | None,
    links: Mapping[str, str],
    title: str,
) -> Page:
    board = ranking.board
    sections = []
    for index, task_board in enumerate(board.boards):
        is_defined = task_board.task in ranking.defined
        sections.append(
            _describe_defined(task_board, ranking, links)
            if is_defined
            else _describe_board(task_board, ranking, links)
        )
        is_first = task_board.task == SEGMENTATION or (is_defined and not index)
        if is_first and content is not None:
            first, *more = ranking_sections(content)
            name = first.title if more and is_defined else "Ranks by every method"
            sections += [replace(first, title=name, says=()), *more]
    responses = ranking.responses
    if responses is not None and responses.ranking is not None:
        sections += _describe_responses(responses.ranking)
    ladder = f"; {_OF_LADDER}" if board.ladder else ""
    names = ", ".join(ranking.defined)
    what = f"Definition {names}" if names else f"Profile {board.profile}"
    facts = (
        f"{what}; unusable cases: {board.rule}{ladder}.",
        *(content.facts if content else ()),
        f"challenge.json {board.sha256[:16]}; ledger "
        f"{', '.join(head[:16] for head in board.heads)}.",
    )
    return Page(
        title,
        facts,
        tuple(sections),
        _shorten_notes(board.notes),
        footer=LEADERBOARD_FOOTER,
        summary=answer_board(ranking),
    )


def answer_board(ranking: ChallengeRanking) -> tuple[Answer, ...]:
    """Describe each task's leader, the certainty of the lead, and what would change it."""
    answers = [_answer_defined(board, ranking) for board in ranking.board.boards
               if board.task in ranking.defined]  # fmt: skip
    answers += [] if answers else _answer_masks(ranking)
    responses = ranking.responses
    if responses is not None and responses.ranking is not None:
        answers += answer_responses(responses.ranking, responses.results)
    return tuple(answers) or (Answer("Who leads", ("No team has a ranked number.",)),)


def _shorten_notes(notes: tuple[str, ...]) -> tuple[str, ...]:
    if len(notes) <= _MOST_NOTES:
        return notes
    more = len(notes) - _MOST_NOTES
    return (*notes[:_MOST_NOTES], f"{more} further notes are in leaderboard.json.")


def _answer_masks(ranking: ChallengeRanking) -> Iterator[Answer]:
    """Yield sentences on the ranking of masks, including the effect of the fairness weight."""
    if ranking.summary is None:
        return
    weight = rules_of(ranking.board.profile).weight_of_fairness
    changes = answer_weights(ranking.models, weight) if ranking.groupings else ()
    is_first, is_changed = ranking.responses is not None, False
    for answer in answer_first(ranking.summary):
        question, sentences = answer.question, answer.sentences
        if question == "What would change it":
            sentences, is_changed = (*changes, *sentences), True
        if question == "Who leads" and ranking.board.ladder:
            sentences = (_say_ladder(ranking), *(f"{_NOT_FOR_TEAMS} {text}" for text in sentences))
        if is_first:
            question, is_first = "Masks: who leads", False
        yield Answer(question, sentences)
    if changes and not is_changed:
        yield Answer("What would change it", changes)


def _say_ladder(ranking: ChallengeRanking) -> str:
    rows = next(board.rows for board in ranking.board.boards if board.task == SEGMENTATION)
    names = [row.team for row in rows if row.rank == 1]
    return (
        f"By guarded score, {', '.join(names)} {'leads' if len(names) == 1 else 'share the lead'}."
    )


def _answer_defined(board: Board, ranking: ChallengeRanking) -> Answer:
    first = [row for row in board.rows if row.rank == 1]
    names, stable = find_stability(board, ranking)
    text = (
        f"{', '.join(row.team for row in first)} {'leads' if len(first) == 1 else 'share rank 1'}"
    )
    if len(first) == 1 and stable is not None:
        share = stable.first[names.index(first[0].team)]
        text += f", and is first in {100 * share:.0f} % of the resamples of the cases"
    title = ranking.defined[board.task].title
    return Answer(f"{title}: who leads", (f"{text}.", f"Ranked by {board.ranked_by}."))


def _describe_defined(
    board: Board, ranking: ChallengeRanking, links: Mapping[str, str]
) -> PageSection:
    """Build the board of a challenge with its own definition, with one column per measure."""
    names, stable = find_stability(board, ranking)
    defined = ranking.defined[board.task]
    measures = list(defined.numbers)
    undefined = {team: defined.describe_undefined(team) for team in defined.teams}
    rows = []
    for row in board.rows:
        numbers = dict(row.measures)
        sure = _show_stability(names, stable, row.team)
        cells = (row.team, show_rank(row), *sure, _show_number(row.score),
                 *(_show_number(numbers.get(name)) for name in measures), f"{row.n:,}",
                 f"{row.n_unusable:,}", say_attempt(row),
                 "; ".join(filter(None, (_say_remark(row), undefined.get(row.team)))))  # fmt: skip
        rows.append(Row(cells, is_small=row.rank is None, link=links.get(row.team, "")))
    titles = [defined.titles[name] for name in measures]
    score = defined.score_title
    heads = ("Rank", "Rank, 95 %", "First, %", score, *titles, "n", "Unusable", "Attempt")
    columns = (Column("Team", is_number=False), *map(Column, heads),
               Column("Remark", is_number=False))  # fmt: skip
    note = f"Cases of each measure: {defined.describe_counts()}."
    tables = [ReportTable(f"Ranked by {board.ranked_by}", columns, tuple(rows), (note,))]
    drawn = defined.draws.get("Score")
    if drawn is not None and 1 < len(defined.teams) <= _MOST_PAIRS:
        sign = 1.0 if defined.is_high else -1.0
        factors = {(factor.better, factor.other): factor.text
                   for factor in bayes_factors(sign * drawn, defined.teams)}  # fmt: skip
        ordered = [row.team for row in board.rows if row.team in defined.teams]
        claims = [[factors.get((row, column), "") for column in ordered] for row in ordered]
        tables.append(make_matrix(_FACTORS, ordered, claims, _OF_FACTORS))
    return PageSection(f"{defined.title}: the board", tuple(tables))


def _describe_board(
    board: Board, ranking: ChallengeRanking, links: Mapping[str, str]
) -> PageSection:
    is_masks = board.task == SEGMENTATION
    names, stable = find_stability(board, ranking)
    rows = []
    for row in board.rows:
        if row.reason == NOT_FOR_TASK:
            continue
        sure = _show_stability(names, stable, row.team)
        cells = (
            row.team,
            show_rank(row),
            *sure,
            *(_show_number(value) for value in (row.score, row.performance, row.fairness)),
            f"{row.n:,}",
            f"{row.n_unusable:,}",
            say_attempt(row) if row.attempt else UNKNOWN,
            *(_show_chance(row) if not is_masks else ()),
            *(_show_gated(row) if board.gate else ()),
            _say_remark(row),
        )
        rows.append(Row(cells, is_small=row.rank is None, link=links.get(row.team, "")))
    first = "Performance" if is_masks else "Balanced accuracy"
    heads = ("Rank", "Rank, 95 %", "First, %", "Score", first, "Fairness", "n", "Unusable",
             "Attempt", *(() if is_masks else ("p, permutation", "AUC", "AUC, 95 %")),
             *(("Gated score", "Gated rank") if board.gate else ()))  # fmt: skip
    columns = (
        Column("Team", is_number=False),
        *(Column(text) for text in heads),
        Column("Remark", is_number=False),
    )
    n_others = sum(row.reason == NOT_FOR_TASK for row in board.rows)
    teams = "one team" if n_others == 1 else f"{n_others:,} teams"
    others = f" No submission for this task by {teams}." if n_others else ""
    notes = (
        "Rank, 95 %: interval of the rank in 95 % of the resamples of the cases; first: share of "
        f"resamples in which no team is better. Grey: not ranked.{others}",
        *((_OF_CHANCE,) if not is_masks else ()),
        *((f"Gated: {board.gate}.",) if board.gate else ()),
    )
    effects = _tabulate_level_down(board)
    title = f"Ranked by {board.ranked_by}"
    name = "Masks" if is_masks else "Responses"
    tables = (ReportTable(title, columns, tuple(rows), notes), *effects)
    return PageSection(f"{name}: the board", tables)


def _show_stability(names: Sequence[str], stable: Stability | None, team: str) -> tuple[str, str]:
    """Return the interval of a team's rank, and the fraction of resamples in which it is first."""
    if stable is None or team not in names:
        return UNKNOWN, UNKNOWN
    index = names.index(team)
    return show_interval(stable, index), f"{100 * stable.first[index]:.0f}"


def show_rank(row: BoardRow) -> str:
    """Format a team's rank, with a mark if its responses are no better than chance."""
    if row.rank is None:
        return UNKNOWN
    is_chance = row.chance is not None and not row.chance.is_better
    return f"{row.rank} ({NO_BETTER})" if is_chance else f"{row.rank}"


def _show_chance(row: BoardRow) -> tuple[str, str, str]:
    chance = row.chance
    if chance is None:
        return UNKNOWN, UNKNOWN, UNKNOWN
    low, high = (nan if end is None else end for end in (chance.auc_low, chance.auc_high))
    return p_text(chance.p_value), _show_number(chance.auc), range_text(low, high)


def _show_gated(row: BoardRow) -> tuple[str, str]:
    return _show_number(row.gated_score), UNKNOWN if row.gated_rank is None else f"{row.gated_rank}"


def _tabulate_level_down(board: Board) -> tuple[ReportTable, ...]:
    """Build the table of the effect of each team's worst cases, in the group with the largest."""
    rows = []
    for row in board.rows:
        for effect in row.level_down:
            group = f"{variable_label(effect.variable)}: {effect.group}"
            cells = (row.team, f"{effect.k}", group, number(effect.gain, 4))
            rows.append(Row(cells, is_small=effect.gain <= 0))
    if not rows:
        return ()
    columns = (Column("Team", is_number=False), Column("Worst cases"),
               Column("Group", is_number=False), Column("Score with minus without"))  # fmt: skip
    note = (
        "Level-down check: the ranking score minus the score without the worst readable cases of "
        "one group, for the group where the difference is largest. Above 0, worse masks in this "
        "group raise the score, because they narrow a gap. Grey: they do not."
    )
    return (
        ReportTable("Sensitivity to the worst cases of a group", columns, tuple(rows), (note,)),
    )


def find_stability(
    board: Board, ranking: ChallengeRanking
) -> tuple[tuple[str, ...], Stability | None]:
    """Return the teams in the resamples, and the stability of ranks by the board's score."""
    if board.task in ranking.defined:
        defined = ranking.defined[board.task]
        return defined.teams, defined.stability
    if board.task == CLASSIFICATION:
        responses = ranking.responses.ranking if ranking.responses else None
        return ((), None) if responses is None else (responses.names, responses.method.stability)
    if ranking.summary is None or ranking.board.ladder:
        return (), None
    first = ranking.summary.ranking.tables[0]
    return first.table.algorithms, first.methods[0].stability


def _show_number(value: float | None) -> str:
    return UNKNOWN if value is None else number(value, 4)


def _say_remark(row: BoardRow) -> str:
    reasons = [f"{n} {name}" for name, n in row.unusable]
    texts = [hide_places(row.reason)] if row.rank is None else []
    texts += [f"unusable: {', '.join(reasons)}"] if reasons else []
    texts += [text] if (text := say_guarded(row)) else []
    texts += ["scores as given"] if row.is_as_given else []
    texts += [describe_copies(row)] if row.is_alarming else []
    return "; ".join(texts)


def _describe_responses(ranking: ResponseRanking) -> Iterator[PageSection]:
    names = ranking.names
    figures = tuple(draw_stability("responses", names, (ranking.method,), ranking.n_draws))
    tables: list[ReportTable] = []
    if ranking.factors:
        order = np.argsort(ranking.method.ranks, kind="stable").tolist()
        ordered = [names[index] for index in order]
        cells = [[_find_factor(ranking, row, column) for column in ordered] for row in ordered]
        tables.append(make_matrix(_FACTORS, ordered, cells, _OF_FACTORS))
    if tables or figures:
        is_open = len(names) <= _MOST_PAIRS
        yield PageSection(
            "Responses: certainty", tuple(tables) if is_open else (), figures,
            notes=ranking.notes, folded=() if is_open else tuple(tables),
        )  # fmt: skip
    if ranking.aucs is not None:
        pairs = pair_tables(ranking.aucs)
        is_open = len(ranking.aucs.models) <= _MOST_PAIRS
        yield PageSection(
            "Responses: AUC", (models_table(ranking.aucs), *(pairs if is_open else ())),
            folded=() if is_open else pairs,
        )  # fmt: skip


def _find_factor(ranking: ResponseRanking, better: str, other: str) -> str:
    factor = ranking.factor(better, other)
    return "" if factor is None else factor.text


def _describe_team(ranking: ChallengeRanking, team: str) -> TeamDetails:
    """Return the content of a team's page besides ranks: attempts, cases, groups, responses."""
    rows = [
        (board, row) for board in ranking.board.boards for row in board.rows if row.team == team
    ]
    texts = [
        f"{_name_task(ranking, board)}: {describe_row(row).removeprefix(f'{team}: ')}."
        for board, row in rows
    ]
    answers = [Answer("Submitted", tuple(texts))]
    sections = []
    model = dict(ranking.models).get(team)
    counted = model.segmentation.counted if model and model.segmentation else None
    notes = {case_id: hide_places(reason) for defined in ranking.defined.values()
             for case_id, reason in defined.notes.get(team, {}).items()}  # fmt: skip
    parts: tuple[tuple[str, Mapping[str, float]], ...] = ()
    if model is not None and counted is not None:
        notes = _explain_cases(model, counted)
        by_case = {row.case_id: row for row in model.rows}
        parts = (
            ("Dice", {case: row.dsc for case, row in by_case.items()}),
            ("NormHD", {case: row.norm_hd for case, row in by_case.items()}),
        )
        gaps = disparity_table(model.segmentation) if model.segmentation else None
        pictures = ranking.pictures.get(team, ())
        if pictures:
            sections.append(PageSection("Worst cases", notes=(OF_PICTURES,), pictures=pictures))
        sections += [PageSection("Fairness", (gaps,))] if gaps else []
    result = dict(ranking.responses.results).get(team) if ranking.responses else None
    if result is not None:
        sections += _describe_answers(result)
    if ranking.defined and notes:
        columns = (Column("Case", is_number=False), Column("Reason", is_number=False))
        lines = tuple(map(Row, notes.items()))
        sections.append(
            PageSection("Unusable cases", (ReportTable("Without a usable answer", columns, lines),))
        )
    sections += [PageSection("Attempts", (_tabulate_attempts(ranking, team),))]
    return TeamDetails(tuple(answers), (), (), MappingProxyType(notes), parts, tuple(sections))


def _name_task(ranking: ChallengeRanking, board: Board) -> str:
    defined = ranking.defined.get(board.task)
    return defined.title if defined else _TASKS.get(board.task, board.task)


def _explain_cases(model: ModelScores, counted: CountedCases) -> dict[str, str]:
    """Explain, by case, why there is no usable prediction, and which score the case gets."""
    reasons = {row.case_id: row.reason for row in model.rows}
    notes = {}
    for case in counted.unusable:
        detail = hide_places(reasons.get(case.case_id, ""))
        why = f": {detail}" if detail else ""
        notes[case.case_id] = f"{SAID[case.reason]}, counts as {case.rule.value}{why}"
    return notes


def _describe_answers(result: ResponseResult) -> Iterator[PageSection]:
    gaps = disparity_table(result)
    yield PageSection("Responses: numbers", (response_table(result), *((gaps,) if gaps else ())))
    yield PageSection("Responses: groups", odds_tables(result))
    predictions = result.predictions
    apart = np.abs(np.nan_to_num(predictions.score, nan=0.5) - predictions.label)
    wrong = (predictions.predicted != predictions.label) & ~np.isnan(predictions.label)
    order = np.lexsort((-np.nan_to_num(apart), ~wrong))
    rows = []
    for index in order[:_MOST_CASES].tolist():
        label, score = float(predictions.label[index]), float(predictions.score[index])
        cells = (
            predictions.case_ids[index],
            UNKNOWN if isnan(label) else ("yes" if label else "no"),
            "yes" if predictions.predicted[index] else "no",
            number(score),
        )
        rows.append(Row(cells))
    columns = (Column("Case", is_number=False), Column("pCR", is_number=False),
               Column("Predicted", is_number=False), Column("Probability"))  # fmt: skip
    n, n_wrong = len(predictions.case_ids), int(wrong.sum())
    title = f"{n_wrong:,} of {n:,} cases are wrong; the worst {len(rows):,} first"
    yield PageSection("Responses: cases", (ReportTable(title, columns, tuple(rows)),))


def _tabulate_attempts(ranking: ChallengeRanking, team: str) -> ReportTable:
    attempts = ranking.ledger.of_team(team) if ranking.ledger else ()
    displayed = {(row.digest, row.attempt) for board in ranking.board.boards for row in board.rows
             if row.team == team}  # fmt: skip
    rows = []
    for attempt in attempts:
        is_shown = bool(attempt.number) and (attempt.digest, attempt.number) in displayed
        what = f"{attempt.outcome.value}{', shown' if is_shown else ''}"
        start = (
            f"{attempt.number or UNKNOWN}",
            attempt.kind,
            attempt.digest[:16],
            f"{attempt.begun[:16].replace('T', ' ')} UTC",
            what,
        )
        cells = (*start, hide_places(attempt.reason))
        rows.append(Row(cells))
    heads = ("Kind", "Digest", "Begun", "Outcome", "Why")
    columns = (Column("Attempt"), *(Column(text, is_number=False) for text in heads))
    note = "Rejected, stopped and failed submissions do not count as attempts."
    return ReportTable("Submissions", columns, tuple(rows), (note,))


def rank_challenge(
    folder: Path, out: Path, *, existing: Existing = Existing.REFUSE
) -> ChallengeRanking:
    """Make the leaderboard of a challenge, and write it to an output folder.

    The files are ``leaderboard.json``, the pages, for masks the files of `rank`, for responses
    ``rank_responses.json``, and a list of all these files. The hash of the list is recorded in the
    ledger.

    Parameters
    ----------
    folder
        The folder of the challenge.
    out
        Output folder.
    existing
        What to do with other results in `out`.

    Raises
    ------
    CaseError
        If no attempt has been scored yet.
    FormatError
        If the ledger, a score or a frozen input was changed.
    SaveConflictError
        If `out` contains other results.
    """
    opened = read_challenge(folder)
    ledger = read_ledger(opened.attempts, opened.sha256)
    if ledger.problems:
        raise FormatError(
            f"expected the ledger of {folder} to be unchanged, but {ledger.problems[0]}: restore "
            "it from a copy, then verify the challenge to list all changes"
        )
    require_inputs(opened)
    ranking = make_ranking(opened, ledger, out)
    parameters = (("challenge", opened.challenge.name), ("sha256", opened.sha256))
    claim_folder(out, "challenge rank", parameters, existing, (folder,))
    overwrite = existing is not Existing.REFUSE
    if ranking.summary is not None and ranking.read is not None:
        write_ranking(ranking.summary, ranking.read, overwrite=overwrite)
    if ranking.responses is not None and ranking.responses.ranking is not None:
        write_responses(ranking.responses.ranking, out, overwrite=overwrite)
    pages = challenge_pages(ranking)
    write_pages(pages, out, overwrite=overwrite)
    write_leaderboard(ranking.board, out, overwrite=overwrite)
    _record_files(ranking, tuple(pages), opened, out)
    report_progress(1, 1, "Finished")
    return replace(ranking, ledger=read_ledger(opened.attempts, opened.sha256))


def _record_files(
    ranking: ChallengeRanking, pages: tuple[str, ...], opened: OpenChallenge, out: Path
) -> None:
    """List the written files with their hashes, and record the hash of the list in the ledger."""
    names = [RUN_FILE, BOARD_FILE, *pages]
    names += DATA_FILES if ranking.summary is not None else ()
    has_responses = ranking.responses is not None and ranking.responses.ranking is not None
    names += [RESPONSE_RANKS] if has_responses else []
    for name in {*DATA_FILES, RESPONSE_RANKS} - set(names):  # of an earlier leaderboard
        try:
            (out / name).unlink(missing_ok=True)
        except OSError as error:
            raise SaveError(
                f"cannot remove {out / name}, a file of an earlier leaderboard "
                f"({error.strerror}): remove it yourself"
            ) from error
    digest = write_file_list(out, names, ranking.board.place)
    with LedgerWriter(opened.attempts, opened.sha256) as writer:
        writer.record_board(digest)
