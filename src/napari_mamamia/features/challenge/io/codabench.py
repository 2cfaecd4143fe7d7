"""The files of a Codabench competition: ``competition.yaml``, pages, and scoring programs."""

import io
import json
import re
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Final

from napari_mamamia.core.choices import Task
from napari_mamamia.core.version import __version__
from napari_mamamia.io.files.save import saving, write_text_atomically

FOLDER: Final = "codabench"
COMPETITION: Final = "competition.yaml"
_FIXED: Final = (1980, 1, 1, 0, 0, 0)
_COLUMNS: Final = MappingProxyType(
    {
        Task.SEGMENTATION.value: (
            ("ranking_score", "Ranking score", True),
            ("performance", "Performance", True),
            ("fairness", "Fairness", True),
            ("mean_dsc", "Mean Dice", True),
            ("mean_norm_hd", "Mean NormHD", False),
        ),
        Task.CLASSIFICATION.value: (
            ("ranking_score", "Ranking score", True),
            ("balanced_accuracy", "Balanced accuracy", True),
            ("fairness", "Fairness", True),
        ),
    }
)
_HEAD: Final = """\
# A Codabench competition. Before you upload this folder as a zip file, add the files that are not
# public: logo.png, and the reference data of each task as a zip file without an inner folder.
# The image needs Python with napari-mamamia; publish it under a name of your own.
version: 2
title: {title}
description: {title}
image: logo.png
docker_image: example/napari-mamamia:{version}
registration_auto_approve: false
terms: terms.md
pages:
  - title: Overview
    file: overview.md
"""
_TERMS: Final = "Write here what participants agree to.\n"


@dataclass(frozen=True, slots=True)
class ScoringProgram:
    """The data from which the Codabench scoring program of one task is made.

    Parameters
    ----------
    task, title
        The task, and its title.
    profile
        The profile of masks and responses.
    columns
        Key, title and whether larger is better, for each column of the results; () for the standard
        columns of the MAMA-MIA tasks.
    definition
        The challenge definition as JSON text; "" for the MAMA-MIA tasks.
    models
        The kinds of the models that measures use, by role.
    """

    task: str
    title: str
    profile: str
    columns: tuple[tuple[str, str, bool], ...] = ()
    definition: str = ""
    models: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def all_columns(self) -> tuple[tuple[str, str, bool], ...]:
        """Return key, title and whether larger is better, for each column of the results."""
        return self.columns or _COLUMNS[self.task]

    @property
    def name(self) -> str:
        """Return the name of the task as used in file names."""
        return re.sub(r"[^\w\-]+", "_", self.task)


def write_competition(
    title: str, day: str, programs: Sequence[ScoringProgram], folder: Path
) -> None:
    """Write ``competition.yaml``, pages and scoring programs; the errors are those of `saving`.

    Parameters
    ----------
    title, day
        Title of the competition, and its first day (ISO 8601).
    programs
        A scoring program for each task.
    folder
        An empty folder.
    """
    for program in programs:
        with saving(folder / f"scoring_program_{program.name}.zip") as temporary:
            temporary.write_bytes(_zip_program(program))
    text = _HEAD.format(title=json.dumps(title), version=__version__)
    write_text_atomically(folder / COMPETITION, text + _list_tasks(programs, day))
    write_text_atomically(folder / "terms.md", _TERMS)
    heading = "\n".join(f"- {program.title}" for program in programs)
    write_text_atomically(folder / "overview.md", f"# {title}\n\nTasks:\n\n{heading}\n")


def _list_tasks(programs: Sequence[ScoringProgram], day: str) -> str:
    """Return YAML with the tasks, one phase that contains them all, and the result columns."""
    lines = ["tasks:"]
    for index, program in enumerate(programs):
        lines += [
            f"  - index: {index}",
            f"    name: {json.dumps(program.title)}",
            f"    description: {json.dumps(program.title)}",
            "    is_public: false",
            f"    scoring_program: scoring_program_{program.name}.zip",
            f"    reference_data: reference_data_{program.name}.zip",
        ]
    lines += ["phases:", "  - index: 0", "    name: Test", "    description: Test",
              f"    start: {day}", "    max_submissions_per_day: 1", "    tasks:"]  # fmt: skip
    lines += [f"      - {index}" for index in range(len(programs))]
    lines += ["leaderboards:", "  - title: Results", "    key: main",
              "    submission_rule: Force_Last", "    columns:"]  # fmt: skip
    # Tasks share a column if they have a number of the same name.
    columns = {key: (title, is_high) for program in programs
               for key, title, is_high in program.all_columns}  # fmt: skip
    for index, (key, (title, is_high)) in enumerate(columns.items()):
        lines += [
            f"      - index: {index}",
            f"        key: {key}",
            f"        title: {json.dumps(title)}",
            f"        sorting: {'desc' if is_high else 'asc'}",
            "        precision: 4",
        ]
    return "\n".join(lines) + "\n"


def _zip_program(program: ScoringProgram) -> bytes:
    """Return the bytes of a zip file with ``metadata``, ``score.py`` and a definition."""
    script = (files("napari_mamamia.features.challenge") / "codabench_score.py").read_text("utf-8")
    numbers = tuple(key for key, _, _ in program.all_columns)
    models = tuple(f"{role}={text}" for role, text in program.models.items())
    settings = {"TASK": program.task, "PROFILE": program.profile, "NUMBERS": numbers,
                "MODELS: tuple[str, ...]": models}  # fmt: skip
    for name, value in settings.items():
        (line,) = re.findall(rf"^{re.escape(name)} = .*$", script, re.MULTILINE)
        script = script.replace(line, f"{name} = {value!r}", 1)
    texts = {"metadata": "command: python3 score.py\n", "score.py": script}
    if program.definition:
        texts["definition.json"] = program.definition
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in texts.items():
            archive.writestr(zipfile.ZipInfo(name, _FIXED), text)
    return buffer.getvalue()
