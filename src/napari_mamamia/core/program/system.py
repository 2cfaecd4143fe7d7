"""Differences between Linux, macOS and Windows: the only module that asks for the system.

`docs/platforms.md` lists each difference, what happens on each system, and how it is tested.
"""

import errno
import mmap
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl
    import resource

CAN_REPLACE_OPEN_FILES: Final = sys.platform != "win32"
"""Whether a file can be replaced or removed while another process has it open."""
RENAMING_REPLACES: Final = sys.platform != "win32"
"""Whether renaming onto an existing name replaces that file instead of failing."""
CAN_LOAD_BESIDE: Final = sys.platform != "win32"
"""Whether a package uses a library that was loaded before by its path."""
IS_LINUX: Final = sys.platform == "linux"
"""Whether /proc describes other processes."""
CAN_BECOME: Final = sys.platform != "win32"
"""Whether a program can replace this process under the same process id."""
PROGRAM_ENDINGS: Final = (
    tuple(os.environ.get("PATHEXT", ".EXE").split(os.pathsep)) if sys.platform == "win32" else ("",)
)
"""Endings of the names of programs."""

_MEMINFO: Final = Path("/proc/meminfo")
_KIBIBYTE: Final = 1024
_BUSY_S: Final = 2.0
"""How long a virus scanner or a backup may hold a file that is to be replaced, in seconds."""
_BUSY_STEP_S: Final = 0.05
_LONGEST_WINDOWS_PATH: Final = 259
"""Source: Microsoft, Maximum Path Length Limitation: 260 with the terminating NUL, unless long
paths
are enabled.
"""
_STILL_ACTIVE: Final = 259
_MAY_ASK: Final = 0x1000
"""PROCESS_QUERY_LIMITED_INFORMATION; GetExitCodeProcess returns 259 for a running process."""
_NO_SUCH_PROCESS: Final = 87
"""ERROR_INVALID_PARAMETER of OpenProcess."""


def private_memory(n_bytes: int) -> mmap.mmap:
    """Return zeroed memory that the system allocates in its smallest pages when they are written.

    Raises
    ------
    OSError
        If memory is exhausted.
    """
    if sys.platform == "win32":  # on Windows anonymous memory is never shared
        return mmap.mmap(-1, n_bytes)
    else:  # mypy reads one branch per system
        return mmap.mmap(-1, n_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


def limit_memory(n_bytes: int) -> None:
    """Limit this process to `n_bytes` more memory than now; Windows has no such limit."""
    if sys.platform != "win32":
        pages = Path("/proc/self/statm")
        taken = int(pages.read_text("utf-8").split()[0]) * mmap.PAGESIZE if pages.is_file() else 0
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        with suppress(ValueError):  # a lower limit is set already
            resource.setrlimit(resource.RLIMIT_AS, (taken + n_bytes, hard))


def open_own(path: Path, flags: int, mode: int = 0o666) -> int:
    """Open a file without following links, without waiting and without changing a byte.

    Raises
    ------
    OSError
        If the system refuses, or the path is a link.
    """
    careful = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    if not hasattr(os, "O_NOFOLLOW") and path.is_symlink():
        raise OSError(errno.ELOOP, "the path is a link", str(path))
    # without O_BINARY Windows writes \r\n for each \n, in a key or a mask too
    return os.open(path, flags | careful | getattr(os, "O_BINARY", 0), mode)


def claim(handle: int, at: int = 0) -> bool:
    """Lock an open file; return False if another process holds the lock. Do not wait.

    The system releases the lock when the file is closed or the process ends.

    Parameters
    ----------
    at
        The byte that is locked on Windows, where others then cannot read it; other systems lock
        all.

    Raises
    ------
    OSError
        If this file system has no locks.
    """
    try:
        if sys.platform == "win32":
            # `msvcrt` locks from the current position of the file.
            os.lseek(handle, at, os.SEEK_SET)
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True


def force_to_disk(handle: int) -> None:
    """Wait until the disk itself has stored the data of an open file.

    On macOS fsync returns when the disk's cache has them. Source: fsync(2) of macOS, F_FULLFSYNC.
    """
    if sys.platform == "darwin":
        with suppress(OSError):  # not supported by this file system
            fcntl.fcntl(handle, fcntl.F_FULLFSYNC)
            return
    os.fsync(handle)


def force_folder_to_disk(folder: Path) -> None:
    """Make new names in a folder durable; do nothing on systems that cannot sync folders."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def put_in_place(source: Path, target: Path) -> None:
    """Rename a file, replacing the file at `target`.

    If an open file cannot be replaced, try again for two seconds: virus scanners and backups hold
    files that were just written.

    Raises
    ------
    OSError
        If the system refuses; `target` is unchanged.
    """
    end = time.monotonic() + (0.0 if CAN_REPLACE_OPEN_FILES else _BUSY_S)
    while True:
        try:
            source.replace(target)
        except PermissionError:
            if time.monotonic() >= end:
                raise
            time.sleep(_BUSY_STEP_S)
        else:
            return


def refusal_remedy(path: Path, error: OSError) -> str:
    """Return how to fix a refusal that is specific to this system, "" if there is none."""
    if CAN_REPLACE_OPEN_FILES:
        return ""
    if len(str(path.absolute())) > _LONGEST_WINDOWS_PATH:
        return (
            f"its path has more than {_LONGEST_WINDOWS_PATH} characters: choose a shorter one, or "
            "enable long paths in Windows"
        )
    if isinstance(error, PermissionError) and path.exists():
        return "another program may have it open (close it there), or it is write-protected"
    return ""


def process_lives(pid: int) -> bool:
    """Return whether a process of this computer runs; True if that is unknown."""
    if sys.platform == "win32":
        return _lives_on_windows(pid)  # on Windows os.kill(pid, 0) would end it
    else:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        # EPERM: it runs and belongs to another user. A number too large for any process raises
        # too.
        except (OSError, OverflowError):
            return True
        return True


def _lives_on_windows(pid: int) -> bool:
    """Return whether a process runs. Source: Microsoft, OpenProcess and GetExitCodeProcess."""
    import ctypes  # imported here: it takes time, and only Windows needs it

    kernel: Any = ctypes.WinDLL("kernel32", use_last_error=True)  # type: ignore[attr-defined,unused-ignore]
    handle = kernel.OpenProcess(_MAY_ASK, False, pid)
    if not handle:
        reason: int = ctypes.get_last_error()  # type: ignore[attr-defined,unused-ignore]
        return reason != _NO_SUCH_PROCESS
    try:
        # The value if the call fails: an unknown process counts as running.
        code = ctypes.c_ulong(_STILL_ACTIVE)
        kernel.GetExitCodeProcess(handle, ctypes.byref(code))
        return code.value == _STILL_ACTIVE
    finally:
        kernel.CloseHandle(handle)


def end_process(pid: int) -> None:
    """End a process at once, whatever it is doing.

    Raises
    ------
    OSError
        If there is no such process, or it belongs to another user.
    """
    os.kill(pid, getattr(signal, "SIGKILL", signal.SIGTERM))


def stop_process(pid: int) -> None:
    """Suspend a process; Windows cannot, so it continues there.

    Raises
    ------
    OSError
        As `end_process`.
    """
    if sys.platform != "win32":
        os.kill(pid, signal.SIGSTOP)


def end_session(pid: int) -> None:
    """End the leader of a session and all its processes; on Windows only the leader.

    Raises
    ------
    OSError
        As `end_process`.
    """
    if sys.platform == "win32":
        end_process(pid)
    else:
        os.killpg(pid, signal.SIGKILL)


def account() -> tuple[int, int] | None:
    """Return the ids of this user and group; None on Windows, which has no such ids."""
    if sys.platform == "win32":
        return None
    else:
        return os.getuid(), os.getgid()


def is_root() -> bool:
    """Return whether this process runs as root; False on Windows."""
    if sys.platform == "win32":
        return False
    else:
        return os.geteuid() == 0


def total_memory_bytes() -> int | None:
    """Return the computer's memory in bytes, None if it is unknown. Source: sysconf(3)."""
    with suppress(OSError, ValueError):
        if sys.platform != "win32":
            return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return None


def free_memory_bytes() -> int | None:
    """Return the memory in bytes that programs can still allocate, None if it is unknown.

    Source: proc_meminfo(5), MemAvailable in KiB.
    """
    with suppress(OSError, ValueError, IndexError):
        for line in _MEMINFO.read_text("ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * _KIBIBYTE
    return None


def file_system_use(folder: str) -> tuple[int, int]:
    """Return the used bytes and the number of files on the file system of a folder; 0 on Windows.

    Source: statvfs(3).

    Raises
    ------
    OSError
        If the system refuses.
    """
    if sys.platform == "win32":
        return 0, 0
    else:
        state = os.statvfs(folder)
        return (state.f_blocks - state.f_bfree) * state.f_frsize, state.f_files - state.f_ffree


def process_peak_memory_bytes() -> int | None:
    """Return the highest resident memory of this process so far, None if it is unknown.

    Source: getrusage(2), ru_maxrss, which Linux counts in KiB and macOS in bytes.
    """
    if sys.platform == "win32":
        return None
    else:
        highest = int(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
        return highest if sys.platform == "darwin" else highest * _KIBIBYTE
