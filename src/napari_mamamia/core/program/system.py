"""What Linux, macOS and Windows do differently: the one module that asks which of them this is.

`docs/platforms.md` says for each difference what happens where, and how that is tested.
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
"""Whether a name can be given to another file, or removed, while somebody has its file open."""
RENAMING_REPLACES: Final = sys.platform != "win32"
"""Whether renaming onto a name that is taken replaces what is there instead of failing."""
CAN_LOAD_BESIDE: Final = sys.platform != "win32"
"""Whether a library loaded by its path is what a package that loads it later then uses."""
IS_LINUX: Final = sys.platform == "linux"
"""Whether /proc tells of other processes."""
CAN_BECOME: Final = sys.platform != "win32"
"""Whether a program can take this one's place under its number."""
PROGRAM_ENDINGS: Final = (
    tuple(os.environ.get("PATHEXT", ".EXE").split(os.pathsep)) if sys.platform == "win32" else ("",)
)
"""What a program's name may end with."""

_MEMINFO: Final = Path("/proc/meminfo")
_KIBIBYTE: Final = 1024
_BUSY_S: Final = 2.0
"""How long a virus scanner or a backup may hold a file that is to be replaced."""
_BUSY_STEP_S: Final = 0.05
_LONGEST_WINDOWS_PATH: Final = 259
"""Source: Microsoft, Maximum Path Length Limitation: 260 with the end, unless long paths are on."""
_STILL_ACTIVE: Final = 259
_MAY_ASK: Final = 0x1000
"""PROCESS_QUERY_LIMITED_INFORMATION; 259 is what GetExitCodeProcess tells of one that runs."""
_NO_SUCH_PROCESS: Final = 87
"""ERROR_INVALID_PARAMETER of OpenProcess."""


def private_memory(n_bytes: int) -> mmap.mmap:
    """Return memory of zeros that the system hands out in its smallest pages as they are written.

    Raises
    ------
    OSError
        If there is none.
    """
    if sys.platform == "win32":  # there nobody shares what has no name
        return mmap.mmap(-1, n_bytes)
    else:  # mypy reads one branch a system
        return mmap.mmap(-1, n_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


def limit_memory(n_bytes: int) -> None:
    """Let this process take so much more memory than now; Windows has no such limit."""
    if sys.platform != "win32":
        pages = Path("/proc/self/statm")
        taken = int(pages.read_text("utf-8").split()[0]) * mmap.PAGESIZE if pages.is_file() else 0
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        with suppress(ValueError):  # a lower limit is set already
            resource.setrlimit(resource.RLIMIT_AS, (taken + n_bytes, hard))


def open_own(path: Path, flags: int, mode: int = 0o666) -> int:
    """Open the file of this very name: no link is followed, nothing waited for, no byte changed.

    Raises
    ------
    OSError
        If the system refuses, or a link is there.
    """
    careful = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    if not hasattr(os, "O_NOFOLLOW") and path.is_symlink():
        raise OSError(errno.ELOOP, "a link is there", str(path))
    # without O_BINARY Windows writes \r\n for each \n, in a key or a mask too
    return os.open(path, flags | careful | getattr(os, "O_BINARY", 0), mode)


def claim(handle: int, at: int = 0) -> bool:
    """Lock an open file for its holder; False where somebody else holds it. Nothing is waited for.

    The system lets go of it when the file is closed or the process ends.

    Parameters
    ----------
    at
        The byte that is locked on Windows, where nobody else can read it; other systems lock all.

    Raises
    ------
    OSError
        If this file system has no locks.
    """
    try:
        if sys.platform == "win32":
            # `msvcrt` locks from where the file stands.
            os.lseek(handle, at, os.SEEK_SET)
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True


def force_to_disk(handle: int) -> None:
    """Wait until the disk itself has what was written to an open file.

    macOS returns from fsync once the disk's memory has it. Source: fsync(2) of macOS, F_FULLFSYNC.
    """
    if sys.platform == "darwin":
        with suppress(OSError):  # a file system that cannot
            fcntl.fcntl(handle, fcntl.F_FULLFSYNC)
            return
    os.fsync(handle)


def force_folder_to_disk(folder: Path) -> None:
    """Make new names in a folder durable; systems that cannot do it for folders are left alone."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def put_in_place(source: Path, target: Path) -> None:
    """Rename a file, replacing what is at `target`.

    Where an open file cannot be replaced, it is tried again for two seconds: virus scanners and
    backups hold what was just written.

    Raises
    ------
    OSError
        If the system refuses; `target` is as it was.
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
    """Return what to do about a refusal that only this system knows, "" where there is nothing."""
    if CAN_REPLACE_OPEN_FILES:
        return ""
    if len(str(path.absolute())) > _LONGEST_WINDOWS_PATH:
        return (
            f"its path has more than {_LONGEST_WINDOWS_PATH} characters: choose a shorter one, or "
            "turn on long paths in Windows"
        )
    if isinstance(error, PermissionError) and path.exists():
        return "another program may have it open: close it there; or it is write-protected"
    return ""


def process_lives(pid: int) -> bool:
    """Whether a process of this computer runs; True where that is not told."""
    if sys.platform == "win32":
        return _lives_on_windows(pid)  # os.kill(pid, 0) would end it there
    else:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        # EPERM: it is another user's and lives. A number too large for any process tells nothing.
        except (OSError, OverflowError):
            return True
        return True


def _lives_on_windows(pid: int) -> bool:
    """Source: Microsoft, OpenProcess and GetExitCodeProcess."""
    import ctypes  # here: it takes time, and Windows alone needs it

    kernel: Any = ctypes.WinDLL("kernel32", use_last_error=True)  # type: ignore[attr-defined,unused-ignore]
    handle = kernel.OpenProcess(_MAY_ASK, False, pid)
    if not handle:
        reason: int = ctypes.get_last_error()  # type: ignore[attr-defined,unused-ignore]
        return reason != _NO_SUCH_PROCESS
    try:
        # What stands if the system does not fill it in: a process that is not told counts as
        # running.
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
        If there is none, or it is not ours.
    """
    os.kill(pid, getattr(signal, "SIGKILL", signal.SIGTERM))


def stop_process(pid: int) -> None:
    """Let a process wait where it is; on Windows, which cannot, it goes on.

    Raises
    ------
    OSError
        As `end_process`.
    """
    if sys.platform != "win32":
        os.kill(pid, signal.SIGSTOP)


def end_session(pid: int) -> None:
    """End a process that leads a session of its own, and all in it; on Windows only itself.

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
    """Return the numbers of this user and group; None on Windows, which has no such numbers."""
    if sys.platform == "win32":
        return None
    else:
        return os.getuid(), os.getgid()


def is_root() -> bool:
    """Whether this process may do everything on this computer; never known of Windows."""
    if sys.platform == "win32":
        return False
    else:
        return os.geteuid() == 0


def total_memory_bytes() -> int | None:
    """Return the computer's memory, None where nothing tells it. Source: sysconf(3)."""
    with suppress(OSError, ValueError):
        if sys.platform != "win32":
            return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return None


def free_memory_bytes() -> int | None:
    """Return the memory that programs can still have, None where nothing tells it.

    Source: proc_meminfo(5), MemAvailable in KiB.
    """
    with suppress(OSError, ValueError, IndexError):
        for line in _MEMINFO.read_text("ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * _KIBIBYTE
    return None


def file_system_use(folder: str) -> tuple[int, int]:
    """Return the bytes and the number of files on the file system of a folder; 0 on Windows.

    Source: statvfs(3).

    Raises
    ------
    OSError
        If it cannot be asked.
    """
    if sys.platform == "win32":
        return 0, 0
    else:
        state = os.statvfs(folder)
        return (state.f_blocks - state.f_bfree) * state.f_frsize, state.f_files - state.f_ffree


def process_peak_memory_bytes() -> int | None:
    """Return the highest resident memory of this process so far, None where nothing tells it.

    Source: getrusage(2), ru_maxrss, which Linux counts in KiB and macOS in bytes.
    """
    if sys.platform == "win32":
        return None
    else:
        highest = int(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
        return highest if sys.platform == "darwin" else highest * _KIBIBYTE
