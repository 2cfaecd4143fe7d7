"""The names of export formats: the built-in ones and those of installed packages."""

from typing import Final

from napari_mamamia.core.choices import ExportFormat
from napari_mamamia.core.plugins import list_names

EXPORT_GROUP: Final = "napari_mamamia.export_formats"
"""The entry-point group of export formats."""


def list_export_formats() -> tuple[str, ...]:
    """Return the names of all formats, including those of installed packages."""
    return (*(name.value for name in ExportFormat), *list_names(EXPORT_GROUP))


def find_export_format(name: str) -> str:
    """Return a format by its name: a member of `ExportFormat`, or the name of a plug-in.

    Raises
    ------
    ValueError
        If there is no format with that name.
    """
    return name if name in list_names(EXPORT_GROUP) else ExportFormat(name)
