"""FTV under a SEG of UCSF: on SEGs made by hand, hostile ones, and UCSF's own of a real exam."""

import csv
import zipfile

import numpy as np
import pydicom
import pytest
from tests.cli.warm_program import mamamia
from tests.io.made_ucsf_seg import THRESHOLDS, measure, region
from tests.services.seg_of_case import VOI, lps_of, make_seg, phases_of, slow_ftv
from typer.testing import CliRunner

from napari_mamamia.cli.app import app


def typed(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def rows_of(path):
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.mark.door
def test_ours_and_theirs_stand_side_by_side_for_the_case_of_the_seg(small_data_set, tmp_path):
    pe, ser, least = make_seg(small_data_set, tmp_path / "seg.dcm")
    assert pe > 20
    words = [
        "kinetics",
        small_data_set,
        "--ftv-from",
        tmp_path / "seg.dcm",
        "--out",
        tmp_path / "o",
    ]
    done = mamamia(*words)
    assert done.returncode == 0, done.stderr
    first, second = rows_of(tmp_path / "o" / "ftv_from.csv")
    assert (first["case_id"], first["seg"], first["measure"]) == ("A_1", "seg.dcm", "pe")
    assert second["measure"] == "ser"
    for row, count in ((first, pe), (second, ser)):
        assert int(row["ours_voxels"]) == int(row["theirs_voxels"]) == count
        assert float(row["ours_cc"]) == pytest.approx(count * 1.28 / 1000)
        assert float(row["theirs_cc"]) == pytest.approx(float(row["ours_cc"]))
        assert row["ftv_variant"] == "ucsf-ispy1"
    assert (first["different_voxels"], first["background_signal"]) == ("0", str(least))
    said = done.stdout.replace("\u00a0", " ")
    assert "early post 1" in said
    assert f"{pe} " in said
    assert not (tmp_path / "o" / "kinetics.csv").exists()


def test_an_omitted_box_is_left_out(small_data_set, tmp_path):
    whole, _, _ = make_seg(small_data_set, tmp_path / "whole.dcm")
    corner = np.add(lps_of(0, 0, 0), (0.4, 0.4, 0))
    half = [0.8 * 48, 0.8 * 32, 2.0 * 4.5]  # all of the slices 0 to 4
    centre = np.add(corner, (0.8 * 24, 0.8 * 16, 0))
    ends = [np.array(lps_of(*[axis[k] - k for axis in VOI])) for k in (0, 1)]
    inside = region((ends[0] + ends[1]) / 2 + (0.4, 0.4, 0), [5.6, 5.6, 7.0])
    regions = [inside, region(centre, half, is_inside=False)]
    thresholds = {k: v for k, v in THRESHOLDS.items() if k != "pre_contrast_threshold"}
    name = " ucsf birp private creator 011710XX"  # as an archive may write it
    make_seg(
        small_data_set, tmp_path / "s.dcm", regions=regions, thresholds=thresholds, creator=name
    )
    done = typed(
        "kinetics", small_data_set, "--ftv-from", tmp_path / "s.dcm", "--out", tmp_path / "o"
    )
    assert done.exit_code == 0, done.output
    row = rows_of(tmp_path / "o" / "ftv_from.csv")[0]
    assert 0 < int(row["ours_voxels"]) < int(row["theirs_voxels"]) == whole
    assert "cannot be verified that the SEG is from this exam" in row["remark"]


@pytest.mark.parametrize("neighbours", [9, 4])
def test_an_older_block_without_a_neighbour_count_gives_ucsf_s_own_ftv(
    small_data_set, tmp_path, neighbours
):
    counts = {n: slow_ftv(phases_of(small_data_set), 1, 3, n)[0] for n in (9, 4)}
    assert counts[9] != counts[4]
    seg = tmp_path / "seg.dcm"
    make_seg(small_data_set, seg, thresholds=OLDER, neighbours=neighbours)
    done = typed("kinetics", small_data_set, "--ftv-from", seg, "--out", tmp_path / "o")
    assert done.exit_code == 0, done.output
    row = rows_of(tmp_path / "o" / "ftv_from.csv")[0]
    assert int(row["ours_voxels"]) == int(row["theirs_voxels"]) == counts[neighbours]
    assert row["different_voxels"] == "0"
    assert (
        f"{neighbours} of 26 neighbours give the same {counts[neighbours]} voxels" in row["remark"]
    )


def _foreign(folder):
    (folder / "notes.txt").write_text("not DICOM")


def _cut(folder):
    whole = (folder / "good.dcm").read_bytes()
    (folder / "cut.dcm").write_bytes(whole[: len(whole) // 2])


OLDER = {
    k: v for k, v in THRESHOLDS.items()
    if k not in ("minimum_neighbor_count", "pre_contrast_threshold")
}  # fmt: skip

BAD = {
    "another creator": ({"creator": "SOMEBODY ELSE 01"}, "UCSF's private block"),
    "no PE threshold": (
        {"thresholds": {k: v for k, v in THRESHOLDS.items() if k != "PE_threshold"}},
        "expected PE_threshold",
    ),
    "no neighbours": (
        {"thresholds": OLDER, "measures": [measure(0, 7, 0.1, "FTVpe(PEearly>70%)")]},
        "to have minimum_neighbor_count",
    ),
    "another masking": (
        {"thresholds": {**THRESHOLDS, "tissue_masking_method": "FIXED"}},
        "tissue_masking_method",
    ),
    "another exam": (
        {"thresholds": {**THRESHOLDS, "pre_contrast_threshold": 47}},
        "belongs to a different exam, or the images were changed",
    ),
    "no VOI": ({"regions": []}, "expected a VOI"),
    "no measure": ({"measures": []}, "UCSF's FTV"),
    "phases that are not there": ({"phases": (0, 1, 9)}, "it has 4 phases"),
    "other pixels": ({"spacing": (0.7, 0.8)}, "0.7 x 0.8 mm"),
    "elsewhere": ({"shift": 9}, "rows and"),
    "VOI outside": (
        {"regions": [region((900, 900, 900), (5, 5, 5))]},
        "the VOI to be inside the image",
    ),
    "no SEG": ({"sop_class": "1.2.840.10008.5.1.4.1.1.4"}, "not DICOM SEG"),
}


def test_bad_segs_are_named_with_the_reason_and_the_rest_goes_on(small_data_set, tmp_path):
    folder = tmp_path / "segs"
    folder.mkdir()
    make_seg(small_data_set, folder / "good.dcm")
    make_seg(small_data_set, folder / "z_good.dcm", case_id="B_1")
    for name, (changes, _) in BAD.items():
        make_seg(small_data_set, folder / f"{name}.dcm", **changes)
    _foreign(folder)
    _cut(folder)
    done = typed("kinetics", small_data_set, "--ftv-from", folder, "--out", tmp_path / "o")
    assert done.exit_code == 3, done.output
    said = " ".join(done.output.split())
    for name, (_, reason) in BAD.items():
        named = (
            f"failed: {name}.dcm:"
            if name != "no SEG"
            else "failed: segs: 2 files are not DICOM SEG"
        )
        assert named in said, name
        assert reason in said[said.index(named) :][:700], name
    assert "failed: cut.dcm:" in said
    rows = rows_of(tmp_path / "o" / "ftv_from.csv")
    assert [(row["case_id"], row["seg"]) for row in rows] == [
        *[("A_1", "good.dcm")] * 2,
        *[("B_1", "z_good.dcm")] * 2,
    ]


def test_one_bad_seg_alone_ends_with_an_empty_table_and_exit_3(small_data_set, tmp_path):
    (tmp_path / "x.dcm").write_bytes(b"no dicom at all")
    done = typed(
        "kinetics", small_data_set, "--ftv-from", tmp_path / "x.dcm", "--out", tmp_path / "o"
    )
    assert done.exit_code == 3
    assert "failed: x.dcm:" in done.output
    assert rows_of(tmp_path / "o" / "ftv_from.csv") == []


def test_a_seg_of_an_unnamed_patient_is_never_given_to_one_of_several_cases(
    small_data_set, tmp_path
):
    make_seg(small_data_set, tmp_path / "seg.dcm", patient="SOMEBODY")
    words = ("kinetics", small_data_set, "--ftv-from", tmp_path / "seg.dcm")
    done = typed(*words, "--out", tmp_path / "o")
    assert done.exit_code == 3
    assert "choose one (--case ID)" in " ".join(done.output.split())
    done = typed(*words, "--case", "A_1", "--out", tmp_path / "p")
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    "words", [("--masks", "."), ("--times", "0,1"), ("--phases", "1,2"), ("--resume",)]
)
def test_what_the_seg_says_itself_cannot_be_given_beside_it(small_data_set, tmp_path, words):
    make_seg(small_data_set, tmp_path / "seg.dcm")
    done = typed(
        "kinetics",
        small_data_set,
        "--ftv-from",
        tmp_path / "seg.dcm",
        *words,
        "--out",
        tmp_path / "o",
    )
    assert done.exit_code == 2
    assert words[0] in done.output


@pytest.mark.real
def test_ucsf_s_own_mask_of_a_real_exam_comes_back_to_the_voxel(real_data, tmp_path):
    """ISPY1_1002: 4,350 voxels, 5.310 cc, none different; SER > 0.9: 3,601 of its 3,604."""
    with zipfile.ZipFile(real_data("ispy1_1002.zip")) as archive:
        archive.extractall(tmp_path / "exam")
    exam = tmp_path / "exam" / "ISPY1_1002"
    (tmp_path / "segs").mkdir()
    (seg,) = exam.glob("32100*/*.dcm")
    (tmp_path / "segs" / "voi_pe.dcm").write_bytes(seg.read_bytes())
    done = typed("import", exam, "--series", 3, "--case", "ISPY1-1002", "--out", tmp_path / "data")
    assert done.exit_code == 0, done.output
    done = typed(
        "kinetics", tmp_path / "data", "--ftv-from", tmp_path / "segs", "--out", tmp_path / "out"
    )
    assert done.exit_code == 0, done.output
    pe, ser = rows_of(tmp_path / "out" / "ftv_from.csv")
    assert (pe["measure"], ser["measure"]) == ("pe", "ser")
    assert pe["ours_voxels"] == pe["theirs_voxels"] == "4350"
    assert pe["different_voxels"] == "0"
    assert round(float(pe["ours_cc"]), 3) == round(float(pe["theirs_cc"]), 3) == 5.310
    assert (ser["ours_voxels"], ser["theirs_voxels"]) == ("3601", "3604")
    assert (pe["timing"], pe["ftv_variant"], pe["background_signal"]) == (
        "UCSF-FTV",
        "ucsf-ispy1",
        "47",
    )
    older = pydicom.dcmread(seg)
    items = older[0x0117, 0x1010].value
    older[0x0117, 0x1010].value = [i for i in items if "neighbor" not in str(i[0x0117, 0x1014])]
    assert len(older[0x0117, 0x1010].value) == len(items) - 1
    older.save_as(tmp_path / "older.dcm")
    words = ("kinetics", tmp_path / "data", "--ftv-from", tmp_path / "older.dcm")
    assert typed(*words, "--out", tmp_path / "again").exit_code == 0
    pe = rows_of(tmp_path / "again" / "ftv_from.csv")[0]
    assert (pe["ours_voxels"], pe["different_voxels"], pe["ftv_variant"]) == (
        "4350", "0", "ucsf-ispy1"
    )  # fmt: skip
