"""The one place that starts other processes, and ends them with everything that they started.

Every child starts in a fixed folder, with a cleared environment (`child_environment`) and, but for
the window, in a session of its own. Python children get ``-P``: the current folder is no place for
modules. Not ``-I``, which also leaves out packages in the user's own folder (``pip install
--user``) and in ``PYTHONPATH`` (what clusters load modules by); those the user chose.
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
"""Where children start: always there, and other users cannot put a file into it."""
_DRAIN_S: Final = 2.0


class Errors(Enum):
    """Where a child's error stream goes."""

    KEPT = subprocess.PIPE
    """To a pipe that the caller reads."""
    SHOWN = None
    """To this process's own."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a short program said and its exit code; `problem` says why there is none, else ""."""

    code: int
    said: str = ""
    errors: str = ""
    problem: str = ""

    @property
    def is_good(self) -> bool:
        """Whether it ran and ended without an error."""
        return not self.problem and self.code == 0


def python_command(module: str, *arguments: str) -> tuple[str, ...]:
    """Return the command that runs a module in this Python, wherever one stands."""
    return (sys.executable, "-P", "-m", module, *arguments)


def start(
    command: Sequence[str],
    *,
    errors: Errors = Errors.KEPT,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    kept_files: Sequence[int] = (),
) -> Process:
    """Start a program that is spoken to through pipes; end it with `end_group`.

    Parameters
    ----------
    command
        The program's absolute path, and what it gets.
    environment
        All of its variables; None takes `child_environment`.
    folder
        Where it starts; None takes the root of the files, whatever folder this process is in.
    kept_files
        Open files that it gets too.

    Raises
    ------
    OSError
        If it cannot be started.
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
    """Return what a short program says; it is ended with all it started after `seconds`."""
    try:
        process = start(command, kept_files=kept_files)
    except OSError as error:
        return Answer(-1, problem=str(error.strerror or error))
    try:
        output, errors = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        return Answer(-1, problem=f"no answer within {seconds:g} s")
    finally:
        end_group(process)
    texts = (stream.decode("utf-8", errors="replace") for stream in (output, errors))
    return Answer(process.returncode, *texts)


def become(command: Sequence[str], environment: Mapping[str, str], folder: Path) -> NoReturn:
    """Run a program in this one's place, under its number where the system can; never returns.

    So a signal, the terminal's end or a kill reach it, and its exit code is this one's.
    """
    program = _require_absolute(command)
    # What Python still holds back would be gone with this program.
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
    """Wait until a process has ended, at most so long; return whether it has."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def _require_absolute(command: Sequence[str]) -> list[str]:
    """Return the command; a program without a path would be looked for by the system's rules."""
    if not Path(command[0]).is_absolute():
        raise ValueError(f"expected the absolute path of a program, got {command[0]}")
    return list(command)


def end_silent(process: Process, patience_s: float = _DRAIN_S) -> int | None:
    """End a process that closed its pipe; return its own exit code, None if it had none by then.

    It gets a moment to end by itself: ended at once, it would seem to have been killed by the
    system, as where memory is short.
    """
    with suppress(subprocess.TimeoutExpired):
        process.wait(patience_s)
    code = process.poll()
    end_group(process)
    return code


def end_group(process: Process, readers: Sequence[Thread] = ()) -> None:
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
