"""The same work on a dask cluster, with workers and schedulers that die."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import closing, suppress

import pytest
from distributed import Client
from tests.stepped import Stepped

from napari_mamamia.core.errors import ClusterError, MissingExtraError
from napari_mamamia.core.records import FailureCause
from napari_mamamia.io.files.append_file import read_checked_lines
from napari_mamamia.services.batch import cluster as batch_cluster
from napari_mamamia.services.batch.batch import run_batch
from napari_mamamia.services.batch.cluster import TaskAnswer
from napari_mamamia.services.batch.output_folder import Existing
from napari_mamamia.services.batch.work import Place

pytest.importorskip("distributed", reason='needs  pip install "napari-mamamia[cluster]"')

LONG_S = 120.0


def until(job, condition):
    """Drive a job until the condition holds; its steps come at least every 0.2 s by contract."""
    end = time.monotonic() + LONG_S
    for _ in job:
        if condition():
            return
        if time.monotonic() > end:
            break
    raise TimeoutError("it did not come to that")


def finish(job):
    return job()


def pid_in(path):
    return int(path.read_text())


@pytest.fixture
def start():
    """Return a function that starts a program of dask; all are ended after the test."""
    programs = []

    def run(*arguments):
        command = [sys.executable, "-m", "distributed.cli.dask_" + arguments[0], *arguments[1:]]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        programs.append(subprocess.Popen(command, start_new_session=True, **quiet))
        return programs[-1]

    yield run
    for program in programs:
        with suppress(ProcessLookupError):
            os.killpg(program.pid, signal.SIGKILL)
        program.wait()


@pytest.fixture
def scheduler(start, tmp_path):
    """Return a running scheduler's process and address on a free port of this machine."""
    file = tmp_path / "scheduler.json"
    options = ("--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", file)
    process = start("scheduler", *map(str, options))
    end = time.monotonic() + LONG_S
    while not file.exists() and time.monotonic() < end:
        time.sleep(0.05)
    return process, json.loads(file.read_text())["address"]


def start_worker(start, address, *options):
    return start("worker", address, "--nthreads", "1", "--no-dashboard", *options)


def test_a_task_stops_early_so_that_a_slow_case_holds_up_no_other(work, cases_of, monkeypatch):
    cases = cases_of("a", "bad_1", "b")
    whole = batch_cluster.work_there(work, cases, None)
    assert [(one.case_id, bool(one.reason)) for one in whole.outcomes] == [
        ("a", False),
        ("bad_1", True),
        ("b", False),
    ]
    monkeypatch.setattr(batch_cluster, "_HOLD_S", 0.0)
    first = batch_cluster.work_there(work, cases, None)
    assert [one.case_id for one in first.outcomes] == ["a"]
    assert first.seconds > 0


@pytest.fixture
def sizes(monkeypatch):
    """The numbers of cases of the tasks that are sent."""
    sent, submit = [], Client.submit

    def note(client, function, *args, **kwargs):
        if function is batch_cluster.work_there:
            sent.append(len(args[1]))
        return submit(client, function, *args, **kwargs)

    monkeypatch.setattr(Client, "submit", note)
    return sent


@pytest.fixture
def unforgiving(monkeypatch):
    """Let the scheduler give up a task at the first worker that dies, for speed."""
    monkeypatch.setenv("DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES", "0")


@pytest.mark.night  # by day: the two tests around
def test_quick_cases_travel_together_and_one_that_ends_its_worker_fails_alone(
    work, cases_of, sizes, unforgiving, scheduler, start
):
    # dask blames the task that waits behind as well, and never hands over one whose result was lost
    start_worker(start, scheduler[1])
    start_worker(start, scheduler[1])
    quick = [f"q{number:03d}" for number in range(260)]
    ids = [*quick[:200], "dies_1", "bad_1", *quick[200:]]
    batch = run_batch(cases_of(*ids), work, Place(scheduler=scheduler[1]))
    assert [row.case_id for row in batch.results] == quick
    reasons = {failure.case_id: failure.cause for failure in batch.failures}
    assert reasons == {"dies_1": FailureCause.WORKER_LOST, "bad_1": FailureCause.ERROR}
    assert max(sizes) > 4
    assert max(sizes) <= 64
    assert sizes[:16] == [1] * 16  # how long a case takes is not known yet


def test_what_a_task_left_undone_is_sent_again(
    work, cases_of, sizes, monkeypatch, scheduler, start
):
    start_worker(start, scheduler[1])
    # answers hold the first case only, as where that one was slow
    ids = [f"q{number:03d}" for number in range(120)]
    monkeypatch.setattr(
        batch_cluster._Run, "_sort_answer", first_only(batch_cluster._Run._sort_answer)
    )
    batch = run_batch(cases_of(*ids), work, Place(scheduler=scheduler[1]))
    assert [row.case_id for row in batch.results] == ids
    assert not batch.failures
    assert sum(sizes) > len(ids)


def first_only(sort):
    def shortened(run, future, answer):
        return sort(run, future, TaskAnswer(answer.outcomes[:1], answer.seconds))

    return shortened


def test_a_running_cluster_does_the_work_and_stays(work, cases_of, scheduler, start):
    process, address = scheduler
    worker = start_worker(start, address)
    place = Place(scheduler=address, time_limit_s=30.0)
    batch = run_batch(cases_of("a", "bad_1", "b"), work, place)
    assert [row.case_id for row in batch.results] == ["a", "b"]
    assert [failure.case_id for failure in batch.failures] == ["bad_1"]
    assert process.poll() is None
    assert worker.poll() is None


def test_when_the_scheduler_dies_the_rest_fails_and_a_resumed_run_does_only_that(
    work, cases_of, notes, scheduler, start, tmp_path
):
    process, address = scheduler
    start_worker(start, address)
    cases, store = cases_of("a", "b", "gate_1", "c"), tmp_path / "results.jsonl"
    job = Stepped(run_batch, cases, work, Place(scheduler=address), store=store)
    until(job, lambda: (notes / "gate_1.1").exists() and len(list(read_checked_lines(store))) >= 2)
    process.kill()
    batch = finish(job)
    assert [row.case_id for row in batch.results] == ["a", "b"]
    assert [failure.case_id for failure in batch.failures] == ["gate_1", "c"]
    assert all(f"the scheduler {address} was lost" in failure.reason for failure in batch.failures)
    (notes / "open").touch()
    again = run_batch(cases, work, store=store, existing=Existing.RESUME)
    assert (len(again.results), again.n_reused) == (4, 2)
    assert not (notes / "a.2").exists()


@pytest.mark.night
def test_a_cancel_ends_the_processes_of_cases_with_a_time_limit(
    work, cases_of, notes, is_running, scheduler, start
):
    start_worker(start, scheduler[1])
    place = Place(scheduler=scheduler[1], time_limit_s=LONG_S)
    job = Stepped(run_batch, cases_of("forever_1", "a"), work, place)
    until(job, (notes / "forever_1.1").exists)
    job.close()
    end = time.monotonic() + LONG_S
    while is_running(pid_in(notes / "forever_1.1")) and time.monotonic() < end:
        time.sleep(0.05)
    assert not is_running(pid_in(notes / "forever_1.1"))


def test_a_node_that_leaves_costs_no_case(work, cases_of, notes, scheduler, start):
    _, address = scheduler
    first = start_worker(start, address, "--no-nanny")
    with closing(
        Stepped(run_batch, cases_of("gate_1", "a"), work, Place(scheduler=address))
    ) as job:
        until(job, (notes / "gate_1.1").exists)
        os.killpg(first.pid, signal.SIGKILL)
        start_worker(start, address, "--no-nanny")
        (notes / "open").touch()
        batch = finish(job)
    assert [row.case_id for row in batch.results] == ["gate_1", "a"]


def test_a_cluster_without_workers_is_not_waited_for_for_ever(work, cases_of, scheduler):
    place = Place(scheduler=scheduler[1], patience_s=1.0)
    batch = run_batch(cases_of("a", "b"), work, place)
    assert [failure.case_id for failure in batch.failures] == ["a", "b"]
    assert "no worker" in batch.failures[0].reason


def test_a_scheduler_that_is_not_there_is_named(work, cases_of):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # a port on which nobody listens
        address = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(ClusterError, match=f"{address}, but .*check the address"):
            run_batch(cases_of("a"), work, Place(scheduler=address, patience_s=1.0))


def test_without_dask_the_error_names_the_extra(work, cases_of, monkeypatch):
    monkeypatch.delitem(sys.modules, "napari_mamamia.services.batch.cluster", raising=False)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingExtraError, match="cluster"):
        run_batch(cases_of("a"), work, Place(scheduler="tcp://127.0.0.1:1"))
