"""Whether two results are the same, times and paces apart; whether a file is whole."""

import csv
import gzip
import io
import json
import re
import zipfile
import zlib
from pathlib import Path

VOLATILE = {"started", "created", "seconds", "peak_memory_bytes", "memory_bytes", "time", "at"}
STAMP = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(\+00:00|Z)?")
SECONDS = re.compile(r"\d+(\.\d+)? (s|ms|MB|GB)\b")
GROWING = (".jsonl", ".journal", ".lock")


def content(path: Path) -> object:
    """Return what must be the same in two runs of one command."""
    name = path.name.lower()
    data = path.read_bytes()
    if name.endswith(".json"):
        left_out = VOLATILE | {"sha256"} if name == "manifest.json" else VOLATILE
        return pruned(json.loads(data), left_out)
    if name.endswith(".csv"):
        rows = list(csv.reader(io.StringIO(data.decode())))
        return [
            [cell for cell, head in zip(row, rows[0], strict=False) if "second" not in head]
            for row in rows
        ]
    if name.endswith((".html", ".txt", ".md", ".tsv")):
        return SECONDS.sub("", STAMP.sub("", data.decode()))
    if name.endswith((".xlsx", ".zip", ".dcm", ".parquet", *GROWING)):
        return "whole"
    if name.endswith(".safetensors"):  # its head says when it was written, in any order
        return len(data)
    return zlib.crc32(data), len(data)


def pruned(value: object, left_out: set[str]) -> object:
    if isinstance(value, dict):
        kept = [key for key in value if key not in left_out and "second" not in key]
        return {key: pruned(value[key], left_out) for key in kept}
    if isinstance(value, list):
        return [pruned(item, left_out) for item in value]
    return STAMP.sub("", value) if isinstance(value, str) else value


def fault_of(path: Path) -> str:
    """Return what is wrong with a file that has its final name, "" where it is whole."""
    name = path.name.lower()
    try:
        if name.endswith(".gz"):
            gzip.decompress(path.read_bytes())
        elif name.endswith((".xlsx", ".zip")):
            zipfile.ZipFile(path).testzip()
        elif name.endswith(".json"):
            json.loads(path.read_text())
        elif name.endswith(".dcm"):
            import pydicom

            assert len(pydicom.dcmread(path).PixelData)
        elif name.endswith(".html"):
            assert path.read_text().rstrip().endswith("</html>")
        elif not name.endswith(GROWING):
            assert path.stat().st_size
    except Exception as error:  # noqa: BLE001 - whatever a broken file raises
        return f"{path}: {type(error).__name__} {error}"
    return ""


def is_temporary(path: Path, root: Path) -> bool:
    return any(part.startswith(".mamamia-") for part in path.relative_to(root).parts)


def files_below(root: Path) -> list[Path]:
    return sorted(path for path in root.rglob("*") if path.is_file() or path.is_symlink())


def contents(root: Path) -> dict[str, object]:
    """Return the contents of all files with final names below `root`, by their paths."""
    found = (path for path in files_below(root) if not is_temporary(path, root))
    return {str(path.relative_to(root)): content(path) for path in found}
