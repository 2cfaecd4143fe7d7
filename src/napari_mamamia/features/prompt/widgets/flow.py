"""Connects the Prompt page, the drawing tool, the editing session and the prompt model."""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from napari_mamamia.core.errors import MamamiaError
from napari_mamamia.core.progress import Progress
from napari_mamamia.core.texts import tr, tr_n
from napari_mamamia.features.prompt.segmentation.engine import EngineInfo, PromptEngine
from napari_mamamia.features.prompt.segmentation.prompts import Prompt, PromptKind
from napari_mamamia.features.prompt.services import channels
from napari_mamamia.features.prompt.services.session import (
    PromptAnswer,
    PromptSession,
    PromptWork,
)
from napari_mamamia.features.prompt.widgets.drawing import PromptDrawing
from napari_mamamia.features.prompt.widgets.page import PromptPage, State
from napari_mamamia.features.prompt.widgets.services import PromptServices
from napari_mamamia.smartpaint.session.session import EditingSession
from napari_mamamia.widgets.base.keys import bind_mask_keys, unbind_mask_keys
from napari_mamamia.widgets.dock.parts import DockParts
from napari_mamamia.widgets.refine.editing import Editing
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart

LANE: Final = "prompt model"


def make_prompt(panel: DockParts, page: PromptPage) -> "PromptFlow":
    """Create the controller of the Prompt page."""
    tools = panel.tools
    drawing = PromptDrawing(panel.context, tools.active_tool, tools.aim, panel.marks)
    panel.planes.links.brushes.append(drawing.attach)
    for pane in panel.planes.panes:
        if not (pane.kind.is_mirrored or pane.kind.is_prior):
            drawing.attach(pane.model)
    keys = MaskKeys(panel)
    drawing.tool_changed.connect(lambda: keys.bind(is_on=drawing.kind is not None))
    flow = PromptFlow(panel.context, page, panel.editing, drawing, panel.readers.with_reader)
    panel.on_close.append(flow.close)
    return flow


class MaskKeys:
    """Keyboard shortcuts for the mask, such as undo, while a prompt tool is on."""

    def __init__(self, panel: DockParts) -> None:
        self._panel = panel
        self._bound: tuple[Any, Any] | None = None

    def bind(self, *, is_on: bool) -> None:
        """Bind the shortcuts to the mask layer, or release them."""
        panel, tool = self._panel, self._panel.active_tool.tool
        bound, self._bound = self._bound, None
        # A tool of the Refine page has bound the same keys just now.
        if bound is not None and (tool is None or tool.owner != "painting"):
            unbind_mask_keys(*bound)
        layer = panel.editing.layer if is_on else None
        if layer is not None:
            panel.editing.choose_layer()
            keys = panel.keys.keys
            bind_mask_keys(layer, panel.refine_flow.actions(), keys)
            self._bound = (layer, keys)


class PromptFlow(WindowPart):
    """Controller that starts and stops the model, and turns each prompt into a step of the mask.

    The model belongs to one editing session and is stopped when another case or mask is opened.
    """

    def __init__(
        self,
        context: WindowContext,
        page: PromptPage,
        editing: Editing,
        drawing: PromptDrawing,
        with_reader: Callable[[Callable[[], None]], None],
    ) -> None:
        super().__init__(context)
        self.page = page
        self._own = self._services.of_feature("prompt", PromptServices)
        self._editing = editing
        self._drawing = drawing
        self._with_reader = with_reader
        self._live: EditingSession | None = None
        self._image: channels.ChannelImage | None = None
        self._engine: PromptEngine | None = None
        self._info: EngineInfo | None = None
        self._prompts: PromptSession | None = None
        self._starts_when_open = False
        page.show_stored(self._own.load_settings())
        page.start_wanted.connect(self.start)
        page.stop_wanted.connect(lambda: self.stop())
        page.cancel_wanted.connect(lambda: self._jobs.stop(LANE))
        page.accept_wanted.connect(self._accept)
        page.kind_wanted.connect(self._choose_kind)
        page.including_changed.connect(lambda: self._choose_kind(drawing.kind))
        drawing.tool_changed.connect(lambda: page.show_kind(drawing.kind))
        drawing.drawn.connect(self._take_drawn)
        editing.opened.connect(self._follow_mask)
        editing.stepped.connect(self._withdraw_text)
        self._session.case_changed.connect(self._follow_case)
        self._follow_case()

    @property
    def prompts(self) -> PromptSession | None:
        """Return the prompt session of the open mask, or None if no model is running."""
        return self._prompts

    # ------------------------------------------------------------ start and stop

    def start(self) -> None:
        """Load the model or connect to the server; create an empty mask if there is none."""
        case, live = self._session.case, self._editing.live
        if case is None or not case.is_loaded:
            self.page.say(tr("The phases are still being read: try again in a moment."), "warning")
            return
        if live is None:
            self._starts_when_open = True
            self._with_reader(lambda: self._editing.start(None))
            return
        page, own = self.page, self._own
        name, settings = page.engine_name, page.settings
        try:
            channel = channels.choose_channel(case, page.channel.currentData() or "")
            own.save_settings({"engine": name, **page.storable})
        except MamamiaError as error:
            page.show_error(error)
            return
        self._live, self._image = live, channels.ChannelImage(case, channel)
        image = self._image

        def connect() -> tuple[PromptEngine, EngineInfo]:
            _ = image.array  # refused before a model is loaded
            engine = own.make_engine(name, settings)
            try:
                return engine, engine.connect()
            except BaseException:
                engine.close()
                raise

        self._run(connect, self._take_connected, discard=lambda answer: answer[0].close())

    def _run(
        self,
        work: Callable[[], Any],
        then: Callable[[Any], object],
        discard: Callable[[Any], object] | None = None,
    ) -> None:
        """Run a job that starts the model; unless it reaches `then`, the model is stopped."""
        live, page = self._live, self.page
        page.show_state(State.STARTING, self._info)
        page.say(tr("Starting…"))

        def fail(error: Exception) -> None:
            self.stop()
            page.show_error(error)

        self._jobs.start(
            LANE,
            tr("Starting the prompt model"),
            work,
            then,
            failed=fail,
            stopped=lambda: self.stop(tr("Cancelled.")),
            still=lambda: self._live is live,
            discard=discard,
            on_progress=self._show_progress,
            in_turn_of=LANE,
        )

    def _take_connected(self, answer: tuple[PromptEngine, EngineInfo]) -> None:
        self._engine, self._info = answer
        if self._own.is_accepted(self._info):
            self._send_image()
        else:
            self.page.say("")
            self.page.show_state(State.LICENCE, self._info)

    def _accept(self) -> None:
        if self._info is None:
            return
        try:
            self._own.accept_licence(self._info)
        except MamamiaError as error:
            self.page.show_error(error)
            return
        self._send_image()

    def _send_image(self) -> None:
        live, image, engine, info = self._live, self._image, self._engine, self._info
        if live is None or image is None or engine is None or info is None:
            return

        def begin(_sent: None) -> None:
            self._prompts = PromptSession(live, image, engine, info)
            self.page.show_state(State.READY, info)
            self.page.say(tr("The model is ready: choose a tool and draw on the image."))

        self._run(lambda: engine.set_image(image.array, image.case.grid.spacing_mm), begin)

    def stop(self, text: str = "") -> None:
        """Stop the model; the mask is kept."""
        engine, was_on = self._engine, self._live is not None
        self._live = self._image = self._engine = self._info = self._prompts = None
        self._drawing.turn_off()
        if was_on:
            self._jobs.cancel(LANE)
        if engine is not None:
            # Its process takes a moment to end; a lane of its own is never cancelled.
            lane = f"{LANE} {id(engine)}"
            ending = tr("Ending the prompt model")
            self._jobs.start(lane, ending, engine.close, lambda _none: None, shown=False)
        self.page.show_state(State.IDLE)
        self.page.say(text)

    def close(self) -> None:
        """Stop the model, because the window closes."""
        engine, self._engine, self._live, self._prompts = self._engine, None, None, None
        if engine is not None:
            engine.close()

    # ------------------------------------------------------------------- prompts

    def _choose_kind(self, kind: PromptKind | None) -> None:
        if kind is None or self._prompts is None:
            self._drawing.turn_off()
        else:
            self._drawing.turn_on(kind, is_including=self.page.is_including)
        self.page.show_kind(self._drawing.kind)

    def _take_drawn(self, kind: PromptKind, points: Any, is_including: bool) -> None:
        try:
            self.ask(Prompt(kind, points, is_including))
        except MamamiaError as error:
            self.page.show_error(error)

    def ask(self, prompt: Prompt) -> None:
        """Send a prompt on the open mask to the model.

        Raises
        ------
        CaseError
            If the prompt does not fit the image, or another prompt has not been answered yet.
        """
        prompts, page = self._prompts, self.page
        if prompts is None:
            return
        if prompts.is_waiting:
            page.say(
                tr("The model is still working on the last prompt: wait or cancel."), "warning"
            )
            return
        self._editing.mask.release()
        work = prompts.prepare(prompt)
        page.show_state(State.ASKING, prompts.info)
        page.say(tr("Asking the model…"))

        def drop(error: Exception | None) -> None:
            prompts.drop(work)
            page.say(tr("Cancelled; your mask is unchanged."))
            if error is not None:
                page.show_error(error)

        def end() -> None:
            if self._prompts is prompts and not prompts.is_waiting:
                page.show_state(State.READY, prompts.info)

        self._jobs.start(
            LANE,
            tr("Asking the prompt model"),
            partial(self._own.run_prompt, work),
            partial(self._take_answer, prompts, work),
            failed=drop,
            stopped=lambda: drop(None),
            ended=end,
            still=lambda: self._prompts is prompts,
            on_progress=self._show_progress,
            in_turn_of=LANE,
        )

    def _take_answer(self, prompts: PromptSession, work: PromptWork, answer: PromptAnswer) -> None:
        self._editing.mask.release()
        outcome = prompts.finish(work, answer)
        if outcome is not None:
            self._editing.mask.show_step(outcome.step)
            changed = 0 if outcome.step is None else outcome.step.edit.changed_voxels
            text = tr_n("{n} voxel changed.", "{n} voxels changed.", changed) if changed else ""
            self.page.say("\n".join(filter(None, (text, *outcome.notes))))

    def _show_progress(self, progress: Progress) -> None:
        self.page.say(f"{progress.text}…")

    # ----------------------------------------------------------------- following

    def _follow_mask(self) -> None:
        live = self._editing.live
        if self._live is not None and live is not self._live:
            self.stop(tr("Another mask was opened, so the model was stopped."))
        starts, self._starts_when_open = self._starts_when_open and live is not None, False
        if starts:
            self.start()

    def _withdraw_text(self) -> None:
        """Remove the message about the last prompt once the mask changes again."""
        if self._prompts is not None and not self._prompts.is_waiting:
            self.page.say("")

    def _follow_case(self) -> None:
        case = self._session.case
        self.page.need("" if case else tr("Open a case first."))
        if case is None:
            self.page.show_channels(())
        else:
            pictures = channels.draw_channels(case) if case.is_loaded else ()
            self.page.show_channels(channels.list_channels(case), pictures)
