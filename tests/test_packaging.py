"""The conda recipe and the Containerfile: they follow pyproject.toml, and name files that exist."""

import re
import tomllib
from pathlib import Path

import yaml

import napari_mamamia

TOP = Path(__file__).parents[1]
PROJECT = tomllib.loads((TOP / "pyproject.toml").read_text("utf-8"))
CONDA_NAMES = {
    "isal": "python-isal",
    "matplotlib": "matplotlib-base",
    "zlib-ng": "python-zlib-ng",
}
"""Packages that have another name on conda-forge."""


def recipe():
    return yaml.safe_load((TOP / "packaging/conda/recipe.yaml").read_text("utf-8"))


def conda_requirement(requirement):
    name, limit = re.fullmatch(r"([\w.-]+)(>=[\w.]+)", requirement).groups()
    return f"{CONDA_NAMES.get(name, name)} {limit}"


def test_the_conda_recipe_has_the_requirements_of_the_project():
    project = PROJECT["project"]
    requirements = recipe()["requirements"]
    expected = [f"python {project['requires-python']}"]
    expected += map(conda_requirement, project["dependencies"])
    assert requirements["run"] == expected
    assert set(map(conda_requirement, PROJECT["build-system"]["requires"])) < set(
        requirements["host"]
    )
    optional = {
        name for extra in ("gui", "dicom") for name in project["optional-dependencies"][extra]
    }
    constraints = requirements["run_constraints"]
    assert {name.replace(" ", "") for name in constraints} <= optional


def test_the_conda_recipe_has_version_and_command_of_the_project():
    told = recipe()
    assert told["context"]["version"] == napari_mamamia.__version__
    assert told["about"]["summary"] == PROJECT["project"]["description"]
    (command,) = told["build"]["python"]["entry_points"]
    assert dict([command.split(" = ")]) == PROJECT["project"]["scripts"]


def test_the_containerfile_copies_files_that_exist():
    text = (TOP / "packaging/Containerfile").read_text("utf-8")
    for line in re.findall(r"(?m)^COPY (?!--from)(.+)$", text):
        *sources, _ = line.split()
        assert all((TOP / source).exists() for source in sources)
    assert re.search(r"(?m)^USER \d+$", text)
    assert "--require-hashes" in text
