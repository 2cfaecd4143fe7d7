"""A cascade's two stages share progress and time by what their tiles cost."""

import json
import time
from types import SimpleNamespace

import numpy as np
import pytest

from napari_mamamia.core.box import Box
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.progress import listening
from napari_mamamia.segmentation.model.engine import EngineInput
from napari_mamamia.segmentation.model.engine_settings import EngineSettings
from napari_mamamia.segmentation.run.weights import recognise_model

torch = pytest.importorskip("torch")
pytest.importorskip("dynamic_network_architectures")

# 24 voxels of 1 mm: at 2 mm one tile of 16, at 1 mm two along each axis
GRID = Grid((24, 24, 24), np.diag([-1.0, -1.0, 1.0, 1.0]))
SHARE = 1 / 9


@pytest.fixture
def card(made, tmp_path):
    both = {"folds": ("0", "1"), "mirror": None}
    low = made.Spec(configuration="3d_lowres", spacing=(2.0, 2.0, 2.0), seed=8, **both)
    high = made.Spec(
        configuration="3d_cascade_fullres",
        previous_stage="3d_lowres",
        extra_inputs=1,
        seed=9,
        **both,
    )
    roots = [made.write_model(tmp_path / name, spec) for name, spec in (("a", low), ("b", high))]
    roots[0].rename(roots[1].parent / roots[0].name)
    plans = json.loads((roots[1] / "plans.json").read_text())
    assert plans["configurations"]["made_parent"]["previous_stage"] == "3d_lowres"
    return recognise_model(roots[1])


def engine_of(card):
    from napari_mamamia.segmentation.nnunet.engine import load_nnunet

    return load_nnunet(card, EngineSettings(threads=1))


def arrays():
    return list(np.random.default_rng(4).integers(1, 90, (2, *GRID.shape)).astype(np.int16))


@pytest.fixture
def clock(monkeypatch):
    """Return a clock that only networks move: seconds of a tile of the first and second stage."""
    from napari_mamamia.segmentation.model import nnunet_tiles
    from napari_mamamia.segmentation.nnunet import engine as nnunet_engine

    found = SimpleNamespace(now=0.0, first=1.0, second=1.0)
    shown = SimpleNamespace(monotonic=lambda: found.now, perf_counter=time.perf_counter)
    for module in (nnunet_engine, nnunet_tiles):
        monkeypatch.setattr(module, "time", shown)
    real = nnunet_engine.NnUNetEngine._make_forward

    def ticking(engine, *which):
        run = real(engine, *which)

        def forward(tile):
            found.now += found.second if engine.first_stage is not None else found.first
            return run(tile)

        return forward

    monkeypatch.setattr(nnunet_engine.NnUNetEngine, "_make_forward", ticking)
    return found


def test_the_first_stage_moves_the_progress_by_its_share(card):
    engine, seen = engine_of(card), []
    with listening(seen.append):
        engine.predict(EngineInput(arrays(), GRID))
    shares = [step.fraction for step in seen]
    assert shares == sorted(shares)
    first = [step for step in seen if step.text.startswith("First stage: ")]
    assert any("Fold 1, 2 of 2: tile 1 of 1" in step.text for step in first)
    assert first[0].fraction == 0.0
    assert first[-1].fraction == pytest.approx(SHARE, abs=1e-3)
    assert seen[len(first)].fraction == pytest.approx(SHARE, abs=1e-3)
    assert seen[-1].fraction == 1.0


def test_without_a_limit_both_stages_are_whole(card, clock):
    result = engine_of(card).predict(EngineInput(arrays(), GRID))
    assert clock.now == 2 * 1 + 2 * 8
    assert result.ran.cut_short == ""
    assert [name for name, _ in result.ran.seconds][:2] == ["first stage", "prepare"]


def test_the_first_stage_leaves_the_second_its_share_of_the_time(card, clock):
    result = engine_of(card).predict(EngineInput(arrays(), GRID, deadline=9.0))
    # one fold of one tile, then one of eight; the first stage's second fold would be too much
    assert clock.now == 1 + 8
    assert result.ran.folds_done == ("0",)
    said = "the time limit was reached after 1 of 2 folds"
    assert result.ran.cut_short == f"first stage: {said}; {said}"


def test_the_first_fold_of_the_first_stage_may_take_more_than_its_share(card, clock):
    clock.first = 3.0
    result = engine_of(card).predict(EngineInput(arrays(), GRID, deadline=12.0))
    assert clock.now == 3 + 9  # the second stage's next fold is stopped after its first tile
    assert result.ran.folds_done == ("0",)


def test_a_first_stage_that_takes_all_the_time_is_over_the_limit(card, clock):
    from napari_mamamia.segmentation.model.planner import OverLimitError

    clock.first = 20.0
    with pytest.raises(OverLimitError, match="to finish one fold within the time limit"):
        engine_of(card).predict(EngineInput(arrays(), GRID, deadline=12.0))


def test_the_plan_of_a_cascade_counts_its_first_stage(card):
    from napari_mamamia.segmentation.model.planner import Pace

    engine = engine_of(card)
    plan = engine.plan(GRID)
    # second stage: 2 x 2 x 2 tiles in two folds; first: 12 voxels along each axis, one tile
    assert (plan.forwards, plan.work) == (16, 18.0)
    assert plan.text == "8 tiles x 1 copies x 2 folds, first stage 1 tiles x 1 copies x 2 folds"
    # 18 tiles of 3 s, and 0.5 s for each million of 24^3 + 12^3 voxels
    assert Pace(3.0, 0.5).seconds(plan) == pytest.approx(18 * 3.0 + 0.5 * (24**3 + 12**3) / 1e6)
    # 24^3 voxels: three inputs in single precision (two images, the first stage's label), three
    # half-precision sums, 12 bytes of resampling, and one of the first stage's labels
    volumes = 24**3 * (3 * 4 + 3 * 2 + 12 + 1)
    first = sum(weight.n_bytes for weight in engine.first_stage.card.weights)
    assert plan.bytes_needed == volumes + first
    assert (plan.with_folds(1).forwards, plan.with_folds(1).work) == (8, 9.0)


def test_a_region_leaves_the_first_stage_whole(card):
    plan = engine_of(card).plan(GRID, Box((0, 0, 0), (4, 4, 4)))
    assert (plan.tiles, plan.skipped, plan.first.tiles) == (1, 7, 1)
    assert plan.first_share == pytest.approx(1 / 2)


def test_the_plan_is_the_same_from_the_plans_alone_and_over_the_workers_pipe(card):

    from napari_mamamia.segmentation.nnunet.cost import tiles_from_plans
    from napari_mamamia.segmentation.worker.wire import OTHER, TILES

    plan = engine_of(card).plan(GRID)
    assert TILES.record(json.loads(json.dumps(TILES.plain(plan))), OTHER) == plan
    # whether tiles are mirrored stands in the checkpoint, which is not opened
    unmirrored = EngineSettings(threads=1, mirroring=False)
    assert tiles_from_plans(card, unmirrored, GRID) == plan
