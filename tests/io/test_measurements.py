"""What is drawn is kept: torn lines, other writers, later versions, damage, other clocks."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from napari_mamamia.core.errors import ArgumentError, CaseError
from napari_mamamia.core.measurement import MeasureKind, Measurement
from napari_mamamia.io.workspace import event_store
from napari_mamamia.io.workspace.event_store import EventWriter
from napari_mamamia.io.workspace.measurements import (
    MEASUREMENTS_FOLDER,
    append_measurement,
    read_measurements,
    take_back_measurement,
)

RULER = Measurement(
    "A",
    MeasureKind.RULER,
    ((1.23456, -2.0, 3.0), (40.0, 0.0, -0.0001)),
    "axial",
    phase=1,
    lesion="1",
    text="größte Ausdehnung",
    reader="Ana",
)


def ids(workspace, case_id=None):
    return [one.measurement_id for one in read_measurements(workspace, case_id).items]


def test_nothing_is_there_where_nobody_drew(tmp_path):
    assert read_measurements(tmp_path / "none").items == ()
    assert not (tmp_path / "none").exists()


def test_what_is_drawn_is_read_as_it_was_returned(tmp_path):
    drawn = append_measurement(tmp_path, RULER)
    assert read_measurements(tmp_path).items == (drawn,)
    assert drawn.points_mm == ((1.235, -2.0, 3.0), (40.0, 0.0, 0.0))
    expected = replace(RULER, points_mm=drawn.points_mm)
    assert replace(drawn, measurement_id="", created="") == expected
    assert drawn.created.endswith("+00:00")


@pytest.mark.parametrize("kind", list(MeasureKind))
def test_every_kind_is_kept(tmp_path, kind):
    from napari_mamamia.core.measurement import POINTS

    points = tuple((float(n), 0.5 * n, -n / 4) for n in range(POINTS[kind]))
    drawn = append_measurement(tmp_path, replace(RULER, kind=kind, points_mm=points, phase=None))
    assert read_measurements(tmp_path).items == (drawn,)
    assert drawn.points_mm == points


def test_only_those_of_a_case_are_told_and_letter_case_does_not_part_it(tmp_path):
    first = append_measurement(tmp_path, RULER)
    append_measurement(tmp_path, replace(RULER, case_id="B"))
    assert ids(tmp_path, "a") == [first.measurement_id]


def test_what_is_taken_back_is_gone_and_the_record_still_holds_it(tmp_path):
    first, second = append_measurement(tmp_path, RULER), append_measurement(tmp_path, RULER)
    take_back_measurement(tmp_path, first)
    take_back_measurement(tmp_path, first)  # twice, as of two windows
    assert ids(tmp_path) == [second.measurement_id]
    text = "".join(
        path.read_text("utf-8") for path in (tmp_path / MEASUREMENTS_FOLDER).rglob("*.jsonl")
    )
    assert first.measurement_id in text
    assert text.count('"add"') == 2


def test_nobody_takes_back_what_another_drew(tmp_path):
    drawn = append_measurement(tmp_path, RULER)
    take_back_measurement(tmp_path, replace(drawn, reader="Ben"))
    assert ids(tmp_path) == [drawn.measurement_id]


def test_a_thing_can_be_taken_back_where_the_other_computers_clock_is_ahead(tmp_path, monkeypatch):
    class Ahead(datetime):
        @classmethod
        def now(cls, zone=None):
            return datetime.now(zone) + timedelta(hours=1)

    with monkeypatch.context() as there:
        there.setattr(event_store, "datetime", Ahead)
        there.setattr(event_store, "_RUN", "another run")
        drawn = append_measurement(tmp_path, RULER)
    take_back_measurement(tmp_path, drawn)
    assert ids(tmp_path) == []


def test_a_line_that_a_crash_tore_costs_only_itself(tmp_path):
    first = append_measurement(tmp_path, RULER)
    (path,) = (tmp_path / MEASUREMENTS_FOLDER / "Ana").iterdir()
    with path.open("ab") as stream:
        stream.write(b'{"hash":"0000')
    assert read_measurements(tmp_path).items == (first,)
    assert read_measurements(tmp_path).problems == ()
    second = append_measurement(tmp_path, RULER)
    assert read_measurements(tmp_path).items == (first, second)


def test_a_damaged_line_is_told_and_costs_only_itself(tmp_path):
    first, _, third = (append_measurement(tmp_path, RULER) for _ in range(3))
    (path,) = (tmp_path / MEASUREMENTS_FOLDER / "Ana").iterdir()
    lines = path.read_bytes().split(b"\n")
    lines[1] = lines[1].replace(b"40.000", b"90.000")  # a ruler that somebody made longer
    path.write_bytes(b"\n".join(lines))
    record = read_measurements(tmp_path)
    assert [one.measurement_id for one in record.items] == [
        first.measurement_id,
        third.measurement_id,
    ]
    assert record.problems


def test_events_of_a_later_version_are_counted_and_passed_over(tmp_path):
    first = append_measurement(tmp_path, RULER)
    with EventWriter(tmp_path / MEASUREMENTS_FOLDER, "Ben") as writer:
        writer.append({"version": 2, "add": {"kind": "sphere"}})
    record = read_measurements(tmp_path)
    assert (record.items, record.n_newer) == ((first,), 1)


@pytest.mark.parametrize(
    "body",
    [
        {"add": 7},
        {"add": {"case_id": "A"}},
        {"add": {"kind": "ruler", "points_mm": [["1", "2"]]}},
        {"add": {"points_mm": [["1", "2", "3"], ["1", "2", "inf"]]}},
        {"add": {"points_mm": [["1", "2", "3"], ["1", "2", "nan"]]}},
        {"add": {"points_mm": [["1", "2", "3"], ["1", "2", "1e300"]]}},
        {"add": {"points_mm": [["1", "2", "3"], ["1", "2", 3]]}},
        {"add": {"points_mm": [["1", "2", "3"]]}},
        {"add": {"kind": "sphere"}},
        {"add": {"plane": "oblique"}},
        {"add": {"phase": True}},
        {"add": {"phase": -1}},
        {"remove": ["x"]},
    ],
)
def test_an_event_that_another_program_made_up_is_passed_over(tmp_path, body):
    first = append_measurement(tmp_path, RULER)
    whole = {
        "case_id": "A",
        "kind": "ruler",
        "lesion": "",
        "phase": 1,
        "plane": "axial",
        "points_mm": [["1", "2", "3"], ["4", "5", "6"]],
        "text": "",
    }
    if isinstance(body.get("add"), dict) and len(body["add"]) == 1 and "case_id" not in body["add"]:
        body = {"add": {**whole, **body["add"]}}
    with EventWriter(tmp_path / MEASUREMENTS_FOLDER, "Ben") as writer:
        writer.append({"version": 1, **body})
    assert read_measurements(tmp_path).items == (first,)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"points_mm": ((0.0, 0.0, 0.0),)}, "2 point"),
        ({"points_mm": ((0.0, 0.0, 0.0), (float("nan"), 0.0, 0.0))}, "RAS, mm"),
        ({"points_mm": ((0.0, 0.0, 0.0), (0.0, 0.0))}, "RAS, mm"),
        ({"plane": "oblique"}, "plane"),
        ({"phase": -1}, "phase"),
        ({"text": "x" * 501}, "500"),
    ],
)
def test_what_cannot_be_measured_is_refused(change, why):
    with pytest.raises(ArgumentError, match=why):
        replace(RULER, **change)


def test_a_reader_that_can_name_no_folder_is_refused(tmp_path):
    with pytest.raises(CaseError, match="reader"):
        append_measurement(tmp_path, replace(RULER, reader="../x"))
    assert not (tmp_path / MEASUREMENTS_FOLDER).exists()


def test_threads_of_one_window_lose_nothing(tmp_path):
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: append_measurement(tmp_path, RULER), range(24)))
    assert len(read_measurements(tmp_path).items) == 24


def test_two_programs_of_one_reader_lose_nothing(tmp_path):
    """A program of its own, as nothing else has another process number and another run."""
    code = (
        "import sys; from pathlib import Path; sys.path.insert(0, sys.argv[2])\n"
        "from test_measurements import RULER, append_measurement\n"
        "for _ in range(20): append_measurement(Path(sys.argv[1]), RULER)"
    )
    here = str(Path(__file__).parent)
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path), here]) as other:
        for _ in range(20):
            append_measurement(tmp_path, RULER)
    assert other.returncode == 0
    assert len(read_measurements(tmp_path).items) == 40
    assert len(list((tmp_path / MEASUREMENTS_FOLDER / "Ana").iterdir())) == 2
