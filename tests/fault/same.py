"""Whether two results are the same, times and paces apart; whether a file is whole.

The same: voxels and texts to the byte, weights to the bit, tables and pages without the columns of
times and memory. A bundle's manifest is compared with the files that lie beside it.
"""

import csv
import gzip
import hashlib
import io
import json
import re
import zipfile
import zlib
from pathlib import Path

VOLATILE = {"started", "created", "seconds", "peak_memory_bytes", "memory_bytes", "time", "at"}
VOLATILE |= {"study_id"}  # drawn anew for each study
STAMP = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(\+00:00|Z)?")
SECONDS = re.compile(r"(, at most )?\d+(\.\d+)? (s|ms|MB|GB)\b")
"""What a short run needed at most is not measured where nobody looked in time."""
COST = re.compile("second|memory", re.IGNORECASE)
COST_ROW = re.compile(r'(<th scope="row">(?:Time|Highest memory).*?)</tr>', re.DOTALL)
CASE_DATA = re.compile(r'(?<=id="case-data">).*?(?=</script>)', re.DOTALL)
CASE_CELLS = re.compile(r'<td class="number screen">[\d.,]*</td>')
GROWING = (".jsonl", ".journal", ".lock")


def content(path: Path, left_out: frozenset[str] = frozenset()) -> object:
    """Return what must be the same in two runs of one command; of JSON not the keys `left_out`."""
    name = path.name.lower()
    data = path.read_bytes()
    if name.endswith(".json"):
        # Lists of files, which are compared themselves: some hold times.
        lists = ("manifest.json", "written_files.json")
        checked = {"sha256", "n_bytes"} if name in lists else set()
        return pruned(json.loads(data), VOLATILE | left_out | checked)
    if name.endswith(".csv"):
        return without_cost(list(csv.reader(io.StringIO(data.decode()))))
    if name.endswith(".html"):
        return page(data.decode())
    if name.endswith((".txt", ".md", ".tsv")):
        return SECONDS.sub("", STAMP.sub("", data.decode()))
    if name.endswith((".xlsx", ".zip", ".dcm", ".parquet", *GROWING)):
        return "whole"
    if name.endswith(".safetensors"):
        return weights(path)
    if name.endswith(".gz"):  # equal voxels may be other bytes, see io/volumes/voxel_writer.py
        data = gzip.decompress(data)
    return zlib.crc32(data), len(data)


def weights(path: Path) -> object:
    """Return every tensor and what the head says, apart from when it was written."""
    from safetensors import safe_open

    with safe_open(path, "numpy") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - no dict
        head = {key: STAMP.sub("", text) for key, text in (file.metadata() or {}).items()}
    facts = {
        name: (str(one.dtype), one.shape, zlib.crc32(one.tobytes()))
        for name, one in tensors.items()
    }
    return facts, head


def without_cost(rows: list[list[str]]) -> list[list[str]]:
    """Return a table without the columns that tell how long or how large something was."""
    heads = rows[0] if rows else []
    return [
        [cell for cell, head in zip(row, heads, strict=False) if not COST.search(head)]
        for row in rows
    ]


def page(text: str) -> str:
    """Return a report's text without the moment it was made at and what it cost to predict."""
    text = SECONDS.sub("", STAMP.sub("", COST_ROW.sub("", text)))
    return CASE_CELLS.sub("", CASE_DATA.sub(costless, text))


def costless(found: re.Match) -> str:
    data = json.loads(found[0])
    data["columns"] = [one for one in data["columns"] if not COST.search(one["name"])]
    return json.dumps(data)


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
        for end, check in CHECKS.items():
            if name.endswith(end):
                check(path)
                break
        else:
            assert name.endswith(GROWING) or path.stat().st_size
    except Exception as error:  # noqa: BLE001 - whatever a broken file raises
        return f"{path}: {type(error).__name__} {error}"
    return ""


def check_dicom(path: Path) -> None:
    import pydicom

    assert len(pydicom.dcmread(path).PixelData)


def check_zip(path: Path) -> None:
    assert zipfile.ZipFile(path).testzip() is None


def check_page(path: Path) -> None:
    assert path.read_text().rstrip().endswith("</html>")


def check_parquet(path: Path) -> None:
    data = path.read_bytes()
    assert data[:4] == data[-4:] == b"PAR1"


def check_manifest(path: Path) -> None:
    """Raise unless each file of a bundle is there, as large and with the SHA-256 that it says."""
    told = json.loads(path.read_text())
    files = [*told["files"], *(file for case in told["cases"] for file in case["files"])]
    assert files
    for file in files:
        data = (path.parent / file["name"]).read_bytes()
        assert len(data) == file["n_bytes"], f"{file['name']} has another size"
        assert hashlib.sha256(data).hexdigest() == file["sha256"], f"{file['name']} is another"


CHECKS = {
    ".gz": lambda path: gzip.decompress(path.read_bytes()),
    ".xlsx": check_zip,
    ".zip": check_zip,
    "manifest.json": check_manifest,
    ".json": lambda path: json.loads(path.read_text()),
    ".parquet": check_parquet,
    ".dcm": check_dicom,
    ".html": check_page,
}


def is_temporary(path: Path, root: Path) -> bool:
    return any(part.startswith(".mamamia-") for part in path.relative_to(root).parts)


def files_below(root: Path) -> list[Path]:
    return sorted(path for path in root.rglob("*") if path.is_file() or path.is_symlink())


def contents(root: Path, left_out: frozenset[str] = frozenset()) -> dict[str, object]:
    """Return the contents of all files with final names below `root`, by their paths."""
    found = (path for path in files_below(root) if not is_temporary(path, root))
    return {str(path.relative_to(root)): content(path, left_out) for path in found}


def strangers(root: Path) -> list[str]:
    """Return the masks' provenances below `root` that name an input of another content."""
    there = {
        (path.name, hashlib.sha256(path.read_bytes()).hexdigest())
        for path in files_below(root)
        if path.name.endswith(".nii.gz")
    }
    said = []
    for path in files_below(root):
        told = json.loads(path.read_text()) if path.suffix == ".json" else {}
        inputs = told.get("inputs", []) if isinstance(told, dict) else []
        if any((one["name"], one["sha256"]) not in there for one in inputs):
            said.append(f"{path} tells of other inputs than there are")
    return said
