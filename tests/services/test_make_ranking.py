"""A ranking of the models that were scored in a data set's workspace."""

import json
import os

import pytest

from napari_mamamia.core.errors import MamamiaError
from napari_mamamia.features.challenge.services.rank.making import list_score_tables, make_ranking

VALUES = {"good": (0.9, 0.8, 0.7), "bad": (0.5, 0.4, "")}


@pytest.fixture
def scores(tmp_path):
    folder = tmp_path / "workspace" / "scores"
    for name, values in VALUES.items():
        write_table(folder / name, name, values)
    return folder


def write_table(folder, model, values):
    folder.mkdir(parents=True)
    rows = [
        f"C{index},{'ok' if value else 'missing'},{value}" for index, value in enumerate(values)
    ]
    (folder / "case_scores.csv").write_text("\n".join(("case_id,status,dsc", *rows)) + "\n")
    (folder / "run.json").write_text(json.dumps({"parameters": {"prediction": model}}))


def test_the_latest_scores_of_each_model_are_listed(scores):
    write_table(scores / "good 2", "good", (0.9, 0.9, 0.9))
    os.utime(scores / "good" / "case_scores.csv", (0, 0))
    tables = list_score_tables(scores)
    assert [(table.name, table.path.parent.name) for table in tables] == [
        ("bad", "bad"),
        ("good", "good 2"),
    ]
    assert list_score_tables(scores / "none") == ()


def test_a_ranking_is_a_new_folder_each_time_and_the_better_model_is_first(scores):
    tables = list_score_tables(scores)
    first, second = (make_ranking(tables, "dsc", scores) for _ in range(2))
    assert first != second
    assert first.parent == second.parent == scores.parent / "rankings"
    ranks = json.loads((first / "rank.json").read_text())["methods"]["mean-then-rank"]
    assert ranks == {"good": 1, "bad": 2}


def test_a_metric_that_no_table_has_is_refused_and_leaves_no_folder(scores):
    with pytest.raises(MamamiaError):
        make_ranking(list_score_tables(scores), "norm_hd", scores)
    assert not (scores.parent / "rankings").exists()
