import json
from pathlib import Path

import pytest
from qtpy.QtCore import Qt
from qtpy.QtWidgets import QFileDialog, QScrollArea

from napari_mamamia.core.choices import ExportFormat, FuseRule, OrientationProfile
from napari_mamamia.core.errors import SaveConflictError
from napari_mamamia.core.label_rules import LabelRule
from napari_mamamia.core.progress import report_progress
from napari_mamamia.core.provenance import InputFile
from napari_mamamia.core.records import CaseFailure
from napari_mamamia.services.batch.output_folder import Existing
from napari_mamamia.services.export.export import (
    ExportedMask,
    ExportSummary,
    ExportTarget,
    TargetState,
    look_at_target,
)
from napari_mamamia.services.export.plan import LabelFile
from napari_mamamia.widgets.dock.dock import MamamiaDock
from napari_mamamia.widgets.export.page import ExportOptions, ExportPage
from napari_mamamia.widgets.report.page import ReportPage

STATES = {
    "taken": TargetState.BUNDLE,
    "locked": TargetState.READ_ONLY,
    "file": TargetState.NO_FOLDER,
}


@pytest.fixture
def asked():
    return []


@pytest.fixture
def exporting(qtbot, viewer, world, asked, new_mask, case):
    """The dock on page Export, with one prediction and one mask of Ana in the workspace."""
    world.predictions["A_1"] = new_mask(case.grid)
    world.refined["Ana", "A_2"] = new_mask(case.grid)

    def export_bundle(opened, settings, out, existing):
        asked.append((settings, out, existing))
        report_progress(0, 1, "Exporting")
        if out.name == "late" and existing is Existing.REFUSE:
            raise SaveConflictError(f"{out} is not empty: choose a new folder")
        mask = ExportedMask("A_1", 432.0, (InputFile("A_1.nii.gz", "sha"),), "amber")
        failures = (CaseFailure("B_1", "grid mismatch"),) if out.name == "partly" else ()
        problems = ("A_1.nii.gz: changed",) if out.name == "rotten" else ()
        return ExportSummary(out, (mask,), failures, problems)

    def look(folder):
        state = STATES.get(folder.name, TargetState.FREE)
        return ExportTarget(folder, state, f"the folder is {state.value}")

    fakes = world.services().replacing(export_bundle=export_bundle, look_at_target=look)
    dock = MamamiaDock(viewer, fakes)
    qtbot.addWidget(dock)
    dock.show()
    dock.open_data_set(Path("data"))
    qtbot.waitUntil(lambda: dock.session.opened is not None)
    dock.show_page("Export")
    return dock


@pytest.fixture
def page(exporting):
    return exporting.export_page


def tick(page, *rows):
    """Tick exactly these rows of the list of masks."""
    for k in range(page.sets.count()):
        state = Qt.CheckState.Checked if k in rows else Qt.CheckState.Unchecked
        page.sets.item(k).setCheckState(state)


def go_to(qtbot, page, folder):
    """Type a folder and wait until its state is known."""
    page.out.clear()
    qtbot.keyClicks(page.out, str(folder))
    qtbot.waitUntil(lambda: page._target is not None and page._target.folder == folder)


def test_without_masks_the_page_says_what_to_do_first(qtbot, dock):
    assert "data set first" in dock.export_page.missing.text()
    dock.open_data_set(Path("data"))
    qtbot.waitUntil(lambda: "predict or edit" in dock.export_page.missing.text())


def test_the_masks_of_the_workspace_are_offered_readers_first(page):
    assert [page.sets.item(k).text() for k in range(page.sets.count())] == [
        "refined by Ana (1, none accepted)",
        "prediction kinetic (1, none accepted)",
    ]
    assert [chosen.title for chosen in page.chosen()] == ["refined by Ana"]
    assert page.out.text().endswith("refined-Ana")
    assert "1 mask as ID.nii.gz" in page.what.text()
    assert "SHA-256" in page.what.text()


def test_a_mask_that_was_refined_later_is_ticked_until_the_user_chooses(page):
    refined, prediction = (page.sets.item(k).data(Qt.ItemDataRole.UserRole) for k in (0, 1))
    page.show_sets([prediction])
    assert page.chosen() == ()
    page.show_sets([refined, prediction])
    assert page.chosen() == (refined,)
    tick(page, 1)
    page.show_sets([refined, prediction])
    assert page.chosen() == (prediction,)


def test_an_export_says_verified_and_offers_the_folder(qtbot, exporting, page, asked, tmp_path):
    tick(page, 1)
    go_to(qtbot, page, tmp_path / "out")
    page.start.click()
    qtbot.waitUntil(lambda: "verified" in page.result.text())
    settings, out, existing = asked[0]
    assert [m.folder.parts[-2:] for m in settings.masks] == [("predictions", "kinetic")]
    assert (out, existing) == (tmp_path / "out", Existing.REFUSE)
    assert "0 green, 1 amber, 0 red" in page.result.text()
    assert page.open_folder.isVisible()
    assert page.start.isEnabled()


@pytest.mark.parametrize("kind", [ExportPage, ReportPage])
@pytest.mark.parametrize("high", [430, 900])
def test_what_an_export_says_leaves_half_of_the_room_to_the_form(qtbot, kind, high, tmp_path):
    """At text of 150 % on 1280x720 the form of page Export had 45 pixels of 420 then."""
    page = kind()
    qtbot.addWidget(page)
    page.need("")
    font = page.font()
    font.setPointSize(14)
    page.setFont(font)
    page.resize(430, high)
    page.show()
    form = page.findChild(QScrollArea, f"{page.objectName()}_form")
    before = form.height()
    heights = []
    for _ in range(2):
        page.show_result("12 case(s) verified in a folder with a long name. " * 8, tmp_path)
        qtbot.wait(50)
        assert form.height() >= min(before, (high - page.start.height()) / 2 - 40)
        answer = page.findChild(QScrollArea, f"{page.objectName()}_answer")
        assert (answer.verticalScrollBar().maximum() > 0) == (high < 900)
        page.show_result("", None)
        qtbot.wait(50)
        heights.append(form.height())
    assert heights[0] == heights[1] == form.widget().height()


def test_all_rows_of_masks_are_whole_after_the_text_became_larger(qtbot, page):
    qtbot.addWidget(page)
    before = page.sets.height()
    font = page.sets.font()
    font.setPointSize(2 * max(font.pointSize(), 9))
    page.sets.setFont(font)
    page.hide()
    page.show()
    assert page.sets.height() > 1.4 * before


def test_what_is_chosen_is_what_is_asked_for(qtbot, page, asked, tmp_path):
    tick(page, 0, 1)
    options = page.options
    options.formats[ExportFormat.CHALLENGE].click()
    options.fields["profile"].setCurrentIndex(2)
    options.fields["with_images"].click()
    options.fields["fuse"].setCurrentIndex(1)
    assert "masks/NAME/ID.nii.gz" in page.what.text()
    assert "harmonised/: the same masks in RAS orientation" in page.what.text()
    assert "majority of the 2 selected mask sets" in page.what.text()
    go_to(qtbot, page, tmp_path / "out")
    page.start.click()
    qtbot.waitUntil(lambda: bool(asked))
    settings = asked[0][0]
    assert settings.formats == (ExportFormat.NIFTI, ExportFormat.CHALLENGE)
    assert settings.profile is OrientationProfile.RAS
    assert settings.with_images
    assert settings.fuse is FuseRule.MAJORITY
    assert len(settings.masks) == 2


def test_an_earlier_export_is_replaced_only_when_ticked(qtbot, page, asked, tmp_path):
    go_to(qtbot, page, tmp_path / "taken")
    assert "an earlier export" in page.target.text()
    assert page.replace.isVisible()
    assert not page.start.isEnabled()
    page.replace.click()
    page.start.click()
    qtbot.waitUntil(lambda: bool(asked))
    assert asked[0][2] is Existing.OVERWRITE


@pytest.mark.parametrize("name", ["locked", "file"])
def test_a_folder_that_cannot_be_used_blocks_the_button(qtbot, page, tmp_path, name):
    go_to(qtbot, page, tmp_path / name)
    assert not page.start.isEnabled()
    assert not page.replace.isVisible()
    assert STATES[name].value in page.target.text()


def test_a_folder_that_was_taken_meanwhile_is_an_error_that_is_shown(
    qtbot, exporting, page, tmp_path
):
    go_to(qtbot, page, tmp_path / "late")
    page.start.click()
    qtbot.waitUntil(lambda: "is not empty" in exporting.header.message.text())
    assert "Nothing was exported" in page.result.text()
    assert page.start.isEnabled()


def test_masks_that_failed_are_named(qtbot, exporting, page, tmp_path):
    go_to(qtbot, page, tmp_path / "partly")
    page.start.click()
    qtbot.waitUntil(lambda: "grid mismatch" in page.result.text())
    assert "1 mask was not exported" in exporting.header.message.text()


def test_a_bundle_that_is_not_sound_is_said_loudly(qtbot, exporting, page, tmp_path):
    go_to(qtbot, page, tmp_path / "rotten")
    page.start.click()
    qtbot.waitUntil(lambda: "NOT verified" in page.result.text())
    assert "has problems" in exporting.header.message.text()


def test_a_cancelled_export_says_what_is_left(qtbot, exporting, page, tmp_path):
    go_to(qtbot, page, tmp_path / "out")
    page.start.click()
    exporting.header.cancel.click()
    assert "no files remain" in page.result.text()
    assert page.open_folder.isHidden()
    assert page.start.isEnabled()


def test_a_cancelled_export_over_an_earlier_one_says_what_became_of_that(
    qtbot, exporting, page, tmp_path
):
    go_to(qtbot, page, tmp_path / "taken")
    page.replace.click()
    page.start.click()
    exporting.header.cancel.click()
    assert "some files of the earlier export were replaced" in page.result.text()
    assert page.open_folder.isVisible()


def test_dicom_seg_of_nifti_cases_asks_for_the_study(qtbot, page, asked, tmp_path):
    page.options.formats[ExportFormat.DICOM_SEG].click()
    assert "choose their study" in page.target.text()
    assert not page.start.isEnabled()
    page.options.fields["study"].setText(str(tmp_path))
    go_to(qtbot, page, tmp_path / "out")
    page.start.click()
    qtbot.waitUntil(lambda: bool(asked))
    assert asked[0][0].study == tmp_path


def test_a_dicom_seg_names_the_patient_only_if_that_is_ticked(qtbot, page, asked, tmp_path):
    options = page.options
    assert not options.fields["identified"].isVisible()
    options.formats[ExportFormat.DICOM_SEG].setChecked(True)
    options.fields["study"].setText(str(tmp_path))
    assert options.fields["identified"].isVisible()
    assert not options.fields["identified"].isChecked()
    assert "the case id replaces the patient" in page.what.text()
    options.fields["identified"].setChecked(True)
    assert "WITH the patient's name" in page.what.text()
    assert options.selection().settings.identified_seg
    options.formats[ExportFormat.DICOM_SEG].setChecked(False)
    options.formats[ExportFormat.NIFTI].setChecked(True)
    assert not options.selection().settings.identified_seg


def test_dicom_cases_need_no_study(qtbot):
    options = ExportOptions()
    qtbot.addWidget(options)
    options.show_kind(is_dicom=True)
    options.formats[ExportFormat.DICOM_SEG].click()
    assert options.problem() == ""


def test_nothing_chosen_is_said(page):
    tick(page)
    assert "Choose the masks" in page.target.text()
    assert not page.start.isEnabled()
    tick(page, 0)
    page.options.formats[ExportFormat.NIFTI].click()
    assert "Choose a format" in page.target.text()
    assert not page.start.isEnabled()


def test_every_control_has_a_name_and_a_tooltip(page):
    options = page.options
    for widget in (
        page.sets, page.out, page.replace, page.start, page.open_folder, page.target, page.what,
        *options.formats.values(), *options.fields.values(),
    ):  # fmt: skip
        assert widget.objectName().startswith("export_")
        assert widget.toolTip()


# ------------------------------------------------------------------------------ label names


RULES = {
    "rules": [
        {"source": 1, "target": 1, "name": "tumour", "masks": "Ana"},
        {"source": 255, "target": 1, "name": "tumour", "masks": "Ben"},
        {"source": 3, "target": 2, "name": "marker"},
        {"source": 7, "target": 0},
    ]
}


def rows_of(view):
    model = view.model()
    return [
        [model.index(k, column).data() for column in range(model.columnCount())]
        for k in range(model.rowCount())
    ]


@pytest.fixture
def labels(page):
    return page.options.labels


@pytest.fixture
def label_file(tmp_path):
    path = tmp_path / "labels.json"
    path.write_text(json.dumps(RULES))
    return path


def test_without_a_label_file_none_is_spoken_of(page, labels):
    assert labels.choose.isVisible()
    assert not labels.leave_out.isVisible()
    assert not labels.preview.isVisible()
    assert "labels:" not in page.what.text()


def test_a_chosen_label_file_shows_what_becomes_of_each_value(
    qtbot, page, labels, label_file, monkeypatch
):
    monkeypatch.setattr(
        QFileDialog, "getOpenFileName", lambda *args: (str(label_file), "Label rules (*.json)")
    )
    labels.choose.click()
    qtbot.waitUntil(labels.preview.isVisible)
    assert rows_of(labels.preview) == [
        ["1", "1", "tumour", "Ana"],
        ["255", "1", "tumour", "Ben"],
        ["3", "2", "marker", "all"],
        ["7", "left out", "", "all"],
    ]
    model = labels.preview.model()
    across = Qt.Orientation.Horizontal
    named = [model.headerData(k, across) for k in range(model.columnCount())]
    assert named == ["file value", "becomes", "name", "masks"]
    assert labels.note.text() == "labels.json: 4 rules; no DICOM code for marker"
    assert "labels: 1 tumour, 2 marker; 1 value omitted" in page.what.text()


def test_a_dialog_that_is_cancelled_changes_nothing(qtbot, labels, label_file, monkeypatch):
    labels.take(label_file)
    qtbot.waitUntil(labels.preview.isVisible)
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *args: ("", ""))
    labels.choose.click()
    assert labels.found is not None


def test_the_rules_of_the_file_are_what_is_asked_for(
    qtbot, page, labels, label_file, asked, tmp_path
):
    labels.take(label_file)
    go_to(qtbot, page, tmp_path / "out")
    qtbot.waitUntil(page.start.isEnabled)
    page.start.click()
    qtbot.waitUntil(lambda: bool(asked))
    assert asked[0][0].rules == (
        LabelRule(1, 1, "tumour", "Ana"),
        LabelRule(255, 1, "tumour", "Ben"),
        LabelRule(3, 2, "marker"),
        LabelRule(7, 0, ""),
    )


def test_a_broken_label_file_is_named_and_blocks_the_button_until_it_is_left_out(
    qtbot, page, labels, label_file, tmp_path
):
    label_file.write_text('{"rules": [{"source": 1, "target": 1, "nam": "tumour"}]}')
    go_to(qtbot, page, tmp_path / "out")
    labels.take(label_file)
    assert not page.start.isEnabled()  # not before it was looked at
    qtbot.waitUntil(lambda: "unknown key 'nam'" in labels.note.text())
    assert labels.note.property("level") == "error"
    assert f"rule 1 of {label_file}" in labels.note.text()
    assert not labels.preview.isVisible()
    assert "Choose another label file, or remove this one" in page.target.text()
    assert not page.start.isEnabled()
    labels.leave_out.click()
    assert not labels.note.isVisible()
    assert page.start.isEnabled()


def test_an_answer_about_another_label_file_is_dropped(page, labels, label_file, tmp_path):
    labels.take(label_file)
    labels.show_found(LabelFile(tmp_path / "other.json", problem="wrong"))
    assert labels.found is None
    labels.clear()
    labels.show_found(LabelFile(label_file, problem="late"))
    assert labels.found is None
    assert page.options.problem() == ""


@pytest.mark.usefixtures("dressed")
def test_the_controls_of_the_labels_have_names_and_tooltips_and_fit_the_dock(
    qtbot, page, labels, label_file
):
    labels.take(label_file)
    qtbot.waitUntil(labels.preview.isVisible)
    for widget in (labels.choose, labels.leave_out, labels.preview, labels.note):
        assert widget.objectName().startswith("export_labels_")
        assert widget.toolTip()
    assert page.minimumSizeHint().width() <= 420


# -------------------------------------------------------------------------- the folder's state


def test_the_state_of_a_folder_is_told_before_anything_is_written(tmp_path):
    (tmp_path / "note.txt").write_text("x")
    bundle = tmp_path / "bundle"
    bundle.mkdir()
    (bundle / "manifest.json").write_text("{}")
    expected = {
        tmp_path / "new" / "deeper": TargetState.FREE,
        tmp_path: TargetState.TAKEN,
        bundle: TargetState.BUNDLE,
        tmp_path / "note.txt": TargetState.NO_FOLDER,
        tmp_path / "note.txt" / "below": TargetState.NO_FOLDER,
    }
    assert {path: look_at_target(path).state for path in expected} == expected
    assert not (tmp_path / "new").exists()


def test_a_read_only_folder_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr("os.access", lambda path, mode: False)
    assert look_at_target(tmp_path).state is TargetState.READ_ONLY
