"""The window's client of a study, with data classes, and with steps that run in any thread."""

import json
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from napari_mamamia.core.blinding import Blinding, BlindReading, Hidden
from napari_mamamia.core.errors import CaseError, FormatError, MamamiaError
from napari_mamamia.core.form import Form
from napari_mamamia.core.progress import report_progress, saying
from napari_mamamia.core.provenance import Maker, Provenance
from napari_mamamia.features.review.core import review
from napari_mamamia.features.review.io.share import Share
from napari_mamamia.features.review.io.store import Claim, FolderStore, read_mask, write_mask_once
from napari_mamamia.features.review.io.study_file import NO_DRAFT, STUDY_NAME, ClientFiles, Draft
from napari_mamamia.features.review.rules.form_words import describe_reasons
from napari_mamamia.features.review.rules.replay import ReviewState
from napari_mamamia.features.review.rules.states import CaseState, CaseView, ReadingView
from napari_mamamia.features.review.services.check_study import ReaderProgress, list_progress
from napari_mamamia.features.review.services.look import (
    NO_PSEUDONYMS,
    Pseudonymizer,
    is_possible,
    list_possible,
    list_refused,
    load_study_form,
    load_study_protocol,
    load_study_queue,
    pseudonymize_store,
)
from napari_mamamia.features.review.services.session import ReviewSession, note_unblinding
from napari_mamamia.findings.form_values import read_record
from napari_mamamia.io.files.checksums import sha256_of_large
from napari_mamamia.io.files.json_text import read_json
from napari_mamamia.io.files.user_folders import review_folder
from napari_mamamia.io.workspace.protocol import Protocol
from napari_mamamia.io.workspace.provenance import sidecar_path, write_provenance
from napari_mamamia.io.workspace.workspace import Workspace


@dataclass(frozen=True, slots=True)
class TaskRow:
    """A row for one of the person's readings, submitted or current; `visit` is "" if unknown."""

    task: review.Task
    case_id: str
    state: CaseState
    visit: str = ""


@dataclass(frozen=True, slots=True)
class DisputeRow:
    """A case that waits for adjudication, with its disagreement and its holder or ""."""

    case: str
    case_id: str
    state: CaseState
    because: tuple[str, ...]
    judge: str = ""
    visit: str = ""


@dataclass(frozen=True, slots=True)
class StudySnapshot:
    """One person's view of a study at a given time.

    Parameters
    ----------
    n_ready
        Number of this person's readings that can be started or continued now.
    n_unsent, trouble
        Number of unsent events on this computer, and the reason.
    lost
        This person's claims that somebody else has taken over.
    problems
        Sentences that describe problems of the folder.
    states
        Number of cases in each state.
    origin
        SHA-256 of the study file, 64 digits.
    is_seen
        Whether the study's events were ever read on this computer; until then the states of cases
        are unknown.
    """

    study: str
    person: str
    roles: tuple[review.Role, ...]
    blinding: Blinding
    n_tasks: int
    n_read: int
    n_ready: int
    rows: tuple[TaskRow, ...]
    disputes: tuple[DisputeRow, ...] = ()
    readers: tuple[ReaderProgress, ...] = ()
    states: Mapping[str, int] | None = None
    n_unsent: int = 0
    trouble: str = ""
    lost: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    origin: str = ""
    is_seen: bool = True

    @property
    def n_left(self) -> int:
        """Return the number of open readings."""
        return self.n_tasks - self.n_read


@dataclass(frozen=True, slots=True)
class StudyTask:
    """A reading claimed by this person, with its workspace, images and saved draft.

    If `held` is not "", it describes another holder of the reading, and nothing is opened.
    `pseudonymizer` names the cases for the window.
    """

    task: review.Task
    case_id: str
    round: int
    state: CaseState
    blinding: Blinding
    data_set: Path
    workspace: Path
    draft: Draft = NO_DRAFT
    held: str = ""
    pseudonymizer: Pseudonymizer = NO_PSEUDONYMS


def leave_out_unseen(look: StudySnapshot) -> StudySnapshot:
    """Return a snapshot without case states, because all cases would wrongly seem unread."""
    return replace(
        look,
        n_read=0,
        n_ready=0,
        rows=(),
        disputes=(),
        readers=(),
        states=None,
        is_seen=False,
    )


def describe_age(seconds: float) -> str:
    """Format a duration in a suitable unit.

    Examples
    --------
    >>> describe_age(40), describe_age(200), describe_age(7300)
    ('40 s', '3 min', '2 h')
    """
    if seconds < 60:
        return f"{max(seconds, 0):.0f} s"
    return f"{seconds // 60:.0f} min" if seconds < 3600 else f"{seconds // 3600:.0f} h"


def list_dispute_rows(
    disputes: Iterable[CaseView], state: ReviewState, form: Form | None
) -> tuple[DisputeRow, ...]:
    """Return each case for an adjudicator once: disputes, agreements, then cases to sign."""
    views = list(disputes)
    for place in (CaseState.READ, CaseState.ACCEPTED):
        views += [case for case in state.cases if case.state is place]
    return tuple(
        DisputeRow(
            view.key,
            state.study.case(view.key).case_id,
            view.state,
            describe_reasons(form, view),
            state.name(view.adjudicator) if view.adjudicator else "",
            state.study.case(view.key).visit,
        )
        for view in {view.key: view for view in views}.values()
    )


def find_images(study: review.Study, files: ClientFiles) -> Path:
    """Return the image folder set on this computer, or else the folder named in the study."""
    return files.read_images() or Path(study.data_set)


def require_images(
    case: review.StudyCase,
    data_set: Path,
    known: set[tuple[Path, int, int]],
    pseudonymizer: Pseudonymizer = NO_PSEUDONYMS,
) -> None:
    """Raise an error if a case's images differ from those used to create the study.

    Parameters
    ----------
    case
        The case.
    data_set
        The data set with the images.
    known
        Verified files with size and modification time; newly verified files are added.
    pseudonymizer
        Pseudonymizer that is applied to messages about the case.

    Raises
    ------
    CaseError
        If a file is missing, or its content differs.
    SilentShareError
        If the images are on a share that does not respond.
    """
    name = pseudonymizer.cover(case.case_id)
    try:
        known.update(Share(data_set).run(partial(_hold_images, case, name, frozenset(known))))
    except CaseError as error:
        raise CaseError(pseudonymizer.cover(str(error))) from error


def _hold_images(
    case: review.StudyCase, name: str, known: frozenset[tuple[Path, int, int]], data_set: Path
) -> set[tuple[Path, int, int]]:
    stamps = set()
    for number, image in enumerate(case.images):
        text = f"Checking images: {name}"
        report_progress(number, len(case.images), text)
        path = data_set / image.name
        try:
            status = path.stat()
            stamp = (path, status.st_size, status.st_mtime_ns)
            with saying(text):  # the file name may reveal the site
                is_same = stamp in known or sha256_of_large(path) == image.sha256
        except (OSError, MamamiaError) as error:
            raise CaseError(
                f"expected the images of {name} at {data_set}, but {image.name} cannot be read: "
                "if the images are elsewhere on this computer, choose their folder (Images… on "
                "the Review page)"
            ) from error
        if not is_same:
            raise CaseError(
                f"expected the images of {name} to be unchanged since the study began, but {path} "
                "was changed, so nothing was opened: inform the lead, or choose the folder of "
                "the correct images (Images… on the Review page)"
            )
        stamps.add(stamp)
    return stamps


_KEEP_EVERY_S: Final = 60.0
"""Seconds between renewals of a claim during work; each renewal writes a file to the share."""


class StudyClient:
    """The client through which one person works on a study.

    Only one step runs at a time. A step returns immutable records; the changing state of the study
    stays in the client.

    Parameters
    ----------
    folder
        Folder of the study.
    who
        Name or id of the person.
    home
        This computer's folder of studies; None for the default.
    passphrase
        Passphrase of the person's key, if the key counts.

    Raises
    ------
    FormatError
        If there is no study, or the study or the key cannot be read.
    ProofNeededError
        If the person has a key that counts and no passphrase is given.
    CaseError
        If the study has no such person, or the passphrase does not decrypt the key.
    """

    def __init__(
        self, folder: Path, who: str, home: Path | None = None, passphrase: str = ""
    ) -> None:
        home = home or review_folder()
        store = FolderStore(folder, home)
        self.whole = store.study
        self.pseudonymizer = pseudonymize_store(store)
        self.folder, self.store = folder, store
        self.session = ReviewSession(store, who, home)
        try:
            self.session.prove(passphrase)
        except BaseException:
            self.session.close()
            raise
        self.files = ClientFiles(home, store.study.study_id)
        self.form: Form | None = None  # read by `open_client`
        self._turn = threading.RLock()
        self._known_images: set[tuple[Path, int, int]] = set()
        self._kept_at = -_KEEP_EVERY_S

    @property
    def reader(self) -> review.StudyReader:
        """The person who uses the client."""
        return self.session.reader

    @property
    def blinding(self) -> Blinding:
        """Return which items the study hides from its readers."""
        return self.store.study.plan.blinding

    @property
    def is_judge(self) -> bool:
        """Return whether this person is an adjudicator."""
        return self.reader.is_judge

    @property
    def turn(self) -> AbstractContextManager[bool]:
        """Return the lock that is held during a step."""
        return self._turn

    def close(self) -> None:
        """Release all claims, and send waiting events and masks if possible."""
        with self._turn:
            self.session.close()
            self.store.keep_copy(is_due=True)

    # -------------------------------------------------------------------- looking

    def look(self, *, is_active: bool = False) -> StudySnapshot:
        """Send waiting events, renew claims while working, and return a snapshot of the study."""
        with self._turn:
            session = self.session
            self.store.send()
            trouble = self.store.trouble
            self.store.keep_copy()
            lost = self._renew_claims() if is_active else ()
            state = session.refresh()
            rows = session.queue()
            ids = {case.key: case.case_id for case in state.study.cases}
            visits = {case.key: case.visit for case in state.study.cases}
            touched = (CaseState.READ, CaseState.IN_WORK, CaseState.CLAIMED)
            look = StudySnapshot(
                state.study.plan.name,
                state.name(self.reader.reader_id),
                self.reader.roles,
                self.blinding,
                len(rows),
                sum(reading.state is CaseState.READ for _, reading in rows),
                sum(1 for _ in list_possible(state, rows)),
                # Readings not yet begun are not listed, because a list would reveal hidden repeats.
                tuple(
                    TaskRow(task, ids[task.case], reading.state, visits[task.case])
                    for task, reading in rows
                    if reading.state in touched
                ),
                list_dispute_rows(session.disputes(), state, self.form) if self.is_judge else (),
                readers=self._list_readers(state),
                states={name.value: count for name, count in state.counts.items() if count},
                n_unsent=session.n_unsent,
                trouble=trouble or self.store.trouble,
                lost=tuple(ids.get(one.place.split(".")[0], one.place) for one in lost),
                problems=(
                    *(f"{problem.path}: {problem.text}" for problem in session.problems),
                    *(text for _, text in state.disputes),
                    *list_refused(state, *self.store.claim_holder(self.reader.reader_id)),
                ),
                origin=self.store.origin,
            )
            return look if self.store.is_known else leave_out_unseen(look)

    def _list_readers(self, state: ReviewState) -> tuple[ReaderProgress, ...]:
        if review.Role.LEAD not in self.reader.roles:
            return ()
        return tuple(reader for reader in list_progress(state) if reader.n_tasks)

    def _renew_claims(self) -> tuple[Claim, ...]:
        if time.monotonic() - self._kept_at < _KEEP_EVERY_S:
            return ()
        self._kept_at = time.monotonic()
        return self.session.renew_claims()

    # -------------------------------------------------------------------- reading

    def take_next(self) -> StudyTask | None:
        """Claim the next possible reading, or return None if there is no reading left.

        A reading claimed by another program of this person is skipped. If there is no other
        reading, the first skipped reading is returned with its holder.
        """
        with self._turn:
            self.require_same_study()
            held = None
            for task in list_possible(self.session.state, self.session.queue()):
                taken = self.take(task)
                if not taken.held:
                    return taken
                held = held or taken
            return held

    def take(self, task: review.Task) -> StudyTask:
        """Claim a reading, or open a submitted one, after checking its images.

        Raises
        ------
        CaseError
            If the images are missing or changed, or the study was changed.
        FormatError
            If the study has never been read on this computer.
        """
        with self._turn:
            self.require_same_study()
            case = self.store.study.case(task.case)
            data_set = self.require_images(task.case)
            reading = self._find_reading(task)
            held = ""
            if reading.state is not CaseState.READ:
                claim = self.session.claim(task)
                held = "" if self.session.holds(claim) else self.describe_claim(claim)
                if not held:
                    self.session.start(task)
                    reading = self._find_reading(task)
            round_ = self.session.state.case(task.case).round
            workspace = self.files.work_folder(task.reader, round_, str(task.occasion))
            blinding = self.session.blinding(task.case)
            if reading.mask:
                self._bring_mask(reading, case.case_id, Workspace(workspace), blinding)
            return StudyTask(
                task,
                case.case_id,
                round_,
                reading.state,
                blinding,
                data_set,
                workspace,
                self._find_draft(task, round_, reading, whole=not blinding.hides(Hidden.NUMBERS)),
                held,
                self.pseudonymizer,
            )

    def _find_draft(
        self, task: review.Task, round_: int, reading: ReadingView, *, whole: bool
    ) -> Draft:
        draft = self.files.read_draft(task, round_)
        if draft.answers or reading.answers == "{}":
            return draft
        return Draft(read_record(reading.answers, with_computed=whole), max(reading.active_s, 0))

    def _bring_mask(
        self, reading: ReadingView, case_id: str, workspace: Workspace, blinding: Blinding
    ) -> None:
        path = workspace.refined(reading.reader, case_id)
        if path.exists():
            return
        write_mask_once(path, self.store.get_mask(reading.mask))
        made_blind = BlindReading(blinding).settings
        provenance = Provenance(case_id, Maker.READER, reading.reader, parameters=made_blind)
        write_provenance(provenance, sidecar_path(path), overwrite=True)

    def require_images(self, case: str) -> Path:
        """Return the folder of a case's images; raise `CaseError` if the images differ."""
        data_set = find_images(self.store.study, self.files)
        require_images(self.whole.case(case), data_set, self._known_images, self.pseudonymizer)
        return data_set

    def keep_draft(self, taken: StudyTask, draft: Draft, number: int | None = None) -> None:
        """Save answers and working time on this computer until submission; see `write_draft`."""
        self.files.write_draft(taken.task, taken.round, draft, number)

    def hand_in(
        self, taken: StudyTask, mask: tuple[Path, str] | None, draft: Draft
    ) -> Callable[[], object]:
        """Submit a reading; return a function that compares the readings, which takes seconds.

        Parameters
        ----------
        taken
            The reading.
        mask
            The saved file and its SHA-256; None for an empty mask. The event also stores the
            provenance of the mask.
        draft
            Answers and working time.

        Raises
        ------
        CaseError
            If somebody else took the case meanwhile, or the study was changed.
        FormatError, SaveError
            If the mask changed after it was saved, or this computer's disk cannot be written.
        """
        with self._turn:
            self.require_same_study()
            reading = self._find_reading(taken.task)
            if reading.state is CaseState.READ:
                raise CaseError(
                    f"expected an open reading of {taken.case_id}, but it was already submitted: "
                    "to change it, reopen it with a reason"
                )
            if reading.state not in (CaseState.CLAIMED, CaseState.IN_WORK):
                self.session.claim(taken.task)
            elif not self.session.is_by_me(reading):
                raise CaseError(
                    f"expected {taken.case_id} to be open in this window, but you have opened it "
                    f"in another window (on {reading.host}): submit it there, or close that "
                    "window and open the case here again (Next case); answers and mask are kept"
                )
            hidden = {"hidden": ", ".join(taken.blinding.names)} if taken.blinding.is_blind else {}
            making = {} if mask is None else _describe_making(mask[0])
            self.session.finish(
                taken.task,
                None if mask is None else read_mask(*mask),
                draft.answers,
                draft.active_s,
                compares=False,
                **hidden,
                **making,
            )
        return partial(self.compare, taken.task.case)

    def compare(self, case: str) -> None:
        """Compare the readings of a case if all are submitted and they are not yet compared.

        In second-look mode, the case is accepted if the second reader agrees.
        """
        with self._turn:
            self.session.compare(case)
            view = self.session.refresh().case(case)
            looks = [reading for reading in view.readings if reading.occasion == 0]
            is_second = len(looks) > 1 and looks[-1].reader == self.reader.reader_id
            is_second_look = self.store.study.plan.mode is review.ReadingMode.SECOND_LOOK
            if is_second_look and is_second and view.state is CaseState.READ and view.comparison:
                self.session.accept(case, looks[-1])

    def put_back(self, taken: StudyTask) -> None:
        """Return a reading to the queue; mask and answers remain on this computer."""
        with self._turn:
            reading = self._find_reading(taken.task)
            is_open = reading.state in (CaseState.CLAIMED, CaseState.IN_WORK)
            if is_open and self.session.is_by_me(reading):
                self.session.put_back(taken.task)

    def read_again(self, task: review.Task, reason: str) -> StudyTask:
        """Reopen a submitted reading and claim it."""
        with self._turn:
            self.require_same_study()
            if not is_possible(self.session.refresh(), task):
                raise CaseError(
                    "this case is in adjudication: only an adjudicator or a lead can reopen it"
                )
            before = self.take(task)
            self.session.read_again(task, reason)
            self.keep_draft(before, before.draft)
            return self.take(task)

    def choose_images(self, data_set: Path) -> None:
        """Save the folder of the images on this computer."""
        self.files.write_images(data_set)

    # -------------------------------------------------------------------- signing

    @property
    def has_key(self) -> bool:
        """Return whether this person has a signing key on this computer."""
        return self.session.key_file.exists()

    def sign(self, case: str, meaning: review.Meaning, passphrase: str, occasion: int = 0) -> str:
        """Sign an item, creating a key if there is none; return the next required step, or "".

        Raises
        ------
        WrongPassphraseError
            If the passphrase does not decrypt the key.
        CaseError
            If the passphrase is too short for a new key, or there is nothing to sign.
        """
        with self._turn:
            if not self.has_key:
                self.session.make_key(passphrase)
            self.session.sign(case, meaning, passphrase, occasion)
            state = self.session.refresh()
            mine = [key for key in state.keys if key.reader == self.reader.reader_id]
            if any(one.counts for one in mine):
                return ""
            return (
                "The signature is saved. It becomes valid when a lead has countersigned your key: "
                "`mamamia review key` shows the 16 digits to read out."
            )

    # ---------------------------------------------------------------------- inner

    def _find_reading(self, task: review.Task) -> ReadingView:
        readings = self.session.refresh().case(task.case).readings
        mine = (task.reader, task.occasion)
        return next(reading for reading in readings if (reading.reader, reading.occasion) == mine)

    def require_same_study(self) -> None:
        """Raise an error if the study file was changed."""
        self.session.refresh()
        if any(problem.path == STUDY_NAME for problem in self.session.problems):
            raise CaseError(
                "expected the study to be unchanged since this window opened it, but "
                f"{STUDY_NAME} was changed, so nothing was written there: inform the lead; your "
                "work is kept on this computer"
            )

    def describe_claim(self, claim: Claim) -> str:
        """Describe the holder of a claim and the age of its last renewal."""
        is_me = claim.reader == self.reader.reader_id
        ids = {reader.reader_id for reader in self.store.study.readers}
        name = self.session.state.name(claim.reader) if claim.reader in ids else "somebody"
        who = "you, on another computer" if is_me else name
        return f"{who} ({claim.host}), last active {describe_age(claim.age_s)} ago"


def _describe_making(mask: Path) -> dict[str, str]:
    """Return the provenance of a mask as strings, because events contain no floats."""
    try:
        content = read_json(sidecar_path(mask))
    except (OSError, ValueError):
        return {}
    return {"provenance": json.dumps(content, sort_keys=True, ensure_ascii=False)}


def list_people(folder: Path) -> tuple[str, ...]:
    """Return the names of the people in a study, from which a reader chooses a name."""
    store = FolderStore(folder, review_folder())
    return tuple(reader.name for reader in store.study.readers)


@dataclass(frozen=True, slots=True, eq=False)
class OpenedClient:
    """A client with its first snapshot, and the study's form if it has one."""

    client: StudyClient
    look: StudySnapshot
    protocol: Protocol | None = None


def open_client(folder: Path, who: str, passphrase: str = "") -> OpenedClient:
    """Return a person's client; errors as in `StudyClient` and `load_study_form`."""
    client = StudyClient(folder, who, passphrase=passphrase)
    try:
        client.form = client.store.read_frozen(load_study_form)
        protocol = client.store.read_frozen(load_study_protocol)
        return OpenedClient(client, client.look(), protocol)
    except BaseException:
        client.close()
        raise


_STILL_READS: Final = "Hidden while you have open readings, because you would no longer be blind."


@dataclass(frozen=True, slots=True)
class QualityRow:
    """A case in the quality-control queue, with its reasons, and whether it has an error."""

    case_id: str
    why: str
    has_error: bool | None


@dataclass(frozen=True, slots=True)
class QualityStatus:
    """The quality-control queue with the results so far.

    `points` are (cases read, errors found), starting at zero cases; `says` describes the stopping
    rule.
    """

    rows: tuple[QualityRow, ...]
    points: tuple[tuple[int, int], ...]
    says: tuple[str, ...]


def why_blind(client: StudyClient) -> str:
    """Return why this person must not see all readings yet, or "" if the person may see them."""
    with client.turn:
        if not client.blinding.hides(Hidden.OTHER_READERS):
            return ""
        if not client.is_judge:
            return "Shown only to leads and adjudicators, because this study is blind."
        is_over = all(one.state is CaseState.READ for _, one in client.session.queue())
        return "" if is_over else _STILL_READS


def load_quality_status(client: StudyClient) -> QualityStatus | None:
    """Return the queue's status, or None without a queue or if it would unblind the person.

    A missing or changed queue file is reported in `says`.
    """
    try:
        queue = client.store.read_frozen(load_study_queue)
    except (FormatError, OSError) as error:
        return QualityStatus((), (), (str(error),))
    if queue is None or why_blind(client):
        return None
    queue = client.pseudonymizer.cover_queue(queue)
    # Imported here, because they load plotting and statistics.
    from napari_mamamia.features.review.rules.quality import follow_capture
    from napari_mamamia.features.review.services.quality_queue import describe_capture
    from napari_mamamia.features.review.services.report.study_report import list_marks

    with client.turn:
        marks = list_marks(client.session.state, queue)
    capture = follow_capture(queue, marks)
    rows = tuple(QualityRow(one.case_id, one.why, marks.get(one.case_id)) for one in queue.places)
    points = tuple((point.n_read, point.n_errors) for point in capture.points)
    return QualityStatus(rows, points, describe_capture(capture))


def describe_agreement(client: StudyClient) -> tuple[str, ...]:
    """Compute the readers' current agreement, which takes seconds, and return lines of text.

    In a blind study, an event visible to everybody records that the agreement was shown.

    Raises
    ------
    FormatError
        If some events cannot be read now.
    """
    from napari_mamamia.features.review.services.agreement.agree import (
        list_orders,
        measure_agreement,
    )
    from napari_mamamia.features.review.services.agreement.agreement_output import agreement_lines

    if why := why_blind(client):
        return (why,)
    with client.turn:
        note_unblinding(client.session, "agreement so far")
    store = FolderStore(client.folder, review_folder())
    pseudonymize_store(store)
    form = store.read_frozen(load_study_form)
    result = measure_agreement(store, None, list_orders(form, ()))
    left_out = (f"Left out: {one.case_id}: {one.what}: {one.why}" for one in result.left_out)
    return (*agreement_lines(result, form), *result.notes, *left_out)
