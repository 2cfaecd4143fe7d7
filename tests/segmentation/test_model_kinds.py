"""The table of model kinds: each kind states what it needs."""

from napari_mamamia.segmentation.model.kinds import NETWORK_KINDS, ModelKind
from napari_mamamia.segmentation.run.engines import MODEL_KINDS


def test_every_kind_says_what_it_needs_and_the_rest_cannot_be_run():
    others = {ModelKind.NNUNET_V1, ModelKind.SUBMISSION, ModelKind.CHECKPOINT, ModelKind.UNKNOWN}
    assert set(MODEL_KINDS) == set(ModelKind) - others
    assert set(MODEL_KINDS) > NETWORK_KINDS
    for kind, spec in MODEL_KINDS.items():
        assert spec.extras, kind
        assert spec.given, kind
        assert spec.suffixes, kind
        assert (spec.card is None) == (kind is ModelKind.NNUNET)
        assert spec.rungs, kind
