from dataclasses import replace
from pathlib import Path

import pytest

from napari_mamamia.core.errors import SaveConflictError
from napari_mamamia.core.progress import Progress
from napari_mamamia.core.provenance import InputFile
from napari_mamamia.core.records import CaseFailure
from napari_mamamia.services.export import ExportedMask, ExportSummary
from napari_mamamia.services.output_folder import Existing
from napari_mamamia.widgets.dock import MamamiaDock


@pytest.fixture
def asked():
    return []


@pytest.fixture
def exporting(qtbot, viewer, world, asked, new_mask, case):
    """The dock on page Export, with one prediction and one mask of Ana in the workspace."""
    world.predictions["A_1"] = new_mask(case.grid)
    world.refined["Ana", "A_2"] = new_mask(case.grid)

    def export_masks(data_set, masks, out, *, existing):
        asked.append((masks, out, existing))
        yield Progress(0, 1, "Exporting")
        if out.name == "taken" and existing is Existing.REFUSE:
            raise SaveConflictError(f"{out} is not empty: choose a new folder")
        mask = ExportedMask("A_1", 432.0, (InputFile("A_1.nii.gz", "sha"),))
        failures = (CaseFailure("B_1", "grid mismatch"),) if out.name == "partly" else ()
        return ExportSummary(out, (mask,), failures)

    dock = MamamiaDock(viewer, replace(world.services(), export_masks=export_masks))
    qtbot.addWidget(dock)
    dock.show()
    dock.open_data_set(Path("data"))
    qtbot.waitUntil(lambda: dock.session.opened is not None)
    dock.show_page("Export")
    return dock


def test_without_masks_the_page_says_what_to_do_first(qtbot, dock):
    assert "data set first" in dock.export_page.missing.text()
    dock.open_data_set(Path("data"))
    qtbot.waitUntil(lambda: dock.session.opened is not None)
    assert "predict or edit" in dock.export_page.missing.text()


def test_the_masks_of_the_workspace_are_offered_readers_first(exporting):
    sets = exporting.export_page.sets
    assert [sets.itemText(k) for k in range(sets.count())] == [
        "refined by Ana (1)",
        "prediction kinetic (1)",
    ]
    assert exporting.export_page.out.text().endswith("refined-Ana")
    assert "SHA-256" in exporting.export_page.what.text()


def test_an_export_says_verified_and_offers_the_folder(qtbot, exporting, asked, tmp_path):
    exporting.export_page.sets.setCurrentIndex(1)
    exporting.export_page.out.setText(str(tmp_path / "out"))
    exporting.export_page.start.click()
    qtbot.waitUntil(lambda: "verified" in exporting.export_page.result.text())
    masks, out, existing = asked[0]
    assert masks.parts[-2:] == ("predictions", "kinetic")
    assert (out, existing) == (tmp_path / "out", Existing.REFUSE)
    assert exporting.export_page.open_folder.isVisible()
    assert exporting.export_page.start.isEnabled()


def test_a_folder_that_is_taken_is_refused_until_replacing_is_ticked(qtbot, exporting, tmp_path):
    exporting.export_page.out.setText(str(tmp_path / "taken"))
    exporting.export_page.start.click()
    qtbot.waitUntil(lambda: "is not empty" in exporting.header.message.text())
    assert "nothing was exported" in exporting.export_page.result.text()
    exporting.export_page.replace.setChecked(True)
    exporting.export_page.start.click()
    qtbot.waitUntil(lambda: "verified" in exporting.export_page.result.text())


def test_masks_that_failed_are_named(qtbot, exporting, tmp_path):
    exporting.export_page.out.setText(str(tmp_path / "partly"))
    exporting.export_page.start.click()
    qtbot.waitUntil(lambda: "grid mismatch" in exporting.export_page.result.text())
    assert "1 mask(s) were not exported" in exporting.header.message.text()


def test_a_cancelled_export_says_what_is_left(exporting, tmp_path):
    exporting.export_page.out.setText(str(tmp_path / "out"))
    exporting.export_page.start.click()
    exporting.header.cancel.click()
    assert "stopped" in exporting.export_page.result.text()
    assert exporting.export_page.start.isEnabled()
