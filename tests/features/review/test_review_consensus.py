"""Consensus masks by hand: who votes, what a tie becomes, what STAPLE looks at, whose children."""

from pathlib import Path

import numpy as np
import pytest
from tests.review_study import made, opened

from napari_mamamia.core.errors import CaseError, FormatError, GridMismatchError
from napari_mamamia.core.grid import Grid
from napari_mamamia.features.review.core.review import ConsensusRule as Rule
from napari_mamamia.features.review.rules.states import ReadingView
from napari_mamamia.features.review.services.compare import make_consensus
from napari_mamamia.features.review.services.session import ReviewSession
from napari_mamamia.io.data_set.volumes import read_labels_dense, write_volume

LINE = Grid.of_spacing((1, 1, 9), (3.0, 3.0, 3.0))


@pytest.fixture
def store(tmp_path):
    return opened(made(tmp_path), tmp_path / "home")


def bar(folder, start, stop, grid=LINE):
    array = np.zeros(grid.shape, np.uint8)
    array[..., start:stop] = 1
    path = folder / f"bar-{start}-{stop}-{grid.shape[2]}.nii.gz"
    if not path.exists():
        write_volume(array, grid, path)
    return path.read_bytes()


def readings(store, *masks):
    return [
        ReadingView(f"r{at}", mask="" if one is None else store.put_mask(one))
        for at, one in enumerate(masks)
    ]


def voxels(found):
    """Where the mask is, along the line."""
    return "".join(str(int(value)) for value in found.labels.dense().ravel())


# 012345678
# 111110000
# 001111100
# 000011111
@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (Rule.MAJORITY_BACKGROUND, "001111100"),
        (Rule.MAJORITY_FOREGROUND, "001111100"),
        (Rule.MAJORITY_THIRD, "001111100"),  # three readings have no tie
        (Rule.UNION, "111111111"),
        (Rule.INTERSECTION, "000010000"),
    ],
)
def test_three_readings_by_each_rule(store, tmp_path, rule, expected):
    three = readings(store, bar(tmp_path, 0, 5), bar(tmp_path, 2, 7), bar(tmp_path, 4, 9))
    found = make_consensus(store, three, rule)
    assert voxels(found) == expected
    assert found.parents == tuple(one.mask for one in three)
    assert dict(found.how)["readers"] == "r0, r1, r2"


@pytest.mark.parametrize(
    ("rule", "expected"),
    [(Rule.MAJORITY_BACKGROUND, "001110000"), (Rule.MAJORITY_FOREGROUND, "111111100")],
)
def test_a_tie_of_two_goes_to_what_is_named(store, tmp_path, rule, expected):
    two = readings(store, bar(tmp_path, 0, 5), bar(tmp_path, 2, 7))
    found = make_consensus(store, two, rule)
    assert voxels(found) == expected
    assert dict(found.how)["ties"] == rule.removeprefix("majority-")


def test_a_third_reader_decides_the_ties_of_two_and_is_a_parent(store, tmp_path):
    one, other, third = readings(
        store, bar(tmp_path, 0, 5), bar(tmp_path, 2, 7), bar(tmp_path, 4, 9)
    )
    found = make_consensus(store, [one, other], Rule.MAJORITY_THIRD, third)
    assert voxels(found) == "001111100"
    assert set(found.parents) == {one.mask, other.mask, third.mask}
    with pytest.raises(CaseError, match="found nobody"):
        make_consensus(store, [one, other], Rule.MAJORITY_THIRD)
    with pytest.raises(CaseError, match="found one of the two"):
        make_consensus(store, [one, other], Rule.MAJORITY_THIRD, one)


def test_of_four_readings_the_named_one_decides_ties_and_votes_once(store, tmp_path):
    # votes: 2 2 2 2 3 2 2 1 1; ties at 0-3, 5 and 6 go to r3
    four = readings(
        store,
        bar(tmp_path, 0, 5),
        bar(tmp_path, 2, 7),
        bar(tmp_path, 4, 9),
        bar(tmp_path, 0, 2),
    )
    found = make_consensus(store, four, Rule.MAJORITY_THIRD, four[3])
    #  r0   111110000
    #  r1   001111100
    #  r2   000011111
    #  r3   110000000
    #  sum  222232211
    assert voxels(found) == "110010000"
    assert dict(found.how)["ties"] == "as r3"


@pytest.mark.parametrize("n_voxels", [11, 400])
def test_staple_looks_10_mm_around_the_union_whatever_the_image_is(store, tmp_path, n_voxels):
    # 4, 5 and 6 voxels; 3 mm steps: three more within 10 mm of the seven, so ten are looked at.
    # The facts' numbers: sensitivities .8, 1, .8, specificities 1, 1, .6 of ten voxels, while with
    # the background of a large image the last would be .998.
    grid = Grid.of_spacing((1, 1, n_voxels), (3.0, 3.0, 3.0))
    three = readings(
        store,
        bar(tmp_path, 0, 4, grid),
        bar(tmp_path, 0, 5, grid),
        bar(tmp_path, 1, 7, grid),
    )
    found = make_consensus(store, three, Rule.STAPLE)
    assert voxels(found)[:9] == "111110000"
    how = dict(found.how)
    assert how["crop"] == "voxels within 10 mm of the union"
    rates = [
        float(how[f"{what} of r{at}"]) for what in ("sensitivity", "specificity") for at in range(3)
    ]
    assert rates == pytest.approx([0.8, 1, 0.8, 1, 1, 0.6], abs=1e-5)


def test_staple_never_takes_two_readers_and_nothing_takes_one(store, tmp_path):
    two = readings(store, bar(tmp_path, 0, 5), bar(tmp_path, 2, 7))
    with pytest.raises(
        CaseError, match=r"expected at least 3 readings .* found 2: with two readers"
    ):
        make_consensus(store, two, Rule.STAPLE)
    for rule in Rule:
        with pytest.raises(CaseError, match=r"at least \d readings"):
            make_consensus(store, two[:1], rule)


def test_a_reading_without_a_mask_is_a_vote_for_background(store, tmp_path):
    three = readings(store, bar(tmp_path, 0, 5), None, bar(tmp_path, 4, 9))
    assert voxels(make_consensus(store, three, Rule.MAJORITY_BACKGROUND)) == "000010000"
    empty = make_consensus(store, three, Rule.INTERSECTION)
    assert voxels(empty) == "000000000"
    assert len(empty.parents) == 2
    for rule in (Rule.STAPLE, Rule.UNION):
        nothing = make_consensus(store, readings(store, None, None, None), rule)
        assert (nothing.content, nothing.parents) == (None, ())
    blank = bar(tmp_path, 0, 0)
    assert (
        voxels(make_consensus(store, readings(store, blank, blank, None), Rule.STAPLE)) == "0" * 9
    )


def test_two_grids_and_a_changed_mask_are_refused_by_name(store, tmp_path):
    other = Grid.of_spacing((1, 1, 9), (3.0, 3.0, 2.0))
    two = readings(store, bar(tmp_path, 0, 5), bar(tmp_path, 1, 5))
    far = tmp_path / "other.nii.gz"
    write_volume(np.ones(other.shape, np.uint8), other, far)
    with pytest.raises(GridMismatchError, match="the mask of r0"):
        make_consensus(store, readings(store, bar(tmp_path, 0, 5), far.read_bytes()), Rule.UNION)
    path = Path(store.share.place) / "masks" / f"{two[0].mask}.nii.gz"
    path.write_bytes(path.read_bytes() + b" ")
    with pytest.raises(FormatError, match="the mask was changed"):
        make_consensus(store, two, Rule.UNION)


def test_a_decision_keeps_its_parents_and_the_file_opens_on_the_same_grid(tmp_path):
    folder = made(tmp_path)
    for who, start in (("ana", 0), ("ben", 4)):
        one = ReviewSession(opened(folder, tmp_path / who), who, tmp_path / who)
        task = one.next_task()
        one.claim(task)
        one.start(task)
        one.finish(task, bar(tmp_path, start, start + 5))
        one.close()
    jo = ReviewSession(opened(folder, tmp_path / "jo"), "jo", tmp_path / "jo")
    (dispute,) = jo.disputes()
    jo.adjudicate(dispute.key)
    found = make_consensus(jo.store, dispute.readings, Rule.UNION)
    jo.decide(dispute.key, found.content, found.rule, "both", parents=found.parents, how=found.how)
    decision = jo.refresh().case(dispute.key).decision
    assert decision.choice == "union"
    assert decision.parents == tuple(one.mask for one in dispute.readings)
    assert dict(decision.how) == {"readers": "ana, ben"}
    path = tmp_path / "made.nii.gz"
    path.write_bytes(jo.store.get_mask(decision.mask))
    header, array = read_labels_dense(path)
    assert header.grid == LINE
    assert array.ravel().tolist() == [1] * 9
