"""`mamamia` as a program, without the two seconds that it takes to start and import.

One process imports everything once (the fault tests' `warm.py`) and forks a child for each command:
with its own streams, environment and exit code, as a command has them. Tests of what only a cold
start shows (marked `door`) start the command itself.
"""

import atexit
import json
import os
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

PROGRAM = Path(__file__).parents[1] / "fault" / "warm.py"
LIMIT_S = 240


@cache
def warm_process(python_path: str = "") -> subprocess.Popen:
    """Return the process of this whole run; one more where Python looks elsewhere first."""
    pipe, own = subprocess.PIPE, dict(os.environ, OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    own |= {"PYTHONPATH": python_path} if python_path else {}
    process = subprocess.Popen(
        [sys.executable, PROGRAM], stdin=pipe, stdout=pipe, text=True, env=own
    )
    assert process.stdout.readline() == "warm\n"
    atexit.register(process.wait)
    atexit.register(process.stdin.close)
    return process


def mamamia(*arguments, has_figures=True) -> subprocess.CompletedProcess:
    """Run `mamamia`; without figures a dot is put in the place of each, as `quick_figures` does."""
    process, words = warm_process(), [str(word) for word in arguments]
    with tempfile.TemporaryDirectory() as folder:
        said = [Path(folder) / name for name in ("out", "err", "counts")]
        out, err, counts = map(str, said)
        trial = {"argv": words, "out": out, "err": err, "counts": counts, "limit_s": LIMIT_S}
        trial |= {"cwd": str(Path.cwd()), "env": dict(os.environ), "dots": not has_figures}
        trial |= {"root": folder, "kind": "", "at": 0, "number": 0}
        print(json.dumps(trial), file=process.stdin, flush=True)
        answer = json.loads(process.stdout.readline())
        assert not answer["hung"], words
        texts = [path.read_text() for path in said[:2]]
    return subprocess.CompletedProcess(words, answer["code"], *texts)
