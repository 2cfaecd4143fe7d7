"""Cases dealt to readers: balanced, connected, in an order of each one's own."""

from collections import Counter
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from napari_mamamia.core.errors import CaseError
from napari_mamamia.features.review.core.review import ReadingMode, StudyPlan
from napari_mamamia.features.review.rules.assignment import deal_cases, list_reading_order


def deal(n_cases, n_readers, per_case=2, **more):
    mode = more.pop("mode", ReadingMode.INDEPENDENT)
    plan = StudyPlan("s", mode, n_readers=per_case, **more)
    cases = [f"c{n:04d}" for n in range(n_cases)]
    readers = [f"r{n:02d}" for n in range(n_readers)]
    return deal_cases(plan, cases, readers)


@settings(max_examples=40, deadline=None)
@given(
    n_cases=st.integers(1, 40),
    n_readers=st.integers(1, 9),
    per_case=st.integers(1, 4),
    seed=st.integers(0, 99),
)
def test_each_case_has_its_readers_and_loads_differ_by_one(n_cases, n_readers, per_case, seed):
    if per_case > n_readers:
        with pytest.raises(CaseError, match="add readers"):
            deal(n_cases, n_readers, per_case, seed=seed)
        return
    dealt = deal(n_cases, n_readers, per_case, seed=seed)
    by_case = Counter(task.case for task in dealt.tasks)
    assert set(by_case.values()) == {per_case}
    assert len(by_case) == n_cases
    assert len({(task.case, task.reader) for task in dealt.tasks}) == len(dealt.tasks)
    loads = dict(dealt.loads)
    assert max(loads.values()) - min(loads.values()) <= 1
    shared = {(a, b): n for a, b, n in dealt.pairs}
    for a, b in combinations(sorted(loads), 2):
        own = [{t.case for t in dealt.tasks if t.reader == one} for one in (a, b)]
        assert shared[(a, b)] == len(own[0] & own[1])


@pytest.mark.parametrize(("cases", "readers"), [(5, 6), (11, 12), (200, 20), (12, 4)])
def test_all_readers_are_connected_where_there_are_cases_enough(cases, readers):
    assert deal(cases, readers, seed=1).is_connected
    assert not deal(2, 6, seed=1).is_connected


def test_pairs_share_about_as_many_cases_each():
    counts = [n for _, _, n in deal(190, 20, seed=4).pairs]
    assert (min(counts) >= 0, max(counts) <= 3, sum(counts)) == (True, True, 190)


def test_the_same_seed_deals_the_same_and_each_reader_has_an_order_of_its_own():
    assert deal(30, 3, 3, seed=5) == deal(30, 3, 3, seed=5)
    assert deal(30, 3, 3, seed=5) != deal(30, 3, 3, seed=6)
    tasks = deal(30, 3, 3, seed=5).tasks
    orders = {tuple(t.case for t in tasks if t.reader == one) for one in ("r00", "r01", "r02")}
    assert len(orders) == 3
    assert all(list(order) != sorted(order) for order in orders)


def test_hidden_repeats_come_late_and_never_at_once():
    dealt = deal(40, 4, seed=2, repeat_share=0.1)
    assert dealt.n_repeats == tuple((f"r{n:02d}", 2) for n in range(4))
    for reader, load in dealt.loads:
        order = [task for task in dealt.tasks if task.reader == reader]
        assert len(order) == load == 22
        for at, task in enumerate(order):
            if task.occasion:
                first = next(i for i, one in enumerate(order) if one.case == task.case)
                assert order[first].occasion == 0
                assert at - first >= 2
                assert at >= 10


def test_of_second_looks_everybody_is_first_about_as_often():
    dealt = deal(40, 4, seed=3, mode=ReadingMode.SECOND_LOOK)
    looks = list_reading_order(dealt.tasks, ReadingMode.SECOND_LOOK)
    firsts = Counter(readers[0] for readers in looks.values())
    assert all(len(set(readers)) == 2 for readers in looks.values())
    assert max(firsts.values()) - min(firsts.values()) <= 2
    for reader, _ in dealt.loads:
        own = [task for task in dealt.tasks if task.reader == reader]
        seconds = [looks[(task.case, 0)][1] == reader for task in own]
        assert seconds == sorted(seconds), "first looks come before second ones"


def test_a_mode_of_two_readings_takes_no_other_number():
    with pytest.raises(CaseError, match=r"expected 2 readings of a case in mode arbitration"):
        StudyPlan("s", ReadingMode.ARBITRATION, n_readers=3)
    with pytest.raises(CaseError, match="proportion of hidden repeats"):
        StudyPlan("s", repeat_share=0.6)
