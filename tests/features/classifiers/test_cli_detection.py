"""`mamamia score-detection` as its user runs it: tables of boxes, folders of masks."""

import csv
import json

import nibabel as nib
import numpy as np
import pytest
from tests.cli.warm_program import mamamia

from napari_mamamia.metrics.lesions import lesion_counts

CASES = "case_id,centre\nA,x\nB,x\nC,y\n"
LESIONS = """case_id,x1,x2,y1,y2,z1,z2
A,0,10,0,10,0,10
A,50,80,50,70,50,70
B,0,40,0,20,0,20
C,0,22,0,22,0,22
"""
BOXES = """case_id,x1,x2,y1,y2,z1,z2,score
A,50,78,50,70,50,70,0.9
A,52,80,50,70,50,70,0.8
A,1,10,0,10,0,10,0.3
B,100,108,0,8,0,8,0.7
B,0,36,0,20,0,20,0.6
C,150,250,0,100,0,30,0.95
C,100,106,0,6,0,6,0.5
C,1,20,1,20,0,22,0.4
"""


def run(folder, *more, cases=CASES, lesions=LESIONS, boxes=BOXES, bootstrap=0):
    """Score tables: what the program said, and what it wrote."""
    words = []
    for option, name, text in (
        ("--case-list", "cases.csv", cases),
        ("--lesions", "lesions.csv", lesions),
        ("--predictions", "boxes.csv", boxes),
    ):
        path = folder / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        words += [option, path]
    return ended(folder / "out", "score-detection", *words, "--bootstrap", bootstrap, *more)


def ended(out, *words):
    done = mamamia(*words, "--out", out, has_figures=False)
    assert "Traceback" not in done.stderr, done.stderr
    path = out / "detection.json"
    return done, json.loads(path.read_text()) if path.exists() else None


def table(path):
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def test_tables_of_boxes_give_every_number_in_the_named_shape(tmp_path):
    done, found = run(tmp_path, bootstrap=50)
    assert done.returncode == 0, done.stderr
    assert (found["matching"], found["iou"]) == ("greedy-score", 0.1)
    counts = ("n_cases", "n_lesions", "n_true_positives", "n_false_positives", "n_nearly_free")
    assert [found[name] for name in counts] == [3, 4, 4, 4, 1]
    assert found["froc"]["score"] == pytest.approx(0.5357142857, abs=5e-11)
    assert found["froc"]["reached_fp_per_case"] == 4 / 3
    assert found["froc"]["curve"][0] == [0, 0]
    assert found["froc"]["curve"][-1] == [4 / 3, 1]
    assert found["rafroc"] == {
        "strict": pytest.approx(0.6973303446, abs=5e-11),
        "reference-code": pytest.approx(0.7491893127, abs=5e-11),
        "paper-eq3": pytest.approx(0.2756776786, abs=5e-11),
        "ceiling": pytest.approx(0.3953329735, abs=5e-11),
    }
    assert found["strata"]["0-20mm"]["discard-then-match"]["n_false_positives"] == 3
    assert found["patient"]["auc"] is None
    assert found["patient"]["reason"] == "no case without a lesion"
    assert found["centres"]["x"]["n_lesions"] == 3
    assert {one["name"] for one in found["intervals"]} == {
        *("froc", "strict", "reference-code", "paper-eq3")
    }
    assert "4 of 4 lesions found, 4 false boxes in 3 cases" in done.stdout


def test_the_tables_beside_say_size_risk_and_the_box_that_found_a_lesion(tmp_path):
    run(tmp_path)
    first = table(tmp_path / "out" / "lesions.csv")[0]
    assert (first["axial_box_side_mm"], first["found_by_box"], first["score"]) == ("10", "3", "0.3")
    assert float(first["risk"]) == pytest.approx(0.18073, abs=5e-6)
    boxes = table(tmp_path / "out" / "boxes.csv")
    assert [row["outcome"] for row in boxes].count("false") == 4
    curve = table(tmp_path / "out" / "curve.csv")
    assert {row["curve"] for row in curve} == {"froc", "strict", "reference-code", "paper-eq3"}


def test_the_matching_can_be_chosen_and_stands_with_the_numbers(tmp_path):
    lesions = "case_id,x1,x2,y1,y2,z1,z2\nA,0,10,0,10,0,10\nA,6,16,0,10,0,10\n"
    boxes = "case_id,x1,x2,y1,y2,z1,z2,score\nA,2,12,0,10,0,10,.9\nA,0,5.8,0,10,0,10,.8\n"
    hungarian = ("--matching", "hungarian")
    done, found = run(tmp_path, *hungarian, cases="case_id\nA\n", lesions=lesions, boxes=boxes)
    assert (found["matching"], found["n_true_positives"]) == ("hungarian", 2)
    assert "Matching hungarian, box-iou at least 0.1" in done.stdout
    again = (*("--matching", "any-overlap"), "--overwrite")
    _, found = run(tmp_path, *again, cases="case_id\nA\n", lesions=lesions, boxes=boxes)
    assert (found["iou"], found["n_true_positives"], found["n_false_positives"]) == (None, 2, 0)


@pytest.mark.parametrize("separator", [";", "\t"])
def test_a_byte_order_mark_other_separators_and_decimal_commas_change_no_number(
    tmp_path, separator
):
    def foreign(text):
        changed = text.replace(",", separator).replace(".", ",")
        return b"\xef\xbb\xbf" + changed.replace("\n", "\r\n").encode()

    texts = {"cases": foreign(CASES), "lesions": foreign(LESIONS), "boxes": foreign(BOXES)}
    done, found = run(tmp_path, **texts)
    assert done.returncode == 0, done.stderr
    assert found["froc"]["score"] == pytest.approx(0.5357142857, abs=5e-11)


def test_the_names_of_the_published_examples_are_read(tmp_path):
    renamed = {"case_id": "Name", "score": "prob", "centre": "Site"}
    texts = []
    for text in (CASES, LESIONS, BOXES):
        for ours, theirs in renamed.items():
            text = text.replace(ours, theirs, 1)
        texts.append(text)
    _, found = run(tmp_path, cases=texts[0], lesions=texts[1], boxes=texts[2])
    assert found["n_true_positives"] == 4


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("A,0,10,0,10,0,10,nan", "score must be a number"),
        ("A,0,10,0,10,0,10,inf", "score must be a finite number"),
        ("A,0,10,0,10,0,10,", "score must be a number"),
        ("A,10,0,0,10,0,10,0.5", "x2 must be above x1"),
        ("A,0,10,0,10,5,5,0.5", "z2 must be above z1"),
        ("A,0,1e300,0,10,0,10,0.5", "x2 must be a plausible coordinate in mm"),
        ("A,zero,10,0,10,0,10,0.5", "x1 must be a number"),
        ("A,0,10,0,10,0,10", "7 cells, but the header has 8"),
    ],
)
def test_a_bad_row_of_the_prediction_is_named_and_never_better_than_a_wrong_box(
    tmp_path, row, reason
):
    done, found = run(tmp_path, boxes=BOXES + row + "\n")
    assert done.returncode == 3
    assert reason in done.stderr
    assert "row 10" in done.stderr
    assert (found["n_false_positives"], found["n_failures"]) == (5, 1)
    assert found["froc"]["score"] < 0.5357


def test_a_box_of_a_case_that_is_not_in_the_list_does_not_count_and_is_named(tmp_path):
    done, found = run(tmp_path, boxes=BOXES + "Z,0,10,0,10,0,10,0.99\n")
    assert done.returncode == 3
    assert "Z: row 10 of boxes.csv: the case is not in the case list" in done.stderr
    assert found["froc"]["score"] == pytest.approx(0.5357142857, abs=5e-11)


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        ({"lesions": LESIONS + "A,10,0,0,10,0,10\n"}, "x2 must be above x1"),
        ({"lesions": LESIONS + "A,0,nan,0,10,0,10\n"}, "x2 must be a number"),
        ({"lesions": LESIONS + "Z,0,10,0,10,0,10\n"}, "not in the case list"),
        ({"lesions": LESIONS + "A,0,10,0,10,0,10\n"}, "to contain each lesion once"),
        ({"lesions": "case_id,x1,x2\nA,0,1\n"}, "y1, y2, z1, z2 is missing"),
        ({"lesions": ""}, "it is empty"),
        ({"cases": CASES + "a,x\n"}, "to contain each case once"),
        ({"cases": "case_id\n"}, "no rows below the header"),
        ({"cases": "patient\nA\n"}, "case_id is missing"),
        ({"boxes": BOXES.replace("score", "risk", 1)}, "column risk in both tables"),
    ],
)
def test_a_truth_that_is_not_sound_refuses_the_run(tmp_path, texts, said):
    done, found = run(tmp_path, **texts)
    assert (done.returncode, found) == (1, None)
    assert said in done.stderr


def test_no_lesion_and_no_box_are_said(tmp_path):
    head = "case_id,x1,x2,y1,y2,z1,z2\n"
    done, found = run(tmp_path, lesions=head)
    assert done.returncode == 0
    assert (found["froc"]["score"], found["reason"]) == (None, "there is no lesion to find")
    done, found = run(tmp_path, "--overwrite", boxes=head[:-1] + ",score\n")
    assert (found["froc"]["score"], found["rafroc"]["strict"]) == (0, 0)
    done, found = run(tmp_path, "--overwrite", lesions=head, boxes=head)
    assert found["froc"]["score"] is None


def test_repeated_boxes_each_count_and_are_said(tmp_path):
    done, found = run(tmp_path, boxes=BOXES + BOXES.splitlines()[1] + "\n")
    assert (done.returncode, found["n_false_positives"]) == (0, 5)
    assert "1 predicted boxes repeat an earlier row, " in done.stderr


def test_boxes_without_scores_have_one_operating_point(tmp_path):
    bare = "\n".join(line.rsplit(",", 1)[0] for line in BOXES.splitlines())
    done, found = run(tmp_path, boxes=bare)
    assert found["froc"]["score"] is None
    assert found["froc"]["curve"] == [[4 / 3, 1]]
    assert found["rafroc"]["strict"] is None
    assert "one operating point" in done.stdout


def test_given_risks_count_instead_of_sizes(tmp_path):
    def risky(text, value):
        lines = text.splitlines()
        return "\n".join([lines[0] + ",risk", *(f"{line},{value}" for line in lines[1:])])

    _, found = run(tmp_path, lesions=risky(LESIONS, 1), boxes=risky(BOXES, 0))
    assert found["risk"] == "given"
    assert found["rafroc"]["strict"] == pytest.approx(found["froc"]["score"])


# ---------------------------------------------------------------- masks

AXIAL = np.diag([-2.0, -2.0, 3.0, 1.0])
SAGITTAL = np.array([[0, 0, 3.0, 0], [2.0, 0, 0, 0], [0, 2.0, 0, 0], [0, 0, 0, 1]])


def write(path, array, affine=AXIAL):
    path.parent.mkdir(parents=True, exist_ok=True)
    nib.save(nib.Nifti1Image(array, affine), path)


@pytest.fixture
def folders(tmp_path):
    """Write two cases of masks with maps: one lesion found of two, one false part."""
    reference, prediction = np.zeros((2, 20, 20, 10), np.uint8), np.zeros((2, 20, 20, 10), np.uint8)
    chance = np.zeros((2, 20, 20, 10), np.float32)
    reference[0, 2:6, 2:8, 2:4] = 1
    reference[0, 14:18, 14:18, 6:8] = 1
    prediction[0, 2:6, 2:8, 2:4] = 1
    prediction[1, 10:12, 10:12, 5:6] = 1
    chance[0, 3, 3, 3], chance[1, 10, 10, 5] = 0.9, 0.4
    for name, arrays in (("r", reference), ("p", prediction), ("c", chance)):
        for case_id, array in zip("AB", arrays, strict=True):
            write(tmp_path / name / f"{case_id}.nii.gz", array)
    return tmp_path


def run_masks(folder, *more, has_maps=True):
    words = ["--reference", folder / "r", "--prediction", folder / "p", "--bootstrap", 0]
    words += ["--probability", folder / "c"] if has_maps else []
    return ended(folder / "out", "score-detection", *words, *more)


def test_masks_are_scored_by_their_parts(folders):
    done, found = run_masks(folders)
    assert done.returncode == 0, done.stderr
    counts = ("n_cases", "n_lesions", "n_true_positives", "n_false_positives")
    assert [found[name] for name in counts] == [2, 2, 1, 1]
    assert found["froc"]["curve"] == [[0, 0], [0, 0.5], [0.5, 0.5]]
    assert found["patient"]["auc"] == 1
    lesion = table(folders / "out" / "lesions.csv")[0]
    # 4 x 6 voxels of 2 mm in plane, 2 slices of 3 mm
    assert lesion["axial_box_side_mm"] == "12"
    assert float(lesion["x2_mm"]) - float(lesion["x1_mm"]) == 8
    assert float(lesion["z2_mm"]) - float(lesion["z1_mm"]) == 6
    assert lesion["score"] == str(np.float64(np.float32(0.9)))


def test_without_maps_masks_have_one_operating_point(folders):
    _, found = run_masks(folders, has_maps=False)
    assert found["froc"] == {"score": None, "reached_fp_per_case": 0.5, "curve": [[0.5, 0.5]]}


def test_the_size_of_a_sagittal_volume_follows_the_patients_axes(folders):
    for name in "rp":
        for case_id in "AB":
            path = folders / name / f"{case_id}.nii.gz"
            write(path, np.asarray(nib.load(path).dataobj), SAGITTAL)
    _, found = run_masks(folders, has_maps=False)
    lesion = table(folders / "out" / "lesions.csv")[0]
    # array axes: 4 x 2 mm from back to front, 6 x 2 mm along the body, 2 x 3 mm from side to side
    assert lesion["axial_box_side_mm"] == "8"
    assert float(lesion["z2_mm"]) - float(lesion["z1_mm"]) == 12
    assert found["n_true_positives"] == 1


def test_the_box_of_nndetection_is_half_a_voxel_larger_on_each_side(folders):
    run_masks(folders, "--box", "nndetection")
    assert table(folders / "out" / "lesions.csv")[0]["axial_box_side_mm"] == "14"


def test_any_overlap_of_masks_is_the_rule_of_lesion_counts(tmp_path):
    rng = np.random.default_rng(3)
    found, missed, false = 0, 0, 0
    for case_id in "ABC":
        arrays = [(rng.random((12, 12, 8)) > 0.985).astype(np.uint8) for _ in range(2)]
        arrays[1][:6] |= arrays[0][:6]
        write(tmp_path / "r" / f"{case_id}.nii.gz", arrays[0])
        write(tmp_path / "p" / f"{case_id}.nii.gz", arrays[1])
        counts = lesion_counts(*(array.transpose().astype(bool) for array in arrays))
        found, missed, false = found + counts.found, missed + counts.missed, false + counts.false
    _, made = run_masks(tmp_path, "--matching", "any-overlap", has_maps=False)
    assert (made["n_true_positives"], made["n_false_positives"]) == (found, false)
    assert made["n_lesions"] == found + missed


@pytest.mark.parametrize("overlap", ["mask-iou", "mask-dice"])
def test_overlap_of_masks_counts_voxels(folders, overlap):
    half = np.zeros((20, 20, 10), np.uint8)
    half[2:6, 2:5, 2:4] = 1
    write(folders / "p" / "A.nii.gz", half)
    run_masks(folders, "--overlap", overlap)
    value = float(table(folders / "out" / "lesions.csv")[0]["overlap"])
    assert value == pytest.approx({"mask-iou": 24 / 48, "mask-dice": 48 / 72}[overlap])


@pytest.mark.parametrize("damage", ["missing", "cut", "moved", "twice"])
def test_a_prediction_that_cannot_be_used_costs_its_case_and_is_never_better(folders, damage):
    _, whole = run_masks(folders)
    path = folders / "p" / "B.nii.gz"
    if damage == "missing":
        path.unlink()
    elif damage == "cut":
        path.write_bytes(path.read_bytes()[:60])
    elif damage == "twice":
        nib.save(nib.load(path), path.with_suffix(""))
    else:
        moved = AXIAL.copy()
        moved[:3, 3] = 5
        write(path, np.asarray(nib.load(path).dataobj), moved)
    done, found = run_masks(folders, "--overwrite")
    assert done.returncode == 3
    assert "B: counted as the worst prediction" in done.stderr
    assert found["froc"]["score"] < whole["froc"]["score"]
    assert found["patient"]["auc"] == 0


def test_the_same_grid_in_another_order_of_axes_is_reordered_and_said(folders):
    _, before = run_masks(folders)
    for name in "pc":
        path = folders / name / "A.nii.gz"
        image = nib.as_closest_canonical(nib.load(path))
        nib.save(image, path)
    done, after = run_masks(folders, "--overwrite")
    assert done.returncode == 0, done.stderr
    assert (
        "axes stored in a different order: 1 (first A); they were reordered without resampling"
        in done.stderr
    )
    assert after["froc"] == before["froc"]


def test_a_reference_that_cannot_be_read_leaves_its_case_out(folders):
    path = folders / "r" / "B.nii.gz"
    path.write_bytes(path.read_bytes()[:60])
    done, found = run_masks(folders)
    assert (done.returncode, found["n_cases"]) == (3, 1)
    assert "B: left out" in done.stderr


def test_a_prediction_without_reference_does_not_count(folders):
    (folders / "p" / "Z.nii.gz").write_bytes((folders / "p" / "A.nii.gz").read_bytes())
    done, found = run_masks(folders)
    assert (done.returncode, found["n_cases"]) == (3, 2)
    assert "Z: there is no reference" in done.stderr


def test_a_listed_case_needs_a_reference(folders):
    (folders / "cases.csv").write_text("case_id,site\nA,x\nB,y\nC,y\n")
    done, _ = run_masks(folders, "--case-list", folders / "cases.csv")
    assert done.returncode == 1
    assert "1 have none (first C)" in done.stderr
    (folders / "cases.csv").write_text("case_id,site\nA,x\nB,y\n")
    done, found = run_masks(folders, "--case-list", folders / "cases.csv")
    assert (done.returncode, sorted(found["centres"])) == (0, ["x", "y"])


def test_half_a_command_says_what_is_missing(tmp_path):
    done, _ = ended(tmp_path / "out", "score-detection", "--reference", tmp_path)
    assert done.returncode == 2
    assert "pass all options of one set" in " ".join(done.stderr.replace("│", " ").split())
