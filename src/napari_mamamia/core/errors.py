"""The error tree. A message says what was expected, what was found, and how to fix it.

Settings and commands that fix the cause are data (`Remedy`), never words of the message: the
command line, the library and the window each name them as their users do.
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
    """Base of every error that this software raises on purpose; its text is readable anywhere."""

    def __init__(self, text: str = "", *, remedies: Iterable[Remedy] = ()) -> None:
        super().__init__(text)
        self.remedies = tuple(dict.fromkeys(remedies))

    def __str__(self) -> str:
        """Return the message; bytes of a file's name that are no UTF-8 become U+FFFD."""
        return readable_name(super().__str__())


class ArgumentError(MamamiaError, ValueError, TypeError):
    """What a caller passed to a function of the library cannot be meant: a wrong kind or value."""


class CaseError(MamamiaError, ValueError):
    """A case is incomplete or contradicts itself: missing phase, unequal shapes, unknown id."""


class GridMismatchError(MamamiaError, ValueError):
    """Two arrays that should share a grid do not."""


class ClusterError(MamamiaError, ConnectionError):
    """A dask cluster cannot be reached or started."""


class PacsError(MamamiaError, ConnectionError):
    """A PACS cannot be reached, refuses a request, or broke off a transfer."""


class FormatError(MamamiaError, ValueError):
    """A file or folder is not what its name promises, or is damaged."""


class MissingColumnsError(FormatError):
    """A table lacks columns, or values in them.

    `missing` are the columns or fields as we name them, `there` the table's own, `proposals` the
    field and the own column that may hold it. A caller who has the table in memory says it anew.
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
    """A file that holds NaN or infinity where it must hold numbers."""


class NotAMaskError(FormatError):
    """A file whose values are neither labels nor a soft mask: an image, logits, another scale."""


class ModelError(MamamiaError, RuntimeError):
    """A model cannot be used, or could not segment this case."""


class RefusedCheckpointError(ModelError):
    """Opening a checkpoint would run something: it was not opened; isolation can convert it."""


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
    """What was asked for would show what a blind reading hides."""


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
    """Whether a disk or a computer refused, which is nobody's submission's fault.

    What a reader makes of the system's refusal is an error of the format; its cause tells.
    """
    return _find_system_error(error) is not None


def is_refused(error: BaseException) -> bool:
    """Whether a file that is there was refused by the system."""
    cause = _find_system_error(error)
    return cause is not None and not isinstance(cause, FileNotFoundError)


def _find_system_error(error: BaseException) -> OSError | None:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, SaveError):
            return cause
        # One without a number is Python's word on what it read, such as BadGzipFile.
        if isinstance(cause, OSError) and not isinstance(cause, MamamiaError) and cause.errno:
            return cause
        cause = cause.__cause__
    return None


def refusal_text(error: OSError) -> str:
    """Return what to tell of a refusal of the system that no reader or writer foresaw."""
    where = f" at {error.filename}" if error.filename else ""
    return (
        f"expected to read and write files, but the system refused{where} "
        f"({error.strerror or error}): see that the disk has room and can be read, then go on"
    )
