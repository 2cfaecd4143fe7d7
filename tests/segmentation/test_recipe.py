"""Recipes: channels, normalising, cropping, resampling worked out by hand; JSON; presets."""

import json

import numpy as np
import pytest

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import Case, Phase
from napari_mamamia.core.errors import CaseError, ModelError
from napari_mamamia.core.grid import Grid
from napari_mamamia.segmentation.model.engine_settings import EngineSettings
from napari_mamamia.segmentation.model.postprocess import BreastArea, PostKind, PostStep
from napari_mamamia.segmentation.model.recipe import (
    Normalise,
    Recipe,
    RegionKind,
    Scope,
    channels_recipe,
    preset,
    presets,
    read_recipe,
    recipe_from,
    recipe_text,
    write_recipe,
)
from napari_mamamia.segmentation.model.recipe_input import (
    channel_names,
    labels_on_case,
    model_input,
    phase_order_warning,
)

GRID = Grid((4, 6, 8), np.diag([-1.0, -1.0, 2.0, 1.0]))


def case_of(*levels, times=None):
    """Return a case whose phases are ramps along x plus a level."""
    ramp = np.broadcast_to(np.arange(8), GRID.shape)
    signal = np.stack([ramp + level for level in levels]).astype(np.int16)
    times = times or [None] * len(levels)
    return Case("HAND", GRID, signal, tuple(Phase(k, t) for k, t in enumerate(times)))


def made(case, recipe, channels=1, **more):
    return model_input(case, recipe, channels, **more)


def test_without_a_recipe_channel_k_is_phase_k():
    assert channel_names(Recipe(), 3) == ("p0", "p1", "p2")
    arrays = made(case_of(10, 50, 40), Recipe(), 3).arrays
    assert [int(array[0, 0, 0]) for array in arrays] == [10, 50, 40]
    assert arrays[0].dtype == np.int16


def test_one_channel_of_several_phases_must_be_stated():
    with pytest.raises(ModelError) as caught:
        made(case_of(10, 50, 40), Recipe())
    assert [remedy.values for remedy in caught.value.remedies] == [
        ("first_post",),
        ("p1-p0",),
        ("p0",),
    ]
    assert int(made(case_of(10), Recipe()).arrays[0][0, 0, 0]) == 10
    assert int(made(case_of(10, 50), channels_recipe("p1-p0")).arrays[0][0, 0, 0]) == 40


def test_channels_are_written_with_commas():
    recipe = channels_recipe("p0, p1,p1-p0,p4-p1")
    assert recipe is not None
    assert recipe.channels == ("p0", "p1", "p1-p0", "p4-p1")
    assert channels_recipe("fme") is None
    assert channels_recipe("") is None


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("p2", 40),
        ("first_post", 50),
        ("last_post", 30),
        ("p1-p0", 40),
        ("last_post-first_post", -20),
        ("pe", 400.0),
        ("pe(p2)", 300.0),
    ],
)
def test_an_expression_means_what_it_says(expression, expected):
    arrays = made(case_of(10, 50, 40, 30), Recipe(channels=(expression,))).arrays
    assert float(arrays[0][0, 0, 0]) == expected


def test_ser_is_early_rise_over_late_rise():
    case = case_of(10, 50, 30, times=[0.0, 130.0, 400.0])
    assert float(made(case, Recipe(channels=("ser",))).arrays[0][0, 0, 0]) == (50 - 10) / (30 - 10)


def test_where_pe_is_undefined_the_channel_is_zero():
    assert float(made(case_of(0, 50), Recipe(channels=("pe",))).arrays[0][0, 0, 0]) == 0.0


def test_whole_numbers_are_subtracted_as_int16():
    arrays = made(case_of(10, 50), Recipe(channels=("p1-p0",), whole_numbers=True)).arrays
    assert arrays[0].dtype == np.int16


def test_normalising_over_all_phases_uses_one_mean_and_deviation():
    case = case_of(0, 20)
    arrays = made(case, Recipe(normalise=Normalise(Scope.ALL)), 2).arrays
    both = case.signal.astype(float)
    for k in (0, 1):
        assert np.allclose(arrays[k], (both[k] - both.mean()) / both.std(), atol=1e-6)


def test_normalising_by_phase_0_keeps_the_rise_of_later_phases():
    case = case_of(0, 20)
    arrays = made(case, Recipe(normalise=Normalise(Scope.PRE)), 2).arrays
    std = case.signal[0].std()  # of a ramp 0 .. 7: sqrt(5.25)
    assert std == pytest.approx(np.sqrt(5.25))
    assert np.allclose(arrays[1] - arrays[0], 20 / np.sqrt(5.25), atol=1e-5)


def test_percentiles_clip_and_can_leave_zeros_out():
    case = case_of(0, 0)
    plain = Normalise(Scope.EACH, (0.0, 50.0))
    array = made(case, Recipe(channels=("p0",), normalise=plain)).arrays[0]
    assert np.unique(array).size == 5  # a ramp of 0 .. 7 has its median at 3.5: 0, 1, 2, 3, 3.5
    nonzero = Normalise(Scope.EACH, (0.0, 50.0), nonzero=True)
    array = made(case, Recipe(channels=("p0",), normalise=nonzero)).arrays[0]
    assert np.unique(array).size == 4  # of 1 .. 7 the least is 1 and the median 4: 1, 2, 3, 4


def test_a_crop_is_cut_with_its_margin_and_the_labels_come_back_to_their_place():
    breast = BreastArea(Box((1, 2, 3), (3, 4, 6)))
    recipe = Recipe(channels=("p0",), region=RegionKind.CROP, margin_mm=1.0)
    found = made(case_of(0, 9), recipe, breast=breast)
    assert found.crop == Box((1, 1, 2), (3, 5, 7))  # 1 mm is half a slice: none is added there
    assert found.arrays[0].shape == found.crop.shape == found.grid.shape
    assert np.allclose(found.grid.affine[:3, 3], GRID.to_world_mm((1, 1, 2)))
    labels = np.ones(found.crop.shape, dtype=np.uint8)
    whole = labels_on_case(labels, found, GRID)
    assert whole.shape == GRID.shape
    assert np.count_nonzero(whole) == labels.size
    assert whole[1, 1, 2] == 1


def test_tiles_of_the_breast_keep_the_volume_whole():
    breast = BreastArea(Box((1, 2, 3), (3, 4, 6)))
    found = made(case_of(0, 9), Recipe(channels=("p0",), region=RegionKind.TILES), breast=breast)
    assert found.arrays[0].shape == GRID.shape
    assert found.region == breast.box


def test_another_spacing_keeps_the_first_voxel_and_a_ramp():
    recipe = Recipe(channels=("p0",), spacing_mm=(2.0, 1.0, 0.5))
    found = made(case_of(0, 9), recipe)
    assert found.grid.shape == (4, 6, 16)
    assert found.grid.spacing_mm == (2.0, 1.0, 0.5)
    assert np.allclose(found.grid.to_world_mm((0, 0, 0)), GRID.to_world_mm((0, 0, 0)))
    # twice as fine: every second voxel is one of the ramp's own
    assert np.allclose(found.arrays[0][2, 3, :16:2], np.arange(8), atol=1e-4)
    fine = np.zeros((4, 6, 16), dtype=np.uint8)
    fine[:, :, 6] = 1
    back = labels_on_case(fine, found, GRID)
    assert np.array_equal(np.flatnonzero(back[0, 0]), [3])


def test_reversed_phases_warn():
    assert "wrong order" in phase_order_warning(case_of(50, 10))
    assert phase_order_warning(case_of(10, 50)) == ""


def test_too_few_phases_and_too_many_channels_are_refused():
    with pytest.raises(CaseError, match="to have at least 3 phases"):
        made(case_of(0, 9), Recipe(channels=("p2",)))
    with pytest.raises(ModelError, match="to make 2 channels, as the model has, but it makes 1"):
        made(case_of(0, 9), Recipe(channels=("p0",)), 2)


@pytest.mark.parametrize("wrong", ["p0+p1", "__import__('os')", "p", "pe(p0-p1)", "p1-p0-p2", ""])
def test_an_unknown_expression_is_refused(wrong):
    with pytest.raises(ModelError, match="to be p0, p1"):
        Recipe(channels=(wrong,))


FULL = Recipe(
    title="Ours",
    channels=("p1-p0", "ser"),
    whole_numbers=True,
    normalise=Normalise(Scope.PRE, (0.1, 99.9), nonzero=True),
    spacing_mm=(1.0, 1.0, 1.0),
    region=RegionKind.TILES,
    margin_mm=5.0,
    post=(PostStep(PostKind.BREAST_BOX), PostStep(PostKind.MINIMUM, 10.0)),
    folds=("0", "all"),
    checkpoint="checkpoint_best.pth",
    step=0.75,
    mirroring=False,
    accept_trainer=True,
    tumour_labels=(1, 3),
)


@pytest.mark.parametrize("recipe", [FULL, Recipe(), *(recipe for _, recipe in presets())])
def test_a_recipe_survives_its_file(recipe, tmp_path):
    path = tmp_path / "mamamia_model.json"
    write_recipe(recipe, path)
    assert read_recipe(path) == recipe


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"format": "other"}, "format"),
        ({"version": 9}, "version 1"),
        ({"shell": "rm"}, "unknown key"),
        ({"region": "everywhere"}, "everywhere"),
        ({"post": [{"step": "explode"}]}, "explode"),
        ({"spacing_mm": [1, 1]}, r"'spacing_mm' of here\.json to be a list of 3"),
        ({"post": [{"step": "largest"}, {"value": 1}]}, r"'post\[0\]\.step' of here\.json"),
        ({"mirroring": "false"}, "'mirroring' of here.* to be true or false, but found 'false'"),
        ({"margin_mm": "nan"}, "'margin_mm' of here.* to be a number"),
        ({"network": {"channels": ["a"], "shape": 3}}, "the unknown key shape"),
        ({"normalise": {"scope": "all phases", "percentiles": [90, 10]}}, "the lower one first"),
    ],
)
def test_a_broken_recipe_is_refused_with_the_file(change, what):
    text = json.dumps({**json.loads(recipe_text(Recipe())), **change})
    with pytest.raises(ModelError, match=what):
        recipe_from(text, "here.json")


def test_folds_may_be_numbers_and_channels_have_blanks_as_people_write_them():
    change = {"folds": [0, 1], "channels": ["p1 - p0"]}
    recipe = recipe_from(json.dumps({**json.loads(recipe_text(Recipe())), **change}), "here.json")
    assert (recipe.folds, recipe.channels) == (("0", "1"), ("p1-p0",))


def test_a_recipe_of_before_the_codec_opens_and_is_written_to_the_same_bytes():
    normalise = {"scope": "phase 0", "percentiles": [0.1, 99.9], "nonzero": True}
    content = {
        "format": "napari-mamamia recipe",
        "version": 1,
        "title": "Ours",
        "channels": ["p1-p0"],
        "whole_numbers": True,
        "normalise": normalise,
        "spacing_mm": [1.0, 1.0, 1.0],
        "region": "breast tiles",
        "margin_mm": 5.0,
        "post": [{"step": "minimum volume", "value": 10.0}],
        "folds": ["0"],
        "checkpoint": "checkpoint_best.pth",
        "step": 0.75,
        "mirroring": False,
        "accept_trainer": None,
        "tumour_labels": [1, 3],
        "network": {
            "channels": ["a"],
            "labels": {"tumour": 1, "node": 3},
            "patch": [8, 8, 8],
            "output": "label logits",
            "threshold": 0.25,
            "weight": "constant",
            "orientation": "RAS",
            "mirror_axes": [0, 2],
            "architecture": {
                "network_class_name": "a.B",
                "arch_kwargs": {"n": [1, 2], "op": None},
                "_kw_requires_import": ["op"],
            },
        },
    }
    del content["folds"], content["checkpoint"], content["mirroring"]  # a network has none
    defaults = {"folds": None, "checkpoint": "", "mirroring": None}
    recipe = recipe_from(json.dumps(content), "here.json")
    assert recipe.network.labels == (("tumour", 1), ("node", 3))
    written = recipe_text(recipe)
    assert json.loads(written) == {**content, **defaults}
    assert list(json.loads(written)) == [
        *("format", "version", "title", "channels", "whole_numbers", "normalise", "spacing_mm"),
        *("region", "margin_mm", "post", "folds", "checkpoint", "step", "mirroring"),
        *("accept_trainer", "tumour_labels", "network"),
    ]


def test_a_recipe_fills_what_the_user_left_at_the_default():
    asked = EngineSettings(step=0.9)
    settings = preset("fme").settings(asked)
    assert settings.step == 0.9
    assert settings.folds == ("0", "1", "2", "3", "4")
    assert settings.checkpoint == "checkpoint_best.pth"


def test_the_published_pipelines_are_there():
    names = [name for name, _ in presets()]
    assert names == ["mama-mia-baseline", "mama-mia-sample", "fme", "vicorob", "mic"]
    assert [step.kind for step in preset("fme").post] == [PostKind.BREAST_BOX, PostKind.LARGEST]
    with pytest.raises(ModelError, match="to be one of mama-mia-baseline"):
        preset("best")
