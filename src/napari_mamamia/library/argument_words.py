"""Show the remedies of an error as arguments of the function that was called."""

import inspect
from collections.abc import Callable, Iterable, Mapping
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
"""Command-line options whose argument in the library has a different name."""
_ARGUMENTS: Final = {
    "resume": ("existing", 'existing="resume"'),
    "overwrite": ("existing", 'existing="overwrite"'),
    "passphrase_file": ("passphrase", "passphrase=..."),
}
"""Command-line options whose argument in the library has a different name and value."""
_OTHER_FUNCTIONS: Final = {"dry_run": "mm.inspect_dicom(...)"}


def name_arguments(
    remedies: Iterable[Remedy], function: Callable[..., object], text: str = ""
) -> str:
    """Format remedies as arguments of `function`, in parentheses, to append to `text`.

    Remedies without a matching argument, and those that `text` already mentions, are omitted.

    Examples
    --------
    >>> def load(path, leave_out=(), existing="refuse"): ...
    >>> name_arguments([Remedy("leave_out", ("series=5",)), Remedy("resume")], load)
    ' (leave_out="series=5", or existing="resume")'
    """
    parameters = inspect.signature(function).parameters
    words = dict.fromkeys(_name_argument(remedy, parameters) for remedy in remedies)
    named = ", or ".join(word for word in words if word and word not in text)
    return f" ({named})" if named else ""


def _name_argument(remedy: Remedy, parameters: Mapping[str, inspect.Parameter]) -> str:
    argument, words = _ARGUMENTS.get(remedy.option, ("", ""))
    if argument in parameters:
        return words
    if remedy.option in _OTHER_FUNCTIONS:
        return _OTHER_FUNCTIONS[remedy.option]
    names = (remedy.option, *_OTHER_NAMES.get(remedy.option, ()))
    name = next((name for name in names if name in parameters), None)
    if name is None:
        return ""
    if len(remedy.values) > 1:
        return f"{name}={[str(value) for value in remedy.values]}"
    if isinstance(parameters[name].default, bool):
        return f"{name}=True" + "".join(f" {value}" for value in remedy.values)
    if not remedy.values:
        return name
    (value,) = remedy.values
    if value.isupper() and "=" in value:
        label, _, folder = value.partition("=")
        return f'{name}={{"{label}": {folder}}}'
    return f"{name}={value}" if value.isdigit() or value.isupper() else f'{name}="{value}"'


def advising_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function so that its errors show their remedies as arguments of the function."""

    @wraps(function)
    def advising(*args: P.args, **named: P.kwargs) -> R:
        try:
            return function(*args, **named)
        except MamamiaError as error:
            text = str(error)
            error.args = (text + name_arguments(list_remedies(error), function, text),)
            raise

    return advising


def advise_failures(
    failures: Iterable[CaseFailure], function: Callable[..., object]
) -> tuple[CaseFailure, ...]:
    """Return failures whose remedies are written as arguments of `function`."""
    return tuple(
        replace(
            failure,
            reason=failure.reason + name_arguments(failure.remedies, function, failure.reason),
        )
        for failure in failures
    )
