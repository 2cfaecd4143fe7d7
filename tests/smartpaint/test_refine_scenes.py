"""The scenes of benchmarks/refine.py: the list holds what it promises, and the loader agrees."""

import os
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from napari_mamamia.metrics.overlap import dice
from refining import scenes
from refining.starts import grow_outlines, grown_mask

SPECS = {spec.name: spec for spec in scenes.read_list()}
FOLDER = Path(os.environ["MAMAMIA_REFINE"]) if os.environ.get("MAMAMIA_REFINE") else None
DRAWN = ["own-mass-2-21", "own-mass-3-fat-24", "second-uneven-206"]
REAL = [
    "brain1",
    "ms26-flair",
    "sts024-pet",
    "breast1",
    "dce-slice",
    "sts008-mr-t1",
]


def load(name):
    try:
        return scenes.load_scene(SPECS[name], FOLDER)
    except scenes.SceneError as reason:
        pytest.skip(str(reason))


def test_each_scene_stands_in_one_set_and_comes_from_another_place_or_seed():
    places = {str(sorted(spec.source.items())) for spec in SPECS.values()}
    seeds = [spec.source["seed"] for spec in SPECS.values() if "seed" in spec.source]
    assert len(places) == len(SPECS) == len(scenes.read_list())
    assert len(set(seeds)) == len(seeds)
    assert {spec.set for spec in SPECS.values()} == {"report", "tune", "warn"}


def test_the_report_holds_what_the_issue_asks_for():
    report = {name for name, spec in SPECS.items() if spec.set == "report"}
    assert len(report) >= 16
    wanted = {"brain1", "sts003-pet", "sts024-pet", "ms26-flair"}
    wanted |= {"duke-153", "ispy1-1002", "ucsf-br-06", "ucsf-br-08"}
    assert wanted <= report
    for family in ("own phantom", "second phantom"):
        assert sum(family in SPECS[name].groups for name in report) >= 5


def test_each_scene_says_how_its_reference_came_about():
    for spec in SPECS.values():
        assert spec.reference
        assert spec.source["kind"] in scenes.MAKERS
        real = "exam" in spec.source and "not an expert's mask" not in spec.reference
        assert not real


@pytest.mark.parametrize("name", [*DRAWN, *(pytest.param(n, marks=pytest.mark.real) for n in REAL)])
def test_a_scene_is_what_the_list_says(name):
    spec, scene = SPECS[name], load(name)
    assert scene.reference.shape == scene.case.grid.shape == spec.shape
    # A phantom's edge may differ by a few voxels where another library rounds otherwise.
    slack = 0.005 if "phantom" in spec.groups else 0
    assert np.count_nonzero(scene.reference) == pytest.approx(spec.voxels, rel=slack)
    assert len(scene.images.channels) == (3 if len(scene.case.phases) >= 3 else 1)


def test_a_scene_is_the_same_when_it_is_read_again(tmp_path):
    first = scenes.load_scene(SPECS["own-mass-2-21"], tmp_path)
    again = scenes.load_scene(SPECS["own-mass-2-21"], tmp_path)
    assert np.array_equal(first.case.signal, again.case.signal)
    assert np.array_equal(first.reference, again.reference)
    assert first.images.channels == again.images.channels
    assert first.case.times_s == again.case.times_s


def test_a_scene_whose_exam_is_not_here_says_so():
    fetched = {name for name, spec in SPECS.items() if spec.is_fetched}
    assert fetched == {"duke-153", "ucsf-br-06", "ucsf-br-08", "brain2"}
    for name in fetched:
        with pytest.raises(scenes.SceneError, match="MAMAMIA_REFINE"):
            scenes.load_scene(SPECS[name], None)


@pytest.mark.night  # by day: test_outlined
def test_a_second_outline_that_the_image_had_found_does_not_let_it_leak():
    scene = load("second-uneven-201")
    one, two = (
        dice(scene.reference, grown_mask(scene, partial(grow_outlines, scene, n))) for n in (1, 2)
    )
    assert two >= one - 0.01
    assert two > 0.94
