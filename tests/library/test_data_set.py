"""`open_data_set`: the data set as a table and as records; what is no data set."""

import nibabel as nib
import numpy as np
import pytest

import napari_mamamia as mm

TIMES_S = (0.0, 90.0, 180.0, 420.0)


@pytest.fixture(scope="module")
def data_set(data_set_of_module):
    return mm.open_data_set(data_set_of_module, progress=False)


def test_the_table_has_a_row_for_each_case_with_what_the_clinical_table_knows(data_set):
    table = data_set.cases
    assert table.index.tolist() == ["A_1", "A_2", "B_1"]
    assert table.loc["A_1", ["phases", "reference", "age"]].tolist() == [4, True, 51.0]
    assert table.loc["B_1", "menopausal_status"] == "post"
    assert table["problems"].tolist() == ["", "", ""]


def test_a_loop_an_id_and_a_place_give_the_same_case(data_set):
    assert [case.case_id for case in data_set] == ["A_1", "A_2", "B_1"]
    assert data_set[2].case_id == data_set["B_1"].case_id == data_set["b_1"].case_id == "B_1"
    assert data_set[-1].case_id == "B_1"
    assert len(data_set) == 3
    assert "A_2" in data_set
    assert data_set["A_2"] in data_set


def test_a_case_gives_its_voxels_as_nibabel_reads_them(data_set, data_set_of_module):
    case = data_set["A_1"]
    image = nib.load(data_set_of_module / "images" / "A_1" / "A_1_0002.nii.gz")
    assert case.signal.shape == (4, 8, 32, 48)
    assert np.array_equal(case.signal[2], np.asarray(image.dataobj).T)
    assert np.array_equal(case.affine, image.affine)
    assert case.spacing_mm == pytest.approx((2.0, 0.8, 0.8))
    assert case.times_s == TIMES_S
    assert [phase.index for phase in case.phases] == [0, 1, 2, 3]


def test_the_reference_is_a_mask_on_the_case_grid(data_set):
    mask = data_set["A_1"].reference
    assert int(mask.array.sum()) == 3 * 6 * 6
    assert mask.grid.shape == (8, 32, 48)
    assert mask.volume_mm3 == pytest.approx(108 * 0.8 * 0.8 * 2.0)
    assert repr(mask).startswith("Mask(0.138 ml, 108 voxels")


def test_nibabel_gets_a_view_with_the_phases_last_and_the_file_own_place(data_set):
    case = data_set["A_1"]
    image = case.to_nibabel()
    assert image.shape == (48, 32, 8, 4)
    assert np.shares_memory(np.asarray(image.dataobj), case.signal)
    assert np.array_equal(image.affine, case.affine)
    assert int(image.header["sform_code"]) == 1
    back = mm.from_nibabel(mm.to_nibabel(case.reference))
    assert np.array_equal(back.array, case.reference.array)
    assert back.grid.is_same_place(case.grid)


def test_nothing_is_read_for_the_list_and_a_case_is_read_once(data_set, monkeypatch):
    from napari_mamamia.library import case as room

    read = []
    real = room.load_case
    monkeypatch.setattr(room, "load_case", lambda *given: (read.append(given), real(*given))[1])
    case = data_set["A_2"]
    assert "4 phases, with a reference" in repr(case)
    assert case.grid.shape == (8, 32, 48)
    assert read == []
    assert np.shares_memory(case.signal, case.signal)
    with pytest.raises(ValueError, match="read-only"):
        case.signal[0] = 0
    assert len(read) == 1


@pytest.mark.parametrize("wrong", [None, 3, b"bytes", "", ["a"]])
def test_what_is_no_path_is_refused_as_such(wrong):
    with pytest.raises(mm.ArgumentError, match="to be a path"):
        mm.open_data_set(wrong)


def test_a_folder_that_is_missing_empty_or_without_cases_is_named(tmp_path):
    with pytest.raises(mm.FormatError, match=r"there is no data set at .*; check the path"):
        mm.open_data_set(tmp_path / "gone")
    with pytest.raises(mm.FormatError, match="found no case"):
        mm.open_data_set(tmp_path)


@pytest.mark.parametrize("wrong", ["A_3", "", 3, -4])
def test_a_case_that_is_not_there_is_told_with_some_that_are(data_set, wrong):
    with pytest.raises(mm.CaseError, match=r"A_1, A_2, B_1|from 0 to 2"):
        data_set[wrong]


@pytest.mark.parametrize("wrong", [None, 1.0, True, ("A_1",)])
def test_an_index_of_another_kind_is_an_argument_error(data_set, wrong):
    with pytest.raises(mm.ArgumentError, match="expected a case id or a non-negative index"):
        data_set[wrong]


def test_a_damaged_phase_costs_its_case_alone(small_data_set):
    path = small_data_set / "images" / "A_2" / "A_2_0001.nii.gz"
    path.write_bytes(path.read_bytes()[:200])
    data_set = mm.open_data_set(small_data_set, progress=False)
    assert data_set["A_1"].signal.any()
    with pytest.raises(mm.FormatError, match="A_2_0001"):
        data_set["A_2"].signal  # noqa: B018 - it reads


def test_a_reference_that_is_an_image_or_lies_elsewhere_is_refused(small_data_set):
    place = small_data_set / "segmentations" / "expert"
    image = np.arange(8 * 32 * 48, dtype=np.int16).reshape(48, 32, 8)
    nib.save(nib.Nifti1Image(image, nib.load(place / "A_1.nii.gz").affine), place / "A_1.nii.gz")
    moved = nib.load(place / "A_2.nii.gz")
    affine = moved.affine.copy()
    affine[0, 3] += 20
    nib.save(nib.Nifti1Image(np.asarray(moved.dataobj), affine), place / "A_2.nii.gz")
    data_set = mm.open_data_set(small_data_set, progress=False)
    with pytest.raises(mm.CaseError, match="looks like an image"):
        data_set["A_1"].reference  # noqa: B018 - it reads
    with pytest.raises(mm.GridMismatchError, match=r"20\.00 mm apart"):
        data_set["A_2"].reference  # noqa: B018 - it reads


def test_a_mask_that_nobody_made_is_told_with_those_that_are_there(data_set):
    with pytest.raises(mm.CaseError, match="by 'kinetic', but found none"):
        data_set["A_1"].prediction()


def test_columns_of_the_clinical_table_are_fixed_by_a_mapping(small_data_set):
    with pytest.raises(mm.FormatError):
        mm.open_data_set(small_data_set, columns={"age": "no such column"}, progress=False)
    fixed = mm.open_data_set(small_data_set, columns={"age": None}, progress=False)
    assert fixed.cases["age"].isna().all()
    with pytest.raises(mm.ArgumentError, match="got the field 'ages'"):
        mm.open_data_set(small_data_set, columns={"ages": "age"})


def test_a_page_of_a_notebook_shows_the_cases(data_set):
    page = data_set._repr_html_()
    assert "3 cases" in page
    assert "<td>post</td>" in page


def test_a_mask_is_written_where_nothing_is_and_never_over_a_file(data_set, tmp_path):
    case = data_set["A_1"]
    path = tmp_path / "A_1.nii.gz"
    mm.write_mask(case.reference.array.astype(float), path, grid=case.grid)
    assert np.array_equal(mm.read_mask(path).array, case.reference.array)
    before = path.read_bytes()
    with pytest.raises(mm.SaveConflictError):
        mm.write_mask(case.reference, path)
    assert path.read_bytes() == before
    with pytest.raises(mm.ArgumentError, match=r"pass +grid=case\.grid"):
        mm.write_mask(case.reference.array, tmp_path / "other.nii.gz")
    with pytest.raises(mm.FormatError):
        mm.write_mask(case.reference, tmp_path / "mask.txt")
    with pytest.raises(mm.FormatError, match="gone"):
        mm.read_mask(tmp_path / "gone.nii.gz")
