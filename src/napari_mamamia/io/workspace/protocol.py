"""Annotation protocols: JSON files with common settings for several readers.

::

    {
      "name": "Tumour in DCE-MRI, reader study 1",
      "phase": 1,
      "brush": {"tool": "smartpaint", "radius_mm": 8},
      "structures": [{"value": 1, "name": "tumour"}],
      "checklist": ["Is the whole rim inside?"],
      "time_limit_s": 600,
      "blind": true
    }

Only ``name`` is required. An unknown key raises an error, so that typing errors are detected. Keys
of the previous SmartPaint brush are read and reported as unused. ``form`` names a shipped lexicon
("breast-mri-2013"), ``questions`` are a study's own questions, which follow the lexicon;
`docs/methods/forms.md` describes their form. ``blind`` hides the reference, the model, other
readers, numbers and clinical data; a list of some of these names hides only the listed items.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from napari_mamamia.core.blinding import ALL_HIDDEN, NOT_BLIND, Blinding, Hidden
from napari_mamamia.core.edits import Action, Brush, Extent, Features, Sampling, Tool
from napari_mamamia.core.errors import FormatError
from napari_mamamia.core.form import Form
from napari_mamamia.io.files.foreign import open_plain, reads
from napari_mamamia.io.files.json_text import MOST_BYTES, read_json
from napari_mamamia.io.forms.form_file import parse_form

_LARGEST_LABEL: Final = 255
_BRUSH: Final = Brush()
_TOOLS: Final = {
    "smartpaint": Tool.EVIDENCE,
    "learned": Tool.LEARNED,
    "sphere": Tool.SPHERE,
    "smooth": Tool.SMOOTH,
}
_RETIRED: Final = ("tolerance", "features", "sampling")
"""Keys of the previous SmartPaint brush, which the current brush does not use."""


@dataclass(frozen=True, slots=True)
class Structure:
    """A label that readers draw, with its name; `value` is 1 to 255."""

    value: int
    name: str


@dataclass(frozen=True, slots=True)
class Protocol:
    """The settings in an annotation protocol.

    Parameters
    ----------
    phase
        The phase to show and paint on; if None, the reader chooses it.
    brush
        The initial brush.
    structures
        Labels to draw, with unique values; if empty, there is one tumour label with value 1.
    checklist
        Sentences for the reader to check.
    time_limit_s
        Intended editing time for a case in seconds, above 0; None for no limit.
    unused
        Brush keys in the file that no longer have any effect.
    blinding
        The information that is hidden from the reader.
    form
        The questions about each case, or None.
    """

    name: str
    phase: int | None = None
    brush: Brush = _BRUSH
    structures: tuple[Structure, ...] = ()
    checklist: tuple[str, ...] = ()
    time_limit_s: float | None = None
    blinding: Blinding = NOT_BLIND
    unused: tuple[str, ...] = ()
    form: Form | None = None


@reads("an annotation protocol (JSON)", "correct the file as in docs/protocol_example.json")
def read_protocol(path: Path) -> Protocol:
    """Return the protocol in a JSON file.

    Raises
    ------
    FormatError
        If the file cannot be read, lacks a name, or has an unknown key or invalid value. The
        message names the file and the key.
    """
    try:
        content = read_json(path)
    except (OSError, ValueError, RecursionError) as error:
        raise FormatError(
            f"cannot read {path} as an annotation protocol (JSON): {error}; correct the file as "
            "in docs/protocol_example.json"
        ) from error
    try:
        values = _require_name(_parse_values(content, _PARSERS, "the protocol"))
    except (TypeError, ValueError) as error:
        raise FormatError(
            f"expected an annotation protocol in {path}, but {error}: correct the file as in "
            "docs/protocol_example.json"
        ) from error
    unused = _list_unused(content.get("brush", {}))
    lexicon, questions = values.pop(_FORM, ""), values.pop(_QUESTIONS, [])
    form = parse_form(lexicon, questions, path) if lexicon or questions else None
    blinding = values.pop(_BLIND, NOT_BLIND)
    return Protocol(blinding=blinding, unused=unused, form=form, **values)


@reads("an annotation protocol (JSON)", "save the file as UTF-8")
def read_protocol_text(path: Path) -> str:
    """Return the text of a protocol file, to be stored next to its results."""
    with open_plain(path) as stream:
        return stream.read(MOST_BYTES).decode("utf-8-sig")


def _parse_values(
    content: Any, parsers: Mapping[str, Callable[[Any], Any]], where: str
) -> dict[str, Any]:
    if not isinstance(content, dict):
        raise TypeError(f"{where} is {_describe_value(content)}, not an object {{...}}")
    unknown = [key for key in content if key not in parsers]
    if unknown:
        keys = ", ".join(parsers)
        raise ValueError(f"{where} has the key {unknown[0]!r}, which is not one of {keys}")
    values = {}
    for key, value in content.items():
        try:
            values[key] = parsers[key](value)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{key!r} of {where}: {error}") from error
    return values


def _require_name(values: dict[str, Any]) -> dict[str, Any]:
    if "name" not in values:
        raise ValueError("the key 'name' is missing")
    return values


def _parse_text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"expected a string, but found {_describe_value(value)}")
    return value


def _make_whole_parser(least: int, most: float = math.inf) -> Callable[[Any], int]:
    def parse(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            limits = f"of {least} or more" if most == math.inf else f"from {least} to {most}"
            raise ValueError(
                f"expected a whole number {limits}, but found {_describe_value(value)}"
            )
        return value

    return parse


def _parse_positive(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"expected a number, but found {_describe_value(value)}")
    if not 0 < value < math.inf:
        raise ValueError(f"expected a number above 0, but found {value}")
    return float(value)


def _one_of(kind: type[StrEnum]) -> Callable[[Any], StrEnum]:
    def parse(value: Any) -> StrEnum:
        names = [member.value for member in kind]
        if value not in names:
            raise ValueError(
                f"expected one of {', '.join(names)}, but found {_describe_value(value)}"
            )
        return kind(value)

    return parse


def _parse_tool(value: Any) -> Tool:
    if value not in tuple(_TOOLS):
        raise ValueError(f"expected one of {', '.join(_TOOLS)}, but found {_describe_value(value)}")
    return _TOOLS[value]


def _or_none(parse: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else parse(value)


def _parse_list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError(f"expected a list [...], but found {_describe_value(value)}")
    return value


def _parse_brush(value: Any) -> Brush:
    fields = _parse_values(value, _BRUSH_PARSERS, "the brush")
    return replace(_BRUSH, **{key: fields[key] for key in fields if key not in _RETIRED})


def _list_unused(brush: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(key for key in _RETIRED if key in brush)


def _parse_structures(value: Any) -> tuple[Structure, ...]:
    structures = []
    for item in _parse_list(value):
        fields = _parse_values(item, _STRUCTURE_PARSERS, "a structure")
        if len(fields) < len(_STRUCTURE_PARSERS):
            raise ValueError(
                f"expected a value and a name for each structure, but found {_describe_value(item)}"
            )
        structures.append(Structure(**fields))
    for what in ("value", "name"):
        seen = [getattr(structure, what) for structure in structures]
        if len(set(seen)) < len(seen):
            raise ValueError(f"two structures have the same {what}")
    return tuple(structures)


def _parse_checklist(value: Any) -> tuple[str, ...]:
    return tuple(_parse_text(item) for item in _parse_list(value))


def _parse_blinding(value: Any) -> Blinding:
    if isinstance(value, bool):
        return ALL_HIDDEN if value else NOT_BLIND
    parse = _one_of(Hidden)
    blinding = Blinding.of(parse(name) for name in _parse_list(value))
    if blinding.hides(Hidden.SITE):
        raise ValueError("only a review study can hide the site, because case ids reveal it")
    return blinding


def _describe_value(value: Any) -> str:
    return repr(value)[:60]


_BLIND: Final = "blind"
_FORM: Final = "form"
_QUESTIONS: Final = "questions"
_LABEL: Final = _make_whole_parser(1, _LARGEST_LABEL)
_STRUCTURE_PARSERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "value": _LABEL,
    "name": _parse_text,
}
_BRUSH_PARSERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "tool": _parse_tool,
    "action": _one_of(Action),
    "radius_mm": _parse_positive,
    "tolerance": _parse_positive,
    "features": _one_of(Features),
    "extent": _one_of(Extent),
    "sampling": _one_of(Sampling),
}
_PARSERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "name": _parse_text,
    "phase": _or_none(_make_whole_parser(0)),
    "brush": _parse_brush,
    "structures": _parse_structures,
    "checklist": _parse_checklist,
    "time_limit_s": _or_none(_parse_positive),
    _BLIND: _parse_blinding,
    _FORM: _parse_text,
    _QUESTIONS: _parse_list,
}
