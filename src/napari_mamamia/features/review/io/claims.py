"""Claims of cases: exclusively created files that avoid duplicate work."""

import json
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from napari_mamamia.core.errors import SaveConflictError
from napari_mamamia.io.files.foreign import reads
from napari_mamamia.io.files.json_text import read_json
from napari_mamamia.io.files.own_paths import new_path_in
from napari_mamamia.io.files.save import write_text_atomically
from napari_mamamia.io.workspace.workspace import file_name

CLAIMS: Final = "claims"
_MOST_BYTES: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class Claim:
    """A visible claim and its holder, without a guarantee of exclusivity.

    `age_s` is the time since the last renewal, by the clock of the share.
    """

    place: str
    number: int
    reader: str
    host: str
    session: str
    age_s: float = 0.0
    is_released: bool = False


def take_claim(folder: Path, claim: Claim, lease_s: float) -> Claim:
    """Create a claim, or return another holder's claim whose lease has not expired.

    Raises
    ------
    SaveError, FormatError
        If the folder cannot be read or written.
    """
    latest = _find_newest(folder, claim.place)
    if latest is not None:
        if _is_same_holder(latest, claim):
            mine = replace(claim, number=latest.number)
            _write_claim(folder, mine, overwrite=True)
            return mine
        # A claim left by a crash of the same session on this computer is taken over.
        is_earlier_self = (latest.reader, latest.host) == (claim.reader, claim.host)
        if not (latest.is_released or is_earlier_self) and latest.age_s <= lease_s:
            return latest
        claim = replace(claim, number=latest.number + 1)
    try:
        _write_claim(folder, claim, overwrite=False)
    except SaveConflictError:
        return _find_newest(folder, claim.place) or claim
    return claim


def renew_claim(folder: Path, claim: Claim) -> bool:
    """Renew a claim of this session; return False if somebody else has taken it meanwhile.

    Raises
    ------
    SaveError, FormatError
        If the folder cannot be read or written.
    """
    latest = _find_newest(folder, claim.place)
    if latest is not None and not _is_same_holder(latest, claim):
        return False
    _write_claim(folder, claim, overwrite=True)
    return True


def newest_claims(folder: Path) -> tuple[Claim, ...]:
    """Return the newest unreleased claim of each case or reading."""
    newest: dict[str, Path] = {}
    for path in sorted(folder.glob("*"), key=_number_of):
        if _number_of(path):
            newest[path.name.rpartition(".")[0]] = path
    now = _read_clock_of(folder) if newest else 0.0
    claims = (_read_claim(path, now) for _, path in sorted(newest.items()))
    return tuple(claim for claim in claims if not claim.is_released)


def _number_of(path: Path) -> int:
    number = path.name.rpartition(".")[2]
    return int(number) if number.isdecimal() and len(number) < 10 else 0


def _find_newest(folder: Path, place: str) -> Claim | None:
    paths = folder.glob(f"{file_name(place)}.*")
    path = max(paths, key=_number_of, default=None)
    if path is None or not _number_of(path):
        return None
    return _read_claim(path, _read_clock_of(folder))


def _write_claim(folder: Path, claim: Claim, *, overwrite: bool) -> None:
    content = {
        "reader": claim.reader,
        "host": claim.host,
        "session": claim.session,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "is_released": claim.is_released,
    }
    path = folder / f"{file_name(claim.place)}.{claim.number}"
    write_text_atomically(path, json.dumps(content), overwrite=overwrite)


def _read_clock_of(folder: Path) -> float:
    """Return the current time by the share's clock, which also dates the claims.

    This computer's clock is used if the share accepts no file.
    """
    probe = new_path_in(folder)
    try:
        with probe.open("xb"):
            return probe.stat().st_mtime
    except OSError:
        return time.time()
    finally:
        with suppress(OSError):
            probe.unlink(missing_ok=True)


@reads("a claim of a review study", "delete the file: it only shows who is at work")
def _read_claim(path: Path, now: float) -> Claim:
    place, _, number = path.name.rpartition(".")
    age_s = now - path.stat().st_mtime
    try:
        content = read_json(path, _MOST_BYTES)
    except ValueError:
        content = {}  # left empty by a crash; such a claim counts until its lease expires
    if not isinstance(content, dict):
        content = {}
    reader, host, session = (str(content.get(one, "")) for one in ("reader", "host", "session"))
    is_released = content.get("is_released") is True
    return Claim(place, int(number), reader, host, session, age_s, is_released)


def _is_same_holder(a: Claim, b: Claim) -> bool:
    return (a.reader, a.host, a.session) == (b.reader, b.host, b.session)
