"""What cases are filtered by."""

import numpy as np

from napari_mamamia.scoring.cohort.groups import Grouping
from napari_mamamia.services.score.case_table import _merge_groupings


def grouping_of(labels):
    return Grouping("site", tuple(labels), np.arange(len(labels), dtype=np.intp))


def test_more_groups_than_a_number_has_bits_share_the_last():
    scored = grouping_of([f"site {k}" for k in range(40)])
    others = grouping_of([f"other {k}" for k in range(30)])
    parts = [(np.arange(40), scored), (np.arange(40, 70), others)]
    facet = _merge_groupings("site", 71, parts)
    assert len(facet.values) == 63
    counts = dict(zip(facet.values, facet.counts, strict=True))
    assert counts["site 0"] == counts["other 20"] == 1
    assert counts["other groups"] == 70 - 61
    assert counts["in no group"] == 1
    assert sum(facet.counts) == 71
