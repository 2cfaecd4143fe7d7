"""The journal of a mask, in which every editing step is saved when the mouse is released.

``refined/READER/ID.journal``, next to the mask, contains one JSON line for each opening, step,
undo, redo, jump and saving. The file only grows. It records how the annotation was made, so the
mask can be reproduced bit for bit. The lines form a chain, whose first record refers to the case,
reader, grid, format and initial mask.
"""

import base64
import json
import math
import threading
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np

from napari_mamamia.core import edits
from napari_mamamia.core.blinding import NOT_BLIND, Blinding
from napari_mamamia.core.box import Box
from napari_mamamia.core.case import LabelMap
from napari_mamamia.core.difference import BitChange, Difference
from napari_mamamia.core.errors import FormatError, SaveConflictError, SaveError
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.names import count_of
from napari_mamamia.core.provenance import Setting, software_version
from napari_mamamia.io.files.append_file import (
    NO_CHAIN,
    ChainedLines,
    line_at,
    scan_chained_lines,
)
from napari_mamamia.io.files.foreign import reads
from napari_mamamia.io.workspace.workspace import MASK_SUFFIX

FORMAT_VERSION: Final = 3
"""Version of the journal format that is read and written."""


_LEVEL: Final = 1
_MOST_VOXELS: Final = 1 << 31
"""Largest number of voxels in a volume (our choice); breast exams have 5 to 200 million."""
_NOT_FINITE: Final = "float"
_SYNC_AFTER_S: Final = 0.5
"""Longest time in s between two writes to the disk.

A power failure loses at most the steps of this period; a killed program loses none.
"""

_SUFFIX: Final = ".journal"

_NOT_A_RECORD: Final = "it contains no journal record ({})"
_NO_RECORD: Final = (
    LookupError,
    TypeError,
    ValueError,
    ArithmeticError,
    AttributeError,
    MemoryError,
)
"""Exceptions raised when JSON with an unexpected structure is read as a record."""


@dataclass(frozen=True, slots=True)
class Opened:
    """Record of the opening of a case, with the state to which the following steps apply.

    Parameters
    ----------
    base
        The mask with which editing starts, as uint8 values.
    base_name
        The origin of the mask, such as "prediction kinetic", or "" for an empty mask.
    base_sha256
        Checksum of the mask's file, or "" if there was no file.
    labels_crc
        CRC-32 of the whole label array at the time of opening.
    phases
        Type and CRC-32 of each phase's values; empty if the phases were not read.
    continues
        Whether earlier steps and marks continue, after a crash or when a saved mask is reopened.
    blinding
        The information that is hidden from the reader until the next opening.
    """

    case_id: str
    reader: str
    base: LabelMap
    base_name: str
    base_sha256: str
    labels_crc: int
    phases: tuple[str, ...] = ()
    continues: bool = False
    blinding: Blinding = NOT_BLIND
    software: str = field(default_factory=software_version)


@dataclass(frozen=True, slots=True)
class Saved:
    """Record of the saving of a mask, with the SHA-256 of the file and the CRC-32 of its labels.

    `head` is the hash of the last record that the mask includes, because a reader may continue
    painting during saving, or "" if unknown.
    """

    sha256: str
    labels_crc: int
    head: str = ""


JournalRecord: TypeAlias = Opened | edits.Step | edits.Turn | edits.Jump | Saved


def encoded(record: JournalRecord) -> bytes:
    """Return a record as a line of JSON with the current time."""
    content = {"at": datetime.now(UTC).isoformat(timespec="microseconds"), **_encode_record(record)}
    head = json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")
    if not isinstance(record, edits.Step):
        return head
    return b"".join((head[:-1], b',"change":', *_change_parts(record.difference), b"}"))


def decoded(entry: Mapping[str, Any]) -> tuple[str, JournalRecord]:
    """Return the time of a record, and the record.

    Raises
    ------
    FormatError
        If the record was written in another version of the format.
    KeyError, TypeError, ValueError
        If the entry is not a record.
    """
    at, kind = str(entry["at"]), entry["kind"]
    if kind == "opened":
        return at, _parse_opened(entry)
    if kind == "step":
        change = _parse_difference(entry["change"])
        return at, edits.Step(int(entry["n"]), _parse_edit(entry["edit"], change.label), change)
    if kind == "saved":
        return at, Saved(str(entry["sha256"]), int(entry["labels_crc"]), str(entry.get("head", "")))
    if kind == "jump":
        return at, edits.Jump(int(entry["from"]), int(entry["to"]))
    return at, edits.Turn(kind)


def _encode_record(record: JournalRecord) -> dict[str, Any]:
    if isinstance(record, edits.Turn):
        return {"kind": record.value}
    if isinstance(record, edits.Jump):
        return {"kind": "jump", "from": record.start, "to": record.stop}
    if isinstance(record, Saved):
        return {
            "kind": "saved",
            "sha256": record.sha256,
            "labels_crc": record.labels_crc,
            "head": record.head,
        }
    if isinstance(record, edits.Step):
        return {
            "kind": "step",
            "n": record.number,
            "edit": _edit_content(record.edit),
        }
    return _opened_content(record)


def _opened_content(record: Opened) -> dict[str, Any]:
    grid, box = record.base.grid, record.base.box
    crop = np.ascontiguousarray(record.base.crop, dtype=np.uint8)
    return {
        "kind": "opened",
        "version": FORMAT_VERSION,
        "software": record.software,
        "case_id": record.case_id,
        "reader": record.reader,
        "shape": list(grid.shape),
        "affine": grid.affine.ravel().tolist(),
        "header": "" if grid.nifti_header is None else _encode_bytes(grid.nifti_header),
        "base": {
            "name": record.base_name,
            "sha256": record.base_sha256,
            "box": [*box.start, *box.stop],
            "labels": _encode_bytes(zlib.compress(crop.tobytes(), _LEVEL)),
        },
        "labels_crc": record.labels_crc,
        "phases": list(record.phases),
        "continues": record.continues,
        "hidden": list(record.blinding.names),
    }


def _parse_opened(entry: Mapping[str, Any]) -> Opened:
    if entry["version"] != FORMAT_VERSION:
        raise FormatError(
            f"expected a journal of format {FORMAT_VERSION}, but found format {entry['version']}, "
            f"written by {entry['software']}: replay the journal with that version"
        )
    z, y, x = (int(n) for n in entry["shape"])
    if z * y * x > _MOST_VOXELS:
        raise ValueError(f"its volume of {z} x {y} x {x} voxels is larger than any exam")
    affine = np.array(entry["affine"], dtype=np.float64).reshape(4, 4)
    grid = Grid((z, y, x), affine, _decode_bytes(entry["header"]) or None)
    base = entry["base"]
    box = _parse_box(base["box"])
    size = math.prod(box.shape)
    crop = np.frombuffer(_inflate_bytes(_decode_bytes(base["labels"]), size), np.uint8)
    return Opened(
        case_id=str(entry["case_id"]),
        reader=str(entry["reader"]),
        base=LabelMap(grid, box, crop.reshape(box.shape)),
        base_name=str(base["name"]),
        base_sha256=str(base["sha256"]),
        labels_crc=int(entry["labels_crc"]),
        phases=tuple(map(str, entry["phases"])),
        continues=bool(entry["continues"]),
        blinding=Blinding.of(map(str, entry.get("hidden", ()))),
        software=str(entry["software"]),
    )


def _inflate_bytes(packed: bytes, size: int) -> bytes:
    try:
        return zlib.decompressobj().decompress(packed, size + 1)
    except zlib.error as error:
        raise ValueError(str(error)) from error


def _edit_content(edit: edits.Edit) -> dict[str, Any]:
    content: dict[str, Any] = {
        "name": edit.name,
        "path_mm": edit.path_mm,
        "changed_voxels": edit.changed_voxels,
        "at_s": edit.at_s,
        "parameters": [[name, _setting_content(value)] for name, value in edit.parameters],
    }
    if edit.stroke is not None:
        brush = edit.stroke.brush
        content["brush"] = {
            "tool": brush.tool.value,
            "action": brush.action.value,
            "radius_mm": float(brush.radius_mm),
            "tolerance": float(brush.tolerance),
            "features": brush.features.value,
            "extent": brush.extent.value,
            "plane_axis": int(brush.plane_axis),
            "sampling": brush.sampling.value,
            "label": int(brush.label),
            "whole": bool(brush.whole),
        }
        content["path"] = [list(point) for point in edit.stroke.path]
    return content


def _parse_edit(content: Mapping[str, Any], label: int) -> edits.Edit:
    stroke = None
    if "brush" in content:
        path = ((float(z), float(y), float(x)) for z, y, x in content["path"])
        stroke = edits.Stroke(_parse_brush(content["brush"]), tuple(path))
    return edits.Edit(
        name=str(content["name"]),
        stroke=stroke,
        parameters=tuple(
            (str(name), _parse_setting(value)) for name, value in content["parameters"]
        ),
        path_mm=float(content["path_mm"]),
        changed_voxels=int(content["changed_voxels"]),
        at_s=float(content["at_s"]),
        label=label,
    )


def _setting_content(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return {_NOT_FINITE: repr(value)}
    return value


def _parse_setting(value: Any) -> Setting:
    if isinstance(value, dict):
        return float(value[_NOT_FINITE])
    if value is not None and not isinstance(value, bool | int | float | str):
        raise TypeError(f"expected a single value, but found {type(value).__name__}")
    return value


def _parse_brush(content: Mapping[str, Any]) -> edits.Brush:
    return edits.Brush(
        tool=edits.Tool(content["tool"]),
        action=edits.Action(content["action"]),
        radius_mm=float(content["radius_mm"]),
        tolerance=float(content["tolerance"]),
        features=edits.Features(content["features"]),
        extent=edits.Extent(content["extent"]),
        plane_axis=int(content["plane_axis"]),
        sampling=edits.Sampling(content["sampling"]),
        label=int(content["label"]),
        whole=content.get("whole", False) is True,
    )


def _change_parts(difference: Difference) -> Iterator[bytes]:
    yield b'{"label":%d' % difference.label
    channels = {
        b"labels": difference.labels,
        b"membership": difference.membership,
        b"evidence": difference.evidence,
    }
    for name, changes in channels.items():
        yield b',"%s":[' % name
        yield from _encode_changes(changes)
        yield b"]"
    yield b"}"


def _encode_changes(changes: tuple[BitChange, ...]) -> Iterator[bytes]:
    for number, change in enumerate(changes):
        box = ",".join(map(str, (*change.box.start, *change.box.stop)))
        yield b"," if number else b""
        yield f'{{"box":[{box}],"n":{change.count},"where":"'.encode("ascii")
        yield base64.b64encode(change.where)
        yield b'","planes":["'
        yield b'","'.join(map(base64.b64encode, change.planes))
        yield b'"]}'


def _parse_difference(content: Mapping[str, Any]) -> Difference:
    return Difference(
        int(content["label"]),
        tuple(_parse_change(change, 1) for change in content["labels"]),
        tuple(_parse_change(change, 4) for change in content["membership"]),
        tuple(_parse_change(change, 2) for change in content.get("evidence", ())),
    )


def _parse_change(content: Mapping[str, Any], n_planes: int) -> BitChange:
    planes = tuple(_decode_bytes(plane) for plane in content["planes"])
    if len(planes) != n_planes:
        raise ValueError(f"expected {count_of(n_planes, 'byte plane')}, but found {len(planes)}")
    return BitChange(
        _parse_box(content["box"]), int(content["n"]), _decode_bytes(content["where"]), planes
    )


def _parse_box(content: Any) -> Box:
    z0, y0, x0, z1, y1, x1 = (int(n) for n in content)
    return Box((z0, y0, x0), (z1, y1, x1))


def _encode_bytes(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")


def _decode_bytes(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


def journal_path(mask_path: Path) -> Path:
    """Return the path of the journal for a reader's mask.

    Examples
    --------
    >>> journal_path(Path("refined/Ana/DUKE_001.nii.gz")).as_posix()
    'refined/Ana/DUKE_001.journal'
    """
    return mask_path.with_name(mask_path.name.removesuffix(MASK_SUFFIX) + _SUFFIX)


@dataclass(frozen=True, slots=True)
class PlacedRecord:
    """A record with its time (ISO 8601, UTC) and its position in the file.

    `number` is the position in the file, counted from 1, and `start` is the offset of the first
    byte. `index` is the position at the time of writing, counted from 0, which differs if records
    were removed, duplicated or moved. `hash` is the hash of the record, and `prev` the hash of the
    previous record.
    """

    at: str
    start: int
    record: JournalRecord
    number: int = 0
    index: int = 0
    hash: str = ""
    prev: str = ""


@dataclass(frozen=True, slots=True)
class Damage:
    """A damaged place: a record that is unreadable or does not follow the previous record.

    `record` is the position in the file, counted from 1; `is_lost` states whether the record is
    unreadable.
    """

    record: int
    start: int
    reason: str
    is_lost: bool = True

    @property
    def text(self) -> str:
        """Position and kind of the damage as text."""
        return f"record {self.record} (byte {self.start}): {self.reason}"


@dataclass(frozen=True, slots=True)
class JournalContents:
    """The records of a journal, up to the first damaged one."""

    records: tuple[PlacedRecord, ...]
    damage: Damage | None = None


@reads("a journal", "choose the journal next to the mask")
def scan_journal(path: Path) -> Iterator[PlacedRecord | Damage]:
    """Yield all records of a journal in order, and a `Damage` for each changed record.

    A readable record that does not follow the previous record comes after its `Damage`.

    Raises
    ------
    FormatError
        If the file cannot be read, is not a journal, or was written in another version of the
        format.
    """
    for line in scan_chained_lines(path):
        if line.number == 1 and line.problem == NO_CHAIN:
            raise FormatError(
                f"expected a journal of format {FORMAT_VERSION} at {path}, but an earlier version "
                "wrote it, so its steps cannot be replayed; the saved mask is not affected"
            )
        if line.problem:
            yield Damage(line.number, line.start, line.problem, is_lost=line.entry is None)
        if line.entry is None:
            continue
        try:
            at, record = decoded(line.entry)
        except FormatError as error:
            raise FormatError(f"{path}: {error}") from error
        except _NO_RECORD as error:
            yield Damage(line.number, line.start, _NOT_A_RECORD.format(error))
            continue
        if line.number == 1 and not line.problem and not isinstance(record, Opened):
            raise FormatError(
                f"expected a journal at {path}, but its first record is {line.entry['kind']!r}, "
                "not 'opened': choose the journal next to the mask"
            )
        yield PlacedRecord(at, line.start, record, line.number, line.seq, line.hash, line.prev)


@reads("a journal", "choose the journal next to the mask")
def read_journal(path: Path) -> JournalContents:
    """Return the records of a journal, up to the first damaged one.

    The errors are those of `scan_journal`.
    """
    records: list[PlacedRecord] = []
    for item in scan_journal(path):
        if isinstance(item, Damage):
            return JournalContents(tuple(records), item)
        records.append(item)
    return JournalContents(tuple(records))


class Journal:
    """A journal that is open in one window.

    Writing never raises. Records that cannot be written stay in memory, `problem` reports this, and
    every later write tries again. Several threads may use the journal.

    Parameters
    ----------
    path
        Path of the file, which is created with its folder for the first record.

    Raises
    ------
    SaveConflictError
        If another window has opened the journal.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.RLock()
        self._lines: ChainedLines | None = None
        self._queue: list[JournalRecord] = []
        self._header: Opened | None = None
        self._reason = ""
        self._starts: dict[int, int] = {}
        self._timer: threading.Timer | None = None
        self._is_closed = False
        try:
            self._open_lines()
        except SaveConflictError:
            raise
        except SaveError as error:
            self._reason = _describe_refusal(error)

    @property
    def waiting(self) -> int:
        """Number of records that have not been written to the disk yet."""
        return len(self._queue)

    @property
    def problem(self) -> str:
        """Reason why steps are not being recorded, or "" if they are."""
        if not self._reason:
            return ""
        return (
            f"NOT recorded: {self._reason}; {count_of(self.waiting, 'record')} would be lost in a "
            f"crash: free some space or check the folder {self.path.parent}; each new step tries "
            "again"
        )

    def begin(self, opened: Opened) -> None:
        """Write `opened` before the next record, so that merely opening a case writes no file."""
        self._header = opened

    def write(self, record: JournalRecord) -> None:
        """Append a record, which survives the end of this program unless `problem` is set."""
        with self._lock:
            if self._header is not None:
                self._queue.append(self._header)
                self._header = None
            self._queue.append(record)
            self._write_queue()

    def mark(self) -> str:
        """Return the hash of the last record, for `Saved`, or "" if records are still unwritten.

        Records in memory, including the opening, are written first if possible.
        """
        with self._lock:
            if self._header is not None:
                self._queue.append(self._header)
                self._header = None
            self._write_queue()
            return "" if self._queue or self._lines is None else self._lines.head

    def retry(self) -> None:
        """Try to write the records that could not be written."""
        with self._lock:
            self._write_queue()

    def know(self, number: int, start: int) -> None:
        """Store the position of a step from an earlier session for `read_back`."""
        self._starts[number] = start

    def read_back(self, number: int) -> Difference:
        """Return the change made by a step, read from memory or from the file.

        Raises
        ------
        FormatError
            If the file is missing or the record is damaged.
        """
        for record in tuple(self._queue):
            if isinstance(record, edits.Step) and record.number == number:
                return record.difference
        start = self._starts.get(number)
        if start is not None:
            return step_at(self.path, start, number).difference
        raise FormatError(
            f"expected step {number} in {self.path}, but it is missing, so the step cannot be "
            "undone; your mask is unchanged"
        )

    def set_aside(self) -> Path | None:
        """Rename the file and start a new one; return the new name of the old file.

        If renaming fails, the result is None and `problem` is set.
        """
        with self._lock:
            self._let_go()
            target = _free_name(self.path)
            try:
                self.path.rename(target)
                self._open_lines()
            except (OSError, SaveError) as error:
                self._reason = _describe_refusal(error)
                return None
            self._starts.clear()
            return target

    def close(self) -> None:
        """Force all records to the disk and close the file; delete the file if it is empty.

        A later record, for example from a save in progress, is still added.
        """
        with self._lock:
            self._is_closed = True
            if self._queue:
                self._write_queue()
            self._let_go()

    def _let_go(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        lines, self._lines = self._lines, None
        if lines is None:
            return
        is_empty = lines.size == 0
        try:
            lines.close()
        except SaveError as error:
            self._reason = _describe_refusal(error)
        if is_empty:
            with suppress(OSError):
                self.path.unlink()

    def _open_lines(self) -> ChainedLines:
        self._lines = ChainedLines(self.path, sync_every_s=float("inf"))
        return self._lines

    def _write_queue(self) -> None:
        try:
            lines = self._in_place()
            while self._queue:
                record = self._queue[0]
                start = lines.size
                lines.add(encoded(record))
                if isinstance(record, edits.Step):
                    self._starts[record.number] = start
                del self._queue[0]
            self._reason = ""
        except OSError as error:
            self._reason = _describe_refusal(error)
        if self._is_closed:
            self._let_go()
        elif self._timer is None:
            self._timer = threading.Timer(_SYNC_AFTER_S, self._sync_lines)
            self._timer.daemon = True
            self._timer.start()

    def _in_place(self) -> ChainedLines:
        lines = self._lines or self._open_lines()
        if not lines.is_in_place:
            if self.path.exists():
                self.path.rename(_free_name(self.path))
            lines = self._lines = lines.put_back()
        return lines

    def _sync_lines(self) -> None:
        # Done first, so that a record that arrives meanwhile starts its own timer.
        self._timer = None
        lines = self._lines
        if lines is None:
            return
        try:
            # Done without the lock, which a slow disk would hold while the next stroke waits.
            lines.sync(every_s=0.0)
        except SaveError as error:
            # `close` has reported the failure of a file that was closed in the meantime.
            if self._lines is lines:
                self._reason = _describe_refusal(error)


def step_at(path: Path, start: int, number: int) -> edits.Step:
    """Return the step whose record begins at byte `start`.

    Raises
    ------
    FormatError
        If the file is missing or the record is not step `number`.
    """
    line = line_at(path, start)
    if line.entry is None:
        raise _make_read_error(path, number, line.problem)
    try:
        _, record = decoded(line.entry)
    except _NO_RECORD as error:
        raise _make_read_error(path, number, str(error)) from error
    if not isinstance(record, edits.Step) or record.number != number:
        raise _make_read_error(path, number, "the record differs from the one that was written")
    return record


def _make_read_error(path: Path, number: int, why: str) -> FormatError:
    return FormatError(
        f"expected step {number} in {path}, but {why}, so the step cannot be undone; your mask is "
        "unchanged"
    )


def _describe_refusal(error: OSError) -> str:
    if isinstance(error, SaveConflictError):
        return "another window records in the same journal"
    cause = error.__cause__
    return (cause.strerror if isinstance(cause, OSError) else error.strerror) or str(error)


def _free_name(path: Path) -> Path:
    number = 1
    while (target := path.with_name(f"{path.stem}.set-aside-{number}{_SUFFIX}")).exists():
        number += 1
    return target
