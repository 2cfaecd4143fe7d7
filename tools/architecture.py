"""The architecture in figures: lines of code per package, complexity, local names.

Usage::

    .venv/bin/python tools/architecture.py            # the table
    .venv/bin/python tools/architecture.py --check    # exit 1 where a figure is above its limit
    .venv/bin/python tools/architecture.py --map      # every package and module, one line each
    .venv/bin/python tools/architecture.py --walk score --depth 8    # who calls whom: score,
                                                                     # predict, import or stroke

A commit that adds a named capability may raise the limit of its package, and says so. Import
directions are held by import-linter.
"""

import argparse
import ast
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1] / "src" / "napari_mamamia"
PECULIAR = frozenset(
    (
        *("found", "made", "own", "told", "said", "known", "kept", "wanted", "done", "one"),
        *("place", "part", "at", "piece", "given", "shown", "asked", "left", "lost", "sought"),
    )
)
"""Local names that say what happened to a thing, or nothing, in place of what it is."""
LIMITS = {
    "lines of code: widgets": 31_250,
    "lines of code: services": 16_470,
    "lines of code: io": 21_320,
    "lines of code: scoring": 9_190,
    "lines of code: segmentation": 11_870,
    "lines of code: smartpaint": 5_230,
    "lines of code: kinetics": 2_780,
    "lines of code: cli": 3_345,
    "lines of code: core": 2_895,
    "lines of code: phantom": 2_000,
    "lines of code: library": 2_705,
    "lines of code: metrics": 1_125,
    "lines of code: findings": 820,
    "lines of code: annotations": 410,
    "lines of code: features/review": 13_310,
    "lines of code: features/challenge": 12_255,
    "lines of code: features/classifiers": 3_990,
    "lines of code: features/perfusion": 1_520,
    "lines of code: features/prompt": 2_850,
    "complexity, mean": 3.56,
    "peculiar local names, %": 2.4,
}
"""Goals: at most 111,000 lines, a mean complexity of 3.0, 1 % of peculiar names."""


@dataclass(frozen=True)
class Module:
    """One file: its path below the package, its text and its tree."""

    path: str
    text: str
    tree: ast.Module


@dataclass(frozen=True)
class Walk:
    """The functions that one piece of work calls: counts, and (depth, module, function)."""

    n_functions: int
    n_modules: int
    lines: list[tuple[int, str, str]]


def read_modules() -> list[Module]:
    """Read every module of the package."""
    modules = []
    for path in sorted(ROOT.rglob("*.py")):
        text = path.read_text()
        modules.append(Module(str(path.relative_to(ROOT)), text, ast.parse(text)))
    return modules


def count_code(module: Module) -> int:
    """Count lines of code: no docstrings, comments and blank lines."""
    documented: set[int] = set()
    for node in ast.walk(module.tree):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            documented.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return sum(
        bool(line.strip()) and not line.lstrip().startswith("#") and number not in documented
        for number, line in enumerate(module.text.splitlines(), 1)
    )


def measure(modules: list[Module]) -> dict[str, float]:
    """Return every figure by its name."""
    from radon.complexity import cc_visit

    lines: Counter[str] = Counter()
    names: Counter[bool] = Counter()
    complexities: list[int] = []
    for module in modules:
        *folders, _ = module.path.split("/")
        if folders:
            depth = 2 if folders[0] == "features" else 1
            lines["/".join(folders[:depth])] += count_code(module)
        complexities += [block.complexity for block in cc_visit(module.text)]
        names.update(
            node.id in PECULIAR
            for node in ast.walk(module.tree)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        )
    return {
        "modules": len(modules),
        "lines of code": lines.total(),
        **{f"lines of code: {name}": n for name, n in lines.most_common()},
        "complexity, mean": round(sum(complexities) / len(complexities), 2),
        "peculiar local names, %": round(100 * names[True] / names.total(), 1),
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
    from napari_mamamia.io.layouts.find import find_data_set
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
    """Print the calls of a walk, indented by who calls whom, each function once."""
    walk = walks([name])[name]
    for level, module, function in walk.lines:
        if level < depth:
            print(f"{'    ' * level}{function}  ({module})")
    print(f"{walk.n_functions} functions in {walk.n_modules} modules")


def show_map(modules: list[Module]) -> None:
    """Print every package and module with the first line of its docstring."""
    for module in modules:
        depth = module.path.count("/") - module.path.endswith("__init__.py")
        name = module.path.removesuffix("/__init__.py")
        purpose = (ast.get_docstring(module.tree) or "").splitlines()[:1]
        print(f"{'    ' * depth}{Path(name).name:<28} {''.join(purpose)}")


def main() -> None:
    """Print the table or the map; with ``--check`` fail where a figure is above its limit."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--map", action="store_true")
    parser.add_argument("--walk", choices=WALKS)
    parser.add_argument("--depth", type=int, default=8)
    options = parser.parse_args()
    if options.walk:
        show_walk(options.walk, options.depth)
        return
    modules = read_modules()
    if options.map:
        show_map(modules)
        return
    figures = measure(modules)
    for name, value in figures.items():
        limit = f"  (at most {LIMITS[name]:g})" if name in LIMITS else ""
        print(f"{name:<40} {value:>10g}{limit}")
    above = [name for name, limit in LIMITS.items() if figures[name] > limit]
    for name in above:
        print(f"above its limit: {name}", file=sys.stderr)
    if options.check and above:
        sys.exit(1)


if __name__ == "__main__":
    main()
