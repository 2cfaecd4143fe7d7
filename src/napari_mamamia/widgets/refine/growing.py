"""Growing to 3-D and the tools for the whole mask: jobs whose results are steps of the session."""

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import Signal

from napari_mamamia.core.box import Box
from napari_mamamia.core.edits import Edit
from napari_mamamia.services.refine.grow_mask import (
    GROW_STEP,
    GrownBefore,
    merge_grown,
    seed_planes,
    seeds_of,
)
from napari_mamamia.services.refine.outlines import outlined_slices
from napari_mamamia.smartpaint.grow.grow import Grown
from napari_mamamia.smartpaint.session.session import EditingSession
from napari_mamamia.widgets.refine.editing import Editing
from napari_mamamia.widgets.refine.more import MaskToolRequest
from napari_mamamia.widgets.refine.painting import Painting
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart

_LANE: Final = "grow"
_NOTHING: Final = "Outline the tumour on a slice first (key O), or point at it and press R."
_NO_MASK: Final = "Make your own mask first: page Refine, Start from."
_NO_IMAGES: Final = "Growing needs all phases: they are still read or measured, try in a moment."
_MEANWHILE: Final = (
    "The mask was changed while {what} ran, so that its result was left out: start it again."
)


class Growing(WindowPart):
    """One job at a time; a mask that was changed meanwhile is not written over."""

    busy_changed = Signal()

    def __init__(self, context: WindowContext, editing: Editing, painting: Painting) -> None:
        super().__init__(context)
        self._editing = editing
        self._painting = painting
        self._before: GrownBefore | None = None
        self._noted: tuple[Edit, str] | None = None

    @property
    def is_busy(self) -> bool:
        """Whether a tool is at work."""
        return self._jobs.is_running(_LANE)

    @property
    def note(self) -> str:
        """What to know of the step that the mask stands at, where that was growing; else ""."""
        live = self._editing.live
        if live is None or self._noted is None or not live.position:
            return ""
        step, text = self._noted
        return text if live.steps[live.position - 1] is step else ""

    def seed_text(self) -> str:
        """Return what growing would start from, in plain words."""
        live = self._editing.live
        count = len(outlined_slices(live.steps, live.position)) if live else 0
        if count:
            return f"from {count} outline{'s' * (count > 1)}"
        return "from this slice or the mouse"

    def grow(self) -> None:
        """Grow from the outlined slices, else from the mask on the slice shown, else from a click.

        The click is the place under the mouse.
        """
        live = self._prepare_session()
        if live is None or live.images is None:
            return
        images, place = live.images, self._painting.place
        problem = self._painting.problem_in(self._scene.viewer)
        if problem and not outlined_slices(live.steps, live.position):
            self._notifier.hint(problem)
            return
        planes = seed_planes(live.steps, live.position, self._shown_plane())
        seeds = seeds_of(live.labels, live.label, planes)
        if seeds:
            name = f"{GROW_STEP} ({len(seeds)} outline{'s' * (len(seeds) > 1)})"
            job = lambda: self._services.grow(images, live.grid, seeds)  # noqa: E731
        elif place is not None:
            name = f"{GROW_STEP} (from a click)"
            job = lambda: self._services.grow_from_click(images, live.grid, place)  # noqa: E731
        else:
            self._notifier.hint(_NOTHING)
            return
        self._start_job(live, "Growing", job, lambda grown: self._lay_in(live, name, grown))

    def grow_in_box(self, box: Box) -> None:
        """Grow what stands out in a box that was drawn around the tumour."""
        live = self._prepare_session()
        if live is None or live.images is None:
            return
        images = live.images
        self._start_job(
            live,
            "Growing",
            lambda: self._services.grow_from_box(images, live.grid, box),
            lambda grown: self._lay_in(live, f"{GROW_STEP} (in a box)", grown),
        )

    def grow_mask(self, labels: NDArray[np.uint8]) -> None:
        """Grow a mask (z, y, x), such as a candidate of the prediction, to the edge it is near."""
        live = self._prepare_session()
        if live is None or live.images is None:
            return
        images = live.images
        self._start_job(
            live,
            "Growing",
            lambda: self._services.grow_from_labels(images, live.grid, labels),
            lambda grown: self._lay_in(live, f"{GROW_STEP} (from the prediction)", grown),
        )

    def _prepare_session(self) -> EditingSession | None:
        """Return the session with the stroke in hand ended, None (and say why) if not ready."""
        live = self._editing.live
        if live is None:
            self._notifier.hint(_NO_MASK)
            return None
        if live.images is None:
            self._notifier.hint(_NO_IMAGES)
            return None
        self._editing.mask.release()
        return live

    def use(self, request: MaskToolRequest) -> None:
        """Use a tool for the whole mask."""
        live = self._editing.live
        if live is None:
            return
        self._editing.mask.release()
        tool, amount = str(request.tool), request.amount
        planes = outlined_slices(live.steps, live.position)
        # The tool reads it in a thread while the reader may paint on.
        labels = live.labels.copy()

        def done(result: Any) -> None:
            box, mask = result
            parameters = (("amount", amount),) if amount else ()
            if not self._editing.mask.apply(tool, box, mask, parameters):
                self._notifier.hint(f"{tool.capitalize()} changed nothing.")

        self._start_job(
            live,
            tool.capitalize(),
            lambda: self._services.use_mask_tool(
                labels, live.label, live.grid, tool, amount, planes
            ),
            done,
        )

    def _shown_plane(self) -> tuple[int, int] | None:
        axis = self._scene.view.upright_axis
        shown = self._scene.view.place_at(tuple(self._scene.viewer.dims.point))
        return None if axis is None or shown is None else (axis, round(shown[axis]))

    def _start_job(
        self,
        live: EditingSession,
        what: str,
        make_job: Callable[[], Any],
        use_result: Callable[[Any], None],
    ) -> None:
        # The step too: an undo and another step leave the number as it was.
        began = (live.position, live.steps[-1:])

        def take(result: Any) -> None:
            # A stroke in hand is a change too.
            self._editing.mask.release()
            if (live.position, live.steps[-1:]) == began:
                use_result(result)
            else:
                self._notifier.warn(_MEANWHILE.format(what=what.lower()))

        self._jobs.start(
            _LANE,
            what,
            make_job,
            take,
            ended=self.busy_changed.emit,
            still=lambda: self._editing.live is live,
        )
        self.busy_changed.emit()

    def _lay_in(self, live: EditingSession, name: str, grown: Grown) -> None:
        before = self._before
        if before is not None and before.step not in live.steps[: live.position]:
            before = None
        box, mask, added = merge_grown(live.labels, live.label, grown, before, live.grid)
        self._noted = None
        if not self._editing.mask.apply(name, box, mask):
            self._notifier.hint("Growing changed nothing.")
            return
        step = live.steps[live.position - 1]
        self._before = GrownBefore(step, box, added)
        if grown.notes:
            self._noted = (step, "Grown: " + "; ".join(grown.notes) + ".")
