"""napari's sliders below the picture: their numbers are whole, whatever case comes after which."""

import pytest
from one_window import wait_open
from qtpy.QtWidgets import QLabel

from napari_mamamia.widgets.adapter.adapter import main_view

pytestmark = [pytest.mark.window, pytest.mark.one_window]


def test_the_number_of_slices_is_whole_as_ranges_change_behind_a_case(
    qtbot, docked, small_data_set
):
    docked.open_data_set(small_data_set, "A_1")
    wait_open(qtbot, docked, "A_1")
    dims = docked.viewer.dims
    before = dims.range
    for last in (9, 99, 59, 159, 59):
        dims.range = (before[0], (0, last, 1), *before[2:])
        qtbot.wait(50)
        totals = [one.totslice_label for one in main_view(docked.viewer).dims.slider_widgets]
        for total in totals:
            assert isinstance(total, QLabel)
            if total.isVisible():
                assert total.width() >= total.sizeHint().width(), total.text()
    dims.range = before
