"""Lock files: they fit pyproject.toml, each pin has its hash, and they name no place."""

import importlib.util
import re
from pathlib import Path

import pytest
from packaging.requirements import Requirement

TOOL = Path(__file__).parents[1] / "tools" / "locks.py"


@pytest.fixture(scope="module")
def locks():
    spec = importlib.util.spec_from_file_location("locks", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def copied(locks, tmp_path, monkeypatch):
    """A copy of the lock files that a test may spoil."""
    for path in locks.LOCKS.glob("*.txt"):
        (tmp_path / path.name).write_text(path.read_text("utf-8"), "utf-8")
    monkeypatch.setattr(locks, "LOCKS", tmp_path)
    return tmp_path


def test_the_lock_files_fit_pyproject_and_each_other(locks):
    assert [*locks.problems()] == []
    assert {"base", "all", "test", "pyside6"} <= {path.stem for path in locks.LOCKS.glob("*.txt")}


SPOILED = {
    "a pin is gone": (r"(?m)^jinja2==.*\n(    --hash.*\n)+", "", "base.txt lacks jinja2"),
    "a pin has no hash": (r"(?m)^(jinja2==\S+) \\\n(    --hash.*\n)+", r"\1\n", "has no hash"),
    "a hash is cut": (r"(?m)^(jinja2==.*\\\n    --hash=sha256:\w{8})\w+", r"\1", "unknown line"),
    "too old a version": (r"(?m)^jinja2==\S+", "jinja2==3.0.0", "has jinja2 3.0.0, pypr"),
    "another version": (r"(?m)^jinja2==\S+", "jinja2==3.99", "jinja2 3.99, another lock"),
    "an address": (r"\A", "--index-url https://example.org/simple\n", "unknown line"),
    "an address in a comment": (r"\A", "# from https://example.org/simple\n", "names a place"),
    "a path": (r"\A", "# -c /tmp/x/whole.txt\n", "names a place"),
    "a local file": (r"(?m)^jinja2==\S+", "jinja2 @ file:///x/jinja2.whl", "unknown line"),
}  # fmt: skip


@pytest.mark.parametrize("how", SPOILED)
def test_a_spoiled_lock_file_is_told(locks, copied, how):
    pattern, text, said = SPOILED[how]
    path = copied / "base.txt"
    path.write_text(re.sub(pattern, text, path.read_text("utf-8"), count=1), "utf-8")
    found = [*locks.problems()]
    assert any(said in problem for problem in found), found


def test_an_extra_without_a_lock_and_a_lock_without_an_extra_are_told(locks, copied):
    (copied / "dicom.txt").rename(copied / "dikom.txt")
    found = [*locks.problems()]
    assert found == ["locks/dicom.txt is missing", "locks/dikom.txt belongs to no extra"]


def test_constraints_hold_in_the_locks_too(locks, copied):
    path = copied / "pyqt6.txt"
    path.write_text(re.sub(r"(?m)^pyqt6==\S+", "pyqt6==6.12.0", path.read_text("utf-8")), "utf-8")
    assert any("PyQt6<6.12" in problem for problem in locks.problems())


def test_extras_that_name_extras_are_followed(locks):
    known = {"base": ["a"], "x": ["b>=2"], "y": ["napari-mamamia[x]", "c"]}
    assert [*locks.direct(["base", "y"], known)] == [
        Requirement(text) for text in ("a", "b>=2", "c")
    ]
