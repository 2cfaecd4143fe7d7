"""Differences between Linux, macOS and Windows; no other module checks the operating system.

`docs/platforms.md` lists each difference, the behaviour on each system, and how it is tested.
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
"""Whether renaming a file to an existing name replaces that file instead of failing."""
CAN_LOAD_BESIDE: Final = sys.platform != "win32"
"""Whether a package uses a library that this process has already loaded from its path."""
IS_LINUX: Final = sys.platform == "linux"
"""Whether /proc describes other processes."""
CAN_BECOME: Final = sys.platform != "win32"
"""Whether another program can replace this process under the same process id."""
PROGRAM_ENDINGS: Final = (
    tuple(os.environ.get("PATHEXT", ".EXE").split(os.pathsep)) if sys.platform == "win32" else ("",)
)
"""File-name extensions of executable programs."""

_MEMINFO: Final = Path("/proc/meminfo")
_KIBIBYTE: Final = 1024
_BUSY_S: Final = 2.0
"""Maximum time in seconds that a virus scanner or backup may hold a file that is to be replaced."""
_BUSY_STEP_S: Final = 0.05
_LONGEST_WINDOWS_PATH: Final = 259
"""Maximum path length in characters, unless long paths are enabled.

Source: Microsoft, Maximum Path Length Limitation: 260 including the terminating NUL.
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
    """Limit this process to `n_bytes` of additional memory; on Windows, do nothing."""
    if sys.platform != "win32":
        pages = Path("/proc/self/statm")
        taken = int(pages.read_text("utf-8").split()[0]) * mmap.PAGESIZE if pages.is_file() else 0
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        with suppress(ValueError):  # a lower limit is set already
            resource.setrlimit(resource.RLIMIT_AS, (taken + n_bytes, hard))


def open_own(path: Path, flags: int, mode: int = 0o666) -> int:
    """Open a file without following links, without blocking and without converting line endings.

    Raises
    ------
    OSError
        If the system refuses access, or the path is a link.
    """
    careful = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    if not hasattr(os, "O_NOFOLLOW") and path.is_symlink():
        raise OSError(errno.ELOOP, "the path must not be a link", str(path))
    # without O_BINARY Windows writes \r\n for each \n, in a key or a mask too
    return os.open(path, flags | careful | getattr(os, "O_BINARY", 0), mode)


def claim(handle: int, at: int = 0) -> bool:
    """Lock an open file without waiting; return whether the lock was obtained.

    The system releases the lock when the file is closed or the process ends.

    Parameters
    ----------
    at
        Offset of the byte that is locked on Windows, where other processes then cannot read it;
        other
        systems lock the whole file.

    Raises
    ------
    OSError
        If this file system does not support locks.
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
    """Wait until the data of an open file are stored on the physical disk.

    On macOS, fsync returns as soon as the data are in the disk's cache, so F_FULLFSYNC is used.
    Source: fsync(2) of macOS.
    """
    if sys.platform == "darwin":
        with suppress(OSError):  # not supported by this file system
            fcntl.fcntl(handle, fcntl.F_FULLFSYNC)
            return
    os.fsync(handle)


def force_folder_to_disk(folder: Path) -> None:
    """Wait until new file names in a folder are on disk, on systems that support this."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def put_in_place(source: Path, target: Path) -> None:
    """Rename a file, replacing an existing file at `target`.

    If an open file cannot be replaced, keep trying for two seconds, because virus scanners and
    backups briefly hold newly written files.

    Raises
    ------
    OSError
        If the file cannot be renamed; `target` is then unchanged.
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
    """Return how to fix a system-specific file error, or "" if no fix is known."""
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
    """Return whether a process on this computer is running, or True if this is unknown."""
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
    """Kill a process immediately.

    Raises
    ------
    OSError
        If there is no such process, or it belongs to another user.
    """
    os.kill(pid, getattr(signal, "SIGKILL", signal.SIGTERM))


def stop_process(pid: int) -> None:
    """Suspend a process; do nothing on Windows, which cannot suspend one.

    Raises
    ------
    OSError
        If there is no such process, or it belongs to another user.
    """
    if sys.platform != "win32":
        os.kill(pid, signal.SIGSTOP)


def end_session(pid: int) -> None:
    """Kill a session leader and all processes of its session; on Windows, kill only the leader.

    Raises
    ------
    OSError
        If there is no such process, or it belongs to another user.
    """
    if sys.platform == "win32":
        end_process(pid)
    else:
        os.killpg(pid, signal.SIGKILL)


def account() -> tuple[int, int] | None:
    """Return the ids of the current user and group, or None on Windows, which has no such ids."""
    if sys.platform == "win32":
        return None
    else:
        return os.getuid(), os.getgid()


def is_root() -> bool:
    """Return whether this process runs as root; always False on Windows."""
    if sys.platform == "win32":
        return False
    else:
        return os.geteuid() == 0


def total_memory_bytes() -> int | None:
    """Return the computer's total memory in bytes, or None if it is unknown. Source: sysconf(3)."""
    with suppress(OSError, ValueError):
        if sys.platform != "win32":
            return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return None


def free_memory_bytes() -> int | None:
    """Return the available memory in bytes, or None if it is unknown.

    Source: proc_meminfo(5), MemAvailable in KiB.
    """
    with suppress(OSError, ValueError, IndexError):
        for line in _MEMINFO.read_text("ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * _KIBIBYTE
    return None


def file_system_use(folder: str) -> tuple[int, int]:
    """Return the used bytes and the number of files on a folder's file system; zeros on Windows.

    Source: statvfs(3).

    Raises
    ------
    OSError
        If the system cannot report them.
    """
    if sys.platform == "win32":
        return 0, 0
    else:
        state = os.statvfs(folder)
        return (state.f_blocks - state.f_bfree) * state.f_frsize, state.f_files - state.f_ffree


def process_peak_memory_bytes() -> int | None:
    """Return the peak resident memory of this process in bytes, or None if it is unknown.

    Source: getrusage(2), ru_maxrss, which is in KiB on Linux and in bytes on macOS.
    """
    if sys.platform == "win32":
        return None
    else:
        highest = int(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
        return highest if sys.platform == "darwin" else highest * _KIBIBYTE
