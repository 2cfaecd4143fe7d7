"""What a submission wrote is looked at before anything uses it; each breach has its sentence."""

import gzip
import os

import nibabel as nib
import numpy as np
import pytest

from napari_mamamia.core.errors import ModelError
from napari_mamamia.core.grid import Grid
from napari_mamamia.features.challenge.services.submission.run_submission import (
    Response,
    constant_note,
    take_responses,
)
from napari_mamamia.segmentation.sandbox.outputs import take_mask

SHAPE = (4, 6, 8)
AFFINE = np.diag([-0.8, 0.8, 2.0, 1.0])
GRID = Grid(SHAPE, AFFINE)


def write(output, array, affine=AFFINE, name="A_1.nii.gz"):
    folder = output / "pred_segmentations"
    folder.mkdir(exist_ok=True)
    image = nib.Nifti1Image(array.transpose(), affine)
    nib.save(image, folder / name)
    return folder / name


def labels(dtype=np.uint8):
    made = np.zeros(SHAPE, dtype=dtype)
    made[1:3, 2:4, 5] = 1
    return made


def test_a_mask_that_keeps_the_contract_is_taken_as_it_is(tmp_path):
    write(tmp_path, labels())
    checked = take_mask(tmp_path, "A_1", GRID)
    assert checked.mask.grid is GRID
    assert (checked.mask.array == labels().astype(bool)).all()
    assert checked.notes == ()


def test_another_integer_type_and_an_empty_mask_are_notes(tmp_path):
    write(tmp_path, np.zeros(SHAPE, np.int16))
    assert take_mask(tmp_path, "A_1", GRID).notes == (
        "stored as int16, not uint8: saved as uint8",
        "the mask is empty",
    )


def four(array):
    return np.stack([array, array])


BREACHES = {
    "no folder": (lambda o: None, "it has no folder pred_segmentations"),
    "other name": (lambda o: write(o, labels(), name="A_1_0001.nii.gz"), "found A_1_0001.nii.gz"),
    "letter case": (lambda o: write(o, labels(), name="a_1.nii.gz"), "found a_1.nii.gz"),
    "label 2": (lambda o: write(o, labels() * 2), "but found also 2"),
    "negative": (lambda o: write(o, labels(np.int16) * -1), "also -1"),
    "probabilities": (lambda o: write(o, labels(np.float32)), "but found float32"),
    "transposed": (lambda o: write(o, labels().transpose()), "has shape (8, 6, 4)"),
    "cropped": (lambda o: write(o, labels()[1:]), "has shape (3, 6, 8)"),
    "mirrored": (lambda o: write(o, labels(), np.diag([0.8, 0.8, 2, 1])), "mm apart"),
    "other spacing": (lambda o: write(o, labels(), np.diag([-1.0, 1, 1, 1])), "mm apart"),
    "4-D": (lambda o: write(o, four(labels())), "2 volumes"),
    "not a volume": (
        lambda o: write(o, labels()).write_bytes(b"PK\x03\x04 nothing"),
        "is not as required",
    ),
    "cut off": (
        lambda o: (lambda p: p.write_bytes(p.read_bytes()[:-30]))(write(o, labels())),
        "is not as required",
    ),
}


@pytest.mark.parametrize("name", sorted(BREACHES))
def test_each_breach_of_the_masks_contract_is_refused_with_its_reason(tmp_path, name):
    do, expected = BREACHES[name]
    do(tmp_path)
    with pytest.raises(ModelError) as refused:
        take_mask(tmp_path, "A_1", GRID)
    assert expected in str(refused.value)
    assert str(tmp_path) not in str(refused.value)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_neither_links_nor_pipes_are_opened(tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    target = write(elsewhere, labels())
    output = tmp_path / "output"
    (output / "pred_segmentations").mkdir(parents=True)
    path = output / "pred_segmentations" / "A_1.nii.gz"
    path.symlink_to(target)
    with pytest.raises(ModelError, match="it was not opened"):
        take_mask(output, "A_1", GRID)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(ModelError, match="it was not opened"):
        take_mask(output, "A_1", GRID)
    path.unlink()
    path.parent.rmdir()
    path.parent.symlink_to(target.parent)
    with pytest.raises(ModelError, match="no folder"):
        take_mask(output, "A_1", GRID)


def test_a_file_that_unpacks_to_far_more_than_the_mask_is_not_read(tmp_path):
    path = write(tmp_path, labels())
    plain = gzip.decompress(path.read_bytes())
    path.write_bytes(gzip.compress(plain + bytes(3 * 2**20)))
    with pytest.raises(ModelError, match="was not read further"):
        take_mask(tmp_path, "A_1", GRID)


def test_several_gzip_members_are_counted_together(tmp_path):
    path = write(tmp_path, labels())
    path.write_bytes(path.read_bytes() + gzip.compress(bytes(2**19)) * 3)
    with pytest.raises(ModelError, match="was not read further"):
        take_mask(tmp_path, "A_1", GRID)


HEAD = "patient_id,pcr,score\n"


def table(output, text):
    (output / "predictions.csv").write_text(text)
    return output


def test_responses_are_read_with_notes_where_class_and_score_disagree(tmp_path):
    table(tmp_path, HEAD + "A_1,1,0.9\nA_2,1.0,0.2\nB_1,False,0.5\n")
    found, notes = take_responses(tmp_path, ["A_1", "A_2", "B_1"])
    assert found == (Response("A_1", 1, 0.9), Response("A_2", 1, 0.2), Response("B_1", 0, 0.5))
    assert notes == ("A_2: pcr is 1 but its score is 0.2; the two are scored separately",)


TABLES = {
    "no score": ("patient_id,pcr\nA_1,1\nA_2,0\n", "columns patient_id, pcr, score"),
    "missing case": (HEAD + "A_1,1,0.9\n", "none for A_2"),
    "other case": (HEAD + "A_1,1,0.9\nA_2,0,0.1\nZ_9,0,0.1\n", "row 4"),
    "letter case": (HEAD + "a_1,1,0.9\nA_2,0,0.1\n", "the patient_id of one of its input cases"),
    "twice": (HEAD + "A_1,1,0.9\nA_1,0,0.1\nA_2,0,0.1\n", "each patient once"),
    "pcr 2": (HEAD + "A_1,2,0.9\nA_2,0,0.1\n", "a pcr of 0 or 1"),
    "pcr 0.7": (HEAD + "A_1,0.7,0.9\nA_2,0,0.1\n", "a pcr of 0 or 1"),
    "score 1.2": (HEAD + "A_1,1,1.2\nA_2,0,0.1\n", "a score from 0 to 1"),
    "score nan": (HEAD + "A_1,1,nan\nA_2,0,0.1\n", "a score from 0 to 1"),
    "score empty": (HEAD + "A_1,1,\nA_2,0,0.1\n", "a score from 0 to 1"),
    "short row": (HEAD + "A_1\nA_2,0,0.1\n", "a pcr of 0 or 1"),
    "empty": ("", "none for A_1"),
}


@pytest.mark.parametrize("name", sorted(TABLES))
def test_each_breach_of_the_tables_contract_is_refused_with_its_reason(tmp_path, name):
    text, expected = TABLES[name]
    with pytest.raises(ModelError) as refused:
        take_responses(table(tmp_path, text), ["A_1", "A_2"])
    assert expected in str(refused.value)


def test_a_terminal_gets_no_control_characters_of_a_submission(tmp_path):
    with pytest.raises(ModelError) as refused:
        take_responses(table(tmp_path, HEAD + "\x1b[2Jgone,1,0.9\n"), ["A_1"])
    assert "\x1b" not in str(refused.value)
    assert "[2Jgone" in str(refused.value)


def test_constant_predictions_of_several_cases_are_noted():
    same = [Response("A_1", 1, 0.9), Response("A_2", 1, 0.6)]
    assert "all 2 predicted responses are 1" in constant_note(same)
    assert constant_note(same[:1]) == ""
    assert constant_note([*same, Response("B_1", 0, 0.1)]) == ""
