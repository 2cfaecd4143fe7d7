"""One definition of the work: in this process, and in a process that can be killed."""

import time

import nibabel as nib
import numpy as np
import pytest
from tests.stepped import Stepped

from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.progress import listening
from napari_mamamia.io.data_set import volumes
from napari_mamamia.io.data_set.volumes import read_labels
from napari_mamamia.io.files.file_names import case_key
from napari_mamamia.io.files.sources import CaseFiles, PhaseSource
from napari_mamamia.metrics.lesions import LesionCounts
from napari_mamamia.scoring.case.profiles import OFFICIAL_CODE
from napari_mamamia.services.batch import child
from napari_mamamia.services.batch.batch import run_batch
from napari_mamamia.services.batch.output_folder import Existing
from napari_mamamia.services.batch.work import FilePrint, Place
from napari_mamamia.services.score.score import score_cases

LIMITED = Place(time_limit_s=30.0)


def test_results_come_in_the_order_of_the_cases(work, cases_of):
    batch = run_batch(cases_of("ccc", "a", "bb"), work)
    assert [(row.case_id, row.size) for row in batch.results] == [("ccc", 3), ("a", 1), ("bb", 2)]
    assert batch.failures == ()


@pytest.mark.parametrize("place", [Place(), LIMITED], ids=["in process", "in a child"])
def test_a_failure_costs_one_row_and_keeps_its_reason(work, cases_of, place):
    batch = run_batch(cases_of("bad_1", "a", "bug_1", "b"), work, place)
    assert [row.case_id for row in batch.results] == ["a", "b"]
    assert [(failure.case_id, failure.reason) for failure in batch.failures] == [
        ("bad_1", "expected a mask, but it is broken: make it again"),
        ("bug_1", "unexpected KeyError: 'oops'"),
    ]


def test_a_missing_file_is_a_failure_that_names_it(work, cases_of):
    cases = cases_of("a", "b")
    cases[0].files[0].unlink()
    batch = run_batch(cases, work)
    assert [row.case_id for row in batch.results] == ["b"]
    assert str(cases[0].files[0]) in batch.failures[0].reason


def test_the_same_id_twice_is_refused(work, cases_of):
    with pytest.raises(CaseError, match="a occurs twice"):
        run_batch(cases_of("a", "a"), work)


def test_a_batch_of_no_case_is_finished_at_once(work):
    assert run_batch([], work, Place(workers=2)).results == ()


def test_progress_counts_finished_cases_and_ends_at_the_total(work, cases_of):
    seen = []
    with listening(seen.append):
        run_batch(cases_of("a", "bad_1", "b"), work)
    assert [step.done for step in seen] == sorted(step.done for step in seen)
    assert (seen[-1].done, seen[-1].total) == (3, 3)


def test_a_case_over_its_time_limit_is_ended_and_the_others_are_done(work, cases_of):
    steps = []
    with listening(lambda _: steps.append(time.monotonic())):
        batch = run_batch(cases_of("a", "forever_1", "b"), work, Place(time_limit_s=3.0))
    assert [row.case_id for row in batch.results] == ["a", "b"]
    assert batch.failures[0].case_id == "forever_1"
    assert "time limit of 3 s" in batch.failures[0].reason
    assert len(steps) > 5


def test_the_process_of_a_case_over_its_limit_is_gone(work, cases_of, notes, is_running):
    run_batch(cases_of("forever_1"), work, Place(time_limit_s=2.0))
    assert not is_running(int((notes / "forever_1.1").read_text()))


def test_one_child_serves_all_cases_and_ends_with_the_batch(work, cases_of, notes, is_running):
    run_batch(cases_of("a", "b", "prints_1"), work, LIMITED)
    pids = {int(path.read_text()) for path in notes.iterdir()}
    assert len(pids) == 1
    assert not is_running(pids.pop())


def test_a_case_whose_process_dies_once_is_done_again(work, cases_of):
    batch = run_batch(cases_of("dies-once_1", "a"), work, LIMITED)
    assert [row.case_id for row in batch.results] == ["dies-once_1", "a"]


def test_a_case_that_always_kills_its_process_fails_alone(work, cases_of):
    batch = run_batch(cases_of("dies_1", "a"), work, LIMITED)
    assert [row.case_id for row in batch.results] == ["a"]
    assert "signal 9" in batch.failures[0].reason


def test_closing_the_job_kills_a_child_at_work_soon(work, cases_of, notes, is_running):
    job = Stepped(run_batch, cases_of("forever_1"), work, LIMITED)
    for _ in job:
        if (notes / "forever_1.1").exists():
            break
    job.close()  # comes back: it does not wait for a case that never ends
    assert not is_running(int((notes / "forever_1.1").read_text()))


def test_the_key_follows_the_settings_and_the_name(work):
    from dataclasses import replace

    other = replace(work.settings, factor=0.2)
    assert replace(work, settings=other).key != work.key
    assert replace(work, name="other").key != work.key
    assert replace(work).key == work.key


def test_a_file_print_follows_the_content_not_the_time(tmp_path):
    path, copy = tmp_path / "a.bin", tmp_path / "copy.bin"
    path.write_bytes(b"abc")
    copy.write_bytes(b"abc")
    own = FilePrint.of(path)
    assert own.fits(path)
    assert own.fits(copy)
    copy.write_bytes(b"abd")
    assert not own.fits(copy)
    path.unlink()
    assert not own.fits(path)


@pytest.mark.parametrize(
    "values", [{"workers": -1}, {"workers": 1, "scheduler": "tcp://a:1"}, {"time_limit_s": 0.0}]
)
def test_a_place_that_makes_no_sense_is_refused(values):
    with pytest.raises(ValueError):
        Place(**values)


@pytest.fixture
def hundred_pairs(tmp_path):
    """Return 100 pairs of 4x4x4 masks; three predictions are broken."""
    array = np.zeros((4, 4, 4), np.uint8)
    array[1:3, 1:3, 1:3] = 1
    reference, prediction = tmp_path / "reference.nii.gz", tmp_path / "prediction.nii.gz"
    nib.save(nib.Nifti1Image(array, np.eye(4)), reference)
    nib.save(nib.Nifti1Image(np.roll(array, 1, axis=0), np.eye(4)), prediction)
    pairs = {}
    for number in range(100):
        own = tmp_path / f"C_{number:03d}.nii.gz"
        own.write_bytes(prediction.read_bytes())
        pairs[f"C_{number:03d}"] = (reference, own)
    pairs["C_010"][1].write_bytes(prediction.read_bytes()[:60])
    pairs["C_020"][1].write_bytes(b"not an image")
    pairs["C_030"][1].unlink()
    return pairs


def test_of_a_hundred_pairs_with_three_broken_files_97_are_scored(hundred_pairs):
    batch = score_cases(hundred_pairs)
    assert len(batch.results) == 97
    assert {one.score.dsc for one in batch.results} == {0.5}  # 2 of 2 layers, one shared
    assert [failure.case_id for failure in batch.failures] == ["C_010", "C_020", "C_030"]
    for failure in batch.failures:
        assert f"{failure.case_id}.nii.gz" in failure.reason


def test_profile_and_label_reach_the_score(hundred_pairs):
    pair = {"C_000": hundred_pairs["C_000"]}
    assert score_cases(pair, OFFICIAL_CODE).results[0].score.profile == OFFICIAL_CODE.name
    assert np.isnan(score_cases(pair, label=2.0).results[0].score.dsc)


def test_a_missing_prediction_is_scored_by_its_profile(hundred_pairs):
    pair = {"C_000": (hundred_pairs["C_000"][0], None)}
    assert score_cases(pair).results[0].score.status == "prediction_missing"


# ------------------------------------------------------------------ why a case failed


@pytest.fixture
def one_pair(hundred_pairs):
    """Return one case whose prediction lacks half of the reference."""
    return {"C_000": hundred_pairs["C_000"]}


def test_each_mask_is_read_once_for_score_and_kind_of_failure(one_pair, monkeypatch):
    read = []

    def reading(path, *words, **more):
        read.append(path.name)
        return read_labels(path, *words, **more)

    monkeypatch.setattr(volumes, "read_labels", reading)
    found = score_cases(one_pair).results[0]
    assert read == ["reference.nii.gz", "C_000.nii.gz"]
    assert found.look.lesions == LesionCounts(found=1, missed=0, false=0)


def test_kinds_of_failure_come_back_from_an_earlier_run_and_from_a_worker(one_pair, tmp_path):
    store = tmp_path / "results.jsonl"
    first = score_cases(one_pair, store=store)
    again = score_cases(one_pair, store=store, existing=Existing.RESUME)
    assert again.n_reused == 1
    there = score_cases(one_pair, place=Place(time_limit_s=60.0))
    assert first.results[0].look.failures  # both masks touch the border of so small an image
    assert repr(again.results) == repr(there.results) == repr(first.results)


def test_a_case_without_a_reference_has_a_score_and_no_look(one_pair):
    pair = {"C_000": (None, one_pair["C_000"][1])}
    found = score_cases(pair).results[0]
    assert (found.score.status, found.look) == ("reference_missing", None)


def test_images_that_cannot_be_read_are_a_failure_of_their_case(one_pair, tmp_path):
    gone = tuple(PhaseSource((tmp_path / f"phase_{k}.nii.gz",)) for k in range(2))
    images = {case_key("C_000"): CaseFiles("C_000", gone)}
    found = score_cases(one_pair, images=images)
    assert found.results == ()
    assert "phase_0.nii.gz" in found.failures[0].reason


def test_other_images_make_the_case_anew(one_pair, tmp_path):
    phases = []
    for k in range(2):
        phases.append(tmp_path / f"phase_{k}.nii.gz")
        shape = nib.load(one_pair["C_000"][0]).shape
        image = np.random.default_rng(k).integers(0, 99, shape).astype(np.int16)
        nib.save(nib.Nifti1Image(image, np.eye(4)), phases[-1])
    images = {case_key("C_000"): CaseFiles("C_000", tuple(PhaseSource((path,)) for path in phases))}
    store = tmp_path / "results.jsonl"
    score_cases(one_pair, images=images, store=store)
    same = score_cases(one_pair, images=images, store=store, existing=Existing.RESUME)
    assert same.n_reused == 1
    nib.save(nib.Nifti1Image(image + 1, np.eye(4)), phases[1])
    new = score_cases(one_pair, images=images, store=store, existing=Existing.RESUME)
    assert new.n_reused == 0
    assert new.results[0].look.no_images == ""


def test_what_a_case_that_was_ended_left_half_written_goes_with_the_run(work, cases_of, notes):
    place, store = Place(time_limit_s=2.0), notes / "results.jsonl"
    batch = run_batch(cases_of("half_1", "a"), work, place, store=store)
    assert [row.case_id for row in batch.results] == ["a"]
    assert (notes / "half_1.1").exists()  # it had come to its half file
    assert list(notes.glob(".mamamia-*")) == []


def test_a_process_that_does_not_start_is_no_case_over_its_time_limit(work, cases_of, monkeypatch):
    monkeypatch.setattr(child, "_START_LIMIT_S", 0.0)
    batch = run_batch(cases_of("a"), work, Place(time_limit_s=30.0))
    (failure,) = batch.failures
    assert "did not start within 0 s" in failure.reason
    assert "time limit" not in failure.reason
