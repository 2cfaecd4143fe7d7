"""Page Export in a real window: from a prediction to a verified bundle, and what blocks it."""

import json
import shutil

import pytest
from qtpy.QtCore import Qt

from napari_mamamia.core.choices import ExportFormat, OrientationProfile
from napari_mamamia.io.data_set.volumes import read_labels
from napari_mamamia.services.export.verify import verify_bundle

pytestmark = pytest.mark.window


@pytest.fixture
def page(qtbot, window, docked, small_data_set):
    """The page with masks of a reader and of a model to export."""
    docked.open_data_set(small_data_set, "A_1")
    qtbot.waitUntil(
        lambda: docked.session.case is not None and docked.session.case.is_loaded, timeout=15_000
    )
    workspace = docked.session.opened.workspace
    for folder in (workspace.refined("Ana", "A_1"), workspace.prediction("kinetic", "A_1")):
        shutil.copytree(small_data_set / "segmentations" / "expert", folder.parent)
    docked.open_data_set(small_data_set, "A_1")
    docked.show_page("Export")
    qtbot.waitUntil(lambda: docked.export_page.sets.count() == 2, timeout=15_000)
    return docked.export_page


@pytest.mark.night  # by day: tests/widgets/test_exporting.py
def test_two_sets_become_a_verified_bundle(qtbot, window, page, picture, control, docked, tmp_path):
    picture(window, "export_1_ready")
    page.sets.item(1).setCheckState(Qt.CheckState.Checked)
    page.options.fields["profile"].setCurrentIndex(
        page.options.fields["profile"].findData(OrientationProfile.LAS_PSR)
    )
    page.options.formats[ExportFormat.CHALLENGE].click()
    page.out.setText(str(tmp_path / "bundle"))
    control(docked, "export_start")
    qtbot.waitUntil(lambda: "verified" in page.result.text(), timeout=30_000)
    picture(window, "export_2_verified")
    assert page.open_folder.isVisible()
    found = verify_bundle(tmp_path / "bundle")
    assert found.is_sound
    assert found.n_masks == 3 * 2 * 3  # cases x sets x (native, harmonised, challenge)
    qtbot.waitUntil(page.replace.isVisible, timeout=15_000)
    assert not page.start.isEnabled()


@pytest.mark.night
def test_a_label_file_is_shown_and_its_names_stand_in_the_bundle(
    qtbot, window, page, picture, control, docked, tmp_path
):
    rules = tmp_path / "labels.json"
    rules.write_text('{"rules": [{"source": 1, "target": 2, "name": "lesion"}]}')
    page.options.labels.take(rules)
    qtbot.waitUntil(page.options.labels.preview.isVisible, timeout=15_000)
    picture(window, "export_4_labels")
    page.out.setText(str(tmp_path / "bundle"))
    control(docked, "export_start")
    qtbot.waitUntil(lambda: "verified" in page.result.text(), timeout=30_000)
    manifest = json.loads((tmp_path / "bundle/manifest.json").read_text())
    assert manifest["labels"] == [{"value": 2, "name": "lesion"}]
    assert read_labels(tmp_path / "bundle/A_1.nii.gz").values == (2,)


@pytest.mark.night
def test_a_file_in_place_of_the_folder_blocks_the_button(qtbot, window, page, picture, tmp_path):
    (tmp_path / "file").write_text("x")
    page.out.setText(str(tmp_path / "file"))
    qtbot.waitUntil(lambda: "is a file" in page.target.text(), timeout=15_000)
    picture(window, "export_3_no_folder")
    assert not page.start.isEnabled()
