"""The user's folder for one data set, with predictions, edited masks, scores and exports.

::

    predictions/<model>/<case>.nii.gz     with <case>.json, its provenance
    refined/<reader>/<case>.nii.gz        with <case>.json
    scores/  exports/
    mamamia_workspace.json                identifies the data set

The folder of a model or reader has exactly the name of the model or reader, so that people can find
it. The data set itself is never changed.
"""

import unicodedata
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, TypeAlias

from napari_mamamia.core.blinding import NOT_BLIND, Blinding, Hidden
from napari_mamamia.core.errors import CaseError
from napari_mamamia.io.files.file_names import case_key
from napari_mamamia.io.files.folders import natural_key
from napari_mamamia.io.workspace.place import WorkspaceMark

MASK_SUFFIX: Final = ".nii.gz"
StoredRole: TypeAlias = Literal["prediction", "refined"]

_FOLDERS: Final[dict[StoredRole, str]] = {"prediction": "predictions", "refined": "refined"}
_FORBIDDEN: Final = frozenset('<>:"/\\|?*')
_DEVICES: Final = frozenset(
    ["con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(1, 10))]
)
_MOST_BYTES: Final = 200
"""Largest length of a name in bytes; file systems allow 255, which leaves room for suffixes."""
_OF_PEOPLE: Final = (_FOLDERS["refined"], "findings", "measurements", "case_tags")
"""Folders in which each person has a subfolder."""


@dataclass(frozen=True, slots=True)
class FileState:
    """State of a file when it was examined; a different state indicates a later change."""

    path: Path
    size: int
    written_ns: int

    @classmethod
    def of(cls, path: Path) -> "FileState":
        """Return the current state of a file; raise OSError if it does not exist."""
        status = path.stat()
        return cls(path, status.st_size, status.st_mtime_ns)


@dataclass(frozen=True, slots=True)
class StoredMask:
    """A mask in the workspace; `name` is the model or reader that made it."""

    role: StoredRole
    name: str
    path: Path


@dataclass(frozen=True, slots=True)
class Workspace:
    """Paths in a workspace, whose folders are created when the first file is saved.

    `mark` is the entry for the data set in the workspace's file. With `blinding`, hidden files are
    not listed, and only files of `reader` (who may be None) are listed.

    Examples
    --------
    >>> workspace = Workspace(Path("trial-workspace"))
    >>> workspace.refined("Ana López", "DUKE_001").as_posix()
    'trial-workspace/refined/Ana López/DUKE_001.nii.gz'
    """

    root: Path
    mark: WorkspaceMark | None = field(default=None, compare=False, repr=False)
    blinding: Blinding = NOT_BLIND
    reader: str | None = None

    def note_data_set(self) -> None:
        """Record the data set in the workspace folder if it exists; failures are ignored."""
        if self.mark is not None:
            self.mark.write(self.root)

    @property
    def scores(self) -> Path:
        """Folder for score tables."""
        return self.root / "scores"

    @property
    def exports(self) -> Path:
        """Folder for exported masks."""
        return self.root / "exports"

    @property
    def predictions(self) -> Path:
        """Folder with the masks of each model in a subfolder."""
        return self.root / _FOLDERS["prediction"]

    def prediction(self, model: str, case_id: str) -> Path:
        """Return the path of a model's mask for a case, whether or not it exists.

        Raises
        ------
        CaseError
            If `model` or `case_id` cannot be a file name, or `model` differs only in letter case
            from a model that has predictions.
        """
        return self._find_mask_path("prediction", model, case_id)

    def refined(self, reader: str, case_id: str) -> Path:
        """Return the path of a reader's mask for a case, whether or not it exists.

        Raises
        ------
        CaseError
            If `reader` or `case_id` cannot be a file name, or `reader` differs only in letter case
            from a reader who has masks.
        """
        return self._find_mask_path("refined", reader, case_id)

    def models(self) -> tuple[str, ...]:
        """Return the models that have a predictions folder, in natural order."""
        return self._list_shown("prediction")

    def readers(self) -> tuple[str, ...]:
        """Return the readers who have a folder of edited masks, in natural order."""
        return self._list_shown("refined")

    def people(self) -> tuple[str, ...]:
        """Return the people with masks, findings, measurements or tags, in natural order."""
        names = {name for folder in _OF_PEOPLE for name in _list_folders(self.root / folder)}
        shown = (name for name in names if self._is_shown("refined", name))
        return tuple(sorted(shown, key=natural_key))

    def case_ids(self, role: StoredRole, name: str) -> frozenset[str]:
        """Return the ids of cases with a mask from a model or reader."""
        if not self._is_shown(role, name):
            return frozenset()
        try:
            entries = list((self.root / _FOLDERS[role] / name).iterdir())
        except OSError:
            return frozenset()
        masks = (entry.name for entry in entries if entry.name.endswith(MASK_SUFFIX))
        return frozenset(mask.removesuffix(MASK_SUFFIX) for mask in masks)

    def masks_of(self, case_id: str) -> tuple[StoredMask, ...]:
        """Return the existing masks of a case, predictions first, sorted by name."""
        masks = (
            StoredMask(role, name, self.listed_path(role, name, case_id))
            for role in _FOLDERS
            for name in self._list_shown(role)
        )
        return tuple(mask for mask in masks if mask.path.is_file())

    def listed_path(self, role: StoredRole, name: str, case_id: str) -> Path:
        """Return the path of a mask whose model or reader is listed, without checking the name."""
        return self.root / _FOLDERS[role] / name / f"{case_id}{MASK_SUFFIX}"

    def newest_prediction(self, case_id: str) -> tuple[str, FileState] | None:
        """Return the model with a case's latest prediction, and the state of the mask file."""
        files = []
        for name in self._list_shown("prediction"):
            with suppress(OSError):
                path = self.predictions / name / f"{case_id}{MASK_SUFFIX}"
                files.append((name, FileState.of(path)))
        return max(files, key=lambda file: file[1].written_ns, default=None)

    def _find_mask_path(self, role: StoredRole, name: str, case_id: str) -> Path:
        who = "reader" if role == "refined" else "model"
        name = file_name(name, f"the name of a {who}")
        for other in self._list_names(role):
            if other != name and case_key(other) == case_key(name):
                raise CaseError(
                    f"many systems do not distinguish the {who} {name!r} from {other!r}, who has "
                    f"masks in {self.root}: choose one spelling, or a new name"
                )
        case_id = file_name(case_id, "a case id")
        return self.root / _FOLDERS[role] / name / f"{case_id}{MASK_SUFFIX}"

    def _list_shown(self, role: StoredRole) -> tuple[str, ...]:
        return tuple(name for name in self._list_names(role) if self._is_shown(role, name))

    def _is_shown(self, role: StoredRole, name: str) -> bool:
        if role == "prediction":
            return not self.blinding.hides(Hidden.MODEL)
        return not self.blinding.hides(Hidden.OTHER_READERS) or name == self.reader

    def _list_names(self, role: StoredRole) -> tuple[str, ...]:
        return tuple(sorted(_list_folders(self.root / _FOLDERS[role]), key=natural_key))


def _list_folders(folder: Path) -> list[str]:
    try:
        entries = [entry for entry in folder.iterdir() if entry.is_dir()]
    except OSError:
        return []
    return [entry.name for entry in entries if not entry.name.startswith(".")]


def file_name(text: str, what: str = "a name") -> str:
    r"""Return a file or folder name that every common system accepts; raise an error if invalid.

    Inner spaces and letters of any alphabet are kept; accents are stored in one form (NFC). Nothing
    else is changed, so two names never become equal.

    Parameters
    ----------
    text
        The name as a person typed it.
    what
        Description of the name for the message, such as "the name of a reader".

    Raises
    ------
    CaseError
        If the name is empty, is too long, starts or ends with a space or full stop, contains a
        control character or one of ``< > : " / \ | ? *``, or is a device name such as ``con``.
    """
    name = unicodedata.normalize("NFC", text)
    reason = _why_not(name)
    if reason:
        raise CaseError(
            f"expected {what} to be a valid folder name, but {text!r} {reason}: use letters, "
            "digits, inner spaces, - and _"
        )
    return name


def _why_not(name: str) -> str:
    if not name.strip(" ."):
        return "is empty" if not name.strip() else "consists of full stops"
    if name != name.strip(" .\u00a0"):
        return "starts or ends with a space or full stop"
    if any(unicodedata.category(letter) in {"Cc", "Cs", "Zl", "Zp"} for letter in name):
        return "contains a control character"
    bad = sorted(_FORBIDDEN.intersection(name))
    if bad:
        return f"holds {' '.join(bad)}"
    if len(name.encode()) > _MOST_BYTES:
        return f"is longer than {_MOST_BYTES} bytes"
    return "is a device name" if name.split(".")[0].lower() in _DEVICES else ""
