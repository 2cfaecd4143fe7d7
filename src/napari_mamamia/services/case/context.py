"""The context of work on one case: its data set, workspace and reader."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from napari_mamamia.core.cohort import CaseRecord
from napari_mamamia.io.files.sources import CaseFiles
from napari_mamamia.io.workspace.workspace import Workspace
from napari_mamamia.services.case.data_set import OpenDataSet

CaseKey: TypeAlias = tuple[Path | None, str]
"""Key that distinguishes cases with the same id: the data set's root (or None) and the id."""


@dataclass(frozen=True, slots=True, eq=False)
class CaseContext:
    """A case with its data set and reader, as they were when work on the case began.

    Everything that is read or written for the case uses this value; a background task keeps the
    value until the task ends. An id alone does not determine a file, because baseline and follow-up
    data sets may use the same case ids.

    Raises
    ------
    CaseError
        If the data set has no such case.
    """

    opened: OpenDataSet
    case_id: str
    reader: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "case_id", self.opened.data_set.case(self.case_id).case_id)

    @property
    def files(self) -> CaseFiles:
        """The case's files in the data set."""
        return self.opened.data_set.case(self.case_id)

    @property
    def record(self) -> CaseRecord | None:
        """The case's row in the clinical table, or None."""
        return self.opened.record(self.case_id)

    @property
    def workspace(self) -> Workspace:
        """The workspace of this data set."""
        return self.opened.workspace

    @property
    def key(self) -> CaseKey:
        """Key that distinguishes this case from a case with the same id in a different data set."""
        return self.opened.data_set.root, self.case_id

    def read_by(self, reader: str | None) -> "CaseContext":
        """Return a copy for another reader."""
        return replace(self, opened=self.opened.read_by(reader), reader=reader)
