"""Growing in 3-D and tools for the whole mask, run as jobs whose results become steps."""

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import Signal

from napari_mamamia.core.box import Box
from napari_mamamia.core.edits import Brush, Edit, Voxel
from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.texts import tr, tr_n
from napari_mamamia.services.refine.grow_mask import (
    EDGE_MM,
    GROW_AGAIN,
    GROW_STEP,
    TIGHTEN,
    GrownBefore,
    GrowthKind,
    choose_growth,
    farther_mm,
    lay_grown,
    merge_grown,
    recall_growth,
    seeds_of,
    seeds_without_growth,
    steps_of,
    without_outlines,
)
from napari_mamamia.services.refine.leaks import CUT_STEP, REMOVE_STEP, cut_removal
from napari_mamamia.services.refine.outlines import outlined_slices
from napari_mamamia.smartpaint.grow.grow import Grown
from napari_mamamia.smartpaint.grow.start import GrowSettings
from napari_mamamia.smartpaint.parts import Removal
from napari_mamamia.smartpaint.session.session import EditingSession
from napari_mamamia.widgets.refine.editing import Editing
from napari_mamamia.widgets.refine.more import MaskToolRequest
from napari_mamamia.widgets.refine.painting import Painting
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart

_LANE: Final = "grow"
_NOTHING: Final = tr("Outline the tumour on a slice first (key O), or point at it and press R.")
_NO_MASK: Final = tr("Make your own mask first: use “Start from” on the Refine page.")
_NO_IMAGES: Final = tr(
    "Growing needs all phases, which are still being read or measured: try again in a moment."
)
_MEANWHILE: Final = tr(
    "The mask was changed, or another lesion was chosen, while {what} ran, so the result was "
    "discarded: start it again."
)


GrowJob = Callable[[GrowSettings | None], Grown]
RemovalJob = Callable[[NDArray[np.uint8], NDArray[np.uint16]], Removal]


class Growing(WindowPart):
    """A component that runs one job at a time; the result is discarded if the mask has changed."""

    busy_changed = Signal()

    def __init__(self, context: WindowContext, editing: Editing, painting: Painting) -> None:
        super().__init__(context)
        self._editing = editing
        self._painting = painting
        self._before: dict[int, GrownBefore] = {}
        self._noted: tuple[Edit, str] | None = None
        self._cut_off: tuple[Edit, float, str, GrowJob] | None = None
        self._reach_mm = 0.0
        self._hint = ""
        painting.grown_so_far = self._grown_so_far
        editing.opened.connect(self._forget_growths)
        for ended in (editing.opened, editing.stepped):
            ended.connect(self._withdraw_hint)

    @property
    def is_busy(self) -> bool:
        """Whether a tool is running."""
        return self._jobs.is_running(_LANE)

    @property
    def note(self) -> str:
        """The note about the current step if it is a growth, or "" otherwise."""
        live = self._editing.live
        if live is None or self._noted is None or not live.position:
            return ""
        step, text = self._noted
        return text if live.steps[live.position - 1] is step else ""

    @property
    def farther_mm(self) -> float | None:
        """The next larger search radius if the current step reached its limit, or None."""
        live = self._editing.live
        if live is None or self._cut_off is None or not live.position:
            return None
        step, radius_mm, *_ = self._cut_off
        is_here = live.steps[live.position - 1] is step and step.label == live.label
        return radius_mm if is_here else None

    @property
    def kind(self) -> GrowthKind:
        """The type of evidence from which the next growth starts."""
        live = self._editing.live
        return GrowthKind.CLICK if live is None else choose_growth(live)

    def _forget_growths(self) -> None:
        """Discard the data of a closed mask, because its job holds the images of the case."""
        self._before = {}
        self._noted = self._cut_off = None

    def seed_text(self) -> str:
        """Return a text about the evidence from which the next growth starts."""
        live, kind = self._editing.live, self.kind
        if live is not None and kind is GrowthKind.OUTLINES:
            count = len(outlined_slices(steps_of(live), live.label))
            return tr_n(
                "from {n} outline",
                "from {n} outlines",
                count,
            )
        is_click = kind is GrowthKind.CLICK
        return tr("from the pointer") if is_click else tr("from the mask, strokes and outlines")

    def set_reach(self, radius_mm: float) -> None:
        """Set the search radius for growing again a region that reached its limit."""
        self._reach_mm = radius_mm

    def grow(self) -> None:
        """Grow the lesion from outlines alone, from all evidence, or from a click.

        The pointer position counts as the click. A region that reached its limit is grown again up
        to the reader's new limit.
        """
        live = self._prepare_session()
        if live is None or live.images is None:
            return
        if self.farther_mm is not None and self._cut_off is not None and self._reach_mm:
            _, _, name, job = self._cut_off
            self._start_growth(live, name, job, GrowSettings(radius_mm=self._reach_mm))
        elif self.kind is GrowthKind.OUTLINES:
            self._grow_outlines(live)
        elif (live.labels == live.label).any():
            self._grow_again(live)
        else:
            self._grow_click(live)

    def tighten(self) -> None:
        """Move the mask's edge to the nearest edge of the image."""
        live = self._prepare_session()
        if live is None:
            return
        if (live.labels == live.label).any():
            self._grow_again(live, TIGHTEN, EDGE_MM)
        else:
            self._say_hint(_NOTHING)

    def _grow_outlines(self, live: EditingSession) -> None:
        images, grid = live.images, live.grid
        seeds = seeds_without_growth(live, self._last_growth(live))
        if not seeds or images is None:
            self._say_hint(_NOTHING)
            return
        name = f"{GROW_STEP} ({len(seeds)} outline{'s' * (len(seeds) > 1)})"
        self._start_growth(live, name, lambda more: self._services.grow(images, grid, seeds, more))

    def _grow_click(self, live: EditingSession) -> None:
        images, grid, point = live.images, live.grid, self._painting.place
        problem = self._painting.problem_in(self._scene.viewer)
        if problem or point is None or images is None:
            self._say_hint(problem or _NOTHING)
            return
        name = f"{GROW_STEP} (from a click)"
        grow = self._services.grow_from_click
        self._start_growth(live, name, lambda more: grow(images, grid, point, more))

    def _start_growth(
        self,
        live: EditingSession,
        name: str,
        job: GrowJob,
        settings: GrowSettings | None = None,
    ) -> None:
        self._start_job(
            live,
            "Growing",
            lambda: job(settings),
            lambda grown: self._lay_in(live, name, grown, job),
        )

    def _grow_again(
        self, live: EditingSession, name: str = GROW_AGAIN, edge_mm: float | None = None
    ) -> None:
        images, grid, label = live.images, live.grid, live.label
        if images is None:
            return
        # Not copied: if the reader paints meanwhile, the result is dropped.
        labels, words = live.labels, live.state.words(label)
        seeds = seeds_of(labels, label, outlined_slices(steps_of(live), label))

        def take(grown: Grown) -> None:
            box, mask = lay_grown(labels, label, grown, grid)
            self._finish_growth(live, name, box, mask, grown)

        self._start_job(
            live,
            tr("Growing again") if edge_mm is None else tr("Tightening to edges"),
            lambda: self._services.grow_again(
                images, grid, labels, words, label, seeds, edge_mm=edge_mm
            ),
            take,
        )

    def grow_in_box(self, box: Box) -> None:
        """Grow a region from the brightest part of a box drawn around the tumour."""
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
        """Grow a mask (z, y, x), such as a candidate of the prediction, to the nearest edge."""
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

    def _say_hint(self, text: str) -> None:
        self._hint = text
        self._notifier.hint(text)

    def _withdraw_hint(self) -> None:
        hint, self._hint = self._hint, ""
        if hint:
            self._notifier.withdraw(hint)

    def _prepare_session(self) -> EditingSession | None:
        live = self._editing.live
        if live is None:
            self._say_hint(_NO_MASK)
            return None
        if live.images is None:
            self._say_hint(_NO_IMAGES)
            return None
        self._editing.mask.release()
        return live

    def use(self, request: MaskToolRequest) -> None:
        """Apply a tool to the whole mask."""
        live = self._editing.live
        if live is None:
            return
        self._editing.mask.release()
        tool, amount = str(request.tool), request.amount
        planes = outlined_slices(steps_of(live), live.label)
        # The tool reads it in a thread while the reader may paint.
        labels = live.labels.copy()

        def done(result: Any) -> None:
            box, mask = result
            parameters = (("amount", amount),) if amount else ()
            if not self._editing.mask.apply(tool, box, mask, parameters):
                self._say_hint(tr("{capitalize} changed nothing.", capitalize=tool.capitalize()))

        self._start_job(
            live,
            tool.capitalize(),
            lambda: self._services.use_mask_tool(
                labels, live.label, live.grid, tool, amount, planes
            ),
            done,
        )

    def remove_part(self, place: Voxel, label: int) -> None:
        """Permanently remove the mask's component at a point."""
        live = self._editing.live
        if live is not None:
            find = self._services.remove_part
            self._start_removal(
                live,
                REMOVE_STEP,
                label,
                lambda labels, words: find(labels, words, label, live.grid, place),
            )

    def cut(self, line: tuple[Voxel, Voxel], brush: Brush) -> None:
        """Permanently remove the part of the mask that a line on a slice cuts off."""
        live = self._editing.live
        if live is not None:
            find, axis = self._services.cut_off, brush.plane_axis
            self._start_removal(
                live,
                CUT_STEP,
                brush.label,
                lambda labels, words: find(labels, words, brush.label, live.grid, line, axis),
            )

    def _start_removal(self, live: EditingSession, name: str, label: int, find: RemovalJob) -> None:
        self._editing.mask.release()
        # Not copied: if the reader paints meanwhile, the result is dropped.
        labels, words = live.labels, live.state.words(label)

        def take(removal: Removal) -> None:
            box, mask = cut_removal(labels, label, removal)
            self._editing.mask.apply(name, box, mask, label=label, holds=True)
            text = f"{removal.text[0].upper()}{removal.text[1:]}."
            self._painting.said.emit(text, False)

        def refuse(error: Exception) -> None:
            if isinstance(error, CaseError):
                self._painting.said.emit(f"{str(error)[0].upper()}{str(error)[1:]}.", True)
            else:
                self._notifier.fail(tr("Removing a part"), error)

        self._start_job(live, name.capitalize(), lambda: find(labels, words), take, refuse)

    def _start_job(
        self,
        live: EditingSession,
        what: str,
        make_job: Callable[[], Any],
        use_result: Callable[[Any], None],
        refuse: Callable[[Exception], None] | None = None,
    ) -> None:
        # Compare the step too: an undo and another step keep the number. And the lesion: the
        # growth of one is not applied to another.
        began = (live.position, live.steps[-1:], live.label)

        def take(result: Any) -> None:
            # A current stroke is a change too.
            self._editing.mask.release()
            if (live.position, live.steps[-1:], live.label) == began:
                use_result(result)
            else:
                self._notifier.warn(_MEANWHILE.format(what=what.lower()))

        self._jobs.start(
            _LANE,
            what,
            make_job,
            take,
            failed=refuse,
            ended=self.busy_changed.emit,
            still=lambda: self._editing.live is live,
        )
        self.busy_changed.emit()

    def _lay_in(
        self, live: EditingSession, name: str, grown: Grown, job: GrowJob | None = None
    ) -> None:
        before = self._last_growth(live)
        seeds = seeds_without_growth(live, before)
        box, mask, added = merge_grown(live.labels, live.label, grown, before, live.grid)
        added = without_outlines(box, added, seeds)
        step = self._finish_growth(live, name, box, mask, grown)
        if step is None:
            return
        self._before[step.label] = GrownBefore(step, box, added)
        radius_mm = farther_mm(grown, live.grid)
        if job is not None and radius_mm is not None:
            self._cut_off = (step, radius_mm, name, job)

    def _last_growth(self, live: EditingSession) -> GrownBefore | None:
        before = self._before.get(live.label)
        is_there = before is not None and any(step is before.step for step in steps_of(live))
        return before if is_there else recall_growth(live)

    def _grown_so_far(self) -> tuple[Box, NDArray[np.bool_]] | None:
        live = self._editing.live
        before = None if live is None else self._last_growth(live)
        if before is None or self.kind is not GrowthKind.OUTLINES:
            return None
        return before.box, before.added

    def _finish_growth(
        self, live: EditingSession, name: str, box: Box, mask: NDArray[np.bool_], grown: Grown
    ) -> Edit | None:
        self._noted = self._cut_off = None
        notes = "; ".join(grown.notes)
        if not self._editing.mask.apply(name, box, mask):
            self._say_hint(tr("Growing did not change the mask: {notes}", notes=notes).strip())
            return None
        step = live.steps[live.position - 1]
        if notes:
            self._noted = (step, tr("Grown: {notes}.", notes=notes))
        return step
