"""The official numbers are one set of bits, from whichever entry point they are asked for.

Eight cases, one emptied in the best group. The published scripts define such a case (Dice 0,
NormHD 1) and stop at one that is missing, damaged or of another shape.
"""

import csv
import json
import shutil
from math import fsum

import nibabel as nib
import numpy as np
import pytest
from tests.cli.warm_program import mamamia

import napari_mamamia as mm
from napari_mamamia.scoring.case.profiles import OFFICIAL_CODE
from napari_mamamia.services.score.settings import ScoreSettings
from napari_mamamia.widgets.base.service_record import Services

pytestmark = pytest.mark.usefixtures("quick_figures")

SHAPE = (6, 20, 24)
AFFINE = np.diag([-0.8, 0.8, 2.0, 1.0])
AGES = (35, 36, 38, 45, 47, 55, 58, 64)
SHIFTS = (0, 0, 0, 1, 2, 1, 3, 2)
EMPTY = 1
PCR = (1, 0, 1, 0, 1, 0, 0, 1)
OFFICIAL = ("--profile", "official-code", "--bootstrap", 0)


def name_of(number):
    return f"C_{number}"


def save(path, start, shape=SHAPE):
    path.parent.mkdir(parents=True, exist_ok=True)
    array = np.zeros(shape, np.uint8)
    if start is not None:
        array[1:4, start : start + 5, 8:13] = 1
    nib.save(nib.Nifti1Image(array.transpose(), AFFINE), path)


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("official")
    rows = ["patient_id,age,menopause,breast_density,pcr"]
    for number, (age, shift) in enumerate(zip(AGES, SHIFTS, strict=True)):
        save(folder / "reference" / f"{name_of(number)}.nii.gz", 6)
        start = None if number == EMPTY else 6 + shift
        save(folder / "team" / f"{name_of(number)}.nii.gz", start)
        group = f"{('pre', 'post')[number > 3]},{'ab'[number % 2]}"
        rows.append(f"{name_of(number)},{age},{group},{PCR[number]}")
    (folder / "clinical.csv").write_text("\n".join(rows))
    return folder


def command(*words, codes=(0, 3)):
    done = mamamia(*words, has_figures=False)
    assert done.returncode in codes, done.stderr
    return done


def numbers_of(folder):
    task = json.loads((folder / "summary.json").read_text())["task1"]
    return task["ranking_score"], task["performance"], task["fairness"]


def board_of(folder, task="segmentation"):
    content = json.loads((folder / "leaderboard.json").read_text())
    (board,) = (one for one in content["boards"] if one["task"] == task)
    return {row["team"]: row for row in board["rows"]}


def by_hand():
    """Return score, performance and fairness of the case scores as the scripts' formulas say."""
    # 5 of 5 rows shifted by s: 5 - s in common; HD95 of a shift along one axis is s voxels
    dsc = [0.0 if k == EMPTY else (5 - s) / 5 for k, s in enumerate(SHIFTS)]
    norm_hd = [1.0 if k == EMPTY else s / 150 for k, s in enumerate(SHIFTS)]
    groups = {
        "age": [0 if a <= 40 else 1 if a <= 50 else 2 if a <= 60 else 3 for a in AGES],
        "menopause": [int(k > 3) for k in range(8)],
        "density": [k % 2 for k in range(8)],
    }

    def mean(values):
        return fsum(values) / len(values)

    def gap(values, codes):
        means = [
            mean([v for v, c in zip(values, codes, strict=True) if c == code])
            for code in set(codes)
        ]
        return max(means) - min(means)

    performance = (mean(dsc) + 1 - mean(norm_hd)) / 2
    fairness = mean([1 - (gap(dsc, c) + gap(norm_hd, c)) / 2 for c in groups.values()])
    return (performance + fairness) / 2, performance, fairness


@pytest.fixture(scope="module")
def scored(world):
    """Score the team's folder by the command."""
    command(
        "score", "--reference", world / "reference", "--prediction", world / "team",
        "--clinical", world / "clinical.csv", *OFFICIAL, "--out", world / "scored",
    )  # fmt: skip
    return world / "scored"


def write_table(path, rows, columns):
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    return path


def score_rows(world, table, out):
    given = (table, "--clinical", world / "clinical.csv", *OFFICIAL, "--out", out)
    return command("score-table", *given)


def begin(world, folder, *extras):
    command(
        "challenge", "init", folder, "--reference", world / "reference", "--clinical",
        world / "clinical.csv", *OFFICIAL, *extras,
    )  # fmt: skip
    return folder / "submissions"


def test_every_entry_point_gives_the_official_numbers_to_the_bit(world, scored, tmp_path):
    expected = numbers_of(scored)
    assert expected == pytest.approx(by_hand(), abs=1e-12)
    assert expected[0] == (expected[1] + expected[2]) / 2

    rows = list(csv.DictReader((scored / "case_scores.csv").open()))
    assert rows[EMPTY]["status"] == "prediction_empty"
    bare = write_table(tmp_path / "bare.csv", rows[::-1], ("case_id", "dsc", "norm_hd"))
    stated = write_table(tmp_path / "stated.csv", rows, ("case_id", "status", "dsc", "norm_hd"))
    score_rows(world, bare, tmp_path / "bare")
    score_rows(world, stated, tmp_path / "stated")
    blank = [row | {"dsc": "", "norm_hd": ""} if row["status"] != "ok" else row for row in rows]
    columns = ("case_id", "status", "dsc", "norm_hd")
    score_rows(world, write_table(tmp_path / "blank.csv", blank, columns), tmp_path / "blank")

    teams = begin(world, tmp_path / "cup", "--take-tables")
    shutil.copytree(world / "team", teams / "masks")
    shutil.copy(bare, teams / "bare.csv")
    shutil.copy(stated, teams / "stated.csv")
    lacking = [row | {"status": row["status"].replace("empty", "missing")} for row in rows]
    write_table(teams / "lacking.csv", lacking, ("case_id", "status", "dsc", "norm_hd"))
    command("challenge", "run", tmp_path / "cup")
    command("challenge", "rank", tmp_path / "cup", "--out", tmp_path / "board")
    board = board_of(tmp_path / "board")
    without = board.pop("lacking")
    assert (without["score"], without["performance"], without["fairness"]) == (None, None, None)
    assert f"{name_of(EMPTY)} missing" in without["reason"]

    given = {"clinical": world / "clinical.csv", "profile": "official-code", "bootstrap": 0}
    of_files = mm.score(world / "reference", world / "team", **given, progress=False)
    masks = {
        side: {name_of(k): mm.read_mask(world / side / f"{name_of(k)}.nii.gz") for k in range(8)}
        for side in ("reference", "team")
    }
    in_memory = mm.score(masks["reference"], masks["team"], **given, progress=False)
    of_table = mm.score_table(bare, **given, progress=False)

    settings = ScoreSettings(OFFICIAL_CODE, world / "clinical.csv", n_resamples=0)
    window = Services().score_folders(
        world / "reference", world / "team", tmp_path / "window", settings
    )
    shown = window.model.segmentation.cohort

    found = {
        "score-table, bare rows": numbers_of(tmp_path / "bare"),
        "score-table, with a status": numbers_of(tmp_path / "stated"),
        "score-table, a status and no numbers": numbers_of(tmp_path / "blank"),
        "mm.score of files": numbers_in(of_files.summary),
        "mm.score of masks": numbers_in(in_memory.summary),
        "mm.score_table": numbers_in(of_table.summary),
        "window": (shown.ranking_score, shown.performance.value, shown.fairness.value),
        **{
            f"challenge, {team}": (row["score"], row["performance"], row["fairness"])
            for team, row in board.items()
        },
    }
    assert {name: numbers for name, numbers in found.items() if numbers != expected} == {}
    assert len(board) == 3


def numbers_in(summary):
    task = summary["task1"]
    return task["ranking_score"], task["performance"], task["fairness"]


def test_a_guard_against_empty_masks_has_its_own_name_beside_the_official_score(
    world, scored, tmp_path
):
    teams = begin(world, tmp_path / "cup")
    shutil.copytree(world / "team", teams / "emptied")
    shutil.copytree(world / "team", teams / "honest")
    save(teams / "honest" / f"{name_of(EMPTY)}.nii.gz", 6)
    command("challenge", "run", tmp_path / "cup")
    ranked = command("challenge", "rank", tmp_path / "cup", "--out", tmp_path / "board")
    board = board_of(tmp_path / "board")
    assert board["emptied"]["score"] == numbers_of(scored)[0]
    # by trying each end of the one free case: its Dice 0 or 1, its NormHD 0 or 1
    rows = list(csv.DictReader((scored / "case_scores.csv").open()))
    ends = []
    for dsc in (0, 1):
        for norm_hd in (0, 1):
            rows[EMPTY] |= {"dsc": dsc, "norm_hd": norm_hd}
            table = write_table(tmp_path / "end.csv", rows, ("case_id", "dsc", "norm_hd"))
            given = {"clinical": world / "clinical.csv", "profile": "official-code"}
            ends.append(mm.score_table(table, **given, bootstrap=0, progress=False))
    lowest = min(numbers_in(one.summary)[0] for one in ends)
    assert board["emptied"]["guarded_score"] == pytest.approx(lowest, abs=1e-12)
    assert board["emptied"]["guarded_score"] <= board["emptied"]["score"]
    assert board["honest"]["guarded_score"] is None
    assert "guarded score" in (tmp_path / "board" / "leaderboard.html").read_text()
    assert "guarded score" in ranked.stdout


@pytest.mark.parametrize("kind", ["missing", "damaged", "another shape"])
def test_what_the_scripts_stop_at_has_no_official_number_and_others_go_on(world, kind, tmp_path):
    broken = tmp_path / "broken"
    shutil.copytree(world / "team", broken)
    path = broken / f"{name_of(3)}.nii.gz"
    if kind == "missing":
        path.unlink()
    elif kind == "damaged":
        path.write_bytes(b"no image")
    else:
        save(path, 6, (5, 20, 24))
    command(
        "score", "--reference", world / "reference", "--prediction", broken, "--prediction",
        world / "team", "--clinical", world / "clinical.csv", *OFFICIAL, "--out", tmp_path / "out",
    )  # fmt: skip
    summary = json.loads((tmp_path / "out" / "broken" / "summary.json").read_text())
    task = summary["task1"]
    names = ("mean_dsc", "mean_norm_hd", "performance", "fairness", "ranking_score")
    assert [task[name] for name in names] == [None] * 5
    assert set(task["fairness_by_variable"].values()) == {None}
    assert name_of(3) in summary["policy"]["rejected"]
    assert name_of(EMPTY) not in summary["policy"]["rejected"]
    assert numbers_of(tmp_path / "out" / "team")[0] == pytest.approx(by_hand()[0], abs=1e-12)


def test_a_table_that_contradicts_its_status_is_no_official_number(world, tmp_path):
    rows = [{"case_id": name_of(k), "status": "ok", "dsc": 0.5, "norm_hd": 0.1} for k in range(8)]
    rows[EMPTY]["status"] = "prediction_empty"
    table = write_table(tmp_path / "t.csv", rows, ("case_id", "status", "dsc", "norm_hd"))
    done = score_rows(world, table, tmp_path / "out")
    assert numbers_of(tmp_path / "out") == (None, None, None)
    assert f"{name_of(EMPTY)}: the status is prediction_empty, but Dice is 0.5" in done.stderr


def test_constant_responses_have_the_official_number_everywhere_and_no_place(world, tmp_path):
    """All predictions 0: TPR 0 and TNR 1, in each group too; (1/2 + 1)/2."""
    table = tmp_path / "zeros.csv"
    table.write_text("patient_id,pcr,score\n" + "\n".join(f"{name_of(k)},0,.1" for k in range(8)))
    clinical = world / "clinical.csv"
    done = command("score-pcr", table, "--clinical", clinical, *OFFICIAL, "--out", tmp_path / "out")
    task = json.loads((tmp_path / "out" / "summary.json").read_text())["task2"]
    official = task["ranking_score"], task["balanced_accuracy"], task["fairness"]
    assert official == (0.75, 0.5, 1.0)
    assert "all 8 predictions are 0" in done.stdout
    teams = begin(world, tmp_path / "cup", "--task", "both")
    shutil.copy(table, teams / "zeros.csv")
    mixed = table.read_text().replace(f"{name_of(0)},0", f"{name_of(0)},1")
    (teams / "mixed.csv").write_text(mixed)
    command("challenge", "run", tmp_path / "cup")
    command("challenge", "rank", tmp_path / "cup", "--out", tmp_path / "board")
    board = board_of(tmp_path / "board", "classification")
    row = board["zeros"]
    assert (row["score"], row["performance"], row["fairness"]) == official
    assert row["rank"] is None
    assert "constant predictions" in row["reason"]
    assert board["mixed"]["rank"] == 1
    plain = command("score-pcr", table, "--clinical", clinical, "--bootstrap", 0,
                    "--out", tmp_path / "plain")  # fmt: skip
    task = json.loads((tmp_path / "plain" / "summary.json").read_text())["task2"]
    assert task["ranking_score"] is None
    assert "rejects constant predictions" in plain.stdout
