"""Split the patients of a table into parts, dividing every stratum evenly."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from napari_mamamia.core.errors import ArgumentError, FormatError, Remedy
from napari_mamamia.core.provenance import now_utc, software_version
from napari_mamamia.features.classifiers.scoring.split import (
    STRATIFIED_DEALING,
    PartShare,
    Split,
    deal_patients,
    join_patients,
)
from napari_mamamia.io.data_set.named_columns import NamedTable, read_named_columns
from napari_mamamia.io.tables.spreadsheets import write_sheet
from napari_mamamia.io.tables.tables import write_json
from napari_mamamia.scoring.classifier.operating import Units
from napari_mamamia.scoring.report.text import number
from napari_mamamia.services.batch.output_folder import Existing, claim_folder

SPLIT: Final = "split.json"
SPLIT_TABLE: Final = "split.csv"
NNUNET_SPLITS: Final = "splits_final.json"

_MOST_VALUES: Final = 10
"""Maximum number of distinct numbers in a stratum; if there are more, quartiles are used."""


@dataclass(frozen=True, slots=True)
class SplitSummary:
    """A split, the rows that could not be used, and the folder with the results."""

    split: Split
    failures: tuple[str, ...]
    folder: Path
    notes: tuple[str, ...] = ()

    @property
    def largest(self) -> float:
        """Return the largest standardised difference of any stratum in any part."""
        return max(
            (abs(difference) for level in self.split.balance for difference in level.differences),
            default=0.0,
        )

    @property
    def lines(self) -> tuple[str, ...]:
        """Return the sizes of the parts, and their balance, as lines of text."""
        parts = zip(self.split.parts, self.split.sizes, self.split.targets, strict=True)
        return (
            *(f"  {part.name}: {size:,} patients ({target:.2f})" for part, size, target in parts),
            f"  largest standardised difference of a value: {number(self.largest)}",
            *(f"  note: {note}" for note in self.notes),
        )


def parts_of(texts: Sequence[str]) -> tuple[PartShare, ...]:
    """Parse parts from strings such as ``train=0.5``.

    Raises
    ------
    ArgumentError
        If a string is not a name with a proportion above 0, there are fewer than two parts, or a
        name is repeated.
    """
    parts = []
    for text in texts:
        name, _, share = text.rpartition("=")
        try:
            number_of = float(share)
        except ValueError:
            number_of = math.nan
        if not name.strip() or not 0 < number_of < math.inf:
            raise ArgumentError(
                f"expected a part as NAME=SHARE, such as train=0.5, but found {text}: correct the "
                "part"
            )
        parts.append(PartShare(name.strip(), number_of))
    if len(parts) < 2 or len({part.name for part in parts}) < len(parts):
        raise ArgumentError(
            f"expected at least two parts with different names, but found {', '.join(texts)}: "
            "give each part a name",
            remedies=(Remedy("part", ("NAME=SHARE",)),),
        )
    return tuple(parts)


def split_table(
    table: Path,
    patient: str,
    strata: tuple[str, ...],
    parts: tuple[PartShare, ...],
    out: Path,
    *,
    seed: int = 42,
    existing: Existing = Existing.REFUSE,
    case: str = "",
) -> SplitSummary:
    """Assign the patients of a table to parts; write ``split.csv`` and ``split.json``.

    A patient's rows stay together; if they differ in a stratum, the most frequent value is used. A
    column with more than 10 distinct numbers is grouped into quartiles. A row without a patient is
    reported as a failure.

    Parameters
    ----------
    table, patient, strata
        The table, its patient column, and its columns of strata, the most important first.
    parts
        The parts and their proportions.
    out
        Output folder.
    seed
        Random seed of the assignment.
    existing
        What to do with other results in `out`.
    case
        The case column, for nnU-Net's ``splits_final.json``; if "", this file is not written.

    Raises
    ------
    FormatError
        If the table cannot be read, lacks a column, or has no patient.
    SaveConflictError
        If `out` contains other results.
    """
    read = read_named_columns(
        table, tuple(dict.fromkeys((patient, *strata, *filter(None, [case]))))
    )
    names = read.texts(patient)
    rows = [row for row, name in enumerate(names) if name]
    if not rows:
        raise FormatError(
            f"expected column {patient} of {table} to contain patients, but it is empty: choose "
            "another column"
        )
    failures = tuple(
        f"row {read.row_numbers[row]} of {table.name}: {patient} is empty, so the row was left out"
        for row, name in enumerate(names)
        if not name
    )
    patients = Units.of([names[row] for row in rows])
    columns = {}
    for name in strata:
        values = _group_values(read, name)
        columns[name] = join_patients(patients, [values[row] for row in rows])
    split = deal_patients(columns or {"": ("",) * patients.n}, parts, seed)
    parameters = (
        ("table", table.name),
        ("patient", patient),
        ("strata", ", ".join(strata) or None),
        ("parts", ", ".join(f"{part.name}={part.share:g}" for part in parts)),
        ("seed", seed),
        ("case", case or None),
    )
    claim_folder(out, "split", parameters, existing)
    overwrite = existing is not Existing.REFUSE
    head = (patient, "part", *(f"{name} (stratum)" for name in columns))
    lines = [
        (name, parts[split.of_patient[index]].name, *(columns[column][index] for column in columns))
        for index, name in enumerate(patients.names)
    ]
    write_sheet([head, *lines], out / SPLIT_TABLE, name="split", overwrite=overwrite)
    reasons = (*(failure.reason for failure in read.failures), *failures)
    notes = (*read.notes, *read.note_alike(patient))
    summary = SplitSummary(split, reasons, out, notes)
    write_json(_describe_split(summary, seed), out / SPLIT, overwrite=overwrite)
    if case:
        part_of = {
            name: parts[split.of_patient[index]].name for index, name in enumerate(patients.names)
        }
        cases = [
            (text, part_of[names[row]]) for row, text in enumerate(read.texts(case)) if names[row]
        ]
        folds = _make_folds([part.name for part in parts], cases)
        write_json(folds, out / NNUNET_SPLITS, overwrite=overwrite)
    return summary


def _make_folds(
    parts: Sequence[str], cases: Sequence[tuple[str, str]]
) -> list[dict[str, list[str]]]:
    """Return nnU-Net folds: one fold of train and val, or each part as validation set once.

    A part named test is in no fold. Source: nnU-Net v2 documentation, manual_data_splits.md.

    Examples
    --------
    >>> _make_folds(["train", "val", "test"], [("A", "train"), ("B", "val"), ("C", "test")])
    [{'train': ['A'], 'val': ['B']}]
    >>> _make_folds(["a", "b"], [("A", "a"), ("B", "b")])
    [{'train': ['B'], 'val': ['A']}, {'train': ['A'], 'val': ['B']}]
    """
    folds = [name for name in parts if name.lower() != "test"]
    validation = ["val"] if sorted(name.lower() for name in folds) == ["train", "val"] else folds
    kept = [(case, part) for case, part in cases if part in folds and case]
    return [
        {
            "train": sorted({case for case, part in kept if part.lower() != name.lower()}),
            "val": sorted({case for case, part in kept if part.lower() == name.lower()}),
        }
        for name in validation
    ]


def _group_values(table: NamedTable, name: str) -> tuple[str, ...]:
    try:
        numbers, bad = table.numbers(name)
    except FormatError:  # Ambiguous numbers are grouped by their spelling.
        return table.texts(name)
    there = numbers[~np.isnan(numbers)]
    if bad or np.unique(there).size <= _MOST_VALUES:
        return table.texts(name)
    edges = np.unique(np.quantile(there, (0.25, 0.5, 0.75)))
    quarters = np.searchsorted(edges, numbers, side="left")
    return tuple(
        "" if np.isnan(value) else _name_quarter(int(quarter), edges.tolist())
        for value, quarter in zip(numbers, quarters, strict=True)
    )


def _name_quarter(quarter: int, edges: list[float]) -> str:
    if quarter == 0:
        return f"up to {edges[0]:g}"
    if quarter == len(edges):
        return f"above {edges[-1]:g}"
    return f"above {edges[quarter - 1]:g} to {edges[quarter]:g}"


def _describe_split(summary: SplitSummary, seed: int) -> dict[str, object]:
    split = summary.split
    parts = [
        {"name": part.name, "share": part.share, "n": size, "exact": exact}
        for part, size, exact in zip(split.parts, split.sizes, split.targets, strict=True)
    ]
    return {
        "method": STRATIFIED_DEALING,
        "seed": seed,
        "parts": parts,
        "balance": split.balance,
        "largest_standardised_difference": summary.largest,
        "failures": summary.failures,
        "notes": summary.notes,
        "software": software_version(),
        "created": now_utc(),
    }
