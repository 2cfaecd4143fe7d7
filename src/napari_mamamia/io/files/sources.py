"""Dataclasses for the files of a case, which layouts create and readers open."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Generic, TypeVar, overload

from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.names import count_of

_NO_COLUMNS: Final[Mapping[str, str]] = MappingProxyType({})
T = TypeVar("T")
R = TypeVar("R")


@dataclass(slots=True, eq=False)
class Reading(Generic[R]):
    """A deferred function call, made once when its result is first needed."""

    read: Callable[[], R]
    result: R | None = None

    def get(self) -> R:
        """Return the result; the function is called once."""
        if self.result is None:
            self.result = self.read()
        return self.result


class Deferred(Sequence[T]):
    """A sequence that is read when its items are first used, such as phases in DICOM headers.

    Parameters
    ----------
    reading
        The call that reads the object that holds the items.
    name
        The attribute of that object that contains the items.
    change
        A function that is applied to each item.
    """

    def __init__(
        self, reading: Reading[Any], name: str, change: Callable[[T], T] | None = None
    ) -> None:
        self._reading, self._name, self._change = reading, name, change

    @property
    def is_read(self) -> bool:
        """Whether the items have been read."""
        return self._reading.result is not None

    def changed(self, change: Callable[[T], T]) -> "Deferred[T]":
        """Return the same items with a function applied to each, without reading them now."""
        return Deferred(self._reading, self._name, change)

    def _items(self) -> tuple[T, ...]:
        items = getattr(self._reading.get(), self._name)
        return tuple(items if self._change is None else map(self._change, items))

    def __len__(self) -> int:
        return len(self._items())

    def __iter__(self) -> Iterator[T]:
        return iter(self._items())

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[T, ...]: ...
    def __getitem__(self, index: int | slice) -> T | tuple[T, ...]:
        return self._items()[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._items() == tuple(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self._items()) if self.is_read else "Deferred()"


class LayoutKind(StrEnum):
    """The recognised kinds of folder layouts."""

    MAMA_MIA = "MAMA-MIA"
    CASE_FOLDER = "folder of one case"
    SINGLE_FILE = "single file"
    DICOM = "DICOM folder"
    PATTERN = "layout file"
    """A layout described by path patterns (`io.layouts`); `DataSet.layout` names the layout file.
    """
    OWN_FILES = "own files"
    """Files that a script lists individually."""


@dataclass(frozen=True, slots=True)
class PhaseSource:
    """The file or files of one phase.

    The source is one NIfTI or NRRD file, with `volume` as the index along a fourth axis, or the
    DICOM files of one stack in slice order. `frames` is the frame in each file, if the files
    contain several. `time_s` is set if the files state the time.
    """

    files: tuple[Path, ...]
    volume: int = 0
    time_s: float | None = None
    frames: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class NamedMask:
    """A mask of a case, with its name in the data set.

    `label` is the foreground value, or None if every value above 0 is foreground. `region` names
    what the mask outlines.
    """

    name: str
    path: Path
    label: int | None = None
    region: str = "tumour"


@dataclass(frozen=True, slots=True)
class Visit:
    """The visit at which a patient was examined: its name, and its chronological number from 0.

    `index` is None if the order of a patient's visits is unknown.
    """

    name: str
    index: int | None = None


@dataclass(frozen=True, slots=True)
class CaseFiles:
    """The files of one case in a data set.

    `phases` are in order of time. `reference` is the expert mask, `automatic` is the automatic mask
    of the data set. `info` is the MAMA-MIA patient JSON. `problems` are sentences about why the
    case cannot be opened, such as "phase 1 is missing". `hides_box` states whether the breast box
    in `info` must not be used, because it reveals the side of the lesion. `warnings` are sentences
    about assumptions made while the phases were found, for example in DICOM, and about unused files
    with the case's name. `patient`, `visit` and `side` are "" or None if the layout does not state
    them. `masks` are all masks by name, and `columns` is the case's row in the layout's table.
    `source` is a folder of a DICOM study or a scene of 3D Slicer. `phases`, `problems` and
    `warnings` of a DICOM study are read from its headers when they are first used
    (`io.layouts.complete`). `person` identifies the person if a table states that two patients are
    the same person; `split` is the part of the data set that the case belongs to. `reference_label`
    is the tumour's value in the reference, or None if every value above 0 is tumour.
    """

    case_id: str
    phases: Sequence[PhaseSource]
    reference: Path | None = None
    automatic: Path | None = None
    info: Path | None = None
    problems: Sequence[str] = ()
    hides_box: bool = False
    warnings: Sequence[str] = ()
    patient: str = ""
    visit: Visit | None = None
    side: str = ""
    masks: tuple[NamedMask, ...] = ()
    columns: Mapping[str, str] = field(default_factory=lambda: _NO_COLUMNS)
    source: Path | None = None
    person: str = ""
    split: str = ""
    reference_label: int | None = None

    @property
    def is_pending(self) -> bool:
        """Whether the headers of the case have yet to be read."""
        return isinstance(self.phases, Deferred) and not self.phases.is_read

    @property
    def person_key(self) -> str:
        """The person examined: as stated in a table, otherwise the patient."""
        named = self.person if self.person not in ("", "0") else ""
        return f"person {named}" if named else self.patient or self.case_id

    @property
    def is_series(self) -> bool:
        """Whether all phases are in one 4-D file, which is best read in one pass."""
        if any(source.frames for source in self.phases):
            return False
        return len(self.phases) > 1 and len({source.files for source in self.phases}) == 1


@dataclass(frozen=True, slots=True)
class DataSet:
    """A folder or file of cases in one layout; it is never changed.

    `layout` names the layout file if `kind` is PATTERN. `others` are files that are not phases,
    with their role. `leftover` are files that matched no pattern. `refused` are unreadable images,
    with the reason.
    """

    root: Path
    kind: LayoutKind
    cases: tuple[CaseFiles, ...]
    clinical: Path | None = None
    splits: Path | None = None
    layout: str = ""
    others: tuple[tuple[Path, str], ...] = ()
    leftover: tuple[Path, ...] = ()
    refused: tuple[tuple[Path, str], ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Name of the folder."""
        return self.root.name

    @property
    def folders(self) -> frozenset[Path]:
        """All folders that contain a file of the data set."""
        cases = ((case.reference, case.automatic, case.info) for case in self.cases)
        files = [path for paths in cases for path in paths if path is not None]
        files += [path for path in (self.clinical, self.splits) if path is not None]
        folders = {path.parent for path in files}
        for case in self.cases:
            if case.source is not None and case.source.is_dir():
                folders.update(Path(path) for path, _, names in os.walk(case.source) if names)
            else:
                folders.update(path.parent for phase in case.phases for path in phase.files)
        return frozenset(folders)

    def by_id(self) -> Mapping[str, CaseFiles]:
        """Return the cases by id."""
        return MappingProxyType({case.case_id: case for case in self.cases})

    def case(self, case_id: str) -> CaseFiles:
        """Return the case with this id; raise a `CaseError` that lists similar ids if unknown."""
        files = self.by_id().get(case_id)
        if files is None:
            case_ids = ", ".join(case.case_id for case in self.cases[:5])
            raise CaseError(
                f"expected a case {case_id!r} in {self.root}, but found "
                f"{count_of(len(self.cases), 'case')}, first {case_ids}: check the spelling"
            )
        return files


def list_source(case: CaseFiles) -> Iterator[Path]:
    """Yield the files of a case's study sorted by name, without reading them."""
    for folder, folders, names in os.walk(case.source) if case.source is not None else ():
        folders.sort()
        yield from (Path(folder, name) for name in sorted(names) if not name.startswith("."))
