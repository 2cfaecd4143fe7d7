import copy
import math
import pickle

import pytest

from napari_mamamia.metrics.registry import metric
from napari_mamamia.scoring.case.profiles import (
    CLINICAL,
    OFFICIAL_CODE,
    PAPER,
    PROFILES,
    Emptiness,
    profile_named,
)


def test_clinical_is_the_first_and_so_the_default_profile():
    assert next(iter(PROFILES.values())) is CLINICAL
    assert profile_named("clinical") is CLINICAL


def test_profiles_are_found_by_name_and_an_unknown_name_is_refused_with_the_list():
    assert profile_named("official-code") is OFFICIAL_CODE
    assert profile_named("paper") is PAPER
    with pytest.raises(ValueError, match="clinical, official-code, paper"):
        profile_named("official")


def test_each_profile_normalises_a_distance_that_the_registry_knows():
    units = {profile.name: metric(profile.distance).unit for profile in PROFILES.values()}
    assert units == {"clinical": "mm", "official-code": "voxels", "paper": "mm"}


def test_a_profile_equals_its_copy_after_travelling_to_another_process():
    for profile in PROFILES.values():
        assert pickle.loads(pickle.dumps(profile)) == profile == copy.deepcopy(profile)


def test_norm_hd_is_the_distance_over_150():
    for profile in PROFILES.values():
        assert profile.norm_hd(30.0, Emptiness.NEITHER) == 0.2
        assert profile.norm_hd(0.0, Emptiness.NEITHER) == 0


def test_norm_hd_is_clipped_at_one_except_by_the_published_code():
    assert CLINICAL.norm_hd(300.0, Emptiness.NEITHER) == 1
    assert PAPER.norm_hd(300.0, Emptiness.NEITHER) == 1
    assert OFFICIAL_CODE.norm_hd(300.0, Emptiness.NEITHER) == 2


def test_one_empty_mask_has_norm_hd_one_in_every_profile():
    for profile in PROFILES.values():
        assert profile.norm_hd(math.nan, Emptiness.ONE) == 1


def test_two_empty_masks_are_perfect_to_the_code_worst_to_the_paper_undefined_clinically():
    assert OFFICIAL_CODE.norm_hd(math.nan, Emptiness.BOTH) == 0
    assert PAPER.norm_hd(math.nan, Emptiness.BOTH) == 1
    assert math.isnan(CLINICAL.norm_hd(math.nan, Emptiness.BOTH))


def test_undefined_overlap_is_zero_to_the_challenge_and_stays_undefined_clinically():
    assert OFFICIAL_CODE.overlap(math.nan) == PAPER.overlap(math.nan) == 0
    assert math.isnan(CLINICAL.overlap(math.nan))
    for profile in PROFILES.values():
        assert profile.overlap(0.6) == 0.6
