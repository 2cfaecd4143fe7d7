"""Controller of the Score page: scores displayed masks after each edit, with errors and tags."""

from typing import Final

from qtpy.QtCore import QTimer, Signal

from napari_mamamia.core.texts import tr
from napari_mamamia.services.case.context import CaseKey
from napari_mamamia.services.case.show_case import Counting, ShownScores
from napari_mamamia.widgets.base.layers import Role
from napari_mamamia.widgets.score.agreement import Reviewing
from napari_mamamia.widgets.score.page import ScorePage
from napari_mamamia.widgets.score.tagging import Tagging
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart

_WAIT_MS: Final = 400
_SCORED: Final = (Role.PREDICTION, Role.REFINED)


class Scoring(WindowPart):
    """A component that scores the open case.

    The signal `scored` carries `ShownScores`, or None if there are no masks to score.
    """

    scored = Signal(object)

    def __init__(self, context: WindowContext) -> None:
        super().__init__(context)
        self.is_wanted = False
        self._wait = QTimer(self)
        self._wait.setSingleShot(True)
        self._wait.setInterval(_WAIT_MS)
        self._wait.timeout.connect(self._start_scoring)
        self._session.masks_changed.connect(self.ask)
        self._session.mask_edited.connect(self.ask)

    def want(self, wanted: bool) -> None:
        """Start or stop scoring when a page with scores is shown or hidden."""
        self.is_wanted = wanted
        if wanted:
            self.ask()

    def ask(self) -> None:
        """Schedule scoring after a short delay; only the newest result is used."""
        if self.is_wanted:
            self._wait.start()

    def _start_scoring(self) -> None:
        case = self._session.case
        masks, counting = self._session.masks, self._session.counting
        values = {str(role): masks[role].raw_values for role in _SCORED if role in masks}
        reference = self._session.mask(Role.REFERENCE)
        if case is None or not (values or reference):
            self.scored.emit(None)
            return

        self._jobs.start(
            "score",
            tr("Scoring {case_id}", case_id=case.case_id),
            lambda: self._services.score_shown(
                case, reference.raw_values if reference else None, values, counting
            ),
            self.scored.emit,
            shown=False,
        )


class ScoreFlow(WindowPart):
    """A controller that connects the page, the session, scoring, the error review and the tags."""

    def __init__(
        self,
        context: WindowContext,
        page: ScorePage,
        reviewing: Reviewing,
        tagging: Tagging,
    ) -> None:
        super().__init__(context)
        self._page = page
        self._tagging = tagging
        self.scoring = Scoring(context)
        page.label_chosen.connect(self._choose_label)
        page.tag_wanted.connect(self._tag_case)
        tagging.changed.connect(self._show_tags)
        self.scoring.scored.connect(self._show_scores)
        self._connect_review(reviewing)
        self._session.case_changed.connect(self._show_case)
        self._session.masks_changed.connect(self._show_masks)
        self._labels_of: CaseKey = (None, "")
        self._show_case()

    def _connect_review(self, reviewing: Reviewing) -> None:
        page = self._page
        reviewing.listed.connect(page.errors.show_errors)
        reviewing.stepped.connect(page.errors.set_current)
        reviewing.switched.connect(page.set_agreement)
        page.error_chosen.connect(reviewing.go_to_error)
        page.next_error_wanted.connect(reviewing.next_error)
        page.previous_error_wanted.connect(reviewing.previous_error)
        page.agreement_toggled.connect(
            lambda on: reviewing.turn_on() if on else reviewing.turn_off()
        )

    def _show_case(self) -> None:
        self._page.need("" if self._session.case else tr("Open a case first."))
        self._show_tags()
        self._show_masks()
        if self._session.case_key != self._labels_of:
            self._labels_of = self._session.case_key
            reference = self._session.mask(Role.REFERENCE)
            self._page.show_labels(reference.values if reference else ())
            self._page.show_scores(None, "")

    def _show_masks(self) -> None:
        self._page.show_masks(tuple(self._session.masks))

    def _show_scores(self, shown: ShownScores | None) -> None:
        has_reference = self._session.mask(Role.REFERENCE) is not None
        has_mask = shown is not None and bool(shown.volumes_mm3)
        why = tr("Predict or edit a mask to compare it with the reference.")
        self._page.show_scores(shown, why if has_reference and not has_mask else "")

    def _show_tags(self) -> None:
        context = self._session.context
        tags = () if context is None else self._tagging.of(context.case_id, context.opened)
        whose: dict[str, list[str]] = {}
        for tag in tags:
            whose.setdefault(tag.reader, []).append(tag.tag)
        others = [
            tr("{names} by {reader}", names=", ".join(reader_tags), reader=reader)
            for reader, reader_tags in whose.items()
            if reader != self._session.reader
        ]
        self._page.tags.show_tags([tag.tag for tag in tags], "; ".join(others))

    def _tag_case(self, tag: str, on: bool) -> None:
        context = self._session.context
        opened = None if context is None else context.opened
        self._tagging.tag(self._session.case_id, tag, on, opened)

    def _choose_label(self, value: float | None) -> None:
        reference = self._session.mask(Role.REFERENCE)
        if reference is None or reference.labels is None:
            return
        reference.buffer[...] = self._services.uint8_mask(reference.labels, value)
        self._session.counting = Counting(reference_label=value)
        self._scene.redraw_mask(Role.REFERENCE)
        self._session.masks_changed.emit()
