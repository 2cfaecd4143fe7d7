"""Options for scripts: --json, -q, -v and --no-report, in processes of their own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.test_examples import COMMANDS

WITHOUT_RESULT = {
    ("view",),
    ("desktop",),
    ("models", "convert"),
    ("models", "wrap"),
    ("site", "evaluate"),
    ("site", "merge"),
    *(("challenge", name) for name in ("init", "run", "score", "rank", "verify", "publish")),
    *(
        ("review", name)
        for name in (
            *("init", "audit", "agreement", "export", "report", "lead-key", "key"),
            *("countersign", "revoke", "sign", "queue", "capture"),
        )
    ),
}
"""Commands that start something, or write files and say which."""


def mamamia(*words):
    command = [Path(sys.executable).with_name("mamamia"), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture
def expert(small_data_set):
    return small_data_set / "segmentations" / "expert"


def test_every_command_that_reports_has_json_and_each_is_quiet_and_verbose():
    switches = {
        words: {
            name
            for param in command.get_params(command.context_class(command))
            for name in param.opts
        }
        for words, command in COMMANDS
    }
    lacking = {words for words, names in switches.items() if "--json" not in names}
    assert lacking <= WITHOUT_RESULT
    assert all({"-q", "-v"} <= names for names in switches.values())


def test_json_prints_the_summary_that_is_written_and_nothing_else(expert, tmp_path):
    masks = tmp_path / "masks"
    masks.mkdir()
    for path in expert.glob("*.nii.gz"):
        (masks / path.name).write_bytes(path.read_bytes())
    next(masks.glob("*.nii.gz")).write_bytes(b"no mask")
    words = ("score", "--reference", expert, "--prediction", masks, "--bootstrap", 20)
    done = mamamia(*words, "--out", tmp_path / "out", "--no-report", "--json")
    assert done.returncode == 3, done.stderr
    written = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert json.loads(done.stdout) == written
    assert (written["n_cases"], written["n_scored"]) == (3, 2)
    assert "Scores saved" in done.stderr
    assert not (tmp_path / "out" / "report.html").exists()
    assert not (tmp_path / "out" / "figures").exists()


def test_a_run_without_a_report_leaves_none_of_the_run_that_it_replaces(expert, tmp_path):
    out = tmp_path / "out"
    words = ("score", "--reference", expert, "--prediction", expert, "--bootstrap", 0)
    assert mamamia(*words, "--out", out, "-q").returncode == 0
    assert (out / "report.html").exists()
    assert list((out / "figures").iterdir())
    (out / "figures" / "own notes.txt").write_text("the user's")
    assert mamamia(*words, "--out", out, "--no-report", "--overwrite", "-q").returncode == 0
    assert not (out / "report.html").exists()
    assert [path.name for path in (out / "figures").iterdir()] == ["own notes.txt"]


def test_quiet_prints_nothing_of_a_run_that_succeeds_and_still_the_csv(small_data_set, tmp_path):
    done = mamamia("predict", small_data_set, "--out", tmp_path / "masks", "-q")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert len(list((tmp_path / "masks").glob("*.nii.gz"))) == 3
    listed = mamamia("cases", small_data_set, "--csv", "-q")
    assert listed.stdout.startswith("case_id,phases,")


def test_verbose_prints_each_step_and_where_an_error_arose(small_data_set, tmp_path):
    done = mamamia("cases", small_data_set, "-v")
    assert "s  Listing cases" in done.stderr
    refused = mamamia("cases", tmp_path / "nothing", "-v")
    assert refused.returncode == 1
    assert "Traceback" in refused.stderr
    assert "Traceback" not in mamamia("cases", tmp_path / "nothing").stderr


def test_an_error_with_json_leaves_the_output_empty(tmp_path):
    done = mamamia("score-table", tmp_path / "none.csv", "--out", tmp_path / "out", "--json")
    assert (done.returncode, done.stdout) == (1, "")
    assert "error: " in done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_completion_script_is_printed_for_each_shell(shell):
    command = [Path(sys.executable).with_name("mamamia"), "--show-completion", shell]
    # Otherwise the shell that started the tests is taken, if there is one.
    own = os.environ | {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=own, check=False)
    assert done.returncode == 0
    assert "_MAMAMIA_COMPLETE" in done.stdout
