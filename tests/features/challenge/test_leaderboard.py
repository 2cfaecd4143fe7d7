"""The page of a leaderboard: what a reader meets first, and that no name or size breaks it."""

import json
import re
import shutil
import subprocess
from html import unescape

import numpy as np
import pytest

from napari_mamamia.features.challenge.scoring.leaderboard import (
    LeaderboardContent,
    leaderboard_page,
)
from napari_mamamia.features.challenge.scoring.sites import describe_sites
from napari_mamamia.features.challenge.scoring.team_page import TeamDetails, link_pages, team_page
from napari_mamamia.scoring.ranking.ranking import rank_tables
from napari_mamamia.scoring.ranking.table import MissingRule, RankingTable, RankSettings
from napari_mamamia.scoring.report.drawing import Drawn
from napari_mamamia.scoring.report.page import render_page

HOSTILE = ("<script>alert(1)</script>", "$x^{$", "_hidden", "ä" * 80, "a b")
BROWSER = next((b for b in ("chromium", "chromium-browser") if shutil.which(b)), None)


def tables_of(names, n, sites=("",), seed=1):
    rng = np.random.default_rng(seed)
    made = []
    for site in sites:
        values = rng.random((n, len(names))) - 0.1 * np.arange(len(names))
        cases = tuple(f"{site}{case}" for case in range(n))
        made.append(RankingTable(tuple(names), cases, values, metric="dsc", site=site))
    return made


def content_of(tables, links=None, **settings):
    ranking = rank_tables(tables, RankSettings(**{"n_resamples": 50, **settings}))
    overall = ranking.overall
    said = [["who leads"]] * (len(tables) + (overall is not None))
    return LeaderboardContent(
        "Leaderboard", ranking, overall.methods if overall else (),
        overall.filled if overall else None, describe_sites(tables), said, links=links or {},
    )  # fmt: skip


def undrawn(_):
    return Drawn(b"", "<svg></svg>")


def test_names_of_teams_stand_as_text_in_tables_and_figures():
    text = render_page(leaderboard_page(content_of(tables_of(HOSTILE, 12))))
    assert "<script>alert" not in text
    assert text.count("&lt;script&gt;alert(1)&lt;/script&gt;") >= 4
    assert text.count("$x^{$") >= 4  # matplotlib reads no formula in it
    assert "_hidden" in text


def test_the_first_row_is_the_leader_with_n_filled_and_how_sure():
    tables = [RankingTable(("B", "A"), ("1", "2"), np.array([[0.2, 0.9], [0.3, np.nan]]))]
    page = leaderboard_page(content_of(tables, missing=MissingRule.of_text("value:0.5")))
    first, second = page.sections[0].tables[0].rows
    # A: (0.9 + 0.5) / 2 = 0.7; B: 0.25; A is ahead in both cases, so in every resample
    assert first.cells[:8] == ("A", "1", "0.7000", "100", "1 to 1", "2", "1", "1")
    assert second.cells[:8] == ("B", "2", "0.2500", "0", "2 to 2", "2", "0", "2")


@pytest.mark.parametrize(
    ("n_algorithms", "n_cases", "n_resamples"),
    [(1, 1, 50), (1, 5, 0), (2, 1, 50), (7, 3, 0), (8, 3, 10)],
)
def test_few_algorithms_and_cases_make_a_page(n_algorithms, n_cases, n_resamples):
    names = [f"team {at}" for at in range(n_algorithms)]
    content = content_of(tables_of(names, n_cases), n_resamples=n_resamples)
    assert "team 0" in render_page(leaderboard_page(content))


def test_equal_values_make_a_page():
    tables = [RankingTable(("A", "B", "C"), ("1", "2"), np.full((2, 3), 0.5))]
    assert "C" in render_page(leaderboard_page(content_of(tables)))


def test_a_site_where_an_algorithm_was_not_run_is_crossed_out():
    tables = tables_of(("A", "B"), 12, ("DUKE", "ISPY1"))
    values = tables[1].values.copy()
    values[:, 1] = np.nan
    tables[1] = RankingTable(("A", "B"), tables[1].cases, values, metric="dsc", site="ISPY1")
    page = leaderboard_page(content_of(tables, missing=MissingRule.of_text("worst-rank")))
    means = page.sections[-1].tables[-1]
    assert means.title == "Mean dsc by site"
    assert means.rows[1].cells[2] == "–"
    assert "×" in render_page(page)


def test_a_team_leads_to_its_own_page():
    content = content_of(tables_of(("A", "B"), 5), links={"A": "teams/A.html"})
    text = render_page(leaderboard_page(content), undrawn)
    assert '<a href="teams/A.html">A</a>' in text


def test_many_sites_are_not_all_on_the_page():
    tables = tables_of(("A", "B"), 4, [f"site {at}" for at in range(15)])
    page = leaderboard_page(content_of(tables, n_resamples=0))
    assert "3 more tables are in rank.json, not on this page." in page.warnings
    assert page.sections[0].title == "All together"
    assert page.sections[1].title == "Dsc at site 0"


def measure(text, width, folder):
    """Return how wide a page is, its window and its height, in Chromium."""
    if BROWSER is None:
        pytest.fail("Chromium is missing: install Debian's package chromium to test the page")
    ask = """<script>const out = document.createElement("pre"); out.id = "said";
    out.textContent = JSON.stringify([document.documentElement.scrollWidth, window.innerWidth,
    document.documentElement.scrollHeight]); document.body.append(out);</script></body>"""
    page = folder / "page.html"
    # a window of Chromium is never under 500 wide: a frame is
    (folder / "inner.html").write_text(text.replace("</body>", ask), encoding="utf-8")
    page.write_text(
        f'<iframe id="f" src="inner.html" style="width:{width}px;height:900px;border:0"></iframe>'
        "<script>onload = () => document.body.append(document.getElementById('f')"
        ".contentDocument.getElementById('said').cloneNode(true))</script>"
    )
    quiet = ("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run")
    command = (
        BROWSER, "--headless", *quiet, f"--user-data-dir={folder / 'profile'}",
        "--allow-file-access-from-files", "--virtual-time-budget=3000", "--dump-dom",
        page.as_uri(),
    )  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    found = re.search(r'<pre id="said">(.*?)</pre>', done.stdout, re.DOTALL)
    return json.loads(unescape(found[1]))


@pytest.fixture(scope="module", params=[40, pytest.param(574, marks=pytest.mark.night)])
def page_of_26_teams(request):
    names = [f"team {at} of a university" for at in range(26)]
    tables = tables_of(names, request.param)
    return render_page(leaderboard_page(content_of(tables, n_resamples=20)))


@pytest.mark.parametrize("width", [1400, 390])
def test_26_teams_fit_a_desk_and_a_phone_however_many_cases(width, tmp_path, page_of_26_teams):
    across, inside, down = measure(page_of_26_teams, width, tmp_path)
    assert inside == width
    assert across <= width  # wide tables scroll in a box of their own
    assert down < 8000


def test_a_teams_page_of_574_cases_fits_a_phone_whatever_the_teams_are_called(tmp_path):
    names = [*HOSTILE, "x" * 200, *(f"team {at}" for at in range(20))]
    tables = tables_of(names, 574)
    links = link_pages(names)
    details = TeamDetails(notes={f"{at}": "unreadable: " + "y" * 300 for at in range(0, 574, 7)})
    page = team_page(content_of(tables, links, n_resamples=20), "x" * 200, details, links)
    across, inside, down = measure(render_page(page, undrawn), 390, tmp_path)
    assert inside == 390
    assert across <= 390
    assert down < 16_000  # the other 534 cases are folded
