"""The real program, started as a user starts it."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))
from program import Program, Screen, make_environment


@pytest.fixture(scope="session")
def scripts(tmp_path_factory):
    """Return the folder of `mamamia`, `napari` and `python` with the spy."""
    return make_environment(tmp_path_factory.mktemp("door") / "env")


@pytest.fixture
def start(scripts, tmp_path):
    """Return a function that starts a command on a screen of its own; all ends with the test.

    `start("mamamia", "view", folder, size=(1280, 720), NAME="value")` gives a `Program`; `before`
    are words that start the command, such as those of `PLAIN`, `monitors` those of the `Screen`.
    """
    started = []

    def run(name, *words, size=(1400, 900), monitors=(), before=(), **environment):
        screen = Screen(*size, monitors)
        folder = tmp_path / f"program{len(started)}"
        folder.mkdir()
        program = Program(
            [*before, str(scripts / name), *map(str, words)], screen, folder, **environment
        )
        started.append((program, screen))
        return program

    yield run
    for program, screen in started:
        program.end()
        screen.close()
