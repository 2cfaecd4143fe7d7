"""Controller of a reader's work: take, submit, return and reopen cases."""

from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import QTimer, Signal
from qtpy.QtWidgets import QFileDialog

from napari_mamamia.core.answers import CaseFacts, Voxel
from napari_mamamia.core.blinding import Hidden
from napari_mamamia.core.texts import tr
from napari_mamamia.features.review.core.review import Task
from napari_mamamia.features.review.io.study_file import Draft
from napari_mamamia.features.review.rules.states import CaseState
from napari_mamamia.features.review.services.client import StudyClient, StudyTask
from napari_mamamia.features.review.services.judging import ShownReading
from napari_mamamia.features.review.widgets.reading_view import ReadingView
from napari_mamamia.features.review.widgets.services import review_services
from napari_mamamia.features.review.widgets.study_case import ActiveClock, StudyCase, StudyPlace
from napari_mamamia.widgets.base.layers import Role, tag_for
from napari_mamamia.widgets.base.session import SessionMask
from napari_mamamia.widgets.findings.form_view import FormView
from napari_mamamia.widgets.findings.gaps import Gap
from napari_mamamia.widgets.refine.editing import Editing
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart
from napari_mamamia.widgets.viewer.opening import Opening

_Shown: TypeAlias = tuple[NDArray[np.uint8], tuple[int, int, int] | None]
"""A mask as its layer shows it, and the centre (z, y, x) of its largest component, or None."""
_LANE: Final = "review"
_KEEP_EVERY_MS: Final = 15_000
_MEASURE_AFTER_MS: Final = 1_000
_A_MASK: Final = tr("a mask")
_ALL_DONE: Final = tr(
    "There is no case left for you to read at the moment. Cases that other readers are still "
    "reading may return to the queue."
)
_HELD: Final = tr(
    "{} is reserved by {}. The case becomes available when that reader releases it, or after 30 "
    "minutes."
)
_OTHER_CASE: Final = tr(
    "The case on screen is not the case that you opened: open your case again from the list."
)


def choose_images_folder() -> Path | None:
    """Ask for the folder of the images and return it, or None if the user cancelled."""
    name = QFileDialog.getExistingDirectory(None, tr("Data set of this study"))
    return Path(name) if name else None


class Reading(WindowPart):
    """A controller that connects the reader's view, the client and the displayed case.

    The signal `shown_wanted` requests the Review page, because an action is needed there. `stepped`
    is emitted after a case was opened, submitted or returned.
    """

    shown_wanted = Signal()
    stepped = Signal()

    def __init__(
        self,
        context: WindowContext,
        view: ReadingView,
        form: FormView,
        case: StudyCase,
        opening: Opening,
        editing: Editing,
        choose_folder: Callable[[], Path | None] = choose_images_folder,
    ) -> None:
        super().__init__(context)
        self._view, self._form = view, form
        self._case, self._editing = case, editing
        self.choose_folder = choose_folder
        self.client: StudyClient | None = None
        self.taken: StudyTask | None = None
        self.clock = ActiveClock(self)
        self._kept: Draft | None = None
        self._note = ""
        self._numbers = count()  # number of the draft: two may be written at the same time
        self._keep = QTimer(self)
        self._keep.setInterval(_KEEP_EVERY_MS)
        self._keep.timeout.connect(self.keep_draft)
        # Measure some time after a stroke, not the mask during painting.
        self._measure = QTimer(self)
        self._measure.setSingleShot(True)
        self._measure.setInterval(_MEASURE_AFTER_MS)
        self._measure.timeout.connect(self._measure_lesions)
        self._n_steps, self._n_measured = 0, -1
        editing.opened.connect(self._follow_mask)
        editing.stepped.connect(self._follow_mask)
        self._first: ShownReading | None = None
        opening.case_shown.connect(self._look_for_first)
        view.first_wanted.connect(self.begin_from_first)
        view.next_wanted.connect(self.take_next)
        view.accept_wanted.connect(self.accept)
        view.empty_wanted.connect(self._accept_empty)
        view.put_back_wanted.connect(self.put_back)
        view.earlier_wanted.connect(self.look_at)
        view.reopen_wanted.connect(self.reopen)
        view.images_wanted.connect(self.choose_images)
        form.answered.connect(self._follow_answers)
        form.voxel_wanted.connect(self._show_voxel)
        view.gaps.gap_wanted.connect(form.show_gap)
        for signal in (form.changed, self._session.case_changed):
            signal.connect(lambda: view.gaps.show_gaps(self.list_gaps()))
        drawn = (self._session.masks_changed, self._session.case_changed, editing.stepped)
        for signal in drawn:
            signal.connect(lambda: view.set_drawn(self._is_drawn() and not self._is_empty()))

    def begin(self, client: StudyClient | None) -> None:
        """Start reading with a client; None ends reading."""
        self.client = client
        self._let_go()

    # ------------------------------------------------------------------- taking

    def take_next(self) -> None:
        """Claim the next case and open it."""
        client = self.client
        if client is not None:
            self._leave_case(lambda: self._take_task(tr("Opening the next case"), client.take_next))

    def look_at(self, task: Task) -> None:
        """Open a case that this reader opened earlier."""
        client = self.client
        if client is not None:
            self._leave_case(
                lambda: self._take_task(tr("Opening this case"), lambda: client.take(task))
            )

    def reopen(self, reason: str) -> None:
        """Reopen the submitted reading of the displayed case."""
        client, taken = self.client, self.taken
        if client is None or taken is None:
            return
        if not reason.strip():
            self._view.say(tr("Give a reason for reading the case again, then reopen it."))
            return
        self._take_task(tr("Reopening this case"), lambda: client.read_again(taken.task, reason))

    def _leave_case(self, then: Callable[[], None]) -> None:
        self.keep_draft()
        self._editing.save_if_needed(lambda all_saved: then() if all_saved else None)

    def _take_task(self, doing: str, ask: Callable[[], StudyTask | None]) -> None:
        self._note = ""
        self._view.show_task(self.taken, is_busy=True)
        self._jobs.start(_LANE, doing, ask, self._show_taken, ended=self._show_task)

    def _show_task(self) -> None:
        self._view.show_task(self.taken, note=self._note)
        self.stepped.emit()

    def _show_taken(self, taken: StudyTask | None) -> None:
        if taken is None or taken.held:
            self._let_go()
            self._case.leave()
            self._note = _ALL_DONE if taken is None else _HELD.format(taken.case_id, taken.held)
            self.shown_wanted.emit()
            return
        self.taken, self._kept, self._n_measured = taken, taken.draft, -1
        self._form.set_answers(taken.draft.answers)
        self.clock.begin(taken.draft.active_s)
        self._keep.start()
        self._case.show(taken.case_id, _place_of(taken))

    def _let_go(self) -> None:
        self.taken, self._first = None, None
        self.clock.end()
        self._keep.stop()
        self._form.set_answers({})
        self._view.show_task(None)

    # --------------------------------------------------------------- second looks

    def _look_for_first(self) -> None:
        """In a second look, load the first reading once the case is displayed."""
        client, taken = self.client, self.taken
        if client is None or taken is None or not self._case.is_at(taken.case_id, _place_of(taken)):
            return
        load_first_snapshot = review_services(self._services).load_first_snapshot
        find_centre, fill_mask = self._services.centre_of_largest_part, self._services.uint8_mask

        def look() -> tuple[ShownReading | None, _Shown | None]:
            first = load_first_snapshot(client, taken.task)
            if first is None or first.labels is None:
                return first, None
            buffer = fill_mask(first.labels)
            return first, (buffer, find_centre(buffer, first.labels.grid))

        self._jobs.start(
            "review first",
            tr("Opening the first reading"),
            look,
            self._show_first,
            still=lambda: self.taken is taken,
            shown=False,
        )

    def _show_first(self, look: tuple[ShownReading | None, _Shown | None]) -> None:
        """Show the mask of the first reading, centred on its largest component."""
        case, (first, shown) = self._session.case, look
        self._first = first
        if first is None or case is None:
            self._view.show_first("")
            return
        drawn = tr("is shown in sky blue") if first.labels is not None else tr("has no mask")
        self._view.show_first(tr("The reading of {name} {drawn}.", name=first.name, drawn=drawn))
        if first.labels is None or shown is None or not first.labels.grid.is_same_place(case.grid):
            return
        buffer, place = shown
        self._scene.show_mask(tag_for(case, Role.READING_A), buffer)
        self._session.set_mask(SessionMask(Role.READING_A, first.name, buffer, first.labels))
        if place is not None:
            self._scene.view.reveal(place)

    def begin_from_first(self) -> None:
        """Copy the first reading's mask into the reader's own mask."""
        if self._first is not None:
            self._editing.start_with(self._first.labels, f"reading of {self._first.name}")

    # ----------------------------------------------------------------- handing in

    def accept(self) -> None:
        """Submit the case and open the next one; if answers are missing, list them instead."""
        self._accept_case(with_mask=True)

    def _accept_empty(self) -> None:
        self._accept_case(with_mask=False)

    def _accept_case(self, *, with_mask: bool) -> None:
        taken = self.taken
        if taken is None:
            self._notifier.hint(
                self._view.rest or tr("Open a case first: press Next case on the Review page.")
            )
        elif taken.state is CaseState.READ:
            self._say_missing((tr("a reason for reading the case again; then press Reopen"),))
        elif not self._case.is_at(taken.case_id, _place_of(taken)):
            self._notifier.warn(_OTHER_CASE)
        else:
            self._hand_in_whole(taken, with_mask=with_mask)

    def _hand_in_whole(self, taken: StudyTask, *, with_mask: bool) -> None:
        is_drawn = self._is_drawn()
        if is_drawn and self._n_measured != self._n_steps and self._form.asks_lesions:
            # Answers belong to the lesions of the submitted mask.
            self._measure_lesions(lambda: self._accept_case(with_mask=with_mask))
            return
        gaps = [gap for gap in self._form.list_gaps() if not gap.contradicts]
        missing = [gap.text for gap in gaps]
        if with_mask and not is_drawn:
            missing.append(_A_MASK)
        if missing:
            self._say_missing(tuple(missing))
            for first in gaps[:1]:
                self._form.show_gap(first)
        elif is_drawn:
            self._editing.saving.save_if_new(lambda saved: self._hand_in_saved(taken, saved))
        else:
            self._hand_in(taken, None)

    def _is_drawn(self) -> bool:
        return self._session.mask(Role.REFINED) is not None

    def _is_empty(self) -> bool:
        """Return whether the reader started with an empty mask and has drawn nothing yet."""
        live = self._editing.live
        return live is not None and not live.position and not live.summary.started_from

    def list_gaps(self) -> tuple[Gap, ...]:
        """Return missing or contradictory answers of the current case."""
        taken = self.taken
        if taken is None or taken.state is CaseState.READ:
            return ()
        is_at = self._case.is_at(taken.case_id, _place_of(taken))
        return self._form.list_gaps() if is_at else ()

    def _say_missing(self, missing: tuple[str, ...]) -> None:
        self._view.show_missing(missing, offers_empty=missing == (_A_MASK,))
        self.shown_wanted.emit()

    def _hand_in_saved(self, taken: StudyTask, all_saved: bool) -> None:
        mask = self._session.mask(Role.REFINED)
        if all_saved and mask is not None and mask.saved is not None and taken is self.taken:
            self._hand_in(taken, (mask.saved.path, mask.saved.sha256))

    def _hand_in(self, taken: StudyTask, mask: tuple[Path, str] | None) -> None:
        client, draft = self.client, self._make_draft()
        if client is None:
            return
        doing = tr("Submitting {case_id}", case_id=taken.case_id)
        case, drawn = self._session.case, self._session.mask(Role.REFINED)
        fill_hidden, form = self._services.findings.fill_hidden, client.form
        row = self._session.record

        def hand_in() -> Callable[[], object]:
            answers = draft.answers
            hides_numbers = taken.blinding.hides(Hidden.NUMBERS) and mask is not None
            if hides_numbers and form is not None and case is not None and drawn is not None:
                answers = fill_hidden(form, case, drawn.buffer, answers, row)
            return client.hand_in(taken, mask, replace(draft, answers=answers))

        self._view.show_task(taken, is_busy=True)
        self._jobs.start(
            _LANE,
            doing,
            hand_in,
            lambda compare: self._go_on(compare, client),
            ended=self._show_task,
        )

    def _go_on(self, compare: Callable[[], object], client: StudyClient) -> None:
        self._let_go()
        self._jobs.start(
            "review compare", tr("Comparing the readings"), compare, lambda _done: None, shown=False
        )
        self._take_task(tr("Opening the next case"), client.take_next)

    # -------------------------------------------------------------------- others

    def put_back(self) -> None:
        """Return the case to the queue; mask and answers remain on this computer."""
        client, taken = self.client, self.taken
        if client is None or taken is None:
            return

        def end(_done: object) -> None:
            self._let_go()
            self._case.leave()
            self._note = tr("{case_id} was returned to the queue.", case_id=taken.case_id)
            self._show_task()

        def put_back() -> None:
            self._jobs.start(
                _LANE,
                tr("Returning {case_id} to the queue", case_id=taken.case_id),
                lambda: client.put_back(taken),
                end,
            )

        self._leave_case(put_back)

    def choose_images(self) -> None:
        """Set the folder of the images on this computer."""
        folder = self.choose_folder()
        if folder is None or self.client is None:
            return
        client = self.client
        self._jobs.start(
            "review images",
            tr("Saving the location of the images"),
            lambda: client.choose_images(folder),
            lambda _done: self._notifier.hint(
                tr("The images of this study are now read from that folder.")
            ),
        )

    def keep_draft(self) -> None:
        """Save changed answers and the working time on this computer."""
        client, taken, draft = self.client, self.taken, self._make_draft()
        if client is None or taken is None or taken.state is CaseState.READ or draft == self._kept:
            return
        self._kept, number = draft, next(self._numbers)
        self._jobs.start(
            "review draft",
            tr("Saving your answers"),
            lambda: client.keep_draft(taken, draft, number),
            lambda _done: None,
            shown=False,
        )

    def prepare_closing(self) -> Callable[[], object]:
        """Return a function that saves the answers and closes the client, for window closing."""
        client, taken, draft = self.client, self.taken, self._make_draft()
        number = next(self._numbers)
        self._keep.stop()
        self.clock.end()

        def leave() -> None:
            if client is not None and taken is not None and taken.state is not CaseState.READ:
                client.keep_draft(taken, draft, number)
            if client is not None:
                client.close()

        return leave

    def _follow_mask(self) -> None:
        self._n_steps += 1
        self._measure.start()

    def _measure_lesions(self, then: Callable[[], None] | None = None) -> None:
        case, mask, taken = self._session.case, self._session.mask(Role.REFINED), self.taken
        if case is None or mask is None or taken is None or not self._form.asks_lesions:
            return
        if not self._case.is_at(taken.case_id, _place_of(taken)):
            return  # the mask belongs to the previous case
        self._measure.stop()
        n_steps = self._n_steps
        with_numbers = not taken.blinding.hides(Hidden.NUMBERS)
        measure_lesions = self._services.findings.measure_lesions
        before, record = self._form.current.anchors, self._session.record

        def take(facts: CaseFacts) -> None:
            self._n_measured = n_steps
            self._form.set_facts(facts)
            self.keep_draft()  # which lesion is which is saved in addition to the mask
            if then is not None:
                then()

        self._jobs.start(
            "review lesions",
            tr("Measuring the lesions"),
            lambda: measure_lesions(
                case, mask.buffer, with_numbers=with_numbers, before=before, record=record
            ),
            take,
            still=lambda: self._session.shows(case) and self.taken is taken,
            shown=False,
        )

    def _show_voxel(self, voxel: Voxel) -> None:
        self._scene.view.reveal(voxel)

    def _follow_answers(self) -> None:
        if self._view.missing.text():
            self._view.show_missing(())
        self.keep_draft()

    def _make_draft(self) -> Draft:
        return Draft(self._form.answers, self.clock.seconds)


def _place_of(taken: StudyTask) -> StudyPlace:
    return StudyPlace(taken.data_set, taken.workspace, taken.blinding, taken.pseudonymizer)
