"""Page Report in a real window: from a painted mask and an answer to a page that tells both."""

import csv
import hashlib

import pytest
from one_window import wait_open

from napari_mamamia.widgets.base.layers import Role
from napari_mamamia.widgets.refine.mask_watch import SaveState

pytestmark = [pytest.mark.window, pytest.mark.one_window]


@pytest.mark.night  # by day: tests/services/test_case_report.py
@pytest.mark.parametrize("again", [False, pytest.param(True, marks=pytest.mark.night)])
def test_a_report_tells_the_mask_and_the_findings_and_a_second_replaces_nothing(
    qtbot, window, shared_dock, small_data_set, control, picture, again
):
    """By day one report; that a second replaces nothing is tests/services/test_case_report.py's."""
    panel = shared_dock
    panel.session.set_reader("Ana")
    panel.header.set_reader("Ana")
    panel.open_data_set(small_data_set, "A_1")
    wait_open(qtbot, panel, "A_1")
    panel.show_page("Refine")
    panel.editing.start(Role.REFERENCE)
    qtbot.waitUntil(lambda: panel.editing.live is not None)
    assert panel.editing.state is not SaveState.SAVED
    panel.show_page("Findings")
    control(panel, "findings_place_right")
    panel.kinetics.findings.assess(4)
    panel.show_page("Report")
    picture(window, "report_1_ready")
    page = panel.report_page
    control(panel, "report_start")
    qtbot.waitUntil(lambda: "A_1 is written" in page.result.text())
    picture(window, "report_2_written")
    folder = panel.session.workspace.exports / "reports"
    (first,) = folder.iterdir()
    text = (first / "A_1.html").read_text()
    assert "drawn by Ana" in text
    assert "4, suspicious" in text
    rows = list(csv.DictReader((first / "measures.csv").open()))
    (answer,) = [row for row in rows if row["source"] == "answered"]
    assert (answer["scope"], answer["place"], answer["reader"]) == ("breast", "right", "Ana")
    if not again:
        return
    before = {path: hashlib.sha256(path.read_bytes()).digest() for path in first.iterdir()}
    control(panel, "report_start")
    qtbot.waitUntil(lambda: len(list(folder.iterdir())) == 2)
    qtbot.waitUntil(lambda: panel.jobs.wait(0))
    assert {p: hashlib.sha256(p.read_bytes()).digest() for p in first.iterdir()} == before
