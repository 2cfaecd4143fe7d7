"""Read a JSON file with rules that map mask values to labels.

An example is ``{"rules": [{"source": 1, "target": 1, "name": "tumour"}]}``.
"""

from pathlib import Path
from typing import Any, Final

from napari_mamamia.core.errors import FormatError
from napari_mamamia.core.label_rules import LabelRule
from napari_mamamia.io.files.foreign import reads
from napari_mamamia.io.files.json_text import read_json

_KEYS: Final = {"source", "target", "name", "masks"}
_FORM: Final = '{"rules": [{"source": 1, "target": 1, "name": "tumour"}]}'


@reads("label rules as JSON", f"write it like {_FORM}")
def read_label_rules(path: Path) -> tuple[LabelRule, ...]:
    """Return the rules in a JSON file, in file order.

    Each rule has ``source`` (the value in a mask), ``target`` (a whole number from 0 to 255; 0
    leaves out the value), ``name`` (not needed if the target is 0) and, if the rule applies only to
    the masks of one reader or model, ``masks`` (the name of that reader or model).

    Raises
    ------
    FormatError
        If the file cannot be read, if a rule lacks a key or has an unknown key or a value of the
        wrong type, if a target has two names, or if a mask value has two rules. The message names
        the file and the rule.
    """
    content = _read_rules(path)
    entries = content.get("rules") if isinstance(content, dict) else None
    if not isinstance(entries, list) or not entries:
        raise FormatError(
            f"expected {path} to have the form {_FORM}, but found "
            f"{str(content)[:80]}: correct the file"
        )
    rules = tuple(_parse_rule(path, number, entry) for number, entry in enumerate(entries, start=1))
    _require_one_name(path, rules)
    _require_one_rule(path, rules)
    return rules


def _read_rules(path: Path) -> Any:
    try:
        return read_json(path)
    except (OSError, ValueError, RecursionError) as error:
        raise FormatError(
            f"cannot read label rules as JSON from {path} ({error}); write the file like {_FORM}"
        ) from error


def _parse_rule(path: Path, number: int, entry: Any) -> LabelRule:
    where = f"rule {number} of {path}"
    if not isinstance(entry, dict):
        raise FormatError(
            f"expected {where} to be an object, but it is {entry!r}: write the rule like {_FORM}"
        )
    unknown = sorted(set(entry) - _KEYS)
    if unknown:
        keys = ", ".join(sorted(_KEYS))
        raise FormatError(f"unknown key {unknown[0]!r} in {where}; allowed keys are {keys}")
    source: Any = entry.get("source")
    target: Any = entry.get("target")
    if not _is_number(source) or not _is_number(target) or not isinstance(target, int):
        raise FormatError(
            f"expected source to be a number and target a whole number in {where}, but they are "
            f"{source!r} and {target!r}: correct the rule"
        )
    name, masks = entry.get("name", ""), entry.get("masks", "")
    if not isinstance(name, str) or not isinstance(masks, str) or (target and not name.strip()):
        raise FormatError(
            f"expected a name such as 'tumour' in {where}, but found {name!r}: give the label a "
            "name"
        )
    try:
        return LabelRule(float(source), target, name.strip(), masks)
    except ValueError as error:
        raise FormatError(f"{where}: {error}") from error


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _require_one_name(path: Path, rules: tuple[LabelRule, ...]) -> None:
    names: dict[int, str] = {}
    for rule in rules:
        first_name = names.setdefault(rule.target, rule.name)
        if rule.target and first_name != rule.name:
            raise FormatError(
                f"expected one name for label {rule.target} in {path}, but found {first_name!r} "
                f"and {rule.name!r}: give both rules the same name, or different targets"
            )


def _require_one_rule(path: Path, rules: tuple[LabelRule, ...]) -> None:
    for number, rule in enumerate(rules, start=1):
        for earlier, other in enumerate(rules[: number - 1], start=1):
            shared = rule.masks == other.masks or not (rule.masks and other.masks)
            if shared and rule.source == other.source:
                raise FormatError(
                    f"expected one rule for each value in {path}, but rules {earlier} and "
                    f"{number} are both for {rule.source:g}: remove one rule, or name the masks "
                    "to which each rule applies"
                )
