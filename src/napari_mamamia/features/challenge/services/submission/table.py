"""Check the table of predicted responses of a submission before it is used."""

import csv
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from napari_mamamia.core.errors import ModelError
from napari_mamamia.core.names import count_of
from napari_mamamia.io.files.foreign import reads
from napari_mamamia.segmentation.sandbox.external import printable, require_plain_file

TABLE: Final = "predictions.csv"

_COLUMNS: Final = ("patient_id", "pcr", "score")
_TRUTH: Final[Mapping[str, int]] = {"0": 0, "1": 1, "0.0": 0, "1.0": 1, "False": 0, "True": 1}
_TABLE_BYTES: Final = 10 * 2**20
_SHOWN: Final = 5


@dataclass(frozen=True, slots=True)
class Response:
    """A predicted response: `pcr` 0 or 1, and `score`, the probability of pCR."""

    case_id: str
    pcr: int
    score: float


@reads("the table of a submission", "inspect it", ModelError)
def take_responses(
    output: Path, case_ids: Iterable[str]
) -> tuple[tuple[Response, ...], tuple[str, ...]]:
    """Read the predicted responses in ``predictions.csv`` in order; return notes too.

    Parameters
    ----------
    output
        The submission's output folder.
    case_ids
        The cases of the run.

    Raises
    ------
    ModelError
        If the file is missing or too large, lacks a column (patient_id, pcr, score), or has a row
        of another case, two rows of one case, a pcr other than 0 and 1, or a score outside 0 to 1;
        or if a case has no row.
    """
    path = output / TABLE
    require_plain_file(path, _TABLE_BYTES)
    ids = list(case_ids)
    with path.open(encoding="utf-8-sig", newline="", errors="replace") as stream:
        rows = list(_read_rows(csv.reader(stream)))
    responses: dict[str, Response] = {}
    for number, row in rows:
        response = _read_response(number, row)
        if response.case_id not in ids:
            raise _bad_row(number, "a patient_id of its input", response.case_id)
        if response.case_id in responses:
            raise _bad_row(number, "each patient once", f"{response.case_id} again")
        responses[response.case_id] = response
    missing = [case_id for case_id in ids if case_id not in responses]
    if missing:
        raise ModelError(
            f"expected a row in {TABLE} for each of {count_of(len(ids), 'case')}, but found none "
            f"for {', '.join(missing[:_SHOWN])}: the submission must predict every case"
        )
    return tuple(responses.values()), tuple(_list_notes(responses.values()))


def constant_note(responses: Iterable[Response]) -> str:
    """Return a note if all predicted classes are equal; "" otherwise or for a single case."""
    values = [response.pcr for response in responses]
    if len(values) < 2 or len(set(values)) != 1:
        return ""
    return (
        f"all {len(values)} predicted responses are {values[0]}: the challenge refuses constant "
        "predictions"
    )


def _list_notes(responses: Iterable[Response]) -> Iterator[str]:
    for response in responses:
        if (response.score >= 0.5) != bool(response.pcr) and response.score != 0.5:
            yield (
                f"{response.case_id}: pcr is {response.pcr} but its score is "
                f"{response.score:.3g}; the two are scored separately"
            )


def _read_rows(table: Iterable[list[str]]) -> Iterator[tuple[int, dict[str, str]]]:
    try:
        header: list[str] = []
        for number, cells in enumerate(table, start=1):
            if number == 1:
                header = [cell.strip() for cell in cells]
                missing = [name for name in _COLUMNS if name not in header]
                if missing:
                    raise ModelError(
                        f"expected the columns {', '.join(_COLUMNS)} in {TABLE}, but found "
                        f"{printable(', '.join(header), 200)}: return them from "
                        "predict_classification"
                    )
            elif cells:
                yield number, dict(zip(header, cells, strict=False))
    except csv.Error as error:
        raise ModelError(f"expected {TABLE} to be a table, but {error}: inspect it") from error


def _read_response(number: int, row: Mapping[str, str]) -> Response:
    pcr = row.get("pcr", "").strip()
    if pcr not in _TRUTH:
        raise _bad_row(number, "a pcr of 0 or 1", repr(pcr))
    try:
        score = float(row.get("score", ""))
    except ValueError:
        score = math.nan
    if not 0 <= score <= 1:
        raise _bad_row(number, "a score from 0 to 1", repr(row.get("score", "")))
    return Response(row.get("patient_id", ""), _TRUTH[pcr], score)


def _bad_row(number: int, expected: str, came: str) -> ModelError:
    return ModelError(
        f"expected {expected} in row {number} of {TABLE}, but found {printable(came, 100)}: "
        "correct the submission's predict_classification"
    )
