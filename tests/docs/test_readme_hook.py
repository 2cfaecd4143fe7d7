"""The README as a package index shows it: no link and no picture that leads nowhere."""

import importlib.util
import re
import sys
import types
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]
README = (TOP / "README.md").read_text("utf-8")


@pytest.fixture
def hook(monkeypatch):
    """The module as hatchling loads it; hatchling itself lives where packages are built."""
    plugin = types.ModuleType("hatchling.metadata.plugin.interface")
    plugin.MetadataHookInterface = object
    monkeypatch.setitem(sys.modules, "hatchling.metadata.plugin.interface", plugin)
    spec = importlib.util.spec_from_file_location("hook", TOP / "tools" / "readme_hook.py")
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def links_of(text):
    return re.findall(r"\]\(([^)]+)\)", text)


def test_with_a_public_address_every_link_and_picture_is_whole(hook):
    shown = hook.readme_of_index(README, "https://host.example/owner/name/")
    assert len(links_of(shown)) == len(links_of(README)) > 8
    assert all(link.startswith("https://") for link in links_of(shown))
    assert "![The window" in shown
    assert "(https://host.example/owner/name/raw/HEAD/docs/images/window.png)" in shown
    assert "(https://host.example/owner/name/blob/HEAD/docs/limits.md)" in shown


def test_the_package_has_urls_only_with_a_public_address(hook):
    urls = hook.urls_of_project("https://host.example/owner/name")
    assert urls["Source Code"] == "https://host.example/owner/name"
    assert all(url.startswith(urls["Source Code"]) for url in urls.values())
    assert len(urls) == 4
    assert hook.urls_of_project("") == {}


def test_without_one_no_link_leads_nowhere_and_no_text_is_lost(hook):
    shown = hook.readme_of_index(README, "")
    assert links_of(shown) == ["https://doi.org/10.1038/s41597-025-04707-4"]
    assert "All limits" in shown
    assert "![" not in shown


def test_the_readme_is_short_and_its_files_exist():
    assert len(README.splitlines()) <= 62
    assert [
        link for link in links_of(README) if "://" not in link and not (TOP / link).exists()
    ] == []
