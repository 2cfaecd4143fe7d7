"""The JSON file that a site shares: metrics without images, masks or case ids."""

import hashlib
import hmac
import os
import secrets
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from napari_mamamia.core.errors import FormatError, SaveConflictError
from napari_mamamia.core.program.system import open_own
from napari_mamamia.io.files.file_names import case_key
from napari_mamamia.io.files.foreign import open_plain, reads
from napari_mamamia.io.files.json_text import read_json
from napari_mamamia.io.files.record_codec import RecordCodec
from napari_mamamia.io.files.save import saving
from napari_mamamia.io.tables.tables import write_json

SCHEMA: Final = 1
_KEY_BYTES: Final = 32
_CODE_DIGITS: Final = 32


@dataclass(frozen=True, slots=True)
class SiteModel:
    """A model that was evaluated at the site, with its digest and its unusable cases."""

    name: str
    digest: str
    n_unusable: int = 0


@dataclass(frozen=True, slots=True)
class SiteNumber:
    """A model's metric over a group of cases (`variable` and `group` are "" for all cases).

    `mean_rank` is the model's mean rank among the site's models; it exists only for all cases.
    """

    model: str
    metric: str
    n: int
    mean: float
    sd: float
    q25: float
    median: float
    q75: float
    variable: str = ""
    group: str = ""
    mean_rank: float = float("nan")


@dataclass(frozen=True, slots=True)
class SiteRow:
    """A model's metrics for one case, which is identified by a code, in the file's metric order."""

    code: str
    model: str
    values: tuple[float, ...]
    is_usable: bool = True


@dataclass(frozen=True, slots=True)
class SiteFile:
    """Everything that a site shares.

    Parameters
    ----------
    site
        Name of the site.
    profile, profile_version, definitions
        The profile that defines how every number is computed, and the SHA-256 of all definitions.
    rule
        The rule by which a case without a usable prediction is scored.
    share
        "cases" if `rows` are shared, otherwise "aggregates".
    metrics, models, numbers, rows
        The metrics, the models, and their values over groups and for each case.
    n_cases
        Number of cases at the site.
    withheld
        Groups whose numbers are not shared, with reasons.
    """

    site: str
    profile: str
    profile_version: int
    definitions: str
    rule: str
    share: str
    n_cases: int
    metrics: tuple[str, ...]
    models: tuple[SiteModel, ...]
    numbers: tuple[SiteNumber, ...]
    rows: tuple[SiteRow, ...] = ()
    withheld: tuple[str, ...] = ()
    software: str = ""
    created: str = ""
    schema: int = SCHEMA

    def __post_init__(self) -> None:
        names = [model.name for model in self.models]
        if not names or len(set(names)) < len(names) or not self.site.strip():
            raise ValueError(
                "expected a named site with at least one model, and no model listed twice"
            )
        strangers = {number.model for number in self.numbers} | {row.model for row in self.rows}
        strangers -= set(names)
        if strangers or {number.metric for number in self.numbers} - set(self.metrics):
            raise ValueError(
                "expected numbers only for the site's own models and metrics, but found others"
            )
        if any(len(row.values) != len(self.metrics) for row in self.rows):
            raise ValueError(
                "expected a value for each metric in each row, but the numbers of values differ"
            )


_REMEDY: Final = "ask the site for the original file that it wrote"
_SITE: Final = RecordCodec(SiteFile, _REMEDY)


def write_site_file(site: SiteFile, path: Path, *, overwrite: bool = False) -> None:
    """Write the file that a site shares; the errors are those of `write_json`."""
    write_json(_SITE.plain(site), path, overwrite=overwrite)


@reads("a site's file", _REMEDY)
def read_site_file(path: Path) -> SiteFile:
    """Read a file that a site shared.

    Raises
    ------
    FormatError
        If the file cannot be read, or has a different schema.
    """
    site = _SITE.record(read_json(path), path)
    if site.schema != SCHEMA:
        raise FormatError(
            f"expected a site's file of schema {SCHEMA} in {path}, but found schema {site.schema}: "
            "use the version of this software that wrote it"
        )
    return site


@reads("a key", "choose a different file; a new key gives different codes")
def site_key(path: Path) -> bytes:
    """Return the site's secret key, which stays at the site; create the key file if missing.

    Raises
    ------
    FormatError
        If the file is not a key.
    SaveError
        If the file cannot be created.
    """
    with suppress(SaveConflictError), saving(path) as temporary:
        handle = open_own(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with os.fdopen(handle, "wb") as stream:
            stream.write(secrets.token_bytes(_KEY_BYTES))
    with open_plain(path) as stream:
        key = stream.read(_KEY_BYTES + 1)
    if len(key) != _KEY_BYTES:
        raise FormatError(
            f"expected a key of {_KEY_BYTES} bytes in {path}, but found a different file: choose "
            "a new name"
        )
    return key


def case_code(case_id: str, key: bytes) -> str:
    """Return the code that replaces a case id: 128 bits of HMAC-SHA-256 with the site's key.

    Parameters
    ----------
    case_id
        The case; letter case is ignored.
    key
        The site's key.
    """
    return hmac.new(key, case_key(case_id).encode(), hashlib.sha256).hexdigest()[:_CODE_DIGITS]
