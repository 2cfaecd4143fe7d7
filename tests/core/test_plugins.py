"""Plug-ins found by entry points: what is broken or has a taken name is left out with a warning."""

import shutil
import subprocess
import sys
from dataclasses import replace
from importlib.metadata import EntryPoint

import nibabel as nib
import numpy as np
import pytest

from napari_mamamia.cli.app import ENTRIES, list_commands
from napari_mamamia.core import features, plugins
from napari_mamamia.core.features import Command, Feature, Page
from napari_mamamia.core.plugins import PluginWarning, Registry
from napari_mamamia.io.layouts import known
from napari_mamamia.kinetics.map_kinds import MAPS
from napari_mamamia.metrics.registry import METRIC_REGISTRY
from napari_mamamia.scoring.case.profiles import CLINICAL, PROFILES
from napari_mamamia.scoring.cohort.groups import GROUP_RULES, rules_of
from napari_mamamia.segmentation.run.engines import MODEL_KINDS
from napari_mamamia.services.export.formats import EXPORT_FORMATS
from napari_mamamia.widgets.base.pages import BUILT_IN, list_pages

GROUP = "napari_mamamia.test_plugins"
REGISTRIES = {
    registry.group: registry
    for registry in (METRIC_REGISTRY, MAPS, PROFILES, GROUP_RULES, MODEL_KINDS, EXPORT_FORMATS)
}
REASONS = {"import": "ModuleNotFoundError", "type": "expected a", "name": "the name is taken"}
CACHED = (
    plugins.load_group,
    plugins.list_names,
    features.list_features,
    features.list_library_names,
    known.list_layouts,
    list_commands,
    list_pages,
)
LAYOUT = '[mine]\nimage = [{path = "{patient}/t{phase:n}"}]\n'
TAKEN_LAYOUT = LAYOUT.replace("mine", "bids")
BROKEN_LAYOUT = "[mine]\nimages = 3\n"
SECOND = Feature(
    "second",
    "adds names that are taken",
    commands=(Command("score", "os:getcwd", "x"), Command("hello", "os:getcwd", "x")),
    pages=(Page("Cases", "Read"), Page("Hello", "Read")),
    library={"mine": "os:sep"},
)
PROFILE = replace(CLINICAL, name="mine")
FIRST = Feature("first", "has a library name", library={"mine": "os:getcwd"})


@pytest.fixture
def points(monkeypatch):
    """Return a function that installs entry points of a group: (name, ``module:attribute``)."""
    monkeypatch.setattr(plugins, "_problems", [])

    def clear():
        for cached in CACHED:
            cached.cache_clear()

    def install(group, *values):
        found = [EntryPoint(name, value, group) for name, value in values]
        monkeypatch.setattr(
            "importlib.metadata.entry_points", lambda group: [p for p in found if p.group == group]
        )
        clear()

    yield install
    monkeypatch.undo()
    clear()


def test_plug_ins_come_after_the_built_in_members(points):
    points(GROUP, ("seven", "os:sep"))
    registry = Registry(GROUP, str, {"one": "1"})
    assert dict(registry) == {"one": "1", "seven": "/"}
    assert plugins.list_problems() == ()


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("lost", "no_such_module:x", "ModuleNotFoundError"),
        ("odd", "os:getcwd", "expected a str"),
        ("one", "os:sep", "the name is taken"),
        ("two", "os:sep", "the name is taken"),
        ("good", "os:sep", "the name is taken"),
    ],
)
def test_a_broken_plug_in_is_left_out_with_one_warning(points, name, value, reason):
    points(GROUP, ("good", "os:sep"), (name, value))
    registry = Registry(GROUP, str, {"one": "1"}, reserved=["two"])
    with pytest.warns(PluginWarning, match=reason) as warned:
        assert dict(registry) == {"one": "1", "good": "/"}
    list(registry)
    assert len(warned) == 1
    (problem,) = plugins.list_problems()
    assert (problem.group, problem.name) == (GROUP, name)


@pytest.mark.parametrize("group", REGISTRIES)
@pytest.mark.parametrize("fault", REASONS)
def test_every_registry_goes_on_without_a_broken_plug_in(points, group, fault):
    registry = REGISTRIES[group]
    points(group)
    built_in = dict(registry)
    name = next(iter(built_in)) if fault == "name" else "mine"
    points(group, (str(name), "no_such_module:x" if fault == "import" else "os:sep"))
    with pytest.warns(PluginWarning, match=REASONS[fault]) as warned:
        assert dict(registry) == built_in
    assert len(warned) == 1
    assert [problem.group for problem in plugins.list_problems()] == [group]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("no_such_module:x", "ModuleNotFoundError"),
        ("os:getcwd", "expected a str"),
        (f"{__name__}:BROKEN_LAYOUT", "mine"),
        (f"{__name__}:TAKEN_LAYOUT", "bids is taken"),
    ],
)
def test_layouts_go_on_without_a_broken_plug_in(points, value, reason):
    points(known.GROUP)
    built_in = known.list_layouts()
    points(known.GROUP, ("good", f"{__name__}:LAYOUT"), ("mine", value))
    with pytest.warns(PluginWarning, match=reason) as warned:
        layouts = known.list_layouts()
    assert len(warned) == 1
    assert layouts[:-1] == built_in
    assert layouts[-1].name == "mine"


def test_a_feature_keeps_its_other_records_when_a_name_is_taken(points):
    points(features.GROUP, ("first", f"{__name__}:FIRST"), ("second", f"{__name__}:SECOND"))
    with pytest.warns(PluginWarning, match="the page Cases of second"):
        pages = [page.name for page in list_pages()]
    with pytest.warns(PluginWarning, match="the command score of second"):
        commands = [command.name for group in list_commands().values() for command in group]
    with pytest.warns(PluginWarning, match="the library name mine of second"):
        library = features.list_library_names()
    assert pages == [*(page.name for page in BUILT_IN), "Hello"]
    assert commands == [*(c.name for group in ENTRIES.values() for c in group), "hello"]
    assert library == {"mine": "os:getcwd"}


def test_a_profile_without_group_rules_uses_those_of_the_default(points):
    points(PROFILES.group, ("mine", f"{__name__}:PROFILE"))
    assert rules_of("mine").age_groups == rules_of("clinical").age_groups
    with pytest.raises(ValueError, match="clinical"):
        rules_of("yours")


def test_the_four_features_of_this_software_are_installed_and_whole():
    assert {"challenge", "classifiers", "perfusion", "review"} <= {
        feature.name for feature in features.list_features()
    }
    for feature in features.list_features():
        parts = [command.attribute for command in feature.commands]
        parts += [part for page in feature.pages for part in (page.widget, page.flow)]
        parts += [part for opener in feature.openers for part in (opener.recognises, opener.opens)]
        parts += [*feature.services.values(), *feature.hooks.values(), *feature.library.values()]
        assert all(features.load_attribute(part) is not None for part in parts)


def test_a_part_that_cannot_be_imported_is_left_out(points):
    points(features.GROUP)
    with pytest.warns(PluginWarning, match="no_such_module"):
        assert features.load_part(Feature("mine", "nothing"), "no_such_module:Page") is None
    assert plugins.list_problems()[-1].package == "mine"


@pytest.mark.door
def test_a_started_program_prints_one_line_for_each_broken_plug_in(tmp_path, monkeypatch):
    info = tmp_path / "broken-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1\n")
    (info / "entry_points.txt").write_text(
        f"[{features.GROUP}]\nlost = no_such_module:FEATURE\n"
        f"[{METRIC_REGISTRY.group}]\ndsc = os:sep\n"
        f"[{known.GROUP}]\nodd = os:getcwd\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    program = [sys.executable, "-c", "from napari_mamamia.cli import main; main()"]
    answer = subprocess.run([*program, "layouts"], capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
    assert "bids" in answer.stdout
    lines = answer.stderr.splitlines()
    assert [line.split(" of broken ")[0] for line in lines] == ["warning: lost", "warning: odd"]
    masks = tmp_path / "masks"  # of two cases: each of two workers loads the metrics too
    masks.mkdir()
    for name in ("A", "B"):
        image = nib.Nifti1Image(np.ones((4, 4, 4), np.uint8), np.eye(4))
        nib.save(image, masks / f"{name}.nii.gz")
    references = shutil.copytree(masks, tmp_path / "references")
    command = ["score", "--reference", references, "--prediction", masks, "--workers", "2"]
    answer = subprocess.run(
        [*program, *command, "--out", tmp_path / "scores"], capture_output=True, text=True
    )
    assert answer.returncode == 0, answer.stderr
    lines = answer.stderr.splitlines()
    assert [line.split(" of broken ")[0] for line in lines] == ["warning: lost", "warning: dsc"]
    code = "import napari_mamamia.services.check_computer as c; [*map(print, c.plugins())]"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert answer.stdout.count("of broken") == 3, answer.stderr
