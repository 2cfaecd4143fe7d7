"""Workflows for a public host cannot run here: what can be told of them from the disk holds."""

import json
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

import napari_mamamia

TOP = Path(__file__).parents[1]
WORKFLOWS = sorted((TOP / ".github" / "workflows").glob("*.yml"))
FORMS = sorted((TOP / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))


def steps_of(path):
    jobs = yaml.safe_load(path.read_text("utf-8"))["jobs"]
    return [step for job in jobs.values() for step in job["steps"]]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_are_pinned_to_a_commit_and_every_job_has_only_the_rights_it_names(path):
    whole = yaml.safe_load(path.read_text("utf-8"))
    assert whole["permissions"] == {}
    for name, job in whole["jobs"].items():
        rights = {"contents": "read"} if name != "publish" else {"id-token": "write"}
        assert job["permissions"] == rights
        assert job["timeout-minutes"] <= 360
    for line in path.read_text("utf-8").splitlines():
        if "uses:" in line:
            assert re.search(r"uses: [\w/-]+@[0-9a-f]{40} # v[\d.]+$", line), line
    for step in steps_of(path):
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"] == {"persist-credentials": False}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_what_a_workflow_runs_is_there(path):
    told = (TOP / "Makefile").read_text("utf-8")
    for command in (step["run"] for step in steps_of(path) if "run" in step):
        words = command.split()
        if words[0] == "make":
            for target in (word for word in words[1:] if re.fullmatch(r"[a-z-]+", word)):
                assert re.search(rf"(?m)^{target}:", told), target
        for name in re.findall(r"\b(?:tests|locks|\.ci)/[\w./-]+", command):
            assert (TOP / name).exists(), name
        assert "${{" not in command  # what others write, such as a branch's name, is no program


def test_a_release_is_published_by_its_own_job_without_any_secret():
    text = (TOP / ".github" / "workflows" / "release.yml").read_text("utf-8")
    jobs = yaml.safe_load(text)["jobs"]
    assert "secrets." not in text
    assert jobs["publish"]["environment"] == "pypi"
    assert jobs["publish"]["needs"] == "build"
    assert not any("run" in step for step in jobs["publish"]["steps"])


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_issue_forms_are_forms_and_ask_about_patients_first(path):
    form = yaml.safe_load(path.read_text("utf-8"))
    if path.stem == "config":
        assert form == {"blank_issues_enabled": False}
        return
    assert {"name", "description", "body"} <= set(form)
    for field in form["body"]:
        assert field["type"] in ("checkboxes", "textarea", "dropdown", "input", "markdown")
        assert field["attributes"]["label"]
    if path.stem == "bug":
        (first, *_) = form["body"]
        assert first["attributes"]["options"][0]["required"] is True


def test_citation_records_and_changelog_have_the_version_and_date_of_the_release():
    told = yaml.safe_load((TOP / "CITATION.cff").read_text("utf-8"))
    assert told["cff-version"] == "1.2.0"
    version, date = told["version"], str(told["date-released"])
    assert version == napari_mamamia.__version__
    codemeta = json.loads((TOP / "codemeta.json").read_text("utf-8"))
    assert (codemeta["version"], codemeta["datePublished"]) == (version, date)
    zenodo = json.loads((TOP / ".zenodo.json").read_text("utf-8"))
    assert (zenodo["version"], zenodo["publication_date"]) == (version, date)
    assert f"## [{version}] - {date}" in (TOP / "CHANGELOG.md").read_text("utf-8")
    for keyword in codemeta["keywords"]:
        assert keyword in tomllib.loads((TOP / "pyproject.toml").read_text())["project"]["keywords"]
    assert zenodo["keywords"] == codemeta["keywords"]
    assert told["references"][0]["doi"] in (TOP / "README.md").read_text("utf-8")
    assert told["license"] == "Apache-2.0"


def test_hooks_before_a_commit_fetch_nothing():
    told = yaml.safe_load((TOP / ".pre-commit-config.yaml").read_text("utf-8"))
    assert [repository["repo"] for repository in told["repos"]] == ["local"]
    for hook in told["repos"][0]["hooks"]:
        assert hook["language"] == "system"
        assert hook["entry"].startswith(".venv/bin/")


def test_the_makefile_can_be_read_and_lists_what_a_release_takes():
    said = subprocess.run(
        ["make", "help"], cwd=TOP, capture_output=True, text=True, check=True
    ).stdout
    for target in ("lock", "lock-check", "release", "licences", "sbom"):
        assert f"make {target}\t" in said
