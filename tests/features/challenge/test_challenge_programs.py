"""Programs in a challenge, through the real command: a good one, and those that break the rules."""

import csv
import json
import shutil
import sys
from pathlib import Path

import pytest
from tests.cli.warm_program import mamamia

sys.path.insert(0, str(Path(__file__).parents[2] / "segmentation"))
import foreign

pytestmark = pytest.mark.night  # a program is waited for until its time is over: 15 s

# writes a box of tumour for each case, with what Python itself has: a run costs 0.3 s
WRITE = """
import gzip
(out / "pred_segmentations").mkdir()
for case_id in self.dataset.get_patient_id_list():
    with gzip.open(self.dataset.get_dce_mri_path_list(case_id)[0]) as stream:
        header = bytearray(stream.read(352))
    header[70:74] = (2).to_bytes(2, "little") + (8).to_bytes(2, "little")
    header[112:120] = bytes(8)
    nx, ny, nz = (int.from_bytes(header[at : at + 2], "little") for at in (42, 44, 46))
    voxels = bytearray(nx * ny * nz)
    for z in range(2, 6):
        for y in range(10, 20):
            for x in range(20, 30):
                voxels[(z * ny + y) * nx + x] = 1
    {more}
    with gzip.open(out / "pred_segmentations" / (case_id + ".nii.gz"), "wb") as stream:
        stream.write(bytes(header) + bytes(voxels))
"""
ENDLESS = "while True:\n    pass"
ELSEWHERE = """
import os, subprocess
for place in ("{place}", os.path.expanduser("~/stolen"), "/tmp/stolen", "/etc/stolen"):
    try:
        open(place, "w").write("x")
    except OSError as error:
        print("refused", place)
"""
OTHER_GRID = """
    import struct
    header[292:296] = struct.pack("<f", struct.unpack("<f", header[292:296])[0] + 5)
"""
HALF = """
    if case_id != "A_1":
        raise RuntimeError("no memory of " + case_id)
"""


def indented(text):
    return "\n    ".join(text.strip().splitlines())


@pytest.fixture(scope="module")
def story(data_set_of_module, tmp_path_factory):
    """Return what `challenge run` said and left of one good program and four others."""
    if isinstance(foreign.sandbox(), str):
        pytest.skip(foreign.sandbox())
    root = tmp_path_factory.mktemp("programs")
    data, folder = data_set_of_module, root / "challenge"
    begun = mamamia(
        "challenge", "init", folder, "--reference", data / "segmentations" / "expert",
        "--images", data, "--time-limit", 4, "--express-case", "A_1", "--bootstrap", 0,
    )  # fmt: skip
    assert begun.returncode == 0, begun.stderr
    teams = folder / "submissions"
    plain = WRITE.format(more="pass")
    foreign.write_submission(root / "good", plain)
    shutil.make_archive(str(teams / "good"), "zip", root / "good")
    foreign.write_submission(teams / "endless", ENDLESS)
    place = root / "stolen"
    foreign.write_submission(teams / "elsewhere", ELSEWHERE.format(place=place) + plain)
    foreign.write_submission(teams / "grid", WRITE.format(more=indented(OTHER_GRID)))
    foreign.write_submission(teams / "half", WRITE.format(more=indented(HALF)))
    done = mamamia("challenge", "run", folder, "--as-root")
    return folder, done, root


def scores_of(folder, team):
    (table,) = (folder / "results" / team).rglob("scores/case_scores.csv")
    return {row["case_id"]: row for row in csv.DictReader(table.open())}


def test_a_good_program_in_a_zip_is_scored_and_the_others_cost_it_nothing(story):
    folder, done, _ = story
    assert done.returncode == 3, done.stderr
    assert "good (program), 1st attempt: scored" in done.stdout
    rows = scores_of(folder, "good")
    assert {row["status"] for row in rows.values()} == {"ok"}
    assert len({row["dsc"] for row in rows.values()}) == 1
    assert 0 < float(rows["A_1"]["dsc"]) < 1


def test_a_program_that_never_ends_is_stopped_in_the_express_lane_and_is_no_attempt(story):
    _, done, _ = story
    assert "endless (program): stopped in the express lane" in done.stdout
    assert "endless: " in done.stderr
    assert "expected a case within the time limit of 4 s" in done.stdout


def test_a_program_that_writes_elsewhere_changes_nothing_there(story):
    folder, done, root = story
    assert "elsewhere (program), 1st attempt: scored" in done.stdout
    for place in (root / "stolen", Path("~/stolen").expanduser(), Path("/etc/stolen")):
        assert not place.exists()
    assert not Path("/tmp/stolen").exists()
    assert scores_of(folder, "elsewhere")["A_1"]["dsc"] == scores_of(folder, "good")["A_1"]["dsc"]


def test_masks_on_another_grid_are_stopped_in_the_express_lane_with_the_reason(story):
    folder, done, _ = story
    assert "grid (program): stopped in the express lane" in done.stdout
    assert not list((folder / "results" / "grid").rglob("case_scores.csv"))
    (letter,) = (folder / "results" / "grid").rglob("for_team/*.txt")
    assert letter.is_file()


def test_a_program_that_crashes_after_the_express_lane_is_scored_with_what_it_lacks(story):
    folder, done, _ = story
    assert "half (program), 1st attempt: scored" in done.stdout
    rows = scores_of(folder, "half")
    assert rows["A_1"]["status"] == "ok"
    assert {rows[case]["status"] for case in ("A_2", "B_1")} == {"prediction_missing"}
    assert "A_2" in done.stdout
    # what may go back to the team says why, without a case's id
    texts = [path.read_text() for path in (folder / "results" / "half").rglob("for_team/*")]
    assert any("no memory of" in text for text in texts)
    assert not any("A_2" in text for text in texts)


def test_who_is_ranked_and_who_is_proved(story, tmp_path):
    folder, _, _ = story
    ranked = mamamia("challenge", "rank", folder, "--out", tmp_path / "board", has_figures=False)
    assert ranked.returncode == 0, ranked.stderr
    rows = json.loads((tmp_path / "board" / "leaderboard.json").read_text())["boards"][0]["rows"]
    assert [(row["team"], row["rank"]) for row in rows] == [
        ("elsewhere", 1), ("good", 1), ("half", 3), ("endless", None), ("grid", None),
    ]  # fmt: skip
    proved = mamamia("challenge", "verify", folder)
    assert proved.returncode == 0, proved.stdout
