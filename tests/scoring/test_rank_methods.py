"""Ranks by every method: worked numbers of challengeR 1.0.5 under R 4.2.2, and rules by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kendalltau, norm, rankdata

from napari_mamamia.core.choices import Correction, RankMethod, RankResampling, RankTies
from napari_mamamia.scoring.ranking.methods import Scorer, rank_cases, weighted_quantile
from napari_mamamia.scoring.ranking.ranking import (
    NamedDraws,
    kendall_tau_b,
    rank_table,
    rank_tables,
)
from napari_mamamia.scoring.ranking.signed_rank import better_p_values, significant_wins
from napari_mamamia.scoring.ranking.table import (
    MissingRule,
    RankingTable,
    RankSettings,
    fill_missing,
)

NAN = float("nan")
WORKED = np.array([[0.9, 0.8, 0.8], [0.5, 0.7, NAN], [0.6, 0.6, 0.2], [0.95, 0.7, 0.9]])
ZERO = MissingRule.of_text("value:0")
THREE = np.array([[0.9, 0.8, 0.7], [0.5, 0.7, 0.6], [0.6, 0.6, 0.2]])


def table(values, **named):
    values = np.asarray(values, dtype=float)
    names = tuple("ABCDEFGH"[: values.shape[1]])
    return RankingTable(names, tuple(f"c{k + 1}" for k in range(len(values))), values, **named)


def ranked(values, **named):
    larger = named.pop("is_larger_better", True)
    rules = RankSettings(**{"n_resamples": 0, **named})
    return rank_table(table(values, is_larger_better=larger), rules)


def by(result, method):
    one = result.by(RankMethod(method))
    return one.scores.tolist(), one.ranks.tolist()


@pytest.mark.parametrize(
    ("ties", "method", "scores", "ranks"),
    [
        ("min", "mean-then-rank", [0.7375, 0.7, 0.475], [1, 2, 3]),
        ("min", "rank-then-mean", [1.25, 1.75, 2.5], [1, 2, 3]),
        ("average", "rank-then-mean", [1.375, 2, 2.625], [1, 2, 3]),
        ("min", "rank-then-median", [1, 1.5, 2.5], [1, 2, 3]),
        ("min", "test-then-rank", [0, 0, 0], [1, 1, 1]),
        ("average", "test-then-rank", [0, 0, 0], [2, 2, 2]),
    ],
)
def test_the_worked_table_has_the_numbers_of_challenger(ties, method, scores, ranks):
    got = by(ranked(WORKED, missing=ZERO, ties=RankTies(ties)), method)
    assert got == (pytest.approx(scores), ranks)


def test_the_ranks_in_each_case_of_the_worked_table_are_those_of_challenger():
    result = ranked(WORKED, missing=ZERO)
    assert result.case_ranks.tolist() == [[1, 2, 2], [2, 1, 3], [1, 1, 3], [1, 3, 2]]
    assert result.filled.tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    ("values", "rule", "ties", "expected"),
    [
        ([0.9, 0.5, 0.5, NAN], "worst-rank-challenger", "min", [1, 2, 2, 3]),
        ([0.9, 0.5, 0.5, NAN], "worst-rank", "min", [1, 2, 2, 4]),
        ([0.9, 0.5, 0.5, NAN], "worst-rank-challenger", "average", [1, 2.5, 2.5, 3.5]),
        ([NAN, NAN, 0.3], "worst-rank-challenger", "min", [2, 2, 1]),
        ([NAN, NAN, 0.3], "worst-rank-challenger", "average", [2.5, 2.5, 1]),
        ([NAN, NAN, NAN], "worst-rank-challenger", "min", [1, 1, 1]),
        ([0.0, 0.5, NAN], "value:0", "min", [2, 1, 2]),
    ],
)
def test_a_missing_value_gets_the_rank_of_its_rule(values, rule, ties, expected):
    rules = RankSettings(missing=MissingRule.of_text(rule), ties=RankTies(ties))
    assert rank_cases(fill_missing(table([values]), rules), rules).tolist() == [expected]


def test_wilcoxon_has_the_p_values_of_r_on_raw_and_on_rounded_differences():
    x, y = [0.9, 0.8, 0.7, 0.6, 0.5, 0.9, 0.85], [0.8, 0.8, 0.6, 0.65, 0.4, 0.7, 0.8]
    ones = np.ones((1, 7), dtype=np.int64)
    values = table(np.transpose([x, y]))
    raw = better_p_values(fill_missing(values, RankSettings(is_exact=True)), ones)[0]
    rounded = better_p_values(fill_missing(values, RankSettings()), ones)[0]
    assert raw[0, 1] == pytest.approx(0.0449432612198919, abs=1e-15)
    assert rounded[0, 1] == pytest.approx(0.0353749335381888, abs=1e-15)
    mirrored = better_p_values(
        fill_missing(
            table(np.transpose([x, y]), is_larger_better=False), RankSettings(is_exact=True)
        ),
        ones,
    )[0]
    assert mirrored[1, 0] == raw[0, 1]


def test_without_a_difference_p_is_1_and_nobody_wins():
    result = ranked([[0.5, 0.5], [0.5, 0.5]])
    assert result.significance[0, 1] == 1
    assert by(result, "test-then-rank") == ([0, 0], [1, 1])


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 30), levels=st.integers(2, 12))
def test_wilcoxon_of_a_resample_is_that_of_its_copies(seed, n, levels):
    rng = np.random.default_rng(seed)
    values = rng.integers(0, levels, (n, 3)) / 10
    drawn = rng.integers(0, n, n)
    weights = np.bincount(drawn, minlength=n)[None]
    got = better_p_values(fill_missing(table(values), RankSettings()), weights)[0]
    apart = np.round(values[drawn, 0] - values[drawn, 1], 10)
    assert got[0, 1] == pytest.approx(_slow_p(apart), abs=1e-12)


def _slow_p(apart):
    apart = apart[apart != 0]
    n = len(apart)
    if not n:
        return 1.0
    places = rankdata(np.abs(apart))
    counts = np.unique(np.abs(apart), return_counts=True)[1]
    sd = np.sqrt(n * (n + 1) * (2 * n + 1) / 24 - (counts**3 - counts).sum() / 48)
    return norm.sf((places[apart > 0].sum() - n * (n + 1) / 4 - 0.5) / sd)


def test_holm_over_all_ordered_pairs_takes_wins_away():
    p = np.full((1, 3, 3), NAN)
    p[0, 0, 1], p[0, 1, 0], p[0, 0, 2], p[0, 2, 0], p[0, 1, 2], p[0, 2, 1] = (
        0.004, 0.99, 0.009, 0.99, 0.03, 0.99)  # fmt: skip
    assert significant_wins(p, 0.05, is_holm=False).tolist() == [[1, 0.5, 0]]
    # .004 <= .05/6 holds, .009 <= .05/5 too, .03 <= .05/4 does not
    assert significant_wins(p, 0.05, is_holm=True).tolist() == [[1, 0, 0]]


@pytest.mark.parametrize(("resampling", "mean_ranks", "ranks"), [
    ("cases", [5 / 3, 5 / 3, 8 / 3], [1, 1, 3]),
    ("challengeR-1.0.5", [5 / 3, 7 / 3, 4], [1, 2, 3]),
])  # fmt: skip
def test_copies_of_a_case_are_cases_of_their_own_and_together_in_the_parity_mode(
    resampling, mean_ranks, ranks
):
    rules = RankSettings(resampling=RankResampling(resampling))
    drawn = NamedDraws((("c1", "c1", "c2"),))
    result = rank_table(table(THREE), rules, drawn)
    assert result.by(RankMethod.RANK_MEAN).stability.ranks.tolist() == [ranks]
    scorer = Scorer(fill_missing(table(THREE), rules), rules)
    got = -scorer.score(RankMethod.RANK_MEAN, np.array([[2, 1, 0]]))[0]
    assert got == pytest.approx(mean_ranks)


@pytest.mark.parametrize("ties", list(RankTies))
@pytest.mark.parametrize("method", ["rank-then-mean", "rank-then-median"])
def test_the_parity_mode_ranks_copies_as_one_case_of_many_values(ties, method):
    rng = np.random.default_rng(4)
    values = rng.integers(0, 5, (6, 4)) / 10
    weights = np.array([[2, 0, 3, 1, 0, 1]])
    rules = RankSettings(ties=ties, resampling=RankResampling.CHALLENGER)
    got = -Scorer(fill_missing(table(values), rules), rules).score(RankMethod(method), weights)[0]
    rows = []
    for case, k in enumerate(weights[0]):
        if k:
            copied = np.repeat(values[case][None], k, axis=0)
            rows.append(rankdata(-copied, method=ties.value).reshape(k, 4))
    places = np.concatenate(rows)
    middle = places.mean(axis=0) if method == "rank-then-mean" else np.median(places, axis=0)
    assert got == pytest.approx(middle)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 25), share=st.sampled_from([0.05, 0.5, 1]))
def test_weighted_quantiles_are_numpys_of_the_copies(seed, n, share):
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 9, (n, 3)) / 4
    weights = rng.integers(0, 4, (5, n))
    weights[:, 0] += 1
    got = weighted_quantile(weights, values, share)
    for row, own in zip(weights, got, strict=True):
        assert own == pytest.approx(np.quantile(np.repeat(values, row, axis=0), share, axis=0))


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), m=st.integers(2, 7))
def test_tau_b_is_scipys_and_nan_where_all_are_equal(seed, m):
    rng = np.random.default_rng(seed)
    full, draws = rng.integers(1, m + 1, m).astype(float), rng.integers(1, m + 1, (4, m)) * 1.0
    for got, row in zip(kendall_tau_b(full, draws), draws, strict=True):
        expected = kendalltau(full, row).statistic
        assert got == pytest.approx(expected, nan_ok=True)


def test_every_method_agrees_with_ranking_each_resample_anew():
    rng = np.random.default_rng(2)
    values = rng.integers(0, 12, (14, 4)) / 12
    names = [f"c{k + 1}" for k in range(14)]
    rows = tuple(tuple(names[k] for k in rng.integers(0, 14, 14)) for _ in range(25))
    for correction in Correction:
        rules = RankSettings(correction=correction)
        result = rank_table(table(values), rules, NamedDraws(rows))
        for place, row in enumerate(rows):
            copies = values[[names.index(name) for name in row]]
            anew = ranked(copies, correction=correction)
            for one in result.methods:
                expected = anew.by(one.method).ranks
                assert one.stability.ranks[place].tolist() == expected.tolist(), one.method


def test_stability_says_shares_intervals_and_undefined_tau():
    rows = tuple([("c1",) * 4] * 3 + [("c2",) * 4])
    one = rank_table(table([[0.9, 0.1], [0.2, 0.3]]), RankSettings(), NamedDraws(rows))
    stable = one.by(RankMethod.MEAN).stability
    assert stable.first.tolist() == [0.75, 0.25]
    assert stable.wins[0, 1] == 0.75
    assert stable.wins[1, 0] == 0.25
    assert (stable.kendall.median, stable.kendall.undefined) == (1, 0)
    # type 7 of 1 1 1 2: the 97.5 % quantile is 1 + (3 * .975 - 2)
    assert (stable.low[0], stable.high[0]) == (1, pytest.approx(1.925))
    equal = rank_table(table([[0.5, 0.5]]), RankSettings(), NamedDraws((("c1",), ("c1",))))
    assert equal.by(RankMethod.MEAN).stability.kendall.undefined == 2
    assert equal.by(RankMethod.MEAN).stability.first.tolist() == [1, 1]


def test_values_that_rounding_parts_tie_unless_floats_count():
    values = [[0.3, 0.1 + 0.2], [0.3, 0.1 + 0.2]]
    assert by(ranked(values), "mean-then-rank")[1] == [1, 1]
    assert by(ranked(values, is_exact=True), "mean-then-rank")[1] == [2, 1]
    assert by(ranked(values, is_exact=True), "rank-then-mean")[1] == [2, 1]


def test_smaller_is_better_mirrors_every_method():
    rng = np.random.default_rng(8)
    values = rng.normal(size=(30, 5))
    up, down = ranked(values), ranked(-values, is_larger_better=False)
    for one in up.methods:
        assert one.ranks.tolist() == down.by(one.method).ranks.tolist()
    assert down.by(RankMethod.MEAN).scores == pytest.approx(-up.by(RankMethod.MEAN).scores)
    assert down.by(RankMethod.Q05).scores == pytest.approx(-up.by(RankMethod.Q05).scores)
    assert down.by(RankMethod.RANK_MEAN).scores == pytest.approx(up.by(RankMethod.RANK_MEAN).scores)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    rule=st.sampled_from(["value:0", "worst-rank", "worst-rank-challenger"]),
    method=st.sampled_from(["mean", "median", "q05"]),
)
def test_leaving_cases_out_never_raises_a_score_or_an_aggregated_rank(seed, rule, method):
    rng = np.random.default_rng(seed)
    values = rng.random((9, 4))
    named = {"missing": MissingRule.of_text(rule)}
    before = ranked(values, **named).by(RankMethod(f"{method}-then-rank"))
    values[rng.random(9) < 0.4, 0] = NAN
    after = ranked(values, **named).by(RankMethod(f"{method}-then-rank"))
    assert after.ranks[0] >= before.ranks[0]
    assert np.isnan(after.scores[0]) or after.scores[0] <= before.scores[0] + 1e-12


def test_a_value_is_never_missing_without_a_rule():
    with pytest.raises(ValueError, match=r"values of C \(1\) are missing, for example for c2"):
        ranked(WORKED)
    with pytest.raises(ValueError, match="no case has a value"):
        ranked([[NAN, 1.0], [1.0, NAN]], missing=MissingRule.of_text("drop-case"))


def test_dropped_cases_are_named_and_count_for_nobody():
    result = ranked(WORKED, missing=MissingRule.of_text("drop-case"))
    assert (result.dropped, result.filled.tolist()) == (("c2",), [0, 0, 0])
    assert by(result, "mean-then-rank")[0] == pytest.approx([2.45 / 3, 0.7, 1.9 / 3])


def test_one_algorithm_and_one_case_rank_first():
    only = rank_table(table([[0.4]]), RankSettings(n_resamples=10, covering=True))
    for one in only.methods:
        assert one.ranks.tolist() == [1]
        assert one.stability.kendall.undefined == 10
    pair = rank_table(table([[0.4, 0.5]]), RankSettings(n_resamples=10))
    assert by(pair, "mean-then-rank")[1] == [2, 1]


def test_the_lead_hangs_on_the_cases_in_which_it_is_largest():
    values = [[0.9, 0.5], [0.8, 0.7], [0.5, 0.6], [0.5, 0.6]]
    (by_mean,) = ranked(values).lead_changes
    # .4 + .1 - .1 - .1: without the first case -.1 is left
    assert (by_mean.leader, by_mean.challenger, by_mean.cases) == ("A", "B", ("c1",))
    assert ranked([[0.9, 0.5], [0.8, 0.7]]).lead_changes == ()


def test_the_composite_is_asked_for_each_resample_with_weights_of_all_cases():
    seen = []

    def composite(weights):
        seen.append(weights)
        return np.stack([weights[:, 0], weights[:, 3]], axis=1) * 1.0

    values = [[0.9, 0.5], [0.8, NAN], [0.5, 0.6], [0.5, 0.6]]
    rules = RankSettings(missing=MissingRule.of_text("drop-case"))
    drawn = NamedDraws((("c1", "c4", "c4"),))
    result = rank_table(table(values), rules, drawn, composite)
    assert [row.tolist() for row in seen] == [[[1, 0, 1, 1]], [[1, 0, 0, 2]]]
    own = result.by(RankMethod.COMPOSITE)
    assert (own.ranks.tolist(), own.stability.ranks.tolist()) == ([1, 1], [[2, 1]])


def test_covering_intervals_hold_the_true_rank_in_95_percent_of_cohorts():
    rng = np.random.default_rng(3)
    truth = np.array([0.5, 0.5, 0.45, 0.3])
    held = 0
    for seed in range(60):
        values = truth + rng.normal(0, 0.2, (60, 1)) + rng.normal(0, 0.15, (60, 4))
        rules = RankSettings(
            methods=(RankMethod.MEAN,), n_resamples=200, seed=seed, covering=True)  # fmt: skip
        covering = rank_table(table(values), rules).by(RankMethod.MEAN).covering.simultaneous
        # the first two share ranks 1 and 2
        inside = covering[0, 0] == 1 == covering[1, 0] and covering[0, 1] >= 2 <= covering[1, 1]
        held += bool(inside and covering[2, 0] <= 3 <= covering[2, 1] and covering[3, 1] == 4)
    assert held >= 54


def test_tables_together_average_their_ranks_and_sites_count_equally():
    one = table([[0.9, 0.5, 0.1]], site="X", metric="dsc")
    two = table([[0.1, 0.9, 0.5]], site="Y", metric="dsc")
    three = table([[0.1, 0.9, 0.5]], site="Y", metric="nsd")
    result = rank_tables([one, two, three], RankSettings(n_resamples=5))
    overall = result.overall.methods[0]
    assert overall.scores.tolist() == [2, 1.5, 2.5]
    assert overall.ranks.tolist() == [2, 1, 3]
    assert overall.stability.ranks.shape == (5, 3)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ((), "has no rows"),
        (((),), "row 1, but found none"),
        ((("c1", "c9"),), "row 1 of the resamples names case 'c9'"),
    ],
)
def test_draws_that_name_no_case_are_refused(rows, said):
    with pytest.raises(ValueError, match=said):
        rank_tables([table(THREE)], RankSettings(), NamedDraws(rows))


@pytest.mark.parametrize(
    ("names", "cases", "values", "said"),
    [
        (("A", "A"), ("c1",), [[1, 2]], "'A' 2 times"),
        (("A",), ("c1", "c1"), [[1], [2]], "'c1' 2 times"),
        (("A",), ("c1",), [[np.inf]], "infinite value for case c1 of A"),
        ((), ("c1",), np.zeros((1, 0)), "shape"),
        (("A",), (), np.zeros((0, 1)), "shape"),
    ],
)
def test_a_table_that_cannot_be_ranked_is_refused(names, cases, values, said):
    with pytest.raises(ValueError, match=said):
        RankingTable(names, cases, np.asarray(values, dtype=float))


@pytest.mark.parametrize(
    "text", ["value", "value:", "value:nan", "value:inf", "best", "drop-case:1"]
)
def test_a_rule_for_missing_values_that_is_none_is_refused(text):
    with pytest.raises(ValueError, match="or one of"):
        MissingRule.of_text(text)
