"""Provenance as a JSON file beside each mask: ``ID.json`` beside ``ID.nii.gz``."""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

from napari_mamamia.core.errors import FormatError
from napari_mamamia.core.provenance import InputFile, Maker, Provenance, Setting
from napari_mamamia.io.files.file_names import file_stem
from napari_mamamia.io.files.foreign import reads
from napari_mamamia.io.files.json_text import read_json
from napari_mamamia.io.files.save import write_text_atomically

_NOT_FINITE: Final = "float"
"""JSON has no infinity and no nan: ``{"float": "inf"}`` stands for them."""


def sidecar_path(mask_path: Path) -> Path:
    """Return where the provenance of a mask file lies.

    Examples
    --------
    >>> sidecar_path(Path("out/DUKE_001.nii.gz")).as_posix()
    'out/DUKE_001.json'
    """
    stem = file_stem(mask_path.name) or mask_path.stem
    return mask_path.with_name(f"{stem}.json")


def write_provenance(
    provenance: Provenance,
    path: Path,
    *,
    standard: Sequence[tuple[str, str | bool]] = (),
    overwrite: bool = False,
) -> None:
    """Write every field of `provenance` to a JSON file, in the order of the record.

    `standard` are (key, value) pairs that a standard wants in the file beside a mask; they stand
    first, and reading passes over them.

    Raises
    ------
    FormatError
        If two parameters have one name, of which the file could keep only one.
    SaveConflictError
        If `path` exists and `overwrite` is off.
    SaveError
        If the system refuses to write.
    """
    parameters = {name: _to_json(value) for name, value in provenance.parameters}
    if len(parameters) < len(provenance.parameters):
        names = ", ".join(name for name, _ in provenance.parameters)
        raise FormatError(
            f"expected each parameter of {provenance.name} once, got {names}: rename the double"
        )
    content: dict[str, Any] = dict(standard)
    content |= {field.name: getattr(provenance, field.name) for field in fields(provenance)}
    content["inputs"] = [{"name": i.name, "sha256": i.sha256} for i in provenance.inputs]
    content["parameters"] = parameters
    content["seconds"] = _to_json(provenance.seconds)
    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    write_text_atomically(path, text, overwrite=overwrite)


@reads("provenance (JSON)", "save the mask again to write it anew")
def read_provenance(path: Path) -> Provenance:
    """Return what `write_provenance` wrote; keys of later versions are passed over.

    Raises
    ------
    FormatError
        If the file cannot be read, or a key is missing or has another type; names file and key.
    """
    try:
        content = read_json(path)
    except (OSError, ValueError, RecursionError) as error:
        raise FormatError(
            f"expected provenance in {path}, but it cannot be read ({error}): "
            "save the mask again to write it anew"
        ) from error
    if not isinstance(content, dict):
        raise FormatError(f"expected a JSON object in {path}, got {type(content).__name__}")
    values = {
        key: _value(content, key, parse, path)
        for key, parse in _PARSERS.items()
        if key in content or key not in _LATER
    }
    return Provenance(**values)


def _value(content: dict[str, Any], key: str, parse: Callable[[Any], Any], path: Path) -> Any:
    if key not in content:
        raise FormatError(
            f"expected the key {key!r} in {path}, but it is missing: "
            "the file is no provenance of this software, or was cut"
        )
    try:
        return parse(content[key])
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise FormatError(
            f"expected {key!r} of {path} as this software writes it, got "
            f"{str(content[key])[:80]!r} ({error}): correct the file or save the mask again"
        ) from error


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("not a text")
    return value


def _inputs(value: Any) -> tuple[InputFile, ...]:
    return tuple(InputFile(_text(item["name"]), _text(item["sha256"])) for item in value)


def _parameters(value: Any) -> tuple[tuple[str, Setting], ...]:
    return tuple((name, _from_json(setting)) for name, setting in value.items())


def _seconds(value: Any) -> float | None:
    if isinstance(value, dict):
        value = _from_json(value)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise TypeError("not a number")
    return value


def _bytes(value: Any) -> int | None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
        raise TypeError("not a number of bytes")
    return value


def _to_json(value: Setting) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return {_NOT_FINITE: repr(value)}
    return value


def _from_json(value: Any) -> Setting:
    if isinstance(value, dict):
        return float(_text(value[_NOT_FINITE]))
    if value is not None and not isinstance(value, bool | int | float | str):
        raise TypeError("not a single value")
    return value


_PARSERS: Final[dict[str, Callable[[Any], Any]]] = {
    "case_id": _text,
    "maker": Maker,
    "name": _text,
    "inputs": _inputs,
    "parameters": _parameters,
    "seconds": _seconds,
    "started_from": _text,
    "note": _text,
    "created": _text,
    "software": _text,
    "device": _text,
    "peak_memory_bytes": _bytes,
}

_LATER: Final = frozenset({"device", "peak_memory_bytes"})
"""Keys that files of earlier versions lack; their values are unknown then."""
