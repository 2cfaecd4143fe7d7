"""Results of a batch are kept as they come, and used again while they still hold."""

import json
import os
import resource
import subprocess
import sys
from dataclasses import replace
from math import isnan

import pytest

from napari_mamamia.core.errors import SaveConflictError, SaveError
from napari_mamamia.core.progress import Cancelled, listening
from napari_mamamia.io.files.append_file import CheckedLines, read_checked_lines
from napari_mamamia.services.batch.batch import run_batch
from napari_mamamia.services.batch.output_folder import Existing


@pytest.fixture
def store(tmp_path):
    return tmp_path / "out" / "case_results.jsonl"


def run(cases, work, store, existing=Existing.RESUME, report=None):
    with listening(report):
        return run_batch(cases, work, store=store, existing=existing)


def called(notes):
    return sorted(path.name for path in notes.iterdir())


def test_a_second_run_does_nothing_again_and_returns_the_same(work, cases_of, notes, store):
    first = run(cases_of("a", "b"), work, store, Existing.REFUSE)
    second = run(cases_of("a", "b"), work, store)
    assert called(notes) == ["a.1", "b.1"]
    assert (first.n_reused, second.n_reused) == (0, 2)
    assert [repr(row) for row in second.results] == [repr(row) for row in first.results]


def test_values_that_json_lacks_come_back(work, cases_of, store):
    run(cases_of("abc"), work, store)
    row = run(cases_of("abc"), work, store).results[0]
    assert row.value == 3 * 0.1  # 0.30000000000000004
    assert row.far == float("inf")
    assert isnan(row.undefined)
    assert row.colour is type(row.colour).BLUE
    for line in store.read_text().splitlines():
        json.loads(line, parse_constant=pytest.fail)


def test_a_case_whose_file_changed_is_done_again(work, cases_of, notes, store):
    cases = cases_of("a", "b", "c")
    run(cases, work, store)
    cases[1].files[0].write_bytes(b"longer")
    batch = run(cases, work, store)
    assert called(notes) == ["a.1", "b.1", "b.2", "c.1"]
    assert [row.size for row in batch.results] == [1, 6, 1]
    assert run(cases, work, store).n_reused == 3


def test_a_file_that_came_or_went_is_a_change(work, cases_of, notes, store):
    cases = cases_of("a", "b")
    run(cases, work, store)
    swapped = [replace(cases[0], files=(None, cases[0].files[0])), cases[1]]
    assert run(swapped, work, store).n_reused == 1
    assert called(notes) == ["a.1", "a.2", "b.1"]


def test_a_file_that_was_only_copied_is_no_change(work, cases_of, notes, store):
    cases = cases_of("a")
    run(cases, work, store)
    os.utime(cases[0].files[0], ns=(1, 1))
    assert run(cases, work, store).n_reused == 1


def test_new_settings_do_everything_again(work, cases_of, notes, store):
    run(cases_of("a"), work, store)
    other = replace(work, settings=replace(work.settings, factor=2.0))
    assert run(cases_of("a"), other, store).results[0].value == 2.0
    assert called(notes) == ["a.1", "a.2"]


def test_failures_are_tried_again(work, cases_of, notes, store):
    run(cases_of("bad_1", "a"), work, store)
    batch = run(cases_of("bad_1", "a"), work, store)
    assert [failure.case_id for failure in batch.failures] == ["bad_1"]
    assert called(notes) == ["a.1", "bad_1.1", "bad_1.2"]


def test_what_was_finished_before_a_cancel_is_not_done_again(work, cases_of, notes, store):
    def stop(progress):
        if progress.done:
            raise Cancelled

    with pytest.raises(Cancelled):
        run(cases_of("a", "b"), work, store, report=stop)
    run(cases_of("a", "b"), work, store)
    assert called(notes) == ["a.1", "b.1"]


@pytest.mark.parametrize("cut", [1, 2, 40])
def test_a_torn_last_line_is_dropped_and_its_case_done_again(work, cases_of, notes, store, cut):
    run(cases_of("a", "b"), work, store)
    store.write_bytes(store.read_bytes()[:-cut])
    assert run(cases_of("a", "b"), work, store).n_reused == 1
    assert called(notes) == ["a.1", "b.1", "b.2"]
    assert [entry["case_id"] for entry in read_checked_lines(store)] == ["a", "b"]


def test_a_damaged_line_costs_its_case_only(work, cases_of, notes, store):
    run(cases_of("a", "b", "c"), work, store)
    content = bytearray(store.read_bytes())
    content[content.index(b'"size":')] ^= 1
    store.write_bytes(content)
    assert run(cases_of("a", "b", "c"), work, store).n_reused == 2
    assert called(notes) == ["a.1", "a.2", "b.1", "c.1"]


def test_an_existing_store_is_refused_or_replaced_as_asked(work, cases_of, notes, store):
    run(cases_of("a"), work, store)
    before = store.read_bytes()
    with pytest.raises(SaveConflictError, match="continue that run, or replace its results"):
        run(cases_of("a"), work, store, Existing.REFUSE)
    assert store.read_bytes() == before
    assert run(cases_of("a"), work, store, Existing.OVERWRITE).n_reused == 0
    assert called(notes) == ["a.1", "a.2"]
    assert len(list(read_checked_lines(store))) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="no such lock")
def test_two_runs_do_not_write_one_store(work, cases_of, store):
    with CheckedLines(store, keep=True), pytest.raises(SaveConflictError, match="another run"):
        run(cases_of("a"), work, store)
    assert len(run(cases_of("a"), work, store).results) == 1


def test_a_full_disk_ends_the_run_and_keeps_what_was_saved(work, cases_of, notes, store):
    cases = cases_of("a", "b", "c")
    run(cases[:2], work, store)
    size = store.stat().st_size
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 30, hard))
    try:
        with pytest.raises(SaveError, match=r"case_results\.jsonl"):
            run(cases, work, store)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert store.stat().st_size == size
    assert run(cases, work, store).n_reused == 2
    assert called(notes) == ["a.1", "b.1", "c.1", "c.2"]


def test_a_kill_of_the_program_loses_nothing_that_was_added(tmp_path):
    path = tmp_path / "lines.jsonl"
    program = (
        "import os, signal, sys; from pathlib import Path;"
        "from napari_mamamia.io.files.append_file import CheckedLines;"
        "lines = CheckedLines(Path(sys.argv[1]), keep=True);"
        "[lines.add({'n': n}) for n in range(50)];"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    ended = subprocess.run([sys.executable, "-c", program, str(path)], check=False)
    assert ended.returncode == -9
    assert [entry["n"] for entry in read_checked_lines(path)] == list(range(50))


def test_a_torn_line_longer_than_a_block_is_cut_off(tmp_path):
    path = tmp_path / "lines.jsonl"
    with CheckedLines(path, keep=False) as lines:
        lines.add({"n": 1})
    with path.open("ab") as stream:
        stream.write(b"x" * 200_000)
    with CheckedLines(path, keep=True) as lines:
        lines.add({"n": 2})
    assert [entry["n"] for entry in read_checked_lines(path)] == [1, 2]


def test_numbers_that_are_not_json_are_refused(tmp_path):
    path = tmp_path / "lines.jsonl"
    with CheckedLines(path, keep=False) as lines, pytest.raises(ValueError):
        lines.add({"n": float("nan")})
    assert path.read_bytes() == b""


def test_a_folder_that_cannot_be_made_is_said(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(SaveError, match=r"lines\.jsonl"):
        CheckedLines(tmp_path / "file" / "lines.jsonl", keep=False)
