"""Full collections while a window is open: none by themselves, one when it is due and asked for."""

import gc
import weakref

import pytest

from napari_mamamia.core.program.garbage import (
    collect_if_due,
    is_set_aside,
    set_aside,
    take_back,
    uncollected,
)

pytestmark = pytest.mark.usefixtures("real_freezing")


class Ring:
    """Something that only a collection frees, since it refers to itself."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture
def thresholds():
    """Own thresholds, which must come back; nothing set aside before or after."""
    assert not is_set_aside()
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 7)
    yield
    take_back()
    gc.set_threshold(*before)


def age_all_that_exists(n_middle):
    for _ in range(n_middle):
        gc.collect(1)


def test_old_garbage_waits_until_it_is_due_and_asked_for(thresholds):
    set_aside()
    gc.collect()
    kept = Ring()
    seen = weakref.ref(kept)
    age_all_that_exists(2)  # now it is among the old, which only a full collection looks at
    del kept
    assert not collect_if_due()
    age_all_that_exists(200)  # Python itself would have made a full one by now
    records = [{"n": [n]} for n in range(100_000)]
    assert len(records) == 100_000
    assert seen() is not None
    assert collect_if_due()
    assert seen() is None
    assert not collect_if_due()


def test_the_thresholds_of_the_process_come_back_even_if_two_windows_set_them_aside(thresholds):
    set_aside()
    set_aside()
    assert gc.get_threshold()[2] > 10**9
    take_back()
    assert gc.get_threshold() == (700, 10, 7)
    take_back()
    assert gc.get_threshold() == (700, 10, 7)


def test_nothing_is_collected_where_nothing_is_set_aside(thresholds):
    age_all_that_exists(50)
    assert not collect_if_due()


def test_what_others_left_out_stays_so_where_no_window_set_anything_aside(thresholds):
    gc.freeze()
    n_before = gc.get_freeze_count()
    take_back()
    # An object that died meanwhile, of another thread of the tests, is no longer counted.
    assert gc.get_freeze_count() > 0.99 * n_before > 0
    set_aside()
    take_back()
    assert gc.get_freeze_count() == 0
    gc.freeze()


@pytest.fixture
def nothing_frozen():
    """The run's own freezing (tests/conftest.py) undone for a test."""
    gc.unfreeze()
    yield
    gc.freeze()


@pytest.mark.usefixtures("nothing_frozen")
def test_what_was_made_uncollected_counts_as_old_and_nothing_is_left_out():
    with uncollected():
        made = [[] for _ in range(50_000)]
    assert gc.isenabled()
    assert gc.get_freeze_count() == 0
    assert any(one is made[0] for one in gc.get_objects(generation=2))


def test_what_is_set_aside_stays_so_through_an_uncollected_block(thresholds):
    set_aside()
    before = gc.get_freeze_count()
    with uncollected():
        made = [[] for _ in range(50_000)]
    assert gc.get_freeze_count() <= before
    assert made


def test_a_small_block_counts_nothing_that_is_left_out(monkeypatch):
    """A look at a study's folder makes few objects; to count a window's takes 40 ms."""
    monkeypatch.setattr(gc, "get_freeze_count", lambda: pytest.fail("counted"))
    with uncollected():
        made = [[] for _ in range(1000)]
    assert gc.isenabled()
    assert made
