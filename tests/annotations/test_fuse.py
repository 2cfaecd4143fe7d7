"""Majority and STAPLE: by hand, and against SimpleITK."""

import numpy as np
import pytest

from napari_mamamia.annotations.fuse import majority_vote, staple
from napari_mamamia.core.choices import TieRule
from napari_mamamia.core.errors import CaseError, GridMismatchError


def row(*values):
    return np.array([[values]], np.uint8)


def readers_of(seed, n=3, shape=(6, 20, 24), labels=2):
    """Return noisy copies of two blobs, as several readers would draw them."""
    rng = np.random.default_rng(seed)
    truth = np.zeros(shape, np.uint8)
    truth[1:5, 4:14, 4:14] = 1
    if labels > 1:
        truth[2:4, 10:18, 15:22] = 2
    out = []
    for k in range(n):
        own = np.roll(truth, k - 1, axis=2).copy()
        flips = rng.random(shape) < 0.02 * (k + 1)
        own[flips] = rng.integers(0, labels + 1, int(flips.sum()))
        out.append(own)
    return out


def test_most_votes_win_and_background_votes_too():
    fused = majority_vote([row(1, 1, 0, 2), row(1, 0, 0, 2), row(0, 0, 1, 1)])
    assert fused.tolist() == [[[1, 0, 0, 2]]]
    assert fused.dtype == np.uint8


@pytest.mark.parametrize(
    ("tie", "expected"),
    [("background", [0, 0, 0]), ("foreground", [1, 2, 2]), ("first", [0, 2, 3])],
)
def test_a_tie_is_broken_by_the_named_rule(tie, expected):
    first, second = row(0, 2, 3), row(1, 0, 2)
    assert majority_vote([first, second], TieRule(tie)).ravel().tolist() == expected


def test_the_first_reader_among_the_tied_wins_not_the_first_of_all():
    votes = [row(3), row(1), row(2), row(1), row(2)]
    assert majority_vote(votes, TieRule.FIRST).ravel().tolist() == [1]


def test_empty_masks_stay_empty():
    empty = np.zeros((3, 4, 5), np.uint8)
    assert not majority_vote([empty, empty]).any()
    result = staple([empty > 0, empty > 0])
    assert not result.mask.any()
    assert np.isnan(result.sensitivities).all()


def test_one_reader_and_other_shapes_are_refused():
    with pytest.raises(CaseError, match="at least two readers, but got 1"):
        majority_vote([row(1)])
    with pytest.raises(GridMismatchError, match="reader 2 has shape"):
        majority_vote([row(1), row(1, 1)])
    with pytest.raises(CaseError, match="at most 16 readers for STAPLE, but got 17"):
        staple([row(1) > 0] * 17)


@pytest.mark.parity
@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_majority_equals_simpleitks_label_voting(n):
    sitk = pytest.importorskip("SimpleITK")
    readers = readers_of(n, n)
    peer = sitk.LabelVotingImageFilter()
    peer.SetLabelForUndecidedPixels(0)
    expected = sitk.GetArrayFromImage(peer.Execute([sitk.GetImageFromArray(r) for r in readers]))
    np.testing.assert_array_equal(majority_vote(readers, TieRule.BACKGROUND), expected)


@pytest.mark.parity
@pytest.mark.parametrize(("n", "close"), [(2, 1e-3), (3, 1e-6), (5, 1e-6)])
def test_staple_equals_simpleitks_filter(n, close):
    """With two readers the EM creeps; ITK stops it earlier (44 steps, we take 131)."""
    sitk = pytest.importorskip("SimpleITK")
    readers = [r > 0 for r in readers_of(10 + n, n, labels=1)]
    peer = sitk.STAPLEImageFilter()
    peer.SetForegroundValue(1.0)
    images = [sitk.GetImageFromArray(r.astype(np.uint8)) for r in readers]
    chances = sitk.GetArrayFromImage(peer.Execute(images))
    result = staple(readers)
    np.testing.assert_array_equal(result.mask, chances >= 0.5)
    np.testing.assert_allclose(result.sensitivities, peer.GetSensitivity(), atol=close)
    np.testing.assert_allclose(result.specificities, peer.GetSpecificity(), atol=close)


def test_staple_finds_the_reader_who_draws_too_little():
    """Two readers agree on 40 voxels of 1000; the third marks 10 of them and nothing else."""
    good, poor = np.zeros((2, 10, 10, 10), bool)
    good[2, :4] = True
    poor[2, 0] = True
    result = staple([good, good, poor])
    np.testing.assert_array_equal(result.mask, good)
    assert result.sensitivities == pytest.approx((1.0, 1.0, 0.25), abs=1e-3)
    assert result.specificities == pytest.approx((1.0, 1.0, 1.0), abs=1e-6)


@pytest.mark.parity
def test_a_voxel_as_likely_tumour_as_not_is_in_the_mask_of_staple():
    """Each of two readers marks one voxel that the other leaves out; the case is its own mirror.

    Exchanging the readers, or marked for unmarked, changes nothing: their sensitivities and
    specificities are equal, and the two doubtful voxels have a probability of exactly 0.5.
    """
    sitk = pytest.importorskip("SimpleITK")
    readers = [np.array([[[1, 1, 0, 0]]], bool), np.array([[[0, 1, 1, 0]]], bool)]
    peer = sitk.STAPLEImageFilter()
    peer.SetForegroundValue(1.0)
    chances = peer.Execute([sitk.GetImageFromArray(r.astype(np.uint8)) for r in readers])
    assert sitk.GetArrayFromImage(chances)[0, 0, [0, 2]].tolist() == [0.5, 0.5]
    result = staple(readers)
    assert result.mask.ravel().tolist() == [True, True, True, False]


def test_staple_takes_sixteen_readers():
    masks = [row(1, 0) > 0] * 16
    assert staple(masks).mask.ravel().tolist() == [True, False]
