"""Controller of adjudication: open a case, show its readings, and decide."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from qtpy.QtCore import Signal

from napari_mamamia.core.texts import tr
from napari_mamamia.features.review.core.review import ConsensusRule
from napari_mamamia.features.review.services.client import StudyClient
from napari_mamamia.features.review.services.compare import ConsensusMask
from napari_mamamia.features.review.services.judging import (
    Decided,
    Difference,
    Dispute,
    LesionTable,
    ShownReading,
)
from napari_mamamia.features.review.widgets.judging_texts import NO_MASK, NO_REASON, OTHER_GRID
from napari_mamamia.features.review.widgets.judging_view import JudgingView
from napari_mamamia.features.review.widgets.services import review_services
from napari_mamamia.features.review.widgets.study_case import StudyCase, StudyPlace
from napari_mamamia.widgets.base.event_loop import EventLoopSteps
from napari_mamamia.widgets.base.layers import Role, tag_for
from napari_mamamia.widgets.base.session import SessionMask
from napari_mamamia.widgets.refine.editing import Editing
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart
from napari_mamamia.widgets.viewer.opening import Opening

T = TypeVar("T")
_LANE: Final = "review"


class Judging(WindowPart):
    """Controller that connects the adjudicator's view, the client and the displayed case.

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
        """Begin adjudication with a client; None ends adjudication."""
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
        """Reserve a case for this adjudicator, and show its readings."""
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
        """Show the selected pair of readings of the case."""
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
        """Go to the next or previous difference; the last is followed by the first."""
        if not self._parts:
            return
        self._at = (self._at + by) % len(self._parts)
        part = self._parts[self._at]
        self._scene.view.reveal(part.voxel)
        self._view.show_difference(part, self._at, len(self._parts))

    def show_lesion(self, at: int) -> None:
        """Go to the lesion at an index of the list."""
        if 0 <= at < len(self._lesions.rows):
            voxel = self._lesions.rows[at].voxel
            self._scene.view.reveal(voxel)

    # ------------------------------------------------------------------- deciding

    def take_reading(self, at: int) -> None:
        """Copy a reading into the adjudicator's mask."""
        if self._is_on_screen() and self.dispute is not None:
            reading = self.dispute.readings[at]
            self._consensus = None
            self._editing.start_with(reading.labels, f"reading of {reading.name}")
            self._view.show_choice(
                tr("Copied from {name}; continue drawing, or decide.", name=reading.name)
            )

    def take_rule(self, rule: ConsensusRule) -> None:
        """Copy the consensus of all readings by a rule into the adjudicator's mask."""
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
        """Accept the adjudicator's mask for the case."""
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
        """Accept a case with agreeing readings without viewing it."""
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
