"""All error classes. A message says what was expected, what was found, and how to fix it.

Settings and commands that fix the cause are data (`Remedy`) and not part of the message: the
command line, the library and the window each display them with their own names.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from napari_mamamia.core.names import readable_name


@dataclass(frozen=True, slots=True)
class Remedy:
    """One way to fix the cause of an error.

    Parameters
    ----------
    option
        The setting to change, by its name in the library, such as ``leave_out``; "" if a command
        is the remedy.
    values
        What it is set to, such as ``series=5,phase=2``; a word in capitals (``DIR``) stands for
        a value that only the user knows. Empty for a switch. Several values are all needed.
    command
        A command to run first, such as ``straighten``.
    """

    option: str = ""
    values: tuple[str, ...] = ()
    command: str = ""


class MamamiaError(Exception):
    """Base of every error that this software raises on purpose; its text is printable."""

    def __init__(self, text: str = "", *, remedies: Iterable[Remedy] = ()) -> None:
        super().__init__(text)
        self.remedies = tuple(dict.fromkeys(remedies))

    def __str__(self) -> str:
        """Return the message; bytes of a file name that are not UTF-8 become U+FFFD."""
        return readable_name(super().__str__())


class ArgumentError(MamamiaError, ValueError, TypeError):
    """An argument of a library function has a wrong type or value."""


class CaseError(MamamiaError, ValueError):
    """A case is incomplete or contradicts itself: missing phase, unequal shapes, unknown id."""


class GridMismatchError(MamamiaError, ValueError):
    """Two arrays that should share a grid do not."""


class ClusterError(MamamiaError, ConnectionError):
    """A dask cluster cannot be reached or started."""


class PacsError(MamamiaError, ConnectionError):
    """A PACS cannot be reached, refuses a request, or aborted a transfer."""


class FormatError(MamamiaError, ValueError):
    """A file or folder does not have the format of its name, or is damaged."""


class LayoutChoiceError(FormatError):
    """Several layouts match a folder; the remedies name them."""


class UnknownLayoutError(FormatError):
    """No known layout matches a folder; a user may describe one."""


class ProposedLayoutError(UnknownLayoutError):
    """No known layout matches a folder, but its names suggest one."""


class MissingColumnsError(FormatError):
    """A table lacks columns, or values in them.

    `missing` are the missing columns or fields by the names of this software. `there` are the
    columns of the table. `proposals` are pairs of a field and the column that may hold it. A caller
    with a table in memory can build its own message from these attributes.
    """

    def __init__(
        self,
        text: str,
        table: str = "",
        missing: Sequence[str] = (),
        there: Sequence[str] = (),
        proposals: Sequence[tuple[str, str]] = (),
        *,
        remedies: Iterable[Remedy] = (),
    ) -> None:
        super().__init__(text, remedies=remedies)
        self.table = table
        self.missing = tuple(missing)
        self.there = tuple(there)
        self.proposals = tuple(proposals)


class NotFiniteError(FormatError):
    """A file holds NaN or infinity where numbers are required."""


class NotAMaskError(FormatError):
    """A file contains neither labels nor a soft mask, but for example an image or logits."""


class ModelError(MamamiaError, RuntimeError):
    """A model cannot be used, or could not segment this case."""


class RefusedCheckpointError(ModelError):
    """A checkpoint was refused, because opening it runs code; a sandbox can convert it."""


class MissingExtraError(MamamiaError, ImportError):
    """An optional package is not installed; the message names the pip command."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(
            f"this needs the package {package}, which is not installed: "
            f'run  pip install "napari-mamamia[{extra}]"'
        )
        self.package = package
        self.extra = extra

    # Pickle calls an error's class with its text alone; this one takes two, and crosses processes.
    def __reduce__(self) -> tuple[type["MissingExtraError"], tuple[str, str]]:
        return type(self), (self.package, self.extra)


class HiddenError(MamamiaError, PermissionError):
    """The requested data would reveal what a blind reading hides."""


class SaveConflictError(MamamiaError, FileExistsError):
    """The target exists already, or two targets fit; nothing was written."""


class SaveError(MamamiaError, OSError):
    """Writing failed (disk full, read-only, verification); an existing file is untouched."""


def list_remedies(error: BaseException) -> tuple[Remedy, ...]:
    """Return the remedies of an error and of the errors that caused it, each once."""
    remedies: dict[Remedy, None] = {}
    cause: BaseException | None = error
    while cause is not None:
        remedies.update(dict.fromkeys(getattr(cause, "remedies", ())))
        cause = cause.__cause__
    return tuple(remedies)


def is_of_system(error: BaseException) -> bool:
    """Return whether the disk or the computer caused the error, which no submission can cause.

    A reader turns such an error into a format error; the cause of the format error reveals it.
    """
    return _find_system_error(error) is not None


def is_refused(error: BaseException) -> bool:
    """Return whether the system refused access to an existing file."""
    cause = _find_system_error(error)
    return cause is not None and not isinstance(cause, FileNotFoundError)


def _find_system_error(error: BaseException) -> OSError | None:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, SaveError):
            return cause
        # An OSError without a number comes from Python's own reading, such as BadGzipFile.
        if isinstance(cause, OSError) and not isinstance(cause, MamamiaError) and cause.errno:
            return cause
        cause = cause.__cause__
    return None


def refusal_text(error: OSError) -> str:
    """Return the message for an operating-system error that no reader or writer handled."""
    where = f" at {error.filename}" if error.filename else ""
    return (
        f"expected to read and write files, but the system did not allow it{where} "
        f"({error.strerror or error}): check that the disk has room and can be read, then continue"
    )
