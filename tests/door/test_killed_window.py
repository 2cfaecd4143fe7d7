"""The window, killed: nothing that it started goes on, and the next start finds all as it was."""

import os
import signal
import sys
from pathlib import Path

import pytest
from program import wait_until

from napari_mamamia.core.program.owner import this_process

pytestmark = [
    pytest.mark.door,
    pytest.mark.night,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc"),
]


def started_by(display):
    """Return the processes, by number, whose environment names a display."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if f"DISPLAY={display}".encode() in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def test_a_killed_window_leaves_no_process_and_the_next_one_opens_the_same(
    start, small_data_set, tmp_path
):
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    given = {path: path.read_bytes() for path in small_data_set.rglob("*") if path.is_file()}
    first = start("mamamia", "view", small_data_set, "--case", "A_1", TMPDIR=str(temporary))
    first.wait_for_text("A_1")
    wait_until(lambda: first.canvas_picture().max() > 100, "the first phase")
    display = first.screen.display
    assert started_by(display)
    os.killpg(first.process.pid, signal.SIGKILL)
    first.process.wait(30)
    wait_until(lambda: not started_by(display), "the end of what the window started", 20)

    ended = str(this_process()).replace(str(os.getpid()), str(first.process.pid))
    (temporary / f".mamamia-{ended}-0a1b2c3d.part").mkdir()  # an exam that it had unpacked
    second = start("mamamia", "view", small_data_set, "--case", "A_1", TMPDIR=str(temporary))
    second.wait_for_text("A_1")
    wait_until(lambda: second.canvas_picture().max() > 100, "the first phase")
    assert list(temporary.glob(".mamamia-*")) == []
    assert {p: p.read_bytes() for p in small_data_set.rglob("*") if p.is_file()} == given
