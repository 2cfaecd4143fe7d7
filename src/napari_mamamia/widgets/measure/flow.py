"""Controller of measuring: tools, shortcuts, drawings in every view, list and editing."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from numpy.typing import NDArray
from qtpy.QtCore import QPoint, Qt, Signal
from qtpy.QtGui import QKeyEvent
from qtpy.QtWidgets import QLineEdit, QWidget

from napari_mamamia.core.errors import ArgumentError
from napari_mamamia.core.measurement import MeasureKind, Measurement, PointMm
from napari_mamamia.core.texts import tr
from napari_mamamia.services.measure.shapes import Sketch, Slice, find_slice, has_extent, move_point
from napari_mamamia.widgets.adapter.adapter import focus_canvas
from napari_mamamia.widgets.base.keys import with_key
from napari_mamamia.widgets.base.layers import Role, array_of
from napari_mamamia.widgets.controls.controls import discard, named
from napari_mamamia.widgets.measure.mouse import NAMES, DrawTool
from napari_mamamia.widgets.measure.overlay import Grip, ShownDrawing, ShownMark, ViewDrawings
from napari_mamamia.widgets.measure.record import Drawn, DrawnRecord
from napari_mamamia.widgets.measure.section import ACTIONS, MeasureSection
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart
from napari_mamamia.widgets.viewer.plane_links import PlaneLinks
from napari_mamamia.widgets.viewer.planes import Planes

_MOST_WORDS: Final = 80
_WORDS_WIDE: Final = 20
_SAME: Final = tr("The drawing was not changed because it would have no length.")
_OUTSIDE: Final = tr("The drawing lies outside the slices of this case.")


class _WordsField(QLineEdit):
    """The text field of an arrow: Enter saves the text, Esc cancels."""

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Cancel on Esc."""
        if event.key() == Qt.Key.Key_Escape:
            self.blockSignals(True)
            discard(self)
            return
        super().keyPressEvent(event)


class MeasureFlow(WindowPart):
    """The controller that connects the Measure section, the mouse, the views and the record.

    Attributes
    ----------
    record
        The drawings on the open case.
    marks
        Points that another component marks on the image. `mark_moved` carries the key of a mark and
        its new position in RAS mm, and `mark_removed` the key of a deleted mark.
    find_lesion, list_lesions
        Functions that return the number of the current lesion, to which a new drawing belongs (""
        for none), and all lesion numbers.
    """

    mark_moved = Signal(str, object)
    mark_removed = Signal(str)

    def __init__(
        self,
        context: WindowContext,
        section: MeasureSection,
        tool: DrawTool,
        planes: Planes,
        with_reader: Callable[[Callable[[], None]], None],
    ) -> None:
        super().__init__(context)
        self._section = section
        self._tool = tool
        self._planes = planes
        self._words: _WordsField | None = None
        self.record = DrawnRecord(context, with_reader)
        self.find_lesion: Callable[[], str] = lambda: ""
        self.list_lesions: Callable[[], Sequence[str]] = tuple
        self.marks: tuple[ShownMark, ...] = ()
        self._chosen_mark = ""
        self._moving_mark: ShownMark | None = None
        self._moving: tuple[str, Measurement] | None = None
        self._slices: dict[tuple[str, int], Slice] = {}
        self._said: dict[tuple[str, int], str] = {}
        self.views = [self._make_view(self._scene.viewer)]
        tool.find = self._find_grip
        tool.changed.connect(self._show_views)
        tool.tool_changed.connect(self._follow_tool)
        tool.drawn.connect(self._take_drawn)
        tool.chosen.connect(self._choose_drawing)
        tool.dragged.connect(self._drag_point)
        tool.dropped.connect(self._drop_point)
        tool.refused.connect(self._notifier.hint)
        links: PlaneLinks = planes.links
        is_free = links.is_free
        links.is_free = lambda: is_free() and not tool.is_over
        links.tools.append(self._attach_view)
        planes.on_close.append(self._leave_panes)
        self.record.changed.connect(self._show_all)
        section.tool_wanted.connect(self.use)
        section.line_chosen.connect(self.go_to)
        section.words_wanted.connect(self._ask_words)
        section.delete_wanted.connect(self.delete)
        section.lesion_wanted.connect(self._give_to_lesion)
        section.undo_wanted.connect(self.record.undo)
        layers = self._scene.viewer.layers.events
        layers.inserted.connect(self._follow_layers)
        layers.removed.connect(self._follow_layers)

    def actions(self) -> dict[str, Callable[..., object]]:
        """Return the actions of the measuring shortcuts by action name."""
        tools = {action: partial(self.use, kind) for kind, action in ACTIONS.items()}
        return {**tools, "measure_delete": self.delete, "measure_undo": self.record.undo}

    def _follow_tool(self) -> None:
        self._section.show_tool(self._tool.kind)
        self._show_views()

    def close(self) -> None:
        """Write pending drawings and disconnect from the views when the window closes."""
        self.record.close()
        layers = self._scene.viewer.layers.events
        if self.views:
            layers.inserted.disconnect(self._follow_layers)
            layers.removed.disconnect(self._follow_layers)
        for view in self.views:
            view.close()
        self.views = []

    # ------------------------------------------------------------------ actions

    def use(self, kind: MeasureKind) -> None:
        """Turn a tool on or off; a key image is added or removed immediately."""
        if kind is not MeasureKind.KEY_IMAGE:
            self._tool.toggle(kind)
            self._follow_tool()
            return
        middle = self._find_middle()
        if middle is None:
            self._notifier.hint(tr("Open a case and show its slices first."))
            return
        for item in self.record.items:
            is_key = item.item.kind is MeasureKind.KEY_IMAGE and item.is_own
            if is_key and self._find_slice_of(item) == middle[0]:
                self.record.remove(item.key)
                return
        self._keep_item(self._make_item(kind, (middle[1],), middle[0]))

    def delete(self) -> None:
        """Delete the selected drawing or mark."""
        if self._chosen_mark:
            self.mark_removed.emit(self._chosen_mark)
        elif self.record.chosen:
            self.record.remove(self.record.chosen)

    def _give_to_lesion(self, name: str) -> None:
        drawing = self.record.find(self.record.chosen)
        if drawing is not None:
            self.record.change(drawing.key, replace(drawing.item, lesion=name))

    def go_to(self, key: str) -> None:
        """Select a drawing, and show the slice of the drawing."""
        drawing, grid = self.record.find(key), self._scene.grid
        if drawing is None or grid is None:
            return
        self.record.choose(key)
        on = self._find_slice_of(drawing)
        voxel = [round(float(i)) for i in grid.to_voxel(drawing.item.points_mm[0])]
        voxel[on.axis] = on.index
        inside = [min(max(i, 0), n - 1) for i, n in zip(voxel, grid.shape, strict=True)]
        if inside[on.axis] != on.index:
            self._notifier.hint(_OUTSIDE)
            return
        self._scene.view.reveal((inside[0], inside[1], inside[2]))
        if not any(key in view.keys for view in self.views):
            words = tr(
                "The drawing is in the {plane} plane. Switch to three planes to see it.",
                plane=on.plane,
            )
            self._notifier.hint(with_key(words, "planes"))

    # ------------------------------------------------------------------ drawing

    def _take_drawn(self, sketch: Sketch, viewer: Any) -> None:
        shape = sketch.shape
        item = None if shape is None else self._make_item(*shape, sketch.on)
        self._keep_item(item)
        if item is not None and item.kind is MeasureKind.ARROW:
            self._ask_words(self.record.chosen, viewer)

    def _keep_item(self, item: Measurement | None) -> None:
        if item is not None:
            self.record.add(item)

    def _make_item(
        self, kind: MeasureKind, points: tuple[PointMm, ...], on: Slice
    ) -> Measurement | None:
        is_phase = self._find_difference() is None and self._session.registered is None
        phase = self._scene.phase if is_phase else None
        lesion = self.find_lesion()
        try:
            return Measurement(self._session.case_id, kind, points, on.plane, phase, lesion)
        except ArgumentError as error:
            self._notifier.hint(str(error))
            return None

    def show_marks(self, marks: tuple[ShownMark, ...]) -> None:
        """Show these marks in every view."""
        self.marks = marks
        if self._find_mark(self._chosen_mark) is None:
            self._chosen_mark = ""
        self._show_views()

    def _find_mark(self, key: str) -> ShownMark | None:
        return next((mark for mark in self.marks if mark.key == key), None)

    def _choose_drawing(self, key: str) -> None:
        self._chosen_mark = "" if self._find_mark(key) is None else key
        self.record.choose(key)

    def _drag_point(self, grip: Grip, place: PointMm) -> None:
        mark = self._find_mark(grip.key)
        if mark is not None:
            self._moving_mark = replace(mark, point_mm=place)
            self._show_views()
            return
        drawing = self.record.find(grip.key)
        if drawing is None or grip.at is None:
            return
        item = drawing.item if self._moving is None else self._moving[1]
        points = move_point(item.kind, item.points_mm, grip.at, place, grip.on)
        self._moving = (grip.key, replace(item, points_mm=points))
        self._show_views()

    def _drop_point(self) -> None:
        mark, self._moving_mark = self._moving_mark, None
        if mark is not None:
            self.mark_moved.emit(mark.key, mark.point_mm)
        moving, self._moving = self._moving, None
        if moving is None:
            return
        key, item = moving
        if has_extent(item.kind, item.points_mm):
            self.record.change(key, item)
        else:
            self._notifier.hint(_SAME)
        self._show_views()

    def _find_middle(self) -> tuple[Slice, PointMm] | None:
        view, viewer = self._scene.view, self._scene.viewer
        grid, plane = self._scene.grid, view.slice_shown()
        if grid is None or plane is None or self._session.case is None:
            return None
        position = [float(coordinate) for coordinate in viewer.dims.point]
        for axis, middle in zip(
            viewer.dims.displayed, viewer.scene.camera.center[-2:], strict=True
        ):
            position[axis] = float(middle)
        voxel, on = view.place_at(tuple(position)), Slice(grid, *plane)
        point = None if voxel is None else on.find_point(voxel)
        return None if point is None else (on, point)

    # -------------------------------------------------------------------- words

    def _ask_words(self, key: str, viewer: Any | None = None) -> None:
        drawing = self.record.find(key)
        if drawing is None or not drawing.is_own:
            return
        if viewer is None:
            self.go_to(key)
        for view in self.views:
            pixel, canvas = view.find_pixel(key), self._planes.canvas(view.viewer)
            if pixel is not None and canvas is not None and viewer in (None, view.viewer):
                self._show_field(drawing, canvas, pixel)
                return

    def _show_field(self, one: Drawn, canvas: QWidget, pixel: tuple[float, float]) -> None:
        if self._words is not None:
            discard(self._words)
        field: _WordsField = named(
            _WordsField(canvas),
            "measure_words",
            tr("Text next to the drawing; press Enter to save it."),
        )
        self._words = field
        field.setMaxLength(_MOST_WORDS)
        field.setText(one.item.text)
        field.setPlaceholderText(tr("text, then Enter"))
        field.setFixedWidth(_WORDS_WIDE * field.fontMetrics().averageCharWidth())
        field.adjustSize()
        x = min(max(round(pixel[0]), 0), max(canvas.width() - field.width(), 0))
        y = min(max(round(pixel[1]), 0), max(canvas.height() - field.height(), 0))
        field.move(QPoint(x, y))
        field.editingFinished.connect(lambda: self._take_words(field, one.key))
        field.destroyed.connect(partial(self._forget_field, field))
        field.show()
        field.setFocus()

    def _forget_field(self, field: QWidget, _gone: object = None) -> None:
        if self._words is field:
            self._words = None

    def _take_words(self, field: QLineEdit, key: str) -> None:
        words, drawing = field.text().strip(), self.record.find(key)
        self._words = None
        discard(field)
        focus_canvas(self._scene.viewer)
        if drawing is not None and words != drawing.item.text:
            self.record.change(key, replace(drawing.item, text=words))

    # ------------------------------------------------------------------ showing

    def _make_view(self, viewer: Any) -> ViewDrawings:
        return ViewDrawings(self._scene.view, viewer, lambda: self._planes.canvas(viewer))

    def _attach_view(self, viewer: Any) -> None:
        if any(pane.model is viewer and pane.kind.is_prior for pane in self._planes.panes):
            return
        self.views.append(self._make_view(viewer))
        self._show_views()

    def _leave_panes(self) -> None:
        for view in self.views[1:]:
            view.close()
        del self.views[1:]

    def _follow_layers(self, _event: object = None) -> None:
        if any(item.item.phase is None for item in self.record.items):
            self._show_all()

    def _show_all(self) -> None:
        record = self.record
        if record.chosen:
            self._chosen_mark = ""  # one object is selected at a time: Del deletes it
        alive = {(item.version, id(self._scene.grid)) for item in record.items}
        self._slices = {key: on for key, on in self._slices.items() if key in alive}
        self._said = {}
        n_unsaved = sum(record.is_unsaved(item) for item in record.items)
        unsaved = tr("Not saved: {count}", count=n_unsaved) if n_unsaved else ""
        note = "\n".join(filter(None, (unsaved, record.problem)))
        self._section.show_drawn(
            record.items,
            self._describe_line,
            record.chosen,
            can_undo=record.can_undo,
            note=note,
            lesions=self.list_lesions(),
        )
        self._show_views()

    def _show_views(self) -> None:
        every = self._list_shown() if self._tool.is_shown else []
        in_hand = self._moving_mark
        marks = [in_hand if in_hand and mark.key == in_hand.key else mark for mark in self.marks]
        for view in self.views:
            view.show(every, marks if self._tool.is_shown else ())

    def _list_shown(self) -> list[ShownDrawing]:
        if self._session.case is None or self._scene.grid is None:
            return []
        every = [self._make_shown(item) for item in self.record.items]
        sketch = self._tool.sketch
        shape = None if sketch is None else sketch.shape
        if sketch is not None and shape is not None:
            item = self._make_item(*shape, sketch.on)
            say = partial(self._describe_item, item)
            every.append(ShownDrawing("", *shape, sketch.on, say))
        return every

    def _make_shown(self, one: Drawn) -> ShownDrawing:
        on, item, say = self._find_slice_of(one), one.item, partial(self._say_shown, one)
        if self._moving is not None and self._moving[0] == one.key:
            item = self._moving[1]
            say = partial(self._describe_item, item)
        is_chosen = one.key == self.record.chosen
        return ShownDrawing(one.key, item.kind, item.points_mm, on, say, one.is_own, is_chosen)

    def _find_grip(self, viewer: Any, pixel: Any) -> Grip | None:
        view = next((view for view in self.views if view.viewer is viewer), None)
        grip = None if view is None else view.find(pixel)
        is_armed = self._tool.kind is not None
        if grip is not None and is_armed and (grip.at is None or grip.key != self.record.chosen):
            return None
        return grip

    def _find_slice_of(self, one: Drawn) -> Slice:
        grid = self._scene.grid
        key = (one.version, id(grid))
        if key not in self._slices and grid is not None:
            self._slices[key] = find_slice(one.item, grid)
        return self._slices[key]

    # -------------------------------------------------------------------- words

    def _find_difference(self) -> NDArray[Any] | None:
        """Return the array (z, y, x) of the displayed subtraction, or None if there is none."""
        layer = self._scene.layer(Role.SUBTRACTION)
        return array_of(layer) if layer is not None and layer.visible else None

    def _describe_item(self, item: Measurement | None) -> str:
        if item is None:
            return ""
        case = self._session.case
        return self._services.measures.describe(item, case, self._find_difference())

    def _say_shown(self, one: Drawn) -> str:
        words = self._say_number(one)
        if one.item.kind is MeasureKind.KEY_IMAGE:
            words = " · ".join(filter(None, (NAMES[one.item.kind], words)))
        whose = "" if one.is_own else one.item.reader
        unsaved = tr("not saved") if self.record.is_unsaved(one) else ""
        return " · ".join(filter(None, (words, whose, unsaved)))

    def _say_number(self, one: Drawn) -> str:
        key = (one.version, id(self._session.case))
        if key not in self._said:
            name = one.item.lesion
            words = tr("lesion {name}", name=name) if name else ""
            self._said[key] = " · ".join(filter(None, (words, self._describe_item(one.item))))
        return self._said[key]

    def _describe_line(self, one: Drawn) -> str:
        grid = self._scene.grid
        if grid is None:
            return ""
        on = self._find_slice_of(one)
        frame = grid.display_frame(on.plane)
        voxel = [float(on.index)] * 3
        slice_index = round(frame.point_to_display(voxel, grid.shape)[0])
        what = " ".join(filter(None, (NAMES[one.item.kind], self._say_number(one))))
        whose = "" if one.is_own else one.item.reader
        unsaved = tr("not saved") if self.record.is_unsaved(one) else ""
        return " · ".join(filter(None, (what, f"{on.plane} {slice_index}", whose, unsaved)))
