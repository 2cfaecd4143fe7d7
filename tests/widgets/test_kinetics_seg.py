"""FTV under a SEG of UCSF on the page Kinetics, and a pre-contrast scan that was taken twice."""

import re
import threading
import zipfile
from dataclasses import replace

import numpy as np
import pytest
from qtpy.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from qtpy.QtGui import QDragEnterEvent, QDropEvent
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QApplication, QWidget
from tests.services.seg_of_case import make_seg
from tests.widgets.conftest import fake_kinetics
from typer.testing import CliRunner

from napari_mamamia.cli.app import app
from napari_mamamia.core.case import Phase
from napari_mamamia.kinetics.repeated_pre import RepeatedPre
from napari_mamamia.kinetics.time_axis import Timing
from napari_mamamia.services.kinetics.ftv_from import ftv_under_seg
from napari_mamamia.widgets.base.service_record import Services
from napari_mamamia.widgets.dock.dock import MamamiaDock

pytest.importorskip("pydicom")


def find(dock, name):
    return dock.findChild(QWidget, name)


def text(dock, name):
    return find(dock, name).text().replace("\u00a0", " ").replace("&nbsp;", " ")


@pytest.fixture
def dock(qtbot, viewer, small_data_set):
    """The dock with the first case of the small data set open, read by the real services."""
    made = MamamiaDock(viewer, Services())
    qtbot.addWidget(made)
    made.resize(360, 900)
    made.show()
    made.open_data_set(small_data_set, "A_1")
    qtbot.waitUntil(lambda: made.kinetics.case.case is not None)
    made.show_page("Kinetics")
    return made


@pytest.fixture
def seg_wanted(qtbot, dock):
    """Return a function that takes a SEG and waits for its answer."""

    def take(path):
        dock.kinetics_page.ftv.seg.seg_wanted.emit(path)
        qtbot.waitUntil(lambda: not dock.jobs.is_running("ftv_seg"))

    return take


def test_ours_and_ucsf_s_stand_side_by_side_with_phases_and_mask_named(
    dock, seg_wanted, small_data_set, tmp_path
):
    pe, ser, _ = make_seg(small_data_set, tmp_path / "seg.dcm")
    seg_wanted(tmp_path / "seg.dcm")
    numbers = text(dock, "kinetics_ftv_seg_numbers")
    assert "settings of seg.dcm" in numbers
    cells = [cell.strip() for cell in re.findall("<td[^>]*>([^<]*)</td>", numbers)]
    cc, ser_cc = (f"{count * 1.28 / 1000:.3f}" for count in (pe, ser))
    assert cells == [
        *("", "ours", "UCSF"),
        *("PE, voxels", str(pe), str(pe)),
        *("PE, cc", cc, cc),
        *("differing voxels", "0"),
        *("PE and SER, voxels", str(ser), str(ser)),
        *("PE and SER, cc", ser_cc, ser_cc),
        *(("differing voxels", "0") if ser == pe else ()),
    ]
    basis = text(dock, "kinetics_ftv_seg_basis")
    assert "early post 1" in basis
    assert "late post 3" in basis
    assert basis.endswith("manual · ucsf-ispy1")
    assert not find(dock, "kinetics_ftv_seg_remark").isVisible()


def test_ftv_goes_on_in_the_seg_s_voi_under_its_thresholds(
    qtbot, dock, seg_wanted, small_data_set, tmp_path
):
    pe, _, _ = make_seg(small_data_set, tmp_path / "seg.dcm")
    seg_wanted(tmp_path / "seg.dcm")
    page = dock.kinetics_page
    assert page.ftv.settings().neighbours == 9
    page.times.timing_chosen.emit(Timing.MANUAL, "1, 3")
    qtbot.waitUntil(lambda: f"FTV {pe * 1.28 / 1000:.2f} cc" in page.ftv.value.text())
    assert page.ftv.region.text() == "In the VOI of seg.dcm"
    find(dock, "kinetics_ftv_mask").click()
    qtbot.waitUntil(lambda: "VOI of" not in page.ftv.region.text())


def test_a_seg_that_does_not_fit_is_refused_and_the_numbers_of_another_go(
    dock, seg_wanted, small_data_set, tmp_path
):
    make_seg(small_data_set, tmp_path / "seg.dcm")
    seg_wanted(tmp_path / "seg.dcm")
    make_seg(small_data_set, tmp_path / "away.dcm", shift=9)
    seg_wanted(tmp_path / "away.dcm")
    said = text(dock, "kinetics_ftv_seg_remark")
    assert said.startswith(
        "expected the SEG's pixels to coincide with the image pixels, but they are"
    )
    assert said.endswith("choose the SEG of this exam, and the exam as it was acquired")
    assert find(dock, "kinetics_ftv_seg_remark").property("level") == "error"
    assert not find(dock, "kinetics_ftv_seg_numbers").isVisible()
    (tmp_path / "notes.dcm").write_text("no DICOM at all")
    seg_wanted(tmp_path / "notes.dcm")
    assert "notes.dcm" in text(dock, "kinetics_ftv_seg_remark")


def test_a_seg_that_proves_nothing_says_so(dock, seg_wanted, small_data_set, tmp_path):
    from tests.io.made_ucsf_seg import THRESHOLDS

    thresholds = {k: v for k, v in THRESHOLDS.items() if k != "pre_contrast_threshold"}
    make_seg(small_data_set, tmp_path / "seg.dcm", thresholds=thresholds)
    seg_wanted(tmp_path / "seg.dcm")
    assert "cannot be verified that the SEG is from this exam" in text(
        dock, "kinetics_ftv_seg_remark"
    )
    assert find(dock, "kinetics_ftv_seg_remark").property("level") == "warning"


def test_another_case_begins_without_a_seg(qtbot, dock, seg_wanted, small_data_set, tmp_path):
    make_seg(small_data_set, tmp_path / "seg.dcm")
    seg_wanted(tmp_path / "seg.dcm")
    dock.open_data_set(small_data_set, "B_1")
    qtbot.waitUntil(lambda: dock.session.case_id == "B_1" and dock.kinetics.case.case is not None)
    qtbot.waitUntil(lambda: not find(dock, "kinetics_ftv_seg_numbers").isVisible())
    assert "VOI of" not in text(dock, "kinetics_ftv_region")


def test_a_seg_is_read_in_a_thread_and_can_be_dropped(qtbot, dock, small_data_set, tmp_path):
    make_seg(small_data_set, tmp_path / "seg.dcm")
    threads = []

    def watched(case, path):
        threads.append(threading.current_thread())
        return ftv_under_seg(case, path)

    live = dock.kinetics.ftv_live
    fake_kinetics(live, ftv_under_seg=watched)
    part = find(dock, "kinetics_ftv_seg_part")
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(tmp_path / "seg.dcm"))])
    how = (Qt.DropAction.CopyAction, data, Qt.MouseButton.LeftButton)
    keys = Qt.KeyboardModifier.NoModifier
    QApplication.sendEvent(part, QDragEnterEvent(QPoint(5, 5), *how, keys))
    QApplication.sendEvent(part, QDropEvent(QPointF(5, 5), *how, keys))
    qtbot.waitUntil(lambda: find(dock, "kinetics_ftv_seg_numbers").isVisible())
    assert threads
    assert threading.main_thread() not in threads


def test_without_a_case_a_seg_says_what_is_missing(qtbot, viewer, tmp_path):
    made = MamamiaDock(viewer, Services())
    qtbot.addWidget(made)
    made.kinetics.ftv_live.take_seg(tmp_path / "seg.dcm")
    assert text(made, "kinetics_ftv_seg_remark").startswith("Open a case first")


# ---- a pre that was taken twice


@pytest.fixture
def twice(qtbot, dock):
    """The dock with a case whose phase 0 of 100 was scanned again, at 200; its blob enhances."""
    case = dock.session.case
    signal = np.full(case.signal.shape, 400, np.int16)
    signal[0], signal[1] = 100, 200
    phases = tuple(Phase(k, 90.0 * k, loaded=True) for k in range(len(signal)))
    dock.session.case = replace(
        case, signal=signal, phases=phases, n_before=2, contrast="contrast came after phase 1"
    )
    dock.session.case_changed.emit()
    return dock


def first_signal(dock):
    return float(dock.kinetics.case.case.signal[0].mean())


def choose_pre(qtbot, dock, how):
    pre = find(dock, "kinetics_pre")
    pre.setCurrentIndex(pre.findData(how))
    qtbot.waitUntil(lambda: not dock.jobs.is_running("kinetic_pre"))


def test_a_repeated_pre_is_left_out_averaged_or_kept_as_chosen(qtbot, twice):
    pre, phases = find(twice, "kinetics_pre"), find(twice, "kinetics_phases")
    assert pre.isVisible()
    assert [pre.itemText(k) for k in range(3)] == [
        "pre 2; pre 1 left out",
        "mean of pre 1 – pre 2",
        "pre 1; pre 2 kept",
    ]
    qtbot.waitUntil(lambda: first_signal(twice) == 200)
    assert "early post 1" in phases.text()
    choose_pre(qtbot, twice, RepeatedPre.AVERAGE)
    assert first_signal(twice) == 150
    assert "S0 is the mean of the phases before contrast" in phases.text()
    assert "early post 1" in phases.text()
    choose_pre(qtbot, twice, RepeatedPre.KEEP)
    assert first_signal(twice) == 100
    assert "unchanged" in phases.text()
    choose_pre(qtbot, twice, RepeatedPre.LEAVE_OUT)
    assert first_signal(twice) == 200
    assert "kept" not in phases.text()


def test_typed_times_keep_the_chosen_pre_and_another_case_begins_anew(qtbot, twice, small_data_set):
    choose_pre(qtbot, twice, RepeatedPre.AVERAGE)
    times = find(twice, "kinetics_times")
    times.setText("0, 80, 160, 400")
    QTest.keyClick(times, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: not twice.jobs.is_running("kinetic_pre"))
    assert first_signal(twice) == 150
    assert twice.kinetics.case.case.times_s == (0, 80, 160, 400)
    assert find(twice, "kinetics_pre").currentData() is RepeatedPre.AVERAGE
    twice.open_data_set(small_data_set, "B_1")
    qtbot.waitUntil(lambda: twice.session.case_id == "B_1" and twice.kinetics.case.case is not None)
    assert not find(twice, "kinetics_pre").isVisible()
    assert twice.kinetics.case.pre is RepeatedPre.LEAVE_OUT


def test_a_seg_counts_in_the_phases_of_the_files_however_the_pre_is_wanted(qtbot, twice):
    choose_pre(qtbot, twice, RepeatedPre.AVERAGE)
    assert float(twice.kinetics.case.own_case.signal[0].mean()) == 100


def test_a_pre_that_does_not_fit_into_memory_says_so_and_the_old_one_counts(qtbot, twice):
    def none_left(case, how):
        raise MemoryError

    state = twice.kinetics.case
    fake_kinetics(state, with_pre=none_left)
    choose_pre(qtbot, twice, RepeatedPre.AVERAGE)
    assert first_signal(twice) == 100
    assert find(twice, "kinetics_pre").currentData() is RepeatedPre.LEAVE_OUT
    assert "not enough memory" in twice.header.message.text()


def test_the_injection_of_the_headers_is_taken_where_they_tell_it(dock):
    page, case = dock.kinetics_page, dock.session.case
    dock.session.case = replace(case, scan=replace(case.scan, injection_s=30.0))
    dock.session.case_changed.emit()
    timing = find(dock, "kinetics_timing")
    timing.setCurrentIndex(timing.findData(Timing.INJECTION))
    assert page.times.timing_value.text() == "30"
    assert dock.kinetics.case.rule.injection_s == 30.0


@pytest.mark.real
@pytest.mark.night
def test_ucsf_s_own_numbers_of_a_real_exam_stand_beside_ours(qtbot, viewer, real_data, tmp_path):
    """ISPY1_1002: 4,350 voxels, 5.310 cc, none different; SER > 0.9: 3,601 of its 3,604."""
    with zipfile.ZipFile(real_data("ispy1_1002.zip")) as archive:
        archive.extractall(tmp_path / "exam")
    exam, data = tmp_path / "exam" / "ISPY1_1002", tmp_path / "data"
    words = ["import", exam, "--series", 3, "--case", "ISPY1-1002", "--out", data]
    assert CliRunner().invoke(app, [str(word) for word in words]).exit_code == 0
    (seg,) = exam.glob("32100*/*.dcm")
    dock = MamamiaDock(viewer, Services())
    qtbot.addWidget(dock)
    dock.open_data_set(data, "ISPY1-1002")
    qtbot.waitUntil(lambda: dock.kinetics.case.case is not None)
    dock.kinetics.ftv_live.take_seg(seg)
    qtbot.waitUntil(lambda: "ours" in text(dock, "kinetics_ftv_seg_numbers"))
    cells = re.findall("<td[^>]*> *([^<]*)</td>", text(dock, "kinetics_ftv_seg_numbers"))
    assert cells == [
        *("", "ours", "UCSF", "PE, voxels", "4,350", "4,350", "PE, cc", "5.310", "5.310"),
        *("differing voxels", "0", "PE and SER, voxels", "3,601", "3,604"),
        *("PE and SER, cc", "4.396", "4.399"),
    ]
    assert text(dock, "kinetics_ftv_seg_basis").endswith("UCSF-FTV · ucsf-ispy1")
