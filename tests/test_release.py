"""The release: built files that a package index would reject are rejected here too."""

import importlib.util
import zipfile
from pathlib import Path

import pytest

TOP = Path(__file__).parents[1]


@pytest.fixture
def release():
    spec = importlib.util.spec_from_file_location("release", TOP / "tools/release.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def write_wheel(path, name="small.py", description="Text.", markup="markdown"):
    contents = {
        name: "value = 1\n",
        "small-1.0.dist-info/METADATA": (
            "Metadata-Version: 2.1\nName: small\nVersion: 1.0\nSummary: Small.\n"
            f"Description-Content-Type: text/{markup}\n\n{description}\n"
        ),
        "small-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\n",
        "small-1.0.dist-info/top_level.txt": "small\n",
    }
    contents["small-1.0.dist-info/RECORD"] = "".join(f"{name},,\n" for name in contents)
    with zipfile.ZipFile(path, "w") as wheel:
        for inside, text in contents.items():
            wheel.writestr(inside, text)
    return path


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"description": ".. unknown::", "markup": "x-rst"}, "long_description"),
        ({"name": "tests/test_small.py"}, "W005"),
    ],
)
def test_files_that_an_index_or_a_reader_would_object_to_end_the_release(
    release, tmp_path, wrong, reason
):
    pytest.importorskip("twine")
    pytest.importorskip("check_wheel_contents")
    release.require_accepted([write_wheel(tmp_path / "small-1.0-py3-none-any.whl")])
    bad = write_wheel(tmp_path / "small-1.0-py3-none-any.whl", **wrong)
    with pytest.raises(SystemExit, match=reason):
        release.require_accepted([bad])


def test_a_missing_program_is_named_with_the_command_that_installs_it(
    release, tmp_path, monkeypatch
):
    monkeypatch.setattr(release, "find_spec", lambda _: None)
    with pytest.raises(SystemExit, match=r"expected twine .*make"):
        release.require_accepted([tmp_path / "small-1.0-py3-none-any.whl"])
