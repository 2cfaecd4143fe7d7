"""`mamamia kinetics` says which phases a number rests on, and by which clock: as it is typed."""

import csv
import json

import numpy as np
import pytest
from tests.cli.warm_program import mamamia
from tests.conftest import SHAPE, write_nifti
from typer.testing import CliRunner

from napari_mamamia.cli.app import app

TIMES = "0,1371,1493,1615"  # of Duke Breast_MRI_153


def typed(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def rows_of(path):
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.mark.door
def test_the_phases_and_their_distance_stand_beside_the_number_for_each_clock(
    small_data_set, tmp_path
):
    # posts start at 0, 122, 244 s and stand 61 s later
    first = ("kinetics", small_data_set, "--case", "A_1", "--times", TIMES)
    done = mamamia(*first, "--out", tmp_path / "UCSF-FTV")
    assert done.returncode == 0, done.stderr
    assert (
        "A_1: early post 2 (183 s, +33 s from 150 s), late post 3 (305 s, −145 s from 450 s) · "
        "UCSF-FTV · ucsf-extension"
    ) in done.stdout.replace("\u00a0", " ")
    for timing, *words in (
        ("phase0-start", "--timing", "phase0-start"),
        ("injection", "--timing", "injection", "--injection", "1360"),
        ("manual", "--phases", "1,3", "--ftv-variant", "ucsf-ispy1"),
    ):
        out = typed(*first, *words, "--out", tmp_path / timing)
        assert (out.exit_code, timing in out.stdout) == (0, True)
    for timing, variant, phases in (
        ("UCSF-FTV", "ucsf-extension", (2, 183, 33, 3, 305, -145)),
        ("phase0-start", "ucsf-extension", (1, 1371, 1221, 2, 1493, 1043)),
        ("injection", "ucsf-extension", (2, 194, 44, 3, 316, -134)),
        ("manual", "ucsf-ispy1", (1, 61, -89, 3, 305, -145)),
    ):
        (row,) = rows_of(tmp_path / timing / "kinetics.csv")
        assert (row["timing"], row["ftv_variant"]) == (timing, variant)
        names = [f"{one}_{what}" for one in ("early", "late") for what in ("phase", "s", "gap_s")]
        assert tuple(float(row[name]) for name in names) == phases


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--phases", "1"), "to be two phases"),
        (("--phases", "1.5,2"), "expected a phase, a whole number, of 0 to 999, but got 1.5"),
        (("--phases", "1,2", "--injection", "20"), "keep one"),
        (("--timing", "injection"), "use --injection SECONDS"),
        (("--timing", "manual"), "use --injection SECONDS or --phases"),
        (("--timing", "phase0-start", "--phases", "1,2"), "keep one"),
        (("--timing", "manual", "--injection", "20"), "keep one"),
        (("--timing", "ucsf"), "expected --timing to be UCSF-FTV"),
        (("--ftv-variant", "mine"), "expected --ftv-variant to be ucsf-extension"),
        (
            ("--injection", "nan"),
            "expected a time after phase 0 started of -3600 to 86400 s, but got nan",
        ),
        (("--injection", "soon"), 'got soon: type seconds, "header", or a folder of masks'),
        (("--injection", "header", "--phases", "1,2"), "keep one"),
    ],
)
def test_a_clock_that_does_not_make_sense_is_an_error_of_the_command_line(
    small_data_set, tmp_path, words, said
):
    done = typed("kinetics", small_data_set, *words, "--out", tmp_path / "out")
    assert done.exit_code == 2
    assert said in " ".join(done.output.replace("│", " ").split())
    assert not (tmp_path / "out").exists()


def test_an_injection_after_the_exam_fails_the_case_with_the_reason(small_data_set, tmp_path):
    done = typed("kinetics", small_data_set, "--injection", 9000, "--out", tmp_path / "out")
    assert done.exit_code == 3
    assert "after the last phase" in " ".join(done.output.split())


def test_a_pre_that_was_taken_twice_is_no_early_phase_and_may_be_averaged(tmp_path):
    """0, 600, 750, 900 s: the phase at 600 s was taken for the early one, 75 s after itself."""
    rng = np.random.default_rng(5)
    still = rng.integers(90, 111, SHAPE)
    root = tmp_path / "data"
    for k, rise in enumerate((0, 0, 80, 120)):
        phase = still + rng.integers(-2, 3, SHAPE)
        phase[:, :, 24:] += rise
        write_nifti(root / "images" / "A_1" / f"A_1_{k:04d}.nii.gz", phase.astype(np.int16))
    mask = np.zeros(SHAPE, np.uint8)
    mask[3:6, 14:20, 30:36] = 1
    write_nifti(root / "segmentations" / "expert" / "A_1.nii.gz", mask)
    first = ("kinetics", root, "--times", "0,600,750,900")
    rows, said = {}, ""
    for how in ("leave-out", "average", "keep"):
        done = typed(*first, "--repeated-pre", how, "--out", tmp_path / how)
        assert done.exit_code == 0, done.output
        (rows[how],) = rows_of(tmp_path / how / "kinetics.csv")
        said += " ".join(done.output.split())
    assert "phase 1 is treated as a second scan before contrast" in said
    phases = {how: (row["early_phase"], row["late_phase"]) for how, row in rows.items()}
    assert phases == {"leave-out": ("2", "3"), "average": ("2", "3"), "keep": ("1", "3")}
    assert (rows["leave-out"]["phases_before"], rows["keep"]["phases_before"]) == ("2", "1")
    assert (
        "between pre 2 and post 1 (phase 2 from 0): the signal rises in 50%"
        in rows["leave-out"]["contrast"]
    )
    means = {how: row["mean_signal"].split() for how, row in rows.items()}
    pre, again = (float(number) for number in means["keep"][:2])
    assert pre != again
    assert float(means["leave-out"][0]) == again  # the last scan before contrast, as in an import
    assert float(means["average"][0]) == pytest.approx((pre + again) / 2, abs=1e-3)
    assert means["average"][1:] == means["leave-out"][1:] == means["keep"][1:]
    assert "S0 is phase 1, the last phase before contrast" in rows["leave-out"]["contrast"]


def test_the_injection_comes_from_the_header_or_from_the_bolus_in_a_vessel(
    small_data_set, tmp_path
):
    info = {"import": {"timing": {"injection_s": 85.0, "resolution_s": 60, "positions": 3}}}
    infos = small_data_set / "patient_info_files"
    infos.mkdir(exist_ok=True)
    (infos / "a_1.json").write_text(json.dumps(info))
    first = ("kinetics", small_data_set, "--injection", "header")
    done = typed(*first, "--out", tmp_path / "header")
    assert done.exit_code == 3
    assert "of A_2 to state the injection time, but found none" in " ".join(done.output.split())
    row = rows_of(tmp_path / "header" / "kinetics.csv")[0]
    # phases start at 90, 180, 420 s and stand 30 s later: 35, 125, 365 s after the injection
    assert (row["timing"], row["early_phase"], row["early_s"]) == ("injection", "2", "125")
    vessel = small_data_set / "segmentations" / "expert"  # what enhances, by more than 50 %
    slow = ("kinetics", small_data_set, "--case", "A_1", "--injection", vessel)
    done = typed(*slow, "--out", tmp_path / "slow")
    assert (
        "at most 10 s apart where the vessel's signal rises, but they are 90 s apart"
        in " ".join(done.output.split())
    )
    done = typed(*slow, "--times", "0,4,8,12", "--out", tmp_path / "fast")
    assert "most steeply after phase 0" in " ".join(done.output.split())
    pre, first, second = (small_data_set / f"images/A_1/A_1_000{k}.nii.gz" for k in range(3))
    first.replace(second)
    first.write_bytes(pre.read_bytes())  # one more scan before contrast
    done = typed(*slow, "--times", "0,4,8,12", "--out", tmp_path / "bolus")
    assert done.exit_code == 0, done.output
    (row,) = rows_of(tmp_path / "bolus" / "kinetics.csv")
    # it rises between 4 and 8 s, so the tangent leaves the baseline at 4 s; images stand 2 s later
    assert (row["timing"], row["early_phase"], row["early_s"]) == ("injection", "3", "8")


def test_headers_that_count_the_images_make_ucsf_choose_again(tmp_path, small_data_set):
    """DUKE_041 without its last phase: images of 110 s, early would be the first of three."""
    times = ("--times", "0,314,668,778")
    first = ("kinetics", small_data_set, "--case", "A_1", *times)
    done = typed(*first, "--out", tmp_path / "table")
    assert "would choose again on GE and Siemens" in " ".join(done.output.split())
    info = {"import": {"timing": {"positions": 3}}}
    (small_data_set / "patient_info_files").mkdir(exist_ok=True)
    (small_data_set / "patient_info_files" / "a_1.json").write_text(json.dumps(info))
    done = typed(*first, "--out", tmp_path / "header")
    assert "chosen again by the number of images" in " ".join(done.output.split())
    phases = [rows_of(tmp_path / name / "kinetics.csv")[0] for name in ("table", "header")]
    # 55, 409, 519 s: 1 and 2; by number 55, 165, 275 s: 2 and 3
    assert [(row["early_phase"], row["late_phase"]) for row in phases] == [("1", "2"), ("2", "3")]
