"""Groups that are reported, not scored."""

import numpy as np
import pytest

from napari_mamamia.core.cohort import CaseRecord, Cohort
from napari_mamamia.scoring.cohort.groups import (
    group_by_column,
    group_by_cuts,
    group_by_diameter,
    group_by_volume,
)


def labels_of(grouping) -> list[str | None]:
    return [grouping.labels[code] if code >= 0 else None for code in grouping.codes]


def test_a_further_column_is_grouped_in_the_order_of_its_numbers():
    cohort = Cohort(
        tuple(
            CaseRecord(name, other={"field_strength": value})
            for name, value in (("A", 3.0), ("B", 1.5), ("C", None), ("D", 10.0), ("E", np.nan))
        )
    )
    grouping = group_by_column("ABCDE", cohort, "field_strength")
    assert grouping.labels == ("1.5", "3", "10")
    assert labels_of(grouping) == ["3", "1.5", None, "10", None]
    assert [u.case_id for u in grouping.unassigned] == ["C", "E"]


def test_fields_of_the_record_are_columns_too():
    records = (CaseRecord("A", dataset="DUKE", pcr=True), CaseRecord("B", dataset="ISPY1"))
    assert labels_of(group_by_column("AB", Cohort(records), "dataset")) == ["DUKE", "ISPY1"]
    assert labels_of(group_by_column("AB", Cohort(records), "pcr")) == ["yes", None]


def test_a_case_that_is_not_asked_for_makes_no_group():
    records = (CaseRecord("A", dataset="DUKE"), CaseRecord("B", dataset="ISPY1"))
    assert group_by_column(["A"], Cohort(records), "dataset").labels == ("DUKE",)


def test_a_column_of_measurements_is_refused():
    records = tuple(CaseRecord(str(i), other={"weight": float(i)}) for i in range(50))
    assert group_by_column([str(i) for i in range(50)], Cohort(records), "weight") is None


def test_an_empty_column_makes_no_groups():
    assert group_by_column(["A"], Cohort((CaseRecord("A"),)), "centre") is None


def test_a_value_on_a_cut_belongs_to_the_lower_group():
    values = np.array([1.0, 2.0, 2.1, np.nan, 9.0])
    grouping = group_by_cuts("size", "ABCDE", values, (2.0, 5.0), ("low", "mid", "high"))
    assert labels_of(grouping) == ["low", "low", "mid", None, "high"]
    assert grouping.unassigned[0].reason == "size is unknown"


def test_cuts_need_one_label_more():
    with pytest.raises(ValueError, match="2 labels"):
        group_by_cuts("size", "A", np.array([1.0]), (2.0, 5.0), ("low", "high"))


def test_volumes_are_cut_at_their_20th_and_80th_percentile():
    # 1 to 11: the percentiles are 3 and 9
    grouping = group_by_volume([str(i) for i in range(12)], np.array([*range(1, 12), np.nan]))
    assert grouping.sizes.tolist() == [3, 6, 2]


def test_volumes_that_are_all_unknown_leave_every_case_unassigned():
    assert len(group_by_volume("AB", np.array([np.nan, np.nan])).unassigned) == 2


def test_diameters_are_cut_at_20_and_50_mm():
    grouping = group_by_diameter("ABCD", np.array([20.0, 20.1, 50.0, 50.1]))
    assert grouping.codes.tolist() == [0, 1, 1, 2]


@pytest.mark.parametrize("cells", [[None, None], [f"name {k}" for k in range(41)]])
def test_a_column_that_makes_no_groups_gives_none(cells):
    ids = [f"C_{k}" for k in range(len(cells))]
    cohort = Cohort(
        tuple(CaseRecord(i, other={"site": c}) for i, c in zip(ids, cells, strict=True))
    )
    assert group_by_column(ids, cohort, "site") is None
