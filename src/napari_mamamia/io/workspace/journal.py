"""The journal of a mask: every step is on the disk when the mouse button is released.

``refined/READER/ID.journal`` beside the mask holds one JSON line for each opening, step, undo,
redo, jump and saving. It only grows: a record of how the annotation was made, from which the mask
can be reproduced bit for bit. The lines form a chain; the first record refers to case, reader,
grid, format and the mask that editing began with.
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

from napari_mamamia.core.blinding import NOT_BLIND, Blinding
from napari_mamamia.core.box import Box
from napari_mamamia.core.case import LabelMap
from napari_mamamia.core.difference import BitChange, Difference
from napari_mamamia.core.edits import (
    Action,
    Brush,
    Edit,
    Extent,
    Features,
    Jump,
    Sampling,
    Step,
    Stroke,
    Tool,
    Turn,
)
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
"""Format of the journals that are read and written."""


_LEVEL: Final = 1
_MOST_VOXELS: Final = 1 << 31
"""Largest number of voxels of a volume (our choice); breast exams have 5 to 200 million."""
_NOT_FINITE: Final = "float"
_SYNC_AFTER_S: Final = 0.5
"""Longest time in s between two writes to the disk.

A power failure loses at most the steps of this time; a killed program loses none.
"""

_SUFFIX: Final = ".journal"

_NOT_A_RECORD: Final = "it holds no record of a journal ({})"
_NO_RECORD: Final = (
    LookupError,
    TypeError,
    ValueError,
    ArithmeticError,
    AttributeError,
    MemoryError,
)
"""Exceptions from reading JSON of another form."""


@dataclass(frozen=True, slots=True)
class Opened:
    """The case was opened for editing, with the state on which the following steps build.

    Parameters
    ----------
    base
        The mask that editing starts from, uint8 values.
    base_name
        Its origin: "prediction kinetic", "" for an empty one.
    base_sha256
        Checksum of its file, "" if there was none.
    labels_crc
        CRC-32 of the whole label array at this moment.
    phases
        Type and CRC-32 of each phase's values; empty if the phases were not read.
    continues
        Whether earlier steps and marks continue: after a crash, or when the saved mask is reopened.
    blinding
        What is hidden from the reader until the next opening.
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
    """The mask was saved: the file's SHA-256, and the CRC-32 of the labels in it.

    `head` is the hash of the last record that the mask includes, because a reader may go on
    painting while it is being saved; "" if unknown.
    """

    sha256: str
    labels_crc: int
    head: str = ""


JournalRecord: TypeAlias = Opened | Step | Turn | Jump | Saved


def encoded(record: JournalRecord) -> bytes:
    """Return a record as one line of JSON, with the present time."""
    content = {"at": datetime.now(UTC).isoformat(timespec="microseconds"), **_encode_record(record)}
    head = json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")
    if not isinstance(record, Step):
        return head
    return b"".join((head[:-1], b',"change":', *_change_parts(record.difference), b"}"))


def decoded(entry: Mapping[str, Any]) -> tuple[str, JournalRecord]:
    """Return the time of a record and the record.

    Raises
    ------
    FormatError
        If it was written in another version of the format.
    KeyError, TypeError, ValueError
        If it is not a record.
    """
    at, kind = str(entry["at"]), entry["kind"]
    if kind == "opened":
        return at, _parse_opened(entry)
    if kind == "step":
        change = _parse_difference(entry["change"])
        return at, Step(int(entry["n"]), _parse_edit(entry["edit"], change.label), change)
    if kind == "saved":
        return at, Saved(str(entry["sha256"]), int(entry["labels_crc"]), str(entry.get("head", "")))
    if kind == "jump":
        return at, Jump(int(entry["from"]), int(entry["to"]))
    return at, Turn(kind)


def _encode_record(record: JournalRecord) -> dict[str, Any]:
    if isinstance(record, Turn):
        return {"kind": record.value}
    if isinstance(record, Jump):
        return {"kind": "jump", "from": record.start, "to": record.stop}
    if isinstance(record, Saved):
        return {
            "kind": "saved",
            "sha256": record.sha256,
            "labels_crc": record.labels_crc,
            "head": record.head,
        }
    if isinstance(record, Step):
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
            f"expected a journal of format {FORMAT_VERSION}, got format "
            f"{entry['version']} of {entry['software']}: replay it with that version"
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
    """Return at most `size` + 1 decompressed bytes: a small file can unpack to gigabytes."""
    try:
        return zlib.decompressobj().decompress(packed, size + 1)
    except zlib.error as error:
        raise ValueError(str(error)) from error


def _edit_content(edit: Edit) -> dict[str, Any]:
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


def _parse_edit(content: Mapping[str, Any], label: int) -> Edit:
    stroke = None
    if "brush" in content:
        path = ((float(z), float(y), float(x)) for z, y, x in content["path"])
        stroke = Stroke(_parse_brush(content["brush"]), tuple(path))
    return Edit(
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
    """Return a value in a form that JSON supports, without infinity and nan."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return {_NOT_FINITE: repr(value)}
    return value


def _parse_setting(value: Any) -> Setting:
    if isinstance(value, dict):
        return float(value[_NOT_FINITE])
    if value is not None and not isinstance(value, bool | int | float | str):
        raise TypeError(f"expected a single value, got {type(value).__name__}")
    return value


def _parse_brush(content: Mapping[str, Any]) -> Brush:
    return Brush(
        tool=Tool(content["tool"]),
        action=Action(content["action"]),
        radius_mm=float(content["radius_mm"]),
        tolerance=float(content["tolerance"]),
        features=Features(content["features"]),
        extent=Extent(content["extent"]),
        plane_axis=int(content["plane_axis"]),
        sampling=Sampling(content["sampling"]),
        label=int(content["label"]),
        whole=content.get("whole", False) is True,
    )


def _change_parts(difference: Difference) -> Iterator[bytes]:
    """Yield the JSON of a difference in pieces, faster than a general JSON writer."""
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
        raise ValueError(f"expected {count_of(n_planes, 'plane')} of bytes, got {len(planes)}")
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
    """Return the path of the journal of a reader's mask.

    Examples
    --------
    >>> journal_path(Path("refined/Ana/DUKE_001.nii.gz")).as_posix()
    'refined/Ana/DUKE_001.journal'
    """
    return mask_path.with_name(mask_path.name.removesuffix(MASK_SUFFIX) + _SUFFIX)


@dataclass(frozen=True, slots=True)
class PlacedRecord:
    """A record with its time (ISO 8601, UTC) and its place in the file.

    `number` is its place in the file, from 1, `start` its first byte; `index` is its place when it
    was written, from 0, which differs if records were removed, duplicated or moved. `hash` and
    `prev` are its own hash and that of the previous record, `prev` "" for one written before
    records formed a chain.
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
    """A record that is unreadable, or that does not follow the previous record.

    `record` is its place in the file, from 1; `is_lost` says that it cannot be read at all.
    """

    record: int
    start: int
    reason: str
    is_lost: bool = True

    @property
    def text(self) -> str:
        """Position and kind of the damage, in words."""
        return f"record {self.record} (byte {self.start}): {self.reason}"


@dataclass(frozen=True, slots=True)
class JournalContents:
    """All records up to the first damage."""

    records: tuple[PlacedRecord, ...]
    damage: Damage | None = None


@reads("a journal", "choose the file next to the mask")
def scan_journal(path: Path) -> Iterator[PlacedRecord | Damage]:
    """Yield all records of a journal in order, and a `Damage` for each record that was changed.

    A record that can be read but does not follow the previous one comes after its `Damage`.

    Raises
    ------
    FormatError
        If the file cannot be read, is no journal, or was written in another version of the format.
    """
    for line in scan_chained_lines(path):
        if line.number == 1 and line.problem == NO_CHAIN:
            raise FormatError(
                f"expected a journal of format {FORMAT_VERSION} at {path}, but an earlier version "
                "wrote it: its steps cannot be replayed; the saved mask is not affected"
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
                "not 'opened': choose the file next to the mask"
            )
        yield PlacedRecord(at, line.start, record, line.number, line.seq, line.hash, line.prev)


@reads("a journal", "choose the file next to the mask")
def read_journal(path: Path) -> JournalContents:
    """Return all records of a journal up to the first damage; raises as `scan_journal`."""
    records: list[PlacedRecord] = []
    for item in scan_journal(path):
        if isinstance(item, Damage):
            return JournalContents(tuple(records), item)
        records.append(item)
    return JournalContents(tuple(records))


class Journal:
    """The journal at `path`, open for one window.

    Writing never raises: records that the system refuses stay in memory, `problem` says so, and
    every later write tries again. It may be used from several threads.

    Parameters
    ----------
    path
        Made with the first record, its folder too.

    Raises
    ------
    SaveConflictError
        If another window has it open.
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
        """Number of records that are not on the disk yet."""
        return len(self._queue)

    @property
    def problem(self) -> str:
        """Why steps are not recorded, as text; "" if they are recorded."""
        if not self._reason:
            return ""
        return (
            f"NOT recorded: {self._reason}; {count_of(self.waiting, 'record')} in memory only, "
            "lost in a "
            f"crash: free some space or check the folder {self.path.parent}; each step tries again"
        )

    def begin(self, opened: Opened) -> None:
        """Write `opened` before the next record, so that opening alone leaves no trace."""
        self._header = opened

    def write(self, record: JournalRecord) -> None:
        """Append a record; it survives the end of this program unless `problem` is set."""
        with self._lock:
            if self._header is not None:
                self._queue.append(self._header)
                self._header = None
            self._queue.append(record)
            self._write_queue()

    def mark(self) -> str:
        """Return the hash of the last record, for `Saved`; "" if records still wait.

        Records in memory are written first if possible, including that of the opening.
        """
        with self._lock:
            if self._header is not None:
                self._queue.append(self._header)
                self._header = None
            self._write_queue()
            return "" if self._queue or self._lines is None else self._lines.head

    def retry(self) -> None:
        """Try to write the waiting records."""
        with self._lock:
            self._write_queue()

    def know(self, number: int, start: int) -> None:
        """Record the position of a step of an earlier run, for `read_back`."""
        self._starts[number] = start

    def read_back(self, number: int) -> Difference:
        """Return the difference of a step from memory or from the file.

        Raises
        ------
        FormatError
            If the file is missing or the record damaged.
        """
        for record in tuple(self._queue):
            if isinstance(record, Step) and record.number == number:
                return record.difference
        start = self._starts.get(number)
        if start is not None:
            return step_at(self.path, start, number).difference
        raise FormatError(
            f"expected step {number} in {self.path}, but it is missing: it cannot be undone; "
            "your mask is unchanged"
        )

    def set_aside(self) -> Path | None:
        """Rename the file, begin a new one, and return the new name of the old file.

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
        """Force all records to the disk and close the file; remove an empty one.

        A later record, such as that of a save in progress, is added all the same.
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
                if isinstance(record, Step):
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
        """Return the open file, restored if it was removed."""
        lines = self._lines or self._open_lines()
        if not lines.is_in_place:
            if self.path.exists():
                self.path.rename(_free_name(self.path))
            lines = self._lines = lines.put_back()
        return lines

    def _sync_lines(self) -> None:
        """Force lines to the disk in a thread; failures are reported like write failures."""
        # First, so that a record that arrives meanwhile starts its own timer.
        self._timer = None
        lines = self._lines
        if lines is None:
            return
        try:
            # Without the lock, which a slow disk would hold against the next stroke.
            lines.sync(every_s=0.0)
        except SaveError as error:
            # `close` has reported the failure of a file that was closed meanwhile.
            if self._lines is lines:
                self._reason = _describe_refusal(error)


def step_at(path: Path, start: int, number: int) -> Step:
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
    if not isinstance(record, Step) or record.number != number:
        raise _make_read_error(path, number, "a different record is there")
    return record


def _make_read_error(path: Path, number: int, why: str) -> FormatError:
    return FormatError(
        f"expected step {number} in {path}, but {why}: it cannot be undone; your mask is unchanged"
    )


def _describe_refusal(error: OSError) -> str:
    """Return the system's message about a refused write."""
    if isinstance(error, SaveConflictError):
        return "another window records in the same journal"
    cause = error.__cause__
    return (cause.strerror if isinstance(cause, OSError) else error.strerror) or str(error)


def _free_name(path: Path) -> Path:
    number = 1
    while (target := path.with_name(f"{path.stem}.set-aside-{number}{_SUFFIX}")).exists():
        number += 1
    return target
