"""Jumps in the open case: to the tumour, to the next error, to the next doubtful place."""

from napari_mamamia.core.texts import tr
from napari_mamamia.widgets.base.layers import Role, tag_of
from napari_mamamia.widgets.dock.steps import Steps
from napari_mamamia.widgets.predict.doubt_list import DoubtList
from napari_mamamia.widgets.score.agreement import Reviewing
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart
from napari_mamamia.widgets.viewer.planes import Planes
from napari_mamamia.widgets.viewer.slice_view import Voxel

_LANE = "lesion"
_LOOKING = tr("Looking for the tumour")


class Jumping(WindowPart):
    """Finds the place to go to by what is shown, and goes there."""

    def __init__(
        self,
        context: WindowContext,
        planes: Planes,
        reviewing: Reviewing,
        doubt: DoubtList,
        pages: Steps,
    ) -> None:
        super().__init__(context)
        self._planes = planes
        self._reviewing = reviewing
        self._doubt = doubt
        self._pages = pages

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
            self._notifier.hint(
                tr("No mask is shown: predict first, or show one in the line above.")
            )
            return

        case, role = self._session.case, tag.role

        def is_shown() -> bool:
            return (
                case is not None and self._session.shows(case) and mask is self._session.mask(role)
            )

        find = self._services.centre_of_largest_part
        self._jobs.start(
            _LANE,
            _LOOKING,
            lambda: find(mask.buffer, tag.grid),
            lambda place: self._go_to_place(place, role),
            still=is_shown,
            shown=False,
        )

    def _go_to_place(self, place: Voxel | None, role: Role) -> None:
        if place is None:
            self._notifier.hint(tr("The {role} mask is empty.", role=role))
            return
        view = self._scene.view
        # Planes that are seen whole stay so: their cross-hairs show the place.
        whole = len(self._planes.panes) > 0 and not view.is_zoomed_in
        view.go_to(place, centre=not whole)
