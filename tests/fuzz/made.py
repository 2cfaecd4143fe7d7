"""What other tests make their small files with, loaded from where it lies."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

_TESTS = Path(__file__).parents[1]


def from_tests(name: str) -> ModuleType:
    """Return the module of a test file by its path below tests, such as "io/test_journal"."""
    label = "made_" + name.replace("/", "_")
    if label not in sys.modules:
        spec = importlib.util.spec_from_file_location(label, _TESTS / f"{name}.py")
        sys.modules[label] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return sys.modules[label]
