"""`mamamia perfusion` as it is typed: what it finds of a known phantom, and what it refuses."""

import csv
import json
import re

import nibabel as nib
import numpy as np
import pytest
from benchmarks.phantoms.perfusion_case import perfusion_phantom
from tests.cli.warm_program import mamamia
from tests.conftest import contents, write_nifti
from tests.ultrafast_phantoms import RAS, write_ultrafast, write_ultrafast_data_set
from typer.testing import CliRunner

from napari_mamamia.cli.app import app

EXTENDED = ("--model", "extended-tofts", "--aif", "parker", "--relaxivity", "4.5")
TOFTS = ("--model", "tofts", "--aif", "parker", "--relaxivity", "4.5")
T1 = ("--t10", "1.4")


@pytest.fixture(scope="module")
def exam(tmp_path_factory):
    """Return a folder with an ultrafast data set, its aorta, its T1 map, and the phantom."""
    root = tmp_path_factory.mktemp("ultrafast")
    phantom = write_ultrafast_data_set(
        root / "data", shape=(12, 24, 32), noise=0.005, spacing_s=6.0, n_phases=50
    )
    for number, flip in enumerate((3, 6, 9, 15)):
        name = f"ULTRAFAST_1_{number:04d}.nii.gz"
        write_nifti(root / "flips" / name, phantom.flip_volume(flip), RAS)
    return root, phantom


def typed(*words):
    return CliRunner().invoke(app, ["perfusion", *map(str, words)])


def row_of(out):
    with (out / "perfusion.csv").open(encoding="utf-8", newline="") as stream:
        (row,) = csv.DictReader(stream)
    return row


def volume(out, name, case="ULTRAFAST_1"):
    return nib.load(out / f"{case}_{name}.nii.gz")


@pytest.mark.door
def test_a_known_phantom_gives_its_ktrans_ve_and_vp_back(exam, tmp_path):
    root, phantom = exam
    out = tmp_path / "out"
    done = mamamia("perfusion", root / "data", *EXTENDED, "--t10", root / "t1", "--out", out)
    assert done.returncode == 0, done.stderr
    assert "ULTRAFAST_1" in done.stdout
    for name, truth in (("ktrans", phantom.ktrans), ("ve", phantom.ve), ("vp", phantom.vp)):
        image = volume(out, name)
        assert image.affine == pytest.approx(RAS)
        assert image.get_data_dtype() == np.float32
        found = np.asarray(image.dataobj).T
        for value in np.unique(truth[phantom.lesion]):  # its rim and its core
            own = found[phantom.lesion & (truth == value)]
            assert np.median(own) == pytest.approx(value, rel=0.03), (name, value)
    kep = np.asarray(volume(out, "kep").dataobj).T
    assert np.nanmedian(kep[phantom.lesion]) == pytest.approx(0.25 / 0.4, rel=0.05)
    # the gland around is fitted too, by the linear fit
    gland = ~phantom.lesion & ~phantom.aorta
    assert np.nanmedian(np.asarray(volume(out, "ktrans").dataobj).T[gland]) == pytest.approx(
        0.03, rel=0.05
    )
    row = row_of(out)
    assert (row["status"], row["reason"], row["warning"]) == ("ok", "", "")
    assert float(row["arrival_s"]) == pytest.approx(22, abs=1)
    assert (row["repetition_ms"], row["flip_degrees"]) == ("5", "12")
    assert row["scan_source"] == "clinical table"
    assert row["n_voxels"] == row["n_fitted"] == str(int(phantom.lesion.sum()))
    assert float(row["residual_percent"]) < 1
    note = json.loads((out / "ULTRAFAST_1_perfusion.json").read_text(encoding="utf-8"))
    assert note["arterial_input"] == "parker, haematocrit 0.42"
    assert note["units"]["ktrans"] == "1/min"
    assert any(one["name"] == "ULTRAFAST_1.nii.gz" for one in note["inputs"])
    assert str(root) not in json.dumps(note)  # files by name, never by path
    said = json.loads((out / "perfusion.json").read_text(encoding="utf-8"))
    assert "1/min" in said["columns"]["ktrans_median_per_min"]


def test_t1_of_flip_angles_is_written_and_its_b1_told(exam, tmp_path):
    root, phantom = exam
    words = (*EXTENDED, "--vfa", root / "flips", "--vfa-angles", "3,6,9,15")
    done = typed(root / "data", *words, "--arrival", root / "vessels", "--out", tmp_path / "o")
    assert done.exit_code == 0, done.output
    t1 = np.asarray(volume(tmp_path / "o", "t1").dataobj).T
    assert t1[phantom.lesion] == pytest.approx(phantom.t1_s[phantom.lesion], rel=0.01)
    row = row_of(tmp_path / "o")
    assert "without a B1 map" in row["warning"]
    assert row["t10_source"] == "flip angles 3 6 9 15 degrees"
    assert row["arrival_source"] == "bolus in the vessel mask"
    assert float(row["ktrans_median_per_min"]) == pytest.approx(0.25, rel=0.1)


def test_a_standard_exam_is_refused_with_the_reason_and_nothing_is_written_of_it(
    small_data_set, tmp_path
):
    done = typed(small_data_set, *TOFTS, *T1, "--out", tmp_path / "o")
    assert done.exit_code == 3
    told = " ".join(done.output.split())
    assert "Ktrans needs phases at most 15 s apart, but found 240 s from phase 2 to 3" in told
    assert "mamamia kinetics" in told
    assert not list((tmp_path / "o").glob("*.nii.gz"))
    with (tmp_path / "o" / "perfusion.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["status"] for row in rows] == ["failed"] * 3
    assert all("15 s apart" in row["reason"] for row in rows)


def test_a_batch_goes_on_after_a_case_that_is_refused(tmp_path):
    data = tmp_path / "data"
    for name in ("B_1", "A_1"):
        write_ultrafast(data, perfusion_phantom(name, shape=(10, 18, 24), n_phases=16))
    (data / "images" / "A_1" / "A_1_0003.nii.gz").write_bytes(b"broken")
    words = (*TOFTS, *T1, "--tr", "5", "--flip-angle", "12", "--out", tmp_path / "o")
    times = ",".join(str(5 * k) for k in range(16))
    done = typed(data, *words, "--times", times)
    assert done.exit_code == 3
    assert "A_1_0003" in done.output
    assert volume(tmp_path / "o", "ktrans", "B_1").shape == (24, 18, 10)
    assert not list((tmp_path / "o").glob("A_1_*"))


def spoil(data, t1, phantom, change):
    """Change the images, the mask or the T1 map of A_1."""
    shape, images = phantom.lesion.shape, data / "images" / "A_1"
    if "t1" in change:
        write_nifti(t1, np.full(shape, change["t1"], np.float32), RAS)
    if "t1_grid" in change:
        write_nifti(t1, phantom.t1_s, np.diag([2.0, 2.0, 2.5, 1.0]))
    mask = data / "segmentations" / "expert" / "A_1.nii.gz"
    if "mask" in change:
        mask.unlink()
    if change.get("mask") is not None:
        write_nifti(mask, np.zeros(shape, np.uint8), RAS)
    volumes = phantom.case.signal.astype(np.float32) * change.get("signal", 1)
    if "never" in change:  # the signal falls after contrast in every voxel
        volumes[5:] = 0.9 * volumes[0]
    if "voxel" in change:  # within the lesion, in one phase
        assert phantom.lesion[4, 8, 10]
        volumes[5, 4, 8, 10] = change["voxel"]
    for k, volume_of_phase in enumerate(volumes):
        write_nifti(images / f"A_1_{k:04d}.nii.gz", volume_of_phase, RAS)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"t1": 1400.0}, "milliseconds"),
        ({"t1": 0.0}, "no T1 at all"),
        ({"t1": np.nan}, "no T1 at all"),
        ({"t1_grid": True}, "other affine|lie|grid"),
        ({"words": ("--tr", "5")}, "it has no flip angle"),
        ({"words": ("--flip-angle", "12")}, "it has no repetition time"),
        ({"mask": 0}, "but the mask is missing or empty"),
        ({"mask": None}, "enter the arrival in seconds"),
        ({"signal": 0}, "signal in every phase, but its mean is 0 in phase 0"),
        ({"signal": np.nan}, "[0-9,]+ voxels? not finite, the first in phase 0"),
        ({"voxel": 1e30}, "beyond 100,000 times the median, the first in phase 5"),
        ({"voxel": 9e6}, "rise by less than [0-9]+ %.* T1 [0-9.]+ s, TR 5 ms and 12 degrees"),
        (
            {"never": True, "words": ("--arrival", "22")},
            "but none of [0-9]+ was fitted .* [1-9][0-9]* without uptake",
        ),
        ({"words": ("--arrival", "400")}, "phases after contrast arrives"),
        ({"words": ("--arrival", "60")}, "at least 8 phases"),
    ],
)
def test_what_a_case_cannot_be_fitted_with_is_its_row(tmp_path, change, word):
    data = tmp_path / "data"
    phantom = perfusion_phantom("A_1", shape=(8, 16, 20), n_phases=16)
    write_ultrafast(data, phantom)
    own = tmp_path / "t1" / "A_1.nii.gz"
    spoil(data, own, phantom, change)
    scan = {"--tr": "5", "--flip-angle": "12"}
    words = change.get("words", ())
    if words and words[0] in scan:
        scan = dict([words])
        words = ()
    scan_words = [part for pair in scan.items() for part in pair]
    times = ("--times", ",".join(str(5 * k) for k in range(16)))
    done = typed(
        data, *TOFTS, "--t10", own.parent, *scan_words, *times, *words, "--out", tmp_path / "o"
    )
    assert done.exit_code == 3, done.output
    row = row_of(tmp_path / "o")
    assert row["status"] == "failed"
    assert re.search(word, row["reason"]), row["reason"]


@pytest.mark.parametrize("odd", [np.nan, np.inf])
def test_a_voxel_that_is_no_number_is_left_out_counted_and_named(tmp_path, odd):
    data = tmp_path / "data"
    phantom = perfusion_phantom("A_1", shape=(8, 16, 20), n_phases=16)
    write_ultrafast(data, phantom)
    words = (*EXTENDED, *T1, "--tr", "5", "--flip-angle", "12")
    words += ("--times", ",".join(str(5 * k) for k in range(16)))
    assert typed(data, *words, "--out", tmp_path / "whole").exit_code == 0
    spoil(data, tmp_path / "t1" / "A_1.nii.gz", phantom, {"voxel": odd})
    done = typed(data, *words, "--out", tmp_path / "o")
    assert done.exit_code == 0, done.output
    row, whole = row_of(tmp_path / "o"), row_of(tmp_path / "whole")
    told = "1 voxel not finite, the first in phase 5 at (z, y, x) 4, 8, 10"
    assert told in row["warning"]
    assert told in " ".join(done.output.split())
    assert int(row["n_fitted"]) == int(whole["n_fitted"]) - 1
    assert float(row["ktrans_of_mean_per_min"]) == pytest.approx(
        float(whole["ktrans_of_mean_per_min"]), rel=0.01
    )


def test_a_flip_angle_in_radians_in_the_clinical_table_is_a_row_with_that_reason(tmp_path):
    write_ultrafast_data_set(tmp_path / "data", shape=(8, 16, 20), n_phases=16)
    table = tmp_path / "data" / "clinical_and_imaging_info.csv"
    text = table.read_text(encoding="utf-8")
    table.write_text(text.replace(",5,12\n", ",5,0.209\n"), encoding="utf-8")
    done = typed(tmp_path / "data", *TOFTS, *T1, "--out", tmp_path / "o")
    assert done.exit_code == 3, done.output
    assert (
        "2 to 90 degrees, but it is 0.209; enter it in degrees (radians"
        in row_of(tmp_path / "o")["reason"]
    )


def test_two_phases_are_refused_by_their_number(tmp_path):
    data = tmp_path / "data"
    write_ultrafast(data, perfusion_phantom("A_1", shape=(8, 16, 20), n_phases=16))
    for path in sorted((data / "images" / "A_1").iterdir())[2:]:
        path.unlink()
    words = (*TOFTS, *T1, "--tr", "5", "--flip-angle", "12", "--times", "0,5")
    assert typed(data, *words, "--out", tmp_path / "o").exit_code == 3
    reason = row_of(tmp_path / "o")["reason"]
    assert "at least 8 phases, at most 15 s apart, but found 2;" in reason


def test_tofts_without_vp_writes_no_vp(exam, tmp_path):
    root, _ = exam
    out = tmp_path / "o"
    done = typed(root / "data", *TOFTS, "--t10", root / "t1", "--out", out)
    assert done.exit_code == 0, done.output
    assert {path.name for path in out.glob("*.nii.gz")} == {
        f"ULTRAFAST_1_{name}.nii.gz" for name in ("ktrans", "ve", "kep")
    }
    row = row_of(out)
    assert (row["vp_median"], row["vp_of_mean"]) == ("", "")
    assert float(row["ve_median"]) > 0
    note = json.loads((out / "ULTRAFAST_1_perfusion.json").read_text(encoding="utf-8"))
    assert "vp" not in note["units"]


def test_voxels_without_a_fit_are_nan_and_counted_beside_those_that_have(tmp_path):
    data = tmp_path / "data"
    phantom = perfusion_phantom("A_1", shape=(8, 16, 20), n_phases=40)
    inside = np.argwhere(phantom.lesion)
    saturated, dark = inside[10], inside[20]
    phantom.case.signal[:, *dark] = 0
    phantom.case.signal[12, *saturated] = 32000
    write_ultrafast(data, phantom)
    times = ",".join(str(5 * k) for k in range(40))
    words = (*EXTENDED, "--t10", tmp_path / "t1", "--tr", "5", "--flip-angle", "12")
    done = typed(data, *words, "--times", times, "--out", tmp_path / "o")
    assert done.exit_code == 0, done.output
    row = row_of(tmp_path / "o")
    assert row["n_no_concentration"] == "2"
    assert int(row["n_fitted"]) == len(inside) - 2
    for name in ("ktrans", "ve", "vp", "kep"):
        values = np.asarray(volume(tmp_path / "o", name, "A_1").dataobj).T
        assert np.isnan(values[*saturated])
        assert np.isnan(values[*dark])
        assert np.isfinite(values[phantom.lesion]).sum() == len(inside) - 2


def test_motion_shows_as_a_residual_that_is_told(tmp_path):
    data = tmp_path / "data"
    phantom = perfusion_phantom("A_1", shape=(8, 16, 20), n_phases=40)
    phantom.case.signal[8::2] = np.roll(phantom.case.signal[8::2], 6, axis=3)
    write_ultrafast(data, phantom)
    times = ",".join(str(5 * k) for k in range(40))
    words = (*EXTENDED, *T1, "--tr", "5", "--flip-angle", "12", "--times", times)
    assert typed(data, *words, "--out", tmp_path / "o").exit_code == 0
    row = row_of(tmp_path / "o")
    assert float(row["residual_percent"]) > 5
    assert "check for motion" in row["warning"]


@pytest.mark.parametrize(
    ("words", "word"),
    [
        ((), "one source of T1"),
        (("--t10", "1400"), "in seconds"),
        (("--t10", "nowhere"), "got nowhere"),
        ((*T1, "--vfa", ".", "--vfa-angles", "3,9"), "got 2"),
        (("--vfa", "."), "--vfa-angles"),
        (("--vfa", ".", "--vfa-angles", "9,9"), "different flip angles"),
        ((*T1, "--relaxivity", "4500"), "mM"),
        ((*T1, "--tr", "0.005"), "milliseconds"),
        ((*T1, "--flip-angle", "0"), "degrees"),
        ((*T1, "--haematocrit", "42"), "share"),
        ((*T1, "--aif", "weinmann", "--dose", "20"), "mmol"),
        ((*T1, "--arrival", "nan"), "an arrival of 0 to 3600 s, but got nan"),
        ((*T1, "--arrival", "-3"), "an arrival of 0 to 3600 s, but got -3"),
        ((*T1, "--arrival", ""), "a value for --arrival, but got an empty string"),
        ((*T1, "--flip-angle", "0.21"), "2 to 90 degrees, but got 0.21"),
        ((*T1, "--times", "0,5,5"), "rise from phase to phase, but got 0,5,5"),
        ((*T1, "--times", "0,5,nan"), "got nan"),
        ((*T1, "--dose", "0.1"), "--dose has an effect only with --aif weinmann"),
        (
            (*T1, "--aif", "weinmann", "--haematocrit", "0.4"),
            "--haematocrit has an effect only with --aif parker",
        ),
        ((*T1, "--vfa-tr", "5"), "--vfa-tr has an effect only with --vfa"),
        ((*T1, "--vfa-angles", "3,9"), "--vfa-angles has an effect only with --vfa"),
        (("--vfa", ".", "--vfa-angles", "0.05,0.26"), "1 to 90 degrees, but got 0.05"),
        (("--vfa", ".", "--vfa-angles", "1.05,1.26"), "radians"),
        ((*T1, "--arrival", "nowhere"), "got nowhere"),
        ((*T1, "--aif", "mine"), "mine"),
    ],
)
def test_wrong_words_are_wrong_usage_and_say_what_is_right(small_data_set, tmp_path, words, word):
    done = typed(small_data_set, *TOFTS, "--out", tmp_path / "o", *words)
    assert done.exit_code == 2
    assert word in re.sub(r"[\s│]+", " ", done.output)
    assert not (tmp_path / "o").exists()


def test_maps_that_something_else_wrote_are_kept_unless_overwrite_is_said(tmp_path):
    data, out = tmp_path / "data", tmp_path / "o"
    write_ultrafast(data, perfusion_phantom("A_1", shape=(8, 16, 20), n_phases=16))
    times = ("--times", ",".join(str(5 * k) for k in range(16)))
    words = (data, *TOFTS, *T1, "--tr", "5", "--flip-angle", "12", *times, "--out", out)
    assert typed(*words).exit_code == 0
    first = contents(out / "A_1_ktrans.nii.gz")
    assert typed(*words).exit_code == 1  # the folder holds results
    again = typed(*words, "--resume")
    assert (again.exit_code, "1 case done in an earlier run" in again.output) == (0, True)
    (out / "A_1_ve.nii.gz").unlink()
    assert typed(*words, "--resume").exit_code == 0  # a lost map is made again
    assert contents(out / "A_1_ktrans.nii.gz") == first
    foreign = np.full((8, 16, 20), 7, np.float32)
    write_nifti(out / "A_1_ktrans.nii.gz", foreign, RAS)
    (out / "A_1_ve.nii.gz").unlink()
    refused = typed(*words, "--resume")
    assert refused.exit_code == 3
    assert "written by this run" in " ".join(refused.output.split())
    assert np.asarray(volume(out, "ktrans", "A_1").dataobj).max() == 7
    assert typed(*words, "--overwrite").exit_code == 0
    assert contents(out / "A_1_ktrans.nii.gz") == first


def test_overwriting_leaves_no_map_of_an_earlier_run_of_the_case(exam, tmp_path):
    root, _ = exam
    out = tmp_path / "o"
    words = (root / "data", "--t10", root / "t1", "--out", out)
    assert typed(*words, *EXTENDED).exit_code == 0
    write_nifti(out / "OTHER_ktrans.nii.gz", np.ones((2, 2, 2), np.float32), RAS)
    assert typed(*words, *TOFTS, "--overwrite").exit_code == 0
    assert {path.name for path in out.glob("*.nii.gz")} == {
        "OTHER_ktrans.nii.gz",
        *(f"ULTRAFAST_1_{name}.nii.gz" for name in ("ktrans", "ve", "kep")),
    }
    failed = typed(*words, *TOFTS, "--overwrite", "--arrival", "290")
    assert failed.exit_code == 3
    assert [path.name for path in out.glob("ULTRAFAST_1_*")] == []


@pytest.mark.parametrize("command", ["perfusion", "kinetics"])
def test_an_image_is_no_mask_and_a_value_that_is_not_there_is_named(exam, tmp_path, command):
    root, phantom = exam
    words = {"perfusion": (*TOFTS, *T1), "kinetics": ()}[command]
    write_nifti(tmp_path / "masks" / "ULTRAFAST_1.nii.gz", phantom.case.signal[9], RAS)
    for number, (further, said) in enumerate(
        (
            (("--masks", tmp_path / "masks"), "looks like an image"),
            (
                ("--label", "7"),
                "expected the mask of ULTRAFAST_1 to have the value 7, but found only 1",
            ),
        )
    ):
        out = tmp_path / str(number)
        done = CliRunner().invoke(
            app, [command, *map(str, (root / "data", *words, *further, "--out", out))]
        )
        assert done.exit_code == 3, done.output
        with (out / f"{command}.csv").open(encoding="utf-8", newline="") as stream:
            (row,) = csv.DictReader(stream)
        assert said in row["reason"]


@pytest.mark.parametrize(
    ("spoilt", "said"),
    [
        (
            lambda t1, lesion: np.where(lesion & (np.arange(32) < 12), np.nan, t1),
            "T1 is not within",
        ),
        (lambda t1, lesion: lesion, "the T1 map has the same value, 1 s, in the whole mask"),
    ],
)
def test_a_t1_map_that_does_not_know_the_mask_is_told(exam, tmp_path, spoilt, said):
    root, phantom = exam
    values = spoilt(phantom.t1_s, phantom.lesion).astype(np.float32)
    write_nifti(tmp_path / "t1" / "ULTRAFAST_1.nii.gz", values, RAS)
    done = typed(root / "data", *TOFTS, "--t10", tmp_path / "t1", "--out", tmp_path / "o")
    assert done.exit_code == 0, done.output
    assert said in row_of(tmp_path / "o")["warning"]


def test_one_t1_map_serves_one_case_only(tmp_path):
    data = tmp_path / "data"
    for name in ("A_1", "B_1"):
        write_ultrafast(data, perfusion_phantom(name, shape=(8, 16, 20), n_phases=16))
    own = tmp_path / "t1" / "A_1.nii.gz"
    words = (data, *TOFTS, "--t10", own, "--tr", "5", "--flip-angle", "12", "--arrival", "22")
    times = ("--times", ",".join(str(5 * k) for k in range(16)))
    refused = typed(*words, *times, "--out", tmp_path / "o")
    assert refused.exit_code == 1
    assert "single file" in str(refused.exception)
    assert typed(*words, *times, "--case", "A_1", "--out", tmp_path / "p").exit_code == 0


def test_without_a_mask_the_maps_are_linear_and_the_row_says_so(tmp_path):
    data = tmp_path / "data"
    write_ultrafast(data, perfusion_phantom("A_1", shape=(8, 16, 20), n_phases=40))
    (data / "segmentations" / "expert" / "A_1.nii.gz").unlink()
    times = ("--times", ",".join(str(5 * k) for k in range(40)))
    words = (data, *TOFTS, *T1, "--tr", "5", "--flip-angle", "12", "--arrival", "22", *times)
    assert typed(*words, "--out", tmp_path / "o").exit_code == 0
    row = row_of(tmp_path / "o")
    assert row["ktrans_median_per_min"] == ""
    assert "only the linear fit" in row["warning"]
    assert int(row["n_fitted_volume"]) > 1000
