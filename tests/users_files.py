"""What the user of this computer keeps of the program, which no test may write.

Asked for before any variable is set: a test that clears them finds these.
"""

import os
from pathlib import Path
from typing import Final

import platformdirs

_OURS: Final = "napari-mamamia"
FOLDERS: Final = tuple(
    f"{folder}{os.sep}"
    for folder in (
        platformdirs.user_config_dir(_OURS, appauthor=False),
        platformdirs.user_data_dir(_OURS, appauthor=False),
        platformdirs.user_cache_dir(_OURS, appauthor=False),
        str(Path(platformdirs.user_documents_dir()) / _OURS),
        platformdirs.user_config_dir("napari", appauthor=False),
    )
)
"""Ours, and napari's settings; napari's cache holds what is the same for everybody."""
_WRITING: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_CHANGING: Final = {"os.rename": 1, "os.mkdir": 0, "os.remove": 0}
"""Events of Python's own, and which of what they carry is the path that changes."""
_refused: list[str] = []


def refuse_writing(event: str, given: tuple) -> None:
    """Let no file of the user's be opened for writing, made, replaced or taken away.

    For `sys.addaudithook`: it hears of each such call of any thread, before it is done.

    Raises
    ------
    PermissionError
        As where the user's own folder were closed; the test that did it fails at its end, too.
    """
    if event == "open":
        path, _mode, flags = given
        is_writing = isinstance(flags, int) and flags & _WRITING
    elif event in _CHANGING:
        path, is_writing = given[_CHANGING[event]], True
    else:
        return
    if is_writing and _is_users(path):
        _refused.append(f"{event} {os.fsdecode(path)}")
        raise PermissionError(f"a test must not write what is the user's own: {path}")


def take_refused() -> list[str]:
    """Return what was refused since this was asked last."""
    taken, _refused[:] = list(_refused), []
    return taken


def _is_users(path: object) -> bool:
    if not isinstance(path, str | bytes | os.PathLike):
        return False
    whole = f"{Path(os.fsdecode(path)).absolute()}{os.sep}"
    return whole.startswith(FOLDERS)
