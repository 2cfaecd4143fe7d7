"""Install an entry in the desktop's application menu: a .desktop file and its icon.

Source: freedesktop.org, Desktop Entry Specification 1.5 and Icon Theme Specification 0.13. The
files are written to the user's own data folder (``XDG_DATA_HOME``).
"""

import sys
from importlib.resources import files
from pathlib import Path
from typing import Final

import platformdirs

from napari_mamamia.core.errors import SaveConflictError, SaveError
from napari_mamamia.core.program.system import IS_LINUX
from napari_mamamia.io.files.foreign import open_plain
from napari_mamamia.io.files.save import saving

_NAME: Final = "napari-mamamia"
_MARK: Final = "X-Napari-Mamamia=true"
"""Line that identifies our own file; the files of other programs are never replaced or removed."""
_ICON_MARK: Final = b"<!-- napari-mamamia -->"
_ENTRY: Final = """[Desktop Entry]
Type=Application
Version=1.5
Name=MAMA-MIA
GenericName=Breast MRI annotation
Comment=Outline and measure tumours on breast DCE-MRI (research only)
Exec={command} view --in-window %F
Icon={icon}
Terminal=false
Categories=Science;MedicalSoftware;
MimeType=inode/directory;application/zip;application/dicom;
StartupWMClass=napari
{mark}
"""


def desktop_files() -> tuple[Path, Path]:
    """Return the paths of the entry and its icon, whether or not they exist."""
    data = Path(platformdirs.user_data_dir())
    icon = data / "icons" / "hicolor" / "scalable" / "apps" / f"{_NAME}.svg"
    return data / "applications" / f"{_NAME}.desktop", icon


def install_entry() -> Path:
    """Write the desktop entry and its icon, replacing an earlier version; return the entry's path.

    Raises
    ------
    SaveConflictError
        If a file of that name belongs to another program.
    SaveError
        If this system does not support desktop entries, the program's command is not found, or a
        file cannot be written.
    """
    _require_linux()
    entry, icon = desktop_files()
    for file in (entry, icon):
        _require_own(file)
    command = Path(sys.executable).with_name("mamamia")
    if not command.is_file():
        raise SaveError(
            f"expected {command.parent} to contain the command mamamia, but it does not: install "
            "the package again with pip"
        )
    picture = (files("napari_mamamia") / "icon.svg").read_bytes()
    text = _ENTRY.format(command=_quote(command), icon=icon, mark=_MARK)
    for file, content in ((icon, picture + _ICON_MARK + b"\n"), (entry, text.encode())):
        with saving(file, overwrite=True) as temporary:
            temporary.write_bytes(content)
    return entry


def remove_entry() -> tuple[Path, ...]:
    """Remove the desktop entry and its icon; return the removed files.

    Raises
    ------
    SaveConflictError
        If a file of that name belongs to another program.
    SaveError
        If this system does not support desktop entries.
    """
    _require_linux()
    present = tuple(file for file in desktop_files() if file.exists())
    for file in present:
        _require_own(file)
    for file in present:
        file.unlink()
    return present


def _require_linux() -> None:
    if not IS_LINUX:
        raise SaveError(
            "expected this system to support .desktop files (Linux), but it does not: create a "
            "shortcut to the program mamamia with the argument view"
        )


def _require_own(file: Path) -> None:
    if file.is_symlink() or (file.exists() and not _is_own(file)):
        raise SaveConflictError(
            f"expected {file} to be absent or to belong to this program, but it belongs to "
            "another program: move the file"
        )


def _is_own(file: Path) -> bool:
    mark = _ICON_MARK if file.suffix == ".svg" else _MARK.encode()
    with open_plain(file) as stream:
        return mark in stream.read()


def _quote(command: Path) -> str:
    """Return a path as a quoted argument of ``Exec``; reserved characters are escaped."""
    text = str(command)
    for character in '\\"`$':
        text = text.replace(character, "\\" + character)
    # A value of the file is unescaped before the quotes are read, and % starts a field code.
    return '"' + text.replace("\\", "\\\\").replace("%", "%%") + '"'
