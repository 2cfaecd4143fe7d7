"""Results of a batch, stored case by case as they arrive, so that the next run can reuse them.

The store is one file of lines with checksums, written by the process that starts the batch. A
result is reused if the work's key and the fingerprints of all its files are the same; failed cases
are recorded too, but run again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import astuple
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from napari_mamamia.core.errors import Remedy, SaveConflictError
from napari_mamamia.core.progress import paced
from napari_mamamia.io.files.checked_lines import CheckedLines, read_checked_lines
from napari_mamamia.io.files.record_codec import RecordCodec
from napari_mamamia.services.batch.output_folder import Existing
from napari_mamamia.services.batch.work import CaseInputs, CaseWork, FilePrint, Outcome

R = TypeVar("R")

STORE_NAME: Final = "case_results.jsonl"


class ResultStore(Generic[R]):
    """The result store at `path`, open for one run of `work`.

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
                f"{path} holds the results of an earlier run: continue it, or replace it",
                remedies=(Remedy("resume"), Remedy("overwrite")),
            )
        self._lines = CheckedLines(path, keep=existing in (Existing.RESUME, Existing.ADD))
        self._key = work.key
        self._codec = RecordCodec(work.result_type, "start the run anew")

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
        """Flush lines to the disk that have waited for a second."""
        self._lines.sync()

    def close(self) -> None:
        """Flush everything to the disk and close the file."""
        self._lines.close()


def _is_unchanged(inputs: CaseInputs, entry: Mapping[str, Any]) -> bool:
    prints = [file_print and FilePrint(*file_print) for file_print in entry["files"]]
    return len(prints) == len(inputs.files) and all(
        # A file that was missing then must be missing now: both are None.
        file_print.fits(path) if file_print and path else file_print is path is None
        for file_print, path in zip(prints, inputs.files, strict=True)
    )
