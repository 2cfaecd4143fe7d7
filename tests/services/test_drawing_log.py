"""What is drawn is written once and in its order, from any thread, and waits where it cannot be."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from napari_mamamia.core.blinding import ALL_HIDDEN
from napari_mamamia.core.case import Case, Phase
from napari_mamamia.core.errors import SaveError
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.measurement import MeasureKind, Measurement
from napari_mamamia.io.workspace.measurements import append_measurement, read_measurements
from napari_mamamia.io.workspace.workspace import Workspace
from napari_mamamia.services.measure.drawings import (
    DrawingLog,
    begin_log,
    describe_drawn,
    open_drawings,
)

RULER = Measurement("A", MeasureKind.RULER, ((0, 0, 0), (3, 4, 0)), "axial", 1, reader="Ana")


def texts(root):
    return [one.text for one in read_measurements(root).items]


def named(text, **other):
    return replace(RULER, text=text, **other)


def test_what_is_drawn_stands_there_until_it_is_taken_back(tmp_path):
    log = begin_log(Workspace(tmp_path))
    for name in ("a", "b", "c"):
        log.draw(name, named(name))
    assert log.is_waiting
    assert list(log.waiting) == ["a", "b", "c"]
    log.write()
    assert not log.is_waiting
    log.take_back("b", named("b"))
    log.write()
    assert texts(tmp_path) == ["a", "c"]
    assert log.gone_ids == {log.find_stored("b").measurement_id}


def test_what_was_never_written_and_is_taken_back_leaves_no_trace(tmp_path):
    log = begin_log(Workspace(tmp_path))
    log.draw("a", RULER)
    log.take_back("a", RULER)
    log.write()
    assert list(tmp_path.iterdir()) == []


def test_writing_twice_or_at_the_same_time_writes_once(tmp_path):
    log = begin_log(Workspace(tmp_path))
    for n in range(20):
        log.draw(str(n), named(str(n)))
    with ThreadPoolExecutor(4) as pool:
        for job in [pool.submit(log.write) for _ in range(8)]:
            job.result()
    log.write()
    assert texts(tmp_path) == [str(n) for n in range(20)]


def test_what_cannot_be_written_waits_and_keeps_its_place(tmp_path):
    broken = [True]

    def append(root, drawn):
        if broken:
            raise SaveError("the folder is read-only: choose another")
        return append_measurement(root, drawn)

    log = DrawingLog(Workspace(tmp_path), append=append)
    log.draw("a", named("a"))
    log.draw("b", named("b"))
    for _ in range(2):
        with pytest.raises(SaveError, match="read-only"):
            log.write()
    assert list(log.waiting) == ["a", "b"]
    log.take_back("a", named("a"))
    broken.clear()
    log.draw("c", named("c"))
    log.write()
    assert texts(tmp_path) == ["b", "c"]


def test_what_is_taken_back_while_it_is_written_is_taken_back_after(tmp_path):
    begun, may_go_on = threading.Event(), threading.Event()

    def append(root, drawn):
        begun.set()
        assert may_go_on.wait(60)
        return append_measurement(root, drawn)

    log = DrawingLog(Workspace(tmp_path), append=append)
    log.draw("a", RULER)
    writing = threading.Thread(target=log.write)
    writing.start()
    assert begun.wait(60)
    log.take_back("a", RULER)
    may_go_on.set()
    writing.join()
    assert not log.is_waiting
    assert texts(tmp_path) == []


def test_a_blind_reader_sees_own_drawings_alone(tmp_path):
    for reader in ("Ana", "Ben"):
        append_measurement(tmp_path, replace(RULER, reader=reader))
    assert len(open_drawings(Workspace(tmp_path), "A").items) == 2
    blind = Workspace(tmp_path, blinding=ALL_HIDDEN, reader="Ben")
    assert [one.reader for one in open_drawings(blind, "A").items] == ["Ben"]
    nobody = Workspace(tmp_path, blinding=ALL_HIDDEN)
    assert open_drawings(nobody, "A").items == ()


def test_a_damaged_record_is_read_as_far_as_it_goes_and_says_so(tmp_path):
    for text in ("a", "b", "c"):
        append_measurement(tmp_path, named(text))
    (file,) = tmp_path.rglob("*.jsonl")
    lines = file.read_bytes().splitlines(keepends=True)
    lines[1] = lines[1].replace(b'"ruler"', b'"ruled"')
    file.write_bytes(b"".join(lines))
    opened = open_drawings(Workspace(tmp_path), "A")
    assert [one.text for one in opened.items] == ["a", "c"]
    assert opened.problem == "Left out of the record: 1 damaged record"


def test_an_ellipse_has_the_values_of_its_phase_or_of_the_difference_on_screen():
    grid = Grid((1, 9, 9), np.eye(4))
    signal = np.zeros((2, 1, 9, 9), np.int16)
    # Voxels within 1 mm of (4, 4): itself and its four neighbours, 10 and 20 20 20 20.
    signal[1, 0, 4, 3:6] = signal[1, 0, 3:6, 4] = 20
    signal[1, 0, 4, 4] = 10
    case = Case("A", grid, signal, (Phase(0, 0.0), Phase(1, 60.0)))
    drawn = Measurement("A", MeasureKind.ELLIPSE, ((4, 4, 0), (5, 4, 0), (4, 5, 0)), "axial", 1)
    # pi mm2; mean 90 / 5; squares 64 + 4 * 4 over 4: sqrt(20)
    assert describe_drawn(drawn, case) == "3.1 mm², mean 18.0, SD 4.5"
    on_none = replace(drawn, phase=None)
    assert describe_drawn(on_none, case) == "3.1 mm²"
    assert describe_drawn(on_none, case, 2.0 * signal[1]) == "3.1 mm², mean 36.0, SD 8.9"
    assert describe_drawn(drawn, case, 2.0 * signal[1]) == "3.1 mm², mean 18.0, SD 4.5"
    unread = Case("A", grid, signal, (Phase(0, 0.0), Phase(1, 60.0, loaded=False)))
    assert describe_drawn(drawn, unread) == "3.1 mm²"


def test_words_stand_behind_the_number():
    assert describe_drawn(named("to skin"), None) == "5.0 mm · to skin"
    arrow = replace(RULER, kind=MeasureKind.ARROW, text="clip")
    assert describe_drawn(arrow, None) == "clip"
