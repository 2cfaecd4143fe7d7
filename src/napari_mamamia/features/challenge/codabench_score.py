"""Codabench scoring program: score a submission in input/res against the truth in input/ref.

The container's image must contain napari-mamamia. ``input/ref`` contains the reference masks, or
the truth files of a definition, and for responses and fairness ``clinical.csv``. The program writes
``output/scores.json``. Its first argument replaces ``/app``.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

TASK = "segmentation"
PROFILE = "official-code"
MODELS: tuple[str, ...] = ()
NUMBERS = ("mean_dsc", "mean_norm_hd", "performance", "fairness", "ranking_score")
DEFINITION = Path(__file__).with_name("definition.json")


def main() -> None:
    """Score the submission in the container, and write its scores."""
    root = Path(sys.argv[1] if len(sys.argv) > 1 else "/app")
    with tempfile.TemporaryDirectory() as folder:
        numbers = run_task(root / "input" / "ref", root / "input" / "res", Path(folder) / "scores")
    # Codabench takes only numbers: a number that is undefined is left out.
    scores = {name: numbers[name] for name in NUMBERS if numbers.get(name) is not None}
    target = root / "output"
    target.mkdir(parents=True, exist_ok=True)
    (target / "scores.json").write_text(json.dumps(scores), encoding="utf-8")


def run_task(reference: Path, answers: Path, out: Path) -> dict[str, Any]:
    """Score a submission, and return all numbers by name."""
    clinical = reference / "clinical.csv"
    if TASK == "segmentation":
        words = ["score", "--reference", reference, "--prediction", answers, "--profile", PROFILE]
        words += ["--clinical", clinical] if clinical.is_file() else []
    elif TASK == "classification":
        tables = sorted(answers.glob("*.csv"))
        if len(tables) != 1:
            sys.exit(f"expected one table of responses (.csv), but found {len(tables)}")
        words = ["score-pcr", tables[0], "--clinical", clinical, "--profile", PROFILE]
    else:
        words = ["challenge", "score", answers, "--challenge", DEFINITION]
        words += ["--reference", reference]
        words += [word for model in MODELS for word in ("--model", model)]
        run_program([*words, "--out", out])
        content = json.loads(out.read_text(encoding="utf-8"))
        return {name: number["mean"] for name, number in content["aggregates"].items()}
    run_program([*words, "--out", out])
    content = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    numbers: dict[str, Any] = content["task1" if TASK == "segmentation" else "task2"]
    return numbers


def run_program(words: list[Any]) -> None:
    """Run the ``mamamia`` command; exit code 3 means that a case has no usable answer."""
    program = "from napari_mamamia.cli import main; main()"
    command = [sys.executable, "-c", program, *map(str, words)]
    done = subprocess.run(command, check=False)  # noqa: S603 - own words
    if done.returncode not in (0, 3):
        sys.exit(done.returncode)


if __name__ == "__main__":
    main()
