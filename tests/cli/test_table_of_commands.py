"""The table that `mamamia --help` is written from: it says what the commands say themselves."""

import subprocess
import sys

import pytest

from napari_mamamia.cli.app import list_commands, load_command

LISTED = [command for group in list_commands().values() for command in group]


@pytest.mark.parametrize("command", LISTED, ids=lambda command: command.name)
def test_a_line_of_the_table_is_the_first_line_of_the_commands_own_help(command):
    assert load_command(command).help.splitlines()[0] == command.summary


@pytest.mark.parametrize("command", LISTED, ids=lambda command: command.name)
def test_a_line_of_the_table_fits_two_lines_of_a_narrow_terminal(command):
    assert len(command.summary) <= 2 * 60


def test_no_two_commands_share_a_name():
    assert len({command.name for command in LISTED}) == len(LISTED)


def test_help_imports_no_command():
    program = (
        "import sys\n"
        "from napari_mamamia.cli.app import app\n"
        "try:\n    app(['--help'])\nexcept SystemExit:\n    pass\n"
        "names = [n for n in sys.modules if n.startswith('napari_mamamia.cli.')]\n"
        "print(*sorted(names), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "score-table" in done.stdout
    assert done.stderr.split() == [
        f"napari_mamamia.cli.{name}" for name in ("app", "given", "scripting")
    ]
