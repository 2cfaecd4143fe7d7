"""The next case read ahead: equal to what opening reads, and never older than its files."""

import os
import threading
from dataclasses import replace

import numpy as np
import pytest

from napari_mamamia.core.errors import FormatError
from napari_mamamia.core.progress import Cancelled, listening
from napari_mamamia.io.layouts.find import find_data_set
from napari_mamamia.services.case import read_ahead as module
from napari_mamamia.services.case.data_set import open_data_set
from napari_mamamia.services.case.open_case import load_case
from napari_mamamia.services.case.read_ahead import is_current, read_ahead, read_rest_ahead


@pytest.fixture
def settled(monkeypatch):
    """Let files that the test has just written count as old."""
    monkeypatch.setattr(module, "_SETTLED_NS", 0)


@pytest.fixture
def files(small_data_set, settled):
    return find_data_set(small_data_set).cases[0]


def path_of(files, phase):
    return files.phases[phase].files[0]


def test_what_was_read_ahead_is_what_opening_reads(small_data_set, files):
    record = open_data_set(small_data_set).record("A_1")
    ahead = read_ahead(files, record)
    assert ahead.phase == 1
    assert [phase.loaded for phase in ahead.case.phases] == [False, True, False, False]
    assert not ahead.case.signal[0].any()
    whole, opened = read_rest_ahead(ahead), load_case(files, record)
    assert whole.case.signal is ahead.case.signal
    np.testing.assert_array_equal(whole.case.signal, opened.signal)
    for name in ("phases", "warnings", "n_before", "contrast", "scan"):
        assert getattr(whole.case, name) == getattr(opened, name), name
    assert is_current(ahead, files, record)
    assert is_current(whole, files, record)


def rewrite_in_place(path):
    """Change one byte and give the file its old time of writing back."""
    before = path.stat()
    with path.open("r+b") as file:
        file.seek(-9, os.SEEK_END)
        file.write(b"\x00")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size


def replace_by_another(path):
    before = path.stat()
    other = path.with_name("other")
    other.write_bytes(bytes(before.st_size))
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    other.replace(path)


@pytest.mark.parametrize("change", [rewrite_in_place, replace_by_another, os.remove])
@pytest.mark.parametrize("phase", [0, 1, 3])
def test_a_file_that_changed_since_is_seen_whatever_its_size_and_time_say(files, change, phase):
    ahead = read_rest_ahead(read_ahead(files))
    change(path_of(files, phase))
    assert not is_current(ahead, files, None)


def test_other_files_and_another_row_of_the_clinical_table_are_another_case(small_data_set, files):
    record = open_data_set(small_data_set).record("A_1")
    ahead = read_ahead(files, record)
    assert not is_current(ahead, replace(files, phases=files.phases[:3]), record)
    assert not is_current(ahead, files, replace(record, age=52.0))
    assert not is_current(ahead, files, None)


def test_a_changed_patient_file_is_seen(small_data_set, settled):
    info = small_data_set / "patient_info_files" / "a_1.json"
    info.parent.mkdir()
    info.write_text("{}")
    (files, *_) = find_data_set(small_data_set).cases
    assert files.info == info
    ahead = read_ahead(files)
    info.write_text('{"a": 1}')
    assert not is_current(ahead, files, None)


def test_a_file_that_is_still_being_written_is_not_kept(small_data_set):
    assert read_ahead(find_data_set(small_data_set).cases[0]) is None


@pytest.mark.parametrize(
    ("phases_free", "first", "rest"), [(3, False, False), (5, True, False), (17, True, True)]
)
def test_no_more_is_read_than_a_quarter_of_the_free_memory_holds(
    files, monkeypatch, phases_free, first, rest
):
    one_phase = load_case(files).signal[0].nbytes
    monkeypatch.setattr(module, "free_memory_bytes", lambda: phases_free * one_phase)
    ahead = read_ahead(files)
    assert (ahead is not None) == first
    if ahead is not None:
        assert read_rest_ahead(ahead).case.is_loaded == rest


def test_where_the_free_memory_is_not_known_nothing_is_read(files, monkeypatch):
    monkeypatch.setattr(module, "free_memory_bytes", lambda: None)
    assert read_ahead(files) is None


def test_a_damaged_case_is_an_error_and_one_with_problems_is_none(small_data_set, files):
    path_of(files, 1).write_bytes(b"no volume")
    with pytest.raises(FormatError, match="A_1_0001"):
        read_ahead(files)
    assert read_ahead(replace(files, problems=("phase 1 is missing",))) is None


def test_filling_that_was_cancelled_before_it_began_touches_no_voxel(files):
    ahead = read_ahead(files)

    def stop(_progress):
        raise Cancelled

    with listening(stop), pytest.raises(Cancelled):
        read_rest_ahead(ahead)
    assert not ahead.case.signal[0].any()
    assert is_current(ahead, files, None)


def test_whoever_asks_waits_until_nothing_is_read_into_it_any_more(files):
    ahead = read_ahead(files)
    inside, may_end, answers = threading.Event(), threading.Event(), []

    def hold(_progress):
        inside.set()
        assert may_end.wait(60)
        raise Cancelled

    def fill():
        with listening(hold), pytest.raises(Cancelled):
            read_rest_ahead(ahead)

    def ask():
        is_current(ahead, files, None)
        answers.append(may_end.is_set())

    threads = [threading.Thread(target=work) for work in (fill, ask)]
    threads[0].start()
    assert inside.wait(60)
    threads[1].start()
    threads[1].join(0.05)
    may_end.set()
    for thread in threads:
        thread.join()
    assert answers == [True]
