"""The client of a review study for the window: atomic steps that may run in any thread."""

import json
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from napari_mamamia.core.blinding import Blinding, BlindReading, Hidden
from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.form import Form
from napari_mamamia.core.provenance import Maker, Provenance
from napari_mamamia.features.review.core.review import Meaning, ReadingMode, Role, StudyReader, Task
from napari_mamamia.features.review.io.claims import Claim
from napari_mamamia.features.review.io.client_files import ClientFiles, Draft
from napari_mamamia.features.review.io.mask_files import read_mask, write_mask_once
from napari_mamamia.features.review.io.share import Share
from napari_mamamia.features.review.io.store import FolderStore
from napari_mamamia.features.review.io.study_file import STUDY_NAME
from napari_mamamia.features.review.rules.states import CaseState
from napari_mamamia.features.review.rules.views import ReadingView
from napari_mamamia.features.review.services.client_records import (
    StudySnapshot,
    StudyTask,
    TaskRow,
    describe_age,
    leave_out_unseen,
    list_dispute_rows,
    list_reader_rows,
)
from napari_mamamia.features.review.services.images import find_images, require_images
from napari_mamamia.features.review.services.look import is_possible, list_possible, list_refused
from napari_mamamia.features.review.services.pseudonymizer import pseudonymize_store
from napari_mamamia.features.review.services.session import ReviewSession
from napari_mamamia.features.review.services.study_form import load_study_form, load_study_protocol
from napari_mamamia.findings.form_values import read_record
from napari_mamamia.io.files.json_text import read_json
from napari_mamamia.io.files.user_folders import review_folder
from napari_mamamia.io.workspace.protocol import Protocol
from napari_mamamia.io.workspace.provenance import sidecar_path, write_provenance
from napari_mamamia.io.workspace.workspace import Workspace

_KEEP_EVERY_S: Final = 60.0
"""Seconds between renewals of a claim during work; each renewal writes a file on the share."""
_DROPPED_S: Final = 1.0
JUDGES: Final = frozenset({Role.ADJUDICATOR, Role.LEAD})


class StudyClient:
    """A person's client of a study.

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
    def reader(self) -> StudyReader:
        """Return the person."""
        return self.session.reader

    @property
    def blinding(self) -> Blinding:
        """Return the items that the study hides from its readers."""
        return self.store.study.plan.blinding

    @property
    def is_judge(self) -> bool:
        """Return whether this person is an adjudicator."""
        return not JUDGES.isdisjoint(self.reader.roles)

    @property
    def turn(self) -> AbstractContextManager[bool]:
        """Return the lock held during a step."""
        return self._turn

    def close(self) -> None:
        """Release all claims, and send what can be sent."""
        with self._turn:
            self.session.close()
            self.store.keep_copy(is_due=True)

    # -------------------------------------------------------------------- looking

    def look(self, *, is_active: bool = False) -> StudySnapshot:
        """Send waiting events, renew claims during work, and return a snapshot of the study."""
        with self._turn:
            session = self.session
            self.store.send()
            trouble = self.store.trouble
            self.store.keep_copy()
            lost = self._renew_claims() if is_active else ()
            state = session.refresh()
            rows = session.queue()
            ids = {case.key: case.case_id for case in state.study.cases}
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
                    TaskRow(task, ids[task.case], reading.state)
                    for task, reading in rows
                    if reading.state in touched
                ),
                list_dispute_rows(session.disputes(), state, self.form) if self.is_judge else (),
                readers=list_reader_rows(state) if Role.LEAD in self.reader.roles else (),
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

    def _renew_claims(self) -> tuple[Claim, ...]:
        """Renew claims at intervals; return the claims that others took meanwhile."""
        if time.monotonic() - self._kept_at < _KEEP_EVERY_S:
            return ()
        self._kept_at = time.monotonic()
        return self.session.renew_claims()

    # -------------------------------------------------------------------- reading

    def take_next(self) -> StudyTask | None:
        """Claim the next possible reading; return None if no reading is left.

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

    def take(self, task: Task) -> StudyTask:
        """Claim a reading, or open a submitted reading, after checking its images.

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

    def _find_draft(self, task: Task, round_: int, reading: ReadingView, *, whole: bool) -> Draft:
        """Return the local draft, otherwise the answers submitted on another computer."""
        draft = self.files.read_draft(task, round_)
        if draft.answers or reading.answers == "{}":
            return draft
        return Draft(read_record(reading.answers, with_computed=whole), max(reading.active_s, 0))

    def _bring_mask(
        self, reading: ReadingView, case_id: str, workspace: Workspace, blinding: Blinding
    ) -> None:
        """Copy a mask submitted on another computer into its workspace."""
        path = workspace.refined(reading.reader, case_id)
        if path.exists():
            return
        write_mask_once(path, self.store.get_mask(reading.mask))
        made_blind = BlindReading(blinding).settings
        provenance = Provenance(case_id, Maker.READER, reading.reader, parameters=made_blind)
        write_provenance(provenance, sidecar_path(path), overwrite=True)

    def require_images(self, case: str) -> Path:
        """Return the location of a case's images; `CaseError` if they differ from the study's."""
        data_set = find_images(self.store.study, self.files)
        require_images(self.whole.case(case), data_set, self._known_images, self.pseudonymizer)
        return data_set

    def keep_draft(self, taken: StudyTask, draft: Draft, number: int | None = None) -> None:
        """Save answers and working time on this computer until submission; see `write_draft`."""
        self.files.write_draft(taken.task, taken.round, draft, number)

    def hand_in(
        self, taken: StudyTask, mask: tuple[Path, str] | None, draft: Draft
    ) -> Callable[[], object]:
        """Submit a reading; return a function that compares the case's readings within seconds.

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
            If the mask changed after it was saved, or this computer's disk refuses to write.
        """
        with self._turn:
            self.require_same_study()
            reading = self._find_reading(taken.task)
            if reading.state is CaseState.READ:
                raise CaseError(
                    f"expected an open reading of {taken.case_id}, but it was already submitted: "
                    "to change it reopen it with a reason"
                )
            if reading.state not in (CaseState.CLAIMED, CaseState.IN_WORK):
                self.session.claim(taken.task)
            elif not self.session.is_by_me(reading):
                raise CaseError(
                    f"expected {taken.case_id} to be open in this window, but you took it in "
                    f"another one since (on {reading.host}): submit it there, or close that window "
                    "and take it here again (Next case); answers and mask are kept"
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
        """Compare the readings of a case if all are submitted and not yet compared.

        In second-look mode, agreement of the second reader accepts the case.
        """
        with self._turn:
            self.session.compare(case)
            view = self.session.refresh().case(case)
            looks = [reading for reading in view.readings if reading.occasion == 0]
            is_second = len(looks) > 1 and looks[-1].reader == self.reader.reader_id
            is_second_look = self.store.study.plan.mode is ReadingMode.SECOND_LOOK
            if is_second_look and is_second and view.state is CaseState.READ and view.comparison:
                self.session.accept(case, looks[-1])

    def put_back(self, taken: StudyTask) -> None:
        """Return a reading to the queue; mask and answers stay on this computer."""
        with self._turn:
            reading = self._find_reading(taken.task)
            is_open = reading.state in (CaseState.CLAIMED, CaseState.IN_WORK)
            if is_open and self.session.is_by_me(reading):
                self.session.put_back(taken.task)

    def read_again(self, task: Task, reason: str) -> StudyTask:
        """Reopen a submitted reading, and claim it."""
        with self._turn:
            self.require_same_study()
            if not is_possible(self.session.refresh(), task):
                raise CaseError(
                    "expected a case that is not in adjudication, but it is: only an adjudicator "
                    "or the lead can reopen it now"
                )
            before = self.take(task)
            self.session.read_again(task, reason)
            self.keep_draft(before, before.draft)
            return self.take(task)

    def choose_images(self, data_set: Path) -> None:
        """Save the location of the images on this computer."""
        self.files.write_images(data_set)

    # -------------------------------------------------------------------- signing

    @property
    def has_key(self) -> bool:
        """Return whether this person has a signing key on this computer."""
        return self.session.key_file.exists()

    def sign(self, case: str, meaning: Meaning, passphrase: str, occasion: int = 0) -> str:
        """Sign, and make a key first if there is none; return the next required step, "" for none.

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
                "The signature is saved. It counts once a lead has countersigned your key: "
                "`mamamia review key` shows the 16 digits to read out."
            )

    # ---------------------------------------------------------------------- inner

    def _find_reading(self, task: Task) -> ReadingView:
        readings = self.session.refresh().case(task.case).readings
        mine = (task.reader, task.occasion)
        for reading in readings:
            if (reading.reader, reading.occasion) == mine:
                return reading
        raise CaseError(
            "expected one of your own readings, but it was reassigned to another reader: take the "
            "next"
        )

    def require_same_study(self) -> None:
        """Refuse to continue if the study file has changed."""
        self.session.refresh()
        if any(problem.path == STUDY_NAME for problem in self.session.problems):
            raise CaseError(
                f"expected the study as it was when this window opened it, but {STUDY_NAME} was "
                "changed since: nothing was written there; your work is kept on this computer; "
                "tell the lead"
            )

    def describe_claim(self, claim: Claim) -> str:
        """Describe the holder of a claim and the age of its last renewal."""
        is_me = claim.reader == self.reader.reader_id
        ids = {reader.reader_id for reader in self.store.study.readers}
        name = self.session.state.name(claim.reader) if claim.reader in ids else "somebody"
        who = "you, on another computer" if is_me else name
        return f"{who} ({claim.host}), last active {describe_age(claim.age_s)} ago"


def _describe_making(mask: Path) -> dict[str, str]:
    """Return the provenance of a mask as text, because events contain no floats."""
    try:
        content = read_json(sidecar_path(mask))
    except (OSError, ValueError):
        return {}
    return {"provenance": json.dumps(content, sort_keys=True, ensure_ascii=False)}


def list_people(folder: Path) -> tuple[str, ...]:
    """Return the names of the people in a study, for the choice of the reader."""
    store = FolderStore(folder, review_folder())
    return tuple(reader.name for reader in store.study.readers)


@dataclass(frozen=True, slots=True, eq=False)
class OpenedClient:
    """A client, its first snapshot, and the study's form, if any."""

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


def is_study(folder: Path) -> bool:
    """Return whether a folder holds a review study; wait for one second at most.

    Raises
    ------
    SilentShareError
        If the share does not answer within this time.
    """
    return Share(folder, answer_s=_DROPPED_S).look(lambda place: (place / STUDY_NAME).is_file())
