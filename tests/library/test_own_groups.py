"""Fairness over groups of a script, metrics with a spacing, names that tab completion shows."""

import numpy as np
import pandas as pd
import pytest

import napari_mamamia as mm

IDS = [f"C{number}" for number in range(8)]


@pytest.fixture(scope="module")
def scores():
    """Mean Dice 0.8 and NormHD 0.1 in the first four cases, 0.6 and 0.3 in the others."""
    spread = np.array([-0.05, -0.05, 0.05, 0.05] * 2)
    dice, norm_hd = np.repeat([0.8, 0.6], 4) + spread, np.repeat([0.1, 0.3], 4) - spread
    table = pd.DataFrame({"case_id": IDS, "dsc": dice, "norm_hd": norm_hd})
    return mm.score_table(table, bootstrap=0)


def test_fairness_over_own_groups_by_hand(scores):
    race = dict(zip(IDS, ["a"] * 4 + ["b"] * 4, strict=True))
    site = pd.Series(dict(zip(IDS, ["x", "y"] * 4, strict=True)))
    table = scores.fairness_by({"race": race, "site": site}, minimum_group=4)
    # race: 1 - (0.2 + 0.2)/2; site: both groups have equal means
    assert table.loc[("race", "dsc"), "value"] == pytest.approx(0.2)
    assert table.loc[("race", "fairness"), "value"] == pytest.approx(0.8)
    assert table.loc[("site", "fairness"), "value"] == pytest.approx(1)
    assert table["value"].iloc[-1] == pytest.approx(0.9)
    assert table.loc[("race", "dsc"), "p"] < 0.1 < table.loc[("site", "dsc"), "p"]
    assert table.loc[("race", "dsc"), "low"] <= 0.2 <= table.loc[("race", "dsc"), "high"]


def test_own_groups_are_columns_of_a_table_and_empty_cells_are_no_group(scores):
    table = pd.DataFrame({"race": ["a"] * 4 + [None, "b", "b", None]}, index=IDS)
    found = scores.fairness_by({"race": "race"}, table=table)
    assert found.loc[("race", "dsc"), "n_groups"] == 2
    assert found.loc[("race", "dsc"), "value"] == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("groups", "table"),
    [
        ({}, None),
        ({"race": "race"}, None),
        ({"race": "other"}, pd.DataFrame({"race": ["a"] * 8}, index=IDS)),
        ({"race": {"unknown": "a"}}, None),
        ({"race": ["a"] * 8}, None),
    ],
)
def test_wrong_groups_are_refused(scores, groups, table):
    with pytest.raises(mm.ArgumentError):
        scores.fairness_by(groups, table=table)


def test_known_variables_have_a_fairness_under_their_own_name():
    table = pd.DataFrame({"case_id": IDS, "dsc": [0.8] * 4 + [0.6] * 4, "norm_hd": [0.1] * 8})
    clinical = pd.DataFrame(
        {"patient_id": IDS, "age": [None] * 8, "menopause": ["pre"] * 4 + ["post"] * 4}
    )
    scores = mm.score_table(
        table, clinical=clinical, columns={"age": None, "breast_density": None}, bootstrap=0
    )
    cohort = scores.cohort
    assert np.isnan(cohort.loc["fairness", "value"])
    assert cohort.loc["fairness_of_known_variables", "value"] == pytest.approx(0.9)
    assert "menopausal_status" in cohort.loc["fairness_of_known_variables", "reason"]


def test_distances_take_a_spacing_or_a_grid():
    one = np.zeros((3, 4, 4), bool)
    one[1, 1:3, 1:3] = True
    other = np.roll(one, 1, axis=0)
    grid = mm.Grid.of_spacing(one.shape, (3.0, 0.5, 0.5))
    by_spacing = mm.metrics.measure(one, other, spacing=(3.0, 0.5, 0.5))
    assert by_spacing == pytest.approx(mm.metrics.measure(one, other, grid), nan_ok=True)
    assert mm.metrics.hausdorff_mm(one, other, spacing=(3.0, 0.5, 0.5)) == 3
    assert mm.metrics.volume_mm3(one, spacing=(3.0, 0.5, 0.5)) == pytest.approx(3)


def test_masks_of_one_slice_are_measured():
    one = np.zeros((5, 5), bool)
    one[1:3, 1:3] = True
    other = np.roll(one, 1, axis=1)
    assert mm.metrics.dice(one, other) == 0.5
    assert mm.metrics.hausdorff_mm(one, other, spacing=(0.5, 2)) == 2
    assert mm.metrics.longest_diameter_mm(one, spacing=(3, 4)) == 5


@pytest.mark.parametrize("spacing", [(1, 1), (1, 1, 0), (1, 1, np.nan)])
def test_wrong_spacing_is_refused(spacing):
    mask = np.ones((2, 2, 2), bool)
    with pytest.raises(mm.ArgumentError):
        mm.metrics.volume_mm3(mask, spacing=spacing)
    with pytest.raises(mm.ArgumentError):
        mm.metrics.volume_mm3(mask, mm.Grid.of_spacing((2, 2, 2), (1, 1, 1)), spacing=(1, 1, 1))


@pytest.mark.parametrize("module", [mm, mm.metrics])
def test_tab_completion_shows_public_names_only(module):
    assert dir(module) == sorted(module.__all__)
