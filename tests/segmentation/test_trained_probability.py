"""The probability that a trained segmenter returns agrees with what became of its mask."""

from pathlib import Path

import numpy as np

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import Case, Phase
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.progress import report_progress
from napari_mamamia.segmentation.model.card import ModelCard
from napari_mamamia.segmentation.model.engine_settings import EngineResult, Ran
from napari_mamamia.segmentation.model.kinds import ModelKind
from napari_mamamia.segmentation.model.postprocess import PostKind, PostStep
from napari_mamamia.segmentation.model.recipe import Recipe
from napari_mamamia.segmentation.model.segmenter import BoxPrompt
from napari_mamamia.segmentation.run.trained import TrainedSegmenter

GRID = Grid((3, 3, 8), np.diag([1.0, 1.0, 1.0, 1.0]))
RAN = Ran(("0",), ("0",), 1, 0, 1, 0.5, "cpu", "torch", "fp32", 1)


class Known:
    """A network whose labels and probabilities are given."""

    def __init__(self, labels, probability):
        self.labels, self.probability = labels, probability

    def predict(self, given):
        report_progress(0, 1, "tile 1")
        return EngineResult(self.labels, RAN, self.probability)

    def close(self):
        pass


def answered(labels, probability, recipe, prompt=None):
    signal = np.arange(2 * 3 * 3 * 8, dtype=np.int16).reshape(2, 3, 3, 8)
    case = Case("A_1", GRID, signal, (Phase(0), Phase(1)))
    card = ModelCard(Path("m"), ModelKind.NNUNET, "m", channels=("pre", "post"))
    runner = Known(labels, probability.astype(np.float16))
    return TrainedSegmenter(card, recipe=recipe, runner=runner).predict(case, prompt)


def volume(fill, **voxels):
    out = np.full(GRID.shape, fill, np.float32)
    for x, value in voxels.items():
        out[1, 1, int(x[1:])] = value
    return out


def test_what_a_step_removed_is_0_and_doubt_elsewhere_stays():
    labels = volume(0, x1=1, x2=1, x5=1).astype(np.uint8)
    given = volume(0.25, x1=0.75, x2=1.0, x5=0.75)
    recipe = Recipe(post=(PostStep(PostKind.LARGEST),))
    found = answered(labels, given, recipe)
    assert np.argwhere(found.mask.array).tolist() == [[1, 1, 1], [1, 1, 2]]
    assert np.array_equal(found.probability, volume(0.25, x1=0.75, x2=1.0, x5=0.0))


def test_what_a_step_added_is_1():
    labels = np.zeros(GRID.shape, np.uint8)
    labels[:, :, 1:4] = 1
    labels[1, 1, 2] = 0
    given = np.where(labels > 0, 0.75, 0.25)
    found = answered(labels, given, Recipe(post=(PostStep(PostKind.FILL),)))
    assert found.mask.array[1, 1, 2]
    expected = given.copy()
    expected[1, 1, 2] = 1
    assert np.array_equal(found.probability, expected)


def test_of_several_labels_only_the_tumours_own_keep_their_probability():
    labels = volume(0, x1=1, x2=2).astype(np.uint8)
    given = volume(0.0, x1=1.0, x2=0.75, x4=0.5)
    found = answered(labels, given, Recipe(tumour_labels=(2,)))
    assert np.array_equal(found.probability, volume(0.0, x1=0.0, x2=0.75, x4=0.5))


def test_outside_a_box_that_was_drawn_nothing_is_probable_that_was_marked():
    labels = volume(0, x1=1, x6=1).astype(np.uint8)
    given = volume(0.25, x1=0.75, x6=0.75)
    prompt = BoxPrompt(Box((0, 0, 0), (3, 3, 4)))
    found = answered(labels, given, Recipe(), prompt)
    assert np.array_equal(found.probability, volume(0.25, x1=0.75, x6=0.0))


def test_without_steps_the_networks_own_probability_is_returned():
    labels = volume(0, x1=1).astype(np.uint8)
    given = volume(0.25, x1=0.75)
    assert np.array_equal(answered(labels, given, Recipe()).probability, given)
