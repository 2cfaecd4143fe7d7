"""Store provenance in a JSON file next to each mask: ``ID.json`` next to ``ID.nii.gz``."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from napari_mamamia.core.errors import FormatError
from napari_mamamia.core.provenance import Provenance
from napari_mamamia.io.files.foreign import reads
from napari_mamamia.io.files.json_text import read_json
from napari_mamamia.io.files.record_codec import Form, Layout, NotFinite, RecordCodec
from napari_mamamia.io.files.save import write_text_atomically
from napari_mamamia.io.volumes.formats import file_stem


def sidecar_path(mask_path: Path) -> Path:
    """Return the path of a mask's provenance file.

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

    `standard` are (key, value) pairs that a standard requires in the file next to a mask. These
    pairs are written first, and are ignored when reading.

    Raises
    ------
    FormatError
        If two parameters have the same name, because the file can store only one of them.
    SaveConflictError
        If `path` exists and `overwrite` is False.
    SaveError
        If the file cannot be written.
    """
    if len(dict(provenance.parameters)) < len(provenance.parameters):
        names = ", ".join(name for name, _ in provenance.parameters)
        raise FormatError(
            f"expected each parameter of {provenance.name} to occur once, but found {names}: "
            "rename one of them"
        )
    content: dict[str, Any] = {**dict(standard), **_CODEC.plain(provenance)}
    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    write_text_atomically(path, text, overwrite=overwrite)


@reads("provenance (JSON)", "save the mask again to rewrite the file")
def read_provenance(path: Path) -> Provenance:
    """Return the provenance in a JSON file; keys from later versions are ignored.

    Raises
    ------
    FormatError
        If the file cannot be read, or a key is missing or has a different type. The message names
        the file and the key.
    """
    try:
        content = read_json(path)
    except (OSError, ValueError, RecursionError) as error:
        raise FormatError(
            f"cannot read the provenance {path} ({error}); save the mask again to rewrite the file"
        ) from error
    return _CODEC.record(content, path)


def _parse_n_bytes(value: Any) -> int | None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
        raise TypeError("expected a number of bytes, but found a different value")
    return value


_CODEC: Final = RecordCodec(
    Provenance,
    "correct the file or save the mask again",
    [
        Layout(
            Provenance,
            {"peak_memory_bytes": Form(lambda value: value, _parse_n_bytes)},
            pairs=frozenset({"parameters"}),
            later=frozenset({"device", "peak_memory_bytes"}),
        )
    ],
    not_finite=NotFinite.OBJECT,
    passes_unknown=True,
)
