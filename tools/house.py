"""The house measured: how crowded folders are, how names and functions are made.

Usage::

    .venv/bin/python tools/house.py            # the table
    .venv/bin/python tools/house.py --check    # exit 1 where a figure is worse than its limit
    .venv/bin/python tools/house.py --map      # every package and module with its one job
    .venv/bin/python tools/house.py --walk score --depth 8    # who calls whom: score, predict,
                                                              # import or stroke

The limits only ever fall: whoever makes a figure better writes the new one down (`LIMITS`).
"""

import argparse
import ast
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).parents[1] / "src" / "napari_mamamia"
PARTICIPLES = {"found", "made", "own", "told", "said", "known", "kept", "wanted", "done"}
"""Locals that say what happened to a thing and not what it is."""
LIMITS = {
    "most files in a folder": 24,
    "import lines, % of lines": 8,
    "locals that are participles, %": 0,
    "one-word private functions, % of all": 0,
    "functions that return a job": 0,
    "yield from": 95,
    "session, scene, jobs, services or notifier handed on alone": 17,
}


@dataclass(frozen=True)
class Module:
    """One file: its path below the package, its text and its tree."""

    path: str
    text: str
    tree: ast.Module

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """Every node of the tree, walked once."""
        return list(ast.walk(self.tree))

    @property
    def room(self) -> str:
        """The first folder."""
        return self.path.split("/")[0]

    @property
    def dotted(self) -> str:
        """Its name for an import."""
        name = self.path.removesuffix(".py").removesuffix("/__init__")
        return "napari_mamamia." + name.replace("/", ".")


@dataclass(frozen=True)
class Walk:
    """What one piece of work goes through: how much, and (depth, module, function) as met."""

    n_functions: int
    n_modules: int
    lines: list[tuple[int, str, str]]


def modules() -> list[Module]:
    """Read every module of the package."""
    found = []
    for path in sorted(ROOT.rglob("*.py")):
        text = path.read_text()
        found.append(Module(str(path.relative_to(ROOT)), text, ast.parse(text)))
    return found


def assignments(module: Module) -> Iterator[str]:
    """Yield the name of every local that is assigned to."""
    for function in module.nodes:
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for node in ast.walk(function):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    yield node.id


def functions(module: Module) -> Iterator[ast.FunctionDef]:
    """Yield every function and method."""
    for node in module.nodes:
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


def border_parameters(module: Module) -> int:
    """Count what of a `WindowContext` is handed to functions of the window one by one."""
    names = {"session", "scene", "jobs", "services", "notifier"}
    if module.room != "widgets":
        return 0
    return sum(len(names & {arg.arg for arg in f.args.args}) for f in functions(module))


def importers(every: list[Module]) -> dict[str, set[str]]:
    """Return who imports each module, by dotted names."""
    names = {module.dotted for module in every}
    found: dict[str, set[str]] = {name: set() for name in names}
    for module in every:
        for node in module.nodes:
            if isinstance(node, ast.ImportFrom) and node.module:
                targets = {node.module, *(f"{node.module}.{a.name}" for a in node.names)} & names
                for target in targets - {module.dotted}:
                    found[target].add(module.dotted)
    return found


def figures(every: list[Module]) -> dict[str, float]:
    """Return every figure by its name."""
    lines = sum(module.text.count("\n") for module in every)
    folders = Counter(str(Path(m.path).parent) for m in every if not m.path.endswith("__init__.py"))
    all_names = [name for module in every for name in assignments(module)]
    private = [f.name for m in every for f in functions(m) if re.fullmatch(r"_[a-z]\w*", f.name)]
    n_functions = sum(1 for m in every for _ in functions(m))
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
        "functions that return a job": sum(is_job(f) for m in every for f in functions(m)),
        "yield from": sum(isinstance(n, ast.YieldFrom) for m in every for n in m.nodes),
        "longest module, lines": max(module.text.count("\n") for module in every),
        "session, scene, jobs, services or notifier handed on alone": sum(
            map(border_parameters, every)
        ),
    }


WALK = """
import contextlib, io, json, sys, threading
from pathlib import Path
import napari_mamamia
home = str(Path(napari_mamamia.__file__).parent) + "/"
met, lines, depth = set(), [], 0
def note(frame, event, _):
    # A class's body and a comprehension are no hops: neither is met, neither goes deeper.
    global depth
    code = frame.f_code
    if not code.co_filename.startswith(home) or not code.co_flags & 1 or code.co_name[0] == "<":
        return
    if event == "return":
        depth -= 1
    elif event == "call":
        one = (code.co_filename[len(home):], code.co_qualname)
        if one not in met:
            met.add(one)
            lines.append((depth, *one))
        depth += 1
def walk(work):
    sys.setprofile(note)
    try:
        work()
    except SystemExit as end:
        if end.code:
            raise
    finally:
        sys.setprofile(None)
def command(words):
    from napari_mamamia.cli.app import app
    with contextlib.redirect_stdout(io.StringIO()):
        try:  # once before, so that what is done at the first import is not met
            app([word.replace("OUT", "before") for word in words])
        except SystemExit as end:
            if end.code:
                raise
        walk(lambda: app([word.replace("OUT", "out") for word in words]))
def stroke():
    from napari_mamamia.core.edits import Action, Brush, Tool
    from napari_mamamia.io.data_set.layout import find_data_set
    from napari_mamamia.services.case.open_case import load_case
    from napari_mamamia.io.workspace.workspace import Workspace
    from napari_mamamia.services.refine.edit_case import open_editing
    from napari_mamamia.smartpaint.brush.features import measure_features
    from napari_mamamia.smartpaint.evidence.stroke import settle_stroke
    case = load_case(find_data_set(Path("data")).cases[0])
    images = measure_features(case)
    editing = open_editing(case, Workspace(Path("space")), "B", None, images)
    session = editing.session
    def paint():
        brush = Brush(tool=Tool.EVIDENCE, radius_mm=10.0, action=Action.ADD)
        session.press((12.0, 32.0, 20.0), brush)
        session.drag((12.0, 33.0, 22.0))
        work = session.lift()
        session.settle(work, settle_stroke(work))
    walk(paint)
    editing.close()
stroke() if sys.argv[2] == "stroke" else command(sys.argv[2:])
told = [len(met), len({one[0] for one in met}), lines]
Path(sys.argv[1]).write_text(json.dumps(told))
"""
MASKS = "data/segmentations/expert"
WALKS = {
    "score": ["score", "--reference", MASKS, "--prediction", MASKS, "--out", "score_OUT"],
    "predict": ["predict", "data", "--model", "kinetic", "--out", "predict_OUT"],
    "import": ["import", "study", "--out", "import_OUT"],
    "stroke": ["stroke"],
}
"""What is walked: three commands on one small phantom, and one stroke with its journal."""


def walks(names: Iterable[str]) -> dict[str, Walk]:
    """Return each walk by its name: what this thread goes through, in the order it is met."""
    make = "import napari_mamamia as mm; shape = (24, 64, 64); "
    make += "mm.make_phantoms('data', 1, shape=shape, progress=False); "
    make += "mm.make_phantom_study('study', shape=shape, progress=False)"
    with tempfile.TemporaryDirectory() as place:
        # Whoever runs this has preferences, and other programs leave files in the temporary folder:
        # to read either takes calls.
        own = {"MAMAMIA_CONFIG_DIR": str(Path(place) / "config"), "TMPDIR": place}
        alone = os.environ | own
        subprocess.run([sys.executable, "-c", make], check=True, cwd=place, env=alone)
        taken = {}
        for name in names:
            file = Path(place) / f"{name}.json"
            line = [sys.executable, "-c", WALK, str(file), *WALKS[name]]
            subprocess.run(line, check=True, cwd=place, env=alone, stdout=subprocess.DEVNULL)
            n_functions, n_modules, lines = json.loads(file.read_text())
            taken[name] = Walk(n_functions, n_modules, [tuple(line) for line in lines])
    return taken


def show_walk(name: str, depth: int) -> None:
    """Print what a walk goes through, indented by who calls whom, each function once."""
    walk = walks([name])[name]
    for level, module, function in walk.lines:
        if level < depth:
            print(f"{'    ' * level}{function}  ({module})")
    print(f"{walk.n_functions} functions in {walk.n_modules} modules")


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
    parser.add_argument("--walk", choices=WALKS)
    parser.add_argument("--depth", type=int, default=8)
    given = parser.parse_args()
    if given.walk:
        show_walk(given.walk, given.depth)
        return
    every = modules()
    if given.map:
        show_map(every)
        return
    found = figures(every)
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
