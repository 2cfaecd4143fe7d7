"""From DICOM to a verified bundle by code, on a phantom written as a study."""

import numpy as np
import pytest

import napari_mamamia as mm

SHAPE = (16, 48, 48)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return mm.make_phantom_study(
        tmp_path_factory.mktemp("dicom") / "study", shape=SHAPE, progress=False
    )


@pytest.fixture(scope="module")
def imported(study, tmp_path_factory):
    return mm.import_dicom(study, tmp_path_factory.mktemp("out") / "data", "P001", progress=False)


def test_a_look_says_what_would_become_of_each_series_and_writes_nothing(study):
    before = len(list(study.iterdir()))
    table = mm.inspect_dicom(study, progress=False)
    assert table["n_slices"].tolist() == [16]
    assert table["fate"].tolist() == ["phases 0, 1, 2, 3, 4"]
    assert table["problem"].tolist() == [""]
    assert len(list(study.iterdir())) == before


def test_the_voxels_and_times_of_the_phantom_come_through(imported, tmp_path):
    case = imported.data_set["P001"]
    made = mm.make_phantoms(tmp_path / "same", 1, shape=SHAPE, progress=False)[0]
    assert case.times_s == made.times_s
    assert imported.cases.loc["P001", "shape"] == SHAPE
    assert sorted(np.abs(case.spacing_mm)) == pytest.approx(sorted(made.spacing_mm))
    assert np.array_equal(np.sort(case.signal, axis=None), np.sort(made.signal, axis=None))
    middle = case.grid.to_world_mm(np.array(SHAPE) / 2)
    there = np.rint(made.grid.to_voxel(middle)).astype(int)
    here = np.array(SHAPE) // 2
    assert case.signal[(1, *here)] == made.signal[(1, *there)]


def test_a_case_that_is_there_is_refused_or_stays(study, imported):
    with pytest.raises(mm.SaveConflictError):
        mm.import_dicom(study, imported.folder, "P001", progress=False)
    again = mm.import_dicom(study, imported.folder, "P001", existing="resume", progress=False)
    assert "1 existed already" in repr(again)


def test_masks_leave_as_a_bundle_that_is_verified(study, imported, tmp_path):
    data_set = imported.data_set
    predictions = mm.predict(data_set, out=tmp_path / "kinetic", progress=False)
    bundle = mm.export(
        data_set, predictions, tmp_path / "bundle",
        formats=["nifti", "dicom-seg"], study=study, progress=False,
    )  # fmt: skip
    assert bundle.failures == ()
    assert bundle.problems == ()
    assert bundle.cases.index.tolist() == ["P001"]
    assert "verified" in repr(bundle)
    assert mm.verify(bundle, images=data_set, study=study, progress=False).is_sound
    mask = next(bundle.folder.rglob("P001.nii.gz"))
    mask.write_bytes(mask.read_bytes()[:-1])
    found = mm.verify(bundle, progress=False)
    assert not found.is_sound
    assert any("P001" in problem for problem in found.problems)
    with pytest.raises(mm.SaveConflictError):
        mm.export(data_set, predictions, tmp_path / "bundle", progress=False)


WRONG = {
    "no source": (lambda d, t: mm.import_dicom(t / "gone", t / "x"), mm.FormatError, "gone"),
    "no DICOM": (lambda d, t: mm.import_dicom(t, t / "x"), mm.FormatError, "DICOM"),
    "no path": (lambda d, t: mm.import_dicom(None, t / "x"), mm.ArgumentError, "a path"),
    "an id": (lambda d, t: mm.import_dicom(t, t / "x", 3), mm.ArgumentError, "to be a string"),
    "a clock": (lambda d, t: mm.import_dicom(t, t / "x", clock="x"), mm.ArgumentError, "Trigger"),
    "phases": (lambda d, t: mm.import_dicom(t, t / "x", phases="01"), mm.ArgumentError, "numbers"),
    "sides": (lambda d, t: mm.import_dicom(t, t / "x", sides="all"), mm.ArgumentError, '"join"'),
    "a selector": (lambda d, t: mm.import_dicom(t, t / "x", use="x"), mm.MamamiaError, "x"),
    "no data set": (lambda d, t: mm.export(t, t, t / "x"), mm.ArgumentError, "a data set"),
    "a format": (lambda d, t: mm.export(d, t, t / "x", formats="x"), mm.ArgumentError, '"bids"'),
    "no masks": (lambda d, t: mm.export(d, t, t / "x"), mm.FormatError, "but found none"),
    "masks gone": (lambda d, t: mm.export(d, t / "gone", t / "x"), mm.FormatError, "gone"),
    "no study": (lambda d, t: mm.verify(t, study=t / "gone"), mm.FormatError, "gone"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_meant_is_refused_and_writes_nothing(imported, tmp_path, name):
    call, kind, said = WRONG[name]
    with pytest.raises(kind, match=said):
        call(imported.data_set, tmp_path)
    assert not (tmp_path / "x").exists()


def test_masks_in_memory_are_exported_and_a_seg_comes_back_onto_the_case(study, imported, tmp_path):
    data_set = imported.data_set
    case = data_set["P001"]
    drawn = np.zeros(case.grid.shape, bool)
    drawn[4:9, 20:30, 12:25] = True
    for name, mask in (("mask", mm.Mask(case.grid, drawn)), ("array", drawn)):
        out = tmp_path / name
        bundle = mm.export(
            data_set, {"P001": mask}, out, formats=("nifti", "slicer"), progress=False
        )
        assert (bundle.failures, bundle.problems) == ((), ())
        assert np.array_equal(mm.read_mask(out / "P001.nii.gz").array, drawn)
        seg = mm.read_mask(out / "slicer" / "P001.seg.nrrd", "tumour", grid=case.grid)
        assert np.array_equal(seg.array, drawn)
    moved = case.grid.affine.copy()
    moved[0, 3] += 7
    bad = mm.Mask(mm.Grid(case.grid.shape, moved), drawn)
    (failure,) = mm.export(data_set, {"P001": bad}, tmp_path / "bad", progress=False).failures
    assert "apart" in failure.reason
    with pytest.raises(mm.ArgumentError, match="but got both"):
        mm.export(data_set, {"P001": drawn, "x": tmp_path}, tmp_path / "both", progress=False)
    with pytest.raises(mm.FormatError, match=r"'liver'.*'tumour' \(1\)"):
        mm.read_mask(tmp_path / "mask" / "slicer" / "P001.seg.nrrd", "liver")


def test_a_folder_that_is_no_bundle_is_not_sound(tmp_path):
    found = mm.verify(tmp_path, progress=False)
    assert not found.is_sound
    assert "manifest" in found.problems[0]


PHANTOMS_WRONG = {
    "none": {"n_cases": 0},
    "text": {"n_cases": "3"},
    "shape": {"shape": (24, 64)},
    "thin": {"shape": (1, 64, 64)},
    "seed": {"seed": -1},
    "mix": {"mix": "both"},
}


@pytest.mark.parametrize("name", PHANTOMS_WRONG)
def test_phantoms_that_cannot_be_are_refused(tmp_path, name):
    with pytest.raises((mm.ArgumentError, mm.CaseError)):
        mm.make_phantoms(tmp_path / "x", **PHANTOMS_WRONG[name])
    assert not (tmp_path / "x").exists()


def test_phantoms_and_studies_never_replace_what_is_there(study, imported):
    with pytest.raises(mm.SaveConflictError):
        mm.make_phantoms(imported.folder, 1)
    with pytest.raises(mm.SaveConflictError):
        mm.make_phantom_study(study)
