"""Remedies of an error, as arguments of the function that was called."""

import inspect
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import wraps
from typing import Final, ParamSpec, TypeVar

from napari_mamamia.core.errors import MamamiaError, Remedy, list_remedies
from napari_mamamia.core.records import CaseFailure

P = ParamSpec("P")
R = TypeVar("R")

_OTHER_NAMES: Final = {
    "case": ("case_id", "case_ids"),
    "out": ("out", "folder"),
    "fit_time": ("time_limit_s",),
    "time_limit": ("time_limit_s",),
    "limit": ("time_limit_s",),
}
"""Options whose argument is named otherwise."""
_POLICIES: Final = {"resume": 'existing="resume"', "overwrite": 'existing="overwrite"'}
_OTHER_FUNCTIONS: Final = {"dry_run": "mm.inspect_dicom(...)"}
_OPTION: Final = re.compile(
    r"(?P<command>\bmamamia [^,;:()]*)|(?<![\w-])--(?P<name>[a-z][a-z0-9-]*)"
    r"(?: (?P<value>[A-Z][A-Z_]+\b(?:=[A-Z]+)?|\d+\b"
    r"|[a-z]+=[^\s,;:()]+(?:,[a-z0-9]+=[^\s,;:()]+)*))?"
)


def say_arguments(text: str, function: Callable[..., object]) -> str:
    """Return `text` with each option as the argument of `function` that does the same.

    Examples
    --------
    >>> def load(path, leave_out=(), allow_thin=False, existing="refuse"): ...
    >>> say_arguments("leave it out (--leave-out series=5,phase=2), or --allow-thin", load)
    'leave it out (leave_out="series=5,phase=2"), or allow_thin=True'
    >>> say_arguments("continue it with --resume; mamamia export A --resume does it too", load)
    'continue it with existing="resume"; mamamia export A --resume does it too'
    """
    parameters = inspect.signature(function).parameters

    def as_argument(match: re.Match[str]) -> str:
        if match["command"]:
            return match[0]
        option = match["name"].replace("-", "_")
        if option in _POLICIES and "existing" in parameters:
            return _POLICIES[option]
        if option in _OTHER_FUNCTIONS:
            return _OTHER_FUNCTIONS[option]
        names = (option, *_OTHER_NAMES.get(option, ()))
        name = next((name for name in names if name in parameters), None)
        if name is None:
            return match[0]
        return _write_argument(name, parameters[name].default, match["value"])

    return _OPTION.sub(as_argument, text)


def name_arguments(
    remedies: Iterable[Remedy], function: Callable[..., object], text: str = ""
) -> str:
    """Return remedies as arguments of `function`, in brackets, to stand behind `text`.

    Remedies that are no argument of it, or that `text` names already, are left out.

    Examples
    --------
    >>> def load(path, leave_out=(), existing="refuse"): ...
    >>> name_arguments([Remedy("leave_out", ("series=5",)), Remedy("resume")], load)
    ' (leave_out="series=5", or existing="resume")'
    """
    parameters = inspect.signature(function).parameters
    words = []
    for remedy in remedies:
        if remedy.option in _POLICIES and "existing" in parameters:
            words.append(_POLICIES[remedy.option])
        names = (remedy.option, *_OTHER_NAMES.get(remedy.option, ()))
        name = next((name for name in names if name in parameters), None)
        if name is not None:
            words.append(_write_values(name, parameters[name].default, remedy.values))
    named = ", or ".join(word for word in dict.fromkeys(words) if word not in text)
    return f" ({named})" if named else ""


def _write_values(name: str, default: object, values: tuple[str, ...]) -> str:
    if len(values) < 2:
        return _write_argument(name, default, values[0] if values else None)
    return f"{name}={list(values)}"


def _write_argument(name: str, default: object, value: str | None) -> str:
    if isinstance(default, bool):
        return f"{name}=True" + (f" {value}" if value else "")
    if value is None:
        return name
    if value.isupper() and "=" in value:
        label, _, folder = value.partition("=")
        return f'{name}={{"{label}": {folder}}}'
    return f"{name}={value}" if value.isdigit() or value.isupper() else f'{name}="{value}"'


def advising_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """Let what a function of the library raises name its arguments, not options."""

    @wraps(function)
    def advising(*args: P.args, **named: P.kwargs) -> R:
        try:
            return function(*args, **named)
        except MamamiaError as error:
            text = say_arguments(str(error), function)
            error.args = (text + name_arguments(list_remedies(error), function, text),)
            raise

    return advising


def advise_failures(
    failures: Iterable[CaseFailure], function: Callable[..., object]
) -> tuple[CaseFailure, ...]:
    """Return failures whose reasons name arguments of `function`, not options."""
    return tuple(
        replace(
            failure,
            reason=failure.reason + name_arguments(failure.remedies, function, failure.reason),
        )
        for failure in failures
    )
