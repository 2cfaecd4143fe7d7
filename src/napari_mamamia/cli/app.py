"""The program `mamamia`: its list of commands, and how it starts and ends.

The module of a command is imported only when the command runs. `mamamia --help` needs only this
table and the metadata of the features.
"""

import codecs
import signal
import sys
import traceback
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from io import TextIOWrapper
from types import FrameType
from typing import Annotated, Any, Final, NoReturn

import typer
from typer.core import TyperCommand

from napari_mamamia.cli.given import Group, Program
from napari_mamamia.cli.scripting import is_verbose
from napari_mamamia.core import errors
from napari_mamamia.core.features import Command, add_named, list_features, load_attribute
from napari_mamamia.core.names import printable, readable_name
from napari_mamamia.core.plugins import PluginWarning
from napari_mamamia.core.program.child_environment import leave_out_current_folder
from napari_mamamia.core.provenance import software_version
from napari_mamamia.io.files.own_paths import sweep_temporary


def load_command(command: Command) -> Any:
    """Import a command or a group of commands, and return it with its options."""
    member = load_attribute(command.attribute)
    if not isinstance(member, typer.Typer):
        program = Program()
        program.command(command.name)(member)
        member = program
    loaded = typer.main.get_command(member)
    loaded.name = command.name
    return loaded


ENTRIES: Final[Mapping[str, tuple[Command, ...]]] = {
    "Begin": (
        Command(
            "demo",
            "napari_mamamia.cli.viewing:demo",
            "Make 12 phantom cases with known truth, then predict, score and export them.",
        ),
        Command(
            "view",
            "napari_mamamia.cli.viewing:view",
            "Open exams, a data set or a review study in the window, or open its start page.",
        ),
        Command(
            "desktop",
            "napari_mamamia.cli.viewing:desktop",
            "Add the window to the desktop's menu of programs (Linux), for this account.",
        ),
        Command(
            "check-computer",
            "napari_mamamia.cli.checking:check_computer",
            "Check this computer: hardware, optional packages, isolation, and models with "
            "known output.",
        ),
    ),
    "Cases": (
        Command(
            "import",
            "napari_mamamia.cli.importing:import_",
            "Convert DICOM into cases: OUT/images/ID/ID_000k.nii.gz, patient info, clinical row.",
        ),
        Command(
            "pacs", "napari_mamamia.cli.pacs:app", "Query and retrieve from a PACS over DICOMweb."
        ),
        Command(
            "cases",
            "napari_mamamia.cli.viewing:cases",
            "List the cases of a data set, with their masks and problems.",
        ),
        Command(
            "layouts",
            "napari_mamamia.cli.viewing:layouts",
            "List the known data-set layouts, or suggest one for a folder.",
        ),
        Command(
            "clinical",
            "napari_mamamia.cli.clinical:clinical",
            "Show how the columns of a clinical table are read, and suggest columns for "
            "other fields.",
        ),
        Command(
            "register",
            "napari_mamamia.cli.case.registering:register",
            "Register phases, and write a new data set OUT with OUT/registration.csv; masks "
            "remain valid.",
        ),
        Command(
            "straighten",
            "napari_mamamia.cli.case.straightening:straighten",
            "Resample cases with sheared axes to orthogonal grids, in a new data set OUT.",
        ),
    ),
    "Masks and measurements": (
        Command(
            "predict",
            "napari_mamamia.cli.predicting:predict",
            "Segment the tumour in each case, and write OUT/ID.nii.gz and OUT/ID.json.",
        ),
        Command(
            "models",
            "napari_mamamia.cli.models:models",
            "List, add and check your own models; nothing is downloaded.",
        ),
        Command(
            "kinetics",
            "napari_mamamia.cli.case.kinetics:kinetics",
            "Measure contrast curves, curve types, FTV and sizes: OUT/kinetics.csv (.xlsx).",
        ),
        Command(
            "report",
            "napari_mamamia.cli.case.report:report",
            "Write a research report per case: OUT/ID.html, PDF, DICOM SR and OUT/measures.csv.",
        ),
        Command(
            "findings",
            "napari_mamamia.cli.exporting:findings",
            "Write the findings that readers entered to OUT/findings.csv (.parquet).",
        ),
        Command(
            "replay",
            "napari_mamamia.cli.replay:replay",
            "Reproduce a mask bit for bit from its journal; with images, also replay each stroke.",
        ),
        Command(
            "export",
            "napari_mamamia.cli.exporting:export",
            "Write masks as a verified bundle with exact geometry, provenance, checksums and "
            "quality.",
        ),
        Command(
            "verify",
            "napari_mamamia.cli.exporting:verify",
            "Check a bundle for missing, changed and extra files, and each mask's grid and labels.",
        ),
    ),
    "Scores": (
        Command(
            "score",
            "napari_mamamia.cli.scoring:score",
            "Score predicted masks against reference masks: OUT/case_scores.csv, OUT/summary.json.",
        ),
        Command(
            "score-table",
            "napari_mamamia.cli.scoring:score_table",
            "Compute cohort results from case scores that other software computed.",
        ),
        Command(
            "score-pcr",
            "napari_mamamia.cli.scoring:score_pcr",
            "Score predicted responses (pCR) against the clinical table, and write "
            "OUT/summary.json.",
        ),
    ),
}
"""The built-in commands, grouped by the headings in `mamamia --help`."""


@cache
def list_commands() -> Mapping[str, tuple[Command, ...]]:
    """Return all commands by heading: built-in commands, then those of installed features.

    A feature's command never replaces an existing command.
    """
    commands = {command.name: command for group in ENTRIES.values() for command in group}
    n_own = len(commands)
    for feature in list_features():
        add_named(commands, feature, feature.commands, "command")
    groups = {heading: list(group) for heading, group in ENTRIES.items()}
    for command in list(commands.values())[n_own:]:
        groups.setdefault(command.heading, []).append(command)
    return {heading: tuple(group) for heading, group in groups.items()}


class _Commands(Mapping[str, Any]):
    """A mapping from name to command; each command is imported on first use."""

    def __init__(self) -> None:
        self._commands = {
            command.name: command for group in list_commands().values() for command in group
        }
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            self._loaded[name] = load_command(self._commands[name])
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._commands)

    def __len__(self) -> int:
        return len(self._commands)


class _Group(Group):
    """A command group that imports only the command that is run."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._settings = settings
        self.commands = _Commands()  # type: ignore[assignment]  # read only: nothing adds to it

    def list_commands(self, _: Any) -> list[str]:
        """Return the command names in the order of the help text."""
        return list(self.commands)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help text from the table, without importing commands."""
        commands = {
            command.name: TyperCommand(command.name, help=command.summary, rich_help_panel=heading)
            for heading, group in list_commands().items()
            for command in group
        }
        Group(**{**self._settings, "commands": commands}).format_help(ctx, formatter)


app = Program(
    cls=_Group,
    add_completion=True,
    help="Tumour annotation and benchmark scoring on breast DCE-MRI. Not a medical device.",
    epilog="Exit codes: 0 every case done, 1 failed, 2 wrong usage, 3 finished without some cases "
    "(each is listed with a reason), 130 stopped. Environment: MAMAMIA_CONFIG_DIR (preferences), "
    "MAMAMIA_MODELS_DIR (added models), MAMAMIA_CACHE_DIR (files that may be deleted), "
    "MAMAMIA_LANGUAGE.",
    no_args_is_help=True,
)


_SHOWN = "napari_mamamia.shown"
_format_with_place = warnings.formatwarning


def _replace_characters(error: UnicodeError) -> tuple[str | bytes, int]:
    """Return a substitute for characters that cannot be printed, such as U+FFFD."""
    if isinstance(error, UnicodeEncodeError) and error.encoding.replace("-", "") == "utf8":
        return readable_name(error.object[error.start : error.end]).encode(), error.end
    return codecs.backslashreplace_errors(error)


def main() -> None:
    """Run the command line; errors that the user can fix are printed without a traceback."""
    leave_out_current_folder()
    codecs.register_error(_SHOWN, _replace_characters)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors=_SHOWN)
    warnings.filterwarnings(
        "ignore", module=r"pydicom(\.|$)"
    )  # Our own code prints the important warnings.
    warnings.formatwarning = _format_warning
    for name in ("SIGTERM", "SIGHUP"):
        _stop_at(name)
    sweep_temporary()
    with report_errors():
        app()


@contextmanager
def report_errors() -> Iterator[None]:
    """Print an error that the user can fix as one line on the error stream, and exit."""
    try:
        yield
    except (errors.MamamiaError, OSError) as error:
        if is_verbose():
            traceback.print_exc()
        _exit_with_error(error)


def _exit_with_error(error: errors.MamamiaError | OSError) -> NoReturn:
    """Print an error with its remedies as options, and exit."""
    if isinstance(error, errors.MamamiaError):
        from napari_mamamia.cli.remedies import name_remedies

        code = 2 if isinstance(error, errors.LayoutChoiceError | errors.ProposedLayoutError) else 1
        _exit_with_message(f"error: {error}{name_remedies(errors.list_remedies(error))}", code)
    _exit_with_message(f"error: {errors.refusal_text(error)}", 1)


def _format_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    line: str | None = None,
) -> str:
    """Format a warning as Python does; for a plug-in's warning, omit the line of code."""
    if issubclass(category, PluginWarning):
        return f"warning: {message}\n"
    return _format_with_place(message, category, filename, lineno, line)


def _stop_at(name: str) -> None:
    """Make a signal stop the program like Ctrl-C, with clean-up; a second one stops it at once.

    A signal that is already ignored, as with nohup, is still ignored.
    """
    # Windows has no SIGHUP.
    number = getattr(signal, name, None)
    if number is not None and signal.getsignal(number) is signal.SIG_DFL:
        signal.signal(number, _stop_on_signal)


def _stop_on_signal(number: int, _: FrameType | None) -> NoReturn:
    signal.signal(number, signal.SIG_DFL)
    raise KeyboardInterrupt


@app.callback(invoke_without_command=True)
def _print_version(
    version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False,
) -> None:
    if version:
        print(software_version())
        raise typer.Exit


def _exit_with_message(message: str, code: int) -> NoReturn:
    print("\n".join(map(printable, message.split("\n"))), file=sys.stderr)
    sys.exit(code)
