from dataclasses import fields

import pytest

from napari_mamamia.core.records import CaseScore
from napari_mamamia.metrics.registry import METRICS, Better, Place, metric, metrics_at


def test_the_metrics_are_the_number_columns_of_a_case_score():
    costs = {"prediction_seconds", "peak_memory_bytes"}  # what a prediction cost is no metric
    numbers = [field.name for field in fields(CaseScore) if field.type in (float, "float")]
    assert sorted(spec.name for spec in METRICS) == sorted(set(numbers) - costs)


def test_a_unit_in_a_name_is_the_unit_of_the_metric():
    for spec in METRICS:
        for ending in ("_mm", "_voxels", "_mm3"):
            if spec.name.endswith(ending) and not spec.name.startswith("nsd"):
                assert spec.unit == ending[1:]


def test_distances_improve_downwards_and_shares_upwards():
    assert metric("norm_hd").better is Better.LOWER  # a distance, divided by 150
    for spec in METRICS:
        if spec.name in ("norm_hd", "diameter_reference_mm"):  # the size of a tumour is no merit
            continue
        expected = {"": Better.HIGHER, "mm3": Better.NEITHER}.get(spec.unit, Better.LOWER)
        assert spec.better is expected


def test_every_metric_says_what_it_is_how_it_is_computed_and_what_it_was_compared_with():
    assert all(one.meaning and one.formula and one.source and one.oracle for one in METRICS)


def test_every_metric_but_norm_hd_is_computed_in_one_way():
    ways = {s.name: [s.of_pair, s.of_reference, s.of_prediction].count(None) for s in METRICS}
    assert ways.pop("norm_hd") == 3  # the profile makes it of a distance
    assert set(ways.values()) == {2}


def test_what_the_window_and_the_terminal_show_the_report_shows_too():
    shown = {spec.name for place in (Place.CASE, Place.CASES) for spec in metrics_at(place)}
    assert "nsd_1mm" in shown
    assert shown <= {spec.name for spec in metrics_at(Place.REPORT)}
    assert {spec.name for spec in metrics_at(Place.PAPER)} <= shown


def test_an_unknown_metric_is_refused_with_the_list():
    assert metric("dsc").label == "Dice"
    with pytest.raises(ValueError, match="hausdorff95_mm"):
        metric("dice")
