"""Choices between built-in names and the names of installed plug-ins."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from napari_mamamia.core.choices import ExportFormat, ProfileName
from napari_mamamia.core.plugins import list_names


@dataclass(frozen=True, slots=True)
class OpenChoice:
    """A choice between built-in names and plug-in names.

    Parameters
    ----------
    built_in
        The enum of built-in names.
    group
        The entry-point group whose names can also be chosen.
    """

    built_in: type[StrEnum]
    group: str

    @property
    def names(self) -> tuple[str, ...]:
        """All names, with the built-in names first; no plug-in is loaded."""
        return (*map(str, self.built_in), *list_names(self.group))

    def find(self, name: str) -> str:
        """Return the member of `built_in` with this name, or the name itself if it is a plug-in's.

        Raises
        ------
        ValueError
            If neither has this name.
        """
        return name if name in list_names(self.group) else self.built_in(name)


EXPORT_FORMATS: Final = OpenChoice(ExportFormat, "napari_mamamia.export_formats")
PROFILES: Final = OpenChoice(ProfileName, "napari_mamamia.profiles")
