"""A public site: its content, what it must not contain, and the scoring program for Codabench."""

import datetime
import gzip
import io
import json
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
import zlib
from base64 import b64encode

import jsonschema
import numpy as np
import pytest
import yaml
from tests.cli.warm_program import mamamia
from tests.features.challenge.challenge_world import begun, ids, write_team

from napari_mamamia.core.choices import Task
from napari_mamamia.core.errors import CaseError, FormatError
from napari_mamamia.features.challenge.io.definition import parse_definition
from napari_mamamia.features.challenge.services.challenge.begin import (
    ChallengeSettings,
    begin_challenge,
)
from napari_mamamia.features.challenge.services.challenge.board_pages import rank_challenge
from napari_mamamia.features.challenge.services.challenge.leaks import find_leaks, split_ids
from napari_mamamia.features.challenge.services.challenge.publish import (
    PublishSettings,
    publish,
)
from napari_mamamia.features.challenge.services.challenge.run import run_challenge
from napari_mamamia.io.data_set.case_list import read_case_list
from napari_mamamia.scoring.case.profiles import OFFICIAL_CODE

pytestmark = pytest.mark.usefixtures("quick_figures")
N = 12


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Return a folder with a board of two tasks."""
    root = tmp_path_factory.mktemp("publish")
    folder = begun(root, N, task=Task.BOTH, n_resamples=20, profile=OFFICIAL_CODE, name="Test cup")
    (folder / "submissions" / "beta" / "C_03.nii.gz").write_bytes(b"no image")
    for team, wrong in (("alpha", (1, 2)), ("gämma", (0, 5, 7))):
        rows = [
            f"{case_id},{int((at % 3 == 0) ^ (at in wrong))},{0.05 * at + 0.1:.2f}"
            for at, case_id in enumerate(ids(N))
        ]
        table = folder / "submissions" / team / "predictions.csv"
        table.write_text("\n".join(("patient_id,pcr,score", *rows)))
    run_challenge(folder)
    rank_challenge(folder, root / "board")
    return root


def test_a_site_has_the_numbers_of_the_board_and_a_consensus(world, tmp_path):
    words = ("--out", tmp_path / "site", "--link", "alpha=https://example.org/a")
    done = mamamia("challenge", "publish", world / "board", *words, has_figures=False)
    assert done.returncode == 0, done.stderr
    assert "No case id found" in done.stdout
    site = json.loads((tmp_path / "site" / "leaderboard.json").read_text())
    schema = json.loads((tmp_path / "site" / "leaderboard.schema.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(site)
    board = json.loads((world / "board" / "leaderboard.json").read_text())
    for task, there in zip(site["tasks"], board["boards"], strict=True):
        scores = {row["team"]: (row["rank"], row["score"]) for row in there["rows"]}
        for row in task["rows"]:
            assert row["rank"] == scores[row["team"]][0]
            if row["rank"] is not None:
                (score,) = (one for one in row["numbers"] if one["name"] == "Score")
                assert score["value"] == pytest.approx(scores[row["team"]][1])
    masks = {row["team"]: row for row in site["tasks"][0]["rows"]}
    assert masks["alpha"]["is_alarming"]  # its masks are the references
    assert masks["beta"]["rank"] is None  # rejected, for an unreadable mask
    assert "not known for 12 cases with 0 failures" in masks["alpha"]["coverage"]
    assert masks["beta"]["coverage"] == ""
    names = [one["name"] for one in masks["alpha"]["numbers"]]
    assert names == [
        "Dice", "NormHD", "Performance", "Fairness, age", "Fairness, menopausal_status",
        "Fairness, breast_density", "Fairness", "Score",
    ]  # fmt: skip
    # ranked in both tasks: alpha and gämma, each as often first
    assert {entry[0] for entry in site["overall"]} == {"alpha", "gämma"}
    page = (tmp_path / "site" / "index.html").read_text()
    assert '<a href="https://example.org/a">alpha</a>' in page
    assert "Consensus ranking" in page
    assert page.count(masks["alpha"]["coverage"]) == 1  # once for alpha and gämma
    assert 'src="http' not in page
    # gämma: 3 of 4 responders among 5 predictions, p = 0.15
    assert ">2 (no better than chance)<" in page
    metrics = tmp_path / "site" / "metrics" / "segmentation" / "alpha" / "metrics.json"
    aggregates = json.loads(metrics.read_text())["aggregates"]
    assert aggregates["dice"]["mean"] == 1.0
    assert aggregates["dice"]["std"] == 0.0


def test_no_id_and_no_value_of_a_case_leaves(world, tmp_path):
    published = publish([world / "board"], tmp_path / "site", PublishSettings())
    assert published.unsearched == ()
    files = [path for path in (tmp_path / "site").rglob("*") if path.is_file()]
    assert find_leaks(tmp_path / "site", ids(N)) == ()
    assert len(find_leaks(world / "board", ids(N))) > N  # the board itself has all of them
    text = "".join(path.read_text() for path in files if path.suffix in (".json", ".html"))
    values = np.genfromtxt(world / "board" / "case_values.csv", delimiter=",", skip_header=1)
    single = {f"{value:.6f}" for value in values[:, 4:].ravel() if 0 < value < 1}
    assert single
    assert not any(value in text for value in single)


def test_a_part_or_a_task_with_few_cases_is_refused(world, tmp_path):
    few = tmp_path / "few.txt"
    few.write_text("\n".join(ids(N)[:4]))
    split = read_case_list(few)
    with pytest.raises(CaseError, match="at least 10 cases") as caught:
        publish([world / "board"], tmp_path / "site", PublishSettings(public=split))
    assert caught.value.remedies[0].option == "minimum_group"
    with pytest.raises(CaseError, match="at least 20 cases"):
        publish([world / "board"], tmp_path / "site", PublishSettings(minimum_group=20))
    half = tmp_path / "half.txt"
    # ages, menopause and density have the same groups in both parts
    half.write_text("\n".join(ids(N)[at] for at in (0, 2, 5, 7, 8, 11)))
    settings = PublishSettings(public=read_case_list(half), minimum_group=5)
    site = publish([world / "board"], tmp_path / "site", settings).site
    assert site.tasks[0].parts == (6, 6)
    rows = {row.team: row for row in site.tasks[0].rows}
    assert rows["alpha"].public_score == pytest.approx(1.0)
    assert (rows["alpha"].public_rank, rows["gämma"].private_rank) == (1, 2)


def test_a_team_named_after_a_case_or_a_changed_board_is_not_published(tmp_path):
    folder = begun(tmp_path, N, n_resamples=0)
    write_team(folder / "submissions" / "c_05", 1, N)
    run_challenge(folder)
    rank_challenge(folder, tmp_path / "board")
    with pytest.raises(FormatError, match=r"no case id .* c_05 in "):
        publish([tmp_path / "board"], tmp_path / "site")
    assert [path.name for path in (tmp_path / "site").iterdir()] == ["run.json"]
    (tmp_path / "board" / "ranks.csv").write_text("x")
    with pytest.raises(FormatError, match=r"ranks\.csv was changed"):
        publish([tmp_path / "board"], tmp_path / "other")


def png(kind, text):
    chunk = b"Comment\0" + (b"\0" if kind == b"zTXt" else b"\1\0\0\0") + zlib.compress(text)
    body = b"".join(
        len(data).to_bytes(4) + name + data + zlib.crc32(name + data).to_bytes(4)
        for name, data in ((kind, chunk), (b"IEND", b""))
    )
    return b"\x89PNG\r\n\x1a\n" + body


def zipped(name, content):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
    return buffer.getvalue()


def tarred(content):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        item = tarfile.TarInfo("a.txt")
        item.size = len(content)
        archive.addfile(item, io.BytesIO(content))
    return buffer.getvalue()


HIDDEN = {
    "plain": b"mean of DUKE_001 and others",
    "other-case": b"duke_001.nii.gz",
    "address": b"a%20DUKE_001",
    "entity": b"DUKE&#95;001",
    "svg": b"<text>DUKE_</text>".replace(b"DUKE_", b"<tspan>DUKE</tspan><tspan>_001</tspan>"),
    "zip": zipped("a.txt", b"DUKE_001"),
    "zip-name": zipped("DUKE_001.txt", b"x"),
    "zip-in-zip": zipped("inner.zip", zipped("a.csv", b"1,DUKE_001,2")),
    "gzip": gzip.compress(b"DUKE_001"),
    "tar": tarred(b"DUKE_001"),
    "png": png(b"zTXt", b"DUKE_001"),
    "png-international": png(b"iTXt", b"DUKE_001"),
    "png-in-page": b'<img src="data:image/png;base64,%s">' % b64encode(png(b"zTXt", b"DUKE_001")),
}


@pytest.mark.parametrize("content", HIDDEN.values(), ids=HIDDEN.keys())
def test_an_id_is_found_wherever_it_hides(tmp_path, content):
    (tmp_path / "file.bin").write_bytes(content)
    (leak,) = find_leaks(tmp_path, ("DUKE_001", "DUKE_002"))[:1]
    assert leak.case_id == "duke_001"
    assert leak.path.startswith("file.bin")


def test_only_whole_words_count_and_short_numbers_are_named(tmp_path):
    (tmp_path / "file.txt").write_text("DUKE_0011 XDUKE_001 17")
    assert find_leaks(tmp_path, ("DUKE_001", "17")) == ()
    assert split_ids(("DUKE_001", "17")) == (("DUKE_001",), ("17",))


def run_in_codabench(site, task, app, references, answers):
    """Run a task of a competition in the layout of Codabench; return its columns and scores."""
    competition = yaml.safe_load((site / "codabench" / "competition.yaml").read_text())
    entry = competition["tasks"][task]
    program = app / "program"
    with zipfile.ZipFile(site / "codabench" / entry["scoring_program"]) as bundle:
        bundle.extractall(program)
    for source, name in ((references, "ref"), (answers, "res")):
        shutil.copytree(source, app / "input" / name)
    command = yaml.safe_load((program / "metadata").read_text())["command"].split()
    assert command.pop(0) == "python3"
    done = subprocess.run(
        [sys.executable, *command, app], cwd=program, capture_output=True, text=True,
        check=False, timeout=200,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    columns = {column["key"]: column for column in competition["leaderboards"][0]["columns"]}
    return columns, json.loads((app / "output" / "scores.json").read_text())


@pytest.fixture
def references(world, tmp_path):
    """Return a folder with the references and the clinical table."""
    shutil.copytree(world / "reference", tmp_path / "ref")
    shutil.copy(world / "clinical.csv", tmp_path / "ref")
    return tmp_path / "ref"


def test_both_tasks_run_in_the_layout_of_codabench(world, tmp_path, references):
    publish([world / "board"], tmp_path / "site")
    answers = write_team(tmp_path / "answers", 2, N)  # as team gämma
    table = world / "challenge" / "submissions" / "gämma" / "predictions.csv"
    shutil.copy(table, answers)
    boards = json.loads((world / "board" / "leaderboard.json").read_text())["boards"]
    for task, board in enumerate(boards):
        columns, scores = run_in_codabench(
            tmp_path / "site", task, tmp_path / str(task), references, answers
        )
        (row,) = (row for row in board["rows"] if row["team"] == "gämma")
        performance = ("performance", "balanced_accuracy")[task]
        assert scores["ranking_score"] == pytest.approx(row["score"])
        assert scores[performance] == pytest.approx(row["performance"])
        assert scores["fairness"] == pytest.approx(row["fairness"])
        assert set(scores) <= set(columns)
    assert columns["mean_norm_hd"]["sorting"] == "asc"
    assert columns["balanced_accuracy"]["sorting"] == "desc"


def test_a_competition_names_only_files_that_are_there_or_that_the_organiser_adds(world, tmp_path):
    publish([world / "board"], tmp_path / "site")
    folder = tmp_path / "site" / "codabench"
    text = (folder / "competition.yaml").read_text()
    named = set(re.findall(r"[\w\-]+\.(?:zip|md|png)", text))
    there = {path.name for path in folder.iterdir()} - {"competition.yaml"}
    added = {"logo.png", "reference_data_segmentation.zip", "reference_data_classification.zip"}
    assert named == there | added
    competition = yaml.safe_load(text)
    assert competition["title"] == "Test cup"
    assert competition["phases"][0]["tasks"] == [0, 1]
    assert isinstance(competition["phases"][0]["start"], datetime.date)


LABELS = """
name: blocks
version: 1
title: Blocks of masks
answer: {kind: masks, labels: {block: 1}}
measures:
  - {id: dice, of: dsc, label: block, better: high, worst: 0, title: Dice}
  - {id: far, of: hausdorff_mm, label: block, better: low, worst: 99}
ranking: {by: score, score: dice}
"""


def test_a_definition_runs_in_the_layout_of_codabench(world, tmp_path, references):
    folder = tmp_path / "cup"
    definition = parse_definition(LABELS, "blocks.yaml")
    settings = ChallengeSettings(
        reference=world / "reference", definition=definition, n_resamples=0
    )
    begin_challenge(folder, settings)
    answers = write_team(folder / "submissions" / "own", 1, N)
    run_challenge(folder)
    rank_challenge(folder, tmp_path / "board")
    publish([tmp_path / "board"], tmp_path / "site")
    columns, scores = run_in_codabench(tmp_path / "site", 0, tmp_path / "app", references, answers)
    # a square of 3, 4, 5 or 6 voxels, moved by one voxel of 0.8 mm
    assert scores["far"] == pytest.approx(0.8)
    assert scores["dice"] == scores["score"] == pytest.approx(np.mean([2 / 3, 3 / 4, 4 / 5, 5 / 6]))
    assert list(columns) == ["score", "dice", "far"]
    assert (columns["dice"]["title"], columns["far"]["sorting"]) == ("Dice", "asc")
