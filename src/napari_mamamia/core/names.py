"""Names of files as every text of ours shows them."""


def readable_name(name: str) -> str:
    r"""Return a file's name with the sign U+FFFD for each byte that is no UTF-8.

    A name of another time or system holds such bytes. No text file, table or checksum of ours could
    hold it as it is, so only names that this leaves alone become ids of cases.

    Examples
    --------
    >>> ascii(readable_name("M\udcfcller")), readable_name("Müller")
    ("'M\\ufffdller'", 'Müller')
    """
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
