"""Jumps in the open case: to the tumour, to the next error, to the next doubtful place."""

from qtpy.QtCore import QObject

from napari_mamamia.widgets.base.jobs import JobRunner
from napari_mamamia.widgets.base.layers import Role, tag_of
from napari_mamamia.widgets.base.notify import Failed, Finished, Notifier, Outcome
from napari_mamamia.widgets.base.service_record import Services
from napari_mamamia.widgets.base.session import Session
from napari_mamamia.widgets.dock.page_tabs import PageTabs
from napari_mamamia.widgets.predict.doubt_list import DoubtList
from napari_mamamia.widgets.score.agreement import Reviewing
from napari_mamamia.widgets.viewer.planes import Planes
from napari_mamamia.widgets.viewer.scene import Scene
from napari_mamamia.widgets.viewer.slice_view import Voxel

_LANE = "lesion"
_LOOKING = "Looking for the tumour"


class Jumping(QObject):
    """Finds the place to go to by what is shown, and goes there."""

    def __init__(
        self,
        session: Session,
        scene: Scene,
        planes: Planes,
        reviewing: Reviewing,
        doubt: DoubtList,
        pages: PageTabs,
        jobs: JobRunner,
        services: Services,
        notifier: Notifier,
    ) -> None:
        super().__init__()
        self._session = session
        self._scene = scene
        self._planes = planes
        self._reviewing = reviewing
        self._doubt = doubt
        self._pages = pages
        self._jobs = jobs
        self._services = services
        self._notifier = notifier

    def to_lesion_or_error(self) -> None:
        """Go to the next error or doubtful place while they are shown, else to the tumour."""
        if self._reviewing.is_on:
            self._reviewing.next_error()
        elif self._pages.page == "Predict" and self._doubt.is_shown:
            self._doubt.next()
        else:
            self.to_lesion()

    def to_previous_error(self) -> None:
        """Go to the error or doubtful place before; without either show the agreement."""
        if self._reviewing.is_on or self._pages.page != "Predict" or not self._doubt.is_shown:
            self._reviewing.previous_error()
        else:
            self._doubt.previous()

    def to_lesion(self) -> None:
        """Go to the largest part of the visible mask that matters most."""
        layer = self._scene.shown_mask()
        if layer is None and self._reviewing.is_on:
            layer = self._scene.layer(Role.REFERENCE)
        tag = None if layer is None else tag_of(layer)
        mask = None if tag is None else self._session.mask(tag.role)
        if mask is None or tag is None:
            self._notifier.hint("No mask is shown: predict first, or show one in the line above.")
            return

        case, role = self._session.case, tag.role

        def found(outcome: Outcome[Voxel | None]) -> None:
            if case is not None and self._session.shows(case) and mask is self._session.mask(role):
                self._go(outcome, role)

        find = self._services.centre_of_largest_part
        self._jobs.start(
            _LANE,
            _LOOKING,
            lambda: find(mask.buffer, tag.grid),
            found,
            shown=False,
        )

    def _go(self, outcome: Outcome[Voxel | None], role: Role) -> None:
        if isinstance(outcome, Failed):
            self._notifier.fail(_LOOKING, outcome.error)
        elif isinstance(outcome, Finished) and outcome.result is not None:
            view = self._scene.view
            whole = len(self._planes.panes) > 0 and not view.is_zoomed_in
            view.go_to(outcome.result, centre=not whole)
        elif isinstance(outcome, Finished):
            self._notifier.hint(f"The {role} mask is empty.")
