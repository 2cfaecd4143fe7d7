"""Parse ``NAME=PATH``, in which both parts can contain an equals sign."""

from pathlib import Path

from napari_mamamia.core.errors import CaseError


def read_named_path(text: str) -> tuple[str, Path]:
    """Return the name and path in ``NAME=PATH``; for ``PATH`` alone, the name is "".

    If the whole string, or the text after one of its equals signs, is an existing path, that path
    is used. A name has no slash, so ``./a=b`` is a path. If no path exists, the first equals sign
    is the separator.

    Raises
    ------
    CaseError
        If several interpretations exist, or an equals sign has no name or no path.

    Examples
    --------
    >>> read_named_path("nnU-Net=results/fold_0")[0], read_named_path("results/fold_0")[0]
    ('nnU-Net', '')
    """
    whole = Path(text).expanduser()
    signs = [index for index, letter in enumerate(text) if letter == "="]
    pairs = [(text[:sign].strip(), text[sign + 1 :].strip()) for sign in signs]
    pairs = [(name, path) for name, path in pairs if name and path and not set(name) & set("/\\")]
    readings = [(name, Path(path).expanduser()) for name, path in pairs]
    there = [(name, path) for name, path in readings if path.exists()]
    if whole.exists():
        there.append(("", whole))
    if len(there) > 1:
        texts = " or ".join(
            f"{path} as {name!r}" if name else f"{path} itself" for name, path in there
        )
        raise CaseError(
            f"expected NAME=PATH with only one interpretation, but {text!r} may be {texts}: write "
            f"NAME=./PATH, or ./{text} for the whole path"
        )
    if there:
        return there[0]
    if readings:
        return readings[0]
    if signs and not set(text) & set("/\\"):
        raise CaseError(f"expected NAME=PATH, but found {text!r}: give both a name and a path")
    return "", whole
