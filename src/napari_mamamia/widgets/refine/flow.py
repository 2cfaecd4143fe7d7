"""Controller of the Refine page: tools, strokes, history, measurements and saving."""

from collections.abc import Callable, Sequence
from typing import Final

from qtpy.QtCore import QTimer, Signal

from napari_mamamia.core.edits import Voxel
from napari_mamamia.core.texts import tr
from napari_mamamia.services.refine.grow_mask import GrowthKind, steps_of
from napari_mamamia.services.refine.live_edits import suggest_radius_mm
from napari_mamamia.widgets.base.header import Header
from napari_mamamia.widgets.base.keys import (
    Key,
    bind_edit_keys,
    bind_image_keys,
    bind_mask_keys,
    unbind_edit_keys,
    unbind_image_keys,
    unbind_mask_keys,
)
from napari_mamamia.widgets.base.layers import Role
from napari_mamamia.widgets.base.notify import Level
from napari_mamamia.widgets.base.pages import find_page
from napari_mamamia.widgets.refine.editing import Editing
from napari_mamamia.widgets.refine.growing import Growing
from napari_mamamia.widgets.refine.history_list import UndoMemory, offer_text
from napari_mamamia.widgets.refine.mask_watch import SaveState
from napari_mamamia.widgets.refine.measure import RefineMeasure, images_text
from napari_mamamia.widgets.refine.page import RefinePage
from napari_mamamia.widgets.refine.painting import Painting
from napari_mamamia.widgets.refine.protocols import Protocols
from napari_mamamia.widgets.refine.readers import Readers
from napari_mamamia.widgets.refine.state import RADII_MM, PaintTool, choose_next
from napari_mamamia.widgets.viewer.active_tool import ActiveTool
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart
from napari_mamamia.widgets.viewer.marks import Marks
from napari_mamamia.widgets.viewer.prompts import PromptTool

_CLOCK_MS: Final = 1_000
_STEP: Final = "Mask"
"""The step in whose pages undo and redo are available."""


class RefineFlow(WindowPart):
    """A controller that connects page, saved state, session, painting, growing and measuring.

    The signal `next_changed` carries the `NextStep` of the own mask.
    """

    next_changed = Signal(object)

    def __init__(
        self,
        context: WindowContext,
        page: RefinePage,
        header: Header,
        editing: Editing,
        active_tool: ActiveTool,
        painting: Painting,
        growing: Growing,
        box: PromptTool,
        measure: RefineMeasure,
        marks: Marks,
        protocols: Protocols,
        readers: Readers,
        keys: Sequence[Key],
    ) -> None:
        super().__init__(context)
        self._page = page
        self._header = header
        self._editing = editing
        self._active_tool = active_tool
        self._painting = painting
        self._growing = growing
        self._box = box
        self._readers = readers
        self._grows_when_ready = False
        self._measure = measure
        self._marks = marks
        self._protocols = protocols
        self._keys = keys
        self._keys_on: object = None
        self._edited: object = None
        page.start_wanted.connect(lambda role: readers.with_reader(lambda: editing.start(role)))
        self._connect_page()
        self._connect_rest()
        # Measuring begins one event-loop iteration after the mask is shown, so that neither
        # blocks the window for long.
        self._begin = QTimer(self)
        self._begin.setSingleShot(True)
        self._begin.timeout.connect(self._measure.begin)
        self._clock = QTimer(self)
        self._clock.setInterval(_CLOCK_MS)
        self._clock.timeout.connect(self._update_clock)
        self._clock.start()
        self.undo_memory = UndoMemory(context, page.history, editing)
        self._show_case()

    def _connect_page(self) -> None:
        page, editing, painting = self._page, self._editing, self._painting
        page.tools.tool_wanted.connect(painting.set_tool)
        page.tools.brush_wanted.connect(painting.set_brush)
        page.tools.label_wanted.connect(self._protocols.choose_label)
        page.tools.grow_wanted.connect(self._growing.grow)
        page.tools.reach_wanted.connect(self._growing.set_reach)
        page.more.tool_wanted.connect(self._growing.use)
        page.more.box_wanted.connect(lambda on: self._box.set_mode("box" if on else ""))
        page.more.prediction_wanted.connect(self.grow_prediction)
        page.more.tighten_wanted.connect(self._growing.tighten)
        self._box.mode_changed.connect(lambda mode: page.more.set_asking(bool(mode)))
        self._box.given.connect(lambda prompt: self._growing.grow_in_box(prompt.box))
        page.protocol_wanted.connect(self._protocols.ask)
        page.history.undo_wanted.connect(editing.mask.undo)
        page.history.redo_wanted.connect(editing.mask.redo)
        page.history.position_wanted.connect(editing.mask.go_to)
        page.take_over_wanted.connect(editing.take_over)
        page.save_wanted.connect(editing.save)
        page.discard_wanted.connect(editing.discard)
        page.changes_wanted.connect(self.show_changes)
        page.compare_wanted.connect(self.compare)
        page.marks_wanted.connect(self.show_marks)
        page.forget_wanted.connect(editing.mask.forget_marks)
        page.lesion_wanted.connect(self._protocols.begin_lesion)

    def _connect_rest(self) -> None:
        session, editing = self._session, self._editing
        editing.opened.connect(self._show_opened)
        editing.state_changed.connect(self._show_state)
        editing.stepped.connect(self._show_steps)
        editing.stepped.connect(self._measure.measure_later)
        self._painting.state_changed.connect(self._show_tool)
        self._painting.pointed.connect(self._suggest_radius)
        self._painting.over_wanted.connect(self._measure.show_changes)
        self._painting.said.connect(
            lambda text, is_advice: self._page.tools.show_stroke(text, is_advice=is_advice)
        )
        self._painting.part_pointed.connect(self._growing.remove_part)
        self._painting.line_drawn.connect(self._growing.cut)
        self._measure.numbers.connect(self._page.numbers.show_numbers)
        self._measure.numbers.connect(lambda _numbers: self._show_next())
        self._measure.images_ready.connect(self._show_images)
        self._measure.images_ready.connect(self._grow_now)
        self._growing.busy_changed.connect(self._show_images)
        self._growing.busy_changed.connect(self._show_steps)
        self._protocols.changed.connect(self._show_protocol)
        self._protocols.label_changed.connect(self._measure.measure_label)
        self._protocols.label_changed.connect(self._show_steps)
        session.case_changed.connect(self._show_case)
        session.masks_changed.connect(self._show_masks)

    # ----------------------------------------------------------------- actions

    def actions(self) -> dict[str, Callable[..., object]]:
        """Return the actions of this page's shortcuts by action name."""
        painting, editing = self._painting, self._editing
        handlers: dict[str, Callable[..., object]] = {
            "smartpaint": lambda: painting.toggle_tool(PaintTool.SMARTPAINT),
            "outline_tool": lambda: painting.toggle_tool(PaintTool.OUTLINE),
            "other_action": painting.toggle_action,
            "grow": self._growing.grow,
            "smaller": lambda: painting.step_radius(-1),
            "larger": lambda: painting.step_radius(1),
            "compare": self.compare,
            "undo": lambda: self._turn_history("undo", editing.mask.undo),
            "redo": lambda: self._turn_history("redo", editing.mask.redo),
            "move_image": painting.pause,
            "drop_stroke": self.drop_stroke,
        }
        pages = {key.action: key.page for key in self._keys}
        return {
            name: self._on_page(name, action) if pages.get(name) else action
            for name, action in handlers.items()
        }

    def _on_page(self, name: str, action: Callable[..., object]) -> Callable[..., object]:

        def act(*held: bool) -> None:
            key = next(key for key in self._keys if key.action == name)
            if self._active_tool.page == key.page or held == (False,):
                action(*held)
            else:
                self._notifier.hint(
                    tr(
                        "{shown} works only on the {page} page: go there first.",
                        shown=key.shown,
                        page=key.page,
                    )
                )

        return act

    def _turn_history(self, name: str, action: Callable[[], None]) -> None:
        is_shown = find_page(self._active_tool.page).step == _STEP
        if is_shown or self._active_tool.tool is not None:
            action()
        elif self._editing.live is not None:
            shown = next(key.shown for key in self._keys if key.action == name)
            self._notifier.hint(
                tr("{shown} works only in the Mask step: go there first.", shown=shown)
            )

    def drop_stroke(self) -> bool:
        """Discard the current stroke, or stop waiting for a click or a box.

        Return whether a tool is active; if so, Esc has no further effect.
        """
        is_active = self._active_tool.tool is not None
        self._painting.drop_stroke()
        self._active_tool.stop_waiting()
        return is_active

    def grow_prediction(self) -> None:
        """Grow the displayed prediction into the own mask, creating the own mask if necessary."""
        self._grows_when_ready = True
        if self._editing.live is None:
            self._readers.with_reader(lambda: self._editing.start(None))
        elif self._measure.images is not None:
            self._grow_now()

    def _grow_now(self) -> None:
        is_due, self._grows_when_ready = self._grows_when_ready, False
        mask = self._session.mask(Role.PREDICTION)
        if is_due and mask is not None:
            self._growing.grow_mask(mask.buffer)

    def set_keys(self, keys: Sequence[Key]) -> None:
        """Replace the shortcuts that are bound on the layers."""
        before, self._keys = self._keys, keys
        image = self._scene.layer(Role.PHASE)
        if image is not None:
            unbind_image_keys(image, before)
            bind_image_keys(image, self.actions(), keys)
        if self._keys_on is not None:
            unbind_mask_keys(self._keys_on, before)
            bind_mask_keys(self._keys_on, self.actions(), keys)
        if self._edited is not None:
            unbind_edit_keys(self._edited, before)
            bind_edit_keys(self._edited, self.actions(), keys)

    def compare(self, held: bool) -> None:
        """Show the initial mask instead of the current mask while the key is held."""
        live = self._editing.live
        layer = self._editing.layer
        if live is None or layer is None:
            return
        self._painting.is_comparing = held
        self._painting.marks_are_free = not held and not self._measure.is_drawing
        layer.visible = not held
        self._marks.as_outline(held)
        if held:
            start = live.start_labels
            self._marks.draw(start.box, start.crop == live.label, "start")
        else:
            self._marks.clear()
            self._measure.show_changes()
        self._page.set_comparing(held, changes=self._measure.wants_changes)

    def show_changes(self, wanted: bool) -> None:
        """Show or hide the voxels added and removed since the start."""
        self._draw_over(changes=wanted, marks=False)

    def show_marks(self, wanted: bool) -> None:
        """Show or hide the voxels that strokes keep inside or outside the mask."""
        self._draw_over(changes=False, marks=wanted)

    def _draw_over(self, *, changes: bool, marks: bool) -> None:
        self._measure.wants_changes, self._measure.wants_marks = changes, marks
        self._painting.marks_are_free = not self._measure.is_drawing
        self._marks.clear()
        self._measure.show_changes()
        self._page.set_comparing(False, changes=changes)
        self._page.show_marks(shown=marks)

    # ------------------------------------------------------------------ showing

    def _show_case(self) -> None:
        self._page.need("" if self._session.case else tr("Open a case first."))
        self._grows_when_ready = False
        self._marks.set_case(self._session.case)
        self._measure.measure_images()
        image = self._scene.layer(Role.PHASE)
        if image is not None:
            bind_image_keys(image, self.actions(), self._keys)
        self._show_masks()
        self._show_images()

    def _show_masks(self) -> None:
        self._page.show_sources(tuple(self._session.masks))
        self._page.more.set_prediction(self._session.mask(Role.PREDICTION) is not None)
        mask = self._session.mask(Role.REFINED)
        whose = ""
        if mask is not None:
            origin = mask.started_from or tr("an empty mask")
            name = self._readers.shown_name if self._session.study else mask.name
            whose = tr("{name}'s mask, made from {origin}", name=name, origin=origin)
        self._page.show_mask(whose, has_mask=self._editing.live is not None)
        self._bind_undo()
        self._show_state()

    def _bind_undo(self) -> None:
        layer = self._editing.layer
        if layer is self._edited:
            return
        if self._edited is not None:
            unbind_edit_keys(self._edited, self._keys)
        if layer is not None:
            bind_edit_keys(layer, self.actions(), self._keys)
        self._edited = layer

    def _show_opened(self) -> None:
        self.show_changes(False)
        if self._editing.live is None:
            self._painting.set_tool(PaintTool.NONE)
        self._begin.start()
        self._protocols.apply()
        self._show_masks()
        self._show_offer()
        self._show_steps()
        self._show_images()

    def _show_offer(self) -> None:
        opened = self._editing.open
        recovered = opened.recovered if opened else None
        self._page.show_offer(offer_text(recovered) if recovered else "")

    def _show_steps(self) -> None:
        live = self._editing.live
        self._bind_undo()
        self._page.tools.show_grow_note(self._growing.note)
        if live is None:
            self._page.history.show_steps((), 0, "", can_undo=False, can_redo=False)
            return
        self._page.history.show_steps(
            live.steps,
            live.position,
            live.summary.started_from or tr("empty mask"),
            can_undo=live.undoes_in(live.label),
            can_redo=live.redoes_in(live.label),
        )
        growing, tools = self._growing, self._page.tools
        tools.show_outlines(growing.seed_text(), is_again=growing.kind is GrowthKind.EVIDENCE)
        tools.show_reach(growing.farther_mm)
        self._show_offer()
        self._show_next()

    def _show_state(self) -> None:
        saving = self._editing.saving
        state, text = self._editing.state, saving.text
        level = Level.ERROR if saving.is_failing else Level.HINT
        self._header.set_saved(text, level, saving.short_text)
        mask = self._session.mask(Role.REFINED)
        where = f"\n{mask.saved.path}" if mask and mask.saved else ""
        self._header.saved.setToolTip(
            tr("Save state of the edited mask: {words}{where}.", words=text, where=where)
        )
        can_save = self._editing.is_dirty or state is SaveState.NEW
        self._page.set_save_is_next(can_save, failed=state is SaveState.FAILED)
        self._show_next()

    def _show_next(self) -> None:
        live = self._editing.live
        if live is None:
            return
        numbers = self._measure.shown.now
        is_empty = not live.position if numbers is None else not numbers.volume_mm3
        steps = steps_of(live)
        last = steps[-1].tool if steps else ""
        is_failing = self._editing.state is SaveState.FAILED
        opened = self._editing.open
        step = choose_next(
            last,
            is_empty=is_empty,
            is_failing=is_failing,
            is_offered=opened is not None and opened.recovered is not None,
        )
        self._page.show_next(step, self._painting.state.tool)
        self.next_changed.emit(step)

    def _show_tool(self) -> None:
        state = self._painting.state
        self._page.tools.show_state(state)
        self._show_next()
        if not state.is_painting:
            self._page.tools.show_suggestion(None)
        layer = self._editing.layer if state.tool is not PaintTool.NONE else None
        if layer is not self._keys_on:
            if self._keys_on is not None:
                unbind_mask_keys(self._keys_on, self._keys)
            if layer is not None:
                bind_mask_keys(layer, self.actions(), self._keys)
            self._keys_on = layer

    def _show_images(self) -> None:
        case = self._session.case
        images = self._measure.images
        reading = case is not None and not case.is_loaded
        text = images_text(images, is_reading=reading)
        missing = images is None or bool(images.missing)
        self._page.tools.show_hint(text if missing else "", "warning")
        self._page.tools.show_images("" if missing else text)
        self._page.tools.set_usable(images is not None, self._growing.is_busy)
        self._page.more.set_busy(self._growing.is_busy)

    def _show_protocol(self) -> None:
        text, checklist, labels = self._protocols.shown()
        self._page.show_protocol(text, checklist)
        live = self._editing.live
        self._page.tools.show_labels(labels, None if live is None else live.label)

    def _suggest_radius(self, place: Voxel) -> None:
        live = self._editing.live
        if live is None or not self._page.isVisible():
            return
        self._page.tools.show_suggestion(suggest_radius_mm(live, place, RADII_MM))

    def _update_clock(self) -> None:
        self._show_state()
        if self._protocols.is_timed:
            self._show_protocol()
