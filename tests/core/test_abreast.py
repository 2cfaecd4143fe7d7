"""Works done in a few threads: results in order, one progress, one end."""

import threading

import pytest

from napari_mamamia.core.progress import Cancelled, do_abreast, listening, report_progress

LONG_S = 60


def test_two_works_go_on_at_once_and_answer_in_their_order():
    meet = threading.Barrier(2, timeout=LONG_S)

    def work(number):
        meet.wait()
        return number

    assert do_abreast(work, range(4), 2) == [0, 1, 2, 3]


def test_no_more_are_at_work_than_there_are_threads():
    running, most, lock = [], [], threading.Lock()

    def work(_):
        with lock:
            running.append(1)
            most.append(len(running))
        report_progress(0, 1)
        with lock:
            running.pop()

    do_abreast(work, range(12), 3)
    assert max(most) <= 3


def test_no_items_have_no_results():
    assert do_abreast(abs, [], 2) == []


def test_progress_is_heard_where_it_is_waited_for_grows_and_ends_at_the_whole():
    heard = []

    def listener(progress):
        heard.append((progress.fraction, progress.text, threading.current_thread()))

    def work(_):
        for done in range(50):
            report_progress(done, 50, "a plane")
        report_progress(50, 50)

    with listening(listener):
        do_abreast(work, range(5), 2, "Reading 5")
    fractions, texts, threads = zip(*heard, strict=True)
    assert set(threads) == {threading.current_thread()}
    assert set(texts) == {"Reading 5"}
    assert list(fractions) == sorted(fractions)
    assert fractions[-1] == 1.0


def test_cancelled_where_it_is_waited_for_every_work_ends_at_its_next_report():
    ended, started = [], threading.Barrier(3, timeout=LONG_S)

    def work(_):
        started.wait()
        try:
            while True:
                report_progress(0, 1)
        finally:
            ended.append(threading.current_thread())

    def listener(_progress):
        started.wait()
        raise Cancelled

    with listening(listener), pytest.raises(Cancelled):
        do_abreast(work, range(6), 2)
    assert len(ended) == 2
    assert not any(thread.is_alive() for thread in ended)


def test_the_failure_that_is_first_in_order_is_raised_and_what_waits_is_not_begun():
    failed, begun = threading.Event(), []

    def early():
        assert failed.wait(LONG_S)
        raise ValueError("the first")

    def late():
        failed.set()
        raise ValueError("the second")

    def endless():
        begun.append(1)
        while True:
            report_progress(0, 1)

    with pytest.raises(ValueError, match="the first"):
        do_abreast(lambda work: work(), [early, late, endless, endless, endless], 2)
    assert len(begun) <= 2
