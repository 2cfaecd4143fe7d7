"""DICOM to export in a real window: dropped, confirmed, imported, refined, handed over.

By day tests/door/test_import_stories.py drops, imports and opens, test_window_export hands over.
"""

import importlib.util
import shutil
from pathlib import Path

import numpy as np
import pytest
from qtpy.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from qtpy.QtGui import QDragEnterEvent, QDropEvent
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QApplication

from napari_mamamia.core.choices import ExportFormat
from napari_mamamia.phantom import PhantomSpec, TumourSpec, make_phantom
from napari_mamamia.services.export.verify import verify_bundle
from napari_mamamia.widgets.base.layers import Role
from napari_mamamia.widgets.dicom.page import ImportState
from napari_mamamia.widgets.refine.mask_watch import SaveState

pydicom = pytest.importorskip("pydicom")
pytest.importorskip("highdicom")
pytestmark = [pytest.mark.window, pytest.mark.one_window]

_SPEC = importlib.util.spec_from_file_location(
    "dicom_phantoms", Path(__file__).parents[1] / "dicom_phantoms.py"
)
phantoms = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(phantoms)

N_PHASES = 5


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """A study of a phantom: five phases in one series each, a localiser and a subtraction."""
    folder = tmp_path_factory.mktemp("archive") / "exam_17"
    spec = PhantomSpec(
        shape=(16, 72, 96),
        spacing_mm=(4.0, 3.0, 3.0),
        seed=7,
        tumours=(TumourSpec(longest_mm=24.0),),
    )
    signal = np.clip(make_phantom(spec).case.signal, 0, 30_000).astype(np.int16)[:, :, ::-1]
    assert len(signal) >= N_PHASES
    common = {
        "StudyInstanceUID": "2.25.70",
        "FrameOfReferenceUID": "2.25.71",
        "PixelSpacing": [3.0, 3.0],
        "SliceThickness": 4.0,
        "PatientName": "Muster^Erika",
        "PatientID": "4711",
        "Manufacturer": "SIEMENS",
    }
    for k in range(N_PHASES):
        phantoms.write_phase(
            folder / f"dyn_{k}",
            k,
            values=signal[k],
            gap=4.0,
            SeriesNumber=5 + k,
            SeriesInstanceUID=f"2.25.70.{k}",
            SeriesDescription=f"t1_fl3d_tra_dyn_{k}",
            AcquisitionTime=f"10{2 * k:02d}17",
            **common,
        )
    for number, name in ((1, "localizer"), (20, "SUB_1-0")):
        phantoms.write_phase(
            folder / name,
            0,
            values=signal[1],
            gap=4.0,
            SeriesNumber=number,
            SeriesInstanceUID=f"2.25.70.1{number}",
            SeriesDescription=name,
            **common,
        )
    return folder


def drop_on_canvas(viewer, path):
    """Drop a path on the image, as a file manager does."""
    native = viewer.window._qt_viewer.canvas.native
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path))])
    copy, button = Qt.DropAction.CopyAction, Qt.MouseButton.LeftButton
    keys = Qt.KeyboardModifier.NoModifier
    QApplication.sendEvent(native, QDragEnterEvent(QPoint(40, 40), copy, data, button, keys))
    QApplication.sendEvent(native, QDropEvent(QPointF(40, 40), copy, data, button, keys))


def wait_found(qtbot, panel):
    page = panel.import_page
    qtbot.waitUntil(lambda: page.state is ImportState.FOUND, timeout=15_000)
    lanes = ("judge", "preview", "check")
    qtbot.waitUntil(
        lambda: not any(panel.jobs.is_running(f"import {lane}") for lane in lanes), timeout=15_000
    )


def click_box(box):
    QTest.mouseClick(box, Qt.MouseButton.LeftButton, pos=QPoint(8, box.height() // 2))


def type_into(field, text):
    field.clear()
    QTest.keyClicks(field, text)


@pytest.mark.night
def test_from_a_dropped_study_to_a_verified_dicom_seg(
    qtbot, window, docked, study, tmp_path, control, picture
):
    page, out = docked.import_page, tmp_path / "cases"
    drop_on_canvas(window, study)
    wait_found(qtbot, docked)
    assert docked.pages.shown is page
    picture(window, "import_1_found")
    rows = {row.number: row for row in docked.import_flow.choosing.choices[0].found.rows}
    assert [rows[number].phases for number in (5, 6, 7, 8, 9)] == [(k,) for k in range(N_PHASES)]
    assert rows[1].kind == "localiser"
    assert rows[20].kind == "computed from others (a subtraction)"

    type_into(page.form.target, str(out))
    page.area.ensureWidgetVisible(page.study.phases.boxes[3])
    click_box(page.study.phases.boxes[3])
    wait_found(qtbot, docked)
    qtbot.waitUntil(page.start.isEnabled, timeout=15_000)
    control(docked, "import_start")
    qtbot.waitUntil(
        lambda: docked.session.case is not None and docked.session.case.is_loaded, timeout=30_000
    )
    picture(window, "import_2_opened")
    assert docked.session.case_id == "exam_17"
    assert docked.session.case.times_s == (0, 120, 240, 480)
    assert docked.pages.step == "Read"

    docked.show_page("Predict")
    control(docked, "predict_start")
    qtbot.waitUntil(lambda: docked.session.mask(Role.PREDICTION) is not None, timeout=30_000)
    docked.show_page("Refine")
    control(docked, "refine_from_prediction")
    type_into(docked.header.reader_name, "Ana")
    control(docked, "header_reader_ok")
    qtbot.waitUntil(lambda: docked.editing.live is not None, timeout=15_000)
    layer = docked.scene.layer(Role.REFINED)
    layer.paint((4, 30, 40), 1)
    qtbot.waitUntil(lambda: docked.editing.is_dirty, timeout=5000)
    control(docked, "refine_save")
    qtbot.waitUntil(lambda: docked.editing.state is SaveState.SAVED, timeout=15_000)
    painted = int((docked.session.mask(Role.REFINED).buffer > 0).sum())

    export = docked.export_page
    docked.show_page("Export")
    qtbot.waitUntil(lambda: export.sets.count() == 2, timeout=15_000)
    assert [chosen.title for chosen in export.chosen()] == ["refined by Ana"]
    click_box(export.options.formats[ExportFormat.DICOM_SEG])
    assert export.options.fields["study"].text() == str(study)
    type_into(export.out, str(tmp_path / "bundle"))
    qtbot.waitUntil(export.start.isEnabled, timeout=15_000)
    control(docked, "export_start")
    qtbot.waitUntil(lambda: "exporting" not in export.result.text(), timeout=60_000)
    picture(window, "import_3_exported")
    assert "verified" in export.result.text(), export.result.text()
    assert verify_bundle(tmp_path / "bundle").is_sound
    (segmentation,) = (tmp_path / "bundle").rglob("exam_17.dcm")
    written = pydicom.dcmread(segmentation)
    assert int(np.count_nonzero(written.pixel_array)) == painted
    assert (written.PatientID, written.PatientName) == ("exam_17", "exam_17")
    assert not written.ReferencedSeriesSequence[0].SeriesInstanceUID.startswith("2.25.70.")


@pytest.mark.night
def test_a_study_that_is_imported_twice_says_so_and_what_to_do(
    qtbot, window, docked, study, tmp_path, control, picture
):
    page, out = docked.import_page, tmp_path / "cases"
    archive = shutil.make_archive(str(tmp_path / "exam_17"), "zip", study)
    for source in (study, Path(archive)):
        docked.import_dicom(source)
        wait_found(qtbot, docked)
        type_into(page.form.target, str(out))
        wait_found(qtbot, docked)
        if page.start.isEnabled():
            control(docked, "import_start")
            qtbot.waitUntil(lambda: docked.session.case_id == "exam_17", timeout=30_000)
    qtbot.waitUntil(lambda: "already" in page.form.id_state.text(), timeout=15_000)
    assert not page.start.isEnabled()
    page.area.ensureWidgetVisible(page.form.replace)
    picture(window, "import_4_twice")
    type_into(page.form.case_id, "Erika")
    qtbot.waitUntil(
        lambda: "does not identify the patient" in page.form.id_state.text(), timeout=15_000
    )
    picture(window, "import_5_personal")
    unpacked = docked.import_flow.choosing.looked.folder
    control(docked, "import_back")
    assert not unpacked.exists()


def test_napari_opens_a_dicom_folder_in_the_dock(qtbot, window, study, the_dock):
    window.open(str(study), plugin="napari-mamamia")
    panel = the_dock(window)
    wait_found(qtbot, panel)
    assert panel.pages.shown is panel.import_page
    assert panel.import_page.start.text() == "Import 1 case"
    panel.close_down()
