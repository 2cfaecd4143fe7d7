from dataclasses import fields

import pytest

from napari_mamamia.core.records import CaseScore
from napari_mamamia.metrics.registry import METRICS, Better, metric


def test_the_metrics_are_the_number_columns_of_a_case_score_in_order():
    costs = {"prediction_seconds", "peak_memory_bytes"}  # what a prediction cost is no metric
    numbers = [field.name for field in fields(CaseScore) if field.type in (float, "float")]
    assert [spec.name for spec in METRICS] == [name for name in numbers if name not in costs]


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


def test_every_metric_has_a_definition_and_an_oracle():
    assert all(spec.definition.endswith(".") and spec.oracle for spec in METRICS)


def test_an_unknown_metric_is_refused_with_the_list():
    assert metric("dsc").label == "Dice"
    with pytest.raises(ValueError, match="hausdorff95_mm"):
        metric("dice")
