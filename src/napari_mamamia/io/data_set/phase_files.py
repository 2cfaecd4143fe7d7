"""File names of phases: ``ID_0000.nii.gz`` is phase 0 of case ID. No file is opened here."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from napari_mamamia.io.files.sources import PhaseSource
from napari_mamamia.io.volumes.formats import file_stem

# A file name may hold a line break, which a dot does not match by itself.
_PHASE: Final = re.compile(r"(?P<case_id>.+)_(?P<phase>\d{4})", re.DOTALL)


@dataclass(frozen=True, slots=True)
class PhaseName:
    """The parts of a phase's file name; `index` is the phase."""

    name: str
    case_id: str
    index: int


def parse_phase_name(name: str) -> PhaseName | None:
    """Return case id and phase of a file name, None if it does not have the form ``ID_000k``.

    Examples
    --------
    >>> parse_phase_name("DUKE_001_0002.nii.gz")
    PhaseName(name='DUKE_001_0002.nii.gz', case_id='DUKE_001', index=2)
    """
    stem = file_stem(name)
    match = _PHASE.fullmatch(stem) if stem else None
    return PhaseName(name, match["case_id"], int(match["phase"])) if match else None


def to_phases(folder: Path, names: Iterable[PhaseName]) -> tuple[PhaseSource, ...]:
    """Return the source of each phase in order; phases with two files have no source."""
    by_index: dict[int, list[str]] = {}
    for phase in names:
        by_index.setdefault(phase.index, []).append(phase.name)
    return tuple(
        PhaseSource((folder / by_index[index][0],))
        for index in sorted(by_index)
        if len(by_index[index]) == 1
    )


def find_problems(case_id: str, folder: Path, names: Iterable[PhaseName]) -> tuple[str, ...]:
    """Return why phase files do not form a case: missing phases, or two files for a phase."""
    by_index: dict[int, list[str]] = {}
    for phase in names:
        by_index.setdefault(phase.index, []).append(phase.name)
    if not by_index:
        return (
            (
                f"no phase of {case_id} was found in {folder}; add files named "
                f"{case_id}_0000.nii.gz, {case_id}_0001.nii.gz, ..., or rename existing ones"
            ),
        )
    problems = [
        f"phase {index} of {case_id} has {len(twins)} files: "
        f"{' and '.join(sorted(twins))} in {folder}; keep one of them"
        for index, twins in sorted(by_index.items())
        if len(twins) > 1
    ]
    missing = [index for index in range(max(by_index)) if index not in by_index]
    if missing:
        problems.append(_describe_missing(case_id, folder, missing, sorted(by_index)))
    return tuple(problems)


def _describe_missing(case_id: str, folder: Path, missing: list[int], found: list[int]) -> str:
    listed = _in_words(missing)
    which = f"phase {listed} is missing" if len(missing) == 1 else f"phases {listed} are missing"
    files = _in_words([f"{case_id}_{index:04d}.nii.gz" for index in missing])
    return f"{which}: found {_in_words(found)} in {folder}; add {files} or renumber"


def _in_words(items: Iterable[object]) -> str:
    words = [str(item) for item in items]
    return ", ".join(words) if len(words) <= 6 else f"{', '.join(words[:5])}, ... {words[-1]}"
