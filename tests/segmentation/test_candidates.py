"""Regions, their features, and the order that the score puts them in."""

from dataclasses import replace

import numpy as np
import pytest

from napari_mamamia.core.box import Box
from napari_mamamia.segmentation.kinetic.candidates import (
    Features,
    Place,
    Region,
    Scored,
    enhancing,
    measured,
    pieces_of,
    regions_of,
    separate,
)
from napari_mamamia.segmentation.kinetic.enhancement import enhancement_of
from napari_mamamia.segmentation.kinetic.kinetic_settings import KineticSettings
from napari_mamamia.segmentation.kinetic.ranking import reasons, score, unsure

SETTINGS = KineticSettings()
ISO = (1.0, 1.0, 1.0)
LESION = Features(
    volume_mm3=2000.0,
    percent=150.0,
    contrast=140.0,
    ratio=1.0,
    compactness=0.8,
    long_mm=18.0,
    thick_mm=15.0,
)


def ball(shape, centre, radius_mm, spacing_mm=ISO):
    away = (np.indices(shape) - np.reshape(centre, (3, 1, 1, 1))) * np.reshape(
        spacing_mm, (3, 1, 1, 1)
    )
    return (away**2).sum(axis=0) <= radius_mm**2


def maps(mask, rise=150.0, late=None, pre=100.0):
    """Return maps of tissue of signal `pre` that rises by `rise` in `mask` and not elsewhere."""
    base = np.full(mask.shape, pre, dtype=np.float32)
    early = base + np.where(mask, rise, 0).astype(np.float32)
    last = None if late is None else base + np.where(mask, late, 0).astype(np.float32)
    return enhancement_of(base, early, last, pre)


def region_of(mask):
    box = Box.around(mask)
    return Region(box, mask[box.slices], mask[box.slices])


def features_of(mask, spacing_mm=ISO, **how):
    return measured(region_of(mask), maps(mask, **how), spacing_mm, Place())


def test_features_of_a_ball_by_hand():
    mask = ball((25, 25, 25), (12, 12, 12), 8.0)
    found = features_of(mask, rise=150.0, late=120.0)
    assert found.volume_mm3 == mask.sum()
    assert found.percent == pytest.approx(150.0)
    assert found.contrast == pytest.approx(150.0)
    assert found.ratio == pytest.approx(1.25)
    assert found.compactness == pytest.approx(1.0, abs=0.03)
    assert found.long_mm == pytest.approx(16.0, rel=0.03)


def test_features_do_not_depend_on_the_spacing_of_slices():
    coarse = features_of(ball((9, 25, 25), (4, 12, 12), 8.0, (2.5, 1.0, 1.0)), (2.5, 1.0, 1.0))
    assert coarse.volume_mm3 == pytest.approx(4 / 3 * np.pi * 8**3, rel=0.06)
    assert coarse.compactness > 0.9


def test_a_single_slice_of_a_ball_is_as_compact_as_a_ball():
    assert features_of(ball((1, 25, 25), (0, 12, 12), 8.0)).compactness > 0.85


def test_a_strand_is_not_compact():
    strand = np.zeros((9, 9, 40), dtype=bool)
    strand[3:6, 3:6, :] = True
    # axes 3 and 40 mm
    assert features_of(strand).compactness < 0.12


def test_contrast_is_less_where_the_surroundings_enhance():
    mask = ball((31, 31, 31), (15, 15, 15), 6.0)
    base = np.full(mask.shape, 100, dtype=np.float32)
    found = enhancement_of(base, base + np.where(mask, 150, 60).astype(np.float32), None, 100.0)
    assert measured(region_of(mask), found, ISO, Place()).contrast == pytest.approx(90.0)


def test_ratio_is_nan_without_a_late_phase_and_infinite_where_all_rise_is_gone():
    mask = ball((9, 9, 9), (4, 4, 4), 3.0)
    assert np.isnan(features_of(mask).ratio)
    assert np.isinf(features_of(mask, late=0.0).ratio)


def test_a_mass_is_ranked_above_a_vessel_of_the_same_volume():
    mass = ball((60, 60, 60), (30, 30, 30), 5.0)
    vessel = np.zeros((60, 60, 60), dtype=bool)
    vessel[30:33, 30:33, :] = True  # 540 mm3; the ball has 515
    strong = features_of(vessel, rise=250.0, late=190.0)
    weak = features_of(mass, rise=120.0, late=120.0)
    assert score(weak, SETTINGS) > 2 * score(strong, SETTINGS)


@pytest.mark.parametrize(
    "better",
    [
        {"volume_mm3": 4000.0},
        {"contrast": 200.0},
        {"compactness": 0.9},
        {"ratio": 1.2},
    ],
)
def test_score_rises_with_what_speaks_for_a_lesion(better):
    assert score(replace(LESION, **better), SETTINGS) > score(LESION, SETTINGS)


@pytest.mark.parametrize(
    "worse",
    [
        {"place": Place(behind_chest=0.6)},
        {"place": Place(at_back=True)},
        {"place": Place(near_skin=0.7)},
        {"place": Place(beside=0.7)},
        {"place": Place(at_wall=0.7)},
        {"place": Place(tissue=300.0), "signal": 100.0},
        {"ratio": 3.5},
        {"share": 0.2},
        {"volume_mm3": 600_000.0},
    ],
)
def test_score_falls_with_what_speaks_against_it(worse):
    assert score(replace(LESION, **worse), SETTINGS) < score(LESION, SETTINGS)


def test_score_by_hand():
    # sqrt(2 ml) x 1.4 x 0.8 x 1^2
    assert score(LESION, SETTINGS) == pytest.approx(2**0.5 * 1.4 * 0.8)
    # 45 ml is beyond 20 ml: sqrt(400 / 45); contrast is capped at 300 %, SER at 1.3
    large = replace(LESION, volume_mm3=45_000.0, contrast=900.0, ratio=2.5)
    assert score(large, SETTINGS) == pytest.approx((400 / 45) ** 0.5 * 3 * 0.8 * 1.69)
    unknown = replace(LESION, ratio=float("nan"))
    assert score(unknown, SETTINGS) == score(LESION, SETTINGS)


def test_reasons_are_plain_sentences_with_numbers_and_units():
    said = reasons(replace(LESION, percent=182.0, ratio=1.24), "at 147 s", SETTINGS)
    assert said == (
        "enhances by 182 % at 147 s",
        "washes out (SER 1.24)",
        "2 ml, 18 mm long",
        "compactness 0.80 (1: spherical)",
    )


@pytest.mark.parametrize(
    ("ratio", "words"),
    [
        (0.7, "continues to rise (SER 0.70)"),
        (1.0, "stays constant (SER 1.00)"),
        (np.inf, "washes out down to the signal before contrast"),
    ],
)
def test_the_course_is_said_in_words(ratio, words):
    assert words in reasons(replace(LESION, ratio=ratio), "in phase 1", SETTINGS)


def test_reasons_against_a_region_are_said_too():
    against = replace(
        LESION,
        compactness=0.1,
        thick_mm=5.0,
        share=0.2,
        place=Place(behind_chest=0.7, near_skin=0.8, at_back=True),
    )
    said = " | ".join(reasons(against, "in phase 1", SETTINGS))
    for words in (
        "like a vessel",
        "20 % of a larger",
        "70 % of the region is behind",
        "skin",
        "back of",
    ):
        assert words in said


def test_regions_come_with_their_dark_core_filled():
    whole, core = ball((25, 25, 25), (12, 12, 12), 8.0), ball((25, 25, 25), (12, 12, 12), 4.0)
    found = maps(whole & ~core)
    mask = enhancing(50.0, found, np.ones(whole.shape, dtype=bool), ISO, SETTINGS)
    (region,) = regions_of(mask, found, ISO, SETTINGS)
    assert region.crop.sum() == whole.sum()
    assert not region.core[8, 8, 8]


def test_regions_touch_diagonally_and_specks_are_left_out():
    mask = np.zeros((12, 12, 12), dtype=bool)
    mask[1:4, 1:4, 1:4] = mask[4:7, 4:7, 4:7] = True
    mask[10, 10, 10] = True  # 1 mm3
    (region,) = regions_of(mask, maps(mask), ISO, SETTINGS)
    assert region.core.sum() == 54


def test_a_lesion_on_a_vessel_comes_free():
    lesion = ball((30, 30, 60), (15, 15, 30), 7.0)
    vessel = np.zeros(lesion.shape, dtype=bool)
    vessel[14:17, 14:17, :] = True
    pieces = list(pieces_of(region_of(lesion | vessel), 5.0, ISO, SETTINGS))
    assert len(pieces) == 1
    (piece,) = pieces
    assert piece.crop.sum() == pytest.approx(lesion.sum(), rel=0.05)
    assert piece.share == pytest.approx(piece.crop.sum() / (lesion | vessel).sum())


def test_a_ball_does_not_fall_into_pieces():
    mask = ball((25, 25, 25), (12, 12, 12), 8.0)
    assert list(pieces_of(region_of(mask), 5.0, ISO, SETTINGS)) == []


def test_of_nested_regions_only_the_first_stays():
    large, small = np.ones((6, 6, 6), dtype=bool), np.zeros((6, 6, 6), dtype=bool)
    small[2:4, 2:4, 2:4] = True
    other = np.zeros((6, 6, 20), dtype=bool)
    other[2:4, 2:4, 12:14] = True
    ranked = [Scored(v, region_of(m), LESION) for v, m in ((3, small), (2, large), (1, other))]
    kept = separate(ranked, 5, (6, 6, 20))
    assert [item.value for item in kept] == [3, 1]
    assert [item.value for item in separate(ranked, 1, (6, 6, 20))] == [3]


def scored(*values, **changed):
    mask = np.ones((2, 2, 2), dtype=bool)
    return [Scored(v, region_of(mask), replace(LESION, **changed)) for v in values]


def test_a_region_behind_the_chest_line_is_called_by_what_lies_at_its_height():
    for height, words in ((0.2, "heart or chest wall?"), (0.9, "armpit or chest wall?")):
        place = Place(behind_chest=0.7, height=height)
        assert f"70 % of the region is behind the chest line: {words}" in reasons(
            replace(LESION, place=place), "in phase 1", SETTINGS
        )


def test_a_branching_mass_is_not_called_a_vessel():
    thick = replace(LESION, compactness=0.2, thick_mm=49.0)
    assert "irregular or branching (compactness 0.20, 49 mm thick)" in reasons(
        thick, "in phase 1", SETTINGS
    )


def test_of_a_first_candidate_that_leads_clearly_nothing_is_said():
    assert unsure(scored(1.0, 0.55), SETTINGS) == ()
    assert unsure([], SETTINGS) == ()


def test_candidates_that_score_alike_are_counted():
    assert unsure(scored(1.0, 0.8, 0.71, 0.3), SETTINGS) == (
        "candidates 1 to 3 have similar scores",
    )


def test_a_weak_or_doubtful_first_candidate_is_said_to_be_one():
    assert unsure(scored(0.3), SETTINGS) == ("candidate 1 is small or has little contrast",)
    (why,) = unsure(scored(1.0, ratio=8.7), SETTINGS)
    assert why == "candidate 1: loses nearly all of its contrast: vessel, motion or a ghost?"
