"""Query a study: state, people, possible tasks, disputes and keys."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from napari_mamamia.core.errors import CaseError, FormatError, SaveConflictError
from napari_mamamia.features.review.core.review import Meaning, ReadingMode, StudyReader, Task
from napari_mamamia.features.review.io.keys import signature_fits
from napari_mamamia.features.review.io.share import Share
from napari_mamamia.features.review.io.store import EventStore, FolderStore, StoreReading
from napari_mamamia.features.review.rules.replay import ReplayMemory, ReviewState, replay_events
from napari_mamamia.features.review.rules.signatures import short_key
from napari_mamamia.features.review.rules.states import CaseState
from napari_mamamia.features.review.rules.views import CaseView, Decision, ReadingView
from napari_mamamia.io.files.file_names import case_key
from napari_mamamia.io.workspace.event_order import Event


def load_state(store: EventStore, before: ReplayMemory | None = None) -> ReviewState:
    """Return the state of a study from all visible events; see `replay_events`."""
    return replay_reading(store, store.read(), before)


def replay_reading(
    store: EventStore, reading: StoreReading, before: ReplayMemory | None = None
) -> ReviewState:
    """Return the state of a study from these events; see `replay_events`."""
    chains, has_mask = reading.chains.values(), reading.masks.__contains__
    return replay_events(store.study, store.origin, chains, has_mask, signature_fits, before)


def read_whole(store: EventStore) -> StoreReading:
    """Return all events of a study; fail if any of them cannot be read.

    Raises
    ------
    FormatError
        If the study or one of its files cannot be read now. Reading can continue with the known
        events, but an incomplete status, check or export would be mistaken for a complete one.
    """
    reading = store.read()
    if reading.away:
        raise FormatError(
            f"expected to read all events of the study, but some cannot be read ({reading.away}): "
            "check that the folder is reachable, then try again"
        )
    return reading


def require_known(store: EventStore) -> None:
    """Refuse to continue in a study that this computer has never read completely.

    Raises
    ------
    FormatError
        If the study was never read completely, because invisible events would be taken for missing.
    """
    if not store.is_known:
        why = store.trouble or "its events"
        raise FormatError(
            f"expected a readable study, but some of it cannot be read ({why}): check that the "
            "folder is reachable, then try again"
        )


def require_outside(store: FolderStore, folder: Path) -> None:
    """Refuse an output folder that is inside the study.

    Other readers would find the results, and `verify` would report them as changed masks.

    Raises
    ------
    SaveConflictError
        If the output folder is inside the study.
    SilentShareError
        If the output folder is on a share that does not answer.
    """
    results = Share(folder).look(lambda place: place.resolve())
    if store.visit(lambda study: results.is_relative_to(study.resolve())):
        raise SaveConflictError(
            f"expected a folder outside the study, but found {folder}: name another one"
        )


def require_counted(state: ReviewState, event: Event) -> None:
    """Raise `CaseError` with the reason if a submitted reading does not count."""
    why = next((refusal.why for refusal in state.refused if refusal.event.hash == event.hash), "")
    if why:
        case_id = state.study.case(str(event.body["case"])).case_id
        raise CaseError(
            f"expected your reading of {case_id} to count, but {why}: mask and answers are stored "
            "in the study and its audit trail; ask the lead"
        )


def require_reason(reason: str) -> None:
    """Raise `CaseError` if a reason is empty."""
    if not reason.strip():
        raise CaseError(
            "expected a reason, but found an empty text: give the reason in a few words"
        )


def list_refused(state: ReviewState, reader: str, host: str, session: str) -> tuple[str, ...]:
    """Describe which readings of this program do not count, and why.

    Decisions made by others while the share was unreachable become visible afterwards.
    """
    return tuple(
        f"your reading of {state.study.case(str(refusal.event.body['case'])).case_id} does not "
        f"count: {refusal.why}; mask and answers are kept, ask the lead"
        for refusal in state.refused
        if refusal.event[:3] == (reader, host, session) and refusal.event.body["act"] == "read"
    )


def find_person(state: ReviewState, who: str) -> StudyReader:
    """Return a person by id or name, ignoring letter case and Unicode normalisation of accents.

    Raises
    ------
    CaseError
        If there is no such person; the message lists the names.
    """
    for one in state.study.readers:
        calls = (one.reader_id, one.name, state.name(one.reader_id))
        if case_key(who.strip()) in map(case_key, calls):
            return one
    names = ", ".join(state.name(reader.reader_id) for reader in state.study.readers)
    raise CaseError(f"expected a name of the study, but found {who!r}: the study has {names}")


def is_possible(state: ReviewState, task: Task) -> bool:
    """Return whether a task can be read now.

    The case must be undecided, and a first reading that must precede it submitted. A hidden repeat
    does not change its case and can also be read after the decision.
    """
    view = state.case(task.case)
    is_decided = view.decision is not None and view.round == 1
    is_judged = view.state in (CaseState.DISAGREES, CaseState.IN_ADJUDICATION)
    if not task.occasion and (is_judged or (is_decided and view.state is not CaseState.REOPENED)):
        return False
    if state.study.plan.mode is not ReadingMode.SECOND_LOOK:
        return True
    looks = [reading for reading in view.readings if reading.occasion == task.occasion]
    before = looks[: [look.reader for look in looks].index(task.reader)]
    return all(one.state is CaseState.READ for one in before)


def list_possible(state: ReviewState, queue: Iterable[tuple[Task, ReadingView]]) -> Iterator[Task]:
    """Yield the open tasks of a queue that can be read now, evaluated lazily."""
    for task, reading in queue:
        if reading.state is not CaseState.READ and is_possible(state, task):
            yield task


def rank_dispute(view: CaseView) -> tuple[float, str]:
    """Return the sort key of disputes: ascending Dice, with disputes without a Dice last."""
    values = dict(view.comparison.values) if view.comparison else {}
    try:
        return float(values.get("dice", "2")), view.key
    except ValueError:
        return 2.0, view.key


def find_key(state: ReviewState, reader_id: str, digits: str) -> str:
    """Return a reader's public key by its short form, ignoring blanks.

    Raises
    ------
    CaseError
        If the reader has no key with these digits.
    """
    spoken = "".join(digits.split()).lower()
    for key in state.keys:
        if key.reader == reader_id and short_key(key.key).replace(" ", "") == spoken:
            return key.key
    raise CaseError(
        f"expected the 16 digits of a key of {state.name(reader_id)}, but found {digits!r}: ask "
        "again in person or by telephone; if they differ the key is not that person's"
    )


def find_key_to_revoke(state: ReviewState, reader_id: str, digits: str = "") -> str:
    """Return a reader's revocable key by its digits, or the only revocable key.

    Raises
    ------
    CaseError
        If there is no such key, or there are several keys and no digits are given.
    """
    if digits:
        return find_key(state, reader_id, digits)
    keys = [key.key for key in state.keys if key.reader == reader_id and not key.ended]
    if len(keys) != 1:
        some = ", ".join(map(short_key, keys)) or "none"
        raise CaseError(
            f"expected one key of {state.name(reader_id)} to revoke, but found {some}: choose it "
            "by its 16 digits"
        )
    return keys[0]


def find_subject(
    view: CaseView, reader_id: str, meaning: Meaning, occasion: int
) -> ReadingView | Decision | None:
    """Return the subject of a signature: the person's own reading, or the decision."""
    if meaning is not Meaning.AUTHOR:
        is_there = view.state in (CaseState.ACCEPTED, CaseState.SIGNED)
        return view.decision if is_there else None
    mine = (reader_id, occasion)
    own_readings = [
        reading for reading in view.readings if (reading.reader, reading.occasion) == mine
    ]
    return own_readings[0] if own_readings else None
