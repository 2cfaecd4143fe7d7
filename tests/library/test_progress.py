"""Long calls: a bar where somebody looks, nothing elsewhere, and Ctrl-C ends them cleanly."""

import os
import pty
import select
import signal
import subprocess
import sys
import time

import pytest

from napari_mamamia.core.progress import report_progress
from napari_mamamia.library import progress as room

PATIENCE_S = 120
SLOW = """
import signal
import napari_mamamia as mm
signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    mm.make_phantoms({folder!r}, 200, shape=(24, 64, 64), progress={progress})
except KeyboardInterrupt:
    print("stopped by hand")
"""


def _terminal(program, *, until):
    """Start a program in a terminal and press Ctrl-C when `until` appears; return what it said."""
    mine, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdin=theirs, stdout=theirs, stderr=theirs,
        start_new_session=True, env={**os.environ, "TERM": "xterm"},
    )  # fmt: skip
    os.close(theirs)
    said, pressed, end = b"", False, time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        if select.select([mine], [], [], 0.2)[0]:
            try:
                said += os.read(mine, 65536)
            except OSError:
                break
        if not pressed and until in said:
            process.send_signal(signal.SIGINT)
            pressed = True
    os.close(mine)
    assert process.wait(PATIENCE_S) == 0, said
    return said


@pytest.mark.door
def test_a_terminal_shows_a_bar_and_ctrl_c_leaves_nothing_half_written(tmp_path):
    program = SLOW.format(folder=str(tmp_path / "phantoms"), progress=True)
    said = _terminal(program, until=b"PHANTOM_001")
    assert b"%" in said
    assert b"stopped by hand" in said
    assert list(tmp_path.iterdir()) == []


def _job(steps=3):
    for done in range(steps):
        report_progress(done, steps, "Working & more")
    return "done"


def test_a_file_in_place_of_a_terminal_gets_nothing(capfd):
    assert room.drive(_job) == "done"
    assert room.drive(_job, progress=False) == "done"
    assert capfd.readouterr() == ("", "")


class Display:
    """What IPython's display gives: an output that is replaced."""

    def __init__(self):
        self.shown = []

    def display(self, data, *, raw, display_id):
        self.shown.append(data)
        return self

    def update(self, data, *, raw):
        self.shown.append(data)


def test_a_notebook_shows_one_output_that_is_empty_at_the_end(monkeypatch):
    display = Display()
    monkeypatch.setattr(room, "_in_notebook", lambda: True)
    monkeypatch.setattr(room, "_PATIENCE_S", 0.0)
    monkeypatch.setattr(room, "_PACE_S", 0.0)
    monkeypatch.setattr(room, "import_module", lambda _: display)
    assert room.drive(_job) == "done"
    assert "67% Working &amp; more" in display.shown[-2]["text/html"]
    assert display.shown[-1] == {"text/plain": "", "text/html": ""}


def test_a_quick_call_in_a_notebook_shows_nothing(monkeypatch):
    display = Display()
    monkeypatch.setattr(room, "_in_notebook", lambda: True)
    monkeypatch.setattr(room, "import_module", lambda _: display)
    assert room.drive(_job) == "done"
    assert display.shown == []


def test_a_job_that_is_interrupted_is_closed_and_the_interruption_goes_on(monkeypatch):
    closed = []

    def job():
        try:
            report_progress(0, 1, "Working")
            raise KeyboardInterrupt
        finally:
            closed.append(True)

    with pytest.raises(KeyboardInterrupt):
        room.drive(job())
    assert closed == [True]
