"""Several models on one case: mean, variance, votes and STAPLE of masks known by hand."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import Case, Mask, Phase
from napari_mamamia.core.choices import FusionRule
from napari_mamamia.core.errors import CaseError, ModelError
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.progress import listening, report_progress
from napari_mamamia.io.data_set.volumes import read_volume
from napari_mamamia.segmentation.model.card import ModelCard
from napari_mamamia.segmentation.model.kinds import ModelKind
from napari_mamamia.segmentation.model.planner import (
    LADDER,
    Budget,
    OutOfMemoryError,
    OverLimitError,
)
from napari_mamamia.segmentation.model.segmenter import Click, Prediction
from napari_mamamia.segmentation.run.planned import PlannedSegmenter
from napari_mamamia.services.batch.output_folder import Existing
from napari_mamamia.services.case.data_set import open_data_set
from napari_mamamia.services.predict.cases import predict_data_set
from napari_mamamia.services.predict.fused_models import FusedSegmenter, Moments
from napari_mamamia.services.predict.predict import predict_case
from napari_mamamia.services.predict.uncertainty import (
    UncertaintyKind,
    uncertainty_kinds,
    uncertainty_of,
)

GRID = Grid((1, 1, 4), np.diag([-2.0, -1.0, 3.0, 1.0]))  # a voxel is 6 mm3


def case_of(grid=GRID):
    signal = np.zeros((2, *grid.shape), np.int16)
    return Case("A_1", grid, signal, (Phase(0), Phase(1)))


def row(*values):
    return np.array([[values]])


@dataclass
class Fake:
    """A model whose answer is known: probabilities of the grid's voxels, or a mask alone."""

    name: str
    probability: np.ndarray | None = None
    marked: np.ndarray | None = None
    error: Exception | None = None
    seconds: float = 2.0
    peak: int | None = None
    device: str = "cpu"
    notes: tuple[str, ...] = ()
    closed: list = field(default_factory=list)

    @property
    def title(self):
        return self.name.upper()

    @property
    def note(self):
        return f"note of {self.name}"

    def predict(self, case, prompt=None):
        report_progress(0, 2, "tile 1")
        if self.error is not None:
            raise self.error
        report_progress(1, 2, "tile 2")
        mask = self.marked if self.probability is None else self.probability > 0.5
        kept = None if self.probability is None else self.probability.astype(np.float16)
        return Prediction(
            case.case_id,
            Mask(case.grid, mask.astype(np.bool_)),
            parameters=(("step", 0.5),),
            seconds=self.seconds,
            notes=self.notes,
            device=self.device,
            peak_memory_bytes=self.peak,
            probability=kept,
        )

    def close(self):
        self.closed.append(True)


def fused(rule, *members, case=None, prompt=None, limit_s=None):
    segmenter = FusedSegmenter(members, FusionRule(rule), limit_s)
    return segmenter.predict(case or case_of(), prompt)


# --------------------------------------------------------------------------- the mean


def test_the_mean_is_above_a_half_or_background_and_its_variance_is_that_over_all_models():
    a, b = row(0.25, 0.25, 1.0, 0.5), row(0.75, 0.5, 0.25, 0.5)
    found = fused("mean", Fake("a", a), Fake("b", b))
    # means: 0.5 (a tie: background), 0.375, 0.625, 0.5
    assert found.probability.dtype == np.float16
    assert found.probability.ravel().tolist() == [0.5, 0.375, 0.625, 0.5]
    assert found.mask.array.ravel().tolist() == [False, False, True, False]
    # squared distances from the mean: 0.25^2, 0.125^2, 0.375^2, 0
    assert found.variance.ravel().tolist() == [0.0625, 0.015625, 0.140625, 0.0]
    assert dict(found.parameters)["threshold"] == 0.5


def test_the_mean_of_three_is_not_that_of_means():
    found = fused(
        "mean",
        Fake("a", row(1.0, 0.0, 0.0, 0.75)),
        Fake("b", row(0.0, 0.0, 1.0, 0.75)),
        Fake("c", row(0.5, 0.75, 1.0, 0.0)),
    )
    assert found.probability.ravel() == pytest.approx([0.5, 0.25, 2 / 3, 0.5], abs=5e-4)
    # voxel 0: (0.25 + 0.25 + 0) / 3; voxel 1: (2 * 0.0625 + 0.25) / 3; voxel 2: 2/9;
    # voxel 3: (2 * 0.0625 + 0.25) / 3
    assert found.variance.ravel() == pytest.approx([1 / 6, 0.125, 2 / 9, 0.125], abs=2e-4)


def test_one_map_is_its_own_mean_to_the_bit_and_has_no_variance():
    values = np.random.default_rng(0).random((11, 3, 5)).astype(np.float16)
    moments = Moments()
    moments.add(values)
    one = moments.result(0.5)
    assert np.array_equal(one.mean, values)
    assert one.variance is None
    moments.add(values)
    two = moments.result(0.5)
    assert np.array_equal(two.mean, values)
    assert np.array_equal(two.above, values > 0.5)
    assert not two.variance.any()


def test_the_entropy_of_the_mean_and_the_variance_lead_to_different_places():
    agreed, opposed = row(0.5, 0.0, 0.0, 0.0), row(0.5, 0.0, 0.0, 0.75)
    found = fused("mean", Fake("a", agreed), Fake("b", opposed))
    assert uncertainty_kinds(found) == (UncertaintyKind.ENTROPY, UncertaintyKind.VARIANCE)
    entropy = uncertainty_of(found, UncertaintyKind.ENTROPY)
    # entropy of 0.5 is 1 bit, of 0.375: 0.375 log2(8/3) + 0.625 log2(8/5) = 0.9544 bit
    assert entropy.amount.ravel() == pytest.approx([1, 0, 0, 0.9544], abs=1e-3)
    assert (entropy.places[0].voxel, entropy.unit) == ((0, 0, 0), "bit")
    variance = uncertainty_of(found, UncertaintyKind.VARIANCE)
    (place,) = variance.places  # 0.375^2 = 0.140625 in voxel 3, 0 elsewhere
    assert (place.voxel, variance.unit) == ((0, 0, 3), "")
    assert place.mean == pytest.approx(0.140625, abs=1e-4)
    assert place.weight == pytest.approx(6 * 0.140625, abs=1e-3)


def test_a_model_without_a_probability_is_refused_for_the_mean():
    plain = Fake("plain", marked=row(1, 0, 0, 0))
    with pytest.raises(
        ModelError, match="every model to return a probability for the mean, but plain returns"
    ):
        fused("mean", Fake("a", row(1.0, 0, 0, 0)), plain)


# ------------------------------------------------------------------- majority, STAPLE


def test_the_majority_is_more_than_half_and_a_tie_is_background():
    masks = [row(1, 1, 1, 0), row(1, 1, 0, 0), row(1, 0, 0, 0), row(1, 0, 0, 0)]
    members = [Fake(name, marked=mask) for name, mask in zip("abcd", masks, strict=True)]
    found = fused("majority", *members)
    assert found.mask.array.ravel().tolist() == [True, False, False, False]
    assert found.probability.ravel().tolist() == [1.0, 0.5, 0.25, 0.0]
    assert found.variance is None
    assert dict(found.parameters)["tie"] == "background"
    three = fused("majority", *members[:3])
    assert three.mask.array.ravel().tolist() == [True, True, False, False]


def test_models_that_split_are_most_doubtful_where_half_of_them_marked():
    masks = [row(1, 1, 1, 0), row(1, 1, 0, 0), row(1, 0, 0, 0), row(1, 0, 0, 0)]
    members = [Fake(name, marked=mask) for name, mask in zip("abcd", masks, strict=True)]
    found = fused("majority", *members)
    assert uncertainty_kinds(found) == (UncertaintyKind.ENTROPY,)
    doubt = uncertainty_of(found)
    # 4 of 4: 0 bit; 2 of 4: 1 bit; 1 of 4: 0.25 * 2 + 0.75 * log2(4/3) = 0.8113 bit
    assert doubt.amount.ravel() == pytest.approx([0, 1, 0.8113, 0], abs=1e-3)
    with pytest.raises(ModelError, match="to have variance, but it has ent"):
        uncertainty_of(found, UncertaintyKind.VARIANCE)


def test_votes_of_models_that_gave_probabilities_have_a_variance_too():
    members = [Fake("a", row(0.75, 0, 0, 0)), Fake("b", row(0.25, 0, 0, 0))]
    found = fused("majority", *members)
    assert found.probability.ravel().tolist() == [0.5, 0, 0, 0]
    assert found.variance.ravel().tolist() == [0.0625, 0, 0, 0]
    mixed = fused("majority", *members, Fake("c", marked=row(1, 0, 0, 0)))
    assert mixed.variance is None


@pytest.mark.parity
def test_staple_is_simpleitks_and_its_performance_is_kept_by_model():
    sitk = pytest.importorskip("SimpleITK")
    grid = Grid((6, 20, 24), np.diag([1.0, 1.0, 1.0, 1.0]))
    rng = np.random.default_rng(3)
    truth = np.zeros(grid.shape, np.bool_)
    truth[1:5, 4:14, 5:16] = True
    masks = [truth ^ (rng.random(grid.shape) < share) for share in (0.02, 0.05, 0.1)]
    members = [Fake(name, marked=mask) for name, mask in zip("abc", masks, strict=True)]
    found = fused("staple", *members, case=case_of(grid))
    peer = sitk.STAPLEImageFilter()
    peer.SetForegroundValue(1)
    images = [sitk.GetImageFromArray(mask.astype(np.uint8)) for mask in masks]
    expected = sitk.GetArrayFromImage(peer.Execute(images))
    assert np.array_equal(found.mask.array, expected >= 0.5)
    kept = dict(found.parameters)
    for number, name in enumerate("abc"):
        sensitivity, specificity = peer.GetSensitivity()[number], peer.GetSpecificity()[number]
        assert kept[f"{name}: sensitivity (STAPLE)"] == pytest.approx(sensitivity, abs=1e-5)
        assert kept[f"{name}: specificity (STAPLE)"] == pytest.approx(specificity, abs=1e-5)


def test_a_model_that_marks_something_else_than_the_fused_mask_is_named():
    here, there = row(1, 1, 1, 0), row(0, 0, 0, 1)
    found = fused("majority", *(Fake(n, marked=here) for n in "ab"), Fake("c", marked=there))
    assert found.notes == (
        "c disagrees with the fused mask (Dice 0.00); check the mask of each model separately",
    )


def test_staple_of_models_that_marked_nothing_says_so_and_has_no_performance():
    empty = row(0, 0, 0, 0)
    found = fused("staple", Fake("a", marked=empty), Fake("b", marked=empty))
    assert dict(found.parameters)["a: sensitivity (STAPLE)"] is None
    assert found.notes == ("the STAPLE of 2 models is empty",)


# ------------------------------------------------------------- what is said and kept


def test_every_models_parameters_notes_time_and_memory_are_kept():
    own = 7 * 1024**4  # larger than this process can be
    members = (
        Fake("a", marked=row(1, 0, 0, 0), seconds=2.0, peak=own, notes=("slow",)),
        Fake("b", marked=row(1, 1, 0, 0), seconds=3.0, device="cuda"),
    )
    segmenter = FusedSegmenter(members, FusionRule.MAJORITY)
    found = predict_case(case_of(), segmenter)
    kept = dict(found.mask.provenance.parameters)
    assert (kept["fusion"], kept["models"]) == ("majority", "a, b")
    assert (kept["a: step"], kept["b: step"]) == (0.5, 0.5)
    assert (kept["a: volume_mm3"], kept["b: volume_mm3"]) == (6.0, 12.0)
    assert 5.0 <= found.seconds < 6.0
    assert found.mask.provenance.peak_memory_bytes == own
    assert found.device == "cpu; cuda"
    assert found.notes == ("a: slow",)
    assert found.mask.provenance.name == segmenter.name == "majority_a+b"
    assert segmenter.title == "Majority vote of A and B"
    assert segmenter.note == "majority vote of 2 models: a: note of a; b: note of b"
    segmenter.close()
    assert members[0].closed
    assert members[1].closed


def test_each_model_has_its_share_of_the_progress_and_its_name_there():
    seen = []
    members = (Fake("a", marked=row(1, 0, 0, 0)), Fake("b", marked=row(1, 0, 0, 0)))
    with listening(seen.append):
        FusedSegmenter(members, FusionRule.MAJORITY).predict(case_of())
    assert [step.text for step in seen[:4]] == [
        "a (1 of 2): tile 1",
        "a (1 of 2): tile 2",
        "b (2 of 2): tile 1",
        "b (2 of 2): tile 2",
    ]
    shares = [step.fraction for step in seen]
    assert shares == sorted(shares)
    assert shares[2] == pytest.approx(shares[0] + 0.47)
    assert shares[-1] == 1.0


@pytest.mark.parametrize(
    ("error", "kept"),
    [
        (CaseError("too few phases"), ModelError),
        (OutOfMemoryError("needs 9 GB"), OutOfMemoryError),
        (OverLimitError("takes 9 h"), OverLimitError),
    ],
)
def test_one_model_that_fails_fails_the_case_by_its_name(error, kept):
    good = Fake("good", marked=row(1, 0, 0, 0))
    with pytest.raises(kept, match="bad, one of the models to be fused, failed: ") as caught:
        fused("majority", good, Fake("bad", error=error))
    assert str(error) in str(caught.value)
    assert type(caught.value) is kept


def test_a_click_keeps_the_region_at_the_click():
    both = row(1, 0, 1, 1)
    found = fused(
        "majority",
        Fake("a", marked=both),
        Fake("b", marked=both),
        prompt=Click((0, 0, 0)),
    )
    assert found.mask.array.ravel().tolist() == [True, False, False, False]
    assert [candidate.volume_mm3 for candidate in found.candidates] == [6.0, 12.0]


def test_one_model_two_of_one_name_and_too_many_are_refused():
    one = Fake("a")
    with pytest.raises(ModelError, match=r"expected 2 to 16 models to fuse, but got 1 \(a\)"):
        FusedSegmenter((one,), FusionRule.MEAN)
    with pytest.raises(ModelError, match="a occurs more than once"):
        FusedSegmenter((one, Fake("b"), Fake("a")), FusionRule.MEAN)
    many = tuple(Fake(f"m{k}") for k in range(17))
    with pytest.raises(ModelError, match="got 17"):
        FusedSegmenter(many, FusionRule.MEAN)


def test_many_models_have_a_name_that_fits_a_folder_and_differs_with_the_models():
    names = [f"a model of a rather long name {k}" for k in range(9)]
    first = FusedSegmenter(tuple(map(Fake, names)), FusionRule.STAPLE)
    other = FusedSegmenter(tuple(map(Fake, [*names[:-1], "else"])), FusionRule.STAPLE)
    assert first.name.startswith("staple_of_9_models_")
    assert len(first.name.encode()) < 60
    assert first.name != other.name


# ------------------------------------------------------------------------- time limit


class Noting(PlannedSegmenter):
    """A trained model that notes its limit, and takes as long as it is told."""

    __slots__ = ()

    def predict(self, case, prompt=None):
        LIMITS.append(self.budget.limit_s)
        NOW[0] += TAKES
        report_progress(1, 1, "done")
        return Prediction(case.case_id, Mask(case.grid, np.zeros(case.grid.shape, np.bool_)))


LIMITS: list[float] = []
NOW = [0.0]
TAKES = 10.0


@pytest.fixture
def clock(monkeypatch):
    """Return nothing; time goes on only where a model says so."""
    LIMITS.clear()
    NOW[0] = 100.0
    clock = "napari_mamamia.services.predict.fused_models.time.monotonic"
    monkeypatch.setattr(clock, lambda: NOW[0])


def noting(name, give_up=()):
    card = ModelCard(Path(name), ModelKind.NNUNET, name)
    return Noting(card, budget=Budget(60.0, give_up))


@pytest.mark.usefixtures("clock")
def test_the_limit_counts_for_the_whole_case_and_models_get_what_is_left():
    fused("majority", noting("a"), noting("b"), noting("c"), limit_s=60.0)
    assert LIMITS == [60.0, 50.0, 40.0]


@pytest.mark.usefixtures("clock")
def test_models_that_may_give_something_up_share_what_is_left():
    members = [noting(name, LADDER) for name in "abc"]
    fused("majority", *members, limit_s=60.0)
    assert LIMITS == [20.0, 25.0, 40.0]  # 60 / 3, 50 / 2, 40 / 1


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize(("limit_s", "given"), [(15.0, [15.0, 5.0]), (25.0, [25.0, 15.0, 5.0])])
def test_a_case_whose_models_took_too_long_fails_with_all_their_names(limit_s, given):
    with pytest.raises(
        OverLimitError, match=rf"expected a, b, c to finish within {limit_s:g} s in total"
    ):
        fused("majority", noting("a"), noting("b"), noting("c"), limit_s=limit_s)
    assert given == LIMITS


def test_a_box_of_the_candidate_is_where_the_mask_is():
    mask = row(0, 1, 1, 0)
    found = fused("majority", Fake("a", marked=mask), Fake("b", marked=mask))
    assert found.candidates[0].box == Box((0, 0, 1), (1, 1, 3))


# -------------------------------------------------------------------------- many cases


class Blob(Fake):
    """A model that gives every voxel one probability, but none to the case that it fails on."""

    def predict(self, case, prompt=None):
        report_progress(0, 1, "tile 1")
        if case.case_id == self.fails_on:
            raise ModelError("no tile fits")
        full = np.full(case.grid.shape, self.share, np.float16)
        mask = Mask(case.grid, full > 0.5)
        return Prediction(case.case_id, mask, probability=full, seconds=1.0)


def blob(name, share, fails_on=""):
    made = Blob(name)
    made.share, made.fails_on = share, fails_on
    return made


def test_a_case_that_one_model_fails_is_a_row_with_its_name_and_the_others_are_kept(
    small_data_set, tmp_path
):
    opened, out = open_data_set(small_data_set), tmp_path / "out"
    members = (blob("a", 0.25), blob("b", 1.0, fails_on="A_2"))
    segmenter = FusedSegmenter(members, FusionRule.MEAN)
    summary = predict_data_set(opened, segmenter, out, probability=True)
    assert [saved.case_id for saved in summary.saved] == ["A_1", "B_1"]
    (failure,) = summary.failures
    assert failure.reason == "b, one of the models to be fused, failed: no tile fits"
    _, written = read_volume(out / "probability" / "B_1.nii.gz")
    assert np.unique(written).tolist() == [0.625]
    assert written.dtype == np.float32
    assert not (out / "A_2.nii.gz").exists()


def test_a_lost_probability_map_is_made_again(small_data_set, tmp_path):
    opened, out = open_data_set(small_data_set), tmp_path / "out"
    segmenter = FusedSegmenter((blob("a", 0.25), blob("b", 1.0)), FusionRule.MEAN)
    predict_data_set(opened, segmenter, out, probability=True)
    lost = out / "probability" / "B_1.nii.gz"
    lost.unlink()
    again = predict_data_set(opened, segmenter, out, existing=Existing.RESUME, probability=True)
    assert again.skipped == ("A_1", "A_2")
    assert lost.is_file()


def test_a_probability_that_no_model_gave_cannot_be_saved(small_data_set, tmp_path):
    opened = open_data_set(small_data_set)
    plain = Fake("plain", marked=np.zeros((8, 32, 48), np.bool_))
    summary = predict_data_set(opened, plain, tmp_path / "out", probability=True)
    assert "expected a probability map of A_1 to save" in summary.failures[0].reason
    assert list((tmp_path / "out").glob("*.nii.gz")) == []
