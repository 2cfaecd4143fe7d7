"""Convert dataclasses to plain JSON values and back, according to their field types.

A wrong value raises an error that names the file and the field. cattrs would convert values of a
wrong type ("3" to 3) unless each type had its own rule, and would slow down every start.
"""

import math
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from enum import Enum
from pathlib import Path
from types import UnionType
from typing import Any, Final, Generic, TypeVar, Union, get_args, get_origin, get_type_hints

from napari_mamamia.core.errors import FormatError, MamamiaError

R = TypeVar("R")
Reader = Callable[[Any], Any]
Writer = Callable[[Any], Any]

_LONGEST: Final = 80
_LARGEST: Final = int(sys.float_info.max)
"""Largest integer that fits into a float; integers in JSON have no limit."""
_OBJECT_KEY: Final = "float"


class NotFinite(Enum):
    """How NaN and infinity, which JSON lacks, are represented."""

    TEXT = "text"
    """The strings ``"nan"``, ``"inf"`` and ``"-inf"``."""
    OBJECT = "object"
    """An object such as ``{"float": "inf"}``, for a field that may also be a string."""
    AS_IT_IS = "as it is"
    """Unchanged; the code that writes the values decides."""


@dataclass(frozen=True, slots=True)
class Form:
    """JSON form of a field whose type does not define one; `read` raises `ValueError`."""

    write: Writer
    read: Reader


@dataclass(frozen=True, slots=True)
class Layout:
    """Differences between the fields of a dataclass and its JSON file.

    Parameters
    ----------
    record
        The dataclass, which may be nested in another dataclass.
    forms
        How a field is written and read, by field.
    keys
        The key of a field by field, if the key differs from the field's name.
    pairs
        Fields of (name, value) pairs that are written as an object.
    later
        Fields that files of earlier versions lack, and that get their defaults. By default these
        are all fields with a default.
    """

    record: type
    forms: Mapping[str, Form] = field(default_factory=dict)
    keys: Mapping[str, str] = field(default_factory=dict)
    pairs: frozenset[str] = frozenset()
    later: frozenset[str] | None = None


_BY_TYPES: Final = Layout(object)


class _WrongError(ValueError):
    """Error with the expected and actual value and the path to the field, innermost first."""

    def __init__(self, expected: str, got: object, words: str = "") -> None:
        super().__init__(expected)
        self.expected, self.got = expected, words or _quote_value(got)
        self.way: list[str] = []

    @property
    def place(self) -> str:
        """Path of the field as text, such as "cases[2].files"."""
        return "".join(reversed(self.way)).removeprefix(".")


class _RefusedError(Exception):
    """Error raised if a dataclass rejects its values, in three parts without the field's path."""


class RecordCodec(Generic[R]):
    """JSON codec for one dataclass; an object that is read back equals the written object.

    Fields are str, int, float, bool, None, enums, `Path`, nested dataclasses, tuples, lists and
    mappings from strings, unions with None, and unions of single values.

    Parameters
    ----------
    record
        The dataclass.
    remedy
        How to fix a file that cannot be read, for the error message.
    layouts
        Layouts of this dataclass and of nested dataclasses, if their types do not define the
        written form.
    not_finite
        How NaN and infinity are written and read.
    passes_unknown
        Whether unknown keys, such as those of later versions, are ignored.
    kind
        Type of the error.

    Raises
    ------
    TypeError
        When the first record is read, if the type of a field is not supported.
    """

    def __init__(
        self,
        record: type[R],
        remedy: str,
        layouts: Iterable[Layout] = (),
        *,
        not_finite: NotFinite = NotFinite.TEXT,
        passes_unknown: bool = False,
        kind: type[MamamiaError] = FormatError,
    ) -> None:
        self._layouts = {layout.record: layout for layout in layouts}
        self._not_finite = not_finite
        self._passes_unknown = passes_unknown
        self._remedy, self._kind = remedy, kind
        self._record = record
        self._readers: dict[type, Reader] = {}

    def plain(self, value: object) -> Any:
        """Return a dataclass instance, or the value of a field, as JSON values in field order."""
        if isinstance(value, Enum):
            return value.value
        if isinstance(value, float):
            # numpy's float is also a Python float, but its repr names numpy.
            return self._plain_number(float(value))
        if isinstance(value, Path):
            return str(value)
        if value is None or isinstance(value, bool | int | str):
            return value
        return self._plain_container(value)

    def _plain_container(self, value: object) -> Any:
        if isinstance(value, tuple | list):
            return [self.plain(item) for item in value]
        if isinstance(value, Mapping):
            return {str(name): self.plain(item) for name, item in value.items()}
        if is_dataclass(value) and not isinstance(value, type):
            return self._plain_record(value)
        raise TypeError(
            f"expected a value that a record can hold, but found {type(value).__name__}"
        )

    def record(self, content: object, where: object) -> R:
        """Return the dataclass instance for JSON values; error messages name the file as `where`.

        Raises
        ------
        MamamiaError
            An error of the codec's kind, if a key is missing or unknown, or a value has a different
            type.
        """
        try:
            record: R = self._make_record_reader(self._record)(content)
        except _WrongError as wrong:
            place = f"{wrong.place!r} of {where}" if wrong.place else str(where)
            raise self._kind(
                f"expected {place} to be {wrong.expected}, but found {wrong.got}: {self._remedy}"
            ) from wrong
        except _RefusedError as refused:
            raise self._kind(f"{where}: {refused}") from refused
        return record

    # -------------------------------------------------------------------- inner

    def _plain_number(self, value: float) -> Any:
        if math.isfinite(value) or self._not_finite is NotFinite.AS_IT_IS:
            return value
        return {_OBJECT_KEY: repr(value)} if self._not_finite is NotFinite.OBJECT else repr(value)

    def _plain_record(self, value: Any) -> dict[str, Any]:
        layout = self._layouts.get(type(value))
        if layout is None:
            return {one.name: self.plain(getattr(value, one.name)) for one in fields(value)}
        content = {}
        for one in fields(value):
            item = getattr(value, one.name)
            if one.name in layout.forms:
                item = layout.forms[one.name].write(item)
            else:
                item = self.plain(dict(item) if one.name in layout.pairs else item)
            content[layout.keys.get(one.name, one.name)] = item
        return content

    def _make_record_reader(self, record: type) -> Reader:
        if record not in self._readers:
            readers: dict[str, tuple[str, Reader]] = {}
            # The reader is registered before the fields are examined, because they may have the
            # type of the record.
            self._readers[record] = lambda content: self._read_record(record, readers, content)
            layout = self._layouts.get(record, _BY_TYPES)
            hints = get_type_hints(record)
            # A class attribute is not a field and is not stored.
            for name, hint in ((one.name, hints[one.name]) for one in fields(record)):
                if name in layout.forms:
                    reader = _guard_form(layout.forms[name])
                elif name in layout.pairs:
                    (pair, _) = get_args(hint)  # tuple[tuple[str, X], ...]
                    reader = _make_mapping_reader(
                        self._make_reader(get_args(pair)[1]), as_pairs=True
                    )
                else:
                    reader = self._make_reader(hint)
                readers[layout.keys.get(name, name)] = (name, reader)
            kinds = {one.name: hints[one.name] for one in fields(record)}
            if layout is _BY_TYPES and set(kinds.values()) <= {str, int, bool}:
                self._readers[record] = _make_plain_reader(record, kinds, self._readers[record])
        return self._readers[record]

    def _read_record(
        self, record: type, readers: Mapping[str, tuple[str, Reader]], content: object
    ) -> Any:
        if not isinstance(content, Mapping):
            raise _WrongError("an object {...}", content)
        if not (self._passes_unknown or content.keys() <= readers.keys()):
            unknown = content.keys() - readers.keys()
            words = (
                f"the unknown {'key' if len(unknown) == 1 else 'keys'} "
                f"{', '.join(sorted(map(str, unknown)))}"
            )
            raise _WrongError(f"an object with the keys {', '.join(readers)}", unknown, words)
        values: dict[str, Any] = {}
        key = ""
        try:
            for key, (name, read_one) in readers.items():
                if key in content:
                    values[name] = read_one(content[key])
        except _WrongError as wrong:
            wrong.way.append(f".{key}")
            raise
        if len(values) < len(readers):
            self._require_all(record, values)
        return _make_record(record, values)

    def _require_all(self, record: type, values: Mapping[str, Any]) -> None:
        layout = self._layouts.get(record, _BY_TYPES)
        for one in fields(record):
            has_default = one.default is not MISSING or one.default_factory is not MISSING
            may_lack = has_default if layout.later is None else one.name in layout.later
            if one.name not in values and not may_lack:
                missing = _WrongError("present", None, "nothing")
                missing.way.append(f".{layout.keys.get(one.name, one.name)}")
                raise missing

    def _make_reader(self, hint: Any) -> Reader:
        if hint is float:
            return self._read_number
        if hint in _SINGLE:
            return _SINGLE[hint]
        if isinstance(hint, type) and issubclass(hint, Enum):
            return _make_enum_reader(hint)
        if isinstance(hint, type) and is_dataclass(hint):
            return self._make_record_reader(hint)
        return self._make_container_reader(hint)

    def _make_container_reader(self, hint: Any) -> Reader:
        origin, parts = get_origin(hint), get_args(hint)
        if origin in (Union, UnionType):
            return self._make_union_reader(parts)
        if origin is tuple and parts[-1] is not Ellipsis:
            return _make_pieces_reader([self._make_reader(part) for part in parts])
        if origin in (tuple, list):
            return _make_items_reader(self._make_reader(parts[0]), origin)
        if isinstance(origin, type) and issubclass(origin, Mapping) and parts[0] is str:
            return _make_mapping_reader(self._make_reader(parts[1]))
        raise TypeError(
            f"the type {hint} cannot be stored as JSON: give the codec a Form for this type"
        )

    def _make_union_reader(self, parts: tuple[Any, ...]) -> Reader:
        has_none = type(None) in parts
        some = [part for part in parts if part is not type(None)]
        if len(some) == 1:
            read_some = self._make_reader(some[0])
            return lambda value: None if value is None else read_some(value)
        return lambda value: self._read_single(value, tuple(some), has_none)

    def _read_single(self, value: object, kinds: tuple[type, ...], has_none: bool) -> Any:
        if value is None and has_none:
            return None
        if isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool)):
            return value
        if float in kinds and isinstance(value, Mapping):
            return self._read_number(value)
        raise _WrongError("a single value", value)

    def _read_number(self, value: object) -> float:
        if isinstance(value, float):
            return value
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _LARGEST:
            return float(value)
        text = value
        if self._not_finite is NotFinite.OBJECT and isinstance(value, Mapping):
            text = value.get(_OBJECT_KEY)
        if text in ("nan", "inf", "-inf") and self._not_finite is not NotFinite.AS_IT_IS:
            return float(str(text))
        raise _WrongError("a number", value)


def _quote_value(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _read_step(way: str, reader: Reader, value: object) -> Any:
    try:
        return reader(value)
    except _WrongError as wrong:
        wrong.way.append(way)
        raise


def _make_record(record: type, values: Mapping[str, Any]) -> Any:
    try:
        return record(**values)
    except MamamiaError as error:
        raise _RefusedError(str(error)) from error
    except (ValueError, TypeError) as error:
        raise _WrongError(f"a {record.__name__}, but {error}", dict(values)) from error


def _make_plain_reader(record: type, kinds: Mapping[str, type], read_any: Reader) -> Reader:
    """Return a faster reader for dataclasses of strings and integers, such as 60,000 tasks.

    `read_any` handles any unexpected value and reports the error.
    """
    keys, types = list(kinds), list(kinds.values())

    def read(content: Any) -> Any:
        is_plain = type(content) is dict and list(content) == keys
        if is_plain and list(map(type, content.values())) == types:
            return _make_record(record, content)
        return read_any(content)

    return read


def _guard_form(form: Form) -> Reader:
    def read(value: object) -> Any:
        try:
            return form.read(value)
        except MamamiaError as error:
            raise _RefusedError(str(error)) from error
        except (_WrongError, _RefusedError):
            raise
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise _WrongError(f"as this software writes it ({error})", value) from error

    return read


def _make_enum_reader(kind: type[Enum]) -> Reader:
    def read(value: object) -> Enum:
        try:
            return kind(value)
        except ValueError as error:
            members = ", ".join(str(one.value) for one in kind)
            raise _WrongError(f"one of {members}", value) from error

    return read


def _make_items_reader(item: Reader, kind: Callable[[list[Any]], Any]) -> Reader:
    def read(value: object) -> Any:
        items: list[Any] = []
        listed = _list_items(value)
        try:
            for one in listed:
                items.append(item(one))
        except _WrongError as wrong:
            wrong.way.append(f"[{len(items)}]")
            raise
        return kind(items)

    return read


def _make_pieces_reader(pieces: list[Reader]) -> Reader:
    def read(value: object) -> Any:
        items = _list_items(value)
        if len(items) != len(pieces):
            raise _WrongError(f"a list of {len(pieces)}", value)
        both = enumerate(zip(pieces, items, strict=True))
        return tuple(_read_step(f"[{index}]", piece, one) for index, (piece, one) in both)

    return read


def _make_mapping_reader(item: Reader, *, as_pairs: bool = False) -> Reader:
    def read(value: object) -> Any:
        if not isinstance(value, Mapping):
            raise _WrongError("an object {...}", value)
        items = {name: _read_step(f".{name}", item, one) for name, one in value.items()}
        return tuple(items.items()) if as_pairs else items

    return read


def _list_items(value: object) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise _WrongError("a list", value)
    return list(value)


def _read_text(value: object) -> str:
    if not isinstance(value, str):
        raise _WrongError("a string", value)
    return value


def _read_whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise _WrongError("a whole number", value)
    return value


def _read_bool(value: object) -> bool:
    if not isinstance(value, bool):
        raise _WrongError("true or false", value)
    return value


def _as_it_is(value: Any) -> Any:
    return value


_SINGLE: Final[Mapping[Any, Reader]] = {
    str: _read_text,
    int: _read_whole,
    bool: _read_bool,
    Path: lambda value: Path(_read_text(value)),
    Any: _as_it_is,
}
