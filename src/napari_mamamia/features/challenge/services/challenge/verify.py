"""Verify a challenge: hashes, the ledger's hash chain, and recomputed scores and pages."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from itertools import zip_longest
from math import isclose, isnan
from pathlib import Path
from typing import Any, Final

from napari_mamamia.core.errors import FormatError, MamamiaError
from napari_mamamia.core.progress import report_progress
from napari_mamamia.core.records import CaseScore
from napari_mamamia.features.challenge.io.challenge_file import (
    RESULTS,
    FrozenFile,
    OpenChallenge,
    find_changes,
    read_challenge,
)
from napari_mamamia.features.challenge.io.definition import ChallengeDefinition
from napari_mamamia.features.challenge.io.file_list import (
    LIST_FILE,
    find_differences,
    read_file_list,
)
from napari_mamamia.features.challenge.io.handed_in import (
    MANIFEST,
    SEALED,
    Contents,
    SubmissionKind,
    digest_of,
    find_handed_masks,
    find_submissions,
    inner_folder,
    look_inside,
    read_manifest,
)
from napari_mamamia.features.challenge.io.leaderboard_file import (
    BOARD_FILE,
    Leaderboard,
    read_leaderboard,
    read_page,
)
from napari_mamamia.features.challenge.io.ledger import Attempt, AttemptOutcome, Ledger, read_ledger
from napari_mamamia.features.challenge.services.challenge.answers import (
    find_changed_code,
    measure_answers,
    read_definitions,
    read_values,
    values_name,
)
from napari_mamamia.features.challenge.services.challenge.attempt import (
    RESPONSE_TABLE,
    RESPONSES,
    RUN,
    SCORES,
    ProgramSettings,
    find_changed_inputs,
    measure_team_masks,
    pair_masks,
    read_given_scores,
    read_responses,
    response_cells,
    score_settings,
)
from napari_mamamia.features.challenge.services.challenge.board_pages import challenge_pages
from napari_mamamia.features.challenge.services.challenge.ranking import (
    RESPONSE_RANKS,
    ChallengeRanking,
    make_ranking,
    responses_content,
)
from napari_mamamia.features.challenge.services.rank.output import rank_content
from napari_mamamia.features.challenge.services.rank.pages import find_stale
from napari_mamamia.features.challenge.services.submission.run_submission import TABLE
from napari_mamamia.io.data_set.rank_files import RANK_FILE
from napari_mamamia.io.data_set.score_files import read_response_table
from napari_mamamia.io.files.checksums import sha256_of
from napari_mamamia.io.files.foreign import reads
from napari_mamamia.io.files.json_text import read_json
from napari_mamamia.io.tables.tables import plain_content, read_case_scores
from napari_mamamia.scoring.report.drawing import Draw, Drawing, Drawn, draw_here
from napari_mamamia.scoring.report.page import render_page
from napari_mamamia.segmentation.sandbox.outputs import MASKS
from napari_mamamia.services.score.output import SCORE_TABLE
from napari_mamamia.services.score.score import score_pairs

_DRAWING: Final = re.compile(r"<svg.*?</svg>\s*|data:image/png;base64,[^\"]*", re.DOTALL)
_SHOWN: Final = 90


def find_changed_pages(
    board: Leaderboard, again: ChallengeRanking, folder: Path, *, is_quick: bool = False
) -> Iterator[str]:
    """Yield each page that differs from a regenerated one, with the first differing line.

    With `is_quick`, figures are not drawn again, and only texts and tables are compared.

    Parameters
    ----------
    board
        The leaderboard.
    again
        The recomputed ranking.
    folder
        Folder of the leaderboard.
    is_quick
        Whether to compare only texts and tables.
    """
    # Recording the board adds a line to the ledger, so its heads are those of the ranking.
    as_written = replace(
        again.board, created=board.created, software=board.software, heads=board.heads
    )
    pages = challenge_pages(replace(again, board=as_written))
    draw: Draw = _draw_nothing if is_quick else draw_here
    for number, (name, page) in enumerate(pages.items()):
        report_progress(number, len(pages), f"Proving {name}")
        try:
            there = read_page(folder / name)
        except MamamiaError as error:
            yield str(error)
            continue
        here = render_page(page, draw)
        if is_quick:
            there, here = (_DRAWING.sub("", text) for text in (there, here))
        difference = _find_line(there, here)
        if difference:
            yield f"{name}: {difference}"
    for path in find_stale(pages, folder):
        yield f"{path.relative_to(folder).as_posix()} belongs to no team of this leaderboard"


def _draw_nothing(_: Drawing) -> Drawn:
    return Drawn(b"", "")


def _find_line(there: str, here: str) -> str:
    """Return the first line in which two texts differ, or "" if they are equal."""
    if there == here:
        return ""
    lines = zip_longest(there.split("\n"), here.split("\n"), fillvalue="")
    differing = ((number, pair) for number, pair in enumerate(lines, start=1) if pair[0] != pair[1])
    number, (then, now) = next(differing, (0, ("", "")))
    if not number:
        return "line breaks at its end were added or removed"
    start = next((index for index, (a, b) in enumerate(zip_longest(then, now)) if a != b), 0)
    first = max(0, start - _SHOWN // 3)
    return (
        f"line {number} has {then[first : first + _SHOWN]!r}, but regenerated it has "
        f"{now[first : first + _SHOWN]!r}"
    )


_TOLERANCE: Final = 1e-9
_MEASURED: Final = ("prediction_seconds", "peak_memory_bytes")
"""Columns with measurements that differ from run to run."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A file or number that changed, and a description of the change."""

    where: str
    text: str


def verify_challenge(path: Path, *, is_quick: bool = False) -> tuple[Difference, ...]:
    """Verify a challenge, or a leaderboard with its challenge, and return all differences.

    Parameters
    ----------
    path
        Folder of a challenge or of a leaderboard.
    is_quick
        Whether to compare only hashes, ranks and texts.

    Raises
    ------
    FormatError
        If `path` contains neither, or the leaderboard's challenge is not at the recorded path.
    """
    opened = _open_challenge(path)
    ledger = read_ledger(opened.attempts, opened.sha256)
    differences: list[Difference] = []
    if _is_board(path):
        differences = _verify_board(opened, ledger, path, is_quick=is_quick)
    return (*differences, *verify_folder(opened, ledger, is_quick=is_quick))


def list_unchecked(path: Path, *, is_quick: bool = False) -> tuple[str, ...]:
    """Return what `verify_challenge` does not check, and teams whose submission has changed.

    Parameters
    ----------
    path
        Folder of a challenge or of a leaderboard.
    is_quick
        Whether only hashes, ranks and texts are compared.

    Raises
    ------
    FormatError
        As in `verify_challenge`.
    """
    opened = _open_challenge(path)
    texts = [
        *_find_later(opened, path),
        "the teams' own folders in submissions; the sealed copies count",
        *_find_moved_on(opened, read_ledger(opened.attempts, opened.sha256)),
        "places.json, and results of refused, stopped or unfinished submissions",
    ]
    has_no_images = opened.images is None and opened.challenge.task is not None
    texts += ["images, because the challenge was created without them"] * has_no_images
    is_quick = is_quick or bool(find_changed_code(opened.challenge.code))
    return (*texts, *["scores and figures, which are not computed again"] * is_quick)


def _find_later(opened: OpenChallenge, path: Path) -> Iterator[str]:
    """Yield a text if the ledger has attempts after those of the leaderboard in a folder."""
    try:
        is_later = _is_board(path) and is_older(opened, read_leaderboard(path))
    except FormatError:  # `verify_challenge` reports it
        return
    if is_later:
        yield "attempts after this leaderboard, which is older: rank the challenge again"


def is_older(opened: OpenChallenge, board: Leaderboard) -> bool:
    """Return whether the ledger has attempts after those from which a leaderboard was computed.

    Parameters
    ----------
    opened
        The challenge.
    board
        The leaderboard.
    """
    then = read_ledger(opened.attempts, opened.sha256, board.heads)
    return then.attempts != read_ledger(opened.attempts, opened.sha256).attempts


def _is_board(path: Path) -> bool:
    return any((path / name).is_file() for name in (BOARD_FILE, LIST_FILE))


def _open_challenge(path: Path) -> OpenChallenge:
    """Open the challenge in a folder, or the challenge of the leaderboard in that folder."""
    if not _is_board(path):
        return read_challenge(path)
    try:
        place = read_leaderboard(path).place
    except FormatError:
        place = read_file_list(path).place
    return read_challenge(path / place)


def _verify_board(
    opened: OpenChallenge, ledger: Ledger, folder: Path, *, is_quick: bool
) -> list[Difference]:
    """Return differences in a leaderboard's files, and in its content when recomputed."""
    files = find_differences(folder)
    has_code = not find_changed_code(opened.challenge.code)
    if LIST_FILE not in files and sha256_of(folder / LIST_FILE) not in ledger.boards:
        files[LIST_FILE] = f"{LIST_FILE} is not the list that the ledger records"
    try:
        texts = _verify_content(opened, ledger, folder, is_quick=is_quick) if has_code else []
    except MamamiaError as error:
        texts = [str(error)]
    explained = [name for name in files if any(text.startswith(name) for text in texts)]
    texts += [text for name, text in files.items() if name not in explained]
    return [Difference("leaderboard", text) for text in texts]


def _verify_content(
    opened: OpenChallenge, ledger: Ledger, folder: Path, *, is_quick: bool
) -> list[str]:
    """Return differences between a leaderboard and one that is recomputed from its challenge."""
    board, texts = read_leaderboard(folder), []
    if board.sha256 != opened.sha256:
        texts.append("it was written for a different challenge.json")
    heads = [head for head in board.heads if head not in ledger.hashes]
    texts += [
        (f"the ledger no longer has the line {head[:16]}, from which this leaderboard was computed")
        for head in heads
    ]
    # The leaderboard stays valid when teams go on working: later attempts are not part of it.
    then = ledger if heads else read_ledger(opened.attempts, opened.sha256, board.heads)
    try:
        again = make_ranking(opened, then, folder)
    except MamamiaError as error:
        return [*texts, str(error)]
    texts += _compare_boards(board, again.board)
    if again.summary is not None and again.read is not None:
        content = plain_content(
            rank_content(again.summary.ranking, again.read, None, again.summary.overall)
        )
        texts += [
            f"{RANK_FILE}: {text}"
            for text in _compare_content(read_ranks(folder / RANK_FILE), content, "")
        ]
    if again.responses is not None and again.responses.ranking is not None:
        content = plain_content(responses_content(again.responses.ranking))
        texts += [
            f"{RESPONSE_RANKS}: {text}"
            for text in _compare_content(read_ranks(folder / RESPONSE_RANKS), content, "")
        ]
    if not texts:  # otherwise the pages differ for the same reason
        texts += find_changed_pages(board, again, folder, is_quick=is_quick)
    return texts


def _compare_boards(then: Leaderboard, now: Leaderboard) -> list[str]:
    texts = []
    for name in ("challenge", "profile", "rule", "ladder", "notes"):
        if getattr(then, name) != getattr(now, name):
            texts.append(f"{name}: {getattr(then, name)!r} there, {getattr(now, name)!r} now")
    there = {(board.task, row.team): row for board in then.boards for row in board.rows}
    here = {(board.task, row.team): row for board in now.boards for row in board.rows}
    for task, team in sorted(there.keys() | here.keys()):
        first, second = there.get((task, team)), here.get((task, team))
        if first is None or second is None:
            texts.append(f"{team} in {task}: {'only now' if first is None else 'no longer'} there")
            continue
        for field in fields(first):
            before, after = (plain_content(getattr(row, field.name)) for row in (first, second))
            if _compare_content(before, after, ""):
                texts.append(f"{team} in {task}: {field.name} was {before}, recomputed {after}")
    return texts


@reads("the ranks of a leaderboard", "make the leaderboard again with `mamamia challenge rank`")
def read_ranks(path: Path) -> Any:
    """Read a leaderboard's ``rank.json``, to compare it with recomputed ranks."""
    return read_json(path)


def _compare_content(then: Any, now: Any, where: str) -> list[str]:
    """Return the first three differences between two JSON values that exceed rounding."""
    if isinstance(then, dict) and isinstance(now, dict):
        names = sorted(map(str, then.keys() | now.keys()))
        inner = [_compare_content(then.get(n), now.get(n), f"{where}/{n}") for n in names]
        return [text for texts in inner for text in texts][:3]
    if isinstance(then, list | tuple) and isinstance(now, list | tuple) and len(then) == len(now):
        pairs = enumerate(zip(then, now, strict=True))
        inner = [_compare_content(a, b, f"{where}/{index}") for index, (a, b) in pairs]
        return [text for texts in inner for text in texts][:3]
    is_number = all(isinstance(value, int | float) for value in (then, now))
    if is_number and isclose(then, now, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE):
        return []
    return [] if then == now else [f"{where or 'value'}: {then} there, {now} now"]


def verify_folder(
    opened: OpenChallenge, ledger: Ledger, *, is_quick: bool = False
) -> tuple[Difference, ...]:
    """Return differences between a challenge's folder and its frozen and recorded state.

    With `is_quick`, or if the code of a measure has changed, only hashes are compared; otherwise
    every scored case is scored again from the sealed copies.

    Parameters
    ----------
    opened
        The challenge.
    ledger
        The ledger of the challenge.
    is_quick
        Whether to compare only hashes.
    """
    differences = [
        Difference("challenge", text)
        for text in find_changed_inputs(opened, with_images=opened.images is not None)
    ]
    differences += [Difference("ledger", problem) for problem in ledger.problems]
    is_quick = is_quick or bool(find_changed_code(opened.challenge.code))
    differences += _find_unnoted(opened, ledger)
    scored = [attempt for attempt in ledger.attempts if attempt.outcome is AttemptOutcome.SCORED]
    for number, attempt in enumerate(scored):
        report_progress(number, len(scored), f"Proving {attempt.team}")
        where = f"{attempt.team}, attempt {attempt.number}"
        try:
            texts = _verify_attempt(opened, attempt, is_quick=is_quick)
            differences += [Difference(where, text) for text in texts]
        except MamamiaError as error:
            differences.append(Difference(where, str(error)))
    report_progress(1, 1, "Finished")
    return tuple(differences)


def _find_unnoted(opened: OpenChallenge, ledger: Ledger) -> Iterator[Difference]:
    """Yield results that do not belong to any attempt in the ledger."""
    noted = {(attempt.team, attempt.digest[:16]) for attempt in ledger.attempts}
    root = opened.folder / RESULTS
    for table in sorted(root.glob(f"*/*/{SCORES}/{SCORE_TABLE}")) if root.is_dir() else ():
        folder = table.parents[1]
        if (folder.parent.name, folder.name) not in noted:
            text = (
                f"{folder.relative_to(opened.folder).as_posix()} holds scores that belong to "
                "no attempt"
            )
            yield Difference(folder.parent.name, text)


def _find_moved_on(opened: OpenChallenge, ledger: Ledger) -> Iterator[str]:
    """Yield teams whose submission was changed, removed or added since the last run."""
    teams = dict.fromkeys(attempt.team for attempt in ledger.attempts)
    there = {team.team: team.path for team in find_submissions(opened.submissions).teams}
    for team in teams:
        last = ledger.of_team(team)[-1]
        if team not in there:
            yield f"{team}: its submission was removed from the folder"
            continue
        try:
            digest = digest_of(there[team], opened.challenge.limits)
        except MamamiaError as error:
            yield f"{team}: {error}"
            continue
        if digest != last.digest:
            yield f"{team}: {there[team].name} was changed after it was sealed"
    for team in sorted(set(there) - set(teams)):
        yield f"{team}: its submission has not been run yet"


def _verify_attempt(opened: OpenChallenge, attempt: Attempt, *, is_quick: bool) -> list[str]:
    folder = opened.results(attempt.team, attempt.digest)
    if not folder.is_dir():
        return ["its results are missing"]
    noted = {name: FrozenFile(name, digest) for name, digest in attempt.files}
    problems = find_changes(folder, noted)
    texts = list(problems.values())
    manifest = read_manifest(folder)
    if manifest.sha256 != attempt.digest:
        texts.append("its manifest belongs to another submission")
    sealed = folder / SEALED
    files = {file.name: file for file in manifest.files}
    texts += [f"sealed copy: {problem}" for problem in find_changes(sealed, files).values()]
    there = {path.relative_to(sealed).as_posix() for path in _walk_files(sealed)}
    texts += [f"sealed copy: {name} was added" for name in sorted(there - set(files))]
    if LIST_FILE not in problems:
        changes = find_differences(folder, (SEALED, MANIFEST))
        texts += [text for name, text in changes.items() if name not in problems]
    return texts if is_quick else texts + _score_again(opened, folder, sealed, attempt)


def _walk_files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir()]


def _score_again(opened: OpenChallenge, folder: Path, sealed: Path, attempt: Attempt) -> list[str]:
    names = {name for name, _ in attempt.files}
    texts = []
    for definition in read_definitions(opened):
        if values_name(definition) in names:
            texts += _measure_again(opened, folder, sealed, attempt, definition)
    if opened.challenge.task is None:
        return texts
    contents = look_inside(sealed)
    if f"{SCORES}/{SCORE_TABLE}" in names:
        rows = _compute_rows(opened, folder, contents, attempt.team)
        texts += list(_compare_rows(rows, read_case_scores(folder / SCORES / SCORE_TABLE)))
    if f"{RESPONSES}/{RESPONSE_TABLE}" in names:
        is_program = contents.kind is SubmissionKind.PROGRAM
        table = folder / RUN / TABLE if is_program else contents.responses
        if table is None:
            raise FormatError(
                f"expected a table of responses in {folder}, but found none: restore it"
            )
        now = response_cells(read_responses(opened, table).rows)
        then = response_cells(read_response_table(folder / RESPONSES / RESPONSE_TABLE).rows)
        if now != then:
            texts.append("its responses differ from the scored ones")
    return texts


def _measure_again(
    opened: OpenChallenge,
    folder: Path,
    sealed: Path,
    attempt: Attempt,
    definition: ChallengeDefinition,
) -> list[str]:
    """Measure an attempt again, and return the measures whose values differ."""
    then = read_values(folder / values_name(definition))
    if definition.has_own_files:
        now = measure_answers(opened, definition, inner_folder(sealed))
    else:
        is_program = attempt.kind == SubmissionKind.PROGRAM
        masks = folder / RUN / MASKS if is_program else look_inside(sealed).folder
        now, _ = measure_team_masks(opened, masks, ProgramSettings())
    return [
        f"{before.id} differs from the recorded values"
        for before, after in zip(then.measures, now.measures, strict=True)
        if _compare_content(plain_content(before), plain_content(after), "")
    ]


def _compute_rows(
    opened: OpenChallenge, folder: Path, contents: Contents, team: str
) -> tuple[CaseScore, ...]:
    if contents.kind is SubmissionKind.SCORES and contents.scores is not None:
        return read_given_scores(opened, contents.scores)
    is_program = contents.kind is SubmissionKind.PROGRAM
    masks = folder / RUN / MASKS if is_program else contents.folder
    handed, _ = find_handed_masks(masks, opened.challenge.case_ids)
    pairs = pair_masks(opened, handed, opened.challenge.case_ids)
    plain = replace(score_settings(opened), clinical=None, n_resamples=0)
    return score_pairs(team, pairs, plain, None).model.rows


def _compare_rows(rows: tuple[CaseScore, ...], then: tuple[CaseScore, ...]) -> Iterator[str]:
    by_id = {row.case_id: row for row in then}
    names = [
        field.name
        for field in fields(CaseScore)
        if field.type is float and field.name not in _MEASURED
    ]
    for row in rows:
        earlier = by_id.get(row.case_id)
        if earlier is None:
            yield f"{row.case_id} has no row among its scores"
            continue
        if row.status is not earlier.status:
            yield f"{row.case_id}: {earlier.status.value} then, {row.status.value} now"
        for name in names:
            before, now = getattr(earlier, name), getattr(row, name)
            if not (isnan(before) and isnan(now)) and not isclose(
                before, now, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE
            ):
                yield f"{row.case_id}: {name} was {before:.6g}, recomputed {now:.6g}"
    for case_id in sorted(set(by_id) - {row.case_id for row in rows}):
        yield f"{case_id} is not a case of the challenge, but has a row among its scores"
