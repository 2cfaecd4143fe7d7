"""The next case is read while the reader looks at this one, and never shown as it was before."""

import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.conftest import write_nifti

from napari_mamamia.services.case import read_ahead as reading
from napari_mamamia.widgets.base.layers import Role
from napari_mamamia.widgets.base.service_record import Services
from napari_mamamia.widgets.dock.dock import MamamiaDock

SHAPE = (8, 32, 48)


@pytest.fixture
def panel(qtbot, viewer, small_data_set, monkeypatch):
    """The dock with the real services and the first of three real cases open."""
    monkeypatch.setattr(reading, "_SETTLED_NS", 0)
    made = MamamiaDock(viewer, Services())
    qtbot.addWidget(made)
    made.open_data_set(small_data_set, "A_1")
    qtbot.waitUntil(lambda: made.session.case_id == "A_1" and made.session.case.is_loaded)
    yield made
    made.close_down()


def wait_ahead(qtbot, panel, case_id):
    """Wait until a case is there with all its phases, and return it."""
    ahead = panel.opening.ahead

    def is_there():
        kept = ahead._kept
        return kept is not None and kept.case.case_id == case_id and kept.case.is_loaded

    qtbot.waitUntil(is_there)
    return ahead._kept


def open_next(qtbot, panel, case_id):
    panel.cases_flow.open_neighbour(1)
    qtbot.waitUntil(lambda: panel.session.case_id == case_id and panel.session.case.is_loaded)


def test_the_next_case_is_there_before_it_is_asked_for_and_looks_as_if_it_were_not(qtbot, panel):
    ahead = wait_ahead(qtbot, panel, "A_2")
    open_next(qtbot, panel, "A_2")
    assert panel.session.case.signal is ahead.case.signal
    assert panel.scene.phase == 1
    assert set(panel.session.masks) == {Role.REFERENCE}
    assert not panel.canvas_text.is_held
    wait_ahead(qtbot, panel, "B_1")


def test_a_file_that_was_replaced_after_it_was_read_ahead_is_shown_as_it_is_now(
    qtbot, panel, small_data_set
):
    ahead = wait_ahead(qtbot, panel, "A_2")
    values = np.full(SHAPE, 7, np.int16)
    write_nifti(small_data_set / "images" / "A_2" / "A_2_0003.nii.gz", values)
    open_next(qtbot, panel, "A_2")
    assert panel.session.case.signal is not ahead.case.signal
    np.testing.assert_array_equal(panel.session.case.signal[3], values)
    np.testing.assert_array_equal(panel.session.case.signal[1], ahead.case.signal[1])


def test_a_mask_that_was_replaced_is_shown_as_it_is_now(qtbot, panel, small_data_set):
    wait_ahead(qtbot, panel, "A_2")
    mask = np.zeros(SHAPE, np.uint8)
    mask[1, 2, 3] = 1
    write_nifti(small_data_set / "segmentations" / "expert" / "A_2.nii.gz", mask)
    open_next(qtbot, panel, "A_2")
    np.testing.assert_array_equal(panel.session.masks[Role.REFERENCE].buffer, mask)


def test_a_damaged_next_case_says_nothing_until_it_is_opened(
    qtbot, panel, small_data_set, monkeypatch
):
    wait_ahead(qtbot, panel, "A_2")
    (small_data_set / "images" / "B_1" / "B_1_0001.nii.gz").write_bytes(b"no volume")
    ended = []
    panel.jobs.ended.connect(lambda ticket, _outcome: ended.append(ticket.title))
    open_next(qtbot, panel, "A_2")
    qtbot.waitUntil(lambda: "Prefetching B_1" in ended)
    assert panel.header.message.text() == ""
    assert panel.opening.ahead.take() is None
    panel.cases_flow.open_neighbour(1)
    qtbot.waitUntil(lambda: "B_1_0001" in panel.header.message.text())
    assert panel.session.case_id == "A_2"


def test_a_change_of_the_list_lets_go_of_what_is_not_next_any_more(qtbot, panel):
    wait_ahead(qtbot, panel, "A_2")
    panel.cases_page.search.setText("_1")
    wait_ahead(qtbot, panel, "B_1")
    panel.cases_page.search.setText("A_1")
    assert panel.session.neighbour(1) is None
    assert panel.opening.ahead.take() is None


def test_another_data_set_lets_go_of_it(qtbot, panel, small_data_set, tmp_path):
    wait_ahead(qtbot, panel, "A_2")
    other = small_data_set.rename(tmp_path / "moved")
    panel.open_data_set(other)
    qtbot.waitUntil(lambda: panel.session.opened.data_set.root == other)
    ahead = wait_ahead(qtbot, panel, "A_1")
    assert ahead.files.phases[0].files[0].is_relative_to(other)


def test_where_no_case_is_open_the_first_of_the_list_is_read(
    qtbot, viewer, small_data_set, monkeypatch
):
    monkeypatch.setattr(reading, "_SETTLED_NS", 0)
    made = MamamiaDock(viewer, Services())
    qtbot.addWidget(made)
    made.open_data_set(small_data_set)
    wait_ahead(qtbot, made, "A_1")
    made.close_down()
    assert made.opening.ahead.take() is None


def test_little_memory_reads_nothing_ahead_and_opens_as_ever(qtbot, panel, monkeypatch):
    monkeypatch.setattr(reading, "free_memory_bytes", lambda: 10)
    ended = []
    panel.jobs.ended.connect(lambda ticket, _outcome: ended.append(ticket.title))
    open_next(qtbot, panel, "A_2")
    qtbot.waitUntil(lambda: "Prefetching B_1" in ended)
    assert panel.opening.ahead.take() is None
    open_next(qtbot, panel, "B_1")


def test_paging_quickly_through_1500_cases_reads_none_ahead_and_ends_at_the_right_one(
    qtbot, viewer, world
):
    read = []
    world.case_ids = tuple(f"C_{number:04d}" for number in range(1500))

    def note(files, record=None):
        read.append((time.monotonic(), files.case_id))

    dock = MamamiaDock(viewer, world.services().replacing(read_ahead=note))
    qtbot.addWidget(dock)
    dock.open_data_set(Path("data"), "C_0000")
    qtbot.waitUntil(lambda: dock.session.case is not None and len(dock.session.queue) == 1500)
    read.clear()
    for number in range(1440, 1500):
        dock.opening.open_case(f"C_{number:04d}")
    last = time.monotonic()
    qtbot.waitUntil(lambda: dock.session.case_id == "C_1499" and dock.session.case.is_loaded)
    dock.cases_flow.open_neighbour(-1)
    qtbot.waitUntil(lambda: dock.session.case_id == "C_1498" and bool(read))
    assert [case_id for at, case_id in read if at < last] == []
    assert {case_id for _, case_id in read} == {"C_1499"}
    dock.close_down()


def test_a_case_whose_row_changed_is_read_again(qtbot, panel, monkeypatch):
    ahead = wait_ahead(qtbot, panel, "A_2")
    kept = panel.opening.ahead._kept
    panel.opening.ahead._kept = replace(kept, record=None)
    open_next(qtbot, panel, "A_2")
    assert panel.session.case.signal is not ahead.case.signal
