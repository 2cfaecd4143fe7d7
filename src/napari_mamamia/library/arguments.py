"""Check arguments: paths, choices by name, and existing folders."""

import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np

from napari_mamamia.core.errors import ArgumentError, MamamiaError, MissingColumnsError
from napari_mamamia.core.records import CaseFailure
from napari_mamamia.io.clinical.columns import BY_NAME, COLUMNS, ColumnChoice, read_columns
from napari_mamamia.io.files.csv_text import is_number
from napari_mamamia.io.files.own_paths import own_folder
from napari_mamamia.io.files.save import saving
from napari_mamamia.services.batch.output_folder import Existing
from napari_mamamia.services.batch.work import Place

E = TypeVar("E", bound=StrEnum)

PathLike: TypeAlias = str | os.PathLike[str]
ExistingName: TypeAlias = Literal["refuse", "resume", "overwrite"]
"""What to do with a non-empty output folder: raise an error, resume the run, or overwrite."""


def path_of(given: object, what: str) -> Path:
    """Convert a path and expand ``~``; raise `ArgumentError` if `given` is not a path."""
    if not isinstance(given, str | os.PathLike) or not os.fspath(given):
        raise ArgumentError(
            f"expected {what} to be a path, but got {_cut_value(given)}: pass a string or "
            "pathlib.Path"
        )
    path = os.fspath(given)
    if isinstance(path, bytes) or "\0" in path:
        raise ArgumentError(
            f"expected the path of {what} to be a string, but got {given!r}: pass a string"
        )
    return Path(path).expanduser()


def named(kind: type[E], given: str, what: str) -> E:
    """Return the enum member with a given value; raise `ArgumentError`, listing all values."""
    try:
        return kind(given)
    except ValueError:
        values = ", ".join(f'"{member.value}"' for member in kind)
        raise ArgumentError(
            f"expected {what} to be one of {values}, but got {given!r}: pass one of these"
        ) from None


def existing_of(given: str, *, can_resume: bool = True) -> Existing:
    """Return what to do with a non-empty output folder."""
    allowed = (Existing.REFUSE, *([Existing.RESUME] if can_resume else []), Existing.OVERWRITE)
    if given not in allowed:
        choices = ", ".join(f'"{one.value}"' for one in allowed)
        raise ArgumentError(
            f"expected existing to be one of {choices}, but got {given!r}: pass one of these"
        )
    return Existing(given)


def place_of(workers: object, time_limit_s: float | None = None) -> Place:
    """Return where a batch runs: in this process if `workers` is 0, or in that many processes."""
    if isinstance(workers, bool) or not isinstance(workers, int) or workers < 0:
        raise ArgumentError(
            f"expected workers to be a number of processes, but got {workers!r}: pass about the "
            "number of cores of this computer, or 0 to use only this process"
        )
    try:
        return Place(workers, "", time_limit_s)
    except ValueError as error:
        raise ArgumentError(str(error)) from error


@contextmanager
def table_file(given: object, name: str, argument: str) -> Iterator[Any]:
    """Yield the path of a table file; a DataFrame is first written to a temporary file.

    A named index, such as case_id, becomes a column. An unnamed index of strings becomes the id
    column if the table has none. Errors name the DataFrame, never the temporary file.
    """
    if not hasattr(given, "to_csv"):
        yield given
        return
    frame: Any = given
    with own_folder() as place:
        path = place / f"{name}.csv"
        with saving(path) as temporary:
            named_index = any(level is not None for level in frame.index.names)
            has_ids = all(isinstance(label, str) for label in frame.index) and len(frame) > 0
            (frame.reset_index() if named_index else frame).to_csv(
                temporary, index=has_ids and not named_index
            )
        try:
            yield path
        except MissingColumnsError as error:
            if error.table != str(path):
                raise
            raise MissingColumnsError(_say_missing(error, argument)) from None
        except MamamiaError as error:
            error.args = tuple(name_frame(str(text), path, argument) for text in error.args)
            raise


def name_frame(text: str, path: Path, argument: str) -> str:
    """Rewrite a message about a temporary table file so that it refers to the DataFrame.

    Examples
    --------
    >>> name_frame("row 3 of table.csv: dsc is empty", Path("/tmp/x/table.csv"), "table")
    'row table.iloc[1] of the DataFrame table: dsc is empty'
    """
    if path.name not in text:
        return text
    rows = re.compile(r"\b(rows?|and) (\d+)\b")
    text = text.replace(str(path), path.name).replace(path.name, f"the DataFrame {argument}")
    return rows.sub(lambda row: f"{row[1]} {argument}.iloc[{int(row[2]) - 2}]", text)


def name_frames(
    failures: Sequence[CaseFailure], notes: Sequence[str], path: Path, argument: str
) -> tuple[tuple[CaseFailure, ...], tuple[str, ...]]:
    """Rewrite failures and notes about a temporary table file so that they name its DataFrame."""
    named_failures = (
        replace(failure, reason=name_frame(failure.reason, path, argument)) for failure in failures
    )
    return tuple(named_failures), tuple(name_frame(note, path, argument) for note in notes)


def _say_missing(error: MissingColumnsError, argument: str) -> str:
    there = ", ".join(map(repr, error.there)) or "none"
    proposed = dict(error.proposals)
    names = {field: proposed.get(field, "its column") for field in error.missing}
    renamed = {"its column": next(iter(error.missing), "case_id")}
    remedy = f"rename the column, for example with {argument}.rename(columns={renamed!r})"
    if argument == "clinical":
        remedy = f"pass the column names as columns={names!r}"
        if "case_id" not in error.missing:
            absent = dict.fromkeys(error.missing)
            remedy += f", or columns={absent!r} if the table has none"
    return (
        f"expected the DataFrame {argument} to have columns for {', '.join(error.missing)}, but "
        f"found the columns {there}: {remedy}"
    )


def columns_of(given: PathLike | Mapping[str, str | None] | None) -> ColumnChoice:
    """Return which column of a clinical table holds each field, from a file or a mapping."""
    if given is None:
        return BY_NAME
    if not isinstance(given, Mapping):
        return read_columns(path_of(given, "columns"))
    unknown = sorted(str(field) for field in given if field not in COLUMNS)
    wrong = [name for name in given.values() if not (name is None or isinstance(name, str))]
    if unknown or wrong:
        culprit = f"the field {unknown[0]!r}" if unknown else f"the column {wrong[0]!r}"
        raise ArgumentError(
            f"expected columns to map fields ({', '.join(COLUMNS)}) to column names or None, but "
            f"got {culprit}: correct the mapping"
        )
    return ColumnChoice(tuple(given.items()))


def case_ids_of(given: str | Iterable[str] | None) -> tuple[str, ...]:
    """Return the requested case ids, or () if all cases are requested."""
    if given is None:
        return ()
    ids = texts_of(given, "case_ids")
    if wrong := [identifier for identifier in ids if not isinstance(identifier, str)]:
        raise ArgumentError(f"expected case ids to be strings, but got {wrong[0]!r}: pass strings")
    if not ids:
        raise ArgumentError(
            "expected at least one case id, but the list is empty: omit the argument to use every "
            "case"
        )
    return ids


def texts_of(given: str | Iterable[str], what: str) -> tuple[str, ...]:
    """Return one or more strings as a tuple; raise `ArgumentError` for any other value."""
    if isinstance(given, str):
        return (given,)
    try:
        return tuple(given)
    except TypeError:
        raise ArgumentError(
            f"expected {what} to be a string or a list of strings, but got {_cut_value(given)}: "
            "pass one of these"
        ) from None


def label_of(given: Any) -> float | None:
    """Check a label value; None stands for any label. Raise `ArgumentError` if not a number.

    No voxel equals a string or NaN, so such a label would silently give an empty mask.
    """
    if given is None:
        return None
    is_number = isinstance(given, int | float | np.integer | np.floating)
    if isinstance(given, bool) or not is_number or not math.isfinite(given):
        raise ArgumentError(
            f"expected label to be a number, but got {_cut_value(given)}: pass the value of the "
            "tumour in the file, such as 1"
        )
    return float(given)


def is_path(given: object) -> bool:
    """Return whether a value can be the path of a file or folder."""
    return isinstance(given, str) or hasattr(given, "__fspath__")


def segment_of(given: Any) -> float | str | None:
    """Check a label value or a segment name; raise `ArgumentError` for any other value.

    A string that contains a number is an error, because it could be a value or a name.
    """
    is_name = isinstance(given, str) and given.strip() and not is_number(given)
    return str(given) if is_name else label_of(given)


def seconds_of(given: Any, what: str) -> float | None:
    """Check a time in s; None stands for no limit. Raise `ArgumentError` if it is not positive."""
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, int | float) or not given > 0:
        raise ArgumentError(
            f"expected {what} to be a positive number of seconds, but got {_cut_value(given)}: "
            "pass a number such as 60"
        )
    return float(given)


def _cut_value(given: object) -> str:
    text = repr(given)
    return text if len(text) <= 60 and "\n" not in text else type(given).__name__
