"""Windows' rules for this software, on another system: for tests, by PYTHONPATH.

Modules of napari_mamamia see what Python has on Windows: `sys.platform`, `os` and `signal` without
what only POSIX has, `msvcrt` and no `fcntl`, `resource`, `pwd`, `termios`. All of the process, its
libraries too, meets the rules for files: an open or mapped file is neither replaced, renamed nor
removed, renaming onto a taken name fails, names differ by more than their letter case, device names
are no files, links need a right that nobody has. Everybody else sees this system as it is.
"""

import builtins
import contextlib
import ctypes
import importlib
import io
import os
import signal
import sys
import threading
import types
from pathlib import Path

GONE_MODULES = {"fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "posix", "syslog"}
GONE = {
    "os": {
        *("fork", "forkpty", "getuid", "geteuid", "getgid", "getegid", "getgroups", "setsid"),
        *("killpg", "getpgid", "setpgid", "sysconf", "statvfs", "fstatvfs", "posix_fallocate"),
        *("posix_fadvise", "mkfifo", "mknod", "chown", "fchown", "fchmod", "lchown", "nice"),
        *("O_NOFOLLOW", "O_NONBLOCK", "O_DIRECTORY", "O_CLOEXEC", "O_SYNC", "O_NOCTTY", "uname"),
        *("sched_getaffinity", "getloadavg", "getrlimit", "pread", "pwrite", "wait", "wait3"),
        *("WIFSIGNALED", "WTERMSIG", "RTLD_LAZY", "register_at_fork", "openpty", "ctermid"),
    },
    "signal": {
        *("SIGKILL", "SIGHUP", "SIGSTOP", "SIGCONT", "SIGUSR1", "SIGUSR2", "SIGPIPE", "SIGALRM"),
        *("SIGCHLD", "alarm", "setitimer", "pthread_sigmask", "sigwait", "SIGXFSZ", "SIGQUIT"),
    },
    "sys": {"getdlopenflags", "abiflags"},
    "ctypes": set(),
}
CHANGED = {"os": {"name": "nt", "O_BINARY": 0}, "sys": {"platform": "win32"}, "signal": {}}
REAL = {"os": os, "sys": sys, "signal": signal, "ctypes": ctypes}
DEVICES = {"con", "prn", "aux", "nul", *(f"{a}{n}" for a in ("com", "lpt") for n in range(1, 10))}
OWN = "napari_mamamia"


class Seen(types.ModuleType):
    """A module as Windows has it; what is written to it reaches the real one."""

    def __init__(self, name):
        super().__init__(name)
        self.__dict__["_real"] = REAL[name]

    def __getattr__(self, name):
        short = self.__name__
        if name in CHANGED[short]:
            return CHANGED[short][name]
        if name in GONE[short]:
            raise AttributeError(f"module {short!r} has no attribute {name!r} on Windows")
        return getattr(self._real, name)


SEEN = {name: Seen(name) for name in REAL}


def lock(handle, mode, count):
    """Lock bytes as `msvcrt.locking` does: an error where somebody else holds them."""
    import fcntl

    if mode not in (1, 2):
        raise ValueError("only claiming is known")
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise PermissionError(13, "Permission denied") from error


MSVCRT = types.ModuleType("msvcrt")
MSVCRT.locking, MSVCRT.LK_NBLCK, MSVCRT.LK_LOCK = lock, 2, 1

real_import, real_import_module = builtins.__import__, importlib.import_module


def seen_import(name, globals=None, locals=None, fromlist=(), level=0):
    """Give modules of ours what Windows has."""
    if (globals or {}).get("__name__", "").startswith(OWN):
        if name in GONE_MODULES:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        if name == "msvcrt":
            return MSVCRT
        if name in SEEN:
            return SEEN[name]
    return real_import(name, globals, locals, fromlist, level)


def seen_import_module(name, package=None):
    """Do the same for modules that are imported by a function's argument."""
    if name in GONE_MODULES and sys._getframe(1).f_globals["__name__"].startswith(OWN):
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    return real_import_module(name, package)


class Kernel:
    """As far as `OpenProcess` and what is asked of its handle go."""

    def __init__(self, *_, **__):
        pass

    def OpenProcess(self, rights, inherit, pid):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return 0
        return pid

    def GetExitCodeProcess(self, handle, code):
        return 1

    def CloseHandle(self, handle):
        return 1


CHANGED["ctypes"] = {"WinDLL": Kernel, "get_last_error": lambda: 87}
builtins.__import__, importlib.import_module = seen_import, seen_import_module


class Kernel:
    """As far as `OpenProcess` and what is asked of its handle go."""

    def __init__(self, *_, **__):
        pass

    def OpenProcess(self, rights, inherit, pid):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return 0
        return pid

    def GetExitCodeProcess(self, handle, code):
        return 1

    def CloseHandle(self, handle):
        return 1


def open_here(path):
    """Whether this process or its parent has a file open or mapped."""
    try:
        about = real["stat"](path)
    except OSError:
        return False
    for process in ("self", os.getppid()):
        with contextlib.suppress(OSError):
            for handle in real_listdir(f"/proc/{process}/fd"):
                with contextlib.suppress(OSError):
                    found = real["stat"](f"/proc/{process}/fd/{handle}")
                    if (found.st_dev, found.st_ino) == (about.st_dev, about.st_ino):
                        return True
            with real_open(f"/proc/{process}/maps") as stream:
                if any(line.split()[4] == str(about.st_ino) for line in stream):
                    return True
    return False


def open_below(folder):
    """Whether this process has a file in a folder open or mapped."""
    with real_open("/proc/self/maps") as stream:
        names = [line.split(maxsplit=5)[5].strip() for line in stream if "/" in line]
    for handle in real_listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            names.append(os.readlink(f"/proc/self/fd/{handle}"))  # noqa: PTH115 - before pathlib
    return any(name.startswith(f"{os.fsdecode(folder)}/") for name in names)


def held(path):
    """Raise what Windows raises for a file that somebody has open, or a folder of one."""
    place = Path(os.fsdecode(path))
    if (place.is_dir() and open_below(place)) or (place.is_file() and open_here(path)):
        raise PermissionError(13, "The process cannot access the file", str(path))


def shown(path):
    """Return the name that is there in other letters, None where there is none."""
    path = Path(os.fsdecode(path))
    try:
        names = real_listdir(path.parent)
    except OSError:
        return None
    if path.name in names:
        return None
    return next((path.parent / name for name in names if name.lower() == path.name.lower()), None)


def ruled(path):
    """Return the path that Windows takes for this one; device names are no files."""
    if not isinstance(path, str | bytes | os.PathLike):
        return path
    name = Path(os.fsdecode(path)).name
    is_device = name.split(".")[0].rstrip(" ").lower() in DEVICES
    ends_badly = name not in ("", ".", "..") and name != name.rstrip(" .")
    if is_device or ends_badly or ":" in name:
        raise OSError(22, "Invalid argument: a name that Windows does not take", name)
    return shown(path) or path


real = {
    name: getattr(os, name)
    for name in ("replace", "rename", "unlink", "remove", "open", "mkdir", "symlink", "stat")
}
ONE_AT_A_TIME = threading.RLock()
real_open, real_listdir = builtins.open, os.listdir


def replace(source, target, **more):
    held(source)
    target = ruled(target)
    with ONE_AT_A_TIME:
        held(target)
        real["replace"](source, target, **more)


def rename(source, target, **more):
    held(source)
    if os.path.lexists(target) or (shown(target) and shown(target) != Path(source)):
        raise FileExistsError(17, "Cannot create a file when that file already exists", str(target))
    ruled(target)
    real["rename"](source, target, **more)


def unlink(path, **more):
    with ONE_AT_A_TIME:  # the look and the deed are one on Windows
        if not more:
            held(path)
        real["unlink"](path, **more)


def opened(path, flags, *rest, **more):
    with ONE_AT_A_TIME:
        return real["open"](ruled(path) if not more else path, flags, *rest, **more)


def opened_file(file, *rest, **more):
    return real_open(ruled(file), *rest, **more)


def made(path, *rest, **more):
    path = ruled(path)
    return real["mkdir"](path, *rest, **more)


def linked(source, target, *rest, **more):
    raise OSError(1314, "A required privilege is not held by the client", str(target))


def looked_at(path, *rest, **more):
    try:
        return real["stat"](path, *rest, **more)
    except FileNotFoundError:
        other = shown(path) if isinstance(path, str | os.PathLike) else None
        if other is None:
            raise
        return real["stat"](other, *rest, **more)


os.replace, os.rename, os.unlink, os.remove = replace, rename, unlink, unlink
os.open, os.mkdir, os.symlink, os.stat = opened, made, linked, looked_at
builtins.open = opened_file
io.open = opened_file  # what pathlib opens by
