"""Controller of the Review page: open a study, begin as a person, and refresh regularly."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from qtpy.QtCore import QCoreApplication, QEvent, QTimer, Signal

from napari_mamamia.core.blinding import Blinding
from napari_mamamia.core.texts import tr
from napari_mamamia.features.review.io.keys import WrongPassphraseError
from napari_mamamia.features.review.services.client import OpenedClient, StudyClient, StudySnapshot
from napari_mamamia.features.review.services.plan_study import (
    FreezeSetup,
    SetupError,
    StudyDraft,
    StudySetup,
)
from napari_mamamia.features.review.services.session import ProofNeededError
from napari_mamamia.features.review.services.signing import RevocableKey, Signable
from napari_mamamia.features.review.widgets.judging import Judging
from napari_mamamia.features.review.widgets.leading_view import ProgressView
from napari_mamamia.features.review.widgets.page import ExtraSnapshot, ReviewPage
from napari_mamamia.features.review.widgets.planning_view import PlanningView
from napari_mamamia.features.review.widgets.reading import Reading
from napari_mamamia.features.review.widgets.services import review_services
from napari_mamamia.features.review.widgets.signing_view import SigningView
from napari_mamamia.features.review.widgets.study_case import StudyCase
from napari_mamamia.io.files.file_names import case_key
from napari_mamamia.widgets.base.notify import plain_text
from napari_mamamia.widgets.cases.listing import Listing
from napari_mamamia.widgets.refine.editing import Editing
from napari_mamamia.widgets.refine.protocols import Protocols
from napari_mamamia.widgets.refine.readers import Readers
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart
from napari_mamamia.widgets.viewer.opening import Opening

T = TypeVar("T")

_LOOK_EVERY_MS: Final = 5_000
_CLOSING_S: Final = (0.3, 1.7)
"""Waiting times in s for the share when the window closes: without, then with a message."""
_HEAD_DIGITS: Final = 16
"""Number of digits of a displayed checksum, as printed by `mamamia review verify`."""
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
    """Controller that connects the form of a new study with the services.

    The signal `frozen` carries the folder of the new study and the SHA-256 of its study file.
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
        """List the cases of the data set for selection."""
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
        """Assign the cases to readers and show the draft."""
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
        """Write the study shown in the draft."""
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
    """Controller that connects the lead's view with the services."""

    def __init__(self, context: WindowContext, view: ProgressView) -> None:
        super().__init__(context)
        self._view = view
        self.client: StudyClient | None = None
        view.agreement_wanted.connect(self.measure_agreement)

    def measure_agreement(self) -> None:
        """Show the current agreement of the readers."""
        client, describe_agreement = self.client, review_services(self._services).describe_agreement
        if client is not None:
            self._jobs.start(
                "review agreement",
                tr("Comparing all readings"),
                lambda: describe_agreement(client),
                self._view.show_agreement,
            )


class Signing(WindowPart):
    """Controller that connects the view of signatures and keys with the client.

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
    """Controller that connects page, client and views.

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
        """Open a study, and begin immediately as `who`, or suggest the last name."""
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
        """Begin as a person of the selected study, with a passphrase if a key is required."""
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
        """Return whether this window is currently used for a study."""
        return self.client is not None

    def accept(self) -> None:
        """Submit the current reading; adjudicators decide on the Review page."""
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
