"""Every reader returns or raises an error of ours, whatever the file: a few inputs of each format.

`make fuzz SEED=n MINUTES=m` tries as many as there is time for, `make night` some thousand.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

FUZZ = Path(__file__).parent


def run(tmp_path, *options) -> str:
    """Run the command in a process of its own: it forks, and takes memory and time away."""
    done = subprocess.run(
        [sys.executable, FUZZ / "run.py", "--keep", tmp_path / "found", *map(str, options)],
        capture_output=True,
        text=True,
        env={**os.environ, "MALLOC_ARENA_MAX": "2"},
    )
    said = done.stdout + done.stderr[-3000:]
    assert done.returncode == 0, said
    return done.stdout


def test_each_reader_has_a_fuzzer_and_returns_or_raises_an_error_of_ours(tmp_path):
    said = run(tmp_path, "--check", "--quick", "--seed", 11, "--inputs", 3)
    assert " 0 found" in said.splitlines()[-1]


@pytest.mark.night
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("seed", [1, 2])
def test_hundreds_of_damaged_files_of_each_format(seed, tmp_path):
    said = run(tmp_path, "--check", "--seed", seed, "--inputs", 300)
    assert " 0 found" in said.splitlines()[-1]


BROKEN = """
from pathlib import Path
import sys
sys.path.insert(0, {fuzz!r})
import formats, harness

def make(folder):
    (folder / "a.json").write_text("[1, 2, 3]")
    return folder / "a.json"

def crash(path):
    return path.read_text().index("1, 2")

def hang(path):
    while path.read_text() != "[1, 2, 3]":
        pass

def hungry(path):
    return bytearray(path.stat().st_size << 26)

def die(path):
    import os
    os.abort()

harness.CPU_S = 1
cases = [
    harness.Format(read.__name__, make, read, (), share=share)
    for read, share in ((crash, 1), (hang, 0.2), (hungry, 1), (die, 1))
]
formats.all_formats = lambda: tuple(cases)
import run
sys.exit(run.main())
"""


def test_the_harness_itself_finds_a_crash_a_hang_hunger_and_a_death(tmp_path):
    """A harness that sees nothing would pass everything."""
    script = tmp_path / "broken.py"
    script.write_text(BROKEN.format(fuzz=str(FUZZ)))
    done = subprocess.run(
        [sys.executable, script, "--inputs", "6", "--keep", tmp_path / "found"],
        capture_output=True,
        text=True,
    )
    rows = {
        line.split()[0]: line.split()[1:] for line in done.stdout.splitlines() if line[:1] in "chd"
    }
    assert done.returncode == 1, done.stdout + done.stderr
    crashes, hangs, memory = 3, 4, 5  # columns
    assert int(rows["crash"][crashes]) > 0
    assert int(rows["hang"][hangs]) == 1
    assert int(rows["hungry"][memory]) > 0
    assert int(rows["die"][crashes]) == 6
    kept = next((tmp_path / "found" / "crash").iterdir())
    assert (kept / "found.txt").read_text().startswith("crash: ValueError")
    assert (kept / "a.json").read_bytes() != b"[1, 2, 3]"
