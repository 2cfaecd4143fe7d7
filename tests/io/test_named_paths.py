"""`NAME=PATH`: both may hold an equals sign; what exists decides, and two readings are named."""

import pytest
from tests.cli.warm_program import mamamia
from tests.features.challenge.challenge_world import write_references, write_team

from napari_mamamia.core.errors import CaseError
from napari_mamamia.features.challenge.services.rank.inputs import algorithm_table
from napari_mamamia.io.files.named_paths import read_named_path
from napari_mamamia.services.classifier.responses import prediction_table
from napari_mamamia.services.score.models import prediction_folder


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("masks", "lr=0.1", "a=b", "deep/fold=1", "c", "b=c", "=odd", "odd ="):
        (tmp_path / name).mkdir(parents=True)
    return tmp_path


@pytest.mark.parametrize(
    ("text", "name", "path"),
    [
        ("masks", "", "masks"),
        ("ours=masks", "ours", "masks"),
        (" ours = masks ", "ours", "masks"),
        ("lr=0.1", "", "lr=0.1"),
        ("ours=lr=0.1", "ours", "lr=0.1"),
        ("lr=0.2=masks", "lr=0.2", "masks"),
        ("x=y=lr=0.1", "x=y", "lr=0.1"),
        ("a=b=lr=0.1", "a=b", "lr=0.1"),
        ("ours=deep/fold=1", "ours", "deep/fold=1"),
        ("deep/fold=1", "", "deep/fold=1"),
        ("./a=b", "", "a=b"),
        ("=odd", "", "=odd"),
        ("ours==odd", "ours", "=odd"),
        ("ours=missing", "ours", "missing"),
        ("ours=missing=1", "ours", "missing=1"),
        ("no/such/run=3", "", "no/such/run=3"),
        ("x=./b=c", "x", "b=c"),
        ("x=b=./c", "x=b", "c"),
    ],
)
def test_what_exists_decides_where_the_name_ends(here, text, name, path):
    assert read_named_path(text) == (name, type(here)(path))


@pytest.mark.parametrize("text", ["x=b=c", "a=b=c"])
def test_two_readings_are_both_named(here, text):
    with pytest.raises(CaseError, match=r"may be b=c as '\w' or c as '\w=b': write NAME"):
        read_named_path(text)


def test_a_path_and_a_name_with_a_path_are_two_readings(here):
    (here / "b").mkdir()
    with pytest.raises(CaseError, match=r"b as 'a' or a=b itself: .* or \./a=b for the whole path"):
        read_named_path("a=b")
    assert read_named_path("./a=b")[0] == ""
    assert read_named_path("a=./b")[0] == "a"


@pytest.mark.parametrize("text", ["=", "name=", "=missing", " =x"])
def test_a_sign_without_a_name_or_a_path_is_refused(here, text):
    with pytest.raises(CaseError, match="give both a name and a path"):
        read_named_path(text)


def test_the_home_folder_is_found_behind_a_name(here, monkeypatch):
    monkeypatch.setenv("HOME", str(here))
    assert read_named_path("ours=~/masks") == ("ours", here / "masks")


def test_every_option_of_a_name_and_a_path_reads_it_so(here):
    (here / "lr=0.1" / "case_scores.csv").touch()
    for read in (prediction_table, algorithm_table, prediction_folder):
        one = read("lr=0.2=lr=0.1/case_scores.csv")
        path = getattr(one, "path", None) or one.folder
        assert (one.name, path.parent.name) == ("lr=0.2", "lr=0.1")
    assert algorithm_table("lr=0.1/case_scores.csv").name == "lr=0.1"


def test_the_commands_take_folders_and_names_with_an_equals_sign(tmp_path):
    reference = write_references(tmp_path, 2)
    runs = [write_team(tmp_path / f"lr=0.{number}", number, 2) for number in (1, 2)]
    named = [f"lr={number}={run}" for number, run in enumerate(runs)]
    words = [word for text in (named[0], str(runs[1])) for word in ("--prediction", text)]
    scored = mamamia(
        "score", "--reference", reference, *words, "--out", tmp_path / "out", "--bootstrap", 0,
        has_figures=False,
    )  # fmt: skip
    assert scored.returncode == 0, scored.stderr
    assert {path.name for path in (tmp_path / "out").iterdir()} >= {"lr=0", "lr=0.2"}
    tables = [f"{name}={tmp_path}/out/{name}/case_scores.csv" for name in ("lr=0", "lr=0.2")]
    ranked = mamamia("rank", *tables, "--out", tmp_path / "rank", has_figures=False)
    assert ranked.returncode == 0, ranked.stderr
    assert all(name in ranked.stdout for name in ("lr=0 ", "lr=0.2"))
