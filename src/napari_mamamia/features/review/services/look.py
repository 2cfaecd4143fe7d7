"""Looking at a study: its state now, a person by name, the order of what is disputed."""

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
    """Return where a study stands by all that can be seen of it; see `replay_events`."""
    return replay_reading(store, store.read(), before)


def replay_reading(
    store: EventStore, reading: StoreReading, before: ReplayMemory | None = None
) -> ReviewState:
    """Return where a study stands by these events; see `replay_events`."""
    chains, has_mask = reading.chains.values(), reading.masks.__contains__
    return replay_events(store.study, store.origin, chains, has_mask, signature_fits, before)


def read_whole(store: EventStore) -> StoreReading:
    """Return all events of a study, for what is said of the whole of it.

    Raises
    ------
    FormatError
        If the study cannot be reached, or one of its files cannot be read now. People at work go
        on with what they know; a status, a check or an export of a part would be taken for all.
    """
    reading = store.read()
    if reading.away:
        raise FormatError(
            f"expected to read all events of the study, but some cannot be read ({reading.away}): "
            "see that the folder is there, then try again"
        )
    return reading


def require_known(store: EventStore) -> None:
    """Refuse to go on in a study that this computer has not seen whole, now or before.

    Raises
    ------
    FormatError
        If it has not: what is not seen would be taken for what is not there.
    """
    if not store.is_known:
        why = store.trouble or "its events"
        raise FormatError(
            f"expected a study that can be read, but some of it cannot ({why}): "
            "see that the folder is there, then try again"
        )


def require_outside(store: FolderStore, folder: Path) -> None:
    """Refuse a folder for results that lies in the study.

    Everybody who reads there would find them, and `verify` would call them changed masks.

    Raises
    ------
    SaveConflictError
        If it does.
    SilentShareError
        If it is on a share that does not answer.
    """
    results = Share(folder).look(lambda place: place.resolve())
    if store.visit(lambda study: results.is_relative_to(study.resolve())):
        raise SaveConflictError(
            f"expected a folder outside the study, got {folder}: name another one"
        )


def require_counted(state: ReviewState, event: Event) -> None:
    """Raise `CaseError` where what somebody just handed in does not count, and say why."""
    why = next((one.why for one in state.refused if one.event.hash == event.hash), "")
    if why:
        case_id = state.study.case(str(event.body["case"])).case_id
        raise CaseError(
            f"expected your reading of {case_id} to count, but {why}: mask and answers are kept in "
            "the study and stand in its audit trail; ask the lead"
        )


def require_reason(reason: str) -> None:
    """Raise `CaseError` where nothing is given as a reason."""
    if not reason.strip():
        raise CaseError("expected a reason, got an empty text: say why in a few words")


def list_refused(state: ReviewState, reader: str, host: str, session: str) -> tuple[str, ...]:
    """Return which readings of one program do not count and why, in words.

    What was decided while the share was away is seen when it is back.
    """
    return tuple(
        f"your reading of {state.study.case(str(one.event.body['case'])).case_id} does not count: "
        f"{one.why}; mask and answers are kept, ask the lead"
        for one in state.refused
        if one.event[:3] == (reader, host, session) and one.event.body["act"] == "read"
    )


def find_person(state: ReviewState, who: str) -> StudyReader:
    """Return a person by id or name, in whatever letter case and spelling of accents.

    Raises
    ------
    CaseError
        If there is none; names those that there are.
    """
    for one in state.study.readers:
        calls = (one.reader_id, one.name, state.name(one.reader_id))
        if case_key(who.strip()) in map(case_key, calls):
            return one
    names = ", ".join(state.name(reader.reader_id) for reader in state.study.readers)
    raise CaseError(f"expected a name of the study, got {who!r}: it has {names}")


def is_possible(state: ReviewState, task: Task) -> bool:
    """Return whether a task can be read now: nothing is decided, of a second look the first is.

    A hidden repeat moves no case: it can be read whatever was decided.
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
    """Yield the tasks of a queue that are open and can be read now, found as they are asked for."""
    for task, reading in queue:
        if reading.state is not CaseState.READ and is_possible(state, task):
            yield task


def rank_dispute(view: CaseView) -> tuple[float, str]:
    """Return what disputes are ordered by: the lowest Dice first, those without one last."""
    values = dict(view.comparison.values) if view.comparison else {}
    try:
        return float(values.get("dice", "2")), view.key
    except ValueError:
        return 2.0, view.key


def find_key(state: ReviewState, reader_id: str, digits: str) -> str:
    """Return the public key of a reader whose short form was read out; blanks do not matter.

    Raises
    ------
    CaseError
        If the reader has none with these digits: then it is somebody else's.
    """
    spoken = "".join(digits.split()).lower()
    for key in state.keys:
        if key.reader == reader_id and short_key(key.key).replace(" ", "") == spoken:
            return key.key
    raise CaseError(
        f"expected the 16 digits of a key of {state.name(reader_id)}, got {digits!r}: ask again by "
        "voice; if they differ the key is not that person's"
    )


def find_ending_key(state: ReviewState, reader_id: str, digits: str = "") -> str:
    """Return the key of a reader that may end: by its digits, or the only one there is.

    Raises
    ------
    CaseError
        If there is none, or several and no digits say which.
    """
    if digits:
        return find_key(state, reader_id, digits)
    keys = [key.key for key in state.keys if key.reader == reader_id and not key.ended]
    if len(keys) != 1:
        some = ", ".join(map(short_key, keys)) or "none"
        raise CaseError(
            f"expected one key of {state.name(reader_id)} to end, got {some}: say which by its "
            "16 digits"
        )
    return keys[0]


def find_subject(
    view: CaseView, reader_id: str, meaning: Meaning, occasion: int
) -> ReadingView | Decision | None:
    """Return what a signature would be of: one's own reading, or what was decided."""
    if meaning is not Meaning.AUTHOR:
        is_there = view.state in (CaseState.ACCEPTED, CaseState.SIGNED)
        return view.decision if is_there else None
    mine = (reader_id, occasion)
    own_readings = [
        reading for reading in view.readings if (reading.reader, reading.occasion) == mine
    ]
    return own_readings[0] if own_readings else None
