"""What a type checker makes of a script that imports the library: wrong calls are found."""

import re

import pytest
from mypy import api

RIGHT = """
from pathlib import Path
import napari_mamamia as mm

data_set: mm.DataSet = mm.open_data_set(Path("data"))
for case in data_set:
    if case.reference is not None:
        dice: float = mm.metrics.dice(case.reference, mm.predict(case).mask, case.grid)
    volume: float = mm.kinetics.ftv(case, box="breast").volume_cc
    peak: float = mm.kinetics.maps(case, "pe")["pe"].max()
    grown: mm.Mask = mm.grow(case, click=(1, 2, 3)).mask
predictions: mm.Predictions = mm.predict(data_set, out="out", existing="resume")
scores: mm.Scores = mm.score(data_set, predictions, clinical=data_set, profile="paper")
worst: str = str(scores.cases["dsc"].idxmin())
page: Path = scores.compare(mm.score_table("theirs.csv")).report("page.html")
table = mm.import_dicom("dicom", "data").data_set.cases
mm.export(data_set, {"mine": "a", "yours": "b"}, "bundle", formats="bids", fuse="majority")
"""
WRONG = [
    'mm.score("a", "b", profile="klinical")',
    "mm.open_data_set(3)",
    "mm.scor",
    "mm.metrics.dise",
    "mm.predict(mm.open_data_set('a'))",
    "mm.predict(mm.open_data_set('a')['b'], out='c')",
    "mm.export('a', 'b', 'c')",
    "mm.score('a', 'b', bootstrap='1000')",
    "mm.kinetics.ftv(mm.open_data_set('a'))",
    "mm.open_data_set('a')['b'].referense",
    "len(mm.predict(mm.open_data_set('a')['b']))",
]


@pytest.mark.night
def test_right_calls_pass_and_each_wrong_call_is_found(tmp_path, pytestconfig):
    script = tmp_path / "script.py"
    head = RIGHT.lstrip() + "# wrong from here on\n"
    script.write_text(head + "".join(f"{line}\n" for line in WRONG))
    cache = pytestconfig.cache.mkdir("mypy")  # where it is empty, this takes 20 s of processor time
    options = ["--strict", "--config-file=", f"--cache-dir={cache}", "--no-error-summary"]
    said, failed, _ = api.run([*options, str(script)])
    assert not failed, failed
    lines = {int(number) for number in re.findall(r"script\.py:(\d+): error", said)}
    first = head.count("\n") + 1
    assert lines == set(range(first, first + len(WRONG))), said
