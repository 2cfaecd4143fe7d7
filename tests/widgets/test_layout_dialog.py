"""A folder whose layout is not known is described in a dialog, and opened."""

import nibabel
import numpy as np
import pytest
from qtpy.QtCore import Qt

from napari_mamamia.io.layouts.find import own_layout_file
from napari_mamamia.services.case.layout_choice import preview_layout, propose_for
from napari_mamamia.widgets.base.service_record import Services
from napari_mamamia.widgets.cases.layout_dialog import LayoutDialog
from napari_mamamia.widgets.dock.dock import MamamiaDock

OWN = '[mine]\nimage = [{path = "{patient}/x_t{phase:n}"}]\n'


@pytest.fixture
def folder(tmp_path):
    """Two patients of three phases x_t0 to x_t2, as no known layout has them."""
    root = tmp_path / "set"
    for patient in ("a", "b"):
        (root / patient).mkdir(parents=True)
        for k in range(3):
            image = nibabel.Nifti1Image(np.zeros((2, 2, 2), np.int16), np.diag([1, 1, 2, 1]))
            nibabel.save(image, root / patient / f"x_t{k}.nii.gz")
    return root


def test_preview_says_what_a_description_gives(folder):
    preview = preview_layout(folder, OWN)
    assert preview.lines[0].startswith("Patients: 2   exams: 2")
    assert preview.lines[1] == "Phases: 3 in 2 exams"
    assert not preview.problems
    (folder / "a" / "x_t1.nii.gz").unlink()
    assert "phase 1 of a is missing" in preview_layout(folder, OWN).problems[0]


@pytest.mark.parametrize("text", ["", "[mine]", OWN.replace("x_t", "y_t"), 'layout = "nix"'])
def test_preview_of_a_wrong_description_is_an_error(folder, text):
    preview = preview_layout(folder, text)
    assert preview.error
    assert not preview.lines


def test_dialog_opens_only_what_gives_cases(qtbot, folder):
    dialog = LayoutDialog(folder, propose_for(folder), (), str)
    qtbot.addWidget(dialog)
    dialog.show_preview(preview_layout(folder, "[mine]"))
    assert not dialog.open.isEnabled()
    dialog.show_preview(preview_layout(folder, dialog.text.toPlainText()))
    assert dialog.open.isEnabled()
    with qtbot.waitSignal(dialog.text_changed, timeout=5000) as caught:
        dialog.text.setPlainText(OWN)
    assert caught.args == [OWN]
    with qtbot.waitSignal(dialog.layout_wanted, timeout=5000) as caught:
        qtbot.mouseClick(dialog.open, Qt.MouseButton.LeftButton)
    assert caught.args == [OWN]


def test_dialog_offers_the_layouts_that_fit(qtbot, folder):
    dialog = LayoutDialog(folder, "", ("odelia", "p0-pn"), lambda name: f'layout = "{name}"')
    qtbot.addWidget(dialog)
    assert [dialog.candidates.itemText(k) for k in range(2)] == ["odelia", "p0-pn"]
    dialog.candidates.textActivated.emit("p0-pn")
    assert dialog.text.toPlainText() == 'layout = "p0-pn"'


def test_described_folder_is_kept_beside_it_and_listed(qtbot, viewer, folder):
    dock = MamamiaDock(viewer, Services())
    qtbot.addWidget(dock)
    dock.listing.open_data_set(folder)
    qtbot.waitUntil(lambda: dock.layout_question.dialog is not None, timeout=10_000)
    dialog = dock.layout_question.dialog
    qtbot.waitUntil(dialog.open.isEnabled, timeout=10_000)
    assert dialog.candidates.count() == 0  # a proposal is no choice of known layouts
    qtbot.mouseClick(dialog.open, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: dock.session.opened is not None, timeout=10_000)
    assert list(dock.session.rows) == ["a", "b"]
    assert "{patient}" in own_layout_file(folder).read_text()
    assert sorted(path.name for path in folder.iterdir()) == ["a", "b"]
