"""One module asks which system this is; what only POSIX has is used there, and behind guards."""

import ast
import re
from pathlib import Path

import pytest
from tests.source import SOURCE, calls_of, modules_with, words_of

RULES = Path(__file__).parent / "windows" / "sitecustomize.py"
SYSTEM = "core/program/system.py"
ALLOWED = {
    "segmentation/sandbox/runner.py": {
        *("os.fork", "os.waitstatus_to_exitcode", "os.open", "resource", "ctypes"),
    },
    "segmentation/sandbox/cuda.py": {"os.sysconf"},
    "features/prompt/segmentation/worker.py": {"resource"},
    "kinetics/registration/itk.py": {"ctypes"},
    "segmentation/worker/shared_arrays.py": {"os.posix_fallocate"},
    "core/program/child_process.py": {"os.execve"},
    "io/files/foreign.py": {"os.open"},
}
"""What each may use: its own text guards it (`hasattr`, `can_watch`, a constant of system)."""


def gone_from_windows():
    """Return the names that the simulation takes away, read from its text."""
    tree = ast.parse(RULES.read_text("utf-8"))
    values = {
        node.targets[0].id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    names = {
        key.value: value
        for key, value in zip(values["GONE"].keys, values["GONE"].values, strict=True)
    }
    texts = {
        key: {item.value for item in ast.walk(value) if isinstance(item, ast.Constant)}
        for key, value in names.items()
    }
    modules = {item.value for item in values["GONE_MODULES"].elts}
    return modules, texts


MODULES, NAMES = gone_from_windows()
MODULES |= {"msvcrt", "winreg", "_winapi", "ctypes"}
FURTHER = {
    "os": {"execv", "execve", "memfd_create", "waitstatus_to_exitcode", "name", "open"},
    "sys": {"platform"},
}


def system_uses(tree):
    """Return what a module uses that differs between systems."""
    return {name for node in ast.walk(tree) for name in (*imports_in(node), *names_in(node))}


def imports_in(node):
    if isinstance(node, ast.Import):
        yield from MODULES & {alias.name for alias in node.names}
    elif isinstance(node, ast.ImportFrom) and node.module in MODULES:
        yield node.module
    elif isinstance(node, ast.ImportFrom) and node.module in ("os", "sys", "signal"):
        yield from (f"{node.module}.{one.name}" for one in node.names if one.name != "intern")
    elif is_named_import(node):
        yield from MODULES & {item.value for item in node.args}


def names_in(node):
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        home, name = node.value.id, node.attr
        if name in NAMES.get(home, set()) | FURTHER.get(home, set()):
            yield f"{home}.{name}"


def is_named_import(node):
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "import_module"
        and all(isinstance(item, ast.Constant) for item in node.args)
    )


def test_what_systems_do_differently_is_asked_for_in_one_module():
    found = {}
    for path, tree in modules_with(words_of({*MODULES, *NAMES, *FURTHER, "signal"})):
        place = path.relative_to(SOURCE).as_posix()
        uses = system_uses(tree)
        if uses and place != SYSTEM:
            found[place] = uses
    assert {place: uses - ALLOWED.get(place, set()) for place, uses in found.items()} == {
        place: set() for place in found
    }
    assert {place: uses for place, uses in ALLOWED.items() if uses - found.get(place, set())} == {}


@pytest.mark.parametrize(
    "text",
    [
        "import fcntl",
        "from pwd import getpwuid",
        "import_module('resource')",
        "import sys\nif sys.platform == 'win32': pass",
        "import os\nos.name",
        "import os\nos.fork()",
        "import os\nos.open('x', os.O_NOFOLLOW)",
        "from os import getuid",
        "import signal\nsignal.SIGKILL",
    ],
)
def test_each_way_to_use_it_is_seen(text):
    assert system_uses(ast.parse(text))


def without_encoding(tree):
    """Yield the lines that read or write text in the encoding that the system happens to have."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or any(key.arg == "encoding" for key in node.keywords):
            continue
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        given = [item.value for item in node.args if isinstance(item, ast.Constant)]
        is_text = any(isinstance(one, str) and re.fullmatch(r"[rwax]t?\+?", one) for one in given)
        usual = {
            "read_text": not node.args,
            "write_text": len(node.args) < 2,
            "open": is_text,
            "fdopen": is_text,
        }
        if usual.get(name, False):
            yield node.lineno


def test_text_is_read_and_written_in_a_named_encoding():
    found = {
        path.relative_to(SOURCE).as_posix(): lines
        for path, tree in modules_with(calls_of(("read_text", "write_text", "open", "fdopen")))
        if (lines := [*without_encoding(tree)])
    }
    assert list(found) == ["io/tables/spreadsheets.py"]  # a member of a zip: bytes
