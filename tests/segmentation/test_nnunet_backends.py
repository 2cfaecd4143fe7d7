"""Faster backends beside the exact one: they differ at ties only, or are close, and say so."""

import numpy as np
import pytest

from napari_mamamia.core.grid import Grid
from napari_mamamia.segmentation.model.engine import EngineInput
from napari_mamamia.segmentation.model.engine_settings import EngineSettings
from napari_mamamia.segmentation.run.weights import recognise_model

torch = pytest.importorskip("torch")
pytest.importorskip("dynamic_network_architectures")

GRID = Grid((20, 24, 28), np.diag([-1.0, -1.0, 1.0, 1.0]))


@pytest.fixture
def card(made, tmp_path, monkeypatch):
    monkeypatch.setenv("MAMAMIA_CACHE_DIR", str(tmp_path / "cache"))
    spec = made.Spec(mirror=(2,), seed=1, labels={"background": 0, "a": 1, "b": 2})
    return recognise_model(made.write_model(tmp_path / "model", spec))


def arrays():
    rng = np.random.default_rng(2)
    return list(rng.integers(1, 90, (2, *GRID.shape)).astype(np.int16))


def outputs_of(card, **settings):
    """Return a run's outputs on the model's grid, and the result."""
    from napari_mamamia.segmentation.nnunet import engine as nnunet_engine

    engine = nnunet_engine.load_nnunet(card, EngineSettings(threads=1, **settings))
    kept = []
    export = nnunet_engine.export_labels

    def listening(logits, *rest):
        kept.append(logits.clone())
        return export(logits, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nnunet_engine, "export_labels", listening)
        result = engine.predict(EngineInput(arrays(), GRID))
    return kept[0], result


def test_openvino_differs_from_torch_at_ties_only_and_is_kept_in_the_cache(card, tmp_path):
    pytest.importorskip("openvino")
    from tests.segmentation.nnunet_compare import agreement

    exact, first = outputs_of(card)
    other, second = outputs_of(card, backend="openvino")
    found = agreement(exact, other)
    assert found.voxels == 20 * 24 * 28
    assert found.only_ties
    assert found.differing < 0.001 * found.voxels
    assert len(np.unique(first.labels)) == 3
    assert np.count_nonzero(first.labels != second.labels) == found.differing
    assert (second.ran.backend, second.ran.precision) == ("openvino", "fp32")
    stored = {file.suffix for file in (tmp_path / "cache" / "openvino").iterdir()}
    assert {".xml", ".bin"} <= stored
    again, _ = outputs_of(card, backend="openvino")
    assert torch.equal(again, other)


def test_bf16_is_close_and_recorded(card):
    from tests.segmentation.nnunet_compare import agreement

    exact, _ = outputs_of(card)
    other, result = outputs_of(card, precision="bf16")
    found = agreement(exact, other)
    assert 0 < found.differing < 0.05 * found.voxels
    assert result.ran.precision == "bf16"


def test_agreement_counts_ties_by_hand():
    from tests.segmentation.nnunet_compare import agreement

    step = 2.0**-10  # of half precision between 1 and 2
    exact = torch.tensor([[[[1.0, 1.0, 1.0, 4.0]]], [[[1 + 2 * step, 1 + 3 * step, 0.0, 0.0]]]])
    other = torch.tensor([[[[1.1, 1.1, 1.0, 4.0]]], [[[1.0, 1.0, 0.0, 0.0]]]])
    found = agreement(exact.half(), other.half())
    assert (found.voxels, found.differing, found.ties) == (4, 2, 1)
    assert not found.only_ties
    assert agreement(exact.half(), exact.half()).only_ties
