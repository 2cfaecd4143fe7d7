"""Stacks, leakage audit and split: against scikit-learn, the facts' numbers, and invariants."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from napari_mamamia.features.classifiers.scoring.audit import (
    MetadataColumn,
    audit,
    duplicates,
    fisher,
)
from napari_mamamia.features.classifiers.scoring.split import (
    PartShare,
    deal_patients,
    join_patients,
)
from napari_mamamia.features.classifiers.scoring.stacking import (
    ElasticNet,
    StackRules,
    StandardisedColumns,
    deal_folds,
    deviance,
    fit_stack,
)
from napari_mamamia.scoring.classifier.operating import Units


def fit_elastic_net(columns, label, alpha, penalty):
    """Return the model of one penalty."""
    return StandardisedColumns.of(columns, label).path(alpha, (penalty,))[0]


def alone(n):
    return Units(np.arange(n), tuple(f"p{k}" for k in range(n)))


@pytest.fixture(scope="module")
def mixed():
    rng = np.random.default_rng(0)
    columns = rng.normal(size=(300, 5)) * [1, 3, 0.2, 1, 5] + [0, 2, 1, 3, -1]
    chance = expit(columns[:, 0] - 0.3 * columns[:, 1] + 2 * columns[:, 2] - 2)
    return columns, (rng.random(300) < chance).astype(float)


@pytest.mark.parity
@pytest.mark.parametrize("alpha", [0.0, 0.1, 0.55, 1.0])
@pytest.mark.parametrize("penalty", [0.005, 0.1])
def test_the_elastic_net_is_that_of_scikit_learn(mixed, alpha, penalty):
    from sklearn.linear_model import LogisticRegression

    columns, label = mixed
    standard = (columns - columns.mean(axis=0)) / columns.std(axis=0)
    peer = LogisticRegression(
        C=1 / (300 * penalty), l1_ratio=alpha, penalty="elasticnet", solver="saga", tol=1e-10,
        max_iter=20_000,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer.fit(standard, label)
    raw = peer.coef_[0] / columns.std(axis=0)
    own = fit_elastic_net(columns, label, alpha, penalty)
    assert own.coefficients == pytest.approx(raw, abs=1e-7)
    assert own.intercept == pytest.approx(peer.intercept_[0] - raw @ columns.mean(axis=0), abs=1e-7)


def test_a_column_that_is_constant_has_no_coefficient_and_is_named(mixed):
    columns, label = mixed
    with_flat = np.concatenate([columns, np.full((300, 1), 0.7)], axis=1)
    model, plain = (fit_elastic_net(x, label, 0.5, 0.01) for x in (with_flat, columns))
    assert model.constant == (5,)
    assert model.coefficients[5] == 0
    assert model.coefficients[:5] == pytest.approx(plain.coefficients, abs=1e-8)


def test_separable_scores_end_and_stay_finite():
    label = np.repeat([0.0, 1.0], 20)
    model = fit_elastic_net(np.stack([label, -label], axis=1), label, 1.0, 1e-4)
    assert np.isfinite(model.coefficients).all()
    assert model.probability(np.array([[1.0, -1.0]]))[0] > 0.99


@pytest.mark.parametrize("cell", [np.nan, np.inf])
def test_a_score_that_is_no_number_is_refused_and_never_0(mixed, cell):
    columns, label = mixed
    damaged = columns.copy()
    damaged[3, 1] = cell
    with pytest.raises(ValueError, match="leave out these rows"):
        fit_elastic_net(damaged, label, 0.5, 0.1)
    with pytest.raises(ValueError, match="positives and negatives"):
        fit_elastic_net(columns, np.ones(300), 0.5, 0.1)


def test_the_published_ensemble_is_a_stack_of_ours():
    """Exam set without reader of the digital mammography ensemble; scores of 0 and of 1."""
    weights = np.array([3.54244847843, 4.28514789966, .831391586046, -2.77049159808, .445300980695,
                        2.75189801926, 2.23417662743, .652050951546, -1.81844942551,
                        -6.17837633658, 8.8835717166])  # fmt: skip
    model = ElasticNet(-9.39316702699, weights, 0.1, 0.0)
    low, high = model.probability(np.array([np.zeros(11), np.ones(11)]))
    assert low == pytest.approx(1 / (1 + np.exp(9.39316702699)))
    assert high == pytest.approx(1 / (1 + np.exp(9.39316702699 - weights.sum())))


def test_deviance_is_minus_twice_the_log_likelihood():
    found = deviance(np.array([1.0, 0.0, 1.0]), np.array([0.8, 0.25, 0.0]))
    assert found == pytest.approx([-2 * np.log(0.8), -2 * np.log(0.75), -2 * np.log(1e-15)])


def test_folds_keep_a_subject_together_and_spread_each_stratum():
    subjects = Units.of([f"w{k // 2}" for k in range(200)])
    strata = ["1 A" if k % 20 < 2 else "0 B" for k in range(200)]
    folds = deal_folds(subjects, strata, 10, 7)
    assert (folds[::2] == folds[1::2]).all()
    assert set(np.bincount(folds[::2], minlength=10).tolist()) == {10}
    positive = [
        fold for fold, stratum in zip(folds[::2], strata[::2], strict=True) if "1" in stratum
    ]
    assert sorted(positive) == list(range(10))
    with pytest.raises(ValueError, match="at least 10 subjects"):
        deal_folds(alone(9), ["x"] * 9, 10, 7)


def test_scores_of_nothing_but_noise_are_no_better_than_chance_out_of_fold():
    """What a stack in sample would hide: nested folds see that there is nothing."""
    rng = np.random.default_rng(4)
    columns, label = rng.normal(size=(120, 8)), (rng.random(120) < 0.4).astype(float)
    rules = StackRules(n_folds=5, n_inner=3, alphas=(0.55,))
    names = tuple("abcdefgh")
    stack = fit_stack(columns, label, names, alone(120), label.tolist(), rules)
    mean = np.full(120, label.mean())
    assert deviance(label, stack.out_of_fold).mean() > 0.97 * deviance(label, mean).mean()
    assert len(stack.chosen) == 5


def test_a_stack_is_better_than_each_of_two_that_know_different_things():
    rng = np.random.default_rng(2)
    hidden = rng.normal(size=(2, 400))
    label = (rng.random(400) < expit(1.5 * hidden.sum(axis=0))).astype(float)
    rules = StackRules(n_folds=5, n_inner=3, alphas=(0.1, 1.0), one_se=True)
    stack = fit_stack(hidden.T, label, ("a", "b"), alone(400), label.tolist(), rules)
    each = [np.corrcoef(label, one)[0, 1] for one in (*hidden, stack.out_of_fold)]
    assert each[2] > max(each[:2]) + 0.1
    assert (stack.model.coefficients > 0).all()


def test_fisher_gives_the_numbers_of_the_facts():
    ratio, p_value = fisher([[29, 940], [1044, 84860]])
    assert ratio == pytest.approx(2.50768321513, abs=5e-12)
    assert p_value == pytest.approx(2.17457960449881e-05, rel=1e-12)


@pytest.fixture(scope="module")
def audited():
    rng = np.random.default_rng(8)
    label = (rng.random(500) < 0.3).astype(float)
    part = np.where(rng.random(500) < 0.6, 1.0, 0.0)
    ages = np.where(rng.random(500) < 0.5 * label, np.nan, rng.normal(size=500))
    names = tuple(f"{'X' if y else 'Y'}_{k:03d}" for k, y in enumerate(label))
    columns = [
        MetadataColumn("site", None, tuple(rng.choice(list("ABC"), 500))),
        MetadataColumn("spacing", rng.normal(size=500) + 0.8 * label),
        MetadataColumn("field", np.where(rng.random(500) < 0.2 + 0.5 * part, 3.0, 1.5)),
        MetadataColumn("age", ages),
        MetadataColumn("name", None, names),
        MetadataColumn("constant", np.ones(500)),
        MetadataColumn("empty", None, ("",) * 500),
    ]  # fmt: skip
    return audit(columns, [("pcr", label), ("part", part)], alone(500), n_permutations=99)


def test_what_tells_the_label_is_found_with_its_effect_first(audited):
    leaks = {(leak.target, leak.column) for leak in audited.columns if leak.p_holm < 0.05}
    assert leaks == {("pcr", "name (letters)"), ("pcr", "spacing"), ("pcr", "age (missing)"),
                     ("part", "field")}  # fmt: skip
    effects = [leak.effect for leak in audited.columns]
    assert effects == sorted(effects, reverse=True)
    first = audited.columns[0]
    assert (first.column, first.effect, first.test.value) == ("name (letters)", 1.0, "Fisher")
    assert {leak.column for leak in audited.columns} >= {"site", "(order of the rows)"}
    assert not {leak.column for leak in audited.columns} & {"constant", "empty"}


def test_all_columns_together_guess_the_label_with_a_permutation_p(audited):
    label, part = audited.joint
    assert (label.target, label.p_value, label.n) == ("pcr", 0.01, 500)
    assert label.auc > 0.95
    assert 0.6 < part.auc < 0.9


def test_a_label_of_chance_is_not_guessed():
    rng = np.random.default_rng(11)
    columns = [MetadataColumn(f"c{k}", rng.normal(size=300)) for k in range(5)]
    label = (rng.random(300) < 0.5).astype(float)
    found = audit(columns, [("y", label)], alone(300), n_permutations=99)
    assert all(leak.p_holm > 0.05 for leak in found.columns)
    assert found.joint[0].p_value > 0.05


def test_duplicates_are_those_over_parts_or_all():
    values, parts = ["a", "b", "a", "", "", "b"], ["1", "1", "2", "1", "2", "1"]
    assert [one.value for one in duplicates("pixels", values)] == ["a", "b"]
    assert [one.rows for one in duplicates("patient", values, parts)] == [(0, 2)]


STRATA = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xy"), st.sampled_from("1234")),
                  min_size=1, max_size=60)  # fmt: skip
SHARES = st.lists(st.integers(1, 9), min_size=2, max_size=4)


@settings(max_examples=60, deadline=None)
@given(rows=STRATA, shares=SHARES, seed=st.integers(0, 9))
def test_every_stratum_at_every_level_is_within_one_patient_of_its_share(rows, shares, seed):
    parts = [PartShare(f"p{k}", share) for k, share in enumerate(shares)]
    columns = {name: [row[k] for row in rows] for k, name in enumerate(("one", "two", "three"))}
    found = deal_patients(columns, parts, seed)
    exact = np.array(shares) / sum(shares)
    for depth in range(4):
        keys = [row[:depth] for row in rows]
        for key in set(keys):
            inside = found.of_patient[[k == key for k in keys]]
            counts = np.bincount(inside, minlength=len(shares))
            assert (np.abs(counts - inside.size * exact) < 1).all()
    assert sum(found.sizes) == len(rows)


def test_a_split_is_the_same_again_and_another_with_another_seed():
    columns = {"y": [str(k % 2) for k in range(100)]}
    parts = (PartShare("train", 0.5), PartShare("rest", 0.5))
    first, again, other = (deal_patients(columns, parts, seed).of_patient for seed in (1, 1, 2))
    assert (first == again).all()
    assert (first != other).any()


def test_a_patient_of_several_rows_counts_once_with_the_most_frequent_value():
    patients = Units.of(["a", "b", "a", "a"])
    assert join_patients(patients, ["x", "", "y", "y"]) == ("y", "")


def test_a_value_of_a_patient_counts_more_than_any_number_of_empty_cells():
    patients = Units.of(["a", "a", "a", "a", "b", "b", "b", "b", "b"])
    values = ["", "x", "", "", "y", "", "", "x", "x"]
    assert join_patients(patients, values) == ("x", "x")


def test_parts_that_mean_nothing_are_refused():
    columns = {"y": ["0", "1"]}
    for parts in ([PartShare("a", 1)], [PartShare("a", 1), PartShare("b", 0)],
                  [PartShare("a", 1), PartShare("a", 1)]):  # fmt: skip
        with pytest.raises(ValueError, match="part"):
            deal_patients(columns, parts)
    with pytest.raises(ValueError, match="at least one patient"):
        deal_patients({"y": []}, [PartShare("a", 1), PartShare("b", 1)])
