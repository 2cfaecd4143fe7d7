"""The results of a batch, kept case by case as they come, so that the next run need not redo them.

One file of checked lines, written by the process that drives the batch, wherever the cases run. A
result is used again if the work's key and the prints of all its files are the same; failures are
noted too, but tried again.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, fields, is_dataclass
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any, Final, Generic, TypeVar, get_args, get_origin, get_type_hints

from napari_mamamia.core.errors import SaveConflictError
from napari_mamamia.core.progress import report_progress
from napari_mamamia.io.files.checked_lines import CheckedLines, read_checked_lines
from napari_mamamia.services.batch.output_folder import Existing
from napari_mamamia.services.batch.work import POLL_S, CaseInputs, CaseWork, FilePrint, Outcome

R = TypeVar("R")

STORE_NAME: Final = "case_results.jsonl"


class ResultStore(Generic[R]):
    """The store at `path`, open for one run of `work`.

    Raises
    ------
    SaveConflictError
        If the file exists and `existing` is REFUSE, or another run is writing it.
    SaveError
        If the system refuses to write.
    """

    def __init__(self, path: Path, work: CaseWork[R], existing: Existing) -> None:
        if existing is Existing.REFUSE and path.exists():
            raise SaveConflictError(
                f"{path} holds the results of an earlier run: continue it with --resume, or "
                "replace it with --overwrite"
            )
        self._lines = CheckedLines(path, keep=existing in (Existing.RESUME, Existing.ADD))
        self._key = work.key
        self._encode = _encoder(work.result_type)
        self._decode = _decoder(work.result_type)

    def reusable(self, cases: Sequence[CaseInputs]) -> dict[str, R]:
        """Find the results of earlier runs that still hold, by case id."""
        entries: dict[str, Mapping[str, Any]] = {}
        for entry in _paced(read_checked_lines(self._lines.path)):
            if entry is None:
                report_progress(0, len(cases), "Reading earlier results")
            elif entry["key"] == self._key and "result" in entry:
                entries[entry["case_id"]] = entry
        found: dict[str, R] = {}
        for inputs in _paced(cases):
            if inputs is None:
                report_progress(0, len(cases), "Comparing files with earlier results")
            elif inputs.case_id in entries and _unchanged(inputs, entries[inputs.case_id]):
                found[inputs.case_id] = self._decode(entries[inputs.case_id]["result"])
        return found

    def add(self, outcome: Outcome[R]) -> None:
        """Keep one outcome; `SaveError` if it cannot be written, earlier ones stay."""
        entry: dict[str, Any] = {"case_id": outcome.case_id, "key": self._key}
        if outcome.result is None:
            entry["reason"] = outcome.reason
        else:
            entry["files"] = [own and astuple(own) for own in outcome.prints]
            entry["result"] = self._encode(outcome.result)
        self._lines.add(entry)

    def sync(self) -> None:
        """Force to the disk what has waited for a second."""
        self._lines.sync()

    def close(self) -> None:
        """Force everything to the disk and let go of the file."""
        self._lines.close()


def _unchanged(inputs: CaseInputs, entry: Mapping[str, Any]) -> bool:
    prints = [own and FilePrint(*own) for own in entry["files"]]
    return len(prints) == len(inputs.files) and all(
        own.fits(path) if own and path else own is path is None
        for own, path in zip(prints, inputs.files, strict=True)
    )


T = TypeVar("T")


def _paced(items: "Sequence[T] | Iterator[T]") -> Iterator[T | None]:
    """Pass items on, with a None in between whenever it is time for a sign of life."""
    spoken = time.monotonic()
    for item in items:
        yield item
        if time.monotonic() - spoken > POLL_S:
            spoken = time.monotonic()
            yield None


def _encoder(record: type[R]) -> Callable[[R], dict[str, Any]]:
    names = tuple(field.name for field in fields(record))  # type: ignore[arg-type]
    return lambda result: {name: _plain(getattr(result, name)) for name in names}


def _plain(value: Any) -> Any:
    """Return a field's value as JSON that reads back the same; nan and inf become texts."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(float(value))
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    return value


def _decoder(record: type[R]) -> Callable[[Mapping[str, Any]], R]:
    readers = {name: _reader(hint) for name, hint in get_type_hints(record).items()}
    return partial(_decoded, record, readers)


def _decoded(
    record: type[R], readers: Mapping[str, Callable[[Any], Any]], values: Mapping[str, Any]
) -> R:
    return record(**{name: readers[name](value) for name, value in values.items()})


def _reader(hint: Any) -> Callable[[Any], Any]:
    if isinstance(hint, type) and is_dataclass(hint):
        return _decoder(hint)
    if hint is float or (isinstance(hint, type) and issubclass(hint, Enum)):
        return hint
    if get_origin(hint) is tuple:
        item = _reader(get_args(hint)[0])
        return lambda values: tuple(map(item, values))
    if type(None) in get_args(hint):
        some = _reader(next(one for one in get_args(hint) if one is not type(None)))
        return lambda value: None if value is None else some(value)
    return lambda value: value
