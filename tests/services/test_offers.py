"""Other models that would fit: tiles from plans, times by hand, the error that names them."""

import importlib.util
import json
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from napari_mamamia.core.case import Case, Phase
from napari_mamamia.core.errors import ModelError
from napari_mamamia.core.grid import Grid
from napari_mamamia.segmentation.model.engine_settings import EngineSettings
from napari_mamamia.segmentation.model.planner import OutOfMemoryError, OverLimitError, Pace
from napari_mamamia.segmentation.model.recipe import Recipe
from napari_mamamia.segmentation.nnunet.cost import tiles_from_plans
from napari_mamamia.segmentation.run.engines import load_engine
from napari_mamamia.segmentation.run.paces import remember_pace
from napari_mamamia.segmentation.run.registry import (
    add_model,
    default_registry,
    model_recipe,
    set_recipe,
)
from napari_mamamia.segmentation.run.weights import recognise_model
from napari_mamamia.services.predict.offers import Offer, offers, offers_text, with_offers

pytest.importorskip("torch")
pytest.importorskip("dynamic_network_architectures")

_FOUND = importlib.util.spec_from_file_location(
    "made_models", Path(__file__).parents[1] / "segmentation" / "conftest.py"
)
_MADE = importlib.util.module_from_spec(_FOUND)
sys.modules["made_models"] = _MADE
_FOUND.loader.exec_module(_MADE)
Spec = _MADE.Spec

GRID = Grid((32, 40, 48), np.diag([-1.0, -1.0, 1.0, 1.0]))


def case_of(phases=2, grid=GRID):
    signal = np.zeros((phases, *grid.shape), np.int16)
    return Case("A_1", grid, signal, tuple(Phase(k) for k in range(phases)))


@pytest.fixture
def added(tmp_path):
    """Return a function that makes and adds a model, and remembers its pace if one is given."""

    def add(name, spec, forward_s=None, settings=None):
        folder = _MADE.write_model(tmp_path / name, spec)
        entry = add_model(folder, default_registry(), name)
        if forward_s is not None:
            pace = Pace(forward_s, other_s_per_megavoxel=0.0)
            remember_pace(entry.card, settings or EngineSettings(), pace)
        return entry

    return add


@pytest.mark.parametrize(
    ("spec", "settings"),
    [
        (Spec(), EngineSettings()),
        (Spec(spacing=(2.0, 0.7, 0.9), patch=(8, 16, 24)), EngineSettings(step=0.75)),
        (Spec(transpose=(2, 0, 1), spacing=(1.5, 1.0, 0.8)), EngineSettings(mirroring=False)),
        (Spec(reader="NibabelIOWithReorient", patch=(16, 24, 8)), EngineSettings(most_copies=2)),
        (Spec("2d", patch=(16, 16), spacing=(0.9, 1.1), mirror=(0, 1)), EngineSettings()),
        (Spec(folds=("0", "1"), labels={"background": 0, "a": 1, "b": 2}), EngineSettings()),
    ],
    ids=["cube", "anisotropic", "transposed", "RAS", "2d", "two folds and labels"],
)
def test_tiles_from_the_plans_are_the_loaded_engines(spec, settings, tmp_path):
    turned = np.array([[0, 0, 1.4, 3], [-0.8, 0, 0, 5], [0, 1.1, 0, 7], [0, 0, 0, 1.0]])
    grid = Grid((21, 33, 40), turned)
    card = recognise_model(_MADE.write_model(tmp_path, spec))
    engine = load_engine(card, settings)
    assert tiles_from_plans(card, settings, grid) == engine.plan(grid)
    engine.close()


def test_what_fits_is_offered_fastest_first_with_its_time(added):
    # 32 x 40 x 48 voxels of 1 mm in tiles of 16 at half steps: 3 x 4 x 5 = 60 tiles, 8 copies
    added("small", Spec(), forward_s=0.01)
    added("large", Spec(folds=("0", "1"), seed=1), forward_s=0.1)
    found = offers(case_of(), 100.0, default_registry())
    assert [offer.name for offer in found] == ["kinetic", "small", "large"]
    assert found[1].seconds == pytest.approx(60 * 8 * 0.01)
    assert found[2].seconds == pytest.approx(60 * 8 * 2 * 0.1)
    assert [offer.name for offer in offers(case_of(), 90.0, default_registry())] == [
        "kinetic",
        "small",
    ]


def test_the_model_that_did_not_do_is_not_offered(added):
    added("small", Spec(), forward_s=0.01)
    assert offers(case_of(), 100.0, default_registry(), ("kinetic", "small")) == ()


def test_a_model_that_never_ran_here_or_not_so_is_not_offered(added):
    entry = added("never", Spec())
    remember_pace(entry.card, EngineSettings(precision="bf16"), Pace(0.01, 0.0))
    names = [offer.name for offer in offers(case_of(), 100.0, default_registry())]
    assert names == ["kinetic"]
    settings = EngineSettings(precision="bf16", folds=("3",))
    found = offers(case_of(), 100.0, default_registry(), (), settings)
    assert [offer.name for offer in found] == ["kinetic", "never"]


def test_a_model_whose_channels_the_case_does_not_have_is_not_offered(added):
    added("three", Spec(channels=("p0", "p1", "p2")), forward_s=0.001)
    assert "three" not in [o.name for o in offers(case_of(2), None, default_registry())]
    assert "three" in [o.name for o in offers(case_of(3), None, default_registry())]
    one_phase = offers(case_of(1), None, default_registry())
    assert one_phase == ()


def test_a_recipe_that_does_not_fit_its_model_and_a_lost_folder_are_no_offers(added, tmp_path):
    set_recipe(added("odd", Spec(), 0.001), Recipe(channels=("p0",)), default_registry())
    added("gone", Spec(seed=1), 0.001)
    (tmp_path / "gone").rename(tmp_path / "elsewhere")
    assert [o.name for o in offers(case_of(), None, default_registry())] == ["kinetic"]


def test_a_model_that_needs_more_memory_than_is_free_is_not_offered(added, monkeypatch):
    entry = added("small", Spec(), forward_s=0.01)
    weights = sum(weight.n_bytes for weight in entry.card.weights)
    # 32 x 40 x 48 voxels: two float32 inputs, three half-precision sums, 12 bytes of resampling
    needed = 32 * 40 * 48 * (2 * 4 + 3 * 2 + 12) + weights
    for free, names in ((needed, ["kinetic", "small"]), (needed - 1, ["kinetic"])):
        monkeypatch.setattr(
            "napari_mamamia.services.predict.offers.free_memory_bytes", lambda free=free: free
        )
        assert [o.name for o in offers(case_of(), None, default_registry())] == names


def test_the_sentence_names_models_and_times():
    listed = (Offer("kinetic", "Kinetic threshold", 4.6), Offer("small", "Small", 120.0))
    assert offers_text(listed) == (
        "other models on this computer that are suitable: 'kinetic' about 4.6 s; "
        "'small' about 2 min 0 s"
    )
    assert offers_text(()) == ""


def failing(error):
    def predict():
        raise error

    return predict


@pytest.mark.parametrize("kind", [OverLimitError, OutOfMemoryError])
def test_an_error_of_time_or_memory_carries_the_offers(kind):
    job = partial(
        with_offers, failing(kind("too much")), case_of(), 60.0, default_registry(), ("large",)
    )
    with pytest.raises(kind, match=r"^too much; other models .* 'kinetic' about 0\.5 s"):
        job()


def test_other_errors_and_cases_without_an_offer_stay_as_they_are():
    for error, not_this in ((ModelError("broken"), ()), (OverLimitError("slow"), ("kinetic",))):
        job = partial(with_offers, failing(error), case_of(), 60.0, default_registry(), not_this)
        with pytest.raises(ModelError) as caught:
            job()
        assert caught.value is error


def test_nothing_of_it_needs_torch(added):
    import subprocess

    entry = added("small", Spec(), forward_s=0.01)
    code = (
        "import sys, numpy as np\n"
        "from pathlib import Path\n"
        "from napari_mamamia.core.grid import Grid\n"
        "from napari_mamamia.core.case import Case, Phase\n"
        "from napari_mamamia.segmentation.run.registry import default_registry\n"
        "from napari_mamamia.services.predict.offers import offers\n"
        "signal = np.zeros((2, 32, 40, 48), np.int16)\n"
        "case = Case('A', Grid((32, 40, 48), np.eye(4)), signal, (Phase(0), Phase(1)))\n"
        "print([o.name for o in offers(case, None, default_registry())], 'torch' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == f"['kinetic', '{entry.name}'] False", done.stderr


def described(folder, **network):
    """Write a network of which only the recipe is read: a safetensors file of no weights."""
    folder.mkdir()
    plain = _MADE.plans_of(Spec())["configurations"]["made_parent"]["architecture"]
    section = {"channels": ["a", "b"], "labels": {"tumour": 1}, "output": "logits"}
    section |= {"patch": [16, 16, 16], "architecture": plain, **network}
    recipe = {"format": "napari-mamamia recipe", "version": 1, "network": section}
    (folder / "mamamia_model.json").write_text(json.dumps(recipe))
    (folder / "net.safetensors").write_bytes((2).to_bytes(8, "little") + b"{}")
    return folder


def test_a_network_in_a_file_is_offered_by_the_tiles_of_its_recipe(tmp_path):
    folder = described(tmp_path / "net", mirror_axes=[0, 2])
    entry = add_model(folder, default_registry(), "net")
    assert [o.name for o in offers(case_of(), None, default_registry())] == ["kinetic"]
    remember_pace(entry.card, EngineSettings(), Pace(0.01, 0.0))
    # 3 x 4 x 5 tiles as for nnU-Net above, and mirrored copies along two axes: four of each
    (offer,) = [o for o in offers(case_of(), None, default_registry()) if o.name == "net"]
    assert offer.seconds == pytest.approx(60 * 4 * 0.01)
    twice = replace(model_recipe(entry), spacing_mm=(2.0, 2.0, 2.0))
    set_recipe(entry, twice, default_registry())
    # 16 x 20 x 24 voxels of 2 mm: 1 x 2 x 2 tiles
    (offer,) = [o for o in offers(case_of(), None, default_registry()) if o.name == "net"]
    assert offer.seconds == pytest.approx(4 * 4 * 0.01)


def test_a_network_that_cannot_do_what_is_asked_is_not_offered(tmp_path):
    entry = add_model(described(tmp_path / "net"), default_registry(), "net")
    asked = EngineSettings(accept_trainer=True)
    remember_pace(entry.card, asked, Pace(0.01, 0.0))
    names = [o.name for o in offers(case_of(), None, default_registry(), (), asked)]
    assert names == ["kinetic"]


@pytest.mark.parametrize("patch", [(16, 16, 16), (20, 12)])
@pytest.mark.parametrize("orientation", ["", "SAR"])
def test_tiles_from_the_recipe_are_the_loaded_networks(patch, orientation, tmp_path):
    from napari_mamamia.segmentation.network.cost import tiles_of_network
    from napari_mamamia.segmentation.network.engine import NetworkEngine

    folder = described(tmp_path / "net", patch=list(patch), orientation=orientation)
    card, settings = recognise_model(folder), EngineSettings(step=0.7)
    turned = np.array([[0, 0, 1.4, 3], [-0.8, 0, 0, 5], [0, 1.1, 0, 7], [0, 0, 0, 1.0]])
    grid = Grid((21, 33, 40), turned)
    engine = NetworkEngine(card, card.network, settings, None)
    assert tiles_of_network(card, settings, grid) == engine.plan(grid)
