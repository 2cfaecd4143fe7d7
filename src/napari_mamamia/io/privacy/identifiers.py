"""Detect patient identifiers in text, such as names, numbers, dates and UIDs.

Case, accents and punctuation between words are ignored. A value that is too short to identify a
person, such as a number of four digits, is also ignored.
"""

import html
import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import permutations
from typing import Final, NamedTuple
from urllib.parse import unquote

# Words that are shared by thousands of names, places and files, and that identify nobody by
# themselves.

OWN_WORDS: Final = frozenset(
    {
        "amber", "black", "blue", "box", "brown", "case", "cases", "day", "field", "figure",
        "gray", "green", "grey", "hand", "image", "images", "long", "mark", "mask", "max",
        "may", "min", "note", "page", "phase", "phases", "quality", "read", "reader", "red",
        "rose", "score", "series", "small", "study", "table", "test", "tumour", "volume",
        "white", "window", "wood", "young", "anonymous", "anonymized", "patient", "unknown",
        "none", "name", "mama", "mamamia", "napari", "breast", "mri", "dce", "phantom", "demo",
        "subject", "tumor", "model", "kinetic", "anon", "best", "body", "border", "cost", "data",
        "group", "half", "head", "kind", "label", "large", "last", "lesion", "light", "lost",
        "low", "made", "main", "maker", "margin", "mean", "moderate", "nothing", "order", "other",
        "own", "paper", "part", "peri", "place", "post", "pre", "profile", "ras", "rate", "reason",
        "row", "rows", "rule", "sans", "seed", "shape", "sheet", "side", "size", "solid", "source",
        "space", "stays", "strata", "style", "target", "task", "time", "top", "two", "type", "unit",
        "use", "value", "voxel", "weight", "wide", "width", "worst", "yes",
    }
)  # fmt: skip
"""Surnames that are also words in this software's files; they count only next to a name."""
PARTICLES: Final = frozenset(
    {
        "von", "van", "der", "den", "del", "dem", "des", "dos", "das", "della", "bin", "ibn", "abu",
        "san", "los", "las", "les", "med", "mag", "prof", "dipl", "ing", "msc", "phd", "mrs",
        "miss", "herr", "frau", "iii", "rad", "doctor", "nan", "ser", "roi", "sun", "sum", "art",
        "jan", "jun", "april", "june", "august", "true", "null", "left", "right",
    }
)  # fmt: skip
"""Name particles, titles and frequent table words, which alone do not identify a person."""
PLACE_WORDS: Final = frozenset(
    {
        "hospital", "university", "clinic", "clinics", "medical", "center", "centre",
        "radiology", "imaging", "breast", "institute", "department", "cancer", "health",
        "healthcare", "general", "school", "foundation", "national", "women", "womens", "saint",
        "north", "south", "east", "west", "street", "research", "diagnostic", "diagnostics",
        "klinik", "klinikum", "krankenhaus", "universitat", "hopital", "ospedale", "radiologie",
    }
)  # fmt: skip
"""Words that occur in the names of many institutions."""


_LEAST_LETTERS: Final = 3
_LEAST_ID: Final = 4
_LEAST_NUMBER: Final = 5
_LEAST_PLACE: Final = 5
_LEAST_UID: Final = 10
_LEAST_RAW: Final = 6
"""Shortest word that is searched for among voxels and inside other words."""
_FEW: Final = 32
_RAW_RUN: Final = re.compile(rb"[a-z0-9]{6,}")
_LEAST_IN_HEX: Final = 7
_LEAST_TWO: Final = 5
"""Shortest word in which two letters can represent an umlaut (Boehm, but not Joe)."""
_MOST_NAMES: Final = 4
_LEAST_WORDS: Final = 2
_LEAST_PHRASE: Final = 12
_NOT_OUR_TIME: Final = r"(?!t\d\d:\d\d:\d\d\+00:00)"
"""Pattern that excludes creation times in the provenance of a mask.

A mask may be created on the day of the exam.
"""
_MONTHS: Final = (
    ("jan", "ene", "gen"), ("feb", "fev"), ("mar", "mrz"), ("apr", "avr", "abr"),
    ("may", "mai", "mag"), ("jun", "juin", "giu"), ("jul", "juil", "lug"),
    ("aug", "aou", "ago"), ("sep", "set"), ("oct", "okt", "ott"), ("nov",),
    ("dec", "dez", "dic"),
)  # fmt: skip
"""First letters of month names in English, German, French, Spanish and Italian."""

_PERSONAL: Final = {
    "person": re.compile(r"[^\W\d_]+(?:\^[^\W\d_]*)+"),
    "exam": re.compile(r"(?<!\d)(?:19|20)\d\d([-./]?)[01]\d\1[0-3]\d(?!\d)"),
    "id": re.compile(r"[A-Za-z]{1,4}-?\d{5,}|(?<![\d.])\d{7,}(?!\.?\d)"),
}
"""Patterns of names, dates and numbers in text of unknown meaning, by kind."""
_LETTER: Final = r"[^\W\d_]"
_RUN_OF_UID: Final = rf"(?<![\d.])[\d.]{{{_LEAST_UID},}}"
_LONG_RUN_OF_DIGITS: Final = rf"(?<!\d)(?<!\d\.)\d{{{_LEAST_IN_HEX},}}"
_RUN_OF_DIGITS: Final = rf"(?<![^\W_])(?<!\d\.)\d{{{_LEAST_NUMBER},}}(?![^\W_])"
_RUN_OF_LETTERS: Final = rf"(?<![^\W_])[^\W_]{{{_LEAST_ID},}}"
_HEX: Final = frozenset("abcdef")
_BETWEEN: Final = r"[\W_]"


@dataclass(frozen=True, slots=True)
class Identifier:
    """A value that identifies a patient, with the element that contains it.

    `kind` is "name", "person" (resembles a name in a text of unknown meaning), "id", "date" (of
    birth), "exam" (date of the exam), "place", "uid" or "text" (comment or description); `certain`
    states whether the file states that the identity was not removed.
    """

    element: str
    text: str = field(repr=False)
    kind: str
    certain: bool = True


@dataclass(frozen=True, slots=True)
class Sign:
    """An identifier in normalised text: all its `words`, and the `pattern` that matches them.

    `raws` are byte strings to search for among voxels; empty if the identifier is too short.
    """

    element: str
    words: tuple[str, ...] = field(repr=False)
    pattern: re.Pattern[str] = field(repr=False)
    raws: tuple[bytes, ...] = field(default=(), repr=False)

    def is_in(self, text: str) -> bool:
        """Return whether a normalised text contains the identifier."""
        return all(word in text for word in self.words) and self.pattern.search(text) is not None

    def is_in_bytes(self, lower: bytes) -> bool:
        """Return whether lower-case bytes contain the identifier."""
        return any(raw in lower for raw in self.raws)


@dataclass(frozen=True, slots=True)
class Among:
    """The UIDs or numbers in one element; a `run` that equals one of them is a match.

    A text is scanned only once. The leading components of a UID count too, because a UID with added
    components still reveals the original.
    """

    element: str
    run: re.Pattern[str] = field(repr=False)
    texts: frozenset[str] = field(repr=False)
    raws: tuple[bytes, ...] = field(default=(), repr=False)

    def is_in(self, text: str) -> bool:
        """Return whether a normalised text contains one of the values."""
        return any(map(self._has_known_start, self.run.findall(text)))

    def _has_known_start(self, run: str) -> bool:
        while run and run not in self.texts:
            run = run.rpartition(".")[0]
        return bool(run)

    def is_in_bytes(self, lower: bytes) -> bool:
        """Return whether lower-case bytes contain one of the values.

        All values are searched for together: every run of letters and digits, which is rare among
        voxels, is compared with the values of the same length.
        """
        if len(self.raws) <= _FEW:
            return any(raw in lower for raw in self.raws)
        raws, lengths = frozenset(self.raws), sorted({len(raw) for raw in self.raws})
        return any(
            run[0][index : index + length] in raws
            for run in _RAW_RUN.finditer(lower)
            for length in lengths
            for index in range(len(run[0]) - length + 1)
        )


def folded(text: str) -> str:
    """Return a string in lower case, without accents, and with decoded JSON, HTML and URL escapes.

    Examples
    --------
    >>> folded("Müller &amp; Ko%20")
    'muller & ko '
    """
    if "\\u" in text:
        text = re.sub(r"\\u([0-9a-fA-F]{4})", lambda found: chr(int(found[1], 16)), text)
    if "&" in text:
        text = html.unescape(text)
    if "%" in text:
        text = unquote(text)
    if text.isascii():
        return text.lower()
    apart = unicodedata.normalize("NFKD", text.casefold())
    return "".join(c for c in apart if not unicodedata.combining(c))


def signs_of(identifiers: Iterable[Identifier]) -> tuple[Sign | Among, ...]:
    """Return the search patterns for identifiers, without duplicates."""
    signs: dict[tuple[str, str], Sign] = {}
    runs: dict[tuple[str, str], dict[str, None]] = {}
    for identifier in dict.fromkeys(identifiers):
        for sign in _SIGNS[identifier.kind](identifier):
            if isinstance(sign, Sign):
                signs.setdefault((sign.element, sign.pattern.pattern), sign)
            else:
                runs.setdefault((identifier.element, sign.run), {})[sign.text] = None
    several = (
        Among(element, re.compile(run), frozenset(texts), tuple(_list_raws(run, texts)))
        for (element, run), texts in runs.items()
    )
    return (*signs.values(), *several)


class _Run(NamedTuple):
    """A string that must equal a complete match of the pattern `run`."""

    run: str
    text: str


def _list_raws(run: str, texts: Iterable[str]) -> Iterator[bytes]:
    if run == _RUN_OF_LETTERS:
        yield from (raw for text in texts if not text.isdigit() and (raw := _encode_raw(text)))


def without_signs(text: str, signs: Iterable[Sign | Among]) -> str:
    """Return a text for the user in which ``***`` replaces each identifying word."""
    all_signs = tuple(signs)
    if not any(sign.is_in(folded(text)) for sign in all_signs):
        return text
    parts = re.split(r"([^\w.^=-]+)", text)
    shown = "".join(
        "***" if any(s.is_in(folded(part)) for s in all_signs) else part for part in parts
    )
    # A sign may extend over several words that do not identify anybody separately.
    return shown if not any(sign.is_in(folded(shown)) for sign in all_signs) else "***"


def find_personal(element: str, text: str) -> Iterator[Identifier]:
    """Yield the parts of a text that resemble a person's name, a date or a number."""
    for kind, pattern in _PERSONAL.items():
        for match in pattern.finditer(text):
            yield Identifier(element, match[0], kind, certain=False)


def _sign_names(identifier: Identifier) -> Iterator[Sign]:
    for text in _list_spellings(identifier.text):
        words = [w for w in re.findall(f"{_LETTER}+", text) if _is_word(w)]
        for word in dict.fromkeys(words):
            is_long = len(word) >= _LEAST_LETTERS or not word.isascii()
            if is_long and word not in OWN_WORDS and word not in PARTICLES:
                yield _make_word_sign(identifier.element, word)
        for first, second in permutations(dict.fromkeys(words[:_MOST_NAMES]), 2):
            least = 0 if len(first + second) >= _LEAST_RAW else 1
            yield Sign(
                identifier.element,
                (first, second),
                re.compile(f"(?<!{_LETTER}){first}{_BETWEEN}{{{least},3}}{second}(?!{_LETTER})"),
            )


def _list_spellings(text: str) -> tuple[str, ...]:
    umlauts = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ø": "oe", "å": "aa", "æ": "ae"})
    composed = unicodedata.normalize("NFC", text.casefold())
    plain = folded(text)
    shorter = re.sub(f"{_LETTER}{{{_LEAST_TWO},}}", lambda word: _one_letter(word[0]), plain)
    return tuple(dict.fromkeys((plain, folded(composed.translate(umlauts)), shorter)))


def _one_letter(word: str) -> str:
    return re.sub("(?<![aeq])([aou])e", r"\1", word)


def _is_word(word: str) -> bool:
    return len(word) > 1 or not word.isascii()


def _make_word_sign(element: str, word: str) -> Sign:
    if len(word) >= _LEAST_RAW:
        raw = _encode_raw(word)
        return Sign(element, (word,), re.compile(re.escape(word)), (raw,) * bool(raw))
    edge = (
        r"[^\W_]" if _HEX.issuperset(word) else _LETTER
    )  # Short names such as Ada occur by chance in checksums.
    return Sign(element, (word,), re.compile(f"(?<!{edge}){re.escape(word)}(?!{edge})"))


def _sign_ids(identifier: Identifier) -> Iterator[Sign | _Run]:
    parts = re.findall(r"[^\W_]+", folded(identifier.text))
    whole = "".join(parts)
    too_short = len(whole) < (_LEAST_NUMBER if whole.isdigit() else _LEAST_ID)
    if too_short or OWN_WORDS.issuperset(parts):
        return
    yield _make_id_sign(identifier.element, parts)
    for part in parts if len(parts) > 1 else ():
        if len(part) >= _LEAST_NUMBER and part not in OWN_WORDS:
            yield _make_id_sign(identifier.element, [part])


def _make_id_sign(element: str, parts: list[str]) -> Sign | _Run:
    whole = "".join(parts)
    is_long = whole.isdigit() and len(whole) >= _LEAST_IN_HEX
    if len(parts) == 1:
        short = _RUN_OF_DIGITS if whole.isdigit() else _RUN_OF_LETTERS
        return _Run(_LONG_RUN_OF_DIGITS if is_long else short, whole)
    body = f"{_BETWEEN}{{0,2}}".join(map(re.escape, parts))
    edge = r"\d" if is_long else r"[^\W_]"
    fraction = r"(?<!\d\.)" if whole.isdigit() else ""
    return Sign(element, tuple(parts), re.compile(f"(?<!{edge}){fraction}{body}(?!{edge})"))


def _sign_dates(identifier: Identifier) -> Iterator[Sign]:
    if pattern := _make_day_pattern(identifier.text):
        yield Sign(identifier.element, (_day_digits(identifier.text)[:4],), re.compile(pattern))


def _exam_days(identifier: Identifier) -> Iterator[Sign]:
    if pattern := _make_day_pattern(identifier.text):
        day_pattern = re.compile(pattern + _NOT_OUR_TIME)
        yield Sign(identifier.element, (_day_digits(identifier.text)[:4],), day_pattern)


def _day_digits(text: str) -> str:
    digits = re.sub(r"\D", "", text)[:8]
    is_day = len(digits) == 8 and digits[:4] > "1900" and "01" <= digits[4:6] <= "12"
    return digits if is_day and "01" <= digits[6:] <= "31" else ""


def _make_day_pattern(text: str) -> str:
    digits = _day_digits(text)
    if not digits:
        return ""
    year, month, day = digits[:4], digits[4:6], digits[6:]
    orders = ((year, month, day), (day, month, year), (month, day, year))
    bodies = [r"[-./_ ]?".join(order) for order in orders]
    short = {month: f"0?{int(month)}", day: f"0?{int(day)}", year: year}
    bodies += [r"[-./_ ]".join(short[part] for part in order) for order in orders]
    named = f"(?:{'|'.join(_MONTHS[int(month) - 1])}){_LETTER}*"
    gap = r"[-./_, ]{0,2}"
    bodies += [f"0?{int(day)}{gap}{named}{gap}{year}", f"{named}{gap}0?{int(day)}{gap}{year}"]
    bodies.append(f"{year}{gap}{named}{gap}0?{int(day)}")
    return rf"(?<!\d)(?<!\d\.)(?:{'|'.join(bodies)})(?!\d)"


def _sign_phrases(identifier: Identifier) -> Iterator[Sign]:
    for sentence in re.split(r"[.;\r\n]+", folded(identifier.text)):
        words = re.findall(r"[^\W_]+", sentence)
        if len(words) >= _LEAST_WORDS and len("".join(words)) >= _LEAST_PHRASE:
            body = f"{_BETWEEN}{{0,3}}".join(map(re.escape, words))
            yield Sign(
                identifier.element, tuple(words), re.compile(rf"(?<![^\W_]){body}(?![^\W_])")
            )


def _sign_places(identifier: Identifier) -> Iterator[Sign]:
    for text in _list_spellings(identifier.text):
        words = re.findall(r"[^\W_]+", text)
        if len("".join(words)) < _LEAST_PLACE:
            continue
        if not PLACE_WORDS.union(OWN_WORDS).issuperset(words):
            body = f"{_BETWEEN}{{0,3}}".join(map(re.escape, words))
            yield Sign(identifier.element, tuple(words), re.compile(body))
        for word in words:
            is_long = word.isalpha() and len(word) >= _LEAST_PLACE
            if is_long and word not in PLACE_WORDS and word not in OWN_WORDS:
                yield _make_word_sign(identifier.element, word)


def _sign_uids(identifier: Identifier) -> Iterator[_Run]:
    uid = identifier.text.strip()
    if len(uid) >= _LEAST_UID:
        yield _Run(_RUN_OF_UID, uid)


def _encode_raw(word: str) -> bytes:
    return word.encode() if word.isascii() and len(word) >= _LEAST_RAW else b""


_SIGNS: Final = {
    "name": _sign_names, "person": _sign_names, "id": _sign_ids, "date": _sign_dates,
    "exam": _exam_days,
    "place": _sign_places, "uid": _sign_uids, "text": _sign_phrases,
}  # fmt: skip
