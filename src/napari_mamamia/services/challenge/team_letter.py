"""What goes back to a team: the table of what was wrong, and the end of its program's log.

Neither tells which cases there are: ids are numbered, and what looks like a secret is taken out.
"""

import re
from collections.abc import Iterable, Sequence
from io import StringIO
from pathlib import Path
from typing import Final

from napari_mamamia.core.records import CaseFailure
from napari_mamamia.io.files.csv_text import write_csv
from napari_mamamia.io.files.save import write_text_atomically
from napari_mamamia.segmentation.submission.external import printable

FOR_TEAM: Final = "for_team"
LOG_TAIL: Final = "log_tail.txt"
CONTRACT: Final = "contract.csv"
_REMOVED: Final = "[removed]"
_LONGEST: Final = 500
_SECRETS: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"-----BEGIN [^-]*PRIVATE KEY-----.*",
        r"\b[a-z][a-z0-9+.\-]*://\S*",
        r"\b(?:bearer|basic)\s+\S+",
        r"[\w\-]*(?:passw(?:or)?d|secret|token|api[_\-]?key|credential|auth)[\w\-]*"
        r"[\"']?\s*[=:]\s*(?:\"[^\"]*\"|'[^']*'|\S+)",
        r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",
        r"\b(?:gh[pousr]|glpat|hf|sk|xox[a-z])[_\-][A-Za-z0-9_\-]{10,}",
        r"\b[\w.+\-]+@[\w\-]+(?:\.[\w\-]+)+\b",
        r"(?<![\w/])(?:/(?:home|root|mnt|media|data|Users|srv|tmp|var)/|[A-Z]:\\)\S*",
        r"\b(?=[A-Za-z0-9+/_\-]*[0-9])[A-Za-z0-9+/_\-]{32,}={0,2}",
    )
)
"""What is taken out of a log: keys, addresses with or without a password, headers of requests,
assignments to names that say secret, tokens of known makers, e-mail addresses, paths of the
computer, and any long word with digits."""


def tail_of_log(text: str, case_ids: Iterable[str], n_lines: int) -> str:
    r"""Return the last lines of a log without ids of cases and secrets.

    Examples
    --------
    >>> tail_of_log("start\nDUKE_001 failed: password=hunter2\n", ("DUKE_001",), 1)
    '[case] failed: [removed]\n'
    """
    lines = [printable(line, 10**6) for line in text.splitlines()]
    ids = sorted(filter(None, case_ids), key=len, reverse=True)
    case = re.compile("|".join(map(re.escape, ids)), re.IGNORECASE) if ids else None
    tail = []
    # Looked for in all lines, so that a key of several lines is out of the last ones too.
    for line in _without_key_blocks(lines)[-n_lines:] if n_lines else ():
        clean = line if case is None else case.sub("[case]", line)
        for secret in _SECRETS:
            clean = secret.sub(_REMOVED, clean)
        tail.append(clean[:_LONGEST])
    return "".join(f"{line}\n" for line in tail)


def write_letter(
    folder: Path,
    log: str,
    breaches: Sequence[CaseFailure],
    case_ids: Sequence[str],
    n_lines: int,
) -> None:
    """Write ``for_team/contract.csv`` and, of a program, ``for_team/log_tail.txt`` anew.

    Raises
    ------
    SaveError
        If the system refuses to write.
    """
    target = folder / FOR_TEAM
    numbers = {breach.case_id: number for number, breach in enumerate(breaches, start=1)}
    rows = [
        (f"case {numbers[breach.case_id]}", tail_of_log(breach.reason, case_ids, 1).strip())
        for breach in breaches
    ]
    write_contract(target / CONTRACT, rows)
    if tail := tail_of_log(log, case_ids, n_lines):
        write_text_atomically(target / LOG_TAIL, tail, overwrite=True)


def write_contract(path: Path, rows: Iterable[tuple[str, str]]) -> None:
    """Write the table of what was wrong, anew: case, problem."""
    text = StringIO()
    write_csv([("case", "problem"), *rows], text)
    write_text_atomically(path, text.getvalue(), overwrite=True)


def _without_key_blocks(lines: Sequence[str]) -> list[str]:
    clean = []
    is_inside = False
    for line in lines:
        is_inside = is_inside or ("-----BEGIN" in line and "KEY" in line)
        clean.append(_REMOVED if is_inside else line)
        if "-----END" in line:
            is_inside = False
    return clean
