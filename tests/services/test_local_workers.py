"""The same work in several processes of this computer, some of which die or are cancelled."""

import os
import signal
import sys
import time
from contextlib import closing

import pytest
from tests.stepped import Stepped

from napari_mamamia.core.errors import ClusterError
from napari_mamamia.core.program import child_process
from napari_mamamia.core.records import FailureCause
from napari_mamamia.services.batch import child, local_workers
from napari_mamamia.services.batch.batch import run_batch
from napari_mamamia.services.batch.work import Place

LONG_S = 120.0
TWO = Place(workers=2)


def until(job, condition):
    """Drive a job until the condition holds; its steps come at least every 0.2 s by contract."""
    end = time.monotonic() + LONG_S
    for _ in job:
        if condition():
            return
        if time.monotonic() > end:
            break
    raise TimeoutError("the condition never held")


def pids_in(notes, pattern="*.*"):
    return {int(path.read_text()) for path in notes.glob(pattern)}


@pytest.fixture
def chunks(monkeypatch):
    """The ids of the cases that are sent to a process at once."""
    sent, attempt = [], local_workers.attempt_all_in_child

    def note(own_child, work, cases, limit_s):
        sent.append([inputs.case_id for inputs in cases])
        return attempt(own_child, work, cases, limit_s)

    monkeypatch.setattr(local_workers, "attempt_all_in_child", note)
    return sent


def test_two_processes_give_the_results_of_one_and_need_no_dask(
    work, cases_of, notes, monkeypatch, is_running
):
    monkeypatch.setitem(sys.modules, "distributed", None)
    cases = cases_of(*"abcdefgh", "bad_1", "bug_1", "prints_1")
    here = run_batch(cases, work)
    there = run_batch(cases, work, TWO)
    assert repr(there) == repr(here)
    pids = pids_in(notes, "*.2")
    assert len(pids) == 2
    assert os.getpid() not in pids
    assert not any(map(is_running, pids))


def test_no_more_processes_start_than_there_are_cases(work, cases_of, monkeypatch):
    started = []

    class Counted(child.Child):
        def __init__(self, environment):
            started.append(environment["OMP_NUM_THREADS"])
            super().__init__(environment)

    monkeypatch.setattr(local_workers, "Child", Counted)
    run_batch(cases_of("a", "b"), work, Place(workers=100_000))
    assert started == ["1", "1"]


def test_short_cases_are_sent_together_and_shared_evenly_at_the_end(work, cases_of, chunks):
    ids = [f"q{number:03d}" for number in range(200)]
    batch = run_batch(cases_of(*ids), work, TWO)
    assert [row.case_id for row in batch.results] == ids
    sizes = [len(chunk) for chunk in chunks]
    assert sizes[:2] == [1, 1]  # the time of a case is not yet known
    assert max(sizes) > 4
    assert max(sizes) <= 200 // 4  # a quarter of the waiting cases
    assert sizes[-1] == 1


def test_a_case_that_kills_its_process_fails_alone(work, cases_of, chunks, monkeypatch):
    monkeypatch.setattr(local_workers, "_take", lambda waiting, _: take_eight(waiting))
    ids = [f"q{number}" for number in range(6)]
    batch = run_batch(cases_of(*ids[:3], "dies_1", *ids[3:], "dies-once_1"), work, TWO)
    assert len(chunks[0]) == 8
    assert [row.case_id for row in batch.results] == [*ids, "dies-once_1"]
    (failure,) = batch.failures
    assert (failure.case_id, failure.cause) == ("dies_1", FailureCause.WORKER_LOST)
    assert "signal 9" in failure.reason


def take_eight(waiting):
    return [waiting.popleft() for _ in range(min(8, len(waiting)))]


def test_a_killed_process_costs_no_case(work, cases_of, notes):
    cases = cases_of("gate_1", *"abcdef", "gate_2")
    with closing(Stepped(run_batch, cases, work, TWO)) as job:
        until(job, (notes / "gate_1.1").exists)
        os.kill(*pids_in(notes, "gate_1.1"), signal.SIGKILL)
        (notes / "open").touch()
        batch = job()
    assert [row.case_id for row in batch.results] == [case.case_id for case in cases]
    assert (notes / "gate_1.2").exists()


def test_a_case_over_its_time_limit_is_ended_alone(work, cases_of, notes, is_running, monkeypatch):
    monkeypatch.setattr(local_workers, "_take", lambda waiting, _: take_eight(waiting))
    cases = cases_of("a", "forever_1", "b", "c")
    batch = run_batch(cases, work, Place(workers=2, time_limit_s=3.0))
    assert [row.case_id for row in batch.results] == ["a", "b", "c"]
    assert batch.failures[0].cause is FailureCause.TIME_LIMIT
    assert not any(map(is_running, pids_in(notes)))


def test_a_cancel_answers_soon_and_leaves_no_process(work, cases_of, notes, is_running):
    job = Stepped(run_batch, cases_of("forever_1", "forever_2", "a"), work, TWO)
    until(job, lambda: (notes / "forever_1.1").exists() and (notes / "forever_2.1").exists())
    start = time.monotonic()
    job.close()
    assert time.monotonic() - start < LONG_S / 10
    assert not any(map(is_running, pids_in(notes)))
    assert not (notes / "a.1").exists()


def test_a_cancel_while_the_processes_start_leaves_none(work, cases_of, notes, monkeypatch):
    processes, start = [], child_process.start

    def note(*arguments, **options):
        processes.append(start(*arguments, **options))
        return processes[-1]

    monkeypatch.setattr(child_process, "start", note)
    job = Stepped(run_batch, cases_of("a", "b"), work, TWO)
    until(job, lambda: len(processes) == 2)
    job.close()
    assert all(process.poll() is not None for process in processes)


def test_processes_that_cannot_start_are_an_error_of_the_run(work, cases_of, monkeypatch):
    def refuse(*_, **__):
        raise OSError("no more processes")

    monkeypatch.setattr(child_process, "start", refuse)
    with pytest.raises(ClusterError, match="no more processes") as caught:
        run_batch(cases_of("a", "b"), work, TWO)
    assert [remedy.option for remedy in caught.value.remedies] == ["workers"]


def test_steps_come_while_a_case_works(work, cases_of, notes):
    job = Stepped(run_batch, cases_of("gate_1"), work, Place(workers=1))
    next(job)
    assert not (notes / "gate_1.1").exists()  # a step comes before the process has started
    until(job, (notes / "gate_1.1").exists)
    for _ in range(10):
        next(job)
    (notes / "open").touch()
    job()
