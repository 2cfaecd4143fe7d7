"""napari's sliders as axes come and go: those that stay are kept, all are as it makes them."""

from types import SimpleNamespace

import pytest
from napari._qt.widgets.qt_dims import QtDims
from napari.components import Dims

from napari_mamamia.widgets.adapter.sliders import number_sliders


class Uncounted:
    """Counts nothing of its own: napari's numbers stay."""

    def read(self, _axis):
        return None


@pytest.fixture
def pair(qtbot):
    """Return sliders of ours and napari's own, each with its axes."""
    made = [QtDims(Dims(ndim=2)) for _ in range(2)]
    for sliders in made:
        qtbot.addWidget(sliders)
        sliders.resize(600, 200)
    uncounted = Uncounted()
    number_sliders(SimpleNamespace(dims=made[0]), uncounted.read)
    yield made
    assert uncounted is not None


def facts_of(sliders):
    """Return what each slider says and does, and its axis."""
    return [
        {
            "axis": (one.axis, one.play_button.axis, one.axis_label.text()),
            "range": (one.slider.minimum(), one.slider.maximum(), one.slider.value()),
            "numbers": (one.curslice_label.text(), one.totslice_label.text()),
            "tips": (one.curslice_label.toolTip(), one.totslice_label.toolTip()),
            "hidden": (one.isHidden(), one.slider.property("last_used")),
        }
        for one in sliders.slider_widgets
    ]


STEPS = (3, 4, 5, 3, 2, 4, 4, 2)


def lay(dims, ndim):
    dims.ndim = ndim
    dims.range = tuple((0, 10 * (axis + 1), 1) for axis in range(ndim))
    dims.axis_labels = tuple(f"{ndim}-{axis}" for axis in range(ndim))
    dims.current_step = tuple(axis + 1 for axis in range(ndim))


def test_sliders_are_as_napari_makes_them_anew_whatever_axes_come_and_go(pair):
    for ndim in STEPS:
        for sliders in pair:
            lay(sliders.dims, ndim)
        ours, naparis = map(facts_of, pair)
        assert len(ours) == ndim
        assert ours == naparis
        assert pair[0].minimumHeight() == pair[1].minimumHeight()


def test_only_the_sliders_of_new_axes_are_made(pair):
    sliders = pair[0]
    for before, ndim in zip((2, *STEPS), STEPS, strict=False):
        kept = sliders.slider_widgets[-min(before, ndim) :]
        lay(sliders.dims, ndim)
        assert sliders.slider_widgets[-len(kept) :] == kept


def test_a_slider_that_stays_steps_and_types_its_own_axis(pair):
    sliders = pair[0]
    lay(sliders.dims, 3)
    one = sliders.slider_widgets[0]
    one.show_margins_popup()
    lay(sliders.dims, 4)
    assert sliders.slider_widgets[1] is one
    assert one.margins_popup is None
    one.slider.setValue(7)
    assert sliders.dims.current_step == (1, 7, 3, 4)
    one.curslice_label.setText("12")
    one.curslice_label.editingFinished.emit()
    assert sliders.dims.current_step == (1, 12, 3, 4)
    sliders.dims.axis_labels = ("a", "b", "c", "d")
    assert one.axis_label.text() == "b"
