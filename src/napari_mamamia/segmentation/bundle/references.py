"""The configs of a MONAI bundle as data: references are followed, expressions are never evaluated.

In a bundle, a text that begins with ``@`` refers to another value of the same file, and one that
begins with ``$`` is a Python expression that MONAI would run. References are followed here, the few
expressions that are plain values are read as such, and everything else becomes a `Refused`, which
matters only if the value is needed. Source: MONAI 1.6.1, bundle/reference_resolver.py and
config_item.py (the syntax).
"""

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from napari_mamamia.core.errors import ModelError, Remedy

_MOST_VALUES: Final = 20_000  # a real inference.json has a few hundred
_DEEPEST: Final = 50
_LONGEST: Final = 2_000
_REFERENCE: Final = re.compile(r"^@(\w[\w#-]*)$")
_MOVED: Final = re.compile(r"^(@\w[\w#-]*)\.to\(@device\)$")
_LENGTH: Final = re.compile(r"^len\((@\w[\w#-]*)\)$")
_SUM: Final = re.compile(r"^@\w[\w#-]*( ?\+ ?@\w[\w#-]*)+$")
_COMMON_KEY: Final = re.compile(r"^monai\.utils\.(?:enums\.)?CommonKeys\.(IMAGE|LABEL|PRED)$")
_NUMBER_TYPE: Final = re.compile(
    r"^(?:torch|np|numpy)\.(float16|float32|float64|u?int8|int16|int32|int64|bool)$"
)
_NO_DATA: Final = "is a Python expression"
IN_A_ROOM: Final = "wrap it as a program that runs in a sandbox"
"""The remedy for every refused bundle."""
WRAP: Final = Remedy(command="models wrap")
_REMEDY: Final = f"write it as a value into the bundle's inference.json, or {IN_A_ROOM}"


@dataclass(frozen=True, slots=True)
class NumberType:
    """A number type that a config names, such as ``$torch.float32``."""

    name: str


@dataclass(frozen=True, slots=True)
class Refused:
    """A value that is not data: its key, its text, and the reason."""

    key: str
    text: str
    why: str


class References:
    """The values of one config, by key such as ``inferer#roi_size``.

    Parameters
    ----------
    config
        The file's content.
    where
        Name of the file for messages.
    """

    def __init__(self, config: Mapping[str, Any], where: str) -> None:
        self._config = config
        self._count = 0
        self.where = where

    def __contains__(self, key: str) -> bool:
        return not isinstance(self._find_value(key), Refused)

    def value(self, key: str) -> Any:
        """Return the value at `key` with every reference followed; it may contain `Refused`.

        Raises
        ------
        ModelError
            If there is no value, references form a cycle, or the value is too large for a config.
        """
        self._count = 0
        content = self._find_value(key)
        if isinstance(content, Refused):
            raise ModelError(f"{self.where} lacks {key!r}: {content.why}; complete the bundle")
        return self._resolve_value(content, key, (key,))

    def _resolve_value(self, value: Any, key: str, followed: tuple[str, ...]) -> Any:
        self._count += 1
        if self._count > _MOST_VALUES or len(followed) > _DEEPEST or key.count("#") > _DEEPEST:
            raise ModelError(
                f"expected {self.where} to be a small config, but {key} expands to more than "
                f"{_MOST_VALUES} values or {_DEEPEST} levels; reading stopped; ask its author for "
                "a simpler one"
            )
        if isinstance(value, Mapping):
            return {
                str(name): self._resolve_value(part, f"{key}#{name}", followed)
                for name, part in value.items()
            }
        if isinstance(value, list):
            return [
                self._resolve_value(part, f"{key}#{n}", followed) for n, part in enumerate(value)
            ]
        return self._resolve_text(value, key, followed) if isinstance(value, str) else value

    def _resolve_text(self, text: str, key: str, followed: tuple[str, ...]) -> Any:
        plain = text.strip().replace("::", "#")
        if plain.startswith("$"):
            plain = plain[1:].strip()
            moved = _MOVED.match(plain)
            plain = moved[1] if moved else plain
            if not _REFERENCE.match(plain):
                return self._resolve_expression(plain, key, text, followed)
        if plain.startswith("%"):
            return Refused(key, text, "takes text from another value")
        if not plain.startswith("@"):
            return text
        reference = _REFERENCE.match(plain)
        if reference is None:
            return Refused(key, text, "is not a simple reference")
        return self._follow_reference(reference[1], key, text, followed)

    def _resolve_expression(
        self, plain: str, key: str, text: str, followed: tuple[str, ...]
    ) -> Any:
        """Return the value of an expression, if it has one of the few known forms."""
        length = _LENGTH.match(plain)
        if length:
            counted = self._resolve_text(length[1], key, followed)
            return len(counted) if isinstance(counted, list) else Refused(key, text, _NO_DATA)
        if _SUM.match(plain):
            parts = [self._resolve_text(part.strip(), key, followed) for part in plain.split("+")]
            if all(isinstance(part, list) for part in parts):
                return [value for part in parts for value in part]
            return Refused(key, text, _NO_DATA)
        return _read_literal(plain, key, text)

    def _follow_reference(self, target: str, key: str, text: str, followed: tuple[str, ...]) -> Any:
        if target in followed:
            circle = " -> ".join((*followed, target))
            raise ModelError(
                f"{self.where}: references form a cycle ({circle}); correct the bundle"
            )
        value = self._find_value(target)
        if isinstance(value, Refused):
            return Refused(key, text, value.why)
        return self._resolve_value(value, target, (*followed, target))

    def _find_value(self, key: str) -> Any:
        value: Any = self._config
        for name in key.split("#"):
            if isinstance(value, Mapping) and name in value:
                value = value[name]
            elif isinstance(value, list) and name.isdigit() and int(name) < len(value):
                value = value[int(name)]
            else:
                return Refused(key, key, f"{key!r} is not in it")
        return value


def understood(value: Any, where: str) -> Any:
    """Return `value` if it consists of data only.

    Raises
    ------
    ModelError
        If it contains a `Refused`; the message has the key and the expression.
    """
    refused = _first_refused(value)
    if refused is not None:
        raise ModelError(
            f"{where}: expected {refused.key} to be a value, but it is {refused.text!r}, which "
            f"{refused.why}; nothing of it was run: {_REMEDY}",
            remedies=(WRAP,),
        )
    return value


def _first_refused(value: Any) -> Refused | None:
    if isinstance(value, Refused):
        return value
    parts: Any = ()
    if isinstance(value, Mapping):
        parts = value.values()
    elif isinstance(value, list | tuple):
        parts = value
    return next(filter(None, map(_first_refused, parts)), None)


def _read_literal(plain: str, key: str, text: str) -> Any:
    """Return the value of an expression that is a name of MONAI's, a number type or a literal.

    Source of the names: MONAI 1.6.1, utils/enums.py, CommonKeys.
    """
    common = _COMMON_KEY.match(plain)
    if common:
        return common[1].lower()
    number_type = _NUMBER_TYPE.match(plain)
    if number_type:
        return NumberType(number_type[1])
    if len(plain) <= _LONGEST:
        try:
            return ast.literal_eval(plain)  # reads literals only, calls nothing
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            pass
    shown = text if len(text) <= 200 else f"{text[:200]}…"
    return Refused(key, shown, _NO_DATA)
