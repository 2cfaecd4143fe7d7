"""Read a study's state, people, tasks and frozen files, and pseudonymize its cases.

Case ids such as DUKE_001, clinical tables and file names reveal the site. A client therefore
receives the study, and the window receives the data set, with numbers instead of ids. In all other
texts, such as error messages, ids are replaced word by word.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Final

from napari_mamamia.core.errors import CaseError, FormatError, SaveConflictError
from napari_mamamia.core.form import Form
from napari_mamamia.features.review.core.quality import Queue
from napari_mamamia.features.review.core.review import (
    Meaning,
    ReadingMode,
    Study,
    StudyReader,
    Task,
)
from napari_mamamia.features.review.io.keys import signature_fits
from napari_mamamia.features.review.io.quality_files import queue_text, read_queue
from napari_mamamia.features.review.io.share import Share
from napari_mamamia.features.review.io.store import EventStore, FolderStore, StoreReading
from napari_mamamia.features.review.rules.replay import ReplayMemory, ReviewState, replay_events
from napari_mamamia.features.review.rules.signatures import short_key
from napari_mamamia.features.review.rules.states import CaseState, CaseView, Decision, ReadingView
from napari_mamamia.io.files.checksums import sha256_of
from napari_mamamia.io.files.file_names import case_key
from napari_mamamia.io.forms.form_file import form_text, read_form
from napari_mamamia.io.workspace.event_store import Event
from napari_mamamia.io.workspace.protocol import Protocol, read_protocol, read_protocol_text


def load_state(store: EventStore, before: ReplayMemory | None = None) -> ReviewState:
    """Compute the state of a study from all visible events; see `replay_events`."""
    return replay_reading(store, store.read(), before)


def replay_reading(
    store: EventStore, reading: StoreReading, before: ReplayMemory | None = None
) -> ReviewState:
    """Compute the state of a study from the given events; see `replay_events`."""
    chains, has_mask = reading.chains.values(), reading.masks.__contains__
    return replay_events(store.study, store.origin, chains, has_mask, signature_fits, before)


def read_whole(store: EventStore) -> StoreReading:
    """Return all events of a study; raise an error if some cannot be read.

    Raises
    ------
    FormatError
        If the study or one of its files cannot be read now. Reading can continue with the known
        events, but an incomplete status, check or export would be mistaken for a complete one.
    """
    reading = store.read()
    if reading.away:
        raise FormatError(
            f"some events of the study cannot be read ({reading.away}): check that the folder is "
            "reachable, then try again"
        )
    return reading


def require_known(store: EventStore) -> None:
    """Raise an error if this computer has never read the study completely.

    Raises
    ------
    FormatError
        If the study was never read completely: events that cannot be seen would seem not to exist.
    """
    if not store.is_known:
        why = store.trouble or "its events"
        raise FormatError(
            f"expected a readable study, but some of it cannot be read ({why}): check that the "
            "folder is reachable, then try again"
        )


def require_outside(store: FolderStore, folder: Path) -> None:
    """Raise an error if an output folder is inside the study.

    Other readers would find the results, and `verify` would report them as changed masks.

    Raises
    ------
    SaveConflictError
        If the output folder is inside the study.
    SilentShareError
        If the output folder is on a share that does not respond.
    """
    results = Share(folder).look(lambda place: place.resolve())
    if store.visit(lambda study: results.is_relative_to(study.resolve())):
        raise SaveConflictError(
            f"expected a folder outside the study, but found {folder}: choose a different folder"
        )


def require_counted(state: ReviewState, event: Event) -> None:
    """Raise `CaseError` with the reason if the event of a submitted reading does not count."""
    why = next((refusal.why for refusal in state.refused if refusal.event.hash == event.hash), "")
    if why:
        case_id = state.study.case(str(event.body["case"])).case_id
        raise CaseError(
            f"expected your reading of {case_id} to count, but {why}: its mask and answers are "
            "stored in the study and its audit trail; ask the lead"
        )


def require_reason(reason: str) -> None:
    """Raise `CaseError` if the reason is empty."""
    if not reason.strip():
        raise CaseError("expected a reason, but it is empty: enter a reason in a few words")


def list_refused(state: ReviewState, reader: str, host: str, session: str) -> tuple[str, ...]:
    """Return sentences on the readings by this program that do not count, with the reasons.

    Decisions that other people made while the share was unreachable become visible afterwards.
    """
    return tuple(
        (
            f"your reading of {state.study.case(str(refusal.event.body['case'])).case_id} is not "
            f"included: {refusal.why}; its mask and answers are kept; ask the lead"
        )
        for refusal in state.refused
        if refusal.event[:3] == (reader, host, session) and refusal.event.body["act"] == "read"
    )


def find_person(state: ReviewState, who: str) -> StudyReader:
    """Find a person by id or name, ignoring letter case and Unicode normalisation.

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
    raise CaseError(
        f"expected the name of a person in the study, but found {who!r}: the names in the study "
        f"are {names}"
    )


def is_possible(state: ReviewState, task: Task) -> bool:
    """Return whether a task can be read now.

    The case must be undecided, and if a first reading must precede the task, it must be submitted.
    A hidden repeat does not change its case and can also be read after the decision.
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
    """Yield the tasks of a queue that are open and can be read now, evaluated lazily."""
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
    """Return a reader's public key, given its short form with or without blanks.

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
        "again in person or by telephone; if the digits differ, the key does not belong to that "
        "person"
    )


def find_key_to_revoke(state: ReviewState, reader_id: str, digits: str = "") -> str:
    """Return a reader's key that can be revoked, by its digits or because it is the only one.

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
            f"expected one key of {state.name(reader_id)} to revoke, but found {some}: choose the "
            "key by its 16 digits"
        )
    return keys[0]


def find_subject(
    view: CaseView, reader_id: str, meaning: Meaning, occasion: int
) -> ReadingView | Decision | None:
    """Return what a person would sign: the person's own reading, or the decision."""
    if meaning is not Meaning.AUTHOR:
        is_there = view.state in (CaseState.ACCEPTED, CaseState.SIGNED)
        return view.decision if is_there else None
    mine = (reader_id, occasion)
    own_readings = [
        reading for reading in view.readings if (reading.reader, reading.occasion) == mine
    ]
    return own_readings[0] if own_readings else None


PROTOCOL: Final = "protocol.json"
FORM: Final = "form.json"
ORDER: Final = "queue.json"


def list_texts(protocol: Path | None, order: Path | None = None) -> tuple[tuple[str, str], ...]:
    """Return the files to freeze with a study, as (name, content).

    The form is written in full, because the terms may differ in another release of this software.

    Raises
    ------
    FormatError
        If the protocol or the queue is invalid.
    """
    texts = []
    form = None if protocol is None else read_protocol(protocol).form
    if protocol is not None:
        texts.append((PROTOCOL, read_protocol_text(protocol)))
    if form is not None:
        texts.append((FORM, form_text(form)))
    if order is not None:
        texts.append((ORDER, queue_text(read_queue(order))))
    return tuple(texts)


def order_cases(order: Path, case_ids: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the cases of a queue in order; if `case_ids` is not empty, only these cases.

    Raises
    ------
    CaseError
        If a case of `case_ids` is not in the queue.
    """
    queued = [one.case_id for one in read_queue(order).places]
    unknown = sorted(set(case_ids) - set(queued))
    if unknown:
        raise CaseError(
            f"expected every case to be in the queue {order}, but {unknown[0]!r} is not: leave "
            "out this case, or create the queue from scores that contain it"
        )
    return tuple(one for one in queued if not case_ids or one in set(case_ids))


def load_study_form(folder: Path, study: Study) -> Form | None:
    """Return the form of a study, or None if there is none.

    Raises
    ------
    FormatError
        If the file is missing, or was changed after the study was frozen.
    """
    return read_form(folder / FORM) if _require_same(folder, study, FORM) else None


def load_study_protocol(folder: Path, study: Study) -> Protocol | None:
    """Return a study's protocol, or None if there is none; errors as in `load_study_form`."""
    return read_protocol(folder / PROTOCOL) if _require_same(folder, study, PROTOCOL) else None


def load_study_queue(folder: Path, study: Study) -> Queue | None:
    """Return a study's queue, or None if there is none; errors as in `load_study_form`."""
    return read_queue(folder / ORDER) if _require_same(folder, study, ORDER) else None


def list_changed_files(folder: Path, study: Study) -> tuple[tuple[str, str], ...]:
    """Return the frozen files that were changed, as (name, description)."""
    changed = []
    for file in study.files:
        try:
            _require_same(folder, study, file.name)
        except FormatError as error:
            changed.append((file.name, str(error)))
    return tuple(changed)


def _require_same(folder: Path, study: Study, name: str) -> bool:
    """Return whether the study has a frozen file of this name; raise an error if it was changed."""
    digits = next((file.sha256 for file in study.files if file.name == name), "")
    if not digits:
        return False
    digest = sha256_of(folder / name)
    if digest != digits:
        raise FormatError(
            f"expected the study's {name} in {folder} to be unchanged (SHA-256 {digits[:16]}), "
            f"but found {digest[:16]}: restore the file from a backup or a colleague"
        )
    return True


_COVERED: Final = "…"


@dataclass(frozen=True)
class Pseudonymizer:
    """Replaces case ids with pseudonyms and removes the names of sites.

    If `names` is empty, nothing is replaced.
    """

    names: Mapping[str, str] = field(default_factory=dict)
    sites: tuple[str, ...] = ()

    def cover(self, text: str) -> str:
        """Replace case ids in a text with pseudonyms, and remove the names of sites.

        Examples
        --------
        >>> names = Pseudonymizer({"DUKE_001": "case-0007"}, ("DUKE",))
        >>> names.cover("a/DUKE_001_0000.nii.gz of DUKE")
        'a/case-0007_0000.nii.gz of …'
        """
        if not self.names:
            return text
        return self._hidden_words.sub(
            lambda hit: self._shown_by_id.get(hit[0].casefold(), _COVERED), text
        )

    def cover_queue(self, queue: Queue) -> Queue:
        """Return a queue with pseudonyms, leaving out cases that are not in the study."""
        if not self.names:
            return queue
        places = [
            replace(one, case_id=self.names[one.case_id])
            for one in queue.places
            if one.case_id in self.names
        ]
        return replace(queue, places=tuple(places))

    @cached_property
    def _shown_by_id(self) -> Mapping[str, str]:
        return {case_id.casefold(): name for case_id, name in self.names.items()}

    @cached_property
    def _hidden_words(self) -> re.Pattern[str]:
        """Return a pattern of ids and sites, longest first, since one id may begin with another."""
        ids = sorted(self.names, key=len, reverse=True)
        sites = sorted(self.sites, key=len, reverse=True)
        # an id matches as a whole, a site also as a prefix of other words, such as DUKE_001_0000
        parts = [rf"(?<![0-9A-Za-z]){re.escape(identifier)}(?![0-9A-Za-z])" for identifier in ids]
        parts += [rf"(?<![0-9A-Za-z]){re.escape(site)}(?![a-z])" for site in sites]
        return re.compile("|".join(parts), re.IGNORECASE)


NO_PSEUDONYMS: Final = Pseudonymizer()


def pseudonymize_store(store: FolderStore) -> Pseudonymizer:
    """If the study hides the site, replace the store's case ids; return the pseudonymizer."""
    whole = store.study
    if not whole.hides_site:
        return NO_PSEUDONYMS
    store.study = whole.pseudonymized
    return make_pseudonymizer(whole)


def make_pseudonymizer(study: Study) -> Pseudonymizer:
    """Return the pseudonymizer for a study."""
    names = {case.case_id: study.number_of(case.key) for case in study.cases}
    sites = sorted({case.site for case in study.cases if case.site})
    return Pseudonymizer(MappingProxyType(names), tuple(sites))
