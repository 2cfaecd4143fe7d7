"""Results of another run are never mixed in or overwritten unasked."""

import json
import re
from dataclasses import replace

import pytest
import typer

from napari_mamamia.core.errors import FormatError, Remedy, SaveConflictError, SaveError
from napari_mamamia.core.program.owner import this_process
from napari_mamamia.services.batch.output_folder import Existing, claim_folder, claimed_folder

PARAMETERS = (("model", "kinetic"), ("label", None))


def test_a_new_folder_is_made_and_says_what_the_run_is(tmp_path):
    claim_folder(tmp_path / "a" / "b", "predict", PARAMETERS, Existing.REFUSE)
    record = json.loads((tmp_path / "a" / "b" / "run.json").read_text())
    assert record["command"] == "predict"
    assert record["parameters"] == {"model": "kinetic", "label": None}


def test_a_folder_that_holds_something_is_refused(tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(SaveConflictError, match="to be empty"):
        claim_folder(tmp_path, "predict", PARAMETERS, Existing.REFUSE)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_the_same_run_can_be_resumed(tmp_path):
    claim_folder(tmp_path, "predict", PARAMETERS, Existing.REFUSE)
    claim_folder(tmp_path, "predict", PARAMETERS, Existing.RESUME)


@pytest.mark.parametrize(
    ("command", "parameters", "said"),
    [
        ("score", PARAMETERS, r"a different run \(the command was predict, but is now score\)"),
        ("predict", (("model", "other"),), r"a different run \(model kinetic there, other here\)"),
    ],
)
def test_another_run_cannot_be_resumed(tmp_path, command, parameters, said):
    claim_folder(tmp_path, "predict", PARAMETERS, Existing.REFUSE)
    with pytest.raises(SaveConflictError, match=said):
        claim_folder(tmp_path, command, parameters, Existing.RESUME)


def test_a_run_with_parameters_of_another_shape_is_another_run(tmp_path):
    claim_folder(tmp_path, "predict", PARAMETERS, Existing.REFUSE)
    (tmp_path / "run.json").write_text('{"command": "predict", "parameters": [1]}')
    with pytest.raises(SaveConflictError, match="a different run"):
        claim_folder(tmp_path, "predict", PARAMETERS, Existing.RESUME)


@pytest.mark.parametrize("text", ["", "not json", "[]", '{"command": "predict"}'])
def test_a_folder_without_a_readable_run_record_cannot_be_resumed(tmp_path, text):
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(SaveConflictError, match="no readable"):
        claim_folder(tmp_path, "predict", PARAMETERS, Existing.RESUME)


def test_overwriting_leaves_other_files(tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    claim_folder(tmp_path, "predict", PARAMETERS, Existing.OVERWRITE)
    assert (tmp_path / "thesis.txt").read_text() == "mine"


def test_a_file_in_place_of_the_folder_is_named(tmp_path):
    (tmp_path / "out").write_text("a file")
    with pytest.raises(SaveError, match="cannot be used as the output folder"):
        claim_folder(tmp_path / "out", "predict", PARAMETERS, Existing.REFUSE)


@pytest.mark.parametrize("command", ["export", "score-table", "score-pcr", "predict", "kinetics"])
def test_a_refusal_names_only_options_that_the_command_has(command, tmp_path):
    from napari_mamamia.cli.app import app
    from napari_mamamia.cli.remedies import name_remedies

    claim_folder(tmp_path, command, (), Existing.REFUSE)
    with pytest.raises(SaveConflictError) as refusal:
        claim_folder(tmp_path, command, (), Existing.REFUSE)
    options = typer.main.get_command(app).commands[command].params
    known = {name for option in options for name in option.opts}
    named = set(re.findall(r"--[a-z]+", name_remedies(refusal.value.remedies)))
    assert named <= known
    assert "--overwrite" in named
    assert ("--resume" in named) == ("--resume" in known)


@pytest.mark.parametrize("earlier", ["no run", "another command", "other parameters"])
def test_a_run_that_cannot_be_continued_is_not_offered_to_be(earlier, tmp_path):
    if earlier == "no run":
        (tmp_path / "thesis.txt").write_text("mine")
    else:
        command = "predict" if earlier == "other parameters" else "kinetics"
        claim_folder(tmp_path, command, (("model", "other"),), Existing.REFUSE)
    with pytest.raises(SaveConflictError) as refusal:
        claim_folder(tmp_path, "predict", PARAMETERS, Existing.REFUSE)
    assert refusal.value.remedies == (Remedy("overwrite"),)


def test_what_a_killed_run_left_half_written_does_not_make_a_folder_taken(tmp_path):
    dead = replace(this_process(), start="0badc0de")
    (tmp_path / f".mamamia-{dead}-0a1b2c3d.part").write_bytes(b"half")
    claim_folder(tmp_path, "export", (), Existing.REFUSE)
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


def refuse(folder, existing=Existing.REFUSE, store=b""):
    def run():
        with claimed_folder(folder, "score", PARAMETERS, existing):
            (folder / "m").mkdir(exist_ok=True)
            (folder / "m" / "case_results.jsonl").write_bytes(store)
            raise FormatError("expected masks, but found none: choose another folder")

    with pytest.raises(FormatError):
        run()


def test_a_run_that_is_refused_leaves_no_folder(tmp_path):
    refuse(tmp_path / "out")
    assert not (tmp_path / "out").exists()
    (tmp_path / "empty").mkdir()
    refuse(tmp_path / "empty")
    assert list((tmp_path / "empty").iterdir()) == []


def test_a_run_that_is_refused_leaves_an_earlier_run_as_it_was(tmp_path):
    claim_folder(tmp_path, "score", (("model", "other"),), Existing.REFUSE)
    (tmp_path / "case_scores.csv").write_text("a row")
    before = (tmp_path / "run.json").read_bytes()
    refuse(tmp_path, Existing.OVERWRITE)
    assert (tmp_path / "run.json").read_bytes() == before
    assert (tmp_path / "case_scores.csv").read_text() == "a row"


def test_a_run_that_fails_after_its_first_result_can_be_resumed(tmp_path):
    refuse(tmp_path, store=b"a result")
    claim_folder(tmp_path, "score", PARAMETERS, Existing.RESUME)
