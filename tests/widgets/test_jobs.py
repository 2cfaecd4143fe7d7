import subprocess
import sys
import threading
import time

import pytest
from qtpy.QtCore import QTimer

from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.progress import Progress, report_progress
from napari_mamamia.widgets.base.jobs import JobRunner
from napari_mamamia.widgets.base.notify import Failed, Finished, Level, Notifier, Stopped


@pytest.fixture
def notifier(qtbot):
    return Notifier()


@pytest.fixture
def said(notifier, monkeypatch):
    """What the user reads, with its level; a box of napari's is none here."""
    lines = []
    monkeypatch.setattr("napari_mamamia.widgets.base.notify.show_error", lambda text: None)
    notifier.said.connect(lambda level, text: lines.append((level, text)))
    return lines


@pytest.fixture
def runner(notifier):
    jobs = JobRunner(notifier)
    yield jobs
    jobs.cancel_all()
    assert jobs.wait(60)


def into(outcomes):
    """Write down which of the three things became of a job."""
    return {
        "then": lambda result: outcomes.append(Finished(result)),
        "failed": lambda error: outcomes.append(Failed(error)),
        "stopped": lambda: outcomes.append(Stopped()),
    }


def steps(n, result="done"):
    for k in range(n + 1):
        report_progress(k, n, f"step {k}")
    return result


def endless(closed):
    """A job that ends only by being stopped; says in which thread it was closed."""
    try:
        k = 0
        while True:
            k = min(k + 1, 99)
            time.sleep(0.001)
            report_progress(k, 100)
    finally:
        closed.append(threading.current_thread().name)


def test_a_finished_job_delivers_its_result_once(qtbot, runner):
    outcomes = []
    runner.start("lane", "Work", lambda: steps(3), **into(outcomes))
    qtbot.waitUntil(lambda: len(outcomes) == 1)
    qtbot.wait(20)
    assert outcomes == [Finished("done")]
    assert not runner.is_running("lane")


def test_progress_ends_at_the_total(qtbot, runner):
    seen, outcomes = [], []
    runner.start("lane", "Work", lambda: steps(5), **into(outcomes), on_progress=seen.append)
    qtbot.waitUntil(lambda: bool(outcomes))
    assert seen[-1] == Progress(5, 5, "step 5")


def test_the_outcome_is_delivered_in_the_gui_thread(qtbot, runner):
    threads = []
    runner.start(
        "lane", "Work", lambda: steps(1), lambda _: threads.append(threading.current_thread())
    )
    qtbot.waitUntil(lambda: bool(threads))
    assert threads == [threading.main_thread()]


def test_the_job_itself_runs_in_another_thread(qtbot, runner):
    threads, outcomes = [], []
    runner.start(
        "lane",
        "Work",
        lambda: threads.append(threading.current_thread()),
        **into(outcomes),
    )
    qtbot.waitUntil(lambda: bool(outcomes))
    assert threads[0] is not threading.main_thread()


def test_cancel_delivers_stopped_and_closes_the_job_in_its_own_thread(qtbot, runner):
    closed, outcomes, seen = [], [], []
    runner.start(
        "lane", "Endless", lambda: endless(closed), **into(outcomes), on_progress=seen.append
    )
    qtbot.waitUntil(lambda: bool(seen))
    runner.cancel("lane")
    assert outcomes == [Stopped()]
    qtbot.waitUntil(lambda: bool(closed))
    assert closed == ["job Endless"]
    qtbot.wait(20)
    assert outcomes == [Stopped()]


def held(gate, is_binding):
    """A job that waits at its last step, told to be binding or not."""
    report_progress(0, 2)
    report_progress(1, 2, "Saving", binding=is_binding)
    gate.wait(60)
    report_progress(2, 2)
    return "saved"


@pytest.mark.parametrize("is_binding", [True, False])
def test_who_stops_a_job_that_writes_comes_too_late_and_gets_its_result(qtbot, runner, is_binding):
    gate, outcomes, seen = threading.Event(), [], []
    runner.start(
        "lane",
        "Save",
        lambda: held(gate, is_binding),
        **into(outcomes),
        on_progress=seen.append,
    )
    # progress is told every 50 ms only, so the last step may not be: the bound worker says it
    qtbot.waitUntil(lambda: bool(seen))
    worker = next(iter(runner._workers.values()))
    qtbot.waitUntil(lambda: worker._is_bound == is_binding)
    runner.cancel("lane")
    assert outcomes == ([] if is_binding else [Stopped()])
    assert runner.is_running("lane") == is_binding
    gate.set()
    qtbot.waitUntil(lambda: bool(outcomes) and not runner._workers)
    assert outcomes == ([Finished("saved")] if is_binding else [Stopped()])


def test_a_job_that_writes_and_the_one_that_follows_it_both_give_their_results(qtbot, runner):
    gate, outcomes, later = threading.Event(), [], []
    runner.start("lane", "Save", lambda: held(gate, True), **into(outcomes))
    worker = next(iter(runner._workers.values()))
    qtbot.waitUntil(lambda: worker._is_bound)
    runner.start("lane", "Work", lambda: steps(1), **into(later))
    qtbot.waitUntil(lambda: bool(later))
    assert outcomes == []
    gate.set()
    qtbot.waitUntil(lambda: bool(outcomes))
    assert (outcomes, later) == ([Finished("saved")], [Finished("done")])


def test_a_lane_is_usable_again_after_cancel_and_after_failure(qtbot, runner):
    outcomes = []

    def failing():
        report_progress(0, 1)
        raise CaseError("phase 3 is missing")

    runner.start("lane", "Endless", lambda: endless([]), **into(outcomes))
    runner.cancel("lane")
    runner.start("lane", "Failing", failing, **into(outcomes))
    qtbot.waitUntil(lambda: len(outcomes) == 2)
    runner.start("lane", "Work", lambda: steps(1), **into(outcomes))
    qtbot.waitUntil(lambda: len(outcomes) == 3)
    assert isinstance(outcomes[1], Failed)
    assert outcomes[2] == Finished("done")


def test_a_failed_job_delivers_its_error(qtbot, runner):
    outcomes = []

    def failing():
        report_progress(0, 1)
        raise CaseError("phase 3 is missing")

    runner.start("lane", "Work", failing, **into(outcomes))
    qtbot.waitUntil(lambda: bool(outcomes))
    assert str(outcomes[0].error) == "phase 3 is missing"


def test_a_job_that_cannot_even_be_made_fails_like_any_other(qtbot, runner):
    outcomes = []

    def broken():
        raise CaseError("no such case")

    runner.start("lane", "Work", broken, **into(outcomes))
    qtbot.waitUntil(lambda: bool(outcomes))
    assert isinstance(outcomes[0], Failed)


def test_only_the_newest_answer_of_a_lane_counts(qtbot, runner):
    let_go = threading.Event()
    old, new = [], []

    def slow():
        report_progress(0, 1)
        let_go.wait(60)
        return "old"

    runner.start("lane", "Old", slow, **into(old))
    runner.start("lane", "New", lambda: steps(1, "new"), **into(new))
    qtbot.waitUntil(lambda: bool(new))
    let_go.set()
    qtbot.waitUntil(lambda: runner.wait(0))
    qtbot.wait(20)
    assert old == [Stopped()]
    assert new == [Finished("new")]


def test_a_result_that_comes_after_its_request_was_stopped_is_discarded(qtbot, runner):
    """It may hold a file open: nobody else would ever let go of it."""
    gate, begun, ends, discarded = threading.Event(), threading.Event(), [], []

    def at_its_end():
        begun.set()
        gate.wait(60)
        return "result"

    runner.start("a", "t", at_its_end, **into(ends), discard=discarded.append)
    assert begun.wait(60)
    runner.cancel("a")
    assert isinstance(ends[0], Stopped)
    gate.set()
    qtbot.waitUntil(lambda: discarded == ["result"])
    assert len(ends) == 1


def test_lanes_do_not_stop_each_other(qtbot, runner):
    first, second = [], []
    runner.start("one", "Work", lambda: steps(3), **into(first))
    runner.start("two", "Work", lambda: steps(3), **into(second))
    qtbot.waitUntil(lambda: bool(first and second))
    assert first == second == [Finished("done")]


def test_the_event_loop_runs_while_a_job_runs(qtbot, runner):
    beats = []
    timer = QTimer()
    timer.setInterval(5)
    timer.timeout.connect(lambda: beats.append(True))
    timer.start()
    outcomes = []

    def busy():
        for k in range(400):
            total = sum(range(20_000))
            report_progress(k, 400, str(total))

    runner.start("lane", "Busy", busy, **into(outcomes))
    qtbot.waitUntil(lambda: bool(outcomes), timeout=20_000)
    timer.stop()
    assert len(beats) > 5


def test_a_job_that_ends_after_its_runner_is_gone_does_no_harm(qtbot):
    let_go = threading.Event()

    def slow():
        report_progress(0, 1)
        let_go.wait(60)

    runner = JobRunner(Notifier())
    runner.start("lane", "Slow", slow, lambda _: None)
    thread = next(t for t in threading.enumerate() if t.name == "job Slow")
    runner.cancel_all()
    runner.deleteLater()
    qtbot.wait(60)
    let_go.set()
    thread.join(5)
    assert not thread.is_alive()


def test_a_job_that_ends_after_the_program_let_go_of_qt_s_objects_breaks_nothing(monkeypatch):
    """As at the end of the program, which waits for no job."""
    sip = pytest.importorskip("PyQt6.sip")
    broken, let_go = [], threading.Event()
    monkeypatch.setattr(threading, "excepthook", broken.append)

    def slow():
        let_go.wait(60)
        report_progress(1, 1)

    runner = JobRunner(Notifier())
    runner.start("lane", "Slow", slow, lambda _: None)
    (worker,) = runner._workers.values()
    sip.delete(worker)
    let_go.set()
    worker.thread.join(60)
    assert not worker.thread.is_alive()
    assert broken == []


def test_finish_waits_for_a_job_and_delivers_its_outcome_once(qtbot, runner):
    outcomes = []
    runner.start("lane", "Work", lambda: steps(20), **into(outcomes))
    runner.finish("lane", timeout_s=5)
    assert outcomes == [Finished("done")]
    qtbot.wait(20)
    assert outcomes == [Finished("done")]
    runner.finish("lane", timeout_s=5)


def failing():
    raise CaseError("phase 3 is missing")


def test_a_failure_is_said_where_nobody_takes_it(qtbot, runner, said):
    results = []
    runner.start("lane", "Opening A_1", failing, results.append)
    qtbot.waitUntil(lambda: bool(said))
    assert said == [(Level.ERROR, "Opening A_1 failed: phase 3 is missing")]
    assert results == []


def test_who_takes_a_failure_says_it(qtbot, runner, said):
    errors = []
    runner.start("lane", "Opening A_1", failing, print, failed=errors.append)
    qtbot.waitUntil(lambda: bool(errors))
    assert str(errors[0]) == "phase 3 is missing"
    assert said == []


def test_what_the_user_stops_is_said_and_what_the_program_cancels_is_not(runner, said):
    runner.start("lane", "Opening A_1", lambda: endless([]), print)
    runner.cancel("lane")
    assert said == []
    runner.start("lane", "Opening A_2", lambda: endless([]), print)
    runner.stop("lane")
    assert said == [(Level.HINT, "Opening A_2: stopped")]
    runner.stop("lane")
    assert len(said) == 1


def test_a_stop_is_said_also_where_a_page_says_more(runner, said):
    stops = []
    runner.start("lane", "Work", lambda: endless([]), print, stopped=lambda: stops.append(True))
    runner.stop("lane")
    assert (stops, said) == ([True], [(Level.HINT, "Work: stopped")])


def test_who_stops_a_job_that_writes_reads_that_it_is_too_late(qtbot, runner, said):
    gate, outcomes = threading.Event(), []
    runner.start("lane", "Export", lambda: held(gate, True), **into(outcomes))
    worker = next(iter(runner._workers.values()))
    qtbot.waitUntil(lambda: worker._is_bound)
    runner.stop("lane")
    assert said[0][1].startswith("Export: the files are being written")
    gate.set()
    qtbot.waitUntil(lambda: outcomes == [Finished("saved")])


@pytest.mark.parametrize("work", [steps, failing, endless])
def test_controls_are_free_again_last_whatever_became_of_a_job(qtbot, runner, said, work):
    order = []
    job = {steps: lambda: steps(1), failing: failing, endless: lambda: endless([])}[work]
    runner.start(
        "lane",
        "Work",
        job,
        lambda _: order.append("then"),
        failed=lambda _: order.append("failed"),
        stopped=lambda: order.append("stopped"),
        ended=lambda: order.append("ended"),
    )
    if work is endless:
        runner.cancel("lane")
    qtbot.waitUntil(lambda: "ended" in order)
    assert order == [{steps: "then", failing: "failed", endless: "stopped"}[work], "ended"]


def test_controls_are_free_again_where_showing_the_result_breaks(runner):
    ends = []

    def broken(_result):
        raise ZeroDivisionError

    runner.start("lane", "Work", lambda: steps(1), broken, ended=lambda: ends.append(True))
    with pytest.raises(ZeroDivisionError):
        runner.finish("lane", timeout_s=5)
    assert ends == [True]
    assert not runner.is_running("lane")


@pytest.mark.parametrize("work", [steps, failing])
def test_an_answer_to_what_is_not_on_screen_any_more_is_dropped(qtbot, runner, said, work):
    outcomes, ends, discarded = [], [], []
    runner.start(
        "lane",
        "Opening A_1",
        (lambda: steps(1)) if work is steps else failing,
        **into(outcomes),
        ended=lambda: ends.append(True),
        still=lambda: False,
        discard=discarded.append,
    )
    qtbot.waitUntil(lambda: bool(ends))
    assert (outcomes, said) == ([], [])
    assert discarded == (["done"] if work is steps else [])


def test_work_in_turn_begins_once_what_was_stopped_has_let_go(qtbot, runner):
    lets_go, order, outcomes = threading.Event(), [], []

    def first():
        try:
            while True:
                report_progress(0, 1)
                time.sleep(0.001)
        finally:
            assert lets_go.wait(60)
            order.append("let go")

    runner.start("export", "Exporting", first, print)
    runner.stop("export")
    texts = []
    runner.start(
        "look",
        "Looking",
        lambda: order.append("begun"),
        **into(outcomes),
        on_progress=lambda progress: texts.append(progress.text),
        in_turn_of="export",
    )
    qtbot.waitUntil(lambda: bool(texts))
    assert (texts[0], order) == ("Waiting for the stopped job to end", [])
    lets_go.set()
    qtbot.waitUntil(lambda: bool(outcomes))
    assert order == ["let go", "begun"]


def test_work_that_waits_its_turn_can_be_stopped(qtbot, runner):
    lets_go, outcomes = threading.Event(), []

    def first():
        try:
            while True:
                report_progress(0, 1)
        finally:
            assert lets_go.wait(60)

    runner.start("export", "Exporting", first, print)
    runner.stop("export")
    runner.start("export", "Exporting", lambda: 1 / 0, **into(outcomes), in_turn_of="export")
    runner.stop("export")
    assert outcomes == [Stopped()]
    lets_go.set()
    assert runner.wait(60)


ENDING = """
import pathlib, sys, threading, time
from qtpy.QtCore import QCoreApplication
from napari_mamamia.widgets.base.jobs import JobRunner
from napari_mamamia.widgets.base.notify import Notifier
from napari_mamamia.core.progress import report_progress
application, half, begun = QCoreApplication([]), pathlib.Path(sys.argv[1]), threading.Event()
def write():
    half.write_text("half")
    try:
        begun.set()
        while True:
            report_progress(0, 1)
            time.sleep(0.01)
    finally:
        time.sleep(float(sys.argv[2]))  # a slow disk
        half.unlink()
runner = JobRunner(Notifier())
runner.start("export", "Exporting", write, lambda _: None)
begun.wait()
runner.cancel_all()
"""


@pytest.mark.parametrize(("slow_s", "is_left"), [(1, False), (60, True)])
def test_a_program_that_ends_lets_a_stopped_job_take_back_what_is_half(tmp_path, slow_s, is_left):
    half = tmp_path / "half"
    command = [sys.executable, "-c", ENDING, str(half), str(slow_s)]
    begun = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert half.exists() is is_left
    assert time.monotonic() - begun < 55, "a disk that hangs holds nobody"
