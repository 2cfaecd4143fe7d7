"""Whether every command still writes what it wrote: for a change that should change no behaviour.

Usage, before the change and after it, with the program of each checkout::

    .venv/bin/python tools/outputs.py record before.json
    .venv/bin/python tools/outputs.py record after.json
    .venv/bin/python tools/outputs.py compare before.json after.json

With ``record --numbers`` words, names of files and columns are left out: exit codes, voxels and
the numbers in tables and JSON are noted, for a change of words.

Each command of `tests/fault/worlds.py` runs in a world of its own, always at the same place, in a
process of its own. What it printed, its exit code and all files are noted: voxels and texts to the
byte, times, paces and memory apart (`tests/fault/same.py`). Commands that take minutes only with
``--all``.
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "fault"))

import same  # noqa: E402 - it lies among the tests
import worlds  # noqa: E402

PLACE = Path(tempfile.gettempdir()) / "napari_mamamia_outputs"
NUMBERS_OF_TIME = re.compile(r"\d+(\.\d+)?\s*(s|ms|min|MB|GB|MiB|GiB)\b(/case)?|\d+:\d\d(:\d\d)?")

NOT_OURS = ("tmp/", "home/.cache/")
UID = re.compile(r"[0-9a-f]{32}|[0-9a-f]{12}(?=/)")
"""Parts of names that are another each time: of images that a PACS gave."""


def printed(text: str) -> list[str]:
    """Return the words of what a command printed, without times, paces and the table's frame."""
    text = NUMBERS_OF_TIME.sub("T", same.STAMP.sub("", text))
    return re.sub(r"[^\w.,:;%()<>/\-]+", " ", text).split()


def list_numbers(path: Path) -> list[str]:
    """Return the numbers in a table or JSON file, and a digest of the voxels of a volume."""
    name = path.name.lower()
    if name.endswith((".json", ".csv", ".tsv")):
        value = same.content(path)
        if isinstance(value, str):
            value = [line.split("\t") for line in value.splitlines()]
        return sorted(_walk_numbers(value))
    if name.endswith((".nii", ".nii.gz", ".nrrd", ".raw", ".npy", ".safetensors")):
        return [hashlib.sha256(repr(same.content(path)).encode()).hexdigest()[:16]]
    return []


def _walk_numbers(value: object) -> Iterator[str]:
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _walk_numbers(item)
    elif isinstance(value, int | float):
        yield f"{float(value):.9g}"
    elif isinstance(value, str):
        with suppress(ValueError):
            yield f"{float(value):.9g}"


def outcome(way: worlds.Way, *, numbers: bool) -> dict[str, Any]:
    """Run one command in its world; return its exit code, words and files, or its numbers."""
    shutil.rmtree(PLACE, ignore_errors=True)
    worlds.furnished(PLACE)
    words = way.make(PLACE)
    done = subprocess.run(
        [Path(sys.executable).with_name("mamamia"), *words],
        env={**os.environ, **worlds.environment(PLACE), "COLUMNS": "200"},
        cwd=PLACE,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    files: dict[str, list[str]] = {}
    if numbers:
        counts = Counter(
            number
            for path in PLACE.rglob("*")
            if path.is_file() and not str(path.relative_to(PLACE)).startswith(NOT_OURS)
            for number in list_numbers(path)
        )
        return {"exit": done.returncode, "words": [], "files": {"numbers": dict(counts)}}
    for path in sorted(PLACE.rglob("*")):
        name = str(path.relative_to(PLACE))
        if path.is_file() and not name.startswith(NOT_OURS):
            told = json.dumps(same.content(path), sort_keys=True, default=str)
            sums = files.setdefault(UID.sub("UID", name), [])
            sums.append(hashlib.sha256(told.encode()).hexdigest()[:16])
    return {
        "exit": done.returncode,
        "words": printed(done.stdout + done.stderr),
        "files": files,
    }


def record(target: Path, *, slow: bool, numbers: bool) -> None:
    """Run every command and note what came out."""
    found = {}
    for way in worlds.COMMANDS:
        if slow or not way.is_slow:
            found[way.name] = outcome(way, numbers=numbers)
            print(f"{way.name}: exit {found[way.name]['exit']}", flush=True)
    target.write_text(json.dumps(found, indent=1) + "\n")


def show_file_difference(name: str, old: object, new: object) -> None:
    """Print that a file differs; of counted numbers, which of them."""
    if old == new:
        return
    print(f"  {name} differs")
    if isinstance(old, dict) and isinstance(new, dict):
        print(f"    only before: {dict(Counter(old) - Counter(new))}"[:400])
        print(f"    only after: {dict(Counter(new) - Counter(old))}"[:400])


def compare(before: Path, after: Path) -> int:
    """Print each difference; return their number."""
    one, two = (json.loads(path.read_text()) for path in (before, after))
    n = 0
    for name in sorted({*one, *two}):
        first, second = one.get(name), two.get(name)
        if first == second:
            continue
        n += 1
        print(f"{name}:")
        if first is None or second is None:
            print("  only in one of the two")
            continue
        for key in ("exit", "words"):
            if first[key] != second[key]:
                print(f"  {key}: {first[key]}\n     -> {second[key]}")
        for file in sorted({*first["files"], *second["files"]}):
            show_file_difference(file, first["files"].get(file), second["files"].get(file))
    print(f"{n} of {len(one)} commands differ")
    return n


def main() -> None:
    """Record or compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parts = parser.add_subparsers(dest="what", required=True)
    recording = parts.add_parser("record")
    recording.add_argument("target", type=Path)
    recording.add_argument("--all", action="store_true")
    recording.add_argument("--numbers", action="store_true")
    comparing = parts.add_parser("compare")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    given = parser.parse_args()
    if given.what == "record":
        record(given.target, slow=given.all, numbers=given.numbers)
    else:
        sys.exit(compare(given.before, given.after) > 0)


if __name__ == "__main__":
    main()
