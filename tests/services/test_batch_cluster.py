"""The same work in worker processes and on a dask cluster, with workers and schedulers that die."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import closing, suppress
from threading import Event

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


def test_there_are_never_more_workers_than_cases(work, cases_of, monkeypatch):
    asked = []

    def start(workers, _folder):
        asked.append(workers)
        raise OSError("seen")

    monkeypatch.setattr(batch_cluster, "_start_workers", start)
    with pytest.raises(ClusterError):
        run_batch(cases_of("a", "b"), work, Place(workers=100_000))
    assert asked == [2]


def test_workers_that_do_not_start_are_given_up(work, cases_of, monkeypatch):
    ended = Event()
    monkeypatch.setattr(batch_cluster, "_start_workers", lambda *_: ended.wait(LONG_S))
    with pytest.raises(
        ClusterError, match=r"2 worker processes to start within 0\.2 s, but none started"
    ):
        run_batch(cases_of("a", "b"), work, Place(workers=2, patience_s=0.2))
    ended.set()


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


def test_two_workers_give_what_one_process_gives(work, cases_of, notes):
    cases = cases_of(*"abcdefgh", "bad_1", "bug_1")
    here = run_batch(cases, work)
    there = run_batch(cases, work, Place(workers=2))
    assert repr(there) == repr(here)
    assert os.getpid() not in {pid_in(path) for path in notes.glob("*.2")}


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


@pytest.mark.night  # by day: the two tests around
def test_quick_cases_travel_together_and_one_that_ends_its_worker_fails_alone(
    work, cases_of, sizes, monkeypatch
):
    # dask blames the task that waits behind as well, and never hands over one whose result was lost
    monkeypatch.setattr(batch_cluster, "_DEATHS_FORGIVEN", 0)  # for speed
    quick = [f"q{number:03d}" for number in range(260)]
    ids = [*quick[:200], "dies_1", "bad_1", *quick[200:]]
    batch = run_batch(cases_of(*ids), work, Place(workers=2))
    assert [row.case_id for row in batch.results] == quick
    reasons = {failure.case_id: failure.cause for failure in batch.failures}
    assert reasons == {"dies_1": FailureCause.WORKER_LOST, "bad_1": FailureCause.ERROR}
    assert max(sizes) > 4
    assert max(sizes) <= 64
    assert sizes[:16] == [1] * 16  # how long a case takes is not known yet


def test_what_a_task_left_undone_is_sent_again(work, cases_of, sizes, monkeypatch):
    # answers hold the first case only, as where that one was slow
    ids = [f"q{number:03d}" for number in range(120)]
    monkeypatch.setattr(
        batch_cluster._Run, "_sort_answer", first_only(batch_cluster._Run._sort_answer)
    )
    batch = run_batch(cases_of(*ids), work, Place(workers=1))
    assert [row.case_id for row in batch.results] == ids
    assert not batch.failures
    assert sum(sizes) > len(ids)


def first_only(sort):
    def shortened(run, future, answer):
        return sort(run, future, TaskAnswer(answer.outcomes[:1], answer.seconds))

    return shortened


def test_a_killed_worker_costs_no_case(work, cases_of, notes):
    cases = cases_of("gate_1", *"abcdef", "gate_2")
    with closing(Stepped(run_batch, cases, work, Place(workers=2))) as job:
        until(job, (notes / "gate_1.1").exists)
        os.kill(pid_in(notes / "gate_1.1"), signal.SIGKILL)
        (notes / "open").touch()
        batch = finish(job)
    assert [row.case_id for row in batch.results] == [case.case_id for case in cases]
    assert (notes / "gate_1.2").exists()


def test_workers_end_a_case_over_its_time_limit(work, cases_of, notes, is_running):
    cases = cases_of("a", "forever_1", "b", "c")
    batch = run_batch(cases, work, Place(workers=2, time_limit_s=3.0))
    assert [row.case_id for row in batch.results] == ["a", "b", "c"]
    assert "time limit of 3 s" in batch.failures[0].reason
    assert not any(is_running(pid_in(path)) for path in notes.iterdir())


@pytest.mark.parametrize("limit_s", [None, pytest.param(30.0, marks=pytest.mark.night)])
def test_a_cancel_answers_soon_and_leaves_no_process(work, cases_of, notes, is_running, limit_s):
    job = Stepped(run_batch, cases_of("forever_1", "forever_2", "a"), work, Place(2, "", limit_s))
    until(job, lambda: (notes / "forever_1.1").exists() and (notes / "forever_2.1").exists())
    job.close()
    end = time.monotonic() + LONG_S
    pids = [pid_in(path) for path in notes.glob("forever*")]
    while any(map(is_running, pids)) and time.monotonic() < end:
        time.sleep(0.05)
    assert not any(map(is_running, pids))


def test_a_cancel_while_the_workers_start_answers_soon(work, cases_of):
    job = Stepped(run_batch, cases_of("a"), work, Place(workers=2))
    next(job)
    job.close()
    assert next(job, "over") == "over"


@pytest.mark.night  # by day: `until` waits for them in every test
def test_steps_come_often_while_workers_start_and_work(work, cases_of, notes):
    job = Stepped(run_batch, cases_of("gate_1"), work, Place(workers=1))
    next(job)
    assert not (notes / "gate_1.1").exists()  # a step came before there was a worker
    until(job, (notes / "gate_1.1").exists)
    for _ in range(10):  # the case waits at its gate, yet steps come
        next(job)
    (notes / "open").touch()
    finish(job)


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


@pytest.mark.night  # by day: a killed worker, above
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
        run_batch(cases_of("a"), work, Place(workers=2))


@pytest.mark.parametrize("stranger", ["without a certificate", "with one of its own"])
def test_only_this_run_can_talk_to_its_local_workers(stranger):
    from distributed import Client
    from distributed.security import Security

    from napari_mamamia.services.batch.cluster import connection

    with connection(Place(workers=1)) as opening:
        ours = opening.result(LONG_S)
        address = ours.scheduler.address
        assert ours.submit(abs, -3).result(LONG_S) == 3
        if stranger == "with one of its own":
            options = {"address": address, "security": Security.temporary()}
        else:
            options = {"address": address.replace("tls://", "tcp://")}
        with pytest.raises(OSError):
            Client(**options, timeout=3, set_as_default=False)


def test_without_cryptography_the_error_names_the_extra(work, cases_of, monkeypatch):
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(MissingExtraError, match=r"cryptography.*cluster"):
        run_batch(cases_of("a"), work, Place(workers=1))
