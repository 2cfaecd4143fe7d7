import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from npe2 import PluginManager, PluginManifest

import napari_mamamia
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


def test_the_pages_stand_under_one_menu_of_our_name(manifest):
    assert manifest.display_name == "MAMA-MIA"
    pages = [widget.display_name for widget in manifest.contributions.widgets]
    named = [
        "Cases",
        "Predict",
        "Refine",
        "Score",
        "Findings",
        "Kinetics",
        "Batch scoring",
        "Leaderboard",
        "Report",
        "Export",
        "Review",
    ]
    assert pages == named


def test_every_page_with_a_menu_entry_is_in_the_manifest(manifest):
    names = {command.id: command.python_name for command in manifest.contributions.commands}
    entries = {
        widget.display_name: names[widget.command] for widget in manifest.contributions.widgets
    }
    assert entries == {
        page.name: f"napari_mamamia.menu:show_{page.short}" for page in list_pages() if page.menu
    }


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
