"""The data files of a published web site: a leaderboard with its schema, and team metrics."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from napari_mamamia.io.files.record_codec import RecordCodec
from napari_mamamia.io.tables.tables import write_json

SITE_FILE: Final = "leaderboard.json"
SCHEMA_FILE: Final = "leaderboard.schema.json"
_OTHER: Final = re.compile(r"[^\w\-]+")


@dataclass(frozen=True, slots=True)
class PublicNumber:
    """A mean over the cases with its 95 % interval and, for metrics of single cases, the SD.

    `n` is the number of cases behind a measure of a definition. If it is below the smallest group
    of the site, there is no value.
    """

    name: str
    value: float | None
    low: float | None = None
    high: float | None = None
    sd: float | None = None
    n: int | None = None


@dataclass(frozen=True, slots=True)
class PublicRow:
    """A team of a published task.

    Parameters
    ----------
    team, link
        The team and its web page ("" for none).
    rank, rank_low, rank_high, first
        The rank (None if not ranked), the 95 % interval of the rank over the resamples, and the
        fraction of resamples in which no team is better.
    submitted
        Date of the displayed attempt.
    n, n_unusable
        Number of cases that count, and number of cases without a usable answer.
    is_as_given
        Whether the team computed the scores itself.
    is_better_than_chance
        Whether responses are better than chance; None for masks.
    is_alarming
        Whether masks are copies of references.
    gated_rank
        The rank by the gated score; None if there is no gate.
    numbers
        The published numbers.
    public_score, private_score, public_rank, private_rank
        Score and rank on the public and private parts; None if there is no split.
    remark
        Which measures have no value for the team, and why; "" if all have one.
    coverage
        A note if the coverage of the 95 % intervals of means is low or unknown, otherwise "".
    """

    team: str
    link: str
    rank: int | None
    rank_low: float | None
    rank_high: float | None
    first: float | None
    submitted: str
    n: int
    n_unusable: int
    is_as_given: bool
    is_better_than_chance: bool | None
    is_alarming: bool
    gated_rank: int | None
    numbers: tuple[PublicNumber, ...]
    public_score: float | None = None
    private_score: float | None = None
    public_rank: int | None = None
    private_rank: int | None = None
    coverage: str = ""
    remark: str = ""


@dataclass(frozen=True, slots=True)
class PublicTask:
    """A task on a published site; `parts` holds the sizes of the public and private parts.

    `title` and `source` are those of its definition, or "" for the MAMA-MIA tasks. `notes` are the
    definition's notes, and say which numbers are not published.
    """

    challenge: str
    task: str
    title: str
    profile: str
    ranked_by: str
    n_cases: int
    rule: str
    n_resamples: int
    parts: tuple[int, ...]
    rows: tuple[PublicRow, ...]
    source: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Site:
    """The content of a published site; `overall` lists teams with mean rank and rank over tasks."""

    title: str
    tasks: tuple[PublicTask, ...]
    overall: tuple[tuple[str, float, int], ...]
    minimum_group: int
    software: str
    created: str


_SITE: Final = RecordCodec(Site, "publish the leaderboard again")


def write_site_files(site: Site, folder: Path) -> None:
    """Write all data files of a published site to an empty folder; errors as in `write_json`."""
    write_json({"$schema": SCHEMA_FILE, **_SITE.plain(site)}, folder / SITE_FILE)
    write_json(site_schema(), folder / SCHEMA_FILE)
    names: set[str] = set()
    for task in site.tasks:
        for row in task.rows:
            stem = _OTHER.sub("_", row.team)
            while stem.casefold() in names:
                stem += "_"
            names.add(stem.casefold())
            if row.numbers:
                write_json(grand_challenge_metrics(row), folder / "metrics" / task.task / stem
                           / "metrics.json")  # fmt: skip
        names.clear()


def grand_challenge_metrics(row: PublicRow) -> dict[str, Any]:
    """Return the content of a team's ``metrics.json`` for grand-challenge, without single cases."""
    aggregates = {}
    for number in row.numbers:
        key = _OTHER.sub("_", number.name.lower())
        aggregates[key] = {"mean": number.value, "std": number.sd, "ci_low": number.low,
                           "ci_high": number.high}  # fmt: skip
    return {"aggregates": aggregates}


def site_schema() -> dict[str, Any]:
    """Return the JSON schema of ``leaderboard.json``."""
    number = {"type": ["number", "null"]}
    whole = {"type": ["integer", "null"], "minimum": 1}
    text, flag = {"type": "string"}, {"type": "boolean"}
    count = {"type": "integer", "minimum": 0}
    one_number = _object({"name": text, "value": number, "low": number, "high": number,
                          "sd": number, "n": {"type": ["integer", "null"]}})  # fmt: skip
    row = _object({
        "team": text, "link": text, "rank": whole, "rank_low": number, "rank_high": number,
        "first": number, "submitted": text, "n": count, "n_unusable": count, "is_as_given": flag,
        "is_better_than_chance": {"type": ["boolean", "null"]}, "is_alarming": flag,
        "gated_rank": whole, "numbers": {"type": "array", "items": one_number},
        "public_score": number, "private_score": number, "public_rank": whole,
        "private_rank": whole, "coverage": text, "remark": text,
    })  # fmt: skip
    task = _object({
        "challenge": text, "task": text, "title": text, "profile": text,
        "ranked_by": text, "n_cases": count, "rule": text, "n_resamples": count,
        "parts": {"type": "array", "items": count}, "rows": {"type": "array", "items": row},
        "source": text, "notes": {"type": "array", "items": text},
    })  # fmt: skip
    entry = {"type": "array", "prefixItems": [text, {"type": "number"}, {"type": "integer"}]}
    content = _object({
        "$schema": text, "title": text, "tasks": {"type": "array", "items": task},
        "overall": {"type": "array", "items": entry}, "minimum_group": count, "software": text,
        "created": text,
    })  # fmt: skip
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **content}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties),
            "additionalProperties": False}  # fmt: skip
