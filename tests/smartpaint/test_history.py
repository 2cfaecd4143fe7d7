"""The undo list: order, what a new step drops, and the memory limit."""

import numpy as np
import pytest

from napari_mamamia.core.box import Box
from napari_mamamia.core.difference import BitChange, Difference
from napari_mamamia.core.edits import Edit, Step
from napari_mamamia.core.errors import CaseError
from napari_mamamia.smartpaint.session.history import History


def step(number):
    """A step of about 8 kB."""
    noise = np.random.default_rng(number).integers(1, 256, (8, 32, 32), dtype=np.uint8)
    change = BitChange.of(noise, Box.whole(noise.shape))
    return Step(number, Edit(f"step {number}"), Difference(1, (change,)))


def filled(n, **settings):
    history = History(**settings)
    for number in range(1, n + 1):
        history.add(step(number))
    return history


def names(history):
    return [edit.name for edit in history.edits]


def test_steps_are_undone_from_the_newest_to_the_oldest():
    history = filled(2)
    assert history.to_undo().same_bits(step(2).difference)
    history.back()
    assert history.to_undo().same_bits(step(1).difference)
    history.back()
    assert not history.can_undo
    assert history.can_redo
    with pytest.raises(CaseError, match="no step to undo"):
        history.to_undo()


def test_a_new_step_drops_the_steps_that_were_undone():
    history = filled(3)
    history.back()
    history.back()
    history.add(step(4))
    assert names(history) == ["step 1", "step 4"]
    assert history.position == 2
    assert not history.can_redo


def test_memory_stays_below_the_limit_and_old_steps_are_read_back():
    asked = []

    def read_back(number):
        asked.append(number)
        return step(number).difference

    history = filled(20, limit_bytes=50_000, read_back=read_back)
    assert history.nbytes <= 50_000
    for number in range(20, 0, -1):
        assert history.to_undo().same_bits(step(number).difference)
        history.back()
    assert asked == list(range(asked[0], 0, -1))
    assert 10 <= asked[0] < 20
    assert history.forgotten == 0


def test_without_a_journal_steps_beyond_the_limit_are_counted_as_forgotten():
    history = filled(10, limit_bytes=50_000)
    undone = 0
    while history.can_undo:
        history.back()
        undone += 1
    assert 0 < undone < 10
    assert history.forgotten == 10 - undone


def test_a_lower_limit_lets_go_at_once():
    history = filled(10)
    assert history.nbytes > 80_000
    history.limit_bytes = 20_000
    assert history.nbytes <= 20_000


def test_memory_stays_below_the_limit_after_undone_steps_were_dropped():
    history = filled(20, limit_bytes=50_000)
    history.read_back = lambda number: step(number).difference
    while history.can_undo:
        history.back()
    for number in range(21, 41):
        history.add(step(number))
    assert history.nbytes <= 50_000


def test_dropping_undone_steps_gives_their_memory_back():
    history = filled(4)
    whole = history.nbytes
    for _ in range(4):
        history.back()
    history.add(step(9))
    assert history.nbytes == pytest.approx(whole / 4, rel=0.05)


def test_new_steps_after_undos_below_the_oldest_held_step_stay_within_the_limit():
    history = filled(20, limit_bytes=50_000, read_back=lambda number: step(number).difference)
    for _ in range(18):
        history.back()
    for number in range(21, 31):
        history.add(step(number))
        assert history.nbytes <= 50_000
    assert history.position == 12
    assert history.to_undo().same_bits(step(30).difference)


def test_a_limit_that_is_just_reached_lets_nothing_go_and_one_byte_less_the_oldest():
    history = filled(4)
    held = history.nbytes
    history.limit_bytes = held
    assert (history.nbytes, history.forgotten) == (held, 0)
    history.limit_bytes = held - 1
    assert history.forgotten == 1
    assert held - 20_000 < history.nbytes < held - 1
