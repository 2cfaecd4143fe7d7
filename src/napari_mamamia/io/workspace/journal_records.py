"""Convert journal records to JSON and back: openings, steps, undo and redo, savings."""

import base64
import json
import math
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
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
from napari_mamamia.core.errors import FormatError
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.names import count_of
from napari_mamamia.core.provenance import Setting, software_version

FORMAT_VERSION: Final = 3
"""Format of the journals that are read and written."""


_LEVEL: Final = 1
_MOST_VOXELS: Final = 1 << 31
"""Largest number of voxels of a volume (our choice); breast exams have 5 to 200 million."""
_NOT_FINITE: Final = "float"


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
