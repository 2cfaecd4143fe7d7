"""Path patterns such as ``images/{patient}/{patient}_{phase:n}``, which match values in paths.

=============  ==================================================================================
``{x}``        text without ``/``; the same name twice stands for the same text
``{x:n}``      a whole number; ``{x:nnnn}`` one of exactly four digits
``{x:x}``      a decimal number
``{x:ms}``     a whole number of milliseconds
``{x:%m-%d-%Y}`` a date, in the codes of `datetime.strptime`
``{x:a|b}``    one of these words, in this order
``{x:ab*}``    text of this form, such as ``sub-*``
``*``          any text without ``/``
``**/``        any folders, or none
=============  ==================================================================================

Letter case is ignored. A pattern whose last part has no suffix stands for a volume in every
format that is read. No file is opened here.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Final

from napari_mamamia.io.files.folders import natural_key
from napari_mamamia.io.volumes.formats import MASK_SUFFIXES, mask_stem, suffix_of

_FIELD: Final = re.compile(r"\{(?P<name>[a-z_]+)(?::(?P<kind>[^{}]*))?\}")
_TOKEN: Final = re.compile(r"\*\*/|\*|\{[^{}]*\}|[^*{}]+|[{}]")
_DATE_CODES: Final = MappingProxyType(
    {
        "%Y": r"\d{4}",
        "%m": r"\d{1,2}",
        "%d": r"\d{1,2}",
        "%y": r"\d{2}",
        "%H": r"\d{2}",
        "%M": r"\d{2}",
        "%S": r"\d{2}",
        "%b": r"[A-Za-z]{3}",
        "%j": r"\d{3}",
    }
)
_NUMBER: Final = "n"
_DECIMAL: Final = "x"
MILLISECONDS: Final = "ms"
_NUMBERS: Final = MappingProxyType(
    {_NUMBER: "[0-9]+", MILLISECONDS: "[0-9]+", _DECIMAL: r"[0-9]+(?:\.[0-9]+)?"}
)

SortKey = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class PathPattern:
    """A pattern for paths below the root of a data set.

    Attributes
    ----------
    text
        The pattern as written.
    kinds
        For each field, the format after its colon; "" for text.
    any_volume
        Whether the last part of the path has no suffix, so that every volume format matches.

    Raises
    ------
    ValueError
        If the text is not a pattern. The message names the wrong part.
    """

    text: str
    kinds: Mapping[str, str] = field(init=False)
    any_volume: bool = field(init=False)
    _regex: re.Pattern[str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        kinds: dict[str, str] = {}
        pieces = [_to_regex(piece, kinds, self.text) for piece in _TOKEN.findall(self.text)]
        last = self.text.rpartition("/")[2]
        object.__setattr__(self, "kinds", MappingProxyType(kinds))
        object.__setattr__(self, "any_volume", not suffix_of(last) and "." not in _literal(last))
        object.__setattr__(self, "_regex", re.compile("".join(pieces), re.IGNORECASE | re.DOTALL))

    @property
    def n_literals(self) -> int:
        """Number of literal characters in the pattern, plus the number of alternative words."""
        kinds = sum(3 for kind in self.kinds.values() if kind)
        return len(_FIELD.sub("", self.text).replace("*", "")) + kinds

    def match(self, path: str) -> dict[str, str] | None:
        """Return the values of the fields in a path, or None if the path does not match.

        Parameters
        ----------
        path
            Path below the root with ``/`` as separator; a folder has no ``/`` at its end.
        """
        if self.any_volume:
            head, slash, name = path.rpartition("/")
            stem = mask_stem(name)
            if stem is None:
                return None
            path = f"{head}{slash}{stem}"
        elif path.lower().endswith(".nii") and self.text.lower().endswith(".nii.gz"):
            path += ".gz"
        return self.match_folder(path)

    def match_folder(self, path: str) -> dict[str, str] | None:
        """Return the values of the fields in a folder's path, or None if it does not match."""
        match = self._regex.fullmatch(path)
        if match is None:
            return None
        fields = match.groupdict()
        for name, text in fields.items():
            kind = self.kinds[name]
            if "%" in kind and _parse_date(text, kind) is None:
                return None
        return fields

    def sort_key(self, name: str, text: str) -> SortKey:
        """Return a sort key for the values of a field; numbers and dates are sorted by value."""
        kind = self.kinds.get(name, "")
        if kind and kind.strip(_NUMBER) == "":
            return (int(text),)
        if kind in (_DECIMAL, MILLISECONDS):
            return (float(text),)
        if "%" in kind:
            return (_parse_date(text, kind),)
        if "|" in kind:
            words = kind.casefold().split("|")
            return (words.index(text.casefold()),)
        return natural_key(text)

    def is_ordered(self, name: str) -> bool:
        """Return whether the values of a field have a chronological order of their own."""
        kind = self.kinds.get(name, "")
        return kind != "" and "*" not in kind


def _literal(part: str) -> str:
    return _FIELD.sub("", part)


def _parse_date(text: str, codes: str) -> datetime | None:
    try:
        return datetime.strptime(text, codes)
    except ValueError:
        return None


def _to_regex(piece: str, kinds: dict[str, str], pattern: str) -> str:
    """Return the regular expression for one part of a pattern, and add new fields to `kinds`."""
    if piece == "**/":
        return "(?:[^/]+/)*"
    if piece == "*":
        return "[^/]*"
    if not piece.startswith("{"):
        if piece == "}":
            raise ValueError(f"expected a {{ before each }} in {pattern!r}")
        return re.escape(piece)
    match = _FIELD.fullmatch(piece)
    if match is None:
        raise ValueError(f"expected {{name}} or {{name:kind}} in {pattern!r}, but found {piece!r}")
    name, kind = match["name"], match["kind"] or ""
    if name in kinds:
        if kind and kind != kinds[name]:
            raise ValueError(f"expected one kind of {{{name}}} in {pattern!r}, but found two")
        return f"(?P={name})"
    kinds[name] = kind
    return f"(?P<{name}>{_kind_regex(kind, pattern)})"


def _kind_regex(kind: str, pattern: str) -> str:
    if not kind:
        return "[^/]+?"
    if kind in _NUMBERS:
        return _NUMBERS[kind]
    if kind.strip(_NUMBER) == "":
        return f"[0-9]{{{len(kind)}}}"
    if "%" in kind:
        codes = re.split(r"(%[A-Za-z])", kind)
        unknown = [code for code in codes[1::2] if code not in _DATE_CODES]
        if unknown:
            known = ", ".join(_DATE_CODES)
            raise ValueError(f"expected codes of {known} in {pattern!r}, but found {unknown[0]}")
        return "".join(_DATE_CODES.get(code, re.escape(code)) for code in codes)
    for sign, joined in (("|", "|"), ("*", "[^/]*?")):
        if sign in kind:
            return joined.join(re.escape(word) for word in kind.split(sign))
    raise ValueError(
        "expected n, x, ms, a date such as %Y-%m-%d, words such as left|right or text such as "
        f"sub-* after the colon in {pattern!r}, but found {kind!r}"
    )


def is_volume_path(path: str) -> bool:
    """Return whether a path is that of a volume file, with an image or a mask."""
    return path.lower().endswith(MASK_SUFFIXES) and mask_stem(path.rpartition("/")[2]) is not None
