"""Page Score at work: numbers of what is on screen, again after each edit; errors and tags."""

from qtpy.QtCore import QObject

from napari_mamamia.services.case.context import CaseKey
from napari_mamamia.services.case.show_case import Counting, ShownScores
from napari_mamamia.widgets.base.layers import Role
from napari_mamamia.widgets.base.service_record import Services
from napari_mamamia.widgets.base.session import Session
from napari_mamamia.widgets.score.agreement import Reviewing
from napari_mamamia.widgets.score.page import ScorePage
from napari_mamamia.widgets.score.scoring import Scoring
from napari_mamamia.widgets.score.tagging import Tagging
from napari_mamamia.widgets.viewer.scene import Scene


class ScoreFlow(QObject):
    """Joins the page, the session, scoring, the review of errors and the tags."""

    def __init__(
        self,
        page: ScorePage,
        session: Session,
        scene: Scene,
        scoring: Scoring,
        reviewing: Reviewing,
        tagging: Tagging,
        services: Services,
    ) -> None:
        super().__init__()
        self._page = page
        self._session = session
        self._scene = scene
        self._services = services
        self._tagging = tagging
        page.label_chosen.connect(self._choose_label)
        page.error_chosen.connect(reviewing.go_to_error)
        page.tag_wanted.connect(self._tag)
        reviewing.listed.connect(page.errors.show_errors)
        reviewing.stepped.connect(page.errors.set_current)
        tagging.changed.connect(self._show_tags)
        scoring.scored.connect(self._show)
        session.case_changed.connect(self._show_case)
        self._labels_of: CaseKey = (None, "")
        self._show_case()

    def _show_case(self) -> None:
        self._page.need("" if self._session.case else "Open a case first.")
        self._show_tags()
        if self._session.case_key != self._labels_of:
            self._labels_of = self._session.case_key
            reference = self._session.mask(Role.REFERENCE)
            self._page.show_labels(reference.values if reference else ())
            self._page.show_scores(None, "")

    def _show(self, shown: ShownScores | None) -> None:
        why = ""
        if self._session.mask(Role.REFERENCE) is None:
            why = "This case has no reference mask: only volumes are known."
        elif shown is None or not shown.volumes_mm3:
            why = "Predict or edit a mask to compare it with the reference."
        self._page.show_scores(shown, why)

    def _show_tags(self) -> None:
        """Show whose tags the open case has."""
        context = self._session.context
        tags = () if context is None else self._tagging.of(context.case_id, context.opened)
        whose: dict[str, list[str]] = {}
        for tag in tags:
            whose.setdefault(tag.reader, []).append(tag.tag)
        others = [
            f"{', '.join(own)} by {reader}"
            for reader, own in whose.items()
            if reader != self._session.reader
        ]
        self._page.tags.show_tags([tag.tag for tag in tags], "; ".join(others))

    def _tag(self, tag: str, on: bool) -> None:
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
