"""A public site: its content, what it must not contain, and the scoring program for Codabench."""

import gzip
import io
import json
import subprocess
import sys
import tarfile
import zipfile
import zlib
from base64 import b64encode

import jsonschema
import numpy as np
import pytest
from tests.cli.warm_program import mamamia
from tests.features.challenge.challenge_world import begun, ids, write_team

from napari_mamamia.core.choices import Task
from napari_mamamia.core.errors import CaseError, FormatError
from napari_mamamia.features.challenge.services.challenge.board_pages import rank_challenge
from napari_mamamia.features.challenge.services.challenge.publish import (
    PublishSettings,
    find_leaks,
    publish,
    split_ids,
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


def test_the_scoring_program_runs_in_the_layout_of_codabench(world, tmp_path):
    publish([world / "board"], tmp_path / "site")
    program, app = tmp_path / "app" / "program", tmp_path / "app"
    with zipfile.ZipFile(tmp_path / "site" / "codabench" / "scoring_program.zip") as bundle:
        bundle.extractall(program)
    assert (program / "metadata").read_text() == "command: python3 score.py\n"
    (app / "input").mkdir()
    (world / "reference").rename(app / "input" / "ref")
    (app / "input" / "ref" / "clinical.csv").write_bytes((world / "clinical.csv").read_bytes())
    try:
        write_team(app / "input" / "res", 2, N)
        done = subprocess.run(
            [sys.executable, "score.py", app], cwd=program, capture_output=True, text=True,
            check=False, timeout=200,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    finally:
        (app / "input" / "ref" / "clinical.csv").unlink()
        (app / "input" / "ref").rename(world / "reference")
    scores = json.loads((app / "output" / "scores.json").read_text())
    board = json.loads((world / "board" / "leaderboard.json").read_text())["boards"][0]
    (row,) = (row for row in board["rows"] if row["team"] == "gämma")  # the same masks
    assert scores["ranking_score"] == pytest.approx(row["score"])
    assert scores["performance"] == pytest.approx(row["performance"])
    assert set(scores) == {
        "mean_dsc", "mean_norm_hd", "performance", "fairness", "ranking_score",
    }  # fmt: skip
