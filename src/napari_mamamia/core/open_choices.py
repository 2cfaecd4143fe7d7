"""Choices that installed packages add to: the built-in names, and the names of plug-ins."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from napari_mamamia.core.choices import ExportFormat, ProfileName
from napari_mamamia.core.plugins import list_names


@dataclass(frozen=True, slots=True)
class OpenChoice:
    """A choice by name.

    Parameters
    ----------
    built_in
        The names of this software.
    group
        The entry-point group, whose names can be chosen too.
    """

    built_in: type[StrEnum]
    group: str

    @property
    def names(self) -> tuple[str, ...]:
        """All names, the built-in names first; no plug-in is loaded."""
        return (*map(str, self.built_in), *list_names(self.group))

    def find(self, name: str) -> str:
        """Return a built-in name as a member of `built_in`, or the name of a plug-in.

        Raises
        ------
        ValueError
            If there is no such name.
        """
        return name if name in list_names(self.group) else self.built_in(name)


EXPORT_FORMATS: Final = OpenChoice(ExportFormat, "napari_mamamia.export_formats")
PROFILES: Final = OpenChoice(ProfileName, "napari_mamamia.profiles")
