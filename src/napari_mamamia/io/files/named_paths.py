"""Parse ``NAME=PATH``, where both parts may contain an equals sign."""

from pathlib import Path

from napari_mamamia.core.errors import CaseError


def read_named_path(text: str) -> tuple[str, Path]:
    """Return name and path of ``NAME=PATH``, or "" and the path of ``PATH``.

    An existing path decides: the whole text, or the part after one of its equals signs. A name has
    no slash, so that ``./a=b`` is a path. If nothing exists, the first sign separates.

    Raises
    ------
    CaseError
        If several readings exist, or there is an equals sign without a name or a path.

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
            f"expected NAME=PATH that can be read in only one way, got {text!r}, which may be "
            f"{texts}: write NAME=./PATH, or ./{text} for the whole path"
        )
    if there:
        return there[0]
    if readings:
        return readings[0]
    if signs and not set(text) & set("/\\"):
        raise CaseError(f"expected NAME=PATH, got {text!r}: give both a name and a path")
    return "", whole
