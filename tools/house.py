"""The house measured: how crowded folders are, how names and functions are made.

Usage::

    .venv/bin/python tools/house.py            # the table
    .venv/bin/python tools/house.py --check    # exit 1 where a figure is worse than its limit
    .venv/bin/python tools/house.py --map      # every package and module with its one job

The limits only ever fall: whoever makes a figure better writes the new one down (`LIMITS`).
"""

import argparse
import ast
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1] / "src" / "napari_mamamia"
PARTICIPLES = {"found", "made", "own", "told", "said", "known", "kept", "wanted", "done"}
"""Locals that say what happened to a thing and not what it is."""
LIMITS = {
    "most files in a folder": 24,
    "import lines, % of lines": 8,
    "modules with one importer, same room": 114,
    "locals that are participles, %": 6.15,
    "one-word private functions, % of all": 25.6,
    "functions that return a job": 0,
    "yield from": 95,
    "longest module, lines": 543,
    "functions met by one score": 877,
    "modules met by one score": 146,
    "functions met by one predict": 860,
    "modules met by one predict": 146,
}


@dataclass(frozen=True)
class Module:
    """One file: its path below the package, its text and its tree."""

    path: str
    text: str
    tree: ast.Module

    @property
    def room(self) -> str:
        """The first folder."""
        return self.path.split("/")[0]

    @property
    def dotted(self) -> str:
        """Its name for an import."""
        name = self.path.removesuffix(".py").removesuffix("/__init__")
        return "napari_mamamia." + name.replace("/", ".")


def modules() -> list[Module]:
    """Read every module of the package."""
    found = []
    for path in sorted(ROOT.rglob("*.py")):
        text = path.read_text()
        found.append(Module(str(path.relative_to(ROOT)), text, ast.parse(text)))
    return found


def assignments(tree: ast.Module) -> Iterator[str]:
    """Yield the name of every local that is assigned to."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for node in ast.walk(function):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    yield node.id


def functions(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    """Yield every function and method."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            yield node


def is_job(function: ast.FunctionDef) -> bool:
    """Tell whether a function returns a job: a chain of generators."""
    return bool(function.returns) and ast.unparse(function.returns).startswith("Job")


def import_lines(module: Module) -> int:
    """Count the lines of imports and of `__all__`."""
    n = 0
    for node in module.tree.body:
        is_all = isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
        if is_all or isinstance(node, ast.Import | ast.ImportFrom):
            n += (node.end_lineno or node.lineno) - node.lineno + 1
    return n


def importers(every: list[Module]) -> dict[str, set[str]]:
    """Return who imports each module, by dotted names."""
    names = {module.dotted for module in every}
    found: dict[str, set[str]] = {name: set() for name in names}
    for module in every:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                targets = {node.module, *(f"{node.module}.{a.name}" for a in node.names)} & names
                for target in targets - {module.dotted}:
                    found[target].add(module.dotted)
    return found


def figures(every: list[Module]) -> dict[str, float]:
    """Return every figure by its name."""
    lines = sum(module.text.count("\n") for module in every)
    folders = Counter(str(Path(m.path).parent) for m in every if not m.path.endswith("__init__.py"))
    all_names = [name for module in every for name in assignments(module.tree)]
    private = [
        f.name for m in every for f in functions(m.tree) if re.fullmatch(r"_[a-z]\w*", f.name)
    ]
    n_functions = sum(1 for m in every for _ in functions(m.tree))
    one_word = [name for name in private if "_" not in name.strip("_")]
    comments = sum(
        bool(re.match(r"\s*#", line)) for module in every for line in module.text.splitlines()
    )
    known = importers(every)
    lonely = [
        m.dotted
        for m in every
        if len(known[m.dotted]) == 1 and next(iter(known[m.dotted])).split(".")[1] == m.room
    ]
    participles = sum(name in PARTICIPLES for name in all_names)
    return {
        "modules": len(every),
        "lines": lines,
        "most files in a folder": max(folders.values()),
        "import lines, % of lines": round(100 * sum(map(import_lines, every)) / lines, 1),
        "modules with one importer, same room": len(lonely),
        "locals that are participles, %": round(100 * participles / len(all_names), 2),
        "one-word private functions, % of all": round(100 * len(one_word) / n_functions, 1),
        "comment lines, %": round(100 * comments / lines, 2),
        "functions that return a job": sum(is_job(f) for m in every for f in functions(m.tree)),
        "yield from": sum(isinstance(n, ast.YieldFrom) for m in every for n in ast.walk(m.tree)),
        "longest module, lines": max(module.text.count("\n") for module in every),
    }


WALK = """
import json, sys, threading
from pathlib import Path
import napari_mamamia
from napari_mamamia.cli.app import app
home = str(Path(napari_mamamia.__file__).parent)
met = set()
def note(frame, event, _):
    if event == "call" and frame.f_code.co_filename.startswith(home):
        met.add((frame.f_code.co_filename, frame.f_code.co_qualname))
threading.setprofile(note)
sys.setprofile(note)
try:
    app(sys.argv[2:])
except SystemExit as end:
    code = end.code
sys.setprofile(None)
met = {one for one in met if not one[1].startswith("<module>")}
Path(sys.argv[1]).write_text(json.dumps([code or 0, len(met), len({one[0] for one in met})]))
"""


def hops() -> dict[str, float]:
    """Return how many functions and modules one `mamamia score` and one `predict` go through.

    Of one small phantom case; calls at import are left out.
    """
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as place:
        data = Path(place) / "data"
        make = "import sys; from napari_mamamia.phantom.data_set import write_data_set as w; "
        make += "from pathlib import Path; w(Path(sys.argv[1]), n_cases=1, shape=(24, 64, 64))"
        subprocess.run([sys.executable, "-c", make, str(data)], check=True, cwd=place)
        masks = str(data / "segmentations" / "expert")
        out = Path(place)
        commands = {
            "score": ["--reference", masks, "--prediction", masks, "--out", str(out / "s")],
            "predict": [str(data), "--model", "kinetic", "--out", str(out / "p")],
        }
        for name, words in commands.items():
            told = out / f"{name}.json"
            walk = [sys.executable, "-c", WALK, str(told), name, *words]
            subprocess.run(walk, check=True, cwd=place, capture_output=True)
            code, n_functions, n_modules = json.loads(told.read_text())
            if code:
                raise SystemExit(f"mamamia {name} ended with {code}")
            found[f"functions met by one {name}"] = n_functions
            found[f"modules met by one {name}"] = n_modules
    return found


def worse(found: dict[str, float]) -> list[str]:
    """Say which figures lie above their limits."""
    return [
        f"{name}: {found[name]:g}, at most {limit:g}"
        for name, limit in LIMITS.items()
        if found[name] > limit
    ]


def show_map(every: list[Module]) -> None:
    """Print every package and module with the first line of its docstring."""
    for module in every:
        depth = module.path.count("/") - module.path.endswith("__init__.py")
        name = module.path.removesuffix("/__init__.py")
        job = (ast.get_docstring(module.tree) or "").splitlines()[:1]
        print(f"{'    ' * depth}{Path(name).name:<28} {''.join(job)}")


def main() -> None:
    """Print the table or the map; with ``--check`` fail where a figure got worse."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--map", action="store_true")
    given = parser.parse_args()
    every = modules()
    if given.map:
        show_map(every)
        return
    found = figures(every) | hops()
    for name, value in found.items():
        limit = f"  (at most {LIMITS[name]:g})" if name in LIMITS else ""
        print(f"{name:<40} {value:>10g}{limit}")
    faults = worse(found)
    for fault in faults:
        print(f"worse: {fault}", file=sys.stderr)
    if given.check and faults:
        sys.exit(1)


if __name__ == "__main__":
    main()
