"""A batch goes on after a failure and says what failed."""

import pytest

from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.progress import Cancelled, listening, report_progress
from napari_mamamia.services.batch.batch import for_each_case


def half_and_whole(case_id):
    report_progress(1, 2, "half")
    if case_id == "bad":
        raise CaseError("phase 1 is missing")
    if case_id == "bug":
        raise KeyError("oops")
    if case_id == "full":
        raise OSError(28, "No space left on device", "out/A_2.nii.gz")
    report_progress(2, 2, "whole")
    return case_id.upper()


def test_one_failure_costs_one_row():
    result = for_each_case(["a", "bad", "b", "bug"], half_and_whole)
    assert result.results == ("A", "B")
    assert [(f.case_id, f.reason) for f in result.failures] == [
        ("bad", "phase 1 is missing"),
        ("bug", "unexpected KeyError: 'oops'"),
    ]


def test_what_the_system_refuses_is_a_plain_reason_without_a_traceback(caplog):
    (failure,) = for_each_case(["full"], half_and_whole).failures
    assert failure.reason == (
        "expected to read and write files, but the system did not allow it at out/A_2.nii.gz (No "
        "space left on device): check that the disk has room and can be read, then continue"
    )
    assert caplog.text == ""


def test_progress_grows_and_ends_at_the_total():
    seen = []
    with listening(seen.append):
        for_each_case(["a", "bad", "b"], half_and_whole)
    fractions = [step.fraction for step in seen]
    assert fractions == sorted(fractions)
    assert seen[-1].done == seen[-1].total
    assert any(step.text == "a: half" for step in seen)


def test_cancelling_closes_the_case_at_work_and_starts_no_other():
    log = []

    def work(case_id):
        log.append(f"start {case_id}")
        try:
            report_progress(1, 2, "half")
            report_progress(2, 2)
        finally:
            log.append(f"end {case_id}")

    def cancel(progress):
        if progress.text == "a: half":
            raise Cancelled

    with pytest.raises(Cancelled), listening(cancel):
        for_each_case(["a", "b"], work)
    assert log == ["start a", "end a"]


def test_a_batch_of_no_case_is_finished_at_once():
    assert for_each_case([], half_and_whole).results == ()
