"""Formatting of file names, and of lists of names in messages."""

from collections.abc import Sequence


def readable_name(name: str) -> str:
    r"""Return a file name in which U+FFFD replaces each byte that is not valid UTF-8.

    Names from old or other systems may contain such bytes. Our text files, tables and checksum
    files cannot store them, so a name can be a case id only if this function leaves it unchanged.

    Examples
    --------
    >>> ascii(readable_name("M\udcfcller")), readable_name("Müller")
    ("'M\\ufffdller'", 'Müller')
    """
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def printable(text: str) -> str:
    r"""Return a string with each control character replaced by an escape sequence.

    Names of files from elsewhere may contain line breaks and sequences that move the terminal's
    cursor.

    Examples
    --------
    >>> print(printable("a\x1b[2Jb\n"))
    a\x1b[2Jb\n
    """
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)


def name_some(names: Sequence[str], most: int = 10) -> str:
    """Return the first `most` names, and the number of further names, as text.

    Examples
    --------
    >>> name_some(["a", "b", "c", "d"], 2)
    'a, b and 2 more'
    """
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def count_of(number: int, noun: str, plural: str = "") -> str:
    """Return a number followed by a noun in the singular or plural.

    Give `plural` only for irregular nouns.

    Examples
    --------
    >>> count_of(1, "case"), count_of(1200, "case"), count_of(2, "study", "studies")
    ('1 case', '1,200 cases', '2 studies')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
