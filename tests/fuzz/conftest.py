"""The harness is a program of its own, run by `test_readers.py`: pytest looks at tests only."""

from pathlib import Path

collect_ignore = [
    path.name for path in Path(__file__).parent.glob("*.py") if not path.name.startswith("test_")
]
