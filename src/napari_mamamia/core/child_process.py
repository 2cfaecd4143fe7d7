"""Ending a child process with everything that it started, and whether a process still runs."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from threading import Thread
from typing import Final

__all__ = ["end_group", "process_lives"]

_DRAIN_S: Final = 2.0


def end_group(process: "subprocess.Popen[bytes]", readers: Sequence[Thread] = ()) -> None:
    """End a process and those it started, wait until it is gone, and close its streams.

    The process must have been started in a session of its own (``start_new_session``); on Windows
    only the process itself is ended. One that is gone already is no error.

    Parameters
    ----------
    readers
        Threads that read its streams: they get the time to read what is still there. While one of
        them goes on, because somebody else holds the other end, no stream is closed under it.
    """
    with suppress(OSError):
        if sys.platform == "win32":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for reader in readers:
        reader.join(_DRAIN_S)
    if any(reader.is_alive() for reader in readers):
        return
    for stream in (process.stdin, process.stdout, process.stderr):
        with suppress(OSError):
            if stream is not None:
                stream.close()


def process_lives(pid: int) -> bool:
    """Whether a process of this computer runs; where that cannot be asked without harm, True."""
    if sys.platform == "win32":
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True
