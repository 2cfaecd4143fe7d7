"""Plug-ins found by entry points: what is broken or has a taken name is left out with a reason."""

from importlib.metadata import EntryPoint

import pytest

from napari_mamamia.core import features, plugins
from napari_mamamia.core.features import Feature
from napari_mamamia.core.plugins import Registry

GROUP = "napari_mamamia.test_plugins"


@pytest.fixture
def points(monkeypatch):
    """Return a function that installs entry points, name to ``module:attribute``."""

    def install(**values):
        found = [EntryPoint(name, value, GROUP) for name, value in values.items()]
        monkeypatch.setattr("importlib.metadata.entry_points", lambda group: found)
        for cached in (plugins.load_group, plugins.list_names):
            cached.cache_clear()

    yield install
    monkeypatch.undo()
    for cached in (plugins.load_group, plugins.list_names):
        cached.cache_clear()


def test_plug_ins_come_after_the_built_in_members(points):
    points(seven="os:sep")
    registry = Registry(GROUP, str, {"one": "1"})
    assert dict(registry) == {"one": "1", "seven": "/"}
    assert registry.problems == ()


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("lost", "no_such_module:x", "ModuleNotFoundError"),
        ("odd", "os:getcwd", "expected a str"),
        ("one", "os:sep", "the name is taken"),
    ],
)
def test_a_broken_plug_in_is_left_out_by_name(points, name, value, reason):
    points(**{name: value, "good": "os:sep"})
    registry = Registry(GROUP, str, {"one": "1"})
    assert dict(registry) == {"one": "1", "good": "/"}
    (problem,) = registry.problems
    assert problem.name == name
    assert reason in problem.text


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


def test_a_part_that_cannot_be_imported_is_told(monkeypatch):
    monkeypatch.setattr(features, "_broken_parts", {})
    assert features.load_part(Feature("mine", "nothing"), "no_such_module:Page") is None
    assert "no_such_module" in features.list_problems()[-1].text
