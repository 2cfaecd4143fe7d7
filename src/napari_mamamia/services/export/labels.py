"""Read a file of label rules before an export, and report its problems."""

from dataclasses import dataclass
from pathlib import Path

from napari_mamamia.core.errors import FormatError
from napari_mamamia.core.label_rules import LabelRule
from napari_mamamia.io.data_set.label_map import read_label_rules
from napari_mamamia.io.seg.codes import SEGMENT_CODES


@dataclass(frozen=True, slots=True)
class LabelLine:
    """One label rule as text: value in the mask, target value, name, and its masks."""

    source: str
    target: str
    name: str
    masks: str


@dataclass(frozen=True, slots=True)
class LabelFile:
    """The content of a label rule file; `problem` is why it cannot be used, "" if it can.

    `uncoded` are the names for which DICOM SEG has no code.
    """

    path: Path
    rules: tuple[LabelRule, ...] = ()
    lines: tuple[LabelLine, ...] = ()
    uncoded: tuple[str, ...] = ()
    problem: str = ""


def look_at_labels(path: Path) -> LabelFile:
    """Return the rules of a JSON file; never raise for problems of the file.

    Examples
    --------
    >>> look_at_labels(Path("absent.json")).problem[:40]
    'cannot read label rules as JSON from abs'
    """
    try:
        rules = read_label_rules(path)
    except FormatError as error:
        return LabelFile(path, problem=str(error))
    names = dict.fromkeys(rule.name for rule in rules if rule.target)
    uncoded = tuple(name for name in names if name.casefold() not in SEGMENT_CODES)
    return LabelFile(path, rules, tuple(map(_make_line, rules)), uncoded)


def _make_line(rule: LabelRule) -> LabelLine:
    return LabelLine(
        f"{rule.source:g}",
        str(rule.target) if rule.target else "left out",
        rule.name if rule.target else "",
        rule.masks or "all",
    )
