"""Start and end child processes; no other module starts processes.

A process is ended together with all its descendants. Every child process starts in a fixed folder,
with a filtered environment (`child_environment`) and, except for the window, in its own session.
Python child processes get ``-P``, so that they load no modules from the current folder. They do not
get ``-I``, because it would also disable packages in the user's own folder (``pip install --user``)
and in ``PYTHONPATH`` (which clusters use to load modules).
"""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from threading import Thread
from typing import Final, NoReturn

from napari_mamamia.core.program.child_environment import child_environment
from napari_mamamia.core.program.system import CAN_BECOME, end_session

Process = subprocess.Popen[bytes]
"""A child process."""

_FOLDER: Final = Path(sys.executable).anchor or os.sep
"""Folder in which child processes start; it always exists, and other users cannot write to it."""
_DRAIN_S: Final = 2.0


class Errors(Enum):
    """Where a child process's error stream goes."""

    KEPT = subprocess.PIPE
    """The error stream goes to a pipe that the caller reads."""
    SHOWN = None
    """The error stream goes to the error stream of this process."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The output and exit code of a short program; `problem` says why it failed, or is ""."""

    code: int
    said: str = ""
    errors: str = ""
    problem: str = ""

    @property
    def is_good(self) -> bool:
        """Whether the program ran and exited with code 0."""
        return not self.problem and self.code == 0


def python_command(module: str, *arguments: str) -> tuple[str, ...]:
    """Return the command that runs a module in this Python, whatever the current folder is."""
    return (sys.executable, "-P", "-m", module, *arguments)


def start(
    command: Sequence[str],
    *,
    errors: Errors = Errors.KEPT,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    kept_files: Sequence[int] = (),
) -> Process:
    """Start a program with pipes for input and output; `end_group` ends it.

    Parameters
    ----------
    command
        The program's absolute path, and its arguments.
    environment
        All environment variables of the program; None uses `child_environment`.
    folder
        The program's current folder; None uses the root of the file system.
    kept_files
        Open files that the program inherits.

    Raises
    ------
    OSError
        If the program cannot be started.
    """
    return subprocess.Popen(  # noqa: S603 - a list from an absolute path on, no shell
        _require_absolute(command),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors.value,
        env=child_environment() if environment is None else environment,
        cwd=folder or _FOLDER,
        start_new_session=True,
        pass_fds=kept_files,
    )


def answer_of(command: Sequence[str], seconds: float, kept_files: Sequence[int] = ()) -> Answer:
    """Run a short program and return its output; kill it and its descendants after `seconds`."""
    try:
        process = start(command, kept_files=kept_files)
    except OSError as error:
        return Answer(-1, problem=str(error.strerror or error))
    try:
        output, errors = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        return Answer(-1, problem=f"it did not finish within {seconds:g} s")
    finally:
        end_group(process)
    texts = (stream.decode("utf-8", errors="replace") for stream in (output, errors))
    return Answer(process.returncode, *texts)


def become(command: Sequence[str], environment: Mapping[str, str], folder: Path) -> NoReturn:
    """Replace this process by another program, keeping the process id if possible.

    This function never returns. Signals reach the program directly, and its exit code becomes that
    of this process.
    """
    program = _require_absolute(command)
    # Output that Python still buffers would be lost.
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    if not CAN_BECOME:
        child = subprocess.run(  # noqa: S603 - as in `start`
            program, env=environment, cwd=folder, check=False
        )
        raise SystemExit(child.returncode)
    os.chdir(folder)
    os.execve(program[0], program, environment)  # noqa: S606 - no shell is wanted


def wait_for(process: Process, seconds: float) -> bool:
    """Wait up to `seconds` for a process to end; return whether it has ended."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def _require_absolute(command: Sequence[str]) -> list[str]:
    """Return the command as a list; raise ValueError unless the program's path is absolute."""
    if not Path(command[0]).is_absolute():
        raise ValueError(f"expected the program's path to be absolute, but got {command[0]}")
    return list(command)


def end_silent(process: Process, patience_s: float = _DRAIN_S) -> int | None:
    """End a process that has closed its pipe; return its exit code, or None if it was killed.

    The process first gets a moment to exit by itself. If it were killed at once, its exit code
    would look as if the system had killed it for lack of memory.
    """
    with suppress(subprocess.TimeoutExpired):
        process.wait(patience_s)
    code = process.poll()
    end_group(process)
    return code


def end_group(process: Process, readers: Sequence[Thread] = ()) -> None:
    """End a process and its descendants, wait for it, and close its streams.

    The process must have been started in its own session (``start_new_session``). On Windows only
    the process itself is ended. A process that has already ended is ignored.

    Parameters
    ----------
    readers
        Threads that read the process's streams; they get time to read the remaining output. If a
        thread is still running because another process holds the other end of its stream, that
        stream
        stays open.
    """
    with suppress(OSError):
        end_session(process.pid)
    process.wait()
    for reader in readers:
        reader.join(_DRAIN_S)
    if any(reader.is_alive() for reader in readers):
        return
    for stream in (process.stdin, process.stdout, process.stderr):
        with suppress(OSError):
            if stream is not None:
                stream.close()
