"""Find the tumour's label in masks whose labels are named in nnU-Net's ``dataset.json``."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from napari_mamamia.core.case import LabelMap
from napari_mamamia.core.errors import FormatError, Remedy
from napari_mamamia.core.names import name_some
from napari_mamamia.io.files.json_text import read_json
from napari_mamamia.io.files.sources import CaseFiles
from napari_mamamia.io.layouts.known import find_own_label

NAMES_FILE: Final = "dataset.json"
_OUTER: Final = 3
"""Number of parent folders of a mask that may contain its ``dataset.json``."""
_TUMOUR: Final = re.compile(r"tumou?r|lesion|cancer|carcinoma|malignan|mass", re.IGNORECASE)
"""Pattern for the name of a label that is a tumour."""


def parse_label_names(table: object) -> dict[str, int]:
    """Return the labels under the key ``labels`` by name, without the background.

    The result is empty if the table has a different structure, or if the labels are regions (lists
    of values).
    """
    if not isinstance(table, Mapping):
        return {}
    # nnU-Net v2 writes {name: value}, the Decathlon and nnDetection {value: name}
    pairs: list[tuple[str, Any]] = [
        (str(value), key) if str(key).isdecimal() else (str(key), value)
        for key, value in table.items()
    ]
    if any(isinstance(value, list) for _, value in pairs):
        return {}
    return {
        name: int(value)
        for name, value in pairs
        if str(value).isdecimal() and int(value) and name != "ignore"
    }


def list_tumours(labels: Mapping[str, int]) -> list[str]:
    """Return those label names that describe a tumour."""
    return [name for name in labels if _TUMOUR.search(name)]


def find_names_file(mask: Path) -> Path | None:
    """Return the ``dataset.json`` with the label names for a mask file, or None."""
    files = [folder / NAMES_FILE for folder in mask.absolute().parents[:_OUTER]]
    return next((file for file in files if file.is_file()), None)


def find_tumour_label(mask: Path) -> int | None:
    """Return the tumour's label in a mask file, or None if every value above 0 is tumour.

    The label comes from the data set's own layout, or from the names in a ``dataset.json``.

    Raises
    ------
    FormatError
        If the ``dataset.json`` names several labels, and it is not clear which one is the
        tumour. The remedies select each candidate.
    """
    own = find_own_label(mask)
    if own is not None:
        return own
    file = find_names_file(mask)
    try:
        content = read_json(file) if file is not None else None
    except (OSError, ValueError):
        return None
    labels = parse_label_names(content.get("labels") if isinstance(content, Mapping) else None)
    if len(labels) < 2:
        return None
    tumours = list_tumours(labels)
    if len(tumours) == 1:
        return labels[tumours[0]]
    candidates = tumours or list(labels)
    raise FormatError(
        f"expected one tumour label in {file}, but found "
        f"{name_some([f'{name} ({labels[name]})' for name in candidates])}: choose one",
        remedies=tuple(Remedy("label", (str(labels[name]),)) for name in candidates),
    )


def read_tumour(
    path: Path, label: float | str | None = None, *, zero_nonfinite: bool = False
) -> LabelMap:
    """Return the labels of a mask; if several are named, only the tumour, with the value 1.

    With `label`, the mask is read as `io.data_set.volumes.read_labels` does.

    Raises
    ------
    FormatError
        If the mask cannot be read; also as in `find_tumour_label`.
    """
    # napari asks in its window's thread whether a folder is ours: nrrd is imported when needed
    from napari_mamamia.io.data_set.volumes import read_labels

    labels = read_labels(path, label, zero_nonfinite=zero_nonfinite)
    tumour = find_tumour_label(path) if label is None else None
    return labels if tumour is None else labels.only(tumour)


def read_reference(path: Path, files: CaseFiles) -> LabelMap:
    """Return the labels of a case's reference mask; a tumour label in the layout becomes 1.

    Raises
    ------
    FormatError
        As in `read_tumour`.
    """
    if files.reference_label is None:
        return read_tumour(path)
    from napari_mamamia.io.data_set.volumes import read_labels

    return read_labels(path).only(files.reference_label)
