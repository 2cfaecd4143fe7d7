"""Show the remedies of an error as command-line options and commands."""

import shlex
from collections.abc import Iterable
from typing import Final

from napari_mamamia.core.errors import Remedy

_USAGE: Final = {
    "clinical": "mamamia clinical {} --write-columns FILE",
    "import": "mamamia import DICOM --case ID --out DATASET",
    "kinetics": "mamamia kinetics",
    "perfusion": "mamamia perfusion DATASET --out DIR --vfa DIR --vfa-angles {} --vfa-tr {}",
    "layouts": "mamamia layouts --propose {}",
    "models add": "mamamia models add PATH --name NAME",
    "models convert": "mamamia models convert {} --out NEW_FOLDER --isolated",
    "models wrap": "mamamia models wrap --help",
    "review key": "mamamia review key",
    "review key new": "mamamia review key --new",
    "straighten": "mamamia straighten DATASET --out DIR",
}
"""The commands that can be remedies, with their arguments."""


def name_remedies(remedies: Iterable[Remedy]) -> str:
    """Format remedies in parentheses, to append to a message; return "" if there are none.

    Examples
    --------
    >>> name_remedies([Remedy("leave_out", ("series=5", "series=6")), Remedy("overwrite")])
    ' (--leave-out series=5 --leave-out series=6, or --overwrite)'
    >>> name_remedies([Remedy(command="straighten")])
    ' (mamamia straighten DATASET --out DIR)'
    """
    words = ", or ".join(map(_name_remedy, remedies))
    return f" ({words})" if words else ""


def _name_remedy(remedy: Remedy) -> str:
    if remedy.command:
        return _USAGE[remedy.command].format(*map(shlex.quote, remedy.values))
    option = f"--{remedy.option.replace('_', '-')}"
    return " ".join(f"{option} {value}" for value in remedy.values) or option
