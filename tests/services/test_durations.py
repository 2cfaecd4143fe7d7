"""The time of the next prediction, from the times of earlier ones on this computer."""

import pytest

from napari_mamamia.phantom import PhantomSpec, make_phantom
from napari_mamamia.services.predict.durations import estimate_seconds, remember_seconds


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("MAMAMIA_CACHE_DIR", str(tmp_path))
    return tmp_path


def test_before_the_first_similar_run_the_time_is_not_known():
    assert estimate_seconds("kinetic", 1000) is None
    remember_seconds("kinetic", 1000, 10.0)
    remember_seconds("other", 5000, 1.0)
    assert estimate_seconds("kinetic", 2001) is None
    assert estimate_seconds("kinetic", 499) is None
    assert estimate_seconds("kinetic", 2000) == pytest.approx(20.0)
    assert estimate_seconds("kinetic", 500) == pytest.approx(5.0)


def test_one_slow_run_does_not_move_the_median_and_old_runs_are_forgotten():
    for seconds in (5.0, 6.0, 60.0):
        remember_seconds("kinetic", 1000, seconds)
    assert estimate_seconds("kinetic", 1000) == pytest.approx(6.0)
    for _ in range(20):
        remember_seconds("kinetic", 1000, 1.0)
    assert estimate_seconds("kinetic", 1000) == pytest.approx(1.0)


@pytest.mark.parametrize(
    "text",
    ["", "[]", '{"kinetic": 3}', '{"kinetic": [[1000], [0, 1], ["a", "b"], [1000, NaN], null]}'],
)
def test_a_damaged_file_is_no_estimate_and_is_replaced(cache, text):
    (cache / "durations.json").write_text(text)
    assert estimate_seconds("kinetic", 1000) is None
    remember_seconds("kinetic", 1000, 2.0)
    assert estimate_seconds("kinetic", 1000) == pytest.approx(2.0)


def test_a_cache_that_cannot_be_written_stops_nothing(cache, monkeypatch):
    (cache / "file").write_text("")
    monkeypatch.setenv("MAMAMIA_CACHE_DIR", str(cache / "file" / "folder"))
    remember_seconds("kinetic", 1000, 2.0)
    assert estimate_seconds("kinetic", 1000) is None


def test_a_prediction_notes_its_own_time():
    from napari_mamamia.services.predict.predict import predict_case, segmenter_named

    case = make_phantom(PhantomSpec(case_id="A", seed=3, shape=(16, 40, 40))).case
    seconds = predict_case(case, segmenter_named("kinetic")).seconds
    assert estimate_seconds("kinetic", case.signal[0].size) == pytest.approx(seconds, abs=0.001)
