"""The table that `mamamia --help` is written from: it says what the commands say themselves."""

import subprocess
import sys

import pytest

from napari_mamamia.cli.app import ENTRIES

LISTED = [entry for entries in ENTRIES.values() for entry in entries]


@pytest.mark.parametrize("entry", LISTED, ids=lambda entry: entry.name)
def test_a_line_of_the_table_is_the_first_line_of_the_commands_own_help(entry):
    assert entry.load().help.splitlines()[0] == entry.does


@pytest.mark.parametrize("entry", LISTED, ids=lambda entry: entry.name)
def test_a_line_of_the_table_fits_two_lines_of_a_narrow_terminal(entry):
    assert len(entry.does) <= 2 * 60


def test_no_two_commands_share_a_name():
    assert len({entry.name for entry in LISTED}) == len(LISTED)


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
    assert done.stderr.split() == ["napari_mamamia.cli.app", "napari_mamamia.cli.given"]
