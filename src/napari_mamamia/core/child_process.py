"""Ending a child process with everything that it started."""

import os
import signal
import subprocess
import sys
from contextlib import suppress

__all__ = ["end_group"]


def end_group(process: "subprocess.Popen[bytes]") -> None:
    """End a process and those it started, wait until it is gone, and close its streams.

    The process must have been started in a session of its own (``start_new_session``); on Windows
    only the process itself is ended. One that is gone already is no error.
    """
    with suppress(OSError):
        if sys.platform == "win32":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        with suppress(OSError):
            if stream is not None:
                stream.close()
