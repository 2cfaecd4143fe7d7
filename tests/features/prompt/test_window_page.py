"""The Prompt page in the panel, with answers that the real nnInteractive gave."""

import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from napari.components import ViewerModel
from qtpy.QtCore import Qt
from tests.features.prompt.prompt_story import (
    BOX,
    OUTLINE,
    SCRIBBLE,
    RecordedEngine,
    kinetic_labels,
    small_case,
)
from tests.widgets.conftest import World

from napari_mamamia.core.edits import Action, Brush, Tool
from napari_mamamia.core.errors import CaseError, Remedy
from napari_mamamia.core.progress import report_progress
from napari_mamamia.features.prompt.segmentation.engine import EngineLostError
from napari_mamamia.features.prompt.segmentation.engines import check_server
from napari_mamamia.features.prompt.segmentation.prompts import Prompt, PromptKind
from napari_mamamia.features.prompt.widgets.drawing import OWNER
from napari_mamamia.features.prompt.widgets.services import PromptServices
from napari_mamamia.widgets.base.layers import Role
from napari_mamamia.widgets.dock.dock import MamamiaDock


class SmallWorld(World):
    """Cases with the images of the recorded story, and the mask that it starts from."""

    def open_case(self, files, record=None, first=1):
        return replace(small_case(), case_id=files.case_id)


class PromptWorld:
    """The services of the page: one recorded engine, and what was asked."""

    def __init__(self):
        self.engine = RecordedEngine()
        self.made = []
        self.accepted = set()
        self.stored = {}
        self.go_on = threading.Event()
        self.go_on.set()
        self.error = None

    def make_engine(self, name, settings):
        self.made.append((name, settings))
        if self.error:
            raise self.error
        return self.engine

    def run_prompt(self, work):
        while not self.go_on.wait(0.01):
            report_progress(0, 1, "Waiting for the prompt model")
        if self.error:
            self.engine.is_open = False
            raise self.error
        return RUN(work)

    def services(self):
        return PromptServices(
            make_engine=self.make_engine,
            run_prompt=self.run_prompt,
            is_accepted=lambda info: info.licence in self.accepted,
            accept_licence=lambda info: self.accepted.add(info.licence),
            load_settings=lambda: dict(self.stored),
            save_settings=self.stored.update,
        )


RUN = PromptServices().run_prompt


@pytest.fixture
def prompting():
    return PromptWorld()


@pytest.fixture
def dock(qtbot, tmp_path, prompting):
    """The panel on a viewer without a window, with case A_1 and the mask of Ana open."""
    world = SmallWorld(tmp_path, has_reference=False)
    world.refined = {("Ana", name): kinetic_labels() for name in ("A_1", "A_2")}
    services = world.services().replacing(prompt=prompting.services())
    panel = MamamiaDock(ViewerModel(), services)
    qtbot.addWidget(panel)
    panel.resize(360, 900)
    panel.show()
    panel.open_data_set(Path("data"), "A_1")
    qtbot.waitUntil(lambda: panel.editing.live is not None)
    panel.show_page("Prompt")
    yield panel
    panel.close_down()


def start(qtbot, panel):
    flow = panel.flow("Prompt")
    flow.page.start.click()
    qtbot.waitUntil(lambda: flow.page.accept.isVisible() or flow.prompts is not None)
    if flow.prompts is None:
        flow.page.accept.click()
        qtbot.waitUntil(lambda: flow.prompts is not None)
    return flow


def ask(qtbot, flow, kind, points, include=True):
    flow.ask(Prompt(kind, tuple(points), include))
    qtbot.waitUntil(lambda: not flow.prompts.is_waiting)


def mask(panel):
    return panel.editing.live.labels == 1


def test_each_image_that_the_model_may_see_has_a_picture(dock):
    channel = dock.flow("Prompt").page.channel
    assert channel.currentIndex() == 0
    assert channel.currentData() == "subtraction"
    texts = [channel.itemText(index) for index in range(channel.count())]
    assert len(texts) == len(set(texts)) == 4
    for index in range(channel.count()):
        assert not channel.itemIcon(index).isNull()
        assert "<img" in channel.itemData(index, Qt.ItemDataRole.ToolTipRole)
    assert channel.iconSize().width() > 0


def test_prompts_brush_and_undo_are_steps_of_the_open_mask_with_the_recorded_answers(
    qtbot, dock, prompting
):
    flow = start(qtbot, dock)
    assert np.array_equal(dock.editing.live.labels, kinetic_labels())
    ask(qtbot, flow, "box", BOX)
    z, y, x = np.ogrid[:24, :40, :48]
    boxed = (z == 9) & (y >= 20) & (y < 30) & (x >= 20) & (x < 34)
    assert np.array_equal(mask(dock), boxed | (kinetic_labels() == 1))
    ask(qtbot, flow, "scribble", SCRIBBLE, include=False)
    dock.editing.mask.press((9.0, 28.0, 32.0), Brush(Tool.SPHERE, Action.ERASE, radius_mm=1.5))
    dock.editing.mask.end_stroke()
    dock.editing.mask.release()
    brushed = mask(dock)
    ask(qtbot, flow, "outline", OUTLINE)
    assert (mask(dock) != brushed).sum() == 11 * 11
    flow._choose_kind(PromptKind.POINT)
    layer = dock.editing.layer
    undo = next(key for key in dock.keys.keys if key.action == "undo")
    bound = {str(key): call for key, call in layer.keymap.items()}
    bound[undo.binding.replace("Control", "Ctrl").replace("-", "+")](layer)
    assert np.array_equal(mask(dock), brushed)
    ask(qtbot, flow, "point", [(15, 20, 24)])
    ball = (z - 15) ** 2 + (y - 20) ** 2 + (x - 24) ** 2 <= 4**2
    assert np.array_equal(mask(dock), brushed | ball)
    assert prompting.engine.calls == []
    assert np.may_share_memory(layer.data, dock.editing.live.labels)
    dock.editing.mask.undo()
    assert np.array_equal(mask(dock), brushed)
    assert dock.session.mask(Role.REFINED) is not None


def test_the_licence_is_asked_once_and_no_image_is_sent_before(qtbot, dock, prompting):
    flow = dock.flow("Prompt")
    page = flow.page
    page.start.click()
    qtbot.waitUntil(page.accept.isVisible)
    assert not prompting.engine.is_open
    assert "Contract test licence 1.0" in page.licence_text.text()
    page.accept.click()
    qtbot.waitUntil(lambda: flow.prompts is not None)
    assert prompting.accepted == {"Contract test licence 1.0"}
    page.stop.click()
    assert flow.prompts is None
    qtbot.waitUntil(lambda: not prompting.engine.is_open)
    prompting.engine = RecordedEngine()
    page.start.click()
    qtbot.waitUntil(lambda: flow.prompts is not None)
    assert not page.accept.isVisible()


def test_a_lost_server_keeps_the_mask_and_is_said(qtbot, dock, prompting):
    flow = start(qtbot, dock)
    ask(qtbot, flow, "box", BOX)
    kept = mask(dock)
    prompting.error = EngineLostError("expected an answer, but the server was killed")
    ask(qtbot, flow, "scribble", SCRIBBLE, include=False)
    assert np.array_equal(mask(dock), kept)
    assert flow.page.state.property("level") == "error"
    assert "killed" in flow.page.state.text()
    assert flow.page.tools.isVisible()
    prompting.error, prompting.engine.calls = None, []
    work = flow.prompts.prepare(Prompt("box", BOX))
    assert np.array_equal(work.mask, kept)  # the next prompt starts again from the mask


def test_a_cancelled_prompt_changes_nothing_and_the_next_starts_from_the_mask(
    qtbot, dock, prompting
):
    flow = start(qtbot, dock)
    ask(qtbot, flow, "box", BOX)
    kept = mask(dock)
    prompting.go_on.clear()
    flow.ask(Prompt("scribble", SCRIBBLE, False))
    assert flow.page.cancel.isVisible()
    flow.page.cancel.click()
    assert not flow.prompts.is_waiting
    assert not flow.page.cancel.isVisible()
    assert np.array_equal(mask(dock), kept)
    assert flow.prompts.prepare(Prompt("box", BOX)).mask is not None


def test_a_late_answer_after_another_case_is_dropped(qtbot, dock, prompting):
    flow = start(qtbot, dock)
    before = dock.editing.live
    prompting.go_on.clear()
    flow.ask(Prompt("box", BOX))
    dock.open_data_set(Path("data"), "A_2")
    qtbot.waitUntil(lambda: dock.session.case_id == "A_2" and dock.editing.live is not None)
    prompting.go_on.set()
    qtbot.waitUntil(lambda: dock.jobs.wait(0))
    assert flow.prompts is None
    assert np.array_equal(before.labels, kinetic_labels())
    assert np.array_equal(dock.editing.live.labels, kinetic_labels())
    assert not prompting.engine.is_open
    assert flow.page.start.isVisible()


def test_the_model_ends_with_the_window(qtbot, dock, prompting):
    start(qtbot, dock)
    assert prompting.engine.is_open
    dock.close_down()
    assert not prompting.engine.is_open


def test_an_error_names_the_control_that_fixes_it(qtbot, dock, prompting):
    flow = dock.flow("Prompt")
    page = flow.page
    prompting.error = CaseError("expected a folder", remedies=(Remedy("environment", ("DIR",)),))
    page.start.click()
    qtbot.waitUntil(lambda: page.state.property("level") == "error")
    assert "Environment" in page.state.text()
    assert page.start.isVisible()


def test_a_server_says_what_leaves_and_plain_http_needs_a_second_yes(qtbot, dock, prompting):
    flow = dock.flow("Prompt")
    page = flow.page
    prompting.stored["model"] = "kept"
    assert page.leaving.text() == "No data are sent from this computer."
    page.engine.setCurrentIndex(page.engine.findData("remote"))
    page.fields["server"].setText("http://far.example:1527")
    page.fields["api_key"].setText("secret")
    assert "far.example" in page.leaving.text()
    assert not page.form.rows["model"].isVisible()
    assert not page.form.rows["allow_plain_http"].isVisible()
    with pytest.raises(CaseError) as refused:
        check_server("http://far.example:1527")
    prompting.error = refused.value
    page.start.click()
    qtbot.waitUntil(lambda: page.state.property("level") == "error")
    assert prompting.made[-1][1].allow_plain_http is False
    assert page.form.rows["allow_plain_http"].isVisible()
    page.fields["allow_plain_http"].setChecked(True)
    page.start.click()
    qtbot.waitUntil(lambda: len(prompting.made) == 2)
    assert prompting.made[-1][1].allow_plain_http is True
    assert "secret" not in str(prompting.stored)
    assert prompting.stored == {
        "engine": "remote", "server": "http://far.example:1527", "model": "kept"
    }  # fmt: skip


class Event:
    """A mouse event of napari."""

    def __init__(self, position, button):
        self.position, self.type, self.modifiers = position, "mouse_press", ()
        self.button, self.handled, self.pos = button, False, (0, 0)


def drag(panel, voxels, button=1):
    """Press at the first voxel (z, y, x) of the main view's slice, move along, and release."""
    grid = panel.session.case.grid
    frame = grid.display_frame()
    spacing = frame.per_axis(grid.spacing_mm)

    def world(voxel):
        shown = frame.point_to_display(voxel, grid.shape)
        return (0.0, *(c * mm for c, mm in zip(shown, spacing, strict=True)))

    event = Event(world(voxels[0]), button)
    viewer = panel.viewer
    running = [call(viewer, event) for call in viewer.mouse_drag_callbacks]
    running = [step for step in running if step is not None]
    for kind, voxel in (*(("mouse_move", v) for v in voxels), ("mouse_release", voxels[-1])):
        event.type, event.position = kind, world(voxel)
        for step in running:
            next(step, None)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_each_tool_marks_what_is_drawn_in_the_shown_plane(qtbot, dock, prompting, axis):
    flow = start(qtbot, dock)
    viewer = dock.viewer
    lead = viewer.dims.ndim - 3
    order = dock.session.case.grid.display_frame().order
    shown = order.index(axis) + lead
    rest = [k for k in range(lead, viewer.dims.ndim) if k != shown]
    viewer.dims.order = (*range(lead), shown, *rest)
    dock.scene.view.go_to((10, 20, 24))
    drawn = []
    flow._drawing.drawn.disconnect(flow._take_drawn)
    flow._drawing.drawn.connect(lambda *prompt: drawn.append(prompt))
    corner = [12, 22, 26]
    corner[axis] = (10, 20, 24)[axis]
    path = [(10, 20, 24), tuple(corner)]
    for kind in PromptKind:
        flow.page.kinds[kind].click()
        assert dock.active_tool.mode_of(OWNER) == kind
        drag(dock, path, button=2 if kind is PromptKind.BOX else 1)
    flow.page.signs[False].click()
    drag(dock, path)
    assert [(kind, include) for kind, _, include in drawn] == [
        ("point", True), ("box", False), ("scribble", True), ("outline", True), ("outline", False),
    ]  # fmt: skip
    assert drawn[0][1] == ((10, 20, 24),)
    after = [13, 23, 27]
    after[axis] = (11, 21, 25)[axis]
    assert drawn[1][1] == ((10, 20, 24), tuple(after))
    assert drawn[2][1] == ((10, 20, 24), tuple(corner))
    dock.show_page("Refine")
    assert dock.active_tool.tool is None
