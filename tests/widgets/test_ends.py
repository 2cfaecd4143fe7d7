"""Both ends of what has a first and a last: ranges of sliders, buttons at the ends of a list."""

import numpy as np
import pytest
from qtpy.QtWidgets import QAbstractSlider, QAbstractSpinBox, QPushButton, QScrollBar, QSlider
from tests.widgets.test_case_line import PLAN

from napari_mamamia.core.box import Box
from napari_mamamia.segmentation.model.postprocess import PostKind
from napari_mamamia.services.case.hanging import HangingPlan, HangingStep
from napari_mamamia.services.predict.uncertainty import UncertainRegion, Uncertainty
from napari_mamamia.widgets.hanging.bar import HangingBar
from napari_mamamia.widgets.predict.model_cards import ModelLine, ModelList
from napari_mamamia.widgets.predict.recipe_flow import StepList
from napari_mamamia.widgets.predict.uncertainty_list import UncertaintyList
from napari_mamamia.widgets.score.tags_line import TagsLine

PAGES = ("View", "Findings", "Kinetics", "Predict", "Refine", "Score", "Report", "Export")
RANGES = {
    "export_channels": (0, 99),  # nnU-Net numbers channels by two digits or more
    "kinetics_floor": (0, 200),
    "kinetics_ftv_background": (10, 100),
    "kinetics_ftv_enhancement": (10, 150),
    "kinetics_ftv_neighbours": (0, 26),  # a voxel has 26 neighbours
    "kinetics_ftv_ser": (0, 200),  # hundredths
    "predict_limit": (1, 86_400),  # a day in seconds
    "refine_grow_reach": (5.0, 150.0),
    "refine_margin_mm": (-20.0, 20.0),
    "refine_radius": (1, 80),  # halves of a mm: 0.5 to 40 mm
    "refine_small_mm3": (1.0, 5000.0),
    "refine_smooth_mm": (0.5, 5.0),
    "view_slab": (0, 60),
}


def test_sliders_and_numbers_have_these_ends(opened):
    for page in PAGES:
        opened.show_page(page)
    widgets = (*opened.findChildren(QAbstractSlider), *opened.findChildren(QAbstractSpinBox))
    found = {w.objectName(): w for w in widgets if not isinstance(w, QScrollBar)}
    ranges = {name: (w.minimum(), w.maximum()) for name, w in found.items()}
    assert {name: ends for name, ends in ranges.items() if not name.startswith("batch_")} == RANGES


@pytest.mark.parametrize("name", [name for name in RANGES if name.startswith("kinetics_ftv")])
def test_ftv_is_counted_with_both_ends_of_each_slider(opened, name):
    opened.show_page("Kinetics")
    slider, settings = opened.findChild(QSlider, name), []
    opened.kinetics_page.ftv.settings_changed.connect(settings.append)
    shares = {"background": 100, "ser": 100}  # the slider counts hundredths
    field = name.removeprefix("kinetics_ftv_")
    for value in RANGES[name]:
        slider.setValue(slider.maximum() - slider.minimum())
        slider.setValue(value)
        assert getattr(settings[-1], field) == value / shares.get(field, 1)


def test_the_bar_goes_no_further_than_its_first_and_its_last_step(qtbot):
    bar = HangingBar()
    qtbot.addWidget(bar)
    for step in (None, *HangingStep):
        bar.show_step(PLAN, step, frozenset())
        assert bar.back.isEnabled() == (step is not None)
        assert bar.next.isEnabled() == (step is not PLAN.steps[-1])
    bar.show_step(HangingPlan((), (), PLAN.roles), None, frozenset())
    assert not bar.next.isEnabled()


@pytest.mark.parametrize("count", range(4))
def test_undo_and_redo_end_at_the_start_and_at_the_last_step(qtbot, opened, count):
    opened.show_page("Refine")
    opened.refine_page.from_nothing.click()
    qtbot.waitUntil(lambda: opened.editing.live is not None)
    history, mask = opened.refine_page.history, opened.editing.mask
    for step in range(count):
        mask.apply("write", Box((0, 0, step), (1, 1, step + 1)), np.ones((1, 1, 1), bool))
    for position in (*range(count, 0, -1), *range(count), count):
        mask.go_to(position)
        qtbot.waitUntil(lambda at=position: opened.editing.live.position == at)
        assert history.undo.isEnabled() == (position > 0)
        assert history.redo.isEnabled() == (position < count)


def test_a_step_moves_no_further_than_the_first_and_the_last_place(qtbot):
    steps = StepList()
    qtbot.addWidget(steps)
    kinds = tuple(PostKind)[:3]
    for kind in kinds:
        steps.kind.setCurrentIndex(steps.kind.findData(kind))
        steps.add.click()
    for place in range(3):
        steps.list.setCurrentRow(place)
        assert (steps.up.isEnabled(), steps.down.isEnabled()) == (place > 0, place < 2)
    assert steps.remove.isEnabled()
    steps.list.setCurrentRow(-1)
    assert not any(part.isEnabled() for part in (steps.up, steps.down, steps.remove))


def test_a_tag_of_the_last_case_is_not_checked_in_the_next(qtbot):
    line = TagsLine()
    qtbot.addWidget(line)
    line.show_tags(("artefact",), "Ana")
    line.show_tags(("implant",), "Ana")
    chips = line.findChildren(QPushButton)
    assert [chip.text() for chip in chips if chip.isChecked()] == ["implant"]


def test_the_built_in_model_cannot_be_removed(qtbot):
    models = ModelList()
    qtbot.addWidget(models)
    models.show_models([ModelLine("kinetic", "Kinetic", ""), ModelLine("net", "Net", "")], ())
    assert not models.forget.isEnabled()
    models.choose("net")
    assert models.forget.isEnabled()
    models.choose("kinetic")
    assert not models.forget.isEnabled()


def test_uncertain_regions_go_round_at_both_ends(qtbot):
    regions = UncertaintyList()
    qtbot.addWidget(regions)
    places = tuple(UncertainRegion((0, 0, k), 1.0, 0.5, 1.0) for k in range(3))
    regions.show_uncertainty(Uncertainty(np.zeros((1, 1, 3), np.float16), places, 3))
    regions.previous()
    assert regions.list.currentRow() == 2
    regions.next()
    assert regions.list.currentRow() == 0
    regions.previous()
    assert regions.list.currentRow() == 2
