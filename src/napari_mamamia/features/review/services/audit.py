"""Write the audit trail of a study: every event in order, as a table and as a page."""

import html
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from napari_mamamia.core.form import Form
from napari_mamamia.core.provenance import now_utc, software_version
from napari_mamamia.features.review.io.store import EventStore
from napari_mamamia.features.review.rules.form_words import word_answers, word_reason
from napari_mamamia.features.review.rules.replay import ReviewState
from napari_mamamia.features.review.services.look import read_whole, replay_reading
from napari_mamamia.features.review.services.pseudonymizer import NO_PSEUDONYMS, Pseudonymizer
from napari_mamamia.io.files.csv_text import write_csv
from napari_mamamia.io.files.save import saving, write_text_atomically
from napari_mamamia.io.workspace.event_order import Event, merge_events

AUDIT: Final = "audit"


def save_audit(
    store: EventStore,
    folder: Path,
    pseudonymizer: Pseudonymizer = NO_PSEUDONYMS,
    form: Form | None = None,
) -> tuple[Path, Path]:
    """Write every event in order, as CSV and as one HTML page; return both paths.

    The page contains answers in the wording of `form`, the table contains ids.

    Errors are those of `read_whole`, and `SaveError` if the system refuses to write.
    """
    reading = read_whole(store)
    state = replay_reading(store, reading)
    events = merge_events(reading.chains.values())
    why = {one.event.hash: one.why for one in (*state.refused, *state.waiting)}
    head = ("time", "reader", "name", "computer", "case_id", "act", "what", "counts", "hash")
    rows, told = (
        [
            tuple(
                map(pseudonymizer.cover, _audit_row(state, event, why.get(event.hash, ""), words))
            )
            for event in events
        ]
        for words in (None, form)
    )
    table, page = folder / f"{AUDIT}.csv", folder / f"{AUDIT}.html"
    with (
        saving(table, overwrite=True) as temporary,
        temporary.open("w", encoding="utf-8", newline="") as stream,
    ):
        write_csv((head, *rows), stream, "\r\n")
    lines = "".join(f"<tr>{''.join(map(_make_cell, row))}</tr>\n" for row in told)
    names = "".join(f"<th>{name}</th>" for name in head)
    title = html.escape(f"Audit trail: {store.study.plan.name}")
    text = (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
        "<style>body{font:14px sans-serif}table{border-collapse:collapse}"
        "td,th{border:1px solid #999;padding:2px 6px;text-align:left;vertical-align:top;"
        "overflow-wrap:anywhere}</style>"
        f"<h1>{title}</h1><p>Study {html.escape(store.study.study_id)}, study.json SHA-256 "
        f"{store.origin}; {len(rows)} events; {now_utc()}; {html.escape(software_version())}. "
        "Research use.</p>"
        f"<table><tr>{names}</tr>\n{lines}</table></html>\n"
    )
    write_text_atomically(page, text, overwrite=True)
    return table, page


def _audit_row(state: ReviewState, event: Event, why: str, form: Form | None) -> tuple[str, ...]:
    body = dict(event.body) if form is None else _word_body(form, event.body)
    act, key = str(body.pop("act", "")), str(body.pop("case", ""))
    cases = {case.key: case.case_id for case in state.study.cases}
    what = "; ".join(f"{name}: {value}" for name, value in sorted(body.items()))
    is_known = any(reader.reader_id == event.reader for reader in state.study.readers)
    name = state.name(event.reader) if is_known else ""
    counts = why or "yes"
    case_id = cases.get(key, key)
    return (event.at, event.reader, name, event.host, case_id, act, what, counts, event.hash)


def _word_body(form: Form, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body of an event with answers and reasons in the form's wording."""
    words = dict(body)
    if isinstance(body.get("answers"), str):
        words["answers"] = word_answers(form, body["answers"])
    if isinstance(body.get("because"), list):
        words["because"] = ", ".join(word_reason(form, str(one)) for one in body["because"])
    return words


def _make_cell(text: str) -> str:
    return f"<td>{html.escape(text)}</td>"
