"""The work that a batch does for a case, the case's files, and the store of results.

The store is a file whose lines have checksums; only the process that starts the batch writes to it.
A result is reused if the key of the work and the fingerprints of all files are unchanged. Failed
cases are also recorded, but are run again.
"""

import hashlib
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import astuple, dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Final, Generic, TypeVar, get_args, get_type_hints

from napari_mamamia.core import errors
from napari_mamamia.core.cohort import CaseRecord
from napari_mamamia.core.progress import paced
from napari_mamamia.core.provenance import software_version
from napari_mamamia.core.records import FailureCause
from napari_mamamia.io.data_set.mask_files import find_masks, list_masks, no_mask_error
from napari_mamamia.io.files.append_file import CheckedLines, read_checked_lines
from napari_mamamia.io.files.checksums import sha256_of
from napari_mamamia.io.files.file_names import case_key
from napari_mamamia.io.files.record_codec import RecordCodec
from napari_mamamia.io.files.sources import CaseFiles
from napari_mamamia.services.batch.output_folder import Existing
from napari_mamamia.services.case.data_set import OpenDataSet

R = TypeVar("R")

POLL_S: Final = 0.1
"""Longest time in s without a progress report while waiting; half of the limit for long work."""
STORE_NAME: Final = "case_results.jsonl"


_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CaseInputs:
    """One case of a batch: its id and the files that its result depends on (None if missing).

    `about` is a dataclass with plain values about the case, such as the contents of its files.
    """

    case_id: str
    files: tuple[Path | None, ...] = ()
    about: Any = None


@dataclass(frozen=True, slots=True)
class CaseWork(Generic[R]):
    """The work to do for each case; it can be sent to another process or computer.

    Parameters
    ----------
    name
        The name of the work, such as "score".
    function
        A module-level function that takes the inputs and `settings`. It returns the result or
        raises an error; the message of a `MamamiaError` becomes the reason why the case failed.
    settings
        A frozen dataclass with plain values on which the result depends, in addition to the files.
    result_type
        The dataclass that `function` returns. Its fields are str, int, float, bool, enums, nested
        dataclasses of this kind, tuples of one of these types, or None.
    """

    name: str
    function: Callable[[CaseInputs, Any], R]
    settings: Any
    result_type: type[R]

    @property
    def key(self) -> str:
        """Digest of everything that a result depends on except the files.

        It covers the name, the function, the settings, the fields of the result, and the version of
        this software.
        """
        columns = _list_columns(self.result_type)
        function = f"{self.function.__module__}.{self.function.__qualname__}"
        parts = (self.name, function, repr(self.settings), columns, software_version())
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a batch runs, and how long one case may take.

    Without `workers` and `scheduler`, the batch runs in this process. With `workers`, it runs in
    that many processes on this computer. With `scheduler` (``tcp://host:port``), it runs on a
    dask.distributed cluster; its computers must have this software installed and must access the
    files under the same absolute paths.

    Parameters
    ----------
    time_limit_s
        The time limit for a case in s; a case that takes longer is stopped and fails. With a limit,
        cases run in a subprocess, which can be killed. None sets no limit.
    workers
        The number of worker processes. No more processes are started than there are cases.
    patience_s
        The time in s to wait for workers to connect to the scheduler. The wait for a scheduler that
        does not respond is at most 10 s.
    """

    workers: int = 0
    scheduler: str = ""
    time_limit_s: float | None = None
    patience_s: float = 60.0

    def __post_init__(self) -> None:
        if self.workers < 0:
            raise ValueError(
                "expected the number of workers to be 0 or above, but it is "
                f"{self.workers}: use 0 for none"
            )
        if self.workers and self.scheduler:
            raise ValueError(
                "expected either workers on this computer or the address of a scheduler, but got "
                f"both ({self.workers} and {self.scheduler}): choose one of them"
            )
        if self.time_limit_s is not None and not self.time_limit_s > 0:
            raise ValueError(
                f"expected the time limit to be above 0 s, but it is {self.time_limit_s:g} s: "
                "enter a time in seconds"
            )


@dataclass(frozen=True, slots=True)
class FilePrint:
    """The fingerprint of a file: its size in bytes, modification time and SHA-256."""

    size: int
    mtime_ns: int
    sha256: str

    @classmethod
    def of(cls, path: Path) -> "FilePrint":
        """Return the fingerprint of a file; raise `FormatError` if the file cannot be read."""
        try:
            status = path.stat()
        except OSError as error:
            raise errors.FormatError(
                f"expected {path} to be a readable file, but {error.strerror or error}: check "
                "that the file exists and that you have permission to read it"
            ) from error
        return cls(status.st_size, status.st_mtime_ns, sha256_of(path))

    def fits(self, path: Path) -> bool:
        """Return whether the file is unchanged.

        The same size and modification time count as the same content. If only the modification time
        differs, as with a copy, the SHA-256 decides.
        """
        try:
            status = path.stat()
            if status.st_size != self.size:
                return False
            return status.st_mtime_ns == self.mtime_ns or sha256_of(path) == self.sha256
        except (OSError, errors.FormatError):
            return False


@dataclass(frozen=True, slots=True)
class Outcome(Generic[R]):
    """The outcome of one case: a result and the fingerprints of its files, or a failure."""

    case_id: str
    result: R | None = None
    reason: str = ""
    prints: tuple[FilePrint | None, ...] = ()
    cause: FailureCause = FailureCause.ERROR
    remedies: tuple[errors.Remedy, ...] = ()
    missing_extra: tuple[str, str] | None = None
    """The missing package and the extra that installs it; such a case does not count as failed."""


def attempt(work: CaseWork[R], inputs: CaseInputs) -> Outcome[R]:
    """Run `work` in this process and return its outcome; a failure is returned, not raised.

    The fingerprints are taken before the work, so a file that changes during the work counts as
    changed in the next run.
    """
    try:
        prints = tuple(FilePrint.of(path) if path else None for path in inputs.files)
        result = work.function(inputs, work.settings)
        return Outcome(inputs.case_id, result, "", prints)
    except errors.MissingExtraError as error:
        missing = (error.package, error.extra)
        return Outcome(inputs.case_id, reason=str(error), missing_extra=missing)
    except errors.MamamiaError as error:
        return Outcome(inputs.case_id, reason=str(error), remedies=errors.list_remedies(error))
    except OSError as error:
        return Outcome(inputs.case_id, reason=errors.refusal_text(error))
    except Exception as error:  # noqa: BLE001 - the one place where a batch survives a case
        _log.exception("case %s failed", inputs.case_id)
        return Outcome(inputs.case_id, reason=f"unexpected {type(error).__name__}: {error}")


def _list_columns(record: type[Any]) -> tuple[Any, ...]:
    """Return the field names of a dataclass, including the names of nested dataclasses."""
    hints = get_type_hints(record)
    return tuple(
        (field.name, *map(_list_columns, _records_in(hints[field.name])))
        for field in fields(record)
    )


def _records_in(hint: Any) -> list[type[Any]]:
    """Return the dataclasses that occur in a type such as ``tuple[A, ...]`` or ``A | None``."""
    if isinstance(hint, type) and is_dataclass(hint):
        return [hint]
    return [record for argument in get_args(hint) for record in _records_in(argument)]


class ResultStore(Generic[R]):
    """The result store at `path`, opened for one run of `work`.

    Raises
    ------
    SaveConflictError
        If the file exists and `existing` is REFUSE, or another run is writing it.
    SaveError
        If the file cannot be written.
    """

    def __init__(self, path: Path, work: CaseWork[R], existing: Existing) -> None:
        if existing is Existing.REFUSE and path.exists():
            raise errors.SaveConflictError(
                f"{path} contains the results of an earlier run: continue that run, or replace "
                "its results",
                remedies=(errors.Remedy("resume"), errors.Remedy("overwrite")),
            )
        self._lines = CheckedLines(path, keep=existing in (Existing.RESUME, Existing.ADD))
        self._key = work.key
        self._codec = RecordCodec(work.result_type, "start the run again")

    def reusable(self, cases: Sequence[CaseInputs]) -> dict[str, R]:
        """Return the results of earlier runs that are still valid, by case id."""
        entries: dict[str, Mapping[str, Any]] = {}
        for entry in paced(read_checked_lines(self._lines.path), "Reading earlier results"):
            if entry["key"] == self._key and "result" in entry:
                entries[entry["case_id"]] = entry
        results: dict[str, R] = {}
        for inputs in paced(cases, "Comparing files with earlier results"):
            if inputs.case_id in entries and _is_unchanged(inputs, entries[inputs.case_id]):
                results[inputs.case_id] = self._codec.record(
                    entries[inputs.case_id]["result"], self._lines.path
                )
        return results

    def add(self, outcome: Outcome[R]) -> None:
        """Store one outcome; raise `SaveError` if it cannot be written."""
        entry: dict[str, Any] = {"case_id": outcome.case_id, "key": self._key}
        if outcome.result is None:
            entry["reason"] = outcome.reason
        else:
            entry["files"] = [file_print and astuple(file_print) for file_print in outcome.prints]
            entry["result"] = self._codec.plain(outcome.result)
        self._lines.add(entry)

    def sync(self) -> None:
        """Flush lines that have been waiting for a second to the disk."""
        self._lines.sync()

    def close(self) -> None:
        """Flush all lines to the disk and close the file."""
        self._lines.close()


def _is_unchanged(inputs: CaseInputs, entry: Mapping[str, Any]) -> bool:
    prints = [file_print and FilePrint(*file_print) for file_print in entry["files"]]
    return len(prints) == len(inputs.files) and all(
        # A file that was missing must still be missing; both values are then None.
        file_print.fits(path) if file_print and path else file_print is path is None
        for file_print, path in zip(prints, inputs.files, strict=True)
    )


@dataclass(frozen=True, slots=True)
class MaskedInputs(CaseInputs):
    """One case with its mask; `files` are the files that the results depend on, with the mask last.

    For a case without a mask, `no_mask` lists files with similar names, or is "".
    """

    sources: CaseFiles | None = None
    record: CaseRecord | None = None
    no_mask: str = ""


def masked_inputs(
    opened: OpenDataSet,
    masks: Path | None,
    case_ids: Sequence[str],
    further: Sequence[str] = (),
) -> tuple[MaskedInputs, ...]:
    """Return each case with its mask, which is its reference or the mask in a folder.

    `further` lists folders with other masks that the results depend on, such as a vessel mask; an
    empty string is ignored.

    Raises
    ------
    CaseError
        If `case_ids` names an unknown case.
    FormatError
        If `masks` is missing or holds no mask.
    """
    data_set = opened.data_set
    cases = [data_set.case(case_id) for case_id in case_ids] or list(data_set.cases)
    ids = [files.case_id for files in cases]
    by_key: Mapping[str, Path] | None = None
    reasons: Mapping[str, str] = {}
    if masks is not None:
        by_key = masks_of_cases(masks, ids)
        reasons = list_masks(masks, ids).by_key().others
        if not by_key and not reasons:
            raise no_mask_error(masks)
    others = [masks_of_cases(Path(folder), ids) for folder in dict.fromkeys(further) if folder]
    inputs = []
    for files in cases:
        mask = files.reference if by_key is None else by_key.get(case_key(files.case_id))
        record = opened.record(files.case_id)
        phases = dict.fromkeys(path for source in files.phases for path in source.files)
        own_others = (other.get(case_key(files.case_id)) for other in others)
        beside = (*own_others, data_set.clinical if record else None, files.info)
        paths = tuple(path and path.absolute() for path in (*phases, *beside, mask))
        no_mask = reasons.get(case_key(files.case_id), "")
        sources = _make_absolute(files)
        sources = replace(sources, warnings=(*sources.warnings, *filter(None, (no_mask,))))
        inputs.append(
            MaskedInputs(
                files.case_id, paths, sources=sources, record=_times_only(record), no_mask=no_mask
            )
        )
    return tuple(inputs)


def masks_of_cases(folder: Path, case_ids: Collection[str] = ()) -> Mapping[str, Path]:
    """Return the masks in a folder for the given case ids, by the `case_key` of the case."""
    return {case_key(case_id): path for case_id, path in find_masks(folder, case_ids).items()}


def _make_absolute(files: CaseFiles) -> CaseFiles:
    phases = tuple(
        replace(source, files=tuple(path.absolute() for path in source.files))
        for source in files.phases
    )
    return replace(files, phases=phases, info=files.info and files.info.absolute())


def _times_only(record: CaseRecord | None) -> CaseRecord | None:
    """Return the part of a clinical row that a worker needs and that can be pickled."""
    if record is None:
        return None
    return CaseRecord(record.case_id, acquisition_times_s=record.acquisition_times_s, other={})
