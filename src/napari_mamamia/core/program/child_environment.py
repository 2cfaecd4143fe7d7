"""Environment variables of child processes, and the search for programs on PATH.

A user may start the program in any folder, and other people may be able to write to that folder.
Therefore no program, module or setting is loaded from the current folder.
"""

import os
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from napari_mamamia.core.program.system import PROGRAM_ENDINGS

_PASSED_ON: Final = re.compile(
    r"""
    HOME | USER | LOGNAME | SHELL | TZ | LANG | LANGUAGE | LC_\w+ | TERM | COLORTERM | NO_COLOR
    | TMPDIR | TEMP | TMP | VIRTUAL_ENV | CONDA_PREFIX
    | PYTHONUTF8 | PYTHONHASHSEED | PYTHONFAULTHANDLER
    # displays, windows and what draws
    | DISPLAY | WAYLAND_DISPLAY | XAUTHORITY | DBUS_SESSION_BUS_ADDRESS | XMODIFIERS | GTK_IM_MODULE
    | (XDG | QT | NAPARI | MAMAMIA | LIBGL | MESA | GALLIUM | EGL | VK | __GLX | __NV | __EGL)_\w+
    # numeric libraries and their devices
    | (OMP | MKL | KMP | OPENBLAS | NUMEXPR | VECLIB | ITK_GLOBAL)_\w+
    | (CUDA | NVIDIA | HIP | ROCR | PYTORCH)_\w+
    # the network, a container's client
    | SSL_CERT_FILE | SSL_CERT_DIR | REQUESTS_CA_BUNDLE
    | (HTTPS? | NO)_PROXY | (https? | no)_proxy
    | (DOCKER | CONTAINERS?)_\w+
    # what Windows and macOS need
    | SYSTEMROOT | SYSTEMDRIVE | WINDIR | COMSPEC | PATHEXT | (LOCAL)?APPDATA | PROGRAMDATA
    | PROGRAMFILES | USERPROFILE | HOMEDRIVE | HOMEPATH | USERNAME | NUMBER_OF_PROCESSORS
    | PROCESSOR_ARCHITECTURE | __CF_USER_TEXT_ENCODING
    """,
    re.VERBOSE,
)
"""Pattern for the names of variables that are passed to child processes.

Variables that load a program or module, such as LD_PRELOAD, PYTHONSTARTUP and MPLBACKEND, are not
included.
"""

_FOLDER_LISTS: Final = (
    "PATH",
    "LD_LIBRARY_PATH",
    "DYLD_LIBRARY_PATH",
    "DYLD_FALLBACK_LIBRARY_PATH",
)
_SYSTEM_FOLDERS: Final = ("/usr", "/bin", "/sbin", "/opt", "/nix", "/snap")
_PACKAGE_PARENT: Final = str(Path(__file__).parents[3])


def child_environment(**more: str) -> dict[str, str]:
    """Return the allowed environment variables of this process, and `more`, for a child process.

    A Python child process finds the same modules as this process, but none in its current folder.
    The same applies to Python processes that the child starts (``PYTHONSAFEPATH``).
    """
    passed = {name: value for name, value in os.environ.items() if _PASSED_ON.fullmatch(name)}
    for name in _FOLDER_LISTS:
        if folders := _list_folders(name):
            passed[name] = os.pathsep.join(folders)
    passed["PYTHONPATH"] = os.pathsep.join(module_folders())
    passed["PYTHONSAFEPATH"] = "1"
    return {**passed, **more}


def module_folders() -> tuple[str, ...]:
    """Return the folders in which this Python searches for modules, without the current folder.

    The current folder is included only if this software or Python itself is installed in it.
    """
    return _filter_entries(sys.path, (_PACKAGE_PARENT, sys.prefix, sys.base_prefix))


def find_program(name: str) -> str | None:
    """Return the absolute path of a program on PATH, or None if there is none.

    Empty and relative entries of ``PATH`` refer to the current folder and are ignored.
    """
    for folder in _list_folders("PATH") or os.defpath.split(os.pathsep):
        for ending in PROGRAM_ENDINGS:
            path = Path(folder, f"{name}{ending}")
            if path.is_absolute() and path.is_file() and os.access(path, os.X_OK):
                return str(path)
    return None


def leave_out_current_folder() -> None:
    """Prevent this process, and its child processes, from loading code from the current folder.

    The program calls this function first. Afterwards, modules and programs are no longer looked up
    in the current folder.
    """
    sys.path[:] = module_folders()
    for name in _FOLDER_LISTS:
        if name in os.environ:
            os.environ[name] = os.pathsep.join(_list_folders(name))
    os.environ["PYTHONSAFEPATH"] = "1"


def _list_folders(name: str) -> tuple[str, ...]:
    """Return the folders in a variable, with the current folder only if it is a system folder."""
    entries = os.environ.get(name, "").split(os.pathsep)
    return _filter_entries(entries, (*_SYSTEM_FOLDERS, sys.prefix, sys.base_prefix))


def _filter_entries(entries: Iterable[str], known: Sequence[str]) -> tuple[str, ...]:
    """Return the absolute paths, with the current folder only if it is inside a known folder."""
    try:
        current = Path.cwd().resolve()
    except OSError:  # the current folder was removed
        current = Path()
    safe_entries = []
    for entry in dict.fromkeys(entries):
        path = Path(entry)
        is_known = any(path.is_relative_to(folder) for folder in known)
        if path.is_absolute() and (is_known or path.resolve() != current):
            safe_entries.append(entry)
    return tuple(safe_entries)
