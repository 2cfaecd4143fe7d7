"""Scoring program for Codabench: masks in input/res against references in input/ref.

Needs napari-mamamia in the container's image. ``input/ref`` holds the reference masks and, for
fairness, ``clinical.csv``. Writes ``output/scores.json``. The first argument replaces ``/app``.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

PROFILE = "official-code"
NUMBERS = ("mean_dsc", "mean_norm_hd", "performance", "fairness", "ranking_score")


def main() -> None:
    """Score the submission in the container, and write its numbers."""
    root = Path(sys.argv[1] if len(sys.argv) > 1 else "/app")
    reference, prediction = root / "input" / "ref", root / "input" / "res"
    clinical = reference / "clinical.csv"
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "scores"
        program = "from napari_mamamia.cli import main; main()"
        command = [sys.executable, "-c", program, "score", "--reference", reference]
        command += ["--prediction", prediction, "--out", out, "--profile", PROFILE]
        command += ["--clinical", clinical] if clinical.is_file() else []
        # 3: the numbers are complete, but a case has no usable mask.
        done = subprocess.run([str(word) for word in command], check=False)  # noqa: S603 - own words
        if done.returncode not in (0, 3):
            sys.exit(done.returncode)
        task = json.loads((out / "summary.json").read_text(encoding="utf-8"))["task1"]
    # Codabench takes only numbers: a number that is undefined is left out.
    scores = {name: task[name] for name in NUMBERS if task[name] is not None}
    target = root / "output"
    target.mkdir(parents=True, exist_ok=True)
    (target / "scores.json").write_text(json.dumps(scores), encoding="utf-8")


if __name__ == "__main__":
    main()
