"""Half characters, which no UTF-8 holds: escaped in JSON, and in file names of other systems."""

import os
import subprocess
import sys

import pytest

from napari_mamamia.core.errors import FormatError, SaveError
from napari_mamamia.io.data_set.mask_files import find_masks
from napari_mamamia.io.files.json_text import parsed_json
from napari_mamamia.io.files.save import write_text_atomically
from napari_mamamia.io.layouts.find import find_data_set
from napari_mamamia.io.tables.tables import write_json

BAD = os.fsdecode(b"M\xfcller")  # Latin-1, as a disk of another system has it


@pytest.fixture
def data_set(tmp_path):
    """Two cases of two phases, the name of one in Latin-1."""
    for case_id in ("A_1", BAD):
        folder = tmp_path / "images" / case_id
        try:
            folder.mkdir(parents=True)
        except OSError:
            pytest.skip("this file system refuses names that are no UTF-8")
        for phase in range(2):
            (folder / f"{case_id}_{phase:04d}.nii.gz").write_bytes(b"content")
    return tmp_path


@pytest.mark.parametrize("text", [r'"\ud800"', r'{"a": ["\uDFFF x"]}', r'{"\udc00\ud800": 1}'])
def test_json_with_half_a_character_is_refused(text):
    with pytest.raises(ValueError, match="half a character"):
        parsed_json(text)


def test_both_halves_of_a_character_are_read():
    assert parsed_json(r'["\ud83d\ude00", "\\ud800"]') == ["\U0001f600", "\\ud800"]


def test_text_with_half_a_character_is_an_error_and_leaves_the_file_as_it_was(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("before")
    with pytest.raises(SaveError, match=r"half a character.*rename"):
        write_text_atomically(path, f"case {BAD}", overwrite=True)
    assert path.read_text() == "before"
    assert [file.name for file in tmp_path.iterdir()] == ["notes.txt"]


def test_a_case_whose_name_is_no_utf_8_is_a_problem_and_the_others_open(data_set):
    one, other = find_data_set(data_set).cases
    assert (one.case_id, one.problems, len(one.phases)) == ("A_1", (), 2)
    assert (other.case_id, other.phases) == ("M\ufffdller", ())
    assert "rename its files" in other.problems[0]


def test_a_mask_whose_name_is_no_utf_8_is_named(data_set):
    with pytest.raises(FormatError) as refusal:
        find_masks(data_set / "images" / BAD)
    assert "M\ufffdller_0000.nii.gz is not: rename the file" in str(refusal.value)


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_the_command_lists_it_on_any_terminal(data_set, encoding):
    program = "from napari_mamamia.cli.app import main; main()"
    environment = dict(os.environ, PYTHONIOENCODING=encoding, MAMAMIA_CONFIG_DIR=str(data_set))
    command = [sys.executable, "-c", program, "cases", str(data_set)]
    ended = subprocess.run(command, env=environment, capture_output=True, timeout=120)
    assert ended.returncode == 3, ended.stderr
    assert b"Traceback" not in ended.stderr
    assert b"A_1" in ended.stdout


def test_errors_and_json_show_the_sign_for_what_cannot_be_read(tmp_path):
    assert str(FormatError(f"no DICOM at {BAD}")) == "no DICOM at M\ufffdller"
    write_json({"place": tmp_path / BAD, BAD: f"in {BAD}"}, tmp_path / "a.json")
    text = (tmp_path / "a.json").read_text(encoding="utf-8")
    assert text.count("M\ufffdller") == 3
    assert "udcfc" not in text


@pytest.mark.door
@pytest.mark.parametrize(
    "command",
    [
        ("import", "{}/dicom", "--out", "{}/out", "--dry-run", "--json"),
        ("import", "{}/dicom", "--out", "{}/dicom"),
        pytest.param(("import", "{}/nowhere", "--out", "{}/out"), marks=pytest.mark.night),
        ("cases", "{}/images"),
        pytest.param(("verify", "{}/dicom"), marks=pytest.mark.night),
        ("score", "--reference", "{}/dicom", "--prediction", "{}", "--out", "{}/scores"),
        pytest.param(
            ("export", "{}", "--masks", "{}/dicom", "--out", "{}/bundle"), marks=pytest.mark.night
        ),
    ],
    ids=lambda words: " ".join(words),
)
def test_no_command_shows_half_a_character_of_a_path(data_set, command):
    folder = data_set / BAD
    for name in ("dicom", "images"):
        (folder / name).mkdir(parents=True)
    (folder / "dicom" / "IM1.dcm").write_bytes(b"no DICOM at all")
    program = "from napari_mamamia.cli.app import main; main()"
    environment = dict(os.environ, PYTHONIOENCODING="utf-8", MAMAMIA_CONFIG_DIR=str(data_set))
    typed = [part.format(folder) for part in command]
    ended = subprocess.run(
        [sys.executable, "-c", program, *typed], env=environment, capture_output=True, timeout=120
    )
    said = (ended.stdout + ended.stderr).decode("utf-8")
    written = [p.read_text(encoding="utf-8") for p in folder.glob("*.json")]
    assert "Traceback" not in said
    assert "udcfc" not in said + "".join(written)
    assert "M\ufffd" in said.replace("\n", "")
