"""Looking for the breast is a job: it says how far it is, and ends when it is told to."""

from contextlib import suppress
from pathlib import Path

import numpy as np

from napari_mamamia.core.case import Case, Phase
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.progress import Cancelled, listening
from napari_mamamia.segmentation.kinetic.breast import breast_mask, find_breast
from napari_mamamia.segmentation.kinetic.enhancement import pooled
from napari_mamamia.segmentation.model.card import ModelCard
from napari_mamamia.segmentation.model.kinds import ModelKind
from napari_mamamia.segmentation.model.recipe import Recipe, RegionKind
from napari_mamamia.segmentation.run.trained import TrainedSegmenter

SHAPE = (40, 130, 220)  # 5, 1.5 and 1.5 mm: averaged in pairs but along the first axis
GRID = Grid(SHAPE, np.diag([-1.5, -1.5, 5.0, 1.0]))


def body():
    """Return noise, and in it a chest with two breasts before it, in ``(z, y, x)``."""
    s, p, left = np.indices(SHAPE, dtype=np.float32)
    s, p, left = (s - 20) * 5.0, p * 1.5, (left - 110) * 1.5
    tissue = (left / 160) ** 2 + ((p - 200) / 110) ** 2 <= 1
    for middle in (-75, 75):
        bulge = (s / 65) ** 2 + ((p - 110) / 80) ** 2 + ((left - middle) / 65) ** 2 <= 1
        tissue |= bulge & (p <= 110)
    noise = np.abs(np.random.default_rng(0).normal(0, 8, SHAPE))
    return (np.where(tissue, 200, 0) + noise).astype(np.float32)


def test_the_job_averages_looks_and_spreads_as_done_step_by_step():
    volume = body()
    found = breast_mask(volume, GRID)
    small = pooled(volume, (1, 1, 1))  # 1.5 mm is finer than 2 mm, but two of them are not
    region = find_breast(small, (5.0, 1.5, 1.5))
    assert 0.02 < region.breast.mean() < 0.5
    assert np.array_equal(found.array, region.breast)
    assert found.notes == region.notes
    assert np.array_equal(found.array, breast_mask(volume, GRID).array)


def test_it_says_how_far_it_is_in_many_steps():
    seen = []
    with listening(seen.append):
        breast_mask(body(), GRID)
    shares = [step.fraction for step in seen]
    assert shares == sorted(shares)
    assert (shares[0], shares[-1]) == (0.0, 1.0)
    assert len(set(shares)) >= 10
    assert {step.text for step in seen} == {"Searching for the breast"}


def test_a_model_that_looks_for_the_breast_says_so_before_all_else():
    class Runner:
        def predict(self, given):
            raise Cancelled

    card = ModelCard(Path("m"), ModelKind.NNUNET, "m", channels=("pre",))
    recipe = Recipe(region=RegionKind.TILES)
    segmenter = TrainedSegmenter(card, recipe=recipe, runner=Runner())
    case = Case("A", GRID, body().astype(np.int16)[None], (Phase(0),))
    seen = []
    with suppress(Cancelled), listening(seen.append):
        segmenter.predict(case)
    looking = [step.fraction for step in seen if step.text == "Searching for the breast"]
    assert len(set(looking)) >= 5
    assert looking == sorted(looking)
    assert max(looking) <= 0.025
