"""Translation of the window's texts into the language set by `MAMAMIA_LANGUAGE`.

All text that is shown in the window is passed to `tr` or `tr_n`. The English text is the key, as in
GNU gettext; `locales/napari_mamamia.pot` lists all keys (`make texts`).
"""

import gettext
import io
import os
import warnings
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Final

LANGUAGE: Final = "MAMAMIA_LANGUAGE"
DOMAIN: Final = "napari_mamamia"
_LOCALES: Final = Path(__file__).parent.parent / "locales"
_LARGEST: Final = 16 * 1024 * 1024


def tr(text: str, **values: object) -> str:
    """Return a text in the user's language, with its {names} replaced by `values`.

    Without values, nothing is replaced and braces remain unchanged.
    """
    words = _find_words(text)
    return words.format(**values) if values else words


def tr_n(one: str, several: str, count: int, **values: object) -> str:
    """Return the singular or plural form for `count` in the user's language; {n} is the count."""
    return _find_form(one, several, count).format(n=count, **values)


@cache
def _find_words(text: str) -> str:
    words = _read_catalogue_once().gettext(text) if text else text
    return words if fields_of(words) == fields_of(text) else text


def _find_form(one: str, several: str, count: int) -> str:
    words = _read_catalogue_once().ngettext(one, several, count)
    # The singular form may omit the number, in each language.
    fields = fields_of(words)
    if fields is not None and fields <= {*(fields_of(several) or ()), "n"}:
        return words
    return one if count == 1 else several


def fields_of(text: str) -> frozenset[str] | None:
    """Return the replacement fields of a string, such as "x:.1f", or None if it is malformed."""
    try:
        parts = list(Formatter().parse(text))
    except ValueError:
        return None
    return frozenset(
        f"{name}{'!' + how if how else ''}{':' + form if form else ''}"
        for _words, name, form, how in parts
        if name is not None
    )


@cache
def _read_catalogue_once() -> gettext.NullTranslations:
    return read_catalogue(os.environ)


def read_catalogue(environment: Mapping[str, str]) -> gettext.NullTranslations:
    """Return the translation catalogue for the language set by the environment.

    English is used if no language is set. The language is the name of an installed language ("de")
    or, for translators, the path of a compiled catalogue (.mo). If the catalogue is missing or
    damaged, English is used and a warning is given.
    """
    language = environment.get(LANGUAGE, "").strip()
    if language in ("", "en"):
        return gettext.NullTranslations()
    try:
        path = _find_catalogue(language)
        with path.open("rb") as stream:
            words = stream.read(_LARGEST)
        return gettext.GNUTranslations(io.BytesIO(words))
    except Exception as trouble:  # noqa: BLE001  # gettext has no error of its own for a damaged file
        warnings.warn(
            f"{LANGUAGE}={language}: no catalogue could be read, so English is used: {trouble}",
            stacklevel=2,
        )
        return gettext.NullTranslations()


def _find_catalogue(language: str) -> Path:
    if language.endswith(".mo"):
        path = Path(language)
    else:
        installed = gettext.find(DOMAIN, str(_LOCALES), [language])
        if installed is None:
            there = sorted(one.name for one in _LOCALES.glob("*") if one.is_dir())
            raise FileNotFoundError(f"languages installed: {', '.join(['en', *there])}")
        path = Path(installed)
    if not path.is_file():
        raise FileNotFoundError(f"{path} is not a file")
    return path
