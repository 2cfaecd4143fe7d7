"""Ranks over sites by the published rules."""

import numpy as np
import pytest

from napari_mamamia.core.choices import SiteRule
from napari_mamamia.features.challenge.scoring.sites import (
    describe_sites,
    rank_sites,
)
from napari_mamamia.scoring.ranking.table import RankingTable

NAN = float("nan")
NAMES = ("deepmedic", "deepscan", "nnunet")
EXAMPLE = {
    "Dice_WT": ([0.5, 0.45, 0.4], [0.98, 0.63, 0.31]),
    "Hausdorff95_WT": ([8, 12, 9], [2, 6.1, 6]),
    "Dice_TC": ([0.7, 0.85, 0.7], [0.31, 0.23, 0.56]),
    "Hausdorff95_TC": ([2, 5, 6], [5, 4.2, 11]),
    "Dice_ET": ([0.54, 0.2, 0.12], [0.45, 0.65, 0.98]),
    "Hausdorff95_ET": ([14, 22, 16], [1, 9.1, 1]),
}
"""Numbers of Task_2/ranking/example_data.yaml (FeTS-AI/Challenge, 1c122653): one site, 2 cases."""


def table(values, site="", metric="", larger=True, names=NAMES):
    cases = tuple(f"{site}{k}" for k in range(len(values)))
    return RankingTable(names, cases, np.array(values, float), larger, "", metric, site)


def example():
    return [table(rows, "1", metric, metric.startswith("Dice")) for metric, rows in EXAMPLE.items()]


@pytest.mark.parametrize(
    ("rule", "ranks"), [("fets-2022", [1, 2, 2]), ("fets-2022-R", [1, 2.5, 2.5])]
)
def test_the_challenges_example_has_the_ranks_of_its_python_and_its_r(rule, ranks):
    got = rank_sites(example(), SiteRule(rule))
    assert got.mean_ranks == pytest.approx([7 / 6, 2, 2])
    assert got.ranks.tolist() == ranks


def test_a_missing_value_is_last_in_one_rule_and_ties_a_true_zero_in_the_other():
    rows = [[0.5, 0.0, NAN]]
    names = ("a", "b", "c")
    last = rank_sites([table(rows, "X", names=names)], SiteRule.FETS_2022)
    zero = rank_sites([table(rows, "X", names=names)], SiteRule.FETS_2022_R)
    assert last.mean_ranks.tolist() == [1, 2, 3]
    assert zero.mean_ranks.tolist() == [1, 2, 2]
    far = rank_sites([table([[5, 1000, NAN]], "X", larger=False)], SiteRule.FETS_2022_R)
    assert far.mean_ranks.tolist() == [1, 2, 2]


def test_sites_count_equally_but_in_brats_cases_do():
    # At X, 2 cases, a is first; at Y and Z, 1 case each, b is.
    tables = [
        table([[0.9, 0.1]] * 4, "X", names=("a", "b")),
        table([[0.1, 0.9]], "Y", names=("a", "b")),
        table([[0.1, 0.9]], "Z", names=("a", "b")),
    ]
    assert rank_sites(tables).mean_ranks == pytest.approx([5 / 3, 4 / 3])
    pooled = rank_sites(tables, SiteRule.BRATS)
    assert pooled.mean_ranks == pytest.approx([8 / 6, 10 / 6])
    assert pooled.ranks.tolist() == [1, 2]
    assert rank_sites(tables).ranks.tolist() == [2, 1]


def test_the_page_of_2021_does_not_rank_a_sites_mean_ranks_again():
    # mean case ranks at X: 5/3 4/3 3; at Y: 1 3 2
    tables = [
        table([[0.5, 0.9, 0.1], [0.5, 0.9, 0.1], [0.9, 0.5, 0.1]], "X"),
        table([[0.9, 0.1, 0.5]], "Y"),
    ]
    page = rank_sites(tables, SiteRule.FETS_2021_PAGE)
    assert page.mean_ranks == pytest.approx([4 / 3, 13 / 6, 2.5])
    assert rank_sites(tables).mean_ranks.tolist() == [1.5, 2, 2.5]


def test_worst_site_spread_and_ranks_without_each_site_are_told():
    tables = [
        table([[0.9, 0.5, 0.1]] * 12, "X", "dsc"),
        table([[0.2, 0.6, NAN]] * 12, "Y", "dsc"),
        table([[0.2, 0.6, 0.3]] * 3, "Z", "dsc"),
    ]
    sites = describe_sites(tables)
    assert sites.small == ("Z",)
    (means,) = sites.means
    assert means.means[1] == pytest.approx([0.2, 0.6, NAN], nan_ok=True)
    assert means.worst.tolist() == [1, 0, 0]
    assert means.spread == pytest.approx([0.7, 0.1, 0.2])
    assert means.n.tolist() == [[12, 12, 12], [12, 12, 0], [3, 3, 3]]
    left = dict(sites.left_out)
    # without X: b 1 1, a 2 3, c 3 2
    assert left["X"].ranks.tolist() == [2, 1, 2]
    without_small = describe_sites(tables, smallest=10)
    assert dict(without_small.left_out).keys() == {"X", "Y"}
    assert len(without_small.means[0].sites) == 3
    assert describe_sites([table([[1, 2, 3]])]) is None
