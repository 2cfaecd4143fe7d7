"""Controller of the header: case, masks, jobs, and navigation by header and shortcuts."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from napari_mamamia.core.progress import Progress
from napari_mamamia.core.texts import tr
from napari_mamamia.services.case.context import CaseKey
from napari_mamamia.services.case.show_case import LesionPlace
from napari_mamamia.widgets.base.header import Header, MaskChip
from napari_mamamia.widgets.base.jobs import RunningJob
from napari_mamamia.widgets.base.layers import MASK_ROLES, Role, tag_of
from napari_mamamia.widgets.base.notify import Level
from napari_mamamia.widgets.dock.steps import Steps
from napari_mamamia.widgets.predict.uncertainty_list import UncertaintyList
from napari_mamamia.widgets.score.agreement import Reviewing
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart

_CLEARS_MESSAGE = ("list", "open", "predict", "export", "report")
"""Jobs started by the user, which clear messages about earlier work."""


class HeaderFlow(WindowPart):
    """The controller that connects the header, the session, the scene and the jobs."""

    def __init__(self, context: WindowContext, header: Header) -> None:
        super().__init__(context)
        self._header = header
        self._running: list[RunningJob] = []
        header.cancel_wanted.connect(self._cancel_newest)
        header.mask_toggled.connect(self._scene.stack.set_visible)
        self._jobs.started.connect(self._on_started)
        self._jobs.progressed.connect(self._on_progress)
        self._jobs.ended.connect(self._on_ended)
        self._notifier.said.connect(header.say)
        self._notifier.withdrawn.connect(header.withdraw)
        self._session.phases_changed.connect(self.show)
        self._session.data_set_changed.connect(self.show)
        for changed in (
            self._session.case_changed,
            self._session.queue_changed,
            self._session.masks_changed,
        ):
            changed.connect(self.show)

    def show(self, _event: object = None) -> None:
        """Show the open case and the visible masks."""
        name, context = self._session.case_id, self._session.context
        if context is not None and not self._session.listed_id:
            name = f"{name} · {context.opened.data_set.name}"
        if self._session.registered is not None:
            name = tr("{name} · registered", name=name)
        if self._session.case is not None and not self._session.case.is_verified:
            name = tr("{name} · not yet verified", name=name)
        self._header.set_case(name, self._session.position)
        chips = []
        for role in MASK_ROLES:
            mask, layer = self._session.mask(role), self._scene.layer(role)
            if mask is not None and layer is not None:
                chips.append(MaskChip(role, mask.name, layer.visible))
                # napari keeps a callback once, however often it is connected.
                layer.events.visible.connect(self._show_ours)
        self._header.set_masks(chips)

    def _show_ours(self, event: Any) -> None:
        if tag_of(event.source) is not None:  # The layer may be removed together with its case.
            self.show()

    def _on_started(self, ticket: RunningJob) -> None:
        if ticket.lane in _CLEARS_MESSAGE:
            self._header.say(Level.HINT, "")
        if ticket.shown:
            self._running.append(ticket)
            self._header.show_progress(ticket.title)

    def _on_progress(self, ticket: RunningJob, progress: Progress) -> None:
        if self._running and ticket == self._running[-1]:
            covered = replace(progress, text=self._notifier.cover(progress.text))
            self._header.show_progress(ticket.title, covered)

    def _on_ended(self, ticket: RunningJob, _outcome: object) -> None:
        self._running = [other for other in self._running if other != ticket]
        if self._running:
            self._header.show_progress(self._running[-1].title)
        else:
            self._header.hide_progress()

    def _cancel_newest(self) -> None:
        if self._running:
            self._jobs.stop(self._running[-1].lane)


_LANE = "lesion"
_LOOKING = tr("Finding the tumour")
_MM3_PER_ML = 1000.0


class Jumping(WindowPart):
    """A component that finds the next position to show, and moves the view there."""

    def __init__(
        self,
        context: WindowContext,
        reviewing: Reviewing,
        uncertainty: UncertaintyList,
        pages: Steps,
    ) -> None:
        super().__init__(context)
        self._reviewing = reviewing
        self._doubt = uncertainty
        self._pages = pages
        self._mask: tuple[CaseKey, Role] | None = None
        self._turn = 0

    def to_lesion_or_error(self) -> None:
        """Go to the next error or uncertain region if these are shown, otherwise to the tumour."""
        if self._reviewing.is_on:
            self._reviewing.next_error()
        elif self._pages.page == "Predict" and self._doubt.is_shown:
            self._doubt.next()
        else:
            self.to_lesion()

    def to_previous_error(self) -> None:
        """Go to the previous error or uncertain region; if neither is shown, show the agreement."""
        if self._reviewing.is_on or self._pages.page != "Predict" or not self._doubt.is_shown:
            self._reviewing.previous_error()
        else:
            self._doubt.previous()

    def to_lesion(self) -> None:
        """Go to the largest lesion of the most important visible mask, or to the next lesion.

        The last lesion is followed by the lesions of the visible reference that the mask misses.
        """
        layer = self._scene.shown_mask()
        if layer is None and self._reviewing.is_on:
            layer = self._scene.layer(Role.REFERENCE)
        tag = None if layer is None else tag_of(layer)
        mask = None if tag is None else self._session.mask(tag.role)
        if mask is None or tag is None:
            self._notifier.hint(
                tr("No mask is shown: predict first, or show a mask in the line above.")
            )
            return

        case, role = self._session.case, tag.role
        reference, shown = self._session.mask(Role.REFERENCE), self._scene.layer(Role.REFERENCE)
        is_seen = role is not Role.REFERENCE and shown is not None and shown.visible
        expert = reference.buffer if reference is not None and is_seen else None

        def is_shown() -> bool:
            return (
                case is not None and self._session.shows(case) and mask is self._session.mask(role)
            )

        find = self._services.lesion_places
        self._jobs.start(
            _LANE,
            _LOOKING,
            lambda: find(mask.buffer, expert, tag.grid),
            lambda places: self._go_to_next(places, (self._session.case_key, role)),
            still=is_shown,
            shown=False,
        )

    def _go_to_next(self, places: Sequence[LesionPlace], mask: tuple[CaseKey, Role]) -> None:
        if not places:
            self._notifier.hint(tr("The {role} mask is empty.", role=mask[1]))
            return
        self._turn = self._turn + 1 if mask == self._mask else 0
        self._mask = mask
        place = places[self._turn % len(places)]
        self._scene.view.reveal(place.voxel)
        if place.missed_mm3 is not None:
            volume = place.missed_mm3 / _MM3_PER_ML
            self._notifier.hint(
                tr("Missed: only the reference has this lesion of {volume:.2f} ml.", volume=volume)
            )
