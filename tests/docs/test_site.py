"""The documentation site: what a reader who opens it from the disk meets."""

import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from napari_mamamia.metrics.registry import METRICS

TOP = Path(__file__).parents[2]
LINKS = {"a": "href", "link": "href", "img": "src", "script": "src", "iframe": "src"}


def build_site(top, site):
    """Build as `make docs` does, in a process of its own; nothing listens where the network is."""
    nowhere = "http://127.0.0.1:9"
    closed = {"NO_MKDOCS_2_WARNING": "1", "http_proxy": nowhere, "https_proxy": nowhere}
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", top / "mkdocs.yml", "-d", site],
        capture_output=True,
        text=True,
        timeout=240,
        cwd="/",
        env=os.environ | closed,
        check=False,
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    done = build_site(TOP, folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


class Page(HTMLParser):
    """Keeps the anchors and the links of a page."""

    def __init__(self, path):
        super().__init__()
        self.anchors, self.links = {"", "__top"}, []
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.anchors |= {found[name] for name in ("id", "name") if found.get(name)}
        if found.get(LINKS.get(tag, "")):
            self.links.append((tag, found[LINKS[tag]]))


def pages_of(site):
    return {path: Page(path) for path in site.rglob("*.html") if path.name != "404.html"}


def test_every_link_picture_and_anchor_of_the_built_site_is_there(site):
    pages = pages_of(site)
    assert len(pages) > 30
    dead = []
    for path, page in pages.items():
        for _, link in page.links:
            where = urlsplit(link)
            if where.scheme:
                continue
            target = (path.parent / unquote(where.path)).resolve() if where.path else path
            known = pages[target].anchors if target in pages else {""}
            if not target.is_file() or unquote(where.fragment) not in known:
                dead.append(f"{path.relative_to(site)}: {link}")
    assert dead == []


def test_the_site_asks_nothing_of_the_network(site):
    loaded = [
        (path.name, link)
        for path, page in pages_of(site).items()
        for tag, link in page.links
        if tag != "a" and re.match(r"(https?:)?//", link)
    ]
    assert loaded == []
    styles = "".join(path.read_text("utf-8") for path in site.rglob("*.css"))
    assert re.findall(r"url\(\"?(?:https?:)?//[^)]*|@import", styles) == []


def test_the_search_finds_a_number_of_the_methods_without_a_server(site):
    index = (site / "search" / "search_index.js").read_text("utf-8")
    assert "hausdorff95_mm" in index
    assert "iframe-worker.js" in (site / "index.html").read_text("utf-8")


def test_each_metric_stands_on_the_page_and_in_the_list_of_numbers(site):
    page = (TOP / "docs" / "methods" / "case_metrics.md").read_text("utf-8")
    numbers = (site / "methods" / "index.html").read_text("utf-8")
    missing = [one.name for one in METRICS if f"`{one.name}`" not in page]
    missing += [one.name for one in METRICS if f"<code>{one.name}</code>" not in numbers]
    assert missing == []


def test_a_page_outside_the_menu_a_dead_anchor_and_a_lost_picture_stop_the_build(tmp_path):
    for name in ("mkdocs.yml", "DESIGN.md", "CHANGELOG.md", "CONTRIBUTING.md"):
        shutil.copy(TOP / name, tmp_path)
    for name in ("docs", "tools"):
        shutil.copytree(TOP / name, tmp_path / name)
    (tmp_path / "src").symlink_to(TOP / "src")
    (tmp_path / "docs" / "forgotten.md").write_text(
        "# Forgotten\n\n[no such part](security.md#no-such-part)\n\n![](images/lost.png)\n"
    )
    done = build_site(tmp_path, tmp_path / "site")
    assert done.returncode == 1
    for said in ("'forgotten.md'|forgotten.md", "#no-such-part", "images/lost.png", "not included"):
        assert re.search(said, done.stdout + done.stderr), said
