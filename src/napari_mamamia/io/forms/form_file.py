"""Read lexicons and the questions of a study from JSON, and write a form as JSON."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, Final

from napari_mamamia.core.errors import FormatError
from napari_mamamia.core.form import Code, Field, Form, Lexicon, Term
from napari_mamamia.io.files.foreign import reads
from napari_mamamia.io.files.json_text import read_json
from napari_mamamia.io.files.record_codec import Form as Written
from napari_mamamia.io.files.record_codec import Layout, RecordCodec

LEXICONS: Final = ("breast-mri-2013",)
"""Names of the shipped lexicons."""
_SCHEMA_KEY: Final = "mamamia_lexicon"
_SCHEMA: Final = 1
_MOST_BYTES: Final = 4 << 20
_REMEDY: Final = "correct the file, see docs/methods/forms.md"
_OWN: Final = "own questions"
_FORM_KEY: Final = "mamamia_form"


def _read_codes(value: Any) -> tuple[Code, ...]:
    if not isinstance(value, list):
        raise TypeError("a list of codes")
    return tuple(Code.of(text) for text in value)


_CODES: Final = Written(lambda codes: [code.text for code in codes], _read_codes)
_LAYOUTS: Final = (
    Layout(Term, forms={"codes": _CODES}),
    Layout(Field, forms={"codes": _CODES}),
)
_LEXICON: Final = RecordCodec(Lexicon, _REMEDY, _LAYOUTS, passes_unknown=True)
_FIELD: Final = RecordCodec(Field, _REMEDY, _LAYOUTS)
_LATER: Final = frozenset({"edition", "sha256"})
_FORM: Final = RecordCodec(Form, _REMEDY, (*_LAYOUTS, Layout(Form, later=_LATER)))


@reads("a lexicon (JSON)", _REMEDY)
def read_lexicon(path: Path) -> Lexicon:
    """Return the lexicon in a file; keys of a later version are ignored.

    Raises
    ------
    FormatError
        If the file is not a lexicon, or contradicts itself.
    """
    content = read_json(path, _MOST_BYTES)
    if not isinstance(content, dict) or content.pop(_SCHEMA_KEY, None) != _SCHEMA:
        raise FormatError(
            f"expected {path} to be a lexicon of version {_SCHEMA}, but it is not: update this "
            "software, or choose another file"
        )
    return _LEXICON.record(content, path)


def read_shipped_lexicon(name: str) -> Lexicon:
    """Return a shipped lexicon.

    Raises
    ------
    FormatError
        If no lexicon has this name. The message lists the names.

    Examples
    --------
    >>> read_shipped_lexicon("breast-mri-2013").edition
    '2013'
    """
    if name not in LEXICONS:
        raise FormatError(
            f"expected a lexicon that comes with this software ({', '.join(LEXICONS)}), but found "
            f"{name!r}: use one of these lexicons, or write questions of your own"
        )
    with as_file(files(__package__) / f"{name}.json") as path:
        return read_lexicon(path)


def parse_form(lexicon: str, questions: Sequence[Any], where: object) -> Form:
    """Return the form of a protocol: a shipped lexicon, then the protocol's own questions.

    Parameters
    ----------
    lexicon
        Name of the lexicon, or "" for no lexicon.
    questions
        Questions as JSON values. Unknown keys raise an error, so that typing errors are noticed.
    where
        The name of the source in error messages.

    Raises
    ------
    FormatError
        If a question is invalid, or two questions have the same id.
    """
    added = tuple(
        _FIELD.record(question, f"question {number} of {where}")
        for number, question in enumerate(questions, start=1)
    )
    try:
        shipped = read_shipped_lexicon(lexicon).form if lexicon else None
        if shipped is None:
            return with_digest(Form(_OWN, "", added))
        return with_digest(replace(shipped, fields=(*shipped.fields, *added)))
    except FormatError as error:
        raise FormatError(f"{where}: {error}") from error


def with_digest(form: Form) -> Form:
    """Return the form with the SHA-256 of its name, edition and fields filled in.

    Omitted options of a question are not part of the hash, so later versions may add options.
    """
    content = [form.name, form.edition, [_list_given(_FIELD.plain(field)) for field in form.fields]]
    text = json.dumps(content, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return replace(form, sha256=hashlib.sha256(text.encode()).hexdigest())


def _list_given(content: Any) -> Any:
    if isinstance(content, list):
        return [_list_given(one) for one in content]
    if not isinstance(content, dict):
        return content
    return {
        name: _list_given(one)
        for name, one in content.items()
        if not (one is None or one is False or one == "" or one == [])
    }


def form_text(form: Form) -> str:
    """Return a form as JSON text that contains every question and code of the lexicon."""
    content = {_FORM_KEY: _SCHEMA, **_list_given(_FORM.plain(form))}
    return json.dumps(content, ensure_ascii=False, indent=1) + "\n"


@reads("a study's form (JSON)", "restore the original file from the start of the study")
def read_form(path: Path) -> Form:
    """Return the form in a file that was written with `form_text`.

    Raises
    ------
    FormatError
        If the file is not a form, or its hash does not match its questions.
    """
    content = read_json(path, _MOST_BYTES)
    if not isinstance(content, dict) or content.pop(_FORM_KEY, None) != _SCHEMA:
        raise FormatError(
            f"expected {path} to be a form of version {_SCHEMA}, but it is not: update this "
            "software, or restore the file"
        )
    form = _FORM.record(content, path)
    if with_digest(form) != form:
        raise FormatError(
            f"expected the questions in {path} to have the hash {form.sha256[:16]}, but their "
            "hash differs: restore the original file from the start of the study"
        )
    return form
