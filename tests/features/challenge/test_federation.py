"""Federated training: the numbers of the published code and formulas, and what degenerates."""

import re
from pathlib import Path

import numpy as np
import pytest

from napari_mamamia.features.challenge.scoring.federation import aggregation as rules
from napari_mamamia.features.challenge.scoring.federation.convergence import (
    ConvergenceReading,
    convergence_scores,
)
from napari_mamamia.features.challenge.scoring.federation.times import (
    Collaborator,
    assign_times,
    simulate_round,
)

CASES = [10, 30, 60]
VALUES = np.array([[1.0, 2, 4], [2, 0, 1], [0, 1, 9]])
CLIENTS = [{"layer.weight": row} for row in VALUES]
BEFORE = {"layer.weight": np.ones(3)}
RUNS = [
    (
        [100, 120, 90, 150, 100], [0.10, 0.55, 0.50, 0.72, 0.70],
        [0.1, 0.4755952381, 0.4755952381, 0.5584589947, 0.5584589947], 0.4104761905,
    ),
    (
        [100, 200, 200, 200], [0.1, 0.6, 0.65, 0.9],
        [0.1, 0.5173280423, 0.5425264550, 0.5858465608], 0.3441137566,
    ),
]  # fmt: skip


@pytest.mark.parametrize(("thousands", "dsc", "by_code", "at_ends"), RUNS)
def test_the_convergence_score_has_both_readings(thousands, dsc, by_code, at_ends):
    times = [1000.0 * one for one in thousands]
    assert convergence_scores(times, dsc) == pytest.approx(by_code, abs=5e-11)
    strict = convergence_scores(times, dsc, ConvergenceReading.END_OF_ROUND)
    assert strict[-1] == pytest.approx(at_ends, abs=5e-11)


def test_a_run_of_one_long_round_and_a_negative_first_value():
    assert convergence_scores([700_000], [0.4]).tolist() == [0.4]
    assert convergence_scores([700_000], [0.4], ConvergenceReading.END_OF_ROUND).tolist() == [0]
    assert convergence_scores([1000], [-0.5]) == pytest.approx([-0.5])
    assert len(convergence_scores([600_000, 10_000, 10_000], [0.1, 0.2, 0.3])) == 2


@pytest.mark.parametrize(("times", "dsc"), [([], []), ([1], [1, 2]), ([0], [1]), ([1], [np.nan])])
def test_a_run_that_is_none_is_refused(times, dsc):
    with pytest.raises(ValueError, match="expected"):
        convergence_scores(times, dsc)


def test_simulated_times_are_those_of_the_challenge():
    times = assign_times(3)
    shown = [(t.validation, t.training, t.download, t.upload) for t in times]
    assert [[round(step.mean_s, 4) for step in row] for row in shown] == [
        [10.0698, 5.4782, 216.2549, 430.9536],
        [16.913, 3.1979, 88.8751, 158.7433],
        [11.2222, 1.8026, 47.5022, 52.4386],
    ]
    sizes = [(20, 80), (5, 25), (50, 200)]
    sites = [Collaborator(*size, one) for size, one in zip(sizes, times, strict=True)]
    assert simulate_round(sites, [True, True, True], 0) == pytest.approx(
        [1670.5784730391, 503.5958763587, 1652.7458752950], abs=5e-11
    )
    assert simulate_round(sites, [False, True, False], 1) == pytest.approx(
        [439.0759623317, 586.6128021847, 608.4523338069], abs=5e-11
    )


def mixed(shares):
    return rules.mix_tensors(CLIENTS, shares)["layer.weight"]


def test_federated_averaging_weighs_by_cases():
    assert mixed(rules.case_shares(CASES)) == pytest.approx([0.7, 0.8, 6.1])


def test_clipped_differences_are_cut_at_their_80th_percentile():
    got = rules.clip_and_mix(CLIENTS, rules.case_shares(CASES), BEFORE)["layer.weight"]
    assert got == pytest.approx([0.7, 0.8, 2.26])


def test_a_server_with_momentum_has_the_second_and_third_round_of_the_published_code():
    shares = rules.case_shares(CASES)
    server = rules.MomentumServer().take(CLIENTS, shares)
    assert server.tensors["layer.weight"] == pytest.approx([0.7, 0.8, 6.1])
    later = [{"layer.weight": 0.5 * row + 0.2} for row in VALUES]
    server = server.take(later, shares)
    assert server.tensors["layer.weight"] == pytest.approx([0.55, 0.6, 3.25])
    server = server.take(later, shares)
    assert server.tensors["layer.weight"] == pytest.approx([0.415, 0.42, 0.685])
    plain = [{"running_mean": row} for row in VALUES]
    again = rules.MomentumServer().take(plain, shares).take(plain, shares)
    assert again.tensors["running_mean"] == pytest.approx([0.7, 0.8, 6.1])


def test_losses_after_training_weigh_in_flstar():
    shares = rules.loss_shares(CASES, [0.5, 0.4, 0.3])
    assert shares == pytest.approx([0.142857, 0.342857, 0.514286], abs=5e-7)
    assert mixed(shares) == pytest.approx([0.828571, 0.8, 5.542857], abs=5e-7)


def test_distances_to_the_mean_weigh_by_themselves_and_with_the_cases():
    shares = rules.distance_shares(VALUES)
    assert shares == pytest.approx([0.622426, 0.183066, 0.194508], abs=5e-7)
    both = rules.mix_shares([rules.case_shares(CASES), shares])
    assert both == pytest.approx([0.361213, 0.241533, 0.397254], abs=5e-7)


def test_sanctuary_weighs_by_cases_distance_and_local_dice():
    shares = rules.sanctuary_shares(CASES, VALUES, [0.8, 0.7, 0.9])
    assert shares == pytest.approx([0.272104, 0.274390, 0.453506], abs=5e-7)
    assert mixed(shares) == pytest.approx([0.820884, 0.997713, 5.444360], abs=5e-7)


def test_the_ratio_of_losses_weighs_with_the_cases():
    shares = rules.ratio_shares([-0.6, -0.65, -0.7], [-0.66, -0.65, -0.84])
    assert shares == pytest.approx([0.333333, 0.303030, 0.363636], abs=5e-7)
    both = rules.mix_shares([rules.case_shares(CASES), shares])
    assert both == pytest.approx([0.216667, 0.301515, 0.481818], abs=5e-7)


def test_what_degenerates_never_divides_by_zero():
    at_mean = np.array([[1.0], [0], [2]])
    assert rules.distance_shares(at_mean).tolist() == [1, 0, 0]
    assert rules.distance_shares(np.ones((4, 2))).tolist() == [0.25] * 4
    assert rules.element_shares(np.array([[1.0, 0], [0, 0], [2, 3]]))[:, 0].tolist() == [1, 0, 0]
    rising = np.array([[0.3, 0.3, 0.3], [0.4, 0.3, 0.5]])
    assert rules.pid_shares(CASES, rising, (0.5, 0.3, 0.2)).tolist() == [0.1, 0.3, 0.6]
    assert rules.scale_shares(np.zeros(2)).tolist() == [0.5, 0.5]
    for wrong in ([-1, 2], [np.nan, 1], []):
        with pytest.raises(ValueError, match="expected finite values"):
            rules.case_shares(wrong)


def test_a_fall_of_the_loss_and_its_sum_weigh_as_a_pid_controller():
    losses = np.array([[0.5, 0.4, 0.4], [0.4, 0.4, 0.1]])
    shares = rules.pid_shares(CASES, losses, (0.5, 0.25, 0.25))
    # P .1 .3 .6; D 1/4 0 3/4; I .9 .8 .5 over 2.2
    expected = [0.05 + 0.0625 + 0.225 / 2.2, 0.15 + 0.2 / 2.2, 0.3 + 0.1875 + 0.125 / 2.2]
    assert shares == pytest.approx(expected)


def test_adam_takes_the_mixed_update_as_its_gradient():
    server = rules.AdamServer({"w": np.zeros(1)}, rate=0.1)
    server = server.take([{"w": np.ones(1)}], np.ones(1))
    # m = .1, v = .01: .1 * .1 / (.1 + .001)
    assert server.tensors["w"] == pytest.approx([0.01 / 0.101])


def test_clients_that_are_slow_stay_where_nobody_is_quick():
    assert rules.quick_clients([1, 10, 10]) == (0,)
    assert rules.quick_clients([10, 10]) == (0, 1)


def test_clients_of_other_shapes_are_refused():
    with pytest.raises(ValueError, match="same names and shapes"):
        rules.mix_tensors([*CLIENTS[:2], {"layer.weight": np.ones(2)}], np.ones(3) / 3)


def test_the_example_of_the_page_runs():
    page = Path(__file__).parents[3] / "docs" / "methods" / "federation.md"
    (block,) = re.findall(r"(?s)```python\n(.*?)```", page.read_text("utf-8"))
    exec(block, {})
