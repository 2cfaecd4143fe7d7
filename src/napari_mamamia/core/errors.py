"""All error classes of this software, and the remedies that errors offer.

A message states what was expected and what was found. Settings and commands that fix the cause are
data (`Remedy`) and not part of the message, because the command line, the library and the window
display them with their own names.
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
        The name of the setting to change, as in the library, such as ``leave_out``; "" if the
        remedy is a command.
    values
        The new values, such as ``series=5,phase=2``; a word in capitals (``DIR``) stands for a
        value that only the user knows. Empty for a switch. If there are several values, all are
        needed.
    command
        A command to run first, such as ``straighten``.
    """

    option: str = ""
    values: tuple[str, ...] = ()
    command: str = ""


class MamamiaError(Exception):
    """The base class of all errors that this software raises on purpose."""

    def __init__(self, text: str = "", *, remedies: Iterable[Remedy] = ()) -> None:
        super().__init__(text)
        self.remedies = tuple(dict.fromkeys(remedies))

    def __str__(self) -> str:
        return readable_name(super().__str__())


class ArgumentError(MamamiaError, ValueError, TypeError):
    """Raised if an argument of a library function has a wrong type or value."""


class CaseError(MamamiaError, ValueError):
    """Raised if a case is incomplete or inconsistent, such as a missing phase or an unknown id."""


class GridMismatchError(MamamiaError, ValueError):
    """Raised if two arrays that must share a grid are on different grids."""


class ClusterError(MamamiaError, ConnectionError):
    """Raised if a dask scheduler cannot be reached, or worker processes cannot be started."""


class PacsError(MamamiaError, ConnectionError):
    """Raised if a PACS cannot be reached, rejects a request, or aborts a transfer."""


class FormatError(MamamiaError, ValueError):
    """Raised if a file or folder is damaged or does not have the expected format."""


class LayoutChoiceError(FormatError):
    """Raised if several layouts match a folder; the remedies name the layouts."""


class UnknownLayoutError(FormatError):
    """Raised if no known layout matches a folder; a user may describe the layout."""


class ProposedLayoutError(UnknownLayoutError):
    """Raised if no known layout matches a folder, but its file names suggest a layout."""


class MissingColumnsError(FormatError):
    """Raised if a table lacks columns or required values.

    `missing` are the missing columns or fields, named as in this software. `there` are the columns
    of the table. `proposals` are pairs of a field and the column that may contain it. A caller with
    a table in memory can build its own message from these attributes.
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
    """Raised if a file has NaN or infinity where finite numbers are required."""


class NotAMaskError(FormatError):
    """Raised if a file contains an image or logits, and neither labels nor a soft mask."""


class ModelError(MamamiaError, RuntimeError):
    """Raised if a model cannot be used or fails to segment a case."""


class RefusedCheckpointError(ModelError):
    """Raised if a checkpoint would run code when it is opened; a sandbox can convert it."""


class MissingExtraError(MamamiaError, ImportError):
    """Raised if an optional package is not installed; the message contains the pip command."""

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
    """Raised if the requested data would reveal data that a blind reading hides."""


class SaveConflictError(MamamiaError, FileExistsError):
    """Raised if the target of a save exists or is ambiguous; nothing has been written."""


class SaveError(MamamiaError, OSError):
    """Raised if writing fails, for example on a full disk; existing files are then unchanged."""


def list_remedies(error: BaseException) -> tuple[Remedy, ...]:
    """Return the remedies of an error and of the errors that caused it, without duplicates."""
    remedies: dict[Remedy, None] = {}
    cause: BaseException | None = error
    while cause is not None:
        remedies.update(dict.fromkeys(getattr(cause, "remedies", ())))
        cause = cause.__cause__
    return tuple(remedies)


def is_of_system(error: BaseException) -> bool:
    """Return whether an error comes from the disk or the computer, and not from a submission.

    File readers convert such an error to a format error, whose cause is the original error.
    """
    return _find_system_error(error) is not None


def is_refused(error: BaseException) -> bool:
    """Return whether the system denied access to an existing file."""
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
    """Return the message for an operating-system error that was not handled elsewhere."""
    where = f" at {error.filename}" if error.filename else ""
    return (
        f"expected to read and write files, but the system did not allow it{where} "
        f"({error.strerror or error}): check that the disk has room and can be read, then continue"
    )
