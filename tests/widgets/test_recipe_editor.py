"""The editor of a model's recipe, with services that keep nothing."""

from dataclasses import replace
from pathlib import Path

import pytest
from qtpy.QtWidgets import QAbstractButton, QComboBox, QLineEdit, QWidget

from napari_mamamia.core.errors import SaveConflictError, SaveError
from napari_mamamia.core.progress import report_progress
from napari_mamamia.segmentation.model.card import ModelCard
from napari_mamamia.segmentation.model.kinds import ModelKind
from napari_mamamia.segmentation.model.network_spec import NetworkSpec
from napari_mamamia.segmentation.model.postprocess import PostKind, PostStep
from napari_mamamia.segmentation.model.recipe import (
    Normalise,
    Recipe,
    RegionKind,
    Scope,
    preset,
    presets,
)
from napari_mamamia.segmentation.run.registry import ModelEntry
from napari_mamamia.services.predict.model_recipes import RecipeSetting
from napari_mamamia.widgets.predict.recipe_flow import RecipeDialog, RecipeForm

CARD = ModelCard(
    Path("model"),
    ModelKind.NNUNET,
    "baseline",
    folds=("0", "1"),
    checkpoints=("checkpoint_final.pth", "checkpoint_best.pth"),
    channels=("DCE_pre", "DCE_post"),
    labels=(("tumour", (1,)),),
)
FULL = Recipe(
    "Everything",
    channels=("p1-p0", "last_post"),
    whole_numbers=True,
    normalise=Normalise(Scope.PRE, (0.5, 99.5), nonzero=True),
    spacing_mm=(2.0, 1.0, 0.8),
    region=RegionKind.TILES,
    margin_mm=12.5,
    post=(PostStep(PostKind.BREAST_BOX), PostStep(PostKind.MINIMUM, 60.0)),
    folds=("1",),
    checkpoint="checkpoint_best.pth",
    step=0.75,
    mirroring=False,
    accept_trainer=True,
    tumour_labels=(1, 3),
)
"""Every field set to something else than its default."""


def setting_of(recipe=None, own=None, problem=""):
    entry = ModelEntry("baseline", CARD, recipe=recipe)
    shown = recipe or own or Recipe()
    return RecipeSetting(entry, shown, own or Recipe(), presets(), Path("there.json"), problem)


@pytest.fixture
def form(qtbot):
    made = RecipeForm(CARD, Recipe())
    qtbot.addWidget(made)
    return made


@pytest.fixture
def dialog(qtbot):
    """An editor that answers "stay" to every question, and counts them."""
    asked = []

    def ask(_parent):
        asked.append(True)
        return dialog.answer

    dialog = RecipeDialog(setting_of(), ask=ask)
    dialog.answer, dialog.asked = "stay", asked
    qtbot.addWidget(dialog)
    dialog.show()
    return dialog


def test_every_field_of_a_recipe_comes_back_as_it_was(form):
    form.show_recipe(FULL)
    assert form.recipe() == FULL
    form.show_recipe(Recipe())
    assert form.recipe() == Recipe()


@pytest.mark.parametrize("name", [name for name, _ in presets()])
def test_a_preset_comes_back_as_it_was(qtbot, name):
    wanted = preset(name)
    names = tuple(f"c{k}" for k in range(len(wanted.channels) or 2))
    made = RecipeForm(replace(CARD, channels=names), wanted)
    qtbot.addWidget(made)
    assert made.recipe() == wanted


def test_what_the_form_does_not_know_of_a_recipe_is_kept(qtbot):
    network = NetworkSpec(channels=("a", "b"), labels=(("tumour", 1),), patch=(16, 16, 16))
    given = Recipe("Given", region=RegionKind.CROP, network=network)
    made = RecipeForm(replace(CARD, folds=(), checkpoints=()), given)
    qtbot.addWidget(made)
    made.title.setText("Another")
    assert made.recipe() == replace(given, title="Another")


def test_a_wrong_channel_is_refused_beside_its_field_at_once(form):
    form.show()
    form.channels.combos[1].setCurrentText("p1+p0")
    assert "it is 'p1+p0'" in form.channels.said.text()
    assert form.channels.said.isVisible()
    form.channels.combos[1].setCurrentText("p1 - p0")
    assert not form.channels.said.isVisible()
    assert form.recipe().channels == ("p0", "p1-p0")


def test_percentiles_in_the_wrong_order_are_refused(form):
    field = form.normalise
    field.scope.setCurrentIndex(field.scope.findData(Scope.ALL))
    field.clipped.setChecked(True)
    field.low.setValue(60)
    field.high.setValue(40)
    assert "the lower one first, but got 60.0 and 40.0" in field.said.text()
    field.clipped.setChecked(False)
    assert field.problem == ""
    assert form.recipe().normalise == Normalise(Scope.ALL)


def test_a_spacing_of_nothing_is_refused(form):
    form.spacing.on.setChecked(True)
    form.spacing.parts[0].setValue(0.0)
    assert "0.05 to 50 mm" in form.spacing.said.text()


def test_labels_that_are_no_numbers_are_refused(form):
    form.labels.setText("1, two")
    assert "whole numbers" in form.said.text()
    form.labels.setText("1, 2")
    assert form.recipe().tumour_labels == (1, 2)


def test_steps_are_added_moved_and_removed_and_a_refused_order_says_why(form):
    steps = form.steps
    for kind in (PostKind.LARGEST, PostKind.BREAST_BOX):
        steps.kind.setCurrentIndex(steps.kind.findData(kind))
        steps.add.click()
    assert "to come after the step breast" in steps.said.text()
    steps.up.click()
    assert steps.said.text() == ""
    assert form.recipe().post == (PostStep(PostKind.BREAST_BOX), PostStep(PostKind.LARGEST))
    steps.remove.click()
    assert [step.kind for step in steps.steps] == [PostKind.LARGEST]


def test_a_step_has_its_value_in_its_unit(form):
    steps = form.steps
    steps.kind.setCurrentIndex(steps.kind.findData(PostKind.CLOSE))
    steps.add.click()
    assert steps.value.suffix() == " mm"
    steps.value.setValue(3.5)
    assert form.recipe().post == (PostStep(PostKind.CLOSE, 3.5),)
    assert "closing 3.5 mm" in steps.list.item(0).text()
    steps.kind.setCurrentIndex(steps.kind.findData(PostKind.FILL))
    steps.add.click()
    assert not steps.value.isEnabled()


def test_folds_that_the_model_has_not_are_named_so(qtbot):
    made = RecipeForm(CARD, replace(FULL, folds=("0", "4")))
    qtbot.addWidget(made)
    assert made.folds["4"].text() == "4 (missing)"
    assert made.recipe().folds == ("0", "4")


def test_save_gives_the_recipe_only_while_nothing_is_refused(dialog):
    got = []
    dialog.save_wanted.connect(got.append)
    dialog.form.channels.combos[0].setCurrentText("nonsense")
    assert not dialog.save.isEnabled()
    dialog.form.channels.combos[0].setCurrentText("p2")
    dialog.save.click()
    assert got == [Recipe(channels=("p2", "p1"))]


def test_closing_asks_only_where_something_would_be_lost(dialog):
    dialog.form.title.setText("Mine")
    dialog.cancel.click()
    assert dialog.asked == [True]
    assert dialog.isVisible()
    dialog.answer = "drop"
    dialog.close()
    assert not dialog.isVisible()


def test_closing_an_unchanged_recipe_asks_nothing(dialog):
    dialog.cancel.click()
    assert dialog.asked == []
    assert not dialog.isVisible()


def test_a_preset_with_another_number_of_channels_says_so(dialog):
    place = next(k for k in range(dialog.start.count()) if dialog.start.itemText(k)[:3] == "fme")
    dialog.start.setCurrentIndex(place)
    dialog.start.activated.emit(place)
    assert "makes 1 channel (p1-p0), but the model has 2" in dialog.said.text()
    assert "the folds 2, 3, 4, which the model does not have" in dialog.said.text()
    assert dialog.form.recipe().folds == ("0", "1")
    assert dialog.form.recipe().channels == ("p1-p0", "p1")
    assert dialog.form.recipe().mirroring is True


def test_a_place_that_cannot_be_written_to_is_said_on_its_button(qtbot):
    made = RecipeDialog(setting_of(problem="a zip is not written to: unpack it"))
    qtbot.addWidget(made)
    assert not made.beside.isEnabled()
    assert "a zip is not written to" in made.beside.toolTip()


def test_a_recipe_beside_the_model_is_replaced_only_after_a_second_click(dialog):
    got = []
    dialog.beside_wanted.connect(lambda recipe, replacing: got.append(replacing))
    dialog.beside.click()
    assert not dialog.replace_there.isVisible()
    dialog.offer_replacing("there is one")
    dialog.replace_there.click()
    assert got == [False, True]
    dialog.form.title.setText("Other")
    assert not dialog.replace_there.isVisible()


@pytest.mark.usefixtures("dressed")
def test_every_field_has_a_name_and_a_tooltip_and_nothing_is_cut(qtbot, dialog):
    kinds = (QAbstractButton, QComboBox, QLineEdit)
    controls = [one for kind in kinds for one in dialog.findChildren(kind)]
    controls = [one for one in controls if not isinstance(one.parent(), QLineEdit)]
    assert [type(one).__name__ for one in controls if not one.objectName()] == []
    assert [one.objectName() for one in controls if not one.toolTip()] == []
    qtbot.wait(10)
    assert dialog.form.minimumSizeHint().width() <= dialog.area.viewport().width()


# ------------------------------------------------------------------------------ on the page


@pytest.fixture
def page(qtbot, viewer, world):
    """The page with one added model chosen; `saved` holds what was kept."""
    from napari_mamamia.services.predict.model_choice import planned
    from napari_mamamia.widgets.base.service_record import PredictServices
    from napari_mamamia.widgets.dock.dock import MamamiaDock

    entry = ModelEntry("baseline", CARD)
    saved = {"error": None, "kept": []}

    def keep(entry, recipe):
        report_progress(0, 1)
        saved["kept"].append(recipe)
        return replace(entry, recipe=recipe)

    def beside(entry, recipe, *, overwrite=False):
        report_progress(0, 1)
        if saved["error"] is not None and not overwrite:
            raise saved["error"]
        saved["kept"].append((recipe, overwrite))
        return entry

    calls = PredictServices(
        open_recipe=lambda entry, chosen: setting_of(entry.recipe),
        keep_recipe=keep,
        write_beside=beside,
    )
    services = world.services().replacing(
        listed_models=lambda: (entry,),
        planned=planned,
        estimate_case=no_estimate,
        why_not_here=lambda _: "",
        predict=calls,
    )
    dock = MamamiaDock(viewer, services)
    qtbot.addWidget(dock)
    dock.resize(360, 900)
    dock.show()
    dock.open_data_set(Path("data"), "A_1")
    qtbot.waitUntil(lambda: dock.session.case is not None and dock.session.case.is_loaded)
    dock.show_page("Predict")
    found = dock.predict_page
    qtbot.waitUntil(lambda: found.models.list.count() == 2)
    found.models.choose("baseline")
    found.saved = saved
    yield found
    dock.close_down()


def no_estimate(segmenter, case, *, measure=False):
    report_progress(0, 1)
    raise SaveError("nothing is estimated here")


def opened_editor(qtbot, page):
    page.options.edit.click()
    flow = page.window().predict_flow.recipes
    qtbot.waitUntil(lambda: flow.dialog is not None)
    return flow.dialog


def test_an_edited_recipe_changes_the_inputs_and_is_called_edited(qtbot, page):
    assert page.options.recipe.currentText() == "own"
    editor = opened_editor(qtbot, page)
    editor.form.channels.combos[1].setCurrentText("p1-p0")
    editor.save.click()
    flow = page.window().predict_flow.recipes
    qtbot.waitUntil(lambda: flow.dialog is None)
    assert page.saved["kept"] == [Recipe(channels=("p0", "p1-p0"))]
    assert page.options.recipe.currentText() == "own (edited)"
    assert page.card.inputs.texts[1] == "channel 1 DCE_post ← post 1 - pre"
    qtbot.waitUntil(lambda: page.card.inputs.has_pictures)


def test_a_recipe_that_is_there_already_is_offered_to_be_replaced(qtbot, page):
    page.saved["error"] = SaveConflictError("there is a recipe: choose another name")
    editor = opened_editor(qtbot, page)
    editor.form.title.setText("Mine")
    editor.beside.click()
    qtbot.waitUntil(lambda: editor.replace_there.isVisible())
    assert "there is a recipe" in editor.said.text()
    editor.replace_there.click()
    qtbot.waitUntil(lambda: page.window().predict_flow.recipes.dialog is None)
    assert page.saved["kept"] == [(Recipe(title="Mine"), True)]


def test_a_place_that_turns_out_read_only_is_told_and_the_editor_stays(qtbot, page):
    page.saved["error"] = SaveError("cannot write there.json (read-only): choose another place")
    editor = opened_editor(qtbot, page)
    editor.beside.click()
    qtbot.waitUntil(lambda: "read-only" in editor.said.text())
    assert editor.isVisible()
    editor.cancel.click()


def test_the_weight_free_model_has_no_recipe_to_edit(page):
    page.models.choose("kinetic")
    assert not page.options.isVisible()
    assert isinstance(page.options.edit, QWidget)
    page.options.edit_wanted.emit()
    assert page.window().predict_flow.recipes.dialog is None
