"""A blind reading in the real window: every route by which what is hidden could be seen.

The world has an expert's mask, a model's, one of another reader, tags, a breast box and a clinical
row; whatever of them reaches a layer, a text, a tooltip or a table is found by `leaks`.
"""

import json
import shutil

import nibabel as nib
import numpy as np
import pytest
from one_window import wait_open
from qtpy.QtCore import QAbstractItemModel, QAbstractListModel, QMimeData, QPoint, QPointF, Qt, QUrl
from qtpy.QtGui import QDragEnterEvent, QDropEvent, QKeySequence
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QAbstractItemView, QApplication, QLabel, QLineEdit, QWidget

from napari_mamamia.core.blinding import ALL_HIDDEN, NOT_BLIND, Blinding
from napari_mamamia.core.edits import Brush, Tool
from napari_mamamia.core.errors import HiddenError
from napari_mamamia.io.workspace.journal import journal_path, read_journal
from napari_mamamia.io.workspace.preferences import load_preferences
from napari_mamamia.io.workspace.provenance import read_provenance, sidecar_path
from napari_mamamia.io.workspace.workspace import Workspace
from napari_mamamia.services.case.data_set import open_data_set
from napari_mamamia.services.case.open_case import load_case
from napari_mamamia.services.refine.edit_case import open_editing, save_editing
from napari_mamamia.services.score.case_tags import tag_case
from napari_mamamia.widgets.base.layers import Role, find_layers, tag_for
from napari_mamamia.widgets.base.notify import Level
from napari_mamamia.widgets.base.session import SessionMask
from napari_mamamia.widgets.dock.steps import PAGES

pytestmark = [pytest.mark.window, pytest.mark.one_window]

BALL = Brush(tool=Tool.SPHERE, radius_mm=4.0)
SECRETS = ("secretnet", "benjamin", "luminal_b", "satellite on the left")
SHAPE = (8, 32, 48)
LESION = (slice(1, 3), slice(14, 20), slice(20, 26))
BEN = (slice(1, 3), slice(15, 22), slice(20, 26))
MODEL = (slice(0, 3), slice(13, 20), slice(20, 27))


def mask_at(place):
    mask = np.zeros(SHAPE, np.uint8)
    mask[place] = 1
    return mask


@pytest.fixture(scope="module")
def given():
    """What the last test with `blind` was given: a data set, and what all was like then."""
    return {}


@pytest.fixture
def world(request, given, dock_of_module):
    """The data set with masks of each kind in sight of whoever is not blind; `blind` has it open.

    It is that of the test before where that left no trace, neither in the window nor in files.
    """
    is_untouched = given and all_of(dock_of_module, given["root"]) == given["all"]
    if "blind" in request.fixturenames and is_untouched:
        return given["root"]
    return add_masks(request.getfixturevalue("small_data_set"))


def all_of(panel, root):
    """Return what a test that leaves a trace changes: in the window, and below the data set."""
    session, header = panel.session, panel.header
    places = (root, root.with_name(f"{root.name}-workspace"))
    return {
        "case": (session.opened and session.opened.data_set.root, session.case_id, session.case),
        "session": (sorted(session.masks), session.blinding, session.reader),
        "mask that is edited": (panel.editing.live, panel.editing.open),
        "protocol": panel.protocols.protocol,
        "layers": [(layer, layer.name, layer.visible) for layer in panel.viewer.layers],
        "place": tuple(panel.viewer.dims.point),
        "views": (panel.planes.layout, panel.planes.panes),
        "header": {one for one in header.findChildren(QWidget) if one.isVisible()}
        - {header.message},
        "files": {
            path: (path.stat().st_size, path.stat().st_mtime_ns)
            for place in places
            for path in place.rglob("*")
        },
    }


def add_masks(small_data_set):
    expert = small_data_set / "segmentations" / "expert"
    like = nib.load(expert / "A_2.nii.gz")
    workspace = small_data_set.with_name(f"{small_data_set.name}-workspace")
    for case_id in ("A_1", "A_2", "B_1"):
        for folder, place in (
            (expert, LESION),
            (workspace / "predictions" / "secretnet", MODEL),
            (workspace / "refined" / "benjamin", BEN),
        ):
            folder.mkdir(parents=True, exist_ok=True)
            # A file has its axes the other way round.
            image = nib.Nifti1Image(mask_at(place).transpose(2, 1, 0), like.affine, like.header)
            nib.save(image, folder / f"{case_id}.nii.gz")
    info = small_data_set / "patient_info_files"
    info.mkdir()
    box = {"x_min": 1, "x_max": 3, "y_min": 14, "y_max": 20, "z_min": 20, "z_max": 26}
    (info / "a_2.json").write_text(json.dumps({"primary_lesion": {"breast_coordinates": box}}))
    table = small_data_set / "clinical_and_imaging_info.csv"
    (small_data_set / "clinical_and_imaging_info.xlsx").unlink()
    table.write_text(
        "patient_id,age,tumor_subtype,dice\n"
        + "".join(f"{one},51,luminal_b,0.4242\n" for one in ("A_1", "A_2", "B_1"))
    )
    tag_case(Workspace(workspace), "benjamin", "A_2", "satellite on the left")
    return small_data_set


@pytest.fixture
def blind(qtbot, request, world, given, dock_of_module):
    """A window on case A_2 in which everything is hidden, read by Ana."""
    panel = dock_of_module
    if given.get("root") != world:
        open_blind(qtbot, request.getfixturevalue("docked"), world)
        given.update(root=world, all=all_of(panel, world), page=panel.page)
    panel.show_page(given["page"])
    panel.cases_page.search.setText("")
    panel.header.say(Level.HINT, "")
    return panel


def open_blind(qtbot, panel, root, blinding=ALL_HIDDEN, case_id="A_2"):
    panel.session.set_blinding(blinding)
    panel.header.reader_name.setText("Ana")
    QTest.keyClick(panel.header.reader_name, Qt.Key.Key_Return)
    panel.session.set_reader("Ana")
    panel.open_data_set(root, case_id)
    wait_open(qtbot, panel, case_id)
    settle(qtbot, panel)
    return panel


def settle(qtbot, panel):
    """Wait until nothing is under way, and a few turns more."""
    qtbot.wait(120)
    qtbot.waitUntil(lambda: panel.jobs.wait(0))
    qtbot.wait(120)


def texts_of(window):
    """Yield every text of a window: on controls, in tooltips, menus and tables."""
    for widget in [window, *window.findChildren(QWidget)]:
        for name in ("text", "toolTip", "title", "windowTitle", "placeholderText", "toPlainText"):
            ask = getattr(widget, name, None)
            if callable(ask):
                yield str(ask())
        # A widget of napari has a table under that name.
        for action in QWidget.actions(widget):
            yield f"{action.text()} {action.toolTip()}"
        if isinstance(widget, QAbstractItemView) and widget.model() is not None:
            yield from cells_of(widget.model())


def cells_of(model: QAbstractItemModel):
    roles = (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole)
    for role in roles:
        is_list = isinstance(model, QAbstractListModel)  # whose columns Qt keeps to itself
        for column in range(1 if is_list else model.columnCount()):
            yield str(model.headerData(column, Qt.Orientation.Horizontal, role))
            for row in range(min(model.rowCount(), 100)):
                yield str(model.index(row, column).data(role))


def leaks(panel):
    """Return whatever of the hidden things can be found in layers, session, texts and tables."""
    found = [f"role {role}" for role in panel.session.masks if role is not Role.REFINED]
    secrets = {"expert": mask_at(LESION), "model": mask_at(MODEL), "benjamin": mask_at(BEN)}
    frame = None if panel.session.case is None else panel.session.case.grid.display_frame()
    for layer in panel.viewer.layers:
        array = np.asarray(layer.data) if not isinstance(layer.data, list) else np.zeros(1)
        for name, mask in secrets.items():
            shown = mask if frame is None else frame.to_display(mask)
            for one in (mask, shown):
                if array.shape == one.shape and np.array_equal(array != 0, one != 0):
                    found.append(f"layer {layer.name}: {name}")
        hidden_roles = (Role.REFERENCE, Role.PREDICTION, Role.AGREEMENT, Role.DOUBT)
        if find_layers([layer], *hidden_roles):
            found.append(f"layer {layer.name}")
    window = panel.viewer.window._qt_window
    said = "\n".join(texts_of(window)).lower()
    found += [word for word in SECRETS if word in said]
    found += ["0.4242"] if "0.4242" in said else []
    status = panel.viewer.status
    found += [word for word in SECRETS if word in str(status).lower()]
    return found


def paint(qtbot, panel, place=(4.0, 8.0, 8.0)):
    """Make the reader's own mask from nothing, if there is none, and paint a ball."""
    if panel.editing.live is None:
        panel.show_page("Refine")
        panel.editing.start(None)
        qtbot.waitUntil(lambda: panel.editing.live is not None)
    panel.editing.mask.press(place, BALL)
    panel.editing.mask.release()


def save(qtbot, panel):
    said = []
    panel.editing.save(said.append)
    qtbot.waitUntil(lambda: said != [])
    assert said == [True]
    return panel.session.workspace.refined("Ana", panel.session.case_id)


def drop(widget, path):
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path))])
    copy, left, keys = (
        Qt.DropAction.CopyAction,
        Qt.MouseButton.LeftButton,
        Qt.KeyboardModifier.NoModifier,
    )
    QApplication.sendEvent(widget, QDragEnterEvent(QPoint(40, 40), copy, data, left, keys))
    QApplication.sendEvent(widget, QDropEvent(QPointF(40, 40), copy, data, left, keys))


# --------------------------------------------------------------------------- opening and cases


def test_a_blind_case_shows_its_images_and_says_in_words_what_is_hidden(qtbot, blind, picture):
    assert leaks(blind) == []
    assert [layer.name for layer in blind.viewer.layers] == ["A_2 phases"]
    assert blind.header.blind.isVisible()
    assert blind.header.blind.text() == ALL_HIDDEN.text
    picture(blind.viewer, "blind-case")


def test_a_blind_case_does_not_open_at_its_lesion(blind):
    """The slice that it opens at would tell where the reference is."""
    z, *_ = blind.scene.view.place_at(tuple(blind.viewer.dims.point))
    assert round(z) == SHAPE[0] // 2


def test_the_breast_box_tells_nothing(blind):
    assert blind.session.case.breast_box is None


def test_the_case_list_has_no_column_of_what_is_hidden(qtbot, blind, picture):
    blind.show_page("Cases")
    assert [action.text() for action in blind.cases_page.columns.menu().actions()] == []
    cells = list(cells_of(blind.cases_page.model))
    assert cells.count("yes") == 0
    assert leaks(blind) == []
    blind.cases_page.search.setText("luminal")
    assert blind.cases_page.queue() == []
    picture(blind.viewer, "blind-cases")


@pytest.mark.parametrize(
    "what", ["data set", pytest.param("folder of masks", marks=pytest.mark.night), "mask"]
)
def test_a_blind_window_stays_with_its_data_set(qtbot, blind, world, tmp_path, what):
    """A folder of masks is a data set, too: the mask would be the image of a case."""
    second = tmp_path / "follow up"
    shutil.copytree(world, second)
    masks = second / "segmentations" / "expert"
    path = {"data set": second, "folder of masks": masks, "mask": masks / "A_2.nii.gz"}[what]
    blind.cases_page.folder_chosen.emit(path)
    settle(qtbot, blind)
    assert blind.session.opened.data_set.root == world
    assert blind.session.case_id == "A_2"
    assert [layer.name for layer in blind.viewer.layers] == ["A_2 phases"]
    if what != "folder of masks":  # which is no data set
        assert "shows only the data set" in blind.header.message.text()


def test_the_next_case_is_blind_too(qtbot, blind):
    blind.cases_flow.open_neighbour(1)
    wait_open(qtbot, blind, "B_1")
    settle(qtbot, blind)
    assert leaks(blind) == []


def test_a_data_set_chosen_by_mistake_can_be_changed_before_a_case_is_open(qtbot, docked, world):
    docked.session.set_blinding(ALL_HIDDEN)
    docked.open_data_set(world)
    qtbot.waitUntil(lambda: docked.session.opened is not None)
    second = world.with_name("follow up")
    shutil.copytree(world, second)
    docked.open_data_set(second, "A_1")
    wait_open(qtbot, docked, "A_1")
    settle(qtbot, docked)
    assert docked.session.opened.data_set.root == second
    assert leaks(docked) == []


def test_another_folder_of_masks_is_blind_too(qtbot, blind, tmp_path):
    other = tmp_path / "other masks"
    shutil.copytree(blind.session.workspace.root, other)
    blind.cases_page.workspace_chosen.emit(other)
    qtbot.waitUntil(lambda: blind.session.workspace.root == other)
    settle(qtbot, blind)
    assert leaks(blind) == []


def test_a_prediction_that_is_written_meanwhile_is_not_shown(qtbot, blind):
    folder = blind.session.workspace.root / "predictions"
    shutil.copytree(folder / "secretnet", folder / "secretnet 2")
    blind.refresh.look()
    settle(qtbot, blind)
    assert leaks(blind) == []
    assert "prediction" not in blind.header.message.text()


# ------------------------------------------------------------------------------- pages and keys


def test_a_row_of_results_does_not_bring_the_masks_that_were_scored(blind):
    with pytest.raises(HiddenError, match="hidden"):
        blind.services.review_masks(blind.session.case, None, None, "secretnet", None)


def test_the_menu_predicts_and_scores_nothing(qtbot, blind, menu_item):
    for item in ("Predict", "Score"):
        found = [a for a in blind.viewer.window.plugins_menu.actions() if item in a.text()]
        for action in found:
            action.trigger()
    blind.predict()
    settle(qtbot, blind)
    assert leaks(blind) == []
    assert Role.PREDICTION not in blind.session.masks


def test_the_tumour_cannot_be_jumped_to_without_an_own_mask(qtbot, blind, control):
    before = tuple(blind.viewer.dims.point)
    control(blind, "header_lesion")
    settle(qtbot, blind)
    assert tuple(blind.viewer.dims.point) == before


def test_no_page_shows_what_is_hidden(qtbot, blind, picture):
    paint(qtbot, blind)
    shut = {"Predict", "Prompt", "Score", "Report", "Batch scoring", "Export"}
    said = blind.findChild(QLabel, "page_shut")
    for page in PAGES:
        blind.show_page(page)
        settle(qtbot, blind)
        assert leaks(blind) == [], page
        assert said.isVisible() == (page in shut), page
        assert blind.pages.shown.isVisible(), page
        if page in shut:
            assert said.text().startswith("Blind: "), page
            assert said.text().endswith("hidden in this reading."), page
        picture(blind.viewer, f"blind-{page}")


VIEWS = {"planes", "two_phases", "hanging_next", "hanging_back", "prior", "cine", "projection"}
"""Keys of views, which show the layers of the main one: two thirds of the time of all keys."""


@pytest.mark.parametrize(
    ("pages", "left_out"),
    [
        (("Refine",), VIEWS),
        pytest.param(("Predict", "Refine", "Score"), set(), marks=pytest.mark.night),
    ],
    ids=["few", "all"],
)
def test_no_key_shows_what_is_hidden(qtbot, blind, pages, left_out):
    """Every key of the table, pressed in the real window, on every page that has keys."""
    paint(qtbot, blind)
    canvas = blind.viewer.window._qt_viewer.canvas.native
    for page in pages:
        blind.show_page(page)
        for key in blind.keys.keys:
            if key.action in {"accept", "next_case", "previous_case", *left_out}:
                continue
            sequence = QKeySequence(key.shown)
            combination = sequence[0] if sequence.count() else None
            if combination is not None:
                QTest.keyClick(canvas, combination.key(), combination.keyboardModifiers())
            qtbot.wait(5)
        settle(qtbot, blind)
        assert leaks(blind) == [], page


def test_errors_cannot_be_stepped_through(qtbot, blind):
    paint(qtbot, blind)
    blind.reviewing.next_error()
    settle(qtbot, blind)
    assert blind.scene.layer(Role.AGREEMENT) is None
    assert blind.header.message.text().startswith("Blind: reference is hidden")


def test_an_own_mask_is_begun_from_nothing_alone(qtbot, blind, picture):
    blind.show_page("Refine")
    settle(qtbot, blind)
    page = blind.refine_page
    assert not page.from_reference.isVisible()
    assert not page.from_prediction.isVisible()
    assert page.from_nothing.isVisible()
    blind.editing.start(Role.REFERENCE)
    qtbot.waitUntil(lambda: blind.editing.live is not None)
    assert not blind.editing.live.labels.any()
    picture(blind.viewer, "blind-refine")


def test_no_number_of_the_own_mask_is_told_while_it_is_painted(qtbot, blind):
    paint(qtbot, blind)
    blind.show_page("Kinetics")
    settle(qtbot, blind)
    blind.show_page("Refine")
    settle(qtbot, blind)
    assert {cell.text() for cell in blind.refine_page.numbers.cells.values()} <= {"", "–"}
    assert blind.refine_page.numbers.title.text() == "Blind"
    assert blind.measure.shown.now is None


def test_numbers_that_the_protocol_allows_are_told_without_the_reference(qtbot, docked, world):
    panel = open_blind(qtbot, docked, world, Blinding.of(["reference", "model", "other readers"]))
    paint(qtbot, panel)
    cells = panel.refine_page.numbers.cells
    qtbot.waitUntil(lambda: cells["volume_mm3", "now"].text() != "–")
    settle(qtbot, panel)
    assert {cells["dice", column].text() for column in ("start", "now", "reference")} <= {"", "–"}
    assert {cells[name, "reference"].text() for name in ("volume_mm3", "longest_mm")} <= {"", "–"}


def test_compare_with_start_shows_the_readers_own_start_alone(qtbot, blind):
    paint(qtbot, blind)
    blind.refine_flow.compare(True)
    blind.refine_flow.show_changes(True)
    settle(qtbot, blind)
    assert leaks(blind) == []


# --------------------------------------------------------------------------------- other doors


@pytest.mark.parametrize(
    "files",
    [("expert", "array"), pytest.param(("model", "reader", "case"), marks=pytest.mark.night)],
    ids=["two", "others"],
)
def test_a_file_opened_by_napari_is_taken_out_again(qtbot, blind, world, picture, files):
    root, workspace = world, blind.session.workspace.root
    array = root / "reference.npy"
    np.save(array, mask_at(LESION))
    ours, name = "napari-mamamia", "A_2.nii.gz"
    ways = {
        "expert": (root / "segmentations" / "expert" / name, ours),
        "model": (workspace / "predictions" / "secretnet" / name, ours),
        "reader": (workspace / "refined" / "benjamin" / name, ours),
        "array": (array, "napari"),
        "case": (root / "images" / "A_2" / "A_2_0001.nii.gz", ours),
    }
    for what in files:
        path, plugin = ways[what]
        blind.header.say(Level.HINT, "")
        blind.viewer.open(str(path), plugin=plugin)
        # In this very turn, before anything is drawn.
        assert leaks(blind) == [], what
        settle(qtbot, blind)
        assert leaks(blind) == [], what
        assert [layer.name for layer in blind.viewer.layers] == ["A_2 phases"], what
        assert blind.header.message.text().startswith("Blinded reading: this window shows only"), (
            what
        )
        picture(blind.viewer, f"blind-opened-{what}")


def test_a_mask_dropped_on_the_image_or_the_dock_is_not_shown(qtbot, blind, world):
    mask = world / "segmentations" / "expert" / "A_2.nii.gz"
    native = blind.viewer.window._qt_viewer.canvas.native
    drop(native, mask)
    assert blind.header.message.text().startswith("Blinded reading: this window shows only")
    settle(qtbot, blind)
    assert leaks(blind) == []
    drop(blind, mask)
    settle(qtbot, blind)
    assert leaks(blind) == []
    assert [layer.name for layer in blind.viewer.layers] == ["A_2 phases"]


def test_a_folder_of_masks_dropped_on_the_dock_is_no_way_in(qtbot, blind, world):
    drop(blind, world / "segmentations" / "expert")
    settle(qtbot, blind)
    assert blind.session.opened.data_set.root == world
    assert [layer.name for layer in blind.viewer.layers] == ["A_2 phases"]


def test_a_layer_that_another_plugin_or_the_console_adds_is_taken_out(qtbot, blind):
    blind.viewer.add_labels(mask_at(LESION), name="secretnet")
    assert leaks(blind) == []
    blind.viewer.add_image(mask_at(LESION).astype(float), name="secretnet")
    assert leaks(blind) == []
    tag = tag_for(blind.session.case, Role.REFERENCE)
    blind.viewer.add_labels(mask_at(LESION), metadata={"napari_mamamia": tag})
    assert leaks(blind) == []
    settle(qtbot, blind)
    assert [layer.name for layer in blind.viewer.layers] == ["A_2 phases"]


def test_sample_data_bring_no_reference_into_a_blind_window(qtbot, blind):
    blind.viewer.open_sample("napari-mamamia", "axial")
    settle(qtbot, blind)
    assert [layer.name for layer in blind.viewer.layers] == ["A_2 phases"]
    assert blind.session.case_id == "A_2"


def test_no_layer_of_a_hidden_role_is_made_by_whoever_tries(blind):
    case, mask = blind.session.case, mask_at(LESION)
    for role in (Role.REFERENCE, Role.PREDICTION):
        with pytest.raises(HiddenError, match=f"{'reference' if 'ref' in role else 'model'} is"):
            blind.scene.show_mask(tag_for(case, role), mask)
        with pytest.raises(HiddenError):
            blind.session.set_mask(SessionMask(role, "x", mask))
    with pytest.raises(HiddenError):
        blind.scene.overlays.show_agreement(tag_for(case, Role.AGREEMENT), mask)
    with pytest.raises(HiddenError):
        blind.scene.overlays.show_uncertainty(
            tag_for(case, Role.DOUBT), mask.astype(float), "x", 1.0
        )
    assert leaks(blind) == []


def test_a_dicom_study_with_a_segmentation_is_not_looked_into(blind, world):
    for name in ("look", "preview", "part_picture", "run"):
        with pytest.raises(HiddenError, match="reference is hidden"):
            getattr(blind.services.imports, name)(world)


def test_layers_that_were_there_before_go_when_a_blind_reading_begins(qtbot, docked):
    docked.viewer.add_labels(mask_at(LESION), name="secretnet")
    docked.session.set_blinding(ALL_HIDDEN)
    assert leaks(docked) == []
    settle(qtbot, docked)
    assert list(docked.viewer.layers) == []


# -------------------------------------------------------------------------------- other readers


def test_the_name_that_the_last_reader_left_is_not_taken(qtbot, docked, world):
    docked.session.set_reader("benjamin")
    docked.header.set_reader("benjamin")
    docked.session.set_blinding(ALL_HIDDEN)
    assert docked.session.reader is None
    assert docked.header.reader_name.isVisible()
    docked.open_data_set(world, "A_2")
    wait_open(qtbot, docked, "A_2")
    settle(qtbot, docked)
    assert Role.REFINED not in docked.session.masks
    assert set(docked.session.workspace.readers()) == set()


def test_another_readers_mask_is_not_seen_by_taking_that_readers_name(qtbot, blind, control):
    for name in ("benjamin", "Benjamin"):
        control(blind, "header_reader")
        blind.header.reader_given.emit(name)
        settle(qtbot, blind)
        assert blind.session.reader == "Ana"
        assert blind.session.mask(Role.REFINED) is None
        assert leaks(blind) == []
    assert "open another window" in blind.header.message.text()


def test_a_reader_named_after_the_data_set_was_opened_sees_own_masks_alone(qtbot, docked, world):
    docked.session.set_blinding(ALL_HIDDEN)
    docked.open_data_set(world, "A_2")
    wait_open(qtbot, docked, "A_2")
    workspace = docked.session.workspace.root
    (workspace / "refined" / "Ana").mkdir()
    own = workspace / "refined" / "benjamin" / "B_1.nii.gz"
    shutil.copy(own, workspace / "refined" / "Ana" / "B_1.nii.gz")
    docked.header.reader_name.setText("Ana")
    QTest.keyClick(docked.header.reader_name, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: docked.session.reader == "Ana")
    qtbot.waitUntil(lambda: "Ana" in list(cells_of(docked.cases_page.model)))
    settle(qtbot, docked)
    assert leaks(docked) == []


# ------------------------------------------------------------------ recorded, and own work before


def test_what_was_hidden_is_in_the_provenance_and_the_journal_of_the_saved_mask(qtbot, blind):
    paint(qtbot, blind)
    mask = save(qtbot, blind)
    said = dict(read_provenance(sidecar_path(mask)).parameters)
    assert said["hidden"] == ", ".join(ALL_HIDDEN.names)
    assert "unblinded" not in said
    assert read_journal(journal_path(mask)).records[0].record.blinding == ALL_HIDDEN


def sighted_work(world, case_id="A_2", saved=True):
    """Leave a mask of Ana's that she made with everything in sight."""
    opened = open_data_set(world)
    case = load_case(opened.data_set.case(case_id))
    editing = open_editing(case, opened.workspace, "Ana")
    editing.session.press((2.0, 16.0, 22.0), BALL)
    editing.session.release()
    if saved:
        save_editing(editing)
    editing.close()
    return opened.workspace.refined("Ana", case_id)


@pytest.mark.parametrize("saved", [pytest.param(True, marks=pytest.mark.night), False])
def test_own_work_of_before_the_blind_reading_is_not_shown(qtbot, docked, world, saved, picture):
    """A mask that began as the prediction, or what a crash left of it, would show it."""
    mask = sighted_work(world, saved=saved)
    before = {path: path.read_bytes() for path in mask.parent.iterdir()}
    open_blind(qtbot, docked, world)
    assert Role.REFINED not in docked.session.masks
    assert docked.scene.layer(Role.REFINED) is None
    assert docked.editing.live is None
    assert "read under a different name" in docked.header.message.text()
    docked.editing.start(None)
    settle(qtbot, docked)
    assert docked.editing.live is None
    assert {path: path.read_bytes() for path in mask.parent.iterdir()} == before
    picture(docked.viewer, f"blind-own-mask-seen-{saved}")


def test_blind_work_that_a_crash_left_is_offered_and_stays_blind(qtbot, docked, world):
    opened = open_data_set(world, blinding=ALL_HIDDEN, reader="Ana")
    editing = open_editing(load_case(opened.data_set.case("A_2")), opened.workspace, "Ana")
    editing.session.press((4.0, 8.0, 8.0), BALL)
    editing.session.release()
    editing.close()
    open_blind(qtbot, docked, world)
    qtbot.waitUntil(lambda: docked.editing.live is not None)
    assert docked.editing.open.recovered is not None
    docked.editing.take_over(True)
    mask = save(qtbot, docked)
    said = dict(read_provenance(sidecar_path(mask)).parameters)
    assert said["hidden"] == ", ".join(ALL_HIDDEN.names)


# ---------------------------------------------------------------------------------- the protocol


def write_protocol(folder, **content):
    path = folder / f"protocol-{len(list(folder.iterdir()))}.json"
    path.write_text(json.dumps({"name": "Study 1", **content}))
    return path


def test_a_protocol_makes_the_window_blind_before_a_data_set_is_opened(
    qtbot, docked, world, tmp_path, control
):
    docked.protocols.choose_file = lambda: write_protocol(tmp_path, blind=True)
    docked.show_page("Cases")
    control(docked, "cases_protocol")
    assert docked.header.blind.text() == ALL_HIDDEN.text
    docked.session.set_reader("Ana")
    docked.open_data_set(world, "A_2")
    wait_open(qtbot, docked, "A_2")
    paint(qtbot, docked)
    said = dict(read_provenance(sidecar_path(save(qtbot, docked))).parameters)
    assert said["protocol"] == "Study 1"
    assert said["hidden"] == ", ".join(ALL_HIDDEN.names)


@pytest.mark.parametrize("blind_now", [pytest.param(False, marks=pytest.mark.night), ["model"]])
def test_no_protocol_takes_the_blinding_away(qtbot, blind, tmp_path, blind_now):
    assert blind.protocols.load(write_protocol(tmp_path, blind=blind_now))
    assert blind.session.blinding == ALL_HIDDEN
    assert leaks(blind) == []


# What follows shows hidden things in the window that all tests share: it comes last.

# ------------------------------------------------------------------------------------- the end


def end_reading(panel, control):
    control(panel, "header_unblind")
    control(panel, "header_unblind_confirm")


def test_a_blind_reading_ends_only_when_asked_twice(qtbot, blind, control, picture):
    control(blind, "header_unblind")
    picture(blind.viewer, "blind-end-asked")
    control(blind, "header_unblind_keep")
    settle(qtbot, blind)
    assert blind.session.blinding == ALL_HIDDEN
    assert leaks(blind) == []


@pytest.mark.parametrize("begun", [True, pytest.param(False, marks=pytest.mark.night)])
def test_the_end_of_a_blind_reading_is_recorded_and_then_all_is_shown(
    qtbot, blind, control, picture, begun
):
    if begun:
        paint(qtbot, blind)
    end_reading(blind, control)
    qtbot.waitUntil(lambda: blind.session.blinding == NOT_BLIND)
    qtbot.waitUntil(lambda: blind.scene.layer(Role.REFERENCE) is not None)
    wait_open(qtbot, blind, "A_2")
    settle(qtbot, blind)
    assert not blind.header.blind.isVisible()
    path = journal_path(blind.session.workspace.refined("Ana", "A_2"))
    openings = [one.record for one in read_journal(path).records if hasattr(one.record, "blinding")]
    assert [one.blinding for one in openings][:2] == [ALL_HIDDEN, NOT_BLIND]
    paint(qtbot, blind, (5.0, 9.0, 9.0))
    said = dict(read_provenance(sidecar_path(save(qtbot, blind))).parameters)
    assert "hidden" not in said
    assert said["unblinded"].endswith("clinical data shown")
    picture(blind.viewer, f"blind-ended-{begun}")


def test_a_blind_reading_does_not_end_where_that_cannot_be_recorded(qtbot, blind, control):
    def refuse(*_):
        raise OSError("the disk is full")

    paint(qtbot, blind)
    save(qtbot, blind)
    blind.services.__dict__["record_unblinding"] = refuse
    end_reading(blind, control)
    settle(qtbot, blind)
    wait_open(qtbot, blind, "A_2")
    settle(qtbot, blind)
    del blind.services.__dict__["record_unblinding"]
    assert blind.session.blinding == ALL_HIDDEN
    assert leaks(blind) == []
    qtbot.waitUntil(lambda: blind.editing.live is not None)
    assert blind.editing.live.labels.any()


def test_the_end_asks_for_a_name_first(qtbot, docked, world, control):
    docked.session.set_blinding(ALL_HIDDEN)
    docked.open_data_set(world, "A_2")
    wait_open(qtbot, docked, "A_2")
    end_reading(docked, control)
    settle(qtbot, docked)
    assert docked.session.blinding == ALL_HIDDEN
    assert docked.findChild(QLineEdit, "header_reader_name").isVisible()
    assert leaks(docked) == []


def test_a_blind_window_leaves_no_trace_in_the_preferences_that_ends_it(qtbot, docked, world):
    """Nothing is remembered that would make the next window believe it were blind, or not."""
    open_blind(qtbot, docked, world)
    assert "blind" not in json.dumps(load_preferences().view)


def test_a_blind_protocol_is_refused_once_a_case_was_open(qtbot, docked, world, tmp_path):
    docked.session.set_reader("Ana")
    docked.open_data_set(world, "A_2")
    wait_open(qtbot, docked, "A_2")
    assert not docked.protocols.load(write_protocol(tmp_path, blind=True))
    assert docked.session.blinding == NOT_BLIND
    assert docked.protocols.protocol is None
    assert "mamamia view DATA --protocol FILE" in docked.header.message.text()


# --------------------------------------------------------------------------------- the measure


def test_the_search_for_leaks_finds_each_of_them_where_nothing_is_hidden(qtbot, docked, world):
    docked.session.set_reader("Ana")
    docked.open_data_set(world, "A_2")
    wait_open(qtbot, docked, "A_2")
    qtbot.waitUntil(lambda: Role.PREDICTION in docked.session.masks)
    qtbot.waitUntil(lambda: docked.scene.layer(Role.PREDICTION) is not None)
    docked.show_page("Cases")
    for action in docked.cases_page.columns.menu().actions():
        action.setChecked(True)
    docked.show_page("Score")
    settle(qtbot, docked)
    found = leaks(docked)
    for what in (
        "role reference",
        "role prediction",
        "secretnet",
        "benjamin",
        "luminal_b",
        "0.4242",
    ):
        assert what in found, what
    assert any(one.endswith("reference: expert") for one in found)
    assert any(one.endswith("prediction: model") for one in found)
    assert SECRETS[3] in found


@pytest.mark.night
def test_a_prediction_that_the_protocol_allows_is_shown_without_the_reference(qtbot, docked, world):
    panel = open_blind(qtbot, docked, world, Blinding.of(["reference", "other readers"]))
    qtbot.waitUntil(lambda: panel.scene.layer(Role.PREDICTION) is not None)
    found = leaks(panel)
    assert "role prediction" in found
    assert not any("expert" in one or "benjamin" in one for one in found)
