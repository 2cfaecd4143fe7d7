"""Read a challenge's truth and a team's answers, as the challenge definition describes them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.errors import FormatError
from napari_mamamia.features.challenge.io.definition import Answer, AnswerKind, Truth
from napari_mamamia.io.data_set.volumes import read_volume
from napari_mamamia.io.files.file_names import case_key
from napari_mamamia.io.files.foreign import open_plain, reads
from napari_mamamia.io.files.json_text import read_json
from napari_mamamia.io.tables.headers import Column
from napari_mamamia.io.tables.table import Table, read_table

ByPart: TypeAlias = Mapping[str, Any]
"""Values for each part of a case, such as a breast; a case without parts has the part ""."""

_ID: Final = "{id}"


def list_ids(folder: Path, pattern: str) -> tuple[str, ...]:
    """Return the sorted ids of the files that match a pattern such as ``mask/{id}.mha``."""
    before, _, after = pattern.partition(_ID)
    paths = (path.relative_to(folder).as_posix() for path in folder.glob(pattern.replace(_ID, "*")))
    return tuple(sorted(name[len(before) : len(name) - len(after)] for name in paths))


def file_name(pattern: str, case_id: str) -> str:
    """Return the name of the file of a case."""
    return pattern.replace(_ID, case_id)


def file_of(folder: Path, pattern: str, case_id: str) -> Path:
    """Return the path of the file of a case."""
    return folder / file_name(pattern, case_id)


def read_image(path: Path) -> NDArray[np.float64]:
    """Read an image as numbers; a volume with a single slice becomes (rows, columns)."""
    array = np.asarray(read_volume(path)[1], dtype=np.float64)
    return array[0] if array.ndim == 3 and len(array) == 1 else array


@reads("a table of the challenge", "correct the table, or the columns in the definition")
def read_truth_table(folder: Path, truth: Truth) -> dict[str, ByPart]:
    """Read the truth table; return its numbers by case and part.

    Raises
    ------
    FormatError
        If a column is missing, a number cannot be read, or a case occurs twice.
    """
    path = folder / truth.table
    table = read_table(path, _columns([truth.id, *truth.columns.values()]))
    values: dict[str, ByPart] = {}
    numbers = {part: _numbers(table, name, path) for part, name in truth.columns.items()}
    for index, cell in enumerate(table.column(truth.id)):
        case_id = str(cell).strip()
        if case_id in values:
            raise FormatError(f"expected each case once in {path}, but found {case_id} twice")
        values[case_id] = {part: column[index] for part, column in numbers.items()}
    return values


def _columns(names: Sequence[str]) -> list[Column]:
    return [Column(name, (name,), is_needed=True) for name in names]


def _numbers(table: Table, name: str, path: Path) -> list[float]:
    numbers, bad = table.numbers(name)
    if bad:
        raise FormatError(f"expected numbers in the column {name} of {path}, but found {bad[0]}")
    return numbers


@reads("the answer to a case", "ask the team to correct it")
def read_answer(folder: Path, answer: Answer, case_id: str) -> Any:
    """Read the file of a case: an image, or the probabilities for each part from JSON.

    Raises
    ------
    FormatError
        If the file cannot be read, or a probability is missing, not a number, or outside 0 to 1.
    """
    path = file_of(folder, answer.file, case_id)
    if answer.kind is AnswerKind.IMAGES:
        return read_image(path)
    content = read_json(path)
    if not isinstance(content, dict):
        raise FormatError(f"expected a JSON object in {path.name}, but found other content")
    parts = content if all(isinstance(value, dict) for value in content.values()) else {"": content}
    return {part: _take_classes(values, answer.classes, path) for part, values in parts.items()}


def _take_classes(values: Mapping[str, Any], classes: tuple[str, ...], path: Path) -> list[float]:
    numbers: list[float] = []
    for name in classes:
        number: Any = values.get(name)
        is_number = isinstance(number, int | float) and not isinstance(number, bool)
        if not is_number or not 0 <= number <= 1:
            raise FormatError(
                f"expected a probability of {name} from 0 to 1 in {path}, but found {number!r}"
            )
        numbers.append(float(number))
    return numbers


@reads("the table of a submission", "ask the team to correct it")
def read_answer_table(folder: Path, answer: Answer) -> dict[str, Any]:
    """Read a table of answers; return a number or probabilities for each part, by `case_key`.

    For a case with an invalid cell or a repeated row, a string that describes the problem is
    returned instead.

    Raises
    ------
    FormatError
        If the table or one of its columns is missing.
    """
    names = answer.classes or ("value",)
    path = folder / answer.file
    if not path.is_file():
        tables = [path for path in folder.iterdir() if path.suffix == Path(answer.file).suffix]
        path = tables[0] if len(tables) == 1 else path
    wanted = [answer.id, *([answer.part] if answer.part else []), *names]
    table = read_table(path, _columns(wanted))
    columns = [table.numbers(name)[0] for name in names]
    parts = table.column(answer.part) if answer.part else [""] * len(table.rows)
    values: dict[str, Any] = {}
    for index, (cell, part) in enumerate(zip(table.column(answer.id), parts, strict=True)):
        key, name = case_key(str(cell).strip()), str(part or "").strip()
        numbers = [column[index] for column in columns]
        of_case = values.setdefault(key, {})
        if isinstance(of_case, str):
            continue
        if name in of_case or not np.isfinite(numbers).all():
            values[key] = "the row comes twice" if name in of_case else "a cell holds no number"
        elif answer.kind is AnswerKind.NUMBERS:
            of_case[name] = numbers[0]
        elif min(numbers) < 0 or max(numbers) > 1:
            values[key] = "a probability is outside 0 to 1"
        else:
            of_case[name] = numbers
    return values


@reads("the weights of a model", "write them with numpy.savez")
def read_weights(path: str) -> dict[str, NDArray[np.float64]]:
    """Read the arrays of an .npz file as float64; pickled objects are rejected."""
    with open_plain(Path(path)) as file, np.load(file, allow_pickle=False) as arrays:
        return {name: np.asarray(arrays[name], dtype=np.float64) for name in arrays.files}
