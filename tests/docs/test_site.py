"""The documentation site: what a reader who opens it from the disk meets."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import napari_mamamia
from napari_mamamia.io.layouts.known import list_layouts
from napari_mamamia.kinetics.map_kinds import MAPS
from napari_mamamia.metrics.registry import METRICS

TOP = Path(__file__).parents[2]
LINKS = {"a": "href", "link": "href", "img": "src", "script": "src", "iframe": "src"}


def build_site(top, site, **variables):
    """Build as `make docs` does, in a process of its own; nothing listens where the network is."""
    nowhere = "http://127.0.0.1:9"
    closed = {"NO_MKDOCS_2_WARNING": "1", "http_proxy": nowhere, "https_proxy": nowhere}
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", top / "mkdocs.yml", "-d", site],
        capture_output=True,
        text=True,
        timeout=240,
        cwd="/",
        env=os.environ | closed | variables,
        check=False,
    )


@pytest.fixture(scope="module")
def whole_site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    done = build_site(TOP, folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module", params=["quick", pytest.param("whole", marks=pytest.mark.night)])
def site(request):
    """The site; by day without the page of the library, which takes 20 s, and with the faults.

    `make docs` builds the whole of it for each commit, strictly.
    """
    if request.param == "whole":
        return request.getfixturevalue("whole_site")
    folder, _ = request.getfixturevalue("faulty_site")
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
    has_stub = "left out here" in (site / "api.html").read_text("utf-8")
    assert len(pages) > 30
    dead = []
    for path, page in pages.items():
        for _, link in page.links:
            where = urlsplit(link)
            if where.scheme:
                continue
            target = (path.parent / unquote(where.path)).resolve() if where.path else path
            known = pages[target].anchors if target in pages else {""}
            if (has_stub and "api.html" in (target.name, path.name)) or path.stem == "forgotten":
                continue
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


BROWSER = next((b for b in ("chromium", "chromium-browser") if shutil.which(b)), None)


def browse(address, folder, width=1400):
    """Return the document that Chromium makes of a page from the disk, after all scripts ran."""
    if BROWSER is None:
        pytest.fail("Chromium is missing: install Debian's package chromium to test the site")
    quiet = "background-networking component-update sync default-apps extensions gpu dev-shm-usage"
    command = [
        *(BROWSER, "--headless", "--no-sandbox", "--no-first-run", "--dump-dom"),
        *(f"--disable-{name}" for name in quiet.split()),
        *(f"--user-data-dir={folder}", "--virtual-time-budget=5000"),
        *(f"--window-size={width},900", address),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_the_search_finds_a_number_of_the_methods_without_a_server(site, tmp_path):
    seen = browse(f"{(site / 'index.html').as_uri()}?q=hausdorff95_mm", tmp_path)
    found = re.findall(r'<a href="([^"]*)" class="md-search-result__link"', seen)
    assert any("methods/case_metrics.html" in link for link in found), found


WIDTHS = """<script>addEventListener("load", () => {
document.title = `${document.documentElement.scrollWidth} of ${innerWidth}` })</script></body>"""


@pytest.mark.parametrize("name", ["start/radiologist", "methods/case_metrics"])
def test_no_page_is_wider_than_a_phone(name, site, tmp_path):
    page = site / f"{name}.html"
    trial = page.with_name("trial.html")
    trial.write_text(page.read_text("utf-8").replace("</body>", WIDTHS), "utf-8")
    seen = browse(trial.as_uri(), tmp_path, width=500)
    trial.unlink()
    needed, given = map(int, re.search(r"<title>(\d+) of (\d+)</title>", seen).groups())
    assert needed <= given <= 500


def test_each_metric_stands_on_the_page_and_in_the_list_of_numbers(site):
    pages = [
        (site / "methods" / f"{name}.html").read_text("utf-8") for name in ("case_metrics", "index")
    ]
    names = [f"<code>{one.name}</code>" for one in METRICS]
    assert [name for name in names for page in pages if f"<td>{name}</td>" not in page] == []


def test_each_kinetic_map_stands_on_its_page_with_its_name_in_the_library(site):
    page = (site / "methods" / "kinetics.html").read_text("utf-8")
    rows = [f"<td>{kind}</td>\n<td><code>{kind.name.lower()}</code></td>" for kind in MAPS]
    assert [row for row in rows if row not in page] == []


@pytest.mark.night  # by day: test_public, each name has a docstring; `make docs` for each commit
def test_each_public_name_of_the_package_is_on_the_page_of_the_library(whole_site):
    page = (whole_site / "api.html").read_text("utf-8")
    named = [f"napari_mamamia.{name}" for name in napari_mamamia.__all__ if name != "__version__"]
    named += [f"napari_mamamia.metrics.{name}" for name in napari_mamamia.metrics.__all__]
    assert len(named) > 20
    assert [name for name in named if f'id="{name}"' not in page] == []


NOTEBOOK = {
    "cells": [
        {"cell_type": "markdown", "source": ["# First case\n", "\n", "Some words."]},
        {
            "cell_type": "code",
            "source": ["print(1 + 1)"],
            "outputs": [{"output_type": "stream", "name": "stdout", "text": ["2\n"]}],
        },
    ]
}


def test_a_notebook_becomes_a_page_of_the_menu_with_what_its_cells_showed(faulty_site):
    folder, _ = faulty_site
    page = (folder / "notebooks" / "first.html").read_text("utf-8")
    assert re.search(r"<title>First case", page)
    assert "Some words." in page
    assert re.search(r"<code>2\s*</code>", page)
    assert (folder / "notebooks" / "first.ipynb").is_file()
    assert "notebooks/first.html" in (folder / "index.html").read_text("utf-8")


def test_a_notebook_without_outputs_is_run_and_its_page_shows_them(site):
    page = (site / "notebooks" / "1_first_case.html").read_text("utf-8")
    assert re.search(r"Dice 0\.\d\d, HD95 \d+\.\d mm", page)
    assert 'src="data:image/png;base64,' in page
    assert "<progress" not in page


def load_site_pages():
    spec = importlib.util.spec_from_file_location("site_pages", TOP / "tools" / "site_pages.py")
    pages = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pages)
    return pages


def test_table_of_layouts_is_that_of_the_program():
    page = (TOP / "docs/howto/open_data.md").read_text("utf-8")
    rows = re.findall(
        r"^\| `([a-z0-9-]+)` \| [^|]+ \| [^|]+ \|$", load_site_pages().with_tables(page), re.M
    )
    assert set(rows) >= {layout.name for layout in list_layouts()}
    assert all(layout.about for layout in list_layouts())


def test_a_cell_that_fails_stops_the_build(tmp_path):
    pages = load_site_pages()
    cell = {"cell_type": "code", "source": ["1 / 0"], "outputs": []}
    (tmp_path / "a.ipynb").write_text(json.dumps({"cells": [cell]}))
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        pages.run_notebook(tmp_path / "a.ipynb")


def test_each_notebook_of_the_repository_is_a_page_of_the_menu(site):
    home = (site / "index.html").read_text("utf-8")
    notebooks = sorted((TOP / "docs" / "notebooks").glob("*.ipynb"))
    assert len(notebooks) >= 7
    assert [one.stem for one in notebooks if f"notebooks/{one.stem}.html" not in home] == []


@pytest.fixture(scope="module")
def faulty_site(tmp_path_factory):
    """The site of a copy with a notebook more, and with three faults; and what the build said."""
    folder = tmp_path_factory.mktemp("faulty")
    for name in ("mkdocs.yml", "DESIGN.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"):
        shutil.copy(TOP / name, folder)
    for name in ("benchmarks", "docs", "tools"):
        shutil.copytree(TOP / name, folder / name)
    (folder / "src").symlink_to(TOP / "src")
    docs = folder / "docs"
    (docs / "api.md").write_text("# Python, left out here: it takes longest\n")
    (docs / "notebooks").mkdir(exist_ok=True)
    (docs / "notebooks" / "first.ipynb").write_text(json.dumps(NOTEBOOK))
    (docs / "forgotten.md").write_text(
        "# Forgotten\n\n[no such part](security.md#no-such-part)\n\n![](images/lost.png)\n"
    )
    # By day one notebook is run: all of them take a minute.
    return folder / "site", build_site(folder, folder / "site", SITE_NOTEBOOKS="1_first_case")


def test_a_page_outside_the_menu_a_dead_anchor_and_a_lost_picture_stop_the_build(faulty_site):
    _, done = faulty_site
    assert done.returncode == 1
    said = done.stdout + done.stderr
    assert re.search(r"not included in the \"nav\" configuration:\s*- forgotten.md", said)
    assert "#no-such-part" in said
    assert "images/lost.png" in said


def test_no_sign_of_the_markup_is_left_in_a_page(site):
    left = []
    for path in site.rglob("*.html"):
        body = "".join(re.findall(r"(?s)<article.*?</article>", path.read_text("utf-8")))
        texts = re.sub(r"(?s)<pre.*?</pre>|<code.*?</code>|<[^>]+>", "", body)
        signs = re.findall(r"\*\*.{0,30}|\]\(.{0,30}|\n- .{0,30}|\n\|[ -].{0,30}|`", texts)
        left += [f"{path.name}: {sign}" for sign in signs]
        left += [f"{path.name}: {code}" for code in re.findall(r"<code>[^<]*\\\|[^<]*", body)]
    assert left == []
