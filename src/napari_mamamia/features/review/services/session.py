"""One person's session in a study: claim, read, adjudicate, sign, and unblind.

Every step is an event, and the state of all events determines the allowed steps. A step that is not
allowed raises an error before anything is written.
"""

import getpass
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from napari_mamamia.core.blinding import NOT_BLIND, Blinding, Hidden
from napari_mamamia.core.errors import CaseError, Remedy
from napari_mamamia.core.provenance import now_utc, software_version
from napari_mamamia.features.review.core.review import Meaning, ReadingMode, Task
from napari_mamamia.features.review.io import keys
from napari_mamamia.features.review.io.store import Claim, EventStore, FolderStore
from napari_mamamia.features.review.rules import states
from napari_mamamia.features.review.rules.replay import ReplayMemory, ReviewState
from napari_mamamia.features.review.rules.signatures import (
    KeyView,
    SignedThing,
    enter_message,
    key_message,
    seal_of,
)
from napari_mamamia.features.review.services.compare import compare_readings, list_acceptable
from napari_mamamia.features.review.services.look import (
    find_person,
    find_subject,
    list_possible,
    pseudonymize_store,
    rank_dispute,
    replay_reading,
    require_counted,
    require_known,
    require_reason,
)
from napari_mamamia.io.files.append_file import canonical
from napari_mamamia.io.workspace.event_store import Event, EventProblem


class ProofNeededError(CaseError):
    """Error raised if a person must first prove possession of their valid key in this session."""


class ReviewSession:
    """One person's session in a study.

    Parameters
    ----------
    store
        The study.
    who
        Id or name.
    home
        The folder of keys on this computer.

    Raises
    ------
    CaseError
        If the study has no such person.
    """

    def __init__(self, store: EventStore, who: str, home: Path) -> None:
        self.store, self._home = store, home
        self._memory = ReplayMemory()
        self.problems: tuple[EventProblem, ...] = ()
        self.state = self.refresh()
        self.reader = find_person(self.state, who)
        bound = (
            lead_key.key
            for lead_key in store.study.lead_keys
            if lead_key.reader == self.reader.reader_id
        )
        keys.adopt_lead_key(home, self.key_file, bound)
        self._claims: dict[str, Claim] = {}
        self._has_entered = False
        self._is_proven = not any(key.counts for key in self._list_keys())

    @property
    def n_unsent(self) -> int:
        """Return the number of unsent events on this computer."""
        return self.store.unsent

    def close(self) -> None:
        """Release all claims, and send waiting events and masks if possible."""
        for claim in self._claims.values():
            self.store.release(claim)
        self._claims.clear()
        self.store.close()

    # ------------------------------------------------------------------- entering

    @property
    def needs_proof(self) -> bool:
        """Return whether this person must still prove possession of their valid key."""
        return not self._is_proven

    def prove(self, passphrase: str) -> None:
        """Sign the session's start with the person's valid key, so that others can verify it.

        Raises
        ------
        WrongPassphraseError
            If the passphrase does not decrypt the key.
        CaseError
            If the passphrase is missing, or for the reasons given in `read_counting_key`.
        """
        if self._is_proven:
            return
        public = self.read_counting_key()
        if not passphrase:
            raise ProofNeededError(
                f"expected the passphrase of the key of {self.reader.name}, but found none: enter "
                "the passphrase, because nobody else may use this name in the study",
                remedies=[Remedy("passphrase_file", ("FILE",))],
            )
        prev, seen = self.store.head_of(self.reader.reader_id), self._list_heads()
        about = self.store.claim_holder(self.reader.reader_id)
        message = enter_message(self.store.origin, *about, seal_of(prev, seen - {prev}))
        proof = keys.sign_with(self.key_file, passphrase, message)
        self._enter(seen - {prev}, key=public, proof=proof)
        self._is_proven = True

    def read_counting_key(self) -> str:
        """Return this person's valid public key from the key file on this computer.

        Raises
        ------
        CaseError
            If this computer has no key or a different key.
        FormatError
            If the key file is damaged.
        """
        name = self.reader.name
        if not self.key_file.exists():
            raise CaseError(
                f"expected the key of {name} at {self.key_file}, but it is not on this computer, "
                "and nobody else may use this name in the study: work on the computer where the "
                "key was created, copy the file from there, or use your own name"
            )
        public = keys.read_public_key(self.key_file)
        if not any(key.key == public and key.counts for key in self._list_keys()):
            raise CaseError(
                f"the key on this computer is not the valid key of {name}: ask a lead to "
                "countersign it, or work on the computer that has the valid key"
            )
        return public

    def _list_keys(self) -> Iterator[KeyView]:
        return (key for key in self.state.keys if key.reader == self.reader.reader_id)

    # -------------------------------------------------------------------- looking

    def refresh(self) -> ReviewState:
        """Read the study again and return its state."""
        reading = self.store.read()
        self.state = replay_reading(self.store, reading, self._memory)
        self.problems = reading.problems
        return self.state

    def queue(self) -> tuple[tuple[Task, states.ReadingView], ...]:
        """Return this reader's tasks in reading order, each with its reading."""
        mine = {}
        for view in self.state.cases:
            for reading in view.readings:
                if reading.reader == self.reader.reader_id:
                    mine[(view.key, reading.occasion)] = reading
        order = [
            (task.case, task.occasion) for task in self.state.study.tasks_of(self.reader.reader_id)
        ]
        order = [place for place in order if place in mine]
        order += sorted(place for place in mine if place not in order)
        return tuple(
            (Task(self.reader.reader_id, case, occasion), mine[(case, occasion)])
            for case, occasion in order
        )

    def next_task(self) -> Task | None:
        """Return the first open task that can be read now, or None if there is none."""
        return next(list_possible(self.state, self.queue()), None)

    def disputes(self) -> tuple[states.CaseView, ...]:
        """Return the cases with a disagreement or conflict, the lowest Dice first."""
        waiting = [
            view
            for view in self.state.cases
            if view.conflicts
            or view.state in (states.CaseState.DISAGREES, states.CaseState.IN_ADJUDICATION)
        ]
        return tuple(sorted(waiting, key=rank_dispute))

    def blinding(self, case: str) -> Blinding:
        """Return which items of a case are now hidden from this person.

        Adjudicators see finished readings; all other items that the study hides stay hidden.
        """
        blinding = self.state.study.plan.blinding
        view = self.state.case(case)
        is_looking = view.state in (states.CaseState.DISAGREES, states.CaseState.IN_ADJUDICATION)
        if self.reader.is_judge and (
            is_looking or view.decision is not None or not self._is_given(case)
        ):
            return Blinding(blinding.hidden - {Hidden.OTHER_READERS})
        if self.state.study.plan.mode is ReadingMode.SECOND_LOOK and self._is_given(case):
            return Blinding(blinding.hidden - {Hidden.OTHER_READERS})
        return blinding if blinding.is_blind else NOT_BLIND

    # -------------------------------------------------------------------- reading

    def claim(self, task: Task) -> Claim:
        """Claim a task; use `holds` to find out whether the claim succeeded.

        Raises `FormatError` if the study was never read on this computer, because this person may
        have read the case already.
        """
        place = f"{task.case}.{self.state.case(task.case).round}.{task.reader}.{task.occasion}"
        claim = self._claim_place(place)
        if self.holds(claim):
            self._add_to_case(states.Act.CLAIM, task.case, task.occasion)
        return claim

    def claim_case(self, case: str) -> Claim:
        """Claim a case for adjudication; use `holds` to find out whether the claim succeeded."""
        return self._claim_place(f"{case}.{self.state.case(case).round}.judge.0")

    def _claim_place(self, place: str) -> Claim:
        require_known(self.store)
        claim = self.store.claim(place, self.reader.reader_id)
        if self.holds(claim):
            self._claims[place] = claim
        return claim

    def holds(self, claim: Claim) -> bool:
        """Return whether this session holds a claim."""
        writer = self.store.claim_holder(self.reader.reader_id)
        return (claim.reader, claim.host, claim.session) == writer

    def is_by_me(self, reading: states.ReadingView) -> bool:
        """Return whether a reading's last step is by this session, or there is no step yet."""
        holder = self.store.claim_holder(self.reader.reader_id)
        return not reading.at or (reading.reader, reading.host, reading.session) == holder

    def renew_claims(self) -> tuple[Claim, ...]:
        """Renew all claims, and return the claims that somebody else has taken over."""
        claims = [claim for claim in self._claims.values() if not self.store.renew(claim)]
        for one in claims:
            self._claims.pop(one.place)
        return tuple(claims)

    def start(self, task: Task) -> Event:
        """Record that work on a claimed task has begun."""
        return self._add_to_case(states.Act.START, task.case, task.occasion)

    def put_back(self, task: Task) -> Event:
        """Release a task without submitting a reading."""
        self._let_go(task)
        return self._add_to_case(states.Act.RELEASE, task.case, task.occasion)

    def finish(
        self,
        task: Task,
        mask: bytes | None,
        answers: Mapping[str, Any] | None = None,
        active_s: int = 0,
        *,
        compares: bool = True,
        **more: str,
    ) -> Event:
        """Store a mask and submit the reading; after the last reading, compare the case.

        Parameters
        ----------
        task
            The task.
        mask
            The file (NIfTI, compressed); None for an empty mask.
        answers
            Answers of the form: JSON without floats.
        active_s
            Seconds of work.
        compares
            Whether to compare the readings at once, which takes seconds.
        more
            Further strings to store in the event, such as the hidden items.

        Raises
        ------
        SaveError
            If this computer cannot store the mask or the event.
        CaseError
            If the reading does not count, for example because the case was decided meanwhile.
        """
        sha256 = "" if mask is None else self.store.put_mask(mask)
        event = self._add_to_case(
            states.Act.READ,
            task.case,
            task.occasion,
            mask=sha256,
            answers=canonical(dict(answers or {})).decode(),
            active_s=int(active_s),
            **more,
        )
        self._let_go(task)
        if compares:
            self.compare(task.case)
        require_counted(self.refresh(), event)
        return event

    def read_again(self, task: Task, reason: str) -> Event:
        """Reopen a submitted reading of an undecided case; the earlier version is kept."""
        require_reason(reason)
        return self._add_to_case(states.Act.READ_AGAIN, task.case, task.occasion, reason=reason)

    def compare(self, case: str) -> Event | None:
        """Compare the readings of a case if all are submitted and they are not yet compared."""
        view = self.refresh().case(case)
        first = [reading for reading in view.readings if reading.occasion == 0]
        if view.state is not states.CaseState.READ or view.comparison is not None or len(first) < 2:
            return None
        difference = compare_readings(self.store, first, self.state.study.plan.triggers)
        return self._add_to_case(
            states.Act.COMPARE,
            case,
            of=sorted(one.hash for one in first),
            agrees=not difference.because,
            because=list(difference.because),
            values=dict(difference.values),
        )

    # -------------------------------------------------------------------- judging

    def adjudicate(self, case: str) -> Event:
        """Take a case whose readings disagree, for adjudication."""
        return self._add_to_case(states.Act.ADJUDICATE, case)

    def set_down(self, case: str) -> Event:
        """Return a case to the adjudication queue."""
        return self._add_to_case(states.Act.SET_DOWN, case)

    def accept(self, case: str, reading: states.ReadingView | None = None) -> Event:
        """Accept a reading of a case, by default the last one, after comparing the readings."""
        self.compare(
            case
        )  # the program that submitted the last reading may have ended before comparing
        one = reading or list_acceptable(self.refresh().case(case), self._id_of(case))[-1]
        return self._add_to_case(
            states.Act.ACCEPT, case, mask=one.mask, answers=one.answers, choice=one.reader
        )

    def decide(
        self,
        case: str,
        mask: bytes | str | None,
        choice: str,
        reason: str,
        answers: str = "{}",
        parents: Sequence[str] = (),
        how: Iterable[tuple[str, str]] = (),
    ) -> Event:
        """Record the decision on a case that is in adjudication.

        Parameters
        ----------
        case
            Key of the case.
        mask
            The bytes of a new mask file, or the SHA-256 of a stored mask; None for an empty mask.
        choice
            Source of the mask: a reader's id, a consensus rule, or "edited".
        reason
            The reason.
        answers
            Canonical JSON of the answers.
        parents, how
            For a derived mask: the SHA-256 of the source masks, and the parameters as strings; see
            `ConsensusMask`.
        """
        require_reason(reason)
        digits = mask if isinstance(mask, str) else self.store.put_mask(mask) if mask else ""
        about: dict[str, Any] = {"choice": choice, "reason": reason, "answers": answers}
        if parents:
            about |= {"parents": list(parents), "how": dict(how)}
        return self._add_to_case(states.Act.DECIDE, case, mask=digits, **about)

    def reject(self, case: str, reason: str) -> Event:
        """Reject a case and record the reason."""
        require_reason(reason)
        return self._add_to_case(states.Act.REJECT, case, reason=reason)

    def reopen(self, case: str, reason: str) -> Event:
        """Begin a new round for a decided case."""
        require_reason(reason)
        return self._add_to_case(states.Act.REOPEN, case, reason=reason)

    def remark(self, case: str, text: str) -> Event:
        """Record a note about a case."""
        return self._add_to_case(states.Act.NOTE, case, text=text)

    # -------------------------------------------------------------------- signing

    @property
    def key_file(self) -> Path:
        """Return the path of this person's key on this computer."""
        return keys.key_path(self._home, self.store.study.study_id, self.reader.reader_id)

    def make_key(self, passphrase: str) -> str:
        """Create this person's key on this computer, register it, and return the public key."""
        public = keys.make_key(self.key_file, passphrase)
        message = key_message(self.store.origin, self.reader.reader_id, public)
        proof = keys.sign_with(self.key_file, passphrase, message)
        self.add_to_study(states.Act.KEY, self.prepare_seal()[1], key=public, proof=proof)
        return public

    def sign(self, case: str, meaning: Meaning, passphrase: str, occasion: int = 0) -> Event:
        """Sign one's own reading (as author) or a decided case (as reviewer or approver).

        Raises
        ------
        CaseError
            If there is nothing to sign, or the passphrase is wrong.
        FormatError
            If there is no key on this computer.
        """
        view = self.refresh().case(case)
        subject = find_subject(view, self.reader.reader_id, meaning, occasion)
        if subject is None or not subject.hash:
            raise CaseError(
                f"{self._id_of(case)} cannot be signed as {meaning}, because its state is "
                f"{view.state}: read or accept it first"
            )
        thing = SignedThing(
            self.store.origin,
            self.reader.reader_id,
            self.state.name(self.reader.reader_id),
            case,
            self.store.study.signed_id(case),
            view.round,
            meaning,
            subject.mask,
            subject.answers_sha256,
            subject.hash,
            software_version(),
            now_utc(),
            seal_of(self.prepare_seal()[0], view.tips),
        )
        about = {
            **_make_body(states.Act.SIGN, view, occasion),
            "meaning": str(meaning),
            "subject": thing.subject,
            "mask": thing.mask,
            "name": thing.name,
            "software": thing.software,
            "signed_at": thing.at,
            "key": keys.read_public_key(self.key_file),
            "signature": keys.sign_with(self.key_file, passphrase, thing.message),
        }
        return self.store.append(self.reader.reader_id, about, view.tips)

    # ---------------------------------------------------------------------- inner

    def _is_given(self, case: str) -> bool:
        return any(
            reading.reader == self.reader.reader_id for reading in self.state.case(case).readings
        )

    def let_go_of_case(self, case: str) -> None:
        """Release this session's claim on a case."""
        self._release_places(f"{case}.", ".judge.0")

    def _let_go(self, task: Task) -> None:
        self._release_places(f"{task.case}.", f".{task.reader}.{task.occasion}")

    def _release_places(self, prefix: str, suffix: str) -> None:
        for place in [claim for claim in self._claims if claim.startswith(prefix)]:
            if place.endswith(suffix):
                self.store.release(self._claims.pop(place))

    def _id_of(self, case: str) -> str:
        return self.store.study.case(case).case_id

    def add_to_study(self, act: states.Act, seen: Iterable[str] = (), **about: Any) -> Event:
        """Append an event that belongs to no case."""
        self._enter_once(act)
        return self.store.append(self.reader.reader_id, {"act": str(act), **about}, seen)

    def prepare_seal(self) -> tuple[str, tuple[str, ...]]:
        """Return the hash of this session's previous event, and the other chains' last hashes."""
        self._enter_once(states.Act.SIGN)
        prev = self.store.head_of(self.reader.reader_id)
        return prev, tuple(sorted(self._list_heads() - {prev}))

    def _add_to_case(self, act: states.Act, case: str, occasion: int = 0, **about: Any) -> Event:
        self._enter_once(act)
        view = self.refresh().case(case)
        require_known(self.store)
        body = {**_make_body(act, view, occasion), **about}
        return self.store.append(self.reader.reader_id, body, view.tips)

    def _enter_once(self, act: states.Act) -> None:
        if act not in states.SIGNED_ACTS:
            self.prove("")
        if not self._has_entered:
            self._enter(self._list_heads())

    def _enter(self, seen: Iterable[str], **proof: str) -> None:
        self._has_entered = True
        account = ""
        with suppress(OSError, KeyError, ImportError):
            account = getpass.getuser()
        about = {"act": str(states.Act.ENTER), "software": software_version(), "account": account}
        self.store.append(self.reader.reader_id, {**about, **proof}, seen)

    def _list_heads(self) -> set[str]:
        return {chain[-1].hash for chain in self.store.read().chains.values() if chain}


def _make_body(act: states.Act, view: states.CaseView, occasion: int) -> dict[str, Any]:
    body = {"act": str(act), "case": view.key, "round": view.round}
    return body | ({"occasion": occasion} if occasion else {})


_SHOWN_BY_ALL: Final = frozenset({Hidden.OTHER_READERS, Hidden.SITE})
"""Items that a report, an export or the agreement of all readers reveals."""


def may_see_all(session: ReviewSession) -> bool:
    """Return whether a person may see all readings: an adjudicator without open readings."""
    everything_read = all(reading.state is states.CaseState.READ for _, reading in session.queue())
    return session.reader.is_judge and everything_read


def begin_pseudonymized(store: FolderStore, who: str, home: Path) -> ReviewSession:
    """Return a person's session, with pseudonyms if the study hides the site from the person.

    Messages of the session then contain no case ids either.
    """
    session = ReviewSession(store, who, home)
    if not may_see_all(session):
        pseudonymize_store(store)
        session.refresh()
    return session


def require_unblinding(
    store: EventStore,
    who: str,
    reason: str,
    home: Path,
    ask: Callable[[], str] = str,
    what: str = "all readings",
) -> None:
    """Check that a person may see all readings of a study, and record the access as an event.

    Nothing is required if the study hides neither readers nor the site. A person with a valid key
    must prove possession of it. A lead or an adjudicator without open readings needs no reason; any
    other person must give a reason. This check does not restrict access to the folder, but makes
    unblinding visible.

    Parameters
    ----------
    store
        The study.
    who
        Id or name.
    reason
        The reason for unblinding.
    home
        This computer's folder of keys.
    ask
        Function that returns the passphrase of the person's key; called if the key is valid.
    what
        Description of what is shown; recorded if no reason is given.

    Raises
    ------
    CaseError
        If the study is blind and no person is named, a required reason is missing, the key is not
        on this computer, or the passphrase is wrong.
    """
    blinding = Blinding(store.study.plan.blinding.hidden & _SHOWN_BY_ALL)
    if not blinding.is_blind:
        return
    if not who.strip():
        why = "the site is hidden in this study"
        if blinding.hides(Hidden.OTHER_READERS):
            why = "readers of this study do not see each other"
        raise CaseError(
            "expected the name of the person who asks, but found none: enter the name, because "
            f"{why}",
            remedies=(Remedy("reader", ("NAME",)),),
        )
    session = ReviewSession(store, who, home)
    if session.needs_proof:
        session.read_counting_key()  # checked before the passphrase is requested
        session.prove(ask())
    if not reason.strip() and not may_see_all(session):
        why = "is neither lead nor adjudicator"
        if session.reader.is_judge:
            why = "has open readings in this study"
        raise CaseError(
            f"expected a reason, but found none: {session.reader.name} {why} and would no longer "
            "be blind; ask a lead to do this, or enter a reason, which everybody will see",
            remedies=(Remedy("unblind", ("REASON",)),),
        )
    note_unblinding(session, reason.strip() or what)
    session.close()


def note_unblinding(session: ReviewSession, text: str) -> None:
    """Record that a person sees all readings of a blind study, and why, visibly to everybody."""
    blinding = Blinding(session.store.study.plan.blinding.hidden & _SHOWN_BY_ALL)
    if blinding.is_blind:
        session.add_to_study(states.Act.UNBLIND, text=text, shown=list(blinding.names))
