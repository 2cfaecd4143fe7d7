"""`mamamia kinetics` in this process, in two workers and on a dask cluster: the same tables."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import nullcontext, suppress

import pytest
from typer.testing import CliRunner

from napari_mamamia.cli.app import app
from napari_mamamia.core.progress import report_progress
from napari_mamamia.scoring.report.drawing import Drawn
from napari_mamamia.services.kinetics import kinetics

pytest.importorskip("distributed", reason='needs  pip install "napari-mamamia[cluster]"')

LONG_S = 40.0


@pytest.fixture(autouse=True)
def no_figures(monkeypatch):
    """Put nothing in the place of figures, which take most of the time and are no numbers."""

    def draw(drawing):
        report_progress(0, 1, "Drawing")
        return Drawn(b"", "")

    monkeypatch.setattr(kinetics, "drawing_place", lambda: nullcontext(draw))


@pytest.fixture
def data_set(small_data_set):
    """Three cases, of which one has no mask."""
    (small_data_set / "segmentations" / "expert" / "B_1.nii.gz").unlink()
    return small_data_set


@pytest.fixture
def scheduler(tmp_path):
    """Return the address of a dask scheduler of this machine with one worker."""
    file, programs = tmp_path / "scheduler.json", []
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}

    def start(kind, *words):
        command = [sys.executable, "-m", f"distributed.cli.dask_{kind}", "--no-dashboard", *words]
        programs.append(subprocess.Popen(command, start_new_session=True, **quiet))

    try:
        start("scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(file))
        end = time.monotonic() + LONG_S
        while not file.exists() and time.monotonic() < end:
            time.sleep(0.05)
        address = json.loads(file.read_text())["address"]
        start("worker", address, "--nthreads", "1")
        yield address
    finally:
        for program in programs:
            with suppress(ProcessLookupError):
                os.killpg(program.pid, signal.SIGKILL)
            program.wait()


def measured(data_set, out, *options):
    """Return the bytes of both tables."""
    command = ["kinetics", str(data_set), "--out", str(out), *options]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 3, result.output  # finished, not every case
    return (out / "kinetics.csv").read_bytes(), (out / "curves.csv").read_bytes()


@pytest.mark.night
def test_two_workers_and_a_cluster_measure_what_this_process_measures(
    data_set, scheduler, tmp_path, monkeypatch
):
    here = measured(data_set, tmp_path / "here")
    rows = list(csv.DictReader(here[0].decode().splitlines()))
    assert [(row["case_id"], row["status"]) for row in rows] == [
        ("A_1", "ok"),
        ("A_2", "ok"),
        ("B_1", "failed"),
    ]

    def never_here(*arguments):
        raise RuntimeError("measured in this process")

    monkeypatch.setattr(kinetics, "case_kinetics", never_here)  # not seen by other processes
    assert measured(data_set, tmp_path / "workers", "--workers", "2") == here
    assert measured(data_set, tmp_path / "cluster", "--scheduler", scheduler) == here


def test_workers_and_a_scheduler_at_once_are_a_usage_error(data_set, tmp_path):
    both = ("--workers", "2", "--scheduler", "tcp://127.0.0.1:1")
    command = ["kinetics", str(data_set), "--out", str(tmp_path / "out"), *both]
    assert CliRunner().invoke(app, command).exit_code == 2
    assert not (tmp_path / "out").exists()
