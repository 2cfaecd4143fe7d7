"""The user's folders for settings, keys, data waiting to be sent, and documents."""

import hashlib
import os
import sys
from pathlib import Path
from typing import Final

import platformdirs

from napari_mamamia.core.errors import SaveError
from napari_mamamia.io.files.foreign import open_plain
from napari_mamamia.io.files.own_paths import can_write_in
from napari_mamamia.io.files.save import saving

_APP: Final = "napari-mamamia"
_FOLDER_VARIABLE: Final = "MAMAMIA_CONFIG_DIR"


def preferences_path() -> Path:
    """Return the path of the preferences file; ``MAMAMIA_CONFIG_DIR`` can set its folder."""
    folder = os.environ.get(_FOLDER_VARIABLE)
    return Path(folder or platformdirs.user_config_dir(_APP, appauthor=False)) / "preferences.json"


def review_folder() -> Path:
    """Return the folder for keys, and for data waiting to be sent to a study's folder."""
    folder = os.environ.get(_FOLDER_VARIABLE)
    return Path(folder or platformdirs.user_data_dir(_APP, appauthor=False)) / "review"


def cache_folder() -> Path:
    """Return the cache folder, which ``MAMAMIA_CACHE_DIR`` can set.

    It may be deleted at any time, because its data can be regenerated.
    """
    chosen = os.environ.get("MAMAMIA_CACHE_DIR")
    return Path(chosen or platformdirs.user_cache_dir(_APP, appauthor=False))


def documents_folder() -> Path:
    """Return this program's folder among the user's documents, whether or not it exists."""
    return Path(platformdirs.user_documents_dir()) / _APP


def linked_cases_folder() -> Path:
    """Return the folder for cases that were opened as separate files; it may not exist."""
    return documents_folder() / "opened"


def napari_settings() -> Path:
    """Return the path of napari's settings file, whether or not it exists.

    Source: napari 0.9.2, napari/utils/_platformdirs.py and settings/_napari_settings.py.
    """
    variable = os.environ.get("NAPARI_CONFIG")
    prefix = os.path.realpath(sys.prefix)
    code = hashlib.sha1(prefix.encode(), usedforsecurity=False).hexdigest()
    marker = f"{Path(prefix).name}_{code}"
    return Path(
        variable or platformdirs.user_config_dir("napari", False, marker) + "/settings.yaml"
    )


def copy_read_only_settings() -> Path | None:
    """Copy napari's settings file if it is not writable; return the path of the copy, or None.

    napari 0.9.2 writes its settings while it creates its window, and Qt ends the program if writing
    fails.

    Raises
    ------
    SaveError
        If the copy cannot be written either.
    """
    file = napari_settings()
    there = next(one for one in (file, *file.absolute().parents) if _is_there(one))
    if os.access(there, os.W_OK) if there.is_file() else can_write_in(there):
        return None
    copy = preferences_path().with_name("napari-settings.yaml")
    try:
        if not file.is_file():
            copy.unlink(missing_ok=True)
            return copy
        with open_plain(file) as stream, saving(copy, overwrite=True) as temporary:
            temporary.write_bytes(stream.read())
    except (OSError, SaveError) as error:
        raise SaveError(
            f"neither napari's settings {file} nor a copy in {copy.parent} can be written "
            f"({error}): allow writing, or set NAPARI_CONFIG to a writable file"
        ) from error
    return copy


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        return False


def absolute(path: Path) -> Path:
    """Return an absolute path, without following links."""
    return Path(os.path.abspath(path))  # noqa: PTH100 - links stay as the user knows them
