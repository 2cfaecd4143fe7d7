"""The study file: written once, then identified by its SHA-256."""

import hashlib
import json
from pathlib import Path
from typing import Final

from napari_mamamia.core.blinding import Blinding
from napari_mamamia.core.errors import FormatError
from napari_mamamia.core.program.garbage import uncollected
from napari_mamamia.features.review.core.review import Study, StudyPlan
from napari_mamamia.io.files.csv_text import from_csv_text
from napari_mamamia.io.files.foreign import open_plain, reads
from napari_mamamia.io.files.json_text import MOST_BYTES, parsed_json
from napari_mamamia.io.files.record_codec import Form, Layout, RecordCodec
from napari_mamamia.io.files.save import write_text_atomically

STUDY_NAME: Final = "study.json"
_SCHEMA_KEY: Final = "mamamia_study"
_SCHEMA: Final = 1
_REMEDY: Final = "restore the file as it was when the study began, from a backup or a colleague"

_BLINDING: Final = Form(lambda one: list(one.names), Blinding.of)
_CODEC: Final = RecordCodec(Study, _REMEDY, (Layout(StudyPlan, forms={"blinding": _BLINDING}),))


def write_study(folder: Path, study: Study) -> str:
    """Write the file of a new study; return its SHA-256.

    Raises
    ------
    SaveConflictError
        If the folder already holds a study.
    SaveError
        If the system refuses to write.
    """
    content = {_SCHEMA_KEY: _SCHEMA, **_CODEC.plain(study)}
    text = json.dumps(content, ensure_ascii=False, indent=1) + "\n"
    write_text_atomically(folder / STUDY_NAME, text)
    return hashlib.sha256(text.encode()).hexdigest()


@reads("a review study", _REMEDY)
def read_study(folder: Path) -> tuple[Study, str]:
    """Return the study in a folder and the SHA-256 of its file.

    Raises
    ------
    FormatError
        If there is no study, or its file does not have this software's format.
    """
    path = folder / STUDY_NAME
    try:
        with open_plain(path) as stream:
            data = stream.read(MOST_BYTES)
    except OSError as error:
        raise FormatError(
            f"expected a review study at {folder}, but {STUDY_NAME} cannot be read "
            f"({error.strerror or error}): name the folder that `mamamia review init` made, and "
            "see that the share is there"
        ) from error
    with uncollected():
        return _parse_study(data, path), hashlib.sha256(data).hexdigest()


def _parse_study(data: bytes, path: Path) -> Study:
    content = parsed_json(data.decode("utf-8"))
    if not isinstance(content, dict) or content.pop(_SCHEMA_KEY, None) != _SCHEMA:
        raise FormatError(
            f"expected a review study of version {_SCHEMA} at {path}, but found something else: "
            "update this software, or name another folder"
        )
    return _CODEC.record(content, path)


@reads("a review study", _REMEDY)
def hash_study(folder: Path) -> str:
    """Return the SHA-256 of a study file without parsing it."""
    with open_plain(folder / STUDY_NAME) as stream:
        return hashlib.sha256(stream.read(MOST_BYTES)).hexdigest()


@reads("a list of case ids, one per line", "write one id on each line")
def read_case_list(path: Path) -> tuple[str, ...]:
    """Return the distinct ids in a text file; empty lines and comments (#) are skipped.

    A leading apostrophe, which protects a formula in this program's tables, is removed.
    """
    with open_plain(path) as stream:
        lines = stream.read(MOST_BYTES).decode("utf-8-sig").splitlines()
    stripped = (line.strip() for line in lines)
    ids = (from_csv_text(line) for line in stripped if line and not line.startswith("#"))
    return tuple(dict.fromkeys(ids))
