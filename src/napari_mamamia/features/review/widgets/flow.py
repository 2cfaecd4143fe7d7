"""Controller of the Review page: open a study, begin as one person, and refresh regularly."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from qtpy.QtCore import QCoreApplication, QEvent, QTimer, Signal

from napari_mamamia.core.blinding import Blinding
from napari_mamamia.core.texts import tr
from napari_mamamia.features.review.core.review import ConsensusRule
from napari_mamamia.features.review.io.keys import WrongPassphraseError
from napari_mamamia.features.review.services.client import OpenedClient, StudyClient, StudySnapshot
from napari_mamamia.features.review.services.compare import ConsensusMask
from napari_mamamia.features.review.services.judging import (
    Decided,
    Difference,
    Dispute,
    LesionTable,
    ShownReading,
)
from napari_mamamia.features.review.services.plan_study import (
    FreezeSetup,
    SetupError,
    StudyDraft,
    StudySetup,
)
from napari_mamamia.features.review.services.session import ProofNeededError
from napari_mamamia.features.review.services.signing import RevocableKey, Signable
from napari_mamamia.features.review.widgets.judging_texts import NO_MASK, NO_REASON, OTHER_GRID
from napari_mamamia.features.review.widgets.judging_view import JudgingView
from napari_mamamia.features.review.widgets.leading_view import ProgressView
from napari_mamamia.features.review.widgets.page import ExtraSnapshot, ReviewPage
from napari_mamamia.features.review.widgets.planning_view import PlanningView
from napari_mamamia.features.review.widgets.reading import Reading
from napari_mamamia.features.review.widgets.services import review_services
from napari_mamamia.features.review.widgets.signing_view import SigningView
from napari_mamamia.features.review.widgets.study_case import StudyCase, StudyPlace
from napari_mamamia.io.files.file_names import case_key
from napari_mamamia.widgets.base.event_loop import EventLoopSteps
from napari_mamamia.widgets.base.layers import Role, tag_for
from napari_mamamia.widgets.base.notify import plain_text
from napari_mamamia.widgets.base.session import SessionMask
from napari_mamamia.widgets.cases.listing import Listing
from napari_mamamia.widgets.refine.editing import Editing
from napari_mamamia.widgets.refine.protocols import Protocols
from napari_mamamia.widgets.refine.readers import Readers
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart
from napari_mamamia.widgets.viewer.opening import Opening

T = TypeVar("T")

_LANE: Final = "review"


class Judging(WindowPart):
    """A controller that connects the adjudicator's view, the client and the displayed case.

    The signal `stepped` is emitted after a case was opened, decided, accepted, reopened or returned
    to the queue.
    """

    stepped = Signal()

    def __init__(
        self,
        context: WindowContext,
        view: JudgingView,
        case: StudyCase,
        opening: Opening,
        editing: Editing,
    ) -> None:
        super().__init__(context)
        self._view, self._case, self._editing = view, case, editing
        self._late = EventLoopSteps(self)
        self._shown: tuple[ShownReading, ...] = ()
        self._parts: tuple[Difference, ...] = ()
        self._lesions = LesionTable()
        self._at = -1
        self._by_distance = False
        self._consensus: ConsensusMask | None = None
        self.client: StudyClient | None = None
        self.dispute: Dispute | None = None
        opening.case_shown.connect(self._show_pair)
        view.case_wanted.connect(self.take_up)
        view.pair_wanted.connect(self.show_pair)
        view.order_wanted.connect(self.set_order)
        view.difference_wanted.connect(self.step_difference)
        view.lesion_wanted.connect(self.show_lesion)
        view.reading_wanted.connect(self.take_reading)
        view.rule_wanted.connect(self.take_rule)
        view.decision_wanted.connect(self.decide)
        view.leaving_out_wanted.connect(self.leave_out)
        view.set_down_wanted.connect(self.set_down)
        view.acceptance_wanted.connect(self.accept_unseen)
        view.reopening_wanted.connect(self.reopen)

    def begin(self, client: StudyClient | None) -> None:
        """Start adjudication with a client; None ends adjudication."""
        self.client = client
        self._let_go()

    def _let_go(self) -> None:
        self.dispute, self._shown, self._parts, self._consensus = None, (), (), None
        self._view.show_dispute(None)

    def _show_again(self) -> None:
        self._view.show_dispute(self.dispute)
        self.stepped.emit()

    # ------------------------------------------------------------------ taking up

    def take_up(self, case: str) -> None:
        """Claim a case for this adjudicator, and show its readings."""
        client = self.client
        if client is None:
            return
        open_dispute = review_services(self._services).open_dispute

        def take(all_saved: bool) -> None:
            if all_saved:
                self._view.show_dispute(self.dispute, is_busy=True)
                self._jobs.start(
                    _LANE,
                    tr("Opening this case"),
                    lambda: open_dispute(client, case),
                    self._show_dispute,
                    ended=self._show_again,
                )

        self._editing.save_if_needed(take)

    def _show_dispute(self, dispute: Dispute) -> None:
        if dispute.held:
            self._notifier.warn(
                tr("{case_id} is reserved by {held}.", case_id=dispute.case_id, held=dispute.held)
            )
            return
        self.dispute, self._consensus = dispute, None
        self._shown = dispute.readings[:2]
        self._view.show_readings(dispute)
        self._case.show(dispute.case_id, _place_of(dispute))

    def show_pair(self, first: int, second: int) -> None:
        """Show two readings of the case, given by their indices."""
        if self.dispute is not None and first != second:
            self._shown = (self.dispute.readings[first], self.dispute.readings[second])
            self._show_pair()

    def _show_pair(self) -> None:
        dispute, case = self.dispute, self._session.case
        if dispute is None or case is None:
            return
        if not self._case.is_at(dispute.case_id, _place_of(dispute)):
            return
        pairs = zip((Role.READING_A, Role.READING_B), self._shown, strict=False)
        self._late.start([partial(self._show_mask, role, one) for role, one in pairs])
        self._view.show_pair(self._shown[0], self._shown[1] if len(self._shown) > 1 else None)
        self._look_for_differences()

    def _show_mask(self, role: Role, reading: ShownReading) -> None:
        case = self._session.case
        if case is None or reading not in self._shown:
            return
        if reading.labels is None:
            self._scene.remove_mask(role)
            self._session.drop_mask(role)
        elif not reading.labels.grid.is_same_place(case.grid):
            self._notifier.warn(OTHER_GRID.format(reading.name))
        else:
            buffer = self._services.uint8_mask(reading.labels)
            self._scene.show_mask(tag_for(case, role), buffer)
            self._session.set_mask(SessionMask(role, reading.name, buffer, reading.labels))

    # ---------------------------------------------------------------- differences

    def set_order(self, by_distance: bool) -> None:
        """Sort differences by distance or by size."""
        self._by_distance = by_distance
        self._look_for_differences()

    def _look_for_differences(self) -> None:
        self._parts, self._at, self._lesions = (), -1, LesionTable()
        if len(self._shown) < 2:
            self._view.show_difference(None, -1, 0)
            self._view.show_lesions(None)
            return
        first, second = self._shown
        by_distance, form = self._by_distance, self.client.form if self.client else None
        list_differences = review_services(self._services).list_differences
        list_lesions = review_services(self._services).list_lesions
        self._jobs.start(
            "review differences",
            tr("Searching for differences"),
            lambda: (
                list_lesions(first, second, form),
                list_differences(first, second, by_distance=by_distance),
            ),
            self._show_differences,
            still=lambda: self._shown == (first, second),
            shown=False,
        )

    def _show_differences(self, look: tuple[LesionTable, tuple[Difference, ...]]) -> None:
        self._lesions, parts = look
        self._view.show_lesions(self._lesions)
        self._parts, self._at = parts, -1
        if parts:
            self.step_difference(1)
        else:
            self._view.show_difference(None, -1, 0)

    def step_difference(self, by: int) -> None:
        """Go to the next or previous difference, wrapping around at the end."""
        if not self._parts:
            return
        self._at = (self._at + by) % len(self._parts)
        part = self._parts[self._at]
        self._scene.view.reveal(part.voxel)
        self._view.show_difference(part, self._at, len(self._parts))

    def show_lesion(self, at: int) -> None:
        """Go to the lesion at the given index in the list."""
        if 0 <= at < len(self._lesions.rows):
            voxel = self._lesions.rows[at].voxel
            self._scene.view.reveal(voxel)

    # ------------------------------------------------------------------- deciding

    def take_reading(self, at: int) -> None:
        """Copy the reading with the given index into the adjudicator's mask."""
        if self._is_on_screen() and self.dispute is not None:
            reading = self.dispute.readings[at]
            self._consensus = None
            self._editing.start_with(reading.labels, f"reading of {reading.name}")
            self._view.show_choice(
                tr("Copied from {name}; continue drawing, or decide.", name=reading.name)
            )

    def take_rule(self, rule: ConsensusRule) -> None:
        """Copy the consensus of all readings, by a rule, into the adjudicator's mask."""
        client, dispute = self.client, self.dispute
        if client is None or dispute is None or not self._is_on_screen():
            return
        fuse = review_services(self._services).fuse_dispute

        def take(made: ConsensusMask) -> None:
            self._consensus = made
            self._editing.start_with(made.labels, f"{made.rule} of the readings")
            self._view.show_choice(
                tr("Made by the rule {rule}; continue drawing, or decide.", rule=made.rule)
            )

        self._jobs.start(
            "review rule",
            tr("Computing the {rule} of the readings", rule=rule),
            lambda: fuse(client, dispute, rule),
            take,
            still=lambda: self.dispute is dispute,
        )

    def decide(self, reason: str, answers_of: int) -> None:
        """Record the adjudicator's mask as the decision on the case."""
        dispute = self.dispute
        if dispute is None or not self._is_on_screen():
            return
        if not reason.strip():
            self._view.ask_reason()
        elif self._session.mask(Role.REFINED) is None:
            self._view.say(NO_MASK)
        else:
            answers = dispute.readings[max(answers_of, 0)]
            self._editing.saving.save_if_new(
                lambda saved: self._decide_saved(dispute, reason, answers) if saved else None
            )

    def _decide_saved(self, dispute: Dispute, reason: str, answers: ShownReading) -> None:
        client, mask, consensus = self.client, self._session.mask(Role.REFINED), self._consensus
        if client is None or mask is None or mask.saved is None or dispute is not self.dispute:
            return
        saved: tuple[Path, str] = (mask.saved.path, mask.saved.sha256)
        decide = review_services(self._services).decide_dispute
        fill = self._services.findings.fill_hidden
        form, case, record = client.form, self._session.case, self._session.record
        measure = None
        if form is not None and case is not None:
            measure = partial(fill, form, case, record=record)

        def tell(decided: Decided) -> None:
            if decided.lost:
                self._notifier.hint(
                    tr(
                        "{case_id} is decided. The answers of {name} about lesion {lost} are only "
                        "in that reading, because the accepted mask has no such lesion.",
                        case_id=dispute.case_id,
                        name=answers.name,
                        lost=", ".join(decided.lost),
                    )
                )

        self._finish_case(
            tr("Deciding {case_id}", case_id=dispute.case_id),
            lambda: decide(client, dispute, saved, reason, answers, consensus, measure),
            tell,
        )

    def leave_out(self, reason: str) -> None:
        """Reject the case."""
        client, dispute = self.client, self.dispute
        if client is None or dispute is None:
            return
        if not reason.strip():
            self._view.ask_reason()
            return
        leave_out = review_services(self._services).leave_out
        self._finish_case(
            tr("Rejecting {case_id}", case_id=dispute.case_id),
            lambda: leave_out(client, dispute, reason),
        )

    def set_down(self) -> None:
        """Return the case to the adjudication queue."""
        client, dispute = self.client, self.dispute
        if client is None or dispute is None:
            return
        put_down = review_services(self._services).set_down

        def go_on(all_saved: bool) -> None:
            if all_saved:
                self._finish_case(
                    tr("Returning {case_id} to the queue", case_id=dispute.case_id),
                    lambda: put_down(client, dispute),
                )

        self._editing.save_if_needed(go_on)

    def _finish_case(
        self,
        doing: str,
        work: Callable[[], T],
        tell: Callable[[T], object] = lambda _outcome: None,
    ) -> None:
        self._view.show_dispute(self.dispute, is_busy=True)

        def end(outcome: T) -> None:
            self._let_go()
            self._case.leave()
            tell(outcome)

        self._jobs.start(_LANE, doing, work, end, ended=self._show_again)

    def _is_on_screen(self) -> bool:
        dispute = self.dispute
        is_there = dispute is not None and self._case.is_at(dispute.case_id, _place_of(dispute))
        if dispute is not None and not is_there:
            self._view.say(
                tr("Another case is on screen: return this case to the queue and open it again.")
            )
        return is_there

    # --------------------------------------------------------------- without a look

    def accept_unseen(self, case: str) -> None:
        """Accept a case whose readings agree, without viewing it."""
        client = self.client
        if client is not None:
            accept_case = review_services(self._services).accept_case
            self._step_case(tr("Accepting this case"), lambda: accept_case(client, case))

    def reopen(self, case: str, reason: str) -> None:
        """Begin a new round for a decided case."""
        client = self.client
        if client is None:
            return
        if not reason.strip():
            self._notifier.hint(NO_REASON)
            return
        reopen_case = review_services(self._services).reopen_case
        self._view.why_again.clear()
        self._step_case(tr("Reopening this case"), lambda: reopen_case(client, case, reason))

    def _step_case(self, doing: str, work: Callable[[], object]) -> None:
        self._jobs.start(_LANE, doing, work, lambda _done: None, ended=self.stepped.emit)


def _place_of(dispute: Dispute) -> StudyPlace:
    return StudyPlace(dispute.data_set, dispute.workspace, dispute.blinding, dispute.pseudonymizer)


_LOOK_EVERY_MS: Final = 5_000
_CLOSING_S: Final = (0.3, 1.7)
"""Seconds to wait for the share when the window closes: first silently, then with a message."""
_HEAD_DIGITS: Final = 16
"""Number of checksum digits that are displayed, as in `mamamia review verify`."""
_PLAN: Final = "review plan"
_NO_FOLDER: Final = tr("Choose a new folder for the study first.")
_LOOK: Final = "review look"
_BEGIN: Final = "review begin"
_TOO_LATE: Final = tr(
    "The study {} is blinded, but cases were already open in this window. Open the study in a new "
    "window: mamamia view --study {}"
)
_LEAVING: Final = tr(
    "Closing the study {}: waiting for its folder to respond. Your answers and masks are saved on "
    "this computer."
)
_LEFT: Final = tr(
    "The study {} was closed before its folder responded. Your work is saved on this computer and "
    "sent when you open the study here again. A case that you had opened is reserved for you "
    "here; others can open it after 30 minutes."
)
_KEY_NEEDED: Final = tr(
    "{} has a valid key in this study, so nobody can use this name without the key. Type the "
    "key's passphrase."
)
_ONE_STUDY: Final = tr(
    "This window shows the study {}. To open another study, start another window: mamamia view "
    "--study FOLDER"
)


class Planning(WindowPart):
    """A controller that connects the form for a new study with the services.

    The signal `frozen` is emitted with the folder of the new study and the SHA-256 of its study
    file.
    """

    frozen = Signal(object, str)

    def __init__(self, context: WindowContext, view: PlanningView) -> None:
        super().__init__(context)
        self._view = view
        self._draft: tuple[StudySetup, StudyDraft] | None = None
        view.draft_wanted.connect(self.draft)
        view.cases_wanted.connect(self.list_cases)
        view.freezing_wanted.connect(self.freeze)

    def propose_data_set(self) -> None:
        """Enter the open data set into an empty form."""
        opened = self._session.opened
        if opened is not None and not self._view.data_set.text().strip():
            self._view.data_set.setText(str(opened.data_set.root))

    def list_cases(self, data_set: Path) -> None:
        """List the cases of a data set so that the user can select some."""
        list_case_ids = review_services(self._services).list_case_ids
        self._jobs.start(
            _PLAN,
            tr("Listing the cases"),
            lambda: list_case_ids(data_set),
            self._view.cases.show_ids,
            still=lambda: self._view.setup.data_set == data_set,
            failed=self._show_problem,
        )

    def draft(self, setup: StudySetup) -> None:
        """Assign cases to readers and show the draft."""
        plan_study = review_services(self._services).plan_study
        self._draft = None

        def show(draft: StudyDraft) -> None:
            self._draft = (setup, draft)
            self._view.show_draft(draft)

        self._jobs.start(
            _PLAN,
            tr("Planning the study"),
            lambda: plan_study(setup),
            show,
            still=lambda: self._view.setup == setup,
            failed=self._show_problem,
        )

    def _show_problem(self, error: Exception) -> None:
        field = error.field if isinstance(error, SetupError) else "data_set"
        self._view.show_problem(field, plain_text(error))

    def freeze(self, setup: FreezeSetup) -> None:
        """Write the study that is shown as a draft."""
        if setup.folder == Path():
            self._view.show_problem("folder", _NO_FOLDER)
            return
        if self._draft is None or self._draft[0] != self._view.setup:
            self._view.show_draft(None)
            return
        draft, freeze_with_keys = self._draft[1], review_services(self._services).freeze_with_keys
        self._jobs.start(
            _PLAN,
            tr("Freezing the study"),
            lambda: freeze_with_keys(draft, setup),
            lambda origin: self.frozen.emit(setup.folder, origin),
            failed=self._show_problem,
        )


class Leading(WindowPart):
    """A controller that connects the lead's view with the services."""

    def __init__(self, context: WindowContext, view: ProgressView) -> None:
        super().__init__(context)
        self._view = view
        self.client: StudyClient | None = None
        view.agreement_wanted.connect(self.measure_agreement)

    def measure_agreement(self) -> None:
        """Compute and show the current agreement of the readers."""
        client, describe_agreement = self.client, review_services(self._services).describe_agreement
        if client is not None:
            self._jobs.start(
                "review agreement",
                tr("Comparing all readings"),
                lambda: describe_agreement(client),
                self._view.show_agreement,
            )


class Signing(WindowPart):
    """A controller that connects the view of signatures and keys with the client.

    The signal `stepped` is emitted after each step.
    """

    stepped = Signal()

    def __init__(self, context: WindowContext, view: SigningView) -> None:
        super().__init__(context)
        self._view = view
        self.client: StudyClient | None = None
        view.key_wanted.connect(self.make_key)
        view.signatures_wanted.connect(self.sign)
        view.countersigning_wanted.connect(self.countersign)
        view.ending_wanted.connect(self.end)

    def make_key(self, passphrase: str) -> None:
        """Create this person's key, or a replacement for a lost key."""
        client, make_own_key = self.client, review_services(self._services).make_own_key
        if client is not None:
            self._take_step(
                tr("Creating your key"), lambda: make_own_key(client, passphrase), self._tell_key
            )

    def _tell_key(self, digits: str) -> None:
        self._view.end_key()
        self._notifier.hint(tr("Your key is ready. Its digits: {digits}", digits=digits))

    def sign(self, things: tuple[Signable, ...], passphrase: str) -> None:
        """Sign the selected items."""
        client, sign_things = self.client, review_services(self._services).sign_things
        if client is not None:
            work = partial(sign_things, client, things, passphrase)
            self._take_step("Signing", work, self._notifier.hint)

    def countersign(self, name: str, digits: str, passphrase: str) -> None:
        """Countersign another person's key as a lead."""
        client, countersign_key = self.client, review_services(self._services).countersign_key
        if client is not None:
            work = partial(countersign_key, client, name, digits, passphrase)
            self._take_step("Countersigning", work, self._notifier.hint)

    def end(self, key: RevocableKey, reason: str, since: str, passphrase: str) -> None:
        """Revoke a lost or stolen key."""
        client, end_key = self.client, review_services(self._services).end_key
        if client is not None:
            work = partial(end_key, client, key, reason, since, passphrase)
            self._take_step(tr("Revoking a key"), work, self._tell_end)

    def _tell_end(self, text: str) -> None:
        self._view.close_ending()
        self._notifier.hint(text)

    def _take_step(self, doing: str, work: Callable[[], T], then: Callable[[T], object]) -> None:
        self._view.end_secrets()
        self._jobs.start(
            "review sign",
            doing,
            work,
            then,
            failed=lambda error: self._view.say(plain_text(error)),
            ended=self.stepped.emit,
        )


class ReviewFlow(WindowPart):
    """A controller that connects the Review page, the client and the views.

    The signal `shown_wanted` requests the Review page.
    """

    shown_wanted = Signal()

    def __init__(
        self,
        context: WindowContext,
        page: ReviewPage,
        listing: Listing,
        opening: Opening,
        editing: Editing,
        readers: Readers,
        protocols: Protocols,
    ) -> None:
        super().__init__(context)
        self.page, self._readers, self._editing = page, readers, editing
        self._protocols = protocols
        self._folder: Path | None = None
        self.client: StudyClient | None = None
        case = StudyCase(context, listing, opening, editing)
        self.reading = Reading(context, page.reading, page.form, case, opening, editing)
        self.reading.shown_wanted.connect(self.shown_wanted)
        self.reading.stepped.connect(self.look)
        self.judging = Judging(context, page.judging, case, opening, editing)
        self.judging.stepped.connect(self.look)
        self.signing = Signing(context, page.signing)
        self.signing.stepped.connect(self.look)
        self.leading = Leading(context, page.progress)
        self.planning = Planning(context, page.planning)
        self.planning.frozen.connect(self._follow_frozen)
        page.planning_wanted.connect(self.planning.propose_data_set)
        self._timer = QTimer(self)
        self._timer.setInterval(_LOOK_EVERY_MS)
        self._timer.timeout.connect(self.look)
        page.study_chosen.connect(self.open_study)
        page.person_chosen.connect(self.sit_down)

    # ------------------------------------------------------------------- entering

    def open_study(self, folder: Path, who: str = "") -> None:
        """Open a study; begin as `who` at once, or suggest the name used last."""
        self.shown_wanted.emit()
        if self.client is not None:
            if self.client.folder != folder:
                self._notifier.warn_loudly(_ONE_STUDY.format(self._session.study))
            return
        self._folder = folder
        remembered = who or self._services.load_preferences().reader or ""
        self._jobs.start(
            _BEGIN,
            tr("Opening the study {name}", name=folder.name),
            lambda: review_services(self._services).list_people(folder),
            lambda people: self._choose_person(people, remembered, is_given=bool(who)),
        )

    def _follow_frozen(self, folder: Path, origin: str) -> None:
        self._notifier.hint(
            tr(
                "The study has begun in {folder}. The file study.json (SHA-256 {head}…) will "
                "never change.",
                folder=folder,
                head=origin[:_HEAD_DIGITS],
            )
        )
        self.page.show_entry()
        self.open_study(folder)

    def _choose_person(self, people: tuple[str, ...], remembered: str, *, is_given: bool) -> None:
        if self._folder is None:
            return
        is_there = case_key(remembered.strip()) in map(case_key, people)
        self.page.show_entry(str(self._folder), people, remembered if is_there else "")
        if is_given:
            self.sit_down(remembered)

    def sit_down(self, who: str, passphrase: str = "") -> None:
        """Begin as one person in the open study; a passphrase is needed if the person has a key."""
        folder = self._folder
        if folder is None or self.client is not None or not who:
            return
        open_client = review_services(self._services).open_client

        def take(opened: OpenedClient) -> None:
            self._editing.save_if_needed(lambda saved: self._take_client(opened, all_saved=saved))

        doing = tr("Opening the study {name}", name=folder.name)

        def ask(error: Exception) -> None:
            if isinstance(error, ProofNeededError):
                self.page.ask_key(_KEY_NEEDED.format(who))
            elif isinstance(error, WrongPassphraseError):
                self.page.ask_key(plain_text(error))
            else:
                self._notifier.fail(doing, error)

        self._jobs.start(
            _BEGIN,
            doing,
            lambda: open_client(folder, who, passphrase),
            take,
            failed=ask,
            discard=lambda opened: opened.client.close(),
        )

    def _take_client(self, opened: OpenedClient, *, all_saved: bool) -> None:
        client, before = opened.client, self._session.blinding
        was_open = self._session.opened is not None or self._session.case is not None
        if not all_saved or (was_open and not before.covers(client.blinding)):
            self._jobs.start(_BEGIN, tr("Closing the study"), client.close, lambda _done: None)
            if all_saved:
                name = opened.look.study
                self._notifier.warn_loudly(_TOO_LATE.format(name, client.folder))
            return
        self._session.close_case()
        self._session.opened = None
        self._session.study = opened.look.study
        self._session.set_blinding(Blinding(before.hidden | client.blinding.hidden))
        self._readers.fix(client.reader.reader_id, opened.look.person)
        self.client = client
        self.page.form.set_form(client.form)
        if opened.protocol is not None:
            self._protocols.use(opened.protocol)
        self.reading.begin(client)
        self.judging.begin(client)
        self.signing.client = self.leading.client = client
        self.page.show_look(opened.look)
        self._timer.start()
        self.look()

    # -------------------------------------------------------------------- looking

    def look(self) -> None:
        """Refresh the study in a thread, unless a refresh is running."""
        client = self.client
        if client is None or self._jobs.is_running(_LOOK):
            return
        is_active = self.reading.clock.is_active or self.judging.dispute is not None
        review = review_services(self._services)

        def look_at_all() -> tuple[StudySnapshot, ExtraSnapshot]:
            look = client.look(is_active=is_active)
            signing, ended = review.load_signing_status(client), review.list_decided(client)
            return look, ExtraSnapshot(signing, ended, review.load_quality_status(client))

        self._jobs.start(
            _LOOK, tr("Refreshing the study"), look_at_all, self._show_look, shown=False
        )

    def _show_look(self, both: tuple[StudySnapshot, ExtraSnapshot]) -> None:
        look, more = both
        self.page.show_look(look, more)
        for case_id in look.lost:
            self._notifier.warn(
                tr(
                    "{case_id} was taken over in another window or on another computer: if you "
                    "submit the case in both places, both readings are kept and shown as a "
                    "conflict",
                    case_id=case_id,
                )
            )

    # -------------------------------------------------------------------- keys, end

    @property
    def is_at_work(self) -> bool:
        """Return whether this window is currently working on a study."""
        return self.client is not None

    def accept(self) -> None:
        """Submit the current reading, or ask an adjudicator to decide on the Review page."""
        if self.judging.dispute is not None:
            self.shown_wanted.emit()
        else:
            self.reading.accept()

    def close(self) -> None:
        """Release claims and send waiting events when the window closes.

        The window waits only briefly for the share, because everything is already saved locally.
        """
        client, self.client = self.client, None
        self._timer.stop()
        if client is None:
            return
        last: Callable[[], object] = self.reading.prepare_closing()
        self._jobs.start(
            "review end", tr("Closing the study"), last, lambda _done: None, shown=False
        )
        silently, with_word = _CLOSING_S
        if self._jobs.finish("review end", silently):
            return
        self._notifier.warn(_LEAVING.format(self._session.study))
        # Paint the message without processing other events.
        QCoreApplication.sendPostedEvents(None, QEvent.Type.UpdateRequest)
        if not self._jobs.finish("review end", with_word):
            # The window closes, but the terminal keeps the message.
            self._notifier.warn(_LEFT.format(self._session.study))
