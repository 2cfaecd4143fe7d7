"""A morning of five cases in the started window, by mouse and keys: docs/methods/actions.md.

The page holds the counts of each case; processor seconds of the window's main thread are written to
`morning.json` beside the pictures.
"""

import csv
import json
import re
import subprocess
from dataclasses import asdict
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
from morning import Hand, read_morning
from morning_cases import MASS, NON_MASS, NORMAL, PRIOR, SAGITTAL, write_morning

pytestmark = [pytest.mark.door, pytest.mark.night, pytest.mark.timeout(2400)]
PAGE = Path(__file__).parents[2] / "docs" / "methods" / "actions.md"
CASES = (MASS, NORMAL, NON_MASS, SAGITTAL, PRIOR)
ROW = re.compile(r"^\| ([A-Z]_\w+) \|.*?((?:\| \d+ ){3})\| \*\*(\d+)\*\* \|", re.MULTILINE)


def test_five_cases_are_read_with_the_actions_of_the_page_and_leave_masks_and_findings(
    start, scripts, tmp_path, real_data, picture_folder
):
    data_set = tmp_path / "morning"
    kinds = write_morning(data_set, scripts / "mamamia", real_data("ispy1_1002.zip"))
    program = start("mamamia", "view", data_set)
    program.widget("cases_table")
    program.click("header_reader")
    program.screen.xdotool("type", "Ana")
    program.screen.key("Return")
    program.wait_for_text("Ana")
    hand = Hand(program, lambda name: program.screen.picture(picture_folder / f"{name}.png"))
    found = read_morning(hand, CASES)
    told = [{**asdict(one), "what": kinds[one.case]} for one in found]
    (picture_folder / "morning.json").write_text(json.dumps(told, indent=1))
    workspace = data_set.with_name("morning-workspace")
    masks = {path.name.split(".")[0] for path in (workspace / "refined" / "Ana").glob("*.nii.gz")}
    assert masks == {MASS, NON_MASS, SAGITTAL, PRIOR}
    for case in sorted(masks):
        mask = nib.load(workspace / "refined" / "Ana" / f"{case}.nii.gz")
        assert (np.asarray(mask.dataobj) > 0).any(), case
    program.end()
    out = tmp_path / "findings"
    command = [scripts / "mamamia", "findings", data_set, "--out", out]
    subprocess.run(command, check=True, capture_output=True, timeout=240)
    said = {row["case_id"]: row for row in csv.DictReader((out / "findings.csv").open())}
    assert set(said) == set(CASES)
    assert (said[MASS]["finding"], said[MASS]["assessment@right"]) == ("mass", "5")
    assert said[NON_MASS]["finding"] == "nme"
    negative = said[NORMAL]["assessment@right"], said[NORMAL]["assessment@left"]
    assert negative == ("1", "1")
    assert said[SAGITTAL]["assessment@right"] == "4"

    counted = {one.case: (one.keys, one.clicks, one.strokes, one.actions) for one in found}
    rows = ROW.findall(PAGE.read_text())
    held = {case: (*map(int, parts.split("|")[1:]), int(whole)) for case, parts, whole in rows}
    assert held == counted
