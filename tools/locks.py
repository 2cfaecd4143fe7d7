"""The lock files: exact versions and hashes of all that an installation brings along.

Usage::

    .venv/bin/python tools/locks.py          # `make lock`: resolve anew; needs uv and an index
    .venv/bin/python tools/locks.py --check  # `make lock-check`: do they fit pyproject.toml?

``locks/base.txt`` belongs to the install without extras, ``locks/NAME.txt`` to the extra NAME,
``locks/test.txt`` to what `make test` installs. Each holds for Linux, Windows and macOS and for
every Python of `requires-python`; all of them give a package the same version. They name no index
and no path; install from one with ``pip install --require-hashes -r locks/NAME.txt``.
"""

import argparse
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
LOCKS = ROOT / "locks"
DEVELOPERS = ("test", "lint", "bench", "docs")
"""Extras that are installed together only, by `make test`."""
OLDEST_PYTHON = "3.11"
HEAD = """\
# Made by `make lock`; do not edit. For {what}.
# Versions and SHA-256 of every file that the index had; Linux, Windows, macOS, Python >= {python}.
"""
PIN = re.compile(r"^([A-Za-z0-9][\w.-]*)(?:\[[\w,-]+\])?==([^\s;]+)(?:\s*;\s*(.+?))?\s*\\?$")
PLACE = re.compile(r"://|--index|--find-links|\s/\w")
HASH = re.compile(r"^    --hash=sha256:[0-9a-f]{64}(?: \\)?$")


def extras_of_project() -> dict[str, list[str]]:
    """Return the requirements as pyproject.toml names them, by extra; "base" for those without."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return {"base": project["dependencies"], **project["optional-dependencies"]}


def tested_extras() -> list[str]:
    """Return the extras that `make test` installs."""
    line = re.search(r"^TESTED := (\S+)$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    if line is None:
        raise SystemExit("expected the extras of `make test` as TESTED := ... in the Makefile")
    return line[1].split(",")


def contents() -> dict[str, list[str]]:
    """Return the extras that each lock file stands for, by its name."""
    users = [name for name in extras_of_project() if name not in DEVELOPERS]
    return {**{name: [] if name == "base" else [name] for name in users}, "test": tested_extras()}


def direct(extras: Sequence[str], known: Mapping[str, list[str]]) -> Iterator[Requirement]:
    """Yield what some extras ask for, the extras that they name included."""
    for name in extras:
        for text in known[name]:
            wish = Requirement(text)
            if canonicalize_name(wish.name) == "napari-mamamia":
                yield from direct(sorted(wish.extras), known)
            else:
                yield wish


def compiled(extras: Sequence[str], versions: Path, uv: str) -> str:
    """Return the lock of some extras, as uv resolves it under the versions of a file."""
    command = [
        *(uv, "pip", "compile", "--quiet", "--universal", "--python-version", OLDEST_PYTHON),
        *("--generate-hashes", "--no-header", "--no-emit-index-url", "--no-emit-find-links"),
        *("--constraints", str(versions)),
        *(word for extra in extras for word in ("--extra", extra)),
        "pyproject.toml",
    ]
    text = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    lines = [line for line in text.splitlines() if "#" not in line or " -c " not in line]
    return "\n".join(lines) + "\n"


def make_locks(uv: str) -> None:
    """Resolve all extras at once, so that a package has one version, and write each's file."""
    known = extras_of_project()
    whole = LOCKS / "whole.tmp"
    LOCKS.mkdir(exist_ok=True)
    try:
        whole.write_text(
            compiled([name for name in known if name != "base"], ROOT / "constraints.txt", uv),
            encoding="utf-8",
        )
        for name, extras in contents().items():
            what = {"base": "the install without extras", "test": "what `make test` installs"}
            head = HEAD.format(what=what.get(name, f"the extra `{name}`"), python=OLDEST_PYTHON)
            text = head + compiled(extras, whole, uv)
            (LOCKS / f"{name}.txt").write_text(text, encoding="utf-8", newline="\n")
            print(f"locks/{name}.txt: {text.count('==')} pins")
    finally:
        whole.unlink(missing_ok=True)


def pins_in(text: str) -> dict[str, list[tuple[str, str]]]:
    """Return (version, marker) of each package that a lock file pins.

    Raises
    ------
    ValueError
        For a line that is no pin, hash or comment, and for a pin without a hash.
    """
    pins: dict[str, list[tuple[str, str]]] = {}
    hashes, last = 1, ""
    for line in text.splitlines():
        if HASH.match(line):
            hashes += 1
        elif found := PIN.match(line):
            if not hashes:
                raise ValueError(f"{last} has no hash")
            hashes, last = 0, found[1]
            pins.setdefault(canonicalize_name(last), []).append((found[2], found[3] or ""))
        elif line.strip() and not line.lstrip().startswith("#"):
            raise ValueError(f"unknown line: {line}")
    if not hashes:
        raise ValueError(f"{last} has no hash")
    return pins


def problems_of(name: str, wishes: Sequence[Requirement], text: str) -> Iterator[str]:
    """Yield what is wrong with one lock file."""
    try:
        pins = pins_in(text)
    except ValueError as error:
        yield f"locks/{name}.txt: {error}"
        return
    for line in text.splitlines():
        if PLACE.search(line):
            yield f"locks/{name}.txt names a place: {line.strip()}"
    for wish in wishes:
        here = pins.get(canonicalize_name(wish.name), [])
        if not here:
            yield f"locks/{name}.txt lacks {wish}"
        for version, _ in here:
            if not wish.specifier.contains(version, prereleases=True):
                yield f"locks/{name}.txt has {wish.name} {version}, pyproject.toml wants {wish}"


def problems() -> Iterator[str]:
    """Yield what is wrong with the lock files, without a network."""
    files = {path.stem: path.read_text("utf-8") for path in sorted(LOCKS.glob("*.txt"))}
    wanted = contents()
    for name in sorted(set(files) ^ set(wanted)):
        yield f"locks/{name}.txt {'is missing' if name in wanted else 'belongs to no extra'}"
    pinned = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    limits = {
        canonicalize_name(limit.name): limit
        for limit in (Requirement(line) for line in pinned if line and line[0] != "#")
    }
    known = extras_of_project()
    versions: dict[tuple[str, str], str] = {}
    for name in sorted(set(files) & set(wanted)):
        wishes = [*direct(["base", *wanted[name]], known)]
        held = [limits[key] for wish in wishes if (key := canonicalize_name(wish.name)) in limits]
        found = [*problems_of(name, [*wishes, *held], files[name])]
        yield from found
        for package, pins in ({} if found else pins_in(files[name])).items():
            for version, marker in pins:
                first = versions.setdefault((package, marker), version)
                if first != version:
                    yield f"locks/{name}.txt has {package} {version}, another lock {first}"


def main() -> int:
    """Make the lock files, or check them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only say what does not fit")
    parser.add_argument("--uv", default=str(Path(sys.executable).with_name("uv")))
    options = parser.parse_args()
    if not options.check:
        make_locks(options.uv)
    found = [*problems()]
    for problem in found:
        print(problem, file=sys.stderr)
    if found:
        print("Run  make lock  and commit what it writes.", file=sys.stderr)
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
