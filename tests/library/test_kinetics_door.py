"""`mm.kinetics` and `mm.measure_kinetics`: maps, FTV and curves of a case and of a data set."""

import numpy as np
import pytest

import napari_mamamia as mm


@pytest.fixture(scope="module")
def data_set(data_set_of_module):
    return mm.open_data_set(data_set_of_module, progress=False)


@pytest.fixture(scope="module")
def case(data_set):
    return data_set["A_1"]


def test_the_early_phase_against_phase_0_by_hand(case):
    found = mm.kinetics.maps(case, "pe", phases=(1, 3))
    first, early = case.signal[0].astype(float), case.signal[1].astype(float)
    with np.errstate(divide="ignore", invalid="ignore"):
        by_hand = np.where(first > 0, 100 * (early - first) / first, np.nan)
    assert np.allclose(found["pe"], by_hand, rtol=1e-5, equal_nan=True)
    assert found.units["pe"] == "%"
    assert "post 1 against pre" in repr(found)


def test_without_names_what_cannot_be_computed_is_told_and_not_left_out_in_silence(case):
    from dataclasses import replace

    whole = case.read()
    short = replace(whole, signal=whole.signal[:2], phases=whole.phases[:2])
    found = mm.kinetics.maps(short)
    assert "ser" in found.missing
    assert "ser" not in found
    assert "pe" in found
    with pytest.raises(mm.CaseError, match="late phase"):
        found["ser"]
    with pytest.raises(mm.CaseError, match="late phase"):
        mm.kinetics.maps(short, "ser")
    with pytest.raises(KeyError):
        found["nothing"]


def test_the_curve_of_the_reference_is_the_mean_of_its_voxels(case):
    found = mm.kinetics.curve(case)
    inside = case.reference.array
    assert found.signal == pytest.approx([float(phase[inside].mean()) for phase in case.signal])
    assert found.times_s == (0.0, 90.0, 180.0, 420.0)
    voxel = mm.kinetics.curve(case, (4, 17, 23))
    assert voxel.signal == tuple(float(v) for v in case.signal[:, 4, 17, 23])
    assert mm.kinetics.curve(case, np.array([4, 17, 23])).signal == voxel.signal
    patch = mm.kinetics.curve(case, (4, 17, 23), patch=3)
    assert patch.n_voxels == 9


def test_ftv_counts_inside_its_region_only(case):
    whole = mm.kinetics.ftv(case)
    assert 0 < whole.volume_cc <= case.reference.volume_mm3 / 1000
    half = mm.kinetics.ftv(case, box=((4, 14, 20), (5, 20, 26)))
    assert half.volume_cc == pytest.approx(36 * 0.8 * 0.8 * 2 / 1000)
    assert mm.kinetics.ftv(case, case.reference.array).volume_cc == whole.volume_cc


WRONG = {
    "no case": (lambda c: mm.kinetics.maps("A_1"), mm.ArgumentError, "expected a case"),
    "an array": (lambda c: mm.kinetics.ftv(np.zeros((2, 2, 2))), mm.ArgumentError, "a case"),
    "no map": (lambda c: mm.kinetics.maps(c, "PE"), mm.ArgumentError, '"pe", "ser"'),
    "no clock": (lambda c: mm.kinetics.curve(c, timing="now"), mm.ArgumentError, "UCSF-FTV"),
    "two clocks": (
        lambda c: mm.kinetics.maps(c, phases=(1, 2), injection_s=3.0),
        mm.ArgumentError,
        "but got both",
    ),
    "phases that are not there": (
        lambda c: mm.kinetics.maps(c, "ser", phases=(1, 9)),
        mm.CaseError,
        "9",
    ),
    "three phases": (lambda c: mm.kinetics.maps(c, phases=[1, 2, 3]), mm.ArgumentError, "two num"),
    "phases as text": (lambda c: mm.kinetics.maps(c, phases="12"), mm.ArgumentError, "two num"),
    "a time as text": (lambda c: mm.kinetics.ftv(c, injection_s="x"), mm.ArgumentError, "seconds"),
    "repeated": (lambda c: mm.kinetics.ftv(c, repeated_pre="x"), mm.ArgumentError, '"average"'),
    "no variant": (lambda c: mm.kinetics.ftv(c, variant="x"), mm.ArgumentError, "ucsf-ispy1"),
    "no box": (lambda c: mm.kinetics.ftv(c, box="all"), mm.ArgumentError, "two corners"),
    "half a box": (lambda c: mm.kinetics.ftv(c, box=(1, 2)), mm.ArgumentError, "two corners"),
    "no breast": (lambda c: mm.kinetics.ftv(c, box="breast"), mm.CaseError, 'box="mask"'),
    "outside": (lambda c: mm.kinetics.curve(c, (0, 0, 99)), mm.CaseError, "inside"),
    "even": (lambda c: mm.kinetics.curve(c, (1, 1, 1), patch=2), mm.ArgumentError, "odd"),
    "empty": (
        lambda c: mm.kinetics.curve(c, np.zeros(c.grid.shape, bool)),
        mm.CaseError,
        "empty",
    ),
    "empty region": (
        lambda c: mm.kinetics.ftv(c, np.zeros(c.grid.shape, bool)),
        mm.CaseError,
        "empty",
    ),
    "probabilities": (
        lambda c: mm.kinetics.ftv(c, np.full(c.grid.shape, 0.4)),
        mm.ArgumentError,
        "threshold",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_meant_is_refused(case, name):
    call, kind, said = WRONG[name]
    with pytest.raises(kind, match=said):
        call(case)


def test_a_case_without_a_reference_asks_for_a_mask(small_data_set):
    (small_data_set / "segmentations" / "expert" / "A_1.nii.gz").unlink()
    case = mm.open_data_set(small_data_set, progress=False)["A_1"]
    with pytest.raises(
        mm.CaseError, match="to have a reference mask, but it has none; pass a mask"
    ):
        mm.kinetics.ftv(case)


def test_a_data_set_is_measured_into_a_table_and_its_ftv_is_that_of_the_case(
    data_set, case, tmp_path
):
    found = mm.measure_kinetics(data_set, tmp_path / "kinetics", case_ids="A_1", progress=False)
    row = found.cases.loc["A_1"]
    assert row["ftv_cc"] == mm.kinetics.ftv(case).volume_cc
    assert row["peak_pe_of_mean_percent"] == mm.kinetics.curve(case).peak_percent
    assert (found.folder / "kinetics.csv").is_file()
    with pytest.raises(mm.SaveConflictError):
        mm.measure_kinetics(data_set, tmp_path / "kinetics", case_ids="A_1", progress=False)
    with pytest.raises(mm.ArgumentError, match="expected a data set"):
        mm.measure_kinetics("data", tmp_path / "other")
    with pytest.raises(mm.ArgumentError, match='"mask", "breast"'):
        mm.measure_kinetics(data_set, tmp_path / "other", box="all")
