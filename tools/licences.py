"""What an installation brings along: the licence of each package, and a bill of materials (SBOM).

Usage::

    .venv/bin/python tools/licences.py docs/licences.md  # `make licences`: the table of all extras
    .venv/bin/python tools/licences.py --sbom dist/sbom  # `make sbom`: EXTRA.cdx.json (CycloneDX)

Both read the metadata of what is installed here, and follow the requirements of this project from
one to the next. ``--more FOLDER`` names a folder that holds further packages (`pip --target`): so
PySide6 is told although the tests run with PyQt6. What is not installed is named as such.
"""

import argparse
import importlib.metadata
import json
import re
import subprocess
import sys
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT = "napari-mamamia"
FOR_DEVELOPERS = ("test", "lint", "bench", "docs", "release")
BASE = "base"
"""The install without extras."""

STRONG = re.compile(r"(?<![L-])\bA?GPL|GNU (Affero )?General Public")
"""GPL and AGPL; not LGPL, MPL and others that leave what uses them alone."""
EXCEPTION = re.compile(r"\bA?GPL[-\w.+]* WITH [-\w.]+")
"""With an exception for programs that are linked with it, as of GCC's run-time library."""
NOTHING = ("", "UNKNOWN", "LICENSE")
"""What packages write that tell no licence."""
TEXTS = {
    r"Apache License\W+Version 2\.0": "Apache-2.0",
    r"Permission is hereby granted, free of charge": "MIT",
    r"Redistribution and use in source and binary forms": "BSD",
    r"PYTHON SOFTWARE FOUNDATION LICENSE|matplotlib versions": "PSF",
}
"""Licences by a phrase of their text, for packages that have nothing shorter."""


@dataclass
class Package:
    """One installed package: what it is under, and what it needs."""

    name: str
    version: str
    licence: str
    needs: set[str] = field(default_factory=set)

    @property
    def is_strong(self) -> bool:
        """Whether all that one may choose of its licences is GPL or AGPL."""
        choices = EXCEPTION.sub("", self.licence).split(" OR ")
        return all(STRONG.search(choice) for choice in choices)


class Environment:
    """The packages that are installed here and in some further folders."""

    def __init__(self, more: Sequence[str] = ()) -> None:
        self._found: dict[str, importlib.metadata.Distribution] = {}
        for one in importlib.metadata.distributions(path=[*more, *sys.path]):
            self._found.setdefault(canonicalize_name(one.metadata["Name"]), one)

    def closure(self, extra: str) -> dict[str, Package]:
        """Return what this project with one extra needs, and what that needs; itself left out."""
        packages: dict[str, Package] = {}
        seen: set[tuple[str, str]] = set()
        waiting = [(PROJECT, "" if extra == BASE else extra), (PROJECT, "")]
        while waiting:
            name, wish = waiting.pop()
            if (name, wish) in seen:
                continue
            seen.add((name, wish))
            package = packages.setdefault(name, self._package(name))
            for needed, extras in self._needs(name, wish):
                package.needs.add(needed)
                waiting += [(needed, inner) for inner in ("", *extras)]
        del packages[PROJECT]
        return packages

    def _needs(self, name: str, extra: str) -> Iterator[tuple[str, set[str]]]:
        """Yield (package, extras of it) that a package needs, for one of its extras."""
        found = self._found.get(name)
        for text in (found.requires or []) if found else []:
            wish = Requirement(text)
            if wish.marker is None or wish.marker.evaluate({"extra": extra}):
                yield canonicalize_name(wish.name), wish.extras

    def _package(self, name: str) -> Package:
        found = self._found.get(name)
        if found is None:
            return Package(name, "", "not installed where this was made")
        return Package(name, found.version, licence_of(found))


def licence_of(package: importlib.metadata.Distribution) -> str:
    """Return a package's licence as it says it: an expression, a classifier, or by its text."""
    about = package.metadata
    told = (about.get("License-Expression") or about.get("License") or "").strip()
    if "\n" not in told and len(told) < 120 and told.upper() not in NOTHING:
        return told
    classes = [line.split(" :: ")[-1] for line in about.get_all("Classifier") or []]
    kinds = [line for line in classes if "Licen" in line or "Public Domain" in line]
    if kinds:
        return ", ".join(kinds)
    texts = [told, *(file.read_text("utf-8") for file in _licence_files(package))]
    for pattern, name in TEXTS.items():
        if any(re.search(pattern, text) for text in texts):
            return f"{name} (by its text)"
    return "not told"


def _licence_files(package: importlib.metadata.Distribution) -> Iterator[Path]:
    for file in package.files or []:
        path = Path(str(file.locate()))
        if re.match(r"(?i)licen[cs]e|copying", path.name) and path.suffix in ("", ".txt", ".md"):
            yield path


@cache
def extras() -> list[str]:
    """Return the extras for users, without any first."""
    names = importlib.metadata.metadata(PROJECT).get_all("Provides-Extra") or []
    return [BASE, *(name for name in names if name not in FOR_DEVELOPERS)]


def page(environment: Environment) -> str:
    """Return the page that lists every package with its licence and the extras that bring it."""
    brought: dict[str, list[str]] = {}
    packages: dict[str, Package] = {}
    for extra in extras():
        for name, package in environment.closure(extra).items():
            packages[name] = package
            brought.setdefault(name, []).append(extra)
    strong = {name for name, package in packages.items() if package.is_strong}
    rows = []
    for name in sorted(packages):
        by = ["every install"] if BASE in brought[name] else brought[name]
        mark = "**" if name in strong else ""
        licence = packages[name].licence.replace("|", "\\|")
        rows.append(f"| {mark}{name}{mark} | {mark}{licence}{mark} | {', '.join(by)} |")
    warned = ", ".join(f"{name} ({', '.join(brought[name])})" for name in sorted(strong))
    return "\n".join([*HEAD, f"Under the GPL: {warned or 'nothing'}.", "", *TABLE, *rows, ""])


HEAD = """\
# Licences

napari-mamamia itself is under Apache-2.0. This page lists the packages that an installation
contains, with the licence that each package states. `make licences` writes this page from the
installed packages, on Linux. The lock files (`locks/`) contain versions and hashes. `make sbom`
writes a bill of materials (CycloneDX) for each extra.

An installation without extras contains no package under the GPL or AGPL. **PyQt6 is under the
GPL-3.0.** If you distribute an installation with PyQt6, such as a container or an installer, the
GPL-3.0 applies, unless you buy a licence from Riverbank. The extra `pyside6` gives the same window
under the LGPL-3.0.

""".splitlines()
TABLE = ("| package | licence | extras that install it |", "|---|---|---|")


def bill(environment: Environment, extra: str, when: str) -> dict[str, object]:
    """Return the CycloneDX bill of materials of one extra; equal for equal environments."""
    packages = environment.closure(extra)
    if missing := sorted(name for name, package in packages.items() if not package.version):
        raise SystemExit(f"{extra} is not installed whole here, it lacks {', '.join(missing)}")
    wishes = {name for one in ("", extra) for name, _ in environment._needs(PROJECT, one)}
    own = Package(PROJECT, importlib.metadata.version(PROJECT), "Apache-2.0", wishes - {PROJECT})
    known = {**packages, PROJECT: own}
    refs = {name: f"pkg:pypi/{name}@{package.version}" for name, package in known.items()}
    links = [
        {"ref": refs[name], "dependsOn": sorted(refs[need] for need in package.needs - {name})}
        for name, package in sorted(known.items())
    ]
    body = {
        "metadata": {
            "timestamp": when,
            "component": {**_component(own, refs), "type": "application"},
            "properties": [{"name": "napari-mamamia:extra", "value": extra}],
        },
        "components": [_component(package, refs) for _, package in sorted(packages.items())],
        "dependencies": links,
    }
    code = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(body, sort_keys=True))
    head = {"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1}
    return {**head, "serialNumber": f"urn:uuid:{code}", **body}


def _component(package: Package, refs: dict[str, str]) -> dict[str, object]:
    ref = refs[package.name]
    return {
        **{"type": "library", "bom-ref": ref, "name": package.name, "version": package.version},
        "licenses": [{"license": {"name": package.licence}}],
        "purl": ref,
    }


def write_bills(environment: Environment, folder: Path) -> None:
    """Write the bill of each extra and check it against CycloneDX' own schema."""
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    git = ("git", "log", "-1", "--format=%ct")
    told = subprocess.run(git, cwd=ROOT, capture_output=True, text=True, check=False).stdout
    when = datetime.fromtimestamp(int(told or 0), UTC).isoformat()
    folder.mkdir(parents=True, exist_ok=True)
    for extra in extras():
        text = json.dumps(bill(environment, extra, when), indent=1, sort_keys=True)
        if error := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text):
            raise SystemExit(f"the bill of {extra} is no CycloneDX: {error}")
        (folder / f"{extra}.cdx.json").write_text(text + "\n", "utf-8")
        print(f"{folder / extra}.cdx.json: {text.count('bom-ref') - 1} packages")


def main() -> int:
    """Write the page of licences, or the bills of materials."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--sbom", action="store_true", help="bills of materials, into a folder")
    parser.add_argument("--more", action="append", default=[], help="a folder of further packages")
    options = parser.parse_args()
    environment = Environment(options.more)
    if options.sbom:
        write_bills(environment, options.out)
    else:
        options.out.write_text(page(environment), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
