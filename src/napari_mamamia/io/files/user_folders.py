"""The folders of this user: settings, keys and what waits to be sent, documents."""

import os
from pathlib import Path
from typing import Final

import platformdirs

_APP: Final = "napari-mamamia"
_FOLDER_VARIABLE: Final = "MAMAMIA_CONFIG_DIR"


def preferences_path() -> Path:
    """Return the preferences file; its folder is ``MAMAMIA_CONFIG_DIR`` where that is set."""
    folder = os.environ.get(_FOLDER_VARIABLE)
    return Path(folder or platformdirs.user_config_dir(_APP, appauthor=False)) / "preferences.json"


def review_folder() -> Path:
    """Return where this computer keeps keys, and what waits to be sent to a study's folder."""
    folder = os.environ.get(_FOLDER_VARIABLE)
    return Path(folder or platformdirs.user_data_dir(_APP, appauthor=False)) / "review"


def documents_folder() -> Path:
    """Return our folder in the user's documents, whether or not it is there."""
    return Path(platformdirs.user_documents_dir()) / _APP
