"""napari's sliders below the canvas, with enough space for text and with the case's slice numbers.

The module uses napari's private attributes. Each use is guarded; without these attributes, napari's
sliders are unchanged.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final
from weakref import WeakMethod, ref

from napari.settings import get_settings
from qtpy.QtCore import QObject
from qtpy.QtGui import QFont, QFontMetrics
from qtpy.QtWidgets import QWidget

from napari_mamamia.widgets.adapter.patches import patch

_USUAL_POINTS: Final = 9
_MARGIN_PX: Final = 8
_READER: Final = "_mamamia_numbers"
_PARTS: Final = ("_create_sliders", "_trim_sliders", "_update_range", "slider_widgets")


@dataclass(frozen=True, slots=True)
class SliderNumbers:
    """The numbering of a slider's steps.

    Attributes
    ----------
    first
        The number of the slider's first step; below 0 if the slider begins before the counted
        steps.
    last
        The last counted number, which may be before the slider's end.
    tip
        A tooltip that describes what is counted.
    """

    first: int
    last: int
    tip: str


def sliders_of(viewer: Any) -> tuple[QWidget, QWidget] | None:
    """Return napari's sliders and the widget that contains them, or None if there is no window.

    The sliders are `QtViewer.dims`, below the canvas (napari 0.9.2, `_qt/qt_viewer.py`).
    """
    with suppress(AttributeError, RuntimeError):
        view = viewer.window._qt_viewer
        home = view.canvas.native.parentWidget()
        if isinstance(view.dims, QWidget) and home.layout() is not None:
            return view.dims, home
    return None


@patch
def fit_slider_texts(view: Any) -> None:
    """Apply napari's font size to slider names and slice numbers, and enlarge their fields.

    napari leaves names and slice numbers at the application's 9 points and limits their height to
    14 pixels (napari 0.9.2, `_qt/qt_resources/styles/02_custom.qss`), measures names before the
    sliders have their final width, and measures numbers with the wrong font
    (`_qt/widgets/qt_dims.py`, ``_resize_axis_labels``, ``_resize_slice_labels``).
    """
    with suppress(AttributeError, IndexError):
        sliders, points = view.dims, int(get_settings().appearance.font_size)
        font = QFont(sliders.font())
        font.setPointSize(points)
        metrics = QFontMetrics(font)
        sliders.setFont(font)  # napari measures the names with it.
        for slider in sliders.slider_widgets:
            # A slider that was added after this font was set does not inherit it.
            slider.axis_label.setFont(font)
            slider.curslice_label.setFont(font)
        high = f"min-height: {metrics.height()}px; max-height: {metrics.height()}px;"
        rules = f"QtDimSliderWidget > QLineEdit {{ {high} }}" if points > _USUAL_POINTS else ""
        if sliders.styleSheet() != rules:
            sliders.setStyleSheet(rules)
        sliders._resize_axis_labels()
        sliders._resize_slice_labels()
        numbers = [
            label
            for slider in sliders.slider_widgets
            for label in (slider.curslice_label, slider.totslice_label)
        ]
        wide = max((metrics.horizontalAdvance(number.text()) for number in numbers), default=0)
        for number in numbers:
            number.setFixedWidth(max(number.width(), wide + _MARGIN_PX))


@patch
def number_sliders(view: Any, read: Callable[[int], SliderNumbers | None]) -> None:
    """Show the numbers that `read` returns for the axis of each slider, and accept typed numbers.

    napari counts the steps of all layers together, starting at the first step (napari 0.9.2,
    `_qt/widgets/qt_dims_slider.py`, ``_update_slice_labels``, ``_set_slice_from_label``), and if a
    slider becomes shorter than its position, napari moves the viewer to the end
    (``_update_range``). `read` is a method, held by a weak reference; if it returns None, napari's
    numbers are kept.
    """
    sliders: Any = getattr(view, "dims", None)
    if not all(hasattr(sliders, name) for name in _PARTS):
        return
    was_numbered = hasattr(sliders, _READER)
    setattr(sliders, _READER, WeakMethod(read))
    if not was_numbered:
        sliders._create_sliders = partial(_create_sliders, ref(sliders))
        sliders._trim_sliders = partial(_keep_sliders, ref(sliders))
        sliders._update_range = partial(_update_ranges, ref(sliders))
        _take_over(sliders)
    say_numbers(view)


def say_numbers(view: Any) -> None:
    """Update the numbers of the sliders after the numbering has changed."""
    for widget in getattr(getattr(view, "dims", None), "slider_widgets", ()):
        with suppress(AttributeError, IndexError):
            widget._update_slice_labels()


def _create_sliders(sliders_ref: Any, count: int) -> None:
    sliders = sliders_ref()
    if sliders is not None:
        type(sliders)._create_sliders(sliders, count)
        _take_over(sliders)


def _keep_sliders(sliders_ref: Any, count: int) -> None:
    """Keep the sliders of the remaining axes with new numbers; napari would delete all sliders.

    When an axis is added or removed, napari creates all sliders again, which takes 5 to 15 ms each
    (napari 0.9.2, `_qt/widgets/qt_dims.py`, ``_update_nsliders``). Axes and sliders are added and
    removed at the front.
    """
    sliders = sliders_ref()
    if sliders is None:
        return
    ndim = sliders.dims.ndim
    type(sliders)._trim_sliders(sliders, count or ndim)
    if not count:
        first = ndim - len(sliders.slider_widgets)
        for axis, widget in enumerate(sliders.slider_widgets, start=first):
            _turn_to_axis(widget, axis)


def _turn_to_axis(widget: Any, axis: int) -> None:
    if widget.axis == axis:
        return
    widget.axis = widget.play_button.axis = axis
    widget.curslice_label.setToolTip(f"Current slice for axis {axis}")
    widget.totslice_label.setToolTip(f"Total slices for axis {axis}")
    popup, widget.margins_popup = widget.margins_popup, None
    if popup is not None:
        popup.close()
        popup.deleteLater()
    widget._pull_label()


def _update_ranges(sliders_ref: Any) -> None:
    sliders = sliders_ref()
    if sliders is None:
        return
    held = [(widget.slider, widget.slider.blockSignals(True)) for widget in sliders.slider_widgets]
    try:
        type(sliders)._update_range(sliders)
    finally:
        for slider, was_blocked in held:
            slider.blockSignals(was_blocked)


def _take_over(sliders: Any) -> None:
    names = ("_update_slice_labels", "_set_slice_from_label", "curslice_label", "totslice_label")
    for widget in sliders.slider_widgets:
        if names[0] in vars(widget) or not all(hasattr(widget, name) for name in names):
            continue
        typed = widget.curslice_label.editingFinished
        with suppress(
            TypeError
        ):  # If napari's handler is not connected, ours would be a second handler.
            typed.disconnect(widget._set_slice_from_label)
            typed.connect(_NumberTaker(widget).take)
            widget._update_slice_labels = partial(_say_number, ref(widget))


class _NumberTaker(QObject):
    """A handler for numbers that are typed into a slider's field; it exists as long as the slider.

    Qt checks that the object of a bound method still exists before the call. A `partial` crashed
    the program when its slider was deleted while it had the keyboard focus (PyQt 6.11).
    """

    def __init__(self, widget: Any) -> None:
        super().__init__(widget)
        self._widget = ref(widget)

    def take(self) -> None:
        _take_number(self._widget)


def _read_numbers(widget: Any) -> SliderNumbers | None:
    read = getattr(widget.qt_dims, _READER)()
    return None if read is None else read(widget.axis)


def _say_number(widget_ref: Any) -> None:
    widget = widget_ref()
    if widget is None:
        return
    type(widget)._update_slice_labels(widget)
    numbers = _read_numbers(widget)
    if numbers is None:
        widget.totslice_label.setText(str(widget.dims.nsteps[widget.axis] - 1))
        return
    widget.curslice_label.setText(str(numbers.first + widget.dims.current_step[widget.axis]))
    widget.totslice_label.setText(str(numbers.last))
    for label in (widget.curslice_label, widget.totslice_label):
        label.setToolTip(numbers.tip)


def _take_number(widget_ref: Any) -> None:
    widget = widget_ref()
    if widget is None or widget.axis >= widget.dims.ndim:
        return
    numbers, typed = _read_numbers(widget), widget.curslice_label.text()
    if numbers is None or not typed:
        widget._set_slice_from_label()
        return
    step = min(max(int(typed) - numbers.first, 0), widget.dims.nsteps[widget.axis] - 1)
    widget.curslice_label.clearFocus()
    widget.qt_dims.setFocus()
    widget.dims.set_current_step(widget.axis, step)
    widget._update_slice_labels()
