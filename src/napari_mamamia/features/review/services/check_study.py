"""Check a study: its status, verification and audit trail."""

import html
from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from napari_mamamia.core.errors import FormatError, MamamiaError
from napari_mamamia.core.form import Form
from napari_mamamia.core.names import count_of
from napari_mamamia.core.progress import paced, report_progress
from napari_mamamia.core.provenance import now_utc, software_version
from napari_mamamia.features.review.core.review import Role, Study
from napari_mamamia.features.review.io.keys import require_whole_key, signature_fits
from napari_mamamia.features.review.io.share import Share
from napari_mamamia.features.review.io.store import (
    MASKS,
    EventStore,
    FolderStore,
    StoreReading,
    list_changed_masks,
)
from napari_mamamia.features.review.io.study_file import EVENTS
from napari_mamamia.features.review.rules.form_words import word_answers, word_reason
from napari_mamamia.features.review.rules.replay import ReviewState, came_late
from napari_mamamia.features.review.rules.signatures import (
    KeyView,
    enter_message,
    seal_of,
    short_key,
)
from napari_mamamia.features.review.rules.states import SIGNED_ACTS, Act, CaseState, ReadingView
from napari_mamamia.features.review.services.look import (
    NO_PSEUDONYMS,
    Pseudonymizer,
    list_changed_files,
    read_whole,
    replay_reading,
)
from napari_mamamia.io.files.append_file import scan_chained_lines
from napari_mamamia.io.files.checksums import sha256_of_large
from napari_mamamia.io.files.csv_text import write_csv
from napari_mamamia.io.files.save import saving, write_text_atomically
from napari_mamamia.io.tables.tables import write_json
from napari_mamamia.io.workspace.event_store import Event, list_past, merge_events

STATUS: Final = "status.json"
VERIFY: Final = "verify.json"
_UNBOUND: Final = (
    "study.json lists no lead's key, so anybody who can write to the folder can insert one that "
    "looks older; compare the digits with the lead in person or by telephone"
)
_CLOCK_S: Final = 300.0
"""Clock difference, in s, above which a problem is reported (our choice)."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem in a study: its kind, location and description."""

    kind: str
    where: str
    text: str


@dataclass(frozen=True, slots=True)
class ReaderProgress:
    """A reader's progress: assigned and finished readings, working time, and keys."""

    reader: str
    name: str
    roles: tuple[str, ...]
    n_tasks: int
    n_read: int
    active_s: int
    keys: tuple[str, ...] = ()
    keys_waiting: tuple[str, ...] = ()
    keys_ended: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SiteProgress:
    """Progress on the cases of one site; `site` is "" if the site is unknown."""

    site: str
    n_cases: int
    states: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class StudyStatus:
    """The status of a study; `sites` is empty if sites are unknown or hidden."""

    study: str
    study_id: str
    origin: str
    at: str
    software: str
    states: Mapping[str, int]
    readers: tuple[ReaderProgress, ...]
    conflicts: tuple[Problem, ...]
    n_waiting: int
    n_refused: int
    sites: tuple[SiteProgress, ...] = ()

    @property
    def n_cases(self) -> int:
        """Return the number of cases."""
        return sum(self.states.values())


@dataclass(frozen=True, slots=True)
class StudyCheck:
    """The result of verifying a study; `notes` are information, not problems.

    `n_sealed` events are covered by a valid signature, so that changing one requires the signer's
    key.
    """

    origin: str
    n_events: int
    n_files: int
    n_masks: int
    n_signatures: int
    heads: tuple[tuple[str, str], ...]
    problems: tuple[Problem, ...]
    notes: tuple[Problem, ...]
    n_sealed: int = 0


def find_status(store: EventStore, pseudonymizer: Pseudonymizer = NO_PSEUDONYMS) -> StudyStatus:
    """Compute the status of a study; a pseudonymizer replaces the case ids.

    The errors are those of `read_whole`.
    """
    state = replay_reading(store, read_whole(store))
    return StudyStatus(
        store.study.plan.name,
        store.study.study_id,
        store.origin,
        now_utc(),
        software_version(),
        {name.value: count for name, count in state.counts.items()},
        list_progress(state),
        _cover_problems(_list_conflicts(state), pseudonymizer),
        len(state.waiting),
        len(state.refused),
        () if pseudonymizer.names else _count_sites(state),
    )


def list_progress(state: ReviewState) -> tuple[ReaderProgress, ...]:
    """Return each person's progress, in study order."""
    by_reader: dict[str, list[ReadingView]] = {}
    for view in state.cases:
        for reading in view.readings:
            by_reader.setdefault(reading.reader, []).append(reading)
    progress = []
    for reader in state.study.readers:
        readings = by_reader.get(reader.reader_id, [])
        keys = [key for key in state.keys if key.reader == reader.reader_id]
        progress.append(
            ReaderProgress(
                reader.reader_id,
                state.name(reader.reader_id),
                tuple(role.value for role in reader.roles),
                len(readings),
                sum(reading.state is CaseState.READ for reading in readings),
                sum(reading.active_s for reading in readings),
                tuple(short_key(key.key) for key in keys if key.counts),
                tuple(short_key(key.key) for key in keys if not key.by and not key.ended),
                tuple(f"{short_key(key.key)} ended {key.ended}" for key in keys if key.ended),
            )
        )
    return tuple(progress)


def _count_sites(state: ReviewState) -> tuple[SiteProgress, ...]:
    by_site: dict[str, Counter[str]] = {}
    for view in state.cases:
        by_site.setdefault(state.study.case(view.key).site, Counter())[view.state.value] += 1
    if not any(by_site):
        return ()
    return tuple(
        SiteProgress(site, states.total(), dict(sorted(states.items())))
        for site, states in sorted(by_site.items())
    )


def _cover_problems(
    problems: Iterable[Problem], pseudonymizer: Pseudonymizer
) -> tuple[Problem, ...]:
    return tuple(
        Problem(problem.kind, pseudonymizer.cover(problem.where), pseudonymizer.cover(problem.text))
        for problem in problems
    )


def verify_study(
    store: FolderStore, images: Path | None = None, pseudonymizer: Pseudonymizer = NO_PSEUDONYMS
) -> StudyCheck:
    """Verify all hashes in a study's folder, and check the study's rules.

    The verification covers chains, gaps, forks, masks, signatures, steps that are not allowed,
    conflicts, and content that this computer has read before. If `images` (the data set) is given,
    the images of every case are checked too. A pseudonymizer replaces the case ids in the result.
    """
    report_progress(0, 4, "Reading events")
    reading = read_whole(store)
    if any(_list_lost(reading)):
        reading = read_whole(store)  # somebody may write between the reading of two files
    state = replay_reading(store, reading)
    problems = [Problem("chain", problem.path, problem.text) for problem in reading.problems]
    problems += _list_lost(reading)
    chains = {name: tuple(events) for name, events in reading.chains.items() if events}
    report_progress(1, 4, "Reading masks")
    problems += _list_changed_masks(store)
    other_files = store.visit(lambda folder: list_changed_files(folder, store.study))
    problems += [Problem("file", *other_file) for other_file in other_files]
    problems += _list_misplaced(chains)
    problems += store.visit(lambda folder: list(_list_torn(folder / EVENTS)))
    problems += [
        Problem("waiting", _place_of(state, refusal.event), refusal.why)
        for refusal in state.waiting
    ]
    events = merge_events(chains.values())
    by_hash = {event.hash: event for event in events}
    entries, unproven, keyless = _check_entries(state, store.origin, chains, by_hash)
    late, refused = _split_refused(state, store.origin, by_hash, reading.masks, keyless)
    problems += refused
    problems += _list_conflicts(state)
    problems += _list_signature_problems(state)
    problems += _list_key_problems(state, by_hash)
    problems += _list_key_files(store)
    problems += entries
    report_progress(2, 4, "Reading images")
    if images is not None:
        problems += Share(images).run(lambda place: list(_check_images(store.study, place)))
    report_progress(4, 4)
    signatures = [
        signature for view in state.cases for signature in view.signatures if signature.counts
    ]
    # a signature does not cover the other fields of its own event
    signing = [by_hash[signature.hash] for signature in signatures]
    n_sealed = len(list_past(by_hash, (one for event in signing for one in _list_before(event))))
    notes = [*_list_clocks(events), *_list_keys(state), *_list_unused_masks(reading.masks, events)]
    notes += [*unproven, *late, *_list_open_events(len(events), n_sealed)]
    return StudyCheck(
        store.origin,
        len(events),
        len(chains),
        len(reading.masks),
        sum(len(view.signatures) for view in state.cases),
        tuple((name, chain[-1].hash) for name, chain in sorted(chains.items())),
        _cover_problems(dict.fromkeys(problems), pseudonymizer),
        _cover_problems(notes, pseudonymizer),
        n_sealed,
    )


def save_status(status: StudyStatus, folder: Path) -> Path:
    """Write ``status.json``, replacing an earlier file, and return its path."""
    write_json(status, folder / STATUS, overwrite=True)
    return folder / STATUS


def save_check(check: StudyCheck, folder: Path) -> Path:
    """Write ``verify.json``, replacing an earlier file, and return its path."""
    write_json(check, folder / VERIFY, overwrite=True)
    return folder / VERIFY


def _place_of(state: ReviewState, event: Event) -> str:
    act, key = event.body.get("act", ""), event.body.get("case", "")
    case_id = next((case.case_id for case in state.study.cases if case.key == key), key)
    return f"{event.reader}/{event.host}-{event.session} event {event.seq} ({act} {case_id})"


def _split_refused(
    state: ReviewState,
    origin: str,
    by_hash: Mapping[str, Event],
    masks: frozenset[str],
    keyless: Collection[tuple[str, str, str]],
) -> tuple[list[Problem], list[Problem]]:
    """Split rejected steps into late steps and steps that this program never writes.

    Steps in the sessions `keyless` are never late, because the origin of these steps is not proven.
    """
    late, refused = [], []
    for refusal in state.refused:
        where = _place_of(state, refusal.event)
        is_known = refusal.event[:3] not in keyless
        if is_known and came_late(
            state, origin, refusal.event, by_hash, masks.__contains__, signature_fits
        ):
            text = (
                f"the event arrived late and is ignored: {refusal.why}; its writer could not know "
                "this"
            )
            late.append(Problem("late", where, text))
        else:
            refused.append(Problem("refused", where, refusal.why))
    return late, refused


def _list_conflicts(state: ReviewState) -> Iterator[Problem]:
    for key, text in state.conflicts:
        yield Problem("conflict", state.study.case(key).case_id, text)
    for reader, text in state.disputes:
        yield Problem("conflict", f"keys of {state.name(reader)}", text)


def _list_signature_problems(state: ReviewState) -> Iterator[Problem]:
    for view in state.cases:
        for signature in view.signatures:
            if not signature.counts:
                where = (
                    f"{state.study.case(view.key).case_id}, {signature.name} as {signature.meaning}"
                )
                yield Problem("signature", where, signature.why_not)


def _list_misplaced(chains: dict[str, tuple[Event, ...]]) -> Iterator[Problem]:
    for name, events in chains.items():
        for reader, host, session in sorted({event[:3] for event in events}):
            if Path(name).parent.name != reader:
                text = f"its events are from {reader!r}, so somebody moved or renamed the file"
                yield Problem("place", name, text)
            elif Path(name).name != f"{host}-{session}.jsonl":
                text = (
                    f"its events are from {host}-{session}, so somebody copied or renamed the file"
                )
                yield Problem("place", name, text)


def _list_torn(folder: Path) -> Iterator[Problem]:
    for path in paced(sorted(folder.rglob("*.jsonl")), "Reading last lines"):
        last = next(iter(deque(scan_chained_lines(path), maxlen=1)), None)
        if last is not None and last.is_torn:
            text = (
                "its last line is incomplete, because it is being written, was truncated by a "
                "crash, or was changed; check again when the reader has sent everything"
            )
            yield Problem("chain", path.relative_to(folder).as_posix(), text)


def _list_clocks(events: tuple[Event, ...]) -> Iterator[Problem]:
    index = {event.hash: _parse_clock(event.at) for event in events}
    behind: Counter[str] = Counter()
    for event in events:
        before = max(
            (index[one] for one in (event.prev, *event.seen) if one in index),
            default=index[event.hash],
        )
        behind[event.host] = max(behind[event.host], int(before - index[event.hash]))
    for host, seconds in sorted(behind.items()):
        if seconds > _CLOCK_S:
            text = (
                f"its clock was {seconds / 3600:.1f} h behind another clock, on which no state "
                "depends"
            )
            yield Problem("clock", host, text)


def _parse_clock(text: str) -> float:
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return 0.0


def _list_before(event: Event) -> tuple[str, ...]:
    return (event.prev, *event.seen)


def _list_lost(reading: StoreReading) -> Iterator[Problem]:
    here = {event.hash for chain in reading.chains.values() for event in chain}
    for name, chain in reading.chains.items():
        lost = {digest for event in chain for digest in event.seen} - here
        if lost:
            text = (
                f"{count_of(len(lost), 'event')} that its writer had seen missing: deleted, "
                "changed, or still waiting on the computer where they were written"
            )
            yield Problem("chain", name, text)


def _list_changed_masks(store: FolderStore) -> Iterator[Problem]:
    text = "its content does not match its name, so it was changed"
    other_masks = store.visit(lambda folder: list_changed_masks(folder / MASKS))
    for place, names in ((MASKS, other_masks), ("here", list_changed_masks(store.outbox / MASKS))):
        for name in names:
            yield Problem("mask", f"{place}/{name}", text)


def _list_open_events(n_events: int, n_sealed: int) -> Iterator[Problem]:
    if n_sealed < n_events:
        text = (
            f"{n_events - n_sealed} of {count_of(n_events, 'event')} not covered by a signature: "
            "hashes reveal damage and changes to events that others had read, but anybody who "
            "can write to the folder could rewrite all of these events, or omit the last events"
        )
        yield Problem("seal", EVENTS, text)


def _list_keys(state: ReviewState) -> Iterator[Problem]:
    for key in state.keys:
        name, digits = state.name(key.reader), short_key(key.key)
        if key.by == key.reader and not key.is_bound:
            yield Problem("key", name, f"key {digits} counts as a lead's first key: {_UNBOUND}")
        if not key.by and not key.ended:
            more = f" ({key.n_missing} more)" if key.n_missing > 1 else ""
            yield Problem("key", name, f"key {digits} waits for countersigning{more}")
        if key.ended:
            yield Problem("key", name, f"key {digits} was revoked {key.ended}")


def _list_key_problems(state: ReviewState, by_hash: Mapping[str, Event]) -> Iterator[Problem]:
    """Yield unresolved problems with keys, and first keys of leads whose order is uncertain."""
    for key in state.keys:
        name, digits = state.name(key.reader), short_key(key.key)
        if key.against:
            text = (
                f"key {digits} is revoked by {', '.join(key.against)}, but it remains valid until "
                "more than half of the other leads revoke it"
            )
            yield Problem("key", name, text)
        if key.n_loose:
            text = (
                f"{count_of(key.n_loose, 'statement')} of key {digits} about other readers' keys "
                "not listed in its owner's revocation and still valid: another lead must revoke "
                "the key too"
            )
            yield Problem("key", name, text)
    births = {
        str(by_hash.body.get("key")): by_hash.hash
        for by_hash in by_hash.values()
        if by_hash.body.get("act") == Act.KEY
    }
    first = next((key for key in state.keys if key.by == key.reader and not key.is_bound), None)
    leads = {reader.reader_id for reader in state.study.readers if Role.LEAD in reader.roles}
    for key in state.keys:
        if first is None or key.by or key.reader not in leads or key.key not in births:
            continue
        if births.get(first.key) not in list_past(by_hash, (births[key.key],)):
            text = (
                f"key {short_key(key.key)} does not know of {short_key(first.key)} of "
                f"{state.name(first.reader)}, which counts as a lead's first key only by its "
                f"clock: one of them may have been inserted later; {_UNBOUND}"
            )
            yield Problem("key", state.name(key.reader), text)


def _check_entries(
    state: ReviewState,
    origin: str,
    chains: Mapping[str, Sequence[Event]],
    by_hash: Mapping[str, Event],
) -> tuple[list[Problem], list[Problem], set[tuple[str, str, str]]]:
    """Return sessions that contradict the reader's key as problems, and sessions without a key.

    Sessions without a key are returned as notes and as (reader, computer, session). A reader who
    has entered with a key always does so afterwards. A session without a key is only a note if it
    had not yet seen the key, if it is from an earlier version, or if it began before the key was
    valid.
    """
    keys = {key.key: key for key in state.keys if key.by}
    proven: dict[str, set[str]] = {}
    wrong, without = [], []
    keyless: set[tuple[str, str, str]] = set()
    for name, chain in chains.items():
        for event in chain:
            if event.body.get("act") != Act.ENTER or "proof" not in event.body:
                continue
            why = _find_wrong_proof(event, origin, keys, by_hash)
            if why:
                wrong.append(Problem("entry", name, why))
            else:
                proven.setdefault(event.reader, set()).add(event.hash)
    for name, chain in chains.items():
        own = proven.get(chain[0].reader, set())
        acts = [one for one in chain if one.body.get("act") not in {Act.ENTER, *SIGNED_ACTS}]
        is_shown = any(one.hash in own and one.seq < acts[0].seq for one in chain) if acts else True
        if not own or is_shown:
            continue
        keyless.add(chain[0][:3])
        person = state.name(chain[0].reader)
        if own & list_past(by_hash, _list_before(chain[0])):
            text = f"the file is in the name of {person}, who uses a key, but has no key"
            wrong.append(Problem("entry", name, text))
        else:
            text = (
                f"it is in the name of {person} but has no key: it began before {person} entered "
                "with a key, or somebody else wrote it"
            )
            without.append(Problem("entry", name, text))
    return wrong, without, keyless


def _find_wrong_proof(
    event: Event, origin: str, keys: Mapping[str, KeyView], by_hash: Mapping[str, Event]
) -> str:
    digits, signature = event.body.get("key"), event.body.get("proof")
    key = keys.get(str(digits))
    if key is None or key.reader != event.reader:
        return "its key does not belong to this reader, or is not valid"
    message = enter_message(origin, *event[:3], seal_of(event.prev, event.seen))
    if not signature_fits(key.key, str(signature), message):
        return "its signature is invalid"
    past = list_past(by_hash, _list_before(event)) if key.ended else set()
    ends = (by_hash[one].body for one in past)
    if any(end.get("act") == Act.REVOKE and end.get("key") == key.key for end in ends):
        return f"its key was revoked {key.ended}"
    return ""


def _list_key_files(store: FolderStore) -> Iterator[Problem]:
    for path in sorted(store.outbox.glob("*.key.json")):
        try:
            require_whole_key(path)
        except FormatError as error:
            yield Problem("key", path.name, str(error))


def _list_unused_masks(masks: frozenset[str], events: tuple[Event, ...]) -> Iterator[Problem]:
    used = {event.body.get("mask") for event in events if isinstance(event.body.get("mask"), str)}
    left = masks - used
    if left:
        text = (
            f"{count_of(len(left), 'mask')} without an event: a program ended before recording it"
        )
        yield Problem("mask", "masks", text)


def _check_images(study: Study, images: Path) -> Iterator[Problem]:
    for case in study.cases:
        for image in case.images:
            try:
                is_same = sha256_of_large(images / image.name) == image.sha256
            except MamamiaError as error:
                yield Problem("image", case.case_id, str(error))
                continue
            if not is_same:
                yield Problem(
                    "image", case.case_id, f"{image.name} was changed since the study began"
                )


AUDIT: Final = "audit"


def save_audit(
    store: EventStore,
    folder: Path,
    pseudonymizer: Pseudonymizer = NO_PSEUDONYMS,
    form: Form | None = None,
) -> tuple[Path, Path]:
    """Write all events in order, as a CSV table and as one HTML page, and return both paths.

    The page contains answers in the wording of `form`; the table contains ids.

    The errors are those of `read_whole`, and `SaveError` if the system does not allow writing.
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
    words = dict(body)
    if isinstance(body.get("answers"), str):
        words["answers"] = word_answers(form, body["answers"])
    if isinstance(body.get("because"), list):
        words["because"] = ", ".join(word_reason(form, str(one)) for one in body["because"])
    return words


def _make_cell(text: str) -> str:
    return f"<td>{html.escape(text)}</td>"
