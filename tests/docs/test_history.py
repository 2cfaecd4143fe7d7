"""The history of benchmarks: what is recorded of a run, and the page that draws it."""

import importlib.util
import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

TOP = Path(__file__).parents[2]
FAST = "Dice and HD95: surface-distance / ours"


@pytest.fixture
def history():
    spec = importlib.util.spec_from_file_location("history", TOP / "benchmarks/history.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(date, commit, **ratios):
    return {
        "date": f"{date}T10:00:00+00:00",
        "commit": commit,
        "machine": "a processor <1>, 2 cores, Linux",
        "python": "3.11.2",
        "load": 0.5,
        "ratios": {FAST: ratios["fast"]} if "fast" in ratios else {},
    }


def test_the_ratios_are_those_that_a_benchmark_prints(history):
    output = (
        "  surface-distance:  10.2 x over all pairs (limit 7); by pair median 9.1, least 5.9\n"
        " SimpleITK + SciPy:  34.0 x over all pairs (limit 25); by pair median 30.0, least 13.0\n"
    )
    assert list(history.read_ratios("metrics", output).values()) == [10.2, 34.0]
    assert history.read_ratios("slice_step", output) == {}
    with pytest.raises(ValueError, match="surface-distance"):
        history.read_ratios("metrics", "nothing")


def test_the_patterns_name_benchmarks_that_exist(history):
    assert all((TOP / "benchmarks" / f"{name}.py").is_file() for name in history.RATIOS)


def test_runs_are_read_in_order_of_their_dates(history, tmp_path):
    for name, date in (("b", "2026-01-02"), ("a", "2026-03-01"), ("c", "2025-12-31")):
        (tmp_path / f"{name}.json").write_text(json.dumps(run(date, name)))
    assert [one["commit"] for one in history.read_runs(tmp_path)] == ["c", "b", "a"]


def test_a_point_lies_at_its_date_and_value(history):
    runs = [run("2026-01-01", "aaa", fast=5.0), run("2026-01-02", "bbb")]
    runs += [run("2026-01-03", "ccc", fast=10.0), run("2026-01-05", "ddd", fast=10.0)]
    svg = ElementTree.fromstring(history.draw_ratio(FAST, runs))
    first, second, third = (
        tuple(float(circle.get(name)) for name in ("cx", "cy")) for circle in svg.iter("circle")
    )
    assert second[0] == pytest.approx((first[0] + third[0]) / 2)
    assert second[1] == third[1]
    bottom = float(next(svg.iter("line")).get("y1"))
    assert bottom - second[1] == pytest.approx(2 * (bottom - first[1]), abs=0.2)
    assert [title.text for title in svg.iter("title")][1] == "2026-01-03, ccc: 10 x"


def test_the_page_has_a_figure_for_each_recorded_ratio_and_a_row_for_each_run(history):
    page = history.history_page([run("2026-01-01", "aaa", fast=5.0), run("2026-01-02", "bbb")])
    assert page.count("<svg") == 1
    assert f"## {FAST}" in page
    assert page.count("| 2026-01-0") == 2


def test_the_records_of_the_repository_can_be_drawn(history):
    runs = history.read_runs()
    assert history.history_page(runs).count("<svg") == len(
        {name for one in runs for name in one["ratios"]}
    )
    for one in runs:
        assert "/" not in one["machine"]
