import importlib.util
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from npe2 import PluginManager, PluginManifest

import napari_mamamia
from napari_mamamia.core.features import Page
from napari_mamamia.widgets.base.pages import list_pages

MANIFEST = Path(napari_mamamia.__file__).with_name("napari.yaml")


@pytest.fixture(scope="module")
def manifest():
    return PluginManifest.from_file(MANIFEST)


def test_the_manifest_is_valid(manifest):
    manifest.validate_imports()
    assert manifest.name == "napari-mamamia"


def test_the_manifest_at_the_top_is_a_link_to_the_one_in_the_package():
    top = Path(__file__).parents[2] / "napari.yaml"
    if not top.exists():
        pytest.skip("the tests run outside of a checkout")
    assert top.resolve() == MANIFEST.resolve()


def test_every_command_resolves_to_a_function_with_a_docstring(manifest):
    for command in manifest.contributions.commands:
        module, name = command.python_name.split(":")
        assert getattr(import_module(module), name).__doc__, command.id


def test_every_contribution_names_a_command(manifest):
    known = {command.id for command in manifest.contributions.commands}
    menus = [item.command for items in manifest.contributions.menus.values() for item in items]
    named = [
        entry.command
        for kind in ("readers", "writers", "sample_data", "widgets")
        for entry in getattr(manifest.contributions, kind)
    ]
    assert {*named, *menus} <= known


def test_the_menus_are_ones_that_napari_really_fills(manifest):
    from napari._app_model.constants._menus import is_menu_contributable

    assert manifest.contributions.menus
    assert all(is_menu_contributable(menu) for menu in manifest.contributions.menus)


def test_the_pages_are_those_of_the_records(manifest):
    assert manifest.display_name == "MAMA-MIA"
    tool = Path(__file__).parents[2] / "tools" / "manifest.py"
    done = subprocess.run([sys.executable, tool, "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    pages = [widget.display_name for widget in manifest.contributions.widgets]
    assert {"Cases", "Kinetics", "Leaderboard", "Review"} <= set(pages)
    assert {"View", "Import"}.isdisjoint(pages)  # they have no entry in the menu


def test_a_new_page_gets_a_command_and_a_menu_entry(monkeypatch):
    spec = importlib.util.spec_from_file_location(
        "manifest_tool", Path(__file__).parents[2] / "tools" / "manifest.py"
    )
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    new = Page("My page", "Read", "napari_mamamia.widgets.mine:MyPage")
    monkeypatch.setattr(tool, "list_pages", lambda: (*list_pages(), new))
    text = tool.write_pages(MANIFEST.read_text("utf-8"))
    assert "      python_name: napari_mamamia.menu:show_my_page\n" in text
    assert text.count("napari-mamamia.my_page\n") == 2
    assert text.count("napari-mamamia.cases\n") == 2


def test_napari_finds_the_plugin():
    manager = PluginManager()
    manager.discover()
    assert "napari-mamamia" in manager


def test_naming_the_commands_imports_neither_qt_nor_torch():
    code = (
        "import sys, napari_mamamia.commands; "
        "bad = [m for m in ('qtpy', 'PyQt6', 'PySide6', 'torch', 'napari.layers') "
        "if m in sys.modules]; sys.exit(str(bad) if bad else 0)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
