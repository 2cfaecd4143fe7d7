"""The two scored masks of a case in the viewer, with their errors in colour."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from napari_mamamia.core.case import Case
from napari_mamamia.core.texts import tr
from napari_mamamia.services.case.show_case import CaseMasks, Counting, OpenMask
from napari_mamamia.widgets.base.event_loop import EventLoopSteps
from napari_mamamia.widgets.base.layers import Role, tag_for
from napari_mamamia.widgets.base.session import SessionMask
from napari_mamamia.widgets.score.agreement import Reviewing
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart


class ScoredMasks(WindowPart):
    """The scored files of the open case, shown instead of its usual reference and prediction."""

    def __init__(self, context: WindowContext, reviewing: Reviewing) -> None:
        super().__init__(context)
        self._reviewing = reviewing
        self._late = EventLoopSteps(self)

    def read(
        self, reference: Path | None, prediction: Path | None, model: str, counting: Counting
    ) -> None:
        """Read the two files and show them, unless another case was opened in the meantime."""
        case = self._session.case
        if case is None:
            return
        self._jobs.start(
            "review",
            tr("Reading the scored masks of {case_id}", case_id=case.case_id),
            lambda: self._services.review_masks(case, reference, prediction, model, counting),
            lambda masks: self.show(masks, counting),
            still=lambda: self._session.shows(case),
        )

    def show(self, masks: CaseMasks, counting: Counting) -> None:
        """Show the scored masks of the open case, and their differences if both exist.

        Each layer is added in its own event-loop iteration, because adding two layers in the same
        iteration blocked the window for 57 ms.
        """
        case = self._session.case
        if case is None:
            return
        # Set before the masks, because the listeners to the masks use it.
        self._session.counting = counting
        roles = {mask.role for mask in masks.masks}
        if Role.PREDICTION not in roles:
            self._scene.remove_mask(Role.PREDICTION)
            self._session.drop_mask(Role.PREDICTION)
        for problem in masks.problems:
            self._notifier.warn(problem)
        steps: list[Callable[[], object]] = [
            partial(self._show_one, case, mask) for mask in masks.masks
        ]
        if roles >= {Role.REFERENCE, Role.PREDICTION}:
            steps.append(partial(self._show_errors, case))
        self._late.start(steps)

    def _show_one(self, case: Case, mask: OpenMask) -> None:
        if self._session.shows(case):
            role = Role(mask.role)
            self._scene.show_mask(tag_for(case, role), mask.buffer)
            self._session.set_mask(
                SessionMask(role, mask.name, mask.buffer, mask.labels, mask.values)
            )

    def _show_errors(self, case: Case) -> None:
        if self._session.shows(case):
            self._reviewing.turn_on(Role.PREDICTION)
